/* Files of JSON lines, whatever their bytes: as a table of texts, and as the first object that tells what the
 * lines are for. The first byte of an input chooses whether there is a file, and its name. */
#include <fcntl.h>
#include <unistd.h>

#include "bounded.h"
#include "text/json_lines.h"
#include "train/dataset/texts.h"

enum { WINDOW = 1 << 20 }; /* bytes that are searched for the first object */

static char paths[2][64];

static void remove_files(void) {
    for (int i = 0; i < 2; i++) (void)unlink(paths[i]);
}

static const char *write_input(bool lines, const uint8_t *data, size_t size) {
    if (!paths[0][0]) {
        for (int i = 0; i < 2; i++)
            snprintf(paths[i], sizeof paths[i], "/tmp/weft-fuzz-%d-input.%s", (int)getpid(),
                     i ? "jsonl" : "json");
        atexit(remove_files);
    }
    const int fd = open(paths[lines], O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size || close(fd) != 0) abort();
    return paths[lines];
}

/* Each line that is not blank is a row, in its order. A cell is a text or nothing. */
static void check_table(const weft_table *t) {
    size_t last = 0;
    if (t->rows == 0 || !t->columns || (t->column_count && !t->cells)) abort();
    for (size_t i = 0; i < t->column_count; i++) (void)strlen(t->columns[i]);
    for (size_t row = 0; row < t->rows; row++) {
        if (t->lines[row] <= last) abort();
        last = t->lines[row];
        for (size_t i = 0; i < t->column_count; i++) {
            const char *cell = t->cells[row * t->column_count + i];
            if (cell) (void)strlen(cell);
        }
    }
}

/* The first object has a 0 at its end, and its use is the same each time. */
static void check_first(const char *path) {
    weft__buffer first = {0};
    bool parquet;
    weft__json_lines_first(path, &first);
    if (first.bytes > WINDOW + 1 || (first.bytes && first.text[first.bytes - 1] != 0)) abort();
    const bool texts = weft__json_line_has(&first, "\"text\"");
    const weft__json_lines_use use = weft__json_lines_use_of(path, &parquet);
    if (parquet || (use == WEFT__USE_TEXTS && !texts) || (use == WEFT__USE_OTHER && texts)) abort();
    if (weft__json_lines_are(path) && use < WEFT__USE_TEXTS) abort();
    weft__buffer_free(&first);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    weft_table table;
    bounded memory;
    if (size == 0) return 0;
    const uint8_t *bytes = data + 1;
    size--;
    weft_context ctx = bounded_context(&memory, ((size_t)1 << 20) + 1000 * size);
    const weft_status status = weft__texts_parse_json(&ctx, "input", (const char *)bytes, size, &table);
    if (status == WEFT_OK) check_table(&table);
    weft_table_free(&ctx, &table);
    bounded_check(&memory, &ctx, status);
    /* fuzz_gz has packed files; Parquet files need DuckDB */
    const bool plain = !weft__is_gzip(bytes, size) && (size < 4 || memcmp(bytes, "PAR1", 4) != 0);
    if ((data[0] & 7) == 7 && plain) check_first(write_input(data[0] & 8, bytes, size)); /* files are slow */
    return 0;
}
