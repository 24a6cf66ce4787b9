/* Any bytes as a Parquet file: a table, a column of texts, and rows as JSON objects. However often a file
 * repeats a value, it becomes a bounded number of bytes, in bounded memory and time. Without DuckDB's library
 * (make duckdb) the target is skipped. DuckDB itself is not instrumented: libFuzzer bounds its memory. */
#include <fcntl.h>
#include <unistd.h>

#include "base/limits.h"
#include "bounded.h"
#include "data/parquet.h"
#include "data/parquet_rows.h"

enum {
    SKIPPED = 77,
    TABLE = 1 << 20,    /* bytes of text that a table may become */
    FITTING = 64 << 10, /* bytes besides */
    ROWS = 1 << 16      /* that are read */
};

static char path[64];
static weft__rows *texts, *objects; /* it takes long to start DuckDB */

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc, (void)argv;
    if (weft__rows_open(NULL, "input", "text", &texts) != WEFT_OK) {
        fprintf(stderr, "skipped: %s\n", weft_last_error(NULL));
        exit(SKIPPED);
    }
    if (weft__rows_open(NULL, "input", NULL, &objects) != WEFT_OK) abort();
    snprintf(path, sizeof path, "/tmp/weft-fuzz-input-%d.parquet", (int)getpid());
    return 0;
}

static void read_table(bounded *b, weft_context *ctx) {
    const weft__names files = {.at = (char *[]){path}, .count = 1};
    weft__parquet *table;
    weft__buffer csv = {0};
    weft_status status = weft__parquet_open(ctx, &files, &table);
    if (status == WEFT_OK) status = weft__parquet_read(table, 0, TABLE, &csv);
    if (csv.bytes > TABLE) abort();
    if (status == WEFT_OK) weft__buffer_free(&csv);
    weft__parquet_close(table);
    bounded_check(b, ctx, status);
}

/* Reads rows one after the other. */
static void read_rows(weft__rows *rows, size_t most) {
    static uint64_t number;
    const weft__rows_file file = {open(path, O_RDONLY | O_CLOEXEC), path, ++number};
    weft__rows_size size;
    const char *text;
    size_t bytes, all = 0;
    if (file.fd < 0) abort();
    weft_status status = weft__rows_measure(NULL, rows, &file, &size);
    for (uint64_t row = 0; status == WEFT_OK && row < size.rows && row < ROWS; row++) {
        if (!weft__rows_held(rows, number, row, &text, &bytes)) {
            status = weft__rows_read(NULL, rows, &file, row, row + 1);
            if (status != WEFT_OK) break;
            if (!weft__rows_held(rows, number, row, &text, &bytes)) abort();
        }
        all += bytes;
    }
    if (all > most || (status != WEFT_OK && !strstr(weft_last_error(NULL), "input"))) abort();
    close(file.fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static size_t largest;
    bounded b; /* a text that grows takes twice its bytes */
    weft_context ctx = bounded_context(&b, 2 * TABLE + FITTING + WEFT__PARQUET_RATIO * size);
    FILE *to = fopen(path, "wb");
    if (!to || fwrite(data, 1, size, to) != size || fclose(to)) abort();
    if (size > largest) largest = size; /* files of one data set may have as much memory as the largest */
    read_table(&b, &ctx);
    read_rows(texts, (size_t)WEFT__PARQUET_FREE + WEFT__PARQUET_RATIO * largest);
    read_rows(objects, (size_t)WEFT__PARQUET_FREE + WEFT__PARQUET_RATIO * largest);
    unlink(path);
    bounded_time(&b, size);
    return 0;
}
