/* The text of a path: a file, or several files, one after the other in the order of their names.
 * Must not know: tokenizers. Read next: corpus.c. */
#include <string.h>

#include "data/parse.h"
#include "text/corpus_files.h"
#include "text/json_lines.h"
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

static weft__text_form form_of(const char *path) {
    if (weft__has_ending(path, ".jsonl") || weft__has_ending(path, ".jsonl.gz")) return WEFT__TEXT_LINES;
    if ((weft__has_ending(path, ".json") || weft__has_ending(path, ".json.gz")) && weft__json_lines_are(path))
        return WEFT__TEXT_LINES;
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

weft_status weft__text_files_list(weft_context *ctx, const char *path, weft__text_files *files) {
    weft__file_list list;
    *files = (weft__text_files){0};
    const weft_status status = weft__file_list_read(ctx, path, &list);
    const size_t count = list.names.count;
    files->names = list.names; /* also after a failure: they are freed with the files */
    WEFT_TRY(status);
    files->several = list.several;
    files->found = (weft_corpus_files){.read = count, .hidden = list.hidden, .folders = list.folders};
    files->forms = weft__array(ctx, count + 1, sizeof *files->forms); /* never NULL for an empty folder */
    if (!files->forms) return weft__fail_oom(ctx, count * sizeof *files->forms, "a list of files");
    for (size_t i = 0; i < count; i++) files->forms[i] = form_of(files->names.at[i]);
    if (list.folder) keep_parquet(ctx, files);
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
