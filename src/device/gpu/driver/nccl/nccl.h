/* NCCL as Weft sees it: sums over the cards of one process, and links between cards of several processes.
 * RCCL, for AMD's cards, is the same under another name. Must not know: what is summed. Read next: nccl.c,
 * link.c. */
#ifndef WEFT_DEVICE_GPU_DRIVER_NCCL_NCCL_H
#define WEFT_DEVICE_GPU_DRIVER_NCCL_NCCL_H

#include "device/gpu/driver/api.h"
#include "device/device.h"
#include "device/shared_library.h"

typedef struct ncclComm *ncclComm_t;
#ifndef NCCL_H_ /* defined by the vendor's header; a test includes both */
typedef unsigned ncclResult_t;
typedef unsigned ncclDataType_t;
typedef unsigned ncclRedOp_t;
typedef struct ncclUniqueId {
    char internal[128];
} ncclUniqueId;
typedef struct ncclConfig_t { /* as it was in NCCL 2.14, which later versions accept */
    size_t size;
    unsigned magic, version;
    int blocking;
} ncclConfig_t;
enum {
#define NCCL_CONSTANT(name, value) name = (value),
#include "device/gpu/driver/nccl/nccl.def"
#undef NCCL_CONSTANT
};
#endif

typedef struct weft__nccl_functions {
#define NCCL_FUNCTION(result, name, arguments) result(*name) arguments;
#include "device/gpu/driver/nccl/nccl.def"
#undef NCCL_FUNCTION
} weft__nccl_functions;

/* NCCL or RCCL. */
typedef struct weft_nccl {
    const char *name;
    weft__nccl_functions functions; /* those of links are NULL if the version lacks them */
    weft_shared_library library;
    const char *file; /* for tests: opened instead; NULL: the library is searched */
} weft_nccl;

/* The functions of a weft_nccl as symbols: those that it must have, and those of links. */
enum { WEFT_NCCL_WANTED = 7, WEFT_NCCL_LINKS = 9 };
extern const weft_shared_symbol weft__nccl_wanted[WEFT_NCCL_WANTED], weft__nccl_links[WEFT_NCCL_LINKS];

/* Opens the library once in the process. Returns NULL, or why this fails and what helps. */
const char *weft__nccl_open(weft_nccl *nccl);
/* Returns the version of the open library, such as 22803 for 2.28.3. */
int weft__nccl_version(const weft_nccl *nccl);
/* Writes the name of the open library and its version, such as "NCCL 2.28.3". */
enum { WEFT_NCCL_NAME = 32 };
void weft__nccl_name(const weft_nccl *nccl, char text[WEFT_NCCL_NAME]);
/* For tests: ends all communicators within this process. The next call looks for the library again. */
void weft__nccl_forget(weft_nccl *nccl);

/* The `sum` of the device's table (all-reduce). All devices must be different cards, and each one gets the
 * sum. It is submitted to their streams and waits for nothing. */
weft_status weft__nccl_sum(weft_device *const *devices, weft_buffer *const *buffers, size_t n,
                           weft_dtype dtype, size_t count, bool *done);

/* The `links` of the device's table (link.c). */
extern const weft_link_functions weft__nccl_linking;

#endif
