/* Decodes BMP files: 1, 4, 8, 16, 24 or 32 bits for a pixel, without compression. There is no library for it:
 * the format is two headers, a palette and rows. Must not know: folders. Read next: image_gif.c. */
#include <string.h>

#include "data/image_formats.h"

enum { FILE_HEADER = 14, OLD_HEADER = 12, NEW_HEADER = 40, PLAIN = 0, BITFIELDS = 3, ALPHA_BITFIELDS = 6 };

/* What the headers say.
 *
 *     file header: "BM" | size (4) | 0 (4) | where the pixels begin (4)
 *     old header:  its size, 12 (4) | width (2) | height (2) | planes (2) | bits (2)
 *     new header:  its size (4) | width (4) | height (4) | planes (2) | bits (2) | compression (4) | ...
 *                  at byte 32 the colours of the palette (4), at byte 40 the masks of red, green, blue (12)
 */
typedef struct bmp {
    const uint8_t *palette, *pixels;
    size_t colours, entry; /* of the palette, and the bytes of one: blue, green, red, and 0 if there are 4 */
    int64_t rows, columns, stride; /* stride: bytes of a row, a multiple of 4 */
    bool from_top;
    uint32_t bits, compression, masks[3];
} bmp;

static weft_status read_sizes(weft_context *ctx, const weft__encoded *file, bmp *b) {
    const uint8_t *header = file->bytes + FILE_HEADER;
    const bool old = weft__le32(header) == OLD_HEADER;
    if (!old && (weft__le32(header) < NEW_HEADER || file->size < FILE_HEADER + NEW_HEADER))
        return weft__image_damaged(ctx, file, "its header ends before the size");
    const int64_t height = old ? (int32_t)weft__le16(header + 6) : (int32_t)weft__le32(header + 8);
    b->rows = height < 0 ? -height : height;
    b->from_top = height < 0;
    b->columns = old ? (int32_t)weft__le16(header + 4) : (int32_t)weft__le32(header + 4);
    b->bits = weft__le16(header + (old ? 10 : 14));
    b->compression = old ? PLAIN : weft__le32(header + 16);
    b->entry = old ? 3 : 4;
    return WEFT_OK;
}

/* Finds the masks of pixels of 16 and 32 bits. Without masks in the file, a colour has 5 bits or 8. */
static weft_status read_masks(weft_context *ctx, const weft__encoded *file, bmp *b) {
    const size_t at = FILE_HEADER + NEW_HEADER;
    const bool given = b->compression != PLAIN;
    if (given && file->size < at + 12)
        return weft__image_damaged(ctx, file, "its masks of colours are missing");
    for (size_t c = 0; c < 3; c++) {
        const unsigned width = b->bits == 16 ? 5 : 8;
        b->masks[c] =
            given ? weft__le32(file->bytes + at + 4 * c) : ((1U << width) - 1) << width * (2 - (unsigned)c);
    }
    return WEFT_OK;
}

static weft_status read_palette(weft_context *ctx, const weft__encoded *file, bmp *b) {
    const uint8_t *header = file->bytes + FILE_HEADER;
    const size_t size = weft__le32(header), at = FILE_HEADER + size, most = (size_t)1 << b->bits;
    const size_t given = size >= NEW_HEADER ? weft__le32(header + 32) : 0;
    b->colours = given > 0 && given < most ? given : most;
    if (size > file->size || at > file->size || (file->size - at) / b->entry < b->colours)
        return weft__image_damaged(ctx, file, "its palette is cut off");
    b->palette = file->bytes + at;
    return WEFT_OK;
}

static weft_status read_headers(weft_context *ctx, const weft__encoded *file, bmp *b) {
    if (file->size < FILE_HEADER + OLD_HEADER)
        return weft__image_damaged(ctx, file, "its header ends before the size");
    WEFT_TRY(read_sizes(ctx, file, b));
    const bool deep = b->bits == 16 || b->bits == 32, indexed = b->bits == 1 || b->bits == 4 || b->bits == 8;
    if ((!deep && !indexed && b->bits != 24) ||
        (b->compression != PLAIN &&
         !(deep && (b->compression == BITFIELDS || b->compression == ALPHA_BITFIELDS))))
        return weft__fail(
            ctx, WEFT_ERR_FORMAT,
            "%s: this is a BMP of %u bits with compression %u, which Weft does not read: save it as PNG",
            file->name, (unsigned)b->bits, (unsigned)b->compression);
    if (deep) WEFT_TRY(read_masks(ctx, file, b));
    if (indexed) WEFT_TRY(read_palette(ctx, file, b));
    return WEFT_OK;
}

/* Returns the bits of the mask, scaled to 0..255. */
static uint8_t bmp_masked(uint32_t pixel, uint32_t mask) {
    if (mask == 0) return 0;
    const uint32_t low = mask & (~mask + 1);
    const uint64_t value = (pixel & mask) / low, most = mask / low;
    return (uint8_t)((value * 255 + most / 2) / most);
}

static void read_pixel(const bmp *b, const uint8_t *row, int64_t x, uint8_t rgb[3]) {
    if (b->bits <= 8) {
        const unsigned in_byte = 8 / b->bits, down = (in_byte - 1 - (unsigned)(x % in_byte)) * b->bits;
        const size_t index = (size_t)(row[x / in_byte] >> down) & ((1U << b->bits) - 1);
        const uint8_t *colour = b->palette + (index < b->colours ? index : 0) * b->entry;
        for (int c = 0; c < 3; c++) rgb[c] = colour[2 - c];
    } else if (b->bits == 24) {
        for (int c = 0; c < 3; c++) rgb[c] = row[3 * x + 2 - c];
    } else {
        const uint32_t pixel = b->bits == 16 ? weft__le16(row + 2 * x) : weft__le32(row + 4 * x);
        for (int c = 0; c < 3; c++) rgb[c] = bmp_masked(pixel, b->masks[c]);
    }
}

weft_status weft__decode_bmp(weft_context *ctx, const weft__encoded *file, weft__image *out) {
    bmp b = {0};
    WEFT_TRY(read_headers(ctx, file, &b));
    b.stride = (b.columns * b.bits + 31) / 32 * 4;
    const size_t begin = weft__le32(file->bytes + 10);
    if (b.columns > 0 && (begin > file->size || (file->size - begin) / (size_t)b.stride < (size_t)b.rows))
        return weft__image_damaged(ctx, file, "its pixels are cut off");
    WEFT_TRY(weft__image_new(ctx, file, b.rows, b.columns, 3, file->channels ? file->channels : 3, out));
    b.pixels = file->bytes + begin;
    for (int64_t y = 0; y < b.rows; y++)
        for (int64_t x = 0; x < b.columns; x++)
            read_pixel(&b, b.pixels + (b.from_top ? y : b.rows - 1 - y) * b.stride, x,
                       out->pixels + (y * b.columns + x) * 3);
    weft__image_pack(out, 3);
    return WEFT_OK;
}
