/* The special tokens of a pipeline: which of them begin and end a text, which role each has. The files beside
 * tokenizer.json name them (tokenizer_config.json, special_tokens_map.json). tokenizer.json itself has no
 * place for the roles, so Weft writes them into added_tokens as "weft_roles", which other readers ignore.
 * Must not know: the model. Read next: sentencepiece.c. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "text/pipeline/pipeline.h"

static const char *const roles[WEFT_SPECIAL_COUNT] = {
    [WEFT_SPECIAL_BOS] = "bos",  [WEFT_SPECIAL_EOS] = "eos", [WEFT_SPECIAL_PAD] = "pad",
    [WEFT_SPECIAL_UNK] = "unk",  [WEFT_SPECIAL_SEP] = "sep", [WEFT_SPECIAL_CLS] = "cls",
    [WEFT_SPECIAL_MASK] = "mask"};

void weft__roles_read(weft_tokenizer *t, const json_t *added_token, int32_t id) {
    const json_t *list = json_object_get(added_token, "weft_roles");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));
        for (int role = 0; name && role < WEFT_SPECIAL_COUNT; role++)
            if (strcmp(name, roles[role]) == 0) t->pipeline->roles[role] = id;
    }
}

/* ---- tokenizer_config.json ---- */

/* "<s>", or {"content": "<s>", ...} */
static int32_t read_role(const weft_tokenizer *t, const json_t *value) {
    const json_t *content = json_is_object(value) ? json_object_get(value, "content") : value;
    if (!json_is_string(content)) return -1;
    return weft_tokenizer_id(t, json_string_value(content), json_string_length(content));
}

static bool is_true(const json_t *root, const char *key) { return json_is_true(json_object_get(root, key)); }

/* Appends a place, with the begin and the end of a text around it. */
static weft_status put_framed(weft_tokenizer *t, weft__frame *frame, int32_t place, int32_t type, bool bos,
                              bool eos) {
    const int32_t *ids = t->pipeline->roles;
    if (bos) WEFT_TRY(weft__frame_put(t, frame, ids[WEFT_SPECIAL_BOS], type));
    WEFT_TRY(weft__frame_put(t, frame, place, type));
    return eos ? weft__frame_put(t, frame, ids[WEFT_SPECIAL_EOS], type) : WEFT_OK;
}

static weft_status configure(weft_tokenizer *t, const json_t *root) {
    weft__pipeline *p = t->pipeline;
    for (int role = 0; role < WEFT_SPECIAL_COUNT; role++) {
        char key[16];
        snprintf(key, sizeof key, "%s_token", roles[role]);
        int32_t id = read_role(t, json_object_get(root, key));
        if (id >= 0) p->roles[role] = id;
    }
    bool bos = is_true(root, "add_bos_token") && p->roles[WEFT_SPECIAL_BOS] >= 0;
    bool eos = is_true(root, "add_eos_token") && p->roles[WEFT_SPECIAL_EOS] >= 0;
    if (p->frame.single.count || (!bos && !eos)) return WEFT_OK; /* the post-processor says it already */
    WEFT_TRY(put_framed(t, &p->frame.single, WEFT__TEXT_PLACE, 0, bos, eos));
    WEFT_TRY(put_framed(t, &p->frame.pair, WEFT__TEXT_PLACE, 0, bos, eos));
    WEFT_TRY(put_framed(t, &p->frame.pair, WEFT__OTHER_PLACE, 1, bos, eos));
    p->frame.configured = true;
    return WEFT_OK;
}

weft_status weft__pipeline_configure(weft_tokenizer *t, const char *name, const char *text, size_t bytes) {
    weft__json json;
    json_t *root;
    weft__json_open(&json, t->ctx);
    /* a common value of model_max_length, 1e30, is written as an integer */
    weft_status status = weft__tokenizer_json(&json, name, text, bytes, JSON_DECODE_INT_AS_REAL, &root);
    if (status == WEFT_OK && !json_is_object(root))
        status = weft__fail(t->ctx, WEFT_ERR_FORMAT, "%s: JSON: must be an object", name);
    if (status == WEFT_OK) status = configure(t, root);
    weft__json_close(&json);
    return status;
}

/* ---- writing ---- */

static json_t *role_list(const weft__pipeline *p, int32_t id) {
    json_t *list = NULL;
    for (int role = 0; role < WEFT_SPECIAL_COUNT; role++) {
        if (p->roles[role] != id) continue;
        if (!list) list = json_array();
        if (!list || json_array_append_new(list, json_string(roles[role])) != 0) return NULL;
    }
    return list;
}

/* Describes a frame, and adds its special tokens to `tokens`. */
static json_t *describe_frame(const weft_tokenizer *t, const weft__frame *frame, json_t *tokens) {
    json_t *list = json_array();
    for (size_t i = 0; i < frame->count; i++) {
        const weft__frame_item item = frame->items[i];
        if (item.id < 0) {
            json_array_append_new(list,
                                  json_pack("{s:{s:s, s:i}}", "Sequence", "id",
                                            item.id == WEFT__TEXT_PLACE ? "A" : "B", "type_id", item.type));
            continue;
        }
        char name[256];
        size_t bytes;
        const char *token = weft__token(t, (size_t)item.id, &bytes);
        snprintf(name, sizeof name, "%.*s", (int)(bytes < 255 ? bytes : 255), token);
        json_array_append_new(list,
                              json_pack("{s:{s:s, s:i}}", "SpecialToken", "id", name, "type_id", item.type));
        json_object_set_new(tokens, name,
                            json_pack("{s:s, s:[i], s:[s]}", "id", name, "ids", item.id, "tokens", name));
    }
    return list;
}

/* The frames as a post-processor TemplateProcessing. */
static json_t *frame_template(const weft_tokenizer *t) {
    json_t *tokens = json_object(), *single = describe_frame(t, &t->pipeline->frame.single, tokens);
    json_t *pair = describe_frame(t, &t->pipeline->frame.pair, tokens);
    return json_pack("{s:s, s:o, s:o, s:o}", "type", "TemplateProcessing", "single", single, "pair", pair,
                     "special_tokens", tokens);
}

weft_status weft__pipeline_text(const weft_tokenizer *t, char **text, size_t *bytes) {
    const weft__pipeline *p = t->pipeline;
    weft__json json;
    json_error_t error;
    json_t *root;
    weft__json_build(&json, t->ctx);
    weft_status status =
        weft__json_load(&json, p->source.text, p->source.bytes, JSON_ALLOW_NUL, &error, &root);
    if (status != WEFT_OK) {
        weft__json_close(&json);
        return status == WEFT_ERR_OOM ? status : weft__fail(t->ctx, status, "tokenizer: %.160s", error.text);
    }
    json_t *added = json_object_get(root, "added_tokens");
    for (size_t i = 0; i < json_array_size(added); i++) {
        json_t *token = json_array_get(added, i), *list = role_list(p, p->added.list[i].id);
        if (list) json_object_set_new(token, "weft_roles", list);
    }
    if (p->frame.configured) json_object_set_new(root, "post_processor", frame_template(t));
    return weft__json_text(&json, root, JSON_COMPACT, "the text of a tokenizer", text, bytes);
}
