/* Convolution of images, as a composite that a device may compute as a whole. It has two gradients: of x
 * (from the gradient of y, and w), and of w (from x and the gradient of y). Each of the three is linear in
 * both operands, and its gradients are the other two.
 *
 * The expansion is a matmul. The windows of x are the rows of one matrix, the weight is the other matrix, and
 * groups are a batch of matmuls:
 *
 *     windows of x (N OH OW, KH KW C)  x  weight (KH KW C, O)  =  y (N OH OW, O)
 *
 * An operand of a matmul has one stride a dimension, so a kernel first copies the matrix of windows, KH KW
 * times the size of x. The gradient of the weight reads the same copy. The gradient of x is a matmul, then
 * fold. All results have their channels last and are seen as (N, C, H, W).
 *
 * Must not know: devices, options. Read next: conv.c, window.c. */
#include "ops/composite.h"
#include "ops/ops.h"

typedef weft_conv_params params_of_conv;

static void x_shape(const params_of_conv *c, int64_t *dims) {
    dims[0] = c->n, dims[1] = c->groups * c->in, dims[2] = c->x[0], dims[3] = c->x[1];
}
static void y_shape(const params_of_conv *c, int64_t *dims) {
    dims[0] = c->n, dims[1] = c->groups * c->out, dims[2] = c->y[0], dims[3] = c->y[1];
}
static void w_shape(const params_of_conv *c, int64_t *dims) {
    dims[0] = c->groups * c->out, dims[1] = c->in, dims[2] = c->size[0], dims[3] = c->size[1];
}

static void shape(const void *params, weft_tensor *const *in, int output, weft_dtype *dtype, int *rank,
                  int64_t *dims) {
    static void (*const of[])(const params_of_conv *, int64_t *) = {x_shape, y_shape, w_shape};
    const params_of_conv *c = params;
    (void)output;
    *dtype = (weft_dtype)in[0]->dtype;
    *rank = 4;
    of[c->pass == WEFT_CONV_FORWARD ? 1 : c->pass == WEFT_CONV_INPUT ? 0 : 2](c, dims);
}

/* ---- the expansions ---- */

/* The windows of x: (groups, N OH OW, KH KW C / groups). */
static weft_tensor *window_rows(const char *where, weft_tensor *x, const params_of_conv *c) {
    int64_t before[4] = {0}, after[4] = {0}, reach[2];
    for (int i = 0; i < 2; i++) {
        before[2 + i] = c->padding[i];
        reach[i] = (c->y[i] - 1) * c->stride[i] + (c->size[i] - 1) * c->dilation[i] + 1;
        const int64_t more = reach[i] - c->padding[i] - c->x[i];
        after[2 + i] = more > 0 ? more : 0;
    }
    x = weft_pad_at(where, x, before, after, 0);
    for (int i = 0; i < 2; i++) x = weft_narrow_at(where, x, 2 + i, 0, reach[i]);
    x = weft_unfold_at(where, x, 2, c->size[0], c->stride[0], c->dilation[0]);
    x = weft_unfold_at(where, x, 3, c->size[1], c->stride[1], c->dilation[1]);
    if (weft__poisoned(x)) return x;
    const int64_t split[7] = {c->n, c->groups, c->in, c->y[0], c->y[1], c->size[0], c->size[1]};
    const int64_t rows[3] = {c->groups, c->n * c->y[0] * c->y[1], c->size[0] * c->size[1] * c->in};
    x = weft_permute_at(where, weft__reshape_to(where, x, 7, split), (int[]){1, 0, 3, 4, 5, 6, 2});
    return weft__poisoned(x) ? x : weft__reshape_to(where, x, 3, rows);
}

/* The pixels of y: (groups, N OH OW, O / groups). */
static weft_tensor *pixel_rows(const char *where, weft_tensor *y, const params_of_conv *c) {
    const int64_t split[5] = {c->n, c->groups, c->out, c->y[0], c->y[1]};
    const int64_t rows[3] = {c->groups, c->n * c->y[0] * c->y[1], c->out};
    y = weft_permute_at(where, weft__reshape_to(where, y, 5, split), (int[]){1, 0, 3, 4, 2});
    return weft__poisoned(y) ? y : weft__reshape_to(where, y, 3, rows);
}

/* The weight as (groups, KH KW C / groups, O / groups). */
static weft_tensor *weight_matrix(const char *where, weft_tensor *w, const params_of_conv *c) {
    const int64_t split[5] = {c->groups, c->out, c->in, c->size[0], c->size[1]};
    const int64_t matrix[3] = {c->groups, c->size[0] * c->size[1] * c->in, c->out};
    w = weft_permute_at(where, weft__reshape_to(where, w, 5, split), (int[]){0, 3, 4, 2, 1});
    return weft__poisoned(w) ? w : weft__reshape_to(where, w, 3, matrix);
}

static weft_tensor *forward(const char *where, weft_tensor *x, weft_tensor *w, const params_of_conv *c) {
    const int64_t split[5] = {c->groups, c->n, c->y[0], c->y[1], c->out};
    int64_t dims[4];
    weft_tensor *y = weft_matmul_at(where, window_rows(where, x, c), weight_matrix(where, w, c));
    if (weft__poisoned(y)) return y;
    y_shape(c, dims);
    y = weft_permute_at(where, weft__reshape_to(where, y, 5, split), (int[]){1, 0, 4, 2, 3});
    return weft__poisoned(y) ? y : weft__reshape_to(where, y, 4, dims);
}

/* A matmul of 16-bit floats before its result is rounded, since windows are added up in f32. */
static weft_tensor *unrounded(const char *where, weft_tensor *y) {
    if (weft__poisoned(y) || !is_half((weft_dtype)y->dtype)) return y;
    return weft__node(y->ctx, where, WEFT_OP_MATMUL, WEFT_F32, y->rank, y->shape, 2, y->in, 0, NULL);
}

/* The sum of the windows of all pixels of y, without the padding. */
static weft_tensor *input(const char *where, weft_tensor *y, weft_tensor *w, const params_of_conv *c) {
    const int64_t windows[7] = {c->groups, c->n, c->y[0], c->y[1], c->size[0], c->size[1], c->in};
    const int64_t seen[6] = {c->n, c->groups * c->in, c->y[0], c->y[1], c->size[0], c->size[1]};
    const weft_dtype dtype = (weft_dtype)y->dtype;
    int64_t none[4] = {0}, after[4] = {0}, reach[2];
    for (int i = 0; i < 2; i++) {
        reach[i] = (c->y[i] - 1) * c->stride[i] + (c->size[i] - 1) * c->dilation[i] + 1;
        const int64_t more = c->padding[i] + c->x[i] - reach[i];
        after[2 + i] = more > 0 ? more : 0;
    }
    weft_tensor *matrix = weft_transpose_at(where, weight_matrix(where, w, c), -1, -2);
    weft_tensor *x = unrounded(where, weft_matmul_at(where, pixel_rows(where, y, c), matrix));
    if (weft__poisoned(x)) return x;
    x = weft_permute_at(where, weft__reshape_to(where, x, 7, windows), (int[]){1, 0, 6, 2, 3, 4, 5});
    if (weft__poisoned(x)) return x;
    x = weft_fold_at(where, weft__reshape_to(where, x, 6, seen), 3, reach[1], c->stride[1], c->dilation[1]);
    x = weft_fold_at(where, x, 2, reach[0], c->stride[0], c->dilation[0]);
    x = weft_pad_at(where, x, none, after, 0);
    for (int i = 0; i < 2; i++) x = weft_narrow_at(where, x, 2 + i, c->padding[i], c->x[i]);
    return as_dtype(where, x, dtype);
}

static weft_tensor *weight(const char *where, weft_tensor *x, weft_tensor *y, const params_of_conv *c) {
    const int64_t split[5] = {c->groups, c->out, c->size[0], c->size[1], c->in};
    int64_t dims[4];
    weft_tensor *columns = weft_transpose_at(where, pixel_rows(where, y, c), -1, -2);
    weft_tensor *w = weft_matmul_at(where, columns, window_rows(where, x, c));
    if (weft__poisoned(w)) return w;
    w_shape(c, dims);
    w = weft_permute_at(where, weft__reshape_to(where, w, 5, split), (int[]){0, 1, 4, 2, 3});
    return weft__poisoned(w) ? w : weft__reshape_to(where, w, 4, dims);
}

static void convolve_expand(const char *where, const void *params, weft_tensor *const *in,
                            weft_tensor **out) {
    static weft_tensor *(*const of[])(const char *, weft_tensor *, weft_tensor *, const params_of_conv *) = {
        [WEFT_CONV_FORWARD] = forward, [WEFT_CONV_INPUT] = input, [WEFT_CONV_WEIGHT] = weight};
    const params_of_conv *c = params;
    out[0] = of[c->pass](where, in[0], in[1], c);
}

/* ---- the composite ---- */

static weft_tensor *with(const char *where, const params_of_conv *c, weft_conv_pass pass, weft_tensor *a,
                         weft_tensor *b) {
    params_of_conv other = *c;
    other.pass = pass;
    return weft__convolve(where, &other, a, b);
}

static void convolve_backward(const char *where, weft_tensor *whole, weft_tensor *g, weft_tensor **grads) {
    const params_of_conv *c = weft__params_of(whole);
    weft_tensor *const *in = whole->in;
    switch ((weft_conv_pass)c->pass) {
    case WEFT_CONV_FORWARD: /* in[0] is x, in[1] w */
        grads[0] = with(where, c, WEFT_CONV_INPUT, g, in[1]);
        grads[1] = with(where, c, WEFT_CONV_WEIGHT, in[0], g);
        break;
    case WEFT_CONV_INPUT: /* in[0] is y, in[1] w */
        grads[0] = with(where, c, WEFT_CONV_FORWARD, g, in[1]);
        grads[1] = with(where, c, WEFT_CONV_WEIGHT, g, in[0]);
        break;
    case WEFT_CONV_WEIGHT: /* in[0] is x, in[1] y */
        grads[0] = with(where, c, WEFT_CONV_INPUT, in[1], g);
        grads[1] = with(where, c, WEFT_CONV_FORWARD, in[0], g);
        break;
    }
}

static const weft_composite convolution = {
    .name = "conv",
    .kind = WEFT_HEAVY_CONV,
    .n_inputs = 2,
    .n_outputs = 1,
    .params_bytes = sizeof(weft_conv_params),
    .shape = shape,
    .expand = convolve_expand,
    .backward = convolve_backward,
};

weft_tensor *weft__convolve(const char *where, const weft_conv_params *params, weft_tensor *a,
                            weft_tensor *b) {
    weft_tensor *in[2] = {a, b}, *out;
    if (a->error || b->error) return a->error ? a : b;
    weft__composite(where, &convolution, params, in, &out);
    return out;
}
