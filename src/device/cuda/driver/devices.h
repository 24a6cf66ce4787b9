/* The CUDA cards of this machine. Read next: devices.c. */
#ifndef WEFT_DEVICE_CUDA_DRIVER_DEVICES_H
#define WEFT_DEVICE_CUDA_DRIVER_DEVICES_H

#include "base/base.h"
#include "device/cuda/driver/api.h"

typedef struct weft__cuda_found {
    CUdevice id;
    char spec[24]; /* "cuda:0" */
    char name[128], detail[600];
    char reason[500];  /* why Weft cannot use it, "" where it can */
    char bus[16];      /* "0000:3B:00.0": its place, by which others know it; "" unknown */
    char arch[16];     /* what kernels are compiled for: "sm_90" */
    int arch_number;   /* 90 */
    char compiler[40]; /* "NVRTC 13.0 sm_90": all that a cubin depends on besides text and options */
    int capability;    /* 90 for 9.0 */
    int units, most_items /* of a block */;
    uint64_t memory, local_bytes, most_local_bytes; /* of a block: without asking, and at most */
    CUcontext context; /* the card's primary one, held from the first opening on; NULL before */
    int users;         /* open devices */
    bool lost;         /* a kernel failed in it */
} weft__cuda_found;

/* All cards that the driver finds, in its order, looked for once a process; none: *why says what helps. */
int weft__cuda_devices(const weft__cuda_found **list, const char **why);

/* "580.65.06 (CUDA 13.0)"; the first part only where the system tells it. The driver is open. */
void weft__cuda_driver_version(char text[80]);

/* Whether there is a driver, so that what it lacks is worth telling. */
bool weft__cuda_driver(void);

/* The card that is meant: NULL or "" the first, "1" by its number, else part of its name. NULL after an
 * error, which names the cards that there are. */
const weft__cuda_found *weft__cuda_choose(weft_context *ctx, const char *selector);

/* The card's primary context, which others in the process may use as well; NULL after *error. It stays when
 * the last device is closed, since making one takes a quarter of a second. */
CUcontext weft__cuda_context_take(const weft__cuda_found *f, CUresult *error);
/* `lost`: a kernel failed in it, which it says to every call until it is reset, with all that is in it. That
 * happens when nobody uses it any more, so that old handles never meet a new context. */
void weft__cuda_context_give(const weft__cuda_found *f, bool lost);

#endif
