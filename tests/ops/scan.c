/* cumsum and cumprod, compared with a sum or product of one element after the other in long double. Also the
 * node that both record, which can run backwards too. */
#include "ops/grad.h"
#include "ops/ops.h"

typedef struct sample {
    shape s;
    int axis;
} sample;

static const sample samples[] = {{{2, {7, 5}}, 0},     {{1, {17}}, 0},       {{1, {1}}, 0},
                                 {{2, {0, 3}}, 0},     {{2, {3, 0}}, 0},     {{2, {3, 33}}, -1},
                                 {{1, {1025}}, 0},     {{3, {2, 33, 5}}, 1}, {{2, {5, 129}}, -1},
                                 {{2, {130, 300}}, 0}, {{2, {4100, 3}}, 1}};

static weft_dtype result_of(weft_dtype dtype) {
    return is_float(dtype) || weft_dtype_size(dtype) == 8 ? dtype : WEFT_I64;
}

static array *expect(matrix *m, const array *x, int axis, bool product, bool reverse) {
    array *y = array_new(m, result_of(x->dtype), x->s);
    y->bound = ops_alloc(m, (size_t)(y->n + 1) * sizeof *y->bound);
    if (axis < 0) axis += x->s.rank;
    const int64_t n = x->s.dim[axis];
    int64_t inner = 1;
    for (int i = axis + 1; i < x->s.rank; i++) inner *= x->s.dim[i];
    for (int64_t k = 0; k < (n ? x->n / n : 0); k++) {
        real f = product, magnitude = 0;
        uint64_t whole = product;
        for (int64_t i = 0; i < n; i++) {
            const int64_t at = (k / inner * n + (reverse ? n - 1 - i : i)) * inner + k % inner;
            if (!x->f) {
                whole = product ? whole * (uint64_t)x->i[at] : whole + (uint64_t)x->i[at];
                y->i[at] = (int64_t)whole;
                continue;
            }
            f = product ? f * x->f[at] : f + x->f[at];
            magnitude += fabsl(x->f[at]);
            y->f[at] = f;
            y->bound[at] = product ? bound_product(y->dtype, n, f) : bound_sum(y->dtype, n, magnitude, f);
        }
    }
    return y;
}

static weft_tensor *scan(weft_tensor *x, int axis, bool product) {
    return product ? weft_cumprod(x, axis) : weft_cumsum(x, axis);
}

static void check(matrix *m, const char *op, weft_dtype dtype, const sample *s, view_kind view, generator gen,
                  bool product) {
    ops_breathe(m);
    operand x = operand_new(m, dtype, s->s, view, gen);
    ops_check(m, op, dtype,
              ops_text(m, "%s %s axis %d", gen == GEN_SPECIAL ? "specials" : view_name(view),
                       shape_text(m, s->s), s->axis),
              scan(x.t, s->axis, product), expect(m, x.h, s->axis, product, false), TOLERANCE_GIVEN);
}

static void run(matrix *m, const char *op, bool product) {
    const generator gen = product ? GEN_NEAR_ONE : GEN_NORMAL;
    const sample special = {{1, {46}}, 0}, large = {{1, {1 << 17}}, 0};
    for (int d = 0; d < OPS_DTYPES; d++) {
        const weft_dtype dtype = ops_dtypes[d];
        if (!ops_has_dtype(m, op, dtype)) continue;
        for (int i = 0; i < COUNT(samples); i++)
            if (!product || samples[i].s.dim[0] < 1000)
                check(m, op, dtype, &samples[i], VIEW_PLAIN, gen, product);
        for (int v = 1; v < VIEW_COUNT; v++) check(m, op, dtype, &samples[0], (view_kind)v, gen, product);
        if (!product) check(m, op, dtype, &special, VIEW_PLAIN, GEN_SPECIAL, product);
        if (!m->slow && dtype == WEFT_F32 && !product) check(m, op, dtype, &large, VIEW_PLAIN, gen, product);
    }
    if (product) { /* partial products that overflow after a zero must not matter */
        array *h = array_new(m, WEFT_F32, SHAPE(300));
        for (int i = 0; i < 300; i++) h->f[i] = i ? 1e30L : 0;
        ops_check(m, op, WEFT_F32, "a zero and large ones", scan(operand_of(m, h).t, 0, true),
                  expect(m, h, 0, true, false), TOLERANCE_GIVEN);
    }
    operand x = operand_new(m, WEFT_F32, SHAPE(2, 3), VIEW_PLAIN, GEN_NORMAL);
    ops_refused(m, op, WEFT_F32, "axis", scan(x.t, 2, product), WEFT_ERR_SHAPE);
    ops_flush(m);
}

/* Backwards, as gradients need it. */
void ops_case_scan(matrix *m);
void ops_case_scan(matrix *m) {
    const weft_dtype dtypes[] = {WEFT_F32, WEFT_F64, WEFT_I64};
    for (int d = 0; d < COUNT(dtypes); d++)
        for (int i = 0; i < COUNT(samples); i++) {
            if (!ops_has_dtype(m, "cumsum", dtypes[d])) continue;
            ops_breathe(m);
            operand x = operand_new(m, dtypes[d], samples[i].s, VIEW_PLAIN, GEN_NORMAL);
            const int axis = samples[i].axis < 0 ? samples[i].axis + samples[i].s.rank : samples[i].axis;
            ops_check(m, "cumsum", dtypes[d], ops_text(m, "from the end %s", shape_text(m, samples[i].s)),
                      weft__scan(WEFT_HERE, x.t, axis, false, true), expect(m, x.h, axis, false, true),
                      TOLERANCE_GIVEN);
        }
    ops_flush(m);
}

void ops_case_cumsum(matrix *m);
void ops_case_cumsum(matrix *m) { run(m, "cumsum", false); }
void ops_case_cumprod(matrix *m);
void ops_case_cumprod(matrix *m) { run(m, "cumprod", true); }

typedef struct use {
    int axis;
    bool product;
} use;

static weft_tensor *build(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in, const void *user) {
    const use *u = user;
    (void)ctx, (void)dtype;
    return scan(in[0], u->axis, u->product);
}

static void gradient(matrix *m, const char *op, bool product) {
    const sample some[] = {{{1, {7}}, 0}, {{2, {3, 5}}, 0}, {{3, {2, 5, 3}}, 1}};
    for (int i = 0; i < COUNT(some); i++) {
        const use u = {some[i].axis, product};
        grad_check(m, &(grad_case){.op = op,
                                   .sample = shape_text(m, some[i].s),
                                   .n = 1,
                                   .s = {some[i].s},
                                   .low = 0.5,
                                   .high = 1.5,
                                   .build = build,
                                   .user = &u});
    }
}

void ops_grad_cumsum(matrix *m);
void ops_grad_cumsum(matrix *m) { gradient(m, "cumsum", false); }

void ops_grad_cumprod(matrix *m);
void ops_grad_cumprod(matrix *m) {
    gradient(m, "cumprod", true);
    const double x[15] = {2, 0, 3, 0, 5, 0, 2, 3, 4, 5, 1, 2, 3, 4, 0};
    const double want[15] = {1, 8, 0, 0, 0, 153, 0, 0, 0, 0, 33, 16, 10, 6, 24};
    const use u = {1, true};
    grad_expect(
        m,
        &(grad_case){
            .op = "cumprod", .sample = "zeros", .n = 1, .s = {SHAPE(3, 5)}, .build = build, .user = &u},
        x, want);
    /* L = a x + b xy + c xyz has slopes a + by + cyz, bx + cxz and cxy. The sum of these has slopes b + c(y +
     * z), b + c(x + z) and c(x + y). (a, b, c) is (1, 2, 3), (4, 5, 6) and (7, 8, 9). */
    const double some[9] = {0, 2, 0, 2, 0, 0, 0, 0, 3}, second[9] = {8, 2, 6, 5, 17, 12, 35, 35, 0};
    const grad_case plain = {
        .op = "cumprod", .n = 1, .s = {SHAPE(3, 3)}, .low = 0.5, .high = 1.5, .build = build, .user = &u};
    grad_case slope = plain;
    slope.sample = "slope", slope.build = grad_slope, slope.user = &plain;
    grad_expect(m, &slope, some, second);
    grad_check(m, &slope);
}
