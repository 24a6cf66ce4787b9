/* Lists the texts of a path without reading them: 24 bytes of memory for each document, and the names of one
 * tar file at a time. Must not know: tokenizers, libarchive. Read next: passages.c. */
#include "text/documents.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/image_shards.h"
#include "data/parse.h"
#include "data/tokens.h"

/* A member of the tar file that is being listed. */
typedef struct entry {
    union {
        size_t at; /* in listing.names, while it grows */
        const char *text;
    } name;
    weft__document document;
} entry;

typedef struct listing {
    weft_context *ctx;
    weft__documents *d;
    size_t file;
    weft__buffer names;
    entry *entries;
    size_t count, capacity;
} listing;

weft_status weft__documents_files(weft_context *ctx, const char *path, weft__text_files *files) {
    *files = (weft__text_files){.several = true};
    WEFT_TRY(weft__shard_paths(ctx, path, &files->names));
    return files->names.count ? WEFT_OK : weft__text_files_list(ctx, path, files);
}

/* Tells whether the files are tar files. */
static bool are_tars(const weft__text_files *files) { return files->names.count > 0 && !files->forms; }

bool weft__documents_several(const weft__text_files *files) {
    if (are_tars(files)) return true;
    for (size_t i = 0; i < files->names.count; i++)
        if (files->forms[i] != WEFT__TEXT_PLAIN) return true;
    return false;
}

static weft_status add_document(weft__documents *d, const weft__document *document, uint64_t bytes) {
    if (!weft__grow(d->ctx, &d->list, &d->capacity, d->count, sizeof *d->list))
        return weft__fail_oom(d->ctx, (d->count + 1) * sizeof *d->list, "the places of texts");
    d->list[d->count++] = *document;
    d->bytes += bytes;
    d->found.read++;
    return WEFT_OK;
}

/* ---- members of tar files ---- */

static weft_status add_entry(void *user, const weft__tar_member *m) {
    listing *l = user;
    const bool lines = weft__has_ending(m->name, ".jsonl");
    if (m->name[0] == '.' || strstr(m->name, "/.")) {
        l->d->found.hidden++;
        return WEFT_OK;
    }
    if (!lines && !weft__has_ending(m->name, ".txt") && !weft__has_ending(m->name, ".md")) {
        l->d->found.others++;
        return WEFT_OK;
    }
    if (m->no_bytes)
        return weft__fail(l->ctx, WEFT_ERR_FORMAT,
                          "%s/%s: this member is %s: pack the tar file with the files themselves (tar "
                          "--dereference --hard-dereference)",
                          weft__shards_path(l->d->files, l->file), m->name, m->no_bytes);
    if (!weft__grow(l->ctx, &l->entries, &l->capacity, l->count, sizeof *l->entries))
        return weft__fail_oom(l->ctx, (l->count + 1) * sizeof *l->entries, "members of a tar file");
    l->entries[l->count++] = (entry){.name.at = l->names.bytes,
                                     .document = {.at = m->data,
                                                  .size = m->size,
                                                  .file = (uint32_t)l->file,
                                                  .form = lines ? WEFT__TEXT_LINES : WEFT__TEXT_PLAIN}};
    weft__buffer_put(&l->names, m->name, strlen(m->name) + 1);
    return weft__buffer_check(&l->names);
}

static int documents_by_name(const void *left, const void *right) {
    return strcmp(((const entry *)left)->name.text, ((const entry *)right)->name.text);
}

static weft_status list_tar(listing *l) {
    const char *path = weft__shards_path(l->d->files, l->file);
    const uint64_t before = l->d->bytes;
    l->count = 0;
    weft__buffer_set(&l->names, "", 0);
    WEFT_TRY(weft__shards_list(l->ctx, l->d->files, l->file, add_entry, l));
    for (size_t i = 0; i < l->count; i++) l->entries[i].name.text = l->names.text + l->entries[i].name.at;
    if (l->count) qsort(l->entries, l->count, sizeof *l->entries, documents_by_name);
    for (size_t i = 0; i < l->count; i++) {
        if (i > 0 && documents_by_name(&l->entries[i - 1], &l->entries[i]) == 0)
            return weft__fail(l->ctx, WEFT_ERR_FORMAT,
                              "%s/%s: two members of the tar file have this name: remove one", path,
                              l->entries[i].name.text);
        WEFT_TRY(add_document(l->d, &l->entries[i].document, l->entries[i].document.size));
    }
    if (l->d->bytes > before) return WEFT_OK;
    return weft__fail(
        l->ctx, WEFT_ERR_FORMAT,
        "%s: this tar file holds no texts (.txt, .md or .jsonl, not empty): remove it, or write "
        "it again",
        path);
}

static weft_status list_tars(weft_context *ctx, weft__documents *d) {
    listing l = {.ctx = ctx, .d = d, .names = {.ctx = ctx}};
    weft_status status = WEFT_OK;
    for (; status == WEFT_OK && l.file < weft__shards_count(d->files); l.file++) status = list_tar(&l);
    weft__buffer_free(&l.names);
    weft__free(ctx, l.entries);
    return status;
}

/* ---- Parquet files ---- */

/* A Parquet file that is measured, or read. */
typedef struct rows_use {
    weft_context *ctx;
    const weft__documents *d;
    size_t file;
    uint64_t row, end;
    weft__rows_size size;
} rows_use;

static weft_status measure_rows(void *user, int fd, const char *path) {
    rows_use *u = user;
    const weft__rows_file file = {fd, path, u->file};
    return weft__rows_measure(u->ctx, u->d->rows, &file, &u->size);
}

static weft_status read_rows(void *user, int fd, const char *path) {
    const rows_use *u = user;
    const weft__rows_file file = {fd, path, u->file};
    return weft__rows_read(u->ctx, u->d->rows, &file, u->row, u->end);
}

static weft_status list_rows(weft_context *ctx, weft__documents *d, size_t i) {
    const char *path = weft__shards_path(d->files, i);
    rows_use u = {.ctx = ctx, .d = d, .file = i};
    WEFT_TRY(weft__rows_check(ctx, path));
    if (!d->rows) WEFT_TRY(weft__rows_open(d->ctx, path, "text", &d->rows));
    WEFT_TRY(weft__shards_use(ctx, d->files, i, measure_rows, &u));
    d->closed = true;
    return add_document(d,
                        &(weft__document){.size = u.size.rows, .file = (uint32_t)i, .form = WEFT__TEXT_ROWS},
                        u.size.rows ? u.size.bytes : 0);
}

weft_status weft__documents_row(const weft__documents *d, size_t i, uint64_t row, uint64_t end,
                                const char **text, size_t *bytes) {
    rows_use u = {.d = d, .file = d->list[i].file, .row = row, .end = end};
    if (weft__rows_held(d->rows, u.file, row, text, bytes)) return WEFT_OK;
    WEFT_TRY(weft__shards_use(NULL, d->files, u.file, read_rows, &u));
    (void)weft__rows_held(d->rows, u.file, row, text, bytes); /* it is there */
    return WEFT_OK;
}

/* ---- plain files ---- */

/* Unpacks a file, which is packed with gzip, into memory. */
static weft_status unpack_file(weft_context *ctx, weft__documents *d, size_t i, uint64_t *size) {
    const char *path = weft__shards_path(d->files, i);
    const size_t count = weft__shards_count(d->files);
    if (!d->unpacked && !(d->unpacked = weft__array(ctx, count, sizeof *d->unpacked)))
        return weft__fail_oom(ctx, count * sizeof *d->unpacked, "unpacked files");
    WEFT_TRY(weft_read_file(ctx, path, 0, &d->unpacked[i]));
    *size = d->unpacked[i].size;
    return WEFT_OK;
}

static weft_status list_plain(weft_context *ctx, const weft__text_form *forms, bool unpack,
                              weft__documents *d) {
    for (size_t i = 0; i < weft__shards_count(d->files); i++) {
        const char *path = weft__shards_path(d->files, i);
        uint64_t size;
        unsigned char head[3] = {0};
        const weft__text_form form = forms[i];
        WEFT_TRY(weft__shards_plain(ctx, d->files, i, &size));
        if (form == WEFT__TEXT_ROWS) {
            WEFT_TRY(list_rows(ctx, d, i));
            continue;
        }
        WEFT_TRY(
            weft__shards_read(ctx, d->files, i, 0, head, size < sizeof head ? (size_t)size : sizeof head));
        const bool packed = weft__is_gzip(head, sizeof head);
        if (packed && !unpack)
            return weft__fail(
                ctx, WEFT_ERR_FORMAT,
                "%s: the file is packed with gzip, so it cannot be read from its middle: unpack "
                "it with gzip -d, or leave out data.in_files",
                path);
        if (packed) WEFT_TRY(unpack_file(ctx, d, i, &size));
        d->closed = d->closed || form == WEFT__TEXT_LINES;
        WEFT_TRY(add_document(d, &(weft__document){.size = size, .file = (uint32_t)i, .form = form}, size));
    }
    return WEFT_OK;
}

/* ---- all ---- */

weft_status weft__documents_list(weft_context *ctx, const char *path, const weft__text_files *files,
                                 bool unpack, weft__documents *d) {
    const weft__names *paths = &files->names;
    const bool several = files->several;
    *d = (weft__documents){.ctx = ctx, .closed = several, .tars = are_tars(files), .found = files->found};
    d->found.read = 0; /* texts are counted */
    if (paths->count == 0) return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: this folder holds no text", path);
    if (paths->count > WEFT__SHARDS_MOST)
        return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: there are more than %d files: join some", path,
                          WEFT__SHARDS_MOST);
    weft_status status = weft__shards_new(ctx, paths, &d->files);
    if (status == WEFT_OK) status = d->tars ? list_tars(ctx, d) : list_plain(ctx, files->forms, unpack, d);
    if (status == WEFT_OK && d->bytes == 0)
        status = weft__fail(ctx, WEFT_ERR_FORMAT, "%s: %s", path,
                            d->rows   ? "no row holds a text"
                            : several ? "this folder holds no text"
                                      : "the file is empty");
    if (status == WEFT_OK && !strchr(path, '['))
        d->missing = weft__numbered_gap(ctx, paths->at, paths->count);
    return status;
}

void weft__documents_free(weft__documents *d) {
    weft__rows_free(d->rows);
    for (size_t i = 0; d->unpacked && i < weft__shards_count(d->files); i++)
        weft_bytes_free(d->ctx, &d->unpacked[i]);
    weft__free(d->ctx, d->unpacked);
    weft__shards_free(d->ctx, d->files);
    weft__free(d->ctx, d->list);
    weft__free(d->ctx, d->missing);
    *d = (weft__documents){0};
}

/* ---- reading ---- */

weft_status weft__documents_read(const weft__documents *d, size_t i, uint64_t from, void *to, size_t size) {
    const weft__document *at = &d->list[i];
    if (d->unpacked && d->unpacked[at->file].data) {
        memcpy(to, d->unpacked[at->file].data + from, size); /* callers stay within the document */
        return WEFT_OK;
    }
    return weft__shards_read(NULL, d->files, at->file, at->at + from, to, size);
}

/* A member whose name is wanted. */
typedef struct wanted {
    uint64_t at;
    char *name;
    size_t size;
} wanted;

static weft_status find_name(void *user, const weft__tar_member *m) {
    const wanted *w = user;
    if (m->data == w->at && !m->no_bytes && m->size > 0) snprintf(w->name, w->size, "/%s", m->name);
    return WEFT_OK;
}

/* Names are not in memory, so the tar file is listed once more. */
void weft__documents_name(const weft__documents *d, size_t i, char *name, size_t size) {
    const weft__document *at = &d->list[i];
    const int n = snprintf(name, size, "%.2000s", weft__shards_path(d->files, at->file));
    if (!d->tars || n < 0 || (size_t)n >= size) return;
    wanted w = {at->at, name + n, size - (size_t)n};
    (void)weft__shards_list(NULL, d->files, at->file, find_name, &w);
}
