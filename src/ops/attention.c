/* Scaled dot-product attention (Vaswani et al. 2017, eq. 1) as a composite that a device may take whole:
 *   s = q k^T * scale, masked where causal; p = softmax(s); y = dropout(p) v; lse = logsumexp(s)
 * q (B, H, T, D), k and v (B, H, S, D); y (B, H, T, D), lse (B, H, T). A row that sees no key is 0.
 * In decoding, k and v are caches and the mask follows from the position, a number on the device. */
#include <math.h>
#include "ops/ops.h"

static void forward_shape(const void *params, weft_tensor *const *in, int output, weft_dtype *dtype,
                          int *rank, int64_t *dims) {
    (void)params;
    *rank = output == 0 ? 4 : 3;
    *dtype = output == 0 ? (weft_dtype)in[0]->dtype : in[0]->dtype == WEFT_F64 ? WEFT_F64 : WEFT_F32;
    for (int i = 0; i < *rank; i++) dims[i] = in[0]->shape[i];
}

/* True at (i, j) where key j is seen by query i: j <= i + position, which is S - T where it is not given. */
static weft_tensor *causal_mask(const char *where, weft_context *ctx, int64_t t, int64_t s,
                                weft_tensor *position) {
    int64_t column[2] = {t, 1};
    weft_tensor *i = weft_iota(ctx, WEFT_I32, 1, &t), *j = weft_iota(ctx, WEFT_I32, 1, &s);
    if (i->error || j->error) return i->error ? i : j;
    i = weft__reshape_to(where, i, 2, column);
    return weft_le_at(where, j, position ? add(i, position) : addc(i, (double)(s - t)));
}

static void expand_from(const char *where, const weft_attention_params *params, weft_tensor *const *in,
                        weft_tensor *position, weft_tensor **out) {
    weft_tensor *q = in[0], *k = in[1], *v = in[2];
    weft_dtype wide = q->dtype == WEFT_F64 ? WEFT_F64 : WEFT_F32, narrow = (weft_dtype)q->dtype;
    weft_tensor *s =
        mulc(weft_cast_at(where, weft_matmul_at(where, q, weft_transpose_at(where, k, -1, -2)), wide),
             params->scale);
    if (params->causal)
        s = select(causal_mask(where, q->ctx, q->shape[2], k->shape[2], position), s,
                   weft_full_like_at(where, s, -(double)INFINITY));
    weft_tensor *p = weft_softmax_at(where, s, -1);
    out[1] = weft_logsumexp_at(where, s, -1, false);
    if (params->dropout > 0 && !p->error) {
        weft_tensor *bits = weft__random_node(where, in[3], p->rank, p->shape);
        weft_tensor *high = weft_and_at(
            where, weft_shr_at(where, bits, weft__constant(p->ctx, where, WEFT_I32, 0, NULL, 8, 8)),
            weft__constant(p->ctx, where, WEFT_I32, 0, NULL, 0xffffff, 0xffffff));
        weft_tensor *unit = mulc(weft_cast_at(where, high, WEFT_F32), 0x1p-24);
        weft_tensor *drop = lt(unit, weft_full_like_at(where, unit, params->dropout));
        p = select(drop, weft_zeros_like_at(where, p), mulc(p, 1.0 / (1.0 - params->dropout)));
    }
    out[0] = weft_matmul_at(where, weft_cast_at(where, p, narrow), v);
}

static void expand(const char *where, const void *params, weft_tensor *const *in, weft_tensor **out) {
    expand_from(where, params, in, NULL, out);
}

static void expand_cached(const char *where, const void *params, weft_tensor *const *in, weft_tensor **out) {
    expand_from(where, params, in, in[3], out);
}

static void gradient_shape(const void *params, weft_tensor *const *in, int output, weft_dtype *dtype,
                           int *rank, int64_t *dims) {
    (void)params;
    *rank = 4;
    *dtype = (weft_dtype)in[output]->dtype;
    for (int i = 0; i < 4; i++) dims[i] = in[output]->shape[i];
}

extern const weft_composite weft__attention;

static const weft_composite attention_gradient = {
    .name = "attention.grad",
    .kind = 2,
    .n_inputs = 7, /* q, k, v, key, y, lse, dy */
    .n_outputs = 3,
    .params_bytes = sizeof(weft_attention_params),
    .shape = gradient_shape,
    .forward = &weft__attention,
};

const weft_composite weft__attention = {
    .name = "attention",
    .kind = 2,
    .n_inputs = 4, /* q, k, v, key */
    .n_outputs = 2,
    .params_bytes = sizeof(weft_attention_params),
    .shape = forward_shape,
    .expand = expand,
    .gradient = &attention_gradient,
};

const weft_composite weft__attention_cached = {
    .name = "attention.cached",
    .kind = 2,
    .n_inputs = 4, /* q, k, v, position */
    .n_outputs = 2,
    .params_bytes = sizeof(weft_attention_params),
    .shape = forward_shape,
    .expand = expand_cached,
};

weft_tensor *weft__attention_over_cache(const char *where, weft_tensor *q, weft_tensor *k, weft_tensor *v,
                                        weft_tensor *position) {
    weft_tensor *in[4] = {q, k, v, position}, *out[2];
    weft_tensor *bad = weft__reject("attention", where, in, 4);
    if (bad) return bad;
    weft_attention_params params = {.scale = 1.0 / sqrt((double)q->shape[3]), .causal = true};
    weft__composite(where, &weft__attention_cached, &params, in, out);
    return out[0];
}

weft_tensor *weft_attention_at(const char *where, weft_tensor *q, weft_tensor *k, weft_tensor *v,
                               const weft_attention_options *options) {
    weft_tensor *in[4] = {q, k, v, NULL}, *bad = weft__reject("attention", where, in, 3);
    if (bad || !q) return bad;
    weft_attention_options given = options ? *options : (weft_attention_options){0};
    char a[WEFT_SHAPE_TEXT], b[WEFT_SHAPE_TEXT], c[WEFT_SHAPE_TEXT];
    bool fits = q->rank == 4 && k->rank == 4 && weft__shape_equal(k, v) && q->shape[0] == k->shape[0] &&
                q->shape[1] == k->shape[1] && q->shape[3] == k->shape[3];
    if (!fits)
        return weft__poison(q->ctx, where, WEFT_ERR_SHAPE,
                            "attention: q %s, k %s, v %s are not (B,H,T,D), (B,H,S,D) twice",
                            weft__tensor_text(q, a), weft__tensor_text(k, b), weft__tensor_text(v, c));
    if (q->dtype != k->dtype || q->dtype != v->dtype || !weft_dtype_is_float((weft_dtype)q->dtype))
        return weft__poison(q->ctx, where, WEFT_ERR_DTYPE,
                            "attention: q %s, k %s, v %s must be of one float dtype", weft__tensor_text(q, a),
                            weft__tensor_text(k, b), weft__tensor_text(v, c));
    if (!(given.dropout >= 0 && given.dropout < 1))
        return weft__poison(q->ctx, where, WEFT_ERR_ARGUMENT, "attention: dropout %g is not in [0, 1)",
                            given.dropout);
    weft_attention_params params = {given.scale, given.dropout, given.causal};
    if (params.scale == 0) params.scale = 1.0 / sqrt((double)(q->shape[3] > 0 ? q->shape[3] : 1));
    in[3] = weft__random_leaf(q->ctx, where, params.dropout > 0 ? weft__next_stream(q->ctx) : 0);
    if (in[3]->error) return in[3];
    in[3]->value.random.first =
        q->ctx->micro_batch * (uint64_t)(q->shape[0] * q->shape[1] * q->shape[2] * k->shape[2]);
    weft_tensor *out[2];
    weft__composite(where, &weft__attention, &params, in, out);
    return out[0];
}
