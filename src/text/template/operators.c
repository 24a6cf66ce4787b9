/* The operators of expressions, with Python's meaning: arithmetic, joining, comparison, slices. Integers have
 * 64 bits; a larger result is an error.
 *
 * Must not know: the tree. Read next: values.c. */
#include <math.h>
#include <string.h>

#include "text/template/jinja.h"

static weft_status fail_operands(jinja_run *run, int op, const jinja_value *a, const jinja_value *b) {
    const jinja_value *missing = a->kind == JINJA_UNDEFINED ? a : b->kind == JINJA_UNDEFINED ? b : NULL;
    if (missing)
        return weft__jinja_fail(run, WEFT_ERR_FORMAT, "'%.*s' is undefined",
                                (int)(missing->as.string.bytes < 80 ? missing->as.string.bytes : 80),
                                missing->as.string.text);
    char name[3] = {(char)(op > 255 ? op >> 8 : op), op > 255 ? (char)(op & 255) : '\0', '\0'};
    return weft__jinja_fail(run, WEFT_ERR_FORMAT, "%s does not work on %s and %s", name,
                            weft__jinja_kind_name(a), weft__jinja_kind_name(b));
}

static weft_status fail_large(jinja_run *run) {
    return weft__jinja_fail(run, WEFT_ERR_UNSUPPORTED, "an integer of more than 64 bits");
}

/* ---- arithmetic ---- */

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

static weft_status power(jinja_run *run, int64_t a, int64_t b, jinja_value *out) {
    int64_t result = 1;
    for (; b > 0; b >>= 1) {
        if ((b & 1) && __builtin_mul_overflow(result, a, &result)) return fail_large(run);
        if (b > 1 && __builtin_mul_overflow(a, a, &a)) return fail_large(run);
    }
    *out = weft__jinja_int(result);
    return WEFT_OK;
}

static weft_status integers(jinja_run *run, int op, int64_t a, int64_t b, jinja_value *out) {
    int64_t result = 0;
    bool overflow = false;
    switch (op) {
    case '+': overflow = __builtin_add_overflow(a, b, &result); break;
    case '-': overflow = __builtin_sub_overflow(a, b, &result); break;
    case '*': overflow = __builtin_mul_overflow(a, b, &result); break;
    case OP2('*', '*'): return power(run, a, b, out);
    default: /* // and % */
        overflow = a == INT64_MIN && b == -1;
        if (overflow) break;
        result = floor_div(a, b);
        if (op == '%') result = a - result * b;
    }
    *out = weft__jinja_int(result);
    return overflow ? fail_large(run) : WEFT_OK;
}

static weft_status floats(jinja_run *run, int op, double a, double b, jinja_value *out) {
    double result = 0;
    switch (op) {
    case '+': result = a + b; break;
    case '-': result = a - b; break;
    case '*': result = a * b; break;
    case '/': result = a / b; break;
    case OP2('*', '*'): result = pow(a, b); break;
    case '%':
        result = fmod(a, b);
        if (result != 0 && (result < 0) != (b < 0)) result += b;
        break;
    default: result = floor(a / b);
    }
    if (isfinite(a) && isfinite(b) && !isfinite(result))
        return weft__jinja_fail(run, WEFT_ERR_FORMAT, "a number out of range");
    *out = weft__jinja_float(result);
    return WEFT_OK;
}

static bool divides(int op) { return op == '/' || op == '%' || op == OP2('/', '/'); }

static weft_status numbers(jinja_run *run, int op, const jinja_value *a, const jinja_value *b,
                           jinja_value *out) {
    double x = 0, y = 0;
    int64_t i = 0, j = 0;
    (void)weft__jinja_is_number(a, &x);
    (void)weft__jinja_is_number(b, &y);
    if (divides(op) && y == 0) return weft__jinja_fail(run, WEFT_ERR_FORMAT, "division by zero");
    if (op != '/' && weft__jinja_is_integer(a, &i) && weft__jinja_is_integer(b, &j) &&
        !(op == OP2('*', '*') && j < 0))
        return integers(run, op, i, j, out);
    return floats(run, op, x, y, out);
}

/* ---- joining and repeating ---- */

static weft_status join_strings(jinja_run *run, jinja_string a, jinja_string b, jinja_value *out) {
    char *text = weft__jinja_take(run, a.bytes + b.bytes);
    if (!text) return run->status;
    memcpy(text, a.text, a.bytes);
    memcpy(text + a.bytes, b.text, b.bytes);
    *out = weft__jinja_text(text, a.bytes + b.bytes);
    return WEFT_OK;
}

static weft_status join_lists(jinja_run *run, const jinja_value *a, const jinja_value *b, jinja_value *out) {
    const jinja_list *const x = a->as.list, *const y = b->as.list;
    WEFT_TRY(weft__jinja_list(run, a->kind, x->count + y->count, out));
    if (x->count) memcpy(out->as.list->items, x->items, x->count * sizeof *x->items);
    if (y->count) memcpy(out->as.list->items + x->count, y->items, y->count * sizeof *y->items);
    out->as.list->count = x->count + y->count;
    return WEFT_OK;
}

static bool is_list(const jinja_value *v) {
    return (v->kind == JINJA_LIST || v->kind == JINJA_TUPLE) && !v->as.list->generator;
}

static weft_status repeat(jinja_run *run, const jinja_value *value, int64_t times, jinja_value *out) {
    const bool text = value->kind == JINJA_STRING;
    const size_t count = text ? value->as.string.bytes : value->as.list->count;
    const size_t most = JINJA_MEMORY_MAX / sizeof(jinja_value);
    if (times < 0) times = 0;
    if (count && (uint64_t)times > most / count)
        return weft__jinja_fail(run, WEFT_ERR_UNSUPPORTED, "a value repeated %lld times is too large",
                                (long long)times);
    const size_t size = text ? 1 : sizeof(jinja_value);
    const void *from = text ? (const void *)value->as.string.text : value->as.list->items;
    char *copy = weft__jinja_take(run, count * (size_t)times * size);
    if (!copy) return run->status;
    for (int64_t i = 0; i < times && count; i++) memcpy(copy + (size_t)i * count * size, from, count * size);
    if (text) {
        *out = weft__jinja_text(copy, count * (size_t)times);
        return WEFT_OK;
    }
    WEFT_TRY(weft__jinja_list(run, value->kind, 0, out));
    out->as.list->items = (jinja_value *)(void *)copy;
    out->as.list->count = out->as.list->capacity = count * (size_t)times;
    return WEFT_OK;
}

weft_status weft__jinja_binary(jinja_run *run, int op, const jinja_value *a, const jinja_value *b,
                               jinja_value *out) {
    double x;
    int64_t times;
    if (op == '~') {
        jinja_string s, t;
        WEFT_TRY(weft__jinja_to_string(run, a, &s));
        WEFT_TRY(weft__jinja_to_string(run, b, &t));
        return join_strings(run, s, t, out);
    }
    if (weft__jinja_is_number(a, &x) && weft__jinja_is_number(b, &x)) return numbers(run, op, a, b, out);
    if (op == '+' && a->kind == JINJA_STRING && b->kind == JINJA_STRING)
        return join_strings(run, a->as.string, b->as.string, out);
    if (op == '+' && a->kind == b->kind && is_list(a) && is_list(b)) return join_lists(run, a, b, out);
    if (op == '*' && (a->kind == JINJA_STRING || is_list(a)) && weft__jinja_is_integer(b, &times))
        return repeat(run, a, times, out);
    if (op == '*' && (b->kind == JINJA_STRING || is_list(b)) && weft__jinja_is_integer(a, &times))
        return repeat(run, b, times, out);
    if (op == '%' && a->kind == JINJA_STRING)
        return weft__jinja_fail(run, WEFT_ERR_UNSUPPORTED,
                                "formatting a string by %% is not supported; use ~");
    return fail_operands(run, op, a, b);
}

weft_status weft__jinja_unary(jinja_run *run, int op, const jinja_value *a, jinja_value *out) {
    const jinja_value zero = weft__jinja_int(0);
    double x;
    if (!weft__jinja_is_number(a, &x)) return fail_operands(run, op, a, a);
    if (a->kind == JINJA_FLOAT) {
        *out = weft__jinja_float(op == '-' ? -x : x);
        return WEFT_OK;
    }
    return numbers(run, op, &zero, a, out);
}

/* ---- comparison ---- */

static weft_status contains(jinja_run *run, const jinja_value *item, const jinja_value *in, bool *out) {
    const jinja_value *items;
    size_t count;
    jinja_pair *pair;
    *out = false;
    if (in->kind == JINJA_STRING) {
        if (item->kind != JINJA_STRING) return fail_operands(run, OP_IN, item, in);
        WEFT_TRY(weft__jinja_work(run, in->as.string.bytes / 64 * (1 + item->as.string.bytes / 64)));
        *out = weft__jinja_search(in->as.string, item->as.string, 0) != SIZE_MAX;
        return WEFT_OK;
    }
    if (in->kind == JINJA_DICT) {
        WEFT_TRY(weft__jinja_find(run, in->as.dict, item, &pair));
        *out = pair != NULL;
        return WEFT_OK;
    }
    WEFT_TRY(weft__jinja_items(run, in, &items, &count));
    for (size_t i = 0; i < count && !*out; i++) WEFT_TRY(weft__jinja_equal(run, item, &items[i], out));
    return WEFT_OK;
}

weft_status weft__jinja_compare(jinja_run *run, int op, const jinja_value *a, const jinja_value *b,
                                bool *out) {
    int order;
    if (op == OP_IN || op == OP_NOT_IN) {
        WEFT_TRY(contains(run, a, b, out));
        *out = *out == (op == OP_IN);
        return WEFT_OK;
    }
    if (op == OP2('=', '=') || op == OP2('!', '=')) {
        WEFT_TRY(weft__jinja_equal(run, a, b, out));
        *out = *out == (op == OP2('=', '='));
        return WEFT_OK;
    }
    double x, y;
    if (weft__jinja_is_number(a, &x) && weft__jinja_is_number(b, &y) && (isnan(x) || isnan(y))) {
        *out = false;
        return WEFT_OK;
    }
    if (a->kind == JINJA_UNDEFINED || b->kind == JINJA_UNDEFINED) return fail_operands(run, op, a, b);
    WEFT_TRY(weft__jinja_order(run, a, b, &order));
    *out = op == '<' ? order < 0 : op == '>' ? order > 0 : op == OP2('<', '=') ? order <= 0 : order >= 0;
    return WEFT_OK;
}

/* ---- slices ---- */

/* Python's bounds of a slice of `count` items. */
static weft_status slice_bounds(jinja_run *run, const jinja_value bounds[3], int64_t count, int64_t *from,
                                int64_t *to, int64_t *step) {
    int64_t given[3] = {0, 0, 1};
    for (int i = 0; i < 3; i++)
        if (bounds[i].kind != JINJA_NONE && !weft__jinja_is_integer(&bounds[i], &given[i]))
            return weft__jinja_fail(run, WEFT_ERR_FORMAT, "the bounds of a slice must be integers, not %s",
                                    weft__jinja_kind_name(&bounds[i]));
    *step = given[2];
    if (*step == 0) return weft__jinja_fail(run, WEFT_ERR_FORMAT, "the step of a slice is 0");
    const int64_t low = *step > 0 ? 0 : -1, high = *step > 0 ? count : count - 1;
    for (int i = 0; i < 2; i++) {
        if (given[i] < 0) given[i] += count;
        if (given[i] < low) given[i] = low;
        if (given[i] > high) given[i] = high;
    }
    *from = bounds[0].kind != JINJA_NONE ? given[0] : *step > 0 ? low : high;
    *to = bounds[1].kind != JINJA_NONE ? given[1] : *step > 0 ? high : low;
    return WEFT_OK;
}

static weft_status slice_string(jinja_run *run, jinja_string s, const jinja_value bounds[3],
                                jinja_value *out) {
    const jinja_value *items;
    size_t count;
    int64_t from, to, step;
    jinja_text text = {0};
    const jinja_value value = weft__jinja_text(s.text, s.bytes);
    WEFT_TRY(weft__jinja_work(run, s.bytes / 64));
    count = weft__jinja_characters(s);
    WEFT_TRY(slice_bounds(run, bounds, (int64_t)count, &from, &to, &step));
    if (step == 1 && count == s.bytes) {
        *out = weft__jinja_text(s.text + from, to > from ? (size_t)(to - from) : 0);
        return WEFT_OK;
    }
    WEFT_TRY(weft__jinja_items(run, &value, &items, &count));
    for (; step > 0 ? from < to : from > to; from += step) {
        WEFT_TRY(weft__jinja_write(run, &text, items[from].as.string.text, items[from].as.string.bytes));
        if (step > 0 ? step > to - from : step < to - from) break; /* the sum could overflow */
    }
    return weft__jinja_string(run, &text, out);
}

weft_status weft__jinja_slice(jinja_run *run, const jinja_value *object, const jinja_value bounds[3],
                              jinja_value *out) {
    int64_t from, to, step;
    if (object->kind == JINJA_STRING) return slice_string(run, object->as.string, bounds, out);
    if (!is_list(object)) {
        if (object->kind == JINJA_UNDEFINED) return fail_operands(run, '[', object, object);
        *out = weft__jinja_undefined(weft__jinja_literal("the slice"));
        return WEFT_OK;
    }
    const jinja_list *list = object->as.list;
    WEFT_TRY(slice_bounds(run, bounds, (int64_t)list->count, &from, &to, &step));
    WEFT_TRY(weft__jinja_list(run, object->kind, 4, out));
    for (; step > 0 ? from < to : from > to; from += step) {
        WEFT_TRY(weft__jinja_append(run, out, &list->items[from]));
        if (step > 0 ? step > to - from : step < to - from) break; /* the sum could overflow */
    }
    return WEFT_OK;
}
