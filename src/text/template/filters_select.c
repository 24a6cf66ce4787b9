/* Filters that call a filter or a test for each item: map, select, reject, selectattr, rejectattr.
 *
 * Must not know: the tree. Read next: tests.c. */
#include "text/template/jinja.h"

/* Finds the filter or test that an argument names. */
static weft_status find_entry(jinja_run *run, const jinja_entry *table, const jinja_value *name,
                              const jinja_entry **out) {
    char known[WEFT_ERROR_SIZE];
    const int index = name->kind == JINJA_STRING ? weft__jinja_entry_of(table, name->as.string) : -1;
    if (index >= 0 && table[index].function) {
        *out = &table[index];
        return WEFT_OK;
    }
    jinja_string s;
    WEFT_TRY(weft__jinja_to_string(run, name, &s));
    weft__jinja_names(table, JINJA_UNDEFINED, known, sizeof known);
    return weft__jinja_fail(run, WEFT_ERR_UNSUPPORTED, "'%.*s' is not supported here. Supported are: %s",
                            (int)(s.bytes < 40 ? s.bytes : 40), s.text, known);
}

/* The arguments of a call after the first `skip` ones. */
static jinja_arguments rest_of(const jinja_arguments *all, size_t skip) {
    jinja_arguments rest = *all;
    rest.values += skip;
    rest.positional -= skip;
    return rest;
}

static const jinja_value *named(const jinja_arguments *all, const char *name) {
    for (size_t i = 0; i < all->named; i++)
        if (weft__jinja_same(all->names[i], name)) return &all->values[all->positional + i];
    return NULL;
}

/* The items of a value. As in jinja2, what is false has none, even if it is no list. */
static weft_status items_if_any(jinja_run *run, const jinja_value *value, const jinja_value **items,
                                size_t *count) {
    *items = NULL;
    *count = 0;
    return weft__jinja_truth(value) ? weft__jinja_items(run, value, items, count) : WEFT_OK;
}

weft_status weft__jinja_filter_map(jinja_run *run, const jinja_call *call, jinja_value *out) {
    const jinja_value *items, *attribute = named(call->all, "attribute");
    const jinja_value *otherwise = named(call->all, "default");
    const jinja_entry *filter = NULL;
    jinja_arguments rest = {0};
    size_t count;
    if (call->all->positional > 0) {
        WEFT_TRY(find_entry(run, weft__jinja_filter_table, &call->all->values[0], &filter));
        rest = rest_of(call->all, 1);
    } else if (!attribute) {
        return weft__jinja_fail(run, WEFT_ERR_FORMAT, "map needs the name of a filter, or attribute=");
    }
    WEFT_TRY(items_if_any(run, &call->object, &items, &count));
    WEFT_TRY(weft__jinja_list(run, JINJA_LIST, count, out));
    out->as.list->generator = true;
    for (size_t i = 0; i < count; i++) {
        jinja_value item;
        WEFT_TRY(filter ? weft__jinja_call(run, filter, &items[i], &rest, &item)
                        : weft__jinja_path(run, &items[i], attribute, &item));
        if (!filter && otherwise && item.kind == JINJA_UNDEFINED) item = *otherwise;
        WEFT_TRY(weft__jinja_append(run, out, &item));
    }
    return WEFT_OK;
}

/* Keeps the items for which a test is `wanted`. With `attribute` the test is of an attribute of the item. */
static weft_status select_by(jinja_run *run, const jinja_call *call, bool attribute, bool wanted,
                             jinja_value *out) {
    const jinja_value *items;
    const jinja_entry *test = NULL;
    jinja_arguments rest = {0};
    size_t count, skip = attribute;
    if (call->all->positional < skip)
        return weft__jinja_fail(run, WEFT_ERR_FORMAT, "the filter needs the name of an attribute");
    if (call->all->positional > skip) {
        WEFT_TRY(find_entry(run, weft__jinja_test_table, &call->all->values[skip], &test));
        rest = rest_of(call->all, skip + 1);
    }
    WEFT_TRY(items_if_any(run, &call->object, &items, &count));
    WEFT_TRY(weft__jinja_list(run, JINJA_LIST, 4, out));
    out->as.list->generator = true;
    for (size_t i = 0; i < count; i++) {
        jinja_value value = items[i], result;
        if (attribute) WEFT_TRY(weft__jinja_path(run, &items[i], &call->all->values[0], &value));
        result = value;
        if (test) WEFT_TRY(weft__jinja_call(run, test, &value, &rest, &result));
        if (weft__jinja_truth(&result) == wanted) WEFT_TRY(weft__jinja_append(run, out, &items[i]));
    }
    return WEFT_OK;
}

weft_status weft__jinja_filter_select(jinja_run *run, const jinja_call *call, jinja_value *out) {
    return select_by(run, call, false, true, out);
}

weft_status weft__jinja_filter_reject(jinja_run *run, const jinja_call *call, jinja_value *out) {
    return select_by(run, call, false, false, out);
}

weft_status weft__jinja_filter_selectattr(jinja_run *run, const jinja_call *call, jinja_value *out) {
    return select_by(run, call, true, true, out);
}

weft_status weft__jinja_filter_rejectattr(jinja_run *run, const jinja_call *call, jinja_value *out) {
    return select_by(run, call, true, false, out);
}
