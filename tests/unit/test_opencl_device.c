/* src/device/opencl: the declarations against the Khronos headers where those are installed; on every machine
 * what happens without a library; and, where there is a device, memory, transfers, programs of copies, faults
 * and everything that can go wrong. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#if __has_include(<CL/cl.h>)
#define CL_TARGET_OPENCL_VERSION          120
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS /* clCreateCommandQueue: the newer one is not in 1.2 */
#include <CL/cl.h>
#endif

#include "opencl.h"
#include "io_scratch.h"

#if __has_include(<CL/cl.h>)
#define OPENCL_FUNCTION(result, name, arguments)                                                             \
    _Static_assert(__builtin_types_compatible_p(__typeof__(weft__cl.name), __typeof__(&name)),               \
                   #name " is declared otherwise");
#define OPENCL_CONSTANT(name, value)                                                                         \
    _Static_assert((int)(value) == (int)(CL_##name), #name " has another value");
#include "device/opencl/opencl.def"
#undef OPENCL_FUNCTION
#undef OPENCL_CONSTANT
#endif

/* ---- a device and programs ---- */

typedef struct fixture {
    weft_context ctx;
    weft_device *device;
    weft_command list[4];
    weft_operand operands[4][2];
    weft_commands commands;
} fixture;

/* False where there is no OpenCL: the test is skipped. */
static bool setup(fixture *f) {
    memset(f, 0, sizeof *f);
    if (test_without_opencl()) return false;
    assert_int_equal(weft__device_open(&f->ctx, "opencl", NULL, &f->device), WEFT_OK);
    f->commands = (weft_commands){.n_slots = 2, .list = f->list};
    return true;
}

static void teardown(fixture *f) {
    assert_int_equal(f->device->bytes_in_use, weft__opencl_of(f->device)->scratch_bytes);
    f->device->ops->close(f->device);
    weft__strings_free(&f->ctx);
}

static weft_command *command(fixture *f, weft_command_kind kind, bool sink, int64_t bytes) {
    const int i = f->commands.count++;
    f->list[i] = (weft_command){.kind = kind,
                                .sink = sink,
                                .after = true,
                                .bytes = bytes,
                                .n_operands = kind == WEFT_COMMAND_COPY ? 2 : 1,
                                .operands = f->operands[i]};
    return &f->list[i];
}

static weft_buffer *buffer_of(fixture *f, size_t bytes) {
    weft_buffer *b = NULL;
    assert_int_equal(f->device->ops->buffer_new(f->device, bytes, &b), WEFT_OK);
    assert_int_equal(b->bytes, bytes);
    return b;
}

/* ---- what is there ---- */

static void test_without_library(void **state) {
    (void)state;
    weft_context ctx = {0};
    weft_device *device;
    weft_device_description info;
    weft__opencl_hook.library = "libabsent.so";
    weft__opencl_forget();
    assert_int_equal(weft__device_open(&ctx, "opencl", NULL, &device), WEFT_ERR_DEVICE);
    assert_non_null(
        strstr(weft_last_error(&ctx), "libabsent.so cannot be opened: install the OpenCL loader"));
    assert_int_equal(weft__device_opencl.count(), 1);
    weft__device_opencl.describe(0, &info);
    assert_string_equal(info.name, "opencl");
    assert_false(info.present);
    assert_non_null(strstr(info.reason, "pocl-opencl-icd"));
    weft__opencl_hook.library = NULL;
    weft__opencl_hook.missing = "clEnqueueFillBuffer";
    weft__opencl_forget();
    const char *why = weft__opencl_open_library();
    assert_non_null(why); /* no library at all, or one without that function */
    assert_int_equal(weft__device_open(&ctx, "opencl", NULL, &device), WEFT_ERR_DEVICE);
    assert_non_null(strstr(weft_last_error(&ctx), why));
    weft__opencl_hook.missing = NULL;
    weft__opencl_forget();
}

typedef struct log_lines {
    int count;
    char text[2000];
} log_lines;

static void keep_line(void *user, weft_log_level level, const char *message) {
    log_lines *l = user;
    if (level > WEFT_LOG_WARNING) return;
    snprintf(l->text, sizeof l->text, "%s", message);
    l->count++;
}

static void test_lists(void **state) {
    (void)state;
    log_lines lines = {0};
    weft_context ctx = {.log = keep_line, .log_user = &lines};
    weft_device *device;
    weft__opencl_hook.library = "libabsent.so";
    weft__opencl_forget();
    assert_int_equal(weft__device_open(&ctx, "cuda,opencl,cpu", NULL, &device), WEFT_OK);
    assert_string_equal(device->name, "cpu");
    device->ops->close(device);
    assert_int_equal(lines.count, 1); /* one warning, with both reasons */
    assert_non_null(strstr(lines.text, "device cuda,opencl,cpu: cpu is used: device cuda: "));
    assert_non_null(strstr(lines.text, "libabsent.so cannot be opened"));
    assert_int_equal(weft__device_open(&ctx, "gpu", NULL, &device), WEFT_ERR_DEVICE);
    assert_non_null(strstr(weft_last_error(&ctx), "device gpu: none opens: device opencl: "));
    assert_int_equal(weft__device_open(&ctx, "gpu,cpu", NULL, &device), WEFT_OK);
    assert_string_equal(device->name, "cpu");
    device->ops->close(device);
    assert_int_equal(lines.count, 2);
    assert_non_null(strstr(lines.text, "device gpu,cpu: cpu is used: device gpu: none opens: "));
    assert_int_equal(weft__device_open(&ctx, "cuda", NULL, &device), WEFT_ERR_DEVICE);
    assert_int_equal(weft__device_open(&ctx, "null,cpu", NULL, &device), WEFT_OK);
    assert_string_equal(device->name, "null");
    device->ops->close(device);
    assert_int_equal(lines.count, 2);
    weft__opencl_hook.library = NULL;
    weft__opencl_forget();
}

static void opens(fixture *f, const char *selector, const char *spec) {
    weft_device *device;
    char text[200];
    snprintf(text, sizeof text, "opencl%s%s", selector ? ":" : "", selector ? selector : "");
    assert_int_equal(weft__device_open(&f->ctx, text, NULL, &device), WEFT_OK);
    assert_string_equal(device->name, spec);
    device->ops->close(device);
}

static void test_names(void **state) {
    (void)state;
    fixture f;
    weft_device *device;
    weft_device_description info;
    if (!setup(&f)) return skip();
    const weft__opencl_found *list;
    const int n = weft__opencl_devices(&list, NULL);
    for (int i = 0; i < n; i++) {
        weft__device_opencl.describe(i, &info);
        assert_string_equal(info.name, list[i].spec);
        assert_true(info.present || info.reason);
        assert_true(!info.present || (info.memory > 0 && info.threads > 0));
    }
    char upper[128];
    for (size_t i = 0; i < sizeof upper; i++)
        upper[i] =
            list[0].name[i] >= 'a' && list[0].name[i] <= 'z' ? (char)(list[0].name[i] - 32) : list[0].name[i];
    opens(&f, NULL, "opencl:0");
    opens(&f, "0", "opencl:0");
    opens(&f, upper, "opencl:0");
    assert_int_equal(weft__device_open(&f.ctx, "opencl:99", NULL, &device), WEFT_ERR_DEVICE);
    assert_non_null(strstr(weft_last_error(&f.ctx), list[0].name)); /* the devices that there are */
    assert_int_equal(weft__device_open(&f.ctx, "opencl:abacus", NULL, &device), WEFT_ERR_DEVICE);
    assert_non_null(strstr(weft_last_error(&f.ctx), "\"opencl:abacus\": there is none"));
    weft__opencl_hook.cards = true; /* "gpu" is a card, without a warning */
    weft__opencl_forget();
    log_lines lines = {0};
    weft_context ctx = {.log = keep_line, .log_user = &lines};
    assert_int_equal(weft__device_open(&ctx, "gpu", NULL, &device), WEFT_OK);
    assert_string_equal(device->name, "opencl:0");
    device->ops->close(device);
    assert_int_equal(lines.count, 0);
    weft__opencl_hook.cards = false;
    weft__opencl_forget();
    teardown(&f);
}

/* Drivers take signals over: PoCL's LLVM takes SIGUSR1, on which a run saves. */
static volatile sig_atomic_t heard;
static void hear(int number) { heard = number; }

static void test_signals_stay(void **state) {
    (void)state;
    fixture f;
    weft_executable *e;
    const struct sigaction ours = {.sa_handler = hear};
    struct sigaction was, after;
    assert_int_equal(sigaction(SIGUSR1, &ours, &was), 0);
    weft__opencl_forget();
    if (!setup(&f)) return skip();
    command(&f, WEFT_COMMAND_ZERO, false, 64);
    weft_buffer *slots[2] = {buffer_of(&f, 64), NULL};
    assert_int_equal(f.device->ops->build(f.device, &f.commands, &e), WEFT_OK);
    assert_int_equal(f.device->ops->run(f.device, e, slots, 1), WEFT_OK);
    assert_int_equal(f.device->ops->synchronize(f.device), WEFT_OK);
    assert_int_equal(sigaction(SIGUSR1, NULL, &after), 0);
    assert_ptr_equal(after.sa_handler, hear);
    raise(SIGUSR1);
    assert_int_equal(heard, SIGUSR1);
    assert_int_equal(sigaction(SIGUSR1, &was, NULL), 0);
    f.device->ops->executable_free(f.device, e);
    f.device->ops->buffer_free(f.device, slots[0]);
    teardown(&f);
}

/* ---- memory and transfers ---- */

static void test_transfers(void **state) {
    (void)state;
    fixture f;
    enum { BYTES = 17 << 20 };
    static unsigned char out[BYTES], in[BYTES];
    if (!setup(&f)) return skip();
    const weft_device_ops *ops = f.device->ops;
    weft_buffer *b = buffer_of(&f, BYTES);
    for (size_t i = 0; i < BYTES; i++) out[i] = (unsigned char)(i * 7 + i / 256);
    assert_int_equal(ops->upload(f.device, b, 0, out, BYTES), WEFT_OK); /* waited for */
    for (size_t at = 0; at + 1000 <= BYTES; at += 1 << 12) { /* copied aside, many times round the ring */
        unsigned char piece[1000];
        memset(piece, (int)(at >> 12), sizeof piece);
        memset(out + at, (int)(at >> 12), sizeof piece);
        assert_int_equal(ops->upload(f.device, b, at, piece, sizeof piece), WEFT_OK);
    }
    assert_int_equal(ops->zero(f.device, b, 13, 3), WEFT_OK);
    memset(out + 13, 0, 3);
    assert_int_equal(ops->zero(f.device, b, 1 << 20, 1 << 20), WEFT_OK);
    memset(out + (1 << 20), 0, 1 << 20);
    for (int big = 0; big < 8; big++) { /* more than the ring holds: it waits for its oldest */
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
    teardown(&f);
}

static void test_moves(void **state) {
    (void)state;
    fixture f;
    static const struct {
        int64_t from, to, bytes;
    } cases[] = {{0, 0, 8}, {0, 64, 1 << 20}, {3, 5, 100003}, {16, 0, 7}, {0, 0, 0}};
    static unsigned char a[1 << 21], b[1 << 21], got[1 << 21];
    if (!setup(&f)) return skip();
    const weft_device_ops *ops = f.device->ops;
    weft_buffer *slots[2] = {buffer_of(&f, sizeof a), buffer_of(&f, sizeof b)};
    for (size_t i = 0; i < sizeof a; i++) a[i] = (unsigned char)(i % 251 + 1);
    assert_int_equal(ops->upload(f.device, slots[0], 0, a, sizeof a), WEFT_OK);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        weft_executable *e;
        memset(b, 9, sizeof b);
        f.commands.count = 0;
        assert_int_equal(ops->upload(f.device, slots[1], 0, b, sizeof b), WEFT_OK);
        command(&f, WEFT_COMMAND_COPY, false, cases[c].bytes);
        f.operands[0][0] = (weft_operand){0, cases[c].from};
        f.operands[0][1] = (weft_operand){1, cases[c].to};
        command(&f, WEFT_COMMAND_ZERO, false, cases[c].bytes / 2);
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
    teardown(&f);
}

/* A fault keeps sinks from happening, and nothing else, until it is taken. */
static void test_sinks_after_a_fault(void **state) {
    (void)state;
    fixture f;
    int64_t got[2], values[2] = {1, 2};
    weft_fault fault;
    weft_executable *e;
    if (!setup(&f)) return skip();
    const weft_device_ops *ops = f.device->ops;
    weft__opencl *d = weft__opencl_of(f.device);
    weft_buffer *slots[2] = {buffer_of(&f, 16), buffer_of(&f, 16)};
    command(&f, WEFT_COMMAND_COPY, true, 8); /* element 0, a sink */
    command(&f, WEFT_COMMAND_COPY, false, 8);
    for (int i = 0; i < 2; i++)
        f.operands[i][0] = (weft_operand){0, 8 * i}, f.operands[i][1] = (weft_operand){1, 8 * i};
    assert_int_equal(ops->build(f.device, &f.commands, &e), WEFT_OK);
    assert_int_equal(ops->zero(f.device, slots[1], 0, 16), WEFT_OK);
    assert_int_equal(ops->upload(f.device, slots[0], 0, values, 16), WEFT_OK);
    const weft_gpu_faults record = {.set = 1,
                                    .command = weft__gpu_path_number(&f.ctx, &d->paths, "net.layer"),
                                    .what = 1,
                                    .value = 7,
                                    .bound = 5,
                                    .element = 3};
    assert_int_equal(
        weft__cl.clEnqueueWriteBuffer(d->queue, d->faults, 1, 0, sizeof record, &record, 0, NULL, NULL), 0);
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
    teardown(&f);
}

static void test_timings(void **state) {
    (void)state;
    fixture f;
    weft_executable *e;
    if (!setup(&f)) return skip();
    const weft_device_ops *ops = f.device->ops;
    weft_buffer *slots[2] = {buffer_of(&f, 1 << 22), buffer_of(&f, 1 << 22)};
    command(&f, WEFT_COMMAND_ZERO, false, 1 << 22);
    command(&f, WEFT_COMMAND_ZERO, false, 0); /* no launch */
    command(&f, WEFT_COMMAND_COPY, false, 1 << 22);
    f.operands[2][1].slot = 1;
    assert_int_equal(ops->build(f.device, &f.commands, &e), WEFT_OK);
    assert_null(ops->timings(f.device, e));
    ops->set_timing(f.device, true);
    assert_int_equal(ops->run(f.device, e, slots, 3), WEFT_OK);
    assert_int_equal(ops->synchronize(f.device), WEFT_OK);
    const weft_timing *t = ops->timings(f.device, e);
    assert_non_null(t);
    assert_true(t[0].end_ns > t[0].start_ns && t[2].end_ns > t[2].start_ns);
    assert_true(t[2].start_ns >= t[0].end_ns);
    assert_true(t[1].start_ns >= t[0].end_ns && t[1].end_ns <= t[2].start_ns);
    ops->set_timing(f.device, false);
    assert_null(ops->timings(f.device, e));
    ops->executable_free(f.device, e);
    for (int i = 0; i < 2; i++) ops->buffer_free(f.device, slots[i]);
    teardown(&f);
}

/* ---- what goes wrong ---- */

static void test_memory_is_gone(void **state) {
    (void)state;
    fixture f;
    weft_buffer *b = NULL;
    if (!setup(&f)) return skip();
    const weft_device_ops *ops = f.device->ops;
    const weft__opencl_found *found = weft__opencl_of(f.device)->found;
    assert_int_equal(ops->buffer_new(f.device, (size_t)found->most_bytes + 1, &b), WEFT_ERR_OOM);
    assert_non_null(strstr(weft_last_error(&f.ctx), "this device gives at most"));
    weft__gpu_hook.fail_allocation = 2;
    weft_buffer *first = buffer_of(&f, 100);
    assert_int_equal(ops->buffer_new(f.device, 1000, &b), WEFT_ERR_OOM);
    assert_non_null(
        strstr(weft_last_error(&f.ctx), "a buffer of 1000 bytes: mem object allocation failure; 100 "));
    b = buffer_of(&f, 1000); /* goes on */
    ops->buffer_free(f.device, b);
    ops->buffer_free(f.device, first);
    teardown(&f);
}

static void test_device_is_lost(void **state) {
    (void)state;
    fixture f;
    weft_executable *e;
    char bytes[64] = {0};
    if (!setup(&f)) return skip();
    const weft_device_ops *ops = f.device->ops;
    weft_buffer *slots[2] = {buffer_of(&f, 64), buffer_of(&f, 64)};
    command(&f, WEFT_COMMAND_COPY, false, 64);
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
    teardown(&f);
}

static void test_compiler_refuses(void **state) {
    (void)state;
    fixture f;
    weft_executable *e = NULL;
    const weft_gpu_text *text;
    const weft_launch bad = {.name = "wrong",
                             .text = "W_KERNEL void wrong(W_GLOBAL int *a) { a[0] = nothing; }"};
    if (!setup(&f)) return skip();
    assert_int_equal(weft__gpu_compile(&weft__opencl_of(f.device)->compiler, &bad, 1, &text),
                     WEFT_ERR_DEVICE);
    assert_non_null(strstr(weft_last_error(&f.ctx), "its compiler refuses kernel wrong: "));
    assert_non_null(strstr(weft_last_error(&f.ctx), "nothing"));
    command(&f, WEFT_COMMAND_ZERO, false, 64);
    weft__gpu_hook.fail_compile = 1;
    assert_int_equal(f.device->ops->build(f.device, &f.commands, &e), WEFT_ERR_DEVICE);
    assert_null(e);
    assert_int_equal(f.device->ops->build(f.device, &f.commands, &e), WEFT_OK); /* and goes on */
    f.device->ops->executable_free(f.device, e);
    teardown(&f);
}

/* ---- compiled once ---- */

/* Texts that define their kernel alone share a program; the others do not. */
static void test_texts_share_programs(void **state) {
    (void)state;
    fixture f;
    const weft_gpu_text *texts[4];
    const weft_launch launches[4] = {
        {.name = "same", .text = "W_KERNEL void same(W_GLOBAL int *a) { a[0] = 1; }", .shares = true},
        {.name = "same", .text = "W_KERNEL void same(W_GLOBAL int *a) { a[0] = 2; }", .shares = true},
        {.name = "alone", .text = "#define T int\nW_KERNEL void alone(W_GLOBAL T *a) { a[0] = 3; }"},
        {.name = "same", .text = "W_KERNEL void same(W_GLOBAL int *a) { a[0] = 1; }", .shares = true},
    };
    if (!setup(&f)) return skip();
    weft__opencl *d = weft__opencl_of(f.device);
    const int before = weft__gpu_hook.compiles;
    assert_int_equal(weft__gpu_compile(&d->compiler, launches, 4, texts), WEFT_OK);
    assert_int_equal(weft__gpu_hook.compiles - before, 2);
    assert_true(texts[0] == texts[3] && texts[0] != texts[1] && texts[0]->module == texts[1]->module);
    assert_true(texts[2]->module != texts[0]->module);
    for (int i = 0; i < 3; i++) {
        char name[WEFT_GPU_NAME];
        cl_int error, got = 0;
        cl_mem memory;
        weft__gpu_kernel_name(texts[i], launches[i].name, name);
        const cl_kernel kernel =
            weft__cl.clCreateKernel(d->compiler.modules[texts[i]->module].module, name, &error);
        assert_int_equal(error, 0);
        assert_int_equal(weft__opencl_memory(d, 4, "test", &memory), WEFT_OK);
        assert_int_equal(weft__cl.clSetKernelArg(kernel, 0, sizeof memory, &memory), 0);
        assert_int_equal(weft__cl.clEnqueueNDRangeKernel(d->queue, kernel, 1, NULL, &(size_t){1},
                                                         &(size_t){1}, 0, NULL, NULL),
                         0);
        assert_int_equal(weft__cl.clEnqueueReadBuffer(d->queue, memory, 1, 0, 4, &got, 0, NULL, NULL), 0);
        assert_int_equal(got, i + 1);
        weft__cl.clReleaseKernel(kernel);
        weft__cl.clReleaseMemObject(memory);
    }
    assert_int_equal(weft__gpu_compile(&d->compiler, launches, 4, texts), WEFT_OK);
    assert_int_equal(weft__gpu_hook.compiles - before, 2);
    teardown(&f);
}

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

/* The second start compiles nothing; a damaged file is as good as none. */
static void test_second_start(void **state) {
    (void)state;
    fixture f;
    static const int expected[4][2] = {{1, 0}, {0, 1}, {1, 0}, {0, 1}}; /* compiled, from disk */
    setenv("WEFT_KERNEL_CACHE", scratch, 1);
    for (int start = 0; start < 4; start++) {
        weft_executable *e;
        int64_t got = 1;
        if (!setup(&f)) return skip();
        const int compiles = weft__gpu_hook.compiles, cached = weft__gpu_hook.from_cache;
        weft_buffer *slots[2] = {buffer_of(&f, 8), NULL};
        assert_int_equal(f.device->ops->upload(f.device, slots[0], 0, &got, 8), WEFT_OK);
        command(&f, WEFT_COMMAND_ZERO, false, 8);
        assert_int_equal(f.device->ops->build(f.device, &f.commands, &e), WEFT_OK);
        assert_int_equal(f.device->ops->run(f.device, e, slots, 1), WEFT_OK);
        assert_int_equal(f.device->ops->download(f.device, slots[0], 0, &got, 8), WEFT_OK);
        assert_int_equal(got, 0);
        assert_int_equal(weft__gpu_hook.compiles - compiles, expected[start][0]);
        assert_int_equal(weft__gpu_hook.from_cache - cached, expected[start][1]);
        f.device->ops->executable_free(f.device, e);
        f.device->ops->buffer_free(f.device, slots[0]);
        teardown(&f);
        if (start == 1) damage_files();
    }
    setenv("WEFT_KERNEL_CACHE", "off", 1);
}

static void test_guards(void **state) {
    (void)state;
    fixture f;
    if (!setup(&f)) return skip();
    teardown(&f);
    weft__gpu_hook.guard = 256;
    if (!setup(&f)) return skip();
    weft__opencl *d = weft__opencl_of(f.device);
    weft_buffer *slots[2] = {buffer_of(&f, 100), buffer_of(&f, 100)};
    weft_executable *e;
    char got[100], values[100];
    memset(values, 3, sizeof values);
    command(&f, WEFT_COMMAND_COPY, false, 100);
    f.operands[0][1].slot = 1;
    assert_int_equal(f.device->ops->build(f.device, &f.commands, &e), WEFT_OK);
    assert_int_equal(f.device->ops->upload(f.device, slots[0], 0, values, 100), WEFT_OK);
    assert_int_equal(f.device->ops->run(f.device, e, slots, 1), WEFT_OK);
    assert_int_equal(f.device->ops->download(f.device, slots[1], 0, got, 100), WEFT_OK);
    assert_memory_equal(got, values, 100);
    const cl_mem memory = ((weft__opencl_buffer *)slots[1])->memory;
    assert_int_equal(
        weft__cl.clEnqueueWriteBuffer(d->queue, memory, 1, 256 + 100 + 17, 1, values, 0, NULL, NULL), 0);
    weft__gpu_hook.guards_broken = 0;
    f.device->ops->executable_free(f.device, e);
    f.device->ops->buffer_free(f.device, slots[0]);
    assert_int_equal(weft__gpu_hook.guards_broken, 0);
    f.device->ops->buffer_free(f.device, slots[1]);
    assert_int_equal(weft__gpu_hook.guards_broken, 1);
    weft__gpu_hook.guard = 0;
    teardown(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_signals_stay), /* first: they are taken over once a process */
        cmocka_unit_test(test_without_library),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_transfers),
        cmocka_unit_test(test_moves),
        cmocka_unit_test(test_sinks_after_a_fault),
        cmocka_unit_test(test_timings),
        cmocka_unit_test(test_memory_is_gone),
        cmocka_unit_test(test_device_is_lost),
        cmocka_unit_test(test_compiler_refuses),
        cmocka_unit_test(test_texts_share_programs),
        cmocka_unit_test_setup_teardown(test_second_start, scratch_setup, scratch_teardown),
        cmocka_unit_test(test_guards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
