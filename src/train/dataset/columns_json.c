/* Columns of a table as JSON, for data.json. What is read is checked, although the file has a seal. Must not
 * know: files. Read next: columns.h. */
#include <math.h>
#include <string.h>

#include "data/parse.h"
#include "train/dataset/columns.h"

/* ---- writing ---- */

static json_t *column_json(const weft__column *c) {
    json_t *object = json_pack("{s:s, s:s}", "name", c->name, "kind", weft__column_row_of(c)->word);
    if (!object) return NULL;
    if (c->kind == WEFT__COLUMN_NONE) {
        json_object_set_new(object, "reason", json_string(c->reason));
        return object;
    }
    json_object_set_new(object, "missing", json_boolean(c->missing));
    if (c->kind != WEFT__COLUMN_CATEGORY) json_object_set_new(object, "fill", json_real(c->fill));
    if (c->kind == WEFT__COLUMN_NUMBER) json_object_set_new(object, "comma", json_boolean(c->comma));
    if (c->kind == WEFT__COLUMN_DATE) json_object_set_new(object, "time", json_boolean(c->time));
    if (c->level_count == 0) return object;
    json_t *levels = json_array();
    for (size_t i = 0; i < c->level_count; i++) json_array_append_new(levels, json_string(c->levels[i]));
    json_object_set_new(object, "levels", levels);
    if (c->kind == WEFT__COLUMN_CATEGORY) json_object_set_new(object, "other", json_boolean(c->other));
    return object;
}

json_t *weft__columns_json(const weft__columns *columns) {
    json_t *array = json_array();
    for (size_t i = 0; i < columns->count; i++)
        if (json_array_append_new(array, column_json(&columns->list[i])) != 0) return NULL;
    return array;
}

/* ---- reading ---- */

static weft_status take_text(weft_context *ctx, const json_t *text, char **out) {
    if (!json_is_string(text)) return WEFT_ERR_FORMAT;
    *out = weft__strdup(ctx, json_string_value(text));
    return *out ? WEFT_OK : WEFT_ERR_OOM;
}

/* Reads a flag. False if it is no boolean. */
static bool take_flag(const json_t *object, const char *key, bool *out) {
    const json_t *value = json_object_get(object, key);
    *out = json_is_true(value);
    return json_is_boolean(value);
}

/* Reads the levels. Those of a category must be sorted, because they are searched. */
static weft_status take_levels(weft_context *ctx, const json_t *array, weft__column *c) {
    const size_t count = json_array_size(array);
    if (count == 0 || count > WEFT__LABELS_MAX) return WEFT_ERR_FORMAT;
    const char **levels = weft__array(ctx, count, sizeof *levels);
    bool sorted = levels != NULL;
    for (size_t i = 0; i < count && sorted; i++) {
        levels[i] = json_string_value(json_array_get(array, i));
        sorted =
            levels[i] && (i == 0 || c->kind == WEFT__COLUMN_ORDINAL || strcmp(levels[i - 1], levels[i]) < 0);
    }
    if (sorted) c->levels = weft__strings_pack(ctx, levels, count);
    if (c->levels) c->level_count = count;
    weft__free(ctx, levels);
    if (!levels || (sorted && !c->levels)) return WEFT_ERR_OOM;
    return sorted ? WEFT_OK : WEFT_ERR_FORMAT;
}

static weft_status take_column(weft_context *ctx, const json_t *object, weft__column *c) {
    const char *word = json_string_value(json_object_get(object, "kind"));
    WEFT_TRY(take_text(ctx, json_object_get(object, "name"), &c->name));
    c->kind = word ? weft__column_kind_of(word) : WEFT__COLUMN_KINDS;
    if (c->kind == WEFT__COLUMN_KINDS) {
        c->kind = WEFT__COLUMN_NONE;
        return WEFT_ERR_FORMAT;
    }
    if (c->kind == WEFT__COLUMN_NONE) return take_text(ctx, json_object_get(object, "reason"), &c->reason);
    if (!take_flag(object, "missing", &c->missing)) return WEFT_ERR_FORMAT;
    if (c->kind == WEFT__COLUMN_CATEGORY) {
        c->fill = -1;
        if (!take_flag(object, "other", &c->other)) return WEFT_ERR_FORMAT;
        return take_levels(ctx, json_object_get(object, "levels"), c);
    }
    const json_t *fill = json_object_get(object, "fill");
    c->fill = json_number_value(fill);
    if (!json_is_number(fill) || !(fabs(c->fill) <= 3.5e38)) return WEFT_ERR_FORMAT;
    if (c->kind == WEFT__COLUMN_ORDINAL) return take_levels(ctx, json_object_get(object, "levels"), c);
    /* a date of year 1 to 9999 */
    if (c->kind == WEFT__COLUMN_DATE && (c->fill < -6.3e10 || c->fill > 2.6e11)) return WEFT_ERR_FORMAT;
    if (c->kind == WEFT__COLUMN_NUMBER && !take_flag(object, "comma", &c->comma)) return WEFT_ERR_FORMAT;
    return c->kind != WEFT__COLUMN_DATE || take_flag(object, "time", &c->time) ? WEFT_OK : WEFT_ERR_FORMAT;
}

weft_status weft__columns_take(weft_context *ctx, const json_t *array, weft__columns *columns) {
    const size_t count = json_array_size(array);
    if (count == 0) return WEFT_ERR_FORMAT;
    columns->list = weft__array(ctx, count, sizeof *columns->list);
    if (!columns->list) return WEFT_ERR_OOM;
    columns->count = count;
    for (size_t i = 0; i < count; i++)
        WEFT_TRY(take_column(ctx, json_array_get(array, i), &columns->list[i]));
    return WEFT_OK;
}
