/* The device memory that a training step needs, known before it runs. */
#ifndef WEFT_MEMORY_H
#define WEFT_MEMORY_H

#include <weft/profile.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What memory is used for. */
#define WEFT_MEMORY_LIST(X)                                                                                  \
    X(PARAMETERS, "parameters")                                                                              \
    X(STATES, "optimizer state")  /* and accumulated gradients */                                            \
    X(GRADIENTS, "gradients")     /* of the parameters */                                                    \
    X(ACTIVATIONS, "activations") /* kept by the forward pass for the backward pass */                       \
    X(DATA, "data")               /* batches, or the whole data set if it is on the device */                \
    X(SCRATCH, "scratch")         /* values used only within one pass, and gaps between values */            \
    X(WORKSPACE, "workspace")     /* of kernels */

typedef enum weft_memory_kind {
#define WEFT_MEMORY_ENUM_(name, text) WEFT_MEMORY_##name,
    WEFT_MEMORY_LIST(WEFT_MEMORY_ENUM_)
#undef WEFT_MEMORY_ENUM_
        WEFT_MEMORY_KINDS
} weft_memory_kind;

/* The name of a kind: "optimizer state" and so on. */
WEFT_API const char *weft_memory_name(weft_memory_kind kind);

/* Buffers of one kind that exist when the step's memory use is highest. */
typedef struct weft_memory_buffer {
    uint64_t bytes; /* of all of them together */
    int count;      /* similar layers, such as h.0 to h.11, are counted together and named h.* */
    weft_memory_kind kind;
    char layer[96], what[128]; /* "h.*.mlp", "matmul bf16 1x 65536x3072x768 nt" */
} weft_memory_buffer;

enum { WEFT_MEMORY_LARGEST = 12 };

/* The bytes that a step needs on the device, and the device that runs it. */
typedef struct weft_memory_plan {
    uint64_t parameters, states;       /* parameters; optimizer state with accumulated gradients */
    uint64_t work;                     /* activations, gradients and scratch, at their common peak */
    uint64_t pending;                  /* of all these and the batch: bytes that are not allocated yet */
    int threads;                       /* host threads that run the program; 0: another device runs it */
    weft_program_work program;         /* what the program computes and moves */
    uint64_t kinds[WEFT_MEMORY_KINDS]; /* all bytes, by kind */
    weft_memory_buffer largest[WEFT_MEMORY_LARGEST];
    int n_largest;
    uint64_t exchange; /* of the host, for the exchange with other processes; not part of the sum */
} weft_memory_plan;

/* The sum of all bytes. */
WEFT_API uint64_t weft_memory_total(const weft_memory_plan *plan);

#ifdef __cplusplus
}
#endif

#endif
