/* Lists, chooses, describes and outlines the devices of an API.
 * Must not know: OpenCL, CUDA, open devices. Read next: opencl/devices.c, cuda/devices.c. */
#include "device/gpu/backend/found.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/threads.h"
#include "device/quiet.h"
#include "device/gpu/backend/backend.h"
#include "device/gpu/gpu.h"

void (*weft__device_search)(bool begins);

int weft__gpu_devices(weft_gpu_devices *devices, const char **why) {
    pthread_mutex_lock(&devices->lock);
    if (!devices->looked) {
        devices->why = NULL;
        if (weft__device_search) weft__device_search(true);
        devices->count = devices->look(&devices->why);
        if (weft__device_search) weft__device_search(false);
        devices->looked = true;
        devices->forks = weft__forks();
    }
    const char *forked = weft__device_forked(devices->forks);
    pthread_mutex_unlock(&devices->lock);
    if (why) *why = forked ? forked : devices->why;
    return forked ? 0 : devices->count;
}

static const weft_gpu_found *found_at(const weft_gpu_devices *devices, int i) {
    return (const void *)((const char *)devices->list + (size_t)i * devices->bytes);
}

/* ---- choosing ---- */

static bool has(const char *whole, const char *part) {
    const size_t n = strlen(part);
    for (; *whole; whole++)
        if (strncasecmp(whole, part, n) == 0) return true;
    return false;
}

static bool means(const weft_gpu_found *f, int i, const char *selector) {
    char *end;
    const long wanted = strtol(selector, &end, 10);
    if (*selector == '\0') return true;
    if (*end == '\0') return wanted == i;
    if (strcmp(selector, "gpu") == 0) return f->gpu;
    if (strcmp(selector, "cpu") == 0) return f->cpu;
    return has(f->name, selector) || has(f->maker, selector);
}

/* Writes "opencl:0 (NAME), opencl:1 (NAME: why not)" to `to`, and returns it. */
static const char *all(const weft_gpu_devices *devices, int count, char *to, size_t size) {
    size_t used = 0;
    to[0] = 0;
    for (int i = 0; i < count && used < size; i++) {
        const weft_gpu_found *f = found_at(devices, i);
        const int n = snprintf(to + used, size - used, "%s%s (%s%s%s)", i ? ", " : "", f->spec, f->name,
                               f->reason[0] ? ": " : "", f->reason);
        used += n > 0 ? (size_t)n : 0;
    }
    return to;
}

const weft_gpu_found *weft__gpu_choose(weft_context *ctx, weft_gpu_devices *devices, const char *selector) {
    const weft_gpu_found *refused = NULL;
    const char *why;
    char others[600];
    const int count = weft__gpu_devices(devices, &why);
    if (!selector) selector = "";
    for (int i = 0; i < count; i++) {
        const weft_gpu_found *f = found_at(devices, i);
        if (!means(f, i, selector)) continue;
        if (!f->reason[0]) return f;
        if (!refused) refused = f;
    }
    if (!count)
        weft__fail(ctx, WEFT_ERR_DEVICE, "device %s: %s", devices->name, why);
    else if (refused)
        weft__fail(ctx, WEFT_ERR_DEVICE, "device %s (%s): %s", refused->spec, refused->name, refused->reason);
    else
        weft__fail(ctx, WEFT_ERR_DEVICE, "device \"%s:%s\": there is none; there are %s", devices->name,
                   selector, all(devices, count, others, sizeof others));
    return NULL;
}

/* ---- describing ---- */

weft_target weft__gpu_target(const weft_gpu_devices *devices, const weft_gpu_found *found) {
    weft_target target = {.dialect = devices->dialect,
                          .lanes = 256,
                          .units = found->units > 0 ? found->units : 1,
                          .local_bytes = (int64_t)found->local_bytes,
                          .f64 = found->f64};
    devices->adapt(found, &target);
    while (target.lanes > found->most_items && target.lanes > 1) target.lanes /= 2;
    return target;
}

static weft_gpu_devices *kind_of(const weft_device_module *module) {
    return ((const weft_gpu_backend *)module->backend)->devices;
}

const char *weft__gpu_find_devices(weft_gpu_devices *devices, char text[WEFT_COMPONENT_TEXT]) {
    const char *why;
    const int n = weft__gpu_devices(devices, &why);
    if (n) snprintf(text, WEFT_COMPONENT_TEXT, "%d device%s", n, n == 1 ? "" : "s");
    return n ? NULL : why;
}

int weft__gpu_count(const weft_device_module *module) {
    const int n = weft__gpu_devices(kind_of(module), NULL);
    return n ? n : 1; /* one entry, which says why there is none */
}

void weft__gpu_describe(const weft_device_module *module, int i, weft_device_description *d) {
    weft_gpu_devices *devices = kind_of(module);
    const char *why;
    const int n = weft__gpu_devices(devices, &why);
    *d = (weft_device_description){.name = devices->name, .reason = why};
    if (i < 0 || i >= n) return;
    const weft_gpu_found *f = found_at(devices, i);
    *d = (weft_device_description){.name = f->spec,
                                   .detail = f->detail,
                                   .reason = f->reason[0] ? f->reason : NULL,
                                   .present = !f->reason[0],
                                   .threads = f->units,
                                   .memory = f->memory,
                                   .buffer_limit = f->most_bytes,
                                   .local_memory = f->local_bytes,
                                   .f64 = f->f64,
                                   .card = f->gpu};
}

weft_status weft__gpu_outline(const weft_device_module *module, weft_context *ctx, const char *selector,
                              weft_device_outline *out) {
    weft_gpu_devices *devices = kind_of(module);
    const weft_gpu_found *f = devices->usual;
    out->absent =
        f && weft__gpu_devices(devices, NULL) == 0 && (!*selector || strcmp(selector, f->name) == 0);
    if (!out->absent && !(f = weft__gpu_choose(ctx, devices, selector))) return WEFT_ERR_DEVICE;
    snprintf(out->name, sizeof out->name, "%s", f->spec);
    snprintf(out->detail, sizeof out->detail, "%.399s", f->detail);
    out->memory = f->memory;
    out->target = weft__gpu_target(devices, f);
    out->takes = weft__gpu_takes;
    out->launches = true;
    out->links = module->ops->extras->links != NULL;
    return WEFT_OK;
}
