/* The driver of reverse mode. It sorts the graph between outputs and variables, walks it backwards, and adds
 * up the gradients that flow into each node. Nodes of checkpoint regions are recorded again when their
 * gradients need them. Broadcasts become sums, so no two gradients are ever added to one element at
 * the same time.
 * Must not know: gradients of single ops. Read next: rules.c. */
#include <weft/profile.h>
#include "autodiff/autodiff.h"

typedef struct walk {
    weft_context *ctx;
    weft_tensor **order; /* inputs before their readers */
    weft_tensor **flow;  /* gradient of order[i] so far */
    bool *needed;        /* whether order[i] leads to a wrt */
    bool all;            /* also walks through integers and bools: see is_followed */
    size_t count, capacity;
    uint64_t mark;
    uint64_t stamp; /* stamp of this gradient: tells its own recomputed copies from older ones */
} walk;

typedef struct frame {
    weft_tensor *node;
    int next;
} frame;

static weft_status push_order(walk *w, weft_tensor *t) {
    if (!weft__grow(w->ctx, &w->order, &w->capacity, w->count, sizeof *w->order))
        return weft__fail_oom(w->ctx, (w->count + 1) * sizeof *w->order, "the order of a gradient");
    t->number = (int)w->count;
    w->order[w->count++] = t;
    return WEFT_OK;
}

/* The op that made t, also if t is evaluated. */
static weft_op op_of(const weft_tensor *t) { return (weft_op)(t->recipe ? t->recipe - 1 : t->op); }

/* The inputs that gradients flow to. An OUTPUT passes them on to the inputs of its composite. */
static int flow_inputs(weft_tensor *t, weft_tensor *const **in) {
    if (t->leaf && !weft__recipe_lives(t)) return 0;
    if (op_of(t) == WEFT_OP_OUTPUT) t = t->in[0];
    *in = t->in;
    return t->leaf ? t->recipe_in : t->n_in;
}

/* Whether the walk goes from a node to its input k. It goes through floats. With `all` it goes through all
 * dtypes, but not through a detach, and not to conditions and indices, which only choose among floats. */
static bool is_followed(const walk *w, const weft_tensor *node, int k, const weft_tensor *input) {
    if (!w->all) return weft__has_gradient(input);
    if (op_of(node) == WEFT_OP_DETACH) return false;
    if (!weft__has_gradient(node)) return true;
    switch (op_of(node)) {
    case WEFT_OP_WHERE:
    case WEFT_OP_SCATTER_ADD: return k != 0;
    case WEFT_OP_GATHER: return k != 1;
    case WEFT_OP_UPDATE: return k != 2;
    default: return true;
    }
}

/* Depth-first walk without recursion. Numbers the nodes. */
static weft_status visit(walk *w, weft_tensor *root, uint64_t mark) {
    frame *stack = NULL;
    size_t depth = 0, capacity = 0;
    weft_status status = WEFT_OK;
    if (root->mark == mark) return WEFT_OK;
    root->mark = mark;
    if (!weft__grow(w->ctx, &stack, &capacity, depth, sizeof *stack))
        return weft__fail_oom(w->ctx, sizeof *stack, "a walk");
    stack[depth++] = (frame){root, 0};
    while (depth && status == WEFT_OK) {
        frame *top = &stack[depth - 1];
        weft_tensor *const *in;
        if (top->next == flow_inputs(top->node, &in)) {
            status = push_order(w, top->node);
            depth--;
            continue;
        }
        int k = top->next++;
        weft_tensor *next = in[k];
        if (next->mark == mark || !is_followed(w, top->node, k, next)) continue;
        next->mark = mark;
        if (!weft__grow(w->ctx, &stack, &capacity, depth, sizeof *stack))
            status = weft__fail_oom(w->ctx, (depth + 1) * sizeof *stack, "a walk");
        else
            stack[depth++] = (frame){next, 0};
    }
    weft__free(w->ctx, stack);
    return status;
}

static weft_tensor *sum_flow(const char *where, weft_tensor *so_far, weft_tensor *more) {
    return so_far ? at_add(so_far, more) : more;
}

/* Numbers the nodes again. A rule that differentiated an expansion has walked over some of them. */
static void renumber(walk *w) {
    w->mark = ++w->ctx->visit;
    for (size_t i = 0; i < w->count; i++) {
        w->order[i]->mark = w->mark;
        w->order[i]->number = (int)i;
    }
}

/* ---- recomputed copies ---- */

static bool is_movement(const weft_tensor *t) {
    switch ((weft_op)t->op) {
    case WEFT_OP_RESHAPE:
    case WEFT_OP_PERMUTE:
    case WEFT_OP_EXPAND:
    case WEFT_OP_PAD:
    case WEFT_OP_SLICE: return true;
    default: return false;
    }
}

static bool is_reduction(const weft_tensor *t) {
    return t->op == WEFT_OP_SUM || t->op == WEFT_OP_MAX || t->op == WEFT_OP_MIN || t->op == WEFT_OP_PROD;
}

static bool is_constant(const weft_tensor *t) {
    while (is_movement(t)) t = t->in[0];
    return t->op == WEFT_OP_CONST;
}

/* Whether a node of a CHEAP segment is kept: the results of reductions, and nodes computed only from them.
 * Both have one value a row. */
static bool is_kept(const weft_tensor *t) {
    if (is_reduction(t)) return true;
    if (t->op == WEFT_OP_EXPAND || t->leaf) return false;
    bool any = false;
    for (int i = 0; i < t->n_in; i++) {
        const weft_tensor *in = t->in[i];
        if (in->segment != t->segment || is_constant(in)) continue;
        if (!is_kept(in)) return false;
        any = true;
    }
    return any;
}

/* Whether t, seen through movement, is a node that is recomputed. */
static bool moves_recomputed(const weft_tensor *t) {
    while (is_movement(t) && !t->segment) t = t->in[0];
    return !t->leaf && !t->recomputed && weft__segment_recomputed(t) &&
           (t->segment_kind == WEFT_SEGMENT_BLOCK || !is_kept(t));
}

/* Whether a rule reads a recomputed copy of the node. */
static bool is_recomputed(const weft_tensor *t) {
    if (t->leaf || t->recomputed) return false;
    if (weft__segment_recomputed(t)) return t->segment_kind != WEFT_SEGMENT_CHEAP || !is_kept(t);
    return is_movement(t) && moves_recomputed(t);
}

/* Whether input i of a recomputed node is recomputed too: if it belongs to the same segment, or is only
 * movement. */
static bool is_input_recomputed(const weft_tensor *t, int i) {
    return (!weft__segment_recomputed(t) || t->in[i]->segment == t->segment) && is_recomputed(t->in[i]);
}

/* Records the copy of t. Its inputs have their copies already. Poisoned if memory runs out. */
static weft_tensor *record_copy(const walk *w, weft_tensor *t) {
    weft_context *ctx = w->ctx;
    weft_tensor **in = weft__array(ctx, (size_t)t->n_in + 1, sizeof *in);
    if (!in) return &ctx->graph->oom;
    for (int i = 0; i < t->n_in; i++)
        in[i] = t->in[i]->recomputed_mark == w->stamp && is_input_recomputed(t, i) ? t->in[i]->recomputed_copy
                                                                                   : t->in[i];
    weft_tensor *copy = weft__node(ctx, t->where, (weft_op)t->op, (weft_dtype)t->dtype, t->rank, t->shape,
                                   t->n_in, in, t->attr_bytes, t->attr);
    weft__free(ctx, in);
    if (copy->error) return copy;
    copy->path = t->path;
    copy->recomputed = true;
    t->recomputed_copy = copy;
    t->recomputed_mark = w->stamp;
    return copy;
}

/* Returns the recomputed copy of a node of a segment: the same op on recomputed inputs. Other nodes are
 * returned as they are. Copies are recorded when the backward pass first needs the segment, so they are also
 * computed then. Inputs come first, without recursion. */
static weft_tensor *recompute(const walk *w, weft_tensor *t) {
    if (!is_recomputed(t)) return t;
    if (t->recomputed_mark == w->stamp) return t->recomputed_copy;
    frame *stack = NULL;
    size_t depth = 0, capacity = 0;
    weft_tensor *copy = NULL, *next = t;
    while (next || depth) {
        if (next) {
            if (!weft__grow(w->ctx, &stack, &capacity, depth, sizeof *stack)) {
                copy = &w->ctx->graph->oom;
                break;
            }
            stack[depth++] = (frame){next, 0};
            next = NULL;
        }
        frame *top = &stack[depth - 1];
        if (top->next < top->node->n_in) {
            const int i = top->next++;
            weft_tensor *in = top->node->in[i];
            if (in->recomputed_mark != w->stamp && is_input_recomputed(top->node, i)) next = in;
            continue;
        }
        copy = record_copy(w, top->node);
        if (copy->error) break;
        depth--;
    }
    weft__free(w->ctx, stack);
    return copy;
}

/* Applies the rule of a node, whose inputs from CHEAP segments are replaced by recomputed copies meanwhile.
 * Chunks are an exception. All chunks read one value, and its recomputed copy would join the kernel of its
 * gradient. That gradient needs all chunks, so each chunk would have to wait. */
static weft_status apply_rule(const walk *w, weft_tensor *node, weft_tensor *flow, weft_tensor **grads) {
    weft_tensor *reads = node->op == WEFT_OP_OUTPUT ? node->in[0] : node, *kept[64];
    const int n = reads->segment_kind == WEFT_SEGMENT_CHUNK ? 0 : reads->n_in < 64 ? reads->n_in : 64;
    weft_status status = WEFT_OK;
    for (int i = 0; i < n; i++) kept[i] = reads->in[i];
    for (int i = 0; i < n && status == WEFT_OK; i++) {
        const weft_tensor *from = kept[i];
        while (is_movement(from) && !from->segment) from = from->in[0];
        if (from->segment_kind != WEFT_SEGMENT_CHEAP || from->segment == reads->segment) continue;
        weft_tensor *copy = recompute(w, kept[i]);
        status = weft_tensor_status(copy);
        if (status == WEFT_OK) reads->in[i] = copy;
    }
    if (status == WEFT_OK) status = weft__gradient_rule(node, flow, grads);
    for (int i = 0; i < n; i++) reads->in[i] = kept[i];
    return status;
}

/* Fails if a gradient flows to a node whose recipe is gone, and one of wrt may lie behind it. A number would
 * be zero, or a part. */
static weft_status refuse_lost_recipe(const weft_tensor *t, weft_tensor *const *wrt, size_t n_wrt) {
    size_t i = 0;
    while (i < n_wrt && !weft__may_depend(t, wrt[i])) i++;
    if (i == n_wrt) return WEFT_OK;
    const char *name = wrt[i]->name ? wrt[i]->name : wrt[i]->where;
    return weft__fail(t->ctx, WEFT_ERR_STATE,
                      "%s: this tensor was evaluated, and Weft no longer knows how it was computed%s%s%s: "
                      "take the gradient before its scope closes and before new random numbers are drawn, "
                      "record the tensor again, or use weft_detach on it if it is meant as a constant",
                      t->where ? t->where : "gradient", name ? ", perhaps from '" : "", name ? name : "",
                      name ? "'" : "");
}

/* ---- one step of the walk ---- */

/* Whether a gradient by t is needed: t leads to a wrt. */
static bool wants(const walk *w, const weft_tensor *t) {
    return t->mark == w->mark && weft__has_gradient(t) && w->needed[t->number];
}

/* Applies the rule of order[i] and adds the results to the gradients of its inputs. grads has room for all of
 * them. */
static weft_status step_back(walk *w, size_t i, weft_tensor **grads) {
    const uint64_t mark = w->mark;
    weft_tensor *node = w->order[i];
    weft_tensor *const *in;
    int n = flow_inputs(node, &in);
    bool any = false;
    for (int k = 0; k < n; k++) any |= wants(w, in[k]);
    if (!any) return WEFT_OK;
    w->ctx->path = node->path;
    const bool chunk = node->segment_kind == WEFT_SEGMENT_CHUNK;
    w->ctx->graph->segment = chunk ? node->segment : 0;
    w->ctx->graph->segment_kind = chunk ? WEFT_SEGMENT_CHUNK : WEFT_SEGMENT_NONE;
    weft_tensor *values = weft__segment_recomputed(node) ? recompute(w, node) : node;
    WEFT_TRY(weft_tensor_status(values));
    const bool opened = weft__recipe_open(node); /* the rule reads op and inputs */
    w->ctx->graph->wanted = 0;
    for (int k = 0; k < n && k < 32; k++)
        if (wants(w, in[k])) w->ctx->graph->wanted |= UINT32_C(1) << k;
    weft_status status = weft__check_fresh(node->op == WEFT_OP_OUTPUT ? node->in[0] : node);
    if (status == WEFT_OK) status = apply_rule(w, values, w->flow[i], grads);
    if (opened) weft__recipe_shut(node);
    WEFT_TRY(status);
    if (w->ctx->visit != mark) renumber(w);
    for (int k = 0; k < n; k++) {
        if (!grads[k] || !wants(w, in[k])) continue;
        const int at = in[k]->number;
        WEFT_TRY(weft_tensor_status(grads[k]));
        w->flow[at] = sum_flow(node->where, w->flow[at], grads[k]);
        WEFT_TRY(weft_tensor_status(w->flow[at]));
    }
    return WEFT_OK;
}

/* Sets needed[i]: order[i] is a wrt, or depends on one. */
static void find_needed(walk *w, uint64_t mark, weft_tensor *const *wrt, size_t n_wrt) {
    for (size_t i = 0; i < n_wrt; i++)
        if (wrt[i]->mark == mark) w->needed[wrt[i]->number] = true;
    for (size_t i = 0; i < w->count; i++) {
        weft_tensor *const *in;
        int n = flow_inputs(w->order[i], &in);
        for (int k = 0; k < n; k++)
            if (in[k]->mark == mark && weft__has_gradient(in[k]) && w->needed[in[k]->number])
                w->needed[i] = true;
        for (size_t k = 0; k < n_wrt && !w->needed[i] && weft__recipe_lost(w->order[i]); k++)
            w->needed[i] = weft__may_depend(w->order[i], wrt[k]);
    }
}

static weft_status gradient_run(walk *w, weft_tensor *const *out, weft_tensor *const *g, int n_out,
                                weft_tensor *const *wrt, size_t n_wrt, weft_tensor **grads) {
    uint64_t mark = w->mark = w->stamp = ++w->ctx->visit;
    for (int j = 0; j < n_out; j++) WEFT_TRY(visit(w, out[j], mark));
    w->flow = weft__array(w->ctx, w->count + 1, sizeof *w->flow);
    w->needed = weft__array(w->ctx, w->count + 1, sizeof *w->needed);
    if (!w->flow || !w->needed)
        return weft__fail_oom(w->ctx, w->count * sizeof *w->flow, "the gradients of a graph");
    find_needed(w, mark, wrt, n_wrt);
    for (int j = 0; j < n_out; j++)
        w->flow[out[j]->number] = sum_flow(out[j]->where, w->flow[out[j]->number], g[j]);
    weft_status status = WEFT_OK;
    for (size_t i = w->count; i-- > 0 && status == WEFT_OK;) {
        weft_tensor *node = w->order[i];
        weft_tensor *few[16] = {NULL}, **by_input = few, *const * in;
        const int n_in = flow_inputs(node, &in);
        if (!w->flow[i] || !w->needed[i]) continue;
        if (weft__recipe_lost(node)) status = refuse_lost_recipe(node, wrt, n_wrt);
        if (status != WEFT_OK || !n_in) continue;
        if (n_in > 16 && !(by_input = weft__array(w->ctx, (size_t)n_in, sizeof *by_input)))
            return weft__fail_oom(w->ctx, (size_t)n_in * sizeof *by_input, "the gradients of a node");
        status = step_back(w, i, by_input);
        if (by_input != few) weft__free(w->ctx, by_input);
    }
    for (size_t i = 0; i < n_wrt; i++) grads[i] = wrt[i]->mark == w->mark ? w->flow[wrt[i]->number] : NULL;
    return status;
}

weft_status weft__vjp(const char *where, weft_tensor *const *out, weft_tensor *const *g, int n_out,
                      weft_tensor *const *wrt, size_t n_wrt, weft_tensor **grads) {
    (void)where;
    walk w = {.ctx = out[0]->ctx};
    const char *path = w.ctx->path;
    uint8_t stage = w.ctx->stage, segment_kind = w.ctx->graph->segment_kind;
    uint32_t segment = w.ctx->graph->segment;
    w.ctx->stage = WEFT_STAGE_BACKWARD;
    weft_status status = gradient_run(&w, out, g, n_out, wrt, n_wrt, grads);
    w.ctx->path = path;
    w.ctx->stage = stage;
    w.ctx->graph->segment = segment;
    w.ctx->graph->segment_kind = segment_kind;
    weft__free(w.ctx, w.order);
    weft__free(w.ctx, w.flow);
    weft__free(w.ctx, w.needed);
    return status;
}

/* The first op that makes an integer or bool of a float that depends on a wrt; NULL: there is none. */
static const weft_tensor *first_rounding(walk *w) {
    for (size_t i = 0; i < w->count; i++) {
        weft_tensor *const *in;
        int n = flow_inputs(w->order[i], &in);
        for (int k = 0; k < n; k++) {
            if (in[k]->mark != w->mark || !is_followed(w, w->order[i], k, in[k])) continue;
            if (!w->needed[in[k]->number]) continue;
            w->needed[i] = true;
            if (weft__has_gradient(in[k]) && !weft__has_gradient(w->order[i])) return w->order[i];
        }
    }
    return NULL;
}

/* Fails if the loss depends on a tensor only through integers or bools. A gradient of zeros would hide the
 * mistake. */
static weft_status refuse_lost(weft_tensor *loss, weft_tensor *const *wrt, size_t count,
                               weft_tensor *const *grads) {
    walk floats = {.ctx = loss->ctx}, all = {.ctx = loss->ctx, .all = true};
    bool *lost = weft__array(loss->ctx, count + 1, sizeof *lost), any = false;
    floats.mark = ++loss->ctx->visit;
    weft_status status =
        lost ? visit(&floats, loss, floats.mark) : weft__fail_oom(loss->ctx, count, "a walk");
    for (size_t i = 0; i < count && status == WEFT_OK; i++)
        lost[i] = !grads[i] && wrt[i]->mark != floats.mark;
    all.mark = ++loss->ctx->visit;
    if (status == WEFT_OK) status = visit(&all, loss, all.mark);
    if (status == WEFT_OK && !(all.needed = weft__array(loss->ctx, all.count + 1, sizeof *all.needed)))
        status = weft__fail_oom(loss->ctx, all.count, "a walk");
    for (size_t i = 0; i < count && status == WEFT_OK; i++)
        if (lost[i] && wrt[i]->mark == all.mark) any = all.needed[wrt[i]->number] = true;
    const weft_tensor *op = any && status == WEFT_OK ? first_rounding(&all) : NULL;
    if (op)
        status = weft__fail(loss->ctx, WEFT_ERR_UNSUPPORTED,
                            "%s: %s%s%s is not differentiable, and the loss depends on a tensor only through "
                            "this op; use weft_detach if that is intended",
                            op->where ? op->where : "gradient", op->path, *op->path ? ": " : "",
                            weft__op_name(op->op));
    weft__free(loss->ctx, lost);
    weft__free(loss->ctx, floats.order);
    weft__free(loss->ctx, all.order);
    weft__free(loss->ctx, all.needed);
    return status;
}

weft_status weft__gradient_evaluated(weft_tensor *loss, weft_tensor *const *wrt, size_t count,
                                     weft_tensor ***list, size_t *n) {
    walk w = {.ctx = loss->ctx};
    const uint64_t mark = w.mark = ++loss->ctx->visit;
    weft_status status = visit(&w, loss, mark);
    if (status == WEFT_OK && !(w.needed = weft__array(w.ctx, w.count + 1, sizeof *w.needed)))
        status = weft__fail_oom(w.ctx, w.count, "a walk");
    if (status == WEFT_OK) find_needed(&w, mark, wrt, count);
    *n = 0;
    for (size_t i = 0; i < w.count && status == WEFT_OK; i++) {
        if (!w.needed[i]) continue;
        if (weft__recipe_lost(w.order[i])) status = refuse_lost_recipe(w.order[i], wrt, count);
        if (weft__recipe_lives(w.order[i])) w.order[(*n)++] = w.order[i];
    }
    weft__free(w.ctx, w.needed);
    *list = w.order;
    return status;
}

weft_status weft__gradient_reaches(weft_tensor *loss, weft_tensor *const *wrt, size_t count, bool *reaches) {
    walk w = {.ctx = loss->ctx, .all = true};
    const uint64_t mark = ++loss->ctx->visit;
    weft_status status = visit(&w, loss, mark);
    *reaches = false;
    for (size_t i = 0; i < count && !*reaches; i++) *reaches = wrt[i]->mark == mark;
    weft__free(w.ctx, w.order);
    return status;
}

weft_status weft_gradient(weft_tensor *loss, weft_tensor *const *wrt, size_t count, weft_tensor **grads) {
    WEFT_NEED(NULL, loss);
    WEFT_NEED_ARRAY(loss->ctx, wrt, count);
    WEFT_NEED_ARRAY(loss->ctx, grads, count);
    WEFT_TRY(weft_tensor_status(loss));
    char text[WEFT_SHAPE_TEXT];
    if (loss->numel != 1 || !weft_dtype_is_float((weft_dtype)loss->dtype))
        return weft__fail(loss->ctx, WEFT_ERR_SHAPE,
                          "gradient: the loss is %s, not one float; take its mean or sum, and for complex "
                          "numbers also the real part or the absolute value",
                          weft__tensor_text(loss, text));
    for (size_t i = 0; i < count; i++) {
        WEFT_TRY(weft_tensor_status(wrt[i]));
        if (wrt[i]->ctx != loss->ctx)
            return weft__fail(loss->ctx, WEFT_ERR_ARGUMENT, "gradient: tensor %zu belongs to another context",
                              i);
        if (!weft__has_gradient(wrt[i]))
            return weft__fail(loss->ctx, WEFT_ERR_DTYPE,
                              "gradient: %s has no gradient: only floats and complex numbers have one",
                              weft__tensor_text(wrt[i], text));
    }
    weft_tensor *one =
        weft__constant(loss->ctx, loss->where, (weft_dtype)loss->dtype, loss->rank, loss->shape, 1, 1);
    WEFT_TRY(weft_tensor_status(one));
    WEFT_TRY(weft__vjp(loss->where, &loss, &one, 1, wrt, count, grads));
    size_t found = 0;
    while (found < count && grads[found]) found++;
    if (found < count) WEFT_TRY(refuse_lost(loss, wrt, count, grads));
    for (size_t i = 0; i < count; i++) {
        if (!grads[i]) grads[i] = weft_zeros_like_at(loss->where, wrt[i]);
        WEFT_TRY(weft_tensor_status(grads[i]));
    }
    return WEFT_OK;
}
