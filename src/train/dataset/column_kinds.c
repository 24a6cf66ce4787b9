/* The table of column kinds: how a cell of each kind is read, and which inputs it becomes. Must not know: how
 * a kind is found. Read next: columns_fit.c. */
#include <float.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/number.h"
#include "train/dataset/columns.h"

static void put_value(const weft__column *c, double value, double *out) {
    (void)c;
    out[0] = value;
}

static int64_t one_input(const weft__column *c) {
    (void)c;
    return 1;
}

static void plain_name(const weft__column *c, int64_t input, weft_text *out) {
    (void)input;
    weft__put(out, "%s", c->name);
}

static bool number_parse(const weft__column *c, const char *cell, double *value) {
    const weft__number_kind kind = weft__parse_f64_with(cell, strlen(cell), c->comma ? ',' : '.', value);
    return kind == WEFT__NUMBER_OK && fabs(*value) <= FLT_MAX;
}

static bool boolean_parse(const weft__column *c, const char *cell, double *value) {
    static const char *const words[][2] = {{"false", "true"}, {"no", "yes"}};
    (void)c;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        for (int j = 0; j < 2; j++) {
            if (strcasecmp(cell, words[i][j]) != 0) continue;
            *value = j;
            return true;
        }
    return false;
}

static bool date_parse(const weft__column *c, const char *cell, double *value) {
    (void)c;
    return weft__date_parse(cell, value);
}

static int64_t date_inputs(const weft__column *c) {
    return c->time ? WEFT__DATE_INPUTS_WITH_TIME : WEFT__DATE_INPUTS;
}

static void date_put(const weft__column *c, double value, double *out) {
    weft__date_put(value, c->time, out);
}

static void date_name(const weft__column *c, int64_t input, weft_text *out) {
    weft__put(out, "%s (%s)", c->name, weft__date_input(input));
}

/* The value of a category is the index of its level. A value that is no level has the index after them. */
static bool category_parse(const weft__column *c, const char *cell, double *value) {
    size_t low = 0, high = c->level_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = strcmp(c->levels[middle], cell);
        if (order == 0) {
            *value = (double)middle;
            return true;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *value = (double)c->level_count;
    return true;
}

static int64_t category_inputs(const weft__column *c) { return (int64_t)c->level_count + c->other; }

/* A value that training did not see has no input of its own. Without an input for others, all inputs are 0.
 * An input that was 0 in all of training would have a weight that nothing has trained. */
static void category_put(const weft__column *c, double value, double *out) {
    if (value >= 0 && value < (double)category_inputs(c)) out[(int64_t)value] = 1;
}

static void category_name(const weft__column *c, int64_t input, weft_text *out) {
    const bool level = input < (int64_t)c->level_count;
    weft__put(out, "%s=%s", c->name, level ? c->levels[input] : "(other)");
}

/* The value of a word is its place in the order. */
static bool ordinal_parse(const weft__column *c, const char *cell, double *value) {
    size_t i = 0;
    while (i < c->level_count && strcmp(c->levels[i], cell) != 0) i++;
    *value = (double)i;
    return i < c->level_count;
}

static bool none_parse(const weft__column *c, const char *cell, double *value) {
    (void)c;
    (void)cell;
    (void)value;
    return false;
}

static int64_t no_input(const weft__column *c) {
    (void)c;
    return 0;
}

const weft__column_row weft__column_rows[WEFT__COLUMN_KINDS] = {
    [WEFT__COLUMN_NUMBER] = {"number", "a number", 1, number_parse, one_input, put_value, plain_name},
    [WEFT__COLUMN_BOOLEAN] = {"boolean", "true, false, yes or no", 0, boolean_parse, one_input, put_value,
                              plain_name},
    [WEFT__COLUMN_DATE] = {"date", "a date such as 2024-12-31 or 2024-12-31T23:59", 1, date_parse,
                           date_inputs, date_put, date_name},
    [WEFT__COLUMN_CATEGORY] = {"category", "a word", 0, category_parse, category_inputs, category_put,
                               category_name},
    [WEFT__COLUMN_ORDINAL] = {"ordinal", "a value of its order in data.kinds", 1, ordinal_parse, one_input,
                              put_value, plain_name},
    [WEFT__COLUMN_NONE] = {"none", "nothing", 0, none_parse, no_input, put_value, plain_name},
};

weft__column_kind weft__column_kind_of(const char *word) {
    int kind = 0;
    while (kind < WEFT__COLUMN_KINDS && strcmp(weft__column_rows[kind].word, word) != 0) kind++;
    return (weft__column_kind)kind;
}
