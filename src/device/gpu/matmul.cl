/* What the texts of products share. A group computes a block of one product of the batch or, where k is cut into
 * `splits`, the sums over one part of it. Whatever the tile, an element is the sum, in order, of
 * sums over CHUNK products each, in order and by fused multiply-adds: short chains, for their rounding errors. WIDE: c holds sums (S) as they are. Before storage.cl and matmul_*.cl. */
#if WIDE
#define O              S
#define PUT(p, i, v)   ((p)[i] = (v))
#define PUT16(p, v)    vstore16(v, 0, p)
#else
#define O              T
#define PUT(p, i, v)   STORE(p, i, v)
#define PUT16(p, v)    STORE16(p, v)
#endif
#if INTEGERS
#define MAD(x, y, z) ((x) * (y) + (z))
#else
#define MAD(x, y, z) fma(x, y, z)
#endif

/* Functions whose counts are constants where they are called, and whose arrays are registers then. */
#define INLINE W_FN __attribute__((always_inline))

#define CHUNK 128

#define BATCH(name) w_i64 name##0, w_i64 name##1, w_i64 name##2, w_i64 name##3
#define PARAMETERS                                                                                           \
    const W_GLOBAL T *a, w_i64 a_at, const W_GLOBAL T *b, w_i64 b_at, W_GLOBAL O *c, w_i64 c_at, int m,      \
        int n, int k, w_i64 a_m, w_i64 a_k, w_i64 b_k, w_i64 b_n, w_i64 c_m, int splits, int part, int extent1, int extent2, \
        int extent3, BATCH(a_batch), BATCH(b_batch), BATCH(c_batch), int block_m, int block_n, int sink,      \
        W_GLOBAL w_faults *faults, int command

/* Opens a kernel: i0, j0, rows and cols of the block; k0 and k1 of the part; a and b at the block's first
 * elements of k = 0, c at its first element. */
#define BEGIN                                                                                                 \
    if (sink && w_faulted(faults)) return;                                                                    \
    const int j0 = w_group(0) * block_n, i0 = w_group(1) * block_m, item = w_group(2) / splits;               \
    const int rows = min(block_m, m - i0), cols = min(block_n, n - j0);                                       \
    const int k0 = w_group(2) % splits * part, k1 = min(k, k0 + part);                                        \
    const int at3 = item % extent3, at2 = item / extent3 % extent2, at1 = item / extent3 / extent2 % extent1; \
    const int at0 = item / extent3 / extent2 / extent1;                                                       \
    a += a_at + at0 * a_batch0 + at1 * a_batch1 + at2 * a_batch2 + at3 * a_batch3 + i0 * a_m; \
    b += b_at + at0 * b_batch0 + at1 * b_batch1 + at2 * b_batch2 + at3 * b_batch3 + j0 * b_n; \
    c += c_at + i0 * c_m + j0;                                                                                \
    if (splits > 1)                                                                                           \
        c += w_group(2) * (w_i64)m * n;                                                                       \
    else                                                                                                      \
        c += at0 * c_batch0 + at1 * c_batch1 + at2 * c_batch2 + at3 * c_batch3;
