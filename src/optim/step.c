/* Running a step. Its program is found by the graph of the loss and the layout. It is recorded and compiled
 * only if it is not found.
 * Must not know: formulas. Read next: update.c, compiler/runtime/derive.h. */
#include "autodiff/autodiff.h"
#include "compiler/runtime/derive.h"
#include "compiler/profile/profile.h"
#include "optim/optimizer.h"
#include "process/group.h"

/* The arguments of build(), which weft__derive_run calls. */
typedef struct step_plan {
    weft_optimizer *opt;
    weft_tensor *loss;
    const weft__part *part;
    int parts;
} step_plan;

static weft_status step_build(void *user, weft_context *ctx, weft_derived *derived) {
    const step_plan *p = user;
    weft__sinks sinks;
    weft_status status = weft__optimizer_record(p->opt, p->loss, p->part, p->parts, &sinks);
    for (size_t i = 0; i < sinks.count && status == WEFT_OK; i++)
        status = weft__derived_assign(derived, sinks.variable[i], sinks.value[i]);
    weft__sinks_free(ctx, &sinks);
    return status;
}

static weft_status step_evaluated(void *user, weft_context *ctx, weft_tensor ***list, size_t *count) {
    const step_plan *p = user;
    size_t n = 0;
    if (!p->loss) return WEFT_OK;
    for (size_t b = 0; b < p->opt->n_blocks; b++) n += p->opt->blocks[b].count;
    weft_tensor **wrt = weft__array(ctx, n + 1, sizeof *wrt);
    if (!wrt) return weft__fail_oom(ctx, n * sizeof *wrt, "the parameters of a step");
    n = 0;
    for (size_t b = 0; b < p->opt->n_blocks; b++)
        for (size_t i = 0; i < p->opt->blocks[b].count; i++) wrt[n++] = p->opt->blocks[b].parameters[i];
    const weft_status status = weft__gradient_evaluated(p->loss, wrt, n, list, count);
    weft__free(ctx, wrt);
    return status;
}

/* Checks the loss and updates the layout. */
static weft_status prepare(weft_optimizer *opt, weft_tensor *loss) {
    WEFT_TRY(weft_optimizer_status(opt));
    WEFT_TRY(weft_tensor_status(loss));
    if (weft_context_of(loss) != opt->ctx)
        return weft__fail(opt->ctx, WEFT_ERR_ARGUMENT, "%s: the loss belongs to another context",
                          weft_optimizer_kind(opt));
    char text[WEFT_SHAPE_TEXT];
    if (weft_numel(loss) != 1 || !weft_dtype_is_float(weft_dtype_of(loss)))
        return weft__fail(opt->ctx, WEFT_ERR_SHAPE,
                          "%s: the loss must be one float, it is %s; take its mean or sum",
                          weft_optimizer_kind(opt), weft__tensor_text(loss, text));
    return weft__optimizer_layout(opt);
}

static weft_status set_later(void *user, int runs) { return weft__optimizer_numbers(user, (uint64_t)runs); }

/* ---- the parts of a step ---- */

const weft__part weft__whole_step = {.put = -1, .update = true};

/* The part for micro-batch k, which is not the last one. It adds up the levels that the counter carries. */
static weft__part next_micro_batch(const weft_optimizer *opt, int k) {
    const uint32_t done = (uint32_t)k, carried = done & ~(done + 1);
    const bool own = weft__optimizer_divides_gradients(opt);
    int level = 0;
    if (!opt->hyper.exact_sum) return (weft__part){.take = k > 0, .put = 0, .own = own};
    while (carried >> level & 1) level++;
    return (weft__part){.take = carried, .put = level, .own = own};
}

/* Do the own parts of the sums have another place than the sums of this process? */
static bool receives_apart(const weft_optimizer *opt) {
    return weft__optimizer_receives_parts(opt) && !weft__optimizer_divides_gradients(opt);
}

/* The part for micro-batch k, which is the last one before an update of its own. Linked devices exchange the
 * sums meanwhile. */
static weft__part last_micro_batch_of(const weft_optimizer *opt, int k) {
    weft__part part = next_micro_batch(opt, k);
    part.exchange = weft__optimizer_exchanges(opt);
    part.own = weft__optimizer_receives_parts(opt);
    if (receives_apart(opt)) part.put = WEFT__RECEIVED;
    return part;
}

/* The levels that n micro-batches leave. */
static uint32_t levels_of(const weft_optimizer *opt, int n) {
    return opt->hyper.exact_sum ? (uint32_t)n : n > 0;
}

/* The part that updates the parameters, with the last micro-batch or without one, after n micro-batches whose
 * sums are kept. */
static weft__part update_after(const weft_optimizer *opt, int n) {
    return (weft__part){
        .take = levels_of(opt, n), .put = -1, .own = weft__optimizer_receives_parts(opt), .update = true};
}

/* The update that follows the last of n micro-batches as a program of its own. */
static weft__part update_apart(const weft_optimizer *opt, int n) {
    weft__part part = update_after(opt, n);
    if (receives_apart(opt)) part.take = 1U << WEFT__RECEIVED;
    return part;
}

/* ---- running ---- */

/* Runs the part, without gradients if loss is NULL; or, if `wanted` is not NULL, fills it with the memory
 * plan of its program. */
static weft_status step_run(weft_optimizer *opt, weft_tensor *loss, const weft__part *part, int parts,
                            weft_memory_plan *wanted) {
    step_plan p = {opt, loss, part, parts};
    weft_hash key;
    weft__hash_init(&key);
    weft__hash_str(&key, "optimizer");
    weft__hash_u64(&key, opt->identity); /* stands for layout and options */
    weft__hash_u64(&key, part->take);
    weft__hash_u64(&key, (uint64_t)(part->put + 1));
    weft__hash_u64(&key, (uint64_t)part->own << 1 | part->exchange);
    weft__hash_u64(&key, part->update ? (uint64_t)parts : 0);
    const weft__later_scalars later = {set_later, opt};
    weft_derivation derivation = {.roots = &loss,
                                  .n_roots = loss ? 1 : 0,
                                  .key = key,
                                  .build = step_build,
                                  .evaluated = step_evaluated,
                                  .user = &p,
                                  .later = part->update ? &later : NULL}; /* runs once in each step */
    return wanted ? weft__derive_plan(opt->ctx, &derivation, wanted)
                  : weft__derive_run(opt->ctx, &derivation);
}

static void steps_done(weft_optimizer *opt, uint64_t steps) {
    opt->steps += steps;
    opt->next_part = 0;
    opt->ctx->random.step += steps;
    opt->ctx->random.micro_batch = (uint64_t)weft_process_group_rank(opt->group);
}

/* The level at which the sum of n micro-batches is. -1: there are several sums. */
static int level_of_sum(const weft_optimizer *opt, int n) {
    const uint32_t levels = levels_of(opt, n);
    int level = 0;
    while (levels >> level > 1) level++;
    return levels == 1U << level ? level : -1;
}

static weft_status uneven(const weft_optimizer *opt, int n) {
    return weft__fail(opt->ctx, WEFT_ERR_ARGUMENT,
                      "%s: with exact_sum each optimizer must add 1, 2, 4, 8, ... micro-batches, not %d",
                      weft_optimizer_kind(opt), n);
}

/* Is the update of a step of n micro-batches a program of its own? It is on devices that may have to exchange
 * the sums of gradients by the host. Then exact sums of one process, and of linked devices, have such an
 * update, too: the norm of the gradients depends on the kernel that reads them. */
static bool updates_apart(const weft_optimizer *opt, int n) {
    return (opt->group || (opt->hyper.exact_sum && n > 1)) &&
           (opt->ctx->device->linked || !weft__optimizer_takes_exchanges(opt));
}

/* Adds the gradients of micro-batch k, the last one of a step, and those of the other processes. */
static weft_status add_last_micro_batch(weft_optimizer *opt, weft_tensor *loss, int k) {
    const weft__part part = last_micro_batch_of(opt, k);
    if (!part.exchange) {
        WEFT_TRY(weft_optimizer_add_gradients(opt, loss));
        return opt->group ? weft_optimizer_all_reduce(&opt, 1) : WEFT_OK;
    }
    weft__process_group_purpose(opt->group, opt->steps + 1, "the gradients");
    WEFT_TRY(step_run(opt, loss, &part, 1, NULL));
    opt->next_part = k + 1;
    return WEFT_OK;
}

/* Updates the parameters from sums alone. */
static weft_status run_update(weft_optimizer *opt, const weft__part *part, int parts) {
    weft__sinks sinks;
    WEFT_TRY(weft__optimizer_numbers(opt, 0));
    weft_scope *scope = weft_scope_open(opt->ctx);
    if (!scope) return weft__fail_oom(opt->ctx, 0, "a scope");
    weft_status status = weft__optimizer_record(opt, NULL, part, parts, &sinks);
    if (status == WEFT_OK) status = weft_assign(sinks.variable, sinks.value, sinks.count);
    weft_scope_close(scope);
    weft__sinks_free(opt->ctx, &sinks);
    if (status == WEFT_OK) steps_done(opt, 1);
    return status == WEFT_OK && weft__optimizer_sharded(opt) ? weft__optimizer_share_values(opt) : status;
}

/* Runs the last micro-batch of a step, whose number is k, and updates the parameters. The processes exchange
 * their gradients meanwhile, if the device can; else after the backward pass. */
static weft_status last_micro_batch(weft_optimizer *opt, weft_tensor *loss, int k) {
    const weft__part part = update_after(opt, k), apart = update_apart(opt, k + 1);
    const int processes = weft_process_group_size(opt->group);
    const bool divided = weft__optimizer_divides_gradients(opt);
    if (opt->group && !divided && level_of_sum(opt, k + 1) < 0) return uneven(opt, k + 1);
    if (updates_apart(opt, k + 1)) {
        WEFT_TRY(add_last_micro_batch(opt, loss, k));
        return run_update(opt, &apart, (k + 1) * processes);
    }
    weft__process_group_purpose(opt->group, opt->steps + 1, "the gradients");
    WEFT_TRY(weft__optimizer_numbers(opt, 0));
    WEFT_TRY(step_run(opt, loss, &part, (k + 1) * processes, NULL));
    steps_done(opt, 1);
    return weft__optimizer_sharded(opt) ? weft__optimizer_share_values(opt) : WEFT_OK;
}

weft_status weft_optimizer_step(weft_optimizer *opt, weft_tensor *loss) {
    WEFT_NEED(NULL, opt);
    WEFT_NEED(opt->ctx, loss);
    WEFT_TRY(prepare(opt, loss));
    if (opt->next_part) opt->next_part = 0; /* gives up an unfinished accumulation */
    return last_micro_batch(opt, loss, 0);
}

weft_status weft_optimizer_accumulate(weft_optimizer *opt, weft_tensor *loss, int index, int count) {
    WEFT_NEED(NULL, opt);
    WEFT_NEED(opt->ctx, loss);
    WEFT_TRY(weft_optimizer_status(opt));
    if (count < 1 || index < 0 || index >= count || (index != 0 && index != opt->next_part))
        return weft__fail(
            opt->ctx, WEFT_ERR_ARGUMENT,
            "%s: micro-batch %d of %d: micro-batches are numbered 0, 1, ... in order, and the next one is %d",
            weft_optimizer_kind(opt), index, count, opt->next_part);
    if (count == 1) return weft_optimizer_step(opt, loss);
    if (index == 0) opt->next_part = 0;
    WEFT_TRY(prepare(opt, loss));
    if (index == count - 1) return last_micro_batch(opt, loss, index);
    const weft__part part = next_micro_batch(opt, index);
    weft__process_group_purpose(opt->group, opt->steps + 1, "the gradients");
    WEFT_TRY(step_run(opt, loss, &part, count, NULL));
    opt->next_part = index + 1;
    opt->ctx->random.micro_batch =
        (uint64_t)weft_optimizer_batch_number(opt, index + 1, count); /* of nodes recorded next */
    return WEFT_OK;
}

/* ---- steps that several optimizers share ---- */

int weft_optimizer_batch_number(const weft_optimizer *opt, int index, int count) {
    if (!opt) return index;
    const int rank = weft_process_group_rank(opt->group), size = weft_process_group_size(opt->group);
    return weft__optimizer_divides_gradients(opt) ? index * size + rank : rank * count + index;
}

weft_status weft_optimizer_micro_batch(weft_optimizer *opt, int k) {
    WEFT_NEED(NULL, opt);
    WEFT_TRY(weft_optimizer_status(opt));
    if (k < 0)
        return weft__fail(opt->ctx, WEFT_ERR_ARGUMENT,
                          "%s: micro-batch %d of a step: the number must not be negative",
                          weft_optimizer_kind(opt), k);
    opt->ctx->random.micro_batch = (uint64_t)k;
    return WEFT_OK;
}

weft_status weft_optimizer_add_gradients(weft_optimizer *opt, weft_tensor *loss) {
    WEFT_NEED(NULL, opt);
    WEFT_NEED(opt->ctx, loss);
    WEFT_TRY(prepare(opt, loss));
    if (weft__optimizer_divides_gradients(opt))
        return weft__fail(
            opt->ctx, WEFT_ERR_STATE,
            "weft_optimizer_add_gradients: the gradients are divided among processes, which add them "
            "up at once: use weft_optimizer_accumulate");
    const weft__part part = next_micro_batch(opt, opt->next_part);
    WEFT_TRY(step_run(opt, loss, &part, 1, NULL));
    opt->next_part++;
    return WEFT_OK;
}

/* Checks that the sums of an optimizer are those of equally many micro-batches as the first one's. */
static weft_status comparable_sums(const weft_optimizer *first, const weft_optimizer *other) {
    if (first->hyper.exact_sum != other->hyper.exact_sum ||
        (first->hyper.exact_sum && first->next_part != other->next_part))
        return weft__fail(first->ctx, WEFT_ERR_ARGUMENT,
                          "%s: with exact_sum all optimizers must have it, and equally many micro-batches",
                          weft_optimizer_kind(first));
    return level_of_sum(first, first->next_part) < 0 ? uneven(first, first->next_part) : WEFT_OK;
}

/* Checks that the gradient sums of all optimizers have the same blocks. */
static weft_status comparable(weft_optimizer *const *list, size_t n) {
    weft_context *ctx = list[0]->ctx;
    for (size_t i = 0; i < n; i++) {
        if (!list[i]->next_part)
            return weft__fail(ctx, WEFT_ERR_STATE, "%s: optimizer %zu of %zu has accumulated no gradients",
                              weft_optimizer_kind(list[0]), i, n);
        bool same = list[i]->n_blocks == list[0]->n_blocks;
        for (size_t b = 0; same && b < list[0]->n_blocks; b++)
            same = list[i]->blocks[b].wide == list[0]->blocks[b].wide &&
                   weft_numel(list[i]->blocks[b].values) == weft_numel(list[0]->blocks[b].values);
        if (!same)
            return weft__fail(ctx, WEFT_ERR_SHAPE,
                              "%s: optimizer %zu of %zu trains other parameters than the first",
                              weft_optimizer_kind(list[0]), i, n);
        WEFT_TRY(comparable_sums(list[0], list[i]));
    }
    return WEFT_OK;
}

weft_status weft_optimizer_all_reduce(weft_optimizer *const *optimizers, size_t n) {
    WEFT_NEED(NULL, optimizers);
    if (n == 0)
        return weft__fail(NULL, WEFT_ERR_ARGUMENT,
                          "weft_optimizer_all_reduce: n is 0; give at least one optimizer");
    WEFT_NEED_ARRAY(NULL, optimizers, n);
    for (size_t i = 0; i < n; i++) WEFT_TRY(weft_optimizer_status(optimizers[i]));
    weft_context *ctx = optimizers[0]->ctx;
    WEFT_TRY(comparable(optimizers, n));
    weft_process_group *group = optimizers[0]->group;
    if (weft__optimizer_divides_gradients(optimizers[0]))
        return weft__fail(
            ctx, WEFT_ERR_STATE,
            "weft_optimizer_all_reduce: the gradients are divided among processes, which have added "
            "them up already: use weft_optimizer_accumulate");
    if (n > 1 && weft__optimizer_sharded(optimizers[0]))
        return weft__fail(
            ctx, WEFT_ERR_STATE,
            "weft_optimizer_all_reduce: the state of the first optimizer is divided among processes, which "
            "must then have one optimizer each");
    if (n == 1 && !group) return WEFT_OK;
    weft__process_group_purpose(group, optimizers[0]->steps + 1, "the gradients");
    const int level = level_of_sum(optimizers[0], optimizers[0]->next_part);
    weft_tensor **sums = weft__array(ctx, n, sizeof *sums);
    weft_status status = sums ? WEFT_OK : weft__fail_oom(ctx, n * sizeof *sums, "a list of sums");
    for (size_t b = 0; b < optimizers[0]->n_blocks && status == WEFT_OK; b++) {
        for (size_t i = 0; i < n; i++) sums[i] = optimizers[i]->blocks[b].sums[level];
        status = weft__sum_shared(sums, n, group, optimizers[0]->hyper.exact_sum);
    }
    weft__free(ctx, sums);
    return status;
}

weft_status weft_optimizer_update(weft_optimizer *opt, int parts) {
    WEFT_NEED(NULL, opt);
    WEFT_TRY(weft_optimizer_status(opt));
    if (parts < 1 || !opt->next_part)
        return weft__fail(
            opt->ctx, WEFT_ERR_STATE,
            "%s: no gradients were accumulated, or the number of micro-batches, %d, is not positive",
            weft_optimizer_kind(opt), parts);
    weft__part part = update_after(opt, opt->next_part);
    part.own = weft__optimizer_divides_gradients(opt); /* sums were added up by weft_optimizer_all_reduce */
    return run_update(opt, &part, parts);
}

/* ---- planning and holding a step ---- */

static uint64_t step_bytes_of(const weft_tensor *t) {
    return t ? (uint64_t)weft_numel(t) * weft_dtype_size(weft_dtype_of(t)) : 0;
}

/* Subtracts a block of the optimizer from the data of the plan, if the planned program reads it. The caller
 * counts it as parameters or states. */
static void leave_out(const weft_optimizer *opt, const weft_tensor *block, weft_memory_plan *out) {
    if (block && block->storage->mark == opt->ctx->visit)
        out->kinds[WEFT_MEMORY_DATA] -= block->storage->bytes;
}

/* The bytes of a state that is not allocated yet, and that another program of the step uses. */
static uint64_t unplanned_bytes(const weft_optimizer *opt, const weft_tensor *state) {
    const bool counted = !state || state->storage->buffer || state->storage->mark == opt->ctx->visit;
    return counted ? 0 : step_bytes_of(state);
}

/* The number of gradient sums that a step of so many micro-batches keeps. An optimizer that updates
 * afterwards also keeps the sum of all of them. */
static int sums_of(const weft_optimizer *opt, int of) {
    int count = 0, kept = updates_apart(opt, of) && !receives_apart(opt) ? of : of - 1;
    while (opt->hyper.exact_sum && kept >> count) count++;
    return count > 0 ? count : 1;
}

/* Counts the values of a block as parameters. */
static void plan_values(const weft_optimizer *opt, const weft__block *block, weft_memory_plan *plan) {
    const weft_tensor *values = block->divided ? weft__division_own(block->divided) : block->values,
                      *rounded = block->divided ? weft__division_own(block->divided_rounded) : block->rounded;
    plan->parameters += step_bytes_of(values) + step_bytes_of(rounded);
    leave_out(opt, values, plan);
    leave_out(opt, rounded, plan);
}

/* Counts the frozen parameters that the planned program reads as parameters, and no longer as data. */
static void plan_frozen(const weft_optimizer *opt, weft_memory_plan *plan) {
    weft_parameter_info info;
    for (size_t i = 0; weft_parameter_get(opt->module, i, &info); i++) {
        if (!info.frozen || info.tensor->storage->mark != opt->ctx->visit) continue;
        leave_out(opt, info.tensor, plan);
        plan->parameters += step_bytes_of(info.tensor);
    }
}

/* Lists the parts of a step that differ in memory: the first micro-batch writes its gradients as the sum,
 * later ones need memory for theirs, and the last one may update. Returns their number. */
static int differing_parts(const weft_optimizer *opt, int of, weft__part parts[3]) {
    const bool apart = updates_apart(opt, of);
    int n = 0;
    parts[n++] = of > 1  ? next_micro_batch(opt, 0)
                 : apart ? last_micro_batch_of(opt, 0)
                         : update_after(opt, 0);
    if (of > (apart ? 1 : 2)) parts[n++] = next_micro_batch(opt, 1);
    if (of > 1) parts[n++] = apart ? last_micro_batch_of(opt, of - 1) : update_after(opt, of - 1);
    return n;
}

/* Plans such an update. It is a program of its own, in the same arena.
 * Returns the bytes of its results. The sums must exist. */
static weft_status plan_update(weft_optimizer *opt, int of, uint64_t *bytes) {
    weft_memory_plan update = {0};
    const weft__part part = update_apart(opt, of);
    *bytes = 0;
    if (!updates_apart(opt, of)) return WEFT_OK;
    WEFT_TRY(step_run(opt, NULL, &part, of * weft_process_group_size(opt->group), &update));
    *bytes = update.work;
    return WEFT_OK;
}

/* Plans the part that needs the most memory for its results. It is planned last, so that its leaves are
 * marked. */
static weft_status plan_parts(weft_optimizer *opt, weft_tensor *loss, int of, weft_memory_plan *plan) {
    weft__part parts[3];
    const int n = differing_parts(opt, of, parts), all = of * weft_process_group_size(opt->group);
    uint64_t most = 0, update = 0;
    int largest = 0;
    for (int i = 0; i < n; i++) {
        *plan = (weft_memory_plan){0};
        WEFT_TRY(step_run(opt, loss, &parts[i], all, plan));
        if (plan->work > most) largest = i, most = plan->work;
    }
    WEFT_TRY(plan_update(opt, of, &update));
    *plan = (weft_memory_plan){0};
    WEFT_TRY(step_run(opt, loss, &parts[largest], all, plan));
    const uint64_t more =
        update > most ? update - most : 0; /* its peak comes when the activations are gone */
    plan->kinds[WEFT_MEMORY_SCRATCH] += more;
    plan->pending += more;
    plan->work += more;
    return WEFT_OK;
}

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* Memory of the host that the exchange of a block's gradients takes: of one piece after the other, or of the
 * whole block. A device whose memory the host cannot change needs a copy of the numbers there. */
static uint64_t gradient_exchange_bytes(const weft_optimizer *opt, const weft__block *block) {
    const size_t count = (size_t)weft_numel(block->values);
    const bool exact = opt->hyper.exact_sum, parts = weft__optimizer_receives_parts(opt),
               meanwhile = weft__optimizer_exchanges(opt);
    uint64_t bytes = 0;
    for (size_t i = 0; i < block->n_pieces && meanwhile; i++)
        bytes = larger(bytes, parts ? weft__process_group_scatter_bytes(opt->group, block->wide,
                                                                        (size_t)block->slices[i].each)
                                    : weft__process_group_sum_bytes(opt->group, block->wide,
                                                                    (size_t)block->pieces[i].n, exact));
    if (!meanwhile) bytes = weft__process_group_sum_bytes(opt->group, block->wide, count, exact);
    return opt->ctx->device->overlaps ? bytes + count * weft_dtype_size(block->wide) : bytes;
}

/* Memory of the host that all exchanges of a step take. */
static uint64_t exchange_bytes(const weft_optimizer *opt) {
    uint64_t most = 0;
    for (size_t b = 0; b < opt->n_blocks && opt->group && !opt->ctx->link; b++) {
        const weft__block *block = &opt->blocks[b];
        const size_t size = weft_dtype_size(block->dtype);
        most = larger(most, gradient_exchange_bytes(opt, block));
        most = larger(most, weft__norm_exchange_bytes(opt, block));
        for (size_t i = 0; i < block->n_slices; i++)
            most = larger(most, (weft__optimizer_divides_parameters(opt) ? weft__process_group_gather_bytes
                                                                         : weft__process_group_collect_bytes)(
                                    opt->group, (size_t)block->slices[i].each * size));
    }
    return most;
}

/* Counts the memory in which linked devices receive gradients. */
static void plan_link(const weft_optimizer *opt, weft_memory_plan *plan) {
    const weft_linked *linked = opt->ctx->device->linked;
    int64_t most = 0;
    for (size_t b = 0; b < opt->n_blocks && linked; b++)
        for (size_t i = 0; i < opt->blocks[b].n_pieces; i++) {
            const weft__block *block = &opt->blocks[b];
            const weft_heavy_exchange piece = {
                .dtype = (uint8_t)block->wide,
                .exact = opt->hyper.exact_sum,
                .n = block->pieces[i].n,
                .part = weft__optimizer_receives_parts(opt) ? block->slices[i].each : 0};
            const int64_t bytes = weft__exchange_received(&piece, linked->size);
            if (bytes > most) most = bytes;
        }
    plan->kinds[WEFT_MEMORY_SCRATCH] += (uint64_t)most;
    plan->pending += (uint64_t)most;
    plan->work += (uint64_t)most;
}

weft_status weft_optimizer_plan(weft_optimizer *opt, weft_tensor *loss, int of, weft_memory_plan *plan) {
    WEFT_NEED(NULL, opt);
    WEFT_NEED(opt->ctx, loss);
    WEFT_NEED(opt->ctx, plan);
    WEFT_TRY(weft_optimizer_status(opt));
    if (of < 1)
        return weft__fail(opt->ctx, WEFT_ERR_ARGUMENT, "%s: a plan needs at least one micro-batch",
                          weft_optimizer_kind(opt));
    *plan = (weft_memory_plan){0};
    WEFT_TRY(prepare(opt, loss));
    WEFT_TRY(plan_parts(opt, loss, of, plan));
    for (size_t b = 0; b < opt->n_blocks; b++) {
        plan_values(opt, &opt->blocks[b], plan);
        plan->states += step_bytes_of(opt->blocks[b].sums[0]) * (uint64_t)sums_of(opt, of) +
                        step_bytes_of(opt->blocks[b].sums[WEFT__RECEIVED]);
        for (int l = 0; l < WEFT__SUMS; l++) leave_out(opt, opt->blocks[b].sums[l], plan);
        for (size_t s = 0; s < weft__optimizer_states(opt); s++) {
            const weft_tensor *state = opt->blocks[b].state[s];
            leave_out(opt, state, plan);
            plan->states += step_bytes_of(state);
            plan->pending += unplanned_bytes(opt, state);
        }
    }
    plan_frozen(opt, plan);
    plan_link(opt, plan);
    plan->exchange = exchange_bytes(opt);
    plan->kinds[WEFT_MEMORY_PARAMETERS] = plan->parameters;
    plan->kinds[WEFT_MEMORY_STATES] = plan->states;
    return WEFT_OK;
}

weft_status weft_optimizer_hold(weft_optimizer *opt, weft_tensor *loss, weft_program **program) {
    WEFT_NEED(NULL, opt);
    WEFT_NEED(opt->ctx, loss);
    WEFT_NEED(opt->ctx, program);
    if (opt->group)
        return weft__fail(opt->ctx, WEFT_ERR_STATE,
                          "weft_optimizer_hold: the optimizer has joined other processes, with which a held "
                          "step exchanges nothing: use weft_optimizer_step");
    WEFT_TRY(prepare(opt, loss));
    weft__sinks sinks;
    weft__span span = weft__profile_enter(opt->ctx, WEFT__DOING_COMPILE);
    weft_status status = weft__optimizer_record(opt, loss, &weft__whole_step, 1, &sinks);
    weft__profile_leave(opt->ctx, span);
    if (status == WEFT_OK) status = weft_compile(&loss, 1, sinks.variable, sinks.value, sinks.count, program);
    weft__sinks_free(opt->ctx, &sinks);
    opt->held = opt->held || status == WEFT_OK;
    return status;
}

/* Whether the next step reads the same numbers as all later ones. Then many steps can run at once. */
static bool settled(const weft_optimizer *opt, const weft_program *program) {
    return !weft__optimizer_corrects(opt) && opt->schedule.kind == WEFT_SCHEDULE_CONSTANT &&
           opt->steps >= opt->schedule.warmup && program && !weft__program_random(program);
}

weft_status weft_optimizer_run_many(weft_optimizer *opt, weft_program *program, uint64_t steps) {
    WEFT_NEED(NULL, opt);
    WEFT_NEED(opt->ctx, program);
    const weft__later_scalars later = {set_later, opt};
    while (steps > 0) {
        WEFT_TRY(weft_optimizer_status(opt));
        WEFT_TRY(weft__optimizer_layout(opt));
        WEFT_TRY(weft__optimizer_numbers(opt, 0));
        const bool same = steps > 1 && settled(opt, program);
        const int most = same ? 1 << 20 /* so that a fault is reported soon */ : weft__runs_at_once(program);
        const int times = steps < (uint64_t)most ? (int)steps : most;
        WEFT_TRY(weft__run_times(program, same ? NULL : &later, times));
        steps_done(opt, (uint64_t)times);
        steps -= (uint64_t)times;
    }
    return WEFT_OK;
}

weft_status weft_optimizer_run(weft_optimizer *opt, weft_program *program) {
    WEFT_NEED(NULL, opt);
    WEFT_NEED(opt->ctx, program);
    return weft_optimizer_run_many(opt, program, 1);
}
