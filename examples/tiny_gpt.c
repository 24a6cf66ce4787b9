/* Trains a small Llama on a text, character by character, and lets it write. It shows the tokenizer, the
 * loader, the model, an optimizer with a schedule, and decoding with a key/value cache, in a training loop
 * of its own.
 *
 *   tiny_gpt [FILE [STEPS]]
 *
 * Without FILE it uses a built-in text. The default is 150 steps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/weft.h>

enum { CONTEXT = 32, BATCH = 8, TOKENS = 120, VOCABULARY_MOST = 4096 };

static const char verse[] = "the weaver throws the shuttle through the shed, and the weft runs over and "
                            "under the warp. row by row the "
                            "cloth grows, and what was thread is cloth, and what was cloth is a coat, and "
                            "what was a coat is thread. ";

static weft_status train(weft_context *ctx, weft_module *gpt, const int32_t *ids, size_t count,
                         uint64_t steps, double *last) {
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
            if (status == WEFT_OK && (step % 30 == 0 || step + 1 == steps))
                printf("step %4llu  loss %.3f\n", (unsigned long long)step, *last = weft_item(loss));
        }
        weft_scope_close(scope);
    }
    weft_loader_free(loader);
    return status;
}

static weft_status speak(weft_module *gpt, const weft_tokenizer *tokenizer) {
    int32_t token = 0; /* any token will do as the first */
    float logits[VOCABULARY_MOST];
    int64_t vocabulary = (int64_t)weft_tokenizer_vocabulary(tokenizer);
    weft_decode_state *cache = weft_decode_state_new(gpt);
    weft_status status = cache ? WEFT_OK : weft_last_status(NULL);
    for (uint64_t i = 0; i < TOKENS && status == WEFT_OK; i++) {
        if (weft_decode_state_length(cache) == weft_decode_state_capacity(cache))
            weft_decode_state_reset(cache);
        status = weft_gpt_feed(cache, &token, 1, logits);
        if (status != WEFT_OK) break;
        token = (int32_t)weft_sample(logits, vocabulary, 0.8, 0, 1, i);
        size_t bytes;
        const char *text = weft_tokenizer_token(tokenizer, token, &bytes);
        fwrite(text, 1, bytes, stdout);
    }
    printf("\n");
    weft_decode_state_free(cache);
    return status;
}

int main(int argc, char **argv) {
    weft_context *ctx = NULL;
    weft_bytes file = {0};
    weft_tokenizer *tokenizer = NULL;
    int32_t *ids = NULL;
    size_t count = 0;
    double loss = 9;
    weft_status status = weft_open(&(weft_open_options){.seed = 1}, &ctx);
    if (status == WEFT_OK && argc > 1) status = weft_read_file(ctx, argv[1], 0, &file);
    const char *text = argc > 1 ? (const char *)file.data : verse;
    const size_t bytes = argc > 1 ? file.size : strlen(verse);
    if (status == WEFT_OK)
        status = weft_tokenizer_build(ctx, WEFT_TOKENIZER_CHARACTER, text, bytes, NULL, &tokenizer);
    if (status == WEFT_OK && !(ids = calloc(bytes + 1, sizeof *ids))) status = WEFT_ERR_OOM;
    if (status == WEFT_OK) status = weft_tokenizer_encode(tokenizer, text, bytes, ids, bytes + 1, &count);
    const int64_t vocabulary = tokenizer ? (int64_t)weft_tokenizer_vocabulary(tokenizer) : 0;
    if (status == WEFT_OK && vocabulary > VOCABULARY_MOST) {
        fprintf(stderr, "tiny_gpt: %lld kinds of characters are too many\n", (long long)vocabulary);
        status = WEFT_ERR_SHAPE;
    } else if (status == WEFT_OK) {
        weft_module *gpt = weft_nn_gpt(ctx, &(weft_gpt_options){.vocab = vocabulary,
                                                                .context = CONTEXT,
                                                                .layers = 2,
                                                                .heads = 4,
                                                                .kv_heads = 2,
                                                                .width = 32,
                                                                .norm = WEFT_NORM_RMS,
                                                                .positions = WEFT_POSITION_ROTARY,
                                                                .gated = true,
                                                                .no_bias = true});
        status = train(ctx, gpt, ids, count, argc > 2 ? strtoull(argv[2], NULL, 10) : 150, &loss);
        if (status == WEFT_OK) status = speak(gpt, tokenizer);
    }
    if (status != WEFT_OK) fprintf(stderr, "%s\n", weft_last_error(ctx));
    free(ids);
    weft_tokenizer_free(tokenizer);
    weft_bytes_free(ctx, &file);
    weft_close(ctx);
    return status == WEFT_OK && (argc > 1 || loss < 1.5) ? 0 : 1;
}
