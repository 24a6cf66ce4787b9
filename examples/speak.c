/* Trains a character GPT on a text file and lets it speak: corpus, loader, model, optimizer with a schedule,
 * and decoding with a key/value cache, written out as a loop of one's own.
 *
 *   speak FILE [STEPS]      default: 100 steps */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/weft.h>

enum { CONTEXT = 32, BATCH = 8, TOKENS = 120 };

static weft_status train(weft_context *ctx, weft_module *gpt, const weft_corpus *corpus, uint64_t steps) {
    size_t count;
    const int32_t *ids = weft_corpus_ids(corpus, WEFT_CORPUS_TRAIN, &count);
    weft_loader *loader;
    weft_status status =
        weft_loader_tokens(ctx, ids, count, CONTEXT, &(weft_loader_options){.batch = BATCH}, &loader);
    if (status != WEFT_OK) return status;
    weft_optimizer *adamw = weft_adamw(gpt, &(weft_adam_options){.lr = 3e-3, .weight_decay = 0.1, .clip = 1});
    status = weft_optimizer_schedule(
        adamw, &(weft_schedule){
                   .kind = WEFT_SCHEDULE_COSINE, .lr = 3e-3, .warmup = 10, .steps = steps, .min_lr = 3e-4});
    for (uint64_t step = 0; step < steps && status == WEFT_OK; step++) {
        weft_batch batch;
        weft_scope *scope = weft_scope_open(ctx);
        status = weft_loader_get(loader, step, &batch);
        if (status == WEFT_OK) {
            weft_tensor *logits = weft_forward(gpt, batch.x); /* (B, T, vocabulary) */
            weft_tensor *loss = weft_batch_loss(WEFT_LOSS_CROSS_ENTROPY, logits, &batch);
            status = weft_optimizer_step(adamw, loss);
            if (status == WEFT_OK && step % 20 == 0)
                printf("step %4llu  loss %.3f\n", (unsigned long long)step, weft_item(loss));
        }
        weft_scope_close(scope);
    }
    weft_loader_free(loader);
    return status;
}

static weft_status speak(weft_module *gpt, const weft_tokenizer *tokenizer) {
    int32_t token = 0; /* any will do to begin with */
    float logits[4096];
    int64_t vocabulary = (int64_t)weft_tokenizer_vocabulary(tokenizer);
    weft_gpt_cache *cache = weft_gpt_cache_new(gpt);
    weft_status status = cache ? WEFT_OK : weft_last_status(NULL);
    for (uint64_t i = 0; i < TOKENS && status == WEFT_OK; i++) {
        if (weft_gpt_cache_length(cache) == weft_gpt_cache_capacity(cache)) weft_gpt_cache_reset(cache);
        status = weft_gpt_feed(cache, &token, 1, logits);
        if (status != WEFT_OK) break;
        token = (int32_t)weft_sample(logits, vocabulary, 0.8, 0, 1, i);
        size_t bytes;
        const char *text = weft_tokenizer_token(tokenizer, token, &bytes);
        fwrite(text, 1, bytes, stdout);
    }
    printf("\n");
    weft_gpt_cache_free(cache);
    return status;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: speak FILE [STEPS]\n");
        return 2;
    }
    weft_context *ctx = NULL;
    weft_corpus *corpus = NULL;
    weft_status status = weft_open(&(weft_open_options){.seed = 1}, &ctx);
    if (status == WEFT_OK) status = weft_corpus_open(ctx, argv[1], NULL, &corpus);
    if (status == WEFT_OK && weft_tokenizer_vocabulary(weft_corpus_tokenizer(corpus)) <= 4096) {
        const weft_tokenizer *tokenizer = weft_corpus_tokenizer(corpus);
        weft_module *gpt =
            weft_gpt(ctx, &(weft_gpt_options){.vocab = (int64_t)weft_tokenizer_vocabulary(tokenizer),
                                              .context = CONTEXT,
                                              .layers = 2,
                                              .heads = 2,
                                              .width = 32});
        status = train(ctx, gpt, corpus, argc > 2 ? strtoull(argv[2], NULL, 10) : 100);
        if (status == WEFT_OK) status = speak(gpt, tokenizer);
    }
    if (status != WEFT_OK) fprintf(stderr, "%s\n", weft_last_error(ctx));
    weft_corpus_free(corpus);
    weft_close(ctx);
    return status == WEFT_OK ? 0 : 1;
}
