/* Reads tokenizer.json as Hugging Face's library `tokenizers` writes it, and tokenizer_config.json.
 * Truncation and padding are ignored. A part that Weft does not know is refused by name. Must not know: what
 * parts do. Read next: post_processor.c. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "text/pipeline/pipeline.h"

#define HOLES_MAX ((size_t)1 << 20) /* ids without a token */

/* ---- messages and fields ---- */

weft_status weft__reader_fail(const weft__reader *r, weft_status status, const char *fmt, ...) {
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return weft__fail(r->t->ctx, status, "%s: %s%s%s: %s", r->name, r->stage, r->part ? ", " : "",
                      r->part ? r->part : "", text);
}

/* Returns a field, or NULL if it is absent or null. */
static const json_t *field(const json_t *json, const char *key) {
    const json_t *value = json_object_get(json, key);
    return json_is_null(value) ? NULL : value;
}

weft_status weft__read_bool(const weft__reader *r, const json_t *json, const char *key, bool *value) {
    const json_t *found = field(json, key);
    if (!found) return WEFT_OK;
    if (!json_is_boolean(found))
        return weft__reader_fail(r, WEFT_ERR_FORMAT, "%s must be true or false", key);
    *value = json_is_true(found);
    return WEFT_OK;
}

weft_status weft__read_size(const weft__reader *r, const json_t *json, const char *key, size_t *value) {
    const json_t *found = field(json, key);
    if (!found) return WEFT_OK;
    if (!json_is_integer(found) || json_integer_value(found) < 0)
        return weft__reader_fail(r, WEFT_ERR_FORMAT, "%s must be a number from 0 on", key);
    *value = (size_t)json_integer_value(found);
    return WEFT_OK;
}

weft_status weft__read_text(const weft__reader *r, const json_t *json, const char *key, weft__buffer *value) {
    const json_t *found = field(json, key);
    if (!found) return WEFT_OK;
    if (!json_is_string(found)) return weft__reader_fail(r, WEFT_ERR_FORMAT, "%s must be a string", key);
    weft__buffer_set(value, json_string_value(found), json_string_length(found));
    return weft__buffer_check(value);
}

weft_status weft__read_pattern(const weft__reader *r, const json_t *json, weft__regex **value) {
    const json_t *pattern = field(json, "pattern");
    const json_t *text = json_is_string(pattern) ? pattern : field(pattern, "String");
    const json_t *regex = field(pattern, "Regex");
    char where[512];
    if (!json_is_string(text) && !json_is_string(regex))
        return weft__reader_fail(r, WEFT_ERR_FORMAT, "pattern must have a String or a Regex");
    snprintf(where, sizeof where, "%.300s: %s, %s", r->name, r->stage, r->part);
    const json_t *used = json_is_string(regex) ? regex : text;
    return weft__regex_new(r->t->ctx, where, json_string_value(used), json_string_length(used), used == text,
                           value);
}

weft_status weft__read_choice(const weft__reader *r, const json_t *json, const char *key,
                              const char *const *names, int *value) {
    const json_t *found = field(json, key);
    const char *name = json_string_value(found);
    char known[256];
    size_t used = 0;
    if (!found) return WEFT_OK;
    for (int i = 0; names[i]; i++) {
        if (name && strcmp(names[i], name) == 0) {
            *value = i;
            return WEFT_OK;
        }
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", names[i]);
    }
    return weft__reader_fail(r, WEFT_ERR_UNSUPPORTED, "%s is '%.40s', but Weft knows %s", key,
                             name ? name : "no string", known);
}

/* ---- parts ---- */

static weft_status add_part(weft__reader *r, weft__parts *parts, const weft__part_type *type,
                            weft__part **part) {
    if (parts->count == WEFT__PARTS_MAX)
        return weft__reader_fail(r, WEFT_ERR_UNSUPPORTED, "more than %d parts", WEFT__PARTS_MAX);
    if (!weft__grow(r->t->ctx, &parts->list, &parts->capacity, parts->count, sizeof *parts->list))
        return weft__fail_oom(r->t->ctx, parts->count * sizeof *parts->list, "a tokenizer");
    *part = &parts->list[parts->count++];
    **part =
        (weft__part){.type = type, .text.ctx = r->t->ctx, .room.ctx = r->t->ctx, .points.ctx = r->t->ctx};
    return WEFT_OK;
}

static weft_status refuse_part(const weft__reader *r, const weft__part_type *types, const char *type) {
    char known[256] = "Sequence";
    for (; types->name; types++) {
        strcat(known, ", ");
        strcat(known, types->name);
    }
    return weft__reader_fail(r, WEFT_ERR_UNSUPPORTED, "Weft does not know the type '%.60s'. It knows %s",
                             type, known);
}

static weft_status read_parts(weft__reader *r, const json_t *json, const weft__part_type *types,
                              const char *list_name, weft__parts *parts);

static weft_status read_part(weft__reader *r, const json_t *json, const weft__part_type *types,
                             const char *list_name, const char *name, weft__parts *parts) {
    const json_t *list = json_object_get(json, list_name);
    const weft__part_type *type = types;
    weft__part *part;
    if (strcmp(name, "Sequence") == 0) {
        if (!json_is_array(list))
            return weft__reader_fail(r, WEFT_ERR_FORMAT, "%s must be a list", list_name);
        for (size_t i = 0; i < json_array_size(list); i++)
            WEFT_TRY(read_parts(r, json_array_get(list, i), types, list_name, parts));
        return WEFT_OK;
    }
    while (type->name && strcmp(type->name, name) != 0) type++;
    if (!type->name) return refuse_part(r, types, name);
    bool fused = false;
    for (size_t i = 0; i < parts->count; i++) {
        const char *before = parts->list[i].type->name;
        fused |= strcmp(before, "Fuse") == 0 || strcmp(before, "ByteLevel") == 0;
    }
    WEFT_TRY(add_part(r, parts, type, &part));
    part->fused = fused;
    r->part = name;
    if (type->read) WEFT_TRY(type->read(r, json, part));
    WEFT_TRY(weft__buffer_check(&part->text));
    if (type->cut && strcmp(name, "ByteLevel") == 0)
        WEFT_TRY(add_part(r, parts, &weft__byte_characters, &part));
    r->part = NULL;
    return WEFT_OK;
}

/* Reads a part, or the parts of a Sequence, which are appended one by one. */
static weft_status read_parts(weft__reader *r, const json_t *json, const weft__part_type *types,
                              const char *list_name, weft__parts *parts) {
    if (!json || json_is_null(json)) return WEFT_OK;
    const char *name = json_string_value(json_object_get(json, "type"));
    if (!name) return weft__reader_fail(r, WEFT_ERR_FORMAT, "type must be a string");
    return read_part(r, json, types, list_name, name, parts);
}

/* ---- the vocabulary ---- */

typedef struct listed {
    const char *token;
    size_t bytes;
} listed;

/* Lists the tokens of an object {token: id} by their ids. */
static weft_status list_object(weft__reader *r, const json_t *vocabulary, listed **list, size_t *count) {
    const char *key;
    const json_t *value;
    json_int_t most = -1;
    json_object_foreach((json_t *)vocabulary, key, value) {
        if (!json_is_integer(value) || json_integer_value(value) < 0)
            return weft__reader_fail(r, WEFT_ERR_FORMAT,
                                     "vocab: the id of '%.40s' must be a number from 0 on", key);
        if (json_integer_value(value) > most) most = json_integer_value(value);
    }
    if (most >= INT32_MAX || (uint64_t)(most + 1) > json_object_size(vocabulary) + HOLES_MAX)
        return weft__reader_fail(r, WEFT_ERR_FORMAT, "vocab: id %lld is too large for %zu tokens",
                                 (long long)most, json_object_size(vocabulary));
    *count = (size_t)(most + 1);
    *list = weft__array(r->t->ctx, *count + 1, sizeof **list);
    if (!*list) return weft__fail_oom(r->t->ctx, *count * sizeof **list, "a vocabulary");
    json_object_foreach((json_t *)vocabulary, key, value) {
        listed *entry = &(*list)[json_integer_value(value)];
        if (entry->token)
            return weft__reader_fail(r, WEFT_ERR_FORMAT, "vocab: '%.40s' and '%.40s' have one id, %lld",
                                     entry->token, key, (long long)json_integer_value(value));
        *entry = (listed){key, strlen(key)};
    }
    return WEFT_OK;
}

/* Lists the tokens of an array [[token, score], ...]. */
static weft_status list_array(weft__reader *r, const json_t *vocabulary, listed **list, size_t *count) {
    *count = json_array_size(vocabulary);
    *list = weft__array(r->t->ctx, *count + 1, sizeof **list);
    if (!*list) return weft__fail_oom(r->t->ctx, *count * sizeof **list, "a vocabulary");
    for (size_t i = 0; i < *count; i++) {
        const json_t *entry = json_array_get(vocabulary, i), *token = json_array_get(entry, 0);
        if (!json_is_string(token) || !json_is_number(json_array_get(entry, 1)))
            return weft__reader_fail(r, WEFT_ERR_FORMAT, "vocab: entry %zu must be a token and its score", i);
        (*list)[i] = (listed){json_string_value(token), json_string_length(token)};
    }
    return WEFT_OK;
}

/* Puts the listed tokens into the tokenizer, and into the table from tokens to ids. */
static weft_status add_listed(weft_tokenizer *t, const listed *list, size_t count) {
    t->slot_count = 256;
    while (t->slot_count <= 2 * count) t->slot_count *= 2;
    t->slots = weft__array(t->ctx, t->slot_count, sizeof *t->slots);
    if (!t->slots) return weft__fail_oom(t->ctx, t->slot_count * sizeof *t->slots, "a vocabulary");
    memset(t->slots, 0xff, t->slot_count * sizeof *t->slots); /* all -1 */
    for (size_t id = 0; id < count; id++) {
        WEFT_TRY(weft__tokenizer_add(t, list[id].token, list[id].bytes));
        if (list[id].token) t->slots[weft__tokenizer_slot(t, list[id].token, list[id].bytes)] = (int32_t)id;
    }
    return WEFT_OK;
}

/* Gives each added token the id that the model has for it, or the id of the file. */
static weft_status place_added_tokens(weft__reader *r, const json_t *list) {
    weft_tokenizer *t = r->t;
    weft__pipeline *p = t->pipeline;
    size_t most = t->count;
    p->model_count = t->count;
    for (size_t i = 0; i < p->added.count; i++) {
        weft__added_token *token = &p->added.list[i];
        int32_t id = weft__model_id(t, token->content.text ? token->content.text : "", token->content.bytes);
        if (id >= 0) token->id = id;
        if ((size_t)token->id >= t->count + p->added.count + HOLES_MAX)
            return weft__reader_fail(r, WEFT_ERR_FORMAT, "id %d is too large for %zu tokens", (int)token->id,
                                     t->count + p->added.count);
        if ((size_t)token->id >= most) most = (size_t)token->id + 1;
    }
    p->added.of = weft__array(t->ctx, most + 1, sizeof *p->added.of);
    if (!p->added.of) return weft__fail_oom(t->ctx, most * sizeof *p->added.of, "added tokens");
    for (size_t i = 0; i < p->added.count; i++) {
        p->added.of[p->added.list[i].id] = (uint32_t)i + 1;
        weft__roles_read(t, json_array_get(list, i), p->added.list[i].id);
    }
    while (t->count < most) {
        uint32_t added = p->added.of[t->count];
        const weft__buffer none = {0}, *content = added ? &p->added.list[added - 1].content : &none;
        WEFT_TRY(weft__tokenizer_add(t, content->text, content->bytes));
    }
    return WEFT_OK;
}

static weft_status read_vocabulary(weft__reader *r, const json_t *model) {
    const json_t *vocabulary = json_object_get(model, "vocab");
    listed *list = NULL;
    size_t count = 0;
    weft_status status;
    if (json_is_array(vocabulary))
        status = list_array(r, vocabulary, &list, &count);
    else if (json_is_object(vocabulary))
        status = list_object(r, vocabulary, &list, &count);
    else
        status = weft__reader_fail(r, WEFT_ERR_FORMAT, "vocab must be an object or a list");
    if (status == WEFT_OK) status = add_listed(r->t, list, count);
    weft__free(r->t->ctx, list);
    return status;
}

/* ---- the model ---- */

static const weft__model_type *const models[] = {&weft__model_bpe, &weft__model_wordpiece,
                                                 &weft__model_wordlevel, &weft__model_unigram};

/* Old files do not name the type of the model. */
static const char *model_name(const json_t *model) {
    const char *name = json_string_value(json_object_get(model, "type"));
    if (name) return name;
    if (json_object_get(model, "merges")) return "BPE";
    if (json_is_array(json_object_get(model, "vocab"))) return "Unigram";
    return json_object_get(model, "max_input_chars_per_word") ? "WordPiece" : "WordLevel";
}

static weft_status choose_model(weft__reader *r, const json_t *model) {
    const char *name = model_name(model);
    weft__pipeline *p = r->t->pipeline;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        if (strcmp(models[i]->name, name) == 0) p->model = models[i];
    if (!p->model)
        return weft__reader_fail(
            r, WEFT_ERR_UNSUPPORTED,
            "Weft does not know the type '%.60s'. It knows BPE, WordPiece, WordLevel, Unigram", name);
    r->part = p->model->name;
    if ((p->model == &weft__model_unigram) != json_is_array(json_object_get(model, "vocab")))
        return weft__reader_fail(r, WEFT_ERR_FORMAT, "vocab must be %s",
                                 p->model == &weft__model_unigram ? "a list" : "an object");
    return WEFT_OK;
}

/* Finds the id of the unknown token: a token's name, or for Unigram its id. */
static weft_status read_unknown(weft__reader *r, const json_t *model) {
    weft__pipeline *p = r->t->pipeline;
    const json_t *name = field(model, "unk_token"), *id = field(model, "unk_id");
    const char *text = json_string_value(name);
    p->unknown = -1;
    if (p->model == &weft__model_unigram && id) {
        if (!json_is_integer(id) || json_integer_value(id) < 0 ||
            (uint64_t)json_integer_value(id) >= json_array_size(json_object_get(model, "vocab")))
            return weft__reader_fail(r, WEFT_ERR_FORMAT, "unk_id must be an id of the vocabulary");
        p->unknown = (int32_t)json_integer_value(id);
    }
    if (p->model == &weft__model_unigram) return WEFT_OK;
    if (!text && p->model == &weft__model_wordpiece) text = "[UNK]";
    if (text) p->unknown = weft__model_id(r->t, text, strlen(text));
    return WEFT_OK;
}

/* ---- the file ---- */

static weft_status read_stages(weft__reader *r, const json_t *root) {
    weft__pipeline *p = r->t->pipeline;
    const json_t *model = json_object_get(root, "model"), *decoder = json_object_get(root, "decoder");
    r->stage = "added_tokens";
    WEFT_TRY(weft__added_tokens_read(r, json_object_get(root, "added_tokens")));
    r->stage = "model";
    if (!json_is_object(model)) return weft__reader_fail(r, WEFT_ERR_FORMAT, "must be an object");
    WEFT_TRY(choose_model(r, model));
    WEFT_TRY(read_vocabulary(r, model));
    WEFT_TRY(read_unknown(r, model));
    r->part = NULL;
    r->stage = "added_tokens";
    WEFT_TRY(place_added_tokens(r, json_object_get(root, "added_tokens")));
    r->stage = "normalizer";
    WEFT_TRY(read_parts(r, json_object_get(root, "normalizer"), weft__normalizers, "normalizers",
                        &p->normalizers));
    r->stage = "pre_tokenizer";
    WEFT_TRY(read_parts(r, json_object_get(root, "pre_tokenizer"), weft__pre_tokenizers, "pretokenizers",
                        &p->pre_tokenizers));
    r->stage = "decoder";
    WEFT_TRY(read_parts(r, decoder, weft__decoders, "decoders", &p->decoders));
    r->t->spaced = !decoder || json_is_null(decoder);
    r->stage = "model";
    r->part = p->model->name;
    WEFT_TRY(p->model->read(r, model));
    r->part = NULL;
    r->stage = "added_tokens";
    WEFT_TRY(weft__added_tokens_index(r));
    if (p->roles[WEFT_SPECIAL_UNK] < 0) p->roles[WEFT_SPECIAL_UNK] = p->unknown;
    r->stage = "post_processor";
    return weft__post_processor_read(r, json_object_get(root, "post_processor"));
}

static weft__pipeline *pipeline_new(weft_context *ctx) {
    weft__pipeline *p = weft__zalloc(ctx, sizeof *p);
    if (!p) return NULL;
    p->source.ctx = p->prefix.ctx = p->suffix.ctx = ctx;
    for (int i = 0; i < 3; i++) p->work.rooms[i].ctx = ctx;
    for (int i = 0; i < 2; i++) p->work.words[i].ctx = ctx;
    for (int i = 0; i < WEFT_SPECIAL_COUNT; i++) p->roles[i] = -1;
    for (int i = 0; i < 256; i++) p->byte.ids[i] = -1;
    return p;
}

weft_status weft__pipeline_read(weft_context *ctx, const char *name, const json_t *root, const char *text,
                                size_t bytes, weft_tokenizer **out) {
    weft_tokenizer *t = weft__tokenizer_new(ctx, WEFT_TOKENIZER_PIPELINE);
    *out = NULL;
    if (!t) return weft__fail_oom(ctx, sizeof *t, "a tokenizer");
    weft__reader reader = {.t = t, .name = name, .stage = "version"};
    const json_t *version = field(root, "version");
    t->pipeline = pipeline_new(ctx);
    weft_status status = t->pipeline ? WEFT_OK : weft__fail_oom(ctx, sizeof *t->pipeline, "a tokenizer");
    if (status == WEFT_OK && version &&
        (!json_is_string(version) || strcmp(json_string_value(version), "1.0") != 0))
        status = weft__reader_fail(&reader, WEFT_ERR_UNSUPPORTED, "this Weft reads \"1.0\"");
    if (status == WEFT_OK) status = read_stages(&reader, root);
    if (status == WEFT_OK) {
        weft__buffer_set(&t->pipeline->source, text, bytes);
        status = weft__buffer_check(&t->pipeline->source);
    }
    if (status == WEFT_OK)
        *out = t;
    else
        weft_tokenizer_free(t);
    return status;
}
