/* What weft embed and weft classify share: a published encoder, or that of a run, is applied to the lines of
 * a file. Must
 * not know: what becomes of its numbers. Read next: encode.c. */
#ifndef WEFT_SRC_CLI_ENCODE_H
#define WEFT_SRC_CLI_ENCODE_H

#include <weft/published.h>

#include "cli/cli.h"

enum { WEFT__ENCODE_BATCH = 16 }; /* most texts that are computed at once */

typedef struct weft__encode {
    const char *command, *folder; /* for messages */
    char described[4096];         /* the folder with config.json: `folder`, or one of the run */
    weft_context *ctx;
    weft_module *model;
    weft_tokenizer *tokenizer;
    int64_t context, labels; /* tokens of the longest text; classes, or 0 */
    int64_t shortened;       /* how many texts were longer */
    bool reader_left;        /* the reader of the output closed the pipe */
    bool pairs;              /* a line has two texts, with a tab between them */
    bool classifies;         /* the numbers are the logits, not the pooled states */
    weft_pooling pooling;
    int64_t count;   /* numbers of a text */
    float *numbers;  /* of a batch */
    int32_t *tokens; /* of a batch, each text with `context` of them, and as many types */
    int64_t lengths[WEFT__ENCODE_BATCH];
    char *texts[WEFT__ENCODE_BATCH];
    int64_t lines; /* that were read before this batch */
} weft__encode;

/* Loads the model of a folder, which may be a run. Close *e with weft__encode_close, also after a failure. */
weft_status weft__encode_open(weft__encode *e, const char *command, const char *folder, const char *device,
                              bool classifies);
void weft__encode_close(weft__encode *e);

/* Calls `show` with each line of a file (NULL or "-": standard input) and its numbers. */
typedef weft_status (*weft__encode_show)(weft__encode *e, void *user, const char *text, float *numbers);
weft_status weft__encode_lines(weft__encode *e, const char *path, weft__encode_show show, void *user);

/* Prints a line of output; its end may be missing in `text`. */
weft_status weft__encode_print(weft__encode *e, const char *text, size_t bytes);

/* Tells what the user should know at the end, and returns the exit code. */
int weft__encode_finish(weft__encode *e, weft_status status);

#endif
