/* The components (libraries and drivers) that devices need. Must not know: how components are opened. Read
 * next: components.c. */
#ifndef WEFT_SRC_CLI_COMPONENTS_H
#define WEFT_SRC_CLI_COMPONENTS_H

#include "device/module.h"

/* Prints one line per component of a kind of device, or of all kinds if NULL. The line says which version is
 * present, or what is lost without it and why it is missing. Components that need a missing driver are left
 * out. */
void weft__components_print(const weft_device_module *kind);
/* Prints the tables of devices and of components as Markdown, as in docs/devices.md. */
void weft__components_table(void);

#endif
