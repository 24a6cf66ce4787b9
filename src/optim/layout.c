/* The layout: which parameters are trained, in which group, and where they lie. There is one block a dtype.
 * Within it parameters are sorted by rate, decay and L1 penalty, so that a group is a range:
 *
 *     values   | W1 W2 W3 (decay 0.1)      | b1 b2 (decay 0) |    state blocks have the same offsets
 *              range 0 --------------- end | range 1 --- end |
 *
 * Must not know: formulas. Read next: graph/variable.h, update.c. */
#include <stdio.h>
#include <string.h>
#include "base/option.h"
#include "base/text.h"
#include "optim/optimizer.h"
#include "ops/build.h"

size_t weft__optimizer_states(const weft_optimizer *opt) {
    switch (opt->kind) {
    case WEFT__SGD: return opt->hyper.momentum != 0.0;
    case WEFT__RMSPROP: return opt->hyper.momentum != 0.0 ? 2 : 1;
    case WEFT__ADAM:
    case WEFT__ADAMW: return 2;
    }
    return 0;
}

const char *weft__optimizer_state_name(const weft_optimizer *opt, size_t i) {
    static const char *const adam[] = {"m", "v"}, *const rmsprop[] = {"v", "momentum"};
    if (opt->kind == WEFT__SGD) return "momentum";
    return opt->kind == WEFT__RMSPROP ? rmsprop[i] : adam[i];
}

/* ---- groups ---- */

static bool in_group(const weft__group *group, const weft_parameter_info *info) {
    return group->pattern ? weft__matches(group->pattern, info->name) : group->match(group->user, info);
}

static void assign_group(const weft_optimizer *opt, weft__slot *slot, const weft_parameter_info *info) {
    bool decays = !opt->hyper.decay_matrices_only || weft_rank(info->tensor) >= 2;
    slot->lr_scale = 1.0;
    slot->weight_decay = decays ? opt->hyper.weight_decay : 0.0;
    slot->l1 = decays ? opt->hyper.l1 : 0.0;
    for (size_t i = opt->n_groups; i-- > 0;)
        if (in_group(&opt->groups[i], info)) {
            slot->lr_scale = opt->groups[i].lr_scale;
            slot->weight_decay = opt->groups[i].weight_decay;
            slot->l1 = opt->groups[i].l1;
            return;
        }
}

weft_status weft_optimizer_group(weft_optimizer *opt, const weft_group_options *options) {
    WEFT_NEED(NULL, opt);
    WEFT_NEED(opt->ctx, options);
    WEFT_TRY(weft_optimizer_status(opt));
    weft_context *ctx = opt->ctx;
    if (opt->held || opt->next_part)
        return weft__fail(ctx, WEFT_ERR_STATE,
                          "weft_optimizer_group: a step is %s: add groups before or after it",
                          opt->held ? "held" : "being accumulated");
    if ((!options->pattern && !options->match) || !(options->lr_scale >= 0.0) ||
        !(options->weight_decay >= 0.0) || !(options->l1 >= 0.0))
        return weft__fail(
            ctx, WEFT_ERR_ARGUMENT,
            "weft_optimizer_group: give a pattern or a function, and an lr_scale, a weight_decay "
            "and an l1 that are not negative");
    weft__group group = {options->pattern ? weft__intern(ctx, options->pattern) : NULL,
                         options->match,
                         options->user,
                         weft__value_or(options->lr_scale, 1),
                         options->weight_decay,
                         options->l1};
    weft_parameter_info info;
    size_t matched = 0;
    if (options->pattern && !group.pattern)
        return weft__fail_oom(ctx, strlen(options->pattern) + 1, "a parameter group");
    for (size_t i = 0; weft_parameter_get(opt->module, i, &info); i++)
        matched += !info.buffer && in_group(&group, &info);
    if (!matched)
        return weft__fail(ctx, WEFT_ERR_ARGUMENT, "weft_optimizer_group: no parameter matches '%s'",
                          group.pattern ? group.pattern : "the function");
    if (!weft__grow(ctx, &opt->groups, &opt->cap_groups, opt->n_groups, sizeof *opt->groups))
        return weft__fail_oom(ctx, sizeof *opt->groups, "a parameter group");
    opt->groups[opt->n_groups++] = group;
    opt->laid_out = false;
    return weft__optimizer_layout(opt);
}

/* ---- slots ---- */

static weft_status slot_state(weft_optimizer *opt, weft__slot *slot, size_t s) {
    weft_context *ctx = opt->ctx;
    const weft_tensor *parameter = slot->parameter;
    const char *prefix = weft__optimizer_state_name(opt, s);
    const size_t bytes = strlen(prefix) + strlen(slot->name) + 2;
    char *name = weft__alloc(ctx, bytes);
    if (!name) return weft__fail_oom(ctx, bytes, "a state's name");
    snprintf(name, bytes, "%s.%s", prefix, slot->name);
    slot->state[s] = weft_variable_new(ctx, name, weft_dtype_of(parameter), weft_rank(parameter),
                                       weft_shape(parameter), NULL);
    weft__free(ctx, name);
    return weft_tensor_status(slot->state[s]);
}

static weft_status slot_of(weft_optimizer *opt, const weft_parameter_info *info, weft__slot **out) {
    for (size_t i = 0; i < opt->n_slots; i++)
        if (opt->slots[i].parameter == info->tensor) {
            *out = &opt->slots[i];
            return WEFT_OK;
        }
    weft_context *ctx = opt->ctx;
    if (!weft__grow(ctx, &opt->slots, &opt->cap_slots, opt->n_slots, sizeof *opt->slots))
        return weft__fail_oom(ctx, sizeof *opt->slots, "an optimizer's state");
    weft__slot slot = {.parameter = info->tensor, .name = info->name};
    for (size_t s = 0; s < weft__optimizer_states(opt); s++) {
        const weft_status status = slot_state(opt, &slot, s);
        if (status == WEFT_OK) continue;
        if (s) weft_free(slot.state[0]);
        return status;
    }
    opt->slots[opt->n_slots] = slot;
    *out = &opt->slots[opt->n_slots++];
    return WEFT_OK;
}

/* Marks the slots of all parameters that are trained now. */
static weft_status find_trained(weft_optimizer *opt) {
    WEFT_TRY(weft_module_prepare(opt->module));
    for (size_t i = 0; i < opt->n_slots; i++) opt->slots[i].trained = false;
    weft_parameter_info info;
    size_t trained = 0;
    for (size_t i = 0; weft_parameter_get(opt->module, i, &info); i++) {
        if (info.frozen || info.buffer) continue;
        weft__slot *slot = NULL;
        WEFT_TRY(slot_of(opt, &info, &slot));
        slot->trained = true;
        slot->compute = info.compute;
        assign_group(opt, slot, &info);
        trained++;
    }
    if (trained) return WEFT_OK;
    return weft__fail(opt->ctx, WEFT_ERR_ARGUMENT, "%s: the module has no parameter to train%s",
                      weft_optimizer_kind(opt), weft_parameter_count(opt->module) ? ", all are frozen" : "");
}

/* ---- blocks ---- */

static void release_block(weft_context *ctx, weft__block *block) {
    if (block->rounded) block->values->storage->rounded = NULL;
    weft__division_release(ctx, block->divided);
    weft__division_release(ctx, block->divided_rounded);
    weft_free(block->rounded);
    weft__slices_release(ctx, block);
    weft_free(block->values);
    for (size_t s = 0; s < WEFT__STATES; s++) weft_free(block->state[s]);
    for (int l = 0; l < WEFT__SUMS; l++) weft_free(block->sums[l]);
    for (size_t r = 0; r < block->n_ranges; r++) {
        weft_free(block->ranges[r].step.scalar);
        weft_free(block->ranges[r].decay.scalar);
        weft_free(block->ranges[r].shrink.scalar);
    }
    weft_free(block->epsilon.scalar);
    weft__free(ctx, block->parameters);
    weft__free(ctx, block->offsets);
    weft__free(ctx, block->ranges);
    weft__free(ctx, block->pieces);
    *block = (weft__block){0};
}

void weft__optimizer_release(weft_optimizer *opt) {
    for (size_t i = 0; i < opt->n_blocks; i++) release_block(opt->ctx, &opt->blocks[i]);
    opt->n_blocks = 0;
    opt->laid_out = false;
}

static weft_status make_number(weft_context *ctx, weft_dtype dtype, weft__step_number *number) {
    *number = (weft__step_number){weft_keep(weft_scalar_of(ctx, dtype, 0.0)), 0.0};
    return weft_tensor_status(number->scalar);
}

static bool same_range(const weft__slot *a, const weft__slot *b) {
    return a->lr_scale == b->lr_scale && a->weight_decay == b->weight_decay && a->l1 == b->l1;
}

static bool belongs(const weft__slot *slot, weft_dtype dtype) {
    return slot->trained && weft__part_dtype(weft_dtype_of(slot->parameter)) == dtype;
}

/* Sorts the trained slots of a dtype so that slots of one range are adjacent. Ranges keep the order of their
 * first slots. Returns the number of slots. */
static size_t sort_slots(weft_optimizer *opt, weft_dtype dtype, weft__slot **sorted) {
    size_t n = 0;
    for (size_t i = 0; i < opt->n_slots; i++) {
        weft__slot *first = &opt->slots[i];
        bool done = !belongs(first, dtype);
        for (size_t j = 0; j < n && !done; j++) done = same_range(sorted[j], first);
        for (size_t j = i; j < opt->n_slots && !done; j++) {
            weft__slot *slot = &opt->slots[j];
            if (belongs(slot, dtype) && same_range(slot, first)) sorted[n++] = slot;
        }
    }
    return n;
}

/* Moves parameters and states into blocks and notes the offsets. */
static weft_status layout_place(weft_optimizer *opt, weft__block *block, weft__slot *const *sorted,
                                size_t n) {
    weft_context *ctx = opt->ctx;
    block->count = n;
    block->parameters = weft__array(ctx, n, sizeof *block->parameters);
    block->offsets = weft__array(ctx, n, sizeof *block->offsets);
    weft_tensor **list = weft__array(ctx, n, sizeof *list);
    weft_status status = WEFT_OK;
    if (!block->parameters || !block->offsets || !list)
        status = weft__fail_oom(ctx, n * sizeof *list, "an optimizer's layout");
    for (size_t i = 0; status == WEFT_OK && i < n; i++) block->parameters[i] = sorted[i]->parameter;
    if (status == WEFT_OK)
        status = weft__variables_place(ctx, "parameters", block->parameters, n, &block->values);
    for (size_t s = 0; status == WEFT_OK && s < weft__optimizer_states(opt); s++) {
        char name[64];
        snprintf(name, sizeof name, "%s %s", weft_optimizer_kind(opt), weft__optimizer_state_name(opt, s));
        for (size_t i = 0; i < n; i++) list[i] = sorted[i]->state[s];
        status = weft__variables_place(ctx, name, list, n, &block->state[s]);
    }
    for (size_t i = 0; status == WEFT_OK && i < n; i++)
        block->offsets[i] = weft__variable_offset(block->parameters[i]);
    weft__free(ctx, list);
    return status;
}

static weft_status round_block(void *rounder) {
    weft__block *block = rounder;
    weft_scope *scope = weft_scope_open(block->values->ctx);
    if (!scope) return weft__fail_oom(block->values->ctx, 0, "a scope");
    weft_tensor *values = weft_cast_at(NULL, block->values, weft_dtype_of(block->rounded));
    weft_status status = weft_assign(&block->rounded, &values, 1);
    weft_scope_close(scope);
    return status;
}

weft_status weft__optimizer_round(weft_optimizer *opt) {
    for (size_t b = 0; b < opt->n_blocks; b++) {
        weft__block *block = &opt->blocks[b];
        if (block->rounded && block->rounded->storage->write_epoch < block->values->storage->write_epoch)
            WEFT_TRY(block->divided ? weft__round_parts(block) : round_block(block));
    }
    return WEFT_OK;
}

/* Makes the rounded copy if layers compute in 16 bits. The update then writes it with the parameters, so they
 * are rounded once a step by one kernel, not one by one. Only one 16-bit dtype a block is served. */
static weft_status make_rounded(weft_optimizer *opt, weft__block *block, weft__slot *const *sorted,
                                size_t n) {
    weft_dtype compute = block->dtype;
    for (size_t i = 0; i < n && compute == block->dtype; i++) compute = weft__part_dtype(sorted[i]->compute);
    if (block->dtype != WEFT_F32 || compute == WEFT_F32) return WEFT_OK;
    int64_t numel = weft_numel(block->values);
    weft_tensor *rounded = weft_variable_new(opt->ctx, "rounded parameters", compute, 1, &numel, NULL);
    WEFT_TRY(weft_tensor_status(rounded));
    block->rounded = rounded;
    block->values->storage->rounded = rounded;
    block->values->storage->round = round_block;
    block->values->storage->rounder = block;
    return WEFT_OK;
}

static weft_status make_ranges(weft_optimizer *opt, weft__block *block, weft__slot *const *sorted, size_t n) {
    weft_context *ctx = opt->ctx;
    block->ranges = weft__array(ctx, n, sizeof *block->ranges);
    if (!block->ranges) return weft__fail_oom(ctx, n * sizeof *block->ranges, "parameter groups");
    for (size_t i = 0; i < n; i++) {
        if (i && same_range(sorted[i - 1], sorted[i])) continue;
        weft__range *range = &block->ranges[block->n_ranges++];
        if (i) range[-1].end = block->offsets[i];
        range->end = weft_numel(block->values);
        range->lr_scale = sorted[i]->lr_scale;
        range->weight_decay = sorted[i]->weight_decay;
        range->l1 = sorted[i]->l1;
        WEFT_TRY(make_number(ctx, block->wide, &range->step));
        WEFT_TRY(make_number(ctx, block->wide, &range->decay));
        WEFT_TRY(make_number(ctx, block->wide, &range->shrink));
    }
    return make_number(ctx, block->wide, &block->epsilon);
}

static weft_status make_blocks(weft_optimizer *opt, weft__slot **sorted) {
    static const weft_dtype dtypes[WEFT__BLOCKS] = {WEFT_F32, WEFT_F64, WEFT_F16, WEFT_BF16};
    for (size_t d = 0; d < WEFT__BLOCKS; d++) {
        size_t n = sort_slots(opt, dtypes[d], sorted);
        if (!n) continue;
        weft__block *block = &opt->blocks[opt->n_blocks++];
        *block = (weft__block){.dtype = dtypes[d], .wide = dtypes[d] == WEFT_F64 ? WEFT_F64 : WEFT_F32};
        WEFT_TRY(layout_place(opt, block, sorted, n));
        WEFT_TRY(make_rounded(opt, block, sorted, n));
        WEFT_TRY(make_ranges(opt, block, sorted, n));
        WEFT_TRY(weft__make_pieces(opt, block, sorted));
    }
    weft__number_pieces(opt);
    return WEFT_OK;
}

/* Whether every trained parameter still lies in its block. Another optimizer may have moved it. */
static bool in_place(const weft_optimizer *opt) {
    for (size_t b = 0; b < opt->n_blocks; b++) {
        const weft__block *block = &opt->blocks[b];
        for (size_t i = 0; i < block->count; i++)
            if (block->parameters[i]->storage != block->values->storage) return false;
    }
    return true;
}

static weft_status make_norm(weft_optimizer *opt) {
    if (opt->norm || !(opt->hyper.track_norm || opt->hyper.clip > 0.0)) return WEFT_OK;
    bool wide = false;
    for (size_t b = 0; b < opt->n_blocks; b++) wide |= opt->blocks[b].wide == WEFT_F64;
    opt->norm = weft_variable_new(opt->ctx, "grad_norm", wide ? WEFT_F64 : WEFT_F32, 0, NULL, NULL);
    weft_status status = weft_tensor_status(opt->norm);
    if (status != WEFT_OK) opt->norm = NULL;
    return status;
}

weft_status weft__optimizer_layout(weft_optimizer *opt) {
    uint64_t freezes = weft_module_freeze_count(opt->module);
    if (opt->laid_out && opt->freeze_count == freezes && in_place(opt)) return WEFT_OK;
    if (opt->held || opt->next_part || weft__optimizer_sharded(opt))
        return weft__fail(opt->ctx, WEFT_ERR_STATE,
                          "%s: parameters were frozen, thawed or moved while %s: make a new optimizer",
                          weft_optimizer_kind(opt),
                          opt->held        ? "a step is held"
                          : opt->next_part ? "a step is being accumulated"
                                           : "the state is divided");
    weft__optimizer_release(opt);
    WEFT_TRY(find_trained(opt));
    weft__slot **sorted = weft__array(opt->ctx, opt->n_slots, sizeof *sorted);
    if (!sorted) return weft__fail_oom(opt->ctx, opt->n_slots * sizeof *sorted, "an optimizer's layout");
    weft_status status = make_blocks(opt, sorted);
    weft__free(opt->ctx, sorted);
    if (status == WEFT_OK) status = make_norm(opt);
    if (status != WEFT_OK) {
        weft__optimizer_release(opt);
        return status;
    }
    opt->identity = ++opt->ctx->identities;
    opt->freeze_count = freezes;
    opt->laid_out = true;
    return WEFT_OK;
}
