/* Parquet files as tables, see parquet.h. Must not know: what columns are for. Read next: csv.c, duckdb.h. */
#define _POSIX_C_SOURCE 200809L
#include "data/parquet.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "data/duckdb.h"
#include "data/file_list.h"
#include "data/parquet_rows.h"
#include "data/parse.h"
#include "io/publish.h" /* weft__fail_io */

/* ---- files ---- */

bool weft__is_parquet(const char *path) {
    char head[4] = "";
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) return false;
    const bool is = pread(fd, head, sizeof head, 0) == (ssize_t)sizeof head && memcmp(head, "PAR1", 4) == 0;
    close(fd);
    return is;
}

/* A file that is there and has the name of one, or its first bytes. */
static bool counts_as_parquet(const char *path) {
    return weft__has_ending(path, ".parquet") ? access(path, F_OK) == 0 : weft__is_parquet(path);
}

weft_status weft__parquet_files(weft_context *ctx, const char *path, weft__names *files) {
    weft__file_list list;
    const char *other = NULL;
    *files = (weft__names){0};
    weft_status status = weft__file_list_read(ctx, path, &list);
    for (size_t i = 0; status == WEFT_OK && i < list.names.count; i++) {
        if (counts_as_parquet(list.names.at[i]))
            status = weft__names_add(ctx, files, weft__strdup(ctx, list.names.at[i]));
        else
            other = list.names.at[i];
    }
    if (status == WEFT_OK && files->count && other && !list.folder)
        status = weft__fail(ctx, WEFT_ERR_FORMAT,
                            "%s: this is no Parquet file, but %s is one: name files of one kind", other,
                            files->at[0]);
    weft__file_list_free(ctx, &list);
    return status;
}

bool weft__parquet_folder(const char *path) {
    DIR *dir = weft__opendir(path);
    struct stat what;
    bool found = false, other = false;
    int error = 0;
    if (!dir) return false;
    for (const struct dirent *e; !other && (e = weft__next_entry(dir, &error));) {
        if (e->d_name[0] == '.') continue;
        if (weft__has_ending(e->d_name, ".parquet"))
            found = true;
        else
            other = weft__is_image_name(e->d_name) ||
                    (fstatat(dirfd(dir), e->d_name, &what, 0) == 0 && S_ISDIR(what.st_mode));
    }
    closedir(dir);
    return found && !other && !error;
}

/* ---- columns ---- */

struct weft__parquet {
    weft_context *ctx;
    const weft__names *files;
    weft__duckdb *db;
    weft__names columns, types; /* of file 0 */
};

weft_status weft__parquet_open(weft_context *ctx, const weft__names *files, weft__parquet **out) {
    weft__parquet *p = *out = weft__zalloc(ctx, sizeof *p);
    if (!p) return weft__fail_oom(ctx, sizeof *p, files->at[0]);
    p->ctx = ctx;
    p->files = files;
    weft_status status = weft__rows_check(ctx, files->at[0]); /* what is wrong with the file comes first */
    if (status == WEFT_OK) status = weft__duckdb_open(ctx, files->at[0], &p->db);
    if (status == WEFT_OK) return WEFT_OK;
    weft__parquet_close(p);
    *out = NULL;
    return status;
}

void weft__parquet_close(weft__parquet *p) {
    if (!p) return;
    weft__duckdb_close(p->db);
    weft__names_free(p->ctx, &p->columns);
    weft__names_free(p->ctx, &p->types);
    weft__free(p->ctx, p);
}

/* The columns of a file. */
typedef struct columns {
    weft_context *ctx;
    weft__names names, types;
} columns;

static char *copy_cell(weft_context *ctx, const weft__duckdb_cell *cell) {
    char *text = weft__alloc(ctx, cell->bytes + 1);
    if (!text) return NULL;
    if (cell->bytes) memcpy(text, cell->text, cell->bytes);
    text[cell->bytes] = '\0';
    return text;
}

static weft_status add_column(void *user, const weft__duckdb_cell *cells) {
    columns *c = user;
    WEFT_TRY(weft__names_add(c->ctx, &c->names, copy_cell(c->ctx, &cells[0])));
    return weft__names_add(c->ctx, &c->types, copy_cell(c->ctx, &cells[1]));
}

static weft_status list_columns(const weft__parquet *p, size_t i, int fd, columns *c) {
    char query[120];
    c->ctx = p->ctx;
    snprintf(query, sizeof query, "DESCRIBE SELECT * FROM read_parquet('/dev/fd/%d')", fd);
    return weft__duckdb_query(p->ctx, p->db, p->files->at[i], query, &(weft__duckdb_visit){add_column, c, 2});
}

/* Returns the place of a name in a list; its length if it is not there. */
static size_t column_place(const weft__names *names, const char *name) {
    size_t i = 0;
    while (i < names->count && strcmp(names->at[i], name) != 0) i++;
    return i;
}

/* Compares the columns of a file with those of file 0. */
static weft_status check_columns(const weft__parquet *p, size_t i, const columns *c) {
    const char *file = p->files->at[i], *first = p->files->at[0];
    for (size_t k = 0; k < p->columns.count; k++) {
        const char *name = p->columns.at[k];
        const size_t at = column_place(&c->names, name);
        if (at == c->names.count)
            return weft__fail(p->ctx, WEFT_ERR_FORMAT,
                              "%s: no column \"%.100s\", but %s has it: all files of a table have the same "
                              "columns",
                              file, name, first);
        if (strcmp(c->types.at[at], p->types.at[k]) != 0)
            return weft__fail(
                p->ctx, WEFT_ERR_FORMAT,
                "%s: the column \"%.100s\" has the type %.60s, but %.60s in %s: write all files "
                "of a table with the same types",
                file, name, c->types.at[at], p->types.at[k], first);
    }
    for (size_t k = 0; k < c->names.count; k++)
        if (column_place(&p->columns, c->names.at[k]) == p->columns.count)
            return weft__fail(p->ctx, WEFT_ERR_FORMAT,
                              "%s: the column \"%.100s\" is not in %s: all files of a table have the same "
                              "columns",
                              file, c->names.at[k], first);
    return WEFT_OK;
}

/* Notes the columns of file 0, or checks those of another file. */
static weft_status take_columns(weft__parquet *p, size_t i, int fd) {
    columns c = {0};
    weft_status status = list_columns(p, i, fd, &c);
    if (status == WEFT_OK && i > 0) status = check_columns(p, i, &c);
    if (status == WEFT_OK && i == 0) {
        p->columns = c.names;
        p->types = c.types;
        return WEFT_OK;
    }
    weft__names_free(p->ctx, &c.names);
    weft__names_free(p->ctx, &c.types);
    return status;
}

/* ---- rows ---- */

static void put_csv_cell(weft__buffer *csv, const char *text, size_t bytes) {
    bool plain = bytes > 0; /* "" is an empty text, and nothing is null */
    for (size_t i = 0; plain && i < bytes; i++)
        plain = text[i] != ',' && text[i] != '"' && text[i] != '\n' && text[i] != '\r';
    if (plain)
        weft__buffer_put(csv, text, bytes);
    else
        weft__duckdb_quote(csv, text, bytes, '"');
}

/* The text of a file while it grows. */
typedef struct csv_text {
    const char *path;
    size_t columns;
    weft__buffer *csv;
} csv_text;

static weft_status put_csv_row(void *user, const weft__duckdb_cell *cells) {
    const csv_text *c = user;
    for (size_t k = 0; k < c->columns; k++) {
        if (k) weft__buffer_put(c->csv, ",", 1);
        if (cells[k].text) put_csv_cell(c->csv, cells[k].text, cells[k].bytes);
    }
    weft__buffer_put(c->csv, "\n", 1);
    if (c->csv->full)
        return weft__fail(c->csv->ctx, WEFT_ERR_FORMAT,
                          "%s: the rows become more than %zu bytes of text: if that is right, raise "
                          "data.max_bytes, or write the file as csv",
                          c->path, c->csv->most);
    return weft__buffer_check(c->csv);
}

/* Writes the rows as csv text. DuckDB takes *, ? and [ in a name as a pattern, and a quote would end it, so
 * it gets the names of open files. */
static weft_status put_rows(const weft__parquet *p, size_t i, int from, weft__buffer *csv) {
    char rest[80];
    weft__buffer query = {0};
    csv_text text = {p->files->at[i], p->columns.count, csv};
    for (size_t k = 0; k < p->columns.count; k++) {
        const char *name = p->columns.at[k];
        if (i == 0 && k) weft__buffer_put(csv, ",", 1);
        if (i == 0) put_csv_cell(csv, name, strlen(name));
        weft__buffer_put(&query, k ? ", " : "SELECT ", k ? 2 : 7);
        weft__duckdb_quote(&query, name, strlen(name), '"');
        weft__buffer_put(&query, "::VARCHAR", 9);
    }
    if (i == 0) weft__buffer_put(csv, "\n", 1);
    snprintf(rest, sizeof rest, " FROM read_parquet('/dev/fd/%d')", from);
    weft__buffer_put(&query, rest, strlen(rest) + 1); /* with the final 0 */
    const weft__duckdb_visit visit = {put_csv_row, &text, p->columns.count};
    const weft_status status = query.failed
                                   ? weft__fail_oom(p->ctx, query.bytes, "a query")
                                   : weft__duckdb_query(p->ctx, p->db, text.path, query.text, &visit);
    weft__buffer_free(&query);
    return status;
}

weft_status weft__parquet_read(weft__parquet *p, size_t i, size_t max_bytes, weft__buffer *csv) {
    const char *path = p->files->at[i];
    uint64_t most = 0;
    *csv = (weft__buffer){.ctx = p->ctx};
    const int from = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (from < 0) return weft__fail_io(p->ctx, "open", path, errno);
    weft_status status = weft__rows_check(p->ctx, path);
    if (status == WEFT_OK) status = weft__duckdb_limit(p->ctx, p->db, path, from, max_bytes, &most);
    if (status == WEFT_OK) status = take_columns(p, i, from);
    csv->most = max_bytes ? max_bytes : (size_t)most;
    if (status == WEFT_OK) status = put_rows(p, i, from, csv);
    if (status != WEFT_OK) weft__buffer_free(csv);
    close(from);
    return status;
}
