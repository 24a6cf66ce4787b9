/* The system calls behind publishing, the texts of their errors, and temporary names. Must not know: the
 * order of the calls. Read next: publish.c. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* renameat2, getrandom */
#endif
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "io/publish.h"

/* Repeats a call that a signal interrupted. On NFS and FUSE, signals can interrupt more calls than write.
 * If the interrupted call did succeed, the repeated call fails with EEXIST or ENOENT. Callers handle these
 * errors, because such file systems may also lose replies. */
#define UNINTERRUPTED(result, call)                                                                          \
    do result = (call);                                                                                      \
    while (result < 0 && errno == EINTR)

static int system_open(void *user, int dir, const char *name, int flags, mode_t mode) {
    int fd;
    (void)user;
    UNINTERRUPTED(fd, openat(dir, name, flags, mode));
    return fd;
}

static int system_mkdir(void *user, int dir, const char *name, mode_t mode) {
    int result;
    (void)user;
    UNINTERRUPTED(result, mkdirat(dir, name, mode));
    return result;
}

static ssize_t system_write(void *user, int fd, const void *data, size_t bytes) {
    (void)user;
    return write(fd, data, bytes);
}

static int system_sync(void *user, int fd) {
    int result;
    (void)user;
    UNINTERRUPTED(result, fsync(fd));
    if (result == 0) return 0;
    return errno == EINVAL ? 0 : -1; /* some file systems have nothing to flush for a folder */
}

static int system_close(void *user, int fd) {
    (void)user;
    return close(fd);
}

static int system_rename(void *user, int dir, const char *from, const char *to, unsigned flags) {
    int result = -1;
    (void)user;
    if (!(flags & WEFT__IO_SWAP)) {
        UNINTERRUPTED(result, renameat(dir, from, dir, to));
        return result;
    }
#ifdef RENAME_EXCHANGE
    return renameat2(dir, from, dir, to, RENAME_EXCHANGE); /* never repeated: a second call would swap back */
#else
    errno = ENOSYS;
    return result;
#endif
}

static int system_unlink(void *user, int dir, const char *name, int flags) {
    int result;
    (void)user;
    UNINTERRUPTED(result, unlinkat(dir, name, flags));
    return result;
}

int weft__truncate(int fd, off_t size) {
    int result;
    UNINTERRUPTED(result, ftruncate(fd, size));
    return result;
}

DIR *weft__opendir(const char *folder) {
    DIR *dir;
    do dir = opendir(folder);
    while (!dir && errno == EINTR);
    return dir;
}

const struct dirent *weft__next_entry(DIR *folder, int *error) {
    errno = 0;
    const struct dirent *entry = readdir(folder);
    *error = entry ? 0 : errno;
    return entry;
}

const weft__io weft__io_system = {NULL,        system_open,  system_mkdir,  system_write,
                                  system_sync, system_close, system_rename, system_unlink};

weft_status weft__write_all(weft_context *ctx, int fd, const char *name, const void *data, size_t bytes) {
    const char *at = data;
    while (bytes > 0) {
        const ssize_t n = write(fd, at, bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return weft__fail_io(ctx, "write", name, n < 0 ? errno : EIO);
        at += n;
        bytes -= (size_t)n;
    }
    return WEFT_OK;
}

const char *weft__errno_text(int error, char *buffer, size_t bytes) {
#ifdef __GLIBC__
    return strerror_r(error, buffer, bytes);
#else
    if (strerror_r(error, buffer, bytes) != 0) snprintf(buffer, bytes, "error %d", error);
    return buffer;
#endif
}

weft_status weft__fail_io(weft_context *ctx, const char *what, const char *path, int error) {
    char text[128];
    return weft__fail(ctx, error == ENOMEM ? WEFT_ERR_OOM : WEFT_ERR_IO, "cannot %s %s: %s", what, path,
                      weft__errno_text(error, text, sizeof text));
}

weft_status weft__open_regular(weft_context *ctx, int dir, const char *name, int flags, const char *path,
                               int *fd) {
    struct stat st;
    UNINTERRUPTED(*fd, openat(dir, name, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0644));
    int error = *fd < 0 || fstat(*fd, &st) != 0 ? errno : 0;
    if (error == 0 && S_ISREG(st.st_mode)) return WEFT_OK;
    if (*fd >= 0) (void)close(*fd);
    *fd = -1;
    if (error != 0 && error != ENXIO) /* ENXIO: a socket, or a pipe without a reader */
        return weft__fail_io(ctx, "open", path, error);
    return weft__fail(ctx, WEFT_ERR_IO,
                      "cannot open %s: not a regular file, but a folder, a pipe or a device", path);
}

int weft__try_lock(int fd) {
    int result;
#ifdef F_OFD_SETLK
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    UNINTERRUPTED(result, fcntl(fd, F_OFD_SETLK, &whole));
#else
    UNINTERRUPTED(result, flock(fd, LOCK_EX | LOCK_NB));
#endif
    if (result == 0) return WEFT__LOCK_TAKEN;
    return errno == EAGAIN || errno == EACCES || errno == EWOULDBLOCK ? WEFT__LOCK_HELD : WEFT__LOCK_NONE;
}

uint64_t weft__free_bytes(int fd) {
    struct statvfs vfs;
    if (fstatvfs(fd, &vfs) != 0) return UINT64_MAX;
    uint64_t bytes;
    if (__builtin_mul_overflow((uint64_t)vfs.f_bavail, (uint64_t)vfs.f_frsize, &bytes)) return UINT64_MAX;
    return bytes;
}

/* Returns random bits from the system if it has a source. The fallback is predictable, but each call gives
 * other bits. O_EXCL keeps this safe. */
static uint64_t random_bits(void) {
    uint64_t bits;
    if (getrandom(&bits, sizeof bits, GRND_NONBLOCK) == (ssize_t)sizeof bits) return bits;
    struct timespec now = {0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return weft__mix64((uint64_t)now.tv_nsec ^ ((uint64_t)now.tv_sec << 32) ^ (uint64_t)(uintptr_t)&bits);
}

bool weft__temp_name(const char *name, char out[WEFT__TEMP_SIZE]) {
    if (name[0] == 0 || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strchr(name, '/')) return false;
    int n = snprintf(out, WEFT__TEMP_SIZE, ".%s.%ld.%016" PRIx64 ".tmp", name, (long)getpid(), random_bits());
    return n > 0 && n < WEFT__TEMP_SIZE;
}

bool weft__is_temp_name(const char *name) {
    size_t n = strlen(name), digits = 0;
    const size_t tail = sizeof ".0123456789abcdef.tmp" - 1;
    if (name[0] != '.' || n < tail + 4 || strcmp(name + n - 4, ".tmp") != 0) return false;
    const char *p = name + n - tail;
    if (*p != '.' || strspn(p + 1, "0123456789abcdef") != 16) return false;
    while (p > name && p[-1] >= '0' && p[-1] <= '9') p--, digits++;
    return digits > 0 && p - name >= 3 && p[-1] == '.';
}
