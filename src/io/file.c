/* Reads whole files into memory and unpacks gzip files. Must not know: any format. Read next: gzip.c. */
#define _POSIX_C_SOURCE 200809L
#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/publish.h" /* the texts of errno */

#define TRANSFER_MAX ((size_t)1 << 30) /* bytes of one read; Linux moves at most 2^31 */

weft_status weft__bytes_new(weft_context *ctx, size_t size, const char *name, weft_bytes *out) {
    *out = (weft_bytes){0};
    if (size >= PTRDIFF_MAX) return weft__fail_oom(ctx, size, name);
    out->data = weft__alloc_aligned(ctx, size + 1);
    if (out->data == NULL) return weft__fail_oom(ctx, size, name);
    out->data[size] = 0;
    out->size = size;
    return WEFT_OK;
}

void weft_bytes_free(weft_context *ctx, weft_bytes *bytes) {
    if (bytes == NULL) return;
    if (bytes->data != NULL) weft__free_aligned(ctx, bytes->data);
    *bytes = (weft_bytes){0};
}

/* Reads the first `size` bytes. fstat promised that many, so fewer are an error. */
static weft_status read_exactly(weft_context *ctx, int fd, const char *path, uint8_t *data, size_t size) {
    size_t done = 0;
    while (done < size) {
        size_t wanted = size - done < TRANSFER_MAX ? size - done : TRANSFER_MAX;
        ssize_t got = pread(fd, data + done, wanted, (off_t)done);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            char text[128];
            int code = errno;
            return weft__fail(ctx, WEFT_ERR_IO, "%s: byte %zu: cannot be read: %s", path, done,
                              weft__errno_text(code, text, sizeof text));
        }
        if (got == 0) {
            return weft__fail(ctx, WEFT_ERR_IO,
                              "%s: byte %zu: the file ends, but %zu bytes were expected: another program "
                              "changed it while it was read",
                              path, done, size);
        }
        done += (size_t)got;
    }
    return WEFT_OK;
}

/* Fails if the file has more bytes than fstat said. */
static weft_status refuse_growth(weft_context *ctx, int fd, const char *path, size_t size) {
    uint8_t extra;
    ssize_t got;
    do got = pread(fd, &extra, 1, (off_t)size);
    while (got < 0 && errno == EINTR);
    if (got < 0) return weft__fail_io(ctx, "read", path, errno);
    if (got > 0) {
        return weft__fail(ctx, WEFT_ERR_IO, "%s: byte %zu: the file grew while it was read; try again", path,
                          size);
    }
    return WEFT_OK;
}

/* Returns the size of an open regular file. */
static weft_status file_size(weft_context *ctx, int fd, const char *path, size_t *size) {
    struct stat st;
    if (fstat(fd, &st) != 0) return weft__fail_io(ctx, "read the size of", path, errno);
    if (S_ISDIR(st.st_mode))
        return weft__fail(ctx, WEFT_ERR_IO, "%s: this is a folder, expected a file", path);
    if (!S_ISREG(st.st_mode)) {
        return weft__fail(
            ctx, WEFT_ERR_IO,
            "%s: this is a pipe or a device, expected a file; copy its contents into a file first", path);
    }
    if (st.st_size < 0 || (uintmax_t)st.st_size >= PTRDIFF_MAX) {
        return weft__fail(ctx, WEFT_ERR_IO, "%s: %jd bytes are more than memory can hold", path,
                          (intmax_t)st.st_size);
    }
    *size = (size_t)st.st_size;
    return WEFT_OK;
}

/* Reads the bytes of an open regular file without unpacking them. `max_bytes` limits plain files only: packed
 * files have their own limit. path: for messages. */
static weft_status read_open_file(weft_context *ctx, int fd, const char *path, size_t max_bytes,
                                  weft_bytes *out) {
    size_t size = 0;
    uint8_t head[2];
    WEFT_TRY(file_size(ctx, fd, path, &size));
    bool packed = false;
    if (size >= sizeof head) {
        WEFT_TRY(read_exactly(ctx, fd, path, head, sizeof head));
        packed = weft__is_gzip(head, sizeof head);
    }
    if (!packed && max_bytes != 0 && size > max_bytes) {
        return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: %zu bytes, expected at most %zu", path, size, max_bytes);
    }
    WEFT_TRY(weft__bytes_new(ctx, size, path, out));
    weft_status status = read_exactly(ctx, fd, path, out->data, size);
    if (status == WEFT_OK) status = refuse_growth(ctx, fd, path, size);
    if (status != WEFT_OK) weft_bytes_free(ctx, out);
    return status;
}

weft_status weft__read_file(weft_context *ctx, const char *path, weft__declared_fn declared, size_t max_bytes,
                            weft_bytes *out) {
    *out = (weft_bytes){0};
    int fd;
    /* O_NONBLOCK: a pipe must not block us */
    do fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    while (fd < 0 && errno == EINTR);
    if (fd < 0) return weft__fail_io(ctx, "open", path, errno);
    weft_bytes raw = {0};
    weft_status status = read_open_file(ctx, fd, path, max_bytes, &raw);
    close(fd); /* opened for reading, so close cannot lose data */
    if (status != WEFT_OK) return status;
    if (!weft__is_gzip(raw.data, raw.size)) {
        *out = raw;
        return WEFT_OK;
    }
    status = weft__gunzip(ctx, raw.data, raw.size, path, declared, max_bytes, out);
    weft_bytes_free(ctx, &raw);
    return status;
}

weft_status weft_read_file(weft_context *ctx, const char *path, size_t max_bytes, weft_bytes *out) {
    WEFT_NEED(ctx, out);
    *out = (weft_bytes){0};
    WEFT_NEED(ctx, path);
    return weft__read_file(ctx, path, NULL, max_bytes, out);
}
