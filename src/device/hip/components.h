/* The components of HIP, for `weft doctor`.
 * Must not know: what a component does. Read next: components.c. */
#ifndef WEFT_DEVICE_HIP_COMPONENTS_H
#define WEFT_DEVICE_HIP_COMPONENTS_H

#include "device/cuda/components.h"

/* Returns whether a component is installed: "runtime", "card", "hipRTC", "hipBLASLt" or "RCCL". text
 * receives its version, or why it is missing and what helps. */
bool weft__hip_component(const char *name, char text[WEFT_COMPONENT_TEXT]);

#endif
