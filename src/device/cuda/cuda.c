/* The CUDA device: its libraries, and the table of its functions.
 * Must not know: what kernels compute. Read next: driver/open.c, run.c, gpu/backend/backend.h. */
#include "device/cuda/cuda.h"
#include "device/cuda/nccl/link.h"
#include "device/cuda/nccl/nccl.h"
#include "device/cuda/nvml/nvml.h"

/* ---- open and close ---- */

static weft_status open_context(weft_gpu_device *device, const weft_open_options *options) {
    device->base.tf32 = device->target.tf32 = options && options->tf32;
    return weft__cuda_open(device, options);
}

static void close_context(weft_gpu_device *device) {
    weft__cuda *d = weft__cuda_of_gpu(device);
    if (d->context && weft__cuda_enter(d) == 0) {
        weft__dnn_close(d);
        weft__blas_close(d);
        weft__cuda_leave(d);
    }
    weft__nccl_exchanges_close(d);
    weft__cuda_close(device);
}

/* Asks the libraries in turn. Each handles its own kinds of operation. */
static weft_status offer(weft_gpu_device *device, weft_launches *launches, const weft_command *command) {
    WEFT_TRY(weft__nccl_offer_exchange(weft__cuda_of_gpu(device), launches, command));
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
    .drain = weft__cuda_drain,
    .close = close_context,
    .enter = weft__cuda_push,
    .leave = weft__cuda_pop,
    .explain = weft__cuda_explain,
    .offer = offer,
    .memory = &weft__cuda_memory,
    .program = &weft__cuda_program,
};

/* ---- table of functions ---- */

static int count(void) { return weft__gpu_count(&weft__cuda_kind); }

static void cuda_describe(int i, weft_device_description *d) { weft__gpu_describe(&weft__cuda_kind, i, d); }

static weft_status outline(weft_context *ctx, const char *selector, weft_device_outline *out) {
    out->links = true;
    return weft__gpu_outline(ctx, &weft__cuda_kind, selector, out);
}

static weft_status open_cuda(weft_context *ctx, const char *selector, const weft_open_options *options,
                             weft_device **device) {
    return weft__gpu_open(ctx, &backend, selector, options, device);
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
    .memory_free = weft__cuda_memory_free,
    .launches_of = weft__gpu_launches_of,
    .reads_rows = weft__gpu_reads_rows,
    .run_rows = weft__gpu_run_rows,
    .set_timing = set_timing,
    .timings = weft__gpu_timings,
    .sum = weft__nccl_sum,
    .links = &weft__nccl_linking,
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
