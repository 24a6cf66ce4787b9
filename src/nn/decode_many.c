/* Decoding of several texts at once, each with its own cache: a step reads the weights once and gives each
 * text a token. The tokens are rows of all matmuls. Only attention treats each text by itself, with its own
 * length (attention.c). Must not know: kernels, sampling. Read next: decode.c, generate_many.c. */
#include <string.h>

#include "nn/decode.h"

/* Are the next caches, on other devices, of the same models? */
static bool same_chain(const weft_decode_state *a, const weft_decode_state *b) {
    for (; a && b && a->gpt == b->gpt; a = a->next) b = b->next;
    return !a && !b;
}

/* Checks the caches and tokens. */
static weft_status many_check(weft_context *ctx, weft_decode_state *const *caches, int64_t count,
                              const int32_t *tokens, const float *logits) {
    for (int64_t i = 0; i < count; i++) {
        const int32_t none = 0;
        if (!caches[i])
            return weft__fail(ctx, WEFT_ERR_ARGUMENT, "weft_gpt_feed_many: caches[%lld] is NULL",
                              (long long)i);
        if (caches[i]->gpt != caches[0]->gpt)
            return weft__fail(ctx, WEFT_ERR_ARGUMENT,
                              "weft_gpt_feed_many: cache %lld is of another model than cache 0",
                              (long long)i);
        if (!same_chain(caches[i]->next, caches[0]->next))
            return weft__fail(ctx, WEFT_ERR_ARGUMENT,
                              "weft_gpt_feed_many: the layers of cache %lld are divided over other devices "
                              "than those of cache 0",
                              (long long)i);
        for (int64_t j = 0; j < i; j++)
            if (caches[i] == caches[j])
                return weft__fail(ctx, WEFT_ERR_ARGUMENT,
                                  "weft_gpt_feed_many: caches %lld and %lld are the same", (long long)j,
                                  (long long)i);
        const bool still = tokens[i] == -1, full = caches[i]->length == caches[i]->capacity;
        if (still && full && caches[i]->gpt) continue;
        WEFT_TRY(
            weft__gpt_feed_check(caches[i], "weft_gpt_feed_many", still ? &none : tokens + i, 1, logits));
    }
    return WEFT_OK;
}

static weft_status run_next(weft_decode_state *const *caches, int64_t count, weft_tensor *hidden,
                            float *logits);

/* Records and runs a step of all caches on their tokens (1, count), or on the hidden states of these. */
static weft_status run_texts(weft_decode_state *const *caches, int64_t count, weft_tensor *input,
                             float *logits) {
    weft_context *ctx = caches[0]->ctx;
    int32_t positions[WEFT__DECODE_MOST];
    weft__decode *texts[WEFT__DECODE_MOST];
    for (int64_t i = 0; i < count; i++) {
        positions[i] = (int32_t)caches[i]->length;
        texts[i] = caches[i]->steps;
    }
    const weft__decode_step step = {
        .position = weft_from(ctx, WEFT_I32, 1, &count, positions), .texts = texts, .count = count};
    for (int64_t i = 0; i < count; i++) {
        weft_tensor *position = weft_scalar_of(ctx, WEFT_I32, (double)positions[i]);
        for (int64_t k = 0; k < caches[i]->layers; k++) texts[i][k].position = position;
    }
    weft_tensor *out = weft__gpt_record(caches, &step, input);
    return caches[0]->next ? run_next(caches, count, out, logits) : weft__gpt_run(caches, count, out, logits);
}

/* Runs the blocks that follow on another device. */
static weft_status run_next(weft_decode_state *const *caches, int64_t count, weft_tensor *hidden,
                            float *logits) {
    weft_decode_state *next[WEFT__DECODE_MOST] = {NULL};
    weft_tensor *there = NULL;
    for (int64_t i = 0; i < count; i++) next[i] = caches[i]->next;
    weft_scope *scope = weft_scope_open(next[0]->ctx);
    weft_status status = scope ? weft__gpt_pass(caches, count, hidden, &there) : WEFT_ERR_OOM;
    if (status == WEFT_OK) status = run_texts(next, count, there, logits);
    weft_scope_close(scope);
    return status;
}

/* Makes the tokens of a step. A cache that stays as it is computes token 0, whose keys and values the next
 * step overwrites. */
static weft_tensor *tokens_of(weft_context *ctx, int64_t count, const int32_t *tokens) {
    int32_t ids[WEFT__DECODE_MOST];
    for (int64_t i = 0; i < count; i++) ids[i] = tokens[i] < 0 ? 0 : tokens[i];
    return weft_from(ctx, WEFT_I32, 2, (int64_t[]){1, count}, ids);
}

/* Runs the step in a scope. One text takes the program of weft_gpt_feed. */
static weft_status feed_texts(weft_decode_state *const *caches, int64_t count, const int32_t *tokens,
                              float *logits) {
    if (count == 1) return tokens[0] < 0 ? WEFT_OK : weft_gpt_feed(caches[0], tokens, 1, logits);
    weft_scope *scope = weft_scope_open(caches[0]->ctx);
    if (!scope) return WEFT_ERR_OOM;
    const weft_status status = run_texts(caches, count, tokens_of(caches[0]->ctx, count, tokens), logits);
    weft_scope_close(scope);
    for (int64_t i = 0; i < count && status == WEFT_OK; i++) {
        if (tokens[i] < 0) continue;
        caches[i]->fed[caches[i]->length] = tokens[i];
        weft__gpt_cache_cut(caches[i], caches[i]->length + 1); /* also those on other devices */
    }
    return status;
}

static weft_status feed_states(weft_decode_state *const *caches, int64_t count, const int32_t *tokens,
                               float *logits) {
    weft_states *states[WEFT__DECODE_MOST] = {NULL};
    for (int64_t i = 0; i < count; i++) states[i] = &caches[i]->states;
    WEFT_TRY(weft__recurrent_feed_many(caches[0]->gpt, states, tokens, count, logits));
    for (int64_t i = 0; i < count; i++) caches[i]->length++;
    return WEFT_OK;
}

weft_status weft_gpt_feed_many(weft_decode_state *const *caches, int64_t count, const int32_t *tokens,
                               float *logits) {
    weft_decode_state *taking[WEFT__DECODE_MOST];
    int32_t ids[WEFT__DECODE_MOST];
    int64_t places[WEFT__DECODE_MOST], n = 0;
    WEFT_NEED(NULL, caches);
    if (count < 1 || count > WEFT__DECODE_MOST)
        return weft__fail(NULL, WEFT_ERR_ARGUMENT, "weft_gpt_feed_many: %lld caches: give 1 to %d",
                          (long long)count, WEFT__DECODE_MOST);
    weft_context *ctx = caches[0] ? caches[0]->ctx : NULL;
    WEFT_NEED(ctx, tokens);
    WEFT_NEED(ctx, logits);
    WEFT_TRY(many_check(ctx, caches, count, tokens, logits));
    const int64_t vocab = caches[0]->vocab;
    const bool recurrent = weft__recurrent_vocab(caches[0]->gpt) > 0;
    for (int64_t i = 0; i < count; i++) {
        if (tokens[i] < 0 && (recurrent || caches[i]->length == caches[i]->capacity)) continue;
        taking[n] = caches[i];
        ids[n] = tokens[i];
        places[n++] = i;
    }
    if (n == 0) return WEFT_OK;
    WEFT_TRY((recurrent ? feed_states : feed_texts)(taking, n, ids, logits));
    for (int64_t i = n; i-- > 0 && places[i] != i;) /* from the last one on, so that none is overwritten */
        memmove(logits + places[i] * vocab, logits + i * vocab, (size_t)vocab * sizeof *logits);
    return WEFT_OK;
}
