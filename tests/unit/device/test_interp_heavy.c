/* src/device/interp. Compares its numbers (op table rows, casts, rounding) with values computed by hand.
 * Heavy operations: matmul, scatter-add and update compared with arrays, attention with small cases and
 * finite differences. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "device/interp/interp.h"
#include "device/module.h"

/* ---- numbers ---- */

static weft_value number(double f) { return (weft_value){.f = f}; }
static weft_value integer(int64_t i) { return (weft_value){.i = i}; }

static void assert_int(weft_op op, weft_dtype dtype, int64_t a, int64_t b, int64_t expected, bool faults) {
    bool by_zero = false;
    const int64_t got = weft__interp_calc((int)op, dtype, integer(a), integer(b), integer(0), &by_zero).i;
    if (got != expected || by_zero != faults)
        print_message("op %d %s of %lld, %lld: %lld\n", op, weft_dtype_name(dtype), (long long)a,
                      (long long)b, (long long)got);
    assert_true(got == expected && by_zero == faults);
}

static void test_integers(void **state) {
    (void)state;
    assert_int(WEFT_OP_ADD, WEFT_I8, 127, 1, -128, false);
    assert_int(WEFT_OP_SUB, WEFT_U8, 0, 1, 255, false);
    assert_int(WEFT_OP_MUL, WEFT_I32, 65536, 65537, 65536, false);
    assert_int(WEFT_OP_MUL, WEFT_I64, INT64_MAX, 2, -2, false);
    assert_int(WEFT_OP_NEG, WEFT_I32, INT32_MIN, 0, INT32_MIN, false);
    assert_int(WEFT_OP_ABS, WEFT_I64, INT64_MIN, 0, INT64_MIN, false);
    assert_int(WEFT_OP_DIV, WEFT_I32, -7, 2, -3, false);
    assert_int(WEFT_OP_DIV, WEFT_I32, 7, 0, 0, true);
    assert_int(WEFT_OP_DIV, WEFT_I32, INT32_MIN, -1, INT32_MIN, false);
    assert_int(WEFT_OP_DIV, WEFT_I64, INT64_MIN, -1, INT64_MIN, false);
    assert_int(WEFT_OP_DIV, WEFT_U64, -1, 2, INT64_MAX, false);
    assert_int(WEFT_OP_MOD, WEFT_I32, -7, 3, 2, false);
    assert_int(WEFT_OP_MOD, WEFT_I32, 7, -3, -2, false);
    assert_int(WEFT_OP_MOD, WEFT_I32, -6, 3, 0, false);
    assert_int(WEFT_OP_MOD, WEFT_I64, INT64_MIN, -1, 0, false);
    assert_int(WEFT_OP_MOD, WEFT_U8, 5, 0, 0, true);
    assert_int(WEFT_OP_SHL, WEFT_I32, 1, 33, 2, false);
    assert_int(WEFT_OP_SHL, WEFT_I32, 1, -1, INT32_MIN, false);
    assert_int(WEFT_OP_SHR, WEFT_I32, -8, 1, -4, false);
    assert_int(WEFT_OP_SHR, WEFT_U8, 200, 9, 100, false);
    assert_int(WEFT_OP_SHR, WEFT_U64, -2, 1, INT64_MAX, false);
    assert_int(WEFT_OP_NOT, WEFT_BOOL, 1, 0, 0, false);
    assert_int(WEFT_OP_NOT, WEFT_U8, 1, 0, 254, false);
    assert_int(WEFT_OP_XOR, WEFT_I32, -1, 1, -2, false);
    assert_int(WEFT_OP_LT, WEFT_U64, -1, 1, 0, false);
    assert_int(WEFT_OP_LT, WEFT_I64, -1, 1, 1, false);
    assert_int(WEFT_OP_MAXIMUM, WEFT_U64, -1, 1, -1, false);
    assert_int(WEFT_OP_SIGN, WEFT_I8, -5, 0, -1, false);
    assert_int(WEFT_OP_RELU, WEFT_I8, -5, 0, 0, false);
}

static double f64(weft_op op, double a, double b) {
    bool by_zero = false;
    double got = weft__interp_calc((int)op, WEFT_F64, number(a), number(b), number(0), &by_zero).f;
    assert_false(by_zero);
    return got;
}

static int64_t truth(weft_op op, double a, double b) {
    bool by_zero = false;
    return weft__interp_calc((int)op, WEFT_F32, number(a), number(b), number(0), &by_zero).i;
}

static void test_floats(void **state) {
    (void)state;
    assert_true(f64(WEFT_OP_MOD, -7, 3) == 2 && f64(WEFT_OP_MOD, 7, -3) == -2 &&
                f64(WEFT_OP_MOD, 5.5, 2) == 1.5);
    assert_true(f64(WEFT_OP_MOD, -1, HUGE_VAL) == HUGE_VAL && isnan(f64(WEFT_OP_MOD, 1, 0)));
    assert_true(f64(WEFT_OP_DIV, 1, 0) == HUGE_VAL && isnan(f64(WEFT_OP_DIV, 0, 0)));
    assert_true(isnan(f64(WEFT_OP_MAXIMUM, NAN, 1)) && isnan(f64(WEFT_OP_MAXIMUM, 1, NAN)));
    assert_true(isnan(f64(WEFT_OP_MINIMUM, 1, NAN)) && f64(WEFT_OP_MINIMUM, 1, -HUGE_VAL) == -HUGE_VAL);
    assert_true(isnan(f64(WEFT_OP_RELU, NAN, 0)) && f64(WEFT_OP_RELU, -3, 0) == 0);
    assert_true(isnan(f64(WEFT_OP_SIGN, NAN, 0)) && f64(WEFT_OP_SIGN, -2, 0) == -1);
    assert_true(f64(WEFT_OP_ROUND, 2.5, 0) == 2 && f64(WEFT_OP_ROUND, -3.5, 0) == -4);
    assert_true(f64(WEFT_OP_TRUNC, -2.7, 0) == -2 && f64(WEFT_OP_FLOOR, -2.2, 0) == -3 &&
                f64(WEFT_OP_CEIL, 2.2, 0) == 3);
    assert_true(f64(WEFT_OP_SIGMOID, -800, 0) == 0 && f64(WEFT_OP_SIGMOID, 800, 0) == 1);
    assert_true(f64(WEFT_OP_RSQRT, 4, 0) == 0.5 && f64(WEFT_OP_RECIP, 4, 0) == 0.25 &&
                f64(WEFT_OP_POW, 2, 10) == 1024);
    assert_true(f64(WEFT_OP_EXP2, 3, 0) == 8 && f64(WEFT_OP_LOG2, 8, 0) == 3 &&
                f64(WEFT_OP_EXPM1, 1e-20, 0) == 1e-20);
    assert_true(fabs(f64(WEFT_OP_ERF, 1, 0) - 0.84270079294971486934) < 1e-15);
    assert_int_equal(truth(WEFT_OP_NE, NAN, NAN), 1);
    assert_int_equal(truth(WEFT_OP_EQ, NAN, NAN) + truth(WEFT_OP_LE, NAN, 1) + truth(WEFT_OP_GT, NAN, 1), 0);
    assert_int_equal(truth(WEFT_OP_ISNAN, NAN, 0) + truth(WEFT_OP_ISINF, -HUGE_VAL, 0), 2);
    assert_int_equal(truth(WEFT_OP_ISINF, NAN, 0), 0);
}

static void test_casts_and_rounding(void **state) {
    (void)state;
    static const struct {
        weft_dtype to;
        double from;
        int64_t expected;
    } floats[] = {
        {WEFT_I8, 127.9, 127},        {WEFT_I8, 1e9, 127},
        {WEFT_I8, -1e9, -128},        {WEFT_U8, -3, 0},
        {WEFT_U8, -0.9, 0},           {WEFT_I32, NAN, 0},
        {WEFT_I32, -2.9, -2},         {WEFT_I64, 1e30, INT64_MAX},
        {WEFT_I64, -1e30, INT64_MIN}, {WEFT_I64, 0x1p62, 1LL << 62},
        {WEFT_U64, 1e30, -1},         {WEFT_U64, 0x1p63, INT64_MIN},
        {WEFT_BOOL, 0.25, 1},         {WEFT_BOOL, -0.0, 0},
        {WEFT_BOOL, NAN, 1},          {WEFT_U32, 4294967295.0, 4294967295},
    };
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++)
        assert_true(weft__interp_cast(WEFT_F64, floats[i].to, number(floats[i].from)).i ==
                    floats[i].expected);
    assert_int_equal(weft__interp_cast(WEFT_I32, WEFT_I8, integer(200)).i, -56);
    assert_int_equal(weft__interp_cast(WEFT_I32, WEFT_BOOL, integer(256)).i, 1);
    assert_true(weft__interp_cast(WEFT_U64, WEFT_F64, integer(-1)).f == 0x1p64);
    assert_true(weft__interp_cast(WEFT_BOOL, WEFT_F16, integer(1)).f == 1);
    /* a value just above the middle of two f16: rounding it to f32 first would give the wrong neighbour */
    const double middle = 1 + 0x1p-11;
    assert_true(weft__interp_rounded(WEFT_F16, number(middle)).f == 1);
    assert_true(weft__interp_rounded(WEFT_F16, number(middle + 0x1p-50)).f == 1 + 0x1p-10);
    assert_true(weft__interp_rounded(WEFT_BF16, number(1 + 0x1p-8 + 0x1p-50)).f == 1 + 0x1p-7);
    assert_true(weft__interp_rounded(WEFT_BF16, number(-1 - 0x1p-8)).f == -1);
    assert_true(weft__interp_rounded(WEFT_F16, number(1e300)).f == HUGE_VAL);
    assert_true(isnan(weft__interp_rounded(WEFT_F16, number(NAN)).f));
    assert_true(weft__interp_rounded(WEFT_F32, number(0.1)).f == (double)0.1f);
    assert_int_equal(weft__interp_rounded(WEFT_I16, integer(40000)).i, 40000 - 65536);
    assert_int_equal(weft__interp_rounded(WEFT_U32, integer(-1)).i, 4294967295);
    uint16_t h[1 << 8]; /* each f16 stays the same */
    for (uint32_t high = 0; high < 256; high++) {
        for (uint32_t low = 0; low < 256; low++) h[low] = (uint16_t)(high << 8 | low);
        for (int64_t low = 0; low < 256; low++) {
            const weft_value v = weft__interp_load(WEFT_F16, h, low);
            uint16_t back;
            weft__interp_store(WEFT_F16, &back, 0, v);
            if (!isnan(v.f)) assert_int_equal(back, h[low]);
        }
    }
}

/* ---- heavy operations ---- */

typedef struct fixture {
    weft_context ctx;
    weft_device *device;
} fixture;

static void setup(fixture *f) {
    memset(f, 0, sizeof *f);
    assert_int_equal(weft__device_interp.open(&weft__device_interp, &f->ctx, "", NULL, &f->device), WEFT_OK);
}
static void teardown(fixture *f) { f->device->ops->close(f->device); }

static weft_fault fault_of(fixture *f) {
    weft_fault fault;
    assert_int_equal(f->device->ops->take_fault(f->device, &fault), WEFT_OK);
    return fault;
}

static weft_status run_heavy(fixture *f, const weft_heavy *h, void *const *args, const int64_t *bytes) {
    return weft__interp_heavy((weft_interp *)f->device, h, args, bytes);
}

static void test_matmul(void **state) {
    (void)state;
    fixture f;
    setup(&f);
    /* two batches of (2, 3) x (3, 2); both use the same b, read transposed; c has a gap after each row */
    const float a[12] = {1, 2, 3, 4, 5, 6, -1, 0, 1, 2, 0, -2}, b[6] = {1, 0, 2, 0, 1, -1};
    float c[12];
    memset(c, 0, sizeof c);
    weft_heavy h = {.kind = WEFT_HEAVY_MATMUL,
                    .path = "net.fc",
                    .as.matmul = {.dtype = WEFT_F32,
                                  .out_dtype = WEFT_F32,
                                  .batch_rank = 1,
                                  .batch = {2},
                                  .a_batch = {6},
                                  .b_batch = {0},
                                  .c_batch = {6},
                                  .m = 2,
                                  .n = 2,
                                  .k = 3,
                                  .a_m = 3,
                                  .a_k = 1,
                                  .b_k = 1,
                                  .b_n = 3,
                                  .c_m = 3}};
    void *args[3] = {(void *)(uintptr_t)a, (void *)(uintptr_t)b, c};
    int64_t bytes[3] = {sizeof a, sizeof b, sizeof c};
    assert_int_equal(run_heavy(&f, &h, args, bytes), WEFT_OK);
    const float expected[12] = {7, -1, 0, 16, -1, 0, 1, -1, 0, -2, 2, 0};
    assert_memory_equal(c, expected, sizeof c);
    bytes[2] = 4 * 10; /* the last element is number 10 */
    assert_int_equal(run_heavy(&f, &h, args, bytes), WEFT_ERR_INTERNAL);
    assert_non_null(strstr(weft_last_error(&f.ctx), "net.fc: operand 2: elements 0..10 of a buffer of 10"));
    /* integers wrap */
    const int32_t x[2] = {INT32_MAX, 3}, y[2] = {2, 5};
    int32_t z;
    weft_heavy i = {.kind = WEFT_HEAVY_MATMUL,
                    .as.matmul = {.dtype = WEFT_I32,
                                  .out_dtype = WEFT_I32,
                                  .m = 1,
                                  .n = 1,
                                  .k = 2,
                                  .a_m = 2,
                                  .a_k = 1,
                                  .b_k = 1,
                                  .b_n = 1,
                                  .c_m = 1}};
    void *iargs[3] = {(void *)(uintptr_t)x, (void *)(uintptr_t)y, &z};
    const int64_t ibytes[3] = {8, 8, 4};
    assert_int_equal(run_heavy(&f, &i, iargs, ibytes), WEFT_OK);
    assert_int_equal(z, 13);
    i.as.matmul.k = 0; /* an empty sum */
    assert_int_equal(run_heavy(&f, &i, iargs, ibytes), WEFT_OK);
    assert_int_equal(z, 0);
    teardown(&f);
}

static void test_scatter(void **state) {
    (void)state;
    fixture f;
    setup(&f);
    const int32_t index[4] = {2, 0, 2, 0};
    const float source[16] = {1, 2, 3, 4, 5, 6, 7, 8, 10, 20, 30, 40, 50, 60, 70, 80};
    float out[12];
    weft_heavy h = {
        .kind = WEFT_HEAVY_SCATTER,
        .path = "net.embed",
        .as.scatter = {
            .dtype = WEFT_F32, .index_dtype = WEFT_I32, .outer = 2, .count = 4, .rows = 3, .inner = 2}};
    int32_t picks[4];
    void *args[3] = {picks, (void *)(uintptr_t)source, out};
    const int64_t bytes[3] = {sizeof index, sizeof source, sizeof out};
    memcpy(picks, index, sizeof picks);
    assert_int_equal(run_heavy(&f, &h, args, bytes), WEFT_OK);
    const float expected[12] = {10, 12, 0, 0, 6, 8, 100, 120, 0, 0, 60, 80};
    assert_memory_equal(out, expected, sizeof out);
    assert_int_equal(fault_of(&f).set, 0);
    float base[12];
    for (int i = 0; i < 12; i++) base[i] = (float)i;
    void *based[4] = {picks, (void *)(uintptr_t)source, base, out};
    const int64_t based_bytes[4] = {sizeof index, sizeof source, sizeof base, sizeof out};
    h.as.scatter.based = true;
    assert_int_equal(run_heavy(&f, &h, based, based_bytes), WEFT_OK);
    for (int i = 0; i < 12; i++) assert_true(out[i] == expected[i] + (float)i);
    based[3] = base; /* in place, and marked so */
    assert_int_equal(run_heavy(&f, &h, based, based_bytes), WEFT_ERR_INTERNAL);
    h.as.scatter.in_place = true;
    assert_int_equal(run_heavy(&f, &h, based, based_bytes), WEFT_OK);
    assert_memory_equal(base, out, sizeof out);
    h.as.scatter.based = h.as.scatter.in_place = false;
    picks[3] = 3;
    assert_int_equal(run_heavy(&f, &h, args, bytes), WEFT_OK);
    assert_true(out[0] == 3 && out[1] == 4 && out[4] == 6);
    const weft_fault fault = fault_of(&f);
    assert_true(fault.set && fault.value == 3 && fault.bound == 3 && fault.element == 3);
    assert_string_equal(fault.path, "net.embed");
    teardown(&f);
}

static void test_update(void **state) {
    (void)state;
    fixture f;
    setup(&f);
    int16_t cache[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, out[12];
    const int16_t value[4] = {-1, -2, -3, -4};
    int32_t offset = 1;
    weft_heavy h = {.kind = WEFT_HEAVY_UPDATE,
                    .as.update = {.dtype = WEFT_I16, .outer = 2, .total = 3, .extent = 1, .inner = 2}};
    void *args[4] = {cache, (void *)(uintptr_t)value, &offset, out};
    const int64_t bytes[4] = {sizeof cache, sizeof value, sizeof offset, sizeof out};
    assert_int_equal(run_heavy(&f, &h, args, bytes), WEFT_OK);
    const int16_t expected[12] = {0, 1, -1, -2, 4, 5, 6, 7, -3, -4, 10, 11};
    assert_memory_equal(out, expected, sizeof out);
    args[3] = cache; /* in place, and marked so */
    assert_int_equal(run_heavy(&f, &h, args, bytes), WEFT_ERR_INTERNAL);
    h.as.update.in_place = true;
    assert_int_equal(run_heavy(&f, &h, args, bytes), WEFT_OK);
    assert_memory_equal(cache, expected, sizeof cache);
    offset = 3;
    assert_int_equal(run_heavy(&f, &h, args, bytes), WEFT_OK);
    assert_memory_equal(cache, expected, sizeof cache);
    const weft_fault fault = fault_of(&f);
    assert_true(fault.set && fault.value == 3 && fault.bound == 3);
    teardown(&f);
}

/* ---- attention ---- */

enum { B = 2, H = 2, TQ = 3, TK = 4, D = 3, NQ = B * H * TQ * D, NK = B * H * TK * D, NL = B * H * TQ };

typedef struct problem {
    double q[NQ], k[NK], v[NK], out[NQ], lse[NL], dout[NQ], dq[NQ], dk[NK], dv[NK];
    int32_t key[8];
    weft_heavy h;
} problem;

/* q as (b, t, h, d), k and v as (b, h, t, d). */
static void make(problem *p, bool causal, double dropout, int64_t t_q) {
    memset(p, 0, sizeof *p);
    for (int i = 0; i < NQ; i++) p->q[i] = sin(1.7 * i), p->dout[i] = cos(2.3 * i + 1);
    for (int i = 0; i < NK; i++) p->k[i] = sin(0.9 * i + 2), p->v[i] = cos(1.1 * i);
    const int32_t key[8] = {123, 456, 7, 0, 1000, 0, 0, 0};
    memcpy(p->key, key, sizeof key);
    p->h.kind = WEFT_HEAVY_ATTENTION;
    p->h.as.attention = (weft_heavy_attention){.dtype = WEFT_F64,
                                               .causal = causal,
                                               .scale = 0.6,
                                               .dropout = dropout,
                                               .batch = B,
                                               .heads = H,
                                               .t_q = t_q,
                                               .t_k = TK,
                                               .d = D};
    weft_heavy_attention *a = &p->h.as.attention;
    const int64_t q[3] = {t_q * H * D, D, H * D}, k[3] = {H * TK * D, TK * D, D};
    int64_t *like_q[] = {a->q, a->out, a->dout, a->dq}, *like_k[] = {a->k, a->v, a->dk, a->dv};
    for (int i = 0; i < 4; i++) {
        memcpy(like_q[i], q, sizeof q);
        memcpy(like_k[i], k, sizeof k);
    }
}

static void run_attention(fixture *f, problem *p, bool backward) {
    void *args[10] = {p->q, p->k, p->v, p->key, p->out, p->lse, p->dout, p->dq, p->dk, p->dv};
    const int64_t bytes[10] = {sizeof p->q,   sizeof p->k,    sizeof p->v,  sizeof p->key, sizeof p->out,
                               sizeof p->lse, sizeof p->dout, sizeof p->dq, sizeof p->dk,  sizeof p->dv};
    p->h.as.attention.backward = backward;
    assert_int_equal(weft__heavy_class(&p->h)->operands(&p->h), backward ? 10 : 6);
    assert_int_equal(run_heavy(f, &p->h, args, bytes), WEFT_OK);
}

static void test_attention_values(void **state) {
    (void)state;
    static problem p;
    fixture f;
    setup(&f);
    make(&p, true, 0, TQ);
    memset(p.q, 0, sizeof p.q); /* all scores are 0: the result is the mean of the visible values, lse the
                                   logarithm of their number */
    run_attention(&f, &p, false);
    for (int b = 0; b < B; b++)
        for (int h = 0; h < H; h++)
            for (int i = 0; i < TQ; i++) {
                const int seen = i + (TK - TQ) + 1;
                assert_true(fabs(p.lse[(b * H + h) * TQ + i] - log(seen)) < 1e-14);
                for (int c = 0; c < D; c++) {
                    double mean = 0;
                    for (int j = 0; j < seen; j++) mean += p.v[((b * H + h) * TK + j) * D + c] / seen;
                    assert_true(fabs(p.out[((b * TQ + i) * H + h) * D + c] - mean) < 1e-14);
                }
            }
    /* two keys, computed by hand: weights 1/(1+e^-s) */
    const double s = 0.6 * (0.5 - -0.25) * 2;
    make(&p, false, 0, 1);
    p.h.as.attention.batch = p.h.as.attention.heads = 1;
    p.h.as.attention.t_k = 2;
    p.h.as.attention.d = 1;
    p.h.as.attention.k[2] = p.h.as.attention.v[2] = 1;
    p.q[0] = 2, p.k[0] = 0.5, p.k[1] = -0.25, p.v[0] = 10, p.v[1] = -4;
    run_attention(&f, &p, false);
    const double w = 1 / (1 + exp(-s));
    assert_true(fabs(p.out[0] - (10 * w - 4 * (1 - w))) < 1e-13);
    teardown(&f);
}

/* With a cache at position 1: causal attention over the first two of four keys. */
static void test_attention_over_a_cache(void **state) {
    (void)state;
    static problem p;
    fixture f;
    double wanted[B * H * D];
    setup(&f);
    make(&p, true, 0, 1);
    p.h.as.attention.t_k = 2;
    run_attention(&f, &p, false);
    memcpy(wanted, p.out, sizeof wanted);
    memset(p.out, 0, sizeof p.out);
    p.h.as.attention.t_k = TK;
    p.h.as.attention.cached = true;
    p.key[0] = 1;
    run_attention(&f, &p, false);
    assert_memory_equal(p.out, wanted, sizeof wanted);
    teardown(&f);
}

/* More queries than keys: the first queries see none. Their result and gradient are 0. */
static void test_attention_without_keys(void **state) {
    (void)state;
    static problem p;
    fixture f;
    setup(&f);
    make(&p, true, 0, TQ);
    weft_heavy_attention *a = &p.h.as.attention;
    a->t_k = 2;
    memset(p.out, 0xff, sizeof p.out);
    memset(p.dq, 0xff, sizeof p.dq);
    run_attention(&f, &p, false);
    run_attention(&f, &p, true);
    for (int b = 0; b < B; b++)
        for (int h = 0; h < H; h++) {
            assert_true(p.lse[(b * H + h) * TQ] == -HUGE_VAL);
            for (int c = 0; c < D; c++) {
                assert_true(p.out[(b * TQ * H + h) * D + c] == 0 && p.dq[(b * TQ * H + h) * D + c] == 0);
                const double last = p.out[((b * TQ + 2) * H + h) * D + c];
                assert_true(last == last);
            }
        }
    teardown(&f);
}

/* sum(out * dout) */
static double objective(fixture *f, problem *p) {
    double sum = 0;
    run_attention(f, p, false);
    for (int i = 0; i < NQ; i++) sum += p->out[i] * p->dout[i];
    return sum;
}

static void check_gradient(fixture *f, problem *p, double *x, const double *dx, int n) {
    const double step = 1e-3;
    for (int i = 0; i < n; i++) {
        const double at = x[i];
        double d[4];
        const double offsets[4] = {step, -step, 2 * step, -2 * step};
        for (int s = 0; s < 4; s++) {
            x[i] = at + offsets[s];
            d[s] = objective(f, p);
        }
        x[i] = at;
        const double slope = (8 * (d[0] - d[1]) - (d[2] - d[3])) / (12 * step);
        if (fabs(slope - dx[i]) >= 1e-9) print_message("element %d: %.17g, not %.17g\n", i, dx[i], slope);
        assert_true(fabs(slope - dx[i]) < 1e-9);
    }
}

static void test_attention_gradients(void **state) {
    (void)state;
    static problem p;
    fixture f;
    setup(&f);
    for (int variant = 0; variant < 4; variant++) {
        make(&p, variant % 2, variant / 2 ? 0.4 : 0, TQ);
        run_attention(&f, &p, true);
        check_gradient(&f, &p, p.q, p.dq, NQ);
        check_gradient(&f, &p, p.k, p.dk, NK);
        check_gradient(&f, &p, p.v, p.dv, NK);
    }
    teardown(&f);
}

/* With equal scores, the output counts the weights that dropout kept. Compares each with the random
 * stream. */
static void test_attention_dropout(void **state) {
    (void)state;
    static problem p;
    fixture f;
    setup(&f);
    make(&p, false, 0.4, TQ);
    memset(p.q, 0, sizeof p.q);
    int dropped = 0;
    run_attention(&f, &p, false);
    for (int b = 0; b < B; b++)
        for (int h = 0; h < H; h++)
            for (int i = 0; i < TQ; i++) {
                double sum = 0;
                for (int j = 0; j < TK; j++) {
                    const int64_t element = ((b * H + h) * TQ + i) * TK + j;
                    const uint32_t bits = (uint32_t)weft__interp_random(p.key, element);
                    if (weft__unit_float(bits) < 0.4f)
                        dropped++;
                    else
                        sum += p.v[((b * H + h) * TK + j) * D] / (double)TK / 0.6;
                }
                assert_true(fabs(p.out[((b * TQ + i) * H + h) * D] - sum) < 1e-13);
            }
    assert_in_range(dropped, 8, 32);
    teardown(&f);
}

static void test_decline(void **state) {
    (void)state;
    fixture f;
    setup(&f);
    weft_heavy h = {.kind = WEFT_HEAVY_ATTENTION};
    assert_true(f.device->ops->takes(f.device, &h));
    weft__interp_decline(f.device, 1u << WEFT_HEAVY_ATTENTION);
    assert_false(f.device->ops->takes(f.device, &h));
    h.kind = WEFT_HEAVY_MATMUL;
    assert_true(f.device->ops->takes(f.device, &h));
    teardown(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_floats),
        cmocka_unit_test(test_casts_and_rounding),
        cmocka_unit_test(test_matmul),
        cmocka_unit_test(test_scatter),
        cmocka_unit_test(test_update),
        cmocka_unit_test(test_attention_values),
        cmocka_unit_test(test_attention_over_a_cache),
        cmocka_unit_test(test_attention_without_keys),
        cmocka_unit_test(test_attention_gradients),
        cmocka_unit_test(test_attention_dropout),
        cmocka_unit_test(test_decline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
