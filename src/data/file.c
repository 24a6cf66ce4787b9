/* Whole files: read by descriptor with the size fstat tells, packed ones unpacked; written under a temporary
 * name, synced and renamed, so that no reader ever sees half a file. Must not know any format.
 * Read next: gzip.c. */
#define _POSIX_C_SOURCE 200809L
#include "data/parse.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TRANSFER_MAX ((size_t)1 << 30) /* bytes asked of one read or write; Linux moves no more than 2^31 */

/* errno's text; the POSIX strerror_r, since strerror is not safe in threads. */
static const char *errno_text(char out[128], int code) {
    if (strerror_r(code, out, 128) != 0) snprintf(out, 128, "error %d", code);
    return out;
}

static weft_status fail_errno(weft_context *ctx, const char *path, const char *what) {
    char text[128];
    int code = errno;
    return weft__fail(ctx, WEFT_ERR_IO, "%s: %s: %s", path, what, errno_text(text, code));
}

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

/* Reads the first `size` bytes, which fstat has promised. */
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
                              errno_text(text, code));
        }
        if (got == 0) {
            return weft__fail(ctx, WEFT_ERR_IO,
                              "%s: byte %zu: the file ends, %zu bytes were expected; it was cut while being read",
                              path, done, size);
        }
        done += (size_t)got;
    }
    return WEFT_OK;
}

static weft_status refuse_growth(weft_context *ctx, int fd, const char *path, size_t size) {
    uint8_t extra;
    ssize_t got;
    do got = pread(fd, &extra, 1, (off_t)size);
    while (got < 0 && errno == EINTR);
    if (got < 0) return fail_errno(ctx, path, "cannot be read");
    if (got > 0) {
        return weft__fail(ctx, WEFT_ERR_IO, "%s: byte %zu: the file grew while being read; try again", path,
                          size);
    }
    return WEFT_OK;
}

/* The size of an open regular file. */
static weft_status file_size(weft_context *ctx, int fd, const char *path, size_t *size) {
    struct stat st;
    if (fstat(fd, &st) != 0) return fail_errno(ctx, path, "its size cannot be told");
    if (S_ISDIR(st.st_mode)) return weft__fail(ctx, WEFT_ERR_IO, "%s: is a directory, expected a file", path);
    if (!S_ISREG(st.st_mode)) {
        return weft__fail(ctx, WEFT_ERR_IO,
                          "%s: is not a regular file (a pipe or a device); copy it into a file first", path);
    }
    if (st.st_size < 0 || (uintmax_t)st.st_size >= PTRDIFF_MAX) {
        return weft__fail(ctx, WEFT_ERR_IO, "%s: %jd bytes are more than memory can hold", path,
                          (intmax_t)st.st_size);
    }
    *size = (size_t)st.st_size;
    return WEFT_OK;
}

/* Reads what lies in the file, packed or not. The limit is for plain files: a packed one has its own. */
static weft_status read_raw(weft_context *ctx, int fd, const char *path, size_t max_bytes, weft_bytes *out) {
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

weft_status weft__read_file(weft_context *ctx, const char *path, weft__declared_fn declared,
                            size_t max_bytes, weft_bytes *out) {
    *out = (weft_bytes){0};
    if (path == NULL) return weft__fail(ctx, WEFT_ERR_ARGUMENT, "reading a file: its path is NULL");
    int fd;
    do fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); /* a pipe must not hold us up */
    while (fd < 0 && errno == EINTR);
    if (fd < 0) return fail_errno(ctx, path, "cannot be opened");
    weft_bytes raw = {0};
    weft_status status = read_raw(ctx, fd, path, max_bytes, &raw);
    close(fd); /* only read from: nothing can be lost here */
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
    return weft__read_file(ctx, path, NULL, max_bytes, out);
}

/* ---- writing ---- */

/* A descriptor of a new file beside `path`, its name put into temporary[size]. */
static int create_beside(const char *path, char *temporary, size_t size) {
    const char *slash = strrchr(path, '/');
    int directory = slash == NULL ? 0 : (int)(slash + 1 - path);
    for (unsigned attempt = 0; attempt < 100; attempt++) {
        struct timespec now = {0};
        clock_gettime(CLOCK_MONOTONIC, &now);
        uint64_t salt = weft__mix64(((uint64_t)now.tv_sec << 32) ^ (uint64_t)now.tv_nsec ^ ((uint64_t)attempt << 60));
        snprintf(temporary, size, "%.*s.weft.%ld.%016" PRIx64 ".tmp", directory, path, (long)getpid(), salt);
        int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (fd >= 0 || (errno != EEXIST && errno != EINTR)) return fd;
    }
    return -1;
}

static weft_status write_parts(weft_context *ctx, int fd, const char *path, const weft__part *parts,
                               size_t count) {
    for (size_t i = 0; i < count; i++) {
        const uint8_t *data = parts[i].data;
        for (size_t done = 0; done < parts[i].size;) {
            size_t left = parts[i].size - done;
            ssize_t put = write(fd, data + done, left < TRANSFER_MAX ? left : TRANSFER_MAX);
            if (put < 0 && errno == EINTR) continue;
            if (put < 0) return fail_errno(ctx, path, "cannot be written");
            done += (size_t)put;
        }
    }
    if (fsync(fd) != 0) return fail_errno(ctx, path, "cannot be synced to disk");
    return WEFT_OK;
}

/* Makes the renaming itself last: syncs the directory that holds path. `work` has room for the path. */
static weft_status sync_directory(weft_context *ctx, const char *path, char *work) {
    const char *slash = strrchr(path, '/');
    size_t length = slash == NULL ? 0 : (size_t)(slash + 1 - path);
    memcpy(work, path, length);
    memcpy(work + length, ".", 2);
    int fd = open(work, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return fail_errno(ctx, work, "cannot be opened");
    weft_status status = WEFT_OK;
    if (fsync(fd) != 0 && errno != EINVAL) status = fail_errno(ctx, work, "cannot be synced to disk");
    close(fd);
    return status;
}

weft_status weft__publish(weft_context *ctx, const char *path, const weft__part *parts, size_t count) {
    if (path == NULL || path[0] == 0) {
        return weft__fail(ctx, WEFT_ERR_ARGUMENT, "writing a file: its path is empty");
    }
    size_t size = strlen(path) + 64;
    char *temporary = weft__alloc(ctx, size);
    if (temporary == NULL) return weft__fail_oom(ctx, size, path);
    int fd = create_beside(path, temporary, size);
    if (fd < 0) {
        weft_status status = fail_errno(ctx, path, "cannot be created");
        weft__free(ctx, temporary);
        return status;
    }
    weft_status status = write_parts(ctx, fd, path, parts, count);
    if (close(fd) != 0 && status == WEFT_OK) status = fail_errno(ctx, path, "cannot be closed");
    if (status == WEFT_OK && rename(temporary, path) != 0) {
        status = fail_errno(ctx, path, "the finished file cannot be renamed to this");
    }
    if (status != WEFT_OK) unlink(temporary);
    if (status == WEFT_OK) status = sync_directory(ctx, path, temporary);
    weft__free(ctx, temporary);
    return status;
}
