/* src/device/hip: what differs from CUDA, and what happens without a runtime. Compares the declarations with
 * HIP's header if it is installed. With the simulated runtime (tests/hip/fake_hip.h) it also checks which
 * calls a step makes, that each thread keeps its own current device, and that everything is freed. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <ftw.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#if __has_include(<hip/hip_runtime_api.h>)
#define __HIP_PLATFORM_AMD__
#include <hip/hip_runtime_api.h>
#undef hipGetDeviceProperties /* a macro since ROCm 6 */
#endif
#include <weft/weft.h>

#include "component.h"
#include "cuda/fake.h"
#include "device/hip/hip.h"
#include "gpu.h"

#if __has_include(<hip/hip_runtime_api.h>)
#define HIP_ATTRIBUTE(cuda, hip, value) _Static_assert((int)(hip) == (value), #hip " has another value");
#define HIP_NODE(type, name)                                                                                 \
    _Static_assert(offsetof(weft__hip_node, name) == offsetof(hipKernelNodeParams, name),                    \
                   #name " is elsewhere");
#include "device/hip/hip.def"
#undef HIP_ATTRIBUTE
#undef HIP_NODE
_Static_assert(sizeof(weft__hip_node) == sizeof(hipKernelNodeParams), "a field is missing");
#define HIP_PROPERTIES(name, at) offset == (at) ||
enum { offset = offsetof(hipDeviceProp_t, gcnArchName) };
_Static_assert(
#include "device/hip/hip.def"
    0, "gcnArchName is elsewhere");
#undef HIP_PROPERTIES
_Static_assert((int)hipErrorOutOfMemory == CUDA_ERROR_OUT_OF_MEMORY, "errors have the numbers of CUDA");
_Static_assert((int)hipErrorNotReady == CUDA_ERROR_NOT_READY, "errors have the numbers of CUDA");
_Static_assert((int)hipErrorIllegalAddress == CUDA_ERROR_ILLEGAL_ADDRESS, "errors have the numbers of CUDA");
_Static_assert((int)hipErrorLaunchFailure == CUDA_ERROR_LAUNCH_FAILED, "errors have the numbers of CUDA");
_Static_assert(hipStreamNonBlocking == CU_STREAM_NON_BLOCKING, "flags have the values of CUDA");
_Static_assert(hipEventDisableTiming == CU_EVENT_DISABLE_TIMING, "flags have the values of CUDA");
_Static_assert(hipHostMallocPortable == CU_MEMHOSTALLOC_PORTABLE, "flags have the values of CUDA");
#endif

/* The counters of the simulated runtime. NULL if it is real; the test then ends. */
static fake_cuda_state *counts(void) {
    if (weft__hip_open_library()) return NULL;
    void *library = dlopen("libamdhip64.so.6", RTLD_NOLOAD | RTLD_NOW);
    return library ? dlsym(library, "fake_cuda") : NULL;
}

static bool without_hip(void) {
    const weft__cuda_found *list;
    const char *why;
    if (weft__hip_devices(&list, &why) && !list[0].gpu.reason[0]) return false;
    print_message("skipped, no HIP: %s%s\n", why, list[0].gpu.reason);
    return true;
}

static void hip_skip(void) { print_message("skipped, it needs the simulated runtime\n"); }

/* ---- components ---- */

static void refuses(const char *spec, const char *says) {
    weft_context ctx = {0};
    weft_device *device;
    assert_int_equal(weft__device_open(&ctx, spec, NULL, &device), WEFT_ERR_DEVICE);
    if (!strstr(weft_last_error(&ctx), says)) print_error("%s\n", weft_last_error(&ctx));
    assert_non_null(strstr(weft_last_error(&ctx), says));
}

static void test_without_library(void **state) {
    (void)state;
    weft_device_description info;
    char text[WEFT_COMPONENT_TEXT];
    weft__hip_hook.library = "libabsent.so";
    weft__hip_forget();
    refuses("hip", "device hip: libabsent.so cannot be opened: install the HIP runtime of ROCm");
    refuses("rocm", "device hip: libabsent.so");
    assert_int_equal(weft__device_count(&weft__device_hip), 1);
    weft__device_hip.describe(&weft__device_hip, 0, &info);
    assert_string_equal(info.name, "hip");
    assert_false(info.present);
    assert_false(test_has_component(&weft__device_hip, "runtime", text));
    assert_non_null(strstr(text, "WEFT_HIP_PATH"));
    weft__hip_hook.node = "/dev/null"; /* there is a card */
    assert_false(weft__hip_driver());
    weft__hip_hook.library = "libm.so.6"; /* not HIP */
    weft__hip_forget();
    refuses("hip", "libm.so.6 has no hipInit: install ROCm 5, 6 or 7");
    weft__hip_hook = (weft__hip_hooks){NULL};
    weft__hip_forget();
}

/* The runtime finds no card: the message tells what stands in the way. */
static void test_without_card(void **state) {
    (void)state;
    if (!counts()) return hip_skip();
    setenv("FAKE_CUDA_CARDS", "0", 1);
    weft__hip_hook.node = "/absent";
    weft__hip_forget();
    refuses("hip", "there is no /dev/kfd: the kernel's module amdgpu makes it");
    assert_false(weft__hip_driver());
    weft__hip_hook.node = "/dev/null"; /* which everybody may open */
    weft__hip_forget();
    refuses("hip", "HIP finds no card (hipErrorNoDevice: ");
    refuses("hip", "check HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES");
    assert_true(weft__hip_driver());
    if (geteuid() != 0) {
        weft__hip_hook.node = "/etc/shadow"; /* which only root may open */
        weft__hip_forget();
        refuses("hip", "add the user to the groups render and video");
    }
    unsetenv("FAKE_CUDA_CARDS");
    weft__hip_hook.node = NULL;
    weft__hip_forget();
}

static void test_components(void **state) {
    (void)state;
    char text[WEFT_COMPONENT_TEXT];
    if (!counts()) return hip_skip();
    assert_true(test_has_component(&weft__device_hip, "runtime", text));
    assert_string_equal(text, "HIP 6.3.42134");
    assert_true(test_has_component(&weft__device_hip, "hipRTC", text));
    assert_string_equal(text, "hipRTC 6.3");
    assert_true(test_has_component(&weft__device_hip, "card", text));
    assert_non_null(strstr(text, "Test driver, no card A, gfx"));
    assert_null(strchr(text, ':'));
    weft__hip_hook.missing = "hiprtcGetCodeSize";
    weft__hip_forget();
    refuses("hip", "the kernel compiler is missing: ");
    refuses("hip", "has no hiprtcGetCodeSize: install hipRTC of ROCm, in the version of the HIP runtime");
    assert_false(test_has_component(&weft__device_hip, "hipRTC", text));
    weft__hip_hook.missing = NULL;
    weft__hip_forget();
}

/* ROCm 6 and ROCm 5 have different structures with the architecture. */
static void test_architecture(void **state) {
    (void)state;
    static const char *const missing[] = {NULL, "hipGetDevicePropertiesR0600"};
    const weft__cuda_found *list;
    weft_device_description info;
    if (!counts()) return hip_skip();
    for (int i = 0; i < 2; i++) {
        weft__hip_hook.missing = missing[i];
        weft__hip_forget();
        assert_int_equal(weft__hip_devices(&list, NULL), 2);
        const bool wide = list[0].wave == 64;
        assert_string_equal(list[0].arch, wide ? "gfx90a:sramecc+:xnack-" : "gfx1100");
        assert_non_null(strstr(list[0].compiler, list[0].arch)); /* part of the keys of kernels on disk */
        weft__device_hip.describe(&weft__device_hip, 1, &info);
        assert_string_equal(info.name, "hip:1");
        assert_true(info.present && info.card && info.f64 && info.threads == 2);
        assert_non_null(
            strstr(info.detail, wide ? "card B, gfx90a, wavefronts of 64, HIP 6.3.42134, hipRTC 6.3"
                                     : "card B, gfx1100, wavefronts of 32, HIP 6.3.42134"));
    }
    weft__hip_hook.missing = NULL;
    weft__hip_forget();
}

/* Wavefronts of matrix cores, by the architecture. */
static void test_matrix_cores(void **state) {
    static const struct {
        const char *arch;
        int lanes;
    } cards[] = {{"gfx906", 0},   {"gfx908:sramecc+:xnack-", 64},
                 {"gfx90a", 64},  {"gfx942", 64},
                 {"gfx90c", 0},   {"gfx1030", 0},
                 {"gfx1100", 32}, {"gfx1151", 32},
                 {"gfx1201", 32}, {"gfx1250", 0},
                 {"gfx11", 0}};
    (void)state;
    for (size_t i = 0; i < sizeof cards / sizeof *cards; i++) {
        weft__cuda_found card = {.wave = strncmp(cards[i].arch, "gfx9", 4) == 0 ? 64 : 32};
        weft_target target = {0};
        snprintf(card.arch, sizeof card.arch, "%s", cards[i].arch);
        weft__hip_kind.adapt(&card.gpu, &target);
        assert_int_equal(target.matrix_lanes, cards[i].lanes);
        assert_int_equal(target.capability, 0);
    }
}

static void opens(const char *spec, const char *name) {
    weft_context ctx = {0};
    weft_device *device;
    if (weft__device_open(&ctx, spec, NULL, &device) != WEFT_OK) fail_msg("%s", weft_last_error(&ctx));
    assert_string_equal(device->name, name);
    device->ops->close(device);
    weft__strings_free(&ctx);
}

static void test_names(void **state) {
    (void)state;
    weft_device_outline outline;
    if (!counts()) return hip_skip();
    weft__hip_hook.node = "/dev/null"; /* so there is a card */
    opens("hip", "hip:0");
    opens("hip:1", "hip:1");
    opens("hip:card B", "hip:1");
    opens("rocm", "hip:0");
    opens("rocm:1", "hip:1");
    refuses("hip:99", "there are hip:0 (Test driver, no card A), hip:1");
    refuses("rocm:", "missing after the colon");
    if (weft__cuda_open_library()) opens("gpu", "hip:0");
    weft__hip_hook.node = NULL;
    assert_int_equal(weft__device_outline_of(NULL, "hip", &outline), WEFT_OK);
    assert_false(outline.absent);
    weft__hip_hook.library = "libabsent.so";
    weft__hip_forget();
    assert_int_equal(weft__device_outline_of(NULL, "hip", &outline), WEFT_OK); /* of a common card */
    assert_true(outline.absent && outline.launches && outline.target.capability == 0);
    assert_int_equal(outline.target.matrix_lanes, 64);
    assert_non_null(strstr(outline.detail, "plans are for one of gfx90a"));
    weft__hip_hook.library = NULL;
    weft__hip_forget();
}

/* ---- steps ---- */

#define SHAPE(...)                                                                                           \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) { __VA_ARGS__ }
enum { ROWS = 12, IN = 5, WIDTH = 7, CLASSES = 3, STEPS = 12 };

typedef struct net {
    weft_context *ctx;
    weft_module *module;
    weft_optimizer *sgd;
    weft_tensor *x, *y;
} net;

static void make(net *n, const char *device) {
    float x[ROWS * IN];
    int32_t y[ROWS];
    assert_int_equal(weft_open(&(weft_open_options){.device = device, .seed = 3}, &n->ctx), WEFT_OK);
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
    if (status == WEFT_OK) status = weft_read(l, loss, sizeof *loss);
    weft_scope_close(scope);
    return status;
}

/* Steps become graphs, and compute what the cpu computes. */
static void test_steps_are_graphs(void **state) {
    (void)state;
    float loss[2][STEPS];
    if (without_hip()) return;
    fake_cuda_state *c = counts();
    const long handles = c ? c->handles : 0, graphs = c ? c->graph_launches : 0;
    for (int cpu = 0; cpu < 2; cpu++) {
        net n = {0};
        make(&n, cpu ? "cpu" : "hip");
        for (int i = 0; i < STEPS; i++) assert_int_equal(step(&n, &loss[cpu][i]), WEFT_OK);
        weft_close(n.ctx);
    }
    for (int i = 0; i < STEPS; i++) assert_true(fabsf(loss[0][i] - loss[1][i]) < 1e-5f);
    assert_true(loss[0][STEPS - 1] < 0.9f * loss[0][0]);
    if (!c) return;
    assert_true(c->graph_launches >= graphs + STEPS - 2);
    assert_int_equal(c->handles, handles);
    assert_int_equal(c->refused, 0);
}

/* Other code of the thread finds its own device again. */
static void test_current_device(void **state) {
    (void)state;
    weft_context *ctx;
    int device = -1;
    if (!counts()) return hip_skip();
    opens("hip:0", "hip:0");
    assert_int_equal(weft__hip.hipSetDevice(1), 0);
    assert_int_equal(weft_open(&(weft_open_options){.device = "hip:0"}, &ctx), WEFT_OK);
    weft_close(ctx);
    assert_int_equal(weft__hip.hipGetDevice(&device), 0);
    assert_int_equal(device, 1);
    assert_int_equal(weft__hip.hipSetDevice(0), 0);
}

/* Errors have HIP's names. A card whose kernel failed works again once everybody has closed it. */
static void test_errors(void **state) {
    (void)state;
    fake_cuda_state *c = counts();
    float loss;
    net n = {0};
    if (!c) return hip_skip();
    make(&n, "hip");
    c->fail_alloc = 1;
    assert_int_equal(step(&n, &loss), WEFT_ERR_OOM);
    c->fail_alloc = 0;
    assert_int_equal(step(&n, &loss), WEFT_OK);
    c->fail_launch = 1;
    assert_int_equal(step(&n, &loss), WEFT_ERR_DEVICE);
    assert_non_null(strstr(weft_last_error(n.ctx), "hipErrorLaunchFailed"));
    weft_close(n.ctx);
    c->fail_launch = 0;
    opens("hip", "hip:0");
    assert_int_equal(c->refused, 0);
}

/* ---- telemetry ---- */

static void put_file(const char *folder, const char *name, const char *text) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* A folder as amdgpu makes it. The second card measures less, and the third one is not there. */
static void make_cards(char root[]) {
    char folder[1024];
    assert_non_null(mkdtemp(root));
    for (int card = 0; card < 2; card++) {
        const char *const parts[] = {"", "/hwmon", "/hwmon/hwmon7"};
        for (int i = 0; i < 3; i++) {
            snprintf(folder, sizeof folder, "%s/0000:%02x:00.0%s", root, 0x3a + card, parts[i]);
            assert_int_equal(mkdir(folder, 0700), 0);
        }
        put_file(folder, card ? "temp2_input" : "temp1_input", "45000\n");
        put_file(folder, card ? "power1_input" : "power1_average", card ? "no number\n" : "70500000\n");
        if (card == 0) put_file(folder, "temp2_input", "51000\n");
        if (card == 0) put_file(folder, "freq1_input", "1980000000\n");
        if (card == 0) put_file(folder, "freq2_input", "2600000000\n");
        snprintf(folder, sizeof folder, "%s/0000:%02x:00.0", root, 0x3a + card);
        put_file(folder, "gpu_busy_percent", card ? "90\n" : "9\n");
        if (card == 0) put_file(folder, "mem_info_vram_used", "1000000000\n");
    }
}

static int remove_one(const char *path, const struct stat *what, int kind, struct FTW *at) {
    (void)what, (void)kind, (void)at;
    return remove(path);
}

static void test_telemetry(void **state) {
    char root[] = "/tmp/weft-hip-XXXXXX";
    weft_telemetry t;
    (void)state;
    if (!counts()) return hip_skip();
    make_cards(root);
    for (int card = 0; card < 3; card++) {
        weft_context *ctx;
        weft__hip_hook.bus = card < 2 ? root : "/no/such/folder";
        assert_int_equal(weft_open(&(weft_open_options){.device = card == 1 ? "hip:1" : "hip:0"}, &ctx),
                         WEFT_OK);
        assert_int_equal(weft_device_telemetry(ctx, &t), card < 2);
        if (card < 2) assert_true(fabs(t.utilisation - (card ? 0.9 : 0.09)) < 1e-9 && t.temperature == 45);
        if (card == 0) assert_true(t.memory_used == 1e9 && fabs(t.power - 70.5) < 1e-9);
        if (card == 0) assert_true(fabs(t.clock - 1980) < 1e-6 && fabs(t.memory_clock - 2600) < 1e-6);
        if (card)
            assert_true(isnan(t.memory_used) && isnan(t.power) && isnan(t.clock) && isnan(t.memory_clock));
        weft_close(ctx);
    }
    weft__hip_hook.bus = NULL;
    assert_int_equal(nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_library),  cmocka_unit_test(test_without_card),
        cmocka_unit_test(test_components),       cmocka_unit_test(test_architecture),
        cmocka_unit_test(test_matrix_cores),     cmocka_unit_test(test_names),
        cmocka_unit_test(test_steps_are_graphs), cmocka_unit_test(test_current_device),
        cmocka_unit_test(test_errors),           cmocka_unit_test(test_telemetry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
