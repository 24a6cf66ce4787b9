/* Preferences as training data: pairs of a chosen and a rejected answer. A gpt learns from them by direct
 * preference optimization (DPO; Rafailov et al. 2023).
 *
 *     weft_chats *pairs;
 *     weft_array x, y, reference;
 *     weft_preferences_read(ctx, "pairs.jsonl", tokenizer, template, &pairs);
 *     weft_preferences_pack(pairs, NULL, 0, 512, &x, &y, NULL);
 *     weft_loader_new(ctx, &x, &y, &(weft_loader_options){.batch = 4, .in_order = true}, &in_order);
 *     weft_preferences_reference(gpt, in_order, &reference);
 *     weft_loader_new(ctx, &x, &y, &(weft_loader_options){.batch = 4, .extra = &reference}, &loader);
 *     weft_fit(gpt, optimizer, loader, &(weft_fit_options){.loss = WEFT_LOSS_DPO, .epochs = 1}, NULL);
 *
 * Each line of a file is an object in one of these forms:
 *
 *     {"prompt": ..., "chosen": ..., "rejected": ...}   three lists of messages, or three texts
 *     {"chosen": ..., "rejected": ...}                  two lists, or two texts, with the same beginning
 *
 * In the second form the prompt is what both begin with. A "prompt" that is a text beside two lists of
 * messages is ignored. Of messages, the answers of the assistant after the prompt count, with the token that
 * ends them. Of texts, what follows the prompt counts, with the tokenizer's end-of-text token. */
#ifndef WEFT_PREFERENCES_H
#define WEFT_PREFERENCES_H

#include <weft/chats.h>
#include <weft/fit.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Tells whether the first line of a file of JSON lines, plain or packed with gzip, has the keys "chosen" and
 * "rejected"; or whether a Parquet file has such columns and a row. */
WEFT_API bool weft_preferences_is(const char *path);

/* Reads a file as weft_chats_read does. Conversation 2 i of the result is the chosen one of pair i,
 * conversation 2 i + 1 the rejected one.
 *
 * WEFT_ERR_FORMAT names file and line, also of an empty answer. */
WEFT_API WEFT_CHECKED weft_status weft_preferences_read(weft_context *ctx, const char *path,
                                                        const weft_tokenizer *tokenizer,
                                                        const weft_chat_template *chat, weft_chats **out);

/* Gives each of the pairs chosen[0..n) a row, with the chosen conversation first. chosen NULL: all pairs. A
 * row has as many tokens as the longest pair, but at most `context`. In a longer pair, the longer
 * conversation loses its end until both fit, or both lose theirs until each has a half. A pair that keeps no
 * answer of one side is dropped. The caller frees *x and *y with weft_array_free. packed->tokens and learned
 * count both sides, cut and dropped count pairs.
 *
 * x is i32 (N, 2, T), as weft_chats_pack makes it. y is i32 (N, 2, T). In y[..., 0, :] are the next tokens of
 * the chosen answer, in y[..., 1, :] those of the rejected one. Elsewhere y is -1.
 *
 * WEFT_ERR_ARGUMENT: context is below 2, there is no such pair, or all are dropped. */
WEFT_API WEFT_CHECKED weft_status weft_preferences_pack(const weft_chats *pairs, const int64_t *chosen,
                                                        int64_t n, int64_t context, weft_array *x,
                                                        weft_array *y, weft_chats_packed *packed);

/* Computes the log-probabilities of both answers of each pair by the model as it is now, in evaluation mode.
 * The loader has the rows of weft_preferences_pack in order. *reference is f32 (N, 2), the `extra` of the
 * loader that trains. The caller frees it with weft_array_free.
 *
 * WEFT_ERR_STOPPED between two batches if the context was interrupted. */
WEFT_API WEFT_CHECKED weft_status weft_preferences_reference(weft_module *gpt, weft_loader *loader,
                                                             weft_array *reference);

/* How far a model follows preferences. The reward of an answer is beta times what its log-probability gained
 * since the reference. */
typedef struct weft_preference_scores {
    double loss;     /* mean DPO loss, without label smoothing */
    double accuracy; /* fraction of pairs whose chosen answer has the higher reward */
    double margin;   /* mean difference of the two rewards */
} weft_preference_scores;

/* Measures the model on all pairs of a loader with `extra`, in evaluation mode. beta 0: 0.1.
 *
 * WEFT_ERR_STOPPED as above. */
WEFT_API WEFT_CHECKED weft_status weft_preferences_evaluate(weft_module *gpt, weft_loader *loader,
                                                            double beta, weft_preference_scores *scores);

#ifdef __cplusplus
}
#endif
#endif
