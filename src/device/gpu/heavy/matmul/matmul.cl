/* What the matmul templates share: c (m, n) = a (m, k) b (k, n), for each matmul of a batch.
 *
 * A work-group computes one block of one c. If k is divided into `splits` parts, it computes the sums over one part:
 *
 *              k0    k1                       j0
 *          +---+-----+---+                +---+----+---+
 *      a   |   |     |   |   i0       b   |   |    |   |   k0         c   +---+----+---+
 *          |   |#####|   |                |   |####|   |                  |   |    |   |   i0
 *          |   |     |   |                |   |    |   |   k1             |   |####|   |   block_m rows,
 *          +---+-----+---+                +---+----+---+                  +---+----+---+   block_n columns
 *
 * Order of additions: an element is the sum, in order of k, of sums over CHUNK products each, which are added in order
 * by fused multiply-adds. Such short chains keep rounding errors small. The order is the same for every tile,
 * but with K_SLICES, where it follows from the shape.
 *
 * Definitions by matmul.c, 0 or 1 if not said otherwise:
 *
 *     WIDE      c holds sums (S), not elements (T)
 *     INTEGERS  sums are integers
 *     SINK      c belongs to a variable, which is left as it is after a fault
 *     SUMS      also returns the row sums of a, added in the same order
 *     EPILOGUE  `epilogue` (kernel/source.h) stores the results
 *     STRIDE    type of offsets in a and b: int if all of them fit, else w_i64
 *     IMAGE     which operand is windows of images (conv/image_params.h)
 *     SPREAD    rows of c are pixels that are not contiguous
 *     FLAT      work-groups are numbered along one dimension
 *     K_SLICES  a work-group divides its part of k into so many slices, of length `part` each (matmul_slices.cl);
 *               K_SLICE is the slice of a warp
 *
 * Comes after storage.cl and image.cl, before matmul_*.cl. */
#if !IMAGE
#define IMAGE_NUMBERS
#define BEGIN_IMAGE
#endif
#if WIDE
#define O              S
#define KEEP(p, i, v)  ((p)[i] = (v))
#else
#define O              T
#define KEEP(p, i, v)  STORE(p, i, v)
#endif

/* Where results go. OUT and OUT_NUMBERS are the parameters of a kernel, TO those of a function, and HERE the arguments
 * for TO. PUT stores the result of row i and column j, counted from HERE. */
#if EPILOGUE
#define OUT                   EPILOGUE_POINTERS
#define OUT_NUMBERS           w_epilogue epilogue;
#define TO                    EPILOGUE_POINTERS w_i64 line, int column, const w_epilogue numbers
#define HERE                  EPILOGUE_NAMES line, column, numbers
#define PUT(i, j, v)          epilogue(line + (i), column + (j), v, EPILOGUE_NAMES numbers)
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
#endif

#if SUMS
#define SUMS_OUT     W_GLOBAL S *sums,
#define SUMS_NUMBERS w_i64 sums_at;
#else
#define SUMS_OUT
#define SUMS_NUMBERS
#endif

#ifndef K_SLICES
#define K_SLICES 1
#endif
#if K_SLICES > 1
#define K_SLICE (w_item(0) / 32 % K_SLICES)
#else
#define K_SLICE 0
#endif

#if INTEGERS
#define MAD(x, y, z) ((x) * (y) + (z))
#else
#define MAD(x, y, z) fma(x, y, z)
#endif

#ifdef S4 /* four sums, of the templates that need them */
INLINE void spread(const S4 from, S *to) { to[0] = from.x, to[1] = from.y, to[2] = from.z, to[3] = from.w; }
#endif

#include "device/gpu/heavy/matmul/matmul_params.h"

/* Returns the offset of matmul `item` of the batch. */
W_FN w_i64 item_at(const w_matmul *p, int item, const w_i64 *batch) {
    const int at2 = item / p->extent[2], at1 = at2 / p->extent[1], at0 = at1 / p->extent[0];
    return at0 * batch[0] + at1 % p->extent[0] * batch[1] + at2 % p->extent[1] * batch[2] +
           item % p->extent[2] * batch[3];
}

W_NUMBERS(matmul) {
    w_i64 a_at, b_at;
    OUT_NUMBERS
    SUMS_NUMBERS
    w_matmul matmul;
    IMAGE_NUMBERS
    int command;
};
#define PARAMETERS                                                                                           \
    const W_GLOBAL T *a, const W_GLOBAL T *b, OUT SUMS_OUT W_GLOBAL w_faults *faults,                        \
        const W_NUMBERS(matmul) given

/* The block of this work-group, of `wide` x `high` blocks. ITEM_PART is the number of the matmul in the batch, times
 * `splits`, plus the part of k. FLAT: GPUs allow more work-groups along the first dimension than along the others. */
#if FLAT
#define BLOCK_ROW    (w_group(0) / of.wide % of.high)
#define BLOCK_COLUMN (w_group(0) % of.wide)
#define ITEM_PART    (w_group(0) / of.wide / of.high)
#else
#define BLOCK_ROW    w_group(1)
#define BLOCK_COLUMN w_group(0)
#define ITEM_PART    w_group(2)
#endif

/* Begins a kernel. Declares:
 *
 *     i0, j0      first row and column of the block; `rows` and `cols` are its extents
 *     k0, k1      the part of k
 *     a, b        now point to the block's first row and column, at k = 0
 *     c, sums     now point to the block's first result */
#define BEGIN                                                                                                 \
    W_RETURN_IF_FAULTED(ITEMS, SINK)                                                                          \
    const w_matmul of = given.matmul;                                                                         \
    const int j0 = BLOCK_COLUMN * of.block_n, i0 = BLOCK_ROW * of.block_m;                                    \
    const int item_part = ITEM_PART, item = item_part / of.splits;                                            \
    const int rows = min(of.block_m, of.m - i0), cols = min(of.block_n, of.n - j0);                           \
    const int k0 = (item_part % of.splits * K_SLICES + K_SLICE) * of.part, k1 = min(of.k, k0 + of.part);      \
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
