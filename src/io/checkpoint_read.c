/* Opens checkpoints. Every byte is verified before the caller gets the checkpoint. The manifest is
 * verified first, by its own checksum. Each file is then verified by what the manifest says about it
 * (verify.c). A checkpoint that was just written is opened in the same way before it is published. Must
 * not know: what the arrays mean. Read next: run_lock.c. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "io/checkpoint.h"
#include "process/group.h"

struct weft_checkpoint {
    weft_context *ctx;
    weft__manifest manifest;
    weft_safetensors **files; /* [manifest.count] */
    weft_safetensors *joined; /* files 1, 2, ... of a divided optimizer; NULL: file 1 has it all */
};

/* What the steps of opening share. */
typedef struct opening {
    weft_context *ctx;
    weft_checkpoint *checkpoint;
    const char *dir; /* as the caller gave it */
    int fd;
    size_t checked;            /* only the data of so many files are verified */
    weft__verify_share *share; /* NULL: this process verifies all arrays */
    char *path;                /* path of the current file, for messages */
    size_t path_size;
} opening;

static const char *name_file(opening *o, const char *name) {
    snprintf(o->path, o->path_size, "%s/%s", o->dir, name);
    return o->path;
}

static weft_status open_regular(opening *o, const char *name, int *fd, uint64_t *bytes) {
    struct stat st;
    *fd =
        weft__io_system.open(NULL, o->fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
    if (*fd < 0 && errno != ENOENT && errno != ELOOP)
        return weft__fail_io(o->ctx, "open", name_file(o, name), errno);
    if (*fd < 0)
        return weft__fail(o->ctx, WEFT_ERR_FORMAT, "%s: %s", name_file(o, name),
                          errno == ENOENT ? "missing: the checkpoint is incomplete"
                                          : "this is a link, expected a file");
    weft_status status = WEFT_OK;
    if (fstat(*fd, &st) != 0) {
        status = weft__fail_io(o->ctx, "access", name_file(o, name), errno);
    } else if (!S_ISREG(st.st_mode)) {
        status = weft__fail(o->ctx, WEFT_ERR_FORMAT, "%s: not a regular file", name_file(o, name));
    }
    if (status != WEFT_OK) (void)close(*fd);
    *bytes = status == WEFT_OK ? (uint64_t)st.st_size : 0;
    return status;
}

/* ---- the manifest ---- */

static weft_status read_all(opening *o, int fd, char *out, size_t bytes) {
    for (size_t at = 0; at < bytes;) {
        ssize_t n = pread(fd, out + at, bytes - at, (off_t)at);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return weft__fail_io(o->ctx, "read", o->path, errno);
        if (n == 0)
            return weft__fail(o->ctx, WEFT_ERR_FORMAT,
                              "%s: the file ends at byte %zu, but %zu more bytes were expected", o->path, at,
                              bytes - at);
        at += (size_t)n;
    }
    return WEFT_OK;
}

static weft_status open_manifest(opening *o) {
    int fd;
    uint64_t bytes = 0;
    char *text = NULL;
    WEFT_TRY(open_regular(o, "state.json", &fd, &bytes));
    weft_status status = WEFT_OK;
    name_file(o, "state.json");
    if (bytes > WEFT__MANIFEST_MAX)
        status =
            weft__fail(o->ctx, WEFT_ERR_FORMAT, "%s: size: %" PRIu64 " bytes are too many", o->path, bytes);
    if (status == WEFT_OK && !(text = weft__alloc(o->ctx, (size_t)bytes)))
        status = weft__fail_oom(o->ctx, (size_t)bytes, "a manifest");
    if (status == WEFT_OK) status = read_all(o, fd, text, (size_t)bytes);
    (void)close(fd);
    if (status == WEFT_OK)
        status = weft__manifest_parse(o->ctx, o->path, text, (size_t)bytes, &o->checkpoint->manifest);
    weft__free(o->ctx, text);
    if (status != WEFT_OK) return status;
    const char *slash = strrchr(o->dir, '/');
    uint64_t step, inside = o->checkpoint->manifest.state.step;
    if (weft__checkpoint_step(slash ? slash + 1 : o->dir, &step) && step != inside)
        return weft__fail(o->ctx, WEFT_ERR_FORMAT,
                          "%s: step: %" PRIu64 ", but the folder is of step %" PRIu64, o->path, inside, step);
    return WEFT_OK;
}

/* ---- the arrays ---- */

static weft_status open_file(opening *o, size_t k) {
    const weft__manifest_file *m = &o->checkpoint->manifest.files[k];
    int fd;
    uint64_t bytes = 0;
    WEFT_TRY(open_regular(o, m->name, &fd, &bytes));
    weft_safetensors **file = &o->checkpoint->files[k];
    if (o->share) return weft__verify_part(o->ctx, fd, name_file(o, m->name), m, o->share, file);
    return weft__verify_file(o->ctx, fd, name_file(o, m->name), m, k < o->checked, file);
}

static weft_status open_files(opening *o) {
    weft_checkpoint *c = o->checkpoint;
    const size_t count = c->manifest.count;
    c->files = weft__array(o->ctx, count, sizeof *c->files);
    if (!c->files) return weft__fail_oom(o->ctx, count * sizeof *c->files, "the files of a checkpoint");
    for (size_t k = 0; o->share && k < count; k++) o->share->total += c->manifest.files[k].bytes;
    for (size_t k = 0; k < count; k++) WEFT_TRY(open_file(o, k));
    if (count == WEFT__FILES_WHOLE) return WEFT_OK;
    return weft__join_files(o->ctx, name_file(o, "state.json"), c->manifest.files + 1, c->files + 1,
                            count - 1, &c->joined);
}

/* ---- opening ---- */

static weft_status open_all(opening *o) {
    if (o->fd < 0)
        o->fd = weft__io_system.open(NULL, AT_FDCWD, o->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (o->fd < 0 && errno == ENOTDIR)
        return weft__fail(o->ctx, WEFT_ERR_FORMAT, "%s: this is not the folder of a checkpoint", o->dir);
    if (o->fd < 0) return weft__fail_io(o->ctx, "open the checkpoint", o->dir, errno);
    WEFT_TRY(open_manifest(o));
    return open_files(o);
}

static weft_status open_shared(weft_context *ctx, int fd, const char *dir, size_t checked,
                               weft__verify_share *share, weft_checkpoint **out) {
    *out = NULL;
    opening o = {.ctx = ctx,
                 .dir = dir,
                 .fd = fd,
                 .checked = checked,
                 .share = share,
                 .path_size = strlen(dir) + WEFT__FILE_NAME + 2};
    o.checkpoint = weft__zalloc(ctx, sizeof *o.checkpoint);
    if (o.checkpoint) o.checkpoint->ctx = o.checkpoint->manifest.ctx = ctx;
    o.path = weft__alloc(ctx, o.path_size);
    weft_status status;
    if (!o.checkpoint || !o.path) {
        status = weft__fail_oom(ctx, o.path_size, "opening a checkpoint");
    } else {
        status = open_all(&o);
    }
    if (o.fd >= 0) (void)close(o.fd);
    weft__free(ctx, o.path);
    if (status == WEFT_OK) {
        *out = o.checkpoint;
    } else {
        weft_checkpoint_close(o.checkpoint);
    }
    return status;
}

weft_status weft__checkpoint_open_at(weft_context *ctx, int fd, const char *dir, size_t checked,
                                     weft_checkpoint **out) {
    return open_shared(ctx, fd, dir, checked, NULL, out);
}

weft_status weft_checkpoint_open(weft_context *ctx, const char *dir, weft_checkpoint **out) {
    WEFT_NEED(ctx, out);
    *out = NULL;
    WEFT_NEED(ctx, dir);
    return weft__checkpoint_open_at(ctx, -1, dir, SIZE_MAX, out);
}

weft_status weft__checkpoint_check_file(weft_context *ctx, int fd, const char *dir,
                                        const weft__manifest_file *described) {
    weft_safetensors *file = NULL;
    int own = -1;
    uint64_t bytes = 0;
    opening o = {.ctx = ctx, .dir = dir, .fd = fd, .path_size = strlen(dir) + WEFT__FILE_NAME + 2};
    o.path = weft__alloc(ctx, o.path_size);
    weft_status status = o.path ? open_regular(&o, described->name, &own, &bytes)
                                : weft__fail_oom(ctx, o.path_size, "opening a file of a checkpoint");
    if (status == WEFT_OK)
        status = weft__verify_file(ctx, own, name_file(&o, described->name), described, true, &file);
    weft_safetensors_close(file);
    (void)close(fd);
    weft__free(ctx, o.path);
    return status;
}

void weft_checkpoint_close(weft_checkpoint *c) {
    if (!c) return;
    weft_safetensors_close(c->joined);
    for (size_t k = 0; c->files && k < c->manifest.count; k++) weft_safetensors_close(c->files[k]);
    weft__free(c->ctx, c->files);
    weft__manifest_free(&c->manifest);
    weft__free(c->ctx, c);
}

const weft_checkpoint_state *weft_checkpoint_state_of(const weft_checkpoint *c) {
    return c ? &c->manifest.state : NULL;
}
weft_safetensors *weft_checkpoint_model(weft_checkpoint *c) { return c ? c->files[0] : NULL; }
weft_safetensors *weft_checkpoint_optimizer(weft_checkpoint *c) {
    return !c ? NULL : c->joined ? c->joined : c->files[1];
}

weft_status weft_checkpoint_verify(weft_context *ctx, const char *dir) {
    WEFT_NEED(ctx, dir);
    weft_checkpoint *c;
    WEFT_TRY(weft_checkpoint_open(ctx, dir, &c));
    weft_checkpoint_close(c);
    return WEFT_OK;
}

/* ---- the newest that verifies ---- */

/* Opens a checkpoint in all processes of a group, each of which verifies a part of its arrays. If one of them
 * fails, all do. */
static weft_status open_together(weft_context *ctx, weft_process_group *group, const char *dir,
                                 weft_checkpoint **out) {
    weft__verify_share share = {.rank = (uint64_t)weft_process_group_rank(group),
                                .size = (uint64_t)weft_process_group_size(group)};
    weft_status status = open_shared(ctx, -1, dir, SIZE_MAX, group ? &share : NULL, out);
    if (!group) return status;
    status = weft__process_group_agree(group, status, NULL);
    if (status == WEFT_OK) return WEFT_OK;
    weft_checkpoint_close(*out);
    *out = NULL;
    return weft__fail(ctx, status, "%s", weft_last_error(NULL));
}

/* Tries the checkpoints from the newest to the oldest and opens the first one that is not damaged. With
 * `strict` the newest one must be good. If all are damaged, returns the error of the newest one. */
static weft_status open_first_good(weft_context *ctx, weft_process_group *group, const char *run,
                                   const uint64_t *steps, size_t count, bool strict, weft_checkpoint **out) {
    weft_error first = {WEFT_OK, ""};
    for (size_t i = 0; i < count; i++) {
        char name[WEFT__STEP_NAME];
        snprintf(name, sizeof name, "step-%" PRIu64, steps[i]);
        char *dir = weft__checkpoint_path(ctx, run, name);
        if (!dir)
            return weft__process_group_agree(group, weft__fail_oom(ctx, strlen(run) + sizeof name, "a path"),
                                             NULL);
        weft_status status = open_together(ctx, group, dir, out);
        weft__free(ctx, dir);
        if (status == WEFT_OK) {
            if (i > 0)
                weft__log(ctx, WEFT_LOG_WARNING, "continuing from the earlier checkpoint %s of %s", name,
                          run);
            return WEFT_OK;
        }
        /* An earlier checkpoint may be undamaged, so damage is skipped. These errors are no damage: too
         * little memory, too few descriptors, a disk that does not answer, a newer format. They must not
         * make a run continue from an older checkpoint. */
        if (strict || count == 1 || status != WEFT_ERR_FORMAT) return status;
        if (first.status == WEFT_OK) {
            first.status = status;
            snprintf(first.text, sizeof first.text, "%s", weft_last_error(ctx));
        }
        weft__log(ctx, WEFT_LOG_WARNING, "checkpoint %s of %s cannot be used: %s", name, run,
                  weft_last_error(ctx));
    }
    return weft__fail(ctx, first.status, "%.900s (and every earlier checkpoint is damaged, too)", first.text);
}

/* Lists the steps of the checkpoints. The caller frees *steps. */
static weft_status list_steps(weft_context *ctx, const char *run, uint64_t **steps, size_t *count) {
    size_t held = 0;
    *steps = NULL;
    WEFT_TRY(weft_checkpoint_list(ctx, run, NULL, 0, count));
    *steps = weft__array(ctx, *count + 1, sizeof **steps);
    if (!*steps) return weft__fail_oom(ctx, *count * sizeof **steps, "a list of checkpoints");
    WEFT_TRY(weft_checkpoint_list(ctx, run, *steps, *count, &held));
    if (held < *count) *count = held;
    return WEFT_OK;
}

/* All processes must see the same checkpoints. */
static weft_status compare_steps(weft_process_group *group, const uint64_t *steps, size_t count) {
    weft_hash hash;
    if (!group) return WEFT_OK;
    weft__hash_init(&hash);
    for (size_t i = 0; i < count; i++) weft__hash_u64(&hash, steps[i]);
    const weft_status status =
        weft__process_group_same(group, "other checkpoints", hash,
                                 "keep the folder of the run on a file system that all machines share");
    /* WEFT_ERR_STATE would mean that there is no checkpoint */
    return status == WEFT_ERR_STATE ? weft__fail(NULL, WEFT_ERR_FORMAT, "%s", weft_last_error(NULL)) : status;
}

weft_status weft__checkpoint_open_newest(weft_context *ctx, weft_process_group *group, const char *run,
                                         bool strict, weft_checkpoint **out) {
    size_t count = 0;
    uint64_t *steps;
    *out = NULL;
    weft__process_group_purpose(group, 0, "the verification of a checkpoint");
    weft_status status = weft__process_group_agree(group, list_steps(ctx, run, &steps, &count), NULL);
    if (status == WEFT_OK) status = compare_steps(group, steps, count);
    if (status == WEFT_OK && count == 0)
        status =
            weft__fail(ctx, WEFT_ERR_STATE, "%s/checkpoints holds no checkpoint: nothing was saved yet", run);
    if (status == WEFT_OK) status = open_first_good(ctx, group, run, steps, count, strict, out);
    weft__free(ctx, steps);
    return status;
}

weft_status weft_checkpoint_open_newest(weft_context *ctx, const char *run, bool strict,
                                        weft_checkpoint **out) {
    WEFT_NEED(ctx, out);
    *out = NULL;
    WEFT_NEED(ctx, run);
    return weft__checkpoint_open_newest(ctx, NULL, run, strict, out);
}
