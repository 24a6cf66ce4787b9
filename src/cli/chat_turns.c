/* Keeps the messages of a conversation as JSON. Must not know: models. Read next: chat.c. */
#include <string.h>

#include <weft/data.h>
#include <weft/io.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/chat_turns.h"
#include "train/run/output.h"

#define CONFIG_MAX ((size_t)1 << 20) /* bytes of generation_config.json */

/* Makes a message: {"role": ..., "content": ...}. */
static weft_status message_of(const char *role, const char *text, size_t bytes, char **out) {
    weft__json json;
    weft__json_build(&json, NULL);
    json_t *content = json_stringn(text, bytes);
    if (!content && !json.starved) {
        weft__json_close(&json);
        return weft__fail(NULL, WEFT_ERR_FORMAT, "chat: the message is not UTF-8");
    }
    return weft__json_text(&json, json_pack("{s:s, s:o}", "role", role, "content", content), JSON_COMPACT,
                           "a message", out, NULL);
}

weft_status weft__turns_add(weft__turns *turns, const char *role, const char *text, size_t bytes) {
    if (!weft__grow(NULL, &turns->messages, &turns->capacity, turns->count, sizeof *turns->messages))
        return weft__fail_oom(NULL, sizeof *turns->messages, "a conversation");
    WEFT_TRY(message_of(role, text ? text : "", bytes, &turns->messages[turns->count]));
    turns->count++;
    return WEFT_OK;
}

/* Removes message i. */
static void turns_remove(weft__turns *turns, size_t i) {
    weft__free(NULL, turns->messages[i]);
    turns->count--;
    memmove(turns->messages + i, turns->messages + i + 1, (turns->count - i) * sizeof *turns->messages);
}

weft_status weft__turns_system(weft__turns *turns, const char *text) {
    if (turns->system) turns_remove(turns, 0);
    turns->system = false;
    if (!text[0]) return WEFT_OK;
    WEFT_TRY(weft__turns_add(turns, "system", text, strlen(text)));
    char *message = turns->messages[turns->count - 1];
    memmove(turns->messages + 1, turns->messages, (turns->count - 1) * sizeof *turns->messages);
    turns->messages[0] = message;
    turns->system = true;
    return WEFT_OK;
}

void weft__turns_clear(weft__turns *turns) {
    while (turns->count > (turns->system ? 1 : 0)) turns_remove(turns, turns->count - 1);
}

bool weft__turns_forget(weft__turns *turns) {
    const size_t first = turns->system ? 1 : 0;
    if (turns->count < first + 3) return false; /* a message, its answer, and the newest message */
    turns_remove(turns, first);
    turns_remove(turns, first);
    return true;
}

void weft__turns_free(weft__turns *turns) {
    for (size_t i = 0; i < turns->count; i++) weft__free(NULL, turns->messages[i]);
    weft__free(NULL, turns->messages);
    *turns = (weft__turns){0};
}

/* Joins the messages: [a, b, ...], between `before` and `after`. The caller frees *out with weft__free. */
static weft_status turns_join(const weft__turns *turns, const char *before, const char *after, char **out) {
    size_t bytes = strlen(before) + strlen(after) + 3;
    for (size_t i = 0; i < turns->count; i++) bytes += strlen(turns->messages[i]) + 2;
    char *joined = weft__alloc(NULL, bytes);
    if (!joined) return weft__fail_oom(NULL, bytes, "a conversation");
    weft_text text = weft__text(joined, bytes);
    weft__put(&text, "%s[", before);
    for (size_t i = 0; i < turns->count; i++) weft__put(&text, "%s%s", i ? ", " : "", turns->messages[i]);
    weft__put(&text, "]%s", after);
    *out = joined;
    return WEFT_OK;
}

weft_status weft__turns_render(const weft__turns *turns, const weft_chat_template *chat,
                               weft_chat_text *text) {
    char *messages;
    WEFT_TRY(turns_join(turns, "", "", &messages));
    const weft_status status = weft_chat_template_render(
        chat, messages, strlen(messages), &(weft_chat_options){.add_generation_prompt = true}, text);
    weft__free(NULL, messages);
    return status;
}

#define SAVED "{\"weft\": \"chat\", \"messages\": " /* the beginning of a saved conversation */

static bool wrote_turns(const char *path) { return weft__file_begins(path, SAVED); }

weft_status weft__turns_save(const weft__turns *turns, const char *model, const char *path) {
    weft__output output = {.command = "chat", .kept = true, .wrote = wrote_turns};
    char *line;
    weft__output_reads(&output, model);
    WEFT_TRY(weft__output_check(&output, path));
    WEFT_TRY(turns_join(turns, SAVED, "}\n", &line));
    const weft_status status = weft_write_file(NULL, path, line, strlen(line));
    weft__free(NULL, line);
    return status;
}

/* ---- the end of an answer ---- */

static size_t put_end(int64_t id, int32_t *ends, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (ends[i] == id) return count;
    if (id >= 0 && id <= INT32_MAX && count < WEFT__CHAT_ENDS) ends[count++] = (int32_t)id;
    return count;
}

/* Takes eos_token_id, a number or a list, of generation_config.json. A missing or malformed file has none. */
static size_t configured_ends(const char *published, int32_t *ends, size_t count) {
    char path[4096];
    weft_bytes file;
    weft__json json;
    json_error_t error;
    json_t *root, *one;
    size_t i;
    if (!weft__join(path, sizeof path, published, "generation_config.json") ||
        weft_read_file(NULL, path, CONFIG_MAX, &file) != WEFT_OK)
        return count;
    weft__json_open(&json, NULL);
    if (weft__json_load(&json, (const char *)file.data, file.size, JSON_DECODE_INT_AS_REAL, &error, &root) ==
        WEFT_OK) {
        json_t *ids = json_object_get(root, "eos_token_id");
        if (json_is_number(ids)) count = put_end((int64_t)json_number_value(ids), ends, count);
        json_array_foreach(ids, i, one) if (json_is_number(one)) count =
            put_end((int64_t)json_number_value(one), ends, count);
    }
    weft__json_close(&json);
    weft_bytes_free(NULL, &file);
    return count;
}

size_t weft__turns_ends(const char *published, const weft_tokenizer *tokenizer,
                        const weft_chat_template *chat, int32_t ends[WEFT__CHAT_ENDS]) {
    static const char *const known[] = {"<|im_end|>", "<|eot_id|>", "<|end|>", "<end_of_turn>",
                                        "<|endoftext|>"};
    size_t bytes = 0, count = configured_ends(published, ends, 0);
    const char *source = weft_chat_template_source(chat, &bytes);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const int32_t id = weft_tokenizer_id(tokenizer, known[i], strlen(known[i]));
        if (id >= 0 && weft_tokenizer_is_special(tokenizer, id) && source && strstr(source, known[i]))
            count = put_end(id, ends, count);
    }
    return count;
}
