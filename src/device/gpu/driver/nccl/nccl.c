/* NCCL, opened at run time, and sums over cards of one process. Without it, or if it refuses a set of cards,
 * the host adds up sums over cards. Communicators are made once for a set of cards. RCCL for AMD's cards is
 * used in the same way. Must not know: what is summed. Read next: link.c, cuda/nccl.c. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "device/gpu/driver/driver.h"
#include "device/gpu/driver/nccl/nccl.h"

const weft_shared_symbol weft__nccl_wanted[WEFT_NCCL_WANTED] = {
#define NCCL_FUNCTION(result, name, arguments) {#name, offsetof(weft__nccl_functions, name)},
#define NCCL_LINK(result, name, arguments)
#include "device/gpu/driver/nccl/nccl.def"
#undef NCCL_FUNCTION
#undef NCCL_LINK
};
const weft_shared_symbol weft__nccl_links[WEFT_NCCL_LINKS] = {
#define NCCL_FUNCTION(result, name, arguments)
#define NCCL_LINK(result, name, arguments) {#name, offsetof(weft__nccl_functions, name)},
#include "device/gpu/driver/nccl/nccl.def"
#undef NCCL_FUNCTION
#undef NCCL_LINK
};

const char *weft__nccl_open(weft_nccl *nccl) {
    return weft__shared_library_open(&nccl->library, nccl->file, NULL);
}

int weft__nccl_version(const weft_nccl *nccl) {
    int version = 0;
    return nccl->functions.ncclGetVersion(&version) == 0 ? version : 0;
}

void weft__nccl_name(const weft_nccl *nccl, char text[WEFT_NCCL_NAME]) {
    const int version = weft__nccl_version(nccl);
    snprintf(text, WEFT_NCCL_NAME, "%s %d.%d.%d", nccl->name, version / 10000, version / 100 % 100,
             version % 100);
}

/* ---- communicators ---- */

enum { CARDS_MOST = 64, CLIQUES_MOST = 8 };

/* Cards that sum together, in this order. */
typedef struct clique {
    const weft_nccl *nccl;
    bool refused; /* there are no communicators, and NCCL is not asked again */
    int n, cards[CARDS_MOST];
    uint64_t contexts[CARDS_MOST]; /* the generations of the contexts that the communicators belong to */
    ncclComm_t comms[CARDS_MOST];
} clique;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static clique cliques[CLIQUES_MOST];
static int n_cliques;

static void nccl_drop(clique *c) {
    for (int i = 0; i < c->n && !c->refused; i++) c->nccl->functions.ncclCommAbort(c->comms[i]);
    *c = cliques[--n_cliques];
}

void weft__nccl_forget(weft_nccl *nccl) {
    for (int k = n_cliques - 1; k >= 0; k--)
        if (cliques[k].nccl == nccl) nccl_drop(&cliques[k]);
    nccl->library.looked = false;
}

/* Returns whether a card of the clique has another context now. */
static bool is_stale(const clique *old, const clique *now) {
    if (old->nccl != now->nccl) return false;
    for (int i = 0; i < old->n; i++)
        for (int k = 0; k < now->n; k++)
            if (old->cards[i] == now->cards[k] && old->contexts[i] != now->contexts[k]) return true;
    return false;
}

static clique *nccl_find(const clique *like) {
    for (int k = n_cliques - 1; k >= 0; k--)
        if (is_stale(&cliques[k], like)) nccl_drop(&cliques[k]);
    for (int k = 0; k < n_cliques; k++)
        if (cliques[k].nccl == like->nccl && cliques[k].n == like->n &&
            memcmp(cliques[k].cards, like->cards, sizeof like->cards) == 0)
            return &cliques[k];
    return NULL;
}

/* Returns the clique of these cards, with communicators or refused. */
static clique *nccl_take(weft_device *device, clique *like) {
    clique *c = nccl_find(like);
    if (c) return c;
    const ncclResult_t error = like->nccl->functions.ncclCommInitAll(like->comms, like->n, like->cards);
    like->refused = error != 0;
    if (error)
        weft__log(device->ctx, WEFT_LOG_WARNING,
                  "%s and %d more cards: the host adds up their gradients, since %s refuses: %s; "
                  "NCCL_DEBUG=WARN tells more",
                  device->name, like->n - 1, like->nccl->name,
                  like->nccl->functions.ncclGetErrorString(error));
    if (n_cliques == CLIQUES_MOST) nccl_drop(&cliques[0]);
    cliques[n_cliques] = *like;
    return &cliques[n_cliques++];
}

/* ---- all-reduce ---- */

/* Fills in the cards of a clique. Returns false if they are not different cards. */
static bool nccl_describe(weft_device *const *devices, size_t n, clique *c) {
    if (n > CARDS_MOST) return false;
    for (size_t i = 0; i < n; i++) {
        const weft__cuda *d = weft__cuda_of(devices[i]);
        c->cards[i] = d->found->id;
        c->contexts[i] = d->found->generation;
        for (size_t k = 0; k < i; k++)
            if (c->cards[k] == c->cards[i]) return false;
    }
    c->n = (int)n;
    return true;
}

static ncclResult_t submit(const clique *c, weft_device *const *devices, weft_buffer *const *buffers,
                           weft_dtype dtype, size_t count) {
    const ncclDataType_t type = dtype == WEFT_F64 ? ncclFloat64 : ncclFloat32;
    const weft__nccl_functions *f = &c->nccl->functions;
    ncclResult_t error = f->ncclGroupStart();
    if (error) return error;
    for (int i = 0; i < c->n && !error; i++) {
        const weft__cuda *d = weft__cuda_of(devices[i]);
        const weft_gpu_buffer *b = (const weft_gpu_buffer *)buffers[i];
        void *const at = (void *)(uintptr_t)(b->address + d->gpu.guard); // NOLINT(performance-no-int-to-ptr)
        error = f->ncclAllReduce(at, at, count, type, ncclSum, c->comms[i], d->stream);
    }
    const ncclResult_t ended = f->ncclGroupEnd();
    return error ? error : ended;
}

/* Orders the sum with large uploads to a buffer, before or after it: see transfer.c. */
static CUresult order(weft_device *device, weft_buffer *buffer, bool before) {
    weft__cuda *d = weft__cuda_of(device);
    CUresult error = weft__cuda_enter(d);
    if (error) return error;
    error = before ? weft__cuda_before_use(d, (weft__cuda_buffer *)buffer)
                   : weft__cuda_after_use(d, (weft__cuda_buffer *)buffer);
    weft__cuda_leave(d);
    return error;
}

static weft_status order_all(weft_device *const *devices, weft_buffer *const *buffers, size_t n,
                             bool before) {
    for (size_t i = 0; i < n; i++) {
        const CUresult error = order(devices[i], buffers[i], before);
        if (error) return weft__cuda_fail(weft__cuda_of(devices[i]), error, "adding up over the GPUs");
        weft__gpu_of(devices[i])->unseen = true;
    }
    return WEFT_OK;
}

static weft_status sum(clique *c, weft_device *const *devices, weft_buffer *const *buffers, weft_dtype dtype,
                       size_t count) {
    const weft_nccl *nccl = c->nccl;
    const int others = c->n - 1;
    WEFT_TRY(order_all(devices, buffers, (size_t)c->n, true));
    const ncclResult_t error = submit(c, devices, buffers, dtype, count);
    if (!error) return order_all(devices, buffers, (size_t)c->n, false);
    nccl_drop(c); /* the communicators answer with errors from now on */
    return weft__fail(devices[0]->ctx, WEFT_ERR_DEVICE,
                      "%s and %d more cards: %s does not sum over them: %s; NCCL_DEBUG=WARN tells more",
                      devices[0]->name, others, nccl->name, nccl->functions.ncclGetErrorString(error));
}

weft_status weft__nccl_sum(weft_device *const *devices, weft_buffer *const *buffers, size_t n,
                           weft_dtype dtype, size_t count, bool *done) {
    weft_nccl *nccl = weft__cuda_of(devices[0])->found->api->nccl;
    clique like = {.nccl = nccl};
    *done = false;
    if (weft__nccl_open(nccl) || !nccl_describe(devices, n, &like)) return WEFT_OK;
    pthread_mutex_lock(&lock);
    clique *c = nccl_take(devices[0], &like);
    const bool refused = c->refused;
    const weft_status status = refused ? WEFT_OK : sum(c, devices, buffers, dtype, count);
    pthread_mutex_unlock(&lock);
    *done = status == WEFT_OK && !refused;
    return status;
}
