/* NVML for tests. Each GPU reports values that are easy to check; those of the second GPU are ten times those
 * of the first. This file knows the GPUs by the bus ids that driver.c gives them, and nothing else about the
 * driver. Read next: fake.h. */
#include "device/cuda/nvml/nvml.h"

#include <stdio.h>
#include <string.h>

#define NVML_FUNCTION(name, arguments) __attribute__((visibility("default"))) nvmlReturn_t name arguments;
#include "device/cuda/nvml/nvml.def"
#undef NVML_FUNCTION

enum { UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6 };

struct nvmlDevice_st {
    unsigned scale;
} cards[2] = {{1}, {10}};
static int ready;

nvmlReturn_t nvmlInit_v2(void) {
    ready = 1;
    return 0;
}

static nvmlReturn_t say(const char *text, char *to, unsigned size) {
    if (!ready) return UNINITIALIZED;
    snprintf(to, size, "%s", text);
    return 0;
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned size) { return say("13.580.0", version, size); }

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus, nvmlDevice_t *card) {
    if (!ready) return UNINITIALIZED;
    for (int i = 0; i < 2; i++) {
        *card = &cards[i];
        if (strcmp(bus, i ? "0000:3B:00.0" : "0000:3A:00.0") == 0) return 0;
    }
    return NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t card, nvmlUtilization_t *used) {
    used->gpu = 9 * card->scale;
    used->memory = 5 * card->scale;
    return 0;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t card, nvmlMemory_t *memory) {
    memory->total = 1ULL << 34;
    memory->used = card->scale * 1000000000ULL;
    memory->free = memory->total - memory->used;
    return 0;
}

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t card, unsigned *milliwatts) {
    *milliwatts = 70500 * card->scale;
    return 0;
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t card, nvmlClockType_t of, unsigned *megahertz) {
    *megahertz = (of == NVML_CLOCK_SM ? 198 : 260) * card->scale;
    return of == NVML_CLOCK_SM || of == NVML_CLOCK_MEM ? 0 : INVALID_ARGUMENT;
}

/* Some GPUs do not report every value. */
nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t card, nvmlTemperatureSensors_t sensor, unsigned *celsius) {
    *celsius = 45;
    return sensor ? INVALID_ARGUMENT : card->scale == 1 ? 0 : NOT_SUPPORTED;
}
