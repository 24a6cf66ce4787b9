/* Speculative decoding (Leviathan et al., "Fast inference from transformers via speculative decoding", 2023):
 * a small model, the draft, proposes tokens, and the model checks all of them in one step:
 *
 *     fed to the model    x     d1    d2    d3        x is the last token of the text
 *     its probabilities   p1    p2    p3    p4
 *     proposed from       q1    q2    q3
 *
 * d1 is accepted with probability min(1, p1(d1) / q1(d1)), then d2, and so on. The first token that is not
 * accepted is replaced by one drawn from max(0, p - q). If all are accepted, another token is drawn from the
 * last p. So each token has the distribution p of the model, whatever the draft proposes (appendix A.1
 * there). Of the caches, what does not belong to the text is cut off.
 *
 * Random numbers are taken by the place of a token. A place may be proposed again after tokens were
 * discarded; what was discarded did not influence the text, so its numbers are still free.
 *
 * Must not know: where the text goes. Read next: generation.c, decode.c. */
#include "nn/speculate.h"
#include "nn/module.h"

enum { DEFAULT_PROPOSED = 4 };

#define STREAM_PROPOSE 0x6472616674u   /* "draft" */
#define STREAM_ACCEPT  0x616363657074u /* "accept" */
#define STREAM_REPLACE 0x72657374u     /* "rest" */

typedef struct speculation {
    weft__generation *g;
    weft__sampling how;
    weft_decode_state *cache, *draft;
    int64_t rows;        /* logits of the model */
    int64_t most;        /* tokens of a proposal */
    int64_t read;        /* so many of g->ids are in the cache of the draft */
    float *logits;       /* [most + 1][rows] */
    float *draft_logits; /* [2][logits of the draft] */
    double *p, *q;       /* [vocabulary], [most][vocabulary]; NULL: the likeliest token is taken */
} speculation;

/* ---- drawing ---- */

static double random_at(const speculation *s, uint64_t stream, int64_t place) {
    const uint64_t draw = (uint64_t)(place - s->g->prompt);
    return ((double)weft__random_u32(s->g->options->seed, stream, 0, draw) + 0.5) * 0x1p-32;
}

/* Draws a token by weights. -1: there are none. */
static int64_t pick(const double *weights, int64_t count, double random) {
    double left = 0;
    int64_t chosen = -1;
    for (int64_t i = 0; i < count; i++) left += weights[i];
    left *= random;
    for (int64_t i = 0; i < count; i++) {
        if (!(weights[i] > 0)) continue;
        chosen = i;
        left -= weights[i];
        if (left < 0) break;
    }
    return chosen;
}

/* Draws a token for a place from the logits of the draft. q: receives the probabilities. */
static int64_t draft_draws(const speculation *s, float *logits, double *q, int64_t place) {
    const weft__generation *g = s->g;
    weft__penalize(logits, g->vocabulary, g->ids, place, g->options->repetition_penalty);
    if (!q) return weft__sample(logits, g->vocabulary, &s->how, 0, 0);
    if (!weft__probabilities(logits, g->vocabulary, &s->how, q)) return -1;
    return pick(q, g->vocabulary, random_at(s, STREAM_PROPOSE, place));
}

/* Chooses the token of the next place from the logits of the model. proposed: what the draft proposes, with
 * its probabilities q; -1: nothing. The result is `proposed` if it is accepted. -1: no logit is finite. */
static int64_t model_draws(const speculation *s, const float *logits, int64_t proposed, const double *q) {
    const int64_t count = s->g->vocabulary, place = s->g->count;
    double rest = 0;
    if (!s->p) return weft__sample(logits, count, &s->how, 0, 0);
    if (!weft__probabilities(logits, count, &s->how, s->p)) return -1;
    if (proposed < 0) return pick(s->p, count, random_at(s, STREAM_REPLACE, place));
    if (random_at(s, STREAM_ACCEPT, place) * q[proposed] < s->p[proposed]) return proposed;
    for (int64_t i = 0; i < count; i++) rest += s->p[i] > q[i] ? s->p[i] - q[i] : 0;
    for (int64_t i = 0; i < count && rest > 0; i++) s->p[i] = s->p[i] > q[i] ? s->p[i] - q[i] : 0;
    return pick(s->p, count, random_at(s, STREAM_REPLACE, place));
}

/* ---- a round ---- */

/* Gives the draft the tokens up to `count` of the text. *logits gets those that follow the last one. */
static weft_status draft_reads(speculation *s, int64_t count, float **logits) {
    const int64_t fresh = count - s->read;
    const bool two = fresh == 2; /* feeding all does not pad them */
    const int32_t *tokens = s->g->ids + s->read;
    *logits = s->draft_logits + (two ? weft__gpt_cache_vocab(s->draft) : 0);
    WEFT_TRY((two ? weft_gpt_feed_all : weft_gpt_feed)(s->draft, tokens, fresh, s->draft_logits));
    s->read = count;
    return WEFT_OK;
}

/* Lets the draft propose up to `most` tokens. They follow the text in g->ids; *count gets their number. */
static weft_status propose(speculation *s, int64_t most, int64_t *count) {
    weft__generation *g = s->g;
    const int64_t capacity = weft_decode_state_capacity(s->draft), half = capacity > 1 ? capacity / 2 : 1;
    float *logits;
    if (weft_decode_state_length(s->draft) + g->count - s->read + most - 1 > capacity) {
        weft_decode_state_reset(s->draft); /* it goes on with the newest half of its context */
        s->read = g->count - weft__smaller(g->count, half);
        most = weft__smaller(most, capacity - half + 1);
    }
    for (*count = 0; *count < most; ++*count) {
        const int64_t place = g->count + *count;
        WEFT_TRY(draft_reads(s, place, &logits));
        const int64_t id = draft_draws(s, logits, s->q ? s->q + *count * g->vocabulary : NULL, place);
        if (id < 0) break;
        g->ids[place] = (int32_t)id;
    }
    return WEFT_OK;
}

/* Checks `count` proposed tokens in one step, and takes those that are accepted and one more. */
static weft_status check(speculation *s, int64_t count) {
    weft__generation *g = s->g;
    const int64_t before = weft_decode_state_length(s->cache), text = g->count;
    int64_t accepted = 0;
    WEFT_TRY(weft_gpt_feed_all(s->cache, g->ids + text - 1, count + 1, s->logits));
    for (bool same = true; same && !g->over;) {
        float *logits = s->logits + accepted * s->rows;
        const int64_t proposed = accepted < count ? g->ids[g->count] : -1;
        WEFT_TRY(weft__generation_mask(g, logits));
        const int64_t id = model_draws(s, logits, proposed, s->q ? s->q + accepted * g->vocabulary : NULL);
        same = id == proposed && id >= 0;
        accepted += same;
        WEFT_TRY(weft__generation_add(g, id));
    }
    weft__gpt_cache_cut(s->cache, before + 1 + accepted);
    g->fed = text + accepted;
    if (s->read > text + accepted) {
        weft__gpt_cache_cut(s->draft, weft_decode_state_length(s->draft) - (s->read - text - accepted));
        s->read = text + accepted;
    }
    if (g->options->drafted) {
        g->options->drafted->proposed += count;
        g->options->drafted->accepted += accepted;
    }
    return WEFT_OK;
}

static weft_status speculate_round(speculation *s) {
    weft__generation *g = s->g;
    const int64_t room = weft_decode_state_capacity(s->cache) - weft_decode_state_length(s->cache) - 1;
    const int64_t left = g->options->tokens - (g->count - g->prompt) - 1;
    const int64_t most = weft__smaller(s->most, weft__smaller(room, left));
    int64_t count = 0;
    if (g->count - g->fed == 1 && most > 0) WEFT_TRY(propose(s, most, &count));
    if (count > 0) return check(s, count);
    WEFT_TRY(weft__generation_feed(g, s->cache, s->logits)); /* a prompt, a full cache, or the last token */
    WEFT_TRY(weft__generation_mask(g, s->logits));
    return weft__generation_add(g, model_draws(s, s->logits, -1, NULL));
}

/* ---- a text ---- */

static weft_status speculate_open(speculation *s) {
    weft_context *ctx = s->g->ctx;
    const size_t vocabulary = (size_t)s->g->vocabulary, most = (size_t)s->most;
    const size_t own = (size_t)weft__gpt_cache_vocab(s->draft);
    s->logits = weft__array(ctx, (most + 1) * (size_t)s->rows, sizeof *s->logits);
    s->draft_logits = weft__array(ctx, 2 * own, sizeof *s->draft_logits);
    const bool draws = s->how.temperature > 0;
    if (draws) s->p = weft__array(ctx, vocabulary, sizeof *s->p);
    if (draws) s->q = weft__array(ctx, most * vocabulary, sizeof *s->q);
    if (s->logits && s->draft_logits && (!draws || (s->p && s->q))) return WEFT_OK;
    return weft__fail_oom(ctx, (most + 1) * (size_t)s->rows * sizeof *s->logits, "generating");
}

/* Checks the draft. */
static weft_status speculate_check(const speculation *s) {
    const weft__generation *g = s->g;
    const int64_t own = weft__gpt_cache_vocab(s->draft);
    if (own == 0)
        return weft__fail(g->ctx, WEFT_ERR_STATE, "weft_generate: the model of the draft was freed");
    if (s->draft == s->cache)
        return weft__fail(g->ctx, WEFT_ERR_ARGUMENT, "weft_generate: the draft needs a cache of its own");
    if (!weft__gpt_cache_cuts(s->cache) || !weft__gpt_cache_cuts(s->draft))
        return weft__fail(
            g->ctx, WEFT_ERR_ARGUMENT,
            "weft_generate: a draft needs models of weft_nn_gpt: the states of a recurrent model "
            "cannot be taken back");
    if (own < g->vocabulary)
        return weft__fail(g->ctx, WEFT_ERR_ARGUMENT,
                          "weft_generate: the draft has %lld logits, but %lld tokens may be sampled: it must "
                          "have the same tokens",
                          (long long)own, (long long)g->vocabulary);
    if (g->options->draft_tokens < 0 || g->options->draft_tokens > WEFT__DRAFT_MOST)
        return weft__fail(g->ctx, WEFT_ERR_ARGUMENT,
                          "weft_generate: draft_tokens %lld: give 1 to %d, or 0 for %d",
                          (long long)g->options->draft_tokens, WEFT__DRAFT_MOST, DEFAULT_PROPOSED);
    return WEFT_OK;
}

weft_status weft__speculate(weft__generation *g, weft_decode_state *cache) {
    const weft_generate_options *o = g->options;
    speculation s = {.g = g,
                     .how = {o->temperature, o->top_k, o->top_p, o->min_p},
                     .cache = cache,
                     .draft = o->draft,
                     .rows = weft__gpt_cache_vocab(cache),
                     .most = o->draft_tokens ? o->draft_tokens : DEFAULT_PROPOSED};
    WEFT_TRY(speculate_check(&s));
    if (o->keep_cache)
        s.read = weft_decode_state_keep(s.draft, g->ids, g->count - 1);
    else
        weft_decode_state_reset(s.draft);
    weft_status status = speculate_open(&s);
    while (status == WEFT_OK && !g->over) status = speculate_round(&s);
    weft__free(g->ctx, s.logits);
    weft__free(g->ctx, s.draft_logits);
    weft__free(g->ctx, s.p);
    weft__free(g->ctx, s.q);
    return status;
}
