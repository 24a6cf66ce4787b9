/* Trains a byte-level BPE, and makes it a pipeline by writing its tokenizer.json. Must not know: how merges
 * are found. Read next: ../corpus.c. */
#include <string.h>

#include "base/json.h"
#include "text/bpe.h"
#include "text/train/train.h"

static const struct {
    const char *name, *regex;
} patterns[WEFT_TOKENIZER_PATTERN_COUNT] = {
    [WEFT_TOKENIZER_CL100K] = {"cl100k",
                               "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|"
                               " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},
    [WEFT_TOKENIZER_GPT2] = {"gpt2", "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|"
                                     "\\s+(?!\\S)|\\s+"},
};

bool weft_tokenizer_pattern_parse(const char *name, weft_tokenizer_pattern *pattern) {
    for (int i = 0; name && i < WEFT_TOKENIZER_PATTERN_COUNT; i++)
        if (strcmp(name, patterns[i].name) == 0) {
            if (pattern) *pattern = (weft_tokenizer_pattern)i;
            return true;
        }
    return false;
}

/* ---- tokenizer.json ---- */

/* Writes the bytes of a token as characters. */
static json_t *characters_of(const weft__learned *l, size_t id, size_t specials, weft__buffer *room) {
    size_t begin = id ? l->ends[id - 1] : 0;
    weft__buffer_set(room, NULL, 0);
    for (size_t i = begin; i < l->ends[id]; i++) {
        if (id < specials)
            weft__buffer_put(room, l->text.text + i, 1);
        else
            weft__buffer_put_point(room, weft__bpe_point((unsigned char)l->text.text[i]));
    }
    return room->failed ? NULL : json_stringn(room->text, room->bytes);
}

static json_t *describe_model(const weft__learned *l, size_t specials, weft__buffer *room) {
    json_t *vocabulary = json_object(), *merges = json_array();
    for (size_t id = 0; id < l->count; id++) {
        json_t *key = characters_of(l, id, specials, room);
        if (!key) return NULL;
        weft__buffer_put(room, "", 1); /* the NUL of a key */
        if (!room->failed) json_object_set_new(vocabulary, room->text, json_integer((json_int_t)id));
    }
    for (size_t i = 0; i < l->merge_count; i++) {
        json_t *left = characters_of(l, (size_t)l->merges[i].left, specials, room);
        json_t *right = characters_of(l, (size_t)l->merges[i].right, specials, room);
        if (!left || !right) return NULL;
        json_array_append_new(merges, json_pack("[o, o]", left, right));
    }
    return json_pack("{s:s, s:n, s:n, s:n, s:n, s:b, s:b, s:b, s:o, s:o}", "type", "BPE", "dropout",
                     "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", 0,
                     "byte_fallback", 0, "ignore_merges", 0, "vocab", vocabulary, "merges", merges);
}

static json_t *byte_level(bool use_regex) {
    return json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel", "add_prefix_space", 0, "trim_offsets", 1,
                     "use_regex", (int)use_regex);
}

static json_t *describe_pre_tokenizer(weft_tokenizer_pattern pattern) {
    if (pattern == WEFT_TOKENIZER_GPT2) return byte_level(true);
    json_t *split = json_pack("{s:s, s:{s:s}, s:s, s:b}", "type", "Split", "pattern", "Regex",
                              patterns[pattern].regex, "behavior", "Isolated", "invert", 0);
    return json_pack("{s:s, s:[o, o]}", "type", "Sequence", "pretokenizers", split, byte_level(false));
}

static json_t *describe_special(const char *token, int id, bool ends_texts) {
    json_t *json = json_pack("{s:i, s:s, s:b, s:b, s:b, s:b, s:b}", "id", id, "content", token, "single_word",
                             0, "lstrip", 0, "rstrip", 0, "normalized", 0, "special", 1);
    if (ends_texts) json_object_set_new(json, "weft_roles", json_pack("[s, s]", "bos", "eos"));
    return json;
}

static weft_status make_tokenizer(const weft__learned *l, const weft_tokenizer_train_options *o,
                                  const char *const *specials, size_t special_count, weft_tokenizer **out) {
    weft__json json;
    weft__buffer room = {.ctx = l->ctx};
    char *text;
    size_t bytes;
    weft__json_build(&json, l->ctx);
    json_t *added = json_array();
    for (size_t i = 0; i < special_count; i++)
        json_array_append_new(added, describe_special(specials[i], (int)i, i == 0));
    json_t *root = json_pack("{s:s, s:n, s:n, s:o, s:n, s:o, s:n, s:o, s:o}", "version", "1.0", "truncation",
                             "padding", "added_tokens", added, "normalizer", "pre_tokenizer",
                             describe_pre_tokenizer(o->pattern), "post_processor", "decoder",
                             byte_level(true), "model", describe_model(l, special_count, &room));
    weft_status status = weft__json_text(&json, root, JSON_COMPACT, "a trained tokenizer", &text, &bytes);
    if (status != WEFT_OK && room.failed) status = weft__buffer_check(&room);
    weft__buffer_free(&room);
    WEFT_TRY(status);
    status = weft_tokenizer_parse(l->ctx, text, bytes, out);
    weft__free(l->ctx, text);
    return status;
}

/* ---- training ---- */

/* The first tokens: the special ones, then the bytes in the order of their characters. */
static weft_status begin_vocabulary(weft__learned *l, const char *const *specials, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const weft__span span = {"special token", specials[i], strlen(specials[i])};
        if (!span.bytes)
            return weft__fail(l->ctx, WEFT_ERR_ARGUMENT, "weft_tokenizer_train: special token %zu is empty",
                              i);
        WEFT_TRY(weft__check_utf8(l->ctx, &span));
        WEFT_TRY(weft__learned_add(l, span.text, span.bytes));
    }
    for (uint32_t point = 0; point < 0x200; point++) {
        int byte = weft__bpe_byte(point);
        if (byte >= 0) WEFT_TRY(weft__learned_add(l, &(char){(char)(unsigned char)byte}, 1));
    }
    return WEFT_OK;
}

static weft_status read_words(weft__words *words, weft_tokenizer_pattern pattern, const char *const *paths,
                              size_t count) {
    weft__regex *regex = NULL;
    weft_status status = weft__regex_new(words->ctx, "weft_tokenizer_train", patterns[pattern].regex,
                                         strlen(patterns[pattern].regex), false, &regex);
    for (size_t i = 0; status == WEFT_OK && i < count; i++)
        status = paths[i] ? weft__words_read(words, regex, paths[i])
                          : weft__fail_null(words->ctx, "weft_tokenizer_train", "paths[i]");
    weft__regex_free(regex);
    if (status == WEFT_OK && !words->count)
        return weft__fail(words->ctx, WEFT_ERR_FORMAT, "%s: there is no text", paths[0]);
    return status;
}

weft_status weft_tokenizer_train(weft_context *ctx, const char *const *paths, size_t count,
                                 const weft_tokenizer_train_options *options, weft_tokenizer **out) {
    static const weft_tokenizer_train_options defaults = {0};
    static const char *const end_of_text[] = {"<|endoftext|>"};
    WEFT_NEED(ctx, out);
    *out = NULL;
    WEFT_NEED(ctx, paths);
    const weft_tokenizer_train_options *o = options ? options : &defaults;
    const char *const *specials = o->special ? o->special : end_of_text;
    const size_t special_count = o->special ? o->special_count : 1;
    const size_t vocabulary = o->vocabulary ? o->vocabulary : 32000;
    if ((unsigned)o->pattern >= WEFT_TOKENIZER_PATTERN_COUNT || !count || count > PTRDIFF_MAX / sizeof *paths)
        return weft__fail(ctx, WEFT_ERR_ARGUMENT, "weft_tokenizer_train: %s",
                          count ? "the pattern or the number of files is not known" : "there are no files");
    if (special_count > 65536 || vocabulary > INT32_MAX / 2 || vocabulary < special_count + 256)
        return weft__fail(
            ctx, WEFT_ERR_ARGUMENT,
            "weft_tokenizer_train: a vocabulary of %zu: it needs %zu special tokens, 256 bytes and "
            "room for merges",
            vocabulary, special_count);
    weft__words words = {.ctx = ctx, .text.ctx = ctx};
    weft__learned learned = {.ctx = ctx, .text.ctx = ctx};
    weft_status status = begin_vocabulary(&learned, specials, special_count);
    if (status == WEFT_OK) status = read_words(&words, o->pattern, paths, count);
    if (status == WEFT_OK && words.dropped)
        weft__log(
            ctx, WEFT_LOG_WARNING,
            "weft_tokenizer_train: there are more than 64 MiB of distinct words, so those that were seen "
            "at most %llu times were dropped",
            (unsigned long long)words.dropped);
    if (status == WEFT_OK) status = weft__learn_merges(&learned, &words, vocabulary, o->min_count);
    weft__words_free(&words);
    if (status == WEFT_OK) status = make_tokenizer(&learned, o, specials, special_count, out);
    weft__learned_free(&learned);
    return status;
}
