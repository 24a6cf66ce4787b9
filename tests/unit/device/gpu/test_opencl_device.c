/* src/device/opencl. Compares the declarations with the Khronos headers if they are installed. Checks on
 * every machine what happens without a library. If there is a device, also checks its names, and side effects
 * of drivers. The behaviour that OpenCL shares with other devices is in test_gpu_device.c. */
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
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS /* clCreateCommandQueue: OpenCL 1.2 lacks its successor */
#include <CL/cl.h>
#endif

#include "device/cuda/hooks.h"
#include "device/webgpu/hooks.h"
#include "gpu.h"
#include "unit/io_scratch.h"

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

static bool setup(test_programs *f) { return test_setup(f, "opencl"); }

/* ---- available devices ---- */

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
    assert_int_equal(weft__device_count(&weft__device_opencl), 1);
    weft__device_opencl.describe(&weft__device_opencl, 0, &info);
    assert_string_equal(info.name, "opencl");
    assert_false(info.present);
    assert_non_null(strstr(info.reason, "pocl-opencl-icd"));
    weft__opencl_hook.library = NULL;
    weft__opencl_hook.missing = "clEnqueueFillBuffer";
    weft__opencl_forget();
    const char *why = weft__opencl_open_library();
    assert_non_null(why); /* no library at all, or one that lacks the function */
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

/* Hides the devices of a real card that "gpu" and lists would prefer. */
static void hide_others(bool hidden) {
    weft__cuda_hook.library = weft__webgpu_hook.library = hidden ? "libabsent.so" : NULL;
    weft__cuda_forget();
    weft__webgpu_forget();
}

static void test_lists(void **state) {
    (void)state;
    log_lines lines = {0};
    weft_context ctx = {.caller.log = keep_line, .caller.log_user = &lines};
    weft_device *device;
    hide_others(true);
    weft__opencl_hook.library = "libabsent.so";
    weft__opencl_forget();
    assert_int_equal(weft__device_open(&ctx, "cuda,opencl,cpu", NULL, &device), WEFT_OK);
    assert_string_equal(device->name, "cpu");
    device->ops->close(device);
    assert_int_equal(lines.count, 1); /* one warning with both reasons */
    assert_non_null(strstr(lines.text, "device cuda,opencl,cpu: cpu is used: device cuda: "));
    assert_non_null(strstr(lines.text, "libabsent.so cannot be opened"));
    assert_int_equal(weft__device_open(&ctx, "gpu", NULL, &device), WEFT_ERR_DEVICE);
    assert_non_null(strstr(weft_last_error(&ctx), "device gpu: no device opens: device opencl: "));
    assert_int_equal(weft__device_open(&ctx, "gpu,cpu", NULL, &device), WEFT_OK);
    assert_string_equal(device->name, "cpu");
    device->ops->close(device);
    assert_int_equal(lines.count, 2);
    assert_non_null(strstr(lines.text, "device gpu,cpu: cpu is used: device gpu: no device opens: "));
    assert_int_equal(weft__device_open(&ctx, "cuda", NULL, &device), WEFT_ERR_DEVICE);
    assert_int_equal(weft__device_open(&ctx, "null,cpu", NULL, &device), WEFT_OK);
    assert_string_equal(device->name, "null");
    device->ops->close(device);
    assert_int_equal(lines.count, 2);
    weft__opencl_hook.library = NULL;
    weft__opencl_forget();
    hide_others(false);
}

static void opens(test_programs *f, const char *selector, const char *spec) {
    weft_device *device;
    char text[200];
    snprintf(text, sizeof text, "opencl%s%s", selector ? ":" : "", selector ? selector : "");
    assert_int_equal(weft__device_open(&f->ctx, text, NULL, &device), WEFT_OK);
    assert_string_equal(device->name, spec);
    device->ops->close(device);
}

static void test_names(void **state) {
    (void)state;
    test_programs f;
    weft_device *device;
    weft_device_description info;
    if (!setup(&f)) return skip();
    const weft__opencl_found *list;
    const int n = weft__opencl_devices(&list, NULL);
    for (int i = 0; i < n; i++) {
        weft__device_opencl.describe(&weft__device_opencl, i, &info);
        assert_string_equal(info.name, list[i].gpu.spec);
        assert_true(info.present || info.reason);
        assert_true(!info.present || (info.memory > 0 && info.threads > 0));
    }
    char upper[128];
    for (size_t i = 0; i < sizeof upper; i++)
        upper[i] = list[0].gpu.name[i] >= 'a' && list[0].gpu.name[i] <= 'z' ? (char)(list[0].gpu.name[i] - 32)
                                                                            : list[0].gpu.name[i];
    opens(&f, NULL, "opencl:0");
    opens(&f, "0", "opencl:0");
    opens(&f, upper, "opencl:0");
    assert_int_equal(weft__device_open(&f.ctx, "opencl:99", NULL, &device), WEFT_ERR_DEVICE);
    assert_non_null(strstr(weft_last_error(&f.ctx), list[0].gpu.name)); /* lists the devices */
    assert_int_equal(weft__device_open(&f.ctx, "opencl:abacus", NULL, &device), WEFT_ERR_DEVICE);
    assert_non_null(strstr(weft_last_error(&f.ctx), "\"opencl:abacus\": there is none"));
    hide_others(true);
    weft__device_cards_hook = true; /* "gpu" opens a GPU, without a warning */
    weft__opencl_forget();
    log_lines lines = {0};
    weft_context ctx = {.caller.log = keep_line, .caller.log_user = &lines};
    assert_int_equal(weft__device_open(&ctx, "gpu", NULL, &device), WEFT_OK);
    assert_string_equal(device->name, "opencl:0");
    device->ops->close(device);
    assert_int_equal(lines.count, 0);
    weft__device_cards_hook = false;
    weft__opencl_forget();
    hide_others(false);
    test_teardown(&f);
}

/* Drivers replace signal handlers: PoCL's LLVM handles SIGUSR1, which makes a run save a checkpoint. */
static volatile sig_atomic_t heard;
static void hear(int number) { heard = number; }

static void test_signals_stay(void **state) {
    (void)state;
    test_programs f;
    weft_executable *e;
    const struct sigaction ours = {.sa_handler = hear};
    struct sigaction was, after;
    assert_int_equal(sigaction(SIGUSR1, &ours, &was), 0);
    weft__opencl_forget();
    if (!setup(&f)) return skip();
    test_command(&f, WEFT_COMMAND_ZERO, false, 64);
    weft_buffer *slots[2] = {test_buffer(&f, 64), NULL};
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
    test_teardown(&f);
}

/* ---- programs ---- */

/* Returns what the kernel of a source writes. */
static int32_t answer(const weft__opencl *d, const weft_gpu_source *source, const char *name) {
    weft_gpu_buffer *memory;
    weft_gpu_device *gpu = (weft_gpu_device *)(uintptr_t)&d->gpu;
    char whole[WEFT_GPU_NAME];
    cl_int error, got = 0;
    weft__gpu_kernel_name(source, name, whole);
    const cl_kernel kernel =
        weft__cl.clCreateKernel(d->gpu.compiler.modules[source->module].module, whole, &error);
    assert_int_equal(error, 0);
    assert_int_equal(weft__gpu_memory_new(gpu, 4, "test", &memory), WEFT_OK);
    assert_int_equal(weft__cl.clSetKernelArg(kernel, 0, sizeof(cl_mem), &memory->handle), 0);
    assert_int_equal(
        weft__cl.clEnqueueNDRangeKernel(d->queue, kernel, 1, NULL, &(size_t){1}, &(size_t){1}, 0, NULL, NULL),
        0);
    assert_int_equal(weft__cl.clEnqueueReadBuffer(d->queue, memory->handle, 1, 0, 4, &got, 0, NULL, NULL), 0);
    weft__cl.clReleaseKernel(kernel);
    weft__gpu_memory_free(gpu, memory);
    return got;
}

/* Kernel sources that define only their kernel share an OpenCL program; others do not. */
static void test_sources_share_programs(void **state) {
    (void)state;
    test_programs f;
    const weft_gpu_source *sources[4];
    const weft_launch launches[4] = {
        {.name = "same", .source = "W_KERNEL void same(W_GLOBAL int *a) { a[0] = 1; }", .shares = true},
        {.name = "same", .source = "W_KERNEL void same(W_GLOBAL int *a) { a[0] = 2; }", .shares = true},
        {.name = "alone", .source = "#define T int\nW_KERNEL void alone(W_GLOBAL T *a) { a[0] = 3; }"},
        {.name = "same", .source = "W_KERNEL void same(W_GLOBAL int *a) { a[0] = 1; }", .shares = true},
    };
    if (!setup(&f)) return skip();
    weft__opencl *d = weft__opencl_of(f.device);
    const int before = weft__gpu_hook.compiles;
    assert_int_equal(weft__gpu_compile(&d->gpu.compiler, launches, 4, sources), WEFT_OK);
    assert_int_equal(weft__gpu_hook.compiles - before, 2);
    assert_true(sources[0] == sources[3] && sources[0] != sources[1] &&
                sources[0]->module == sources[1]->module);
    assert_true(sources[2]->module != sources[0]->module);
    for (int i = 0; i < 3; i++) assert_int_equal(answer(d, sources[i], launches[i].name), i + 1);
    assert_int_equal(weft__gpu_compile(&d->gpu.compiler, launches, 4, sources), WEFT_OK);
    assert_int_equal(weft__gpu_hook.compiles - before, 2);
    test_teardown(&f);
}

/* On a processor, templates share a module, too: with each other, with sources of other preludes, and with
 * sources that define only their kernel. Each has its own macros, functions and structs. */
static void test_templates_share_programs(void **state) {
    (void)state;
    test_programs f;
    const weft_gpu_source *sources[4];
    const weft_launch launches[4] = {
        {.name = "one",
         .source = "#define T int\n#define N 1\ntypedef struct pair {\n    T a;\n} pair;\n"
                   "W_NUMBERS(absent) {\n    T a;\n};\nW_FN T twice(T a) { return 2 * a + N; }\n"
                   "W_KERNEL W_ITEMS(1, 1, 1) void one(W_GLOBAL T *a) { pair p = {3}; a[0] = twice(p.a); }",
         .may_fuse = true},
        {.name = "one",
         .source =
             "#define T uint\n#define N 2\ntypedef struct pair {\n    T a, b;\n} pair;\n"
             "W_NUMBERS(absent) {\n    T a, b;\n};\nW_FN T twice(T a) { return 2 * a + N; }\n"
             "W_KERNEL W_ITEMS(1, 1, 1) void one(W_GLOBAL T *a) { pair p = {4, 5}; a[0] = twice(p.b); }",
         .may_fuse = true},
        {.name = "map",
         .source = "W_FN void map_group(W_GLOBAL float *a, int v) { w_put_i32((W_GLOBAL int *)a, 0, v); }\n"
                   "W_KERNEL W_ITEMS(1, 1, 1) void map(W_GLOBAL float *a) { map_group(a, 13); }",
         .prelude = WEFT_PRELUDE_LANES,
         .shares = true},
        {.name = "map",
         .source = "W_FN void map_group(W_GLOBAL float *a, int v) { w_put_i32((W_GLOBAL int *)a, 0, v); }\n"
                   "W_KERNEL W_ITEMS(1, 1, 1) void map(W_GLOBAL float *a) { map_group(a, 14); }",
         .prelude = WEFT_PRELUDE_LANES,
         .shares = true},
    };
    if (!setup(&f)) return skip();
    weft__opencl *d = weft__opencl_of(f.device);
    if (!d->found->gpu.cpu) {
        test_teardown(&f);
        return skip();
    }
    const int before = weft__gpu_hook.compiles;
    assert_int_equal(weft__gpu_compile(&d->gpu.compiler, launches, 4, sources), WEFT_OK);
    assert_int_equal(weft__gpu_hook.compiles - before, 1);
    assert_int_equal(answer(d, sources[0], "one"), 7);
    assert_int_equal(answer(d, sources[1], "one"), 12);
    assert_int_equal(answer(d, sources[2], "map"), 13);
    assert_int_equal(answer(d, sources[3], "map"), 14);
    test_teardown(&f);
}

/* ---- storing on disk ---- */

/* Returns how many files a device leaves in the folder of kernels. */
static int files_stored(void) {
    test_programs f;
    const weft_gpu_source *source;
    const weft_launch launch = {.name = "one", .source = "W_KERNEL void one(W_GLOBAL int *a) { a[0] = 7; }"};
    int files = 0;
    assert_true(setup(&f));
    weft__opencl *d = weft__opencl_of(f.device);
    assert_int_equal(weft__gpu_compile(&d->gpu.compiler, &launch, 1, &source), WEFT_OK);
    assert_int_equal(answer(d, source, "one"), 7);
    test_teardown(&f);
    DIR *folder = opendir(in_scratch("kernels"));
    for (const struct dirent *e; folder && (e = readdir(folder));) files += e->d_name[0] != '.';
    if (folder) closedir(folder);
    return files;
}

/* PoCL keeps kernels itself, so Weft stores none of them, unless PoCL is told not to. */
static void test_driver_stores(void **state) {
    (void)state;
    test_programs f;
    if (!setup(&f)) return skip();
    const bool pocl = strcmp(weft__opencl_of(f.device)->found->gpu.maker, "Portable Computing Language") == 0;
    const char *before = getenv("POCL_KERNEL_CACHE");
    test_teardown(&f);
    assert_int_equal(setenv("WEFT_KERNEL_CACHE", in_scratch("kernels"), 1), 0);
    if (!before) assert_int_equal(files_stored(), !pocl);
    assert_int_equal(setenv("POCL_KERNEL_CACHE", "0", 1), 0);
    assert_int_equal(files_stored(), 1);
    assert_int_equal(before ? setenv("POCL_KERNEL_CACHE", before, 1) : unsetenv("POCL_KERNEL_CACHE"), 0);
    assert_int_equal(setenv("WEFT_KERNEL_CACHE", "off", 1), 0);
}

int main(void) {
    weft__cuda_hook.library = "libabsent.so"; /* also where there is a CUDA driver */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_signals_stay), /* first: a driver replaces the handlers only once */
        cmocka_unit_test(test_without_library),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_sources_share_programs),
        cmocka_unit_test(test_templates_share_programs),
        cmocka_unit_test_setup_teardown(test_driver_stores, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
