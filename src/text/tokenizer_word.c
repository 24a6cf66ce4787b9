/* The word tokenizer. A word is the text between white space (space, tab, return, vertical tab, form feed). A
 * newline is the token <eos>. A word outside the vocabulary is <unk>. A word spelled "<unk>" or "<eos>" in
 * the text is that token. Must not know: files. Read next: tokenizer_file.c. */
#include <stdlib.h>
#include <string.h>

#include "text/tokenizer.h"

#define UNK 0
#define EOS 1

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }

/* Finds the next word or newline from *at on, and advances *at. Returns false at the end. */
static bool next_word(const weft__span *span, size_t *at, const char **word, size_t *bytes) {
    size_t i = *at;
    while (i < span->bytes && is_space(span->text[i])) i++;
    if (i == span->bytes) return false;
    size_t begin = i;
    if (span->text[i] == '\n') {
        i++;
    } else {
        while (i < span->bytes && !is_space(span->text[i]) && span->text[i] != '\n') i++;
    }
    *word = span->text + begin;
    *bytes = i - begin;
    *at = i;
    return true;
}

static void tokenizer_word_start(weft_tokenizer *t) {
    t->newline = EOS;
    t->spaced = true;
}

/* ---- building ---- */

typedef struct counted {
    const char *word;
    size_t bytes;
    uint64_t count;
} counted;

static int by_count(const void *x, const void *y) {
    const counted *a = x, *b = y;
    if (a->count != b->count) return a->count > b->count ? -1 : 1;
    int order = memcmp(a->word, b->word, a->bytes < b->bytes ? a->bytes : b->bytes);
    if (order) return order;
    return a->bytes < b->bytes ? -1 : a->bytes > b->bytes;
}

static weft_status count_words(weft_tokenizer *words, const weft__span *span, counted **counts,
                               size_t *capacity) {
    const char *word;
    size_t bytes;
    for (size_t at = 0; next_word(span, &at, &word, &bytes);) {
        if (*word == '\n') continue;
        WEFT_TRY(weft__tokenizer_reserve(words));
        size_t slot = weft__tokenizer_slot(words, word, bytes);
        if (words->slots[slot] < 0) {
            size_t id = words->count;
            if (!weft__grow(words->ctx, counts, capacity, id, sizeof **counts))
                return weft__fail_oom(words->ctx, id * sizeof **counts, "counting words");
            WEFT_TRY(weft__tokenizer_add(words, word, bytes));
            words->slots[slot] = (int32_t)id;
            (*counts)[id] = (counted){word, bytes, 0};
        }
        (*counts)[words->slots[slot]].count++;
    }
    return WEFT_OK;
}

static bool is_special(const counted *c) {
    return c->bytes == 5 && (memcmp(c->word, "<unk>", 5) == 0 || memcmp(c->word, "<eos>", 5) == 0);
}

/* Builds the vocabulary. A temporary tokenizer counts the words in the order of their first appearance. Then
 * the words are sorted by count into t. */
static weft_status tokenizer_word_build(weft_tokenizer *t, const weft__span *spans, size_t count,
                                        size_t max_vocabulary) {
    counted *counts = NULL;
    size_t capacity = 0;
    if (max_vocabulary == 1)
        return weft__fail(t->ctx, WEFT_ERR_ARGUMENT,
                          "tokenizer: a vocabulary of 1 has no room for <unk> and <eos>");
    weft_tokenizer *words = weft__tokenizer_new(t->ctx, WEFT_TOKENIZER_WORD);
    if (!words) return weft__fail_oom(t->ctx, sizeof *words, "counting words");
    tokenizer_word_start(words);
    weft_status status = WEFT_OK;
    for (size_t i = 0; status == WEFT_OK && i < count; i++) {
        status = weft__check_utf8(t->ctx, &spans[i]);
        if (status == WEFT_OK) status = count_words(words, &spans[i], &counts, &capacity);
    }
    if (status == WEFT_OK) status = weft__tokenizer_add(t, "<unk>", 5);
    if (status == WEFT_OK) status = weft__tokenizer_add(t, "<eos>", 5);
    if (status == WEFT_OK && words->count) qsort(counts, words->count, sizeof *counts, by_count);
    for (size_t i = 0; status == WEFT_OK && i < words->count; i++) {
        if (max_vocabulary && t->count >= max_vocabulary) break;
        if (!is_special(&counts[i])) status = weft__tokenizer_add(t, counts[i].word, counts[i].bytes);
    }
    weft__free(t->ctx, counts);
    weft_tokenizer_free(words);
    return status;
}

/* ---- use ---- */

static weft_status check_word(const weft_tokenizer *t, const char *name, size_t id) {
    size_t bytes;
    const char *word = weft__token(t, id, &bytes);
    bool good = bytes > 0;
    for (size_t i = 0; i < bytes; i++) good = good && !is_space(word[i]) && word[i] != '\n';
    if (good) return WEFT_OK;
    return weft__fail(t->ctx, WEFT_ERR_FORMAT, "%s: vocabulary: id %zu is empty or holds white space", name,
                      id);
}

static bool token_is(const weft_tokenizer *t, size_t id, const char *text) {
    size_t bytes;
    const char *token = weft__token(t, id, &bytes);
    return bytes == strlen(text) && memcmp(token, text, bytes) == 0;
}

static weft_status make_index(weft_tokenizer *t, const char *name) {
    if (t->count < 2 || !token_is(t, UNK, "<unk>") || !token_is(t, EOS, "<eos>"))
        return weft__fail(t->ctx, WEFT_ERR_FORMAT, "%s: vocabulary: must begin with <unk>, <eos>", name);
    tokenizer_word_start(t);
    for (size_t id = 0; id < t->count; id++) WEFT_TRY(check_word(t, name, id));
    return weft__tokenizer_tabulate(t, name);
}

static weft_status encode(const weft_tokenizer *t, const weft__span *span, weft__ids *out) {
    const char *word;
    size_t bytes;
    WEFT_TRY(weft__check_utf8(t->ctx, span));
    for (size_t at = 0; next_word(span, &at, &word, &bytes);) {
        int32_t id = *word == '\n' ? EOS : t->slots[weft__tokenizer_slot(t, word, bytes)];
        weft__put_id(out, id < 0 ? UNK : id);
    }
    return WEFT_OK;
}

const weft__tokenizer_type weft__tokenizer_word = {
    .name = "word", .listed = true, .build = tokenizer_word_build, .index = make_index, .encode = encode};
