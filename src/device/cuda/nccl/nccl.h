/* NCCL as Weft sees it: sums over the cards of one process.
 * Must not know: what is summed. Read next: nccl.c. */
#ifndef WEFT_DEVICE_CUDA_NCCL_NCCL_H
#define WEFT_DEVICE_CUDA_NCCL_NCCL_H

#include "device/cuda/driver/api.h"
#include "device/device.h"

typedef struct ncclComm *ncclComm_t;
#ifndef NCCL_H_ /* defined by the vendor's header; a test includes both */
typedef unsigned ncclResult_t;
typedef unsigned ncclDataType_t;
typedef unsigned ncclRedOp_t;
enum {
#define NCCL_CONSTANT(name, value) name = (value),
#include "device/cuda/nccl/nccl.def"
#undef NCCL_CONSTANT
};
#endif

typedef struct weft__nccl_functions {
#define NCCL_FUNCTION(result, name, arguments) result(*name) arguments;
#include "device/cuda/nccl/nccl.def"
#undef NCCL_FUNCTION
} weft__nccl_functions;

/* Opens the library once in the process. Returns NULL, or why this fails and what helps. */
const char *weft__nccl_open(void);
/* Returns the version of the open library, such as 22803 for 2.28.3. */
int weft__nccl_version(void);
/* For tests: the next call looks again, in `weft__nccl_file` if it is not NULL. */
extern const char *weft__nccl_file;
void weft__nccl_forget(void);

/* The `sum` of the device's table (all-reduce). All devices must be different cards, and each one gets the
 * sum. It is submitted to their streams and waits for nothing. */
weft_status weft__nccl_sum(weft_device *const *devices, weft_buffer *const *buffers, size_t n,
                           weft_dtype dtype, size_t count, bool *done);

#endif
