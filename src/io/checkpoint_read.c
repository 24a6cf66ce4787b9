/* Opening a checkpoint: every byte is verified before anything is handed out. First the manifest (its own
 * checksum), then for each file its size, its header's checksum, the header against the manifest, and each
 * array's checksum: together they cover the file. Read next: run_lock.c. */
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

struct weft_checkpoint {
    weft_context *ctx;
    weft__manifest manifest;
    weft_safetensors *files[WEFT__MANIFEST_FILES];
};

/* What opening needs on the way. */
typedef struct opening {
    weft_context *ctx;
    weft_checkpoint *checkpoint;
    const char *dir; /* as given */
    int fd;
    char *path; /* of the file at hand, for messages */
    size_t path_size;
    char *buffer; /* [WEFT__SUM_PIECE] */
} opening;

static const char *name_file(opening *o, const char *name) {
    snprintf(o->path, o->path_size, "%s/%s", o->dir, name);
    return o->path;
}

static weft_status open_regular(opening *o, const char *name, int *fd, uint64_t *bytes) {
    struct stat st;
    *fd = openat(o->fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (*fd < 0) return weft__fail_io(o->ctx, "open", name_file(o, name), errno);
    if (fstat(*fd, &st) == 0 && S_ISREG(st.st_mode)) {
        *bytes = (uint64_t)st.st_size;
        return WEFT_OK;
    }
    (void)close(*fd);
    return weft__fail(o->ctx, WEFT_ERR_IO, "cannot read %s: not a regular file", name_file(o, name));
}

/* ---- the manifest ---- */

static weft_status read_all(opening *o, int fd, char *out, size_t bytes) {
    for (size_t at = 0; at < bytes;) {
        ssize_t n = pread(fd, out + at, bytes - at, (off_t)at);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return weft__fail_io(o->ctx, "read", o->path, errno);
        if (n == 0)
            return weft__fail(o->ctx, WEFT_ERR_IO, "%s ends at byte %zu, %zu more were wanted", o->path, at,
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

static weft_status check_size(opening *o, const weft__manifest_file *m, uint64_t bytes) {
    if (bytes == m->bytes) return WEFT_OK;
    const char *first = NULL; /* the first array that is not whole */
    uint64_t lowest = UINT64_MAX;
    for (size_t i = 0; i < m->count; i++) {
        const weft__manifest_entry *e = &m->entries[i];
        int64_t size;
        if (!weft__numel(e->rank, e->shape, &size) ||
            !weft__mul(size, (int64_t)weft_dtype_size(e->dtype), &size))
            continue;
        if (size > 0 && e->offset < lowest && (e->offset >= bytes || bytes - e->offset < (uint64_t)size)) {
            lowest = e->offset;
            first = e->name;
        }
    }
    return weft__fail(o->ctx, WEFT_ERR_FORMAT,
                      "%s: size: %" PRIu64 " bytes, %" PRIu64
                      " were written%s%.200s%s: damaged, use an earlier checkpoint",
                      o->path, bytes, m->bytes, first ? ", the first array cut off is '" : "",
                      first ? first : "", first ? "'" : "");
}

static weft_status check_header(opening *o, int fd, const weft__manifest_file *m, uint32_t *crc) {
    weft__sum sum;
    char text[WEFT__SUM_TEXT];
    weft__sum_init(&sum);
    for (uint64_t at = 0; at < m->header_bytes;) {
        size_t wanted =
            m->header_bytes - at < WEFT__SUM_PIECE ? (size_t)(m->header_bytes - at) : WEFT__SUM_PIECE;
        size_t held = 0;
        while (held < wanted) {
            ssize_t n = pread(fd, o->buffer + held, wanted - held, (off_t)(at + held));
            if (n < 0 && errno == EINTR) continue;
            if (n <= 0) return weft__fail_io(o->ctx, "read", o->path, n < 0 ? errno : EIO);
            held += (size_t)n;
        }
        weft__sum_piece(&sum, o->buffer, wanted);
        at += wanted;
    }
    weft__sum_text(&sum, text);
    *crc = sum.crc;
    if (strcmp(text, m->header_sum) == 0) return WEFT_OK;
    return weft__fail(o->ctx, WEFT_ERR_FORMAT,
                      "%s: header: checksum %s, %.32s was written: damaged, use an earlier checkpoint",
                      o->path, text, m->header_sum);
}

/* The file's own header must say what the manifest says. */
static weft_status check_entries(opening *o, const weft_safetensors *f, const weft__manifest_file *m) {
    if (weft__safetensors_header_bytes(f) != m->header_bytes || weft_safetensors_count(f) != m->count)
        return weft__fail(o->ctx, WEFT_ERR_FORMAT, "%s: tensors: %zu in the file, %zu in state.json", o->path,
                          weft_safetensors_count(f), m->count);
    for (size_t i = 0; i < m->count; i++) {
        const weft__manifest_entry *e = &m->entries[i];
        weft_entry_info info;
        const char *field = NULL;
        if (!weft_safetensors_entry(f, i, &info)) return WEFT_ERR_INTERNAL;
        if (strcmp(info.name, e->name) != 0) {
            field = "name";
        } else if (info.dtype != e->dtype) {
            field = "dtype";
        } else if (info.rank != e->rank ||
                   (e->rank && memcmp(info.shape, e->shape, (size_t)e->rank * sizeof(int64_t)))) {
            field = "shape";
        } else if (weft__safetensors_offset(f, i) != e->offset) {
            field = "offset";
        }
        if (field)
            return weft__fail(o->ctx, WEFT_ERR_FORMAT, "%s: tensor '%.200s': %s: differs from state.json",
                              o->path, e->name, field);
    }
    return WEFT_OK;
}

static weft_status check_data(opening *o, weft_safetensors *f, const weft__manifest_file *m, uint32_t crc) {
    char text[WEFT__SUM_TEXT];
    for (size_t place = 0; place < m->count; place++) {
        size_t i = weft__safetensors_nth(f, place);
        weft_entry_info info;
        weft__sum sum;
        if (!weft_safetensors_entry(f, i, &info)) return WEFT_ERR_INTERNAL;
        weft__sum_init(&sum);
        for (size_t at = 0; at < info.bytes;) {
            size_t n = info.bytes - at < WEFT__SUM_PIECE ? info.bytes - at : WEFT__SUM_PIECE;
            WEFT_TRY(weft_safetensors_read(f, i, at, o->buffer, n));
            weft__sum_piece(&sum, o->buffer, n);
            at += n;
        }
        weft__sum_text(&sum, text);
        if (strcmp(text, m->entries[i].sum) != 0)
            return weft__fail(
                o->ctx, WEFT_ERR_FORMAT,
                "%s: tensor '%.200s': checksum %s, %.32s was written: damaged, use an earlier checkpoint",
                o->path, info.name, text, m->entries[i].sum);
        crc = weft__crc_join(crc, sum.crc, info.bytes);
    }
    snprintf(text, sizeof text, "%08" PRIx32, crc);
    if (strcmp(text, m->crc) == 0) return WEFT_OK;
    return weft__fail(o->ctx, WEFT_ERR_FORMAT, "%s: crc32: %s, %.16s was written: damaged", o->path, text,
                      m->crc);
}

static weft_status open_file(opening *o, size_t k) {
    const weft__manifest_file *m = &o->checkpoint->manifest.files[k];
    weft_safetensors **f = &o->checkpoint->files[k];
    int fd;
    uint64_t bytes = 0;
    uint32_t crc = 0;
    WEFT_TRY(open_regular(o, m->name, &fd, &bytes));
    name_file(o, m->name);
    weft_status status = check_size(o, m, bytes);
    if (status == WEFT_OK) status = check_header(o, fd, m, &crc);
    if (status != WEFT_OK) {
        (void)close(fd);
        return status;
    }
    WEFT_TRY(weft__safetensors_open_fd(o->ctx, fd, o->path, f));
    WEFT_TRY(check_entries(o, *f, m));
    return check_data(o, *f, m, crc);
}

/* ---- opening ---- */

static weft_status open_all(opening *o) {
    o->fd = open(o->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (o->fd < 0) return weft__fail_io(o->ctx, "open the checkpoint", o->dir, errno);
    WEFT_TRY(open_manifest(o));
    for (size_t k = 0; k < WEFT__MANIFEST_FILES; k++) WEFT_TRY(open_file(o, k));
    return WEFT_OK;
}

weft_status weft_checkpoint_open(weft_context *ctx, const char *dir, weft_checkpoint **out) {
    if (!out) return weft__fail(ctx, WEFT_ERR_ARGUMENT, "weft_checkpoint_open: out is NULL");
    *out = NULL;
    if (!dir) return weft__fail(ctx, WEFT_ERR_ARGUMENT, "weft_checkpoint_open: dir is NULL");
    opening o = {.ctx = ctx, .dir = dir, .fd = -1, .path_size = strlen(dir) + 64};
    o.checkpoint = weft__zalloc(ctx, sizeof *o.checkpoint);
    if (o.checkpoint) o.checkpoint->ctx = o.checkpoint->manifest.ctx = ctx;
    o.path = weft__alloc(ctx, o.path_size);
    o.buffer = weft__alloc(ctx, WEFT__SUM_PIECE);
    weft_status status;
    if (!o.checkpoint || !o.path || !o.buffer) {
        status = weft__fail_oom(ctx, WEFT__SUM_PIECE, "opening a checkpoint");
    } else {
        status = open_all(&o);
    }
    if (o.fd >= 0) (void)close(o.fd);
    weft__free(ctx, o.path);
    weft__free(ctx, o.buffer);
    if (status == WEFT_OK) {
        *out = o.checkpoint;
    } else {
        weft_checkpoint_close(o.checkpoint);
    }
    return status;
}

void weft_checkpoint_close(weft_checkpoint *c) {
    if (!c) return;
    for (size_t k = 0; k < WEFT__MANIFEST_FILES; k++) weft_safetensors_close(c->files[k]);
    weft__manifest_free(&c->manifest);
    weft__free(c->ctx, c);
}

const weft_checkpoint_state *weft_checkpoint_state_of(const weft_checkpoint *c) { return &c->manifest.state; }
weft_safetensors *weft_checkpoint_model(weft_checkpoint *c) { return c->files[0]; }
weft_safetensors *weft_checkpoint_optimizer(weft_checkpoint *c) { return c->files[1]; }

weft_status weft_checkpoint_verify(weft_context *ctx, const char *dir) {
    weft_checkpoint *c;
    WEFT_TRY(weft_checkpoint_open(ctx, dir, &c));
    weft_checkpoint_close(c);
    return WEFT_OK;
}

/* ---- the newest that verifies ---- */

/* Damage may spare an earlier checkpoint; want of memory or a newer format is the machine's or Weft's. */
static bool is_damage(weft_status status) { return status == WEFT_ERR_FORMAT || status == WEFT_ERR_IO; }

static weft_status open_first_good(weft_context *ctx, const char *run, const uint64_t *steps, size_t count,
                                   bool strict, weft_checkpoint **out) {
    weft_error first = {WEFT_OK, ""};
    for (size_t i = 0; i < count; i++) {
        char name[WEFT__STEP_NAME];
        snprintf(name, sizeof name, "step-%" PRIu64, steps[i]);
        char *dir = weft__checkpoint_path(ctx, run, name);
        if (!dir) return weft__fail_oom(ctx, strlen(run) + sizeof name, "a path");
        weft_status status = weft_checkpoint_open(ctx, dir, out);
        weft__free(ctx, dir);
        if (status == WEFT_OK) {
            if (i > 0)
                weft__log(ctx, WEFT_LOG_WARNING, "going on from the earlier checkpoint %s of %s", name, run);
            return WEFT_OK;
        }
        if (strict || !is_damage(status)) return status;
        if (first.status == WEFT_OK) {
            first.status = status;
            snprintf(first.text, sizeof first.text, "%s", weft_last_error(ctx));
        }
        weft__log(ctx, WEFT_LOG_WARNING, "checkpoint %s of %s cannot be used: %s", name, run,
                  weft_last_error(ctx));
    }
    return weft__fail(ctx, first.status, "%.900s (and no earlier checkpoint is whole)", first.text);
}

weft_status weft_checkpoint_open_newest(weft_context *ctx, const char *run, bool strict,
                                        weft_checkpoint **out) {
    size_t count = 0, held = 0;
    if (!out) return weft__fail(ctx, WEFT_ERR_ARGUMENT, "weft_checkpoint_open_newest: out is NULL");
    *out = NULL;
    WEFT_TRY(weft_checkpoint_list(ctx, run, NULL, 0, &count));
    if (count == 0)
        return weft__fail(ctx, WEFT_ERR_STATE, "%s/checkpoints holds no checkpoint: nothing was saved yet",
                          run);
    uint64_t *steps = weft__array(ctx, count, sizeof *steps);
    if (!steps) return weft__fail_oom(ctx, count * sizeof *steps, "a list of checkpoints");
    weft_status status = weft_checkpoint_list(ctx, run, steps, count, &held);
    if (status == WEFT_OK)
        status = open_first_good(ctx, run, steps, held < count ? held : count, strict, out);
    weft__free(ctx, steps);
    return status;
}
