/* Kernel launches, alone and as graph nodes. Read next: items.c. */
#include "driver.h"

#include <stdlib.h>
#include <string.h>

enum { NODES = 4096 };
struct CUgraphNode_st {
    fake_handle handle;
    CUgraph graph;
    int number;
    fake_launch *launch; /* or */
    CUgraph child;
    int *after, n_after;
};

struct CUgraph_st {
    fake_handle handle;
    CUgraphNode nodes[NODES];
    int count;
};

/* ---- one kernel ---- */

static size_t bytes_of(const struct CUfunc_st *f) {
    size_t bytes = 0;
    for (unsigned i = 0; i < f->n_arguments; i++) bytes += (f->sizes[i] + 15u) & ~15u;
    return bytes;
}

static fake_launch *make(const fake_launch *like) {
    const unsigned n = like->function ? like->function->n_arguments : 0;
    const size_t head = (sizeof(fake_launch) + 15) & ~(size_t)15;
    const size_t list = (n * sizeof(void *) + 15) & ~(size_t)15;
    const size_t bytes = like->function ? bytes_of(like->function) : like->bytes;
    char *memory = calloc(1, head + list + bytes + 16), *at = memory + head + list;
    fake_launch *l = (fake_launch *)(void *)memory;
    *l = *like;
    l->values = (void **)(void *)(memory + head);
    if (like->work) l->data = memcpy(at, like->data, like->bytes);
    for (unsigned i = 0; i < n; i++) {
        l->values[i] = memcpy(at, like->values[i], like->function->sizes[i]);
        at += (like->function->sizes[i] + 15u) & ~15u;
    }
    return l;
}

fake_launch *fake_launch_of(const char *name, CUcontext context, CUfunction function, fake_dim blocks,
                            fake_dim threads, unsigned shared_bytes, void **values, CUresult *error) {
    *error = CUDA_ERROR_INVALID_HANDLE;
    if (!fake_alive(name, function, FAKE_FUNCTION, context)) return NULL;
    const unsigned long all = (unsigned long)threads.x * threads.y * threads.z;
    const struct CUfunc_st *f = function;
    *error = CUDA_ERROR_INVALID_VALUE;
    if (!blocks.x || !blocks.y || !blocks.z || blocks.x > 0x7fffffff || blocks.y > 65535 || blocks.z > 65535)
        *error = fake_refuse(name, *error, "%s: %u x %u x %u blocks", f->name, blocks.x, blocks.y, blocks.z);
    else if (!all || threads.x > 1024 || threads.y > 1024 || threads.z > 64 || all > 1024)
        *error =
            fake_refuse(name, *error, "%s: %u x %u x %u threads", f->name, threads.x, threads.y, threads.z);
#ifdef FAKE_HIP /* it counts work-items */
    else if ((uint64_t)blocks.x * threads.x > UINT32_MAX)
        *error = fake_refuse(name, *error, "%s: %u blocks of %u threads", f->name, blocks.x, threads.x);
#endif
    else if (all > f->most_threads)
        *error = fake_refuse(name, *error, "%s: %lu threads, and its launch bounds are %u", f->name, all,
                             f->most_threads);
    else if (shared_bytes > (unsigned)f->most_shared)
        *error = fake_refuse(name, *error, "%s: %u bytes of dynamic shared memory; static: %u; allowed: %d",
                             f->name, shared_bytes, f->static_shared, f->most_shared);
    else if (!values && function->n_arguments)
        *error = fake_refuse(name, *error, "no arguments");
    else
        *error = 0;
    return *error ? NULL : make(&(fake_launch){function, blocks, threads, shared_bytes, .values = values});
}

fake_launch *fake_launch_copy(const fake_launch *l) { return make(l); }

void fake_launch_free(fake_launch *l) { free(l); }

CUresult fake_launch_run(const fake_launch *l) {
    const bool wished = fake_cuda.fail_launch && --fake_cuda.fail_launch == 0;
    if (wished) return CUDA_ERROR_LAUNCH_FAILED;
    fake_cuda.kernels++;
    if (!l->function) fake_race_operation("a library");
    if (l->work) return l->work(l->data);
    if (l->function->ptx) return fake_ptx_run(l);
    return fake_run_grid(&(fake_grid){&l->function->code, l->blocks, l->threads, l->shared_bytes, l->values})
               ? 0
               : CUDA_ERROR_LAUNCH_TIMEOUT;
}

API cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
    CUresult error;
    ENTER("cuFuncSetAttribute");
    WANT(function, FAKE_FUNCTION);
    if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT && value >= 0 && value <= 100)
        LEAVE(0);
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 ||
        value > FAKE_SHARED_MOST - (int)function->static_shared)
        LEAVE(fake_refuse(function_name, CUDA_ERROR_INVALID_VALUE, "attribute %u = %d", attribute, value));
    function->most_shared = value;
    LEAVE(0);
}

static CUgraphNode add_node(CUgraph graph, fake_launch *l, CUgraph child, const CUgraphNode *after,
                            size_t n_after);

/* Appends the launch to the stream, or to the graph that is captured there. */
static void submit(CUstream stream, fake_launch *l) {
    CUgraph graph = fake_captured(stream);
    if (!graph) {
        fake_submit_launch(stream, l);
    } else {
        CUgraphNode last = graph->count ? graph->nodes[graph->count - 1] : NULL;
        add_node(graph, l, NULL, &last, last != NULL);
    }
}

API cuLaunchKernel(CUfunction function, unsigned blocks_x, unsigned blocks_y, unsigned blocks_z,
                   unsigned threads_x, unsigned threads_y, unsigned threads_z, unsigned shared_bytes,
                   CUstream stream, void **arguments, void **extra) {
    CUresult error;
    ENTER("cuLaunchKernel");
    WANT(stream, FAKE_STREAM);
    if (extra) LEAVE(fake_refuse(function_name, CUDA_ERROR_INVALID_VALUE, "what is not known here"));
    fake_launch *l =
        fake_launch_of(function_name, context, function, (fake_dim){blocks_x, blocks_y, blocks_z},
                       (fake_dim){threads_x, threads_y, threads_z}, shared_bytes, arguments, &error);
    if (l) submit(stream, l);
    fake_cuda.launches += l != NULL;
    LEAVE(error);
}

__attribute__((visibility("default"))) unsigned fake_enqueue(CUstream stream, fake_work work,
                                                             const void *data, unsigned long bytes) {
    CUresult error;
    ENTER("a library's work");
    WANT(stream, FAKE_STREAM);
    submit(stream, make(&(fake_launch){.work = work, .data = (void *)(uintptr_t)data, .bytes = bytes}));
    fake_cuda.calls++;
    LEAVE(0);
}

/* ---- graphs ---- */

/* Nodes as they were when the graph was instantiated: launches, or graphs of them. */
typedef struct fake_graph_run fake_graph_run;
struct fake_graph_run {
    int count;
    fake_launch **launches;
    fake_graph_run **children;
    int **after, *n_after;
};

struct CUgraphExec_st {
    fake_handle handle;
    CUgraph graph; /* the source, for the indices of its nodes */
    fake_graph_run *nodes;
};

static int *copy_numbers(const int *list, int n) {
    int *copy = calloc((size_t)n + 1, sizeof *copy);
    memcpy(copy, list, (size_t)n * sizeof *copy);
    return copy;
}

static fake_graph_run *make_run(int count) {
    const size_t n = (size_t)count + 1;
    fake_graph_run *g = calloc(1, sizeof *g);
    g->count = count;
    g->launches = calloc(n, sizeof *g->launches);
    g->children = calloc(n, sizeof *g->children);
    g->after = calloc(n, sizeof *g->after);
    g->n_after = calloc(n, sizeof *g->n_after);
    return g;
}

static fake_graph_run *run_of_graph(CUgraph graph) {
    fake_graph_run *g = make_run(graph->count);
    for (int i = 0; i < g->count; i++) {
        const struct CUgraphNode_st *node = graph->nodes[i];
        if (node->child)
            g->children[i] = run_of_graph(node->child);
        else
            g->launches[i] = fake_launch_copy(node->launch);
        g->n_after[i] = node->n_after;
        g->after[i] = copy_numbers(node->after, node->n_after);
    }
    return g;
}

static fake_graph_run *copy_run(const fake_graph_run *from) {
    fake_graph_run *g = make_run(from->count);
    for (int i = 0; i < g->count; i++) {
        if (from->children[i])
            g->children[i] = copy_run(from->children[i]);
        else
            g->launches[i] = fake_launch_copy(from->launches[i]);
        g->n_after[i] = from->n_after[i];
        g->after[i] = copy_numbers(from->after[i], from->n_after[i]);
    }
    return g;
}

void fake_graph_run_free(fake_graph_run *g) {
    for (int i = 0; i < g->count; i++) {
        if (g->children[i]) fake_graph_run_free(g->children[i]);
        fake_launch_free(g->launches[i]);
        free(g->after[i]);
    }
    free(g->launches);
    free(g->children);
    free(g->after);
    free(g->n_after);
    free(g);
}

static size_t leaves_of(const fake_graph_run *g) {
    size_t n = 0;
    for (int i = 0; i < g->count; i++) n += g->children[i] ? leaves_of(g->children[i]) : 1;
    return n;
}

/* Of all nodes that are ready, the one that was added last, or another one. */
static int next_node(const fake_graph_run *g, const bool *done) {
    int next = -1;
    for (int i = g->count - 1; i >= 0; i--) {
        bool ready = !done[i];
        for (int k = 0; k < g->n_after[i] && ready; k++) ready = done[g->after[i][k]];
        if (!ready) continue;
        next = i;
        if (!fake_chance(3)) break;
    }
    return next;
}

static void join(uint64_t *to, const uint64_t *from, size_t words) {
    for (size_t i = 0; i < words; i++) to[i] |= from[i];
}

/* Runs the nodes of a graph, or of a node that is a graph. Sets of nodes have so many words. before: those
 * that happen before all of these; known: gets those that have happened at the end. */
static CUresult run_nodes(const fake_graph_run *g, const uint64_t *before, uint64_t *known, size_t words) {
    bool *done = calloc((size_t)g->count + 1, sizeof *done);
    uint64_t *sets = calloc((2 * (size_t)g->count + 1) * words, sizeof *sets);
    CUresult error = 0;
    for (int left = g->count; left > 0 && !error; left--) {
        const int next = next_node(g, done);
        uint64_t *mine = sets + 2 * (size_t)next * words, *then = mine + words;
        join(mine, before, words);
        for (int k = 0; k < g->n_after[next]; k++)
            join(mine, sets + (2 * (size_t)g->after[next][k] + 1) * words, words);
        join(then, mine, words);
        if (g->children[next]) {
            error = run_nodes(g->children[next], mine, then, words);
        } else {
            fake_order_begin_node(mine);
            error = fake_launch_run(g->launches[next]);
            fake_order_end_node(then);
        }
        join(known, then, words);
        done[next] = true;
    }
    free(sets);
    free(done);
    return error;
}

CUresult fake_graph_run_all(fake_graph_run *g) {
    const size_t words = leaves_of(g) / 64 + 1;
    uint64_t *sets = calloc(2 * words, sizeof *sets);
    fake_order_begin_graph();
    const CUresult error = run_nodes(g, sets, sets + words, words);
    fake_order_end_graph();
    free(sets);
    return error;
}

CUgraph fake_graph_new(CUcontext context) {
    return fake_make(context, FAKE_GRAPH, sizeof(struct CUgraph_st));
}

API cuGraphCreate(CUgraph *graph, unsigned flags) {
    CUresult error;
    ENTER("cuGraphCreate");
    (void)flags;
    *graph = fake_graph_new(context);
    LEAVE(0);
}

static void destroy(CUgraph graph) {
    for (int i = 0; i < graph->count; i++) {
        fake_launch_free(graph->nodes[i]->launch);
        if (graph->nodes[i]->child) destroy(graph->nodes[i]->child);
        free(graph->nodes[i]->after);
        graph->nodes[i]->handle.alive = false;
    }
    fake_unmake(graph);
}

API cuGraphDestroy(CUgraph graph) {
    CUresult error;
    ENTER("cuGraphDestroy");
    WANT(graph, FAKE_GRAPH);
    destroy(graph);
    LEAVE(0);
}

static fake_launch *launch_of(const char *name, CUcontext context, const CUDA_KERNEL_NODE_PARAMS_v2 *p,
                              CUresult *error) {
    if (p->extra || p->kern) {
        *error = fake_refuse(name, CUDA_ERROR_INVALID_VALUE, "what is not known here");
        return NULL;
    }
    return fake_launch_of(name, context, p->func, (fake_dim){p->gridDimX, p->gridDimY, p->gridDimZ},
                          (fake_dim){p->blockDimX, p->blockDimY, p->blockDimZ}, p->sharedMemBytes,
                          p->kernelParams, error);
}

static CUgraphNode add_node(CUgraph graph, fake_launch *l, CUgraph child, const CUgraphNode *after,
                            size_t n_after) {
    CUgraphNode n = calloc(1, sizeof *n);
    n->handle = (fake_handle){
        .kind = FAKE_NODE, .alive = true, .context = graph->handle.context, .era = graph->handle.era};
    n->graph = graph;
    n->number = graph->count;
    n->launch = l;
    n->child = child;
    n->after = calloc(n_after + 1, sizeof *n->after);
    n->n_after = (int)n_after;
    for (size_t i = 0; i < n_after; i++) n->after[i] = after[i]->number;
    graph->nodes[graph->count++] = n;
    return n;
}

static CUresult check_after(const char *function_name, CUcontext context, CUgraph graph,
                            const CUgraphNode *after, size_t n_after) {
    if (graph->count == NODES) return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < n_after; i++) {
        if (!fake_alive(function_name, after[i], FAKE_NODE, context)) return CUDA_ERROR_INVALID_HANDLE;
        if (after[i]->graph != graph)
            return fake_refuse(function_name, CUDA_ERROR_INVALID_VALUE, "a node of another graph");
    }
    return 0;
}

API cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t n_after,
                            const CUDA_KERNEL_NODE_PARAMS_v2 *parameters) {
    CUresult error;
    ENTER("cuGraphAddKernelNode");
    WANT(graph, FAKE_GRAPH);
    error = check_after(function_name, context, graph, after, n_after);
    if (error) LEAVE(error);
    fake_launch *l = launch_of(function_name, context, parameters, &error);
    if (l) *node = add_node(graph, l, NULL, after, n_after);
    LEAVE(error);
}

/* A copy. The caller has no handles of its nodes. */
static CUgraph copy_graph(CUgraph from) {
    CUgraph graph = fake_graph_new(from->handle.context);
    for (int i = 0; i < from->count; i++) {
        const struct CUgraphNode_st *n = from->nodes[i];
        CUgraphNode copy = add_node(graph, n->launch ? fake_launch_copy(n->launch) : NULL,
                                    n->child ? copy_graph(n->child) : NULL, NULL, 0);
        free(copy->after);
        copy->after = copy_numbers(n->after, n->n_after);
        copy->n_after = n->n_after;
    }
    return graph;
}

API cuGraphAddChildGraphNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t n_after,
                             CUgraph child) {
    CUresult error;
    ENTER("cuGraphAddChildGraphNode");
    WANT(graph, FAKE_GRAPH);
    WANT(child, FAKE_GRAPH);
    error = check_after(function_name, context, graph, after, n_after);
    if (!error) *node = add_node(graph, NULL, copy_graph(child), after, n_after);
    LEAVE(error);
}

API cuGraphInstantiateWithFlags(CUgraphExec *executable, CUgraph graph, unsigned long long flags) {
    CUresult error;
    ENTER("cuGraphInstantiate");
    WANT(graph, FAKE_GRAPH);
    (void)flags;
    CUgraphExec e = fake_make(context, FAKE_EXECUTABLE, sizeof *e);
    e->graph = graph;
    e->nodes = run_of_graph(graph);
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
    if (node->graph != executable->graph || !node->launch)
        LEAVE(fake_refuse(function_name, CUDA_ERROR_INVALID_VALUE, "a node of another graph"));
    fake_launch **at = &executable->nodes->launches[node->number];
    if (parameters->func != (*at)->function)
        LEAVE(fake_refuse(function_name, CUDA_ERROR_INVALID_VALUE, "another kernel"));
    fake_launch *l = launch_of(function_name, context, parameters, &error);
    if (!l) LEAVE(error);
    fake_launch_free(*at);
    *at = l;
    fake_cuda.updates++;
    LEAVE(0);
}

API cuGraphExecChildGraphNodeSetParams(CUgraphExec executable, CUgraphNode node, CUgraph child) {
    CUresult error;
    ENTER("cuGraphExecChildGraphNodeSetParams");
    WANT(executable, FAKE_EXECUTABLE);
    WANT(node, FAKE_NODE);
    WANT(child, FAKE_GRAPH);
    if (node->graph != executable->graph || !node->child)
        LEAVE(fake_refuse(function_name, CUDA_ERROR_INVALID_VALUE, "a node of another graph"));
    fake_graph_run **at = &executable->nodes->children[node->number];
    if ((*at)->count != child->count)
        LEAVE(fake_refuse(function_name, CUDA_ERROR_INVALID_VALUE, "a graph of another form"));
    fake_graph_run_free(*at);
    *at = run_of_graph(child);
    fake_cuda.updates++;
    LEAVE(0);
}

API cuGraphExecDestroy(CUgraphExec executable) {
    CUresult error;
    ENTER("cuGraphExecDestroy");
    WANT(executable, FAKE_EXECUTABLE);
    fake_graph_run_free(executable->nodes);
    fake_unmake(executable);
    LEAVE(0);
}

API cuGraphLaunch(CUgraphExec executable, CUstream stream) {
    CUresult error;
    ENTER("cuGraphLaunch");
    WANT(executable, FAKE_EXECUTABLE);
    WANT(stream, FAKE_STREAM);
    fake_submit_graph(stream, copy_run(executable->nodes));
    fake_cuda.graph_launches++;
    LEAVE(0);
}
