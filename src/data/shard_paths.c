/* Finds the tar files that a path names: a file, a pattern, or a folder. Must not know: what tar files hold.
 * Read next: image_shards.c. */
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <string.h>
#include <sys/stat.h>

#include "data/file_list.h"
#include "data/image_shards.h"
#include "data/tokens.h"
#include "io/publish.h"

static bool is_tar(const char *path) { return weft__has_ending(path, ".tar"); }

/* Packed tar files count, so that the reader can say what to do. */
static bool is_packed_tar(const char *path) {
    static const char *const ends[] = {".tar.gz",  ".tgz",  ".tar.bz2", ".tbz2",   ".tar.xz",
                                       ".tar.zst", ".tzst", ".txz",     ".tar.lz4"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (weft__has_ending(path, ends[i])) return true;
    return false;
}

static weft_status add(weft_context *ctx, weft__names *paths, const char *path) {
    if (paths->count == WEFT__SHARDS_MOST)
        return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: there are more than %d tar files: join some", path,
                          WEFT__SHARDS_MOST);
    return weft__names_add(ctx, paths, weft__strdup(ctx, path));
}

/* Adds the tar files of a folder, unless it holds images or folders: these are a folder of images then. */
static weft_status search_folder(weft_context *ctx, const char *folder, weft__names *paths) {
    DIR *dir = weft__opendir(folder);
    weft_status status = WEFT_OK;
    struct stat what;
    bool other = false;
    int error = 0;
    if (!dir) return weft__fail_io(ctx, "open", folder, errno);
    for (const struct dirent *e; status == WEFT_OK && !other && (e = weft__next_entry(dir, &error));) {
        if (e->d_name[0] == '.') continue;
        if ((other = weft__is_image_name(e->d_name))) break;
        char *path = weft__path_join(ctx, folder, e->d_name);
        if (!path)
            status = weft__fail_oom(ctx, 0, "names of tar files");
        else if (stat(path, &what) != 0)
            status = weft__fail_io(ctx, "access", path, errno);
        else if (S_ISDIR(what.st_mode))
            other = true;
        else if (is_tar(path))
            status = add(ctx, paths, path);
        weft__free(ctx, path);
    }
    closedir(dir);
    if (status == WEFT_OK && error) status = weft__fail_io(ctx, "list", folder, error);
    if (status != WEFT_OK || other) weft__names_free(ctx, paths);
    weft__names_sort(paths, 0);
    return status;
}

static weft_status search_pattern(weft_context *ctx, const char *pattern, weft__names *paths) {
    glob_t found;
    const int code = glob(pattern, 0, NULL, &found);
    if (code == GLOB_NOSPACE) return weft__fail_oom(ctx, 0, "a list of files");
    if (code == GLOB_NOMATCH) return weft__fail(ctx, WEFT_ERR_IO, "%s: there is no such file", pattern);
    if (code != 0) return weft__fail(ctx, WEFT_ERR_IO, "%s: its folder cannot be read", pattern);
    weft_status status = WEFT_OK;
    for (size_t i = 0; status == WEFT_OK && i < found.gl_pathc; i++)
        status = add(ctx, paths, found.gl_pathv[i]);
    globfree(&found);
    weft__names_sort(paths, 0);
    return status;
}

weft_status weft__shard_paths(weft_context *ctx, const char *path, weft__names *paths) {
    struct stat what;
    const bool tar = is_tar(path) || is_packed_tar(path);
    if (stat(path, &what) == 0) {
        if (S_ISDIR(what.st_mode)) return search_folder(ctx, path, paths);
        return tar ? add(ctx, paths, path) : WEFT_OK;
    }
    if (!tar) return WEFT_OK;
    bool range;
    WEFT_TRY(weft__numbered_range(ctx, path, paths, &range));
    if (range) return WEFT_OK;
    if (strpbrk(path, "*?[")) return search_pattern(ctx, path, paths);
    if (strchr(path, '{'))
        return weft__fail(ctx, WEFT_ERR_IO,
                          "%s: there is no such file: write a pattern with * or ? instead of {", path);
    return weft__fail_io(ctx, "open", path, errno);
}
