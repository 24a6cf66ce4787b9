/* Multi-head attention, of a sequence to itself or to a memory. Queries, keys and values are views of packed
 * projections. Heads are a permuted view, and query heads that share keys and values are passed as such. So
 * nothing is copied before the attention kernel reads it. In decoding, keys and values go into a cache, and a
 * step attends to the whole cache, masked by position.
 * Must not know: kernels. Read next: block.c, ops/attention.c. */
#include "nn/module.h"
#include "ops/build.h"

typedef struct attention_own {
    int64_t width, heads, kv_heads, memory_width; /* memory_width is 0 for self-attention */
    bool causal, rotary;
    weft_rotary_options rotation;
    double dropout;
    weft__decode *decode;
} attention_own;

/* Indices of the children. */
enum { C_ATTN, C_PROJ, Q_ATTN };

void weft__attention_decode(weft_module *attention, weft__decode *step) {
    ((attention_own *)attention->user)->decode = step;
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
    const int64_t d = own->width / own->heads;
    weft_tensor *v = weft_narrow_at(where, x, -1, from, heads * d);
    v = weft_reshape_at(where, v, 4, (int64_t[]){x->shape[0], x->shape[1], heads, d});
    return weft_permute_at(where, v, (int[]){0, 2, 1, 3});
}

/* Updates the caches with k and v, then attends from q (1, H, T, D) at positions position..position+T-1 to
 * them. */
static weft_tensor *decode_step(const char *where, weft__decode *step, weft_tensor *q, weft_tensor *k,
                                weft_tensor *v) {
    if (weft__poisoned(q)) return q;
    step->next_keys = weft_update_at(where, step->keys, k, step->position, 2);
    step->next_values = weft_update_at(where, step->values, v, step->position, 2);
    return weft__attention_over_cache(where, q, step->next_keys, step->next_values, step->position);
}

/* Joins the heads of y (B, H, T, D) and projects them. */
static weft_tensor *projected(weft_module *m, weft_tensor *y, double dropout) {
    const attention_own *own = m->user;
    const char *where = m->where;
    if (weft__poisoned(y)) return y;
    const int64_t batch = y->shape[0], time = y->shape[2];
    y = weft_permute_at(where, y, (int[]){0, 2, 1, 3}); /* (B, T, H, D) */
    y = weft_reshape_at(where, y, 3, (int64_t[]){batch, time, own->width});
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
    const int64_t of_keys = own->kv_heads * (own->width / own->heads);
    const double dropout = m->ctx->training ? own->dropout : 0.0;
    weft_tensor *packed = weft_forward_at(where, m->children[C_ATTN], x);
    weft_tensor *q = head_view(where, own, packed, 0, own->heads);
    weft_tensor *k = head_view(where, own, packed, own->width, own->kv_heads);
    weft_tensor *v = head_view(where, own, packed, own->width + of_keys, own->kv_heads);
    if (own->rotary) {
        weft_tensor *position = own->decode ? own->decode->position : NULL;
        q = weft_rotary_at(where, q, position, &own->rotation);
        k = weft_rotary_at(where, k, position, &own->rotation);
    }
    if (own->decode) return projected(m, decode_step(where, own->decode, q, k, v), dropout);
    const weft_attention_options options = {
        .causal = own->causal, .dropout = dropout, .mask = score_mask(where, given_to(m).mask)};
    return projected(m, weft_attention_at(where, q, k, v, &options), dropout);
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
    weft_tensor *v = head_view(where, own, packed, own->kv_heads * (own->width / own->heads), own->kv_heads);
    const weft_attention_options options = {.dropout = dropout, .mask = score_mask(where, given.memory_mask)};
    return projected(m, weft_attention_at(where, q, k, v, &options), dropout);
}

/* ---- making ---- */

static bool attention_check_options(weft_module *m, int64_t width, int64_t heads,
                                    const weft_multihead_attention_options *o) {
    if (width < 1 || width > INT32_MAX || heads < 1 || width % heads != 0)
        weft__module_poison(m, WEFT_ERR_ARGUMENT,
                            "attention: width %lld must be a positive multiple of heads %lld",
                            (long long)width, (long long)heads);
    else if (o->kv_heads < 0 || (o->kv_heads > 0 && heads % o->kv_heads != 0))
        weft__module_poison(m, WEFT_ERR_ARGUMENT, "attention: heads %lld must be a multiple of kv_heads %lld",
                            (long long)heads, (long long)o->kv_heads);
    else if (!(o->dropout >= 0.0 && o->dropout < 1.0))
        weft__module_poison(m, WEFT_ERR_ARGUMENT, "attention: dropout %g is not in 0..1", o->dropout);
    else if (o->rotary && width / heads % 2 != 0)
        weft__module_poison(m, WEFT_ERR_ARGUMENT,
                            "attention: rotary positions rotate pairs of channels, but a head has an odd "
                            "number of them, %lld",
                            (long long)(width / heads));
    return !m->error;
}

static weft_module *attention(weft_context *ctx, weft_forward_fn forward, int64_t width, int64_t memory_width,
                              int64_t heads, const weft_multihead_attention_options *options) {
    weft_multihead_attention_options o = options ? *options : (weft_multihead_attention_options){0};
    weft_module *m = weft__module_make(ctx, memory_width ? "cross_attention" : "attention", forward,
                                       sizeof(attention_own));
    if (m->error || !attention_check_options(m, width, heads, &o)) return m;
    if (o.kv_heads == 0) o.kv_heads = heads;
    *(attention_own *)m->user = (attention_own){.width = width,
                                                .heads = heads,
                                                .kv_heads = o.kv_heads,
                                                .memory_width = memory_width,
                                                .causal = o.causal,
                                                .rotary = o.rotary,
                                                .rotation = o.rotation,
                                                .dropout = o.dropout};
    const int64_t of_keys = 2 * o.kv_heads * (width / heads);
    weft_linear_options linear = {.no_bias = o.no_bias, .dtype = o.dtype, .weight = o.weight, .bias = o.bias};
    weft_module_child(m, "c_attn",
                      memory_width ? weft_nn_linear(ctx, memory_width, of_keys, &linear)
                                   : weft_nn_linear(ctx, width, width + of_keys, &linear));
    weft_module *queries = memory_width ? weft_nn_linear(ctx, width, width, &linear) : NULL;
    linear.weight = weft__init_or(o.residual, o.weight);
    weft_module_child(m, "c_proj", weft_nn_linear(ctx, width, width, &linear));
    if (queries) weft_module_child(m, "q_attn", queries);
    return m;
}

weft_module *weft_nn_multihead_attention(weft_context *ctx, int64_t width, int64_t heads,
                                         const weft_multihead_attention_options *options) {
    if (!ctx) return weft__module_without_context(__func__);
    return attention(ctx, attention_forward, width, 0, heads, options);
}

weft_module *weft_nn_cross_attention(weft_context *ctx, int64_t width, int64_t memory_width, int64_t heads,
                                     const weft_multihead_attention_options *options) {
    if (memory_width >= 1 && memory_width <= INT32_MAX && !(options && (options->causal || options->rotary)))
        return attention(ctx, cross_forward, width, memory_width, heads, options);
    weft_module *m = weft__module_make(ctx, "cross_attention", cross_forward, 0);
    return m->error ? m
                    : weft__module_poison(m, WEFT_ERR_ARGUMENT,
                                          "cross attention: memory width %lld must be positive, and causal "
                                          "and rotary must not be set",
                                          (long long)memory_width);
}
