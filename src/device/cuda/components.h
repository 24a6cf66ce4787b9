/* The components of CUDA, for `weft doctor`.
 * Must not know: what a component does. Read next: components.c. */
#ifndef WEFT_DEVICE_CUDA_COMPONENTS_H
#define WEFT_DEVICE_CUDA_COMPONENTS_H

#include <stdbool.h>

enum { WEFT_COMPONENT_TEXT = 800 };

/* Returns whether a component is installed: "driver", "card", "NVRTC", "cuBLASLt", "cuDNN", "NCCL" or "NVML".
 * text receives its version, or why it is missing and what helps. */
bool weft__cuda_component(const char *name, char text[WEFT_COMPONENT_TEXT]);

#endif
