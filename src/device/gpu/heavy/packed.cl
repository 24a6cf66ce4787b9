/* Matmul of ROWS rows, as in decoding, by a packed matrix (heavy/packed.h). Blocks are read in chunks of 16 numbers,
 * which share a scale in each format. WIDE work-items share a column and take its chunks in turn; the first of them
 * adds up their sums in order. x is not rounded.
 *
 * ROWS, WIDE, BLOCK (numbers), BYTES, and one of Q4_0, Q4_1, Q8_0, Q4_K, Q6_K are defined. */
#include "device/gpu/heavy/packed_params.h"

/* The f16 at a byte. */
W_FN float half_at(const W_GLOBAL uchar *w, w_i64 at) {
    const int bits = (int)w[at] | (int)w[at + 1] << 8, exponent = bits >> 10 & 31, fraction = bits & 1023;
    const float small = (float)fraction * 5.9604644775390625e-8f; /* 2^-24 */
    const int wide = exponent == 31 ? 255 : exponent + 112;
    const float size = exponent == 0 ? small : as_float(wide << 23 | fraction << 13);
    return bits >> 15 != 0 ? -size : size;
}

W_FN int signed_at(const W_GLOBAL uchar *w, w_i64 at) { return ((int)w[at] ^ 128) - 128; }

/* Of chunk c of the block at byte `at`: the factor of its numbers, what is added, and number j without both. */
#define BYTE(at)         ((int)w[at])
#ifdef Q4_K
W_FN int scale_of(const W_GLOBAL uchar *w, w_i64 at, int s) {
    return s < 4 ? (int)w[at + 4 + s] & 63 : ((int)w[at + 8 + s] & 15) | (int)w[at + s] >> 6 << 4;
}
W_FN int least_of(const W_GLOBAL uchar *w, w_i64 at, int s) {
    return s < 4 ? (int)w[at + 8 + s] & 63 : (int)w[at + 8 + s] >> 4 | (int)w[at + 4 + s] >> 6 << 4;
}
#define FACTOR(at, c)    (half_at(w, at) * (float)scale_of(w, at, (c) / 2))
#define ADDED(at, c)     (-half_at(w, (at) + 2) * (float)least_of(w, at, (c) / 2))
#define NUMBER(at, c, j) (BYTE((at) + 16 + (c) / 4 * 32 + (c) % 2 * 16 + (j)) >> (c) / 2 % 2 * 4 & 15)
#elif defined(Q6_K)
#define FACTOR(at, c)    (half_at(w, (at) + 208) * (float)signed_at(w, (at) + 192 + (c)))
#define ADDED(at, c)     0.0f
#define NUMBER(at, c, j)                                                                             \
    ((BYTE((at) + (c) / 8 * 64 + (c) % 4 * 16 + (j)) >> (c) / 4 % 2 * 4 & 15) +                               \
     (BYTE((at) + 128 + (c) / 8 * 32 + (c) % 2 * 16 + (j)) >> (c) / 2 % 4 * 2 & 3) * 16 - 32)
#elif defined(Q8_0)
#define FACTOR(at, c)    half_at(w, at)
#define ADDED(at, c)     0.0f
#define NUMBER(at, c, j) ((BYTE((at) + 2 + (c) * 16 + (j)) ^ 128) - 128)
#elif defined(Q4_1)
#define FACTOR(at, c)    half_at(w, at)
#define ADDED(at, c)     half_at(w, (at) + 2)
#define NUMBER(at, c, j) (BYTE((at) + 4 + (j)) >> (c) * 4 & 15)
#else
#define FACTOR(at, c)    half_at(w, at)
#define ADDED(at, c)     0.0f
#define NUMBER(at, c, j) ((BYTE((at) + 2 + (j)) >> (c) * 4 & 15) - 8)
#endif

W_NUMBERS(packed) {
    w_i64 x_at, w_at, out_at;
    w_packed packed;
    int command;
};
W_SHARED(packed) { float sum[ROWS * ITEMS]; };
W_KERNEL W_ITEMS(ITEMS, 1, 1) void packed(const W_GLOBAL float *x, const W_GLOBAL uchar *w, W_GLOBAL float *out,
                                          W_GLOBAL w_faults *faults, const W_NUMBERS(packed) given
                                          W_ALSO(packed)) {
    W_MEMORY(packed)
    const w_packed of = given.packed;
    W_RETURN_IF_FAULTED(ITEMS, of.sink)
    const w_i64 n = of.n, k = of.k;
    const int item = w_item(0), lane = item % WIDE;
    const w_i64 column = (w_i64)w_group(0) * (ITEMS / WIDE) + item / WIDE;
    float sum[ROWS];
    for (int r = 0; r < ROWS; r++) sum[r] = 0.0f;
    for (w_i64 chunk = lane; chunk < k / 16 && column < n; chunk += WIDE) {
        const w_i64 at = given.w_at + column * of.row_bytes + chunk / (BLOCK / 16) * BYTES;
        const int c = (int)(chunk % (BLOCK / 16));
        const float factor = FACTOR(at, c), added = ADDED(at, c);
        for (int j = 0; j < 16; j++) {
            const float v = (float)NUMBER(at, c, j) * factor + added;
            for (int r = 0; r < ROWS; r++) sum[r] += x[given.x_at + r * k + chunk * 16 + j] * v;
        }
    }
    for (int r = 0; r < ROWS; r++) shared->sum[r * ITEMS + item] = sum[r];
    w_barrier();
    if (lane != 0 || column >= n) return;
    for (int r = 0; r < ROWS; r++) {
        float total = 0.0f;
        for (int i = 0; i < WIDE; i++) total += shared->sum[r * ITEMS + item + i];
        out[given.out_at + r * n + column] = total;
    }
}
