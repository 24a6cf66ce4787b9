/* What the devices for tests share: opening, dtypes, and counting the memory of buffers.
 * Must not know: what a device does with a program. Read next: interp/interp.c, null/null.c. */
#include "device/testing.h"

void *weft__testing_open(weft_context *ctx, const weft_device_ops *ops, size_t size) {
    weft_device *device = weft__zalloc(ctx, size);
    if (!device) {
        weft__fail_oom(ctx, size, "a device for tests");
        return NULL;
    }
    device->ops = ops;
    device->ctx = ctx;
    device->name = ops->name;
    return device;
}

void weft__testing_close(weft_device *device) {
    if (device) weft__free(device->ctx, device);
}

weft_status weft__testing_check_dtype(weft_device *device, weft_dtype dtype) {
    if ((unsigned)dtype < WEFT_DTYPE_COUNT) return WEFT_OK;
    return weft__fail(device->ctx, WEFT_ERR_DTYPE, "%s: unknown dtype %s", device->name,
                      weft_dtype_name(dtype));
}

weft_status weft__testing_synchronize(weft_device *device) {
    (void)device; /* all work is done when run returns */
    return WEFT_OK;
}

void *weft__testing_buffer_new(weft_device *device, size_t size, size_t bytes) {
    weft_buffer *buffer = weft__zalloc(device->ctx, size);
    if (!buffer) {
        weft__fail_oom(device->ctx, size, "a buffer of a device for tests");
        return NULL;
    }
    buffer->bytes = bytes;
    device->bytes_in_use += bytes;
    if (device->bytes_in_use > device->bytes_peak) device->bytes_peak = device->bytes_in_use;
    return buffer;
}

void weft__testing_buffer_free(weft_device *device, weft_buffer *buffer) {
    if (!buffer) return;
    device->bytes_in_use -= buffer->bytes;
    weft__free(device->ctx, buffer);
}

weft_status weft__testing_inside(weft_device *device, const weft_buffer *buffer, size_t offset, size_t bytes,
                                 const char *what) {
    if (offset <= buffer->bytes && bytes <= buffer->bytes - offset) return WEFT_OK;
    return weft__fail(device->ctx, WEFT_ERR_INTERNAL, "%s: %s of %zu bytes at %zu in a buffer of %zu",
                      device->name, what, bytes, offset, buffer->bytes);
}
