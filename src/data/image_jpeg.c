/* Decodes JPEG files with libjpeg-turbo: grey, colour, and the four inks of print (CMYK, YCCK). Must not
 * know: folders. Read next: image_exif.c. */
#include <string.h>

#include <turbojpeg.h>

#include "base/limits.h"
#include "data/image_formats.h"

/* Tells whether the file is cut or unreadable. libjpeg-turbo fills missing pixels with grey and only warns.
 * It also warns about harmless padding, so the text of the warning decides. */
static bool is_cut(tjhandle jpeg) {
    return tjGetErrorCode(jpeg) == TJERR_FATAL || strstr(tjGetErrorStr2(jpeg), "remature end") != NULL;
}

/* Counts the scans up to the end of the image. A scan takes as long as the whole image, however few bytes it
 * has: a progressive file has about ten. Goes from marker to marker as libjpeg-turbo does: segments have a
 * length, and the pixels behind that of a scan hold 0xff only with 0 or a restart marker. */
static int count_scans(const weft__encoded *file) {
    enum { TEM = 1, RST0 = 0xd0, SOI = 0xd8, EOI = 0xd9, SOS = 0xda, FILL = 0xff };
    const uint8_t *at = file->bytes, *end = at + file->size;
    int scans = 0;
    while ((at = memchr(at, FILL, (size_t)(end - at))) && end - at >= 4 && at[1] != EOI) {
        const int marker = at[1];
        const bool bare = marker <= TEM || (marker >= RST0 && marker <= SOI);
        const int64_t skipped = marker == FILL ? 1 : bare ? 2 : 2 + (int64_t)weft__be16(at + 2);
        scans += marker == SOS;
        at += weft__smaller(skipped, end - at);
    }
    return scans;
}

/* Converts cyan, magenta, yellow and black to red, green and blue, in place. Programs for print store inks
 * inverted, so that 255 is none; Pillow expects it of every such file, too. */
static void inks_to_colours(weft__image *p) {
    uint8_t *at = p->pixels;
    for (int64_t i = 0; i < p->rows * p->columns; i++, at += 4)
        for (int c = 0; c < 3; c++) at[c] = (uint8_t)((at[c] * at[3] + 127) / 255);
}

/* Halves the size up to three times, as long as what will be cropped is twice as large as what is wanted. */
static void choose_size(const weft__encoded *file, int width, int height, tjscalingfactor *scale) {
    *scale = (tjscalingfactor){1, 1};
    if (file->rows < 1) return;
    const double rows = (double)file->rows, columns = (double)file->columns,
                 cropped = height * columns < width * rows ? height * columns / rows : width;
    while (scale->denom < 8 && cropped / (2 * scale->denom) >= 2 * columns) scale->denom *= 2;
}

/* Tells whether an image in colour will be scaled, and so keeps its planes. */
static bool keeps_planes(const weft__encoded *file, int width, int height, int sampling) {
    return sampling >= 0 && sampling < TJ_NUMSAMP && sampling != TJSAMP_GRAY && file->rows > 0 &&
           (file->rows != height || file->columns != width);
}

/* Allocates whole pixels of chroma. */
static weft_status planes_new(weft_context *ctx, const weft__encoded *file, int width, int height,
                              int sampling, weft__image *out) {
    const int across = tjMCUWidth[sampling] / 8, down = tjMCUHeight[sampling] / 8;
    const size_t bytes = 3 * (size_t)(height + down - 1) * (size_t)(width + across - 1);
    *out = (weft__image){.pixels = weft__alloc(ctx, bytes),
                         .rows = height,
                         .columns = width,
                         .channels = 3,
                         .chroma_across = across,
                         .chroma_down = down};
    return out->pixels ? WEFT_OK : weft__fail_oom(ctx, bytes, file->name);
}

static bool decode_planes(tjhandle jpeg, const weft__encoded *file, const weft__image *p) {
    unsigned char *planes[3];
    int strides[3];
    for (int c = 0; c < 3; c++) {
        const weft__image_plane plane = weft__image_plane_of(p, c);
        planes[c] = plane.pixels;
        strides[c] = (int)plane.columns;
    }
    return tjDecompressToYUVPlanes(jpeg, file->bytes, file->size, planes, (int)p->columns, strides,
                                   (int)p->rows, TJFLAG_ACCURATEDCT) == 0;
}

/* Decodes the pixels as they are stored: `stored` channels, or planes. */
static bool decode(tjhandle jpeg, const weft__encoded *file, int64_t stored, const weft__image *p) {
    if (p->chroma_across) return decode_planes(jpeg, file, p);
    const int format = stored == 4 ? TJPF_CMYK : stored == 1 ? TJPF_GRAY : TJPF_RGB;
    return tjDecompress2(jpeg, file->bytes, file->size, p->pixels, (int)p->columns, 0, (int)p->rows, format,
                         TJFLAG_ACCURATEDCT) == 0;
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
    tjscalingfactor scale;
    WEFT_TRY(
        weft__image_check(ctx, file, height, width)); /* a progressive file is decoded in full size first */
    if (count_scans(file) > WEFT__SCANS_MAX)
        return weft__fail(
            ctx, WEFT_ERR_FORMAT,
            "%s: the image has more than %d scans, each of which takes as long as an image: save "
            "it again, as a JPEG or PNG",
            file->name, WEFT__SCANS_MAX);
    choose_size(file, width, height, &scale);
    const bool planes = scale.denom == 1 && channels == 3 && space == TJCS_YCbCr &&
                        keeps_planes(file, width, height, sampling);
    WEFT_TRY(planes ? planes_new(ctx, file, width, height, sampling, out)
                    : weft__image_new(ctx, file, TJSCALED(height, scale), TJSCALED(width, scale), stored,
                                      channels, out));
    if (!decode(jpeg, file, stored, out) && is_cut(jpeg)) {
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
