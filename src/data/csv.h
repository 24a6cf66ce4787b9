/* The interface between the parts of the csv reader: csv_delimiter.c finds the delimiter, csv_header.c
 * decides whether numbers are names, csv_columns.c chooses the columns, csv.c reads the rows, csv_text.c
 * keeps cells as text. Must not know: where the bytes come from. Read next: csv.c. */
#ifndef WEFT_SRC_DATA_CSV_H
#define WEFT_SRC_DATA_CSV_H

#include "data/parse.h"

#define CSV_UNUSED (-1)
#define CSV_TARGET (-2)
#define CSV_WEIGHT (-3)

typedef struct csv_columns {
    char **name;  /* of every column, in one block that this struct owns */
    size_t count; /* number of columns in the file */
    /* [count], owned: the index of column i among the features, or CSV_TARGET, CSV_WEIGHT or CSV_UNUSED */
    ptrdiff_t *slot;
    size_t features; /* number of feature columns */
    size_t target;   /* index of the target column; `count` if there is none */
} csv_columns;

/* Fills c. Takes over `names`, also on failure. */
weft_status weft__csv_choose(weft_context *ctx, const char *file, char **names, size_t count,
                             const weft_csv_options *options, csv_columns *c);
/* Returns the names "1", "2", ... in one block, or NULL when memory is short. */
char **weft__csv_numbered(weft_context *ctx, size_t count);

/* Returns the delimiter of a table: comma, semicolon, tab or |. */
char weft__csv_delimiter(const char *text, size_t size);

/* Tells in *names whether the first row of a table names the columns although it has numbers. */
weft_status weft__csv_numbers_name(weft_context *ctx, const char *text, size_t size, char delimiter,
                                   char point, bool *names);

/* The cells of the features, as text. */
typedef struct csv_text {
    char *text; /* the cells, each followed by 0 */
    size_t size, capacity;
    size_t *begin; /* of each cell in `text`: row after row, features in the order of their slots */
    size_t begin_capacity;
    size_t *lines; /* line on which each row begins */
    size_t line_capacity;
} csv_text;
/* Keeps the cell of feature `slot` of a row. False if memory is short. */
bool weft__csv_text_add(weft_context *ctx, csv_text *t, size_t row, size_t features, size_t slot,
                        const char *text, size_t size);
/* Notes the line of a row. False if memory is short. */
bool weft__csv_text_line(weft_context *ctx, csv_text *t, size_t row, size_t line);
/* Moves the cells to `out`, whose rows and columns are set. */
weft_status weft__csv_text_finish(weft_context *ctx, csv_text *t, const char *file, weft_table *out);
void weft__csv_text_free(weft_context *ctx, csv_text *t);

#endif
