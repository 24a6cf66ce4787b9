/* Chat templates of published models: from a conversation to the text that a model was trained on.
 *
 * A chat template is a program in the language Jinja. Weft runs the part of Jinja that published templates
 * use, with the results of the Python package transformers. docs/text.md lists that part. A template is not
 * trusted: it cannot read files, and Weft limits its time and memory.
 *
 * The context of each function may be NULL. It serves only memory and errors. Only one thread at a time may
 * use a template. Free a template before its context. */
#ifndef WEFT_CHAT_H
#define WEFT_CHAT_H

#include <weft/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_chat_template weft_chat_template;

/* Parses a template of `bytes` bytes of UTF-8. `name` stands in messages.
 *
 * WEFT_ERR_UNSUPPORTED names what the template uses and Weft does not support, and what is supported.
 * WEFT_ERR_FORMAT names an error of the template. Both name line and column. */
WEFT_API WEFT_CHECKED weft_status weft_chat_template_new(weft_context *ctx, const char *source, size_t bytes,
                                                         const char *name, weft_chat_template **out);

/* Reads the template of a model from a folder of Hugging Face: the file chat_template.jinja, else
 * chat_template of tokenizer_config.json. If that is a list of templates, the one with the name "default" is
 * read.
 *
 * The tokens that tokenizer_config.json and special_tokens_map.json name become variables, such as bos_token.
 * WEFT_ERR_IO: a file cannot be read, or the folder has no template. Other errors are those of
 * weft_chat_template_new. */
WEFT_API WEFT_CHECKED weft_status weft_chat_template_load(weft_context *ctx, const char *folder,
                                                          weft_chat_template **out);

/* NULL is allowed. */
WEFT_API void weft_chat_template_free(weft_chat_template *chat);

/* Sets a variable of the template to a text, such as bos_token to "<s>". */
WEFT_API WEFT_CHECKED weft_status weft_chat_template_set(weft_chat_template *chat, const char *variable,
                                                         const char *text);

/* The source of the template, with "\n" as the only newline and none at the end. It is valid as long as the
 * template. */
WEFT_API const char *weft_chat_template_source(const weft_chat_template *chat, size_t *bytes);

typedef struct weft_chat_options {
    bool add_generation_prompt; /* end with the begin of an answer, for a model that continues the text */
    int64_t time; /* what strftime_now tells, in UTC: seconds since 1970; 0: the time of the call */
} weft_chat_options;

typedef struct weft_chat_range {
    size_t begin, end; /* bytes of a text; `end` is not part of the range */
} weft_chat_range;

typedef struct weft_chat_text {
    char *text; /* UTF-8, ended by NUL */
    size_t bytes;
    weft_chat_range *answers; /* only of weft_chat_template_answers, in the order of the text */
    size_t answer_count;
    weft_context *ctx; /* owns the memory */
} weft_chat_text;

/* Writes a conversation as text. `conversation` is JSON of `bytes` bytes: the list of messages,
 *
 *     [{"role": "user", "content": "Hello"}, ...]
 *
 * or an object with such a list as "messages". Its other keys, such as "tools", are variables of the
 * template. As in transformers, keys of a message that are null are left out. options may be NULL.
 *
 * WEFT_ERR_FORMAT: the JSON is malformed, or the template does not work with these messages.
 * WEFT_ERR_ARGUMENT: the template refuses the conversation; the message has its reason.
 * WEFT_ERR_UNSUPPORTED: the template needs something that Weft does not support, or exceeds a limit.
 * Free *out with weft_chat_text_free. */
WEFT_API WEFT_CHECKED weft_status weft_chat_template_render(const weft_chat_template *chat,
                                                            const char *conversation, size_t bytes,
                                                            const weft_chat_options *options,
                                                            weft_chat_text *out);

/* The same, and the ranges of the text that are answers of the assistant, for training on answers alone.
 *
 * If the template has {% generation %} blocks, these are the answers. Otherwise Weft writes the conversation
 * up to each message of role "assistant", once without the message (and with add_generation_prompt), and once
 * with it. The answer is the difference. WEFT_ERR_UNSUPPORTED: the shorter text is not the begin of the
 * longer one, because the template changes earlier text. */
WEFT_API WEFT_CHECKED weft_status weft_chat_template_answers(const weft_chat_template *chat,
                                                             const char *conversation, size_t bytes,
                                                             const weft_chat_options *options,
                                                             weft_chat_text *out);

/* Frees the memory of a text and empties it. NULL is allowed. Free a text before the context of its template.
 */
WEFT_API void weft_chat_text_free(weft_chat_text *text);

#ifdef __cplusplus
}
#endif
#endif
