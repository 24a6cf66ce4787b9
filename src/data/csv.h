/* The two halves of the csv reader: choosing columns (csv_columns.c) and reading rows (csv.c). */
#ifndef WEFT_SRC_DATA_CSV_H
#define WEFT_SRC_DATA_CSV_H

#include "data/parse.h"

#define CSV_UNUSED (-1)
#define CSV_TARGET (-2)

typedef struct csv_columns {
    char **name;     /* of every column; one block, owned */
    size_t count;    /* of columns in the file */
    ptrdiff_t *slot; /* of column i: its place among the features, CSV_TARGET or CSV_UNUSED; owned */
    size_t features; /* columns that are features */
    size_t target;   /* the target column; `count` without one */
} csv_columns;

/* Fills c from the names, which it takes over (on failure too). */
weft_status weft__csv_choose(weft_context *ctx, const char *file, char **names, size_t count,
                             const weft_csv_options *options, csv_columns *c);
/* The names "1", "2", ... in one block; NULL when memory is out. */
char **weft__csv_numbered(weft_context *ctx, size_t count);

#endif
