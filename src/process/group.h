/* A group of processes: what its functions share, and what only the library calls.
 * Must not know: tensors. Read next: group.c, sum.c, transport.h. */
#ifndef WEFT_PROCESS_GROUP_INSIDE_H
#define WEFT_PROCESS_GROUP_INSIDE_H

#include <stdatomic.h>
#include <weft/process_group.h>

#include "base/base.h"
#include "device/device.h"
#include "process/transport.h"

enum {
    WEFT__HOST_BYTES = 64,
    WEFT__PIECE_BYTES = 8 << 20 /* bytes of all processes that are exchanged at once, and fit into a cache */
};

struct weft_process_group {
    weft_transport *transport;
    int rank, size, local_rank, local_size;
    char (*hosts)[WEFT__HOST_BYTES]; /* [size] */
    double timeout;                  /* seconds */
    int threads;                     /* processors for each of the processes that share them with this one */
    uint64_t step;                   /* for messages; 0: not in a step */
    const char *purpose;             /* for messages: what is exchanged */
    double waited;                   /* seconds in which this process has waited for transfers */
    double hidden;                   /* seconds of transfers during which it computed */
    bool planned;        /* the other processes do not exist, and values do not count (planned.c) */
    bool beside;         /* transfers go on beside a program, which needs the processors */
    atomic_bool awaited; /* the program waits for one of them */
    struct weft__exchange *exchange; /* exchange.c; NULL until needed */
    uint64_t
        *orders; /* of the programs that gather and were compared. Only the thread that exchanges uses it */
    size_t n_orders, order_capacity;
    char *staging; /* memory for transfers */
    size_t staging_bytes;
    unsigned char *present; /* [size], for a roll call */
};

/* Makes a group on an engine, which it then owns, also after a failure. */
weft_status weft__process_group_on(weft_transport *transport, const weft_process_group_options *options,
                                   weft_process_group **group);

/* Makes a group for plans: rank 0 of `size` processes, of which no other exists (planned.c). */
weft_status weft__process_group_planned(int size, weft_process_group **group);

/* Opens the engine of the launcher that started this process. *transport is NULL if none did. */
weft_status weft__launcher_open(weft_transport **transport);

/* Tells whether the engine "openmpi" or "mpich" is installed. Writes the Debian package with which it can be
 * built. */
bool weft__launcher_has(const char *name, const char **package);

/* What the next transfers are for, such as "the gradients", and in which step, from 1 on; 0: in none. For
 * messages. The text must live as long as the group. */
static inline void weft__process_group_purpose(weft_process_group *group, uint64_t step,
                                               const char *purpose) {
    if (!group) return;
    group->step = step;
    group->purpose = purpose;
}

/* What a process waits for. */
typedef struct weft__awaited {
    const char *engine;                           /* for messages */
    const char *(*test)(void *user, bool *ended); /* returns NULL or a message; also makes transfers go on */
    void (*give_up)(void *user); /* called after a failure, before the others are called; may be NULL */
    void *user;
} weft__awaited;
weft_status weft__process_group_await(weft_process_group *group, const char *error,
                                      const weft__awaited *what);
/* Waits for the end of a transfer. error: what the function that started it returned. */
weft_status weft__process_group_wait(weft_process_group *group, const char *error, weft_transfer *transfer);

/* Returns memory for transfers, which is valid until the next call. NULL: memory is short, and the error is
 * set. */
void *weft__process_group_staging(weft_process_group *group, size_t bytes);

/* Collects `bytes` bytes of which process i has part i, from byte i * part on; the last parts may be shorter
 * or empty. own: the part of this process. all: receives all parts, and may hold the own one already. */
weft_status weft__process_group_collect(weft_process_group *group, const void *own, void *all, size_t part,
                                        size_t bytes);

/* Gathers `part` bytes of each process: process i's are at all + i * part. own: those of this one. */
weft_status weft__process_group_gather(weft_process_group *group, const void *own, void *all, size_t part);
/* Returns the memory for transfers that this takes. */
size_t weft__process_group_gather_bytes(const weft_process_group *group, size_t part);

/* Compares a hash over all processes. WEFT_ERR_STATE, in all of them, names those whose hash is not that of
 * rank 0, and `what` they have: "other weights". `advice` tells what helps. */
weft_status weft__process_group_same(weft_process_group *group, const char *what, weft_hash hash,
                                     const char *advice);

/* Returns WEFT_OK in all processes if `status` is WEFT_OK in all of them. Otherwise returns in all of them
 * the failure of the lowest rank that has failed, with its message; before that of another rank than 0 stand
 * rank and machine. *agreed, which may be NULL, is false if the processes could not ask each other. */
weft_status weft__process_group_agree(weft_process_group *group, weft_status status, bool *agreed);

/* Seconds of a clock. */
double weft__process_group_now(void);

/* Returns the memory for transfers that a sum of so many numbers takes. */
size_t weft__process_group_sum_bytes(const weft_process_group *group, weft_dtype dtype, size_t count,
                                     bool exact);
/* Returns the same for weft__process_group_collect, with parts of `part` bytes. */
size_t weft__process_group_collect_bytes(const weft_process_group *group, size_t part);

/* Adds up `count` numbers of dtype f32 or f64 over all processes, in the order of an exact sum, and leaves
 * each process its part: rank i receives the sums of numbers i * part to (i + 1) * part - 1. Sums beyond
 * `count` are 0. data: [count], not changed. own: [part]. */
weft_status weft__process_group_scatter(weft_process_group *group, const void *data, void *own,
                                        weft_dtype dtype, size_t count, size_t part);
/* Returns the memory for transfers that this takes. */
size_t weft__process_group_scatter_bytes(const weft_process_group *group, weft_dtype dtype, size_t part);

/* sum += more, for `count` numbers of dtype f32 or f64. */
void weft__add_numbers(void *sum, const void *more, weft_dtype dtype, size_t count);

/* ---- link.c: exchanges between the devices of the processes, without the host ---- */

typedef struct weft__process_link weft__process_link;

/* Links the device to those of the other processes. All of them must call it. *link is NULL in all of them if
 * one cannot be linked: then they exchange memory of the host, and rank 0 logs why. */
weft_status weft__process_link_open(weft_process_group *group, weft_device *device,
                                    weft__process_link **link);
/* After a failure it does not wait for the other processes. NULL is allowed. */
void weft__process_link_close(weft__process_link *link);
weft_process_group *weft__process_link_group(const weft__process_link *link);

/* The link as programs of the device use it. NULL if `link` is. */
weft_linked *weft__process_link_programs(weft__process_link *link);

/* The transfer of weft_link_functions. It returns when the transfer is submitted, so that programs of the
 * device may be submitted after it. After a failure the link is closed, and the group can only be aborted. */
weft_status weft__process_link_all_gather(weft__process_link *link, weft_buffer *from, size_t from_at,
                                          weft_buffer *to, size_t to_at, size_t part, size_t bytes);
/* Waits until all submitted work of the device is done. */
weft_status weft__process_link_finish(weft__process_link *link);

/* ---- exchange.c ---- */

/* Gives the exchanger of programs. It lives as long as the group. While a program with exchanges runs,
 * nothing else of the group may be called. */
weft_status weft__process_group_exchanger(weft_process_group *group, weft_exchanger **exchanger);
/* Compares the order of the exchanges of a program that gathers, before the first of them. Programs that were
 * compared before pass at once. */
weft_status weft__process_group_compare_order(weft_process_group *group, const weft_heavy_exchange *exchange);
void weft__process_group_end_exchanges(weft_process_group *group);

#endif
