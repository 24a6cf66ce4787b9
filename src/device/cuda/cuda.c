/* The CUDA device: its libraries, and its module.
 * Must not know: what kernels compute. Read next: gpu/driver/open.c, gpu/driver/run.c, gpu/backend/backend.h.
 */
#include "device/cuda/cuda.h"
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
        weft__cuda_leave(d);
    }
    weft__cuda_close(device);
}

/* Asks the libraries in turn. Each handles its own kinds of operation. */
static weft_status offer(weft_gpu_device *device, weft_launches *launches, const weft_command *command) {
    WEFT_TRY(weft__cuda_offer(device, launches, command));
    return weft__dnn_offer(weft__cuda_of_gpu(device), launches, command);
}

static const weft_gpu_backend backend = {
    .devices = &weft__cuda_kind,
    .device_bytes = sizeof(weft__cuda_card),
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

/* ---- module ---- */

static bool telemetry(const weft_device *device, weft_telemetry *to) {
    const weft__cuda_found *found = ((const weft__cuda *)device)->found;
    return found->bus[0] && weft__nvml_read(found->bus, to);
}

static const weft_device_extras extras = {
    WEFT_GPU_EXTRAS,       .memory_free = weft__cuda_memory_free, .set_timing = weft__gpu_set_timing,
    .sum = weft__nccl_sum, .links = &weft__nccl_linking,          .telemetry = telemetry,
};

static const weft_device_ops ops = {
    WEFT_GPU_OPS,
    .name = "cuda",
    .extras = &extras,
    .takes = weft__cuda_takes,
};

const weft_device_module weft__device_cuda = {
    WEFT_GPU_MODULE,
    .ops = &ops,
    .backend = &backend,
    .serves = "NVIDIA cards",
    .chosen = "`cuda:0`, `cuda:1`, `cuda:NAME`",
    .card = "cuda",
    .driver = weft__cuda_driver,
    .components = weft__cuda_components,
    .outline_card = weft__cuda_outline_card,
};
