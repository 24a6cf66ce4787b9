/* Reads csv files as data: finds the kinds of the columns in the training file, and reads other files as that
 * one. Must not know: kinds of columns (dataset/columns.h), how data are split. Read next:
 * dataset/columns_fit.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "data/parquet.h"
#include "data/parse.h"
#include "train/dataset/dataset_summary.h"
#include "train/source/csv.h"

weft_status weft__csv_options(weft_context *ctx, const weft__config *config, bool target,
                              weft_csv_options *options) {
    static const weft_csv_header headers[] = {WEFT_CSV_HEADER_AUTO, WEFT_CSV_HEADER_YES, WEFT_CSV_HEADER_NO};
    const char *delimiter = config->data_delimiter;
    const bool tab = delimiter && strcmp(delimiter, "tab") == 0;
    if (delimiter && delimiter[1] && !tab)
        return weft__fail(ctx, WEFT_ERR_ARGUMENT, "data.delimiter: give one character, or tab, not '%.20s'",
                          delimiter);
    *options = (weft_csv_options){.header = headers[config->data_header],
                                  .delimiter = tab         ? '\t'
                                               : delimiter ? delimiter[0]
                                                           : '\0',
                                  .decimal = config->data_decimal ? ',' : '.',
                                  .columns = (const char *const *)config->data_columns.values,
                                  .column_count = config->data_columns.count,
                                  .patterns = true,
                                  .max_bytes = (size_t)config->data_max_bytes,
                                  .f64 = true,
                                  .target = target ? config->data_target : NULL,
                                  .weight = target ? config->data_weight : NULL,
                                  .target_column = target && !config->data_target ? -1 : 0};
    if (config->data_columns.count == 0) options->columns = NULL;
    options->missing = weft__cell_missing;
    options->missing_words = &config->data_missing;
    if (target)
        options->target_type =
            config->task == WEFT__TASK_CLASSIFICATION ? WEFT_CSV_TARGET_CLASS : WEFT_CSV_TARGET_NUMBER;
    return WEFT_OK;
}

/* Tells whether it may help to read the file in another way. */
static bool is_refused(weft_status status) {
    return status == WEFT_ERR_FORMAT || status == WEFT_ERR_ARGUMENT;
}

/* Reads a table as numbers if `plain`. If that fails, or otherwise, reads the cells as text. */
static weft_status read_cells(weft_context *ctx, const char *path, const weft_csv_options *options,
                              bool plain, weft_table *table) {
    weft_csv_options text = *options;
    text.text = true;
    if (plain) {
        const weft_status status = weft_read_csv(ctx, path, options, table);
        if (!is_refused(status)) return status;
    }
    return weft_read_csv(ctx, path, &text, table);
}

/* ---- the training file ---- */

static bool has_index(const weft_table *table) {
    return table->columns[0][0] == '\0' || strcmp(table->columns[0], "Unnamed: 0") == 0;
}

/* Reads the training file. Plain numbers are the fast case. */
static weft_status read_first(weft_context *ctx, const weft__config *config, const char *path,
                              const weft_csv_options *options, weft_table *table) {
    WEFT_TRY(read_cells(ctx, path, options, config->data_kinds.count == 0, table));
    if (table->cells || !has_index(table)) return WEFT_OK;
    weft_table_free(ctx, table);
    return read_cells(ctx, path, options, false, table);
}

/* Tells whether the columns of the training data have names. Without them, the reader numbers the columns. */
static bool has_names(const weft__dataset *d) {
    const char *first = d->table.kinds.list[0].name;
    return d->table.inputs && (d->table.target || !first[0] || first[strspn(first, "0123456789")]);
}

/* Finds out what the model must know about the columns. */
static weft_status learn_columns(weft_context *ctx, const weft__config *config, const char *path,
                                 const weft_table *table, weft__dataset *d) {
    bool *training = NULL;
    const bool classes = config->task == WEFT__TASK_CLASSIFICATION && table->target.dtype == WEFT_I32;
    WEFT_TRY(weft__dataset_training_rows(ctx, config, (int64_t)table->rows,
                                         classes ? table->target.data : NULL, &training));
    const weft_status status = table->cells
                                   ? weft__columns_fit(ctx, config, path, table, training, &d->table.kinds)
                                   : weft__columns_of_numbers(ctx, config, table, training, &d->table.kinds);
    weft__free(ctx, training);
    WEFT_TRY(status);
    d->features = weft__columns_inputs(&d->table.kinds);
    const bool named = table->header;
    if (!named && weft__columns_plain(&d->table.kinds)) return WEFT_OK;
    if (!(d->table.inputs = weft__columns_names(ctx, &d->table.kinds)) ||
        (named && table->target_name && !(d->table.target = weft__strdup(ctx, table->target_name))))
        return weft__fail_oom(ctx, 0, "the names of the columns");
    return WEFT_OK;
}

/* ---- later files ---- */

/* Tells whether columns can only be found by their position: they have no names, or equal ones. */
static bool are_alike(const weft__dataset *d) {
    const weft__columns *columns = &d->table.kinds;
    if (!has_names(d)) return true;
    for (size_t i = 0; i < columns->count && columns->count <= 4096; i++)
        for (size_t j = 0; j < i; j++)
            if (strcmp(columns->list[i].name, columns->list[j].name) == 0) return true;
    return false;
}

/* Reads a file whose columns are those that the model reads, in the same order. False: it has others. */
static bool read_by_position(weft_context *ctx, const char *path, const weft_csv_options *options,
                             const weft__dataset *d, bool plain, size_t count, weft_table *table) {
    weft_csv_options all = *options;
    all.columns = NULL;
    if (read_cells(ctx, path, &all, plain, table) != WEFT_OK) return false;
    if (table->column_count == count && (!table->header || are_alike(d))) return true;
    weft_table_free(ctx, table);
    return false;
}

/* Reads the columns that the model reads, by their names. The file may have them in any order, and may have
 * other columns. */
static weft_status read_later(weft_context *ctx, const char *path, const weft_csv_options *options,
                              const weft__dataset *d, weft_table *table) {
    weft_csv_options named = *options;
    const bool plain = weft__columns_plain(&d->table.kinds);
    const char **names = weft__columns_read(ctx, &d->table.kinds, &named.column_count);
    if (!names) return weft__fail_oom(ctx, 0, "the names of the columns");
    named.columns = names;
    named.patterns = false;
    if (has_names(d) && named.header == WEFT_CSV_HEADER_AUTO) named.header = WEFT_CSV_HEADER_YES;
    if (options->target_column != 0 && d->table.target) {
        named.target = d->table.target;
        named.target_column = 0;
    }
    weft_status status = read_cells(ctx, path, &named, plain, table);
    if (is_refused(status)) {
        named.header = options->header;
        if (read_by_position(ctx, path, options, d, plain, named.column_count, table))
            status = WEFT_OK;
        else /* repeated for its message, which names the missing column */
            status = read_cells(ctx, path, &named, plain, table);
    }
    weft__free(ctx, names);
    return status;
}

/* ---- classes ---- */

/* Reports class names in a file although the training data have numbers as classes. */
static weft_status refuse_names(weft_context *ctx, const char *path, const weft_table *table) {
    size_t row = 0;
    const char *name = table->classes[0];
    for (; row < (size_t)table->target.shape[0]; row++) {
        name = table->classes[((const int32_t *)table->target.data)[row]];
        if (strspn(name, "0123456789") != strlen(name) || (name[0] == '0' && name[1])) break;
    }
    path = weft__table_file(table, path, row, &row);
    return weft__fail(ctx, WEFT_ERR_FORMAT,
                      "%s: row %zu, column \"%.100s\": class \"%.100s\", but the classes of the training "
                      "data are numbers from 0 on",
                      path, row + 1, table->target_name, name);
}

/* ---- any file ---- */

/* Makes the inputs of a table. */
static weft_status take_inputs(const weft__source_file *f, weft_table *table) {
    if (table->cells)
        return weft__columns_write(f->ctx, f->config, f->path, table, &f->dataset->table.kinds, f->x);
    *f->x = table->features;
    table->features = (weft_array){0};
    return WEFT_OK;
}

static weft_status take_table(const weft__source_file *f, weft_table *table) {
    weft_context *ctx = f->ctx;
    weft__dataset *d = f->dataset;
    const bool first = f->split == WEFT__TRAIN && d->features == 0, named = f->y && !d->classes;
    if (f->split == WEFT__TRAIN) {
        d->table.unnamed = !table->header;
        d->table.numbers_name = table->header_guessed;
        d->table.unused = table->unused;
        d->table.unused_count = table->unused_count;
        table->unused = NULL;
    }
    if (named && !table->classes)
        WEFT_TRY(weft__dataset_name_numbers(ctx, f->path, f->split, d, &table->target));
    if (first) WEFT_TRY(learn_columns(ctx, f->config, f->path, table, d));
    if (named && table->classes)
        WEFT_TRY(f->split == WEFT__TRAIN && d->outputs == 0
                     ? weft__dataset_take_classes(ctx, f->path, table->classes, table->class_count, d)
                     : refuse_names(ctx, f->path, table));
    WEFT_TRY(take_inputs(f, table));
    if (!f->y) return WEFT_OK;
    *f->y = table->target;
    d->weights[f->split] = table->weights;
    table->target = table->weights = (weft_array){0};
    return WEFT_OK;
}

static weft_status csv_file(const weft__source_file *f) {
    weft_context *ctx = f->ctx;
    const weft__dataset *d = f->dataset;
    weft_table table;
    weft_csv_options options;
    WEFT_TRY(weft__csv_options(ctx, f->config, f->y != NULL, &options));
    options.classes = (const char *const *)d->classes;
    options.class_count = d->classes ? (size_t)d->outputs : 0;
    if (d->table.kinds.count > 0)
        WEFT_TRY(read_later(ctx, f->path, &options, d, &table));
    else if (d->features > 0) /* a run of an older Weft, whose columns have no names */
        WEFT_TRY(weft_read_csv(ctx, f->path, &options, &table));
    else
        WEFT_TRY(read_first(ctx, f->config, f->path, &options, &table));
    const weft_status status = take_table(f, &table);
    weft_table_free(ctx, &table);
    return status;
}

/* ---- the task ---- */

static int by_number(const void *x, const void *y) {
    const double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* Tells whether numbers are no classes, and why. *why is NULL if they are two classes at most. Sorts them. */
static bool no_classes(double *values, size_t count, const char **why) {
    enum { CLASSES_MOST = 100, FEW_CLASSES = 20, ROWS_LEAST = 5 };
    size_t distinct = count > 0;
    *why = "has numbers with fractions";
    for (size_t i = 0; i < count; i++)
        if (values[i] != floor(values[i])) return true;
    qsort(values, count, sizeof *values, by_number);
    for (size_t i = 1; i < count; i++) distinct += values[i] != values[i - 1];
    *why = "has more than 100 different numbers";
    if (distinct > CLASSES_MOST) return true;
    *why = "has more than 20 different numbers, and fewer than 5 rows of each";
    if (distinct > FEW_CLASSES && count < ROWS_LEAST * distinct) return true;
    *why = distinct > 2 ? "has few different numbers" : NULL;
    return false;
}

static weft_status csv_guess_task(weft_context *ctx, weft__config *config, const char **why) {
    weft_csv_options options;
    weft_table table = {0};
    weft_status status = weft__csv_options(ctx, config, true, &options);
    options.target_type = WEFT_CSV_TARGET_NUMBER;
    options.text = true; /* the inputs do not matter here */
    if (status == WEFT_OK) status = weft_read_csv(ctx, config->data_path, &options, &table);
    if (status == WEFT_OK && no_classes(table.target.data, table.rows, why)) {
        config->task = WEFT__TASK_REGRESSION;
        config->origin[WEFT__KEY_task] = WEFT__ORIGIN_FOUND;
    }
    weft_table_free(ctx, &table);
    return status == WEFT_ERR_OOM ? status
                                  : WEFT_OK; /* reading the data for training says what else is wrong */
}

/* ---- cells ---- */

weft_status weft__dataset_column(weft_context *ctx, const weft__config *config, const char *path,
                                 const char *name, weft_table *table) {
    weft_csv_options options;
    *table = (weft_table){0};
    if (!weft__source_of(config)->cells)
        return weft__fail(ctx, WEFT_ERR_ARGUMENT, "%s: only csv files have columns such as \"%.60s\"", path,
                          name);
    WEFT_TRY(weft__csv_options(ctx, config, false, &options));
    options.columns = &name;
    options.column_count = 1;
    options.patterns = false;
    options.text = true;
    return weft_read_csv(ctx, path, &options, table);
}

static weft_status csv_cells(weft_context *ctx, const weft__dataset *dataset, const weft__config *config,
                             const char *const *cells, int64_t n, weft__inputs *inputs) {
    weft_table table = {.cells = (char **)(uintptr_t)cells, .rows = (size_t)n};
    const char **names = weft__columns_read(ctx, &dataset->table.kinds, &table.column_count);
    table.lines = weft__array(ctx, table.rows, sizeof *table.lines);
    const bool made = names && table.lines;
    for (size_t i = 0; made && i < table.rows; i++) table.lines[i] = i + 1;
    weft_status status =
        made ? weft__columns_write(ctx, config, "cells", &table, &dataset->table.kinds, &inputs->x)
             : weft__fail_oom(ctx, 0, "the cells of a table");
    weft__free(ctx, names);
    weft__free(ctx, table.lines);
    return status == WEFT_OK ? weft__dataset_finish_rows(ctx, dataset, &inputs->x) : status;
}

/* ---- data.json ---- */

static bool csv_save(const weft__dataset *d, json_t *object) {
    const weft__table_data *t = &d->table;
    bool made = true;
    if (t->inputs) made = weft__dataset_put_texts(object, "columns", t->inputs, d->features);
    if (t->inputs && t->target)
        made = json_object_set_new(object, "target", json_string(t->target)) == 0 && made;
    if (t->kinds.count > 0)
        made = json_object_set_new(object, "table", weft__columns_json(&t->kinds)) == 0 && made;
    return made;
}

static weft_status take_names(weft_context *ctx, const json_t *array, const json_t *target,
                              weft__dataset *d) {
    if (!array) return WEFT_OK;
    if (!json_is_array(array) || json_array_size(array) != (size_t)d->features) return WEFT_ERR_FORMAT;
    const char **names = weft__array(ctx, (size_t)d->features, sizeof *names);
    bool taken = names != NULL;
    for (int64_t i = 0; taken && i < d->features; i++)
        taken = (names[i] = json_string_value(json_array_get(array, (size_t)i))) != NULL;
    if (taken) d->table.inputs = weft__strings_pack(ctx, names, (size_t)d->features);
    const bool short_of_memory = !names || (taken && !d->table.inputs);
    weft__free(ctx, names);
    if (json_is_string(target) && !(d->table.target = weft__strdup(ctx, json_string_value(target))))
        return WEFT_ERR_OOM;
    return short_of_memory ? WEFT_ERR_OOM : taken ? WEFT_OK : WEFT_ERR_FORMAT;
}

/* Reads the columns of a table. A run of an older Weft has names of numbers only: missing cells then are the
 * mean. */
static weft_status take_kinds(weft_context *ctx, const json_t *array, weft__dataset *d) {
    if (array) {
        WEFT_TRY(weft__columns_take(ctx, array, &d->table.kinds));
        return weft__columns_inputs(&d->table.kinds) == d->features ? WEFT_OK : WEFT_ERR_FORMAT;
    }
    if (!d->table.inputs) return WEFT_OK;
    d->table.kinds.list = weft__array(ctx, (size_t)d->features, sizeof *d->table.kinds.list);
    if (!d->table.kinds.list) return WEFT_ERR_OOM;
    d->table.kinds.count = (size_t)d->features;
    for (size_t i = 0; i < d->table.kinds.count; i++) {
        d->table.kinds.list[i].fill = d->scaling.mean ? d->scaling.mean[i] : 0;
        if (!(d->table.kinds.list[i].name = weft__strdup(ctx, d->table.inputs[i]))) return WEFT_ERR_OOM;
    }
    return WEFT_OK;
}

static weft_status csv_take(weft_context *ctx, const json_t *object, weft__dataset *d) {
    WEFT_TRY(take_names(ctx, json_object_get(object, "columns"), json_object_get(object, "target"), d));
    return take_kinds(ctx, json_object_get(object, "table"), d);
}

/* ---- the summary: the columns by their kinds, what is left out and why ---- */

/* Tells whether all inputs of a column, from `first` on, are the same in all rows of the training data. */
static bool is_constant(const weft__dataset *d, const weft__column *c, int64_t first) {
    const weft_array *x = &d->x[WEFT__TRAIN];
    const float *values = (const float *)x->data + first;
    const int64_t inputs = weft__column_inputs(c);
    if (x->dtype != WEFT_F32 || inputs == 0) return false;
    for (int64_t i = 1; i < x->shape[0]; i++)
        for (int64_t j = 0; j < inputs; j++)
            if (values[i * d->features + j] != values[j]) return false;
    return x->shape[0] > 1;
}

static void put_constant(const weft__dataset *d, weft__lines *l) {
    int64_t count = 0, put = 0, at = 0;
    for (size_t i = 0; i < d->table.kinds.count; at += weft__column_inputs(&d->table.kinds.list[i++]))
        count += is_constant(d, &d->table.kinds.list[i], at);
    if (count == 0) return;
    weft__line(l, "no effect: %lld column%s with the same value in all training rows%s", (long long)count,
               weft__plural(count), d->table.inputs ? ": " : "");
    at = 0;
    for (size_t i = 0; i < d->table.kinds.count && d->table.inputs && !l->full;
         at += weft__column_inputs(&d->table.kinds.list[i++]))
        if (is_constant(d, &d->table.kinds.list[i], at))
            weft__line_item(l, ++put == count, "%.400s", d->table.kinds.list[i].name);
}

/* Adds a column to its line, with what is special about it. */
static void put_column(const weft__column *c, bool last, weft__lines *l) {
    char values[48] = "", missing[48] = "";
    const size_t levels = c->level_count;
    if (levels > 0)
        snprintf(values, sizeof values, "%zu value%s%s", levels, weft__plural((int64_t)levels),
                 c->other ? " and other" : "");
    if (c->empty > 0)
        snprintf(missing, sizeof missing, "%s%lld missing", values[0] ? ", " : "", (long long)c->empty);
    const bool more = values[0] || missing[0];
    weft__line_item(l, last, "%.400s%s%s%s%s", c->name, more ? " (" : "", values, missing, more ? ")" : "");
}

/* Puts a line about the columns of a kind, if there are any. */
static void put_kind(const weft__dataset *d, weft__column_kind kind, weft__lines *l) {
    static const char *const lines[WEFT__COLUMN_NONE][2] = {
        [WEFT__COLUMN_NUMBER] = {"inputs: 1 column of numbers", "inputs: %lld columns of numbers"},
        [WEFT__COLUMN_BOOLEAN] = {"inputs: 1 column of yes or no", "inputs: %lld columns of yes or no"},
        [WEFT__COLUMN_DATE] = {"inputs: 1 column of dates", "inputs: %lld columns of dates"},
        [WEFT__COLUMN_CATEGORY] = {"inputs: 1 category", "inputs: %lld categories"},
        [WEFT__COLUMN_ORDINAL] = {"inputs: 1 column of words in order",
                                  "inputs: %lld columns of words in order"},
    };
    int64_t count = 0, at = 0;
    for (size_t i = 0; i < d->table.kinds.count; i++) count += d->table.kinds.list[i].kind == kind;
    if (count == 0) return;
    char head[64];
    if (count == 1)
        snprintf(head, sizeof head, "%s", lines[kind][0]);
    else
        snprintf(head, sizeof head, lines[kind][1], (long long)count);
    weft__line(l, "%s%s", head, d->table.inputs ? ": " : "");
    for (size_t i = 0; i < d->table.kinds.count && d->table.inputs && !l->full; i++)
        if (d->table.kinds.list[i].kind == kind) put_column(&d->table.kinds.list[i], ++at == count, l);
}

static bool has_reason(const weft__column *c, const char *reason) {
    return c->kind == WEFT__COLUMN_NONE && strcmp(c->reason, reason) == 0;
}

/* Puts the columns that are left out, with one line for each reason. */
static void put_left_out(const weft__columns *columns, weft__lines *l) {
    for (size_t i = 0; i < columns->count; i++) {
        const char *reason = columns->list[i].reason;
        size_t last = i, before = 0;
        while (reason && before < i && !has_reason(&columns->list[before], reason)) before++;
        if (!reason || before < i) continue;
        for (size_t j = i; j < columns->count; j++)
            if (has_reason(&columns->list[j], reason)) last = j;
        weft__line(l, "left out (%.60s): ", reason);
        for (size_t j = i; j <= last; j++) {
            const char *name = columns->list[j].name;
            if (has_reason(&columns->list[j], reason))
                weft__line_item(l, j == last, "%.400s", name[0] ? name : "the first column");
        }
    }
}

/* Tells whether data.columns leaves a column out. A resumed run does not read columns that are left out for
 * another reason. */
static bool is_unused(const weft__dataset *d, const char *name) {
    for (size_t i = 0; i < d->table.kinds.count; i++)
        if (strcmp(d->table.kinds.list[i].name, name) == 0) return false;
    return true;
}

static void csv_lines(const weft__dataset *d, const weft__config *config, weft__lines *l) {
    const char *file = weft__line_file(config->data_path);
    long long rows = (long long)weft__dataset_samples(d, WEFT__TRAIN), unused = 0, put = 0;
    if (!config->data_val_path) rows += (long long)weft__dataset_samples(d, WEFT__VALIDATION);
    const bool target = !weft__config_is(config, WEFT__TRAIT_NO_TARGETS);
    for (size_t i = 0; i < d->table.unused_count; i++) unused += is_unused(d, d->table.unused[i]);
    weft__line(l, "data: %lld rows, %lld columns%s, from %.300s", rows,
               (long long)d->table.kinds.count + target + (config->data_weight != NULL) + unused,
               d->table.unnamed ? " without names" : "", file);
    if (d->table.numbers_name)
        weft__line(l, "header: line 1, with numbers (--set data.header=no takes it for a row)");
    if (d->table.unnamed && config->data_header == 0)
        weft__line(l, "header: none (--set data.header=yes takes line 1 for names)");
    for (int kind = 0; kind < WEFT__COLUMN_NONE; kind++) put_kind(d, (weft__column_kind)kind, l);
    put_left_out(&d->table.kinds, l);
    put_constant(d, l);
    if (config->data_weight) weft__line(l, "weights of the rows: %.400s", config->data_weight);
    if (unused == 0) return;
    weft__line(l, "not used: %lld column%s: ", unused, weft__plural(unused));
    for (size_t i = 0; i < d->table.unused_count; i++)
        if (is_unused(d, d->table.unused[i]))
            weft__line_item(l, ++put == unused, "%.400s", d->table.unused[i]);
}

/* ---- the source ---- */

void weft__csv_place(const weft__source_file *f, size_t sample, char out[WEFT__PLACE_BYTES]) {
    const char *given = f->config->data_target, *known = f->dataset->table.target;
    snprintf(out, WEFT__PLACE_BYTES, "%s: row %zu, column \"%.100s\"", f->path, sample + 1,
             given   ? given
             : known ? known
                     : "the last");
}

/* A folder of Parquet files is a table, too. */
static bool csv_guess(const weft__path_facts *path) {
    return path->folder ? weft__parquet_folder(path->path)
                        : weft__path_ends(path, ".csv") || weft__path_ends(path, ".parquet");
}

const weft__source_kind weft__data_csv = {.form = WEFT__FORM_TABLE,
                                          .unit = "row",
                                          .keys = {WEFT__KEY_data_max_bytes},
                                          .guess = csv_guess,
                                          .file = csv_file,
                                          .place = weft__csv_place,
                                          .guess_task = csv_guess_task,
                                          .cells = csv_cells,
                                          .save = csv_save,
                                          .take = csv_take,
                                          .lines = csv_lines};
