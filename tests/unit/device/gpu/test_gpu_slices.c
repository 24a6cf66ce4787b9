/* src/device/gpu: matmuls whose work-groups divide k into slices, on a GPU or on the simulated driver of
 * tests/cuda. (tests.cmake runs this test again as test_gpu_slices_cuda, on PTX, and with the race detector.
 * OpenCL has no slices.) Compares dtypes, layouts, edges, batches, row sums and splits of k with plain f64
 * loops within class D. Nothing outside of the operands may be read or written. The number of
 * multiprocessors must not matter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <weft/weft.h>

#include "device/gpu/heavy/heavy.h"
#include "gpu.h"
#include "matmul_device.h"

typedef struct fixture {
    weft_context ctx;
    weft_device *device;
    double worst;
    int products;
} fixture;

static int setup(void **state) {
    static fixture f;
    *state = &f;
    if (!test_on_cuda() || test_without_gpu()) return 0;
    setenv("WEFT_MATMUL", "own", 1);
    weft__gpu_hook.guard = 256;
    return weft__device_open(&f.ctx, "cuda", NULL, &f.device) == WEFT_OK ? 0 : -1;
}

static int teardown(void **state) {
    fixture *f = *state;
    if (!f->device) return 0;
    print_message("%d matmuls, %d compilations, %.3f of the bound\n", f->products, weft__gpu_hook.compiles,
                  f->worst);
    f->device->ops->close(f->device);
    weft__strings_free(&f->ctx);
    weft__gpu_hook.guard = 0;
    return weft__gpu_hook.guards_broken ? -1 : 0;
}

/* ---- which matmuls have slices ---- */

/* Returns the slices of the matmul's work-groups, 1 if there are none. fours: how many operands are copied 4
 * elements at a time. */
static int slices_of(const weft_target *target, const weft_heavy_matmul *mm, int *launches, int64_t *groups,
                     int *fours) {
    static const uint8_t aligned[] = {16, 16, 16, 16};
    weft_arena arena;
    weft_context ctx = {0};
    weft__arena_init(&arena, &ctx);
    weft_launches all = {.ctx = &ctx, .arena = &arena, .target = target, .aligned = aligned};
    const weft_heavy heavy = {.kind = WEFT_HEAVY_MATMUL, .path = "test", .as.matmul = *mm};
    assert_int_equal(weft__gpu_matmul(&all, &heavy, false), WEFT_OK);
    const char *slices = strstr(all.list[0].source, "#define K_SLICES ");
    const int count = slices ? atoi(slices + strlen("#define K_SLICES ")) : 1;
    *fours = (strstr(all.list[0].source, "#define A_FOUR 4") != NULL) +
             (strstr(all.list[0].source, "#define B_FOUR 4") != NULL);
    *launches = all.count;
    *groups = all.list[0].groups[0] * all.list[0].groups[1] * all.list[0].groups[2];
    weft__free(&ctx, all.list);
    weft__arena_free(&arena);
    return count;
}

/* A small matmul is one launch, in which a warp walks through a part of k only. The number of multiprocessors
 * does not matter, and OpenCL has no slices. */
static void test_choice(void **state) {
    static const struct {
        int64_t m, n, k;
        int slices, launches;
        int64_t groups;
        int fours; /* of operands with stride 1 along k, and along n */
    } sizes[] = {{8, 2, 4, 1, 1, 1, 0},          {8, 2, 17, 8, 1, 1, 0},        {64, 64, 64, 8, 1, 16, 2},
                 {128, 10, 512, 8, 1, 8, 1},     {10, 512, 128, 8, 1, 32, 2},   {128, 512, 784, 8, 1, 128, 2},
                 {512, 512, 128, 8, 1, 128, 2},  {512, 784, 128, 4, 1, 104, 2}, {64, 64, 1023, 8, 1, 16, 1},
                 {64, 64, 1024, 8, 2, 2 * 16, 2}};
    (void)state;
    for (int s = 0; s < COUNT(sizes); s++)
        for (int units = 20; units <= 132; units += 112) {
            weft_target target = {.dialect = WEFT_DIALECT_CUDA,
                                  .lanes = 256,
                                  .units = units,
                                  .local_bytes = 48 << 10,
                                  .capability = 90};
            const weft_heavy_matmul mm =
                matmul(WEFT_F32, sizes[s].m, sizes[s].n, sizes[s].k, (layout){0, 0, 0, 0, 0});
            int launches, fours;
            int64_t groups;
            assert_int_equal(slices_of(&target, &mm, &launches, &groups, &fours), sizes[s].slices);
            assert_int_equal(launches, sizes[s].launches);
            assert_int_equal(groups, sizes[s].groups);
            assert_int_equal(fours, sizes[s].fours);
            target.dialect = WEFT_DIALECT_OPENCL;
            assert_int_equal(slices_of(&target, &mm, &launches, &groups, &fours), 1);
        }
}

/* ---- what they compute ---- */

static void check(fixture *f, const weft_heavy_matmul *given) {
    weft_heavy_matmul with_sums = *given, *mm = &with_sums;
    with_sums.sums = given->batch_rank == 0 && weft_dtype_is_float((weft_dtype)given->dtype);
    const weft_dtype dtype = (weft_dtype)mm->dtype;
    void *a = random_values(dtype, span(mm, mm->a_batch, mm->m, mm->a_m, mm->k, mm->a_k), 1);
    void *b = random_values(dtype, span(mm, mm->b_batch, mm->k, mm->b_k, mm->n, mm->b_n), 2);
    weft_target *target = &weft__gpu_of(f->device)->target;
    const weft_target own = *target;
    char *first = NULL;
    target->capability = 70; /* no tensor cores: 16 bits have slices, too */
    for (int units = 4; units <= 132; units += 128) {
        size_t bytes;
        int launches, fours;
        int64_t groups;
        target->units = units;
        assert_true(slices_of(target, mm, &launches, &groups, &fours) > 1);
        char *c = product(f->device, mm, a, b, 0, &bytes);
        const double error = matmul_error(mm, a, b, c);
        if (!(error <= 1))
            fail_msg("%s %lld x %lld x %lld, a %lld %lld, b %lld %lld: %g of the bound",
                     weft_dtype_name(dtype), (long long)mm->m, (long long)mm->n, (long long)mm->k,
                     (long long)mm->a_m, (long long)mm->a_k, (long long)mm->b_k, (long long)mm->b_n, error);
        if (error > f->worst) f->worst = error;
        if (first) assert_memory_equal(first, c, bytes);
        f->products++;
        free(first), first = c;
    }
    *target = own;
    free(first), free(a), free(b);
}

/* Parts of tiles, k below a step, k of a slice and a little more, slices without work, a split of k. */
static void test_sizes(void **state) {
    static const int64_t sizes[][3] = {{8, 2, 17},     {5, 17, 18},    {33, 16, 17},   {16, 49, 300},
                                       {40, 10, 257},  {9, 20, 2100},  {70, 500, 130}, {130, 258, 33},
                                       {520, 516, 36}, {516, 788, 20}, {36, 24, 52},   {36, 24, 52}};
    fixture *f = *state;
    if (!f->device) skip();
    for (int s = 0; s < COUNT(sizes); s++) {
        const layout l = s < 8 ? (layout){s & 1, s >> 1 & 1, s % 3, s % 4, s % 2}
                               : (layout){s & 1, s >> 1 & 1, 0, 0, 0}; /* by fours */
        const weft_heavy_matmul mm = matmul(WEFT_F32, sizes[s][0], sizes[s][1], sizes[s][2], l);
        check(f, &mm);
    }
}

static void test_dtypes(void **state) {
    fixture *f = *state;
    if (!f->device) skip();
    for (int d = 1; d < COUNT(dtypes); d++) {
        const weft_heavy_matmul mm = matmul(dtypes[d], 21, 19, 150, (layout){d & 1, d >> 1 & 1, 1, 0, 3});
        check(f, &mm);
    }
}

static void test_batches(void **state) {
    fixture *f = *state;
    if (!f->device) skip();
    weft_heavy_matmul mm = matmul(WEFT_F32, 9, 12, 40, (layout){0, 0, 0, 0, 0});
    mm.batch_rank = 2;
    mm.batch[0] = 2, mm.batch[1] = 3;
    mm.a_batch[0] = 0, mm.a_batch[1] = 9 * 40;
    mm.b_batch[0] = 40 * 12, mm.b_batch[1] = 0;
    mm.c_batch[0] = 3 * 9 * 12, mm.c_batch[1] = 9 * 12;
    check(f, &mm);
}

/* The gradient of a recurrent layer multiplies by a weight that begins at a number of a larger tensor. A card
 * refuses to load 16 bytes from such an address. The way of copying does not change bits. */
static void test_weight_anywhere(void **state) {
    enum { T = 3, B = 8, H = 32 };
    fixture *f = *state;
    weft_context *ctx;
    float gradients[2][T * B * H];
    if (!f->device) skip();
    assert_int_equal(weft_open(&(weft_open_options){.device = "cuda", .seed = 3}, &ctx), WEFT_OK);
    weft_tensor *numbers = weft_random_normal(ctx, 1, (int64_t[]){H * H});
    weft_tensor *x = weft_random_normal(ctx, 3, (int64_t[]){T, B, H});
    weft_tensor *first = weft_full(ctx, WEFT_F32, 1, (int64_t[]){1}, 0);
    weft_tensor *longer = weft_concat((weft_tensor *[]){first, numbers}, 2, 0);
    assert_int_equal(weft_eval((weft_tensor *[]){numbers, x, longer}, 3), WEFT_OK);
    for (int begin = 0; begin < 2; begin++) {
        weft_tensor *weight =
            begin ? weft_slice(longer, (int64_t[]){1}, (int64_t[]){H * H + 1}, NULL) : numbers;
        weight = weft_reshape(weight, 2, (int64_t[]){H, H});
        weft_tensor *h = weft_recurrent(x, weight, &(weft_recurrent_options){.kind = WEFT_RNN_TANH}, NULL);
        weft_tensor *loss = weft_sum(weft_reshape(h, 1, (int64_t[]){T * B * H}), 0, false), *gradient;
        assert_int_equal(weft_gradient(loss, &x, 1, &gradient), WEFT_OK);
        if (weft_read(gradient, gradients[begin], sizeof *gradients) != WEFT_OK)
            fail_msg("%s", weft_last_error(ctx));
    }
    assert_memory_equal(gradients[0], gradients[1], sizeof *gradients);
    weft_close(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choice),  cmocka_unit_test(test_sizes),           cmocka_unit_test(test_dtypes),
        cmocka_unit_test(test_batches), cmocka_unit_test(test_weight_anywhere),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
