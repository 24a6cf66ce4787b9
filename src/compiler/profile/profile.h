/* The profile as the library sees it: what a running one collects, and the clock of the host that never
 * counts a moment twice. Read next: profile.c. */
#ifndef WEFT_COMPILER_PROFILE_PROFILE_H
#define WEFT_COMPILER_PROFILE_PROFILE_H

#include <weft/profile.h>
#include "compiler/program.h"

/* What the host is doing. */
typedef enum weft__activity {
    WEFT__DOING_HOST,
    WEFT__DOING_DATA,
    WEFT__DOING_UPLOAD,
    WEFT__DOING_DOWNLOAD,
    WEFT__DOING_DEVICE, /* waiting for it */
    WEFT__DOING_WAITING,
    WEFT__DOING_COMPILE,
    WEFT__DOING_RUN,
    WEFT__DOING_COUNT
} weft__activity;

/* A program that ran. It may be freed before the profile is. */
typedef struct profile_program {
    size_t first; /* its commands in weft_profile.commands */
    int count;
    uint64_t runs, timed;
    double seconds; /* of all runs */
} profile_program;

/* What happened when, for the trace. */
typedef struct profile_event {
    size_t command; /* SIZE_MAX: the host did `activity` */
    weft__activity activity;
    double start_ns, end_ns;
} profile_event;

/* Between host and device. */
typedef struct weft__traffic {
    uint64_t uploads, downloads, bytes_up, bytes_down, submissions;
} weft__traffic;

struct weft_profile {
    weft_context *ctx;
    weft_profile_options options;
    uint64_t
        number; /* of this profile in its context: programs know by it which profile their number is of */
    bool running;
    weft_arena names;
    weft_profile_entry *commands; /* of all programs; flops and bytes are of one call */
    size_t n_commands, command_capacity;
    profile_program *programs;
    size_t n_programs, program_capacity;
    profile_event *events;
    size_t n_events, event_capacity;
    weft_profile_entry *entries; /* given out last */
    weft__activity doing;
    double started_ns, since_ns;
    double ns[WEFT__DOING_COUNT];
    double peak_flops[WEFT_DTYPE_COUNT], peak_bytes; /* a second; 0: not measured */
    weft__traffic before, after;                     /* as the device had counted at start and stop */
};

/* ---- profile.c ---- */

double weft__profile_now(void); /* nanoseconds of a clock that never jumps */

/* What enter must tell leave. */
typedef struct weft__span {
    weft__activity outer;
    bool profiled;
    double from_ns;
} weft__span;

weft__span weft__profile_switch(weft_profile *profile, weft__activity to);
void weft__profile_back(weft_profile *profile, weft__span span);

/* From here to the matching leave the host does `what`. Without a profile it costs a comparison. */
static inline weft__span weft__profile_enter(const weft_context *ctx, weft__activity what) {
    weft_profile *profile = ctx && ctx->compiler ? ctx->compiler->profile : NULL;
    return profile ? weft__profile_switch(profile, what) : (weft__span){WEFT__DOING_HOST, false, 0};
}
static inline void weft__profile_leave(const weft_context *ctx, weft__span span) {
    if (span.profiled && ctx->compiler->profile) weft__profile_back(ctx->compiler->profile, span);
}

/* Runs a program whose slots are bound, and books it. */
weft_status weft__profile_run(weft_profile *profile, weft_program *program);

/* What went to and fro so far. */
weft__traffic weft__profile_traffic(const weft_profile *profile);

/* Entries that agree in name, stage and path (`alike`: paths with numbers left out) become one; those that
 * took longest come first. Returns how many are left. */
size_t weft__profile_merge(weft_profile_entry *entries, size_t count, bool alike);

/* ---- peaks.c ---- */

/* The least seconds that the device needs for the entry's operations and bytes; 0: not measured. */
double weft__profile_bound(const weft_profile *profile, const weft_profile_entry *entry);

/* ---- profile_work.c ---- */

/* What a product or attention computes in; f32 of others. */
weft_dtype weft__command_dtype(const weft_command *command);
/* Operations and bytes of one call of a command. */
void weft__command_work(const weft_command *command, double *flops, double *bytes);
weft_work weft__command_kind(const weft_command *command);
/* Of one run. */
weft_program_work weft__program_work(const weft_program *program);

#endif
