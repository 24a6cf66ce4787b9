/* cast between every two dtypes, and detach. */
#include "ops/grad.h"

/* The range of an integer dtype. */
static void limits(weft_dtype dtype, int64_t *least, int64_t *most) {
    bool has_sign = dtype == WEFT_I8 || dtype == WEFT_I16 || dtype == WEFT_I32 || dtype == WEFT_I64;
    int bits = (int)(8 * weft_dtype_size(dtype)) - (has_sign ? 1 : 0);
    *most = bits == 64 ? -1 : (int64_t)((UINT64_C(1) << bits) - 1); /* of u64: all bits set */
    *least = has_sign ? -*most - 1 : 0;
}

static int64_t to_integer(weft_dtype to, real v) {
    int64_t least, most;
    if (to == WEFT_BOOL) return v != 0;
    limits(to, &least, &most);
    if (isnan(v)) return 0;
    if (v <= (real)least) return least;
    if (v >= value_of(to, most)) return most;
    return to == WEFT_U64 ? (int64_t)(uint64_t)truncl(v) : (int64_t)truncl(v);
}

static array *expect(matrix *m, const array *x, weft_dtype to) {
    array *y = array_like(m, x, to);
    for (int64_t k = 0; k < x->n; k++) {
        if (y->f)
            y->f[k] = rounded(to, x->f ? x->f[k] : value_of(x->dtype, x->i[k])); /* ties to even */
        else
            y->i[k] = x->f ? to_integer(to, x->f[k]) : wrap(to, x->i[k]);
    }
    return y;
}

static void check(matrix *m, weft_dtype from, weft_dtype to, shape s, view_kind view, generator gen) {
    ops_breathe(m);
    operand x = operand_new(m, from, s, view, gen);
    ops_check(m, "cast", to,
              ops_text(m, "from %s %s %s", weft_dtype_name(from),
                       gen == GEN_SPECIAL ? "specials" : view_name(view), shape_text(m, s)),
              weft_cast(x.t, to), expect(m, x.h, to), TOLERANCE_COPY);
}

/* Numbers halfway between two neighbours of the target format, and numbers where rounding twice gives a wrong
 * result. */
static void check_halfway(matrix *m, weft_dtype from, weft_dtype to) {
    ops_breathe(m);
    array *x = array_new(m, from, SHAPE(400));
    for (int64_t k = 0; k < x->n; k++) {
        int top = is_float(to) ? format_of(to).digits - 1 : 20;
        real unit = ulp_of(to, 1), base = 1 + (real)(k % 20) * unit, tiny = ulp_of(from, 1);
        if (x->f)
            x->f[k] = rounded(from, ldexpl(base + unit / 2 + tiny * (real)(k % 3 - 1), (int)(k / 20) - 10));
        else /* a tie, and a number just above and below it, at every magnitude */
            x->i[k] = wrap(from, (((INT64_C(1) << top) + k % 20) * 2 + 1) *
                                         (INT64_C(1) << (k / 20 * 3 % (61 - top))) +
                                     k % 3 - 1);
    }
    operand a = operand_of(m, x);
    ops_check(m, "cast", to, ops_text(m, "from %s halfway", weft_dtype_name(from)), weft_cast(a.t, to),
              expect(m, a.h, to), TOLERANCE_COPY);
}

void ops_case_cast(matrix *m);
void ops_case_cast(matrix *m) {
    for (int a = 0; a < OPS_DTYPES; a++)
        for (int b = 0; b < OPS_DTYPES; b++) {
            weft_dtype from = ops_dtypes[a], to = ops_dtypes[b];
            if (!ops_has_dtype(m, "cast", from) || !ops_has_dtype(m, "cast", to)) continue;
            for (int i = 0; i < ops_n_sizes; i++) check(m, from, to, ops_sizes[i], VIEW_PLAIN, GEN_WIDE);
            for (int v = 1; v < VIEW_COUNT; v++)
                check(m, from, to, SHAPE(3, 5, 7, 4), (view_kind)v, GEN_WIDE);
            check(m, from, to, SHAPE(46), VIEW_PLAIN, GEN_SPECIAL);
            check_halfway(m, from, to);
        }
    ops_flush(m);
}

/* The square is computed in the dtype *user. */
static weft_tensor *build_cast(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in,
                               const void *user) {
    weft_tensor *x = weft_cast(in[0], *(const weft_dtype *)user);
    (void)ctx;
    return weft_mul(weft_cast(weft_mul(x, x), dtype), in[0]);
}

static weft_tensor *build_through_integer(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in,
                                          const void *user) {
    (void)ctx, (void)user;
    return weft_cast(weft_cast(in[0], WEFT_I32), dtype);
}

void ops_grad_cast(matrix *m);
void ops_grad_cast(matrix *m) {
    static const weft_dtype wider[2] = {WEFT_F64, WEFT_F32};
    const int lacks_f64 = m->wide != m->ctx;
    grad_check(m, &(grad_case){.op = "cast",
                               .sample = lacks_f64 ? "to f32" : "to f64",
                               .n = 1,
                               .s = {SHAPE(5)},
                               .low = -2,
                               .high = 2,
                               .build = build_cast,
                               .user = &wider[lacks_f64]});
    grad_none(m, &(grad_case){.op = "cast",
                              .sample = "through i32",
                              .n = 1,
                              .s = {SHAPE(5)},
                              .low = -2,
                              .high = 2,
                              .build = build_through_integer});
}

/* ---- detach ---- */

static weft_tensor *record_detach(weft_tensor *x, const void *user) {
    (void)user;
    return weft_detach(x);
}

static array *expect_same(matrix *m, const array *x, const void *user) {
    (void)user;
    return array_reshape(m, x, x->s);
}

void ops_case_detach(matrix *m);
void ops_case_detach(matrix *m) {
    ops_run_unary(m, &(unary_op){.name = "detach",
                                 .record = record_detach,
                                 .expect = expect_same,
                                 .accept = ACCEPT_ANY,
                                 .how = TOLERANCE_COPY,
                                 .gen = GEN_WIDE});
}

static weft_tensor *build_detach(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in,
                                 const void *user) {
    (void)ctx, (void)dtype, (void)user;
    return weft_detach(weft_mul(in[0], in[0]));
}

void ops_grad_detach(matrix *m);
void ops_grad_detach(matrix *m) {
    grad_zero(m, &(grad_case){.op = "detach",
                              .sample = "product",
                              .n = 1,
                              .s = {SHAPE(5)},
                              .low = -2,
                              .high = 2,
                              .build = build_detach});
}
