/* Opens and closes GPU devices, and allocates their memory.
 * Must not know: OpenCL, CUDA. Read next: transfer.c, executable.c. */
#include <stdio.h>

#include "base/threads.h"
#include "device/gpu/backend/backend.h"
#include "device/signals.h"

enum { GUARD_BYTE = 0xA5 };

weft__gpu_hooks weft__gpu_hook;

/* ---- errors ---- */

weft_status weft__gpu_fail(weft_gpu_device *d, int error, const char *what) {
    const weft_device *device = &d->base;
    char message[WEFT_GPU_MESSAGE];
    switch (d->backend->explain(d, error, message)) {
    case WEFT_GPU_NO_MEMORY:
        return weft__fail(device->ctx, WEFT_ERR_OOM, "%s: %s: %s; %llu bytes are in use of %llu",
                          device->name, what, message, (unsigned long long)device->bytes_in_use,
                          (unsigned long long)d->found->memory);
    case WEFT_GPU_LOST:
        return weft__fail(device->ctx, WEFT_ERR_DEVICE,
                          "%s: %s: the device is lost (%s); open a new context, and look at the driver's log",
                          device->name, what, message);
    case WEFT_GPU_REFUSED: break;
    }
    return weft__fail(device->ctx, WEFT_ERR_DEVICE, "%s: %s: %s", device->name, what, message);
}

int weft__gpu_gone(const weft_gpu_device *d) {
    if (weft__gpu_hook.lose_device > 1) weft__gpu_hook.lose_device--;
    return weft__gpu_hook.lose_device == 1 ? d->backend->lost : 0;
}

weft_status weft__gpu_fail_oom(const weft_gpu_device *d, size_t bytes, const char *what) {
    char text[64];
    snprintf(text, sizeof text, "%s: %s", d->backend->devices->name, what);
    return weft__fail_oom(d->base.ctx, bytes, text);
}

/* ---- open and close ---- */

static weft_status make_record(weft_gpu_device *d) {
    WEFT_TRY(weft__gpu_memory_new(d, sizeof d->record, "the fault record", &d->faults));
    const int error = d->backend->memory->write(d, d->faults, 0, &d->record, sizeof d->record, NULL);
    return error ? weft__gpu_fail(d, error, "reading the fault record") : WEFT_OK;
}

static weft_status open_members(weft_gpu_device *d, const weft_open_options *options) {
    WEFT_TRY(d->backend->open(d, options));
    const int error = weft__gpu_enter(d);
    if (error) return weft__gpu_fail(d, error, "opening a context");
    const weft_status status = make_record(d);
    weft__gpu_leave(d);
    return status;
}

static weft_status open_found(const weft_device_module *module, weft_context *ctx,
                              const weft_gpu_found *found, const weft_open_options *options,
                              weft_device **device) {
    const weft_gpu_backend *backend = module->backend;
    weft_gpu_device *d = weft__zalloc(ctx, backend->device_bytes);
    if (!d) {
        char text[64];
        snprintf(text, sizeof text, "the %s device", backend->devices->name);
        return weft__fail_oom(ctx, backend->device_bytes, text);
    }
    d->base.ops = module->ops;
    d->base.ctx = ctx;
    d->base.name = found->spec;
    d->base.asynchronous = d->base.overlaps = true;
    d->base.forks = weft__forks();
    d->backend = backend;
    d->found = found;
    d->target = weft__gpu_target(backend->devices, found);
    d->base.many_blocks = d->target.dialect == WEFT_DIALECT_CUDA;
    d->target.long_indices = weft__gpu_hook.long_indices;
    d->guard = (size_t)weft__gpu_hook.guard;
    weft__tuner_open(&d->tuner, &d->base, found->detail, !found->cpu);
    const weft_status status = open_members(d, options);
    if (status != WEFT_OK) {
        weft__gpu_close(&d->base);
        return status;
    }
    *device = &d->base;
    return WEFT_OK;
}

weft_status weft__gpu_open(const weft_device_module *module, weft_context *ctx, const char *selector,
                           const weft_open_options *options, weft_device **device) {
    const weft_gpu_backend *backend = module->backend;
    weft__signals signals;
    if (backend->signals) weft__keep_signals(&signals);
    const weft_gpu_found *found = weft__gpu_choose(ctx, backend->devices, selector);
    const weft_status status = found ? open_found(module, ctx, found, options, device) : WEFT_ERR_DEVICE;
    if (backend->signals) weft__restore_signals(&signals);
    return status;
}

void weft__gpu_close(weft_device *device) {
    weft_gpu_device *d = weft__gpu_of(device);
    if (!d || weft__device_forked(device->forks)) return; /* a child of fork leaves it to its parent */
    if (weft__gpu_enter(d) == 0) {
        d->backend->drain(d);
        weft__gpu_compiler_close(&d->compiler);
        weft__gpu_staging_close(d);
        for (int i = 0; i < 2; i++) weft__gpu_memory_free(d, d->scratch[i]);
        weft__gpu_memory_free(d, d->faults);
        weft__gpu_leave(d);
    }
    d->backend->close(d);
    weft__tuner_close(&d->tuner);
    weft__free(device->ctx, d->paths.list);
    weft__free(device->ctx, d);
}

weft_status weft__gpu_check_dtype(weft_device *device, weft_dtype dtype) {
    const weft_gpu_device *d = weft__gpu_of(device);
    if ((dtype == WEFT_F64 || dtype == WEFT_C128) && !d->target.f64)
        return weft__fail(device->ctx, WEFT_ERR_DTYPE, "%s (%s) does not compute in f64: use %s",
                          device->name, d->found->name, dtype == WEFT_F64 ? "f32" : "c64");
    if ((unsigned)dtype < WEFT_DTYPE_COUNT) return WEFT_OK;
    return weft__fail(device->ctx, WEFT_ERR_DTYPE, "%s: unknown dtype %s", device->name,
                      weft_dtype_name(dtype));
}

bool weft__gpu_device_takes(weft_device *device, const weft_heavy *heavy) {
    if (heavy->kind == WEFT_HEAVY_EXCHANGE) return device->linked != NULL;
    return weft__gpu_takes(&weft__gpu_of(device)->target, heavy);
}

/* ---- memory ---- */

/* Allocates, unless a test asked for a failure. */
static int allocate(weft_gpu_device *d, weft_gpu_buffer *buffer, size_t bytes) {
    if (weft__gpu_hook.fail_allocation && --weft__gpu_hook.fail_allocation == 0) return d->backend->no_memory;
    return d->backend->memory->allocate(d, buffer, bytes ? bytes : 1);
}

weft_status weft__gpu_memory_new(weft_gpu_device *d, size_t bytes, const char *what,
                                 weft_gpu_buffer **buffer) {
    weft_context *ctx = d->base.ctx;
    const size_t size = d->backend->memory->buffer_bytes;
    size_t most = (size_t)d->found->most_bytes;
    char text[96];
    if (weft__gpu_hook.most_bytes && weft__gpu_hook.most_bytes < most) most = weft__gpu_hook.most_bytes;
    if (bytes > most)
        return weft__fail(ctx, WEFT_ERR_OOM,
                          "%s: %s of %zu bytes: this device allows at most %zu bytes in one buffer",
                          d->base.name, what, bytes, most);
    weft_gpu_buffer *b = weft__zalloc(ctx, size);
    if (!b) return weft__gpu_fail_oom(d, size, what);
    const int error = allocate(d, b, bytes);
    if (error) {
        weft__free(ctx, b);
        snprintf(text, sizeof text, "%s of %zu bytes", what, bytes);
        return weft__gpu_fail(d, error, text);
    }
    if (!b->identity) b->identity = ++d->identities;
    weft__gpu_hook.buffers++;
    *buffer = b;
    return WEFT_OK;
}

void weft__gpu_memory_free(weft_gpu_device *d, weft_gpu_buffer *buffer) {
    if (!buffer) return;
    d->backend->memory->release(d, buffer);
    weft__free(d->base.ctx, buffer);
}

void weft__gpu_count_memory(weft_device *device, size_t more, size_t less) {
    device->bytes_in_use += more;
    device->bytes_in_use -= less;
    if (device->bytes_in_use > device->bytes_peak) device->bytes_peak = device->bytes_in_use;
}

uint64_t weft__gpu_memory_left(weft_device *device) {
    const weft_gpu_found *f = weft__gpu_of(device)->found;
    const uint64_t left = f->memory > device->bytes_in_use ? f->memory - device->bytes_in_use : 1;
    const uint64_t host = f->shares_memory ? weft__host_memory_free() : 0;
    return host && host < left ? host : left;
}

/* ---- buffers, with guards: bytes before and after, which nothing may write ---- */

/* Returns the error of `fill`, or 0. */
static int write_guards(weft_gpu_device *d, weft_gpu_buffer *b) {
    const size_t at[2] = {0, d->guard + b->base.bytes};
    int error = 0;
    for (int i = 0; i < 2 && d->guard && !error; i++)
        error = d->backend->memory->fill(d, b, at[i], d->guard, GUARD_BYTE);
    return error;
}

/* Checks the guards and counts broken ones in the hooks. */
static void look_at_guards(weft_gpu_device *d, weft_gpu_buffer *b) {
    const size_t at[2] = {0, d->guard + b->base.bytes};
    for (int i = 0; i < 2 && d->guard; i++) {
        unsigned char bytes[1024];
        const size_t n = d->guard < sizeof bytes ? d->guard : sizeof bytes;
        if (d->backend->memory->fetch(d, &(weft_gpu_piece){b, at[i], bytes, n}, 1, NULL) != 0) return;
        for (size_t k = 0; k < n; k++)
            if (bytes[k] != GUARD_BYTE) {
                weft__gpu_hook.guards_broken++;
                break;
            }
    }
}

static weft_status make_buffer(weft_gpu_device *d, size_t bytes, weft_gpu_buffer **buffer) {
    WEFT_TRY(weft__gpu_memory_new(d, bytes + 2 * d->guard, "a buffer", buffer));
    (*buffer)->base.bytes = bytes;
    const int error = write_guards(d, *buffer);
    if (!error) return WEFT_OK;
    weft__gpu_memory_free(d, *buffer);
    return weft__gpu_fail(d, error, "writing guard bytes");
}

weft_status weft__gpu_buffer_new(weft_device *device, size_t bytes, weft_buffer **buffer) {
    weft_gpu_device *d = weft__gpu_of(device);
    weft_gpu_buffer *b;
    if (bytes > PTRDIFF_MAX - 2 * d->guard) return weft__gpu_fail_oom(d, bytes, "a buffer");
    const int error = weft__gpu_enter(d);
    if (error) return weft__gpu_fail(d, error, "allocating a buffer");
    const weft_status status = make_buffer(d, bytes, &b);
    weft__gpu_leave(d);
    if (status != WEFT_OK) return status;
    weft__gpu_count_memory(device, bytes, 0);
    *buffer = &b->base;
    return WEFT_OK;
}

void weft__gpu_buffer_free(weft_device *device, weft_buffer *buffer) {
    weft_gpu_device *d = weft__gpu_of(device);
    if (!buffer || weft__device_forked(device->forks)) return; /* a child of fork leaves it to its parent */
    weft__gpu_count_memory(device, 0, buffer->bytes);
    if (weft__gpu_enter(d) != 0) {
        weft__free(device->ctx, buffer);
        return;
    }
    look_at_guards(d, (weft_gpu_buffer *)buffer);
    weft__gpu_memory_free(d, (weft_gpu_buffer *)buffer);
    weft__gpu_leave(d);
}
