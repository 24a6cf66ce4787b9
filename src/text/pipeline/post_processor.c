/* The post-processors: which special tokens belong around a text. They become one frame, such as [CLS] text
 * [SEP]. Must not know: how texts are encoded. Read next: read.c. */
#include <string.h>

#include "text/pipeline/pipeline.h"

weft_status weft__frame_put(weft_tokenizer *t, int32_t id) {
    weft__pipeline *p = t->pipeline;
    if (!weft__grow(t->ctx, &p->frame, &p->frame_capacity, p->frame_count, sizeof *p->frame))
        return weft__fail_oom(t->ctx, p->frame_count * sizeof *p->frame, "special tokens");
    p->frame[p->frame_count++] = id;
    return WEFT_OK;
}

/* Checks that an id is in the vocabulary, and appends it. */
static weft_status frame_put_id(weft__reader *r, const json_t *id) {
    if (!json_is_integer(id) || json_integer_value(id) < 0 || (uint64_t)json_integer_value(id) >= r->t->count)
        return weft__reader_fail(r, WEFT_ERR_FORMAT, "a special token has no id of the vocabulary");
    return weft__frame_put(r->t, (int32_t)json_integer_value(id));
}

/* {"SpecialToken": {"id": "[CLS]"}} or {"Sequence": {"id": "A"}} */
static weft_status read_item(weft__reader *r, const json_t *item, const json_t *tokens) {
    const json_t *special = json_object_get(item, "SpecialToken");
    if (json_object_get(item, "Sequence")) return weft__frame_put(r->t, WEFT__TEXT_PLACE);
    const char *name = json_string_value(json_object_get(special, "id"));
    const json_t *ids = name ? json_object_get(json_object_get(tokens, name), "ids") : NULL;
    if (!json_is_array(ids))
        return weft__reader_fail(r, WEFT_ERR_FORMAT, "the template names '%.40s', which special_tokens lacks",
                                 name ? name : "");
    for (size_t i = 0; i < json_array_size(ids); i++) WEFT_TRY(frame_put_id(r, json_array_get(ids, i)));
    return WEFT_OK;
}

static weft_status read_template(weft__reader *r, const json_t *json) {
    const json_t *single = json_object_get(json, "single"), *tokens = json_object_get(json, "special_tokens");
    if (!json_is_array(single)) return weft__reader_fail(r, WEFT_ERR_FORMAT, "single must be a list");
    for (size_t i = 0; i < json_array_size(single); i++)
        WEFT_TRY(read_item(r, json_array_get(single, i), tokens));
    return WEFT_OK;
}

/* "cls": ["[CLS]", 101], "sep": ["[SEP]", 102] */
static weft_status read_cls_sep(weft__reader *r, const json_t *json) {
    WEFT_TRY(frame_put_id(r, json_array_get(json_object_get(json, "cls"), 1)));
    WEFT_TRY(weft__frame_put(r->t, WEFT__TEXT_PLACE));
    WEFT_TRY(frame_put_id(r, json_array_get(json_object_get(json, "sep"), 1)));
    r->t->pipeline->roles[WEFT_SPECIAL_CLS] = r->t->pipeline->frame[0];
    r->t->pipeline->roles[WEFT_SPECIAL_SEP] = r->t->pipeline->frame[r->t->pipeline->frame_count - 1];
    return WEFT_OK;
}

weft_status weft__post_processor_read(weft__reader *r, const json_t *json) {
    const char *type = json_string_value(json_object_get(json, "type"));
    const json_t *list = json_object_get(json, "processors");
    if (!json || json_is_null(json)) return WEFT_OK;
    r->part = type ? type : "post_processor";
    if (type && strcmp(type, "Sequence") == 0 && json_is_array(list)) {
        for (size_t i = 0; i < json_array_size(list); i++)
            WEFT_TRY(weft__post_processor_read(r, json_array_get(list, i)));
        return WEFT_OK;
    }
    if (type && strcmp(type, "ByteLevel") == 0) return WEFT_OK; /* it only changes offsets */
    bool first = r->t->pipeline->frame_count == 0;
    if (first && type && strcmp(type, "TemplateProcessing") == 0) return read_template(r, json);
    if (first && type && (strcmp(type, "BertProcessing") == 0 || strcmp(type, "RobertaProcessing") == 0))
        return read_cls_sep(r, json);
    return weft__reader_fail(r, WEFT_ERR_UNSUPPORTED,
                             "%s: Weft knows one of TemplateProcessing, BertProcessing and "
                             "RobertaProcessing, and besides ByteLevel and Sequence",
                             first ? "unknown type" : "a second template");
}
