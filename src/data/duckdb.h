/* The library of DuckDB (duckdb.org), opened at run time: a database without data of its own, which answers
 * queries about files. Must not know: what files hold. Read next: duckdb.c, parquet.c, parquet_rows.h. */
#ifndef WEFT_SRC_DATA_DUCKDB_H
#define WEFT_SRC_DATA_DUCKDB_H

#include "base/buffer.h"

typedef struct weft__duckdb weft__duckdb;

/* A value of a row. */
typedef struct weft__duckdb_cell {
    const char *text; /* NULL: null */
    size_t bytes;
} weft__duckdb_cell;

/* Takes a row of a result. The texts are valid until it returns. */
typedef weft_status weft__duckdb_row(void *user, const weft__duckdb_cell *cells);

/* What becomes of the rows of a result. */
typedef struct weft__duckdb_visit {
    weft__duckdb_row *row;
    void *user;
    size_t cells; /* columns, all of the type VARCHAR */
} weft__duckdb_visit;

/* Opens the library, and starts a database. path: the file that is to be read, for messages. The calling
 * thread does all the work, so rows come in their order, and memory holds few of them. The caller frees *out
 * with weft__duckdb_close. WEFT_ERR_IO: there is no library. */
weft_status weft__duckdb_open(weft_context *ctx, const char *path, weft__duckdb **out);
void weft__duckdb_close(weft__duckdb *db);

/* Limits the memory of later queries to what the open file may become, at least `least` bytes. *most: what
 * it may become, see base/limits.h. */
weft_status weft__duckdb_limit(weft_context *ctx, weft__duckdb *db, const char *path, int fd, uint64_t least,
                               uint64_t *most);

/* Puts a name or a text between quotes, as SQL wants it. */
void weft__duckdb_quote(weft__buffer *query, const char *text, size_t bytes, char quote);

/* Runs a query. visit NULL: its result does not matter. WEFT_ERR_FORMAT: DuckDB refuses it. */
weft_status weft__duckdb_query(weft_context *ctx, weft__duckdb *db, const char *path, const char *query,
                               const weft__duckdb_visit *visit);

#endif
