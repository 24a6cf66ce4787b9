/* src/device/cpu: convolutions, recurrent layers, scans and argsort of many sizes, compared with the
 * interpreter's plain loops in f64. The bits must be the same for each partition into tasks and each number
 * of threads. The scratch memory is filled with NaN. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "device/cpu/cpu.h"
#include "interp/interp.h"
#include "unit/convs.h"
#include "unit/cpu_work.h"

#define COUNT(x) ((int)(sizeof(x) / sizeof *(x)))

static weft_context context;
static weft_device *interp;

static int open_interp(void **state) {
    (void)state;
    return weft__device_open(&context, "interp", NULL, &interp) != WEFT_OK;
}

static int close_interp(void **state) {
    (void)state;
    interp->ops->close(interp);
    weft__strings_free(&context);
    return 0;
}

/* ---- convolutions ---- */

/* Sizes that the CPU partitions in its own ways: by bands of rows, vectors of channels and lines of
 * pixels. */
static const geometry cuts[] = {
    {1, 1, 1, 2, {3, 2049}, {1, 1}, {2, 2}, {0, 0}, {1, 1}}, /* the last band lacks one residue of rows */
    {1, 1, 2, 1, {5, 1030}, {3, 3}, {2, 1}, {1, 1}, {1, 1}},
    {2, 1, 3, 37, {6, 230}, {3, 2}, {1, 1}, {1, 0}, {1, 1}},   /* lines of pixels in several parts */
    {2, 1, 130, 33, {5, 4}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},   /* sums in several parts */
    {2, 19, 1, 1, {9, 8}, {21, 20}, {1, 1}, {12, 11}, {1, 1}}, /* depthwise, in several parts */
    {9, 3, 5, 7, {17, 16}, {3, 3}, {2, 2}, {1, 1}, {1, 1}},
    {5, 1, 4, 70, {33, 31}, {5, 5}, {3, 2}, {2, 2}, {1, 2}},
};

/* Converts values from one dtype to another. */
static void *stored(weft_dtype dt, weft_dtype like, const void *values, int64_t n) {
    char *to = malloc((size_t)n * weft_dtype_size(dt) + 1);
    for (int64_t i = 0; i < n; i++) set_value(dt, to, i, value(like, values, i));
    return to;
}

static void near(const char *what, weft_dtype dt, const void *got, const double *want, int64_t n,
                 double bound) {
    double largest = 0;
    for (int64_t i = 0; i < n; i++) largest = fmax(largest, fabs(want[i]));
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(value(dt, got, i) - want[i]) <= bound * largest))
            fail_msg("%s of %s: element %lld: %g, should be %g (bound %g)", what, weft_dtype_name(dt),
                     (long long)i, value(dt, got, i), want[i], bound * largest);
}

/* Returns a hash of the result. */
static uint64_t check_conv(weft_dtype dt, weft_conv_pass pass, const geometry *g, int number) {
    const double u = dt == WEFT_F64 ? 0x1p-53 : 0x1p-24, half = dt == WEFT_F16    ? 0x1p-11
                                                                : dt == WEFT_BF16 ? 0x1p-8
                                                                                  : 0;
    const weft_heavy h = {.kind = WEFT_HEAVY_CONV, .as.conv = conv_of(dt, pass, g)};
    const weft_heavy wide = {.kind = WEFT_HEAVY_CONV, .as.conv = conv_of(WEFT_F64, pass, g)};
    const weft_heavy_conv *c = &h.as.conv;
    const int64_t taps = c->size[0] * c->size[1], k = pass == WEFT_CONV_FORWARD ? taps * c->in
                                                      : pass == WEFT_CONV_INPUT ? taps * c->out
                                                                                : c->n * c->y[0] * c->y[1];
    void *args[3], *exact[3];
    int64_t bytes[3];
    char what[64];
    for (int i = 0; i < 3; i++) {
        const int64_t n = conv_elements(c, i);
        args[i] = random_values(dt, n, (uint64_t)i + 1);
        exact[i] = stored(WEFT_F64, dt, args[i], n);
        bytes[i] = n * 8;
    }
    const int64_t n = conv_elements(c, 2);
    run_all_ways(&h, args, args[2], (size_t)n * weft_dtype_size(dt));
    assert_int_equal(weft__interp_heavy((weft_interp *)interp, &wide, exact, bytes), WEFT_OK);
    snprintf(what, sizeof what, "pass %d of geometry %d", (int)pass, number);
    near(what, dt, args[2], exact[2], n,
         (2 * log2(k > 1 ? (double)k : 1) + 4) * 4 * sqrt((double)k + 1) * u + 2 * half);
    weft_hash hash;
    weft__hash_init(&hash);
    weft__hash_bytes(&hash, args[2], (size_t)n * weft_dtype_size(dt));
    for (int i = 0; i < 3; i++) free(args[i]), free(exact[i]);
    return hash.a;
}

static void test_convolutions(void **state) {
    (void)state;
    static const weft_dtype dtypes[] = {WEFT_F32, WEFT_F64, WEFT_F16, WEFT_BF16};
    for (int d = 0; d < COUNT(dtypes); d++)
        for (int pass = 0; pass < 3; pass++) {
            for (int g = 0; g < COUNT(geometries); g++)
                check_conv(dtypes[d], (weft_conv_pass)pass, &geometries[g], g);
            for (int g = 0; g < COUNT(cuts); g++)
                check_conv(dtypes[d], (weft_conv_pass)pass, &cuts[g], 100 + g);
        }
}

/* ---- recurrent layers ---- */

/* Bytes of a result within the block of all results. Each begins at a multiple of 64 bytes, like a device's
 * buffers. */
static size_t padded(weft_dtype dt, int64_t n) { return ((size_t)n * weft_dtype_size(dt) + 63) / 64 * 64; }

/* The operands are in the order of device.h. All results follow, in one block. */
static void check_recurrent(weft_heavy_recurrent r) {
    const weft_heavy h = {.kind = WEFT_HEAVY_RECURRENT, .as.recurrent = r};
    const weft_dtype dt = (weft_dtype)r.dtype, wide = dt == WEFT_F64 ? WEFT_F64 : WEFT_F32;
    const bool lstm = r.kind == WEFT_LSTM, gru = r.kind == WEFT_GRU, gated = lstm || gru;
    const int64_t state = r.batch * r.width, g = (lstm ? 4 : gru ? 3 : 1) * r.width, rows = r.t * r.batch;
    const int64_t states = (r.t + 1 + lstm) * state;
    struct operand {
        weft_dtype dtype;
        int64_t n;
    } o[16];
    int n = 0, inputs;
#define ADD(dtype, count)                                                                                    \
    o[n++] = (struct operand) { dtype, count }
    if (r.backward) {
        ADD(dt, g * r.width), ADD(dt, states);
        if (gated) ADD(dt, 4 * rows * r.width);
        if (lstm) ADD(wide, rows * r.width), ADD(dt, state);
        ADD(dt, states);
    } else {
        ADD(dt, rows * g), ADD(dt, g * r.width), ADD(dt, g), ADD(dt, g), ADD(dt, state);
        if (lstm) ADD(dt, state);
    }
    if (r.masked) ADD(WEFT_I32, r.batch);
    inputs = n;
    if (r.backward) {
        ADD(dt, rows * g), ADD(dt, state);
        if (lstm) ADD(dt, state);
        if (gru) ADD(dt, rows * g);
    } else {
        ADD(dt, states);
        if (gated) ADD(dt, 4 * rows * r.width);
        if (lstm) ADD(wide, rows * r.width);
    }
#undef ADD
    void *args[16];
    size_t all = 0;
    for (int i = inputs; i < n; i++) all += padded(o[i].dtype, o[i].n);
    char *results = aligned_alloc(64, all), *to = results;
    memset(results, 0x11, all);
    for (int i = 0; i < n; i++) {
        if (i < inputs) {
            args[i] = random_values(o[i].dtype, o[i].n, (uint64_t)i + 3);
            for (int64_t e = 0; o[i].dtype == WEFT_I32 && e < o[i].n; e++)
                ((int32_t *)args[i])[e] = (int32_t)(e % (r.t + 1));
        } else {
            args[i] = to;
            to += padded(o[i].dtype, o[i].n);
        }
    }
    run_all_ways(&h, args, results, all);
    for (int i = inputs; i < n; i++)
        for (int64_t e = 0; e < o[i].n && !r.masked; e++)
            assert_true(isfinite(value(o[i].dtype, args[i], e)));
    for (int i = 0; i < inputs; i++) free(args[i]);
    free(results);
}

static void test_recurrent(void **state) {
    (void)state;
    static const weft_dtype dtypes[] = {WEFT_F32, WEFT_F64, WEFT_BF16};
    static const int64_t sizes[][3] = {{4, 1, 1}, {5, 9, 17}, {4, 71, 33}}; /* steps, sequences, width */
    for (int i = 0; i < COUNT(dtypes) * COUNT(sizes) * 4 * 8; i++) {
        const int64_t *size = sizes[i / 32 % COUNT(sizes)];
        check_recurrent((weft_heavy_recurrent){.dtype = (uint8_t)dtypes[i / 32 / COUNT(sizes)],
                                               .kind = (weft_recurrent_kind)(i / 8 % 4),
                                               .reverse = i & 1,
                                               .masked = i & 2,
                                               .backward = i & 4,
                                               .t = size[0],
                                               .batch = size[1],
                                               .width = size[2]});
    }
}

/* ---- other vector lengths ---- */

/* A hash of the results of convolutions and recurrent layers with an instruction set. */
static uint64_t bits_with(const char *isa) {
    uint64_t bits = 0;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork(); /* a process has one instruction set */
    assert_true(child >= 0);
    if (child == 0) {
        setenv("WEFT_CPU_ISA", isa, 1);
        for (int g = 0; g < COUNT(cuts); g++)
            for (int pass = 0; pass < 3; pass++)
                bits += check_conv(WEFT_F32, (weft_conv_pass)pass, &cuts[g], g);
        _exit(write(ends[1], &bits, sizeof bits) != sizeof bits);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(read(ends[0], &bits, sizeof bits), sizeof bits);
    close(ends[0]), close(ends[1]);
    return bits;
}

/* Both instruction sets have fma, the only feature that may change results. This test is first, since a
 * process detects its features only once. */
static void test_lanes(void **state) {
    (void)state;
    assert_true(bits_with("avx2") == bits_with("avx512"));
}

/* ---- scans and argsort ---- */

static void check_rows(const weft_heavy *h, weft_dtype dt, int64_t from, weft_dtype to_dt, int64_t to) {
    void *args[2] = {random_values(dt, from, 5), random_values(to_dt, to, 6)};
    for (int64_t i = 0; weft_dtype_is_float(dt) && i < from; i += 3) /* equal numbers, both zeros, NaN */
        set_value(dt, args[0], i, i % 5 == 0 ? 0.0 : i % 7 == 0 ? -0.0 : i % 11 == 0 ? (double)NAN : 1.5);
    void *want = malloc((size_t)to * weft_dtype_size(to_dt) + 1);
    const int64_t bytes[2] = {from * (int64_t)weft_dtype_size(dt), to * (int64_t)weft_dtype_size(to_dt)};
    run_all_ways(h, args, args[1], (size_t)bytes[1]);
    assert_int_equal(weft__interp_heavy((weft_interp *)interp, h, (void *[]){args[0], want}, bytes), WEFT_OK);
    if (h->kind == WEFT_HEAVY_ARGSORT || !weft_dtype_is_float(dt))
        assert_memory_equal(args[1], want, (size_t)bytes[1]);
    free(args[0]), free(args[1]), free(want);
}

static void test_scans_and_orders(void **state) {
    (void)state;
    static const weft_dtype dtypes[] = {WEFT_F32, WEFT_F64, WEFT_I32, WEFT_I64};
    static const int64_t scans[][3] = {{1, 1, 1}, {3, 70, 1}, {2, 9, 300}, {700, 5, 3}, {1, 4000, 2}};
    static const int64_t orders[][3] = {{1, 1, 1},   {40, 7, 7},    {3, 48, 5},   {3, 49, 49},
                                        {2, 700, 9}, {2, 900, 900}, {300, 33, 2}, {1, 700, 0}};
    for (int d = 0; d < COUNT(dtypes); d++) {
        for (int i = 0; i < COUNT(scans) * 4; i++) {
            const int64_t *s = scans[i / 4], n = s[0] * s[1] * s[2];
            const weft_heavy h = {.kind = WEFT_HEAVY_SCAN,
                                  .as.scan = {(uint8_t)dtypes[d], i & 1, i & 2, s[0], s[1], s[2]}};
            check_rows(&h, dtypes[d], n, dtypes[d], n);
        }
        for (int i = 0; i < COUNT(orders) * 2; i++) {
            const int64_t *o = orders[i / 2];
            const weft_heavy h = {.kind = WEFT_HEAVY_ARGSORT,
                                  .as.argsort = {(uint8_t)dtypes[d], i & 1, o[0], o[1], o[2]}};
            check_rows(&h, dtypes[d], o[0] * o[1], WEFT_I32, o[0] * o[2]);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lanes),
        cmocka_unit_test(test_convolutions),
        cmocka_unit_test(test_recurrent),
        cmocka_unit_test(test_scans_and_orders),
    };
    return cmocka_run_group_tests(tests, open_interp, close_interp);
}
