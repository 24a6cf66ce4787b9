/* batch_norm, compared with the definition: with the batch's own statistics and with given ones, on vectors,
 * 1-d and 2-d images, with and without gamma and beta, with a large mean. */
#include "ops/grad.h"

static const double eps = 1e-5;

static const shape samples[] = {{2, {4, 3}},         {2, {300, 5}},       {3, {3, 2, 7}},   {4, {2, 4, 3, 5}},
                                {4, {3, 2, 17, 16}}, {4, {5, 33, 4, 16}}, {4, {2, 3, 1, 1}}};

/* The number of elements of a channel, and the position of element k of channel c. */
static int64_t count_of(const array *x) { return x->n / x->s.dim[1]; }
static int64_t element(const array *x, int64_t c, int64_t k) {
    const int64_t pixels = x->n / (x->s.dim[0] * x->s.dim[1]);
    return (k / pixels * x->s.dim[1] + c) * pixels + k % pixels;
}

static array *expect(matrix *m, const array *x, const array *mean, const array *variance, const array *gamma,
                     const array *beta) {
    array *y = array_like(m, x, x->dtype);
    y->bound = ops_alloc(m, (size_t)(y->n + 1) * sizeof *y->bound);
    const int64_t n = count_of(x);
    for (int64_t c = 0; c < x->s.dim[1]; c++) {
        real sum = 0, squares = 0, spread = 0, largest = 1;
        for (int64_t k = 0; k < n; k++) sum += x->f[element(x, c, k)];
        const real center = mean ? mean->f[c] : sum / (real)n;
        for (int64_t k = 0; k < n; k++) {
            const real v = x->f[element(x, c, k)];
            squares += v * v, spread += (v - center) * (v - center);
        }
        const real sigma = sqrtl((variance ? variance->f[c] : spread / (real)n) + (real)eps);
        const real rms = fmaxl(sqrtl(squares / (real)n), fabsl(center));
        for (int64_t k = 0; k < n; k++)
            largest = fmaxl(largest, fabsl((x->f[element(x, c, k)] - center) / sigma));
        for (int64_t k = 0; k < n; k++) {
            const int64_t at = element(x, c, k);
            const real g = gamma ? gamma->f[c] : 1, b = beta ? beta->f[c] : 0;
            y->f[at] = (x->f[at] - center) / sigma * g + b;
            y->bound[at] = bound_norm(x->dtype, n, rms, sigma, largest * fabsl(g) + fabsl(b), y->f[at]);
        }
    }
    return y;
}

/* given, a bit mask: 1 gamma, 2 beta, 4 statistics. */
static void check(matrix *m, weft_dtype dtype, shape s, view_kind view, generator from, int given) {
    ops_breathe(m);
    const shape channels = SHAPE(s.dim[1]);
    const operand none = {NULL, NULL}, x = operand_new(m, dtype, s, view, from);
    const operand gamma = given & 1 ? operand_new(m, dtype, channels, VIEW_PLAIN, GEN_NORMAL) : none;
    const operand beta = given & 2 ? operand_new(m, dtype, channels, VIEW_PLAIN, GEN_NORMAL) : none;
    const operand mean = given & 4 ? operand_new(m, dtype, channels, VIEW_PLAIN, GEN_NORMAL) : none;
    const operand variance = given & 4 ? operand_new(m, dtype, channels, VIEW_PLAIN, GEN_POSITIVE) : none;
    ops_check(m, "batch_norm", dtype, ops_text(m, "%s %s with %d", view_name(view), shape_text(m, s), given),
              weft_batch_norm(x.t, gamma.t, beta.t,
                              &(weft_batch_norm_options){.mean = mean.t, .variance = variance.t, .eps = eps}),
              expect(m, x.h, mean.h, variance.h, gamma.h, beta.h), TOLERANCE_GIVEN);
}

/* Whole numbers around 1,000: a one-pass variance would have no correct digit in f32. */
static void check_far(matrix *m, weft_dtype dtype, shape s) {
    const operand x = operand_new(m, dtype, s, VIEW_PLAIN, GEN_STEPS);
    for (int64_t i = 0; i < x.h->n; i++) x.h->f[i] += 1000;
    ops_check(m, "batch_norm", dtype, ops_text(m, "%s far from 0", shape_text(m, s)),
              weft_batch_norm(weft_add_scalar(x.t, 1000), NULL, NULL, &(weft_batch_norm_options){.eps = eps}),
              expect(m, x.h, NULL, NULL, NULL, NULL), TOLERANCE_GIVEN);
}

static void refuse(matrix *m, weft_dtype dtype, weft_tensor *x) {
    weft_tensor *two = operand_new(m, dtype, SHAPE(2), VIEW_PLAIN, GEN_NORMAL).t;
    weft_tensor *alone = operand_new(m, dtype, SHAPE(1, 2), VIEW_PLAIN, GEN_NORMAL).t;
    weft_tensor *none = operand_new(m, dtype, SHAPE(0, 2), VIEW_PLAIN, GEN_NORMAL).t;
    ops_refused(m, "batch_norm", dtype, "rank", weft_batch_norm(two, NULL, NULL, NULL), WEFT_ERR_SHAPE);
    ops_refused(m, "batch_norm", dtype, "one", weft_batch_norm(alone, NULL, NULL, NULL), WEFT_ERR_SHAPE);
    ops_refused(m, "batch_norm", dtype, "empty", weft_batch_norm(none, NULL, NULL, NULL), WEFT_ERR_SHAPE);
    ops_refused(m, "batch_norm", dtype, "gamma", weft_batch_norm(x, two, NULL, NULL), WEFT_ERR_SHAPE);
    ops_refused(m, "batch_norm", dtype, "beta", weft_batch_norm(x, NULL, two, NULL), WEFT_ERR_SHAPE);
    ops_refused(m, "batch_norm", dtype, "mean",
                weft_batch_norm(x, NULL, NULL, &(weft_batch_norm_options){.mean = two, .variance = two}),
                WEFT_ERR_SHAPE);
    ops_refused(m, "batch_norm", dtype, "half of the statistics",
                weft_batch_norm(alone, NULL, NULL, &(weft_batch_norm_options){.mean = two}),
                WEFT_ERR_ARGUMENT);
    ops_refused(m, "batch_norm", dtype, "eps",
                weft_batch_norm(x, NULL, NULL, &(weft_batch_norm_options){.eps = -1}), WEFT_ERR_ARGUMENT);
}

void ops_case_batch_norm(matrix *m);
void ops_case_batch_norm(matrix *m) {
    for (int d = 0; d < OPS_DTYPES; d++) {
        const weft_dtype dtype = ops_dtypes[d];
        if (!ops_has_dtype(m, "batch_norm", dtype)) continue;
        weft_tensor *x = operand_new(m, dtype, SHAPE(3, 4), VIEW_PLAIN, GEN_NORMAL).t;
        if (!is_float(dtype)) {
            ops_refused(m, "batch_norm", dtype, "dtype", weft_batch_norm(x, NULL, NULL, NULL),
                        WEFT_ERR_DTYPE);
            continue;
        }
        refuse(m, dtype, x);
        for (int i = 0; i < COUNT(samples); i++) {
            if (m->gpu && i % 3 != 1) continue; /* each sample needs several kernels */
            check(m, dtype, samples[i], VIEW_PLAIN, GEN_NORMAL, 3 - i % 4);
            if (d == 0 && i == 1) ops_another_way(m); /* with given statistics */
            check(m, dtype, samples[i], VIEW_PLAIN, GEN_NORMAL, 7 - i % 4);
        }
        if (dtype != WEFT_BF16 && !m->gpu) check_far(m, dtype, samples[4]);
        for (int v = 1; v < VIEW_COUNT && !m->gpu; v++)
            check(m, dtype, samples[3], (view_kind)v, GEN_NORMAL, v % 8);
    }
    ops_flush(m);
}

static weft_tensor *build(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in, const void *user) {
    (void)ctx, (void)dtype, (void)user;
    return weft_batch_norm(in[0], in[1], in[2], &(weft_batch_norm_options){.eps = 1e-3});
}

static weft_tensor *build_given(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in,
                                const void *user) {
    (void)ctx, (void)dtype, (void)user;
    const weft_batch_norm_options given = {.mean = in[3], .variance = weft_exp(in[4]), .eps = 1e-3};
    return weft_batch_norm(in[0], in[1], in[2], &given);
}

void ops_grad_batch_norm(matrix *m);
void ops_grad_batch_norm(matrix *m) {
    for (int i = 0; i < 4; i++) {
        if (i == 1) continue; /* too slow: differences of 1,500 elements */
        const shape channels = SHAPE(samples[i].dim[1]);
        for (int given = 0; given < 2; given++) {
            if (i == 0) ops_another_way(m);
            grad_check(m, &(grad_case){.op = "batch_norm",
                                       .sample = ops_text(m, "%s %d", shape_text(m, samples[i]), given),
                                       .n = given ? 5 : 3,
                                       .s = {samples[i], channels, channels, channels, channels},
                                       .low = -2,
                                       .high = 2,
                                       .build = given ? build_given : build});
        }
    }
}
