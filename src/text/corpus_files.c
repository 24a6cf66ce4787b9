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

static weft__text_form form_of(const char *path) {
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
static void keep_parquet(weft_context *ctx, weft__text_files *files) {
    weft__names *names = &files->names;
    size_t kept = 0, found = 0;
    for (size_t i = 0; i < names->count; i++) found += files->forms[i] == WEFT__TEXT_ROWS;
    if (found == 0) return;
    for (size_t i = 0; i < names->count; i++) {
        if (files->forms[i] == WEFT__TEXT_ROWS)
            names->at[kept++] = names->at[i];
        else
            weft__free(ctx, names->at[i]);
    }
    for (size_t i = 0; i < kept; i++) files->forms[i] = WEFT__TEXT_ROWS;
    files->found.read -= names->count - kept;
    files->found.others += names->count - kept;
    names->count = kept;
}

/* Adds the files of a folder, or those that match a pattern. */
static weft_status list_several(weft_context *ctx, const char *path, bool folder, weft__text_files *files) {
    struct stat what;
    glob_t found = {0};
    if (folder) WEFT_TRY(count_hidden(ctx, path, &files->found.hidden));
    WEFT_TRY(list(ctx, path, folder ? "*" : NULL, &found));
    weft_status status = WEFT_OK;
    for (size_t i = 0; i < found.gl_pathc && status == WEFT_OK; i++) {
        const char *file = found.gl_pathv[i];
        if (stat(file, &what) == 0 && S_ISDIR(what.st_mode))
            files->found.folders++;
        else
            status = weft__names_add(ctx, &files->names, weft__strdup(ctx, file));
    }
    globfree(&found);
    return status;
}

weft_status weft__text_files_list(weft_context *ctx, const char *path, weft__text_files *files) {
    struct stat what;
    bool range;
    *files = (weft__text_files){0};
    WEFT_TRY(weft__numbered_range(ctx, path, &files->names, &range));
    const bool exists = stat(path, &what) == 0, folder = !range && exists && S_ISDIR(what.st_mode),
               pattern = !range && !exists && strpbrk(path, "*?[");
    files->several = range || folder || pattern;
    if (folder || pattern)
        WEFT_TRY(list_several(ctx, path, folder, files));
    else if (!range)
        WEFT_TRY(weft__names_add(ctx, &files->names, weft__strdup(ctx, path)));
    const size_t count = files->names.count;
    files->forms = weft__array(ctx, count + 1, sizeof *files->forms); /* never NULL for an empty folder */
    if (!files->forms) return weft__fail_oom(ctx, count * sizeof *files->forms, "a list of files");
    for (size_t i = 0; i < count; i++) files->forms[i] = form_of(files->names.at[i]);
    files->found.read = count;
    if (folder) keep_parquet(ctx, files);
    return WEFT_OK;
}

void weft__text_files_free(weft_context *ctx, weft__text_files *files) {
    weft__names_free(ctx, &files->names);
    weft__free(ctx, files->forms);
    *files = (weft__text_files){0};
}

weft_status weft__text_read(weft_context *ctx, const char *path, const weft__text_files *files, bool utf8,
                            size_t max_bytes, weft_bytes *out) {
    reading r = {.ctx = ctx, .utf8 = utf8, .most = max_bytes ? max_bytes : SIZE_MAX / 4};
    weft_status status = WEFT_OK;
    *out = (weft_bytes){0};
    if (!files->several) return weft_read_file(ctx, path, max_bytes, out);
    for (size_t i = 0; i < files->names.count && status == WEFT_OK; i++)
        status = append(&r, files->names.at[i]);
    if (status == WEFT_OK && r.all.size == 0)
        status = weft__fail(ctx, WEFT_ERR_FORMAT, "%s: this folder holds no text", path);
    if (status == WEFT_OK)
        *out = r.all;
    else
        weft_bytes_free(ctx, &r.all);
    return status;
}
