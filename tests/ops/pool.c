/* Max and mean pooling of 1-d and 2-d images, compared with the definition. Includes equal elements and
 * NaN. */
#include "ops/grad.h"

typedef struct pooling {
    shape s;
    weft_pool_options o;
} pooling;

static const pooling images[] = {{{4, {2, 3, 6, 4}}, {.size = {2, 2}}},
                                 {{4, {1, 2, 7, 9}}, {.size = {3, 3}, .stride = {2, 2}, .padding = {1, 1}}},
                                 {{3, {2, 5, 6}}, {.size = {3, 2}, .stride = {1, 3}, .padding = {0, 1}}},
                                 {{2, {5, 9}}, {.size = {2, 3}, .stride = {1, 1}, .dilation = {3, 2}}},
                                 {{2, {4, 3}}, {.size = {4, 3}}},
                                 {{3, {0, 4, 4}}, {.size = {2, 2}}}};
static const pooling lines[] = {{{3, {2, 3, 9}}, {.size = {2}}},
                                {{1, {17}}, {.size = {5}, .stride = {2}, .padding = {2}}},
                                {{2, {3, 12}}, {.size = {3}, .stride = {1}, .dilation = {4}}},
                                {{1, {1}}, {.size = {1}}}};

typedef struct pool_op {
    const char *name;
    weft_tensor *(*fn)(weft_tensor *x, const weft_pool_options *o);
    const pooling *list;
    int count, dims;
    bool mean;
} pool_op;

static const pool_op max_pool1d_ = {"max_pool1d", weft_max_pool1d, lines, COUNT(lines), 1, false};
static const pool_op max_pool2d_ = {"max_pool2d", weft_max_pool2d, images, COUNT(images), 2, false};
static const pool_op avg_pool1d_ = {"avg_pool1d", weft_avg_pool1d, lines, COUNT(lines), 1, true};
static const pool_op avg_pool2d_ = {"avg_pool2d", weft_avg_pool2d, images, COUNT(images), 2, true};

/* Numbers of one sample, rows before columns. A 1-d image has one row. */
typedef struct plain {
    int64_t images, extent[2], size[2], stride[2], padding[2], dilation[2], result[2];
} plain;

static plain plain_of(const pool_op *op, shape s, const weft_pool_options *o, shape *to) {
    plain p = {.images = 1};
    *to = s;
    for (int i = 0; i < s.rank - op->dims; i++) p.images *= s.dim[i];
    for (int i = 0; i < 2; i++) {
        const int from = i - (2 - op->dims), at = s.rank - 2 + i;
        const bool is = from >= 0;
        p.extent[i] = is ? s.dim[at] : 1;
        p.size[i] = is ? o->size[from] : 1;
        p.stride[i] = !is ? 1 : o->stride[from] ? o->stride[from] : o->size[from];
        p.dilation[i] = is && o->dilation[from] ? o->dilation[from] : 1;
        p.padding[i] = is ? o->padding[from] : 0;
        p.result[i] =
            (p.extent[i] + 2 * p.padding[i] - p.dilation[i] * (p.size[i] - 1) - 1) / p.stride[i] + 1;
        if (is) to->dim[at] = p.result[i];
    }
    return p;
}

/* What is known about the elements of one window. */
typedef struct window {
    real best, sum, magnitude;
    int64_t count;
} window;

static window look(const plain *p, const array *x, int64_t image, int64_t i, int64_t j) {
    window w = {-HUGE_VALL, 0, 0, 0};
    for (int64_t k = 0; k < p->size[0]; k++)
        for (int64_t l = 0; l < p->size[1]; l++) {
            const int64_t row = i * p->stride[0] + k * p->dilation[0] - p->padding[0];
            const int64_t column = j * p->stride[1] + l * p->dilation[1] - p->padding[1];
            if (row < 0 || row >= p->extent[0] || column < 0 || column >= p->extent[1]) continue;
            const real v = x->f[(image * p->extent[0] + row) * p->extent[1] + column];
            if (!isnan(w.best) && (isnan(v) || v > w.best)) w.best = v;
            w.sum += v;
            w.magnitude += fabsl(v);
            w.count++;
        }
    return w;
}

static array *expect(matrix *m, const pool_op *op, const array *x, const weft_pool_options *o) {
    shape s;
    const plain p = plain_of(op, x->s, o, &s);
    array *y = array_new(m, x->dtype, s);
    y->bound = ops_alloc(m, (size_t)(y->n + 1) * sizeof *y->bound);
    for (int64_t at = 0; at < y->n; at++) {
        const int64_t pixels = p.result[0] * p.result[1], size = p.size[0] * p.size[1];
        const window w = look(&p, x, at / pixels, at % pixels / p.result[1], at % p.result[1]);
        const real count = (real)(o->exclude_padding ? w.count : size);
        y->f[at] = op->mean ? w.sum / count : w.best;
        if (op->mean) y->bound[at] = bound_sum(y->dtype, size, w.magnitude / count, y->f[at]);
    }
    return y;
}

static void check(matrix *m, const pool_op *op, const char *what, operand x, const weft_pool_options *o) {
    ops_check(m, op->name, x.h->dtype,
              ops_text(m, "%s %s by %d %d%s", what, shape_text(m, x.h->s), (int)o->size[0], (int)o->size[1],
                       o->exclude_padding ? " of what is there" : ""),
              op->fn(x.t, o), expect(m, op, x.h, o), op->mean ? TOLERANCE_GIVEN : TOLERANCE_CHOICE);
}

static void refuse(matrix *m, const pool_op *op, weft_dtype dtype) {
    weft_tensor *x = operand_new(m, dtype, SHAPE(4, 4), VIEW_PLAIN, GEN_NORMAL).t;
    const weft_pool_options fine = {.size = {2, 2}}, none = {.stride = {1, 1}}, wide = {.size = {5, 5}},
                            padded = {.size = {2, 2}, .padding = {2, 2}},
                            back = {.size = {2, 2}, .stride = {-1, -1}};
    if (!is_float(dtype)) {
        ops_refused(m, op->name, dtype, "dtype", op->fn(x, &fine), WEFT_ERR_DTYPE);
        return;
    }
    ops_refused(m, op->name, dtype, "options", op->fn(x, NULL), WEFT_ERR_ARGUMENT);
    ops_refused(m, op->name, dtype, "size", op->fn(x, &none), WEFT_ERR_ARGUMENT);
    ops_refused(m, op->name, dtype, "padding", op->fn(x, &padded), WEFT_ERR_ARGUMENT);
    ops_refused(m, op->name, dtype, "stride", op->fn(x, &back), WEFT_ERR_ARGUMENT);
    ops_refused(m, op->name, dtype, "extent", op->fn(x, &wide), WEFT_ERR_SHAPE);
    weft_tensor *scalar = operand_new(m, dtype, SCALAR_SHAPE, VIEW_PLAIN, GEN_NORMAL).t;
    ops_refused(m, op->name, dtype, "rank", op->fn(scalar, &fine), WEFT_ERR_SHAPE);
}

static void run(matrix *m, const pool_op *op) {
    for (int d = 0; d < OPS_DTYPES; d++) {
        const weft_dtype dtype = ops_dtypes[d];
        if (!ops_has_dtype(m, op->name, dtype)) continue;
        refuse(m, op, dtype);
        if (!is_float(dtype)) continue;
        for (int i = 0; i < op->count; i++) {
            weft_pool_options o = op->list[i].o;
            ops_breathe(m);
            check(m, op, "plain", operand_new(m, dtype, op->list[i].s, VIEW_PLAIN, GEN_NORMAL), &o);
            check(m, op, "steps", operand_new(m, dtype, op->list[i].s, VIEW_PLAIN, GEN_STEPS), &o);
            if (!op->mean)
                check(m, op, "special", operand_new(m, dtype, op->list[i].s, VIEW_PLAIN, GEN_SPECIAL), &o);
            o.exclude_padding = true;
            if (op->mean)
                check(m, op, "plain", operand_new(m, dtype, op->list[i].s, VIEW_PLAIN, GEN_NORMAL), &o);
        }
        for (int v = 1; v < VIEW_COUNT; v++) {
            ops_breathe(m);
            check(m, op, view_name((view_kind)v),
                  operand_new(m, dtype, op->list[1].s, (view_kind)v, GEN_NORMAL), &op->list[1].o);
        }
    }
    ops_flush(m);
}

typedef struct use {
    const pool_op *op;
    weft_pool_options o;
} use;

static weft_tensor *build(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in, const void *user) {
    const use *u = user;
    (void)ctx, (void)dtype;
    return u->op->fn(in[0], &u->o);
}

static void gradient(matrix *m, const pool_op *op) {
    for (int i = 0; i < op->count; i++) {
        use u = {op, op->list[i].o};
        if (shape_count(op->list[i].s) == 0) continue;
        u.o.exclude_padding = i & 1;
        grad_check(m, &(grad_case){.op = op->name,
                                   .sample = shape_text(m, op->list[i].s),
                                   .n = 1,
                                   .s = {op->list[i].s},
                                   .low = -3,
                                   .high = 3,
                                   .avoid = op->mean ? AVOID_NOTHING : AVOID_TIES,
                                   .build = build,
                                   .user = &u});
    }
    /* Of equal elements, the gradient goes to the first one in its row, of the first row that has one. */
    const double x[8] = {1, 2, 2, 0, 2, 2, 3, 3}, line[8] = {0, 1, 1, 0, 1, 0, 1, 0};
    const double image[8] = {0, 1, 0, 0, 0, 0, 1, 0};
    const use u = {op, {.size = {2, 2}}};
    if (!op->mean)
        grad_expect(
            m,
            &(grad_case){
                .op = op->name, .sample = "equal", .n = 1, .s = {SHAPE(2, 4)}, .build = build, .user = &u},
            x, op->dims == 1 ? line : image);
}

#define POOLING(name)                                                                                        \
    void ops_case_##name(matrix *m);                                                                         \
    void ops_case_##name(matrix *m) { run(m, &name##_); }                                                    \
    void ops_grad_##name(matrix *m);                                                                         \
    void ops_grad_##name(matrix *m) { gradient(m, &name##_); }
POOLING(max_pool1d)
POOLING(max_pool2d)
POOLING(avg_pool1d)
POOLING(avg_pool2d)
