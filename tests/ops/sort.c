/* sort, argsort and topk, compared with an insertion sort, which keeps the order of equal elements. Also
 * take_along_axis. */
#include "ops/grad.h"

typedef struct sample {
    shape s;
    int axis;
    int64_t k; /* for topk */
} sample;

static const sample samples[] = {{{2, {5, 19}}, -1, 3},    {{1, {17}}, 0, 16},   {{2, {3, 1}}, 1, 1},
                                 {{2, {0, 3}}, 0, 0},      {{2, {0, 3}}, 1, 2},  {{2, {33, 5}}, 0, 2},
                                 {{3, {2, 19, 3}}, 1, 19}, {{1, {1025}}, 0, 50}, {{2, {3, 130}}, -1, 129},
                                 {{2, {3, 600}}, -1, 1}};

/* Must element a move before element b, which precedes it? */
static bool moves_up(const array *x, bool descending, int64_t a, int64_t b) {
    if (!x->f) {
        const int64_t v = ordered(x->dtype, x->i[a]), w = ordered(x->dtype, x->i[b]);
        return descending ? v > w : v < w;
    }
    const real v = x->f[a], w = x->f[b];
    if (isnan(v) || isnan(w)) return descending ? isnan(v) && !isnan(w) : isnan(w) && !isnan(v);
    return descending ? v > w : v < w;
}

/* Values and positions of the first `count` elements along axis. */
static array *expect(matrix *m, const array *x, int axis, int64_t count, bool descending, array **places) {
    if (axis < 0) axis += x->s.rank;
    const int64_t n = x->s.dim[axis];
    int64_t inner = 1;
    for (int i = axis + 1; i < x->s.rank; i++) inner *= x->s.dim[i];
    shape s = x->s;
    s.dim[axis] = count;
    array *y = array_new(m, x->dtype, s);
    *places = array_new(m, WEFT_I32, s);
    int64_t *order = ops_alloc(m, (size_t)(n + 1) * sizeof *order);
    for (int64_t k = 0; k < (n ? x->n / n : 0); k++) {
        const int64_t first = k / inner * n * inner + k % inner;
        for (int64_t i = 0; i < n; i++) {
            int64_t at = i;
            for (; at > 0 && moves_up(x, descending, first + i * inner, first + order[at - 1] * inner); at--)
                order[at] = order[at - 1];
            order[at] = i;
        }
        for (int64_t i = 0; i < count; i++) {
            const int64_t to = (k / inner * count + i) * inner + k % inner;
            array_copy(y, to, x, first + order[i] * inner);
            (*places)->i[to] = order[i];
        }
    }
    return y;
}

typedef enum function { SORT, ARGSORT, TOPK } function;
static const char *const names[] = {"sort", "argsort", "topk"};

static void check(matrix *m, function what, operand x, const char *kind, const sample *s, bool descending) {
    array *places, *y = expect(m, x.h, s->axis,
                               what == TOPK ? s->k : x.h->s.dim[s->axis < 0 ? x.h->s.rank - 1 : s->axis],
                               descending, &places);
    const char *text =
        ops_text(m, "%s %s axis %d %s", kind, shape_text(m, x.h->s), s->axis, descending ? "down" : "up");
    weft_tensor *index = NULL, *values = NULL; /* recorded separately: checks share no results */
    if (what == ARGSORT) {
        index = weft_argsort(x.t, s->axis, descending);
    } else if (what == SORT) {
        values = weft_sort(x.t, s->axis, descending, NULL);
        weft_sort(x.t, s->axis, descending, &index);
    } else {
        values = weft_topk(x.t, s->k, s->axis, descending, NULL);
        weft_topk(x.t, s->k, s->axis, descending, &index);
    }
    if (values) ops_check(m, names[what], x.h->dtype, text, values, y, TOLERANCE_COPY);
    ops_check(m, names[what], x.h->dtype, ops_text(m, "places, %s", text), index, places, TOLERANCE_COPY);
}

static void run(matrix *m, function what) {
    for (int d = 0; d < OPS_DTYPES; d++) {
        const weft_dtype dtype = ops_dtypes[d];
        if (!ops_has_dtype(m, names[what], dtype)) continue;
        for (int i = 0; i < COUNT(samples); i++) {
            ops_breathe(m);
            operand x = operand_new(m, dtype, samples[i].s, VIEW_PLAIN, i % 2 ? GEN_WIDE : GEN_STEPS);
            check(m, what, x, "plain", &samples[i], i % 2);
            check(m, what, x, "plain", &samples[i], i % 2 == 0);
        }
        for (int v = 1; v < VIEW_COUNT; v++) {
            ops_breathe(m);
            check(m, what, operand_new(m, dtype, samples[0].s, (view_kind)v, GEN_STEPS),
                  view_name((view_kind)v), &samples[0], v % 2);
        }
        operand special = operand_new(m, dtype, SHAPE(2, 46), VIEW_PLAIN, GEN_SPECIAL);
        check(m, what, special, "specials", &samples[0], false);
        check(m, what, special, "specials", &samples[0], true);
    }
    operand x = operand_new(m, WEFT_F32, SHAPE(2, 3), VIEW_PLAIN, GEN_NORMAL);
    weft_tensor *index;
    if (what == SORT)
        ops_refused(m, "sort", WEFT_F32, "axis", weft_sort(x.t, 2, false, NULL), WEFT_ERR_SHAPE);
    if (what == ARGSORT)
        ops_refused(m, "argsort", WEFT_F32, "axis", weft_argsort(x.t, -3, false), WEFT_ERR_SHAPE);
    if (what == TOPK) {
        ops_refused(m, "topk", WEFT_F32, "k", weft_topk(x.t, 4, 1, true, &index), WEFT_ERR_ARGUMENT);
        ops_refused(m, "topk", WEFT_F32, "its index", index, WEFT_ERR_ARGUMENT);
    }
    ops_flush(m);
}

/* A sort with more merge levels than the samples have. Values must match their positions and be in order. */
void ops_case_order(matrix *m);
void ops_case_order(matrix *m) {
    enum { N = 70001 };
    if (m->slow) return;
    operand x = operand_new(m, WEFT_F32, SHAPE(N), VIEW_PLAIN, GEN_NORMAL);
    for (int64_t k = 0; k < N; k += 3) x.h->f[k] = roundl(x.h->f[k]); /* some are equal */
    x = operand_of(m, x.h);
    weft_tensor *index, *sorted = weft_sort(x.t, 0, false, &index);
    float *values = ops_alloc(m, N * sizeof *values);
    int32_t *places = ops_alloc(m, N * sizeof *places);
    bool fine = weft_read(sorted, values, N * sizeof *values) == WEFT_OK &&
                weft_read(index, places, N * sizeof *places) == WEFT_OK;
    for (int64_t i = 0; i < N && fine && !m->sources; i++) {
        fine = places[i] >= 0 && places[i] < N && values[i] == (float)x.h->f[places[i]];
        if (i && fine)
            fine = values[i - 1] < values[i] || (values[i - 1] == values[i] && places[i - 1] < places[i]);
    }
    ops_hold(m, "sort", WEFT_F32, "70001 elements", fine);
    ops_flush(m);
}

/* The gradient of sort (k = N) or topk, added to another gradient: w scattered to the selected elements, plus
 * v. */
static void add_to(matrix *m, int64_t k) {
    enum { ROWS = 5, N = 19 };
    const shape s = SHAPE(ROWS, N);
    operand x = operand_new(m, WEFT_F32, s, VIEW_PLAIN, GEN_STEPS);
    operand v = operand_new(m, WEFT_F32, s, VIEW_PLAIN, GEN_NORMAL);
    operand w = operand_new(m, WEFT_F32, SHAPE(ROWS, k), VIEW_PLAIN, GEN_NORMAL);
    weft_tensor *best = k == N ? weft_sort(x.t, 1, true, NULL) : weft_topk(x.t, k, 1, true, NULL), *grad;
    weft_tensor *loss = weft_add(weft_sum(weft_mul(best, w.t), WEFT_ALL_AXES, false),
                                 weft_sum(weft_mul(x.t, v.t), WEFT_ALL_AXES, false));
    float got[ROWS * N];
    bool fine = weft_gradient(loss, &x.t, 1, &grad) == WEFT_OK && weft_read(grad, got, sizeof got) == WEFT_OK;
    array *places;
    expect(m, x.h, 1, k, true, &places);
    for (int64_t i = 0; i < places->n; i++) v.h->f[i / k * N + places->i[i]] += w.h->f[i];
    for (int64_t i = 0; i < ROWS * N && fine && !m->sources; i++) fine = got[i] == (float)v.h->f[i];
    ops_hold(m, k == N ? "sort" : "topk", WEFT_F32, "a gradient beside another", fine);
    ops_flush(m);
}

void ops_case_sort(matrix *m);
void ops_case_sort(matrix *m) {
    run(m, SORT);
    add_to(m, 19);
}
void ops_case_argsort(matrix *m);
void ops_case_argsort(matrix *m) { run(m, ARGSORT); }
void ops_case_topk(matrix *m);
void ops_case_topk(matrix *m) {
    run(m, TOPK);
    add_to(m, 3);
}

/* ---- take_along_axis ---- */

void ops_case_take_along_axis(matrix *m);
void ops_case_take_along_axis(matrix *m) {
    for (int d = 0; d < OPS_DTYPES; d++)
        for (int i = 0; i < COUNT(samples); i++) {
            const weft_dtype dtype = ops_dtypes[d], by = i % 2 ? WEFT_I32 : WEFT_I64;
            if (!ops_has_dtype(m, "take_along_axis", dtype)) continue;
            ops_breathe(m);
            operand x = operand_new(m, dtype, samples[i].s, i ? VIEW_PLAIN : VIEW_TRANSPOSED, GEN_WIDE);
            const int axis = samples[i].axis < 0 ? samples[i].axis + samples[i].s.rank : samples[i].axis;
            shape s = samples[i].s;
            s.dim[axis] = samples[i].k;
            array *index = array_random(m, by, s, GEN_WIDE), *y = array_new(m, dtype, s);
            for (int64_t k = 0; k < y->n; k++) {
                int64_t at[WEFT_MAX_RANK], n = samples[i].s.dim[axis];
                index->i[k] = (index->i[k] % n + n) % n;
                unravel(s, k, at);
                at[axis] = index->i[k];
                array_copy(y, k, x.h, position(x.h->s, at));
            }
            ops_check(m, "take_along_axis", dtype, shape_text(m, samples[i].s),
                      weft_take_along_axis(x.t, operand_of(m, index).t, samples[i].axis), y, TOLERANCE_COPY);
        }
    operand x = operand_new(m, WEFT_F32, SHAPE(2, 3), VIEW_PLAIN, GEN_NORMAL);
    operand i = operand_new(m, WEFT_I32, SHAPE(3, 3), VIEW_PLAIN, GEN_NORMAL);
    ops_refused(m, "take_along_axis", WEFT_F32, "index", weft_take_along_axis(x.t, x.t, 0), WEFT_ERR_DTYPE);
    ops_refused(m, "take_along_axis", WEFT_F32, "rows", weft_take_along_axis(x.t, i.t, 1), WEFT_ERR_SHAPE);
    weft_tensor *next = weft_from(m->ctx, WEFT_I32, 2, (int64_t[]){2, 1}, (int32_t[]){3, 0}); /* for row 1 */
    weft_tensor *outside = weft_take_along_axis(x.t, next, 1);
    const bool named = weft_eval(&outside, 1) == WEFT_ERR_INDEX || weft_synchronize(m->ctx) == WEFT_ERR_INDEX;
    ops_hold(m, "take_along_axis", WEFT_I32, "n: its error", named);
    ops_flush(m);
}

/* ---- gradients ---- */

static weft_tensor *build_sort(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in,
                               const void *user) {
    (void)ctx, (void)dtype;
    return weft_sort(in[0], *(const int *)user, true, NULL);
}
static weft_tensor *build_topk(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in,
                               const void *user) {
    (void)ctx, (void)dtype;
    return weft_topk(in[0], 2, *(const int *)user, false, NULL);
}
static weft_tensor *build_argsort(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in,
                                  const void *user) {
    (void)ctx;
    return weft_cast(weft_argsort(in[0], *(const int *)user, false), dtype);
}
static weft_tensor *build_take(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in,
                               const void *user) {
    const int32_t index[8] = {0, 2, 2, 1, 0, 0, 1, 2};
    (void)dtype;
    weft_tensor *at =
        weft_from(ctx, WEFT_I32, 2, *(const int *)user ? (int64_t[]){4, 2} : (int64_t[]){2, 4}, index);
    return weft_take_along_axis(in[0], at, *(const int *)user);
}

static void gradient(matrix *m, const char *op,
                     weft_tensor *(*build)(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in,
                                           const void *user),
                     bool none) {
    static const int axes[2] = {0, 1};
    for (int i = 0; i < 2; i++) {
        const grad_case c = {.op = op,
                             .blames = "argsort",
                             .sample = i ? "rows" : "columns",
                             .n = 1,
                             .s = {i ? SHAPE(4, 3) : SHAPE(3, 4)},
                             .low = -2,
                             .high = 2,
                             .avoid = AVOID_TIES,
                             .build = build,
                             .user = &axes[i]};
        (none ? grad_none : grad_check)(m, &c);
    }
}

void ops_grad_sort(matrix *m);
void ops_grad_sort(matrix *m) { gradient(m, "sort", build_sort, false); }
void ops_grad_topk(matrix *m);
void ops_grad_topk(matrix *m) { gradient(m, "topk", build_topk, false); }
void ops_grad_argsort(matrix *m);
void ops_grad_argsort(matrix *m) { gradient(m, "argsort", build_argsort, true); }
void ops_grad_take_along_axis(matrix *m);
void ops_grad_take_along_axis(matrix *m) { gradient(m, "take_along_axis", build_take, false); }
