/* Chat templates: conversations as variables of a template, and the ranges of the answers.
 *
 * Must not know: how templates run. Read next: load.c, run.c. */
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "text/template/chat.h"

/* ---- templates ---- */

weft_status weft_chat_template_new(weft_context *ctx, const char *source, size_t bytes, const char *name,
                                   weft_chat_template **out) {
    WEFT_NEED(ctx, out);
    *out = NULL;
    WEFT_NEED_ARRAY(ctx, source, bytes);
    WEFT_NEED(ctx, name);
    weft_chat_template *chat = weft__zalloc(ctx, sizeof *chat);
    if (!chat) return weft__fail_oom(ctx, sizeof *chat, "a chat template");
    chat->ctx = ctx;
    weft__jinja_open(&chat->store, NULL, ctx, 0);
    weft_status status = weft__jinja_parse(&chat->program, ctx, name, source ? source : "", bytes);
    if (status == WEFT_OK) status = weft__jinja_dict(&chat->store, JINJA_DICT, &chat->variables);
    if (status != WEFT_OK) {
        weft_chat_template_free(chat);
        return status;
    }
    *out = chat;
    return WEFT_OK;
}

void weft_chat_template_free(weft_chat_template *chat) {
    if (!chat) return;
    weft__jinja_close(&chat->store);
    weft__jinja_free(&chat->program);
    weft__free(chat->ctx, chat);
}

weft_status weft__chat_set(weft_chat_template *chat, const char *variable, const char *text, size_t bytes) {
    jinja_run *store = &chat->store;
    const size_t name_bytes = strlen(variable);
    char *name = weft__jinja_take(store, name_bytes), *copy = name ? weft__jinja_take(store, bytes) : NULL;
    if (!copy) return store->status;
    memcpy(name, variable, name_bytes);
    memcpy(copy, text, bytes);
    const jinja_value key = weft__jinja_text(name, name_bytes), value = weft__jinja_text(copy, bytes);
    return weft__jinja_put(store, chat->variables.as.dict, &key, &value);
}

weft_status weft_chat_template_set(weft_chat_template *chat, const char *variable, const char *text) {
    WEFT_NEED(NULL, chat);
    WEFT_NEED(chat->ctx, variable);
    WEFT_NEED(chat->ctx, text);
    return weft__chat_set(chat, variable, text, strlen(text));
}

const char *weft_chat_template_source(const weft_chat_template *chat, size_t *bytes) {
    if (bytes) *bytes = chat ? chat->program.bytes : 0;
    return chat ? chat->program.source : NULL;
}

void weft_chat_text_free(weft_chat_text *text) {
    if (!text) return;
    weft__free(text->ctx, text->text);
    weft__free(text->ctx, text->answers);
    *text = (weft_chat_text){0};
}

/* ---- conversations ---- */

/* A conversation as values. `run` owns them. */
typedef struct chat_input {
    jinja_run run;
    jinja_value messages, variables; /* a list, and a dict */
    weft_chat_options options;
} chat_input;

static bool is_role(const jinja_value *message, const char *role) {
    const jinja_dict *dict = message->as.dict;
    for (size_t i = 0; i < dict->count; i++)
        if (weft__jinja_same(dict->pairs[i].key.as.string, "role"))
            return dict->pairs[i].value.kind == JINJA_STRING &&
                   weft__jinja_same(dict->pairs[i].value.as.string, role);
    return false;
}

/* Leaves out keys that are null. transformers gives reasoning, which has three names, under two of them:
 * "thinking" first, unless the message has it, and "reasoning_content". */
static weft_status tidy_message(jinja_run *run, jinja_value *message) {
    static const char *const names[] = {"reasoning_content", "thinking", "reasoning"};
    const jinja_dict *from = message->as.dict;
    jinja_value tidy, reasoning = weft__jinja_none();
    jinja_pair *pair;
    WEFT_TRY(weft__jinja_dict(run, JINJA_DICT, &tidy));
    for (size_t i = 0; i < sizeof names / sizeof *names && reasoning.kind == JINJA_NONE; i++) {
        const jinja_value key = weft__jinja_text(names[i], strlen(names[i]));
        WEFT_TRY(weft__jinja_find(run, from, &key, &pair));
        if (pair) reasoning = pair->value;
    }
    const jinja_value thinking = weft__jinja_text("thinking", 8),
                      content = weft__jinja_text("reasoning_content", 17);
    if (reasoning.kind != JINJA_NONE) WEFT_TRY(weft__jinja_add(run, tidy.as.dict, &thinking, &reasoning));
    for (size_t i = 0; i < from->count; i++)
        if (from->pairs[i].value.kind != JINJA_NONE)
            WEFT_TRY(weft__jinja_put(run, tidy.as.dict, &from->pairs[i].key, &from->pairs[i].value));
    if (reasoning.kind != JINJA_NONE) WEFT_TRY(weft__jinja_put(run, tidy.as.dict, &content, &reasoning));
    *message = tidy;
    return WEFT_OK;
}

static weft_status read_root(chat_input *c, jinja_value *root) {
    jinja_run *run = &c->run;
    const jinja_value key = weft__jinja_text("messages", 8);
    c->messages = *root;
    if (root->kind == JINJA_DICT) {
        jinja_pair *pair;
        c->variables = *root;
        WEFT_TRY(weft__jinja_find(run, root->as.dict, &key, &pair));
        c->messages = pair ? pair->value : weft__jinja_none();
    } else {
        WEFT_TRY(weft__jinja_dict(run, JINJA_DICT, &c->variables));
    }
    if (c->messages.kind != JINJA_LIST)
        return weft__fail(run->ctx, WEFT_ERR_FORMAT,
                          "conversation: must be a list of messages, or an object with a list 'messages'");
    for (size_t i = 0; i < c->messages.as.list->count; i++) {
        jinja_value *message = &c->messages.as.list->items[i];
        if (message->kind != JINJA_DICT)
            return weft__fail(run->ctx, WEFT_ERR_FORMAT, "conversation: message %zu must be an object", i);
        WEFT_TRY(tidy_message(run, message));
    }
    return WEFT_OK;
}

/* Reads the JSON of a conversation. Close c->run, whatever happens. */
static weft_status read_conversation(chat_input *c, const weft_chat_template *chat, const char *text,
                                     size_t bytes, const weft_chat_options *options) {
    weft__json json;
    json_error_t error;
    json_t *tree;
    jinja_value root;
    *c = (chat_input){.options = options ? *options : (weft_chat_options){0}};
    if (c->options.time == 0) c->options.time = (int64_t)time(NULL);
    weft__jinja_open(&c->run, NULL, chat->ctx, 0);
    weft__json_open(&json, chat->ctx);
    weft_status status = weft__json_load(&json, text, bytes, JSON_ALLOW_NUL, &error, &tree);
    if (status == WEFT_ERR_FORMAT)
        status = weft__fail(chat->ctx, status, "conversation: line %d, byte %d: %.160s", error.line,
                            error.position, error.text);
    if (status == WEFT_OK) status = weft__jinja_from_json(&c->run, tree, &root);
    weft__json_close(&json);
    return status == WEFT_OK ? read_root(c, &root) : status;
}

/* ---- rendering ---- */

static weft_status define(jinja_run *run, const char *name, const jinja_value *value) {
    return weft__jinja_define(run, weft__jinja_literal(name), value);
}

static weft_status define_all(jinja_run *run, const jinja_dict *variables) {
    for (size_t i = 0; i < variables->count; i++)
        WEFT_TRY(weft__jinja_define(run, variables->pairs[i].key.as.string, &variables->pairs[i].value));
    return WEFT_OK;
}

/* Renders the first `count` messages. Close the run, whatever happens. */
static weft_status render_some(const weft_chat_template *chat, const chat_input *c, size_t count, bool prompt,
                               bool tracks, jinja_run *run) {
    const jinja_value none = weft__jinja_none(), add = weft__jinja_bool(prompt);
    jinja_list some = {.items = c->messages.as.list->items, .count = count, .capacity = count};
    const jinja_value messages = {.kind = JINJA_LIST, .as.list = &some};
    weft__jinja_open(run, &chat->program, chat->ctx, c->options.time);
    run->tracks = tracks;
    WEFT_TRY(define(run, "tools", &none));
    WEFT_TRY(define(run, "documents", &none));
    WEFT_TRY(define_all(run, chat->variables.as.dict));
    WEFT_TRY(define_all(run, c->variables.as.dict));
    WEFT_TRY(define(run, "messages", &messages));
    WEFT_TRY(define(run, "add_generation_prompt", &add));
    return weft__jinja_render(run);
}

static weft_status copy_text(const weft_chat_template *chat, const jinja_run *run, weft_chat_text *out) {
    const size_t bytes = run->result.bytes;
    out->text = weft__alloc(chat->ctx, bytes + 1);
    if (!out->text) return weft__fail_oom(chat->ctx, bytes + 1, "the text of a conversation");
    if (bytes) memcpy(out->text, run->result.text, bytes);
    out->text[bytes] = '\0';
    out->bytes = bytes;
    return WEFT_OK;
}

/* ---- answers ---- */

static weft_status add_answer(const weft_chat_template *chat, weft_chat_text *out, size_t *capacity,
                              size_t begin, size_t end) {
    if (!weft__grow(chat->ctx, &out->answers, capacity, out->answer_count, sizeof *out->answers))
        return weft__fail_oom(chat->ctx, (out->answer_count + 1) * sizeof *out->answers,
                              "the ranges of answers");
    out->answers[out->answer_count++] = (weft_chat_range){begin, end};
    return WEFT_OK;
}

/* Writes the first messages, which must be the begin of the whole text, and gives their length. */
static weft_status measure(const weft_chat_template *chat, const chat_input *c, size_t count, bool prompt,
                           const weft_chat_text *whole, size_t *bytes) {
    jinja_run run;
    weft_status status = render_some(chat, c, count, prompt, false, &run);
    *bytes = run.result.bytes;
    if (status == WEFT_OK &&
        (*bytes > whole->bytes || (*bytes && memcmp(run.result.text, whole->text, *bytes) != 0)))
        status = weft__fail(
            chat->ctx, WEFT_ERR_UNSUPPORTED,
            "%s: the text of the first %zu messages%s is not the begin of the text of all messages, so the "
            "answers cannot be told apart. Give conversations with one answer, or a template with "
            "{%% generation %%} blocks",
            chat->program.name, count, prompt ? " with a generation prompt" : "");
    weft__jinja_close(&run);
    return status;
}

static weft_status compare_answers(const weft_chat_template *chat, const chat_input *c, weft_chat_text *out) {
    const jinja_list *messages = c->messages.as.list;
    size_t capacity = 0, last = 0;
    for (size_t i = 0; i < messages->count; i++) {
        size_t begin, end;
        if (!is_role(&messages->items[i], "assistant")) continue;
        WEFT_TRY(measure(chat, c, i, true, out, &begin));
        WEFT_TRY(measure(chat, c, i + 1, false, out, &end));
        if (begin < last || end < begin)
            return weft__fail(chat->ctx, WEFT_ERR_UNSUPPORTED,
                              "%s: message %zu makes the text shorter, so the answers cannot be told apart",
                              chat->program.name, i);
        WEFT_TRY(add_answer(chat, out, &capacity, begin, end));
        last = end;
    }
    return WEFT_OK;
}

static weft_status render(const weft_chat_template *chat, const char *text, size_t bytes,
                          const weft_chat_options *options, bool answers, weft_chat_text *out) {
    chat_input c;
    jinja_run run;
    size_t capacity = 0;
    const bool tracks = answers && chat->program.has_generations;
    weft_status status = read_conversation(&c, chat, text, bytes, options);
    if (status == WEFT_OK) {
        status =
            render_some(chat, &c, c.messages.as.list->count, c.options.add_generation_prompt, tracks, &run);
        if (status == WEFT_OK) status = copy_text(chat, &run, out);
        for (size_t i = 0; status == WEFT_OK && i < run.generation_count; i++)
            status = add_answer(chat, out, &capacity, run.generations[i].begin, run.generations[i].end);
        weft__jinja_close(&run);
    }
    if (status == WEFT_OK && answers && !tracks) status = compare_answers(chat, &c, out);
    weft__jinja_close(&c.run);
    if (status != WEFT_OK) weft_chat_text_free(out);
    return status;
}

weft_status weft_chat_template_render(const weft_chat_template *chat, const char *conversation, size_t bytes,
                                      const weft_chat_options *options, weft_chat_text *out) {
    WEFT_NEED(chat ? chat->ctx : NULL, out);
    *out = (weft_chat_text){0};
    WEFT_NEED(NULL, chat);
    WEFT_NEED(chat->ctx, conversation);
    WEFT_NEED_ARRAY(chat->ctx, conversation, bytes);
    out->ctx = chat->ctx;
    return render(chat, conversation, bytes, options, false, out);
}

weft_status weft_chat_template_answers(const weft_chat_template *chat, const char *conversation, size_t bytes,
                                       const weft_chat_options *options, weft_chat_text *out) {
    WEFT_NEED(chat ? chat->ctx : NULL, out);
    *out = (weft_chat_text){0};
    WEFT_NEED(NULL, chat);
    WEFT_NEED(chat->ctx, conversation);
    WEFT_NEED_ARRAY(chat->ctx, conversation, bytes);
    out->ctx = chat->ctx;
    return render(chat, conversation, bytes, options, true, out);
}
