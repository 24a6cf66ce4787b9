/* NCCL as Weft sees it: sums over cards of one process. Must not know: what is summed. Read next: nccl.c. */
#ifndef WEFT_DEVICE_CUDA_NCCL_NCCL_H
#define WEFT_DEVICE_CUDA_NCCL_NCCL_H

#include "device/cuda/driver/api.h"
#include "device/device.h"

typedef struct ncclComm *ncclComm_t;
#ifndef NCCL_H_ /* the vendor's header, beside which a test includes this one */
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

/* Opens the library, once a process; NULL, or why that cannot be and what helps. */
const char *weft__nccl_open(void);
/* Of an open one: 22803 for 2.28.3. */
int weft__nccl_version(void);
/* For tests: the next call looks anew, in `weft__nccl_file` where that is not NULL. */
extern const char *weft__nccl_file;
void weft__nccl_forget(void);

/* The `sum` of the device's table: all cards, which differ, get the sum; in their streams, waiting for
 * nothing. */
weft_status weft__nccl_sum(weft_device *const *devices, weft_buffer *const *buffers, size_t n,
                           weft_dtype dtype, size_t count, bool *done);

#endif
