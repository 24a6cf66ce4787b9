/* Reads a line of training data: which form it has, the text that the model sees, and the ranges of it that
 * are learned. Must not know: tokens. Read next: chats.c, template/chat.c. */
#include <string.h>

#include "text/chats.h"

typedef struct reading {
    weft_context *ctx;
    const char *where;
    const weft_chat_template *chat;
    weft__chat_line *out;
} reading;

static weft_status line_fail(const reading *r, const char *what) {
    return weft__fail(r->ctx, WEFT_ERR_FORMAT, "%s: %s", r->where, what);
}

/* ---- texts ---- */

/* Makes the text of two parts, of which the second is learned. */
static weft_status take_texts(const reading *r, const json_t *first, const json_t *second) {
    const size_t a = first ? json_string_length(first) : 0, b = json_string_length(second);
    weft_chat_text *text = &r->out->text;
    text->text = weft__alloc(r->ctx, a + b + 1);
    text->answers = weft__array(r->ctx, 1, sizeof *text->answers);
    if (!text->text || !text->answers) return weft__fail_oom(r->ctx, a + b, "a text");
    if (a) memcpy(text->text, json_string_value(first), a);
    memcpy(text->text + a, json_string_value(second), b);
    text->text[a + b] = '\0';
    text->bytes = a + b;
    text->answers[0] = (weft_chat_range){a, a + b};
    text->answer_count = 1;
    r->out->ends = true;
    return WEFT_OK;
}

/* ---- messages ---- */

/* Writes the conversation by the chat template. The first `skipped` answers are not learned. */
static weft_status take_conversation(const reading *r, weft__json *made, const json_t *conversation,
                                     size_t skipped) {
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
static weft_status take_messages(const reading *r, const json_t *object) {
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
static weft_status take_sharegpt(const reading *r, const json_t *list) {
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
            return line_fail(r, "conversations: each item needs \"from\" (human, gpt, system or tool) and a "
                                "text \"value\"");
        }
        json_array_append_new(messages,
                              json_pack("{s:s, s:o}", "role", role, "content", json_deep_copy(value)));
    }
    return take_conversation(r, &made, json_pack("{s:o}", "messages", messages), 0);
}

static size_t answers_in(const json_t *messages) {
    size_t i, count = 0;
    const json_t *item;
    json_array_foreach(messages, i, item) {
        const char *role = json_string_value(json_object_get(item, "role"));
        count += role && strcmp(role, "assistant") == 0;
    }
    return count;
}

/* Two lists of messages: only the answers of the completion are learned. */
static weft_status take_completion(const reading *r, const json_t *prompt, const json_t *completion) {
    weft__json made;
    weft__json_build(&made, r->ctx);
    json_t *messages = json_deep_copy(prompt), *rest = json_deep_copy(completion);
    json_array_extend(messages, rest);
    return take_conversation(r, &made, json_pack("{s:o}", "messages", messages), answers_in(prompt));
}

/* ---- the form ---- */

static weft_status take_object(const reading *r, const json_t *object) {
    const json_t *messages = json_object_get(object, "messages"),
                 *conversations = json_object_get(object, "conversations"),
                 *prompt = json_object_get(object, "prompt"),
                 *completion = json_object_get(object, "completion"), *text = json_object_get(object, "text");
    if (json_is_array(messages)) return take_messages(r, object);
    if (json_is_array(conversations)) return take_sharegpt(r, conversations);
    if (json_is_array(prompt) && json_is_array(completion)) return take_completion(r, prompt, completion);
    if (json_is_string(prompt) && json_is_string(completion)) return take_texts(r, prompt, completion);
    if (json_is_string(text)) return take_texts(r, NULL, text);
    return line_fail(r, "no form that Weft knows: give an object with the list \"messages\" or "
                        "\"conversations\", with \"prompt\" and \"completion\" (two texts, or two lists of "
                        "messages), or with a \"text\"");
}

weft_status weft__chat_line_read(weft_context *ctx, const char *where, const char *text, size_t bytes,
                                 const weft_chat_template *chat, weft__chat_line *line) {
    const reading r = {ctx, where, chat, line};
    weft__json json;
    json_error_t error;
    json_t *root;
    *line = (weft__chat_line){.text = {.ctx = ctx}};
    weft__json_open(&json, ctx);
    weft_status status = weft__json_load(&json, text, bytes, JSON_REJECT_DUPLICATES, &error, &root);
    if (status == WEFT_ERR_FORMAT)
        status = weft__fail(ctx, status, "%s: column %d: %s", where, error.column, error.text);
    else if (status == WEFT_OK)
        status = json_is_object(root) ? take_object(&r, root) : line_fail(&r, "each line is a JSON object");
    weft__json_close(&json);
    return status;
}
