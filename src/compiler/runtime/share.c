/* Sums over contexts: one variable of each context becomes the sum of all. Must not
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

/* Adds up in a binary tree: first the largest power of two of the variables that leaves one, then the rest.
 */
static weft_status add_tree(weft_tensor *const *list, size_t n, void *sum) {
    weft_context *ctx = list[0]->ctx;
    const weft_dtype dtype = weft_dtype_of(list[0]);
    const size_t count = (size_t)weft_numel(list[0]), bytes = count * weft_dtype_size(dtype);
    if (n == 1) return weft_read(list[0], sum, bytes);
    size_t first = 1;
    while (2 * first < n) first *= 2;
    WEFT_TRY(add_tree(list, first, sum));
    void *more = weft__alloc(ctx, bytes);
    if (!more) return weft__fail_oom(ctx, bytes, "a sum over devices");
    const weft_status status = add_tree(list + first, n - first, more);
    if (status == WEFT_OK) add_up(sum, more, dtype, count);
    weft__free(ctx, more);
    return status;
}

static weft_status by_host(weft_tensor *const *list, size_t n) {
    weft_context *ctx = list[0]->ctx;
    const size_t bytes = (size_t)weft_numel(list[0]) * weft_dtype_size(weft_dtype_of(list[0]));
    void *sum = weft__alloc(ctx, bytes);
    weft_status status = sum ? add_tree(list, n, sum) : weft__fail_oom(ctx, bytes, "a sum over devices");
    for (size_t i = 0; i < n && status == WEFT_OK; i++) status = weft_write(list[i], sum, bytes);
    weft__free(ctx, sum);
    return status;
}

weft_status weft__sum_shared(weft_tensor *const *list, size_t n, bool tree) {
    bool done = false;
    if (!tree || n == 2) WEFT_TRY(by_devices(list, n, &done)); /* two numbers have but one sum */
    return done ? WEFT_OK : by_host(list, n);
}
