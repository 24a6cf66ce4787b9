/* Layers of images and signals: convolutions with their weights, pools, flatten. The computation is in
 * ops/conv.c, ops/pool.c and ops/resample.c.
 * Must not know: devices. Read next: linear.c. */
#include <math.h>
#include "nn/module.h"

typedef weft_tensor *(*conv_fn)(const char *where, weft_tensor *x, weft_tensor *weight, weft_tensor *bias,
                                const weft_conv_options *options);

typedef struct conv_own {
    conv_fn fn;
    bool biased;
    weft_conv_options options;
} conv_own;

static weft_tensor *conv_forward(weft_module *m, weft_tensor *x) {
    const conv_own *own = m->user;
    return own->fn(m->where, x, weft__parameter_of(m, 0), own->biased ? weft__parameter_of(m, 1) : NULL,
                   &own->options);
}

/* shape: of the weight. The product of its dimensions from 1 on is the fan-in, which bounds the first values.
 */
static weft_module *conv(weft_context *ctx, const char *kind, conv_fn fn, int64_t in, int64_t out, int rank,
                         const int64_t *shape, const weft_conv_layer_options *options) {
    const weft_conv_layer_options o = options ? *options : (weft_conv_layer_options){.no_bias = false};
    weft_module *m = weft__module_make(ctx, kind, conv_forward, sizeof(conv_own));
    if (m->error) return m;
    const int64_t groups = o.conv.groups ? o.conv.groups : 1;
    bool fine = in > 0 && out > 0 && groups > 0 && in % groups == 0 && out % groups == 0;
    double count = 1;
    for (int i = 2; i < rank; i++) fine = fine && shape[i] > 0;
    if (!fine)
        return weft__module_poison(
            m, WEFT_ERR_ARGUMENT,
            "weft_nn_%s: %lld to %lld channels in %lld groups: all of these and the kernel's size must be "
            "positive, and channels must be multiples of groups",
            kind, (long long)in, (long long)out, (long long)groups);
    int64_t full[4];
    for (int i = 0; i < rank; i++) full[i] = i == 1 ? shape[1] / groups : shape[i];
    for (int i = 1; i < rank; i++) count *= (double)full[i];
    *(conv_own *)m->user = (conv_own){fn, !o.no_bias, o.conv};
    weft_init bound = {WEFT_INIT_UNIFORM, 1.0 / sqrt(count)}, weight = weft__init_or(o.weight, bound);
    weft_module_parameter(m, "weight", o.dtype, rank, full, &weight);
    if (o.no_bias) return m;
    weft_init bias = weft__init_or(o.bias, bound);
    weft_module_parameter(m, "bias", o.dtype, 1, &out, &bias);
    return m;
}

weft_module *weft_nn_conv1d(weft_context *ctx, int64_t in, int64_t out, int64_t size,
                            const weft_conv_layer_options *options) {
    return conv(ctx, "conv1d", weft_conv1d_at, in, out, 3, (int64_t[]){out, in, size}, options);
}

weft_module *weft_nn_conv2d(weft_context *ctx, int64_t in, int64_t out, int64_t rows, int64_t columns,
                            const weft_conv_layer_options *options) {
    return conv(ctx, "conv2d", weft_conv2d_at, in, out, 4, (int64_t[]){out, in, rows, columns}, options);
}

weft_module *weft_nn_conv_transpose1d(weft_context *ctx, int64_t in, int64_t out, int64_t size,
                                      const weft_conv_layer_options *options) {
    return conv(ctx, "conv_transpose1d", weft_conv_transpose1d_at, in, out, 3, (int64_t[]){in, out, size},
                options);
}

weft_module *weft_nn_conv_transpose2d(weft_context *ctx, int64_t in, int64_t out, int64_t rows,
                                      int64_t columns, const weft_conv_layer_options *options) {
    return conv(ctx, "conv_transpose2d", weft_conv_transpose2d_at, in, out, 4,
                (int64_t[]){in, out, rows, columns}, options);
}

/* ---- pools ---- */

typedef struct pool_own {
    weft_tensor *(*fn)(const char *where, weft_tensor *x, const weft_pool_options *options);
    weft_pool_options options;
} pool_own;

static weft_tensor *pool_forward(weft_module *m, weft_tensor *x) {
    const pool_own *own = m->user;
    return own->fn(m->where, x, &own->options);
}

static weft_module *pool(weft_context *ctx, const char *kind, pool_own own,
                         const weft_pool_options *options) {
    weft_module *m = weft__module_make(ctx, kind, pool_forward, sizeof own);
    if (m->error) return m;
    if (!options) return weft__module_poison(m, WEFT_ERR_ARGUMENT, "weft_nn_%s: the options are NULL", kind);
    own.options = *options;
    *(pool_own *)m->user = own;
    return m;
}

weft_module *weft_nn_max_pool1d(weft_context *ctx, const weft_pool_options *options) {
    return pool(ctx, "max_pool1d", (pool_own){.fn = weft_max_pool1d_at}, options);
}
weft_module *weft_nn_max_pool2d(weft_context *ctx, const weft_pool_options *options) {
    return pool(ctx, "max_pool2d", (pool_own){.fn = weft_max_pool2d_at}, options);
}
weft_module *weft_nn_avg_pool1d(weft_context *ctx, const weft_pool_options *options) {
    return pool(ctx, "avg_pool1d", (pool_own){.fn = weft_avg_pool1d_at}, options);
}
weft_module *weft_nn_avg_pool2d(weft_context *ctx, const weft_pool_options *options) {
    return pool(ctx, "avg_pool2d", (pool_own){.fn = weft_avg_pool2d_at}, options);
}

/* ---- adaptive pools, interpolation ---- */

typedef struct adaptive_own {
    int64_t size[2];
    bool mean;
} adaptive_own;

static weft_tensor *adaptive1d_forward(weft_module *m, weft_tensor *x) {
    const adaptive_own *own = m->user;
    return (own->mean ? weft_adaptive_avg_pool1d_at : weft_adaptive_max_pool1d_at)(m->where, x, own->size[0]);
}

static weft_tensor *adaptive2d_forward(weft_module *m, weft_tensor *x) {
    const adaptive_own *own = m->user;
    return (own->mean ? weft_adaptive_avg_pool2d_at : weft_adaptive_max_pool2d_at)(m->where, x, own->size[0],
                                                                                   own->size[1]);
}

static weft_module *adaptive(weft_context *ctx, const char *kind, weft_forward_fn forward, adaptive_own own) {
    weft_module *m = weft__module_make(ctx, kind, forward, sizeof own);
    if (m->error) return m;
    if (own.size[0] < 1 || own.size[1] < 1)
        return weft__module_poison(m, WEFT_ERR_ARGUMENT, "weft_nn_%s: the size must be positive", kind);
    *(adaptive_own *)m->user = own;
    return m;
}

weft_module *weft_nn_adaptive_max_pool1d(weft_context *ctx, int64_t size) {
    return adaptive(ctx, "adaptive_max_pool1d", adaptive1d_forward, (adaptive_own){{size, 1}, false});
}
weft_module *weft_nn_adaptive_max_pool2d(weft_context *ctx, int64_t rows, int64_t columns) {
    return adaptive(ctx, "adaptive_max_pool2d", adaptive2d_forward, (adaptive_own){{rows, columns}, false});
}
weft_module *weft_nn_adaptive_avg_pool1d(weft_context *ctx, int64_t size) {
    return adaptive(ctx, "adaptive_avg_pool1d", adaptive1d_forward, (adaptive_own){{size, 1}, true});
}
weft_module *weft_nn_adaptive_avg_pool2d(weft_context *ctx, int64_t rows, int64_t columns) {
    return adaptive(ctx, "adaptive_avg_pool2d", adaptive2d_forward, (adaptive_own){{rows, columns}, true});
}

static weft_tensor *interpolate1d_forward(weft_module *m, weft_tensor *x) {
    return weft_interpolate1d_at(m->where, x, m->user);
}

static weft_tensor *interpolate2d_forward(weft_module *m, weft_tensor *x) {
    return weft_interpolate2d_at(m->where, x, m->user);
}

static weft_module *interpolate(weft_context *ctx, const char *kind, weft_forward_fn forward,
                                const weft_interpolate_options *options) {
    weft_module *m = weft__module_make(ctx, kind, forward, sizeof *options);
    if (m->error) return m;
    if (!options) return weft__module_poison(m, WEFT_ERR_ARGUMENT, "weft_nn_%s: the options are NULL", kind);
    *(weft_interpolate_options *)m->user = *options;
    return m;
}

weft_module *weft_nn_interpolate1d(weft_context *ctx, const weft_interpolate_options *options) {
    return interpolate(ctx, "interpolate1d", interpolate1d_forward, options);
}
weft_module *weft_nn_interpolate2d(weft_context *ctx, const weft_interpolate_options *options) {
    return interpolate(ctx, "interpolate2d", interpolate2d_forward, options);
}

/* ---- flatten ---- */

static weft_tensor *flatten_forward(weft_module *m, weft_tensor *x) {
    if (x->rank < 1) return weft__poison(x->ctx, m->where, WEFT_ERR_SHAPE, "flatten: a scalar has no batch");
    int64_t shape[2] = {x->shape[0], 1};
    for (int i = 1; i < x->rank; i++) shape[1] *= x->shape[i];
    return weft_reshape_at(m->where, x, 2, shape);
}

weft_module *weft_nn_flatten(weft_context *ctx) {
    return weft__module_make(ctx, "flatten", flatten_forward, 0);
}
