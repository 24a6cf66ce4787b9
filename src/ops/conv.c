/* Convolutions and transposed convolutions of lines and images: checks of their arguments, and the bias. A
 * line is an image of one row. A transposed convolution is the gradient of a convolution by its input.
 * Must not know: devices, layers. Read next: convolve.c. */
#include "ops/composite.h"
#include "ops/ops.h"
#include "ops/window.h"

/* The extents, and the options with defaults filled in. */
typedef struct conv {
    int64_t stride[2], padding[2], dilation[2], extra[2], groups;
    int64_t n, in, out;    /* batch, channels of x, channels of the result */
    int64_t rows, columns; /* extents of x */
    int64_t size[2];       /* extents of the kernel */
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

/* NULL if x (N, C, ...), weight and bias fit together; else a poisoned tensor. in: the dimension of weight
 * that counts x's channels. */
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
    bool channels = in ? weight->shape[1] == c->in / c->groups : weight->shape[0] == c->in;
    if (in)
        c->out = weight->shape[0];
    else
        channels = weft__mul(weight->shape[1], c->groups, &c->out) && channels;
    if (!channels || c->in < 1 || c->out < 1 || c->in % c->groups || c->out % c->groups)
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

/* The options of a convolution along columns only. */
static weft_conv_options along_columns(const weft_conv_options *options) {
    weft_conv_options o = options ? *options : (weft_conv_options){.groups = 1};
    o.stride[1] = o.stride[0], o.stride[0] = 1;
    o.dilation[1] = o.dilation[0], o.dilation[0] = 1;
    o.padding[1] = o.padding[0], o.padding[0] = 0;
    o.output_padding[1] = o.output_padding[0], o.output_padding[0] = 0;
    return o;
}

/* y + bias, one number for each channel. */
static weft_tensor *add_bias(const char *where, weft_tensor *y, weft_tensor *bias) {
    if (!bias || weft__poisoned(y)) return y;
    return at_add(y, weft__reshape_to(where, bias, 3, (const int64_t[]){bias->shape[0], 1, 1}));
}

/* Sets the window of dimension i. A stride beyond the end, and the dilation of a single element, have no
 * effect. They are replaced by small numbers, so that devices can multiply them without overflow. */
static void set_window(weft_conv_params *p, const conv *c, int i, int64_t extent) {
    p->size[i] = c->size[i];
    p->stride[i] = weft__smaller(c->stride[i], extent);
    p->padding[i] = c->padding[i];
    p->dilation[i] = c->size[i] == 1 ? 1 : c->dilation[i];
}

static weft_tensor *convolve(const char *name, const char *where, weft_tensor *x, weft_tensor *weight,
                             weft_tensor *bias, conv *c) {
    const int64_t extent[2] = {c->rows, c->columns};
    weft_conv_params p = {.pass = WEFT_CONV_FORWARD,
                          .n = c->n,
                          .groups = c->groups,
                          .in = c->in / c->groups,
                          .out = c->out / c->groups};
    for (int i = 0; i < 2; i++) {
        int64_t padded;
        if (!weft__add(c->padding[i], c->padding[i], &padded) || !weft__add(extent[i], padded, &padded))
            return weft__poison(x->ctx, where, WEFT_ERR_SHAPE, "%s: a padding of %lld is too large", name,
                                (long long)c->padding[i]);
        weft_tensor *bad = weft__window_count(where, name, x->ctx, padded, c->size[i], c->stride[i],
                                              c->dilation[i], &p.y[i]);
        if (bad) return bad;
        p.x[i] = extent[i];
        set_window(&p, c, i, padded);
    }
    return add_bias(where, weft__convolve(where, &p, x, weight), bias);
}

/* The gradient of a convolution by its input. x is the gradient of the convolution's result. */
static weft_tensor *convolve_transposed(const char *name, const char *where, weft_tensor *x,
                                        weft_tensor *weight, weft_tensor *bias, conv *c) {
    const int64_t extent[2] = {c->rows, c->columns};
    weft_conv_params p = {.pass = WEFT_CONV_INPUT,
                          .n = c->n,
                          .groups = c->groups,
                          .in = c->out / c->groups,
                          .out = c->in / c->groups};
    for (int i = 0; i < 2; i++) {
        int64_t span, cut, to;
        const bool more = c->extra[i] < c->stride[i] || c->extra[i] < c->dilation[i];
        if (!more || extent[i] < 1 || c->size[i] < 1 || !weft__mul(extent[i] - 1, c->stride[i], &to) ||
            !weft__mul(c->size[i] - 1, c->dilation[i], &span) || !weft__add(to, span, &to) ||
            !weft__add(to, 1, &to) || !weft__add(to, c->extra[i], &p.x[i]) ||
            !weft__mul(c->padding[i], 2, &cut) || cut >= p.x[i])
            return weft__poison(x->ctx, where, WEFT_ERR_SHAPE,
                                "%s: an extent of %lld, a kernel of %lld, padding %lld and output padding "
                                "%lld leave no result; output padding must be less than stride or dilation",
                                name, (long long)extent[i], (long long)c->size[i], (long long)c->padding[i],
                                (long long)c->extra[i]);
        set_window(&p, c, i, p.x[i]);
        p.x[i] -= cut;
        p.y[i] = extent[i];
    }
    return add_bias(where, weft__convolve(where, &p, x, weight), bias);
}

/* ---- for one dimension and two ---- */

typedef weft_tensor *(*compute_fn)(const char *name, const char *where, weft_tensor *x, weft_tensor *weight,
                                   weft_tensor *bias, conv *c);

/* Lines are images of one row. Dimension 1 of the weight counts the channels of x; for a transposed
 * convolution it is dimension 0. */
static weft_tensor *conv_run(const char *name, compute_fn compute, int dims, const char *where,
                             weft_tensor *x, weft_tensor *weight, weft_tensor *bias,
                             const weft_conv_options *options) {
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
        return conv_run(#name, compute, dims, where, x, weight, bias, options);                              \
    }
CONVOLUTION(conv1d, convolve, 1)
CONVOLUTION(conv2d, convolve, 2)
CONVOLUTION(conv_transpose1d, convolve_transposed, 1)
CONVOLUTION(conv_transpose2d, convolve_transposed, 2)
