/* Recognises a graph. One walk over its nodes computes the program's key and lists the leaves. The key is a
 * hash of op, dtype, shape, inputs by number, and attributes of all nodes in visiting order. So equal keys
 * mean equal structure. The values of leaves are not part of the key. Besides recording, this walk is all
 * that a step of an ordinary loop costs on the host. Must not know: how a program is compiled. Read next:
 * cache.c, eval.c. */
#include "compiler/program.h"

static weft_status push(weft_context *ctx, weft_compiler *compiler, size_t *depth, weft_tensor *t) {
    if (!weft__grow(ctx, &compiler->stack, &compiler->stack_capacity, *depth, sizeof *compiler->stack))
        return weft__fail_oom(ctx, (*depth + 1) * sizeof *compiler->stack, "the walk over a graph");
    compiler->stack[*depth].t = t;
    compiler->stack[(*depth)++].next = 0;
    return WEFT_OK;
}

static weft_status add_leaf(weft_context *ctx, weft_walk *walk, weft_tensor *t) {
    if (!weft__grow(ctx, &walk->leaves, &walk->capacity, walk->n_leaves, sizeof *walk->leaves))
        return weft__fail_oom(ctx, (walk->n_leaves + 1) * sizeof *walk->leaves, "the leaves of a graph");
    walk->leaves[walk->n_leaves++] = t;
    return WEFT_OK;
}

/* Numbers a node whose inputs have their numbers, and adds it to the key. Fails if an input was written after
 * the node was recorded. */
static weft_status number_node(weft_context *ctx, weft_walk *walk, weft_tensor *t, uint64_t mark,
                               int *storages) {
    weft_hash *h = &walk->key;
    t->number = (int)walk->nodes++;
    weft__hash_u64(h, (uint64_t)t->op | (uint64_t)t->dtype << 8 | (uint64_t)t->leaf << 16 |
                          (uint64_t)t->rank << 24 | (uint64_t)t->n_in << 32 | (uint64_t)t->recomputed << 48);
    if (t->segment) { /* equal graphs of two steps differ in all segment numbers, but not in distances */
        if (!walk->first_segment) walk->first_segment = t->segment;
        weft__hash_u64(h, (uint64_t)t->segment_kind << 32 | (t->segment - walk->first_segment));
    }
    for (int i = 0; i < t->rank; i++) weft__hash_u64(h, (uint64_t)t->shape[i]);
    if (t->leaf) {
        if (t->leaf == WEFT_LEAF_STORAGE) {
            weft_storage *storage = t->storage;
            if (storage->mark != mark) {
                storage->mark = mark;
                storage->number = (*storages)++;
            }
            weft__hash_u64(h, (uint64_t)storage->number);
            weft__hash_u64(h, (uint64_t)t->offset);
            if (storage->divided) weft__hash_u64(h, storage->divided->identity);
        }
        walk->n_made += t->sources[1] > 0 && !(t->flags & WEFT_NODE_VARIABLE);
        return add_leaf(ctx, walk, t);
    }
    WEFT_TRY(weft__check_fresh(t));
    for (int i = 0; i < t->n_in; i++) weft__hash_u64(h, (uint64_t)t->in[i]->number);
    if (t->op == WEFT_OP_CONST) {
        if (!walk->constant) walk->constant = t->where ? t->where : "?";
        const weft_attr_const *attr = t->attr;
        weft__hash_bytes(h, attr, sizeof *attr);
    } else {
        walk->loose.a = weft__mix64(walk->loose.a ^ ((uint64_t)t->op << 32 | (uint64_t)t->numel));
        if (t->attr_bytes) weft__hash_bytes(h, t->attr, t->attr_bytes);
    }
    return WEFT_OK;
}

/* Numbers all nodes that the root needs, inputs first. Uses the compiler's stack, since graphs can be
 * deep. */
static weft_status walk_from(weft_context *ctx, weft_compiler *compiler, weft_tensor *root, uint64_t mark,
                             int *storages) {
    size_t depth = 0;
    if (root->mark == mark) return WEFT_OK;
    WEFT_TRY(weft_tensor_status(root));
    root->mark = mark;
    WEFT_TRY(push(ctx, compiler, &depth, root));
    while (depth) {
        weft_tensor *t = compiler->stack[depth - 1].t;
        int next = compiler->stack[depth - 1].next++;
        if (next == t->n_in) {
            depth--;
            WEFT_TRY(number_node(ctx, &compiler->walk, t, mark, storages));
            continue;
        }
        weft_tensor *in = t->in[next];
        if (in->mark == mark) continue;
        WEFT_TRY(weft_tensor_status(in));
        in->mark = mark;
        WEFT_TRY(push(ctx, compiler, &depth, in));
    }
    return WEFT_OK;
}

static bool assigns(const ir_sink *sinks, size_t n_sinks, const weft_tensor *variable) {
    for (size_t i = 0; i < n_sinks; i++)
        if (sinks[i].variable == variable) return true;
    return false;
}

/* The newest value that is queued for the variable of assignment i. Marks all queued values of this variable:
 * the program does them together. */
static weft_tensor *newest(weft_graph *graph, size_t i, uint64_t mark) {
    const weft_tensor *variable = graph->assignments[i].variable;
    weft_tensor *value = NULL;
    for (size_t k = 0; k < graph->n_assignments; k++) {
        weft_assignment *a = &graph->assignments[k];
        if (a->variable != variable) continue;
        a->mark = mark;
        value = a->value;
    }
    return value;
}

static weft_status add_due(weft_context *ctx, weft_walk *walk, weft_tensor *variable, weft_tensor *value) {
    if (!weft__grow(ctx, &walk->due, &walk->due_capacity, walk->n_due, sizeof *walk->due))
        return weft__fail_oom(ctx, (walk->n_due + 1) * sizeof *walk->due, "assignments");
    walk->due[walk->n_due++] = (ir_sink){.variable = variable, .value = value};
    return WEFT_OK;
}

/* Adds the assignments of the forward passes whose results the walk has visited. Their values may belong to
 * further passes, so the search starts again after each. */
static weft_status walk_due(weft_context *ctx, weft_compiler *compiler, const ir_sink *sinks, size_t n_sinks,
                            uint64_t mark, int *storages) {
    weft_graph *graph = ctx->graph;
    weft_walk *walk = &compiler->walk;
    for (size_t i = 0; i < graph->n_assignments; i++) {
        const weft_assignment *a = &graph->assignments[i];
        weft_tensor *variable = a->variable;
        if (a->mark == mark || !a->result || a->result->mark != mark) continue;
        weft_tensor *value = newest(graph, i, mark);
        if (assigns(sinks, n_sinks, variable)) continue;
        WEFT_TRY(walk_from(ctx, compiler, value, mark, storages));
        WEFT_TRY(walk_from(ctx, compiler, variable, mark, storages));
        WEFT_TRY(add_due(ctx, walk, variable, value));
        weft__hash_u64(&walk->key, (uint64_t)value->number << 32 | (uint64_t)variable->number);
        i = (size_t)-1; /* start again at the first assignment */
    }
    return WEFT_OK;
}

weft_status weft__walk(weft_context *ctx, weft_tensor *const *roots, size_t n_roots, const ir_sink *sinks,
                       size_t n_sinks, const weft_hash *extra, weft_walk **out) {
    weft_compiler *compiler = ctx->compiler;
    weft_walk *walk = &compiler->walk;
    uint64_t mark = ++ctx->visit;
    int storages = 0;
    weft__hash_init(&walk->key);
    walk->loose = walk->key;
    walk->n_leaves = walk->nodes = walk->n_due = walk->n_made = 0;
    walk->constant = NULL;
    walk->first_segment = 0;
    weft__hash_u64(&walk->key, (uint64_t)n_roots << 32 | (uint64_t)n_sinks << 1 | (uint64_t)compiler->fuse);
    if (extra) {
        weft__hash_u64(&walk->key, extra->a);
        weft__hash_u64(&walk->key, extra->b);
    }
    for (size_t i = 0; i < n_roots; i++) {
        WEFT_TRY(walk_from(ctx, compiler, roots[i], mark, &storages));
        weft__hash_u64(&walk->key, (uint64_t)roots[i]->number);
    }
    for (size_t i = 0; i < n_sinks; i++) {
        WEFT_TRY(walk_from(ctx, compiler, sinks[i].value, mark, &storages));
        WEFT_TRY(walk_from(ctx, compiler, sinks[i].variable, mark, &storages));
        weft__hash_u64(&walk->key,
                       (uint64_t)sinks[i].value->number << 32 | (uint64_t)sinks[i].variable->number);
    }
    WEFT_TRY(walk_due(ctx, compiler, sinks, n_sinks, mark, &storages));
    *out = walk;
    return WEFT_OK;
}
