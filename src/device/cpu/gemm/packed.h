/* Matmuls by packed matrices (heavy/packed.h): the kernels of each instruction set, in one table.
 * Must not know: tasks, threads. Read next: packed_own.c, then heavy/packed.c. */
#ifndef WEFT_DEVICE_CPU_GEMM_PACKED_H
#define WEFT_DEVICE_CPU_GEMM_PACKED_H

#include "device/cpu/cpu.h"

enum {
    WEFT_PACKED_COLUMNS =
        16, /* rows of the packed matrix that are multiplied at once: columns of the result */
    WEFT_PACKED_DEPTH = 1024 /* numbers of a row that are multiplied at once, whole blocks of each format */
};

/* Rows of x, rounded. A span is a group of numbers that share a scale in the packed matrix, and in x too. */
typedef struct weft_packed_x {
    int64_t k, spans;
    int8_t *q;     /* (rows, k): x is about scale * q */
    float *scale;  /* (rows, spans): the largest magnitude / 127; NaN if a number of the span is not finite */
    float *sum;    /* (rows, spans): scale * the sum of q */
    int32_t *less; /* (rows, spans): the sum of q, times what the format adds to its numbers, negated */
} weft_packed_x;

/* A packed matrix, from the first of up to WEFT_PACKED_COLUMNS rows on. */
typedef struct weft_packed_part {
    int format; /* weft_packed_format */
    const uint8_t *rows;
    int64_t row_bytes, count;
    int64_t after; /* bytes of the matrix behind these rows: they are prefetched */
} weft_packed_part;

typedef struct weft_packed_own {
    /* Rounds rows of x (rows, k), and fills in the memory of *to. */
    void (*round)(int format, int64_t rows, const float *x, const weft_packed_x *to);
    /* out (m, part.count) = x part^T; the rows of out are `step` apart. `panel` is WEFT_PACKED_PANEL bytes of
     * memory, aligned to 64 bytes. The order of additions depends on k alone. */
    void (*multiply)(const weft_packed_part *part, int64_t m, const weft_packed_x *x, float *out,
                     int64_t step, void *panel);
    /* Writes the numbers of so many blocks. */
    void (*unpack)(int format, int64_t blocks, const uint8_t *from, float *to);
} weft_packed_own;

/* Numbers of a panel, then scales and additive terms for each of up to 64 spans. */
enum { WEFT_PACKED_PANEL = WEFT_PACKED_COLUMNS * (WEFT_PACKED_DEPTH + 2 * 4 * WEFT_PACKED_DEPTH / 16) };

extern const weft_packed_own weft__packed_own_baseline;
#if defined(__x86_64__)
extern const weft_packed_own weft__packed_own_avx2, weft__packed_own_avx512, weft__packed_own_vnni;
#endif
/* isa.c: returns the table for weft__cpu_isa(). */
const weft_packed_own *weft__packed_own(void);

#endif
