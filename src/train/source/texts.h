/* Shared by the files that read texts and their classes: texts.c, texts_json.c and texts_classes.c.
 * Must not know: models. Read next: texts.c. */
#ifndef WEFT_SRC_TRAIN_SOURCE_TEXTS_H
#define WEFT_SRC_TRAIN_SOURCE_TEXTS_H

#include "train/source/csv.h"

/* A file of texts: all its cells, and which columns are used. */
typedef struct weft__texts_table {
    weft_context *ctx;
    const weft__config *config;
    const char *path;
    weft_table table; /* a cell may be NULL: the line has no such member, or no text, number or truth value */
    size_t column[2]; /* of the texts */
    size_t count;     /* of them */
    size_t target;    /* the column with the class */
} weft__texts_table;

/* Reads JSON lines: columns, cells and lines of a table. The columns are the members of the first line. */
weft_status weft__texts_read_json(weft_context *ctx, const char *path, weft_table *table);
/* The same for the bytes of a file. name: for messages. */
weft_status weft__texts_parse_json(weft_context *ctx, const char *name, const char *text, size_t bytes,
                                   weft_table *table);

/* Reads the classes as y, i32 (N). The first file decides which classes there are, unless `d` knows. It also
 * decides whether the head of the published model is kept. */
weft_status weft__texts_classes(const weft__texts_table *t, weft__dataset *d, weft_array *y);

/* Fails with a message about a cell: file, line, column, and what is wrong. */
weft_status weft__texts_fail(const weft__texts_table *t, size_t row, size_t column, const char *what);

#endif
