/* Nodes and scopes: making, poisoning, settling and freeing them. Structs are recycled, so that recording a
 * node costs tens of nanoseconds. Inputs and attributes of a node lie in the arena of its scope.
 *
 * A node's inputs outlive it. An input belongs to the same scope (whose nodes are freed newest first), to an
 * outer scope, or to no scope. A node holds its inputs (`holds`) until it is evaluated or freed, so a user
 * may free them before. An evaluated node keeps its recipe, op and inputs, until its scope closes. The recipe
 * keeps the structs of inputs that were freed (`recipes`), but not their values.
 *
 * A freed struct carries an error for whoever still uses it. It is the last in a queue of RESTING structs
 * before it is used again: a handle of a freed tensor is an error until RESTING more tensors were freed.
 *
 * Must not know: what ops compute, devices. Read next: storage.c, then ops/ops.h. */
#include <stdio.h>
#include <string.h>
#include "graph/graph.h"

static const char *const op_names[WEFT_OP_COUNT] = {
#define W_ELEM1(id, name, dtypes, result, expr, grad, doc)                   [WEFT_OP_##id] = #name,
#define W_ELEM2(id, name, dtypes, result, expr, grad_a, grad_b, doc)         [WEFT_OP_##id] = #name,
#define W_ELEM3(id, name, dtypes, result, expr, grad_a, grad_b, grad_c, doc) [WEFT_OP_##id] = #name,
#define W_REDUCE(id, name, dtypes, init, expr, grad, doc)                    [WEFT_OP_##id] = #name,
#define W_NODE(id, name, grad)                                               [WEFT_OP_##id] = #name,
#include "ops/ops.def"
};

const char *weft__op_name(int op) { return op >= 0 && op < WEFT_OP_COUNT ? op_names[op] : "?"; }

/* ---- lists ---- */

static weft_tensor **list_of(weft_tensor *t) { return t->scope ? &t->scope->nodes : &t->ctx->graph->kept; }

static void link_node(weft_tensor *t) {
    weft_tensor **head = list_of(t);
    t->prev = NULL;
    t->next = *head;
    if (*head) (*head)->prev = t;
    *head = t;
    if (t->scope) t->scope->count++;
}

static void unlink_node(weft_tensor *t) {
    if (t->prev)
        t->prev->next = t->next;
    else
        *list_of(t) = t->next;
    if (t->next) t->next->prev = t->prev;
    if (t->scope) t->scope->count--;
}

static bool is_freed(const weft_tensor *t) { return t->ctx && t->error == &t->ctx->graph->freed_error; }

enum { RESTING = 4096 };

/* Puts a freed struct at the end of the queue. */
static void rest(weft_tensor *t) {
    weft_graph *graph = t->ctx->graph;
    t->next = NULL;
    if (graph->free_last)
        graph->free_last->next = t;
    else
        graph->free_nodes = t;
    graph->free_last = t;
    graph->n_free++;
}

/* Takes one hold back. If nothing else needs the node, it joins the dying ones. */
static void let_go(weft_tensor *t) {
    if (--t->holds > 0 || !(t->flags & WEFT_NODE_HELD)) return;
    if (t->scope && !(t->flags & WEFT_NODE_FREED)) { /* its scope is still open: a temporary again */
        t->flags &= (uint8_t) ~(WEFT_NODE_KEPT | WEFT_NODE_HELD);
        return;
    }
    unlink_node(t);
    t->next = t->ctx->graph->dying;
    t->ctx->graph->dying = t;
}

/* Lets go of the inputs, or of what the recipe has kept of them. */
static void drop_inputs(weft_tensor *t) {
    for (int i = 0; i < t->recipe_in; i++)
        if (--t->in[i]->recipes == 0 && is_freed(t->in[i])) rest(t->in[i]);
    for (int i = 0; i < t->n_in && !t->recipe; i++) let_go(t->in[i]);
    t->n_in = t->recipe_in = t->attr_bytes = 0;
    t->in = NULL;
    t->attr = NULL;
    t->recipe = 0;
}

static void release_one(weft_context *ctx, weft_tensor *t) {
    weft_graph *graph = ctx->graph;
    drop_inputs(t);
    if (t->storage) weft__storage_release(ctx, t->storage);
    if (t->error && t->error != &graph->oom_error) weft__free(ctx, t->error);
    t->storage = NULL;
    t->error = &graph->freed_error;
    t->rank = -1;
    t->numel = -1;
    t->flags = t->leaf = 0;
    if (!t->recipes) rest(t);
}

/* Releases the dying nodes. Without recursion, since chains of nodes can be long. */
static void release_dying(weft_context *ctx) {
    for (weft_tensor *t; (t = ctx->graph->dying);) {
        ctx->graph->dying = t->next;
        release_one(ctx, t);
    }
}

/* Releases a node that is in no list. */
static void release_node(weft_context *ctx, weft_tensor *t) {
    release_one(ctx, t);
    release_dying(ctx);
}

/* Returns a copy of `where` that lives as long as the context, since a caller may free or overwrite its own.
 * A small table finds most locations by address; the text must match too, unless the address is that of our
 * copy. */
static const char *location(weft_context *ctx, const char *where) {
    const uint64_t mixed = (uint64_t)(uintptr_t)where * WEFT__GOLDEN;
    weft_location *known = &ctx->graph->locations[mixed >> (64 - WEFT_LOCATION_BITS)];
    if (known->given == where && (known->copy == where || strcmp(known->copy, where) == 0))
        return known->copy;
    const char *copy = weft__intern(ctx, where);
    if (copy) *known = (weft_location){where, copy};
    return copy;
}

static weft_tensor *blank_node(weft_context *ctx, const char *where) {
    weft_graph *graph = ctx->graph;
    if (where && !(where = location(ctx, where))) return NULL;
    weft_tensor *t = graph->n_free > RESTING ? NULL : weft__arena_alloc(&graph->nodes, sizeof *t);
    if (!t) {
        if (!(t = graph->free_nodes)) return NULL;
        graph->free_nodes = t->next;
        if (!t->next) graph->free_last = NULL;
        graph->n_free--;
    }
    memset(t, 0, sizeof *t);
    t->ctx = ctx;
    t->where = where;
    t->path = ctx->path ? ctx->path : "";
    t->stage = ctx->stage;
    t->scope = ctx->scope;
    t->epoch = ctx->epoch;
    t->serial = ++graph->serial;
    t->segment = graph->segment;
    t->segment_kind = graph->segment_kind;
    return t;
}

/* ---- recording ---- */

static void hint_growth(weft_scope *scope) {
    if (scope->parent || scope->hinted || scope->count < 100000) return;
    scope->hinted = true;
    weft__log(scope->ctx, WEFT_LOG_WARNING,
              "100,000 tensors recorded without an open scope: open one around each step (weft_scope_open)");
}

static double larger(double a, double b) { return a > b ? a : b; }

static void join_sources(weft_tensor *t, weft_tensor *const *in, int n_in) {
    double a = 0, b = 0, c = 0, d = 0;
    for (int i = 0; i < n_in; i++) {
        const double *s = in[i]->sources;
        a = larger(s[0], a), b = larger(s[1], b);
        c = larger(s[2], c), d = larger(s[3], d);
    }
    t->sources[0] = a, t->sources[1] = b;
    t->sources[2] = c, t->sources[3] = d;
}

weft_tensor *weft__node(weft_context *ctx, const char *where, weft_op op, weft_dtype dtype, int rank,
                        const int64_t *shape, int n_in, weft_tensor *const *in, size_t attr_bytes,
                        const void *attr) {
    weft_tensor *t = blank_node(ctx, where);
    if (!t) return &ctx->graph->oom;
    size_t input_bytes = (size_t)n_in * sizeof *in;
    char *extra = NULL;
    if ((n_in || attr_bytes) && !(extra = weft__arena_alloc(&ctx->scope->arena, input_bytes + attr_bytes))) {
        release_node(ctx, t);
        return &ctx->graph->oom;
    }
    t->op = (uint8_t)op;
    t->dtype = (uint8_t)dtype;
    t->rank = rank;
    for (int i = 0; i < rank; i++) t->shape[i] = shape[i];
    int64_t bytes; /* Counted only for huge shapes: no dtype has more than 16 bytes. */
    if (!weft__numel(rank, shape, &t->numel) ||
        (t->numel > PTRDIFF_MAX / 16 && !weft__mul(t->numel, (int64_t)weft_dtype_size(dtype), &bytes))) {
        char text[WEFT_SHAPE_TEXT];
        release_node(ctx, t);
        return weft__poison(ctx, where, WEFT_ERR_SHAPE, "%s: the result, %s of %s, has more than 2^63 bytes",
                            op_names[op], weft__shape_text(rank, shape, text), weft_dtype_name(dtype));
    }
    t->n_in = (uint16_t)n_in;
    if (n_in) t->in = memcpy(extra, in, input_bytes);
    t->attr_bytes = (uint16_t)attr_bytes;
    if (attr_bytes) t->attr = memcpy(extra + input_bytes, attr, attr_bytes);
    if (op == WEFT_OP_INPUT) weft__node_is_data(t);
    for (int i = 0; i < n_in; i++) {
        weft__node_use(in[i]);
        if (in[i]->leaf != WEFT_LEAF_STORAGE) t->flags |= in[i]->flags & WEFT_NODE_DRAWN;
    }
    if (n_in && op != WEFT_OP_DETACH) join_sources(t, in, n_in);
    link_node(t);
    hint_growth(ctx->scope);
    return t;
}

/* Returns the thread's poisoned tensor, for errors without a context. The next such error overwrites it. */
static weft_tensor *orphan(void) {
    static _Thread_local weft_tensor poison;
    poison = (weft_tensor){.path = "", .rank = -1, .numel = -1, .error = weft__orphan_error()};
    return &poison;
}

weft_tensor *weft__poison(weft_context *ctx, const char *where, weft_status status, const char *fmt, ...) {
    char text[WEFT_ERROR_SIZE];
    va_list args;
    va_start(args, fmt);
    weft_status said = weft__failv(ctx, status, fmt, args);
    va_end(args);
    (void)said;
    if (!ctx) {
        snprintf(text, sizeof text, "%s", weft_last_error(NULL));
        weft__fail(NULL, status, "%s%s%s", where ? where : "", where ? ": " : "", text);
        return orphan();
    }
    weft_tensor *t = blank_node(ctx, where);
    weft_error *error = t ? weft__zalloc(ctx, sizeof *error) : NULL;
    if (!error) {
        if (t) release_node(ctx, t);
        return &ctx->graph->oom;
    }
    strncpy(text, weft_last_error(ctx), sizeof text - 1);
    text[sizeof text - 1] = 0;
    const char *path = t->path;
    weft__fail(ctx, status, "%s%s%s%s%s", where ? where : "", where ? ": " : "", path, *path ? ": " : "",
               text);
    *error = ctx->error;
    t->error = error;
    t->rank = -1;
    t->numel = -1;
    link_node(t);
    return t;
}

weft_tensor *weft__poison_null(weft_context *ctx, const char *where, const char *function,
                               const char *argument) {
    const weft_status status = weft__fail_null(ctx, function, argument);
    return weft__poison(ctx, where, status, "%s", weft_last_error(ctx));
}

uint32_t weft__segment_begin(weft_context *ctx, weft_segment kind) {
    weft_graph *graph = ctx->graph;
    uint32_t outer = graph->segment;
    if (outer) return outer;
    graph->segment = ++graph->segments;
    graph->segment_kind = (uint8_t)kind;
    return outer;
}

void weft__segment_end(weft_context *ctx, uint32_t outer) {
    ctx->graph->segment = outer;
    if (!outer) ctx->graph->segment_kind = WEFT_SEGMENT_NONE;
}

weft_tensor *weft__reject(const char *op, const char *where, weft_tensor *const *in, int count) {
    weft_context *ctx = NULL;
    for (int i = 0; i < count && !ctx; i++)
        if (in[i]) ctx = in[i]->ctx;
    for (int i = 0; i < count; i++) {
        if (!in[i]) return weft__poison(ctx, where, WEFT_ERR_ARGUMENT, "%s: operand %d is NULL", op, i + 1);
        if (is_freed(in[i]))
            return weft__poison(ctx, where, weft_tensor_status(in[i]), "%s: operand %d: %s", op, i + 1,
                                weft_last_error(in[i]->ctx));
        if (in[i]->error) return in[i];
        if (in[i]->ctx != ctx)
            return weft__poison(ctx, where, WEFT_ERR_ARGUMENT,
                                "%s: operand %d belongs to another context; copy it with weft_to", op, i + 1);
    }
    return NULL;
}

/* ---- evaluated nodes and their recipes ---- */

static uint64_t draws_now(const weft_context *ctx) {
    return weft__mix64(ctx->random.seed) + ctx->random.step;
}

void weft__node_settle(weft_tensor *t, weft_storage *storage) {
    if (!t->recipe) { /* else t is open, and has let go of its inputs before */
        t->recipe = (uint8_t)(t->op + 1);
        t->recipe_in = t->n_in;
        for (int i = 0; i < t->n_in; i++) {
            t->in[i]->recipes++;
            let_go(t->in[i]);
        }
    }
    weft__storage_release(t->ctx, t->storage);
    t->storage = storage;
    t->offset = 0;
    t->draws = draws_now(t->ctx);
    weft__recipe_shut(t);
    release_dying(t->ctx);
}

bool weft__recipe_lives(const weft_tensor *t) {
    return t->leaf && t->recipe && (!(t->flags & WEFT_NODE_DRAWN) || t->draws == draws_now(t->ctx));
}

bool weft__recipe_open(weft_tensor *t) {
    if (!weft__recipe_lives(t)) return false;
    t->op = (uint8_t)(t->recipe - 1);
    t->n_in = t->recipe_in;
    t->leaf = WEFT_LEAF_NONE;
    return true;
}

void weft__recipe_shut(weft_tensor *t) {
    t->op = WEFT_OP_INPUT;
    t->n_in = 0;
    t->leaf = WEFT_LEAF_STORAGE;
}

void weft__recipe_forget(weft_tensor *t) {
    if (t->recipe) drop_inputs(t);
}

void weft__node_is_data(weft_tensor *t) {
    const int of = t->flags & WEFT_NODE_VARIABLE ? 0 : 2;
    weft__recipe_forget(t);
    memset(t->sources, 0, sizeof t->sources);
    t->sources[of] = WEFT_SERIALS - (double)t->serial;
    t->sources[of + 1] = (double)t->serial;
}

bool weft__recipe_lost(const weft_tensor *t) {
    const double own = (double)t->serial;
    return t->leaf && !weft__recipe_lives(t) && t->sources[1] < own && t->sources[3] < own;
}

bool weft__may_depend(const weft_tensor *t, const weft_tensor *on) {
    const bool older = on->leaf == WEFT_LEAF_STORAGE && on->storage && on->storage->write_epoch > t->epoch;
    bool within = on->serial < t->serial && !older; /* else t was made of an older version of it */
    for (int i = 0; i < WEFT_SOURCES; i++) within &= on->sources[i] <= t->sources[i];
    return within;
}

weft_status weft__stale(const weft_tensor *t, const weft_tensor *in) {
    const bool scalar = in->leaf == WEFT_LEAF_SCALAR;
    return weft__fail(t->ctx, WEFT_ERR_STALE,
                      "%s%s%s reads '%s', which was written after this op was recorded; evaluate the op "
                      "before the write (weft_eval), or call weft_keep on it before the step; record "
                      "gradients before the write, too",
                      t->where ? t->where : "", t->where ? ": " : "", weft__op_name(t->op),
                      in->name ? in->name
                      : scalar ? "a scalar"
                               : "data");
}

/* ---- owners ---- */

/* Gives a node that is in no list to its user. Its recipe stays behind: its inputs belong to the scope. */
static void promote(weft_tensor *t) {
    weft__recipe_forget(t);
    t->scope = NULL;
    link_node(t);
}

/* Keeps a tensor beyond its scope. A leaf that is the newest node leaves its scope at once, so that variables
 * do not lengthen the lists of scopes. */
weft_tensor *weft_keep(weft_tensor *t) {
    if (!t || !t->ctx || t == &t->ctx->graph->oom || is_freed(t)) return t;
    t->flags = (uint8_t)((t->flags | WEFT_NODE_KEPT) & ~(WEFT_NODE_HELD | WEFT_NODE_FREED));
    if (t->scope && t->leaf && !t->error && t->serial == t->ctx->graph->serial) {
        unlink_node(t);
        promote(t);
    }
    return t;
}

void weft__node_hold(weft_tensor *t) {
    if (!(t->flags & WEFT_NODE_KEPT)) t->flags |= WEFT_NODE_KEPT | WEFT_NODE_HELD;
    t->holds++;
}

void weft__node_let_go(weft_tensor *t) {
    weft_context *ctx = t->ctx;
    let_go(t);
    release_dying(ctx);
}

void weft_free(weft_tensor *t) {
    if (!t || (t->flags & (WEFT_NODE_KEPT | WEFT_NODE_HELD)) != WEFT_NODE_KEPT) return;
    if (t->holds > 0) { /* the last hold that is taken back frees the node */
        t->flags |= WEFT_NODE_HELD | WEFT_NODE_FREED;
        return;
    }
    weft_context *ctx = t->ctx;
    weft_scope *scope = t->scope;
    unlink_node(t);
    release_node(ctx, t);
    if (scope && !scope->count) weft__arena_reset(&scope->arena); /* a program may never close a scope */
}

/* ---- scopes ---- */

weft_scope *weft_scope_open(weft_context *ctx) {
    WEFT_NEED_OR(NULL, NULL, ctx);
    weft_graph *graph = ctx->graph;
    weft_scope *scope = graph->free_scopes;
    if (scope) {
        graph->free_scopes = scope->parent;
    } else {
        scope = weft__zalloc(ctx, sizeof *scope);
        if (!scope) {
            weft__fail_oom(ctx, sizeof *scope, "a scope");
            return NULL;
        }
        weft__arena_init(&scope->arena, ctx);
    }
    scope->ctx = ctx;
    scope->nodes = NULL;
    scope->count = 0;
    scope->hinted = false;
    scope->parent = ctx->scope;
    ctx->scope = scope;
    return scope;
}

/* Evaluates all kept tensors of a scope in one program. If the program fails, evaluates them one by one, so
 * that a tensor that cannot be computed does not fail the others. Failed tensors carry their error. */
static void evaluate_kept(weft_scope *scope) {
    weft_context *ctx = scope->ctx;
    size_t count = 0;
    for (weft_tensor *t = scope->nodes; t; t = t->next) count += weft__node_pending(t);
    if (!count) return;
    weft_tensor **list = weft__array(ctx, count, sizeof *list);
    if (list) {
        size_t n = 0;
        for (weft_tensor *t = scope->nodes; t; t = t->next)
            if (weft__node_pending(t)) list[n++] = t;
        if (ctx->hooks.eval(ctx, list, count) == WEFT_OK) count = 0;
        weft__free(ctx, list);
    }
    for (weft_tensor *t = scope->nodes; count && t; t = t->next) {
        if (!weft__node_pending(t) || ctx->hooks.eval(ctx, &t, 1) == WEFT_OK) continue;
        weft__log(ctx, WEFT_LOG_ERROR, "closing a scope: %s", weft_last_error(ctx));
        drop_inputs(t);
        release_dying(ctx);
        t->error = weft__zalloc(ctx, sizeof *t->error);
        if (t->error)
            *t->error = ctx->error;
        else
            t->error = &ctx->graph->oom_error;
        t->rank = -1;
        t->numel = -1;
    }
}

static void close_one(weft_scope *scope, bool evaluate) {
    weft_context *ctx = scope->ctx;
    if (evaluate) evaluate_kept(scope);
    weft__assignments_close(scope);
    ctx->scope = scope->parent;
    for (weft_tensor *t; (t = scope->nodes);) { /* t's inputs may be released with it */
        if ((scope->nodes = t->next)) t->next->prev = NULL;
        scope->count--;
        if ((t->flags & WEFT_NODE_KEPT) && (t->leaf || t->error)) {
            promote(t);
        } else {
            release_node(ctx, t);
        }
    }
    weft__arena_reset(&scope->arena);
    scope->parent = ctx->graph->free_scopes;
    ctx->graph->free_scopes = scope;
}

void weft_scope_close(weft_scope *scope) {
    if (!scope) return;
    weft_context *ctx = scope->ctx;
    const weft_scope *open = ctx->scope;
    while (open != scope && open != ctx->root_scope) open = open->parent;
    if (open == ctx->root_scope) {
        weft__fail(ctx, WEFT_ERR_STATE,
                   "weft_scope_close: this scope is not open: it was closed before, or an outer scope was "
                   "closed and closed this one too");
        return;
    }
    while (ctx->scope != scope) close_one(ctx->scope, true);
    close_one(scope, true);
}

/* ---- life of the graph state ---- */

weft_status weft__graph_open(weft_context *ctx) {
    weft_graph *graph = weft__zalloc(ctx, sizeof *graph);
    if (!graph) return weft__fail_oom(ctx, sizeof *graph, "the graph");
    ctx->graph = graph;
    ctx->path = "";
    weft__arena_init(&graph->nodes, ctx);
    graph->oom = (weft_tensor){.ctx = ctx, .path = "", .rank = -1, .numel = -1, .error = &graph->oom_error};
    graph->oom_error.status = WEFT_ERR_OOM;
    strcpy(graph->oom_error.text, "out of memory while recording an operation: close scopes or free tensors");
    graph->freed_error.status = WEFT_ERR_STATE;
    strcpy(graph->freed_error.text,
           "this tensor was freed, with its scope or by weft_free; call weft_keep on a tensor that must "
           "outlive its scope, and free it after its last use");
    ctx->root_scope = weft_scope_open(ctx);
    return ctx->root_scope ? WEFT_OK : WEFT_ERR_OOM;
}

void weft__graph_close(weft_context *ctx) {
    weft_graph *graph = ctx->graph;
    if (!graph) return;
    while (ctx->scope) close_one(ctx->scope, false);
    while (graph->kept) {
        weft_tensor *t = graph->kept;
        unlink_node(t);
        release_node(ctx, t);
    }
    while (graph->free_scopes) {
        weft_scope *scope = graph->free_scopes;
        graph->free_scopes = scope->parent;
        weft__arena_free(&scope->arena);
        weft__free(ctx, scope);
    }
    weft__arena_free(&graph->nodes);
    weft__free(ctx, graph->draws);
    weft__free(ctx, graph->assignments);
    weft__free(ctx, graph);
    ctx->graph = NULL;
    ctx->root_scope = NULL;
}

/* ---- asking ---- */

int weft_rank(const weft_tensor *t) { return t && !t->error ? t->rank : -1; }

int64_t weft_dim(const weft_tensor *t, int dim) {
    int axis;
    return t && weft__axis(dim, weft_rank(t), &axis) ? t->shape[axis] : -1;
}

int64_t weft_numel(const weft_tensor *t) { return t && !t->error ? t->numel : -1; }
const int64_t *weft_shape(const weft_tensor *t) { return t ? t->shape : NULL; }
weft_dtype weft_dtype_of(const weft_tensor *t) { return t ? (weft_dtype)t->dtype : WEFT_F32; }
weft_context *weft_context_of(const weft_tensor *t) { return t ? t->ctx : NULL; }

weft_status weft_tensor_status(const weft_tensor *t) {
    WEFT_NEED(NULL, t);
    if (!t->error) return WEFT_OK;
    const char *where = is_freed(t) ? t->where : NULL; /* other errors contain the location already */
    return weft__fail(t->ctx, t->error->status, "%s%s%s", where ? where : "", where ? ": " : "",
                      t->error->text);
}
