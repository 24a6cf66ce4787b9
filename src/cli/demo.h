/* What demo.c and demo_device.c share. */
#ifndef WEFT_SRC_CLI_DEMO_H
#define WEFT_SRC_CLI_DEMO_H

#include <stdbool.h>

/* Tries a device out against the CPU and says what came of it; NULL: the default. Returns the exit code, 0
 * only where all is right. */
int weft__demo_device(const char *device, bool quiet);

#endif
