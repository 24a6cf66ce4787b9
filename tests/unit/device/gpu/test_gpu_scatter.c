/* src/device/gpu: scatter-add, on OpenCL and on the simulated CUDA driver. Compared with the interpreter's
 * plain loops in f64. Each runs twice with equal bits, between guarded buffers. The order of additions, the
 * independence of the number of compute units, and the work of each launch are tested, too. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "device/gpu/heavy/heavy.h"
#include "device/gpu/heavy/scatter_params.h"
#include "device/gpu/heavy/scatter_sort_params.h"
#include "gpu.h"
#include "gpu_heavy.h"

/* Work-items of a group. */
static int items_of(int way) { return 64 << way; }

/* ---- results ---- */

enum { RANDOM, SORTED, EQUAL, SKEWED, BAD, UNIQUE };

/* SKEWED: half of the indices are row 0, a quarter row 1, and so on, as the words of a text. */
static int64_t index_at(int kind, int64_t i, int64_t count, int64_t rows, uint64_t *seed) {
    const uint64_t random = next_random(seed);
    const double part = (double)(random >> 11) * 0x1p-53;
    switch (kind) {
    case SORTED: return i * rows / count;
    case EQUAL: return rows / 2;
    case SKEWED: return (int64_t)(exp2(part * log2((double)rows)) - 1);
    case UNIQUE: return (i * 7 + 3) % rows;
    default:
        return kind == BAD && i >= count / 2 ? (i % 3 ? rows + i : -i) : (int64_t)(random % (uint64_t)rows);
    }
}

/* Small multiples of 1/4. Their sums are exact, so any order gives the interpreter's result. */
static void *quarters(weft_dtype dt, size_t n, uint64_t seed) {
    void *values = random_values(dt, (int64_t)n, seed);
    for (int64_t i = 0; weft_dtype_is_float(dt) && i < (int64_t)n; i++)
        set_value(dt, values, i, floor(8 * value(dt, values, i)) / 4);
    return values;
}

enum { FROM_ZERO, ON_A_BASE, IN_PLACE };

static void check_scatter(weft_dtype dt, weft_dtype index_dt, int kind, int begin, const int64_t *size) {
    const int64_t outer = size[0], count = size[1], rows = size[2], inner = size[3];
    weft_heavy h = {.kind = WEFT_HEAVY_SCATTER, .path = "wte"};
    h.as.scatter = (weft_heavy_scatter){.dtype = (uint8_t)dt,
                                        .index_dtype = (uint8_t)index_dt,
                                        .based = begin != FROM_ZERO,
                                        .in_place = begin == IN_PLACE && outer * rows * inner > 0,
                                        .unique = kind == UNIQUE,
                                        .outer = outer,
                                        .count = count,
                                        .rows = rows,
                                        .inner = inner};
    const size_t each = weft_dtype_size(dt), n = (size_t)(outer * count * inner),
                 m = (size_t)(outer * rows * inner);
    uint64_t seed = 5;
    int64_t *index = malloc((size_t)count * 8 + 1);
    int32_t *narrow = malloc((size_t)count * 4 + 1);
    for (int64_t i = 0; i < count; i++)
        narrow[i] = (int32_t)(index[i] = index_at(kind, i, count, rows, &seed));
    void *source = quarters(dt, n, 8), *base = quarters(dt, m, 9), *out = quarters(dt, m, 10);
    const int to = begin == FROM_ZERO ? 2 : 3;
    operands o = {.n = to + 1,
                  .data = {index_dt == WEFT_I64 ? (void *)index : (void *)narrow, source, base},
                  .bytes = {(size_t)count * weft_dtype_size(index_dt), n * each, m * each, m * each}};
    o.data[to] = begin == IN_PLACE ? base : out;
    operands want = o;
    if (begin != FROM_ZERO) want.data[2] = copy_of(base, m * each);
    want.data[to] = begin == IN_PLACE ? want.data[2] : copy_of(out, m * each);
    const weft_fault fault = run_twice(&h, &o), expected = run_on(interp, &h, &want);
    check_fault(&fault, &expected);
    assert_int_equal(expected.set != 0, kind == BAD && count > 0 && outer > 0);
    assert_memory_equal(o.data[to], want.data[to], m * each);
    if (begin == ON_A_BASE) free(want.data[2]);
    free(index), free(narrow), free(source), free(base), free(out), free(want.data[to]);
}

static const weft_dtype dtypes[] = {WEFT_F32, WEFT_F64, WEFT_F16, WEFT_BF16, WEFT_I32, WEFT_I64, WEFT_U8};

static void test_scatter(void **state) {
    (void)state;
    static const int64_t sizes[][4] = {{1, 100, 7, 1}, {3, 17, 5, 33},    {1, 300, 65, 128}, {1, 40, 900, 70},
                                       {64, 1, 10, 1}, {2, 50, 50, 1025}, {40, 33, 65, 17},  {2, 0, 5, 33},
                                       {1, 4, 5, 0},   {0, 4, 5, 3}};
    static const int64_t alone[][4] = {{1, 300, 300, 1}, {3, 40, 64, 1}}; /* rows of one element */
    if (!gpu) return skip();
    for (int way = 0; way < 2; way++)
        for (int d = 0; d < COUNT(dtypes); d++) {
            aim(items_of(way));
            for (int k = 0; k < 6; k++)
                check_scatter(dtypes[d], d % 2 ? WEFT_I64 : WEFT_I32, UNIQUE, k % 3, alone[k / 3]);
            for (int s = 0; s < COUNT(sizes); s++) {
                const weft_dtype index = d % 2 ? WEFT_I64 : WEFT_I32;
                check_scatter(dtypes[d], index, (d + s) % 3, (d + s / 2) % 3, sizes[s]);
                if (s % 3 == 0) check_scatter(dtypes[d], index, BAD, (d + s) % 3, sizes[s]);
            }
        }
}

/* Indices that GPUs sort: rows of one, two and three digits, chunks of 16 bytes and columns, one row of all,
 * and unique ones. */
static void test_scatter_sorted(void **state) {
    (void)state;
    static const int64_t sizes[][4] = {{1, 257, 1, 1},       {3, 700, 255, 24},   {1, 1500, 256, 5},
                                       {2, 1025, 3000, 264}, {1, 4097, 70000, 8}, {70, 300, 12, 3}};
    if (!gpu) return skip();
    for (int d = 0; d < COUNT(dtypes); d++)
        for (int s = 0; s < COUNT(sizes); s++) {
            aim(items_of(1));
            const weft_dtype index = (d + s) % 2 ? WEFT_I64 : WEFT_I32;
            for (int kind = RANDOM; kind <= BAD; kind++)
                if ((kind + d) % 2 == s % 2)
                    check_scatter(dtypes[d], index, kind, (d + kind + s) % 3, sizes[s]);
            if (sizes[s][1] <= sizes[s][2]) check_scatter(dtypes[d], index, UNIQUE, d % 3, sizes[s]);
        }
    check_scatter(WEFT_BF16, WEFT_I32, SKEWED, IN_PLACE, (int64_t[]){1, 65536, 50304, 8});
    check_scatter(WEFT_F32, WEFT_I64, EQUAL, FROM_ZERO, (int64_t[]){1, 70000, 50304, 2});
}

/* ---- order ---- */

/* The sum of row `row`, by the definition: pieces of `segment` sources, added in order; then the pieces. */
static float sum_of_row(weft_dtype dt, const int32_t *index, const void *source, int64_t count, int64_t row,
                        int64_t segment) {
    volatile float sum = 0, piece = 0;
    int64_t met = 0;
    for (int64_t i = 0; i < count; i++) {
        if (index[i] != row) continue;
        if (met % segment == 0 && met) sum += piece, piece = 0;
        if (met < segment)
            sum += (float)value(dt, source, i);
        else
            piece += (float)value(dt, source, i);
        met++;
    }
    return met > segment ? sum + piece : sum;
}

static void check_order(weft_dtype dt, int64_t count, int64_t rows, int64_t segment) {
    const size_t each = weft_dtype_size(dt);
    int32_t *index = malloc((size_t)count * sizeof *index);
    uint64_t seed = 6;
    for (int64_t i = 0; i < count; i++) index[i] = (int32_t)index_at(SKEWED, i, count, rows, &seed);
    char *source = random_values(dt, count, 3),
         *out[2] = {calloc((size_t)rows, each), calloc((size_t)rows, each)};
    weft_heavy h = {.kind = WEFT_HEAVY_SCATTER};
    h.as.scatter = (weft_heavy_scatter){
        .dtype = (uint8_t)dt, .index_dtype = WEFT_I32, .outer = 1, .count = count, .rows = rows, .inner = 1};
    weft_target *target = &weft__gpu_of(gpu)->target;
    const int units = target->units;
    for (int k = 0; k < 2; k++) { /* GPUs of different size */
        operands o = {.n = 3,
                      .data = {index, source, out[k]},
                      .bytes = {(size_t)count * sizeof *index, (size_t)count * each, (size_t)rows * each}};
        target->units = k ? 132 : 2;
        run_twice(&h, &o);
    }
    target->units = units;
    assert_memory_equal(out[0], out[1], (size_t)rows * each);
    for (int64_t r = 0; r < rows; r++) {
        const float sum = sum_of_row(dt, index, source, count, r, segment);
        const float got = (float)value(dt, out[0], r);
        assert_true(got == (dt == WEFT_F32 ? sum : weft_bf16_to_f32(weft_f32_to_bf16(sum))));
    }
    free(index), free(source), free(out[0]), free(out[1]);
}

/* The roundings must be those of adding in the order of the index, for 16-bit dtypes in f32. On GPUs rows of
 * many sources are added in segments, whose length depends on the number of indices. */
static void test_scatter_order(void **state) {
    (void)state;
    enum { WHOLE = 1 << 30 };
    if (!gpu) return skip();
    for (int way = 0; way < 4; way++) {
        const weft_dtype dt = way & 1 ? WEFT_BF16 : WEFT_F32;
        aim(items_of(way >> 1));
        check_order(dt, 250, 3, WHOLE);
        check_order(dt, 2000, 1, 128);
        check_order(dt, 5000, 40, 128);
        check_order(dt, 70000, 9, 256);
    }
}

/* ---- after a fault ---- */

/* The first scatter-add meets a bad index, and still adds the others. The second one changes a variable, so
 * it must do nothing. */
static void test_scatter_sink(void **state) {
    (void)state;
    enum { N = 600, ROWS = 20, SLOTS = 4, INDEX = 0, SOURCE, FIRST_OUT, SECOND_OUT };
    static int32_t index[N];
    static float source[N], out[2][ROWS], want[ROWS];
    const size_t bytes[SLOTS] = {sizeof index, sizeof source, sizeof out[0], sizeof out[1]};
    void *data[SLOTS] = {index, source, out[0], out[1]};
    weft_command list[2];
    weft_operand where[2][4];
    weft_buffer *buffers[SLOTS];
    weft_executable *executable;
    weft_fault fault = {0};
    if (!gpu) return skip();
    const weft_device_ops *ops = gpu->ops;
    aim(items_of(1));
    for (int i = 0; i < N; i++)
        index[i] = i == 77 || i == 300 ? -i : i * 7 % ROWS, source[i] = (float)(i % 8);
    for (int i = 0; i < N; i++)
        if (index[i] >= 0) want[index[i]] += source[i];
    for (int c = 0; c < 2; c++) {
        list[c] = (weft_command){
            .kind = WEFT_COMMAND_HEAVY, .after = true, .sink = c, .n_operands = 4, .operands = where[c]};
        list[c].heavy = (weft_heavy){.kind = WEFT_HEAVY_SCATTER, .path = c ? "second" : "first"};
        list[c].heavy.as.scatter = (weft_heavy_scatter){.dtype = WEFT_F32,
                                                        .index_dtype = WEFT_I32,
                                                        .based = true,
                                                        .in_place = true,
                                                        .outer = 1,
                                                        .count = N,
                                                        .rows = ROWS,
                                                        .inner = 1};
        for (int k = 0; k < 4; k++) where[c][k] = (weft_operand){k < 2 ? k : FIRST_OUT + c, 0};
    }
    for (int i = 0; i < SLOTS; i++) {
        assert_int_equal(ops->buffer_new(gpu, bytes[i], &buffers[i]), WEFT_OK);
        assert_int_equal(ops->upload(gpu, buffers[i], 0, data[i], bytes[i]), WEFT_OK);
    }
    const weft_commands commands = {.count = 2, .n_slots = SLOTS, .list = list};
    assert_int_equal(ops->build(gpu, &commands, &executable), WEFT_OK);
    assert_int_equal(ops->run(gpu, executable, buffers, 1), WEFT_OK);
    for (int i = FIRST_OUT; i <= SECOND_OUT; i++)
        assert_int_equal(ops->download(gpu, buffers[i], 0, data[i], bytes[i]), WEFT_OK);
    assert_int_equal(ops->take_fault(gpu, &fault), WEFT_OK);
    assert_true(fault.set && fault.value == -77 && fault.element == 77);
    assert_string_equal(fault.path, "first");
    assert_memory_equal(out[0], want, sizeof want);
    for (int r = 0; r < ROWS; r++) assert_true(out[1][r] == 0);
    ops->executable_free(gpu, executable);
    for (int i = 0; i < SLOTS; i++) ops->buffer_free(gpu, buffers[i]);
}

/* ---- work ---- */

/* The launches of the gradient of GPT-2's embedding: 65,536 tokens of 768 channels. */
static void launches_of(weft_launches *launches, weft_arena *arena, const weft_target *target) {
    weft__arena_init(arena, &context);
    *launches = (weft_launches){.ctx = &context, .arena = arena, .target = target};
    weft_heavy h = {.kind = WEFT_HEAVY_SCATTER, .path = "wte"};
    h.as.scatter = (weft_heavy_scatter){.dtype = WEFT_BF16,
                                        .index_dtype = WEFT_I32,
                                        .based = true,
                                        .in_place = true,
                                        .outer = 1,
                                        .count = 65536,
                                        .rows = 50304,
                                        .inner = 768};
    assert_int_equal(weft__gpu_scatter(launches, &h, false), WEFT_OK);
}

static const w_scatter_sort *numbers_of(const weft_launch *l) {
    for (int a = 0; a < l->n_arguments; a++)
        if (l->arguments[a].kind == WEFT_ARGUMENT_STRUCT) return l->arguments[a].numbers;
    return NULL;
}

/* No work-group may read the whole index, and all of a large GPU must have work. Its size must not change the
 * launches. */
static void test_scatter_work(void **state) {
    (void)state;
    static const char *const names[] = {"scatter_count", "scatter_offsets", "scatter_place",
                                        "scatter_count", "scatter_offsets", "scatter_place",
                                        "scatter_sum",   "scatter_join"};
    weft_target large = {.dialect = WEFT_DIALECT_CUDA, .lanes = 256, .units = 132, .local_bytes = 48 << 10},
                small = large;
    small.units = 4;
    weft_launches launches, again;
    weft_arena arena, other;
    launches_of(&launches, &arena, &large);
    launches_of(&again, &other, &small);
    assert_int_equal(launches.count, COUNT(names));
    assert_int_equal(again.count, COUNT(names));
    assert_true(launches.scratch_bytes == again.scratch_bytes && launches.scratch_bytes < 8 << 20);
    for (int l = 0; l < COUNT(names); l++) {
        const weft_launch *launch = &launches.list[l];
        const w_scatter_sort *of = numbers_of(launch);
        assert_string_equal(launch->name, names[l]);
        assert_non_null(of);
        assert_memory_equal(launch->groups, again.list[l].groups, sizeof launch->groups);
        assert_true(launch->groups[0] * launch->groups[1] * launch->groups[2] >= 128);
        assert_true(of->tiles == 128 && of->tile * of->tiles == of->count);
        if (strcmp(names[l], "scatter_sum") == 0) assert_int_equal(launch->groups[0], 65536 / 128);
    }
    weft__free(&context, launches.list), weft__free(&context, again.list);
    weft__arena_free(&arena), weft__arena_free(&other);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_scatter), cmocka_unit_test(test_scatter_sorted),
                                       cmocka_unit_test(test_scatter_order),
                                       cmocka_unit_test(test_scatter_sink),
                                       cmocka_unit_test(test_scatter_work)};
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}
