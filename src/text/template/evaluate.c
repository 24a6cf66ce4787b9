/* Evaluates expressions: literals, names, attributes, items and calls.
 *
 * Must not know: statements. Read next: operators.c, tables.c. */
#include <string.h>

#include "text/template/jinja.h"

/* ---- attributes and items ---- */

static weft_status loop_attribute(const jinja_loop *loop, jinja_string name, jinja_value *out) {
    const int64_t index = (int64_t)loop->index, count = (int64_t)loop->count;
    const struct {
        const char *name;
        jinja_value value;
    } attributes[] = {
        {"index", weft__jinja_int(index + 1)},
        {"index0", weft__jinja_int(index)},
        {"revindex", weft__jinja_int(count - index)},
        {"revindex0", weft__jinja_int(count - index - 1)},
        {"first", weft__jinja_bool(index == 0)},
        {"last", weft__jinja_bool(index + 1 == count)},
        {"length", weft__jinja_int(count)},
        {"depth", weft__jinja_int(loop->depth)},
        {"depth0", weft__jinja_int(loop->depth - 1)},
        {"previtem", index > 0 ? loop->items[index - 1] : weft__jinja_undefined(name)},
        {"nextitem", index + 1 < count ? loop->items[index + 1] : weft__jinja_undefined(name)},
    };
    *out = weft__jinja_undefined(name);
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
        if (weft__jinja_same(name, attributes[i].name)) *out = attributes[i].value;
    return WEFT_OK;
}

static weft_status fail_undefined(jinja_run *run, jinja_string name) {
    return weft__jinja_fail(run, WEFT_ERR_FORMAT, "'%.*s' is undefined",
                            (int)(name.bytes < 80 ? name.bytes : 80), name.text);
}

static weft_status find_method(jinja_run *run, const jinja_value *object, jinja_string name,
                               jinja_value *out) {
    const int index = weft__jinja_method_of(object->kind, name);
    if (index < 0) return WEFT_OK;
    jinja_method *method = weft__jinja_take(run, sizeof *method);
    if (!method) return run->status;
    *method = (jinja_method){*object, index};
    *out = (jinja_value){.kind = JINJA_METHOD, .as.method = method};
    return WEFT_OK;
}

/* The value of a key, else what is undefined. */
static weft_status find_key(jinja_run *run, const jinja_value *object, const jinja_value *key,
                            jinja_value *out) {
    jinja_pair *pair;
    WEFT_TRY(weft__jinja_find(run, object->as.dict, key, &pair));
    if (pair) *out = pair->value;
    return WEFT_OK;
}

/* As in jinja2, object.name is a method before it is an item, and object['name'] an item before a method. */
weft_status weft__jinja_attribute(jinja_run *run, const jinja_value *object, jinja_string name,
                                  jinja_value *out) {
    const jinja_value key = weft__jinja_text(name.text, name.bytes);
    if (object->kind == JINJA_UNDEFINED) return fail_undefined(run, object->as.string);
    *out = weft__jinja_undefined(name);
    if (object->kind == JINJA_NAMESPACE) return find_key(run, object, &key, out);
    if (object->kind == JINJA_LOOP) WEFT_TRY(loop_attribute(object->as.loop, name, out));
    if (out->kind == JINJA_UNDEFINED) WEFT_TRY(find_method(run, object, name, out));
    if (out->kind == JINJA_UNDEFINED && object->kind == JINJA_DICT) return find_key(run, object, &key, out);
    return WEFT_OK;
}

static weft_status index_string(jinja_run *run, jinja_string s, int64_t index, jinja_value *out) {
    WEFT_TRY(weft__jinja_work(run, s.bytes / 64));
    const int64_t count = (int64_t)weft__jinja_characters(s);
    size_t at = 0;
    if (index < 0) index += count;
    if (index < 0 || index >= count) return WEFT_OK;
    if ((size_t)count == s.bytes)
        at = (size_t)index;
    else
        for (int64_t i = 0; i < index; i++) at += weft__jinja_character(s, at);
    *out = weft__jinja_text(s.text + at, weft__jinja_character(s, at));
    return WEFT_OK;
}

weft_status weft__jinja_item(jinja_run *run, const jinja_value *object, const jinja_value *index,
                             jinja_value *out) {
    int64_t i;
    if (object->kind == JINJA_UNDEFINED) return fail_undefined(run, object->as.string);
    jinja_string name = weft__jinja_literal("the item");
    if (index->kind == JINJA_STRING) name = index->as.string;
    *out = weft__jinja_undefined(name);
    if (object->kind == JINJA_DICT) {
        if (index->kind <= JINJA_STRING && index->kind != JINJA_UNDEFINED)
            WEFT_TRY(find_key(run, object, index, out));
        return out->kind == JINJA_UNDEFINED && index->kind == JINJA_STRING
                   ? find_method(run, object, name, out)
                   : WEFT_OK;
    }
    if (index->kind == JINJA_STRING) return weft__jinja_attribute(run, object, name, out);
    if (!weft__jinja_is_integer(index, &i)) return WEFT_OK;
    if (object->kind == JINJA_STRING) return index_string(run, object->as.string, i, out);
    if ((object->kind == JINJA_LIST || object->kind == JINJA_TUPLE) && !object->as.list->generator) {
        const int64_t count = (int64_t)object->as.list->count;
        if (i < 0) i += count;
        if (i >= 0 && i < count) *out = object->as.list->items[i];
    }
    return WEFT_OK;
}

weft_status weft__jinja_path(jinja_run *run, const jinja_value *object, const jinja_value *path,
                             jinja_value *out) {
    if (path->kind != JINJA_STRING) return weft__jinja_item(run, object, path, out);
    const jinja_string s = path->as.string;
    jinja_value value = *object;
    for (size_t at = 0; at <= s.bytes;) {
        size_t end = at;
        bool digits = true;
        int64_t number = 0;
        for (; end < s.bytes && s.text[end] != '.'; end++) {
            digits = digits && s.text[end] >= '0' && s.text[end] <= '9' && number < 100000000;
            number = digits ? number * 10 + (s.text[end] - '0') : 0;
        }
        const jinja_value key =
            digits && end > at ? weft__jinja_int(number) : weft__jinja_text(s.text + at, end - at);
        WEFT_TRY(weft__jinja_item(run, &value, &key, out));
        value = *out;
        at = end + 1;
    }
    return WEFT_OK;
}

/* ---- calls ---- */

weft_status weft__jinja_arguments(jinja_run *run, const jinja_node *first, jinja_arguments *out) {
    size_t count = 0;
    for (const jinja_node *n = first; n; n = n->next) count++;
    *out = (jinja_arguments){0};
    if (count == 0) return WEFT_OK;
    jinja_value *values = weft__jinja_take(run, count * sizeof *values);
    jinja_string *names = values ? weft__jinja_take(run, count * sizeof *names) : NULL;
    if (!names) return run->status;
    *out = (jinja_arguments){.values = values, .names = names};
    for (const jinja_node *n = first; n; n = n->next) {
        const bool named = n->kind == NODE_KEYWORD;
        if (named) names[out->named] = n->value.as.string;
        WEFT_TRY(weft__jinja_evaluate(run, named ? n->a : n, values++));
        if (named)
            out->named++;
        else
            out->positional++;
    }
    return WEFT_OK;
}

/* The error for a call of what is undefined: most often a method that Weft does not have. */
static weft_status fail_call(jinja_run *run, const jinja_node *node, const jinja_value *object,
                             const jinja_value *callee) {
    static const char *const changing[] = {"append", "extend",  "insert", "pop",     "remove",    "clear",
                                           "sort",   "reverse", "update", "popitem", "setdefault"};
    char known[WEFT_ERROR_SIZE];
    if (callee->kind != JINJA_UNDEFINED)
        return weft__jinja_fail(run, WEFT_ERR_FORMAT, "%s cannot be called", weft__jinja_kind_name(callee));
    const jinja_string name = callee->as.string;
    const int bytes = (int)(name.bytes < 80 ? name.bytes : 80);
    if (node->a->kind != NODE_ATTRIBUTE || object->kind < JINJA_STRING || object->kind > JINJA_DICT)
        return fail_undefined(run, name);
    for (size_t i = 0; i < sizeof changing / sizeof *changing && object->kind != JINJA_STRING; i++)
        if (weft__jinja_same(name, changing[i]))
            return weft__jinja_fail(run, WEFT_ERR_FORMAT,
                                    "the method '%.*s' would change a value, which templates may not. Make a "
                                    "new value (such as list + [item]) and keep it in a namespace",
                                    bytes, name.text);
    for (int kind = JINJA_STRING; kind <= JINJA_DICT; kind++)
        if (weft__jinja_method_of((jinja_kind)kind, name) >= 0)
            return weft__jinja_fail(run, WEFT_ERR_FORMAT, "%s has no method '%.*s'",
                                    weft__jinja_kind_name(object), bytes, name.text);
    weft__jinja_names(weft__jinja_method_table, object->kind, known, sizeof known);
    return weft__jinja_fail(run, WEFT_ERR_UNSUPPORTED,
                            "the method '%.*s' of %s is not supported. Supported are: %s", bytes, name.text,
                            weft__jinja_kind_name(object), known);
}

static weft_status evaluate_call(jinja_run *run, const jinja_node *node, jinja_value *out) {
    jinja_value object = weft__jinja_none(), callee;
    jinja_arguments arguments;
    if (node->a->kind == NODE_ATTRIBUTE) {
        WEFT_TRY(weft__jinja_evaluate(run, node->a->a, &object));
        run->at = node->a;
        WEFT_TRY(weft__jinja_attribute(run, &object, node->a->value.as.string, &callee));
    } else {
        WEFT_TRY(weft__jinja_evaluate(run, node->a, &callee));
    }
    run->at = node->a;
    if (callee.kind < JINJA_MACRO) return fail_call(run, node, &object, &callee);
    WEFT_TRY(weft__jinja_arguments(run, node->first, &arguments));
    run->at = node->a;
    if (callee.kind == JINJA_MACRO) return weft__jinja_call_macro(run, callee.as.macro, &arguments, out);
    if (callee.kind == JINJA_METHOD)
        return weft__jinja_call(run, &weft__jinja_method_table[callee.as.method->method],
                                &callee.as.method->object, &arguments, out);
    return weft__jinja_call(run, &weft__jinja_function_table[callee.as.function], NULL, &arguments, out);
}

static weft_status evaluate_entry(jinja_run *run, const jinja_node *node, jinja_value *out) {
    jinja_value object;
    jinja_arguments arguments;
    const jinja_entry *table = node->kind == NODE_FILTER ? weft__jinja_filter_table : weft__jinja_test_table;
    WEFT_TRY(weft__jinja_evaluate(run, node->a, &object));
    WEFT_TRY(weft__jinja_arguments(run, node->first, &arguments));
    run->at = node;
    return weft__jinja_call(run, &table[node->op], &object, &arguments, out);
}

/* ---- lists and operators ---- */

static weft_status evaluate_list(jinja_run *run, const jinja_node *node, jinja_value *out) {
    jinja_value item;
    WEFT_TRY(weft__jinja_list(run, node->kind == NODE_LIST ? JINJA_LIST : JINJA_TUPLE, 4, out));
    for (const jinja_node *n = node->first; n; n = n->next) {
        WEFT_TRY(weft__jinja_evaluate(run, n, &item));
        WEFT_TRY(weft__jinja_append(run, out, &item));
    }
    return WEFT_OK;
}

static weft_status evaluate_dict(jinja_run *run, const jinja_node *node, jinja_value *out) {
    jinja_value key, value;
    WEFT_TRY(weft__jinja_dict(run, JINJA_DICT, out));
    for (const jinja_node *n = node->first; n; n = n->next) {
        WEFT_TRY(weft__jinja_evaluate(run, n->a, &key));
        WEFT_TRY(weft__jinja_evaluate(run, n->b, &value));
        run->at = n;
        WEFT_TRY(weft__jinja_put(run, out->as.dict, &key, &value));
    }
    return WEFT_OK;
}

static weft_status evaluate_slice(jinja_run *run, const jinja_node *node, jinja_value *out) {
    const jinja_node *const parts[] = {node->b, node->c, node->d};
    jinja_value object, bounds[3];
    WEFT_TRY(weft__jinja_evaluate(run, node->a, &object));
    for (int i = 0; i < 3; i++) {
        bounds[i] = weft__jinja_none();
        if (parts[i]) WEFT_TRY(weft__jinja_evaluate(run, parts[i], &bounds[i]));
    }
    run->at = node;
    return weft__jinja_slice(run, &object, bounds, out);
}

/* a < b < c is a < b and b < c. */
static weft_status evaluate_compare(jinja_run *run, const jinja_node *node, jinja_value *out) {
    jinja_value a, b;
    bool holds = true;
    WEFT_TRY(weft__jinja_evaluate(run, node->a, &a));
    for (const jinja_node *n = node->first; n && holds; n = n->next, a = b) {
        WEFT_TRY(weft__jinja_evaluate(run, n->a, &b));
        run->at = n;
        WEFT_TRY(weft__jinja_compare(run, n->op, &a, &b, &holds));
    }
    *out = weft__jinja_bool(holds);
    return WEFT_OK;
}

static weft_status evaluate_choice(jinja_run *run, const jinja_node *node, jinja_value *out) {
    jinja_value condition;
    WEFT_TRY(weft__jinja_evaluate(run, node->b, &condition));
    if (weft__jinja_truth(&condition)) return weft__jinja_evaluate(run, node->a, out);
    if (node->c) return weft__jinja_evaluate(run, node->c, out);
    *out = weft__jinja_undefined(weft__jinja_literal("the value of an 'if' without 'else'"));
    return WEFT_OK;
}

static weft_status evaluate_operator(jinja_run *run, const jinja_node *node, jinja_value *out) {
    jinja_value a, b = weft__jinja_none();
    WEFT_TRY(weft__jinja_evaluate(run, node->a, &a));
    if (node->kind == NODE_AND || node->kind == NODE_OR) {
        if (weft__jinja_truth(&a) == (node->kind == NODE_OR)) {
            *out = a;
            return WEFT_OK;
        }
        return weft__jinja_evaluate(run, node->b, out);
    }
    if (node->kind == NODE_NOT) {
        *out = weft__jinja_bool(!weft__jinja_truth(&a));
        return WEFT_OK;
    }
    if (node->kind == NODE_BINARY) WEFT_TRY(weft__jinja_evaluate(run, node->b, &b));
    run->at = node;
    return node->kind == NODE_UNARY ? weft__jinja_unary(run, node->op, &a, out)
                                    : weft__jinja_binary(run, node->op, &a, &b, out);
}

static weft_status evaluate_access(jinja_run *run, const jinja_node *node, jinja_value *out) {
    jinja_value object, index = weft__jinja_none();
    WEFT_TRY(weft__jinja_evaluate(run, node->a, &object));
    if (node->kind == NODE_ITEM) WEFT_TRY(weft__jinja_evaluate(run, node->b, &index));
    run->at = node;
    return node->kind == NODE_ITEM ? weft__jinja_item(run, &object, &index, out)
                                   : weft__jinja_attribute(run, &object, node->value.as.string, out);
}

static weft_status evaluate_kind(jinja_run *run, const jinja_node *node, jinja_value *out) {
    switch (node->kind) {
    case NODE_CONST: *out = node->value; return WEFT_OK;
    case NODE_HOLE: *out = run->hole; return WEFT_OK;
    case NODE_NAME: return weft__jinja_lookup(run, node->value.as.string, out);
    case NODE_LIST:
    case NODE_TUPLE: return evaluate_list(run, node, out);
    case NODE_DICT: return evaluate_dict(run, node, out);
    case NODE_COMPARE: return evaluate_compare(run, node, out);
    case NODE_AND:
    case NODE_OR:
    case NODE_NOT:
    case NODE_BINARY:
    case NODE_UNARY: return evaluate_operator(run, node, out);
    case NODE_CHOICE: return evaluate_choice(run, node, out);
    case NODE_ATTRIBUTE:
    case NODE_ITEM: return evaluate_access(run, node, out);
    case NODE_SLICE: return evaluate_slice(run, node, out);
    case NODE_CALL: return evaluate_call(run, node, out);
    case NODE_FILTER:
    case NODE_TEST: return evaluate_entry(run, node, out);
    default: return weft__jinja_fail(run, WEFT_ERR_INTERNAL, "a node that is no expression");
    }
}

weft_status weft__jinja_evaluate(jinja_run *run, const jinja_node *node, jinja_value *out) {
    run->at = node;
    WEFT_TRY(weft__jinja_work(run, 1));
    WEFT_TRY(weft__jinja_deeper(run));
    WEFT_TRY(evaluate_kind(run, node, out));
    run->depth--;
    return WEFT_OK;
}
