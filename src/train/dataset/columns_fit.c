/* Finds the kind of each column of a table, and what its inputs need: the value of missing cells, the levels
 * of categories. A kind comes from all rows of the file. Everything else comes from the training rows. Must
 * not know: how inputs are written. Read next: columns.c. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/parse.h"
#include "train/dataset/columns.h"

#define DAY 86400.0
/* Text with more different values than that, most of which are there only once, is no category. */
#define FEW_LEVELS 16
#define FREE_TEXT  "hardly a value repeats"
/* If only one cell in so many is not a number or a date, it is an error in the data. */
#define RARE 10

typedef struct fit {
    weft_context *ctx;
    const weft__config *config;
    const char *path;
    const weft_table *table;
    const bool *training; /* of each row; NULL: all */
} fit;

static const char *cell_at(const fit *f, size_t row, size_t column) {
    return f->table->cells[row * f->table->column_count + column];
}

static bool is_training(const fit *f, size_t row) { return !f->training || f->training[row]; }

static bool is_missing(const fit *f, const char *cell) {
    return weft__cell_missing(&f->config->data_missing, cell);
}

static weft_status fit_oom(const fit *f) { return weft__fail_oom(f->ctx, 0, "the columns of the table"); }

/* Leaves a column out, and notes why. */
static weft_status leave_out(const fit *f, weft__column *c, const char *reason) {
    char *name = c->name;
    weft__free(f->ctx, c->levels);
    *c = (weft__column){.name = name, .kind = WEFT__COLUMN_NONE};
    c->reason = weft__strdup(f->ctx, reason);
    return c->reason ? WEFT_OK : fit_oom(f);
}

/* ---- data.kinds ---- */

/* Splits "name=kind" at the last equals sign. Returns the length of the name. An order of words such as
 * low<high is a kind, too. */
static size_t name_length(const char *entry, weft__column_kind *kind) {
    const char *equals = strrchr(entry, '=');
    *kind = equals ? weft__column_kind_of(equals + 1) : WEFT__COLUMN_KINDS;
    if (*kind == WEFT__COLUMN_ORDINAL) *kind = WEFT__COLUMN_KINDS; /* the word alone says no order */
    if (equals && strchr(equals, '<')) *kind = WEFT__COLUMN_ORDINAL;
    return equals ? (size_t)(equals - entry) : 0;
}

/* Tells whether an entry of data.kinds is for this column: as its name, or as a pattern. */
static weft_status entry_is_for(const fit *f, const char *entry, size_t length, const char *name, bool *exact,
                                bool *matches) {
    char *pattern = weft__alloc(f->ctx, length + 1);
    if (!pattern) return fit_oom(f);
    memcpy(pattern, entry, length);
    pattern[length] = '\0';
    *exact = strcmp(pattern, name) == 0;
    *matches = *exact || weft__matches(pattern, name);
    weft__free(f->ctx, pattern);
    return WEFT_OK;
}

/* Sets the kind that data.kinds names for a column, and what stands after the equals sign. A name wins over
 * patterns, a later entry over earlier ones. */
static weft_status given_kind(const fit *f, const char *name, weft__column_kind *kind, const char **word) {
    const weft__texts *list = &f->config->data_kinds;
    bool exact, matches, found = false;
    *kind = WEFT__COLUMN_KINDS;
    for (size_t i = 0; i < list->count; i++) {
        weft__column_kind own;
        const size_t length = name_length(list->values[i], &own);
        WEFT_TRY(entry_is_for(f, list->values[i], length, name, &exact, &matches));
        if (matches && (exact || !found)) {
            *kind = own;
            *word = list->values[i] + length + 1;
        }
        found = found || exact;
    }
    return WEFT_OK;
}

/* Checks that each entry of data.kinds names a column and a kind. */
static weft_status check_kinds(const fit *f) {
    const weft__texts *list = &f->config->data_kinds;
    char names[320];
    for (size_t i = 0; i < list->count; i++) {
        weft__column_kind kind;
        const size_t length = name_length(list->values[i], &kind);
        bool exact, matches = false;
        if (kind == WEFT__COLUMN_KINDS)
            return weft__fail(
                f->ctx, WEFT_ERR_ARGUMENT,
                "data.kinds: '%.60s': write NAME=KIND; kinds are number, boolean, date, category, none, or "
                "an order of words such as low<middle<high",
                list->values[i]);
        for (size_t j = 0; j < f->table->column_count && !matches; j++)
            WEFT_TRY(entry_is_for(f, list->values[i], length, f->table->columns[j], &exact, &matches));
        if (!matches)
            return weft__fail(
                f->ctx, WEFT_ERR_ARGUMENT,
                "data.kinds: no input column is named '%.*s'; the input columns are %s",
                (int)(length < 60 ? length : 60), list->values[i],
                weft__list_names(f->table->columns, f->table->column_count, names, sizeof names));
    }
    return WEFT_OK;
}

/* Takes the order of words of an ordinal column, such as "low<middle<high". */
static weft_status take_order(const fit *f, const char *order, weft__column *c) {
    size_t count = 1;
    for (const char *p = order; *p; p++) count += *p == '<';
    char *copy = weft__strdup(f->ctx, order), *at = copy;
    const char **words = weft__array(f->ctx, count, sizeof *words);
    bool right = true;
    for (size_t i = 0; copy && words && i < count; i++) {
        char *end = strchr(at, '<');
        if (end) *end = '\0';
        words[i] = at;
        right = right && *at;
        for (size_t j = 0; j < i; j++) right = right && strcmp(words[j], at) != 0;
        at = end ? end + 1 : at;
    }
    if (copy && words && right) c->levels = weft__strings_pack(f->ctx, words, count);
    c->level_count = c->levels ? count : 0;
    const bool made = copy && words && (c->levels || !right);
    weft__free(f->ctx, copy);
    weft__free(f->ctx, words);
    if (!made) return fit_oom(f);
    if (right) return WEFT_OK;
    return weft__fail(f->ctx, WEFT_ERR_ARGUMENT,
                      "data.kinds: '%.60s': a word of the order is empty or repeated", order);
}

/* ---- the kind of a column ---- */

/* The cells of a column that are not missing, and those of them that are not of its kind. */
typedef struct tally {
    size_t cells, refused, first_refused;
} tally;

/* Counts until it is clear that the kind is wrong. */
static tally count_cells(const fit *f, size_t column, const weft__column *c) {
    tally t = {0, 0, 0};
    for (size_t row = 0; row < f->table->rows && t.refused * RARE <= f->table->rows; row++) {
        double value;
        const char *cell = cell_at(f, row, column);
        if (is_missing(f, cell)) continue;
        t.cells++;
        if (weft__column_row_of(c)->parse(c, cell, &value)) continue;
        if (t.refused++ == 0) t.first_refused = row;
    }
    return t;
}

static weft_status refuse_cell(const fit *f, size_t column, const weft__column *c, size_t row, bool given) {
    const char *cell = cell_at(f, row, column);
    char advice[400];
    snprintf(advice, sizeof advice,
             given ? " (data.kinds names the kind of the column)"
                   : ", unlike nearly all other cells: correct it; or, if it stands for a missing cell, set "
                     "data.missing=[%.60s]; or set data.kinds=[%.60s=category], or =none to leave the column "
                     "out",
             cell, c->name);
    return weft__columns_refuse(f->ctx, f->path, f->table, row, c, cell, advice);
}

/* Refuses a column of text that would be numbers if data.decimal were another. */
static weft_status check_decimals(const fit *f, size_t column, const weft__column *c) {
    weft__column other = *c;
    char advice[200];
    other.kind = WEFT__COLUMN_NUMBER;
    other.comma = !c->comma;
    const tally t = count_cells(f, column, &other);
    if (t.refused * RARE > t.cells) return WEFT_OK;
    size_t row = 0; /* the first cell that only the other reading takes */
    for (double value; row < f->table->rows; row++) {
        const char *cell = cell_at(f, row, column);
        const weft__column own = {.comma = c->comma};
        if (!is_missing(f, cell) && weft__column_row_of(&other)->parse(&other, cell, &value) &&
            !weft__column_row_of(&own)->parse(&own, cell, &value))
            break;
    }
    if (row == f->table->rows) return WEFT_OK;
    snprintf(
        advice, sizeof advice,
        ": for numbers with a decimal %s set data.decimal=%s; or set data.kinds=[%.60s=category], or =none",
        other.comma ? "comma" : "point", other.comma ? "comma" : "point", c->name);
    other.comma = c->comma;
    return weft__columns_refuse(f->ctx, f->path, f->table, row, &other, cell_at(f, row, column), advice);
}

/* Finds the kind of a column that data.kinds does not name. */
static weft_status find_kind(const fit *f, size_t column, weft__column *c) {
    if (column == 0 && (c->name[0] == '\0' || strcmp(c->name, "Unnamed: 0") == 0))
        return leave_out(f, c, "an index");
    for (int kind = WEFT__COLUMN_NUMBER; kind < WEFT__COLUMN_CATEGORY; kind++) {
        c->kind = (weft__column_kind)kind;
        const tally t = count_cells(f, column, c);
        if (t.cells == 0) return leave_out(f, c, "all cells are missing");
        if (t.refused == 0) return WEFT_OK;
        if (t.refused * RARE <= t.cells) return refuse_cell(f, column, c, t.first_refused, false);
    }
    WEFT_TRY(check_decimals(f, column, c));
    c->kind = WEFT__COLUMN_CATEGORY;
    return WEFT_OK;
}

/* Checks the kind that data.kinds names. */
static weft_status check_kind(const fit *f, size_t column, weft__column *c, weft__column_kind kind,
                              const char *word) {
    if (kind == WEFT__COLUMN_NONE) return leave_out(f, c, "data.kinds says so");
    c->kind = kind;
    if (kind == WEFT__COLUMN_ORDINAL) WEFT_TRY(take_order(f, word, c));
    const tally t = count_cells(f, column, c);
    return t.refused ? refuse_cell(f, column, c, t.first_refused, true) : WEFT_OK;
}

/* ---- values: numbers, booleans, dates ---- */

static weft_status fit_values(const fit *f, size_t column, weft__column *c) {
    double sum = 0;
    size_t count = 0;
    for (size_t row = 0; row < f->table->rows; row++) {
        const char *cell = cell_at(f, row, column);
        double value = 0;
        if (!is_training(f, row)) continue;
        if (is_missing(f, cell)) {
            c->missing = true;
            continue;
        }
        if (!weft__column_row_of(c)->parse(c, cell, &value)) continue; /* never: the kind was checked */
        if (c->kind == WEFT__COLUMN_DATE && fmod(value, DAY) != 0) c->time = true;
        sum += value;
        count++;
    }
    if (count == 0) return leave_out(f, c, "all cells of the training rows are missing");
    c->fill = sum / (double)count;
    return WEFT_OK;
}

/* ---- categories ---- */

/* The different values of a column, and how many training rows have each. */
typedef struct values {
    weft__labels labels;
    int64_t *counts; /* by number of the label */
    size_t cells;    /* that are not missing, in all rows */
} values;

typedef struct ranked {
    int64_t count;
    size_t place; /* in the order of bytes */
} ranked;

static int by_count(const void *x, const void *y) {
    const ranked *a = x, *b = y;
    if (a->count != b->count) return a->count < b->count ? 1 : -1;
    return (a->place > b->place) - (a->place < b->place);
}

/* Collects the values. Returns WEFT_ERR_FORMAT if there are too many. */
static weft_status collect(const fit *f, size_t column, weft__column *c, values *v) {
    size_t capacity = 0;
    for (size_t row = 0; row < f->table->rows; row++) {
        const char *cell = cell_at(f, row, column);
        uint32_t number;
        if (is_missing(f, cell)) {
            c->missing = c->missing || is_training(f, row);
            continue;
        }
        const size_t known = v->labels.count;
        WEFT_TRY(weft__labels_add(&v->labels, cell, strlen(cell), &number));
        if (v->labels.count > known) {
            if (!weft__grow(f->ctx, &v->counts, &capacity, known, sizeof *v->counts)) return fit_oom(f);
            v->counts[number] = 0;
        }
        v->counts[number] += is_training(f, row);
        v->cells++;
    }
    return WEFT_OK;
}

/* Keeps the most frequent values as levels, in the order of their bytes. */
static weft_status keep_levels(const fit *f, const values *v, weft__column *c) {
    const size_t all = v->labels.count, most = (size_t)f->config->data_max_levels;
    ranked *rank = weft__array(f->ctx, all, sizeof *rank);
    bool *kept = weft__array(f->ctx, all, sizeof *kept);
    const char **levels = weft__array(f->ctx, all, sizeof *levels);
    const bool made = rank && kept && levels;
    size_t seen = 0;
    for (size_t i = 0; made && i < all; i++) {
        rank[i] = (ranked){v->counts[v->labels.order[i]], i};
        seen += rank[i].count > 0;
    }
    if (made) qsort(rank, all, sizeof *rank, by_count);
    for (size_t i = 0; made && i < seen && i < most; i++) kept[rank[i].place] = true;
    for (size_t i = 0; made && i < all; i++)
        if (kept[i]) levels[c->level_count++] = weft__label(&v->labels, v->labels.order[i]);
    c->other = seen > c->level_count;
    if (made) c->levels = weft__strings_pack(f->ctx, levels, c->level_count);
    weft__free(f->ctx, rank);
    weft__free(f->ctx, kept);
    weft__free(f->ctx, levels);
    return c->levels ? WEFT_OK : fit_oom(f);
}

static weft_status take_levels(const fit *f, const values *v, weft__column *c, bool given) {
    const size_t all = v->labels.count;
    bool any = false;
    if (!given && all > FEW_LEVELS && all * 2 > v->cells) return leave_out(f, c, FREE_TEXT);
    for (size_t i = 0; i < all; i++) any = any || v->counts[i] > 0;
    if (!any) return leave_out(f, c, "all cells of the training rows are missing");
    c->fill = -1; /* a missing cell is no level */
    return keep_levels(f, v, c);
}

static weft_status fit_category(const fit *f, size_t column, weft__column *c, bool given) {
    values v = {.labels = {.ctx = f->ctx}};
    weft_status status = collect(f, column, c, &v);
    if (status == WEFT_OK)
        status = take_levels(f, &v, c, given);
    else if (status == WEFT_ERR_FORMAT)
        status = leave_out(f, c, FREE_TEXT);
    weft__labels_free(&v.labels);
    weft__free(f->ctx, v.counts);
    return status;
}

/* ---- all columns ---- */

static weft_status fit_column(const fit *f, size_t column, weft__column *c) {
    weft__column_kind given;
    const char *word = NULL;
    WEFT_TRY(given_kind(f, c->name, &given, &word));
    const bool is_given = given != WEFT__COLUMN_KINDS;
    WEFT_TRY(is_given ? check_kind(f, column, c, given, word) : find_kind(f, column, c));
    if (c->kind == WEFT__COLUMN_NONE) return WEFT_OK;
    return c->kind == WEFT__COLUMN_CATEGORY ? fit_category(f, column, c, is_given) : fit_values(f, column, c);
}

static weft_status new_columns(weft_context *ctx, const weft__config *config, const weft_table *table,
                               weft__columns *columns) {
    columns->list = weft__array(ctx, table->column_count, sizeof *columns->list);
    if (!columns->list) return weft__fail_oom(ctx, 0, "the columns of the table");
    columns->count = table->column_count;
    for (size_t i = 0; i < columns->count; i++) {
        columns->list[i].comma = config->data_decimal != 0;
        if (!(columns->list[i].name = weft__strdup(ctx, table->columns[i])))
            return weft__fail_oom(ctx, strlen(table->columns[i]), "the columns of the table");
    }
    return WEFT_OK;
}

weft_status weft__columns_fit(weft_context *ctx, const weft__config *config, const char *path,
                              const weft_table *table, const bool *training, weft__columns *columns) {
    const fit f = {ctx, config, path, table, training};
    WEFT_TRY(check_kinds(&f));
    WEFT_TRY(new_columns(ctx, config, table, columns));
    for (size_t i = 0; i < columns->count; i++) WEFT_TRY(fit_column(&f, i, &columns->list[i]));
    if (weft__columns_inputs(columns) > 0) return WEFT_OK;
    const weft__column *first = &columns->list[0];
    return weft__fail(ctx, WEFT_ERR_FORMAT,
                      "%s: no column is left to predict from; \"%.100s\" is left out: %s", path, first->name,
                      first->reason);
}

weft_status weft__columns_of_numbers(weft_context *ctx, const weft__config *config, const weft_table *table,
                                     const bool *training, weft__columns *columns) {
    const size_t count = table->column_count, rows = table->rows;
    const double *numbers = table->features.data;
    size_t used = 0;
    WEFT_TRY(new_columns(ctx, config, table, columns));
    for (size_t row = 0; row < rows; row++) {
        if (training && !training[row]) continue;
        used++;
        for (size_t i = 0; i < count; i++) columns->list[i].fill += numbers[row * count + i];
    }
    for (size_t i = 0; i < count && used; i++) columns->list[i].fill /= (double)used;
    return WEFT_OK;
}
