/* Keeps the cells of a csv file as text: one block of characters, and the begin of each cell. Must not know:
 * what cells mean. Read next: csv.c. */
#include "data/csv.h"

#include <string.h>

/* Grows an array that weft__grow does not fit, because several elements are added at once. */
static bool reserve(weft_context *ctx, void *array_pointer, size_t *capacity, size_t wanted, size_t size) {
    void **array = array_pointer;
    if (wanted <= *capacity) return true;
    int64_t bytes;
    if (!weft__mul((int64_t)wanted * 2, (int64_t)size, &bytes)) return false;
    void *grown = weft__realloc(ctx, *array, (size_t)bytes);
    if (grown == NULL) return false;
    *array = grown;
    *capacity = wanted * 2;
    return true;
}

bool weft__csv_text_add(weft_context *ctx, csv_text *t, size_t row, size_t features, size_t slot,
                        const char *text, size_t size) {
    if (!reserve(ctx, &t->text, &t->capacity, t->size + size + 1, 1) ||
        !reserve(ctx, &t->begin, &t->begin_capacity, (row + 1) * features, sizeof *t->begin))
        return false;
    t->begin[row * features + slot] = t->size;
    if (size > 0) memcpy(t->text + t->size, text, size);
    t->text[t->size + size] = 0;
    t->size += size + 1;
    return true;
}

bool weft__csv_text_line(weft_context *ctx, csv_text *t, size_t row, size_t line) {
    if (!weft__grow(ctx, &t->lines, &t->line_capacity, row, sizeof *t->lines)) return false;
    t->lines[row] = line;
    return true;
}

weft_status weft__csv_text_finish(weft_context *ctx, csv_text *t, const char *file, weft_table *out) {
    const size_t cells = out->rows * out->column_count;
    int64_t bytes;
    if (!weft__mul((int64_t)cells, sizeof(char *), &bytes) || !weft__add(bytes, (int64_t)t->size, &bytes) ||
        (out->cells = weft__alloc(ctx, (size_t)bytes)) == NULL)
        return weft__fail_oom(ctx, t->size, file);
    char *text = (char *)(out->cells + cells);
    memcpy(text, t->text, t->size);
    for (size_t i = 0; i < cells; i++) out->cells[i] = text + t->begin[i];
    out->lines = t->lines;
    t->lines = NULL;
    return WEFT_OK;
}

void weft__csv_text_free(weft_context *ctx, csv_text *t) {
    weft__free(ctx, t->text);
    weft__free(ctx, t->begin);
    weft__free(ctx, t->lines);
    *t = (csv_text){0};
}
