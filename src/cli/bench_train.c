/* The training workloads: models, data and one step. The data are real if a folder is given and has them,
 * otherwise generated. Must not know: clocks. Read next: bench_ops.c. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/bench.h"

#define STREAM UINT64_C(0x62656e63682e7766)

static double uniform(uint64_t i) { return (double)weft__unit_float(weft__random_u32(1, STREAM, 0, i)); }
static double normal(int64_t i) { return weft__random_normal(1, STREAM + 1, 0, (uint64_t)i); }

/* Finds the first of two files that exists in the data folder. */
static bool find_file(const weft__bench *b, const char *first, const char *second, char out[4096]) {
    const char *names[] = {first, second};
    for (int i = 0; b->folder && i < 2; i++)
        if (names[i] && snprintf(out, 4096, "%s/%s", b->folder, names[i]) < 4096 && access(out, R_OK) == 0)
            return true;
    return false;
}

/* ---- steps ---- */

weft_tensor *weft__bench_loss(weft__bench *b) {
    if (!b->first.h) return weft_batch_loss(b->loss_kind, weft_forward(b->module, b->batch.x), &b->batch);
    b->last = (weft_states){weft_detach(b->first.h), weft_detach(b->first.c)};
    weft_tensor *y = weft_forward_from(b->module, b->batch.x, &b->last, NULL);
    return weft_batch_loss(b->loss_kind, y, &b->batch);
}

/* Runs one step. The loss is kept but not read, so that the host does not wait for an asynchronous device. */
weft_status weft__bench_loop(weft__bench *b) {
    weft_scope *scope = weft_scope_open(b->ctx);
    if (!scope) return weft__fail_oom(b->ctx, 0, "a scope");
    weft_status status = b->loader ? weft_loader_get(b->loader, b->position++, &b->batch) : WEFT_OK;
    if (status == WEFT_OK) {
        weft_tensor *loss = weft__bench_loss(b);
        status = weft_optimizer_step(b->optimizer, loss);
        weft__pending_free(&b->loop_loss);
        if (status == WEFT_OK) status = weft__pending_add(&b->loop_loss, loss);
    }
    weft_scope_close(scope);
    return status;
}

static weft_status run_held(weft__bench *b) { return weft_optimizer_run(b->optimizer, b->program); }

/* Compiles and holds a program of the batch (x, y). */
static weft_status hold(weft__bench *b, weft_tensor *x, weft_tensor *y) {
    b->batch = (weft_batch){.x = x, .y = y};
    b->loss = weft_keep(weft__bench_loss(b));
    b->step = run_held;
    return weft_optimizer_hold(b->optimizer, b->loss, &b->program);
}

/* ---- xor and regressions: held programs ---- */

weft_status weft__bench_xor(weft__bench *b) {
    static const float inputs[] = {0, 0, 0, 1, 1, 0, 1, 1}, targets[] = {0, 1, 1, 0};
    weft_context *ctx = b->ctx;
    b->module = weft_nn_sequential(ctx, "xor", weft_nn_linear(ctx, 2, 8, NULL),
                                   weft_nn_activation(ctx, WEFT_TANH), weft_nn_linear(ctx, 8, 1, NULL), NULL);
    b->optimizer = weft_sgd(b->module, &(weft_sgd_options){.lr = 0.5});
    b->items_per_step = 4;
    b->loss_kind = WEFT_LOSS_BCE;
    return hold(b, weft_from(ctx, WEFT_F32, 2, (int64_t[]){4, 2}, inputs),
                weft_from(ctx, WEFT_F32, 2, (int64_t[]){4, 1}, targets));
}

/* Generates rows of uniform features. The target is a linear function of the features with some noise, or its
 * sign. */
static weft_status make_rows(weft__bench *b, int64_t rows, int64_t columns, bool logistic) {
    weft_context *ctx = b->ctx;
    WEFT_TRY(weft_array_new(ctx, WEFT_F32, 2, (int64_t[]){rows, columns}, &b->x));
    WEFT_TRY(weft_array_new(ctx, WEFT_F32, 2, (int64_t[]){rows, 1}, &b->y));
    float *x = b->x.data, *y = b->y.data;
    double truth[32];
    for (int64_t j = 0; j < columns && j < 32; j++) truth[j] = normal(j);
    for (int64_t i = 0; i < rows; i++) {
        double sum = 0.1 * (uniform((uint64_t)i) - 0.5);
        for (int64_t j = 0; j < columns; j++) {
            double value = 3.4641016 * (uniform((UINT64_C(1) << 40) + (uint64_t)(i * columns + j)) - 0.5);
            x[i * columns + j] = (float)value;
            sum += value * truth[j];
        }
        y[i] = (float)(logistic ? sum > 0 : sum);
    }
    b->data_kind = "synthetic";
    return WEFT_OK;
}

weft_status weft__bench_regression(weft__bench *b) {
    return make_rows(b, 1000000, 32, b->workload->setup == weft__bench_logreg);
}

weft_status weft__bench_gd_small_data(weft__bench *b) {
    char path[4096];
    if (!find_file(b, "gd_small.json", NULL, path)) return make_rows(b, 100, 4, false);
    const weft_json_options members[] = {{"x", WEFT_JSON_F32}, {"y", WEFT_JSON_F32}};
    weft_array arrays[2] = {0};
    WEFT_TRY(weft_read_json_matrices(b->ctx, path, members, 2, arrays));
    b->x = arrays[0];
    b->y = arrays[1];
    b->data_kind = "real";
    if (b->x.rank != 2 || b->y.bytes / 4 != (size_t)b->x.shape[0])
        return weft__fail(b->ctx, WEFT_ERR_FORMAT,
                          "%s: x must be a matrix, and y must have a number for each of its rows", path);
    b->y.rank = 2;
    b->y.shape[0] = b->x.shape[0];
    b->y.shape[1] = 1;
    return WEFT_OK;
}

static weft_status fit_line(weft__bench *b, weft_loss_kind kind) {
    weft_context *ctx = b->ctx;
    b->module = weft_nn_linear(ctx, b->x.shape[1], 1, NULL);
    b->optimizer = weft_sgd(b->module, &(weft_sgd_options){.lr = 0.1});
    b->items = "rows";
    b->items_per_step = (double)b->x.shape[0];
    b->bytes = 2.0 * (double)b->x.bytes; /* X is read for the prediction and for the gradient */
    b->loss_kind = kind;
    weft_tensor *x = weft_from(ctx, WEFT_F32, 2, b->x.shape, b->x.data);
    weft_tensor *y = weft_from(ctx, WEFT_F32, 2, b->y.shape, b->y.data);
    weft_array_free(ctx, &b->x); /* the tensors have copies */
    weft_array_free(ctx, &b->y);
    return hold(b, x, y);
}

weft_status weft__bench_linreg(weft__bench *b) { return fit_line(b, WEFT_LOSS_MSE); }
weft_status weft__bench_logreg(weft__bench *b) { return fit_line(b, WEFT_LOSS_BCE); }

/* ---- networks over batches: an ordinary loop that records each step ---- */

/* Generates square images of ten classes. Half of the pixels are 0, and a tenth of the labels are wrong. */
static weft_status make_images(weft__bench *b, int64_t rows, int64_t channels, int64_t side) {
    const int64_t pixels = channels * side * side;
    WEFT_TRY(weft_array_new(b->ctx, WEFT_U8, 2, (int64_t[]){rows, pixels}, &b->x));
    WEFT_TRY(weft_array_new(b->ctx, WEFT_U8, 1, &rows, &b->y));
    uint8_t *x = b->x.data, *y = b->y.data;
    uint64_t state = 20170825;
    for (int64_t i = 0; i < rows; i++) {
        int label = (int)(weft__mix64((uint64_t)i) % 10);
        for (int64_t j = 0; j < pixels; j++) {
            state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            uint64_t spot = weft__mix64((uint64_t)(label * 49 + j / side / 4 * 7 + j % side / 4)) % 180;
            uint64_t value = spot + (state >> 33) % 120;
            x[i * pixels + j] = (uint8_t)(value > 148 ? value < 255 ? value : 255 : 0);
        }
        y[i] = (uint8_t)((state >> 40) % 10 ? label : (int)(state >> 50) % 10);
    }
    b->data_kind = "synthetic";
    return WEFT_OK;
}

weft_status weft__bench_images(weft__bench *b) {
    char images[4096], labels[4096];
    if (find_file(b, "fashion-mnist/train-images-idx3-ubyte.gz", "train-images-idx3-ubyte.gz", images) &&
        find_file(b, "fashion-mnist/train-labels-idx1-ubyte.gz", "train-labels-idx1-ubyte.gz", labels)) {
        WEFT_TRY(weft_read_idx(b->ctx, images, &b->x));
        WEFT_TRY(weft_read_idx(b->ctx, labels, &b->y));
        b->x.rank = 2;
        b->x.shape[1] = 784;
        b->data_kind = "real";
    } else {
        WEFT_TRY(make_images(b, 60000, 1, 28));
    }
    b->data_bytes = b->x.bytes + b->y.bytes;
    return WEFT_OK;
}

weft_status weft__bench_color_images(weft__bench *b) {
    char path[4096];
    if (find_file(b, "cifar10/train-4000.bin.gz", "data_batch_1.bin", path)) {
        WEFT_TRY(weft_read_cifar10(b->ctx, path, &b->x, &b->y));
        b->data_kind = "real";
    } else {
        WEFT_TRY(make_images(b, 4000, 3, 32));
    }
    b->data_bytes = b->x.bytes + b->y.bytes;
    return WEFT_OK;
}

/* Sets what the layers recompute, their dtype and, for f16, scales the loss. */
static weft_status take_options(weft__bench *b) {
    weft_dtype dtype;
    WEFT_TRY(weft_module_recompute(b->module, b->recompute));
    if (!weft_dtype_parse(b->precision, &dtype))
        return weft__fail(b->ctx, WEFT_ERR_ARGUMENT,
                          "bench: --precision %s: give a dtype such as f32, bf16 or f16", b->precision);
    WEFT_TRY(weft_module_compute(b->module, dtype)); /* must come before the optimizer's first step */
    return dtype == WEFT_F16 ? weft_optimizer_scale_loss(b->optimizer, NULL) : WEFT_OK;
}

/* Sets up steps over shuffled batches of images. */
static weft_status train_images(weft__bench *b, int64_t batch) {
    b->optimizer = weft_adam(b->module, &(weft_adam_options){.lr = 1e-3});
    b->items = "images";
    WEFT_TRY(take_options(b));
    if (b->batch_size) batch = b->batch_size;
    b->items_per_step = (double)batch;
    b->step = weft__bench_loop;
    return weft_loader_new(b->ctx, &b->x, &b->y,
                           &(weft_loader_options){.batch = batch, .scale = 1.0 / 255, .drop_last = true},
                           &b->loader);
}

weft_status weft__bench_mlp(weft__bench *b) {
    static const int64_t sizes[] = {784, 512, 512, 10};
    b->module = weft_nn_mlp(b->ctx, sizes, 4, NULL);
    return train_images(b, 128);
}

weft_status weft__bench_cnn(weft__bench *b) {
    b->module =
        weft_nn_cnn(b->ctx, &(weft_cnn_options){.channels = 1, .rows = 28, .columns = 28, .classes = 10});
    return train_images(b, 64);
}

weft_status weft__bench_resnet(weft__bench *b) {
    b->module = weft_nn_resnet(
        b->ctx, &(weft_resnet_options){.channels = 1, .rows = 28, .columns = 28, .classes = 10, .depth = 8});
    return train_images(b, 64);
}

weft_status weft__bench_resnet20(weft__bench *b) {
    b->module = weft_nn_resnet(
        b->ctx, &(weft_resnet_options){.channels = 3, .rows = 32, .columns = 32, .classes = 10, .depth = 20});
    return train_images(b, 128);
}

/* Generates `count` ids with make. */
static weft_status make_ids(weft__bench *b, size_t count, int32_t (*make)(size_t i)) {
    b->own_ids = weft__array(b->ctx, count, sizeof *b->own_ids);
    if (!b->own_ids) return weft__fail_oom(b->ctx, count * sizeof *b->own_ids, "a text");
    for (size_t i = 0; i < count; i++) b->own_ids[i] = make(i);
    b->ids = b->own_ids;
    b->n_ids = count;
    b->data_bytes = count * sizeof *b->own_ids;
    b->data_kind = "synthetic";
    return WEFT_OK;
}

static int32_t some_character(size_t i) { return (int32_t)(65 * pow(uniform(i), 3)); }
static int32_t some_token(size_t i) { return (int32_t)(weft__random_u32(1, STREAM + 2, 0, i) % 50257); }

/* Takes the ids of Shakespeare's characters, or generates ids of the same number and roughly the same
 * frequencies. */
weft_status weft__bench_characters(weft__bench *b) {
    char path[4096];
    b->vocabulary = 65;
    if (!find_file(b, "tinyshakespeare.txt", "input.txt", path)) return make_ids(b, 1115394, some_character);
    WEFT_TRY(weft_corpus_open(b->ctx, path, NULL, &b->corpus));
    b->ids = weft_corpus_ids(b->corpus, WEFT_CORPUS_TRAIN, &b->n_ids);
    b->vocabulary = (int64_t)weft_tokenizer_vocabulary(weft_corpus_tokenizer(b->corpus));
    b->data_bytes = b->n_ids * sizeof *b->ids;
    b->data_kind = "real";
    return WEFT_OK;
}

weft_status weft__bench_tokens(weft__bench *b) { return make_ids(b, 100000, some_token); }
weft_status weft__bench_long_tokens(weft__bench *b) { return make_ids(b, 2000000, some_token); }

static weft_status train_gpt_clipped(weft__bench *b, const weft_gpt_options *options, int64_t batch,
                                     int64_t context, double clip) {
    if (b->batch_size) batch = b->batch_size;
    b->module = weft_nn_gpt(b->ctx, options);
    b->optimizer = weft_adamw(
        b->module, &(weft_adam_options){.lr = 1e-3, .beta2 = 0.99, .weight_decay = 0.1, .clip = clip});
    WEFT_TRY(take_options(b));
    b->items = "tokens";
    b->items_per_step = (double)(batch * context);
    b->step = weft__bench_loop;
    return weft_loader_tokens(b->ctx, b->ids, b->n_ids, context, &(weft_loader_options){.batch = batch},
                              &b->loader);
}

static weft_status train_gpt(weft__bench *b, const weft_gpt_options *options, int64_t batch,
                             int64_t context) {
    return train_gpt_clipped(b, options, batch, context, 0);
}

weft_status weft__bench_chargpt_small(weft__bench *b) {
    const weft_gpt_options options = {
        .vocab = b->vocabulary, .context = 64, .layers = 4, .heads = 4, .width = 128};
    return train_gpt(b, &options, 12, 64);
}

weft_status weft__bench_chargpt_big(weft__bench *b) {
    const weft_gpt_options options = {
        .vocab = b->vocabulary, .context = 256, .layers = 6, .heads = 6, .width = 384};
    return train_gpt(b, &options, 16, 256);
}

static weft_gpt_options llama_options(const weft__bench *b) {
    return (weft_gpt_options){.vocab = b->vocabulary,
                              .no_bias = true,
                              .norm = WEFT_NORM_RMS,
                              .positions = WEFT_POSITION_ROTARY,
                              .gated = true};
}

weft_status weft__bench_llama_small(weft__bench *b) {
    weft_gpt_options options = llama_options(b);
    options.context = 64, options.layers = 4, options.width = 128;
    options.heads = 4, options.kv_heads = 2;
    return train_gpt(b, &options, 12, 64);
}

weft_status weft__bench_llama(weft__bench *b) {
    weft_gpt_options options = llama_options(b);
    options.context = 256, options.layers = 6, options.width = 256;
    options.heads = 8, options.kv_heads = 4;
    return train_gpt(b, &options, 8, 256);
}

static const weft_gpt_options gpt2_options = {
    .vocab = 50304, .context = 1024, .layers = 12, .heads = 12, .width = 768};

weft_status weft__bench_gpt2(weft__bench *b) { return train_gpt(b, &gpt2_options, 4, 64); }
weft_status weft__bench_gpt2_full(weft__bench *b) { return train_gpt_clipped(b, &gpt2_options, 64, 1024, 1); }

/* ---- a recurrent network over streams of text; states are carried from step to step ---- */

enum { STREAMS = 32, STRETCH = 64, STATE_WIDTH = 256 };

static weft_status run_streams(weft__bench *b) {
    const int64_t batch = b->batch_size ? b->batch_size : STREAMS, length = (int64_t)b->n_ids / batch;
    const uint64_t stretches = (uint64_t)((length - 1) / STRETCH);
    const int64_t from = (int64_t)(b->position++ % stretches) * STRETCH, shape[2] = {batch, STRETCH};
    int32_t *ids = b->x.data;
    weft_scope *scope = weft_scope_open(b->ctx);
    if (!scope) return weft__fail_oom(b->ctx, 0, "a scope");
    for (int k = 0; k < 2; k++) {
        weft_tensor **of = k ? &b->batch.y : &b->batch.x;
        for (int64_t s = 0; s < batch; s++)
            memcpy(ids + s * STRETCH, b->ids + s * length + from + k, STRETCH * sizeof *ids);
        weft_free(*of);
        *of = weft_keep(weft_from(b->ctx, WEFT_I32, 2, shape, ids));
    }
    weft_tensor *loss = weft__bench_loss(b);
    weft_keep(b->last.h); /* these are outputs of the step */
    weft_keep(b->last.c);
    weft_status status = weft_optimizer_step(b->optimizer, loss);
    weft_free(b->first.h);
    weft_free(b->first.c);
    b->first = b->last;
    weft__pending_free(&b->loop_loss);
    if (status == WEFT_OK) status = weft__pending_add(&b->loop_loss, loss);
    weft_scope_close(scope);
    return status;
}

weft_status weft__bench_lstm(weft__bench *b) {
    const int64_t batch = b->batch_size ? b->batch_size : STREAMS, bytes[2] = {batch, STRETCH};
    int64_t shape[3];
    b->module = weft_nn_recurrent_lm(
        b->ctx, &(weft_recurrent_lm_options){
                    .kind = WEFT_LSTM, .vocab = b->vocabulary, .layers = 2, .width = STATE_WIDTH});
    b->optimizer = weft_adam(b->module, &(weft_adam_options){.lr = 1e-3});
    WEFT_TRY(take_options(b));
    b->first.h = weft_full(b->ctx, WEFT_F32, weft_states_shape(b->module, batch, shape), shape, 0);
    b->first.c = weft_full(b->ctx, WEFT_F32, 3, shape, 0);
    b->items = "tokens";
    b->items_per_step = (double)(batch * STRETCH);
    b->step = run_streams;
    if ((int64_t)b->n_ids / batch <= STRETCH)
        return weft__fail(b->ctx, WEFT_ERR_ARGUMENT,
                          "bench lstm: the text has %zu tokens, too few for a batch of %lld: give a smaller "
                          "--batch or more data",
                          b->n_ids, (long long)batch);
    return weft_array_new(b->ctx, WEFT_I32, 2, bytes, &b->x);
}

/* ---- decoding ---- */

enum { PROMPT = 16, TOKENS = 200 };

static weft_status decode(weft__bench *b) {
    int64_t vocabulary = b->x.shape[0];
    int32_t prompt[PROMPT];
    float *logits = b->x.data;
    weft_decode_state_reset(b->cache);
    for (int i = 0; i < PROMPT; i++)
        prompt[i] = (int32_t)(weft__random_u32(1, STREAM + 3, 0, (uint64_t)i) % 65);
    WEFT_TRY(weft_gpt_feed(b->cache, prompt, PROMPT, logits));
    for (int i = 0; i < TOKENS; i++) {
        int32_t next = (int32_t)weft_sample(logits, vocabulary, 1, 0, 1, (uint64_t)i);
        if (next < 0)
            return weft__fail(b->ctx, WEFT_ERR_NUMERIC, "generate: the model's output is not finite");
        if (i + 1 < TOKENS) WEFT_TRY(weft_gpt_feed(b->cache, &next, 1, logits));
    }
    return WEFT_OK;
}

static weft_status generate(weft__bench *b, const weft_gpt_options *sizes) {
    weft_gpt_options options = *sizes;
    if (!weft_dtype_parse(b->precision, &options.dtype))
        return weft__fail(b->ctx, WEFT_ERR_ARGUMENT,
                          "bench: --precision %s: give a dtype such as f32, bf16 or f16", b->precision);
    b->module = weft_nn_gpt(b->ctx, &options);
    b->cache = weft_decode_state_new(b->module);
    if (!b->cache) return weft_last_status(b->ctx);
    WEFT_TRY(weft_array_new(b->ctx, WEFT_F32, 1, &options.vocab, &b->x));
    b->items = "tokens";
    b->items_per_step = TOKENS;
    b->step = decode;
    return WEFT_OK;
}

weft_status weft__bench_generate(weft__bench *b) {
    return generate(b,
                    &(weft_gpt_options){.vocab = 65, .context = 256, .layers = 6, .heads = 6, .width = 384});
}

weft_status weft__bench_generate_gpt2(weft__bench *b) {
    return generate(
        b, &(weft_gpt_options){.vocab = 50304, .context = 1024, .layers = 12, .heads = 12, .width = 768});
}
