/* Weighted sums of lines of bytes, transposing, and colours: the inner loops of resampling, for each
 * instruction set.
 * Must not know: images. Read next: image_lines.c. */
#ifndef WEFT_SRC_DATA_IMAGE_LINES_H
#define WEFT_SRC_DATA_IMAGE_LINES_H

#include "base/base.h"

enum {
    WEFT__TILE = 16,          /* lines that are transposed together */
    WEFT__TAPS_NARROW = 32,   /* the most taps whose sums 16 bits can hold with enough precision */
    WEFT__ONE_NARROW = 65535, /* what the weights of a line add up to, if it has at most so many taps */
    WEFT__ONE_WIDE = 1 << 24  /* and if it has more */
};

/* Line i of an output is the weighted sum of the input lines from first[i] to first[i] + count[i] - 1. */
typedef struct weft__line_sums {
    int64_t size, taps; /* output lines; the most taps that a line may have */
    int64_t *first, *count;
    uint32_t *weights; /* [size][taps] */
} weft__line_sums;

/* Computes lines `begin` to `end` - 1 of `size` bytes, rounded to the nearest. Input line k is at
 * from + k * stride, output line i at to + (i - begin) * to_stride. */
typedef void weft__lines_sum_fn(const weft__line_sums *sums, int64_t begin, int64_t end, int64_t size,
                                const uint8_t *from, int64_t stride, uint8_t *to, int64_t to_stride);

/* Copies byte j of line i to byte i of line j. There must be readable input, of any value, until `rows` and
 * `columns` are multiples of WEFT__TILE. */
typedef void weft__lines_transpose_fn(const uint8_t *from, int64_t stride, int64_t rows, int64_t columns,
                                      uint8_t *to, int64_t to_stride);

/* Makes red, green and blue of n pixels of luma and chroma, in place: the full range of JFIF, ITU-R BT.601.
 */
typedef void weft__lines_colour_fn(uint8_t *luma_red, uint8_t *chroma_green, uint8_t *chroma_blue, int64_t n);

typedef struct weft__line_loops {
    weft__lines_sum_fn *sum;
    weft__lines_transpose_fn *transpose;
    weft__lines_colour_fn *colour;
} weft__line_loops;

extern const weft__line_loops weft__line_loops_baseline, weft__line_loops_avx2, weft__line_loops_avx512;

#endif
