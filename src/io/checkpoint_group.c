/* Writes a checkpoint with several processes, as one:
 *
 *     rank 0        starts the folder under a temporary name, and tells its place
 *     all ranks     write a file each, flush it, and read it back; rank 0 also writes the model
 *     all ranks     tell whether they succeeded, and send sizes and checksums
 *     rank 0        writes the manifest of all files, and renames the folder
 *
 * Only the last call makes anything visible. If a process fails, rank 0 removes the folder, and all processes
 * return the same error. If a process dies or hangs, the others run into their time limit, and what they
 * have written keeps its temporary name.
 *
 * Must not know: what the arrays mean. Read next: folder.c, process/group.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/checkpoint.h"
#include "process/group.h"

/* What the steps share. */
typedef struct writing {
    weft_context *ctx;
    const weft__io *io;
    weft_process_group *group;
    size_t files; /* the model's, and one of each process */
    weft__folder *folder;
    weft_arena arena;                /* owns descriptions */
    weft__manifest_file model, part; /* what this process has written */
    uint64_t *bytes;                 /* [files - 1] of the descriptions of all processes */
} writing;

/* Where the folder is. */
typedef struct place {
    char parent[4096]; /* an absolute path: the others may have another working folder */
    char name[WEFT__STEP_NAME], temp[WEFT__TEMP_SIZE];
} place;

/* ---- the folder ---- */

static weft_status find_place(const writing *w, const char *run, uint64_t step, place *where) {
    char *path = weft__checkpoint_path(w->ctx, run, NULL);
    if (!path) return weft__fail_oom(w->ctx, strlen(run) + 16, "a path");
    char *whole = realpath(path, NULL);
    weft_status status = whole ? WEFT_OK : weft__fail_io(w->ctx, "find", path, errno);
    if (whole && snprintf(where->parent, sizeof where->parent, "%s", whole) >= (int)sizeof where->parent)
        status = weft__fail(w->ctx, WEFT_ERR_ARGUMENT, "%s: the path has more than %zu bytes", path,
                            sizeof where->parent - 1);
    snprintf(where->name, sizeof where->name, "step-%" PRIu64, step);
    if (w->folder) memcpy(where->temp, weft__folder_temp(w->folder), sizeof where->temp);
    free(whole);
    weft__free(w->ctx, path);
    return status;
}

/* A process that does not find the folder most likely looks at another disk. */
static weft_status enter(writing *w, const place *where) {
    const weft_status status =
        weft__folder_enter(w->ctx, w->io, where->parent, where->name, where->temp, &w->folder);
    if (status != WEFT_ERR_IO) return status;
    char why[WEFT_ERROR_SIZE];
    snprintf(why, sizeof why, "%s", weft_last_error(NULL));
    return weft__fail(w->ctx, status, "%.900s: keep the run on a file system that all machines share", why);
}

/* Starts the folder and tells all processes where it is. An error is the same in all of them. */
static weft_status open_folder(writing *w, weft_status status, const char *run,
                               const weft_checkpoint_state *state, place *where) {
    const bool starts = weft_process_group_rank(w->group) == 0;
    if (starts && status == WEFT_OK)
        status = weft__checkpoint_begin(w->ctx, w->io, run, state->step, &w->folder);
    if (starts && status == WEFT_OK) status = find_place(w, run, state->step, where);
    WEFT_TRY(weft__process_group_agree(w->group, status, NULL));
    return weft_process_group_broadcast(w->group, where, sizeof *where, 0);
}

/* ---- the files ---- */

/* Writes the file of this process, and reads it back. */
static weft_status write_part(writing *w, const weft_entry *entries, size_t count) {
    char name[WEFT__FILE_NAME];
    int fd;
    weft__manifest_file_name((size_t)weft_process_group_rank(w->group) + 1, w->files, name);
    WEFT_TRY(weft__checkpoint_write_file(&w->arena, w->folder, name, entries, count, false, &w->part));
    WEFT_TRY(weft__folder_reopen(w->folder, &fd));
    const char *path = weft__folder_path(w->folder);
    return weft__fail_unreadable(w->ctx, weft__checkpoint_check_file(w->ctx, fd, path, &w->part), path);
}

/* ---- entries that all processes read together ---- */

/* An entry of rank 0, which tells the others when it begins to read. */
typedef struct announced {
    const writing *w;
    const weft_entry *entry;
    uint64_t number;
} announced;

static weft_status announce(const writing *w, uint64_t number) {
    return weft_process_group_broadcast(w->group, &number, sizeof number, 0);
}

static weft_status read_announced(void *user, size_t offset, void *out, size_t bytes) {
    const announced *a = user;
    if (offset == 0) WEFT_TRY(announce(a->w, a->number));
    return a->entry->read(a->entry->user, offset, out, bytes);
}

/* Other ranks: read what rank 0 reads, until it has written the file or failed. */
static weft_status read_along(const writing *w, const weft_entry *model, size_t count) {
    char none;
    for (uint64_t number = 0;;) {
        int64_t elements = 0;
        WEFT_TRY(weft_process_group_broadcast(w->group, &number, sizeof number, 0));
        if (number >= count) return WEFT_OK;
        const weft_entry *e = &model[number];
        const size_t size =
            weft__numel(e->rank, e->shape, &elements) ? (size_t)elements * weft_dtype_size(e->dtype) : 0;
        WEFT_TRY(e->read(e->user, 0, &none, 0));
        WEFT_TRY(e->read(e->user, size, &none, 0)); /* the end: its memory is free again */
    }
}

/* Rank 0: writes the file of the model. */
static weft_status write_own_model(writing *w, const weft_entry *model, size_t count) {
    char name[WEFT__FILE_NAME];
    weft__manifest_file_name(0, w->files, name);
    return weft__checkpoint_write_file(&w->arena, w->folder, name, model, count, true, &w->model);
}

/* Rank 0: writes the file while the others read along. */
static weft_status write_together(writing *w, weft_status status, const weft_entry *model, size_t count) {
    weft_entry *entries = weft__arena_alloc(&w->arena, (count + 1) * sizeof *entries);
    announced *all = weft__arena_alloc(&w->arena, (count + 1) * sizeof *all);
    if (status == WEFT_OK && !(entries && all))
        status = weft__fail_oom(w->ctx, count * sizeof *entries, "the entries of a model");
    for (size_t i = 0; i < count && status == WEFT_OK; i++) {
        entries[i] = model[i];
        if (!model[i].together) continue;
        all[i] = (announced){w, &model[i], i};
        entries[i].read = read_announced;
        entries[i].user = &all[i];
    }
    if (status == WEFT_OK) status = write_own_model(w, entries, count);
    const weft_status told = status == WEFT_ERR_TIMEOUT ? WEFT_OK : announce(w, UINT64_MAX);
    return status == WEFT_OK ? told : status;
}

/* Writes the model. status: of what this process did before. */
static weft_status write_model(writing *w, weft_status status, const weft_entry *model, size_t count) {
    const bool leads = weft_process_group_rank(w->group) == 0;
    bool together = false;
    for (size_t i = 0; i < count; i++) together |= model[i].together;
    if (leads && together) return write_together(w, status, model, count);
    if (together) {
        const weft_status read = read_along(w, model, count);
        return status == WEFT_OK ? read : status;
    }
    return leads && status == WEFT_OK ? write_own_model(w, model, count) : status;
}

/* ---- the descriptions ---- */

/* Makes the list of all files from the texts of all processes, of which each has `most` bytes. */
static weft_status read_descriptions(writing *w, const char *texts, size_t most,
                                     weft__manifest_file **files) {
    *files = weft__arena_alloc(&w->arena, w->files * sizeof **files);
    if (!*files) return weft__fail_oom(w->ctx, w->files * sizeof **files, "a manifest");
    (*files)[0] = w->model;
    for (size_t k = 1; k < w->files; k++)
        WEFT_TRY(weft__manifest_file_parse(&w->arena, texts + (k - 1) * most, (size_t)w->bytes[k - 1], k,
                                           w->files, &(*files)[k]));
    return WEFT_OK;
}

/* Gives all processes the texts of all. Takes the status of writing. The caller frees *texts with weft__free.
 */
static weft_status gather_texts(const writing *w, weft_status status, const char *own, size_t own_bytes,
                                char **texts, size_t *most) {
    const size_t size = w->files - 1, rank = (size_t)weft_process_group_rank(w->group);
    w->bytes[rank] = own_bytes;
    *most = 1;
    WEFT_TRY(weft__process_group_agree(w->group, status, NULL));
    WEFT_TRY(weft_process_group_all_gather(w->group, w->bytes, sizeof *w->bytes));
    for (size_t k = 0; k < size; k++)
        if (w->bytes[k] > *most) *most = (size_t)w->bytes[k];
    *texts = weft__array(w->ctx, size, *most);
    status = *texts ? WEFT_OK : weft__fail_oom(w->ctx, size * *most, "the descriptions of all files");
    WEFT_TRY(weft__process_group_agree(w->group, status, NULL));
    if (*texts && own) memcpy(*texts + rank * *most, own, own_bytes);
    return weft_process_group_all_gather(w->group, *texts, *most);
}

/* Rank 0: makes the checkpoint complete and visible. */
static weft_status publish(writing *w, const char *run, const weft_checkpoint_state *state, const char *texts,
                           size_t most) {
    weft__manifest_file *files;
    WEFT_TRY(read_descriptions(w, texts, most, &files));
    /* each process has verified its own file, so only the data of the model are left */
    WEFT_TRY(weft__checkpoint_complete(w->ctx, w->folder, run, state, files, w->files, 1));
    weft__folder *complete = w->folder;
    w->folder = NULL;
    return weft__folder_commit(complete);
}

/* Takes the status of writing. An error is the same in all processes. */
static weft_status unite(writing *w, weft_status status, const char *run,
                         const weft_checkpoint_state *state) {
    char *own = NULL, *texts = NULL;
    size_t own_bytes = 0, most = 0;
    if (status == WEFT_OK) status = weft__manifest_file_render(w->ctx, &w->part, &own, &own_bytes);
    status = gather_texts(w, status, own, own_bytes, &texts, &most);
    weft__free(w->ctx, own);
    if (status == WEFT_OK) {
        if (weft_process_group_rank(w->group) == 0) status = publish(w, run, state, texts, most);
        status = weft__process_group_agree(w->group, status, NULL);
    }
    weft__free(w->ctx, texts);
    return status;
}

weft_status weft__checkpoint_write_group(weft_context *ctx, const weft__io *io, weft_process_group *group,
                                         weft_status status, const char *run,
                                         const weft_checkpoint_state *state, const weft_entry *model,
                                         size_t model_count, const weft_entry *optimizer,
                                         size_t optimizer_count) {
    place where = {.parent = ""};
    writing w = {.ctx = ctx, .io = io, .group = group, .files = (size_t)weft_process_group_size(group) + 1};
    weft__process_group_purpose(group, group->step, "a checkpoint");
    weft__arena_init(&w.arena, ctx);
    w.bytes = weft__arena_alloc(&w.arena, w.files * sizeof *w.bytes);
    if (!w.bytes && status == WEFT_OK) status = weft__fail_oom(ctx, w.files * sizeof *w.bytes, "a manifest");
    status = open_folder(&w, status, run, state, &where);
    if (status == WEFT_OK) {
        if (!w.folder) status = enter(&w, &where);
        if (status == WEFT_OK) status = write_part(&w, optimizer, optimizer_count);
        status = write_model(&w, status, model, model_count);
        status = unite(&w, status, run, state);
    }
    weft__folder_abandon(w.folder);
    weft__arena_free(&w.arena);
    return status == WEFT_OK ? WEFT_OK : weft__fail(ctx, status, "%s", weft_last_error(NULL));
}

static weft_status check_arguments(weft_context *ctx, bool leads, const char *run,
                                   const weft_checkpoint_state *state, const weft_entry *model,
                                   size_t model_count, const weft_entry *optimizer, size_t optimizer_count) {
    if (leads) {
        WEFT_NEED(ctx, run);
        WEFT_NEED(ctx, state);
        WEFT_NEED_ARRAY(ctx, model, model_count);
    }
    WEFT_NEED_ARRAY(ctx, optimizer, optimizer_count);
    return WEFT_OK;
}

weft_status weft_checkpoint_write_group(weft_context *ctx, weft_process_group *group, const char *run,
                                        const weft_checkpoint_state *state, const weft_entry *model,
                                        size_t model_count, const weft_entry *optimizer,
                                        size_t optimizer_count) {
    if (!group) return weft_checkpoint_write(ctx, run, state, model, model_count, optimizer, optimizer_count);
    const bool leads = weft_process_group_rank(group) == 0;
    return weft__checkpoint_write_group(
        ctx, NULL, group,
        check_arguments(ctx, leads, run, state, model, model_count, optimizer, optimizer_count), run, state,
        model, model_count, optimizer, optimizer_count);
}
