/* The HIP device: the table of its functions. All of them are those of CUDA's driver. hipBLASLt computes
 * matmuls, and RCCL adds the gradients of several cards. Weft's own kernels compute convolutions and
 * attention. Must not know: what kernels compute. Read next: hip.h, cuda/driver/open.c, cuda/run.c. */
#include "device/cuda/nccl/link.h"
#include "device/hip/hip.h"

static void hip_close(weft_gpu_device *device) {
    weft__cuda *d = weft__cuda_of_gpu(device);
    if (d->context && weft__cuda_enter(d) == 0) {
        weft__blas_close(d);
        weft__cuda_leave(d);
    }
    weft__nccl_exchanges_close(d);
    weft__cuda_close(device);
}

static weft_status hip_offer(weft_gpu_device *device, weft_launches *launches, const weft_command *command) {
    WEFT_TRY(weft__nccl_offer_exchange(weft__cuda_of_gpu(device), launches, command));
    return weft__blas_offer(weft__cuda_of_gpu(device), launches, command);
}

static const weft_gpu_backend backend = {
    .ops = &weft__device_hip,
    .devices = &weft__hip_kind,
    .device_bytes = sizeof(weft__cuda),
    .no_memory = CUDA_ERROR_OUT_OF_MEMORY,
    .lost = CUDA_ERROR_DEVICE_UNAVAILABLE,
    .open = weft__cuda_open,
    .drain = weft__cuda_drain,
    .close = hip_close,
    .enter = weft__cuda_push,
    .leave = weft__cuda_pop,
    .explain = weft__cuda_explain,
    .offer = hip_offer,
    .memory = &weft__cuda_memory,
    .program = &weft__cuda_program,
};

static int hip_count(void) { return weft__gpu_count(&weft__hip_kind); }

static void hip_describe(int i, weft_device_description *d) { weft__gpu_describe(&weft__hip_kind, i, d); }

static weft_status hip_outline(weft_context *ctx, const char *selector, weft_device_outline *out) {
    out->links = true;
    return weft__gpu_outline(ctx, &weft__hip_kind, selector, out);
}

static weft_status hip_open(weft_context *ctx, const char *selector, const weft_open_options *options,
                            weft_device **device) {
    return weft__gpu_open(ctx, &backend, selector, options, device);
}

static bool hip_takes(weft_device *device, const weft_heavy *heavy) {
    return weft__gpu_device_takes(device, heavy) && weft__blas_suits(weft__cuda_of(device), heavy);
}

static void hip_set_timing(weft_device *device, bool on) { weft__gpu_of(device)->timing = on; }

static const weft_device_extras extras = {
    .count = hip_count,
    .outline = hip_outline,
    .memory_free = weft__cuda_memory_free,
    .launches_of = weft__gpu_launches_of,
    .reads_rows = weft__gpu_reads_rows,
    .run_rows = weft__gpu_run_rows,
    .set_timing = hip_set_timing,
    .timings = weft__gpu_timings,
    .sum = weft__nccl_sum,
    .links = &weft__nccl_linking,
    .download_all = weft__gpu_download_all,
    .telemetry = weft__hip_telemetry,
};

const weft_device_ops weft__device_hip = {
    .name = "hip",
    .extras = &extras,
    .describe = hip_describe,
    .open = hip_open,
    .close = weft__gpu_close,
    .check_dtype = weft__gpu_check_dtype,
    .buffer_new = weft__gpu_buffer_new,
    .buffer_free = weft__gpu_buffer_free,
    .upload = weft__gpu_upload,
    .download = weft__gpu_download,
    .zero = weft__gpu_buffer_zero,
    .takes = hip_takes,
    .build = weft__gpu_build,
    .executable_free = weft__gpu_executable_free,
    .run = weft__gpu_run,
    .synchronize = weft__gpu_synchronize,
    .take_fault = weft__gpu_take_fault,
};
