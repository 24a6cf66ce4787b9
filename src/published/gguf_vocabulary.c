/* Writes a tokenizer and a chat template as metadata of a GGUF file: the inverse of gguf_tokenizer.c. The
 * tokenizer of a GGUF file is copied as it is. Must not know: how texts are encoded. Read next:
 * gguf_sentencepiece.c. */
#include <stdio.h>
#include <string.h>

#include <weft/data.h>

#include "base/json.h"
#include "base/text.h"
#include "published/gguf_vocabulary.h"
#include "published/published.h"
#include "text/template/chat.h"

#define CONFIG_MAX ((size_t)1 << 20)

enum { NORMAL = 1, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE }; /* values of token_type */

weft_status weft__vocabulary_fail(const weft__vocabulary *v, const char *what) {
    return weft__fail(v->ctx, WEFT_ERR_FORMAT,
                      "%s: the tokenizer: Weft writes byte-level BPE and SentencePiece's BPE to GGUF files, "
                      "and this tokenizer %s",
                      v->path, what);
}

/* ---- how texts are split ---- */

/* The pre-tokenizers of a file, as far as a row of weft__gguf_splits can say it. */
typedef struct splitting {
    const char *split;
    bool digits, words, bytes, other;
} splitting;

bool weft__is_part(const json_t *part, const char *type) {
    const char *name = json_string_value(json_object_get(part, "type"));
    return name && strcmp(name, type) == 0;
}

static void take_part(const json_t *part, splitting *s) {
    const char *split = json_string_value(json_object_get(json_object_get(part, "pattern"), "Regex"));
    const char *behaviour = json_string_value(json_object_get(part, "behavior"));
    const json_t *use_regex = json_object_get(part, "use_regex");
    const bool first = !s->bytes && !s->split;
    if (weft__is_part(part, "Digits") && first && !s->digits &&
        json_is_true(json_object_get(part, "individual_digits"))) {
        s->digits = true;
    } else if (weft__is_part(part, "Split") && first && split && behaviour &&
               strcmp(behaviour, "Isolated") == 0 && !json_is_true(json_object_get(part, "invert"))) {
        s->split = split;
    } else if (weft__is_part(part, "ByteLevel") && !s->bytes &&
               !json_is_true(json_object_get(part, "add_prefix_space"))) {
        s->bytes = true;
        s->words = !json_is_false(use_regex);
    } else {
        s->other = true;
    }
}

static splitting splitting_of(const json_t *root) {
    const json_t *pre = json_object_get(root, "pre_tokenizer"), *list = json_object_get(pre, "pretokenizers");
    splitting s = {0};
    if (!weft__is_part(pre, "Sequence")) take_part(pre, &s);
    for (size_t i = 0; weft__is_part(pre, "Sequence") && i < json_array_size(list); i++)
        take_part(json_array_get(list, i), &s);
    return s;
}

/* Whether the texts are changed before they are split: *nfc is the only change that GGUF files know. */
static bool take_normalizer(const json_t *root, bool *nfc) {
    const json_t *normalizer = json_object_get(root, "normalizer");
    *nfc = weft__is_part(normalizer, "NFC");
    return *nfc || !normalizer || json_is_null(normalizer);
}

/* Finds the name of the way in which texts are split. */
static weft_status find_split(const weft__vocabulary *v, const char **name) {
    const json_t *model = json_object_get(v->root, "model");
    const bool whole = json_is_true(json_object_get(model, "ignore_merges"));
    const splitting s = splitting_of(v->root);
    bool nfc;
    if (!json_is_array(json_object_get(model, "merges")) || !s.bytes)
        return weft__vocabulary_fail(v, "is of another kind");
    if (!take_normalizer(v->root, &nfc)) return weft__vocabulary_fail(v, "changes texts by a normalizer");
    *name = NULL;
    for (int i = 0; i < WEFT__GGUF_SPLITS && !s.other; i++) {
        const weft__gguf_split *g = &weft__gguf_splits[i];
        const bool split =
            g->split ? s.split && strcmp(g->split, s.split) == 0 && !s.words : !s.split && s.words;
        if (split && g->digits == s.digits && g->whole == whole && g->nfc == nfc) *name = g->name;
    }
    return *name ? WEFT_OK
                 : weft__vocabulary_fail(v, "splits texts in a way for which Weft knows no name of "
                                            "tokenizer.ggml.pre");
}

/* ---- tokens and merges ---- */

static int32_t type_of(const weft__vocabulary *v, int64_t id) {
    const weft__pipeline *p = v->t->pipeline;
    const uint32_t added = p->added.of[id];
    if (p->byte.fallback && id == p->unknown) return UNKNOWN;
    if (added) return p->added.list[added - 1].special ? CONTROL : USER_DEFINED;
    for (int i = 0; p->byte.fallback && i < 256; i++)
        if (p->byte.ids[i] == id) return BYTE;
    return v->t->ends[id] > (id ? v->t->ends[id - 1] : 0) ? NORMAL : UNUSED;
}

/* Appends the tokens and their types. Rows without a token get a name, as llama.cpp needs one for each. */
weft_status weft__put_tokens(const weft__vocabulary *v) {
    const int64_t count = (int64_t)v->t->count;
    char name[32];
    if (count > v->rows)
        return weft__fail(v->ctx, WEFT_ERR_FORMAT,
                          "%s: the tokenizer has %lld tokens, but the model only %lld", v->path,
                          (long long)count, (long long)v->rows);
    weft__gguf_put_array(v->h, WEFT__TOKENIZER_KEY("tokens"), WEFT__GGUF_TEXT, (uint64_t)v->rows);
    for (int64_t id = 0; id < v->rows; id++) {
        size_t bytes = 0;
        const char *token = id < count ? weft__token(v->t, (size_t)id, &bytes) : NULL;
        if (bytes == 0) {
            snprintf(name, sizeof name, "[PAD%lld]", (long long)id);
            token = name;
            bytes = strlen(name);
        }
        weft__gguf_put_item(v->h, token, bytes);
    }
    weft__gguf_put_array(v->h, WEFT__TOKENIZER_KEY("token_type"), WEFT__GGUF_I32, (uint64_t)v->rows);
    for (int64_t id = 0; id < v->rows; id++)
        weft__gguf_put_item_i32(v->h, id < count ? type_of(v, id) : UNUSED);
    return WEFT_OK;
}

/* Appends the merges, which tokenizer.json writes as "a b" or ["a", "b"]. */
static weft_status put_merges(const weft__vocabulary *v) {
    const json_t *merges = json_object_get(json_object_get(v->root, "model"), "merges");
    weft__buffer pair = {.ctx = v->ctx};
    weft__gguf_put_array(v->h, WEFT__TOKENIZER_KEY("merges"), WEFT__GGUF_TEXT, json_array_size(merges));
    for (size_t i = 0; i < json_array_size(merges); i++) {
        const json_t *merge = json_array_get(merges, i), *left = json_array_get(merge, 0),
                     *right = json_array_get(merge, 1), *only = json_is_string(merge) ? merge : left;
        weft__buffer_set(&pair, json_string_value(only), json_string_length(only));
        if (only == left) {
            weft__buffer_put(&pair, " ", 1);
            weft__buffer_put(&pair, json_string_value(right), json_string_length(right));
        }
        weft__gguf_put_item(v->h, pair.text, pair.bytes);
    }
    const weft_status status = weft__buffer_check(&pair);
    weft__buffer_free(&pair);
    return status;
}

/* ---- special tokens ---- */

/* Reads ids that only config.json names, such as those of GPT-2: a number, or the first of a list. */
static weft_status read_ids(const weft__vocabulary *v, int32_t *bos, int32_t *eos) {
    int32_t *const ids[2] = {bos, eos};
    static const char *const keys[2] = {"bos_token_id", "eos_token_id"};
    char path[4096];
    weft_bytes file;
    weft__json json;
    json_error_t error;
    json_t *root;
    WEFT_TRY(weft__published_path(v->ctx, v->path, "config.json", path));
    WEFT_TRY(weft_read_file(v->ctx, path, CONFIG_MAX, &file));
    weft__json_open(&json, v->ctx);
    const weft_status status = weft__json_load(&json, (const char *)file.data, file.size, 0, &error, &root);
    for (int i = 0; status == WEFT_OK && i < 2; i++) {
        const json_t *id = json_object_get(root, keys[i]);
        if (json_is_array(id)) id = json_array_get(id, 0);
        const json_int_t number = json_integer_value(id);
        if (*ids[i] < 0 && json_is_integer(id) && number >= 0 && number < v->rows) *ids[i] = (int32_t)number;
    }
    weft__json_close(&json);
    weft_bytes_free(v->ctx, &file);
    return status;
}

/* Appends the ids of special tokens. */
weft_status weft__put_roles(const weft__vocabulary *v) {
    static const struct {
        const char *key;
        weft_special role;
    } others[] = {
        {WEFT__TOKENIZER_KEY("unknown_token_id"), WEFT_SPECIAL_UNK},
        {WEFT__TOKENIZER_KEY("padding_token_id"), WEFT_SPECIAL_PAD},
        {WEFT__TOKENIZER_KEY("seperator_token_id"), WEFT_SPECIAL_SEP}, /* so it is spelled in the format */
        {WEFT__TOKENIZER_KEY("mask_token_id"), WEFT_SPECIAL_MASK}};
    int32_t bos = weft_tokenizer_special(v->t, WEFT_SPECIAL_BOS);
    int32_t eos = weft_tokenizer_special(v->t, WEFT_SPECIAL_EOS);
    WEFT_TRY(read_ids(v, &bos, &eos));
    if (bos >= 0) weft__gguf_put_u32(v->h, WEFT__TOKENIZER_KEY("bos_token_id"), (uint32_t)bos);
    if (eos >= 0) weft__gguf_put_u32(v->h, WEFT__TOKENIZER_KEY("eos_token_id"), (uint32_t)eos);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const int32_t id = weft_tokenizer_special(v->t, others[i].role);
        if (id >= 0) weft__gguf_put_u32(v->h, others[i].key, (uint32_t)id);
    }
    return WEFT_OK;
}

/* Appends which special tokens belong around a text. GGUF files know only a first and a last one. */
weft_status weft__put_frame(const weft__vocabulary *v) {
    const weft__frame *frame = &v->t->pipeline->frame.single;
    const weft__frame_item *items = frame->items;
    size_t before = 0;
    while (before < frame->count && items[before].id >= 0) before++;
    const size_t after = frame->count > before ? frame->count - before - 1 : 0;
    const int32_t bos = weft_tokenizer_special(v->t, WEFT_SPECIAL_BOS);
    const int32_t eos = weft_tokenizer_special(v->t, WEFT_SPECIAL_EOS);
    if (before > 1 || after > 1 || (before == 1 && items[0].id != bos) ||
        (after == 1 && items[frame->count - 1].id != eos))
        return weft__vocabulary_fail(v, "puts other tokens around a text than one at each end");
    weft__gguf_put_bool(v->h, WEFT__TOKENIZER_KEY("add_bos_token"), before == 1);
    weft__gguf_put_bool(v->h, WEFT__TOKENIZER_KEY("add_eos_token"), after == 1);
    return WEFT_OK;
}

/* ---- the tokenizer of a folder ---- */

static weft_status put_vocabulary(const weft__vocabulary *v) {
    const char *split;
    WEFT_TRY(find_split(v, &split));
    weft__gguf_put_text(v->h, WEFT__TOKENIZER_KEY("model"), "gpt2", 4);
    weft__gguf_put_text(v->h, WEFT__TOKENIZER_KEY("pre"), split, strlen(split));
    WEFT_TRY(weft__put_tokens(v));
    WEFT_TRY(put_merges(v));
    WEFT_TRY(weft__put_roles(v));
    return weft__put_frame(v);
}

static weft_status put_pipeline(weft__vocabulary *v) {
    if (weft_tokenizer_kind_of(v->t) != WEFT_TOKENIZER_PIPELINE)
        return weft__vocabulary_fail(v, "is no tokenizer.json of the library tokenizers");
    const weft__buffer *source = &v->t->pipeline->source;
    weft__json json;
    json_t *root;
    weft__json_open(&json, v->ctx);
    weft_status status =
        weft__tokenizer_json(&json, v->path, source->text, source->bytes, JSON_ALLOW_NUL, &root);
    v->root = root;
    if (status == WEFT_OK)
        status = v->t->pipeline->byte.fallback ? weft__put_sentencepiece(v) : put_vocabulary(v);
    weft__json_close(&json);
    return status;
}

static weft_status put_folder(weft_context *ctx, const char *path, int64_t rows, weft__gguf_header *h) {
    weft__vocabulary v = {.ctx = ctx, .path = path, .h = h, .rows = rows};
    char *text;
    size_t bytes = 0;
    WEFT_TRY(weft_published_tokenizer(ctx, path, &v.t));
    weft_status status = put_pipeline(&v);
    weft_tokenizer_free(v.t);
    if (status == WEFT_OK) status = weft__chat_template_text(ctx, path, &text, &bytes);
    if (status != WEFT_OK) return status;
    if (text) weft__gguf_put_text(h, "tokenizer.chat_template", text, bytes);
    weft__free(ctx, text);
    return WEFT_OK;
}

/* ---- the tokenizer of a GGUF file ---- */

static weft_status copy_keys(weft_context *ctx, const char *path, weft__gguf_header *h) {
    static const char prefix[] = "tokenizer.";
    const char *name;
    size_t bytes;
    weft__gguf_value value;
    weft__gguf *g;
    WEFT_TRY(weft__gguf_open(ctx, path, &g));
    for (size_t i = 0; weft__gguf_key(g, i, &name, &bytes, &value); i++)
        if (bytes > sizeof prefix - 1 && memcmp(name, prefix, sizeof prefix - 1) == 0)
            weft__gguf_put_value(h, name, bytes, &value);
    weft__gguf_close(g);
    return WEFT_OK;
}

weft_status weft__gguf_put_tokenizer(weft_context *ctx, const char *path, int64_t rows,
                                     weft__gguf_header *header) {
    return weft__is_gguf(path) ? copy_keys(ctx, path, header) : put_folder(ctx, path, rows, header);
}
