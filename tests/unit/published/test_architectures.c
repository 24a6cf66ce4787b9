/* Published models: for each file of models/, written by make_models.py with transformers, a folder with the
 * same weights is made and loaded. The logits must be those of transformers, in one pass and token by token.
 * Also files in several parts, other dtypes, what is written, and what is refused. */
#include <dirent.h>

#include <weft/data.h>

#include "published/published.h"
#include "unit/published/models.h"

enum { CHECKED = 4 };

/* ---- logits ---- */

/* Compares logits at one place with those of transformers, relative to the largest. */
static void near(const char *model, const char *how, json_t *root, int checked, const float *logits,
                 double bound) {
    double most = 0;
    json_t *want = json_array_get(json_object_get(root, "logits"), (size_t)checked);
    for (size_t i = 0; i < VOCAB; i++) most = fmax(most, fabs(json_real_value(json_array_get(want, i))));
    for (size_t i = 0; i < VOCAB; i++) {
        const double right = json_real_value(json_array_get(want, i));
        if (!(fabs(logits[i] - right) <= bound * most))
            fail_msg("%s, %s: logit %zu of place %d is %.7g, transformers has %.7g", model, how, i, checked,
                     (double)logits[i], right);
    }
}

static const int places[CHECKED][2] = {{0, 0}, {0, 19}, {1, 7}, {1, 18}};

static void check_logits(const char *name, const char *how, json_t *root, weft_module *model, double bound) {
    weft_context *ctx = weft_module_context(model);
    static float logits[BATCH * TIME * VOCAB];
    int32_t tokens[BATCH * TIME];
    take_tokens(root, tokens);
    weft_scope *scope = weft_scope_open(ctx);
    weft_tensor *y = weft_forward(model, weft_from(ctx, WEFT_I32, SHAPE(BATCH, TIME), tokens));
    assert_ok(weft_read(y, logits, sizeof logits));
    weft_scope_close(scope);
    for (int i = 0; i < CHECKED; i++)
        near(name, how, root, i, logits + (places[i][0] * TIME + places[i][1]) * VOCAB, bound);
}

/* Feeds the first text to a cache, in two pieces and then token by token. */
static void check_decoding(const char *name, json_t *root, weft_module *model, double bound) {
    int32_t tokens[BATCH * TIME];
    float logits[VOCAB];
    take_tokens(root, tokens);
    weft_decode_state *cache = weft_decode_state_new(model);
    assert_non_null(cache);
    assert_ok(weft_gpt_feed(cache, tokens, 1, logits));
    near(name, "the first token", root, 0, logits, bound);
    assert_ok(weft_gpt_feed(cache, tokens + 1, 14, logits));
    for (int i = 15; i < TIME; i++) assert_ok(weft_gpt_feed(cache, tokens + i, 1, logits));
    near(name, "token by token", root, 1, logits, bound);
    weft_decode_state_free(cache);
}

/* Feeds the begins of both texts to caches, and then a token of both in each step. */
static void check_together(const char *name, json_t *root, weft_module *model, double bound) {
    int32_t tokens[BATCH * TIME];
    float logits[BATCH * VOCAB];
    weft_decode_state *caches[2] = {weft_decode_state_new(model), weft_decode_state_new(model)};
    int64_t at[2] = {12, 3};
    take_tokens(root, tokens);
    for (int i = 0; i < 2; i++) assert_ok(weft_gpt_feed(caches[i], tokens + i * TIME, at[i], logits));
    while (at[1] < TIME - 1) {
        const int32_t next[2] = {at[0] < TIME ? tokens[at[0]] : -1, tokens[TIME + at[1]]};
        assert_ok(weft_gpt_feed_many(caches, 2, next, logits));
        for (int i = 0; i < 2; i++) {
            for (int k = 0; next[i] >= 0 && k < CHECKED; k++)
                if (places[k][0] == i && places[k][1] == at[i])
                    near(name, "together", root, k, logits + i * VOCAB, bound);
            at[i] += next[i] >= 0;
        }
    }
    for (int i = 0; i < 2; i++) weft_decode_state_free(caches[i]);
}

static weft_module *open_model(weft_context *ctx, const char *folder, const weft_published_options *options) {
    weft_module *model = weft_published_new(ctx, folder, options);
    assert_ok(weft_module_status(model));
    assert_ok(weft_published_load(model, folder));
    weft_module_set_training(model, false);
    return model;
}

/* Writes the model, and expects the tensors and the configuration that it was read from. */
static void check_saved(weft_context *ctx, json_t *root, weft_module *model, const char *folder) {
    const char *saved = in_scratch("saved");
    char path[8192];
    tensors t;
    weft_safetensors *file;
    weft_entry_info info;
    assert_ok(weft_published_save(model, folder, saved, WEFT_F32));
    make_tensors(root, WEFT_F32, &t);
    snprintf(path, sizeof path, "%s/model.safetensors", saved);
    assert_ok(weft_safetensors_open(ctx, path, &file));
    assert_int_equal(weft_safetensors_count(file), t.count);
    for (size_t i = 0, at; i < t.count; i++) {
        if (!weft_safetensors_find(file, t.entries[i].name, &at))
            fail_msg("%s is not saved", t.entries[i].name);
        assert_true(weft_safetensors_entry(file, at, &info));
        char *data = malloc(info.bytes);
        assert_ok(weft_safetensors_read(file, at, 0, data, info.bytes));
        if (memcmp(data, t.entries[i].data, info.bytes) != 0) fail_msg("%s changed", t.entries[i].name);
        free(data);
    }
    weft_safetensors_close(file);
    free_tensors(&t);
    assert_true(weft_published_is(saved));
    remove_all(saved);
}

static void check_model(weft_context *ctx, const char *name) {
    json_t *root = read_model(name);
    const char *folder = make_folder(ctx, root, WEFT_F32, "model");
    weft_module *model = open_model(ctx, folder, NULL);
    check_logits(name, "all at once", root, model, 2e-5);
    check_decoding(name, root, model, 2e-5);
    check_together(name, root, model, 2e-5);
    check_saved(ctx, root, model, folder);
    weft_module_free(model);
    remove_all(folder);
    json_decref(root);
}

static void test_logits(void **state) {
    (void)state;
    weft_context *ctx = open_device(NULL, false);
    DIR *dir = opendir(MODELS);
    assert_non_null(dir);
    int count = 0;
    for (const struct dirent *e; (e = readdir(dir));) {
        if (!strstr(e->d_name, ".json") || (!test_on_cpu() && strchr(e->d_name, '-')))
            continue; /* variants */
        check_model(ctx, e->d_name);
        count++;
    }
    closedir(dir);
    assert_true(count >= (test_on_cpu() ? 16 : 9));
    weft_close(ctx);
}

/* Weights in 16 bits, in memory as f32 and as bf16. The pattern is exact in both. */
static void test_dtypes(void **state) {
    (void)state;
    weft_context *ctx = open_device(NULL, false);
    json_t *root = read_model("llama.json");
    for (int f16 = 0; f16 < 2; f16++) {
        const char *folder = make_folder(ctx, root, f16 ? WEFT_F16 : WEFT_BF16, "half");
        weft_module *model = open_model(ctx, folder, NULL);
        check_logits("llama", "from 16 bits", root, model, 2e-5);
        weft_module_free(model);
        model = open_model(ctx, folder, &(weft_published_options){.dtype = WEFT_BF16});
        weft_module_free(model);
        remove_all(folder);
    }
    json_decref(root);
    weft_close(ctx);
}

/* A tied model whose files also have the head: if it equals the token table, in whatever dtype, it stays
 * tied. qwen2-other-head.json is of a file in which they differ. */
static void test_equal_head(void **state) {
    (void)state;
    weft_context *ctx = open_device(NULL, false);
    json_t *root = read_model("llama-tied.json");
    weft_parameter_info head;
    tensors t;
    for (int half = 0; half < 2; half++) {
        const char *folder = make_folder(ctx, root, WEFT_F32, "equal");
        uint16_t narrow[VOCAB * 24];
        make_tensors(root, WEFT_F32, &t); /* the first one is the table */
        assert_string_equal(t.entries[0].name, "model.embed_tokens.weight");
        weft_entry *more = &t.entries[t.count];
        *more = t.entries[0];
        more->name = "lm_head.weight";
        if (half) {
            const float *table = t.entries[0].data;
            for (int i = 0; i < VOCAB * 24; i++) narrow[i] = weft_f32_to_bf16(table[i]);
            more->dtype = WEFT_BF16;
            more->data = narrow;
        }
        write_weights(ctx, folder, "model.safetensors", t.entries, t.count + 1);
        weft_module *model = open_model(ctx, folder, NULL);
        assert_false(weft_parameter_find(model, "lm_head.weight", &head));
        check_logits("llama-tied", "an equal head", root, model, 2e-5);
        weft_module_free(model);
        free_tensors(&t);
        remove_all(folder);
    }
    json_decref(root);
    weft_close(ctx);
}

/* The calls by which this process has read; 0 if the system does not tell. */
static long long reads(void) {
    char line[64];
    long long calls = 0;
    FILE *io = fopen("/proc/self/io", "r");
    while (io && fgets(line, sizeof line, io)) sscanf(line, "syscr: %lld", &calls);
    if (io) fclose(io);
    return calls;
}

/* Large tables are compared in pieces of many rows, up to the last number. */
static void test_large_head(void **state) {
    (void)state;
    enum { ROWS = 30000, WIDTH = 24 };
    static const int64_t shape[2] = {ROWS, WIDTH};
    weft_context *ctx = open_device(NULL, false);
    json_t *root = read_model("llama-tied.json");
    const char *folder = make_folder(ctx, root, WEFT_F32, "large");
    float *tables[2];
    weft_entry entries[2] = {{.name = "lm_head.weight"}, {.name = "model.embed_tokens.weight"}};
    for (int k = 0; k < 2; k++) {
        tables[k] = calloc(ROWS * WIDTH, sizeof *tables[k]);
        assert_non_null(tables[k]);
        entries[k].dtype = WEFT_F32;
        entries[k].rank = 2;
        entries[k].shape = shape;
        entries[k].data = tables[k];
    }
    for (int differs = 0; differs < 2; differs++) {
        weft__published p;
        tables[0][ROWS * WIDTH - 1] = (float)differs;
        write_weights(ctx, folder, "model.safetensors", entries, 2);
        const long long before = reads();
        assert_ok(weft__published_read(ctx, folder, &p));
        assert_in_range(reads() - before, 0, 200);
        assert_int_equal(p.gpt.untied_head, differs);
    }
    free(tables[0]);
    free(tables[1]);
    remove_all(folder);
    json_decref(root);
    weft_close(ctx);
}

/* ---- older files, several files ---- */

/* Replaces fields of the configuration by those of a JSON text. null removes a field. */
static void change(json_t *root, const char *text) {
    json_error_t error;
    json_t *fields = json_loads(text, 0, &error), *config = json_object_get(root, "config"), *value;
    const char *name;
    if (!fields) fail_msg("%s: %s", text, error.text);
    json_object_foreach(fields, name, value) {
        if (json_is_null(value))
            json_object_del(config, name);
        else
            json_object_set(config, name, value);
    }
    json_decref(fields);
}

/* Configurations as versions of transformers before 5 wrote them. */
static void test_older_configurations(void **state) {
    static const char *const older[][2] = {
        {"llama-llama3.json",
         "{\"rope_parameters\": null, \"rope_theta\": 10000, \"rope_scaling\": {\"rope_type\": \"llama3\", "
         "\"factor\": 8.0, "
         "\"low_freq_factor\": 1.0, \"high_freq_factor\": 4.0, \"original_max_position_embeddings\": 16}}"},
        {"llama-linear.json", "{\"rope_parameters\": null, \"rope_theta\": 10000.0, \"rope_scaling\": "
                              "{\"type\": \"linear\", \"factor\": 4}}"},
        {"llama-tied.json", "{\"head_dim\": null, \"rope_parameters\": null}"},
        {"gpt_neox.json", "{\"rope_parameters\": null, \"rotary_pct\": 0.25, \"rotary_emb_base\": 10000}"},
        {"gpt_neox-serial.json",
         "{\"rope_parameters\": null, \"rotary_pct\": 0.5, \"rotary_emb_base\": 500}"},
        {"gemma2.json", "{\"rope_parameters\": null, \"layer_types\": null, \"rope_theta\": 10000.0}"},
        {"gemma3_text.json",
         "{\"rope_parameters\": null, \"layer_types\": null, \"_sliding_window_pattern\": null, "
         "\"sliding_window_pattern\": 3, \"rope_theta\": 1000000.0, "
         "\"rope_local_base_freq\": 10000.0}"},
        {"qwen2.json", "{\"layer_types\": null, \"use_sliding_window\": false, \"sliding_window\": 4, "
                       "\"max_window_layers\": 1}"},
    };
    (void)state;
    weft_context *ctx = open_device(NULL, false);
    for (size_t i = 0; i < COUNT(older); i++) {
        json_t *root = read_model(older[i][0]);
        change(root, older[i][1]);
        const char *folder = make_folder(ctx, root, WEFT_F32, "older");
        weft_module *model = open_model(ctx, folder, NULL);
        check_logits(older[i][0], "older configuration", root, model, 2e-5);
        weft_module_free(model);
        remove_all(folder);
        json_decref(root);
    }
    weft_close(ctx);
}

/* Makes a folder with the tensors in two files, and an index that names `second` as the second file. */
static const char *make_shards(weft_context *ctx, json_t *root, const char *second) {
    const char *folder = folder_of("shards"), *files[2] = {"one.safetensors", "two.safetensors"};
    json_t *index = json_pack("{s:{}}", "weight_map");
    char *text;
    tensors t;
    make_tensors(root, WEFT_F32, &t);
    write_config(folder, json_object_get(root, "config"));
    for (int i = 0; i < 2; i++) {
        const size_t first = i ? t.count / 3 : 0, end = i ? t.count : t.count / 3;
        write_weights(ctx, folder, files[i], t.entries + first, end - first);
        for (size_t j = first; j < end; j++)
            json_object_set_new(json_object_get(index, "weight_map"), t.entries[j].name,
                                json_string(i ? second : files[0]));
    }
    text = json_dumps(index, 0);
    write_text(folder, "model.safetensors.index.json", text);
    free(text);
    json_decref(index);
    free_tensors(&t);
    return folder;
}

static void test_shards(void **state) {
    (void)state;
    weft_context *ctx = open_device(NULL, false);
    json_t *root = read_model("qwen2.json");
    const char *folder = make_shards(ctx, root, "two.safetensors");
    weft_module *model = open_model(ctx, folder, NULL);
    check_logits("qwen2", "two files", root, model, 2e-5);
    remove_all(folder);
    folder = make_shards(ctx, root, "three.safetensors");
    assert_int_equal(weft_published_load(model, folder), WEFT_ERR_FORMAT);
    assert_non_null(strstr(weft_last_error(ctx), "three.safetensors"));
    check_logits("qwen2", "after a failed load", root, model, 2e-5);
    remove_all(folder);
    weft_module_free(model);
    json_decref(root);
    weft_close(ctx);
}

/* ---- what is refused ---- */

/* Expects an error of weft_published_new, whose message has `part`. */
static void refuses(weft_context *ctx, const char *model, const char *fields, weft_status status,
                    const char *part) {
    json_t *root = read_model(model);
    const char *folder = folder_of("refused");
    change(root, fields);
    write_config(folder, json_object_get(root, "config"));
    weft_module *m = weft_published_new(ctx, folder, NULL);
    assert_int_equal(weft_module_status(m), status);
    if (!strstr(weft_last_error(ctx), part) || !strstr(weft_last_error(ctx), "config.json"))
        fail_msg("'%s' does not name %s", weft_last_error(ctx), part);
    weft_module_free(m);
    remove_all(folder);
    json_decref(root);
}

/* Values outside the ranges of numbers.def, from which a model would compute infinities or be huge. */
static void test_refused_numbers(void **state) {
    static const struct {
        const char *model, *fields, *part;
    } cases[] = {
        {"llama.json", "{\"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 0}}",
         "rope_theta: the value must be a number from 1 to 1e+15"},
        {"llama.json", "{\"rope_parameters\": null, \"rope_theta\": 1e300}", "rope_theta: "},
        {"llama.json",
         "{\"rope_parameters\": {\"rope_type\": \"yarn\", \"rope_theta\": 10000, \"factor\": 1e300}}",
         "factor: the value must be a number from 1 to 65536"},
        {"llama.json",
         "{\"rope_parameters\": {\"rope_type\": \"llama3\", \"rope_theta\": 10000, \"factor\": 8, "
         "\"low_freq_factor\": 4, \"high_freq_factor\": 4}}",
         "high_freq_factor: it must be above low_freq_factor"},
        {"llama.json", "{\"rms_norm_eps\": -1}", "rms_norm_eps: "},
        {"llama.json", "{\"rms_norm_eps\": 1e300}", "rms_norm_eps: "},
        {"llama.json", "{\"num_hidden_layers\": 100000000}",
         "num_hidden_layers: the value must be a whole number from 1 to 4096"},
        {"llama.json", "{\"num_key_value_heads\": 0}", "num_key_value_heads: "},
        {"llama.json", "{\"head_dim\": 1073741824}", "head_dim: "},
        {"llama.json", "{\"hidden_size\": 32.5}", "hidden_size: "},
        {"gemma2.json", "{\"query_pre_attn_scalar\": 0}", "query_pre_attn_scalar: "},
        {"gemma2.json", "{\"attn_logit_softcapping\": 1e300}", "attn_logit_softcapping: "},
        {"gemma2.json", "{\"sliding_window\": -1}",
         "sliding_window: the value must be a whole number from 1 to"},
        {"gpt_neox.json", "{\"rope_parameters\": null, \"rotary_pct\": 1e300}", "rotary_pct: "},
        {"gpt2.json", "{\"layer_norm_epsilon\": -1}", "layer_norm_epsilon: "},
    };
    (void)state;
    weft_context *ctx = open_device(NULL, false);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refuses(ctx, cases[i].model, cases[i].fields, WEFT_ERR_FORMAT, cases[i].part);
    weft_close(ctx);
}

static void test_refused_configurations(void **state) {
    (void)state;
    weft_context *ctx = open_device(NULL, false);
    const weft_status format = WEFT_ERR_FORMAT;
    refuses(ctx, "llama.json", "{\"model_type\": \"rwkv\"}", format, "gpt2, gpt_neox, llama");
    refuses(ctx, "llama.json", "{\"model_type\": null}", format, "model_type");
    refuses(ctx, "llama.json", "{\"model_type\": 3}", format, "model_type");
    refuses(ctx, "llama.json", "{\"hidden_size\": null}", format, "hidden_size");
    refuses(ctx, "llama.json", "{\"hidden_size\": -32}", format, "hidden_size");
    refuses(ctx, "llama.json", "{\"hidden_size\": \"32\"}", format, "hidden_size");
    refuses(ctx, "llama.json", "{\"rms_norm_eps\": \"small\"}", format, "rms_norm_eps");
    refuses(ctx, "llama.json", "{\"tie_word_embeddings\": 1}", format, "tie_word_embeddings");
    refuses(ctx, "llama.json", "{\"hidden_act\": \"mish\"}", format, "hidden_act");
    refuses(ctx, "llama.json", "{\"rope_parameters\": {\"rope_type\": \"dynamic\"}}", format, "yarn");
    refuses(ctx, "llama.json", "{\"rope_parameters\": {\"rope_type\": \"longrope\"}}", format,
            "short_factor");
    refuses(ctx, "phi3-longrope.json",
            "{\"rope_parameters\": {\"rope_type\": \"longrope\", \"short_factor\": [1, 1, 1, 1], "
            "\"long_factor\": [1, 2, 3]}}",
            format, "long_factor");
    refuses(ctx, "phi3-longrope.json",
            "{\"rope_parameters\": {\"rope_type\": \"longrope\", \"short_factor\": [1, 0, 1, 1]}}", format,
            "a positive number for each pair");
    refuses(ctx, "gpt2.json", "{\"scale_attn_by_inverse_layer_idx\": true}", format, "inverse_layer");
    refuses(ctx, "qwen2.json",
            "{\"use_sliding_window\": true, \"sliding_window\": 4, \"layer_types\": [\"full_attention\", "
            "\"sliding_attention\"]}",
            format, "layer_types");
    weft_module *m = weft_published_new(ctx, in_scratch("absent"), NULL);
    assert_int_equal(weft_module_status(m), WEFT_ERR_IO);
    weft_module_free(m);
    assert_false(weft_published_is(in_scratch("absent")));
    weft_close(ctx);
}

/* A folder of a llama whose weights are made by `spoil` from the right ones. */
static void refuses_weights(weft_context *ctx, void (*spoil)(tensors *t), weft_status status,
                            const char *part) {
    json_t *root = read_model("llama.json");
    const char *folder = folder_of("weights");
    tensors t, spoilt;
    make_tensors(root, WEFT_F32, &t);
    spoilt = t;
    for (size_t i = 0; i < t.count; i++) spoilt.entries[i].shape = spoilt.shapes[i];
    spoil(&spoilt);
    write_config(folder, json_object_get(root, "config"));
    if (spoilt.count) write_weights(ctx, folder, "model.safetensors", spoilt.entries, spoilt.count);
    weft_module *m = weft_published_new(ctx, folder, NULL);
    assert_ok(weft_module_status(m));
    assert_int_equal(weft_published_load(m, folder), status);
    if (!strstr(weft_last_error(ctx), part)) fail_msg("'%s' does not name %s", weft_last_error(ctx), part);
    weft_module_free(m);
    free_tensors(&t);
    remove_all(folder);
    json_decref(root);
}

static void drop_last(tensors *t) { t->count--; }
static void drop_all(tensors *t) { t->count = 0; }
static void rename_last(tensors *t) { t->entries[t->count - 1].name = "model.norm.bias"; }
static void swap_extents(tensors *t) {
    const int64_t rows = t->shapes[0][0]; /* lm_head */
    t->shapes[0][0] = t->shapes[0][1];
    t->shapes[0][1] = rows;
}
static void add_one(tensors *t) {
    t->entries[t->count] = t->entries[t->count - 1];
    t->entries[t->count++].name = "model.extra.weight";
}
static void as_integers(tensors *t) { t->entries[0].dtype = WEFT_I32; }

static void test_refused_weights(void **state) {
    (void)state;
    weft_context *ctx = open_device(NULL, false);
    refuses_weights(ctx, drop_last, WEFT_ERR_FORMAT, "'model.norm.weight'");
    refuses_weights(ctx, rename_last, WEFT_ERR_FORMAT, "'model.norm.weight'");
    refuses_weights(ctx, add_one, WEFT_ERR_FORMAT, "'model.extra.weight' is not a tensor");
    refuses_weights(ctx, swap_extents, WEFT_ERR_FORMAT,
                    "'lm_head.weight' is f32 [32,61], but by config.json it is [61,32]");
    refuses_weights(ctx, as_integers, WEFT_ERR_FORMAT, "'lm_head.weight' is i32");
    refuses_weights(ctx, drop_all, WEFT_ERR_FORMAT, "model.safetensors");
    weft_close(ctx);
}

/* Each architecture has a file in models/ or encoders/, and a row in the documentation. */
static void test_rows(void **state) {
    static const char *const rows[] = {
#define ARCHITECTURE(type, reader, prefix, names, traits) #type,
#include "published/architectures.def"
    };
    (void)state;
    size_t bytes = 0;
    char *page = slurp("docs/published.md", &bytes), row[64], path[128], other[128];
    assert_non_null(page);
    page[bytes] = '\0';
    for (size_t i = 0; i < COUNT(rows); i++) {
        snprintf(row, sizeof row, "\n| `%s` | ", rows[i]);
        snprintf(path, sizeof path, MODELS "/%s.json", rows[i]);
        snprintf(other, sizeof other, "tests/unit/published/encoders/%s.json", rows[i]);
        if (!strstr(page, row)) fail_msg("docs/published.md has no row for %s", rows[i]);
        if (access(path, R_OK) != 0 && access(other, R_OK) != 0) fail_msg("there is no %s", path);
    }
    free(page);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_logits),
        cmocka_unit_test(test_dtypes),
        cmocka_unit_test(test_equal_head),
        cmocka_unit_test(test_large_head),
        cmocka_unit_test(test_older_configurations),
        cmocka_unit_test(test_shards),
        cmocka_unit_test(test_refused_configurations),
        cmocka_unit_test(test_refused_numbers),
        cmocka_unit_test(test_refused_weights),
        cmocka_unit_test(test_rows),
    };
    if (test_on_cpu()) return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
    const struct CMUnitTest elsewhere[] = {
        cmocka_unit_test(test_logits)}; /* the others have no more kernels */
    return cmocka_run_group_tests(elsewhere, scratch_setup, scratch_teardown);
}
