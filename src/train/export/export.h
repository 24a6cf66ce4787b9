/* Writes trained models in the formats of other software: C source, safetensors, GPT-2's published format.
 * Must not know: terminals. Read next: export_graph.c (what the C source computes), export_c.c. */
#ifndef WEFT_SRC_TRAIN_EXPORT_EXPORT_H
#define WEFT_SRC_TRAIN_EXPORT_EXPORT_H

#include "base/text.h"
#include "device/c99/c99.h"
#include "train/run/use.h"

enum { WEFT__EXPORT_PATH = 4096 };

/* What an export wrote, for a message. */
typedef struct weft__exported {
    char files[3][WEFT__EXPORT_PATH]; /* "" where there is none */
    int64_t weights, memory;          /* bytes; of C source only */
} weft__exported;

/* Writes FOLDER/NAME.c and FOLDER/NAME.h, and FOLDER/NAME.bin if there are many weights. The model must be
 * open on the device c99. All names in the source begin with `name`, which must be a C identifier. Files that
 * `weft export` wrote are replaced; others are refused. After a failure no new file remains. */
weft_status weft__export_c(weft__use *use, const char *folder, const char *name, weft__exported *exported);

/* Writes the weights, and in the file's metadata all that is needed to use them (docs/export.md). */
weft_status weft__export_safetensors(weft__use *use, const char *run, const char *path,
                                     weft__exported *exported);

/* Writes the weights of a gpt as GPT-2's are published, and config.json beside them. */
weft_status weft__export_gpt2(weft__use *use, const char *path, weft__exported *exported);

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
    weft_gpt_cache *cache;                    /* of a gpt */
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
weft_status weft__export_graph_make(weft__use *use, weft__export_graph *graph);
void weft__export_graph_free(weft__export_graph *graph);

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
