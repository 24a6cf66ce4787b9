/* src/device/gpu: matmul kernels for processors and for cards on the first OpenCL device. Compares every
 * dtype, layout and odd size with plain f64 loops within class D. Nothing outside of the operands may be read
 * or written. Two runs, every tile, and both families must give the same bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "device/gpu/heavy/heavy.h"
#include "opencl.h"
#include "matmul_device.h"

typedef struct fixture {
    weft_context ctx;
    weft_device *device;
    weft_target target; /* the device's own target */
    double worst;
    int products;
} fixture;

/* One device for all tests, so that each kernel source is compiled once. There is none without OpenCL. */
static int setup(void **state) {
    static fixture f;
    *state = &f;
    if (test_without_opencl()) return 0;
    weft__gpu_hook.guard = 256;
    if (weft__device_open(&f.ctx, "opencl", NULL, &f.device) != WEFT_OK) return -1;
    f.target = weft__gpu_of(f.device)->target;
    return 0;
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

/* Targets of the kernels. */
typedef enum family { PROCESSOR, CARD, BUSY_CARD } family;

static void become(fixture *f, family like) {
    weft_target *t = &weft__gpu_of(f->device)->target;
    *t = f->target;
    t->on_processor = like == PROCESSOR;
    t->lanes = 64;
    if (like == CARD) t->units = 64;
    if (like == BUSY_CARD) t->units = 1, t->lanes = 256;
}

/* ---- one matmul ---- */

/* Runs each family of the list. Their bits must agree if `same`. */
static void check(fixture *f, const weft_heavy_matmul *mm, const family *list, int count, bool same) {
    const weft_dtype dtype = (weft_dtype)mm->dtype;
    void *a = random_values(dtype, span(mm, mm->a_batch, mm->m, mm->a_m, mm->k, mm->a_k), 1);
    void *b = random_values(dtype, span(mm, mm->b_batch, mm->k, mm->b_k, mm->n, mm->b_n), 2);
    char *first = NULL;
    for (int i = 0; i < count; i++) {
        size_t bytes;
        become(f, list[i]);
        weft_heavy with_sums = {.kind = WEFT_HEAVY_MATMUL, .as.matmul = *mm};
        with_sums.as.matmul.sums = weft_dtype_is_float(dtype);
        if (!f->device->ops->takes(f->device, &with_sums)) with_sums.as.matmul.sums = false;
        char *c = product(f->device, &with_sums.as.matmul, a, b, 0, &bytes);
        const double error = matmul_error(mm, a, b, c);
        if (!(error <= 1)) {
            print_error("%s %lld x %lld x %lld, a %lld %lld, b %lld %lld, family %d: %g of the bound\n",
                        weft_dtype_name(dtype), (long long)mm->m, (long long)mm->n, (long long)mm->k,
                        (long long)mm->a_m, (long long)mm->a_k, (long long)mm->b_k, (long long)mm->b_n,
                        (int)list[i], error);
            fail();
        }
        if (error > f->worst) f->worst = error;
        if (first && same) assert_memory_equal(first, c, bytes);
        if (!first)
            first = c;
        else
            free(c);
        f->products++;
    }
    free(first), free(a), free(b);
}

static const family all[] = {PROCESSOR, CARD, BUSY_CARD};

/* ---- tests ---- */

static void test_sizes(void **state) {
    static const int64_t sizes[][3] = {{5, 1, 9},     {7, 65, 129},   {13, 33, 127},
                                       {66, 70, 300}, {25, 10, 40},   {64, 64, 128},
                                       {5, 7, 1},     {130, 257, 31}, {265, 300, 50}};
    fixture *f = *state;
    if (!f->device) skip();
    for (int s = 0; s < COUNT(sizes); s++)
        for (int t = 0; t < 4; t++) {
            const layout l = {t & 1, t >> 1, s % 3, s % 4, s % 2};
            const weft_heavy_matmul mm = matmul(WEFT_F32, sizes[s][0], sizes[s][1], sizes[s][2], l);
            check(f, &mm, all, t == s % 4 ? 3 : 2, mm.n > 1);
        }
}

static void test_dtypes(void **state) {
    fixture *f = *state;
    if (!f->device) skip();
    for (int d = 1; d < COUNT(dtypes); d++) {
        if (dtypes[d] == WEFT_F64 && !f->target.f64) continue;
        for (int t = d & 1; t < 4; t += 2) {
            weft_heavy_matmul mm = matmul(dtypes[d], 61, 43, 150, (layout){t & 1, t >> 1, 1, 0, 3});
            const bool wider = weft_dtype_size(dtypes[d]) == 2 && t >= 2;
            if (wider) mm.out_dtype = WEFT_F32;
            check(f, &mm, all, 2, true);
        }
        weft_heavy_matmul row = matmul(dtypes[d], 1, 43, 150, (layout){0, d & 1, 0, 1, 0});
        check(f, &row, all, 2, false);
    }
}

/* Up to four rows, and a column. Each family has bits of its own here. */
static void test_rows(void **state) {
    static const int64_t sizes[][3] = {{1, 17, 33}, {3, 64, 1100}, {2, 65, 130},
                                       {1, 1, 1},   {1, 300, 260}, {4, 33, 16}};
    fixture *f = *state;
    if (!f->device) skip();
    for (int s = 0; s < COUNT(sizes); s++)
        for (int t = 0; t < 4; t++) {
            const layout l = {t & 1, t >> 1, s % 3, s % 4, s % 2};
            weft_heavy_matmul mm = matmul(WEFT_F32, sizes[s][0], sizes[s][1], sizes[s][2], l);
            check(f, &mm, all, 3, false);
            if (mm.m != 1) continue;
            mm = matmul(WEFT_F32, mm.n, 1, mm.k, (layout){t & 1, t >> 1, s % 3, s % 4, 0});
            check(f, &mm, all, 3, false);
        }
}

static void test_batches(void **state) {
    static const int64_t sizes[][3] = {{9, 12, 20}, {1, 12, 20}, {9, 1, 20}};
    fixture *f = *state;
    if (!f->device) skip();
    for (int s = 0; s < COUNT(sizes); s++) {
        weft_heavy_matmul mm =
            matmul(WEFT_F32, sizes[s][0], sizes[s][1], sizes[s][2], (layout){0, 0, 0, 0, 0});
        const int64_t step = mm.m * mm.n;
        const int64_t batch[] = {2, 3, 1, 4}, a[] = {0, 7, 0, 200}, b[] = {3000, 0, 0, 5},
                      c[] = {12 * step, step, 0, 3 * step};
        mm.batch_rank = 4; /* broadcast dimensions, not in memory order */
        memcpy(mm.batch, batch, sizeof batch);
        memcpy(mm.a_batch, a, sizeof a);
        memcpy(mm.b_batch, b, sizeof b);
        memcpy(mm.c_batch, c, sizeof c);
        check(f, &mm, all, 3, s == 0);
        mm.batch_rank = 1;
        mm.a_batch[0] = 5;
        check(f, &mm, all, 3, s == 0);
        mm.batch[0] = 0;
        check(f, &mm, all, 3, true);
    }
}

static void test_empty(void **state) {
    fixture *f = *state;
    if (!f->device) skip();
    for (int empty = 0; empty < 3; empty++) {
        const int64_t n = empty == 0 ? 0 : 66, m = empty == 1 ? 0 : 7, k = empty == 2 ? 0 : 9;
        weft_heavy_matmul mm = matmul(WEFT_F32, m, n, k, (layout){0, 0, 1, 0, 3});
        check(f, &mm, all, 3, true);
        mm = matmul(WEFT_F32, m > 0, n, k, (layout){0, 1, 1, 0, 3});
        check(f, &mm, all, 3, true);
    }
}

/* If there are few tiles, k is split into parts, depending on the shape only. The parts go to scratch memory
 * and are added in order. */
static void test_long(void **state) {
    static const int64_t sizes[][3] = {{64, 16, 5000}, {1, 20, 9000}, {20, 1, 9000}, {33, 40, 2300}};
    fixture *f = *state;
    if (!f->device) skip();
    for (int s = 0; s < COUNT(sizes); s++) {
        weft_heavy_matmul mm =
            matmul(WEFT_F32, sizes[s][0], sizes[s][1], sizes[s][2], (layout){1, 0, 0, 2, 0});
        check(f, &mm, all, 3, mm.m > 4 && mm.n > 1);
    }
    weft_heavy_matmul half = matmul(WEFT_BF16, 30, 20, 2600, (layout){0, 0, 0, 0, 1});
    half.batch_rank = 1;
    half.batch[0] = 2, half.a_batch[0] = 9, half.b_batch[0] = 0, half.c_batch[0] = 30 * 21;
    check(f, &half, all, 2, false);
}

/* On CUDA matmuls of few tiles have slices (test_gpu_slices), so that others need not split k. The number of
 * multiprocessors does not matter. */
static void test_split_on_cuda(void **state) {
    static const struct {
        int64_t m, n, k, splits, groups; /* groups: on a large card */
    } sizes[] = {{384, 384, 784, 1, 72},
                 {384, 384, 4096, 2, 72 * 2},
                 {768, 768, 4096, 1, 144},
                 {1024, 1024, 2048, 1, 256}};
    (void)state;
    for (int s = 0; s < COUNT(sizes); s++)
        for (int units = 20; units <= 132; units += 112) {
            const weft_target target = {.dialect = WEFT_DIALECT_CUDA,
                                        .lanes = 256,
                                        .units = units,
                                        .local_bytes = 48 << 10,
                                        .capability = 90};
            const weft_heavy heavy = {
                .kind = WEFT_HEAVY_MATMUL,
                .as.matmul = matmul(WEFT_F32, sizes[s].m, sizes[s].n, sizes[s].k, (layout){0, 0, 0, 0, 0})};
            const int64_t parts = sizes[s].splits > 1 ? sizes[s].splits * sizes[s].m * sizes[s].n * 4 : 0;
            weft_context ctx = {0};
            weft_arena arena;
            weft__arena_init(&arena, &ctx);
            weft_launches launches = {.ctx = &ctx, .arena = &arena, .target = &target};
            assert_int_equal(weft__gpu_matmul(&launches, &heavy, false), WEFT_OK);
            const int64_t *groups = launches.list[0].groups;
            assert_int_equal(launches.scratch_bytes, parts);
            assert_int_equal(launches.count, 1 + (parts > 0));
            if (units == 132) assert_int_equal(groups[0] * groups[1] * groups[2], sizes[s].groups);
            weft__free(&ctx, launches.list);
            weft__arena_free(&arena);
        }
}

/* Rows so far apart that offsets need 64 bits. */
static void test_far(void **state) {
    fixture *f = *state;
    if (!f->device) skip();
    for (int64_t m = 2; m <= 5; m += 3) {
        const weft_heavy_matmul mm = matmul(WEFT_F32, m, 6, 7, (layout){0, 0, 1 << 21, 0, 0});
        check(f, &mm, (family[]){CARD}, 1, false);
    }
}

/* All tiles that the tuner may choose. */
static void test_tiles(void **state) {
    static const int64_t sizes[][3] = {{70, 66, 300}, {130, 40, 129}, {9, 200, 2100}};
    fixture *f = *state;
    if (!f->device) skip();
    weft_tuner *tuner = &weft__gpu_of(f->device)->tuner;
    for (int s = 0; s < COUNT(sizes); s++) {
        const weft_heavy_matmul mm =
            matmul(WEFT_F32, sizes[s][0], sizes[s][1], sizes[s][2], (layout){s & 1, s > 1, 1, 0, 2});
        void *a = random_values(WEFT_F32, span(&mm, mm.a_batch, mm.m, mm.a_m, mm.k, mm.a_k), 1);
        void *b = random_values(WEFT_F32, span(&mm, mm.b_batch, mm.k, mm.b_k, mm.n, mm.b_n), 2);
        size_t bytes;
        become(f, CARD);
        char *usual = product(f->device, &mm, a, b, 0, &bytes);
        for (tuner->forced = 1; tuner->forced <= WEFT_TUNER_VARIANTS; tuner->forced++) {
            char *other = product(f->device, &mm, a, b, 0, &bytes);
            assert_memory_equal(usual, other, bytes);
            free(other);
        }
        tuner->forced = 0;
        free(usual), free(a), free(b);
    }
}

/* Matmuls that the template declines. */
static void test_declined(void **state) {
    (void)state;
    const weft_target target = {.lanes = 256, .units = 4, .local_bytes = 32768};
    weft_heavy_matmul mm = matmul(WEFT_F32, 4, 4, 4, (layout){0, 0, 0, 0, 0});
    assert_true(weft__gpu_matmul_takes(&target, &mm));
    mm.sums = true; /* with few rows */
    assert_false(weft__gpu_matmul_takes(&target, &mm));
    mm.sums = false;
    mm.out_dtype = WEFT_F64;
    assert_false(weft__gpu_matmul_takes(&target, &mm));
    mm = matmul(WEFT_F64, 4, 4, 4, (layout){0, 0, 0, 0, 0});
    assert_false(weft__gpu_matmul_takes(&target, &mm)); /* the device does not support it */
    mm = matmul(WEFT_U8, 4, 4, 4, (layout){0, 0, 0, 0, 0});
    assert_false(weft__gpu_matmul_takes(&target, &mm));
    mm = matmul(WEFT_F32, (int64_t)1 << 32, 4, 4, (layout){0, 0, 0, 0, 0});
    assert_false(weft__gpu_matmul_takes(&target, &mm));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),         cmocka_unit_test(test_dtypes), cmocka_unit_test(test_rows),
        cmocka_unit_test(test_batches),       cmocka_unit_test(test_empty),  cmocka_unit_test(test_long),
        cmocka_unit_test(test_split_on_cuda), cmocka_unit_test(test_far),    cmocka_unit_test(test_tiles),
        cmocka_unit_test(test_declined),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
