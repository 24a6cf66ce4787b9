/* Weighted sums of lines, transposing, and colours. The file is compiled once for each instruction set. All
 * copies give the same bytes, because they compute with integers. Must not know: images. Read next:
 * image_fit.c. */
#include <string.h>

#include "data/image_lines.h"

#define ALWAYS      static inline __attribute__((always_inline))
#define JOIN_(a, b) a##b
#define JOIN(a, b)  JOIN_(a, b)

enum { CHUNK = 256 }; /* bytes whose sums are kept at once */

/* ---- sums of few lines ----
 *
 * Two neighbouring bytes are loaded as one number of 16 bits. Each is moved to the upper half of a number of
 * its own, multiplied, and added in units of 1/256. The two sums end as two bytes again, so that no byte has
 * to change its place. It does not matter which byte comes first. */

/* Sums of the lower and the upper bytes. */
typedef struct pairs {
    uint16_t lower[CHUNK / 2], upper[CHUNK / 2];
} pairs;

ALWAYS uint16_t high(uint16_t a, uint16_t weight) { return (uint16_t)((uint32_t)a * weight >> 16); }

/* Adds up to four lines to `sums`, or to `start` if they are the first ones. The last ones give the result.
 * After inlining, all but the pointers and `size` is constant. */
ALWAYS void add(int taps, bool begins, bool ends, uint16_t start, int64_t size, const uint8_t *restrict from,
                int64_t stride, const uint32_t *weights, pairs *restrict sums, uint8_t *restrict to) {
    uint16_t weight[4];
    for (int k = 0; k < 4; k++) weight[k] = k < taps ? (uint16_t)weights[k] : 0;
    for (int64_t i = 0; i < size / 2; i++) {
        uint16_t lower = begins ? start : sums->lower[i], upper = begins ? start : sums->upper[i], both;
        for (int k = 0; k < taps; k++) {
            memcpy(&both, from + k * stride + 2 * i, 2);
            lower = (uint16_t)(lower + high((uint16_t)(both << 8), weight[k]));
            upper = (uint16_t)(upper + high(both & 0xff00, weight[k]));
        }
        both = (uint16_t)(lower >> 8 | (upper & 0xff00));
        if (ends)
            memcpy(to + 2 * i, &both, 2);
        else
            sums->lower[i] = lower, sums->upper[i] = upper;
    }
}

/* Returns the sum of one byte of each line, as `add` computes it. */
static uint8_t sum_byte(const uint8_t *from, int64_t stride, const uint32_t *weights, int taps,
                        uint16_t start) {
    uint16_t sum = start;
    for (int k = 0; k < taps; k++)
        sum = (uint16_t)(sum + high((uint16_t)(from[k * stride] << 8), (uint16_t)weights[k]));
    return (uint8_t)(sum >> 8);
}

/* Each product is rounded down, by half a unit on average. The terms of `start` undo this and round the sum
 * to the nearest byte. */
static void sum_few(const uint8_t *from, int64_t stride, const uint32_t *weights, int taps, int64_t size,
                    uint8_t *to) {
    const uint16_t start = (uint16_t)(128 + taps / 2);
    if (size % 2) to[size - 1] = sum_byte(from + size - 1, stride, weights, taps, start);
    switch (taps) {
    case 1: add(1, true, true, start, size, from, stride, weights, NULL, to); return;
    case 2: add(2, true, true, start, size, from, stride, weights, NULL, to); return;
    case 3: add(3, true, true, start, size, from, stride, weights, NULL, to); return;
    case 4: add(4, true, true, start, size, from, stride, weights, NULL, to); return;
    default: break;
    }
    for (int64_t at = 0; at < size; at += CHUNK) {
        const int64_t n = size - at < CHUNK ? size - at : CHUNK;
        const uint8_t *line = from + at;
        pairs sums;
        int k = 4;
        add(4, true, false, start, n, line, stride, weights, &sums, NULL);
        for (; taps - k > 4; k += 4)
            add(4, false, false, 0, n, line + k * stride, stride, weights + k, &sums, NULL);
        line += k * stride;
        switch (taps - k) {
        case 1: add(1, false, true, 0, n, line, stride, weights + k, &sums, to + at); break;
        case 2: add(2, false, true, 0, n, line, stride, weights + k, &sums, to + at); break;
        case 3: add(3, false, true, 0, n, line, stride, weights + k, &sums, to + at); break;
        default: add(4, false, true, 0, n, line, stride, weights + k, &sums, to + at); break;
        }
    }
}

/* ---- sums of many lines ---- */

static void sum_many(const uint8_t *from, int64_t stride, const uint32_t *weights, int64_t taps, int64_t size,
                     uint8_t *to) {
    for (int64_t at = 0; at < size; at += CHUNK) {
        const int64_t n = size - at < CHUNK ? size - at : CHUNK;
        uint32_t sums[CHUNK];
        for (int64_t i = 0; i < n; i++) sums[i] = WEFT__ONE_WIDE / 2;
        for (int64_t k = 0; k < taps; k++) {
            const uint8_t *line = from + k * stride + at;
            const uint32_t weight = weights[k];
            for (int64_t i = 0; i < n; i++) sums[i] += weight * line[i];
        }
        for (int64_t i = 0; i < n; i++) to[at + i] = (uint8_t)(sums[i] / WEFT__ONE_WIDE);
    }
}

static void sum_lines(const weft__line_sums *sums, int64_t begin, int64_t end, int64_t size,
                      const uint8_t *from, int64_t stride, uint8_t *to, int64_t to_stride) {
    const bool few = sums->taps <= WEFT__TAPS_NARROW;
    for (int64_t i = begin; i < end; i++, to += to_stride) {
        const uint8_t *first = from + sums->first[i] * stride;
        const uint32_t *weights = sums->weights + i * sums->taps;
        if (few)
            sum_few(first, stride, weights, (int)sums->count[i], size, to);
        else
            sum_many(first, stride, weights, sums->count[i], size, to);
    }
}

/* ---- transposing ---- */

typedef uint8_t tile_line __attribute__((vector_size(WEFT__TILE)));

#define LOWER(a, b) __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define UPPER(a, b)                                                                                          \
    __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)

/* Interleaves line i with line i + 8. Four times this transposes the tile. */
ALWAYS void interleave(const tile_line from[WEFT__TILE], tile_line to[WEFT__TILE]) {
    for (int i = 0; i < WEFT__TILE / 2; i++) {
        to[2 * i] = LOWER(from[i], from[i + WEFT__TILE / 2]);
        to[2 * i + 1] = UPPER(from[i], from[i + WEFT__TILE / 2]);
    }
}

ALWAYS void transpose_tile(const uint8_t *from, int64_t stride, int64_t rows, int64_t columns, uint8_t *to,
                           int64_t to_stride) {
    tile_line a[WEFT__TILE], b[WEFT__TILE];
    for (int i = 0; i < WEFT__TILE; i++) memcpy(&a[i], from + i * stride, WEFT__TILE);
    interleave(a, b);
    interleave(b, a);
    interleave(a, b);
    interleave(b, a);
    if (rows >= WEFT__TILE && columns >= WEFT__TILE)
        for (int i = 0; i < WEFT__TILE; i++) memcpy(to + i * to_stride, &a[i], WEFT__TILE);
    else
        for (int i = 0; i < WEFT__TILE && i < columns; i++)
            memcpy(to + i * to_stride, &a[i], (size_t)(rows < WEFT__TILE ? rows : WEFT__TILE));
}

static void transpose(const uint8_t *from, int64_t stride, int64_t rows, int64_t columns, uint8_t *to,
                      int64_t to_stride) {
    for (int64_t i = 0; i < rows; i += WEFT__TILE)
        for (int64_t j = 0; j < columns; j += WEFT__TILE)
            transpose_tile(from + i * stride + j, stride, rows - i, columns - j, to + j * to_stride + i,
                           to_stride);
}

/* ---- colours ---- */

/* Returns value * factor / 65536, rounded down. The factor is below 32768, so that it fits into 16 bits. */
ALWAYS int16_t part(int16_t value, int16_t factor) { return (int16_t)((int32_t)value * factor >> 16); }

/* Rounds a number of 64ths to a byte. */
ALWAYS uint8_t to_byte(int16_t value) {
    const int16_t whole = (int16_t)((value + 32) >> 6), low = whole < 0 ? 0 : whole;
    return (uint8_t)(low > 255 ? 255 : low);
}

/* R = Y + 1.402 Cr, G = Y - 0.344136 Cb - 0.714136 Cr, B = Y + 1.772 Cb. Numbers are 64ths, since these sums
 * fit into 16 bits. Factors above a half are written as a whole number and the rest. */
static void colour(uint8_t *restrict luma_red, uint8_t *restrict chroma_green, uint8_t *restrict chroma_blue,
                   int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        const int16_t luma = (int16_t)(luma_red[i] << 6), cb = (int16_t)((chroma_green[i] - 128) * 64),
                      cr = (int16_t)((chroma_blue[i] - 128) * 64);
        luma_red[i] = to_byte((int16_t)(luma + cr + part(cr, 26345)));
        chroma_green[i] = to_byte((int16_t)(luma - part(cb, 22553) - cr + part(cr, 18734)));
        chroma_blue[i] = to_byte((int16_t)(luma + 2 * cb - part(cb, 14942)));
    }
}

const weft__line_loops JOIN(weft__line_loops_, WEFT_ISA) = {sum_lines, transpose, colour};
