/* Values: truth, lists, dicts, equality, order, and values of JSON. All have Python's meaning.
 *
 * Must not know: the tree. Read next: write.c, strings.c. */
#include <string.h>

#include "text/template/jinja.h"

jinja_string weft__jinja_literal(const char *text) { return (jinja_string){text, strlen(text)}; }

bool weft__jinja_same(jinja_string a, const char *b) {
    return strlen(b) == a.bytes && memcmp(a.text, b, a.bytes) == 0;
}

const char *weft__jinja_kind_name(const jinja_value *value) {
    static const char *const names[] = {
        [JINJA_UNDEFINED] = "an undefined value",
        [JINJA_NONE] = "none",
        [JINJA_BOOL] = "a bool",
        [JINJA_INT] = "an integer",
        [JINJA_FLOAT] = "a float",
        [JINJA_STRING] = "a string",
        [JINJA_LIST] = "a list",
        [JINJA_TUPLE] = "a tuple",
        [JINJA_DICT] = "a dict",
        [JINJA_NAMESPACE] = "a namespace",
        [JINJA_LOOP] = "a loop",
        [JINJA_MACRO] = "a macro",
        [JINJA_FUNCTION] = "a function",
        [JINJA_METHOD] = "a method",
    };
    return names[value->kind];
}

bool weft__jinja_truth(const jinja_value *v) {
    switch (v->kind) {
    case JINJA_UNDEFINED:
    case JINJA_NONE: return false;
    case JINJA_BOOL: return v->as.flag;
    case JINJA_INT: return v->as.integer != 0;
    case JINJA_FLOAT: return v->as.number != 0;
    case JINJA_STRING: return v->as.string.bytes != 0;
    case JINJA_LIST:
    case JINJA_TUPLE: return v->as.list->generator || v->as.list->count != 0;
    case JINJA_DICT: return v->as.dict->count != 0;
    default: return true;
    }
}

bool weft__jinja_is_integer(const jinja_value *v, int64_t *out) {
    if (v->kind == JINJA_BOOL) *out = v->as.flag;
    if (v->kind == JINJA_INT) *out = v->as.integer;
    return v->kind == JINJA_BOOL || v->kind == JINJA_INT;
}

bool weft__jinja_is_number(const jinja_value *v, double *out) {
    int64_t i;
    if (weft__jinja_is_integer(v, &i)) {
        *out = (double)i;
        return true;
    }
    if (v->kind == JINJA_FLOAT) *out = v->as.number;
    return v->kind == JINJA_FLOAT;
}

/* ---- lists ---- */

weft_status weft__jinja_list(jinja_run *run, jinja_kind kind, size_t capacity, jinja_value *out) {
    jinja_list *list = weft__jinja_take(run, sizeof *list);
    if (!list) return run->status;
    if (capacity > JINJA_MEMORY_MAX / sizeof *list->items) capacity = JINJA_MEMORY_MAX / sizeof *list->items;
    if (capacity) {
        list->items = weft__jinja_take(run, capacity * sizeof *list->items);
        if (!list->items) return run->status;
    }
    list->capacity = capacity;
    *out = (jinja_value){.kind = kind, .as.list = list};
    return WEFT_OK;
}

weft_status weft__jinja_append(jinja_run *run, jinja_value *value, const jinja_value *item) {
    jinja_list *list = value->as.list;
    if (list->count == list->capacity) {
        const size_t capacity = list->capacity ? 2 * list->capacity : 4;
        jinja_value *more = weft__jinja_take(run, capacity * sizeof *more);
        if (!more) return run->status;
        if (list->count) memcpy(more, list->items, list->count * sizeof *more);
        list->items = more;
        list->capacity = capacity;
    }
    list->items[list->count++] = *item;
    return WEFT_OK;
}

static weft_status characters_of(jinja_run *run, jinja_string s, jinja_value *out) {
    WEFT_TRY(weft__jinja_list(run, JINJA_LIST, s.bytes < 64 ? s.bytes : 64, out));
    for (size_t at = 0, n; at < s.bytes; at += n) {
        n = weft__jinja_character(s, at);
        const jinja_value c = weft__jinja_text(s.text + at, n);
        WEFT_TRY(weft__jinja_append(run, out, &c));
    }
    return WEFT_OK;
}

weft_status weft__jinja_items(jinja_run *run, const jinja_value *value, const jinja_value **items,
                              size_t *count) {
    jinja_value list = *value;
    *items = NULL;
    *count = 0;
    if (value->kind == JINJA_UNDEFINED) return WEFT_OK;
    if (value->kind == JINJA_STRING) {
        WEFT_TRY(characters_of(run, value->as.string, &list));
    } else if (value->kind == JINJA_DICT) {
        WEFT_TRY(weft__jinja_list(run, JINJA_LIST, value->as.dict->count, &list));
        for (size_t i = 0; i < value->as.dict->count; i++)
            WEFT_TRY(weft__jinja_append(run, &list, &value->as.dict->pairs[i].key));
    } else if (value->kind != JINJA_LIST && value->kind != JINJA_TUPLE) {
        return weft__jinja_fail(run, WEFT_ERR_FORMAT, "%s has no items", weft__jinja_kind_name(value));
    }
    *items = list.as.list->items;
    *count = list.as.list->count;
    if (list.as.list->generator) list.as.list->count = 0; /* it can be read once */
    return weft__jinja_work(run, *count / 16);
}

weft_status weft__jinja_length(jinja_run *run, const jinja_value *value, size_t *out) {
    *out = 0;
    switch (value->kind) {
    case JINJA_UNDEFINED: return WEFT_OK;
    case JINJA_STRING:
        *out = weft__jinja_characters(value->as.string);
        return weft__jinja_work(run, value->as.string.bytes / 64);
    case JINJA_LIST:
    case JINJA_TUPLE:
        *out = value->as.list->count;
        if (!value->as.list->generator) return WEFT_OK;
        return weft__jinja_fail(run, WEFT_ERR_FORMAT,
                                "the result of this filter has no length until | list makes it a list");
    case JINJA_DICT: *out = value->as.dict->count; return WEFT_OK;
    case JINJA_LOOP: *out = value->as.loop->count; return WEFT_OK;
    default: return weft__jinja_fail(run, WEFT_ERR_FORMAT, "%s has no length", weft__jinja_kind_name(value));
    }
}

/* ---- dicts ---- */

weft_status weft__jinja_dict(jinja_run *run, jinja_kind kind, jinja_value *out) {
    jinja_dict *dict = weft__jinja_take(run, sizeof *dict);
    if (!dict) return run->status;
    *out = (jinja_value){.kind = kind, .as.dict = dict};
    return WEFT_OK;
}

weft_status weft__jinja_find(jinja_run *run, const jinja_dict *dict, const jinja_value *key,
                             jinja_pair **out) {
    *out = NULL;
    if (key->kind == JINJA_LIST || key->kind == JINJA_DICT)
        return weft__jinja_fail(run, WEFT_ERR_FORMAT, "%s cannot be a key", weft__jinja_kind_name(key));
    WEFT_TRY(weft__jinja_work(run, 1 + dict->count / 16));
    for (size_t i = 0; i < dict->count && !*out; i++) {
        bool equal = false;
        const jinja_value *k = &dict->pairs[i].key;
        if (k->kind == JINJA_STRING && key->kind == JINJA_STRING)
            equal = k->as.string.bytes == key->as.string.bytes &&
                    memcmp(k->as.string.text, key->as.string.text, key->as.string.bytes) == 0;
        else if (k->kind != JINJA_STRING && key->kind != JINJA_STRING)
            WEFT_TRY(weft__jinja_equal(run, k, key, &equal));
        if (equal) *out = &dict->pairs[i];
    }
    return WEFT_OK;
}

weft_status weft__jinja_add(jinja_run *run, jinja_dict *dict, const jinja_value *key,
                            const jinja_value *value) {
    if (dict->count == dict->capacity) {
        const size_t capacity = dict->capacity ? 2 * dict->capacity : 4;
        jinja_pair *more = weft__jinja_take(run, capacity * sizeof *more);
        if (!more) return run->status;
        if (dict->count) memcpy(more, dict->pairs, dict->count * sizeof *more);
        dict->pairs = more;
        dict->capacity = capacity;
    }
    dict->pairs[dict->count++] = (jinja_pair){*key, *value};
    return WEFT_OK;
}

weft_status weft__jinja_put(jinja_run *run, jinja_dict *dict, const jinja_value *key,
                            const jinja_value *value) {
    jinja_pair *pair;
    WEFT_TRY(weft__jinja_find(run, dict, key, &pair));
    if (!pair) return weft__jinja_add(run, dict, key, value);
    pair->value = *value;
    return WEFT_OK;
}

/* ---- equality and order ---- */

static weft_status equal_lists(jinja_run *run, const jinja_list *a, const jinja_list *b, bool *out) {
    *out = a == b || (a->count == b->count && !a->generator && !b->generator);
    if (a == b) return WEFT_OK;
    for (size_t i = 0; *out && i < a->count; i++)
        WEFT_TRY(weft__jinja_equal(run, &a->items[i], &b->items[i], out));
    return WEFT_OK;
}

static weft_status equal_dicts(jinja_run *run, const jinja_dict *a, const jinja_dict *b, bool *out) {
    *out = a == b || a->count == b->count;
    for (size_t i = 0; *out && a != b && i < a->count; i++) {
        jinja_pair *pair;
        WEFT_TRY(weft__jinja_find(run, b, &a->pairs[i].key, &pair));
        *out = pair != NULL;
        if (pair) WEFT_TRY(weft__jinja_equal(run, &a->pairs[i].value, &pair->value, out));
    }
    return WEFT_OK;
}

weft_status weft__jinja_equal(jinja_run *run, const jinja_value *a, const jinja_value *b, bool *out) {
    double x, y;
    int64_t i, j;
    WEFT_TRY(weft__jinja_work(run, 1));
    WEFT_TRY(weft__jinja_deeper(run));
    *out = false;
    if (weft__jinja_is_integer(a, &i) && weft__jinja_is_integer(b, &j)) {
        *out = i == j;
    } else if (weft__jinja_is_number(a, &x) && weft__jinja_is_number(b, &y)) {
        *out = x == y;
    } else if (a->kind != b->kind) {
        *out = false;
    } else if (a->kind == JINJA_STRING) {
        *out = a->as.string.bytes == b->as.string.bytes &&
               memcmp(a->as.string.text, b->as.string.text, b->as.string.bytes) == 0;
        run->steps += a->as.string.bytes / 64;
    } else if (a->kind == JINJA_LIST || a->kind == JINJA_TUPLE) {
        WEFT_TRY(equal_lists(run, a->as.list, b->as.list, out));
    } else if (a->kind == JINJA_DICT) {
        WEFT_TRY(equal_dicts(run, a->as.dict, b->as.dict, out));
    } else if (a->kind == JINJA_UNDEFINED || a->kind == JINJA_NONE) {
        *out = true;
    } else if (a->kind == JINJA_FUNCTION) {
        *out = a->as.function == b->as.function;
    } else {
        *out = (const void *)a->as.dict == (const void *)b->as.dict;
    }
    run->depth--;
    return WEFT_OK;
}

static weft_status order_lists(jinja_run *run, const jinja_list *a, const jinja_list *b, int *out) {
    for (size_t i = 0; i < a->count && i < b->count; i++) {
        bool equal;
        WEFT_TRY(weft__jinja_equal(run, &a->items[i], &b->items[i], &equal));
        if (!equal) return weft__jinja_order(run, &a->items[i], &b->items[i], out);
    }
    *out = (a->count > b->count) - (a->count < b->count);
    return WEFT_OK;
}

weft_status weft__jinja_order(jinja_run *run, const jinja_value *a, const jinja_value *b, int *out) {
    double x, y;
    int64_t i, j;
    WEFT_TRY(weft__jinja_work(run, 1));
    if (weft__jinja_is_integer(a, &i) && weft__jinja_is_integer(b, &j)) {
        *out = (i > j) - (i < j);
        return WEFT_OK;
    }
    if (weft__jinja_is_number(a, &x) && weft__jinja_is_number(b, &y)) {
        *out = (x > y) - (x < y);
        return WEFT_OK;
    }
    if (a->kind == JINJA_STRING && b->kind == JINJA_STRING) {
        const jinja_string s = a->as.string, t = b->as.string;
        const size_t bytes = s.bytes < t.bytes ? s.bytes : t.bytes;
        const int order = memcmp(s.text, t.text, bytes); /* of UTF-8 it is the order of the characters */
        *out = order ? (order > 0) - (order < 0) : (s.bytes > t.bytes) - (s.bytes < t.bytes);
        return weft__jinja_work(run, bytes / 64);
    }
    if (a->kind != b->kind || (a->kind != JINJA_LIST && a->kind != JINJA_TUPLE))
        return weft__jinja_fail(run, WEFT_ERR_FORMAT, "%s and %s have no order", weft__jinja_kind_name(a),
                                weft__jinja_kind_name(b));
    WEFT_TRY(weft__jinja_deeper(run));
    WEFT_TRY(order_lists(run, a->as.list, b->as.list, out));
    run->depth--;
    return WEFT_OK;
}

/* ---- JSON ---- */

static weft_status from_string(jinja_run *run, const char *text, size_t bytes, jinja_value *out) {
    char *copy = weft__jinja_take(run, bytes);
    if (!copy) return run->status;
    if (bytes) memcpy(copy, text, bytes);
    *out = weft__jinja_text(copy, bytes);
    return WEFT_OK;
}

static weft_status from_array(jinja_run *run, const json_t *json, jinja_value *out) {
    const size_t count = json_array_size(json);
    WEFT_TRY(weft__jinja_list(run, JINJA_LIST, count, out));
    for (size_t i = 0; i < count; i++) {
        jinja_value item;
        WEFT_TRY(weft__jinja_from_json(run, json_array_get(json, i), &item));
        WEFT_TRY(weft__jinja_append(run, out, &item));
    }
    return WEFT_OK;
}

static weft_status from_object(jinja_run *run, const json_t *json, jinja_value *out) {
    json_t *object = (json_t *)(uintptr_t)json; /* jansson's iterators take no const */
    WEFT_TRY(weft__jinja_dict(run, JINJA_DICT, out));
    for (void *at = json_object_iter(object); at; at = json_object_iter_next(object, at)) {
        jinja_value key, value;
        const char *name = json_object_iter_key(at);
        WEFT_TRY(from_string(run, name, strlen(name), &key));
        WEFT_TRY(weft__jinja_from_json(run, json_object_iter_value(at), &value));
        WEFT_TRY(weft__jinja_add(run, out->as.dict, &key, &value));
    }
    return WEFT_OK;
}

weft_status weft__jinja_from_json(jinja_run *run, const json_t *json, jinja_value *out) {
    *out = weft__jinja_none();
    if (run->depth >= JINJA_NESTED_MAX)
        return weft__jinja_fail(run, WEFT_ERR_UNSUPPORTED, "more than %d levels of lists and objects",
                                JINJA_NESTED_MAX);
    run->depth++;
    switch (json_typeof(json)) {
    case JSON_OBJECT: WEFT_TRY(from_object(run, json, out)); break;
    case JSON_ARRAY: WEFT_TRY(from_array(run, json, out)); break;
    case JSON_STRING:
        WEFT_TRY(from_string(run, json_string_value(json), json_string_length(json), out));
        break;
    case JSON_INTEGER: *out = weft__jinja_int(json_integer_value(json)); break;
    case JSON_REAL: *out = weft__jinja_float(json_real_value(json)); break;
    case JSON_TRUE:
    case JSON_FALSE: *out = weft__jinja_bool(json_is_true(json)); break;
    case JSON_NULL: break;
    }
    run->depth--;
    return WEFT_OK;
}
