/* Kernel sources of models for a CUDA, a HIP or a WebGPU device. */
#ifndef WEFT_TESTS_NVRTC_MODELS_H
#define WEFT_TESTS_NVRTC_MODELS_H

#include <stdbool.h>

/* Prints a message and returns false if a model could not be written. device: "cuda", "hip" or "webgpu". */
bool write_model_sources(const char *folder, const char *device);

#endif
