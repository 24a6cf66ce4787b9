/* Dynamic loss scaling (Micikevicius et al. 2018, "Mixed precision training", 3.2), with the behaviour of
 * PyTorch's GradScaler. Gradients are taken of the loss times a scale, so that f16 can hold them. They are
 * divided by the scale before anything else reads them. If a gradient is not finite, the step changes only
 * the scale, which becomes smaller. After many steps with finite gradients the scale becomes larger. Scale,
 * counters and the decision stay on the device; the host reads them only when asked.
 * Must not know: the formulas of optimizers. Read next: update.c. */
#include <float.h>
#include <math.h>
#include "base/option.h"
#include "optim/optimizer.h"
#include "ops/build.h"

static const char *const where = NULL;

static weft_status scale_check(weft_optimizer *opt, const weft_loss_scale_options *o) {
    const char *kind = weft_optimizer_kind(opt);
    if (opt->held || opt->next_part)
        return weft__fail(opt->ctx, WEFT_ERR_STATE,
                          "weft_optimizer_scale_loss: a step of %s is %s: call it before the first step",
                          kind, opt->held ? "held" : "being accumulated");
    if (!(o->init > 0.0 && (float)o->init < INFINITY) || !(o->growth >= 1.0 && (float)o->growth < INFINITY))
        return weft__fail(opt->ctx, WEFT_ERR_ARGUMENT,
                          "%s: loss scale: init is %g, growth is %g: both must be finite, init positive and "
                          "growth at least 1",
                          kind, o->init, o->growth);
    if (!(o->backoff > 0.0 && o->backoff < 1.0) || o->interval < 1 || o->interval > INT32_MAX)
        return weft__fail(opt->ctx, WEFT_ERR_ARGUMENT,
                          "%s: loss scale: backoff is %g, interval is %lld: backoff must be between 0 and 1, "
                          "interval at least 1",
                          kind, o->backoff, (long long)o->interval);
    return WEFT_OK;
}

static void scale_release(weft__scaling *s) {
    weft_free(s->scale);
    weft_free(s->good);
    weft_free(s->updates);
    *s = (weft__scaling){0};
}

weft_status weft_optimizer_scale_loss(weft_optimizer *opt, const weft_loss_scale_options *options) {
    WEFT_NEED(NULL, opt);
    WEFT_TRY(weft_optimizer_status(opt));
    weft_loss_scale_options o = options ? *options : (weft_loss_scale_options){0};
    o.init = weft__value_or(o.init, 65536);
    o.growth = weft__value_or(o.growth, 2);
    o.backoff = weft__value_or(o.backoff, 0.5);
    if (o.interval == 0) o.interval = 2000;
    WEFT_TRY(scale_check(opt, &o));
    const float init = (float)o.init;
    const int32_t updates = (int32_t)(opt->steps < INT32_MAX ? opt->steps : INT32_MAX - 1);
    weft__scaling s = {.growth = o.growth, .backoff = o.backoff, .interval = o.interval};
    s.scale = weft_variable_new(opt->ctx, "loss_scale", WEFT_F32, 0, NULL, &init);
    s.good = weft_variable_new(opt->ctx, "loss_scale.good", WEFT_I32, 0, NULL, NULL);
    s.updates = weft_variable_new(opt->ctx, "loss_scale.updates", WEFT_I32, 0, NULL, &updates);
    weft_status status = weft_tensor_status(s.scale);
    if (status == WEFT_OK) status = weft_tensor_status(s.good);
    if (status == WEFT_OK) status = weft_tensor_status(s.updates);
    scale_release(status == WEFT_OK ? &opt->scaling : &s);
    if (status != WEFT_OK) return status;
    opt->scaling = s;
    opt->identity = ++opt->ctx->identities; /* other programs are needed */
    return WEFT_OK;
}

void weft__scaling_release(weft_optimizer *opt) { scale_release(&opt->scaling); }

double weft_optimizer_loss_scale(weft_optimizer *opt) {
    return weft_optimizer_status(opt) == WEFT_OK && opt->scaling.scale ? weft_item(opt->scaling.scale)
                                                                       : (double)NAN;
}

uint64_t weft_optimizer_updates(weft_optimizer *opt) {
    if (!opt || !opt->scaling.scale) return weft_optimizer_steps(opt);
    const double updates = weft_item(opt->scaling.updates);
    return updates > 0.0 ? (uint64_t)updates : 0;
}

weft_tensor *weft__scaling_state(const weft_optimizer *opt, size_t i) {
    weft_tensor *const list[WEFT__SCALING_STATES] = {opt->scaling.scale, opt->scaling.good,
                                                     opt->scaling.updates};
    return list[i];
}

/* ---- recorded in a step ---- */

weft_tensor *weft__scaled_loss(const weft_optimizer *opt, weft_tensor *loss) {
    return opt->scaling.scale ? at_mul(loss, weft__optimizer_as(opt->scaling.scale, weft_dtype_of(loss)))
                              : loss;
}

/* Tests |g| <= max, which is false for infinities and for NaN. The smallest of all results says whether all
 * are true. */
weft_tensor *weft__unscale(const weft_optimizer *opt, weft_tensor **gradients, bool own) {
    if (!opt->scaling.scale) return NULL;
    weft_tensor *inverse = weft_recip_at(where, opt->scaling.scale), *all = NULL;
    for (size_t b = 0; b < opt->n_blocks; b++) {
        weft_tensor *g = gradients[b] =
            at_mul(gradients[b], weft__optimizer_as(inverse, opt->blocks[b].wide));
        const double most = opt->blocks[b].wide == WEFT_F64 ? DBL_MAX : (double)FLT_MAX;
        weft_tensor *finite = weft_le_at(where, weft_abs_at(where, g), weft_full_like_at(where, g, most));
        weft_tensor *least = weft_min_at(where, weft_cast_at(where, finite, WEFT_F32), WEFT_ALL_AXES, false);
        all = all ? weft_minimum_at(where, all, least) : least;
    }
    if (!own) return at_gt(all, at_zeros_like(all));
    const weft_attr_exchange attr = {.exact = opt->hyper.exact_sum};
    weft_tensor *bad =
        weft__exchange(where, at_add_scalar(at_neg(all), 1.0), &attr); /* processes that have one
                                                                        * that is not finite */
    return at_eq(bad, at_zeros_like(bad));
}

void weft__scaling_sinks(const weft_optimizer *opt, weft_tensor *finite, weft__sinks *sinks) {
    const weft__scaling *s = &opt->scaling;
    if (!s->scale) return;
    weft_tensor *none = at_zeros_like(s->good), *next = at_add_scalar(s->good, 1.0);
    weft_tensor *grows = at_eq(next, weft_full_like_at(where, next, (double)s->interval));
    weft_tensor *most = weft_full_like_at(where, s->scale, (double)FLT_MAX / s->growth);
    weft_tensor *larger = at_where(at_lt(s->scale, most), at_mul_scalar(s->scale, s->growth), s->scale);
    weft__optimizer_sink(
        sinks, s->scale,
        at_where(finite, at_where(grows, larger, s->scale), at_mul_scalar(s->scale, s->backoff)));
    weft__optimizer_sink(sinks, s->good, at_where(finite, at_where(grows, none, next), none));
    weft__optimizer_sink(sinks, s->updates, at_where(finite, at_add_scalar(s->updates, 1.0), s->updates));
}

weft_tensor *weft__correction(const weft_optimizer *opt, double beta, weft_dtype dtype) {
    weft_tensor *t = weft__optimizer_as(at_add_scalar(opt->scaling.updates, 1.0), dtype);
    return at_neg(
        weft_expm1_at(where, at_mul_scalar(t, log(fmax(beta, DBL_MIN))))); /* expm1 avoids cancellation */
}
