/* Matrices whose rows are blocks of quantised numbers, as GGUF files store them (ggml-common.h of
 * https://github.com/ggml-org/ggml). A row of k numbers is k / elements blocks, one after the other. A block
 * has a scale d in f16 and numbers q of a few bits. All numbers are little-endian.
 *
 *     format  elements  bytes  layout of a block                                     a number
 *     Q4_0          32     18  d; 16 bytes: number i below, number i + 16 above      d (q - 8)
 *     Q4_1          32     20  d, m (f16); 16 bytes as in Q4_0                       d q + m
 *     Q8_0          32     34  d; 32 signed bytes                                    d q
 *     Q4_K         256    144  d, e (f16); 12 bytes: s and l, 6 bits, for each 32    d s q - e l
 *                              numbers; for each 64 numbers 32 bytes: number i
 *                              below, number i + 32 above
 *     Q6_K         256    210  for each 128 numbers 64 bytes of low bits: number i   d s (q - 32)
 *                              below, number i + 64 above; for each 128 numbers 32
 *                              bytes of two high bits: number i + 32 j in bits 2 j;
 *                              16 signed bytes s for each 16 numbers; d
 *
 * Must not know: devices, files. Read next: packed.c, ops/packed.c. */
#ifndef WEFT_HEAVY_PACKED_H
#define WEFT_HEAVY_PACKED_H

#include <weft/dtype.h>

/* Operands. A matmul has X, MATRIX and its result. Unpacking has MATRIX and its result only. */
enum { WEFT_PACKED_X, WEFT_PACKED_MATRIX, WEFT_PACKED_OUT, WEFT_PACKED_OPERANDS };

/* y (m, n) = x (m, k) w^T, with w (n, k) packed; or the n k numbers of w themselves. All floats are f32, and
 * all operands are contiguous. */
typedef struct weft_heavy_packed {
    uint8_t format; /* weft_packed_format */
    bool multiply;
    int64_t m, n, k;
} weft_heavy_packed;

typedef struct weft_packed_info {
    const char *name;
    int64_t elements, bytes; /* of a block */
    int64_t span;            /* numbers that share a scale; a block has one or more spans */
} weft_packed_info;

/* Returns what is known of a format; NULL if there is no such format. */
const weft_packed_info *weft__packed_info(int format);

/* Returns the bytes of a row of k numbers; k is whole blocks. */
static inline int64_t weft__packed_row(const weft_packed_info *info, int64_t k) {
    return k / info->elements * info->bytes;
}

#endif
