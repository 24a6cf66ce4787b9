/* The interface between demo.c and demo_device.c. Must not know: how models are trained. Read next:
 * demo_device.c. */
#ifndef WEFT_SRC_CLI_DEMO_H
#define WEFT_SRC_CLI_DEMO_H

#include <stdbool.h>

/* Tests a device against the CPU and prints the result. NULL: the default device. Returns the exit code,
 * which is 0 only if everything is right. */
int weft__demo_device(const char *device, bool quiet);

#endif
