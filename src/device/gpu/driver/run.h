/* A program of the CUDA device, shared by run.c and driver/graph.c.
 * Must not know: kernel forms, heavy operations. Read next: run.c. */
#ifndef WEFT_DEVICE_GPU_DRIVER_RUN_H
#define WEFT_DEVICE_GPU_DRIVER_RUN_H

#include "device/gpu/driver/driver.h"

/* A library call that replaces a kernel. It gets pointers to the addresses of operands and scratch memory. It
 * is called at each run, or once to be captured in a graph. It must not allocate or wait. */
typedef struct weft_call {
    CUresult (*run)(weft__cuda *device, const struct weft_call *call, void *const *addresses,
                    CUstream stream);
} weft_call;

/* The program as one submission, with the buffers of `bound`. */
typedef struct cuda_graph {
    CUgraphExec executable;
    uint64_t *bound;
    int64_t used; /* number of the run that used it last */
} cuda_graph;

enum { CUDA_GRAPHS = 4 }; /* graphs of one program, for so many sets of buffers */

/* Launches that are submitted together: those between two launches of exchanges, or all of a program. */
typedef struct cuda_stretch {
    int first, count;
    CUgraph graph;      /* all graphs are instances of it; NULL before the first one */
    CUgraphNode *nodes; /* one for each launch */
    uint64_t *graph_bound;
    cuda_graph graphs[CUDA_GRAPHS];
    int n_graphs;
} cuda_stretch;

typedef struct cuda_executable {
    weft_gpu_executable gpu;
    int64_t done; /* runs so far */
    cuda_stretch *stretches;
    int n_stretches;
} cuda_executable;

/* ---- run.c ---- */

CUresult weft__cuda_call(weft__cuda *d, const weft_gpu_launch *l, CUstream stream);

/* ---- driver/graph.c ---- */

CUresult weft__cuda_find_stretches(weft__cuda *d, cuda_executable *e);
/* Returns in *graph the graph of a stretch for the buffers that are bound now. */
CUresult weft__cuda_graph(weft__cuda *d, const cuda_executable *e, cuda_stretch *stretch, cuda_graph **graph);
void weft__cuda_graphs_free(weft__cuda *d, cuda_executable *e);

#endif
