/* The formulas of updates, recorded over whole blocks. Operations have the order of torch.optim's
 * single-tensor code (adam.py, adamw.py, sgd.py, rmsprop.py), so that roundings agree. One thing differs:
 * Adam's two bias corrections are scalars of the step (section 2 of the paper), which saves a division an
 * element. Complex numbers count as pairs of floats, as in PyTorch.
 * Must not know: how programs run. Read next: gradients.c, norm.c, numbers.c, scale.c, step.c. */
#include <math.h>
#include <weft/profile.h>
#include "optim/optimizer.h"
#include "ops/build.h"

static const char *const where = NULL; /* the loss has the user's location */

weft_tensor *weft__optimizer_as(weft_tensor *t, weft_dtype dtype) {
    return weft__poisoned(t) || weft_dtype_of(t) == dtype ? t : weft_cast_at(where, t, dtype);
}

/* t cast to a dtype, if it has another one. */
static weft_tensor *as(weft_tensor *t, weft_dtype dtype) { return weft__optimizer_as(t, dtype); }

/* ---- numbers of a step ---- */

/* The numbers that a range of a block has. */
typedef enum range_number { RATE, DECAY, SHRINK } range_number;

static weft_tensor *scalar_of(const weft__range *range, range_number what) {
    return what == RATE ? range->step.scalar : what == DECAY ? range->decay.scalar : range->shrink.scalar;
}

static bool same_number(const weft__range *a, const weft__range *b, range_number what) {
    return a->lr_scale == b->lr_scale && (what != DECAY || a->weight_decay == b->weight_decay) &&
           (what != SHRINK || a->l1 == b->l1);
}

/* The elements of a block that this process updates together. */
typedef struct target {
    const weft__block *block;
    const weft__slice *slice;
} target;

/* A number of each element: a scalar if all ranges agree, else chosen by the element's index in the block. */
static weft_tensor *by_range(weft_context *ctx, const target *to, range_number what) {
    const weft__block *block = to->block;
    size_t last = block->n_ranges - 1;
    weft_tensor *value = scalar_of(&block->ranges[last], what);
    const int64_t n = to->slice->own;
    weft_dtype index = n > INT32_MAX ? WEFT_I64 : WEFT_I32;
    weft_tensor *place = weft_iota(ctx, index, 1, &n);
    for (size_t r = last; r-- > 0;) {
        const weft__range *range = &block->ranges[r];
        if (same_number(range, range + 1, what)) continue;
        const int64_t end = range->end - to->slice->from, inside = end < 0 ? 0 : end < n ? end : n;
        weft_tensor *before = at_lt(place, weft_full_i64(ctx, index, 0, NULL, inside));
        value = at_where(before, scalar_of(range, what), value);
    }
    return value;
}

static bool decays(const weft__block *block) {
    for (size_t r = 0; r < block->n_ranges; r++)
        if (block->ranges[r].weight_decay != 0.0) return true;
    return false;
}

static bool shrinks(const weft__block *block) {
    for (size_t r = 0; r < block->n_ranges; r++)
        if (block->ranges[r].l1 != 0.0) return true;
    return false;
}

/* The proximal step of an L1 penalty: moves each parameter towards 0 by t, and not beyond. t is the penalty
 * times the step that a lasting gradient of 1 would make, so the parameters rest where the gradient is -l1
 * sign(p): at the minimum of the penalised loss. That step has these factors besides the rate:
 *
 *     momentum      1 / (1 - momentum), the sum of the series (Nesterov, too)
 *     RMSprop       1 / (sqrt(v) + eps)
 *     Adam, AdamW   1 / (sqrt(v) / second + eps): as the variable metric of Yun, Lozano, Yang 2021
 *
 * `size` is the divisor, or NULL. */
static weft_tensor *shrunk(const weft_optimizer *opt, const target *to, weft_tensor *p, weft_tensor *size) {
    if (!shrinks(to->block)) return p;
    weft_tensor *t = by_range(opt->ctx, to, SHRINK);
    if (size) t = at_div(t, size);
    return at_sub(p, weft_maximum_at(where, weft_minimum_at(where, p, t), at_neg(t)));
}

/* ---- rules: p are the parameters, g the gradient. The rule reads and replaces state. All in the wide dtype
 * ---- */

static weft_tensor *sgd(const weft_optimizer *opt, const target *to, weft_tensor *p, weft_tensor *g,
                        weft_tensor **state) {
    const weft__hyper *h = &opt->hyper;
    if (decays(to->block)) g = at_add(g, at_mul(by_range(opt->ctx, to, DECAY), p));
    if (h->momentum != 0.0) {
        state[0] = at_add(at_mul_scalar(state[0], h->momentum), g);
        g = h->nesterov ? at_add(g, at_mul_scalar(state[0], h->momentum)) : state[0];
    }
    return shrunk(opt, to, at_sub(p, at_mul(by_range(opt->ctx, to, RATE), g)), NULL);
}

static weft_tensor *rmsprop(const weft_optimizer *opt, const target *to, weft_tensor *p, weft_tensor *g,
                            weft_tensor **state) {
    const weft__hyper *h = &opt->hyper;
    if (decays(to->block)) g = at_add(g, at_mul(by_range(opt->ctx, to, DECAY), p));
    state[0] = at_add(at_mul_scalar(state[0], h->alpha), at_mul(at_mul_scalar(g, 1.0 - h->alpha), g));
    weft_tensor *size = at_add_scalar(weft_sqrt_at(where, state[0]), h->eps),
                *rate = by_range(opt->ctx, to, RATE);
    if (h->momentum == 0.0) return shrunk(opt, to, at_sub(p, at_div(at_mul(rate, g), size)), size);
    state[1] = at_add(at_mul_scalar(state[1], h->momentum), at_div(g, size));
    return shrunk(opt, to, at_sub(p, at_mul(rate, state[1])), size);
}

/* start + weight (end - start), computed from the nearer end as torch.lerp does. */
static weft_tensor *lerp(weft_tensor *start, weft_tensor *end, double weight) {
    weft_tensor *d = at_sub(end, start);
    return weight < 0.5 ? at_add(start, at_mul_scalar(d, weight))
                        : at_sub(end, at_mul_scalar(d, 1.0 - weight));
}

static weft_tensor *adam(const weft_optimizer *opt, const target *to, weft_tensor *p, weft_tensor *g,
                         weft_tensor **state) {
    const weft__hyper *h = &opt->hyper;
    if (decays(to->block) && opt->kind == WEFT__ADAMW) p = at_mul(p, by_range(opt->ctx, to, DECAY));
    if (decays(to->block) && opt->kind == WEFT__ADAM) g = at_add(g, at_mul(by_range(opt->ctx, to, DECAY), p));
    state[0] = lerp(state[0], g, 1.0 - h->beta1);
    state[1] = at_add(at_mul_scalar(state[1], h->beta2), at_mul(at_mul_scalar(g, 1.0 - h->beta2), g));
    weft_tensor *epsilon = to->block->epsilon.scalar, *rate = by_range(opt->ctx, to, RATE), *second = NULL;
    if (opt->scaling.scale) { /* skipped steps do not count, and only the device knows how many there were */
        second = weft_sqrt_at(where, weft__correction(opt, h->beta2, to->block->wide));
        rate = at_mul(rate, at_div(second, weft__correction(opt, h->beta1, to->block->wide)));
        epsilon = at_mul(epsilon, second);
    }
    weft_tensor *size = at_add(weft_sqrt_at(where, state[1]), epsilon);
    p = at_sub(p, at_div(at_mul(rate, state[0]), size));
    return shrunk(opt, to, p, second ? at_div(size, second) : size);
}

void weft__optimizer_sink(weft__sinks *sinks, weft_tensor *variable, weft_tensor *value) {
    sinks->variable[sinks->count] = variable;
    sinks->value[sinks->count++] = as(value, weft_dtype_of(variable));
}

/* The new value, or the old one if the step is skipped. */
static weft_tensor *kept(weft_tensor *finite, weft_tensor *variable, weft_tensor *value) {
    value = as(value, weft_dtype_of(variable));
    return finite ? at_where(finite, value, variable) : value;
}

/* Records the update of the elements of a slice, whose gradients begin at element `at` of g. finite: a bool,
 * false if the step must be skipped and all values stay; NULL: the step is always made. */
static void update_slice(const weft_optimizer *opt, const weft__block *block, const weft__slice *slice,
                         weft_tensor *g, int64_t at, weft_tensor *finite, weft__sinks *sinks) {
    const size_t n = weft__optimizer_states(opt);
    const target to = {block, slice};
    weft_tensor *state[WEFT__STATES] = {NULL, NULL}, *p = as(slice->part, block->wide);
    if (slice->own < weft_numel(g)) g = weft_narrow_at(where, g, 0, at, slice->own);
    for (size_t s = 0; s < n; s++) state[s] = as(slice->state[s], block->wide);
    if (opt->kind == WEFT__SGD)
        p = sgd(opt, &to, p, g, state);
    else if (opt->kind == WEFT__RMSPROP)
        p = rmsprop(opt, &to, p, g, state);
    else
        p = adam(opt, &to, p, g, state);
    p = kept(finite, slice->part, p);
    weft__optimizer_sink(sinks, slice->part, p);
    if (block->rounded && !block->n_slices) weft__optimizer_sink(sinks, block->rounded, p);
    if (slice->rounded) weft__optimizer_sink(sinks, slice->rounded, p);
    for (size_t s = 0; s < n; s++)
        weft__optimizer_sink(sinks, slice->state[s], kept(finite, slice->state[s], state[s]));
}

/* own: g has the own parts of the gradients alone. */
static void update_block(const weft_optimizer *opt, const weft__block *block, weft_tensor *g, bool own,
                         weft_tensor *finite, weft__sinks *sinks) {
    for (size_t i = 0; i < block->n_slices; i++) {
        const weft__slice *slice = &block->slices[i];
        const int64_t at = own ? slice->at : slice->own ? slice->from : slice->begin;
        if (slice->witness)
            weft__optimizer_sink(sinks, slice->witness, weft_narrow_at(where, g, 0, at, 1));
        else
            update_slice(opt, block, slice, g, at, finite, sinks);
    }
    if (block->n_slices) return;
    weft__slice whole = {.own = weft_numel(block->values), .part = block->values};
    for (size_t s = 0; s < WEFT__STATES; s++) whole.state[s] = block->state[s];
    update_slice(opt, block, &whole, g, 0, finite, sinks);
}

/* Makes room for the assignments of a step. */
static weft_status make_sinks(const weft_optimizer *opt, weft__sinks *sinks) {
    size_t most = 1 + WEFT__SCALING_STATES;
    *sinks = (weft__sinks){0};
    for (size_t b = 0; b < opt->n_blocks; b++) most += 2 + (opt->blocks[b].n_slices + 1) * (2 + WEFT__STATES);
    sinks->variable = weft__array(opt->ctx, most, sizeof *sinks->variable);
    sinks->value = weft__array(opt->ctx, most, sizeof *sinks->value);
    return sinks->variable && sinks->value
               ? WEFT_OK
               : weft__fail_oom(opt->ctx, most * sizeof *sinks->value, "the assignments of a step");
}

void weft__sinks_free(weft_context *ctx, weft__sinks *sinks) {
    weft__free(ctx, sinks->variable);
    weft__free(ctx, sinks->value);
}

static weft_status record(weft_optimizer *opt, weft_tensor *loss, const weft__part *part, int parts,
                          weft__sinks *sinks) {
    weft_tensor *g[WEFT__BLOCKS] = {NULL};
    WEFT_TRY(make_sinks(opt, sinks));
    for (size_t b = 0; b < opt->n_blocks; b++)
        for (int l = 0; l < WEFT__SUMS; l++) /* a plan may come before the micro-batches */
            if (part->take >> l & 1) WEFT_TRY(weft__optimizer_ensure_sum(opt, &opt->blocks[b], l));
    WEFT_TRY(weft__optimizer_gradients(opt, loss, part, g));
    for (size_t b = 0; b < opt->n_blocks; b++) {
        WEFT_TRY(weft_tensor_status(g[b]));
        if (part->put >= 0) WEFT_TRY(weft__optimizer_ensure_sum(opt, &opt->blocks[b], part->put));
        if (part->put >= 0) weft__optimizer_sink(sinks, opt->blocks[b].sums[part->put], g[b]);
        if (part->update && parts > 1) g[b] = at_mul_scalar(g[b], 1.0 / parts);
    }
    if (part->update) {
        weft_tensor *finite = weft__unscale(opt, g, part->own);
        weft__norm_and_clip(opt, g, part->own, parts, sinks);
        for (size_t b = 0; b < opt->n_blocks; b++)
            update_block(opt, &opt->blocks[b], g[b], part->own, finite, sinks);
        weft__scaling_sinks(opt, finite, sinks);
    }
    for (size_t i = 0; i < sinks->count; i++) WEFT_TRY(weft_tensor_status(sinks->value[i]));
    return WEFT_OK;
}

weft_status weft__optimizer_record(weft_optimizer *opt, weft_tensor *loss, const weft__part *part, int parts,
                                   weft__sinks *sinks) {
    uint8_t stage = opt->ctx->stage;
    opt->ctx->stage = WEFT_STAGE_OPTIMIZER;
    weft_status status = record(opt, loss, part, parts, sinks);
    opt->ctx->stage = stage;
    return status;
}
