/* What processes divide among them: ZeRO (Rajbhandari et al. 2020, "ZeRO: Memory Optimizations
 * Toward Training Trillion Parameter Models", section 5). Each process keeps the states of a part of each
 * slice of a block and updates the parameters there. A slice is a piece, which is exchanged as soon as its
 * gradients are there: each process receives the sums of its own part. All parts have the same number of
 * elements in each process, a multiple of WEFT__CHUNK:
 *
 *     piece               |        0        |     1     |
 *     who updates it      |  0  |  1  |  2  | 0 | 1 | 2 |
 *     gradients of rank 1       |  1  | 1 |
 *
 * Where gradients are exchanged after the backward pass, by the host, the block is one slice, and each
 * process receives all sums. If parameters are divided, a process has the values of its parts only
 * (divide.c). Must not know: formulas, files. Read next: divide.c, exchange.c, update.c, join.c, state.c. */
#include <string.h>

#include "compiler/profile/profile.h"
#include "optim/optimizer.h"
#include "process/group.h"

enum { ALIGNED = 16 }; /* elements: parts begin at a multiple of 64 bytes */

/* ---- dividing ---- */

static int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

/* Chooses the part of this process, and makes the variable of its values. aligned: parts have a multiple of
 * so many elements. */
static weft_status take_part(const weft_optimizer *opt, const weft__block *block, int64_t aligned,
                             weft__slice *slice) {
    const int64_t size = weft_process_group_size(opt->group), rank = weft_process_group_rank(opt->group);
    const int64_t one = 1;
    slice->each = round_up(slice->n > size ? (slice->n + size - 1) / size : 1, aligned);
    const int64_t before = rank * slice->each < slice->n ? rank * slice->each : slice->n;
    slice->own = slice->n - before < slice->each ? slice->n - before : slice->each;
    slice->from = slice->begin + before;
    if (slice->own == 0) {
        slice->witness = weft_variable_new(opt->ctx, "a gradient", block->wide, 1, &one, NULL);
        return weft_tensor_status(slice->witness);
    }
    slice->part = weft_variable_new(opt->ctx, "own parameters", block->dtype, 1, &slice->own, NULL);
    WEFT_TRY(weft_tensor_status(slice->part));
    weft__variable_share(slice->part, block->values, (size_t)slice->from * weft_dtype_size(block->dtype));
    return WEFT_OK;
}

/* Makes the slices of a block. */
static weft_status take_slices(const weft_optimizer *opt, weft__block *block) {
    const bool parts = weft__optimizer_exchanges(opt);
    const size_t count = parts ? block->n_pieces : 1;
    int64_t kept = 0;
    block->slices = weft__array(opt->ctx, count, sizeof *block->slices);
    if (!block->slices) return weft__fail_oom(opt->ctx, count * sizeof *block->slices, "a divided state");
    for (; block->n_slices < count; block->n_slices++) {
        weft__slice *slice = &block->slices[block->n_slices];
        const weft__piece *piece = &block->pieces[block->n_slices];
        *slice = (weft__slice){.begin = parts ? piece->from : 0,
                               .n = parts ? piece->n : weft_numel(block->values),
                               .kept = kept};
        WEFT_TRY(take_part(opt, block, parts ? WEFT__CHUNK : ALIGNED, slice));
        slice->at = block->n_own;
        if (parts) block->n_own += slice->each;
        kept += round_up(slice->own, ALIGNED);
    }
    return WEFT_OK;
}

void weft__slices_release(weft_context *ctx, weft__block *block) {
    for (size_t i = 0; i < block->n_slices; i++) {
        weft_free(block->slices[i].part);
        weft_free(block->slices[i].witness);
        weft_free(block->slices[i].rounded);
        for (size_t s = 0; s < WEFT__STATES; s++) weft_free(block->slices[i].state[s]);
    }
    weft__free(ctx, block->slices);
    block->slices = NULL;
    block->n_slices = 0;
}

/* Copies the parts of this process from the whole state. */
static weft_status copy_parts(const weft_optimizer *opt, const weft__block *block, weft_tensor *whole,
                              weft_tensor *own) {
    const size_t each = weft_dtype_size(weft_dtype_of(whole)), bytes = (size_t)weft_numel(whole) * each,
                 own_bytes = (size_t)weft_numel(own) * each;
    char *values = weft__alloc(opt->ctx, bytes), *parts = weft__zalloc(opt->ctx, own_bytes);
    weft_status status =
        values && parts ? weft_read(whole, values, bytes) : weft__fail_oom(opt->ctx, bytes, "a state");
    for (size_t i = 0; i < block->n_slices && status == WEFT_OK; i++) {
        const weft__slice *slice = &block->slices[i];
        if (slice->own)
            memcpy(parts + (size_t)slice->kept * each, values + (size_t)slice->from * each,
                   (size_t)slice->own * each);
    }
    if (status == WEFT_OK) status = weft_write(own, parts, own_bytes);
    weft__free(opt->ctx, values);
    weft__free(opt->ctx, parts);
    return status;
}

/* Replaces state s of the block by the parts of this process. */
static weft_status cut_state(const weft_optimizer *opt, weft__block *block, size_t s) {
    weft_tensor **state = &block->state[s], *own = NULL;
    const bool zero = !(*state)->storage->buffer; /* fresh: nothing was written yet */
    const weft__slice *last = &block->slices[block->n_slices - 1];
    const int64_t n = last->kept + last->own;
    if (n > 0) {
        own = weft_variable_new(opt->ctx, weft__variable_name(*state), weft_dtype_of(*state), 1, &n, NULL);
        WEFT_TRY(weft_tensor_status(own));
    }
    const weft_status status = own && !zero ? copy_parts(opt, block, *state, own) : WEFT_OK;
    weft_free(*state);
    *state = own;
    WEFT_TRY(status);
    for (size_t i = 0; i < block->n_slices; i++) {
        weft__slice *slice = &block->slices[i];
        if (!slice->own) continue;
        slice->state[s] =
            weft_variable_new(opt->ctx, weft__variable_name(own), weft_dtype_of(own), 1, &slice->own, NULL);
        WEFT_TRY(weft_tensor_status(slice->state[s]));
        weft__variable_share(slice->state[s], own, (size_t)slice->kept * weft_dtype_size(block->dtype));
    }
    return WEFT_OK;
}

static weft__slot *slot_with(const weft_optimizer *opt, const weft_tensor *parameter) {
    for (size_t i = 0; i < opt->n_slots; i++)
        if (opt->slots[i].parameter == parameter) return &opt->slots[i];
    return NULL;
}

/* The slice that an element of the block belongs to. */
static const weft__slice *slice_of(const weft__block *block, int64_t element) {
    size_t i = 0;
    while (i + 1 < block->n_slices && element >= block->slices[i].begin + block->slices[i].n) i++;
    return &block->slices[i];
}

/* Lets the states of a slot be views of the own part of its slice: of the elements that this part has of
 * parameter i, which lies in one slice. So files hold parts of parameters, and do not depend on the layout of
 * the block. */
static weft_status cut_slot(weft_optimizer *opt, const weft__block *block, size_t i) {
    weft__slot *slot = slot_with(opt, block->parameters[i]);
    const weft_dtype dtype = weft_dtype_of(slot->parameter);
    const size_t size = weft_dtype_size(block->dtype);
    const int64_t each = (int64_t)(weft_dtype_size(dtype) / size); /* 2 numbers of a complex element */
    const weft__slice *slice = slice_of(block, block->offsets[i]);
    const int64_t begin = block->offsets[i], end = begin + weft_numel(slot->parameter) * each,
                  last = slice->from + slice->own, low = begin > slice->from ? begin : slice->from,
                  high = end < last ? end : last, n = low < high ? (high - low) / each : 0;
    slot->divided = true;
    slot->part = (weft_entry_part){n ? (low - begin) / each : 0, weft_rank(slot->parameter),
                                   weft_shape(slot->parameter)};
    for (size_t s = 0; s < weft__optimizer_states(opt); s++) {
        weft_tensor *part =
            weft_variable_new(opt->ctx, weft__variable_name(slot->state[s]), dtype, 1, &n, NULL);
        WEFT_TRY(weft_tensor_status(part));
        if (n) weft__variable_share(part, block->state[s], (size_t)(slice->kept + low - slice->from) * size);
        weft_free(slot->state[s]);
        slot->state[s] = part;
    }
    return WEFT_OK;
}

static weft_status check_shard(weft_optimizer *opt, weft_shard shard) {
    if ((unsigned)shard > WEFT_SHARD_PARAMETERS)
        return weft__fail(opt->ctx, WEFT_ERR_ARGUMENT, "weft_optimizer_shard: there is no %d", (int)shard);
    if (shard != opt->shard && (weft__optimizer_sharded(opt) || !opt->group || opt->next_part))
        return weft__fail(opt->ctx, WEFT_ERR_STATE, "weft_optimizer_shard: %s",
                          weft__optimizer_sharded(opt) ? "the state is divided already, and stays so"
                          : opt->group ? "a step is being accumulated: shard before or after it"
                                       : "the optimizer has no processes to share with: call "
                                         "weft_optimizer_join first");
    if (shard >= WEFT_SHARD_GRADIENTS && !weft__optimizer_exchanges(opt))
        return weft__fail(
            opt->ctx, WEFT_ERR_UNSUPPORTED,
            "weft_optimizer_shard: '%s' exchanges gradients only after the backward pass, so each "
            "process needs all of them: divide the state of the optimizer alone "
            "(train.shard: optimizer), or use cards that NCCL or RCCL links, or the device cpu",
            opt->ctx->device->ops->name);
    return WEFT_OK;
}

/* Divides what each process has of a block. stream: receives the parameters, if they are divided. */
static weft_status shard_block(weft_optimizer *opt, weft__block *block, weft_shard shard,
                               weft__hash_stream *stream) {
    WEFT_TRY(take_slices(opt, block));
    for (size_t s = 0; s < weft__optimizer_states(opt); s++) WEFT_TRY(cut_state(opt, block, s));
    for (size_t i = 0; i < block->count; i++) WEFT_TRY(cut_slot(opt, block, i));
    for (int l = 0; l < WEFT__LEVELS && shard >= WEFT_SHARD_GRADIENTS; l++) {
        weft_free(block->sums[l]); /* of whole gradients */
        block->sums[l] = NULL;
    }
    return shard == WEFT_SHARD_PARAMETERS ? weft__divide_parameters(opt, block, stream) : WEFT_OK;
}

weft_status weft_optimizer_shard(weft_optimizer *opt, weft_shard shard) {
    WEFT_NEED(NULL, opt);
    WEFT_TRY(weft_optimizer_status(opt));
    WEFT_TRY(check_shard(opt, shard));
    if (shard == opt->shard) return WEFT_OK;
    WEFT_TRY(weft__optimizer_layout(opt));
    weft_hash hash;
    weft__hash_init(&hash);
    weft__hash_stream stream = {.hash = &hash};
    weft_status status = WEFT_OK;
    for (size_t b = 0; b < opt->n_blocks && status == WEFT_OK; b++)
        status = shard_block(opt, &opt->blocks[b], shard, &stream);
    WEFT_TRY(status);
    opt->shard = shard;
    opt->identity = ++opt->ctx->identities;
    if (shard != WEFT_SHARD_PARAMETERS) return WEFT_OK;
    weft__hash_end(&stream); /* the last time that a process has seen all of them */
    return weft__optimizer_same_values(opt, hash);
}

weft_status weft__optimizer_share_values(weft_optimizer *opt) {
    if (weft__optimizer_divides_parameters(opt)) { /* programs gather them */
        weft__divided_changed(opt);
        return WEFT_OK;
    }
    weft__process_group_purpose(opt->group, opt->steps, "the updated parameters");
    for (size_t b = 0; b < opt->n_blocks; b++) {
        const weft__block *block = &opt->blocks[b];
        for (size_t i = 0; i < block->n_slices; i++) {
            const weft__slice *slice = &block->slices[i];
            WEFT_TRY(weft__parts_shared(block->values, slice->begin, slice->n, slice->each, opt->group));
        }
    }
    return weft__optimizer_round(opt);
}
