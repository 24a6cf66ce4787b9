/* The profile of a context. The host's time is counted by a clock that switches from activity to activity. It
 * never nests, so the parts add up to the whole. The device's time is counted by the timings of commands.
 * Must not know: what commands are (profile_work.c), how a profile is shown. Read next: profile_text.c.
 *
 *     time      ------------------------------------------------>
 *     doing     HOST | COMPILE | HOST | RUN | UPLOAD | RUN | HOST */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "compiler/profile/profile.h"

enum { EVENTS_MOST = 1 << 20 }; /* of a trace; later events are left out */

double weft__profile_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* ---- start and stop ---- */

static weft__traffic traffic_now(const weft_profile *p) {
    const weft_device *d = p->ctx->device;
    return (weft__traffic){d->uploads, d->downloads, d->bytes_up, d->bytes_down, d->submissions};
}

weft__traffic weft__profile_traffic(const weft_profile *p) {
    const weft__traffic now = p->running ? traffic_now(p) : p->after, *was = &p->before;
    return (weft__traffic){now.uploads - was->uploads, now.downloads - was->downloads,
                           now.bytes_up - was->bytes_up, now.bytes_down - was->bytes_down,
                           now.submissions - was->submissions};
}

weft_status weft_profile_start(weft_context *ctx, const weft_profile_options *options,
                               weft_profile **profile) {
    static const weft_profile_options none = {0};
    WEFT_NEED(NULL, ctx);
    WEFT_NEED(ctx, profile);
    *profile = NULL;
    if (!options) options = &none;
    if (options->every < 0)
        return weft__fail(ctx, WEFT_ERR_ARGUMENT,
                          "weft_profile_start: options.every is %d; it must not be negative", options->every);
    if (ctx->compiler->profile)
        return weft__fail(ctx, WEFT_ERR_STATE, "weft_profile_start: the context is already being profiled");
    weft_profile *p = weft__zalloc(ctx, sizeof *p);
    if (!p) return weft__fail_oom(ctx, sizeof *p, "a profile");
    p->ctx = ctx;
    p->options = *options;
    p->number = ++ctx->compiler->profiles;
    p->running = true;
    p->before = traffic_now(p);
    weft__arena_init(&p->names, ctx);
    p->started_ns = p->since_ns = weft__profile_now();
    *profile = ctx->compiler->profile = p;
    return WEFT_OK;
}

void weft_profile_stop(weft_profile *p) {
    if (!p || !p->running) return;
    weft__profile_switch(p, WEFT__DOING_HOST);
    p->after = traffic_now(p);
    p->running = false;
    p->ctx->compiler->profile = NULL;
}

void weft_profile_free(weft_profile *p) {
    if (!p) return;
    weft_context *ctx = p->ctx;
    weft_profile_stop(p);
    weft__arena_free(&p->names);
    weft__free(ctx, p->commands);
    weft__free(ctx, p->programs);
    weft__free(ctx, p->events);
    weft__free(ctx, p->entries);
    weft__free(ctx, p);
}

/* ---- the host's clock ---- */

weft__span weft__profile_switch(weft_profile *p, weft__activity to) {
    double now = weft__profile_now();
    weft__span span = {p->doing, true, now};
    p->ns[p->doing] += now - p->since_ns;
    p->since_ns = now;
    p->doing = to;
    return span;
}

static void add_event(weft_profile *p, size_t command, double from, double to) {
    if (!p->options.trace || p->n_events == EVENTS_MOST ||
        !weft__grow(p->ctx, &p->events, &p->event_capacity, p->n_events, sizeof *p->events))
        return;
    p->events[p->n_events++] = (profile_event){command, p->doing, from, to};
}

void weft__profile_back(weft_profile *p, weft__span span) {
    weft__activity was = p->doing;
    weft__profile_switch(p, was);
    add_event(p, SIZE_MAX, span.from_ns, p->since_ns);
    p->doing = span.outer;
}

/* ---- programs ---- */

static weft_status add_commands(weft_profile *p, const weft_program *program) {
    for (int i = 0; i < program->commands.count; i++) {
        const weft_command *command = &program->commands.list[i];
        char name[WEFT_COMMAND_TEXT];
        const char *path;
        weft__command_text(command, name, &path);
        size_t bytes = strlen(name) + 1, path_bytes = strlen(path) + 1;
        char *text = weft__arena_alloc(&p->names, bytes + path_bytes);
        if (!text ||
            !weft__grow(p->ctx, &p->commands, &p->command_capacity, p->n_commands, sizeof *p->commands))
            return weft__fail_oom(p->ctx, bytes + path_bytes, "a profile");
        weft_profile_entry *entry = &p->commands[p->n_commands++];
        *entry = (weft_profile_entry){.name = memcpy(text, name, bytes),
                                      .path = memcpy(text + bytes, path, path_bytes),
                                      .stage = (weft_stage)program->stages[i],
                                      .work = weft__command_kind(command),
                                      .dtype = weft__command_dtype(command)};
        weft__command_work(command, &entry->flops, &entry->bytes);
    }
    return WEFT_OK;
}

/* Finds the program's number in this profile. Adds the program at its first run. */
static weft_status number_of(weft_profile *p, weft_program *program, size_t *number) {
    *number = program->profile.number;
    if (program->profile.last == p->number) return WEFT_OK;
    if (!weft__grow(p->ctx, &p->programs, &p->program_capacity, p->n_programs, sizeof *p->programs))
        return weft__fail_oom(p->ctx, sizeof *p->programs, "a profile");
    profile_program added = {.first = p->n_commands, .count = program->commands.count};
    weft_status status = add_commands(p, program);
    if (status != WEFT_OK) {
        p->n_commands = added.first;
        return status;
    }
    *number = program->profile.number = p->n_programs++;
    program->profile.last = p->number;
    p->programs[*number] = added;
    return WEFT_OK;
}

/* Is this run timed? Of every N runs, the second one is. The very first run is timed as well, but it touches
 * new memory, so the next timed run replaces it. */
static bool is_timed(const weft_profile *p, const profile_program *program) {
    return p->options.every <= 1 || program->runs == 0 || program->runs % (uint64_t)p->options.every == 1;
}

/* Adds the device's timings of a run. The device may have a clock of its own, so the run is assumed to begin
 * with its first command. */
static void take_timings(weft_profile *p, profile_program *program, const weft_timing *timings,
                         double from_ns) {
    double shift = program->count ? from_ns - timings[0].start_ns : 0;
    for (int i = 1; i < program->count; i++)
        if (from_ns - timings[i].start_ns > shift) shift = from_ns - timings[i].start_ns;
    if (p->options.every > 1 && program->runs == 1) {
        program->timed = 0;
        for (int i = 0; i < program->count; i++)
            p->commands[program->first + (size_t)i].calls = 0,
                                         p->commands[program->first + (size_t)i].seconds = 0;
    }
    program->timed++;
    for (int i = 0; i < program->count; i++) {
        size_t at = program->first + (size_t)i;
        double ns = timings[i].end_ns - timings[i].start_ns;
        p->commands[at].calls++;
        if (ns > 0) p->commands[at].seconds += 1e-9 * ns;
        add_event(p, at, timings[i].start_ns + shift, timings[i].end_ns + shift);
    }
}

weft_status weft__profile_run(weft_profile *p, weft_program *program) {
    weft_device *device = p->ctx->device;
    size_t number = 0;
    WEFT_TRY(number_of(p, program, &number));
    profile_program *booked = &p->programs[number];
    const bool aloud = p->ctx->compiler->debug & DEBUG_LAUNCH;
    bool timed = is_timed(p, booked) || aloud;
    if (timed) weft__device_set_timing(device, true);
    weft__span span = weft__profile_switch(p, WEFT__DOING_RUN);
    weft_status status = device->ops->run(device, program->executable, program->slots, 1);
    if (status == WEFT_OK && timed) status = device->ops->synchronize(device);
    weft__profile_back(p, span);
    const weft_timing *timings = timed ? weft__device_timings(device, program->executable) : NULL;
    if (status == WEFT_OK && timings) take_timings(p, booked, timings, span.from_ns);
    if (status == WEFT_OK && aloud) weft__program_say(program, timings);
    if (timed) weft__device_set_timing(device, false);
    booked->runs++;
    booked->seconds += 1e-9 * (p->since_ns - span.from_ns);
    return status;
}

/* Seconds that the device was busy with a program, estimated from its timed runs. */
static double busy_with(const weft_profile *p, const profile_program *program) {
    double timed = 0;
    for (int i = 0; i < program->count; i++) timed += p->commands[program->first + (size_t)i].seconds;
    return program->timed ? timed / (double)program->timed * (double)program->runs : 0;
}

/* Divides a program's time among kinds of work and stages, as in its timed runs. Without a timed run it
 * counts as other work of the forward pass. `waited` is the program's part of the time in which the host
 * waited for the device outside of runs. */
static void add_program(const weft_profile *p, const profile_program *program, double waited,
                        weft_profile_times *times) {
    const double seconds = program->seconds + waited;
    double timed = 0;
    for (int i = 0; i < program->count; i++) timed += p->commands[program->first + (size_t)i].seconds;
    times->runs += program->runs;
    times->timed += program->timed;
    if (!(timed > 0)) {
        times->work[WEFT_WORK_OTHER] += seconds;
        times->stage[WEFT_STAGE_FORWARD] += seconds;
    }
    for (int i = 0; timed > 0 && i < program->count; i++) {
        const weft_profile_entry *command = &p->commands[program->first + (size_t)i];
        times->work[command->work] += command->seconds / timed * seconds;
        times->stage[command->stage] += command->seconds / timed * seconds;
    }
}

void weft_profile_total(const weft_profile *p, weft_profile_times *times) {
    if (!times) return;
    *times = (weft_profile_times){0};
    if (!p) return;
    double ns[WEFT__DOING_COUNT];
    memcpy(ns, p->ns, sizeof ns);
    if (p->running) ns[p->doing] += weft__profile_now() - p->since_ns;
    double busy = 0;
    const double waited = 1e-9 * ns[WEFT__DOING_DEVICE];
    for (size_t i = 0; i < p->n_programs; i++) busy += busy_with(p, &p->programs[i]);
    for (size_t i = 0; i < p->n_programs; i++)
        add_program(p, &p->programs[i], busy > 0 ? waited * busy_with(p, &p->programs[i]) / busy : 0, times);
    if (!(busy > 0)) {
        times->work[WEFT_WORK_OTHER] += waited;
        times->stage[WEFT_STAGE_FORWARD] += waited;
    }
    times->data = 1e-9 * ns[WEFT__DOING_DATA];
    times->upload = 1e-9 * ns[WEFT__DOING_UPLOAD];
    times->download = 1e-9 * ns[WEFT__DOING_DOWNLOAD];
    times->transfer = times->upload + times->download;
    times->waiting = 1e-9 * ns[WEFT__DOING_WAITING];
    times->exchange = 1e-9 * ns[WEFT__DOING_EXCHANGE];
    times->compile = 1e-9 * ns[WEFT__DOING_COMPILE];
    times->host = 1e-9 * ns[WEFT__DOING_HOST];
    times->total =
        times->data + times->transfer + times->waiting + times->exchange + times->compile + times->host;
    for (int w = 0; w < WEFT_WORK_COUNT; w++) times->total += times->work[w];
    times->context = p->ctx->open_seconds;
    times->busy = times->total > 0 ? busy / times->total : 0;
    const weft__traffic traffic = weft__profile_traffic(p);
    times->uploads = traffic.uploads;
    times->downloads = traffic.downloads;
    times->submissions = traffic.submissions;
    times->bytes_in_use = p->ctx->device->bytes_in_use;
    times->bytes_peak = p->ctx->device->bytes_peak;
}

/* Are two paths equal, or with `alike` equal except for their numbers? */
static bool same_path(const char *a, const char *b, bool alike) {
    if (!alike) return strcmp(a, b) == 0;
    for (;;) {
        if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
            while (isdigit((unsigned char)*a)) a++;
            while (isdigit((unsigned char)*b)) b++;
        }
        if (*a != *b) return false;
        if (!*a) return true;
        a++, b++;
    }
}

static int by_seconds(const void *a, const void *b) {
    double x = ((const weft_profile_entry *)a)->seconds, y = ((const weft_profile_entry *)b)->seconds;
    return (x < y) - (x > y);
}

size_t weft__profile_merge(weft_profile_entry *entries, size_t count, bool alike) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        const weft_profile_entry *e = &entries[i];
        size_t k = 0;
        while (k < kept && !(entries[k].stage == e->stage && strcmp(entries[k].name, e->name) == 0 &&
                             same_path(entries[k].path, e->path, alike)))
            k++;
        if (k == kept) {
            entries[kept++] = *e;
            continue;
        }
        entries[k].calls += e->calls;
        entries[k].seconds += e->seconds;
        entries[k].flops += e->flops;
        entries[k].bytes += e->bytes;
        entries[k].bound += e->bound;
    }
    qsort(entries, kept, sizeof *entries, by_seconds);
    return kept;
}

const weft_profile_entry *weft_profile_entries(weft_profile *p, size_t *count) {
    if (count) *count = 0;
    if (!p || !count) return NULL;
    weft__free(p->ctx, p->entries);
    p->entries = weft__array(p->ctx, p->n_commands + 1, sizeof *p->entries);
    if (!p->entries) {
        weft__fail_oom(p->ctx, p->n_commands * sizeof *p->entries, "the entries of a profile");
        return NULL;
    }
    for (size_t i = 0; i < p->n_commands; i++) {
        weft_profile_entry *e = &p->entries[i];
        *e = p->commands[i];
        double calls = (double)e->calls;
        e->flops *= calls;
        e->bytes *= calls;
        e->bound = weft__profile_bound(p, e);
    }
    *count = weft__profile_merge(p->entries, p->n_commands, false);
    return p->entries;
}
