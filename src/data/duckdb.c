/* The library of DuckDB, see duckdb.h. Must not know: what files hold. Read next: device/shared_library.h. */
#define _POSIX_C_SOURCE 200809L
#include "data/duckdb.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/limits.h"
#include "device/shared_library.h"
#include "io/publish.h" /* weft__fail_io */

/* ---- DuckDB's functions, as duckdb.h declares them since version 1 ---- */

typedef struct duckdb_database_ *duckdb_database;
typedef struct duckdb_connection_ *duckdb_connection;
typedef struct duckdb_statement_ *duckdb_statement;
typedef struct duckdb_chunk_ *duckdb_chunk;
typedef struct duckdb_vector_ *duckdb_vector;
typedef struct duckdb_result {
    uint64_t deprecated[3];
    void *more[3];
    uint64_t room[10]; /* later versions may add fields */
} duckdb_result;

/* A text of a vector. A short one is inside. */
typedef union duckdb_string {
    struct {
        uint32_t bytes;
        char text[12];
    } inside;
    struct {
        uint32_t bytes;
        char prefix[4];
        const char *text;
    } elsewhere;
} duckdb_string;

#define FUNCTIONS(X)                                                                                         \
    X(int, duckdb_open, (const char *path, duckdb_database *database))                                       \
    X(int, duckdb_connect, (duckdb_database database, duckdb_connection * connection))                       \
    X(int, duckdb_query, (duckdb_connection connection, const char *query, duckdb_result *result))           \
    X(int, duckdb_prepare, (duckdb_connection connection, const char *query, duckdb_statement *statement))   \
    X(const char *, duckdb_prepare_error, (duckdb_statement statement))                                      \
    X(int, duckdb_execute_prepared_streaming, (duckdb_statement statement, duckdb_result * result))          \
    X(void, duckdb_destroy_prepare, (duckdb_statement * statement))                                          \
    X(const char *, duckdb_result_error, (duckdb_result * result))                                           \
    X(void, duckdb_destroy_result, (duckdb_result * result))                                                 \
    X(void, duckdb_disconnect, (duckdb_connection * connection))                                             \
    X(void, duckdb_close, (duckdb_database * database))                                                      \
    X(duckdb_chunk, duckdb_fetch_chunk, (duckdb_result result))                                              \
    X(void, duckdb_destroy_data_chunk, (duckdb_chunk * chunk))                                               \
    X(uint64_t, duckdb_data_chunk_get_size, (duckdb_chunk chunk))                                            \
    X(duckdb_vector, duckdb_data_chunk_get_vector, (duckdb_chunk chunk, uint64_t column))                    \
    X(void *, duckdb_vector_get_data, (duckdb_vector vector))                                                \
    X(uint64_t *, duckdb_vector_get_validity, (duckdb_vector vector))

static struct {
#define MEMBER(type, name, arguments) type(*name) arguments;
    FUNCTIONS(MEMBER)
#undef MEMBER
} duckdb;

static const weft_shared_symbol functions[] = {
#define SYMBOL(type, name, arguments) {#name, offsetof(__typeof__(duckdb), name)},
    FUNCTIONS(SYMBOL)
#undef SYMBOL
};

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
    .variable = "WEFT_DUCKDB_LIB",
    .wanted = functions,
    .n_wanted = sizeof functions / sizeof *functions,
    .table = &duckdb,
    .absent = "Weft reads Parquet by the library of DuckDB: install libduckdb (duckdb.org), name it by "
              "WEFT_DUCKDB_LIB, or write the file as csv or JSON lines",
    .old = "it is not the library of DuckDB 1.0 or later"};

/* ---- databases ---- */

struct weft__duckdb {
    weft_context *ctx;
    duckdb_database database;
    duckdb_connection connection;
    uint64_t most; /* bytes of memory */
};

static weft_status duckdb_start(weft_context *ctx, const char *path, weft__duckdb *db) {
    /* nothing is fetched from a network, and no folder is made for what exceeds memory. Several threads would
       keep many rows, to put them in order */
    static const char *const settings[] = {"SET autoinstall_known_extensions = false",
                                           "SET temp_directory = ''", "SET threads = 1"};
    /* not all versions have these. Some rows of a file need not all pages of their row group. Instants are
     * told in UTC, whatever TZ and LANG say */
    static const char *const wishes[] = {"SET disable_parquet_prefetching = true", "SET TimeZone = 'UTC'",
                                         "SET Calendar = 'gregorian'"};
    duckdb_result result = {.room = {0}};
    if (duckdb.duckdb_open(NULL, &db->database) != 0 ||
        duckdb.duckdb_connect(db->database, &db->connection) != 0)
        return weft__fail(ctx, WEFT_ERR_IO, "%s: DuckDB does not start", path);
    for (int i = 0; (size_t)i < sizeof settings / sizeof *settings; i++)
        WEFT_TRY(weft__duckdb_query(ctx, db, path, settings[i], NULL));
    for (size_t i = 0; i < sizeof wishes / sizeof *wishes; i++) {
        (void)duckdb.duckdb_query(db->connection, wishes[i], &result);
        duckdb.duckdb_destroy_result(&result);
    }
    return WEFT_OK;
}

weft_status weft__duckdb_open(weft_context *ctx, const char *path, weft__duckdb **out) {
    const char *why = weft__shared_library_open(&library, NULL, NULL);
    *out = NULL;
    if (why) return weft__fail(ctx, WEFT_ERR_IO, "%s: %s", path, why);
    weft__duckdb *db = weft__zalloc(ctx, sizeof *db);
    if (!db) return weft__fail_oom(ctx, sizeof *db, "DuckDB");
    db->ctx = ctx;
    const weft_status status = duckdb_start(ctx, path, db);
    if (status == WEFT_OK)
        *out = db;
    else
        weft__duckdb_close(db);
    return status;
}

void weft__duckdb_close(weft__duckdb *db) {
    if (!db) return;
    if (db->connection) duckdb.duckdb_disconnect(&db->connection);
    if (db->database) duckdb.duckdb_close(&db->database);
    weft__free(db->ctx, db);
}

/* ---- queries ---- */

void weft__duckdb_quote(weft__buffer *query, const char *text, size_t bytes, char quote) {
    weft__buffer_put(query, &quote, 1);
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] == quote) weft__buffer_put(query, &quote, 1); /* doubled inside */
        weft__buffer_put(query, text + i, 1);
    }
    weft__buffer_put(query, &quote, 1);
}

/* A column of a chunk. */
typedef struct duckdb_column {
    const duckdb_string *texts;
    const uint64_t *valid; /* a bit for each row; NULL: no value is null */
} duckdb_column;

/* Calls the visitor with each row of a chunk. */
static weft_status visit_chunk(duckdb_chunk chunk, const weft__duckdb_visit *visit, duckdb_column *columns,
                               weft__duckdb_cell *cells) {
    const uint64_t rows = duckdb.duckdb_data_chunk_get_size(chunk);
    for (size_t c = 0; c < visit->cells; c++) {
        duckdb_vector vector = duckdb.duckdb_data_chunk_get_vector(chunk, c);
        columns[c] =
            (duckdb_column){duckdb.duckdb_vector_get_data(vector), duckdb.duckdb_vector_get_validity(vector)};
    }
    for (uint64_t row = 0; row < rows; row++) {
        for (size_t c = 0; c < visit->cells; c++) {
            const duckdb_string *at = &columns[c].texts[row];
            const uint64_t *valid = columns[c].valid;
            cells[c] = (weft__duckdb_cell){0};
            if (valid && !(valid[row / 64] >> row % 64 & 1)) continue;
            cells[c].bytes = at->inside.bytes;
            cells[c].text = at->inside.bytes <= sizeof at->inside.text ? at->inside.text : at->elsewhere.text;
        }
        WEFT_TRY(visit->row(visit->user, cells));
    }
    return WEFT_OK;
}

/* Takes the rows as DuckDB finds them. *why: what kept it from finding all. */
static weft_status visit_rows(weft_context *ctx, duckdb_result *result, const weft__duckdb_visit *visit,
                              const char **why) {
    duckdb_column *columns = weft__array(ctx, visit->cells, sizeof *columns);
    weft__duckdb_cell *cells = weft__array(ctx, visit->cells, sizeof *cells);
    weft_status status =
        columns && cells ? WEFT_OK : weft__fail_oom(ctx, visit->cells * sizeof *cells, "a query");
    while (status == WEFT_OK) {
        duckdb_chunk chunk = duckdb.duckdb_fetch_chunk(*result);
        if (!chunk) break;
        status = visit_chunk(chunk, visit, columns, cells);
        duckdb.duckdb_destroy_data_chunk(&chunk);
    }
    *why = duckdb.duckdb_result_error(result);
    weft__free(ctx, columns);
    weft__free(ctx, cells);
    return status;
}

static weft_status query_fail(weft_context *ctx, const weft__duckdb *db, const char *path, const char *why) {
    if (strncmp(why, "Out of Memory", 13) == 0)
        return weft__fail(ctx, WEFT_ERR_FORMAT,
                          "%s: DuckDB needs more than %" PRIu64
                          " bytes to read it: write the file as csv or JSON lines, or "
                          "raise data.max_bytes for a table",
                          path, db->most);
    return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: DuckDB cannot read it: %.*s", path, (int)strcspn(why, "\n"),
                      why); /* the other lines show the query */
}

weft_status weft__duckdb_query(weft_context *ctx, weft__duckdb *db, const char *path, const char *query,
                               const weft__duckdb_visit *visit) {
    static const char silent[] = "it does not say why";
    duckdb_result result = {.room = {0}};
    duckdb_statement statement = NULL;
    weft_status status = WEFT_OK;
    const char *why = NULL;
    if (duckdb.duckdb_prepare(db->connection, query, &statement) != 0) {
        why = duckdb.duckdb_prepare_error(statement);
        if (!why) why = silent;
    } else if (duckdb.duckdb_execute_prepared_streaming(statement, &result) != 0) {
        why = duckdb.duckdb_result_error(&result);
        if (!why) why = silent;
    } else if (visit) {
        status = visit_rows(ctx, &result, visit, &why);
    }
    if (status == WEFT_OK && why) status = query_fail(ctx, db, path, why);
    duckdb.duckdb_destroy_result(&result);
    duckdb.duckdb_destroy_prepare(&statement);
    return status;
}

weft_status weft__duckdb_limit(weft_context *ctx, weft__duckdb *db, const char *path, int fd, uint64_t least,
                               uint64_t *most) {
    char query[80];
    struct stat what;
    if (fstat(fd, &what) != 0) return weft__fail_io(ctx, "look at", path, errno);
    *most = WEFT__PARQUET_FREE + WEFT__PARQUET_RATIO * (uint64_t)what.st_size;
    db->most = *most > least ? *most : least;
    snprintf(query, sizeof query, "SET memory_limit = '%" PRIu64 "B'", db->most);
    return weft__duckdb_query(ctx, db, path, query, NULL);
}
