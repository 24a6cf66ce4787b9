/* Finds the adapters of WebGPU.
 * Must not know: buffers. Read next: gpu/backend/found.h, webgpu.c. */
#include "device/webgpu/devices.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/threads.h"
#include "device/signals.h"
#include "device/webgpu/hooks.h"

enum { ADAPTERS_MOST = 16 };

static weft__webgpu_found found[ADAPTERS_MOST];
static webgpu_instance instance;

webgpu_instance weft__webgpu_instance(void) { return instance; }

/* ---- adapters ---- */

static const char *backend_name(webgpu_enum type) {
    switch (type) {
    case WEBGPU_BackendType_D3D11: return "Direct3D 11";
    case WEBGPU_BackendType_D3D12: return "Direct3D 12";
    case WEBGPU_BackendType_Metal: return "Metal";
    case WEBGPU_BackendType_Vulkan: return "Vulkan";
    case WEBGPU_BackendType_OpenGL:
    case WEBGPU_BackendType_OpenGLES: return "OpenGL";
    default: return "another interface";
    }
}

static const char *type_name(webgpu_enum type) {
    switch (type) {
    case WEBGPU_AdapterType_DiscreteGPU: return "graphics card";
    case WEBGPU_AdapterType_IntegratedGPU: return "integrated graphics";
    case WEBGPU_AdapterType_CPU: return "processor";
    default: return "virtual graphics";
    }
}

static void webgpu_devices_text(webgpu_string_view view, char *to, size_t size) {
    const size_t length = !view.data ? 0 : view.length == WEBGPU_STRLEN ? strlen(view.data) : view.length;
    snprintf(to, size, "%.*s", (int)(length < size ? length : size), view.data ? view.data : "");
}

/* WebGPU does not tell the number of compute units. These are usual numbers; they decide only how the work of
 * a few kernels is divided. */
static int units_of(webgpu_enum type) {
    switch (type) {
    case WEBGPU_AdapterType_CPU: return weft__processors();
    case WEBGPU_AdapterType_DiscreteGPU: return 32;
    default: return 8;
    }
}

/* What WebGPU promises for every adapter of the level "core". Kernels of Weft need it. */
enum { ITEMS_LEAST = 256, LOCAL_LEAST = 16384, BUFFERS_LEAST = 8 };

static void webgpu_devices_check(weft__webgpu_found *f) {
    const webgpu_limits *l = &f->limits;
    const uint32_t groups = weft__webgpu_hook.groups;
    if (groups) f->limits.maxComputeWorkgroupsPerDimension = groups;
    if (l->maxComputeInvocationsPerWorkgroup < ITEMS_LEAST || l->maxComputeWorkgroupSizeX < ITEMS_LEAST ||
        l->maxComputeWorkgroupStorageSize < LOCAL_LEAST || l->maxStorageBuffersPerShaderStage < BUFFERS_LEAST)
        snprintf(f->gpu.reason, sizeof f->gpu.reason,
                 "it has work-groups of %u work-items, %u bytes of local memory and %u buffers; Weft needs "
                 "%d, %d and %d: install a newer driver",
                 l->maxComputeInvocationsPerWorkgroup, l->maxComputeWorkgroupStorageSize,
                 l->maxStorageBuffersPerShaderStage, ITEMS_LEAST, LOCAL_LEAST, BUFFERS_LEAST);
}

static uint64_t less_of(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* Describes an adapter. Returns false if the library does not. */
static bool webgpu_devices_describe(weft__webgpu_found *f, webgpu_adapter adapter) {
    char driver[160];
    webgpu_adapter_info info = {0};
    *f = (weft__webgpu_found){.adapter = adapter};
    if (weft__wgpu.wgpuAdapterGetInfo(adapter, &info) != WEBGPU_Status_Success) return false;
    const webgpu_enum type = info.adapterType;
    weft_gpu_found *g = &f->gpu;
    webgpu_devices_text(info.device, g->name, sizeof g->name);
    webgpu_devices_text(info.description, driver, sizeof driver);
    snprintf(g->maker, sizeof g->maker, "%s", backend_name(info.backendType));
    weft__wgpu.wgpuAdapterInfoFreeMembers(info);
    if (weft__wgpu.wgpuAdapterGetLimits(adapter, &f->limits) != WEBGPU_Status_Success) return false;
    f->limits.nextInChain = NULL;
    f->clocks = weft__wgpu.wgpuAdapterHasFeature(adapter, WEBGPU_FeatureName_TimestampQuery);
    g->shares_memory = type == WEBGPU_AdapterType_CPU || type == WEBGPU_AdapterType_IntegratedGPU;
    g->cpu = type == WEBGPU_AdapterType_CPU;
    g->gpu = !g->cpu;
    g->units = units_of(type);
    g->most_items = (int)f->limits.maxComputeInvocationsPerWorkgroup;
    g->local_bytes = f->limits.maxComputeWorkgroupStorageSize;
    /* bytes of a buffer are counted by 32 bits with a sign, and a binding is a whole buffer */
    g->most_bytes =
        less_of(less_of(f->limits.maxBufferSize, f->limits.maxStorageBufferBindingSize), INT32_MAX) & ~3ull;
    g->memory =
        weft__host_memory(); /* WebGPU does not tell the card's; an allocation that fails is an error */
    webgpu_devices_check(f);
    snprintf(g->detail, sizeof g->detail, "%.120s (%s, %s%s%.100s), %s", g->name, g->maker, type_name(type),
             driver[0] ? ", " : "", driver, weft__webgpu_library_name());
    return true;
}

static void adapter_came(webgpu_enum status, webgpu_adapter adapter, webgpu_string_view message, void *to,
                         void *done) {
    (void)message;
    if (status == WEBGPU_Status_Success) *(webgpu_adapter *)to = adapter;
    *(bool *)done = true;
}

void weft__webgpu_await(webgpu_future request, const bool *done) {
    webgpu_future_wait_info info = {.future = request};
    while (!*done)
        if (weft__wgpu.wgpuDeviceTick) /* the other function would also touch the devices of other threads */
            weft__wgpu.wgpuInstanceWaitAny(instance, 1, &info, 0);
        else
            weft__wgpu.wgpuInstanceProcessEvents(instance);
}

webgpu_adapter weft__webgpu_request_adapter(webgpu_enum preference) {
    const webgpu_request_adapter_options options = {.featureLevel = WEBGPU_FeatureLevel_Core,
                                                    .powerPreference = preference};
    webgpu_adapter adapter = NULL;
    bool done = false;
    weft__webgpu_await(
        weft__wgpu.wgpuInstanceRequestAdapter(
            instance, &options,
            (webgpu_request_adapter_callback_info){.mode = WEBGPU_CallbackMode_AllowProcessEvents,
                                                   .callback = adapter_came,
                                                   .userdata1 = &adapter,
                                                   .userdata2 = &done}),
        &done);
    return adapter;
}

/* Describes all adapters. Returns their number. */
static int list_adapters(weft__webgpu_found all[ADAPTERS_MOST]) {
    const webgpu_enumerate_options which = {.backends = WEBGPU_InstanceBackend_Primary};
    webgpu_adapter adapters[ADAPTERS_MOST];
    int n = 0;
    if (weft__wgpu.wgpuInstanceEnumerateAdapters(instance, &which, NULL) > ADAPTERS_MOST) return 0;
    const size_t count = weft__wgpu.wgpuInstanceEnumerateAdapters(instance, &which, adapters);
    for (size_t i = 0; i < count; i++)
        if (webgpu_devices_describe(&all[n], adapters[i])) n++;
    return n;
}

/* The same for a library that cannot list them, such as Dawn. It gives a fast one and one that saves power,
 * which are often the same. */
static int ask_for_adapters(weft__webgpu_found all[ADAPTERS_MOST]) {
    static const webgpu_enum preferences[] = {WEBGPU_PowerPreference_HighPerformance,
                                              WEBGPU_PowerPreference_LowPower};
    int n = 0;
    for (int i = 0; i < 2; i++) {
        webgpu_adapter adapter = weft__webgpu_request_adapter(preferences[i]);
        if (!adapter) continue;
        if (webgpu_devices_describe(&all[n], adapter) &&
            (n == 0 || strcmp(all[n].gpu.detail, all[0].gpu.detail) != 0)) {
            all[n].adapter = NULL; /* an adapter gives one device only */
            all[n++].preference = preferences[i];
        }
        weft__wgpu.wgpuAdapterRelease(adapter);
    }
    return n;
}

/* Cards first: "webgpu" alone must not mean the processor if there is a card. */
static int rank(const weft__webgpu_found *f) { return f->gpu.cpu ? 2 : f->gpu.shares_memory ? 1 : 0; }

static int webgpu_devices_collect(void) {
    weft__webgpu_found all[ADAPTERS_MOST];
    const int n = weft__wgpu.wgpuInstanceEnumerateAdapters ? list_adapters(all) : ask_for_adapters(all);
    int count = 0;
    for (int r = 0; r <= 2; r++)
        for (int i = 0; i < n; i++) {
            if (rank(&all[i]) != r) continue;
            snprintf(all[i].gpu.spec, sizeof all[i].gpu.spec, "webgpu:%d", count);
            found[count++] = all[i];
        }
    return count;
}

static int webgpu_devices_look(const char **why) {
    /* without this, wgpu-native also starts OpenGL, which writes to the terminal */
    const webgpu_instance_extras extras = {.chain = {.sType = WEBGPU_SType_InstanceExtras},
                                           .backends = WEBGPU_InstanceBackend_Primary};
    webgpu_instance_descriptor wanted = {.nextInChain = NULL};
    weft__signals signals;
    weft__keep_signals(&signals);
    *why = weft__webgpu_open_library();
    if (!*why && !instance) {
        if (weft__wgpu.wgpuGetVersion) wanted.nextInChain = (webgpu_chained_struct *)(uintptr_t)&extras.chain;
        instance = weft__wgpu.wgpuCreateInstance(&wanted);
    }
    const int count = *why || !instance ? 0 : webgpu_devices_collect();
    weft__restore_signals(&signals);
    if (!count && !*why)
        *why = "the library finds no adapter: install the graphics driver of your card with Vulkan (Debian: "
               "mesa-vulkan-drivers and libvulkan1, which also compute on the processor)";
    return count;
}

static void adapt(const weft_gpu_found *found_device, weft_target *target) {
    target->on_processor = found_device->cpu && !weft__webgpu_hook.card;
}

weft_gpu_devices weft__webgpu_kind = {.name = "webgpu",
                                      .dialect = WEFT_DIALECT_WGSL,
                                      .list = found,
                                      .bytes = sizeof *found,
                                      .look = webgpu_devices_look,
                                      .adapt = adapt,
                                      .lock = PTHREAD_MUTEX_INITIALIZER};

void weft__webgpu_forget(void) {
    weft__webgpu_kind.looked = false;
    weft__webgpu_forget_library();
}
