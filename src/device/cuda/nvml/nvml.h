/* NVIDIA's management library: what a card says of itself. Read next: nvml.c. */
#ifndef WEFT_DEVICE_CUDA_NVML_NVML_H
#define WEFT_DEVICE_CUDA_NVML_NVML_H

#include <weft/tensor.h>

#ifndef __nvml_nvml_h__ /* the vendor's header, beside which a test includes this one */
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

/* Opens it, once a process; NULL, or why that cannot be and what helps. Thread-safe, as are the others. */
const char *weft__nvml_open(void);
/* "13.580.65.06"; "" where it cannot be opened. */
const char *weft__nvml_version(char version[80]);
/* Reads the card at a place on the PCI bus ("0000:3B:00.0"); false where it cannot be asked. What it does not
 * tell stays NaN. */
bool weft__nvml_read(const char *bus, weft_gauges *gauges);
/* Closes nothing, but looks for it anew at the next call. */
void weft__nvml_forget(void);
/* Opened instead of the system's, by tests; NULL: that. */
extern const char *weft__nvml_file;

#endif
