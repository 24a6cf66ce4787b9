/* Recording of the elementwise ops of the table: dtypes, broadcasting, arithmetic with C numbers.
 * Must not know: kernels, gradients. Read next: ops.def, movement.c. */
#include <math.h>
#include "ops/ops.h"

enum {
    CLASS_FLOAT = WEFT_CLASS_FLOAT,
    CLASS_NUMBER = WEFT_CLASS_NUMBER,
    CLASS_INTEGER = WEFT_CLASS_INTEGER,
    CLASS_ANY = WEFT_CLASS_ANY
};
enum { RESULT_SAME, RESULT_BOOL };

static const struct {
    unsigned char class, result;
} rows[WEFT_OP_COUNT] = {
#define W_ELEM1(id, name, dtypes, result, expr, grad, doc) [WEFT_OP_##id] = {CLASS_##dtypes, RESULT_##result},
#define W_ELEM2(id, name, dtypes, result, expr, grad_a, grad_b, doc)                                         \
    [WEFT_OP_##id] = {CLASS_##dtypes, RESULT_##result},
#define W_ELEM3(id, name, dtypes, result, expr, grad_a, grad_b, grad_c, doc)                                 \
    [WEFT_OP_##id] = {CLASS_##dtypes, RESULT_##result},
#define W_REDUCE(id, name, dtypes, init, expr, grad, doc) [WEFT_OP_##id] = {CLASS_##dtypes, RESULT_SAME},
#include "ops/ops.def"
};

bool weft__dtype_in(weft_dtype dtype, weft_dtype_class class) {
    switch (class) {
    case WEFT_CLASS_FLOAT: return weft_dtype_is_float(dtype);
    case WEFT_CLASS_NUMBER: return dtype != WEFT_BOOL && !weft_dtype_is_complex(dtype);
    case WEFT_CLASS_INTEGER: return !weft_dtype_is_float(dtype) && !weft_dtype_is_complex(dtype);
    default: return !weft_dtype_is_complex(dtype);
    }
}

static const char *const class_text[] = {"a float dtype", "a real number, not bool", "an integer or bool",
                                         "a dtype that is not complex"};

static weft_tensor *check_dtypes(const char *where, weft_op op, int n, weft_tensor *const *in) {
    char a[WEFT_SHAPE_TEXT], b[WEFT_SHAPE_TEXT];
    int first = n == 3 ? 1 : 0; /* the first operand of WHERE is the condition */
    if (n == 3 && in[0]->dtype != WEFT_BOOL)
        return weft__poison(in[0]->ctx, where, WEFT_ERR_DTYPE, "%s: the condition is %s, not bool",
                            weft__op_name((int)op), weft__tensor_text(in[0], a));
    for (int i = first + 1; i < n; i++)
        if (in[i]->dtype != in[first]->dtype)
            return weft__poison(in[0]->ctx, where, WEFT_ERR_DTYPE,
                                "%s: operands differ in dtype: %s and %s; convert one with weft_cast",
                                weft__op_name((int)op), weft__tensor_text(in[first], a),
                                weft__tensor_text(in[i], b));
    if (!weft__row_accepts(op, (weft_dtype)in[first]->dtype))
        return weft__poison(in[0]->ctx, where, WEFT_ERR_DTYPE, "%s: %s is not accepted, only %s",
                            weft__op_name((int)op), weft__tensor_text(in[first], a),
                            class_text[rows[op].class]);
    return NULL;
}

weft_tensor *weft__elementwise(const char *where, weft_op op, int n, weft_tensor *const *in) {
    weft_tensor *bad = weft__reject(weft__op_name((int)op), where, in, n);
    if (bad || !in[0]) return bad;
    if ((bad = check_dtypes(where, op, n, in))) return bad;
    if (is_complex(in[n - 1])) return weft__complex_row(where, op, n, in);
    weft_tensor *full[3];
    int rank = in[0]->rank;
    int64_t shape[WEFT_MAX_RANK];
    for (int d = 0; d < rank; d++) shape[d] = in[0]->shape[d];
    for (int i = 1; i < n; i++) {
        char a[WEFT_SHAPE_TEXT], b[WEFT_SHAPE_TEXT];
        if (!weft__broadcast(rank, shape, in[i]->rank, in[i]->shape, &rank, shape))
            return weft__poison(in[0]->ctx, where, WEFT_ERR_SHAPE, "%s: shapes %s and %s do not broadcast",
                                weft__op_name((int)op), weft__tensor_text(in[0], a),
                                weft__tensor_text(in[i], b));
    }
    for (int i = 0; i < n; i++) full[i] = weft__expand_to(where, in[i], rank, shape);
    weft_dtype dtype = rows[op].result == RESULT_BOOL ? WEFT_BOOL : (weft_dtype)in[n == 3 ? 1 : 0]->dtype;
    return weft__node(in[0]->ctx, where, op, dtype, rank, shape, n, full, 0, NULL);
}

bool weft__row_accepts(weft_op op, weft_dtype dtype) {
    return weft_dtype_is_complex(dtype) ? weft__complex_takes(op)
                                        : weft__dtype_in(dtype, (weft_dtype_class)rows[op].class);
}

/* ---- the public functions of the table ---- */

#define W_ELEM1(id, name, dtypes, result, expr, grad, doc)                                                   \
    weft_tensor *weft_##name##_at(const char *where, weft_tensor *x) {                                       \
        return weft__elementwise(where, WEFT_OP_##id, 1, &x);                                                \
    }
#define W_ELEM2(id, name, dtypes, result, expr, grad_a, grad_b, doc)                                         \
    weft_tensor *weft_##name##_at(const char *where, weft_tensor *a, weft_tensor *b) {                       \
        return weft__elementwise(where, WEFT_OP_##id, 2, (weft_tensor *const[]){a, b});                      \
    }
#define W_ELEM3(id, name, dtypes, result, expr, grad_a, grad_b, grad_c, doc)                                 \
    weft_tensor *weft_##name##_at(const char *where, weft_tensor *condition, weft_tensor *a,                 \
                                  weft_tensor *b) {                                                          \
        return weft__elementwise(where, WEFT_OP_##id, 3, (weft_tensor *const[]){condition, a, b});           \
    }
#include "ops/ops.def"

/* ---- arithmetic with C numbers ---- */

static weft_tensor *with_number(const char *where, weft_op op, weft_tensor *x, double value) {
    weft_tensor *bad = weft__reject(weft__op_name((int)op), where, &x, 1);
    if (bad || !x || (bad = check_dtypes(where, op, 1, &x))) return bad;
    if (is_complex(x)) return weft__complex_with_number(where, op, x, value);
    weft_tensor *number =
        weft__number(x->ctx, where, weft__op_name((int)op), (weft_dtype)x->dtype, 0, NULL, value);
    return weft__elementwise(where, op, 2, (weft_tensor *const[]){x, number});
}

weft_tensor *weft_add_scalar_at(const char *where, weft_tensor *x, double value) {
    return with_number(where, WEFT_OP_ADD, x, value);
}

weft_tensor *weft_mul_scalar_at(const char *where, weft_tensor *x, double value) {
    return with_number(where, WEFT_OP_MUL, x, value);
}

weft_tensor *weft_square_at(const char *where, weft_tensor *x) {
    WEFT_NEED_OR_POISON(NULL, where, x);
    return at_mul(x, x);
}

/* Whether no value of the dtype is beyond the limit. Then clamp has nothing to do, and the dtype need not
 * hold the limit. */
static bool keeps_low(weft_dtype dtype, double low) {
    bool has_sign = dtype == WEFT_I8 || dtype == WEFT_I16 || dtype == WEFT_I32 || dtype == WEFT_I64;
    int bits = (int)(8 * weft_dtype_size(dtype));
    return low == -HUGE_VAL || (!weft_dtype_is_float(dtype) && low <= (has_sign ? -ldexp(1, bits - 1) : 0));
}

static bool keeps_high(weft_dtype dtype, double high) {
    bool has_sign = dtype == WEFT_I8 || dtype == WEFT_I16 || dtype == WEFT_I32 || dtype == WEFT_I64;
    int bits = (int)(8 * weft_dtype_size(dtype)) - (has_sign ? 1 : 0);
    return high == HUGE_VAL || (!weft_dtype_is_float(dtype) && high >= ldexp(1, bits) - 1);
}

/* x inside the limit. Outside it is the limit, or NaN, without a gradient. A maximum or minimum alone would
 * have half a gradient at the limit, and a whole one at NaN. */
static weft_tensor *limited(const char *where, weft_op inside, weft_op farthest, weft_tensor *x,
                            double limit) {
    weft_tensor *in[2] = {x, weft__number(x->ctx, where, "clamp", (weft_dtype)x->dtype, 0, NULL, limit)};
    weft_tensor *outside = weft_detach_at(where, weft__elementwise(where, farthest, 2, in));
    return at_where(weft__elementwise(where, inside, 2, in), x, outside);
}

weft_tensor *weft_clamp_at(const char *where, weft_tensor *x, double low, double high) {
    weft_tensor *bad = weft__reject("clamp", where, &x, 1);
    if (bad || !x) return bad;
    char text[WEFT_SHAPE_TEXT];
    if (!weft__row_accepts(WEFT_OP_MAXIMUM, (weft_dtype)x->dtype))
        return weft__poison(x->ctx, where, WEFT_ERR_DTYPE, "clamp: %s is not accepted, only %s",
                            weft__tensor_text(x, text), class_text[rows[WEFT_OP_MAXIMUM].class]);
    if (!(low <= high))
        return weft__poison(x->ctx, where, WEFT_ERR_ARGUMENT, "clamp: %g to %g is not a range", low, high);
    const weft_dtype dtype = (weft_dtype)x->dtype;
    if (!keeps_low(dtype, low)) x = limited(where, WEFT_OP_GT, WEFT_OP_MAXIMUM, x, low);
    return keeps_high(dtype, high) ? x : limited(where, WEFT_OP_LT, WEFT_OP_MINIMUM, x, high);
}

weft_tensor *weft_full_like_at(const char *where, weft_tensor *x, double value) {
    weft_tensor *bad = weft__reject("full_like", where, &x, 1);
    if (bad || !x) return bad;
    return weft__number(x->ctx, where, "full_like", (weft_dtype)x->dtype, x->rank, x->shape, value);
}

weft_tensor *weft_zeros_like_at(const char *where, weft_tensor *x) {
    WEFT_NEED_OR_POISON(NULL, where, x);
    return weft_full_like_at(where, x, 0);
}
