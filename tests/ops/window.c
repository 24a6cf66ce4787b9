/* unfold and fold: windows of every size, step and dilation, at the edges and past them, of views and of a
 * middle dimension. Also two in a row, as for images. */
#include "ops/grad.h"

typedef struct windows {
    shape s; /* shape of the operand of unfold */
    int dim;
    int64_t size, step, dilation;
} windows;

static const windows all[] = {{{1, {7}}, 0, 3, 1, 1},
                              {{1, {7}}, 0, 3, 2, 1},
                              {{1, {8}}, 0, 3, 2, 1},
                              {{1, {7}}, 0, 7, 1, 1},
                              {{1, {7}}, 0, 1, 1, 1},
                              {{1, {9}}, 0, 1, 4, 3},
                              {{1, {9}}, 0, 2, 5, 3},
                              {{1, {11}}, 0, 3, 2, 4},
                              {{1, {1}}, 0, 1, 1, 1},
                              {{2, {3, 10}}, -1, 4, 3, 2},
                              {{2, {10, 3}}, 0, 4, 3, 2},
                              {{3, {2, 17, 5}}, 1, 3, 1, 1},
                              {{3, {2, 17, 5}}, 1, 3, 4, 3},
                              {{3, {33, 5, 3}}, 0, 2, 2, 1},
                              {{2, {0, 5}}, 1, 3, 1, 1},
                              {{1, {1025}}, 0, 5, 1, 1},
                              {{2, {5, 129}}, 1, 16, 16, 1},
                              {{1, {6}}, 0, 2, 100, 1},
                              {{7, {1, 2, 1, 2, 5, 1, 2}}, 4, 3, 2, 1}};

static int64_t count_of(const windows *w) {
    int dim = w->dim < 0 ? w->dim + w->s.rank : w->dim;
    return (w->s.dim[dim] - (w->size - 1) * w->dilation - 1) / w->step + 1;
}

static shape windows_shape(const windows *w) {
    shape s = w->s;
    s.dim[w->dim < 0 ? w->dim + s.rank : w->dim] = count_of(w);
    s.dim[s.rank++] = w->size;
    return s;
}

/* The position in the operand that element k of the windows comes from. */
static int64_t source_of(const windows *w, shape s, int64_t k) {
    int64_t at[WEFT_MAX_RANK];
    const int dim = w->dim < 0 ? w->dim + w->s.rank : w->dim;
    unravel(s, k, at);
    at[dim] = at[dim] * w->step + at[s.rank - 1] * w->dilation;
    return position(w->s, at);
}

static array *expect_unfold(matrix *m, const array *x, const windows *w) {
    array *y = array_new(m, x->dtype, windows_shape(w));
    for (int64_t k = 0; k < y->n; k++) array_copy(y, k, x, source_of(w, y->s, k));
    return y;
}

static array *expect_fold(matrix *m, const array *x, const windows *w) {
    array *y = array_new(m, x->dtype, w->s);
    real *magnitude = ops_alloc(m, (size_t)(y->n + 1) * sizeof *magnitude);
    y->bound = ops_alloc(m, (size_t)(y->n + 1) * sizeof *y->bound);
    for (int64_t k = 0; k < x->n; k++) {
        const int64_t at = source_of(w, x->s, k);
        if (!y->f) {
            y->i[at] = wrap(y->dtype, (int64_t)((uint64_t)y->i[at] + (uint64_t)x->i[k]));
            continue;
        }
        y->f[at] += x->f[k];
        magnitude[at] += fabsl(x->f[k]);
    }
    for (int64_t at = 0; at < y->n && y->f; at++)
        y->bound[at] = bound_sum(y->dtype, w->size, magnitude[at], y->f[at]);
    return y;
}

static weft_tensor *unfold(weft_tensor *x, const windows *w) {
    return weft_unfold(x, w->dim, w->size, w->step, w->dilation);
}

static weft_tensor *fold(weft_tensor *x, const windows *w) {
    const int dim = w->dim < 0 ? w->dim + w->s.rank : w->dim;
    return weft_fold(x, w->dim, w->s.dim[dim], w->step, w->dilation);
}

static void check_unfold(matrix *m, weft_dtype dtype, const windows *w, view_kind view) {
    ops_breathe(m);
    operand x = operand_new(m, dtype, w->s, view, GEN_SPECIAL);
    ops_check(m, "unfold", dtype,
              ops_text(m, "%s %s %d of %d every %d", view_name(view), shape_text(m, w->s), (int)w->size,
                       (int)w->dilation, (int)w->step),
              unfold(x.t, w), expect_unfold(m, x.h, w), TOLERANCE_COPY);
}

static void check_fold(matrix *m, weft_dtype dtype, const windows *w, view_kind view) {
    ops_breathe(m);
    operand x = operand_new(m, dtype, windows_shape(w), view, GEN_NORMAL);
    ops_check(m, "fold", dtype,
              ops_text(m, "%s %s %d of %d every %d", view_name(view), shape_text(m, w->s), (int)w->size,
                       (int)w->dilation, (int)w->step),
              fold(x.t, w), expect_fold(m, x.h, w), is_float(dtype) ? TOLERANCE_GIVEN : TOLERANCE_COPY);
}

/* Windows of rows, windows of columns, windows of a padded image; and their sum by fold. */
static void check_image(matrix *m, weft_dtype dtype, bool folds) {
    ops_breathe(m);
    const windows rows = {{3, {2, 9, 8}}, 1, 3, 2, 1}, columns = {{4, {2, 4, 8, 3}}, 2, 2, 1, 2};
    const int64_t before[3] = {0, 1, 2}, after[3] = {0, 1, 0};
    operand x = operand_new(m, dtype, SHAPE(2, 7, 6), VIEW_PLAIN, GEN_STEPS);
    weft_tensor *y = unfold(unfold(weft_pad(x.t, before, after, 0), &rows), &columns);
    array *want = expect_unfold(m, expect_unfold(m, array_pad(m, x.h, before, after, 0), &rows), &columns);
    if (!folds) {
        ops_check(m, "unfold", dtype, "an image", y, want, TOLERANCE_COPY);
        return;
    }
    ops_check(m, "fold", dtype, "an image", fold(fold(y, &columns), &rows),
              expect_fold(m, expect_fold(m, want, &columns), &rows),
              is_float(dtype) ? TOLERANCE_GIVEN : TOLERANCE_COPY);
}

static void refuse(matrix *m, weft_dtype dtype, const char *op, bool folds) {
    operand x = operand_new(m, dtype, SHAPE(2, 6), VIEW_PLAIN, GEN_NORMAL);
    const windows wrong[] = {{{1, {6}}, 2, 1, 1, 1},  {{1, {6}}, 1, 7, 1, 1},
                             {{1, {6}}, 1, 3, 1, 3},  {{1, {6}}, 1, 0, 1, 1},
                             {{1, {6}}, 1, 3, 0, 1},  {{1, {6}}, 1, 3, 1, 0},
                             {{1, {6}}, 1, 1, 1, -1}, {{1, {6}}, 1, INT64_MAX, 1, INT64_MAX}};
    for (int i = 0; i < COUNT(wrong) && !folds; i++) {
        const windows *w = &wrong[i];
        const bool number = w->size < 1 || w->step < 1 || w->dilation < 1;
        ops_refused(m, op, dtype, ops_text(m, "wrong %d", i), unfold(x.t, w),
                    number ? WEFT_ERR_ARGUMENT : WEFT_ERR_SHAPE);
    }
    if (!folds) return;
    ops_refused(m, op, dtype, "dimension", weft_fold(x.t, 1, 6, 1, 1), WEFT_ERR_SHAPE);
    ops_refused(m, op, dtype, "count", weft_fold(x.t, 0, 6, 1, 1), WEFT_ERR_SHAPE);
    ops_refused(m, op, dtype, "extent", weft_fold(x.t, 0, 5, 1, 1), WEFT_ERR_SHAPE);
    ops_refused(m, op, dtype, "step", weft_fold(x.t, 0, 7, 0, 1), WEFT_ERR_ARGUMENT);
}

static void run(matrix *m, const char *op, bool folds) {
    for (int d = 0; d < OPS_DTYPES; d++) {
        const weft_dtype dtype = ops_dtypes[d];
        if (!ops_has_dtype(m, op, dtype)) continue;
        if (folds && dtype == WEFT_BOOL) {
            operand x = operand_new(m, dtype, SHAPE(2, 6), VIEW_PLAIN, GEN_NORMAL);
            ops_refused(m, op, dtype, "dtype", weft_fold(x.t, 0, 7, 1, 1), WEFT_ERR_DTYPE);
            continue;
        }
        for (int i = 0; i < COUNT(all); i++)
            (folds ? check_fold : check_unfold)(m, dtype, &all[i], VIEW_PLAIN);
        for (int v = 1; v < VIEW_COUNT; v++) {
            (folds ? check_fold : check_unfold)(m, dtype, &all[12], (view_kind)v);
            (folds ? check_fold : check_unfold)(m, dtype, &all[9], (view_kind)v);
        }
        check_image(m, dtype, folds);
        refuse(m, dtype, op, folds);
    }
    ops_flush(m);
}

static weft_tensor *build_unfold(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in,
                                 const void *user) {
    (void)ctx, (void)dtype;
    return unfold(in[0], user);
}

static weft_tensor *build_fold(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in,
                               const void *user) {
    (void)ctx, (void)dtype;
    return fold(in[0], user);
}

static void gradient(matrix *m, const char *op, bool folds) {
    for (int i = 0; i < COUNT(all); i++) {
        const windows *w = &all[i];
        if (shape_count(w->s) == 0 || shape_count(w->s) > 200) continue;
        grad_check(m, &(grad_case){.op = op,
                                   .sample = ops_text(m, "%s %d of %d every %d", shape_text(m, w->s),
                                                      (int)w->size, (int)w->dilation, (int)w->step),
                                   .n = 1,
                                   .s = {folds ? windows_shape(w) : w->s},
                                   .low = -2,
                                   .high = 2,
                                   .build = folds ? build_fold : build_unfold,
                                   .user = w});
    }
}

void ops_case_unfold(matrix *m);
void ops_case_unfold(matrix *m) { run(m, "unfold", false); }
void ops_grad_unfold(matrix *m);
void ops_grad_unfold(matrix *m) { gradient(m, "unfold", false); }
void ops_case_fold(matrix *m);
void ops_case_fold(matrix *m) { run(m, "fold", true); }
void ops_grad_fold(matrix *m);
void ops_grad_fold(matrix *m) { gradient(m, "fold", true); }
