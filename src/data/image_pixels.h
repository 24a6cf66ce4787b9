/* Decodes many image files at once, on all cores. Must not know: folders, classes. Read next:
 * image_pixels.c. */
#ifndef WEFT_SRC_DATA_IMAGE_PIXELS_H
#define WEFT_SRC_DATA_IMAGE_PIXELS_H

#include <weft/data.h>

#include "base/base.h"

/* Files that become planes of the same shape. Both arrays belong to the caller. */
typedef struct weft__image_files {
    char *const *paths; /* [count] */
    size_t count;
    const weft_image_folder_options *options;
    int64_t shape[3]; /* channels, rows, columns; by weft__images_shape */
} weft__image_files;

/* Finds the shape: what the options ask for, otherwise that of the first image that can be read. */
weft_status weft__images_shape(weft_context *ctx, weft__image_files *files);

/* Reads all files into `planes`, [count][channels][rows][columns]. For a file that cannot be read, bad[i]
 * becomes the reason, which the caller frees; its planes are then undefined. The entries of `bad` are NULL at
 * first. WEFT_ERR_FORMAT is an image of another size. */
weft_status weft__images_read(weft_context *ctx, const weft__image_files *files, uint8_t *planes, char **bad);

#endif
