/* Generates several texts at once. Each text has a member: a cache, and all that is about its prompt. A step
 * gives each member a token. A member whose text has ended takes the next prompt.
 * Must not know: how tokens are drawn. Read next: generation.c, decode_many.c. */
#include <string.h>

#include "base/buffer.h"
#include "nn/decode.h"
#include "nn/generation.h"

enum { DEFAULT_ROWS = 8 };

typedef struct member {
    weft__generation g;
    weft_decode_state *cache; /* of the first part; those of the others follow */
    bool busy;
    size_t index; /* of its prompt */
    weft__buffer text;
} member;

typedef struct many {
    weft_context *ctx;
    const weft_tokenizer *tokenizer;
    const weft_generate_options *options; /* [count] */
    size_t count, next;                   /* of prompts; the next one that no member has */
    int64_t rows, vocab;
    member *members;   /* [rows] */
    member **stepping; /* [steps] the members of a step: the busy ones, and perhaps others */
    int64_t steps;
    float *logits; /* [rows][vocab] */
    weft_generated_fn done;
    void *user;
    bool refused; /* done returned an error */
} many;

/* ---- one text ---- */

static weft_status many_collect(void *user, const char *text, size_t bytes) {
    member *m = user;
    weft__buffer_put(&m->text, text, bytes);
    return weft__buffer_check(&m->text);
}

/* Names the prompt in the message of a failed call. */
static weft_status about(const many *b, const member *m, weft_status status) {
    const char *name = b->options[m->index].name;
    if (status == WEFT_OK) return status;
    if (name) return weft__fail(b->ctx, status, "%s: %s", name, weft_last_error(NULL));
    return weft__fail(b->ctx, status, "prompt %zu: %s", m->index, weft_last_error(NULL));
}

/* Passes the text of a member on. The member is then free for another prompt. */
static weft_status many_end(many *b, member *m) {
    WEFT_TRY(about(b, m, weft__generation_finish(&m->g)));
    WEFT_TRY(many_collect(m, "", 1)); /* the NUL */
    const weft_generated result = {.index = m->index,
                                   .text = m->text.text,
                                   .bytes = m->text.bytes - 1,
                                   .prompt_tokens = m->g.prompt,
                                   .tokens = m->g.count - m->g.prompt,
                                   .ended = m->g.ended || m->g.stopped};
    weft__generation_close(&m->g);
    weft_decode_state_reset(m->cache);
    m->busy = false;
    const weft_status status = b->done(b->user, &result);
    b->refused = status != WEFT_OK;
    return status;
}

/* Draws a token for a member. */
static weft_status many_take(many *b, member *m, float *logits) {
    WEFT_TRY(about(b, m, weft__generation_take(&m->g, logits)));
    return m->g.over ? many_end(b, m) : WEFT_OK;
}

/* Gives a member the next prompt, and draws its first token. */
static weft_status many_start(many *b, member *m) {
    m->index = b->next++;
    m->text.bytes = 0;
    m->busy = true;
    WEFT_TRY(about(b, m,
                   weft__generation_open(&m->g, b->ctx, b->vocab, b->tokenizer, &b->options[m->index],
                                         many_collect, m)));
    WEFT_TRY(about(b, m, weft__generation_begin(&m->g)));
    if (m->g.over) return many_end(b, m);
    WEFT_TRY(weft__generation_feed(&m->g, m->cache, b->logits));
    return many_take(b, m, b->logits);
}

/* ---- a step ---- */

/* Chooses the members of the next step. When no prompt waits and half of them are idle, only half of them go
 * on. This happens seldom enough to pay for the program that it compiles. */
static void many_choose(many *b) {
    member *idle[WEFT__DECODE_MOST];
    int64_t busy = 0, others = 0;
    for (int64_t i = 0; i < b->steps; i++) {
        if (b->stepping[i]->busy)
            b->stepping[busy++] = b->stepping[i];
        else
            idle[others++] = b->stepping[i];
    }
    if (busy > 0 && busy <= b->steps / 2) b->steps = b->steps / 2;
    for (int64_t i = busy; i < b->steps; i++) b->stepping[i] = idle[i - busy];
}

static weft_status many_step(many *b) {
    weft_decode_state *caches[WEFT__DECODE_MOST];
    int32_t tokens[WEFT__DECODE_MOST];
    for (int64_t i = 0; i < b->steps; i++) {
        const member *m = b->stepping[i];
        const bool fits = weft_decode_state_length(m->cache) < weft_decode_state_capacity(m->cache);
        caches[i] = m->cache;
        tokens[i] = m->busy && fits ? m->g.ids[m->g.count - 1] : -1;
    }
    WEFT_TRY(weft_gpt_feed_many(caches, b->steps, tokens, b->logits));
    for (int64_t i = 0; i < b->steps; i++) {
        member *m = b->stepping[i];
        float *logits = b->logits + i * b->vocab;
        if (!m->busy) continue;
        if (tokens[i] < 0) /* its cache is full */
            WEFT_TRY(weft__generation_feed(&m->g, m->cache, logits));
        m->g.fed = m->g.count;
        WEFT_TRY(many_take(b, m, logits));
    }
    return WEFT_OK;
}

static weft_status many_run(many *b) {
    for (;;) {
        bool busy = false;
        for (int64_t i = 0; i < b->rows; i++) {
            member *m = &b->members[i];
            while (!m->busy && b->next < b->count) WEFT_TRY(many_start(b, m));
            busy = busy || m->busy;
        }
        if (!busy) return WEFT_OK;
        if (b->next == b->count) many_choose(b);
        WEFT_TRY(many_step(b));
    }
}

/* ---- memory ---- */

/* The tokens that a cache must hold for all texts: each prompt as weft_gpt_feed pads it, and its new tokens.
 * 0: the whole context. */
static int64_t many_capacity(const many *b, const weft_gpt_options *o) {
    int64_t most = 1;
    for (size_t i = 0; o && i < b->count; i++) {
        const char *prompt = b->options[i].prompt ? b->options[i].prompt : "";
        const size_t bytes = strlen(prompt);
        size_t count = bytes;
        if (!b->tokenizer ||
            weft_tokenizer_encode_special(b->tokenizer, prompt, bytes, NULL, 0, &count) != WEFT_OK)
            count = bytes;
        int64_t padded = WEFT__LEAST_PROMPT;
        while (padded < (int64_t)count + 1 && padded < o->context) padded *= 2;
        if (b->options[i].tokens >= o->context - padded) return 0;
        if (padded + b->options[i].tokens > most) most = padded + b->options[i].tokens;
    }
    return o ? most : 0;
}

static void free_chain(weft_decode_state *cache) {
    while (cache) {
        weft_decode_state *next = cache->next;
        weft_decode_state_free(cache);
        cache = next;
    }
}

/* Makes the caches of a member, one for each part of the model. */
static weft_status make_chain(weft_module *const *parts, size_t count, int64_t capacity,
                              weft_decode_state **first) {
    weft_decode_state *last = NULL;
    for (size_t i = 0; i < count; i++) {
        weft_decode_state *cache = weft_decode_state_new_sized(parts[i], capacity);
        if (!cache) return weft_last_status(parts[i]->ctx);
        if (last)
            weft__gpt_cache_link(last, cache);
        else
            *first = cache;
        last = cache;
    }
    return WEFT_OK;
}

static weft_status many_open(many *b, weft_module *const *parts, size_t n_parts) {
    const int64_t capacity = many_capacity(b, weft__gpt_options_of(parts[0]));
    b->members = weft__array(b->ctx, (size_t)b->rows, sizeof *b->members);
    b->stepping = weft__array(b->ctx, (size_t)b->rows, sizeof *b->stepping);
    if (!b->members || !b->stepping)
        return weft__fail_oom(b->ctx, (size_t)b->rows * sizeof *b->members, "generating");
    for (b->steps = 0; b->steps < b->rows; b->steps++) {
        member *m = b->stepping[b->steps] = &b->members[b->steps];
        m->text.ctx = b->ctx;
        WEFT_TRY(make_chain(parts, n_parts, capacity, &m->cache));
    }
    b->vocab = weft__gpt_cache_vocab(b->members[0].cache);
    b->logits = weft__array(b->ctx, (size_t)b->vocab, (size_t)b->rows * sizeof *b->logits);
    if (b->logits) return WEFT_OK;
    return weft__fail_oom(b->ctx, (size_t)(b->rows * b->vocab) * sizeof *b->logits, "generating");
}

static void many_close(many *b) {
    for (int64_t i = 0; b->members && i < b->rows; i++) {
        weft__generation_close(&b->members[i].g);
        free_chain(b->members[i].cache);
        weft__buffer_free(&b->members[i].text);
    }
    weft__free(b->ctx, b->members);
    weft__free(b->ctx, b->stepping);
    weft__free(b->ctx, b->logits);
}

weft_status weft_generate_many(weft_module *gpt, const weft_tokenizer *tokenizer,
                               const weft_generate_options *options, size_t count, int64_t rows,
                               weft_generated_fn done, void *user) {
    WEFT_NEED(NULL, gpt);
    WEFT_TRY(weft_module_status(gpt));
    WEFT_NEED_ARRAY(gpt->ctx, options, count);
    WEFT_NEED(gpt->ctx, done);
    return weft__generate_many(&gpt, 1, tokenizer, options, count, rows, done, user);
}

weft_status weft__generate_many(weft_module *const *parts, size_t n_parts, const weft_tokenizer *tokenizer,
                                const weft_generate_options *options, size_t count, int64_t rows,
                                weft_generated_fn done, void *user) {
    for (size_t i = 0; i < n_parts; i++) WEFT_TRY(weft_module_status(parts[i]));
    weft_context *ctx = parts[0]->ctx;
    if (rows < 0 || rows > WEFT__DECODE_MOST)
        return weft__fail(ctx, WEFT_ERR_ARGUMENT, "weft_generate_many: %lld rows: give 1 to %d, or 0 for %d",
                          (long long)rows, WEFT__DECODE_MOST, DEFAULT_ROWS);
    if (rows == 0) rows = DEFAULT_ROWS;
    if ((size_t)rows > count) rows = (int64_t)count;
    if (count == 0) return WEFT_OK;
    many b = {.ctx = ctx,
              .tokenizer = tokenizer,
              .options = options,
              .count = count,
              .rows = rows,
              .done = done,
              .user = user};
    weft_status status = many_open(&b, parts, n_parts);
    if (status == WEFT_OK) status = many_run(&b);
    many_close(&b);
    return status;
}
