/* Decides which columns of a csv file are features and which one is the target. The decision uses the options
 * and the names in the first line. Columns without names are named 1, 2, ... Must not know: cells. Read next:
 * csv.c. */
#include "data/csv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Writes the names of the columns for a message: `"a", "b", "c", ...`. Returns out. */
static const char *list_names(const csv_columns *c, char *out, size_t size) {
    size_t n = 0;
    out[0] = 0;
    for (size_t i = 0; i < c->count; i++) {
        char shown[WEFT__EXCERPT];
        weft__excerpt(shown, c->name[i], strlen(c->name[i]));
        if (n + strlen(shown) + 8 > size) {
            snprintf(out + n, size - n, ", ...");
            break;
        }
        n += (size_t)snprintf(out + n, size - n, "%s%s", n > 0 ? ", " : "", shown);
    }
    return out;
}

/* Finds the only column of that name. No such column and two of them are errors. */
static weft_status csv_columns_find(weft_context *ctx, const char *file, const csv_columns *c,
                                    const char *name, size_t *at) {
    char shown[WEFT__EXCERPT], names[320];
    if (name == NULL) return weft__fail(ctx, WEFT_ERR_ARGUMENT, "%s: a column's name is NULL", file);
    size_t found = c->count;
    for (size_t i = 0; i < c->count; i++) {
        if (strcmp(c->name[i], name) != 0) continue;
        if (found < c->count) {
            return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: columns %zu and %zu are both named %s", file,
                              found + 1, i + 1, weft__excerpt(shown, name, strlen(name)));
        }
        found = i;
    }
    *at = found;
    if (found < c->count) return WEFT_OK;
    return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: no column named %s; the columns are %s", file,
                      weft__excerpt(shown, name, strlen(name)), list_names(c, names, sizeof names));
}

/* Chooses the target by its name or its number. Numbers count from 1, or from the end if they are
 * negative. */
static weft_status choose_target(weft_context *ctx, const char *file, csv_columns *c,
                                 const weft_csv_options *o) {
    c->target = c->count;
    if (o->target != NULL) {
        WEFT_TRY(csv_columns_find(ctx, file, c, o->target, &c->target));
    } else if (o->target_column != 0) {
        int64_t count = (int64_t)c->count,
                at = o->target_column > 0 ? o->target_column - 1 : count + o->target_column;
        if (at < 0 || at >= count) {
            return weft__fail(ctx, WEFT_ERR_ARGUMENT, "%s: target column %d, but the file has %zu columns",
                              file, o->target_column, c->count);
        }
        c->target = (size_t)at;
    }
    if (c->target < c->count) c->slot[c->target] = CSV_TARGET;
    return WEFT_OK;
}

/* Gives each wanted column its index among the features. */
static weft_status choose_features(weft_context *ctx, const char *file, csv_columns *c,
                                   const weft_csv_options *o) {
    if (o->columns == NULL) {
        for (size_t i = 0; i < c->count; i++) {
            if (c->slot[i] == CSV_UNUSED) c->slot[i] = (ptrdiff_t)c->features++;
        }
    }
    for (size_t i = 0; o->columns != NULL && i < o->column_count; i++) {
        size_t at;
        WEFT_TRY(csv_columns_find(ctx, file, c, o->columns[i], &at));
        if (c->slot[at] != CSV_UNUSED) {
            char shown[WEFT__EXCERPT];
            return weft__fail(ctx, WEFT_ERR_ARGUMENT, "%s: column %s is asked for twice%s", file,
                              weft__excerpt(shown, c->name[at], strlen(c->name[at])),
                              c->slot[at] == CSV_TARGET ? " (it is the target)" : "");
        }
        c->slot[at] = (ptrdiff_t)c->features++;
    }
    if (c->features > 0) return WEFT_OK;
    return weft__fail(ctx, WEFT_ERR_ARGUMENT,
                      "%s: no feature columns are left beside the target; is the delimiter right?", file);
}

weft_status weft__csv_choose(weft_context *ctx, const char *file, char **names, size_t count,
                             const weft_csv_options *options, csv_columns *c) {
    *c = (csv_columns){.name = names, .count = count};
    c->slot = weft__array(ctx, count, sizeof *c->slot);
    if (c->slot == NULL) return weft__fail_oom(ctx, count * sizeof *c->slot, file);
    for (size_t i = 0; i < count; i++) c->slot[i] = CSV_UNUSED;
    WEFT_TRY(choose_target(ctx, file, c, options));
    return choose_features(ctx, file, c, options);
}

char **weft__csv_numbered(weft_context *ctx, size_t count) {
    const size_t width = 21; /* bytes of a size_t in decimal, with its NUL */
    if (count > (size_t)PTRDIFF_MAX / (width + sizeof(char *))) return NULL;
    char **names = weft__alloc(ctx, count * (width + sizeof(char *)));
    if (names == NULL) return NULL;
    char *text = (char *)(names + count);
    for (size_t i = 0; i < count; i++) {
        names[i] = text;
        text += snprintf(text, width, "%zu", i + 1) + 1;
    }
    return names;
}
