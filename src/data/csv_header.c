/* Decides whether a first row with numbers names the columns of a csv file, as pandas writes the numbers of
 * columns. It compares the row with the first rows of data. Must not know: options. Read next: csv.c. */
#include "data/csv.h"

#include <csv.h>
#include <math.h>
#include <string.h>

#define SAMPLE_MOST ((size_t)1 << 16) /* bytes that are looked at */

/* A cell of the first row, and what the sample has below it. */
typedef struct head_cell {
    weft__number_kind kind;
    bool whole;            /* digits, as of a position or a year */
    double value, next;    /* `next`: of the second row */
    double low, high;      /* of the numbers below */
    size_t numbers, words; /* below */
} head_cell;

typedef struct sample {
    weft_context *ctx;
    char point;
    head_cell *cells;
    size_t count, capacity, row, column, same;
    bool repeated, failed; /* `repeated`: a later row equals the first one */
} sample;

static void take_first(sample *s, const char *text, size_t size) {
    head_cell c = {.low = HUGE_VAL, .high = -HUGE_VAL, .next = (double)NAN};
    if (s->failed || !weft__grow(s->ctx, &s->cells, &s->capacity, s->count, sizeof *s->cells)) {
        s->failed = true;
        return;
    }
    c.kind = weft__parse_f64_with(text, size, s->point, &c.value);
    c.whole = size > 0 && size < 10 && strspn(text, "0123456789") == size && (text[0] != '0' || size == 1);
    s->cells[s->count++] = c;
}

static void take_cell(void *text, size_t size, void *user) {
    sample *s = user;
    double value;
    const char *cell = text ? text : "";
    if (s->row == 0) take_first(s, cell, size);
    if (s->row == 0 || s->column >= s->count) return;
    head_cell *c = &s->cells[s->column++];
    const weft__number_kind kind = weft__parse_f64_with(cell, size, s->point, &value);
    c->words += kind == WEFT__NUMBER_TEXT;
    if (kind != WEFT__NUMBER_OK) return;
    if (s->row == 1) c->next = value;
    s->same += c->kind == WEFT__NUMBER_OK && c->value == value;
    c->numbers++;
    c->low = fmin(c->low, value);
    c->high = fmax(c->high, value);
}

static void take_row(int end, void *user) {
    (void)end;
    sample *s = user;
    s->repeated = s->repeated || (s->row > 0 && s->same == s->count);
    s->column = s->same = 0;
    s->row++;
}

/* Tells whether a whole number is unlike the cells below it. */
static bool is_unlike(const head_cell *c) { return c->value < c->low || c->value > c->high; }

/* Whole numbers that count the columns, from 0 or 1, or from any number that is unlike the cells below it. A
 * first cell may be empty: the name of an index. Rows of a matrix may count, too, but they count on. */
static bool counts_columns(const sample *s) {
    const size_t first = s->cells[0].kind == WEFT__NUMBER_EMPTY;
    if (s->count < first + 2) return false;
    const head_cell *cells = s->cells + first;
    size_t unlike = 0, words = 0, on = 0, count = s->count - first;
    for (size_t i = 0; i < count; i++) {
        if (!cells[i].whole || cells[i].value != cells[0].value + (double)i) return false;
        unlike += is_unlike(&cells[i]);
        on += cells[i].next == cells[i].value + (double)count;
        words += cells[i].numbers == 0 && cells[i].words > 0;
    }
    if (s->repeated || on == count || (s->count < 3 && words == 0)) return false;
    return cells[0].value == 0 || unlike == count || (cells[0].value == 1 && unlike > 0);
}

/* Words above numbers, and whole numbers that are unlike the cells below them, such as years. */
static bool names_some(const sample *s) {
    bool above = false;
    for (size_t i = 0; i < s->count; i++) {
        const head_cell *c = &s->cells[i];
        if (c->kind == WEFT__NUMBER_TEXT)
            above = above || (c->numbers > 0 && c->words == 0);
        else if (!(c->whole && is_unlike(c)) && (c->kind != WEFT__NUMBER_EMPTY || i > 0))
            return false;
    }
    return above;
}

weft_status weft__csv_numbers_name(weft_context *ctx, const char *text, size_t size, char delimiter,
                                   char point, bool *names) {
    sample s = {.ctx = ctx, .point = point};
    struct csv_parser p;
    size_t end = size < SAMPLE_MOST ? size : SAMPLE_MOST;
    if (csv_init(&p, CSV_STRICT | CSV_APPEND_NULL) != 0) return weft__fail_oom(ctx, 0, "a header");
    csv_set_delim(&p, (unsigned char)delimiter);
    while (end < size && end > 0 && text[end - 1] != '\n') end--; /* whole rows */
    bool read = csv_parse(&p, text, end, take_cell, take_row, &s) == end;
    read = read && (end < size || csv_fini(&p, take_cell, take_row, &s) == 0);
    s.failed = s.failed || csv_error(&p) == CSV_ENOMEM;
    csv_free(&p);
    *names = read && !s.failed && s.row > 1 && (counts_columns(&s) || names_some(&s));
    weft__free(ctx, s.cells);
    return s.failed ? weft__fail_oom(ctx, s.count * sizeof *s.cells, "a header") : WEFT_OK;
}
