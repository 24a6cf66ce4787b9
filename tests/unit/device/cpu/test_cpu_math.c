/* The mathematics of the tiles, for each instruction set. Compares every 257th f32 pattern of each unary
 * function with the C library in f64, in ULP. Also pow on random pairs, special values, all conversions of
 * f16 and bf16, and the integer rules. Prints the largest error of each op. WEFT_MATH_STEP=1 tests every
 * pattern. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "device/cpu/tile/tiles.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static float float_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint32_t bits_of(float x) {
    uint32_t b;
    memcpy(&b, &x, sizeof b);
    return b;
}

/* |got - want| in units of the last place of want (Muller): 0 for equal infinities and for two NaN. */
static double ulp_error(float got, double want) {
    if (isnan(want)) return isnan(got) ? 0 : 1e30;
    if (isnan(got)) return 1e30;
    double limit = 0x1.ffffffp127; /* halfway to 2^128 */
    if (fabs(want) >= limit) return (isinf(got) && (got > 0) == (want > 0)) ? 0 : 1e30;
    int e;
    frexp(want, &e);
    e = e - 1 < -126 ? -126 : e - 1;
    double g = isinf(got) ? copysign(0x1p128, got) : (double)got;
    return fabs(g - want) / ldexp(1.0, e - 23);
}

typedef struct unary {
    weft_op op;
    const char *name;
    double (*want)(double);
    double bound;
} unary;

static double want_rsqrt(double x) { return 1 / sqrt(x); }
static double want_recip(double x) { return 1 / x; }
static double want_sigmoid(double x) { return x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x)); }
static double want_neg(double x) { return -x; }
static double want_sign(double x) { return isnan(x) ? x : (x > 0) - (x < 0); }
static double want_relu(double x) { return isnan(x) ? x : x > 0 ? x : 0; }

static const unary unaries[] = {
    {WEFT_OP_EXP, "exp", exp, 4},
    {WEFT_OP_EXP2, "exp2", exp2, 4},
    {WEFT_OP_LOG, "log", log, 4},
    {WEFT_OP_LOG2, "log2", log2, 4},
    {WEFT_OP_LOG1P, "log1p", log1p, 4},
    {WEFT_OP_EXPM1, "expm1", expm1, 4},
    {WEFT_OP_SIN, "sin", sin, 4},
    {WEFT_OP_COS, "cos", cos, 4},
    {WEFT_OP_TANH, "tanh", tanh, 6},
    {WEFT_OP_ERF, "erf", erf, 8},
    {WEFT_OP_SQRT, "sqrt", sqrt, 0.5},
    {WEFT_OP_RSQRT, "rsqrt", want_rsqrt, 3},
    {WEFT_OP_RECIP, "recip", want_recip, 0.5},
    {WEFT_OP_SIGMOID, "sigmoid", want_sigmoid, 5},
    {WEFT_OP_NEG, "neg", want_neg, 0},
    {WEFT_OP_ABS, "abs", fabs, 0},
    {WEFT_OP_SIGN, "sign", want_sign, 0},
    {WEFT_OP_FLOOR, "floor", floor, 0},
    {WEFT_OP_CEIL, "ceil", ceil, 0},
    {WEFT_OP_ROUND, "round", rint, 0},
    {WEFT_OP_TRUNC, "trunc", trunc, 0},
    {WEFT_OP_RELU, "relu", want_relu, 0},
};

typedef struct isa_table {
    const char *name;
    const weft_tiles *tiles;
    weft_cpu_isa isa;
} isa_table;

static const isa_table tables[] = {
    {"baseline", &weft__tiles_baseline, WEFT_ISA_BASELINE},
#if defined(__x86_64__)
    {"avx2", &weft__tiles_avx2, WEFT_ISA_AVX2},
    {"avx512", &weft__tiles_avx512, WEFT_ISA_AVX512},
#endif
};

static bool usable(const isa_table *t) {
    if (t->isa <= weft__cpu_isa()) return true;
    print_message("[ skipped  ] %s: this machine or WEFT_CPU_ISA lacks it\n", t->name);
    return false;
}

/* Tests one function on every usable table. Expected values are computed once for all tables. If a result
 * equals the first table's, its error is known already. */
static void sweep(const unary *u, uint32_t step, const bool *use) {
    static float x[WEFT_TILE], y[COUNT(tables)][WEFT_TILE];
    double worst[COUNT(tables)] = {0};
    float at[COUNT(tables)] = {0};
    for (uint64_t pattern = 0; pattern <= UINT32_MAX;) {
        int n = 0;
        for (; n < WEFT_TILE - 3 && pattern <= UINT32_MAX; pattern += step)
            x[n++] = float_of((uint32_t)pattern);
        for (size_t t = 0; t < COUNT(tables); t++)
            if (use[t]) tables[t].tiles->calc[u->op][WEFT_CT_F32][0](n, y[t], x, x, x);
        for (int i = 0; i < n; i++) {
            double want = u->want((double)x[i]), e0 = 0;
            for (size_t t = 0; t < COUNT(tables); t++) {
                if (!use[t]) continue;
                double e = t && bits_of(y[t][i]) == bits_of(y[0][i]) ? e0 : ulp_error(y[t][i], want);
                if (want == 0 && y[t][i] == 0 && !signbit(want) != !signbit(y[t][i]) && u->op != WEFT_OP_RELU)
                    e = 1e29;
                if (t == 0) e0 = e;
                if (e > worst[t]) worst[t] = e, at[t] = x[i];
            }
        }
    }
    for (size_t t = 0; t < COUNT(tables); t++) {
        if (!use[t]) continue;
        print_message("%-8s %-8s max %.3f ulp at %a\n", tables[t].name, u->name, worst[t], (double)at[t]);
        if (worst[t] > u->bound)
            fail_msg("%s %s: %g ulp at %a, bound %g", tables[t].name, u->name, worst[t], (double)at[t],
                     u->bound);
    }
}

static void test_unary(void **state) {
    (void)state;
    const char *text = getenv("WEFT_MATH_STEP");
    uint32_t step = text ? (uint32_t)strtoul(text, NULL, 10) : 257;
    bool use[COUNT(tables)];
    for (size_t t = 0; t < COUNT(tables); t++) use[t] = usable(&tables[t]);
    for (size_t i = 0; i < COUNT(unaries); i++) sweep(&unaries[i], step ? step : 257, use);
}

static double want_gelu(double x) { return x * 0.5 * erfc(-x * sqrt(0.5)); }
static double want_gelu_slope(double x) {
    return 0.5 * erfc(-x * sqrt(0.5)) + x * exp(-0.5 * x * x) / sqrt(2 * acos(-1));
}
static double twice(double x) { return 2 * sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x); }
static double want_gelu_tanh(double x) { return x / (1 + exp(-twice(x))); }
static double want_gelu_tanh_slope(double x) {
    double turn = 2 * sqrt(2 / acos(-1)) * (1 + 3 * 0.044715 * x * x), e = exp(-fabs(twice(x)));
    return (x > 0 ? 1 : e) / (1 + e) + (e > 0 ? x * turn * e / ((1 + e) * (1 + e)) : 0);
}

/* Within 8 ULP, or 4 u |x| where the result is small compared with x. */
static void test_gelu(void **state) {
    (void)state;
    static const unary rows[] = {{WEFT_OP_GELU, "gelu", want_gelu, 8},
                                 {WEFT_OP_GELU_SLOPE, "gelu_slope", want_gelu_slope, 8},
                                 {WEFT_OP_GELU_TANH, "gelu_tanh", want_gelu_tanh, 8},
                                 {WEFT_OP_GELU_TANH_SLOPE, "gelu_tanh_slope", want_gelu_tanh_slope, 8}};
    for (size_t t = 0; t < COUNT(tables) && usable(&tables[t]); t++)
        for (size_t r = 0; r < COUNT(rows); r++) {
            double worst = 0;
            float at = 0;
            for (uint64_t pattern = 0; pattern <= UINT32_MAX; pattern += 4099) {
                float x = float_of((uint32_t)pattern), y;
                if (isinf(x)) continue;
                tables[t].tiles->calc[rows[r].op][WEFT_CT_F32][0](1, &y, &x, &x, &x);
                double want = rows[r].want((double)x), ulps = ulp_error(y, want);
                double small = fabs((double)y - want) / (fabs((double)x) * 0x1p-22) * rows[r].bound;
                double error = small < ulps ? small : ulps;
                if (error > worst) worst = error, at = x;
            }
            print_message("%-8s %-16s worst %.3f of %g at %a\n", tables[t].name, rows[r].name, worst,
                          rows[r].bound, (double)at);
            if (worst > rows[r].bound) fail_msg("%s %s at %a", tables[t].name, rows[r].name, (double)at);
        }
}

/* Two operations in one loop give the same bits as one after the other, for vectors and single elements. */
static void test_pairs(void **state) {
    (void)state;
    static const weft_op ops[] = {WEFT_OP_ADD, WEFT_OP_SUB, WEFT_OP_MUL, WEFT_OP_SUB};
    enum { N = 37 };
    float x[3][N], t[N], want[N], got[N];
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < N; i++)
            x[k][i] = (float)((double)(int64_t)weft__mix64((uint64_t)(k * N + i + 1)) * 0x1p-62);
    for (size_t f = 0; f < COUNT(tables) && usable(&tables[f]); f++)
        for (int p = 0; p < WEFT_PAIR_FROM; p++)
            for (int q = 0; q < WEFT_PAIRS; q++)
                for (unsigned one = 0; one < WEFT_TILE_VARIANTS; one++) {
                    const weft_tiles *tiles = tables[f].tiles;
                    if ((one & 3) == 3) continue;
                    tiles->calc[ops[p]][WEFT_CT_F32][one & 3](N, t, x[0], x[1], x[1]);
                    if (q == WEFT_PAIR_FROM)
                        tiles->calc[ops[q]][WEFT_CT_F32][one >> 2](N, want, x[2], t, t);
                    else
                        tiles->calc[ops[q]][WEFT_CT_F32][one >> 2 << 1](N, want, t, x[2], x[2]);
                    tiles->pair[p][q][one](N, got, x[0], x[1], x[2]);
                    assert_memory_equal(got, want, sizeof got);
                }
}

static void test_pow(void **state) {
    (void)state;
    static float x[WEFT_TILE], y[WEFT_TILE], z[WEFT_TILE];
    for (size_t t = 0; t < COUNT(tables) && usable(&tables[t]); t++) {
        double worst = 0;
        float wx = 0, wy = 0;
        uint64_t s = 7;
        for (int round = 0; round < 4000; round++) {
            for (int i = 0; i < WEFT_TILE; i++) {
                s = weft__mix64(s + 1);
                x[i] = float_of((uint32_t)s);
                y[i] = round % 4 == 0   ? float_of((uint32_t)(s >> 32))
                       : round % 4 == 1 ? (float)((int32_t)(s >> 32) % 40) * 0.5f
                                        : (float)((double)(s >> 32) * 0x1p-32 * 8 - 4);
                if (round % 4 == 3) x[i] = 1.0f + (float)((int32_t)s) * 0x1p-31f * 0.5f, y[i] *= 40;
            }
            tables[t].tiles->calc[WEFT_OP_POW][WEFT_CT_F32][0](WEFT_TILE, z, x, y, y);
            for (int i = 0; i < WEFT_TILE; i++) {
                double e = ulp_error(z[i], pow((double)x[i], (double)y[i]));
                if (e > worst) worst = e, wx = x[i], wy = y[i];
            }
        }
        print_message("%-8s %-8s max %.3f ulp at %a, %a\n", tables[t].name, "pow", worst, (double)wx,
                      (double)wy);
        assert_true(worst <= 16);
        static const float values[] = {0.0f,      -0.0f, 1,     -1,       2,        -2,
                                       3,         -3,    0.5f,  -0.5f,    1e-40f,   INFINITY,
                                       -INFINITY, NAN,   1e30f, 16777216, -16777215};
        for (size_t i = 0; i < COUNT(values); i++)
            for (size_t j = 0; j < COUNT(values); j++) {
                float got;
                tables[t].tiles->calc[WEFT_OP_POW][WEFT_CT_F32][0](1, &got, &values[i], &values[j],
                                                                   &values[j]);
                double want = pow((double)values[i], (double)values[j]);
                if (ulp_error(got, want) > 16 || (want == 0 && !signbit(got) != !signbit(want)))
                    fail_msg("%s: pow(%g, %g) = %g", tables[t].name, (double)values[i], (double)values[j],
                             (double)got);
            }
    }
}

static void test_predicates(void **state) {
    (void)state;
    for (size_t t = 0; t < COUNT(tables) && usable(&tables[t]); t++) {
        const float x[] = {0, -1, INFINITY, -INFINITY, NAN, -NAN, 1e-45f};
        int32_t nan[7], inf[7];
        tables[t].tiles->calc[WEFT_OP_ISNAN][WEFT_CT_F32][0](7, nan, x, x, x);
        tables[t].tiles->calc[WEFT_OP_ISINF][WEFT_CT_F32][0](7, inf, x, x, x);
        for (int i = 0; i < 7; i++) {
            assert_int_equal(nan[i], isnan(x[i]) != 0);
            assert_int_equal(inf[i], isinf(x[i]) != 0);
        }
        float m;
        const float one = 1, not_a_number = NAN;
        weft_tile_calc max = tables[t].tiles->calc[WEFT_OP_MAXIMUM][WEFT_CT_F32][0];
        weft_tile_calc min = tables[t].tiles->calc[WEFT_OP_MINIMUM][WEFT_CT_F32][0];
        max(1, &m, &one, &not_a_number, NULL), assert_true(isnan(m));
        max(1, &m, &not_a_number, &one, NULL), assert_true(isnan(m));
        min(1, &m, &one, &not_a_number, NULL), assert_true(isnan(m));
        min(1, &m, &not_a_number, &one, NULL), assert_true(isnan(m));
    }
}

static void test_half_floats(void **state) {
    (void)state;
    static uint16_t h[65536], back[65536];
    static float x[65536], r[65536];
    for (size_t t = 0; t < COUNT(tables) && usable(&tables[t]); t++) {
        const weft_tiles *tiles = tables[t].tiles;
        for (int i = 0; i < 65536; i++) h[i] = (uint16_t)i;
        tiles->load[WEFT_F16](65536, x, h, 1);
        for (int i = 0; i < 65536; i++)
            if (!isnan(x[i]) || !isnan(weft_f16_to_f32(h[i])))
                assert_int_equal(bits_of(x[i]), bits_of(weft_f16_to_f32(h[i])));
        tiles->store[WEFT_F16](65536, back, 1, x);
        for (int i = 0; i < 65536; i++)
            assert_true(isnan(x[i]) ? isnan(weft_f16_to_f32(back[i])) : back[i] == h[i]);
        for (uint32_t k = 0; k < 65536; k++)
            x[k] = float_of(k * 65536u + (k * 40503u & 0xffffu)), r[k] = float_of(0x33000000u + k * 4091u);
        for (int half = 0; half < 2; half++) {
            const float *from = half ? r : x;
            tiles->store[WEFT_F16](65536, back, 1, from);
            for (int i = 0; i < 65536; i++)
                assert_true(isnan(from[i]) ? isnan(weft_f16_to_f32(back[i]))
                                           : back[i] == weft_f32_to_f16(from[i]));
            tiles->store[WEFT_BF16](65536, back, 1, from);
            for (int i = 0; i < 65536; i++)
                assert_true(isnan(from[i]) ? isnan(weft_bf16_to_f32(back[i]))
                                           : back[i] == weft_f32_to_bf16(from[i]));
        }
    }
}

static void test_integers(void **state) {
    (void)state;
    for (size_t t = 0; t < COUNT(tables) && usable(&tables[t]); t++) {
        const weft_tiles *tiles = tables[t].tiles;
        const int32_t a[] = {7, -7, 7, -7, INT32_MIN, 5, 0}, b[] = {3, 3, -3, -3, -1, 0, 0};
        const int32_t quotient[] = {2, -2, -2, 2, INT32_MIN, 0, 0}, rest[] = {1, 2, -2, -1, 0, 0, 0};
        int32_t o[7];
        tiles->calc[WEFT_OP_DIV][WEFT_CT_I32][0](7, o, a, b, b);
        assert_memory_equal(o, quotient, sizeof o);
        tiles->calc[WEFT_OP_MOD][WEFT_CT_I32][0](7, o, a, b, b);
        assert_memory_equal(o, rest, sizeof o);
        const int64_t c[] = {1, -8, 1}, d[] = {65, 1, 63}, left[] = {2, -16, INT64_MIN}, right[] = {0, -4, 0};
        int64_t p[3];
        tiles->calc[WEFT_OP_SHL][WEFT_CT_I64][0](3, p, c, d, d);
        assert_memory_equal(p, left, sizeof p);
        tiles->calc[WEFT_OP_SHR][WEFT_CT_I64][0](3, p, c, d, d);
        assert_memory_equal(p, right, sizeof p);
        const float f[] = {1.9f, -1.9f, 3e9f, -3e9f, NAN, INFINITY, 2147483520.0f};
        const int32_t whole[] = {1, -1, INT32_MAX, INT32_MIN, 0, INT32_MAX, 2147483520},
                      byte[] = {1, 0, 255, 0, 0, 255, 255};
        tiles->cast[WEFT_CT_F32][WEFT_I32](7, o, f, NULL, NULL);
        assert_memory_equal(o, whole, sizeof o);
        tiles->cast[WEFT_CT_F32][WEFT_U8](7, o, f, NULL, NULL);
        assert_memory_equal(o, byte, sizeof o);
        const double g[] = {1e19, -1e19, NAN};
        const int64_t wide[] = {INT64_MAX, INT64_MIN, 0};
        tiles->cast[WEFT_CT_F64][WEFT_I64](3, p, g, NULL, NULL);
        assert_memory_equal(p, wide, sizeof p);
    }
}

static void test_random(void **state) {
    (void)state;
    uint32_t key[2];
    weft__philox_key(5, 9, key);
    const int32_t words[8] = {(int32_t)key[0], (int32_t)key[1], 3, 1, 6, 2};
    int32_t out[300];
    for (size_t t = 0; t < COUNT(tables) && usable(&tables[t]); t++)
        for (int64_t stride = -3; stride <= 3; stride++) {
            tables[t].tiles->random(300, out, 1000, stride, words);
            for (int i = 0; i < 300; i++) {
                uint64_t element = ((uint64_t)2 << 32) + 6 + (uint64_t)(1000 + i * stride);
                assert_int_equal((uint32_t)out[i], weft__random_u32(5, 9, ((uint64_t)1 << 32) + 3, element));
            }
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unary),      cmocka_unit_test(test_gelu),
        cmocka_unit_test(test_pairs),      cmocka_unit_test(test_pow),
        cmocka_unit_test(test_predicates), cmocka_unit_test(test_half_floats),
        cmocka_unit_test(test_integers),   cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
