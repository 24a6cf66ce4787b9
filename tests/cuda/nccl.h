/* The simulated NCCL: what its two files share. Read next: nccl.c. */
#ifndef WEFT_TESTS_CUDA_NCCL_H
#define WEFT_TESTS_CUDA_NCCL_H

#include "device/gpu/driver/nccl/nccl.h"
#include "fake.h"

#define NCCL_FUNCTION(result, name, arguments) __attribute__((visibility("default"))) result name arguments;
#include "device/gpu/driver/nccl/nccl.def"
#undef NCCL_FUNCTION

enum { CARDS_MOST = 8, CALLS_MOST = 64, SYSTEM_ERROR = 2, INTERNAL_ERROR, INVALID_USAGE = 5 };

struct ncclComm {
    int rank, ranks, card;
    bool alive;
    struct fake_ranks *others; /* the other ranks are processes; NULL: they are in this process */
};

typedef enum fake_kind_of_call { REDUCE, SEND, RECEIVE, GATHER, BROADCAST, KINDS } fake_kind_of_call;

/* A call within a group. */
typedef struct fake_call {
    fake_kind_of_call kind;
    const void *from;
    void *to;
    size_t count;
    unsigned type;
    int peer; /* or root */
    ncclComm_t comm;
    CUstream stream;
} fake_call;

ncclResult_t fake_nccl_refuse(const char *what);
/* How many calls were refused? */
long fake_nccl_refused(void);
/* Bytes of an element of a type that Weft uses; 0: of another type. */
size_t fake_nccl_size(unsigned type);
/* Adds a call to the group. */
ncclResult_t fake_nccl_add(fake_call call);
/* Submits a group whose ranks are processes. */
ncclResult_t fake_nccl_submit(const fake_call *calls, int n);
/* Ends what waits for the other processes. */
void fake_nccl_abort(ncclComm_t comm);

#endif
