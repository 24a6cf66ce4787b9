/* The private interface between the files of conversations and preferences. Must not know: rows of loaders
 * (chats_pack.c, preferences_pack.c). Read next: chats.c. */
#ifndef WEFT_SRC_TEXT_CHATS_H
#define WEFT_SRC_TEXT_CHATS_H

#include <weft/chats.h>

#include "base/json.h"

struct weft_chats {
    weft_context *ctx;
    int32_t *tokens; /* of all conversations, one after the other */
    bool *learned;   /* of each token */
    size_t count, token_room, learned_room;
    size_t *ends; /* [n]: the end of each conversation in tokens */
    size_t n, end_room;
};

/* A line of a file, as a text and the ranges of it that are learned. */
typedef struct weft__chat_line {
    weft_chat_text text;
    bool plain; /* no chat template has written it: it gets the special tokens that belong around a text, and
                   the end-of-text token, which is learned */
} weft__chat_line;

/* Reads a line of JSON as one text or more. `where` stands in messages, such as "chats.jsonl:3". The caller
 * frees the text of each line, also after a failure. */
typedef weft_status (*weft__line_fn)(weft_context *ctx, const char *where, const char *text, size_t bytes,
                                     const weft_chat_template *chat, weft__chat_line *lines);

weft_status weft__chat_line_read(weft_context *ctx, const char *where, const char *text, size_t bytes,
                                 const weft_chat_template *chat, weft__chat_line *line);
/* The chosen and the rejected answer, each after the prompt. */
weft_status weft__preference_line_read(weft_context *ctx, const char *where, const char *text, size_t bytes,
                                       const weft_chat_template *chat, weft__chat_line lines[2]);

enum { WEFT__LINE_TEXTS = 2 };

/* Reads a file whose lines are `each` texts, at most WEFT__LINE_TEXTS. Of the arguments only `chat` may be
 * NULL. *out is NULL before. */
weft_status weft__chats_read(weft_context *ctx, const char *path, const weft_tokenizer *tokenizer,
                             const weft_chat_template *chat, weft__line_fn read, int each, weft_chats **out);

/* ---- chat_line.c, for preference_line.c ---- */

/* What a line becomes. */
typedef struct weft__line_reading {
    weft_context *ctx;
    const char *where;
    const weft_chat_template *chat;
    weft__chat_line *out;
} weft__line_reading;

/* Parses a line, which must be an object, and calls `take` with it. */
weft_status weft__line_parse(weft__line_reading *r, const char *text, size_t bytes,
                             weft_status (*take)(weft__line_reading *r, const json_t *object));
weft_status weft__line_fail(const weft__line_reading *r, const char *what);
/* Makes the text of two parts, of which the second is learned. */
weft_status weft__line_texts(const weft__line_reading *r, const char *first, size_t first_bytes,
                             const char *second, size_t second_bytes);
/* A list of messages after the messages of a prompt, which may be NULL. Only its answers are learned, without
 * those among its first `known` messages. */
weft_status weft__line_messages(const weft__line_reading *r, const json_t *prompt, const json_t *messages,
                                size_t known);

#endif
