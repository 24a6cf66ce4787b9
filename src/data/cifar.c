/* Reads the binary batches of CIFAR-10 (A. Krizhevsky, "Learning Multiple Layers of Features from Tiny
 * Images", 2009). A file has no header. It is a sequence of records of 3073 bytes:
 *
 *     label (1 byte) | red (32 x 32) | green (32 x 32) | blue (32 x 32)
 *
 * Each colour is stored row by row. Must not know: where the bytes come from. Read next: idx.c. */
#include <inttypes.h>
#include <string.h>

#include "data/parse.h"

enum { CHANNELS = 3, SIDE = 32, PIXELS = CHANNELS * SIDE * SIDE, RECORD = 1 + PIXELS, CLASSES = 10 };

weft_status weft__parse_cifar10(weft_context *ctx, const void *bytes, size_t size, const char *name,
                                weft_array *images, weft_array *labels) {
    const uint8_t *from = bytes;
    const size_t count = size / RECORD;
    *images = *labels = (weft_array){0};
    if (size == 0 || size % RECORD)
        return weft__fail(
            ctx, WEFT_ERR_FORMAT,
            "%s: byte %zu: the file ends within record %zu; records of CIFAR-10 are %d bytes, a label "
            "and 3 x 32 x 32 pixels",
            name, size, count, RECORD);
    for (size_t i = 0; i < count; i++)
        if (from[i * RECORD] >= CLASSES)
            return weft__fail(ctx, WEFT_ERR_FORMAT,
                              "%s: byte %zu: record %zu has the label %d, expected 0 to %d", name, i * RECORD,
                              i, from[i * RECORD], CLASSES - 1);
    const int64_t shape[4] = {(int64_t)count, CHANNELS, SIDE, SIDE};
    WEFT_TRY(weft_array_new(ctx, WEFT_U8, 4, shape, images));
    weft_status status = weft_array_new(ctx, WEFT_U8, 1, shape, labels);
    if (status != WEFT_OK) {
        weft_array_free(ctx, images);
        return status;
    }
    for (size_t i = 0; i < count; i++) {
        ((uint8_t *)labels->data)[i] = from[i * RECORD];
        memcpy((uint8_t *)images->data + i * PIXELS, from + i * RECORD + 1, PIXELS);
    }
    return WEFT_OK;
}

weft_status weft_read_cifar10(weft_context *ctx, const char *path, weft_array *images, weft_array *labels) {
    weft_bytes bytes;
    WEFT_NEED(ctx, images);
    WEFT_NEED(ctx, labels);
    *images = *labels = (weft_array){0};
    WEFT_NEED(ctx, path);
    WEFT_TRY(weft_read_file(ctx, path, 0, &bytes));
    weft_status status = weft__parse_cifar10(ctx, bytes.data, bytes.size, path, images, labels);
    weft_bytes_free(ctx, &bytes);
    return status;
}
