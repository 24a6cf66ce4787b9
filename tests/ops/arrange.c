/* Ops that rearrange or select elements by position: roll, tile, repeat_interleave, pad_with, diagonal, tril,
 * triu and masked_fill copy elements or a constant. Also trace, outer and one_hot. */
#include "ops/grad.h"

#define I(...) ((int64_t[]){__VA_ARGS__})

typedef struct sample {
    const char *op, *what;
    shape s, out;
    weft_tensor *(*record)(weft_tensor *x);
    /* Turns the index o of a result element into its source index, in place. Returns false if the result is
     * `other`. */
    bool (*from)(int64_t *o);
    double other;
} sample;

static int64_t modulo(int64_t a, int64_t n) { return (a % n + n) % n; }
static int64_t mirrored(int64_t a, int64_t n) { return a < 0 ? -a : a >= n ? 2 * n - 2 - a : a; }
static int64_t limited(int64_t a, int64_t n) { return a < 0 ? 0 : a >= n ? n - 1 : a; }

/* Fills elements 1, 4, 7, ... of the last dimension. */
static weft_tensor *fill(weft_tensor *x) {
    const int64_t n = weft_dim(x, -1);
    weft_tensor *i = weft_iota(weft_context_of(x), WEFT_I32, 1, &n);
    weft_tensor *three = weft_full(weft_context_of(x), WEFT_I32, 0, NULL, 3);
    weft_tensor *one = weft_full(weft_context_of(x), WEFT_I32, 0, NULL, 1);
    return weft_masked_fill(x, weft_eq(weft_mod(i, three), one), 1);
}

#define SAMPLES(X)                                                                                           \
    X(roll, middle, SHAPE(2, 5, 3), SHAPE(2, 5, 3), weft_roll(x, 2, 1), (o[1] = modulo(o[1] - 2, 5), true))  \
    X(roll, back, SHAPE(3, 17), SHAPE(3, 17), weft_roll(x, -40, -1), (o[1] = modulo(o[1] + 40, 17), true))   \
    X(roll, flat, SHAPE(5, 7), SHAPE(5, 7), weft_roll(x, 9, WEFT_ALL_AXES), from_flat(o))                    \
    X(roll, none, SHAPE(0, 3), SHAPE(0, 3), weft_roll(x, 1, 0), true)                                        \
    X(tile, rows, SHAPE(2, 3), SHAPE(6, 6), weft_tile(x, I(3, 2)), (o[0] %= 2, o[1] %= 3, true))             \
    X(tile, rank8, SHAPE(1, 2, 1, 2, 1, 2, 1, 3), SHAPE(2, 2, 1, 4, 1, 2, 3, 3),                             \
      weft_tile(x, I(2, 1, 1, 2, 1, 1, 3, 1)), (o[0] = 0, o[3] %= 2, o[6] = 0, true))                        \
    X(tile, nothing, SHAPE(4, 3), SHAPE(0, 3), weft_tile(x, I(0, 1)), true)                                  \
    X(repeat_interleave, rows, SHAPE(3, 5), SHAPE(12, 5), weft_repeat_interleave(x, 4, 0),                   \
      (o[0] /= 4, true))                                                                                     \
    X(repeat_interleave, last, SHAPE(2, 3, 5), SHAPE(2, 3, 10), weft_repeat_interleave(x, 2, -1),            \
      (o[2] /= 2, true))                                                                                     \
    X(pad_with, reflect, SHAPE(4, 5), SHAPE(8, 8), weft_pad_with(x, I(3, 2), I(1, 1), WEFT_PAD_REFLECT),     \
      (o[0] = mirrored(o[0] - 3, 4), o[1] = mirrored(o[1] - 2, 5), true))                                    \
    X(pad_with, replicate, SHAPE(4, 5), SHAPE(10, 6),                                                        \
      weft_pad_with(x, I(6, 0), I(0, 1), WEFT_PAD_REPLICATE),                                                \
      (o[0] = limited(o[0] - 6, 4), o[1] = limited(o[1], 5), true))                                          \
    X(pad_with, circular, SHAPE(2, 4, 3), SHAPE(2, 9, 5),                                                    \
      weft_pad_with(x, I(0, 4, 1), I(0, 1, 1), WEFT_PAD_CIRCULAR),                                           \
      (o[1] = modulo(o[1] - 4, 4), o[2] = modulo(o[2] - 1, 3), true))                                        \
    X(diagonal, main, SHAPE(5, 7), SHAPE(5), weft_diagonal(x, 0, 0, 1), (o[1] = o[0], true))                 \
    X(diagonal, above, SHAPE(3, 5, 7), SHAPE(3, 5), weft_diagonal(x, 2, 1, 2), (o[2] = o[1] + 2, true))      \
    X(diagonal, below, SHAPE(5, 3, 4), SHAPE(3, 2), weft_diagonal(x, -3, 0, -1),                             \
      (o[2] = o[1], o[1] = o[0], o[0] = o[2] + 3, true))                                                     \
    X(diagonal, outside, SHAPE(3, 4), SHAPE(0), weft_diagonal(x, 4, 0, 1), true)                             \
    X(tril, main, SHAPE(5, 7), SHAPE(5, 7), weft_tril(x, 0), o[1] <= o[0])                                   \
    X(tril, above, SHAPE(2, 7, 5), SHAPE(2, 7, 5), weft_tril(x, 2), o[2] <= o[1] + 2)                        \
    X(tril, all, SHAPE(3, 3), SHAPE(3, 3), weft_tril(x, INT64_MAX), true)                                    \
    X(triu, main, SHAPE(5, 7), SHAPE(5, 7), weft_triu(x, 0), o[1] >= o[0])                                   \
    X(triu, below, SHAPE(2, 7, 5), SHAPE(2, 7, 5), weft_triu(x, -1), o[2] >= o[1] - 1)                       \
    X(triu, all, SHAPE(3, 3), SHAPE(3, 3), weft_triu(x, INT64_MIN), true)                                    \
    X(masked_fill, columns, SHAPE(5, 7), SHAPE(5, 7), fill(x), o[1] % 3 != 1)

static bool from_flat(int64_t *o) {
    const int64_t at = modulo(o[0] * 7 + o[1] - 9, 35);
    o[0] = at / 7;
    o[1] = at % 7;
    return true;
}

#define FUNCTIONS(op, what, in, out, call, where)                                                            \
    static weft_tensor *record_##op##_##what(weft_tensor *x) { return call; }                                \
    static bool from_##op##_##what(int64_t *o) {                                                             \
        (void)o;                                                                                             \
        return where;                                                                                        \
    }
SAMPLES(FUNCTIONS)

#define ROW(op, what, in, out, call, where)                                                                  \
    {#op, #what, in, out, record_##op##_##what, from_##op##_##what, #op[0] == 'm'},
static const sample samples[] = {SAMPLES(ROW)};

static array *expect(matrix *m, const sample *s, const array *x) {
    array *y = array_new(m, x->dtype, s->out);
    for (int64_t k = 0; k < y->n; k++) {
        int64_t at[WEFT_MAX_RANK] = {0};
        unravel(s->out, k, at);
        if (s->from(at))
            array_copy(y, k, x, position(s->s, at));
        else if (y->f)
            y->f[k] = (real)s->other;
        else
            y->i[k] = (int64_t)s->other;
    }
    return y;
}

/* pad_with has modes, and each mode has kernels of its own. */
static bool is_mode(const sample *s) { return strcmp(s->op, "pad_with") == 0; }

static void run(matrix *m, const char *op) {
    for (int d = 0; d < OPS_DTYPES; d++) {
        if (!ops_has_dtype(m, op, ops_dtypes[d])) continue;
        for (int i = 0, first = 1; i < COUNT(samples); i++) {
            const sample *s = &samples[i];
            if (strcmp(s->op, op)) continue;
            if (is_mode(s) && d == 0) ops_another_way(m);
            for (int v = 0; v < (first ? VIEW_COUNT : 1); v++) {
                ops_breathe(m);
                operand x = operand_new(m, ops_dtypes[d], s->s, (view_kind)v, GEN_WIDE);
                ops_check(m, op, ops_dtypes[d], ops_text(m, "%s %s", s->what, view_name((view_kind)v)),
                          s->record(x.t), expect(m, s, x.h), TOLERANCE_COPY);
            }
            first = 0;
        }
    }
    ops_flush(m);
}

static weft_tensor *build(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in, const void *user) {
    (void)ctx, (void)dtype;
    return ((const sample *)user)->record(in[0]);
}

static void gradient(matrix *m, const char *op) {
    for (int i = 0; i < COUNT(samples); i++) {
        const sample *s = &samples[i];
        if (strcmp(s->op, op) || shape_count(s->out) == 0 || shape_count(s->s) == 0) continue;
        if (is_mode(s)) ops_another_way(m);
        grad_check(m, &(grad_case){.op = op,
                                   .sample = s->what,
                                   .n = 1,
                                   .s = {s->s},
                                   .low = -2,
                                   .high = 2,
                                   .build = build,
                                   .user = s});
    }
}

#define REFUSED(op, what, call, status) ops_refused(m, #op, WEFT_F32, what, call, status)
#define CASES(op, refusals)                                                                                  \
    void ops_case_##op(matrix *m);                                                                           \
    void ops_case_##op(matrix *m) {                                                                          \
        run(m, #op);                                                                                         \
        weft_tensor *x = operand_new(m, WEFT_F32, SHAPE(2, 3), VIEW_PLAIN, GEN_NORMAL).t;                    \
        weft_tensor *line = operand_new(m, WEFT_F32, SHAPE(3), VIEW_PLAIN, GEN_NORMAL).t;                    \
        (void)x, (void)line;                                                                                 \
        refusals;                                                                                            \
        ops_flush(m);                                                                                        \
    }                                                                                                        \
    void ops_grad_##op(matrix *m);                                                                           \
    void ops_grad_##op(matrix *m) { gradient(m, #op); }
CASES(roll, REFUSED(roll, "axis", weft_roll(x, 1, 2), WEFT_ERR_SHAPE))
CASES(tile, REFUSED(tile, "count", weft_tile(x, I(1, -1)), WEFT_ERR_ARGUMENT);
      REFUSED(tile, "NULL", weft_tile(x, NULL), WEFT_ERR_ARGUMENT))
CASES(repeat_interleave,
      REFUSED(repeat_interleave, "count", weft_repeat_interleave(x, -1, 0), WEFT_ERR_ARGUMENT);
      REFUSED(repeat_interleave, "axis", weft_repeat_interleave(x, 1, -3), WEFT_ERR_SHAPE))
CASES(pad_with,
      REFUSED(pad_with, "mirrored", weft_pad_with(x, I(2, 0), I(0, 0), WEFT_PAD_REFLECT), WEFT_ERR_SHAPE);
      REFUSED(pad_with, "round", weft_pad_with(x, I(0, 0), I(0, 4), WEFT_PAD_CIRCULAR), WEFT_ERR_SHAPE);
      REFUSED(pad_with, "negative", weft_pad_with(x, I(0, 0), I(0, -1), WEFT_PAD_REPLICATE), WEFT_ERR_SHAPE);
      REFUSED(pad_with, "NULL", weft_pad_with(x, NULL, I(0, 0), WEFT_PAD_REFLECT), WEFT_ERR_ARGUMENT))
CASES(diagonal, REFUSED(diagonal, "one axis", weft_diagonal(x, 0, 1, -1), WEFT_ERR_SHAPE);
      REFUSED(diagonal, "rank", weft_diagonal(line, 0, 0, 1), WEFT_ERR_SHAPE))
CASES(tril, REFUSED(tril, "rank", weft_tril(line, 0), WEFT_ERR_SHAPE))
CASES(triu, REFUSED(triu, "rank", weft_triu(line, 0), WEFT_ERR_SHAPE))
CASES(masked_fill, REFUSED(masked_fill, "mask", weft_masked_fill(x, x, 0), WEFT_ERR_DTYPE);
      REFUSED(masked_fill, "number", weft_masked_fill(weft_cast(x, WEFT_U8), weft_gt(x, x), -1),
              WEFT_ERR_ARGUMENT))

/* ---- trace, outer ---- */

static weft_tensor *call_trace(weft_tensor *x, const void *user) {
    (void)user;
    return weft_trace(x);
}

static array *expect_trace(matrix *m, const array *x) {
    shape s = x->s;
    const int64_t rows = s.dim[s.rank - 2], columns = s.dim[s.rank - 1];
    s.rank -= 2;
    array *y = array_new(m, x->f || weft_dtype_size(x->dtype) == 8 ? x->dtype : WEFT_I64, s);
    y->bound = ops_alloc(m, (size_t)(y->n + 1) * sizeof *y->bound);
    for (int64_t k = 0; k < y->n; k++) {
        real magnitude = 0;
        for (int64_t i = 0; i < rows && i < columns; i++) {
            const int64_t at = (k * rows + i) * columns + i;
            if (!y->f) {
                y->i[k] = wrap(y->dtype, (int64_t)((uint64_t)y->i[k] + (uint64_t)x->i[at]));
                continue;
            }
            y->f[k] += x->f[at];
            magnitude += fabsl(x->f[at]);
        }
        if (y->f) y->bound[k] = bound_sum(y->dtype, rows, magnitude, y->f[k]);
    }
    return y;
}

void ops_case_trace(matrix *m);
void ops_case_trace(matrix *m) {
    const shape shapes[] = {SHAPE(17, 5, 7), SHAPE(5, 7), SHAPE(3, 33, 17), SHAPE(2, 0, 3),
                            SHAPE(2, 3, 1, 1)};
    for (int d = 0; d < OPS_DTYPES; d++) {
        const weft_dtype dtype = ops_dtypes[d];
        if (!ops_has_dtype(m, "trace", dtype)) continue;
        for (int i = 0; i < COUNT(shapes); i++) {
            ops_breathe(m);
            operand x = operand_new(m, dtype, shapes[i], i ? VIEW_PLAIN : VIEW_TRANSPOSED, GEN_NORMAL);
            ops_check(m, "trace", dtype, shape_text(m, shapes[i]), weft_trace(x.t), expect_trace(m, x.h),
                      TOLERANCE_GIVEN);
        }
    }
    operand x = operand_new(m, WEFT_F32, SHAPE(3), VIEW_PLAIN, GEN_NORMAL);
    ops_refused(m, "trace", WEFT_F32, "rank", weft_trace(x.t), WEFT_ERR_SHAPE);
    ops_flush(m);
}

static weft_tensor *build_trace(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in,
                                const void *user) {
    (void)ctx, (void)dtype;
    return call_trace(in[0], user);
}

void ops_grad_trace(matrix *m);
void ops_grad_trace(matrix *m) {
    const shape shapes[] = {SHAPE(4, 3), SHAPE(2, 5, 5)};
    for (int i = 0; i < 2; i++)
        grad_check(m, &(grad_case){.op = "trace",
                                   .sample = shape_text(m, shapes[i]),
                                   .n = 1,
                                   .s = {shapes[i]},
                                   .low = -2,
                                   .high = 2,
                                   .build = build_trace});
}

void ops_case_outer(matrix *m);
void ops_case_outer(matrix *m) {
    const shape shapes[][2] = {{SHAPE(5), SHAPE(7)}, {SHAPE(33), SHAPE(2, 3)}, {SCALAR_SHAPE, SHAPE(0)}};
    for (int d = 0; d < OPS_DTYPES; d++) {
        const weft_dtype dtype = ops_dtypes[d];
        if (!ops_has_dtype(m, "outer", dtype)) continue;
        for (int i = 0; i < COUNT(shapes); i++) {
            ops_breathe(m);
            operand a = operand_new(m, dtype, shapes[i][0], VIEW_PLAIN, GEN_NORMAL);
            operand b = operand_new(m, dtype, shapes[i][1], VIEW_PLAIN, GEN_NORMAL);
            array *y = array_new(m, dtype, SHAPE(a.h->n, b.h->n));
            for (int64_t k = 0; k < y->n; k++) {
                if (y->f)
                    y->f[k] = a.h->f[k / b.h->n] * b.h->f[k % b.h->n];
                else
                    y->i[k] =
                        wrap(dtype, (int64_t)((uint64_t)a.h->i[k / b.h->n] * (uint64_t)b.h->i[k % b.h->n]));
            }
            if (dtype == WEFT_BOOL)
                ops_refused(m, "outer", dtype, "dtype", weft_outer(a.t, b.t), WEFT_ERR_DTYPE);
            else
                ops_check(m, "outer", dtype, shape_text(m, y->s), weft_outer(a.t, b.t), y, TOLERANCE_BASIC);
        }
    }
    ops_flush(m);
}

static weft_tensor *build_outer(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in,
                                const void *user) {
    (void)ctx, (void)dtype, (void)user;
    return weft_outer(in[0], in[1]);
}

void ops_grad_outer(matrix *m);
void ops_grad_outer(matrix *m) {
    grad_check(m, &(grad_case){.op = "outer",
                               .sample = "[4] [2x3]",
                               .n = 2,
                               .s = {SHAPE(4), SHAPE(2, 3)},
                               .low = -2,
                               .high = 2,
                               .build = build_outer});
}

/* ---- one_hot ---- */

void ops_case_one_hot(matrix *m);
void ops_case_one_hot(matrix *m) {
    for (int d = 0; d < OPS_DTYPES; d++) {
        const weft_dtype dtype = ops_dtypes[d];
        if (!ops_has_dtype(m, "one_hot", dtype)) continue;
        ops_breathe(m);
        operand x = operand_new(m, dtype, SHAPE(4, 9), VIEW_TRANSPOSED, GEN_NORMAL); /* values -9..9 */
        if (is_float(dtype) || dtype == WEFT_BOOL) {
            ops_refused(m, "one_hot", dtype, "dtype", weft_one_hot(x.t, 3, WEFT_F32), WEFT_ERR_DTYPE);
            continue;
        }
        array *y = array_new(m, WEFT_F32, SHAPE(4, 9, 7)), *z = array_new(m, dtype, SHAPE(4, 9, 7));
        for (int64_t k = 0; k < y->n; k++) y->f[k] = (real)(z->i[k] = x.h->i[k / 7] == k % 7);
        ops_check(m, "one_hot", dtype, "floats", weft_one_hot(x.t, 7, WEFT_F32), y, TOLERANCE_COPY);
        ops_check(m, "one_hot", dtype, "its own", weft_one_hot(x.t, 7, dtype), z, TOLERANCE_COPY);
        ops_refused(m, "one_hot", dtype, "classes", weft_one_hot(x.t, -1, WEFT_F32), WEFT_ERR_SHAPE);
    }
    ops_flush(m);
}

static weft_tensor *build_one_hot(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in,
                                  const void *user) {
    (void)ctx, (void)user;
    return weft_one_hot(weft_cast(in[0], WEFT_I32), 4, dtype);
}

void ops_grad_one_hot(matrix *m);
void ops_grad_one_hot(matrix *m) {
    grad_none(m, &(grad_case){.op = "one_hot",
                              .blames = "cast",
                              .sample = "of a cast",
                              .n = 1,
                              .s = {SHAPE(5)},
                              .low = 0,
                              .high = 3,
                              .build = build_one_hot});
}
