/* Decodes many image files at once, on all cores. Must not know: folders, classes. Read next:
 * image_pixels.c. */
#ifndef WEFT_SRC_DATA_IMAGE_PIXELS_H
#define WEFT_SRC_DATA_IMAGE_PIXELS_H

#include <weft/data.h>

#include "base/base.h"

/* What is known of an image whose pixels stay in its file. */
typedef struct weft__image_note {
    uint64_t hash;                /* of the pixels */
    uint64_t sums[3], squares[3]; /* of the pixels of each channel */
} weft__image_note;

/* Files that become planes of the same shape. All arrays belong to the caller. */
typedef struct weft__image_files {
    char *const *paths; /* [count]; NULL: the images are in tar files */
    const weft_image_shards *shards;
    const weft_image_member *members; /* [count] in them */
    size_t count;
    const weft_image_folder_options *options;
    int64_t shape[3];        /* channels, rows, columns; by weft__images_shape */
    weft__image_note *notes; /* [count], written for each image that is read; or NULL */
    const uint64_t *hashes;  /* [count]: an image with another hash is WEFT_ERR_FORMAT; or NULL */
} weft__image_files;

/* Finds the shape: what the options ask for, otherwise that of the first image that can be read. */
weft_status weft__images_shape(weft_context *ctx, weft__image_files *files);

/* Reads all files into `planes`, [count][channels][rows][columns]. For a file that cannot be read, bad[i]
 * becomes the reason, which the caller frees; its planes are then undefined. The entries of `bad` are NULL at
 * first. WEFT_ERR_FORMAT is an image of another size. */
weft_status weft__images_read(weft_context *ctx, const weft__image_files *files, uint8_t *planes, char **bad);

/* Reads each file once, a few at a time, to learn what the files hold although their pixels stay there. */
typedef struct weft__image_scan {
    weft__hash_stream *pixels; /* gets the pixels of all images, in their order; or NULL */
    weft__image_note *notes;   /* the result: [images], to be freed with weft__free */
} weft__image_scan;

/* weft_read_image_folder with a scan, if `scan` is not NULL. The folder is then as with in_files, but bad
 * files are found as without it. */
weft_status weft__read_image_folder(weft_context *ctx, const char *path,
                                    const weft_image_folder_options *options, weft__image_scan *scan,
                                    weft_image_folder *out);

#endif
