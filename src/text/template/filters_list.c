/* Filters of lists and dicts, which make new ones. Filters that give a generator in Python do so here: the
 * result is true, has no length, and can be read once.
 *
 * Must not know: the tree. Read next: filters_select.c. */
#include <string.h>

#include "text/template/jinja.h"

weft_status weft__jinja_text_argument(jinja_run *run, const jinja_value *argument, const char *otherwise,
                                      jinja_string *out) {
    if (argument->kind != JINJA_UNDEFINED && argument->kind != JINJA_NONE)
        return weft__jinja_to_string(run, argument, out);
    *out = weft__jinja_literal(otherwise);
    return WEFT_OK;
}

weft_status weft__jinja_int_argument(jinja_run *run, const jinja_value *argument, int64_t otherwise,
                                     int64_t *out) {
    *out = otherwise;
    if (argument->kind == JINJA_UNDEFINED || weft__jinja_is_integer(argument, out)) return WEFT_OK;
    return weft__jinja_fail(run, WEFT_ERR_FORMAT, "an argument must be an integer, not %s",
                            weft__jinja_kind_name(argument));
}

/* Copies the items of a value into a new list. */
static weft_status copy_items(jinja_run *run, const jinja_value *value, jinja_value *out) {
    const jinja_value *items;
    size_t count;
    WEFT_TRY(weft__jinja_items(run, value, &items, &count));
    WEFT_TRY(weft__jinja_list(run, JINJA_LIST, count, out));
    if (count) memcpy(out->as.list->items, items, count * sizeof *items);
    out->as.list->count = count;
    return WEFT_OK;
}

weft_status weft__jinja_filter_list(jinja_run *run, const jinja_call *call, jinja_value *out) {
    return copy_items(run, &call->object, out);
}

weft_status weft__jinja_filter_length(jinja_run *run, const jinja_call *call, jinja_value *out) {
    size_t length;
    WEFT_TRY(weft__jinja_length(run, &call->object, &length));
    *out = weft__jinja_int((int64_t)length);
    return WEFT_OK;
}

weft_status weft__jinja_filter_first(jinja_run *run, const jinja_call *call, jinja_value *out) {
    const jinja_value *items;
    size_t count;
    WEFT_TRY(weft__jinja_items(run, &call->object, &items, &count));
    *out = count ? items[0] : weft__jinja_undefined(weft__jinja_literal("the first item of an empty list"));
    return WEFT_OK;
}

weft_status weft__jinja_filter_last(jinja_run *run, const jinja_call *call, jinja_value *out) {
    const jinja_value *items;
    size_t count;
    WEFT_TRY(weft__jinja_items(run, &call->object, &items, &count));
    *out = count ? items[count - 1]
                 : weft__jinja_undefined(weft__jinja_literal("the last item of an empty list"));
    return WEFT_OK;
}

static weft_status make_pair(jinja_run *run, const jinja_pair *pair, jinja_value *out) {
    WEFT_TRY(weft__jinja_list(run, JINJA_TUPLE, 2, out));
    WEFT_TRY(weft__jinja_append(run, out, &pair->key));
    return weft__jinja_append(run, out, &pair->value);
}

weft_status weft__jinja_filter_items(jinja_run *run, const jinja_call *call, jinja_value *out) {
    const jinja_value *object = &call->object;
    WEFT_TRY(weft__jinja_list(run, JINJA_LIST, 4, out));
    out->as.list->generator = true;
    if (object->kind == JINJA_UNDEFINED) return WEFT_OK;
    if (object->kind != JINJA_DICT)
        return weft__jinja_fail(run, WEFT_ERR_FORMAT, "items needs a dict, not %s",
                                weft__jinja_kind_name(object));
    for (size_t i = 0; i < object->as.dict->count; i++) {
        jinja_value pair;
        WEFT_TRY(make_pair(run, &object->as.dict->pairs[i], &pair));
        WEFT_TRY(weft__jinja_append(run, out, &pair));
    }
    return WEFT_OK;
}

/* The attribute of an item, if an attribute was asked for. */
static weft_status item_key(jinja_run *run, const jinja_value *item, const jinja_value *attribute,
                            jinja_value *out) {
    *out = *item;
    if (attribute->kind == JINJA_UNDEFINED || attribute->kind == JINJA_NONE) return WEFT_OK;
    return weft__jinja_path(run, item, attribute, out);
}

weft_status weft__jinja_filter_join(jinja_run *run, const jinja_call *call, jinja_value *out) {
    const jinja_value *items;
    size_t count;
    jinja_string between;
    jinja_text text = {0};
    WEFT_TRY(weft__jinja_text_argument(run, &call->args[0], "", &between));
    WEFT_TRY(weft__jinja_items(run, &call->object, &items, &count));
    for (size_t i = 0; i < count; i++) {
        jinja_value item;
        if (i) WEFT_TRY(weft__jinja_write(run, &text, between.text, between.bytes));
        WEFT_TRY(item_key(run, &items[i], &call->args[1], &item));
        WEFT_TRY(weft__jinja_print(run, &text, &item, false));
    }
    return weft__jinja_string(run, &text, out);
}

weft_status weft__jinja_filter_reverse(jinja_run *run, const jinja_call *call, jinja_value *out) {
    jinja_value list;
    jinja_text text = {0};
    WEFT_TRY(copy_items(run, &call->object, &list));
    jinja_value *items = list.as.list->items;
    for (size_t i = 0, j = list.as.list->count; i + 1 < j; i++) {
        const jinja_value kept = items[i];
        items[i] = items[--j];
        items[j] = kept;
    }
    *out = list;
    out->as.list->generator = true;
    if (call->object.kind != JINJA_STRING) return WEFT_OK;
    for (size_t i = 0; i < list.as.list->count; i++)
        WEFT_TRY(weft__jinja_write(run, &text, items[i].as.string.text, items[i].as.string.bytes));
    return weft__jinja_string(run, &text, out);
}

weft_status weft__jinja_filter_sum(jinja_run *run, const jinja_call *call, jinja_value *out) {
    const jinja_value *items;
    size_t count;
    *out = call->args[1].kind == JINJA_UNDEFINED ? weft__jinja_int(0) : call->args[1];
    WEFT_TRY(weft__jinja_items(run, &call->object, &items, &count));
    for (size_t i = 0; i < count; i++) {
        jinja_value item;
        const jinja_value sum = *out;
        WEFT_TRY(item_key(run, &items[i], &call->args[0], &item));
        WEFT_TRY(weft__jinja_binary(run, '+', &sum, &item, out));
    }
    return WEFT_OK;
}

/* ---- order ---- */

/* What an item is sorted by. Texts are compared without their case, unless the template wants it. */
static weft_status sort_key(jinja_run *run, const jinja_value *item, const jinja_value *attribute,
                            const jinja_value *case_sensitive, jinja_value *out) {
    WEFT_TRY(item_key(run, item, attribute, out));
    if (out->kind == JINJA_STRING && !weft__jinja_truth(case_sensitive))
        return weft__jinja_case(run, out->as.string, CASE_LOWER, out);
    return WEFT_OK;
}

static weft_status sort_keys(jinja_run *run, const jinja_value *list, const jinja_value *attribute,
                             const jinja_value *case_sensitive, jinja_value *out) {
    WEFT_TRY(weft__jinja_list(run, JINJA_LIST, list->as.list->count, out));
    for (size_t i = 0; i < list->as.list->count; i++) {
        jinja_value key;
        WEFT_TRY(sort_key(run, &list->as.list->items[i], attribute, case_sensitive, &key));
        WEFT_TRY(weft__jinja_append(run, out, &key));
    }
    return WEFT_OK;
}

/* Merges the sorted runs [from, middle) and [middle, to) of order into merged. */
static weft_status merge(jinja_run *run, const jinja_value *keys, const size_t *order, size_t *merged,
                         size_t from, size_t middle, size_t to, bool reverse) {
    size_t i = from, j = middle;
    for (size_t k = from; k < to; k++) {
        int compared = 0;
        if (i < middle && j < to)
            WEFT_TRY(weft__jinja_order(run, &keys[order[i]], &keys[order[j]], &compared));
        const bool left = j >= to || (i < middle && (reverse ? compared >= 0 : compared <= 0));
        merged[k] = order[left ? i++ : j++];
    }
    return WEFT_OK;
}

weft_status weft__jinja_sort(jinja_run *run, jinja_value *keys, jinja_value *items, size_t count,
                             bool reverse) {
    size_t *order = weft__jinja_take(run, count * sizeof *order);
    size_t *merged = order ? weft__jinja_take(run, count * sizeof *merged) : NULL;
    jinja_value *sorted = merged ? weft__jinja_take(run, count * sizeof *sorted) : NULL;
    if (!sorted) return run->status;
    for (size_t i = 0; i < count; i++) order[i] = i;
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t from = 0; from < count; from += 2 * width) {
            const size_t middle = from + width < count ? from + width : count;
            const size_t to = middle + width < count ? middle + width : count;
            WEFT_TRY(merge(run, keys, order, merged, from, middle, to, reverse));
        }
        size_t *const other = order;
        order = merged;
        merged = other;
    }
    for (size_t i = 0; i < count; i++) sorted[i] = items[order[i]];
    if (count) memcpy(items, sorted, count * sizeof *items);
    return WEFT_OK;
}

weft_status weft__jinja_filter_sort(jinja_run *run, const jinja_call *call, jinja_value *out) {
    jinja_value keys;
    WEFT_TRY(copy_items(run, &call->object, out));
    WEFT_TRY(sort_keys(run, out, &call->args[2], &call->args[1], &keys));
    return weft__jinja_sort(run, keys.as.list->items, out->as.list->items, out->as.list->count,
                            weft__jinja_truth(&call->args[0]));
}

weft_status weft__jinja_filter_dictsort(jinja_run *run, const jinja_call *call, jinja_value *out) {
    jinja_value keys;
    jinja_string by;
    WEFT_TRY(weft__jinja_filter_items(run, call, out));
    WEFT_TRY(weft__jinja_text_argument(run, &call->args[1], "key", &by));
    if (!weft__jinja_same(by, "key") && !weft__jinja_same(by, "value"))
        return weft__jinja_fail(run, WEFT_ERR_FORMAT, "dictsort sorts by 'key' or 'value'");
    const jinja_value position = weft__jinja_int(weft__jinja_same(by, "value"));
    out->as.list->generator = false;
    WEFT_TRY(sort_keys(run, out, &position, &call->args[0], &keys));
    return weft__jinja_sort(run, keys.as.list->items, out->as.list->items, out->as.list->count,
                            weft__jinja_truth(&call->args[2]));
}

static weft_status extreme(jinja_run *run, const jinja_call *call, int sign, jinja_value *out) {
    jinja_value list, keys;
    size_t best = 0;
    WEFT_TRY(copy_items(run, &call->object, &list));
    WEFT_TRY(sort_keys(run, &list, &call->args[1], &call->args[0], &keys));
    const size_t count = list.as.list->count;
    *out = weft__jinja_undefined(weft__jinja_literal("the extreme of an empty list"));
    if (count == 0) return WEFT_OK;
    for (size_t i = 1; i < count; i++) {
        int order;
        WEFT_TRY(weft__jinja_order(run, &keys.as.list->items[i], &keys.as.list->items[best], &order));
        if (order * sign > 0) best = i;
    }
    *out = list.as.list->items[best];
    return WEFT_OK;
}

weft_status weft__jinja_filter_max(jinja_run *run, const jinja_call *call, jinja_value *out) {
    return extreme(run, call, 1, out);
}

weft_status weft__jinja_filter_min(jinja_run *run, const jinja_call *call, jinja_value *out) {
    return extreme(run, call, -1, out);
}

weft_status weft__jinja_filter_unique(jinja_run *run, const jinja_call *call, jinja_value *out) {
    jinja_value list, keys;
    WEFT_TRY(copy_items(run, &call->object, &list));
    WEFT_TRY(sort_keys(run, &list, &call->args[1], &call->args[0], &keys));
    WEFT_TRY(weft__jinja_list(run, JINJA_LIST, 4, out));
    out->as.list->generator = true;
    for (size_t i = 0; i < list.as.list->count; i++) {
        bool seen = false;
        for (size_t j = 0; j < i && !seen; j++)
            WEFT_TRY(weft__jinja_equal(run, &keys.as.list->items[i], &keys.as.list->items[j], &seen));
        if (!seen) WEFT_TRY(weft__jinja_append(run, out, &list.as.list->items[i]));
    }
    return WEFT_OK;
}
