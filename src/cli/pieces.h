/* The libraries and drivers that devices need. Read next: pieces.c. */
#ifndef WEFT_SRC_CLI_PIECES_H
#define WEFT_SRC_CLI_PIECES_H

#include <stdbool.h>

/* Prints a line for each, of one kind of device or (NULL) of all: what it is, or what is missing, how to get
 * it and what it costs. What needs a driver that is not there is left out. */
void weft__pieces_print(const char *device);
/* The table of them as Markdown: what docs/devices.md has. */
void weft__pieces_table(void);

#endif
