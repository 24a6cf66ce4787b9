/* Seconds by name: how the time of a run was spent, and percentages that add up to 100. Must not know:
 * clocks, runs. Read next: times.c. */
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

/* Adds seconds to the entry of that name, and makes the entry if there is none. Does nothing if there is no
 * room. */
void weft__shares_add(weft__shares *shares, const char *name, double seconds);
/* Adds the parts of a profile: kinds of work, data, upload, download, waiting, context, compile, host. All
 * except context make up the total of the profile. */
void weft__shares_add_parts(weft__shares *shares, const weft_profile_times *times);

double weft__shares_total(const weft__shares *shares);
/* Computes percentages rounded to a tenth that add up to 100.0, or are all 0. */
void weft__shares_percent(const weft__shares *shares, double percent[WEFT__SHARES]);
/* Returns how many times faster everything would be if this entry took no time. Returns 0 if nothing else
 * took time. */
double weft__shares_without(const weft__shares *shares, const char *name);

/* Prints a line for each entry that took time, then their sum. */
void weft__shares_print(const weft__shares *shares, FILE *out);

#endif
