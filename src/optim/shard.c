/* State that is divided among processes: ZeRO stage 1 (Rajbhandari et al. 2020, "ZeRO: Memory Optimizations
 * Toward Training Trillion Parameter Models", section 5.1). Each process keeps the states of a range of each
 * block and updates the parameters there.
 *
 *     values   | rank 0 updates | rank 1 updates | rank 2 |     each process has all values
 *     state                     | here in rank 1 |
 *
 * Must not know: formulas, files. Read next: update.c, join.c, state.c. */
#include <string.h>

#include "compiler/profile/profile.h"
#include "optim/optimizer.h"
#include "process/group.h"

enum { ALIGNED = 16 }; /* elements: parts begin at a multiple of 64 bytes */

/* ---- dividing ---- */

/* Chooses the range of this process, and makes the variable of its values. */
static weft_status take_range(const weft_optimizer *opt, weft__block *block) {
    const int64_t n = weft_numel(block->values), size = weft_process_group_size(opt->group),
                  rank = weft_process_group_rank(opt->group);
    block->each = ((n + size - 1) / size + ALIGNED - 1) / ALIGNED * ALIGNED;
    block->from = rank * block->each < n ? rank * block->each : n;
    block->own = block->from + block->each < n ? block->each : n - block->from;
    if (block->own == 0) {
        const int64_t one = 1;
        block->witness = weft_variable_new(opt->ctx, "a gradient", block->dtype, 1, &one, NULL);
        return weft_tensor_status(block->witness);
    }
    block->part = weft_variable_new(opt->ctx, "own parameters", block->dtype, 1, &block->own, NULL);
    WEFT_TRY(weft_tensor_status(block->part));
    weft__variable_share(block->part, block->values, (size_t)block->from * weft_dtype_size(block->dtype));
    return WEFT_OK;
}

/* Replaces a state of the block by the range of this process. */
static weft_status cut_state(const weft_optimizer *opt, const weft__block *block, weft_tensor **state) {
    const size_t each = weft_dtype_size(weft_dtype_of(*state)), bytes = (size_t)weft_numel(*state) * each;
    const bool zero = !(*state)->storage->buffer; /* fresh: nothing was written yet */
    weft_tensor *own = NULL;
    void *values = NULL;
    if (block->own > 0) {
        own = weft_variable_new(opt->ctx, weft__variable_name(*state), weft_dtype_of(*state), 1, &block->own,
                                NULL);
        WEFT_TRY(weft_tensor_status(own));
    }
    weft_status status = WEFT_OK;
    if (own && !zero) {
        values = weft__alloc(opt->ctx, bytes);
        status = values ? weft_read(*state, values, bytes) : weft__fail_oom(opt->ctx, bytes, "a state");
        if (status == WEFT_OK)
            status = weft_write(own, (char *)values + (size_t)block->from * each, (size_t)block->own * each);
    }
    weft__free(opt->ctx, values);
    weft_free(*state);
    *state = own;
    return status;
}

static weft__slot *slot_with(const weft_optimizer *opt, const weft_tensor *parameter) {
    for (size_t i = 0; i < opt->n_slots; i++)
        if (opt->slots[i].parameter == parameter) return &opt->slots[i];
    return NULL;
}

/* Lets the states of a slot be views of the own range of the block: of the elements that this range has of
 * parameter i. So files hold parts of parameters, and do not depend on the layout of the block. */
static weft_status cut_slot(weft_optimizer *opt, const weft__block *block, size_t i) {
    weft__slot *slot = slot_with(opt, block->parameters[i]);
    const weft_dtype dtype = weft_dtype_of(slot->parameter);
    const size_t size = weft_dtype_size(block->dtype);
    const int64_t each = (int64_t)(weft_dtype_size(dtype) / size); /* 2 numbers of a complex element */
    const int64_t begin = block->offsets[i], end = begin + weft_numel(slot->parameter) * each,
                  last = block->from + block->own, low = begin > block->from ? begin : block->from,
                  high = end < last ? end : last, n = low < high ? (high - low) / each : 0;
    slot->divided = true;
    slot->part = (weft_entry_part){n ? (low - begin) / each : 0, weft_rank(slot->parameter),
                                   weft_shape(slot->parameter)};
    for (size_t s = 0; s < weft__optimizer_states(opt); s++) {
        weft_tensor *part =
            weft_variable_new(opt->ctx, weft__variable_name(slot->state[s]), dtype, 1, &n, NULL);
        WEFT_TRY(weft_tensor_status(part));
        if (n) weft__variable_share(part, block->state[s], (size_t)(low - block->from) * size);
        weft_free(slot->state[s]);
        slot->state[s] = part;
    }
    return WEFT_OK;
}

weft_status weft_optimizer_shard(weft_optimizer *opt, weft_shard shard) {
    WEFT_NEED(NULL, opt);
    WEFT_TRY(weft_optimizer_status(opt));
    if (shard != WEFT_SHARD_NONE && shard != WEFT_SHARD_OPTIMIZER)
        return weft__fail(opt->ctx, WEFT_ERR_ARGUMENT, "weft_optimizer_shard: there is no %d", (int)shard);
    if (shard == opt->shard) return WEFT_OK;
    if (shard == WEFT_SHARD_NONE || !opt->group || opt->next_part)
        return weft__fail(opt->ctx, WEFT_ERR_STATE, "weft_optimizer_shard: %s",
                          shard == WEFT_SHARD_NONE ? "the state is divided already, and stays so"
                          : opt->group             ? "a step is being accumulated: shard before or after it"
                                                   : "the optimizer has no processes to share with: call "
                                                     "weft_optimizer_join first");
    WEFT_TRY(weft__optimizer_layout(opt));
    for (size_t b = 0; b < opt->n_blocks; b++) {
        weft__block *block = &opt->blocks[b];
        WEFT_TRY(take_range(opt, block));
        for (size_t s = 0; s < weft__optimizer_states(opt); s++)
            WEFT_TRY(cut_state(opt, block, &block->state[s]));
        for (size_t i = 0; i < block->count; i++) WEFT_TRY(cut_slot(opt, block, i));
    }
    opt->shard = shard;
    opt->identity = ++opt->ctx->identities;
    return WEFT_OK;
}

weft_status weft__optimizer_share_values(weft_optimizer *opt) {
    weft__process_group_purpose(opt->group, opt->steps, "the updated parameters");
    for (size_t b = 0; b < opt->n_blocks; b++)
        WEFT_TRY(weft__parts_shared(opt->blocks[b].values, opt->blocks[b].each, opt->group));
    return weft__optimizer_round(opt);
}
