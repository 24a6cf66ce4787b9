/* The configuration: what it accepts, the message for each kind of malformed text, and that written text
 * reads back the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <weft/nn.h>
#include <weft/optim.h>
#include <weft/text.h>

#include "unit/failing_alloc.h"
#include "train/config/config.h"

static weft_status parse(weft__config *config, const char *text) {
    weft__config_init(config);
    return weft__config_parse(config, text, strlen(text), "t.yaml");
}

static void accepts_every_kind(void **state) {
    (void)state;
    weft__config config;
    char origin[64];
    assert_int_equal(parse(&config, "task: language-model\n"
                                    "data:\n  path: \"a b.txt\"\n  source: text\n"
                                    "model: {type: gpt, layers: 2, bias: false}\n"
                                    "optimizer:\n  lr: 3e-4\n  betas: [0.8, 0.95]\n"
                                    "train:\n  steps: 1e3\n  seed: 9223372036854775807\n  save_every: ~\n"),
                     WEFT_OK);
    assert_int_equal(weft__config_resolve(&config), WEFT_OK);
    assert_string_equal(config.data_path, "a b.txt");
    assert_int_equal(config.model_layers, 2);
    assert_false(config.model_bias);
    assert_true(config.optimizer_lr == 3e-4);
    assert_int_equal(config.optimizer_betas.count, 2);
    assert_true(config.optimizer_betas.values[1] == 0.95);
    assert_int_equal(config.train_steps, 1000);
    assert_true(config.train_seed == INT64_MAX);
    assert_int_equal(config.train_save_every, 500); /* ~ keeps the default */
    assert_string_equal(weft__config_origin(&config, WEFT__KEY_optimizer_lr, origin, sizeof origin),
                        "t.yaml:7");
    assert_string_equal(weft__config_origin(&config, WEFT__KEY_model_width, origin, sizeof origin),
                        "default");
    weft__config_free(&config);
}

/* Malformed texts, and what the message must contain. */
static void refuses_with_place_and_cause(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"model:\n  layer: 3\n", "t.yaml:2:3: unknown key model.layer; did you mean model.layers?"},
        {"lr: 0.1\n", "t.yaml:1:1: unknown key lr; did you mean optimizer.lr?"},
        {"trian:\n  steps: 3\n", "t.yaml:1:1: unknown key trian"},
        {"model:\n  layers: three\n", "t.yaml:2:11: model.layers: give a whole number, not 'three'"},
        {"model:\n  layers: 2.5\n", "give a whole number"},
        {"model:\n  layers: 0\n", "give a number from 1 to 1000, not 0"},
        {"model:\n  layers: 99999999999999999999\n", "give a whole number"},
        {"model:\n  layers: [1]\n", "give one value, not a list"},
        {"model:\n  layers: {a: 1}\n", "give a value here"},
        {"model:\n  bias: yes\n", "give true or false"},
        {"optimizer:\n  lr: 0,1\n", "give a number, not"},
        {"optimizer:\n  lr: nan\n", "give a number, not"},
        {"optimizer:\n  lr: 1e999\n", "give a number, not"},
        {"optimizer:\n  lr: -1\n", "give a number from 1e-12 to 1000000, not -1"},
        {"optimizer:\n  type: adamx\n", "give sgd, rmsprop, adam or adamw, not 'adamx'"},
        {"optimizer:\n  betas: [0.9, 2]\n", "give a number from 0 to"},
        {"optimizer:\n  betas: []\n", "1 to 64 values"},
        {"data:\n  path: ''\n", "give a text that is not empty"},
        {"data:\n  labels: [a, b, c, d]\n", "at most 3 values"},
        {"task: regression\ntask: regression\n", "t.yaml:2:7: the key appears a second time"},
        {"train: 3\n", "write keys under a section"},
        {"- a\n- b\n", "write 'key: value' lines"},
        {"", "the file is empty"},
        {"a: &x 1\n", "unknown key a"},
        {"task: &x regression\n", "anchors"},
        {"task: *x\n", "t.yaml:1:7"},
        {"task: !!str regression\n", "tags"},
        {"task: regression\n---\ntask: regression\n", "a single YAML document"},
        {"task: [regression\n", "t.yaml:2"},
        {"task: \"a\\0b\"\n", "NUL"},
        {"task: \xff\xfe\xfd\n", "t.yaml"},
        {"task:\tregression\n  x\n", "t.yaml"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weft__config config;
        assert_int_equal(parse(&config, cases[i].text), WEFT_ERR_FORMAT);
        if (!strstr(weft_last_error(NULL), cases[i].message))
            fail_msg("case %zu: '%s' lacks '%s'", i, weft_last_error(NULL), cases[i].message);
        weft__config_free(&config);
    }
}

static void refuses_what_does_not_fit_together(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"task: language-model\n", "data.path is missing"},
        {"data: {path: a}\nmodel: {heads: 3}\n", "t.yaml:2: model.heads: the number of heads must divide"},
        {"data: {path: a}\ntask: regression\nmodel: {type: gpt}\n",
         "use language-model with language models"},
        {"data: {path: a, source: csv}\n", "use text, bytes or tokens with"},
        {"data: {path: a, val_path: b, val_fraction: 0.2}\n",
         "data.val_fraction: data.val_path names the validation data"},
        {"task: classification\ndata: {path: a, source: csv, labels: [b]}\n",
         "t.yaml:2: data.labels: csv and json"},
        {"task: regression\ndata: {path: a, source: npy, target: y}\n",
         "data.target: only csv and json files use this key"},
        {"data: {path: a}\noptimizer: {betas: [0.9]}\n", "two numbers"},
        {"data: {path: a}\noptimizer: {nesterov: true}\n", "needs optimizer.momentum"},
        {"data: {path: a}\nschedule: {min_lr: 1}\n", "the end of the schedule is above its beginning"},
        {"data: {path: a}\ntrain: {steps: 0}\n", "how long to train"},
        {"data: {path: a}\ntrain: {steps: 10, epochs: 1}\n", "only one of"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weft__config config;
        assert_int_equal(parse(&config, cases[i].text), WEFT_OK);
        assert_int_not_equal(weft__config_resolve(&config), WEFT_OK);
        if (!strstr(weft_last_error(NULL), cases[i].message))
            fail_msg("case %zu: '%s' lacks '%s'", i, weft_last_error(NULL), cases[i].message);
        weft__config_free(&config);
    }
}

static void set_overrides_and_is_checked(void **state) {
    (void)state;
    weft__config config;
    assert_int_equal(parse(&config, "data: {path: a}\nmodel: {type: mlp}\ntask: classification\n"), WEFT_OK);
    assert_int_equal(weft__config_set(&config, "model.hidden=[32, 16,8]"), WEFT_OK);
    assert_int_equal(weft__config_set(&config, "data.path=x=y.idx"), WEFT_OK);
    assert_int_equal(weft__config_set(&config, "train.epochs=2"), WEFT_OK);
    assert_int_equal(weft__config_resolve(&config), WEFT_OK);
    assert_int_equal(config.model_hidden.count, 3);
    assert_int_equal(config.model_hidden.values[2], 8);
    assert_string_equal(config.data_path, "x=y.idx");
    assert_int_equal(weft__config_set(&config, "train.epochs"), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft__config_set(&config, "train.epoch=1"), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(NULL), "did you mean train.epochs?"));
    assert_int_equal(weft__config_set(&config, "model.hidden=4,x"), WEFT_ERR_ARGUMENT);
    weft__config_free(&config);
}

static void epochs_and_steps_replace_each_other(void **state) {
    (void)state;
    weft__config config;
    assert_int_equal(parse(&config, "data: {path: a}\ntrain: {epochs: 3}\n"), WEFT_OK);
    assert_int_equal(weft__config_resolve(&config), WEFT_OK);
    assert_int_equal(config.train_steps, 0);
    assert_int_equal(config.train_epochs, 3);
    weft__config_free(&config);
}

static void device_comes_from_the_environment_last(void **state) {
    (void)state;
    weft__config config;
    char origin[64];
    setenv("WEFT_DEVICE", "interp", 1);
    assert_int_equal(parse(&config, "data: {path: a}\n"), WEFT_OK);
    assert_int_equal(weft__config_resolve(&config), WEFT_OK);
    assert_string_equal(config.device, "interp");
    assert_string_equal(weft__config_origin(&config, WEFT__KEY_device, origin, sizeof origin), "environment");
    weft__config_free(&config);
    assert_int_equal(parse(&config, "data: {path: a}\ndevice: cpu\n"), WEFT_OK);
    assert_int_equal(weft__config_resolve(&config), WEFT_OK);
    assert_string_equal(config.device, "cpu");
    weft__config_free(&config);
    unsetenv("WEFT_DEVICE");
}

static void devices_share_the_batches_of_a_step(void **state) {
    (void)state;
    weft__config config;
    static const char text[] = "data: {path: a}\ndevices: [opencl:0, opencl:1]\ntrain: {accumulate: 4}\n";
    assert_int_equal(parse(&config, text), WEFT_OK);
    assert_int_equal(weft__config_resolve(&config), WEFT_OK);
    assert_string_equal(config.device, "opencl:0");
    assert_int_equal(config.devices.count, 2);
    char *written =
        weft__config_text(&config); /* names `device` and `devices`, which do not contradict here */
    weft__config_free(&config);
    assert_int_equal(parse(&config, written), WEFT_OK);
    assert_int_equal(weft__config_resolve(&config), WEFT_OK);
    assert_int_equal(config.devices.count, 2);
    free(written);
    weft__config_free(&config);
    assert_int_equal(parse(&config, text), WEFT_OK); /* a flag overrides the list of the file */
    assert_int_equal(weft__config_put(&config, WEFT__KEY_device, "cpu", WEFT__ORIGIN_FLAG, "--device"),
                     WEFT_OK);
    assert_int_equal(weft__config_resolve(&config), WEFT_OK);
    assert_string_equal(config.device, "cpu");
    assert_int_equal(config.devices.count, 0);
    weft__config_free(&config);
    assert_int_equal(parse(&config, text), WEFT_OK); /* one device is enough to use a model */
    weft__config_one_device(&config);
    assert_string_equal(config.device, "opencl:0");
    assert_int_equal(config.devices.count, 0);
    weft__config_free(&config);
    assert_int_equal(parse(&config, "data: {path: a}\ndevice: cpu\ndevices: [opencl:0, opencl:1]\n"),
                     WEFT_OK);
    assert_int_equal(weft__config_resolve(&config), WEFT_ERR_FORMAT);
    assert_non_null(strstr(weft_last_error(NULL), "give only one of device and devices"));
    weft__config_free(&config);
    assert_int_equal(parse(&config, "data: {path: a}\ndevices: [cpu, cpu, cpu]\ntrain: {accumulate: 4}\n"),
                     WEFT_OK);
    assert_int_equal(weft__config_resolve(&config), WEFT_ERR_FORMAT);
    assert_non_null(strstr(weft_last_error(NULL), "train.accumulate: 12"));
    weft__config_free(&config);
    assert_int_equal(parse(&config, "data: {path: a}\ndevices: [cpu, \"\"]\n"), WEFT_OK);
    assert_int_equal(weft__config_resolve(&config), WEFT_ERR_FORMAT);
    assert_non_null(strstr(weft_last_error(NULL), "devices: give the name of a device"));
    weft__config_free(&config);
}

/* Written text reads back to the same values, including awkward strings. */
static void resolved_text_reads_back(void **state) {
    (void)state;
    weft__config first, second;
    assert_int_equal(parse(&first,
                           "task: regression\nmodel: {type: mlp, hidden: [7]}\n"
                           "data: {source: csv, path: \"we \\\"ird: #\\\\ p\xc3\xa4th\", columns: [\"1\", "
                           "'true', a-b, \"x, y\"]}\noptimizer: {lr: 0.1, clip: 0.30000000000000004}\n"),
                     WEFT_OK);
    assert_int_equal(weft__config_resolve(&first), WEFT_OK);
    char *text = weft__config_text(&first);
    assert_non_null(text);
    assert_int_equal(parse(&second, text), WEFT_OK);
    assert_int_equal(weft__config_resolve(&second), WEFT_OK);
    for (int i = 0; i < WEFT__KEY_COUNT; i++) {
        char a[512], b[512];
        weft__config_value(&first, (weft__config_key)i, a, sizeof a);
        weft__config_value(&second, (weft__config_key)i, b, sizeof b);
        assert_string_equal(a, b);
    }
    assert_string_equal(second.data_path, "we \"ird: #\\ p\xc3\xa4th");
    assert_string_equal(second.data_columns.values[3], "x, y");
    char hash_a[17], hash_b[17];
    assert_int_equal(weft__config_hash(NULL, &first, hash_a), WEFT_OK);
    assert_int_equal(weft__config_hash(NULL, &second, hash_b), WEFT_OK);
    assert_string_equal(hash_a, hash_b);
    second.optimizer_lr = 0.2;
    assert_int_equal(weft__config_hash(NULL, &second, hash_b), WEFT_OK);
    assert_string_not_equal(hash_a, hash_b);
    free(text);
    weft__config_free(&first);
    weft__config_free(&second);
}

/* Checkpoints of the first version are still recognised: newer keys with their default values do not change
 * the hash. The configuration of a run always holds the warm-up that was used. */
static void later_keys_change_no_hash(void **state) {
    (void)state;
    static const struct {
        const char *text, *hash;
    } first[] = {{"data: {path: a}\nschedule: {warmup: 100}", "22f0c607f26b8a60"},
                 {"model: {type: mlp}\ndata: {path: a}", "25f741d72207548b"}};
    char hash[17];
    weft__config config;
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        assert_int_equal(parse(&config, first[i].text), WEFT_OK);
        assert_int_equal(weft__config_resolve(&config), WEFT_OK);
        assert_int_equal(weft__config_hash(NULL, &config, hash), WEFT_OK);
        assert_string_equal(hash, first[i].hash);
        weft__config_free(&config);
    }
    assert_int_equal(parse(&config, "data: {path: a}\nmodel: {norm: rms}"), WEFT_OK);
    assert_int_equal(weft__config_resolve(&config), WEFT_OK);
    assert_int_equal(weft__config_hash(NULL, &config, hash), WEFT_OK);
    assert_string_not_equal(hash, first[0].hash);
    weft__config_free(&config);
}

static weft__config hashed;

static weft_status hash_it(weft_context *ctx) {
    char whole[17], hash[17] = "";
    assert_int_equal(weft__config_hash(NULL, &hashed, whole), WEFT_OK);
    const weft_status status = weft__config_hash(ctx, &hashed, hash);
    if (status == WEFT_OK) assert_string_equal(hash, whole);
    return status;
}

/* If memory is too short for a key's value, hashing fails. With a hash that leaves out the key the checkpoint
 * could not be resumed. */
static void no_hash_without_memory(void **state) {
    (void)state;
    assert_int_equal(parse(&hashed, "data: {path: a}"), WEFT_OK);
    assert_int_equal(weft__config_resolve(&hashed), WEFT_OK);
    assert_true(fail_each_allocation(hash_it) >= WEFT__KEY_COUNT);
    weft__config_free(&hashed);
}

/* The template holds every key that the model uses and no other, and is valid as soon as it names data. */
static void template_is_complete_and_valid(void **state) {
    (void)state;
    static const char *const names[] = {
#define MODEL(id, name, kind, traits) #name,
#define PRESET(name, id)              #name,
#include "train/model/models.def"
    };
    assert_null(weft__config_preset("gpt3"));
    for (int preset = 0; preset < (int)(sizeof names / sizeof *names); preset++) {
        const weft__model_type model = weft__config_preset(names[preset])->model;
        weft__config config;
        char *text = weft__config_template(weft__config_preset(names[preset]), "some data.txt");
        assert_non_null(text);
        for (int i = 0; i < WEFT__KEY_COUNT; i++) {
            const char *key = weft__config_rows[i].key, *dot = strrchr(key, '.');
            char line[64];
            snprintf(line, sizeof line, "%s:", dot ? dot + 1 : key);
            const bool here = weft__config_for((weft__config_key)i, model);
            if (here && !strstr(text, line)) fail_msg("the template lacks %s", key);
            if (!here && strstr(text, weft__config_rows[i].doc))
                fail_msg("the template of %s has %s", names[preset], key);
        }
        assert_int_equal(parse(&config, text), WEFT_OK);
        assert_int_equal(weft__config_resolve(&config), WEFT_OK);
        assert_int_equal(config.model_type, model);
        if (preset < (int)WEFT__MODEL_TYPE_COUNT) { /* the key's choices equal those of the table */
            char choice[32];
            assert_string_equal(weft__config_choice(WEFT__KEY_model_type, preset, choice), names[preset]);
        }
        assert_string_equal(config.data_path, "some data.txt");
        weft__config_free(&config);
        free(text);
    }
}

/* A preset taken by its name resolves as its file does. */
static void preset_equals_its_file(void **state) {
    (void)state;
    static const char *const names[] = {"gpt", "gpt2", "llama", "lstm", "mlp", "linear", "cnn"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        weft__config config, file;
        char hash[17], of_file[17];
        char *text = weft__config_template(weft__config_preset(names[i]), "a.txt");
        assert_int_equal(parse(&file, text), WEFT_OK);
        assert_int_equal(weft__config_resolve(&file), WEFT_OK);
        weft__config_init(&config);
        assert_int_equal(weft__config_take_preset(&config, weft__config_preset(names[i])), WEFT_OK);
        assert_int_equal(weft__config_set(&config, "data.path=a.txt"), WEFT_OK);
        assert_int_equal(weft__config_resolve(&config), WEFT_OK);
        assert_int_equal(weft__config_hash(NULL, &config, hash), WEFT_OK);
        assert_int_equal(weft__config_hash(NULL, &file, of_file), WEFT_OK);
        assert_string_equal(hash, of_file);
        weft__config_free(&config);
        weft__config_free(&file);
        free(text);
    }
}

/* Values without an effect are named with the reason. Defaults, as files of `weft init` hold them, are not.
 */
static void values_without_effect_are_found(void **state) {
    (void)state;
    static const struct {
        const char *text;
        weft__config_key key;
        const char *why; /* NULL: the value is used */
    } cases[] = {
        {"optimizer: {momentum: 0.9}", WEFT__KEY_optimizer_momentum, "optimizer.type adamw does not use it"},
        {"optimizer: {momentum: 0}", WEFT__KEY_optimizer_momentum, NULL},
        {"optimizer: {type: sgd, momentum: 0.9}", WEFT__KEY_optimizer_momentum, NULL},
        {"optimizer: {type: sgd, betas: [0.5, 0.5]}", WEFT__KEY_optimizer_betas,
         "optimizer.type sgd does not use it"},
        {"data: {flip: true}", WEFT__KEY_data_flip, "a gpt does not use it"},
        {"model: {rotary_base: 500}", WEFT__KEY_model_rotary_base, "model.positions learned does not use it"},
        {"schedule: {type: constant, min_lr: 0.5}", WEFT__KEY_schedule_min_lr,
         "schedule.type constant does not use it"},
        {"train: {loss_scale: 2}", WEFT__KEY_train_loss_scale, "train.precision f32 does not use it"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char why[128];
        weft__config config;
        assert_int_equal(parse(&config, cases[i].text), WEFT_OK);
        if (!config.data_path) assert_int_equal(weft__config_set(&config, "data.path=a"), WEFT_OK);
        assert_int_equal(weft__config_resolve(&config), WEFT_OK);
        assert_int_equal(weft__config_unused(&config, cases[i].key, why), cases[i].why != NULL);
        if (cases[i].why) assert_string_equal(why, cases[i].why);
        weft__config_free(&config);
    }
}

/* Keys whose values are those of an enum of the library have the library's words, in its order. */
static void words_are_those_of_the_library(void **state) {
    (void)state;
    char word[32];
    for (int i = 0; i < WEFT_ACTIVATION_COUNT - WEFT_IDENTITY; i++)
        assert_string_equal(weft__config_choice(WEFT__KEY_model_activation, i, word),
                            weft_activation_name((weft_activation_kind)(WEFT_IDENTITY + i)));
    for (int i = 0; i < WEFT_TOKENIZER_KIND_COUNT; i++)
        assert_string_equal(weft__config_choice(WEFT__KEY_data_tokenizer, i, word),
                            weft_tokenizer_kind_name((weft_tokenizer_kind)i));
    for (int i = 0; *weft__config_choice(WEFT__KEY_schedule_type, i, word); i++)
        assert_string_equal(word, weft_schedule_name((weft_schedule_kind)i));
}

/* The file name tells the kind of the data, and a path of any length fits. */
static void template_follows_the_data(void **state) {
    (void)state;
    char longest[3000];
    memset(longest, '"', sizeof longest); /* each character takes two bytes when written */
    memcpy(longest + sizeof longest - 8, ".csv.gz", 8);
    const struct {
        const char *path;
        int source;
    } cases[] = {{"iris.csv", WEFT__SOURCE_CSV}, {"a/b.json", WEFT__SOURCE_JSON},
                 {"x.npy.gz", WEFT__SOURCE_NPY}, {"csv", WEFT__SOURCE_IDX},
                 {"t10k.gz", WEFT__SOURCE_IDX},  {"a.csv.bak", WEFT__SOURCE_IDX},
                 {longest, WEFT__SOURCE_CSV}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weft__config config;
        char *text = weft__config_template(weft__config_preset("mlp"), cases[i].path);
        assert_non_null(text);
        assert_int_equal(parse(&config, text), WEFT_OK);
        assert_int_equal(weft__config_resolve(&config), WEFT_OK);
        assert_int_equal(config.data_source, cases[i].source);
        assert_string_equal(config.data_path, cases[i].path);
        weft__config_free(&config);
        free(text);
    }
}

/* If only one of two keys may be set, --set wins over the file. */
static void set_wins_over_the_file(void **state) {
    (void)state;
    weft__config config;
    assert_int_equal(parse(&config, "data: {path: a, val_fraction: 0.2}\ntrain: {epochs: 5}\n"), WEFT_OK);
    assert_int_equal(weft__config_set(&config, "train.steps=7"), WEFT_OK);
    assert_int_equal(weft__config_set(&config, "data.val_path=b"), WEFT_OK);
    assert_int_equal(weft__config_resolve(&config), WEFT_OK);
    assert_true(config.train_steps == 7 && config.train_epochs == 0 && config.data_val_fraction == 0);
    weft__config_free(&config);
    assert_int_equal(parse(&config, "data: {path: a}\ntrain: {steps: 5}\n"), WEFT_OK);
    assert_int_equal(weft__config_set(&config, "train.epochs=7"), WEFT_OK);
    assert_int_equal(weft__config_resolve(&config), WEFT_OK);
    assert_true(config.train_steps == 0 && config.train_epochs == 7);
    weft__config_free(&config);
}

static void nearest_key_is_near(void **state) {
    (void)state;
    assert_string_equal(weft__config_nearest("model.haeds"), "model.heads");
    assert_string_equal(weft__config_nearest("optimiser.lr"), "optimizer.lr");
    assert_string_equal(weft__config_nearest("train.lr"), "optimizer.lr");
    assert_string_equal(weft__config_nearest("train.batchsize"), "train.batch");
    assert_null(weft__config_nearest("zzzzqqqq"));
}

int main(void) {
    unsetenv("WEFT_DEVICE");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts_every_kind),
        cmocka_unit_test(refuses_with_place_and_cause),
        cmocka_unit_test(refuses_what_does_not_fit_together),
        cmocka_unit_test(set_overrides_and_is_checked),
        cmocka_unit_test(epochs_and_steps_replace_each_other),
        cmocka_unit_test(device_comes_from_the_environment_last),
        cmocka_unit_test(devices_share_the_batches_of_a_step),
        cmocka_unit_test(resolved_text_reads_back),
        cmocka_unit_test(later_keys_change_no_hash),
        cmocka_unit_test(no_hash_without_memory),
        cmocka_unit_test(template_is_complete_and_valid),
        cmocka_unit_test(preset_equals_its_file),
        cmocka_unit_test(values_without_effect_are_found),
        cmocka_unit_test(words_are_those_of_the_library),
        cmocka_unit_test(template_follows_the_data),
        cmocka_unit_test(set_wins_over_the_file),
        cmocka_unit_test(nearest_key_is_near),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
