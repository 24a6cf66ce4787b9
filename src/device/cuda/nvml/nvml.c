/* NVML, opened at run time. It comes with the driver. Only the display of a card's telemetry needs it.
 * Must not know: devices. Read next: src/train/run/telemetry.c. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "device/cuda/nvml/nvml.h"

const char *weft__nvml_file;

static weft__nvml_functions nvml;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool looked;
static char reason[200];

static const char *const files[] = {
    "libnvidia-ml.so.1", "/usr/lib/wsl/lib/libnvidia-ml.so.1", /* WSL does not list it among the libraries */
};

/* Resolves all functions. Returns the name of the first missing one, or NULL. */
static const char *resolve(void *library) {
    void *symbol;
#define NVML_FUNCTION(name, arguments)                                                                       \
    symbol = dlsym(library, #name);                                                                          \
    if (!symbol) return #name;                                                                               \
    memcpy(&nvml.name, &symbol, sizeof symbol);
#include "device/cuda/nvml/nvml.def"
#undef NVML_FUNCTION
    return NULL;
}

static void look(void) {
    const char *file = weft__nvml_file;
    void *library = file ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : NULL;
    for (size_t i = 0; !weft__nvml_file && !library && i < sizeof files / sizeof *files; i++)
        library = dlopen(file = files[i], RTLD_NOW | RTLD_LOCAL);
    reason[0] = 0;
    const char *missing = library ? resolve(library) : NULL;
    if (!library)
        snprintf(reason, sizeof reason, "%.60s cannot be opened: it comes with the driver of NVIDIA's cards",
                 weft__nvml_file ? weft__nvml_file : files[0]);
    else if (missing)
        snprintf(reason, sizeof reason, "%.60s has no %s: install a newer driver", file, missing);
    const nvmlReturn_t error = reason[0] ? 0 : nvml.nvmlInit_v2();
    if (error)
        snprintf(reason, sizeof reason, "%.60s does not start (error %u): nvidia-smi tells more", file,
                 error);
}

const char *weft__nvml_open(void) {
    pthread_mutex_lock(&lock);
    if (!looked) look();
    looked = true;
    pthread_mutex_unlock(&lock);
    return reason[0] ? reason : NULL;
}

void weft__nvml_forget(void) { looked = false; }

const char *weft__nvml_version(char version[80]) {
    if (weft__nvml_open() || nvml.nvmlSystemGetNVMLVersion(version, 80) != 0) version[0] = 0;
    return version;
}

bool weft__nvml_read(const char *bus, weft_telemetry *g) {
    nvmlDevice_t card;
    nvmlUtilization_t used;
    nvmlMemory_t memory;
    unsigned value;
    if (weft__nvml_open() || nvml.nvmlDeviceGetHandleByPciBusId_v2(bus, &card) != 0) return false;
    if (nvml.nvmlDeviceGetUtilizationRates(card, &used) == 0) g->utilisation = 0.01 * used.gpu;
    if (nvml.nvmlDeviceGetMemoryInfo(card, &memory) == 0) g->memory_used = (double)memory.used;
    if (nvml.nvmlDeviceGetPowerUsage(card, &value) == 0) g->power = 1e-3 * value;
    if (nvml.nvmlDeviceGetClockInfo(card, NVML_CLOCK_SM, &value) == 0) g->clock = value;
    if (nvml.nvmlDeviceGetClockInfo(card, NVML_CLOCK_MEM, &value) == 0) g->memory_clock = value;
    if (nvml.nvmlDeviceGetTemperature(card, NVML_TEMPERATURE_GPU, &value) == 0) g->temperature = value;
    return true;
}
