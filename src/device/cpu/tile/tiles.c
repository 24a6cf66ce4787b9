/* The tile primitives, made from ops.def and the list of dtypes. CMakeLists.txt compiles this file once for
 * each WEFT_ISA (baseline, avx2, avx512). Reductions add in fixed groups of lanes, so instruction sets differ
 * by fma alone. `out` never overlaps an operand.
 * Must not know: kernels, views, threads. Read next: tile_storage.inc, tile_reduce.inc, kernel_plan.c. */
#include "device/cpu/tile/tiles.h"
#include "kernel/prelude.h"

#ifndef WEFT_ISA
#define WEFT_ISA baseline
#endif

#define BLOCK 16 /* lanes of a function at a time; an incomplete block is padded */

#define PASTE_(a, b) a##b
#define PASTE(a, b)  PASTE_(a, b)

typedef float ct_f32;
typedef double ct_f64;
typedef int32_t ct_i32;
typedef int64_t ct_i64;
typedef uint64_t ct_u64;

/* ---- elementwise: one static function per op, compute type and operand form ---- */

/* Recomputes angles that are too large for the vectorised reduction, one by one. */
static void huge_angles(int64_t n, void *out_, const void *a_, int quarter) {
    const float *a = a_;
    float *out = out_;
    int any = 0;
    for (int64_t i = 0; i < n; i++) any |= w_abs_f32(a[i]) > W_ANGLE_MAX;
    if (!any) return;
    for (int64_t i = 0; i < n; i++) {
        float m = w_abs_f32(a[i]);
        if (m <= W_ANGLE_MAX || !(m <= 0x1.fffffep127f)) continue;
        int32_t turn;
        float r = w_angle_huge(m, &turn), y = w_sin_core(r, turn + quarter);
        out[i] = quarter || a[i] > 0 ? y : -y;
    }
}

#define CALC_ARGS int64_t n, void *out, const void *pa, const void *pb, const void *pc
#define UNUSED_B  (void)pb, (void)pc
#define UNUSED_C  (void)pc

/* Cheap ops: one loop. */
#define PLAIN1_(id, ct, R, expr)                                                                             \
    static void calc_##id##_##ct##_vv(CALC_ARGS) {                                                           \
        typedef ct_##ct T;                                                                                   \
        const T *restrict va = pa;                                                                           \
        R *restrict o = out;                                                                                 \
        UNUSED_B;                                                                                            \
        for (int64_t i = 0; i < n; i++) {                                                                    \
            const T a = va[i];                                                                               \
            o[i] = (R)(expr);                                                                                \
        }                                                                                                    \
    }

/* Returns whether all results of exp are normal numbers, as in softmax. Then the same bits cost half as
 * much. */
static bool exp_is_normal(int64_t n, const float *restrict a) {
    int32_t most = 0;
    for (int64_t i = 0; i < n; i++) {
        const int32_t size = w_bits(a[i]) & INT32_MAX; /* orders as the absolute values do, NaN last */
        most = size > most ? size : most;
    }
    return most <= w_bits(87.0f);
}

static __attribute__((noinline)) void exp_normal(int64_t n, float *restrict o, const float *restrict a) {
    n &= ~(int64_t)(BLOCK - 1);
    for (int64_t i = 0; i < n; i++) o[i] = w_exp_normal(a[i]);
}

/* Expensive ops: whole blocks, then the rest in a padded block. The results of `blocks` have 32 bits. */
W_FN void calc_in_blocks(int op, int64_t n, void *out, const float *va,
                         void (*blocks)(int64_t n, void *restrict o, const float *restrict va)) {
    const int64_t whole = n & ~(int64_t)(BLOCK - 1);
    float *o = out;
    if (op == WEFT_OP_EXP && exp_is_normal(whole, va))
        exp_normal(whole, out, va);
    else if (whole)
        blocks(whole, o, va);
    if (whole < n) {
        float x[BLOCK] = {0}, y[BLOCK];
        for (int64_t i = whole; i < n; i++) x[i - whole] = va[i];
        blocks(BLOCK, y, x);
        for (int64_t i = whole; i < n; i++) o[i] = y[i - whole];
    }
    if (op == WEFT_OP_SIN || op == WEFT_OP_COS) huge_angles(n, out, va, op == WEFT_OP_COS);
}
#define BLOCK1_(id, R, expr)                                                                                 \
    static __attribute__((noinline)) void blocks_##id##_f32(int64_t n, void *restrict out,                   \
                                                            const float *restrict va) {                      \
        typedef float T;                                                                                     \
        R *restrict o = out;                                                                                 \
        n &= ~(int64_t)(BLOCK - 1);                                                                          \
        for (int64_t i = 0; i < n; i++) {                                                                    \
            const T a = va[i];                                                                               \
            o[i] = (R)(expr);                                                                                \
        }                                                                                                    \
    }                                                                                                        \
    static void calc_##id##_f32_vv(CALC_ARGS) {                                                              \
        UNUSED_B;                                                                                            \
        calc_in_blocks(WEFT_OP_##id, n, out, pa, blocks_##id##_f32);                                         \
    }

#define FORM2_(id, ct, R, expr, form, load_a, load_b)                                                        \
    static void calc_##id##_##ct##_##form(CALC_ARGS) {                                                       \
        typedef ct_##ct T;                                                                                   \
        const T *restrict va = pa;                                                                           \
        const T *restrict vb = pb;                                                                           \
        const T a0 = *va, b0 = *vb;                                                                          \
        R *restrict o = out;                                                                                 \
        (void)a0, (void)b0, UNUSED_C;                                                                        \
        for (int64_t i = 0; i < n; i++) {                                                                    \
            const T a = load_a, b = load_b;                                                                  \
            o[i] = (R)(expr);                                                                                \
        }                                                                                                    \
    }
#define PLAIN2_(id, ct, R, expr)                                                                             \
    FORM2_(id, ct, R, expr, vv, va[i], vb[i])                                                                \
    FORM2_(id, ct, R, expr, sv, a0, vb[i])                                                                   \
    FORM2_(id, ct, R, expr, vs, va[i], b0)

#define FORM3_(id, ct, expr, form, load_a, load_b, load_c)                                                   \
    static void calc_##id##_##ct##_##form(CALC_ARGS) {                                                       \
        typedef ct_##ct T;                                                                                   \
        const int32_t *restrict va = pa;                                                                     \
        const T *restrict vb = pb;                                                                           \
        const T *restrict vc = pc;                                                                           \
        const int32_t a0 = *va;                                                                              \
        const T b0 = *vb, c0 = *vc;                                                                          \
        T *restrict o = out;                                                                                 \
        (void)a0, (void)b0, (void)c0;                                                                        \
        for (int64_t i = 0; i < n; i++) {                                                                    \
            const int32_t a = load_a;                                                                        \
            const T b = load_b, c = load_c;                                                                  \
            o[i] = (expr);                                                                                   \
        }                                                                                                    \
    }
#define PLAIN3_(id, ct, expr)                                                                                \
    FORM3_(id, ct, expr, vvv, va[i], vb[i], vc[i])                                                           \
    FORM3_(id, ct, expr, svv, a0, vb[i], vc[i])                                                              \
    FORM3_(id, ct, expr, vsv, va[i], b0, vc[i])                                                              \
    FORM3_(id, ct, expr, ssv, a0, b0, vc[i])                                                                 \
    FORM3_(id, ct, expr, vvs, va[i], vb[i], c0)                                                              \
    FORM3_(id, ct, expr, svs, a0, vb[i], c0)                                                                 \
    FORM3_(id, ct, expr, vss, va[i], b0, c0)

#define RESULT_SAME(ct) ct_##ct
#define RESULT_BOOL(ct) int32_t

#define MAKE1_FLOAT(id, result, expr)                                                                        \
    BLOCK1_(id, RESULT_##result(f32), expr) PLAIN1_(id, f64, RESULT_##result(f64), expr)
#define MAKE1_NUMBER(id, result, expr)                                                                       \
    PLAIN1_(id, f32, RESULT_##result(f32), expr)                                                             \
    PLAIN1_(id, f64, RESULT_##result(f64), expr)                                                             \
    MAKE1_INTEGER(id, result, expr)
#define MAKE1_INTEGER(id, result, expr)                                                                      \
    PLAIN1_(id, i32, RESULT_##result(i32), expr)                                                             \
    PLAIN1_(id, i64, RESULT_##result(i64), expr)                                                             \
    PLAIN1_(id, u64, RESULT_##result(u64), expr)
#define MAKE2_FLOAT(id, result, expr)                                                                        \
    PLAIN2_(id, f32, RESULT_##result(f32), expr) PLAIN2_(id, f64, RESULT_##result(f64), expr)
#define MAKE2_INTEGER(id, result, expr)                                                                      \
    PLAIN2_(id, i32, RESULT_##result(i32), expr)                                                             \
    PLAIN2_(id, i64, RESULT_##result(i64), expr)                                                             \
    PLAIN2_(id, u64, RESULT_##result(u64), expr)
#define MAKE2_NUMBER(id, result, expr) MAKE2_FLOAT(id, result, expr) MAKE2_INTEGER(id, result, expr)
#define MAKE2_ANY(id, result, expr)    MAKE2_NUMBER(id, result, expr)
#define MAKE3_ANY(id, expr)                                                                                  \
    PLAIN3_(id, f32, expr)                                                                                   \
    PLAIN3_(id, f64, expr) PLAIN3_(id, i32, expr) PLAIN3_(id, i64, expr) PLAIN3_(id, u64, expr)

#define W_ELEM1(id, name, dtypes, result, expr, grad, doc)                   MAKE1_##dtypes(id, result, expr)
#define W_ELEM2(id, name, dtypes, result, expr, grad_a, grad_b, doc)         MAKE2_##dtypes(id, result, expr)
#define W_ELEM3(id, name, dtypes, result, expr, grad_a, grad_b, grad_c, doc) MAKE3_##dtypes(id, expr)
#include "ops/ops.def"

/* ---- pairs ---- */

#define DUO_FORM_(p, first, q, second, form, load_a, load_b, load_c)                                         \
    static void pair_##p##_##q##_##form(CALC_ARGS) {                                                         \
        const float *restrict va = pa;                                                                       \
        const float *restrict vb = pb;                                                                       \
        const float *restrict vc = pc;                                                                       \
        const float a0 = *va, b0 = *vb, c0 = *vc;                                                            \
        float *restrict o = out;                                                                             \
        (void)a0, (void)b0, (void)c0;                                                                        \
        for (int64_t i = 0; i < n; i++) {                                                                    \
            const float a = load_a, b = load_b, c = load_c;                                                  \
            const float t = first;                                                                           \
            o[i] = second;                                                                                   \
        }                                                                                                    \
    }
#define DUO_(p, first, q, second)                                                                            \
    DUO_FORM_(p, first, q, second, vvv, va[i], vb[i], vc[i])                                                 \
    DUO_FORM_(p, first, q, second, svv, a0, vb[i], vc[i])                                                    \
    DUO_FORM_(p, first, q, second, vsv, va[i], b0, vc[i])                                                    \
    DUO_FORM_(p, first, q, second, vvs, va[i], vb[i], c0)                                                    \
    DUO_FORM_(p, first, q, second, svs, a0, vb[i], c0)                                                       \
    DUO_FORM_(p, first, q, second, vss, va[i], b0, c0)
#define DUOS_(p, first)                                                                                      \
    DUO_(p, first, ADD, t + c)                                                                               \
    DUO_(p, first, SUB, t - c) DUO_(p, first, MUL, t *c) DUO_(p, first, FROM, c - t)
DUOS_(ADD, a + b)
DUOS_(SUB, a - b)
DUOS_(MUL, a *b)

/* ---- reductions: lanes first, then a tree over the lanes ---- */

/* Runs do_it for j below w = lanes / 2, lanes / 4, .. 1. It is not a loop, since gcc would not unroll it. */
#define HALF_(lanes, width, do_it)                                                                           \
    for (int j = 0, w = width; w < lanes && j < w; j++) do_it;
#define HALVES_(lanes, do_it)                                                                                \
    HALF_(lanes, 32, do_it)                                                                                  \
    HALF_(lanes, 16, do_it)                                                                                  \
    HALF_(lanes, 8, do_it)                                                                                   \
    HALF_(lanes, 4, do_it)                                                                                   \
    HALF_(lanes, 2, do_it)                                                                                   \
    HALF_(lanes, 1, do_it)

#define JOIN_(id, ct, expr)                                                                                  \
    static inline ct_##ct join1_##id##_##ct(ct_##ct a, ct_##ct b) {                                          \
        typedef ct_##ct T;                                                                                   \
        return (T)(expr);                                                                                    \
    }
#define W_REDUCE(id, name, dtypes, init, expr, grad, doc)                                                    \
    JOIN_(id, f32, expr) JOIN_(id, f64, expr) JOIN_(id, i32, expr) JOIN_(id, i64, expr) JOIN_(id, u64, expr)
#include "ops/ops.def"

#define OP SUM
#include "device/cpu/tile/tile_reduce.inc"
#define OP MAX
#include "device/cpu/tile/tile_reduce.inc"
#define OP MIN
#include "device/cpu/tile/tile_reduce.inc"
#define OP PROD
#include "device/cpu/tile/tile_reduce.inc"

/* ---- sums of products: of two rows, and of rows times a row value ---- */

#define CT             f32
#define COLUMNS        scaled
#define JOIN(a, b)     ((a) + (b))
#define VALUE(p, j, r) ((p)[j] * by[r])
#include "device/cpu/tile/tile_columns.inc"
#undef CT
#define CT             f64
#define COLUMNS        scaled
#define JOIN(a, b)     ((a) + (b))
#define VALUE(p, j, r) ((p)[j] * by[r])
#include "device/cpu/tile/tile_columns.inc"
#undef CT

/* Multiplies and adds lane by lane, as the reduction of a row does. */
#define LANES_(ct, lanes)                                                                                    \
    static inline void multiply##lanes##_##ct(int64_t n, ct_##ct *restrict s, const ct_##ct *restrict p,     \
                                              const ct_##ct *restrict q) {                                   \
        for (int j = 0; j < lanes; j++) s[j] = p[j] * q[j];                                                  \
        int64_t i = lanes;                                                                                   \
        for (; i + lanes <= n; i += lanes)                                                                   \
            for (int j = 0; j < lanes; j++) s[j] += p[i + j] * q[i + j];                                     \
        for (int j = 0; j < lanes && i + j < n; j++) s[j] += p[i + j] * q[i + j];                            \
    }
#define DOT_(ct, lanes)                                                                                      \
    LANES_(ct, lanes)                                                                                        \
    static void dot##lanes##_##ct(int64_t rows, int64_t n, ct_##ct *restrict o, const ct_##ct *restrict p,   \
                                  const ct_##ct *restrict q) {                                               \
        for (int64_t r = 0; r < rows; r++) {                                                                 \
            ct_##ct s[lanes];                                                                                \
            multiply##lanes##_##ct(n, s, p + r * n, q + r * n);                                              \
            HALVES_(lanes, s[j] += s[j + w])                                                                 \
            o[r] = s[0];                                                                                     \
        }                                                                                                    \
    }

/* Halves the sixteen lanes of eight rows at once. The sums are those of HALVES_, at twice the speed. */
typedef float eight __attribute__((vector_size(32), aligned(4), may_alias));
#define PAIR_(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#define FOURS_(a, b)     (PAIR_(a, b, 0, 1, 2, 3, 8, 9, 10, 11) + PAIR_(a, b, 4, 5, 6, 7, 12, 13, 14, 15))
#define TWOS_(a, b)      (PAIR_(a, b, 0, 1, 8, 9, 4, 5, 12, 13) + PAIR_(a, b, 2, 3, 10, 11, 6, 7, 14, 15))
#define ONES_(a, b)      (PAIR_(a, b, 0, 2, 8, 10, 4, 6, 12, 14) + PAIR_(a, b, 1, 3, 9, 11, 5, 7, 13, 15))

DOT_(f32, 64)
DOT_(f32, 16)
DOT_(f32, 4)
DOT_(f32, 1)
DOT_(f64, 64)
DOT_(f64, 16)
DOT_(f64, 4)
DOT_(f64, 1)

static int64_t dot_eights(int64_t rows, int64_t n, float *restrict o, const float *restrict p,
                          const float *restrict q) {
    int64_t r = 0;
    for (; r + 8 <= rows; r += 8) {
        float s[8][16];
        eight x[8];
        for (int k = 0; k < 8; k++) multiply16_f32(n, s[k], p + (r + k) * n, q + (r + k) * n);
        for (int k = 0; k < 8; k++)
            x[k] = *(const eight *)(const void *)s[k] + *(const eight *)(const void *)(s[k] + 8);
        const eight a = FOURS_(x[0], x[4]), b = FOURS_(x[1], x[5]), c = FOURS_(x[2], x[6]);
        const eight d = FOURS_(x[3], x[7]), e = TWOS_(a, b), f = TWOS_(c, d);
        *(eight *)(void *)(o + r) = ONES_(e, f);
    }
    return r;
}

static void dot_f32(int64_t rows, int64_t n, void *out, const void *pa, const void *pb) {
    const float *p = pa, *q = pb;
    float *o = out;
    if (n >= 128) {
        dot64_f32(rows, n, o, p, q);
    } else if (n >= 16) {
        const int64_t r = dot_eights(rows, n, o, p, q);
        dot16_f32(rows - r, n, o + r, p + r * n, q + r * n);
    } else if (n >= 4) {
        dot4_f32(rows, n, o, p, q);
    } else {
        dot1_f32(rows, n, o, p, q);
    }
}
static void dot_f64(int64_t rows, int64_t n, void *out, const void *pa, const void *pb) {
    const double *p = pa, *q = pb;
    double *o = out;
    if (n >= 128)
        dot64_f64(rows, n, o, p, q);
    else if (n >= 16)
        dot16_f64(rows, n, o, p, q);
    else if (n >= 4)
        dot4_f64(rows, n, o, p, q);
    else
        dot1_f64(rows, n, o, p, q);
}

/* ---- storage: X(dtype, storage type, compute type, value loaded from s, value stored from v) ---- */

#define STORAGE_LIST(X)                                                                                      \
    X(F32, float, f32, s, v)                                                                                 \
    X(F64, double, f64, s, v)                                                                                \
    X(F16, uint16_t, f32, w_from_f16(s), w_to_f16(v))                                                        \
    X(BF16, uint16_t, f32, w_from_bf16(s), w_to_bf16(v))                                                     \
    X(I8, int8_t, i32, s, (int8_t)v)                                                                         \
    X(I16, int16_t, i32, s, (int16_t)v)                                                                      \
    X(I32, int32_t, i32, s, v)                                                                               \
    X(I64, int64_t, i64, s, v)                                                                               \
    X(U8, uint8_t, i32, s, (uint8_t)v)                                                                       \
    X(U16, uint16_t, i32, s, (uint16_t)v)                                                                    \
    X(U32, uint32_t, i64, s, (uint32_t)v)                                                                    \
    X(U64, uint64_t, u64, s, v)                                                                              \
    X(BOOL, uint8_t, i32, s != 0, (uint8_t)(v != 0))

#define TYPES_(dtype, S, ct, get, put)                                                                       \
    typedef S stored_##dtype;                                                                                \
    typedef ct_##ct value_##dtype;                                                                           \
    W_FN value_##dtype get_##dtype(S s) { return get; }                                                      \
    W_FN S put_##dtype(value_##dtype v) { return put; }
STORAGE_LIST(TYPES_)

/* Visits the runs of a box, each at p. */
#define BOX_(row, run, step)                                                                                 \
    for (int64_t i = 0; i < b.n[0]; i++, row += b.stride[0])                                                 \
        for (int64_t j = 0; j < b.n[1]; j++, step) {                                                         \
            __auto_type p = row + j * b.stride[1];                                                           \
            run;                                                                                             \
        }

#define DTYPE F32
#include "device/cpu/tile/tile_storage.inc"
#define DTYPE F64
#include "device/cpu/tile/tile_storage.inc"
#define DTYPE F16
#include "device/cpu/tile/tile_storage.inc"
#define DTYPE BF16
#include "device/cpu/tile/tile_storage.inc"
#define DTYPE I8
#include "device/cpu/tile/tile_storage.inc"
#define DTYPE I16
#include "device/cpu/tile/tile_storage.inc"
#define DTYPE I32
#include "device/cpu/tile/tile_storage.inc"
#define DTYPE I64
#include "device/cpu/tile/tile_storage.inc"
#define DTYPE U8
#include "device/cpu/tile/tile_storage.inc"
#define DTYPE U16
#include "device/cpu/tile/tile_storage.inc"
#define DTYPE U32
#include "device/cpu/tile/tile_storage.inc"
#define DTYPE U64
#include "device/cpu/tile/tile_storage.inc"
#define DTYPE BOOL
#include "device/cpu/tile/tile_storage.inc"

/* ---- casts and wraps ---- */

W_FN int32_t clamp_i32(int32_t x, int32_t lo, int32_t hi) { return x < lo ? lo : (x > hi ? hi : x); }
W_FN int64_t clamp_i64(int64_t x, int64_t lo, int64_t hi) { return x < lo ? lo : (x > hi ? hi : x); }

/* Casts to f32, rounded to odd: the last bit is set if something was cut off. Rounding again, to 16 bits, is
 * then as exact as a single rounding (Boldo and Melquiond, 2008). */
W_FN float odd_f32(float x) { return x; }
W_FN float odd_f64(double x) {
    float f = (float)x;
    double d = (double)f;
    int32_t beyond = fabs(d) > fabs(x), inexact = d != x; /* for NaN the last bit does not matter */
    return w_float((w_bits(f) - beyond) | inexact);
}
W_FN float odd_i32(int32_t x) { return odd_f64((double)x); }
W_FN float odd_i64(int64_t x) {
    int64_t top = (x >> 11) | ((x & 0x7ff) != 0); /* 53 bits, the last of them sticky */
    int large = x > INT64_C(1) << 53 || x < -(INT64_C(1) << 53);
    return odd_f64(large ? (double)top * 2048.0 : (double)x);
}
W_FN float odd_u64(uint64_t x) {
    uint64_t top = (x >> 11) | ((x & 0x7ff) != 0);
    return odd_f64(x > UINT64_C(1) << 53 ? (double)top * 2048.0 : (double)x);
}

#define CAST_(from, dtype, to, expr)                                                                         \
    static void cast_##from##_##dtype(CALC_ARGS) {                                                           \
        const ct_##from *restrict va = pa;                                                                   \
        ct_##to *restrict o = out;                                                                           \
        UNUSED_B;                                                                                            \
        for (int64_t i = 0; i < n; i++) {                                                                    \
            const ct_##from a = va[i];                                                                       \
            o[i] = (ct_##to)(expr);                                                                          \
        }                                                                                                    \
    }
#define CAST_ALL_(from, to_i32, to_i64, to_u64)                                                              \
    CAST_(from, F32, f32, a)                                                                                 \
    CAST_(from, F64, f64, a)                                                                                 \
    CAST_(from, F16, f32, w_from_f16(w_to_f16(odd_##from(a))))                                               \
    CAST_(from, BF16, f32, w_from_bf16(w_to_bf16(odd_##from(a))))                                            \
    CAST_(from, I32, i32, to_i32)                                                                            \
    CAST_(from, I64, i64, to_i64)                                                                            \
    CAST_(from, U64, u64, to_u64)                                                                            \
    CAST_(from, BOOL, i32, a != 0)
#define CAST_FLOAT_(from)                                                                                    \
    CAST_ALL_(from, w_##from##_to_i32(a), w_##from##_to_i64(a), w_##from##_to_u64(a))                        \
    CAST_(from, I8, i32, clamp_i32(w_##from##_to_i32(a), -128, 127))                                         \
    CAST_(from, I16, i32, clamp_i32(w_##from##_to_i32(a), -32768, 32767))                                    \
    CAST_(from, U8, i32, clamp_i32(w_##from##_to_i32(a), 0, 255))                                            \
    CAST_(from, U16, i32, clamp_i32(w_##from##_to_i32(a), 0, 65535))                                         \
    CAST_(from, U32, i64, clamp_i64(w_##from##_to_i64(a), 0, UINT32_MAX))
#define CAST_INT_(from)                                                                                      \
    CAST_ALL_(from, a, a, a)                                                                                 \
    CAST_(from, I8, i32, (int8_t)a)                                                                          \
    CAST_(from, I16, i32, (int16_t)a)                                                                        \
    CAST_(from, U8, i32, (uint8_t)a)                                                                         \
    CAST_(from, U16, i32, (uint16_t)a)                                                                       \
    CAST_(from, U32, i64, (uint32_t)a)
CAST_FLOAT_(f32)
CAST_FLOAT_(f64)
CAST_INT_(i32)
CAST_INT_(i64)
CAST_INT_(u64)

/* ---- spreading ---- */

#define CT f32
#include "device/cpu/tile/tile_spread.inc"
#define CT f64
#include "device/cpu/tile/tile_spread.inc"
#define CT i32
#include "device/cpu/tile/tile_spread.inc"
#define CT i64
#include "device/cpu/tile/tile_spread.inc"

/* ---- integers made from positions ---- */

#define COUNT_(ct)                                                                                           \
    static void count_##ct(int64_t n, void *out, int64_t start, int64_t stride) {                            \
        ct_##ct *restrict o = out;                                                                           \
        const ct_##ct first = (ct_##ct)start, step = (ct_##ct)stride;                                        \
        for (int64_t i = 0; i < n; i++) o[i] = (ct_##ct)(first + (ct_##ct)i * step);                         \
    }
#define FIND_ZERO_(ct)                                                                                       \
    static int64_t find_zero_##ct(int64_t n, const void *pa) {                                               \
        const ct_##ct *a = pa;                                                                               \
        int any = 0;                                                                                         \
        for (int64_t i = 0; i < n; i++) any |= a[i] == 0;                                                    \
        for (int64_t i = 0; any && i < n; i++)                                                               \
            if (a[i] == 0) return i;                                                                         \
        return -1;                                                                                           \
    }
COUNT_(i32)
COUNT_(i64)
FIND_ZERO_(i32)
FIND_ZERO_(i64)

/* Philox 4x32-10 (Salmon et al. 2011) of LANES counters side by side. Element e has word e % 4 of the block
 * with counter {e / 4 low, e / 4 high, key[2], key[3]}. */
#define LANES 32 /* above 16; otherwise gcc unrolls the loops before it vectorises them */

typedef struct philox_lanes {
    uint32_t c0[LANES], c1[LANES], c2[LANES], c3[LANES];
} philox_lanes;

static void philox_rounds(philox_lanes *restrict p, const int32_t *key) {
    uint32_t k0 = (uint32_t)key[0], k1 = (uint32_t)key[1];
    for (int j = 0; j < LANES; j++) p->c2[j] = (uint32_t)key[2], p->c3[j] = (uint32_t)key[3];
    for (int round = 0; round < 10; round++) {
        uint32_t d0[LANES], d2[LANES], e0[LANES], e2[LANES];
        for (int j = 0; j < LANES; j++) {
            const uint64_t x = (uint64_t)0xD2511F53u * p->c0[j];
            d0[j] = (uint32_t)(x >> 32), e0[j] = (uint32_t)x;
        }
        for (int j = 0; j < LANES; j++) {
            const uint64_t y = (uint64_t)0xCD9E8D57u * p->c2[j];
            d2[j] = (uint32_t)(y >> 32), e2[j] = (uint32_t)y;
        }
        for (int j = 0; j < LANES; j++) p->c0[j] = d2[j] ^ p->c1[j] ^ k0;
        for (int j = 0; j < LANES; j++) p->c2[j] = d0[j] ^ p->c3[j] ^ k1;
        for (int j = 0; j < LANES; j++) p->c1[j] = e2[j];
        for (int j = 0; j < LANES; j++) p->c3[j] = e0[j];
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
}

/* Writes elements first .. first + n - 1. A block has four words, and counters are consecutive. */
static void random_row(int64_t n, int32_t *restrict out, uint64_t first, const int32_t *key) {
    uint64_t skip = first % 4;
    for (int64_t i = 0; i < n;) {
        philox_lanes p;
        int32_t words[4 * LANES];
        const uint64_t block = (first + (uint64_t)i) / 4;
        for (int j = 0; j < LANES; j++) {
            p.c0[j] = (uint32_t)(block + (uint64_t)j);
            p.c1[j] = (uint32_t)((block + (uint64_t)j) >> 32);
        }
        philox_rounds(&p, key);
        for (int j = 0; j < LANES; j++) {
            words[4 * j] = (int32_t)p.c0[j], words[4 * j + 1] = (int32_t)p.c1[j];
            words[4 * j + 2] = (int32_t)p.c2[j], words[4 * j + 3] = (int32_t)p.c3[j];
        }
        int64_t have = 4 * LANES - (int64_t)skip, take = n - i < have ? n - i : have;
        memcpy(out + i, words + skip, (size_t)take * sizeof *out);
        i += take;
        skip = 0;
    }
}

static void random_words(int64_t n, int32_t *restrict out, int64_t start, int64_t stride,
                         const int32_t *key) {
    const uint64_t base = (uint64_t)(uint32_t)key[4] | (uint64_t)(uint32_t)key[5] << 32;
    if (stride == 1) {
        random_row(n, out, base + (uint64_t)start, key);
        return;
    }
    for (int64_t i = 0; i < n; i += LANES) {
        philox_lanes p;
        for (int j = 0; j < LANES; j++) {
            const uint64_t element = base + (uint64_t)(start + (i + j) * stride);
            p.c0[j] = (uint32_t)(element / 4), p.c1[j] = (uint32_t)(element / 4 >> 32);
        }
        philox_rounds(&p, key);
        for (int j = 0; j < LANES && i + j < n; j++) {
            const uint64_t word = (base + (uint64_t)(start + (i + j) * stride)) % 4;
            const uint32_t *w = word == 0 ? p.c0 : word == 1 ? p.c1 : word == 2 ? p.c2 : p.c3;
            out[i + j] = (int32_t)w[j];
        }
    }
}

/* ---- the table ---- */

#define CT_f32        WEFT_CT_F32
#define CT_f64        WEFT_CT_F64
#define CT_i32        WEFT_CT_I32
#define CT_i64        WEFT_CT_I64
#define CT_u64        WEFT_CT_U64
#define ROW1_(id, ct) [CT_##ct] = {calc_##id##_##ct##_vv}
#define ROW2_(id, ct) [CT_##ct] = {calc_##id##_##ct##_vv, calc_##id##_##ct##_sv, calc_##id##_##ct##_vs}
#define ROW3_(id, ct)                                                                                        \
    [CT_##ct] = {calc_##id##_##ct##_vvv, calc_##id##_##ct##_svv, calc_##id##_##ct##_vsv,                     \
                 calc_##id##_##ct##_ssv, calc_##id##_##ct##_vvs, calc_##id##_##ct##_svs,                     \
                 calc_##id##_##ct##_vss}
#define TABLE1_FLOAT(id)   ROW1_(id, f32), ROW1_(id, f64)
#define TABLE1_INTEGER(id) ROW1_(id, i32), ROW1_(id, i64), ROW1_(id, u64)
#define TABLE1_NUMBER(id)  TABLE1_FLOAT(id), TABLE1_INTEGER(id)
#define TABLE2_FLOAT(id)   ROW2_(id, f32), ROW2_(id, f64)
#define TABLE2_INTEGER(id) ROW2_(id, i32), ROW2_(id, i64), ROW2_(id, u64)
#define TABLE2_NUMBER(id)  TABLE2_FLOAT(id), TABLE2_INTEGER(id)
#define TABLE2_ANY(id)     TABLE2_NUMBER(id)
#define TABLE3_ANY(id)     ROW3_(id, f32), ROW3_(id, f64), ROW3_(id, i32), ROW3_(id, i64), ROW3_(id, u64)
#define REDUCE_ROW_(kind, id)                                                                                \
    [WEFT_OP_##id] = {kind##_##id##_f32, kind##_##id##_f64, kind##_##id##_i32, kind##_##id##_i64,            \
                      kind##_##id##_u64},
#define PAIR_ROW_(p, q)                                                                                      \
    [WEFT_PAIR_##q] = {[0] = pair_##p##_##q##_vvv, [1] = pair_##p##_##q##_svv, [2] = pair_##p##_##q##_vsv,   \
                       [4] = pair_##p##_##q##_vvs, [5] = pair_##p##_##q##_svs, [6] = pair_##p##_##q##_vss}
#define PAIR_ROWS_(p)                                                                                        \
    [WEFT_PAIR_##p] = {PAIR_ROW_(p, ADD), PAIR_ROW_(p, SUB), PAIR_ROW_(p, MUL), PAIR_ROW_(p, FROM)}
#define CAST_ROW_(from)                                                                                      \
    [CT_##from] = {                                                                                          \
        [WEFT_F32] = cast_##from##_F32,   [WEFT_F64] = cast_##from##_F64, [WEFT_F16] = cast_##from##_F16,    \
        [WEFT_BF16] = cast_##from##_BF16, [WEFT_I8] = cast_##from##_I8,   [WEFT_I16] = cast_##from##_I16,    \
        [WEFT_I32] = cast_##from##_I32,   [WEFT_I64] = cast_##from##_I64, [WEFT_U8] = cast_##from##_U8,      \
        [WEFT_U16] = cast_##from##_U16,   [WEFT_U32] = cast_##from##_U32, [WEFT_U64] = cast_##from##_U64,    \
        [WEFT_BOOL] = cast_##from##_BOOL}
#define LOAD_ROW_(dtype, S, ct, get, put)      [WEFT_##dtype] = load_##dtype,
#define STORE_ROW_(dtype, S, ct, get, put)     [WEFT_##dtype] = store_##dtype,
#define LOAD_BOX_ROW_(dtype, S, ct, get, put)  [WEFT_##dtype] = load_box_##dtype,
#define STORE_BOX_ROW_(dtype, S, ct, get, put) [WEFT_##dtype] = store_box_##dtype,
#define GATHER_ROW_(dtype, S, ct, get, put)    [WEFT_##dtype] = {gather_##dtype##_i32, gather_##dtype##_i64},

const weft_tiles PASTE(weft__tiles_, WEFT_ISA) = {
    .calc =
        {
#define W_ELEM1(id, name, dtypes, result, expr, grad, doc)           [WEFT_OP_##id] = {TABLE1_##dtypes(id)},
#define W_ELEM2(id, name, dtypes, result, expr, grad_a, grad_b, doc) [WEFT_OP_##id] = {TABLE2_##dtypes(id)},
#define W_ELEM3(id, name, dtypes, result, expr, grad_a, grad_b, grad_c, doc)                                 \
    [WEFT_OP_##id] = {TABLE3_##dtypes(id)},
#include "ops/ops.def"
        },
    .pair = {PAIR_ROWS_(ADD), PAIR_ROWS_(SUB), PAIR_ROWS_(MUL)},
    .cast = {CAST_ROW_(f32), CAST_ROW_(f64), CAST_ROW_(i32), CAST_ROW_(i64), CAST_ROW_(u64)},
    .fill = {fill_f32, fill_f64, fill_i32, fill_i64, fill_i64},
    .reduce =
        {
#define W_REDUCE(id, name, dtypes, init, expr, grad, doc) REDUCE_ROW_(reduce, id)
#include "ops/ops.def"
        },
    .columns =
        {
#define W_REDUCE(id, name, dtypes, init, expr, grad, doc) REDUCE_ROW_(columns, id)
#include "ops/ops.def"
        },
    .scaled = {scaled_f32, scaled_f64},
    .dot = {dot_f32, dot_f64},
    .join =
        {
#define W_REDUCE(id, name, dtypes, init, expr, grad, doc) REDUCE_ROW_(join, id)
#include "ops/ops.def"
        },
    .load = {STORAGE_LIST(LOAD_ROW_)},
    .store = {STORAGE_LIST(STORE_ROW_)},
    .load_box = {STORAGE_LIST(LOAD_BOX_ROW_)},
    .store_box = {STORAGE_LIST(STORE_BOX_ROW_)},
    .gather = {STORAGE_LIST(GATHER_ROW_)},
    .expand = {expand_f32, expand_f64, expand_i32, expand_i64, expand_i64},
    .repeat = {repeat_f32, repeat_f64, repeat_i32, repeat_i64, repeat_i64},
    .count = {count_i32, count_i64},
    .random = random_words,
    .find_zero = {find_zero_i32, find_zero_i64},
};
