/* A link between cards of several processes, as link.c opens it and exchange.c lets programs use it.
 * Must not know: other processes. Read next: link.c, exchange.c. */
#ifndef WEFT_DEVICE_GPU_DRIVER_NCCL_LINK_H
#define WEFT_DEVICE_GPU_DRIVER_NCCL_LINK_H

#include "device/gpu/driver/driver.h"
#include "device/gpu/driver/nccl/nccl.h"

/* Times of one exchange of a program. */
typedef struct weft__exchange_events {
    CUevent begun, ended;    /* in the stream beside */
    CUevent awaited, waited; /* in the main stream, before and after it waits for the end */
} weft__exchange_events;

struct weft_link {
    weft_device *device;
    const weft_nccl *nccl;
    ncclComm_t comm;
    int rank, size;
    CUevent done; /* follows the last transfer and program that were submitted before it was recorded */
    bool recorded;
    CUevent ready; /* in the main stream: the numbers of the exchange that was submitted last are there */
    weft__exchange_events *exchanges; /* by number */
    int n_exchanges;
};

/* ---- link.c: functions return NULL, or a message that lives until the next call in this thread ---- */

/* Returns why the communicator has failed. */
const char *weft__nccl_state(const weft_link *link);
const char *weft__nccl_driver_failed(const weft__cuda *d, CUresult error);

/* A piece of the numbers of several processes: process i has bytes i * stride to i * stride + part - 1, or
 * those of them that exist. */
typedef struct weft__nccl_parts {
    size_t stride, part, bytes; /* bytes: that exist */
} weft__nccl_parts;

/* Adds up `count` numbers over all processes. */
const char *weft__nccl_reduce(const weft_link *link, const char *from, char *to, weft_dtype dtype,
                              size_t count, CUstream stream);
/* Sends process i its part of `from`, and receives the own part of process i at to + i * part. */
const char *weft__nccl_scatter(const weft_link *link, const char *from, char *to,
                               const weft__nccl_parts *parts, CUstream stream);
/* Collects all parts. own: of this process, which may be its place in `all`. */
const char *weft__nccl_gather(const weft_link *link, const char *own, char *all,
                              const weft__nccl_parts *parts, CUstream stream);

/* ---- exchange.c ---- */

/* Adds the launches of an exchange, or of the command that waits for its end. */
weft_status weft__nccl_offer_exchange(weft__cuda *device, weft_launches *launches,
                                      const weft_command *command);
/* Frees what programs call. */
void weft__nccl_exchanges_close(weft__cuda *device);

/* Functions of weft_link_functions. */
const char *weft__nccl_test_exchange(weft_link *link, int number, bool end, bool *is);
void weft__nccl_exchange_times(weft_link *link, int count, double *took, double *waited);
/* Makes the stream beside, and the event. */
CUresult weft__nccl_exchanges_open(weft_link *link);
/* Lets updates be skipped that programs make after an exchange which never ends. Frees events. */
void weft__nccl_exchanges_fail(const weft_link *link);
void weft__nccl_exchanges_free(weft_link *link);

#endif
