/* Reads Parquet files by the library of DuckDB (duckdb.org), opened at run time: it writes them as csv text,
 * which csv.c reads as any other. Must not know: columns. Read next: csv.c, device/shared_library.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* secure_getenv */
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/parse.h"
#include "device/shared_library.h"
#include "io/publish.h" /* weft__fail_io */

/* ---- DuckDB's functions, as duckdb.h declares them since version 1 ---- */

typedef struct duckdb_database_ *duckdb_database;
typedef struct duckdb_connection_ *duckdb_connection;
typedef struct duckdb_result {
    uint64_t deprecated[3];
    void *more[3];
    uint64_t room[10]; /* later versions may add fields */
} duckdb_result;

static struct {
    int (*duckdb_open)(const char *path, duckdb_database *database);
    int (*duckdb_connect)(duckdb_database database, duckdb_connection *connection);
    int (*duckdb_query)(duckdb_connection connection, const char *query, duckdb_result *result);
    const char *(*duckdb_result_error)(duckdb_result *result);
    void (*duckdb_destroy_result)(duckdb_result *result);
    void (*duckdb_disconnect)(duckdb_connection *connection);
    void (*duckdb_close)(duckdb_database *database);
} duckdb;

#define FUNCTION(name)                                                                                       \
    { #name, offsetof(__typeof__(duckdb), name) }
static const weft_shared_symbol functions[] = {FUNCTION(duckdb_open),           FUNCTION(duckdb_connect),
                                               FUNCTION(duckdb_query),          FUNCTION(duckdb_result_error),
                                               FUNCTION(duckdb_destroy_result), FUNCTION(duckdb_disconnect),
                                               FUNCTION(duckdb_close)};
#undef FUNCTION

static const char *const files[] = {
#if defined(__APPLE__)
    "libduckdb.dylib"
#else
    "libduckdb.so"
#endif
};

static weft_shared_library library = {
    .files = files,
    .n_files = 1,
    .wanted = functions,
    .n_wanted = sizeof functions / sizeof *functions,
    .table = &duckdb,
    .absent = "Weft reads Parquet by the library of DuckDB: install libduckdb (duckdb.org), name it by "
              "WEFT_DUCKDB_LIB, or write the table as csv",
    .old = "it is not the library of DuckDB 1.0 or later"};

static weft_status open_library(weft_context *ctx, const char *path) {
    const char *named = secure_getenv("WEFT_DUCKDB_LIB");
    const char *why = weft__shared_library_open(&library, named && *named ? named : NULL, NULL);
    return why ? weft__fail(ctx, WEFT_ERR_IO, "%s: %s", path, why) : WEFT_OK;
}

/* ---- conversion ---- */

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

/* Runs a query in a database of its own. Nothing is fetched from a network. */
static weft_status run(weft_context *ctx, const char *path, const char *query) {
    static const char settings[] = "SET autoinstall_known_extensions = false";
    duckdb_database database = NULL;
    duckdb_connection connection = NULL;
    weft_status status = WEFT_OK;
    if (duckdb.duckdb_open(NULL, &database) != 0 || duckdb.duckdb_connect(database, &connection) != 0)
        status = weft__fail(ctx, WEFT_ERR_IO, "%s: DuckDB does not start", path);
    for (int i = 0; status == WEFT_OK && i < 2; i++) {
        duckdb_result result = {.room = {0}};
        if (duckdb.duckdb_query(connection, i ? query : settings, &result) != 0) {
            const char *why = duckdb.duckdb_result_error(&result);
            if (!why) why = "it does not say why";
            status = weft__fail(ctx, WEFT_ERR_FORMAT, "%s: DuckDB cannot read it: %.*s", path,
                                (int)strcspn(why, "\n"), why); /* the other lines show the query */
        }
        duckdb.duckdb_destroy_result(&result);
    }
    if (connection) duckdb.duckdb_disconnect(&connection);
    if (database) duckdb.duckdb_close(&database);
    return status;
}

weft_status weft__parquet_read(weft_context *ctx, const char *path, size_t max_bytes, weft_bytes *csv) {
    char query[200];
    *csv = (weft_bytes){0};
    WEFT_TRY(open_library(ctx, path));
    const int from = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (from < 0) return weft__fail_io(ctx, "open", path, errno);
    FILE *text = tmpfile();
    weft_status status = text ? WEFT_OK : weft__fail_io(ctx, "open a temporary file for", path, errno);
    if (text) write_query(from, fileno(text), query, sizeof query);
    if (status == WEFT_OK) status = run(ctx, path, query);
    if (status == WEFT_OK) status = weft__read_open_file(ctx, fileno(text), path, max_bytes, csv);
    if (text) fclose(text);
    close(from);
    return status;
}
