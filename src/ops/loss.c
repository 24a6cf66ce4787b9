/* Losses. Operands are never broadcast: a difference of shapes is an error that names both. The loss of f16
 * and bf16 operands is computed and returned in f32. */
#include <weft/profile.h>
#include "ops/composite.h"

/* What is recorded until the matching done is the loss, for profiles; unless a gradient is being recorded. */
static uint8_t begin(const weft_tensor *x) {
    uint8_t outer = x->ctx->stage;
    if (outer == WEFT_STAGE_FORWARD) x->ctx->stage = WEFT_STAGE_LOSS;
    return outer;
}

static weft_tensor *done(const weft_tensor *x, uint8_t outer, weft_tensor *loss) {
    x->ctx->stage = outer;
    return loss;
}

static weft_tensor *reduce(const char *where, weft_tensor *x, weft_reduction reduction) {
    switch (reduction) {
    case WEFT_MEAN: return weft_mean_at(where, x, WEFT_ALL_AXES, false);
    case WEFT_SUM: return weft_sum_at(where, x, WEFT_ALL_AXES, false);
    case WEFT_NONE: return x;
    }
    return weft__poisoned(x)
               ? x
               : weft__poison(x->ctx, where, WEFT_ERR_ARGUMENT, "loss: unknown reduction %d", (int)reduction);
}

/* NULL when both are floats of one shape and dtype. */
static weft_tensor *reject_pair(const char *name, const char *where, weft_tensor *x, weft_tensor *target) {
    weft_tensor *bad = weft__reject(name, where, (weft_tensor *[]){x, target}, 2);
    if (!bad && x) bad = reject_float(name, where, x);
    if (bad || !x) return bad;
    char a[WEFT_SHAPE_TEXT], b[WEFT_SHAPE_TEXT];
    weft__tensor_text(x, a);
    weft__tensor_text(target, b);
    if (!weft__shape_equal(x, target))
        return weft__poison(x->ctx, where, WEFT_ERR_SHAPE,
                            "%s: prediction %s and target %s differ in shape; reshape one of them", name, a,
                            b);
    if (x->dtype != target->dtype)
        return weft__poison(x->ctx, where, WEFT_ERR_DTYPE,
                            "%s: prediction %s and target %s differ in dtype; cast one", name, a, b);
    return NULL;
}

weft_tensor *weft_mse_at(const char *where, weft_tensor *x, weft_tensor *target, weft_reduction reduction) {
    weft_tensor *bad = reject_pair("mse", where, x, target);
    if (bad || !x) return bad;
    uint8_t outer = begin(x);
    weft_tensor *d = sub(widen(where, x), widen(where, target));
    return done(x, outer, reduce(where, mul(d, d), reduction));
}

weft_tensor *weft_l1_at(const char *where, weft_tensor *x, weft_tensor *target, weft_reduction reduction) {
    weft_tensor *bad = reject_pair("l1", where, x, target);
    if (bad || !x) return bad;
    uint8_t outer = begin(x);
    weft_tensor *size = weft_abs_at(where, sub(widen(where, x), widen(where, target)));
    return done(x, outer, reduce(where, size, reduction));
}

weft_tensor *weft_huber_at(const char *where, weft_tensor *x, weft_tensor *target, double delta,
                           weft_reduction reduction) {
    weft_tensor *bad = reject_pair("huber", where, x, target);
    if (bad || !x) return bad;
    if (!(delta > 0.0))
        return weft__poison(x->ctx, where, WEFT_ERR_ARGUMENT, "huber: delta %g must be positive", delta);
    uint8_t outer = begin(x);
    weft_tensor *d = sub(widen(where, x), widen(where, target)), *size = weft_abs_at(where, d);
    weft_tensor *near = mulc(mul(d, d), 0.5), *far = mulc(addc(size, -0.5 * delta), delta);
    weft_tensor *inside = weft_le_at(where, size, weft_full_like_at(where, size, delta));
    return done(x, outer, reduce(where, select(inside, near, far), reduction));
}

/* x * ([x > 0] - target) + log1p(exp(-|x|)): no cancellation where the target is 0 or 1. */
weft_tensor *weft_bce_with_logits_at(const char *where, weft_tensor *logits, weft_tensor *target,
                                     weft_reduction reduction) {
    weft_tensor *bad = reject_pair("bce_with_logits", where, logits, target);
    if (bad || !logits) return bad;
    uint8_t outer = begin(logits);
    weft_tensor *x = widen(where, logits), *t = widen(where, target), *positive = gt(x, zero(x));
    weft_tensor *step = select(positive, weft_full_like_at(where, x, 1.0), zero(x));
    weft_tensor *tail = weft_log1p_at(where, expo(select(positive, neg(x), x)));
    return done(logits, outer, reduce(where, add(mul(x, sub(step, t)), tail), reduction));
}

/* ---- cross-entropy ---- */

static weft_tensor *reject_classes(const char *where, weft_tensor *logits, weft_tensor *target,
                                   double smoothing) {
    weft_tensor *bad = weft__reject("cross_entropy", where, (weft_tensor *[]){logits, target}, 2);
    if (!bad && logits) bad = reject_float("cross_entropy", where, logits);
    if (bad || !logits) return bad;
    char a[WEFT_SHAPE_TEXT], b[WEFT_SHAPE_TEXT];
    weft__tensor_text(logits, a);
    weft__tensor_text(target, b);
    bool fits = logits->rank >= 1 && target->rank == logits->rank - 1 && logits->shape[logits->rank - 1] > 0;
    for (int i = 0; fits && i < target->rank; i++) fits = target->shape[i] == logits->shape[i];
    if (!fits)
        return weft__poison(
            logits->ctx, where, WEFT_ERR_SHAPE,
            "cross_entropy: target %s must have the shape of logits %s without its last dimension", b, a);
    weft_dtype dtype = weft_dtype_of(target);
    if (dtype != WEFT_I32 && dtype != WEFT_I64 && dtype != WEFT_U8)
        return weft__poison(logits->ctx, where, WEFT_ERR_DTYPE,
                            "cross_entropy: target %s must hold class numbers (i32, i64 or u8)", b);
    if (!(smoothing >= 0.0 && smoothing <= 1.0))
        return weft__poison(logits->ctx, where, WEFT_ERR_ARGUMENT,
                            "cross_entropy: smoothing %g is not in 0..1", smoothing);
    return NULL;
}

/* 1 where a class is the row's target, else 0, as a bool (..., C). The class goes through a gather of 0..C-1,
 * which is the identity but records a fault where it is out of range. */
static weft_tensor *one_hot(const char *where, weft_tensor *logits, weft_tensor *target,
                            weft_tensor *ignored) {
    int64_t classes = logits->shape[logits->rank - 1];
    if (ignored) target = select(ignored, zero(target), target);
    weft_tensor *numbers = weft_iota(logits->ctx, WEFT_I32, 1, &classes);
    weft_tensor *checked = weft_gather_at(where, numbers, target, 0);
    return eq(weft_unsqueeze_at(where, checked, -1),
              weft_iota(logits->ctx, WEFT_I32, logits->rank, logits->shape));
}

/* Minus the log-probability of the target of each row (...), with label smoothing. Everything is one row
 * kernel: the logits are read once. */
static weft_tensor *row_losses(const char *where, weft_tensor *logits, weft_tensor *hot, double smoothing) {
    weft_tensor *x = widen(where, logits);
    weft_tensor *m = weft_detach_at(where, weft_max_at(where, x, -1, true));
    m = select(eq(m, weft_full_like_at(where, m, -INFINITY)), zero(m), m);
    weft_tensor *z = sub(x, m), *s = weft_sum_at(where, expo(z), -1, false);
    s = select(eq(s, zero(s)), weft_full_like_at(where, s, 1.0), s);
    weft_tensor *log_sum = logn(s);
    weft_tensor *nll = sub(log_sum, weft_sum_at(where, select(hot, z, zero(z)), -1, false));
    if (smoothing == 0.0) return nll;
    weft_tensor *spread = sub(log_sum, weft_mean_at(where, z, -1, false));
    return add(mulc(nll, 1.0 - smoothing), mulc(spread, smoothing));
}

static weft_tensor *cross_entropy(const char *where, weft_tensor *logits, weft_tensor *target,
                                  weft_cross_entropy_options o) {
    if (weft_dtype_of(target) == WEFT_U8) target = weft_cast_at(where, target, WEFT_I32);
    weft_tensor *ignored = NULL;
    if (o.use_ignore) {
        weft_tensor *number = weft_full_i64(logits->ctx, weft_dtype_of(target), 0, NULL, o.ignore);
        ignored = eq(target, number);
    }
    weft_tensor *losses = row_losses(where, logits, one_hot(where, logits, target, ignored), o.smoothing);
    if (!ignored || weft__poisoned(losses)) return reduce(where, losses, o.reduction);
    losses = select(ignored, zero(losses), losses);
    if (o.reduction != WEFT_MEAN) return reduce(where, losses, o.reduction);
    /* The mean over the positions that count; 0 where none does. */
    weft_tensor *one = weft_full_like_at(where, losses, 1.0);
    weft_tensor *count = weft_sum_at(where, select(ignored, zero(one), one), WEFT_ALL_AXES, false);
    weft_tensor *total = weft_sum_at(where, losses, WEFT_ALL_AXES, false);
    return divi(total, weft_maximum_at(where, count, weft_full_like_at(where, count, 1.0)));
}

weft_tensor *weft_cross_entropy_at(const char *where, weft_tensor *logits, weft_tensor *target,
                                   const weft_cross_entropy_options *options) {
    weft_cross_entropy_options o = options ? *options : (weft_cross_entropy_options){0};
    weft_tensor *bad = reject_classes(where, logits, target, o.smoothing);
    if (bad || !logits) return bad;
    uint8_t outer = begin(logits);
    return done(logits, outer, cross_entropy(where, logits, target, o));
}
