/* A recurrent language model: token table, layers, head. Tokens are turned first, so that everything inside
 * has time first and nothing is copied. Read next: recurrent.c. */
#include "nn/recurrent.h"
#include "ops/build.h"

enum { TABLE, LAYERS, HEAD };

typedef struct lm_own {
    weft_recurrent_lm_options o;
} lm_own;

static weft_tensor *drop(const lm_own *own, const char *where, weft_tensor *x) {
    const bool drops = !weft__poisoned(x) && x->ctx->training && own->o.dropout > 0;
    return drops ? weft_dropout_at(where, x, own->o.dropout) : x;
}

static weft_tensor *lm_forward(weft_module *m, weft_tensor *tokens) {
    const lm_own *own = m->user;
    const char *where = m->where;
    if (tokens->rank != 2) {
        char text[WEFT_SHAPE_TEXT];
        return weft__poison(m->ctx, where, WEFT_ERR_SHAPE, "%s: tokens %s must be (batch, time)", m->kind,
                            weft__tensor_text(tokens, text));
    }
    weft_tensor *x = weft_forward_at(where, m->children[TABLE], weft_transpose_at(where, tokens, 0, 1));
    x = weft_forward_at(where, m->children[LAYERS], drop(own, where, x));
    x = drop(own, where, x);
    if (own->o.tied) {
        weft_tensor *table = weft__computed(m, m->children[TABLE]->parameters[0].variable);
        x = weft_matmul_at(where, x, weft_transpose_at(where, table, 0, 1));
    } else {
        x = weft_forward_at(where, m->children[HEAD], x);
    }
    return weft_permute_at(where, x, (int[]){1, 0, 2});
}

const weft_module *weft__recurrent_in(const weft_module *m) {
    return m && !m->error && m->forward == lm_forward ? m->children[LAYERS] : m;
}

weft_module *weft_recurrent_lm(weft_context *ctx, const weft_recurrent_lm_options *options) {
    weft_recurrent_lm_options o = options ? *options : (weft_recurrent_lm_options){0};
    static const char *const kinds[] = {[WEFT_RNN_TANH] = "rnn_lm",
                                        [WEFT_RNN_RELU] = "rnn_lm",
                                        [WEFT_LSTM] = "lstm_lm",
                                        [WEFT_GRU] = "gru_lm"};
    const bool known = (unsigned)o.kind <= WEFT_GRU;
    weft_module *m =
        weft__module_make(ctx, known ? kinds[o.kind] : "recurrent_lm", lm_forward, sizeof(lm_own));
    if (m->error) return m;
    if (o.embedding == 0) o.embedding = o.width;
    if (!known || o.vocab < 1 || o.vocab > INT32_MAX || o.layers < 1 || o.width < 1 || o.embedding < 1)
        return weft__module_poison(
            m, WEFT_ERR_ARGUMENT,
            "weft_recurrent_lm: vocab %lld, layers %lld, width %lld and embedding %lld "
            "must be positive, and the kind one of four",
            (long long)o.vocab, (long long)o.layers, (long long)o.width, (long long)o.embedding);
    if (o.tied && o.embedding != o.width)
        return weft__module_poison(m, WEFT_ERR_ARGUMENT,
                                   "weft_recurrent_lm: a tied head needs a table as wide as the states, "
                                   "%lld, not %lld",
                                   (long long)o.width, (long long)o.embedding);
    ((lm_own *)m->user)->o = o;
    weft_embedding_options table = {.dtype = o.dtype};
    if (o.tied) table.weight = (weft_init){WEFT_INIT_UNIFORM, 0.1};
    const weft_recurrent_layer_options layers = {
        .layers = o.layers, .dropout = o.dropout, .time_first = true, .dtype = o.dtype};
    weft_module_child(m, "embedding", weft_embedding(ctx, o.vocab, o.embedding, &table));
    weft_module_child(m, "rnn",
                      o.kind == WEFT_LSTM ? weft_lstm(ctx, o.embedding, o.width, &layers)
                      : o.kind == WEFT_GRU
                          ? weft_gru(ctx, o.embedding, o.width, &layers)
                          : weft_rnn(ctx, o.embedding, o.width, o.kind == WEFT_RNN_RELU, &layers));
    if (!o.tied)
        weft_module_child(m, "head",
                          weft_linear(ctx, o.width, o.vocab, &(weft_linear_options){.dtype = o.dtype}));
    return m;
}
