/* NCCL for tests: sums over the GPUs of a group. The sum is computed when the group ends, after all work in
 * the streams is done. This file must not know Weft, except for its declarations. Read next: fake.h. */
#include "device/cuda/nccl/nccl.h"

#include <stdio.h>
#include <stdlib.h>

#include "fake.h"

#define NCCL_FUNCTION(result, name, arguments) __attribute__((visibility("default"))) result name arguments;
#include "device/cuda/nccl/nccl.def"
#undef NCCL_FUNCTION

__attribute__((visibility("default"))) fake_nccl_state fake_nccl;

enum { MOST = 8, SYSTEM_ERROR = 2, INTERNAL_ERROR, INVALID_USAGE = 5 };

struct ncclComm {
    int rank, ranks, card;
    bool alive;
};

/* The calls since the group began. */
static struct call {
    const void *from;
    void *to;
    size_t count;
    unsigned type;
    ncclComm_t comm;
    CUstream stream;
} calls[MOST];
static int n_calls, depth;

static ncclResult_t refuse(const char *what) {
    fprintf(stderr, "NCCL of the tests: %s\n", what);
    fake_nccl.refused++;
    return INVALID_USAGE;
}

ncclResult_t ncclGetVersion(int *version) {
    *version = 22801;
    return 0;
}

const char *ncclGetErrorString(ncclResult_t error) {
    return error == SYSTEM_ERROR     ? "unhandled system error, as the test wishes"
           : error == INTERNAL_ERROR ? "internal error, as the test wishes"
                                     : "invalid usage";
}

ncclResult_t ncclCommInitAll(ncclComm_t *list, int count, const int *devices) {
    if (count < 1 || count > MOST) return refuse("so many cards");
    for (int i = 0; i < count; i++)
        for (int k = 0; k < i; k++)
            if (devices[i] == devices[k]) return refuse("a card twice");
    if (fake_nccl.decline || fake_declines()) {
        fake_nccl.declined++;
        return SYSTEM_ERROR;
    }
    for (int i = 0; i < count; i++) {
        list[i] = calloc(1, sizeof **list);
        *list[i] = (struct ncclComm){i, count, devices[i], true};
    }
    fake_nccl.cliques++;
    return 0;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
    if (!comm->alive) return refuse("a communicator that is gone");
    comm->alive = false; /* the memory is kept, so that later use is detected */
    return 0;
}

ncclResult_t ncclGroupStart(void) {
    depth++;
    return 0;
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t comm, CUstream stream) {
    if (!comm->alive || !depth || n_calls == MOST || operation != ncclSum ||
        (type != ncclFloat32 && type != ncclFloat64))
        return refuse("what is not known here");
    calls[n_calls++] = (struct call){from, to, count, type, comm, stream};
    return 0;
}

static void add_up(void) {
    const size_t count = calls[0].count;
    for (size_t i = 0; i < count; i++) {
        double f64 = 0;
        float f32 = 0;
        for (int k = 0; k < n_calls; k++)
            if (calls[0].type == ncclFloat64)
                f64 += ((const double *)calls[k].from)[i];
            else
                f32 += ((const float *)calls[k].from)[i];
        for (int k = 0; k < n_calls; k++)
            if (calls[0].type == ncclFloat64)
                ((double *)calls[k].to)[i] = f64;
            else
                ((float *)calls[k].to)[i] = f32;
    }
}

ncclResult_t ncclGroupEnd(void) {
    const int n = n_calls;
    n_calls = 0;
    if (--depth || !n) return refuse("a group of none");
    if (fake_nccl.fail && --fake_nccl.fail == 0) return INTERNAL_ERROR;
    for (int k = 0; k < n; k++) {
        if (calls[k].comm->ranks != n || calls[k].comm->rank != k || calls[k].count != calls[0].count ||
            calls[k].type != calls[0].type)
            return refuse("cards that sum otherwise");
        fake_settle(calls[k].stream);
    }
    n_calls = n;
    add_up();
    n_calls = 0;
    fake_nccl.sums++;
    return 0;
}
