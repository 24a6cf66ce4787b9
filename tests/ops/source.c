/* Sources of values: upload and read of data, scalars, constants, iota (with arange, linspace and eye),
 * zeros_like, full_like, pack. */
#include <limits.h>
#include "ops/build.h"
#include "ops/grad.h"

/* ---- data, variables and scalars: the node INPUT ---- */

static void check_data(matrix *m, weft_dtype dtype, shape s) {
    ops_breathe(m);
    array *x = array_random(m, dtype, s, GEN_SPECIAL);
    ops_check(m, "input", dtype, ops_text(m, "data %s", shape_text(m, s)), array_upload(m, x), x,
              TOLERANCE_COPY);
    double value = is_float(dtype) ? 0.75 : 1;
    array *one = array_new(m, dtype, SCALAR_SHAPE);
    if (one->f)
        one->f[0] = (real)value;
    else
        one->i[0] = 1;
    ops_check(m, "input", dtype, "scalar", weft_reshape(weft_scalar_of(m->ctx, dtype, value), 0, NULL), one,
              TOLERANCE_COPY);
}

void ops_case_input(matrix *m);
void ops_case_input(matrix *m) {
    for (int d = 0; d < OPS_DTYPES; d++) {
        if (!ops_has_dtype(m, "input", ops_dtypes[d])) continue;
        for (int i = 0; i < ops_n_sizes; i++) check_data(m, ops_dtypes[d], ops_sizes[i]);
    }
    ops_flush(m);
}

/* ---- constants ---- */

static array *filled(matrix *m, weft_dtype dtype, shape s, double value) {
    array *y = array_new(m, dtype, s);
    for (int64_t k = 0; k < y->n; k++) {
        if (y->f)
            y->f[k] = rounded(dtype, (real)value);
        else
            y->i[k] = wrap(dtype, (int64_t)value);
    }
    return y;
}

void ops_case_const(matrix *m);
void ops_case_const(matrix *m) {
    const double floats[] = {0.0, -0.0, 1.5, 1e-3, -1e30, 1e-42, HUGE_VAL, -HUGE_VAL, NAN};
    for (int d = 0; d < OPS_DTYPES; d++) {
        weft_dtype dtype = ops_dtypes[d];
        if (!ops_has_dtype(m, "const", dtype)) continue;
        for (int i = 0; i < ops_n_sizes; i++) {
            shape s = ops_sizes[i];
            double value = is_float(dtype)      ? floats[i % COUNT(floats)]
                           : dtype == WEFT_BOOL ? i % 2
                                                : 1 + i * 4;
            ops_breathe(m);
            ops_check(m, "const", dtype, ops_text(m, "%g %s", value, shape_text(m, s)),
                      weft_full(m->ctx, dtype, s.rank, s.dim, value), filled(m, dtype, s, value),
                      TOLERANCE_COPY);
        }
        if (is_float(dtype)) continue;
        ops_refused(m, "const", dtype, "fraction", weft_full(m->ctx, dtype, 0, NULL, 0.5), WEFT_ERR_ARGUMENT);
        ops_refused(m, "const", dtype, "NaN", weft_full(m->ctx, dtype, 0, NULL, (double)NAN),
                    WEFT_ERR_ARGUMENT);
        if (dtype != WEFT_I64 && dtype != WEFT_U32 && dtype != WEFT_U64)
            ops_refused(m, "const", dtype, "too large", weft_full(m->ctx, dtype, 0, NULL, 3e9),
                        WEFT_ERR_ARGUMENT);
    }
    array *large = array_new(m, WEFT_I64, SHAPE(2));
    large->i[0] = large->i[1] = INT64_MAX - 1;
    ops_check(m, "const", WEFT_I64, "2^63 - 2",
              weft_full_i64(m->ctx, WEFT_I64, 1, large->s.dim, INT64_MAX - 1), large, TOLERANCE_COPY);
    ops_flush(m);
}

static weft_tensor *record_zeros(weft_tensor *x, const void *user) {
    (void)user;
    return weft_zeros_like(x);
}

static weft_tensor *record_full(weft_tensor *x, const void *user) {
    (void)user;
    return weft_full_like(x, 1);
}

static array *expect_zeros(matrix *m, const array *x, const void *user) {
    (void)user;
    return filled(m, x->dtype, x->s, 0);
}

static array *expect_ones(matrix *m, const array *x, const void *user) {
    (void)user;
    return filled(m, x->dtype, x->s, 1);
}

#define LIKE(op_, record_fn, expect_fn)                                                                      \
    void ops_case_##op_(matrix *m);                                                                          \
    void ops_case_##op_(matrix *m) {                                                                         \
        ops_run_unary(m, &(unary_op){.name = #op_,                                                           \
                                     .record = record_fn,                                                    \
                                     .expect = expect_fn,                                                    \
                                     .accept = ACCEPT_ANY,                                                   \
                                     .how = TOLERANCE_COPY,                                                  \
                                     .gen = GEN_WIDE});                                                      \
    }                                                                                                        \
    static weft_tensor *build_##op_(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in,             \
                                    const void *user) {                                                      \
        (void)ctx, (void)dtype;                                                                              \
        return record_fn(in[0], user);                                                                       \
    }                                                                                                        \
    void ops_grad_##op_(matrix *m);                                                                          \
    void ops_grad_##op_(matrix *m) {                                                                         \
        grad_zero(m, &(grad_case){.op = #op_,                                                                \
                                  .sample = "of x",                                                          \
                                  .n = 1,                                                                    \
                                  .s = {SHAPE(4)},                                                           \
                                  .low = -1,                                                                 \
                                  .high = 1,                                                                 \
                                  .build = build_##op_});                                                    \
    }
LIKE(zeros_like, record_zeros, expect_zeros)
LIKE(full_like, record_full, expect_ones)

/* ---- iota ---- */

/* Ops that are built on iota: arange, linspace, eye. */
static void check_ranges(matrix *m, weft_dtype dtype) {
    ops_breathe(m);
    array *y = array_new(m, dtype, SHAPE(9)), *e = array_new(m, dtype, SHAPE(3, 5));
    for (int64_t k = 0; k < y->n && !y->f; k++) y->i[k] = 3 + 2 * k;
    for (int64_t k = 0; k < y->n && y->f; k++) y->f[k] = (real)(3 + 2 * k);
    for (int64_t k = 0; k < 3; k++) {
        if (e->f)
            e->f[6 * k] = 1;
        else
            e->i[6 * k] = 1;
    }
    ops_check(m, "iota", dtype, "eye", weft_eye(m->ctx, dtype, 3, 5), e, TOLERANCE_COPY);
    if (dtype == WEFT_BOOL) {
        ops_refused(m, "iota", dtype, "arange", weft_arange(m->ctx, dtype, 0, 2, 1), WEFT_ERR_ARGUMENT);
        return;
    }
    ops_check(m, "iota", dtype, "arange", weft_arange(m->ctx, dtype, 3, 20.5, 2), y, TOLERANCE_COPY);
    ops_check(m, "iota", dtype, "arange of nothing", weft_arange(m->ctx, dtype, 3, 3, 1),
              array_new(m, dtype, SHAPE(0)), TOLERANCE_COPY);
    if (!is_float(dtype)) {
        ops_refused(m, "iota", dtype, "linspace", weft_linspace(m->ctx, dtype, 0, 1, 3), WEFT_ERR_DTYPE);
        ops_refused(m, "iota", dtype, "half", weft_arange(m->ctx, dtype, 0, 2, 0.5), WEFT_ERR_ARGUMENT);
        return;
    }
    ops_refused(m, "iota", dtype, "by 0", weft_arange(m->ctx, dtype, 0, 2, 0), WEFT_ERR_ARGUMENT);
    array *down = array_new(m, dtype, SHAPE(5)), *line = array_new(m, dtype, SHAPE(11));
    for (int64_t k = 0; k < 5; k++) down->f[k] = 1 - (real)k / 4;
    line->bound = ops_alloc(m, 12 * sizeof *line->bound);
    for (int64_t k = 0; k < 11; k++) {
        line->f[k] = -1 + (real)k * 0.3L;
        line->bound[k] = k % 10 ? 4 * roundoff_sum(dtype) + bound_store(dtype, line->f[k]) : 0;
    }
    line->f[10] = 2;
    ops_check(m, "iota", dtype, "arange down", weft_arange(m->ctx, dtype, 1, -0.25, -0.25), down,
              TOLERANCE_COPY);
    ops_check(m, "iota", dtype, "linspace", weft_linspace(m->ctx, dtype, -1, 2, 11), line, TOLERANCE_GIVEN);
    ops_check(m, "iota", dtype, "linspace of one", weft_linspace(m->ctx, dtype, 1, 2, 1),
              filled(m, dtype, SHAPE(1), 1), TOLERANCE_COPY);
}

void ops_case_iota(matrix *m);
void ops_case_iota(matrix *m) {
    for (int d = 0; d < OPS_DTYPES; d++) {
        weft_dtype dtype = ops_dtypes[d];
        if (!ops_has_dtype(m, "iota", dtype)) continue;
        for (int i = 0; i < ops_n_sizes; i++) {
            shape s = ops_sizes[i];
            ops_breathe(m);
            array *y = array_new(m, dtype, s);
            for (int64_t k = 0; k < y->n; k++) {
                int64_t at = s.rank ? k % s.dim[s.rank - 1] : 0;
                if (y->f)
                    y->f[k] = rounded(dtype, (real)at);
                else
                    y->i[k] = wrap(dtype, at);
            }
            ops_check(m, "iota", dtype, shape_text(m, s), weft_iota(m->ctx, dtype, s.rank, s.dim), y,
                      TOLERANCE_COPY);
        }
        check_ranges(m, dtype);
    }
    ops_flush(m);
}

/* ---- pack: puts parts at offsets, with zeros between them ---- */

void ops_case_pack(matrix *m);
void ops_case_pack(matrix *m) {
    const shape shapes[3] = {SHAPE(3, 5), SHAPE(17), SCALAR_SHAPE};
    const int64_t offsets[3] = {1, 16, 40}, total = 48;
    for (int d = 0; d < OPS_DTYPES; d++) {
        if (!ops_has_dtype(m, "pack", ops_dtypes[d])) continue;
        for (int v = 0; v < VIEW_COUNT; v++) {
            ops_breathe(m);
            array *y = array_new(m, ops_dtypes[d], SHAPE(total));
            weft_tensor *parts[3];
            for (int p = 0; p < 3; p++) {
                operand x = operand_new(m, ops_dtypes[d], shapes[p], (view_kind)v, GEN_WIDE);
                parts[p] = x.t;
                for (int64_t k = 0; k < x.h->n; k++) array_copy(y, offsets[p] + k, x.h, k);
            }
            ops_check(m, "pack", ops_dtypes[d], view_name((view_kind)v),
                      weft__pack(WEFT_HERE, parts, offsets, 3, total), y, TOLERANCE_COPY);
        }
    }
    ops_flush(m);
}
