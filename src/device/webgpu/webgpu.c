/* Opens a WebGPU device, and is its module.
 * Must not know: programs. Read next: webgpu.h, memory.c, run.c. */
#include "device/webgpu/webgpu.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* ---- errors ---- */

/* The last error that the library reported in this thread. It calls back in the call that failed. */
static _Thread_local int error_now;
static _Thread_local char error_text[600];

static void note(int error, webgpu_string_view message) {
    const size_t length = !message.data                     ? 0
                          : message.length == WEBGPU_STRLEN ? strlen(message.data)
                                                            : message.length;
    if (error_now) return; /* the first one is the cause */
    error_now = error;
    snprintf(error_text, sizeof error_text, "%.*s", (int)(length < 599 ? length : 599),
             message.data ? message.data : "");
    for (char *c = error_text; *c; c++)
        if (*c == '\n') *c = ' ';
}

int weft__webgpu_error(const weft__webgpu *d) {
    const int error = error_now;
    error_now = WEBGPU_FINE;
    return d->lost ? WEBGPU_LOST : error;
}

const char *weft__webgpu_message(void) { return error_text; }

static void on_error(const webgpu_device *device, webgpu_enum type, webgpu_string_view message, void *user,
                     void *unused) {
    (void)device;
    (void)user;
    (void)unused;
    note(type == WEBGPU_ErrorType_OutOfMemory ? WEBGPU_NO_MEMORY : WEBGPU_REFUSED, message);
}

static void on_loss(const webgpu_device *device, webgpu_enum reason, webgpu_string_view message, void *user,
                    void *unused) {
    (void)device;
    (void)message;
    (void)unused;
    if (reason != WEBGPU_DeviceLostReason_Destroyed && reason != WEBGPU_DeviceLostReason_CallbackCancelled)
        ((weft__webgpu *)user)->lost = true;
}

static weft_gpu_trouble webgpu_explain(weft_gpu_device *device, int error, char message[WEFT_GPU_MESSAGE]) {
    (void)device;
    snprintf(message, WEFT_GPU_MESSAGE, "%.*s", WEFT_GPU_MESSAGE - 1,
             error_text[0]               ? error_text
             : error == WEBGPU_NO_MEMORY ? "out of memory"
             : error == WEBGPU_LOST      ? "the driver ended it"
                                         : "refused");
    error_text[0] = 0; /* the next error may have no text of its own */
    return error == WEBGPU_NO_MEMORY ? WEFT_GPU_NO_MEMORY
           : error == WEBGPU_LOST    ? WEFT_GPU_LOST
                                     : WEFT_GPU_REFUSED;
}

/* ---- submitting and waiting ---- */

int weft__webgpu_submit(weft__webgpu *d, webgpu_command_encoder encoder) {
    webgpu_command_buffer commands = weft__wgpu.wgpuCommandEncoderFinish(encoder, NULL);
    int error = weft__webgpu_error(d);
    if (!error) {
        weft__wgpu.wgpuQueueSubmit(d->queue, 1, &commands);
        error = weft__webgpu_error(d);
    }
    d->unsubmitted = 0;
    if (commands) weft__wgpu.wgpuCommandBufferRelease(commands);
    weft__wgpu.wgpuCommandEncoderRelease(encoder);
    return error;
}

void weft__webgpu_rest(const weft__webgpu *d) {
    if (weft__wgpu.wgpuDevicePoll) {
        weft__wgpu.wgpuDevicePoll(d->device, true, NULL);
        return;
    }
    if (weft__wgpu.wgpuDeviceTick)
        weft__wgpu.wgpuDeviceTick(d->device);
    else
        weft__wgpu.wgpuInstanceProcessEvents(weft__webgpu_instance());
    nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
}

static void work_done(webgpu_enum status, webgpu_string_view message, void *to, void *unused) {
    (void)message;
    (void)unused;
    *(int *)to = (int)status;
}

int weft__webgpu_wait(weft__webgpu *d) {
    d->ahead = d->answer = 0;
    weft__wgpu.wgpuQueueOnSubmittedWorkDone(
        d->queue, (webgpu_queue_work_done_callback_info){.mode = WEBGPU_CallbackMode_AllowSpontaneous,
                                                         .callback = work_done,
                                                         .userdata1 = &d->answer});
    while (!d->answer && !d->lost) weft__webgpu_rest(d);
    return weft__webgpu_error(d);
}

/* ---- open and close ---- */

enum { DAWN_TOGGLES = 0x0005000A }; /* WGPUSType_DawnTogglesDescriptor */

static void device_came(webgpu_enum status, webgpu_device device, webgpu_string_view message, void *to,
                        void *done) {
    if (status == WEBGPU_Status_Success)
        *(webgpu_device *)to = device;
    else
        note(WEBGPU_REFUSED, message);
    *(bool *)done = true;
}

/* Asks for the device. toggles: what Dawn should do otherwise, or NULL. */
static void request_device(weft__webgpu *d, webgpu_adapter adapter, webgpu_chained_struct *toggles) {
    const webgpu_feature_name clocks = WEBGPU_FeatureName_TimestampQuery;
    bool done = false;
    webgpu_device_descriptor wanted = {
        .nextInChain = toggles,
        .requiredFeatures = &clocks,
        .requiredFeatureCount = d->found->clocks,
        .requiredLimits = &d->found->limits,
        .deviceLostCallbackInfo = {.mode = WEBGPU_CallbackMode_AllowSpontaneous,
                                   .callback = on_loss,
                                   .userdata1 = d},
        .uncapturedErrorCallbackInfo = {.callback = on_error, .userdata1 = d}};
    weft__webgpu_await(weft__wgpu.wgpuAdapterRequestDevice(
                           adapter, &wanted,
                           (webgpu_request_device_callback_info){.mode = WEBGPU_CallbackMode_AllowSpontaneous,
                                                                 .callback = device_came,
                                                                 .userdata1 = &d->device,
                                                                 .userdata2 = &done}),
                       &done);
}

/* Dawn rounds times to 0.1 ms, for pages of the web, unless it is told otherwise. Its checks of indices stay
 * on: without them SwiftShader crashed when two devices computed at once. */
static void request_of_dawn(weft__webgpu *d) {
    static const char *const off[] = {"timestamp_quantization"};
    webgpu_dawn_toggles toggles = {
        .chain = {.sType = DAWN_TOGGLES}, .disabledToggleCount = 1, .disabledToggles = off};
    webgpu_adapter adapter = weft__webgpu_request_adapter(d->found->preference);
    if (!adapter) return;
    request_device(d, adapter, weft__wgpu.wgpuDeviceTick ? &toggles.chain : NULL);
    weft__wgpu.wgpuAdapterRelease(adapter);
}

static weft_status webgpu_open(weft_gpu_device *device, const weft_open_options *options) {
    weft__webgpu *d = weft__webgpu_of_gpu(device);
    (void)options;
    d->found = (const weft__webgpu_found *)device->found;
    device->base.buffers_most = (int)d->found->limits.maxStorageBuffersPerShaderStage;
    if (d->found->adapter)
        request_device(d, d->found->adapter, NULL);
    else
        request_of_dawn(d);
    int error = weft__webgpu_error(d);
    if (!error && !d->device) error = WEBGPU_REFUSED;
    if (!error) {
        d->queue = weft__wgpu.wgpuDeviceGetQueue(d->device);
        error = weft__webgpu_compiler_open(d);
    }
    return error ? weft__gpu_fail(device, error, "opening the device") : WEFT_OK;
}

static void webgpu_drain(weft_gpu_device *device) {
    weft__webgpu *d = weft__webgpu_of_gpu(device);
    if (d->queue) weft__webgpu_wait(d);
}

static void webgpu_close(weft_gpu_device *device) {
    weft__webgpu *d = weft__webgpu_of_gpu(device);
    weft__webgpu_memory_close(d);
    if (d->numbers) weft__wgpu.wgpuBindGroupLayoutRelease(d->numbers);
    if (d->queue) weft__wgpu.wgpuQueueRelease(d->queue);
    if (d->device) {
        weft__wgpu.wgpuDeviceDestroy(d->device);
        weft__wgpu.wgpuDeviceRelease(d->device);
        if (!weft__wgpu.wgpuDeviceTick) weft__wgpu.wgpuInstanceProcessEvents(weft__webgpu_instance());
    }
    weft__webgpu_error(d); /* closing a lost device reports errors */
}

static const weft_gpu_backend backend = {
    .devices = &weft__webgpu_kind,
    .signals = true,
    .device_bytes = sizeof(weft__webgpu),
    .no_memory = WEBGPU_NO_MEMORY,
    .lost = WEBGPU_LOST,
    .open = webgpu_open,
    .drain = webgpu_drain,
    .close = webgpu_close,
    .explain = webgpu_explain,
    .memory = &weft__webgpu_memory,
    .program = &weft__webgpu_program,
};

/* ---- module ---- */

static void webgpu_set_timing(weft_device *device, bool on) {
    weft__webgpu *d = weft__webgpu_of(device);
    d->gpu.timing = on && d->found->clocks;
}

static const weft_device_extras extras = {
    WEFT_GPU_EXTRAS,
    .memory_free = weft__gpu_memory_left,
    .set_timing = webgpu_set_timing,
};

static const weft_device_ops ops = {
    WEFT_GPU_OPS,
    .name = "webgpu",
    .extras = &extras,
    .takes = weft__gpu_device_takes,
};

static const weft_device_alias aliases[] = {
    {"vulkan", "Vulkan"}, {"metal", "Metal"}, {"dx12", "Direct3D 12"}, {NULL, NULL}};

static const char *find_library(char text[WEFT_COMPONENT_TEXT]) {
    const char *why = weft__webgpu_open_library();
    if (!why) snprintf(text, WEFT_COMPONENT_TEXT, "%s", weft__webgpu_library_name());
    return why;
}

static const char *find_driver(char text[WEFT_COMPONENT_TEXT]) {
    return weft__gpu_find_devices(&weft__webgpu_kind, text);
}

static const weft_device_component components[] = {
    {"library", "wgpu-native 29", "make webgpu; PyPI: wgpu 0.32.0", "there is no WebGPU device",
     find_library},
    {"driver", "Vulkan 1.1, Metal, Direct3D 12",
     "the driver of the card; Debian: mesa-vulkan-drivers (also computes on the processor)",
     "there is no WebGPU device", find_driver},
    {.name = NULL}};

const weft_device_module weft__device_webgpu = {
    WEFT_GPU_MODULE,
    .ops = &ops,
    .backend = &backend,
    .serves = "graphics cards with Vulkan, Metal or Direct3D 12",
    .chosen = "`webgpu:1`, `webgpu:NAME`",
    .card = "webgpu:gpu",
    .aliases = aliases,
    .components = components,
};
