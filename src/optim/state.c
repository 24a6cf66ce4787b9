/* The state of an optimizer as named tensors, for checkpoints. */
#include "optim/optimizer.h"

size_t weft_optimizer_state_count(weft_optimizer *opt) {
    if (weft_optimizer_status(opt) != WEFT_OK) return 0;
    return opt->n_slots * weft__optimizer_states(opt) + (opt->scaling.scale ? WEFT__SCALING_STATES : 0);
}

bool weft_optimizer_state_at(weft_optimizer *opt, size_t i, weft_named_tensor *state) {
    if (i >= weft_optimizer_state_count(opt)) return false;
    const size_t n = weft__optimizer_states(opt), of_slots = opt->n_slots * n;
    weft_tensor *t = i < of_slots ? opt->slots[i / n].state[i % n] : weft__scaling_state(opt, i - of_slots);
    *state = (weft_named_tensor){weft__variable_name(t), t};
    return true;
}

static weft_status states(weft_optimizer *opt, weft_named_tensor **list, size_t *count) {
    WEFT_TRY(weft_optimizer_status(opt));
    *count = weft_optimizer_state_count(opt);
    *list = weft__array(opt->ctx, *count + 1, sizeof **list);
    if (!*list) return weft__fail_oom(opt->ctx, *count * sizeof **list, "a list of state tensors");
    for (size_t i = 0; i < *count; i++) weft_optimizer_state_at(opt, i, &(*list)[i]);
    return WEFT_OK;
}

weft_status weft_optimizer_entries(weft_optimizer *opt, weft_entry **entries, size_t *count) {
    weft_named_tensor *list = NULL;
    WEFT_TRY(states(opt, &list, count));
    weft_status status = weft_entries_new(opt->ctx, list, *count, entries);
    weft__free(opt->ctx, list);
    return status;
}

weft_status weft_optimizer_load_from(weft_optimizer *opt, weft_safetensors *file) {
    weft_named_tensor *list = NULL;
    size_t count = 0;
    WEFT_TRY(states(opt, &list, &count));
    weft_status status = weft_entries_load(opt->ctx, list, count, file, "optimizer");
    weft__free(opt->ctx, list);
    return status == WEFT_OK ? weft__optimizer_round(opt) : status; /* the weights were read before it */
}
