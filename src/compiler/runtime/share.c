/* Sums over contexts and processes: one variable of each context becomes the sum of all. Must not know: what
 * is summed. Read next: optim/step.c, which shares gradients; linked.c; process/sum.c. */
#include <string.h>

#include "compiler/profile/profile.h"
#include "compiler/program.h"
#include "device/device.h"
#include "process/group.h"

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
    if (status == WEFT_OK) weft__add_numbers(sum, more, dtype, count);
    weft__free(ctx, more);
    return status;
}

/* The memory of a variable, if the host may change it in place; else NULL. */
static void *in_place(const weft_tensor *t) {
    const weft_buffer *buffer = t->storage->buffer;
    return buffer && buffer->host && !t->ctx->device->asynchronous
               ? (char *)buffer->host + (size_t)t->offset * weft_dtype_size(weft_dtype_of(t))
               : NULL;
}

/* Adds up over processes whose devices are linked. The first variable gets the sum, and the host copies it to
 * the others of this process. summed: they already have the sum of all. */
static weft_status by_links(weft_tensor *const *list, size_t n, bool summed, bool tree) {
    weft_context *ctx = list[0]->ctx;
    const size_t bytes = (size_t)weft_numel(list[0]) * weft_dtype_size(weft_dtype_of(list[0]));
    void *sum = n > 1 ? weft__alloc(ctx, bytes) : NULL;
    if (n > 1 && !sum) return weft__fail_oom(ctx, bytes, "a sum over devices");
    weft_status status = WEFT_OK;
    if (!summed) status = add_tree(list, n, sum);
    if (!summed && status == WEFT_OK) status = weft_write(list[0], sum, bytes);
    if (status == WEFT_OK) status = weft__sum_linked(list[0], tree);
    if (n > 1 && status == WEFT_OK) status = weft_read(list[0], sum, bytes);
    for (size_t i = 1; i < n && status == WEFT_OK; i++) status = weft_write(list[i], sum, bytes);
    weft__free(ctx, sum);
    return status;
}

/* Adds up on the host, and over the processes. summed: the variables already have the sum of all. */
static weft_status by_host(weft_tensor *const *list, size_t n, bool summed, weft_process_group *group,
                           bool tree) {
    weft_context *ctx = list[0]->ctx;
    const weft_dtype dtype = weft_dtype_of(list[0]);
    const size_t count = (size_t)weft_numel(list[0]), bytes = count * weft_dtype_size(dtype);
    void *place = n == 1 ? in_place(list[0]) : NULL;
    if (place) return weft_process_group_all_reduce(group, place, dtype, count, tree);
    void *sum = weft__alloc(ctx, bytes);
    weft_status status = sum ? add_tree(list, summed ? 1 : n, sum) : weft__fail_oom(ctx, bytes, "a sum");
    if (status == WEFT_OK) status = weft_process_group_all_reduce(group, sum, dtype, count, tree);
    for (size_t i = 0; i < n && status == WEFT_OK; i++) status = weft_write(list[i], sum, bytes);
    weft__free(ctx, sum);
    return status;
}

weft_status weft__sum_shared(weft_tensor *const *list, size_t n, weft_process_group *group, bool tree) {
    bool done = n == 1;
    if (n > 1 && (!tree || n == 2)) WEFT_TRY(by_devices(list, n, &done)); /* two numbers have but one sum */
    if (done && !group) return WEFT_OK;
    const weft__span span = weft__profile_enter(list[0]->ctx, WEFT__DOING_EXCHANGE);
    const weft_status status =
        group && list[0]->ctx->link ? by_links(list, n, done, tree) : by_host(list, n, done, group, tree);
    weft__profile_leave(list[0]->ctx, span);
    return status;
}

/* first, part, bytes: in bytes. */
static weft_status share_parts(weft_tensor *whole, size_t first, size_t part, size_t bytes,
                               weft_process_group *group) {
    weft_context *ctx = whole->ctx;
    const size_t all = (size_t)weft_numel(whole) * weft_dtype_size(weft_dtype_of(whole)),
                 own = first + part * (size_t)weft_process_group_rank(group);
    char *place = in_place(whole);
    if (place) {
        whole->storage->write_epoch = whole->epoch = ++ctx->epoch;
        return weft__process_group_collect(group, place + own, place + first, part, bytes);
    }
    char *values = weft__alloc(ctx, all);
    if (!values) return weft__fail_oom(ctx, all, "the parameters of all processes");
    weft_status status = weft_read(whole, values, all);
    if (status == WEFT_OK)
        status = weft__process_group_collect(group, values + own, values + first, part, bytes);
    if (status == WEFT_OK) status = weft_write(whole, values, all);
    weft__free(ctx, values);
    return status;
}

weft_status weft__parts_shared(weft_tensor *whole, int64_t first, int64_t n, int64_t part,
                               weft_process_group *group) {
    const size_t each = weft_dtype_size(weft_dtype_of(whole));
    const weft__span span = weft__profile_enter(whole->ctx, WEFT__DOING_EXCHANGE);
    const weft_status status =
        whole->ctx->link
            ? weft__parts_linked(whole, (size_t)first * each, (size_t)part * each, (size_t)n * each)
            : share_parts(whole, (size_t)first * each, (size_t)part * each, (size_t)n * each, group);
    weft__profile_leave(whole->ctx, span);
    return status;
}
