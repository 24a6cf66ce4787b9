/* Decodes image files into pixels: PNG with libpng, JPEG with libjpeg-turbo. The declared size is checked
 * before memory is allocated. Must not know: where the bytes come from. Read next: image_fit.c. */
#include "data/image_file.h"

#include <string.h>

#include <png.h>
#include <turbojpeg.h>

#define PIXELS_MAX ((int64_t)1 << 28) /* pixels of an image: 16,384 x 16,384 */

/* Allocates the pixels of an image, after checking the size that the file declares. */
static weft_status image_new(weft_context *ctx, const char *name, int64_t rows, int64_t columns,
                             int64_t channels, weft__image *out) {
    *out = (weft__image){.rows = rows, .columns = columns, .channels = channels};
    if (rows < 1 || columns < 1 || rows > PIXELS_MAX / columns)
        return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: declares %lld x %lld pixels; 1 to %lld are allowed",
                          name, (long long)columns, (long long)rows, (long long)PIXELS_MAX);
    out->pixels = weft__alloc(ctx, (size_t)(rows * columns * channels));
    return out->pixels ? WEFT_OK : weft__fail_oom(ctx, (size_t)(rows * columns * channels), name);
}

void weft__image_free(weft_context *ctx, weft__image *image) {
    weft__free(ctx, image->pixels);
    *image = (weft__image){0};
}

/* Reports a decoding error. libpng and libjpeg-turbo tell "out of memory" from "damaged" only by their
 * messages. */
static weft_status fail_decoding(weft_context *ctx, const char *name, size_t size, const char *message) {
    if (strstr(message, "emory")) return weft__fail_oom(ctx, 0, name);
    return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: damaged, or cut at byte %zu: %s", name, size, message);
}

/* ---- PNG ---- */

/* Converts red, green, blue, alpha to the wanted channels, in place. Grey is the luma of ITU-R BT.601, as in
 * JPEG. */
static void drop_opacity(weft__image *p) {
    const uint8_t *from = p->pixels;
    uint8_t *to = p->pixels;
    for (int64_t i = 0; i < p->rows * p->columns; i++, from += 4) {
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

static weft_status read_png(weft_context *ctx, png_image *image, const char *name, size_t size,
                            int64_t channels, weft__image *out) {
    if (channels == 0) channels = image->format & PNG_FORMAT_FLAG_COLOR ? 3 : 1;
    image->format = PNG_FORMAT_RGBA;
    WEFT_TRY(image_new(ctx, name, image->height, image->width, 4, out));
    out->channels = channels;
    const bool read = png_image_finish_read(image, NULL, out->pixels, 0, NULL) != 0;
    if (!read || image->warning_or_error > 1) {
        weft__image_free(ctx, out);
        return fail_decoding(ctx, name, size, image->message);
    }
    drop_opacity(out);
    return WEFT_OK;
}

static weft_status decode_png(weft_context *ctx, const void *bytes, size_t size, const char *name,
                              int64_t channels, weft__image *out) {
    png_image image = {.version = PNG_IMAGE_VERSION};
    if (!png_image_begin_read_from_memory(&image, bytes, size))
        return fail_decoding(ctx, name, size, image.message);
    const weft_status status = read_png(ctx, &image, name, size, channels, out);
    png_image_free(&image);
    return status;
}

/* ---- JPEG ---- */

/* Tells whether the file is cut or unreadable. libjpeg-turbo fills missing pixels with grey and only warns.
 * It also warns about harmless padding, so the text of the warning decides. */
static bool is_cut(tjhandle jpeg) {
    return tjGetErrorCode(jpeg) == TJERR_FATAL || strstr(tjGetErrorStr2(jpeg), "remature end") != NULL;
}

static weft_status read_jpeg(weft_context *ctx, tjhandle jpeg, const uint8_t *bytes, size_t size,
                             const char *name, int64_t channels, weft__image *out) {
    int width = 0, height = 0, sampling = 0, space = 0;
    if ((tjDecompressHeader3(jpeg, bytes, size, &width, &height, &sampling, &space) != 0 && is_cut(jpeg)) ||
        width == 0)
        return fail_decoding(ctx, name, size,
                             width ? tjGetErrorStr2(jpeg) : "its header ends before the size");
    if (channels == 0) channels = space == TJCS_GRAY ? 1 : 3;
    WEFT_TRY(image_new(ctx, name, height, width, channels, out));
    if (tjDecompress2(jpeg, bytes, size, out->pixels, width, 0, height, channels == 1 ? TJPF_GRAY : TJPF_RGB,
                      TJFLAG_ACCURATEDCT) == 0 ||
        !is_cut(jpeg))
        return WEFT_OK;
    weft__image_free(ctx, out);
    return fail_decoding(ctx, name, size, tjGetErrorStr2(jpeg));
}

static weft_status decode_jpeg(weft_context *ctx, const void *bytes, size_t size, const char *name,
                               int64_t channels, weft__image *out) {
    tjhandle jpeg = tjInitDecompress();
    if (!jpeg) return weft__fail_oom(ctx, 0, name);
    const weft_status status = read_jpeg(ctx, jpeg, bytes, size, name, channels, out);
    tjDestroy(jpeg);
    return status;
}

weft_status weft__image_decode(weft_context *ctx, const void *bytes, size_t size, const char *name,
                               int64_t channels, weft__image *out) {
    static const uint8_t png[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'}, jpeg[3] = {0xff, 0xd8, 0xff};
    *out = (weft__image){0};
    if (size >= sizeof jpeg && memcmp(bytes, jpeg, sizeof jpeg) == 0)
        return decode_jpeg(ctx, bytes, size, name, channels, out);
    if (size >= sizeof png && memcmp(bytes, png, sizeof png) == 0)
        return decode_png(ctx, bytes, size, name, channels, out);
    return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: byte 0: begins neither as a PNG nor as a JPEG: convert it",
                      name);
}
