/* Convolutions for the GPU backends, as matmuls whose one operand is the windows of images (implicit GEMM).
 * The matmul templates read the windows in place, and there is no matrix of windows. The gradient of the
 * input is such a convolution of the gradient, with the taps in reverse order. With a stride it is one matmul
 * for each remainder of the pixel positions, since each remainder meets few of the taps. 1 x 1 convolutions
 * are plain matmuls.
 * Must not know: how launches run. Read next: image.cl, gpu/heavy/matmul/matmul.c,
 * docs/design/022-gpu-convolutions.md. */
#include <limits.h>

#include "device/conv_matmul.h"
#include "device/gpu/heavy/heavy.h"
#include "device/gpu/heavy/matmul/matmul.h"
#include "device/gpu/backend/template.h"

static bool small(int64_t a, int64_t b, int64_t c) {
    int64_t n;
    return weft__mul(a, b, &n) && weft__mul(n, c, &n) && n <= INT_MAX / 2;
}

bool weft__gpu_conv_takes(const weft_target *target, const weft_heavy_conv *c) {
    bool fine = weft_dtype_is_float((weft_dtype)c->dtype) && weft__gpu_knows(target, (weft_dtype)c->dtype);
    const int64_t most = c->groups * weft__larger(c->in, c->out);
    for (int i = 0; i < 2; i++)
        fine = fine && c->padding[i] <= INT_MAX / 4 && small(c->padding[i], most, 1) &&
               small(c->stride[i], c->y[i] + 1, 2) && small(c->dilation[i], c->size[i], most);
    return fine && small(c->n, c->x[0], c->x[1]) && small(c->n, c->y[0], c->y[1]) &&
           small(c->size[0] * c->x[1], c->dilation[0], c->groups * c->in) &&
           small(c->size[0] * c->y[1], c->dilation[0], c->groups * c->out) &&
           small(c->size[0], c->size[1], c->in) && small(c->size[0], c->size[1], c->groups * c->out);
}

_Static_assert(sizeof(w_image) == 8 + 30 * 4, "no padding");

static w_divisor divisor(int64_t d) {
    int bits = 0;
    while ((int64_t)1 << bits < d) bits++;
    if (d <= 1) return (w_divisor){0, 0};
    return (w_divisor){(uint32_t)weft__ceil_div((int64_t)1 << (31 + bits), d), bits - 1};
}

static void divisors(w_image *v) {
    v->by_columns = divisor(v->windows[1]), v->by_rows = divisor(v->windows[0]);
    v->by_depth = divisor(v->depth), v->by_taps = divisor(v->taps[1]);
}

static w_image windows_of_x(const weft_heavy_conv *c) {
    w_image v = {.end = c->n * c->x[0] * c->x[1] * c->groups * c->in,
                 .channels = (int32_t)(c->groups * c->in),
                 .depth = (int32_t)c->in};
    for (int d = 0; d < 2; d++) {
        v.source[d] = (int32_t)c->x[d], v.windows[d] = (int32_t)c->y[d], v.taps[d] = (int32_t)c->size[d];
        v.stride[d] = (int32_t)c->stride[d], v.dilation[d] = (int32_t)c->dilation[d];
        v.offset[d] = (int32_t)c->padding[d];
    }
    divisors(&v);
    return v;
}

static weft_heavy_matmul product_of(const weft_heavy_conv *c) {
    return (weft_heavy_matmul){
        .dtype = c->dtype, .out_dtype = c->dtype, .batch_rank = 1, .batch = {c->groups}};
}

static weft_status forward(weft_launches *launches, const weft_heavy *heavy, bool sink) {
    const weft_heavy_conv *c = &heavy->as.conv;
    const int64_t k = c->size[0] * c->size[1] * c->in;
    weft_heavy_matmul mm = product_of(c);
    mm.m = c->n * c->y[0] * c->y[1], mm.n = c->out, mm.k = k;
    mm.a_batch[0] = c->in, mm.b_batch[0] = c->out * k, mm.c_batch[0] = c->out;
    mm.a_k = 1, mm.b_k = 1, mm.b_n = k, mm.c_m = c->groups * c->out;
    const weft_gpu_view view = {.kind = WEFT_GPU_WINDOWS_A, .image = windows_of_x(c)};
    return weft__gpu_matmul_launches(launches, heavy, &mm, 0, 1, &view, sink);
}

static weft_status by_weight(weft_launches *launches, const weft_heavy *heavy, bool sink) {
    const weft_heavy_conv *c = &heavy->as.conv;
    const int64_t k = c->size[0] * c->size[1] * c->in;
    weft_heavy_matmul mm = product_of(c);
    mm.m = c->out, mm.n = k, mm.k = c->n * c->y[0] * c->y[1];
    mm.a_batch[0] = c->out, mm.b_batch[0] = c->in, mm.c_batch[0] = c->out * k;
    mm.a_m = 1, mm.a_k = c->groups * c->out, mm.b_n = 1, mm.c_m = k;
    const weft_gpu_view view = {.kind = WEFT_GPU_WINDOWS_B, .image = windows_of_x(c)};
    return weft__gpu_matmul_launches(launches, heavy, &mm, 1, 0, &view, sink);
}

/* ---- gradient of the input ---- */

/* The taps of one dimension that pixels first, first + stride, ... meet. There are `count` of them. The last
 * one is `last`, and they are `step` apart. At the first of these pixels, the last tap meets window `window`.
 * The other taps meet windows after it. */
typedef struct phase {
    int64_t first, pixels, count, last, step, window, dilation;
} phase;

static phase phase_of(const weft_heavy_conv *c, int d, int64_t first) {
    const int64_t stride = c->stride[d], dilation = c->dilation[d], to = first + c->padding[d];
    int64_t divisor = stride, rest = dilation, tap = 0;
    while (rest) {
        const int64_t next = divisor % rest;
        divisor = rest, rest = next;
    }
    phase p = {.first = first, .pixels = weft__ceil_div(c->x[d] - first, stride), .step = stride / divisor};
    p.dilation = p.step * dilation / stride;
    while (tap < c->size[d] && (to - tap * dilation) % stride != 0) tap++;
    if (tap >= c->size[d]) return p;
    p.count = (c->size[d] - 1 - tap) / p.step + 1;
    p.last = tap + (p.count - 1) * p.step;
    p.window = (to - p.last * dilation) / stride;
    return p;
}

static weft_status by_input_of(weft_launches *launches, const weft_heavy *heavy, const phase *p, bool sink) {
    const weft_heavy_conv *c = &heavy->as.conv;
    const int64_t line = c->size[0] * c->size[1] * c->in;
    weft_heavy_matmul mm = product_of(c);
    mm.m = c->n * p[0].pixels * p[1].pixels, mm.n = c->in, mm.k = p[0].count * p[1].count * c->out;
    mm.a_batch[0] = c->out, mm.b_batch[0] = c->out * line, mm.c_batch[0] = c->in;
    mm.a_k = 1, mm.b_k = line, mm.b_n = 1, mm.c_m = c->groups * c->in;
    const int64_t row = c->size[1] * c->in;
    weft_gpu_view view = {.kind = WEFT_GPU_WINDOWS_A_BACK, .spread = c->stride[0] > 1 || c->stride[1] > 1};
    w_image *v = &view.image;
    v->end = c->n * c->y[0] * c->y[1] * c->groups * c->out;
    for (int d = 0; d < 2; d++) {
        v->source[d] = (int32_t)c->y[d], v->windows[d] = (int32_t)p[d].pixels;
        v->taps[d] = (int32_t)weft__larger(1, p[d].count);
        v->stride[d] = 1, v->dilation[d] = (int32_t)p[d].dilation, v->offset[d] = (int32_t)-p[d].window;
    }
    v->channels = (int32_t)(c->groups * c->out), v->depth = (int32_t)c->out;
    v->weight[0] = (int32_t)(p[0].last * row + p[1].last * c->in);
    v->weight[1] = (int32_t)(-p[0].step * row), v->weight[2] = (int32_t)(-p[1].step * c->in);
    v->to[0] = (int32_t)(c->x[0] * c->x[1]), v->to[1] = (int32_t)(p[0].first * c->x[1] + p[1].first);
    v->to[2] = (int32_t)(c->stride[0] * c->x[1]), v->to[3] = (int32_t)c->stride[1];
    divisors(v);
    return weft__gpu_matmul_launches(launches, heavy, &mm, 0, 1, &view, sink);
}

static weft_status by_input(weft_launches *launches, const weft_heavy *heavy, bool sink) {
    const weft_heavy_conv *c = &heavy->as.conv;
    for (int64_t i = 0; i < weft__smaller(c->stride[0], c->x[0]); i++)
        for (int64_t j = 0; j < weft__smaller(c->stride[1], c->x[1]); j++) {
            const phase p[2] = {phase_of(c, 0, i), phase_of(c, 1, j)};
            WEFT_TRY(by_input_of(launches, heavy, p, sink));
        }
    return WEFT_OK;
}

weft_status weft__gpu_conv(weft_launches *launches, const weft_heavy *heavy, bool sink) {
    const weft_heavy_conv *c = &heavy->as.conv;
    if (weft__gpu_conv_is_direct(launches->target, c)) return weft__gpu_conv_direct(launches, heavy, sink);
    if (weft__conv_is_matmul(c)) {
        bool swapped;
        const weft_heavy_matmul mm = weft__conv_matmul(c, &swapped);
        return weft__gpu_matmul_launches(launches, heavy, &mm, swapped, !swapped, NULL, sink);
    }
    switch (c->pass) {
    case WEFT_CONV_FORWARD: return forward(launches, heavy, sink);
    case WEFT_CONV_INPUT: return by_input(launches, heavy, sink);
    default: return by_weight(launches, heavy, sink);
    }
}
