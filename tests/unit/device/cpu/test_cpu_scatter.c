/* src/device/cpu: scatter-add and update compared with plain loops, for every dtype. The bits must be the
 * same for each partition into tasks. Bad indices and offsets are reported, and write nothing. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "device/cpu/cpu.h"
#include "unit/cpu_work.h"

#define COUNT(x) ((int)(sizeof(x) / sizeof *(x)))
static const weft_dtype dtypes[] = {WEFT_F32, WEFT_F64, WEFT_F16, WEFT_BF16, WEFT_I32, WEFT_I64};

/* The values that the sums are added to. */
typedef enum start_kind { ZEROS, BASE, IN_PLACE } start_kind;

static void assert_sums(weft_dtype dt, int64_t n, const void *out, const double *sum, const uint64_t *whole) {
    for (int64_t i = 0; i < n; i++) {
        if (dt == WEFT_I32)
            assert_int_equal((uint32_t)integer(dt, out, i), (uint32_t)whole[i]);
        else if (dt == WEFT_I64)
            assert_true(integer(dt, out, i) == whole[i]);
        else if (dt == WEFT_F16)
            assert_int_equal(((const uint16_t *)out)[i], weft_f32_to_f16((float)sum[i]));
        else if (dt == WEFT_BF16)
            assert_int_equal(((const uint16_t *)out)[i], weft_f32_to_bf16((float)sum[i]));
        else
            assert_true(value(dt, out, i) == sum[i]);
    }
}

/* The definition: adds one source after the other in the order of the index, in the accumulator of the
 * dtype. */
static void check_start(start_kind start, weft_dtype dt, bool wide_index, int64_t outer, int64_t count,
                        int64_t rows, int64_t inner, int64_t bad, bool unique) {
    weft_heavy h = {.kind = WEFT_HEAVY_SCATTER, .path = "wte"};
    h.as.scatter = (weft_heavy_scatter){.dtype = (uint8_t)dt,
                                        .index_dtype = wide_index ? WEFT_I64 : WEFT_I32,
                                        .outer = outer,
                                        .count = count,
                                        .rows = rows,
                                        .inner = inner,
                                        .unique = unique,
                                        .based = start != ZEROS,
                                        .in_place = start == IN_PLACE};
    size_t size = weft_dtype_size(dt), bytes = size * (size_t)(outer * rows * inner);
    int64_t *index = malloc((size_t)(count + 1) * 8);
    uint64_t seed = 5;
    for (int64_t i = 0; i < count; i++)
        index[i] = unique ? (i * 7 + 3) % rows : (int64_t)(next_random(&seed) % (uint64_t)rows);
    if (bad >= 0) index[bad] = rows;
    if (bad >= 0 && bad + 1 < count) index[bad + 1] = -1;
    int32_t *narrow = malloc((size_t)(count + 1) * 4);
    for (int64_t i = 0; i < count; i++) narrow[i] = (int32_t)index[i];
    void *source = random_values(dt, outer * count * inner, 8);
    void *base = random_values(dt, outer * rows * inner, 9);
    char *out = malloc(bytes + 1);
    memset(out, 0x33, bytes);
    if (start == IN_PLACE) memcpy(out, base, bytes);
    assert_true(weft__cpu_heavy_takes(&h));
    void *args[] = {wide_index ? (void *)index : (void *)narrow, source,
                    start == ZEROS  ? out
                    : start == BASE ? base
                                    : out,
                    out};
    weft_fault fault = run_all_ways(&h, args, out, bytes);
    assert_int_equal(fault.set != 0, bad >= 0);
    if (bad >= 0) {
        assert_int_equal(fault.kind, WEFT_FAULT_SCATTER);
        assert_string_equal(fault.path, "wte");
        assert_int_equal(fault.value, rows);
        assert_int_equal(fault.bound, rows);
        assert_int_equal(fault.element, bad);
    }
    double *sum = calloc((size_t)(outer * rows * inner + 1), sizeof *sum);
    uint64_t *whole = calloc((size_t)(outer * rows * inner + 1), sizeof *whole);
    for (int64_t i = 0; start != ZEROS && i < outer * rows * inner; i++) {
        sum[i] = value(dt, base, i);
        whole[i] = integer(dt, base, i);
    }
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < count; i++) {
            if (index[i] < 0 || index[i] >= rows) continue;
            for (int64_t x = 0; x < inner; x++) {
                int64_t to = (o * rows + index[i]) * inner + x, from = (o * count + i) * inner + x;
                double next = sum[to] + value(dt, source, from);
                sum[to] = dt == WEFT_F64 ? next : (double)(float)next;
                whole[to] += integer(dt, source, from);
            }
        }
    assert_sums(dt, outer * rows * inner, out, sum, whole);
    free(index), free(narrow), free(source), free(base), free(out), free(sum), free(whole);
}

static void check_scatter(weft_dtype dt, bool wide_index, int64_t outer, int64_t count, int64_t rows,
                          int64_t inner, int64_t bad) {
    for (start_kind s = ZEROS; s <= IN_PLACE; s++)
        check_start(s, dt, wide_index, outer, count, rows, inner, bad, false);
}

static void test_scatter(void **state) {
    (void)state;
    static const int64_t sizes[][4] = {
        {1, 100, 7, 1}, {1, 1, 1, 1},      {3, 17, 5, 33},   {1, 300, 65, 128}, {1, 40, 900, 70},
        {64, 1, 10, 1}, {2, 50, 50, 1025}, {1, 2000, 11, 3}, {40, 33, 65, 17},  {1, 500, 40, 2050}};
    for (int d = 0; d < COUNT(dtypes); d++)
        for (int s = 0; s < COUNT(sizes); s++)
            check_scatter(dtypes[d], s & 1, sizes[s][0], sizes[s][1], sizes[s][2], sizes[s][3], -1);
}

/* No index occurs twice. The indices cover all rows, or some. */
static void test_scatter_unique(void **state) {
    (void)state;
    static const int64_t sizes[][4] = {{1, 65, 65, 1}, {3, 40, 64, 1}, {1, 70001, 70001, 1}, {2, 50, 50, 3}};
    for (int d = 0; d < COUNT(dtypes); d++)
        for (int s = 0; s < COUNT(sizes); s++)
            for (start_kind k = ZEROS; k <= IN_PLACE; k++)
                check_start(k, dtypes[d], s & 1, sizes[s][0], sizes[s][1], sizes[s][2], sizes[s][3], -1,
                            true);
}

static void test_scatter_empty(void **state) {
    (void)state;
    for (int d = 0; d < COUNT(dtypes); d++) {
        check_scatter(dtypes[d], false, 2, 0, 5, 33, -1); /* no index: zeros */
        check_scatter(dtypes[d], false, 0, 4, 5, 3, -1);
        check_scatter(dtypes[d], false, 1, 4, 5, 0, -1);
    }
}

static void test_scatter_bad_index(void **state) {
    (void)state;
    for (int d = 0; d < COUNT(dtypes); d++) {
        check_scatter(dtypes[d], false, 1, 300, 65, 128, 41);
        check_scatter(dtypes[d], true, 3, 30, 900, 70, 29);
    }
    /* an i64 index that would be valid if truncated to i32 */
    int64_t index = (int64_t)1 << 32;
    float source = 1, out[2] = {5, 5};
    weft_heavy h = {.kind = WEFT_HEAVY_SCATTER};
    h.as.scatter = (weft_heavy_scatter){
        .dtype = WEFT_F32, .index_dtype = WEFT_I64, .outer = 1, .count = 1, .rows = 2, .inner = 1};
    void *args[] = {&index, &source, out};
    weft_fault fault = run_all_ways(&h, args, out, sizeof out);
    assert_true(fault.set && fault.value == index && out[0] == 0 && out[1] == 0);
}

static void test_scatter_cut(void **state) {
    (void)state;
    /* the gradient of GPT-2's token embedding gives several threads work; a small one is one task */
    weft_heavy h = {.kind = WEFT_HEAVY_SCATTER};
    h.as.scatter = (weft_heavy_scatter){
        .dtype = WEFT_F32, .index_dtype = WEFT_I32, .outer = 1, .count = 256, .rows = 50304, .inner = 768};
    weft_cpu_work work;
    assert_int_equal(weft__cpu_heavy_prepare(NULL, &h, 2, &work), WEFT_OK);
    assert_true(work.tasks >= 4 && work.tasks <= 64);
    work.free(NULL, work.plan);
    /* added in place to another gradient it costs only its 256 rows, still as several tasks */
    const double swept = work.cost_ns;
    h.as.scatter.based = h.as.scatter.in_place = true;
    assert_int_equal(weft__cpu_heavy_prepare(NULL, &h, 2, &work), WEFT_OK);
    assert_true(work.tasks >= 4 && work.cost_ns * 50 < swept);
    work.free(NULL, work.plan);
    h.as.scatter.based = h.as.scatter.in_place = false;
    h.as.scatter.rows = 8, h.as.scatter.inner = 4;
    assert_int_equal(weft__cpu_heavy_prepare(NULL, &h, 2, &work), WEFT_OK);
    assert_int_equal(work.tasks, 1);
    work.free(NULL, work.plan);
    h.as.scatter.dtype = WEFT_BOOL;
    assert_false(weft__cpu_heavy_takes(&h));
}

/* ---- update ---- */

static void check_update(weft_dtype dt, bool in_place, int64_t outer, int64_t total, int64_t extent,
                         int64_t inner, int32_t offset) {
    weft_heavy h = {.kind = WEFT_HEAVY_UPDATE, .path = "attn.cache"};
    h.as.update = (weft_heavy_update){.dtype = (uint8_t)dt,
                                      .in_place = in_place,
                                      .outer = outer,
                                      .total = total,
                                      .extent = extent,
                                      .inner = inner};
    size_t size = weft_dtype_size(dt), bytes = size * (size_t)(outer * total * inner);
    char *input = malloc(bytes + 1), *out = malloc(bytes + 1), *want = malloc(bytes + 1);
    char *val = malloc(size * (size_t)(outer * extent * inner) + 1);
    for (size_t i = 0; i < bytes; i++) input[i] = (char)(i * 7 + 1);
    for (size_t i = 0; i < size * (size_t)(outer * extent * inner); i++) val[i] = (char)(i * 5 + 3);
    memcpy(want, input, bytes);
    memcpy(out, input, bytes);
    if (!in_place) memset(out, 0x11, bytes);
    bool good = offset >= 0 && offset + extent <= total;
    size_t block = size * (size_t)inner;
    for (int64_t o = 0; o < outer && good; o++)
        memcpy(want + (size_t)(o * total + offset) * block, val + (size_t)(o * extent) * block,
               (size_t)extent * block);
    assert_true(weft__cpu_heavy_takes(&h));
    void *args[] = {in_place ? out : input, val, &offset, out};
    weft_fault fault = run_all_ways(&h, args, out, bytes);
    assert_memory_equal(out, want, bytes);
    assert_int_equal(fault.set != 0, !good);
    if (!good) {
        assert_int_equal(fault.value, offset);
        assert_string_equal(fault.path, "attn.cache");
    }
    free(input), free(out), free(want), free(val);
}

static void test_update(void **state) {
    (void)state;
    static const weft_dtype all[] = {WEFT_F32, WEFT_F64, WEFT_BF16, WEFT_U8, WEFT_I64};
    for (int d = 0; d < COUNT(all); d++)
        for (int in_place = 0; in_place < 2; in_place++) {
            for (int32_t offset = -1; offset <= 7; offset++)
                check_update(all[d], in_place, 3, 7, 1, 5, offset);
            check_update(all[d], in_place, 1, 9, 9, 2, 0);
            check_update(all[d], in_place, 1, 9, 9, 2, 1);
            check_update(all[d], in_place, 12, 64, 16, 64, 48);
            check_update(all[d], in_place, 12, 64, 16, 64, 49);
            check_update(all[d], in_place, 2, 1500, 700, 96, 123);
            check_update(all[d], in_place, 1, 5, 0, 3, 5);
            check_update(all[d], in_place, 1, 5, 2, 3, INT32_MAX);
            check_update(all[d], in_place, 1, 5, 2, 3, INT32_MIN);
            check_update(all[d], in_place, 0, 5, 2, 3, 1);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scatter),       cmocka_unit_test(test_scatter_unique),
        cmocka_unit_test(test_scatter_empty), cmocka_unit_test(test_scatter_bad_index),
        cmocka_unit_test(test_scatter_cut),   cmocka_unit_test(test_update),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
