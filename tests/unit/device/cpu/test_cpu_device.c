/* The CPU device through its public operations: programs of several commands with equal bits on 1, 2 and 4
 * threads, the order of dependent commands, repeated runs, faults that stop sinks, copies, timings, memory,
 * the floating-point state, and a failure of each allocation. */
#define _DEFAULT_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "cpu_kernels.h"
#include "device/cpu/run.h"
#include "device/module.h"

#define ROWS    300
#define COLUMNS 2000
#define NUMEL   ((int64_t)ROWS * COLUMNS)

/* A program: y = tanh(x) * 2 (map), r = row sums of y, c = column sums of y, z = y + r (map), x = x + z
 * (sink), a copy of z and a zeroed block. Many cheap commands are between. Slot 0 is the arena, slot 1 holds
 * x. */
typedef struct program {
    built map, rows, columns, join, update, small;
    weft_command list[40];
    weft_operand operands[40][4];
    weft_commands commands;
} program;

enum {
    Y = 0,
    R = NUMEL * 4,
    C = R + 64 * 64,
    Z = C + 64 * 256,
    COPY = Z + NUMEL * 4,
    BLANK = COPY + NUMEL * 4,
    TINY = BLANK + (1 << 20),
    ARENA = TINY + 4096
};

static int identity(built *t) {
    weft_view v;
    weft__view_identity(&v, t->kernel.n_parallel + t->kernel.n_reduce, t->kernel.extent);
    return add_view(t, &v);
}

static void declare(built *t, weft_dtype dtype, int64_t n, bool read, bool written) {
    t->args[t->kernel.n_args++] = (weft_kernel_arg){(uint8_t)dtype, read, written, n};
}

static void make_kernels(program *p) {
    const int64_t both[2] = {ROWS, COLUMNS}, turned[2] = {COLUMNS, ROWS}, few[1] = {16};
    const int64_t down[2] = {1, 0}, across[2] = {1, COLUMNS};
    built *t = &p->map;
    built_init(t, "tanh", 2, 0, both);
    declare(t, WEFT_F32, NUMEL, true, false), declare(t, WEFT_F32, NUMEL, false, true);
    int v = identity(t);
    store(t, 0, 1, v,
          calc(t, WEFT_OP_MUL, 0, WEFT_F32, calc(t, WEFT_OP_TANH, 0, WEFT_F32, load(t, 0, 0, v), -1, -1),
               constant(t, 0, WEFT_F32, 2, 0), -1));
    t = &p->rows;
    built_init(t, "rows", 1, 1, both);
    declare(t, WEFT_F32, NUMEL, true, false), declare(t, WEFT_F32, ROWS, false, true);
    v = identity(t);
    store(t, 0, 1, add_strides(t, 0, down), reduce(t, WEFT_OP_SUM, WEFT_F32, load(t, 1, 0, v)));
    t = &p->columns;
    built_init(t, "columns", 1, 1, turned);
    declare(t, WEFT_F32, NUMEL, true, false), declare(t, WEFT_F32, COLUMNS, false, true);
    store(t, 0, 1, add_strides(t, 0, down),
          reduce(t, WEFT_OP_SUM, WEFT_F32, load(t, 1, 0, add_strides(t, 0, across))));
    t = &p->join;
    built_init(t, "join", 2, 0, both);
    declare(t, WEFT_F32, NUMEL, true, false), declare(t, WEFT_F32, ROWS, true, false),
        declare(t, WEFT_F32, NUMEL, false, true);
    v = identity(t);
    store(t, 0, 2, v,
          calc(t, WEFT_OP_ADD, 0, WEFT_F32, load(t, 0, 0, v), load(t, 0, 1, add_strides(t, 0, down)), -1));
    t = &p->update;
    built_init(t, "update", 2, 0, both);
    declare(t, WEFT_F32, NUMEL, true, true), declare(t, WEFT_F32, NUMEL, true, false);
    v = identity(t);
    store(t, 0, 0, v, calc(t, WEFT_OP_ADD, 0, WEFT_F32, load(t, 0, 0, v), load(t, 0, 1, v), -1));
    t = &p->small;
    built_init(t, "small", 1, 0, few);
    declare(t, WEFT_F32, 16, true, true), declare(t, WEFT_F32, ROWS, true, false);
    v = identity(t);
    store(t, 0, 0, v, calc(t, WEFT_OP_ADD, 0, WEFT_F32, load(t, 0, 0, v), load(t, 0, 1, v), -1));
}

static weft_command *add(program *p, const built *t, weft_operand a, weft_operand b, weft_operand c, int n) {
    int i = p->commands.count++;
    weft_operand *o = p->operands[i];
    o[0] = a, o[1] = b, o[2] = c;
    p->list[i] = (weft_command){.kind = WEFT_COMMAND_KERNEL,
                                .after = true,
                                .kernel = t ? &t->kernel : NULL,
                                .n_operands = n,
                                .operands = o};
    return &p->list[i];
}

static void make_program(program *p) {
    memset(p, 0, sizeof *p);
    make_kernels(p);
    p->commands = (weft_commands){.n_slots = 2, .list = p->list};
    const weft_operand x = {1, 0}, y = {0, Y}, r = {0, R}, c = {0, C}, z = {0, Z}, tiny = {0, TINY},
                       none = {0, 0};
    const weft_operand copy = {0, COPY}, blank = {0, BLANK};
    weft_command *zero = add(p, NULL, tiny, none, none, 1);
    zero->kind = WEFT_COMMAND_ZERO, zero->bytes = 4096, zero->after = false;
    zero = add(p, NULL, blank, none, none, 1);
    zero->kind = WEFT_COMMAND_ZERO, zero->bytes = 1 << 20, zero->after = false;
    add(p, &p->map, x, y, none, 2)->after = false;
    add(p, &p->rows, y, r, none, 2);
    for (int i = 0; i < 5; i++) add(p, &p->small, tiny, r, none, 2);
    add(p, &p->columns, y, c, none, 2)->after = false;
    add(p, &p->join, y, r, z, 3);
    add(p, &p->small, tiny, r, none, 2)->after = false;
    weft_command *move = add(p, NULL, z, copy, none, 2);
    move->kind = WEFT_COMMAND_COPY, move->bytes = NUMEL * 4;
    add(p, &p->update, x, z, none, 2)->sink = true;
}

static weft_device *open_device(weft_context *ctx, int threads) {
    weft_device *d = NULL;
    const weft_open_options options = {.threads = threads};
    assert_int_equal(weft__device_cpu.open(&weft__device_cpu, ctx, "", &options, &d), WEFT_OK);
    return d;
}

/* Runs the program `runs` times with `times` repetitions each. Copies both buffers out. */
static void run_program(int threads, int runs, int times, float *arena, float *x) {
    program *p = malloc(sizeof *p);
    make_program(p);
    weft_device *d = open_device(NULL, threads);
    weft_executable *e = NULL;
    weft_buffer *buffers[2];
    const weft_device_ops *o = d->ops;
    assert_int_equal(o->buffer_new(d, ARENA, &buffers[0]), WEFT_OK);
    assert_int_equal(o->buffer_new(d, NUMEL * 4, &buffers[1]), WEFT_OK);
    assert_int_equal((uintptr_t)buffers[0]->host % 64, 0);
    assert_int_equal((uintptr_t)buffers[1]->host % 64, 0);
    memset(buffers[0]->host, 0xff, ARENA);
    for (int64_t i = 0; i < NUMEL; i++) x[i] = (float)(int32_t)weft__mix64((uint64_t)i) * 0x1p-31f;
    assert_int_equal(o->upload(d, buffers[1], 0, x, NUMEL * 4), WEFT_OK);
    assert_int_equal(o->build(d, &p->commands, &e), WEFT_OK);
    for (int i = 0; i < runs; i++) assert_int_equal(o->run(d, e, buffers, times), WEFT_OK);
    assert_int_equal(o->synchronize(d), WEFT_OK);
    assert_int_equal(o->download(d, buffers[0], 0, arena, ARENA), WEFT_OK);
    assert_int_equal(o->download(d, buffers[1], 0, x, NUMEL * 4), WEFT_OK);
    weft_fault fault;
    assert_int_equal(o->take_fault(d, &fault), WEFT_OK);
    assert_int_equal(fault.set, 0);
    assert_int_equal(d->bytes_in_use, ARENA + NUMEL * 4);
    o->executable_free(d, e);
    o->buffer_free(d, buffers[0]);
    o->buffer_free(d, buffers[1]);
    assert_int_equal(d->bytes_in_use, 0);
    o->close(d);
    free(p);
}

static void test_threads(void **state) {
    (void)state;
    float *arena[2] = {malloc(ARENA), malloc(ARENA)}, *x[2] = {malloc(NUMEL * 4), malloc(NUMEL * 4)};
    run_program(1, 4, 1, arena[0], x[0]);
    for (int threads = 1; threads <= 4; threads++)
        for (int times = 1; times <= 4; times *= 2) {
            run_program(threads, 4 / times, times, arena[1], x[1]);
            assert_memory_equal(arena[0], arena[1], ARENA);
            assert_memory_equal(x[0], x[1], NUMEL * 4);
        }
    const float *tiny = arena[0] + TINY / 4, *r = arena[0] + R / 4, *z = arena[0] + Z / 4,
                *copy = arena[0] + COPY / 4;
    for (int i = 0; i < 16; i++) {
        float want = 0;
        for (int k = 0; k < 6; k++) want += r[i];
        assert_true(tiny[i] == want);
    }
    assert_memory_equal(z, copy, NUMEL * 4);
    assert_true(arena[0][BLANK / 4] == 0 && arena[0][TINY / 4 - 1] == 0);
    for (int i = 0; i < 2; i++) free(arena[i]), free(x[i]);
}

/* Two gathers with bad indices, then a sink. The first fault is reported, and the sink does nothing. */
static void test_faults_stop_sinks(void **state) {
    (void)state;
    for (int threads = 1; threads <= 4; threads++)
        for (int bad = 0; bad < 2; bad++) {
            program *p = malloc(sizeof *p);
            make_program(p);
            built gather;
            const int64_t n[1] = {100000}, still[1] = {0};
            built_init(&gather, "gather", 1, 0, n);
            declare(&gather, WEFT_I32, 100000, true, false), declare(&gather, WEFT_F32, 10, true, false),
                declare(&gather, WEFT_F32, 100000, false, true);
            int v = identity(&gather), at = load(&gather, 0, 0, v);
            store(&gather, 0, 2, v,
                  source(&gather, WEFT_INSTR_GATHER, 0, WEFT_F32, 1, add_strides(&gather, 0, still), at, 1,
                         10));
            const weft_operand ids = {1, 0}, table = {0, TINY}, out = {0, COPY}, x = {0, Y}, z = {0, Z},
                               none = {0, 0};
            p->commands.count = 0;
            add(p, &gather, ids, table, out, 3);
            add(p, &gather, ids, table, out, 3);
            add(p, &p->update, x, z, none, 2)->sink = true;
            weft_device *d = open_device(NULL, threads);
            weft_executable *e = NULL;
            weft_buffer *buffers[2];
            assert_int_equal(d->ops->buffer_new(d, ARENA, &buffers[0]), WEFT_OK);
            assert_int_equal(d->ops->buffer_new(d, 400000, &buffers[1]), WEFT_OK);
            float *arena = buffers[0]->host;
            for (int i = 0; i < ARENA / 4; i++) arena[i] = 1;
            int32_t *index = buffers[1]->host;
            for (int i = 0; i < 100000; i++) index[i] = i % 10;
            if (bad) index[70000] = 12, index[90000] = -5, index[99999] = 77;
            assert_int_equal(d->ops->build(d, &p->commands, &e), WEFT_OK);
            assert_int_equal(d->ops->run(d, e, buffers, 2), WEFT_OK);
            weft_fault fault;
            assert_int_equal(d->ops->take_fault(d, &fault), WEFT_OK);
            assert_int_equal(fault.set != 0, bad);
            if (bad) {
                assert_int_equal(fault.value, 12);
                assert_int_equal(fault.element, 70000);
                assert_int_equal(fault.bound, 10);
            }
            for (int64_t i = 0; i < NUMEL; i++) assert_true(arena[i] == (bad ? 1.0f : 3.0f));
            index[70000] = index[90000] = index[99999] = 0; /* taken: the next sink works */
            assert_int_equal(d->ops->run(d, e, buffers, 1), WEFT_OK);
            assert_true(arena[5] == (bad ? 2.0f : 4.0f));
            d->ops->executable_free(d, e);
            d->ops->buffer_free(d, buffers[0]), d->ops->buffer_free(d, buffers[1]);
            d->ops->close(d);
            free(p);
        }
}

static void test_timings(void **state) {
    (void)state;
    for (int threads = 1; threads <= 2; threads++) {
        program *p = malloc(sizeof *p);
        make_program(p);
        weft_device *d = open_device(NULL, threads);
        weft_executable *e = NULL;
        weft_buffer *buffers[2];
        assert_int_equal(d->ops->buffer_new(d, ARENA, &buffers[0]), WEFT_OK);
        assert_int_equal(d->ops->buffer_new(d, NUMEL * 4, &buffers[1]), WEFT_OK);
        memset(buffers[1]->host, 0, NUMEL * 4);
        assert_int_equal(d->ops->build(d, &p->commands, &e), WEFT_OK);
        assert_null(weft__device_timings(d, e));
        weft__device_set_timing(d, true);
        assert_int_equal(d->ops->run(d, e, buffers, 1), WEFT_OK);
        const weft_timing *t = weft__device_timings(d, e);
        assert_non_null(t);
        for (int i = 0; i < p->commands.count; i++) {
            assert_true(t[i].end_ns >= t[i].start_ns && t[i].start_ns > 0);
            if (i) assert_true(t[i].start_ns >= t[i - 1].end_ns);
        }
        d->ops->executable_free(d, e);
        d->ops->buffer_free(d, buffers[0]), d->ops->buffer_free(d, buffers[1]);
        d->ops->close(d);
        free(p);
    }
}

/* Another library has enabled flushing of subnormals. It must not change Weft's results, and must still be
 * enabled afterwards. */
static void test_float_state(void **state) {
    (void)state;
#if defined(__SSE2__)
    for (int threads = 1; threads <= 2; threads++) {
        program *p = malloc(sizeof *p);
        make_program(p);
        const weft_operand x = {1, 0}, z = {0, Z}, none = {0, 0};
        p->commands.count = 0;
        add(p, &p->update, x, z, none, 2);
        weft_device *d = open_device(NULL, threads);
        weft_executable *e = NULL;
        weft_buffer *buffers[2];
        assert_int_equal(d->ops->buffer_new(d, ARENA, &buffers[0]), WEFT_OK);
        assert_int_equal(d->ops->buffer_new(d, NUMEL * 4, &buffers[1]), WEFT_OK);
        for (int64_t i = 0; i < NUMEL; i++)
            ((float *)buffers[1]->host)[i] = ((float *)buffers[0]->host)[Z / 4 + i] = 1e-40f;
        assert_int_equal(d->ops->build(d, &p->commands, &e), WEFT_OK);
        unsigned before = _mm_getcsr();
        _mm_setcsr(before | 0x8040u);
        weft_status status = d->ops->run(d, e, buffers, 1);
        unsigned after = _mm_getcsr();
        _mm_setcsr(before);
        assert_int_equal(status, WEFT_OK);
        assert_int_equal(after & 0x8040u, 0x8040u);
        for (int64_t i = 0; i < NUMEL; i++) assert_true(((float *)buffers[1]->host)[i] == 2 * 1e-40f);
        d->ops->executable_free(d, e);
        d->ops->buffer_free(d, buffers[0]), d->ops->buffer_free(d, buffers[1]);
        d->ops->close(d);
        free(p);
    }
#endif
}

static void test_describe(void **state) {
    (void)state;
    weft_device_description info;
    weft__device_cpu.describe(&weft__device_cpu, 0, &info);
    print_message("%s: %s\n", info.name, info.detail);
    assert_true(info.present && info.threads >= 1 && info.memory > 0);
    assert_non_null(strstr(info.detail, "thread"));
    weft_device *d = open_device(NULL, 1);
    assert_int_equal(d->ops->check_dtype(d, WEFT_BF16), WEFT_OK);
    assert_int_equal(d->ops->check_dtype(d, (weft_dtype)99), WEFT_ERR_DTYPE);
    assert_non_null(strstr(weft_last_error(NULL), "does not compute in"));
    d->ops->close(d);
}

/* ---- each allocation fails once ---- */

static long live, calls, fail_at;

static void *failing(void *user, void *old, size_t size) {
    (void)user;
    if (size == 0) {
        live -= old != NULL;
        free(old);
        return NULL;
    }
    if (calls++ == fail_at) return NULL;
    void *p = realloc(old, size);
    if (p && !old) live++;
    return p;
}

static void test_out_of_memory(void **state) {
    (void)state;
    program *p = malloc(sizeof *p);
    make_program(p);
    weft_context *ctx = calloc(1, sizeof *ctx);
    ctx->caller.alloc = failing;
    bool done = false;
    for (fail_at = 0; !done; fail_at++) {
        calls = live = 0;
        weft_device *d = NULL;
        weft_executable *e = NULL;
        weft_buffer *buffers[2] = {NULL, NULL};
        const weft_open_options options = {.threads = 2};
        weft_status status = weft__device_cpu.open(&weft__device_cpu, ctx, "", &options, &d);
        if (status == WEFT_OK) status = d->ops->buffer_new(d, ARENA, &buffers[0]);
        if (status == WEFT_OK) status = d->ops->buffer_new(d, NUMEL * 4, &buffers[1]);
        if (status == WEFT_OK) status = d->ops->build(d, &p->commands, &e);
        if (status == WEFT_OK) memset(buffers[1]->host, 0, NUMEL * 4);
        const long before = calls;
        if (status == WEFT_OK) status = d->ops->run(d, e, buffers, 1);
        assert_int_equal(calls, before); /* running allocates nothing */
        assert_true(status == WEFT_OK || status == WEFT_ERR_OOM);
        done = status == WEFT_OK;
        if (e) d->ops->executable_free(d, e);
        for (int i = 0; i < 2; i++)
            if (buffers[i]) d->ops->buffer_free(d, buffers[i]);
        if (d) d->ops->close(d);
        assert_int_equal(live, 0);
    }
    print_message("%ld allocations failed in turn\n", fail_at - 1);
    assert_true(fail_at > 20);
    free(ctx);
    free(p);
}

/* A cheap copy, a second one that waits for it and is merged with it, then a wide copy that may read the
 * result of the first. The wide copy must wait for both. */
static void test_wait_inside_a_unit(void **state) {
    (void)state;
    weft_operand small[2] = {{0, 0}, {0, 64}}, next[2] = {{0, 64}, {0, 128}}, wide[2] = {{0, 0}, {1, 0}};
    weft_command list[3] = {
        {.kind = WEFT_COMMAND_COPY, .bytes = 64, .n_operands = 2, .operands = small},
        {.kind = WEFT_COMMAND_COPY, .bytes = 64, .n_operands = 2, .operands = next, .after = true},
        {.kind = WEFT_COMMAND_COPY, .bytes = 4 << 20, .n_operands = 2, .operands = wide}};
    const weft_commands commands = {.count = 3, .n_slots = 2, .list = list};
    weft_device *d = open_device(NULL, 2);
    weft_executable *e = NULL;
    assert_int_equal(d->ops->build(d, &commands, &e), WEFT_OK);
    if (e->threads > 1) {
        assert_int_equal(e->n_units, 2);
        assert_int_equal(e->units[0].last, 1);
        assert_true(e->units[1].wait);
    }
    d->ops->executable_free(d, e);
    d->ops->close(d);
}

/* Cheap copies that do not depend on each other run in parallel. A command that depends on them runs after
 * all of them. */
static void test_shared_unit(void **state) {
    (void)state;
    enum { COPIES = 40, PART = 16384 };
    weft_operand operands[COPIES + 1][2];
    weft_command list[COPIES + 1];
    for (int i = 0; i <= COPIES; i++) {
        const int from = i < COPIES ? 0 : 1, at = i < COPIES ? i : COPIES - 1;
        operands[i][0] = (weft_operand){from, (int64_t)at * PART};
        operands[i][1] = (weft_operand){1, (int64_t)i * PART};
        list[i] = (weft_command){.kind = WEFT_COMMAND_COPY,
                                 .bytes = PART,
                                 .n_operands = 2,
                                 .operands = operands[i],
                                 .after = i == COPIES};
    }
    const weft_commands commands = {.count = COPIES + 1, .n_slots = 2, .list = list};
    weft_device *d = open_device(NULL, 3);
    weft_executable *e = NULL;
    weft_buffer *buffers[2];
    for (int b = 0; b < 2; b++)
        assert_int_equal(d->ops->buffer_new(d, (COPIES + 1) * PART, &buffers[b]), WEFT_OK);
    uint64_t *from = buffers[0]->host, *to = buffers[1]->host;
    for (uint64_t i = 0; i < COPIES * PART / 8; i++) from[i] = weft__mix64(i);
    assert_int_equal(d->ops->build(d, &commands, &e), WEFT_OK);
    if (e->threads > 1) {
        assert_int_equal(e->n_units, 2);
        assert_int_equal(e->units[0].last, COPIES - 1);
        assert_true(e->units[0].chunks > 1);
        assert_true(e->units[1].wait);
    }
    for (int run = 0; run < 20; run++) {
        memset(to, 0, (COPIES + 1) * PART);
        assert_int_equal(d->ops->run(d, e, buffers, 1), WEFT_OK);
        assert_memory_equal(from, to, COPIES * PART);
        assert_memory_equal(to + (COPIES - 1) * PART / 8, to + COPIES * PART / 8, PART);
    }
    d->ops->executable_free(d, e);
    for (int b = 0; b < 2; b++) d->ops->buffer_free(d, buffers[b]);
    d->ops->close(d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wait_inside_a_unit), cmocka_unit_test(test_threads),
        cmocka_unit_test(test_faults_stop_sinks),  cmocka_unit_test(test_timings),
        cmocka_unit_test(test_float_state),        cmocka_unit_test(test_describe),
        cmocka_unit_test(test_out_of_memory),      cmocka_unit_test(test_shared_unit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
