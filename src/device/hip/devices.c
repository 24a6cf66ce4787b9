/* Finds the AMD cards, and says what is missing for them.
 * Must not know: buffers. Read next: gpu/backend/found.h, adapt.c. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "device/hip/hip.h"

enum { WARP = 32, GROUP_BYTES = 64 << 10, PRODUCTS = 160 };

static weft__cuda_found found[WEFT_HIP_CARDS];
static char why_none[500];
static const weft__cuda_api api = {&weft__hip.cu, &weft__hiprtc, &weft__hip_kind, &weft__rccl,
                                   &weft__hipblas};

/* ---- finding cards ---- */

static int hip_devices_number(CUdevice id, CUdevice_attribute what) {
    int value = 0;
    return weft__hip.cu.cuDeviceGetAttribute(&value, what, id) == 0 ? value : 0;
}

/* Writes what is missing for Weft to use the card. */
static void hip_devices_check(weft__cuda_found *f, const char *no_compiler) {
    char *reason = f->gpu.reason;
    const size_t size = sizeof f->gpu.reason;
    if (no_compiler)
        snprintf(reason, size, "the kernel compiler is missing: %s; until then opencl serves the card",
                 no_compiler);
    else if (!f->arch[0])
        snprintf(reason, size, "HIP does not tell its architecture (gfx version): install a newer ROCm");
    else if (f->wave != WARP && f->wave != 2 * WARP)
        snprintf(reason, size, "its wavefronts have %d lanes, and Weft knows those of 32 and 64", f->wave);
}

/* Writes whether hipBLASLt computes the card's matmuls. The library tells its version only when the card is
 * opened. */
static void hip_devices_products(const weft__cuda_found *f, char text[PRODUCTS]) {
    const char *missing = weft__hipblas.knows(f->arch) ? weft__blas_open(&weft__hipblas) : "";
    if (!missing)
        snprintf(text, PRODUCTS, "hipBLASLt");
    else if (!*missing)
        snprintf(text, PRODUCTS, "no hipBLASLt (matmuls on own kernels: it has none for this architecture)");
    else
        snprintf(text, PRODUCTS, "no hipBLASLt (matmuls on own kernels: %s)",
                 strncmp(missing, "WEFT", 4) == 0 ? missing : "install hipblaslt of ROCm 6.1 or later");
}

static void hip_devices_describe(weft__cuda_found *f, int i, const char *no_compiler) {
    char compiler[WEFT_HIP_VERSION] = "no hipRTC", runtime[WEFT_HIP_VERSION], products[PRODUCTS];
    size_t memory = 0;
    weft_gpu_found *g = &f->gpu;
    *f = (weft__cuda_found){.gpu = {.gpu = true, .f64 = true}, .api = &api};
    snprintf(g->spec, sizeof g->spec, "hip:%d", i);
    snprintf(g->name, sizeof g->name, "card %d", i);
    if (weft__hip.cu.cuDeviceGet(&f->id, i) != 0) {
        snprintf(g->reason, sizeof g->reason, "HIP does not give access to it: rocminfo tells more");
        return;
    }
    if (weft__hip.cu.cuDeviceGetName(g->name, sizeof g->name, f->id) != 0 || !g->name[0])
        snprintf(g->name, sizeof g->name, "AMD card");
    if (weft__hip.cu.cuDeviceGetPCIBusId(f->bus, sizeof f->bus, f->id) != 0) f->bus[0] = 0;
    if (weft__hip.cu.cuDeviceTotalMem_v2(&memory, f->id) == 0) g->memory = g->most_bytes = memory;
    g->units = hip_devices_number(f->id, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    g->most_items = hip_devices_number(f->id, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    g->local_bytes = (uint64_t)hip_devices_number(f->id, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
    if (g->local_bytes > GROUP_BYTES) g->local_bytes = GROUP_BYTES; /* what source may declare */
    f->most_local_bytes = g->local_bytes;
    f->wave = hip_devices_number(f->id, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
    weft__hip_arch(f->id, f->arch);
    hip_devices_check(f, no_compiler);
    if (!no_compiler) weft__hiprtc_version(compiler);
    weft__hip_version(runtime);
    snprintf(f->compiler, sizeof f->compiler, "%s %s %s", compiler, runtime, f->arch);
    hip_devices_products(f, products);
    snprintf(g->detail, sizeof g->detail, "%.120s, %.*s, wavefronts of %d, %s, %s, %s", g->name,
             (int)strcspn(f->arch, ":"), f->arch[0] ? f->arch : "unknown architecture", f->wave, runtime,
             compiler, products);
}

/* The file by which the runtime uses AMD's cards. */
static const char *node(void) { return weft__hip_hook.node ? weft__hip_hook.node : "/dev/kfd"; }

/* Returns what helps if the runtime is there and finds no card. */
static const char *remedy(void) {
    if (access(node(), F_OK) != 0)
        return "there is no /dev/kfd: the kernel's module amdgpu makes it for AMD's cards; a container needs "
               "--device /dev/kfd --device /dev/dri";
    if (access(node(), R_OK | W_OK) != 0)
        return "this user may not open /dev/kfd: add the user to the groups render and video (sudo usermod "
               "-aG "
               "render,video $USER), and log in again";
    return "check HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES, and that ROCm supports the card; rocminfo "
           "tells "
           "more";
}

static int hip_devices_look(const char **why) {
    char said[160];
    int n = 0;
    const char *reason = weft__hip_open_library();
    snprintf(why_none, sizeof why_none, "%s", reason ? reason : "");
    *why = why_none;
    if (reason) return 0;
    CUresult error = weft__hip.cu.cuInit(0);
    if (!error) error = weft__hip.cu.cuDeviceGetCount(&n);
    if (error || n < 1) {
        snprintf(why_none, sizeof why_none, "HIP finds no card (%s): %s",
                 error ? weft__cuda_error_name(&weft__hip.cu, error, said) : "none", remedy());
        return 0;
    }
    const char *no_compiler = weft__hip_open_compiler();
    if (n > WEFT_HIP_CARDS) n = WEFT_HIP_CARDS;
    for (int i = 0; i < n; i++) hip_devices_describe(&found[i], i, no_compiler);
    return n;
}

/* Returns whether Weft uses the matrix cores of an architecture: those that gpu/prelude/matrix.cu knows. */
static bool has_matrix_cores(const char *arch) {
    static const char *const known[] = {"gfx908",  "gfx90a",  "gfx940",  "gfx941",  "gfx942",  "gfx950",
                                        "gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151",
                                        "gfx1152", "gfx1153", "gfx1200", "gfx1201"};
    const size_t n = strcspn(arch, ":");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (n == strlen(known[i]) && strncmp(arch, known[i], n) == 0) return true;
    return false;
}

/* Kernels for tensor cores are CUDA's: a capability of 0 means that there are none. */
static void adapt(const weft_gpu_found *card, weft_target *target) {
    const weft__cuda_found *f = (const weft__cuda_found *)card;
    target->most_local_bytes = (int64_t)f->most_local_bytes;
    target->groups_most = WEFT_CUDA_GROUPS;
    target->matrix_lanes = has_matrix_cores(f->arch) ? f->wave : 0;
}

/* If there is no card, plans are made for a common one: an MI210. */
static const weft__cuda_found usual = {
    .gpu = {.spec = "hip",
            .name = "gfx90a",
            .detail = "there is no card: plans are for one of gfx90a, 104 compute units and 64 GiB",
            .gpu = true,
            .f64 = true,
            .units = 104,
            .most_items = 1024,
            .memory = UINT64_C(64) << 30,
            .local_bytes = GROUP_BYTES},
    .arch = "gfx90a",
    .wave = 2 * WARP,
    .most_local_bytes = GROUP_BYTES};

weft_gpu_devices weft__hip_kind = {.name = "hip",
                                   .dialect = WEFT_DIALECT_CUDA,
                                   .list = found,
                                   .bytes = sizeof *found,
                                   .look = hip_devices_look,
                                   .adapt = adapt,
                                   .usual = &usual.gpu,
                                   .lock = PTHREAD_MUTEX_INITIALIZER};

bool weft__hip_driver(void) {
    bool card = access(node(), F_OK) == 0;
    if (!weft__hip_hook.node) card = card || access("/dev/dxg", F_OK) == 0; /* of WSL */
    return card && !weft__hip_open_library();
}

void weft__hip_forget(void) {
    for (int i = 0; i < weft__hip_kind.count; i++) found[i].context = NULL;
    weft__hip_kind.looked = false;
    weft__hip_forget_libraries();
}

int weft__hip_devices(const weft__cuda_found **list, const char **why) {
    *list = found;
    return weft__gpu_devices(&weft__hip_kind, why);
}
