/* Publishes one file: write it under a temporary name, flush it, rename it, flush its folder.
 *
 * After fsync fails, it is never tried again on the same descriptor, because the kernel may have dropped
 * the pages. The file is given up, and the caller has to write it again.
 *
 * Must not know: what the file holds. Read next: folder.c. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <weft/io.h>

#include "io/publish.h"

struct weft__writer {
    weft_context *ctx;
    const weft__io *io;
    int dir, fd;
    bool own_dir;      /* this writer closes dir and renames the file: false within a temporary folder */
    bool created;      /* `temp` exists and must be removed on failure */
    char *path, *name; /* for messages; name points into path if own_dir */
    char temp[WEFT__TEMP_SIZE];
    uint64_t expected, bytes;
    uint64_t limit;     /* RLIMIT_FSIZE; a write past it would raise SIGXFSZ */
    weft_status status; /* of the first failure */
};

static void writer_free(weft__writer *w) {
    if (w->fd >= 0) (void)w->io->close(w->io->user, w->fd);
    if (w->created) (void)w->io->unlink(w->io->user, w->dir, w->temp, 0);
    if (w->own_dir && w->dir >= 0) (void)w->io->close(w->io->user, w->dir);
    weft__free(w->ctx, w->path);
    weft__free(w->ctx, w);
}

/* Closes and removes the file at once. On a full disk this frees the space before the caller gives up. */
static weft_status give_up(weft__writer *w, weft_status status) {
    if (w->fd >= 0) (void)w->io->close(w->io->user, w->fd);
    w->fd = -1;
    if (w->created) (void)w->io->unlink(w->io->user, w->dir, w->temp, 0);
    w->created = false;
    w->status = status;
    return status;
}

static weft_status write_failed(weft__writer *w, size_t wanted, int error) {
    char text[128];
    const char *message = weft__errno_text(error, text, sizeof text);
    if (error == ENOSPC || error == EDQUOT || error == EFBIG) {
        uint64_t needed = w->bytes + wanted;
        if (needed < w->expected) needed = w->expected;
        uint64_t room = weft__free_bytes(w->fd);
        (void)give_up(w, WEFT_ERR_IO);
        if (error == EFBIG)
            return weft__fail(w->ctx, WEFT_ERR_IO,
                              "cannot write %s: %s: %" PRIu64 " bytes needed, files may have %" PRIu64
                              " here; the old file, if there was one, is untouched",
                              w->path, message, needed, w->limit);
        if (room == UINT64_MAX)
            return weft__fail(w->ctx, WEFT_ERR_IO, "cannot write %s: %s: %" PRIu64 " bytes needed", w->path,
                              message, needed);
        return weft__fail(w->ctx, WEFT_ERR_IO,
                          "cannot write %s: %s: %" PRIu64 " bytes needed, %" PRIu64 " were written, %" PRIu64
                          " are free; the old file, if there was one, is untouched",
                          w->path, message, needed, w->bytes, room);
    }
    (void)give_up(w, WEFT_ERR_IO);
    return weft__fail_io(w->ctx, "write", w->path, error);
}

static weft__writer *writer_new(weft_context *ctx, const weft__io *io, const char *path, uint64_t expected) {
    weft__writer *w = weft__zalloc(ctx, sizeof *w);
    if (!w) return NULL;
    w->ctx = ctx;
    w->io = io ? io : &weft__io_system;
    w->dir = w->fd = -1;
    w->expected = expected;
    w->path = weft__strdup(ctx, path);
    if (!w->path) {
        weft__free(ctx, w);
        return NULL;
    }
    struct rlimit limit;
    w->limit = UINT64_MAX;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        w->limit = (uint64_t)limit.rlim_cur;
    return w;
}

static int open_parent(weft__writer *w) {
    char *slash = strrchr(w->path, '/');
    if (!slash) {
        w->name = w->path;
        return w->io->open(w->io->user, AT_FDCWD, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    }
    w->name = slash + 1;
    if (slash == w->path)
        return w->io->open(w->io->user, AT_FDCWD, "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    *slash = 0;
    int fd = w->io->open(w->io->user, AT_FDCWD, w->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    *slash = '/';
    return fd;
}

#define CREATE (O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC)

weft_status weft__writer_open(weft_context *ctx, const weft__io *io, const char *path, uint64_t expected,
                              weft__writer **out) {
    *out = NULL;
    weft__writer *w = writer_new(ctx, io, path, expected);
    if (!w) return weft__fail_oom(ctx, sizeof *w, "a file writer");
    w->own_dir = true;
    w->dir = open_parent(w);
    if (w->dir < 0) {
        weft_status status = weft__fail_io(ctx, "open the folder of", path, errno);
        writer_free(w);
        return status;
    }
    for (int attempt = 0; w->fd < 0 && attempt < 16; attempt++) {
        if (!weft__temp_name(w->name, w->temp)) {
            writer_free(w);
            return weft__fail(ctx, WEFT_ERR_ARGUMENT, "cannot write %s: not the name of a file", path);
        }
        w->fd = w->io->open(w->io->user, w->dir, w->temp, CREATE, 0666);
        if (w->fd < 0 && errno != EEXIST) break;
    }
    if (w->fd < 0) {
        weft_status status = weft__fail_io(ctx, "create", path, errno);
        writer_free(w);
        return status;
    }
    w->created = true;
    *out = w;
    return WEFT_OK;
}

weft_status weft__writer_open_at(weft_context *ctx, const weft__io *io, int dir, const char *name,
                                 const char *path, uint64_t expected, weft__writer **out) {
    *out = NULL;
    size_t length = strlen(name);
    if (length == 0 || length >= WEFT__TEMP_SIZE || strchr(name, '/'))
        return weft__fail(ctx, WEFT_ERR_ARGUMENT, "cannot write %s: not the name of a file", path);
    weft__writer *w = writer_new(ctx, io, path, expected);
    if (!w) return weft__fail_oom(ctx, sizeof *w, "a file writer");
    w->dir = dir;
    memcpy(w->temp, name, length + 1);
    w->fd = w->io->open(w->io->user, dir, name, CREATE, 0666);
    if (w->fd < 0) {
        weft_status status = weft__fail_io(ctx, "create", path, errno);
        writer_free(w);
        return status;
    }
    w->created = true;
    *out = w;
    return WEFT_OK;
}

weft_status weft__writer_write(weft__writer *w, const void *data, size_t bytes) {
    const char *p = data;
    if (w->status != WEFT_OK) return w->status;
    while (bytes > 0) {
        size_t chunk =
            bytes < ((size_t)1 << 30) ? bytes : (size_t)1 << 30; /* Linux writes less than 2 GiB per call */
        if (w->bytes + chunk > w->limit) return write_failed(w, bytes, EFBIG);
        ssize_t n = w->io->write(w->io->user, w->fd, p, chunk);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return write_failed(w, bytes, n < 0 ? errno : EIO);
        p += n;
        bytes -= (size_t)n;
        w->bytes += (uint64_t)n;
    }
    return WEFT_OK;
}

/* NFS can lose the reply of a rename. The repeated rename then reports ENOENT, although the target is
 * already our file. */
static bool renamed_after_all(weft__writer *w, const struct stat *ours) {
    struct stat there;
    return fstatat(w->dir, w->name, &there, AT_SYMLINK_NOFOLLOW) == 0 && there.st_dev == ours->st_dev &&
           there.st_ino == ours->st_ino && there.st_size == ours->st_size;
}

static weft_status flush(weft__writer *w) {
    if (w->io->sync(w->io->user, w->fd) != 0) return write_failed(w, 0, errno);
    int fd = w->fd;
    w->fd = -1;
    /* After EINTR Linux has closed the descriptor, and fsync already succeeded. Other errors report lost
     * writes. */
    if (w->io->close(w->io->user, fd) != 0 && errno != EINTR) {
        int error = errno;
        (void)give_up(w, WEFT_ERR_IO);
        return weft__fail_io(w->ctx, "close", w->path, error);
    }
    return WEFT_OK;
}

static weft_status publish(weft__writer *w) {
    struct stat ours;
    if (w->status != WEFT_OK) return w->status;
    if (fstat(w->fd, &ours) != 0) return write_failed(w, 0, errno);
    WEFT_TRY(flush(w));
    if (!w->own_dir) {
        w->created = false;
        return WEFT_OK;
    }
    if (w->io->rename(w->io->user, w->dir, w->temp, w->name, 0) != 0) {
        int error = errno;
        if (error != ENOENT || !renamed_after_all(w, &ours)) {
            (void)give_up(w, WEFT_ERR_IO);
            return weft__fail_io(w->ctx, "rename a temporary file to", w->path, error);
        }
    }
    w->created = false;
    if (w->io->sync(w->io->user, w->dir) != 0)
        return weft__fail_io(w->ctx, "flush the folder of", w->path, errno);
    return WEFT_OK;
}

weft_status weft__writer_reopen(weft__writer *w, int *fd) {
    *fd = w->io->open(w->io->user, w->dir, w->temp, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
    return *fd >= 0 ? WEFT_OK : weft__fail_io(w->ctx, "read back", w->path, errno);
}

weft_status weft__writer_commit(weft__writer *w) {
    weft_status status = publish(w);
    writer_free(w);
    return status;
}

void weft__writer_abandon(weft__writer *w) {
    if (w) writer_free(w);
}

weft_status weft_write_file(weft_context *ctx, const char *path, const void *data, size_t bytes) {
    WEFT_NEED(ctx, path);
    if (bytes > 0) WEFT_NEED(ctx, data);
    if (bytes > PTRDIFF_MAX) return weft__fail_count(ctx, __func__, "bytes", bytes);
    weft__writer *w;
    WEFT_TRY(weft__writer_open(ctx, NULL, path, bytes, &w));
    weft_status status = weft__writer_write(w, data, bytes);
    if (status != WEFT_OK) {
        weft__writer_abandon(w);
        return status;
    }
    return weft__writer_commit(w);
}
