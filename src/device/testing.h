/* What the devices for tests share: they have no device memory, and no work is under way when a call of
 * theirs returns. */
#ifndef WEFT_DEVICE_TESTING_H
#define WEFT_DEVICE_TESTING_H

#include "device/device.h"

/* A zeroed device of `size` bytes, which begins with its weft_device; NULL is out of memory, reported. */
void *weft__testing_open(weft_context *ctx, const weft_device_ops *ops, size_t size);
void weft__testing_close(weft_device *device);

/* All dtypes but the complex ones. */
weft_status weft__testing_check_dtype(weft_device *device, weft_dtype dtype);
weft_status weft__testing_synchronize(weft_device *device);

/* A zeroed record of `size` bytes, which begins with its weft_buffer, counted as `bytes` of memory; NULL is
 * out of memory, reported. */
void *weft__testing_buffer_new(weft_device *device, size_t size, size_t bytes);
void weft__testing_buffer_free(weft_device *device, weft_buffer *buffer);
/* Do so many bytes at offset lie in the buffer? what: "upload", for the message. */
weft_status weft__testing_inside(weft_device *device, const weft_buffer *buffer, size_t offset, size_t bytes,
                                 const char *what);

#endif
