/* What the passes of a convolution share on the CPU: the part of an image, padded, that a task reads. Read
 * next: conv.c, conv_weight.c. */
#ifndef WEFT_DEVICE_CPU_HEAVY_CONV_H
#define WEFT_DEVICE_CPU_HEAVY_CONV_H

#include "device/cpu/heavy/heavy.h"

#define CONV_DEPTH 384 /* products added in a row */

/* Rows of an image with what is missing around it as zeros, in scratch; or in place where nothing is missing.
 */
typedef struct weft_conv_band {
    int64_t rows, columns, channels; /* of the image */
    int64_t low[2];                  /* the first row that band 0 has, and the first column of all */
    int64_t step;                    /* rows from band to band, times rows of the result */
    int64_t wide;                    /* columns of the band */
    int64_t most;                    /* its rows */
    uint8_t dtype;
    bool in_place;
} weft_conv_band;

/* Bytes of a band in scratch; 0 in place. */
size_t weft__conv_band_bytes(const weft_conv_band *band);
/* Elements from row to row. */
static inline int64_t weft__conv_band_row(const weft_conv_band *band) {
    return (band->in_place ? band->columns : band->wide) * band->channels;
}
/* Rows first, first + 1, ... of the image, `rows` of them: where they lie. */
const void *weft__conv_band_fill(const weft_conv_band *band, const weft_gemm_own *own, const void *image,
                                 int64_t first, int64_t rows, void *scratch);

/* Bytes of an element that is computed with, and the kernels that do: f64, else f32. */
static inline size_t weft__conv_wide_size(uint8_t dtype) { return dtype == WEFT_F64 ? 8 : 4; }
static inline const weft_conv_own *weft__conv_kernels(const weft_gemm_own *own, uint8_t dtype) {
    return dtype == WEFT_F64 ? &own->conv_f64 : &own->conv_f32;
}

/* Elements that are computed with, as they are or converted into scratch. */
const void *weft__conv_wide(weft_dtype dtype, const weft_gemm_own *own, const void *from, int64_t n,
                            void *scratch);

static inline size_t weft__conv_aligned(size_t bytes) { return (bytes + 63) & ~(size_t)63; }

/* Groups of one channel: all are one set whose channels do not meet. */
static inline bool weft__conv_each(const weft_heavy_conv *c) {
    return c->in == 1 && c->out == 1 && c->groups > 1;
}

/* Multiplications and additions of a pass, more where they are slower than those of f32. */
double weft__conv_operations(const weft_heavy_conv *c);
/* Nanoseconds of one thread for them. */
double weft__conv_cost(const weft_heavy_conv *c);

/* conv_each.c: rows of what is written, of groups that have one channel, with what each reads and the taps
 * that its pixels meet there. */
typedef struct weft_conv_rows weft_conv_rows;
weft_conv_rows *weft__conv_rows_new(weft_context *ctx, const weft_heavy_conv *conv, int64_t lanes);
void weft__conv_rows_free(weft_context *ctx, weft_conv_rows *rows);
/* Rows low..high-1 are all that rows begin..end-1 read. */
void weft__conv_rows_read(const weft_conv_rows *rows, int64_t begin, int64_t end, int64_t *low,
                          int64_t *high);
/* All of row `row` by calls of a kernel, in elements of `size` bytes; x begins with row x_first of an image.
 */
void weft__conv_rows_do(const weft_conv_rows *rows, int64_t row, size_t size, const char *x, int64_t x_first,
                        char *w, char *y, void (*kernel)(const weft_conv_each *each));

weft_status weft__cpu_conv_each_prepare(weft_context *ctx, const weft_heavy_conv *conv, weft_cpu_work *work);
weft_status weft__cpu_conv_weight_prepare(weft_context *ctx, const weft_heavy_conv *conv, int threads,
                                          weft_cpu_work *work);

#endif
