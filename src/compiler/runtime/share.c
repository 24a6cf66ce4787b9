/* Sums over contexts: one variable of each context becomes the sum of all, added in their order. Must not
 * know: what is summed. Read next: optim/step.c, which shares gradients. */
#include <string.h>

#include "compiler/program.h"
#include "device/device.h"

/* Lets the devices compute the sum, if all are of one kind and this kind can. *done tells whether they
 * did. */
static weft_status by_devices(weft_tensor *const *list, size_t n, bool *done) {
    weft_context *ctx = list[0]->ctx;
    const weft_device_ops *ops = ctx->device->ops;
    *done = false;
    bool same = n > 1;
    for (size_t i = 1; same && i < n; i++) same = list[i]->ctx->device->ops == ops;
    if (!same) return WEFT_OK;
    weft_device **devices = weft__array(ctx, n, sizeof *devices);
    weft_buffer **buffers = weft__array(ctx, n, sizeof *buffers);
    weft_status status = devices && buffers ? WEFT_OK : weft__fail_oom(ctx, n * sizeof *buffers, "a sum");
    for (size_t i = 0; i < n && status == WEFT_OK; i++) {
        devices[i] = list[i]->ctx->device;
        buffers[i] = list[i]->storage->buffer;
        same = same && buffers[i];
    }
    if (status == WEFT_OK && same)
        status =
            weft__device_sum(devices, buffers, n, weft_dtype_of(list[0]), (size_t)weft_numel(list[0]), done);
    weft__free(ctx, devices);
    weft__free(ctx, buffers);
    return status;
}

static void add_up(void *sum, const void *more, weft_dtype dtype, size_t count) {
    if (dtype == WEFT_F32)
        for (size_t i = 0; i < count; i++) ((float *)sum)[i] += ((const float *)more)[i];
    else
        for (size_t i = 0; i < count; i++) ((double *)sum)[i] += ((const double *)more)[i];
}

static weft_status by_host(weft_tensor *const *list, size_t n) {
    weft_context *ctx = list[0]->ctx;
    const weft_dtype dtype = weft_dtype_of(list[0]);
    const size_t count = (size_t)weft_numel(list[0]), bytes = count * weft_dtype_size(dtype);
    void *sum = weft__alloc(ctx, bytes), *more = weft__alloc(ctx, bytes);
    weft_status status = sum && more ? WEFT_OK : weft__fail_oom(ctx, 2 * bytes, "a sum over devices");
    if (status == WEFT_OK) status = weft_read(list[0], sum, bytes);
    for (size_t i = 1; i < n && status == WEFT_OK; i++) {
        status = weft_read(list[i], more, bytes);
        if (status == WEFT_OK) add_up(sum, more, dtype, count);
    }
    for (size_t i = 0; i < n && status == WEFT_OK; i++) status = weft_write(list[i], sum, bytes);
    weft__free(ctx, sum);
    weft__free(ctx, more);
    return status;
}

weft_status weft__sum_shared(weft_tensor *const *list, size_t n) {
    bool done = false;
    WEFT_TRY(by_devices(list, n, &done));
    return done ? WEFT_OK : by_host(list, n);
}
