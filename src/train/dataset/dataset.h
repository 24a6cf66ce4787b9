/* The data that a configuration names. They are read, split into training, validation and test data, and
 * normalized. Also what a model must know about them: sizes, tokenizer, class names. Must not know: models,
 * loops. Read next: dataset.c. */
#ifndef WEFT_SRC_TRAIN_DATASET_DATASET_H
#define WEFT_SRC_TRAIN_DATASET_DATASET_H

#include <weft/chats.h>
#include <weft/data.h>
#include <weft/loader.h>
#include <weft/text.h>

#include "data/image_pixels.h"
#include "data/image_skipped.h"
#include "train/dataset/columns.h"
#include "train/source/source.h"

/* Text and tokens of language models. */
typedef struct weft__token_data {
    weft_corpus *corpus;                   /* for text and bytes */
    weft_tokenizer *tokenizer;             /* given at the start (resume), or NULL: the corpus has it then */
    weft_context *tokenizer_ctx;           /* of `tokenizer`, for texts with classes */
    int32_t *ids[WEFT__SPLIT_COUNT];       /* owned ids, for data.source tokens in npy files */
    weft_tokens *files[WEFT__SPLIT_COUNT]; /* owned and mapped, for other token files */
    /* the file that holds the tokens of the split, from mapped_first on */
    const weft_tokens *mapped[WEFT__SPLIT_COUNT];
    int64_t mapped_first[WEFT__SPLIT_COUNT];
    size_t id_count[WEFT__SPLIT_COUNT];
    int64_t vocabulary; /* number of tokens; the model may have more rows */
} weft__token_data;

/* Conversations. */
typedef struct weft__chat_data {
    bool rows;                               /* x and y have the rows of weft_chats_pack, */
    bool pairs;                              /* or of weft_preferences_pack */
    weft_array reference[WEFT__SPLIT_COUNT]; /* pairs: f32 (N, 2) of weft_preferences_reference, at first 0 */
    int64_t count[WEFT__SPLIT_COUNT];
    weft_chats_packed packed[WEFT__SPLIT_COUNT];
} weft__chat_data;

/* Texts and their classes. */
typedef struct weft__text_data {
    bool rows;      /* x has rows of weft_tokenizer_encode_row, i32 (N, 2, T) */
    char **columns; /* [count] in one block: of the text, or of the two texts of a pair */
    size_t count;
    int64_t shortened[WEFT__SPLIT_COUNT]; /* texts that had more tokens */
    int64_t tokens[WEFT__SPLIT_COUNT];    /* of all rows */
    bool whole;                           /* batches are as long as the longest row of all */
    bool new_head;                        /* the published head is not kept */
    int64_t head_classes;                 /* of the published head; 0: none, -1: not known */
} weft__text_data;

/* Images whose pixels stay in files. Rows of bytes: a `const char *` into `names` for each sample, and a
 * weft__image_note. */
typedef struct weft__image_data {
    weft_array paths[WEFT__SPLIT_COUNT], notes[WEFT__SPLIT_COUNT];
    char **names[WEFT__SPLIT_COUNT]; /* one block each */
    /* images in tar files: a weft_image_member for each sample, instead of its path */
    weft_array members[WEFT__SPLIT_COUNT];
    weft_image_shards *shards[WEFT__SPLIT_COUNT]; /* of validation: may be those of training */
    int64_t max_pixels;                           /* that an image file may have: data.image_pixels */
    int64_t tars;          /* tar files of the training data; 0: they are no tar files */
    double memory_needed;  /* bytes that the pixels would take in memory */
    uint64_t memory_free;  /* bytes, if they decided about in_files; else 0 */
    weft__skipped skipped; /* in the folders that were read */
} weft__image_data;

/* How inputs and targets were normalized. NULL: they were not. */
typedef struct weft__scale_data {
    double factor;                          /* for u8 inputs, for the loader */
    float *pixel_mean, *pixel_deviation;    /* [image[0]] for u8 images, after `factor` */
    double *mean, *deviation;               /* [features] of the inputs before */
    double *target_mean, *target_deviation; /* [outputs] of the targets of regression */
} weft__scale_data;

/* The columns of csv files. */
typedef struct weft__table_data {
    weft__columns kinds; /* of the training data */
    char **inputs;       /* [features] names of the inputs; NULL: the file has no names */
    char *target;        /* its name, or NULL */
    char **unused;       /* the columns that are not read; NULL: none */
    size_t unused_count;
    bool unnamed;      /* no line of names; the first line is a row */
    bool numbers_name; /* the first line is taken for names although it has numbers */
} weft__table_data;

typedef struct weft__dataset {
    weft__task task;
    const weft__source_kind *source;
    weft_array x[WEFT__SPLIT_COUNT], y[WEFT__SPLIT_COUNT];
    weft_array weights[WEFT__SPLIT_COUNT]; /* f32 (N); empty: all samples count the same */
    weft_array lengths[WEFT__SPLIT_COUNT]; /* of texts: i32 (N), tokens of each row */
    /* the text stays in its files, or the pixels of images: x has no data then, and an autoencoder no y */
    bool in_files;
    int64_t features;   /* elements of an input sample */
    int64_t outputs;    /* number of classes, or of numbers to predict */
    char **classes;     /* [outputs] names, or NULL */
    int64_t image[3];   /* channels, rows, columns of a sample; 0: not an image */
    int64_t sample[3];  /* the same, whatever the model reads; 0: not an image */
    uint64_t hash;      /* hash of all the data */
    weft_hash *hashing; /* while the data are read: gets the pixels that stay in files */
    weft__token_data tokens;
    weft__chat_data chats;
    weft__text_data texts;
    weft__image_data images;
    weft__scale_data scaling;
    weft__table_data table;
} weft__dataset;

/* Inputs of a trained model. */
typedef struct weft__inputs {
    weft_array x;              /* (N, features); without data if the images stay in files; texts: (N, 2, T) */
    weft_array lengths;        /* of texts: as in weft__dataset; else empty */
    char **files;              /* the paths of the images in one block; NULL: the inputs are not images */
    int64_t sample[3];         /* channels, rows, columns of images */
    weft_image_shards *shards; /* x without data: the tar files that hold the images; or NULL */
    weft_image_member *members; /* [N] in them */
} weft__inputs;

/* Receives lines about the data that a user should see at once, such as the files that cannot be read. The
 * command sets it. NULL, as in other programs: nobody is told. */
extern void (*weft__dataset_tell)(const char *line);

/* The number of processes that share the memory, of which this is one. `weft cv` and `weft sweep` set it. */
extern int weft__dataset_sharers;

/* Reads the data that the configuration names. `run` is a run folder whose tokenizer and class names are used
 * (resume, eval), or NULL. The caller frees *dataset with weft__dataset_free, also after a failure. */
weft_status weft__dataset_read(weft_context *ctx, const weft__config *config, const char *run,
                               weft__dataset *dataset);
void weft__dataset_free(weft_context *ctx, weft__dataset *dataset);

/* Reads from the run folder what generate and predict need, without the data. If `run` is a published model,
 * only the tokenizer is read. */
weft_status weft__dataset_describe(weft_context *ctx, const weft__config *config, const char *run,
                                   weft__dataset *dataset);
/* Writes data.json and, if there is a tokenizer, tokenizer.json into a run folder. weft__dataset_describe
 * reads them. */
weft_status weft__dataset_save(const weft__dataset *dataset, const char *run);

/* Verifies both files. WEFT_ERR_FORMAT names the file that is damaged or was edited. */
weft_status weft__dataset_check(weft_context *ctx, const char *run);

/* Writes the hash of the data as 16 hex digits. */
void weft__dataset_hash(const weft__dataset *dataset, char out[17]);

/* Returns the tokenizer, or NULL (data.source tokens without data.tokenizer_path). */
const weft_tokenizer *weft__dataset_tokenizer(const weft__dataset *dataset);

/* A conversation of the data up to its first answer, as text that weft__free frees, and the token that ends
 * the answer. *text is NULL if the data are no conversations. */
weft_status weft__dataset_question(weft_context *ctx, const weft__dataset *dataset, char **text,
                                   int32_t *end);

/* Returns the number of samples of a split: rows, or tokens of a text. */
int64_t weft__dataset_samples(const weft__dataset *dataset, weft__split split);

/* Returns the number of tokens of a training sample of a language model. */
int64_t weft__dataset_row_tokens(const weft__dataset *dataset, const weft__config *config);

/* Returns the sum of the weights of the training samples, which is their number if they have no weights. */
double weft__dataset_weight(const weft__dataset *dataset);

/* Returns the training samples, or tokens of a text, that each epoch leaves out because they do not fill a
 * batch. */
int64_t weft__dataset_left_out(const weft__dataset *dataset, const weft__config *config);

/* Converts predictions, which are normalized as targets are, to the units of the data, in place. `values` is
 * (rows, outputs). */
void weft__dataset_unscale(const weft__dataset *dataset, double *values, int64_t rows);

/* Tells whether the split has data. */
bool weft__dataset_has(const weft__dataset *dataset, weft__split split);

/* Makes a loader over a split. WEFT__TRAIN gets the batches of training in random order, the other splits are
 * read once in order. The loader has the samples of the first `most` batches; 0: all. */
weft_status weft__dataset_loader(weft_context *ctx, const weft__dataset *dataset, const weft__config *config,
                                 weft__split split, int64_t most, weft_loader **out);

/* Where images of shape `sample` are that stay in their files. All fields are NULL if they are in memory. */
typedef struct weft__image_places {
    const char *const *files;
    const weft_image_member *members;
    const weft_image_shards *shards; /* of `members` */
    const int64_t *sample;
} weft__image_places;

/* Returns what a loader must do with the images of the data. All fields are 0 if the model reads no images
 * and they are in memory. */
weft_image_options weft__dataset_images(const weft__dataset *dataset, const weft__image_places *places);

/* Gives the pixels of a sample of images, (channels, rows, columns) of u8. *room is NULL at first and may be
 * used again; the caller frees it with weft__free. The pixels are valid until it is used again. */
weft_status weft__dataset_pixels(const weft__dataset *dataset, weft__split split, int64_t sample,
                                 uint8_t **room, const uint8_t **pixels);

/* Chooses regression if no task was given and the numbers of a table's target look like no classes. *why
 * tells the reason for this, or for classes; NULL if there was no choice, or if the target has two numbers.
 * Problems of the file are left to weft__dataset_read. */
weft_status weft__dataset_guess_task(weft_context *ctx, weft__config *config, const char **why);

/* Reads inputs from a file, or from a folder of images, and normalizes them as in training. The caller frees
 * them with weft__inputs_free; after a failure they are empty. */
weft_status weft__dataset_inputs(weft_context *ctx, const weft__dataset *dataset, const weft__config *config,
                                 const char *path, weft__inputs *inputs);
void weft__inputs_free(weft_context *ctx, weft__inputs *inputs);

/* Copies `n` rows of numbers in the units of the data, and normalizes the copy as in training. The caller
 * frees *x. */
weft_status weft__dataset_rows(weft_context *ctx, const weft__dataset *dataset, const double *rows, int64_t n,
                               weft_array *x);

/* Reads `n` rows of cells, as a csv file has them: the columns that the model reads, in the order of the
 * training file, or texts. Normalizes them as in training. The caller frees *inputs. */
weft_status weft__dataset_cells(weft_context *ctx, const weft__dataset *dataset, const weft__config *config,
                                const char *const *cells, int64_t n, weft__inputs *inputs);

/* ---- shared by the files of the data set ---- */

enum { WEFT__CLASSES_MOST = 1000000 };

weft_status weft__dataset_read_tables(weft_context *ctx, const weft__config *config, weft__dataset *dataset);
/* Chooses the validation samples of tables and images. *order becomes a list of all `rows` training samples:
 * first the *kept ones that stay, then those for validation. It is NULL if all stay. The caller frees it.
 * `labels` are the classes of the samples; NULL: there are none. */
weft_status weft__dataset_order(weft_context *ctx, const weft__config *config, int64_t rows,
                                const int32_t *labels, int64_t **order, int64_t *kept);
/* Makes these names the class names of the data. Names that are not UTF-8 are refused. */
weft_status weft__dataset_take_classes(weft_context *ctx, const char *path, char *const *names, size_t count,
                                       weft__dataset *dataset);
/* Makes classes of targets that are whole numbers, but not 0, 1, 2, ...: those that the training data have,
 * with the numbers as their names. Targets become places among them. */
weft_status weft__dataset_name_numbers(weft_context *ctx, const char *path, weft__split split,
                                       weft__dataset *dataset, weft_array *y);
/* Loads the tokenizer of the published encoder, unless it is there. */
weft_status weft__dataset_text_tokenizer(weft_context *ctx, const weft__config *config,
                                         weft__dataset *dataset);
/* Reads one column of a csv file as text: table->cells. The caller frees the table. */
weft_status weft__dataset_column(weft_context *ctx, const weft__config *config, const char *path,
                                 const char *name, weft_table *table);
/* Tells for each of `rows` samples whether it becomes one of the training samples. *training is freed by
 * weft__free; NULL: all samples do. */
weft_status weft__dataset_training_rows(weft_context *ctx, const weft__config *config, int64_t rows,
                                        const int32_t *labels, bool **training);
size_t weft__array_length(const weft_array *array);
/* Normalizes inputs that are numbers, as in training. Frees them after a failure. */
weft_status weft__dataset_finish_rows(weft_context *ctx, const weft__dataset *dataset, weft_array *x);
/* Returns the tokens of a split, and their number. NULL: they are mapped, or there are none. */
const int32_t *weft__dataset_ids(const weft__dataset *dataset, weft__split split, size_t *count);
/* Returns how many of `all` elements the first `most` batches need. If `most` is 0, all. */
int64_t weft__dataset_limit(int64_t most, int64_t batch, int64_t all);
/* Returns the batches that an epoch of streams has tokens for. */
int64_t weft__dataset_streams(const weft__config *config, int64_t count, int64_t batch);
/* Returns the batches of an epoch of `all` batches that make whole steps; all of them if there is no whole
 * step. */
int64_t weft__dataset_whole_steps(const weft__config *config, int64_t all);
/* Adds an array of strings to an object. False: some string is not UTF-8, or memory is short. */
bool weft__dataset_put_texts(json_t *object, const char *key, char *const *values, int64_t count);

/* ---- dataset_scale.c ---- */

/* Normalizes the samples of all splits, and the targets of a regression, which become f32. Measures `count`
 * samples of training, unless their statistics are known. `list` has the numbers of these samples; NULL: the
 * first ones. */
weft_status weft__dataset_scale(weft_context *ctx, const weft__config *config, const int64_t *list,
                                int64_t count, weft__dataset *dataset);
/* Makes f32 of an array (N, columns) of any numbers, whose columns are normalized. NULL mean: they are not.
 */
weft_status weft__dataset_scale_rows(weft_context *ctx, const char *path, int64_t columns, const double *mean,
                                     const double *deviation, weft_array *array);
/* For the pixels of an autoencoder: normalizes to 0..1, all with the same factor. */
weft_status weft__dataset_scale_pixels(weft_context *ctx, weft__dataset *dataset);

#endif
