/* Losses. Operands are never broadcast: a difference of shapes is an error that names both. Losses of f16 and
 * bf16 operands are computed and returned in f32.
 * Must not know: layers. Read next: head.c for logits in parts. */
#include <weft/profile.h>
#include "base/option.h"
#include "ops/composite.h"
#include "ops/head.h"
#include "ops/ops.h"

/* Marks nodes recorded until the matching done as the loss, for profiles. Nodes of a gradient keep their
 * stage. */
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

/* NULL if both are floats of one shape and dtype; else a poisoned tensor. */
static weft_tensor *reject_pair(const char *name, const char *where, weft_tensor *x, weft_tensor *target) {
    weft_tensor *bad = weft__reject(name, where, (weft_tensor *[]){x, target}, 2);
    if (!bad && x) bad = reject_float(name, where, x);
    if (bad || !x) return bad;
    const bool shaped = weft__shape_equal(x, target);
    if (shaped && x->dtype == target->dtype) return NULL;
    char a[WEFT_SHAPE_TEXT], b[WEFT_SHAPE_TEXT];
    return weft__poison(x->ctx, where, shaped ? WEFT_ERR_DTYPE : WEFT_ERR_SHAPE,
                        "%s: prediction %s and target %s differ in %s", name, weft__tensor_text(x, a),
                        weft__tensor_text(target, b),
                        shaped ? "dtype; cast one" : "shape; reshape one of them");
}

weft_tensor *weft_mse_at(const char *where, weft_tensor *x, weft_tensor *target, weft_reduction reduction) {
    weft_tensor *bad = reject_pair("mse", where, x, target);
    if (bad || !x) return bad;
    uint8_t outer = begin(x);
    weft_tensor *d = at_sub(widen(where, x), widen(where, target));
    return done(x, outer, reduce(where, at_mul(d, d), reduction));
}

weft_tensor *weft_l1_at(const char *where, weft_tensor *x, weft_tensor *target, weft_reduction reduction) {
    weft_tensor *bad = reject_pair("l1", where, x, target);
    if (bad || !x) return bad;
    uint8_t outer = begin(x);
    weft_tensor *size = weft_abs_at(where, at_sub(widen(where, x), widen(where, target)));
    return done(x, outer, reduce(where, size, reduction));
}

weft_tensor *weft_huber_at(const char *where, weft_tensor *x, weft_tensor *target, double delta,
                           weft_reduction reduction) {
    weft_tensor *bad = reject_pair("huber", where, x, target);
    if (bad || !x) return bad;
    if (!(delta > 0.0))
        return weft__poison(x->ctx, where, WEFT_ERR_ARGUMENT, "huber: delta %g must be positive", delta);
    uint8_t outer = begin(x);
    weft_tensor *d = at_sub(widen(where, x), widen(where, target)), *size = weft_abs_at(where, d);
    weft_tensor *outside = at_gt(size, weft_full_like_at(where, size, delta)),
                *inner = at_where(outside, at_zeros_like(d), d);
    weft_tensor *near = at_mul_scalar(at_mul(inner, inner), 0.5),
                *far = at_mul_scalar(at_add_scalar(size, -0.5 * delta), delta);
    return done(x, outer, reduce(where, at_where(outside, far, near), reduction));
}

/* x * ([x > 0] - target) + log1p(exp(-|x|)). Nothing cancels where the target is 0 or 1. */
weft_tensor *weft_bce_with_logits_at(const char *where, weft_tensor *logits, weft_tensor *target,
                                     weft_reduction reduction) {
    weft_tensor *bad = reject_pair("bce_with_logits", where, logits, target);
    if (bad || !logits) return bad;
    uint8_t outer = begin(logits);
    weft_tensor *x = widen(where, logits), *t = widen(where, target), *positive = at_gt(x, at_zeros_like(x));
    weft_tensor *step = at_where(positive, weft_full_like_at(where, x, 1.0), at_zeros_like(x));
    weft_tensor *tail = weft_log1p_at(where, at_exp(at_where(positive, at_neg(x), x)));
    return done(logits, outer, reduce(where, at_add(at_mul(x, at_sub(step, t)), tail), reduction));
}

/* ---- cross-entropy ---- */

static weft_tensor *reject_classes(const char *where, weft_tensor *logits, weft_tensor *target,
                                   double smoothing, weft_tensor *weights) {
    weft_tensor *bad =
        weft__reject("cross_entropy", where, (weft_tensor *[]){logits, target, weights}, weights ? 3 : 2);
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
    if (!weights) return NULL;
    weft__tensor_text(weights, b);
    if (weights->rank != 1 || weights->shape[0] != logits->shape[logits->rank - 1])
        return weft__poison(logits->ctx, where, WEFT_ERR_SHAPE,
                            "cross_entropy: weights %s must have one element for each class of logits %s", b,
                            a);
    return reject_float("cross_entropy", where, weights);
}

/* The targets of a cross-entropy. ignored: positions that do not count (NULL: none). weights: weight of each
 * class (C) (NULL: 1). The class passes through a gather of 0..C-1. That is the identity, but it records a
 * fault for a class out of range. */
typedef struct classes {
    weft_tensor *target, *ignored, *weights;
} classes;

static classes check_classes(const char *where, weft_tensor *logits, weft_tensor *target,
                             const weft_cross_entropy_options *o) {
    const int64_t count = logits->shape[logits->rank - 1];
    classes c = {.ignored = NULL};
    if (weft_dtype_of(target) == WEFT_U8) target = weft_cast_at(where, target, WEFT_I32);
    if (o->use_ignore) {
        c.ignored = at_eq(target, weft_full_i64(logits->ctx, weft_dtype_of(target), 0, NULL, o->ignore));
        target = at_where(c.ignored, at_zeros_like(target), target);
    }
    c.target = weft_gather_at(where, weft_iota(logits->ctx, WEFT_I32, 1, &count), target, 0);
    if (o->weights) c.weights = weft_cast_at(where, o->weights, weft_dtype_of(widen(where, logits)));
    return c;
}

/* A bool (..., C): true where a class is the row's target. */
static weft_tensor *one_hot(const char *where, weft_tensor *logits, weft_tensor *target) {
    return at_eq(weft_unsqueeze_at(where, target, -1),
                 weft_iota(logits->ctx, WEFT_I32, logits->rank, logits->shape));
}

/* Minus the log-probability of the target of each row (...), with label smoothing. All of it is one row
 * kernel, which reads the logits once. The weight of a class multiplies its own probability, as in PyTorch.
 * Smoothing covers only classes whose logit is not -inf: masked classes take no share. */
static weft_tensor *row_losses(const char *where, weft_tensor *logits, classes c, double smoothing) {
    weft_tensor *hot = one_hot(where, logits, c.target);
    weft_tensor *x = widen(where, logits);
    weft_tensor *m = weft_detach_at(where, weft_max_at(where, x, -1, true));
    m = at_where(at_eq(m, weft_full_like_at(where, m, -INFINITY)), at_zeros_like(m), m);
    weft_tensor *z = at_sub(x, m), *s = weft_sum_at(where, at_exp(z), -1, false);
    s = at_where(at_eq(s, at_zeros_like(s)), weft_full_like_at(where, s, 1.0), s);
    weft_tensor *log_sum = at_log(s);
    weft_tensor *nll = at_sub(log_sum, weft_sum_at(where, at_where(hot, z, at_zeros_like(z)), -1, false));
    if (c.weights) nll = at_mul(nll, weft_gather_at(where, c.weights, c.target, 0));
    if (smoothing == 0.0) return nll;
    weft_tensor *there = at_gt(x, weft_full_like_at(where, x, -INFINITY));
    weft_tensor *each = at_sub(weft_unsqueeze_at(where, log_sum, -1), z);
    if (c.weights) each = at_mul(each, c.weights);
    weft_tensor *one = weft_full_like_at(where, z, 1.0);
    weft_tensor *many = weft_sum_at(where, at_where(there, one, at_zeros_like(z)), -1, false);
    weft_tensor *spread = weft_sum_at(where, at_where(there, each, at_zeros_like(each)), -1, false);
    spread = at_div(spread, weft_maximum_at(where, many, weft_full_like_at(where, many, 1.0)));
    return at_add(at_mul_scalar(nll, 1.0 - smoothing), at_mul_scalar(spread, smoothing));
}

/* The losses of rows; 0 where the target is ignored. */
static weft_tensor *counted_losses(const char *where, weft_tensor *logits, classes c,
                                   const weft_cross_entropy_options *o) {
    weft_tensor *losses = row_losses(where, logits, c, o->smoothing);
    return c.ignored && !weft__poisoned(losses) ? at_where(c.ignored, at_zeros_like(losses), losses) : losses;
}

static classes rows_of(const char *where, classes c, int64_t first, int64_t count) {
    const int64_t rows = c.target->numel;
    c.target = weft_narrow_at(where, weft__reshape_to(where, c.target, 1, &rows), 0, first, count);
    if (c.ignored)
        c.ignored = weft_narrow_at(where, weft__reshape_to(where, c.ignored, 1, &rows), 0, first, count);
    return c;
}

/* The losses in parts of the rows: their sum, or with WEFT_NONE all of them. */
static weft_tensor *part_losses(const char *where, weft_tensor *logits, classes c, int64_t parts,
                                const weft_cross_entropy_options *o) {
    weft_context *ctx = logits->ctx;
    const int64_t rows = c.target->numel, step = weft__ceil_div(rows, parts),
                  count = weft__ceil_div(rows, step);
    weft_tensor **list = weft__array(ctx, (size_t)count, sizeof *list), *all = NULL;
    if (!list) return &ctx->graph->oom;
    for (int64_t p = 0; p < count; p++) {
        const classes wanted = rows_of(where, c, p * step, weft__smaller(step, rows - p * step));
        uint32_t segment;
        weft_tensor *part = weft__logit_part(where, logits, p, parts, &segment);
        list[p] = weft__poisoned(part) ? part : counted_losses(where, part, wanted, o);
        if (o->reduction != WEFT_NONE) list[p] = weft_sum_at(where, list[p], WEFT_ALL_AXES, false);
        weft__segment_end(ctx, segment);
        if (o->reduction != WEFT_NONE) all = all ? at_add(all, list[p]) : list[p];
    }
    if (!all) all = weft_concat_at(where, list, (int)count, 0);
    if (o->reduction == WEFT_NONE && !weft__poisoned(all))
        all = weft__reshape_to(where, all, c.target->rank, c.target->shape);
    weft__free(ctx, list);
    return all;
}

static weft_tensor *cross_entropy(const char *where, weft_tensor *logits, weft_tensor *target,
                                  weft_cross_entropy_options o) {
    const classes c = check_classes(where, logits, target, &o);
    const int64_t parts = weft__logit_parts(logits);
    const bool summed = parts > 1 && o.reduction != WEFT_NONE, mean = o.reduction == WEFT_MEAN;
    if (weft__poisoned(c.target)) return c.target;
    weft_tensor *losses =
        parts > 1 ? part_losses(where, logits, c, parts, &o) : counted_losses(where, logits, c, &o);
    if (weft__poisoned(losses)) return losses;
    const bool plain = !o.use_ignore && !c.weights;
    if (summed && !(mean && !plain))
        return mean ? at_mul_scalar(losses, 1.0 / (double)target->numel) : losses;
    if (plain || !mean) return reduce(where, losses, o.reduction);
    /* The mean: the sum divided by the sum of weights that count; 0 if that is 0. */
    weft_tensor *each = c.weights ? weft_gather_at(where, c.weights, c.target, 0)
                                  : weft__constant(losses->ctx, where, weft_dtype_of(losses), target->rank,
                                                   target->shape, 1, 1);
    if (c.ignored) each = at_where(c.ignored, at_zeros_like(each), each);
    weft_tensor *count = weft_sum_at(where, each, WEFT_ALL_AXES, false);
    weft_tensor *total = summed ? losses : weft_sum_at(where, losses, WEFT_ALL_AXES, false);
    weft_tensor *one = weft_full_like_at(where, count, 1.0);
    if (!c.weights) return at_div(total, weft_maximum_at(where, count, one));
    return at_div(total, at_where(at_eq(count, at_zeros_like(count)), one, count));
}

weft_tensor *weft_cross_entropy_at(const char *where, weft_tensor *logits, weft_tensor *target,
                                   const weft_cross_entropy_options *options) {
    weft_cross_entropy_options o = options ? *options : (weft_cross_entropy_options){0};
    weft_tensor *bad = reject_classes(where, logits, target, o.smoothing, o.weights);
    if (bad || !logits) return bad;
    if ((unsigned)o.reduction > WEFT_NONE) return reduce(where, logits, o.reduction);
    uint8_t outer = begin(logits);
    return done(logits, outer, cross_entropy(where, logits, target, o));
}

/* ---- preferences ---- */

/* NULL if the targets (..., K, T) fit the logits (..., T, C); else a poisoned tensor. */
static weft_tensor *reject_texts(const char *where, weft_tensor *logits, weft_tensor *target) {
    static const char name[] = "sequence_log_probs";
    weft_tensor *bad = weft__reject(name, where, (weft_tensor *[]){logits, target}, 2);
    if (!bad && logits) bad = reject_float(name, where, logits);
    if (bad || !logits) return bad;
    const int rank = logits->rank;
    const weft_dtype dtype = weft_dtype_of(target);
    bool fits = rank >= 2 && target->rank == rank && target->shape[rank - 1] == logits->shape[rank - 2] &&
                target->shape[rank - 2] > 0;
    for (int i = 0; fits && i < rank - 2; i++) fits = target->shape[i] == logits->shape[i];
    char a[WEFT_SHAPE_TEXT], b[WEFT_SHAPE_TEXT];
    weft__tensor_text(logits, a);
    weft__tensor_text(target, b);
    if (!fits)
        return weft__poison(logits->ctx, where, WEFT_ERR_SHAPE,
                            "%s: logits %s must be (..., T, C), and target %s (..., K, T) with the same T",
                            name, a, b);
    if (dtype == WEFT_I32 || dtype == WEFT_I64) return NULL;
    return weft__poison(logits->ctx, where, WEFT_ERR_DTYPE, "%s: target %s must be i32 or i64", name, b);
}

weft_tensor *weft_sequence_log_probs_at(const char *where, weft_tensor *logits, weft_tensor *target) {
    weft_tensor *bad = reject_texts(where, logits, target);
    if (bad || !logits) return bad;
    const uint8_t outer = begin(logits);
    weft_tensor *none = weft_full_i64(logits->ctx, weft_dtype_of(target), 0, NULL, -1);
    weft_tensor *next = weft_maximum_at(where, weft_max_at(where, target, -2, false), none);
    weft_tensor *losses =
        cross_entropy(where, logits, next,
                      (weft_cross_entropy_options){.reduction = WEFT_NONE, .use_ignore = true, .ignore = -1});
    weft_tensor *each = weft_unsqueeze_at(where, at_neg(losses), -2); /* (..., 1, T) */
    weft_tensor *own = at_where(at_gt(target, none), each, at_zeros_like(each));
    return done(logits, outer, weft_sum_at(where, own, -1, false));
}

/* With label smoothing the loss is a binary cross-entropy against 1 - smoothing. */
weft_tensor *weft_dpo_loss_at(const char *where, weft_tensor *log_probs, weft_tensor *reference,
                              const weft_dpo_options *options) {
    const weft_dpo_options o = options ? *options : (weft_dpo_options){0};
    const double beta = weft__value_or(o.beta, 0.1);
    weft_tensor *bad = reject_pair("dpo_loss", where, log_probs, reference);
    if (bad || !log_probs) return bad;
    char text[WEFT_SHAPE_TEXT];
    if (log_probs->rank < 1 || log_probs->shape[log_probs->rank - 1] != 2)
        return weft__poison(log_probs->ctx, where, WEFT_ERR_SHAPE,
                            "dpo_loss: %s must be (..., 2): the chosen and the rejected answer of each pair",
                            weft__tensor_text(log_probs, text));
    if (!(beta > 0) || !(o.smoothing >= 0 && o.smoothing <= 1))
        return weft__poison(log_probs->ctx, where, WEFT_ERR_ARGUMENT,
                            "dpo_loss: beta %g must be positive, and smoothing %g must be from 0 to 1", beta,
                            o.smoothing);
    const uint8_t outer = begin(log_probs);
    weft_tensor *gain = at_sub(widen(where, log_probs), widen(where, reference));
    weft_tensor *margin =
        at_sub(weft_narrow_at(where, gain, -1, 0, 1), weft_narrow_at(where, gain, -1, 1, 1));
    margin = at_mul_scalar(weft_squeeze_at(where, margin, -1), beta);
    weft_tensor *order = weft_full_like_at(where, margin, 1 - o.smoothing);
    return done(log_probs, outer, weft_bce_with_logits_at(where, margin, order, o.reduction));
}
