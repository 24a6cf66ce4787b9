/* The HIP device: its module. All of them are those of CUDA's driver. hipBLASLt computes
 * matmuls, and RCCL adds the gradients of several cards. Weft's own kernels compute convolutions and
 * attention. Must not know: what kernels compute. Read next: hip.h, gpu/driver/open.c, gpu/driver/run.c. */
#include "device/hip/hip.h"

static const weft_gpu_backend backend = {
    .devices = &weft__hip_kind,
    .device_bytes = sizeof(weft__cuda),
    .no_memory = CUDA_ERROR_OUT_OF_MEMORY,
    .lost = CUDA_ERROR_DEVICE_UNAVAILABLE,
    .open = weft__cuda_open,
    .drain = weft__cuda_drain,
    .close = weft__cuda_close,
    .enter = weft__cuda_push,
    .leave = weft__cuda_pop,
    .explain = weft__cuda_explain,
    .offer = weft__cuda_offer,
    .memory = &weft__cuda_memory,
    .program = &weft__cuda_program,
};

static const weft_device_extras extras = {
    WEFT_GPU_EXTRAS,       .memory_free = weft__cuda_memory_free, .set_timing = weft__gpu_set_timing,
    .sum = weft__nccl_sum, .links = &weft__nccl_linking,          .telemetry = weft__hip_telemetry,
};

static const weft_device_ops ops = {
    WEFT_GPU_OPS,
    .name = "hip",
    .extras = &extras,
    .takes = weft__cuda_takes,
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
