/* Trained models: opens the folder of a run of `weft train`, and applies its model. Scaling, the names of
 * classes and columns, and the tokenizer come with it.
 *
 *     weft_run *run;
 *     double flower[4] = {5.1, 3.5, 1.4, 0.2}, probability[3];
 *     weft_status status = weft_run_open(ctx, "runs/iris", &run);
 *     if (status == WEFT_OK) status = weft_run_predict(run, flower, 1, probability);
 *     weft_run_close(run);
 *
 * The model computes on the device of the context, whatever device trained it. A run belongs to its context:
 * use both from one thread at a time. */
#ifndef WEFT_RUN_H
#define WEFT_RUN_H

#include <stdint.h>

#include <weft/generate.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_run weft_run;

/* What a model gives. */
typedef enum weft_run_task {
    WEFT_RUN_CLASSES, /* a probability for each class */
    WEFT_RUN_NUMBERS, /* numbers in the units of the training data */
    WEFT_RUN_TEXT     /* text: use weft_run_generate */
} weft_run_task;

/* Opens a run folder. The weights are those of the best checkpoint if there is one, otherwise of the newest
 * undamaged one. Close the run with weft_run_close, before its context.
 *
 * WEFT_ERR_ARGUMENT: no run folder. WEFT_ERR_FORMAT: a file is damaged or was edited. WEFT_ERR_STATE: there
 * is no checkpoint yet. WEFT_ERR_IO, WEFT_ERR_OOM. On failure *out is NULL. */
WEFT_API WEFT_CHECKED weft_status weft_run_open(weft_context *ctx, const char *folder, weft_run **out);

/* The same with a checkpoint that you name: "best", "last", or the number of a step, such as "2000". NULL: as
 * weft_run_open. */
WEFT_API WEFT_CHECKED weft_status weft_run_open_checkpoint(weft_context *ctx, const char *folder,
                                                           const char *checkpoint, weft_run **out);

/* The same for a run folder that you trust. A run with adapters names the model that they were trained for.
 * The functions above follow this path only if the model was given to the command by this user before; it is
 * WEFT_ERR_ARGUMENT otherwise. This function follows it, and remembers it. */
WEFT_API WEFT_CHECKED weft_status weft_run_open_trusted(weft_context *ctx, const char *folder,
                                                        const char *checkpoint, weft_run **out);

/* NULL is allowed. */
WEFT_API void weft_run_close(weft_run *run);

/* ---- what was trained ---- */

/* The kind of answers. WEFT_RUN_CLASSES for NULL. */
WEFT_API weft_run_task weft_run_task_of(const weft_run *run);

/* The step of the checkpoint. */
WEFT_API uint64_t weft_run_step(const weft_run *run);

/* The number of elements of an input: channels x rows x columns of an image, or numbers of a row. A column of
 * words or dates becomes several numbers, such as one for each word. 0 for text. */
WEFT_API int64_t weft_run_inputs(const weft_run *run);

/* The number of columns of a csv file that the model reads, and their names. 0 and NULL for other data. The
 * names belong to the run. */
WEFT_API int64_t weft_run_columns(const weft_run *run);
WEFT_API const char *weft_run_column_name(const weft_run *run, int64_t index);

/* The number of elements of an answer: classes, or numbers. 0 for text. */
WEFT_API int64_t weft_run_outputs(const weft_run *run);

/* The name of class `index`. NULL if the classes are numbers, or if there is no such class. The name belongs
 * to the run. */
WEFT_API const char *weft_run_class_name(const weft_run *run, int64_t index);

/* The module, in evaluation mode, for programs that need its raw outputs or want to train on. It belongs to
 * the run. Its inputs and outputs are scaled: weft_run_predict scales, weft_forward does not. */
WEFT_API weft_module *weft_run_module(const weft_run *run);

/* The tokenizer of a language model. NULL for other models, and for tokens without a tokenizer. It belongs to
 * the run. */
WEFT_API const weft_tokenizer *weft_run_tokenizer(const weft_run *run);

/* ---- use ---- */

/* Predicts from numbers. `rows` is (n, inputs), in the units of the training data: Weft scales them as in
 * training. The columns are in the order of weft_run_column_name. `answers` becomes (n, outputs): the
 * probability of each class, or numbers in the units of the target.
 *
 * WEFT_ERR_ARGUMENT: the model learned from images, from text, or from columns that are not all numbers; the
 * message names the function to use. */
WEFT_API WEFT_CHECKED weft_status weft_run_predict(weft_run *run, const double *rows, int64_t n,
                                                   double *answers);

/* Predicts from the cells of a table, as texts: numbers, words, dates, or "" for a missing cell. `cells` has
 * `n` rows of weft_run_columns(run) texts, in the order of weft_run_column_name. Words that training did not
 * see are allowed.
 *
 * WEFT_ERR_FORMAT: a cell is not what its column holds; the message names row and column. WEFT_ERR_ARGUMENT:
 * the model did not learn from a csv file. */
WEFT_API WEFT_CHECKED weft_status weft_run_predict_cells(weft_run *run, const char *const *cells, int64_t n,
                                                         double *answers);

/* The same for a model of images. `pixels` is (n, channels, rows, columns), bytes of 0 to 255. The images
 * must have the size that the model was trained with. */
WEFT_API WEFT_CHECKED weft_status weft_run_predict_pixels(weft_run *run, const uint8_t *pixels, int64_t n,
                                                          double *answers);

/* Predictions for a file. */
typedef struct weft_predictions {
    int64_t count;     /* number of inputs */
    int64_t outputs;   /* number of elements of an answer */
    double *values;    /* (count, outputs), as weft_run_predict writes them */
    char **files;      /* [count] path of each image, or TAR/MEMBER; NULL if the inputs are not image files */
    weft_context *ctx; /* for weft_predictions_free */
} weft_predictions;

/* Predicts for each row of a file, for an image file, or for all images of a folder or of tar files. The file
 * has the form of the training data. Columns of a csv file are found by name; the target and other columns
 * are ignored. Images are scaled to the size of the model. Free *out with weft_predictions_free; on failure
 * it is empty.
 *
 * WEFT_ERR_IO, WEFT_ERR_FORMAT: the message names file and place. WEFT_ERR_SHAPE: inputs of another size.
 * WEFT_ERR_ARGUMENT: the model is a language model. */
WEFT_API WEFT_CHECKED weft_status weft_run_predict_file(weft_run *run, const char *path,
                                                        weft_predictions *out);
WEFT_API void weft_predictions_free(weft_predictions *predictions);

/* Continues a text, as weft_generate does, with the model and tokenizer of the run. options->vocabulary is
 * set by the run. WEFT_ERR_ARGUMENT: the model is not a language model. */
WEFT_API WEFT_CHECKED weft_status weft_run_generate(weft_run *run, const weft_generate_options *options,
                                                    weft_text_fn emit, void *user);

/* Continues several texts at once, as weft_generate_many does. `vocabulary` of each options[i] is set by the
 * run. */
WEFT_API WEFT_CHECKED weft_status weft_run_generate_many(weft_run *run, const weft_generate_options *options,
                                                         size_t count, int64_t rows, weft_generated_fn done,
                                                         void *user);

#ifdef __cplusplus
}
#endif
#endif
