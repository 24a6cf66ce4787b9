/* Evaluation through the program cache; reading, writing and assigning tensors; held programs. Must not know:
 * how a program is compiled. Read next: walk.c, cache.c, program.c. */
#include <math.h>
#include <string.h>
#include "compiler/runtime/derive.h"
#include "compiler/program.h"

/* ---- running a graph ---- */

static void release_all(weft_context *ctx, weft_storage **storages, size_t n) {
    for (size_t i = 0; i < n; i++) weft__storage_release(ctx, storages[i]);
    weft__free(ctx, storages);
}

/* Allocates a storage and its buffer for each root. */
static weft_status new_storages(weft_context *ctx, weft_tensor *const *roots, size_t n, weft_storage ***out) {
    weft_storage **storages = weft__array(ctx, n + 1, sizeof *storages);
    if (!storages) return weft__fail_oom(ctx, n * sizeof *storages, "the results of a program");
    for (size_t i = 0; i < n; i++) {
        size_t bytes = (size_t)roots[i]->numel * weft_dtype_size((weft_dtype)roots[i]->dtype);
        storages[i] = weft__storage_new(ctx, bytes);
        weft_status status =
            storages[i] ? weft__memory_for(ctx, weft__pool_take(ctx, bytes, &storages[i]->buffer), roots[i])
                        : weft__fail_oom(ctx, sizeof **storages, "a result");
        if (status != WEFT_OK) {
            release_all(ctx, storages, n);
            return status;
        }
    }
    *out = storages;
    return WEFT_OK;
}

/* Gives the roots their values and the variables a new version. */
static void settle(weft_context *ctx, weft_tensor *const *roots, size_t n_roots, weft_storage **storages,
                   const ir_sink *sinks, size_t n_sinks) {
    if (n_sinks) ctx->epoch++;
    for (size_t i = 0; i < n_sinks; i++) {
        sinks[i].variable->storage->write_epoch = ctx->epoch;
        weft__assignments_forget(ctx, sinks[i].variable->storage);
    }
    for (size_t i = 0; i < n_roots; i++) {
        weft__node_settle(roots[i], storages[i]);
        storages[i]->write_epoch = 0;
    }
}

weft_status weft__run_once(weft_program *program, const weft_walk *walk, weft_tensor *const *roots,
                           size_t n_roots, const ir_sink *sinks, const weft__ahead *ahead) {
    weft_context *ctx = program->ctx;
    weft_storage **storages;
    WEFT_TRY(new_storages(ctx, roots, n_roots, &storages));
    weft_status status = weft__program_run(program, walk, storages, ahead, 1);
    if (status != WEFT_OK) {
        release_all(ctx, storages, n_roots);
        return status;
    }
    settle(ctx, roots, n_roots, storages, sinks, program->n_sinks);
    weft__free(ctx, storages);
    return WEFT_OK;
}

/* Finds or compiles the program of the walked graph and runs it. `sinks` include the assignments of forward
 * passes. */
static weft_status run_program(weft_context *ctx, weft_tensor *const *roots, size_t n_roots, ir_sink *sinks,
                               size_t n_sinks, const weft_walk *walk) {
    weft_program *program = weft__cache_find(ctx->compiler, walk->key);
    if (!program) {
        weft_hash key = walk->key;
        WEFT_TRY(weft__program_new(ctx, roots, n_roots, sinks, n_sinks, walk, &program));
        program->key = key;
        if (!weft__cache_add(ctx->compiler, program)) {
            weft__program_free(program);
            return weft__fail_oom(ctx, 0, "the program cache");
        }
    }
    return weft__run_once(program, walk, roots, n_roots, sinks, NULL);
}

weft_status weft__all_sinks(weft_context *ctx, const ir_sink *sinks, size_t n_sinks, const weft_walk *walk,
                            ir_sink **all) {
    *all = weft__array(ctx, n_sinks + walk->n_due + 1, sizeof **all);
    if (!*all) return weft__fail_oom(ctx, (n_sinks + walk->n_due) * sizeof **all, "assignments");
    if (n_sinks) memcpy(*all, sinks, n_sinks * sizeof **all);
    if (walk->n_due) memcpy(*all + n_sinks, walk->due, walk->n_due * sizeof **all);
    return WEFT_OK;
}

static weft_status run_assigning(weft_context *ctx, weft_tensor *const *roots, size_t n_roots,
                                 const ir_sink *sinks, size_t n_sinks) {
    weft_tensor **all_roots = NULL;
    ir_sink *all = NULL;
    weft_walk *walk;
    size_t n, own;
    weft_status status = weft__gather_roots(ctx, roots, n_roots, &all_roots, &n, &own);
    for (n_roots = own; status == WEFT_OK && own < n; own++) /* stale tensors stay as they are */
        if (weft__walk(ctx, &all_roots[own], 1, NULL, 0, NULL, &walk) == WEFT_OK)
            all_roots[n_roots++] = all_roots[own];
    if (status == WEFT_OK) status = weft__walk(ctx, all_roots, n_roots, sinks, n_sinks, NULL, &walk);
    if (status == WEFT_OK) status = weft__all_sinks(ctx, sinks, n_sinks, walk, &all);
    if (status == WEFT_OK) status = run_program(ctx, all_roots, n_roots, all, n_sinks + walk->n_due, walk);
    weft__free(ctx, all);
    weft__free(ctx, all_roots);
    return status;
}

static weft_status run_graph(weft_context *ctx, weft_tensor *const *roots, size_t n_roots) {
    weft_walk *walk;
    WEFT_TRY(weft__walk(ctx, roots, n_roots, NULL, 0, NULL, &walk));
    return walk->n_due ? run_assigning(ctx, roots, n_roots, NULL, 0)
                       : run_program(ctx, roots, n_roots, NULL, 0, walk);
}

/* ---- evaluation ---- */

static weft_status one_context(weft_tensor *const *tensors, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (!tensors[i]) return weft__fail(NULL, WEFT_ERR_ARGUMENT, "weft_eval: tensor %zu is NULL", i);
        WEFT_TRY(weft_tensor_status(tensors[i]));
        if (tensors[i]->ctx != tensors[0]->ctx)
            return weft__fail(tensors[i]->ctx, WEFT_ERR_ARGUMENT,
                              "weft_eval: tensor %zu belongs to another context", i);
    }
    return WEFT_OK;
}

weft_status weft_eval(weft_tensor *const *tensors, size_t count) {
    if (!count) return WEFT_OK;
    WEFT_NEED_ARRAY(NULL, tensors, count);
    WEFT_TRY(one_context(tensors, count));
    weft_context *ctx = tensors[0]->ctx;
    weft_tensor *few[16], **roots = count <= 16 ? few : weft__array(ctx, count, sizeof *roots);
    if (!roots) return weft__fail_oom(ctx, count * sizeof *roots, "a list of tensors");
    size_t n = 0;
    uint64_t mark = ++ctx->visit;
    for (size_t i = 0; i < count; i++) {
        if (tensors[i]->leaf || tensors[i]->mark == mark) continue;
        tensors[i]->mark = mark;
        roots[n++] = tensors[i];
    }
    weft_status status = n ? run_graph(ctx, roots, n) : WEFT_OK;
    if (roots != few) weft__free(ctx, roots);
    return status;
}

/* ---- values ---- */

static weft_status check_size(const weft_tensor *t, const char *what, size_t bytes) {
    size_t own = (size_t)t->numel * weft_dtype_size((weft_dtype)t->dtype);
    char text[WEFT_SHAPE_TEXT];
    if (bytes == own) return WEFT_OK;
    return weft__fail(t->ctx, WEFT_ERR_ARGUMENT, "%s: %s has %zu bytes, but the buffer has %zu", what,
                      weft__tensor_text(t, text), own, bytes);
}

weft_status weft_read(weft_tensor *t, void *out, size_t bytes) {
    WEFT_NEED(NULL, t);
    WEFT_TRY(weft_tensor_status(t));
    WEFT_TRY(check_size(t, "weft_read", bytes));
    if (bytes) WEFT_NEED(t->ctx, out);
    weft_context *ctx = t->ctx;
    if (t->leaf == WEFT_LEAF_SCALAR || t->leaf == WEFT_LEAF_RANDOM) {
        weft_tensor *copy = weft_keep(weft__node(ctx, t->where, WEFT_OP_RESHAPE, (weft_dtype)t->dtype,
                                                 t->rank, t->shape, 1, &t, 0, NULL));
        const weft_status status = weft_read(copy, out, bytes);
        weft_free(copy);
        return status;
    }
    WEFT_TRY(weft_eval(&t, 1));
    size_t offset = (size_t)t->offset * weft_dtype_size((weft_dtype)t->dtype);
    const weft_divided *divided = t->storage->divided;
    if (divided) return divided->read(divided, offset, out, bytes);
    WEFT_TRY(weft__storage_place(ctx, t->storage));
    if (!bytes) return WEFT_OK;
    return ctx->hooks.download(ctx, t->storage->buffer, offset, out, bytes);
}

static weft_status check_item(const weft_tensor *t) {
    WEFT_TRY(weft_tensor_status(t));
    if (t->numel != 1) {
        char text[WEFT_SHAPE_TEXT];
        return weft__fail(t->ctx, WEFT_ERR_SHAPE, "weft_item: %s does not have exactly one element",
                          weft__tensor_text(t, text));
    }
    if (weft_dtype_is_complex((weft_dtype)t->dtype)) {
        char text[WEFT_SHAPE_TEXT];
        return weft__fail(t->ctx, WEFT_ERR_DTYPE,
                          "weft_item: %s is not a real number; take weft_real or weft_abs",
                          weft__tensor_text(t, text));
    }
    return WEFT_OK;
}

enum { ITEM_BYTES = 16 }; /* of the largest dtype */

weft_status weft__item(weft_tensor *t, double *out) {
    _Alignas(ITEM_BYTES) char value[ITEM_BYTES];
    *out = (double)NAN;
    WEFT_TRY(check_item(t));
    WEFT_TRY(weft_read(t, value, weft_dtype_size((weft_dtype)t->dtype)));
    *out = weft__element((weft_dtype)t->dtype, value, 0);
    return WEFT_OK;
}

weft_status weft__items(weft_tensor *const *list, size_t n, double *values) {
    enum { AT_ONCE = 64 };
    _Alignas(ITEM_BYTES) char read[AT_ONCE][ITEM_BYTES];
    weft_piece pieces[AT_ONCE];
    for (size_t first = 0; first < n; first += AT_ONCE) {
        const size_t count = n - first < AT_ONCE ? n - first : AT_ONCE;
        for (size_t i = 0; i < count; i++) {
            const weft_tensor *t = list[first + i];
            const size_t bytes = weft_dtype_size((weft_dtype)t->dtype);
            WEFT_TRY(check_item(t));
            WEFT_TRY(weft__storage_place(t->ctx, t->storage));
            pieces[i] = (weft_piece){t->storage->buffer, (size_t)t->offset * bytes, read[i], bytes};
        }
        WEFT_TRY(weft__download_all(list[0]->ctx, pieces, count));
        for (size_t i = 0; i < count; i++)
            values[first + i] = weft__element((weft_dtype)list[first + i]->dtype, read[i], 0);
    }
    return WEFT_OK;
}

double weft_item(weft_tensor *t) {
    double value;
    return weft__item(t, &value) == WEFT_OK ? value : (double)NAN;
}

/* Writes all elements of a tensor of a storage. */
static weft_status write_bytes(const weft_tensor *t, const void *data, size_t bytes) {
    weft_context *ctx = t->ctx;
    const weft_divided *divided = t->storage->divided;
    const size_t offset = (size_t)t->offset * weft_dtype_size((weft_dtype)t->dtype);
    if (divided) return divided->write(divided, offset, data, bytes);
    WEFT_TRY(bytes == t->storage->bytes ? weft__storage_reserve(ctx, t->storage)
                                        : weft__storage_place(ctx, t->storage));
    return bytes ? ctx->hooks.upload(ctx, t->storage->buffer, offset, data, bytes) : WEFT_OK;
}

weft_status weft_write(weft_tensor *t, const void *data, size_t bytes) {
    WEFT_NEED(NULL, t);
    WEFT_TRY(weft_tensor_status(t));
    if (t->leaf != WEFT_LEAF_STORAGE)
        return weft__fail(t->ctx, WEFT_ERR_ARGUMENT,
                          "weft_write: only variables and tensors made by weft_from can be written");
    WEFT_TRY(check_size(t, "weft_write", bytes));
    if (bytes) WEFT_NEED(t->ctx, data);
    weft_context *ctx = t->ctx;
    WEFT_TRY(write_bytes(t, data, bytes));
    weft__node_is_data(t);
    t->storage->write_epoch = ++ctx->epoch;
    t->epoch = ctx->epoch;
    weft__assignments_forget(ctx, t->storage);
    return WEFT_OK;
}

/* ---- assignments ---- */

/* Checks the variables and values of weft_assign, and lists them as sinks. */
static weft_status make_sinks(weft_tensor *const *variables, weft_tensor *const *values, size_t count,
                              ir_sink *sinks) {
    for (size_t i = 0; i < count; i++) {
        char a[WEFT_SHAPE_TEXT], b[WEFT_SHAPE_TEXT];
        WEFT_TRY(weft_tensor_status(variables[i]));
        WEFT_TRY(weft_tensor_status(values[i]));
        weft_context *ctx = variables[i]->ctx;
        if (ctx != variables[0]->ctx || ctx != values[i]->ctx)
            return weft__fail(ctx, WEFT_ERR_ARGUMENT,
                              "weft_assign: target %zu or its value belongs to another context", i);
        if (variables[i]->leaf != WEFT_LEAF_STORAGE)
            return weft__fail(ctx, WEFT_ERR_ARGUMENT,
                              "weft_assign: target %zu is neither a variable nor data", i);
        if (!weft__shape_equal(variables[i], values[i]) || variables[i]->dtype != values[i]->dtype)
            return weft__fail(ctx, WEFT_ERR_SHAPE, "weft_assign: '%s' is %s, but the value is %s",
                              variables[i]->name ? variables[i]->name : "data",
                              weft__tensor_text(variables[i], a), weft__tensor_text(values[i], b));
        for (size_t k = 0; k < i; k++)
            if (variables[k] == variables[i])
                return weft__fail(ctx, WEFT_ERR_ARGUMENT, "weft_assign: '%s' is assigned twice",
                                  variables[i]->name);
        sinks[i] = (ir_sink){.variable = variables[i], .value = values[i]};
        weft__node_is_data(variables[i]);
    }
    return WEFT_OK;
}

weft_status weft_assign(weft_tensor *const *variables, weft_tensor *const *values, size_t count) {
    if (!count) return WEFT_OK;
    WEFT_NEED_ARRAY(NULL, variables, count);
    WEFT_NEED_ARRAY(NULL, values, count);
    weft_context *ctx = variables[0] ? variables[0]->ctx : NULL;
    ir_sink few[16], *sinks = count <= 16 ? few : weft__array(ctx, count, sizeof *sinks);
    if (!sinks) return weft__fail_oom(ctx, count * sizeof *sinks, "assignments");
    weft_status status = make_sinks(variables, values, count, sinks);
    if (status == WEFT_OK) status = run_assigning(ctx, NULL, 0, sinks, count);
    if (sinks != few) weft__free(ctx, sinks);
    return status;
}

weft_tensor *weft_to(weft_tensor *t, weft_context *ctx) {
    WEFT_NEED_OR_POISON(ctx, NULL, t);
    WEFT_NEED_OR_POISON(NULL, NULL, ctx);
    if (t->error) return weft__poison(ctx, NULL, t->error->status, "%s", t->error->text);
    size_t bytes = (size_t)t->numel * weft_dtype_size((weft_dtype)t->dtype);
    void *data = weft__alloc(ctx, bytes + 1);
    if (!data) return &ctx->graph->oom;
    weft_status status = weft_read(t, data, bytes);
    weft_tensor *copy = status == WEFT_OK
                            ? weft_from(ctx, (weft_dtype)t->dtype, t->rank, t->shape, data)
                            : weft__poison(ctx, NULL, status, "weft_to: %s", weft_last_error(t->ctx));
    weft__free(ctx, data);
    return copy;
}

/* ---- held programs ---- */

/* Takes hold of a new program's leaves, variables and outputs, and gives the outputs their storages. */
static weft_status hold(weft_program *program, weft_tensor *const *outputs, size_t n_outputs) {
    weft_context *ctx = program->ctx;
    program->links.prev = NULL;
    program->links.next = ctx->compiler->by_hand;
    if (program->links.next) program->links.next->links.prev = program;
    ctx->compiler->by_hand = program;
    program->held = weft__array(ctx, (size_t)program->leaves.count + n_outputs + program->n_sinks + 1,
                                sizeof *program->held);
    program->results = weft__array(ctx, n_outputs + 1, sizeof *program->results);
    if (!program->held || !program->results)
        return weft__fail_oom(ctx, n_outputs * sizeof *outputs, "a program");
    for (int i = 0; i < program->leaves.count; i++) /* before the outputs release them */
        weft__node_hold(program->held[program->n_held++] = program->leaves.list[i].fixed);
    for (size_t i = 0; i < program->n_sinks; i++) {
        weft__node_hold(program->held[program->n_held++] = program->sinks[i].variable);
        weft__assignments_forget(ctx, program->sinks[i].variable->storage); /* now the program assigns */
    }
    weft_storage **storages;
    WEFT_TRY(new_storages(ctx, outputs, n_outputs, &storages));
    for (size_t i = 0; i < n_outputs; i++) {
        weft__node_settle(outputs[i], storages[i]);
        weft__recipe_forget(outputs[i]); /* later runs compute other values */
        program->results[i] = outputs[i];
        weft__node_hold(program->held[program->n_held++] = outputs[i]);
    }
    weft__free(ctx, storages);
    return WEFT_OK;
}

weft_status weft_compile(weft_tensor *const *outputs, size_t n_outputs, weft_tensor *const *variables,
                         weft_tensor *const *values, size_t n_assign, weft_program **program) {
    WEFT_NEED(NULL, program);
    *program = NULL;
    WEFT_NEED_ARRAY(NULL, outputs, n_outputs);
    WEFT_NEED_ARRAY(NULL, variables, n_assign);
    WEFT_NEED_ARRAY(NULL, values, n_assign);
    WEFT_TRY(one_context(outputs, n_outputs));
    weft_tensor *any = n_outputs ? outputs[0] : n_assign ? variables[0] : NULL;
    if (!any) return weft__fail(NULL, WEFT_ERR_ARGUMENT, "weft_compile: nothing to compute");
    weft_context *ctx = any->ctx;
    for (size_t i = 0; i < n_outputs; i++)
        if (outputs[i]->leaf)
            return weft__fail(ctx, WEFT_ERR_ARGUMENT, "weft_compile: output %zu is already evaluated", i);
    ir_sink *sinks = weft__array(ctx, n_assign + 1, sizeof *sinks), *all = NULL;
    if (!sinks) return weft__fail_oom(ctx, n_assign * sizeof *sinks, "assignments");
    weft_status status = make_sinks(variables, values, n_assign, sinks);
    weft_walk *walk;
    if (status == WEFT_OK && n_assign && variables[0]->ctx != ctx)
        status = weft__fail(ctx, WEFT_ERR_ARGUMENT, "weft_compile: the variables belong to another context");
    if (status == WEFT_OK)
        status = weft__walk(ctx, outputs, n_outputs, sinks, n_assign, NULL, &walk); /* fails on stale nodes */
    if (status == WEFT_OK) status = weft__all_sinks(ctx, sinks, n_assign, walk, &all);
    if (status == WEFT_OK)
        status = weft__program_new(ctx, outputs, n_outputs, all, n_assign + walk->n_due, NULL, program);
    weft__free(ctx, sinks);
    weft__free(ctx, all);
    if (status == WEFT_OK && (status = hold(*program, outputs, n_outputs)) != WEFT_OK) {
        weft_program_free(*program);
        *program = NULL;
    }
    return status;
}

weft_status weft_program_run(weft_program *program) {
    WEFT_NEED(NULL, program);
    return weft__run_times(program, NULL, 1);
}

bool weft__program_random(const weft_program *program) {
    for (int i = 0; i < program->leaves.count; i++) {
        const weft_tensor *leaf = program->leaves.list[i].fixed;
        if (!leaf || leaf->leaf == WEFT_LEAF_RANDOM) return true;
    }
    return false;
}

bool weft__program_scalar_get(const weft_program *program, size_t i, weft__program_scalar *scalar) {
    for (int k = 0; k < program->leaves.count; k++) {
        const weft_tensor *leaf = program->leaves.list[k].fixed;
        if (!leaf || leaf->leaf == WEFT_LEAF_STORAGE || i-- > 0) continue;
        *scalar = (weft__program_scalar){.tensor = leaf,
                                         .offset = program->leaves.list[k].offset,
                                         .random = leaf->leaf == WEFT_LEAF_RANDOM};
        if (scalar->random)
            weft__random_write(program->ctx, leaf, program->ctx->random.step, (char *)scalar->key);
        return true;
    }
    return false;
}

weft_status weft__run_times(weft_program *program, const weft__ahead *ahead, int times) {
    weft_context *ctx = program->ctx;
    weft_storage *few[16] = {NULL},
                 **storages = program->outputs.count <= 16
                                  ? few
                                  : weft__array(ctx, program->outputs.count, sizeof *storages);
    if (!storages) return weft__fail_oom(ctx, program->outputs.count * sizeof *storages, "a run");
    for (size_t i = 0; i < program->outputs.count; i++) storages[i] = program->results[i]->storage;
    weft_status status = weft__program_run(program, NULL, storages, ahead, times);
    if (storages != few) weft__free(ctx, storages);
    if (status != WEFT_OK) return status;
    ctx->epoch++; /* nodes recorded before that read outputs or variables are stale now */
    for (size_t i = 0; i < program->n_sinks; i++)
        program->sinks[i].variable->storage->write_epoch = ctx->epoch;
    for (size_t i = 0; i < program->outputs.count; i++)
        program->results[i]->storage->write_epoch = ctx->epoch;
    return WEFT_OK;
}

void weft_program_free(weft_program *program) {
    if (!program) return;
    weft_context *ctx = program->ctx;
    if (program->links.next) program->links.next->links.prev = program->links.prev;
    *(program->links.prev ? &program->links.prev->links.next : &ctx->compiler->by_hand) = program->links.next;
    for (size_t i = 0; i < program->n_held; i++) weft__node_let_go(program->held[i]);
    weft__free(ctx, program->held);
    weft__free(ctx, program->results);
    weft__program_free(program);
}
