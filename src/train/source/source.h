/* What Weft must know of a data source. Each row of sources.def has one weft__source_kind, in a file of this
 * folder; all other code asks it. Must not know: models, loops. Read next: sources.def, then arrays.c. */
#ifndef WEFT_SRC_TRAIN_SOURCE_SOURCE_H
#define WEFT_SRC_TRAIN_SOURCE_SOURCE_H

#include <weft/data.h>
#include <weft/loader.h>

#include "base/json.h"
#include "text/json_lines.h"
#include "train/config/config.h"

struct weft__dataset;
struct weft__inputs;
struct weft__lines;

typedef enum weft__split { WEFT__TRAIN, WEFT__VALIDATION, WEFT__TEST, WEFT__SPLIT_COUNT } weft__split;

/* What the data of a source are. It decides which models learn from them, and which keys name the targets. */
typedef enum weft__form {
    WEFT__FORM_CORPUS, /* text or tokens, for language models */
    WEFT__FORM_TEXTS,  /* rows with texts and their classes, for encoders */
    WEFT__FORM_TABLE,  /* the file of the inputs holds the targets, too */
    WEFT__FORM_ARRAYS, /* numbers without names */
    WEFT__FORM_FOLDER  /* a folder of files; its sub-folders are the classes */
} weft__form;

/* Where the tokens of a corpus come from. */
typedef enum weft__tokens_of {
    WEFT__TOKENS_OF_TEXT,  /* a tokenizer makes them: that of the data, of the published model, or a given one
                            */
    WEFT__TOKENS_OF_BYTES, /* each byte is one */
    WEFT__TOKENS_OF_FILES  /* the files hold them; a tokenizer may be given to write text */
} weft__tokens_of;

/* What is known of a path while its format is guessed. */
typedef struct weft__path_facts {
    const char *path;
    size_t size;    /* bytes of the path that count: without ".gz", unless the model learns tokens */
    bool folder;    /* false for language models */
    bool published; /* the model is a published one */
    bool parquet;   /* the first file has rows of Parquet; only for language models */
    weft__json_lines_use use; /* of the objects of the path; only for language models */
} weft__path_facts;

/* What fine-tuning a published language model proposes. Larger steps forget what the model knows; adapters
 * change less of it. */
typedef struct weft__tuning {
    int64_t context; /* tokens of a sample: of packed conversations, of both answers of a pair */
    int64_t batch;
    int64_t epochs; /* 0: the default number of steps */
    double lr, lr_of_adapters;
} weft__tuning;

/* A file, or folder, that is read. */
typedef struct weft__source_file {
    weft_context *ctx;
    const weft__config *config;
    const char *path;
    weft__split split;
    struct weft__dataset *dataset; /* knows what the files before it said */
    weft_array *x, *y;             /* get (N, ...) inputs and their targets; y NULL: no targets are wanted */
    struct weft__inputs *inputs;   /* of a trained model; NULL: the data of a run */
} weft__source_file;

/* The words of data.in_files. */
enum { WEFT__IN_FILES_AUTO, WEFT__IN_FILES_TRUE };

enum { WEFT__PLACE_BYTES = 4352 };

/* A function that is NULL has nothing to do, or what all sources share is enough. */
typedef struct weft__source_kind {
    weft__form form;
    const char *unit, *plural;  /* of a sample, for messages: "image", "images" */
    weft__config_key keys[4];   /* keys that only some sources use; the list ends with the first 0 */
    weft__tokens_of tokens_of;  /* corpus */
    const weft__tuning *tuning; /* corpus; NULL: that of texts */
    bool answers;               /* the model learns to answer, for `weft chat` */
    bool pairs;                 /* a sample is a pair of answers, of which one is preferred */
    bool images;                /* a sample is an image */
    bool files;                 /* a sample is a file: predictions name it */
    bool named_numbers;         /* classes may be any whole numbers, which become their names */

    bool (*guess)(const weft__path_facts *path);
    /* Refuses values of other keys that do not fit. */
    weft_status (*check)(const weft__config *config);

    /* Reads all data of a run at once: tokens. Sources of samples have `file` instead. */
    weft_status (*read)(weft_context *ctx, const weft__config *config, struct weft__dataset *dataset);
    /* Called with the paths before the first of them is read. A path may be NULL. */
    weft_status (*begin)(weft_context *ctx, const weft__config *config, const char *const *paths,
                         size_t count, struct weft__dataset *dataset);
    weft_status (*file)(const weft__source_file *file);
    /* Writes where the target of a sample is, for messages. NULL: its number. */
    void (*place)(const weft__source_file *file, size_t sample, char out[WEFT__PLACE_BYTES]);
    /* Chooses the task if none was given, see weft__dataset_guess_task. */
    weft_status (*guess_task)(weft_context *ctx, weft__config *config, const char **why);
    /* Makes inputs of n rows of cells, see weft__dataset_cells. Only sources with columns. */
    weft_status (*cells)(weft_context *ctx, const struct weft__dataset *dataset, const weft__config *config,
                         const char *const *cells, int64_t n, struct weft__inputs *inputs);
    /* Makes a loader. `options` are complete, but for what the samples tell. */
    weft_status (*loader)(weft_context *ctx, const struct weft__dataset *dataset, const weft__config *config,
                          weft__split split, int64_t most, const weft_loader_options *options,
                          weft_loader **out);
    /* Adds to data.json what a trained model must know besides its sizes and classes. False: no memory. */
    bool (*save)(const struct weft__dataset *dataset, json_t *object);
    /* Reads this again. WEFT_ERR_FORMAT and WEFT_ERR_OOM come without a message. */
    weft_status (*take)(weft_context *ctx, const json_t *object, struct weft__dataset *dataset);
    /* Writes the first lines of the summary. NULL: the number of samples and their sizes. */
    void (*lines)(const struct weft__dataset *dataset, const weft__config *config, struct weft__lines *lines);
} weft__source_kind;

#define SOURCE(id, name) extern const weft__source_kind weft__data_##name;
#include "train/source/sources.def"

/* Returns the source of the configuration's data. */
const weft__source_kind *weft__source_of(const weft__config *config);
/* Returns the word of the source that a path implies by its name, such as "csv" for "a.csv.gz", or by the
 * keys of its objects: texts, chats or preferences. `published`: the model is a published one, which learns
 * texts in JSON lines as chats, each with its end. NULL: none. */
const char *weft__source_guess(weft__model_type model, bool published, const char *path);
/* Tells whether other sources use this key, but not that of the configuration. */
bool weft__source_ignores(const weft__config *config, weft__config_key key);
/* Tells whether the run folder has a tokenizer: the data are text, or the run was given one for its tokens.
 */
bool weft__source_has_tokenizer(const weft__config *config);

/* For `guess`: whether the path is no folder and ends with these characters. */
bool weft__path_ends(const weft__path_facts *path, const char *suffix);

#endif
