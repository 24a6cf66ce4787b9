/* Profiles some training steps of a configuration. Must not know: how a profile is shown. Read next:
 * profile.c. */
#ifndef WEFT_SRC_TRAIN_ANALYSIS_PROFILE_H
#define WEFT_SRC_TRAIN_ANALYSIS_PROFILE_H

#include "train/run/loop_setup.h"

/* Seconds of the profiled steps in one of several processes. */
typedef struct weft__process_profile {
    double total;
    double waiting; /* of these, for an exchange or for slower processes */
    double hidden;  /* of exchanges during which the process computed */
    double memory;  /* bytes of the process at its peak */
} weft__process_profile;

typedef struct weft__profiling {
    uint64_t warmup, steps; /* input: steps before the profile (at least 1), and steps in the profile */
    bool trace;
    weft_process_group
        *group; /* input: all its processes profile the same steps; NULL: this process is alone */
    /* the results */
    weft__loop loop;       /* without a run folder */
    weft_profile *profile; /* of the steps after the warm-up */
    weft_profile_times times;
    double prepare;                   /* seconds before the first step */
    double first_step, compile;       /* seconds of the first step, and of compilation within it */
    double peak_flops, peak_bytes;    /* of rank 0 */
    weft__process_profile *processes; /* [size of the group]; NULL without one */
    bool silent;                      /* another process reports the failure */
    bool abandons;                    /* the others do not know of the failure: abort the group */
    double waited, hidden;            /* inside: the group's figures when the profile began */
} weft__profiling;

/* Trains and profiles. Only rank 0 has all results. The caller frees them with weft__profiling_free, also
 * after a failure. */
weft_status weft__profiling_run(weft__profiling *profiling, weft__config *config);
void weft__profiling_free(weft__profiling *profiling);

#endif
