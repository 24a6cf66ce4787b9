/* Rows of Parquet files as texts, see parquet_rows.h. A query names the rows by their numbers in the file
 * (file_row_number), by which DuckDB skips row groups. Must not know: what texts are for. Read next:
 * duckdb.h. */
#include "data/parquet_rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "data/duckdb.h"
#include "data/parse.h"

enum {
    WINDOW = 8 << 20, /* bytes of text that are read at once, about */
    KEPT = 256 << 10  /* of them, kept when those that follow are read */
};

struct weft__rows {
    weft_context *ctx;
    weft__duckdb *db;
    const char *column; /* NULL: rows are JSON */
    weft__buffer texts; /* one after the other */
    size_t *ends;       /* [count] of each row in `texts` */
    size_t count, capacity;
    uint64_t number, first; /* the file, and the number of its first row in `texts` */
    uint64_t row_bytes;     /* of a text, about; 0: not known */
    uint64_t wanted;        /* rows that were asked for last */
    uint64_t most, read; /* bytes of texts and `ends`: that may be read one after the other, and that were */
    weft__buffer select; /* what a query asks of each row */
};

weft_status weft__rows_check(weft_context *ctx, const char *path) {
    if (weft__is_parquet(path)) return WEFT_OK;
    return weft__fail(
        ctx, WEFT_ERR_FORMAT,
        "%s: this is no Parquet file: it does not begin with PAR1: copy the file again (a small "
        "file may be a pointer of git-lfs: git lfs pull)",
        path);
}

weft_status weft__rows_open(weft_context *ctx, const char *path, const char *column, weft__rows **out) {
    weft__rows *r = *out = weft__zalloc(ctx, sizeof *r);
    if (!r) return weft__fail_oom(ctx, sizeof *r, "rows of Parquet files");
    r->ctx = ctx;
    r->column = column;
    const weft_status status = weft__duckdb_open(ctx, path, &r->db);
    if (status != WEFT_OK) {
        weft__rows_free(r);
        *out = NULL;
    }
    return status;
}

void weft__rows_free(weft__rows *r) {
    if (!r) return;
    weft__duckdb_close(r->db);
    weft__buffer_free(&r->texts);
    weft__buffer_free(&r->select);
    weft__free(NULL, r->ends);
    weft__free(r->ctx, r);
}

/* ---- columns ---- */

/* The columns of a file while they are listed. */
typedef struct listing {
    weft__rows *rows;
    bool found, texts; /* there is the column, of texts */
    char type[64];     /* of the column */
    char names[400];   /* for a message */
} listing;

static weft_status list_column(void *user, const weft__duckdb_cell *cells) {
    listing *l = user;
    weft__buffer *select = &l->rows->select;
    const weft__duckdb_cell name = cells[0], type = cells[1];
    const size_t used = strlen(l->names);
    if (!name.text || !type.text) return WEFT_OK;
    snprintf(l->names + used, sizeof l->names - used, "%s\"%.*s\"", used ? ", " : "",
             (int)(name.bytes < 100 ? name.bytes : 100), name.text);
    if (!l->rows->column) {
        weft__buffer_put(select, select->bytes ? ", " : "{", select->bytes ? 2 : 1);
        weft__duckdb_quote(select, name.text, name.bytes, '\'');
        weft__buffer_put(select, ": ", 2);
        weft__duckdb_quote(select, name.text, name.bytes, '"');
    } else if (name.bytes == strlen(l->rows->column) && memcmp(name.text, l->rows->column, name.bytes) == 0) {
        l->found = true;
        l->texts = type.bytes == 7 && memcmp(type.text, "VARCHAR", 7) == 0;
        snprintf(l->type, sizeof l->type, "%.*s", (int)(type.bytes < 60 ? type.bytes : 60), type.text);
        weft__duckdb_quote(select, name.text, name.bytes, '"');
    }
    return WEFT_OK;
}

/* Finds out which columns there are, and how a query asks for the text of a row. */
static weft_status list_columns(weft_context *ctx, weft__rows *r, const weft__rows_file *file) {
    char query[120];
    listing l = {.rows = r};
    weft__buffer_set(&r->select, "", 0);
    snprintf(query, sizeof query, "DESCRIBE SELECT * FROM read_parquet('/dev/fd/%d')", file->fd);
    WEFT_TRY(weft__duckdb_query(ctx, r->db, file->path, query, &(weft__duckdb_visit){list_column, &l, 2}));
    if (!r->column) {
        weft__buffer_put(&r->select, "}", 1);
        return weft__buffer_check(&r->select);
    }
    if (!l.found)
        return weft__fail(ctx, WEFT_ERR_FORMAT,
                          "%s: no column \"%s\"; the columns are %s: rename the one that holds the texts",
                          file->path, r->column, l.names);
    if (!l.texts)
        return weft__fail(ctx, WEFT_ERR_FORMAT,
                          "%s: the column \"%s\" has the type %s: texts have the type VARCHAR (a string)",
                          file->path, r->column, l.type);
    return weft__buffer_check(&r->select);
}

static weft_status take_size(void *user, const weft__duckdb_cell *cells) {
    weft__rows_size *size = user;
    char text[2][32] = {"", ""};
    for (int i = 0; i < 2; i++)
        if (cells[i].text && cells[i].bytes < sizeof text[i]) memcpy(text[i], cells[i].text, cells[i].bytes);
    size->rows = strtoull(text[0], NULL, 10);
    size->bytes = strtoull(text[1], NULL, 10);
    return WEFT_OK;
}

weft_status weft__rows_measure(weft_context *ctx, weft__rows *r, const weft__rows_file *file,
                               weft__rows_size *size) {
    char query[400];
    uint64_t most;
    *size = (weft__rows_size){0};
    WEFT_TRY(weft__duckdb_limit(ctx, r->db, file->path, file->fd, r->most, &most));
    if (most > r->most) r->most = most;
    WEFT_TRY(list_columns(ctx, r, file));
    snprintf(query, sizeof query,
             "SELECT (SELECT sum(num_rows) FROM parquet_file_metadata('/dev/fd/%d'))::VARCHAR, (SELECT "
             "sum(total_uncompressed_size) FROM parquet_metadata('/dev/fd/%d')%s%s%s)::VARCHAR",
             file->fd, file->fd, r->column ? " WHERE path_in_schema = '" : "", r->column ? r->column : "",
             r->column ? "'" : "");
    WEFT_TRY(weft__duckdb_query(ctx, r->db, file->path, query, &(weft__duckdb_visit){take_size, size, 2}));
    if (size->rows) r->row_bytes = size->bytes / size->rows + 1;
    return WEFT_OK;
}

/* ---- rows ---- */

typedef struct reading {
    weft_context *ctx;
    weft__rows *rows;
    const weft__rows_file *file;
    size_t before; /* bytes of the texts that were kept */
    bool enough;   /* has a window of texts, so the query ends */
} reading;

static weft_status take_row(void *user, const weft__duckdb_cell *cells) {
    reading *x = user;
    weft__rows *r = x->rows;
    const uint64_t row = r->first + r->count;
    char number[24];
    snprintf(number, sizeof number, "%" PRIu64, row);
    if (!cells[0].text || cells[0].bytes != strlen(number) ||
        memcmp(cells[0].text, number, cells[0].bytes) != 0)
        return weft__fail(x->ctx, WEFT_ERR_FORMAT,
                          "%s: row %" PRIu64
                          ": DuckDB gives another row instead: install a newer version of it",
                          x->file->path, row);
    if (!cells[1].text)
        return weft__fail(x->ctx, WEFT_ERR_FORMAT,
                          "%s: row %" PRIu64 ": the text is null: write the file without such rows",
                          x->file->path, row);
    if (!weft__grow(NULL, &r->ends, &r->capacity, r->count, sizeof *r->ends))
        return weft__fail_oom(x->ctx, (r->count + 1) * sizeof *r->ends, "rows of a Parquet file");
    weft__buffer_put(&r->texts, cells[1].text, cells[1].bytes);
    if (r->texts.failed) return weft__fail_oom(x->ctx, r->texts.bytes, "rows of a Parquet file");
    r->ends[r->count++] = r->texts.bytes;
    x->enough = r->texts.bytes - x->before >= WINDOW;
    return x->enough ? WEFT_ERR_STATE : WEFT_OK;
}

/* Forgets all rows but the last ones, which a reader that goes back to the begin of a block needs again. */
static void forget_rows(weft__rows *r) {
    size_t gone = r->count > 2 ? r->count - 2 : 0;
    while (gone > 0 && r->texts.bytes - r->ends[gone - 1] < KEPT) gone--;
    if (gone == 0) return;
    const size_t bytes = r->ends[gone - 1];
    memmove(r->texts.text, r->texts.text + bytes, r->texts.bytes - bytes);
    r->texts.bytes -= bytes;
    for (size_t i = gone; i < r->count; i++) r->ends[i - gone] = r->ends[i] - bytes;
    r->count -= gone;
    r->first += gone;
}

static weft_status query_rows(weft_context *ctx, weft__rows *r, const weft__rows_file *file, uint64_t row,
                              uint64_t end) {
    char rest[200];
    reading x = {ctx, r, file, r->texts.bytes, false};
    weft__buffer query = {0};
    static const char begin[] = "SELECT file_row_number::VARCHAR, ";
    weft__buffer_put(&query, begin, sizeof begin - 1);
    if (!r->column) weft__buffer_put(&query, "to_json(", 8);
    weft__buffer_put(&query, r->select.text, r->select.bytes);
    snprintf(rest, sizeof rest,
             "%s FROM read_parquet('/dev/fd/%d', file_row_number = true) WHERE file_row_number >= %" PRIu64
             " AND file_row_number < %" PRIu64,
             r->column ? "" : ")::VARCHAR", file->fd, row, end);
    weft__buffer_put(&query, rest, strlen(rest) + 1); /* with the final 0 */
    weft_status status = query.failed ? weft__fail_oom(ctx, query.bytes, "a query") : WEFT_OK;
    if (status == WEFT_OK)
        status =
            weft__duckdb_query(ctx, r->db, file->path, query.text, &(weft__duckdb_visit){take_row, &x, 2});
    weft__buffer_free(&query);
    return x.enough ? WEFT_OK : status;
}

weft_status weft__rows_read(weft_context *ctx, weft__rows *r, const weft__rows_file *file, uint64_t row,
                            uint64_t end) {
    const uint64_t most = r->row_bytes ? WINDOW / r->row_bytes + 1 : 1;
    const char *text;
    size_t bytes;
    uint64_t wanted = end - row;
    if (r->count && r->number == file->number && row == r->first + r->count) {
        if (wanted < 2 * r->wanted) wanted = 2 * r->wanted; /* a reader that goes on needs more */
        forget_rows(r);
    } else {
        r->read = 0;
        weft__buffer_set(&r->texts, "", 0);
        r->count = 0;
        r->number = file->number;
        r->first = row;
    }
    r->wanted = wanted < most ? wanted : most;
    const size_t before = r->texts.bytes;
    const weft_status status = query_rows(ctx, r, file, row, row + r->wanted);
    if (status != WEFT_OK) {
        r->count = 0;
        return status;
    }
    if (!weft__rows_held(r, file->number, row, &text, &bytes))
        return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: row %" PRIu64 ": the file ends before it", file->path,
                          row);
    const uint64_t came = r->first + r->count - row; /* rows */
    r->read += r->texts.bytes - before + came * sizeof *r->ends;
    if (r->read > r->most)
        return weft__fail(ctx, WEFT_ERR_FORMAT,
                          "%s: row %" PRIu64 ": the rows become more than %" PRIu64
                          " bytes of text, with 8 for each row: if that is right, write the file as JSON "
                          "lines (.jsonl)",
                          file->path, row, r->most);
    r->row_bytes = (r->texts.bytes - before) / came + 1;
    return WEFT_OK;
}

bool weft__rows_held(const weft__rows *r, uint64_t number, uint64_t row, const char **text, size_t *bytes) {
    if (r->count == 0 || r->number != number || row < r->first || row - r->first >= r->count) return false;
    const size_t at = (size_t)(row - r->first), begin = at ? r->ends[at - 1] : 0;
    *text = r->texts.text ? r->texts.text + begin : "";
    *bytes = r->ends[at] - begin;
    return true;
}
