/* Parquet files as tables: DuckDB writes them as csv text, which csv.c reads as any other. Must not know:
 * columns. Read next: csv.c, duckdb.h, and for texts parquet_rows.h. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "data/duckdb.h"
#include "data/parse.h"
#include "io/publish.h" /* weft__fail_io */

bool weft__is_parquet(const char *path) {
    char head[4] = "";
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) return false;
    const bool is = pread(fd, head, sizeof head, 0) == (ssize_t)sizeof head && memcmp(head, "PAR1", 4) == 0;
    close(fd);
    return is;
}

/* Writes the query. DuckDB takes *, ? and [ in a name as a pattern, and a quote would end it, so it gets the
 * names of open files. */
static void write_query(int from, int to, char *query, size_t size) {
    snprintf(
        query, size,
        "COPY (SELECT * FROM read_parquet('/dev/fd/%d')) TO '/dev/fd/%d' (FORMAT csv, HEADER, USE_TMP_FILE "
        "false)",
        from, to);
}

weft_status weft__parquet_read(weft_context *ctx, const char *path, size_t max_bytes, weft_bytes *csv) {
    char query[200];
    *csv = (weft_bytes){0};
    weft__duckdb *db;
    WEFT_TRY(weft__duckdb_open(ctx, path, false, &db));
    const int from = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    weft_status status = from < 0 ? weft__fail_io(ctx, "open", path, errno) : WEFT_OK;
    FILE *text = status == WEFT_OK ? tmpfile() : NULL;
    if (status == WEFT_OK && !text) status = weft__fail_io(ctx, "open a temporary file for", path, errno);
    if (text) write_query(from, fileno(text), query, sizeof query);
    if (status == WEFT_OK) status = weft__duckdb_query(ctx, db, path, query, NULL);
    if (status == WEFT_OK) status = weft__read_open_file(ctx, fileno(text), path, max_bytes, csv);
    if (text) fclose(text);
    if (from >= 0) close(from);
    weft__duckdb_close(db);
    return status;
}
