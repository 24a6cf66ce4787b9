/* GPT-2 (Radford et al., "Language models are unsupervised multitask learners", 2019) and, by options, Llama
 * (Touvron et al., "LLaMA: Open and efficient foundation language models", 2023). The head is the token table
 * transposed, unless it is untied.
 * Must not know: files, sampling. Read next: decode.c, which sets the fields below for one decoding step,
 * gpt_file.c. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/option.h"
#include "nn/module.h"
#include "ops/build.h"
#include "ops/head.h"

typedef struct gpt_own {
    weft_gpt_options o;
    const weft__decode_step *decoding; /* the current step, or NULL */
    int64_t first, end;                /* the blocks that are computed here: all, unless weft__gpt_keep */
} gpt_own;

/* Indices of the children. They are: wte, wpe if positions are learned, h.0 ... h.(layers-1), ln_f, and
 * lm_head if untied. */
enum { TOKENS, POSITIONS };

static weft_module *block_of(const weft_module *gpt, int64_t i) {
    const gpt_own *own = gpt->user;
    return gpt->children[(own->o.positions == WEFT_POSITION_LEARNED ? 2 : 1) + i];
}

static weft_tensor *gpt_forward(weft_module *m, weft_tensor *tokens);

const weft_gpt_options *weft__gpt_options_of(const weft_module *gpt) {
    return gpt && gpt->forward == gpt_forward && !gpt->error ? &((const gpt_own *)gpt->user)->o : NULL;
}

void weft__gpt_decode(weft_module *gpt, const weft__decode_step *step) {
    gpt_own *own = gpt->user;
    own->decoding = step;
    for (int64_t i = 0; i < own->o.layers; i++)
        weft__attention_decode(block_of(gpt, i)->children[1], step, i);
}

void weft__gpt_keep(weft_module *gpt, int64_t first, int64_t end) {
    gpt_own *own = gpt->user;
    const int64_t layers = own->o.layers;
    own->first = first;
    own->end = end;
    for (int64_t i = 0; i < layers; i++) block_of(gpt, i)->elsewhere = i < first || i >= end;
    for (size_t i = TOKENS; gpt->children[i] != block_of(gpt, 0); i++) /* the tables */
        gpt->children[i]->elsewhere = first > 0 && (i != TOKENS || own->o.untied_head || end < layers);
    for (size_t i = gpt->n_children; gpt->children[--i] != block_of(gpt, layers - 1);) /* norm and head */
        gpt->children[i]->elsewhere = end < layers;
}

void weft__gpt_kept(const weft_module *gpt, int64_t *first, int64_t *end) {
    const gpt_own *own = gpt->user;
    *first = own->first;
    *end = own->end;
}

/* Packed texts: rows of tokens (B, 2, T), whose second half is the place where the text of a token begins.
 * Rotary positions need no change, since only distances between tokens matter to them. */
typedef struct packed_rows {
    weft_tensor *tokens, *begins; /* (B, T); begins is NULL if rows are one text */
    weft_attend_options attend;   /* a token sees only tokens of its own text */
} packed_rows;

static packed_rows unpack_rows(const char *where, weft_tensor *rows) {
    packed_rows p = {.tokens = rows};
    if (rows->rank != 3) return p;
    const int64_t shape[2] = {rows->shape[0], rows->shape[2]}, time = shape[1];
    p.tokens = weft_reshape_at(where, weft_narrow_at(where, rows, 1, 0, 1), 2, shape);
    p.begins = weft_reshape_at(where, weft_narrow_at(where, rows, 1, 1, 1), 2, shape);
    if (weft__poisoned(p.begins)) return p;
    weft_tensor *key = weft_cast_at(where, weft_iota(rows->ctx, WEFT_I32, 1, &time), weft_dtype_of(rows));
    weft_tensor *begin = weft_reshape_at(where, p.begins, 4, (int64_t[]){shape[0], 1, time, 1});
    p.attend.mask = weft_ge_at(where, key, begin); /* the causal mask hides later texts */
    return p;
}

/* Adds position vectors to the token vectors x (B, T, width). `begins`: where texts begin, or NULL. */
static weft_tensor *placed(weft_module *m, const gpt_own *own, weft_tensor *x, weft_tensor *begins,
                           int64_t time) {
    const char *where = m->where;
    const weft_position_kind kind = own->o.positions;
    if (weft__poisoned(x) || kind == WEFT_POSITION_ROTARY || kind == WEFT_POSITION_NONE) return x;
    weft_tensor *row = weft_iota(m->ctx, WEFT_I32, 1, &time);
    weft_tensor *position = own->decoding ? own->decoding->position : NULL;
    if (position) row = position->rank ? position : at_add(row, position);
    if (begins) row = at_sub(weft_cast_at(where, row, weft_dtype_of(begins)), begins); /* (B, T) */
    if (kind == WEFT_POSITION_SINUSOIDAL) {
        weft_tensor *waves = weft_sinusoids_at(where, row, own->o.width, 0);
        return at_add(at_mul_scalar(x, sqrt((double)own->o.width)),
                      weft_cast_at(where, waves, weft_dtype_of(x)));
    }
    weft_tensor *table = weft__computed(m, m->children[POSITIONS]->parameters[0].variable);
    return at_add(x, position || begins ? weft_gather_at(where, table, row, 0)
                                        : weft_narrow_at(where, table, 0, 0, time));
}

/* Sets the logits of rows that stand for no token to -inf. They take no probability and get no gradient. */
static weft_tensor *masked(weft_module *m, const gpt_own *own, weft_tensor *logits) {
    const char *where = m->where;
    if (own->o.tokens == own->o.vocab || weft__poisoned(logits)) return logits;
    weft_tensor *row = weft_iota(m->ctx, WEFT_I32, 1, &own->o.vocab);
    weft_tensor *end = weft_full_i64(m->ctx, WEFT_I32, 0, NULL, own->o.tokens);
    return at_where(at_lt(row, end), logits, weft_full_like_at(where, logits, -INFINITY));
}

/* Computed in f32: 16 bits would round large logits to the same number. */
static weft_tensor *capped(weft_module *m, const gpt_own *own, weft_tensor *logits) {
    const char *where = m->where;
    const double cap = own->o.logit_softcap;
    weft_tensor *wide = weft_dtype_of(logits) == WEFT_F64 ? logits : weft_cast_at(where, logits, WEFT_F32);
    return at_mul_scalar(weft_tanh_at(where, at_mul_scalar(wide, 1 / cap)), cap);
}

/* The logits of hidden states x. Marks them, so that losses compute them in parts. */
static weft_tensor *head(weft_module *m, const gpt_own *own, weft_tensor *x) {
    const char *where = m->where;
    weft_tensor *y = own->o.untied_head ? weft_forward_at(where, block_of(m, own->o.layers + 1), x)
                                        : weft__embedding_logits(where, m->children[TOKENS], x);
    if (own->o.logit_softcap > 0 && !weft__poisoned(y)) return masked(m, own, capped(m, own, y));
    if (weft__poisoned(y) || own->decoding) return masked(m, own, y);
    const int64_t vocab = own->o.vocab;
    const bool spares = m->recompute || block_of(m, 0)->recompute;
    if (own->o.head_chunks || spares)
        weft__logit_mark(y, own->o.head_chunks
                                ? own->o.head_chunks
                                : weft__logit_parts_of(y->numel / vocab, vocab, weft_dtype_of(y)));
    return masked(m, own, y);
}

/* Computes the blocks that are here and, if the last one is, the logits. x: hidden states (B, T, width). */
static weft_tensor *run_blocks(weft_module *m, const gpt_own *own, weft_tensor *x,
                               const weft_attend_options *attend) {
    const char *where = m->where;
    const weft_attend_options *outer = m->attend;
    if (attend) m->attend = attend;
    for (int64_t i = own->first; i < own->end; i++) x = weft_forward_at(where, block_of(m, i), x);
    m->attend = outer;
    if (own->end < own->o.layers) return x;
    weft_tensor *last = own->decoding ? own->decoding->last : NULL;
    if (last) x = weft_gather_at(where, x, last, 1); /* (B, 1, width) */
    x = weft_forward_at(where, block_of(m, own->o.layers), x);
    return head(m, own, x);
}

static weft_tensor *gpt_forward(weft_module *m, weft_tensor *tokens) {
    const gpt_own *own = m->user;
    if (own->first > 0) return run_blocks(m, own, tokens, NULL);
    const char *where = m->where;
    const bool packed = tokens->rank == 3 && tokens->shape[1] == 2;
    if ((tokens->rank != 2 && !packed) || tokens->shape[tokens->rank - 1] > own->o.context) {
        char text[WEFT_SHAPE_TEXT];
        return weft__poison(
            m->ctx, where, WEFT_ERR_SHAPE,
            "gpt: tokens %s must be (batch, time), or (batch, 2, time) for packed texts, with "
            "time at most the context, %lld",
            weft__tensor_text(tokens, text), (long long)own->o.context);
    }
    const packed_rows rows = unpack_rows(where, tokens);
    weft_tensor *x = weft_forward_at(where, m->children[TOKENS], rows.tokens);
    if (own->o.embedding_scale != 1 && !weft__poisoned(x)) x = at_mul_scalar(x, own->o.embedding_scale);
    x = placed(m, own, x, rows.begins, tokens->shape[tokens->rank - 1]);
    if (m->ctx->training && own->o.dropout > 0.0) x = weft_dropout_at(where, x, own->o.dropout);
    return run_blocks(m, own, x, packed ? &rows.attend : NULL);
}

static bool gpt_check_options(weft_module *m, const weft_gpt_options *given) {
    const weft_gpt_options o = *given;
    if (o.vocab < 1 || o.context < 1 || o.layers < 1 || o.heads < 1 || o.width < 1 || o.vocab > INT32_MAX ||
        o.context > INT32_MAX || o.layers > 100000 || o.head_chunks < 0)
        weft__module_poison(
            m, WEFT_ERR_ARGUMENT,
            "weft_nn_gpt: vocab %lld, context %lld, layers %lld, heads %lld and width %lld must "
            "be positive, and none may be huge",
            (long long)o.vocab, (long long)o.context, (long long)o.layers, (long long)o.heads,
            (long long)o.width);
    else if (o.tokens < 0 || o.tokens > o.vocab)
        weft__module_poison(m, WEFT_ERR_ARGUMENT, "weft_nn_gpt: tokens %lld must be 0 to vocab, %lld",
                            (long long)o.tokens, (long long)o.vocab);
    else if ((unsigned)o.norm > WEFT_NORM_RMS || (unsigned)o.positions > WEFT_POSITION_NONE)
        weft__module_poison(m, WEFT_ERR_ARGUMENT, "weft_nn_gpt: unknown norm %d or positions %d", (int)o.norm,
                            (int)o.positions);
    else if (o.window_except < 0 || !(o.embedding_scale >= 0) || !(o.logit_softcap >= 0))
        weft__module_poison(m, WEFT_ERR_ARGUMENT,
                            "weft_nn_gpt: window_except, embedding_scale and logit_softcap must not be "
                            "negative");
    return !m->error;
}

weft_module *weft_nn_gpt(weft_context *ctx, const weft_gpt_options *options) {
    weft_gpt_options o = options ? *options : (weft_gpt_options){0};
    weft_module *m = weft__module_make(ctx, "gpt", gpt_forward, sizeof(gpt_own));
    if (m->error || !gpt_check_options(m, &o)) return m;
    if (o.tokens == 0) o.tokens = o.vocab;
    o.embedding_scale = weft__value_or(o.embedding_scale, 1);
    *(gpt_own *)m->user = (gpt_own){.o = o, .end = o.layers};
    weft_init small = {WEFT_INIT_NORMAL, 0.02}, zeros = {WEFT_INIT_ZEROS, 0.0};
    weft_embedding_options table = {.dtype = o.dtype, .weight = small};
    weft_module_child(m, "wte", weft_nn_embedding(ctx, o.vocab, o.width, &table));
    if (o.positions == WEFT_POSITION_LEARNED)
        weft_module_child(m, "wpe", weft_nn_embedding(ctx, o.context, o.width, &table));
    weft_transformer_block_options block = {
        .causal = true,
        .no_bias = o.no_bias,
        .dropout = o.dropout,
        .dtype = o.dtype,
        .weight = small,
        .bias = zeros,
        .residual = {WEFT_INIT_NORMAL, 0.02 / sqrt(2.0 * (double)o.layers)},
        .hidden = o.hidden,
        .norm = o.norm,
        .eps = o.eps,
        .gated = o.gated,
        .activation = o.activation,
        .kv_heads = o.kv_heads,
        .rotary = o.positions == WEFT_POSITION_ROTARY,
        .rotation = o.rotation,
        .norm_plus_one = o.norm_plus_one,
        .branch_norms = o.branch_norms,
        .parallel = o.parallel,
        .mlp_bias = o.mlp_bias};
    for (int64_t i = 0; i < o.layers && !m->error; i++) {
        char name[32];
        const bool windowed = o.form.window && !(o.window_except && (i + 1) % o.window_except == 0);
        snprintf(name, sizeof name, "h.%lld", (long long)i);
        block.form = o.form;
        block.form.window = windowed ? o.form.window : 0;
        block.rotation = windowed && !weft__is_unset(o.window_rotation.base) ? o.window_rotation : o.rotation;
        weft_module_child(m, name, weft_nn_transformer_block(ctx, o.width, o.heads, &block));
    }
    weft_norm_options norm = {
        .no_bias = o.no_bias, .dtype = o.dtype, .eps = o.eps, .plus_one = o.norm_plus_one};
    weft_module_child(m, "ln_f", weft__norm_of_kind(ctx, o.norm, o.width, &norm));
    if (o.untied_head) {
        weft_linear_options head = {.no_bias = true, .dtype = o.dtype, .weight = small};
        weft_module_child(m, "lm_head", weft_nn_linear(ctx, o.width, o.vocab, &head));
    }
    return m;
}
