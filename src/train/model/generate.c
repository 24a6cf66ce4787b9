/* Generates text with a key/value cache, one token at a time. Must not know: where the text goes. Read next:
 * train/run/loop.c. */
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "train/model/generate.h"

typedef struct decoding {
    weft_gpt_cache *cache;
    const weft_tokenizer *tokenizer;
    weft_decoder *decoder; /* NULL without a tokenizer */
    int32_t *ids;          /* the prompt, then the sampled tokens */
    int64_t count;
    int64_t vocabulary;
    float *logits;
    weft__emit_fn emit;
    void *user;
} decoding;

/* Reads token ids separated by blanks. */
static weft_status read_numbers(const char *text, int64_t vocabulary, int32_t *ids, int64_t *count) {
    const char *at = text;
    while (*(at += strspn(at, " \t\n,"))) {
        int64_t id = 0;
        size_t digits = strspn(at, "0123456789");
        for (size_t i = 0; i < digits && id <= INT32_MAX; i++) id = id * 10 + (at[i] - '0');
        if (digits == 0 || id >= vocabulary)
            return weft__fail(
                NULL, WEFT_ERR_INDEX,
                "the prompt: '%.20s' is not a token: give numbers from 0 to %lld, with spaces between them",
                at, (long long)vocabulary - 1);
        ids[(*count)++] = (int32_t)id;
        at += digits;
    }
    return WEFT_OK;
}

/* Encodes the characters that the tokenizer knows, if it knows any, and notes the others. */
static weft_status encode_known(decoding *d, const char *prompt, char left_out[WEFT__LEFT_OUT]) {
    size_t bytes = strlen(prompt), used = 0;
    uint32_t point;
    for (size_t at = 0, n; at < bytes; at += n) {
        const int length = weft__utf8_read(prompt + at, bytes - at, &point);
        size_t count = 0;
        n = length > 0 ? (size_t)length : 1;
        if (weft_tokenizer_encode(d->tokenizer, prompt + at, n, d->ids + d->count,
                                  bytes + 1 - (size_t)d->count, &count) == WEFT_OK) {
            d->count += (int64_t)count;
        } else if (used + n < WEFT__LEFT_OUT) {
            memcpy(left_out + used, prompt + at, n);
            left_out[used += n] = 0;
        }
    }
    if (d->count > 0) return WEFT_OK;
    return weft_tokenizer_encode(d->tokenizer, prompt, bytes, d->ids, bytes + 1,
                                 &bytes); /* says what is wrong */
}

static weft_status read_prompt(decoding *d, const char *prompt, char left_out[WEFT__LEFT_OUT]) {
    if (prompt && prompt[0] && !d->tokenizer) return read_numbers(prompt, d->vocabulary, d->ids, &d->count);
    if (prompt && prompt[0]) {
        size_t count = 0, bytes = strlen(prompt);
        weft_status status = weft_tokenizer_encode(d->tokenizer, prompt, bytes, d->ids, bytes + 1, &count);
        if (status == WEFT_ERR_INDEX) return encode_known(d, prompt, left_out);
        d->count = (int64_t)count;
        if (status != WEFT_OK || count > 0) return status;
    }
    size_t newline = 0;
    bool has = d->tokenizer && weft_tokenizer_encode(d->tokenizer, "\n", 1, d->ids, 1, &newline) == WEFT_OK;
    if (!has || newline == 0) d->ids[0] = 0;
    d->count = 1;
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

static weft_status generate_put(decoding *d, int32_t id) {
    char number[16];
    const char *text = number;
    size_t bytes = 0;
    if (d->decoder)
        WEFT_TRY(weft_decoder_push(d->decoder, id, &text, &bytes));
    else
        bytes = (size_t)snprintf(number, sizeof number, "%d ", id);
    return bytes > 0 ? d->emit(d->user, text, bytes) : WEFT_OK;
}

static weft_status generate_run(decoding *d, const weft__generation *wanted, char left_out[WEFT__LEFT_OUT]) {
    weft_gpt_cache_reset(d->cache);
    WEFT_TRY(read_prompt(d, wanted->prompt, left_out));
    if (wanted->prompt && wanted->prompt[0])
        for (int64_t i = 0; i < d->count; i++) WEFT_TRY(generate_put(d, d->ids[i]));
    int64_t fed = 0;
    for (int64_t i = 0; i < wanted->tokens; i++) {
        WEFT_TRY(feed(d, fed));
        fed = d->count;
        int64_t id = weft_sample(d->logits, d->vocabulary, wanted->temperature, wanted->top_k, wanted->seed,
                                 (uint64_t)i);
        if (id < 0)
            return weft__fail(NULL, WEFT_ERR_NUMERIC, "token %lld: the model's output is not finite",
                              (long long)i);
        d->ids[d->count++] = (int32_t)id;
        WEFT_TRY(generate_put(d, (int32_t)id));
    }
    const char *text = "";
    size_t bytes = 0;
    if (d->decoder) WEFT_TRY(weft_decoder_finish(d->decoder, &text, &bytes));
    return bytes > 0 ? d->emit(d->user, text, bytes) : WEFT_OK;
}

weft_status weft__generate(weft_gpt_cache *cache, const weft_tokenizer *tokenizer, int64_t vocabulary,
                           int64_t rows, const weft__generation *wanted, weft__emit_fn emit, void *user,
                           char left_out[WEFT__LEFT_OUT]) {
    char ignored[WEFT__LEFT_OUT];
    decoding d = {
        .cache = cache, .tokenizer = tokenizer, .vocabulary = vocabulary, .emit = emit, .user = user};
    size_t prompt = wanted->prompt ? strlen(wanted->prompt) : 0;
    d.ids = weft__array(NULL, prompt + (size_t)wanted->tokens + 2, sizeof *d.ids);
    d.logits = weft__array(NULL, (size_t)rows, sizeof *d.logits);
    weft_status status = WEFT_OK;
    if (!d.ids || !d.logits) status = weft__fail_oom(NULL, (size_t)wanted->tokens * 4, "generating");
    if (status == WEFT_OK && tokenizer) status = weft_decoder_open(tokenizer, &d.decoder);
    if (status == WEFT_OK) status = generate_run(&d, wanted, left_out ? left_out : ignored);
    weft_decoder_free(d.decoder);
    weft__free(NULL, d.logits);
    weft__free(NULL, d.ids);
    return status;
}
