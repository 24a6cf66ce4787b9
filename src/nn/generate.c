/* Generates text with a key/value cache, one token at a time. Must not know: where the text goes. Read next:
 * decode.c, sample.c. */
#include <stdio.h>
#include <string.h>

#include <weft/generate.h>

#include "base/utf8.h"
#include "nn/module.h"
#include "text/grammar/constraint.h"

typedef struct decoding {
    weft_gpt_cache *cache;
    weft_context *ctx;
    const weft_tokenizer *tokenizer;
    const weft_generate_options *options;
    weft_decoder *decoder;        /* NULL without a tokenizer */
    weft__constraint *constraint; /* NULL without a grammar */
    int32_t *ids;                 /* the prompt, then the sampled tokens */
    int64_t count;
    int64_t vocabulary; /* how many of the logits may be sampled */
    size_t room;        /* most ids of the prompt */
    float *logits;
    weft_text_fn emit;
    void *user;
    bool refused; /* emit ended the generation */
    bool stopped; /* a text of options->stops ended it */
    char *held; /* the last text, which may begin such a text; as much room as the longest one, and a piece */
    size_t held_bytes;
    size_t held_room;
} decoding;

/* Reads token ids separated by blanks. */
static weft_status read_numbers(decoding *d, const char *text) {
    const char *at = text;
    while (*(at += strspn(at, " \t\n,"))) {
        int64_t id = 0;
        size_t digits = strspn(at, "0123456789");
        for (size_t i = 0; i < digits && id <= INT32_MAX; i++) id = id * 10 + (at[i] - '0');
        if (digits == 0 || id >= d->vocabulary)
            return weft__fail(
                d->ctx, WEFT_ERR_INDEX,
                "the prompt: '%.20s' is not a token: give numbers from 0 to %lld, with spaces between them",
                at, (long long)d->vocabulary - 1);
        d->ids[d->count++] = (int32_t)id;
        at += digits;
    }
    return WEFT_OK;
}

/* Encodes the characters that the tokenizer knows, if it knows any, and notes the others. */
static weft_status encode_known(decoding *d, const char *prompt) {
    char *left_out = d->options->left_out;
    const size_t room = left_out ? d->options->left_out_bytes : 0;
    size_t bytes = strlen(prompt), used = 0;
    uint32_t point;
    for (size_t at = 0, n; at < bytes; at += n) {
        const int length = weft__utf8_read(prompt + at, bytes - at, &point);
        size_t count = 0;
        n = length > 0 ? (size_t)length : 1;
        if (weft_tokenizer_encode(d->tokenizer, prompt + at, n, d->ids + d->count, d->room - (size_t)d->count,
                                  &count) == WEFT_OK) {
            d->count += (int64_t)count;
        } else if (used + n < room) {
            memcpy(left_out + used, prompt + at, n);
            left_out[used += n] = 0;
        }
    }
    if (d->count > 0) return WEFT_OK;
    return weft_tokenizer_encode(d->tokenizer, prompt, bytes, d->ids, d->room,
                                 &bytes); /* says what is wrong */
}

static weft_status read_prompt(decoding *d, const char *prompt) {
    if (prompt[0] && !d->tokenizer) return read_numbers(d, prompt);
    if (prompt[0]) {
        size_t count = 0, bytes = strlen(prompt);
        weft_status status = (d->options->no_frame ? weft_tokenizer_encode : weft_tokenizer_encode_special)(
            d->tokenizer, prompt, bytes, d->ids, d->room, &count);
        if (status == WEFT_ERR_INDEX) return encode_known(d, prompt);
        d->count = (int64_t)count;
        if (status != WEFT_OK || count > 0) return status;
    }
    size_t newline = 0;
    bool has =
        d->tokenizer && weft_tokenizer_encode(d->tokenizer, "\n", 1, d->ids, d->room, &newline) == WEFT_OK;
    if (!has || newline == 0) d->ids[0] = 0;
    d->count = has && newline ? (int64_t)newline : 1;
    return WEFT_OK;
}

/* Feeds the tokens from `from` to `count` into the cache. If the cache has no room, it restarts with the
 * newest half of the context. */
static weft_status feed(decoding *d, int64_t from) {
    int64_t capacity = weft_gpt_cache_capacity(d->cache), fresh = d->count - from;
    if (weft_gpt_cache_length(d->cache) + fresh > capacity) {
        int64_t kept = capacity / 2 > 0 ? capacity / 2 : 1;
        weft_gpt_cache_reset(d->cache);
        fresh = d->count < kept ? d->count : kept;
    }
    return weft_gpt_feed(d->cache, d->ids + d->count - fresh, fresh, d->logits);
}

static weft_status pass_on(decoding *d, const char *text, size_t bytes) {
    if (bytes == 0) return WEFT_OK;
    const weft_status status = d->emit(d->user, text, bytes);
    d->refused = status != WEFT_OK;
    return status;
}

/* How many of the held bytes may be passed on: all before a stop, which ends the generation, or before the
 * last bytes that may begin one. */
static size_t free_bytes(decoding *d) {
    for (size_t at = 0; at < d->held_bytes; at++)
        for (size_t i = 0; i < d->options->stop_count; i++) {
            const char *stop = d->options->stops[i];
            const size_t left = d->held_bytes - at, length = strlen(stop);
            if (length == 0 || memcmp(d->held + at, stop, left < length ? left : length) != 0) continue;
            d->stopped = left >= length;
            return at;
        }
    return d->held_bytes;
}

/* Passes new text on, except for what may begin a stop. */
static weft_status generate_emit(decoding *d, const char *text, size_t bytes) {
    if (d->options->stop_count == 0) return pass_on(d, text, bytes);
    if (d->held_bytes + bytes > d->held_room) {
        const size_t wanted = 2 * (d->held_bytes + bytes);
        char *held = weft__realloc(d->ctx, d->held, wanted);
        if (!held) return weft__fail_oom(d->ctx, wanted, "text");
        d->held = held;
        d->held_room = wanted;
    }
    if (bytes) memcpy(d->held + d->held_bytes, text, bytes);
    d->held_bytes += bytes;
    const size_t free = free_bytes(d);
    WEFT_TRY(pass_on(d, d->held, free));
    memmove(d->held, d->held + free, d->held_bytes - free);
    d->held_bytes -= free;
    return WEFT_OK;
}

static weft_status generate_put(decoding *d, int32_t id) {
    char number[16];
    const char *text = number;
    size_t bytes = 0;
    if (d->decoder)
        WEFT_TRY(weft_decoder_push(d->decoder, id, &text, &bytes));
    else
        bytes = (size_t)snprintf(number, sizeof number, "%d ", id);
    return generate_emit(d, text, bytes);
}

/* Whether a token ends the generation. */
static bool is_end(const decoding *d, int64_t id) {
    if (d->options->endless) return false;
    for (size_t i = 0; i < d->options->end_count; i++)
        if (d->options->ends[i] == id) return true;
    return d->tokenizer && id == weft_tokenizer_special(d->tokenizer, WEFT_SPECIAL_EOS);
}

/* Samples the next token. */
static weft_status draw(decoding *d, int64_t i, int64_t *id) {
    const weft_generate_options *o = d->options;
    const weft__sampling how = {o->temperature, o->top_k, o->top_p, o->min_p};
    if (o->repetition_penalty > 0 && o->repetition_penalty != 1)
        weft__penalize(d->logits, d->vocabulary, d->ids, d->count, o->repetition_penalty);
    if (d->constraint) WEFT_TRY(weft__constraint_mask(d->constraint, d->logits, d->vocabulary));
    *id = weft__sample(d->logits, d->vocabulary, &how, o->seed, (uint64_t)i);
    return *id >= 0 ? WEFT_OK
                    : weft__fail(d->ctx, WEFT_ERR_NUMERIC, "token %lld: the model's output is not finite",
                                 (long long)i);
}

static weft_status generate_run(decoding *d, const char *prompt) {
    const weft_generate_options *o = d->options;
    const char *text = "";
    size_t bytes = 0;
    int64_t fed = 0, id;
    WEFT_TRY(read_prompt(d, prompt));
    if (o->keep_cache)
        fed = weft_gpt_cache_keep(d->cache, d->ids, d->count - 1); /* the last one gives the logits */
    else
        weft_gpt_cache_reset(d->cache);
    for (int64_t i = 0; prompt[0] && !o->only_new && i < d->count; i++) WEFT_TRY(generate_put(d, d->ids[i]));
    d->held_bytes = 0; /* a stop in the prompt does not count */
    d->stopped = false;
    for (int64_t i = 0; i < o->tokens && !d->stopped; i++) {
        WEFT_TRY(feed(d, fed));
        fed = d->count;
        WEFT_TRY(draw(d, i, &id));
        if (is_end(d, id)) break;
        d->ids[d->count++] = (int32_t)id;
        WEFT_TRY(generate_put(d, (int32_t)id));
        if (d->constraint) WEFT_TRY(weft__constraint_take(d->constraint, (int32_t)id));
        if (d->constraint && weft__constraint_over(d->constraint)) break;
    }
    if (d->constraint && o->incomplete)
        *o->incomplete = d->stopped || !weft__constraint_complete(d->constraint);
    if (d->decoder && !d->stopped) WEFT_TRY(weft_decoder_finish(d->decoder, &text, &bytes));
    if (!d->stopped) WEFT_TRY(generate_emit(d, text, bytes));
    return d->stopped ? WEFT_OK : pass_on(d, d->held, d->held_bytes);
}

/* Begins to hold the new text to the grammar. It may end where the generation may. */
static weft_status constrain(decoding *d) {
    const weft_generate_options *o = d->options;
    const int32_t end = weft_tokenizer_special(d->tokenizer, WEFT_SPECIAL_EOS);
    const size_t given = o->endless ? 0 : o->end_count;
    int32_t *ends = weft__array(d->ctx, given + 1, sizeof *ends);
    if (!ends) return weft__fail_oom(d->ctx, (given + 1) * sizeof *ends, "generating");
    if (given) memcpy(ends, o->ends, given * sizeof *ends);
    ends[given] = end;
    const size_t count = given + (!o->endless && end >= 0);
    const weft_status status =
        weft__constraint_open(d->ctx, o->grammar, d->tokenizer, ends, count, &d->constraint);
    weft__free(d->ctx, ends);
    return status;
}

/* Checks the options, and sets how many of the `rows` logits stand for tokens. */
static weft_status generate_check(decoding *d, int64_t rows, size_t prompt) {
    const weft_generate_options *o = d->options;
    d->vocabulary = o->vocabulary  ? o->vocabulary
                    : d->tokenizer ? (int64_t)weft_tokenizer_vocabulary(d->tokenizer)
                                   : rows;
    if (d->vocabulary < 1 || d->vocabulary > rows)
        return weft__fail(d->ctx, WEFT_ERR_ARGUMENT,
                          "weft_generate: %lld tokens may be sampled, but the model has %lld logits",
                          (long long)d->vocabulary, (long long)rows);
    if (o->tokens < 0 || prompt > INT32_MAX || o->tokens > INT32_MAX - (int64_t)prompt)
        return weft__fail(d->ctx, WEFT_ERR_ARGUMENT,
                          "weft_generate: %lld tokens after a prompt of %zu bytes: at most %d together",
                          (long long)o->tokens, prompt, INT32_MAX);
    if ((o->stop_count && !o->stops) || (o->end_count && !o->ends))
        return weft__fail(d->ctx, WEFT_ERR_ARGUMENT, "weft_generate: stop_count or end_count has no list");
    if (o->grammar && !d->tokenizer)
        return weft__fail(d->ctx, WEFT_ERR_ARGUMENT, "weft_generate: a grammar needs a tokenizer");
    if (o->top_k < 0 || !(o->temperature >= 0) || !(o->top_p >= 0 && o->top_p <= 1) ||
        !(o->min_p >= 0 && o->min_p <= 1) || !(o->repetition_penalty >= 0))
        return weft__fail(
            d->ctx, WEFT_ERR_ARGUMENT,
            "weft_generate: temperature %g, top_k %lld, top_p %g, min_p %g and repetition_penalty %g: "
            "none may be negative, and top_p and min_p are at most 1",
            o->temperature, (long long)o->top_k, o->top_p, o->min_p, o->repetition_penalty);
    return WEFT_OK;
}

weft_status weft_generate(weft_gpt_cache *cache, const weft_tokenizer *tokenizer,
                          const weft_generate_options *options, weft_text_fn emit, void *user) {
    static const weft_generate_options defaults = {0};
    WEFT_NEED(NULL, cache);
    decoding d = {.cache = cache,
                  .ctx = weft__gpt_cache_context(cache),
                  .tokenizer = tokenizer,
                  .options = options ? options : &defaults,
                  .emit = emit,
                  .user = user};
    WEFT_NEED(d.ctx, emit);
    const char *prompt = d.options->prompt ? d.options->prompt : "";
    const int64_t rows = weft__gpt_cache_vocab(cache);
    const size_t bytes = strlen(prompt);
    if (d.options->left_out && d.options->left_out_bytes) d.options->left_out[0] = '\0';
    if (d.options->incomplete) *d.options->incomplete = d.options->grammar != NULL;
    if (rows == 0) return weft__fail(d.ctx, WEFT_ERR_STATE, "weft_generate: the model was freed");
    WEFT_TRY(generate_check(&d, rows, bytes));
    size_t count = 0; /* some tokenizers give more ids than the prompt has bytes */
    if (tokenizer && weft_tokenizer_encode_special(tokenizer, prompt, bytes, NULL, 0, &count) != WEFT_OK)
        count = 0;
    d.room = (count > bytes ? count : bytes) + 8;
    d.ids = weft__array(d.ctx, d.room + (size_t)d.options->tokens + 2, sizeof *d.ids);
    d.logits = weft__array(d.ctx, (size_t)rows, sizeof *d.logits);
    weft_status status = WEFT_OK;
    if (!d.ids || !d.logits) status = weft__fail_oom(d.ctx, (size_t)d.options->tokens * 4, "generating");
    if (status == WEFT_OK && tokenizer) status = weft_decoder_open(tokenizer, &d.decoder);
    if (status == WEFT_OK && d.options->grammar) status = constrain(&d);
    if (status == WEFT_OK) status = generate_run(&d, prompt);
    weft__constraint_free(d.constraint);
    weft_decoder_free(d.decoder);
    weft__free(d.ctx, d.logits);
    weft__free(d.ctx, d.held);
    weft__free(d.ctx, d.ids);
    if (status == WEFT_OK || d.refused) return status;
    return weft__fail(d.ctx, status, "%s",
                      weft_last_error(NULL)); /* the tokenizer may be of another context */
}
