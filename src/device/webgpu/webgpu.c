/* Opens a WebGPU device, and is its entry in the registry.
 * Must not know: programs. Read next: webgpu.h, memory.c, run.c. */
#include "device/webgpu/webgpu.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "device/signals.h"

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
    .ops = &weft__device_webgpu,
    .devices = &weft__webgpu_kind,
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

/* ---- table of functions ---- */

static int webgpu_count(void) { return weft__gpu_count(&weft__webgpu_kind); }

static void webgpu_describe(int i, weft_device_description *d) {
    weft__gpu_describe(&weft__webgpu_kind, i, d);
}

static weft_status webgpu_outline(weft_context *ctx, const char *selector, weft_device_outline *out) {
    return weft__gpu_outline(ctx, &weft__webgpu_kind, selector, out);
}

static weft_status open_webgpu(weft_context *ctx, const char *selector, const weft_open_options *options,
                               weft_device **device) {
    weft__signals signals;
    weft__keep_signals(&signals);
    const weft_status status = weft__gpu_open(ctx, &backend, selector, options, device);
    weft__restore_signals(&signals);
    return status;
}

static void webgpu_set_timing(weft_device *device, bool on) {
    weft__webgpu *d = weft__webgpu_of(device);
    d->gpu.timing = on && d->found->clocks;
}

static const weft_device_extras extras = {
    .count = webgpu_count,
    .outline = webgpu_outline,
    .memory_free = weft__gpu_memory_left,
    .launches_of = weft__gpu_launches_of,
    .reads_rows = weft__gpu_reads_rows,
    .run_rows = weft__gpu_run_rows,
    .set_timing = webgpu_set_timing,
    .timings = weft__gpu_timings,
    .download_all = weft__gpu_download_all,
};

const weft_device_ops weft__device_webgpu = {
    .name = "webgpu",
    .extras = &extras,
    .describe = webgpu_describe,
    .open = open_webgpu,
    .close = weft__gpu_close,
    .check_dtype = weft__gpu_check_dtype,
    .buffer_new = weft__gpu_buffer_new,
    .buffer_free = weft__gpu_buffer_free,
    .upload = weft__gpu_upload,
    .download = weft__gpu_download,
    .zero = weft__gpu_buffer_zero,
    .takes = weft__gpu_device_takes,
    .build = weft__gpu_build,
    .executable_free = weft__gpu_executable_free,
    .run = weft__gpu_run,
    .synchronize = weft__gpu_synchronize,
    .take_fault = weft__gpu_take_fault,
};
