/* What a running profile collects, and the clock of the host, which never counts a moment twice. Must not
 * know: how a profile is shown. Read next: profile.c. */
#ifndef WEFT_COMPILER_PROFILE_PROFILE_H
#define WEFT_COMPILER_PROFILE_PROFILE_H

#include <weft/profile.h>
#include "compiler/program.h"

/* What the host is doing. Its clock counts one activity at a time. */
typedef enum weft__activity {
    WEFT__DOING_HOST,
    WEFT__DOING_DATA,
    WEFT__DOING_UPLOAD,
    WEFT__DOING_DOWNLOAD,
    WEFT__DOING_DEVICE, /* waiting for the device */
    WEFT__DOING_WAITING,
    WEFT__DOING_EXCHANGE, /* gradients of several devices and processes */
    WEFT__DOING_COMPILE,
    WEFT__DOING_RUN,
    WEFT__DOING_COUNT
} weft__activity;

/* A program that ran. The program may be freed before the profile. */
typedef struct profile_program {
    size_t first; /* its first command in weft_profile.commands */
    int count;
    uint64_t runs, timed;
    double seconds; /* seconds of all runs */
} profile_program;

/* An event of the trace: what happened when. */
typedef struct profile_event {
    size_t command; /* SIZE_MAX: the host, which did `activity` */
    weft__activity activity;
    double start_ns, end_ns;
} profile_event;

/* Transfers between host and device, and submissions. */
typedef struct weft__traffic {
    uint64_t uploads, downloads, bytes_up, bytes_down, submissions;
} weft__traffic;

struct weft_profile {
    weft_context *ctx;
    weft_profile_options options;
    uint64_t number; /* of this profile in its context; a program's profile_number belongs to it */
    bool running;
    weft_arena names;
    weft_profile_entry *commands; /* commands of all programs; flops and bytes are of one call */
    size_t n_commands, command_capacity;
    profile_program *programs;
    size_t n_programs, program_capacity;
    profile_event *events;
    size_t n_events, event_capacity;
    weft_profile_entry *entries; /* the array that weft_profile_entries returned last */
    weft__activity doing;
    double started_ns, since_ns;
    double ns[WEFT__DOING_COUNT];
    double peak_flops[WEFT_DTYPE_COUNT], peak_bytes; /* per second; 0: not measured */
    weft__traffic before, after;                     /* the device's counts at start and at stop */
};

/* ---- profile.c ---- */

double weft__profile_now(void); /* nanoseconds of a monotonic clock */

/* What weft__profile_enter hands to weft__profile_leave. */
typedef struct weft__span {
    weft__activity outer;
    bool profiled;
    double from_ns;
} weft__span;

weft__span weft__profile_switch(weft_profile *profile, weft__activity to);
void weft__profile_back(weft_profile *profile, weft__span span);

/* From here to the matching leave the host does `what`. Without a profile this costs one comparison. */
static inline weft__span weft__profile_enter(const weft_context *ctx, weft__activity what) {
    weft_profile *profile = ctx && ctx->compiler ? ctx->compiler->profile : NULL;
    return profile ? weft__profile_switch(profile, what) : (weft__span){WEFT__DOING_HOST, false, 0};
}
static inline void weft__profile_leave(const weft_context *ctx, weft__span span) {
    if (span.profiled && ctx->compiler->profile) weft__profile_back(ctx->compiler->profile, span);
}

/* Runs a program whose slots are bound, and adds its times to the profile. */
weft_status weft__profile_run(weft_profile *profile, weft_program *program);

/* Returns the transfers since the profile started. */
weft__traffic weft__profile_traffic(const weft_profile *profile);

/* Merges entries that agree in name, stage and path, and sorts them by time, longest first. With `alike`,
 * paths that differ only in numbers agree. Returns the number of entries left. */
size_t weft__profile_merge(weft_profile_entry *entries, size_t count, bool alike);

/* ---- account.c ---- */

/* Writes the path of similar layers: "h.11.mlp" becomes "h.*.mlp". */
void weft__path_form(const char *path, char *form, size_t size);

/* ---- peaks.c ---- */

/* Lower bound of the seconds that the device needs for the entry's operations and bytes. 0: not measured. */
double weft__profile_bound(const weft_profile *profile, const weft_profile_entry *entry);

/* ---- profile_work.c ---- */

/* The dtype in which a heavy operation computes; f32 for all other commands. */
weft_dtype weft__command_dtype(const weft_command *command);
/* Operations and bytes of one call of a command. */
void weft__command_work(const weft_command *command, double *flops, double *bytes);
weft_work weft__command_kind(const weft_command *command);
/* Work of one run of a program. */
weft_program_work weft__program_work(const weft_program *program);

/* The first bytes of a trace. */
#define WEFT__TRACE_BEGIN "{\"otherData\": {\"writer\": \"weft profile\"}, "

#endif
