/* Decodes the first picture of a GIF file with giflib, if Weft was built with it. Later pictures of an
 * animation are not read. Must not know: folders. Read next: image_webp.c. */
#include "data/image_formats.h"

#ifdef WEFT_HAS_GIF
#include <string.h>

#include <gif_lib.h>

/* The rest of the file, for giflib. */
typedef struct source {
    const uint8_t *at;
    size_t left;
} source;

static int take(GifFileType *gif, GifByteType *to, int wanted) {
    source *s = gif->UserData;
    const size_t n = (size_t)wanted < s->left ? (size_t)wanted : s->left;
    memcpy(to, s->at, n);
    s->at += n;
    s->left -= n;
    return (int)n;
}

static weft_status gif_fail(weft_context *ctx, const weft__encoded *file, int code) {
    if (code == D_GIF_ERR_NOT_ENOUGH_MEM) return weft__fail_oom(ctx, 0, file->name);
    const char *why = GifErrorString(code);
    return weft__image_damaged(ctx, file, why ? why : "it has no picture");
}

/* Goes to the first picture. Skips what comes before it, such as comments. */
static bool find_picture(GifFileType *gif) {
    GifRecordType record;
    GifByteType *extension;
    int code;
    while (DGifGetRecordType(gif, &record) == GIF_OK) {
        if (record == IMAGE_DESC_RECORD_TYPE) return DGifGetImageDesc(gif) == GIF_OK;
        if (record != EXTENSION_RECORD_TYPE) return false;
        if (DGifGetExtension(gif, &code, &extension) != GIF_OK) return false;
        while (extension)
            if (DGifGetExtensionNext(gif, &extension) != GIF_OK) return false;
    }
    return false;
}

static void colour_of(const ColorMapObject *map, int index, uint8_t rgb[3]) {
    const bool known = map && index < map->ColorCount;
    const GifColorType colour = known ? map->Colors[index] : (GifColorType){0};
    rgb[0] = colour.Red;
    rgb[1] = colour.Green;
    rgb[2] = colour.Blue;
}

/* Fills the canvas with the background: the picture may be smaller. */
static void fill(const GifFileType *gif, weft__image *out) {
    const size_t row = (size_t)out->columns * 3;
    for (int64_t x = 0; x < out->columns; x++)
        colour_of(gif->SColorMap, gif->SBackGroundColor, out->pixels + x * 3);
    for (int64_t y = 1; y < out->rows; y++) memcpy(out->pixels + (size_t)y * row, out->pixels, row);
}

/* Puts one row of the picture into the canvas. What lies outside is dropped. */
static void put_row(const GifFileType *gif, const ColorMapObject *map, int row, const GifPixelType *indices,
                    weft__image *out) {
    const GifImageDesc *p = &gif->Image;
    const int64_t y = (int64_t)p->Top + row;
    if (y < 0 || y >= out->rows) return;
    for (int x = 0; x < p->Width; x++) {
        const int64_t at = (int64_t)p->Left + x;
        if (at >= 0 && at < out->columns)
            colour_of(map, indices[x], out->pixels + (y * out->columns + at) * 3);
    }
}

/* Reads the rows of the picture. Those of an interlaced one come in four passes. */
static bool read_rows(GifFileType *gif, const ColorMapObject *map, GifPixelType *indices, weft__image *out) {
    static const int first[] = {0, 4, 2, 1}, step[] = {8, 8, 4, 2};
    const bool interlaced = gif->Image.Interlace;
    for (int pass = 0; pass < (interlaced ? 4 : 1); pass++)
        for (int y = interlaced ? first[pass] : 0; y < gif->Image.Height; y += interlaced ? step[pass] : 1) {
            if (DGifGetLine(gif, indices, gif->Image.Width) != GIF_OK) return false;
            put_row(gif, map, y, indices, out);
        }
    return true;
}

static weft_status read_gif(weft_context *ctx, GifFileType *gif, const weft__encoded *file,
                            weft__image *out) {
    if (!find_picture(gif)) return gif_fail(ctx, file, gif->Error);
    const GifImageDesc *p = &gif->Image;
    const ColorMapObject *map = p->ColorMap ? p->ColorMap : gif->SColorMap;
    if (!map || p->Width < 1 || p->Height < 1)
        return weft__image_damaged(ctx, file, map ? "its picture is empty" : "it has no palette");
    WEFT_TRY(weft__image_check(ctx, file, p->Height, p->Width)); /* it may be larger than the canvas */
    const int64_t rows = gif->SHeight > 0 ? gif->SHeight : p->Height,
                  columns = gif->SWidth > 0 ? gif->SWidth : p->Width;
    WEFT_TRY(weft__image_new(ctx, file, rows, columns, 3, file->channels ? file->channels : 3, out));
    fill(gif, out);
    GifPixelType *indices = weft__array(ctx, (size_t)p->Width, sizeof *indices);
    weft_status status = indices ? WEFT_OK : weft__fail_oom(ctx, (size_t)p->Width, file->name);
    if (indices && !read_rows(gif, map, indices, out)) status = gif_fail(ctx, file, gif->Error);
    weft__free(ctx, indices);
    if (status == WEFT_OK)
        weft__image_pack(out, 3);
    else
        weft__image_free(ctx, out);
    return status;
}

weft_status weft__decode_gif(weft_context *ctx, const weft__encoded *file, weft__image *out) {
    source rest = {file->bytes, file->size};
    int error = 0;
    GifFileType *gif = DGifOpen(&rest, take, &error);
    if (!gif) return gif_fail(ctx, file, error);
    const weft_status status = read_gif(ctx, gif, file, out);
    DGifCloseFile(gif, &error);
    return status;
}

#else

weft_status weft__decode_gif(weft_context *ctx, const weft__encoded *file, weft__image *out) {
    (void)out;
    return weft__fail(ctx, WEFT_ERR_FORMAT,
                      "%s: this is a GIF, and this Weft was built without giflib: install libgif-dev and "
                      "build Weft again, or convert the image",
                      file->name);
}

#endif
