/* Seconds by name: the parts of a run's time, and shares that add up. Read next: times.c. */
#ifndef WEFT_SRC_TRAIN_RUN_TIMES_H
#define WEFT_SRC_TRAIN_RUN_TIMES_H

#include <stdio.h>

#include <weft/profile.h>

#define WEFT__SHARES 12

typedef struct weft__share {
    char name[16];
    double seconds;
} weft__share;

typedef struct weft__shares {
    size_t count;
    weft__share item[WEFT__SHARES];
} weft__shares;

/* Adds to the share of that name, a new one where there is none yet; left out where there is no room. */
void weft__shares_add(weft__shares *shares, const char *name, double seconds);
/* The parts of a profile: kinds of work, data, upload, download, waiting, context, compile, host; all but the
 * context make up its total. */
void weft__shares_add_parts(weft__shares *shares, const weft_profile_times *times);

double weft__shares_total(const weft__shares *shares);
/* Rounded to a tenth so that they add up to 100.0, or all 0. */
void weft__shares_percent(const weft__shares *shares, double percent[WEFT__SHARES]);
/* How many times faster all would be if that one took no time; 0 where nothing else took any. */
double weft__shares_without(const weft__shares *shares, const char *name);

/* A line for each that took any time, then their sum. */
void weft__shares_print(const weft__shares *shares, FILE *out);

#endif
