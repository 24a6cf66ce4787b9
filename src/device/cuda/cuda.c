/* The CUDA device: opening, errors, and the table of its functions.
 * Must not know: what kernels compute. Read next: run.c, driver/transfer.c, gpu/backend/backend.h. */
#include "device/cuda/cuda.h"
#include "device/cuda/nccl/nccl.h"
#include "device/cuda/nvml/nvml.h"

#include <stdio.h>

/* ---- errors ---- */

/* Returns whether a context answers every later call with an error. */
static bool ends_context(CUresult error) {
    return error == CUDA_ERROR_DEVICE_UNAVAILABLE || error == CUDA_ERROR_ECC_UNCORRECTABLE ||
           error == CUDA_ERROR_ILLEGAL_ADDRESS || error == CUDA_ERROR_LAUNCH_TIMEOUT ||
           (error >= CUDA_ERROR_CONTEXT_IS_DESTROYED && error <= CUDA_ERROR_LAUNCH_FAILED);
}

static weft_gpu_trouble explain(weft_gpu_device *device, int number, char message[WEFT_GPU_MESSAGE]) {
    weft__cuda *d = weft__cuda_of_gpu(device);
    const CUresult error = (CUresult)number;
    weft__cuda_error_name(error, message);
    if (d->said[0]) snprintf(message, WEFT_GPU_MESSAGE, "%.150s", d->said);
    d->said[0] = 0;
    if (error == CUDA_ERROR_OUT_OF_MEMORY) return WEFT_GPU_NO_MEMORY;
    if (!ends_context(error)) return WEFT_GPU_REFUSED;
    d->lost = true;
    return WEFT_GPU_LOST;
}

/* ---- open and close ---- */

static int enter(weft_gpu_device *device) {
    weft__cuda *d = weft__cuda_of_gpu(device);
    return (int)(d->context ? weft__cu.cuCtxPushCurrent_v2(d->context) : CUDA_ERROR_INVALID_CONTEXT);
}

static void leave(weft_gpu_device *device) {
    CUcontext was;
    (void)device;
    weft__cu.cuCtxPopCurrent_v2(&was);
}

static CUresult open_streams(weft__cuda *d) {
    CUresult error = weft__cuda_enter(d);
    if (error) return error;
    error = weft__cu.cuStreamCreate(&d->stream, CU_STREAM_NON_BLOCKING);
    if (!error) error = weft__cu.cuStreamCreate(&d->copies, CU_STREAM_NON_BLOCKING);
    weft__cuda_leave(d);
    return error;
}

static weft_status open_context(weft_gpu_device *device, const weft_open_options *options) {
    weft__cuda *d = weft__cuda_of_gpu(device);
    CUresult error;
    d->found = (const weft__cuda_found *)device->found;
    d->fast = options && options->allow_nondeterministic;
    device->base.tf32 = device->target.tf32 = options && options->tf32;
    weft__cuda_compiler_open(d);
    d->context = weft__cuda_context_take(d->found, &error);
    if (error) return weft__cuda_fail(d, error, "a context");
    error = open_streams(d);
    return error ? weft__cuda_fail(d, error, "a stream") : WEFT_OK;
}

static void drain(weft_gpu_device *device) {
    if (!weft__cuda_of_gpu(device)->lost) weft__cu.cuStreamSynchronize(weft__cuda_of_gpu(device)->stream);
}

static void close_context(weft_gpu_device *device) {
    weft__cuda *d = weft__cuda_of_gpu(device);
    if (!d->context) return;
    if (weft__cuda_enter(d) == 0) {
        weft__dnn_close(d);
        weft__blas_close(d);
        if (d->copies) weft__cu.cuStreamDestroy_v2(d->copies);
        if (d->stream) weft__cu.cuStreamDestroy_v2(d->stream);
        weft__cuda_leave(d);
    }
    weft__cuda_context_give(d->found, d->lost);
}

/* Asks the libraries in turn. Each handles its own kinds of operation. */
static weft_status offer(weft_gpu_device *device, weft_launches *launches, const weft_command *command) {
    WEFT_TRY(weft__blas_offer(weft__cuda_of_gpu(device), launches, command));
    return weft__dnn_offer(weft__cuda_of_gpu(device), launches, command);
}

static const weft_gpu_backend backend = {
    .ops = &weft__device_cuda,
    .devices = &weft__cuda_kind,
    .device_bytes = sizeof(weft__cuda),
    .no_memory = CUDA_ERROR_OUT_OF_MEMORY,
    .lost = CUDA_ERROR_DEVICE_UNAVAILABLE,
    .open = open_context,
    .drain = drain,
    .close = close_context,
    .enter = enter,
    .leave = leave,
    .explain = explain,
    .offer = offer,
    .memory = &weft__cuda_memory,
    .program = &weft__cuda_program,
};

/* ---- table of functions ---- */

static int count(void) { return weft__gpu_count(&weft__cuda_kind); }

static void cuda_describe(int i, weft_device_description *d) { weft__gpu_describe(&weft__cuda_kind, i, d); }

static weft_status outline(weft_context *ctx, const char *selector, weft_device_outline *out) {
    return weft__gpu_outline(ctx, &weft__cuda_kind, selector, out);
}

static weft_status open_cuda(weft_context *ctx, const char *selector, const weft_open_options *options,
                             weft_device **device) {
    return weft__gpu_open(ctx, &backend, selector, options, device);
}

static uint64_t memory_free(weft_device *device) {
    weft__cuda *d = weft__cuda_of(device);
    size_t left = 0, all = 0;
    if (weft__cuda_enter(d) != 0) return 0;
    const CUresult error = weft__cu.cuMemGetInfo_v2(&left, &all);
    weft__cuda_leave(d);
    return error ? 0 : left;
}

static bool takes(weft_device *device, const weft_heavy *heavy) {
    return weft__gpu_device_takes(device, heavy) && weft__blas_suits(weft__cuda_of(device), heavy);
}

static void set_timing(weft_device *device, bool on) { weft__gpu_of(device)->timing = on; }

static bool telemetry(const weft_device *device, weft_telemetry *to) {
    const weft__cuda_found *found = ((const weft__cuda *)device)->found;
    return found->bus[0] && weft__nvml_read(found->bus, to);
}

static const weft_device_extras extras = {
    .count = count,
    .outline = outline,
    .outline_card = weft__cuda_outline_card,
    .memory_free = memory_free,
    .launches_of = weft__gpu_launches_of,
    .reads_rows = weft__gpu_reads_rows,
    .run_rows = weft__gpu_run_rows,
    .set_timing = set_timing,
    .timings = weft__gpu_timings,
    .sum = weft__nccl_sum,
    .download_all = weft__gpu_download_all,
    .telemetry = telemetry,
};

const weft_device_ops weft__device_cuda = {
    .name = "cuda",
    .extras = &extras,
    .describe = cuda_describe,
    .open = open_cuda,
    .close = weft__gpu_close,
    .check_dtype = weft__gpu_check_dtype,
    .buffer_new = weft__gpu_buffer_new,
    .buffer_free = weft__gpu_buffer_free,
    .upload = weft__gpu_upload,
    .download = weft__gpu_download,
    .zero = weft__gpu_buffer_zero,
    .takes = takes,
    .build = weft__gpu_build,
    .executable_free = weft__gpu_executable_free,
    .run = weft__gpu_run,
    .synchronize = weft__gpu_synchronize,
    .take_fault = weft__gpu_take_fault,
};
