/* What the summary of the data says about tables: the columns by their kinds, what is left out and why. Must
 * not know: how columns are read. Read next: dataset_summary.c. */
#include <stdio.h>
#include <string.h>

#include "train/dataset/dataset_summary.h"
#include "train/source/csv.h"

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
    for (size_t i = 0; i < d->table.count; at += weft__column_inputs(&d->table.list[i++]))
        count += is_constant(d, &d->table.list[i], at);
    if (count == 0) return;
    weft__line(l, "no effect: %lld column%s with the same value in all training rows%s", (long long)count,
               weft__plural(count), d->columns ? ": " : "");
    at = 0;
    for (size_t i = 0; i < d->table.count && d->columns && !l->full;
         at += weft__column_inputs(&d->table.list[i++]))
        if (is_constant(d, &d->table.list[i], at))
            weft__line_item(l, ++put == count, "%.400s", d->table.list[i].name);
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
    for (size_t i = 0; i < d->table.count; i++) count += d->table.list[i].kind == kind;
    if (count == 0) return;
    char head[64];
    if (count == 1)
        snprintf(head, sizeof head, "%s", lines[kind][0]);
    else
        snprintf(head, sizeof head, lines[kind][1], (long long)count);
    weft__line(l, "%s%s", head, d->columns ? ": " : "");
    for (size_t i = 0; i < d->table.count && d->columns && !l->full; i++)
        if (d->table.list[i].kind == kind) put_column(&d->table.list[i], ++at == count, l);
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
    for (size_t i = 0; i < d->table.count; i++)
        if (strcmp(d->table.list[i].name, name) == 0) return false;
    return true;
}

void weft__csv_lines(const weft__dataset *d, const weft__config *config, weft__lines *l) {
    const char *file = weft__line_file(config->data_path);
    long long rows = (long long)weft__dataset_samples(d, WEFT__TRAIN), unused = 0, put = 0;
    if (!config->data_val_path) rows += (long long)weft__dataset_samples(d, WEFT__VALIDATION);
    const bool target = !weft__config_is(config, WEFT__TRAIT_NO_TARGETS);
    for (size_t i = 0; i < d->unused_count; i++) unused += is_unused(d, d->unused[i]);
    weft__line(l, "data: %lld rows, %lld columns%s, from %.300s", rows,
               (long long)d->table.count + target + (config->data_weight != NULL) + unused,
               d->unnamed ? " without names" : "", file);
    if (d->numbers_name)
        weft__line(l, "header: line 1, with numbers (--set data.header=no takes it for a row)");
    if (d->unnamed && config->data_header == 0)
        weft__line(l, "header: none (--set data.header=yes takes line 1 for names)");
    for (int kind = 0; kind < WEFT__COLUMN_NONE; kind++) put_kind(d, (weft__column_kind)kind, l);
    put_left_out(&d->table, l);
    put_constant(d, l);
    if (config->data_weight) weft__line(l, "weights of the rows: %.400s", config->data_weight);
    if (unused == 0) return;
    weft__line(l, "not used: %lld column%s: ", unused, weft__plural(unused));
    for (size_t i = 0; i < d->unused_count; i++)
        if (is_unused(d, d->unused[i])) weft__line_item(l, ++put == unused, "%.400s", d->unused[i]);
}
