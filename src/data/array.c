/* Arrays in host memory: makes and frees them, takes over the memory of a file, converts byte order. Also
 * makes excerpts of texts for messages. Must not know: any file format. Read next: io/file.c. */
#include "base/text.h"
#include "data/parse.h"

#include <string.h>

void weft_array_free(weft_context *ctx, weft_array *array) {
    if (array == NULL) return;
    if (array->data != NULL) weft__free_aligned(ctx, array->data);
    *array = (weft_array){0};
}

weft_status weft_array_new(weft_context *ctx, weft_dtype dtype, int rank, const int64_t *shape,
                           weft_array *out) {
    WEFT_NEED(ctx, out);
    *out = (weft_array){0};
    size_t size = weft_dtype_size(dtype);
    if (size == 0) return weft__fail(ctx, WEFT_ERR_ARGUMENT, "array: unknown dtype %d", (int)dtype);
    if (rank != 0) WEFT_NEED(ctx, shape);
    if (rank < 0 || rank > WEFT_ARRAY_MAX_RANK) {
        return weft__fail(ctx, WEFT_ERR_ARGUMENT, "array: rank %d, expected 0 to %d", rank,
                          WEFT_ARRAY_MAX_RANK);
    }
    int64_t numel = 0, bytes = 0;
    if (!weft__numel(rank, shape, &numel) || !weft__mul(numel, (int64_t)size, &bytes)) {
        return weft__fail(ctx, WEFT_ERR_ARGUMENT, "array: negative dimension, or more bytes than can exist");
    }
    void *data = weft__alloc_aligned(ctx, bytes > 0 ? (size_t)bytes : 1);
    if (data == NULL) return weft__fail_oom(ctx, (size_t)bytes, "an array");
    memset(data, 0, (size_t)bytes);
    *out = (weft_array){.dtype = dtype, .rank = rank, .data = data, .bytes = (size_t)bytes};
    if (rank > 0) memcpy(out->shape, shape, (size_t)rank * sizeof *shape);
    return WEFT_OK;
}

bool weft__array_elements(const weft_array *a, int64_t *count) {
    int64_t bytes;
    return (unsigned)a->dtype < WEFT_DTYPE_COUNT && a->rank <= WEFT_ARRAY_MAX_RANK &&
           weft__numel(a->rank, a->shape, count) &&
           weft__mul(*count, (int64_t)weft_dtype_size(a->dtype), &bytes) &&
           (a->bytes == 0 || a->bytes == (size_t)bytes) && (a->data || bytes == 0);
}

void weft__array_take(weft_bytes *bytes, size_t offset, weft_array *array) {
    array->bytes = bytes->size - offset;
    memmove(bytes->data, bytes->data + offset, array->bytes);
    array->data = bytes->data;
    *bytes = (weft_bytes){0};
}

bool weft__host_is_big_endian(void) {
    const uint16_t probe = 1;
    uint8_t first;
    memcpy(&first, &probe, 1);
    return first == 0;
}

/* The swaps are plain loops over integers copied by memcpy. Compilers turn these loops into vector
 * shuffles. */
static void swap16(uint8_t *p, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint16_t v;
        memcpy(&v, p + 2 * i, 2);
        v = (uint16_t)((v << 8) | (v >> 8));
        memcpy(p + 2 * i, &v, 2);
    }
}

static uint32_t swapped32(uint32_t v) {
    return (v << 24) | ((v << 8) & 0xff0000u) | ((v >> 8) & 0xff00u) | (v >> 24);
}

static void swap32(uint8_t *p, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint32_t v;
        memcpy(&v, p + 4 * i, 4);
        v = swapped32(v);
        memcpy(p + 4 * i, &v, 4);
    }
}

static void swap64(uint8_t *p, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint64_t v;
        memcpy(&v, p + 8 * i, 8);
        v = ((uint64_t)swapped32((uint32_t)v) << 32) | swapped32((uint32_t)(v >> 32));
        memcpy(p + 8 * i, &v, 8);
    }
}

void weft__to_host_order(weft_dtype dtype, void *data, size_t bytes, bool big_endian) {
    if (big_endian == weft__host_is_big_endian()) return;
    size_t width = weft_dtype_size(dtype);
    /* real and imaginary part are swapped separately */
    if (dtype == WEFT_C64 || dtype == WEFT_C128) width /= 2;
    if (width == 2) swap16(data, bytes / 2);
    if (width == 4) swap32(data, bytes / 4);
    if (width == 8) swap64(data, bytes / 8);
}

const char *weft__excerpt(char out[WEFT__EXCERPT], const void *text, size_t size) {
    const size_t room = WEFT__EXCERPT - 6; /* two quotes, "..." and the final 0 */
    const bool cut =
        weft__printable(out + 1, room + 1, text, size <= room ? size : room, "") > room || size > room;
    size_t n = 1 + strlen(out + 1);
    out[0] = '"';
    if (cut) {
        memcpy(out + n, "...", 3);
        n += 3;
    }
    out[n++] = '"';
    out[n] = 0;
    return out;
}
