/* Elementwise ops of one operand: references, samples, gradients. */
#include "ops/grad.h"

/* What is checked of a gradient. */
#define SMOOTH grad_check
#define FLAT   grad_zero
#define NONE   grad_none

static int64_t sign_of(int64_t v, weft_dtype t) { return t == WEFT_U64 ? v != 0 : (v > 0) - (v < 0); }

/* X(name, accepted dtypes, float x, integer v of dtype t, tolerance, gradient, low, high, avoid) */
#define UNARY_LIST(X)                                                                                        \
    X(neg, NUMBER, -x, 0 - (uint64_t)v, COPY, SMOOTH, -3, 3, NOTHING)                                        \
    X(exp, FLOAT, expl(x), 0, EXP, SMOOTH, -2, 2, NOTHING)                                                   \
    X(exp2, FLOAT, exp2l(x), 0, EXP, SMOOTH, -2, 2, NOTHING)                                                 \
    X(log, FLOAT, logl(x), 0, EXP, SMOOTH, 0.5, 4, NOTHING)                                                  \
    X(log2, FLOAT, log2l(x), 0, EXP, SMOOTH, 0.5, 4, NOTHING)                                                \
    X(log1p, FLOAT, log1pl(x), 0, EXP, SMOOTH, -0.5, 3, NOTHING)                                             \
    X(expm1, FLOAT, expm1l(x), 0, EXP, SMOOTH, -2, 2, NOTHING)                                               \
    X(sin, FLOAT, sinl(x), 0, TRIG, SMOOTH, -3, 3, NOTHING)                                                  \
    X(cos, FLOAT, cosl(x), 0, TRIG, SMOOTH, -3, 3, NOTHING)                                                  \
    X(tanh, FLOAT, tanhl(x), 0, TANH, SMOOTH, -2, 2, NOTHING)                                                \
    X(erf, FLOAT, erfl(x), 0, ERF, SMOOTH, -2, 2, NOTHING)                                                   \
    X(sqrt, FLOAT, sqrtl(x), 0, ROOT, SMOOTH, 0.5, 4, NOTHING)                                               \
    X(rsqrt, FLOAT, 1 / sqrtl(x), 0, RSQRT, SMOOTH, 0.5, 4, NOTHING)                                         \
    X(recip, FLOAT, 1 / x, 0, DIVIDE, SMOOTH, 0.5, 4, NOTHING)                                               \
    X(abs, NUMBER, fabsl(x), sign_of(v, t) < 0 ? 0 - (uint64_t)v : (uint64_t)v, COPY, SMOOTH, -3, 3, ZERO)   \
    X(sign, NUMBER, x > 0 ? 1 : x < 0 ? -1 : x, (uint64_t)sign_of(v, t), COPY, FLAT, -3, 3, ZERO)            \
    X(floor, FLOAT, floorl(x), 0, COPY, FLAT, -3, 3, HALVES)                                                 \
    X(ceil, FLOAT, ceill(x), 0, COPY, FLAT, -3, 3, HALVES)                                                   \
    X(round, FLOAT, nearbyintl(x), 0, COPY, FLAT, -3, 3, HALVES)                                             \
    X(trunc, FLOAT, truncl(x), 0, COPY, FLAT, -3, 3, HALVES)                                                 \
    X(relu, NUMBER,                                                                                          \
      x > 0    ? x                                                                                           \
      : x == x ? 0                                                                                           \
               : x,                                                                                          \
      sign_of(v, t) > 0 ? (uint64_t)v : 0, CHOICE, SMOOTH, -3, 3, ZERO)                                      \
    X(sigmoid, FLOAT, 1 / (1 + expl(-x)), 0, SIGMOID, SMOOTH, -3, 3, NOTHING)

typedef struct unary_ref {
    unary_fn fn;
    real (*on_float)(real x);
    uint64_t (*on_integer)(int64_t v, weft_dtype t);
} unary_ref;

static weft_tensor *record(weft_tensor *x, const void *user) { return ((const unary_ref *)user)->fn(x); }

static array *expect(matrix *m, const array *x, const void *user) {
    const unary_ref *ref = user;
    array *y = array_like(m, x, x->dtype);
    for (int64_t k = 0; k < x->n; k++) {
        if (x->f)
            y->f[k] = ref->on_float(x->f[k]);
        else
            y->i[k] = wrap(x->dtype, (int64_t)ref->on_integer(x->i[k], x->dtype));
    }
    return y;
}

static weft_tensor *build(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in, const void *user) {
    (void)ctx, (void)dtype;
    return ((const unary_ref *)user)->fn(in[0]);
}

static void gradient(matrix *m, const char *name, const unary_ref *ref,
                     void (*kind)(matrix *, const grad_case *), double low, double high, avoid where) {
    const shape shapes[3] = {SCALAR_SHAPE, {2, {3, 5}}, {1, {130}}};
    for (int i = 0; i < 3; i++)
        kind(m, &(grad_case){.op = name,
                             .sample = shape_text(m, shapes[i]),
                             .n = 1,
                             .s = {shapes[i]},
                             .low = low,
                             .high = high,
                             .avoid = where,
                             .build = build,
                             .user = ref});
}

/* Gradients at a kink, as the table defines them: 0 for relu and abs. At NaN the gradient of relu is NaN and
 * that of abs is 0, as in PyTorch. */
static void gradient_at_zero(matrix *m, const char *name, const unary_ref *ref) {
    const double nan = (double)NAN, inf = HUGE_VAL, x[6] = {-2, 0, 3, nan, inf, -inf},
                 relu[6] = {0, 0, 1, 1, 1, 0}, abs_[6] = {-1, 0, 1, 0, 1, -1};
    if (strcmp(name, "relu") && strcmp(name, "abs")) return;
    grad_expect(
        m, &(grad_case){.op = name, .sample = "kink", .n = 1, .s = {SHAPE(6)}, .build = build, .user = ref},
        x, strcmp(name, "relu") ? abs_ : relu);
}

#define UNARY(name_, accept_, on_float_, on_integer_, how_, kind, low, high, where)                          \
    static real float_##name_(real x) { return on_float_; }                                                  \
    static uint64_t integer_##name_(int64_t v, weft_dtype t) {                                               \
        (void)v, (void)t;                                                                                    \
        return on_integer_;                                                                                  \
    }                                                                                                        \
    static const unary_ref ref_##name_ = {weft_##name_, float_##name_, integer_##name_};                     \
    void ops_case_##name_(matrix *m);                                                                        \
    void ops_case_##name_(matrix *m) {                                                                       \
        ops_run_unary(m, &(unary_op){.name = #name_,                                                         \
                                     .record = record,                                                       \
                                     .expect = expect,                                                       \
                                     .user = &ref_##name_,                                                   \
                                     .accept = ACCEPT_##accept_,                                             \
                                     .how = TOLERANCE_##how_,                                                \
                                     .gen = GEN_WIDE});                                                      \
    }                                                                                                        \
    void ops_grad_##name_(matrix *m);                                                                        \
    void ops_grad_##name_(matrix *m) {                                                                       \
        gradient(m, #name_, &ref_##name_, kind, low, high, AVOID_##where);                                   \
        gradient_at_zero(m, #name_, &ref_##name_);                                                           \
    }
UNARY_LIST(UNARY)

/* ---- bitwise not, and ops with a bool result ---- */

static array *expect_not(matrix *m, const array *x, const void *user) {
    array *y = array_like(m, x, x->dtype);
    (void)user;
    for (int64_t k = 0; k < x->n; k++) y->i[k] = x->dtype == WEFT_BOOL ? !x->i[k] : wrap(x->dtype, ~x->i[k]);
    return y;
}

static array *expect_isnan(matrix *m, const array *x, const void *user) {
    array *y = array_like(m, x, WEFT_BOOL);
    (void)user;
    for (int64_t k = 0; k < x->n; k++) y->i[k] = isnan(x->f[k]);
    return y;
}

static array *expect_isinf(matrix *m, const array *x, const void *user) {
    array *y = array_like(m, x, WEFT_BOOL);
    (void)user;
    for (int64_t k = 0; k < x->n; k++) y->i[k] = isinf(x->f[k]) != 0;
    return y;
}

/* A bool has no gradient. Using it as a number gives an error. */
static weft_tensor *build_bool(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in,
                               const void *user) {
    return weft_cast(build(ctx, dtype, in, user), dtype);
}

#define UNARY_BOOL(name_, accept_)                                                                           \
    static const unary_ref ref_##name_ = {weft_##name_, NULL, NULL};                                         \
    void ops_case_##name_(matrix *m);                                                                        \
    void ops_case_##name_(matrix *m) {                                                                       \
        ops_run_unary(m, &(unary_op){.name = #name_,                                                         \
                                     .record = record,                                                       \
                                     .expect = expect_##name_,                                               \
                                     .user = &ref_##name_,                                                   \
                                     .accept = accept_,                                                      \
                                     .how = TOLERANCE_COPY,                                                  \
                                     .gen = GEN_SPECIAL});                                                   \
    }                                                                                                        \
    void ops_grad_##name_(matrix *m);
UNARY_BOOL(not, ACCEPT_INTEGER)
UNARY_BOOL(isnan, ACCEPT_FLOAT)
UNARY_BOOL(isinf, ACCEPT_FLOAT)

void ops_grad_isnan(matrix *m) {
    grad_none(m, &(grad_case){.op = "isnan",
                              .sample = "cast",
                              .n = 1,
                              .s = {SHAPE(3)},
                              .low = -1,
                              .high = 1,
                              .build = build_bool,
                              .user = &ref_isnan});
}

void ops_grad_isinf(matrix *m) {
    grad_none(m, &(grad_case){.op = "isinf",
                              .sample = "cast",
                              .n = 1,
                              .s = {SHAPE(3)},
                              .low = -1,
                              .high = 1,
                              .build = build_bool,
                              .user = &ref_isinf});
}

static weft_tensor *build_not(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in, const void *user) {
    (void)ctx, (void)user;
    return weft_cast(weft_not(weft_cast(in[0], WEFT_I32)), dtype);
}

void ops_grad_not(matrix *m) {
    grad_none(m, &(grad_case){.op = "not",
                              .sample = "cast",
                              .blames = "cast",
                              .n = 1,
                              .s = {SHAPE(3)},
                              .low = -1,
                              .high = 1,
                              .build = build_not});
}
