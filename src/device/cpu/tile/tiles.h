/* Tile primitives: loops over about WEFT_TILE elements. There is one table of them for each instruction set.
 * A tile program (kernel_plan.c) is a list of calls of them. Elements are computed in one of five compute
 * types. Loads and stores convert storage types.
 * Must not know: kernels. Read next: tiles.c. */
#ifndef WEFT_DEVICE_CPU_TILE_TILES_H
#define WEFT_DEVICE_CPU_TILE_TILES_H

#include "device/cpu/cpu.h"

#define WEFT_TILE 1024 /* elements that a tile usually holds */

/* Compute types. f16 and bf16 compute in f32; bool and integers below 32 bits in i32, with bool as 0 or 1;
 * u32 in i64. */
typedef enum weft_ct {
    WEFT_CT_F32,
    WEFT_CT_F64,
    WEFT_CT_I32,
    WEFT_CT_I64,
    WEFT_CT_U64,
    WEFT_CT_COUNT
} weft_ct;

/* Says which operands are one element instead of n: bit 0 a, bit 1 b, bit 2 c. If all are, n is 1 and the
 * variant is 0. */
#define WEFT_TILE_VARIANTS 8

typedef void (*weft_tile_calc)(int64_t n, void *out, const void *a, const void *b, const void *c);
/* out[i] = reduction of a[i * length .. (i+1) * length). length > 0. */
typedef void (*weft_tile_reduce)(int64_t rows, int64_t length, void *out, const void *a);
typedef void (*weft_tile_products)(int64_t rows, int64_t length, void *out, const void *a, const void *b);
typedef void (*weft_tile_join)(int64_t n, void *so_far, const void *next);
typedef void (*weft_tile_load)(int64_t n, void *out, const void *from, int64_t stride);
typedef void (*weft_tile_store)(int64_t n, void *to, int64_t stride, const void *a);
/* A box of memory with three dimensions, the last one innermost. The tile holds its elements contiguously. */
typedef struct weft_tile_box {
    int64_t n[3], stride[3];
} weft_tile_box;
typedef void (*weft_tile_load_box)(const weft_tile_box *box, void *out, const void *from);
typedef void (*weft_tile_store_box)(const weft_tile_box *box, void *to, const void *a);
/* out[i] = from[i * stride + index[i] * pitch], or 0 if index[i] is outside 0..bound-1. Returns the first
 * such i, or -1. */
typedef int64_t (*weft_tile_gather)(int64_t n, void *out, const void *from, int64_t stride, const void *index,
                                    int64_t pitch, int64_t bound);
/* Copies with repetition. expand makes aabbcc, repeat makes abcabc. */
typedef void (*weft_tile_spread)(int64_t times, int64_t n, void *out, const void *a);

/* Two operations of f32 in one loop; both round. t = a FIRST b, then t + c, t - c, t * c or c - t. */
typedef enum weft_pair { WEFT_PAIR_ADD, WEFT_PAIR_SUB, WEFT_PAIR_MUL, WEFT_PAIR_FROM, WEFT_PAIRS } weft_pair;

typedef struct weft_tiles {
    weft_tile_calc calc[WEFT_OP_COUNT][WEFT_CT_COUNT][WEFT_TILE_VARIANTS];
    weft_tile_calc pair[WEFT_PAIR_FROM][WEFT_PAIRS]
                       [WEFT_TILE_VARIANTS];              /* unused if a and b are both one element */
    weft_tile_calc cast[WEFT_CT_COUNT][WEFT_DTYPE_COUNT]; /* to the same compute type; wraps integers */
    weft_tile_calc fill[WEFT_CT_COUNT];                   /* n copies of the element at a */
    weft_tile_reduce reduce[WEFT_OP_COUNT][WEFT_CT_COUNT];
    /* reduces each of `length` columns over the rows */
    weft_tile_products columns[WEFT_OP_COUNT][WEFT_CT_COUNT];
    weft_tile_products scaled[2],
        /* f32, f64. scaled: column sums of a[row] * b[row]; dot: row sums of a * b */
        dot[2];
    weft_tile_join join[WEFT_OP_COUNT][WEFT_CT_COUNT];
    weft_tile_load load[WEFT_DTYPE_COUNT];
    weft_tile_store store[WEFT_DTYPE_COUNT];
    weft_tile_load_box load_box[WEFT_DTYPE_COUNT];
    weft_tile_store_box store_box[WEFT_DTYPE_COUNT];
    weft_tile_gather gather[WEFT_DTYPE_COUNT][2]; /* index i32, i64 */
    weft_tile_spread expand[WEFT_CT_COUNT], repeat[WEFT_CT_COUNT];
    /* out[i] = start + i * stride, as i32 or i64 */
    void (*count[2])(int64_t n, void *out, int64_t start, int64_t stride);
    /* out[i] = 32 random bits of element start + i * stride; key[8] holds the key words */
    void (*random)(int64_t n, int32_t *out, int64_t start, int64_t stride, const int32_t *key);
    /* Returns the first i with a[i] == 0, or -1. For i32 and i64. */
    int64_t (*find_zero[2])(int64_t n, const void *a);
} weft_tiles;

/* Returns the compute type of a dtype, or WEFT_CT_COUNT if the CPU device does not support it. */
weft_ct weft__ct(weft_dtype dtype);
size_t weft__ct_size(weft_ct ct);

extern const weft_tiles weft__tiles_baseline;
#if defined(__x86_64__)
extern const weft_tiles weft__tiles_avx2, weft__tiles_avx512;
#endif
/* Returns the table for weft__cpu_isa(). */
const weft_tiles *weft__tiles(void);

#endif
