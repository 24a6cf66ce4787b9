/* A page with the curves of several runs in the same charts. Must not know: run folders, configurations. Read
 * next: overlay.c. */
#ifndef WEFT_SRC_TRAIN_REPORT_OVERLAY_H
#define WEFT_SRC_TRAIN_REPORT_OVERLAY_H

#include "train/run/history.h"

typedef struct weft__overlaid {
    const char *name;
    const weft__history *history;
} weft__overlaid;

/* Points of a chart: the result of each run over a value of its configuration. */
typedef struct weft__scatter {
    const char *title, *x_label;
    const double *x, *y; /* [count]; NaN: no point */
    size_t count;
} weft__scatter;

/* Writes a page that needs no other file: the scatters, then the loss and each validation metric of the
 * runs. */
weft_status weft__overlay_write(const char *path, const char *title, const weft__overlaid *runs, size_t count,
                                const weft__scatter *scatters, size_t scatter_count);

#endif
