/* Decodes image files into pixels: finds the format, and reads PNG with libpng. The declared size is checked
 * before memory is allocated. Must not know: where the bytes come from. Read next: image_jpeg.c. */
#include <string.h>

#include <png.h>

#include "base/limits.h"
#include "data/image_formats.h"

weft_status weft__image_check(weft_context *ctx, const weft__encoded *file, int64_t rows, int64_t columns) {
    if (rows > 0 && columns > 0 && rows <= file->most / columns) return WEFT_OK;
    return weft__fail(ctx, WEFT_ERR_FORMAT,
                      "%s: the image declares %lld x %lld pixels; 1 to %lld are allowed: scale it down, or "
                      "raise data.image_pixels",
                      file->name, (long long)columns, (long long)rows, (long long)file->most);
}

weft_status weft__image_new(weft_context *ctx, const weft__encoded *file, int64_t rows, int64_t columns,
                            int64_t stored, int64_t channels, weft__image *out) {
    *out = (weft__image){.rows = rows, .columns = columns, .channels = channels};
    WEFT_TRY(weft__image_check(ctx, file, rows, columns));
    out->pixels = weft__alloc(ctx, (size_t)(rows * columns * stored));
    return out->pixels ? WEFT_OK : weft__fail_oom(ctx, (size_t)(rows * columns * stored), file->name);
}

weft__image_plane weft__image_plane_of(const weft__image *p, int plane) {
    const int64_t rows = (p->rows + p->chroma_down - 1) / p->chroma_down,
                  columns = (p->columns + p->chroma_across - 1) / p->chroma_across;
    const weft__image_plane luma = {p->pixels, rows * p->chroma_down, columns * p->chroma_across, 1, 1};
    if (plane == 0) return luma;
    return (weft__image_plane){p->pixels + luma.rows * luma.columns + (plane - 1) * rows * columns, rows,
                               columns, p->chroma_across, p->chroma_down};
}

void weft__image_free(weft_context *ctx, weft__image *image) {
    weft__free(ctx, image->pixels);
    *image = (weft__image){0};
}

weft_status weft__image_damaged(weft_context *ctx, const weft__encoded *file, const char *message) {
    if (strstr(message, "emory")) return weft__fail_oom(ctx, 0, file->name);
    return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: the image is damaged, or cut off at byte %zu: %s",
                      file->name, file->size, message);
}

void weft__image_pack(weft__image *p, int64_t stored) {
    const uint8_t *from = p->pixels;
    uint8_t *to = p->pixels;
    if (p->channels == stored) return;
    for (int64_t i = 0; i < p->rows * p->columns; i++, from += stored) {
        const unsigned red = from[0], green = from[1], blue = from[2];
        if (p->channels == 1) {
            *to++ = (uint8_t)((red * 19595 + green * 38470 + blue * 7471 + 32768) >> 16);
            continue;
        }
        *to++ = (uint8_t)red;
        *to++ = (uint8_t)green;
        *to++ = (uint8_t)blue;
    }
}

/* ---- PNG ---- */

static weft_status read_png(weft_context *ctx, png_image *image, const weft__encoded *file,
                            weft__image *out) {
    const int64_t own = image->format & PNG_FORMAT_FLAG_COLOR ? 3 : 1,
                  channels = file->channels ? file->channels : own;
    /* without opacity, or libpng would blend the colours with it */
    image->format = image->format & PNG_FORMAT_FLAG_ALPHA ? PNG_FORMAT_RGBA
                    : own == 1 && channels == 1           ? PNG_FORMAT_GRAY
                                                          : PNG_FORMAT_RGB;
    const int64_t stored = PNG_IMAGE_PIXEL_SIZE(image->format);
    /* Programs that write 16 bits rarely note the curve of brightness. Then it is that of 8 bits. */
    image->flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
    WEFT_TRY(weft__image_new(ctx, file, image->height, image->width, stored, channels, out));
    const bool read = png_image_finish_read(image, NULL, out->pixels, 0, NULL) != 0;
    if (!read || image->warning_or_error > 1) {
        weft__image_free(ctx, out);
        return weft__image_damaged(ctx, file, image->message);
    }
    weft__image_pack(out, stored);
    return WEFT_OK;
}

static weft_status decode_png(weft_context *ctx, const weft__encoded *file, weft__image *out) {
    png_image image = {.version = PNG_IMAGE_VERSION};
    if (!png_image_begin_read_from_memory(&image, file->bytes, file->size))
        return weft__image_damaged(ctx, file, image.message);
    const weft_status status = read_png(ctx, &image, file, out);
    png_image_free(&image);
    return status;
}

/* ---- the formats ---- */

static const struct {
    const char *begin; /* the first bytes; '.' stands for any byte */
    size_t size;       /* of `begin` */
    weft_status (*decode)(weft_context *ctx, const weft__encoded *file, weft__image *out);
} formats[] = {
    {"\xff\xd8\xff", 3, weft__decode_jpeg},
    {"\x89PNG\r\n\x1a\n", 8, decode_png},
    {"GIF8.a", 6, weft__decode_gif},
    {"RIFF....WEBP", 12, weft__decode_webp},
    {"BM", 2, weft__decode_bmp},
};

static bool begins_with(const uint8_t *bytes, size_t size, const char *begin, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (i >= size || (begin[i] != '.' && bytes[i] != (uint8_t)begin[i])) return false;
    return true;
}

weft_status weft__image_decode(weft_context *ctx, const void *bytes, size_t size, const char *name,
                               const weft_image_folder_options *options, weft__image *out) {
    const weft_image_folder_options none = {0}, *o = options ? options : &none;
    const int orientation = weft__exif_orientation(bytes, size);
    const weft__encoded file = {.bytes = bytes,
                                .size = size,
                                .name = name,
                                .channels = o->channels,
                                .most = o->max_pixels ? o->max_pixels : WEFT__PIXELS_MAX,
                                .rows = orientation > 4 ? o->columns : o->rows,
                                .columns = orientation > 4 ? o->rows : o->columns};
    *out = (weft__image){0};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (begins_with(bytes, size, formats[i].begin, formats[i].size)) {
            WEFT_TRY(formats[i].decode(ctx, &file, out));
            out->orientation = orientation;
            return WEFT_OK;
        }
    return weft__fail(ctx, WEFT_ERR_FORMAT,
                      "%s: this is not a PNG, JPEG, GIF, WebP or BMP image: convert it to one of these",
                      name);
}
