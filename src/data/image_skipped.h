/* Counts what lies among images and is not read. Must not know: where images are. Read next:
 * image_skipped.c. */
#ifndef WEFT_SRC_DATA_IMAGE_SKIPPED_H
#define WEFT_SRC_DATA_IMAGE_SKIPPED_H

#include <stdint.h>

typedef struct weft__skipped {
    int64_t hidden, empty; /* names that begin with a dot; empty folders */
    int64_t bad;           /* images that cannot be read */
    int64_t files;         /* files of other kinds */
    struct {
        char ending[12]; /* such as ".gif"; "" for a file without one */
        int64_t files;
    } kinds[32]; /* the first kinds that were met */
} weft__skipped;

/* Counts what has this path. An empty folder ends in '/'. */
void weft__skipped_count(weft__skipped *skipped, const char *path);
/* Counts `files` files with the ending of a name. */
void weft__skipped_kind(weft__skipped *skipped, const char *name, int64_t files);
/* Adds the other counts. */
void weft__skipped_add(weft__skipped *skipped, const weft__skipped *other);
/* Takes the kind with the most files. Returns the number of its files, 0 if no kind is left. */
int64_t weft__skipped_take(weft__skipped *skipped, const char **ending);

#endif
