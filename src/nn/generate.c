/* Generates text with a key/value cache, one token at a time. Must not know: where the text goes. Read next:
 * generation.c, decode.c. */
#include <string.h>

#include "nn/module.h"
#include "nn/speculate.h"

static weft_status generate_run(weft__generation *g, weft_decode_state *cache, float *logits) {
    if (g->options->keep_cache)
        g->fed = weft_decode_state_keep(cache, g->ids, g->count - 1); /* the last one gives the logits */
    else
        weft_decode_state_reset(cache);
    WEFT_TRY(weft__generation_begin(g));
    if (g->options->draft) WEFT_TRY(weft__speculate(g, cache));
    while (!g->over) {
        WEFT_TRY(weft__generation_feed(g, cache, logits));
        WEFT_TRY(weft__generation_take(g, logits));
    }
    return weft__generation_finish(g);
}

weft_status weft_generate(weft_decode_state *cache, const weft_tokenizer *tokenizer,
                          const weft_generate_options *options, weft_text_fn emit, void *user) {
    static const weft_generate_options defaults = {0};
    WEFT_NEED(NULL, cache);
    weft_context *ctx = weft__gpt_cache_context(cache);
    const int64_t rows = weft__gpt_cache_vocab(cache);
    weft__generation g;
    WEFT_NEED(ctx, emit);
    float *logits = weft__array(ctx, (size_t)rows, sizeof *logits);
    weft_status status =
        weft__generation_open(&g, ctx, rows, tokenizer, options ? options : &defaults, emit, user);
    if (status == WEFT_OK && !logits)
        status = weft__fail_oom(ctx, (size_t)rows * sizeof *logits, "generating");
    if (status == WEFT_OK) status = generate_run(&g, cache, logits);
    weft__generation_close(&g);
    weft__free(ctx, logits);
    if (status == WEFT_OK || g.refused) return status;
    return weft__fail(ctx, status, "%s", weft_last_error(NULL)); /* the tokenizer may be of another context */
}
