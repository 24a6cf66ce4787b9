/* A program of the CUDA device, as run.c and graph.c share it. Read next: run.c. */
#ifndef WEFT_DEVICE_CUDA_RUN_H
#define WEFT_DEVICE_CUDA_RUN_H

#include "device/cuda/cuda.h"

typedef struct cuda_launch {
    CUfunction function;
    unsigned groups[3], items[3];
    void **arguments; /* places of their values */
    int command;
    bool follows; /* the launch before it, of the same command */
    bool after;   /* all before it; else independent of those since the last that is */
    bool scratch; /* uses the device's, as others do */
} cuda_launch;

/* The value at `at`, of an argument of a launch, is the address of the buffer in `slot`. */
typedef struct cuda_place {
    int slot, launch;
    void *at;
} cuda_place;

/* The program as one submission, for the buffers of `bound`. */
typedef struct cuda_graph {
    CUgraphExec executable;
    CUdeviceptr *bound;
    int64_t used; /* in which run */
} cuda_graph;

enum { CUDA_GRAPHS = 4 }; /* kept of a program: for so many sets of buffers */

typedef struct cuda_executable {
    int n_commands, n_slots, n_launches, n_places; /* slot n_slots is the scratch */
    bool serial;                                   /* all launches are one after the other */
    cuda_launch *launches;
    char *values; /* of all arguments */
    void **arguments;
    cuda_place *places;
    CUdeviceptr *bound; /* that the values of places name */
    CUdeviceptr words;  /* that chains read */
    bool repeats;       /* the one launch does the work of *times runs */
    void *times;
    const weft_commands *commands;
    int64_t runs, done;              /* of both forms, as far as chains are concerned; of this form */
    struct cuda_executable *chained; /* its form with chains, once it ran often */
    CUgraph graph;                   /* of which all are instances, NULL before the first */
    CUgraphNode *nodes;              /* of the launches */
    CUdeviceptr *graph_bound;
    cuda_graph graphs[CUDA_GRAPHS];
    int n_graphs;
    weft_timing *timings;
    weft_gpu_time *clocked;
    CUevent *events; /* before the launches of a timed run, and after the last */
} cuda_executable;

/* ---- graph.c ---- */

/* The graph for the buffers that are bound. */
CUresult weft__cuda_graph(weft__cuda *d, cuda_executable *e, cuda_graph **graph);
void weft__cuda_graphs_free(weft__cuda *d, cuda_executable *e);

#endif
