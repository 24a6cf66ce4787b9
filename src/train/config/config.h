/* The configuration of a run: typed values, the source of each value, and configuration files. Must not know:
 * models, devices, loops. Read next: config_keys.def, then config.c. */
#ifndef WEFT_SRC_TRAIN_CONFIG_CONFIG_H
#define WEFT_SRC_TRAIN_CONFIG_CONFIG_H

#include <stdio.h>

#include "base/base.h"

#define WEFT__LIST_MAX 64 /* most members of INTS and NUMS */

typedef struct weft__ints {
    size_t count;
    int64_t values[WEFT__LIST_MAX];
} weft__ints;
typedef struct weft__nums {
    size_t count;
    double values[WEFT__LIST_MAX];
} weft__nums;
typedef struct weft__texts {
    size_t count;
    char **values;
} weft__texts;

/* The C type of each kind of key. */
#define WEFT__CONFIG_INT    int64_t
#define WEFT__CONFIG_NUM    double
#define WEFT__CONFIG_BOOL   bool
#define WEFT__CONFIG_CHOICE int
#define WEFT__CONFIG_TEXT   char *
#define WEFT__CONFIG_PATH   char *
#define WEFT__CONFIG_INTS   weft__ints
#define WEFT__CONFIG_NUMS   weft__nums
#define WEFT__CONFIG_TEXTS  weft__texts

typedef enum weft__config_key {
#define KEY(field, key, kind, low, high, choices, models, language, vectors, doc) WEFT__KEY_##field,
#include "train/config/config_keys.def"
#undef KEY
    WEFT__KEY_COUNT
} weft__config_key;

/* The values of CHOICE keys, in the order of their words. */
typedef enum weft__task {
#define TASK(id, word) WEFT__TASK_##id,
#include "train/config/choices.def"
} weft__task;
typedef enum weft__source {
#define SOURCE(id, name) WEFT__SOURCE_##id,
#include "train/source/sources.def"
} weft__source;
typedef enum weft__model_type {
#define MODEL(id, name, kind, traits) WEFT__MODEL_##id,
#include "train/model/models.def"
    WEFT__MODEL_TYPE_COUNT
} weft__model_type;
/* What sets some networks apart, one bit each. */
typedef enum weft__trait {
    WEFT__TRAIT_PUBLISHED = 1,     /* the weights have the names and shapes of GPT-2's published ones */
    WEFT__TRAIT_COEFFICIENTS = 2,  /* a single layer: a coefficient for each column of the data */
    WEFT__TRAIT_IMAGES = 4,        /* a sample has channels, rows and columns */
    WEFT__TRAIT_WHOLE_BATCHES = 8, /* training leaves out a last batch that is not full */
    WEFT__TRAIT_NO_TARGETS = 16,   /* the targets are the inputs */
    WEFT__TRAIT_TEXTS = 32         /* a published encoder: a sample is a text, or a pair of texts */
} weft__trait;
typedef enum weft__optimizer_type {
#define OPTIMIZER(id, word) WEFT__OPTIMIZER_##id,
#include "train/config/choices.def"
} weft__optimizer_type;
#define WEFT__BATCH_FULL (-1) /* train.batch: all rows; 0 means auto */
typedef enum weft__precision {
#define PRECISION(id, word, dtype) WEFT__PRECISION_##id,
#include "train/config/choices.def"
} weft__precision;

/* The values of other CHOICE keys are those of an enum of the library: data.tokenizer (weft_tokenizer_kind),
 * model.norm (weft_norm_kind), model.positions (weft_position_kind), model.activation (weft_activation_kind),
 * schedule.type (weft_schedule_kind) and train.recompute (weft_recompute). */

typedef enum weft__origin_kind {
    WEFT__ORIGIN_UNSET, /* no value: 0, NULL or an empty list */
    WEFT__ORIGIN_DEFAULT,
    WEFT__ORIGIN_ENVIRONMENT,
    WEFT__ORIGIN_FILE,
    WEFT__ORIGIN_SET,  /* --set */
    WEFT__ORIGIN_FLAG, /* --device and similar flags */
    WEFT__ORIGIN_FOUND /* follows from other keys or from the data */
} weft__origin_kind;

typedef struct weft__config {
#define KEY(field, key, kind, low, high, choices, models, language, vectors, doc) WEFT__CONFIG_##kind field;
#include "train/config/config_keys.def"
#undef KEY
    weft__origin_kind origin[WEFT__KEY_COUNT];
    int line[WEFT__KEY_COUNT]; /* line in the file, from 1 */
    char *file;                /* path of the file, or NULL */
    char *run;                 /* the run folder whose config.yaml was read, or NULL */
    bool trusted;              /* the user trusts the run folder */
    char *published;           /* folder or GGUF file that describes the model, or NULL: the keys do */
    int64_t positions;         /* rows of its table of learned positions; 0: it has none */
    bool packed;               /* its weights stay packed, if the file holds them so */
    int processes;             /* that share each step; 0: this one alone */
    int threads;               /* of the cpu; 0: the default of weft_open */
} weft__config;

/* weft__config_init makes an empty configuration, weft__config_free frees its contents. The memory is that of
 * the C library, because no context exists yet. */
void weft__config_init(weft__config *config);
void weft__config_free(weft__config *config);

/* Reads a YAML file; its values replace those in *config. Returns WEFT_ERR_IO, or WEFT_ERR_FORMAT with a
 * message "file:line:column: what". */
weft_status weft__config_read(weft__config *config, const char *path);
/* Tells whether a folder holds a run, that is a config.yaml. weft__run_find can fail; after such an error
 * weft__is_run answers true, so that reading the run says what is wrong. */
weft_status weft__run_find(const char *dir, bool *found);
bool weft__is_run(const char *dir);
/* Reads YAML from memory. `name` appears in messages and as the source of values. The fuzz target calls this
 * function. */
weft_status weft__config_parse(weft__config *config, const char *text, size_t bytes, const char *name);

/* Sets one key from "key=value". The value is written as in YAML, or as a list a,b,c. Returns
 * WEFT_ERR_ARGUMENT on errors. */
weft_status weft__config_set(weft__config *config, const char *assignment);
/* The same for another option or command, which messages name instead of --set. */
weft_status weft__config_assign(weft__config *config, const char *assignment, const char *where);
/* Sets one key from a flag or the environment. Returns WEFT_ERR_ARGUMENT on errors, with `where` in the
 * message. */
weft_status weft__config_put(weft__config *config, weft__config_key key, const char *text,
                             weft__origin_kind origin, const char *where);

/* Fills in the defaults of model.type and WEFT_DEVICE from the environment, and checks that the keys fit
 * together. */
weft_status weft__config_resolve(weft__config *config);

/* Frees the value of a key. A key of a number keeps its value. */
void weft__config_unset(weft__config *config, weft__config_key key);

/* Prepares a configuration for using a model. If no device is given, the first of `devices` becomes the
 * device. Clears `devices`. */
void weft__config_one_device(weft__config *config);

/* Makes `path` the only data of a trained model's configuration: its validation data. `labels` is the file of
 * the labels, or NULL. */
weft_status weft__config_new_data(weft__config *config, const char *path, const char *labels);

/* Tells whether a user gave this key. Defaults and derived values do not count. */
bool weft__config_given(const weft__config *config, weft__config_key key);

const char *weft__config_key_name(weft__config_key key);
/* Tells whether the model of the configuration has this trait. */
bool weft__config_is(const weft__config *config, weft__trait trait);
/* Tells whether a model of this type learns from tokens. */
bool weft__config_language(weft__model_type model);
/* weft__config_for tells whether a key applies to a model. weft__config_default returns the default of the
 * key for this model, or NULL if there is none. */
bool weft__config_for(weft__config_key key, weft__model_type model);
const char *weft__config_default(weft__config_key key, weft__model_type model);
/* Returns the word of a choice, such as "adamw", written to `buffer`. */
const char *weft__config_choice(weft__config_key key, int choice, char buffer[32]);
/* Returns a value as YAML, written to `buffer`; "" if unset. */
const char *weft__config_value(const weft__config *config, weft__config_key key, char *buffer, size_t bytes);
/* Returns the source of a value, such as "default", "gpt.yaml:7" or "--set", written to `buffer`. */
const char *weft__config_origin(const weft__config *config, weft__config_key key, char *buffer, size_t bytes);

/* ---- paths: config_paths.c ---- */

/* Makes the paths of a configuration absolute, so that a run can be resumed from any folder. */
weft_status weft__config_absolute(weft__config *config);
/* Remembers the absolute paths as given by the user; of a run that is not trusted, only those that are not
 * from its config.yaml. Returns false if they cannot be kept. */
bool weft__config_remember(const weft__config *config);
/* Tells whether the path of a key may be followed: not, if config.yaml of a run folder names it, it leads out
 * of the folder, and the user has never given it. weft__config_check_path then returns WEFT_ERR_ARGUMENT, and
 * weft__config_check_data does for all paths of data. */
bool weft__config_follows(const weft__config *config, weft__config_key key);
weft_status weft__config_check_path(const weft__config *config, weft__config_key key);
weft_status weft__config_check_data(const weft__config *config);

/* Tells whether a key was given a value that this configuration does not use: the key belongs to other
 * models, or to another optimizer, schedule or precision. Then `why` gets the reason, such as "momentum is
 * not used by adamw". */
bool weft__config_unused(const weft__config *config, weft__config_key key, char why[128]);

/* Returns the key with the smallest edit distance to an unknown key, or NULL if none is near. */
const char *weft__config_nearest(const char *unknown);

/* Returns the resolved configuration as YAML, with the source of each value as a comment. The caller frees it
 * with free(). NULL when memory is short. */
char *weft__config_text(const weft__config *config);
/* What `weft init NAME` writes: the defaults of a model, or other values in place of them. */
typedef struct weft__preset {
    const char *name; /* such as "gpt", "mlp", "gpt2" */
    weft__model_type model;
    const char *const (*values)[2]; /* pairs of key and value, ended by NULL; or NULL */
} weft__preset;
/* Returns the preset of that name, or NULL. */
const weft__preset *weft__config_preset(const char *name);
/* Gives an empty configuration the values of a preset, as defaults. */
weft_status weft__config_take_preset(weft__config *config, const weft__preset *preset);
/* Returns the commented file that `weft init NAME` writes. The caller frees it with free(). NULL when memory
 * is short. */
char *weft__config_template(const weft__preset *preset, const char *data_path);

/* Writes 16 hex digits: a hash over all values that the result of training depends on. Paths, the length of
 * training and the frequency of logs do not count. Returns WEFT_OK or WEFT_ERR_OOM. */
weft_status weft__config_hash(weft_context *ctx, const weft__config *config, char out[17]);
/* Finds the first key that a resumed run may not change and that differs between two resolved configurations.
 * `old` gets its former value. *key is WEFT__KEY_COUNT if there is none. */
weft_status weft__config_conflict(const weft__config *was, const weft__config *now, weft__config_key *key,
                                  char old[64]);

/* ---- shared by the files of the configuration ---- */

typedef enum weft__config_kind {
    WEFT__KIND_INT,
    WEFT__KIND_NUM,
    WEFT__KIND_BOOL,
    WEFT__KIND_CHOICE,
    WEFT__KIND_TEXT,
    WEFT__KIND_PATH,
    WEFT__KIND_INTS,
    WEFT__KIND_NUMS,
    WEFT__KIND_TEXTS
} weft__config_kind;

typedef struct weft__config_row {
    const char *key;
    weft__config_kind kind;
    double low, high;
    int64_t low_int, high_int;
    const char *choices;
    unsigned models;         /* one bit for each weft__model_type */
    const char *defaults[2]; /* for language models, for others; see weft__config_default */
    const char *doc;
    size_t offset; /* offset of the field in weft__config */
} weft__config_row;

extern const weft__config_row weft__config_rows[WEFT__KEY_COUNT];

/* Tells whether a value, written as YAML, is the default of the key for this model. */
bool weft__config_usual(weft__config_key key, weft__model_type model, const char *value);

/* Returns the key of that name, or WEFT__KEY_COUNT. */
weft__config_key weft__config_find(const char *name);

/* Takes a value of one or more strings; `list` tells that they were written as a list. On failure `problem`
 * says what is wrong with the value. `problem` is empty when memory was short. */
bool weft__config_take(weft__config *config, weft__config_key key, char *const *texts, size_t count,
                       bool list, char problem[256]);

/* ---- for the files of this folder ---- */

/* Reports an error of a key. The message begins with the place of its value, such as "file.yaml:7". */
weft_status weft__config_blame(const weft__config *config, weft__config_key key, const char *what);

/* Returns the field of a key. */
void *weft__config_field(weft__config *config, weft__config_key key);
/* Frees the texts of a key. A key of a number keeps its value. */
void weft__config_clear(weft__config *config, weft__config_key key);
/* Sets *out to the index of a word in "a|b|c". Returns false if the word is not in the list. */
bool weft__config_word(const char *words, const char *text, int *out);
/* Takes a value from one string. A list is "[a, b]" or "a,b". */
bool weft__config_take_written(weft__config *config, weft__config_key key, const char *text,
                               char problem[256]);

/* Sets what follows from `device` and `devices`, and checks them. */
weft_status weft__config_follow_devices(weft__config *config);
weft_status weft__config_check_devices(const weft__config *config);

#endif
