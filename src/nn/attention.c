/* Multi-head attention, of a sequence to itself or to a memory. Queries, keys and values are views of packed
 * projections. Heads are a permuted view, and query heads that share keys and values are passed as such. So
 * nothing is copied before the attention kernel reads it. In decoding, keys and values go into a cache, and a
 * step attends to the whole cache, masked by position.
 * Must not know: kernels. Read next: block.c, ops/attention.c. */
#include "nn/module.h"
#include "ops/build.h"

typedef struct attention_own {
    int64_t width, heads, kv_heads, memory_width; /* memory_width is 0 for self-attention */
    int64_t d;                                    /* channels of a head */
    bool causal, rotary;
    weft_rotary_options rotation;
    weft_attention_form form;
    double dropout;
    const weft__decode_step *decoding; /* the current step, or NULL */
    int64_t layer;                     /* the number of this layer in it */
} attention_own;

/* Indices of the children. Cross-attention has Q_ATTN, a norm of queries and keys the other two. */
enum { C_ATTN, C_PROJ, Q_ATTN, Q_NORM = Q_ATTN, K_NORM };

void weft__attention_decode(weft_module *attention, const weft__decode_step *step, int64_t layer) {
    attention_own *own = attention->user;
    own->decoding = step;
    own->layer = layer;
}

/* ---- masks and memory, given by weft_attend ---- */

weft_tensor *weft_attend_at(const char *where, weft_module *m, weft_tensor *x,
                            const weft_attend_options *options) {
    WEFT_NEED_OR_POISON(weft_context_of(x), where, m);
    WEFT_NEED_OR_POISON(m->ctx, where, x);
    if (m->error) return weft_forward_at(where, m, x);
    const weft_attend_options *outer = m->attend;
    m->attend = options;
    weft_tensor *y = weft_forward_at(where, m, x);
    m->attend = outer;
    return y;
}

#undef weft_attend
weft_tensor *weft_attend(weft_module *m, weft_tensor *x, const weft_attend_options *options) {
    return weft_attend_at(NULL, m, x, options);
}

static weft_attend_options given_to(const weft_module *m) {
    while (m && !m->attend) m = m->parent;
    return m ? *m->attend : (weft_attend_options){0};
}

/* A padding mask (B, S) as a mask of scores (B, 1, 1, S). Other masks are returned unchanged. */
static weft_tensor *score_mask(const char *where, weft_tensor *mask) {
    if (weft__poisoned(mask) || mask->rank != 2) return mask;
    return weft_reshape_at(where, mask, 4, (int64_t[]){mask->shape[0], 1, 1, mask->shape[1]});
}

/* ---- heads ---- */

/* A view of `heads` heads of x (B, T, C), from channel `from` on: (B, heads, T, D). */
static weft_tensor *head_view(const char *where, const attention_own *own, weft_tensor *x, int64_t from,
                              int64_t heads) {
    if (weft__poisoned(x)) return x;
    weft_tensor *v = weft_narrow_at(where, x, -1, from, heads * own->d);
    v = weft_reshape_at(where, v, 4, (int64_t[]){x->shape[0], x->shape[1], heads, own->d});
    return weft_permute_at(where, v, (int[]){0, 2, 1, 3});
}

/* Updates the caches of a text with k and v, then attends from q (1, H, T, D) at positions
 * position..position+T-1 to them. */
static weft_tensor *decode_text(const char *where, weft__decode *step, weft_tensor *q, weft_tensor *k,
                                weft_tensor *v, const weft_attention_options *options) {
    if (weft__poisoned(q)) return q;
    step->next_keys = weft_update_at(where, step->keys, k, step->position, 2);
    step->next_values = weft_update_at(where, step->values, v, step->position, 2);
    return weft__attention_over_cache(where, q, step->next_keys, step->next_values, step->position, options);
}

/* A decoding step of one text, or of one token of each text. Each token then attends to the caches of its own
 * text only. */
static weft_tensor *decode_step(const char *where, const attention_own *own, weft_tensor *q, weft_tensor *k,
                                weft_tensor *v, const weft_attention_options *options) {
    const weft__decode_step *step = own->decoding;
    weft_tensor *parts[WEFT__DECODE_MOST];
    if (step->count == 1) return decode_text(where, &step->texts[0][own->layer], q, k, v, options);
    for (int64_t i = 0; i < step->count; i++) {
        weft_tensor *query = weft_narrow_at(where, q, 2, i, 1), *key = weft_narrow_at(where, k, 2, i, 1);
        weft_tensor *value = weft_narrow_at(where, v, 2, i, 1);
        parts[i] = decode_text(where, &step->texts[i][own->layer], query, key, value, options);
    }
    return weft_concat_at(where, parts, (int)step->count, 2);
}

/* Joins the heads of y (B, H, T, D) and projects them. */
static weft_tensor *projected(weft_module *m, weft_tensor *y, double dropout) {
    const attention_own *own = m->user;
    const char *where = m->where;
    if (weft__poisoned(y)) return y;
    const int64_t batch = y->shape[0], time = y->shape[2];
    y = weft_permute_at(where, y, (int[]){0, 2, 1, 3}); /* (B, T, H, D) */
    y = weft_reshape_at(where, y, 3, (int64_t[]){batch, time, own->heads * own->d});
    y = weft_forward_at(where, m->children[C_PROJ], y);
    return dropout > 0.0 ? weft_dropout_at(where, y, dropout) : y;
}

static weft_tensor *reject_input(weft_module *m, weft_tensor *x, const char *what, int64_t width) {
    char text[WEFT_SHAPE_TEXT];
    if (x->rank == 3 && x->shape[2] == width) return NULL;
    return weft__poison(x->ctx, m->where, WEFT_ERR_SHAPE, "attention: %s %s must be (batch, time, %lld)",
                        what, weft__tensor_text(x, text), (long long)width);
}

static weft_tensor *attention_forward(weft_module *m, weft_tensor *x) {
    const attention_own *own = m->user;
    const char *where = m->where;
    weft_tensor *bad = reject_input(m, x, "input", own->width);
    if (bad) return bad;
    const int64_t of_queries = own->heads * own->d, of_keys = own->kv_heads * own->d;
    const weft_attention_options options = {.causal = own->causal,
                                            .scale = own->form.scale,
                                            .dropout = m->ctx->training ? own->dropout : 0.0,
                                            .mask = score_mask(where, given_to(m).mask),
                                            .window = own->form.window,
                                            .softcap = own->form.softcap};
    weft_tensor *packed = weft_forward_at(where, m->children[C_ATTN], x);
    weft_tensor *q = head_view(where, own, packed, 0, own->heads);
    weft_tensor *k = head_view(where, own, packed, of_queries, own->kv_heads);
    weft_tensor *v = head_view(where, own, packed, of_queries + of_keys, own->kv_heads);
    if (own->form.qk_norm) {
        q = weft_forward_at(where, m->children[Q_NORM], q);
        k = weft_forward_at(where, m->children[K_NORM], k);
    }
    if (own->rotary) {
        weft_tensor *position = own->decoding ? own->decoding->position : NULL;
        q = weft_rotary_at(where, q, position, &own->rotation);
        k = weft_rotary_at(where, k, position, &own->rotation);
    }
    weft_tensor *y = own->decoding ? decode_step(where, own, q, k, v, &options)
                                   : weft_attention_at(where, q, k, v, &options);
    return projected(m, y, options.dropout);
}

static weft_tensor *cross_forward(weft_module *m, weft_tensor *x) {
    const attention_own *own = m->user;
    const char *where = m->where;
    const weft_attend_options given = given_to(m);
    weft_tensor *bad = reject_input(m, x, "input", own->width), *memory = given.memory;
    if (bad) return bad;
    if (!memory)
        return weft__poison(x->ctx, where, WEFT_ERR_ARGUMENT,
                            "cross attention: there is no memory; call weft_attend with one");
    bad = weft__reject("cross attention", where, (weft_tensor *[]){x, memory}, 2);
    if (!bad) bad = reject_input(m, memory, "memory", own->memory_width);
    if (bad) return bad;
    if (m->compute != WEFT_F32 && weft_dtype_of(memory) == WEFT_F32)
        memory = weft_cast_at(where, memory, m->compute);
    const double dropout = m->ctx->training ? own->dropout : 0.0;
    weft_tensor *queries = weft_forward_at(where, m->children[Q_ATTN], x);
    weft_tensor *packed = weft_forward_at(where, m->children[C_ATTN], memory);
    weft_tensor *q = head_view(where, own, queries, 0, own->heads);
    weft_tensor *k = head_view(where, own, packed, 0, own->kv_heads);
    weft_tensor *v = head_view(where, own, packed, own->kv_heads * own->d, own->kv_heads);
    const weft_attention_options options = {.dropout = dropout, .mask = score_mask(where, given.memory_mask)};
    return projected(m, weft_attention_at(where, q, k, v, &options), dropout);
}

/* ---- making ---- */

static bool attention_check_options(weft_module *m, int64_t width, int64_t heads,
                                    const weft_multihead_attention_options *o) {
    const int64_t d = weft__head_width(&o->form, width, heads < 1 ? 1 : heads);
    if (width < 1 || width > INT32_MAX || heads < 1 || (!o->form.head_width && width % heads != 0))
        weft__module_poison(m, WEFT_ERR_ARGUMENT,
                            "attention: width %lld must be a positive multiple of heads %lld",
                            (long long)width, (long long)heads);
    else if (d < 1 || d > INT32_MAX / heads)
        weft__module_poison(m, WEFT_ERR_ARGUMENT, "attention: head_width %lld must be positive and not huge",
                            (long long)d);
    else if (o->kv_heads < 0 || (o->kv_heads > 0 && heads % o->kv_heads != 0))
        weft__module_poison(m, WEFT_ERR_ARGUMENT, "attention: heads %lld must be a multiple of kv_heads %lld",
                            (long long)heads, (long long)o->kv_heads);
    else if (!(o->dropout >= 0.0 && o->dropout < 1.0))
        weft__module_poison(m, WEFT_ERR_ARGUMENT, "attention: dropout %g is not in 0..1", o->dropout);
    else if (o->rotary && d % 2 != 0)
        weft__module_poison(m, WEFT_ERR_ARGUMENT,
                            "attention: rotary positions rotate pairs of channels, but a head has an odd "
                            "number of them, %lld",
                            (long long)d);
    return !m->error;
}

static weft_module *attention(weft_context *ctx, weft_forward_fn forward, int64_t width, int64_t memory_width,
                              int64_t heads, const weft_multihead_attention_options *options) {
    weft_multihead_attention_options o = options ? *options : (weft_multihead_attention_options){0};
    weft_module *m = weft__module_make(ctx, memory_width ? "cross_attention" : "attention", forward,
                                       sizeof(attention_own));
    if (m->error || !attention_check_options(m, width, heads, &o)) return m;
    if (o.kv_heads == 0) o.kv_heads = heads;
    const int64_t d = weft__head_width(&o.form, width, heads);
    const int64_t of_queries = heads * d, of_keys = 2 * o.kv_heads * d;
    *(attention_own *)m->user = (attention_own){.width = width,
                                                .heads = heads,
                                                .kv_heads = o.kv_heads,
                                                .memory_width = memory_width,
                                                .d = d,
                                                .causal = o.causal,
                                                .rotary = o.rotary,
                                                .rotation = o.rotation,
                                                .form = o.form,
                                                .dropout = o.dropout};
    weft_linear_options linear = {
        .no_bias = o.no_bias && !o.form.qkv_bias, .dtype = o.dtype, .weight = o.weight, .bias = o.bias};
    weft_module_child(m, "c_attn",
                      memory_width ? weft_nn_linear(ctx, memory_width, of_keys, &linear)
                                   : weft_nn_linear(ctx, width, of_queries + of_keys, &linear));
    weft_module *queries = memory_width ? weft_nn_linear(ctx, width, of_queries, &linear) : NULL;
    linear.weight = weft__init_or(o.residual, o.weight);
    linear.no_bias = o.no_bias && !o.form.out_bias;
    weft_module_child(m, "c_proj", weft_nn_linear(ctx, of_queries, width, &linear));
    if (queries) weft_module_child(m, "q_attn", queries);
    if (!o.form.qk_norm) return m;
    weft_module_child(m, "q_norm", weft_nn_rms_norm(ctx, d, &o.norm));
    weft_module_child(m, "k_norm", weft_nn_rms_norm(ctx, d, &o.norm));
    return m;
}

weft_module *weft_nn_multihead_attention(weft_context *ctx, int64_t width, int64_t heads,
                                         const weft_multihead_attention_options *options) {
    if (!ctx) return weft__module_without_context(__func__);
    return attention(ctx, attention_forward, width, 0, heads, options);
}

weft_module *weft_nn_cross_attention(weft_context *ctx, int64_t width, int64_t memory_width, int64_t heads,
                                     const weft_multihead_attention_options *options) {
    const bool plain = !options || !(options->causal || options->rotary || options->form.qk_norm);
    if (memory_width >= 1 && memory_width <= INT32_MAX && plain)
        return attention(ctx, cross_forward, width, memory_width, heads, options);
    weft_module *m = weft__module_make(ctx, "cross_attention", cross_forward, 0);
    return m->error ? m
                    : weft__module_poison(m, WEFT_ERR_ARGUMENT,
                                          "cross attention: memory width %lld must be positive, and causal, "
                                          "rotary and qk_norm must not be set",
                                          (long long)memory_width);
}
