/* Assignments that a forward pass records, as batch norm does for its running statistics. An assignment gives
 * a variable a new value. The program that computes the result of the pass performs it, once. Until then
 * assignments are queued here in recording order. An assignment is dropped if the scope that it was recorded
 * in closes first.
 * Must not know: modules, programs.
 * Read next: compiler/runtime/walk.c, which finds the assignments that a program has to perform. */
#include "graph/graph.h"

static void forget(weft_context *ctx, size_t i) {
    weft_graph *graph = ctx->graph;
    const weft_assignment gone = graph->assignments[i];
    graph->n_assignments--;
    for (; i < graph->n_assignments; i++) graph->assignments[i] = graph->assignments[i + 1];
    weft__node_let_go(gone.variable);
    weft__node_let_go(gone.value);
    if (gone.result) weft__node_let_go(gone.result);
}

weft_status weft__assignment_add(weft_tensor *variable, weft_tensor *value) {
    weft_context *ctx = variable->ctx;
    weft_graph *graph = ctx->graph;
    if (!weft__grow(ctx, &graph->assignments, &graph->assignments_capacity, graph->n_assignments,
                    sizeof *graph->assignments))
        return weft__fail_oom(ctx, sizeof *graph->assignments, "an assignment");
    weft__node_hold(variable);
    weft__node_use(value);
    graph->assignments[graph->n_assignments++] = (weft_assignment){
        .variable = variable, .value = value, .scope = ctx->scope, .id = ++graph->assignments_made};
    return WEFT_OK;
}

void weft__assignments_belong(weft_context *ctx, uint64_t since, weft_tensor *result) {
    weft_graph *graph = ctx->graph;
    for (size_t i = graph->n_assignments; i-- > 0 && graph->assignments[i].id > since;) {
        weft_assignment *a = &graph->assignments[i];
        if (a->result) continue; /* belongs to a pass within this one */
        if (weft__poisoned(result)) {
            forget(ctx, i);
        } else {
            a->result = result;
            weft__node_use(result);
        }
    }
}

weft_tensor *weft__assignment_of(const weft_tensor *variable) {
    const weft_graph *graph = variable->ctx->graph;
    for (size_t i = graph->n_assignments; i-- > 0;)
        if (graph->assignments[i].variable == variable) return graph->assignments[i].value;
    return NULL;
}

void weft__assignments_forget(weft_context *ctx, const weft_storage *storage) {
    for (size_t i = ctx->graph->n_assignments; i-- > 0;)
        if (ctx->graph->assignments[i].variable->storage == storage) forget(ctx, i);
}

void weft__assignments_close(const weft_scope *scope) {
    for (size_t i = scope->ctx->graph->n_assignments; i-- > 0;)
        if (scope->ctx->graph->assignments[i].scope == scope) forget(scope->ctx, i);
}
