/* Decodes a stream of ids. Each id gives text as soon as the text is complete UTF-8. At most three bytes of
 * an incomplete character wait for the next id. Must not know: how text was split into tokens. Read next:
 * corpus.c. */
#include <string.h>

#include "text/tokenizer.h"
#include "base/utf8.h"

struct weft_decoder {
    const weft_tokenizer *tokenizer;
    char *in;  /* waiting bytes, then the bytes of the current id */
    char *out; /* text for the caller */
    size_t in_used, in_capacity, out_capacity;
    weft__decoding decoding;
};

weft_status weft_decoder_open(const weft_tokenizer *tokenizer, weft_decoder **out) {
    WEFT_NEED(NULL, out);
    *out = NULL;
    WEFT_NEED(NULL, tokenizer);
    *out = weft__zalloc(tokenizer->ctx, sizeof **out);
    if (!*out) return weft__fail_oom(tokenizer->ctx, sizeof **out, "a decoder");
    (*out)->tokenizer = tokenizer;
    return WEFT_OK;
}

void weft_decoder_free(weft_decoder *d) {
    if (!d) return;
    weft_context *ctx = d->tokenizer->ctx;
    weft__free(ctx, d->in);
    weft__free(ctx, d->out);
    weft__free(ctx, d);
}

/* Makes room for `more` input bytes and for the output. The output may have three bytes (U+FFFD) for each
 * malformed input byte. */
static weft_status reserve(weft_decoder *d, size_t more) {
    weft_context *ctx = d->tokenizer->ctx;
    size_t in = d->in_used + more, out = 3 * in + 1;
    if (in > d->in_capacity) {
        char *p = weft__realloc(ctx, d->in, in);
        if (!p) return weft__fail_oom(ctx, in, "decoding");
        d->in = p;
        d->in_capacity = in;
    }
    if (out > d->out_capacity) {
        char *p = weft__realloc(ctx, d->out, out);
        if (!p) return weft__fail_oom(ctx, out, "decoding");
        d->out = p;
        d->out_capacity = out;
    }
    return WEFT_OK;
}

/* Moves complete characters from in to out. At the end of the stream, an incomplete character counts as
 * malformed. */
static size_t drain(weft_decoder *d, bool end) {
    static const char replacement[3] = {'\xef', '\xbf', '\xbd'}; /* U+FFFD */
    size_t at = 0, used = 0;
    uint32_t point;
    while (at < d->in_used) {
        int n = weft__utf8_read(d->in + at, d->in_used - at, &point);
        if (n == 0 && !end) break;
        if (n > 0) {
            memcpy(d->out + used, d->in + at, (size_t)n);
            used += (size_t)n;
            at += (size_t)n;
        } else {
            memcpy(d->out + used, replacement, 3);
            used += 3;
            at += n < 0 ? (size_t)-n : d->in_used - at;
        }
    }
    d->in_used -= at;
    if (d->in_used) memmove(d->in, d->in + at, d->in_used);
    d->out[used] = 0;
    return used;
}

weft_status weft_decoder_push(weft_decoder *decoder, int32_t id, const char **text, size_t *bytes) {
    size_t n;
    WEFT_NEED(NULL, decoder);
    WEFT_NEED(decoder->tokenizer->ctx, text);
    WEFT_NEED(decoder->tokenizer->ctx, bytes);
    const char *token;
    bool spaced;
    WEFT_TRY(weft__tokenizer_next(decoder->tokenizer, &decoder->decoding, id, &token, &n, &spaced));
    WEFT_TRY(reserve(decoder, n + 1));
    if (spaced) decoder->in[decoder->in_used++] = ' ';
    if (n) memcpy(decoder->in + decoder->in_used, token, n);
    decoder->in_used += n;
    *bytes = drain(decoder, false);
    *text = decoder->out;
    return WEFT_OK;
}

weft_status weft_decoder_finish(weft_decoder *decoder, const char **text, size_t *bytes) {
    WEFT_NEED(NULL, decoder);
    WEFT_NEED(decoder->tokenizer->ctx, text);
    WEFT_NEED(decoder->tokenizer->ctx, bytes);
    WEFT_TRY(reserve(decoder, 0));
    *bytes = drain(decoder, true);
    *text = decoder->out;
    decoder->decoding = (weft__decoding){0};
    return WEFT_OK;
}
