/* Decides which columns of a csv file are features and which one is the target. The decision uses the options
 * and the names in the first line. Columns without names are named 1, 2, ... Must not know: cells. Read next:
 * csv.c. */
#include "data/csv.h"

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *weft__list_names(char *const *names, size_t count, char *out, size_t size) {
    size_t n = 0;
    out[0] = 0;
    for (size_t i = 0; i < count; i++) {
        char shown[WEFT__EXCERPT];
        weft__excerpt(shown, names[i], strlen(names[i]));
        if (n + strlen(shown) + 8 > size) {
            snprintf(out + n, size - n, ", ...");
            break;
        }
        n += (size_t)snprintf(out + n, size - n, "%s%s", n > 0 ? ", " : "", shown);
    }
    return out;
}

static weft_status fail_unknown(weft_context *ctx, const char *file, const csv_columns *c, const char *name) {
    char shown[WEFT__EXCERPT], names[320];
    return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: no column named %s; the columns are %s", file,
                      weft__excerpt(shown, name, strlen(name)),
                      weft__list_names(c->name, c->count, names, sizeof names));
}

/* Finds the only column of that name. No such column and two of them are errors. */
static weft_status csv_columns_find(weft_context *ctx, const char *file, const csv_columns *c,
                                    const char *name, size_t *at) {
    char shown[WEFT__EXCERPT];
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
    return found < c->count ? WEFT_OK : fail_unknown(ctx, file, c, name);
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

static weft_status choose_weight(weft_context *ctx, const char *file, csv_columns *c,
                                 const weft_csv_options *o) {
    size_t at;
    if (o->weight == NULL) return WEFT_OK;
    WEFT_TRY(csv_columns_find(ctx, file, c, o->weight, &at));
    if (c->slot[at] == CSV_TARGET)
        return weft__fail(ctx, WEFT_ERR_ARGUMENT, "%s: the target cannot be the column of weights, too",
                          file);
    c->slot[at] = CSV_WEIGHT;
    return WEFT_OK;
}

static bool has_name(const csv_columns *c, const char *name) {
    for (size_t i = 0; i < c->count; i++)
        if (strcmp(c->name[i], name) == 0) return true;
    return false;
}

/* Names the columns to leave out: a dash, and a name or pattern. NULL if the name is not of this form, or is
 * that of a column. */
static const char *to_leave_out(const csv_columns *c, const weft_csv_options *o, const char *name) {
    return o->patterns && name != NULL && name[0] == '-' && !has_name(c, name) ? name + 1 : NULL;
}

static bool is_left_out(const csv_columns *c, const weft_csv_options *o, const char *name) {
    for (size_t i = 0; i < o->column_count; i++) {
        const char *pattern = to_leave_out(c, o, o->columns[i]);
        if (pattern != NULL && weft__matches(pattern, name)) return true;
    }
    return false;
}

/* Takes the columns that match a pattern and are not taken yet. None that matches is an error. */
static weft_status choose_pattern(weft_context *ctx, const char *file, csv_columns *c,
                                  const weft_csv_options *o, const char *pattern) {
    bool any = false;
    for (size_t i = 0; i < c->count; i++) {
        if (!weft__matches(pattern, c->name[i])) continue;
        any = true;
        if (c->slot[i] == CSV_UNUSED && !is_left_out(c, o, c->name[i])) c->slot[i] = (ptrdiff_t)c->features++;
    }
    return any ? WEFT_OK : fail_unknown(ctx, file, c, pattern);
}

static weft_status choose_name(weft_context *ctx, const char *file, csv_columns *c, const weft_csv_options *o,
                               const char *name) {
    const char *not_wanted = to_leave_out(c, o, name);
    char shown[WEFT__EXCERPT];
    size_t at;
    if (not_wanted != NULL) {
        bool any = false;
        for (size_t i = 0; i < c->count; i++) any = any || weft__matches(not_wanted, c->name[i]);
        return any ? WEFT_OK : fail_unknown(ctx, file, c, not_wanted);
    }
    if (o->patterns && name != NULL && strpbrk(name, "*?") != NULL && !has_name(c, name))
        return choose_pattern(ctx, file, c, o, name);
    WEFT_TRY(csv_columns_find(ctx, file, c, name, &at));
    if (c->slot[at] != CSV_UNUSED)
        return weft__fail(ctx, WEFT_ERR_ARGUMENT, "%s: column %s is asked for twice%s", file,
                          weft__excerpt(shown, c->name[at], strlen(c->name[at])),
                          c->slot[at] == CSV_TARGET   ? " (it is the target)"
                          : c->slot[at] == CSV_WEIGHT ? " (it holds the weights)"
                                                      : "");
    c->slot[at] = (ptrdiff_t)c->features++;
    return WEFT_OK;
}

/* Gives each wanted column its index among the features. */
static weft_status choose_features(weft_context *ctx, const char *file, csv_columns *c,
                                   const weft_csv_options *o) {
    bool all = true; /* nothing is named but what to leave out */
    for (size_t i = 0; o->columns != NULL && i < o->column_count; i++) {
        all = all && to_leave_out(c, o, o->columns[i]) != NULL;
        WEFT_TRY(choose_name(ctx, file, c, o, o->columns[i]));
    }
    all = o->columns == NULL || (all && o->column_count > 0);
    for (size_t i = 0; i < c->count && all; i++)
        if (c->slot[i] == CSV_UNUSED && !(o->columns != NULL && is_left_out(c, o, c->name[i])))
            c->slot[i] = (ptrdiff_t)c->features++;
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
    WEFT_TRY(choose_weight(ctx, file, c, options));
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
