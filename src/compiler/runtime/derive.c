/* Derived programs: looks up a step by its forward graph, or builds and compiles it. Must not know: what the
 * derivation records. Read next: walk.c, program.c. */
#include <string.h>
#include "compiler/runtime/derive.h"
#include "compiler/profile/profile.h"

struct weft_derived {
    weft_context *ctx;
    ir_sink *sinks;
    size_t n_sinks, capacity;
};

weft_status weft__derived_assign(weft_derived *derived, weft_tensor *variable, weft_tensor *value) {
    char a[WEFT_SHAPE_TEXT], b[WEFT_SHAPE_TEXT];
    WEFT_TRY(weft_tensor_status(variable));
    WEFT_TRY(weft_tensor_status(value));
    if (!weft__shape_equal(variable, value) || variable->dtype != value->dtype)
        return weft__fail(derived->ctx, WEFT_ERR_SHAPE, "cannot assign %s to '%s', which is %s",
                          weft__tensor_text(value, a), variable->name ? variable->name : "?",
                          weft__tensor_text(variable, b));
    if (!weft__grow(derived->ctx, &derived->sinks, &derived->capacity, derived->n_sinks,
                    sizeof *derived->sinks))
        return weft__fail_oom(derived->ctx, sizeof *derived->sinks, "assignments");
    derived->sinks[derived->n_sinks++] = (ir_sink){.variable = variable, .value = value};
    return WEFT_OK;
}

/* Copies a walk, since recording the rest may walk other graphs. */
static weft_status keep_walk(weft_context *ctx, const weft_walk *walk, weft_walk *kept) {
    *kept = *walk;
    kept->leaves = weft__array(ctx, walk->n_leaves + 1, sizeof *kept->leaves);
    kept->due = weft__array(ctx, walk->n_due + 1, sizeof *kept->due);
    if (!kept->leaves || !kept->due) return weft__fail_oom(ctx, 0, "deriving a step");
    if (walk->n_leaves) memcpy(kept->leaves, walk->leaves, walk->n_leaves * sizeof *kept->leaves);
    if (walk->n_due) memcpy(kept->due, walk->due, walk->n_due * sizeof *kept->due);
    return WEFT_OK;
}

/* Compiles the roots and the assignments of the derivation and of the forward passes. The cache owns the
 * program. */
static weft_status compile(weft_context *ctx, const weft_derived *derived, weft_tensor *const *roots,
                           size_t n_roots, const weft_walk *walk, weft_program **program) {
    ir_sink *all = NULL;
    WEFT_TRY(weft__all_sinks(ctx, derived->sinks, derived->n_sinks, walk, &all));
    weft_status status =
        weft__program_new(ctx, roots, n_roots, all, derived->n_sinks + walk->n_due, walk, program);
    weft__free(ctx, all);
    WEFT_TRY(status);
    (*program)->key = walk->key;
    if (weft__cache_add(ctx->compiler, *program)) return WEFT_OK;
    weft__program_free(*program);
    return weft__fail_oom(ctx, 0, "the program cache");
}

/* Records what the derivation adds to the roots, and compiles all of it. */
static weft_status derive_build(weft_context *ctx, const weft_derivation *derivation,
                                weft_tensor *const *roots, size_t n_roots, const weft_walk *walk,
                                weft_program **program) {
    weft_derived derived = {.ctx = ctx};
    weft_walk kept;
    weft_status status = keep_walk(ctx, walk, &kept);
    weft_scope *scope = weft_scope_open(ctx);
    if (!scope) status = weft__fail_oom(ctx, 0, "deriving a step");
    if (status == WEFT_OK) status = derivation->build(derivation->user, ctx, &derived);
    if (status == WEFT_OK) status = compile(ctx, &derived, roots, n_roots, &kept, program);
    weft_scope_close(scope);
    weft__free(ctx, derived.sinks);
    weft__free(ctx, kept.leaves);
    weft__free(ctx, kept.due);
    return status;
}

weft_status weft__gather_roots(weft_context *ctx, weft_tensor *const *given, size_t n_given,
                               weft_tensor ***out, size_t *count, size_t *own) {
    size_t n = n_given, at = 0;
    for (weft_scope *scope = ctx->scope; scope; scope = scope->parent)
        for (weft_tensor *t = scope->nodes; t; t = t->next) n += weft__node_pending(t);
    weft_tensor **roots = *out = weft__array(ctx, n + 1, sizeof *roots);
    if (!roots) return weft__fail_oom(ctx, n * sizeof *roots, "the outputs of a step");
    uint64_t mark = ++ctx->visit;
    for (size_t i = 0; i < n_given; i++) {
        if (given[i]->mark != mark) roots[at++] = given[i];
        given[i]->mark = mark;
    }
    *own = at;
    for (weft_scope *scope = ctx->scope; scope; scope = scope->parent)
        for (weft_tensor *t = scope->nodes; t; t = t->next) {
            if (!weft__node_pending(t) || t->mark == mark) continue;
            t->mark = mark;
            roots[at++] = t;
        }
    *count = at;
    return WEFT_OK;
}

/* Evaluated nodes whose recipes are open while a program is derived: the program computes them again. */
typedef struct opened {
    weft_tensor **list;
    size_t count, capacity;
} opened;

static weft_status open_recipe(weft_context *ctx, opened *o, weft_tensor *t) {
    if (!weft__grow(ctx, &o->list, &o->capacity, o->count, sizeof *o->list))
        return weft__fail_oom(ctx, sizeof *o->list, "evaluated tensors");
    if (weft__recipe_open(t)) o->list[o->count++] = t;
    return WEFT_OK;
}

static void shut_recipes(weft_context *ctx, const opened *o) {
    for (size_t i = 0; i < o->count; i++) weft__recipe_shut(o->list[i]);
    weft__free(ctx, o->list);
}

static weft_status refuse_again(weft_context *ctx) {
    return weft__fail(ctx, WEFT_ERR_STATE,
                      "the loss, or a tensor that it depends on, was already evaluated, and its variables or "
                      "scope have changed since: record it again for each step, or use weft_detach on a "
                      "tensor that is meant as a constant");
}

/* Opens the roots that are evaluated. A loss that was read is computed again in the step. */
static weft_status open_roots(weft_context *ctx, const weft_derivation *derivation, opened *o) {
    for (size_t i = 0; i < derivation->n_roots; i++) {
        weft_tensor *t = derivation->roots[i];
        WEFT_TRY(weft_tensor_status(t));
        if (!t->leaf) continue;
        WEFT_TRY(open_recipe(ctx, o, t));
        if (t->leaf) return refuse_again(ctx);
    }
    return WEFT_OK;
}

/* Opens what is evaluated between the roots and what `build` asks for. */
static weft_status open_between(weft_context *ctx, const weft_derivation *derivation, opened *o) {
    weft_tensor **list = NULL;
    size_t count = 0;
    weft_status status = derivation->evaluated(derivation->user, ctx, &list, &count);
    for (size_t i = 0; i < count && status == WEFT_OK; i++) status = open_recipe(ctx, o, list[i]);
    weft__free(ctx, list);
    return status;
}

/* Finds or compiles the program. *walk is a walk that is valid for it. */
static weft_status derive_find(weft_context *ctx, const weft_derivation *derivation,
                               weft_tensor *const *roots, size_t n_roots, opened *o, weft_walk **walk,
                               weft_program **program) {
    WEFT_TRY(weft__walk(ctx, roots, n_roots, NULL, 0, &derivation->key, walk));
    if ((*walk)->n_made && derivation->evaluated) {
        const size_t roots_only = o->count;
        WEFT_TRY(open_between(ctx, derivation, o));
        if (o->count > roots_only) WEFT_TRY(weft__walk(ctx, roots, n_roots, NULL, 0, &derivation->key, walk));
    }
    *program = weft__cache_find(ctx->compiler, (*walk)->key);
    if (*program) return WEFT_OK;
    weft__span span = weft__profile_enter(ctx, WEFT__DOING_COMPILE);
    weft_status status = derive_build(ctx, derivation, roots, n_roots, *walk, program);
    weft__profile_leave(ctx, span);
    WEFT_TRY(status);
    return weft__walk(ctx, roots, n_roots, NULL, 0, &derivation->key, walk);
}

/* Adds the memory that a run would allocate (`pending`), and the storages that it reads. */
static void add_leaves(weft_context *ctx, const weft_walk *walk, const weft_program *program,
                       weft_memory_plan *plan) {
    const weft_buffer *arena = ctx->compiler->arena;
    uint64_t has = arena ? arena->bytes : 0, mark = ++ctx->visit;
    plan->pending = plan->work > has ? plan->work - has : 0;
    for (int i = 0; i < program->leaves.count; i++) {
        const program_leaf *leaf = &program->leaves.list[i];
        const weft_tensor *t = leaf->fixed ? leaf->fixed : walk->leaves[leaf->walk];
        if (t->leaf != WEFT_LEAF_STORAGE || t->storage->mark == mark) continue;
        t->storage->mark = mark;
        const weft_storage *s = t->storage;
        plan->pending += s->buffer ? 0 : s->bytes;
        plan->pending += !s->turns || s->other ? 0 : s->bytes;
        plan->kinds[WEFT_MEMORY_DATA] += s->turns ? 2 * s->bytes : s->bytes; /* the caller divides these */
    }
}

static weft_status fill_plan(weft_context *ctx, const weft_walk *walk, const weft_program *program,
                             weft_memory_plan *plan) {
    WEFT_TRY(weft__account(program, plan));
    add_leaves(ctx, walk, program, plan);
    plan->kinds[WEFT_MEMORY_WORKSPACE] = ctx->device->workspace;
    plan->threads = weft__device_threads_of(program->ctx->device, program->executable);
    plan->program = weft__program_work(program);
    return WEFT_OK;
}

/* Runs the program. Its last sinks are the assignments of forward passes; the variables of these belong to
 * the graph at hand. */
static weft_status derive_run(weft_program *program, const weft_walk *walk, weft_tensor *const *roots,
                              size_t n_roots, const weft__ahead *ahead) {
    ir_sink *all = NULL;
    if (!walk->n_due) return weft__run_once(program, walk, roots, n_roots, program->sinks, ahead);
    WEFT_TRY(weft__all_sinks(program->ctx, program->sinks, program->n_sinks - walk->n_due, walk, &all));
    weft_status status = weft__run_once(program, walk, roots, n_roots, all, ahead);
    weft__free(program->ctx, all);
    return status;
}

/* Finds the program, then fills in the plan or, if plan is NULL, runs the program. */
static weft_status derive(weft_context *ctx, const weft_derivation *derivation, weft_memory_plan *plan) {
    opened o = {0};
    weft_tensor **roots = NULL;
    size_t n_roots = 0, own;
    weft_walk *walk;
    weft_program *program;
    weft_status status = open_roots(ctx, derivation, &o);
    if (status == WEFT_OK)
        status = weft__gather_roots(ctx, derivation->roots, derivation->n_roots, &roots, &n_roots, &own);
    if (status == WEFT_OK) status = derive_find(ctx, derivation, roots, n_roots, &o, &walk, &program);
    if (status == WEFT_ERR_STALE && o.count) status = refuse_again(ctx);
    if (status == WEFT_OK && plan) {
        status = fill_plan(ctx, walk, program, plan);
    } else if (status == WEFT_OK) {
        status = derive_run(program, walk, roots, n_roots, derivation->ahead);
    }
    shut_recipes(ctx, &o);
    weft__free(ctx, roots);
    return status;
}

weft_status weft__derive_run(weft_context *ctx, const weft_derivation *derivation) {
    return derive(ctx, derivation, NULL);
}

weft_status weft__derive_plan(weft_context *ctx, const weft_derivation *derivation, weft_memory_plan *plan) {
    return derive(ctx, derivation, plan);
}
