/* Optimizers of several processes: joining a group, and comparing what the processes have. Must not know:
 * formulas, engines. Read next: step.c, process/group.h. */
#include <string.h>

#include "compiler/profile/profile.h"
#include "optim/optimizer.h"
#include "process/group.h"

static void hash_number(weft_hash *hash, double number) {
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    weft__hash_u64(hash, bits);
}

/* Hashes all that must be the same in each process: the optimizer, and the parameters' names and shapes. */
static weft_hash hash_optimizer(const weft_optimizer *opt) {
    const weft__hyper *h = &opt->hyper;
    const double numbers[] = {h->lr,
                              h->momentum,
                              h->alpha,
                              h->beta1,
                              h->beta2,
                              h->eps,
                              h->weight_decay,
                              h->clip,
                              h->l1,
                              h->nesterov,
                              h->decay_matrices_only,
                              h->exact_sum,
                              (double)opt->steps};
    weft_hash hash;
    weft__hash_init(&hash);
    weft__hash_str(&hash, weft_version());
    weft__hash_str(&hash, weft_optimizer_kind(opt));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) hash_number(&hash, numbers[i]);
    for (size_t i = 0; i < opt->n_slots; i++) {
        const weft__slot *slot = &opt->slots[i];
        weft__hash_str(&hash, slot->name);
        weft__hash_u64(&hash, slot->trained);
        weft__hash_u64(&hash, weft_dtype_of(slot->parameter));
        hash_number(&hash, slot->lr_scale);
        hash_number(&hash, slot->weight_decay);
        for (int d = 0; d < weft_rank(slot->parameter); d++)
            weft__hash_u64(&hash, (uint64_t)weft_shape(slot->parameter)[d]);
    }
    return hash;
}

weft_status weft_optimizer_join(weft_optimizer *opt, weft_process_group *group) {
    WEFT_NEED(NULL, opt);
    WEFT_TRY(weft_optimizer_status(opt));
    if (opt->next_part || opt->held)
        return weft__fail(opt->ctx, WEFT_ERR_STATE,
                          "weft_optimizer_join: a step is %s: join before or after it",
                          opt->held ? "held" : "being accumulated");
    if (weft__optimizer_sharded(opt))
        return weft__fail(
            opt->ctx, WEFT_ERR_STATE,
            "weft_optimizer_join: the state is divided among the processes of a group, which the "
            "optimizer cannot leave");
    WEFT_TRY(weft__optimizer_layout(opt));
    weft__process_group_purpose(group, 0, "the options of the optimizer");
    WEFT_TRY(weft__process_group_same(group, "another optimizer, other options or other parameters",
                                      hash_optimizer(opt),
                                      "give all processes the same program and configuration"));
    WEFT_TRY(weft__link_devices(opt->ctx, group));
    opt->ctx->device->exchanger = NULL;
    opt->group = group;
    if (weft__optimizer_exchanges(opt) && !opt->ctx->device->linked)
        WEFT_TRY(weft__process_group_exchanger(group, &opt->ctx->device->exchanger));
    opt->ctx->processes = group ? weft_process_group_size(group) : 0;
    opt->identity = ++opt->ctx->identities;
    opt->ctx->random.micro_batch = (uint64_t)weft_process_group_rank(group);
    return WEFT_OK;
}

weft_process_group *weft_optimizer_processes(const weft_optimizer *opt) { return opt ? opt->group : NULL; }

/* Adds the values of a block to the hash. */
static weft_status hash_values(const weft__block *block, weft__hash_stream *stream) {
    weft_context *ctx = block->values->ctx;
    const size_t bytes = (size_t)weft_numel(block->values) * weft_dtype_size(block->dtype);
    void *values = weft__alloc(ctx, bytes);
    if (!values) return weft__fail_oom(ctx, bytes, "a copy of the parameters");
    const weft_status status = weft_read(block->values, values, bytes);
    if (status == WEFT_OK) weft__hash_piece(stream, values, bytes);
    weft__free(ctx, values);
    return status;
}

weft_status weft__optimizer_same_values(const weft_optimizer *opt, weft_hash hash) {
    weft__process_group_purpose(opt->group, opt->steps, "a hash of the parameters");
    return weft__process_group_same(opt->group, "other parameters", hash,
                                    "the copies have drifted apart: start the run again from a checkpoint");
}

weft_status weft_optimizer_compare(weft_optimizer *opt) {
    weft_hash hash;
    WEFT_NEED(NULL, opt);
    WEFT_TRY(weft_optimizer_status(opt));
    WEFT_TRY(weft__optimizer_layout(opt));
    weft__hash_init(&hash);
    weft__hash_stream stream = {.hash = &hash};
    if (!opt->group || weft__optimizer_divides_parameters(opt)) return WEFT_OK; /* or there are no copies */
    for (size_t b = 0; b < opt->n_blocks; b++) WEFT_TRY(hash_values(&opt->blocks[b], &stream));
    weft__hash_end(&stream);
    return weft__optimizer_same_values(opt, hash);
}

/* ---- buffers ---- */

static weft_status share_buffer(const weft_optimizer *opt, weft_tensor *buffer) {
    const size_t bytes = (size_t)weft_numel(buffer) * weft_dtype_size(weft_dtype_of(buffer));
    void *values = weft__alloc(opt->ctx, bytes);
    if (!values) return weft__fail_oom(opt->ctx, bytes, "running statistics");
    weft_status status = weft_read(buffer, values, bytes);
    if (status == WEFT_OK) status = weft_process_group_broadcast(opt->group, values, bytes, 0);
    if (status == WEFT_OK && weft_process_group_rank(opt->group) > 0)
        status = weft_write(buffer, values, bytes);
    weft__free(opt->ctx, values);
    return status;
}

weft_status weft__optimizer_share_buffers(const weft_optimizer *opt) {
    weft_parameter_info info;
    weft__process_group_purpose(opt->group, opt->steps, "running statistics");
    for (size_t i = 0; opt->group && weft_parameter_get(opt->module, i, &info); i++)
        if (info.buffer) WEFT_TRY(share_buffer(opt, info.tensor));
    return WEFT_OK;
}
