/* The object behind include/weft/chat.h.
 * Must not know: files. Read next: chat.c, load.c. */
#ifndef WEFT_SRC_TEXT_TEMPLATE_CHAT_H
#define WEFT_SRC_TEXT_TEMPLATE_CHAT_H

#include <weft/chat.h>

#include "text/template/jinja.h"

struct weft_chat_template {
    weft_context *ctx;
    jinja_program program;
    jinja_run store;       /* owns the variables */
    jinja_value variables; /* a dict */
};

/* Sets a variable to a text of `bytes` bytes. */
weft_status weft__chat_set(weft_chat_template *chat, const char *variable, const char *text, size_t bytes);

/* Copies the chat template of a folder, as its files write it. Free *text with weft__free; NULL: the folder
 * has none. */
weft_status weft__chat_template_text(weft_context *ctx, const char *folder, char **text, size_t *bytes);

#endif
