/* What the passes of a convolution share on the CPU: the padded part of an image that a task reads.
 * Must not know: threads. Read next: conv.c, conv_weight.c. */
#ifndef WEFT_DEVICE_CPU_HEAVY_CONV_H
#define WEFT_DEVICE_CPU_HEAVY_CONV_H

#include "device/cpu/heavy/heavy.h"

#define CONV_DEPTH 384 /* products added in sequence */

/* Rows of an image with zeros as padding, in scratch memory. If no padding is needed, the rows are read in
 * place. */
typedef struct weft_conv_band {
    int64_t rows, columns, channels; /* of the image */
    int64_t low[2];                  /* first row of band 0, and first column of all bands */
    int64_t wide;                    /* columns of the band */
    int64_t most;                    /* rows of the band, at most */
    uint8_t dtype;
    bool in_place;
} weft_conv_band;

/* Returns the bytes of a band in scratch memory, or 0 if it is read in place. */
size_t weft__conv_band_bytes(const weft_conv_band *band);
/* Returns the elements from row to row. */
static inline int64_t weft__conv_band_row(const weft_conv_band *band) {
    return (band->in_place ? band->columns : band->wide) * band->channels;
}
/* Returns rows first .. first + rows - 1 of the image, in place or copied to scratch. */
const void *weft__conv_band_fill(const weft_conv_band *band, const weft_gemm_own *own, const void *image,
                                 int64_t first, int64_t rows, void *scratch);

/* Return the size of an element of the compute type, and its kernels: f64, otherwise f32. */
static inline size_t weft__conv_wide_size(uint8_t dtype) { return dtype == WEFT_F64 ? 8 : 4; }
static inline const weft_conv_own *weft__conv_kernels(const weft_gemm_own *own, uint8_t dtype) {
    return dtype == WEFT_F64 ? &own->conv_f64 : &own->conv_f32;
}

/* Returns n elements in the compute type, in place or converted into scratch. */
const void *weft__conv_wide(weft_dtype dtype, const weft_gemm_own *own, const void *from, int64_t n,
                            void *scratch);

static inline size_t weft__conv_aligned(size_t bytes) { return (bytes + 63) & ~(size_t)63; }

/* Returns whether all groups have one channel. Then all groups are one set, and nothing is summed over
 * channels. */
static inline bool weft__conv_each(const weft_heavy_conv *c) {
    return c->in == 1 && c->out == 1 && c->groups > 1;
}

/* Returns the multiplications and additions of a pass. They count more for types that are slower than f32. */
double weft__conv_operations(const weft_heavy_conv *c);
/* Returns the estimated nanoseconds on one thread. */
double weft__conv_cost(const weft_heavy_conv *c);

/* conv_each.c: for groups of one channel, the rows that are written, the rows that they read, and the taps
 * that their pixels meet. */
typedef struct weft_conv_rows weft_conv_rows;
weft_conv_rows *weft__conv_rows_new(weft_context *ctx, const weft_heavy_conv *conv, int64_t lanes);
void weft__conv_rows_free(weft_context *ctx, weft_conv_rows *rows);
/* Computes the rows that rows begin..end-1 read: low..high-1. */
void weft__conv_rows_read(const weft_conv_rows *rows, int64_t begin, int64_t end, int64_t *low,
                          int64_t *high);
/* Computes row `row` by calls of a kernel. Elements have `size` bytes. x begins with row x_first of an
 * image. */
void weft__conv_rows_do(const weft_conv_rows *rows, int64_t row, size_t size, const char *x, int64_t x_first,
                        char *w, char *y, void (*kernel)(const weft_conv_each *each));

weft_status weft__cpu_conv_each_prepare(weft_context *ctx, const weft_heavy_conv *conv, weft_cpu_work *work);
weft_status weft__cpu_conv_weight_prepare(weft_context *ctx, const weft_heavy_conv *conv, int threads,
                                          weft_cpu_work *work);

#endif
