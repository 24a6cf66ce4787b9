/* src/device/gpu: convolution and its two gradients as matmuls that read windows in place. Kernels for CPUs
 * (vectors) and for GPUs (work-items) run on an OpenCL device, compared with the interpreter's plain loops in
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

#include "gpu.h"
#include "gpu_heavy.h"
#include "unit/convs.h"

static operands operands_of(weft_dtype dt, weft_dtype like, const weft_heavy_conv *c) {
    operands o = {.n = 3};
    for (int i = 0; i < 3; i++) {
        const int64_t n = conv_elements(c, i);
        void *values = random_values(like, n, (uint64_t)i + 1);
        o.bytes[i] = (size_t)n * weft_dtype_size(dt);
        o.data[i] = malloc(o.bytes[i] + 1);
        memset(o.data[i], 0x3c, o.bytes[i]);
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
    run_twice(&h, &o);
    run_on(interp, &reference, &want);
    run_on(interp, &reference, &size);
    near_sums(what, dt, k > 1 ? k : 1, &o, &want, &size);
    free_operands(&o), free_operands(&want), free_operands(&size);
}

/* Each kernel takes a while to compile, so kernels for GPUs are tested on a sample of cases. */
static void test_conv(void **state) {
    (void)state;
    if (!gpu) return skip();
    for (int items = 0; items <= 64; items += 64)
        for (int g = 0; g < COUNT(geometries); g++)
            for (int pass = 0; pass < 3; pass++) {
                if (items && g % 3 != 2) continue;
                aim(items);
                check_conv(WEFT_F32, (weft_conv_pass)pass, &geometries[g]);
            }
}

/* Other dtypes, whose kernels differ only in loads and stores. */
static void test_conv_dtypes(void **state) {
    (void)state;
    static const weft_dtype dtypes[] = {WEFT_F64, WEFT_BF16, WEFT_F16};
    if (!gpu) return skip();
    aim(0);
    for (int pass = 0; pass < 3; pass++) {
        check_conv(dtypes[pass], (weft_conv_pass)pass, &geometries[2]);
        check_conv(dtypes[(pass + 1) % 3], (weft_conv_pass)pass, &geometries[7]);
    }
    aim(64);
    check_conv(WEFT_BF16, WEFT_CONV_WEIGHT, &geometries[2]);
    check_conv(WEFT_F16, WEFT_CONV_INPUT, &geometries[7]);
}

/* For GPUs: a k so long that it is split. */
static void test_conv_parts(void **state) {
    (void)state;
    static const geometry many = {6, 2, 3, 5, {16, 17}, {3, 3}, {1, 1}, {1, 1}, {1, 1}};
    if (!gpu) return skip();
    aim(64);
    check_conv(WEFT_F32, WEFT_CONV_WEIGHT, &many);
    aim(0);
    check_conv(WEFT_F32, WEFT_CONV_WEIGHT, &many);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conv),
        cmocka_unit_test(test_conv_dtypes),
        cmocka_unit_test(test_conv_parts),
    };
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}
