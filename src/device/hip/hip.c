/* The HIP device: its module. All of them are those of CUDA's driver. hipBLASLt computes
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

static bool hip_takes(weft_device *device, const weft_heavy *heavy) {
    return weft__gpu_device_takes(device, heavy) && weft__blas_suits(weft__cuda_of(device), heavy);
}

static const weft_device_extras extras = {
    WEFT_GPU_EXTRAS,       .memory_free = weft__cuda_memory_free, .set_timing = weft__gpu_set_timing,
    .sum = weft__nccl_sum, .links = &weft__nccl_linking,          .telemetry = weft__hip_telemetry,
};

static const weft_device_ops ops = {
    WEFT_GPU_OPS,
    .name = "hip",
    .extras = &extras,
    .takes = hip_takes,
};

static const weft_device_alias aliases[] = {{"rocm", ""}, {NULL, NULL}};

const weft_device_module weft__device_hip = {
    WEFT_GPU_MODULE,
    .ops = &ops,
    .backend = &backend,
    .serves = "AMD cards with ROCm",
    .chosen = "`hip:0`, `hip:1`, `hip:NAME`",
    .card = "hip",
    .driver = weft__hip_driver,
    .aliases = aliases,
    .components = weft__hip_components,
};
