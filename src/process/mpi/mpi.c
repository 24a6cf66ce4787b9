/* The engine of process/transport.h for MPI 3.1 and later. It is compiled once for each MPI:
 * libweft-openmpi.so and libweft-mpich.so. It uses nothing of libweft, and libweft opens it at run time. Must
 * not know: Weft. Read next: process/transport.h. */
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "process/transport.h"

typedef struct mpi_transport {
    weft_transport base;
    MPI_Comm world, roll; /* roll: for call_roll, whose messages must not meet others */
    int owned;            /* MPI was started here, and is ended here */
    char message[MPI_MAX_ERROR_STRING + 64];
} mpi_transport;

static const char *failed(mpi_transport *m, const char *what, int error) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    if (error == MPI_SUCCESS) return NULL;
    MPI_Error_string(error, text, &length);
    snprintf(m->message, sizeof m->message, "%s: %s", what, text);
    return m->message;
}

/* Keeps a request in a transfer. A request is an int or a pointer. */
static const char *mpi_keep(mpi_transport *m, const char *what, int error, MPI_Request request,
                            weft_transfer *transfer) {
    _Static_assert(sizeof request <= sizeof *transfer, "a request fits into a transfer");
    memcpy(transfer, &request, sizeof request);
    return failed(m, what, error);
}

static const char *mpi_broadcast(weft_transport *t, void *data, size_t bytes, int from,
                                 weft_transfer *transfer) {
    mpi_transport *m = (mpi_transport *)t;
    MPI_Request request = MPI_REQUEST_NULL;
    const int error = MPI_Ibcast(data, (int)bytes, MPI_BYTE, from, m->world, &request);
    return mpi_keep(m, "MPI_Ibcast", error, request, transfer);
}

static const char *mpi_all_gather(weft_transport *t, void *data, size_t bytes, weft_transfer *transfer) {
    mpi_transport *m = (mpi_transport *)t;
    MPI_Request request = MPI_REQUEST_NULL;
    const int error =
        MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data, (int)bytes, MPI_BYTE, m->world, &request);
    return mpi_keep(m, "MPI_Iallgather", error, request, transfer);
}

static const char *mpi_all_to_all(weft_transport *t, const void *send, void *receive, size_t bytes,
                                  weft_transfer *transfer) {
    mpi_transport *m = (mpi_transport *)t;
    MPI_Request request = MPI_REQUEST_NULL;
    const int error =
        MPI_Ialltoall(send, (int)bytes, MPI_BYTE, receive, (int)bytes, MPI_BYTE, m->world, &request);
    return mpi_keep(m, "MPI_Ialltoall", error, request, transfer);
}

static const char *mpi_all_reduce(weft_transport *t, void *data, int wide, size_t count,
                                  weft_transfer *transfer) {
    mpi_transport *m = (mpi_transport *)t;
    MPI_Request request = MPI_REQUEST_NULL;
    const int error = MPI_Iallreduce(MPI_IN_PLACE, data, (int)count, wide ? MPI_DOUBLE : MPI_FLOAT, MPI_SUM,
                                     m->world, &request);
    return mpi_keep(m, "MPI_Iallreduce", error, request, transfer);
}

static const char *mpi_test(weft_transport *t, weft_transfer *transfer, int *ended) {
    mpi_transport *m = (mpi_transport *)t;
    MPI_Request request;
    memcpy(&request, transfer, sizeof request);
    const int error = MPI_Test(&request, ended, MPI_STATUS_IGNORE);
    return mpi_keep(m, "MPI_Test", error, request, transfer);
}

static int mpi_asked(weft_transport *t) {
    int there = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, 0, ((mpi_transport *)t)->roll, &there, MPI_STATUS_IGNORE);
    return there;
}

/* Sends an empty message to each process, and notes which processes have sent one. */
static void mpi_call_roll(weft_transport *t, double seconds, unsigned char *present) {
    mpi_transport *m = (mpi_transport *)t;
    const double from = MPI_Wtime();
    memset(present, 0, (size_t)t->size);
    present[t->rank] = 1;
    for (int i = 0; i < t->size; i++) {
        MPI_Request sent; /* never completed: the process ends soon */
        if (i != t->rank) MPI_Isend(NULL, 0, MPI_BYTE, i, 0, m->roll, &sent);
    }
    for (int known = 1; known < t->size && MPI_Wtime() - from < seconds; sched_yield()) {
        int there = 0;
        MPI_Status status;
        if (MPI_Iprobe(MPI_ANY_SOURCE, 0, m->roll, &there, &status) != MPI_SUCCESS) return;
        if (!there) continue;
        MPI_Recv(NULL, 0, MPI_BYTE, status.MPI_SOURCE, 0, m->roll, MPI_STATUS_IGNORE);
        present[status.MPI_SOURCE] = 1;
        known++;
    }
}

static void mpi_abort(weft_transport *t, int code) {
    MPI_Abort(((mpi_transport *)t)->world, code);
    _Exit(code);
}

static void mpi_close(weft_transport *t) {
    mpi_transport *m = (mpi_transport *)t;
    MPI_Comm_free(&m->roll);
    MPI_Comm_free(&m->world);
    if (m->owned) MPI_Finalize();
    free(m);
}

/* Starts MPI, unless the program has done so. */
static const char *start(mpi_transport *m) {
    int started = 0, provided = MPI_THREAD_SINGLE;
    MPI_Initialized(&started);
    m->owned = !started;
    if (started)
        MPI_Query_thread(&provided);
    else if (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS)
        return "MPI_Init_thread fails";
    return provided < MPI_THREAD_SERIALIZED ? "MPI does not allow calls of several threads" : NULL;
}

static const char *connect(mpi_transport *m) {
    int error = MPI_Comm_dup(MPI_COMM_WORLD, &m->world);
    if (error == MPI_SUCCESS) error = MPI_Comm_dup(MPI_COMM_WORLD, &m->roll);
    if (error == MPI_SUCCESS) error = MPI_Comm_set_errhandler(m->world, MPI_ERRORS_RETURN);
    if (error == MPI_SUCCESS) error = MPI_Comm_set_errhandler(m->roll, MPI_ERRORS_RETURN);
    if (error == MPI_SUCCESS) error = MPI_Comm_rank(m->world, &m->base.rank);
    if (error == MPI_SUCCESS) error = MPI_Comm_size(m->world, &m->base.size);
    return failed(m, "MPI_Comm_dup", error);
}

/* Keeps the first words of the version: "Open MPI v4.1.4", "MPICH Version: 4.0.2". */
static void name_engine(weft_transport *t) {
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "MPI";
    int length;
    MPI_Get_library_version(text, &length);
    text[strcspn(text, ",\n")] = 0;
    for (char *c = text; *c; c++)
        if (*c == '\t') *c = ' ';
    snprintf(t->name, sizeof t->name, "%.*s", (int)sizeof t->name - 1, text);
}

const char *weft_transport_open(weft_transport **out);
__attribute__((visibility("default"))) const char *weft_transport_open(weft_transport **out) {
    static char message[MPI_MAX_ERROR_STRING + 64];
    mpi_transport *m = calloc(1, sizeof *m);
    if (!m) return "out of memory";
    m->base = (weft_transport){.version = WEFT_TRANSPORT_VERSION,
                               .broadcast = mpi_broadcast,
                               .all_gather = mpi_all_gather,
                               .all_to_all = mpi_all_to_all,
                               .all_reduce = mpi_all_reduce,
                               .test = mpi_test,
                               .asked = mpi_asked,
                               .call_roll = mpi_call_roll,
                               .abort = mpi_abort,
                               .close = mpi_close};
    const char *error = start(m);
    if (!error) error = connect(m);
    if (!error) name_engine(&m->base);
    if (error) {
        snprintf(message, sizeof message, "%s", error);
        free(m);
        return message;
    }
    *out = &m->base;
    return NULL;
}
