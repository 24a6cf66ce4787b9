/* Lists the files of a path, see file_list.h. Must not know: what files hold. Read next: numbered.c. */
#include "data/file_list.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "data/tokens.h"

bool weft__has_ending(const char *name, const char *ending) {
    const size_t size = strlen(name), end = strlen(ending);
    return size > end && strcasecmp(name + size - end, ending) == 0;
}

/* Lists the files that match a pattern or, if `names` is given, those names in a folder: "*" or ".*". Then
 * none is no error. */
static weft_status find_files(weft_context *ctx, const char *path, const char *names, glob_t *found) {
    char pattern[8192];
    size_t n = 0;
    if (strlen(path) > sizeof pattern / 2 - 4)
        return weft__fail(ctx, WEFT_ERR_IO, "%s: the path is too long", path);
    for (const char *c = path; *c; pattern[n++] = *c++)
        if (names && strchr("*?[\\", *c)) pattern[n++] = '\\'; /* the folder's name is no pattern */
    snprintf(pattern + n, sizeof pattern - n, "%s%s", names ? "/" : "", names ? names : "");
    const int code = glob(pattern, 0, NULL, found);
    if (code == 0 || (names && code == GLOB_NOMATCH)) return WEFT_OK;
    if (code == GLOB_NOSPACE) return weft__fail_oom(ctx, 0, "a list of files");
    return weft__fail(ctx, WEFT_ERR_IO, "%s: %s", path,
                      code == GLOB_NOMATCH ? "there is no such file" : "its folder cannot be read");
}

/* Counts the names of a folder that begin with a dot. */
static weft_status count_hidden(weft_context *ctx, const char *path, uint64_t *hidden) {
    glob_t found = {0};
    WEFT_TRY(find_files(ctx, path, ".*", &found));
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *name = strrchr(found.gl_pathv[i], '/') + 1;
        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0) ++*hidden;
    }
    globfree(&found);
    return WEFT_OK;
}

/* Adds the files of a folder, or those that match a pattern. */
static weft_status add_files(weft_context *ctx, const char *path, weft__file_list *list) {
    struct stat what;
    glob_t found = {0};
    if (list->folder) WEFT_TRY(count_hidden(ctx, path, &list->hidden));
    WEFT_TRY(find_files(ctx, path, list->folder ? "*" : NULL, &found));
    weft_status status = WEFT_OK;
    for (size_t i = 0; i < found.gl_pathc && status == WEFT_OK; i++) {
        const char *file = found.gl_pathv[i];
        if (stat(file, &what) == 0 && S_ISDIR(what.st_mode))
            list->folders++;
        else
            status = weft__names_add(ctx, &list->names, weft__strdup(ctx, file));
    }
    globfree(&found);
    weft__names_sort(&list->names, 0); /* glob sorts by the locale */
    return status;
}

weft_status weft__file_list_read(weft_context *ctx, const char *path, weft__file_list *list) {
    struct stat what;
    *list = (weft__file_list){0};
    WEFT_TRY(weft__numbered_range(ctx, path, &list->names, &list->several));
    if (list->several) return WEFT_OK;
    const bool exists = stat(path, &what) == 0;
    list->folder = exists && S_ISDIR(what.st_mode);
    list->several = list->folder || (!exists && strpbrk(path, "*?["));
    return list->several ? add_files(ctx, path, list)
                         : weft__names_add(ctx, &list->names, weft__strdup(ctx, path));
}

void weft__file_list_free(weft_context *ctx, weft__file_list *list) {
    weft__names_free(ctx, &list->names);
    *list = (weft__file_list){0};
}
