/* The messages of a conversation. Must not know: terminals. Read next: chat_turns.c. */
#ifndef WEFT_SRC_CLI_CHAT_TURNS_H
#define WEFT_SRC_CLI_CHAT_TURNS_H

#include <weft/chat.h>
#include <weft/text.h>

enum { WEFT__CHAT_ENDS = 16 };

/* Texts as JSON: messages without the brackets around them. */
typedef struct weft__turns {
    char **messages; /* [count] objects of JSON */
    size_t count, capacity;
    bool system; /* the first message has the role "system" */
} weft__turns;

/* Adds a message. */
weft_status weft__turns_add(weft__turns *turns, const char *role, const char *text, size_t bytes);
/* Makes a text the system message, before all others; "" removes it. */
weft_status weft__turns_system(weft__turns *turns, const char *text);
/* Removes all messages but the system message. */
void weft__turns_clear(weft__turns *turns);
/* Removes the oldest message of the user and its answer. Returns false if only the newest message is left. */
bool weft__turns_forget(weft__turns *turns);
void weft__turns_free(weft__turns *turns);

/* Writes the conversation as the model reads it, up to the begin of an answer. */
weft_status weft__turns_render(const weft__turns *turns, const weft_chat_template *chat,
                               weft_chat_text *text);
/* Writes the conversation to a file: {"weft": "chat", "messages": [...]} on one line. An existing file is
 * replaced only if it is such a conversation, and does not belong to the model. */
weft_status weft__turns_save(const weft__turns *turns, const char *model, const char *path);

/* Finds the tokens that end an answer: those of generation_config.json, and known ones, such as <|im_end|>,
 * that the template writes. Returns their number. */
size_t weft__turns_ends(const char *published, const weft_tokenizer *tokenizer,
                        const weft_chat_template *chat, int32_t ends[WEFT__CHAT_ENDS]);

#endif
