/* Tests: what follows "is".
 *
 * Must not know: the tree. Read next: functions.c. */
#include "text/template/jinja.h"

/* A test of the kind of the object. */
#define KIND_TEST(name, condition)                                                                           \
    weft_status weft__jinja_test_##name(jinja_run *run, const jinja_call *call, jinja_value *out) {          \
        const jinja_value *v = &call->object;                                                                \
        (void)run;                                                                                           \
        *out = weft__jinja_bool(condition);                                                                  \
        return WEFT_OK;                                                                                      \
    }

static bool is_sized(const jinja_value *v) {
    const bool list = v->kind == JINJA_LIST || v->kind == JINJA_TUPLE;
    return v->kind == JINJA_UNDEFINED || v->kind == JINJA_STRING || v->kind == JINJA_DICT ||
           (list && !v->as.list->generator);
}

KIND_TEST(defined, v->kind != JINJA_UNDEFINED)
KIND_TEST(undefined, v->kind == JINJA_UNDEFINED)
KIND_TEST(none, v->kind == JINJA_NONE)
KIND_TEST(boolean, v->kind == JINJA_BOOL)
KIND_TEST(is_true, v->kind == JINJA_BOOL && v->as.flag)
KIND_TEST(is_false, v->kind == JINJA_BOOL && !v->as.flag)
KIND_TEST(integer, v->kind == JINJA_INT)
KIND_TEST(float, v->kind == JINJA_FLOAT)
KIND_TEST(number, v->kind == JINJA_BOOL || v->kind == JINJA_INT || v->kind == JINJA_FLOAT)
KIND_TEST(string, v->kind == JINJA_STRING)
KIND_TEST(mapping, v->kind == JINJA_DICT)
KIND_TEST(sequence, is_sized(v))
KIND_TEST(iterable, is_sized(v) || v->kind == JINJA_LIST || v->kind == JINJA_LOOP)
KIND_TEST(callable, v->kind >= JINJA_MACRO)

static weft_status compare(jinja_run *run, const jinja_call *call, int op, jinja_value *out) {
    bool holds;
    WEFT_TRY(weft__jinja_compare(run, op, &call->object, &call->args[0], &holds));
    *out = weft__jinja_bool(holds);
    return WEFT_OK;
}

#define COMPARE_TEST(name, op)                                                                               \
    weft_status weft__jinja_test_##name(jinja_run *run, const jinja_call *call, jinja_value *out) {          \
        return compare(run, call, op, out);                                                                  \
    }

COMPARE_TEST(eq, OP2('=', '='))
COMPARE_TEST(ne, OP2('!', '='))
COMPARE_TEST(lt, '<')
COMPARE_TEST(gt, '>')
COMPARE_TEST(le, OP2('<', '='))
COMPARE_TEST(ge, OP2('>', '='))
COMPARE_TEST(in, OP_IN)

/* Python's "is" tells true from 1. */
weft_status weft__jinja_test_sameas(jinja_run *run, const jinja_call *call, jinja_value *out) {
    *out = weft__jinja_bool(false);
    return call->object.kind == call->args[0].kind ? compare(run, call, OP2('=', '='), out) : WEFT_OK;
}

/* Whether the object divided by 2 leaves this remainder. */
static weft_status remainder_is(jinja_run *run, const jinja_call *call, int64_t wanted, jinja_value *out) {
    const jinja_value two = weft__jinja_int(2), expected = weft__jinja_int(wanted);
    jinja_value rest;
    bool equal;
    WEFT_TRY(weft__jinja_binary(run, '%', &call->object, &two, &rest));
    WEFT_TRY(weft__jinja_equal(run, &rest, &expected, &equal));
    *out = weft__jinja_bool(equal);
    return WEFT_OK;
}

weft_status weft__jinja_test_even(jinja_run *run, const jinja_call *call, jinja_value *out) {
    return remainder_is(run, call, 0, out);
}

weft_status weft__jinja_test_odd(jinja_run *run, const jinja_call *call, jinja_value *out) {
    return remainder_is(run, call, 1, out);
}
