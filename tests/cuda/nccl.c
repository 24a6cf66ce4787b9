/* NCCL for tests: sums over the GPUs of a group. The sum is computed when the group ends, after all work in
 * the streams is done. Groups of processes are in nccl_ranks.c. This file must not know Weft, except for its
 * declarations. Read next: nccl_ranks.c, fake.h. */
#include "nccl.h"

#include <stdio.h>
#include <stdlib.h>

__attribute__((visibility("default"))) fake_nccl_state fake_nccl;

/* The calls since the group began. */
static _Thread_local fake_call calls[CALLS_MOST];
static _Thread_local int n_calls, depth;

ncclResult_t fake_nccl_refuse(const char *what) {
    fprintf(stderr, "NCCL of the tests: %s\n", what);
    fake_nccl.refused++;
    return INVALID_USAGE;
}

long fake_nccl_refused(void) { return fake_nccl.refused; }

size_t fake_nccl_size(unsigned type) {
    return type == ncclUint8 ? 1 : type == ncclFloat32 ? 4 : type == ncclFloat64 ? 8 : 0;
}

ncclResult_t ncclGetVersion(int *version) {
    const char *wish = getenv("FAKE_NCCL_VERSION");
    *version = wish ? atoi(wish) : 22801;
    return 0;
}

const char *ncclGetErrorString(ncclResult_t error) {
    return error == SYSTEM_ERROR     ? "unhandled system error, as the test wishes"
           : error == INTERNAL_ERROR ? "internal error, as the test wishes"
                                     : "invalid usage";
}

ncclResult_t ncclCommInitAll(ncclComm_t *list, int count, const int *devices) {
    if (count < 1 || count > CARDS_MOST) return fake_nccl_refuse("so many cards");
    for (int i = 0; i < count; i++)
        for (int k = 0; k < i; k++)
            if (devices[i] == devices[k]) return fake_nccl_refuse("a card twice");
    if (fake_nccl.decline || fake_declines()) {
        fake_nccl.declined++;
        return SYSTEM_ERROR;
    }
    for (int i = 0; i < count; i++) {
        list[i] = calloc(1, sizeof **list);
        *list[i] = (struct ncclComm){i, count, devices[i], true, NULL};
    }
    fake_nccl.cliques++;
    return 0;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
    if (!comm->alive) return fake_nccl_refuse("a communicator that is gone");
    if (comm->others) fake_nccl_abort(comm);
    comm->alive = false; /* the memory is kept, so that later use is detected */
    return 0;
}

ncclResult_t ncclGroupStart(void) {
    depth++;
    return 0;
}

ncclResult_t fake_nccl_add(fake_call call) {
    if (!call.comm->alive || !depth || n_calls == CALLS_MOST || !fake_nccl_size(call.type))
        return fake_nccl_refuse("what is not known here");
    if (!call.comm->others && call.kind != REDUCE)
        return fake_nccl_refuse("another call than a sum of cards");
    calls[n_calls++] = call;
    return 0;
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t comm, CUstream stream) {
    if (operation != ncclSum || type == ncclUint8) return fake_nccl_refuse("what is not known here");
    return fake_nccl_add((fake_call){REDUCE, from, to, count, type, 0, comm, stream});
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
    if (--depth || !n) return fake_nccl_refuse("a group of none");
    if (calls[0].comm->others) return fake_nccl_submit(calls, n);
    if (fake_nccl.fail && --fake_nccl.fail == 0) return INTERNAL_ERROR;
    for (int k = 0; k < n; k++) {
        if (calls[k].comm->others || calls[k].comm->ranks != n || calls[k].comm->rank != k ||
            calls[k].count != calls[0].count || calls[k].type != calls[0].type)
            return fake_nccl_refuse("cards that sum otherwise");
        fake_settle(calls[k].stream);
    }
    n_calls = n;
    add_up();
    n_calls = 0;
    fake_nccl.sums++;
    return 0;
}
