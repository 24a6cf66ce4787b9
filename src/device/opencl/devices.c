/* Finds the OpenCL devices, and owns the context of each.
 * Must not know: buffers. Read next: gpu/backend/found.h, opencl.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/gpu/backend/hooks.h"
#include "device/opencl/devices.h"
#include "device/opencl/hooks.h"
#include "device/signals.h"

enum { PLATFORMS_MOST = 16, DEVICES_MOST = 32 };

static weft__opencl_found found[DEVICES_MOST];

/* ---- finding devices ---- */

static cl_ulong opencl_devices_number(cl_device_id id, cl_uint what) {
    cl_ulong value = 0;
    cl_uint word;
    size_t bytes = 0;
    if (weft__cl.clGetDeviceInfo(id, what, sizeof value, &value, &bytes) != 0) return 0;
    memcpy(&word, &value, sizeof word);
    return bytes == sizeof word ? word : value;
}

/* Reads a text without the spaces that drivers leave at its ends. */
static void text(cl_device_id id, cl_uint what, char *to, size_t size) {
    char whole[1024] = "";
    if (weft__cl.clGetDeviceInfo(id, what, sizeof whole - 1, whole, NULL) != 0) whole[0] = 0;
    const char *from = whole + strspn(whole, " ");
    size_t length = strlen(from);
    while (length && from[length - 1] == ' ') length--;
    snprintf(to, size, "%.*s", (int)length, from);
}

/* Returns 12 for "OpenCL 1.2 and what the vendor adds". */
static long version_of(const char *version) {
    static const char start[] = "OpenCL ";
    if (strncmp(version, start, sizeof start - 1) != 0) return 0;
    char *end;
    const long major = strtol(version + sizeof start - 1, &end, 10);
    return major * 10 + (*end == '.' ? strtol(end + 1, NULL, 10) : 0);
}

/* Writes what is missing for Weft to use the device. */
static void opencl_devices_check(weft__opencl_found *f) {
    char *reason = f->gpu.reason, version[96], profile[32];
    const size_t size = sizeof f->gpu.reason;
    text(f->id, OPENCL_DEVICE_VERSION, version, sizeof version);
    text(f->id, OPENCL_DEVICE_PROFILE, profile, sizeof profile);
    if (!opencl_devices_number(f->id, OPENCL_DEVICE_AVAILABLE))
        snprintf(reason, size, "its driver says that it is not available: is it in use or off?");
    else if (!opencl_devices_number(f->id, OPENCL_DEVICE_COMPILER_AVAILABLE))
        snprintf(reason, size, "its driver has no compiler: install the full driver");
    else if (!opencl_devices_number(f->id, OPENCL_DEVICE_ENDIAN_LITTLE))
        snprintf(reason, size, "it is big-endian, which Weft does not support");
    else if (version_of(version) < 12)
        snprintf(reason, size, "%s is below OpenCL 1.2: install a newer driver", version);
    else if (strcmp(profile, "FULL_PROFILE") != 0)
        snprintf(reason, size, "it has the embedded profile only, without 64-bit integers");
}

static void opencl_devices_describe(weft__opencl_found *f, cl_platform_id platform, cl_device_id id) {
    char version[96], driver[160];
    const cl_ulong type = opencl_devices_number(id, OPENCL_DEVICE_TYPE);
    *f = (weft__opencl_found){
        .gpu = {.cpu = type & OPENCL_DEVICE_TYPE_CPU,
                .gpu = (type & OPENCL_DEVICE_TYPE_GPU) || weft__device_cards_hook,
                .f64 = opencl_devices_number(id, OPENCL_DEVICE_DOUBLE_FP_CONFIG) != 0,
                .shares_memory = opencl_devices_number(id, OPENCL_DEVICE_HOST_UNIFIED_MEMORY) != 0,
                .units = (int)opencl_devices_number(id, OPENCL_DEVICE_MAX_COMPUTE_UNITS),
                .most_items = (int)opencl_devices_number(id, OPENCL_DEVICE_MAX_WORK_GROUP_SIZE),
                .memory = opencl_devices_number(id, OPENCL_DEVICE_GLOBAL_MEM_SIZE),
                .most_bytes = opencl_devices_number(id, OPENCL_DEVICE_MAX_MEM_ALLOC_SIZE),
                .local_bytes = opencl_devices_number(id, OPENCL_DEVICE_LOCAL_MEM_SIZE)},
        .platform = platform,
        .id = id};
    weft_gpu_found *g = &f->gpu;
    text(id, OPENCL_DEVICE_NAME, g->name, sizeof g->name);
    text(id, OPENCL_DRIVER_VERSION, driver, sizeof driver);
    text(id, OPENCL_DEVICE_VERSION, version, sizeof version);
    if (weft__cl.clGetPlatformInfo(platform, OPENCL_PLATFORM_NAME, sizeof g->maker - 1, g->maker, NULL) != 0)
        g->maker[0] = 0;
    opencl_devices_check(f);
    snprintf(g->detail, sizeof g->detail, "%.120s (%.60s), %.90s, driver %.100s", g->name, g->maker, version,
             driver);
}

/* Adds the GPUs, or all other devices, to the list of `count` devices. Returns their new number. GPUs are
 * added first: "opencl" alone must not mean the processor if there is a card. */
static int opencl_devices_collect(bool gpus, int count) {
    cl_platform_id platforms[PLATFORMS_MOST];
    cl_uint n_platforms = 0;
    if (weft__cl.clGetPlatformIDs(PLATFORMS_MOST, platforms, &n_platforms) != 0) n_platforms = 0;
    for (cl_uint p = 0; p < n_platforms && p < PLATFORMS_MOST; p++) {
        cl_device_id ids[DEVICES_MOST];
        cl_uint n = 0;
        if (weft__cl.clGetDeviceIDs(platforms[p], (cl_uint)OPENCL_DEVICE_TYPE_ALL, DEVICES_MOST, ids, &n) !=
            0)
            continue;
        for (cl_uint i = 0; i < n && i < DEVICES_MOST && count < DEVICES_MOST; i++) {
            weft__opencl_found f;
            opencl_devices_describe(&f, platforms[p], ids[i]);
            if (f.gpu.gpu != gpus) continue;
            snprintf(f.gpu.spec, sizeof f.gpu.spec, "opencl:%d", count);
            found[count++] = f;
        }
    }
    return count;
}

static int opencl_devices_look(const char **why) {
    weft__signals signals;
    weft__keep_signals(&signals);
    *why = weft__opencl_open_library();
    const int count = *why ? 0 : opencl_devices_collect(false, opencl_devices_collect(true, 0));
    weft__restore_signals(&signals);
    if (!count && !*why)
        *why = "the OpenCL loader finds no device: install the driver of your card, or "
               "pocl-opencl-icd to compute on the processor (clinfo shows what the loader sees)";
    return count;
}

/* Drivers for processors get small work-groups. */
static void adapt(const weft_gpu_found *found_device, weft_target *target) {
    enum { ITEMS_ON_PROCESSOR = 64 };
    const int items = weft__opencl_hook.items;
    target->on_processor = found_device->cpu && !items;
    if (found_device->cpu) target->lanes = items ? items : ITEMS_ON_PROCESSOR;
}

weft_gpu_devices weft__opencl_kind = {.name = "opencl",
                                      .dialect = WEFT_DIALECT_OPENCL,
                                      .list = found,
                                      .bytes = sizeof *found,
                                      .look = opencl_devices_look,
                                      .adapt = adapt,
                                      .lock = PTHREAD_MUTEX_INITIALIZER};

int weft__opencl_devices(const weft__opencl_found **list, const char **why) {
    *list = found;
    return weft__gpu_devices(&weft__opencl_kind, why);
}

/* ---- contexts ---- */

cl_context weft__opencl_context(const weft__opencl_found *f, cl_int *error) {
    cl_context *context = &found[f - found].context;
    const intptr_t properties[] = {OPENCL_CONTEXT_PLATFORM, (intptr_t)f->platform, 0};
    *error = 0;
    pthread_mutex_lock(&weft__opencl_kind.lock);
    if (!*context) {
        *context = weft__cl.clCreateContext(properties, 1, &f->id, NULL, NULL, error);
        if (*error) *context = NULL;
        weft__gpu_hook.contexts += *context != NULL;
    }
    if (*context) *error = weft__cl.clRetainContext(*context);
    cl_context mine = *error ? NULL : *context;
    pthread_mutex_unlock(&weft__opencl_kind.lock);
    return mine;
}

void weft__opencl_context_lost(const weft__opencl_found *f) {
    cl_context *context = &found[f - found].context;
    pthread_mutex_lock(&weft__opencl_kind.lock);
    if (*context) weft__cl.clReleaseContext(*context);
    *context = NULL;
    pthread_mutex_unlock(&weft__opencl_kind.lock);
}

void weft__opencl_forget(void) {
    for (int i = 0; i < weft__opencl_kind.count; i++) weft__opencl_context_lost(&found[i]);
    weft__opencl_kind.looked = false;
    weft__opencl_forget_library();
}
