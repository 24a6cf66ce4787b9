/* A program that uses libweft, for the fault tests. It trains a convolutional net and a gpt with
 * recomputation for two steps each, saves each net to a file, loads the file into a second net, and prints
 * the outputs.
 *
 *   fault_program FILE.safetensors      exit status 0; 5 if memory runs out, 8 if I/O fails, else 1 */
#include <stdio.h>
#include <weft/weft.h>

enum { BATCH = 2, SIDE = 6, CLASSES = 3, VOCAB = 5, CONTEXT = 4, WIDTH = 4, STEPS = 2 };

static weft_module *new_cnn(weft_context *ctx) {
    return weft_nn_cnn(ctx, &(weft_cnn_options){.channels = 1,
                                                .rows = SIDE,
                                                .columns = SIDE,
                                                .classes = CLASSES,
                                                .filters = (int64_t[]){2},
                                                .filter_count = 1,
                                                .hidden = 4});
}

static weft_module *new_gpt(weft_context *ctx) {
    weft_module *net = weft_nn_gpt(ctx, &(weft_gpt_options){.vocab = VOCAB,
                                                            .context = CONTEXT,
                                                            .layers = 2,
                                                            .heads = 2,
                                                            .width = WIDTH,
                                                            .dropout = 0.1,
                                                            .head_chunks = 2});
    weft_status status = weft_module_recompute(net, WEFT_RECOMPUTE_BLOCK);
    return status == WEFT_OK ? net : NULL;
}

static weft_tensor *images(weft_context *ctx) {
    float x[BATCH * SIDE * SIDE];
    for (int i = 0; i < BATCH * SIDE * SIDE; i++) x[i] = (float)(i * 7 % 11) / 11;
    return weft_from(ctx, WEFT_F32, 4, (int64_t[]){BATCH, 1, SIDE, SIDE}, x);
}

static weft_tensor *tokens(weft_context *ctx, int step) {
    int32_t x[BATCH * CONTEXT];
    for (int i = 0; i < BATCH * CONTEXT; i++) x[i] = i * step % VOCAB;
    return weft_from(ctx, WEFT_I32, 2, (int64_t[]){BATCH, CONTEXT}, x);
}

static weft_status steps(weft_context *ctx, weft_module *net, bool text) {
    weft_optimizer *adam = weft_adamw(net, &(weft_adam_options){.lr = 1e-2, .clip = 1.0});
    for (int step = 0; step < STEPS; step++) {
        weft_scope *scope = weft_scope_open(ctx);
        weft_tensor *target =
            text ? tokens(ctx, 3) : weft_from(ctx, WEFT_I32, 1, (int64_t[]){BATCH}, (int32_t[]){2, 1});
        weft_tensor *loss =
            weft_cross_entropy(weft_forward(net, text ? tokens(ctx, 2) : images(ctx)), target, NULL);
        weft_status status = weft_optimizer_step(adam, loss);
        weft_scope_close(scope);
        if (status != WEFT_OK) return status;
    }
    return WEFT_OK;
}

/* Trains a net, saves it, loads it into another net, and prints the outputs of that net. */
static weft_status try(weft_context *ctx, const char *path, bool text) {
    enum { MOST = BATCH * CONTEXT * VOCAB };
    float out[MOST];
    const int64_t count = text ? MOST : BATCH * CLASSES;
    weft_module *net = text ? new_gpt(ctx) : new_cnn(ctx), *again = text ? new_gpt(ctx) : new_cnn(ctx);
    if (!net || !again) return WEFT_ERR_OOM;
    weft_status status = steps(ctx, net, text);
    if (status == WEFT_OK) status = weft_module_save(net, path);
    if (status == WEFT_OK) status = weft_module_load(again, path);
    if (status != WEFT_OK) return status;
    weft_module_set_training(again, false);
    weft_scope *scope = weft_scope_open(ctx);
    status =
        weft_read(weft_forward(again, text ? tokens(ctx, 2) : images(ctx)), out, (size_t)count * sizeof *out);
    weft_scope_close(scope);
    for (int64_t i = 0; i < count && status == WEFT_OK; i++) printf("%a\n", (double)out[i]);
    return status;
}

int main(int argc, char **argv) {
    weft_context *ctx;
    if (argc != 2) return 2;
    weft_status status = weft_open(&(weft_open_options){.seed = 1}, &ctx);
    if (status != WEFT_OK) {
        fprintf(stderr, "weft: %s\n", weft_last_error(NULL));
    } else {
        status = try(ctx, argv[1], false);
        if (status == WEFT_OK) status = try(ctx, argv[1], true);
        if (status != WEFT_OK) fprintf(stderr, "weft: %s\n", weft_last_error(ctx));
        weft_close(ctx);
    }
    if (fflush(stdout) != 0 && status == WEFT_OK) {
        fprintf(stderr, "weft: the output is lost\n");
        status = WEFT_ERR_IO;
    }
    return status == WEFT_OK ? 0 : status == WEFT_ERR_OOM ? 5 : status == WEFT_ERR_IO ? 8 : 1;
}
