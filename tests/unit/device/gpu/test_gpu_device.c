/* The common behaviour of GPU devices: memory, transfers, programs of copies, faults, guards, files on disk,
 * and failures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "gpu.h"
#include "unit/io_scratch.h"

static bool setup(test_programs *f) { return test_setup(f, test_gpu()); }

/* Writes bytes that no transfer reaches: at `at` in a buffer's memory, or (b NULL) in the fault record. */
static void poke(test_programs *f, weft_buffer *b, size_t at, const void *from, size_t bytes) {
    weft_gpu_device *d = weft__gpu_of(f->device);
    weft_gpu_buffer *to = b ? (weft_gpu_buffer *)b : d->faults;
    assert_int_equal(weft__gpu_enter(d), 0);
    assert_int_equal(d->backend->memory->write(d, to, at, from, bytes, NULL), 0);
    weft__gpu_leave(d);
}

static weft_gpu_paths *paths(test_programs *f) { return &weft__gpu_of(f->device)->paths; }

static weft_gpu_compiler *compiler(test_programs *f) { return &weft__gpu_of(f->device)->compiler; }

/* ---- memory and transfers ---- */

static void test_transfers(void **state) {
    (void)state;
    test_programs f;
    enum { BYTES = 17 << 20 };
    static unsigned char out[BYTES], in[BYTES];
    if (!setup(&f)) return skip();
    const weft_device_ops *ops = f.device->ops;
    weft_buffer *b = test_buffer(&f, BYTES);
    for (size_t i = 0; i < BYTES; i++) out[i] = (unsigned char)(i * 7 + i / 256);
    assert_int_equal(ops->upload(f.device, b, 0, out, BYTES), WEFT_OK); /* waits until it is done */
    for (size_t at = 0; at + 1000 <= BYTES; at += 1 << 12) { /* staged, many times round the ring buffer */
        unsigned char piece[1000];
        memset(piece, (int)(at >> 12), sizeof piece);
        memset(out + at, (int)(at >> 12), sizeof piece);
        assert_int_equal(ops->upload(f.device, b, at, piece, sizeof piece), WEFT_OK);
    }
    assert_int_equal(ops->zero(f.device, b, 13, 3), WEFT_OK);
    memset(out + 13, 0, 3);
    assert_int_equal(ops->zero(f.device, b, 1 << 20, 1 << 20), WEFT_OK);
    memset(out + (1 << 20), 0, 1 << 20);
    for (int big = 0; big < 8; big++) { /* more than the ring buffer holds: waits for the oldest transfer */
        memset(in, big + 1, BYTES / 2);
        assert_int_equal(ops->upload(f.device, b, BYTES / 2, in, BYTES / 2), WEFT_OK);
    }
    memset(out + BYTES / 2, 8, BYTES / 2);
    assert_int_equal(ops->download(f.device, b, 0, in, BYTES), WEFT_OK);
    assert_memory_equal(in, out, BYTES);
    assert_int_equal(ops->upload(f.device, b, BYTES - 1, out, 2), WEFT_ERR_INTERNAL);
    assert_int_equal(ops->download(f.device, b, BYTES + 1, in, 0), WEFT_ERR_INTERNAL);
    assert_true(f.device->bytes_in_use == BYTES && f.device->bytes_peak == BYTES);
    ops->buffer_free(f.device, b);
    test_teardown(&f);
}

static void test_moves(void **state) {
    (void)state;
    test_programs f;
    static const struct {
        int64_t from, to, bytes;
    } cases[] = {{0, 0, 8}, {0, 64, 1 << 20}, {3, 5, 100003}, {16, 0, 7}, {0, 0, 0}};
    static unsigned char a[1 << 21], b[1 << 21], got[1 << 21];
    if (!setup(&f)) return skip();
    const weft_device_ops *ops = f.device->ops;
    weft_buffer *slots[2] = {test_buffer(&f, sizeof a), test_buffer(&f, sizeof b)};
    for (size_t i = 0; i < sizeof a; i++) a[i] = (unsigned char)(i % 251 + 1);
    assert_int_equal(ops->upload(f.device, slots[0], 0, a, sizeof a), WEFT_OK);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        weft_executable *e;
        memset(b, 9, sizeof b);
        f.commands.count = 0;
        assert_int_equal(ops->upload(f.device, slots[1], 0, b, sizeof b), WEFT_OK);
        test_command(&f, WEFT_COMMAND_COPY, false, cases[c].bytes);
        f.operands[0][0] = (weft_operand){0, cases[c].from};
        f.operands[0][1] = (weft_operand){1, cases[c].to};
        test_command(&f, WEFT_COMMAND_ZERO, false, cases[c].bytes / 2);
        f.operands[1][0] = (weft_operand){1, cases[c].to};
        assert_int_equal(ops->build(f.device, &f.commands, &e), WEFT_OK);
        assert_int_equal(ops->run(f.device, e, slots, 2), WEFT_OK);
        memcpy(b + cases[c].to, a + cases[c].from, (size_t)cases[c].bytes);
        memset(b + cases[c].to, 0, (size_t)cases[c].bytes / 2);
        assert_int_equal(ops->download(f.device, slots[1], 0, got, sizeof got), WEFT_OK);
        assert_memory_equal(got, b, sizeof b);
        ops->executable_free(f.device, e);
    }
    for (int i = 0; i < 2; i++) ops->buffer_free(f.device, slots[i]);
    test_teardown(&f);
}

/* After a fault, sinks do nothing until the fault is taken. Other commands still run. */
static void test_sinks_after_a_fault(void **state) {
    (void)state;
    test_programs f;
    int64_t got[2], values[2] = {1, 2};
    weft_fault fault;
    weft_executable *e;
    if (!setup(&f)) return skip();
    const weft_device_ops *ops = f.device->ops;
    weft_buffer *slots[2] = {test_buffer(&f, 16), test_buffer(&f, 16)};
    test_command(&f, WEFT_COMMAND_COPY, true, 8); /* reads element 0; a sink */
    test_command(&f, WEFT_COMMAND_COPY, false, 8);
    for (int i = 0; i < 2; i++)
        f.operands[i][0] = (weft_operand){0, 8 * i}, f.operands[i][1] = (weft_operand){1, 8 * i};
    assert_int_equal(ops->build(f.device, &f.commands, &e), WEFT_OK);
    assert_int_equal(ops->zero(f.device, slots[1], 0, 16), WEFT_OK);
    assert_int_equal(ops->upload(f.device, slots[0], 0, values, 16), WEFT_OK);
    const w_faults record = {.set = 1,
                             .command = weft__gpu_path_number(&f.ctx, paths(&f), "net.layer"),
                             .what = 1,
                             .value = 7,
                             .bound = 5,
                             .element = 3};
    poke(&f, NULL, 0, &record, sizeof record);
    assert_int_equal(ops->run(f.device, e, slots, 1), WEFT_OK);
    assert_int_equal(ops->download(f.device, slots[1], 0, got, sizeof got), WEFT_OK);
    assert_true(got[0] == 0 && got[1] == 2);
    assert_int_equal(ops->take_fault(f.device, &fault), WEFT_OK);
    assert_true(fault.set && fault.value == 7 && fault.bound == 5 && fault.element == 3);
    assert_int_equal(fault.kind, WEFT_FAULT_GATHER);
    assert_string_equal(fault.path, "net.layer");
    assert_int_equal(ops->run(f.device, e, slots, 1), WEFT_OK);
    assert_int_equal(ops->take_fault(f.device, &fault), WEFT_OK);
    assert_false(fault.set);
    assert_int_equal(ops->download(f.device, slots[1], 0, got, sizeof got), WEFT_OK);
    assert_int_equal(got[0], 1);
    ops->executable_free(f.device, e);
    for (int i = 0; i < 2; i++) ops->buffer_free(f.device, slots[i]);
    test_teardown(&f);
}

static void test_timings(void **state) {
    (void)state;
    test_programs f;
    weft_executable *e;
    if (!setup(&f)) return skip();
    const weft_device_ops *ops = f.device->ops;
    weft_buffer *slots[2] = {test_buffer(&f, 1 << 22), test_buffer(&f, 1 << 22)};
    test_command(&f, WEFT_COMMAND_ZERO, false, 1 << 22);
    test_command(&f, WEFT_COMMAND_ZERO, false, 0); /* needs no launch */
    test_command(&f, WEFT_COMMAND_COPY, false, 1 << 22);
    f.operands[2][1].slot = 1;
    assert_int_equal(ops->build(f.device, &f.commands, &e), WEFT_OK);
    assert_null(weft__device_timings(f.device, e));
    weft__device_set_timing(f.device, true);
    assert_int_equal(ops->run(f.device, e, slots, 3), WEFT_OK);
    assert_int_equal(ops->synchronize(f.device), WEFT_OK);
    const weft_timing *t = weft__device_timings(f.device, e);
    assert_non_null(t);
    assert_true(t[0].end_ns > t[0].start_ns && t[2].end_ns > t[2].start_ns);
    assert_true(t[2].start_ns >= t[0].end_ns);
    assert_true(t[1].start_ns >= t[0].end_ns && t[1].end_ns <= t[2].start_ns);
    weft__device_set_timing(f.device, false);
    assert_null(weft__device_timings(f.device, e));
    ops->executable_free(f.device, e);
    for (int i = 0; i < 2; i++) ops->buffer_free(f.device, slots[i]);
    test_teardown(&f);
}

/* ---- failures ---- */

static void test_memory_is_gone(void **state) {
    (void)state;
    test_programs f;
    weft_buffer *b = NULL;
    if (!setup(&f)) return skip();
    const weft_device_ops *ops = f.device->ops;
    weft_device_description info;
    const weft_device_module *kind = weft__device_kind_of(ops->name);
    kind->describe(kind, 0, &info);
    assert_int_equal(ops->buffer_new(f.device, (size_t)info.buffer_limit + 1, &b), WEFT_ERR_OOM);
    assert_non_null(strstr(weft_last_error(&f.ctx), "this device allows at most"));
    weft__gpu_hook.fail_allocation = 2;
    weft_buffer *first = test_buffer(&f, 100);
    assert_int_equal(ops->buffer_new(f.device, 1000, &b), WEFT_ERR_OOM);
    assert_non_null(strstr(weft_last_error(&f.ctx), "a buffer of 1000 bytes: "));
    assert_non_null(strstr(weft_last_error(&f.ctx), "; 100 bytes are in use of "));
    b = test_buffer(&f, 1000); /* the device still works */
    ops->buffer_free(f.device, b);
    ops->buffer_free(f.device, first);
    test_teardown(&f);
}

static void test_device_is_lost(void **state) {
    (void)state;
    test_programs f;
    weft_executable *e;
    char bytes[64] = {0};
    if (!setup(&f)) return skip();
    const weft_device_ops *ops = f.device->ops;
    weft_buffer *slots[2] = {test_buffer(&f, 64), test_buffer(&f, 64)};
    test_command(&f, WEFT_COMMAND_COPY, false, 64);
    f.operands[0][1].slot = 1;
    assert_int_equal(ops->build(f.device, &f.commands, &e), WEFT_OK);
    weft__gpu_hook.lose_device = 3;
    assert_int_equal(ops->run(f.device, e, slots, 5), WEFT_ERR_DEVICE);
    assert_non_null(strstr(weft_last_error(&f.ctx), "the device is lost"));
    assert_int_equal(ops->upload(f.device, slots[0], 0, bytes, 64), WEFT_ERR_DEVICE);
    assert_int_equal(ops->download(f.device, slots[0], 0, bytes, 64), WEFT_ERR_DEVICE);
    assert_int_equal(ops->synchronize(f.device), WEFT_ERR_DEVICE);
    weft__gpu_hook.lose_device = 0;
    ops->executable_free(f.device, e);
    for (int i = 0; i < 2; i++) ops->buffer_free(f.device, slots[i]);
    test_teardown(&f);
}

static void test_compiler_refuses(void **state) {
    (void)state;
    test_programs f;
    weft_executable *e = NULL;
    const weft_gpu_source *text;
    const weft_launch bad = {.name = "wrong",
                             .source =
                                 "W_KERNEL W_ITEMS(1, 1, 1) void wrong(W_GLOBAL int *a) { a[0] = nothing; }"};
    if (!setup(&f)) return skip();
    assert_int_equal(weft__gpu_compile(compiler(&f), &bad, 1, &text), WEFT_ERR_DEVICE);
    assert_non_null(strstr(weft_last_error(&f.ctx), "its compiler refuses kernel wrong: "));
    assert_non_null(strstr(weft_last_error(&f.ctx), "nothing"));
    test_command(&f, WEFT_COMMAND_ZERO, false, 64);
    weft__gpu_hook.fail_compile = 1;
    assert_int_equal(f.device->ops->build(f.device, &f.commands, &e), WEFT_ERR_DEVICE);
    assert_null(e);
    assert_int_equal(f.device->ops->build(f.device, &f.commands, &e), WEFT_OK); /* the device still works */
    f.device->ops->executable_free(f.device, e);
    test_teardown(&f);
}

/* ---- compilation happens once ---- */

static void damage_files(void) {
    DIR *dir = opendir(scratch);
    for (const struct dirent *e; dir && (e = readdir(dir));) {
        FILE *file = e->d_name[0] == '.' ? NULL : fopen(in_scratch(e->d_name), "r+");
        if (!file) continue;
        fseek(file, 100, SEEK_SET);
        fputs("damage", file);
        fclose(file);
    }
    if (dir) closedir(dir);
}

/* The second start compiles nothing. A damaged file counts as missing. WebGPU has no files of compiled
 * kernels. */
static void test_second_start(void **state) {
    (void)state;
    test_programs f;
    static const int expected[4][2] = {{1, 0}, {0, 1}, {1, 0}, {0, 1}}; /* {compiled, loaded from disk} */
    setenv("WEFT_KERNEL_CACHE", scratch, 1);
    weft__opencl_hook.stores = true;
    for (int start = 0; start < 4; start++) {
        weft_executable *e;
        int64_t got = 1;
        if (test_on_webgpu() || !setup(&f)) return skip();
        const int compiles = weft__gpu_hook.compiles, cached = weft__gpu_hook.from_cache;
        weft_buffer *slots[2] = {test_buffer(&f, 8), NULL};
        assert_int_equal(f.device->ops->upload(f.device, slots[0], 0, &got, 8), WEFT_OK);
        test_command(&f, WEFT_COMMAND_ZERO, false, 8);
        assert_int_equal(f.device->ops->build(f.device, &f.commands, &e), WEFT_OK);
        assert_int_equal(f.device->ops->run(f.device, e, slots, 1), WEFT_OK);
        assert_int_equal(f.device->ops->download(f.device, slots[0], 0, &got, 8), WEFT_OK);
        assert_int_equal(got, 0);
        assert_int_equal(weft__gpu_hook.compiles - compiles, expected[start][0]);
        assert_int_equal(weft__gpu_hook.from_cache - cached, expected[start][1]);
        f.device->ops->executable_free(f.device, e);
        f.device->ops->buffer_free(f.device, slots[0]);
        test_teardown(&f);
        if (start == 1) damage_files();
    }
    weft__opencl_hook.stores = false;
    setenv("WEFT_KERNEL_CACHE", "off", 1);
}

static void test_guards(void **state) {
    (void)state;
    test_programs f;
    if (!setup(&f)) return skip();
    test_teardown(&f);
    weft__gpu_hook.guard = 256;
    if (!setup(&f)) return skip();
    weft_buffer *slots[2] = {test_buffer(&f, 100), test_buffer(&f, 100)};
    weft_executable *e;
    char got[100], values[100];
    memset(values, 3, sizeof values);
    test_command(&f, WEFT_COMMAND_COPY, false, 100);
    f.operands[0][1].slot = 1;
    assert_int_equal(f.device->ops->build(f.device, &f.commands, &e), WEFT_OK);
    assert_int_equal(f.device->ops->upload(f.device, slots[0], 0, values, 100), WEFT_OK);
    assert_int_equal(f.device->ops->run(f.device, e, slots, 1), WEFT_OK);
    assert_int_equal(f.device->ops->download(f.device, slots[1], 0, got, 100), WEFT_OK);
    assert_memory_equal(got, values, 100);
    poke(&f, slots[1], 256 + 100 + 17, values, 1);
    weft__gpu_hook.guards_broken = 0;
    f.device->ops->executable_free(f.device, e);
    f.device->ops->buffer_free(f.device, slots[0]);
    assert_int_equal(weft__gpu_hook.guards_broken, 0);
    f.device->ops->buffer_free(f.device, slots[1]);
    assert_int_equal(weft__gpu_hook.guards_broken, 1);
    weft__gpu_hook.guard = 0;
    test_teardown(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transfers),
        cmocka_unit_test(test_moves),
        cmocka_unit_test(test_sinks_after_a_fault),
        cmocka_unit_test(test_timings),
        cmocka_unit_test(test_memory_is_gone),
        cmocka_unit_test(test_device_is_lost),
        cmocka_unit_test(test_compiler_refuses),
        cmocka_unit_test_setup_teardown(test_second_start, scratch_setup, scratch_teardown),
        cmocka_unit_test(test_guards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
