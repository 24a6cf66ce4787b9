/* The byte-pair tokenizer. GPT-2's pattern splits a text into words, and merges turn the bytes of a word into
 * tokens.
 *
 * All bytes can be encoded; a sequence of bytes that are not UTF-8 is a word of its own. Tokens that no merge
 * makes are special: if the text contains the spelling of such a token, it is encoded as that token.
 *
 * White space is the property of Unicode. Letters and numbers are those of the Unicode version of the
 * installed PCRE2.
 *
 * Must not know: files. Read next: bpe_alphabet.c. */
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "text/bpe.h"
#include "base/utf8.h"

/* \s of PCRE2 also has U+180E, which is no longer white space in Unicode */
#define SPACE "\\t-\\r\\x{85}\\p{Z}"
#define PATTERN                                                                                              \
    "'(?:[sdmt]|ll|ve|re)| ?\\p{L}++| ?\\p{N}++| ?[^" SPACE "\\p{L}\\p{N}]++|[" SPACE "]+(?![^" SPACE        \
    "])|[" SPACE "]+"

#define SPECIALS_MAX 256 /* a text is searched for each special token */

struct weft__bpe_work {
    pcre2_general_context *memory;
    pcre2_code *pattern;
    pcre2_match_data *match;
    weft__word_cache cache;
    weft__merging merging;
};

/* ---- making ---- */

static void *tokenizer_bpe_take(PCRE2_SIZE bytes, void *ctx) { return weft__alloc(ctx, bytes); }
static void give(void *p, void *ctx) { weft__free(ctx, p); }

static weft_status compile_pattern(weft_context *ctx, weft__bpe_work *w) {
    int code = 0;
    PCRE2_SIZE at;
    w->memory = pcre2_general_context_create(tokenizer_bpe_take, give, ctx);
    pcre2_compile_context *compiling = w->memory ? pcre2_compile_context_create(w->memory) : NULL;
    if (compiling)
        w->pattern = pcre2_compile((PCRE2_SPTR)PATTERN, PCRE2_ZERO_TERMINATED,
                                   PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED, &code, &at, compiling);
    pcre2_compile_context_free(compiling);
    if (!w->pattern && (!compiling || code == PCRE2_ERROR_NOMEMORY || code == 121))
        return weft__fail_oom(ctx, 0, "the pattern of a tokenizer");
    if (!w->pattern) {
        PCRE2_UCHAR text[128] = "";
        pcre2_get_error_message(code, text, sizeof text);
        return weft__fail(ctx, WEFT_ERR_UNSUPPORTED, "tokenizer: PCRE2 does not accept its pattern: %s",
                          (const char *)text);
    }
    (void)pcre2_jit_compile(w->pattern, PCRE2_JIT_COMPLETE); /* without JIT, matching is slower */
    w->match = pcre2_match_data_create(1, w->memory);
    return w->match ? WEFT_OK : weft__fail_oom(ctx, 0, "the pattern of a tokenizer");
}

void weft__bpe_free(weft_tokenizer *t) {
    weft__bpe *b = t->bpe;
    if (!b) return;
    if (b->work) {
        pcre2_match_data_free(b->work->match);
        pcre2_code_free(b->work->pattern);
        pcre2_general_context_free(b->work->memory);
        weft__free(t->ctx, b->work->cache.entries);
        weft__merging_free(t->ctx, &b->work->merging);
    }
    weft__free(t->ctx, b->work);
    weft__merges_free(t->ctx, &b->merges);
    weft__free(t->ctx, b->specials);
    weft__free(t->ctx, b);
    t->bpe = NULL;
}

/* Finds the id of each byte, and the special tokens. Each byte must be a token. All other tokens are made by
 * merges or are special. */
static weft_status sort_out(weft_tokenizer *t, const char *name) {
    weft__bpe *b = t->bpe;
    for (unsigned i = 0; i < 256; i++) {
        char byte = (char)(unsigned char)i;
        b->bytes[i] = t->slots[weft__tokenizer_slot(t, &byte, 1)];
        if (b->bytes[i] < 0)
            return weft__fail(t->ctx, WEFT_ERR_FORMAT, "%s: vocabulary: byte 0x%02x has no id", name, i);
    }
    uint8_t *made = weft__zalloc(t->ctx, t->count + 1);
    b->specials = weft__array(t->ctx, SPECIALS_MAX, sizeof *b->specials);
    if (!made || !b->specials) {
        weft__free(t->ctx, made);
        return weft__fail_oom(t->ctx, t->count, "a vocabulary");
    }
    for (unsigned i = 0; i < 256; i++) made[b->bytes[i]] = 1;
    for (size_t i = 0; i < b->merges.count; i++) made[b->merges.list[i].made] = 1;
    size_t specials = 0;
    for (size_t id = 0; id < t->count; id++) {
        if (made[id]) continue;
        if (specials < SPECIALS_MAX) b->specials[specials] = (int32_t)id;
        specials++;
    }
    weft__free(t->ctx, made);
    b->special_count = specials;
    if (specials <= SPECIALS_MAX) return WEFT_OK;
    return weft__fail(t->ctx, WEFT_ERR_FORMAT, "%s: no merge makes %zu of the tokens: merges are missing",
                      name, specials);
}

static weft_status make_index(weft_tokenizer *t, const char *name) {
    if (!t->bpe || t->bpe->merges.count == 0)
        return weft__fail(t->ctx, WEFT_ERR_FORMAT, "%s: there are no merges", name);
    t->bpe->merges.key = t->key;
    WEFT_TRY(weft__merges_tabulate(t->ctx, &t->bpe->merges, name, false, false));
    WEFT_TRY(sort_out(t, name));
    weft__bpe_work *w = t->bpe->work = weft__zalloc(t->ctx, sizeof *w);
    if (!w) return weft__fail_oom(t->ctx, sizeof *w, "a tokenizer");
    WEFT_TRY(weft__word_cache_make(t->ctx, &w->cache, t->key));
    return compile_pattern(t->ctx, w);
}

/* ---- the tokens of a word ---- */

static weft_status encode_word(weft_tokenizer *t, const weft__span *span, const char *word, size_t bytes,
                               weft__ids *out) {
    weft__bpe_work *w = t->bpe->work;
    weft__cached *entry;
    if (weft__word_cache_find(&w->cache, word, bytes, out, &entry)) return WEFT_OK;
    WEFT_TRY(weft__merging_reserve(t->ctx, &w->merging, span->name, bytes));
    const weft__symbol *s = w->merging.symbols;
    for (size_t i = 0; i < bytes; i++) w->merging.symbols[i].id = t->bpe->bytes[(unsigned char)word[i]];
    weft__merging_run(&t->bpe->merges, &w->merging, (uint32_t)bytes);
    for (uint32_t i = 0; i < bytes; i = s[i].after) weft__put_id(out, s[i].id);
    weft__word_cache_store(entry, word, bytes, &w->merging, (uint32_t)bytes);
    return WEFT_OK;
}

/* ---- the words of a text ---- */

/* Encodes text that is all UTF-8. The pattern matches at any character. It looks ahead, but never back. */
static weft_status encode_valid(weft_tokenizer *t, const weft__span *span, size_t at, size_t end,
                                weft__ids *out) {
    weft__bpe_work *w = t->bpe->work;
    const PCRE2_SIZE *found = pcre2_get_ovector_pointer(w->match);
    while (at < end) {
        int code = pcre2_match(w->pattern, (PCRE2_SPTR)span->text + at, end - at, 0, PCRE2_NO_UTF_CHECK,
                               w->match, NULL);
        if (code == PCRE2_ERROR_NOMEMORY) return weft__fail_oom(t->ctx, end - at, "matching a pattern");
        if (code < 1 || found[1] == 0 || found[1] > end - at)
            return weft__fail(t->ctx, WEFT_ERR_INTERNAL,
                              "%s: byte %zu: the tokenizer's pattern failed with %d", span->name, at, code);
        WEFT_TRY(encode_word(t, span, span->text + at, found[1], out));
        at += found[1];
    }
    return WEFT_OK;
}

/* Returns the end of a run of bytes from `at` on. With `valid` the run is UTF-8, otherwise it is not. */
static size_t run_of(const weft__span *span, size_t at, size_t end, bool valid) {
    while (at < end) {
        uint32_t point;
        bool ascii = (unsigned char)span->text[at] < 0x80;
        int n = ascii ? 1 : weft__utf8_read(span->text + at, end - at, &point);
        if ((n > 0) != valid) break;
        at += n > 0 ? (size_t)n : n < 0 ? (size_t)-n : end - at;
    }
    return at;
}

static weft_status encode_ordinary(weft_tokenizer *t, const weft__span *span, size_t at, size_t end,
                                   weft__ids *out) {
    while (at < end) {
        size_t valid = run_of(span, at, end, true), invalid = run_of(span, valid, end, false);
        WEFT_TRY(encode_valid(t, span, at, valid, out));
        if (invalid > valid) WEFT_TRY(encode_word(t, span, span->text + valid, invalid - valid, out));
        at = invalid;
    }
    return WEFT_OK;
}

/* Returns the next place of a token in the text, or span->bytes if there is none. */
static size_t find_token(const weft__span *span, size_t at, const char *token, size_t bytes) {
    while (at + bytes <= span->bytes) {
        const char *first = memchr(span->text + at, token[0], span->bytes - bytes + 1 - at);
        if (!first) break;
        at = (size_t)(first - span->text);
        if (memcmp(first, token, bytes) == 0) return at;
        at++;
    }
    return span->bytes;
}

static weft_status encode(const weft_tokenizer *tokenizer, const weft__span *span, weft__ids *out) {
    weft_tokenizer *t =
        (weft_tokenizer *)tokenizer; /* only the work memory changes; text.h explains threads */
    const weft__bpe *b = t->bpe;
    size_t next[SPECIALS_MAX], at = 0; /* next place of each special token, searched only when passed */
    for (size_t i = 0; i < b->special_count; i++) next[i] = 0;
    for (;;) {
        size_t end = span->bytes, special = 0, bytes = 0;
        for (size_t i = 0; i < b->special_count; i++) {
            size_t size;
            const char *token = weft__token(t, (size_t)b->specials[i], &size);
            if (at == 0 || next[i] < at) next[i] = find_token(span, at, token, size);
            if (next[i] < end || (next[i] == end && end < span->bytes && size > bytes)) {
                end = next[i]; /* of two tokens at one place, take the longer */
                special = i;
                bytes = size;
            }
        }
        WEFT_TRY(encode_ordinary(t, span, at, end, out));
        if (end == span->bytes) return WEFT_OK;
        weft__put_id(out, b->specials[special]);
        at = end + bytes;
    }
}

const weft__tokenizer_type weft__tokenizer_bpe = {
    .name = "bpe", .listed = true, .merged = true, .index = make_index, .encode = encode};
