/* Kernel sources of models for a CUDA device, or for HIP. */
#ifndef WEFT_TESTS_NVRTC_MODELS_H
#define WEFT_TESTS_NVRTC_MODELS_H

#include <stdbool.h>

/* Prints a message and returns false if a model could not be written. hip: as for AMD's cards. */
bool write_model_sources(const char *folder, bool hip);

#endif
