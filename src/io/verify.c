/* Verifies every byte of a safetensors file against a description of the file. The checks are: size of the
 * file, checksum of the header, header against description, checksum of each array. Together they cover
 * the whole file.
 *
 * All checks of files use this code: a new file is published after it passed, and opening a checkpoint
 * runs it.
 *
 * Must not know: where the description comes from. Read next: checkpoint_read.c. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "io/manifest.h"

typedef struct verifying {
    weft_context *ctx;
    const char *path;          /* for messages */
    char *buffer;              /* [WEFT__SUM_PIECE] */
    weft__verify_share *share; /* NULL: this process verifies all arrays */
} verifying;

bool weft__verify_takes(weft__verify_share *share, uint64_t bytes) {
    const uint64_t middle = share->at + bytes / 2, part = share->total / share->size + 1;
    share->at += bytes;
    return middle / part == share->rank;
}

static weft_status check_size(verifying *v, const weft__manifest_file *m, uint64_t bytes) {
    if (bytes == m->bytes) return WEFT_OK;
    const char *first = NULL; /* the first array that is cut off */
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
    return weft__fail(v->ctx, WEFT_ERR_FORMAT,
                      "%s: size: %" PRIu64 " bytes, %" PRIu64
                      " were written%s%.200s%s: damaged, use an earlier checkpoint",
                      v->path, bytes, m->bytes, first ? ", the first array cut off is '" : "",
                      first ? first : "", first ? "'" : "");
}

static weft_status check_header(verifying *v, int fd, const weft__manifest_file *m, uint32_t *crc) {
    weft__sum sum;
    char text[WEFT__SUM_TEXT];
    weft__sum_init(&sum);
    for (uint64_t at = 0; at < m->header_bytes;) {
        size_t wanted =
            m->header_bytes - at < WEFT__SUM_PIECE ? (size_t)(m->header_bytes - at) : WEFT__SUM_PIECE;
        size_t held = 0;
        while (held < wanted) {
            ssize_t n = pread(fd, v->buffer + held, wanted - held, (off_t)(at + held));
            if (n < 0 && errno == EINTR) continue;
            if (n < 0) return weft__fail_io(v->ctx, "read", v->path, errno);
            if (n == 0)
                return weft__fail(v->ctx, WEFT_ERR_FORMAT, "%s: size: the file shrank while it was read",
                                  v->path);
            held += (size_t)n;
        }
        weft__sum_piece(&sum, v->buffer, wanted);
        at += wanted;
    }
    weft__sum_text(&sum, text);
    *crc = sum.crc;
    if (strcmp(text, m->header_sum) == 0) return WEFT_OK;
    return weft__fail(v->ctx, WEFT_ERR_FORMAT,
                      "%s: header: checksum %s, %.32s was written: damaged, use an earlier checkpoint",
                      v->path, text, m->header_sum);
}

/* Checks that the header of the file says the same as the manifest. */
static weft_status check_entries(verifying *v, const weft_safetensors *f, const weft__manifest_file *m) {
    if (weft__safetensors_header_bytes(f) != m->header_bytes || weft_safetensors_count(f) != m->count)
        return weft__fail(v->ctx, WEFT_ERR_FORMAT, "%s: tensors: %zu in the file, %zu in state.json", v->path,
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
            return weft__fail(v->ctx, WEFT_ERR_FORMAT, "%s: tensor '%.200s': %s: differs from state.json",
                              v->path, e->name, field);
    }
    return WEFT_OK;
}

static weft_status check_data(verifying *v, weft_safetensors *f, const weft__manifest_file *m, uint32_t crc) {
    char text[WEFT__SUM_TEXT];
    for (size_t place = 0; place < m->count; place++) {
        size_t i = weft__safetensors_nth(f, place);
        weft_entry_info info;
        weft__sum sum;
        if (!weft_safetensors_entry(f, i, &info)) return WEFT_ERR_INTERNAL;
        if (v->share && !weft__verify_takes(v->share, info.bytes)) continue;
        weft__sum_init(&sum);
        for (size_t at = 0; at < info.bytes;) {
            size_t n = info.bytes - at < WEFT__SUM_PIECE ? info.bytes - at : WEFT__SUM_PIECE;
            WEFT_TRY(weft_safetensors_read(f, i, at, v->buffer, n));
            weft__sum_piece(&sum, v->buffer, n);
            at += n;
        }
        weft__sum_text(&sum, text);
        if (strcmp(text, m->entries[i].sum) != 0)
            return weft__fail(
                v->ctx, WEFT_ERR_FORMAT,
                "%s: tensor '%.200s': checksum %s, %.32s was written: damaged, use an earlier checkpoint",
                v->path, info.name, text, m->entries[i].sum);
        crc = weft__crc_join(crc, sum.crc, info.bytes);
    }
    if (v->share) return WEFT_OK; /* the sums of header and arrays cover the file */
    snprintf(text, sizeof text, "%08" PRIx32, crc);
    if (strcmp(text, m->crc) == 0) return WEFT_OK;
    return weft__fail(v->ctx, WEFT_ERR_FORMAT, "%s: crc32: %s, %.16s was written: damaged", v->path, text,
                      m->crc);
}

static weft_status verify(verifying *v, int fd, const weft__manifest_file *m, bool data,
                          weft_safetensors **out) {
    struct stat st;
    uint32_t crc = 0;
    weft_status status = WEFT_OK;
    if (!v->buffer) status = weft__fail_oom(v->ctx, WEFT__SUM_PIECE, "a buffer to verify a file through");
    if (status == WEFT_OK && fstat(fd, &st) != 0) status = weft__fail_io(v->ctx, "access", v->path, errno);
    if (status == WEFT_OK) status = check_size(v, m, (uint64_t)st.st_size);
    if (status == WEFT_OK) status = check_header(v, fd, m, &crc);
    if (status != WEFT_OK) {
        (void)close(fd);
        return status;
    }
    WEFT_TRY(weft__safetensors_open_fd(v->ctx, fd, v->path, out));
    status = check_entries(v, *out, m);
    if (status == WEFT_OK && data) status = check_data(v, *out, m, crc);
    if (status == WEFT_OK) return status;
    weft_safetensors_close(*out);
    *out = NULL;
    return status;
}

static weft_status verify_arrays(weft_context *ctx, int fd, const char *path,
                                 const weft__manifest_file *expected, bool data, weft__verify_share *share,
                                 weft_safetensors **out) {
    verifying v = {.ctx = ctx, .path = path, .buffer = weft__alloc(ctx, WEFT__SUM_PIECE), .share = share};
    *out = NULL;
    const weft_status status = verify(&v, fd, expected, data, out);
    weft__free(ctx, v.buffer);
    return status;
}

weft_status weft__verify_file(weft_context *ctx, int fd, const char *path,
                              const weft__manifest_file *expected, bool data, weft_safetensors **out) {
    return verify_arrays(ctx, fd, path, expected, data, NULL, out);
}

weft_status weft__verify_part(weft_context *ctx, int fd, const char *path,
                              const weft__manifest_file *expected, weft__verify_share *share,
                              weft_safetensors **out) {
    return verify_arrays(ctx, fd, path, expected, true, share, out);
}

weft_status weft__fail_unreadable(weft_context *ctx, weft_status status, const char *path) {
    if (status == WEFT_OK || status == WEFT_ERR_OOM) return status;
    char why[WEFT_ERROR_SIZE];
    snprintf(why, sizeof why, "%s", weft_last_error(ctx));
    return weft__fail(ctx, WEFT_ERR_IO,
                      "cannot write %s: the written bytes do not read back (%.600s); the old file, if there "
                      "was one, is untouched: check the disk and the memory of this machine",
                      path, why);
}
