/* The private interface between the files of conversations. Must not know: rows of loaders (chats_pack.c).
 * Read next: chats.c. */
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
    bool ends; /* the end-of-text token follows, and is learned */
} weft__chat_line;

/* Reads a line of JSON. `where` stands in messages, such as "chats.jsonl:3". The caller frees line->text. */
weft_status weft__chat_line_read(weft_context *ctx, const char *where, const char *text, size_t bytes,
                                 const weft_chat_template *chat, weft__chat_line *line);

#endif
