/* Profiles some training steps of a configuration. Must not know: how a profile is shown. Read next:
 * profile.c. */
#ifndef WEFT_SRC_TRAIN_ANALYSIS_PROFILE_H
#define WEFT_SRC_TRAIN_ANALYSIS_PROFILE_H

#include "train/run/loop_setup.h"

typedef struct weft__profiling {
    uint64_t warmup, steps; /* input: steps before the profile (at least 1), and steps in the profile */
    bool trace;
    /* the results */
    weft__loop loop;       /* without a run folder */
    weft_profile *profile; /* of the steps after the warm-up */
    weft_profile_times times;
    double prepare;             /* seconds before the first step */
    double first_step, compile; /* seconds of the first step, and of compilation within it */
    double peak_flops, peak_bytes;
} weft__profiling;

/* Trains and profiles. The caller frees the results with weft__profiling_free, also after a failure. */
weft_status weft__profiling_run(weft__profiling *profiling, weft__config *config);
void weft__profiling_free(weft__profiling *profiling);

#endif
