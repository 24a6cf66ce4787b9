/* src/device/gpu: scatter-add, update and attention as texts for CPUs (vectors) and for cards (work-items),
 * run by an OpenCL device, against the interpreter's plain loops in f64; each twice, bit-equal, between
 * guarded buffers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "device/opencl/opencl.h"
#include "cpu_work.h"

#define COUNT(x) ((int)(sizeof(x) / sizeof *(x)))
enum { OPERANDS_MAX = 10 };

/* ---- running one heavy operation ---- */

static weft_context context;
static weft_device *opencl, *interp;

static int open_devices(void **state) {
    const weft__opencl_found *list;
    const char *why;
    (void)state;
    assert_int_equal(weft__device_open(&context, "interp", NULL, &interp), WEFT_OK);
    if (weft__opencl_devices(&list, &why) == 0) {
        print_message("skipped, no OpenCL: %s\n", why);
        return 0;
    }
    weft__opencl_hook.guard = 64;
    assert_int_equal(weft__device_open(&context, "opencl", NULL, &opencl), WEFT_OK);
    return 0;
}

static int close_devices(void **state) {
    (void)state;
    if (opencl) opencl->ops->close(opencl);
    interp->ops->close(interp);
    assert_int_equal(weft__opencl_hook.guards_broken, 0);
    weft__strings_free(&context);
    return 0;
}

/* What a text is for: a CPU, or a card with groups of that many items. */
static void aim(int items) {
    weft_target *t = &weft__opencl_of(opencl)->target;
    t->vectors = items == 0;
    t->lanes = items ? items : 16;
    if (items) t->local_bytes = 32768;
}

typedef struct operands {
    int n;
    void *data[OPERANDS_MAX]; /* equal ones are one buffer */
    size_t bytes[OPERANDS_MAX];
} operands;

/* Runs it once; what it wrote is in the operands afterwards. */
static weft_fault run_on(weft_device *device, const weft_heavy *heavy, const operands *o) {
    const weft_device_ops *ops = device->ops;
    weft_buffer *buffers[OPERANDS_MAX] = {NULL};
    weft_operand where[OPERANDS_MAX];
    weft_command command = {
        .kind = WEFT_COMMAND_HEAVY, .after = true, .heavy = *heavy, .n_operands = o->n, .operands = where};
    const weft_commands commands = {.count = 1, .n_slots = o->n, .list = &command};
    weft_executable *executable;
    weft_fault fault = {0};
    for (int i = 0; i < o->n; i++) {
        int slot = 0;
        while (o->data[slot] != o->data[i]) slot++;
        where[i] = (weft_operand){slot, 0};
        assert_int_equal(ops->buffer_new(device, slot == i ? o->bytes[i] : 0, &buffers[i]), WEFT_OK);
        if (slot == i && o->bytes[i])
            assert_int_equal(ops->upload(device, buffers[i], 0, o->data[i], o->bytes[i]), WEFT_OK);
    }
    const weft_status status = ops->build(device, &commands, &executable);
    if (status != WEFT_OK) fail_msg("%s", weft_last_error(&context));
    assert_int_equal(ops->run(device, executable, buffers, 1), WEFT_OK);
    for (int i = 0; i < o->n; i++)
        if (where[i].slot == i && o->bytes[i])
            assert_int_equal(ops->download(device, buffers[i], 0, o->data[i], o->bytes[i]), WEFT_OK);
    assert_int_equal(ops->take_fault(device, &fault), WEFT_OK);
    ops->executable_free(device, executable);
    for (int i = 0; i < o->n; i++) ops->buffer_free(device, buffers[i]);
    return fault;
}

static void *copy_of(const void *from, size_t bytes) {
    void *to = malloc(bytes + 1);
    return memcpy(to, from, bytes);
}

/* Twice on the device, from the same bytes: the results are the same bits. */
static weft_fault run_twice(const weft_heavy *heavy, const operands *o) {
    operands again = *o;
    assert_true(opencl->ops->takes(opencl, heavy));
    for (int i = 0; i < o->n; i++) {
        int slot = 0;
        while (o->data[slot] != o->data[i]) slot++;
        again.data[i] = slot == i ? copy_of(o->data[i], o->bytes[i]) : again.data[slot];
    }
    run_on(opencl, heavy, &again);
    const weft_fault fault = run_on(opencl, heavy, o);
    for (int i = 0; i < o->n; i++) assert_memory_equal(again.data[i], o->data[i], o->bytes[i]);
    for (int i = 0; i < o->n; i++) {
        int slot = 0;
        while (o->data[slot] != o->data[i]) slot++;
        if (slot == i) free(again.data[i]);
    }
    return fault;
}

static void check_fault(const weft_fault *got, const weft_fault *want) {
    assert_int_equal(got->set != 0, want->set != 0);
    if (!want->set) return;
    assert_non_null(strstr(got->what, "out of range"));
    assert_string_equal(got->path, want->path);
    assert_int_equal(got->value, want->value);
    assert_int_equal(got->bound, want->bound);
    assert_int_equal(got->element, want->element);
}

/* ---- scatter-add ---- */

enum { RANDOM, SORTED, REPEATED, BAD };

/* Sums of a few numbers: exact where those are small whole ones, so that any order gives the interpreter's.
 */
static void check_scatter(weft_dtype dt, weft_dtype index_dt, int kind, const int64_t *size) {
    const int64_t outer = size[0], count = size[1], rows = size[2], inner = size[3];
    weft_heavy h = {.kind = WEFT_HEAVY_SCATTER, .path = "wte"};
    h.as.scatter = (weft_heavy_scatter){.dtype = (uint8_t)dt,
                                        .index_dtype = (uint8_t)index_dt,
                                        .outer = outer,
                                        .count = count,
                                        .rows = rows,
                                        .inner = inner};
    const size_t each = weft_dtype_size(dt), n = (size_t)(outer * count * inner),
                 m = (size_t)(outer * rows * inner);
    uint64_t seed = 5;
    int64_t *index = malloc((size_t)count * 8 + 1);
    int32_t *narrow = malloc((size_t)count * 4 + 1);
    for (int64_t i = 0; i < count; i++) {
        index[i] = kind == SORTED     ? i * rows / count
                   : kind == REPEATED ? rows / 2
                                      : (int64_t)(next_random(&seed) % (uint64_t)rows);
        if (kind == BAD && i >= count / 2) index[i] = i % 3 ? rows + i : -i;
        narrow[i] = (int32_t)index[i];
    }
    void *source = random_values(dt, (int64_t)n, 8);
    for (size_t i = 0; weft_dtype_is_float(dt) && i < n; i++)
        set_value(dt, source, (int64_t)i, floor(8 * value(dt, source, (int64_t)i)) / 4);
    operands o = {
        .n = 3,
        .data = {index_dt == WEFT_I64 ? (void *)index : (void *)narrow, source, malloc(m * each + 1)},
        .bytes = {(size_t)count * weft_dtype_size(index_dt), n * each, m * each}};
    operands want = o;
    memset(o.data[2], 0x33, m * each);
    want.data[2] = copy_of(o.data[2], m * each);
    const weft_fault fault = run_twice(&h, &o), expected = run_on(interp, &h, &want);
    check_fault(&fault, &expected);
    assert_int_equal(expected.set != 0, kind == BAD && count > 0 && outer > 0);
    assert_memory_equal(o.data[2], want.data[2], m * each);
    free(index), free(narrow), free(source), free(o.data[2]), free(want.data[2]);
}

static void test_scatter(void **state) {
    (void)state;
    static const weft_dtype dtypes[] = {WEFT_F32, WEFT_F64, WEFT_F16, WEFT_BF16, WEFT_I32, WEFT_I64, WEFT_U8};
    static const int64_t sizes[][4] = {{1, 100, 7, 1}, {3, 17, 5, 33},    {1, 300, 65, 128}, {1, 40, 900, 70},
                                       {64, 1, 10, 1}, {2, 50, 50, 1025}, {40, 33, 65, 17},  {2, 0, 5, 33},
                                       {1, 4, 5, 0},   {0, 4, 5, 3}};
    if (!opencl) return skip();
    for (int items = 0; items <= 64; items += 64)
        for (int d = 0; d < COUNT(dtypes); d++)
            for (int s = 0; s < COUNT(sizes); s++) {
                aim(items);
                check_scatter(dtypes[d], s & 1 ? WEFT_I64 : WEFT_I32, (d + s) % 3, sizes[s]);
                if (s % 3 == 0) check_scatter(dtypes[d], s & 1 ? WEFT_I64 : WEFT_I32, BAD, sizes[s]);
            }
}

/* Roundings are those of adding in the order of the index, in f32 for 16 bits. */
static void test_scatter_order(void **state) {
    (void)state;
    enum { N = 1000 };
    if (!opencl) return skip();
    for (int way = 0; way < 4; way++) {
        const weft_dtype dt = way & 1 ? WEFT_BF16 : WEFT_F32;
        static int32_t index[N];
        char out[8];
        void *source = random_values(dt, N, 3);
        operands o = {.n = 3,
                      .data = {index, source, out},
                      .bytes = {sizeof index, N * weft_dtype_size(dt), weft_dtype_size(dt)}};
        weft_heavy h = {.kind = WEFT_HEAVY_SCATTER};
        h.as.scatter = (weft_heavy_scatter){
            .dtype = (uint8_t)dt, .index_dtype = WEFT_I32, .outer = 1, .count = N, .rows = 1, .inner = 1};
        volatile float sum = 0;
        for (int i = 0; i < N; i++) sum += (float)value(dt, source, i);
        aim(way & 2 ? 64 : 0);
        run_twice(&h, &o);
        const float got = (float)value(dt, out, 0);
        assert_true(got == (dt == WEFT_F32 ? sum : weft_bf16_to_f32(weft_f32_to_bf16(sum))));
        free(source);
    }
}

/* ---- update ---- */

static void check_update(weft_dtype dt, bool in_place, const int64_t *size, int32_t offset) {
    const int64_t outer = size[0], total = size[1], extent = size[2], inner = size[3];
    weft_heavy h = {.kind = WEFT_HEAVY_UPDATE, .path = "cache"};
    h.as.update = (weft_heavy_update){.dtype = (uint8_t)dt,
                                      .in_place = in_place,
                                      .outer = outer,
                                      .total = total,
                                      .extent = extent,
                                      .inner = inner};
    const size_t each = weft_dtype_size(dt), whole = (size_t)(outer * total * inner) * each,
                 part = (size_t)(outer * extent * inner) * each;
    void *input = random_values(dt, outer * total * inner, 3),
         *more = random_values(dt, outer * extent * inner, 4);
    operands o = {.n = 4,
                  .data = {input, more, &offset, in_place ? input : calloc(whole + 1, 1)},
                  .bytes = {whole, part, sizeof offset, whole}};
    operands want = o;
    want.data[0] = copy_of(input, whole);
    want.data[3] = in_place ? want.data[0] : calloc(whole + 1, 1);
    const weft_fault fault = run_twice(&h, &o), expected = run_on(interp, &h, &want);
    check_fault(&fault, &expected);
    assert_memory_equal(o.data[3], want.data[3], whole);
    if (!in_place) free(o.data[3]), free(want.data[3]);
    free(input), free(more), free(want.data[0]);
}

static void test_update(void **state) {
    (void)state;
    static const weft_dtype dtypes[] = {WEFT_F32, WEFT_BF16, WEFT_I64, WEFT_BOOL};
    static const int64_t sizes[][4] = {{3, 7, 2, 5}, {2, 300, 33, 65}, {12, 64, 1, 64},
                                       {1, 9, 9, 1}, {1, 9, 3, 7},     {2, 4, 1, 300}};
    if (!opencl) return skip();
    for (int items = 0; items <= 64; items += 64)
        for (int d = 0; d < COUNT(dtypes); d++)
            for (int s = 0; s < COUNT(sizes); s++) {
                const int32_t last = (int32_t)(sizes[s][1] - sizes[s][2]),
                              offsets[] = {0, last, last + 1, -1};
                aim(items);
                for (int k = 0; k < 8; k++) check_update(dtypes[d], k & 1, sizes[s], offsets[k / 2]);
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scatter),
        cmocka_unit_test(test_scatter_order),
        cmocka_unit_test(test_update),
    };
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}
