/* Encoders of texts: BERT (Devlin et al., "BERT: Pre-training of deep bidirectional transformers for language
 * understanding", 2019), and by options RoBERTa and DistilBERT. Must not know: tokenizers, files. Read next:
 * block.c. */
#include <stdio.h>

#include "base/option.h"
#include "nn/module.h"
#include "ops/build.h"

typedef struct encoder_own {
    weft_encoder_options o;
    weft_module *types, *norm, *pooler, *classifier; /* children; NULL if there is none */
    int64_t first_block;                             /* index of h.0 among the children */
} encoder_own;

/* Indices of the first children. */
enum { TOKENS, POSITIONS };

static weft_tensor *table_of(const weft_module *m, const weft_module *embedding) {
    return weft__computed(m, embedding->parameters[0].variable);
}

/* Rows of tokens with their types (B, 2, T): the second half of a row is -1 in padding, and otherwise the
 * type of a token. */
typedef struct encoder_rows {
    weft_tensor *tokens, *types; /* (B, T); types is NULL if rows are tokens alone */
    weft_attend_options attend;  /* padding is not seen */
} encoder_rows;

static encoder_rows unpack_rows(const char *where, weft_tensor *rows) {
    encoder_rows r = {.tokens = rows};
    if (rows->rank != 3) return r;
    const int64_t shape[2] = {rows->shape[0], rows->shape[2]};
    r.tokens = weft_reshape_at(where, weft_narrow_at(where, rows, 1, 0, 1), 2, shape);
    r.types = weft_reshape_at(where, weft_narrow_at(where, rows, 1, 1, 1), 2, shape);
    if (weft__poisoned(r.types)) return r;
    r.attend.mask = weft_ge_at(where, r.types, weft_zeros_like_at(where, r.types));
    return r;
}

/* Adds the vectors of token types to x (B, T, width): of the first type, unless `types` names the second. */
static weft_tensor *typed(weft_module *m, weft_tensor *x, weft_tensor *types) {
    const encoder_own *own = m->user;
    const char *where = m->where;
    if (!own->types || weft__poisoned(x)) return x;
    weft_tensor *table = table_of(m, own->types), *first = weft_narrow_at(where, table, 0, 0, 1);
    x = at_add(x, first);
    if (!types || own->o.types < 2 || weft__poisoned(x)) return x;
    weft_tensor *second = at_sub(weft_narrow_at(where, table, 0, 1, 1), first);
    weft_tensor *is = weft_gt_at(where, types, weft_zeros_like_at(where, types));
    is = weft_reshape_at(where, is, 3, (int64_t[]){x->shape[0], x->shape[1], 1});
    return at_add(x, at_mul(weft_cast_at(where, is, weft_dtype_of(x)), second));
}

/* The vectors of tokens, of their places, and of their types. */
static weft_tensor *embedded(weft_module *m, const encoder_rows *rows) {
    const encoder_own *own = m->user;
    const char *where = m->where;
    weft_tensor *x = weft_forward_at(where, m->children[TOKENS], rows->tokens);
    if (weft__poisoned(x)) return x;
    x = at_add(
        x, weft_narrow_at(where, table_of(m, m->children[POSITIONS]), 0, own->o.first_position, x->shape[1]));
    x = weft_forward_at(where, own->norm, typed(m, x, rows->types));
    return m->ctx->training && own->o.dropout > 0.0 ? weft_dropout_at(where, x, own->o.dropout) : x;
}

static weft_tensor *encoder_forward(weft_module *m, weft_tensor *tokens) {
    const encoder_own *own = m->user;
    const bool packed = tokens->rank == 3 && tokens->shape[1] == 2;
    if ((tokens->rank != 2 && !packed) || tokens->shape[tokens->rank - 1] > own->o.context) {
        char text[WEFT_SHAPE_TEXT];
        return weft__poison(m->ctx, m->where, WEFT_ERR_SHAPE,
                            "encoder: tokens %s must be (batch, time), or (batch, 2, time) with their types, "
                            "with time at most the context, %lld",
                            weft__tensor_text(tokens, text), (long long)own->o.context);
    }
    const encoder_rows rows = unpack_rows(m->where, tokens);
    weft_tensor *x = embedded(m, &rows);
    const weft_attend_options *outer = m->attend;
    if (packed) m->attend = &rows.attend;
    for (int64_t i = 0; i < own->o.layers; i++)
        x = weft_forward_at(m->where, m->children[own->first_block + i], x);
    m->attend = outer;
    return own->o.classifies ? weft_encoder_logits_at(m->where, m, x) : x;
}

const weft_encoder_options *weft__encoder_options_of(const weft_module *encoder) {
    return encoder && encoder->forward == encoder_forward && !encoder->error
               ? &((const encoder_own *)encoder->user)->o
               : NULL;
}

/* ---- what is made of the states ---- */

weft_tensor *weft_encoder_pool_at(const char *where, weft_tensor *states, weft_tensor *mask,
                                  weft_pooling pooling) {
    WEFT_NEED_OR_POISON(NULL, where, states);
    weft_tensor *bad =
        weft__reject("weft_encoder_pool", where, (weft_tensor *[]){states, mask}, mask ? 2 : 1);
    char a[WEFT_SHAPE_TEXT], b[WEFT_SHAPE_TEXT];
    if (bad) return bad;
    if (states->rank != 3 || (mask && (mask->rank != 2 || mask->shape[0] != states->shape[0] ||
                                       mask->shape[1] != states->shape[1])))
        return weft__poison(states->ctx, where, WEFT_ERR_SHAPE,
                            "weft_encoder_pool: states %s must be (batch, time, width), and mask %s "
                            "(batch, time)",
                            weft__tensor_text(states, a), mask ? weft__tensor_text(mask, b) : "NULL");
    if (pooling == WEFT_POOL_FIRST)
        return weft_reshape_at(where, weft_narrow_at(where, states, 1, 0, 1), 2,
                               (int64_t[]){states->shape[0], states->shape[2]});
    if (pooling != WEFT_POOL_MEAN)
        return weft__poison(states->ctx, where, WEFT_ERR_ARGUMENT, "weft_encoder_pool: unknown pooling %d",
                            (int)pooling);
    if (!mask) return weft_mean_at(where, states, 1, false);
    weft_tensor *kept = weft_cast_at(where, mask, weft_dtype_of(states));
    weft_tensor *column = weft_reshape_at(where, kept, 3, (int64_t[]){mask->shape[0], mask->shape[1], 1});
    weft_tensor *sum = weft_sum_at(where, at_mul(states, column), 1, false);
    return at_div(sum, weft_sum_at(where, kept, 1, true));
}

#undef weft_encoder_pool
weft_tensor *weft_encoder_pool(weft_tensor *states, weft_tensor *mask, weft_pooling pooling) {
    return weft_encoder_pool_at(NULL, states, mask, pooling);
}

weft_tensor *weft_encoder_logits_at(const char *where, weft_module *encoder, weft_tensor *states) {
    WEFT_NEED_OR_POISON(weft_context_of(states), where, encoder);
    WEFT_NEED_OR_POISON(encoder->ctx, where, states);
    const encoder_own *own = encoder->user;
    if (encoder->error || encoder->forward != encoder_forward || !own->classifier)
        return weft__poison(states->ctx, where, WEFT_ERR_ARGUMENT,
                            "weft_encoder_logits: the module is no encoder with labels");
    const weft_activation_kind kind = own->o.pooler_activation;
    weft_tensor *x = weft_encoder_pool_at(where, states, NULL, WEFT_POOL_FIRST);
    x = weft_forward_at(where, own->pooler, x);
    if (weft__poisoned(x)) return x;
    x = weft__activate(where, kind == WEFT_ACTIVATION_DEFAULT ? WEFT_TANH : kind, x);
    if (encoder->ctx->training && own->o.dropout > 0.0) x = weft_dropout_at(where, x, own->o.dropout);
    return weft_forward_at(where, own->classifier, x);
}

#undef weft_encoder_logits
weft_tensor *weft_encoder_logits(weft_module *encoder, weft_tensor *states) {
    return weft_encoder_logits_at(NULL, encoder, states);
}

/* ---- making ---- */

static bool encoder_check_options(weft_module *m, const weft_encoder_options *given) {
    const weft_encoder_options o = *given;
    if (o.vocab < 1 || o.context < 1 || o.layers < 1 || o.heads < 1 || o.width < 1 || o.vocab > INT32_MAX ||
        o.context > INT32_MAX || o.layers > 100000)
        weft__module_poison(
            m, WEFT_ERR_ARGUMENT,
            "weft_nn_encoder: vocab %lld, context %lld, layers %lld, heads %lld and width %lld must "
            "be positive, and none may be huge",
            (long long)o.vocab, (long long)o.context, (long long)o.layers, (long long)o.heads,
            (long long)o.width);
    else if (o.classifies && o.labels < 1)
        weft__module_poison(m, WEFT_ERR_ARGUMENT, "weft_nn_encoder: classifies needs labels");
    else if (o.types < 0 || o.labels < 0 || o.first_position < 0 || o.first_position > INT32_MAX)
        weft__module_poison(m, WEFT_ERR_ARGUMENT,
                            "weft_nn_encoder: types, labels and first_position must not be negative or huge");
    return !m->error;
}

static void add_embeddings(weft_module *m, encoder_own *own, weft_init small) {
    const weft_encoder_options *o = &own->o;
    const weft_embedding_options table = {.dtype = o->dtype, .weight = small};
    const weft_norm_options norm = {.eps = o->eps, .dtype = o->dtype};
    weft_module_child(m, "wte", weft_nn_embedding(m->ctx, o->vocab, o->width, &table));
    weft_module_child(m, "wpe", weft_nn_embedding(m->ctx, o->context + o->first_position, o->width, &table));
    if (o->types)
        weft_module_child(m, "wtt", own->types = weft_nn_embedding(m->ctx, o->types, o->width, &table));
    weft_module_child(m, "ln_e", own->norm = weft_nn_layer_norm(m->ctx, o->width, &norm));
    own->first_block = o->types ? 4 : 3;
}

static void add_head(weft_module *m, encoder_own *own, weft_init small) {
    const weft_encoder_options *o = &own->o;
    const weft_linear_options linear = {.dtype = o->dtype, .weight = small, .bias = {WEFT_INIT_ZEROS, 0.0}};
    weft_module_child(m, "pooler", own->pooler = weft_nn_linear(m->ctx, o->width, o->width, &linear));
    weft_module_child(m, "classifier",
                      own->classifier = weft_nn_linear(m->ctx, o->width, o->labels, &linear));
}

weft_module *weft_nn_encoder(weft_context *ctx, const weft_encoder_options *options) {
    weft_encoder_options o = options ? *options : (weft_encoder_options){0};
    weft_module *m = weft__module_make(ctx, "encoder", encoder_forward, sizeof(encoder_own));
    if (m->error || !encoder_check_options(m, &o)) return m;
    o.eps = weft__given(weft__value_or(o.eps, 1e-12));
    if (o.activation == WEFT_ACTIVATION_DEFAULT) o.activation = WEFT_GELU;
    encoder_own *own = m->user;
    const weft_init small = {WEFT_INIT_NORMAL, 0.02};
    own->o = o;
    add_embeddings(m, own, small);
    const weft_transformer_block_options block = {.post_norm = true,
                                                  .dropout = o.dropout,
                                                  .dtype = o.dtype,
                                                  .weight = small,
                                                  .bias = {WEFT_INIT_ZEROS, 0.0},
                                                  .hidden = o.hidden,
                                                  .eps = o.eps,
                                                  .activation = o.activation};
    for (int64_t i = 0; i < o.layers && !m->error; i++) {
        char name[32];
        snprintf(name, sizeof name, "h.%lld", (long long)i);
        weft_module_child(m, name, weft_nn_transformer_block(ctx, o.width, o.heads, &block));
    }
    if (o.labels && !m->error) add_head(m, own, small);
    return m;
}
