/* Scaled dot-product attention (Vaswani et al. 2017, eq. 1), as a composite that a device may compute as a
 * whole:
 *
 *     s = q k^T * scale, masked if causal; p = softmax(s); y = dropout(p) v; lse = logsumexp(s)
 *     q (B, H, T, D), k and v (B, H, S, D); y (B, H, T, D), lse (B, H, T). A row that sees no key is 0.
 *
 * With a mask, lse is stored in two parts (see heavy/attention.h). If the mask itself needs a gradient, all
 * gradients come from the expansion, which has the scores. In decoding, k and v are caches, and the mask
 * follows from the position, a number on the device.
 *
 * In grouped-query attention (Ainslie et al. 2023), k and v are views (B, KV heads, query heads per KV head,
 * S, D) that repeat them. The gradient of this view sums over the query heads of a KV head.
 *
 * Must not know: layers, devices. Read next: softmax.c, heavy/attention.h. */
#include <math.h>
#include "base/option.h"
#include "ops/composite.h"
#include "ops/ops.h"

static void forward_shape(const void *params, weft_tensor *const *in, int output, weft_dtype *dtype,
                          int *rank, int64_t *dims) {
    (void)params;
    *rank = output == 0 ? 4 : 3;
    *dtype = output == 0 ? (weft_dtype)in[0]->dtype : in[0]->dtype == WEFT_F64 ? WEFT_F64 : WEFT_F32;
    for (int i = 0; i < *rank; i++) dims[i] = in[0]->shape[i];
}

/* True at (i, j) if query i sees key j: j <= i + position. Without a position, it is S - T. With a window,
 * also j > i + position - window. */
static weft_tensor *causal_mask(const char *where, weft_context *ctx, int64_t t, int64_t s, int64_t window,
                                weft_tensor *position) {
    int64_t column[2] = {t, 1};
    weft_tensor *i = weft_iota(ctx, WEFT_I32, 1, &t), *j = weft_iota(ctx, WEFT_I32, 1, &s);
    if (i->error || j->error) return i->error ? i : j;
    i = weft__reshape_to(where, i, 2, column);
    weft_tensor *last = position ? at_add(i, position) : at_add_scalar(i, (double)(s - t));
    weft_tensor *seen = at_le(j, last);
    return window ? at_and(seen, at_gt(at_add_scalar(j, (double)window), last)) : seen;
}

/* Keys or values as (B, H, S, D), one for each query head. */
static weft_tensor *by_head(const char *where, weft_tensor *k, const weft_tensor *q) {
    if (k->rank == 4) return k;
    return weft_reshape_at(where, k, 4, (int64_t[]){q->shape[0], q->shape[1], k->shape[3], k->shape[4]});
}

/* Keys or values (B, KV heads, S, D), repeated as a view for the query heads. Returned unchanged if no heads
 * share them. */
static weft_tensor *repeated(const char *where, weft_tensor *k, const weft_tensor *q) {
    if (weft__poisoned(k) || k->shape[1] == q->shape[1]) return k;
    const int64_t one[5] = {k->shape[0], k->shape[1], 1, k->shape[2], k->shape[3]},
                  all[5] = {one[0], one[1], q->shape[1] / one[1], one[3], one[4]};
    return weft_expand_at(where, weft_reshape_at(where, k, 5, one), 5, all);
}

/* Scores after a mask: a bool mask is true where a key is seen, a mask of numbers is added. */
static weft_tensor *through(const char *where, weft_tensor *s, weft_tensor *mask) {
    if (weft_dtype_of(mask) != WEFT_BOOL) return at_add(s, mask);
    return at_where(mask, s, weft_full_like_at(where, s, -(double)INFINITY));
}

/* The log-sum-exp in two parts, (2, B, H, T): the maximum of each row of scores (0 if that is -inf), and the
 * log-sum-exp minus this maximum. */
static weft_tensor *lse_in_parts(const char *where, weft_tensor *s) {
    weft_tensor *parts[2];
    if (!s->error && s->shape[3] == 0) { /* the maximum of nothing does not exist */
        parts[1] = weft_logsumexp_at(where, s, -1, false);
        parts[0] = at_zeros_like(parts[1]);
    } else {
        weft_tensor *most = weft_detach_at(where, weft_max_at(where, s, -1, true));
        most = at_where(at_eq(most, weft_full_like_at(where, most, -(double)INFINITY)), at_zeros_like(most),
                        most);
        parts[0] = weft_squeeze_at(where, most, -1);
        parts[1] = weft_logsumexp_at(where, at_sub(s, most), -1, false);
    }
    return weft_stack_at(where, parts, 2, 0);
}

static void expand_from(const char *where, const weft_attention_params *params, weft_tensor *const *in,
                        weft_tensor *position, weft_tensor *mask, weft_tensor **out) {
    weft_tensor *q = in[0], *k = by_head(where, in[1], q), *v = by_head(where, in[2], q);
    if (weft__poisoned(k) || weft__poisoned(v)) {
        out[0] = out[1] = weft__poisoned(k) ? k : v;
        return;
    }
    weft_dtype wide = q->dtype == WEFT_F64 ? WEFT_F64 : WEFT_F32, narrow = (weft_dtype)q->dtype;
    weft_tensor *s = at_mul_scalar(
        weft_cast_at(where, weft_matmul_at(where, q, weft_transpose_at(where, k, -1, -2)), wide),
        params->scale);
    if (params->softcap > 0)
        s = at_mul_scalar(weft_tanh_at(where, at_mul_scalar(s, 1 / params->softcap)), params->softcap);
    if (params->causal)
        s = at_where(causal_mask(where, q->ctx, q->shape[2], k->shape[2], params->window, position), s,
                     weft_full_like_at(where, s, -(double)INFINITY));
    if (mask) s = through(where, s, mask);
    weft_tensor *p = weft_softmax_at(where, s, -1);
    out[1] = mask ? lse_in_parts(where, s) : weft_logsumexp_at(where, s, -1, false);
    if (params->dropout > 0 && !p->error) {
        weft_tensor *bits = weft__random_node(where, in[3], p->rank, p->shape);
        weft_tensor *high = weft_and_at(
            where, weft_shr_at(where, bits, weft__constant(p->ctx, where, WEFT_I32, 0, NULL, 8, 8)),
            weft__constant(p->ctx, where, WEFT_I32, 0, NULL, 0xffffff, 0xffffff));
        weft_tensor *unit = at_mul_scalar(weft_cast_at(where, high, WEFT_F32), 0x1p-24);
        weft_tensor *drop = at_lt(unit, weft_full_like_at(where, unit, params->dropout));
        p = at_where(drop, weft_zeros_like_at(where, p), at_mul_scalar(p, 1.0 / (1.0 - params->dropout)));
    }
    out[0] = weft_matmul_at(where, weft_cast_at(where, p, narrow), v);
}

static void attention_expand(const char *where, const void *params, weft_tensor *const *in,
                             weft_tensor **out) {
    expand_from(where, params, in, NULL, NULL, out);
}

static void expand_cached(const char *where, const void *params, weft_tensor *const *in, weft_tensor **out) {
    expand_from(where, params, in, in[3], NULL, out);
}

static void expand_masked(const char *where, const void *params, weft_tensor *const *in, weft_tensor **out) {
    expand_from(where, params, in, NULL, in[4], out);
}

static void gradient_shape(const void *params, weft_tensor *const *in, int output, weft_dtype *dtype,
                           int *rank, int64_t *dims) {
    (void)params;
    *rank = in[output]->rank;
    *dtype = (weft_dtype)in[output]->dtype;
    for (int i = 0; i < *rank; i++) dims[i] = in[output]->shape[i];
}

extern const weft_composite weft__attention;

static const weft_composite attention_gradient = {
    .name = "attention.grad",
    .kind = WEFT_HEAVY_ATTENTION,
    .n_inputs = 7, /* q, k, v, key, y, lse, dy */
    .n_outputs = 3,
    .params_bytes = sizeof(weft_attention_params),
    .shape = gradient_shape,
    .forward = &weft__attention,
};

const weft_composite weft__attention = {
    .name = "attention",
    .kind = WEFT_HEAVY_ATTENTION,
    .n_inputs = 4, /* q, k, v, key */
    .n_outputs = 2,
    .params_bytes = sizeof(weft_attention_params),
    .shape = forward_shape,
    .expand = attention_expand,
    .gradient = &attention_gradient,
};

const weft_composite weft__attention_cached = {
    .name = "attention.cached",
    .kind = WEFT_HEAVY_ATTENTION,
    .n_inputs = 4, /* q, k, v, position */
    .n_outputs = 2,
    .params_bytes = sizeof(weft_attention_params),
    .shape = forward_shape,
    .expand = expand_cached,
};

static void masked_shape(const void *params, weft_tensor *const *in, int output, weft_dtype *dtype, int *rank,
                         int64_t *dims) {
    const bool parts = output == 1;
    forward_shape(params, in, output, dtype, rank, dims + parts);
    if (parts) dims[0] = 2, *rank += 1;
}

static const weft_composite masked_gradient = {
    .name = "attention.masked.grad",
    .kind = WEFT_HEAVY_ATTENTION,
    .n_inputs = 8, /* q, k, v, key, mask, y, lse, dy */
    .n_outputs = 3,
    .params_bytes = sizeof(weft_attention_params),
    .shape = gradient_shape,
    .forward = &weft__attention_masked,
};

const weft_composite weft__attention_masked = {
    .name = "attention.masked",
    .kind = WEFT_HEAVY_ATTENTION,
    .n_inputs = 5, /* q, k, v, key, mask */
    .n_outputs = 2,
    .params_bytes = sizeof(weft_attention_params),
    .shape = masked_shape,
    .expand = expand_masked,
    .gradient = &masked_gradient,
};

static weft_attention_params params_of(const weft_attention_options *o, const weft_tensor *q,
                                       const weft_tensor *k) {
    const int64_t d = q->shape[3] > 0 ? q->shape[3] : 1;
    return (weft_attention_params){.scale = weft__value_or(o->scale, 1.0 / sqrt((double)d)),
                                   .dropout = o->dropout,
                                   .causal = o->causal,
                                   .window = o->window < k->shape[k->rank - 2] ? o->window : 0,
                                   .softcap = weft__value_or(o->softcap, 0)};
}

weft_tensor *weft__attention_over_cache(const char *where, weft_tensor *q, weft_tensor *k, weft_tensor *v,
                                        weft_tensor *position, const weft_attention_options *options) {
    weft_tensor *in[4] = {q, k, v, position}, *out[2];
    weft_tensor *bad = weft__reject("attention", where, in, 4);
    if (bad) return bad;
    in[1] = repeated(where, k, q);
    in[2] = repeated(where, v, q);
    if (in[1]->error || in[2]->error) return in[1]->error ? in[1] : in[2];
    weft_attention_params params = params_of(options, q, k);
    params.causal = true;
    weft__composite(where, &weft__attention_cached, &params, in, out);
    return out[0];
}

/* NULL if shapes and dtypes of q, k and v fit; else a poisoned tensor. */
static weft_tensor *reject_operands(const char *where, weft_tensor *q, weft_tensor *k, weft_tensor *v) {
    char a[WEFT_SHAPE_TEXT], b[WEFT_SHAPE_TEXT], c[WEFT_SHAPE_TEXT];
    weft__tensor_text(q, a);
    weft__tensor_text(k, b);
    weft__tensor_text(v, c);
    bool fits = q->rank == 4 && k->rank == 4 && weft__shape_equal(k, v) && q->shape[0] == k->shape[0] &&
                q->shape[3] == k->shape[3];
    fits = fits && (q->shape[1] == k->shape[1] || (k->shape[1] > 0 && q->shape[1] % k->shape[1] == 0));
    if (!fits)
        return weft__poison(
            q->ctx, where, WEFT_ERR_SHAPE,
            "attention: q %s, k %s, v %s must be (B,H,T,D), (B,G,S,D), (B,G,S,D), with H a multiple of G", a,
            b, c);
    if (q->dtype != k->dtype || q->dtype != v->dtype || !weft_dtype_is_float((weft_dtype)q->dtype))
        return weft__poison(q->ctx, where, WEFT_ERR_DTYPE,
                            "attention: q %s, k %s, v %s must be of one float dtype", a, b, c);
    return NULL;
}

/* NULL if the mask broadcasts to (B, H, T, S); else a poisoned tensor. */
static weft_tensor *reject_mask(const char *where, const weft_tensor *q, const weft_tensor *k,
                                weft_tensor *mask) {
    const int64_t scores[4] = {q->shape[0], q->shape[1], q->shape[2], k->shape[2]};
    const weft_dtype dtype = weft_dtype_of(mask);
    bool fits = mask->rank <= 4;
    for (int i = 0; fits && i < mask->rank; i++)
        fits = mask->shape[i] == 1 || mask->shape[i] == scores[4 - mask->rank + i];
    char text[WEFT_SHAPE_TEXT], wanted[WEFT_SHAPE_TEXT];
    if (!fits)
        return weft__poison(q->ctx, where, WEFT_ERR_SHAPE,
                            "attention: mask %s does not broadcast to (B,H,T,S), here %s",
                            weft__tensor_text(mask, text), weft__shape_text(4, scores, wanted));
    if (dtype != WEFT_BOOL && !weft_dtype_is_float(dtype))
        return weft__poison(q->ctx, where, WEFT_ERR_DTYPE,
                            "attention: mask %s must be bool (true where a query sees a key) or a float",
                            weft__tensor_text(mask, text));
    return NULL;
}

/* The mask in the form that the composite takes: rank 4, bool or of the dtype of scores. */
static weft_tensor *mask_operand(const char *where, weft_tensor *mask, const weft_tensor *q) {
    int64_t shape[4] = {1, 1, 1, 1};
    for (int i = 0; i < mask->rank; i++) shape[4 - mask->rank + i] = mask->shape[i];
    mask = weft_reshape_at(where, mask, 4, shape);
    if (mask->error || mask->dtype == WEFT_BOOL) return mask;
    return as_dtype(where, mask, q->dtype == WEFT_F64 ? WEFT_F64 : WEFT_F32);
}

weft_tensor *weft_attention_at(const char *where, weft_tensor *q, weft_tensor *k, weft_tensor *v,
                               const weft_attention_options *options) {
    weft_attention_options given = options ? *options : (weft_attention_options){0};
    weft_tensor *in[5] = {q, k, v, given.mask};
    weft_tensor *bad = weft__reject("attention", where, in, given.mask ? 4 : 3);
    if (!bad && q) bad = reject_operands(where, q, k, v);
    if (!bad && q && given.mask) bad = reject_mask(where, q, k, given.mask);
    if (bad || !q) return bad;
    if (!(given.dropout >= 0 && given.dropout < 1))
        return weft__poison(q->ctx, where, WEFT_ERR_ARGUMENT, "attention: dropout %g is not in [0, 1)",
                            given.dropout);
    if (given.window < 0 || (given.window > 0 && !given.causal) || !(given.softcap >= 0))
        return weft__poison(q->ctx, where, WEFT_ERR_ARGUMENT,
                            "attention: window %lld and softcap %g must not be negative, and a window is for "
                            "causal attention",
                            (long long)given.window, given.softcap);
    const weft_attention_params params = params_of(&given, q, k);
    in[1] = repeated(where, k, q);
    in[2] = repeated(where, v, q);
    in[3] = params.dropout > 0 ? weft__random_next(q->ctx, where) : weft__random_leaf(q->ctx, where, 0);
    if (given.mask) in[4] = mask_operand(where, given.mask, q);
    for (int i = 1; i < (given.mask ? 5 : 4); i++)
        if (in[i]->error) return in[i];
    in[3]->value.random.first =
        q->ctx->random.micro_batch * (uint64_t)(q->shape[0] * q->shape[1] * q->shape[2] * k->shape[2]);
    weft_tensor *out[2];
    weft__composite(where, given.mask ? &weft__attention_masked : &weft__attention, &params, in, out);
    return out[0];
}
