/* Convolutions whose groups have few channels (depthwise: one). Matmuls would be mostly empty, so each element of the
 * result is summed directly. BY_INPUT: the gradient of the input. BY_WEIGHT: the gradient of the weight. Its windows
 * are divided into parts, and a second launch (conv_direct_sum.cl) adds the partial sums in order. Else: forward.
 * Comes after storage.cl. */
#include "device/gpu/heavy/conv/conv_direct_params.h"

/* Along dimension d: returns the pixel of x at a tap of window `at`; -1 if it is outside. place_of_y returns the window
 * whose tap is at pixel `at` of x; -1 if there is none. */
W_FN int place_of_x(const w_direct *c, int d, int at, int tap) {
    const int t = at * c->stride[d] + tap * c->dilation[d] - c->padding[d];
    return t >= 0 && t < c->x[d] ? t : -1;
}
W_FN int place_of_y(const w_direct *c, int d, int at, int tap) {
    const int t = at + c->padding[d] - tap * c->dilation[d], to = t / c->stride[d];
    return t >= 0 && to * c->stride[d] == t && to < c->y[d] ? to : -1;
}
#if BY_INPUT
#define PLACE   place_of_y
#define EXTENT  y
#define RESULTS x
#else
#define PLACE   place_of_x
#define EXTENT  x
#define RESULTS y
#endif

/* a: x (BY_INPUT: y); b: the weight (BY_WEIGHT: y). */
W_NUMBERS(conv_direct) {
    w_i64 a_at, b_at, c_at;
    w_direct conv;
    int command;
};

/* A work-item has one element; adjacent work-items have adjacent channels. */

#if BY_WEIGHT
/* Adds up part w_group(1) of the windows, for one element of the weight. */
W_KERNEL W_ITEMS(ITEMS, 1, 1) void conv_direct(const W_GLOBAL T *a, const W_GLOBAL T *b, W_GLOBAL S *c,
                                               W_GLOBAL w_faults *faults, const W_NUMBERS(conv_direct) given) {
    const w_direct of = given.conv;
    const int e = w_group(0) * ITEMS + w_item(0), wide = of.groups * of.out, deep = of.groups * of.in;
    const int taps = of.size[0] * of.size[1], to = e % wide, i = e / wide % of.in, tap = e / wide / of.in;
    const int windows = of.n * of.y[0] * of.y[1], begin = w_group(1) * of.part, end = min(windows, begin + of.part);
    if (tap >= taps) return;
    a += given.a_at + to / of.out * of.in + i;
    b += given.b_at + to;
    const int r = tap / of.size[1], s = tap % of.size[1];
    int column = begin % of.y[1], line = begin / of.y[1] % of.y[0], image = begin / of.y[1] / of.y[0];
    S total = 0, sum = 0;
    for (int p = begin; p < end; p++) {
        const int x = place_of_x(&of, 0, line, r), y = place_of_x(&of, 1, column, s);
        if (x >= 0 && y >= 0)
            sum = fma(LOAD(a, (((w_i64)image * of.x[0] + x) * of.x[1] + y) * deep), LOAD(b, (w_i64)p * wide), sum);
        if (++column == of.y[1]) {
            total += sum, sum = 0, column = 0;
            if (++line == of.y[0]) line = 0, image++;
        }
    }
    c[given.c_at + (w_i64)w_group(1) * wide * taps * of.in + ((w_i64)to * taps + tap) * of.in + i] = total + sum;
}
#else
W_KERNEL W_ITEMS(ITEMS, 1, 1) void conv_direct(const W_GLOBAL T *a, const W_GLOBAL T *b, W_GLOBAL T *c,
                                               W_GLOBAL w_faults *faults, const W_NUMBERS(conv_direct) given) {
    W_RETURN_IF_FAULTED(ITEMS, SINK)
    const w_direct of = given.conv;
    const int wide = of.groups * of.out, deep = of.groups * of.in, taps = of.size[0] * of.size[1];
    const int written = BY_INPUT ? deep : wide, read = BY_INPUT ? wide : deep;
    const int each = BY_INPUT ? of.in : of.out, others = BY_INPUT ? of.out : of.in;
    const w_i64 e = (w_i64)w_group(0) * ITEMS + w_item(0);
    const int pixel = (int)(e / written), channel = (int)(e - (w_i64)pixel * written), group = channel / each;
    const int column = pixel % of.RESULTS[1], line = pixel / of.RESULTS[1] % of.RESULTS[0];
    const int image = pixel / of.RESULTS[1] / of.RESULTS[0];
    if (image >= of.n) return;
    a += given.a_at + (w_i64)image * of.EXTENT[0] * of.EXTENT[1] * read + group * others;
    b += given.b_at;
    S total = 0;
    for (int r = 0; r < of.size[0]; r++) {
        const int row = PLACE(&of, 0, line, r);
        S sum = 0;
        for (int s = 0; row >= 0 && s < of.size[1]; s++) {
            const int at = PLACE(&of, 1, column, s);
            for (int k = 0; at >= 0 && k < others; k++) {
                const int to = BY_INPUT ? group * of.out + k : channel, i = BY_INPUT ? channel - group * of.in : k;
                sum = fma(LOAD(a, ((w_i64)row * of.EXTENT[1] + at) * read + k),
                          LOAD(b, ((w_i64)to * taps + r * of.size[1] + s) * of.in + i), sum);
            }
        }
        total += sum;
    }
    STORE(c, given.c_at + (w_i64)pixel * written + channel, total);
}
#endif
