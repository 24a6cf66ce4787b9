/* Publishes a folder of files by one rename. Also removes folders, and temporary files that crashed
 * processes left behind. Must not know: what the files hold. Read next: safetensors.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <weft/io.h>

#include "io/publish.h"

#define FOLDER (O_RDONLY | O_DIRECTORY | O_CLOEXEC)

struct weft__folder {
    weft_context *ctx;
    const weft__io *io;
    int parent, fd;
    bool created;     /* `temp` exists and must be removed on failure */
    char *path;       /* PARENT/NAME, for messages */
    const char *name; /* the end of path */
    char temp[WEFT__TEMP_SIZE];
};

/* Removes a folder and everything below it, down to `depth` levels. Symbolic links are removed, never
 * followed. An error does not stop the removal. What remains has a temporary name, so the next start
 * removes it. Returns 0, or the errno of the first call that failed. Later errors only say that a folder
 * is not empty. */
static int remove_tree(const weft__io *io, int dir, const char *name, int depth) {
    if (io->unlink(io->user, dir, name, 0) == 0 || errno == ENOENT) return 0;
    int first = errno;
    if (first != EISDIR && first != EPERM) return first;
    int fd = io->open(io->user, dir, name, FOLDER | O_NOFOLLOW, 0);
    if (fd < 0) return errno == ENOTDIR ? first : errno;
    DIR *stream = depth > 0 ? fdopendir(fd) : NULL;
    if (!stream) {
        first = depth > 0 ? errno : ENOTEMPTY;
        (void)io->close(io->user, fd);
        return first;
    }
    first = 0;
    for (const struct dirent *e; (e = readdir(stream));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        const int error = remove_tree(io, fd, e->d_name, depth - 1);
        if (!first) first = error;
    }
    closedir(stream);
    if (io->unlink(io->user, dir, name, AT_REMOVEDIR) == 0) return 0;
    return first ? first : errno;
}

static void folder_free(weft__folder *f) {
    if (f->fd >= 0) (void)f->io->close(f->io->user, f->fd);
    if (f->created) (void)remove_tree(f->io, f->parent, f->temp, 4);
    if (f->parent >= 0) (void)f->io->close(f->io->user, f->parent);
    weft__free(f->ctx, f->path);
    weft__free(f->ctx, f);
}

static weft_status folder_failed(weft__folder *f, const char *what, int error) {
    weft_status status;
    if (error == ENOSPC || error == EDQUOT) {
        char text[128];
        uint64_t room = weft__free_bytes(f->parent);
        status = weft__fail(f->ctx, WEFT_ERR_IO, "cannot %s %s: %s: 4096 bytes needed, %llu are free", what,
                            f->path, weft__errno_text(error, text, sizeof text), (unsigned long long)room);
    } else {
        status = weft__fail_io(f->ctx, what, f->path, error);
    }
    folder_free(f);
    return status;
}

weft_status weft__own_folder(weft_context *ctx, const weft__io *io, const char *path, int *fd) {
    struct stat st;
    *fd = io->open(io->user, AT_FDCWD, path, FOLDER | O_NOFOLLOW, 0);
    if (*fd >= 0) return WEFT_OK;
    const int error = errno;
    if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode))
        return weft__fail(ctx, WEFT_ERR_IO,
                          "%s is a symbolic link, and Weft removes old files in that folder: put the folder "
                          "itself there, or link the whole run folder",
                          path);
    return weft__fail_io(ctx, "open the folder", path, error);
}

/* Makes the struct, and opens the parent. */
static weft_status folder_new(weft_context *ctx, const weft__io *io, const char *parent, const char *name,
                              weft__folder **out) {
    size_t size = strlen(parent) + strlen(name) + 2;
    weft__folder *f = weft__zalloc(ctx, sizeof *f);
    *out = NULL;
    if (!f) return weft__fail_oom(ctx, sizeof *f, "a folder writer");
    f->ctx = ctx;
    f->io = io ? io : &weft__io_system;
    f->fd = f->parent = -1;
    f->path = weft__alloc(ctx, size);
    if (!f->path) {
        folder_free(f);
        return weft__fail_oom(ctx, size, "a path");
    }
    snprintf(f->path, size, "%s/%s", parent, name);
    f->name = f->path + strlen(parent) + 1;
    const weft_status status = weft__own_folder(ctx, f->io, parent, &f->parent);
    if (status != WEFT_OK) {
        folder_free(f);
        return status;
    }
    *out = f;
    return WEFT_OK;
}

weft_status weft__folder_open(weft_context *ctx, const weft__io *io, const char *parent, const char *name,
                              weft__folder **out) {
    weft__folder *f;
    *out = NULL;
    WEFT_TRY(folder_new(ctx, io, parent, name, &f));
    int made = -1;
    for (int attempt = 0; made != 0 && attempt < 16; attempt++) {
        if (!weft__temp_name(name, f->temp)) return folder_failed(f, "create", EINVAL);
        made = f->io->mkdir(f->io->user, f->parent, f->temp, 0700);
        if (made != 0 && errno != EEXIST) break;
    }
    if (made != 0) return folder_failed(f, "create", errno);
    f->created = true;
    f->fd = f->io->open(f->io->user, f->parent, f->temp, FOLDER | O_NOFOLLOW, 0);
    if (f->fd < 0) return folder_failed(f, "open", errno);
    *out = f;
    return WEFT_OK;
}

const char *weft__folder_temp(const weft__folder *f) { return f->temp; }
const char *weft__folder_path(const weft__folder *f) { return f->path; }

weft_status weft__folder_enter(weft_context *ctx, const weft__io *io, const char *parent, const char *name,
                               const char *temp, weft__folder **out) {
    weft__folder *f;
    *out = NULL;
    WEFT_TRY(folder_new(ctx, io, parent, name, &f));
    snprintf(f->temp, sizeof f->temp, "%s", temp);
    f->fd = f->io->open(f->io->user, f->parent, f->temp, FOLDER | O_NOFOLLOW, 0);
    if (f->fd < 0) return folder_failed(f, "open the folder that rank 0 has made for", errno);
    *out = f;
    return WEFT_OK;
}

weft_status weft__folder_file(weft__folder *f, const char *name, uint64_t expected, weft__writer **out) {
    *out = NULL;
    size_t size = strlen(f->path) + strlen(name) + 2;
    char *path = weft__alloc(f->ctx, size);
    if (!path) return weft__fail_oom(f->ctx, size, "a path");
    snprintf(path, size, "%s/%s", f->path, name);
    weft_status status = weft__writer_open_at(f->ctx, f->io, f->fd, name, path, expected, out);
    weft__free(f->ctx, path);
    return status;
}

/* Replaces the existing folder of the same name. The two folders swap names, so the name always exists.
 * The old folder then has the temporary name and is removed later. If the file system cannot swap, the old
 * folder is renamed away first. Returns 0, or -1 with errno. */
static int replace(weft__folder *f) {
    char old[WEFT__TEMP_SIZE];
    if (f->io->rename(f->io->user, f->parent, f->temp, f->name, WEFT__IO_SWAP) == 0) return 0;
    if (errno != ENOSYS && errno != EINVAL) return -1;
    if (!weft__temp_name(f->name, old)) return -1;
    if (f->io->rename(f->io->user, f->parent, f->name, old, 0) != 0) return -1;
    if (f->io->rename(f->io->user, f->parent, f->temp, f->name, 0) != 0) {
        int error = errno;
        (void)f->io->rename(f->io->user, f->parent, old, f->name, 0);
        errno = error;
        return -1;
    }
    memcpy(f->temp, old, sizeof old);
    return 0;
}

/* NFS can report ENOENT although the rename succeeded, see publish.c. */
static bool renamed_after_all(weft__folder *f, const struct stat *ours) {
    struct stat there;
    return fstatat(f->parent, f->name, &there, AT_SYMLINK_NOFOLLOW) == 0 && there.st_dev == ours->st_dev &&
           there.st_ino == ours->st_ino;
}

weft_status weft__folder_commit(weft__folder *f) {
    struct stat ours;
    bool replaced = false;
    if (fstat(f->fd, &ours) != 0) return folder_failed(f, "access", errno);
    if (f->io->sync(f->io->user, f->fd) != 0) return folder_failed(f, "flush", errno);
    int fd = f->fd;
    f->fd = -1;
    if (f->io->close(f->io->user, fd) != 0 && errno != EINTR) return folder_failed(f, "close", errno);
    if (f->io->rename(f->io->user, f->parent, f->temp, f->name, 0) != 0) {
        if (errno == EEXIST || errno == ENOTEMPTY) {
            replaced = true;
            if (replace(f) != 0) return folder_failed(f, "replace", errno);
        } else if (errno != ENOENT || !renamed_after_all(f, &ours)) {
            return folder_failed(f, "rename a temporary folder to", errno);
        }
    }
    f->created = replaced; /* the temporary name now belongs to the old folder, or to nothing */
    if (f->io->sync(f->io->user, f->parent) != 0) {
        f->created = false; /* a power loss may undo the rename, so keep both folders */
        return folder_failed(f, "flush the folder of", errno);
    }
    folder_free(f);
    return WEFT_OK;
}

weft_status weft__folder_reopen(weft__folder *f, int *fd) {
    *fd = f->io->open(f->io->user, f->parent, f->temp, FOLDER, 0);
    return *fd >= 0 ? WEFT_OK : weft__fail_io(f->ctx, "read back", f->path, errno);
}

void weft__folder_abandon(weft__folder *f) {
    if (f) folder_free(f);
}

weft_status weft__folder_remove(weft_context *ctx, const weft__io *io, const char *parent, const char *name) {
    char temp[WEFT__TEMP_SIZE];
    if (!io) io = &weft__io_system;
    if (!weft__temp_name(name, temp))
        return weft__fail(ctx, WEFT_ERR_ARGUMENT, "cannot remove %s/%s: not a name", parent, name);
    int dir, error = 0;
    WEFT_TRY(weft__own_folder(ctx, io, parent, &dir));
    if (io->rename(io->user, dir, name, temp, 0) != 0) {
        error = errno == ENOENT ? 0 : errno;
    } else {
        (void)io->sync(io->user, dir);
        error = remove_tree(io, dir, temp, 4);
    }
    (void)io->close(io->user, dir);
    if (error == 0) return WEFT_OK;
    char text[128];
    return weft__fail(ctx, WEFT_ERR_IO, "cannot remove %s/%s: %s", parent, name,
                      weft__errno_text(error, text, sizeof text));
}

size_t weft__remove_stale(const weft__io *io, const char *path) {
    size_t gone = 0;
    if (!io) io = &weft__io_system;
    int fd = io->open(io->user, AT_FDCWD, path, FOLDER | O_NOFOLLOW, 0);
    if (fd < 0) return 0;
    DIR *stream = fdopendir(fd);
    if (!stream) {
        (void)io->close(io->user, fd);
        return 0;
    }
    for (const struct dirent *e; (e = readdir(stream));)
        if (weft__is_temp_name(e->d_name) && remove_tree(io, fd, e->d_name, 4) == 0) gone++;
    closedir(stream);
    return gone;
}

/* ---- permanent folders ---- */

static int flush_folder(const char *path) {
    const weft__io *io = &weft__io_system;
    int fd = io->open(NULL, AT_FDCWD, path, FOLDER, 0);
    if (fd < 0) return -1;
    int result = io->sync(NULL, fd);
    return io->close(NULL, fd) != 0 && errno != EINTR ? -1 : result;
}

/* Creates one folder and flushes its parent, so that the new folder survives a power loss. */
weft_status weft__make_one_folder(weft_context *ctx, char *path) {
    struct stat st;
    if (weft__io_system.mkdir(NULL, AT_FDCWD, path, 0777) != 0) {
        int error = errno;
        if (error == EEXIST) {
            if (stat(path, &st) != 0) return weft__fail_io(ctx, "access", path, errno);
            if (S_ISDIR(st.st_mode)) return WEFT_OK;
            error = ENOTDIR;
        }
        return weft__fail_io(ctx, "create the folder", path, error);
    }
    char *slash = strrchr(path, '/');
    int result;
    if (!slash) {
        result = flush_folder(".");
    } else if (slash == path) {
        result = flush_folder("/");
    } else {
        *slash = 0;
        result = flush_folder(path);
        *slash = '/';
    }
    return result == 0 ? WEFT_OK : weft__fail_io(ctx, "flush the folder of", path, errno);
}

weft_status weft_make_folder(weft_context *ctx, const char *path) {
    WEFT_NEED(ctx, path);
    if (!*path) return weft__fail(ctx, WEFT_ERR_ARGUMENT, "weft_make_folder: the path is empty");
    char *copy = weft__strdup(ctx, path);
    if (!copy) return weft__fail_oom(ctx, strlen(path) + 1, "a path");
    size_t length = strlen(copy);
    while (length > 1 && copy[length - 1] == '/') copy[--length] = 0;
    weft_status status = WEFT_OK;
    struct stat st;
    if (stat(copy, &st) != 0 || !S_ISDIR(st.st_mode)) {
        for (char *p = copy + 1; status == WEFT_OK && (p = strchr(p, '/')); p++) {
            *p = 0;
            if (p[-1] != '/' && (stat(copy, &st) != 0 || !S_ISDIR(st.st_mode)))
                status = weft__make_one_folder(ctx, copy);
            *p = '/';
        }
        if (status == WEFT_OK) status = weft__make_one_folder(ctx, copy);
    }
    weft__free(ctx, copy);
    return status;
}
