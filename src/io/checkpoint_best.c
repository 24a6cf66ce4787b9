/* Marks and opens the best checkpoint of a run. RUN/checkpoints/best is a symbolic link to one of the
 * checkpoints, which pruning then keeps. `best` may also be a copy of a checkpoint: programs that follow
 * links (such as scp -r) make copies. Must not know: which metric decides what is best. Read next:
 * checkpoint_write.c. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "io/checkpoint.h"
#include "io/publish.h"

#define BEST "best"

/* Reads the step from a copy of a checkpoint. A damaged copy counts as no mark, so it is not an error. */
static weft_status step_of_copy(weft_context *ctx, const char *path, bool *marked, uint64_t *step) {
    weft_checkpoint *copy;
    const weft_status status = weft_checkpoint_open(ctx, path, &copy);
    if (status != WEFT_OK) return status == WEFT_ERR_FORMAT ? WEFT_OK : status;
    *step = weft_checkpoint_state_of(copy)->step;
    *marked = true;
    weft_checkpoint_close(copy);
    return WEFT_OK;
}

weft_status weft__checkpoint_best(weft_context *ctx, const char *run, bool *marked, uint64_t *step) {
    char target[WEFT__STEP_NAME];
    char *path = weft__checkpoint_path(ctx, run, BEST);
    weft_status status = WEFT_OK;
    *marked = false;
    if (!path) return weft__fail_oom(ctx, strlen(run) + 16, "a path");
    const ssize_t size = readlink(path, target, sizeof target - 1);
    if (size > 0) {
        target[size] = '\0';
        *marked = weft__checkpoint_step(target, step);
    } else if (size < 0 && errno == EINVAL) {
        status = step_of_copy(ctx, path, marked, step);
    } else if (size < 0 && errno != ENOENT && errno != ENOTDIR) {
        status = weft__fail_io(ctx, "read the link", path, errno);
    }
    weft__free(ctx, path);
    return status;
}

bool weft_checkpoint_best(const char *run, uint64_t *step) {
    bool marked;
    uint64_t found;
    return run && weft__checkpoint_best(NULL, run, &marked, step ? step : &found) == WEFT_OK && marked;
}

/* Points the link at another checkpoint. A link cannot be changed in place, so a new link is renamed over
 * the old one. If `best` is a folder (a copy), the folder is removed first. Returns 0, or -1 with errno. */
static int replace_link(weft_context *ctx, const char *path, int folder, const char *target) {
    char temp[WEFT__TEMP_SIZE];
    int made = -1;
    for (int attempt = 0; made != 0 && attempt < 16; attempt++) {
        if (!weft__temp_name(BEST, temp)) return -1;
        made = symlinkat(target, folder, temp);
        if (made != 0 && errno != EEXIST) return -1;
    }
    if (made != 0) return -1;
    int renamed = weft__io_system.rename(NULL, folder, temp, BEST, 0);
    if (renamed != 0 && errno == EISDIR && weft__folder_remove(ctx, NULL, path, BEST) == WEFT_OK)
        renamed = weft__io_system.rename(NULL, folder, temp, BEST, 0);
    if (renamed == 0) return weft__io_system.sync(NULL, folder);
    const int error = errno;
    (void)unlinkat(folder, temp, 0);
    errno = error;
    return -1;
}

static weft_status link_failed(weft_context *ctx, const char *path, int error) {
    if (error != EPERM && error != EOPNOTSUPP)
        return weft__fail_io(ctx, "mark the best checkpoint of", path, error);
    return weft__fail(ctx, WEFT_ERR_IO,
                      "%s: this file system has no symbolic links, which mark the best checkpoint: keep runs "
                      "on another file system, or set train.keep_best: false",
                      path);
}

weft_status weft_checkpoint_mark_best(weft_context *ctx, const char *run, uint64_t step) {
    char name[WEFT__STEP_NAME];
    struct stat there;
    WEFT_NEED(ctx, run);
    snprintf(name, sizeof name, "step-%" PRIu64, step);
    char *path = weft__checkpoint_path(ctx, run, NULL);
    if (!path) return weft__fail_oom(ctx, strlen(run) + 16, "a path");
    int folder;
    weft_status status = weft__own_folder(ctx, &weft__io_system, path, &folder);
    if (status == WEFT_OK && fstatat(folder, name, &there, AT_SYMLINK_NOFOLLOW) != 0)
        status = errno == ENOENT
                     ? weft__fail(ctx, WEFT_ERR_STATE, "%s has no %s to mark as the best", path, name)
                     : weft__fail_io(ctx, "read the newest checkpoint in", path, errno);
    if (status == WEFT_OK && replace_link(ctx, path, folder, name) != 0)
        status = link_failed(ctx, path, errno);
    if (folder >= 0) (void)close(folder);
    weft__free(ctx, path);
    return status;
}

weft_status weft_checkpoint_open_best(weft_context *ctx, const char *run, weft_checkpoint **out) {
    uint64_t step;
    bool marked;
    WEFT_NEED(ctx, out);
    *out = NULL;
    WEFT_NEED(ctx, run);
    WEFT_TRY(weft__checkpoint_best(ctx, run, &marked, &step));
    if (!marked)
        return weft__fail(ctx, WEFT_ERR_STATE, "%s/checkpoints/" BEST ": no checkpoint was kept as the best",
                          run);
    char *path = weft__checkpoint_path(ctx, run, BEST);
    if (!path) return weft__fail_oom(ctx, strlen(run) + 16, "a path");
    const weft_status status = weft_checkpoint_open(ctx, path, out);
    weft__free(ctx, path);
    return status;
}
