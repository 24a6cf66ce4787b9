/* group_norm and instance_norm, compared with the definition: one group, one group for each channel (instance
 * norm), and numbers of groups between. On vectors, 1-d and 2-d images, with and without gamma and beta. */
#include "ops/grad.h"

static const double eps = 1e-5;

typedef struct grouped {
    shape s;
    int64_t groups;
} grouped;

static const grouped samples[] = {{{2, {3, 4}}, 2},        {{2, {5, 33}}, 1},      {{3, {2, 6, 7}}, 3},
                                  {{4, {2, 4, 3, 5}}, 2},  {{4, {2, 3, 4, 4}}, 3}, {{4, {0, 4, 3, 3}}, 2},
                                  {{4, {3, 2, 17, 16}}, 1}};

static array *expect(matrix *m, const array *x, int64_t groups, const array *gamma, const array *beta) {
    array *y = array_like(m, x, x->dtype);
    y->bound = ops_alloc(m, (size_t)(y->n + 1) * sizeof *y->bound);
    const int64_t channels = x->s.dim[1], rows = x->s.dim[0] * groups, n = rows ? x->n / rows : 0;
    for (int64_t i = 0; i < rows; i++) {
        real sum = 0, squares = 0, variance = 0, largest = 1;
        const real *v = x->f + i * n;
        for (int64_t j = 0; j < n; j++) sum += v[j], squares += v[j] * v[j];
        const real mean = sum / (real)n, rms = sqrtl(squares / (real)n);
        for (int64_t j = 0; j < n; j++) variance += (v[j] - mean) * (v[j] - mean);
        const real sigma = sqrtl(variance / (real)n + (real)eps);
        for (int64_t j = 0; j < n; j++) largest = fmaxl(largest, fabsl((v[j] - mean) / sigma));
        for (int64_t j = 0; j < n; j++) {
            const int64_t at = i * n + j, pixels = n * groups / channels, c = at / pixels % channels;
            const real g = gamma ? gamma->f[c] : 1, b = beta ? beta->f[c] : 0;
            y->f[at] = (v[j] - mean) / sigma * g + b;
            y->bound[at] = bound_norm(x->dtype, n, rms, sigma, largest * fabsl(g) + fabsl(b), y->f[at]);
        }
    }
    return y;
}

static void check(matrix *m, weft_dtype dtype, const grouped *s, view_kind view, int given) {
    ops_breathe(m);
    operand x = operand_new(m, dtype, s->s, view, GEN_NORMAL), none = {NULL, NULL};
    operand gamma = operand_new(m, dtype, SHAPE(s->s.dim[1]), VIEW_PLAIN, GEN_NORMAL);
    operand beta = operand_new(m, dtype, SHAPE(s->s.dim[1]), VIEW_PLAIN, GEN_NORMAL);
    if (!(given & 1)) gamma = none;
    if (!(given & 2)) beta = none;
    ops_check(m, "group_norm", dtype,
              ops_text(m, "%s %s in %d with %d", view_name(view), shape_text(m, s->s), (int)s->groups, given),
              weft_group_norm(x.t, s->groups, gamma.t, beta.t, eps),
              expect(m, x.h, s->groups, gamma.h, beta.h), TOLERANCE_GIVEN);
}

/* ---- instance_norm: as many groups as channels ---- */

static void check_instance(matrix *m, weft_dtype dtype, shape s, view_kind view, bool affine) {
    ops_breathe(m);
    operand x = operand_new(m, dtype, s, view, GEN_NORMAL), gamma = {NULL, NULL}, beta = {NULL, NULL};
    if (affine) {
        gamma = operand_new(m, dtype, SHAPE(s.dim[1]), VIEW_PLAIN, GEN_NORMAL);
        beta = operand_new(m, dtype, SHAPE(s.dim[1]), VIEW_PLAIN, GEN_NORMAL);
    }
    ops_check(m, "instance_norm", dtype,
              ops_text(m, "%s %s%s", view_name(view), shape_text(m, s), affine ? " affine" : ""),
              weft_instance_norm(x.t, gamma.t, beta.t, eps), expect(m, x.h, s.dim[1], gamma.h, beta.h),
              TOLERANCE_GIVEN);
}

void ops_case_instance_norm(matrix *m);
void ops_case_instance_norm(matrix *m) {
    for (int d = 0; d < OPS_DTYPES; d++) {
        const weft_dtype dtype = ops_dtypes[d];
        if (!ops_has_dtype(m, "instance_norm", dtype)) continue;
        weft_tensor *x = operand_new(m, dtype, SHAPE(2, 4, 3), VIEW_PLAIN, GEN_NORMAL).t;
        weft_tensor *flat = operand_new(m, dtype, SHAPE(3, 4), VIEW_PLAIN, GEN_NORMAL).t;
        if (!is_float(dtype)) {
            ops_refused(m, "instance_norm", dtype, "dtype", weft_instance_norm(x, NULL, NULL, eps),
                        WEFT_ERR_DTYPE);
            continue;
        }
        ops_refused(m, "instance_norm", dtype, "rank", weft_instance_norm(flat, NULL, NULL, eps),
                    WEFT_ERR_SHAPE);
        ops_refused(m, "instance_norm", dtype, "gamma", weft_instance_norm(x, flat, NULL, eps),
                    WEFT_ERR_SHAPE);
        ops_refused(m, "instance_norm", dtype, "eps", weft_instance_norm(x, NULL, NULL, -1),
                    WEFT_ERR_ARGUMENT);
        for (int i = 2; i < COUNT(samples); i++)
            if (!m->gpu || i == 3) check_instance(m, dtype, samples[i].s, VIEW_PLAIN, i & 1);
        for (int v = 1; v < VIEW_COUNT && !m->gpu; v++)
            check_instance(m, dtype, samples[3].s, (view_kind)v, true);
    }
    ops_flush(m);
}

static weft_tensor *build_instance(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in,
                                   const void *user) {
    (void)ctx, (void)dtype, (void)user;
    return weft_instance_norm(in[0], in[1], in[2], 1e-3);
}

void ops_grad_instance_norm(matrix *m);
void ops_grad_instance_norm(matrix *m) {
    const shape s = samples[2].s, channels = SHAPE(s.dim[1]);
    grad_check(m, &(grad_case){.op = "instance_norm",
                               .sample = "line",
                               .n = 3,
                               .s = {s, channels, channels},
                               .low = -2,
                               .high = 2,
                               .build = build_instance});
}

/* ---- group_norm ---- */

void ops_case_group_norm(matrix *m);
void ops_case_group_norm(matrix *m) {
    for (int d = 0; d < OPS_DTYPES; d++) {
        const weft_dtype dtype = ops_dtypes[d];
        if (!ops_has_dtype(m, "group_norm", dtype)) continue;
        weft_tensor *x = operand_new(m, dtype, SHAPE(3, 4), VIEW_PLAIN, GEN_NORMAL).t;
        if (!is_float(dtype)) {
            ops_refused(m, "group_norm", dtype, "dtype", weft_group_norm(x, 2, NULL, NULL, eps),
                        WEFT_ERR_DTYPE);
            continue;
        }
        weft_tensor *three = operand_new(m, dtype, SHAPE(3), VIEW_PLAIN, GEN_NORMAL).t;
        ops_refused(m, "group_norm", dtype, "groups", weft_group_norm(x, 3, NULL, NULL, eps), WEFT_ERR_SHAPE);
        ops_refused(m, "group_norm", dtype, "no groups", weft_group_norm(x, 0, NULL, NULL, eps),
                    WEFT_ERR_SHAPE);
        ops_refused(m, "group_norm", dtype, "rank", weft_group_norm(three, 1, NULL, NULL, eps),
                    WEFT_ERR_SHAPE);
        ops_refused(m, "group_norm", dtype, "gamma", weft_group_norm(x, 2, three, NULL, eps), WEFT_ERR_SHAPE);
        ops_refused(m, "group_norm", dtype, "beta", weft_group_norm(x, 2, NULL, three, eps), WEFT_ERR_SHAPE);
        ops_refused(m, "group_norm", dtype, "eps", weft_group_norm(x, 2, NULL, NULL, -1), WEFT_ERR_ARGUMENT);
        for (int i = 0; i < COUNT(samples); i++) check(m, dtype, &samples[i], VIEW_PLAIN, 3 - i % 4);
        for (int v = 1; v < VIEW_COUNT; v++) check(m, dtype, &samples[3], (view_kind)v, v % 4);
    }
    ops_flush(m);
}

static weft_tensor *build(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in, const void *user) {
    (void)ctx, (void)dtype;
    return weft_group_norm(in[0], *(const int64_t *)user, in[1], in[2], 1e-3);
}

void ops_grad_group_norm(matrix *m);
void ops_grad_group_norm(matrix *m) {
    for (int i = 0; i < 5; i++) {
        const shape channels = SHAPE(samples[i].s.dim[1]);
        grad_check(m, &(grad_case){.op = "group_norm",
                                   .sample = shape_text(m, samples[i].s),
                                   .n = 3,
                                   .s = {samples[i].s, channels, channels},
                                   .low = -2,
                                   .high = 2,
                                   .build = build,
                                   .user = &samples[i].groups});
    }
}
