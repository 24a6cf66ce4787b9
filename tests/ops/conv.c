/* Convolutions and transposed convolutions in 1-d and 2-d, compared with the definition: for each element,
 * one sum over channels and kernel. Covers strides, paddings, dilations, groups, depthwise, kernels as large
 * as the image, empty batches and views. */
#include "ops/grad.h"

typedef struct convolution {
    shape x, weight;
    weft_conv_options o;
} convolution;

static const convolution images[] = {
    {{4, {1, 1, 3, 3}}, {4, {1, 1, 2, 2}}, {.groups = 1}},
    {{4, {2, 3, 6, 5}}, {4, {4, 3, 3, 3}}, {.padding = {1, 1}}},
    {{4, {2, 3, 7, 8}}, {4, {2, 3, 3, 2}}, {.stride = {2, 3}, .padding = {1, 0}}},
    {{4, {2, 4, 7, 6}}, {4, {6, 2, 3, 3}}, {.groups = 2, .padding = {0, 2}, .dilation = {2, 1}}},
    {{4, {1, 4, 5, 5}}, {4, {4, 1, 3, 3}}, {.groups = 4, .stride = {2, 2}, .padding = {1, 1}}},
    {{4, {2, 5, 4, 3}}, {4, {3, 5, 1, 1}}, {.groups = 1}},
    {{4, {2, 2, 4, 3}}, {4, {3, 2, 4, 3}}, {.groups = 1}},
    {{4, {0, 2, 4, 3}}, {4, {3, 2, 2, 2}}, {.groups = 1}},
    {{4, {1, 2, 9, 9}}, {4, {1, 2, 2, 2}}, {.stride = {5, 5}, .dilation = {3, 2}}}};
static const convolution lines[] = {{{3, {2, 3, 9}}, {3, {4, 3, 3}}, {.stride = {2}, .padding = {1}}},
                                    {{3, {2, 4, 9}}, {3, {2, 2, 2}}, {.groups = 2, .dilation = {3}}},
                                    {{3, {1, 1, 33}}, {3, {1, 1, 5}}, {.groups = 1}}};
static const convolution up_images[] = {
    {{4, {1, 1, 2, 2}}, {4, {1, 1, 2, 2}}, {.groups = 1}},
    {{4, {2, 3, 4, 3}}, {4, {3, 2, 3, 3}}, {.stride = {2, 2}, .padding = {1, 1}, .output_padding = {1, 1}}},
    {{4, {2, 4, 3, 4}}, {4, {4, 3, 2, 3}}, {.groups = 2, .stride = {3, 1}, .dilation = {1, 2}}},
    {{4, {1, 3, 4, 4}},
     {4, {3, 1, 3, 3}},
     {.groups = 3, .padding = {1, 0}, .output_padding = {0, 1}, .dilation = {1, 2}}},
    {{4, {0, 2, 4, 3}}, {4, {2, 3, 2, 2}}, {.groups = 1}}};
static const convolution up_lines[] = {
    {{3, {2, 3, 5}}, {3, {3, 4, 3}}, {.stride = {2}, .padding = {1}, .output_padding = {1}}},
    {{3, {1, 2, 6}}, {3, {2, 1, 4}}, {.groups = 2, .dilation = {2}}}};

typedef weft_tensor *(*conv_fn)(weft_tensor *x, weft_tensor *weight, weft_tensor *bias,
                                const weft_conv_options *o);

typedef struct conv_op {
    const char *name;
    conv_fn fn;
    const convolution *list;
    int count;
    bool up; /* transposed */
} conv_op;

static const conv_op conv1d_ = {"conv1d", weft_conv1d, lines, COUNT(lines), false};
static const conv_op conv2d_ = {"conv2d", weft_conv2d, images, COUNT(images), false};
static const conv_op conv_transpose1d_ = {"conv_transpose1d", weft_conv_transpose1d, up_lines,
                                          COUNT(up_lines), true};
static const conv_op conv_transpose2d_ = {"conv_transpose2d", weft_conv_transpose2d, up_images,
                                          COUNT(up_images), true};

/* All numbers of a convolution, rows before columns. A 1-d image has one row. */
typedef struct plain {
    int64_t n, in, out, groups, extent[2], size[2], result[2], stride[2], padding[2], dilation[2];
} plain;

static plain plain_of(const conv_op *op, shape x, shape weight, const weft_conv_options *o) {
    plain p = {.n = x.dim[0], .in = x.dim[1], .groups = o->groups ? o->groups : 1};
    const int dims = x.rank - 2;
    p.out = op->up ? weight.dim[1] * p.groups : weight.dim[0];
    for (int i = 0; i < 2; i++) {
        const int from = i - (2 - dims); /* dimension of the options; a 1-d image has no rows */
        const bool is = from >= 0;
        p.extent[i] = is ? x.dim[2 + from] : 1;
        p.size[i] = is ? weight.dim[2 + from] : 1;
        p.stride[i] = is && o->stride[from] ? o->stride[from] : 1;
        p.dilation[i] = is && o->dilation[from] ? o->dilation[from] : 1;
        p.padding[i] = is ? o->padding[from] : 0;
        const int64_t span = p.dilation[i] * (p.size[i] - 1), extra = is ? o->output_padding[from] : 0;
        p.result[i] = op->up ? (p.extent[i] - 1) * p.stride[i] - 2 * p.padding[i] + span + extra + 1
                             : (p.extent[i] + 2 * p.padding[i] - span - 1) / p.stride[i] + 1;
    }
    return p;
}

/* Adds the contribution of pixel (i, j) of the smaller image at kernel element (k, l). */
static void add_tap(const plain *p, bool up, const array *x, const array *w, array *y, real *magnitude,
                    const int64_t *at) {
    const int64_t b = at[0], c = at[1], o = at[2], k = at[5], l = at[6];
    const int64_t each = p->in / p->groups, wide = p->out / p->groups, g = c / each;
    if (o / wide != g) return;
    const int64_t row = at[3] * p->stride[0] + k * p->dilation[0] - p->padding[0];
    const int64_t column = at[4] * p->stride[1] + l * p->dilation[1] - p->padding[1];
    const int64_t *large = up ? p->result : p->extent, *small = up ? p->extent : p->result;
    if (row < 0 || row >= large[0] || column < 0 || column >= large[1]) return;
    const int64_t image = row * large[1] + column, window = at[3] * small[1] + at[4];
    const int64_t from = (b * p->in + c) * p->extent[0] * p->extent[1] + (up ? window : image);
    const int64_t to = (b * p->out + o) * p->result[0] * p->result[1] + (up ? image : window);
    const int64_t tap =
        (up ? c * wide + o % wide : o * each + c % each) * p->size[0] * p->size[1] + k * p->size[1] + l;
    y->f[to] += x->f[from] * w->f[tap];
    magnitude[to] += fabsl(x->f[from] * w->f[tap]);
}

static array *expect(matrix *m, const conv_op *op, const array *x, const array *w, const array *bias,
                     const weft_conv_options *options) {
    const plain p = plain_of(op, x->s, w->s, options);
    shape s = {4, {p.n, p.out, p.result[0], p.result[1]}};
    if (x->s.rank == 3) s = SHAPE(p.n, p.out, p.result[1]);
    array *y = array_new(m, x->dtype, s);
    real *magnitude = ops_alloc(m, (size_t)(y->n + 1) * sizeof *magnitude);
    y->bound = ops_alloc(m, (size_t)(y->n + 1) * sizeof *y->bound);
    const int64_t *small = op->up ? p.extent : p.result;
    const shape taps = SHAPE(p.n, p.in, p.out, small[0], small[1], p.size[0], p.size[1]);
    for (int64_t t = 0; t < shape_count(taps); t++) {
        int64_t at[WEFT_MAX_RANK];
        unravel(taps, t, at);
        add_tap(&p, op->up, x, w, y, magnitude, at);
    }
    const int64_t k = p.in / p.groups * p.size[0] * p.size[1], pixels = p.result[0] * p.result[1];
    for (int64_t i = 0; i < y->n; i++) {
        const real b = bias ? bias->f[i / pixels % p.out] : 0, product = y->f[i];
        y->f[i] += b;
        y->bound[i] = bound_sum(y->dtype, k + 1, magnitude[i] + fabsl(b), y->f[i]);
        if (bias) y->bound[i] += bound_store(y->dtype, product); /* rounded before the bias is added */
    }
    return y;
}

static void check(matrix *m, const conv_op *op, weft_dtype dtype, const convolution *c, view_kind view,
                  bool biased) {
    ops_breathe(m);
    operand x = operand_new(m, dtype, c->x, view, GEN_NORMAL), bias = {NULL, NULL};
    operand w =
        operand_new(m, dtype, c->weight, view == VIEW_PLAIN ? VIEW_PLAIN : VIEW_TRANSPOSED, GEN_NORMAL);
    const int64_t out = op->up ? c->weight.dim[1] * (c->o.groups ? c->o.groups : 1) : c->weight.dim[0];
    if (biased) bias = operand_new(m, dtype, SHAPE(out), VIEW_PLAIN, GEN_NORMAL);
    ops_check(m, op->name, dtype,
              ops_text(m, "%s %s by %s%s", view_name(view), shape_text(m, c->x), shape_text(m, c->weight),
                       biased ? " biased" : ""),
              op->fn(x.t, w.t, bias.t, &c->o), expect(m, op, x.h, w.h, bias.h, &c->o), TOLERANCE_GIVEN);
}

static weft_tensor *plain_operand(matrix *m, weft_dtype dtype, shape s) {
    return operand_new(m, dtype, s, VIEW_PLAIN, GEN_NORMAL).t;
}

static void refuse(matrix *m, const conv_op *op, int d) {
    const weft_dtype dtype = ops_dtypes[d];
    const convolution *c = &op->list[0];
    weft_tensor *x = plain_operand(m, dtype, c->x), *w = plain_operand(m, dtype, c->weight);
    weft_tensor *flat = plain_operand(m, dtype, SHAPE(3, 4)), *none = NULL;
    if (!is_float(dtype)) {
        ops_refused(m, op->name, dtype, "dtype", op->fn(x, w, none, &c->o), WEFT_ERR_DTYPE);
        return;
    }
    ops_refused(m, op->name, dtype, "mixed dtypes",
                op->fn(x, plain_operand(m, other_dtype(d), c->weight), none, NULL), WEFT_ERR_DTYPE);
    ops_refused(m, op->name, dtype, "rank", op->fn(flat, w, none, NULL), WEFT_ERR_SHAPE);
    ops_refused(m, op->name, dtype, "weight", op->fn(x, flat, none, NULL), WEFT_ERR_SHAPE);
    ops_refused(m, op->name, dtype, "bias", op->fn(x, w, flat, NULL), WEFT_ERR_SHAPE);
    const struct {
        const char *name;
        weft_conv_options o;
        weft_status status;
    } wrong[] = {{"groups", {.groups = 2}, WEFT_ERR_SHAPE},
                 {"no groups", {.groups = -1}, WEFT_ERR_ARGUMENT},
                 {"stride", {.stride = {-1}}, WEFT_ERR_ARGUMENT},
                 {"padding", {.padding = {-1}}, WEFT_ERR_ARGUMENT},
                 {"dilation", {.dilation = {-1}}, WEFT_ERR_ARGUMENT},
                 {"huge padding", {.padding = {INT64_MAX}}, WEFT_ERR_SHAPE}};
    convolution one = *c; /* one channel, which two groups cannot share */
    one.x.dim[1] = 1;
    one.weight.dim[0] = one.weight.dim[1] = 1;
    x = plain_operand(m, dtype, one.x), w = plain_operand(m, dtype, one.weight);
    for (int i = 0; i < COUNT(wrong); i++)
        ops_refused(m, op->name, dtype, wrong[i].name, op->fn(x, w, none, &wrong[i].o), wrong[i].status);
    const weft_conv_options far = {.dilation = {1000}}, cut = {.padding = {1000}},
                            extra = {.output_padding = {1}};
    ops_refused(m, op->name, dtype, "far", op->fn(x, w, none, op->up ? &cut : &far), WEFT_ERR_SHAPE);
    if (op->up) ops_refused(m, op->name, dtype, "output padding", op->fn(x, w, none, &extra), WEFT_ERR_SHAPE);
}

/* Each sample needs several kernels. A device that compiles kernels runs one sample in three, which together
 * use all options. */
static bool leaves_out(const matrix *m, int i) { return m->gpu && i % 3 != 1; }

static void run(matrix *m, const conv_op *op) {
    for (int d = 0; d < OPS_DTYPES; d++) {
        const weft_dtype dtype = ops_dtypes[d];
        if (!ops_has_dtype(m, op->name, dtype)) continue;
        refuse(m, op, d);
        if (!is_float(dtype)) continue;
        for (int i = 0; i < op->count; i++) {
            if (leaves_out(m, i)) continue;
            if (!m->gpu) check(m, op, dtype, &op->list[i], VIEW_PLAIN, false);
            check(m, op, dtype, &op->list[i], VIEW_PLAIN, true);
        }
        for (int v = 1; v < VIEW_COUNT; v++) check(m, op, dtype, &op->list[1], (view_kind)v, true);
    }
    ops_flush(m);
}

typedef struct use {
    const conv_op *op;
    weft_conv_options o;
} use;

static weft_tensor *build(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in, const void *user) {
    const use *u = user;
    (void)ctx, (void)dtype;
    return u->op->fn(in[0], in[1], in[2], &u->o);
}

static void gradient(matrix *m, const conv_op *op) {
    for (int i = 0; i < op->count; i++) {
        const convolution *c = &op->list[i];
        if (shape_count(c->x) == 0 || leaves_out(m, i)) continue;
        const use u = {op, c->o};
        const int64_t out = op->up ? c->weight.dim[1] * (c->o.groups ? c->o.groups : 1) : c->weight.dim[0];
        grad_check(
            m, &(grad_case){.op = op->name,
                            .sample = ops_text(m, "%s by %s", shape_text(m, c->x), shape_text(m, c->weight)),
                            .n = 3,
                            .s = {c->x, c->weight, SHAPE(out)},
                            .low = -1,
                            .high = 1,
                            .build = build,
                            .user = &u});
    }
}

#define CONVOLUTION(name)                                                                                    \
    void ops_case_##name(matrix *m);                                                                         \
    void ops_case_##name(matrix *m) { run(m, &name##_); }                                                    \
    void ops_grad_##name(matrix *m);                                                                         \
    void ops_grad_##name(matrix *m) { gradient(m, &name##_); }
CONVOLUTION(conv1d)
CONVOLUTION(conv2d)
CONVOLUTION(conv_transpose1d)
CONVOLUTION(conv_transpose2d)
