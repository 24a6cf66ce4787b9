/* Writing GGUF files: all architectures are written and read back, and give the logits of transformers; the
 * metadata, the tokenizer, the formats of the tensors; and what is refused. */
#include "unit/failing_alloc.h"
#include "unit/published/gguf_folder.h"

/* ---- the same logits ---- */

static void take_logits(weft_context *ctx, json_t *root, const char *path, float *logits) {
    int32_t tokens[BATCH * TIME];
    take_tokens(root, tokens);
    weft_module *model = weft_published_new(ctx, path, NULL);
    assert_ok(weft_module_status(model));
    assert_ok(weft_published_load(model, path));
    weft_module_set_training(model, false);
    assert_ok(weft_read(weft_forward(model, weft_from(ctx, WEFT_I32, SHAPE(BATCH, TIME), tokens)), logits,
                        sizeof(float) * BATCH * TIME * VOCAB));
    weft_module_free(model);
}

/* Compares four rows with those of transformers. */
static void check_logits(json_t *root, const char *name, const float *logits, double within) {
    static const int places[4] = {0, TIME - 1, TIME + 7, TIME + 18};
    json_t *want = json_object_get(root, "logits");
    double most = 0;
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < VOCAB; i++)
            most =
                fmax(most, fabs(json_real_value(json_array_get(json_array_get(want, (size_t)k), (size_t)i))));
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < VOCAB; i++) {
            const double right = json_real_value(json_array_get(json_array_get(want, (size_t)k), (size_t)i));
            const double got = (double)logits[places[k] * VOCAB + i];
            if (!(fabs(got - right) <= within * most))
                fail_msg("%s: logit %d of row %d is %.7g, transformers has %.7g", name, i, k, got, right);
        }
}

static const char *const architectures[] = {
    "gpt2",         "llama",         "llama-tied",     "llama-linear", "llama-llama3",
    "llama-yarn",   "llama-biases",  "qwen2",          "qwen3",        "phi3",
    "phi3-partial", "phi3-longrope", "phi3-shortrope", "gemma2-usual", "gemma3_text-usual"};

static void test_logits(void **state) {
    (void)state;
    static float logits[BATCH * TIME * VOCAB];
    static const struct {
        const char *word;
        double within;
    } formats[] = {{"f32", 2e-5}, {"f16", 2e-2}, {"q8_0", 5e-2}};
    weft_context *ctx = open_device(NULL, false);
    for (size_t i = 0; i < COUNT(architectures); i++)
        for (size_t k = 0; k < COUNT(formats); k++) {
            char name[64];
            snprintf(name, sizeof name, "%s.json", architectures[i]);
            json_t *root = read_model(name);
            const char *folder = model_folder(ctx, root, architectures[i]), *path = in_scratch("x.gguf");
            assert_ok(weft_published_quantize(ctx, folder, path, formats[k].word));
            take_logits(ctx, root, path, logits);
            check_logits(root, architectures[i], logits, formats[k].within);
            json_decref(root);
        }
    weft_close(ctx);
}

/* A GGUF file becomes a folder for transformers: with its names, and a tokenizer that frames texts as the
 * file's does without reading tokenizer_config.json. The folder becomes the same GGUF file again. */
static void check_folder(weft_context *ctx, json_t *root, const char *name, const char *path) {
    static float logits[BATCH * TIME * VOCAB];
    const char *folder = in_scratch("hf"), *again = in_scratch("hf.gguf");
    weft_tokenizer *t;
    int32_t ids[8];
    size_t count;
    weft_module *model = weft_published_new(ctx, path, NULL);
    assert_ok(weft_published_load(model, path));
    assert_ok(weft_published_save(model, path, folder, WEFT_F32));
    weft_module_free(model);
    take_logits(ctx, root, folder, logits);
    check_logits(root, name, logits, 2e-5);
    assert_ok(weft_published_quantize(ctx, folder, again, "f32"));
    take_logits(ctx, root, again, logits);
    check_logits(root, name, logits, 2e-5);
    unlink(in_scratch("hf/tokenizer_config.json"));
    assert_ok(weft_published_tokenizer(ctx, folder, &t));
    assert_ok(weft_tokenizer_encode_special(t, "abc", 3, ids, 8, &count));
    assert_true(count == 2 && ids[0] == 0 && ids[1] == 8);
    weft_tokenizer_free(t);
    remove_all(folder);
}

static void test_folders(void **state) {
    (void)state;
    weft_context *ctx = open_device(NULL, false);
    for (size_t i = 0; i < COUNT(architectures); i++) {
        char name[64];
        snprintf(name, sizeof name, "%s.json", architectures[i]);
        json_t *root = read_model(name);
        const char *path = in_scratch("y.gguf");
        assert_ok(weft_published_quantize(ctx, model_folder(ctx, root, architectures[i]), path, "f32"));
        check_folder(ctx, root, architectures[i], path);
        json_decref(root);
    }
    weft_close(ctx);
}

/* ---- what is in the file ---- */

static double number_of(const weft__gguf *g, const char *key) {
    weft__gguf_value value;
    double number;
    if (!weft__gguf_find(g, key, &value) || !weft__gguf_number(&value, &number)) fail_msg("no %s", key);
    return number;
}

static void check_text(const weft__gguf *g, const char *key, const char *want) {
    weft__gguf_value value;
    const char *text;
    size_t bytes;
    if (!weft__gguf_find(g, key, &value) || !weft__gguf_text(&value, &text, &bytes)) fail_msg("no %s", key);
    if (bytes != strlen(want) || memcmp(text, want, bytes) != 0)
        fail_msg("%s is '%.*s', not '%s'", key, (int)bytes, text, want);
}

static void check_type(const weft__gguf *g, const char *name, const char *type) {
    if (strcmp(tensor_of(g, name)->type->name, type) != 0)
        fail_msg("%s is %s, not %s", name, tensor_of(g, name)->type->name, type);
}

static void check_tokens(const weft__gguf *g) {
    static const char *const want[] = {"<|end|>",    "a", "b",   "c",      "\304\240", "ab",
                                       "\304\240ab", "1", "abc", "<tool>", "[PAD10]"};
    static const double types[] = {3, 1, 1, 1, 1, 1, 1, 1, 1, 4, 5};
    weft__gguf_value tokens, kinds, merges;
    const char *text;
    size_t bytes;
    double type;
    assert_true(weft__gguf_find(g, "tokenizer.ggml.tokens", &tokens));
    assert_true(weft__gguf_find(g, "tokenizer.ggml.token_type", &kinds));
    assert_true(weft__gguf_find(g, "tokenizer.ggml.merges", &merges));
    assert_int_equal(tokens.count, VOCAB);
    assert_int_equal(kinds.count, VOCAB);
    assert_int_equal(merges.count, 3);
    for (size_t i = 0; i < COUNT(want); i++) {
        assert_true(weft__gguf_text(&tokens, &text, &bytes) && weft__gguf_number(&kinds, &type));
        if (bytes != strlen(want[i]) || memcmp(text, want[i], bytes) != 0 || type != types[i])
            fail_msg("token %zu is '%.*s' of type %g", i, (int)bytes, text, type);
    }
    for (int i = 0; i < 2; i++) assert_true(weft__gguf_text(&merges, &text, &bytes));
    assert_true(bytes == 5 && memcmp(text, "\304\240 ab", 5) == 0);
}

static void test_metadata(void **state) {
    (void)state;
    weft_context *ctx = open_device(NULL, false);
    weft__gguf *g;
    json_t *root = read_model("llama.json");
    const char *folder = model_folder(ctx, root, "meta"), *path = in_scratch("meta.gguf");
    assert_ok(weft_published_quantize(ctx, folder, path, "q4_k"));
    assert_ok(weft__gguf_open(ctx, path, &g));
    check_text(g, "general.architecture", "llama");
    check_text(g, "general.name", "meta");
    assert_true(number_of(g, "general.file_type") == 14);
    assert_true(number_of(g, "general.quantization_version") == 2);
    assert_true(number_of(g, "llama.context_length") == 64);
    assert_true(number_of(g, "llama.embedding_length") == 32);
    assert_true(number_of(g, "llama.block_count") == 2);
    assert_true(number_of(g, "llama.feed_forward_length") == 40);
    assert_true(number_of(g, "llama.attention.head_count") == 4);
    assert_true(number_of(g, "llama.attention.head_count_kv") == 2);
    assert_true(number_of(g, "llama.attention.key_length") == 8);
    assert_true(number_of(g, "llama.rope.dimension_count") == 8);
    assert_true(number_of(g, "llama.rope.freq_base") == 10000);
    assert_true(fabs(number_of(g, "llama.attention.layer_norm_rms_epsilon") - 1e-6) < 1e-12);
    assert_true(number_of(g, "llama.vocab_size") == VOCAB);
    check_text(g, "tokenizer.ggml.model", "gpt2");
    check_text(g, "tokenizer.ggml.pre", "smollm");
    check_text(g, "tokenizer.chat_template", "{{ messages }}");
    assert_true(number_of(g, "tokenizer.ggml.bos_token_id") == 0);
    assert_true(number_of(g, "tokenizer.ggml.eos_token_id") == 0);
    assert_true(number_of(g, "tokenizer.ggml.add_bos_token") == 1);
    assert_true(number_of(g, "tokenizer.ggml.add_eos_token") == 0);
    check_tokens(g);
    /* rows of 32 are no whole number of K blocks, and rows of 40 no whole number of any */
    check_type(g, "blk.0.attn_q.weight", "Q5_0");
    check_type(g, "blk.0.ffn_down.weight", "F16");
    check_type(g, "blk.0.attn_norm.weight", "F32");
    check_type(g, "output.weight", "Q8_0");
    check_type(g, "token_embd.weight", "Q5_0");
    weft__gguf_close(g);
    json_decref(root);
    weft_close(ctx);
}

/* Weft reads the tokenizer back, and encodes as before. */
static void test_tokenizer(void **state) {
    (void)state;
    static const struct { const char *pre, *name; } cases[] = {{BYTES, "gpt-2"}, {DIGITS, "smollm"}};
    weft_context *ctx = open_device(NULL, false);
    json_t *root = read_model("qwen2.json");
    for (size_t i = 0; i < COUNT(cases); i++) {
        static const char text[] = "abc ab11<tool>ca<|end|>";
        const char *folder = model_folder(ctx, root, "words"), *path = in_scratch("words.gguf");
        weft_tokenizer *before, *after;
        int32_t ids[2][32];
        size_t counts[2];
        weft__gguf *g;
        write_tokenizer(folder, "null", cases[i].pre);
        assert_ok(weft_published_quantize(ctx, folder, path, "f16"));
        assert_ok(weft__gguf_open(ctx, path, &g));
        check_text(g, "tokenizer.ggml.pre", cases[i].name);
        weft__gguf_close(g);
        assert_ok(weft_published_tokenizer(ctx, folder, &before));
        assert_ok(weft_published_tokenizer(ctx, path, &after));
        assert_ok(weft_tokenizer_encode_special(before, text, strlen(text), ids[0], 32, &counts[0]));
        assert_ok(weft_tokenizer_encode_special(after, text, strlen(text), ids[1], 32, &counts[1]));
        assert_true(counts[0] > 8 && ids[0][0] == 0);
        assert_int_equal(counts[0], counts[1]);
        assert_memory_equal(ids[0], ids[1], counts[0] * sizeof(int32_t));
        assert_int_equal(weft_tokenizer_special(after, WEFT_SPECIAL_EOS), 0);
        weft_tokenizer_free(before);
        weft_tokenizer_free(after);
    }
    json_decref(root);
    weft_close(ctx);
}

/* ---- SentencePiece ---- */

/* %s is the normalizer, the pre-tokenizer, and the merges. */
#define PIECES                                                                                               \
    "{\"version\":\"1.0\",\"added_tokens\":[{\"id\":0,\"content\":\"<unk>\",\"special\":true},"              \
    "{\"id\":1,\"content\":\"<s>\",\"special\":true}],\"normalizer\":%s,\"pre_tokenizer\":%s,"               \
    "\"post_processor\":null,\"decoder\":null,\"model\":{\"type\":\"BPE\",\"unk_token\":\"<unk>\","          \
    "\"byte_fallback\":true,\"fuse_unk\":true,\"vocab\":%s,\"merges\":[%s]}}"
#define SPACES "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\xe2\x96\x81\"}"
#define PREPENDED                                                                                            \
    "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":\"\xe2\x96\x81\"}," SPACES "]}"
#define METASPACE                                                                                            \
    "{\"type\":\"Metaspace\",\"replacement\":\"\xe2\x96\x81\",\"prepend_scheme\":\"never\",\"split\":%s}"
#define GEMMA                                                                                                \
    "{\"type\":\"Split\",\"pattern\":{\"String\":\" \"},\"behavior\":\"MergedWithPrevious\","                \
    "\"invert\":false}"
#define MERGES                                                                                               \
    "[\"a\",\"b\"],[\"\xe2\x96\x81\",\"ab\"],[\"\xe2\x96\x81"                                                \
    "a\",\"b\"],[\"\xe2\x96\x81\",\"a\"]"

enum { PIECE_ROWS = 270 };

/* Tokens 2 to 257 are bytes, then come a, b, the space, ab, space ab, space a. */
static void write_pieces(const char *folder, const char *normalizer, const char *pre, const char *merges) {
    static char vocabulary[8192], text[16384];
    size_t at = (size_t)snprintf(vocabulary, sizeof vocabulary, "{\"<unk>\":0,\"<s>\":1");
    for (unsigned i = 0; i < 256; i++)
        at += (size_t)snprintf(vocabulary + at, sizeof vocabulary - at, ",\"<0x%02X>\":%u", i, i + 2);
    snprintf(vocabulary + at, sizeof vocabulary - at,
             ",\"a\":258,\"b\":259,\"\xe2\x96\x81\":260,\"ab\":261,\"\xe2\x96\x81"
             "ab\":262,\"\xe2\x96\x81"
             "a\":263}");
    snprintf(text, sizeof text, PIECES, normalizer, pre, vocabulary, merges);
    write_text(folder, "tokenizer.json", text);
    write_text(folder, "tokenizer_config.json", "{\"bos_token\":\"<s>\",\"add_bos_token\":true}");
}

/* Makes a model with as many rows as the tokens need. */
static const char *piece_folder(weft_context *ctx, json_t *root) {
    json_object_set_new(json_object_get(root, "config"), "vocab_size", json_integer(PIECE_ROWS));
    json_t *shapes = json_object_get(root, "tensors");
    json_object_set_new(shapes, "model.embed_tokens.weight", json_pack("[i,i]", PIECE_ROWS, 32));
    json_object_set_new(shapes, "lm_head.weight", json_pack("[i,i]", PIECE_ROWS, 32));
    return make_folder(ctx, root, WEFT_F32, "pieces");
}

static void check_pieces(const weft__gguf *g) {
    static const struct {
        int id;
        double type, score;
    } want[] = {{0, 2, 0},   {1, 3, 0},    {2, 6, 0},    {257, 6, 0},  {258, 1, 0},
                {260, 1, 0}, {261, 1, -1}, {262, 1, -2}, {263, 1, -3}, {264, 5, 0}};
    weft__gguf_value types, scores;
    double type = 0, score = 0;
    int at = 0;
    assert_true(weft__gguf_find(g, "tokenizer.ggml.token_type", &types));
    assert_true(weft__gguf_find(g, "tokenizer.ggml.scores", &scores));
    assert_true(types.count == PIECE_ROWS && scores.count == PIECE_ROWS);
    for (size_t i = 0; i < COUNT(want); i++) {
        for (; at <= want[i].id; at++)
            assert_true(weft__gguf_number(&types, &type) && weft__gguf_number(&scores, &score));
        if (type != want[i].type || score != want[i].score)
            fail_msg("token %d has type %g and score %g", want[i].id, type, score);
    }
}

static void refuses(weft_context *ctx, const char *folder, const char *path, const char *format,
                    weft_status status, const char *part);

/* Weft reads the tokenizer back: the same ids and, from them, the same text. */
static void check_pieces_read(weft_context *ctx, const char *folder, const char *path) {
    static const char text[] = "ab a  b\303\251abab";
    weft_tokenizer *before, *after;
    int32_t ids[2][64];
    size_t counts[2], bytes;
    char back[64];
    assert_ok(weft_published_tokenizer(ctx, folder, &before));
    assert_ok(weft_published_tokenizer(ctx, path, &after));
    assert_ok(weft_tokenizer_encode_special(before, text, strlen(text), ids[0], 64, &counts[0]));
    assert_ok(weft_tokenizer_encode_special(after, text, strlen(text), ids[1], 64, &counts[1]));
    assert_true(counts[0] > 6 && ids[0][0] == 1 && counts[0] == counts[1]);
    assert_memory_equal(ids[0], ids[1], counts[0] * sizeof(int32_t));
    assert_ok(weft_tokenizer_decode(after, ids[1] + 1, counts[1] - 1, back, 64, &bytes));
    assert_true(bytes == strlen(text) && memcmp(back, text, bytes) == 0);
    weft_tokenizer_free(before);
    weft_tokenizer_free(after);
}

/* A file without one of the arrays makes no tokenizer. */
static void check_pieces_refused(weft_context *ctx, const char *path, const char *key) {
    size_t bytes, at = 0;
    char *file = slurp(path, &bytes);
    weft_tokenizer *t = NULL;
    assert_non_null(file);
    while (at + strlen(key) < bytes && memcmp(file + at, key, strlen(key)) != 0) at++;
    assert_true(at + strlen(key) < bytes);
    file[at] = 'T';
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(file, 1, bytes, f), bytes);
    fclose(f);
    free(file);
    assert_int_equal(weft_published_tokenizer(ctx, path, &t), WEFT_ERR_FORMAT);
    assert_null(t);
    assert_non_null(strstr(weft_last_error(ctx), "tokenizer.ggml.tokens, scores and token_type"));
}

static void test_sentencepiece(void **state) {
    (void)state;
    weft_context *ctx = open_device(NULL, false);
    json_t *root = read_model("llama.json");
    weft__gguf *g;
    char whole[256], split[256];
    snprintf(whole, sizeof whole, METASPACE, "false");
    snprintf(split, sizeof split, METASPACE, "true");
    const char *folder = piece_folder(ctx, root), *path = in_scratch("pieces.gguf");
    const struct {
        const char *normalizer, *pre;
        double prefix;
    } cases[] = {{PREPENDED, "null", 1}, {SPACES, "null", 0}, {SPACES, GEMMA, 0}, {"null", whole, 0}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        write_pieces(folder, cases[i].normalizer, cases[i].pre, MERGES);
        assert_ok(weft_published_quantize(ctx, folder, path, "f16"));
        assert_ok(weft__gguf_open(ctx, path, &g));
        check_text(g, "tokenizer.ggml.model", "llama");
        assert_true(number_of(g, "tokenizer.ggml.add_space_prefix") == cases[i].prefix);
        assert_true(number_of(g, "tokenizer.ggml.bos_token_id") == 1);
        assert_true(number_of(g, "tokenizer.ggml.add_bos_token") == 1);
        check_pieces(g);
        weft__gguf_close(g);
        check_pieces_read(ctx, folder, path);
    }
    check_pieces_refused(ctx, path, "tokenizer.ggml.scores");
    write_pieces(folder, "null", split, MERGES);
    refuses(ctx, folder, path, "f16", WEFT_ERR_FORMAT, "in another way than SentencePiece");
    write_pieces(folder, SPACES, "null", "[\"a\",\"b\"],[\"\xe2\x96\x81\",\"ab\"]");
    refuses(ctx, folder, path, "f16", WEFT_ERR_FORMAT, "has no merge for some pairs");
    write_pieces(folder, SPACES, "null",
                 "[\"\xe2\x96\x81\",\"ab\"],[\"a\",\"b\"],[\"\xe2\x96\x81"
                 "a\",\"b\"]");
    refuses(ctx, folder, path, "f16", WEFT_ERR_FORMAT, "not sorted by the token");
    json_decref(root);
    weft_close(ctx);
}

/* The divisors of Llama 3's rates, as transformers computes the rates. */
static void test_rates(void **state) {
    (void)state;
    weft_context *ctx = open_device(NULL, false);
    json_t *root = read_model("llama-llama3.json");
    weft__gguf *g;
    const char *path = in_scratch("rates.gguf");
    assert_ok(weft_published_quantize(ctx, model_folder(ctx, root, "rates"), path, "f32"));
    assert_ok(weft__gguf_open(ctx, path, &g));
    const weft__gguf_tensor *t = tensor_of(g, "rope_freqs.weight");
    assert_true(t->rank == 1 && t->shape[0] == 4);
    for (int i = 0; i < 4; i++) { /* factor 8, from 1 to 4 rotations in 16 tokens */
        const double turns = 16 / (2 * acos(-1.0)) * pow(10000, -i / 4.0);
        const double smooth = (turns - 1) / 3;
        const double want = turns > 4 ? 1 : turns < 1 ? 8 : 1 / ((1 - smooth) / 8 + smooth);
        float got;
        weft__block_unpack(t->type, t->data + 4 * i, 1, &got);
        if (fabs((double)got - want) > 1e-5) fail_msg("divisor %d is %g, not %g", i, (double)got, want);
    }
    weft__gguf_close(g);
    json_decref(root);
    weft_close(ctx);
}

/* A window shortens the context, where the architecture has no key for it. */
static void test_windows(void **state) {
    (void)state;
    weft_context *ctx = open_device(NULL, false);
    json_t *root = read_model("mistral.json");
    weft__gguf *g;
    const char *path = in_scratch("window.gguf");
    assert_ok(weft_published_quantize(ctx, model_folder(ctx, root, "window"), path, "f32"));
    assert_ok(weft__gguf_open(ctx, path, &g));
    check_text(g, "general.architecture", "llama");
    assert_true(number_of(g, "llama.context_length") == 5);
    weft__gguf_close(g);
    json_decref(root);
    weft_close(ctx);
}

/* Gemma: norms hold 1 + weight, and keys say what the architecture leaves open. */
static void test_gemma(void **state) {
    (void)state;
    weft_context *ctx = open_device(NULL, false);
    json_t *root = read_model("gemma3_text-usual.json");
    weft__gguf *g;
    const char *folder = model_folder(ctx, root, "gemma"), *path = in_scratch("gemma.gguf");
    assert_ok(weft_published_quantize(ctx, folder, path, "f32"));
    assert_ok(weft__gguf_open(ctx, path, &g));
    check_text(g, "general.architecture", "gemma3");
    assert_true(number_of(g, "gemma3.context_length") == 64);
    assert_true(number_of(g, "gemma3.attention.sliding_window") == 5);
    assert_true(number_of(g, "gemma3.rope.freq_base") == 1e6);
    assert_true(number_of(g, "gemma3.rope.freq_base_swa") == 10000);
    const weft__gguf_tensor *t = tensor_of(g, "blk.5.post_ffw_norm.weight");
    weft_module *model = weft_published_new(ctx, folder, NULL);
    weft_parameter_info p;
    float weight, in_file;
    assert_ok(weft_published_load(model, folder));
    assert_true(weft_parameter_find(model, "h.5.ln_2_after.weight", &p));
    assert_ok(weft_read(weft_narrow(p.tensor, 0, 3, 1), &weight, sizeof weight));
    weft__block_unpack(t->type, t->data + 3 * t->row_bytes / (size_t)t->shape[0], 1, &in_file);
    assert_true(weight != 0 && in_file == 1 + weight);
    weft__gguf_close(g);
    json_decref(root);
    root = read_model("gemma2-usual.json");
    assert_ok(weft_published_quantize(ctx, model_folder(ctx, root, "gemma"), path, "f32"));
    assert_ok(weft__gguf_open(ctx, path, &g));
    assert_true(number_of(g, "gemma2.attn_logit_softcapping") == 5);
    assert_true(number_of(g, "gemma2.final_logit_softcapping") == 3);
    weft__gguf_close(g);
    json_decref(root);
    weft_close(ctx);
}

/* ---- other sources ---- */

static void check_same_tensors(weft_context *ctx, const char *one, const char *other) {
    weft__gguf *a, *b;
    assert_ok(weft__gguf_open(ctx, one, &a));
    assert_ok(weft__gguf_open(ctx, other, &b));
    assert_true(weft__gguf_count(a) > 10 && weft__gguf_count(a) == weft__gguf_count(b));
    for (size_t i = 0; i < weft__gguf_count(a); i++) {
        const weft__gguf_tensor *x = weft__gguf_tensor_at(a, i), *y = weft__gguf_tensor_at(b, i);
        const size_t bytes = x->row_bytes * (size_t)(x->rank > 1 ? x->shape[0] : 1);
        assert_string_equal(x->name, y->name);
        assert_ptr_equal(x->type, y->type);
        if (memcmp(x->data, y->data, bytes) != 0) fail_msg("%s differs", x->name);
    }
    weft__gguf_close(a);
    weft__gguf_close(b);
}

/* A module and a GGUF file give the tensors that the folder gives. */
static void test_sources(void **state) {
    (void)state;
    static const char *const kinds[] = {"llama", "gpt2", "phi3"};
    weft_context *ctx = open_device(NULL, false);
    for (size_t i = 0; i < COUNT(kinds); i++) {
        char name[64];
        snprintf(name, sizeof name, "%s.json", kinds[i]);
        json_t *root = read_model(name);
        const char *folder = model_folder(ctx, root, kinds[i]), *from_folder = in_scratch("folder.gguf"),
                   *from_module = in_scratch("module.gguf"), *from_file = in_scratch("file.gguf"),
                   *whole = in_scratch("whole.gguf");
        weft_module *model = weft_published_new(ctx, folder, NULL);
        assert_ok(weft_published_load(model, folder));
        assert_ok(weft_published_quantize(ctx, folder, from_folder, "q8_0"));
        assert_ok(weft_published_save_gguf(model, folder, from_module, "q8_0"));
        assert_ok(weft_published_quantize(ctx, folder, whole, "f32"));
        assert_ok(weft_published_quantize(ctx, whole, from_file, "q8_0"));
        check_same_tensors(ctx, from_folder, from_module);
        check_same_tensors(ctx, from_folder, from_file);
        json_decref(root);
    }
    weft_close(ctx);
}

/* A model whose weights are packed gives the tensors of the file from which it came. */
static void test_packed(void **state) {
    (void)state;
    weft_context *ctx = open_device(NULL, false);
    json_t *root = read_model("llama.json");
    const char *folder = model_folder(ctx, root, "packed"), *from = in_scratch("packed.gguf"),
               *to = in_scratch("again.gguf");
    assert_ok(weft_published_quantize(ctx, folder, from, "q8_0"));
    weft_module *model = weft_published_new(ctx, from, &(weft_published_options){.packed = true});
    assert_ok(weft_published_load(model, from));
    assert_ok(weft_published_save_gguf(model, from, to, "q8_0"));
    check_same_tensors(ctx, from, to);
    json_decref(root);
    weft_close(ctx);
}

/* Sets all elements of a parameter. */
static void set_all(weft_tensor *parameter, float value) {
    const size_t n = (size_t)weft_numel(parameter);
    float *values = malloc(n * sizeof *values);
    for (size_t i = 0; i < n; i++) values[i] = value;
    assert_ok(weft_write(parameter, values, n * sizeof *values));
    free(values);
}

/* Adapters are added to the weights. */
static void test_adapters(void **state) {
    (void)state;
    static float one[BATCH * TIME * VOCAB], other[BATCH * TIME * VOCAB];
    int32_t tokens[BATCH * TIME];
    weft_context *ctx = open_device(NULL, false);
    json_t *root = read_model("llama.json");
    const char *folder = model_folder(ctx, root, "lora"), *path = in_scratch("lora.gguf");
    weft_parameter_info p;
    weft_module *model = weft_published_new(ctx, folder, NULL);
    assert_ok(weft_gpt_lora(model, &(weft_lora_options){.rank = 2}));
    assert_ok(weft_published_load(model, folder));
    for (size_t i = 0; weft_parameter_get(model, i, &p); i++)
        if (strstr(p.name, ".lora_B.")) set_all(p.tensor, 0.05F);
    weft_module_set_training(model, false);
    take_tokens(root, tokens);
    assert_ok(weft_read(weft_forward(model, weft_from(ctx, WEFT_I32, SHAPE(BATCH, TIME), tokens)), one,
                        sizeof one));
    assert_ok(weft_published_save_gguf(model, folder, path, "f32"));
    take_logits(ctx, root, path, other);
    for (size_t i = 0; i < COUNT(one); i++)
        if (fabs((double)one[i] - (double)other[i]) > 1e-4) fail_msg("logit %zu differs", i);
    json_decref(root);
    weft_close(ctx);
}

/* ---- what is refused ---- */

/* Nothing is left in the scratch folder but what was there. */
static int files_in_scratch(void) {
    int n = 0;
    DIR *folder = opendir(scratch);
    assert_non_null(folder);
    while (readdir(folder)) n++;
    closedir(folder);
    return n;
}

static void refuses(weft_context *ctx, const char *folder, const char *path, const char *format,
                    weft_status status, const char *part) {
    const int before = files_in_scratch();
    assert_int_equal(weft_published_quantize(ctx, folder, path, format), status);
    if (!strstr(weft_last_error(ctx), part)) fail_msg("'%s' does not say '%s'", weft_last_error(ctx), part);
    assert_int_equal(files_in_scratch(), before);
}

static void test_refused_tokenizers(void **state) {
    (void)state;
    weft_context *ctx = open_device(NULL, false);
    json_t *root = read_model("llama.json");
    const char *folder = model_folder(ctx, root, "odd"), *path = in_scratch("odd.gguf");
    write_tokenizer(folder, "{\"type\":\"Lowercase\"}", DIGITS);
    refuses(ctx, folder, path, "f16", WEFT_ERR_FORMAT, "changes texts by a normalizer");
    write_tokenizer(folder, "null", "{\"type\":\"Whitespace\"}");
    refuses(ctx, folder, path, "f16", WEFT_ERR_FORMAT, "is of another kind");
    write_tokenizer(folder, "{\"type\":\"NFC\"}", BYTES);
    refuses(ctx, folder, path, "f16", WEFT_ERR_FORMAT, "tokenizer.ggml.pre");
    write_tokenizer(folder, "null", DIGITS);
    json_object_set_new(json_object_get(root, "config"), "vocab_size", json_integer(9));
    write_config(folder, json_object_get(root, "config"));
    refuses(ctx, folder, path, "f16", WEFT_ERR_FORMAT, "tensor");
    unlink(in_scratch("odd/tokenizer.json"));
    unlink(in_scratch("odd/tokenizer_config.json"));
    json_object_set_new(json_object_get(root, "config"), "vocab_size", json_integer(VOCAB));
    write_config(folder, json_object_get(root, "config"));
    refuses(ctx, folder, path, "f16", WEFT_ERR_IO, "tokenizer");
    json_decref(root);
    weft_close(ctx);
}

static void test_refused_models(void **state) {
    (void)state;
    weft_context *ctx = open_device(NULL, false);
    static const struct {
        const char *name, *part;
    } cases[] = {
        {"gemma2", "cannot hold this query_pre_attn_scalar"},
        {"gemma3_text", "cannot hold this query_pre_attn_scalar"},
        {"gpt_neox", "does not write the architecture gpt_neox to GGUF files; it writes llama, qwen2"},
        {"gpt2-untied", "cannot hold the activation"},
        {"qwen3-biases", "cannot hold biases of projections"}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        char name[64];
        snprintf(name, sizeof name, "%s.json", cases[i].name);
        json_t *root = read_model(name);
        refuses(ctx, model_folder(ctx, root, cases[i].name), in_scratch("no.gguf"), "f16", WEFT_ERR_FORMAT,
                cases[i].part);
        json_decref(root);
    }
    json_t *root = read_model("llama.json");
    const char *folder = model_folder(ctx, root, "llama");
    refuses(ctx, folder, in_scratch("no.gguf"), "q9", WEFT_ERR_ARGUMENT,
            "does not know the format 'q9'; it knows f32, f16, bf16");
    refuses(ctx, folder, in_scratch("nowhere/no.gguf"), "f16", WEFT_ERR_IO, "nowhere");
    json_decref(root);
    weft_close(ctx);
}

/* A weight that is no number, or beyond f16, is named, and an existing file stays. */
static void test_refused_weights(void **state) {
    (void)state;
    static const struct {
        float value;
        const char *part;
    } cases[] = {{NAN, "the weight nan, which the format q8_0 cannot hold"},
                 {70000, "the weight 70000, which the format q8_0 cannot hold: choose f32 or bf16"}};
    weft_context *ctx = open_device(NULL, false);
    json_t *root = read_model("llama.json");
    const char *folder = model_folder(ctx, root, "bad"), *path = in_scratch("bad.gguf");
    weft_parameter_info p;
    weft_module *model = weft_published_new(ctx, folder, NULL);
    size_t bytes;
    write_text(scratch, "bad.gguf", "old");
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_ok(weft_published_load(model, folder));
        for (size_t j = 0; weft_parameter_get(model, j, &p); j++)
            if (strcmp(p.name, "h.1.attn.c_proj.weight") == 0) set_all(p.tensor, cases[i].value);
        assert_int_equal(weft_published_save_gguf(model, folder, path, "q8_0"), WEFT_ERR_FORMAT);
        assert_non_null(strstr(weft_last_error(ctx), "'blk.1.attn_output.weight'"));
        assert_non_null(strstr(weft_last_error(ctx), cases[i].part));
        char *old = slurp(path, &bytes);
        assert_true(old && bytes == 3 && memcmp(old, "old", 3) == 0);
        free(old);
    }
    json_decref(root);
    weft_close(ctx);
}

/* If memory is short, the call fails, frees what it has, and leaves no file. */
static void test_memory(void **state) {
    (void)state;
    weft_context *ctx = open_device(NULL, false);
    json_t *root = read_model("llama.json");
    const char *folder = model_folder(ctx, root, "memory"), *path = in_scratch("memory.gguf");
    const int before = files_in_scratch();
    int failures = 0, calls = 0;
    for (int at = 1;; at += 1 + at / 24) {
        failing_alloc f = {.fail_at = at};
        weft_context short_of = {.caller.alloc = failing_realloc, .caller.alloc_user = &f};
        const weft_status status = weft_published_quantize(&short_of, folder, path, "q4_k");
        if (f.live != 0 || (status != WEFT_OK && status != WEFT_ERR_OOM))
            fail_msg("allocation %d: status %d, %d not freed: %s", at, (int)status, f.live,
                     weft_last_error(NULL));
        failures += status != WEFT_OK;
        calls = f.calls;
        if (status != WEFT_OK) assert_int_equal(files_in_scratch(), before);
        if (status == WEFT_OK) unlink(path);
        if (f.calls < at) break;
    }
    if (calls < 500 || failures < 80) fail_msg("%d allocations, %d failures", calls, failures);
    json_decref(root);
    weft_close(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_logits),         cmocka_unit_test(test_folders),
        cmocka_unit_test(test_metadata),       cmocka_unit_test(test_tokenizer),
        cmocka_unit_test(test_sentencepiece),  cmocka_unit_test(test_rates),
        cmocka_unit_test(test_windows),        cmocka_unit_test(test_gemma),
        cmocka_unit_test(test_sources),        cmocka_unit_test(test_adapters),
        cmocka_unit_test(test_packed),         cmocka_unit_test(test_refused_tokenizers),
        cmocka_unit_test(test_refused_models), cmocka_unit_test(test_refused_weights),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
