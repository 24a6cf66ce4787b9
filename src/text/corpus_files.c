/* The text of a path: a file, or several files, one after the other in the order of their names.
 * Must not know: tokenizers. Read next: corpus.c. */
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/parse.h"
#include "data/tokens.h"
#include "text/corpus_files.h"
#include "text/tokenizer.h"

/* Several files while they are read. */
typedef struct reading {
    weft_context *ctx;
    bool utf8;
    size_t most, capacity;
    weft_bytes all;
} reading;

/* Makes room for `more` bytes and a final 0. */
static weft_status reserve(reading *r, size_t more) {
    const size_t wanted = r->all.size + more + 1;
    if (wanted <= r->capacity) return WEFT_OK;
    const size_t capacity = wanted < 2 * r->capacity ? 2 * r->capacity : wanted;
    uint8_t *data = weft__alloc_aligned(r->ctx, capacity);
    if (!data) return weft__fail_oom(r->ctx, capacity, "the texts");
    if (r->all.size) memcpy(data, r->all.data, r->all.size);
    const size_t size = r->all.size;
    weft_bytes_free(r->ctx, &r->all);
    r->all = (weft_bytes){data, size};
    r->capacity = capacity;
    return WEFT_OK;
}

bool weft__has_ending(const char *name, const char *ending) {
    const size_t size = strlen(name), end = strlen(ending);
    return size > end && strcasecmp(name + size - end, ending) == 0;
}

weft__text_form weft__text_form_of(const char *path) {
    if (weft__has_ending(path, ".jsonl") || weft__has_ending(path, ".jsonl.gz")) return WEFT__TEXT_LINES;
    return weft__has_ending(path, ".parquet") || weft__is_parquet(path) ? WEFT__TEXT_ROWS : WEFT__TEXT_PLAIN;
}

static weft_status append(reading *r, const char *path) {
    weft_bytes file;
    if (r->all.size >= r->most)
        return weft__fail(r->ctx, WEFT_ERR_FORMAT, "%s: the texts are larger than %zu bytes", path, r->most);
    WEFT_TRY(weft_read_file(r->ctx, path, r->most - r->all.size, &file));
    const weft__span span = weft__span_of(path, &file);
    weft_status status = r->utf8 ? weft__check_utf8(r->ctx, &span) : WEFT_OK;
    if (status == WEFT_OK) status = reserve(r, span.bytes + 1);
    if (status == WEFT_OK && span.bytes) {
        memcpy(r->all.data + r->all.size, span.text, span.bytes);
        r->all.size += span.bytes;
        if (span.text[span.bytes - 1] != '\n') r->all.data[r->all.size++] = '\n';
        r->all.data[r->all.size] = 0;
    }
    weft_bytes_free(r->ctx, &file);
    return status;
}

/* Lists the files that match a pattern or, if `names` is given, those names in a folder: "*" or ".*". Then
 * none is no error. */
static weft_status list(weft_context *ctx, const char *path, const char *names, glob_t *found) {
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
    WEFT_TRY(list(ctx, path, ".*", &found));
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *name = strrchr(found.gl_pathv[i], '/') + 1;
        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0) ++*hidden;
    }
    globfree(&found);
    return WEFT_OK;
}

/* In a folder with Parquet files, these are the texts: leaves out the others, such as README.md. */
static void keep_parquet(weft_context *ctx, weft_corpus_files *files, weft__names *paths) {
    size_t kept = 0, found = 0;
    for (size_t i = 0; i < paths->count; i++) found += weft__text_form_of(paths->at[i]) == WEFT__TEXT_ROWS;
    if (found == 0) return;
    for (size_t i = 0; i < paths->count; i++) {
        if (weft__text_form_of(paths->at[i]) == WEFT__TEXT_ROWS)
            paths->at[kept++] = paths->at[i];
        else
            weft__free(ctx, paths->at[i]);
    }
    files->read -= paths->count - kept;
    files->others += paths->count - kept;
    paths->count = kept;
}

weft_status weft__text_paths(weft_context *ctx, const char *path, weft_corpus_files *files,
                             weft__names *paths, bool *several) {
    struct stat what;
    glob_t found = {0};
    WEFT_TRY(weft__numbered_range(ctx, path, paths, several));
    if (*several) {
        files->read += paths->count;
        return WEFT_OK;
    }
    const bool exists = stat(path, &what) == 0, folder = exists && S_ISDIR(what.st_mode);
    *several = folder || (!exists && strpbrk(path, "*?["));
    if (!*several) {
        files->read++;
        return weft__names_add(ctx, paths, weft__strdup(ctx, path));
    }
    if (folder) WEFT_TRY(count_hidden(ctx, path, &files->hidden));
    WEFT_TRY(list(ctx, path, folder ? "*" : NULL, &found));
    weft_status status = WEFT_OK;
    for (size_t i = 0; i < found.gl_pathc && status == WEFT_OK; i++) {
        const char *file = found.gl_pathv[i];
        const bool is_folder = stat(file, &what) == 0 && S_ISDIR(what.st_mode);
        ++*(is_folder ? &files->folders : &files->read);
        if (!is_folder) status = weft__names_add(ctx, paths, weft__strdup(ctx, file));
    }
    globfree(&found);
    if (folder) keep_parquet(ctx, files, paths);
    return status;
}

weft_status weft__text_read(weft_context *ctx, const char *path, bool utf8, size_t max_bytes,
                            weft_corpus_files *files, weft_bytes *out) {
    reading r = {.ctx = ctx, .utf8 = utf8, .most = max_bytes ? max_bytes : SIZE_MAX / 4};
    weft__names paths = {0};
    bool several;
    *out = (weft_bytes){0};
    weft_status status = weft__text_paths(ctx, path, files, &paths, &several);
    if (status == WEFT_OK && !several) status = weft_read_file(ctx, path, max_bytes, out);
    for (size_t i = 0; i < paths.count && several && status == WEFT_OK; i++) status = append(&r, paths.at[i]);
    weft__names_free(ctx, &paths);
    if (status == WEFT_OK && several && r.all.size == 0)
        status = weft__fail(ctx, WEFT_ERR_FORMAT, "%s: this folder holds no text", path);
    if (status == WEFT_OK && several)
        *out = r.all;
    else
        weft_bytes_free(ctx, &r.all);
    return status;
}
