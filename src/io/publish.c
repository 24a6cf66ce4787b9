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
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <weft/io.h>

#include "io/publish.h"

/* ---- temporary files ---- */

/* The temporary files of this process, for a signal handler. Files that find no place here are removed only
 * by a later run. */
enum { NO_FILE, CHANGING, THERE };
static struct temporary {
    _Atomic int state;
    int dir;
    char name[WEFT__TEMP_SIZE];
} temporaries[64];

void weft__temporary_begin(int dir, const char *name) {
    if (strlen(name) >= WEFT__TEMP_SIZE) return;
    for (size_t i = 0; i < sizeof temporaries / sizeof *temporaries; i++) {
        struct temporary *t = &temporaries[i];
        int expected = NO_FILE;
        if (!atomic_compare_exchange_strong(&t->state, &expected, CHANGING)) continue;
        t->dir = dir;
        memcpy(t->name, name, strlen(name) + 1);
        t->state = THERE;
        return;
    }
}

void weft__temporary_end(const char *name) {
    for (size_t i = 0; i < sizeof temporaries / sizeof *temporaries; i++)
        if (temporaries[i].state == THERE && strcmp(temporaries[i].name, name) == 0)
            temporaries[i].state = NO_FILE;
}

void weft__remove_temporaries(void) {
    for (size_t i = 0; i < sizeof temporaries / sizeof *temporaries; i++)
        if (temporaries[i].state == THERE) (void)unlinkat(temporaries[i].dir, temporaries[i].name, 0);
}

/* Returns whether nobody holds the lock of a temporary file. */
static bool is_abandoned(int dir, const char *name) {
    int fd;
    if (weft__open_regular(NULL, dir, name, O_RDWR, name, &fd) != WEFT_OK) return false;
    const bool abandoned = weft__try_lock(fd) == WEFT__LOCK_TAKEN;
    (void)close(fd);
    return abandoned;
}

static int dots(const char *text) {
    int count = 0;
    for (; *text; text++) count += *text == '.';
    return count;
}

size_t weft__remove_abandoned(const char *folder, const char *name) {
    const size_t size = name ? strlen(name) : 0;
    size_t gone = 0;
    int error;
    DIR *stream = weft__opendir(folder);
    if (!stream) return 0;
    for (const struct dirent *e; (e = weft__next_entry(stream, &error));) {
        const char *file = e->d_name;
        const bool named = !name || (strncmp(file + 1, name, size) == 0 && file[1 + size] == '.');
        /* no dot may follow but those of PID.RANDOM.tmp: the file "a" is not "a.b" */
        if (!named || !weft__is_temp_name(file) || (name && dots(file + 2 + size) != 2)) continue;
        if (is_abandoned(dirfd(stream), file) && unlinkat(dirfd(stream), file, 0) == 0) gone++;
    }
    closedir(stream);
    return gone;
}

/* ---- outputs that are no files ---- */

/* Returns the number of an open descriptor that the path names, or -1. */
static int descriptor_of(const char *path) {
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    if (strcmp(path, "/dev/stdout") == 0) return STDOUT_FILENO;
    if (strcmp(path, "/dev/stderr") == 0) return STDERR_FILENO;
    for (int i = 0; i < 2; i++) {
        const char *number = path + strlen(folders[i]);
        if (strncmp(path, folders[i], strlen(folders[i])) == 0 &&
            number[strspn(number, "0123456789")] == '\0')
            return (int)strtol(number, NULL, 10);
    }
    return -1;
}

bool weft__is_stream(const char *path) {
    struct stat st;
    if (descriptor_of(path) >= 0) return true;
    return stat(path, &st) == 0 && (S_ISCHR(st.st_mode) || S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode));
}

/* ---- a file ---- */

struct weft__writer {
    weft_context *ctx;
    const weft__io *io;
    int dir, fd;
    bool own_dir;      /* this writer closes dir and renames the file: false within a temporary folder */
    bool in_place;     /* a pipe or a device: no temporary file, no rename */
    bool created;      /* `temp` exists and must be removed on failure */
    int locked;        /* a copy of fd: it holds the lock of `temp` until the file has its name */
    char *path, *name; /* for messages; name points into path if own_dir */
    char temp[WEFT__TEMP_SIZE];
    uint64_t expected, bytes;
    uint64_t limit;     /* RLIMIT_FSIZE; a write past it would raise SIGXFSZ */
    weft_status status; /* of the first failure */
};

static void remove_temp(weft__writer *w) {
    if (w->fd >= 0) (void)w->io->close(w->io->user, w->fd);
    if (w->created) (void)w->io->unlink(w->io->user, w->dir, w->temp, 0);
    w->fd = -1;
    w->created = false;
    if (w->locked >= 0) (void)close(w->locked);
    w->locked = -1;
    if (w->own_dir) weft__temporary_end(w->temp);
}

static void writer_free(weft__writer *w) {
    remove_temp(w);
    if (w->own_dir && w->dir >= 0) (void)w->io->close(w->io->user, w->dir);
    weft__free(w->ctx, w->path);
    weft__free(w->ctx, w);
}

/* Closes and removes the file at once. On a full disk this frees the space before the caller gives up. */
static weft_status give_up(weft__writer *w, weft_status status) {
    remove_temp(w);
    w->status = status;
    return status;
}

static weft_status write_failed(weft__writer *w, size_t wanted, int error) {
    char text[128];
    const char *message = weft__errno_text(error, text, sizeof text);
    if (!w->in_place && (error == ENOSPC || error == EDQUOT || error == EFBIG)) {
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
    w->dir = w->fd = w->locked = -1;
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

/* Locks the temporary file, so that no other process takes it for an abandoned one. Returns false if one did
 * so just before. */
static bool hold(weft__writer *w) {
    struct stat st;
    w->locked = fcntl(w->fd, F_DUPFD_CLOEXEC, 0);
    const bool held = weft__try_lock(w->fd) != WEFT__LOCK_HELD;
    return held && (fstat(w->fd, &st) != 0 || st.st_nlink > 0);
}

static weft_status open_in_place(weft__writer *w) {
    const int descriptor = descriptor_of(w->path);
    w->in_place = true;
    w->fd = descriptor >= 0 ? fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
                            : w->io->open(w->io->user, AT_FDCWD, w->path, O_WRONLY | O_NOCTTY | O_CLOEXEC, 0);
    return w->fd >= 0 ? WEFT_OK : weft__fail_io(w->ctx, "open", w->path, errno);
}

weft_status weft__writer_open(weft_context *ctx, const weft__io *io, const char *path, uint64_t expected,
                              weft__writer **out) {
    *out = NULL;
    weft__writer *w = writer_new(ctx, io, path, expected);
    if (!w) return weft__fail_oom(ctx, sizeof *w, "a file writer");
    if (weft__is_stream(path)) {
        const weft_status status = open_in_place(w);
        if (status == WEFT_OK)
            *out = w;
        else
            writer_free(w);
        return status;
    }
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
        w->created = w->fd >= 0;
        if (!w->created) continue;
        weft__temporary_begin(w->dir, w->temp);
        if (!hold(w)) remove_temp(w);
    }
    if (w->fd < 0) {
        weft_status status = weft__fail_io(ctx, "create", path, errno);
        writer_free(w);
        return status;
    }
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

bool weft__writer_in_place(const weft__writer *w) { return w->in_place; }

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
