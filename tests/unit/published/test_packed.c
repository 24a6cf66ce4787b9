/* GGUF files whose weights stay packed: a Llama with Q8_0 and Q4_1 matrices, loaded packed and unpacked. */
#include "published/gguf.h"
#include "unit/published/models.h"

/* ---- a file ---- */

typedef struct bytes {
    uint8_t data[1 << 18];
    size_t count;
} bytes;

static void put(bytes *b, const void *data, size_t n) {
    assert_true(b->count + n <= sizeof b->data);
    memcpy(b->data + b->count, data, n);
    b->count += n;
}
static void put_number(bytes *b, uint64_t value, int n) {
    for (int i = 0; i < n; i++) put(b, &(uint8_t){(uint8_t)(value >> 8 * i)}, 1);
}
static void put_text(bytes *b, const char *text) {
    put_number(b, strlen(text), 8);
    put(b, text, strlen(text));
}
static void put_int(bytes *b, const char *key, uint32_t value) {
    put_text(b, key);
    put_number(b, WEFT__GGUF_U32, 4);
    put_number(b, value, 4);
}

enum { WIDTH = 64, HIDDEN = 96, HEADS = 4, KV = 2, D = 16, LAYERS = 2 };
enum { F32 = 0, Q4_1 = 3, Q8_0 = 8 }; /* numbers of dtypes in the file */

typedef struct entry {
    const char *name;
    int64_t rows, columns; /* columns 0: a vector */
    int type;
} entry;

static const entry entries[] = {
    {"token_embd.weight", VOCAB, WIDTH, Q8_0},       {"output_norm.weight", WIDTH, 0, F32},
    {"blk.%d.attn_norm.weight", WIDTH, 0, F32},      {"blk.%d.ffn_norm.weight", WIDTH, 0, F32},
    {"blk.%d.attn_q.weight", HEADS *D, WIDTH, Q8_0}, {"blk.%d.attn_k.weight", KV *D, WIDTH, Q8_0},
    {"blk.%d.attn_v.weight", KV *D, WIDTH, Q4_1},    {"blk.%d.attn_output.weight", WIDTH, HEADS *D, F32},
    {"blk.%d.ffn_gate.weight", HIDDEN, WIDTH, Q4_1}, {"blk.%d.ffn_up.weight", HIDDEN, WIDTH, Q4_1},
    {"blk.%d.ffn_down.weight", WIDTH, HIDDEN, Q8_0}};

/* Numbers of a few bits, with scales of 1/512 or 1/64. */
static void put_tensor(bytes *b, const entry *e, uint64_t random) {
    const int64_t n = e->rows * (e->columns ? e->columns : 1);
    for (int64_t i = 0; i < n; i++) {
        const float value = e->columns ? (float)(i * 7 % 19 - 9) / 64 : 1.0F;
        if (e->type == F32) put(b, &value, sizeof value);
        if (e->type != F32 && i % 32 == 0) {
            put_number(b, e->type == Q8_0 ? 0x1800 : 0x2400, 2);
            if (e->type == Q4_1) put_number(b, 0xab80, 2); /* -15/256 */
            for (int j = 0; j < (e->type == Q8_0 ? 32 : 16); j++) {
                random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
                put_number(b, random >> 40 & 255, 1);
            }
        }
    }
    while (b->count % 32) put(b, "", 1);
}

static void put_tensors(bytes *b, bytes *values, uint64_t *number) {
    for (int layer = -1; layer < LAYERS; layer++)
        for (size_t i = 0; i < COUNT(entries); i++) {
            const entry *e = &entries[i];
            char name[64];
            if ((layer >= 0) != (strchr(e->name, '%') != NULL)) continue;
            snprintf(name, sizeof name, "%s", e->name);
            if (layer >= 0) name[4] = (char)('0' + layer), memmove(name + 5, name + 6, strlen(name + 5));
            put_text(b, name);
            put_number(b, e->columns ? 2 : 1, 4);
            if (e->columns) put_number(b, (uint64_t)e->columns, 8);
            put_number(b, (uint64_t)e->rows, 8);
            put_number(b, (uint64_t)e->type, 4);
            put_number(b, values->count, 8);
            put_tensor(values, e, (*number)++);
        }
}

static const char *make_file(void) {
    static bytes b, values;
    uint64_t number = 1;
    const float eps = 1e-5F;
    const char *path = in_scratch("packed.gguf");
    b.count = values.count = 0;
    put(&b, "GGUF", 4);
    put_number(&b, 3, 4);
    put_number(&b, 2 + (COUNT(entries) - 2) * LAYERS, 8);
    put_number(&b, 9, 8);
    put_text(&b, "general.architecture");
    put_number(&b, WEFT__GGUF_TEXT, 4);
    put_text(&b, "llama");
    put_int(&b, "llama.context_length", 64);
    put_int(&b, "llama.embedding_length", WIDTH);
    put_int(&b, "llama.block_count", LAYERS);
    put_int(&b, "llama.feed_forward_length", HIDDEN);
    put_int(&b, "llama.attention.head_count", HEADS);
    put_int(&b, "llama.attention.head_count_kv", KV);
    put_int(&b, "llama.vocab_size", VOCAB);
    put_text(&b, "llama.attention.layer_norm_rms_epsilon");
    put_number(&b, WEFT__GGUF_F32, 4);
    put(&b, &eps, sizeof eps);
    put_tensors(&b, &values, &number);
    while (b.count % 32) put(&b, "", 1);
    put(&b, values.data, values.count);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(b.data, 1, b.count, f), b.count);
    fclose(f);
    return path;
}

static weft_module *loaded(weft_context *ctx, const char *path, bool packed) {
    weft_module *m = weft_published_new(ctx, path, &(weft_published_options){.packed = packed});
    assert_ok(weft_module_status(m));
    assert_ok(weft_published_load(m, path));
    weft_module_set_training(m, false);
    return m;
}

static void read_logits(weft_module *m, float logits[TIME * VOCAB]) {
    int32_t ids[TIME];
    for (int i = 0; i < TIME; i++) ids[i] = i * 11 % VOCAB;
    weft_tensor *tokens = weft_from(weft_module_context(m), WEFT_I32, SHAPE(1, TIME), ids);
    assert_ok(weft_read(weft_forward(m, tokens), logits, TIME * VOCAB * sizeof *logits));
}

/* Which parameters are packed, and that the logits are those of the unpacked model but for the 8-bit numbers
 * of each layer's input. */
static void test_loads(void **state) {
    (void)state;
    static float a[TIME * VOCAB], b[TIME * VOCAB];
    weft_context *ctx = open_device(NULL, false);
    const char *path = make_file();
    weft_module *packed = loaded(ctx, path, true), *plain = loaded(ctx, path, false);
    weft_parameter_info p;
    const struct wanted {
        const char *name;
        weft_dtype dtype;
        int64_t rows, columns;
    } wanted[] = {{"wte.weight", WEFT_U8, VOCAB, 68},
                  {"h.1.attn.c_attn.weight", WEFT_U8, HEADS * D + KV * D, 68}, /* Q8_0: queries and keys */
                  {"h.1.attn.c_attn.weight_1", WEFT_U8, KV * D, 40},           /* Q4_1: values */
                  {"h.0.attn.c_proj.weight", WEFT_F32, WIDTH, HEADS * D},
                  {"h.0.mlp.c_fc.weight", WEFT_U8, 2 * HIDDEN, 40},
                  {"h.0.mlp.c_proj.weight", WEFT_U8, WIDTH, 102}};
    for (size_t i = 0; i < COUNT(wanted); i++) {
        if (!weft_parameter_find(packed, wanted[i].name, &p)) fail_msg("no parameter %s", wanted[i].name);
        assert_int_equal(weft_dtype_of(p.tensor), wanted[i].dtype);
        assert_int_equal(weft_dim(p.tensor, 0), wanted[i].rows);
        assert_int_equal(weft_dim(p.tensor, 1), wanted[i].columns);
    }
    read_logits(packed, a);
    read_logits(plain, b);
    double most = 0, moved = 0;
    for (int i = 0; i < TIME * VOCAB; i++) {
        most = fmax(most, fabs((double)b[i]));
        moved = fmax(moved, fabs((double)a[i] - (double)b[i]));
    }
    if (!(most > 0.5 && moved < 0.02 * most)) fail_msg("logits up to %g differ by %g", most, moved);
    weft_close(ctx);
}

/* Rows keep every bit: a packed and an unpacked model are written alike. */
static void test_saves(void **state) {
    (void)state;
    weft_context *ctx = open_device(NULL, false);
    const char *path = make_file();
    weft_bytes file[2];
    for (int i = 0; i < 2; i++) {
        char name[4096];
        const char *folder = folder_of(i ? "of-plain" : "of-packed");
        assert_ok(weft_published_save(loaded(ctx, path, i == 0), path, folder, WEFT_F32));
        snprintf(name, sizeof name, "%s/model.safetensors", folder);
        assert_ok(weft_read_file(ctx, name, 1 << 24, &file[i]));
    }
    assert_int_equal(file[0].size, file[1].size);
    assert_memory_equal(file[0].data, file[1].data, file[0].size);
    for (int i = 0; i < 2; i++) weft_bytes_free(ctx, &file[i]);
    weft_close(ctx);
}

/* A module that was made from a file with other dtypes. */
static void test_refused(void **state) {
    (void)state;
    weft_context *ctx = open_device(NULL, false);
    const char *path = make_file();
    weft_module *m = weft_published_new(ctx, path, &(weft_published_options){.packed = true});
    FILE *f = fopen(path, "r+b");
    static char text[1 << 17];
    assert_non_null(f);
    const size_t n = fread(text, 1, sizeof text, f);
    size_t at = 0;
    while (at + 64 < n && memcmp(text + at, "blk.1.attn_v.weight", 19) != 0) at++;
    assert_true(at + 64 < n);
    assert_int_equal(text[at + 19 + 4 + 16], Q4_1);
    assert_int_equal(fseek(f, (long)(at + 19 + 4 + 16), SEEK_SET), 0);
    fputc(2, f); /* Q4_0, which has smaller blocks */
    fclose(f);
    assert_int_equal(weft_published_load(m, path), WEFT_ERR_FORMAT);
    assert_non_null(strstr(weft_last_error(ctx), "'blk.1.attn_v.weight' is Q4_0, but the module was made"));
    weft_close(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_loads), cmocka_unit_test(test_saves),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
