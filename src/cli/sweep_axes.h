/* The values that a search tries: lists and ranges of keys, and their combinations. Must not know: training.
 * Read next: sweep_axes.c, sweep.c. */
#ifndef WEFT_SRC_CLI_SWEEP_AXES_H
#define WEFT_SRC_CLI_SWEEP_AXES_H

#include "cli/cli.h"
#include "train/config/config.h"

enum { WEFT__AXES_MOST = 16, WEFT__AXIS_VALUES = 256, WEFT__POINTS_MOST = 1000, WEFT__AXIS_TEXT = 512 };

/* A key and its values. */
typedef struct weft__axis {
    weft__config_key key;
    const char *label; /* the last part of the key, or all of it if another axis has the same last part */
    size_t count;      /* of a list */
    char *values[WEFT__AXIS_VALUES];
    bool ranged, whole; /* a range of numbers; whole numbers */
    double low, high;
} weft__axis;

typedef struct weft__axes {
    size_t count;
    weft__axis items[WEFT__AXES_MOST];
} weft__axes;

/* A combination: "KEY=VALUE" of each axis. */
typedef struct weft__point {
    char changes[WEFT__AXES_MOST][WEFT__AXIS_TEXT];
} weft__point;

/* Reads "KEY=VALUES" of each axis. The caller frees *axes with weft__axes_free, also after a failure. */
weft_status weft__axes_read(const weft__repeated *texts, weft__axes *axes);
void weft__axes_free(weft__axes *axes);

/* Returns the number of points: all combinations, or `random` of them (0: all). Ranges need `random`. */
weft_status weft__axes_points(const weft__axes *axes, int64_t random, int64_t *count);

/* Makes point i. It depends on the axes, the seed and i alone, so a larger search begins with the same
 * points. */
void weft__axes_point(const weft__axes *axes, bool random, uint64_t seed, int64_t i, weft__point *point);

/* Returns the name of a point as a folder, such as "lr=0.01,hidden=64". */
void weft__axes_name(const weft__axes *axes, const weft__point *point, char out[256]);

/* Returns the value of a change, after its "KEY=". */
const char *weft__axis_value(const char *change);
/* Reads the value as a number. Returns false if it is none. */
bool weft__axis_number(const char *change, double *number);

#endif
