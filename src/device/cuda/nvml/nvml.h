/* NVML, NVIDIA's management library: what a card reports about itself.
 * Must not know: devices. Read next: nvml.c. */
#ifndef WEFT_DEVICE_CUDA_NVML_NVML_H
#define WEFT_DEVICE_CUDA_NVML_NVML_H

#include <weft/tensor.h>

#ifndef __nvml_nvml_h__ /* defined by the vendor's header; a test includes both */
typedef unsigned nvmlReturn_t, nvmlClockType_t, nvmlTemperatureSensors_t;
typedef struct nvmlDevice_st *nvmlDevice_t;
typedef struct nvmlUtilization_st {
#define NVML_UTILIZATION(type, name) type name;
#include "device/cuda/nvml/nvml.def"
#undef NVML_UTILIZATION
} nvmlUtilization_t;
typedef struct nvmlMemory_st {
#define NVML_MEMORY(type, name) type name;
#include "device/cuda/nvml/nvml.def"
#undef NVML_MEMORY
} nvmlMemory_t;
enum {
#define NVML_CONSTANT(name, value) name = (value),
#include "device/cuda/nvml/nvml.def"
#undef NVML_CONSTANT
};
#endif

typedef struct weft__nvml_functions {
#define NVML_FUNCTION(name, arguments) nvmlReturn_t(*name) arguments;
#include "device/cuda/nvml/nvml.def"
#undef NVML_FUNCTION
} weft__nvml_functions;

/* Opens the library once in the process. Returns NULL, or why this fails and what helps. All functions here
 * are thread-safe. */
const char *weft__nvml_open(void);
/* Writes the version, such as "13.580.65.06", and returns it. It is "" if the library cannot be opened. */
const char *weft__nvml_version(char version[80]);
/* Reads the card at a place on the PCI bus, such as "0000:3B:00.0". Returns false if the card cannot be
 * asked. Values that it does not report stay NaN. */
bool weft__nvml_read(const char *bus, weft_telemetry *telemetry);
/* Forgets the library without closing it. The next call looks for it again. */
void weft__nvml_forget(void);
/* Opened by tests instead of the system's library; NULL: the system's. */
extern const char *weft__nvml_file;

#endif
