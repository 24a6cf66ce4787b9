/* Kernels, alone and as nodes of graphs. Read next: items.c. */
#include "driver.h"

#include <stdlib.h>
#include <string.h>

/* ---- one kernel ---- */

static size_t bytes_of(const struct CUfunc_st *f) {
    size_t bytes = 0;
    for (unsigned i = 0; i < f->n_arguments; i++) bytes += (f->sizes[i] + 15u) & ~15u;
    return bytes;
}

static fake_launch *make(CUfunction function, fake_dim blocks, fake_dim threads, void *const *values) {
    const size_t head = (sizeof(fake_launch) + 15) & ~(size_t)15;
    const size_t list = (function->n_arguments * sizeof(void *) + 15) & ~(size_t)15;
    char *memory = calloc(1, head + list + bytes_of(function) + 16), *at = memory + head + list;
    fake_launch *l = (fake_launch *)(void *)memory;
    *l = (fake_launch){function, blocks, threads, (void **)(void *)(memory + head)};
    for (unsigned i = 0; i < function->n_arguments; i++) {
        l->values[i] = memcpy(at, values[i], function->sizes[i]);
        at += (function->sizes[i] + 15u) & ~15u;
    }
    return l;
}

fake_launch *fake_launch_of(const char *name, CUcontext context, CUfunction function, fake_dim blocks,
                            fake_dim threads, void **values, CUresult *error) {
    *error = CUDA_ERROR_INVALID_HANDLE;
    if (!fake_alive(name, function, FAKE_FUNCTION, context)) return NULL;
    const unsigned long all = (unsigned long)threads.x * threads.y * threads.z;
    *error = CUDA_ERROR_INVALID_VALUE;
    if (!blocks.x || !blocks.y || !blocks.z || blocks.x > 0x7fffffff || blocks.y > 65535 || blocks.z > 65535)
        *error = fake_refuse(name, *error, "%u x %u x %u blocks", blocks.x, blocks.y, blocks.z);
    else if (!all || all > 1024)
        *error = fake_refuse(name, *error, "%lu threads in a block", all);
    else if (!values && function->n_arguments)
        *error = fake_refuse(name, *error, "no arguments");
    else
        *error = 0;
    return *error ? NULL : make(function, blocks, threads, values);
}

fake_launch *fake_launch_copy(const fake_launch *l) {
    return make(l->function, l->blocks, l->threads, l->values);
}

void fake_launch_free(fake_launch *l) { free(l); }

CUresult fake_launch_run(const fake_launch *l) {
    const bool wished = fake_cuda.fail_launch && --fake_cuda.fail_launch == 0;
    if (wished) return CUDA_ERROR_LAUNCH_FAILED;
    fake_cuda.kernels++;
    return fake_run_blocks(l->function->call, l->blocks, l->threads, l->values, fake_cuda.kernels % 2)
               ? 0
               : CUDA_ERROR_LAUNCH_TIMEOUT;
}

API cuLaunchKernel(CUfunction function, unsigned blocks_x, unsigned blocks_y, unsigned blocks_z,
                   unsigned threads_x, unsigned threads_y, unsigned threads_z, unsigned shared_bytes,
                   CUstream stream, void **arguments, void **extra) {
    CUresult error;
    ENTER("cuLaunchKernel");
    WANT(stream, FAKE_STREAM);
    if (shared_bytes || extra)
        LEAVE(fake_refuse(function_name, CUDA_ERROR_INVALID_VALUE, "what is not known here"));
    fake_launch *l =
        fake_launch_of(function_name, context, function, (fake_dim){blocks_x, blocks_y, blocks_z},
                       (fake_dim){threads_x, threads_y, threads_z}, arguments, &error);
    if (l) fake_submit_launch(stream, l);
    fake_cuda.launches += l != NULL;
    LEAVE(error);
}

/* ---- graphs ---- */

enum { NODES = 4096 };
struct CUgraphNode_st {
    fake_handle handle;
    CUgraph graph;
    int number;
    fake_launch *launch;
    int *after, n_after;
};

struct CUgraph_st {
    fake_handle handle;
    CUgraphNode nodes[NODES];
    int count;
};

/* Nodes as they were when it was instantiated. */
struct CUgraphExec_st {
    fake_handle handle;
    CUgraph graph; /* which tells the numbers of its nodes */
    int count;
    fake_launch **launches;
    int **after, *n_after;
};

typedef struct fake_graph_run {
    int count;
    fake_launch **launches;
    int **after, *n_after;
} fake_graph_run;

API cuGraphCreate(CUgraph *graph, unsigned flags) {
    CUresult error;
    ENTER("cuGraphCreate");
    (void)flags;
    *graph = fake_make(context, FAKE_GRAPH, sizeof **graph);
    LEAVE(0);
}

API cuGraphDestroy(CUgraph graph) {
    CUresult error;
    ENTER("cuGraphDestroy");
    WANT(graph, FAKE_GRAPH);
    for (int i = 0; i < graph->count; i++) {
        fake_launch_free(graph->nodes[i]->launch);
        free(graph->nodes[i]->after);
        graph->nodes[i]->handle.alive = false;
    }
    fake_unmake(graph);
    LEAVE(0);
}

static fake_launch *launch_of(const char *name, CUcontext context, const CUDA_KERNEL_NODE_PARAMS_v2 *p,
                              CUresult *error) {
    if (p->sharedMemBytes || p->extra || p->kern) {
        *error = fake_refuse(name, CUDA_ERROR_INVALID_VALUE, "what is not known here");
        return NULL;
    }
    return fake_launch_of(name, context, p->func, (fake_dim){p->gridDimX, p->gridDimY, p->gridDimZ},
                          (fake_dim){p->blockDimX, p->blockDimY, p->blockDimZ}, p->kernelParams, error);
}

API cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t n_after,
                            const CUDA_KERNEL_NODE_PARAMS_v2 *parameters) {
    CUresult error;
    ENTER("cuGraphAddKernelNode");
    WANT(graph, FAKE_GRAPH);
    if (graph->count == NODES) LEAVE(CUDA_ERROR_OUT_OF_MEMORY);
    for (size_t i = 0; i < n_after; i++) {
        WANT(after[i], FAKE_NODE);
        if (after[i]->graph != graph)
            LEAVE(fake_refuse(function_name, CUDA_ERROR_INVALID_VALUE, "a node of another graph"));
    }
    fake_launch *l = launch_of(function_name, context, parameters, &error);
    if (!l) LEAVE(error);
    CUgraphNode n = calloc(1, sizeof *n);
    n->handle = (fake_handle){.kind = FAKE_NODE, .alive = true, .context = context, .era = context->era};
    n->graph = graph;
    n->number = graph->count;
    n->launch = l;
    n->after = calloc(n_after + 1, sizeof *n->after);
    n->n_after = (int)n_after;
    for (size_t i = 0; i < n_after; i++) n->after[i] = after[i]->number;
    graph->nodes[graph->count++] = n;
    *node = n;
    LEAVE(0);
}

static int *copy_numbers(const int *list, int n) {
    int *copy = calloc((size_t)n + 1, sizeof *copy);
    memcpy(copy, list, (size_t)n * sizeof *copy);
    return copy;
}

API cuGraphInstantiateWithFlags(CUgraphExec *executable, CUgraph graph, unsigned long long flags) {
    CUresult error;
    ENTER("cuGraphInstantiate");
    WANT(graph, FAKE_GRAPH);
    (void)flags;
    CUgraphExec e = fake_make(context, FAKE_EXECUTABLE, sizeof *e);
    const size_t n = (size_t)graph->count + 1;
    e->graph = graph;
    e->count = graph->count;
    e->launches = calloc(n, sizeof *e->launches);
    e->after = calloc(n, sizeof *e->after);
    e->n_after = calloc(n, sizeof *e->n_after);
    for (int i = 0; i < e->count; i++) {
        e->launches[i] = fake_launch_copy(graph->nodes[i]->launch);
        e->n_after[i] = graph->nodes[i]->n_after;
        e->after[i] = copy_numbers(graph->nodes[i]->after, e->n_after[i]);
    }
    fake_cuda.graphs++;
    *executable = e;
    LEAVE(0);
}

API cuGraphExecKernelNodeSetParams_v2(CUgraphExec executable, CUgraphNode node,
                                      const CUDA_KERNEL_NODE_PARAMS_v2 *parameters) {
    CUresult error;
    ENTER("cuGraphExecKernelNodeSetParams");
    WANT(executable, FAKE_EXECUTABLE);
    WANT(node, FAKE_NODE);
    if (node->graph != executable->graph)
        LEAVE(fake_refuse(function_name, CUDA_ERROR_INVALID_VALUE, "a node of another graph"));
    if (parameters->func != executable->launches[node->number]->function)
        LEAVE(fake_refuse(function_name, CUDA_ERROR_INVALID_VALUE, "another kernel"));
    fake_launch *l = launch_of(function_name, context, parameters, &error);
    if (!l) LEAVE(error);
    fake_launch_free(executable->launches[node->number]);
    executable->launches[node->number] = l;
    fake_cuda.updates++;
    LEAVE(0);
}

API cuGraphExecDestroy(CUgraphExec executable) {
    CUresult error;
    ENTER("cuGraphExecDestroy");
    WANT(executable, FAKE_EXECUTABLE);
    for (int i = 0; i < executable->count; i++) {
        fake_launch_free(executable->launches[i]);
        free(executable->after[i]);
    }
    free(executable->launches);
    free(executable->after);
    free(executable->n_after);
    fake_unmake(executable);
    LEAVE(0);
}

API cuGraphLaunch(CUgraphExec executable, CUstream stream) {
    CUresult error;
    ENTER("cuGraphLaunch");
    WANT(executable, FAKE_EXECUTABLE);
    WANT(stream, FAKE_STREAM);
    const size_t n = (size_t)executable->count + 1;
    fake_graph_run *g = calloc(1, sizeof *g);
    g->count = executable->count;
    g->launches = calloc(n, sizeof *g->launches);
    g->after = calloc(n, sizeof *g->after);
    g->n_after = copy_numbers(executable->n_after, executable->count);
    for (int i = 0; i < g->count; i++) {
        g->launches[i] = fake_launch_copy(executable->launches[i]);
        g->after[i] = copy_numbers(executable->after[i], g->n_after[i]);
    }
    fake_submit_graph(stream, g);
    fake_cuda.graph_launches++;
    LEAVE(0);
}

/* Of the nodes that may run the one that was added last does. */
CUresult fake_graph_run_all(fake_graph_run *g) {
    bool *done = calloc((size_t)g->count + 1, sizeof *done);
    CUresult error = 0;
    for (int left = g->count; left > 0 && !error; left--) {
        int next = g->count - 1;
        for (; next >= 0; next--) {
            bool ready = !done[next];
            for (int i = 0; i < g->n_after[next] && ready; i++) ready = done[g->after[next][i]];
            if (ready) break;
        }
        error = fake_launch_run(g->launches[next]);
        done[next] = true;
    }
    free(done);
    return error;
}

void fake_graph_run_free(fake_graph_run *g) {
    for (int i = 0; i < g->count; i++) {
        fake_launch_free(g->launches[i]);
        free(g->after[i]);
    }
    free(g->launches);
    free(g->after);
    free(g->n_after);
    free(g);
}
