/* Finds the OpenCL devices, chooses one by its number, kind or name, and owns the context of each.
 * Must not know: buffers. Read next: opencl.c. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/threads.h"
#include "device/gpu/backend/backend.h"
#include "device/opencl/devices.h"
#include "device/opencl/hooks.h"

enum { PLATFORMS_MOST = 16, DEVICES_MOST = 32 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool looked;
static int looked_at; /* weft__forks() at that time */
static int count;
static weft__opencl_found found[DEVICES_MOST];
static const char *why_none;

/* ---- finding devices ---- */

static cl_ulong number(cl_device_id id, cl_uint what) {
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
static void check(weft__opencl_found *f) {
    char version[96], profile[32];
    text(f->id, OPENCL_DEVICE_VERSION, version, sizeof version);
    text(f->id, OPENCL_DEVICE_PROFILE, profile, sizeof profile);
    if (!number(f->id, OPENCL_DEVICE_AVAILABLE))
        snprintf(f->reason, sizeof f->reason,
                 "its driver says that it is not available: is it in use or off?");
    else if (!number(f->id, OPENCL_DEVICE_COMPILER_AVAILABLE))
        snprintf(f->reason, sizeof f->reason, "its driver has no compiler: install the full driver");
    else if (!number(f->id, OPENCL_DEVICE_ENDIAN_LITTLE))
        snprintf(f->reason, sizeof f->reason, "it is big-endian, which Weft does not serve");
    else if (version_of(version) < 12)
        snprintf(f->reason, sizeof f->reason, "%s is below OpenCL 1.2: install a newer driver", version);
    else if (strcmp(profile, "FULL_PROFILE") != 0)
        snprintf(f->reason, sizeof f->reason, "it has the embedded profile only, without 64-bit integers");
}

static void describe(weft__opencl_found *f, cl_platform_id platform, cl_device_id id) {
    char version[96];
    *f = (weft__opencl_found){.platform = platform, .id = id};
    text(id, OPENCL_DEVICE_NAME, f->name, sizeof f->name);
    text(id, OPENCL_DRIVER_VERSION, f->driver, sizeof f->driver);
    text(id, OPENCL_DEVICE_VERSION, version, sizeof version);
    if (weft__cl.clGetPlatformInfo(platform, OPENCL_PLATFORM_NAME, sizeof f->platform_name - 1,
                                   f->platform_name, NULL) != 0)
        f->platform_name[0] = 0;
    const cl_ulong type = number(id, OPENCL_DEVICE_TYPE);
    f->cpu = type & OPENCL_DEVICE_TYPE_CPU;
    f->gpu = (type & OPENCL_DEVICE_TYPE_GPU) || weft__opencl_hook.cards;
    f->f64 = number(id, OPENCL_DEVICE_DOUBLE_FP_CONFIG) != 0;
    f->shares_memory = number(id, OPENCL_DEVICE_HOST_UNIFIED_MEMORY) != 0;
    f->units = (int)number(id, OPENCL_DEVICE_MAX_COMPUTE_UNITS);
    f->vector_bytes = 4 * (int)number(id, OPENCL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT);
    f->most_items = (int)number(id, OPENCL_DEVICE_MAX_WORK_GROUP_SIZE);
    f->memory = number(id, OPENCL_DEVICE_GLOBAL_MEM_SIZE);
    f->most_bytes = number(id, OPENCL_DEVICE_MAX_MEM_ALLOC_SIZE);
    f->local_bytes = number(id, OPENCL_DEVICE_LOCAL_MEM_SIZE);
    check(f);
    snprintf(f->detail, sizeof f->detail, "%.120s (%.60s), %.90s, driver %.100s", f->name, f->platform_name,
             version, f->driver);
}

/* Adds the GPUs, or all other devices, to the list. GPUs are added first: "opencl" alone must not mean the
 * processor if there is a card. */
static void collect(bool gpus) {
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
            describe(&f, platforms[p], ids[i]);
            if (f.gpu != gpus) continue;
            snprintf(f.spec, sizeof f.spec, "opencl:%d", count);
            found[count++] = f;
        }
    }
}

int weft__opencl_devices(const weft__opencl_found **list, const char **why) {
    pthread_mutex_lock(&lock);
    if (!looked) {
        weft__opencl_signals signals;
        weft__opencl_keep_signals(&signals);
        count = 0;
        why_none = weft__opencl_open_library();
        if (!why_none) {
            collect(true);
            collect(false);
            if (!count)
                why_none = "the OpenCL loader finds no device: install the driver of your card, or "
                           "pocl-opencl-icd to compute on the processor (clinfo shows what the loader sees)";
        }
        weft__opencl_restore_signals(&signals);
        looked = true;
        looked_at = weft__forks();
    }
    const char *forked = weft__device_forked(looked_at);
    pthread_mutex_unlock(&lock);
    *list = found;
    if (why) *why = forked ? forked : why_none;
    return forked ? 0 : count;
}

/* ---- contexts ---- */

cl_context weft__opencl_context(const weft__opencl_found *f, cl_int *error) {
    cl_context *context = &found[f - found].context;
    const intptr_t properties[] = {OPENCL_CONTEXT_PLATFORM, (intptr_t)f->platform, 0};
    *error = 0;
    pthread_mutex_lock(&lock);
    if (!*context) {
        *context = weft__cl.clCreateContext(properties, 1, &f->id, NULL, NULL, error);
        if (*error) *context = NULL;
        weft__gpu_hook.contexts += *context != NULL;
    }
    if (*context) *error = weft__cl.clRetainContext(*context);
    cl_context mine = *error ? NULL : *context;
    pthread_mutex_unlock(&lock);
    return mine;
}

void weft__opencl_context_lost(const weft__opencl_found *f) {
    cl_context *context = &found[f - found].context;
    pthread_mutex_lock(&lock);
    if (*context) weft__cl.clReleaseContext(*context);
    *context = NULL;
    pthread_mutex_unlock(&lock);
}

void weft__opencl_forget(void) {
    for (int i = 0; i < count; i++) weft__opencl_context_lost(&found[i]);
    looked = false;
    weft__opencl_forget_library();
}

/* ---- choosing ---- */

const weft__opencl_found *weft__opencl_choose(weft_context *ctx, const char *selector) {
    const weft__opencl_found *list;
    const char *why;
    weft_gpu_name names[DEVICES_MOST];
    const int n = weft__opencl_devices(&list, &why);
    for (int i = 0; i < n; i++)
        names[i] = (weft_gpu_name){list[i].spec,   list[i].name, list[i].platform_name,
                                   list[i].reason, list[i].cpu,  list[i].gpu};
    const int chosen = weft__gpu_choose(ctx, "opencl", selector, names, n, why);
    return chosen < 0 ? NULL : &list[chosen];
}
