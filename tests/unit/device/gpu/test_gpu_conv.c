/* src/device/gpu: convolution and its two gradients as matmuls that read windows in place. Kernels run on an
 * OpenCL device, and those for tensor cores on CUDA. They are compared with the interpreter's plain loops in
 * f64. Each runs twice with equal bits, between guarded buffers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "device/conv_matmul.h"
#include "device/cuda/dnn/dnn.h"
#include "device/gpu/heavy/heavy.h"
#include "gpu.h"
#include "gpu_heavy.h"
#include "unit/convs.h"

/* f32 operands have values that TF32 holds, too. */
static operands operands_of(weft_dtype dt, weft_dtype like, const weft_heavy_conv *c) {
    operands o = {.n = 3};
    for (int i = 0; i < 3; i++) {
        const int64_t n = conv_elements(c, i);
        void *values = random_values(like, n, (uint64_t)i + 1);
        o.bytes[i] = (size_t)n * weft_dtype_size(dt);
        o.data[i] = malloc(o.bytes[i] + 1);
        memset(o.data[i], 0x3c, o.bytes[i]);
        for (int64_t e = 0; like == WEFT_F32 && e < n; e++)
            set_value(like, values, e, round(value(like, values, e) * 0x1p10) * 0x1p-10);
        for (int64_t e = 0; i < 2 && e < n; e++) set_value(dt, o.data[i], e, value(like, values, e));
        free(values);
    }
    return o;
}

/* Class D for sums of k products. `size` holds the sums of their magnitudes. */
static void near_sums(const char *what, weft_dtype dt, int64_t k, const operands *got, const operands *want,
                      const operands *size) {
    const double u = dt == WEFT_F64 ? 0x1p-52 /* the reference rounds too */ : 0x1p-24;
    const double stored = dt == WEFT_F16    ? 0x1p-11
                          : dt == WEFT_BF16 ? 0x1p-8
                                            : u,
                 steps = 2 * log2((double)k) + 4;
    for (int64_t i = 0; i < (int64_t)(got->bytes[2] / weft_dtype_size(dt)); i++) {
        const double x = value(dt, got->data[2], i), y = value(WEFT_F64, want->data[2], i);
        const double bound = steps * u * value(WEFT_F64, size->data[2], i) + stored * fabs(y);
        if (!(fabs(x - y) <= bound + (dt == WEFT_F16 ? 0x1p-25 : 0)))
            fail_msg("%s %s: element %lld: %g, should be %g (bound %g)", weft_dtype_name(dt), what,
                     (long long)i, x, y, bound);
    }
}

static size_t shift; /* bytes of a buffer before its operand */

static void run_shifted(const weft_heavy *h, operands *o) {
    operands moved = *o;
    for (int i = 0; i < o->n; i++) {
        moved.offset[i] = shift;
        moved.bytes[i] += shift;
        moved.data[i] = calloc(moved.bytes[i] + 1, 1);
        memcpy((char *)moved.data[i] + shift, o->data[i], o->bytes[i]);
    }
    run_twice(h, &moved);
    for (int i = 0; i < o->n; i++) {
        memcpy(o->data[i], (char *)moved.data[i] + shift, o->bytes[i]);
        free(moved.data[i]);
    }
}

static void check_conv(weft_dtype dt, weft_conv_pass pass, const geometry *g) {
    static const char *const names[] = {"forward", "input", "weight"};
    weft_heavy h = {.kind = WEFT_HEAVY_CONV, .as.conv = conv_of(dt, pass, g)};
    weft_heavy reference = {.kind = WEFT_HEAVY_CONV, .as.conv = conv_of(WEFT_F64, pass, g)};
    const weft_heavy_conv *c = &h.as.conv;
    const int64_t taps = c->size[0] * c->size[1];
    const int64_t k = pass == WEFT_CONV_FORWARD ? taps * c->in
                      : pass == WEFT_CONV_INPUT ? taps * c->out
                                                : c->n * c->y[0] * c->y[1];
    operands o = operands_of(dt, dt, c), want = operands_of(WEFT_F64, dt, c),
             size = operands_of(WEFT_F64, dt, c);
    char what[96];
    snprintf(what, sizeof what, "%s of geometry %d", names[pass], (int)(g - geometries));
    for (int i = 0; i < 2; i++)
        for (int64_t e = 0; e < (int64_t)(size.bytes[i] / sizeof(double)); e++)
            set_value(WEFT_F64, size.data[i], e, fabs(value(WEFT_F64, size.data[i], e)));
    run_shifted(&h, &o);
    run_on(interp, &reference, &want);
    run_on(interp, &reference, &size);
    near_sums(what, dt, k > 1 ? k : 1, &o, &want, &size);
    free_operands(&o), free_operands(&want), free_operands(&size);
}

static void test_conv(void **state) {
    (void)state;
    if (!gpu || test_on_cores()) return skip();
    aim(64);
    for (int g = 0; g < COUNT(geometries); g++)
        for (int pass = 0; pass < 3; pass++) check_conv(WEFT_F32, (weft_conv_pass)pass, &geometries[g]);
}

/* Other dtypes, whose kernels differ only in loads and stores. */
static void test_conv_dtypes(void **state) {
    (void)state;
    static const weft_dtype dtypes[] = {WEFT_F64, WEFT_BF16, WEFT_F16};
    if (!gpu || test_on_cores()) return skip();
    aim(64);
    for (int pass = 0; pass < 3; pass++) {
        check_conv(dtypes[pass], (weft_conv_pass)pass, &geometries[2]);
        check_conv(dtypes[(pass + 1) % 3], (weft_conv_pass)pass, &geometries[7]);
    }
}

/* A k so long that it is split. */
static void test_conv_parts(void **state) {
    (void)state;
    static const geometry many = {6, 2, 3, 5, {16, 17}, {3, 3}, {1, 1}, {1, 1}, {1, 1}};
    if (!gpu || test_on_cores()) return skip();
    aim(64);
    check_conv(WEFT_F32, WEFT_CONV_WEIGHT, &many);
}

/* ---- tensor cores ---- */

/* More geometries: pieces of 16 bytes that are channels of one pixel, with groups and tiles that c fills or
 * does not, and the first layer of a network. */
static const geometry wide[] = {
    {2, 1, 16, 24, {12, 13}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {1, 2, 8, 16, {9, 8}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {2, 1, 32, 64, {12, 11}, {3, 3}, {2, 2}, {1, 1}, {1, 1}},
    {1, 1, 8, 8, {9, 10}, {3, 2}, {1, 2}, {2, 1}, {2, 3}},
    {2, 1, 3, 16, {16, 15}, {7, 7}, {2, 2}, {3, 3}, {1, 1}},
    {1, 1, 64, 136, {20, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {6, 1, 16, 8, {16, 17}, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, /* the gradient of the weight is divided along k
                                                              */
};

/* Returns whether all matmuls of the convolution use tensor cores. */
static bool on_cores(const weft_target *target, weft_dtype dt, weft_conv_pass pass, const geometry *g) {
    weft_heavy h = {.kind = WEFT_HEAVY_CONV, .as.conv = conv_of(dt, pass, g)};
    weft_arena arena;
    weft__arena_init(&arena, &context);
    weft_launches launches = {.ctx = &context, .arena = &arena, .target = target};
    assert_int_equal(weft__gpu_conv(&launches, &h, false), WEFT_OK);
    bool all = launches.count > 0;
    for (int l = 0; l < launches.count; l++)
        all = all &&
              (strcmp(launches.list[l].name, "matmul") != 0 || launches.list[l].prelude & WEFT_PRELUDE_CORES);
    weft__free(&context, launches.list);
    weft__arena_free(&arena);
    return all;
}

static void check_tensor(weft_dtype dt, weft_conv_pass pass, const geometry *g) {
    weft_target *target = &weft__gpu_of(gpu)->target;
    const bool f16_only = test_on_cuda() && target->capability < 80;
    if ((f16_only && dt != WEFT_F16) || (test_on_hip() && dt == WEFT_F32)) return;
    target->tf32 = dt == WEFT_F32;
    assert_true(on_cores(target, dt, pass, g));
    check_conv(dt, pass, g);
    target->tf32 = false;
}

static void test_conv_tensor(void **state) {
    (void)state;
    static const weft_dtype dtypes[] = {WEFT_BF16, WEFT_F16, WEFT_F32};
    if (!gpu || !test_on_cores()) return skip();
    for (int pass = 0; pass < 3; pass++) {
        for (int d = 0; d < 3; d++)
            for (int g = 0; g < COUNT(wide); g++)
                if (d == 0 || (g + d + pass) % 3 == 0)
                    check_tensor(dtypes[d], (weft_conv_pass)pass, &wide[g]);
        for (int g = 0; g < COUNT(geometries); g++) {
            const weft_heavy_conv c = conv_of(WEFT_BF16, (weft_conv_pass)pass, &geometries[g]);
            /* 1 x 1 convolutions may be matmuls of few rows */
            const bool other =
                weft__gpu_conv_is_direct(&weft__gpu_of(gpu)->target, &c) || weft__conv_is_matmul(&c);
            if (c.n && !other) check_tensor(dtypes[(g + pass) % 3], (weft_conv_pass)pass, &geometries[g]);
        }
    }
}

/* The first elements of operands may lie anywhere; then pieces are read element by element. */
static void test_conv_unaligned(void **state) {
    (void)state;
    if (!gpu || !test_on_cores()) return skip();
    shift = 2;
    for (int pass = 0; pass < 3; pass++) check_tensor(WEFT_F16, (weft_conv_pass)pass, &wide[0]);
    shift = 0;
}

int main(void) {
    weft__dnn_file = "libabsent.so"; /* cuDNN would compute all of these */
    weft__dnn_forget();
    setenv("WEFT_MATMUL", "own", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conv),           cmocka_unit_test(test_conv_dtypes),
        cmocka_unit_test(test_conv_parts),     cmocka_unit_test(test_conv_tensor),
        cmocka_unit_test(test_conv_unaligned),
    };
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}
