/* The components (libraries and drivers) that devices need. Must not know: how components are opened. Read
 * next: components.c. */
#ifndef WEFT_SRC_CLI_COMPONENTS_H
#define WEFT_SRC_CLI_COMPONENTS_H

#include <stdbool.h>

/* Prints one line per component of a device, or of all devices if NULL. The line says which version is
 * present, or what is lost without it and why it is missing. Components that need a missing driver are left
 * out. */
void weft__components_print(const char *device);
/* Prints the table of components as Markdown, as in docs/devices.md. */
void weft__components_table(void);

#endif
