/* Decodes JPEG files with libjpeg-turbo: grey, colour, and the four inks of print (CMYK, YCCK). Must not
 * know: folders. Read next: image_exif.c. */
#include <string.h>

#include <turbojpeg.h>

#include "data/image_formats.h"

/* Tells whether the file is cut or unreadable. libjpeg-turbo fills missing pixels with grey and only warns.
 * It also warns about harmless padding, so the text of the warning decides. */
static bool is_cut(tjhandle jpeg) {
    return tjGetErrorCode(jpeg) == TJERR_FATAL || strstr(tjGetErrorStr2(jpeg), "remature end") != NULL;
}

/* Converts cyan, magenta, yellow and black to red, green and blue, in place. Programs for print store inks
 * inverted, so that 255 is none; Pillow expects it of every such file, too. */
static void inks_to_colours(weft__image *p) {
    uint8_t *at = p->pixels;
    for (int64_t i = 0; i < p->rows * p->columns; i++, at += 4)
        for (int c = 0; c < 3; c++) at[c] = (uint8_t)((at[c] * at[3] + 127) / 255);
}

static weft_status read_jpeg(weft_context *ctx, tjhandle jpeg, const weft__encoded *file, weft__image *out) {
    int width = 0, height = 0, sampling = 0, space = 0;
    if ((tjDecompressHeader3(jpeg, file->bytes, file->size, &width, &height, &sampling, &space) != 0 &&
         is_cut(jpeg)) ||
        width == 0)
        return weft__image_damaged(ctx, file,
                                   width ? tjGetErrorStr2(jpeg) : "its header ends before the size");
    const bool inks = space == TJCS_CMYK || space == TJCS_YCCK;
    const int64_t channels = file->channels ? file->channels : space == TJCS_GRAY ? 1 : 3;
    const int64_t stored = inks ? 4 : channels;
    WEFT_TRY(weft__image_new(ctx, file, height, width, stored, channels, out));
    if (tjDecompress2(jpeg, file->bytes, file->size, out->pixels, width, 0, height,
                      inks            ? TJPF_CMYK
                      : channels == 1 ? TJPF_GRAY
                                      : TJPF_RGB,
                      TJFLAG_ACCURATEDCT) != 0 &&
        is_cut(jpeg)) {
        weft__image_free(ctx, out);
        return weft__image_damaged(ctx, file, tjGetErrorStr2(jpeg));
    }
    if (!inks) return WEFT_OK;
    inks_to_colours(out);
    weft__image_pack(out, stored);
    return WEFT_OK;
}

weft_status weft__decode_jpeg(weft_context *ctx, const weft__encoded *file, weft__image *out) {
    tjhandle jpeg = tjInitDecompress();
    if (!jpeg) return weft__fail_oom(ctx, 0, file->name);
    const weft_status status = read_jpeg(ctx, jpeg, file, out);
    tjDestroy(jpeg);
    return status;
}
