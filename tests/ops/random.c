/* Random numbers, dropout and dropout2d. Bits and uniform numbers are equal on every device; normal numbers
 * are within class C of tolerance.h. */
#include "base/base.h"
#include "ops/grad.h"

/* The stream of the next random node outside of any layer. */
static uint64_t next_stream(const matrix *m) {
    return weft__mix64(UINT64_C(0x5eed) + m->ctx->random.ordinal);
}

static real unit(const matrix *m, uint64_t stream, int64_t k) {
    return (real)(weft__random_u32(m->ctx->random.seed, stream, m->ctx->random.step, (uint64_t)k) >> 8) *
           0x1p-24L;
}

static void check_stream(matrix *m, shape s) {
    ops_breathe(m);
    const char *sample = shape_text(m, s);
    array *bits = array_new(m, WEFT_I32, s), *uniform = array_new(m, WEFT_F32, s),
          *normal = array_new(m, WEFT_F32, s);
    normal->bound = ops_alloc(m, (size_t)(normal->n + 1) * sizeof *normal->bound);
    uint64_t stream = next_stream(m);
    for (int64_t k = 0; k < bits->n; k++)
        bits->i[k] = (int32_t)weft__random_u32(m->ctx->random.seed, stream, m->ctx->random.step, (uint64_t)k);
    ops_check(m, "random", WEFT_I32, sample, weft_random_bits(m->ctx, s.rank, s.dim), bits, TOLERANCE_COPY);
    stream = next_stream(m);
    for (int64_t k = 0; k < uniform->n; k++) uniform->f[k] = unit(m, stream, k);
    ops_check(m, "random", WEFT_F32, ops_text(m, "uniform %s", sample),
              weft_random_uniform(m->ctx, s.rank, s.dim), uniform, TOLERANCE_COPY);
    stream = next_stream(m);
    m->ctx->random.ordinal++; /* a normal number uses two streams */
    uint64_t second = next_stream(m);
    m->ctx->random.ordinal--;
    for (int64_t k = 0; k < normal->n; k++) {
        real radius = sqrtl(-2 * log1pl(-unit(m, stream, k)));
        normal->f[k] = radius * cosl(2 * acosl(-1.0L) * unit(m, second, k));
        normal->bound[k] = 16 * roundoff(WEFT_F32) * radius + 8 * ulp_of(WEFT_F32, normal->f[k]);
    }
    ops_check(m, "random", WEFT_F32, ops_text(m, "normal %s", sample),
              weft_random_normal(m->ctx, s.rank, s.dim), normal, TOLERANCE_GIVEN);
}

void ops_case_random(matrix *m);
void ops_case_random(matrix *m) {
    for (int i = 0; i < ops_n_sizes; i++) check_stream(m, ops_sizes[i]);
    ops_settle(m); /* keys are read when a program runs */
    weft_seed(m->ctx, UINT64_C(0xfedcba9876543210), UINT64_C(1) << 33);
    check_stream(m, SHAPE(129)); /* another seed, and a step that needs more than 32 bits */
    ops_settle(m);
    weft_seed(m->ctx, m->seed, 0);
}

/* ---- dropout ---- */

static void check_dropout(matrix *m, weft_dtype dtype, shape s, view_kind view, double p) {
    ops_breathe(m);
    operand x = operand_new(m, dtype, s, view, GEN_NORMAL);
    array *y = array_like(m, x.h, dtype);
    uint64_t stream = next_stream(m);
    for (int64_t k = 0; k < y->n; k++) {
        bool kept = p == 0 || (p < 1 && unit(m, stream, k) >= (real)(float)p);
        y->f[k] = kept ? x.h->f[k] / (1 - (real)p) : 0;
    }
    ops_check(m, "dropout", dtype, ops_text(m, "%g %s %s", p, view_name(view), shape_text(m, s)),
              weft_dropout(x.t, p), y, TOLERANCE_TWO_STEPS);
}

void ops_case_dropout(matrix *m);
void ops_case_dropout(matrix *m) {
    for (int d = 0; d < OPS_DTYPES; d++) {
        weft_dtype dtype = ops_dtypes[d];
        if (!ops_has_dtype(m, "dropout", dtype)) continue;
        if (!is_float(dtype)) {
            operand x = operand_new(m, dtype, SHAPE(3), VIEW_PLAIN, GEN_NORMAL);
            ops_refused(m, "dropout", dtype, "dtype", weft_dropout(x.t, 0.5), WEFT_ERR_DTYPE);
            continue;
        }
        for (int i = 0; i < ops_n_sizes; i++) check_dropout(m, dtype, ops_sizes[i], VIEW_PLAIN, 0.3);
        for (int v = 1; v < VIEW_COUNT; v++) check_dropout(m, dtype, SHAPE(17, 31), (view_kind)v, 0.5);
        check_dropout(m, dtype, SHAPE(33), VIEW_PLAIN, 0);
        check_dropout(m, dtype, SHAPE(33), VIEW_PLAIN, 1);
        operand x = operand_new(m, dtype, SHAPE(3), VIEW_PLAIN, GEN_NORMAL);
        ops_refused(m, "dropout", dtype, "1.5", weft_dropout(x.t, 1.5), WEFT_ERR_ARGUMENT);
        ops_refused(m, "dropout", dtype, "NaN", weft_dropout(x.t, (double)NAN), WEFT_ERR_ARGUMENT);
    }
    ops_flush(m);
}

/* Uses the same random numbers each time it is recorded, since the finite differences need one fixed mask. */
static weft_tensor *build(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in, const void *user) {
    (void)dtype, (void)user;
    ctx->random.ordinal = 5;
    return weft_dropout(weft_mul(in[0], in[0]), 0.4);
}

void ops_grad_dropout(matrix *m);
void ops_grad_dropout(matrix *m) {
    grad_check(m, &(grad_case){.op = "dropout",
                               .sample = "0.4",
                               .n = 1,
                               .s = {SHAPE(4, 9)},
                               .low = -2,
                               .high = 2,
                               .build = build});
}

/* ---- dropout2d ---- */

static void check_channels(matrix *m, weft_dtype dtype, shape s, view_kind view, double p) {
    ops_breathe(m);
    operand x = operand_new(m, dtype, s, view, GEN_NORMAL);
    array *y = array_like(m, x.h, dtype);
    const uint64_t stream = next_stream(m);
    int64_t pixels = 1;
    for (int i = 2; i < s.rank; i++) pixels *= s.dim[i];
    for (int64_t k = 0; k < y->n; k++) {
        bool kept = p == 0 || (p < 1 && unit(m, stream, k / pixels) >= (real)(float)p);
        y->f[k] = kept ? x.h->f[k] / (1 - (real)p) : 0;
    }
    ops_check(m, "dropout2d", dtype, ops_text(m, "%g %s %s", p, view_name(view), shape_text(m, s)),
              weft_dropout2d(x.t, p), y, TOLERANCE_TWO_STEPS);
}

void ops_case_dropout2d(matrix *m);
void ops_case_dropout2d(matrix *m) {
    static const shape sizes[] = {{4, {3, 7, 4, 5}}, {2, {9, 5}}, {3, {2, 4, 33}}, {4, {0, 2, 3, 3}}};
    for (int d = 0; d < OPS_DTYPES; d++) {
        const weft_dtype dtype = ops_dtypes[d];
        if (!ops_has_dtype(m, "dropout2d", dtype)) continue;
        weft_tensor *line = operand_new(m, dtype, SHAPE(3), VIEW_PLAIN, GEN_NORMAL).t;
        weft_tensor *flat = operand_new(m, dtype, SHAPE(3, 4), VIEW_PLAIN, GEN_NORMAL).t;
        if (!is_float(dtype)) {
            ops_refused(m, "dropout2d", dtype, "dtype", weft_dropout2d(flat, 0.5), WEFT_ERR_DTYPE);
            continue;
        }
        ops_refused(m, "dropout2d", dtype, "rank", weft_dropout2d(line, 0.5), WEFT_ERR_SHAPE);
        ops_refused(m, "dropout2d", dtype, "1.5", weft_dropout2d(flat, 1.5), WEFT_ERR_ARGUMENT);
        for (int i = 0; i < COUNT(sizes); i++)
            if (!m->gpu || i == 0) check_channels(m, dtype, sizes[i], VIEW_PLAIN, 0.3);
        for (int v = 1; v < VIEW_COUNT && !m->gpu; v++) check_channels(m, dtype, sizes[0], (view_kind)v, 0.5);
        check_channels(m, dtype, sizes[0], VIEW_PLAIN, 0);
        check_channels(m, dtype, sizes[0], VIEW_PLAIN, 1);
    }
    ops_flush(m);
}

static weft_tensor *build_channels(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in,
                                   const void *user) {
    (void)dtype, (void)user;
    ctx->random.ordinal = 5;
    return weft_dropout2d(weft_mul(in[0], in[0]), 0.4);
}

void ops_grad_dropout2d(matrix *m);
void ops_grad_dropout2d(matrix *m) {
    grad_check(m, &(grad_case){.op = "dropout2d",
                               .sample = "0.4",
                               .n = 1,
                               .s = {SHAPE(3, 4, 5)},
                               .low = -2,
                               .high = 2,
                               .build = build_channels});
}
