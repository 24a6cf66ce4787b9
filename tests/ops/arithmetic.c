/* Arithmetic with a scalar: add_scalar, mul_scalar, square, clamp. */
#include "ops/grad.h"

typedef struct number_op {
    weft_tensor *(*fn)(weft_tensor *x);
    real (*on_float)(real x);
    int64_t (*on_integer)(int64_t v, weft_dtype t);
} number_op;

static weft_tensor *record(weft_tensor *x, const void *user) { return ((const number_op *)user)->fn(x); }

static array *expect(matrix *m, const array *x, const void *user) {
    const number_op *op = user;
    array *y = array_like(m, x, x->dtype);
    for (int64_t k = 0; k < x->n; k++) {
        if (x->f)
            y->f[k] = op->on_float(x->f[k]);
        else
            y->i[k] = wrap(x->dtype, op->on_integer(x->i[k], x->dtype));
    }
    return y;
}

static weft_tensor *build(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in, const void *user) {
    (void)ctx, (void)dtype;
    return record(in[0], user);
}

static real clamped(real x) { return isnan(x) ? x : x < 0 ? 0 : x > 3 ? 3 : x; }
static int64_t plus_seven(int64_t v, weft_dtype t) {
    (void)t;
    return (int64_t)((uint64_t)v + 7);
}
static int64_t times_three(int64_t v, weft_dtype t) {
    (void)t;
    return (int64_t)((uint64_t)v * 3);
}
static int64_t squared(int64_t v, weft_dtype t) {
    (void)t;
    return (int64_t)((uint64_t)v * (uint64_t)v);
}
static int64_t clamped_integer(int64_t v, weft_dtype t) {
    return ordered(t, v) > ordered(t, 3) ? 3 : t != WEFT_U64 && v < 0 ? 0 : v;
}

/* NUMBER(name, call that records it on x, float formula of x, integer function, tolerance, range of values
 * that avoids kinks) */
#define NUMBER(op_, call, on_float_, on_integer_, how_, low_, high_)                                         \
    static weft_tensor *fn_##op_(weft_tensor *x) { return call; }                                            \
    static real float_##op_(real x) { return on_float_; }                                                    \
    static const number_op op_##op_ = {fn_##op_, float_##op_, on_integer_};                                  \
    void ops_case_##op_(matrix *m);                                                                          \
    void ops_case_##op_(matrix *m) {                                                                         \
        ops_run_unary(m, &(unary_op){.name = #op_,                                                           \
                                     .record = record,                                                       \
                                     .expect = expect,                                                       \
                                     .user = &op_##op_,                                                      \
                                     .accept = ACCEPT_NUMBER,                                                \
                                     .how = how_,                                                            \
                                     .gen = GEN_WIDE});                                                      \
        refusals_##op_(m);                                                                                   \
        ops_flush(m);                                                                                        \
    }                                                                                                        \
    void ops_grad_##op_(matrix *m);                                                                          \
    void ops_grad_##op_(matrix *m) {                                                                         \
        grad_check(m, &(grad_case){.op = #op_,                                                               \
                                   .sample = "values",                                                       \
                                   .n = 1,                                                                   \
                                   .s = {SHAPE(3, 4)},                                                       \
                                   .low = low_,                                                              \
                                   .high = high_,                                                            \
                                   .build = build,                                                           \
                                   .user = &op_##op_});                                                      \
        if (!strcmp(#op_, "clamp")) gradient_at_limits(m);                                                   \
    }

static weft_tensor *build_clamp(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in,
                                const void *user) {
    const double *limits = user;
    (void)ctx, (void)dtype;
    return weft_clamp(in[0], limits[0], limits[1]);
}

/* clamp has gradient 0 at a limit, beyond it, and at NaN. This also holds with one limit only. */
static void gradient_at_limits(matrix *m) {
    const double limits[3][2] = {{0, 3}, {0, HUGE_VAL}, {-HUGE_VAL, 3}}, nan = (double)NAN,
                 x[7] = {-1, 0, 1, 3, 4, nan, -HUGE_VAL},
                 want[3][7] = {{0, 0, 1, 0, 0, 0, 0}, {0, 0, 1, 1, 1, 0, 0}, {1, 1, 1, 0, 0, 0, 1}};
    for (int i = 0; i < 3; i++)
        grad_expect(m,
                    &(grad_case){.op = "clamp",
                                 .sample = ops_text(m, "limits %d", i),
                                 .n = 1,
                                 .s = {SHAPE(7)},
                                 .build = build_clamp,
                                 .user = limits[i]},
                    x, want[i]);
}

/* A number that the dtype cannot hold is refused, never truncated. */
static void refusals_add_scalar(matrix *m) {
    operand x = operand_new(m, WEFT_I32, SHAPE(3), VIEW_PLAIN, GEN_NORMAL);
    ops_refused(m, "add_scalar", WEFT_I32, "0.5", weft_add_scalar(x.t, 0.5), WEFT_ERR_ARGUMENT);
    ops_refused(m, "add_scalar", WEFT_I32, "NaN", weft_add_scalar(x.t, (double)NAN), WEFT_ERR_ARGUMENT);
    ops_refused(m, "add_scalar", WEFT_I32, "1e30", weft_add_scalar(x.t, 1e30), WEFT_ERR_ARGUMENT);
}

static void refusals_mul_scalar(matrix *m) {
    operand x = operand_new(m, WEFT_I64, SHAPE(3), VIEW_PLAIN, GEN_NORMAL);
    ops_refused(m, "mul_scalar", WEFT_I64, "0.5", weft_mul_scalar(x.t, 0.5), WEFT_ERR_ARGUMENT);
}

static void refusals_square(matrix *m) { (void)m; }

/* Limits outside the range of the dtype have no effect. */
static void refusals_clamp(matrix *m) {
    const weft_dtype dtypes[3] = {WEFT_U8, WEFT_I32, WEFT_I64};
    for (int d = 0; d < 3; d++) {
        operand x = operand_new(m, dtypes[d], SHAPE(129), VIEW_PLAIN, GEN_WIDE);
        ops_check(m, "clamp", dtypes[d], "infinite", weft_clamp(x.t, -HUGE_VAL, HUGE_VAL), x.h,
                  TOLERANCE_COPY);
    }
    operand x = operand_new(m, WEFT_F32, SHAPE(3), VIEW_PLAIN, GEN_NORMAL);
    ops_refused(m, "clamp", WEFT_F32, "low above high", weft_clamp(x.t, 2, 1), WEFT_ERR_ARGUMENT);
    ops_refused(m, "clamp", WEFT_F32, "NaN", weft_clamp(x.t, (double)NAN, 1), WEFT_ERR_ARGUMENT);
}

NUMBER(add_scalar, weft_add_scalar(x, 7), x + 7, plus_seven, TOLERANCE_BASIC, -2, 2)
NUMBER(mul_scalar, weft_mul_scalar(x, 3), x * 3, times_three, TOLERANCE_BASIC, -2, 2)
NUMBER(square, weft_square(x), x *x, squared, TOLERANCE_BASIC, -2, 2)
NUMBER(clamp, weft_clamp(x, 0, 3), clamped(x), clamped_integer, TOLERANCE_CHOICE, 0.1, 2.9)
