/* The only way in which Weft makes a file or a folder visible. Readers see the complete file on disk, or
 * nothing.
 *
 *     file:    temporary name in the same folder (O_EXCL) -> write -> fsync -> close -> rename
 *              -> fsync(folder)
 *     folder:  temporary folder -> files inside, each fsynced and closed -> fsync -> rename
 *              -> fsync(parent)
 *
 * Writers of files that must read back verify the files before the rename. An output that is no file, such as
 * a pipe or /dev/full, is written in place.
 *
 * Must not know: what is in the files. Read next: publish.c, folder.c. */
#ifndef WEFT_SRC_IO_PUBLISH_H
#define WEFT_SRC_IO_PUBLISH_H

#include <dirent.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/base.h"

/* The system calls that change the disk. Tests replace them to make any call fail. They return what POSIX
 * calls return: -1 and errno. `rename` replaces the target (flags 0) or swaps two names (WEFT__IO_SWAP). */
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

extern const weft__io weft__io_system; /* repeats calls that a signal interrupts, except `write` */
/* ftruncate and opendir, also repeated after a signal. */
int weft__truncate(int fd, off_t size);
DIR *weft__opendir(const char *folder);
/* Returns the next entry of an open folder. NULL: the end, or an error, whose number *error then is. */
const struct dirent *weft__next_entry(DIR *folder, int *error);

/* Writes all bytes to an open file, in as many calls as needed. `name` appears in the message. */
weft_status weft__write_all(weft_context *ctx, int fd, const char *name, const void *data, size_t bytes);

/* Returns the text of an errno. The text may be in the caller's buffer. */
const char *weft__errno_text(int error, char *buffer, size_t bytes);

/* Returns WEFT_ERR_IO with the message "cannot WHAT PATH: TEXT", or WEFT_ERR_OOM if the error is ENOMEM. */
weft_status weft__fail_io(weft_context *ctx, const char *what, const char *path, int error);

/* Opens a regular file in a folder (AT_FDCWD: the working folder) and never blocks. A pipe of that name
 * would otherwise block the caller until another process opens its other end. `path` appears in messages.
 * Returns WEFT_OK or WEFT_ERR_IO. */
weft_status weft__open_regular(weft_context *ctx, int dir, const char *name, int flags, const char *path,
                               int *fd);

/* Returns the free bytes of the file system of an open file, or UINT64_MAX if unknown. */
uint64_t weft__free_bytes(int fd);

#define WEFT__TEMP_SIZE 256 /* bytes of a temporary name, with its NUL */

/* Makes a name ".NAME.PID.RANDOM.tmp". Returns false if NAME is empty, ".", "..", too long or has a slash. */
bool weft__temp_name(const char *name, char out[WEFT__TEMP_SIZE]);
bool weft__is_temp_name(const char *name);

/* Locks a whole file for as long as its descriptor, or a copy of it, is open. The file must be open for
 * writing. NONE: the file system has no locks. */
enum { WEFT__LOCK_TAKEN, WEFT__LOCK_HELD, WEFT__LOCK_NONE };
int weft__try_lock(int fd);

/* ---- a file: publish.c ---- */

typedef struct weft__writer weft__writer;

/* Lists a temporary file in a folder. Writers list theirs. */
void weft__temporary_begin(int dir, const char *name);
void weft__temporary_end(const char *name);
/* Removes the listed files. A signal handler may call it. */
void weft__remove_temporaries(void);
/* Removes the temporary files that stopped processes left in a folder: those of the file NAME, or of all
 * files if NAME is NULL. A file is left alone if its writer still holds its lock, or if there are no locks.
 * Returns how many were removed. */
size_t weft__remove_abandoned(const char *folder, const char *name);

/* Returns whether an output is written in place: a pipe, a character device, a socket, or an open descriptor
 * such as /dev/stdout. A rename would replace it by a file. */
bool weft__is_stream(const char *path);

/* Starts a file. `expected` is the final size (0: unknown); it appears in the message about a full disk.
 * If io is NULL, the writer uses the system's calls. */
weft_status weft__writer_open(weft_context *ctx, const weft__io *io, const char *path, uint64_t expected,
                              weft__writer **out);
/* Starts a file inside a temporary folder. `dir` is borrowed, and the file gets its final name at once. */
weft_status weft__writer_open_at(weft_context *ctx, const weft__io *io, int dir, const char *name,
                                 const char *path, uint64_t expected, weft__writer **out);
/* Appends bytes. After a failure every further call fails with the same status, and the temporary file is
 * removed. */
weft_status weft__writer_write(weft__writer *writer, const void *data, size_t bytes);
/* Returns whether the bytes go to a stream (weft__is_stream). They cannot be read back then. */
bool weft__writer_in_place(const weft__writer *writer);
/* Opens the bytes written so far for reading, to verify them before the file is made visible. */
weft_status weft__writer_reopen(weft__writer *writer, int *fd);
/* Makes the file visible. Frees the writer, also on failure. */
weft_status weft__writer_commit(weft__writer *writer);
/* Removes the temporary file and frees the writer. NULL is allowed. */
void weft__writer_abandon(weft__writer *writer);

/* ---- a folder: folder.c ---- */

/* Makes one folder, but not its parents, and flushes the parent. The function changes `path` while it runs
 * and restores it. It is no error if the folder exists. */
weft_status weft__make_one_folder(weft_context *ctx, char *path);

/* Opens a folder in which Weft creates, renames and removes files of its choice. A symbolic link is
 * refused, because the author of the link would choose the place. Links in the path to the folder are
 * followed. */
weft_status weft__own_folder(weft_context *ctx, const weft__io *io, const char *path, int *fd);

typedef struct weft__folder weft__folder;

/* Starts a folder under a temporary name within `parent`. */
weft_status weft__folder_open(weft_context *ctx, const weft__io *io, const char *parent, const char *name,
                              weft__folder **out);
/* Several processes may fill a folder. One of them starts it and tells the others its temporary name. These
 * enter it, write files, and end with weft__folder_abandon, which leaves the folder to the first process. */
const char *weft__folder_temp(const weft__folder *folder);
const char *weft__folder_path(const weft__folder *folder); /* its path when it is published */
weft_status weft__folder_enter(weft_context *ctx, const weft__io *io, const char *parent, const char *name,
                               const char *temp, weft__folder **out);
/* Starts a file in the folder. Commit or abandon the file before the folder. */
weft_status weft__folder_file(weft__folder *folder, const char *name, uint64_t expected, weft__writer **out);
/* Opens the folder for reading, to verify it before it is made visible. */
weft_status weft__folder_reopen(weft__folder *folder, int *fd);
/* Makes the folder visible and replaces a folder of the same name. Frees `folder`, also on failure. */
weft_status weft__folder_commit(weft__folder *folder);
void weft__folder_abandon(weft__folder *folder);

/* Removes PARENT/NAME and everything in it. The folder first gets a temporary name, so that a crash leaves
 * no half of it visible. It is no error if there is no such folder. */
weft_status weft__folder_remove(weft_context *ctx, const weft__io *io, const char *parent, const char *name);

/* Removes the temporary files and folders that crashed processes left in a folder. The folder must not be
 * a symbolic link. Only the holder of the folder's lock may call this. Returns how many were removed. */
size_t weft__remove_stale(const weft__io *io, const char *path);

#endif
