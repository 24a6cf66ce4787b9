/* Conversations as training data: JSON lines become tokens, and tokens become rows for a loader. Training
 * learns the answers alone.
 *
 *     weft_chats *chats;
 *     weft_array x, y;
 *     weft_chats_read(ctx, "chats.jsonl", tokenizer, template, &chats);
 *     weft_chats_pack(chats, NULL, 0, 512, &x, &y, NULL);
 *     weft_loader_new(ctx, &x, &y, &(weft_loader_options){.batch = 4, .skip_negative = true}, &loader);
 *
 * Each line of a file is an object in one of these forms. Other keys of the first form, such as "tools", are
 * variables of the chat template; the other forms ignore them.
 *
 *     {"messages": [{"role": "user", "content": "..."}, {"role": "assistant", "content": "..."}]}
 *     {"conversations": [{"from": "human", "value": "..."}, {"from": "gpt", "value": "..."}]}   ShareGPT
 *     {"prompt": ..., "completion": ...}    two lists of messages, or two texts without a chat template
 *     {"text": "..."}                       a text, all of which is learned
 *
 * Of messages, those of the role assistant are learned, with the token that ends them; of the third form only
 * those of the completion. Texts get the special tokens that weft_tokenizer_encode_special puts around them,
 * such as <s>, and the end-of-text token. */
#ifndef WEFT_CHATS_H
#define WEFT_CHATS_H

#include <weft/array.h>
#include <weft/chat.h>
#include <weft/text.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_chats weft_chats;

/* Reads a file of JSON lines, plain or packed with gzip, or a Parquet file, whose columns are the keys of an
 * object (weft_corpus_open tells which library this needs). A folder or a pattern names several files. Empty
 * lines are skipped. `chat` may be NULL if no line has messages.
 *
 * WEFT_ERR_FORMAT names file and line: what is malformed, a form that Weft does not know, or a template that
 * does not fit. WEFT_ERR_ARGUMENT: a line has messages, but there is no template. */
WEFT_API WEFT_CHECKED weft_status weft_chats_read(weft_context *ctx, const char *path,
                                                  const weft_tokenizer *tokenizer,
                                                  const weft_chat_template *chat, weft_chats **out);

/* NULL is allowed. */
WEFT_API void weft_chats_free(weft_chats *chats);

/* The number of conversations. */
WEFT_API int64_t weft_chats_count(const weft_chats *chats);

/* The tokens of conversation i, and for each whether it is learned; valid as long as `chats`. *count is 0 if
 * there is no conversation i. */
WEFT_API const int32_t *weft_chats_tokens(const weft_chats *chats, int64_t i, const bool **learned,
                                          size_t *count);

/* A hash that changes when a token changes, or whether one is learned. */
WEFT_API uint64_t weft_chats_hash(const weft_chats *chats);

/* What packing did. */
typedef struct weft_chats_packed {
    int64_t tokens, learned; /* tokens that are predicted or read, and those of them that are learned */
    int64_t cut;             /* conversations that were longer than a row and lost their end */
    int64_t dropped;         /* conversations of which no learned token fits in a row */
    int64_t same;            /* pairs of preferences whose answers are equal, of which nothing is learned */
} weft_chats_packed;

/* Packs conversations chosen[0..n) into rows of `context` tokens, each row as full as it gets (best fit, the
 * longest first). chosen NULL: all conversations. The caller frees *x and *y with weft_array_free.
 *
 * x is i32 (N, 2, context): the tokens of a row, and for each token the place in the row where its
 * conversation begins. A gpt takes such inputs: a token sees only its own conversation. y is i32 (N,
 * context): the next token where it is learned, else -1.
 *
 * WEFT_ERR_ARGUMENT: context is below 1, there is no such conversation, or no row has a learned token. */
WEFT_API WEFT_CHECKED weft_status weft_chats_pack(const weft_chats *chats, const int64_t *chosen, int64_t n,
                                                  int64_t context, weft_array *x, weft_array *y,
                                                  weft_chats_packed *packed);

#ifdef __cplusplus
}
#endif
#endif
