/* The columns of a table as people have them: numbers, yes or no, categories, dates, with cells missing. Each
 * column has a kind, and becomes one or more inputs of the model. What is learned about a column comes from
 * the training rows alone; data.json keeps it. Must not know: files, models. Read next: column_kinds.c. */
#ifndef WEFT_SRC_TRAIN_DATASET_COLUMNS_H
#define WEFT_SRC_TRAIN_DATASET_COLUMNS_H

#include <weft/data.h>

#include "base/json.h"
#include "base/text.h"
#include "train/config/config.h"

/* In the order in which a column of text is tried. */
typedef enum weft__column_kind {
    WEFT__COLUMN_NUMBER,
    WEFT__COLUMN_BOOLEAN,
    WEFT__COLUMN_DATE,
    WEFT__COLUMN_CATEGORY,
    WEFT__COLUMN_ORDINAL, /* words in an order; only data.kinds knows them */
    WEFT__COLUMN_NONE,    /* left out */
    WEFT__COLUMN_KINDS
} weft__column_kind;

typedef struct weft__column {
    char *name;
    weft__column_kind kind;
    double fill;  /* the value of missing cells */
    bool missing; /* the training rows have missing cells: one more input is 1 for them */
    bool other;   /* category: one more input for values that are not in `levels` */
    bool comma;   /* numbers have a decimal comma */
    bool time;    /* date: the cells have a time of day */
    /* category: the values with an input of their own, sorted by their bytes; ordinal: all values, the lowest
     * first; in one block */
    char **levels;
    size_t level_count;
    char *reason;  /* left out: why */
    int64_t empty; /* missing cells in the training file, for the summary; not kept */
} weft__column;

typedef struct weft__columns {
    weft__column *list;
    size_t count;
} weft__columns;

/* ---- column_kinds.c: a table with a row for each kind ---- */

typedef struct weft__column_row {
    const char *word;     /* in data.kinds and data.json */
    const char *expected; /* for messages: "a number" */
    int64_t scaled;       /* so many of the first inputs are scaled; the others are 0 or 1, or near */
    /* Reads a cell that is not missing. False: it is not of this kind. */
    bool (*parse)(const weft__column *c, const char *cell, double *value);
    /* The number of inputs, besides the one for missing cells. */
    int64_t (*inputs)(const weft__column *c);
    /* Writes the inputs of a value; all are 0 before. */
    void (*put)(const weft__column *c, double value, double *out);
    void (*name)(const weft__column *c, int64_t input, weft_text *out);
} weft__column_row;

extern const weft__column_row weft__column_rows[WEFT__COLUMN_KINDS];

/* Returns the kind of this word, or WEFT__COLUMN_KINDS. */
weft__column_kind weft__column_kind_of(const char *word);
static inline const weft__column_row *weft__column_row_of(const weft__column *c) {
    return &weft__column_rows[c->kind];
}

/* ---- column_dates.c ---- */

enum { WEFT__DATE_INPUTS = 10, WEFT__DATE_INPUTS_WITH_TIME = 12 };
/* Reads a date of ISO 8601, with or without a time of day: seconds since 1970 on the clock that wrote it. */
bool weft__date_parse(const char *cell, double *seconds);
void weft__date_put(double seconds, bool time, double *out);
const char *weft__date_input(int64_t input);

/* ---- columns_fit.c: what the training rows tell ---- */

/* Finds the kinds of all columns and what each one needs. `training` tells for each row whether it is one of
 * the training rows; NULL: all are. */
weft_status weft__columns_fit(weft_context *ctx, const weft__config *config, const char *path,
                              const weft_table *table, const bool *training, weft__columns *columns);
/* The same for a table of numbers, f64, without missing cells. */
weft_status weft__columns_of_numbers(weft_context *ctx, const weft__config *config, const weft_table *table,
                                     const bool *training, weft__columns *columns);

/* ---- columns.c ---- */

void weft__columns_free(weft_context *ctx, weft__columns *columns);
/* Tells whether a cell is missing. `words`, a weft__texts, stand for a missing cell besides the usual
 * ones. */
bool weft__cell_missing(const void *words, const char *cell);
/* The number of inputs that all columns, or one column, become. */
int64_t weft__columns_inputs(const weft__columns *columns);
int64_t weft__column_inputs(const weft__column *column);
/* Tells whether each column is numbers without missing cells, so that the table can be read as numbers. */
bool weft__columns_plain(const weft__columns *columns);
/* Returns the names of the columns that the model reads, in one block, and their number. NULL when memory is
 * short. */
const char **weft__columns_read(weft_context *ctx, const weft__columns *columns, size_t *count);
/* Returns the names of the inputs, in one block. NULL when memory is short. */
char **weft__columns_names(weft_context *ctx, const weft__columns *columns);
/* Makes the inputs (rows, inputs), f64, of a table that was read as text. Its columns are all of `columns`,
 * or those that the model reads, in their order. Counts the missing cells. */
weft_status weft__columns_write(weft_context *ctx, const weft__config *config, const char *path,
                                const weft_table *table, const weft__columns *columns, weft_array *x);
/* Reports a cell that is not of its column's kind. `advice` ends the message. */
weft_status weft__columns_refuse(weft_context *ctx, const char *path, const weft_table *table, size_t row,
                                 const weft__column *c, const char *cell, const char *advice);
/* Sets mean and deviation to 0 and 1 for inputs that are not to be scaled. */
void weft__columns_unscale(const weft__columns *columns, double *mean, double *deviation);

/* ---- columns_json.c ---- */

json_t *weft__columns_json(const weft__columns *columns);
/* Returns WEFT_ERR_FORMAT or WEFT_ERR_OOM without a message. */
weft_status weft__columns_take(weft_context *ctx, const json_t *array, weft__columns *columns);

#endif
