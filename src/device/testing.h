/* What the devices for tests share. These devices have no memory of their own, and their calls return when
 * the work is done.
 * Must not know: programs. Read next: testing.c. */
#ifndef WEFT_DEVICE_TESTING_H
#define WEFT_DEVICE_TESTING_H

#include "device/device.h"

/* Returns a zeroed device of `size` bytes, which begins with its weft_device. Returns NULL when memory is
 * short; the error is then reported. */
void *weft__testing_open(weft_context *ctx, const weft_device_ops *ops, size_t size);
void weft__testing_close(weft_device *device);

/* Accepts all dtypes except the complex ones. */
weft_status weft__testing_check_dtype(weft_device *device, weft_dtype dtype);
weft_status weft__testing_synchronize(weft_device *device);

/* Returns a zeroed record of `size` bytes, which begins with its weft_buffer. The device counts it as `bytes`
 * of memory. Returns NULL when memory is short; the error is then reported. */
void *weft__testing_buffer_new(weft_device *device, size_t size, size_t bytes);
void weft__testing_buffer_free(weft_device *device, weft_buffer *buffer);
/* Returns an error unless `bytes` bytes at `offset` are inside the buffer. `what` names the operation for the
 * message, such as "upload". */
weft_status weft__testing_inside(weft_device *device, const weft_buffer *buffer, size_t offset, size_t bytes,
                                 const char *what);

#endif
