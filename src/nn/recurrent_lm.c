/* A recurrent language model: token table, layers, head. Tokens are transposed first, so that all layers have
 * time as the first dimension and nothing else is copied.
 * Must not know: sampling. Read next: recurrent.c, decode.c. */
#include "nn/recurrent.h"
#include "ops/composite.h"

enum { TABLE, LAYERS, HEAD };

typedef struct lm_own {
    weft_recurrent_lm_options o;
} lm_own;

static weft_tensor *recurrent_lm_drop(const lm_own *own, const char *where, weft_tensor *x) {
    const bool drops = !weft__poisoned(x) && x->ctx->training && own->o.dropout > 0;
    return drops ? weft_dropout_at(where, x, own->o.dropout) : x;
}

/* In training with streams, starts from the states that the pass before stored, and stores its own. */
static weft_tensor *run_layers(weft_module *m, weft_tensor *x) {
    const lm_own *own = m->user;
    weft_module *layers = m->children[LAYERS];
    const bool carried = own->o.streams > 0 && m->ctx->training && !weft__recurrent_states(layers);
    if (!carried) return weft_forward_at(m->where, layers, x);
    const bool lstm = weft_states_have_c(layers);
    weft_states states = {weft_detach_at(m->where, weft__buffer_of(m, 0)),
                          lstm ? weft_detach_at(m->where, weft__buffer_of(m, 1)) : NULL};
    weft_tensor *y = weft_forward_from_at(m->where, layers, x, &states, weft__recurrent_lengths(layers));
    if (weft__poisoned(y)) return y;
    const weft_dtype kept = m->parameters[0].dtype;
    weft_status status = weft_module_assign(m, "h", as_dtype(m->where, states.h, kept));
    if (status == WEFT_OK && lstm) status = weft_module_assign(m, "c", as_dtype(m->where, states.c, kept));
    return status == WEFT_OK ? y
                             : weft__poison(m->ctx, m->where, status, "%s: cannot store its states", m->kind);
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
    x = recurrent_lm_drop(own, where, run_layers(m, recurrent_lm_drop(own, where, x)));
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

int64_t weft__recurrent_vocab(const weft_module *m) {
    return m && !m->error && m->forward == lm_forward ? ((const lm_own *)m->user)->o.vocab : 0;
}

weft_status weft_streams_restart(weft_module *m) {
    WEFT_NEED(NULL, m);
    WEFT_TRY(weft_module_status(m));
    if (weft__recurrent_vocab(m) == 0)
        return weft__fail(m->ctx, WEFT_ERR_ARGUMENT, "%s: this model keeps no states between batches",
                          m->kind);
    WEFT_TRY(weft_module_prepare(m));
    for (size_t i = 0; i < m->n_parameters; i++) {
        weft_tensor *zeros = weft_zeros_like_at(m->where, m->parameters[i].variable);
        WEFT_TRY(weft_assign(&m->parameters[i].variable, &zeros, 1));
    }
    return WEFT_OK;
}

/* ---- decoding ---- */

static void free_states(weft_states *states) {
    weft_free(states->h);
    weft_free(states->c);
    *states = (weft_states){NULL, NULL};
}

/* Feeds one piece of the sequence as one program, starting from *states. The new states are kept beyond the
 * scope. */
static weft_status feed(weft_module *m, weft_states *states, const int32_t *tokens, int64_t count,
                        float *logits) {
    weft_module *root = weft__module_root(m);
    root->decoding = true;
    weft_tensor *y = weft_forward_from_at(
        NULL, m, weft_from(m->ctx, WEFT_I32, 2, (int64_t[]){1, count}, tokens), states, NULL);
    root->decoding = false;
    y = weft_cast_at(NULL, weft_narrow_at(NULL, y, 1, count - 1, 1), WEFT_F32);
    WEFT_TRY(weft_tensor_status(y));
    weft_tensor *all[3] = {y, weft_keep(states->h), weft_keep(states->c)};
    weft_status status = weft_eval(all, states->c ? 3 : 2);
    if (status == WEFT_OK && logits) status = weft_read(y, logits, (size_t)weft_numel(y) * sizeof *logits);
    if (status != WEFT_OK) free_states(states);
    return status;
}

/* Feeds pieces of 64, 32, ... tokens, so that few programs serve all lengths. *states is replaced only at the
 * end: after an error it is unchanged. */
weft_status weft__recurrent_feed(weft_module *m, weft_states *states, const int32_t *tokens, int64_t count,
                                 float *logits) {
    weft_states now = *states;
    weft_status status = WEFT_OK;
    int64_t piece = 64;
    for (int64_t done = 0; done < count && status == WEFT_OK; done += piece) {
        while (piece > count - done) piece /= 2;
        weft_states before = now;
        weft_scope *scope = weft_scope_open(m->ctx);
        status =
            scope ? feed(m, &now, tokens + done, piece, done + piece == count ? logits : NULL) : WEFT_ERR_OOM;
        weft_scope_close(scope);
        if (done > 0) free_states(&before);
    }
    if (status != WEFT_OK) return status;
    free_states(states);
    *states = now;
    return WEFT_OK;
}

/* Joins h or c of sequences (layers, 1, width) to (layers, count, width). Sequences without states begin with
 * 0. NULL: none has a state. */
static weft_tensor *joined(weft_states *const *states, int64_t count, bool c) {
    weft_tensor *parts[WEFT__DECODE_MOST], *some = NULL;
    for (int64_t i = 0; i < count; i++) {
        parts[i] = c ? states[i]->c : states[i]->h;
        if (parts[i]) some = parts[i];
    }
    for (int64_t i = 0; i < count && some; i++)
        if (!parts[i]) parts[i] = weft_zeros_like_at(NULL, some);
    return some ? weft_concat_at(NULL, parts, (int)count, 1) : NULL;
}

/* Records and computes a step of several sequences. parts: their new h, and then their new c, kept. *n gets
 * their number. */
static weft_status step_many(weft_module *m, weft_states *const *states, const int32_t *tokens, int64_t count,
                             weft_tensor **parts, int64_t *n, float *logits) {
    weft_module *root = weft__module_root(m);
    weft_states all = {joined(states, count, false), NULL};
    all.c = joined(states, count, true);
    weft_tensor *input = weft_from(m->ctx, WEFT_I32, 2, (int64_t[]){count, 1}, tokens);
    root->decoding = true;
    weft_tensor *y = weft_forward_from_at(NULL, m, input, &all, NULL);
    root->decoding = false;
    y = weft_cast_at(NULL, y, WEFT_F32);
    WEFT_TRY(weft_tensor_status(y));
    *n = all.c ? 2 * count : count;
    for (int64_t i = 0; i < *n; i++)
        parts[i] = weft_keep(weft_narrow_at(NULL, i < count ? all.h : all.c, 1, i % count, 1));
    parts[*n] = y;
    WEFT_TRY(weft_eval(parts, (size_t)*n + 1));
    return weft_read(y, logits, (size_t)weft_numel(y) * sizeof *logits);
}

weft_status weft__recurrent_feed_many(weft_module *m, weft_states *const *states, const int32_t *tokens,
                                      int64_t count, float *logits) {
    weft_tensor *parts[2 * WEFT__DECODE_MOST + 1];
    int64_t n = 0;
    weft_scope *scope = weft_scope_open(m->ctx);
    if (!scope) return WEFT_ERR_OOM;
    const weft_status status = step_many(m, states, tokens, count, parts, &n, logits);
    weft_scope_close(scope);
    for (int64_t i = 0; i < n && status != WEFT_OK; i++) weft_free(parts[i]);
    for (int64_t i = 0; i < count && status == WEFT_OK; i++) {
        free_states(states[i]);
        *states[i] = (weft_states){parts[i], n > count ? parts[count + i] : NULL};
    }
    return status;
}

/* ---- making one ---- */

weft_module *weft_nn_recurrent_lm(weft_context *ctx, const weft_recurrent_lm_options *options) {
    if (!ctx) return weft__module_without_context(__func__);
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
    if (!known || o.vocab < 1 || o.vocab > INT32_MAX || o.layers < 1 || o.width < 1 || o.embedding < 1 ||
        o.streams < 0)
        return weft__module_poison(
            m, WEFT_ERR_ARGUMENT,
            "weft_nn_recurrent_lm: vocab %lld, layers %lld, width %lld and embedding %lld "
            "must be positive, and the kind must be one of the four",
            (long long)o.vocab, (long long)o.layers, (long long)o.width, (long long)o.embedding);
    if (o.tied && o.embedding != o.width)
        return weft__module_poison(
            m, WEFT_ERR_ARGUMENT,
            "weft_nn_recurrent_lm: a tied head needs a token table as wide as the states, %lld, not %lld",
            (long long)o.width, (long long)o.embedding);
    ((lm_own *)m->user)->o = o;
    weft_embedding_options table = {.dtype = o.dtype};
    if (o.tied) table.weight = (weft_init){WEFT_INIT_UNIFORM, 0.1};
    const weft_recurrent_layer_options layers = {
        .layers = o.layers, .dropout = o.dropout, .time_first = true, .dtype = o.dtype};
    weft_module_child(m, "embedding", weft_nn_embedding(ctx, o.vocab, o.embedding, &table));
    weft_module_child(m, "rnn",
                      o.kind == WEFT_LSTM ? weft_nn_lstm(ctx, o.embedding, o.width, &layers)
                      : o.kind == WEFT_GRU
                          ? weft_nn_gru(ctx, o.embedding, o.width, &layers)
                          : weft_nn_rnn(ctx, o.embedding, o.width, o.kind == WEFT_RNN_RELU, &layers));
    const int64_t kept[3] = {o.layers, o.streams, o.width};
    const weft_init zeros = {WEFT_INIT_ZEROS, 0};
    if (o.streams > 0) weft_module_buffer(m, "h", o.dtype, 3, kept, &zeros);
    if (o.streams > 0 && o.kind == WEFT_LSTM) weft_module_buffer(m, "c", o.dtype, 3, kept, &zeros);
    if (!o.tied)
        weft_module_child(m, "head",
                          weft_nn_linear(ctx, o.width, o.vocab, &(weft_linear_options){.dtype = o.dtype}));
    return m;
}
