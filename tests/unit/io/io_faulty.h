/* I/O functions that fail, kill the process, or log their calls. */
#ifndef WEFT_TESTS_IO_FAULTY_H
#define WEFT_TESTS_IO_FAULTY_H

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "io/publish.h"

typedef struct faulty {
    int calls, at; /* the number (from 1) of the call that misbehaves; 0: none */
    int error;     /* errno of the failure; 0: the process is killed instead */
    bool shorts;   /* writes take one byte, and every other write is interrupted */
    bool lies;     /* a misbehaving write writes one wrong bit and reports success */
    char log[256]; /* one letter for each call */
} faulty;

static inline bool misbehave(faulty *f, char letter) {
    if (f->lies) return false;
    if (f->calls < (int)sizeof f->log - 1) f->log[f->calls] = letter;
    if (++f->calls != f->at) return false;
    if (f->error == 0) (void)raise(SIGKILL);
    errno = f->error;
    return true;
}

static inline int faulty_open(void *user, int dir, const char *name, int flags, mode_t mode) {
    return misbehave(user, 'o') ? -1 : weft__io_system.open(NULL, dir, name, flags, mode);
}
static inline int faulty_mkdir(void *user, int dir, const char *name, mode_t mode) {
    return misbehave(user, 'm') ? -1 : weft__io_system.mkdir(NULL, dir, name, mode);
}
static inline ssize_t faulty_write(void *user, int fd, const void *data, size_t bytes) {
    faulty *f = user;
    if (f->lies && ++f->calls == f->at) {
        char piece[64];
        if (bytes > sizeof piece) bytes = sizeof piece;
        memcpy(piece, data, bytes);
        piece[bytes / 2] ^= 4;
        return weft__io_system.write(NULL, fd, piece, bytes);
    }
    if (f->lies) return weft__io_system.write(NULL, fd, data, bytes < 64 ? bytes : 64);
    if (misbehave(f, 'w')) return -1;
    if (!f->shorts) return weft__io_system.write(NULL, fd, data, bytes);
    if (f->calls % 2) return weft__io_system.write(NULL, fd, data, 1);
    errno = EINTR;
    return -1;
}
static inline int faulty_sync(void *user, int fd) {
    return misbehave(user, 's') ? -1 : weft__io_system.sync(NULL, fd);
}
static inline int faulty_close(void *user, int fd) {
    if (!misbehave(user, 'c')) return weft__io_system.close(NULL, fd);
    int error = errno;
    (void)close(fd); /* as on Linux: the descriptor is closed whatever close returns */
    errno = error;
    return -1;
}
static inline int faulty_rename(void *user, int dir, const char *from, const char *to, unsigned flags) {
    return misbehave(user, 'r') ? -1 : weft__io_system.rename(NULL, dir, from, to, flags);
}
static inline int faulty_unlink(void *user, int dir, const char *name, int flags) {
    return misbehave(user, 'u') ? -1 : weft__io_system.unlink(NULL, dir, name, flags);
}

static inline weft__io faulty_io(faulty *f) {
    return (weft__io){f,           faulty_open,  faulty_mkdir,  faulty_write,
                      faulty_sync, faulty_close, faulty_rename, faulty_unlink};
}

#endif
