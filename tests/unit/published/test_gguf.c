/* GGUF files: blocks of each dtype against the package gguf (blocks.json), a Llama written by this test as
 * llama.cpp writes it, Llama 3's rates, and damaged files. */
#include <jansson.h>

#include <weft/published.h>

#include "published/gguf.h"
#include "unit/core_help.h"
#include "unit/io_scratch.h"

/* ---- blocks ---- */

static void test_blocks(void **state) {
    (void)state;
    json_error_t error;
    json_t *root = json_load_file("tests/unit/published/blocks.json", 0, &error), *one;
    const char *name;
    assert_non_null(root);
    assert_true(json_object_size(root) >= 11);
    json_object_foreach(root, name, one) {
        const weft__block_type *type =
            weft__block_find((uint32_t)json_integer_value(json_object_get(one, "number")));
        const char *hex = json_string_value(json_object_get(one, "bytes"));
        json_t *values = json_object_get(one, "values");
        uint8_t bytes[512];
        float got[512];
        assert_non_null(type);
        assert_string_equal(type->name, name);
        assert_int_equal(strlen(hex), 4 * type->bytes);
        assert_int_equal(json_array_size(values), 2 * type->elements);
        for (size_t i = 0; i < 2 * type->bytes; i++) {
            unsigned byte;
            assert_int_equal(sscanf(hex + 2 * i, "%2x", &byte), 1);
            bytes[i] = (uint8_t)byte;
        }
        weft__block_unpack(type, bytes, 2 * type->elements, got);
        for (size_t i = 0; i < json_array_size(values); i++) {
            const double want = json_number_value(json_array_get(values, i));
            if (!(fabs(got[i] - want) <= 1e-6 * fabs(want) + 1e-9))
                fail_msg("%s: element %zu is %.9g, gguf has %.9g", name, i, (double)got[i], want);
        }
    }
    json_decref(root);
}

/* ---- a file ---- */

typedef struct bytes {
    uint8_t data[1 << 19];
    size_t count;
} bytes;

static void put_raw(bytes *b, const void *data, size_t n) {
    assert_true(b->count + n <= sizeof b->data);
    memcpy(b->data + b->count, data, n);
    b->count += n;
}

static void put_u32(bytes *b, uint32_t value) {
    for (int i = 0; i < 4; i++) put_raw(b, &(uint8_t){(uint8_t)(value >> 8 * i)}, 1);
}
static void put_u64(bytes *b, uint64_t value) {
    put_u32(b, (uint32_t)value);
    put_u32(b, (uint32_t)(value >> 32));
}
static void put_text(bytes *b, const char *text) {
    put_u64(b, strlen(text));
    put_raw(b, text, strlen(text));
}
static void put_key(bytes *b, const char *key, uint32_t kind) {
    put_text(b, key);
    put_u32(b, kind);
}
static void put_int(bytes *b, const char *key, uint32_t value) {
    put_key(b, key, WEFT__GGUF_U32);
    put_u32(b, value);
}
static void put_float(bytes *b, const char *key, float value) {
    uint32_t raw;
    memcpy(&raw, &value, sizeof raw);
    put_key(b, key, WEFT__GGUF_F32);
    put_u32(b, raw);
}

/* The tensors of models/llama.json by their names in GGUF files. */
static const char *const names[][2] = {
    {"lm_head.weight", "output.weight"},          {"model.embed_tokens.weight", "token_embd.weight"},
    {"model.norm.weight", "output_norm.weight"},  {"input_layernorm.weight", "attn_norm.weight"},
    {"mlp.down_proj.weight", "ffn_down.weight"},  {"mlp.gate_proj.weight", "ffn_gate.weight"},
    {"mlp.up_proj.weight", "ffn_up.weight"},      {"post_attention_layernorm.weight", "ffn_norm.weight"},
    {"self_attn.k_proj.weight", "attn_k.weight"}, {"self_attn.o_proj.weight", "attn_output.weight"},
    {"self_attn.q_proj.weight", "attn_q.weight"}, {"self_attn.v_proj.weight", "attn_v.weight"},
};

static void name_in_gguf(const char *name, char out[64]) {
    int layer = 0;
    char rest[64] = "";
    const bool inner = sscanf(name, "model.layers.%d.%63s", &layer, rest) == 2;
    for (size_t i = 0; i < COUNT(names); i++)
        if (strcmp(names[i][0], inner ? rest : name) == 0) {
            snprintf(out, 64, inner ? "blk.%d.%s" : "%.0d%s", layer, names[i][1]);
            return;
        }
    fail_msg("%s has no name in GGUF files", name);
}

/* As make_models.py fills tensor `number`. */
static float filled(int64_t i, int number, bool norm) {
    return (float)((i * (5 + 2 * (number % 7)) + 3 * number) % 23 - 11) / 64 + (norm ? 1.0F : 0.0F);
}

/* Appends the values of a tensor. llama.cpp writes the rows of queries and keys of Llama so that the two
 * channels that rotate together are neighbours: row (head, i, s) is the row (head, s, i) of transformers. */
static void put_values(bytes *b, const char *name, int64_t rows, int64_t columns, int number) {
    enum { D = 8 };
    const bool turned = strstr(name, "q_proj") || strstr(name, "k_proj");
    for (int64_t r = 0; r < rows; r++) {
        const int64_t row = turned ? r / D * D + r % 2 * (D / 2) + r % D / 2 : r;
        for (int64_t c = 0; c < columns; c++) {
            const float value = filled(row * columns + c, number, strstr(name, "norm") != NULL);
            put_raw(b, &value, sizeof value);
        }
    }
    while (b->count % 32) put_raw(b, "", 1);
}

/* Writes the model of llama.json, with the divisors of rates if `rates` is not NULL. */
static void make_file(bytes *b, json_t *root, const float *rates) {
    static bytes values;
    json_t *tensors = json_object_get(root, "tensors"), *shape;
    const char *name;
    int number = 0;
    b->count = values.count = 0;
    put_raw(b, "GGUF", 4);
    put_u32(b, 3);
    put_u64(b, json_object_size(tensors) + (rates ? 1 : 0));
    put_u64(b, rates ? 11 : 10);
    put_key(b, "general.architecture", WEFT__GGUF_TEXT);
    put_text(b, "llama");
    put_key(b, "tokenizer.ggml.tokens", WEFT__GGUF_ARRAY);
    put_u32(b, WEFT__GGUF_TEXT);
    put_u64(b, 2);
    put_text(b, "a");
    put_text(b, "");
    put_int(b, "llama.context_length", 64);
    put_int(b, "llama.embedding_length", 32);
    put_int(b, "llama.block_count", 2);
    put_int(b, "llama.feed_forward_length", 40);
    put_int(b, "llama.attention.head_count", 4);
    put_int(b, "llama.attention.head_count_kv", 2);
    put_int(b, "llama.attention.key_length", 8);
    put_float(b, "llama.attention.layer_norm_rms_epsilon", 1e-6F);
    if (rates) put_float(b, "llama.rope.freq_base", 500000);
    json_object_foreach(tensors, name, shape) {
        char here[64];
        const int64_t rows = json_integer_value(json_array_get(shape, 0));
        const int64_t columns = json_array_size(shape) > 1 ? json_integer_value(json_array_get(shape, 1)) : 1;
        name_in_gguf(name, here);
        put_text(b, here);
        put_u32(b, (uint32_t)json_array_size(shape));
        if (json_array_size(shape) > 1) put_u64(b, (uint64_t)columns);
        put_u64(b, (uint64_t)rows);
        put_u32(b, 0); /* F32 */
        put_u64(b, values.count);
        put_values(&values, name, rows, columns, number++);
    }
    if (rates) {
        put_text(b, "rope_freqs.weight");
        put_u32(b, 1);
        put_u64(b, 4);
        put_u32(b, 0);
        put_u64(b, values.count);
        put_raw(&values, rates, 4 * sizeof *rates);
    }
    while (b->count % 32) put_raw(b, "", 1);
    put_raw(b, values.data, values.count);
}

static const char *write_file(const bytes *b, size_t count) {
    const char *path = in_scratch("model.gguf");
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(b->data, 1, count, f), count);
    fclose(f);
    return path;
}

static json_t *read_llama(void) {
    json_error_t error;
    json_t *root = json_load_file("tests/unit/published/models/llama.json", 0, &error);
    assert_non_null(root);
    return root;
}

/* The logits after the last token, which transformers computed. */
static void test_llama(void **state) {
    (void)state;
    enum { TIME = 20, VOCAB = 61 };
    static bytes file;
    json_t *root = read_llama(), *tokens = json_array_get(json_object_get(root, "tokens"), 0),
           *want = json_array_get(json_object_get(root, "logits"), 1);
    int32_t ids[TIME];
    float logits[TIME * VOCAB];
    weft_context *ctx = open_device(NULL, false);
    make_file(&file, root, NULL);
    const char *path = write_file(&file, file.count);
    assert_true(weft_published_is(path));
    weft_module *model = weft_published_new(ctx, path, NULL);
    assert_ok(weft_module_status(model));
    assert_ok(weft_published_load(model, path));
    weft_module_set_training(model, false);
    for (size_t i = 0; i < TIME; i++) ids[i] = (int32_t)json_integer_value(json_array_get(tokens, i));
    assert_ok(
        weft_read(weft_forward(model, weft_from(ctx, WEFT_I32, SHAPE(1, TIME), ids)), logits, sizeof logits));
    for (size_t i = 0; i < VOCAB; i++) {
        const double right = json_real_value(json_array_get(want, i));
        const double got = (double)logits[(TIME - 1) * VOCAB + i];
        if (!(fabs(got - right) <= 2e-5)) fail_msg("logit %zu is %.7g, transformers has %.7g", i, got, right);
    }
    json_decref(root);
    weft_close(ctx);
}

/* ---- Llama 3 ---- */

static void test_rates(void **state) {
    (void)state;
    static bytes file;
    json_t *root = read_llama();
    weft_context *ctx = open_device(NULL, false);
    float rates[4];
    for (int i = 0; i < 4; i++) { /* what llama.cpp computes from a factor of 8 */
        const double wavelength = 2 * acos(-1.0) * pow(500000, i / 4.0);
        const double smooth = (8192 / wavelength - 1) / 3;
        rates[i] = (float)(wavelength < 8192 / 4.0 ? 1
                           : wavelength > 8192     ? 8
                                                   : 1 / ((1 - smooth) / 8 + smooth));
    }
    assert_true(rates[0] == 1 && rates[3] == 8);
    make_file(&file, root, rates);
    weft_module *model = weft_published_new(ctx, write_file(&file, file.count), NULL);
    assert_ok(weft_module_status(model));
    assert_ok(weft_published_load(model, in_scratch("model.gguf")));
    weft_module_free(model);
    rates[1] = 2; /* of another model: they are taken as they are */
    make_file(&file, root, rates);
    model = weft_published_new(ctx, write_file(&file, file.count), NULL);
    assert_ok(weft_module_status(model));
    weft_module_free(model);
    rates[1] = -2;
    make_file(&file, root, rates);
    model = weft_published_new(ctx, write_file(&file, file.count), NULL);
    assert_int_equal(weft_module_status(model), WEFT_ERR_FORMAT);
    assert_non_null(strstr(weft_last_error(ctx), "a positive number for each pair of rotated channels"));
    json_decref(root);
    weft_close(ctx);
}

/* ---- damage ---- */

/* Opens a file that was changed; the message must have `part`. */
static void refuses(bytes *b, size_t count, weft_status status, const char *part) {
    weft__gguf *g = NULL;
    assert_int_equal(weft__gguf_open_memory(NULL, "model.gguf", b->data, count, &g), status);
    assert_null(g);
    if (!strstr(weft_last_error(NULL), part) || !strstr(weft_last_error(NULL), "model.gguf"))
        fail_msg("'%s' does not name %s", weft_last_error(NULL), part);
}

/* Finds a text in the file. */
static size_t place_of(const bytes *b, const char *text) {
    for (size_t i = 0; i + strlen(text) <= b->count; i++)
        if (memcmp(b->data + i, text, strlen(text)) == 0) return i;
    fail_msg("%s is not in the file", text);
    return 0;
}

static void test_damage(void **state) {
    (void)state;
    static bytes file, changed;
    json_t *root = read_llama();
    weft__gguf *g = NULL;
    make_file(&file, root, NULL);
    assert_ok(weft__gguf_open_memory(NULL, "model.gguf", file.data, file.count, &g));
    assert_int_equal(weft__gguf_count(g), json_object_size(json_object_get(root, "tensors")));
    weft__gguf_close(g);
    const size_t header = place_of(&file, "output_norm.weight") + 60;
    for (size_t cut = 0; cut < header; cut += cut < 64 ? 1 : 37)
        assert_int_equal(weft__gguf_open_memory(NULL, "model.gguf", file.data, cut, &g), WEFT_ERR_FORMAT);
    refuses(&file, file.count - 40, WEFT_ERR_FORMAT, "does not end within the file");
    changed = file;
    changed.data[0] = 'X';
    refuses(&changed, file.count, WEFT_ERR_FORMAT, "does not begin with GGUF");
    changed = file;
    changed.data[4] = 9;
    refuses(&changed, file.count, WEFT_ERR_FORMAT, "versions 2 and 3");
    changed = file;
    changed.data[15] = 0xff; /* the number of tensors */
    refuses(&changed, file.count, WEFT_ERR_FORMAT, "too large");
    const size_t table = place_of(&file, "token_embd.weight") + strlen("token_embd.weight");
    changed = file;
    changed.data[table + 4 + 16] = 77; /* the dtype */
    refuses(&changed, file.count, WEFT_ERR_FORMAT, "'token_embd.weight' has the type 77");
    changed = file;
    changed.data[table + 4 + 16] = 12; /* Q4_K: 32 columns are no whole block */
    refuses(&changed, file.count, WEFT_ERR_FORMAT, "whole number of blocks");
    changed = file;
    changed.data[table] = 7; /* the rank */
    refuses(&changed, file.count, WEFT_ERR_FORMAT, "rank from 1 to 4");
    changed = file;
    memcpy(changed.data + place_of(&file, "blk.1.ffn_up.weight"), "blk.0", 5);
    refuses(&changed, file.count, WEFT_ERR_FORMAT, "two tensors are named 'blk.0.ffn_up.weight'");
    json_decref(root);
}

/* Files whose header is right, but which Weft cannot compute. */
static void test_refused_models(void **state) {
    (void)state;
    static bytes file;
    json_t *root = read_llama();
    weft_context *ctx = open_device(NULL, false);
    make_file(&file, root, NULL);
    memcpy(file.data + place_of(&file, "llama"), "rwkv6", 5);
    weft_module *model = weft_published_new(ctx, write_file(&file, file.count), NULL);
    assert_int_equal(weft_module_status(model), WEFT_ERR_FORMAT);
    assert_non_null(strstr(weft_last_error(ctx), "'rwkv6' in GGUF files; it knows llama, qwen2"));
    weft_module_free(model);
    make_file(&file, root, NULL);
    memcpy(file.data + place_of(&file, "blk.1.ffn_up.weight"), "blk.9", 5);
    model = weft_published_new(ctx, write_file(&file, file.count), NULL);
    assert_ok(weft_module_status(model));
    assert_int_equal(weft_published_load(model, in_scratch("model.gguf")), WEFT_ERR_FORMAT);
    assert_non_null(strstr(weft_last_error(ctx), "no tensor 'blk.1.ffn_up.weight'"));
    json_decref(root);
    weft_close(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks), cmocka_unit_test(test_llama),          cmocka_unit_test(test_rates),
        cmocka_unit_test(test_damage), cmocka_unit_test(test_refused_models),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
