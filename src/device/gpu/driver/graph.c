/* Programs as CUDA graphs. Each launch is a node, and edges give the order that the plan requires. A stretch
 * of launches has one graph for each of the last few sets of buffers that it ran with. For another set, the
 * least recently used graph gets new arguments. Must not know: what launches compute. Read next: run.c.
 */
#include <string.h>

#include "device/gpu/driver/run.h"

static CUDA_KERNEL_NODE_PARAMS_v2 parameters(const weft_gpu_launch *l) {
    return (CUDA_KERNEL_NODE_PARAMS_v2){.func = l->kernel,
                                        .gridDimX = (unsigned)l->groups[0],
                                        .gridDimY = (unsigned)l->groups[1],
                                        .gridDimZ = (unsigned)l->groups[2],
                                        .blockDimX = (unsigned)l->items[0],
                                        .blockDimY = (unsigned)l->items[1],
                                        .blockDimZ = (unsigned)l->items[2],
                                        .sharedMemBytes = (unsigned)l->shared_bytes,
                                        .kernelParams = l->arguments};
}

/* Captures the submissions of a library call as a graph. The caller destroys it. */
static CUresult capture(weft__cuda *d, const weft_gpu_launch *l, CUgraph *graph) {
    CUgraph captured = NULL;
    CUresult error = d->cu->cuStreamBeginCapture_v2(d->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    if (error) return error;
    error = weft__cuda_call(d, l, d->stream);
    const CUresult ended = d->cu->cuStreamEndCapture(d->stream, &captured);
    if (!error) error = ended;
    if (error && captured) d->cu->cuGraphDestroy(captured);
    *graph = captured;
    return error;
}

static CUresult make_node(weft__cuda *d, CUgraph graph, const weft_gpu_launch *l, const CUgraphNode *after,
                          size_t n_after, CUgraphNode *node) {
    CUgraph child;
    if (!l->call) {
        const CUDA_KERNEL_NODE_PARAMS_v2 p = parameters(l);
        return d->cu->cuGraphAddKernelNode_v2(node, graph, after, n_after, &p);
    }
    CUresult error = capture(d, l, &child);
    if (error) return error;
    error = d->cu->cuGraphAddChildGraphNode(node, graph, after, n_after, child);
    d->cu->cuGraphDestroy(child);
    return error;
}

/* Gives a node of a graph the launch's current arguments. */
static CUresult change_node(weft__cuda *d, CUgraphExec graph, CUgraphNode node, const weft_gpu_launch *l) {
    CUgraph child;
    if (!l->call) {
        const CUDA_KERNEL_NODE_PARAMS_v2 p = parameters(l);
        return d->cu->cuGraphExecKernelNodeSetParams_v2(graph, node, &p);
    }
    CUresult error = capture(d, l, &child);
    if (error) return error;
    error = d->cu->cuGraphExecChildGraphNodeSetParams(graph, node, child);
    d->cu->cuGraphDestroy(child);
    return error;
}

/* ---- order ---- */

/* The order of nodes. A command is a line of nodes. Commands between two that wait are concurrent.
 *
 *     before              now
 *     --- A ---+----> B --- B' ---
 *              +----> C ----------
 *              +----> D --- D' --- */
typedef struct order {
    /* last nodes of the lines: those that all of this part wait for, and those of this part */
    CUgraphNode *before, *now;
    size_t n_before, n_now;
    /* the last node of this part that used the device's scratch memory */
    CUgraphNode scratch;
} order;

static CUresult add_node(weft__cuda *d, order *o, CUgraph graph, const weft_gpu_launch *l,
                         CUgraphNode *node) {
    if (l->after && o->n_now) {
        CUgraphNode *spare = o->before;
        o->before = o->now;
        o->n_before = o->n_now;
        o->now = spare;
        o->n_now = 0;
        o->scratch = NULL;
    }
    const CUgraphNode *after = o->before;
    size_t n_after = o->n_before;
    CUgraphNode ends[2]; /* they have waited for the others already */
    if (l->follows || (l->scratch && o->scratch)) {
        n_after = 0;
        if (l->follows) ends[n_after++] = o->now[o->n_now - 1];
        if (l->scratch && o->scratch && (!n_after || ends[0] != o->scratch)) ends[n_after++] = o->scratch;
        after = ends;
    }
    const CUresult error = make_node(d, graph, l, n_after ? after : NULL, n_after, node);
    if (error) return error;
    o->n_now += !l->follows;
    o->now[o->n_now - 1] = *node;
    if (l->scratch || (l->follows && o->scratch == node[-1])) o->scratch = *node;
    return 0;
}

static CUresult add_nodes(weft__cuda *d, const cuda_executable *e, cuda_stretch *s) {
    const size_t n = (size_t)s->count + 1;
    CUgraphNode *ends = weft__array(d->gpu.base.ctx, 2 * n, sizeof *ends);
    order o = {.before = ends, .now = ends + n};
    CUresult error = ends ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
    for (int i = 0; i < s->count && !error; i++)
        error = add_node(d, &o, s->graph, &e->gpu.launches[s->first + i], &s->nodes[i]);
    weft__free(d->gpu.base.ctx, ends);
    return error;
}

/* ---- making ---- */

static size_t bound_bytes(const cuda_executable *e) {
    return (size_t)weft__gpu_slots(&e->gpu) * sizeof *e->gpu.bound;
}

static uint64_t *copy_bound(weft__cuda *d, const cuda_executable *e) {
    uint64_t *copy = weft__alloc(d->gpu.base.ctx, bound_bytes(e));
    if (copy) memcpy(copy, e->gpu.bound, bound_bytes(e));
    return copy;
}

static void free_stretch(weft__cuda *d, cuda_stretch *s) {
    for (int i = 0; i < s->n_graphs; i++) {
        d->cu->cuGraphExecDestroy(s->graphs[i].executable);
        weft__free(d->gpu.base.ctx, s->graphs[i].bound);
    }
    if (s->graph) d->cu->cuGraphDestroy(s->graph);
    weft__free(d->gpu.base.ctx, s->nodes);
    weft__free(d->gpu.base.ctx, s->graph_bound);
    *s = (cuda_stretch){.first = s->first, .count = s->count};
}

static CUresult make_template(weft__cuda *d, const cuda_executable *e, cuda_stretch *s) {
    s->nodes = weft__array(d->gpu.base.ctx, (size_t)s->count + 1, sizeof *s->nodes);
    s->graph_bound = copy_bound(d, e);
    CUresult error =
        s->nodes && s->graph_bound ? d->cu->cuGraphCreate(&s->graph, 0) : CUDA_ERROR_OUT_OF_MEMORY;
    if (!error) error = add_nodes(d, e, s);
    if (!error) return 0;
    free_stretch(d, s);
    return error;
}

/* Gives the graph the buffers that are bound now. */
static CUresult rebind(weft__cuda *d, const cuda_executable *e, const cuda_stretch *s, cuda_graph *g) {
    CUresult error = 0;
    int last = -1;
    for (int i = 0; i < e->gpu.n_places && !error; i++) {
        const weft_gpu_place *place = &e->gpu.places[i];
        const int node = place->launch - s->first;
        if (node < 0 || node >= s->count || g->bound[place->slot] == e->gpu.bound[place->slot] ||
            node == last)
            continue;
        error = change_node(d, g->executable, s->nodes[node], &e->gpu.launches[place->launch]);
        last = node;
    }
    for (int b = 0; b < weft__gpu_slots(&e->gpu); b++)
        g->bound[b] = error ? 0 : e->gpu.bound[b]; /* a partly changed graph is bound to nothing */
    return error;
}

static CUresult add_graph(weft__cuda *d, const cuda_executable *e, cuda_stretch *s) {
    cuda_graph *g = &s->graphs[s->n_graphs];
    uint64_t *bound = copy_bound(d, e);
    CUresult error =
        bound ? d->cu->cuGraphInstantiateWithFlags(&g->executable, s->graph, 0) : CUDA_ERROR_OUT_OF_MEMORY;
    if (error) {
        weft__free(d->gpu.base.ctx, bound);
        return error;
    }
    memcpy(bound, s->graph_bound, bound_bytes(e));
    g->bound = bound;
    s->n_graphs++;
    return 0;
}

CUresult weft__cuda_graph(weft__cuda *d, const cuda_executable *e, cuda_stretch *s, cuda_graph **graph) {
    cuda_graph *g = NULL;
    CUresult error = 0;
    for (int i = 0; i < s->n_graphs && !g; i++)
        if (memcmp(s->graphs[i].bound, e->gpu.bound, bound_bytes(e)) == 0) g = &s->graphs[i];
    if (!g) {
        if (!s->graph) error = make_template(d, e, s);
        if (!error && s->n_graphs < CUDA_GRAPHS) {
            error = add_graph(d, e, s);
            g = &s->graphs[s->n_graphs - 1];
        } else if (!error) {
            g = &s->graphs[0];
            for (int i = 1; i < s->n_graphs; i++)
                if (s->graphs[i].used < g->used) g = &s->graphs[i];
        }
        if (!error) error = rebind(d, e, s, g);
        if (error) return error;
    }
    g->used = e->done;
    *graph = g;
    return 0;
}

CUresult weft__cuda_find_stretches(weft__cuda *d, cuda_executable *e) {
    const int n = e->gpu.n_launches;
    e->stretches = weft__array(d->gpu.base.ctx, (size_t)n + 1, sizeof *e->stretches);
    if (!e->stretches) return CUDA_ERROR_OUT_OF_MEMORY;
    for (int l = 0; l < n; l++) {
        if (e->gpu.launches[l].beside) continue;
        if (l == 0 || e->gpu.launches[l - 1].beside) e->stretches[e->n_stretches++].first = l;
        e->stretches[e->n_stretches - 1].count++;
    }
    return 0;
}

void weft__cuda_graphs_free(weft__cuda *d, cuda_executable *e) {
    for (int i = 0; i < e->n_stretches; i++) free_stretch(d, &e->stretches[i]);
    weft__free(d->gpu.base.ctx, e->stretches);
    e->stretches = NULL;
    e->n_stretches = 0;
}
