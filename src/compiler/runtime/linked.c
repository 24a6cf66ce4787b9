/* Sums over processes whose devices are linked, such as cards by NCCL: gradients stay on the devices. Exact
 * sums have the bits of process/sum.c. Each device receives its part of the numbers from all others, a
 * program adds up the parts in a binary tree, and the others receive the sums:
 *
 *     numbers of each device      |  part 0  |  part 1  |  part 2  |
 *     device 1 receives           part 1 of device 0, of device 1, of device 2, and adds them up
 *
 * Must not know: what is summed. Read next: share.c, process/link.c, docs/design/045-links-between-cards.md.
 */
#include "compiler/profile/profile.h"
#include "compiler/program.h"
#include "ops/build.h"
#include "process/group.h"

static const char *const where = NULL;

enum {
    PIECE_BYTES = 32 << 20, /* of all processes that are exchanged at once */
    SMALL_BYTES =
        1 << 16, /* of all processes: each of them adds up all, since one transfer is faster than two */
    ALIGNED = 16 /* numbers: parts begin at a multiple of 64 bytes */
};

/* Numbers of a part of the next piece, if so many numbers are left. 0: they are few. */
static size_t linked_part(size_t left, size_t size, size_t each) {
    const size_t most = PIECE_BYTES / each / size, part = left / size < most ? left / size : most;
    return left * each * size <= SMALL_BYTES ? 0 : part / ALIGNED * ALIGNED;
}

/* The most numbers that are received at once while so many numbers are added up. */
static size_t received_at_once(size_t count, size_t size, size_t each) {
    size_t most = 0, part;
    for (size_t at = 0; at < count; at += size * part) {
        part = linked_part(count - at, size, each);
        const size_t n = size * (part ? part : count - at);
        if (n > most) most = n;
        if (!part) break;
    }
    return most;
}

/* ---- adding up on the device ---- */

/* The sum of rows first..first + n: the largest power of two of them that leaves one, and the rest. */
static weft_tensor *add_rows(weft_tensor *rows, int64_t first, int64_t n) {
    int64_t half = 1;
    if (n == 1) return weft_narrow_at(where, rows, 0, first, 1);
    while (2 * half < n) half *= 2;
    return at_add(add_rows(rows, first, half), add_rows(rows, first + half, n - half));
}

/* Makes a variable of elements of another one. */
static weft_status part_variable(const weft_tensor *whole, size_t from, int rank, const int64_t *shape,
                                 weft_tensor **part) {
    const weft_dtype dtype = weft_dtype_of(whole);
    *part = weft_variable_new(whole->ctx, "a part of a sum", dtype, rank, shape, NULL);
    WEFT_TRY(weft_tensor_status(*part));
    weft__variable_share(*part, whole, ((size_t)whole->offset + from) * weft_dtype_size(dtype));
    return WEFT_OK;
}

/* sum[0, from..from + n] = the sum of the rows, each of n numbers, at the beginning of `received`. */
static weft_status add_received(const weft_tensor *sum, size_t from, const weft_tensor *received, size_t n,
                                size_t size) {
    const int64_t row[2] = {1, (int64_t)n}, all[2] = {(int64_t)size, (int64_t)n};
    weft_tensor *place = NULL, *rows = NULL;
    weft_scope *scope = weft_scope_open(sum->ctx);
    if (!scope) return weft__fail_oom(sum->ctx, 0, "a scope");
    weft_status status = part_variable(sum, from, 2, row, &place);
    if (status == WEFT_OK) status = part_variable(received, 0, 2, all, &rows);
    if (status == WEFT_OK) {
        weft_tensor *value = add_rows(rows, 0, all[0]);
        status = weft_assign(&place, &value, 1);
    }
    weft_scope_close(scope);
    weft_free(place);
    weft_free(rows);
    return status;
}

/* ---- exact sums ---- */

/* Adds up numbers at..at + size * part: each device a part of them. */
static weft_status sum_linked_piece(weft__process_link *link, const weft_tensor *t, size_t at, size_t part,
                                    const weft_tensor *received) {
    const size_t each = weft_dtype_size(weft_dtype_of(t)), begin = ((size_t)t->offset + at) * each,
                 size = (size_t)weft_process_group_size(weft__process_link_group(link)),
                 own = part * (size_t)weft_process_group_rank(weft__process_link_group(link));
    weft_buffer *buffer = t->storage->buffer;
    WEFT_TRY(weft__process_link_all_to_all(link, buffer, begin, received->storage->buffer, 0, part * each));
    WEFT_TRY(add_received(t, at + own, received, part, size));
    return weft__process_link_all_gather(link, buffer, begin + own * each, buffer, begin, part * each,
                                         size * part * each);
}

/* Adds up numbers at..at + n: each device all of them. */
static weft_status sum_linked_small(weft__process_link *link, const weft_tensor *t, size_t at, size_t n,
                                    const weft_tensor *received) {
    const size_t each = weft_dtype_size(weft_dtype_of(t)),
                 size = (size_t)weft_process_group_size(weft__process_link_group(link));
    WEFT_TRY(weft__process_link_all_gather(link, t->storage->buffer, ((size_t)t->offset + at) * each,
                                           received->storage->buffer, 0, n * each, size * n * each));
    return add_received(t, at, received, n, size);
}

static weft_status sum_linked_exactly(weft__process_link *link, const weft_tensor *t) {
    const size_t count = (size_t)weft_numel(t), each = weft_dtype_size(weft_dtype_of(t)),
                 size = (size_t)weft_process_group_size(weft__process_link_group(link));
    const int64_t most = (int64_t)received_at_once(count, size, each);
    weft_tensor *received =
        weft_variable_new(t->ctx, "gradients of all processes", weft_dtype_of(t), 1, &most, NULL);
    WEFT_TRY(weft_tensor_status(received));
    weft_status status = weft__storage_place(t->ctx, received->storage);
    for (size_t at = 0; at < count && status == WEFT_OK;) {
        const size_t part = linked_part(count - at, size, each);
        status = part ? sum_linked_piece(link, t, at, part, received)
                      : sum_linked_small(link, t, at, count - at, received);
        at += part ? size * part : count - at;
    }
    weft_free(received);
    return status;
}

/* ---- what share.c calls ---- */

weft_status weft__sum_linked(weft_tensor *t, bool tree) {
    weft__process_link *link = t->ctx->link;
    const weft_dtype dtype = weft_dtype_of(t);
    if (weft_numel(t) == 0) return WEFT_OK;
    WEFT_TRY(weft__storage_place(t->ctx, t->storage));
    WEFT_TRY(weft_synchronize(t->ctx)); /* so that the time limit is for the others alone */
    WEFT_TRY(tree ? sum_linked_exactly(link, t)
                  : weft__process_link_all_reduce(link, t->storage->buffer,
                                                  (size_t)t->offset * weft_dtype_size(dtype), dtype,
                                                  (size_t)weft_numel(t)));
    return weft__process_link_finish(link);
}

weft_status weft__parts_linked(weft_tensor *whole, size_t first, size_t part, size_t bytes) {
    weft_context *ctx = whole->ctx;
    weft__process_link *link = ctx->link;
    const size_t begin = (size_t)whole->offset * weft_dtype_size(weft_dtype_of(whole)) + first,
                 own = part * (size_t)weft_process_group_rank(weft__process_link_group(link));
    if (bytes == 0) return WEFT_OK;
    WEFT_TRY(weft__storage_place(ctx, whole->storage));
    weft_buffer *buffer = whole->storage->buffer;
    WEFT_TRY(weft_synchronize(ctx));
    whole->storage->write_epoch = whole->epoch = ++ctx->epoch;
    WEFT_TRY(weft__process_link_all_gather(link, buffer, begin + own, buffer, begin, part, bytes));
    return weft__process_link_finish(link);
}

weft_status weft__link_devices(weft_context *ctx, weft_process_group *group) {
    if (weft__process_link_group(ctx->link) == group) return WEFT_OK;
    weft__process_link_close(ctx->link);
    ctx->link = NULL;
    return weft__process_link_open(group, ctx->device, &ctx->link);
}

uint64_t weft__linked_bytes(const weft_context *ctx, weft_dtype dtype, size_t count) {
    const size_t each = weft_dtype_size(dtype),
                 size = (size_t)weft_process_group_size(weft__process_link_group(ctx->link));
    return ctx->link ? received_at_once(count, size, each) * each : 0;
}
