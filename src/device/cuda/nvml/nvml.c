/* NVML, opened at run time. It comes with the driver. Only the display of a card's telemetry needs it.
 * Must not know: devices. Read next: src/train/run/telemetry.c. */
#include <stdio.h>

#include "device/cuda/nvml/nvml.h"
#include "device/shared_library.h"

const char *weft__nvml_file;

static weft__nvml_functions nvml;

static const char *const files[] = {
    "libnvidia-ml.so.1", "/usr/lib/wsl/lib/libnvidia-ml.so.1", /* WSL does not list it among the libraries */
};

static const weft_shared_symbol wanted[] = {
#define NVML_FUNCTION(name, arguments) {#name, offsetof(weft__nvml_functions, name)},
#include "device/cuda/nvml/nvml.def"
#undef NVML_FUNCTION
};

static void nvml_start(weft_shared_library *l) {
    const nvmlReturn_t error = nvml.nvmlInit_v2();
    if (error)
        snprintf(l->reason, sizeof l->reason, "%.60s does not start (error %u): nvidia-smi tells more",
                 l->path, error);
}

static weft_shared_library library = {.files = files,
                                      .n_files = sizeof files / sizeof *files,
                                      .wanted = wanted,
                                      .n_wanted = sizeof wanted / sizeof *wanted,
                                      .table = &nvml,
                                      .absent = "it comes with the driver of NVIDIA's cards",
                                      .old = "install a newer driver",
                                      .start = nvml_start};

const char *weft__nvml_open(void) { return weft__shared_library_open(&library, weft__nvml_file, NULL); }

void weft__nvml_forget(void) { library.looked = false; }

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
