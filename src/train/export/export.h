/* Writes trained models in the formats of other software: C source, safetensors, GPT-2's published format.
 * Must not know: terminals. Read next: export_graph.c (what the C source computes), export_c.c. */
#ifndef WEFT_SRC_TRAIN_EXPORT_EXPORT_H
#define WEFT_SRC_TRAIN_EXPORT_EXPORT_H

#include "base/text.h"
#include "device/c99/c99.h"
#include "optim/optimizer.h"
#include "train/run/output.h"
#include "train/run/opened_model.h"

enum { WEFT__EXPORT_PATH = 4096 };

/* What an export wrote, for a message. */
typedef struct weft__exported {
    char files[3][WEFT__EXPORT_PATH]; /* "" where there is none */
    int64_t weights, memory, state;   /* bytes; of C source only */
    int64_t positions, of; /* learned positions, if the run has fewer than the published model; else 0 */
} weft__exported;

typedef struct weft__export_options {
    const char *folder, *name;
    const weft__output *output; /* the rule of the files */
    int64_t batch;              /* samples of a training step; 0: the source only predicts */
} weft__export_options;

/* Writes FOLDER/NAME.c and FOLDER/NAME.h, and FOLDER/NAME.bin if there are many weights. The model must be
 * open on the device c99, with its optimizer if the source trains. All names in the source begin with `name`,
 * which must be a C identifier. After a failure no new file remains. */
weft_status weft__export_c(weft__opened_model *opened, const weft__export_options *options,
                           weft__exported *exported);

/* Return whether `weft export` wrote a file: C source, weights, config.json of a gpt2. */
bool weft__export_c_wrote(const char *path);
bool weft__export_safetensors_wrote(const char *path);
bool weft__export_gpt2_wrote(const char *path);

/* Writes the weights, and in the file's metadata all that is needed to use them (docs/export.md). */
weft_status weft__export_safetensors(weft__opened_model *opened, const char *run, const char *path,
                                     weft__exported *exported);

/* Writes the weights of a gpt as GPT-2's are published, and config.json, if `config` allows it, beside them.
 */
weft_status weft__export_gpt2(weft__opened_model *opened, const char *path, const weft__output *config,
                              weft__exported *exported);

/* Refuse runs that the format is not for. */
weft_status weft__export_needs_published(const weft__opened_model *opened, const char *format);
weft_status weft__export_needs_adapters(const weft__opened_model *opened, const char *format);

/* Writes the weights and the files that describe the model into a folder that transformers reads. */
weft_status weft__export_published(weft__opened_model *opened, const char *folder, weft__exported *exported);

/* Writes the adapters of a run with lora.rank into a folder that the Python package peft reads. */
weft_status weft__export_peft(weft__opened_model *opened, const char *folder, weft__exported *exported);

/* The same as a GGUF file that llama.cpp adds to a model. */
weft_status weft__export_gguf_lora(weft__opened_model *opened, const char *path, weft__exported *exported);

/* Writes such a run as a GGUF file, with weights of the type, such as "q8_0". */
weft_status weft__export_gguf(weft__opened_model *opened, const char *path, const char *type,
                              weft__exported *exported);

/* Writes the files of a published model, which are not loaded, as a GGUF file. */
weft_status weft__export_files(const char *from, const char *path, const char *type);

/* ---- export_graph.c: the forward pass from raw values ---- */

enum { WEFT__EXPORT_STATES = 512 };

/* A weight of a convolution in the order in which the program reads it. */
typedef struct weft__export_laid {
    weft_tensor *tensor;
    const char *name; /* of the parameter */
} weft__export_laid;

/* A program of one sample, or of one token of a text. */
typedef struct weft__export_graph {
    weft_scope *scope;
    weft_program *program;
    weft_decode_state *cache;                 /* of a gpt */
    weft_tensor *input, *output;              /* (1, inputs), or one token; (1, outputs) */
    weft_tensor *position;                    /* of a gpt: the number of tokens before; else NULL */
    weft_tensor *states[WEFT__EXPORT_STATES]; /* that the next token reads */
    size_t n_states;
    weft__export_laid laid[WEFT__EXPORT_STATES];
    size_t n_laid;
    int64_t inputs, outputs;
} weft__export_graph;

/* Compiles and runs the program. The caller frees *graph with weft__export_graph_free, also after a failure.
 *
 * - rows and images: raw values become the probability of each class, or numbers in the units of the data.
 * - texts: a token becomes the logits of the next one. */
weft_status weft__export_graph_make(weft__opened_model *opened, weft__export_graph *graph);
void weft__export_graph_free(weft__export_graph *graph);

/* Refuses runs with raw values that f32 cannot tell apart, such as seconds since 1970. */
weft_status weft__export_needs_f32(const weft__opened_model *opened, const char *format);
/* Returns the inputs of the model, from raw values (batch, features). */
weft_tensor *weft__export_normalized(const weft__dataset *dataset, weft_tensor *raw);
/* Returns (x - mean) / deviation, without an error from the rounding of the mean. */
weft_tensor *weft__export_normalize(weft_tensor *x, int64_t count, const double *mean,
                                    const double *deviation);

/* ---- export_step.c: a training step from raw values ---- */

typedef struct weft__export_step {
    weft_scope *scope;
    weft_program *program;
    weft_tensor *input;  /* (batch, features), or texts (batch, context + 1) */
    weft_tensor *target; /* classes (batch), or numbers (batch, outputs); NULL: the input is the target */
    weft_tensor *loss;
    int64_t batch;
    int64_t window;           /* of a text: its tokens; else 0 */
    int64_t kinds;            /* classes, or tokens; 0: the targets are numbers */
    weft_tensor *carried[2];  /* data.streams: the states of the run, which new ones stand in for */
    weft__step_input *inputs; /* numbers that change from step to step */
    size_t n_inputs;
} weft__export_step;

/* Compiles and runs the program, with the optimizer of the run. Parameters then lie in the blocks of the
 * optimizer. States that data.streams carries from batch to batch begin with 0. The caller frees *step with
 * weft__export_step_free, also after a failure. */
weft_status weft__export_step_make(weft__opened_model *opened, int64_t batch, weft__export_step *step);
void weft__export_step_free(weft__opened_model *opened, weft__export_step *step);

/* ---- export_check.c: reading back ---- */

/* Compares the published model at `path`, a folder or a GGUF file, with the one that was exported: `model`,
 * or the files `from`, which may be NULL if there is a model. `file` NULL: the weights are those of `path`;
 * else this file of GPT-2's format. `format`, a word of formats.def, says how far the logits of a few tokens
 * may be off. */
weft_status weft__export_check(weft_module *model, const char *from, const char *path, const char *file,
                               const char *format);

/* Compares the adapters in a file with those of the model. `base` has the weights to which they are added.
 * `config` is peft's adapter_config.json; NULL: the file is a GGUF file. */
weft_status weft__export_check_adapters(weft_module *model, const char *from, const char *base,
                                        const char *path, const char *config);

/* Checks that the brackets of C source are closed, and that it has all functions of its header. */
weft_status weft__export_check_source(const char *path, const char *header, const char *body,
                                      const char *name);

/* Returns `status`. If it is a failure, the file is removed, and the message says so. */
weft_status weft__export_keep(weft_context *ctx, weft_status status, const char *path);

/* ---- export_text.c: pieces of C source ---- */

/* Writes a string constant. Everything but plain characters is escaped, so that no name ends the string or
 * forms a trigraph. */
void weft__export_string(weft_text *out, const char *text, size_t bytes);
/* Writes a text for a comment: characters that could end the comment become '_'. */
void weft__export_comment(weft_text *out, const char *text);
/* Writes "{...}" with the numbers of an array, f32 or i32. */
void weft__export_numbers(weft_text *out, weft_dtype dtype, const void *values, int64_t count);
/* Writes the name in capitals. */
void weft__export_capitals(weft_text *out, const char *name);
/* Returns whether a name can begin all names of the source. */
bool weft__export_name_fits(const char *name);

#endif
