/* The summary of the data that `weft train` and `weft plan` print first: what was read, its classes, its
 * split, and what was skipped. It is text for people. Must not know: terminals. Read next:
 * dataset_summary.c. */
#ifndef WEFT_SRC_TRAIN_DATASET_DATASET_SUMMARY_H
#define WEFT_SRC_TRAIN_DATASET_DATASET_SUMMARY_H

#include "train/dataset/dataset.h"

enum { WEFT__SUMMARY_COLUMNS = 79, WEFT__SUMMARY_BYTES = 8192 };

typedef struct weft__lines {
    char text[WEFT__SUMMARY_BYTES]; /* lines, with a newline between them; names are escaped */
    size_t size;
    int columns; /* of the last line */
    bool listed; /* the last line has an item */
    bool full;   /* the last line has no room for more items */
} weft__lines;

/* Describes the data in at most 16 lines. Fails with WEFT_ERR_OOM only. */
weft_status weft__dataset_summary(const weft__dataset *dataset, const weft__config *config,
                                  weft__lines *lines);

/* ---- for the files that know one kind of data ---- */

/* Begins a line. A line that is too long is cut. */
void weft__line(weft__lines *lines, const char *fmt, ...) WEFT_PRINTF(2, 3);
/* Adds an item to the list that the line ends with. Items that have no room become "...". */
void weft__line_item(weft__lines *lines, bool last, const char *fmt, ...) WEFT_PRINTF(3, 4);
/* Returns the name of a file without its folder. */
const char *weft__line_file(const char *path);
static inline const char *weft__plural(int64_t n) { return n == 1 ? "" : "s"; }

/* Writes the lines about images, of any source. */
void weft__dataset_image_lines(const weft__dataset *dataset, const weft__config *config, weft__lines *lines);

#endif
