/* What libweft needs of an engine that connects processes. An engine is a library of its own, since libweft
 * may not need MPI: process/mpi/mpi.c is compiled once for each MPI. This header includes nothing of Weft.
 * Must not know: tensors, devices, time limits. Read next: group.c, mpi/mpi.c. */
#ifndef WEFT_PROCESS_TRANSPORT_H
#define WEFT_PROCESS_TRANSPORT_H

#include <stddef.h>

enum { WEFT_TRANSPORT_VERSION = 1 };
enum { WEFT_TRANSPORT_BYTES = 1 << 28 }; /* the most bytes of one transfer, since counts of MPI are ints */

/* A transfer that was started. The memory that it reads and writes must not be touched before its end. */
typedef struct weft_transfer {
    void *inside[4];
} weft_transfer;

typedef struct weft_transport weft_transport;

/* Functions return NULL, or a message that lives until the next call. All processes must start the same
 * transfers in the same order; several may be under way. One thread at a time may call. */
struct weft_transport {
    int version; /* WEFT_TRANSPORT_VERSION */
    int rank, size;
    char name[128]; /* the engine and its version */

    const char *(*broadcast)(weft_transport *t, void *data, size_t bytes, int from, weft_transfer *transfer);
    /* data: `size` parts of `bytes` bytes. The own part is filled in. */
    const char *(*all_gather)(weft_transport *t, void *data, size_t bytes, weft_transfer *transfer);
    /* Part i of `send` goes to process i, and part i of `receive` comes from process i. */
    const char *(*all_to_all)(weft_transport *t, const void *send, void *receive, size_t bytes,
                              weft_transfer *transfer);
    /* Sums over all processes, in the engine's own order. wide: f64 instead of f32. */
    const char *(*all_reduce)(weft_transport *t, void *data, int wide, size_t count, weft_transfer *transfer);
    /* Tells whether the transfer has ended. It also makes transfers go on. */
    const char *(*test)(weft_transport *t, weft_transfer *transfer, int *ended);

    /* Tells whether another process has called the roll. */
    int (*asked)(weft_transport *t);
    /* Tells all processes that this one is there, and waits for the same from them. After `seconds`
     * present[i] tells whether process i was there. Nothing but `abort` may be called afterwards. */
    void (*call_roll)(weft_transport *t, double seconds, unsigned char *present);
    /* Ends all processes. Does not return. */
    void (*abort)(weft_transport *t, int code);
    void (*close)(weft_transport *t);
};

/* The one function that an engine exports. */
#define WEFT_TRANSPORT_OPEN "weft_transport_open"
typedef const char *(*weft_transport_open_fn)(weft_transport **out);

#endif
