/* Writes the tokenizer of a GGUF file as tokenizer.json and tokenizer_config.json of Hugging Face, which
 * src/text/pipeline reads. Must not know: how texts are encoded. Read next: text/pipeline/read.c. */
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "published/gguf.h"
#include "published/published.h"

#define KEY(name) "tokenizer.ggml." name

enum { UNKNOWN = 2, CONTROL = 3, USER_DEFINED = 4 }; /* values of token_type */

#define LETTERS_3                                                                                            \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| "                               \
    "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define LETTERS_1                                                                                            \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| "                                    \
    "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

/* Files are written with the last row that fits: llama.cpp splits for "default" in another way than for
 * "gpt-2". */
const weft__gguf_split weft__gguf_splits[WEFT__GGUF_SPLITS] = {
    {"default", NULL, false, false, false},   {"gpt-2", NULL, false, false, false},
    {"smollm", NULL, true, false, false},     {"llama-bpe", LETTERS_3, false, true, false},
    {"qwen2", LETTERS_1, false, false, true},
};

typedef struct gguf_vocabulary {
    weft_context *ctx;
    const char *path;
    const weft__gguf *gguf;
    weft__gguf_value tokens, merges, types, scores;
    int split;
    bool pieces;       /* SentencePiece's BPE: scores instead of merges */
    bool begins, ends; /* a special token belongs before and after each text */
    bool starved;      /* memory was short */
} gguf_vocabulary;

static bool is_text(const weft__gguf *g, const char *key, const char *wanted) {
    weft__gguf_value value;
    const char *text;
    size_t bytes;
    return weft__gguf_find(g, key, &value) && weft__gguf_text(&value, &text, &bytes) &&
           bytes == strlen(wanted) && memcmp(text, wanted, bytes) == 0;
}

static bool is_set(const weft__gguf *g, const char *key) {
    weft__gguf_value value;
    double number;
    return weft__gguf_find(g, key, &value) && weft__gguf_number(&value, &number) && number != 0;
}

/* ---- tokenizer.json ---- */

/* Words, before BPE: {"type": "Sequence", "pretokenizers": [...]}. */
static json_t *pre_tokenizer(int split) {
    json_t *list = json_array();
    if (weft__gguf_splits[split].digits)
        json_array_append_new(list, json_pack("{s:s, s:b}", "type", "Digits", "individual_digits", 1));
    if (weft__gguf_splits[split].split)
        json_array_append_new(list,
                              json_pack("{s:s, s:{s:s}, s:s, s:b}", "type", "Split", "pattern", "Regex",
                                        weft__gguf_splits[split].split, "behavior", "Isolated", "invert", 0));
    json_array_append_new(list, json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel", "add_prefix_space", 0,
                                          "trim_offsets", 0, "use_regex", !weft__gguf_splits[split].split));
    return json_pack("{s:s, s:o}", "type", "Sequence", "pretokenizers", list);
}

/* Sets the vocabulary and the added tokens. False: the file is malformed. */
static bool put_tokens(const gguf_vocabulary *v, json_t *vocabulary, json_t *added) {
    weft__gguf_value tokens = v->tokens, types = v->types;
    const char *text;
    size_t bytes;
    for (uint64_t id = 0; id < tokens.count; id++) {
        double type = 0;
        if (!weft__gguf_text(&tokens, &text, &bytes)) return false;
        if (types.count && !weft__gguf_number(&types, &type)) return false;
        json_t *name = json_stringn(text, bytes);
        if (!name) return false; /* no UTF-8 */
        const bool special = type == CONTROL || (type == UNKNOWN && v->pieces);
        if (special || type == USER_DEFINED)
            json_array_append_new(added,
                                  json_pack("{s:I, s:O, s:b, s:b, s:b, s:b, s:b}", "id", (json_int_t)id,
                                            "content", name, "single_word", 0, "lstrip", 0, "rstrip", 0,
                                            "normalized", 0, "special", special));
        json_object_setn_new(vocabulary, text, bytes, json_integer((json_int_t)id));
    }
    return true;
}

static bool put_merges(const gguf_vocabulary *v, json_t *merges) {
    weft__gguf_value values = v->merges;
    const char *text;
    size_t bytes;
    for (uint64_t i = 0; i < values.count; i++) {
        if (!weft__gguf_text(&values, &text, &bytes)) return false;
        json_t *merge = json_stringn(text, bytes);
        if (!merge || json_array_append_new(merges, merge) != 0) return false;
    }
    return true;
}

static json_t *tokenizer_json(gguf_vocabulary *v) {
    json_t *vocabulary = json_object(), *added = json_array(), *merges = json_array();
    if (!put_tokens(v, vocabulary, added)) return NULL;
    if (v->pieces)
        return weft__gguf_pieces_json(v->ctx, v->gguf, &(weft__gguf_pieces){v->tokens, v->types, v->scores},
                                      vocabulary, added, &v->starved);
    if (!put_merges(v, merges)) return NULL;
    json_t *model =
        json_pack("{s:s, s:n, s:n, s:n, s:n, s:b, s:b, s:b, s:o, s:o}", "type", "BPE", "dropout", "unk_token",
                  "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", 0, "byte_fallback", 0,
                  "ignore_merges", weft__gguf_splits[v->split].whole, "vocab", vocabulary, "merges", merges);
    json_t *nfc = weft__gguf_splits[v->split].nfc ? json_pack("{s:s}", "type", "NFC") : json_null();
    return json_pack("{s:s, s:n, s:n, s:o, s:o, s:o, s:n, s:o, s:o}", "version", "1.0", "truncation",
                     "padding", "added_tokens", added, "normalizer", nfc, "pre_tokenizer",
                     pre_tokenizer(v->split), "post_processor", "decoder",
                     json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel", "add_prefix_space", 1,
                               "trim_offsets", 1, "use_regex", 1),
                     "model", model);
}

/* ---- tokenizer_config.json ---- */

const weft__gguf_role weft__gguf_roles[WEFT__GGUF_ROLES] = {{KEY("bos_token_id"), "bos_token"},
                                                            {KEY("eos_token_id"), "eos_token"},
                                                            {KEY("unknown_token_id"), "unk_token"},
                                                            {KEY("padding_token_id"), "pad_token"}};

bool weft__gguf_token(const weft__gguf *g, const weft__gguf_role *role, const char **text, size_t *bytes) {
    weft__gguf_value value, tokens;
    double id;
    if (!weft__gguf_find(g, role->key, &value) || !weft__gguf_number(&value, &id) ||
        !weft__gguf_find(g, KEY("tokens"), &tokens) || !(id >= 0) || !(id < (double)tokens.count))
        return false;
    for (uint64_t i = 0; i <= (uint64_t)id; i++)
        if (!weft__gguf_text(&tokens, text, bytes)) return false;
    return true;
}

/* Which special tokens belong around a text. */
static void find_frame(gguf_vocabulary *v) {
    weft__gguf_value ignored; /* files of SentencePiece may leave the key out */
    v->begins = is_set(v->gguf, KEY("add_bos_token")) ||
                (v->pieces && !weft__gguf_find(v->gguf, KEY("add_bos_token"), &ignored));
    v->ends = is_set(v->gguf, KEY("add_eos_token"));
}

static json_t *tokenizer_config(const gguf_vocabulary *v) {
    json_t *config = json_object();
    weft__gguf_value value;
    const char *text;
    size_t bytes;
    json_object_set_new(config, "tokenizer_class", json_string("PreTrainedTokenizerFast"));
    for (int i = 0; i < WEFT__GGUF_ROLES; i++)
        if (weft__gguf_token(v->gguf, &weft__gguf_roles[i], &text, &bytes))
            json_object_set_new(config, weft__gguf_roles[i].name, json_stringn(text, bytes));
    json_object_set_new(config, "add_bos_token", json_boolean(v->begins));
    json_object_set_new(config, "add_eos_token", json_boolean(v->ends));
    if (weft__gguf_find(v->gguf, "tokenizer.chat_template", &value) && weft__gguf_text(&value, &text, &bytes))
        json_object_set_new(config, "chat_template", json_stringn(text, bytes));
    return config;
}

/* ---- the tokens around a text ---- */

static void put_special(const gguf_vocabulary *v, int role, int type, json_t *frame, json_t *tokens) {
    const weft__gguf_role *r = &weft__gguf_roles[role];
    weft__gguf_value value;
    const char *text;
    size_t bytes;
    double id;
    if (!weft__gguf_token(v->gguf, r, &text, &bytes) || !weft__gguf_find(v->gguf, r->key, &value) ||
        !weft__gguf_number(&value, &id))
        return;
    json_array_append_new(frame,
                          json_pack("{s:{s:s%, s:i}}", "SpecialToken", "id", text, bytes, "type_id", type));
    json_object_setn_new(
        tokens, text, bytes,
        json_pack("{s:s%, s:[I], s:[s%]}", "id", text, bytes, "ids", (json_int_t)id, "tokens", text, bytes));
}

static void put_text(const gguf_vocabulary *v, int type, json_t *frame, json_t *tokens) {
    enum { BOS, EOS };
    if (v->begins) put_special(v, BOS, type, frame, tokens);
    json_array_append_new(frame,
                          json_pack("{s:{s:s, s:i}}", "Sequence", "id", type ? "B" : "A", "type_id", type));
    if (v->ends) put_special(v, EOS, type, frame, tokens);
}

/* Sets the post-processor. Readers such as transformers do not read add_bos_token. */
static void put_frame(const gguf_vocabulary *v, json_t *root) {
    json_t *single = json_array(), *pair = json_array(), *tokens = json_object();
    put_text(v, 0, single, tokens);
    put_text(v, 0, pair, tokens);
    put_text(v, 1, pair, tokens);
    if (json_object_size(tokens) > 0)
        json_object_set_new(root, "post_processor",
                            json_pack("{s:s, s:o, s:o, s:o}", "type", "TemplateProcessing", "single", single,
                                      "pair", pair, "special_tokens", tokens));
}

/* ---- both ---- */

/* Finds the arrays of SentencePiece's BPE. */
static weft_status find_pieces(gguf_vocabulary *v) {
    v->pieces = true;
    if (weft__gguf_find(v->gguf, KEY("tokens"), &v->tokens) &&
        weft__gguf_find(v->gguf, KEY("scores"), &v->scores) &&
        weft__gguf_find(v->gguf, KEY("token_type"), &v->types) && v->tokens.count == v->scores.count &&
        v->tokens.count == v->types.count)
        return WEFT_OK;
    return weft__fail(v->ctx, WEFT_ERR_FORMAT,
                      "%s: tokenizer.ggml.tokens, scores and token_type do not make a tokenizer", v->path);
}

/* Finds the arrays, and how texts are split. */
static weft_status find_vocabulary(gguf_vocabulary *v) {
    weft__gguf_value pre;
    const char *text = "default";
    size_t bytes = 7;
    char known[256];
    weft_text list = weft__text(known, sizeof known);
    if (is_text(v->gguf, KEY("model"), "llama")) return find_pieces(v);
    if (!is_text(v->gguf, KEY("model"), "gpt2"))
        return weft__fail(v->ctx, WEFT_ERR_FORMAT,
                          "%s: tokenizer.ggml.model: of tokenizers in GGUF files Weft reads gpt2, which is "
                          "byte-level BPE, and llama, which is SentencePiece's: name the tokenizer.json of "
                          "the model in data.tokenizer_path",
                          v->path);
    if (weft__gguf_find(v->gguf, KEY("pre"), &pre)) weft__gguf_text(&pre, &text, &bytes);
    for (v->split = 0; v->split < WEFT__GGUF_SPLITS; v->split++) {
        const char *name = weft__gguf_splits[v->split].name;
        if (strlen(name) == bytes && memcmp(name, text, bytes) == 0) break;
        weft__put(&list, "%s%s", v->split ? ", " : "", name);
    }
    if (v->split == WEFT__GGUF_SPLITS)
        return weft__fail(
            v->ctx, WEFT_ERR_FORMAT,
            "%s: tokenizer.ggml.pre: Weft does not know '%.*s'; it knows %s: name the tokenizer.json of "
            "the model in data.tokenizer_path",
            v->path, (int)weft__smaller((int64_t)bytes, 60), text, known);
    weft__gguf_find(v->gguf, KEY("token_type"), &v->types);
    if (!weft__gguf_find(v->gguf, KEY("tokens"), &v->tokens) ||
        !weft__gguf_find(v->gguf, KEY("merges"), &v->merges) ||
        (v->types.count && v->types.count != v->tokens.count))
        return weft__fail(v->ctx, WEFT_ERR_FORMAT,
                          "%s: tokenizer.ggml.tokens, merges and token_type do not make a tokenizer",
                          v->path);
    return WEFT_OK;
}

weft_status weft__gguf_tokenizer(weft_context *ctx, const char *path, const weft__gguf *g,
                                 weft__gguf_files *files) {
    gguf_vocabulary v = {.ctx = ctx, .path = path, .gguf = g};
    weft__json json;
    *files = (weft__gguf_files){0};
    WEFT_TRY(find_vocabulary(&v));
    find_frame(&v);
    weft__json_build(&json, ctx);
    json_t *root = tokenizer_json(&v);
    if (root) put_frame(&v, root);
    if (v.starved) {
        weft__json_close(&json);
        return weft__fail_oom(ctx, 0, "a tokenizer");
    }
    if (!root && !json.starved) {
        weft__json_close(&json);
        return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: a token, a merge or a score is malformed", path);
    }
    WEFT_TRY(weft__json_text(&json, root, JSON_COMPACT, "tokenizer.json", &files->tokenizer,
                             &files->tokenizer_bytes));
    weft__json_build(&json, ctx);
    root = tokenizer_config(&v);
    const weft_status status = weft__json_text(&json, root, JSON_INDENT(2), "tokenizer_config.json",
                                               &files->config, &files->config_bytes);
    if (status != WEFT_OK) weft__gguf_files_free(ctx, files);
    return status;
}

void weft__gguf_files_free(weft_context *ctx, weft__gguf_files *files) {
    weft__free(ctx, files->tokenizer);
    weft__free(ctx, files->config);
    *files = (weft__gguf_files){0};
}
