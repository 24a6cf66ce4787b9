/* The values of values.h. Each value is made at most once per call. If a value cannot be made, the process
 * ends, since then the test itself is wrong. Must not know: which function is called. Read next:
 * make_calls.py. */
#include "arguments/values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- lifetime of the values ---- */

/* The values made for the current call. */
static struct {
    weft_context *ctx;
    weft_scope *scope;
    weft_program *program, *held;
    weft_profile *profile;
    weft_defined_op *op;
    weft_module *module, *other_module, *gpt, *lstm, *recurrent_lm;
    weft_optimizer *optimizer, *other_optimizer;
    weft_decode_state *cache;
    weft_loader *loader;
    weft_tokens *tokens;
    weft_image_folder images;
    weft_tokenizer *tokenizer;
    weft_chat_template *chat;
    weft_chats *chats, *pairs;
    weft_grammar *grammar;
    weft_loader *pair_loader;
    weft_decoder *decoder;
    weft_module *published, *adapted, *encoder;
    weft_corpus *corpus;
    weft_safetensors *files[2];
    int n_files;
    weft_checkpoint *checkpoint;
    weft_run_lock *lock;
    weft_run *run;
    weft_entry *entries;
    void *blocks[256];
    int n_blocks;
} made;

void good_forget(void) { memset(&made, 0, sizeof made); }

void good_end(void) {
    weft_loader_free(made.loader);
    weft_loader_free(made.pair_loader);
    weft_profile_free(made.profile);
    weft_tokens_free(made.tokens);
    weft_image_folder_free(NULL, &made.images);
    weft_decoder_free(made.decoder);
    weft_chat_template_free(made.chat);
    weft_chats_free(made.chats);
    weft_grammar_free(made.grammar);
    weft_chats_free(made.pairs);
    weft_tokenizer_free(made.tokenizer);
    weft_corpus_free(made.corpus);
    for (int i = 0; i < made.n_files; i++) weft_safetensors_close(made.files[i]);
    weft_checkpoint_close(made.checkpoint);
    weft_run_lock_release(made.lock);
    weft_run_close(made.run);
    if (made.entries) weft_entries_free(made.ctx, made.entries, 2);
    weft_close(made.ctx);
    for (int i = 0; i < made.n_blocks; i++) free(made.blocks[i]);
    good_forget();
}

/* A block of exactly this size, so that a sanitizer sees reads past its end. */
static void *block(size_t bytes) {
    void *p = calloc(1, bytes);
    if (!p || made.n_blocks == (int)(sizeof made.blocks / sizeof *made.blocks)) _exit(3);
    return made.blocks[made.n_blocks++] = p;
}

#define COPY(type, ...) memcpy(block(sizeof(type)), &(type)__VA_ARGS__, sizeof(type))
#define COPIES(type, ...)                                                                                    \
    memcpy(block(sizeof((type[])__VA_ARGS__)), (type[])__VA_ARGS__, sizeof((type[])__VA_ARGS__))

/* ---- the caller's memory ---- */

static const char words[] = "names of all sorts";
static const char chats[] = "{\"text\": \"names of all sorts\"}\n";
static const char pairs[] = "{\"prompt\": \"names\", \"chosen\": \" of all\", \"rejected\": \" sorts\"}\n";

void *good_zeros(size_t bytes) { return block(bytes); }
void *good_place(void) { return block(2 * sizeof(void *)); }
void *good_bytes(void) { return block(4096); }
char *good_text(void) { return memcpy(block(TEXT_SIZE), words, sizeof words); }
int *good_order(void) { return COPIES(int, {0, 1, 2, 3}); }
int32_t *good_ids(void) { return block(8 * sizeof(int32_t)); }
int64_t *good_shape_of(int64_t a, int64_t b, int64_t c, int64_t d) {
    return COPIES(int64_t, {a, b, c, d, 1, 1, 1, 1});
}
int64_t *good_shape(void) { return COPIES(int64_t, {4, 4, 4, 4, 4, 4, 4, 4}); }
size_t *good_count(void) { return block(sizeof(size_t)); }
uint64_t *good_steps(void) { return block(8 * sizeof(uint64_t)); }
double *good_number(void) { return block(sizeof(double)); }
float *good_logits(void) { return COPIES(float, {1, 2, 3, 4, 5, 6, 7, 8}); }
bool *good_flag(void) { return block(sizeof(bool)); }

weft_array *good_array(void) {
    float *data = block(8 * 4 * sizeof *data);
    for (int i = 0; i < 32; i++) data[i] = (float)(i % 7) / 8;
    return COPY(weft_array,
                {.dtype = WEFT_F32, .rank = 2, .shape = {8, 4}, .data = data, .bytes = 8 * 4 * sizeof *data});
}

weft_array *good_labels(void) {
    int32_t *data = COPIES(int32_t, {0, 1, 2, 3, 0, 1, 2, 3});
    return COPY(weft_array,
                {.dtype = WEFT_I32, .rank = 1, .shape = {8}, .data = data, .bytes = 8 * sizeof *data});
}

/* ---- tensors ---- */

/* Refuses large requests, so that no value of a call can take all memory of the machine. */
static void *limited(void *user, void *old, size_t size) {
    (void)user;
    if (size == 0) {
        free(old);
        return NULL;
    }
    return size > MOST ? NULL : realloc(old, size);
}

weft_open_options *good_open_options(void) {
    return COPY(weft_open_options, {.device = "cpu", .threads = 1, .seed = 7, .alloc = limited});
}

weft_context *good_context(void) {
    if (!made.ctx) MUST(weft_open(good_open_options(), &made.ctx));
    return made.ctx;
}

weft_scope *good_scope(void) {
    if (!made.scope) made.scope = weft_scope_open(good_context());
    return made.scope;
}

weft_tensor *good_tensor_of(int rank, int64_t a, int64_t b, int64_t c, int64_t d) {
    float data[64];
    for (int i = 0; i < 64; i++) data[i] = (float)(i % 11 + 1) / 8;
    return weft_from(good_context(), WEFT_F32, rank, (int64_t[]){a, b, c, d}, data);
}

weft_tensor *good_tensor(void) { return good_tensor_of(4, 2, 2, 4, 4); }
weft_tensor *good_vector(int64_t n) { return good_tensor_of(1, n, 0, 0, 0); }

weft_tensor *good_integers(int rank, int64_t a, int64_t b, int64_t c, int64_t d) {
    int32_t data[64];
    for (int i = 0; i < 64; i++) data[i] = i % 2;
    return weft_from(good_context(), WEFT_I32, rank, (int64_t[]){a, b, c, d}, data);
}

weft_tensor *good_index(int64_t n) { return good_integers(1, n, 0, 0, 0); }
weft_tensor *good_mask(void) { return weft_cast(good_integers(4, 2, 2, 4, 4), WEFT_BOOL); }
/* Two rows of 32 numbers in Q8_0. */
weft_tensor *good_packed(void) {
    uint8_t bytes[68] = {0};
    return weft_from(good_context(), WEFT_U8, 2, (int64_t[]){2, 34}, bytes);
}
weft_tensor *good_complex(void) { return weft_complex(good_tensor(), good_tensor()); }
weft_tensor *good_scalar(void) { return weft_scalar(good_context(), 1); }

weft_tensor *good_variable(void) {
    return weft_variable_new(good_context(), "variable", WEFT_F32, 2, (int64_t[]){4, 4}, NULL);
}

weft_tensor *good_loss(void) {
    return weft_mean(weft_forward(good_module(), good_tensor()), WEFT_ALL_AXES, false);
}
weft_tensor **good_tensors(void) { return COPIES(weft_tensor *, {good_tensor(), good_tensor()}); }
weft_tensor **good_variables(void) { return COPIES(weft_tensor *, {good_variable(), good_variable()}); }

weft_tensor **good_values(void) {
    weft_tensor *x = good_tensor_of(2, 4, 4, 0, 0);
    return COPIES(weft_tensor *, {weft_exp(x), weft_sin(x)});
}

weft_program *good_program(void) {
    weft_tensor *x = weft_exp(good_tensor());
    if (!made.program) MUST(weft_compile(&x, 1, NULL, NULL, 0, &made.program));
    return made.program;
}

weft_profile *good_profile(void) {
    if (made.profile) return made.profile;
    MUST(weft_profile_start(good_context(), &(weft_profile_options){.trace = true}, &made.profile));
    MUST(weft_program_run(good_program()));
    return made.profile;
}

weft_op_options *good_op_options(void) {
    return COPY(weft_op_options, {.name = "half", .expression = "a / 2", .arity = 1});
}

weft_defined_op *good_defined_op(void) {
    if (!made.op) MUST(weft_op_define(good_context(), good_op_options(), &made.op));
    return made.op;
}

/* ---- modules ---- */

weft_module *good_module(void) {
    if (!made.module) made.module = weft_nn_linear(good_context(), 4, 4, NULL);
    return made.module;
}

weft_module *good_other_module(void) {
    if (!made.other_module) made.other_module = weft_nn_linear(good_context(), 4, 4, NULL);
    return made.other_module;
}

weft_module *good_fresh_module(void) {
    return weft_module_new(good_context(), "fresh", good_weft_forward_fn, &made);
}

weft_module *good_wide_module(void) { return weft_nn_linear(good_context(), 32, 4, NULL); }
weft_packed_rows *good_packed_rows(void) { return COPIES(weft_packed_rows, {{4, WEFT_Q8_0}}); }

weft_gpt_options *good_gpt_options(void) {
    return COPY(weft_gpt_options, {.vocab = 8, .context = 8, .layers = 1, .heads = 1, .width = 8});
}

weft_module *good_gpt(void) {
    if (!made.gpt) made.gpt = weft_nn_gpt(good_context(), good_gpt_options());
    return made.gpt;
}

weft_encoder_options *good_encoder_options(void) {
    return COPY(weft_encoder_options,
                {.vocab = 8, .context = 8, .layers = 1, .heads = 1, .width = 4, .labels = 2});
}

weft_module *good_encoder(void) {
    if (!made.encoder) made.encoder = weft_nn_encoder(good_context(), good_encoder_options());
    return made.encoder;
}

weft_module *good_lstm(void) {
    if (!made.lstm) made.lstm = weft_nn_lstm(good_context(), 4, 4, NULL);
    return made.lstm;
}

weft_recurrent_lm_options *good_recurrent_lm_options(void) {
    return COPY(weft_recurrent_lm_options,
                {.kind = WEFT_LSTM, .vocab = 8, .layers = 1, .width = 4, .streams = 2});
}

weft_module *good_recurrent_lm(void) {
    if (!made.recurrent_lm)
        made.recurrent_lm = weft_nn_recurrent_lm(good_context(), good_recurrent_lm_options());
    return made.recurrent_lm;
}

weft_module **good_modules(void) {
    return COPIES(weft_module *,
                  {weft_nn_linear(good_context(), 4, 4, NULL), weft_nn_linear(good_context(), 4, 4, NULL)});
}

weft_sgd_options *good_sgd_options(void) { return COPY(weft_sgd_options, {.lr = 0.1}); }
weft_rmsprop_options *good_rmsprop_options(void) { return COPY(weft_rmsprop_options, {.lr = 0.1}); }
weft_adam_options *good_adam_options(void) { return COPY(weft_adam_options, {.lr = 0.1}); }

weft_optimizer *good_optimizer(void) {
    if (!made.optimizer) made.optimizer = weft_adam(good_module(), good_adam_options());
    return made.optimizer;
}

weft_optimizer *good_other_optimizer(void) {
    if (!made.other_optimizer) made.other_optimizer = weft_adam(good_other_module(), good_adam_options());
    return made.other_optimizer;
}

weft_optimizer **good_optimizers(void) {
    MUST(weft_optimizer_add_gradients(good_optimizer(), good_loss()));
    return COPIES(weft_optimizer *, {good_optimizer()});
}

weft_decode_state *good_decode_state(void) {
    if (!made.cache) made.cache = weft_decode_state_new(good_gpt());
    return made.cache;
}

weft_decode_state *const *good_decode_states(void) {
    return COPIES(weft_decode_state *, {good_decode_state()});
}

weft_program *good_held(void) {
    if (!made.held) MUST(weft_optimizer_hold(good_optimizer(), good_loss(), &made.held));
    return made.held;
}

/* ---- data and files ---- */

weft_loader_options *good_loader_options(void) {
    return COPY(weft_loader_options, {.batch = 2, .in_order = true});
}

weft_loader *good_loader(void) {
    if (!made.loader)
        MUST(weft_loader_new(good_context(), good_array(), good_labels(), good_loader_options(),
                             &made.loader));
    return made.loader;
}

weft_batch *good_batch(void) {
    weft_batch *batch = block(sizeof *batch);
    MUST(weft_loader_get(good_loader(), 0, batch));
    return batch;
}

void *good_file(const char *path) {
    weft_bytes bytes;
    MUST(weft_read_file(NULL, path, 0, &bytes));
    void *copy = memcpy(block(bytes.size), bytes.data, bytes.size);
    weft_bytes_free(NULL, &bytes);
    return copy;
}

size_t good_file_size(const char *path) {
    weft_bytes bytes;
    MUST(weft_read_file(NULL, path, 0, &bytes));
    const size_t size = bytes.size;
    weft_bytes_free(NULL, &bytes);
    return size;
}

weft_image_folder *good_images(void) {
    const weft_image_folder_options options = {.in_files = true};
    const weft_status status =
        made.images.shards ? WEFT_OK : weft_read_image_folder(NULL, "images.tar", &options, &made.images);
    (void)status;
    return &made.images;
}

weft_tokens *good_tokens(void) {
    if (!made.tokens) MUST(weft_tokens_open(good_context(), "tokens.bin", &made.tokens));
    return made.tokens;
}

weft_tokenizer *good_tokenizer(void) {
    if (!made.tokenizer)
        MUST(weft_tokenizer_build(good_context(), WEFT_TOKENIZER_CHARACTER, words, sizeof words - 1, NULL,
                                  &made.tokenizer));
    return made.tokenizer;
}

weft_chat_template *good_chat_template(void) {
    if (!made.chat) MUST(weft_chat_template_load(good_context(), "chat", &made.chat));
    return made.chat;
}

weft_chats *good_chats(void) {
    if (!made.chats)
        MUST(weft_chats_read(good_context(), "chats.jsonl", good_tokenizer(), NULL, &made.chats));
    return made.chats;
}

weft_grammar *good_grammar(void) {
    if (!made.grammar) MUST(weft_grammar_json(good_context(), &made.grammar));
    return made.grammar;
}

weft_chats *good_pairs(void) {
    if (!made.pairs)
        MUST(weft_preferences_read(good_context(), "pairs.jsonl", good_tokenizer(), NULL, &made.pairs));
    return made.pairs;
}

/* Two pairs in order, with their reference. */
weft_loader *good_pair_loader(void) {
    static int32_t rows[2][2][4] = {{{1, 2, 1, 3}, {0, 0, 2, 2}}, {{4, 5, 4, 6}, {0, 0, 2, 2}}},
                   next[2][2][4] = {{{-1, 2, -1, -1}, {-1, -1, -1, 3}}, {{5, 7, -1, -1}, {-1, -1, 6, 7}}};
    static float reference[2][2] = {{-2, -3}, {-4, -5}};
    const weft_array x = {WEFT_I32, 3, {2, 2, 4}, rows, sizeof rows},
                     y = {WEFT_I32, 3, {2, 2, 4}, next, sizeof next},
                     extra = {WEFT_F32, 2, {2, 2}, reference, sizeof reference};
    const weft_loader_options options = {.batch = 2, .in_order = true, .extra = &extra};
    if (!made.pair_loader) MUST(weft_loader_new(good_context(), &x, &y, &options, &made.pair_loader));
    return made.pair_loader;
}

weft_decoder *good_decoder(void) {
    if (!made.decoder) MUST(weft_decoder_open(good_tokenizer(), &made.decoder));
    return made.decoder;
}

const char *const *good_text_paths(void) {
    static const char *const paths[] = {"text.txt"};
    return paths;
}

weft_module *good_published(void) {
    if (!made.published) made.published = weft_published_new(good_context(), "published", NULL);
    MUST(weft_module_status(made.published));
    return made.published;
}

weft_module *good_adapted(void) {
    static const char *const targets[] = {"o_proj"};
    if (made.adapted) return made.adapted;
    made.adapted = weft_published_new(good_context(), "published", NULL);
    MUST(weft_gpt_lora(made.adapted, &(weft_lora_options){.targets = targets, .target_count = 1}));
    return made.adapted;
}

weft_corpus *good_corpus(void) {
    if (!made.corpus) MUST(weft_corpus_open(good_context(), "text.txt", NULL, &made.corpus));
    return made.corpus;
}

weft_safetensors *good_safetensors(const char *path) {
    MUST(weft_safetensors_open(good_context(), path, &made.files[made.n_files]));
    return made.files[made.n_files++];
}

weft_checkpoint *good_checkpoint(void) {
    if (!made.checkpoint)
        MUST(weft_checkpoint_open(good_context(), "run/checkpoints/step-1", &made.checkpoint));
    return made.checkpoint;
}

weft_run_lock *good_run_lock(void) {
    if (!made.lock) MUST(weft_run_lock_take(good_context(), "run", &made.lock));
    return made.lock;
}

weft_run *good_run(const char *folder) {
    if (!made.run) MUST(weft_run_open(good_context(), folder, &made.run));
    return made.run;
}

uint8_t *good_pixels(void) { return block(64); }

const char *const *good_cells(void) {
    const char **cells = block(2 * sizeof *cells);
    cells[0] = "1", cells[1] = "2";
    return cells;
}

weft_entry *good_entries(void) {
    const int64_t *shape = good_shape();
    const void *data = good_bytes();
    return COPIES(weft_entry, {{.name = "a", .rank = 2, .shape = shape, .data = data},
                               {.name = "b", .rank = 2, .shape = shape, .data = data}});
}

weft_named_tensor *good_named_tensors(void) {
    weft_parameter_info weight, bias;
    if (!weft_parameter_find(good_module(), "weight", &weight) ||
        !weft_parameter_find(good_module(), "bias", &bias))
        _exit(3);
    return COPIES(weft_named_tensor,
                  {{.name = "weight", .tensor = weight.tensor}, {.name = "bias", .tensor = bias.tensor}});
}

weft_entry *good_made_entries(void) {
    if (!made.entries) MUST(weft_entries_new(good_context(), good_named_tensors(), 2, &made.entries));
    return made.entries;
}

weft_metadata *good_metadata(void) { return COPIES(weft_metadata, {{"a", "b"}, {"c", "d"}}); }
weft_checkpoint_state *good_checkpoint_state(void) { return COPY(weft_checkpoint_state, {.step = 1}); }

/* ---- options with values other than 0 ---- */

weft_json_options *good_json_options(void) { return COPIES(weft_json_options, {{.key = "x"}, {.key = "x"}}); }
weft_pool_options *good_pool_options(void) { return COPY(weft_pool_options, {.size = {2, 2}}); }
weft_interpolate_options *good_interpolate_options(void) {
    return COPY(weft_interpolate_options, {.size = {2, 2}});
}
weft_fit_options *good_fit_options(void) { return COPY(weft_fit_options, {.steps = 2}); }
weft_schedule *good_schedule(void) { return COPY(weft_schedule, {.lr = 0.1, .steps = 4}); }
weft_group_options *good_group_options(void) { return COPY(weft_group_options, {.pattern = "*"}); }

weft_cnn_options *good_cnn_options(void) {
    const int64_t *filters = COPIES(int64_t, {2, 2});
    return COPY(weft_cnn_options, {.channels = 1,
                                   .rows = 4,
                                   .columns = 4,
                                   .classes = 2,
                                   .filters = filters,
                                   .filter_count = 2,
                                   .hidden = 2});
}

weft_resnet_options *good_resnet_options(void) {
    return COPY(weft_resnet_options,
                {.channels = 1, .rows = 4, .columns = 4, .classes = 2, .depth = 8, .width = 2});
}

/* ---- callbacks ---- */

weft_tensor *good_weft_loss_graph_fn(void *user) { return (void)user, good_loss(); }
weft_status good_weft_text_fn(void *user, const char *bytes, size_t count) {
    return (void)user, (void)bytes, (void)count, WEFT_OK;
}
weft_status good_weft_generated_fn(void *user, const weft_generated *text) {
    return (void)user, (void)text, WEFT_OK;
}
weft_tensor *good_weft_forward_fn(weft_module *m, weft_tensor *x) { return (void)m, x; }
void good_call(void *user) { (void)user; }

/* ---- files ---- */

static void file(const char *path, const void *data, size_t bytes) {
    MUST(weft_write_file(NULL, path, data, bytes));
}

static void folder(const char *path) { MUST(weft_make_folder(NULL, path)); }

/* Writes a PNG of 4 x 4 black grey-scale pixels. */
static void small_image(const char *path) {
    static const uint8_t png[] = {
        137, 80, 78, 71, 13, 10, 26,  10,  0,   0,   0, 13, 73, 72, 68, 82, 0,  0,  0,   4,   0,  0,  0,
        4,   8,  0,  0,  0,  0,  140, 154, 193, 162, 0, 0,  0,  11, 73, 68, 65, 84, 120, 218, 99, 96, 192,
        4,   0,  0,  20, 0,  1,  238, 90,  105, 9,   0, 0,  0,  0,  73, 69, 78, 68, 174, 66,  96, 130};
    file(path, png, sizeof png);
}

/* Writes a tar file with one image, in the format ustar. */
static void small_tar(const char *path) {
    static char tar[4 * 512] = "1.png";
    weft_bytes image;
    unsigned sum = 0;
    MUST(weft_read_file(NULL, "images/a/1.png", 0, &image));
    snprintf(tar + 100, 8, "0000644");
    snprintf(tar + 124, 12, "%011zo", image.size);
    memcpy(tar + 148, "        0", 9); /* a checksum of spaces, and the type of a file */
    memcpy(tar + 257, "ustar\00000", 8);
    for (int i = 0; i < 512; i++) sum += (unsigned char)tar[i];
    snprintf(tar + 148, 8, "%06o", sum);
    memcpy(tar + 512, image.data, image.size);
    weft_bytes_free(NULL, &image);
    file(path, tar, sizeof tar);
}

/* Writes GPT-2's two files: the character and id of each byte, and one merge. */
static void gpt2_files(void) {
    char json[8192];
    size_t at = 0;
    unsigned moved = 256;
    for (unsigned byte = 0; byte < 256; byte++) {
        const bool seen = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
        at += (size_t)snprintf(json + at, sizeof json - at, "%s\"\\u%04x\": %u", byte ? ", " : "{",
                               seen ? byte : moved++, byte);
    }
    at += (size_t)snprintf(json + at, sizeof json - at, ", \"ab\": 256}\n");
    folder("gpt2");
    file("gpt2/encoder.json", json, at);
    file("gpt2/vocab.bpe", "#version: 0.2\na b\n", 18);
}

/* The folder of a published GPT-2 with a chat template. */
static void published_files(void) {
    static const char config[] =
        "{\"model_type\": \"gpt2\", \"vocab_size\": 8, \"n_positions\": 8, \"n_embd\": 4, "
        "\"n_layer\": 1, \"n_head\": 2}";
    const weft_gpt_options options = {.vocab = 8, .context = 8, .layers = 1, .heads = 2, .width = 4};
    static const char template[] = "{{ messages }}";
    static const char tokenizer[] =
        "{\"version\": \"1.0\", \"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false}, "
        "\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2}, \"merges\": [\"a b\"]}}";
    folder("published");
    folder("saved");
    file("published/config.json", config, sizeof config - 1);
    file("published/chat_template.jinja", template, sizeof template - 1);
    MUST(weft_gpt_save(weft_nn_gpt(good_context(), &options), "published/model.safetensors"));
    file("published/tokenizer.json", tokenizer, sizeof tokenizer - 1);
}

static void model_files(void) {
    weft_entry *entries;
    size_t count;
    MUST(weft_module_save(good_module(), "model.safetensors"));
    MUST(weft_gpt_save(good_gpt(), "gpt.safetensors"));
    MUST(weft_optimizer_step(good_optimizer(), good_loss()));
    MUST(weft_optimizer_entries(good_optimizer(), &entries, &count));
    MUST(weft_safetensors_write(good_context(), "optimizer.safetensors", entries, count, good_metadata(), 2));
    weft_entries_free(good_context(), entries, count);
    MUST(weft_checkpoint_write(NULL, "run", good_checkpoint_state(), good_entries(), 2, good_entries(), 2));
    MUST(weft_checkpoint_mark_best(NULL, "run", 1));
    good_run_files();
}

void good_files(void) {
    static const uint8_t idx[] = {0, 0, 8, 1, 0, 0, 0, 4, 1, 2, 3, 4};
    static const uint8_t cifar[3073];
    static const char csv[] = "a,b\n1,2\n3,4\n", json[] = "{\"x\": [[1, 2]]}";
    folder("run");
    folder("chat");
    file("chat/chat_template.jinja", words, sizeof words - 1);
    folder("images/a");
    folder("images/b");
    small_image("images/a/1.png");
    small_image("images/b/1.png");
    small_tar("images.tar");
    file("data.idx", idx, sizeof idx);
    file("data.bin", cifar, sizeof cifar);
    file("data.csv", csv, sizeof csv - 1);
    file("data.json", json, sizeof json - 1);
    file("text.txt", words, sizeof words - 1);
    file("chats.jsonl", chats, sizeof chats - 1);
    file("pairs.jsonl", pairs, sizeof pairs - 1);
    MUST(weft_write_npy(NULL, "data.npy", good_array()));
    MUST(weft_write_npy(NULL, "labels.npy", good_labels()));
    MUST(weft_tokens_write(NULL, "tokens.bin", good_ids(), 8));
    MUST(weft_tokenizer_save(good_tokenizer(), "tokenizer.json"));
    gpt2_files();
    published_files();
    model_files();
    good_end();
}
