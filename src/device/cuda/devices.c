/* Finds the CUDA cards.
 * Must not know: buffers. Read next: gpu/backend/found.h, gpu/driver/open.c. */
#include <stdio.h>
#include <string.h>

#include "device/cuda/cuda.h"
#include "device/cuda/nvml/nvml.h"
#include "device/cuda/nvrtc.h"
#include "device/cuda/search.h"

enum { CARDS_MOST = 16, LEAST_VERSION = 12000 };

static bool driver;
static weft__cuda_found found[CARDS_MOST];
static char why_none[600];
static const weft__cuda_api api = {&weft__cu, &weft__nvrtc, &weft__cuda_kind, &weft__nccl, &weft__cublas};

/* ---- finding cards ---- */

static int cuda_devices_number(CUdevice id, CUdevice_attribute what) {
    int value = 0;
    return weft__cu.cuDeviceGetAttribute(&value, what, id) == 0 ? value : 0;
}

/* Writes the driver's release, such as "580.65.06". The driver's own interface does not have it. Writes "" if
 * the system does not tell. */
static void driver_release(char to[32]) {
    FILE *file = fopen("/sys/module/nvidia/version", "r");
    to[0] = 0;
    if (file && !fgets(to, 32, file)) to[0] = 0;
    if (file) fclose(file);
    to[strcspn(to, "\n")] = 0;
}

static void write_version(int version, char text[80]) {
    char release[32];
    driver_release(release);
    snprintf(text, 80, "%.30s%sCUDA %d.%d%s", release, release[0] ? " (" : "", version / 1000,
             version % 1000 / 10, release[0] ? ")" : "");
}

void weft__cuda_driver_version(char text[80]) {
    int version = 0;
    if (weft__cu.cuDriverGetVersion(&version) != 0) version = 0;
    write_version(version, text);
}

/* Returns the architecture that NVRTC compiles for. Code for 8.6 runs on 8.9, but not on 9.0. Returns 0 if it
 * knows none that runs on the card. */
static int target_of(int capability) {
    for (int c = capability; c >= capability / 10 * 10; c--)
        if (weft__nvrtc_knows(c)) return c;
    return 0;
}

/* Writes what is missing for Weft to use the card. */
static void cuda_devices_check(weft__cuda_found *f, int version, const char *no_compiler) {
    char *reason = f->gpu.reason;
    const size_t size = sizeof f->gpu.reason;
    int major = 0, minor = 0;
    if (no_compiler) {
        snprintf(reason, size,
                 "its driver is installed, but the kernel compiler is missing: %s; until then opencl serves "
                 "the card",
                 no_compiler);
        return;
    }
    weft__nvrtc_version(&major, &minor);
    if (cuda_devices_number(f->id, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE) == CU_COMPUTEMODE_PROHIBITED)
        snprintf(reason, size,
                 "its compute mode forbids computing: the administrator can run nvidia-smi -c DEFAULT");
    else if (major > version / 1000)
        snprintf(
            reason, size,
            "NVRTC %d.%d makes code for drivers of CUDA %d, and this one is for CUDA %d.%d: install NVRTC %d "
            "(PyPI: nvidia-cuda-nvrtc-cu%d) or a newer driver; until then opencl serves the card",
            major, minor, major, version / 1000, version % 1000 / 10, version / 1000, version / 1000);
    else if (!target_of(f->capability))
        snprintf(reason, size,
                 "NVRTC %d.%d does not compile for compute capability %d.%d: install %s; until then opencl "
                 "serves the card",
                 major, minor, f->capability / 10, f->capability % 10,
                 f->capability < 75 ? "NVRTC 12 (PyPI: nvidia-cuda-nvrtc-cu12)"
                                    : "a newer one (PyPI: nvidia-cuda-nvrtc)");
}

static void cuda_devices_describe(weft__cuda_found *f, int i, int version, const char *no_compiler) {
    char text[80], products[80], attention[96];
    size_t memory = 0;
    int major = 0, minor = 0;
    weft_gpu_found *g = &f->gpu;
    *f = (weft__cuda_found){.gpu = {.gpu = true, .f64 = true}, .api = &api};
    snprintf(g->spec, sizeof g->spec, "cuda:%d", i);
    snprintf(g->name, sizeof g->name, "card %d", i);
    if (weft__cu.cuDeviceGet(&f->id, i) != 0) {
        snprintf(g->reason, sizeof g->reason, "its driver does not give access to it: nvidia-smi tells more");
        return;
    }
    if (weft__cu.cuDeviceGetName(g->name, sizeof g->name, f->id) != 0) snprintf(g->name, 8, "card");
    if (weft__cu.cuDeviceGetPCIBusId(f->bus, sizeof f->bus, f->id) != 0) f->bus[0] = 0;
    if (weft__cu.cuDeviceTotalMem_v2(&memory, f->id) == 0) g->memory = g->most_bytes = memory;
    f->capability = 10 * cuda_devices_number(f->id, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
                    cuda_devices_number(f->id, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    g->units = cuda_devices_number(f->id, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    g->most_items = cuda_devices_number(f->id, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    g->local_bytes = (uint64_t)cuda_devices_number(f->id, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
    f->most_local_bytes =
        (uint64_t)cuda_devices_number(f->id, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    cuda_devices_check(f, version, no_compiler);
    if (!no_compiler) {
        f->arch_number = target_of(f->capability);
        snprintf(f->arch, sizeof f->arch, "sm_%d", f->arch_number);
        weft__nvrtc_version(&major, &minor);
    }
    snprintf(f->compiler, sizeof f->compiler, "NVRTC %d.%d %s", major, minor, f->arch);
    const char *no_products = weft__blas_open(&weft__cublas);
    if (no_products)
        snprintf(products, sizeof products, "no cuBLASLt (matmuls on own kernels: %s)",
                 strncmp(no_products, "WEFT", 4) == 0 ? no_products : "pip install nvidia-cublas");
    else
        weft__blas_version(&weft__cublas, products);
    weft__dnn_describe(attention);
    write_version(version, text);
    snprintf(g->detail, sizeof g->detail, "%.120s, compute capability %d.%d, driver %s, NVRTC %d.%d, %s, %s",
             g->name, f->capability / 10, f->capability % 10, text, major, minor, products, attention);
}

static int cuda_devices_collect(void) {
    char said[160];
    int n = 0, version = 0;
    CUresult error = weft__cu.cuInit(0);
    if (!error) error = weft__cu.cuDriverGetVersion(&version);
    if (!error) error = weft__cu.cuDeviceGetCount(&n);
    if (!error && version < LEAST_VERSION) {
        char text[80];
        write_version(version, text);
        snprintf(
            why_none, sizeof why_none,
            "the driver, %s, is older than CUDA 12: install a newer one (525 or later); until then opencl "
            "serves its cards",
            text);
        return 0;
    }
    if (error || n < 1) {
        snprintf(
            why_none, sizeof why_none,
            "the CUDA driver finds no card (%s): check that there is one, that CUDA_VISIBLE_DEVICES and this "
            "user's permissions allow it, and that the machine was restarted after the driver was "
            "installed; nvidia-smi tells more",
            error ? weft__cuda_error_name(&weft__cu, error, said) : "none");
        return 0;
    }
    weft__cuda_libraries_for(version);
    const char *no_compiler = weft__nvrtc_open();
    for (int i = 0; i < n && i < CARDS_MOST; i++) cuda_devices_describe(&found[i], i, version, no_compiler);
    return n < CARDS_MOST ? n : CARDS_MOST;
}

static int cuda_devices_look(const char **why) {
    const char *reason = weft__cuda_open_library();
    driver = !reason;
    snprintf(why_none, sizeof why_none, "%s", reason ? reason : "");
    *why = why_none;
    return driver ? cuda_devices_collect() : 0;
}

/* Work-groups are as large as for OpenCL, which shares the kernels. */
static void adapt(const weft_gpu_found *card, weft_target *target) {
    const weft__cuda_found *f = (const weft__cuda_found *)card;
    target->most_local_bytes = (int64_t)f->most_local_bytes;
    target->groups_most = WEFT_CUDA_GROUPS;
    target->capability = f->arch_number;
}

/* If there is no card, plans are made for a common one: an H100. */
static const weft__cuda_found usual = {
    .gpu =
        {.spec = "cuda",
         .name = "sm_90",
         .detail =
             "there is no card: plans are for one of compute capability 9.0, 132 multiprocessors and 80 GiB",
         .gpu = true,
         .f64 = true,
         .units = 132,
         .most_items = 1024,
         .memory = UINT64_C(80) << 30,
         .local_bytes = 48 << 10},
    .arch_number = 90,
    .capability = 90,
    .most_local_bytes = 227 << 10};

weft_gpu_devices weft__cuda_kind = {.name = "cuda",
                                    .dialect = WEFT_DIALECT_CUDA,
                                    .list = found,
                                    .bytes = sizeof *found,
                                    .look = cuda_devices_look,
                                    .adapt = adapt,
                                    .usual = &usual.gpu,
                                    .lock = PTHREAD_MUTEX_INITIALIZER};

int weft__cuda_devices(const weft__cuda_found **list, const char **why) {
    *list = found;
    return weft__gpu_devices(&weft__cuda_kind, why);
}

bool weft__cuda_driver(void) {
    (void)weft__gpu_devices(&weft__cuda_kind, NULL);
    return driver;
}

void weft__cuda_forget(void) {
    weft__nccl_forget(&weft__nccl);
    for (int i = 0; i < weft__cuda_kind.count; i++) {
        if (found[i].context) weft__cu.cuDevicePrimaryCtxRelease_v2(found[i].id);
        found[i].context = NULL;
    }
    weft__cuda_kind.looked = false;
    weft__cuda_forget_library();
    weft__nvrtc_forget();
    weft__blas_forget(&weft__cublas);
    weft__dnn_forget();
    weft__nvml_forget();
}
