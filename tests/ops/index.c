/* gather, scatter_add, update, and the faults that depend on values: an index out of range, an integer
 * divided by 0. */
#include "ops/grad.h"

/* x (A, n, B), indexed by a tensor of any shape I. */
typedef struct sample {
    const char *name;
    shape x, index;
    int axis;
} sample;

static const sample samples[] = {
    {"rows", {2, {17, 5}}, {1, {33}}, 0},          {"columns", {2, {5, 17}}, {1, {7}}, -1},
    {"middle", {3, {3, 7, 4}}, {2, {2, 3}}, 1},    {"one", {1, {1}}, {1, {1}}, 0},
    {"scalar index", {2, {4, 3}}, {0, {0}}, 0},    {"no index", {2, {4, 3}}, {1, {0}}, 0},
    {"empty slices", {2, {4, 0}}, {1, {3}}, 0},    {"vector", {1, {1025}}, {1, {129}}, 0},
    {"embedding", {2, {65, 33}}, {2, {4, 31}}, 0}, {"rank 8", {4, {2, 3, 2, 2}}, {5, {1, 2, 1, 2, 1}}, 2}};
static const sample many = {"many", {2, {21, 24}}, {1, {600}}, 0};

static shape result_shape(const sample *s, int axis) {
    shape r = {0};
    for (int i = 0; i < axis; i++) r.dim[r.rank++] = s->x.dim[i];
    for (int i = 0; i < s->index.rank; i++) r.dim[r.rank++] = s->index.dim[i];
    for (int i = axis + 1; i < s->x.rank; i++) r.dim[r.rank++] = s->x.dim[i];
    return r;
}

static int axis_of(const sample *s) { return s->axis < 0 ? s->axis + s->x.rank : s->axis; }

/* Element (a, i, b) of (A, I, B) corresponds to element (a, index[i], b) of (A, n, B). Returns the position
 * of the latter. */
static int64_t source_of(const sample *s, const array *index, int64_t k, int64_t *row) {
    int64_t inner = 1, n = s->x.dim[axis_of(s)];
    for (int i = axis_of(s) + 1; i < s->x.rank; i++) inner *= s->x.dim[i];
    *row = k / inner % index->n;
    return (k / inner / index->n * n + index->i[*row]) * inner + k % inner;
}

static operand index_operand(matrix *m, weft_dtype dtype, const sample *s, view_kind view) {
    operand i = operand_new(m, dtype, s->index, view, GEN_NORMAL);
    /* Brings the indices into range, in the same view: i mod n, computed on device and host. */
    array *h = array_like(m, i.h, dtype);
    int64_t n = s->x.dim[axis_of(s)];
    for (int64_t k = 0; k < h->n; k++) h->i[k] = (i.h->i[k] % n + n) % n;
    return (operand){weft_mod(i.t, weft_full_i64(m->ctx, dtype, 0, NULL, n)), h};
}

/* ---- gather ---- */

static void check_gather(matrix *m, weft_dtype dtype, weft_dtype itype, const sample *s, view_kind view,
                         view_kind iview) {
    ops_breathe(m);
    operand x = operand_new(m, dtype, s->x, view, GEN_SPECIAL), i = index_operand(m, itype, s, iview);
    array *y = array_new(m, dtype, result_shape(s, axis_of(s)));
    for (int64_t k = 0; k < y->n; k++) {
        int64_t row;
        array_copy(y, k, x.h, source_of(s, i.h, k, &row));
    }
    ops_check(
        m, "gather", dtype,
        ops_text(m, "%s %s by %s %s", s->name, view_name(view), weft_dtype_name(itype), view_name(iview)),
        weft_gather(x.t, i.t, s->axis), y, TOLERANCE_COPY);
}

/* After the fault, runs a correct program: the context must stay usable. */
static void check_fault(matrix *m, const char *op, weft_dtype column, const char *what, weft_status wanted,
                        weft_tensor *got) {
    char value[8] = {0};
    weft_status status = weft_tensor_status(got);
    if (status == WEFT_OK) status = weft_eval(&got, 1);
    if (status == WEFT_OK) status = weft_synchronize(m->ctx); /* asynchronous devices report the fault here */
    ops_hold(m, op, column, ops_text(m, "%s: its error", what), status == wanted);
    ops_hold(m, op, column, ops_text(m, "%s: names %s", what, op),
             strstr(weft_last_error(m->ctx), op) != NULL);
    weft_tensor *fine = weft_full(m->ctx, WEFT_F32, 0, NULL, 2);
    weft_status after = weft_read(weft_add(fine, fine), value, 4);
    ops_hold(m, op, column, ops_text(m, "%s: usable after it", what), after == WEFT_OK);
}

static void faults_gather(matrix *m) {
    const int32_t below[2] = {0, -1}, above[2] = {4, 0};
    const int64_t far[2] = {INT64_C(1) << 32, 0}; /* becomes 0 if truncated to 32 bits */
    operand x = operand_new(m, WEFT_F32, SHAPE(4, 3), VIEW_PLAIN, GEN_NORMAL);
    weft_tensor *i = weft_from(m->ctx, WEFT_I32, DIMS(2), below),
                *j = weft_from(m->ctx, WEFT_I32, DIMS(2), above);
    weft_tensor *l = weft_from(m->ctx, WEFT_I64, DIMS(2), far);
    check_fault(m, "gather", WEFT_I32, "-1", WEFT_ERR_INDEX, weft_gather(x.t, i, 0));
    check_fault(m, "gather", WEFT_I32, "n", WEFT_ERR_INDEX, weft_gather(x.t, j, 0));
    check_fault(m, "gather", WEFT_I64, "2^32", WEFT_ERR_INDEX, weft_gather(x.t, l, 0));
    ops_refused(m, "gather", WEFT_F32, "float index", weft_gather(x.t, x.t, 0), WEFT_ERR_DTYPE);
    ops_refused(m, "gather", WEFT_F32, "axis", weft_gather(x.t, i, 2), WEFT_ERR_SHAPE);
    ops_flush(m);
}

void ops_case_gather(matrix *m);
void ops_case_gather(matrix *m) {
    for (int d = 0; d < OPS_DTYPES; d++) {
        if (!ops_has_dtype(m, "gather", ops_dtypes[d])) continue;
        for (int s = 0; s < COUNT(samples); s++)
            for (int v = 0; v < VIEW_COUNT; v++) {
                view_kind other = (view_kind)((v * 3 + s) % VIEW_COUNT);
                check_gather(m, ops_dtypes[d], WEFT_I32, &samples[s], (view_kind)v, VIEW_PLAIN);
                check_gather(m, ops_dtypes[d], v % 2 ? WEFT_I64 : WEFT_I32, &samples[s], other, (view_kind)v);
            }
    }
    faults_gather(m);
}

/* ---- scatter_add ---- */

static array *expect_scatter(matrix *m, const sample *s, const array *x, const array *index,
                             const array *source) {
    array *y = array_reshape(m, x, x->s);
    real *magnitude = ops_alloc(m, (size_t)(y->n + 1) * sizeof *magnitude);
    int64_t *count = ops_alloc(m, (size_t)(y->n + 1) * sizeof *count);
    y->bound = ops_alloc(m, (size_t)(y->n + 1) * sizeof *y->bound);
    for (int64_t k = 0; k < y->n; k++) {
        magnitude[k] = y->f ? fabsl(y->f[k]) : 0;
        count[k] = 1;
    }
    for (int64_t k = 0; k < source->n; k++) {
        int64_t row, at = source_of(s, index, k, &row);
        count[at]++;
        if (y->f) {
            y->f[at] += source->f[k];
            magnitude[at] += fabsl(source->f[k]);
        } else {
            y->i[at] = wrap(y->dtype, (int64_t)((uint64_t)y->i[at] + (uint64_t)source->i[k]));
        }
    }
    /* Terms are added in order, each with one rounding. A 16-bit sum is rounded again when it is stored
     * between two kernels. */
    for (int64_t k = 0; k < y->n && y->f; k++)
        y->bound[k] = (real)count[k] * roundoff_sum(y->dtype) * magnitude[k] +
                      bound_store(y->dtype, y->f[k]) + bound_store(y->dtype, magnitude[k]);
    return y;
}

static void check_scatter(matrix *m, weft_dtype dtype, const sample *s, view_kind view) {
    ops_breathe(m);
    operand x = operand_new(m, dtype, s->x, view, GEN_NORMAL), i = index_operand(m, WEFT_I32, s, VIEW_PLAIN);
    operand source =
        operand_new(m, dtype, result_shape(s, axis_of(s)), (view_kind)((view + 1) % VIEW_COUNT), GEN_NORMAL);
    ops_check(m, "scatter_add", dtype, ops_text(m, "%s %s", s->name, view_name(view)),
              weft_scatter_add(x.t, i.t, source.t, s->axis), expect_scatter(m, s, x.h, i.h, source.h),
              TOLERANCE_GIVEN);
}

void ops_case_scatter_add(matrix *m);
void ops_case_scatter_add(matrix *m) {
    const int32_t bad[2] = {0, 4};
    for (int d = 0; d < OPS_DTYPES; d++) {
        weft_dtype dtype = ops_dtypes[d];
        if (!ops_has_dtype(m, "scatter_add", dtype)) continue;
        if (!accepts(ACCEPT_NUMBER, d)) {
            operand x = operand_new(m, dtype, SHAPE(3), VIEW_PLAIN, GEN_NORMAL);
            weft_tensor *i = weft_iota(m->ctx, WEFT_I32, DIMS(3));
            ops_refused(m, "scatter_add", dtype, "dtype", weft_scatter_add(x.t, i, x.t, 0), WEFT_ERR_DTYPE);
            continue;
        }
        if (strcmp(m->device, "opencl") != 0) { /* on CPUs, OpenCL has the same kernel for many indices */
            check_scatter(m, dtype, &many, VIEW_PLAIN);
            m->met = 0; /* GPUs have other kernels for few indices */
        }
        for (int s = 0; s < COUNT(samples); s++)
            for (int v = 0; v < VIEW_COUNT; v++) check_scatter(m, dtype, &samples[s], (view_kind)v);
    }
    operand x = operand_new(m, WEFT_F32, SHAPE(4, 3), VIEW_PLAIN, GEN_NORMAL);
    operand y = operand_new(m, WEFT_F32, SHAPE(2, 3), VIEW_PLAIN, GEN_NORMAL);
    weft_tensor *i = weft_from(m->ctx, WEFT_I32, DIMS(2), bad);
    check_fault(m, "scatter", WEFT_F32, "index n", WEFT_ERR_INDEX, weft_scatter_add(x.t, i, y.t, 0));
    ops_refused(m, "scatter_add", WEFT_F32, "shapes", weft_scatter_add(x.t, i, x.t, 0), WEFT_ERR_SHAPE);
    ops_refused(m, "scatter_add", WEFT_F32, "float index", weft_scatter_add(x.t, y.t, x.t, 0),
                WEFT_ERR_DTYPE);
    ops_flush(m);
}

/* ---- update ---- */

static void check_update(matrix *m, weft_dtype dtype, shape s, int axis, int64_t extent, int64_t offset,
                         view_kind view) {
    ops_breathe(m);
    shape part = s;
    part.dim[axis] = extent;
    operand x = operand_new(m, dtype, s, view, GEN_SPECIAL), v = operand_new(m, dtype, part, view, GEN_WIDE);
    array *y = array_reshape(m, x.h, s);
    for (int64_t k = 0; k < v.h->n; k++) {
        int64_t at[WEFT_MAX_RANK];
        unravel(part, k, at);
        at[axis] += offset;
        array_copy(y, position(s, at), v.h, k);
    }
    ops_check(m, "update", dtype,
              ops_text(m, "%s at %lld %s", shape_text(m, s), (long long)offset, view_name(view)),
              weft_update(x.t, v.t, weft_scalar_of(m->ctx, WEFT_I32, (double)offset), axis), y,
              TOLERANCE_COPY);
}

void ops_case_update(matrix *m);
void ops_case_update(matrix *m) {
    for (int d = 0; d < OPS_DTYPES; d++) {
        weft_dtype dtype = ops_dtypes[d];
        if (!ops_has_dtype(m, "update", dtype)) continue;
        for (int v = 0; v < VIEW_COUNT; v++) {
            check_update(m, dtype, SHAPE(17), 0, 3, 14, (view_kind)v);
            check_update(m, dtype, SHAPE(2, 3, 9, 5), 2, 1, 4, (view_kind)v);
            check_update(m, dtype, SHAPE(5, 7), 1, 7, 0, (view_kind)v);
            check_update(m, dtype, SHAPE(5, 7), 0, 2, 0, (view_kind)v);
        }
        operand x = operand_new(m, dtype, SHAPE(5), VIEW_PLAIN, GEN_NORMAL);
        operand y = operand_new(m, other_dtype(d), SHAPE(2), VIEW_PLAIN, GEN_NORMAL);
        operand z = operand_new(m, dtype, SHAPE(6), VIEW_PLAIN, GEN_NORMAL);
        weft_tensor *zero = weft_scalar_of(m->ctx, WEFT_I32, 0);
        ops_refused(m, "update", dtype, "mixed dtypes", weft_update(x.t, y.t, zero, 0), WEFT_ERR_DTYPE);
        ops_refused(m, "update", dtype, "too long", weft_update(x.t, z.t, zero, 0), WEFT_ERR_SHAPE);
    }
    operand x = operand_new(m, WEFT_F32, SHAPE(5, 2), VIEW_PLAIN, GEN_NORMAL);
    operand v = operand_new(m, WEFT_F32, SHAPE(2, 2), VIEW_PLAIN, GEN_NORMAL);
    check_fault(m, "update", WEFT_F32, "beyond the end", WEFT_ERR_INDEX,
                weft_update(x.t, v.t, weft_scalar_of(m->ctx, WEFT_I32, 4), 0));
    check_fault(m, "update", WEFT_F32, "below 0", WEFT_ERR_INDEX,
                weft_update(x.t, v.t, weft_scalar_of(m->ctx, WEFT_I32, -1), 0));
    ops_flush(m);
}

/* ---- integer division by 0 gives 0 and an error ---- */

void ops_case_division_by_zero(matrix *m);
void ops_case_division_by_zero(matrix *m) {
    const weft_dtype dtypes[3] = {WEFT_I32, WEFT_I64, WEFT_U8};
    for (int d = 0; d < 3; d++) {
        if (!ops_has_dtype(m, "div", dtypes[d])) continue;
        operand a = operand_new(m, dtypes[d], SHAPE(5), VIEW_PLAIN, GEN_POSITIVE);
        weft_tensor *none = weft_full(m->ctx, dtypes[d], 0, NULL, 0);
        check_fault(m, "div", dtypes[d], "x / 0", WEFT_ERR_NUMERIC, weft_div(a.t, none));
        check_fault(m, "mod", dtypes[d], "x mod 0", WEFT_ERR_NUMERIC, weft_mod(a.t, none));
    }
    ops_flush(m);
}

/* ---- gradients ---- */

static weft_tensor *index_in(weft_context *ctx, const sample *s) {
    int32_t data[200];
    int64_t n = shape_count(s->index);
    for (int64_t k = 0; k < n; k++) data[k] = (int32_t)((k * 7 + k / 3) % s->x.dim[axis_of(s)]);
    return weft_from(ctx, WEFT_I32, s->index.rank, s->index.dim, data);
}

static weft_tensor *build_gather(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in,
                                 const void *user) {
    const sample *s = user;
    (void)dtype;
    return weft_gather(in[0], index_in(ctx, s), s->axis);
}

static weft_tensor *build_scatter(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in,
                                  const void *user) {
    const sample *s = user;
    (void)dtype;
    return weft_scatter_add(in[0], index_in(ctx, s), in[1], s->axis);
}

static weft_tensor *build_update(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in,
                                 const void *user) {
    (void)dtype;
    return weft_update(in[0], in[1], weft_scalar_of(ctx, WEFT_I32, 2), *(const int *)user);
}

void ops_grad_gather(matrix *m);
void ops_grad_gather(matrix *m) {
    for (int i = 0; i < 5; i++)
        grad_check(m, &(grad_case){.op = "gather",
                                   .sample = samples[i].name,
                                   .n = 1,
                                   .s = {samples[i].x},
                                   .low = -2,
                                   .high = 2,
                                   .build = build_gather,
                                   .user = &samples[i]});
}

void ops_grad_scatter_add(matrix *m);
void ops_grad_scatter_add(matrix *m) {
    for (int i = 0; i < 5; i++)
        grad_check(m, &(grad_case){.op = "scatter_add",
                                   .sample = samples[i].name,
                                   .n = 2,
                                   .s = {samples[i].x, result_shape(&samples[i], axis_of(&samples[i]))},
                                   .low = -2,
                                   .high = 2,
                                   .build = build_scatter,
                                   .user = &samples[i]});
}

void ops_grad_update(matrix *m);
void ops_grad_update(matrix *m) {
    const int axes[2] = {0, 1};
    grad_check(m, &(grad_case){.op = "update",
                               .sample = "rows",
                               .n = 2,
                               .s = {SHAPE(5, 3), SHAPE(2, 3)},
                               .low = -2,
                               .high = 2,
                               .build = build_update,
                               .user = &axes[0]});
    grad_check(m, &(grad_case){.op = "update",
                               .sample = "middle",
                               .n = 2,
                               .s = {SHAPE(2, 4, 3), SHAPE(2, 1, 3)},
                               .low = -2,
                               .high = 2,
                               .build = build_update,
                               .user = &axes[1]});
}
