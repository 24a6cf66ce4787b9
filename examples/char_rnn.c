/* A character model with an LSTM. It learns a text in consecutive windows. Each window starts with the
 * states in which the window before it ended (truncated backpropagation). At the end the model writes text
 * by itself.
 *
 *   char_rnn [FILE [STEPS]]      without FILE it uses a built-in text */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/weft.h>

enum { ROWS = 4, TIME = 16, WIDTH = 64, WRITTEN = 120, TOKENS_MOST = 4096 };

static const char verse[] = "the weaver throws the shuttle through the shed, and the weft runs over and "
                            "under the warp. row by row the "
                            "cloth grows, and what was thread is cloth, and what was cloth is a coat, and "
                            "what was a coat is thread. ";

static weft_states fresh_states(weft_module *net, int64_t rows) {
    weft_context *ctx = weft_module_context(net);
    int64_t shape[3];
    const int rank = weft_states_shape(net, rows, shape);
    return (weft_states){weft_full(ctx, WEFT_F32, rank, shape, 0), weft_full(ctx, WEFT_F32, rank, shape, 0)};
}

static void free_states(weft_states *states) {
    weft_free(states->h);
    weft_free(states->c);
}

/* Trains on one window of ROWS parts of the text in parallel, and replaces the states. */
static weft_status train_step(weft_module *net, weft_optimizer *opt, const int32_t *x, const int32_t *y,
                              weft_states *states, double *loss) {
    weft_context *ctx = weft_module_context(net);
    const int64_t shape[2] = {ROWS, TIME};
    weft_scope *scope = weft_scope_open(ctx);
    weft_states last = {weft_detach(states->h), weft_detach(states->c)}; /* no gradient goes further back */
    weft_tensor *logits = weft_forward_from(net, weft_from(ctx, WEFT_I32, 2, shape, x), &last, NULL);
    weft_tensor *error = weft_cross_entropy(logits, weft_from(ctx, WEFT_I32, 2, shape, y), NULL);
    weft_keep(last.h); /* the states outlive the scope */
    weft_keep(last.c);
    weft_status status = weft_optimizer_step(opt, error);
    if (status == WEFT_OK && loss) *loss = weft_item(error);
    weft_scope_close(scope);
    free_states(states);
    *states = last;
    return status;
}

static weft_status train(weft_module *net, const int32_t *ids, int64_t count, int64_t steps, double *loss) {
    const int64_t length = (count - 1) / ROWS, stretches = length / TIME;
    weft_optimizer *adam = weft_adam(net, &(weft_adam_options){.lr = 1e-2, .clip = 1});
    weft_status status = WEFT_OK;
    weft_states states = fresh_states(net, ROWS);
    for (int64_t step = 0; step < steps && status == WEFT_OK; step++) {
        int32_t x[ROWS * TIME], y[ROWS * TIME];
        const bool look = (step + 1) % 50 == 0;
        for (int64_t i = 0; i < ROWS * TIME; i++) {
            const int64_t at = i / TIME * length + step % stretches * TIME + i % TIME;
            x[i] = ids[at];
            y[i] = ids[at + 1];
        }
        status = train_step(net, adam, x, y, &states, look ? loss : NULL);
        if (status == WEFT_OK && look) printf("step %4lld  loss %.4f\n", (long long)step + 1, *loss);
    }
    free_states(&states);
    return status;
}

/* Writes one character at a time. Each depends on the states that the characters before it left. */
static weft_status speak(weft_module *net, const weft_tokenizer *tokenizer) {
    weft_context *ctx = weft_module_context(net);
    float logits[TOKENS_MOST];
    int32_t token = 0;
    weft_status status = WEFT_OK;
    weft_module_set_training(net, false);
    weft_states states = fresh_states(net, 1);
    for (uint64_t i = 0; i < WRITTEN && status == WEFT_OK; i++) {
        const size_t vocabulary = weft_tokenizer_vocabulary(tokenizer);
        weft_scope *scope = weft_scope_open(ctx);
        weft_states last = states;
        weft_tensor *x = weft_from(ctx, WEFT_I32, 2, (int64_t[]){1, 1}, &token);
        weft_tensor *y = weft_forward_from(net, x, &last, NULL),
                    *all[3] = {y, weft_keep(last.h), weft_keep(last.c)};
        status = weft_eval(all, 3);
        if (status == WEFT_OK) status = weft_read(y, logits, vocabulary * sizeof *logits);
        weft_scope_close(scope);
        free_states(&states);
        states = last;
        if (status != WEFT_OK) break;
        token = (int32_t)weft_sample(logits, (int64_t)vocabulary, 0.5, 0, 1, i);
        size_t bytes;
        const char *character = weft_tokenizer_token(tokenizer, token, &bytes);
        fwrite(character, 1, bytes, stdout);
    }
    printf("\n");
    free_states(&states);
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
    if (status != WEFT_OK) {
        fprintf(stderr, "%s\n", weft_last_error(ctx));
    } else if (count <= ROWS * TIME || weft_tokenizer_vocabulary(tokenizer) > TOKENS_MOST) {
        fprintf(stderr, "char_rnn: the text is too short, or has too many kinds of characters\n");
    } else {
        weft_module *net = weft_nn_recurrent_lm(
            ctx, &(weft_recurrent_lm_options){.kind = WEFT_LSTM,
                                              .vocab = (int64_t)weft_tokenizer_vocabulary(tokenizer),
                                              .layers = 1,
                                              .width = WIDTH});
        status = train(net, ids, (int64_t)count, argc > 2 ? strtoll(argv[2], NULL, 10) : 300, &loss);
        if (status == WEFT_OK) status = speak(net, tokenizer);
        if (status != WEFT_OK) fprintf(stderr, "%s\n", weft_last_error(ctx));
    }
    free(ids);
    weft_tokenizer_free(tokenizer);
    weft_bytes_free(ctx, &file);
    weft_close(ctx);
    return status == WEFT_OK && (argc > 1 || loss < 0.5) ? 0 : 1;
}
