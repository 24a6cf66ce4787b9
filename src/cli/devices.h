/* Tests devices, for `weft devices` and `weft doctor`. Must not know: how devices work. Read next:
 * devices.c. */
#ifndef WEFT_SRC_CLI_DEVICES_H
#define WEFT_SRC_CLI_DEVICES_H

#include <weft/tensor.h>

/* Opens the device and adds three elements. Returns whether the sum is right. `text` describes the result. */
bool weft__device_works(const weft_device_description *device, char *text, size_t size);
/* Prints a line about the device: why it is absent, or the result of its test. Returns false if it is present
 * but does not work. */
bool weft__device_print(const weft_device_description *device);

#endif
