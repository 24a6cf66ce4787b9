/* Reads the idx format of MNIST (Y. LeCun, "The MNIST database"). All numbers are big-endian, and nothing may
 * follow the elements:
 *
 *     0 | 0 | type (1 byte) | rank (1 byte) | dimensions (u32 each) | elements
 *
 * Must not know: where the bytes come from. Read next: npy.c. */
#include "data/parse.h"

#include <inttypes.h>
#include <string.h>

typedef struct idx_header {
    weft_dtype dtype;
    int rank;
    int64_t shape[WEFT_ARRAY_MAX_RANK];
    size_t size;  /* bytes of the header: where the elements start */
    int64_t body; /* bytes of the elements */
} idx_header;

static const struct {
    uint8_t code;
    weft_dtype dtype;
} types[] = {{0x08, WEFT_U8},  {0x09, WEFT_I8},  {0x0b, WEFT_I16},
             {0x0c, WEFT_I32}, {0x0d, WEFT_F32}, {0x0e, WEFT_F64}};

static weft_status read_type(weft_context *ctx, uint8_t code, const char *name, weft_dtype *dtype) {
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (types[i].code == code) {
            *dtype = types[i].dtype;
            return WEFT_OK;
        }
    }
    return weft__fail(
        ctx, WEFT_ERR_FORMAT,
        "%s: byte 2: unknown idx type 0x%02x, expected 08 (u8), 09 (i8), 0b (i16), 0c (i32), 0d (f32) or "
        "0e (f64)",
        name, code);
}

static weft_status read_header(weft_context *ctx, const uint8_t *p, size_t size, const char *name,
                               idx_header *h) {
    if (size < 4) {
        return weft__fail(ctx, WEFT_ERR_FORMAT,
                          "%s: byte %zu: the file ends within the 4 bytes that start an idx file", name,
                          size);
    }
    if (p[0] != 0 || p[1] != 0) {
        WEFT_TRY(weft__refuse_packed(ctx, name, p, size));
        bool swapped = p[2] == 0 && p[3] == 0;
        return weft__fail(ctx, WEFT_ERR_FORMAT,
                          "%s: byte 0: an idx file starts with 00 00, found %02x %02x%s", name, p[0], p[1],
                          swapped ? "; its bytes are swapped (little-endian)" : "");
    }
    WEFT_TRY(read_type(ctx, p[2], name, &h->dtype));
    h->rank = p[3];
    if (h->rank < 1 || h->rank > WEFT_ARRAY_MAX_RANK) {
        return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: byte 3: %d dimensions, expected 1 to %d", name, h->rank,
                          WEFT_ARRAY_MAX_RANK);
    }
    h->size = 4 + 4 * (size_t)h->rank;
    if (size < h->size) {
        return weft__fail(ctx, WEFT_ERR_FORMAT,
                          "%s: byte %zu: the file ends within the header, %zu bytes long for %d dimensions",
                          name, size, h->size, h->rank);
    }
    for (int d = 0; d < h->rank; d++) {
        const uint8_t *q = p + 4 + 4 * d;
        h->shape[d] = (int64_t)((uint32_t)q[0] << 24 | (uint32_t)q[1] << 16 | (uint32_t)q[2] << 8 | q[3]);
    }
    int64_t numel = 0;
    if (!weft__numel(h->rank, h->shape, &numel) ||
        !weft__mul(numel, (int64_t)weft_dtype_size(h->dtype), &h->body) ||
        h->body > PTRDIFF_MAX - (int64_t)h->size) {
        return weft__fail(ctx, WEFT_ERR_FORMAT,
                          "%s: byte 4: the dimensions declare more elements than memory can hold", name);
    }
    return WEFT_OK;
}

weft_status weft__idx_declared(weft_context *ctx, const uint8_t *head, size_t head_size, const char *name,
                               uint64_t *total) {
    idx_header h = {0};
    WEFT_TRY(read_header(ctx, head, head_size, name, &h));
    *total = (uint64_t)h.body + h.size;
    return WEFT_OK;
}

/* Makes an array from the bytes of a file. On success the array takes over their memory. */
static weft_status idx_take(weft_context *ctx, weft_bytes *bytes, const char *name, weft_array *out) {
    idx_header h = {0};
    WEFT_TRY(read_header(ctx, bytes->data, bytes->size, name, &h));
    uint64_t found = bytes->size - h.size;
    if (found < (uint64_t)h.body) {
        return weft__fail(ctx, WEFT_ERR_FORMAT,
                          "%s: byte %zu: the file ends, its header declares %" PRId64
                          " bytes of elements and %" PRIu64 " are there",
                          name, bytes->size, h.body, found);
    }
    if (found > (uint64_t)h.body) {
        return weft__fail(ctx, WEFT_ERR_FORMAT,
                          "%s: byte %" PRIu64 ": %" PRIu64 " bytes follow the last element", name,
                          (uint64_t)h.body + h.size, found - (uint64_t)h.body);
    }
    *out = (weft_array){.dtype = h.dtype, .rank = h.rank};
    memcpy(out->shape, h.shape, sizeof out->shape);
    weft__array_take(bytes, h.size, out);
    weft__to_host_order(out->dtype, out->data, out->bytes, true);
    return WEFT_OK;
}

weft_status weft__parse_idx(weft_context *ctx, const void *bytes, size_t size, const char *name,
                            weft_array *out) {
    weft_bytes copy;
    *out = (weft_array){0};
    WEFT_TRY(weft__bytes_new(ctx, size, name, &copy));
    if (size > 0) memcpy(copy.data, bytes, size);
    weft_status status = idx_take(ctx, &copy, name, out);
    weft_bytes_free(ctx, &copy);
    return status;
}

weft_status weft_read_idx(weft_context *ctx, const char *path, weft_array *out) {
    weft_bytes bytes;
    WEFT_NEED(ctx, out);
    *out = (weft_array){0};
    WEFT_NEED(ctx, path);
    WEFT_TRY(weft__read_file(ctx, path, weft__idx_declared, 0, &bytes));
    weft_status status = idx_take(ctx, &bytes, path, out);
    weft_bytes_free(ctx, &bytes);
    return status;
}
