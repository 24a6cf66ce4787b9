/* Convolutions as products: the windows of x are the rows of a matrix (N OH OW, KH KW C), the weight is the
 * other one, (KH KW C, O), and the result is stored with its channels last and seen as (N, O, OH, OW). Groups
 * are a batch of such products. A product's operand has one stride a side, so the matrix of windows is copied
 * by a kernel before the product, KH KW times x (not where the kernel is 1 x 1 and x has its channels last,
 * as a convolution's result has); the gradient by the weight reads the same copy, that by the input is a
 * product and fold. A transposed convolution is that gradient. One dimension is two of which one has
 * extent 1. Must not know: devices, layers. Read next: window.c, then matmul.c. */
#include "ops/composite.h"
#include "ops/ops.h"
#include "ops/window.h"

/* Options without zeros that stand for defaults, and the extents. */
typedef struct conv {
    int64_t stride[2], padding[2], dilation[2], extra[2], groups;
    int64_t n, in, out;         /* batch, channels of x, of the result */
    int64_t rows, columns;      /* of x */
    int64_t size[2], result[2]; /* of the kernel, of the result */
} conv;

static weft_tensor *take_options(const char *name, const char *where, weft_context *ctx,
                                 const weft_conv_options *options, conv *c) {
    const weft_conv_options o = options ? *options : (weft_conv_options){.groups = 1};
    c->groups = o.groups ? o.groups : 1;
    bool fine = c->groups > 0;
    for (int i = 0; i < 2; i++) {
        c->stride[i] = o.stride[i] ? o.stride[i] : 1;
        c->dilation[i] = o.dilation[i] ? o.dilation[i] : 1;
        c->padding[i] = o.padding[i];
        c->extra[i] = o.output_padding[i];
        fine = fine && c->stride[i] > 0 && c->dilation[i] > 0 && c->padding[i] >= 0 && c->extra[i] >= 0;
    }
    if (fine) return NULL;
    return weft__poison(ctx, where, WEFT_ERR_ARGUMENT,
                        "%s: stride, padding, dilation and groups must not be negative", name);
}

/* NULL when x (N, C, ...), weight and bias fit together; in: the dimension of weight that counts x's
 * channels. */
static weft_tensor *reject_operands(const char *name, const char *where, weft_tensor *x, weft_tensor *weight,
                                    weft_tensor *bias, int rank, int in, conv *c) {
    weft_tensor *all[3] = {x, weight, bias}, *bad = weft__reject(name, where, all, bias ? 3 : 2);
    if (bad || !x) return bad;
    char a[WEFT_SHAPE_TEXT], b[WEFT_SHAPE_TEXT], d[WEFT_SHAPE_TEXT];
    if (!weft_dtype_is_float((weft_dtype)x->dtype) || weight->dtype != x->dtype ||
        (bias && bias->dtype != x->dtype))
        return weft__poison(x->ctx, where, WEFT_ERR_DTYPE,
                            "%s: x %s, weight %s%s%s must be floats of one dtype", name,
                            weft__tensor_text(x, a), weft__tensor_text(weight, b), bias ? ", bias " : "",
                            bias ? weft__tensor_text(bias, d) : "");
    if (x->rank != rank || weight->rank != rank)
        return weft__poison(x->ctx, where, WEFT_ERR_SHAPE, "%s: x %s and weight %s must have %d dimensions",
                            name, weft__tensor_text(x, a), weft__tensor_text(weight, b), rank);
    c->n = x->shape[0];
    c->in = x->shape[1];
    c->out = in ? weight->shape[0] : weight->shape[1] * c->groups;
    const bool channels = in ? weight->shape[1] == c->in / c->groups : weight->shape[0] == c->in;
    if (c->in < 1 || c->out < 1 || c->in % c->groups || c->out % c->groups || !channels)
        return weft__poison(x->ctx, where, WEFT_ERR_SHAPE, "%s: weight %s does not fit x %s in %lld groups",
                            name, weft__tensor_text(weight, a), weft__tensor_text(x, b),
                            (long long)c->groups);
    if (bias && (bias->rank != 1 || bias->shape[0] != c->out))
        return weft__poison(x->ctx, where, WEFT_ERR_SHAPE, "%s: bias %s must be a vector of %lld", name,
                            weft__tensor_text(bias, a), (long long)c->out);
    c->rows = rank == 4 ? x->shape[2] : 1;
    c->columns = x->shape[rank - 1];
    c->size[0] = rank == 4 ? weight->shape[2] : 1;
    c->size[1] = weight->shape[rank - 1];
    return NULL;
}

/* The options of a convolution along columns alone. */
static weft_conv_options along_columns(const weft_conv_options *options) {
    weft_conv_options o = options ? *options : (weft_conv_options){.groups = 1};
    o.stride[1] = o.stride[0], o.stride[0] = 1;
    o.dilation[1] = o.dilation[0], o.dilation[0] = 1;
    o.padding[1] = o.padding[0], o.padding[0] = 0;
    o.output_padding[1] = o.output_padding[0], o.output_padding[0] = 0;
    return o;
}

/* (groups, rows, columns / groups) -> (N, columns, ...), the rows being (N, rows of an image, its columns).
 */
static weft_tensor *channels_first(const char *where, weft_tensor *y, const conv *c, int64_t rows,
                                   int64_t columns) {
    const int64_t cut[5] = {c->groups, c->n, rows, columns, c->out / c->groups};
    const int64_t shape[4] = {c->n, c->out, rows, columns};
    if (weft__poisoned(y)) return y;
    y = weft_permute_at(where, weft__reshape_to(where, y, 5, cut), (int[]){1, 0, 4, 2, 3});
    return weft__poisoned(y) ? y : weft__reshape_to(where, y, 4, shape);
}

static weft_tensor *add_groups(const char *where, weft_tensor *y, weft_tensor *bias, const conv *c) {
    const int64_t shape[3] = {c->groups, 1, c->out / c->groups};
    return bias ? add(y, weft__reshape_to(where, bias, 3, shape)) : y;
}

/* ---- convolution ---- */

/* The windows of x (N, C, H, W): (groups, N OH OW, KH KW C / groups). */
static weft_tensor *window_rows(const char *where, weft_tensor *x, const conv *c) {
    const int64_t around[4] = {0, 0, c->padding[0], c->padding[1]};
    x = weft_pad_at(where, x, around, around, 0);
    x = weft_unfold_at(where, x, 2, c->size[0], c->stride[0], c->dilation[0]);
    x = weft_unfold_at(where, x, 3, c->size[1], c->stride[1], c->dilation[1]);
    if (weft__poisoned(x)) return x;
    const int64_t each = c->in / c->groups, k = c->size[0] * c->size[1] * each;
    const int64_t cut[7] = {c->n, c->groups, each, c->result[0], c->result[1], c->size[0], c->size[1]};
    const int64_t rows[3] = {c->groups, c->n * c->result[0] * c->result[1], k};
    x = weft_permute_at(where, weft__reshape_to(where, x, 7, cut), (int[]){1, 0, 3, 4, 5, 6, 2});
    return weft__poisoned(x) ? x : weft__reshape_to(where, x, 3, rows);
}

static weft_tensor *convolve(const char *name, const char *where, weft_tensor *x, weft_tensor *weight,
                             weft_tensor *bias, conv *c) {
    const int64_t extent[2] = {c->rows, c->columns};
    for (int i = 0; i < 2; i++) {
        int64_t padded;
        if (!weft__add(c->padding[i], c->padding[i], &padded) || !weft__add(extent[i], padded, &padded))
            return weft__poison(x->ctx, where, WEFT_ERR_SHAPE, "%s: a padding of %lld", name,
                                (long long)c->padding[i]);
        weft_tensor *bad = weft__window_count(where, name, x->ctx, padded, c->size[i], c->stride[i],
                                              c->dilation[i], &c->result[i]);
        if (bad) return bad;
    }
    const int64_t each = c->in / c->groups, k = c->size[0] * c->size[1] * each, wide = c->out / c->groups;
    const int64_t cut[5] = {c->groups, wide, each, c->size[0], c->size[1]}, matrix[3] = {c->groups, k, wide};
    weft_tensor *rows = window_rows(where, x, c);
    weft_tensor *w = weft_permute_at(where, weft__reshape_to(where, weight, 5, cut), (int[]){0, 3, 4, 2, 1});
    if (weft__poisoned(rows) || weft__poisoned(w)) return weft__poisoned(rows) ? rows : w;
    weft_tensor *y = weft_matmul_at(where, rows, weft__reshape_to(where, w, 3, matrix));
    return channels_first(where, add_groups(where, y, bias, c), c, c->result[0], c->result[1]);
}

/* ---- transposed convolution ---- */

/* A product of 16-bit floats before it is rounded to that: windows are added up in f32. */
static weft_tensor *unrounded(const char *where, weft_tensor *y) {
    if (weft__poisoned(y) || !is_half((weft_dtype)y->dtype)) return y;
    return weft__node(y->ctx, where, WEFT_OP_MATMUL, WEFT_F32, y->rank, y->shape, 2, y->in, 0, NULL);
}

/* What windows of every pixel add up to: (N, O, H', W') from x (N, C, H, W), nothing cut off yet. */
static weft_tensor *spread_windows(const char *where, weft_tensor *x, weft_tensor *weight, const conv *c,
                                   const int64_t *whole) {
    const int64_t each = c->in / c->groups, wide = c->out / c->groups, window = c->size[0] * c->size[1];
    const int64_t cut[5] = {c->n, c->groups, each, c->rows, c->columns};
    const int64_t rows[3] = {c->groups, c->n * c->rows * c->columns, each};
    const int64_t matrix[3] = {c->groups, each, wide * window};
    const int64_t windows[7] = {c->groups, c->n, c->rows, c->columns, wide, c->size[0], c->size[1]};
    const int64_t seen[6] = {c->n, c->out, c->rows, c->columns, c->size[0], c->size[1]};
    x = weft_permute_at(where, weft__reshape_to(where, x, 5, cut), (int[]){1, 0, 3, 4, 2});
    if (weft__poisoned(x)) return x;
    weft_tensor *y = weft_matmul_at(where, weft__reshape_to(where, x, 3, rows),
                                    weft__reshape_to(where, weight, 3, matrix));
    y = unrounded(where, y);
    if (weft__poisoned(y)) return y;
    y = weft_permute_at(where, weft__reshape_to(where, y, 7, windows), (int[]){1, 0, 4, 2, 3, 5, 6});
    if (weft__poisoned(y)) return y;
    y = weft_fold_at(where, weft__reshape_to(where, y, 6, seen), 3, whole[1], c->stride[1], c->dilation[1]);
    return weft_fold_at(where, y, 2, whole[0], c->stride[0], c->dilation[0]);
}

static weft_tensor *convolve_transposed(const char *name, const char *where, weft_tensor *x,
                                        weft_tensor *weight, weft_tensor *bias, conv *c) {
    const int64_t extent[2] = {c->rows, c->columns};
    int64_t whole[2], none[4] = {0}, after[4] = {0};
    for (int i = 0; i < 2; i++) {
        int64_t span, cut, *to = &whole[i];
        const bool more = c->extra[i] < c->stride[i] || c->extra[i] < c->dilation[i];
        if (!more || extent[i] < 1 || c->size[i] < 1 || !weft__mul(extent[i] - 1, c->stride[i], to) ||
            !weft__mul(c->size[i] - 1, c->dilation[i], &span) || !weft__add(*to, span + 1, to) ||
            !weft__add(*to, c->extra[i], &c->result[i]) || !weft__mul(c->padding[i], 2, &cut) ||
            cut >= c->result[i])
            return weft__poison(
                x->ctx, where, WEFT_ERR_SHAPE,
                "%s: an extent of %lld, a kernel of %lld, padding %lld and output padding %lld leave no "
                "result; output padding is less than stride or dilation",
                name, (long long)extent[i], (long long)c->size[i], (long long)c->padding[i],
                (long long)c->extra[i]);
        c->result[i] -= cut;
        after[2 + i] = c->extra[i];
    }
    const weft_dtype dtype = (weft_dtype)x->dtype;
    weft_tensor *y = spread_windows(where, x, weight, c, whole);
    if (weft__poisoned(y)) return y;
    y = weft_pad_at(where, y, none, after, 0);
    for (int i = 0; i < 2; i++) y = weft_narrow_at(where, y, 2 + i, c->padding[i], c->result[i]);
    const int64_t column[3] = {c->out, 1, 1};
    if (bias) y = add(y, weft__reshape_to(where, widen(where, bias), 3, column));
    return as_dtype(where, y, dtype);
}

/* ---- in one dimension and two ---- */

typedef weft_tensor *(*compute_fn)(const char *name, const char *where, weft_tensor *x, weft_tensor *weight,
                                   weft_tensor *bias, conv *c);

/* Lines are images of one row. The channels of x are counted by dimension 1 of the weight, or of a
 * transposed one by 0. */
static weft_tensor *run(const char *name, compute_fn compute, int dims, const char *where, weft_tensor *x,
                        weft_tensor *weight, weft_tensor *bias, const weft_conv_options *options) {
    conv c = {0};
    const weft_conv_options line = along_columns(options);
    weft_tensor *bad = x ? take_options(name, where, x->ctx, dims == 1 ? &line : options, &c) : NULL;
    if (!bad) bad = reject_operands(name, where, x, weight, bias, 2 + dims, compute == convolve, &c);
    if (bad || !x) return bad;
    if (dims == 2) return compute(name, where, x, weight, bias, &c);
    weft_tensor *y =
        compute(name, where, weft_unsqueeze_at(where, x, 2), weft_unsqueeze_at(where, weight, 2), bias, &c);
    return weft_squeeze_at(where, y, 2);
}

#define CONVOLUTION(name, compute, dims)                                                                     \
    weft_tensor *weft_##name##_at(const char *where, weft_tensor *x, weft_tensor *weight, weft_tensor *bias, \
                                  const weft_conv_options *options) {                                        \
        return run(#name, compute, dims, where, x, weight, bias, options);                                   \
    }
CONVOLUTION(conv1d, convolve, 1)
CONVOLUTION(conv2d, convolve, 2)
CONVOLUTION(conv_transpose1d, convolve_transposed, 1)
CONVOLUTION(conv_transpose2d, convolve_transposed, 2)
