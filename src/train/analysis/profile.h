/* Some steps of a configuration, profiled. Read next: profile.c. */
#ifndef WEFT_SRC_TRAIN_ANALYSIS_PROFILE_H
#define WEFT_SRC_TRAIN_ANALYSIS_PROFILE_H

#include "train/run/loop_setup.h"

typedef struct weft__profiling {
    uint64_t warmup, steps; /* wanted: before the profile begins, at least 1, and in it */
    bool trace;
    /* what came out */
    weft__loop loop;       /* without a run folder */
    weft_profile *profile; /* of the steps after the warm-up */
    weft_profile_times times;
    double prepare;             /* seconds until the first step */
    double first_step, compile; /* of the first step, of which compiling */
    double peak_flops, peak_bytes;
} weft__profiling;

/* Trains and profiles. Freed by weft__profiling_free, after a failure too. */
weft_status weft__profiling_run(weft__profiling *profiling, weft__config *config);
void weft__profiling_free(weft__profiling *profiling);

#endif
