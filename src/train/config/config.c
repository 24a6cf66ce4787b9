/* The table of configuration keys: fills in defaults, checks that keys fit together, and finds the nearest
 * key to a misspelled one. Must not know: how values are read (config_values.c, config_yaml.c) and written
 * (config_write.c), models. Read next: config_values.c. */
#include <stdlib.h>
#include <string.h>

#include <weft/optim.h>
#include <weft/text.h>

#include "data/parse.h"
#include "train/source/source.h"

/* One bit per model type, and the masks of the kinds. */
enum {
#define MODEL(id, name, kind, traits) id = 1 << WEFT__MODEL_##id,
#include "train/model/models.def"
    ALL = (1 << WEFT__MODEL_TYPE_COUNT) - 1
};
enum { LANGUAGE_KIND, VECTORS_KIND, TEXTS_KIND };
enum {
    LANGUAGE = 0
#define MODEL(id, name, kind, traits) +(kind##_KIND == LANGUAGE_KIND ? id : 0)
#include "train/model/models.def"
    ,
    TEXTS = 0
#define MODEL(id, name, kind, traits) +(kind##_KIND == TEXTS_KIND ? id : 0)
#include "train/model/models.def"
    ,
    VECTORS = ALL - LANGUAGE - TEXTS
};

/* The words of choices, such as "|gpt|mlp", from the second character on. */
static const char models[] = ""
#define MODEL(id, name, kind, traits) "|" #name
#include "train/model/models.def"
    ;
static const char tasks[] = ""
#define TASK(id, word) "|" word
#include "train/config/choices.def"
    ;
static const char sources[] = ""
#define SOURCE(id, name) "|" #name
#include "train/source/sources.def"
    ;
static const char optimizers[] = ""
#define OPTIMIZER(id, word) "|" word
#include "train/config/choices.def"
    ;
static const char precisions[] = ""
#define PRECISION(id, word, dtype) "|" word
#include "train/config/choices.def"
    ;
#define MODELS     (models + 1)
#define TASKS      (tasks + 1)
#define SOURCES    (sources + 1)
#define OPTIMIZERS (optimizers + 1)
#define PRECISIONS (precisions + 1)

const weft__config_row weft__config_rows[WEFT__KEY_COUNT] = {
#define KEY(field, key, kind, low, high, choices, models, language, vectors, doc)                            \
    [WEFT__KEY_##field] = {key,                                                                              \
                           WEFT__KIND_##kind,                                                                \
                           (double)(low),                                                                    \
                           (double)(high),                                                                   \
                           (int64_t)low,                                                                     \
                           (int64_t)high,                                                                    \
                           choices,                                                                          \
                           models,                                                                           \
                           {language, vectors},                                                              \
                           doc,                                                                              \
                           offsetof(weft__config, field)},
#include "train/config/config_keys.def"
#undef KEY
};

bool weft__config_is(const weft__config *config, weft__trait trait) {
    static const int traits_of[] = {
#define MODEL(id, name, kind, traits) traits,
#include "train/model/models.def"
    };
    return (traits_of[config->model_type] & (int)trait) != 0;
}

bool weft__config_language(weft__model_type model) { return (LANGUAGE >> model & 1) != 0; }

bool weft__config_for(weft__config_key key, weft__model_type model) {
    return (weft__config_rows[key].models >> model & 1) != 0;
}

const char *weft__config_default(weft__config_key key, weft__model_type model) {
    static const struct {
        weft__model_type model;
        weft__config_key key;
        const char *value;
    } own[] = {
#define DEFAULT(id, field, value) {WEFT__MODEL_##id, WEFT__KEY_##field, value},
#include "train/model/models.def"
        {WEFT__MODEL_TYPE_COUNT, WEFT__KEY_COUNT, NULL},
    };
    if (!weft__config_for(key, model)) return NULL;
    for (size_t i = 0; own[i].value; i++)
        if (own[i].model == model && own[i].key == key) return own[i].value;
    return weft__config_rows[key].defaults[weft__config_language(model) ? LANGUAGE_KIND : VECTORS_KIND];
}

bool weft__config_usual(weft__config_key key, weft__model_type model, const char *value) {
    const char *usual = weft__config_default(key, model);
    double number, usual_number;
    if (weft__config_rows[key].kind == WEFT__KIND_NUM && usual &&
        weft__parse_f64(value, strlen(value), &number) == WEFT__NUMBER_OK &&
        weft__parse_f64(usual, strlen(usual), &usual_number) == WEFT__NUMBER_OK)
        return number == usual_number;
    return strcmp(value, usual ? usual : "") == 0;
}

const char *weft__config_key_name(weft__config_key key) { return weft__config_rows[key].key; }

void *weft__config_field(weft__config *config, weft__config_key key) {
    return (char *)config + weft__config_rows[key].offset;
}

/* Strings of a configuration use the memory of the C library, because a configuration exists before any
 * context. */
void weft__config_clear(weft__config *config, weft__config_key key) {
    const weft__config_row *row = &weft__config_rows[key];
    if (row->kind == WEFT__KIND_TEXT || row->kind == WEFT__KIND_PATH) {
        char **text = weft__config_field(config, key);
        weft__free(NULL, *text);
        *text = NULL;
    } else if (row->kind == WEFT__KIND_TEXTS) {
        weft__texts *texts = weft__config_field(config, key);
        for (size_t i = 0; i < texts->count; i++) weft__free(NULL, texts->values[i]);
        weft__free(NULL, texts->values);
        *texts = (weft__texts){0};
    }
}

void weft__config_unset(weft__config *config, weft__config_key key) {
    weft__config_clear(config, key);
    config->origin[key] = WEFT__ORIGIN_UNSET;
}

void weft__config_init(weft__config *config) { memset(config, 0, sizeof *config); }

void weft__config_free(weft__config *config) {
    for (int key = 0; key < WEFT__KEY_COUNT; key++) weft__config_clear(config, (weft__config_key)key);
    weft__free(NULL, config->file);
    weft__free(NULL, config->run);
    weft__free(NULL, config->published);
    weft__config_init(config);
}

weft__config_key weft__config_find(const char *name) {
    for (int key = 0; key < WEFT__KEY_COUNT; key++)
        if (strcmp(weft__config_rows[key].key, name) == 0) return (weft__config_key)key;
    return WEFT__KEY_COUNT;
}

bool weft__config_given(const weft__config *config, weft__config_key key) {
    return config->origin[key] > WEFT__ORIGIN_DEFAULT && config->origin[key] != WEFT__ORIGIN_FOUND;
}

/* ---- the nearest key ---- */

#define NAME_MAX_BYTES 63

/* Returns the smallest number of insertions, deletions, replacements and swaps of neighbours (the distance of
 * Damerau and Levenshtein). */
static size_t distance(const char *a, const char *b) {
    size_t rows[3][NAME_MAX_BYTES + 2];
    size_t a_size = strnlen(a, NAME_MAX_BYTES), b_size = strnlen(b, NAME_MAX_BYTES);
    for (size_t j = 0; j <= b_size; j++) rows[0][j] = j;
    for (size_t i = 1; i <= a_size; i++) {
        size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *above2 = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= b_size; j++) {
            size_t best = above[j - 1] + (a[i - 1] != b[j - 1]);
            if (above[j] + 1 < best) best = above[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && above2[j - 2] + 1 < best)
                best = above2[j - 2] + 1;
            row[j] = best;
        }
    }
    return rows[a_size % 3][b_size];
}

/* Distances are doubled, so that + 1 can rank a name of another section after an equal name of the same
 * section. */
const char *weft__config_nearest(const char *unknown) {
    const char *dot = strrchr(unknown, '.');
    const char *last = dot ? dot + 1 : unknown;
    const char *nearest = NULL;
    size_t least = 4 + strlen(last) / 4; /* a larger distance is not a typing error */
    for (int key = 0; key < WEFT__KEY_COUNT; key++) {
        const char *name = weft__config_rows[key].key;
        const char *name_dot = strrchr(name, '.');
        const char *name_last = name_dot ? name_dot + 1 : name;
        size_t whole = 2 * distance(unknown, name);
        size_t part = 2 * distance(last, name_last) + 1; /* the right name in the wrong section */
        if (part < whole && distance(last, name_last) * 3 <= strlen(last)) whole = part;
        size_t common = strlen(last) < strlen(name_last) ? strlen(last) : strlen(name_last);
        /* one name begins with the other, as in batchsize */
        if (common >= 3 && whole > 4 && strncmp(last, name_last, common) == 0) whole = 4;
        if (whole < least || (whole == least && !nearest)) {
            least = whole;
            nearest = name;
        }
    }
    return nearest;
}

/* ---- defaults and what must fit together ---- */

static weft_status fill_defaults(weft__config *config) {
    const char *device = getenv("WEFT_DEVICE");
    char problem[256];
    if (config->origin[WEFT__KEY_device] == WEFT__ORIGIN_UNSET && device && device[0])
        WEFT_TRY(weft__config_put(config, WEFT__KEY_device, device, WEFT__ORIGIN_ENVIRONMENT, "WEFT_DEVICE"));
    if (config->origin[WEFT__KEY_model_type] == WEFT__ORIGIN_UNSET) {
        /* the task decides without model.type */
        bool vectors =
            config->origin[WEFT__KEY_task] != WEFT__ORIGIN_UNSET && config->task != WEFT__TASK_LANGUAGE_MODEL;
        const weft__config_row *row = &weft__config_rows[WEFT__KEY_model_type];
        weft__config_word(row->choices, row->defaults[vectors ? VECTORS_KIND : LANGUAGE_KIND],
                          &config->model_type);
        config->origin[WEFT__KEY_model_type] = WEFT__ORIGIN_DEFAULT;
    }
    for (int i = 0; i < WEFT__KEY_COUNT; i++) {
        weft__config_key key = (weft__config_key)i;
        const char *value = weft__config_default(key, (weft__model_type)config->model_type);
        if (config->origin[key] != WEFT__ORIGIN_UNSET || !value) continue;
        if (!weft__config_take_written(config, key, value, problem))
            return problem[0] ? weft__fail(NULL, WEFT_ERR_INTERNAL, "default of %s: %s",
                                           weft__config_rows[key].key, problem)
                              : weft__fail_oom(NULL, strlen(value), "the configuration");
        config->origin[key] = WEFT__ORIGIN_DEFAULT;
    }
    return WEFT_OK;
}

/* Tells whether the source of the value of `key` is weaker than the source of `other`: a file is weaker than
 * --set. */
static bool weaker(const weft__config *config, weft__config_key key, weft__config_key other) {
    return !weft__config_given(config, key) ||
           (config->origin[key] == WEFT__ORIGIN_FILE && config->origin[other] == WEFT__ORIGIN_SET);
}

/* Sets a value that follows from other keys, unless the user gave a value. */
static void follow_int(weft__config *config, weft__config_key key, int64_t value) {
    if (weft__config_given(config, key)) return;
    *(int64_t *)weft__config_field(config, key) = value;
    config->origin[key] = WEFT__ORIGIN_FOUND;
}

/* Sets all values that follow from other keys. A value of the user stays, unless it is from a file and the
 * other key is from --set. */
static void config_follow(weft__config *config) {
    if (config->data_tokenizer_path &&
        weaker(config, WEFT__KEY_data_tokenizer, WEFT__KEY_data_tokenizer_path)) {
        config->data_tokenizer = WEFT_TOKENIZER_BPE;
        config->origin[WEFT__KEY_data_tokenizer] = WEFT__ORIGIN_FOUND;
    }
    const bool follows = config->data_path && weft__config_follows(config, WEFT__KEY_data_path);
    const char *source = follows ? weft__source_guess((weft__model_type)config->model_type,
                                                      config->model_init, config->data_path)
                                 : NULL;
    if (source && weaker(config, WEFT__KEY_data_source, WEFT__KEY_data_path)) {
        weft__config_word(weft__config_rows[WEFT__KEY_data_source].choices, source, &config->data_source);
        config->origin[WEFT__KEY_data_source] = WEFT__ORIGIN_FOUND;
    }
    if (config->data_val_path && weaker(config, WEFT__KEY_data_val_fraction, WEFT__KEY_data_val_path)) {
        config->data_val_fraction = 0;
        config->origin[WEFT__KEY_data_val_fraction] = WEFT__ORIGIN_FOUND;
    }
    const weft__model_type model = (weft__model_type)config->model_type;
    const bool both = weft__config_for(WEFT__KEY_model_hidden, model) &&
                      weft__config_for(WEFT__KEY_model_layers, model); /* as an mlp: two ways to say it */
    bool shape = weft__config_given(config, WEFT__KEY_model_layers) ||
                 weft__config_given(config, WEFT__KEY_model_width);
    if (both && shape && !weft__config_given(config, WEFT__KEY_model_hidden)) {
        int64_t layers = config->model_layers > 0 ? config->model_layers : 2;
        int64_t width = config->model_width > 0 ? config->model_width : 512;
        if (layers > WEFT__LIST_MAX) layers = WEFT__LIST_MAX + 1; /* check() refuses this number */
        config->model_hidden.count = (size_t)layers;
        for (size_t i = 0; i < (size_t)layers && i < WEFT__LIST_MAX; i++)
            config->model_hidden.values[i] = width;
        config->origin[WEFT__KEY_model_hidden] = WEFT__ORIGIN_FOUND;
    }
    /* if only epochs are given, the default number of steps does not count, and vice versa */
    bool steps = weft__config_given(config, WEFT__KEY_train_steps) && config->train_steps > 0;
    bool epochs = weft__config_given(config, WEFT__KEY_train_epochs) && config->train_epochs > 0;
    if (epochs && (!steps || weaker(config, WEFT__KEY_train_steps, WEFT__KEY_train_epochs))) {
        config->train_steps = 0;
        config->origin[WEFT__KEY_train_steps] = WEFT__ORIGIN_UNSET;
    } else if (steps && (!epochs || weaker(config, WEFT__KEY_train_epochs, WEFT__KEY_train_steps))) {
        config->train_epochs = 0;
        config->origin[WEFT__KEY_train_epochs] = WEFT__ORIGIN_UNSET;
    }
    if (config->train_patience > 0 && weaker(config, WEFT__KEY_train_keep_best, WEFT__KEY_train_patience)) {
        config->train_keep_best = true;
        config->origin[WEFT__KEY_train_keep_best] = WEFT__ORIGIN_FOUND;
    }
    if (config->train_batch == WEFT__BATCH_FULL) { /* an epoch is one step */
        follow_int(config, WEFT__KEY_train_eval_every, 20);
        follow_int(config, WEFT__KEY_train_save_every, 0);
    }
    if (config->optimizer_type == WEFT__OPTIMIZER_SGD &&
        config->origin[WEFT__KEY_schedule_min_lr] == WEFT__ORIGIN_DEFAULT &&
        config->schedule_min_lr > config->optimizer_lr)
        config->schedule_min_lr = 0;
}

weft_status weft__config_blame(const weft__config *config, weft__config_key key, const char *what) {
    char origin[256];
    weft_status status = config->origin[key] == WEFT__ORIGIN_FILE ? WEFT_ERR_FORMAT : WEFT_ERR_ARGUMENT;
    return weft__fail(NULL, status, "%s: %s: %s", weft__config_origin(config, key, origin, sizeof origin),
                      weft__config_rows[key].key, what);
}

/* Refuses keys that the data source would ignore. */
static weft_status check_targets(const weft__config *config) {
    const weft__source_kind *source = weft__source_of(config);
    const bool inside = source->form == WEFT__FORM_TABLE || source->form == WEFT__FORM_TEXTS;
    static const weft__config_key names[] = {WEFT__KEY_data_target, WEFT__KEY_data_columns};
    char what[128];
    if (source->form == WEFT__FORM_CORPUS) return WEFT_OK;
    if (inside && weft__config_given(config, WEFT__KEY_data_labels))
        return weft__config_blame(
            config, WEFT__KEY_data_labels,
            "csv and json files contain their targets: name the column or member in data.target");
    if (source->form == WEFT__FORM_FOLDER) {
        snprintf(what, sizeof what,
                 "%s take their classes from the names of their folders: leave this key out", source->plural);
        if (weft__config_given(config, WEFT__KEY_data_labels))
            return weft__config_blame(config, WEFT__KEY_data_labels, what);
        snprintf(what, sizeof what, "folders of %s have classes, not numbers to predict", source->plural);
        if (config->task == WEFT__TASK_REGRESSION && !weft__config_is(config, WEFT__TRAIT_NO_TARGETS))
            return weft__config_blame(config, WEFT__KEY_task, what);
    }
    for (int i = 0; i < 2 && !inside; i++)
        if (weft__config_given(config, names[i]))
            return weft__config_blame(
                config, names[i],
                "only csv and json files use this key; for idx and npy files name the label files "
                "in data.labels");
    return WEFT_OK;
}

/* Refuses keys that do not fit the model. */
static weft_status check_model(const weft__config *c) {
#define REFUSE(id, field, when, why)                                                                         \
    if (c->model_type == WEFT__MODEL_##id && (when)) return weft__config_blame(c, WEFT__KEY_##field, why);
#include "train/model/models.def"
    return WEFT_OK;
}

static weft_status check_folds(const weft__config *config) {
    if (config->data_folds == 0) return WEFT_OK;
    if (config->data_folds == 1)
        return weft__config_blame(config, WEFT__KEY_data_folds, "give at least 2 parts");
    if (config->data_val_path)
        return weft__config_blame(config, WEFT__KEY_data_folds,
                                  "the folds are parts of the training data, so leave out data.val_path");
    if (config->data_fold < 1 || config->data_fold > config->data_folds)
        return weft__config_blame(config, WEFT__KEY_data_fold, "give a number from 1 to data.folds");
    return WEFT_OK;
}

static weft_status check_data(const weft__config *config) {
    const weft__source_kind *source = weft__source_of(config);
    if (!config->data_path && !config->published) /* a published model can be used without any */
        return weft__fail(NULL, config->file ? WEFT_ERR_FORMAT : WEFT_ERR_ARGUMENT,
                          "%s: data.path is missing: name the training data there or with --data PATH",
                          config->file ? config->file : "configuration");
    const bool language = weft__config_language((weft__model_type)config->model_type);
    if (language != (config->task == WEFT__TASK_LANGUAGE_MODEL))
        return weft__config_blame(
            config, WEFT__KEY_task,
            "use language-model with language models such as gpt, and classification or regression "
            "with other models such as mlp");
    if ((source->form == WEFT__FORM_TEXTS) != weft__config_is(config, WEFT__TRAIT_TEXTS))
        return weft__config_blame(
            config, WEFT__KEY_data_source,
            "an encoder learns from texts, and no other model does: leave this key out");
    if ((source->form == WEFT__FORM_CORPUS) != language)
        return weft__config_blame(
            config, WEFT__KEY_data_source,
            "use text, bytes or tokens with language models such as gpt, and other formats with "
            "other models such as mlp");
    WEFT_TRY(check_model(config));
    if (config->model_image.count != 0 && config->model_image.count != 3)
        return weft__config_blame(config, WEFT__KEY_model_image,
                                  "give three numbers: channels, rows and columns");
    if (config->model_image.count && source->form != WEFT__FORM_FOLDER &&
        !weft__config_is(config, WEFT__TRAIT_IMAGES))
        return weft__config_blame(config, WEFT__KEY_model_image,
                                  "only cnn and resnet, and data.source images, use this key");
    if (language && config->train_batch == WEFT__BATCH_FULL)
        return weft__config_blame(config, WEFT__KEY_train_batch,
                                  "a text has no fixed number of windows, so give a number, not full");
    if (config->data_val_path && config->data_val_fraction > 0)
        return weft__config_blame(
            config, WEFT__KEY_data_val_fraction,
            "data.val_path names the validation data, so set this key to 0 or leave it out");
    WEFT_TRY(check_folds(config));
    if (source->check) WEFT_TRY(source->check(config));
    return check_targets(config);
}

static weft_status check_stopping(const weft__config *config) {
    if (config->train_patience > 0 && !config->data_val_path && config->data_val_fraction == 0 &&
        config->data_folds == 0)
        return weft__config_blame(config, WEFT__KEY_train_patience,
                                  "there is no validation data: set data.val_fraction or data.val_path");
    if (config->train_class_weights.count && config->task != WEFT__TASK_CLASSIFICATION)
        return weft__config_blame(config, WEFT__KEY_train_class_weights,
                                  "only task classification uses this key");
    if (config->train_label_smoothing > 0 && config->task == WEFT__TASK_REGRESSION)
        return weft__config_blame(
            config, WEFT__KEY_train_label_smoothing,
            "only classes and tokens can be smoothed, so leave this key out of a regression");
    return WEFT_OK;
}

static weft_status config_check(const weft__config *config) {
    WEFT_TRY(check_data(config));
    WEFT_TRY(weft__config_check_devices(config));
    WEFT_TRY(check_stopping(config));
    if (config->model_hidden.count > WEFT__LIST_MAX)
        return weft__config_blame(config, WEFT__KEY_model_layers, "an mlp has at most 64 hidden layers");
    if (config->optimizer_betas.count != 2)
        return weft__config_blame(config, WEFT__KEY_optimizer_betas, "give two numbers, as in [0.9, 0.999]");
    if (config->optimizer_nesterov && config->optimizer_momentum == 0)
        return weft__config_blame(config, WEFT__KEY_optimizer_nesterov,
                                  "Nesterov momentum needs optimizer.momentum above 0");
    bool falls =
        config->schedule_type == WEFT_SCHEDULE_COSINE || config->schedule_type == WEFT_SCHEDULE_LINEAR;
    if (falls && config->schedule_min_lr > config->optimizer_lr)
        return weft__config_blame(
            config, WEFT__KEY_schedule_min_lr,
            "the end of the schedule is above its beginning, optimizer.lr: make one of them smaller "
            "or larger");
    if (config->train_steps == 0 && config->train_epochs == 0)
        return weft__config_blame(config, WEFT__KEY_train_steps,
                                  "give train.steps or train.epochs, to say how long to train");
    if (config->train_steps > 0 && config->train_epochs > 0)
        return weft__config_blame(config, WEFT__KEY_train_epochs,
                                  "give only one of train.steps and train.epochs");
    return WEFT_OK;
}

/* Keys that only some values of another key use. */
static const struct {
    weft__config_key key, by;
    const char *words; /* values of `by` that use the key */
} uses[] = {
    {WEFT__KEY_optimizer_betas, WEFT__KEY_optimizer_type, "adam|adamw"},
    {WEFT__KEY_optimizer_eps, WEFT__KEY_optimizer_type, "adam|adamw|rmsprop"},
    {WEFT__KEY_optimizer_momentum, WEFT__KEY_optimizer_type, "sgd|rmsprop"},
    {WEFT__KEY_optimizer_nesterov, WEFT__KEY_optimizer_type, "sgd"},
    {WEFT__KEY_optimizer_alpha, WEFT__KEY_optimizer_type, "rmsprop"},
    {WEFT__KEY_schedule_min_lr, WEFT__KEY_schedule_type, "cosine|linear"},
    {WEFT__KEY_schedule_every, WEFT__KEY_schedule_type, "step"},
    {WEFT__KEY_schedule_factor, WEFT__KEY_schedule_type, "step"},
    {WEFT__KEY_train_loss_scale, WEFT__KEY_train_precision, "f16"},
    {WEFT__KEY_train_loss_scale_every, WEFT__KEY_train_precision, "f16"},
    {WEFT__KEY_data_max_vocabulary, WEFT__KEY_data_tokenizer, "word"},
    {WEFT__KEY_model_rotary_base, WEFT__KEY_model_positions, "rotary"},
    {WEFT__KEY_model_rotary_pairs, WEFT__KEY_model_positions, "rotary"},
};

/* Returns the key whose value does not use `key`; WEFT__KEY_COUNT: it is used. */
static weft__config_key unused_by(const weft__config *config, weft__config_key key) {
    char value[64];
    int used;
    if (weft__source_ignores(config, key)) return WEFT__KEY_data_source;
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++)
        if (uses[i].key == key &&
            !weft__config_word(uses[i].words, weft__config_value(config, uses[i].by, value, sizeof value),
                               &used))
            return uses[i].by;
    return WEFT__KEY_COUNT;
}

bool weft__config_unused(const weft__config *config, weft__config_key key, char why[128]) {
    const weft__model_type model = (weft__model_type)config->model_type;
    char value[64], word[32];
    if (!weft__config_given(config, key)) return false;
    if (!weft__config_for(key, model)) {
        weft__config_choice(WEFT__KEY_model_type, (int)model, word);
        snprintf(why, 128, "%s %s does not use it", strchr("aeiou", word[0]) ? "an" : "a", word);
        return true;
    }
    const weft__config_key by = unused_by(config, key);
    if (by == WEFT__KEY_COUNT) return false;
    weft__config_value(config, key, value, sizeof value);
    if (weft__config_usual(key, model, value)) return false; /* files of weft init have the default */
    weft__config_value(config, by, value, sizeof value);
    snprintf(why, 128, "%s %s does not use it", weft__config_rows[by].key, value);
    return true;
}

weft_status weft__config_resolve(weft__config *config) {
    WEFT_TRY(fill_defaults(config));
    config_follow(config);
    WEFT_TRY(weft__config_follow_devices(config));
    return config_check(config);
}
