/* Sums over the processes of a group. Must not know: what is summed. Read next: group.c,
 * docs/design/030-data-parallel-steps.md. */
#include <string.h>

#include "process/group.h"

enum { SMALL_BYTES = 1 << 16 }; /* of all processes: one transfer of everything is faster than two of parts */

void weft__add_numbers(void *sum, const void *more, weft_dtype dtype, size_t count) {
    if (dtype == WEFT_F32)
        for (size_t i = 0; i < count; i++) ((float *)sum)[i] += ((const float *)more)[i];
    else
        for (size_t i = 0; i < count; i++) ((double *)sum)[i] += ((const double *)more)[i];
}

/* Adds up n parts in a binary tree, and leaves the sum in part 0: ((0 + 1) + (2 + 3)) + ... */
static void add_parts(char *parts, size_t n, weft_dtype dtype, size_t count) {
    const size_t bytes = count * weft_dtype_size(dtype);
    for (size_t apart = 1; apart < n; apart *= 2)
        for (size_t i = 0; i + apart < n; i += 2 * apart)
            weft__add_numbers(parts + i * bytes, parts + (i + apart) * bytes, dtype, count);
}

/* Every process receives the numbers of all others, and adds them up. */
static weft_status sum_small(weft_process_group *g, void *data, weft_dtype dtype, size_t count) {
    weft_transfer transfer;
    const size_t bytes = count * weft_dtype_size(dtype);
    char *parts = weft__process_group_staging(g, (size_t)g->size * bytes);
    if (!parts) return WEFT_ERR_OOM;
    memcpy(parts + (size_t)g->rank * bytes, data, bytes);
    const char *error = g->transport->all_gather(g->transport, parts, bytes, &transfer);
    WEFT_TRY(weft__process_group_wait(g, error, &transfer));
    add_parts(parts, (size_t)g->size, dtype, count);
    memcpy(data, parts, bytes);
    return WEFT_OK;
}

/* Every process adds up one part of the numbers, and the others receive its sum. piece: size times `part`
 * numbers; parts: memory of the same size. */
static weft_status sum_piece(weft_process_group *g, char *piece, char *parts, weft_dtype dtype, size_t part) {
    weft_transfer transfer;
    const size_t bytes = part * weft_dtype_size(dtype);
    const char *error = g->transport->all_to_all(g->transport, piece, parts, bytes, &transfer);
    WEFT_TRY(weft__process_group_wait(g, error, &transfer));
    add_parts(parts, (size_t)g->size, dtype, part);
    memcpy(piece + (size_t)g->rank * bytes, parts, bytes);
    error = g->transport->all_gather(g->transport, piece, bytes, &transfer);
    return weft__process_group_wait(g, error, &transfer);
}

/* Numbers of a piece that one process adds up; 0: `count` numbers are few, and each process adds up all. */
static size_t sum_part(const weft_process_group *g, weft_dtype dtype, size_t count) {
    const size_t size = (size_t)g->size, each = weft_dtype_size(dtype),
                 most = WEFT__PIECE_BYTES / each / size, part = (count + size - 1) / size;
    if (count * each <= SMALL_BYTES / size) return 0;
    return part < most ? part : most;
}

size_t weft__process_group_sum_bytes(const weft_process_group *g, weft_dtype dtype, size_t count,
                                     bool exact) {
    const size_t part = sum_part(g, dtype, count), size = (size_t)g->size, each = weft_dtype_size(dtype);
    if (!exact) return 0;
    return part ? 2 * size * part * each : size * count * each;
}

static weft_status sum_exactly(weft_process_group *g, char *data, weft_dtype dtype, size_t count) {
    const size_t each = weft_dtype_size(dtype), bytes = count * each, part = sum_part(g, dtype, count);
    if (part == 0) return sum_small(g, data, dtype, count);
    const size_t whole = (size_t)g->size * part * each; /* bytes of a piece */
    char *parts = weft__process_group_staging(g, 2 * whole), *padded = parts + whole;
    if (!parts) return WEFT_ERR_OOM;
    for (size_t at = 0; at < bytes; at += whole) {
        const size_t left = bytes - at;
        char *piece = left < whole ? padded : data + at;
        if (left < whole) {
            memcpy(padded, data + at, left);
            memset(padded + left, 0, whole - left);
        }
        WEFT_TRY(sum_piece(g, piece, parts, dtype, part));
        if (left < whole) memcpy(data + at, padded, left);
    }
    return WEFT_OK;
}

/* Numbers of each process in one transfer of a divided sum. */
static size_t scatter_part(const weft_process_group *g, weft_dtype dtype, size_t part) {
    const size_t most = WEFT__PIECE_BYTES / weft_dtype_size(dtype) / (size_t)g->size;
    return part < most ? part : most;
}

size_t weft__process_group_scatter_bytes(const weft_process_group *g, weft_dtype dtype, size_t part) {
    return 2 * (size_t)g->size * scatter_part(g, dtype, part) * weft_dtype_size(dtype);
}

/* Copies `n` numbers from `at` on. Those beyond `count` are 0. */
static void copy_existing(char *to, const char *data, size_t at, size_t n, size_t count, size_t each) {
    const size_t left = at < count ? count - at : 0, copied = left < n ? left : n;
    if (copied) memcpy(to, data + at * each, copied * each);
    memset(to + copied * each, 0, (n - copied) * each);
}

weft_status weft__process_group_scatter(weft_process_group *g, const void *data, void *own, weft_dtype dtype,
                                        size_t count, size_t part) {
    const size_t size = (size_t)g->size, each = weft_dtype_size(dtype), most = scatter_part(g, dtype, part);
    char *send = weft__process_group_staging(g, 2 * size * most * each), *receive = send + size * most * each;
    weft_transfer transfer;
    if (!send) return WEFT_ERR_OOM;
    for (size_t at = 0; at < part; at += most) {
        const size_t n = part - at < most ? part - at : most;
        for (size_t i = 0; i < size; i++)
            copy_existing(send + i * n * each, data, i * part + at, n, count, each);
        const char *error = g->transport->all_to_all(g->transport, send, receive, n * each, &transfer);
        WEFT_TRY(weft__process_group_wait(g, error, &transfer));
        add_parts(receive, size, dtype, n);
        memcpy((char *)own + at * each, receive, n * each);
    }
    return WEFT_OK;
}

/* Lets the engine add up, in its own order. */
static weft_status sum_by_engine(weft_process_group *g, char *data, weft_dtype dtype, size_t count) {
    const size_t each = weft_dtype_size(dtype), most = WEFT_TRANSPORT_BYTES / each;
    weft_transfer transfer;
    for (size_t at = 0; at < count; at += most) {
        const size_t n = count - at < most ? count - at : most;
        const char *error =
            g->transport->all_reduce(g->transport, data + at * each, dtype == WEFT_F64, n, &transfer);
        WEFT_TRY(weft__process_group_wait(g, error, &transfer));
    }
    return WEFT_OK;
}

weft_status weft_process_group_all_reduce(weft_process_group *g, void *data, weft_dtype dtype, size_t count,
                                          bool exact) {
    if (dtype != WEFT_F32 && dtype != WEFT_F64)
        return weft__fail(NULL, WEFT_ERR_DTYPE,
                          "weft_process_group_all_reduce: the dtype is %s; give f32 or f64",
                          weft_dtype_name(dtype));
    if (!g || count == 0) return WEFT_OK;
    WEFT_NEED(NULL, data);
    return (exact ? sum_exactly : sum_by_engine)(g, data, dtype, count);
}
