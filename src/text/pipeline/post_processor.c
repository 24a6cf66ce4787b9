/* The post-processors: which special tokens belong around a text. They become one frame, such as [CLS] text
 * [SEP]. Must not know: how texts are encoded. Read next: read.c. */
#include <string.h>

#include "text/pipeline/pipeline.h"

weft_status weft__frame_put(weft_tokenizer *t, weft__frame *frame, int32_t id, int32_t type) {
    if (!weft__grow(t->ctx, &frame->items, &frame->capacity, frame->count, sizeof *frame->items))
        return weft__fail_oom(t->ctx, frame->count * sizeof *frame->items, "special tokens");
    frame->items[frame->count++] = (weft__frame_item){id, type};
    return WEFT_OK;
}

/* Checks that an id is in the vocabulary, and appends it. */
static weft_status frame_put_id(weft__reader *r, weft__frame *frame, const json_t *id, int32_t type) {
    if (frame->count >= WEFT__FRAME_MAX)
        return weft__reader_fail(r, WEFT_ERR_UNSUPPORTED, "more than %d special tokens around a text",
                                 WEFT__FRAME_MAX);
    if (!json_is_integer(id) || json_integer_value(id) < 0 || (uint64_t)json_integer_value(id) >= r->t->count)
        return weft__reader_fail(r, WEFT_ERR_FORMAT, "a special token has no id of the vocabulary");
    return weft__frame_put(r->t, frame, (int32_t)json_integer_value(id), type);
}

/* A text stands once in a template. */
static weft_status frame_put_place(weft__reader *r, weft__frame *frame, int32_t place, int32_t type) {
    for (size_t i = 0; i < frame->count; i++)
        if (frame->items[i].id == place)
            return weft__reader_fail(r, WEFT_ERR_UNSUPPORTED, "the template has a text twice");
    return weft__frame_put(r->t, frame, place, type);
}

/* {"SpecialToken": {"id": "[CLS]", "type_id": 0}} or {"Sequence": {"id": "A", "type_id": 0}} */
static weft_status read_item(weft__reader *r, weft__frame *frame, const json_t *item, const json_t *tokens) {
    const json_t *special = json_object_get(item, "SpecialToken"), *place = json_object_get(item, "Sequence");
    const json_t *used = place ? place : special;
    const char *name = json_string_value(json_object_get(used, "id"));
    const int32_t type = json_integer_value(json_object_get(used, "type_id")) == 1;
    if (place)
        return frame_put_place(r, frame, name && *name == 'B' ? WEFT__OTHER_PLACE : WEFT__TEXT_PLACE, type);
    const json_t *ids = name ? json_object_get(json_object_get(tokens, name), "ids") : NULL;
    if (!json_is_array(ids))
        return weft__reader_fail(r, WEFT_ERR_FORMAT, "the template names '%.40s', which special_tokens lacks",
                                 name ? name : "");
    for (size_t i = 0; i < json_array_size(ids); i++)
        WEFT_TRY(frame_put_id(r, frame, json_array_get(ids, i), type));
    return WEFT_OK;
}

static weft_status read_template(weft__reader *r, const json_t *json) {
    weft__frame *const frames[2] = {&r->t->pipeline->frame.single, &r->t->pipeline->frame.pair};
    static const char *const names[2] = {"single", "pair"};
    for (int k = 0; k < 2; k++) {
        const json_t *list = json_object_get(json, names[k]);
        if (k && !list) continue; /* old files have no pair */
        if (!json_is_array(list)) return weft__reader_fail(r, WEFT_ERR_FORMAT, "%s must be a list", names[k]);
        for (size_t i = 0; i < json_array_size(list); i++)
            WEFT_TRY(
                read_item(r, frames[k], json_array_get(list, i), json_object_get(json, "special_tokens")));
    }
    return WEFT_OK;
}

/* "cls": ["[CLS]", 101], "sep": ["[SEP]", 102]. A pair is cls A sep B sep; for RoBERTa cls A sep sep B sep,
 * all of type 0. */
static weft_status read_cls_sep(weft__reader *r, const json_t *json, bool roberta) {
    weft__pipeline *p = r->t->pipeline;
    const json_t *cls = json_array_get(json_object_get(json, "cls"), 1);
    const json_t *sep = json_array_get(json_object_get(json, "sep"), 1);
    weft__frame *const frames[2] = {&p->frame.single, &p->frame.pair};
    for (int k = 0; k < 2; k++) {
        WEFT_TRY(frame_put_id(r, frames[k], cls, 0));
        WEFT_TRY(weft__frame_put(r->t, frames[k], WEFT__TEXT_PLACE, 0));
        WEFT_TRY(frame_put_id(r, frames[k], sep, 0));
    }
    if (roberta) WEFT_TRY(frame_put_id(r, &p->frame.pair, sep, 0));
    WEFT_TRY(weft__frame_put(r->t, &p->frame.pair, WEFT__OTHER_PLACE, !roberta));
    WEFT_TRY(frame_put_id(r, &p->frame.pair, sep, !roberta));
    p->roles[WEFT_SPECIAL_CLS] = p->frame.single.items[0].id;
    p->roles[WEFT_SPECIAL_SEP] = p->frame.single.items[2].id;
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
    bool first = r->t->pipeline->frame.single.count == 0;
    if (first && type && strcmp(type, "TemplateProcessing") == 0) return read_template(r, json);
    if (first && type && (strcmp(type, "BertProcessing") == 0 || strcmp(type, "RobertaProcessing") == 0))
        return read_cls_sep(r, json, *type == 'R');
    return weft__reader_fail(r, WEFT_ERR_UNSUPPORTED,
                             "%s: Weft knows one of TemplateProcessing, BertProcessing and "
                             "RobertaProcessing, and besides ByteLevel and Sequence",
                             first ? "unknown type" : "a second template");
}
