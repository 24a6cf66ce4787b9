/* Opens and closes a card of CUDA or HIP, and explains errors. Owns the context of each card.
 * Must not know: what kernels compute. Read next: transfer.c, run.c, cuda/cuda.c, hip/hip.c. */
#include <stdio.h>

#include "device/gpu/backend/hooks.h"
#include "device/gpu/driver/driver.h"
#include "device/gpu/driver/nccl/link.h"

weft__driver_hooks weft__driver_hook;

/* ---- contexts ---- */

CUcontext weft__cuda_context_take(const weft__cuda_found *given, CUresult *error) {
    static uint64_t generations; /* under the lock */
    weft__cuda_found *f = (weft__cuda_found *)given;
    pthread_mutex_lock(&f->api->kind->lock);
    *error = f->lost ? CUDA_ERROR_CONTEXT_IS_DESTROYED : 0;
    if (!*error && !f->context) {
        *error = f->api->cu->cuDevicePrimaryCtxRetain(&f->context, f->id);
        if (*error) f->context = NULL;
        f->generation = ++generations;
        weft__gpu_hook.contexts += !*error;
    }
    f->users += !*error;
    CUcontext context = *error ? NULL : f->context;
    pthread_mutex_unlock(&f->api->kind->lock);
    return context;
}

void weft__cuda_context_give(const weft__cuda_found *given, bool lost) {
    weft__cuda_found *f = (weft__cuda_found *)given;
    pthread_mutex_lock(&f->api->kind->lock);
    f->lost = f->lost || lost;
    if (--f->users == 0 && f->lost) {
        f->api->cu->cuDevicePrimaryCtxReset_v2(f->id);
        f->api->cu->cuDevicePrimaryCtxRelease_v2(f->id);
        f->context = NULL;
        f->lost = false;
    }
    pthread_mutex_unlock(&f->api->kind->lock);
}

/* ---- errors ---- */

const char *weft__cuda_error_name(const weft__cuda_functions *cu, CUresult error, char text[160]) {
    const char *name = NULL, *said = NULL;
    if (cu->cuGetErrorName(error, &name) != 0 || cu->cuGetErrorString(error, &said) != 0)
        snprintf(text, 160, "error %u", (unsigned)error);
    else
        snprintf(text, 160, "%.60s: %.90s", name, said);
    return text;
}

/* Returns whether a context answers every later call with an error. */
static bool ends_context(CUresult error) {
    return error == CUDA_ERROR_DEVICE_UNAVAILABLE || error == CUDA_ERROR_ECC_UNCORRECTABLE ||
           error == CUDA_ERROR_ILLEGAL_ADDRESS || error == CUDA_ERROR_LAUNCH_TIMEOUT ||
           (error >= CUDA_ERROR_CONTEXT_IS_DESTROYED && error <= CUDA_ERROR_LAUNCH_FAILED);
}

weft_gpu_trouble weft__cuda_explain(weft_gpu_device *device, int number, char message[WEFT_GPU_MESSAGE]) {
    weft__cuda *d = weft__cuda_of_gpu(device);
    const CUresult error = (CUresult)number;
    weft__cuda_error_name(d->cu, error, message);
    if (d->said[0]) snprintf(message, WEFT_GPU_MESSAGE, "%.150s", d->said);
    d->said[0] = 0;
    if (error == CUDA_ERROR_OUT_OF_MEMORY) return WEFT_GPU_NO_MEMORY;
    if (!ends_context(error)) return WEFT_GPU_REFUSED;
    d->lost = true;
    return WEFT_GPU_LOST;
}

/* ---- open and close ---- */

int weft__cuda_push(weft_gpu_device *device) {
    weft__cuda *d = weft__cuda_of_gpu(device);
    return (int)(d->context ? d->cu->cuCtxPushCurrent_v2(d->context) : CUDA_ERROR_INVALID_CONTEXT);
}

void weft__cuda_pop(weft_gpu_device *device) {
    CUcontext was;
    weft__cuda_of_gpu(device)->cu->cuCtxPopCurrent_v2(&was);
}

static CUresult open_streams(weft__cuda *d) {
    CUresult error = weft__cuda_enter(d);
    if (error) return error;
    error = d->cu->cuStreamCreate(&d->stream, CU_STREAM_NON_BLOCKING);
    if (!error) error = d->cu->cuStreamCreate(&d->copies, CU_STREAM_NON_BLOCKING);
    weft__cuda_leave(d);
    return error;
}

weft_status weft__cuda_open(weft_gpu_device *device, const weft_open_options *options) {
    weft__cuda *d = weft__cuda_of_gpu(device);
    CUresult error;
    d->found = (const weft__cuda_found *)device->found;
    d->cu = d->found->api->cu;
    d->fast = options && options->allow_nondeterministic;
    weft__cuda_compiler_open(d);
    d->context = weft__cuda_context_take(d->found, &error);
    if (error) return weft__cuda_fail(d, error, "opening a context");
    error = open_streams(d);
    return error ? weft__cuda_fail(d, error, "making a stream") : WEFT_OK;
}

void weft__cuda_drain(weft_gpu_device *device) {
    const weft__cuda *d = weft__cuda_of_gpu(device);
    if (!d->lost) d->cu->cuStreamSynchronize(d->stream);
}

void weft__cuda_close(weft_gpu_device *device) {
    weft__cuda *d = weft__cuda_of_gpu(device);
    if (d->context && weft__cuda_enter(d) == 0) {
        weft__blas_close(d);
        weft__cuda_leave(d);
    }
    weft__nccl_exchanges_close(d);
    if (!d->context) return;
    if (weft__cuda_enter(d) == 0) {
        if (d->copies) d->cu->cuStreamDestroy_v2(d->copies);
        if (d->beside) d->cu->cuStreamDestroy_v2(d->beside);
        if (d->stream) d->cu->cuStreamDestroy_v2(d->stream);
        weft__cuda_leave(d);
    }
    weft__cuda_context_give(d->found, d->lost);
}

uint64_t weft__cuda_memory_free(weft_device *device) {
    weft__cuda *d = weft__cuda_of(device);
    size_t left = 0, all = 0;
    if (weft__cuda_enter(d) != 0) return 0;
    const CUresult error = d->cu->cuMemGetInfo_v2(&left, &all);
    weft__cuda_leave(d);
    return error ? 0 : left;
}

/* ---- libraries ---- */

bool weft__cuda_takes(weft_device *device, const weft_heavy *heavy) {
    return weft__gpu_device_takes(device, heavy) && weft__blas_suits(weft__cuda_of(device), heavy);
}

weft_status weft__cuda_offer(weft_gpu_device *device, weft_launches *launches, const weft_command *command) {
    WEFT_TRY(weft__nccl_offer_exchange(weft__cuda_of_gpu(device), launches, command));
    return weft__blas_offer(weft__cuda_of_gpu(device), launches, command);
}
