/* Reads a line of training data: which form it has, the text that the model sees, and the ranges of it that
 * are learned. Must not know: tokens. Read next: chats.c, template/chat.c. */
#include <string.h>

#include "text/chats.h"
#include "text/json_lines.h"

weft_status weft__line_fail(const weft__line_reading *r, const char *what) {
    return weft__fail(r->ctx, WEFT_ERR_FORMAT, "%s: %s", r->where, what);
}

/* ---- texts ---- */

weft_status weft__line_texts(const weft__line_reading *r, const char *first, size_t first_bytes,
                             const char *second, size_t second_bytes) {
    const size_t bytes = first_bytes + second_bytes;
    weft_chat_text *text = &r->out->text;
    text->text = weft__alloc(r->ctx, bytes + 1);
    text->answers = weft__array(r->ctx, 1, sizeof *text->answers);
    if (!text->text || !text->answers) return weft__fail_oom(r->ctx, bytes, "a text");
    if (first_bytes) memcpy(text->text, first, first_bytes);
    memcpy(text->text + first_bytes, second, second_bytes);
    text->text[bytes] = '\0';
    text->bytes = bytes;
    text->answers[0] = (weft_chat_range){first_bytes, bytes};
    text->answer_count = 1;
    r->out->plain = true;
    return WEFT_OK;
}

/* `first` may be NULL. */
static weft_status take_texts(const weft__line_reading *r, const json_t *first, const json_t *second) {
    return weft__line_texts(r, json_string_value(first), first ? json_string_length(first) : 0,
                            json_string_value(second), json_string_length(second));
}

/* ---- messages ---- */

/* Writes the conversation by the chat template. The first `skipped` answers are not learned. */
static weft_status take_conversation(const weft__line_reading *r, weft__json *made,
                                     const json_t *conversation, size_t skipped) {
    char *text;
    size_t bytes;
    WEFT_TRY(weft__json_text(made, conversation, JSON_COMPACT, r->where, &text, &bytes));
    weft_status status =
        r->chat ? weft_chat_template_answers(r->chat, text, bytes, NULL, &r->out->text)
                : weft__fail(r->ctx, WEFT_ERR_ARGUMENT,
                             "%s: messages need a chat template, and the model has none: take a model with "
                             "\"Instruct\" or \"Chat\" in its name, or give texts as prompt and completion",
                             r->where);
    weft__free(r->ctx, text);
    if (status != WEFT_OK && r->chat)
        return weft__fail(r->ctx, status, "%s: %s", r->where, weft_last_error(r->ctx));
    if (status != WEFT_OK) return status;
    weft_chat_text *out = &r->out->text;
    if (skipped > out->answer_count) skipped = out->answer_count;
    if (skipped == 0) return WEFT_OK;
    out->answer_count -= skipped;
    memmove(out->answers, out->answers + skipped, out->answer_count * sizeof *out->answers);
    return WEFT_OK;
}

/* Messages as in OpenAI's API; the whole object goes to the template. */
static weft_status take_messages(const weft__line_reading *r, const json_t *object) {
    weft__json made;
    weft__json_build(&made, r->ctx);
    return take_conversation(r, &made, json_deep_copy(object), 0);
}

/* Returns the role of a message in ShareGPT's form; NULL: there is no such role. */
static const char *role_of(const char *from) {
    static const char *const roles[][2] = {
        {"human", "user"},       {"user", "user"},     {"gpt", "assistant"}, {"assistant", "assistant"},
        {"model", "assistant"},  {"bot", "assistant"}, {"system", "system"}, {"tool", "tool"},
        {"observation", "tool"}, {"function", "tool"}};
    for (size_t i = 0; from && i < sizeof roles / sizeof *roles; i++)
        if (strcmp(from, roles[i][0]) == 0) return roles[i][1];
    return NULL;
}

/* ShareGPT's form: {"from": "human", "value": "..."}. */
static weft_status take_sharegpt(const weft__line_reading *r, const json_t *list) {
    weft__json made;
    size_t i;
    const json_t *item;
    weft__json_build(&made, r->ctx);
    json_t *messages = json_array();
    json_array_foreach(list, i, item) {
        const char *role = role_of(json_string_value(json_object_get(item, "from")));
        const json_t *value = json_object_get(item, "value");
        if (!role || !json_is_string(value)) {
            weft__json_close(&made);
            return weft__line_fail(
                r, "conversations: each item needs \"from\" (human, gpt, system or tool) and a "
                   "text \"value\"");
        }
        json_array_append_new(messages,
                              json_pack("{s:s, s:o}", "role", role, "content", json_deep_copy(value)));
    }
    return take_conversation(r, &made, json_pack("{s:o}", "messages", messages), 0);
}

/* Returns how many of the first `count` messages are answers. */
static size_t answers_in(const json_t *messages, size_t count) {
    size_t answers = 0;
    for (size_t i = 0; i < count; i++) {
        const char *role = json_string_value(json_object_get(json_array_get(messages, i), "role"));
        answers += role && strcmp(role, "assistant") == 0;
    }
    return answers;
}

weft_status weft__line_messages(const weft__line_reading *r, const json_t *prompt, const json_t *messages,
                                size_t known) {
    weft__json made;
    weft__json_build(&made, r->ctx);
    json_t *all = json_deep_copy(prompt ? prompt : messages);
    const size_t skipped = answers_in(prompt, json_array_size(prompt)) + answers_in(messages, known);
    if (prompt) json_array_extend(all, json_deep_copy(messages));
    return take_conversation(r, &made, json_pack("{s:o}", "messages", all), skipped);
}

/* ---- the form ---- */

static weft_status take_object(weft__line_reading *r, const json_t *object) {
    const json_t *messages = json_object_get(object, "messages"),
                 *conversations = json_object_get(object, "conversations"),
                 *prompt = json_object_get(object, "prompt"),
                 *completion = json_object_get(object, "completion"), *text = json_object_get(object, "text");
    if (json_is_array(messages)) return take_messages(r, object);
    if (json_is_array(conversations)) return take_sharegpt(r, conversations);
    if (json_is_array(prompt) && json_is_array(completion))
        return weft__line_messages(r, prompt, completion, 0);
    if (json_is_string(prompt) && json_is_string(completion)) return take_texts(r, prompt, completion);
    if (json_is_string(text)) return take_texts(r, NULL, text);
    return weft__line_fail(
        r, "no form that Weft knows: give an object with the list \"messages\" or "
           "\"conversations\", with \"prompt\" and \"completion\" (two texts, or two lists of "
           "messages), or with a \"text\"");
}

weft_status weft__line_parse(weft__line_reading *r, const char *text, size_t bytes,
                             weft_status (*take)(weft__line_reading *r, const json_t *object)) {
    weft__json json;
    json_t *root;
    weft__json_open(&json, r->ctx);
    weft_status status = weft__json_line_load(&json, r->where, text, bytes, &root);
    if (status == WEFT_OK)
        status = json_is_object(root) ? take(r, root) : weft__line_fail(r, "each line is a JSON object");
    weft__json_close(&json);
    return status;
}

weft_status weft__chat_line_read(weft_context *ctx, const char *where, const char *text, size_t bytes,
                                 const weft_chat_template *chat, weft__chat_line *line) {
    weft__line_reading r = {ctx, where, chat, line};
    *line = (weft__chat_line){.text = {.ctx = ctx}};
    return weft__line_parse(&r, text, bytes, take_object);
}
