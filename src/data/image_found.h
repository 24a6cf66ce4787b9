/* Images that were found, before they are read: where each one is, and its class. Must not know: how image
 * files are encoded. Read next: image_folder.c, image_read.c. */
#ifndef WEFT_SRC_DATA_IMAGE_FOUND_H
#define WEFT_SRC_DATA_IMAGE_FOUND_H

#include <weft/data.h>

#include "base/base.h"

/* A list of strings. Each string is allocated separately. */
typedef struct weft__names {
    char **at;
    size_t count, capacity;
} weft__names;

void weft__names_free(weft_context *ctx, weft__names *names);
/* Takes over the string. NULL: memory was short. */
weft_status weft__names_add(weft_context *ctx, weft__names *names, char *name);
/* Sorts by bytes. */
void weft__names_sort(weft__names *names, size_t from);
/* Returns FOLDER/NAME, or NULL if memory is short. */
char *weft__path_join(weft_context *ctx, const char *folder, const char *name);

typedef struct weft__image_found {
    weft__names files;         /* paths; none if the images are in tar files */
    weft_image_shards *shards; /* these tar files, or NULL */
    weft_image_member *members;
    size_t member_count;
    weft__names skipped, classes;
    int32_t *labels; /* [images]; NULL without classes */
    size_t capacity; /* of `labels` */
} weft__image_found;

static inline size_t weft__image_found_count(const weft__image_found *found) {
    return found->shards ? found->member_count : found->files.count;
}

/* Tells whether a file of this name counts as an image. */
bool weft__is_image_name(const char *name);

/* Finds the images of a folder, and their classes if the options want them. */
weft_status weft__image_folder_find(weft_context *ctx, const char *path,
                                    const weft_image_folder_options *options, weft__image_found *found);
void weft__image_found_free(weft_context *ctx, weft__image_found *found);

#endif
