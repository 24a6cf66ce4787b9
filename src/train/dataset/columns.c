/* Applies the columns of a table: the inputs of a row, and their names. Must not know: how kinds are found
 * (columns_fit.c), files. Read next: column_kinds.c. */
#include "train/dataset/columns.h"

#include <string.h>
#include <strings.h>

#include "data/parse.h"

void weft__columns_free(weft_context *ctx, weft__columns *columns) {
    for (size_t i = 0; i < columns->count; i++) {
        weft__free(ctx, columns->list[i].name);
        weft__free(ctx, columns->list[i].levels);
        weft__free(ctx, columns->list[i].reason);
    }
    weft__free(ctx, columns->list);
    *columns = (weft__columns){0};
}

bool weft__cell_missing(const void *words, const char *cell) {
    const weft__texts *more = words;
    static const char *const usual[] = {"",     "?",    "na",   "n/a",  "nan", "null",
                                        "none", "#n/a", "<na>", "-nan", "nat"};
    const bool brief = strlen(cell) <= 4; /* as all usual words are */
    for (size_t i = 0; i < sizeof usual / sizeof *usual && brief; i++)
        if (strcasecmp(cell, usual[i]) == 0) return true;
    for (size_t i = 0; i < more->count; i++)
        if (strcmp(cell, more->values[i]) == 0) return true;
    return false;
}

int64_t weft__column_inputs(const weft__column *c) { return weft__column_row_of(c)->inputs(c) + c->missing; }

int64_t weft__columns_inputs(const weft__columns *columns) {
    int64_t inputs = 0;
    for (size_t i = 0; i < columns->count; i++) inputs += weft__column_inputs(&columns->list[i]);
    return inputs;
}

bool weft__columns_plain(const weft__columns *columns) {
    for (size_t i = 0; i < columns->count; i++) {
        const weft__column *c = &columns->list[i];
        if (c->kind != WEFT__COLUMN_NONE && (c->kind != WEFT__COLUMN_NUMBER || c->missing)) return false;
    }
    return true;
}

const char **weft__columns_read(weft_context *ctx, const weft__columns *columns, size_t *count) {
    const char **names = weft__array(ctx, columns->count, sizeof *names);
    *count = 0;
    for (size_t i = 0; names && i < columns->count; i++)
        if (columns->list[i].kind != WEFT__COLUMN_NONE) names[(*count)++] = columns->list[i].name;
    return names;
}

static void input_name(const weft__column *c, int64_t input, weft_text *out) {
    if (input < weft__column_row_of(c)->inputs(c))
        weft__column_row_of(c)->name(c, input, out);
    else
        weft__put(out, "%s (missing)", c->name);
}

char **weft__columns_names(weft_context *ctx, const weft__columns *columns) {
    const size_t inputs = (size_t)weft__columns_inputs(columns);
    size_t bytes = inputs * sizeof(char *), at = 0;
    for (size_t i = 0; i < columns->count; i++) {
        const weft__column *c = &columns->list[i];
        for (int64_t j = 0; j < weft__column_inputs(c); j++) {
            weft_text counted = weft__text(NULL, 0);
            input_name(c, j, &counted);
            bytes += counted.length + 1;
        }
    }
    char **names = weft__alloc(ctx, bytes), *text = names ? (char *)(names + inputs) : NULL;
    for (size_t i = 0; names && i < columns->count; i++) {
        const weft__column *c = &columns->list[i];
        for (int64_t j = 0; j < weft__column_inputs(c); j++) {
            weft_text name = weft__text(text, bytes);
            input_name(c, j, &name);
            names[at++] = text;
            text += name.length + 1;
        }
    }
    return names;
}

/* Writes the inputs of one cell. All are 0 before. False: the cell is not of the column's kind. */
static bool write_cell(const weft__config *config, weft__column *c, const char *cell, double *out) {
    const weft__column_row *row = weft__column_row_of(c);
    double value = c->fill;
    if (weft__cell_missing(&config->data_missing, cell)) {
        c->empty++;
        if (c->missing) out[row->inputs(c)] = 1;
    } else if (!row->parse(c, cell, &value)) {
        return false;
    }
    row->put(c, value, out);
    return true;
}

weft_status weft__columns_refuse(weft_context *ctx, const char *path, const weft_table *table, size_t row,
                                 const weft__column *c, const char *cell, const char *advice) {
    char shown[WEFT__EXCERPT], name[WEFT__EXCERPT];
    size_t in_file;
    const char *file = weft__table_file(table, path, row, &in_file);
    return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: line %zu (row %zu), column %s: expected %s, found %s%s",
                      file, table->lines[row], in_file + 1, weft__excerpt(name, c->name, strlen(c->name)),
                      weft__column_row_of(c)->expected, weft__excerpt(shown, cell, strlen(cell)), advice);
}

weft_status weft__columns_write(weft_context *ctx, const weft__config *config, const char *path,
                                const weft_table *table, const weft__columns *columns, weft_array *x) {
    const int64_t shape[2] = {(int64_t)table->rows, weft__columns_inputs(columns)};
    WEFT_TRY(weft_array_new(ctx, WEFT_F64, 2, shape, x));
    double *out = x->data;
    char *const *cell = table->cells;
    const bool whole =
        table->column_count == columns->count; /* the columns that are left out are there, too */
    for (size_t i = 0; i < columns->count; i++) columns->list[i].empty = 0;
    for (size_t row = 0; row < table->rows; row++)
        for (size_t i = 0; i < columns->count; i++) {
            weft__column *c = &columns->list[i];
            if (c->kind == WEFT__COLUMN_NONE) {
                cell += whole;
                continue;
            }
            if (!write_cell(config, c, *cell, out)) {
                weft_array_free(ctx, x);
                return weft__columns_refuse(ctx, path, table, row, c, *cell, "");
            }
            out += weft__column_inputs(c);
            cell++;
        }
    return WEFT_OK;
}

void weft__columns_unscale(const weft__columns *columns, double *mean, double *deviation) {
    for (size_t i = 0; i < columns->count; i++) {
        const weft__column *c = &columns->list[i];
        const int64_t inputs = weft__column_inputs(c);
        for (int64_t j = weft__column_row_of(c)->scaled; j < inputs; j++) {
            mean[j] = 0;
            deviation[j] = 1;
        }
        mean += inputs;
        deviation += inputs;
    }
}
