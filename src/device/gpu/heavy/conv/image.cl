/* An operand of a matmul that is the windows of images, read in place (implicit GEMM). Images have their channels last.
 * Window p is one line of taps[0] x taps[1] x depth elements, 0 outside of the image:
 *
 *     image, source[0] x source[1] pixels           line p of the operand
 *     . . . . . . .
 *     . A B C . . .    window p,                    A B C D E F   (each letter: `depth` channels)
 *     . D E F . . .    2 x 3 taps
 *     . . . . . . .
 *
 * IMAGE says which operand, a or b. SPREAD: rows of c are pixels that are not contiguous. Comes after storage.cl and
 * before matmul.cl. */
#include "device/gpu/heavy/conv/image_params.h"

/* Returns n / d, for n below 2^31 (Granlund and Montgomery 1994). */
W_FN int quotient(int n, const w_divisor d) {
    return d.magic ? (int)(((w_u64)(w_u32)n * d.magic >> 32) >> d.shift) : n;
}

/* The start of a window: the offset of its image, and its row and column there, which may be outside of the image. */
typedef struct w_window {
    w_i64 image;
    int row, column;
} w_window;
W_FN w_window window_at(const w_image *v, int p) {
    const int line = quotient(p, v->by_columns), image = quotient(line, v->by_rows);
    w_window w;
    w.image = (w_i64)image * v->source[0] * v->source[1] * v->channels;
    w.row = (line - image * v->windows[0]) * v->stride[0] - v->offset[0];
    w.column = (p - line * v->windows[1]) * v->stride[1] - v->offset[1];
    return w;
}

/* Returns the pixel that row p of c is, with SPREAD. */
W_FN w_i64 pixel_at(const w_image *v, int p) {
    const int line = quotient(p, v->by_columns), image = quotient(line, v->by_rows);
    return (w_i64)image * v->to[0] + v->to[1] + (w_i64)(line - image * v->windows[0]) * v->to[2] +
           (p - line * v->windows[1]) * v->to[3];
}

/* Returns the offset of line k of the weight, for WEFT_GPU_WINDOWS_A_BACK. A line is one tap and one channel of y. */
W_FN w_i64 weight_at(const w_image *v, int k, w_i64 line) {
    const int tap = quotient(k, v->by_depth), row = quotient(tap, v->by_taps);
    return (k - tap * v->depth) * line + v->weight[0] + row * v->weight[1] + (tap - row * v->taps[1]) * v->weight[2];
}

#define NOWHERE (-(1 << 30)) /* a row outside of every image */

/* Is this row and column in the image? */
W_FN int in_image(const w_image *v, int row, int column) {
    return row >= 0 && row < v->source[0] && column >= 0 && column < v->source[1];
}
#ifndef TENSOR /* matmul_tensor.cl has functions of its own */
/* ---- work-items: windows are read element by element; a work-item always reads the same lines ---- */

/* Returns element `at`, which is at that row and column of the image; 0 if these are outside. */
INLINE S element(const W_GLOBAL T *x, const w_image *v, STRIDE at, int row, int column) {
    return in_image(v, row, column) ? LOAD(x, at) : (S)0;
}

#if IMAGE == WEFT_GPU_WINDOWS_B
/* Lines are along n: the tap of each line. */
#define BEGIN_FETCH                                                                                         \
    STRIDE line_at[B_EACH];                                                                                 \
    int line_row[B_EACH], line_column[B_EACH];                                                              \
    W_CARD_UNROLL                                                                                           \
    for (int i = 0; i < B_EACH; i++) {                                                                      \
        const int l = (w_item(0) + i * ITEMS) % TILE_N, n = j0 + l;                                         \
        const int tap = quotient(n, view->by_depth), tap_row = quotient(tap, view->by_taps);                  \
        line_row[i] = l < cols ? tap_row * view->dilation[0] : NOWHERE;                                      \
        line_column[i] = (tap - tap_row * view->taps[1]) * view->dilation[1];                                 \
        line_at[i] = ((STRIDE)tap_row * view->dilation[0] * view->source[1] + line_column[i]) * view->channels + \
                     (n - tap * view->depth);                                                                \
    }
#define FETCH_B(k) fetch_windows(b, view, k, k1, line_at, line_row, line_column, B_EACH, TILE_N, next_b);
INLINE void fetch_windows(const W_GLOBAL T *x, const w_image *v, int k, int k1, const STRIDE *at, const int *rows,
                          const int *columns, int each, int size, S *to) {
#pragma unroll
    for (int i = 0; i < each; i++) {
        const int p = k + (w_item(0) + i * ITEMS) / size;
        const w_window w = window_at(v, p);
        const STRIDE from = (STRIDE)w.image + ((STRIDE)w.row * v->source[1] + w.column) * v->channels + at[i];
        to[i] = p < k1 ? element(x, v, from, w.row + rows[i], w.column + columns[i]) : (S)0;
    }
}
#else
/* Lines are along k: the window of each line. */
#define BEGIN_FETCH                                                                                         \
    STRIDE line_at[A_EACH];                                                                                 \
    int line_row[A_EACH], line_column[A_EACH];                                                              \
    W_CARD_UNROLL                                                                                           \
    for (int i = 0; i < A_EACH; i++) {                                                                      \
        const int l = (w_item(0) + i * ITEMS) / DEPTH;                                                      \
        const w_window w = window_at(view, i0 + min(l, rows - 1));                                         \
        line_row[i] = l < rows ? w.row : NOWHERE;                                                           \
        line_column[i] = w.column;                                                                          \
        line_at[i] = (STRIDE)w.image + ((STRIDE)w.row * view->source[1] + w.column) * view->channels;         \
    }
#define FETCH_A(k) fetch_windows(a, view, k, k1, line_at, line_row, line_column, A_EACH, next_a);
INLINE void fetch_windows(const W_GLOBAL T *x, const w_image *v, int k, int k1, const STRIDE *at, const int *rows,
                          const int *columns, int each, S *to) {
#pragma unroll
    for (int i = 0; i < each; i++) {
        const int p = k + (w_item(0) + (ITEMS % DEPTH ? i * ITEMS : 0)) % DEPTH;
        const int tap = quotient(p, v->by_depth), tap_row = quotient(tap, v->by_taps);
        const int down = tap_row * v->dilation[0], along = (tap - tap_row * v->taps[1]) * v->dilation[1];
        const STRIDE from = at[i] + ((STRIDE)down * v->source[1] + along) * v->channels + (p - tap * v->depth);
        to[i] = p < k1 ? element(x, v, from, rows[i] + down, columns[i] + along) : (S)0;
    }
}
#endif
#if IMAGE == WEFT_GPU_WINDOWS_A_BACK
#define FETCH_B(k) fetch_weight(b, view, k, k1, b_k, cols, B_EACH, TILE_N, next_b);
INLINE void fetch_weight(const W_GLOBAL T *from, const w_image *v, int k, int k1, STRIDE line, int cols, int each,
                         int size, S *to) {
#pragma unroll
    for (int i = 0; i < each; i++) {
        const int e = w_item(0) + i * ITEMS, p = k + e / size, l = e % size;
        to[i] = p < k1 && l < cols ? LOAD(from, (STRIDE)weight_at(v, p, line) + l) : (S)0;
    }
}
#endif
#endif

#if IMAGE == WEFT_GPU_WINDOWS_B
#define BEGIN_B b -= j0; /* windows have all columns */
#else
#define BEGIN_B
#endif
#define IMAGE_NUMBERS w_image image;
#define BEGIN_IMAGE                                                                                         \
    w_image image = given.image;                                                                            \
    image.end -= (w_i64)item * image.depth;                                                                 \
    const w_image *const view = &image;                                                                     \
    BEGIN_B
