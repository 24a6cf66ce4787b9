/* A profile as text: the table of its entries, and the trace for Perfetto. Must not know: how it was
 * collected. Read next: src/train/analysis/profile.c. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "compiler/profile/profile.h"

#define NAME(name, text) text,
const char *weft_stage_name(weft_stage stage) {
    static const char *const names[] = {WEFT_STAGE_LIST(NAME)};
    return (unsigned)stage < WEFT_STAGE_COUNT ? names[stage] : "?";
}

const char *weft_work_name(weft_work work) {
    static const char *const names[] = {WEFT_WORK_LIST(NAME)};
    return (unsigned)work < WEFT_WORK_COUNT ? names[work] : "?";
}
#undef NAME

/* ---- the table ---- */

/* Writes a path. If it stands for several paths, its numbers become "*". */
static void say_path(weft_text *t, const char *path, bool several) {
    for (const char *c = path; *c; c++) {
        bool digit = several && *c >= '0' && *c <= '9';
        if (!digit) weft__put(t, "%c", *c);
        if (digit && (c == path || c[-1] < '0' || c[-1] > '9')) weft__put(t, "*");
    }
}

/* Digits after the point of microseconds, in a table with this total of seconds. */
static int decimals(double seconds) { return seconds < 1e-4 ? 3 : 1; }

static void say_entry(weft_text *t, const weft_profile_entry *e, double steps, double total) {
    double calls = (double)e->calls / steps;
    weft__put(t, "%11.*f %6.1f %7.*f ", decimals(total / steps), e->seconds / steps * 1e6,
              e->seconds / total * 100, calls < 10 && calls != (double)(int)calls ? 1 : 0, calls);
    weft__put(t, "%8.1f %7.2f ", e->flops / e->seconds / 1e9, e->bytes / e->seconds / 1e9);
    if (e->bound > 0)
        weft__put(t, "%6.0f  ", e->bound / e->seconds * 100);
    else
        weft__put(t, "%6s  ", "-");
    weft__put(t, "%-9s  %s", weft_stage_name(e->stage), e->name);
    if (*e->path) weft__put(t, "  # ");
    say_path(t, e->path, (double)e->calls > steps);
    weft__put(t, "\n");
}

#define ABOVE     1.2 /* of the bound's rate: more than noise */
#define FAR_ABOVE 20  /* no cache is so much faster than memory */

/* Writes the peak rates that the bound uses. */
static void say_peaks(weft_text *t, const weft_profile *p) {
    if (!(p->peak_bytes > 0)) return;
    weft__put(t, "bound: the longer of operations (");
    for (int d = 0, said = 0; d < WEFT_DTYPE_COUNT; d++)
        if (p->peak_flops[d] > 0)
            weft__put(t, "%s%s at %.0f GFLOP/s", said++ ? ", " : "", weft_dtype_name((weft_dtype)d),
                      p->peak_flops[d] / 1e9);
    weft__put(t, ") and bytes (%.1f GB/s), as measured with large matmuls and memory moves\n",
              p->peak_bytes / 1e9);
}

/* Explains kernels that were faster than their bound. */
static void say_above(weft_text *t, const weft_profile *p, size_t count) {
    double most = 0;
    for (size_t i = 0; i < count; i++) {
        const weft_profile_entry *e = &p->entries[i];
        if (e->seconds > 0 && e->bound / e->seconds > most) most = e->bound / e->seconds;
    }
    if (most < ABOVE) return;
    weft__put(t, most < FAR_ABOVE
                     ? "above 100 %%bound: the data lay in a cache, which is faster than memory\n"
                     : "far above 100 %%bound: the machine was busy when the bound's rates were measured; "
                       "profile again\n");
}

int64_t weft_profile_text(weft_profile *p, uint64_t steps, char *buffer, size_t size) {
    size_t count = 0;
    if (!weft_profile_entries(p, &count)) return -1;
    count = weft__profile_merge(p->entries, count, true);
    weft_text t = weft__text(buffer, size);
    double per = steps > 0 ? (double)steps : 1, total = 0, bound = 0;
    for (size_t i = 0; i < count; i++) {
        total += p->entries[i].seconds;
        bound += p->entries[i].bound;
    }
    say_peaks(&t, p);
    weft__put(&t, "%11s %6s %7s %8s %7s %6s  %-9s  %s\n", steps > 0 ? "us a step" : "us", "%", "calls",
              "GFLOP/s", "GB/s", "%bound", "stage", "kernel  # layer");
    for (size_t i = 0; i < count; i++)
        if (p->entries[i].seconds > 0) say_entry(&t, &p->entries[i], per, total);
    weft__put(&t, "%11.*f %6.1f in all", decimals(total / per), total / per * 1e6, total > 0 ? 100.0 : 0);
    if (bound > 0 && total > 0)
        weft__put(&t, "; the bound is %.*f us, %.0f %%", decimals(total / per), bound / per * 1e6,
                  bound / total * 100);
    weft__put(&t, "\n");
    say_above(&t, p, count);
    return (int64_t)t.length;
}

/* ---- the trace: Chrome's Trace Event Format, complete events ("ph": "X"), times in microseconds ---- */

static json_t *event_json(const weft_profile *p, const profile_event *event) {
    static const char *const doing[] = {
        "host",    "data",     "upload",  "download", "waiting for the device",
        "waiting", "exchange", "compile", "run"};
    double from = (event->start_ns - p->started_ns) / 1e3, length = (event->end_ns - event->start_ns) / 1e3;
    if (event->command == SIZE_MAX)
        return json_pack("{s:s, s:s, s:i, s:i, s:f, s:f}", "ph", "X", "name", doing[event->activity], "pid",
                         1, "tid", 1, "ts", from, "dur", length);
    const weft_profile_entry *e = &p->commands[event->command];
    return json_pack("{s:s, s:s, s:s, s:i, s:i, s:f, s:f, s:{s:s, s:f, s:f}}", "ph", "X", "name", e->name,
                     "cat", weft_stage_name(e->stage), "pid", 1, "tid", 2, "ts", from, "dur", length, "args",
                     "layer", e->path, "flops", e->flops, "bytes", e->bytes);
}

/* Writes a value as a line of the file, and closes `json`. A failed write sets errno and the file's error. */
static weft_status write_json(FILE *file, weft__json *json, const json_t *object, const char *after) {
    char *text;
    weft_context *ctx = json->ctx;
    WEFT_TRY(weft__json_text(json, object, JSON_COMPACT | JSON_REAL_PRECISION(12), "an event of a profile",
                             &text, NULL));
    fprintf(file, "%s%s", text, after);
    weft__free(ctx, text);
    return WEFT_OK;
}

static weft_status write_track(FILE *file, weft_context *ctx, int id, const char *name, const char *after) {
    weft__json json;
    weft__json_build(&json, ctx);
    json_t *track = json_pack("{s:s, s:s, s:i, s:i, s:{s:s}}", "ph", "M", "name", "thread_name", "pid", 1,
                              "tid", id, "args", "name", name);
    return write_json(file, &json, track, after);
}

static weft_status write_trace(FILE *file, const weft_profile *p) {
    fputs(WEFT__TRACE_BEGIN "\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n", file);
    WEFT_TRY(write_track(file, p->ctx, 1, "host", ",\n"));
    for (size_t i = 0; i < p->n_events && !ferror(file); i++) {
        weft__json json;
        weft__json_build(&json, p->ctx);
        WEFT_TRY(write_json(file, &json, event_json(p, &p->events[i]), ",\n"));
    }
    return write_track(file, p->ctx, 2, weft_device_of(p->ctx), "\n]}\n");
}

weft_status weft_profile_trace(const weft_profile *profile, const char *path) {
    WEFT_NEED(NULL, profile);
    WEFT_NEED(profile->ctx, path);
    if (!profile->options.trace)
        return weft__fail(profile->ctx, WEFT_ERR_STATE,
                          "weft_profile_trace: the profile was started without options.trace");
    FILE *file = fopen(path, "w");
    if (!file) return weft__fail(profile->ctx, WEFT_ERR_IO, "%s: %s", path, strerror(errno));
    const weft_status status = write_trace(file, profile);
    bool written = !ferror(file);
    int cause = errno;
    if (fclose(file) != 0 && written) {
        written = false;
        cause = errno;
    }
    if (status != WEFT_OK) return status;
    return written ? WEFT_OK : weft__fail(profile->ctx, WEFT_ERR_IO, "%s: %s", path, strerror(cause));
}
