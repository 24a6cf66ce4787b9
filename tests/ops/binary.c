/* Elementwise ops of two and three operands: references, samples, broadcasting, aliased operands, gradients.
 */
#include "ops/grad.h"

#define SMOOTH grad_check
#define NONE   grad_none

static real modulo(real x, real y) {
    real r = fmodl(x, y);
    if (r == 0) return copysignl(0, y);
    return (r < 0) != (y < 0) ? r + y : r;
}

static int64_t quotient(int64_t v, int64_t w, weft_dtype t) {
    if (t == WEFT_U64) return (int64_t)((uint64_t)v / (uint64_t)w);
    return w == -1 ? (int64_t)(0 - (uint64_t)v) : v / w;
}

static int64_t remainder_of(int64_t v, int64_t w, weft_dtype t) {
    if (t == WEFT_U64) return (int64_t)((uint64_t)v % (uint64_t)w);
    int64_t r = w == -1 ? 0 : v % w;
    return r != 0 && (r < 0) != (w < 0) ? r + w : r;
}

static unsigned shift(int64_t w, weft_dtype t) {
    unsigned width = t == WEFT_BOOL ? 1 : (unsigned)(8 * weft_dtype_size(t));
    return (unsigned)w & (width - 1);
}

static int64_t shift_right(int64_t v, unsigned by, weft_dtype t) {
    return v >= 0 || t == WEFT_U64 ? (int64_t)((uint64_t)v >> by) : ~(int64_t)(~(uint64_t)v >> by);
}

static real larger(real x, real y) { return isnan(x) || isnan(y) ? NAN : x > y ? x : y; }
static real smaller(real x, real y) { return isnan(x) || isnan(y) ? NAN : x < y ? x : y; }

/* X(name, accepted dtypes, float x and y, integer v and w of dtype t, tolerance, gradient, low, high,
 * avoid) */
#define BINARY_LIST(X)                                                                                       \
    X(add, NUMBER, x + y, (uint64_t)v + (uint64_t)w, BASIC, SMOOTH, -3, 3, NOTHING)                          \
    X(sub, NUMBER, x - y, (uint64_t)v - (uint64_t)w, BASIC, SMOOTH, -3, 3, NOTHING)                          \
    X(mul, NUMBER, x *y, (uint64_t)v *(uint64_t)w, BASIC, SMOOTH, -3, 3, NOTHING)                            \
    X(div, NUMBER, x / y, (uint64_t)quotient(v, w, t), DIVIDE, SMOOTH, 0.5, 3, NOTHING)                      \
    X(mod, NUMBER, modulo(x, y), (uint64_t)remainder_of(v, w, t), BASIC, SMOOTH, 21, 39, TIES)               \
    X(maximum, NUMBER, larger(x, y), (uint64_t)(ordered(t, v) > ordered(t, w) ? v : w), CHOICE, SMOOTH, -3,  \
      3, TIES)                                                                                               \
    X(minimum, NUMBER, smaller(x, y), (uint64_t)(ordered(t, v) < ordered(t, w) ? v : w), CHOICE, SMOOTH, -3, \
      3, TIES)                                                                                               \
    X(pow, FLOAT, powl(x, y), 0, POW, SMOOTH, 0.5, 2.5, NOTHING)                                             \
    X(atan2, FLOAT, atan2l(x, y), 0, TANH, SMOOTH, 0.5, 3, NOTHING)                                          \
    X(hypot, FLOAT, hypotl(x, y), 0, SIGMOID, SMOOTH, 0.5, 3, NOTHING)                                       \
    X(and, INTEGER, 0, (uint64_t)(v & w), COPY, NONE, 0, 0, NOTHING)                                         \
    X(or, INTEGER, 0, (uint64_t)(v | w), COPY, NONE, 0, 0, NOTHING)                                          \
    X(xor, INTEGER, 0, (uint64_t)(v ^ w), COPY, NONE, 0, 0, NOTHING)                                         \
    X(shl, INTEGER, 0, (uint64_t)v << shift(w, t), COPY, NONE, 0, 0, NOTHING)                                \
    X(shr, INTEGER, 0, (uint64_t)shift_right(v, shift(w, t), t), COPY, NONE, 0, 0, NOTHING)

/* X(name, condition on any two values) */
#define COMPARE_LIST(X)                                                                                      \
    X(eq, x == y)                                                                                            \
    X(ne, x != y)                                                                                            \
    X(lt, x < y)                                                                                             \
    X(le, x <= y)                                                                                            \
    X(gt, x > y)                                                                                             \
    X(ge, x >= y)

typedef struct binary_ref {
    const char *name;
    binary_fn fn;
    real (*on_float)(real x, real y);
    uint64_t (*on_integer)(int64_t v, int64_t w, weft_dtype t);
    bool compares; /* the result is a bool, computed by on_float and on_integer */
    int accept;
    tolerance how;
} binary_ref;

/* ---- samples ---- */

static array *expect(matrix *m, const binary_ref *ref, const array *a, const array *b) {
    shape s = a->s;
    if (!shape_broadcast(a->s, b->s, &s)) printf("ops: %s: shapes of a sample do not broadcast\n", ref->name);
    const array *x = array_expand(m, a, s), *y = array_expand(m, b, s);
    array *z = array_new(m, ref->compares ? WEFT_BOOL : a->dtype, s);
    for (int64_t k = 0; k < z->n; k++) {
        if (ref->compares)
            z->i[k] = x->f ? ref->on_float(x->f[k], y->f[k]) != 0
                           : ref->on_integer(x->i[k], y->i[k], a->dtype) != 0;
        else if (z->f)
            z->f[k] = ref->on_float(x->f[k], y->f[k]);
        else
            z->i[k] = wrap(a->dtype, (int64_t)ref->on_integer(x->i[k], y->i[k], a->dtype));
    }
    return z;
}

static void check(matrix *m, const binary_ref *ref, const char *kind, operand a, operand b) {
    ops_check(m, ref->name, a.h->dtype,
              ops_text(m, "%s %s %s", kind, shape_text(m, a.h->s), shape_text(m, b.h->s)), ref->fn(a.t, b.t),
              expect(m, ref, a.h, b.h), ref->how);
}

static void check_views(matrix *m, const binary_ref *ref, weft_dtype dtype) {
    for (int i = 0; i < ops_n_views; i++)
        for (int v = 1; v < VIEW_COUNT; v++) {
            shape s = ops_views[i];
            view_kind view = (view_kind)v, other = (view_kind)(1 + (v + i) % (VIEW_COUNT - 1));
            bool zeros = !is_float(dtype) && (other == VIEW_PADDED); /* avoids division by 0 */
            ops_breathe(m);
            check(m, ref, view_name(view), operand_new(m, dtype, s, view, GEN_WIDE),
                  operand_new(m, dtype, s, VIEW_PLAIN, GEN_NONZERO));
            if (is_float(dtype) || view != VIEW_PADDED)
                check(m, ref, ops_text(m, "plain and %s", view_name(view)),
                      operand_new(m, dtype, s, VIEW_PLAIN, GEN_WIDE),
                      operand_new(m, dtype, s, view, GEN_NONZERO));
            check(m, ref, ops_text(m, "%s and %s", view_name(view), view_name(zeros ? VIEW_STEPPED : other)),
                  operand_new(m, dtype, s, view, GEN_WIDE),
                  operand_new(m, dtype, s, zeros ? VIEW_STEPPED : other, GEN_NONZERO));
        }
}

static void check_broadcast(matrix *m, const binary_ref *ref, weft_dtype dtype) {
    static const shape pairs[][2] = {{{2, {3, 1}}, {2, {1, 4}}},
                                     {{1, {5}}, {2, {3, 5}}},
                                     {{0, {0}}, {2, {4, 3}}},
                                     {{2, {4, 3}}, {0, {0}}},
                                     {{3, {2, 1, 3}}, {2, {4, 1}}},
                                     {{1, {0}}, {1, {1}}},
                                     {{3, {7, 1, 31}}, {2, {13, 1}}},
                                     {{2, {129, 1}}, {1, {33}}},
                                     {{8, {2, 1, 2, 1, 2, 1, 2, 1}}, {8, {1, 2, 1, 2, 1, 2, 1, 2}}}};
    for (int i = 0; i < COUNT(pairs); i++) {
        ops_breathe(m);
        check(m, ref, "broadcast", operand_new(m, dtype, pairs[i][0], VIEW_PLAIN, GEN_WIDE),
              operand_new(m, dtype, pairs[i][1], VIEW_PLAIN, GEN_NONZERO));
    }
}

/* x op x, x op transpose(x), and two overlapping slices of one tensor. */
static void check_aliased(matrix *m, const binary_ref *ref, weft_dtype dtype) {
    ops_breathe(m);
    operand x = operand_new(m, dtype, SHAPE(17, 17), VIEW_PLAIN, GEN_NONZERO);
    check(m, ref, "aliased", x, x);
    operand y = {weft_transpose(x.t, 0, 1), array_permute(m, x.h, (int[]){1, 0})};
    check(m, ref, "aliased transposed", x, y);
    shape part = SHAPE(16, 17);
    operand low = {weft_narrow(x.t, 0, 0, 16),
                   array_slice(m, x.h, (int64_t[]){0, 0}, (int64_t[]){1, 1}, part)};
    operand high = {weft_narrow(x.t, 0, 1, 16),
                    array_slice(m, x.h, (int64_t[]){1, 0}, (int64_t[]){1, 1}, part)};
    check(m, ref, "aliased slices", low, high);
}

/* Combines every special value with every other. */
static void check_specials(matrix *m, const binary_ref *ref, weft_dtype dtype) {
    int n = is_float(dtype) ? 46 : 18;
    ops_breathe(m);
    operand a = operand_new(m, dtype, SHAPE(n, 1), VIEW_PLAIN, GEN_SPECIAL);
    array *other = array_random(m, dtype, SHAPE(n), GEN_SPECIAL);
    for (int64_t k = 0; !is_float(dtype) && k < n; k++)
        if (!other->i[k]) other->i[k] = 1; /* division by 0 is a fault: see index.c */
    check(m, ref, "specials", a, operand_of(m, other));
}

static void run(matrix *m, const binary_ref *ref) {
    for (int d = 0; d < OPS_DTYPES; d++) {
        weft_dtype dtype = ops_dtypes[d];
        if (!ops_has_dtype(m, ref->name, dtype)) continue;
        if (!accepts(ref->accept, d)) {
            operand x = operand_new(m, dtype, SHAPE(3), VIEW_PLAIN, GEN_NORMAL);
            ops_refused(m, ref->name, dtype, "dtype", ref->fn(x.t, x.t), WEFT_ERR_DTYPE);
            continue;
        }
        for (int i = 0; i < ops_n_sizes; i++) {
            ops_breathe(m);
            check(m, ref, "plain", operand_new(m, dtype, ops_sizes[i], VIEW_PLAIN, GEN_WIDE),
                  operand_new(m, dtype, ops_sizes[i], VIEW_PLAIN, GEN_NONZERO));
        }
        check_views(m, ref, dtype);
        check_broadcast(m, ref, dtype);
        check_aliased(m, ref, dtype);
        check_specials(m, ref, dtype);
        operand x = operand_new(m, dtype, SHAPE(3), VIEW_PLAIN, GEN_NORMAL);
        operand y = operand_new(m, other_dtype(d), SHAPE(3), VIEW_PLAIN, GEN_NORMAL);
        ops_refused(m, ref->name, dtype, "mixed dtypes", ref->fn(x.t, y.t), WEFT_ERR_DTYPE);
    }
    ops_flush(m);
}

/* ---- gradients ---- */

static weft_tensor *build(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in, const void *user) {
    const binary_ref *ref = user;
    (void)ctx;
    weft_tensor *y = ref->fn(in[0], in[1]);
    return ref->compares ? weft_cast(y, dtype) : y;
}

static weft_tensor *build_alias(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in,
                                const void *user) {
    (void)ctx, (void)dtype;
    return ((const binary_ref *)user)->fn(in[0], in[0]);
}

static weft_tensor *build_integer(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in,
                                  const void *user) {
    (void)ctx;
    weft_tensor *v = weft_cast(in[0], WEFT_I32);
    return weft_cast(((const binary_ref *)user)->fn(v, v), dtype);
}

/* An op on x and constant numbers, with x as first or as second operand. */
typedef struct beside {
    const binary_ref *ref;
    const double *other;
    bool swapped;
} beside;

static weft_tensor *build_beside(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in,
                                 const void *user) {
    const beside *u = user;
    weft_tensor *other = grad_constant(ctx, dtype, weft_rank(in[0]), weft_shape(in[0]), u->other);
    return u->swapped ? u->ref->fn(other, in[0]) : u->ref->fn(in[0], other);
}

/* If one operand is NaN, maximum and minimum are NaN and both operands get the gradient, as in PyTorch. */
static void gradient_at_nan(matrix *m, const binary_ref *ref) {
    const double nan = (double)NAN, x[4] = {nan, 1, nan, 1}, other[4] = {1, nan, nan, 1},
                 want[4] = {1, 1, 1, 0.5};
    for (int swapped = 0; swapped < 2; swapped++)
        grad_expect(m,
                    &(grad_case){.op = ref->name,
                                 .sample = swapped ? "NaN, second operand" : "NaN",
                                 .n = 1,
                                 .s = {SHAPE(4)},
                                 .build = build_beside,
                                 .user = &(beside){ref, other, swapped}},
                    x, want);
}

static void gradient(matrix *m, const binary_ref *ref, double low, double high, avoid where) {
    static const shape pairs[][2] = {{{0, {0}}, {0, {0}}},         {{2, {3, 4}}, {2, {3, 4}}},
                                     {{2, {3, 1}}, {1, {4}}},      {{1, {4}}, {2, {3, 4}}},
                                     {{0, {0}}, {2, {3, 2}}},      {{3, {2, 3, 1}}, {0, {0}}},
                                     {{2, {13, 1}}, {2, {1, 11}}}, {{1, {130}}, {1, {130}}}};
    for (int i = 0; i < COUNT(pairs); i++)
        grad_check(m, &(grad_case){.op = ref->name,
                                   .sample = ops_text(m, "%s %s", shape_text(m, pairs[i][0]),
                                                      shape_text(m, pairs[i][1])),
                                   .n = 2,
                                   .s = {pairs[i][0], pairs[i][1]},
                                   .low = low,
                                   .high = high,
                                   .avoid = where,
                                   .build = build,
                                   .user = ref});
    if (where == AVOID_TIES && ref->how != TOLERANCE_CHOICE) return;
    if (where == AVOID_TIES) { /* x with itself: each operand gets half of a tie's gradient */
        const double x[3] = {-1, 0, 2}, one[3] = {1, 1, 1};
        grad_expect(m,
                    &(grad_case){.op = ref->name,
                                 .sample = "ties",
                                 .n = 1,
                                 .s = {SHAPE(3)},
                                 .build = build_alias,
                                 .user = ref},
                    x, one);
        gradient_at_nan(m, ref);
        return;
    }
    grad_check(m, &(grad_case){.op = ref->name,
                               .sample = "aliased",
                               .n = 1,
                               .s = {SHAPE(3, 4)},
                               .low = low,
                               .high = high,
                               .build = build_alias,
                               .user = ref});
}

/* The gradient of mod with respect to the divisor x is minus the quotient, rounded down exactly as the
 * remainder requires. 1 / 0.1 rounds up to 10, but 0.1 (as f64) fits only nine times into 1. 3e15 / 7 is
 * beyond the precision of f32. */
static void gradient_of_divisor(matrix *m) {
    static const binary_ref mod_ = {.name = "mod", .fn = weft_mod};
    const double x[7] = {0.1, -0.1, 0.1, 7, 2.5, HUGE_VAL, HUGE_VAL},
                 other[7] = {1, 1, 380, 3e15 + 1, -0.5, 1, -1},
                 want[7] = {-9, 10, -3799, -428571428571428, 1, 0, 1};
    grad_expect(m,
                &(grad_case){.op = "mod",
                             .sample = "large quotients",
                             .n = 1,
                             .s = {SHAPE(7)},
                             .build = build_beside,
                             .user = &(beside){&mod_, other, true},
                             .f64 = true},
                x, want);
}

/* hypot of (1, 1), (4, 3), (3, 4) and (6, 6), in units so small that the length has few bits, or rounds to 0:
 * the least number of each dtype, and a unit in which f64 cannot hold 6 sqrt(2). The gradients must be those
 * of the exact lengths: 1 / sqrt(2), 0.8, 0.6 and 1 / sqrt(2). x is added to the first operand, and is 0. */
static const double legs[2][4] = {{1, 4, 3, 6}, {1, 3, 4, 6}};
static const struct {
    weft_dtype dtype;
    double unit;
} units[] = {{WEFT_BF16, 0x1p-133}, {WEFT_F16, 0x1p-24}, {WEFT_F32, 0x1p-149}, {WEFT_F64, 0x1p1021}};

static weft_tensor *build_length(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in,
                                 const void *user) {
    const int i = *(const int *)user;
    weft_tensor *leg[2];
    for (int k = 0; k < 2; k++) {
        double size[4];
        for (int j = 0; j < 4; j++) size[j] = legs[k][j] * units[i].unit;
        leg[k] = grad_constant(ctx, units[i].dtype, DIMS(4), size);
    }
    weft_tensor *moved = weft_add(leg[0], weft_cast(in[0], units[i].dtype));
    return weft_cast(weft_hypot(moved, leg[1]), dtype);
}

static void gradient_of_length(matrix *m) {
    static const binary_ref hypot_ = {.name = "hypot", .fn = weft_hypot};
    const double x[4] = {0};
    const grad_case plain = {.n = 1, .build = build_beside, .user = &(beside){&hypot_, x, false}};
    grad_expect(
        m, /* the second derivative at the origin */
        &(grad_case){
            .op = "hypot", .sample = "slope", .n = 1, .s = {SHAPE(4)}, .build = grad_slope, .user = &plain},
        x, x);
    for (int i = 0; i < COUNT(units); i++) {
        double want[4];
        for (int j = 0; j < 4; j++) want[j] = legs[0][j] / hypot(legs[0][j], legs[1][j]);
        grad_expect(m,
                    &(grad_case){.op = "hypot",
                                 .sample = ops_text(m, "tiny and huge %s", weft_dtype_name(units[i].dtype)),
                                 .n = 1,
                                 .s = {SHAPE(4)},
                                 .build = build_length,
                                 .user = &i,
                                 .f64 = units[i].dtype == WEFT_F64,
                                 .within = 3 * (double)roundoff(units[i].dtype)},
                    x, want);
    }
}

/* 0 to a power: neither gradient may become 0 * inf. NaN and a pole stay. */
static void gradient_at_zero(matrix *m) {
    static const binary_ref pow_ = {.name = "pow", .fn = weft_pow};
    const double nan = (double)NAN, inf = HUGE_VAL, zeros[5] = {0}, powers[5] = {0, 1, 2, nan, -1},
                 by_zero[3] = {0, 1, 0}, by_power[5] = {0, 0, 0, nan, -inf};
    grad_expect(m,
                &(grad_case){.op = "pow",
                             .sample = "of 0",
                             .n = 1,
                             .s = {SHAPE(3)},
                             .build = build_beside,
                             .user = &(beside){&pow_, powers, false}},
                zeros, by_zero);
    grad_expect(m,
                &(grad_case){.op = "pow",
                             .sample = "of 0, by the power",
                             .n = 1,
                             .s = {SHAPE(5)},
                             .build = build_beside,
                             .user = &(beside){&pow_, zeros, true}},
                powers, by_power);
}

static void grad_binary(matrix *m, const binary_ref *ref, void (*kind)(matrix *, const grad_case *),
                        double low, double high, avoid where) {
    if (!strcmp(ref->name, "pow")) gradient_at_zero(m);
    if (!strcmp(ref->name, "mod")) gradient_of_divisor(m);
    if (!strcmp(ref->name, "hypot")) gradient_of_length(m);
    if (kind == grad_check)
        gradient(m, ref, low, high, where);
    else
        grad_none(m, &(grad_case){.op = ref->name,
                                  .sample = "cast",
                                  .blames = "cast",
                                  .n = 1,
                                  .s = {SHAPE(3)},
                                  .low = 1,
                                  .high = 3,
                                  .build = build_integer,
                                  .user = ref});
}

#define BINARY(name_, accept_, on_float_, on_integer_, how_, kind, low, high, where)                         \
    static real float_##name_(real x, real y) {                                                              \
        (void)x, (void)y;                                                                                    \
        return on_float_;                                                                                    \
    }                                                                                                        \
    static uint64_t integer_##name_(int64_t v, int64_t w, weft_dtype t) {                                    \
        (void)v, (void)w, (void)t;                                                                           \
        return on_integer_;                                                                                  \
    }                                                                                                        \
    static const binary_ref ref_##name_ = {#name_, weft_##name_,     float_##name_,   integer_##name_,       \
                                           false,  ACCEPT_##accept_, TOLERANCE_##how_};                      \
    void ops_case_##name_(matrix *m);                                                                        \
    void ops_case_##name_(matrix *m) { run(m, &ref_##name_); }                                               \
    void ops_grad_##name_(matrix *m);                                                                        \
    void ops_grad_##name_(matrix *m) { grad_binary(m, &ref_##name_, kind, low, high, AVOID_##where); }
BINARY_LIST(BINARY)

#define COMPARE(name_, condition)                                                                            \
    static real float_##name_(real x, real y) { return condition; }                                          \
    static uint64_t integer_##name_(int64_t v, int64_t w, weft_dtype t) {                                    \
        const int64_t x = ordered(t, v), y = ordered(t, w);                                                  \
        return condition;                                                                                    \
    }                                                                                                        \
    static const binary_ref ref_##name_ = {#name_, weft_##name_, float_##name_, integer_##name_,             \
                                           true,   ACCEPT_ANY,   TOLERANCE_COPY};                            \
    void ops_case_##name_(matrix *m);                                                                        \
    void ops_case_##name_(matrix *m) { run(m, &ref_##name_); }                                               \
    void ops_grad_##name_(matrix *m);                                                                        \
    void ops_grad_##name_(matrix *m) {                                                                       \
        grad_none(m, &(grad_case){.op = #name_,                                                              \
                                  .sample = "cast",                                                          \
                                  .n = 2,                                                                    \
                                  .s = {SHAPE(3), SHAPE(3)},                                                 \
                                  .low = -1,                                                                 \
                                  .high = 1,                                                                 \
                                  .build = build,                                                            \
                                  .user = &ref_##name_});                                                    \
    }
COMPARE_LIST(COMPARE)

/* ---- where ---- */

static void check_where(matrix *m, weft_dtype dtype, view_kind view, const shape s[3]) {
    ops_breathe(m);
    operand c = operand_new(m, WEFT_BOOL, s[0], view, GEN_NORMAL);
    operand a = operand_new(m, dtype, s[1], view, GEN_SPECIAL);
    operand b = operand_new(m, dtype, s[2], view == VIEW_PLAIN ? view : VIEW_STEPPED, GEN_WIDE);
    shape r;
    if (!shape_broadcast(s[0], s[1], &r) || !shape_broadcast(r, s[2], &r)) return;
    const array *x = array_expand(m, c.h, r), *y = array_expand(m, a.h, r), *z = array_expand(m, b.h, r);
    array *want = array_new(m, dtype, r);
    for (int64_t k = 0; k < want->n; k++) array_copy(want, k, x->i[k] ? y : z, k);
    ops_check(m, "where", dtype, ops_text(m, "%s %s", view_name(view), shape_text(m, r)),
              weft_where(c.t, a.t, b.t), want, TOLERANCE_COPY);
}

void ops_case_where(matrix *m);
void ops_case_where(matrix *m) {
    for (int d = 0; d < OPS_DTYPES; d++) {
        weft_dtype dtype = ops_dtypes[d];
        if (!ops_has_dtype(m, "where", dtype)) continue;
        for (int i = 0; i < ops_n_sizes; i++)
            check_where(m, dtype, VIEW_PLAIN, (shape[3]){ops_sizes[i], ops_sizes[i], ops_sizes[i]});
        for (int i = 0; i < ops_n_views; i++)
            for (int v = 1; v < VIEW_COUNT; v++)
                check_where(m, dtype, (view_kind)v, (shape[3]){ops_views[i], ops_views[i], ops_views[i]});
        check_where(m, dtype, VIEW_PLAIN, (shape[3]){SHAPE(3, 1), SHAPE(4), SCALAR_SHAPE});
        check_where(m, dtype, VIEW_PLAIN, (shape[3]){SCALAR_SHAPE, SHAPE(2, 1, 3), SHAPE(4, 1)});
        operand x = operand_new(m, dtype, SHAPE(3), VIEW_PLAIN, GEN_NORMAL);
        operand y = operand_new(m, other_dtype(d), SHAPE(3), VIEW_PLAIN, GEN_NORMAL);
        operand c = operand_new(m, WEFT_BOOL, SHAPE(3), VIEW_PLAIN, GEN_NORMAL);
        ops_refused(m, "where", dtype, "mixed dtypes", weft_where(c.t, x.t, y.t), WEFT_ERR_DTYPE);
        if (dtype != WEFT_BOOL)
            ops_refused(m, "where", dtype, "condition", weft_where(x.t, x.t, x.t), WEFT_ERR_DTYPE);
    }
    ops_flush(m);
}

static weft_tensor *build_where(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in,
                                const void *user) {
    const bool choices[3] = {true, false, true};
    (void)dtype, (void)user;
    return weft_where(weft_from(ctx, WEFT_BOOL, 1, (int64_t[]){3}, choices), in[0], in[1]);
}

/* The condition depends on an operand. No gradient flows through the condition, and this is not an error. */
static weft_tensor *build_where_greater(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in,
                                        const void *user) {
    (void)ctx, (void)dtype, (void)user;
    return weft_where(weft_gt(in[0], in[1]), weft_mul(in[0], in[0]), in[1]);
}

void ops_grad_where(matrix *m);
void ops_grad_where(matrix *m) {
    const shape b[3] = {SHAPE(3), SHAPE(2, 3), SCALAR_SHAPE};
    for (int i = 0; i < 3; i++) {
        grad_case c = {.op = "where",
                       .sample = shape_text(m, b[i]),
                       .n = 2,
                       .s = {SHAPE(2, 1), b[i]},
                       .low = -2,
                       .high = 2,
                       .avoid = AVOID_TIES,
                       .build = build_where};
        grad_check(m, &c);
        c.sample = ops_text(m, "condition on operands %s", c.sample);
        c.build = build_where_greater;
        grad_check(m, &c);
    }
}
