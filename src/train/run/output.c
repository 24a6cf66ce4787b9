/* Checks outputs before they are written. Must not know: commands, formats. Read next: io/mark.h. */
#define _XOPEN_SOURCE 700 /* realpath */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weft/io.h>

#include "base/text.h"
#include "io/mark.h"
#include "io/publish.h"
#include "train/run/output.h"
#include "train/run/signals.h"

enum { PATH_BYTES = 4096 };

void weft__output_reads(weft__output *o, const char *path) {
    if (path && path[0] && o->count < WEFT__INPUTS_MOST) o->inputs[o->count++] = path;
}

bool weft__file_begins(const char *path, const char *text) {
    char head[256];
    const size_t size = strlen(text);
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return false;
    const bool same =
        size < sizeof head && read(fd, head, size) == (ssize_t)size && !memcmp(head, text, size);
    (void)close(fd);
    return same;
}

/* ---- inputs ---- */

static bool same_file(const struct stat *a, const struct stat *b) {
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Returns whether a path is a folder, or lies below it. `through` becomes the name below the folder on the
 * way to the path; "" if it is the folder. */
static bool lies_in(const char *path, const struct stat *folder, char through[PATH_BYTES]) {
    char *real = realpath(path, NULL);
    struct stat at;
    bool found = false;
    through[0] = '\0';
    while (real && !found) {
        found = stat(real, &at) == 0 && same_file(&at, folder);
        char *slash = strrchr(real, '/');
        if (found || !real[1]) break;
        snprintf(through, PATH_BYTES, "%s", slash + 1);
        slash[slash == real] = '\0';
    }
    free(real);
    return found;
}

/* Returns whether an existing output is a part of an input folder: it, or what it links to, lies in the
 * folder. Not so are the folder "export", where exports go by default, and GGUF files, which nothing reads
 * from there. */
static bool is_part(const char *path, const struct stat *folder) {
    char through[PATH_BYTES], parent[PATH_BYTES];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const size_t size = strlen(path);
    if (size > 5 && strcmp(path + size - 5, ".gguf") == 0) return false;
    snprintf(parent, sizeof parent, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    if (lies_in(parent, folder, through)) return strcmp(through[0] ? through : name, "export") != 0;
    return lies_in(path, folder, through) && strcmp(through, "export") != 0;
}

/* Refuses an existing output that is an input, is a part of one, or is a folder that holds one. */
static weft_status check_inputs(const weft__output *o, const char *path, const struct stat *there) {
    char through[PATH_BYTES];
    for (size_t i = 0; i < o->count; i++) {
        const char *input = o->inputs[i], *how = NULL;
        struct stat read;
        if (stat(input, &read) != 0) continue;
        if (same_file(&read, there))
            how = "is";
        else if (S_ISDIR(read.st_mode) && is_part(path, &read))
            how = "belongs to";
        else if (S_ISDIR(there->st_mode) && lies_in(input, there, through))
            how = "holds";
        if (how)
            return weft__fail(NULL, WEFT_ERR_ARGUMENT,
                              "%s: %s %s the input %s, which is never replaced: choose another output",
                              o->command, path, how, input);
    }
    return WEFT_OK;
}

/* ---- files ---- */

static weft_status exists(const weft__output *o, const char *path, const char *why) {
    return weft__fail(NULL, WEFT_ERR_ARGUMENT, "%s: %s %s: choose another %s", o->command, path, why,
                      o->kept ? "name" : "output, or replace it with --force");
}

weft_status weft__output_check(const weft__output *o, const char *path) {
    char why[96];
    struct stat there;
    if (weft__is_stream(path) || stat(path, &there) != 0) return WEFT_OK; /* writing says what is wrong */
    WEFT_TRY(check_inputs(o, path, &there));
    if (!S_ISREG(there.st_mode))
        return weft__fail(NULL, WEFT_ERR_ARGUMENT, "%s: %s is a %s: name a file", o->command, path,
                          S_ISDIR(there.st_mode) ? "folder" : "device");
    if (o->force) return WEFT_OK;
    if (!(there.st_mode & 0222)) return exists(o, path, "is read-only");
    if (there.st_size == 0 || (o->wrote && o->wrote(path))) return WEFT_OK;
    snprintf(why, sizeof why, o->wrote ? "exists already and was not written by weft %s" : "exists already",
             o->command);
    return exists(o, path, why);
}

void weft__output_catch_stops(void) {
    static bool caught;
    if (!caught) weft__signals_install(NULL);
    caught = true;
}

weft_status weft__output_file(const weft__output *o, const char *path) {
    char folder[PATH_BYTES];
    const char *slash = strrchr(path, '/');
    WEFT_TRY(weft__output_check(o, path));
    weft__output_catch_stops();
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    (void)weft__remove_abandoned(folder, slash ? slash + 1 : path);
    return WEFT_OK;
}

weft_status weft__output_no_link(const weft__output *o, const char *path) {
    char target[PATH_BYTES];
    const ssize_t size = readlink(path, target, sizeof target);
    if (size < 0 || o->force) return WEFT_OK;
    return weft__fail(NULL, WEFT_ERR_ARGUMENT,
                      "%s: %s is a link to %.*s: name a folder with --out, or write there with --force",
                      o->command, path, (int)size, target);
}

weft_status weft__output_folder(const weft__output *o, const char *path) {
    struct stat there;
    char found[WEFT__ENTRY_NAME], why[WEFT__ENTRY_NAME + 96];
    if (stat(path, &there) == 0) {
        WEFT_TRY(check_inputs(o, path, &there));
        if (!S_ISDIR(there.st_mode))
            return weft__fail(NULL, WEFT_ERR_ARGUMENT, "%s: %s is a file: name a folder", o->command, path);
        WEFT_TRY(weft__find_foreign(NULL, path, NULL, found));
        snprintf(why, sizeof why, "holds %s, which weft %s did not write", found, o->command);
        if (found[0] && !o->force && !weft__marked(path, "export")) return exists(o, path, why);
    }
    weft__output_catch_stops();
    WEFT_TRY(weft_make_folder(NULL, path));
    WEFT_TRY(weft__mark(NULL, path, "export"));
    (void)weft__remove_abandoned(path, NULL);
    return WEFT_OK;
}
