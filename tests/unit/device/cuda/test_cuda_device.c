/* src/device/cuda. Compares the declarations with cuda.h if it is installed. Checks on every machine what
 * happens without a driver. Checks the parts that only CUDA has: GPUs and their compilers, graphs, two
 * streams, contexts in which a kernel failed. With the simulated driver (tests/cuda/fake.h), also checks
 * which calls a step makes, and that everything is freed.
 *
 * The behaviour that CUDA shares with other devices is in test_gpu_device.c. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#if __has_include(<cuda.h>)
#include <cuda.h>
#endif
#if __has_include(<nvml.h>)
#include <nvml.h>
#endif
#include <weft/weft.h>

#include "component.h"
#include "cuda/fake.h"
#include "device/cuda/cuda.h"
#include "device/cuda/dnn/dnn.h"
#include "device/cuda/nvml/nvml.h"
#include "device/cuda/nvrtc.h"
#include "device/gpu/driver/run.h"
#include "data/pending.h"
#include "gpu.h"
#include "train/run/telemetry.h"

#if __has_include(<cuda.h>)
#define CUDA_FUNCTION(name, hip, arguments)                                                                  \
    _Static_assert(__builtin_types_compatible_p(__typeof__(weft__cu.name), __typeof__(&name)),               \
                   #name " is declared otherwise");
#define CUDA_CONSTANT(name, value) _Static_assert((name) == (value), #name " has another value");
#include "device/gpu/driver/cuda.def"
#undef CUDA_FUNCTION
#undef CUDA_CONSTANT
struct own_node {
#define CUDA_NODE(type, name) type name;
#include "device/gpu/driver/cuda.def"
#undef CUDA_NODE
};
#define CUDA_NODE(type, name)                                                                                \
    _Static_assert(offsetof(struct own_node, name) == offsetof(CUDA_KERNEL_NODE_PARAMS_v2, name),            \
                   #name " is elsewhere");
#include "device/gpu/driver/cuda.def"
#undef CUDA_NODE
_Static_assert(sizeof(struct own_node) == sizeof(CUDA_KERNEL_NODE_PARAMS_v2), "a field is missing");
#endif

#if __has_include(<nvml.h>)
#define NVML_FUNCTION(name, arguments)                                                                       \
    _Static_assert(                                                                                          \
        __builtin_types_compatible_p(__typeof__(((weft__nvml_functions *)0)->name), __typeof__(&name)),      \
        #name " is declared otherwise");
#define NVML_CONSTANT(name, value) _Static_assert((name) == (value), #name " has another value");
#define NVML_UTILIZATION(type, name)                                                                         \
    _Static_assert(__builtin_types_compatible_p(type, __typeof__(((nvmlUtilization_t *)0)->name)), #name);
#define NVML_MEMORY(type, name)                                                                              \
    _Static_assert(__builtin_types_compatible_p(type, __typeof__(((nvmlMemory_t *)0)->name)), #name);
#include "device/cuda/nvml/nvml.def"
#undef NVML_FUNCTION
#undef NVML_CONSTANT
#undef NVML_UTILIZATION
#undef NVML_MEMORY
_Static_assert(sizeof(nvmlUtilization_t) == 2 * sizeof(unsigned), "a field is missing");
_Static_assert(sizeof(nvmlMemory_t) == 3 * sizeof(unsigned long long), "a field is missing");
#endif

/* The counters of the simulated driver. NULL if the driver is real; the test then ends. */
static fake_cuda_state *counts(void) {
    const weft__cuda_found *list;
    if (!weft__cuda_devices(&list, NULL)) return NULL;
    void *library = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_NOW);
    return library ? dlsym(library, "fake_cuda") : NULL;
}

static bool without_cuda(void) {
    const weft__cuda_found *list;
    const char *why;
    if (weft__cuda_devices(&list, &why) && !list[0].gpu.reason[0]) return false;
    print_message("skipped, no CUDA: %s%s\n", why, list[0].gpu.reason);
    return true;
}

/* ---- components ---- */

static void refuses(const char *says) {
    weft_context ctx = {0};
    weft_device *device;
    assert_int_equal(weft__device_open(&ctx, "cuda", NULL, &device), WEFT_ERR_DEVICE);
    assert_non_null(strstr(weft_last_error(&ctx), says));
}

static void test_without_library(void **state) {
    (void)state;
    weft_device_description info;
    weft__cuda_hook.library = "libabsent.so";
    weft__cuda_forget();
    refuses("libabsent.so cannot be opened: it comes with the driver");
    assert_int_equal(weft__device_count(&weft__device_cuda), 1);
    weft__device_cuda.describe(&weft__device_cuda, 0, &info);
    assert_string_equal(info.name, "cuda");
    assert_false(info.present);
    assert_non_null(strstr(info.reason, "nvidia-driver"));
    assert_false(weft__cuda_driver());
    weft__cuda_hook.library = NULL;
    weft__cuda_hook.missing = "cuGraphAddKernelNode_v2";
    weft__cuda_forget();
    const char *why = weft__cuda_open_library();
    assert_non_null(why); /* no library at all, or one that lacks the function */
    refuses(why);
    weft__cuda_hook.missing = NULL;
    weft__cuda_forget();
}

/* The GPU is there but cannot be used. The reason must say what to install, and what can be used
 * meanwhile. */
static void test_without_compiler(void **state) {
    (void)state;
    weft_device_description info;
    if (without_cuda()) return skip();
    weft__nvrtc_file = "libabsent.so";
    weft__cuda_forget();
    refuses("the kernel compiler is missing: libabsent.so cannot be opened: install NVRTC");
    weft__device_cuda.describe(&weft__device_cuda, 0, &info);
    assert_string_equal(info.name, "cuda:0");
    assert_false(info.present);
    assert_true(info.memory > 0 && info.threads > 0);
    assert_non_null(strstr(info.reason, "opencl serves the card"));
    assert_true(weft__cuda_driver());
    weft__nvrtc_file = NULL;
    weft__cuda_forget();
}

static void test_old_driver(void **state) {
    (void)state;
    if (!counts()) return skip(); /* the version of a real driver cannot be changed */
    setenv("FAKE_CUDA_VERSION", "11080", 1);
    weft__cuda_forget();
    refuses("the driver, CUDA 11.8, is older than CUDA 12: install a newer one (525 or later)");
    setenv("FAKE_CUDA_VERSION", "12040", 1); /* too old for the simulated NVRTC, the only one there is */
    weft__nvrtc_file = "libnvrtc.so.13";
    weft__cuda_forget();
    refuses("NVRTC 13.0 makes code for drivers of CUDA 13, and this one is for CUDA 12.4: install NVRTC 12 "
            "(PyPI: nvidia-cuda-nvrtc-cu12)");
    weft__nvrtc_file = NULL;
    unsetenv("FAKE_CUDA_VERSION");
    weft__cuda_forget();
}

typedef struct said {
    char text[2000];
} said;

static void keep(void *user, weft_log_level level, const char *message) {
    said *s = user;
    if (level >= WEFT_LOG_WARNING) snprintf(s->text, sizeof s->text, "%s", message);
}

/* With the driver alone, "auto" and "gpu" use the GPU through OpenCL, and say what to install. */
static void test_driver_alone(void **state) {
    (void)state;
    static const char *const names[] = {"auto", "gpu"};
    if (without_cuda() || test_without_opencl()) return skip();
    weft__nvrtc_file = "libabsent.so";
    weft__cuda_forget();
    weft__device_cards_hook = true;
    weft__opencl_forget();
    for (int i = 0; i < 2; i++) {
        said s = {{0}};
        weft_context *ctx;
        const weft_open_options options = {.device = names[i], .log = keep, .log_user = &s};
        assert_int_equal(weft_open(&options, &ctx), WEFT_OK);
        assert_string_equal(weft_device_of(ctx), "opencl:0");
        assert_non_null(strstr(s.text, ": opencl:gpu is used: "));
        assert_non_null(strstr(s.text, "pip install nvidia-cuda-nvrtc"));
        weft_close(ctx);
    }
    weft__device_cards_hook = false;
    weft__opencl_forget();
    weft__nvrtc_file = NULL;
    weft__cuda_forget();
}

/* Each component is found, or a message says why not. A missing component does not affect the others. */
static void test_pieces(void **state) {
    (void)state;
    static const char *const names[] = {"driver", "card", "NVRTC", "cuBLASLt", "cuDNN", "NCCL", "NVML"};
    char text[WEFT_COMPONENT_TEXT];
    if (without_cuda()) return skip();
    for (int i = 0; i < 7; i++) {
        const bool there = test_has_component(&weft__device_cuda, names[i], text);
        assert_true(there ? text[strcspn(text, "0123456789")] : strstr(text, "install") != NULL);
        if (i < 3) assert_true(there);
    }
    weft__nvml_file = weft__cublas.file = weft__dnn_file = "libabsent.so";
    weft__cuda_forget();
    weft__dnn_forget();
    for (int i = 0; i < 7; i++) {
        const bool there = test_has_component(&weft__device_cuda, names[i], text);
        if (i < 3) assert_true(there);
        if (i == 3 || i == 4 || i == 6) assert_true(!there && strstr(text, "libabsent.so cannot be opened"));
    }
    weft__nvml_file = weft__cublas.file = weft__dnn_file = NULL;
    weft__dnn_forget();
    weft__cuda_forget();
}

/* Each GPU reports its own telemetry. Without the library there is no telemetry, and this is not an error. */
static void test_telemetry(void **state) {
    (void)state;
    weft_context *ctx;
    weft_telemetry g;
    if (without_cuda()) return skip();
    assert_false(weft_device_telemetry(NULL, &g));
    assert_int_equal(weft_open(&(weft_open_options){.device = "cpu"}, &ctx), WEFT_OK);
    assert_false(weft_device_telemetry(ctx, &g));
    assert_true(isnan(g.power) && isnan(g.temperature));
    weft_close(ctx);
    for (int card = 0; counts() && card < 2; card++) {
        const double scale = card ? 10 : 1;
        assert_int_equal(weft_open(&(weft_open_options){.device = card ? "cuda:1" : "cuda:0"}, &ctx),
                         WEFT_OK);
        assert_true(weft_device_telemetry(ctx, &g));
        assert_true(fabs(g.utilisation - 0.09 * scale) < 1e-9 && fabs(g.power - 70.5 * scale) < 1e-9);
        assert_true(g.memory_used == 1e9 * scale && g.clock == 198 * scale && g.memory_clock == 260 * scale);
        assert_true(card ? isnan(g.temperature) : g.temperature == 45);
        weft_close(ctx);
    }
    assert_null(weft__telemetry_start(NULL));
    assert_int_equal(weft_open(&(weft_open_options){.device = "cuda"}, &ctx), WEFT_OK);
    weft__telemetry *telemetry = counts() ? weft__telemetry_start(ctx) : NULL;
    if (telemetry) { /* a background thread reads it: once at its start, then twice a second */
        assert_true(fabs(weft__telemetry_take(telemetry).power - 70.5) < 1e-9);
        assert_true(isnan(weft__telemetry_take(telemetry).power));
        assert_true(fabs(weft__telemetry_all(telemetry).power - 70.5) < 1e-9);
    }
    weft__telemetry_stop(telemetry);
    assert_true(isnan(weft__telemetry_take(NULL).power));
    weft_close(ctx);
    weft__nvml_file = "libabsent.so";
    weft__nvml_forget();
    assert_non_null(strstr(weft__nvml_open(), "libabsent.so cannot be opened: it comes with the driver"));
    assert_int_equal(weft_open(&(weft_open_options){.device = "cuda"}, &ctx), WEFT_OK);
    assert_false(weft_device_telemetry(ctx, &g));
    weft_close(ctx);
    weft__nvml_file = NULL;
    weft__nvml_forget();
}

/* If NVRTC knows only an older GPU of the same family, the code for that GPU is used. A GPU without any
 * suitable code is refused. */
static void test_capabilities(void **state) {
    (void)state;
    static const struct {
        const char *capability, *arch, *says;
    } cases[] = {{"89", "sm_86", NULL},
                 {"80", "sm_80", NULL},
                 {"70", NULL, "NVRTC 13.0 does not compile for compute capability 7.0: install NVRTC 12"},
                 {"100", NULL, "does not compile for compute capability 10.0: install a newer one"}};
    if (without_cuda() || !counts()) return skip();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const weft__cuda_found *list;
        setenv("FAKE_CUDA_CAPABILITY", cases[i].capability, 1);
        weft__cuda_forget();
        assert_int_equal(weft__cuda_devices(&list, NULL), 2);
        if (cases[i].arch)
            assert_string_equal(list[0].arch, cases[i].arch);
        else
            refuses(cases[i].says);
    }
    unsetenv("FAKE_CUDA_CAPABILITY");
    weft__cuda_forget();
}

static void opens(const char *spec, const char *name) {
    weft_context ctx = {0};
    weft_device *device;
    assert_int_equal(weft__device_open(&ctx, spec, NULL, &device), WEFT_OK);
    assert_string_equal(device->name, name);
    device->ops->close(device);
    weft__strings_free(&ctx);
}

static void test_names(void **state) {
    (void)state;
    const weft__cuda_found *list;
    weft_context ctx = {0};
    weft_device *device;
    char spec[160];
    if (without_cuda()) return skip();
    const int n = weft__cuda_devices(&list, NULL);
    opens("cuda", "cuda:0");
    opens("cuda:0", "cuda:0");
    opens("gpu", "cuda:0");
    opens("cuda,cpu", "cuda:0");
    snprintf(spec, sizeof spec, "cuda:%s", list[0].gpu.name);
    opens(spec, "cuda:0");
    assert_int_equal(weft__device_open(&ctx, "cuda:99", NULL, &device), WEFT_ERR_DEVICE);
    assert_non_null(strstr(weft_last_error(&ctx), list[0].gpu.name));
    if (!counts()) return;
    assert_int_equal(n, 2);
    opens("cuda:1", "cuda:1");
    opens("cuda:CARD B", "cuda:1");
}

/* ---- steps ---- */

#define SHAPE(...)                                                                                           \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) { __VA_ARGS__ }
enum { ROWS = 12, IN = 5, WIDTH = 7, CLASSES = 3 };

typedef struct net {
    weft_context *ctx;
    weft_module *module;
    weft_optimizer *sgd;
    weft_tensor *x, *y;
} net;

static void make(net *n) {
    float x[ROWS * IN];
    int32_t y[ROWS];
    *n = (net){0};
    assert_int_equal(weft_open(&(weft_open_options){.device = "cuda", .seed = 3}, &n->ctx), WEFT_OK);
    for (int i = 0; i < ROWS * IN; i++) x[i] = (float)(i * 37 % 19) / 10 - 1;
    for (int i = 0; i < ROWS; i++) y[i] = i * 5 % CLASSES;
    n->module = weft_nn_sequential(n->ctx, "net", weft_nn_linear(n->ctx, IN, WIDTH, NULL),
                                   weft_nn_activation(n->ctx, WEFT_TANH),
                                   weft_nn_linear(n->ctx, WIDTH, CLASSES, NULL), NULL);
    n->sgd = weft_sgd(n->module, &(weft_sgd_options){.lr = 0.5});
    n->x = weft_keep(weft_from(n->ctx, WEFT_F32, SHAPE(ROWS, IN), x));
    n->y = weft_keep(weft_from(n->ctx, WEFT_I32, SHAPE(ROWS), y));
    assert_int_equal(weft_tensor_status(n->y), WEFT_OK);
}

static weft_status step(net *n, float *loss) {
    weft_scope *scope = weft_scope_open(n->ctx);
    weft_tensor *l = weft_cross_entropy(weft_forward(n->module, n->x), n->y, NULL);
    weft_status status = weft_optimizer_step(n->sgd, l);
    if (status == WEFT_OK && loss) status = weft_read(l, loss, sizeof *loss);
    weft_scope_close(scope);
    return status;
}

/* A step is one submission of a graph, without waiting. The losses are those of single launches. */
static void test_steps_are_graphs(void **state) {
    (void)state;
    enum { STEPS = 20 };
    float loss[2][STEPS];
    if (without_cuda()) return skip();
    fake_cuda_state *c = counts();
    const long handles = c ? c->handles : 0;
    for (int plain = 0; plain < 2; plain++) {
        net n;
        weft__driver_hook.plain = plain ? 1000 : 0;
        make(&n);
        for (int i = 0; i < STEPS / 2; i++) assert_int_equal(step(&n, &loss[plain][i]), WEFT_OK);
        const fake_cuda_state before = c ? *c : (fake_cuda_state){0};
        for (int i = STEPS / 2; i < STEPS; i++) assert_int_equal(step(&n, NULL), WEFT_OK);
        if (c) {
            assert_int_equal(c->waits, before.waits);
            assert_int_equal(c->allocations, before.allocations);
            assert_int_equal(c->graphs, before.graphs);
            assert_int_equal(c->updates, before.updates);
            assert_int_equal(c->graph_launches - before.graph_launches, plain ? 0 : STEPS - STEPS / 2);
            assert_true(plain ? c->launches > before.launches + STEPS : c->launches == before.launches);
            assert_int_equal(c->kernels, before.kernels); /* nobody has waited, so no kernel has run */
        }
        assert_int_equal(step(&n, &loss[plain][STEPS / 2]), WEFT_OK);
        weft_close(n.ctx);
    }
    assert_memory_equal(loss[0], loss[1], (STEPS / 2 + 1) * sizeof **loss);
    assert_true(loss[0][STEPS / 2] < 0.9f * loss[0][0]);
    weft__driver_hook.plain = 0;
    if (!c) return;
    weft__cuda_forget(); /* and so are the contexts */
    assert_int_equal(c->handles, handles);
    assert_int_equal(c->refused, 0);
}

/* ---- programs of copies ---- */

typedef struct fixture {
    weft_context ctx;
    weft_device *device;
    weft_command list[3];
    weft_operand operands[3][2];
    weft_commands commands;
    weft_executable *program;
} fixture;

/* Does the second copy as a library would: submits it to a stream itself. */
typedef struct copy_call {
    weft_call call;
    size_t bytes;
} copy_call;

typedef struct copy_data {
    CUdeviceptr from, to;
    size_t bytes;
} copy_data;

static unsigned do_copy(void *data) {
    const copy_data *c = data;
    memcpy((void *)(uintptr_t)c->to, (void *)(uintptr_t)c->from, c->bytes);
    return 0;
}

static CUresult call_copy(weft__cuda *d, const weft_call *call, void *const *addresses, CUstream stream) {
    (void)d;
    unsigned (*enqueue)(CUstream, fake_work, const void *, unsigned long);
    *(void **)&enqueue = dlsym(dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_NOW), "fake_enqueue");
    const copy_data data = {*(CUdeviceptr *)addresses[0], *(CUdeviceptr *)addresses[1],
                            ((const copy_call *)call)->bytes};
    return enqueue(stream, do_copy, &data, sizeof data);
}

static weft_status offer(weft_gpu_device *device, weft_launches *launches, const weft_command *command) {
    static copy_call call = {{call_copy}, 0};
    (void)device;
    if (command->kind != WEFT_COMMAND_COPY || command->after) return WEFT_OK;
    weft_argument arguments[2] = {{.kind = WEFT_ARGUMENT_OPERAND, .dtype = WEFT_U8, .index = 0},
                                  {.kind = WEFT_ARGUMENT_OPERAND, .dtype = WEFT_U8, .index = 1}};
    call.bytes = (size_t)command->bytes;
    return weft__launch(launches, &(weft_launch){.name = "copy",
                                                 .n_arguments = 2,
                                                 .arguments = arguments,
                                                 .groups = {1, 1, 1},
                                                 .items = {1, 1, 1},
                                                 .call = &call.call});
}

/* Copies slot 0 -> 1 and concurrently 0 -> 2, then 2 -> 3. calls: one of the copies is a library call. */
static bool copies(fixture *f, size_t bytes, bool calls) {
    static weft_gpu_backend backend;
    static const int slots[3][2] = {{0, 1}, {0, 2}, {2, 3}};
    memset(f, 0, sizeof *f);
    if (without_cuda()) return false;
    assert_int_equal(weft__device_open(&f->ctx, "cuda", NULL, &f->device), WEFT_OK);
    backend = *weft__gpu_of(f->device)->backend;
    backend.offer = calls ? offer : NULL;
    weft__gpu_of(f->device)->backend = &backend;
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 2; k++) f->operands[i][k].slot = slots[i][k];
        f->list[i] = (weft_command){.kind = WEFT_COMMAND_COPY,
                                    .after = i != 1,
                                    .bytes = (int64_t)bytes,
                                    .n_operands = 2,
                                    .operands = f->operands[i]};
    }
    f->commands = (weft_commands){.n_slots = 4, .count = 3, .list = f->list};
    assert_int_equal(f->device->ops->build(f->device, &f->commands, &f->program), WEFT_OK);
    return true;
}

static void close_copies(fixture *f) {
    f->device->ops->executable_free(f->device, f->program);
    f->device->ops->close(f->device);
    weft__strings_free(&f->ctx);
}

static weft_buffer *buffer_of(fixture *f, size_t bytes) {
    weft_buffer *b = NULL;
    assert_int_equal(f->device->ops->buffer_new(f->device, bytes, &b), WEFT_OK);
    return b;
}

/* Numbers that wait to be read are read together, so that a loop waits once for many losses. */
static void test_numbers_are_read_together(void **state) {
    (void)state;
    weft_context *ctx;
    static weft__pending pending;
    double values[WEFT__PENDING];
    size_t count;
    fake_cuda_state *c = counts();
    if (without_cuda()) return skip();
    assert_int_equal(weft_open(&(weft_open_options){.device = "cuda"}, &ctx), WEFT_OK);
    for (int i = 0; i < WEFT__PENDING; i++) {
        const float x[2] = {(float)i, 0.5F};
        weft_scope *scope = weft_scope_open(ctx);
        weft_tensor *sum = weft_sum(weft_from(ctx, WEFT_F32, 1, (int64_t[]){2}, x), WEFT_ALL_AXES, false);
        if (i % 2) sum = weft_cast(sum, WEFT_F64);
        assert_int_equal(weft_eval(&sum, 1), WEFT_OK);
        assert_int_equal(weft__pending_add(&pending, sum), WEFT_OK);
        weft_scope_close(scope);
    }
    const long waits = c ? c->waits : 0, downloads = c ? c->downloads : 0;
    assert_int_equal(weft__pending_read(&pending, values, &count), WEFT_OK);
    assert_int_equal(count, WEFT__PENDING);
    for (int i = 0; i < WEFT__PENDING; i++) assert_true(values[i] == i + 0.5);
    if (c) {
        assert_int_equal(c->waits - waits, 1);
        assert_int_equal(c->downloads - downloads, WEFT__PENDING + 1); /* and the fault record */
    }
    weft_close(ctx);
}

/* More sets of buffers than graphs are kept for. A kept graph gets other arguments. */
static void sets_of_buffers(bool calls) {
    enum { SETS = 6, ROUNDS = 5, BYTES = 4096 };
    fixture f;
    weft_buffer *sets[SETS][4];
    if (!copies(&f, BYTES, calls)) return skip();
    const weft_device_ops *ops = f.device->ops;
    for (int s = 0; s < SETS; s++)
        for (int k = 0; k < 4; k++) sets[s][k] = k == 1 && s ? sets[0][1] : buffer_of(&f, BYTES);
    fake_cuda_state *c = counts();
    const fake_cuda_state before = c ? *c : (fake_cuda_state){0};
    for (int round = 0; round < ROUNDS; round++)
        for (int s = 0; s < SETS; s++) {
            char values[BYTES], got[BYTES];
            memset(values, 1 + round * SETS + s, sizeof values);
            assert_int_equal(ops->upload(f.device, sets[s][0], 0, values, BYTES), WEFT_OK);
            assert_int_equal(ops->run(f.device, f.program, sets[s], 1), WEFT_OK);
            for (int k = 1; k < 4; k += 2) {
                assert_int_equal(ops->download(f.device, sets[s][k], 0, got, BYTES), WEFT_OK);
                assert_memory_equal(got, values, BYTES);
            }
        }
    if (c) {
        assert_int_equal(c->graphs - before.graphs, 4);
        assert_int_equal(c->graph_launches - before.graph_launches, SETS * ROUNDS - 2);
        assert_true(c->updates > before.updates);
        assert_int_equal(c->calls > before.calls, calls);
    }
    for (int s = 0; s < SETS; s++)
        for (int k = 0; k < 4; k++)
            if (k != 1 || !s) ops->buffer_free(f.device, sets[s][k]);
    close_copies(&f);
}

static void test_sets_of_buffers(void **state) {
    (void)state;
    sets_of_buffers(false);
}

/* Concurrent commands may share the scratch memory. Here slot 1 stands for it: one command writes it, and the
 * second launch of another command reads it. */
static void test_scratch_is_ordered(void **state) {
    (void)state;
    enum { RUNS = 6, BYTES = 4096 };
    fixture f;
    weft_buffer *slots[4];
    static const int copied[3][2] = {{0, 1}, {0, 2}, {1, 3}};
    char values[BYTES], got[BYTES];
    if (!copies(&f, BYTES, false)) return skip();
    const weft_device_ops *ops = f.device->ops;
    ops->executable_free(f.device, f.program);
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 2; k++) f.operands[i][k].slot = copied[i][k];
        f.list[i].after = i == 0;
    }
    assert_int_equal(ops->build(f.device, &f.commands, &f.program), WEFT_OK);
    weft_gpu_launch *launches = ((weft_gpu_executable *)f.program)->launches;
    launches[0].scratch = launches[2].scratch = launches[2].follows = true;
    for (int k = 0; k < 4; k++) slots[k] = buffer_of(&f, BYTES);
    for (int run = 0; run < RUNS; run++) {
        memset(values, 1 + run, sizeof values);
        assert_int_equal(ops->upload(f.device, slots[0], 0, values, BYTES), WEFT_OK);
        assert_int_equal(ops->run(f.device, f.program, slots, 1), WEFT_OK);
        assert_int_equal(ops->download(f.device, slots[3], 0, got, BYTES), WEFT_OK);
        assert_memory_equal(got, values, BYTES);
    }
    for (int k = 0; k < 4; k++) ops->buffer_free(f.device, slots[k]);
    close_copies(&f);
}

/* A library call is a graph node like a kernel. */
static void test_calls(void **state) {
    (void)state;
    if (!counts()) return skip(); /* the call uses the tests' driver */
    sets_of_buffers(true);
}

/* Large uploads to a buffer that runs read. Each run must see the upload before it. */
static void test_uploads_beside_runs(void **state) {
    (void)state;
    enum { BYTES = 256 << 10, RUNS = 12 };
    fixture f;
    static char values[BYTES], got[BYTES];
    weft_buffer *slots[4], *kept[RUNS];
    if (!copies(&f, BYTES, false)) return skip();
    const weft_device_ops *ops = f.device->ops;
    for (int k = 0; k < 4; k++) slots[k] = buffer_of(&f, BYTES);
    for (int i = 0; i < RUNS; i++) {
        kept[i] = buffer_of(&f, BYTES);
        memset(values, i + 1, BYTES);
        assert_int_equal(ops->upload(f.device, slots[0], 0, values, BYTES), WEFT_OK);
        memset(values, 99, BYTES); /* the caller may use the array again */
        assert_int_equal(ops->upload(f.device, slots[0], 8, &(char){(char)(i + 50)}, 1), WEFT_OK);
        weft_buffer *const used[4] = {slots[0], slots[1], slots[2], kept[i]};
        assert_int_equal(ops->run(f.device, f.program, used, 1), WEFT_OK);
    }
    for (int i = 0; i < RUNS; i++) {
        memset(values, i + 1, BYTES);
        values[8] = (char)(i + 50);
        assert_int_equal(ops->download(f.device, kept[i], 0, got, BYTES), WEFT_OK);
        assert_memory_equal(got, values, BYTES);
        ops->buffer_free(f.device, kept[i]);
    }
    for (int k = 0; k < 4; k++) ops->buffer_free(f.device, slots[k]);
    close_copies(&f);
}

/* ---- failures ---- */

/* The GPU has less memory than requested. This is an error, and smaller requests still work. */
static void test_memory_is_gone(void **state) {
    (void)state;
    fixture f;
    weft_buffer *b = NULL, *small;
    fake_cuda_state *c;
    if (without_cuda() || !(c = counts())) return skip();
    if (!copies(&f, 64, false)) return skip();
    c->memory = c->in_use + (1 << 20);
    assert_int_equal(f.device->ops->buffer_new(f.device, 2 << 20, &b), WEFT_ERR_OOM);
    assert_non_null(strstr(weft_last_error(&f.ctx), "a buffer of 2097152 bytes: CUDA_ERROR_OUT_OF_MEMORY"));
    assert_null(b);
    small = buffer_of(&f, 1 << 19);
    f.device->ops->buffer_free(f.device, small);
    c->memory = 0;
    close_copies(&f);
}

/* If a kernel fails, the context then returns the error for every call. The GPU can be opened again after all
 * users have closed it. */
static void test_kernel_fails(void **state) {
    (void)state;
    net a, b;
    float loss;
    weft_context *ctx;
    fake_cuda_state *c;
    if (without_cuda() || !(c = counts())) return skip();
    make(&a);
    make(&b);
    assert_int_equal(step(&a, &loss), WEFT_OK);
    c->fail_launch = 3;
    assert_int_equal(step(&a, &loss), WEFT_ERR_DEVICE);
    assert_non_null(strstr(weft_last_error(a.ctx), "the device is lost (CUDA_ERROR_LAUNCH_FAILED"));
    assert_int_equal(step(&b, &loss), WEFT_ERR_DEVICE);
    weft_close(a.ctx);
    assert_int_equal(weft_open(&(weft_open_options){.device = "cuda"}, &ctx), WEFT_ERR_DEVICE);
    weft_close(ctx);
    weft_close(b.ctx);
    make(&a);
    assert_int_equal(step(&a, &loss), WEFT_OK);
    weft_close(a.ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_library),
        cmocka_unit_test(test_without_compiler),
        cmocka_unit_test(test_old_driver),
        cmocka_unit_test(test_driver_alone),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_telemetry),
        cmocka_unit_test(test_capabilities),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_steps_are_graphs),
        cmocka_unit_test(test_numbers_are_read_together),
        cmocka_unit_test(test_sets_of_buffers),
        cmocka_unit_test(test_scratch_is_ordered),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_uploads_beside_runs),
        cmocka_unit_test(test_memory_is_gone),
        cmocka_unit_test(test_kernel_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
