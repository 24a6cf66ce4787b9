/* Adaptive pooling and interpolation of 1-d and 2-d images, compared with the definition. Extents that divide
 * each other and extents that do not; smaller and larger results; one element; none. */
#include "ops/grad.h"

typedef struct drawn {
    shape s;
    int64_t to[2];
    double scale[2];
} drawn;

static const drawn lines[] = {{{3, {2, 3, 7}}, {3}, {0.45}},
                              {{2, {3, 6}}, {2}, {2}},
                              {{1, {5}}, {1}, {2.6}},
                              {{2, {2, 4}}, {7}, {1.2}},
                              {{2, {0, 4}}, {3}, {0.5}}};
static const drawn images[] = {{{3, {2, 5, 7}}, {3, 4}, {1.5, 0.7}},
                               {{4, {2, 2, 6, 4}}, {3, 2}, {2, 3}},
                               {{4, {1, 3, 5, 4}}, {1, 1}, {2.1, 1.1}},
                               {{2, {3, 4}}, {5, 9}, {0.34, 2.3}}};

typedef enum method { MEAN, LARGEST, NEAREST, LINEAR } method;

typedef struct resample_op {
    const char *name;
    const drawn *list;
    int count, dims;
} resample_op;

static const resample_op line_avg = {"adaptive_avg_pool1d", lines, COUNT(lines), 1};
static const resample_op image_avg = {"adaptive_avg_pool2d", images, COUNT(images), 2};
static const resample_op line_max = {"adaptive_max_pool1d", lines, COUNT(lines), 1};
static const resample_op image_max = {"adaptive_max_pool2d", images, COUNT(images), 2};
static const resample_op line_between = {"interpolate1d", lines, COUNT(lines), 1};
static const resample_op image_between = {"interpolate2d", images, COUNT(images), 2};

/* The op to record, and its numbers. */
typedef struct use {
    const resample_op *op;
    method how;
    int64_t to[2];
    double scale[2]; /* scale of an interpolation. 0: use `to` */
} use;

static weft_tensor *record(weft_tensor *x, const use *u) {
    const weft_interpolate_options o = {{u->scale[0] > 0 ? 0 : u->to[0], u->scale[1] > 0 ? 0 : u->to[1]},
                                        {u->scale[0], u->scale[1]},
                                        u->how == LINEAR ? WEFT_LINEAR : WEFT_NEAREST};
    if (u->how == MEAN)
        return u->op->dims == 1 ? weft_adaptive_avg_pool1d(x, u->to[0])
                                : weft_adaptive_avg_pool2d(x, u->to[0], u->to[1]);
    if (u->how == LARGEST)
        return u->op->dims == 1 ? weft_adaptive_max_pool1d(x, u->to[0])
                                : weft_adaptive_max_pool2d(x, u->to[0], u->to[1]);
    return u->op->dims == 1 ? weft_interpolate1d(x, &o) : weft_interpolate2d(x, &o);
}

/* Finds the elements in one dimension that result element i is computed from, and their weights. */
static int look(const use *u, int d, int64_t extent, int64_t to, int64_t i, int64_t *at, real *weight) {
    int n = 0;
    if (u->how == MEAN || u->how == LARGEST) {
        const int64_t stop = ((i + 1) * extent + to - 1) / to;
        for (int64_t j = i * extent / to; j < stop; j++) at[n++] = j;
        for (int j = 0; j < n; j++) weight[j] = 1 / (real)n;
        return n;
    }
    /* If the size stays the same or doubles, the ratio of the sizes replaces the scale. */
    const bool whole = to == extent || (u->how == NEAREST && to == 2 * extent),
               scaled = u->scale[d] > 0 && !whole;
    const float narrow = scaled ? (float)(1 / u->scale[d]) : (float)extent / (float)to;
    const double wide = scaled ? 1 / u->scale[d] : (double)extent / (double)to;
    if (u->how == NEAREST) {
        const int64_t j = (int64_t)((float)i * narrow);
        at[0] = j < extent ? j : extent - 1, weight[0] = 1;
        return 1;
    }
    const real centre = ((real)i + 0.5L) * wide - 0.5L;
    const real from = fminl(fmaxl(centre, 0), (real)(extent - 1));
    at[0] = (int64_t)from;
    at[1] = at[0] + 1 < extent ? at[0] + 1 : at[0];
    weight[1] = from - (real)at[0], weight[0] = 1 - weight[1];
    return 2;
}

static array *expect(matrix *m, const array *x, const use *u) {
    int64_t from[2] = {1, 1}, to[2] = {1, 1}, at[2][64];
    real weight[2][64];
    shape s = x->s;
    for (int i = 0; i < u->op->dims; i++) {
        const int side = 2 - u->op->dims + i, dim = s.rank - u->op->dims + i;
        from[side] = s.dim[dim];
        to[side] = u->scale[i] > 0 ? (int64_t)floor((double)s.dim[dim] * u->scale[i]) : u->to[i];
        s.dim[dim] = to[side];
    }
    array *y = array_new(m, x->dtype, s);
    y->bound = ops_alloc(m, (size_t)(y->n + 1) * sizeof *y->bound);
    for (int64_t k = 0; k < y->n; k++) {
        const int64_t image = k / (to[0] * to[1]);
        const int first = 2 - u->op->dims;
        int64_t place[2] = {k / to[1] % to[0], k % to[1]};
        int n[2] = {1, 1};
        at[0][0] = 0, weight[0][0] = 1;
        for (int d = first; d < 2; d++) n[d] = look(u, d - first, from[d], to[d], place[d], at[d], weight[d]);
        real best = -HUGE_VALL, sum = 0, magnitude = 0, around = 0;
        for (int i = 0; i < n[0]; i++)
            for (int j = 0; j < n[1]; j++) {
                const real v = x->f[(image * from[0] + at[0][i]) * from[1] + at[1][j]];
                if (!isnan(best) && (isnan(v) || v > best)) best = v;
                sum += v * weight[0][i] * weight[1][j];
                magnitude += fabsl(v * weight[0][i] * weight[1][j]);
                around += fabsl(v);
            }
        y->f[k] = u->how == LARGEST ? best : sum;
        y->bound[k] = bound_sum(y->dtype, (int64_t)n[0] * n[1], magnitude, y->f[k]);
        if (u->how == LINEAR) /* positions are rounded too */
            y->bound[k] += 4 * roundoff_sum(y->dtype) * (real)(from[0] + from[1]) * around;
    }
    return y;
}

static void check(matrix *m, const use *u, weft_dtype dtype, shape s, view_kind view, generator gen) {
    ops_breathe(m);
    operand x = operand_new(m, dtype, s, view, gen);
    const bool exact = u->how == LARGEST || u->how == NEAREST;
    ops_check(m, u->op->name, dtype,
              ops_text(m, "%s %s to %d %d by %g %g how %d", view_name(view), shape_text(m, s), (int)u->to[0],
                       (int)u->to[1], u->scale[0], u->scale[1], (int)u->how),
              record(x.t, u), expect(m, x.h, u), exact ? TOLERANCE_CHOICE : TOLERANCE_GIVEN);
}

static void refuse(matrix *m, const resample_op *op, method how, weft_dtype dtype) {
    weft_tensor *x = operand_new(m, dtype, SHAPE(4, 4), VIEW_PLAIN, GEN_NORMAL).t;
    weft_tensor *scalar = operand_new(m, dtype, SCALAR_SHAPE, VIEW_PLAIN, GEN_NORMAL).t;
    weft_tensor *empty = operand_new(m, dtype, SHAPE(4, 0), VIEW_PLAIN, GEN_NORMAL).t;
    const use fine = {op, how, {2, 2}, {0, 0}}, none = {op, how, {0, 0}, {0, 0}};
    if (!is_float(dtype)) {
        ops_refused(m, op->name, dtype, "dtype", record(x, &fine), WEFT_ERR_DTYPE);
        return;
    }
    ops_refused(m, op->name, dtype, "rank", record(scalar, &fine), WEFT_ERR_SHAPE);
    ops_refused(m, op->name, dtype, "empty", record(empty, &fine), WEFT_ERR_SHAPE);
    ops_refused(m, op->name, dtype, "no size", record(x, &none), WEFT_ERR_ARGUMENT);
    if (how == MEAN || how == LARGEST) return;
    const use tiny = {op, how, {0, 0}, {0.2, 0.2}};
    const weft_interpolate_options both = {{2, 2}, {2, 2}, WEFT_NEAREST}, mode = {{2, 2}, {0, 0}, 9};
    weft_tensor *(*fn)(weft_tensor *, const weft_interpolate_options *) =
        op->dims == 1 ? weft_interpolate1d : weft_interpolate2d;
    ops_refused(m, op->name, dtype, "negative", record(x, &(use){op, how, {-2, -2}, {0, 0}}),
                WEFT_ERR_ARGUMENT);
    ops_refused(m, op->name, dtype, "negative scale", fn(x, &(weft_interpolate_options){.scale = {-1, -1}}),
                WEFT_ERR_ARGUMENT);
    ops_refused(m, op->name, dtype, "options", fn(x, NULL), WEFT_ERR_ARGUMENT);
    ops_refused(m, op->name, dtype, "both", fn(x, &both), WEFT_ERR_ARGUMENT);
    ops_refused(m, op->name, dtype, "mode", fn(x, &mode), WEFT_ERR_ARGUMENT);
    ops_refused(m, op->name, dtype, "nothing left", record(x, &tiny), WEFT_ERR_ARGUMENT);
}

/* Each sample needs several kernels. A device that compiles kernels runs one sample for each number of
 * dimensions, with uneven windows. */
static bool leaves_out(const matrix *m, const resample_op *op, int i) { return m->gpu && i != op->dims - 1; }

/* Checks a given result size, and for interpolation also a given scale. */
static void check_ways(matrix *m, const use *given, weft_dtype dtype, const drawn *c) {
    use u = *given;
    memcpy(u.to, c->to, sizeof u.to);
    memset(u.scale, 0, sizeof u.scale);
    check(m, &u, dtype, c->s, VIEW_PLAIN, u.how == LARGEST ? GEN_STEPS : GEN_NORMAL);
    if (u.how == LARGEST && !m->gpu) check(m, &u, dtype, c->s, VIEW_PLAIN, GEN_SPECIAL);
    if (u.how == MEAN || u.how == LARGEST) return;
    memcpy(u.scale, c->scale, sizeof u.scale);
    check(m, &u, dtype, c->s, VIEW_PLAIN, GEN_NORMAL);
}

static void run(matrix *m, const resample_op *op, const method *how, int ways) {
    for (int d = 0; d < OPS_DTYPES; d++) {
        const weft_dtype dtype = ops_dtypes[d];
        if (!ops_has_dtype(m, op->name, dtype)) continue;
        for (int w = 0; w < ways; w++) refuse(m, op, how[w], dtype);
        if (!is_float(dtype)) continue;
        for (int w = 0; w < ways; w++) {
            use u = {op, how[w], {0, 0}, {0, 0}};
            if (d == 0) ops_another_way(m);
            for (int i = 0; i < op->count; i++)
                if (!leaves_out(m, op, i)) check_ways(m, &u, dtype, &op->list[i]);
            if (m->gpu) continue;
            memcpy(u.to, op->list[0].to, sizeof u.to);
            for (int v = 1; v < VIEW_COUNT; v++) check(m, &u, dtype, op->list[0].s, (view_kind)v, GEN_NORMAL);
        }
    }
    ops_flush(m);
}

/* Long 1-d images in f32. The centre of element i is (i + 1/2) step - 1/2. The step is rounded to f32, as in
 * PyTorch, and the centre is rounded once. The error is half a unit in the last place of the centre times the
 * difference of neighbours, which is 1.5e-5 of that difference near 345. */
static void check_centres(matrix *m) {
    static const int64_t extents[][2] = {{345, 270}, {456, 270}, {224, 1080}};
    for (int i = 0; i < (m->gpu ? 1 : COUNT(extents)); i++) {
        const int64_t extent = extents[i][0], to = extents[i][1];
        const real step = (real)((float)extent / (float)to);
        operand x = operand_new(m, WEFT_F32, SHAPE(extent), VIEW_PLAIN, GEN_NORMAL);
        array *y = array_new(m, WEFT_F32, SHAPE(to));
        y->bound = ops_alloc(m, (size_t)to * sizeof *y->bound);
        for (int64_t k = 0; k < to; k++) {
            const real at = fminl(fmaxl(((real)k + 0.5L) * step - 0.5L, 0), (real)(extent - 1));
            const int64_t low = (int64_t)at, high = low + 1 < extent ? low + 1 : low;
            const real a = x.h->f[low], b = x.h->f[high], unit = ulp_of(WEFT_F32, at);
            y->f[k] = a + (b - a) * (at - (real)low);
            y->bound[k] = 0.51L * unit * fabsl(b - a) + 4 * roundoff(WEFT_F32) * (fabsl(a) + fabsl(b));
        }
        ops_check(m, "interpolate1d", WEFT_F32, ops_text(m, "centres %d to %d", (int)extent, (int)to),
                  weft_interpolate1d(x.t, &(weft_interpolate_options){.size = {to}, .mode = WEFT_LINEAR}), y,
                  TOLERANCE_GIVEN);
    }
    ops_flush(m);
}

static weft_tensor *build(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in, const void *user) {
    (void)ctx, (void)dtype;
    return record(in[0], user);
}

static void gradient(matrix *m, const resample_op *op, const method *how, int ways) {
    for (int w = 0; w < ways; w++) {
        ops_another_way(m);
        for (int i = 0; i < op->count; i++) {
            if (shape_count(op->list[i].s) == 0 || leaves_out(m, op, i)) continue;
            use u = {op, how[w], {0, 0}, {0, 0}};
            memcpy(u.to, op->list[i].to, sizeof u.to);
            grad_check(
                m, &(grad_case){.op = op->name,
                                .sample = ops_text(m, "%s how %d", shape_text(m, op->list[i].s), (int)how[w]),
                                .n = 1,
                                .s = {op->list[i].s},
                                .low = -3,
                                .high = 3,
                                .avoid = how[w] == LARGEST ? AVOID_TIES : AVOID_NOTHING,
                                .build = build,
                                .user = &u});
        }
    }
}

#define RESAMPLING(name, op, ...)                                                                            \
    void ops_case_##name(matrix *m);                                                                         \
    void ops_case_##name(matrix *m) {                                                                        \
        run(m, &op, (const method[]){__VA_ARGS__}, COUNT(((const method[]){__VA_ARGS__})));                  \
        if (&op == &line_between) check_centres(m);                                                          \
    }                                                                                                        \
    void ops_grad_##name(matrix *m);                                                                         \
    void ops_grad_##name(matrix *m) {                                                                        \
        gradient(m, &op, (const method[]){__VA_ARGS__}, COUNT(((const method[]){__VA_ARGS__})));             \
    }
RESAMPLING(adaptive_avg_pool1d, line_avg, MEAN)
RESAMPLING(adaptive_avg_pool2d, image_avg, MEAN)
RESAMPLING(adaptive_max_pool1d, line_max, LARGEST)
RESAMPLING(adaptive_max_pool2d, image_max, LARGEST)
RESAMPLING(interpolate1d, line_between, NEAREST, LINEAR)
RESAMPLING(interpolate2d, image_between, NEAREST, LINEAR)
