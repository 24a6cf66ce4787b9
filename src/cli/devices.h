/* Trying devices out, for `weft devices` and `weft doctor`. Read next: devices.c. */
#ifndef WEFT_SRC_CLI_DEVICES_H
#define WEFT_SRC_CLI_DEVICES_H

#include <weft/tensor.h>

/* Opens it and adds three elements; text says how that went. */
bool weft__device_works(const weft_device_description *device, char *text, size_t size);
/* A line about it, absent or tried out; false when it is there and does not work. */
bool weft__device_print(const weft_device_description *device);

#endif
