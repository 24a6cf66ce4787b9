/* A program of the CUDA device, as run.c and graph.c share it. Read next: run.c. */
#ifndef WEFT_DEVICE_CUDA_RUN_H
#define WEFT_DEVICE_CUDA_RUN_H

#include "device/cuda/cuda.h"

/* What a library does in place of a kernel, given the places of the addresses of operands and scratch: it is
 * called at each run, or once, to be captured in a graph, and neither allocates nor waits. */
typedef struct weft_call {
    CUresult (*run)(weft__cuda *device, const struct weft_call *call, void *const *addresses,
                    CUstream stream);
} weft_call;

typedef struct cuda_launch {
    CUfunction function; /* NULL where there is a call */
    const weft_call *call;
    unsigned groups[3], items[3], shared_bytes;
    void **arguments; /* places of their values */
    int command;
    bool follows; /* the launch before it, of the same command */
    bool after;   /* all before it; else independent of those since the last that is */
    bool scratch; /* uses the device's, as others do */
} cuda_launch;

/* The program as one submission, for the buffers of `bound`. */
typedef struct cuda_graph {
    CUgraphExec executable;
    uint64_t *bound;
    int64_t used; /* in which run */
} cuda_graph;

enum { CUDA_GRAPHS = 4 }; /* kept of a program: for so many sets of buffers */

typedef struct cuda_executable {
    weft_gpu_executable gpu;
    cuda_launch *launches;
    char *values; /* of all arguments */
    void **arguments;
    CUdeviceptr words;  /* that chains read */
    void *times;        /* the argument that tells how many runs the one launch does */
    int64_t done;       /* runs */
    CUgraph graph;      /* of which all are instances, NULL before the first */
    CUgraphNode *nodes; /* of the launches */
    uint64_t *graph_bound;
    cuda_graph graphs[CUDA_GRAPHS];
    int n_graphs;
    CUevent *events; /* before the launches of a timed run, and after the last */
} cuda_executable;

/* ---- run.c ---- */

CUresult weft__cuda_call(weft__cuda *d, const cuda_launch *l, CUstream stream);

/* ---- graph.c ---- */

/* The graph for the buffers that are bound. */
CUresult weft__cuda_graph(weft__cuda *d, cuda_executable *e, cuda_graph **graph);
void weft__cuda_graphs_free(weft__cuda *d, cuda_executable *e);

#endif
