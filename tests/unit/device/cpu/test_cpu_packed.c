/* Kernels of packed matrices: each instruction set against the others, each row and column against the same
 * one alone, and no byte read or written outside of buffers of the exact size. ops_cpu compares values with
 * the definitions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "device/cpu/gemm/packed.h"
#include "heavy/packed.h"

typedef struct table {
    const char *name;
    const weft_packed_own *own;
    bool fused; /* has fused multiply-add */
} table;

static int tables(table out[4]) {
    int n = 0;
    out[n++] = (table){"baseline", &weft__packed_own_baseline, false};
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        out[n++] = (table){"avx2", &weft__packed_own_avx2, true};
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
        out[n++] = (table){"avx512", &weft__packed_own_avx512, true};
    if (__builtin_cpu_supports("avx512vnni")) out[n++] = (table){"vnni", &weft__packed_own_vnni, true};
#endif
    return n;
}

static uint64_t seed = 1;
static uint32_t draw(void) {
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(seed >> 33);
}

/* Memory of exactly n bytes, with 64-byte alignment if asked for. */
static void *exactly(size_t n, bool aligned) {
    void *p = NULL;
    if (!aligned) p = malloc(n);
    if (aligned) assert_int_equal(posix_memalign(&p, 64, n ? n : 1), 0);
    assert_non_null(p);
    return p;
}

/* All bytes are valid: only scales must be finite, of which the high bytes are at these places. */
static uint8_t *rows_of(int format, int64_t rows, int64_t k) {
    const weft_packed_info *info = weft__packed_info(format);
    const int64_t n = rows * weft__packed_row(info, k);
    uint8_t *out = exactly((size_t)n, false);
    for (int64_t i = 0; i < n; i++) out[i] = (uint8_t)draw();
    for (int64_t at = 0; at < n; at += info->bytes) {
        out[at + (format == WEFT_Q6_K ? 209 : 1)] &= 0xa7;
        if (format == WEFT_Q4_1 || format == WEFT_Q4_K) out[at + 3] &= 0xa7;
    }
    return out;
}

typedef struct rounded {
    weft_packed_x x;
    float *from;
} rounded;

static rounded round_x(const weft_packed_own *own, int format, int64_t m, int64_t k, const float *from) {
    const int64_t spans = k / weft__packed_info(format)->span;
    const size_t each = (size_t)(m * spans) * 4;
    rounded r = {.x = {.k = k,
                       .spans = spans,
                       .q = exactly((size_t)(m * k), false),
                       .scale = exactly(each, false),
                       .sum = exactly(each, false),
                       .less = exactly(each, false)},
                 .from = exactly((size_t)(m * k) * 4, false)};
    memcpy(r.from, from, (size_t)(m * k) * 4);
    own->round(format, m, r.from, &r.x);
    return r;
}

static void rounded_free(rounded *r) {
    free(r->x.q);
    free(r->x.scale);
    free(r->x.sum);
    free(r->x.less);
    free(r->from);
}

/* out (m, n), with all columns at once or, with `one`, one after the other. */
static float *product(const weft_packed_own *own, int format, int64_t m, int64_t n, int64_t k,
                      const float *from, const uint8_t *rows, bool one) {
    const int64_t row_bytes = weft__packed_row(weft__packed_info(format), k), most = one ? 1 : 16;
    rounded r = round_x(own, format, m, k, from);
    float *out = exactly((size_t)(m * n) * 4, false);
    void *panel = exactly(WEFT_PACKED_PANEL, true);
    for (int64_t j = 0; j < n; j += most) {
        const int64_t count = n - j < most ? n - j : most;
        const weft_packed_part part = {format, rows + j * row_bytes, row_bytes, count,
                                       (n - j - count) * row_bytes};
        own->multiply(&part, m, &r.x, out + j, n, panel);
    }
    free(panel);
    rounded_free(&r);
    return out;
}

static void same_bits(const float *a, const float *b, int64_t n, const char *what, int format) {
    for (int64_t i = 0; i < n; i++)
        if (memcmp(&a[i], &b[i], sizeof *a) != 0)
            fail_msg("%s: %s: element %d is %.9g, not %.9g", weft__packed_info(format)->name, what, (int)i,
                     (double)a[i], (double)b[i]);
}

/* Sums without fused multiply-add round twice as often. */
static void near(const float *a, const float *b, int64_t n, int format) {
    double most = 0;
    for (int64_t i = 0; i < n; i++) most = b[i] > most ? b[i] : -b[i] > most ? -b[i] : most;
    for (int64_t i = 0; i < n; i++) {
        const double off = (double)a[i] - (double)b[i];
        if (!(off <= 1e-4 * most && off >= -1e-4 * most))
            fail_msg("%s: element %d is %.9g, baseline has %.9g", weft__packed_info(format)->name, (int)i,
                     (double)a[i], (double)b[i]);
    }
}

static void check_size(int format, int64_t m, int64_t n, int64_t k) {
    table all[4];
    const int count = tables(all);
    float *x = exactly((size_t)(m * k) * 4, false), *first = NULL, *fused = NULL;
    uint8_t *rows = rows_of(format, n, k);
    for (int64_t i = 0; i < m * k; i++) x[i] = (float)((int)(draw() & 0xffff) - 32768) / 7000;
    for (int t = 0; t < count; t++) {
        float *y = product(all[t].own, format, m, n, k, x, rows, false);
        float *columns = product(all[t].own, format, m, n, k, x, rows, true);
        same_bits(columns, y, m * n, "one column after the other", format);
        for (int64_t i = 0; i < m; i++) {
            float *row = product(all[t].own, format, 1, n, k, x + i * k, rows, false);
            same_bits(row, y + i * n, n, "a row alone", format);
            free(row);
        }
        free(columns);
        if (first) near(y, first, m * n, format);
        if (fused) same_bits(y, fused, m * n, all[t].name, format);
        if (!first)
            first = y;
        else if (!fused && all[t].fused)
            fused = y;
        else
            free(y);
    }
    free(first);
    free(fused);
    free(rows);
    free(x);
}

static void test_sizes(void **state) {
    (void)state;
    for (int format = 1; format < WEFT_PACKED_COUNT; format++) {
        const int64_t e = weft__packed_info(format)->elements;
        check_size(format, 1, 1, e);
        check_size(format, 1, 33, 3 * e);
        check_size(format, 3, 15, 2 * e);
        check_size(format, 8, 16, e);
        check_size(format, 15, 17, 5 * e);
        check_size(format, 2, 18, 2304); /* more than one panel deep */
    }
}

static void test_unpack(void **state) {
    (void)state;
    table all[4];
    const int count = tables(all);
    for (int format = 1; format < WEFT_PACKED_COUNT; format++) {
        const int64_t n = 5 * weft__packed_info(format)->elements;
        uint8_t *rows = rows_of(format, 1, n);
        float *first = NULL;
        for (int t = 0; t < count; t++) {
            float *y = exactly((size_t)n * 4, false);
            all[t].own->unpack(format, 5, rows, y);
            if (first) same_bits(y, first, n, all[t].name, format);
            if (first)
                free(y);
            else
                first = y;
        }
        free(first);
        free(rows);
    }
}

/* The largest magnitudes in each place, which fill the integers. */
static void test_extremes(void **state) {
    (void)state;
    table all[4];
    const int count = tables(all);
    for (int format = 1; format < WEFT_PACKED_COUNT; format++)
        for (int kind = 0; kind < 4; kind++) {
            const int64_t k = 512, n = 16;
            uint8_t *rows = rows_of(format, n, k);
            const weft_packed_info *info = weft__packed_info(format);
            for (int64_t i = 0; i < n * weft__packed_row(info, k); i++) {
                const int64_t at = i % info->bytes;
                const bool scale = format == WEFT_Q6_K ? at >= 208 : at < 4 && (at < 2 || info->bytes != 34);
                if (!scale) rows[i] = kind & 1 ? 0x80 : 0xff;
            }
            float x[512], *first = NULL;
            for (int i = 0; i < 512; i++) x[i] = kind & 2 ? -1.0F : 1.0F;
            for (int t = 1; t < count; t++) {
                float *y = product(all[t].own, format, 1, n, k, x, rows, false);
                if (first) same_bits(y, first, n, all[t].name, format);
                if (first)
                    free(y);
                else
                    first = y;
            }
            if (first) {
                float *y = product(all[0].own, format, 1, n, k, x, rows, false);
                near(first, y, n, format);
                free(y);
            }
            free(first);
            free(rows);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sizes), cmocka_unit_test(test_unpack),
                                       cmocka_unit_test(test_extremes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
