/* Where libraries look for devices, they may print, as Mesa's drivers do. The command does not show that.
 * Must not know: devices. Read next: cli/quiet.c. */
#ifndef WEFT_DEVICE_QUIET_H
#define WEFT_DEVICE_QUIET_H

#include <stdbool.h>

/* Called when a search for devices begins, and when it ends. NULL: nothing. Only the command sets it: what a
 * process shows is for its program to decide. */
extern void (*weft__device_search)(bool begins);

#endif
