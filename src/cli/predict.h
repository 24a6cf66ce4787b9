/* The table that weft predict prints. Must not know: how answers are computed. Read next: predict_table.c. */
#ifndef WEFT_SRC_CLI_PREDICT_H
#define WEFT_SRC_CLI_PREDICT_H

#include <stdio.h>

#include "train/dataset/dataset.h"

typedef enum weft__predict_output {
    WEFT__PREDICT_TABS,   /* columns divided by tabs */
    WEFT__PREDICT_COMMAS, /* csv */
    WEFT__PREDICT_JSON    /* a JSON object per line */
} weft__predict_output;

typedef struct weft__predict_options {
    weft__predict_output form;
    bool probabilities; /* a column for each class */
    bool no_header;
    const char *id; /* name of a csv column that is copied to each line; NULL: none */
} weft__predict_options;

typedef struct weft__predict_table {
    const weft__dataset *dataset;
    weft__predict_options options;
    bool with_files; /* each line begins with the name of its file */
    FILE *out;
    bool *reader_left; /* becomes true if the reader of a pipe has left, which needs no error message */
} weft__predict_table;

/* Returns the form that the end of a file name asks for: .csv, .json or .jsonl, otherwise tabs. NULL: tabs.
 */
weft__predict_output weft__predict_form(const char *path);

/* Writes the header. */
weft_status weft__predict_table_begin(const weft__predict_table *table);
/* Writes a line. id: the cell of
 * options.id. answers: [outputs], probabilities of classes or numbers. */
weft_status weft__predict_table_row(const weft__predict_table *table, const char *file, const char *id,
                                    const double *answers);

#endif
