/* src/device/cpu: matmuls compared with plain f64 loops within class D, for every transpose, stride, dtype
 * and odd size. The bits must be the same for each partition into tasks. Also the matmul library and its
 * prototypes. */
#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#if __has_include(<dnnl.h>)
#include <dnnl.h>
#endif
#if __has_include(<cblas.h>)
#include <cblas.h>
#endif

#include "device/cpu/gemm/gemm.h"
#include "device/cpu/gemm/matmul_library.h"
#include "unit/cpu_work.h"
#include "unit/matmul_cases.h"

/* ---- compares the prototypes of matmul_library.def with the libraries' headers ---- */

#define SAME(type, function)                                                                                 \
    _Static_assert(__builtin_types_compatible_p(type, __typeof__(&function)),                                \
                   #function " is declared otherwise")
#if __has_include(<dnnl.h>)
/* Enumerations are declared as int. Their values and sizes are checked separately. */
_Static_assert(sizeof(dnnl_status_t) == sizeof(int) && sizeof(dnnl_cpu_isa_t) == sizeof(int),
               "enumerations are int");
_Static_assert(sizeof(dnnl_dim_t) == sizeof(int64_t) && (dnnl_dim_t)-1 < 0, "dnnl_dim_t is int64_t");
_Static_assert(dnnl_cpu_isa_sse41 == 0x1 && dnnl_cpu_isa_avx2 == 0x7 && dnnl_cpu_isa_avx512_core == 0x27,
               "values");
_Static_assert(dnnl_success == 0, "success is 0");
SAME(dnnl_status_t (*)(char, char, dnnl_dim_t, dnnl_dim_t, dnnl_dim_t, float, const float *, dnnl_dim_t,
                       const float *, dnnl_dim_t, float, float *, dnnl_dim_t),
     dnnl_sgemm);
SAME(dnnl_status_t (*)(dnnl_cpu_isa_t), dnnl_set_max_cpu_isa);
SAME(dnnl_cpu_isa_t (*)(void), dnnl_get_effective_cpu_isa);
SAME(const dnnl_version_t *(*)(void), dnnl_version);
_Static_assert(offsetof(dnnl_version_t, major) == offsetof(weft_dnnl_version, major) &&
                   offsetof(dnnl_version_t, minor) == offsetof(weft_dnnl_version, minor) &&
                   offsetof(dnnl_version_t, patch) == offsetof(weft_dnnl_version, patch),
               "the start of dnnl_version_t");
#endif
#if __has_include(<cblas.h>)
_Static_assert(CblasRowMajor == 101 && CblasNoTrans == 111 && CblasTrans == 112 && CblasConjTrans == 113,
               "values");
_Static_assert(sizeof(CBLAS_TRANSPOSE) == sizeof(int), "enumerations are int");
static void cblas_as_declared(int order, int ta, int tb, int n, double alpha, const double *a, double *c) {
    /* never called: it compiles only if each argument converts to the type in the header */
    cblas_sgemm((CBLAS_LAYOUT)order, (CBLAS_TRANSPOSE)ta, (CBLAS_TRANSPOSE)tb, n, n, n, 1.0f,
                (const float *)NULL, n, (const float *)NULL, n, 0.0f, (float *)NULL, n);
    cblas_dgemm((CBLAS_LAYOUT)order, (CBLAS_TRANSPOSE)ta, (CBLAS_TRANSPOSE)tb, n, n, n, alpha, a, n, a, n,
                alpha, c, n);
    cblas_cgemm((CBLAS_LAYOUT)order, (CBLAS_TRANSPOSE)ta, (CBLAS_TRANSPOSE)tb, n, n, n, (const void *)a,
                (const void *)a, n, (const void *)a, n, (const void *)a, (void *)c, n);
    cblas_zgemm((CBLAS_LAYOUT)order, (CBLAS_TRANSPOSE)ta, (CBLAS_TRANSPOSE)tb, n, n, n, (const void *)a,
                (const void *)a, n, (const void *)a, n, (const void *)a, (void *)c, n);
}
#endif

/* ---- cases ---- */

/* Returns the largest error divided by its bound, which must be at most 1. Also checks that all partitions
 * give the same bits, and that the bytes between the rows of c do not change. */
static double check(const weft_heavy_matmul *mm) {
    weft_heavy heavy = {.kind = WEFT_HEAVY_MATMUL, .path = "test", .as.matmul = *mm};
    weft_dtype dt = (weft_dtype)mm->dtype, od = (weft_dtype)mm->out_dtype;
    int64_t na = span(mm, mm->a_batch, mm->m, mm->a_m, mm->k, mm->a_k);
    int64_t nb = span(mm, mm->b_batch, mm->k, mm->b_k, mm->n, mm->b_n);
    int64_t nc = span(mm, mm->c_batch, mm->m, mm->c_m, mm->n, 1);
    void *a = random_values(dt, na, 1), *b = random_values(dt, nb, 2);
    size_t bytes = (size_t)nc * weft_dtype_size(od);
    char *c = malloc(bytes);
    memset(c, 0x55, bytes);
    assert_true(weft__cpu_heavy_takes(&heavy));
    void *args[] = {a, b, c};
    run_all_ways(&heavy, args, c, bytes);

    double worst = matmul_error(mm, a, b, c);
    free(a), free(b), free(c);
    return worst;
}

static void expect(const weft_heavy_matmul *mm, double *worst) {
    double r = check(mm);
    if (!(r <= 1)) {
        print_error("%s %lld x %lld x %lld, a %lld %lld, b %lld %lld: %g of the bound\n",
                    weft_dtype_name((weft_dtype)mm->dtype), (long long)mm->m, (long long)mm->n,
                    (long long)mm->k, (long long)mm->a_m, (long long)mm->a_k, (long long)mm->b_k,
                    (long long)mm->b_n, r);
        fail();
    }
    if (r > *worst) *worst = r;
}

static void test_shapes(void **state) {
    (void)state;
    static const int64_t sizes[][3] = {{1, 1, 1},      {2, 8, 4},       {4, 1, 8},     {1, 9, 5},
                                       {7, 13, 31},    {16, 16, 16},    {17, 33, 15},  {32, 31, 33},
                                       {64, 64, 64},   {65, 66, 67},    {12, 10, 128}, {1, 300, 257},
                                       {300, 1, 257},  {128, 129, 127}, {15, 48, 300}, {100, 47, 513},
                                       {130, 530, 70}, {3, 700, 20},    {257, 80, 260}};
    for (int d = 0; d < COUNT(dtypes); d++) {
        double worst = 0;
        for (int s = 0; s < COUNT(sizes); s++)
            for (int t = 0; t < 4; t++)
                for (int extra = 0; extra < 2; extra++) {
                    layout l = {t & 1, t >> 1, extra * 3, extra * 5, extra * 2};
                    weft_heavy_matmul mm = matmul(dtypes[d], sizes[s][0], sizes[s][1], sizes[s][2], l);
                    expect(&mm, &worst);
                }
        print_message("%s: %.3f of the bound\n", weft_dtype_name(dtypes[d]), worst);
    }
}

static void test_large(void **state) {
    (void)state;
    double worst = 0;
    for (int t = 0; t < 4; t++) {
        weft_heavy_matmul mm = matmul(WEFT_F32, 300, 210, 1100, (layout){t & 1, t >> 1, 4, 0, 1});
        expect(&mm, &worst);
        mm = matmul(WEFT_F64, 140, 150, 600, (layout){t & 1, t >> 1, 4, 0, 1});
        expect(&mm, &worst);
        mm = matmul(WEFT_BF16, 260, 270, 520, (layout){t & 1, t >> 1, 4, 0, 1});
        mm.out_dtype = WEFT_F32;
        expect(&mm, &worst);
        mm = matmul(WEFT_F16, 1, 400, 1100, (layout){t & 1, t >> 1, 4, 0, 1});
        expect(&mm, &worst);
        /* for Weft's own kernels: more rows than a block, more columns than are packed at once */
        mm = matmul(WEFT_F64, 390, 40, 260, (layout){t & 1, t >> 1, 4, 0, 1});
        expect(&mm, &worst);
        mm = matmul(WEFT_F64, 20, 830, 400, (layout){t & 1, t >> 1, 4, 0, 1});
        expect(&mm, &worst);
    }
    /* few long columns; a long sum */
    weft_heavy_matmul few = matmul(WEFT_F32, 515, 100, 300, (layout){0, 1, 0, 0, 0});
    expect(&few, &worst);
    weft_heavy_matmul tall = matmul(WEFT_F32, 70, 17, 2100, (layout){1, 0, 0, 0, 0});
    expect(&tall, &worst);
}

/* One row or one column, long enough for several tasks. Alone and in a batch, with results wider than a and
 * b. */
static void test_vectors(void **state) {
    (void)state;
    static const int64_t sizes[][3] = {{1, 1500, 515}, {700, 1, 300}, {1, 1100, 64}, {1, 90, 2100}};
    double worst = 0;
    for (int d = 0; d < 4; d++) /* float dtypes */
        for (int s = 0; s < COUNT(sizes); s++)
            for (int t = 0; t < 16; t++) {
                int64_t m = sizes[s][0], n = sizes[s][1], k = sizes[s][2];
                weft_heavy_matmul mm = matmul(dtypes[d], m, n, k, (layout){t & 1, t >> 1 & 1, 3, 5, 2});
                if (t & 4 && weft_dtype_size(dtypes[d]) == 2) mm.out_dtype = WEFT_F32;
                if (t & 8) {
                    mm.batch_rank = 1;
                    mm.batch[0] = 3;
                    mm.a_batch[0] = (m + 3) * (k + 3), mm.b_batch[0] = (n + 5) * (k + 5);
                    mm.c_batch[0] = m * (n + 2);
                }
                expect(&mm, &worst);
            }
    weft_heavy cases[2] = {
        {.kind = WEFT_HEAVY_MATMUL, .as.matmul = matmul(WEFT_F32, 1, 384, 1536, (layout){0, 1, 0, 0, 0})},
        {.kind = WEFT_HEAVY_MATMUL, .as.matmul = matmul(WEFT_BF16, 1, 384, 1536, (layout){0, 1, 0, 0, 0})}};
    for (int i = 0; i < 2; i++) {
        weft_cpu_work work;
        assert_int_equal(weft__cpu_heavy_prepare(NULL, &cases[i], 2, &work), WEFT_OK);
        assert_true(work.tasks >= 8);              /* divided by bytes, not by operations */
        assert_true(work.scratch_bytes < 1 << 14); /* no widened copy of the matrix is stored */
        work.free(NULL, work.plan);
    }
}

static void test_empty(void **state) {
    (void)state;
    double worst = 0;
    for (int d = 0; d < COUNT(dtypes); d++) {
        weft_heavy_matmul none = matmul(dtypes[d], 5, 7, 0, (layout){0, 0, 1, 0, 3});
        expect(&none, &worst);
        none = matmul(dtypes[d], 0, 7, 3, (layout){0});
        expect(&none, &worst);
        none = matmul(dtypes[d], 4, 0, 3, (layout){0});
        expect(&none, &worst);
        none = matmul(dtypes[d], 1, 6, 0, (layout){0});
        expect(&none, &worst);
    }
}

/* (B, T, heads, d), read in place from a packed projection (B, T, 3 C): q k^T of each head. */
static void test_packed_projection(void **state) {
    (void)state;
    double worst = 0;
    for (int d = 0; d < COUNT(dtypes); d++) {
        int64_t B = 3, H = 4, Q = 19, D = 8, C = H * D;
        weft_heavy_matmul mm = {
            .dtype = (uint8_t)dtypes[d], .out_dtype = (uint8_t)dtypes[d], .batch_rank = 2};
        mm.batch[0] = B, mm.batch[1] = H;
        mm.m = mm.n = Q, mm.k = D;
        mm.a_batch[0] = mm.b_batch[0] = Q * 3 * C, mm.a_batch[1] = mm.b_batch[1] = D;
        mm.a_m = 3 * C, mm.a_k = 1, mm.b_k = 1, mm.b_n = 3 * C;
        mm.c_batch[0] = H * Q * Q, mm.c_batch[1] = Q * Q, mm.c_m = Q;
        expect(&mm, &worst);
        /* weights times v, stored as (B, T, C) */
        weft_heavy_matmul pv = mm;
        pv.n = D, pv.k = Q;
        pv.a_batch[0] = H * Q * Q, pv.a_batch[1] = Q * Q, pv.a_m = Q, pv.a_k = 1;
        pv.b_k = 3 * C, pv.b_n = 1;
        pv.c_batch[0] = Q * C, pv.c_batch[1] = D, pv.c_m = C;
        expect(&pv, &worst);
    }
}

static void test_batches(void **state) {
    (void)state;
    double worst = 0;
    for (int d = 0; d < COUNT(dtypes); d++)
        for (int shared = 0; shared < 3; shared++) {
            /* 0: (6, M, K) x (K, N), one matmul; 1: one a for all; 2: both batched with a gap */
            weft_heavy_matmul mm = matmul(dtypes[d], 20, 30, 40, (layout){0});
            mm.batch_rank = 2;
            mm.batch[0] = 2, mm.batch[1] = 3;
            mm.a_batch[1] = shared == 1 ? 0 : 20 * 40 + (shared == 2 ? 7 : 0);
            mm.a_batch[0] = 3 * mm.a_batch[1];
            mm.b_batch[1] = shared == 0 ? 0 : 30 * 40;
            mm.b_batch[0] = shared == 2 ? 0 : 3 * mm.b_batch[1];
            mm.c_batch[1] = 20 * 30, mm.c_batch[0] = 3 * 20 * 30;
            expect(&mm, &worst);
        }
    /* many small ones, a rank-4 batch, an empty one */
    weft_heavy_matmul many = matmul(WEFT_F32, 9, 5, 6, (layout){0});
    many.batch_rank = 4;
    static const int64_t extents[4] = {2, 3, 50, 4};
    int64_t item = 1;
    for (int i = 3; i >= 0; i--) {
        many.batch[i] = extents[i];
        many.a_batch[i] = item * 54, many.b_batch[i] = item * 30, many.c_batch[i] = item * 45;
        item *= extents[i];
    }
    expect(&many, &worst);
    many.batch[2] = 0;
    expect(&many, &worst);
}

/* The matmul must have enough tasks for several threads where that pays. */
static void test_cut(void **state) {
    (void)state;
    static const struct {
        int64_t m, n, k, least;
    } cases[] = {{128, 512, 784, 4}, {512, 784, 128, 4}, {256, 3072, 768, 8},  {3072, 768, 256, 8},
                 {2, 8, 4, 1},       {1, 3072, 768, 4},  {1024, 1024, 1024, 8}};
    for (int i = 0; i < COUNT(cases); i++) {
        weft_heavy h = {.kind = WEFT_HEAVY_MATMUL,
                        .as.matmul =
                            matmul(WEFT_F32, cases[i].m, cases[i].n, cases[i].k, (layout){0, 1, 0, 0, 0})};
        weft_cpu_work work;
        assert_int_equal(weft__cpu_heavy_prepare(NULL, &h, 8, &work), WEFT_OK);
        assert_true(work.tasks >= cases[i].least);
        assert_true(work.cost_ns > 0);
        assert_true(cases[i].least > 1 || work.tasks == 1);
        work.free(NULL, work.plan);
    }
    weft_heavy batch = {.kind = WEFT_HEAVY_MATMUL, .as.matmul = matmul(WEFT_F32, 64, 64, 32, (layout){0})};
    batch.as.matmul.batch_rank = 1;
    batch.as.matmul.batch[0] = 48;
    batch.as.matmul.a_batch[0] = batch.as.matmul.b_batch[0] = 64 * 32;
    batch.as.matmul.c_batch[0] = 64 * 64;
    weft_cpu_work work;
    assert_int_equal(weft__cpu_heavy_prepare(NULL, &batch, 2, &work), WEFT_OK);
    assert_true(work.tasks >= 4 && work.tasks <= 24);
    work.free(NULL, work.plan);
}

/* Weft's own kernels for each instruction set of this machine. Returns their number. */
static int own_tables(const weft_gemm_own *tables[3]) {
    int count = 0;
    tables[count++] = &weft__gemm_own_baseline;
#if defined(__x86_64__)
    if (weft__cpu_isa() >= WEFT_ISA_AVX2) tables[count++] = &weft__gemm_own_avx2;
    if (weft__cpu_isa() >= WEFT_ISA_AVX512) tables[count++] = &weft__gemm_own_avx512;
#endif
    return count;
}

/* Compares all of them with the library. */
static void test_own_kernels(void **state) {
    (void)state;
    const weft_gemm_own *tables[3];
    const int count = own_tables(tables);
    static const int64_t sizes[][3] = {{5, 9, 3},       {31, 17, 64},   {70, 90, 300},
                                       {300, 530, 270}, {129, 33, 257}, {60, 900, 401}};
    for (int t = 0; t < count; t++)
        for (int s = 0; s < COUNT(sizes); s++)
            for (int turned = 0; turned < 4; turned++) {
                int64_t m = sizes[s][0], n = sizes[s][1], k = sizes[s][2];
                weft_gemm g = {.m = m, .n = n, .k = k, .c_m = n + 1, .add = (s & 1) != 0};
                g.a_m = turned & 1 ? 1 : k, g.a_k = turned & 1 ? m : 1;
                g.b_k = turned & 2 ? 1 : n, g.b_n = turned & 2 ? k : 1;
                float *a = random_values(WEFT_F32, m * k, 3), *b = random_values(WEFT_F32, k * n, 4);
                float *c = random_values(WEFT_F32, m * (n + 1), 5),
                      *before = malloc((size_t)(m * (n + 1)) * 4);
                memcpy(before, c, (size_t)(m * (n + 1)) * 4);
                size_t need = tables[t]->scratch.f32(&g);
                char *scratch = aligned_alloc(64, (need + 127) / 64 * 64);
                memset(scratch + need, 0x77, 64);
                tables[t]->f32(&g, a, b, c, scratch);
                for (size_t i = 0; i < 64; i++) assert_int_equal(scratch[need + i], 0x77);
                for (int64_t i = 0; i < m; i++)
                    for (int64_t j = 0; j < n; j++) {
                        double sum = g.add ? before[i * g.c_m + j] : 0, size = fabs(sum);
                        for (int64_t p = 0; p < k; p++) {
                            double xy = (double)a[i * g.a_m + p * g.a_k] * b[p * g.b_k + j * g.b_n];
                            sum += xy, size += fabs(xy);
                        }
                        assert_true(fabs(c[i * g.c_m + j] - sum) <=
                                    (2 * log2((double)k) + 4) * 0x1p-24 * size + 0x1p-24 * fabs(sum));
                    }
                for (int64_t i = 0; i < m; i++) assert_true(c[i * g.c_m + n] == before[i * g.c_m + n]);
                free(a), free(b), free(c), free(before), free(scratch);
            }
}

/* ---- complex numbers ---- */

static double part(weft_dtype dtype, const void *x, int64_t i) {
    return dtype == WEFT_C64 ? (double)((const float *)x)[i] : ((const double *)x)[i];
}

/* Checks that c = before (or 0) + a b within class D of sums of 2 k products, and that nothing between the
 * rows of c changed. */
static void assert_pairs(weft_dtype dtype, const weft_gemm *g, int conj, const void *a, const void *b,
                         const void *before, const void *c) {
    const double unit = dtype == WEFT_C64 ? 0x1p-24 : 0x1p-53, left = conj & 1 ? -1 : 1,
                 right = conj & 2 ? -1 : 1;
    for (int64_t i = 0; i < g->m; i++) {
        for (int64_t j = 0; j < g->n; j++) {
            double sum[2] = {0, 0}, size = 0;
            const int64_t at = 2 * (i * g->c_m + j);
            for (int e = 0; e < 2 && g->add; e++) sum[e] = part(dtype, before, at + e), size += fabs(sum[e]);
            for (int64_t p = 0; p < g->k; p++) {
                const int64_t x = 2 * (i * g->a_m + p * g->a_k), y = 2 * (p * g->b_k + j * g->b_n);
                const double xr = part(dtype, a, x), xi = left * part(dtype, a, x + 1);
                const double yr = part(dtype, b, y), yi = right * part(dtype, b, y + 1);
                sum[0] += xr * yr - xi * yi, sum[1] += xr * yi + xi * yr;
                size += fabs(xr * yr) + fabs(xi * yi) + fabs(xr * yi) + fabs(xi * yr);
            }
            for (int e = 0; e < 2; e++)
                assert_true(fabs(part(dtype, c, at + e) - sum[e]) <=
                            (2 * log2(2 * (double)g->k) + 6) * unit * size + unit * fabs(sum[e]));
        }
        const int64_t gap = 2 * (i * g->c_m + g->n);
        assert_true(part(dtype, c, gap) == part(dtype, before, gap));
    }
}

/* One matmul in every layout, with each operand conjugated or not. The library computes those that it
 * accepts. */
static void check_pairs(const weft_gemm_own *own, weft_dtype dtype, int64_t m, int64_t n, int64_t k,
                        bool add) {
    const weft_dtype real = dtype == WEFT_C64 ? WEFT_F32 : WEFT_F64;
    const size_t size = weft_dtype_size(dtype), bytes = (size_t)(m * (n + 1)) * size;
    void *a = random_values(real, 4 * m * k, 3), *b = random_values(real, 4 * k * n, 4);
    void *before = random_values(real, 2 * m * (n + 1), 5), *c = malloc(bytes);
    for (int way = 0; way < 5 * 4; way++) { /* the last layout has no unit stride */
        const int turned = way % 5, conj = way / 5;
        weft_gemm g = {.m = m, .n = n, .k = k, .c_m = n + 1, .add = add};
        g.a_m = turned & 1 ? 1 : k, g.a_k = turned & 1 ? m : 1;
        g.b_k = turned & 2 ? 1 : n, g.b_n = turned & 2 ? k : 1;
        if (turned == 4) g.a_m = 2 * k, g.a_k = 2, g.b_k = 2, g.b_n = 2 * k;
        memcpy(c, before, bytes);
        if (own) {
            const size_t need = (dtype == WEFT_C64 ? own->scratch.c64 : own->scratch.c128)(&g);
            char *scratch = aligned_alloc(64, (need + 127) / 64 * 64);
            memset(scratch + need, 0x77, 64);
            if (dtype == WEFT_C64)
                own->c64(&g, conj, a, b, c, scratch);
            else
                own->c128(&g, conj, a, b, c, scratch);
            for (size_t i = 0; i < 64; i++) assert_int_equal(scratch[need + i], 0x77);
            free(scratch);
        } else if (weft__library_takes_complex(&g, conj)) {
            weft__library_complex(&g, dtype, conj, a, b, c);
        } else {
            assert_true(turned == 4 || (conj & 1 && !(turned & 1)) || (conj & 2 && !(turned & 2)));
            continue;
        }
        assert_pairs(dtype, &g, conj, a, b, before, c);
    }
    free(a), free(b), free(before), free(c);
}

static void test_complex(void **state) {
    (void)state;
    const weft_gemm_own *tables[3];
    const int count = own_tables(tables);
    static const int64_t sizes[][3] = {{1, 1, 1}, {5, 9, 3}, {31, 17, 64}, {17, 45, 401}, {3, 430, 21}};
    for (int t = 0; t <= count; t++) /* the last time by the library, if it is a CBLAS */
        for (int s = 0; s < COUNT(sizes) && (t < count || weft__matmul_library()->complex); s++)
            for (int d = 0; d < 2; d++)
                check_pairs(t < count ? tables[t] : NULL, d ? WEFT_C128 : WEFT_C64, sizes[s][0], sizes[s][1],
                            sizes[s][2], (s & 1) != 0);
}

/* The number of threads of this process; 0 if the system does not say. */
static int threads(void) {
    DIR *dir = opendir("/proc/self/task");
    int count = 0;
    if (!dir) return 0;
    while (readdir(dir)) count++;
    closedir(dir);
    return count;
}

/* The library accepts what it reports that it accepts, and gives the same results as Weft's own kernels. */
static void test_library(void **state) {
    (void)state;
    assert_non_null(weft__matmul_library());
    print_message("%s\n", weft__cpu_matmul_description());
    assert_true(strlen(weft__cpu_matmul_description()) > 0);
    if (!weft__matmul_library()->f32) return;
    weft_gemm g = {.m = 300, .n = 512, .k = 300, .a_m = 300, .a_k = 1, .b_k = 512, .b_n = 1, .c_m = 512};
    assert_true(weft__library_fits(&g));
    float *a = random_values(WEFT_F32, g.m * g.k, 6), *b = random_values(WEFT_F32, g.k * g.n, 7);
    float *c = malloc((size_t)(g.m * g.n) * 4), *own = malloc((size_t)(g.m * g.n) * 4);
    void *scratch = aligned_alloc(64, (weft__gemm_own()->scratch.f32(&g) + 63) / 64 * 64);
    int before = threads();
    int token = weft__library_enter();
    weft__library_f32(&g, a, b, c);
    weft__library_leave(token);
    assert_int_equal(threads(), before); /* one thread, although OpenMP could use more */
    weft__gemm_own()->f32(&g, a, b, own, scratch);
    for (int64_t i = 0; i < g.m * g.n; i++) assert_true(fabsf(c[i] - own[i]) <= 1e-4f);
    free(a), free(b), free(c), free(own), free(scratch);
    g.a_m = 299; /* rows overlap: no library accepts this */
    assert_false(weft__library_fits(&g));
    g.a_m = 300, g.a_k = 2;
    assert_false(weft__library_fits(&g));
    g.a_k = 1, g.m = (int64_t)INT32_MAX + 1;
    assert_false(weft__library_fits(&g));
}

static void test_special_values(void **state) {
    (void)state;
    for (int64_t n = 1; n <= 200; n += 199) {
        weft_heavy_matmul mm = matmul(WEFT_F32, 3, n, 4, (layout){0});
        weft_heavy h = {.kind = WEFT_HEAVY_MATMUL, .as.matmul = mm};
        float a[12] = {1, 2, 3, 4, INFINITY, 1, 1, 1, 1, NAN, 1, 1}, *b = malloc((size_t)n * 16);
        float *c = malloc((size_t)n * 12);
        for (int64_t i = 0; i < 4 * n; i++) b[i] = 1;
        void *args[] = {a, b, c};
        run_all_ways(&h, args, c, (size_t)n * 12);
        for (int64_t j = 0; j < n; j++) {
            assert_true(c[j] == 10);
            assert_true(isinf(c[n + j]) && c[n + j] > 0);
            assert_true(isnan(c[2 * n + j]));
        }
        free(b), free(c);
    }
}

/* With an argument, runs only the tests that depend on the library. */
int main(int argc, char **argv) {
#if __has_include(<cblas.h>)
    (void)cblas_as_declared;
#endif
    const struct CMUnitTest tests[] = {
        /* first: it counts threads, and there must be no others yet */
        cmocka_unit_test(test_library),     cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_large),       cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_empty),       cmocka_unit_test(test_packed_projection),
        cmocka_unit_test(test_batches),     cmocka_unit_test(test_cut),
        cmocka_unit_test(test_own_kernels), cmocka_unit_test(test_special_values),
        cmocka_unit_test(test_complex),
    };
    const struct CMUnitTest by_library[] = {cmocka_unit_test(test_library), cmocka_unit_test(test_complex)};
    (void)argv;
    if (argc > 1) return cmocka_run_group_tests(by_library, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
