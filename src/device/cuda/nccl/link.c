/* Links between the cards of several processes, by NCCL. All calls return at once (NCCL calls this
 * non-blocking), so whoever waits can give up. Must not know: what is exchanged, other processes. Read next:
 * nccl.c, process/link.c. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "device/cuda/cuda.h"
#include "device/cuda/nccl/nccl.h"

#define CONFIG_MAGIC 0xcafebeefU

enum {
    CONFIG_VERSION = 21400, /* 2.14 */
    CLOSE_NAPS = 3000       /* of a millisecond each, until the other processes close the link, too */
};

struct weft_link {
    weft_device *device;
    const weft_nccl *nccl;
    ncclComm_t comm;
    int rank, size;
    CUevent done; /* follows the last transfer and program that were submitted before it was recorded */
    bool recorded;
};

static _Thread_local char message[200];

static const char *link_failed(const weft_nccl *nccl, ncclResult_t error) {
    snprintf(message, sizeof message, "%.100s; NCCL_DEBUG=WARN tells more",
             nccl->functions.ncclGetErrorString(error));
    return message;
}

static const char *driver_failed(const weft__cuda *d, CUresult error) {
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
#include "device/cuda/nccl/nccl.def"
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
    if (entered) return driver_failed(d, entered);
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
    const CUresult error = d->cu->cuEventCreate(&l->done, CU_EVENT_DISABLE_TIMING);
    if (error) return driver_failed(d, error);
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

static void nccl_close(weft_link *l, bool broken) {
    weft__cuda *d = weft__cuda_of(l->device);
    if (weft__cuda_enter(d) == 0) {
        if (l->comm && !broken && finish(l))
            l->nccl->functions.ncclCommDestroy(l->comm);
        else if (l->comm)
            l->nccl->functions.ncclCommAbort(l->comm);
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
    const char *error = entered ? driver_failed(d, entered) : make_communicator(l, id);
    if (!entered) weft__cuda_leave(d);
    if (error)
        nccl_close(l, true);
    else
        *link = l;
    return error;
}

/* ---- transfers ---- */

/* Orders transfers with large uploads to a buffer, and lets the device know of work: see driver/transfer.c.
 */
static CUresult link_order(weft_link *l, weft_buffer *buffer, bool before) {
    weft__cuda *d = weft__cuda_of(l->device);
    weft__gpu_of(l->device)->unseen = true;
    l->recorded = false;
    return before ? weft__cuda_before_use(d, (weft__cuda_buffer *)buffer)
                  : weft__cuda_after_use(d, (weft__cuda_buffer *)buffer);
}

/* Begins a group of calls that use the buffers, which may be the same. The context is current until it
 * ends. */
static const char *group_begin(weft_link *l, weft_buffer *a, weft_buffer *b) {
    weft__cuda *d = weft__cuda_of(l->device);
    CUresult error = weft__cuda_enter(d);
    if (error) return driver_failed(d, error);
    error = link_order(l, a, true);
    if (!error) error = link_order(l, b, true);
    const ncclResult_t refused = error ? 0 : l->nccl->functions.ncclGroupStart();
    if (!error && !refused) return NULL;
    weft__cuda_leave(d);
    return error ? driver_failed(d, error) : link_failed(l->nccl, refused);
}

/* refused: by a call of the group. */
static const char *group_end(weft_link *l, weft_buffer *a, weft_buffer *b, ncclResult_t refused) {
    weft__cuda *d = weft__cuda_of(l->device);
    const ncclResult_t ended = l->nccl->functions.ncclGroupEnd();
    if (!is_bad(refused)) refused = ended;
    CUresult error = link_order(l, a, false);
    if (!error) error = link_order(l, b, false);
    weft__cuda_leave(d);
    if (is_bad(refused)) return link_failed(l->nccl, refused);
    return error ? driver_failed(d, error) : NULL;
}

static char *link_place(const weft_link *l, const weft_buffer *buffer, size_t at) {
    const CUdeviceptr address =
        ((const weft_gpu_buffer *)buffer)->address + weft__gpu_of(l->device)->guard + at;
    return (char *)(uintptr_t)address; // NOLINT(performance-no-int-to-ptr)
}

static const char *nccl_all_reduce(weft_link *l, weft_buffer *data, size_t at, weft_dtype dtype,
                                   size_t count) {
    char *place = link_place(l, data, at);
    const char *error = group_begin(l, data, data);
    if (error) return error;
    const ncclResult_t refused =
        l->nccl->functions.ncclAllReduce(place, place, count, dtype == WEFT_F64 ? ncclFloat64 : ncclFloat32,
                                         ncclSum, l->comm, weft__cuda_of(l->device)->stream);
    return group_end(l, data, data, refused);
}

static const char *nccl_all_to_all(weft_link *l, weft_buffer *from, size_t from_at, weft_buffer *to,
                                   size_t to_at, size_t part) {
    const weft__nccl_functions *f = &l->nccl->functions;
    CUstream stream = weft__cuda_of(l->device)->stream;
    const char *error = group_begin(l, from, to), *send = link_place(l, from, from_at);
    char *receive = link_place(l, to, to_at);
    ncclResult_t refused = 0;
    if (error) return error;
    for (int i = 0; i < l->size && !is_bad(refused); i++) {
        refused = f->ncclSend(send + (size_t)i * part, part, ncclUint8, i, l->comm, stream);
        if (!is_bad(refused))
            refused = f->ncclRecv(receive + (size_t)i * part, part, ncclUint8, i, l->comm, stream);
    }
    return group_end(l, from, to, refused);
}

/* Parts of different sizes are a broadcast each. */
static const char *nccl_all_gather(weft_link *l, weft_buffer *from, size_t from_at, weft_buffer *to,
                                   size_t to_at, size_t part, size_t bytes) {
    const weft__nccl_functions *f = &l->nccl->functions;
    CUstream stream = weft__cuda_of(l->device)->stream;
    const char *error = group_begin(l, from, to), *own = link_place(l, from, from_at);
    char *all = link_place(l, to, to_at);
    ncclResult_t refused = 0;
    if (error) return error;
    if (bytes == part * (size_t)l->size)
        return group_end(l, from, to, f->ncclAllGather(own, all, part, ncclUint8, l->comm, stream));
    for (int i = 0; i < l->size && (size_t)i * part < bytes && !is_bad(refused); i++) {
        const size_t at = (size_t)i * part, n = bytes - at < part ? bytes - at : part;
        refused = f->ncclBroadcast(i == l->rank ? own : all + at, all + at, n, ncclUint8, i, l->comm, stream);
    }
    return group_end(l, from, to, refused);
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

static const char *nccl_test(weft_link *l, bool done, bool *ended) {
    ncclResult_t state = 0, error = l->nccl->functions.ncclCommGetAsyncError(l->comm, &state);
    *ended = false;
    if (!error) error = state;
    if (is_bad(error)) return link_failed(l->nccl, error);
    if (error) return NULL;
    const CUresult left = done ? query(l) : 0;
    *ended = left == 0;
    return left && left != CUDA_ERROR_NOT_READY ? driver_failed(weft__cuda_of(l->device), left) : NULL;
}

const weft_link_functions weft__nccl_linking = {
    .offer = nccl_offer,
    .identify = nccl_identify,
    .open = nccl_link,
    .all_reduce = nccl_all_reduce,
    .all_to_all = nccl_all_to_all,
    .all_gather = nccl_all_gather,
    .test = nccl_test,
    .close = nccl_close,
};
