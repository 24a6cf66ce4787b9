/* What a step needs of a device's memory, known before it runs. */
#ifndef WEFT_MEMORY_H
#define WEFT_MEMORY_H

#include <weft/profile.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What memory is for. */
#define WEFT_MEMORY_LIST(X)                                                                                  \
    X(PARAMETERS, "parameters")                                                                              \
    X(STATES, "optimizer state")  /* and sums of gradients while they accumulate */                          \
    X(GRADIENTS, "gradients")     /* of the parameters */                                                    \
    X(ACTIVATIONS, "activations") /* what the forward pass keeps for the backward pass */                    \
    X(DATA, "data")               /* batches, or the whole data set where it lies on the device */           \
    X(SCRATCH, "scratch")         /* what lives only within one pass, and gaps between values */             \
    X(WORKSPACE, "workspace")     /* of kernels */

typedef enum weft_memory_kind {
#define WEFT_MEMORY_ENUM_(name, text) WEFT_MEMORY_##name,
    WEFT_MEMORY_LIST(WEFT_MEMORY_ENUM_)
#undef WEFT_MEMORY_ENUM_
        WEFT_MEMORY_KINDS
} weft_memory_kind;

/* "optimizer state" and so on. */
WEFT_API const char *weft_memory_name(weft_memory_kind kind);

/* Values of one kind that are there when a step takes most. */
typedef struct weft_memory_buffer {
    uint64_t bytes; /* of all of them */
    int count;      /* layers of one form, h.0 to h.11, say, are named h.* and counted together */
    weft_memory_kind kind;
    char layer[96], what[128]; /* "h.*.mlp", "matmul bf16 1x 65536x3072x768 nt" */
} weft_memory_buffer;

enum { WEFT_MEMORY_LARGEST = 12 };

/* Bytes that a step needs on the device, and who runs it. */
typedef struct weft_memory_plan {
    uint64_t parameters, states; /* of the optimizer's, and sums of gradients while it accumulates */
    uint64_t work;               /* activations, gradients and scratch: of these three where they are most */
    uint64_t pending;            /* of all these and the batch, what is not taken yet */
    int threads;                 /* of the host that run its program; 0: another device does */
    weft_program_work program;   /* what that computes and moves */
    uint64_t kinds[WEFT_MEMORY_KINDS]; /* all of it by what it is for */
    weft_memory_buffer largest[WEFT_MEMORY_LARGEST];
    int n_largest;
} weft_memory_plan;

/* All of it together. */
WEFT_API uint64_t weft_memory_total(const weft_memory_plan *plan);

#ifdef __cplusplus
}
#endif

#endif
