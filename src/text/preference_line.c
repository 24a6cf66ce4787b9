/* Reads a line of preferences: the text of the chosen answer and that of the rejected one, each after the
 * prompt. Must not know: tokens. Read next: chat_line.c, preferences.c. */
#include <string.h>

#include "text/chats.h"

static const char *const side_names[2] = {"chosen", "rejected"};

static weft_status pair_fail(const weft__line_reading *r, int side, const char *what) {
    return weft__fail(r->ctx, WEFT_ERR_FORMAT, "%s: \"%s\": %s", r->where, side_names[side], what);
}

/* ---- texts ---- */

/* Returns how many bytes of the texts are the prompt: those that both begin with. A word that only begins
 * alike does not count, nor does the space before it. So tokens that hold a space and a word stay whole. */
static size_t common_text(const json_t *const sides[2]) {
    const char *a = json_string_value(sides[0]), *b = json_string_value(sides[1]);
    size_t most = json_string_length(sides[0]), at = 0;
    if (json_string_length(sides[1]) < most) most = json_string_length(sides[1]);
    while (at < most && a[at] == b[at]) at++;
    while (at > 0 && a[at - 1] != ' ' && a[at - 1] != '\n') at--;
    while (at > 0 && a[at - 1] == ' ') at--;
    return at;
}

/* prompt NULL: the texts have the same beginning. */
static weft_status take_texts(weft__line_reading *r, const json_t *prompt, const json_t *const sides[2]) {
    const size_t common = prompt ? 0 : common_text(sides);
    for (int i = 0; i < 2; i++, r->out++) {
        const char *text = json_string_value(sides[i]);
        const size_t bytes = json_string_length(sides[i]);
        if (bytes == common) return pair_fail(r, i, "the answer is empty: give a text, or remove the line");
        WEFT_TRY(prompt
                     ? weft__line_texts(r, json_string_value(prompt), json_string_length(prompt), text, bytes)
                     : weft__line_texts(r, text, common, text + common, bytes - common));
    }
    return WEFT_OK;
}

/* ---- messages ---- */

/* Returns how many messages both lists begin with. The last of each is an answer. */
static size_t common_messages(const json_t *const sides[2]) {
    size_t most = json_array_size(sides[0]), count = 0;
    if (json_array_size(sides[1]) < most) most = json_array_size(sides[1]);
    while (count + 1 < most && json_equal(json_array_get(sides[0], count), json_array_get(sides[1], count)))
        count++;
    return count;
}

static weft_status check_answers(const weft__line_reading *r, int side, const json_t *list, size_t first) {
    bool answers = false;
    for (size_t i = first; i < json_array_size(list); i++) {
        const json_t *message = json_array_get(list, i), *content = json_object_get(message, "content");
        const char *role = json_string_value(json_object_get(message, "role"));
        if (!role || strcmp(role, "assistant") != 0) continue;
        answers = true;
        if (json_is_string(content) && json_string_length(content) == 0)
            return pair_fail(r, side, "the answer is empty: give a text, or remove the line");
    }
    if (answers) return WEFT_OK;
    return pair_fail(r, side, "there is no answer: end the list with a message of the role assistant");
}

/* prompt NULL: the lists have the same beginning. */
static weft_status take_messages(weft__line_reading *r, const json_t *prompt, const json_t *const sides[2]) {
    const size_t common = prompt ? 0 : common_messages(sides);
    for (int i = 0; i < 2; i++, r->out++) {
        WEFT_TRY(check_answers(r, i, sides[i], common));
        WEFT_TRY(weft__line_messages(r, prompt, sides[i], common));
    }
    return WEFT_OK;
}

/* ---- the form ---- */

static weft_status take_pair(weft__line_reading *r, const json_t *object) {
    const json_t *prompt = json_object_get(object, "prompt");
    const json_t *const sides[2] = {json_object_get(object, "chosen"), json_object_get(object, "rejected")};
    for (int i = 0; i < 2; i++)
        if (!sides[i])
            return pair_fail(r, i, "missing: each line of preferences has \"chosen\" and \"rejected\"");
    const bool lists = json_is_array(sides[0]) && json_is_array(sides[1]),
               texts = json_is_string(sides[0]) && json_is_string(sides[1]);
    if (lists && (!prompt || json_is_array(prompt) || json_is_string(prompt)))
        return take_messages(r, json_is_array(prompt) ? prompt : NULL, sides);
    if (texts && (!prompt || json_is_string(prompt))) return take_texts(r, prompt, sides);
    return weft__line_fail(r,
                           "no pair that Weft knows: \"chosen\" and \"rejected\", and \"prompt\" if there is "
                           "one, are all texts, or all lists of messages");
}

weft_status weft__preference_line_read(weft_context *ctx, const char *where, const char *text, size_t bytes,
                                       const weft_chat_template *chat, weft__chat_line lines[2]) {
    weft__line_reading r = {ctx, where, chat, lines};
    for (int i = 0; i < 2; i++) lines[i] = (weft__chat_line){.text = {.ctx = ctx}};
    return weft__line_parse(&r, text, bytes, take_pair);
}
