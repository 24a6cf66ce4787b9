/* src/device/gpu: matmuls on tensor cores and matrix cores, on a GPU or on the simulated drivers of
 * tests/cuda and tests/hip. (tests.cmake runs this test again as test_gpu_tensor_cuda, for compute
 * capability 7.5, and for architectures of AMD. OpenCL has no tensor cores.) Compares dtypes, layouts, copy
 * widths, alignments, edges, batches and splits of k with plain f64 loops within class D. Nothing outside of
 * the operands may be read or written. Two runs and every tile must give the same bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "device/gpu/heavy/heavy.h"
#include "gpu.h"
#include "matmul_device.h"

typedef struct fixture {
    weft_context ctx;
    weft_device *device;
    weft_target *target, own;
    weft_tuner *tuner;
    double worst;
    int products;
} fixture;

static int setup(void **state) {
    static fixture f;
    *state = &f;
    if (!test_on_cores() || test_without_gpu()) return 0;
    setenv("WEFT_MATMUL", "own", 1);
    weft__gpu_hook.guard = 256;
    if (weft__device_open(&f.ctx, test_gpu(), NULL, &f.device) != WEFT_OK) return -1;
    f.target = &weft__gpu_of(f.device)->target;
    f.tuner = &weft__gpu_of(f.device)->tuner;
    f.own = *f.target;
    f.target->units = 8;
    return 0;
}

/* Without matrix cores an AMD card computes these matmuls by other kernels, which test_declined checks. */
static bool has_cores(const fixture *f) { return f->device && (test_on_cuda() || f->target->matrix_lanes); }

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

/* ---- one matmul ---- */

/* Random values. For TF32, values that TF32 holds exactly. */
static void *values(const fixture *f, weft_dtype dtype, int64_t n, uint64_t seed) {
    void *p = random_values(dtype, n, seed);
    for (int64_t i = 0; i < n && dtype == WEFT_F32 && f->target->tf32; i++)
        set_value(dtype, p, i, round(value(dtype, p, i) * 0x1p10) * 0x1p-10);
    return p;
}

/* The first launch of the matmul, without its source and arguments. */
static weft_launch launch_of(const weft_target *target, const weft_heavy_matmul *mm) {
    weft_arena arena;
    weft_context ctx = {0};
    weft__arena_init(&arena, &ctx);
    weft_launches launches = {.ctx = &ctx, .arena = &arena, .target = target};
    const weft_heavy heavy = {.kind = WEFT_HEAVY_MATMUL, .path = "test", .as.matmul = *mm};
    assert_int_equal(weft__gpu_matmul(&launches, &heavy, false), WEFT_OK);
    assert_true(launches.count > 0);
    weft_launch first = launches.list[0];
    first.source = NULL, first.arguments = NULL;
    weft__free(&ctx, launches.list);
    weft__arena_free(&arena);
    return first;
}

static bool is_tensor(const fixture *f, const weft_heavy_matmul *mm) {
    return launch_of(f->target, mm).prelude & WEFT_PRELUDE_CORES;
}

/* The first `ways` variants must have the bits of the default one. */
static void check_shifted(fixture *f, const weft_heavy_matmul *given, int shift, int ways) {
    weft_heavy_matmul with_sums = *given, *mm = &with_sums;
    with_sums.sums = given->batch_rank == 0;
    const weft_dtype dtype = (weft_dtype)mm->dtype;
    if (test_on_cuda() && f->own.capability < 80 && dtype != WEFT_F16) return;
    assert_true(is_tensor(f, mm));
    void *a = values(f, dtype, span(mm, mm->a_batch, mm->m, mm->a_m, mm->k, mm->a_k), 1);
    void *b = values(f, dtype, span(mm, mm->b_batch, mm->k, mm->b_k, mm->n, mm->b_n), 2);
    size_t bytes;
    char *c = product(f->device, mm, a, b, shift, &bytes);
    const double error = matmul_error(mm, a, b, c);
    if (!(error <= 1))
        fail_msg("%s %lld x %lld x %lld, a %lld %lld, b %lld %lld: %g of the bound", weft_dtype_name(dtype),
                 (long long)mm->m, (long long)mm->n, (long long)mm->k, (long long)mm->a_m, (long long)mm->a_k,
                 (long long)mm->b_k, (long long)mm->b_n, error);
    if (error > f->worst) f->worst = error;
    for (f->tuner->forced = 1; f->tuner->forced <= ways; f->tuner->forced++) {
        char *other = product(f->device, mm, a, b, shift, &bytes);
        assert_memory_equal(c, other, bytes);
        free(other);
    }
    f->tuner->forced = 0;
    f->products++;
    free(a), free(b), free(c);
}

static void check(fixture *f, const weft_heavy_matmul *mm) { check_shifted(f, mm, 0, 0); }

/* ---- tests ---- */

/* Strides that allow copies of 16, 8 and 4 bytes, and strides that allow none. */
static void test_layouts(void **state) {
    fixture *f = *state;
    if (!has_cores(f)) skip();
    for (int t = 0; t < 4; t++) {
        const int64_t extra[] = {8, 4, 2, 1};
        const layout l = {t & 1, t >> 1, extra[t], extra[3 - t], t};
        weft_heavy_matmul mm = matmul(WEFT_BF16, 72, 48, 80, l);
        check(f, &mm);
        mm = matmul(WEFT_F16, 72, 136, 104, (layout){t & 1, t >> 1, 0, 0, 0});
        check(f, &mm);
    }
}

/* Sizes that are no multiples of tiles, of steps of k, or of copies. */
static void test_edges(void **state) {
    static const int64_t sizes[][3] = {{5, 1, 1}, {37, 83, 51}, {131, 70, 33}, {6, 200, 129}, {9, 7, 0}};
    fixture *f = *state;
    if (!has_cores(f)) skip();
    for (int s = 0; s < COUNT(sizes); s++) {
        const weft_heavy_matmul mm =
            matmul(WEFT_BF16, sizes[s][0], sizes[s][1], sizes[s][2], (layout){0, 0, 1, 1, 1});
        check(f, &mm);
        const weft_heavy_matmul turned =
            matmul(WEFT_BF16, sizes[s][0], sizes[s][1], sizes[s][2], (layout){1, 1, 0, 0, 0});
        if (s > 0) check(f, &turned);
    }
}

/* Operands whose alignment is less than their strides allow. */
static void test_places(void **state) {
    fixture *f = *state;
    if (!has_cores(f)) skip();
    for (int shift = 2; shift <= 8; shift *= 2) {
        const weft_heavy_matmul mm = matmul(WEFT_BF16, 72, 48, 80, (layout){0, 0, 8, 8, 0});
        check_shifted(f, &mm, shift, 0);
    }
}

static void test_batches(void **state) {
    fixture *f = *state;
    if (!has_cores(f)) skip();
    weft_heavy_matmul mm = matmul(WEFT_BF16, 24, 40, 48, (layout){0, 1, 0, 0, 0});
    const int64_t step = mm.m * mm.n;
    const int64_t batch[] = {2, 3, 1, 2}, a[] = {0, 16, 0, 2000}, b[] = {3000, 0, 0, 4},
                  c[] = {6 * step, step, 0, 3 * step};
    mm.batch_rank = 4; /* broadcast dimensions, not in memory order */
    memcpy(mm.batch, batch, sizeof batch);
    memcpy(mm.a_batch, a, sizeof a);
    memcpy(mm.b_batch, b, sizeof b);
    memcpy(mm.c_batch, c, sizeof c);
    check(f, &mm);
    mm.batch_rank = 1;
    mm.a_batch[0] = 5;
    check(f, &mm);
}

/* With f32 results, and a split k whose parts are added in two levels. */
static void test_long(void **state) {
    fixture *f = *state;
    if (!has_cores(f)) skip();
    for (int d = 0; d < 2; d++) {
        weft_heavy_matmul mm = matmul(d ? WEFT_F16 : WEFT_BF16, 40, 24, 2600, (layout){1, 0, 0, 0, d});
        check(f, &mm);
        mm = matmul(d ? WEFT_F16 : WEFT_BF16, 72, 136, 300, (layout){0, d, 0, 4, 0});
        mm.out_dtype = WEFT_F32;
        check_shifted(f, &mm, 0, d ? WEFT_TUNER_VARIANTS : 0);
    }
    weft_heavy_matmul mm = matmul(WEFT_BF16, 30, 20, 2600, (layout){0, 0, 0, 0, 1});
    mm.batch_rank = 1;
    mm.batch[0] = 2, mm.a_batch[0] = 8, mm.b_batch[0] = 0, mm.c_batch[0] = 30 * 21;
    check(f, &mm);
}

static void test_tiles(void **state) {
    fixture *f = *state;
    if (!has_cores(f)) skip();
    const weft_heavy_matmul mm = matmul(WEFT_BF16, 136, 200, 328, (layout){1, 0, 0, 0, 0});
    check_shifted(f, &mm, 0, WEFT_TUNER_VARIANTS);
}

/* More groups or work-items along a dimension than a launch may have, with and without tensor cores. */
static void test_flat(void **state) {
    fixture *f = *state;
    if (!has_cores(f)) skip();
    f->target->groups_most = 1;
    weft_heavy_matmul mm = matmul(WEFT_BF16, 136, 100, 48, (layout){0, 1, 0, 0, 0});
    check(f, &mm);
    mm.batch_rank = 1;
    mm.batch[0] = 3, mm.a_batch[0] = 8, mm.b_batch[0] = 0, mm.c_batch[0] = mm.m * mm.n;
    check(f, &mm);
    mm.dtype = mm.out_dtype = WEFT_F32;
    assert_false(is_tensor(f, &mm));
    const weft_launch l = launch_of(f->target, &mm);
    assert_true(l.groups[0] > 3 && l.groups[1] == 1 && l.groups[2] == 1);
    void *a = values(f, WEFT_F32, span(&mm, mm.a_batch, mm.m, mm.a_m, mm.k, mm.a_k), 1);
    void *b = values(f, WEFT_F32, span(&mm, mm.b_batch, mm.k, mm.b_k, mm.n, mm.b_n), 2);
    size_t bytes;
    char *c = product(f->device, &mm, a, b, 0, &bytes);
    assert_true(matmul_error(&mm, a, b, c) <= 1);
    f->target->groups_most = f->own.groups_most;
    free(a), free(b), free(c);
}

/* The default variant without a tuner, for a described target: large tiles if they are enough for all
 * multiprocessors, else those that waste little. */
static void test_usual(void **state) {
    static const struct {
        int64_t m, n, k, more; /* shared memory that a group may request */
        int64_t columns, rows, parts, asked;
        int lanes; /* of a wavefront, for matrix cores */
    } cases[] = {
        {4096, 4096, 4096, 227 << 10, 16, 32, 1, 72 << 10, 0}, /* 128 x 256 */
        {4096, 4096, 4096, 0, 32, 32, 1, 0, 0},                /* 128 x 128 */
        {1024, 1024, 1024, 227 << 10, 16, 8, 1, 0, 0},         /* 128 x 64 */
        {8, 4096, 4096, 227 << 10, 64, 1, 1, 0, 0},            /* 32 x 64 */
        {4096, 8, 4096, 227 << 10, 1, 64, 1, 0, 0},            /* 64 x 32 */
        {64, 64, 65536, 227 << 10, 2, 1, 64, 0, 0},            /* k split */
        {768, 768, 65536, 227 << 10, 6, 6, 3, 0, 0},           /* 128 x 128 with eight warps */
        {4096, 4096, 4096, 0, 32, 32, 1, 0, 64},               /* 128 x 128 */
        {4096, 4096, 4096, 0, 32, 32, 1, 0, 32},
        {768, 768, 65536, 0, 12, 6, 3, 0, 32}, /* 128 x 64, since there are two levels of sums */
        {768, 768, 65536, 0, 12, 6, 3, 0, 64},
        {8, 4096, 4096, 0, 64, 1, 1, 0, 32}, /* 32 x 64 */
    };
    (void)state;
    for (int i = 0; i < COUNT(cases); i++) {
        const weft_target target = {.dialect = WEFT_DIALECT_CUDA,
                                    .lanes = 256,
                                    .units = 132,
                                    .local_bytes = 48 << 10,
                                    .most_local_bytes = cases[i].more,
                                    .capability = cases[i].lanes ? 0 : 90,
                                    .matrix_lanes = cases[i].lanes};
        const weft_heavy_matmul mm =
            matmul(WEFT_BF16, cases[i].m, cases[i].n, cases[i].k, (layout){0, 0, 0, 0, 0});
        const weft_launch l = launch_of(&target, &mm);
        assert_true(l.prelude & (cases[i].lanes ? WEFT_PRELUDE_MATRIX : WEFT_PRELUDE_TENSOR));
        assert_int_equal(l.items[0] % (cases[i].lanes ? cases[i].lanes : 32), 0);
        assert_int_equal(l.groups[0], cases[i].columns);
        assert_int_equal(l.groups[1], cases[i].rows);
        assert_int_equal(l.groups[2], cases[i].parts);
        assert_int_equal(l.shared_bytes, cases[i].asked);
    }
}

/* Without tensor cores: a tiny matmul has a small work-group on WebGPU, where no launches are fused. */
static void test_tiny(void **state) {
    static const struct {
        weft_dialect dialect;
        int64_t m, n, k;
        int items;
    } cases[] = {
        {WEFT_DIALECT_WGSL, 8, 2, 4, 32},     {WEFT_DIALECT_WGSL, 32, 16, 64, 32},
        {WEFT_DIALECT_WGSL, 33, 16, 64, 256}, {WEFT_DIALECT_WGSL, 32, 17, 64, 256},
        {WEFT_DIALECT_WGSL, 32, 16, 65, 256}, {WEFT_DIALECT_OPENCL, 8, 2, 4, 256},
    };
    (void)state;
    for (int i = 0; i < COUNT(cases); i++) {
        const weft_target target = {
            .dialect = cases[i].dialect, .lanes = 256, .units = 16, .local_bytes = 32 << 10};
        const weft_heavy_matmul mm =
            matmul(WEFT_F32, cases[i].m, cases[i].n, cases[i].k, (layout){0, 0, 0, 0, 0});
        const weft_launch l = launch_of(&target, &mm);
        assert_int_equal(l.items[0], cases[i].items);
        assert_int_equal(l.groups[0] * l.groups[1] * l.groups[2], 1);
    }
}

static void test_tf32(void **state) {
    fixture *f = *state;
    if (!has_cores(f)) skip();
    weft_heavy_matmul mm = matmul(WEFT_F32, 72, 100, 300, (layout){0, 0, 0, 0, 0});
    assert_false(is_tensor(f, &mm)); /* unless it is allowed */
    f->target->tf32 = true;
    if (test_on_hip()) assert_false(is_tensor(f, &mm));
    for (int t = 0; t < 4 && test_on_cuda(); t++) {
        const int64_t extra[] = {4, 2, 1, 0};
        mm = matmul(WEFT_F32, 72, 100, 300, (layout){t & 1, t >> 1, extra[t], extra[3 - t], t});
        check_shifted(f, &mm, t == 1 ? 4 : 0, 0);
    }
    f->target->tf32 = false;
}

/* Matmuls that other kernels compute. */
static void test_declined(void **state) {
    fixture *f = *state;
    if (!f->device) skip();
    weft_heavy_matmul mm = matmul(WEFT_BF16, 4, 40, 40, (layout){0, 0, 0, 0, 0});
    assert_false(is_tensor(f, &mm));
    mm = matmul(WEFT_F64, 40, 40, 40, (layout){0, 0, 0, 0, 0});
    assert_false(is_tensor(f, &mm));
    mm = matmul(WEFT_BF16, 40, 40, 40, (layout){0, 0, 0, 0, 0});
    if (test_on_hip()) {
        f->target->matrix_lanes = 0;
        assert_false(is_tensor(f, &mm));
        f->target->matrix_lanes = f->own.matrix_lanes;
        assert_int_equal(is_tensor(f, &mm), f->own.matrix_lanes != 0);
        return;
    }
    f->target->capability = 75;
    assert_false(is_tensor(f, &mm));
    mm.dtype = mm.out_dtype = WEFT_F16;
    assert_true(is_tensor(f, &mm));
    f->target->capability = f->own.capability;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layouts), cmocka_unit_test(test_edges),    cmocka_unit_test(test_places),
        cmocka_unit_test(test_batches), cmocka_unit_test(test_long),     cmocka_unit_test(test_tiles),
        cmocka_unit_test(test_flat),    cmocka_unit_test(test_usual),    cmocka_unit_test(test_tiny),
        cmocka_unit_test(test_tf32),    cmocka_unit_test(test_declined),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
