/* Multi-head self-attention, and the transformer block around it. Queries, keys and values are views of one
 * packed projection; heads are a permuted view: nothing is copied before the attention kernel reads it. In
 * decoding, keys and values go to a cache and the step looks at all of it, masked by position. */
#include "nn/module.h"
#include "ops/build.h"

typedef struct attention_own {
    int64_t width, heads;
    bool causal;
    double dropout;
    weft__decode *decode;
} attention_own;

void weft__attention_decode(weft_module *attention, weft__decode *step) {
    ((attention_own *)attention->user)->decode = step;
}

/* Part `part` of three of x (B, T, 3C), by heads: (B, H, T, D). */
static weft_tensor *head_view(const char *where, const attention_own *own, weft_tensor *x, int part) {
    if (weft__poisoned(x)) return x;
    int64_t batch = x->shape[0], time = x->shape[1];
    weft_tensor *v = weft_narrow_at(where, x, -1, part * own->width, own->width);
    v = weft_reshape_at(where, v, 4, (int64_t[]){batch, time, own->heads, own->width / own->heads});
    return weft_permute_at(where, v, (int[]){0, 2, 1, 3});
}

/* Attention of q, k, v (1, H, T, D) at positions position..position+T-1 over the caches (1, H, S, D), which
 * get k and v first. */
static weft_tensor *decode_step(const char *where, weft__decode *step, weft_tensor *q, weft_tensor *k,
                                weft_tensor *v) {
    if (weft__poisoned(q)) return q;
    step->next_keys = weft_update_at(where, step->keys, k, step->position, 2);
    step->next_values = weft_update_at(where, step->values, v, step->position, 2);
    return weft__attention_over_cache(where, q, step->next_keys, step->next_values, step->position);
}

static weft_tensor *attention_forward(weft_module *m, weft_tensor *x) {
    const attention_own *own = m->user;
    const char *where = m->where;
    if (x->rank != 3 || x->shape[2] != own->width) {
        char text[WEFT_SHAPE_TEXT];
        return weft__poison(x->ctx, where, WEFT_ERR_SHAPE, "attention: input %s must be (batch, time, %lld)",
                            weft__tensor_text(x, text), (long long)own->width);
    }
    int64_t batch = x->shape[0], time = x->shape[1];
    double dropout = m->ctx->training ? own->dropout : 0.0;
    weft_tensor *packed = weft_forward_at(where, m->children[0], x);
    weft_tensor *q = head_view(where, own, packed, 0);
    weft_tensor *k = head_view(where, own, packed, 1);
    weft_tensor *v = head_view(where, own, packed, 2);
    weft_tensor *y;
    if (own->decode)
        y = decode_step(where, own->decode, q, k, v);
    else
        y = weft_attention_at(where, q, k, v,
                              &(weft_attention_options){.causal = own->causal, .dropout = dropout});
    y = weft_permute_at(where, y, (int[]){0, 2, 1, 3}); /* (B, T, H, D) */
    y = weft_reshape_at(where, y, 3, (int64_t[]){batch, time, own->width});
    y = weft_forward_at(where, m->children[1], y);
    return dropout > 0.0 ? weft_dropout_at(where, y, dropout) : y;
}

weft_module *weft_multihead_attention(weft_context *ctx, int64_t width, int64_t heads,
                                      const weft_multihead_attention_options *options) {
    weft_multihead_attention_options o = options ? *options : (weft_multihead_attention_options){0};
    weft_module *m = weft__module_make(ctx, "attention", attention_forward, sizeof(attention_own));
    if (m->error) return m;
    if (width < 1 || width > INT32_MAX || heads < 1 || width % heads != 0)
        return weft__module_poison(m, WEFT_ERR_ARGUMENT,
                                   "attention: width %lld must be a positive multiple of heads %lld",
                                   (long long)width, (long long)heads);
    if (!(o.dropout >= 0.0 && o.dropout < 1.0))
        return weft__module_poison(m, WEFT_ERR_ARGUMENT, "attention: dropout %g is not in 0..1", o.dropout);
    *(attention_own *)m->user = (attention_own){width, heads, o.causal, o.dropout, NULL};
    weft_linear_options linear = {.no_bias = o.no_bias, .dtype = o.dtype, .weight = o.weight, .bias = o.bias};
    weft_module_child(m, "c_attn", weft_linear(ctx, width, 3 * width, &linear));
    linear.weight = weft__init_or(o.residual, o.weight);
    weft_module_child(m, "c_proj", weft_linear(ctx, width, width, &linear));
    return m;
}

/* ---- the block ---- */

typedef struct feed_own {
    weft_activation_kind activation;
    double dropout;
} feed_own;

static weft_tensor *feed_forward(weft_module *m, weft_tensor *x) {
    const feed_own *own = m->user;
    const char *where = m->where;
    weft_tensor *hidden = weft_forward_at(where, m->children[0], x);
    if (weft__poisoned(hidden)) return hidden;
    const uint32_t segment = weft__recompute_begin(m, WEFT_RECOMPUTE_GELU);
    weft_tensor *active = weft__activate(where, own->activation, hidden);
    weft__segment_end(m->ctx, segment);
    weft_tensor *y = weft_forward_at(where, m->children[1], active);
    return m->ctx->training && own->dropout > 0.0 ? weft_dropout_at(where, y, own->dropout) : y;
}

static weft_tensor *block_forward(weft_module *m, weft_tensor *x) {
    const char *where = m->where;
    x = add(x, weft_forward_at(where, m->children[1], weft_forward_at(where, m->children[0], x)));
    return add(x, weft_forward_at(where, m->children[3], weft_forward_at(where, m->children[2], x)));
}

weft_module *weft_transformer_block(weft_context *ctx, int64_t width, int64_t heads,
                                    const weft_transformer_block_options *options) {
    weft_transformer_block_options o = options ? *options : (weft_transformer_block_options){0};
    weft_module *m = weft__module_make(ctx, "transformer_block", block_forward, 0);
    if (!m->error) m->unit = true; /* else it may be that which all get for want of memory */
    weft_module *feed = weft__module_make(ctx, "feed_forward", feed_forward, sizeof(feed_own));
    int64_t hidden = o.hidden;
    if (hidden == 0 && !weft__mul(width, 4, &hidden))
        weft__module_poison(m, WEFT_ERR_ARGUMENT, "block: width %lld is too large", (long long)width);
    weft_norm_options norm = {.eps = o.eps, .no_bias = o.no_bias, .dtype = o.dtype};
    weft_module_child(m, "ln_1", weft_layernorm(ctx, width, &norm));
    weft_multihead_attention_options attention = {.causal = o.causal,
                                                  .no_bias = o.no_bias,
                                                  .dropout = o.dropout,
                                                  .dtype = o.dtype,
                                                  .weight = o.weight,
                                                  .bias = o.bias,
                                                  .residual = o.residual};
    weft_module_child(m, "attn", weft_multihead_attention(ctx, width, heads, &attention));
    weft_module_child(m, "ln_2", weft_layernorm(ctx, width, &norm));
    if (!feed->error) {
        weft_activation_kind kind = o.activation == WEFT_IDENTITY ? WEFT_GELU_TANH : o.activation;
        *(feed_own *)feed->user = (feed_own){kind, o.dropout};
        weft_linear_options linear = {
            .no_bias = o.no_bias, .dtype = o.dtype, .weight = o.weight, .bias = o.bias};
        weft_module_child(feed, "c_fc", weft_linear(ctx, width, hidden, &linear));
        linear.weight = weft__init_or(o.residual, o.weight);
        weft_module_child(feed, "c_proj", weft_linear(ctx, hidden, width, &linear));
    }
    weft_module_child(m, "mlp", feed);
    return m;
}
