/* Tar files, and other files of texts, open for reading at any place by many threads. Opening a file takes
 * long on the file systems of clusters, so files stay open, as many as a part of the process's limit. A file
 * that differs in size or time from the one that was listed is refused: the places of its members may be
 * wrong. Must not know: classes, libarchive. Read next: image_shards.c. */
#define _POSIX_C_SOURCE 200809L
#include "data/shard_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/parse.h"
#include "io/publish.h"

enum { BLOCK = 512, PART = 4 /* of the files that a process may open */, OPEN_LEAST = 8, OPEN_MOST = 65536 };

typedef struct shard {
    _Atomic int fd; /* -1: not open */
    bool listed, tar;
    off_t size;
    struct timespec changed;
} shard;

struct weft_image_shards {
    char **paths; /* one block */
    size_t count;
    shard *list;
    weft__skipped *skipped;
    int most;         /* files that stay open */
    _Atomic int kept; /* files that are open */
};

weft_status weft__shards_new(weft_context *ctx, const weft__names *paths, weft_image_shards **out) {
    struct rlimit limit;
    weft_image_shards *s = weft__zalloc(ctx, sizeof *s);
    *out = s;
    if (!s) return weft__fail_oom(ctx, sizeof *s, "tar files");
    s->most = OPEN_LEAST;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / PART > OPEN_LEAST)
        s->most = limit.rlim_cur / PART < OPEN_MOST ? (int)(limit.rlim_cur / PART) : OPEN_MOST;
    s->paths = weft__strings_pack(ctx, (const char *const *)paths->at, paths->count);
    s->list = weft__array(ctx, paths->count, sizeof *s->list);
    s->skipped = weft__zalloc(ctx, sizeof *s->skipped);
    if (!s->paths || !s->list || !s->skipped) {
        weft__shards_free(ctx, s);
        *out = NULL;
        return weft__fail_oom(ctx, paths->count * sizeof *s->list, "tar files");
    }
    s->count = paths->count;
    for (size_t i = 0; i < s->count; i++) s->list[i].fd = -1;
    return WEFT_OK;
}

void weft__shards_free(weft_context *ctx, weft_image_shards *s) {
    if (!s) return;
    for (size_t i = 0; i < s->count; i++)
        if (s->list[i].fd >= 0) (void)close(s->list[i].fd);
    weft__free(ctx, s->paths);
    weft__free(ctx, s->list);
    weft__free(ctx, s->skipped);
    weft__free(ctx, s);
}

size_t weft__shards_count(const weft_image_shards *s) { return s->count; }
const char *weft__shards_path(const weft_image_shards *s, size_t i) { return s->paths[i]; }
weft__skipped *weft__shards_skipped(const weft_image_shards *s) { return s->skipped; }

/* ---- open files ---- */

/* Compares the open file with the one that was listed. */
static weft_status check_same(weft_context *ctx, const shard *at, const char *path, int fd) {
    struct stat now;
    if (fstat(fd, &now) != 0) return weft__fail_io(ctx, "read the size of", path, errno);
    if (!at->listed || (now.st_size == at->size && now.st_mtim.tv_sec == at->changed.tv_sec &&
                        now.st_mtim.tv_nsec == at->changed.tv_nsec))
        return WEFT_OK;
    return weft__fail(ctx, WEFT_ERR_STATE, "%s: the %s: restore it, or begin again", path,
                      at->tar ? "tar file has changed since its members were listed"
                              : "file has changed since it was opened");
}

static weft_status open_file(weft_context *ctx, const shard *at, const char *path, int *fd) {
    do *fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    while (*fd < 0 && errno == EINTR);
    if (*fd < 0) return weft__fail_io(ctx, "open", path, errno);
    const weft_status status = check_same(ctx, at, path, *fd);
    if (status != WEFT_OK) (void)close(*fd);
    return status;
}

/* Gives an open file. *own: the caller closes it. Two threads may open a file at the same time; the first one
 * then keeps it. */
static weft_status hold(weft_context *ctx, const weft_image_shards *shards, size_t i, int *fd, bool *own) {
    weft_image_shards *s = (weft_image_shards *)(uintptr_t)shards; /* the list of open files is no content */
    int none = -1;
    *own = false;
    if ((*fd = s->list[i].fd) >= 0) return WEFT_OK;
    WEFT_TRY(open_file(ctx, &s->list[i], s->paths[i], fd));
    *own = true;
    if (s->kept++ < s->most && atomic_compare_exchange_strong(&s->list[i].fd, &none, *fd))
        *own = false;
    else
        s->kept--;
    return WEFT_OK;
}

weft_status weft__shards_use(weft_context *ctx, const weft_image_shards *s, size_t i, weft__shard_use *use,
                             void *user) {
    int fd;
    bool own;
    WEFT_TRY(hold(ctx, s, i, &fd, &own));
    weft_status status = use(user, fd, s->paths[i]);
    const weft_status same = check_same(ctx, &s->list[i], s->paths[i], fd); /* explains a short read, too */
    if (same != WEFT_OK) status = same;
    if (own) (void)close(fd);
    return status;
}

weft_status weft__shards_image(weft_context *ctx, const weft_image_shards *s, const weft_image_member *m,
                               weft_bytes *out) {
    const char *path = m->shard < s->count ? s->paths[m->shard] : NULL;
    *out = (weft_bytes){0};
    if (!path)
        return weft__fail(ctx, WEFT_ERR_ARGUMENT, "an image in tar file %d, but there are %zu", m->shard,
                          s->count);
    const uint64_t size = (uint64_t)s->list[m->shard].size, begin = m->header + (uint64_t)m->blocks * BLOCK;
    if (begin < m->header || begin > size || size - begin < m->size)
        return weft__fail(ctx, WEFT_ERR_ARGUMENT, "%s: no image is at byte %llu", path,
                          (unsigned long long)m->header);
    WEFT_TRY(weft__bytes_new(ctx, m->size, path, out));
    const weft_status status = weft__shards_read(ctx, s, m->shard, begin, out->data, m->size);
    if (status != WEFT_OK) weft_bytes_free(ctx, out);
    return status;
}

/* A part of a file that is read. */
typedef struct wanted {
    weft_context *ctx;
    uint64_t at;
    void *to;
    size_t size;
} wanted;

static weft_status read_wanted(void *user, int fd, const char *path) {
    const wanted *w = user;
    return weft__read_at(w->ctx, fd, path, w->at, w->to, w->size);
}

weft_status weft__shards_read(weft_context *ctx, const weft_image_shards *s, size_t i, uint64_t at, void *to,
                              size_t size) {
    wanted w = {ctx, at, to, size};
    return weft__shards_use(ctx, s, i, read_wanted, &w);
}

/* ---- members ---- */

/* Notes how large and how old an open file is. */
static weft_status note(weft_context *ctx, weft_image_shards *s, size_t i, int fd, bool tar) {
    const char *path = s->paths[i];
    struct stat what;
    if (fstat(fd, &what) != 0) return weft__fail_io(ctx, "read the size of", path, errno);
    if (!S_ISREG(what.st_mode))
        return weft__fail(ctx, WEFT_ERR_IO, "%s: this is a folder, a pipe or a device, expected a %sfile",
                          path, tar ? "tar " : "");
    s->list[i].size = what.st_size;
    s->list[i].changed = what.st_mtim;
    s->list[i].listed = true;
    s->list[i].tar = tar;
    return WEFT_OK;
}

weft_status weft__shards_list(weft_context *ctx, weft_image_shards *s, size_t i, weft__tar_visit *visit,
                              void *user) {
    int fd;
    bool own;
    WEFT_TRY(hold(ctx, s, i, &fd, &own));
    weft_status status = note(ctx, s, i, fd, true);
    if (status == WEFT_OK) {
        const weft__tar_file tar = {.fd = fd, .path = s->paths[i], .size = (uint64_t)s->list[i].size};
        status = weft__tar_list(ctx, &tar, visit, user);
    }
    if (own) (void)close(fd);
    return status;
}

weft_status weft__shards_plain(weft_context *ctx, weft_image_shards *s, size_t i, uint64_t *size) {
    int fd;
    bool own;
    WEFT_TRY(hold(ctx, s, i, &fd, &own));
    const weft_status status = note(ctx, s, i, fd, false);
    *size = (uint64_t)s->list[i].size;
    if (own) (void)close(fd);
    return status;
}

weft_status weft_image_member_name(weft_context *ctx, const weft_image_shards *shards,
                                   const weft_image_member *member, weft_bytes *name) {
    weft_bytes own_name;
    int fd;
    bool own;
    WEFT_NEED(ctx, name);
    *name = (weft_bytes){0};
    WEFT_NEED(ctx, shards);
    WEFT_NEED(ctx, member);
    if (member->shard >= shards->count || member->header >= (uint64_t)shards->list[member->shard].size)
        return weft__fail(ctx, WEFT_ERR_ARGUMENT,
                          "weft_image_member_name: no image is at byte %llu of tar file %d",
                          (unsigned long long)member->header, member->shard);
    weft_status status = hold(ctx, shards, member->shard, &fd, &own);
    if (status == WEFT_ERR_STATE) status = weft__fail(ctx, WEFT_ERR_FORMAT, "%s", weft_last_error(ctx));
    WEFT_TRY(status);
    const weft__tar_file tar = {
        .fd = fd, .path = shards->paths[member->shard], .size = (uint64_t)shards->list[member->shard].size};
    status = weft__tar_name(ctx, &tar, member->header, &own_name);
    if (check_same(ctx, &shards->list[member->shard], tar.path, fd) !=
        WEFT_OK) { /* explains a damaged name */
        if (status == WEFT_OK) weft_bytes_free(ctx, &own_name);
        status = WEFT_ERR_FORMAT;
    }
    if (own) (void)close(fd);
    WEFT_TRY(status);
    const size_t size = strlen(tar.path);
    status = weft__bytes_new(ctx, size + 1 + own_name.size, "a name", name);
    if (status == WEFT_OK) {
        memcpy(name->data, tar.path, size);
        name->data[size] = '/';
        memcpy(name->data + size + 1, own_name.data, own_name.size);
    }
    weft_bytes_free(ctx, &own_name);
    return status;
}
