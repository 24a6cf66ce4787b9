/* Images: PNG and JPEG files as pixels, and pixels brought to a size. Must not know: folders, classes.
 * Read next: image_file.c. */
#ifndef WEFT_SRC_DATA_IMAGE_FILE_H
#define WEFT_SRC_DATA_IMAGE_FILE_H

#include "data/parse.h"

typedef struct weft__image {
    uint8_t *pixels; /* row by row, the channels of a pixel side by side; to be freed by weft__image_free */
    int64_t rows, columns, channels; /* 1: grey, 3: red, green, blue */
} weft__image;

/* The pixels of a PNG or JPEG file, which its first bytes tell; `channels`: 1 or 3, or 0 for what the file
 * has. Opacity is left out, as are turns that a camera noted. */
weft_status weft__image_decode(weft_context *ctx, const void *bytes, size_t size, const char *name,
                               int64_t channels, weft__image *out);
void weft__image_free(weft_context *ctx, weft__image *image);

/* The largest part in the middle that has the proportions of rows x columns, resampled, as planes
 * [channels][rows][columns]: a triangle filter as wide as what becomes one pixel, so that nothing is left out
 * in between (as Pillow's ImageOps.fit with BILINEAR). */
weft_status weft__image_fit(weft_context *ctx, const weft__image *image, int64_t rows, int64_t columns,
                            uint8_t *planes);

#endif
