/* Networks for images, by name: a convolutional net like LeNet, a residual net (He et al. 2016), and an
 * autoencoder, which takes any vectors. They are made of public modules and tensor functions only.
 * Must not know: devices, files. Read next: conv.c, batchnorm.c. */
#include <string.h>

#include "nn/module.h"
#include "ops/build.h"

/* The size of the input images. */
typedef struct images_own {
    int64_t channels, rows, columns;
} images_own;

/* x as images (N, C, H, W). Rows of C H W numbers are accepted too. Poisoned if x is neither. */
static weft_tensor *as_images(weft_module *m, weft_tensor *x) {
    const images_own *own = m->user;
    const int64_t pixels = own->channels * own->rows * own->columns;
    const int64_t shape[4] = {x->shape[0], own->channels, own->rows, own->columns};
    if (x->rank == 4 && memcmp(x->shape + 1, shape + 1, 3 * sizeof *shape) == 0) return x;
    if (x->rank == 2 && x->shape[1] == pixels) return weft_reshape_at(m->where, x, 4, shape);
    char text[WEFT_SHAPE_TEXT];
    return weft__poison(x->ctx, m->where, WEFT_ERR_SHAPE,
                        "%s: input %s must be (N, %lld, %lld, %lld) or (N, %lld)", m->kind,
                        weft__tensor_text(x, text), (long long)shape[1], (long long)shape[2],
                        (long long)shape[3], (long long)pixels);
}

/* Runs the children one after the other. */
static weft_tensor *children_forward(weft_module *m, weft_tensor *x) {
    x = as_images(m, x);
    for (size_t i = 0; i < m->n_children && !weft__poisoned(x); i++)
        x = weft_forward_at(m->where, m->children[i], x);
    return x;
}

static weft_module *images(weft_context *ctx, const char *kind, const images_own *own, int64_t classes) {
    weft_module *m = weft__module_make(ctx, kind, children_forward, sizeof *own);
    int64_t pixels;
    if (m->error) return m;
    *(images_own *)m->user = *own;
    const bool fits = own->channels > 0 && own->rows > 0 && own->columns > 0 && classes > 0 &&
                      weft__numel(3, (const int64_t[]){own->channels, own->rows, own->columns}, &pixels);
    if (fits) return m;
    return weft__module_poison(
        m, WEFT_ERR_ARGUMENT,
        "weft_%s: %lld channels, %lld rows, %lld columns and %lld classes must be positive", kind,
        (long long)own->channels, (long long)own->rows, (long long)own->columns, (long long)classes);
}

/* ---- cnn ---- */

enum { CNN_CONVOLUTIONS = 16 };

weft_module *weft_nn_cnn(weft_context *ctx, const weft_cnn_options *options) {
    static const int64_t filters[] = {32, 64};
    const weft_cnn_options o = options ? *options : (weft_cnn_options){.classes = 0};
    images_own own = {o.channels, o.rows, o.columns};
    weft_module *m = images(ctx, "cnn", &own, o.classes);
    if (m->error) return m;
    const int64_t *list = o.filters ? o.filters : filters, size = o.size ? o.size : 3;
    const int count = o.filters ? o.filter_count : 2;
    const weft_conv_layer_options conv = {
        .conv.padding = {size / 2, size / 2}, .no_bias = o.no_bias, .dtype = o.dtype};
    const weft_linear_options linear = {.no_bias = o.no_bias, .dtype = o.dtype};
    if (count < 1 || count > CNN_CONVOLUTIONS || size < 1 || size % 2 == 0 || o.hidden < 0)
        return weft__module_poison(
            m, WEFT_ERR_ARGUMENT,
            "weft_nn_cnn: %d convolutions must be 1 to %d, their size %lld must be odd, "
            "and %lld hidden units must not be negative",
            count, CNN_CONVOLUTIONS, (long long)size, (long long)o.hidden);
    for (int i = 0; i < count; i++) {
        weft__module_append(m, weft_nn_conv2d(ctx, own.channels, list[i], size, size, &conv));
        weft__module_append(
            m, weft_nn_activation(ctx, o.activation == WEFT_ACTIVATION_DEFAULT ? WEFT_RELU : o.activation));
        weft__module_append(m, weft_nn_max_pool2d(ctx, &(weft_pool_options){.size = {2, 2}}));
        if (m->error) return m;
        own = (images_own){list[i], own.rows / 2, own.columns / 2};
        if (own.rows < 1 || own.columns < 1)
            return weft__module_poison(m, WEFT_ERR_ARGUMENT,
                                       "weft_nn_cnn: images of %lld x %lld can be halved only %d times",
                                       (long long)o.rows, (long long)o.columns, i);
    }
    const int64_t hidden = o.hidden ? o.hidden : 128;
    weft__module_append(m, weft_nn_flatten(ctx));
    weft__module_append(m, weft_nn_linear(ctx, own.channels * own.rows * own.columns, hidden, &linear));
    weft__module_append(
        m, weft_nn_activation(ctx, o.activation == WEFT_ACTIVATION_DEFAULT ? WEFT_RELU : o.activation));
    if (o.dropout != 0.0) weft__module_append(m, weft_nn_dropout(ctx, o.dropout));
    weft__module_append(m, weft_nn_linear(ctx, hidden, o.classes, &linear));
    return m;
}

/* ---- residual networks ---- */

typedef struct block_own {
    int64_t in, out, stride;
} block_own;

/* The shortcut of a block that halves the image and adds channels: every second pixel, zeros in the new
 * channels (option A of the paper). It is a convolution with a 1 x 1 kernel of zeros and ones, whose gradient
 * is fast on every device. */
static weft_tensor *shortcut(const char *where, weft_tensor *x, const block_own *own) {
    const int64_t rows[4] = {own->out, 1, 1, 1}, columns[4] = {1, own->in, 1, 1};
    const weft_conv_options options = {.stride = {own->stride, own->stride}};
    if (own->in == own->out && own->stride == 1) return x;
    weft_tensor *to = weft_reshape_at(where, weft_iota(x->ctx, WEFT_I32, 1, &own->out), 4, rows);
    weft_tensor *from = weft_reshape_at(where, weft_iota(x->ctx, WEFT_I32, 1, &own->in), 4, columns);
    weft_tensor *same = at_eq(to, at_add_scalar(from, (double)((own->out - own->in) / 2)));
    return weft_conv2d_at(where, x, weft_cast_at(where, same, (weft_dtype)x->dtype), NULL, &options);
}

/* relu(bn2(conv2(relu(bn1(conv1(x))))) + shortcut(x)) */
static weft_tensor *block_forward(weft_module *m, weft_tensor *x) {
    const char *where = m->where;
    weft_tensor *y = weft_forward_at(where, m->children[1], weft_forward_at(where, m->children[0], x));
    y = weft_forward_at(where, m->children[2], weft_relu_at(where, y));
    y = weft_forward_at(where, m->children[3], y);
    return weft_relu_at(where, at_add(y, shortcut(where, x, m->user)));
}

static weft_module *convolution(weft_context *ctx, int64_t in, int64_t out, int64_t stride,
                                weft_dtype dtype) {
    const weft_conv_layer_options o = {.conv = {.stride = {stride, stride}, .padding = {1, 1}},
                                       .no_bias = true,
                                       .dtype = dtype,
                                       .weight = {WEFT_INIT_HE_NORMAL, 0}};
    return weft_nn_conv2d(ctx, in, out, 3, 3, &o);
}

static weft_module *block(weft_context *ctx, int64_t in, int64_t out, int64_t stride, weft_dtype dtype) {
    weft_module *m = weft__module_make(ctx, "residual_block", block_forward, sizeof(block_own));
    if (m->error) return m;
    *(block_own *)m->user = (block_own){in, out, stride};
    const weft_batchnorm_options norm = {.dtype = dtype};
    m->unit = true;
    weft_module_child(m, "conv1", convolution(ctx, in, out, stride, dtype));
    weft_module_child(m, "bn1", weft_nn_batch_norm(ctx, out, &norm));
    weft_module_child(m, "conv2", convolution(ctx, out, out, 1, dtype));
    weft_module_child(m, "bn2", weft_nn_batch_norm(ctx, out, &norm));
    return m;
}

weft_module *weft_nn_resnet(weft_context *ctx, const weft_resnet_options *options) {
    const weft_resnet_options o = options ? *options : (weft_resnet_options){.classes = 0};
    const images_own own = {o.channels, o.rows, o.columns};
    weft_module *m = images(ctx, "resnet", &own, o.classes);
    if (m->error) return m;
    const int64_t depth = o.depth ? o.depth : 20, width = o.width ? o.width : 16;
    if (depth < 8 || depth > 6 * 1000 + 2 || depth % 6 != 2 || width < 1 || width > INT64_C(1) << 30)
        return weft__module_poison(
            m, WEFT_ERR_ARGUMENT,
            "weft_nn_resnet: depth %lld must be 6 n + 2 (8, 14, 20, ...), and width %lld must be positive",
            (long long)depth, (long long)width);
    weft_module_child(m, "conv1", convolution(ctx, o.channels, width, 1, o.dtype));
    weft_module_child(m, "bn1", weft_nn_batch_norm(ctx, width, &(weft_batchnorm_options){.dtype = o.dtype}));
    weft_module_child(m, "relu", weft_nn_activation(ctx, WEFT_RELU));
    int64_t in = width;
    for (int stage = 0; stage < 3; stage++) {
        char name[] = {'l', 'a', 'y', 'e', 'r', (char)('1' + stage), 0};
        weft_module *blocks = weft_nn_sequential(ctx, name, NULL);
        for (int64_t i = 0; i < (depth - 2) / 6; i++) {
            weft__module_append(blocks, block(ctx, in, width << stage, stage && i == 0 ? 2 : 1, o.dtype));
            in = width << stage;
        }
        weft_module_child(m, name, blocks);
    }
    weft_module_child(m, "pool", weft_nn_adaptive_avg_pool2d(ctx, 1, 1));
    weft_module_child(m, "flatten", weft_nn_flatten(ctx));
    weft_module_child(m, "fc", weft_nn_linear(ctx, in, o.classes, &(weft_linear_options){.dtype = o.dtype}));
    return m;
}

/* ---- autoencoder ---- */

enum { AUTOENCODER_SIZES = 66 };

static weft_tensor *autoencoder_forward(weft_module *m, weft_tensor *x) {
    int64_t shape[2] = {x->rank > 0 ? x->shape[0] : 0, 1};
    for (int i = 1; i < x->rank; i++) shape[1] *= x->shape[i];
    weft_tensor *y = x->rank > 2 ? weft_reshape_at(m->where, x, 2, shape) : x;
    y = weft_forward_at(m->where, m->children[1], weft_forward_at(m->where, m->children[0], y));
    return x->rank > 2 && !weft__poisoned(y) ? weft_reshape_at(m->where, y, x->rank, x->shape) : y;
}

weft_module *weft_nn_autoencoder(weft_context *ctx, const int64_t *sizes, int count,
                                 const weft_mlp_options *options) {
    int64_t back[AUTOENCODER_SIZES];
    weft_module *m = weft__module_make(ctx, "autoencoder", autoencoder_forward, 0);
    if (m->error) return m;
    if (!sizes || count < 2 || count > AUTOENCODER_SIZES)
        return weft__module_poison(m, WEFT_ERR_ARGUMENT,
                                   "weft_nn_autoencoder: 2 to %d sizes are needed, got %d", AUTOENCODER_SIZES,
                                   count);
    for (int i = 0; i < count; i++) back[i] = sizes[count - 1 - i];
    weft_module_child(m, "encoder", weft_nn_mlp(ctx, sizes, count, options));
    weft_module_child(m, "decoder", weft_nn_mlp(ctx, back, count, options));
    return m;
}
