/* Texts and their classes, or pairs of texts: finds the columns of a file, and makes rows of tokens for an
 * encoder. Must not know: models. Read next: texts_classes.c, texts_json.c. */
#include <stdio.h>
#include <string.h>

#include <weft/published.h>

#include "base/text.h"
#include "data/parse.h"
#include "train/dataset/dataset_summary.h"
#include "train/source/texts.h"

weft_status weft__texts_fail(const weft__texts_table *t, size_t row, size_t column, const char *what) {
    size_t in_file;
    const char *file = weft__table_file(&t->table, t->path, row, &in_file);
    return weft__fail(t->ctx, WEFT_ERR_FORMAT, "%s: line %zu, column \"%.100s\": %s", file,
                      t->table.lines[row], t->table.columns[column], what);
}

/* ---- the file ---- */

/* Whether a file's name has this ending, before ".gz" if it is packed. */
static bool texts_ends(const char *path, const char *ending) {
    size_t size = strlen(path);
    const size_t end = strlen(ending);
    if (size > 3 && strcmp(path + size - 3, ".gz") == 0) size -= 3;
    return size > end && strncmp(path + size - end, ending, end) == 0;
}

/* Whether a file has this form. The name of a copy of standard input does not tell: then the training file
 * does. */
static bool has_form(const weft__texts_table *t, const char *ending) {
    static const char *const known[] = {".csv", ".tsv", ".jsonl", ".json", ".parquet"};
    const char *path = t->config->data_path ? t->config->data_path : t->path;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (texts_ends(t->path, known[i])) path = t->path;
    return texts_ends(path, ending);
}

/* Reads all columns of a file. */
static weft_status read_table(weft__texts_table *t, bool targets) {
    const weft__config *config = t->config;
    weft_csv_options options;
    const char *weight = targets ? config->data_weight : NULL;
    if (has_form(t, ".jsonl") || has_form(t, ".json")) {
        if (weight)
            return weft__fail(t->ctx, WEFT_ERR_ARGUMENT,
                              "data.weight: only csv and tsv files can have weights");
        return weft__texts_read_json(t->ctx, t->path, &t->table);
    }
    WEFT_TRY(weft__csv_options(t->ctx, config, false, &options));
    options.columns = NULL;
    options.column_count = 0;
    options.text = true;
    options.weight = weight;
    if (!config->data_delimiter && has_form(t, ".tsv")) options.delimiter = '\t';
    return weft_read_csv(t->ctx, t->path, &options, &t->table);
}

/* ---- columns ---- */

/* Returns the index of a column; the number of columns if there is none of that name. */
static size_t texts_column(const weft__texts_table *t, const char *name) {
    size_t i = 0;
    while (i < t->table.column_count && strcmp(t->table.columns[i], name) != 0) i++;
    return i;
}

static weft_status find_column(const weft__texts_table *t, const char *name, const char *key, size_t *place) {
    char names[400];
    *place = texts_column(t, name);
    if (*place < t->table.column_count) return WEFT_OK;
    return weft__fail(t->ctx, WEFT_ERR_FORMAT, "%s: no column \"%.100s\" (%s); the columns are %s", t->path,
                      name, key,
                      weft__list_names(t->table.columns, t->table.column_count, names, sizeof names));
}

/* Finds the column with the class. */
static weft_status find_target(weft__texts_table *t, const weft__dataset *d) {
    const char *name = t->config->data_target ? t->config->data_target : d->table.target;
    if (name) return find_column(t, name, "data.target", &t->target);
    t->target = texts_column(t, "label");
    if (t->target == t->table.column_count) t->target = t->table.column_count - 1;
    return WEFT_OK;
}

/* Columns that are texts by their names. */
static bool guess_by_name(weft__texts_table *t) {
    static const char *const known[][2] = {{"text", "text_pair"},
                                           {"premise", "hypothesis"},
                                           {"sentence1", "sentence2"},
                                           {"question1", "question2"},
                                           {"text1", "text2"},
                                           {"question", "sentence"},
                                           {"text", NULL},
                                           {"sentence", NULL}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        t->count = known[i][1] ? 2 : 1;
        bool there = true;
        for (size_t k = 0; k < t->count; k++) {
            t->column[k] = texts_column(t, known[i][k]);
            there = there && t->column[k] < t->table.column_count && t->column[k] != t->target;
        }
        if (there) return true;
    }
    return false;
}

/* Finds the columns of texts of the first file, without data.columns. */
static weft_status guess_texts(weft__texts_table *t) {
    char names[400];
    if (guess_by_name(t)) return WEFT_OK;
    t->count = 0;
    for (size_t i = 0; i < t->table.column_count; i++) {
        if (i == t->target) continue;
        if (t->count < 2) t->column[t->count] = i;
        t->count++;
    }
    if (t->count == 1 || t->count == 2) return WEFT_OK;
    return weft__fail(
        t->ctx, WEFT_ERR_ARGUMENT,
        "%s: which column has the texts? Name it in data.columns, or two for pairs of texts; the columns are "
        "%s, and \"%.100s\" has the classes",
        t->path, weft__list_names(t->table.columns, t->table.column_count, names, sizeof names),
        t->table.columns[t->target]);
}

/* Finds the columns of texts: those that are known, those of data.columns, or by their names. */
static weft_status find_texts(weft__texts_table *t, const weft__dataset *d) {
    const weft__texts *given = &t->config->data_columns;
    char *const *names = d->texts.columns ? d->texts.columns : given->values;
    t->count = d->texts.columns ? d->texts.count : given->count;
    for (size_t i = 0; i < t->count; i++) WEFT_TRY(find_column(t, names[i], "data.columns", &t->column[i]));
    if (t->count > 0) return WEFT_OK;
    return guess_texts(t);
}

/* Notes the columns of the first file. */
static weft_status note_columns(const weft__texts_table *t, weft__dataset *d) {
    const char *names[2] = {t->table.columns[t->column[0]], t->table.columns[t->column[t->count - 1]]};
    if (d->texts.columns) return WEFT_OK;
    d->texts.columns = weft__strings_pack(t->ctx, names, t->count);
    d->texts.count = t->count;
    d->table.target = weft__strdup(t->ctx, t->table.columns[t->target]);
    return d->texts.columns && d->table.target ? WEFT_OK
                                               : weft__fail_oom(t->ctx, 0, "the names of the columns");
}

/* ---- rows of tokens ---- */

/* The tokens of all texts, one after the other, and their types. */
typedef struct encoded {
    int32_t *ids, *types;
    size_t count, ids_room, types_room;
    int32_t *row_ids, *row_types; /* [context] of one text */
    int32_t *lengths;             /* [rows] */
    int64_t longest, shortened;
} encoded;

static bool is_blank(const char *text) { return text[strspn(text, " \t\r\n")] == '\0'; }

static weft_status encode_row(const weft__texts_table *t, const weft__dataset *d, size_t row, encoded *e) {
    const char *texts[2] = {NULL, NULL};
    int64_t count = 0;
    bool whole = true;
    for (size_t i = 0; i < t->count; i++) {
        texts[i] = t->table.cells[row * t->table.column_count + t->column[i]];
        if (!texts[i]) return weft__texts_fail(t, row, t->column[i], "there is no text");
        if (is_blank(texts[i])) return weft__texts_fail(t, row, t->column[i], "the text is empty");
    }
    const weft_status status =
        weft_tokenizer_encode_row(d->tokens.tokenizer, texts[0], texts[1], t->config->model_context,
                                  e->row_ids, e->row_types, &count, &whole);
    if (status == WEFT_ERR_ARGUMENT)
        return weft__fail(t->ctx, status, "model.context: %lld tokens have no room for a text: give more",
                          (long long)t->config->model_context);
    if (status == WEFT_ERR_FORMAT || status == WEFT_ERR_INDEX) {
        char what[300];
        snprintf(what, sizeof what, "%.280s", weft_last_error(d->tokens.tokenizer_ctx));
        return weft__texts_fail(t, row, t->column[0], what);
    }
    WEFT_TRY(status);
    for (int64_t i = 0; i < count; i++, e->count++) {
        if (!weft__grow(t->ctx, &e->ids, &e->ids_room, e->count, sizeof *e->ids) ||
            !weft__grow(t->ctx, &e->types, &e->types_room, e->count, sizeof *e->types))
            return weft__fail_oom(t->ctx, e->count * sizeof *e->ids, "the tokens of texts");
        e->ids[e->count] = e->row_ids[i];
        e->types[e->count] = e->row_types[i];
    }
    e->lengths[row] = (int32_t)count;
    e->longest = weft__larger(e->longest, count);
    e->shortened += !whole;
    return WEFT_OK;
}

/* Makes x, i32 (N, 2, T): tokens, and their types, which are -1 in padding. */
static weft_status lay_rows(const weft__texts_table *t, const weft__dataset *d, const encoded *e,
                            weft_array *x) {
    const int64_t rows = (int64_t)t->table.rows, time = e->longest;
    const int32_t *ids = e->ids, *types = e->types,
                  found = weft_tokenizer_special(d->tokens.tokenizer, WEFT_SPECIAL_PAD),
                  pad = found < 0 ? 0 : found;
    WEFT_TRY(weft_array_new(t->ctx, WEFT_I32, 3, (int64_t[]){rows, 2, time}, x));
    int32_t *to = x->data;
    for (int64_t row = 0; row < rows; row++) {
        const int64_t length = e->lengths[row];
        for (int64_t i = 0; i < time; i++) {
            *to = i < length ? ids[i] : pad;
            to[time] = i < length ? types[i] : -1;
            to++;
        }
        to += time;
        ids += length;
        types += length;
    }
    return WEFT_OK;
}

static weft_status encode_all(const weft__texts_table *t, weft__split split, weft__dataset *d,
                              weft_array *x) {
    const int64_t rows = (int64_t)t->table.rows;
    const size_t context = (size_t)t->config->model_context;
    encoded e = {.row_ids = weft__array(t->ctx, context, sizeof *e.row_ids),
                 .row_types = weft__array(t->ctx, context, sizeof *e.row_types)};
    weft_status status = weft_array_new(t->ctx, WEFT_I32, 1, &rows, &d->lengths[split]);
    if (status == WEFT_OK && (!e.row_ids || !e.row_types))
        status = weft__fail_oom(t->ctx, context * 8, "the tokens of a text");
    e.lengths = d->lengths[split].data;
    for (size_t row = 0; row < t->table.rows && status == WEFT_OK; row++) status = encode_row(t, d, row, &e);
    if (status == WEFT_OK) status = lay_rows(t, d, &e, x);
    d->texts.shortened[split] = e.shortened;
    d->texts.tokens[split] = (int64_t)e.count;
    weft__free(t->ctx, e.ids);
    weft__free(t->ctx, e.types);
    weft__free(t->ctx, e.row_ids);
    weft__free(t->ctx, e.row_types);
    return status;
}

static weft_status take_file(weft__texts_table *t, const weft__source_file *f) {
    weft__dataset *d = f->dataset;
    if (f->y || !d->texts.columns) WEFT_TRY(find_target(t, d));
    WEFT_TRY(find_texts(t, d));
    for (size_t i = 0; f->y && i < t->count; i++)
        if (t->column[i] == t->target)
            return weft__fail(
                t->ctx, WEFT_ERR_ARGUMENT,
                "%s: the column \"%.100s\" cannot hold both the texts and the classes: name the column "
                "of the classes in data.target",
                t->path, t->table.columns[t->target]);
    WEFT_TRY(note_columns(t, d));
    WEFT_TRY(encode_all(t, f->split, d, f->x));
    d->features = 2 * t->config->model_context;
    if (!f->y) return WEFT_OK;
    d->weights[f->split] = t->table.weights;
    t->table.weights = (weft_array){0};
    return weft__texts_classes(t, d, f->y);
}

weft_status weft__dataset_text_tokenizer(weft_context *ctx, const weft__config *config, weft__dataset *d) {
    d->texts.rows = true;
    if (!config->published)
        return weft__fail(ctx, WEFT_ERR_ARGUMENT,
                          "model.init: an encoder is fine-tuned: name the folder of a published one");
    if (d->tokens.tokenizer) return WEFT_OK;
    d->tokens.tokenizer_ctx = ctx;
    return weft_published_tokenizer(ctx, config->published, &d->tokens.tokenizer);
}

/* Tells how many texts of a file are too long for a trained model. */
static void tell_shortened(const weft__source_file *f) {
    const int64_t shortened = f->dataset->texts.shortened[f->split];
    char line[300];
    if (shortened == 0 || !weft__dataset_tell) return;
    snprintf(line, sizeof line, "%.200s: %lld texts have more than %lld tokens: only their begin counts",
             f->path, (long long)shortened, (long long)f->config->model_context);
    weft__dataset_tell(line);
}

static weft_status texts_file(const weft__source_file *f) {
    weft__texts_table t = {.ctx = f->ctx, .config = f->config, .path = f->path};
    WEFT_TRY(weft__dataset_text_tokenizer(f->ctx, f->config, f->dataset));
    weft_status status = read_table(&t, f->y != NULL);
    if (status == WEFT_OK) status = take_file(&t, f);
    weft_table_free(f->ctx, &t.table);
    if (f->inputs) f->inputs->lengths = f->dataset->lengths[f->split];
    if (f->inputs && status == WEFT_OK) tell_shortened(f);
    return status;
}

static weft_status texts_cells(weft_context *ctx, const weft__dataset *dataset, const weft__config *config,
                               const char *const *cells, int64_t n, weft__inputs *inputs) {
    weft__dataset known = *dataset; /* used for its tokenizer; it frees nothing */
    weft__texts_table t = {.ctx = ctx,
                           .config = config,
                           .path = "cells",
                           .table = {.cells = (char **)(uintptr_t)cells,
                                     .rows = (size_t)n,
                                     .columns = known.texts.columns,
                                     .column_count = known.texts.count},
                           .column = {0, 1},
                           .count = known.texts.count};
    known.lengths[WEFT__TEST] = (weft_array){0};
    t.table.lines = weft__array(ctx, t.table.rows, sizeof *t.table.lines);
    weft_status status = t.table.lines ? WEFT_OK : weft__fail_oom(ctx, t.table.rows * 8, "texts");
    for (size_t i = 0; status == WEFT_OK && i < t.table.rows; i++) t.table.lines[i] = i + 1;
    if (status == WEFT_OK) status = encode_all(&t, WEFT__TEST, &known, &inputs->x);
    inputs->lengths = known.lengths[WEFT__TEST];
    weft__free(ctx, t.table.lines);
    if (status != WEFT_OK) weft__inputs_free(ctx, inputs);
    return status;
}

/* ---- the summary ---- */

static void texts_lines(const weft__dataset *d, const weft__config *config, weft__lines *l) {
    const int64_t aside = config->data_val_path ? 0 : weft__dataset_samples(d, WEFT__VALIDATION);
    const int64_t texts = weft__dataset_samples(d, WEFT__TRAIN) + aside,
                  tokens = d->texts.tokens[WEFT__TRAIN];
    int64_t shortened = 0;
    for (int i = 0; i < WEFT__SPLIT_COUNT; i++) shortened += d->texts.shortened[i];
    const bool pairs = d->texts.count == 2;
    weft__line(l, "data: %lld %s, %.0f tokens each on average, from %.300s", (long long)texts,
               pairs ? "pairs of texts" : "texts", (double)tokens / (double)texts,
               weft__line_file(config->data_path));
    if (pairs)
        weft__line(l, "first text: %.200s, second text: %.200s", d->texts.columns[0], d->texts.columns[1]);
    else
        weft__line(l, "text: %.400s", d->texts.columns[0]);
    if (shortened > 0)
        weft__line(l, "longer than model.context: %lld %s, of which the first %lld tokens count",
                   (long long)shortened, pairs ? "pairs" : "texts", (long long)config->model_context);
    if (d->texts.head_classes < 0) return;
    if (!d->texts.new_head)
        weft__line(l, "head: the one that the model has for these classes");
    else if (d->texts.head_classes > 0)
        weft__line(l, "head: new and random, since that of the model is for %lld other classes",
                   (long long)d->texts.head_classes);
    else
        weft__line(l, "head: new and random, since the model has none");
}

/* ---- data.json ---- */

static bool texts_save(const weft__dataset *d, json_t *object) {
    const bool made = weft__dataset_put_texts(object, "texts", d->texts.columns, (int64_t)d->texts.count);
    json_object_set_new(object, "target", json_string(d->table.target));
    json_object_set_new(object, "new_head", json_boolean(d->texts.new_head));
    return made;
}

static weft_status texts_take(weft_context *ctx, const json_t *object, weft__dataset *d) {
    const json_t *array = json_object_get(object, "texts");
    const char *names[2], *target = json_string_value(json_object_get(object, "target"));
    d->texts.count = json_array_size(array);
    if (d->texts.count < 1 || d->texts.count > 2 || !target) return WEFT_ERR_FORMAT;
    for (size_t i = 0; i < d->texts.count; i++)
        if (!(names[i] = json_string_value(json_array_get(array, i)))) return WEFT_ERR_FORMAT;
    d->texts.columns = weft__strings_pack(ctx, names, d->texts.count);
    d->table.target = weft__strdup(ctx, target);
    d->texts.new_head = json_is_true(json_object_get(object, "new_head"));
    d->texts.head_classes = -1;
    return d->texts.columns && d->table.target ? WEFT_OK : WEFT_ERR_OOM;
}

static bool texts_guess(const weft__path_facts *path) { return path->size > 0; }

const weft__source_kind weft__data_texts = {.form = WEFT__FORM_TEXTS,
                                            .unit = "text",
                                            .guess = texts_guess,
                                            .file = texts_file,
                                            .place = weft__csv_place,
                                            .cells = texts_cells,
                                            .save = texts_save,
                                            .take = texts_take,
                                            .lines = texts_lines};
