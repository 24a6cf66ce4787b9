/* The one way in which Weft makes a file or a folder of files visible: all of it, on disk, or nothing.
 *
 * file:   temporary name in the same folder (O_EXCL) -> write -> fsync -> close -> rename -> fsync(folder)
 * folder: temporary folder -> files inside, each fsynced and closed -> fsync -> rename -> fsync(parent)
 *
 * Whoever writes what must read back verifies it before the rename.
 *
 * Must not know: what is in the files. Read next: publish.c, folder.c. */
#ifndef WEFT_SRC_IO_PUBLISH_H
#define WEFT_SRC_IO_PUBLISH_H

#include <dirent.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/base.h"

/* The system calls that change the disk, so that tests can make any of them fail. As in POSIX:
 * -1 and errno. `rename` replaces (flags 0) or swaps two names (WEFT__IO_SWAP). */
#define WEFT__IO_SWAP 1u
typedef struct weft__io {
    void *user;
    int (*open)(void *user, int dir, const char *name, int flags, mode_t mode);
    int (*mkdir)(void *user, int dir, const char *name, mode_t mode);
    ssize_t (*write)(void *user, int fd, const void *data, size_t bytes);
    int (*sync)(void *user, int fd);
    int (*close)(void *user, int fd);
    int (*rename)(void *user, int dir, const char *from, const char *to, unsigned flags);
    int (*unlink)(void *user, int dir, const char *name, int flags);
} weft__io;

extern const weft__io weft__io_system; /* but for `write`, calls that a signal interrupts are made again */
/* ftruncate and opendir, made again likewise. */
int weft__truncate(int fd, off_t size);
DIR *weft__opendir(const char *folder);

/* Writes all of it to an open file, however many calls that takes. `name` is for the message. */
weft_status weft__write_all(weft_context *ctx, int fd, const char *name, const void *data, size_t bytes);

/* The text of an errno into a buffer of the caller's, which is returned. */
const char *weft__errno_text(int error, char *buffer, size_t bytes);

/* WEFT_ERR_IO "cannot DO PATH: TEXT"; WEFT_ERR_OOM where the error is ENOMEM. */
weft_status weft__fail_io(weft_context *ctx, const char *what, const char *path, int error);

/* Opens a regular file of a folder (AT_FDCWD: of the working folder), and never waits for it: a pipe under
 * its name would hold the caller up until somebody opens its other end. `path` is for messages. WEFT_ERR_IO.
 */
weft_status weft__open_regular(weft_context *ctx, int dir, const char *name, int flags, const char *path,
                               int *fd);

/* Bytes that the file system of an open file still takes; UINT64_MAX when unknown. */
uint64_t weft__free_bytes(int fd);

#define WEFT__TEMP_SIZE 256 /* bytes of a temporary name with its NUL */

/* ".NAME.PID.RANDOM.tmp"; false when NAME is empty, ".", "..", too long or has a slash. */
bool weft__temp_name(const char *name, char out[WEFT__TEMP_SIZE]);
bool weft__is_temp_name(const char *name);

/* ---- a file: publish.c ---- */

typedef struct weft__writer weft__writer;

/* Starts a file. `expected` is the final size if known (0: unknown), for the message of a full disk. io NULL:
 * the system's. */
weft_status weft__writer_open(weft_context *ctx, const weft__io *io, const char *path, uint64_t expected,
                              weft__writer **out);
/* The same inside a folder that is itself temporary: `dir` is borrowed, the name is final at once. */
weft_status weft__writer_open_at(weft_context *ctx, const weft__io *io, int dir, const char *name,
                                 const char *path, uint64_t expected, weft__writer **out);
/* After a failure every further call fails the same way and the temporary file is gone. */
weft_status weft__writer_write(weft__writer *writer, const void *data, size_t bytes);
/* Opens what was written so far for reading, to verify it before it is made visible. */
weft_status weft__writer_reopen(weft__writer *writer, int *fd);
/* Makes the file visible. Frees the writer in any case. */
weft_status weft__writer_commit(weft__writer *writer);
/* Forgets the file and frees the writer. NULL is fine. */
void weft__writer_abandon(weft__writer *writer);

/* ---- a folder: folder.c ---- */

/* Makes the folder `path`, which is changed meanwhile, but not its parents, and flushes the parent. One that
 * exists is fine. */
weft_status weft__make_one_folder(weft_context *ctx, char *path);

/* Opens a folder in which Weft makes, renames and removes what it chooses. A symbolic link is refused:
 * whoever made it would choose where. Links on the way to it are followed. */
weft_status weft__own_folder(weft_context *ctx, const weft__io *io, const char *path, int *fd);

typedef struct weft__folder weft__folder;

weft_status weft__folder_open(weft_context *ctx, const weft__io *io, const char *parent, const char *name,
                              weft__folder **out);
/* Starts a file in it; to be committed or abandoned before the folder is. */
weft_status weft__folder_file(weft__folder *folder, const char *name, uint64_t expected, weft__writer **out);
/* Opens the folder for reading, to verify it before it is made visible. */
weft_status weft__folder_reopen(weft__folder *folder, int *fd);
/* Makes the folder visible, replacing one of the same name. Frees it in any case. */
weft_status weft__folder_commit(weft__folder *folder);
void weft__folder_abandon(weft__folder *folder);

/* Removes PARENT/NAME with what is in it: hidden under a temporary name first, so that a crash leaves no
 * half of it visible. WEFT_OK when it is not there. */
weft_status weft__folder_remove(weft_context *ctx, const weft__io *io, const char *parent, const char *name);

/* Removes the temporary files and folders that crashed processes left in a folder, which is no link. Only for
 * who holds the lock of it. Returns how many are gone. */
size_t weft__remove_stale(const weft__io *io, const char *path);

#endif
