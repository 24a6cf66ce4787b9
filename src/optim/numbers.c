/* The numbers that an update reads and that change from step to step, such as the rate. They are inputs of
 * the program. Each follows from the rate and the number of the step by a rule, which exported steps compute,
 * too. Must not know: formulas of updates. Read next: update.c. */
#include <math.h>

#include "compiler/runtime/derive.h"
#include "optim/optimizer.h"

/* With first = 1 - beta1^t and second = sqrt(1 - beta2^t), Adam's update is
 *
 *     rate (m / first) / (sqrt(v) / second + eps)  =  (rate second / first) m / (sqrt(v) + second eps)
 *
 * so both corrections go into numbers of the step, and no element pays for them. */
static weft__step_rule step_of(const weft__range *range) {
    return (weft__step_rule){.per_rate = range->lr_scale, .second = true, .first = true};
}

static weft__step_rule shrink_of(const weft_optimizer *opt, const weft__range *range) {
    return (weft__step_rule){.per_rate = range->lr_scale * range->l1 / (1.0 - opt->hyper.momentum),
                             .second = true};
}

static weft__step_rule decay_of(const weft_optimizer *opt, const weft__range *range) {
    if (opt->kind == WEFT__ADAMW)
        return (weft__step_rule){.constant = 1.0, .per_rate = -range->lr_scale * range->weight_decay};
    return (weft__step_rule){.constant = range->weight_decay};
}

static weft__step_rule epsilon_of(const weft_optimizer *opt) {
    return (weft__step_rule){.constant = opt->hyper.eps, .second = true};
}

bool weft__optimizer_corrects(const weft_optimizer *opt) {
    return (opt->kind == WEFT__ADAM || opt->kind == WEFT__ADAMW) && !opt->scaling.scale;
}

static weft_status set(weft__step_number *number, weft__step_rule rule, double lr, double first,
                       double second) {
    double value = rule.constant + rule.per_rate * lr;
    if (rule.second) value *= second;
    if (rule.first) value /= first;
    if (number->value == value) return WEFT_OK;
    WEFT_TRY(weft_set_scalar(number->scalar, value));
    number->value = value;
    return WEFT_OK;
}

weft_status weft__optimizer_numbers(weft_optimizer *opt, uint64_t later) {
    const weft__hyper *h = &opt->hyper;
    const uint64_t steps = opt->steps + later;
    const double lr = weft_schedule_lr(&opt->schedule, steps), t = (double)(steps + 1);
    const bool corrects = weft__optimizer_corrects(opt);
    const double first = corrects ? 1.0 - pow(h->beta1, t) : 1.0;
    const double second = corrects ? sqrt(1.0 - pow(h->beta2, t)) : 1.0;
    for (size_t b = 0; b < opt->n_blocks; b++) {
        weft__block *block = &opt->blocks[b];
        for (size_t r = 0; r < block->n_ranges; r++) {
            weft__range *range = &block->ranges[r];
            WEFT_TRY(set(&range->step, step_of(range), lr, first, second));
            WEFT_TRY(set(&range->shrink, shrink_of(opt, range), lr, first, second));
            WEFT_TRY(set(&range->decay, decay_of(opt, range), lr, first, second));
        }
        WEFT_TRY(set(&block->epsilon, epsilon_of(opt), lr, first, second));
    }
    return WEFT_OK;
}

/* Finds the rule of a scalar. Returns false if it is no number of the optimizer. */
static bool rule_of(const weft_optimizer *opt, const weft_tensor *scalar, weft__step_rule *rule) {
    for (size_t b = 0; b < opt->n_blocks; b++) {
        const weft__block *block = &opt->blocks[b];
        for (size_t r = 0; r < block->n_ranges; r++) {
            const weft__range *range = &block->ranges[r];
            if (scalar == range->step.scalar) *rule = step_of(range);
            if (scalar == range->shrink.scalar) *rule = shrink_of(opt, range);
            if (scalar == range->decay.scalar) *rule = decay_of(opt, range);
            if (scalar == range->step.scalar || scalar == range->shrink.scalar ||
                scalar == range->decay.scalar)
                return true;
        }
        if (scalar == block->epsilon.scalar) {
            *rule = epsilon_of(opt);
            return true;
        }
    }
    return false;
}

weft_status weft__optimizer_inputs(const weft_optimizer *opt, const weft_program *program,
                                   weft__step_input **inputs, size_t *count) {
    weft__program_scalar scalar;
    size_t n = 0;
    *count = 0;
    while (weft__program_scalar_get(program, n, &scalar)) n++;
    *inputs = weft__array(opt->ctx, n + 1, sizeof **inputs);
    if (!*inputs) return weft__fail_oom(opt->ctx, n * sizeof **inputs, "the numbers of a step");
    for (size_t i = 0; i < n && weft__program_scalar_get(program, i, &scalar); i++) {
        weft__step_input *input = &(*inputs)[i];
        *input = (weft__step_input){.offset = scalar.offset, .random = scalar.random};
        for (int k = 0; k < 8; k++) input->key[k] = scalar.key[k];
        if (!scalar.random && !rule_of(opt, scalar.tensor, &input->rule))
            return weft__fail(opt->ctx, WEFT_ERR_UNSUPPORTED,
                              "%s: the step reads a scalar that the optimizer does not set",
                              weft_optimizer_kind(opt));
    }
    *count = n;
    return WEFT_OK;
}
