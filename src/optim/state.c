/* The state of an optimizer as named tensors, for checkpoints, and copying it to another optimizer of its
 * kind.
 * Must not know: file formats. Read next: nn/state.c, which reads and writes named tensors. */
#include <string.h>
#include "optim/optimizer.h"

size_t weft_optimizer_state_count(weft_optimizer *opt) {
    if (weft_optimizer_status(opt) != WEFT_OK) return 0;
    return opt->n_slots * weft__optimizer_states(opt) + (opt->scaling.scale ? WEFT__SCALING_STATES : 0);
}

bool weft_optimizer_state_get(weft_optimizer *opt, size_t i, weft_named_tensor *state) {
    if (i >= weft_optimizer_state_count(opt)) return false;
    const size_t n = weft__optimizer_states(opt), of_slots = opt->n_slots * n;
    const weft__slot *slot = i < of_slots ? &opt->slots[i / n] : NULL;
    weft_tensor *t = slot ? slot->state[i % n] : weft__scaling_state(opt, i - of_slots);
    if (!state) return false;
    *state = (weft_named_tensor){weft__variable_name(t), t, slot && slot->divided ? &slot->part : NULL};
    return true;
}

static weft_status states(weft_optimizer *opt, weft_named_tensor **list, size_t *count) {
    WEFT_TRY(weft_optimizer_status(opt));
    *count = weft_optimizer_state_count(opt);
    *list = weft__array(opt->ctx, *count + 1, sizeof **list);
    if (!*list) return weft__fail_oom(opt->ctx, *count * sizeof **list, "a list of state tensors");
    for (size_t i = 0; i < *count; i++) weft_optimizer_state_get(opt, i, &(*list)[i]);
    return WEFT_OK;
}

/* Whether this process writes a state of a divided optimizer. States that are not divided are those of rank
 * 0, and so are parameters without elements. */
static bool writes(const weft_optimizer *opt, const weft_named_tensor *state) {
    int64_t whole = 0;
    const bool first = weft_process_group_rank(opt->group) == 0;
    if (!weft__optimizer_sharded(opt) || (state->part && weft_numel(state->tensor) > 0)) return true;
    return first && (!state->part || (weft__numel(state->part->rank, state->part->shape, &whole) && !whole));
}

weft_status weft_optimizer_entries(weft_optimizer *opt, weft_entry **entries, size_t *count) {
    WEFT_NEED(NULL, opt);
    WEFT_NEED(opt->ctx, entries);
    WEFT_NEED(opt->ctx, count);
    weft_named_tensor *list = NULL;
    size_t all = 0;
    WEFT_TRY(states(opt, &list, &all));
    *count = 0;
    for (size_t i = 0; i < all; i++)
        if (writes(opt, &list[i])) list[(*count)++] = list[i];
    weft_status status = weft_entries_new(opt->ctx, list, *count, entries);
    weft__free(opt->ctx, list);
    return status;
}

weft_status weft_optimizer_load_from(weft_optimizer *opt, weft_safetensors *file) {
    WEFT_NEED(NULL, opt);
    WEFT_NEED(opt->ctx, file);
    weft_named_tensor *list = NULL;
    size_t count = 0;
    WEFT_TRY(states(opt, &list, &count));
    weft_status status = weft_entries_load(opt->ctx, list, count, file, "optimizer");
    weft__free(opt->ctx, list);
    return status == WEFT_OK ? weft__optimizer_round(opt) : status; /* after the weights */
}

/* ---- to another optimizer ---- */

static weft_status check_pair(weft_optimizer *to, weft_optimizer *from) {
    weft_context *ctx = to->ctx;
    const size_t n = weft_optimizer_state_count(to);
    if (to->kind != from->kind)
        return weft__fail(ctx, WEFT_ERR_ARGUMENT,
                          "weft_optimizer_copy: cannot copy %s to %s: both must be of one type",
                          weft_optimizer_kind(from), weft_optimizer_kind(to));
    if (to->next_part || from->next_part)
        return weft__fail(ctx, WEFT_ERR_STATE, "weft_optimizer_copy: a step is being accumulated");
    if (weft_optimizer_state_count(from) != n)
        return weft__fail(ctx, WEFT_ERR_SHAPE,
                          "weft_optimizer_copy: cannot copy %zu state tensors to %zu: freeze the same "
                          "parameters in both, and scale the loss in both or in neither",
                          weft_optimizer_state_count(from), n);
    for (size_t i = 0; i < n; i++) {
        weft_named_tensor a = {0}, b = {0};
        if (!weft_optimizer_state_get(to, i, &a) || !weft_optimizer_state_get(from, i, &b) ||
            strcmp(a.name, b.name) != 0 || !weft__shape_equal(a.tensor, b.tensor) ||
            a.tensor->dtype != b.tensor->dtype)
            return weft__fail(ctx, WEFT_ERR_SHAPE,
                              "weft_optimizer_copy: state %zu is '%s' in the target and '%s' in the source; "
                              "name, shape and dtype must be the same",
                              i, a.name, b.name);
    }
    return WEFT_OK;
}

static weft_status copy_state(weft_tensor *to, weft_tensor *from) {
    const size_t bytes = (size_t)to->numel * weft_dtype_size((weft_dtype)to->dtype);
    void *values = weft__alloc(to->ctx, bytes + 1);
    if (!values) return weft__fail_oom(to->ctx, bytes, "weft_optimizer_copy: a state");
    weft_status status = weft_read(from, values, bytes);
    if (status != WEFT_OK)
        weft__fail(to->ctx, status, "weft_optimizer_copy: %s", weft_last_error(from->ctx));
    else
        status = weft_write(to, values, bytes);
    weft__free(to->ctx, values);
    return status;
}

weft_status weft_optimizer_copy(weft_optimizer *to, weft_optimizer *from) {
    WEFT_NEED(NULL, to);
    WEFT_NEED(to->ctx, from);
    weft_named_tensor a, b;
    WEFT_TRY(weft_optimizer_status(to));
    WEFT_TRY(weft_optimizer_status(from));
    if (to == from) return WEFT_OK;
    WEFT_TRY(weft__optimizer_layout(from));
    WEFT_TRY(weft__optimizer_layout(to));
    WEFT_TRY(check_pair(to, from));
    WEFT_TRY(weft_module_copy(to->module, from->module));
    for (size_t i = 0; weft_optimizer_state_get(to, i, &a) && weft_optimizer_state_get(from, i, &b); i++)
        WEFT_TRY(copy_state(a.tensor, b.tensor));
    to->steps = from->steps;
    to->schedule = from->schedule;
    weft_seed(to->ctx, from->ctx->random.seed, from->ctx->random.step);
    return weft__optimizer_round(to);
}
