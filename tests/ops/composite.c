/* Activations, softmax, log_softmax, logsumexp and norms, which are composites of other ops, compared with
 * their definitions. */
#include "ops/grad.h"

/* ---- activations: elementwise ---- */

static const real sqrt_half = 0.707106781186547524400844362104849039L,
                  sqrt_2_pi = 0.797884560802865355879892119868763737L;

static real gelu(real x) { return x * 0.5L * erfcl(-x * sqrt_half); }
static real gelu_tanh(real x) {
    if (isinf(x)) return x > 0 ? x : NAN;
    return 0.5L * x * (1 + tanhl(sqrt_2_pi * (x + 0.044715L * x * x * x)));
}
static real gelu_slope(real x) {
    return 0.5L * erfcl(-x * sqrt_half) + x * expl(-0.5L * x * x) * sqrt_2_pi * 0.5L;
}
static real gelu_tanh_slope(real x) {
    real z = 2 * sqrt_2_pi * (x + 0.044715L * x * x * x), turn = 2 * sqrt_2_pi * (1 + 3 * 0.044715L * x * x);
    return 1 / (1 + expl(-z)) + x * turn / (2 + expl(-z) + expl(z));
}
static real silu(real x) { return x / (1 + expl(-x)); }
static real leaky(real x) { return x > 0 ? x : 0.25L * x; }
static real softplus(real x) { return x > 0 ? x + log1pl(expl(-x)) : log1pl(expl(x)); }
static real softsign(real x) { return x / (1 + fabsl(x)); }
static real elu(real x) { return x > 0 ? x : 1.5L * expm1l(x); }

static weft_tensor *call_leaky(weft_tensor *x) { return weft_leaky_relu(x, 0.25); }
static weft_tensor *call_elu(weft_tensor *x) { return weft_elu(x, 1.5); }

typedef struct activation {
    const char *name;
    unary_fn fn;
    real (*reference)(real x);
    tolerance how;
    bool tail; /* the bound is absolute, 4u|x|, if the result is small compared with x */
} activation;

static weft_tensor *record(weft_tensor *x, const void *user) { return ((const activation *)user)->fn(x); }

static array *expect(matrix *m, const array *x, const void *user) {
    const activation *op = user;
    array *y = array_like(m, x, x->dtype);
    y->bound = ops_alloc(m, (size_t)(y->n + 1) * sizeof *y->bound);
    for (int64_t k = 0; k < x->n; k++) {
        y->f[k] = op->reference(x->f[k]);
        y->bound[k] = (x->dtype == WEFT_F32 || x->dtype == WEFT_F64 ? 8 : 1) * ulp_of(x->dtype, y->f[k]);
        if (!isfinite(x->f[k])) continue;
        y->bound[k] += ulp_of(x->dtype, 0) * fabsl(x->f[k]); /* a factor of x may be subnormal */
        if (op->tail) y->bound[k] = fmaxl(y->bound[k], 4 * roundoff_sum(x->dtype) * fabsl(x->f[k]));
    }
    return y;
}

static weft_tensor *build(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in, const void *user) {
    (void)ctx, (void)dtype;
    return record(in[0], user);
}

static void run(matrix *m, const activation *op) {
    ops_run_unary(m, &(unary_op){.name = op->name,
                                 .record = record,
                                 .expect = expect,
                                 .user = op,
                                 .accept = ACCEPT_FLOAT,
                                 .how = op->how,
                                 .gen = GEN_NORMAL});
}

static void gradient(matrix *m, const activation *op, avoid where) {
    grad_check(m, &(grad_case){.op = op->name,
                               .sample = "[3x4]",
                               .n = 1,
                               .s = {SHAPE(3, 4)},
                               .low = -3,
                               .high = 3,
                               .avoid = where,
                               .build = build,
                               .user = op});
    grad_check(m, &(grad_case){.op = op->name,
                               .sample = "[130]",
                               .n = 1,
                               .s = {SHAPE(130)},
                               .low = -3,
                               .high = 3,
                               .avoid = where,
                               .build = build,
                               .user = op});
}

/* Gradients at kinks, and where x is NaN or infinite, are PyTorch's. */
static void gradient_at(matrix *m, const activation *op, double at_zero, double at_nan, double below) {
    const double x[5] = {0, (double)NAN, 1, HUGE_VAL, -HUGE_VAL}, want[5] = {at_zero, at_nan, 1, 1, below};
    grad_expect(
        m,
        &(grad_case){.op = op->name, .sample = "kinks", .n = 1, .s = {SHAPE(5)}, .build = build, .user = op},
        x, want);
}

#define ACTIVATION(name_, fn_, reference_, how_, tail_, where_)                                              \
    static const activation op_##name_ = {#name_, fn_, reference_, how_, tail_};                             \
    void ops_case_##name_(matrix *m);                                                                        \
    void ops_case_##name_(matrix *m) { run(m, &op_##name_); }                                                \
    void ops_grad_##name_(matrix *m);                                                                        \
    void ops_grad_##name_(matrix *m) {                                                                       \
        gradient(m, &op_##name_, where_);                                                                    \
        if (op_##name_.fn == call_leaky) gradient_at(m, &op_##name_, 0.25, 0.25, 0.25);                      \
        if (op_##name_.fn == call_elu) gradient_at(m, &op_##name_, 1.5, 1, 0);                               \
    }
ACTIVATION(gelu, weft_gelu, gelu, TOLERANCE_GIVEN, true, AVOID_NOTHING)
ACTIVATION(gelu_tanh, weft_gelu_tanh, gelu_tanh, TOLERANCE_GIVEN, true, AVOID_NOTHING)
ACTIVATION(gelu_slope, weft_gelu_slope, gelu_slope, TOLERANCE_GIVEN, true, AVOID_NOTHING)
ACTIVATION(gelu_tanh_slope, weft_gelu_tanh_slope, gelu_tanh_slope, TOLERANCE_GIVEN, true, AVOID_NOTHING)
ACTIVATION(silu, weft_silu, silu, TOLERANCE_GIVEN, false, AVOID_NOTHING)
ACTIVATION(leaky_relu, call_leaky, leaky, TOLERANCE_BASIC, false, AVOID_ZERO)
ACTIVATION(softplus, weft_softplus, softplus, TOLERANCE_SOFTPLUS, false, AVOID_NOTHING)
ACTIVATION(softsign, weft_softsign, softsign, TOLERANCE_SOFTPLUS, false, AVOID_ZERO)
ACTIVATION(elu, call_elu, elu, TOLERANCE_SOFTPLUS, false, AVOID_ZERO)

/* ---- along one axis ---- */

/* Elements base, base + step, ... of one row. */
typedef struct row {
    int64_t n, step, rows, inner;
} row;

static row rows_of(shape s, int axis) {
    row r = {1, 1, 1, 1};
    if (axis == WEFT_ALL_AXES) {
        r.n = shape_count(s);
        return r;
    }
    if (axis < 0) axis += s.rank;
    r.n = s.dim[axis];
    for (int i = 0; i < s.rank; i++) {
        if (i > axis) r.inner *= s.dim[i];
        if (i != axis) r.rows *= s.dim[i];
    }
    r.step = r.inner;
    return r;
}

static int64_t row_base(row r, int64_t i) { return i / r.inner * r.inner * r.n + i % r.inner; }

typedef enum soft { SOFTMAX, LOG_SOFTMAX, LOGSUMEXP } soft;

/* Finds the largest element, and returns the sum of exp(x - largest). For a row of only -inf the sum is 0. */
static real row_sum(const array *x, row r, int64_t base, real *largest) {
    real sum = 0;
    *largest = -HUGE_VALL;
    for (int64_t j = 0; j < r.n; j++) {
        real v = x->f[base + j * r.step];
        if (v > *largest || isnan(v)) *largest = v;
        if (isnan(v)) break;
    }
    if (*largest == -HUGE_VALL) *largest = 0;
    for (int64_t j = 0; j < r.n; j++) sum += expl(x->f[base + j * r.step] - *largest);
    return sum;
}

static array *expect_soft(matrix *m, const array *x, soft what, int axis, bool keep) {
    row r = rows_of(x->s, axis);
    shape s = x->s;
    if (what == LOGSUMEXP) {
        s.rank = 0;
        for (int i = 0; i < x->s.rank; i++) {
            bool gone = axis == WEFT_ALL_AXES || i == (axis < 0 ? axis + x->s.rank : axis);
            if (!gone || keep) s.dim[s.rank++] = gone ? 1 : x->s.dim[i];
        }
    }
    array *y = array_new(m, x->dtype, s);
    y->bound = ops_alloc(m, (size_t)(y->n + 1) * sizeof *y->bound);
    for (int64_t i = 0; i < r.rows; i++) {
        real largest;
        int64_t at = row_base(r, i);
        real sum = row_sum(x, r, at, &largest), log_sum = sum == 0 ? 0 : logl(sum);
        if (what == LOGSUMEXP) {
            y->f[i] = sum == 0 ? -HUGE_VALL : largest + log_sum;
            y->bound[i] = bound_softmax(x->dtype, 0, r.n, fabsl(largest) + log_sum + 1);
        }
        for (int64_t j = 0; j < r.n && what != LOGSUMEXP; j++) {
            int64_t k = at + j * r.step;
            real z = x->f[k] - largest, size = what == SOFTMAX ? 0 : fabsl(z) + log_sum + 1;
            y->f[k] = what == SOFTMAX ? (sum == 0 ? 0 : expl(z) / sum) : z - log_sum;
            y->bound[k] =
                bound_softmax(x->dtype, isfinite(z) ? fabsl(z) : 0, r.n, what == SOFTMAX ? y->f[k] : size);
        }
    }
    return y;
}

static weft_tensor *record_soft(weft_tensor *x, soft what, int axis, bool keep) {
    if (what == SOFTMAX) return weft_softmax(x, axis);
    return what == LOG_SOFTMAX ? weft_log_softmax(x, axis) : weft_logsumexp(x, axis, keep);
}

static const char *const soft_names[] = {"softmax", "log_softmax", "logsumexp"};

static void check_soft(matrix *m, soft what, const char *kind, operand x, int axis) {
    bool keep = ops_random(m) & 1;
    const char *along = axis == WEFT_ALL_AXES ? "all" : ops_text(m, "axis %d", axis);
    ops_check(m, soft_names[what], x.h->dtype, ops_text(m, "%s %s %s", kind, shape_text(m, x.h->s), along),
              record_soft(x.t, what, axis, keep), expect_soft(m, x.h, what, axis, keep), TOLERANCE_GIVEN);
}

/* Rows of only -inf, with one number, with NaN, and with values far from 0. */
static void check_masked(matrix *m, soft what, weft_dtype dtype) {
    array *x = array_random(m, dtype, SHAPE(6, 17), GEN_NORMAL);
    for (int j = 0; j < 17; j++) {
        x->f[j] = -HUGE_VALL;
        if (j) x->f[17 + j] = -HUGE_VALL;
        if (j % 3) x->f[34 + j] = -HUGE_VALL;
        x->f[51 + j] = rounded(dtype, x->f[51 + j] + 30000);
        x->f[68 + j] = rounded(dtype, x->f[68 + j] * 20);
    }
    x->f[85 + 4] = NAN;
    check_soft(m, what, "masked", operand_of(m, x), -1);
}

static void run_soft(matrix *m, soft what) {
    for (int d = 0; d < OPS_DTYPES; d++) {
        weft_dtype dtype = ops_dtypes[d];
        if (!ops_has_dtype(m, soft_names[what], dtype)) continue;
        if (!is_float(dtype)) {
            operand x = operand_new(m, dtype, SHAPE(3), VIEW_PLAIN, GEN_NORMAL);
            ops_refused(m, soft_names[what], dtype, "dtype", record_soft(x.t, what, 0, false),
                        WEFT_ERR_DTYPE);
            continue;
        }
        for (int i = 0; i < ops_n_sizes; i++) {
            ops_breathe(m);
            operand x = operand_new(m, dtype, ops_sizes[i], VIEW_PLAIN, GEN_NORMAL);
            check_soft(m, what, "plain", x, WEFT_ALL_AXES);
            for (int axis = 0; axis < ops_sizes[i].rank; axis++) check_soft(m, what, "plain", x, axis);
        }
        for (int i = 0; i < ops_n_views; i++)
            for (int v = 1; v < VIEW_COUNT; v++) {
                ops_breathe(m);
                operand x = operand_new(m, dtype, ops_views[i], (view_kind)v, GEN_NORMAL);
                for (int axis = -1; axis >= -ops_views[i].rank; axis--)
                    check_soft(m, what, view_name((view_kind)v), x, axis);
            }
        ops_breathe(m);
        check_masked(m, what, dtype);
    }
    ops_flush(m);
}

typedef struct use {
    soft what;
    int axis;
} use;

static weft_tensor *build_soft(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in,
                               const void *user) {
    const use *u = user;
    (void)ctx, (void)dtype;
    return record_soft(in[0], u->what, u->axis, false);
}

static void gradient_soft(matrix *m, soft what) {
    const shape shapes[] = {SHAPE(7), SHAPE(3, 4), SHAPE(3, 4), SHAPE(5, 33), SHAPE(2, 3, 4)};
    const int axes[] = {0, 0, 1, -1, WEFT_ALL_AXES};
    for (int i = 0; i < COUNT(axes); i++) {
        use u = {what, axes[i]};
        grad_check(m, &(grad_case){.op = soft_names[what],
                                   .sample = shape_text(m, shapes[i]),
                                   .n = 1,
                                   .s = {shapes[i]},
                                   .low = -2,
                                   .high = 2,
                                   .build = build_soft,
                                   .user = &u});
    }
    const double x[6] = {-HUGE_VAL, -HUGE_VAL, -HUGE_VAL, -HUGE_VAL, 5, -HUGE_VAL}, zero[6] = {0},
                 one[6] = {0, 0, 0, 0, 1, 0};
    use u = {what, 1};
    if (what != LOG_SOFTMAX) /* log_softmax gives -inf for the masked elements */
        grad_expect(m,
                    &(grad_case){.op = soft_names[what],
                                 .sample = "masked",
                                 .n = 1,
                                 .s = {SHAPE(2, 3)},
                                 .build = build_soft,
                                 .user = &u},
                    x, what == LOGSUMEXP ? one : zero);
}

void ops_case_softmax(matrix *m);
void ops_case_softmax(matrix *m) { run_soft(m, SOFTMAX); }
void ops_grad_softmax(matrix *m);
void ops_grad_softmax(matrix *m) { gradient_soft(m, SOFTMAX); }
void ops_case_log_softmax(matrix *m);
void ops_case_log_softmax(matrix *m) { run_soft(m, LOG_SOFTMAX); }
void ops_grad_log_softmax(matrix *m);
void ops_grad_log_softmax(matrix *m) { gradient_soft(m, LOG_SOFTMAX); }
void ops_case_logsumexp(matrix *m);
void ops_case_logsumexp(matrix *m) { run_soft(m, LOGSUMEXP); }
void ops_grad_logsumexp(matrix *m);
void ops_grad_logsumexp(matrix *m) { gradient_soft(m, LOGSUMEXP); }

/* ---- norms over the last dimension ---- */

static const double eps = 1e-5;

/* Expected layer_norm if centred, else rms_norm. gamma and beta may be NULL. */
static array *expect_norm(matrix *m, const array *x, const array *gamma, const array *beta, bool centred) {
    array *y = array_like(m, x, x->dtype);
    y->bound = ops_alloc(m, (size_t)(y->n + 1) * sizeof *y->bound);
    row r = rows_of(x->s, -1);
    for (int64_t i = 0; i < r.rows && r.n; i++) {
        real sum = 0, squares = 0, variance = 0, largest = 1;
        const real *v = x->f + i * r.n;
        for (int64_t j = 0; j < r.n; j++) sum += v[j], squares += v[j] * v[j];
        real mean = centred ? sum / (real)r.n : 0, rms = sqrtl(squares / (real)r.n);
        for (int64_t j = 0; j < r.n; j++) variance += (v[j] - mean) * (v[j] - mean);
        real sigma = sqrtl(variance / (real)r.n + (real)eps);
        for (int64_t j = 0; j < r.n; j++) largest = fmaxl(largest, fabsl((v[j] - mean) / sigma));
        for (int64_t j = 0; j < r.n; j++) {
            real g = gamma ? gamma->f[j] : 1, b = beta ? beta->f[j] : 0;
            y->f[i * r.n + j] = (v[j] - mean) / sigma * g + b;
            y->bound[i * r.n + j] =
                bound_norm(x->dtype, r.n, rms, sigma, largest * fabsl(g) + fabsl(b), y->f[i * r.n + j]);
        }
    }
    return y;
}

static void check_norm(matrix *m, bool centred, const char *kind, operand x, int given) {
    weft_dtype dtype = x.h->dtype;
    int64_t n = x.h->s.dim[x.h->s.rank - 1];
    operand gamma = operand_new(m, dtype, SHAPE(n), VIEW_PLAIN, GEN_NORMAL);
    operand beta = operand_new(m, dtype, SHAPE(n), VIEW_PLAIN, GEN_NORMAL);
    if (!(given & 1)) gamma = (operand){NULL, NULL};
    if (!(given & 2) || !centred) beta = (operand){NULL, NULL};
    weft_tensor *y = centred ? weft_layer_norm(x.t, gamma.t, beta.t, eps) : weft_rms_norm(x.t, gamma.t, eps);
    ops_check(m, centred ? "layer_norm" : "rms_norm", dtype,
              ops_text(m, "%s %s with %d", kind, shape_text(m, x.h->s), given), y,
              expect_norm(m, x.h, gamma.h, beta.h, centred), TOLERANCE_GIVEN);
}

static void run_norm(matrix *m, const char *op, bool centred) {
    for (int d = 0; d < OPS_DTYPES; d++) {
        weft_dtype dtype = ops_dtypes[d];
        if (!ops_has_dtype(m, op, dtype)) continue;
        if (!is_float(dtype)) {
            operand x = operand_new(m, dtype, SHAPE(3), VIEW_PLAIN, GEN_NORMAL);
            weft_tensor *y = centred ? weft_layer_norm(x.t, NULL, NULL, eps) : weft_rms_norm(x.t, NULL, eps);
            ops_refused(m, op, dtype, "dtype", y, WEFT_ERR_DTYPE);
            continue;
        }
        for (int i = 1; i < ops_n_sizes; i++) {
            ops_breathe(m);
            check_norm(m, centred, "plain", operand_new(m, dtype, ops_sizes[i], VIEW_PLAIN, GEN_NORMAL),
                       i % 4);
        }
        for (int i = 0; i < ops_n_views; i++)
            for (int v = 1; v < VIEW_COUNT; v++) {
                ops_breathe(m);
                check_norm(m, centred, view_name((view_kind)v),
                           operand_new(m, dtype, ops_views[i], (view_kind)v, GEN_NORMAL), v % 4);
            }
        ops_breathe(m);
        array *far = array_random(m, dtype, SHAPE(3, 129), GEN_POSITIVE); /* mean 1000, deviation about 1 */
        for (int64_t k = 0; k < far->n; k++) far->f[k] = rounded(dtype, 1000 + far->f[k]);
        check_norm(m, centred, "mean 1000", operand_of(m, far), 3);
    }
    operand x = operand_new(m, WEFT_F32, SHAPE(3), VIEW_PLAIN, GEN_NORMAL);
    operand wrong = operand_new(m, WEFT_F32, SHAPE(4), VIEW_PLAIN, GEN_NORMAL);
    weft_tensor *y = centred ? weft_layer_norm(x.t, wrong.t, NULL, eps) : weft_rms_norm(x.t, wrong.t, eps);
    ops_refused(m, op, WEFT_F32, "gamma", y, WEFT_ERR_SHAPE);
    ops_flush(m);
}

static weft_tensor *build_layer_norm(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in,
                                     const void *user) {
    (void)ctx, (void)dtype, (void)user;
    return weft_layer_norm(in[0], in[1], in[2], 1e-3);
}

static weft_tensor *build_rms_norm(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in,
                                   const void *user) {
    (void)ctx, (void)dtype, (void)user;
    return weft_rms_norm(in[0], in[1], 1e-3);
}

/* Third derivative of a norm with respect to x. This cannot be compared with PyTorch: its layer_norm treats
 * mean and deviation as constants here, and so contradicts finite differences of its own second
 * derivative. */
static void third_derivative(matrix *m, const char *op,
                             weft_tensor *(*build_norm)(weft_context *, weft_dtype, weft_tensor *const *,
                                                        const void *)) {
    const grad_case plain = {
        .op = op, .n = 3, .s = {SHAPE(3, 4), SHAPE(4), SHAPE(4)}, .low = -2, .high = 2, .build = build_norm};
    grad_case slope = plain;
    slope.sample = "slope", slope.build = grad_slope, slope.user = &plain;
    grad_check(m, &slope);
}

void ops_case_layer_norm(matrix *m);
void ops_case_layer_norm(matrix *m) { run_norm(m, "layer_norm", true); }
void ops_case_rms_norm(matrix *m);
void ops_case_rms_norm(matrix *m) { run_norm(m, "rms_norm", false); }

void ops_grad_layer_norm(matrix *m);
void ops_grad_layer_norm(matrix *m) {
    const shape shapes[] = {SHAPE(5), SHAPE(3, 4), SHAPE(5, 33)};
    for (int i = 0; i < 3; i++) {
        shape last = SHAPE(shapes[i].dim[shapes[i].rank - 1]);
        grad_check(m, &(grad_case){.op = "layer_norm",
                                   .sample = shape_text(m, shapes[i]),
                                   .n = 3,
                                   .s = {shapes[i], last, last},
                                   .low = -2,
                                   .high = 2,
                                   .build = build_layer_norm});
    }
    third_derivative(m, "layer_norm", build_layer_norm);
}

void ops_grad_rms_norm(matrix *m);
void ops_grad_rms_norm(matrix *m) {
    const shape shapes[] = {SHAPE(5), SHAPE(3, 4), SHAPE(5, 33)};
    for (int i = 0; i < 3; i++) {
        shape last = SHAPE(shapes[i].dim[shapes[i].rank - 1]);
        grad_check(m, &(grad_case){.op = "rms_norm",
                                   .sample = shape_text(m, shapes[i]),
                                   .n = 2,
                                   .s = {shapes[i], last},
                                   .low = -2,
                                   .high = 2,
                                   .build = build_rms_norm});
    }
    third_derivative(m, "rms_norm", build_rms_norm);
}
