/* The interface between the two halves of the csv reader: csv_columns.c chooses the columns, csv.c reads the
 * rows. Must not know: where the bytes come from. Read next: csv.c. */
#ifndef WEFT_SRC_DATA_CSV_H
#define WEFT_SRC_DATA_CSV_H

#include "data/parse.h"

#define CSV_UNUSED (-1)
#define CSV_TARGET (-2)

typedef struct csv_columns {
    char **name;  /* of every column, in one block that this struct owns */
    size_t count; /* number of columns in the file */
    /* [count], owned: the index of column i among the features, or CSV_TARGET or CSV_UNUSED */
    ptrdiff_t *slot;
    size_t features; /* number of feature columns */
    size_t target;   /* index of the target column; `count` if there is none */
} csv_columns;

/* Fills c. Takes over `names`, also on failure. */
weft_status weft__csv_choose(weft_context *ctx, const char *file, char **names, size_t count,
                             const weft_csv_options *options, csv_columns *c);
/* Returns the names "1", "2", ... in one block, or NULL when memory is short. */
char **weft__csv_numbered(weft_context *ctx, size_t count);

#endif
