/* Own matmuls, compiled once for each instruction set (WEFT_ISA: baseline, avx2, avx512) and exported as one
 * table. Vectors use the vector extension of gcc and clang. Only fused multiply-add, broadcast and masked
 * access are intrinsics, since contraction is switched off for the whole library.
 * Must not know: which instruction set the machine has; ../heavy/heavy.c chooses. Read next: gemm_float.inc,
 * matmul.c. */
#include <math.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "device/cpu/gemm/gemm.h"
#include "kernel/prelude.h"

#define ALWAYS inline __attribute__((always_inline))
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#define DEPTH            384 /* products added in sequence */
#define COLUMNS          768 /* of b packed at once; with DEPTH they fill the second cache */
#define BLOCK_ROWS       48  /* of a packed at once, for the same reason */
#define IN_PLACE_COLUMNS 256 /* of b: up to here rows of a are not packed */
#define IN_PLACE_ROWS    384 /* of a multiplied at once if not packed: they fit in the second cache */
#define TILE_STEP        8   /* elements from column to column of a packed tile of a, a power of two */
#define B_AHEAD          16  /* rows of a packed panel of b fetched before they are used */
#define PACK_AHEAD       8   /* rows to be packed next that are prefetched */
#define C_AHEAD          24 /* products between the prefetches of two rows of c, at the end of a tile's sum */
#define DIRECT_BYTES     65536 /* of b: smaller matmuls are not packed */

/* Returns how many products along k are added in sequence. The last block may have fewer. */
static ALWAYS int64_t depth_of(int64_t k) { return weft__ceil_div(k, weft__ceil_div(k, DEPTH)); }

/* A partition of an extent into parts of at most `most`, as few and as even as possible. An extent of 0 has
 * no parts. */
typedef struct weft_split {
    int64_t count, larger, size; /* first `larger` parts of size + 1, then parts of `size` */
} weft_split;

static ALWAYS weft_split split_of(int64_t extent, int64_t most) {
    if (extent == 0) return (weft_split){0, 0, 0};
    int64_t count = weft__ceil_div(extent, most);
    return (weft_split){count, extent % count, extent / count};
}

static ALWAYS int64_t split_size(weft_split s, int64_t i) { return s.size + (i < s.larger); }

static ALWAYS int64_t split_at(weft_split s, int64_t i) { return i * s.size + (i < s.larger ? i : s.larger); }

/* Prefetches piece i of n of the memory that is read next into the second cache. */
static ALWAYS void ask_ahead(const char *at, int64_t bytes, int64_t i, int64_t n) {
    const int64_t size = weft__ceil_div(bytes, 64 * n) * 64,
                  end = (i + 1) * size < bytes ? (i + 1) * size : bytes;
    for (int64_t b = i * size; b < end; b += 64) __builtin_prefetch(at + b, 0, 2);
}

static ALWAYS float float_of(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static ALWAYS uint32_t bits_of(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

/* ---- constants of each instruction set: registers and the shape of the kernels ---- */
#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#define ROWS_MAX     8
#define VECS_MAX     4
#define TILE_ROWS    8
#define TILE_VECS    3
#define DIRECT_ROWS  8
#define DIRECT_VECS  4
#define COLUMN_VECS  16
#define DIRECT_ROWS_OF                                                                                       \
    { 0, 8, 8, 8, 6 }
/* clang-format off */
#define DIRECT_LIST(X) \
    X(1, 1) X(2, 1) X(3, 1) X(4, 1) X(5, 1) X(6, 1) X(7, 1) X(8, 1) \
    X(1, 2) X(2, 2) X(3, 2) X(4, 2) X(5, 2) X(6, 2) X(7, 2) X(8, 2) \
    X(1, 3) X(2, 3) X(3, 3) X(4, 3) X(5, 3) X(6, 3) X(7, 3) X(8, 3) \
    X(1, 4) X(2, 4) X(3, 4) X(4, 4) X(5, 4) X(6, 4)
#define TILE_LIST(X) \
    X(1, 1) X(2, 1) X(3, 1) X(4, 1) X(5, 1) X(6, 1) X(7, 1) X(8, 1) \
    X(1, 2) X(2, 2) X(3, 2) X(4, 2) X(5, 2) X(6, 2) X(7, 2) X(8, 2) \
    X(1, 3) X(2, 3) X(3, 3) X(4, 3) X(5, 3) X(6, 3) X(7, 3) X(8, 3)
#define PAIR_LIST(X) \
    X(1, 1) X(2, 1) X(3, 1) X(4, 1) X(1, 2) X(2, 2) X(3, 2) X(4, 2) X(1, 3) X(2, 3) X(3, 3) X(4, 3)
#define CONV_ROWS 14
#define CONV_VECS 2
#define CONV_LIST(X) \
    X(1, 1) X(2, 1) X(3, 1) X(4, 1) X(5, 1) X(6, 1) X(7, 1) X(8, 1) X(9, 1) X(10, 1) X(11, 1) X(12, 1) \
    X(13, 1) X(14, 1) X(1, 2) X(2, 2) X(3, 2) X(4, 2) X(5, 2) X(6, 2) X(7, 2) X(8, 2) X(9, 2) X(10, 2) \
    X(11, 2) X(12, 2) X(13, 2) X(14, 2)
/* clang-format on */
#else
#define CONV_ROWS 6
#define CONV_VECS 2
#define CONV_LIST TILE_LIST
#if defined(__AVX2__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif
#define ROWS_MAX    8
#define VECS_MAX    2
#define TILE_ROWS   6
#define TILE_VECS   2
#define DIRECT_ROWS 8
#define DIRECT_VECS 2
#define COLUMN_VECS 8
#define DIRECT_ROWS_OF                                                                                       \
    { 0, 8, 6 }
#define DIRECT_LIST(X)                                                                                       \
    X(1, 1)                                                                                                  \
    X(2, 1) X(3, 1) X(4, 1) X(5, 1) X(6, 1) X(7, 1) X(8, 1) X(1, 2) X(2, 2) X(3, 2) X(4, 2) X(5, 2) X(6, 2)
#define TILE_LIST(X)                                                                                         \
    X(1, 1) X(2, 1) X(3, 1) X(4, 1) X(5, 1) X(6, 1) X(1, 2) X(2, 2) X(3, 2) X(4, 2) X(5, 2) X(6, 2)
#define PAIR_LIST(X) X(1, 1) X(2, 1) X(3, 1) X(1, 2) X(2, 2) X(3, 2)
#endif

#define INTERLEAVE_LOW(a, b)  __builtin_shufflevector(a, b, LOW_ORDER)
#define INTERLEAVE_HIGH(a, b) __builtin_shufflevector(a, b, HIGH_ORDER)

#define ORDER_LOW_2   0, 2
#define ORDER_HIGH_2  1, 3
#define ORDER_LOW_4   0, 4, 1, 5
#define ORDER_HIGH_4  2, 6, 3, 7
#define ORDER_LOW_8   0, 8, 1, 9, 2, 10, 3, 11
#define ORDER_HIGH_8  4, 12, 5, 13, 6, 14, 7, 15
#define ORDER_LOW_16  0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define ORDER_HIGH_16 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31

/* ---- the primitives of float and double vectors ---- */
#if defined(__AVX512F__)
typedef float v_f32 __attribute__((vector_size(64)));
typedef double v_f64 __attribute__((vector_size(64)));
static ALWAYS v_f32 set1_f32(float x) { return (v_f32)_mm512_set1_ps(x); }
static ALWAYS v_f64 set1_f64(double x) { return (v_f64)_mm512_set1_pd(x); }
static ALWAYS v_f32 fma_f32(v_f32 a, v_f32 b, v_f32 c) {
    return (v_f32)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}
static ALWAYS v_f64 fma_f64(v_f64 a, v_f64 b, v_f64 c) {
    return (v_f64)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
}
static ALWAYS v_f32 max_f32(v_f32 a, v_f32 b) { return (v_f32)_mm512_max_ps((__m512)a, (__m512)b); }
static ALWAYS v_f64 max_f64(v_f64 a, v_f64 b) { return (v_f64)_mm512_max_pd((__m512d)a, (__m512d)b); }
static ALWAYS v_f32 load_part_f32(const float *p, int64_t n) {
    return (v_f32)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1u), p);
}
static ALWAYS v_f64 load_part_f64(const double *p, int64_t n) {
    return (v_f64)_mm512_maskz_loadu_pd((__mmask8)((1u << n) - 1u), p);
}
static ALWAYS void store_part_f32(float *p, v_f32 v, int64_t n) {
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1u), (__m512)v);
}
static ALWAYS void store_part_f64(double *p, v_f64 v, int64_t n) {
    _mm512_mask_storeu_pd(p, (__mmask8)((1u << n) - 1u), (__m512d)v);
}
static ALWAYS float lanes_sum_f32(v_f32 v) { return _mm512_reduce_add_ps((__m512)v); }
static ALWAYS double lanes_sum_f64(v_f64 v) { return _mm512_reduce_add_pd((__m512d)v); }
#elif defined(__AVX2__)
typedef float v_f32 __attribute__((vector_size(32)));
typedef double v_f64 __attribute__((vector_size(32)));
/* Windows of these arrays are the masks of 1 to 8 lanes. */
static const int32_t mask_32[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
static const int64_t mask_64[8] = {-1, -1, -1, -1, 0, 0, 0, 0};
static ALWAYS v_f32 set1_f32(float x) { return (v_f32)_mm256_set1_ps(x); }
static ALWAYS v_f64 set1_f64(double x) { return (v_f64)_mm256_set1_pd(x); }
static ALWAYS v_f32 fma_f32(v_f32 a, v_f32 b, v_f32 c) {
    return (v_f32)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}
static ALWAYS v_f64 fma_f64(v_f64 a, v_f64 b, v_f64 c) {
    return (v_f64)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
}
static ALWAYS v_f32 max_f32(v_f32 a, v_f32 b) { return (v_f32)_mm256_max_ps((__m256)a, (__m256)b); }
static ALWAYS v_f64 max_f64(v_f64 a, v_f64 b) { return (v_f64)_mm256_max_pd((__m256d)a, (__m256d)b); }
static ALWAYS v_f32 load_part_f32(const float *p, int64_t n) {
    return (v_f32)_mm256_maskload_ps(p, _mm256_loadu_si256((const __m256i *)(const void *)(mask_32 + 8 - n)));
}
static ALWAYS v_f64 load_part_f64(const double *p, int64_t n) {
    return (v_f64)_mm256_maskload_pd(p, _mm256_loadu_si256((const __m256i *)(const void *)(mask_64 + 4 - n)));
}
static ALWAYS void store_part_f32(float *p, v_f32 v, int64_t n) {
    _mm256_maskstore_ps(p, _mm256_loadu_si256((const __m256i *)(const void *)(mask_32 + 8 - n)), (__m256)v);
}
static ALWAYS void store_part_f64(double *p, v_f64 v, int64_t n) {
    _mm256_maskstore_pd(p, _mm256_loadu_si256((const __m256i *)(const void *)(mask_64 + 4 - n)), (__m256d)v);
}
/* Adds the upper half to the lower half until one lane is left. All instruction sets add in this order. */
static ALWAYS float lanes_sum_f32(v_f32 v) {
    __m128 x = _mm_add_ps(_mm256_castps256_ps128((__m256)v), _mm256_extractf128_ps((__m256)v, 1));
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)));
}
static ALWAYS double lanes_sum_f64(v_f64 v) {
    __m128d x = _mm_add_pd(_mm256_castpd256_pd128((__m256d)v), _mm256_extractf128_pd((__m256d)v, 1));
    return _mm_cvtsd_f64(_mm_add_sd(x, _mm_unpackhi_pd(x, x)));
}
#else
typedef float v_f32 __attribute__((vector_size(16)));
typedef double v_f64 __attribute__((vector_size(16)));
static ALWAYS v_f32 set1_f32(float x) { return (v_f32){x, x, x, x}; }
static ALWAYS v_f64 set1_f64(double x) { return (v_f64){x, x}; }
#if defined(__aarch64__) || defined(__FP_FAST_FMA)
static ALWAYS v_f32 fma_f32(v_f32 a, v_f32 b, v_f32 c) {
    v_f32 r;
    for (int i = 0; i < 4; i++) r[i] = __builtin_fmaf(a[i], b[i], c[i]);
    return r;
}
static ALWAYS v_f64 fma_f64(v_f64 a, v_f64 b, v_f64 c) {
    v_f64 r;
    for (int i = 0; i < 2; i++) r[i] = __builtin_fma(a[i], b[i], c[i]);
    return r;
}
#else
static ALWAYS v_f32 fma_f32(v_f32 a, v_f32 b, v_f32 c) { return a * b + c; }
static ALWAYS v_f64 fma_f64(v_f64 a, v_f64 b, v_f64 c) { return a * b + c; }
#endif
static ALWAYS v_f32 max_f32(v_f32 a, v_f32 b) {
    for (int i = 0; i < 4; i++) a[i] = a[i] > b[i] ? a[i] : b[i];
    return a;
}
static ALWAYS v_f64 max_f64(v_f64 a, v_f64 b) {
    for (int i = 0; i < 2; i++) a[i] = a[i] > b[i] ? a[i] : b[i];
    return a;
}
static ALWAYS v_f32 load_part_f32(const float *p, int64_t n) {
    v_f32 v = {0, 0, 0, 0};
    for (int64_t i = 0; i < n; i++) v[i] = p[i];
    return v;
}
static ALWAYS v_f64 load_part_f64(const double *p, int64_t n) {
    v_f64 v = {0, 0};
    for (int64_t i = 0; i < n; i++) v[i] = p[i];
    return v;
}
static ALWAYS void store_part_f32(float *p, v_f32 v, int64_t n) {
    for (int64_t i = 0; i < n; i++) p[i] = v[i];
}
static ALWAYS void store_part_f64(double *p, v_f64 v, int64_t n) {
    for (int64_t i = 0; i < n; i++) p[i] = v[i];
}
static ALWAYS float lanes_sum_f32(v_f32 v) { return (v[0] + v[2]) + (v[1] + v[3]); }
static ALWAYS double lanes_sum_f64(v_f64 v) { return v[0] + v[1]; }
#endif

/* ---- 16-bit floats as vectors of floats ---- */

#if !defined(__AVX2__)
typedef uint16_t v_halves __attribute__((vector_size(VECTOR_BYTES / 2), aligned(2), may_alias));
#endif
typedef uint32_t v_u32 __attribute__((vector_size(VECTOR_BYTES)));

static ALWAYS v_f32 wide_bf16(const uint16_t *p) {
#if defined(__AVX512F__)
    return (v_f32)((v_u32)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)p)) << 16);
#elif defined(__AVX2__)
    return (v_f32)((v_u32)_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)p)) << 16);
#else
    return (v_f32)(__builtin_convertvector(*(const v_halves *)p, v_u32) << 16);
#endif
}

static ALWAYS v_f32 wide_f16(const uint16_t *p) {
#if defined(__AVX512F__)
    return (v_f32)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
#elif defined(__F16C__)
    return (v_f32)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
#else
    v_f32 v;
    for (int i = 0; i < VECTOR_BYTES / 4; i++) v[i] = weft_f16_to_f32(p[i]);
    return v;
#endif
}

#define WIDE_PART_OF(type)                                                                                   \
    static ALWAYS v_f32 wide_part_##type(const uint16_t *p, int64_t n) {                                     \
        uint16_t all[VECTOR_BYTES / 4] = {0};                                                                \
        memcpy(all, p, (size_t)n * sizeof *p);                                                               \
        return wide_##type(all);                                                                             \
    }
WIDE_PART_OF(bf16)
WIDE_PART_OF(f16)

/* ---- functions for attention ---- */

typedef int32_t v_i32 __attribute__((vector_size(VECTOR_BYTES)));

/* exp(x) for x up to 88, as w_exp_f32, but 0 below -87. Softmax sums contain a 1, so they do not miss
 * subnormal terms. Subnormal factors cost a hundred cycles on some processors. */
static ALWAYS v_f32 exps_f32(v_f32 x) {
    const float terms[] = W_EXP_TERMS;
    const v_f32 magic = set1_f32(W_ROUND_MAGIC);
    const v_f32 z = fma_f32(x, set1_f32(W_LOG2E), magic), n = z - magic;
    const v_f32 r = fma_f32(n, set1_f32(-W_LN2_LO), fma_f32(n, set1_f32(-W_LN2_HI), x));
    v_f32 p = set1_f32(terms[0]);
    UNROLL for (int i = 1; i < 5; i++) p = fma_f32(p, r, set1_f32(terms[i]));
    const v_f32 y = set1_f32(1) + fma_f32(r * r, p, r);
    const v_i32 power = ((v_i32)z + 127) << 23;
    return (v_f32)(~(x < set1_f32(-87)) & (v_i32)(y * (v_f32)power));
}

static v_f64 exps_f64(v_f64 x) {
    for (int i = 0; i < VECTOR_BYTES / 8; i++) x[i] = w_exp_f64(x[i]);
    return x;
}

/* Multiplies the low halves of 64-bit lanes, as Philox needs. */
typedef uint64_t v_u64 __attribute__((vector_size(VECTOR_BYTES)));
typedef uint64_t v_u64_unaligned __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));
#if defined(__AVX512F__)
static ALWAYS v_u64 multiply_low(v_u64 a, uint32_t m) {
    return (v_u64)_mm512_mul_epu32((__m512i)a, _mm512_set1_epi64((int64_t)m));
}
#elif defined(__AVX2__)
static ALWAYS v_u64 multiply_low(v_u64 a, uint32_t m) {
    return (v_u64)_mm256_mul_epu32((__m256i)a, _mm256_set1_epi64x((int64_t)m));
}
#elif defined(__SSE2__)
static ALWAYS v_u64 multiply_low(v_u64 a, uint32_t m) {
    return (v_u64)_mm_mul_epu32((__m128i)a, _mm_set1_epi64x((int64_t)m));
}
#else
static ALWAYS v_u64 multiply_low(v_u64 a, uint32_t m) { return (a & 0xffffffffu) * (uint64_t)m; }
#endif

#if VECTOR_BYTES == 64
#define LOW_ORDER  ORDER_LOW_8
#define HIGH_ORDER ORDER_HIGH_8
#elif VECTOR_BYTES == 32
#define LOW_ORDER  ORDER_LOW_4
#define HIGH_ORDER ORDER_HIGH_4
#else
#define LOW_ORDER  ORDER_LOW_2
#define HIGH_ORDER ORDER_HIGH_2
#endif
#define PHILOX_VECS  2
#define PHILOX_LANES (PHILOX_VECS * VECTOR_BYTES / 8)

/* Neighbouring blocks of Philox 4x32-10 (Salmon et al., SC 2011): words 0..3 of block, of block + 1, ...
 * Counter words 2 and 3 are key[2] and key[3]. A word is the low half of a lane. The upper half is
 * ignored. */
static void philox_lanes(uint64_t block, const uint32_t *key, uint32_t *words) {
    v_u64 c[4][PHILOX_VECS];
    uint32_t k0 = key[0], k1 = key[1];
    UNROLL for (int v = 0; v < PHILOX_VECS; v++) {
        v_u64 n;
        for (int i = 0; i < VECTOR_BYTES / 8; i++) n[i] = block + (uint64_t)(v * (VECTOR_BYTES / 8) + i);
        c[0][v] = n;
        c[1][v] = n >> 32;
        c[2][v] = (v_u64){0} + key[2];
        c[3][v] = (v_u64){0} + key[3];
    }
    for (int round = 0; round < 10; round++) {
        UNROLL for (int v = 0; v < PHILOX_VECS; v++) {
            v_u64 p0 = multiply_low(c[0][v], 0xd2511f53u), p1 = multiply_low(c[2][v], 0xcd9e8d57u);
            c[0][v] = (p1 >> 32) ^ c[1][v] ^ (uint64_t)k0;
            c[1][v] = p1;
            c[2][v] = (p0 >> 32) ^ c[3][v] ^ (uint64_t)k1;
            c[3][v] = p0;
        }
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
    UNROLL for (int v = 0; v < PHILOX_VECS; v++) {
        v_u64 front = (c[0][v] & 0xffffffffu) | c[1][v] << 32, back = (c[2][v] & 0xffffffffu) | c[3][v] << 32;
        v_u64 low = INTERLEAVE_LOW(front, back), high = INTERLEAVE_HIGH(front, back);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        low = low << 32 | low >> 32;
        high = high << 32 | high >> 32;
#endif
        *(v_u64_unaligned *)(words + v * VECTOR_BYTES / 2) = low;
        *(v_u64_unaligned *)(words + v * VECTOR_BYTES / 2 + VECTOR_BYTES / 4) = high;
    }
}
#undef LOW_ORDER
#undef HIGH_ORDER

#define T          float
#define FN(x)      x##_f32
#define VL         (VECTOR_BYTES / 4)
#define SET1       set1_f32
#define FMA        fma_f32
#define LOAD_PART  load_part_f32
#define STORE_PART store_part_f32
#define VMAX       max_f32
#define EXPV       exps_f32
#define EXP        w_exp_f32
#define LOG        w_log_f32
#define SIGMOID    w_sigmoid_f32
#define TANH       w_tanh_f32
#define INT        int32_t
#if VECTOR_BYTES == 64
#define LOW_ORDER  ORDER_LOW_16
#define HIGH_ORDER ORDER_HIGH_16
#elif VECTOR_BYTES == 32
#define LOW_ORDER  ORDER_LOW_8
#define HIGH_ORDER ORDER_HIGH_8
#else
#define LOW_ORDER  ORDER_LOW_4
#define HIGH_ORDER ORDER_HIGH_4
#endif
#include "device/cpu/gemm/gemm_float.inc"
#include "device/cpu/heavy/conv_float.inc"
#include "device/cpu/heavy/attention_rows.inc"
#include "device/cpu/heavy/recurrent_rows.inc"

#define V         v_f32
#define LOAD      load_f32
#define SUM       lanes_sum_f32
#define X         float
#define WIDE      load_f32
#define WIDE_PART load_part_f32
#include "device/cpu/gemm/gemv_float.inc"
#undef FN
#define FN(x)     x##_bf16
#define X         uint16_t
#define WIDE      wide_bf16
#define WIDE_PART wide_part_bf16
#include "device/cpu/gemm/gemv_float.inc"
#undef FN
#define FN(x)     x##_f16
#define X         uint16_t
#define WIDE      wide_f16
#define WIDE_PART wide_part_f16
#include "device/cpu/gemm/gemv_float.inc"
#undef V
#undef LOAD
#undef SUM
#undef T
#undef FN
#undef VL
#undef SET1
#undef FMA
#undef LOAD_PART
#undef STORE_PART
#undef VMAX
#undef EXPV
#undef EXP
#undef LOG
#undef SIGMOID
#undef TANH
#undef INT
#undef LOW_ORDER
#undef HIGH_ORDER

#define T          double
#define FN(x)      x##_f64
#define VL         (VECTOR_BYTES / 8)
#define SET1       set1_f64
#define FMA        fma_f64
#define LOAD_PART  load_part_f64
#define STORE_PART store_part_f64
#define VMAX       max_f64
#define EXPV       exps_f64
#define EXP        w_exp_f64
#define LOG        w_log_f64
#define SIGMOID    w_sigmoid_f64
#define TANH       w_tanh_f64
#define INT        int64_t
#if VECTOR_BYTES == 64
#define LOW_ORDER  ORDER_LOW_8
#define HIGH_ORDER ORDER_HIGH_8
#elif VECTOR_BYTES == 32
#define LOW_ORDER  ORDER_LOW_4
#define HIGH_ORDER ORDER_HIGH_4
#else
#define LOW_ORDER  ORDER_LOW_2
#define HIGH_ORDER ORDER_HIGH_2
#endif
#include "device/cpu/gemm/gemm_float.inc"
#include "device/cpu/heavy/conv_float.inc"
#include "device/cpu/heavy/attention_rows.inc"
#include "device/cpu/heavy/recurrent_rows.inc"

#define V         v_f64
#define LOAD      load_f64
#define SUM       lanes_sum_f64
#define X         double
#define WIDE      load_f64
#define WIDE_PART load_part_f64
#include "device/cpu/gemm/gemv_float.inc"

/* ---- integers: they wrap, so any order gives the same bits ---- */

#define INTEGER_VECS 2

#define FN(x) x##_i32
#define X     uint32_t
#include "device/cpu/gemm/gemm_integer.inc"
#define FN(x) x##_i64
#define X     uint64_t
#include "device/cpu/gemm/gemm_integer.inc"

/* ---- 16-bit floats ---- */

static void from_bf16(int64_t n, const uint16_t *restrict from, float *restrict to) {
    for (int64_t i = 0; i < n; i++) to[i] = float_of((uint32_t)from[i] << 16);
}

/* Rounds to nearest even. A NaN stays a NaN and keeps its sign. */
static void to_bf16(int64_t n, const float *restrict from, uint16_t *restrict to) {
    for (int64_t i = 0; i < n; i++) {
        uint32_t x = bits_of(from[i]);
        uint32_t rounded = (x + 0x7fffu + ((x >> 16) & 1u)) >> 16, nan = (x >> 16) | 0x40u;
        to[i] = (uint16_t)((x & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
    }
}

static void from_f16(int64_t n, const uint16_t *restrict from, float *restrict to) {
    int64_t i = 0;
#if defined(__F16C__)
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(from + i))));
#endif
    for (; i < n; i++) to[i] = weft_f16_to_f32(from[i]);
}

static void to_f16(int64_t n, const float *restrict from, uint16_t *restrict to) {
    int64_t i = 0;
#if defined(__F16C__)
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(void *)(to + i), _mm256_cvtps_ph(_mm256_loadu_ps(from + i), 0));
#endif
    for (; i < n; i++) to[i] = weft_f32_to_f16(from[i]);
}

/* ---- adding rows ---- */

static void add_f32(int64_t n, const float *restrict from, float *restrict to) {
    for (int64_t i = 0; i < n; i++) to[i] += from[i];
}

static void add_f64(int64_t n, const double *restrict from, double *restrict to) {
    for (int64_t i = 0; i < n; i++) to[i] += from[i];
}

static void add_bf16(int64_t n, const uint16_t *restrict from, float *restrict to) {
    for (int64_t i = 0; i < n; i++) to[i] += float_of((uint32_t)from[i] << 16);
}

static void add_f16(int64_t n, const uint16_t *restrict from, float *restrict to) {
    float wide[64];
    for (int64_t i = 0; i < n; i += 64) {
        int64_t part = n - i < 64 ? n - i : 64;
        from_f16(part, from + i, wide);
        for (int64_t j = 0; j < part; j++) to[i + j] += wide[j];
    }
}

#ifndef WEFT_ISA
#define WEFT_ISA baseline
#endif
#define PASTE_(a, b) a##b
#define PASTE(a, b)  PASTE_(a, b)

const weft_gemm_own PASTE(weft__gemm_own_, WEFT_ISA) = {
    .f32 = gemm_f32,
    .f64 = gemm_f64,
    .i32 = gemm_i32,
    .i64 = gemm_i64,
    .c64 = pairs_f32,
    .c128 = pairs_f64,
    .scratch = {scratch_f32, scratch_f64, pair_scratch_f32, pair_scratch_f64},
    .f32_direct = is_direct_f32,
    .f32_calls = calls_f32,
    .f32_pack = pack_f32,
    .gemv = {gemv_f32, gemv_f64, gemv_bf16, gemv_f16},
    .convert = {from_f16, from_bf16, to_f16, to_bf16},
    .add = {add_f32, add_f64, add_f16, add_bf16},
#define ATTENTION(type)                                                                                      \
    {                                                                                                        \
        attention_turn_##type, attention_weights_##type, attention_finish_##type, attention_gradient_##type, \
            attention_one_##type, attention_open_##type, attention_mask_##type, attention_mask_keys_##type,  \
            attention_keep_##type, multiply_##type, row_dot_##type, row_scale_##type                         \
    }
    .attention_f32 = ATTENTION(f32),
    .attention_f64 = ATTENTION(f64),
#define CONV(type, size)                                                                                     \
    {                                                                                                        \
        VECTOR_BYTES / (size), CONV_VECS, conv_gather_##type, conv_weight_##type, conv_each_##type,          \
            conv_each_weight_##type, conv_pack_##type                                                        \
    }
    .conv_f32 = CONV(f32, 4),
    .conv_f64 = CONV(f64, 8),
#define RECURRENT(type)                                                                                      \
    {                                                                                                        \
        panel_elements_##type, panels_pack_##type, panels_product_##type, recurrent_plain_##type,            \
            recurrent_lstm_##type, recurrent_gru_##type, recurrent_plain_back_##type,                        \
            recurrent_lstm_back_##type, recurrent_gru_back_##type                                            \
    }
    .recurrent_f32 = RECURRENT(f32),
    .recurrent_f64 = RECURRENT(f64),
};
