/* Rows of Parquet files as texts, at any place of the files: a column of texts, or whole rows as JSON. A row
 * is read with those that follow it, and DuckDB decodes only the row groups that hold them. Must not know:
 * what texts are for. Read next: parquet_rows.c, text/documents.h. */
#ifndef WEFT_SRC_DATA_PARQUET_ROWS_H
#define WEFT_SRC_DATA_PARQUET_ROWS_H

#include "base/base.h"

typedef struct weft__rows weft__rows;

/* A file that is open. */
typedef struct weft__rows_file {
    int fd;
    const char *path; /* for messages */
    uint64_t number;  /* each file has another one */
} weft__rows_file;

/* What a file holds. */
typedef struct weft__rows_size {
    uint64_t rows;
    uint64_t bytes; /* of the texts, about */
} weft__rows_size;

/* Fails with WEFT_ERR_FORMAT if a file does not begin as a Parquet file. */
weft_status weft__rows_check(weft_context *ctx, const char *path);

/* Starts DuckDB. column: that of the texts, which must outlive *out; NULL: each row is a JSON object. path:
 * for messages. The caller frees *out with weft__rows_free. */
weft_status weft__rows_open(weft_context *ctx, const char *path, const char *column, weft__rows **out);
void weft__rows_free(weft__rows *rows);

/* Checks that a file has the column, and tells its size. The columns of JSON objects are those of the file
 * that was measured last. WEFT_ERR_FORMAT: it is no Parquet file, or has no such column of texts. */
weft_status weft__rows_measure(weft_context *ctx, weft__rows *rows, const weft__rows_file *file,
                               weft__rows_size *size);

/* Reads row `row` of a file and those that follow, up to some MB: to row `end`, or further if the rows before
 * them were read last. */
weft_status weft__rows_read(weft_context *ctx, weft__rows *rows, const weft__rows_file *file, uint64_t row,
                            uint64_t end);

/* Gives a row that was read, valid until the next call of weft__rows_read. False: it was not, or no longer
 * is. */
bool weft__rows_held(const weft__rows *rows, uint64_t number, uint64_t row, const char **text, size_t *bytes);

#endif
