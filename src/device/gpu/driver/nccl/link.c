/* Links between the cards of several processes, by NCCL. All calls return at once (NCCL calls this
 * non-blocking), so whoever waits can give up. Must not know: what is exchanged, other processes. Read next:
 * nccl.c, process/link.c. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "device/gpu/driver/nccl/link.h"

#define CONFIG_MAGIC 0xcafebeefU

enum {
    CONFIG_VERSION = 21400, /* 2.14 */
    CLOSE_NAPS = 3000       /* of a millisecond each, until the other processes close the link, too */
};

static _Thread_local char message[200];

static const char *link_failed(const weft_nccl *nccl, ncclResult_t error) {
    snprintf(message, sizeof message, "%.100s; NCCL_DEBUG=WARN tells more",
             nccl->functions.ncclGetErrorString(error));
    return message;
}

const char *weft__nccl_driver_failed(const weft__cuda *d, CUresult error) {
    return weft__cuda_error_name(d->cu, error, message);
}

static bool is_bad(ncclResult_t error) { return error != 0 && error != ncclInProgress; }

/* ---- opening and closing ---- */

static void nccl_offer(weft_device *device, weft_link_offer *offer) {
    const weft__cuda_found *found = weft__cuda_of(device)->found;
    weft_nccl *nccl = found->api->nccl;
    const char *why = weft__nccl_open(nccl);
    bool links = true;
    snprintf(offer->card, sizeof offer->card, "%s", found->bus);
    if (!found->bus[0]) snprintf(offer->card, sizeof offer->card, "card %d", (int)found->id);
    if (why) {
        snprintf(offer->reason, sizeof offer->reason, "%s is not there: %.280s", nccl->name, why);
        return;
    }
    weft__nccl_name(nccl, offer->library);
#define NCCL_FUNCTION(result, name, arguments)
#define NCCL_LINK(result, name, arguments) links = links && nccl->functions.name;
#include "device/gpu/driver/nccl/nccl.def"
#undef NCCL_FUNCTION
#undef NCCL_LINK
    if (!links)
        snprintf(offer->reason, sizeof offer->reason, "%s is older than 2.14: %s", offer->library,
                 nccl->library.old);
}

static const char *nccl_identify(weft_device *device, char id[WEFT_LINK_ID]) {
    weft__cuda *d = weft__cuda_of(device);
    const weft_nccl *nccl = d->found->api->nccl;
    ncclUniqueId unique;
    const CUresult entered = weft__cuda_enter(d);
    if (entered) return weft__nccl_driver_failed(d, entered);
    const ncclResult_t error = nccl->functions.ncclGetUniqueId(&unique);
    weft__cuda_leave(d);
    memcpy(id, unique.internal, WEFT_LINK_ID);
    return error ? link_failed(nccl, error) : NULL;
}

/* The card's context is current. */
static const char *make_communicator(weft_link *l, const char id[WEFT_LINK_ID]) {
    ncclConfig_t config = {sizeof config, CONFIG_MAGIC, CONFIG_VERSION, 0};
    ncclUniqueId unique;
    weft__cuda *d = weft__cuda_of(l->device);
    memcpy(unique.internal, id, WEFT_LINK_ID);
    CUresult error = d->cu->cuEventCreate(&l->done, CU_EVENT_DISABLE_TIMING);
    if (!error) error = weft__nccl_exchanges_open(l);
    if (error) return weft__nccl_driver_failed(d, error);
    const ncclResult_t refused =
        l->nccl->functions.ncclCommInitRankConfig(&l->comm, l->size, unique, l->rank, &config);
    return is_bad(refused) ? link_failed(l->nccl, refused) : NULL;
}

/* Waits until all processes close the link, for some time. */
static bool finish(const weft_link *l) {
    const struct timespec nap = {0, 1000000};
    ncclResult_t state = l->nccl->functions.ncclCommFinalize(l->comm);
    for (int i = 0; i < CLOSE_NAPS && !is_bad(state); i++) {
        if (l->nccl->functions.ncclCommGetAsyncError(l->comm, &state) != 0) return false;
        if (state == 0) return true;
        nanosleep(&nap, NULL);
    }
    return false;
}

/* Ends what waits for the other processes. */
static void abort_link(const weft_link *l) {
    weft__nccl_exchanges_fail(l);
    l->nccl->functions.ncclCommAbort(l->comm);
}

static void nccl_close(weft_link *l, bool broken) {
    weft__cuda *d = weft__cuda_of(l->device);
    if (weft__cuda_enter(d) == 0) {
        if (l->comm && !broken && finish(l))
            l->nccl->functions.ncclCommDestroy(l->comm);
        else if (l->comm)
            abort_link(l);
        weft__nccl_exchanges_free(l);
        if (l->done) d->cu->cuEventDestroy_v2(l->done);
        weft__cuda_leave(d);
    }
    weft__free(NULL, l);
}

static const char *nccl_link(weft_device *device, const char id[WEFT_LINK_ID], int rank, int size,
                             weft_link **link) {
    weft__cuda *d = weft__cuda_of(device);
    weft_link *l = weft__array(NULL, 1, sizeof *l);
    *link = NULL;
    if (!l) return "memory is short";
    *l = (weft_link){.device = device, .nccl = d->found->api->nccl, .rank = rank, .size = size};
    const CUresult entered = weft__cuda_enter(d);
    const char *error = entered ? weft__nccl_driver_failed(d, entered) : make_communicator(l, id);
    if (!entered) weft__cuda_leave(d);
    if (error)
        nccl_close(l, true);
    else
        *link = l;
    return error;
}

/* ---- transfers ---- */

/* refused: by a call since ncclGroupStart. */
static const char *group_end(const weft_link *l, ncclResult_t refused) {
    const ncclResult_t ended = l->nccl->functions.ncclGroupEnd();
    if (!is_bad(refused)) refused = ended;
    return is_bad(refused) ? link_failed(l->nccl, refused) : NULL;
}

static const char *group_begin(const weft_link *l) {
    const ncclResult_t refused = l->nccl->functions.ncclGroupStart();
    return is_bad(refused) ? link_failed(l->nccl, refused) : NULL;
}

const char *weft__nccl_reduce(const weft_link *l, const char *from, char *to, weft_dtype dtype, size_t count,
                              CUstream stream) {
    const char *error = group_begin(l);
    if (error) return error;
    return group_end(l, l->nccl->functions.ncclAllReduce(from, to, count,
                                                         dtype == WEFT_F64 ? ncclFloat64 : ncclFloat32,
                                                         ncclSum, l->comm, stream));
}

/* The bytes of process i that exist. */
static size_t bytes_of(const weft__nccl_parts *p, int i) {
    const size_t from = (size_t)i * p->stride;
    return from >= p->bytes ? 0 : p->bytes - from < p->part ? p->bytes - from : p->part;
}

const char *weft__nccl_scatter(const weft_link *l, const char *from, char *to, const weft__nccl_parts *parts,
                               CUstream stream) {
    const weft__nccl_functions *f = &l->nccl->functions;
    const size_t own = bytes_of(parts, l->rank);
    const char *error = group_begin(l);
    ncclResult_t refused = 0;
    if (error) return error;
    for (int i = 0; i < l->size && !is_bad(refused); i++) {
        const size_t n = bytes_of(parts, i);
        if (n) refused = f->ncclSend(from + (size_t)i * parts->stride, n, ncclUint8, i, l->comm, stream);
        if (own && !is_bad(refused))
            refused = f->ncclRecv(to + (size_t)i * parts->part, own, ncclUint8, i, l->comm, stream);
    }
    return group_end(l, refused);
}

/* Parts of different sizes are a broadcast each. */
const char *weft__nccl_gather(const weft_link *l, const char *own, char *all, const weft__nccl_parts *parts,
                              CUstream stream) {
    const weft__nccl_functions *f = &l->nccl->functions;
    const char *error = group_begin(l);
    ncclResult_t refused = 0;
    if (error) return error;
    if (parts->bytes == parts->part * (size_t)l->size)
        return group_end(l, f->ncclAllGather(own, all, parts->part, ncclUint8, l->comm, stream));
    for (int i = 0; i < l->size && !is_bad(refused); i++) {
        char *to = all + (size_t)i * parts->stride;
        const size_t n = bytes_of(parts, i);
        if (n) refused = f->ncclBroadcast(i == l->rank ? own : to, to, n, ncclUint8, i, l->comm, stream);
    }
    return group_end(l, refused);
}

/* ---- a transfer between two programs ---- */

/* Orders it with large uploads to a buffer, and lets the device know of work: see driver/transfer.c. */
static CUresult link_order(weft_link *l, weft_buffer *buffer, bool before) {
    weft__cuda *d = weft__cuda_of(l->device);
    weft__gpu_of(l->device)->unseen = true;
    l->recorded = false;
    return before ? weft__cuda_before_use(d, (weft__cuda_buffer *)buffer)
                  : weft__cuda_after_use(d, (weft__cuda_buffer *)buffer);
}

static char *link_place(const weft_link *l, const weft_buffer *buffer, size_t at) {
    const CUdeviceptr address =
        ((const weft_gpu_buffer *)buffer)->address + weft__gpu_of(l->device)->guard + at;
    return (char *)(uintptr_t)address; // NOLINT(performance-no-int-to-ptr)
}

/* The card's context is current. */
static const char *gather_buffers(weft_link *l, weft_buffer *from, size_t from_at, weft_buffer *to,
                                  size_t to_at, const weft__nccl_parts *parts) {
    weft__cuda *d = weft__cuda_of(l->device);
    CUresult error = link_order(l, from, true);
    if (!error) error = link_order(l, to, true);
    if (error) return weft__nccl_driver_failed(d, error);
    const char *refused =
        weft__nccl_gather(l, link_place(l, from, from_at), link_place(l, to, to_at), parts, d->stream);
    if (refused) return refused;
    error = link_order(l, from, false);
    if (!error) error = link_order(l, to, false);
    return error ? weft__nccl_driver_failed(d, error) : NULL;
}

static const char *nccl_all_gather(weft_link *l, weft_buffer *from, size_t from_at, weft_buffer *to,
                                   size_t to_at, size_t part, size_t bytes) {
    weft__cuda *d = weft__cuda_of(l->device);
    const CUresult entered = weft__cuda_enter(d);
    if (entered) return weft__nccl_driver_failed(d, entered);
    const char *error = gather_buffers(l, from, from_at, to, to_at, &(weft__nccl_parts){part, part, bytes});
    weft__cuda_leave(d);
    return error;
}

/* Has the card done all that was submitted? Records the event if something was submitted since. */
static CUresult query(weft_link *l) {
    weft__cuda *d = weft__cuda_of(l->device);
    CUresult error = weft__cuda_enter(d);
    if (error) return error;
    if (!l->recorded) error = d->cu->cuEventRecord(l->done, d->stream);
    if (!error) {
        l->recorded = true;
        error = d->cu->cuEventQuery(l->done);
    }
    weft__cuda_leave(d);
    return error;
}

static ncclResult_t state_of(const weft_link *l) {
    ncclResult_t state = 0;
    const ncclResult_t error = l->nccl->functions.ncclCommGetAsyncError(l->comm, &state);
    return error ? error : state;
}

const char *weft__nccl_state(const weft_link *l) {
    const ncclResult_t state = state_of(l);
    return is_bad(state) ? link_failed(l->nccl, state) : NULL;
}

static const char *nccl_test(weft_link *l, bool done, bool *ended) {
    const ncclResult_t state = state_of(l);
    *ended = false;
    if (state) return is_bad(state) ? link_failed(l->nccl, state) : NULL;
    const CUresult left = done ? query(l) : 0;
    *ended = left == 0;
    return left && left != CUDA_ERROR_NOT_READY ? weft__nccl_driver_failed(weft__cuda_of(l->device), left)
                                                : NULL;
}

const weft_link_functions weft__nccl_linking = {
    .offer = nccl_offer,
    .identify = nccl_identify,
    .open = nccl_link,
    .all_gather = nccl_all_gather,
    .test = nccl_test,
    .test_exchange = weft__nccl_test_exchange,
    .exchange_times = weft__nccl_exchange_times,
    .close = nccl_close,
};
