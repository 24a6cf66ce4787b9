/* CUDA's driver, and the cards of this machine.
 * Must not know: buffers, kernels. Read next: library.c, devices.c. */
#ifndef WEFT_DEVICE_CUDA_DEVICES_H
#define WEFT_DEVICE_CUDA_DEVICES_H

#include "device/gpu/driver/found.h"

/* ---- library.c ---- */

/* All functions are set after weft__cuda_open_library has returned NULL. */
extern weft__cuda_functions weft__cu;
/* Opens the driver once in the process. Returns NULL, or why this fails and what helps. Thread-safe. */
const char *weft__cuda_open_library(void);
void weft__cuda_forget_library(void);

/* ---- devices.c ---- */

extern weft_gpu_devices weft__cuda_kind;

/* Lists all cards that the driver finds, in its order. It looks once in the process. Returns their number. If
 * it is 0, *why says what helps. */
int weft__cuda_devices(const weft__cuda_found **list, const char **why);

/* Writes the driver's version, such as "580.65.06 (CUDA 13.0)". The first part is missing if the system does
 * not tell it. The driver must be open. */
void weft__cuda_driver_version(char text[80]);

/* Returns whether there is a driver. Then a missing piece is worth a message. */
bool weft__cuda_driver(void);

#endif
