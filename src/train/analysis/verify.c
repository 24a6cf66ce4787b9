/* Compares two ways to compute a training step: two devices, or fused and unfused kernels.
 *
 * First, both sides record the loss and all gradients of the first batch. This gives equal graphs. Every node
 * becomes an output. The first node whose values differ is the faulty one, since its inputs agree. Then both
 * sides run whole steps as training does, and their losses are compared. A gradient may be 0 but for
 * rounding, such as that of a bias when the batch is all data. Adam and RMSprop make whole steps of it, in a
 * direction that says nothing about the device: then both sides make the steps of SGD.
 *
 * Must not know: how the result is shown. Read next: src/cli/verify.c. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <weft/recurrent.h>

#include "graph/graph.h"
#include "train/run/progress.h"
#include "train/analysis/verify.h"

#define LOSS_TOLERANCE 1e-4   /* relative difference of losses after a few steps */
#define F16_SCALE      1024.0 /* scale of the loss, so that gradients stay inside the range of f16 */

/* A node to compare. It is described before evaluation, because evaluation frees its inputs. */
typedef struct entry {
    weft_tensor *t;
    const char *path;
    uint8_t op;
    /* entry of an addend, or -1; rounding errors scale with the addends, not with the sum */
    int addend;
    double most;
    bool gradient;    /* of a parameter */
    double tolerance; /* the largest tolerance of its dtype and of all its inputs */
} entry;

typedef struct graph {
    entry *list;
    size_t count, capacity;
} graph;

double weft__verify_tolerance(weft_dtype dtype) {
    switch (dtype) {
    case WEFT_F64: return 1e-9;
    case WEFT_F32: return 1e-4;
    case WEFT_F16: return 1e-2;
    case WEFT_BF16: return 5e-2;
    default: return 0;
    }
}

/* ---- the two sides ---- */

static void on_log(void *user, weft_log_level level, const char *message) {
    const weft__verify_side *side = user;
    char text[2048];
    snprintf(text, sizeof text, "%s: %s", side->device, message);
    weft__show_log(NULL, level, level >= WEFT_LOG_WARNING ? text : message);
}

static weft_status open_side(weft__verify_side *side, weft__config *config, uint64_t steps) {
    const weft_open_options options = {.device = side->device,
                                       .seed = (uint64_t)config->train_seed,
                                       .no_fusion = side->no_fusion,
                                       .tf32 = config->train_precision == WEFT__PRECISION_TF32,
                                       .log = on_log,
                                       .log_user = side};
    weft_context *ctx;
    WEFT_TRY(weft_open(&options, &ctx));
    side->model.ctx = ctx;
    side->compute = weft__model_compute(config);
    WEFT_TRY(weft__dataset_read(ctx, config, NULL, &side->dataset));
    WEFT_TRY(weft__model_build(ctx, config, &side->dataset, NULL, &side->model));
    WEFT_TRY(weft__model_init(&side->model, config));
    WEFT_TRY(weft__dataset_loader(ctx, &side->dataset, config, WEFT__TRAIN, 0, &side->loader));
    return weft__model_optimizer(&side->model, config, steps + (uint64_t)config->schedule_warmup);
}

static weft_status batch_loss(weft__verify_side *side, const weft__config *config, uint64_t position,
                              weft_tensor **loss) {
    weft_batch batch;
    WEFT_TRY(weft_loader_get(side->loader, position, &batch));
    return weft__model_loss(&side->model, config, &side->dataset, &batch, loss);
}

/* ---- every node of a step ---- */

static bool is_compared(const weft_tensor *t) {
    switch ((weft_op)t->op) {
    case WEFT_OP_RESHAPE:
    case WEFT_OP_PERMUTE:
    case WEFT_OP_EXPAND:
    case WEFT_OP_SLICE:
    case WEFT_OP_PAD:
    case WEFT_OP_DETACH:
    case WEFT_OP_COMPOSITE: return false; /* its outputs are compared */
    default: return !t->leaf && t->numel > 0;
    }
}

/* Returns the index of the entry that t is a view of, or -1. */
static int entry_of(const weft_tensor *t, uint64_t mark) {
    while (t->mark == mark && t->number < 0 && !t->leaf && t->n_in > 0 && t->op != WEFT_OP_COMPOSITE)
        t = t->in[0];
    return t->mark == mark ? t->number : -1;
}

static int addend_of(const weft_tensor *t, uint64_t mark) {
    switch ((weft_op)t->op) {
    case WEFT_OP_SUM:
    case WEFT_OP_ADD:
    case WEFT_OP_SUB:
    case WEFT_OP_SCATTER_ADD: return entry_of(t->in[t->n_in - 1], mark);
    default: return -1;
    }
}

/* Returns the tolerance of a node. The inputs have entries already. A result is never more exact than its
 * inputs: a value that was rounded to bf16 stays inexact in f32. */
static double tolerance_of(const graph *g, const weft_tensor *t, uint64_t mark) {
    double most = t->leaf ? 0 : weft__verify_tolerance((weft_dtype)t->dtype); /* leaves are exact */
    for (int i = 0; i < t->n_in && !t->leaf; i++) {
        const weft_tensor *in = t->in[i];
        const double of =
            in->mark == mark && in->number >= 0 ? g->list[in->number].tolerance : tolerance_of(g, in, mark);
        if (of > most) most = of;
    }
    return most;
}

static weft_status add_entry(weft_context *ctx, graph *g, weft_tensor *t, uint64_t mark) {
    if (!weft__grow(ctx, &g->list, &g->capacity, g->count, sizeof *g->list))
        return weft__fail_oom(ctx, (g->count + 1) * sizeof *g->list, "the nodes of a step");
    g->list[g->count] = (entry){.t = t,
                                .path = t->path,
                                .op = t->op,
                                .addend = addend_of(t, mark),
                                .tolerance = tolerance_of(g, t, mark)};
    t->number = (int)g->count++;
    return WEFT_OK;
}

static void reach(weft_tensor *t, uint64_t mark) {
    t->mark = mark;
    t->number = -1;
}

/* Collects all nodes that the roots depend on, inputs before users. The scope lists nodes newest first, and
 * inputs are always older than their users. */
static weft_status verify_gather(weft_context *ctx, graph *g, weft_tensor *const *roots, size_t count) {
    const uint64_t mark = ++ctx->visit;
    weft_tensor *oldest = NULL;
    for (size_t i = 0; i < count; i++) reach(roots[i], mark);
    for (weft_tensor *t = ctx->scope->nodes; t; oldest = t, t = t->next)
        for (int i = 0; t->mark == mark && !t->leaf && i < t->n_in; i++) reach(t->in[i], mark);
    for (weft_tensor *t = oldest; t; t = t->prev)
        if (t->mark == mark && is_compared(t)) WEFT_TRY(add_entry(ctx, g, t, mark));
    return WEFT_OK;
}

/* Records the first step on one side, and computes all its nodes in one program. */
static weft_status compute(weft__verify_side *side, const weft__config *config, graph *g) {
    weft_context *ctx = side->model.ctx;
    const size_t most = weft_parameter_count(side->model.module);
    weft_tensor **wrt = weft__array(ctx, 2 * most + 2, sizeof *wrt);
    if (!wrt) return weft__fail_oom(ctx, most * sizeof *wrt, "the parameters of a step");
    weft_tensor **roots = wrt + most;
    size_t count = 0;
    for (size_t i = 0; i < most; i++) {
        weft_parameter_info info;
        if (weft_parameter_get(side->model.module, i, &info) && !info.frozen && !info.buffer)
            wrt[count++] = info.tensor;
    }
    weft_status status = batch_loss(side, config, 0, &roots[0]);
    if (status == WEFT_OK && side->compute == WEFT_F16) roots[0] = weft_mul_scalar(roots[0], F16_SCALE);
    if (status == WEFT_OK) status = weft_gradient(roots[0], wrt, count, roots + 1);
    if (status == WEFT_OK) status = verify_gather(ctx, g, roots, count + 1);
    for (size_t i = 1; status == WEFT_OK && i <= count; i++) {
        const int n = entry_of(roots[i], ctx->visit);
        if (n >= 0) g->list[n].gradient = true;
    }
    weft__free(ctx, wrt);
    WEFT_TRY(status);
    weft_tensor **all = weft__array(ctx, g->count + 1, sizeof *all);
    if (!all) return weft__fail_oom(ctx, g->count * sizeof *all, "the nodes of a step");
    for (size_t i = 0; i < g->count; i++) all[i] = g->list[i].t;
    status = weft_eval(all, g->count);
    weft__free(ctx, all);
    return status;
}

/* ---- comparing ---- */

/* The values of a node on both sides. */
typedef struct pair {
    weft_dtype dtype;
    int64_t count;
    const void *data[2];
} pair;

static double magnitude(const pair *p) {
    double most = 0;
    for (int64_t i = 0; i < p->count; i++) {
        double x = fabs(weft__element(p->dtype, p->data[0], i));
        if (isfinite(x) && x > most) most = x;
    }
    return most;
}

/* Returns the largest difference, and sets *at to its element. Equal infinities are equal, and so are two
 * NaN. */
static double furthest(const pair *p, int64_t *at) {
    double most = 0;
    *at = 0;
    for (int64_t i = 0; i < p->count; i++) {
        double x = weft__element(p->dtype, p->data[0], i), y = weft__element(p->dtype, p->data[1], i);
        if (x == y || (isnan(x) && isnan(y))) continue;
        double d = fabs(x - y);
        if (!(d <= most)) { /* also true for NaN */
            most = isnan(d) ? (double)INFINITY : d;
            *at = i;
        }
    }
    return most;
}

/* Returns the number of differing bools, in units of the tolerance: one in a thousand. A comparison of two
 * floats can change when the floats are equal except for rounding. */
static double flipped(const pair *p, int64_t *at) {
    int64_t count = 0;
    for (int64_t i = p->count - 1; i >= 0; i--)
        if (weft__element(p->dtype, p->data[0], i) != weft__element(p->dtype, p->data[1], i)) {
            count++;
            *at = i;
        }
    return (double)count / fmax(1, (double)p->count / 1000);
}

static void verify_describe(const weft__verification *v, const entry *e, const pair *p, int64_t at,
                            double times, char *text, size_t size) {
    char shape[WEFT_SHAPE_TEXT];
    snprintf(text, size, "%s %s%s%s: element %lld is %.9g on %s and %.9g on %s, %.3g times the tolerance",
             weft__op_name(e->op), weft__tensor_text(e->t, shape), e->path && *e->path ? " of " : "",
             e->path ? e->path : "", (long long)at, weft__element(p->dtype, p->data[0], at),
             v->side[0].device, weft__element(p->dtype, p->data[1], at), v->side[1].device, times);
}

/* Returns the difference of a node, in units of its tolerance. *cancels: the node differs, and is 0 but for
 * the rounding of its addends. */
static double judge(const pair *p, graph *g, size_t i, int64_t *at, bool *cancels) {
    entry *e = &g->list[i];
    *at = 0;
    *cancels = false;
    if (p->dtype == WEFT_BOOL) return flipped(p, at);
    const double most = furthest(p, at);
    const double tolerance = weft_dtype_is_float(p->dtype) ? e->tolerance : 0;
    const double own = e->most = magnitude(p);
    if (e->addend >= 0 && g->list[e->addend].most > e->most) e->most = g->list[e->addend].most;
    if (most == 0) return 0;
    *cancels = own <= tolerance * e->most;
    return tolerance > 0 && e->most > 0 ? most / (tolerance * e->most) : (double)INFINITY;
}

static weft_status compare_node(weft__verification *v, graph *g, graph *other, size_t i) {
    weft_tensor *t[2] = {g->list[i].t, other->list[i].t};
    const weft_dtype dtype = (weft_dtype)t[0]->dtype;
    const size_t bytes = (size_t)t[0]->numel * weft_dtype_size(dtype);
    char *data = weft__array(NULL, 2, bytes);
    if (!data) return weft__fail_oom(NULL, 2 * bytes, "the values of a node");
    const pair p = {dtype, t[0]->numel, {data, data + bytes}};
    weft_status status = weft_read(t[0], data, bytes);
    if (status == WEFT_OK) status = weft_read(t[1], data + bytes, bytes);
    if (status == WEFT_OK) {
        int64_t at;
        bool cancels;
        const char *layer = g->list[i].path;
        const double times = judge(&p, g, i, &at, &cancels);
        if (cancels && g->list[i].gradient && !v->cancels[0])
            snprintf(v->cancels, sizeof v->cancels, "%s", layer && *layer ? layer : "the model");
        if (times > v->worst) {
            v->worst = times;
            verify_describe(v, &g->list[i], &p, at, times, v->worst_node, sizeof v->worst_node);
        }
        if (times > 1 && !v->differs) {
            v->differs = true;
            verify_describe(v, &g->list[i], &p, at, times, v->difference, sizeof v->difference);
        }
    }
    weft__free(NULL, data);
    return status;
}

/* Tells whether two nodes match. Equal recordings give equal graphs. */
static bool same_node(const entry *x, const entry *y) {
    return x->op == y->op && x->t->dtype == y->t->dtype && weft__shape_equal(x->t, y->t);
}

static weft_status compare_nodes(weft__verification *v, const weft__config *config, graph g[2]) {
    for (int s = 0; s < 2; s++) WEFT_TRY(compute(&v->side[s], config, &g[s]));
    v->nodes = g[0].count;
    for (size_t i = 0; i < g[0].count && !v->differs; i++) {
        if (g[0].count != g[1].count || !same_node(&g[0].list[i], &g[1].list[i]))
            return weft__fail(NULL, WEFT_ERR_INTERNAL,
                              "verify: the two recordings of a step differ at node %zu", i);
        WEFT_TRY(compare_node(v, &g[0], &g[1], i));
    }
    return WEFT_OK;
}

/* Runs one step as training runs it on one device, with train.accumulate micro-batches. *mean is the mean of
 * their losses. */
static weft_status run_step(weft__verify_side *side, const weft__config *config, uint64_t step,
                            double *mean) {
    const uint64_t parts = (uint64_t)config->train_accumulate;
    *mean = 0;
    for (uint64_t k = 0; k < parts; k++) {
        weft_tensor *loss;
        weft_scope *scope = weft_scope_open(side->model.ctx);
        weft_status status =
            scope ? batch_loss(side, config, step * parts + k, &loss) : weft__fail_oom(NULL, 0, "a scope");
        if (status == WEFT_OK)
            status = weft_optimizer_accumulate(side->model.optimizer, loss, (int)k, (int)parts);
        if (status == WEFT_OK) *mean += weft_item(loss) / (double)parts;
        weft_scope_close(scope);
        WEFT_TRY(status);
    }
    return WEFT_OK;
}

static weft_status compare_steps(weft__verification *v, const weft__config *config) {
    const double tolerance = fmax(LOSS_TOLERANCE, weft__verify_tolerance(v->side[0].compute) / 5);
    for (uint64_t step = 0; step < v->steps && !v->differs; step++) {
        for (int s = 0; s < 2; s++) WEFT_TRY(run_step(&v->side[s], config, step, &v->loss[s]));
        double d = fabs(v->loss[0] - v->loss[1]) / fmax(fabs(v->loss[0]), 1e-6);
        if (!(d <= v->worst_loss)) v->worst_loss = d;
        if (d <= tolerance) continue;
        v->differs = true;
        snprintf(v->difference, sizeof v->difference,
                 "the loss of step %llu is %.9g on %s and %.9g on %s, though every node of the first step "
                 "agrees: look at the update, or at the program of the whole step",
                 (unsigned long long)step + 1, v->loss[0], v->side[0].device, v->loss[1], v->side[1].device);
    }
    return WEFT_OK;
}

/* Exchanges the optimizers, if theirs would make steps of rounding errors. */
static weft_status use_sgd(weft__verification *v, weft__config *config) {
    v->with_sgd = v->cancels[0] && config->optimizer_type != WEFT__OPTIMIZER_SGD;
    if (!v->with_sgd) return WEFT_OK;
    config->optimizer_type = WEFT__OPTIMIZER_SGD;
    for (int s = 0; s < 2; s++) {
        weft_optimizer_free(v->side[s].model.optimizer);
        WEFT_TRY(
            weft__model_optimizer(&v->side[s].model, config, v->steps + (uint64_t)config->schedule_warmup));
    }
    return WEFT_OK;
}

weft_status weft__verify(weft__verification *v, weft__config *config) {
    graph g[2] = {{0}};
    weft_scope *scope[2] = {NULL};
    weft_status status = weft__model_vocab(config);
    for (int s = 0; s < 2 && status == WEFT_OK; s++) {
        status = open_side(&v->side[s], config, v->steps);
        if (status == WEFT_OK && !(scope[s] = weft_scope_open(v->side[s].model.ctx))) status = WEFT_ERR_OOM;
    }
    if (status == WEFT_OK) status = compare_nodes(v, config, g);
    for (int s = 0; s < 2; s++) {
        if (v->side[s].model.ctx) weft__free(v->side[s].model.ctx, g[s].list);
        weft_scope_close(scope[s]);
    }
    for (int s = 0; s < 2 && status == WEFT_OK && config->data_streams; s++)
        status = weft_streams_restart(v->side[s].model.module); /* comparing the nodes advanced the streams */
    if (status == WEFT_OK && !v->differs) status = use_sgd(v, config);
    return status == WEFT_OK ? compare_steps(v, config) : status;
}

void weft__verification_free(weft__verification *v) {
    for (int s = 0; s < 2; s++) {
        weft__verify_side *side = &v->side[s];
        weft_loader_free(side->loader);
        if (side->model.ctx) weft__dataset_free(side->model.ctx, &side->dataset);
        weft_close(side->model.ctx);
        side->loader = NULL;
        side->model = (weft__model){0};
    }
}
