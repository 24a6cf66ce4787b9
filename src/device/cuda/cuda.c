/* The CUDA device: opening, memory, and the table of its functions.
 * Must not know: what kernels compute. Read next: run.c, driver/transfer.c. */
#include "base/threads.h"
#include "device/cuda/cuda.h"
#include "device/cuda/nccl/nccl.h"
#include "device/cuda/nvml/nvml.h"

#include <stdio.h>
#include <string.h>

/* ---- errors ---- */

/* Returns whether a context answers every later call with an error. */
static bool ends_context(CUresult error) {
    return error == CUDA_ERROR_DEVICE_UNAVAILABLE || error == CUDA_ERROR_ECC_UNCORRECTABLE ||
           error == CUDA_ERROR_ILLEGAL_ADDRESS || error == CUDA_ERROR_LAUNCH_TIMEOUT ||
           (error >= CUDA_ERROR_CONTEXT_IS_DESTROYED && error <= CUDA_ERROR_LAUNCH_FAILED);
}

weft_status weft__cuda_fail(weft__cuda *d, CUresult error, const char *what) {
    char text[160];
    const bool lost = ends_context(error);
    d->lost = d->lost || lost;
    weft__cuda_error_name(error, text);
    if (d->said[0]) snprintf(text, sizeof text, "%.150s", d->said);
    d->said[0] = 0;
    return weft__gpu_fail(&d->gpu.base,
                          error == CUDA_ERROR_OUT_OF_MEMORY ? WEFT_GPU_NO_MEMORY
                          : lost                            ? WEFT_GPU_LOST
                                                            : WEFT_GPU_REFUSED,
                          what, text, d->found->memory);
}

CUresult weft__cuda_gone(void) { return weft__gpu_gone() ? CUDA_ERROR_DEVICE_UNAVAILABLE : 0; }

CUresult weft__cuda_enter(weft__cuda *d) { return weft__cu.cuCtxPushCurrent_v2(d->context); }

void weft__cuda_leave(weft__cuda *d) {
    CUcontext was;
    (void)d;
    weft__cu.cuCtxPopCurrent_v2(&was);
}

/* ---- description ---- */

static int count(void) {
    const weft__cuda_found *list;
    const int n = weft__cuda_devices(&list, NULL);
    return n ? n : 1; /* one entry, which says why there is none */
}

static void describe(int i, weft_device_description *d) {
    const weft__cuda_found *list;
    const char *why;
    const int n = weft__cuda_devices(&list, &why);
    *d = (weft_device_description){.name = "cuda", .reason = why};
    if (i < 0 || i >= n) return;
    const weft__cuda_found *f = &list[i];
    *d = (weft_device_description){.name = f->spec,
                                   .detail = f->detail,
                                   .reason = f->reason[0] ? f->reason : NULL,
                                   .present = !f->reason[0],
                                   .threads = f->units,
                                   .memory = f->memory,
                                   .buffer_limit = f->memory,
                                   .local_memory = f->local_bytes,
                                   .f64 = true,
                                   .card = true};
}

/* ---- open and close ---- */

static weft_status open_streams(weft__cuda *d) {
    CUresult error = weft__cu.cuStreamCreate(&d->stream, CU_STREAM_NON_BLOCKING);
    if (!error) error = weft__cu.cuStreamCreate(&d->copies, CU_STREAM_NON_BLOCKING);
    if (error) return weft__cuda_fail(d, error, "a stream");
    WEFT_TRY(weft__cuda_memory(d, sizeof d->gpu.record, "the fault record", &d->faults));
    error = weft__cuda_put(d, d->faults, &d->gpu.record, sizeof d->gpu.record);
    return error ? weft__cuda_fail(d, error, "the fault record") : WEFT_OK;
}

/* Describes a card to the code that makes kernels. Work-groups are as large as for OpenCL, which shares the
 * kernels. local_bytes is the memory that a block gets without asking for more. */
static weft_target target_of(const weft__cuda_found *f) {
    weft_target t = {.dialect = WEFT_DIALECT_CUDA,
                     .lanes = 256,
                     .units = f->units > 0 ? f->units : 1,
                     .local_bytes = (int64_t)f->local_bytes,
                     .most_local_bytes = (int64_t)f->most_local_bytes,
                     .groups_most = WEFT_CUDA_GROUPS,
                     .f64 = true,
                     .capability = f->arch_number};
    while (t.lanes > f->most_items && t.lanes > 1) t.lanes /= 2;
    return t;
}

/* If there is no card, plans are made for a common one: an H100. */
static const weft__cuda_found usual = {.spec = "cuda",
                                       .name = "sm_90",
                                       .capability = 90,
                                       .units = 132,
                                       .most_items = 1024,
                                       .memory = UINT64_C(80) << 30,
                                       .local_bytes = 48 << 10};

static weft_status outline(weft_context *ctx, const char *selector, weft_device_outline *out) {
    const weft__cuda_found *list, *f = &usual;
    const char *why = NULL;
    out->absent = weft__cuda_devices(&list, &why) == 0 && (!*selector || strcmp(selector, usual.name) == 0);
    if (!out->absent && !(f = weft__cuda_choose(ctx, selector))) return WEFT_ERR_DEVICE;
    snprintf(out->name, sizeof out->name, "%s", f->spec);
    if (out->absent)
        snprintf(out->detail, sizeof out->detail,
                 "no card is here: a card of compute capability %d.%d, %d multiprocessors and %llu GiB",
                 f->capability / 10, f->capability % 10, f->units, (unsigned long long)(f->memory >> 30));
    else
        snprintf(out->detail, sizeof out->detail, "%.399s", f->detail);
    out->memory = f->memory;
    out->target = target_of(f);
    out->takes = weft__gpu_takes;
    out->launches = true;
    return WEFT_OK;
}

static uint64_t memory_free(weft_device *device) {
    weft__cuda *d = weft__cuda_of(device);
    size_t left = 0, all = 0;
    if (weft__cuda_enter(d) != 0) return 0;
    const CUresult error = weft__cu.cuMemGetInfo_v2(&left, &all);
    weft__cuda_leave(d);
    return error ? 0 : left;
}

static void close_context(weft__cuda *d) {
    if (!d->lost) weft__cu.cuStreamSynchronize(d->stream);
    if (d->gpu.compiler.device) weft__gpu_compiler_close(&d->gpu.compiler);
    weft__dnn_close(d);
    weft__cuda_staging_free(d);
    weft__blas_close(d);
    if (d->scratch) weft__cu.cuMemFree_v2(d->scratch);
    if (d->faults) weft__cu.cuMemFree_v2(d->faults);
    if (d->copies) weft__cu.cuStreamDestroy_v2(d->copies);
    if (d->stream) weft__cu.cuStreamDestroy_v2(d->stream);
}

static void close_cuda(weft_device *device) {
    weft__cuda *d = weft__cuda_of(device);
    if (!d) return;
    if (d->context && weft__cuda_enter(d) == 0) {
        close_context(d);
        weft__cuda_leave(d);
    }
    if (d->context) weft__cuda_context_give(d->found, d->lost);
    weft__tuner_close(&d->gpu.tuner);
    weft__free(device->ctx, d->gpu.paths.list);
    weft__free(device->ctx, d);
}

static weft_status open_cuda(weft_context *ctx, const char *selector, const weft_open_options *options,
                             weft_device **device) {
    CUresult error;
    const weft__cuda_found *found = weft__cuda_choose(ctx, selector);
    if (!found) return WEFT_ERR_DEVICE;
    weft__cuda *d = weft__zalloc(ctx, sizeof *d);
    if (!d) return weft__fail_oom(ctx, sizeof *d, "the cuda device");
    d->gpu.base.ops = &weft__device_cuda;
    d->gpu.backend = &weft__cuda_backend;
    d->gpu.base.ctx = ctx;
    d->gpu.base.name = found->spec;
    d->gpu.base.asynchronous = true;
    d->gpu.base.forks = weft__forks();
    d->found = found;
    d->fast = options && options->allow_nondeterministic;
    d->gpu.base.tf32 = options && options->tf32;
    d->gpu.target = target_of(found);
    d->gpu.target.tf32 = d->gpu.base.tf32;
    d->gpu.guard = (size_t)weft__gpu_hook.guard;
    weft__cuda_compiler_open(d);
    weft__tuner_open(&d->gpu.tuner, &d->gpu.base, found->detail, true);
    d->context = weft__cuda_context_take(found, &error);
    if (!error) error = weft__cuda_enter(d);
    weft_status status = error ? weft__cuda_fail(d, error, "a context") : open_streams(d);
    if (!error) weft__cuda_leave(d);
    if (status != WEFT_OK) {
        close_cuda(&d->gpu.base);
        return status;
    }
    *device = &d->gpu.base;
    return WEFT_OK;
}

static weft_status check_dtype(weft_device *device, weft_dtype dtype) {
    return weft__gpu_check_dtype(device, dtype, true, weft__cuda_of(device)->found->name);
}

/* ---- memory ---- */

weft_status weft__cuda_memory(weft__cuda *d, size_t bytes, const char *what, CUdeviceptr *memory) {
    size_t most = (size_t)d->found->memory;
    char text[96];
    if (weft__gpu_hook.most_bytes && weft__gpu_hook.most_bytes < most) most = weft__gpu_hook.most_bytes;
    if (bytes > most)
        return weft__fail(d->gpu.base.ctx, WEFT_ERR_OOM,
                          "%s: %s of %zu bytes: this device gives at most %zu bytes in one piece",
                          d->found->spec, what, bytes, most);
    const CUresult error =
        weft__gpu_no_memory() ? CUDA_ERROR_OUT_OF_MEMORY : weft__cu.cuMemAlloc_v2(memory, bytes ? bytes : 1);
    if (!error) {
        weft__gpu_hook.buffers++;
        return WEFT_OK;
    }
    *memory = 0;
    snprintf(text, sizeof text, "%s of %zu bytes", what, bytes);
    return weft__cuda_fail(d, error, text);
}

static int fill(weft_device *device, weft_buffer *buffer, size_t at, size_t bytes, unsigned char value) {
    weft__cuda *d = weft__cuda_of(device);
    return (int)weft__cu.cuMemsetD8Async(((weft__cuda_buffer *)buffer)->memory + at, value, bytes, d->stream);
}

static int read(weft_device *device, weft_buffer *buffer, size_t at, size_t bytes, void *to) {
    weft__cuda *d = weft__cuda_of(device);
    CUresult error = weft__cuda_before_use(d, (weft__cuda_buffer *)buffer);
    if (!error) error = weft__cuda_get(d, to, ((weft__cuda_buffer *)buffer)->memory + at, bytes);
    return (int)error;
}

/* Frees a buffer. It waits for the work that was submitted. */
static void buffer_free(weft_device *device, weft_buffer *buffer) {
    weft__cuda *d = weft__cuda_of(device);
    weft__cuda_buffer *b = (weft__cuda_buffer *)buffer;
    if (!b) return;
    if (weft__cuda_enter(d) == 0) {
        weft__gpu_guards_look(device, buffer, d->gpu.guard, read);
        if (b->filled) weft__cu.cuEventDestroy_v2(b->filled);
        if (b->used) weft__cu.cuEventDestroy_v2(b->used);
        weft__cu.cuMemFree_v2(b->memory);
        weft__cuda_leave(d);
    }
    weft__gpu_count_memory(device, 0, buffer->bytes);
    weft__free(device->ctx, b);
}

static weft_status fill_buffer(weft__cuda *d, weft__cuda_buffer *b, size_t bytes) {
    WEFT_TRY(weft__cuda_memory(d, bytes + 2 * d->gpu.guard, "a buffer", &b->memory));
    const int error = weft__gpu_guards_write(&d->gpu.base, &b->base, d->gpu.guard, fill);
    if (!error) return WEFT_OK;
    weft__cu.cuMemFree_v2(b->memory);
    return weft__cuda_fail(d, (CUresult)error, "guard bytes");
}

static weft_status buffer_new(weft_device *device, size_t bytes, weft_buffer **buffer) {
    weft__cuda *d = weft__cuda_of(device);
    if (bytes > PTRDIFF_MAX - 2 * d->gpu.guard) return weft__fail_oom(device->ctx, bytes, "cuda: a buffer");
    weft__cuda_buffer *b = weft__zalloc(device->ctx, sizeof *b);
    if (!b) return weft__fail_oom(device->ctx, sizeof *b, "cuda: a buffer");
    b->base.bytes = bytes;
    const CUresult error = weft__cuda_enter(d);
    const weft_status status = error ? weft__cuda_fail(d, error, "a buffer") : fill_buffer(d, b, bytes);
    if (!error) weft__cuda_leave(d);
    if (status != WEFT_OK) {
        weft__free(device->ctx, b);
        return status;
    }
    weft__gpu_count_memory(device, bytes, 0);
    *buffer = &b->base;
    return WEFT_OK;
}

/* ---- table of functions ---- */

static bool takes(weft_device *device, const weft_heavy *heavy) {
    weft__cuda *d = weft__cuda_of(device);
    return weft__gpu_takes(&d->gpu.target, heavy) && weft__blas_suits(d, heavy);
}

static void set_timing(weft_device *device, bool on) { weft__gpu_of(device)->timing = on; }

static bool telemetry(const weft_device *device, weft_telemetry *to) {
    const weft__cuda_found *found = ((const weft__cuda *)device)->found;
    return found->bus[0] && weft__nvml_read(found->bus, to);
}

static const weft_device_extras extras = {
    .count = count,
    .outline = outline,
    .memory_free = memory_free,
    .launches_of = weft__gpu_launches_of,
    .set_timing = set_timing,
    .timings = weft__cuda_timings,
    .sum = weft__nccl_sum,
    .telemetry = telemetry,
};

const weft_device_ops weft__device_cuda = {
    .name = "cuda",
    .extras = &extras,
    .describe = describe,
    .open = open_cuda,
    .close = close_cuda,
    .check_dtype = check_dtype,
    .buffer_new = buffer_new,
    .buffer_free = buffer_free,
    .upload = weft__cuda_upload,
    .download = weft__cuda_download,
    .zero = weft__cuda_zero,
    .takes = takes,
    .build = weft__cuda_build,
    .executable_free = weft__gpu_executable_free,
    .run = weft__cuda_run,
    .synchronize = weft__cuda_synchronize,
    .take_fault = weft__cuda_take_fault,
};
