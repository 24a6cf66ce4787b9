/* The model BPE: the characters of a word become ids, and merges join them. If the bytes of a word were
 * written as characters (ByteLevel), the model takes the bytes themselves. Must not know: files, how texts
 * are cut. Read next: model_wordpiece.c. */
#include <string.h>

#include "text/bpe.h"
#include "text/pipeline/pipeline.h"

/* ---- reading ---- */

/* Two tokens as "a b" or ["a", "b"]. */
static bool read_pair(const json_t *json, weft__buffer words[2]) {
    if (json_is_array(json)) {
        const json_t *left = json_array_get(json, 0), *right = json_array_get(json, 1);
        if (json_array_size(json) != 2 || !json_is_string(left) || !json_is_string(right)) return false;
        weft__buffer_set(&words[0], json_string_value(left), json_string_length(left));
        weft__buffer_set(&words[1], json_string_value(right), json_string_length(right));
        return true;
    }
    const char *text = json_string_value(json), *space = text ? strchr(text, ' ') : NULL;
    if (!space || strchr(space + 1, ' ')) return false;
    weft__buffer_set(&words[0], text, (size_t)(space - text));
    weft__buffer_set(&words[1], space + 1, json_string_length(json) - (size_t)(space - text) - 1);
    return true;
}

static weft_status refuse_merge(const weft__reader *r, size_t number, const weft__buffer *token) {
    return weft__reader_fail(r, WEFT_ERR_FORMAT, "merge %zu: '%.*s' is not in the vocabulary", number,
                             (int)(token->bytes < 40 ? token->bytes : 40), token->text);
}

static weft_status read_merge(weft__reader *r, const json_t *json, size_t number) {
    weft__pipeline *p = r->t->pipeline;
    weft__merge merge = {-1, -1, -1, 0};
    if (!read_pair(json, p->work.words))
        return weft__reader_fail(r, WEFT_ERR_FORMAT, "merge %zu must have two tokens", number);
    const weft__buffer *left = &p->work.words[0], *right = &p->work.words[1];
    WEFT_TRY(weft__buffer_check(left));
    WEFT_TRY(weft__buffer_check(right));
    merge.left = weft__model_id(r->t, left->text, left->bytes);
    merge.right = weft__model_id(r->t, right->text, right->bytes);
    if (merge.left < 0 || merge.right < 0) return refuse_merge(r, number, merge.left < 0 ? left : right);
    size_t prefix = p->prefix.bytes <= right->bytes ? p->prefix.bytes : right->bytes;
    weft__buffer_put(&p->work.words[0], right->text + prefix, right->bytes - prefix);
    WEFT_TRY(weft__buffer_check(left));
    merge.made = weft__model_id(r->t, left->text, left->bytes);
    if (merge.made < 0) return refuse_merge(r, number, left);
    if (!weft__grow(r->t->ctx, &p->merges.list, &p->merges.capacity, p->merges.count, sizeof *p->merges.list))
        return weft__fail_oom(r->t->ctx, p->merges.count * sizeof *p->merges.list, "merges");
    p->merges.list[p->merges.count++] = merge;
    return WEFT_OK;
}

/* Finds the ids of bytes: of the characters that ByteLevel writes, or of <0x00> to <0xFF>. */
static void find_bytes(weft_tokenizer *t) {
    weft__pipeline *p = t->pipeline;
    for (unsigned i = 0; i < 256; i++) {
        weft__buffer *word = &p->work.words[0];
        weft__buffer_set(word, NULL, 0);
        if (p->byte.folded) {
            weft__buffer_put_point(word, weft__bpe_point((unsigned char)i));
        } else {
            const char digits[] = "0123456789ABCDEF";
            const char name[6] = {'<', '0', 'x', digits[i / 16], digits[i % 16], '>'};
            weft__buffer_put(word, name, sizeof name);
        }
        p->byte.ids[i] = word->failed ? -1 : weft__model_id(t, word->text, word->bytes);
    }
}

static weft_status read_options(weft__reader *r, const json_t *json) {
    weft__pipeline *p = r->t->pipeline;
    const json_t *dropout = json_object_get(json, "dropout");
    if (json_is_number(dropout) && json_number_value(dropout) > 0)
        return weft__reader_fail(r, WEFT_ERR_UNSUPPORTED, "dropout makes ids random: set it to null");
    WEFT_TRY(weft__read_text(r, json, "continuing_subword_prefix", &p->prefix));
    WEFT_TRY(weft__read_text(r, json, "end_of_word_suffix", &p->suffix));
    if (p->prefix.bytes > WEFT__AFFIX_MAX || p->suffix.bytes > WEFT__AFFIX_MAX)
        return weft__reader_fail(r, WEFT_ERR_UNSUPPORTED,
                                 "continuing_subword_prefix and end_of_word_suffix have at most %d bytes",
                                 WEFT__AFFIX_MAX);
    WEFT_TRY(weft__read_bool(r, json, "byte_fallback", &p->byte.fallback));
    WEFT_TRY(weft__read_bool(r, json, "fuse_unk", &p->fuse_unknown));
    return weft__read_bool(r, json, "ignore_merges", &p->ignore_merges);
}

static weft_status bpe_read(weft__reader *r, const json_t *json) {
    weft__pipeline *p = r->t->pipeline;
    const json_t *merges = json_object_get(json, "merges");
    WEFT_TRY(read_options(r, json));
    if (!json_is_array(merges)) return weft__reader_fail(r, WEFT_ERR_FORMAT, "merges must be a list");
    for (size_t i = 0; i < json_array_size(merges); i++)
        WEFT_TRY(read_merge(r, json_array_get(merges, i), i + 1));
    p->merges.key = r->t->key;
    WEFT_TRY(weft__merges_tabulate(r->t->ctx, &p->merges, r->name, true, p->sentencepiece));
    WEFT_TRY(weft__word_cache_make(r->t->ctx, &p->cache, r->t->key));
    size_t parts = p->pre_tokenizers.count;
    if (parts && p->pre_tokenizers.list[parts - 1].type == &weft__byte_characters) {
        p->byte.folded = !p->byte.fallback && !p->prefix.bytes && !p->suffix.bytes;
        if (p->byte.folded)
            p->pre_tokenizers.count--; /* the model takes bytes, so nothing writes characters */
    }
    find_bytes(r->t);
    return weft__buffer_check(&p->work.words[0]);
}

/* ---- encoding ---- */

/* The symbols of a word before merging. */
typedef struct symbols {
    weft__pipeline *p;
    uint32_t count;
    bool unknown; /* an unknown token waits */
} symbols;

static void put_symbol(symbols *s, int32_t id) { s->p->merging.symbols[s->count++].id = id; }

static void put_waiting(symbols *s) {
    if (s->unknown) put_symbol(s, s->p->unknown);
    s->unknown = false;
}

static void put_unknown(symbols *s) {
    if (s->p->unknown < 0) return; /* without an unknown token, the character is lost */
    if (!s->p->fuse_unknown) put_waiting(s);
    s->unknown = true;
}

/* Finds the symbol of one character, with prefix and suffix. */
static weft_status put_character(const weft_tokenizer *t, symbols *s, const char *text, size_t bytes,
                                 bool first, bool last) {
    weft__pipeline *p = s->p;
    bool changed = (!first && p->prefix.bytes) || (last && p->suffix.bytes);
    if (changed) {
        weft__buffer *word = &p->work.words[0];
        weft__buffer_set(word, p->prefix.text, first ? 0 : p->prefix.bytes);
        weft__buffer_put(word, text, bytes);
        if (last) weft__buffer_put(word, p->suffix.text, p->suffix.bytes);
        WEFT_TRY(weft__buffer_check(word));
        text = word->text;
        bytes = word->bytes;
    }
    int32_t id = weft__model_id(t, text, bytes);
    if (id >= 0) {
        put_waiting(s);
        put_symbol(s, id);
        return WEFT_OK;
    }
    bool falls_back = p->byte.fallback;
    for (size_t i = 0; i < bytes && falls_back; i++) falls_back = p->byte.ids[(unsigned char)text[i]] >= 0;
    if (!falls_back)
        put_unknown(s);
    else
        for (size_t i = 0; i < bytes; i++) put_symbol(s, p->byte.ids[(unsigned char)text[i]]);
    return WEFT_OK;
}

static weft_status fill_symbols(weft_tokenizer *t, symbols *s, const char *word, size_t bytes) {
    weft__pipeline *p = s->p;
    size_t next;
    uint32_t point;
    for (size_t at = 0; at < bytes && p->byte.folded; at++) {
        int32_t id = p->byte.ids[(unsigned char)word[at]];
        if (id < 0) {
            put_unknown(s);
            continue;
        }
        put_waiting(s);
        put_symbol(s, id);
    }
    for (size_t at = 0; at < bytes && !p->byte.folded; at = next) {
        next = at + weft__read_point(word, bytes, at, &point);
        WEFT_TRY(put_character(t, s, word + at, next - at, at == 0, next == bytes));
    }
    put_waiting(s);
    return WEFT_OK;
}

/* With ignore_merges, a word that is a token is not merged. Returns its id, or -1. */
static int32_t whole_word(const weft_tokenizer *t, const char *word, size_t bytes) {
    weft__pipeline *p = t->pipeline;
    if (!p->byte.folded) return weft__model_id(t, word, bytes);
    weft__buffer_set(&p->work.words[0], NULL, 0);
    for (size_t i = 0; i < bytes; i++)
        weft__buffer_put_point(&p->work.words[0], weft__bpe_point((unsigned char)word[i]));
    return p->work.words[0].failed ? -1 : weft__model_id(t, p->work.words[0].text, p->work.words[0].bytes);
}

static weft_status bpe_encode(weft__encoding *e, const char *word, size_t bytes) {
    weft__pipeline *p = e->t->pipeline;
    weft__cached *entry;
    if (weft__word_cache_find(&p->cache, word, bytes, e->out, &entry)) return WEFT_OK;
    size_t most = p->byte.fallback ? bytes * (1 + p->prefix.bytes) + p->suffix.bytes : bytes;
    WEFT_TRY(weft__merging_reserve(e->t->ctx, &p->merging, e->name, most));
    weft__symbol *s = p->merging.symbols;
    symbols filled = {.p = p};
    int32_t id = p->ignore_merges ? whole_word(e->t, word, bytes) : -1;
    if (id >= 0) {
        s[0] = (weft__symbol){id, 0, 1, WEFT__NO_RANK};
        filled.count = 1;
    } else {
        WEFT_TRY(fill_symbols(e->t, &filled, word, bytes));
        weft__merging_run(&p->merges, &p->merging, filled.count);
    }
    for (uint32_t i = 0; i < filled.count; i = s[i].after) weft__put_id(e->out, s[i].id);
    weft__word_cache_store(entry, word, bytes, &p->merging, filled.count);
    return WEFT_OK;
}

const weft__model_type weft__model_bpe = {.name = "BPE", .read = bpe_read, .encode = bpe_encode};
