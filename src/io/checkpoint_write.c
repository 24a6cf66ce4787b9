/* Writes, lists and removes checkpoints. Must not know: what the arrays mean. Read next:
 * checkpoint_read.c. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/checkpoint.h"
#include "io/mark.h"

char *weft__checkpoint_path(weft_context *ctx, const char *run, const char *name) {
    size_t size = strlen(run) + sizeof "/checkpoints/" + (name ? strlen(name) : 0);
    char *path = weft__alloc(ctx, size);
    if (path) snprintf(path, size, "%s/checkpoints%s%s", run, name ? "/" : "", name ? name : "");
    return path;
}

bool weft__checkpoint_step(const char *name, uint64_t *step) {
    uint64_t v = 0;
    if (strncmp(name, "step-", 5) != 0 || !name[5] || (name[5] == '0' && name[6])) return false;
    for (const char *p = name + 5; *p; p++)
        if (*p < '0' || *p > '9' || __builtin_mul_overflow(v, UINT64_C(10), &v) ||
            __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
            return false;
    *step = v;
    return v <= INT64_MAX;
}

/* Returns whether a checkpoint may have a file of this name. */
static bool is_part_name(const char *name) {
    static const char digits[] = "0123456789", ending[] = ".safetensors";
    if (strcmp(name, "state.json") == 0 || strcmp(name, "model.safetensors") == 0) return true;
    if (strncmp(name, "optimizer", 9) != 0) return false;
    const char *p = name + 9;
    if (strncmp(p, "-", 1) == 0) {
        p += 1 + strspn(p + 1, digits);
        if (strncmp(p, "-of-", 4) != 0) return false;
        p += 4 + strspn(p + 4, digits);
    }
    return strcmp(p, ending) == 0;
}

/* ---- writing ---- */

/* Checks that a part fits into its array. */
static weft_status check_part(weft_context *ctx, const weft_entry *e) {
    const weft_entry_part *p = e->part;
    int64_t elements;
    if (p->rank >= 0 && p->rank <= WEFT_ENTRY_RANK_MAX && (p->rank == 0 || p->shape) && e->rank == 1 &&
        weft__numel(p->rank, p->shape, &elements) && p->from >= 0 && p->from <= elements &&
        e->shape[0] <= elements - p->from)
        return WEFT_OK;
    return weft__fail(ctx, WEFT_ERR_ARGUMENT,
                      "checkpoint: '%.200s': a part must have rank 1 and lie within its array", e->name);
}

static weft_status stream_file(weft__folder *folder, const char *name, const weft_entry *entries,
                               const char *header, weft__written_file *file) {
    weft__writer *writer;
    WEFT_TRY(weft__folder_file(folder, name, file->bytes, &writer));
    weft_status status = weft__safetensors_stream(writer, entries, header, file);
    if (status == WEFT_OK) return weft__writer_commit(writer);
    weft__writer_abandon(writer);
    return status;
}

weft_status weft__checkpoint_write_file(weft_arena *arena, weft__folder *folder, const char *name,
                                        const weft_entry *entries, size_t count, bool whole,
                                        weft__manifest_file *out) {
    static const weft_metadata made_by = {"format", "weft"};
    weft_context *ctx = arena->ctx;
    weft__written_file file;
    char *header, *kept = weft__arena_alloc(arena, strlen(name) + 1);
    if (!kept) return weft__fail_oom(ctx, strlen(name) + 1, "the name of a file");
    memcpy(kept, name, strlen(name) + 1);
    if (whole) WEFT_TRY(weft__entries_whole(ctx, entries, count));
    WEFT_TRY(weft__safetensors_plan(ctx, entries, count, &made_by, 1, &file, &header));
    weft_status status = WEFT_OK;
    for (size_t i = 0; status == WEFT_OK && i < count; i++)
        if (entries[i].part) status = check_part(ctx, &entries[i]);
    if (status == WEFT_OK) status = stream_file(folder, name, entries, header, &file);
    if (status == WEFT_OK) status = weft__manifest_describe(arena, kept, entries, &file, out);
    weft__free(ctx, header);
    weft__free(ctx, file.entries);
    return status;
}

static weft_status write_manifest(weft_context *ctx, weft__folder *folder, const weft_checkpoint_state *state,
                                  const weft__manifest_file *files, size_t count) {
    char *text = NULL;
    size_t bytes = 0;
    weft__writer *writer = NULL;
    weft_status status = weft__manifest_render(ctx, state, files, count, &text, &bytes);
    if (status == WEFT_OK) status = weft__folder_file(folder, "state.json", bytes, &writer);
    if (status == WEFT_OK) status = weft__writer_write(writer, text, bytes);
    if (status == WEFT_OK) {
        status = weft__writer_commit(writer);
    } else {
        weft__writer_abandon(writer);
    }
    weft__free(ctx, text);
    return status;
}

weft_status weft__checkpoint_complete(weft_context *ctx, weft__folder *folder, const char *run,
                                      const weft_checkpoint_state *state, const weft__manifest_file *files,
                                      size_t count, size_t checked) {
    weft_checkpoint *readable = NULL;
    char name[WEFT__STEP_NAME];
    int fd;
    WEFT_TRY(write_manifest(ctx, folder, state, files, count));
    snprintf(name, sizeof name, "step-%" PRIu64, state->step);
    char *path = weft__checkpoint_path(ctx, run, name);
    if (!path) return weft__fail_oom(ctx, strlen(run) + WEFT__STEP_NAME, "a path");
    weft_status status = weft__folder_reopen(folder, &fd);
    if (status == WEFT_OK) status = weft__checkpoint_open_at(ctx, fd, path, checked, &readable);
    weft_checkpoint_close(readable);
    status = weft__fail_unreadable(ctx, status, path);
    weft__free(ctx, path);
    return status;
}

/* Finds a file in a checkpoint, or a folder of that name, that Weft did not write. */
static weft_status find_foreign(weft_context *ctx, const char *parent, const char *name,
                                char found[WEFT__ENTRY_NAME]) {
    const size_t size = strlen(parent) + strlen(name) + 2;
    char *path = weft__alloc(ctx, size);
    if (!path) return weft__fail_oom(ctx, size, "a path");
    snprintf(path, size, "%s/%s", parent, name);
    const weft_status status = weft__find_foreign(ctx, path, is_part_name, found);
    weft__free(ctx, path);
    return status;
}

/* A checkpoint that will be replaced gets another name if it holds files of others. */
static weft_status set_aside(weft_context *ctx, const char *parent, const char *name) {
    char found[WEFT__ENTRY_NAME], aside[WEFT__STEP_NAME + 8];
    int folder;
    WEFT_TRY(find_foreign(ctx, parent, name, found));
    if (!found[0]) return WEFT_OK;
    snprintf(aside, sizeof aside, "%s.other", name);
    WEFT_TRY(weft__own_folder(ctx, &weft__io_system, parent, &folder));
    const int renamed = weft__io_system.rename(NULL, folder, name, aside, 0), error = errno;
    (void)close(folder);
    if (renamed != 0) return weft__fail_io(ctx, "set aside the folder", parent, error);
    weft__log(ctx, WEFT_LOG_WARNING, "%s/%s holds %s, which is not Weft's: it is now called %s", parent, name,
              found, aside);
    return WEFT_OK;
}

weft_status weft__checkpoint_begin(weft_context *ctx, const weft__io *io, const char *run, uint64_t step,
                                   weft__folder **folder) {
    char name[WEFT__STEP_NAME];
    snprintf(name, sizeof name, "step-%" PRIu64, step);
    char *parent = weft__checkpoint_path(ctx, run, NULL);
    if (!parent) return weft__fail_oom(ctx, strlen(run) + 16, "a path");
    weft_status status = weft__make_one_folder(ctx, parent);
    if (status == WEFT_OK) status = set_aside(ctx, parent, name);
    if (status == WEFT_OK) status = weft__folder_open(ctx, io, parent, name, folder);
    weft__free(ctx, parent);
    return status;
}

weft_status weft__checkpoint_write(weft_context *ctx, const weft__io *io, const char *run,
                                   const weft_checkpoint_state *state, const weft_entry *model,
                                   size_t model_count, const weft_entry *optimizer, size_t optimizer_count) {
    const weft_entry *const entries[WEFT__FILES_WHOLE] = {model, optimizer};
    const size_t counts[WEFT__FILES_WHOLE] = {model_count, optimizer_count};
    weft__manifest_file files[WEFT__FILES_WHOLE];
    weft__folder *folder = NULL;
    weft_arena arena;
    char name[WEFT__FILE_NAME];
    weft__arena_init(&arena, ctx);
    weft_status status = weft__checkpoint_begin(ctx, io, run, state->step, &folder);
    for (size_t k = 0; status == WEFT_OK && k < WEFT__FILES_WHOLE; k++) {
        weft__manifest_file_name(k, WEFT__FILES_WHOLE, name);
        status = weft__checkpoint_write_file(&arena, folder, name, entries[k], counts[k], true, &files[k]);
    }
    if (status == WEFT_OK)
        status =
            weft__checkpoint_complete(ctx, folder, run, state, files, WEFT__FILES_WHOLE, WEFT__FILES_WHOLE);
    weft__arena_free(&arena);
    if (status == WEFT_OK) return weft__folder_commit(folder);
    weft__folder_abandon(folder);
    return status;
}

weft_status weft_checkpoint_write(weft_context *ctx, const char *run, const weft_checkpoint_state *state,
                                  const weft_entry *model, size_t model_count, const weft_entry *optimizer,
                                  size_t optimizer_count) {
    WEFT_NEED(ctx, run);
    WEFT_NEED(ctx, state);
    WEFT_NEED_ARRAY(ctx, model, model_count);
    WEFT_NEED_ARRAY(ctx, optimizer, optimizer_count);
    return weft__checkpoint_write(ctx, NULL, run, state, model, model_count, optimizer, optimizer_count);
}

/* ---- listing and removing ---- */

/* Inserts a step into an array that is sorted, newest first. The array holds the `capacity` newest steps,
 * so a full array drops its oldest step. */
static void insert_step(uint64_t *steps, size_t capacity, size_t count, uint64_t step) {
    size_t held = count < capacity ? count : capacity, i = held;
    if (capacity == 0 || (held == capacity && steps[held - 1] > step)) return;
    if (i == capacity) i--;
    for (; i > 0 && steps[i - 1] < step; i--) steps[i] = steps[i - 1];
    steps[i] = step;
}

weft_status weft_checkpoint_list(weft_context *ctx, const char *run, uint64_t *steps, size_t capacity,
                                 size_t *count) {
    uint64_t step;
    WEFT_NEED(ctx, run);
    WEFT_NEED(ctx, count);
    if (capacity > 0) WEFT_NEED(ctx, steps);
    *count = 0;
    char *path = weft__checkpoint_path(ctx, run, NULL);
    if (!path) return weft__fail_oom(ctx, strlen(run) + 16, "a path");
    int fd = weft__io_system.open(NULL, AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    DIR *stream = fd >= 0 ? fdopendir(fd) : NULL;
    weft_status status = WEFT_OK;
    if (!stream) {
        if (errno != ENOENT) status = weft__fail_io(ctx, "list", path, errno);
        if (fd >= 0) (void)close(fd);
    } else {
        int error = 0;
        for (const struct dirent *e; (e = weft__next_entry(stream, &error));)
            if (weft__checkpoint_step(e->d_name, &step)) insert_step(steps, capacity, (*count)++, step);
        if (error) status = weft__fail_io(ctx, "list", path, error);
        closedir(stream);
    }
    weft__free(ctx, path);
    return status;
}

/* Removes a checkpoint. A folder with files of others stays, which is said once. */
static weft_status remove_checkpoint(weft_context *ctx, const char *parent, const char *name) {
    static atomic_bool said;
    char found[WEFT__ENTRY_NAME];
    WEFT_TRY(find_foreign(ctx, parent, name, found));
    if (!found[0]) return weft__folder_remove(ctx, NULL, parent, name);
    if (!atomic_exchange(&said, true))
        weft__log(ctx, WEFT_LOG_WARNING, "%s/%s holds %s, which is not Weft's: the folder is not removed",
                  parent, name, found);
    return WEFT_OK;
}

weft_status weft__checkpoint_prune(weft_context *ctx, const char *run, size_t keep, uint64_t newest) {
    size_t count = 0, held, counted = 0;
    uint64_t best = UINT64_MAX;
    bool marked;
    if (keep == 0)
        return weft__fail(ctx, WEFT_ERR_ARGUMENT, "weft_checkpoint_prune: keep must be at least 1");
    WEFT_TRY(weft_checkpoint_list(ctx, run, NULL, 0, &count));
    if (count <= keep) return WEFT_OK;
    /* an unreadable mark must stop here: pruning might remove the best checkpoint */
    WEFT_TRY(weft__checkpoint_best(ctx, run, &marked, &best));
    uint64_t *steps = weft__array(ctx, count, sizeof *steps);
    char *path = weft__checkpoint_path(ctx, run, NULL);
    weft_status status = steps && path ? WEFT_OK : weft__fail_oom(ctx, count * sizeof *steps, "a list");
    if (status == WEFT_OK) status = weft_checkpoint_list(ctx, run, steps, count, &held);
    const size_t listed = status != WEFT_OK ? 0 : held < count ? held : count;
    for (size_t i = 0; i < listed; i++) {
        char name[WEFT__STEP_NAME];
        if (steps[i] > newest || counted++ < keep || steps[i] == best) continue;
        snprintf(name, sizeof name, "step-%" PRIu64, steps[i]);
        const weft_status removed = remove_checkpoint(ctx, path, name);
        if (removed != WEFT_OK) status = removed; /* a failure does not stop the removal of the others */
    }
    weft__free(ctx, steps);
    weft__free(ctx, path);
    return status;
}

weft_status weft_checkpoint_prune(weft_context *ctx, const char *run, size_t keep) {
    WEFT_NEED(ctx, run);
    return weft__checkpoint_prune(ctx, run, keep, UINT64_MAX);
}
