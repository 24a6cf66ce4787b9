/* Finds images in tar files. Must not know: how image files are encoded, libarchive. Read next:
 * image_shards.c. */
#ifndef WEFT_SRC_DATA_IMAGE_SHARDS_H
#define WEFT_SRC_DATA_IMAGE_SHARDS_H

#include "data/image_found.h"
#include "data/parse.h"
#include "data/shard_files.h"

/* The class of an image, while the tar files are read: a word by its number. A word is the folder of the
 * member, or the text of its file .cls. */
typedef struct weft__shard_words {
    weft__labels words;
    bool texts; /* of files .cls */
} weft__shard_words;

/* Adds the paths of the tar files that `path` names; none if it names no tar files. */
weft_status weft__shard_paths(weft_context *ctx, const char *path, weft__names *paths);

/* Finds the images of tar files, and their classes if the options want them. */
weft_status weft__image_shards_find(weft_context *ctx, const char *path, const weft__names *paths,
                                    const weft_image_folder_options *options, weft__image_found *found);

/* ---- shard_classes.c ---- */

/* Turns words into classes, and sorts the images by class. found->labels are numbers of words at first. */
weft_status weft__shard_classes(weft_context *ctx, const char *path, const weft__shard_words *words,
                                const weft_image_folder_options *options, weft__image_found *found);

#endif
