/* What the GPU backends have in common, see backend.h.
 * Must not know: OpenCL, CUDA. Read next: executable.c, opencl/opencl.c, cuda/cuda.c. */
#include "device/gpu/backend/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { GUARD_BYTE = 0xA5 };

weft__gpu_hooks weft__gpu_hook;

bool weft__gpu_gone(void) {
    if (weft__gpu_hook.lose_device > 1) weft__gpu_hook.lose_device--;
    return weft__gpu_hook.lose_device == 1;
}

bool weft__gpu_no_memory(void) {
    return weft__gpu_hook.fail_allocation && --weft__gpu_hook.fail_allocation == 0;
}

/* ---- choosing a device ---- */

static bool has(const char *whole, const char *part) {
    const size_t n = strlen(part);
    for (; *whole; whole++)
        if (strncasecmp(whole, part, n) == 0) return true;
    return false;
}

static bool means(const weft_gpu_name *f, int i, const char *selector) {
    char *end;
    const long wanted = strtol(selector, &end, 10);
    if (*selector == '\0') return true;
    if (*end == '\0') return wanted == i;
    if (strcmp(selector, "gpu") == 0) return f->gpu;
    if (strcmp(selector, "cpu") == 0) return f->cpu;
    return has(f->name, selector) || has(f->maker, selector);
}

/* Writes "opencl:0 (NAME), opencl:1 (NAME: why not)" to `to`, and returns it. */
static const char *all(const weft_gpu_name *names, int count, char *to, size_t size) {
    size_t used = 0;
    to[0] = 0;
    for (int i = 0; i < count && used < size; i++) {
        const char *reason = names[i].reason;
        const int n = snprintf(to + used, size - used, "%s%s (%s%s%s)", i ? ", " : "", names[i].spec,
                               names[i].name, reason[0] ? ": " : "", reason);
        used += n > 0 ? (size_t)n : 0;
    }
    return to;
}

int weft__gpu_choose(weft_context *ctx, const char *kind, const char *selector, const weft_gpu_name *names,
                     int count, const char *why) {
    const weft_gpu_name *refused = NULL;
    char others[600];
    if (!selector) selector = "";
    for (int i = 0; i < count; i++) {
        if (!means(&names[i], i, selector)) continue;
        if (!names[i].reason[0]) return i;
        if (!refused) refused = &names[i];
    }
    if (!count)
        weft__fail(ctx, WEFT_ERR_DEVICE, "device %s: %s", kind, why);
    else if (refused)
        weft__fail(ctx, WEFT_ERR_DEVICE, "device %s (%s): %s", refused->spec, refused->name, refused->reason);
    else
        weft__fail(ctx, WEFT_ERR_DEVICE, "device \"%s:%s\": there is none; there are %s", kind, selector,
                   all(names, count, others, sizeof others));
    return -1;
}

/* ---- errors ---- */

weft_status weft__gpu_fail(weft_device *device, weft_gpu_trouble trouble, const char *what, const char *error,
                           uint64_t memory) {
    if (trouble == WEFT_GPU_NO_MEMORY)
        return weft__fail(device->ctx, WEFT_ERR_OOM, "%s: %s: %s; %llu bytes are in use of %llu",
                          device->name, what, error, (unsigned long long)device->bytes_in_use,
                          (unsigned long long)memory);
    if (trouble == WEFT_GPU_LOST)
        return weft__fail(device->ctx, WEFT_ERR_DEVICE,
                          "%s: %s: the device is lost (%s); open a new context, and look at the driver's log",
                          device->name, what, error);
    return weft__fail(device->ctx, WEFT_ERR_DEVICE, "%s: %s: %s", device->name, what, error);
}

weft_status weft__gpu_check_dtype(weft_device *device, weft_dtype dtype, bool f64, const char *name) {
    if ((dtype == WEFT_F64 || dtype == WEFT_C128) && !f64)
        return weft__fail(device->ctx, WEFT_ERR_DTYPE, "%s (%s) does not compute in f64: use %s",
                          device->name, name, dtype == WEFT_F64 ? "f32" : "c64");
    if ((unsigned)dtype < WEFT_DTYPE_COUNT) return WEFT_OK;
    return weft__fail(device->ctx, WEFT_ERR_DTYPE, "%s: unknown dtype %s", device->name,
                      weft_dtype_name(dtype));
}

weft_status weft__gpu_check_span(weft_device *device, const weft_buffer *buffer, size_t offset, size_t bytes,
                                 const char *what) {
    if (offset <= buffer->bytes && bytes <= buffer->bytes - offset) return WEFT_OK;
    return weft__fail(device->ctx, WEFT_ERR_INTERNAL, "%s: %s of %zu bytes at %zu in a buffer of %zu",
                      device->name, what, bytes, offset, buffer->bytes);
}

void weft__gpu_count_memory(weft_device *device, size_t more, size_t less) {
    device->bytes_in_use += more;
    device->bytes_in_use -= less;
    if (device->bytes_in_use > device->bytes_peak) device->bytes_peak = device->bytes_in_use;
}

/* ---- guards ---- */

int weft__gpu_guards_write(weft_device *device, weft_buffer *buffer, size_t guard, weft_gpu_fill fill) {
    const size_t at[2] = {0, guard + buffer->bytes};
    int error = 0;
    for (int i = 0; i < 2 && guard && !error; i++) error = fill(device, buffer, at[i], guard, GUARD_BYTE);
    return error;
}

void weft__gpu_guards_look(weft_device *device, weft_buffer *buffer, size_t guard, weft_gpu_read read) {
    const size_t at[2] = {0, guard + buffer->bytes};
    for (int i = 0; i < 2 && guard; i++) {
        unsigned char bytes[1024];
        const size_t n = guard < sizeof bytes ? guard : sizeof bytes;
        if (read(device, buffer, at[i], n, bytes) != 0) return;
        for (size_t k = 0; k < n; k++)
            if (bytes[k] != GUARD_BYTE) {
                weft__gpu_hook.guards_broken++;
                break;
            }
    }
}

/* ---- staging ---- */

static void forget_oldest(weft_gpu_ring *r, weft_device *device) {
    r->forget(device, r->first);
    r->first = (r->first + 1) % WEFT_GPU_RING_PIECES;
    r->count--;
}

static bool taken(const weft_gpu_ring *r, size_t from, size_t to) {
    for (int i = 0; i < r->count; i++) {
        const int k = (r->first + i) % WEFT_GPU_RING_PIECES;
        if (r->pieces[k].from < to && from < r->pieces[k].to) return true;
    }
    return false;
}

int weft__gpu_ring_room(weft_gpu_ring *r, weft_device *device, size_t bytes, size_t *at) {
    while (r->count && r->is_read(device, r->first)) forget_oldest(r, device);
    if (!r->count || r->head + bytes > WEFT_GPU_RING_BYTES) r->head = 0;
    while (r->count == WEFT_GPU_RING_PIECES || taken(r, r->head, r->head + bytes)) {
        const int error = r->wait(device, r->first);
        forget_oldest(r, device);
        if (error) return error;
    }
    *at = r->head;
    return 0;
}

int weft__gpu_ring_add(weft_gpu_ring *r, size_t at, size_t bytes) {
    const int k = (r->first + r->count++) % WEFT_GPU_RING_PIECES;
    r->pieces[k].from = at;
    r->pieces[k].to = at + bytes;
    r->head = at + ((bytes + 63) & ~(size_t)63);
    return k;
}

void weft__gpu_ring_clear(weft_gpu_ring *r, weft_device *device) {
    while (r->count) forget_oldest(r, device);
}

/* ---- timings ---- */

void weft__gpu_fold_times(const weft_gpu_time *launches, int n_launches, weft_timing *commands,
                          int n_commands) {
    double last = 0;
    memset(commands, 0, (size_t)n_commands * sizeof *commands);
    for (int l = 0; l < n_launches; l++) {
        weft_timing *t = &commands[launches[l].command];
        if (t->end_ns == 0) t->start_ns = launches[l].start_ns;
        t->end_ns = last = launches[l].end_ns;
    }
    for (int i = n_commands - 1; i >= 0; i--) {
        if (commands[i].end_ns == 0) commands[i].start_ns = commands[i].end_ns = last;
        last = commands[i].start_ns;
    }
}
