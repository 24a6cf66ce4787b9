/* Writes configurations: single values and their sources, the resolved config.yaml, the file of `weft init`,
 * and the hash. Must not know: where the text goes. Read next: train/run/run_dir.c. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "data/parse.h"
#include "train/source/source.h"

/* ---- one value ---- */

const char *weft__config_choice(weft__config_key key, int choice, char buffer[32]) {
    const char *at = weft__config_rows[key].choices;
    buffer[0] = '\0';
    for (int i = 0; at; i++) {
        const char *end = strchr(at, '|');
        if (i == choice) {
            snprintf(buffer, 32, "%.*s", (int)(end ? end - at : (int)strlen(at)), at);
            return buffer;
        }
        at = end ? end + 1 : NULL;
    }
    return buffer;
}

/* Appends to a buffer of fixed size; the text is cut if it does not fit. */
static void config_write_append(char *buffer, size_t bytes, const char *text) {
    size_t used = strlen(buffer);
    if (used + 1 < bytes) snprintf(buffer + used, bytes - used, "%s", text);
}

/* Appends the shortest decimal that reads back as the same double. */
static void append_num(char *buffer, size_t bytes, double value) {
    char text[40];
    double back = 0;
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (weft__parse_f64(text, strlen(text), &back) == WEFT__NUMBER_OK && back == value) break;
    }
    config_write_append(buffer, bytes, text);
}

/* Appends a string as YAML: plain if every YAML reader takes it as a string, otherwise in double quotes. */
static void append_text(char *buffer, size_t bytes, const char *text) {
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-";
    static const char *const words[] = {"null", "true", "false", "yes", "no", "on", "off", "~"};
    bool plain = strspn(text, safe) == strlen(text) && strchr("+-.0123456789", text[0]) == NULL;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) plain = plain && strcmp(text, words[i]) != 0;
    if (plain) {
        config_write_append(buffer, bytes, text);
        return;
    }
    config_write_append(buffer, bytes, "\"");
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        char part[8];
        if (*c == '"' || *c == '\\')
            snprintf(part, sizeof part, "\\%c", *c);
        else if (*c < 0x20 || *c == 0x7f)
            snprintf(part, sizeof part, "\\x%02x", *c);
        else
            snprintf(part, sizeof part, "%c", *c);
        config_write_append(buffer, bytes, part);
    }
    config_write_append(buffer, bytes, "\"");
}

static void append_int(char *buffer, size_t bytes, int64_t value) {
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)value);
    config_write_append(buffer, bytes, text);
}

static void append_list(const weft__config_row *row, const void *field, char *buffer, size_t bytes) {
    const weft__ints *ints = field;
    const weft__nums *nums = field;
    const weft__texts *texts = field;
    size_t count = row->kind == WEFT__KIND_INTS   ? ints->count
                   : row->kind == WEFT__KIND_NUMS ? nums->count
                                                  : texts->count;
    config_write_append(buffer, bytes, "[");
    for (size_t i = 0; i < count; i++) {
        if (i > 0) config_write_append(buffer, bytes, ", ");
        if (row->kind == WEFT__KIND_INTS)
            append_int(buffer, bytes, ints->values[i]);
        else if (row->kind == WEFT__KIND_NUMS)
            append_num(buffer, bytes, nums->values[i]);
        else
            append_text(buffer, bytes, texts->values[i]);
    }
    config_write_append(buffer, bytes, "]");
}

const char *weft__config_value(const weft__config *config, weft__config_key key, char *buffer, size_t bytes) {
    const weft__config_row *row = &weft__config_rows[key];
    const void *field = (const char *)config + row->offset;
    char choice[32];
    buffer[0] = '\0';
    if (config->origin[key] == WEFT__ORIGIN_UNSET) return buffer;
    switch (row->kind) {
    case WEFT__KIND_INT:
        if (row->choices && *(const int64_t *)field <= 0)
            config_write_append(buffer, bytes,
                                weft__config_choice(key, (int)-*(const int64_t *)field, choice));
        else
            append_int(buffer, bytes, *(const int64_t *)field);
        break;
    case WEFT__KIND_NUM: append_num(buffer, bytes, *(const double *)field); break;
    case WEFT__KIND_BOOL: config_write_append(buffer, bytes, *(const bool *)field ? "true" : "false"); break;
    case WEFT__KIND_CHOICE:
        config_write_append(buffer, bytes, weft__config_choice(key, *(const int *)field, choice));
        break;
    case WEFT__KIND_TEXT:
    case WEFT__KIND_PATH: append_text(buffer, bytes, *(char *const *)field); break;
    case WEFT__KIND_INTS:
    case WEFT__KIND_NUMS:
    case WEFT__KIND_TEXTS: append_list(row, field, buffer, bytes); break;
    }
    return buffer;
}

const char *weft__config_origin(const weft__config *config, weft__config_key key, char *buffer,
                                size_t bytes) {
    switch (config->origin[key]) {
    case WEFT__ORIGIN_UNSET: snprintf(buffer, bytes, "not set"); break;
    case WEFT__ORIGIN_DEFAULT: snprintf(buffer, bytes, "default"); break;
    case WEFT__ORIGIN_ENVIRONMENT: snprintf(buffer, bytes, "environment"); break;
    case WEFT__ORIGIN_FILE:
        snprintf(buffer, bytes, "%s:%d", config->file ? config->file : "file", config->line[key]);
        break;
    case WEFT__ORIGIN_SET: snprintf(buffer, bytes, "--set"); break;
    case WEFT__ORIGIN_FLAG: snprintf(buffer, bytes, "--%s", weft__config_rows[key].key); break;
    case WEFT__ORIGIN_FOUND: snprintf(buffer, bytes, "follows from other keys"); break;
    }
    return buffer;
}

/* ---- whole files ---- */

#define VALUE_MAX 8192

/* Returns a buffer size that is large enough for the value of a key as YAML. Only lists and paths can be
 * long. */
static size_t value_bytes(const weft__config *config, weft__config_key key) {
    const weft__config_row *row = &weft__config_rows[key];
    const void *field = (const char *)config + row->offset;
    size_t bytes = VALUE_MAX;
    if (row->kind == WEFT__KIND_TEXT || row->kind == WEFT__KIND_PATH) {
        const char *text = *(char *const *)field;
        if (text) bytes += 4 * strlen(text);
    } else if (row->kind == WEFT__KIND_TEXTS) {
        const weft__texts *texts = field;
        for (size_t i = 0; i < texts->count; i++) bytes += 4 * strlen(texts->values[i]) + 8;
    }
    return bytes;
}

/* Prints "section:" when a new section begins. Returns the name of the key within its section. */
static const char *open_section(weft_text *out, const char *key, char section[32]) {
    const char *dot = strchr(key, '.');
    size_t size = dot ? (size_t)(dot - key) : 0;
    if (strlen(section) != size || strncmp(section, key, size) != 0) {
        snprintf(section, 32, "%.*s", (int)size, key);
        weft__put(out, size ? "\n%s:\n" : "\n", section);
    }
    return dot ? dot + 1 : key;
}

/* Returns false when memory is short. */
static bool put_config(weft_text *out, const weft__config *config) {
    char section[32] = "";
    weft__put(
        out,
        "# The configuration of this run. The comment after each value says where the value came from.\n");
    for (int i = 0; i < WEFT__KEY_COUNT; i++) {
        weft__config_key key = (weft__config_key)i;
        char origin[512];
        size_t room = value_bytes(config, key);
        char *value = malloc(room);
        if (!value) return false;
        bool set = config->origin[key] != WEFT__ORIGIN_UNSET;
        const char *name = open_section(out, weft__config_rows[key].key, section);
        weft__put(out, "%s%s%s:%s%s  # %s\n", section[0] ? "  " : "", set ? "" : "# ", name, set ? " " : "",
                  weft__config_value(config, key, value, room),
                  weft__config_origin(config, key, origin, sizeof origin));
        free(value);
    }
    return true;
}

char *weft__config_text(const weft__config *config) {
    weft_text out = weft__text(NULL, 0); /* computes the length first: an in-memory stream can lose parts */
    char *text = put_config(&out, config) ? malloc(out.length + 1) : NULL;
    if (!text) return NULL;
    out = weft__text(text, out.length + 1);
    if (put_config(&out, config)) return text;
    free(text);
    return NULL;
}

/* Prints "a|b" as "a, b". */
static void put_words(weft_text *out, const char *words) {
    for (const char *c = words; *c; c++) {
        if (*c == '|')
            weft__put(out, ", ");
        else
            weft__put(out, "%c", *c);
    }
}

/* Prints the range or the choices of a key, for a comment in the file of `weft init`. */
static void put_range(weft_text *out, const weft__config_row *row) {
    if (row->kind == WEFT__KIND_CHOICE) {
        weft__put(out, " (");
        put_words(out, row->choices);
        weft__put(out, ")");
    } else if (row->kind == WEFT__KIND_BOOL) {
        weft__put(out, " (true, false)");
    } else if (row->kind == WEFT__KIND_INT || row->kind == WEFT__KIND_INTS) {
        if (row->low_int <= 0) return;
        weft__put(out, " (at least %lld", (long long)row->low_int);
        if (row->choices) weft__put(out, ", ");
        if (row->choices) put_words(out, row->choices);
        weft__put(out, ")");
    }
}

/* GPT-2 small with 124 million parameters, as llm.c and nanoGPT train it: 2^19 tokens a step. How many of
 * them are in one batch depends on the memory of the device. */
static const char *const gpt2_values[][2] = {{"data.source", "tokens"},
                                             {"data.tokenizer", "bpe"},
                                             {"data.tokenizer_path", "FOLDER OF encoder.json AND vocab.bpe"},
                                             {"data.val_fraction", "0.0005"},
                                             {"model.layers", "12"},
                                             {"model.heads", "12"},
                                             {"model.width", "768"},
                                             {"model.context", "1024"},
                                             {"model.vocab", "50304"},
                                             {"optimizer.lr", "0.0006"},
                                             {"optimizer.betas", "[0.9, 0.95]"},
                                             {"schedule.warmup", "700"},
                                             {"schedule.min_lr", "0.00006"},
                                             {"train.steps", "19073"},
                                             {"train.batch", "16"},
                                             {"train.accumulate", "32"},
                                             {"train.eval_batches", "80"},
                                             {"train.save_every", "1000"},
                                             {NULL, NULL}};

/* Llama's architecture in the size of the gpt defaults. */
static const char *const llama_values[][2] = {{"model.norm", "rms"},
                                              {"model.positions", "rotary"},
                                              {"model.mlp", "swiglu"},
                                              {"model.kv_heads", "2"},
                                              {"model.bias", "false"},
                                              {"model.untied_head", "true"},
                                              {NULL, NULL}};

/* For any text: `weft train text` fits the size to the time (train/analysis/pace.c). The rate was the better
 * one of 0.001 and 0.003 on tinyshakespeare: after 6,000 steps the validation loss is 1.474 instead of 1.533.
 */
static const char *const text_values[][2] = {{"optimizer.lr", "0.003"}, {NULL, NULL}};

const weft__preset *weft__config_preset(const char *name) {
    static const weft__preset presets[] = {
#define MODEL(id, name, kind, traits) {#name, WEFT__MODEL_##id, NULL},
#define PRESET(name, id)              {#name, WEFT__MODEL_##id, name##_values},
#include "train/model/models.def"
    };
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++)
        if (strcmp(presets[i].name, name) == 0) return &presets[i];
    return NULL;
}

weft_status weft__config_take_preset(weft__config *config, const weft__preset *preset) {
    char type[32];
    weft__config_choice(WEFT__KEY_model_type, (int)preset->model, type);
    WEFT_TRY(weft__config_put(config, WEFT__KEY_model_type, type, WEFT__ORIGIN_DEFAULT, preset->name));
    for (size_t i = 0; preset->values && preset->values[i][0]; i++)
        WEFT_TRY(weft__config_put(config, weft__config_find(preset->values[i][0]), preset->values[i][1],
                                  WEFT__ORIGIN_DEFAULT, preset->name));
    return WEFT_OK;
}

static const char *preset_value(const weft__preset *preset, const weft__config_row *row) {
    for (size_t i = 0; preset->values && preset->values[i][0]; i++)
        if (strcmp(preset->values[i][0], row->key) == 0) return preset->values[i][1];
    return weft__config_default((weft__config_key)(row - weft__config_rows), preset->model);
}

/* Prints the file of `weft init`. `path` is the path of the data as YAML, `source` their format. Both may be
 * NULL. */
static void put_template(weft_text *out, const weft__preset *preset, const char *path, const char *source) {
    const weft__model_type model = preset->model;
    char section[32] = "", type[32];
    weft__config_choice(WEFT__KEY_model_type, (int)model, type);
    weft__put(
        out,
        "# Train with: weft train THIS_FILE    Any value may be changed there: --set train.steps=500\n"
        "# Every key that a %s uses is here. Lines that begin with # are not set or keep their default.\n",
        type);
    for (int i = 0; i < WEFT__KEY_COUNT; i++) {
        const weft__config_row *row = &weft__config_rows[i];
        if (!weft__config_for((weft__config_key)i, model)) continue;
        const char *name = open_section(out, row->key, section);
        const char *indent = section[0] ? "  " : "", *given = preset_value(preset, row);
        if (i == WEFT__KEY_model_type) given = type;
        if (i == WEFT__KEY_data_path && path) given = path;
        if (i == WEFT__KEY_data_source && source) given = source;
        weft__put(out, "%s# %s", indent, row->doc);
        put_range(out, row);
        const bool open = i == WEFT__KEY_device || (i == WEFT__KEY_task && model == WEFT__MODEL_MLP);
        const bool active = given && !open; /* machine and data decide the others */
        weft__put(out, "\n%s%s%s:%s%s\n", indent, active ? "" : "# ", name, given ? " " : "",
                  given ? given : "");
    }
}

char *weft__config_template(const weft__preset *preset, const char *data_path) {
    const char *source = data_path ? weft__source_guess(preset->model, false, data_path) : NULL;
    const size_t room = data_path ? 4 * strlen(data_path) + 8 : 0;
    char *path = data_path ? malloc(room) : NULL;
    if (data_path && !path) return NULL;
    if (path) path[0] = '\0';
    if (path) append_text(path, room, data_path);
    weft_text out = weft__text(NULL, 0);
    put_template(&out, preset, path, source);
    char *text = malloc(out.length + 1);
    out = weft__text(text, text ? out.length + 1 : 0);
    put_template(&out, preset, path, source);
    free(path);
    return text;
}

/* Tells whether a key existed in the first version. The values of these keys always count in the hash. A
 * newer key counts only if its value is not the default, so that hashes of older checkpoints stay valid. */
static bool is_first(const char *key) {
    static const char first[] =
        " "
        "task data.source data.target data.columns data.header data.delimiter data.tokenizer "
        "data.max_vocabulary data.val_fraction data.standardize model.type model.layers model.heads "
        "model.width model.context model.vocab model.dropout model.bias model.hidden "
        "model.activation model.untied_head optimizer.type optimizer.lr optimizer.betas "
        "optimizer.eps optimizer.momentum optimizer.nesterov optimizer.alpha optimizer.weight_decay "
        "optimizer.clip schedule.type schedule.warmup schedule.min_lr schedule.every "
        "schedule.factor train.batch train.accumulate train.seed train.precision ";
    char word[64];
    snprintf(word, sizeof word, " %s ", key);
    return strstr(first, word) != NULL;
}

/* Tells whether the key counts in the hash: a checkpoint with another value would belong to another run. */
static bool counts(const weft__config *config, weft__config_key key, const char *value) {
    switch ((int)key) { /* how long, how often, where: a resumed run may change these keys */
    case WEFT__KEY_data_path:
    case WEFT__KEY_data_val_path:
    case WEFT__KEY_data_test_path:
    case WEFT__KEY_data_labels:
    case WEFT__KEY_data_tokenizer_path:
    case WEFT__KEY_data_in_files: /* gives the same bits */
    case WEFT__KEY_data_image_pixels:
    case WEFT__KEY_data_max_bytes:
    case WEFT__KEY_model_init:
    case WEFT__KEY_train_steps:
    case WEFT__KEY_train_epochs:
    case WEFT__KEY_train_timeout:
    case WEFT__KEY_train_shard: /* gives the same bits */
    case WEFT__KEY_train_eval_every:
    case WEFT__KEY_train_eval_batches:
    case WEFT__KEY_train_save_every:
    case WEFT__KEY_train_log_every:
    case WEFT__KEY_train_keep:
    case WEFT__KEY_train_keep_best:
    case WEFT__KEY_train_patience:
    case WEFT__KEY_train_min_delta:
    case WEFT__KEY_train_recompute:
    case WEFT__KEY_train_deterministic:
    case WEFT__KEY_device:
    case WEFT__KEY_devices: return false;
    case WEFT__KEY_train_loss_scale:
    case WEFT__KEY_train_loss_scale_every: return config->train_precision == WEFT__PRECISION_F16;
    default: break;
    }
    return is_first(weft__config_rows[key].key) ||
           !weft__config_usual(key, (weft__model_type)config->model_type, value);
}

weft_status weft__config_conflict(const weft__config *was, const weft__config *now, weft__config_key *key,
                                  char old[64]) {
    *key = WEFT__KEY_COUNT;
    for (int i = 0; i < WEFT__KEY_COUNT && *key == WEFT__KEY_COUNT; i++) {
        const weft__config_key k = (weft__config_key)i;
        const size_t rooms[] = {value_bytes(was, k), value_bytes(now, k)};
        char *values = weft__alloc(NULL, rooms[0] + rooms[1]);
        if (!values) return weft__fail_oom(NULL, rooms[0] + rooms[1], "a configuration");
        weft__config_value(was, k, values, rooms[0]);
        weft__config_value(now, k, values + rooms[0], rooms[1]);
        const bool both = counts(was, k, values) || counts(now, k, values + rooms[0]);
        if (both && strcmp(values, values + rooms[0]) != 0) {
            *key = k;
            weft__printable(old, 64, values, strlen(values), "");
        }
        weft__free(NULL, values);
    }
    return WEFT_OK;
}

weft_status weft__config_hash(weft_context *ctx, const weft__config *config, char out[17]) {
    weft_hash hash;
    weft__hash_init(&hash);
    for (int i = 0; i < WEFT__KEY_COUNT; i++) {
        weft__config_key key = (weft__config_key)i;
        const size_t room = value_bytes(config, key);
        char *value = weft__alloc(ctx, room);
        if (!value) return weft__fail_oom(ctx, room, "the hash of the configuration");
        if (counts(config, key, weft__config_value(config, key, value, room))) {
            weft__hash_str(&hash, weft__config_rows[key].key);
            weft__hash_str(&hash, value);
        }
        weft__free(ctx, value);
    }
    snprintf(out, 17, "%016llx", (unsigned long long)(hash.a ^ weft__mix64(hash.b)));
    return WEFT_OK;
}
