/* The transformer block: self-attention, in a decoder also attention to a memory, and an MLP, plain or gated.
 * Each has a norm and a residual connection.
 * Must not know: language models. Read next: attention.c, gpt.c. */
#include "nn/module.h"
#include "ops/build.h"

/* ---- the MLP ---- */

typedef struct feed_own {
    weft_activation_kind activation;
    double dropout;
    int64_t hidden;
    bool gated; /* c_fc makes both the gate and the values that it multiplies, packed */
} feed_own;

static weft_tensor *activated(const char *where, const feed_own *own, weft_tensor *x) {
    if (!own->gated) return weft__activate(where, own->activation, x);
    weft_tensor *gate = weft_narrow_at(where, x, -1, 0, own->hidden),
                *up = weft_narrow_at(where, x, -1, own->hidden, own->hidden);
    if (weft__poisoned(gate)) return gate;
    return at_mul(weft__activate(where, own->activation, gate), up);
}

static weft_tensor *feed_forward(weft_module *m, weft_tensor *x) {
    const feed_own *own = m->user;
    const char *where = m->where;
    weft_tensor *hidden = weft_forward_at(where, m->children[0], x);
    if (weft__poisoned(hidden)) return hidden;
    const uint32_t segment = weft__recompute_begin(m, WEFT_RECOMPUTE_GELU);
    weft_tensor *active = activated(where, own, hidden);
    weft__segment_end(m->ctx, segment);
    weft_tensor *y = weft_forward_at(where, m->children[1], active);
    return m->ctx->training && own->dropout > 0.0 ? weft_dropout_at(where, y, own->dropout) : y;
}

/* The number of hidden channels; 0: too many. */
static int64_t hidden_of(int64_t width, const weft_transformer_block_options *o) {
    int64_t hidden = o->hidden;
    if (hidden) return hidden;
    if (!weft__mul(width, o->gated ? 8 : 4, &hidden)) return 0;
    return o->gated ? weft__ceil_div(weft__ceil_div(hidden, 3), 32) * 32 : hidden;
}

static weft_module *feed(weft_context *ctx, int64_t width, const weft_transformer_block_options *o) {
    weft_module *m = weft__module_make(ctx, "feed_forward", feed_forward, sizeof(feed_own));
    const int64_t hidden = hidden_of(width, o);
    if (m->error) return m;
    if (hidden < 1 || hidden > INT32_MAX)
        return weft__module_poison(m, WEFT_ERR_ARGUMENT,
                                   "block: width %lld must be positive, hidden %lld must not be negative, "
                                   "and neither may be too large",
                                   (long long)width, (long long)o->hidden);
    weft_activation_kind kind = o->activation;
    if (kind == WEFT_ACTIVATION_DEFAULT) kind = o->gated ? WEFT_SILU : WEFT_GELU_TANH;
    *(feed_own *)m->user = (feed_own){kind, o->dropout, hidden, o->gated};
    weft_linear_options linear = {
        .no_bias = o->no_bias && !o->mlp_bias, .dtype = o->dtype, .weight = o->weight, .bias = o->bias};
    weft_module_child(m, "c_fc", weft_nn_linear(ctx, width, o->gated ? 2 * hidden : hidden, &linear));
    linear.weight = weft__init_or(o->residual, o->weight);
    weft_module_child(m, "c_proj", weft_nn_linear(ctx, hidden, width, &linear));
    return m;
}

/* ---- the block ---- */

typedef struct block_own {
    bool post_norm, branch_norms, parallel;
} block_own;

/* Children: a norm, its branch and, with branch_norms, the norm of the branch's result; then the same again.
 * With post_norm the norm follows the residual sum. */
static weft_tensor *block_forward(weft_module *m, weft_tensor *x) {
    const char *where = m->where;
    const block_own *own = m->user;
    weft_tensor *const input = x;
    for (size_t i = 0; i + 1 < m->n_children; i += own->branch_norms ? 3 : 2) {
        weft_module *norm = m->children[i], *branch = m->children[i + 1];
        if (own->post_norm) {
            x = weft_forward_at(where, norm, at_add(x, weft_forward_at(where, branch, x)));
            continue;
        }
        weft_tensor *y = weft_forward_at(where, norm, own->parallel ? input : x);
        y = weft_forward_at(where, branch, y);
        if (own->branch_norms) y = weft_forward_at(where, m->children[i + 2], y);
        x = at_add(x, y);
    }
    return x;
}

weft_module *weft__norm_of_kind(weft_context *ctx, weft_norm_kind kind, int64_t width,
                                const weft_norm_options *options) {
    return kind == WEFT_NORM_RMS ? weft_nn_rms_norm(ctx, width, options)
                                 : weft_nn_layer_norm(ctx, width, options);
}

/* Adds a branch with its norm, named `norm`, and with branch_norms the norm of its result. */
static void block_branch(weft_module *m, const weft_transformer_block_options *o, int64_t width,
                         const char *norm, const char *after, const char *name, weft_module *branch) {
    const weft_norm_options options = {
        .eps = o->eps, .no_bias = o->no_bias, .dtype = o->dtype, .plus_one = o->norm_plus_one};
    weft_module_child(m, norm, weft__norm_of_kind(m->ctx, o->norm, width, &options));
    weft_module_child(m, name, branch);
    if (o->branch_norms) weft_module_child(m, after, weft__norm_of_kind(m->ctx, o->norm, width, &options));
}

static bool block_check_options(weft_module *m, const weft_transformer_block_options *o) {
    if ((unsigned)o->norm > WEFT_NORM_RMS)
        weft__module_poison(m, WEFT_ERR_ARGUMENT, "block: unknown norm %d", (int)o->norm);
    else if (o->post_norm + o->branch_norms + o->parallel > 1 ||
             (o->cross && (o->branch_norms || o->parallel)))
        weft__module_poison(m, WEFT_ERR_ARGUMENT,
                            "block: of post_norm, branch_norms and parallel only one can be set, and only "
                            "post_norm with cross");
    else if (o->norm_plus_one && o->norm != WEFT_NORM_RMS)
        weft__module_poison(m, WEFT_ERR_ARGUMENT, "block: norm_plus_one is for RMS norms");
    return !m->error;
}

weft_module *weft_nn_transformer_block(weft_context *ctx, int64_t width, int64_t heads,
                                       const weft_transformer_block_options *options) {
    if (!ctx) return weft__module_without_context(__func__);
    weft_transformer_block_options o = options ? *options : (weft_transformer_block_options){0};
    weft_module *m = weft__module_make(ctx, "transformer_block", block_forward, sizeof(block_own));
    if (m->error || !block_check_options(m, &o)) return m;
    m->unit = true;
    *(block_own *)m->user = (block_own){o.post_norm, o.branch_norms, o.parallel};
    weft_multihead_attention_options attention = {
        .causal = o.causal,
        .no_bias = o.no_bias,
        .dropout = o.dropout,
        .dtype = o.dtype,
        .weight = o.weight,
        .bias = o.bias,
        .residual = o.residual,
        .kv_heads = o.kv_heads,
        .rotary = o.rotary,
        .rotation = o.rotation,
        .form = o.form,
        .norm = {.eps = o.eps, .dtype = o.dtype, .plus_one = o.norm_plus_one}};
    block_branch(m, &o, width, "ln_1", "ln_1_after", "attn",
                 weft_nn_multihead_attention(ctx, width, heads, &attention));
    if (o.cross) {
        attention.causal = attention.rotary = false;
        attention.form = (weft_attention_form){0};
        block_branch(
            m, &o, width, "ln_cross_attn", NULL, "crossattention",
            weft_nn_cross_attention(ctx, width, o.memory_width ? o.memory_width : width, heads, &attention));
    }
    block_branch(m, &o, width, "ln_2", "ln_2_after", "mlp", feed(ctx, width, &o));
    return m;
}
