/* Images: decodes files into pixels, and resizes pixels. Must not know: folders, classes. Read next:
 * image_file.c. */
#ifndef WEFT_SRC_DATA_IMAGE_FILE_H
#define WEFT_SRC_DATA_IMAGE_FILE_H

#include "data/parse.h"

typedef struct weft__image {
    uint8_t *pixels;                 /* [rows][columns][channels], freed by weft__image_free */
    int64_t rows, columns, channels; /* as stored; channels: 1 (grey) or 3 (red, green, blue) */
    int orientation;                 /* how the camera was held, as in EXIF; 0 or 1: upright */
    /* A JPEG in colour that will be scaled keeps the planes of its file instead of red, green and blue. One
       pixel of chroma stands for so many pixels, across and down. 0: there are no planes */
    int chroma_across, chroma_down;
} weft__image;

/* The luma of an image, or one of its two planes of chroma. */
typedef struct weft__image_plane {
    uint8_t *pixels;
    int64_t rows, columns; /* whole pixels of chroma, so luma may have some more than the image */
    int across, down;      /* pixels of the image that one pixel stands for */
} weft__image_plane;

/* Returns the rows and columns of the image when it is upright. */
static inline int64_t weft__image_rows(const weft__image *p) {
    return p->orientation > 4 ? p->columns : p->rows;
}
static inline int64_t weft__image_columns(const weft__image *p) {
    return p->orientation > 4 ? p->rows : p->columns;
}

/* Decodes a PNG, JPEG, GIF, WebP or BMP file; its first bytes tell which. options: its channels (0: those of
 * the file), the most pixels, and rows x columns, to which the image will be fitted; NULL: all are 0. An
 * alpha channel is dropped. The caller frees `out` with weft__image_free.
 *
 * A JPEG that will be fitted is decoded at a half, a quarter or an eighth of its size, if that is still twice
 * what is needed: this takes a fraction of the time. Otherwise it keeps its planes of luma and chroma, since
 * scaling these takes less time than making colours of them. */
weft_status weft__image_decode(weft_context *ctx, const void *bytes, size_t size, const char *name,
                               const weft_image_folder_options *options, weft__image *out);
void weft__image_free(weft_context *ctx, weft__image *image);

/* Gives plane 0, 1 or 2 of an image that has planes. They lie one after the other. */
weft__image_plane weft__image_plane_of(const weft__image *image, int plane);

/* Turns the image upright, crops it to the largest centred part with the proportions of rows x columns, and
 * resamples this part. The result is planes [channels][rows][columns]. The filter is a triangle at least as
 * wide as one output pixel, so that no input pixel is skipped. This equals ImageOps.fit with BILINEAR of
 * Pillow. Planes of luma and chroma are resampled first, and become colours then. */
weft_status weft__image_fit(weft_context *ctx, const weft__image *image, int64_t rows, int64_t columns,
                            uint8_t *planes);

#endif
