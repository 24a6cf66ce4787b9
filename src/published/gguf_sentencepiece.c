/* Writes a BPE of SentencePiece, as Llama 2, Mistral and Phi 3 have it, as metadata of a GGUF file. The file
 * has no merges, but a score for each token. llama.cpp joins the two neighbours whose joint token has the
 * largest score, whatever they are. So the scores follow from the order of the merges, if merges that make
 * the same token follow each other, and if each two tokens that make a token have a merge. Must not know: how
 * texts are encoded. Read next: gguf_save.c. */
#include <string.h>

#include "published/gguf_vocabulary.h"

#define SPACE   "\xe2\x96\x81" /* U+2581 */
#define LONGEST 512            /* bytes of a piece that merges make; SentencePiece's are shorter */

/* ---- how spaces are written ---- */

static bool is_text_of(const json_t *json, const char *key, const char *wanted) {
    const char *text = json_string_value(json_object_get(json, key));
    return text && strcmp(text, wanted) == 0;
}

/* {"type": "Replace", "pattern": {"String": " "}, "content": SPACE} */
static bool replaces_spaces(const json_t *part) {
    return weft__is_part(part, "Replace") && is_text_of(json_object_get(part, "pattern"), "String", " ") &&
           is_text_of(part, "content", SPACE);
}

/* Finds out whether a space is put before a text. False: the normalizer does something else. */
static bool take_normalizer(const json_t *normalizer, bool *prepends) {
    const json_t *list = json_object_get(normalizer, "normalizers"), *first = json_array_get(list, 0);
    *prepends = weft__is_part(first, "Prepend") && is_text_of(first, "prepend", SPACE);
    if (replaces_spaces(normalizer)) return true;
    const size_t count = json_array_size(list), last = *prepends ? 1 : 0;
    return weft__is_part(normalizer, "Sequence") && count == last + 1 &&
           replaces_spaces(json_array_get(list, last));
}

/* Whether texts are split only at spaces, of which the normalizer leaves none, as Gemma's tokenizer does. */
static bool splits_nothing(const json_t *pre) {
    return !pre || json_is_null(pre) ||
           (weft__is_part(pre, "Split") && is_text_of(json_object_get(pre, "pattern"), "String", " "));
}

/* Sets how spaces are written. */
static weft_status put_spaces(const weft__vocabulary *v) {
    const json_t *normalizer = json_object_get(v->root, "normalizer"),
                 *pre = json_object_get(v->root, "pre_tokenizer");
    const bool plain = splits_nothing(pre), unchanged = !normalizer || json_is_null(normalizer);
    bool prepends = false, known = plain && take_normalizer(normalizer, &prepends);
    if (unchanged && weft__is_part(pre, "Metaspace")) {
        const json_t *add = json_object_get(pre, "add_prefix_space");
        prepends = !is_text_of(pre, "prepend_scheme", "never") && !json_is_false(add);
        known = is_text_of(pre, "replacement", SPACE) && json_is_false(json_object_get(pre, "split"));
    }
    if (!known) return weft__vocabulary_fail(v, "changes or splits texts in another way than SentencePiece");
    weft__gguf_put_bool(v->h, WEFT__TOKENIZER_KEY("add_space_prefix"), prepends);
    return WEFT_OK;
}

/* ---- scores ---- */

/* Whether two pieces of a token are tokens. */
static bool splits_at(const weft__vocabulary *v, const char *token, size_t bytes, size_t at) {
    return weft__model_id(v->t, token, at) >= 0 && weft__model_id(v->t, token + at, bytes - at) >= 0;
}

/* Counts the pairs of tokens that make a token: the merges that there must be. */
static size_t count_pairs(const weft__vocabulary *v, size_t id) {
    const weft__pipeline *p = v->t->pipeline;
    size_t bytes, pairs = 0, next;
    uint32_t point;
    const char *token = weft__token(v->t, id, &bytes);
    if (p->added.of[id] || bytes > LONGEST) return 0;
    for (size_t at = 0; at < bytes; at = next) {
        next = at + weft__read_point(token, bytes, at, &point);
        if (next < bytes && splits_at(v, token, bytes, next)) pairs++;
    }
    return pairs;
}

/* Gives each token that a merge makes its score. Returns why that is not possible, or NULL. */
static const char *find_scores(const weft__vocabulary *v, float *scores, bool *made) {
    const weft__merges *merges = &v->t->pipeline->merges;
    size_t pairs = 0, merged = 0;
    int32_t last = -1;
    float score = 0;
    for (size_t i = 0; i < merges->count; i++) {
        const int32_t token = merges->list[i].made;
        if (token != last && made[token]) return "has merges that are not sorted by the token that they make";
        if (token != last) scores[token] = score -= 1;
        made[token] = true;
        last = token;
        merged += !v->t->pipeline->added.of[token];
    }
    for (size_t id = 0; id < v->t->count; id++) pairs += count_pairs(v, id);
    return pairs > merged ? "has no merge for some pairs of tokens, which llama.cpp would join" : NULL;
}

static weft_status put_scores(const weft__vocabulary *v) {
    const size_t rows = (size_t)v->rows;
    float *scores = weft__array(v->ctx, rows, sizeof *scores);
    bool *made = weft__array(v->ctx, rows, sizeof *made);
    weft_status status = scores && made ? WEFT_OK : weft__fail_oom(v->ctx, rows, "scores of tokens");
    const char *why = status == WEFT_OK ? find_scores(v, scores, made) : NULL;
    if (why) status = weft__vocabulary_fail(v, why);
    if (status == WEFT_OK) {
        weft__gguf_put_array(v->h, WEFT__TOKENIZER_KEY("scores"), WEFT__GGUF_F32, rows);
        for (size_t i = 0; i < rows; i++) weft__gguf_put_item_f32(v->h, scores[i]);
    }
    weft__free(v->ctx, scores);
    weft__free(v->ctx, made);
    return status;
}

weft_status weft__put_sentencepiece(const weft__vocabulary *v) {
    const weft__pipeline *p = v->t->pipeline;
    if (p->model != &weft__model_bpe || p->ignore_merges || p->prefix.bytes || p->suffix.bytes)
        return weft__vocabulary_fail(v, "is of another kind");
    for (int i = 0; i < 256; i++)
        if (p->byte.ids[i] < 0) return weft__vocabulary_fail(v, "lacks a token for some byte");
    weft__gguf_put_text(v->h, WEFT__TOKENIZER_KEY("model"), "llama", 5);
    weft__gguf_put_text(v->h, WEFT__TOKENIZER_KEY("pre"), "default", 7);
    WEFT_TRY(put_spaces(v));
    WEFT_TRY(weft__put_tokens(v)); /* first, since it checks the number of rows */
    WEFT_TRY(put_scores(v));
    WEFT_TRY(weft__put_roles(v));
    return weft__put_frame(v);
}
