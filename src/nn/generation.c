/* One text that is generated: its prompt as tokens, drawing, stops, and the text that is passed on. Must not
 * know: models. Read next: generate.c, sample.c. */
#include <stdio.h>
#include <string.h>

#include "base/option.h"
#include "base/utf8.h"
#include "nn/generation.h"
#include "nn/module.h"

/* Reads token ids separated by blanks. */
static weft_status read_numbers(weft__generation *g, const char *text) {
    const char *at = text;
    while (*(at += strspn(at, " \t\n,"))) {
        int64_t id = 0;
        size_t digits = strspn(at, "0123456789");
        for (size_t i = 0; i < digits && id <= INT32_MAX; i++) id = id * 10 + (at[i] - '0');
        if (digits == 0 || id >= g->vocabulary)
            return weft__fail(
                g->ctx, WEFT_ERR_INDEX,
                "the prompt: '%.20s' is not a token: give numbers from 0 to %lld, with spaces between them",
                at, (long long)g->vocabulary - 1);
        g->ids[g->count++] = (int32_t)id;
        at += digits;
    }
    return WEFT_OK;
}

/* Encodes the characters that the tokenizer knows, if it knows any, and notes the others. */
static weft_status encode_known(weft__generation *g, const char *prompt) {
    char *left_out = g->options->left_out;
    const size_t room = left_out ? g->options->left_out_bytes : 0;
    size_t bytes = strlen(prompt), used = 0;
    uint32_t point;
    for (size_t at = 0, n; at < bytes; at += n) {
        const int length = weft__utf8_read(prompt + at, bytes - at, &point);
        size_t count = 0;
        n = length > 0 ? (size_t)length : 1;
        if (weft_tokenizer_encode(g->tokenizer, prompt + at, n, g->ids + g->count, g->room - (size_t)g->count,
                                  &count) == WEFT_OK) {
            g->count += (int64_t)count;
        } else if (used + n < room) {
            memcpy(left_out + used, prompt + at, n);
            left_out[used += n] = 0;
        }
    }
    if (g->count > 0) return WEFT_OK;
    return weft_tokenizer_encode(g->tokenizer, prompt, bytes, g->ids, g->room,
                                 &bytes); /* says what is wrong */
}

static weft_status read_prompt(weft__generation *g, const char *prompt) {
    if (prompt[0] && !g->tokenizer) return read_numbers(g, prompt);
    if (prompt[0]) {
        size_t count = 0, bytes = strlen(prompt);
        weft_status status = (g->options->no_frame ? weft_tokenizer_encode : weft_tokenizer_encode_special)(
            g->tokenizer, prompt, bytes, g->ids, g->room, &count);
        if (status == WEFT_ERR_INDEX) return encode_known(g, prompt);
        g->count = (int64_t)count;
        if (status != WEFT_OK || count > 0) return status;
    }
    size_t newline = 0;
    bool has =
        g->tokenizer && weft_tokenizer_encode(g->tokenizer, "\n", 1, g->ids, g->room, &newline) == WEFT_OK;
    if (!has || newline == 0) g->ids[0] = 0;
    g->count = has && newline ? (int64_t)newline : 1;
    return WEFT_OK;
}

static weft_status pass_on(weft__generation *g, const char *text, size_t bytes) {
    if (bytes == 0) return WEFT_OK;
    const weft_status status = g->emit(g->user, text, bytes);
    g->refused = status != WEFT_OK;
    return status;
}

/* How many of the held bytes may be passed on: all before a stop, which ends the generation, or before the
 * last bytes that may begin one. */
static size_t free_bytes(weft__generation *g) {
    for (size_t at = 0; at < g->held_bytes; at++)
        for (size_t i = 0; i < g->options->stop_count; i++) {
            const char *stop = g->options->stops[i];
            const size_t left = g->held_bytes - at, length = strlen(stop);
            if (length == 0 || memcmp(g->held + at, stop, left < length ? left : length) != 0) continue;
            g->stopped = left >= length;
            return at;
        }
    return g->held_bytes;
}

/* Passes new text on, except for what may begin a stop. */
static weft_status generate_emit(weft__generation *g, const char *text, size_t bytes) {
    if (g->options->stop_count == 0) return pass_on(g, text, bytes);
    if (bytes == 0) return WEFT_OK;
    if (g->held_bytes + bytes > g->held_room) {
        const size_t wanted = 2 * (g->held_bytes + bytes);
        char *held = weft__realloc(g->ctx, g->held, wanted);
        if (!held) return weft__fail_oom(g->ctx, wanted, "text");
        g->held = held;
        g->held_room = wanted;
    }
    memcpy(g->held + g->held_bytes, text, bytes);
    g->held_bytes += bytes;
    const size_t free = free_bytes(g);
    WEFT_TRY(pass_on(g, g->held, free));
    memmove(g->held, g->held + free, g->held_bytes - free);
    g->held_bytes -= free;
    return WEFT_OK;
}

/* Passes the text of a token on. In the prompt, stops do not count. */
static weft_status generate_put(weft__generation *g, int32_t id, bool prompt) {
    char number[16];
    const char *text = number;
    size_t bytes = 0;
    if (g->decoder)
        WEFT_TRY(weft_decoder_push(g->decoder, id, &text, &bytes));
    else
        bytes = (size_t)snprintf(number, sizeof number, "%d ", id);
    return prompt ? pass_on(g, text, bytes) : generate_emit(g, text, bytes);
}

/* Whether a token ends the generation. */
static bool is_end(const weft__generation *g, int64_t id) {
    if (g->options->endless) return false;
    for (size_t i = 0; i < g->options->end_count; i++)
        if (g->options->ends[i] == id) return true;
    return g->tokenizer && id == weft_tokenizer_special(g->tokenizer, WEFT_SPECIAL_EOS);
}

weft_status weft__generation_begin(weft__generation *g) {
    const weft_generate_options *o = g->options;
    for (int64_t i = 0; o->prompt && o->prompt[0] && !o->only_new && i < g->count; i++)
        WEFT_TRY(generate_put(g, g->ids[i], true));
    g->over = o->tokens == 0;
    return WEFT_OK;
}

weft_status weft__generation_mask(weft__generation *g, float *logits) {
    weft__penalize(logits, g->vocabulary, g->ids, g->count, g->options->repetition_penalty);
    return g->constraint ? weft__constraint_mask(g->constraint, logits, g->vocabulary) : WEFT_OK;
}

weft_status weft__generation_add(weft__generation *g, int64_t id) {
    if (id < 0)
        return weft__fail(g->ctx, WEFT_ERR_NUMERIC, "token %lld: the model's output is not finite",
                          (long long)(g->count - g->prompt));
    g->over = g->ended = is_end(g, id);
    if (g->over) return WEFT_OK;
    g->ids[g->count++] = (int32_t)id;
    WEFT_TRY(generate_put(g, (int32_t)id, false));
    if (g->constraint) WEFT_TRY(weft__constraint_take(g->constraint, (int32_t)id));
    g->ended = g->constraint && weft__constraint_over(g->constraint);
    g->over = g->ended || g->stopped || g->count - g->prompt >= g->options->tokens;
    return WEFT_OK;
}

weft_status weft__generation_take(weft__generation *g, float *logits) {
    const weft_generate_options *o = g->options;
    const weft__sampling how = {o->temperature, o->top_k, o->top_p, o->min_p};
    WEFT_TRY(weft__generation_mask(g, logits));
    return weft__generation_add(
        g, weft__sample(logits, g->vocabulary, &how, o->seed, (uint64_t)(g->count - g->prompt)));
}

weft_status weft__generation_finish(weft__generation *g) {
    const char *text = "";
    size_t bytes = 0;
    if (g->constraint && g->options->incomplete)
        *g->options->incomplete = g->stopped || !weft__constraint_complete(g->constraint);
    if (g->decoder && !g->stopped) WEFT_TRY(weft_decoder_finish(g->decoder, &text, &bytes));
    if (!g->stopped) WEFT_TRY(generate_emit(g, text, bytes));
    return g->stopped ? WEFT_OK : pass_on(g, g->held, g->held_bytes);
}

/* Begins to hold the new text to the grammar. It may end where the generation may. */
static weft_status constrain(weft__generation *g) {
    const weft_generate_options *o = g->options;
    const int32_t end = weft_tokenizer_special(g->tokenizer, WEFT_SPECIAL_EOS);
    const size_t given = o->endless ? 0 : o->end_count;
    int32_t *ends = weft__array(g->ctx, given + 1, sizeof *ends);
    if (!ends) return weft__fail_oom(g->ctx, (given + 1) * sizeof *ends, "generating");
    if (given) memcpy(ends, o->ends, given * sizeof *ends);
    ends[given] = end;
    const size_t count = given + (!o->endless && end >= 0);
    const weft_status status =
        weft__constraint_open(g->ctx, o->grammar, g->tokenizer, ends, count, &g->constraint);
    weft__free(g->ctx, ends);
    return status;
}

/* Checks the options, and sets how many of the `rows` logits stand for tokens. */
static weft_status generate_check(weft__generation *g, int64_t rows, size_t prompt) {
    const weft_generate_options *o = g->options;
    g->vocabulary = o->vocabulary  ? o->vocabulary
                    : g->tokenizer ? (int64_t)weft_tokenizer_vocabulary(g->tokenizer)
                                   : rows;
    if (g->vocabulary < 1 || g->vocabulary > rows)
        return weft__fail(g->ctx, WEFT_ERR_ARGUMENT,
                          "weft_generate: %lld tokens may be sampled, but the model has %lld logits",
                          (long long)g->vocabulary, (long long)rows);
    if (o->tokens < 0 || prompt > INT32_MAX || o->tokens > INT32_MAX - (int64_t)prompt)
        return weft__fail(g->ctx, WEFT_ERR_ARGUMENT,
                          "weft_generate: %lld tokens after a prompt of %zu bytes: at most %d together",
                          (long long)o->tokens, prompt, INT32_MAX);
    if ((o->stop_count && !o->stops) || (o->end_count && !o->ends))
        return weft__fail(g->ctx, WEFT_ERR_ARGUMENT, "weft_generate: stop_count or end_count has no list");
    if (o->grammar && !g->tokenizer)
        return weft__fail(g->ctx, WEFT_ERR_ARGUMENT, "weft_generate: a grammar needs a tokenizer");
    if (o->top_k < 0 || !(o->temperature >= 0) || !(o->top_p >= 0 && o->top_p <= 1) ||
        !(o->min_p >= 0 && o->min_p <= 1) || !(weft__value_or(o->repetition_penalty, 1) > 0))
        return weft__fail(
            g->ctx, WEFT_ERR_ARGUMENT,
            "weft_generate: temperature %g, top_k %lld, top_p %g, min_p %g and repetition_penalty %g: "
            "none may be negative, top_p and min_p are at most 1, and the penalty is not 0",
            o->temperature, (long long)o->top_k, o->top_p, o->min_p, o->repetition_penalty);
    return WEFT_OK;
}

weft_status weft__generation_open(weft__generation *g, weft_context *ctx, int64_t rows,
                                  const weft_tokenizer *tokenizer, const weft_generate_options *options,
                                  weft_text_fn emit, void *user) {
    const weft_generate_options *o = options;
    const char *prompt = o->prompt ? o->prompt : "";
    const size_t bytes = strlen(prompt);
    *g = (weft__generation){.ctx = ctx, .tokenizer = tokenizer, .options = o, .emit = emit, .user = user};
    if (o->left_out && o->left_out_bytes) o->left_out[0] = '\0';
    if (o->incomplete) *o->incomplete = o->grammar != NULL;
    if (rows == 0) return weft__fail(ctx, WEFT_ERR_STATE, "weft_generate: the model was freed");
    WEFT_TRY(generate_check(g, rows, bytes));
    size_t count = 0; /* some tokenizers give more ids than the prompt has bytes */
    if (tokenizer && weft_tokenizer_encode_special(tokenizer, prompt, bytes, NULL, 0, &count) != WEFT_OK)
        count = 0;
    g->room = (count > bytes ? count : bytes) + 8;
    g->ids = weft__array(ctx, g->room + (size_t)o->tokens + 2, sizeof *g->ids);
    if (!g->ids) return weft__fail_oom(ctx, (g->room + (size_t)o->tokens) * sizeof *g->ids, "generating");
    if (tokenizer) WEFT_TRY(weft_decoder_open(tokenizer, &g->decoder));
    if (o->grammar) WEFT_TRY(constrain(g));
    WEFT_TRY(read_prompt(g, prompt));
    g->prompt = g->count;
    return WEFT_OK;
}

void weft__generation_close(weft__generation *g) {
    weft__constraint_free(g->constraint);
    weft_decoder_free(g->decoder);
    weft__free(g->ctx, g->held);
    weft__free(g->ctx, g->ids);
    g->constraint = NULL;
    g->decoder = NULL;
    g->held = NULL;
    g->ids = NULL;
}

weft_status weft__generation_feed(weft__generation *g, weft_decode_state *cache, float *logits) {
    const int64_t capacity = weft_decode_state_capacity(cache);
    int64_t fresh = g->count - g->fed;
    if (weft_decode_state_length(cache) + fresh > capacity) {
        const int64_t kept = capacity / 2 > 0 ? capacity / 2 : 1;
        weft_decode_state_reset(cache);
        fresh = weft__smaller(g->count, kept);
    }
    WEFT_TRY(weft_gpt_feed(cache, g->ids + g->count - fresh, fresh, logits));
    g->fed = g->count;
    return WEFT_OK;
}
