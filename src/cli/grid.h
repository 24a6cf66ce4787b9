/* A table of text for the terminal: columns get the width of their longest cell. Must not know: what the
 * cells mean. Read next: grid.c. */
#ifndef WEFT_SRC_CLI_GRID_H
#define WEFT_SRC_CLI_GRID_H

#include <stdio.h>

#include "base/base.h"

enum { WEFT__GRID_COLUMNS = 256 };

typedef struct weft__grid {
    size_t columns;
    char **cells; /* row after row */
    size_t count, capacity;
    bool right[WEFT__GRID_COLUMNS];  /* columns of numbers end at the same place */
    bool hidden[WEFT__GRID_COLUMNS]; /* columns that are not printed */
    weft_status status;              /* of the calls of weft__grid_put */
} weft__grid;

/* Adds the next cell. Its text is escaped for a terminal. After a failure the grid takes no more cells. */
void weft__grid_put(weft__grid *grid, const char *fmt, ...) WEFT_PRINTF(2, 3);

/* Returns the columns of the terminal that shows `out`. 0: no terminal, so any width is right. */
size_t weft__grid_room(FILE *out);

/* Returns the width of the longest line. */
size_t weft__grid_width(const weft__grid *grid);

/* Prints the table. If it is wider than `room` (0: no limit), the columns that do not fit follow in further
 * tables, each of which begins with the first column. */
void weft__grid_print(FILE *out, const weft__grid *grid, size_t room);

void weft__grid_free(weft__grid *grid);

#endif
