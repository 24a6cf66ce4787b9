/* What the sources of products share. A group computes a block of one matmul_plan of the batch or, where k is cut into
 * `splits`, the sums over one part of it. Whatever the tile, an element is the sum, in order, of
 * sums over CHUNK products each, in order and by fused multiply-adds: short chains, for their rounding errors. WIDE: c holds sums (S) as they are. SINK: c is of a
 * variable, which a fault keeps as it is. SUMS: a is added up over k as well, in the same order. EPILOGUE: what is stored is what `epilogue` stores (kernel/source.h).
 * Behind storage.cl and, where an operand is windows of images, image.cl; before matmul_*.cl. */
#if !IMAGE
#define IMAGE_NUMBERS
#define BEGIN_IMAGE
#endif
#if WIDE
#define O              S
#define KEEP(p, i, v)  ((p)[i] = (v))
#define KEEP16(p, v)   vstore16(v, 0, p)
#else
#define O              T
#define KEEP(p, i, v)  STORE(p, i, v)
#define KEEP16(p, v)   STORE16(p, v)
#endif

/* Where elements go: as parameters of a kernel (OUT, and numbers), of a function (TO), and as arguments (HERE);
 * and how: that of row i and column j, counted from there, or sixteen, of which `count` are elements of c. */
#if EPILOGUE
#define OUT                   EPILOGUE_POINTERS
#define OUT_NUMBERS           w_epilogue epilogue;
#define TO                    EPILOGUE_POINTERS w_i64 line, int column, const w_epilogue numbers
#define HERE                  EPILOGUE_NAMES line, column, numbers
#define PUT(i, j, v)          epilogue(line + (i), column + (j), v, EPILOGUE_NAMES numbers)
#define PUT16(i, j, count, v) epilogue(line + (i), column + (j), min(count, 16), v, EPILOGUE_NAMES numbers)
#else
#define OUT                   W_GLOBAL O *c,
#define OUT_NUMBERS           w_i64 c_at;
#if SPREAD
#define TO                    W_GLOBAL O *c, w_i64 c_m, const w_image *view, int line
#define HERE                  c, c_m, view, line
#define ROW_AT(i)             pixel_at(view, line + (i))
#else
#define TO                    W_GLOBAL O *c, w_i64 c_m
#define HERE                  c, c_m
#define ROW_AT(i)             (i)
#endif
#define PUT(i, j, v)          KEEP(c, ROW_AT(i) * c_m + (j), v)
#define PUT16(i, j, count, v) put16(c + ROW_AT(i) * c_m + (j), count, v)
#ifdef VECTORS
W_FN void put16(W_GLOBAL O *p, int count, S16 v) {
    if (count >= 16) {
        KEEP16(p, v);
        return;
    }
    S x[16];
    vstore16(v, 0, x);
    for (int j = 0; j < count; j++) KEEP(p, j, x[j]);
}
#endif
#endif

#if SUMS
#define SUMS_OUT     W_GLOBAL S *sums,
#define SUMS_NUMBERS w_i64 sums_at;
#else
#define SUMS_OUT
#define SUMS_NUMBERS
#endif

#if INTEGERS
#define MAD(x, y, z) ((x) * (y) + (z))
#else
#define MAD(x, y, z) fma(x, y, z)
#endif

/* STRIDE: int where all places of a and b in one matmul_plan fit, else w_i64. */
#include "device/gpu/heavy/matmul/matmul_params.h"

/* Where item `item` of the batch lies. */
W_FN w_i64 item_at(const w_matmul *p, int item, const w_i64 *batch) {
    const int at2 = item / p->extent[2], at1 = at2 / p->extent[1], at0 = at1 / p->extent[0];
    return at0 * batch[0] + at1 % p->extent[0] * batch[1] + at2 % p->extent[1] * batch[2] +
           item % p->extent[2] * batch[3];
}

W_NUMBERS(matmul) {
    w_i64 a_at, b_at;
    OUT_NUMBERS
    SUMS_NUMBERS
    w_matmul matmul_plan;
    IMAGE_NUMBERS
    int command;
};
#define PARAMETERS                                                                                           \
    const W_GLOBAL T *a, const W_GLOBAL T *b, OUT SUMS_OUT W_GLOBAL w_faults *faults,                        \
        const W_NUMBERS(matmul) given

/* Which block a group computes, of `wide` x `high`, and of which item of the batch and part of k. FLAT: groups lie along
 * one dimension, of which cards have more than along the others. */
#if FLAT
#define BLOCK_ROW    (w_group(0) / of.wide % of.high)
#define BLOCK_COLUMN (w_group(0) % of.wide)
#define ITEM_PART    (w_group(0) / of.wide / of.high)
#else
#define BLOCK_ROW    w_group(1)
#define BLOCK_COLUMN w_group(0)
#define ITEM_PART    w_group(2)
#endif

/* Opens a kernel: i0, j0, rows and cols of the block; k0 and k1 of the part; a and b at the block's first
 * elements of k = 0, c and sums at its first element. */
#define BEGIN                                                                                                 \
    if (SINK && w_faulted(faults)) return;                                                                    \
    const w_matmul of = given.matmul_plan;                                                                       \
    const int j0 = BLOCK_COLUMN * of.block_n, i0 = BLOCK_ROW * of.block_m;                                    \
    const int item_part = ITEM_PART, item = item_part / of.splits;                                            \
    const int rows = min(of.block_m, of.m - i0), cols = min(of.block_n, of.n - j0);                           \
    const int k0 = item_part % of.splits * of.part, k1 = min(of.k, k0 + of.part);                             \
    const STRIDE a_m = (STRIDE)of.a_m, a_k = (STRIDE)of.a_k, b_k = (STRIDE)of.b_k, b_n = (STRIDE)of.b_n;      \
    a += given.a_at + item_at(&of, item, of.a_batch) + i0 * a_m;                                              \
    b += given.b_at + item_at(&of, item, of.b_batch) + j0 * b_n;                                              \
    BEGIN_IMAGE                                                                                               \
    BEGIN_SUMS                                                                                                \
    BEGIN_C
#if SUMS /* there is no batch */
#define BEGIN_SUMS sums += given.sums_at + item_part * (w_i64)of.m + i0;
#else
#define BEGIN_SUMS
#endif
#if EPILOGUE
#define BEGIN_C                                                                                               \
    const w_epilogue numbers = given.epilogue;                                                                \
    const w_i64 line = item * (w_i64)of.m + i0;                                                               \
    const int column = j0;
#elif SPREAD
#define BEGIN_C                                                                                               \
    const w_i64 c_m = of.c_m;                                                                                 \
    const int line = i0;                                                                                      \
    c += given.c_at + item_at(&of, item, of.c_batch) + j0;
#else
#define BEGIN_C                                                                                               \
    const w_i64 c_m = of.c_m;                                                                                 \
    c += given.c_at + i0 * c_m + j0;                                                                          \
    c += of.splits > 1 ? item_part * (w_i64)of.m * of.n : item_at(&of, item, of.c_batch);
#endif
