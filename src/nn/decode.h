/* The inside of a weft_decode_state, which decode.c makes and feeds. Must not know: sampling. Read next:
 * decode.c, decode_many.c. */
#ifndef WEFT_SRC_NN_DECODE_H
#define WEFT_SRC_NN_DECODE_H

#include "nn/module.h"
#include "nn/recurrent.h"

enum { WEFT__LEAST_PROMPT = 16 }; /* tokens to which weft_gpt_feed pads a prompt, at least */

struct weft_decode_state {
    weft_tombstone tombstone;
    weft_context *ctx;
    weft_module *gpt; /* NULL after it was freed; then only the tombstone is left */
    int64_t length, capacity, layers;
    uint64_t identity;
    weft__decode *steps; /* [layers] */
    weft_states states;  /* states of a recurrent model, used instead of steps */
    int64_t vocab;
    int32_t *fed; /* [capacity] the tokens in the cache; NULL of a recurrent model */
    /* Of the blocks that follow on another device, see weft__gpt_cache_link; NULL: none. Its length is that
     * of this cache. */
    weft_decode_state *next;
};

/* Checks `count` tokens that a function called `name` shall append to a cache. */
weft_status weft__gpt_feed_check(const weft_decode_state *cache, const char *name, const int32_t *tokens,
                                 int64_t count, const float *logits);

/* Records a step of decoding: logits in f32, or what the next cache needs. texts: the caches of step->texts,
 * whose positions are set. */
weft_tensor *weft__gpt_record(weft_decode_state *const *texts, const weft__decode_step *step,
                              weft_tensor *tokens);

/* Computes recorded logits or hidden states, and updates the caches. values: room for them. */
weft_status weft__gpt_run(weft_decode_state *const *texts, int64_t count, weft_tensor *out, void *values);

/* Computes the recorded hidden states that the caches pass on, and copies them to the next device, by way of
 * the host. A scope of its context must be open. */
weft_status weft__gpt_pass(weft_decode_state *const *texts, int64_t count, weft_tensor *hidden,
                           weft_tensor **there);

#endif
