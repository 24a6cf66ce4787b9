/* weft profile: shows where the time of training steps goes, by kernel and by stage. Must not know: how a
 * profile is collected. Read next: train/analysis/profile.c. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/cli.h"
#include "cli/profile.h"
#include "cli/run.h"
#include "compiler/profile/profile.h"
#include "io/publish.h"
#include "train/analysis/profile.h"
#include "train/run/output.h"

weft_status weft__print_profile(weft_profile *profile, uint64_t steps) {
    int64_t length = weft_profile_text(profile, steps, NULL, 0);
    char *text = length >= 0 ? weft__alloc(NULL, (size_t)length + 1) : NULL;
    if (!text) return weft__fail_oom(NULL, 0, "the text of a profile");
    weft_profile_text(profile, steps, text, (size_t)length + 1);
    weft__print(stdout, "%s", text);
    weft__free(NULL, text);
    return WEFT_OK;
}

/* Adds up the work of the commands of each stage. */
static void sum_stages(const weft_profile_entry *entries, size_t count, weft_profile_entry sums[]) {
    memset(sums, 0, WEFT_STAGE_COUNT * sizeof *sums);
    for (size_t i = 0; i < count; i++) {
        weft_profile_entry *sum = &sums[entries[i].stage];
        sum->flops += entries[i].flops;
        sum->bytes += entries[i].bytes;
        sum->bound += entries[i].bound;
    }
}

/* Lists all times of a step: the stages of the device, and what the host does before and after them. */
static void by_stage(const weft_profile_times *t, weft__shares *shares) {
    *shares = (weft__shares){.count = 0};
    weft__shares_add(shares, "data", t->data);
    for (int s = 0; s < WEFT_STAGE_COUNT; s++)
        weft__shares_add(shares, weft_stage_name((weft_stage)s), t->stage[s]);
    weft__shares_add(shares, "upload", t->upload);
    weft__shares_add(shares, "download", t->download);
    weft__shares_add(shares, "waiting", t->waiting);
    weft__shares_add(shares, "exchange", t->exchange);
    weft__shares_add(shares, "compile", t->compile);
    weft__shares_add(shares, "host", t->host);
}

static void print_stages(const weft__profiling *p, const weft_profile_entry sums[]) {
    weft__shares shares;
    double percent[WEFT__SHARES], steps = (double)p->steps;
    by_stage(&p->times, &shares);
    weft__shares_percent(&shares, percent);
    weft__print(stdout, "\n%-9s %11s %6s %10s %10s %8s %7s %6s\n", "stage", "us a step", "%", "MFLOP", "MB",
                "GFLOP/s", "GB/s", "%bound");
    for (size_t i = 0; i < shares.count; i++) {
        double seconds = shares.item[i].seconds;
        weft__print(stdout, "%-9s %11.1f %6.1f", shares.item[i].name, seconds / steps * 1e6, percent[i]);
        if (i >= 1 && i <= WEFT_STAGE_COUNT && seconds > 0) {
            const weft_profile_entry *sum = &sums[i - 1];
            weft__print(stdout, " %10.2f %10.2f %8.1f %7.2f %6.0f", sum->flops / steps / 1e6,
                        sum->bytes / steps / 1e6, sum->flops / seconds / 1e9, sum->bytes / seconds / 1e9,
                        sum->bound / seconds * 100);
        }
        weft__print(stdout, "\n");
    }
    weft__print(stdout, "%-9s %11.1f %6.1f\n", "in all", p->times.total / steps * 1e6, 100.0);
}

/* Two estimates for each part of a step: the time of the step without the part, and with the part at its
 * bound (Amdahl's law). */
typedef struct amdahl {
    weft__shares parts;
    double bound[WEFT_WORK_COUNT]; /* seconds at the bound, for the parts that are kinds of work */
} amdahl;

static amdahl amdahl_of(const weft__profiling *p, const weft_profile_entry *entries, size_t count) {
    amdahl a = {.parts = {.count = 0}};
    weft_profile_times t = p->times;
    double timed[WEFT_WORK_COUNT] = {0};
    t.context = 0;
    weft__shares_add_parts(&a.parts, &t);
    for (size_t i = 0; i < count; i++) {
        a.bound[entries[i].work] += entries[i].bound;
        timed[entries[i].work] += entries[i].seconds;
    }
    /* a part that is already faster than its bound keeps its time */
    for (int w = 0; w < WEFT_WORK_COUNT; w++)
        if (!(a.bound[w] < timed[w])) a.bound[w] = t.work[w];
    return a;
}

static void print_amdahl(const weft__profiling *p, const amdahl *a) {
    const double steps = (double)p->steps, total = weft__shares_total(&a->parts);
    double percent[WEFT__SHARES];
    weft__shares_percent(&a->parts, percent);
    weft__print(stdout, "\n%-13s %11s %6s %13s %7s %11s %7s\n", "part", "us a step", "%", "step without",
                "faster", "at its bound", "faster");
    for (size_t i = 0; i < a->parts.count; i++) {
        const double seconds = a->parts.item[i].seconds, without = total - seconds;
        if (!(seconds > 0)) continue;
        weft__print(stdout, "%-13s %11.1f %6.1f %13.1f", a->parts.item[i].name, seconds / steps * 1e6,
                    percent[i], without / steps * 1e6);
        if (without > 0) weft__print(stdout, " %6.2fx", total / without);
        if (i < WEFT_WORK_COUNT && without + a->bound[i] > 0)
            weft__print(stdout, " %11.1f %6.2fx", (without + a->bound[i]) / steps * 1e6,
                        total / (without + a->bound[i]));
        weft__print(stdout, "\n");
    }
}

/* A row for each process: where the time of its steps went. */
static void print_processes(const weft__profiling *p) {
    const double steps = (double)p->steps;
    if (!p->processes) return;
    weft__print(stdout, "\n%-7s %11s %11s %11s %11s %8s %9s  %s\n", "process", "us a step", "computing",
                "waiting", "hidden", "%hidden", "MiB", "machine");
    for (int i = 0; i < weft_process_group_size(p->group); i++) {
        const weft__process_profile *f = &p->processes[i];
        const double exchange = f->waiting + f->hidden;
        weft__print(stdout, "%-7d %11.1f %11.1f %11.1f %11.1f %8.0f %9.1f  %s\n", i, f->total / steps * 1e6,
                    (f->total - f->waiting) / steps * 1e6, f->waiting / steps * 1e6, f->hidden / steps * 1e6,
                    exchange > 0 ? 100 * f->hidden / exchange : 0, f->memory / 0x1p20,
                    weft_process_group_host(p->group, i));
    }
}

static void print_head(const weft__profiling *p) {
    char name[64];
    weft__model_name(p->loop.config, &p->loop.dataset, name);
    weft__print(stdout, "%s, %lld parameters, on %s: %llu steps after %llu\n", name,
                (long long)weft_parameter_elements(p->loop.model.module, false),
                weft_device_of(p->loop.model.ctx), (unsigned long long)p->steps,
                (unsigned long long)p->warmup);
    if (p->group)
        weft__print(stdout, "%d processes by %s; these are the tables of rank 0\n",
                    weft_process_group_size(p->group), weft_process_group_engine(p->group));
    weft__print(
        stdout,
        "%.3f s until the first step (%.3f s to open the device), which took %.3f s, %.3f s of them to "
        "compile\n",
        p->prepare, p->times.context, p->first_step, p->compile);
    const weft_profile_times *t = &p->times;
    const double steps = (double)p->steps;
    weft__print(stdout,
                "the device is busy %.0f %% of the time; of its memory %.1f MiB are in use, %.1f at most\n",
                100 * t->busy, (double)t->bytes_in_use / 0x1p20, (double)t->bytes_peak / 0x1p20);
    weft__print(stdout, "a step: %.2f uploads, %.2f downloads, %.2f programs\n\n", (double)t->uploads / steps,
                (double)t->downloads / steps, (double)t->submissions / steps);
}

/* ---- JSON ---- */

static json_t *entry_json(const weft_profile_entry *e, double steps) {
    return json_pack("{s:s, s:s, s:s, s:s, s:f, s:f, s:f, s:f, s:f}", "name", e->name, "layer", e->path,
                     "stage", weft_stage_name(e->stage), "work", weft_work_name(e->work), "calls",
                     (double)e->calls / steps, "seconds", e->seconds / steps, "flops", e->flops / steps,
                     "bytes", e->bytes / steps, "bound", e->bound / steps);
}

static json_t *part_json(const amdahl *a, size_t i, double steps) {
    const double seconds = a->parts.item[i].seconds, without = weft__shares_total(&a->parts) - seconds;
    json_t *object = json_pack("{s:f, s:f}", "seconds", seconds / steps, "step_without", without / steps);
    if (i < WEFT_WORK_COUNT)
        json_object_set_new(object, "step_at_bound", json_real((without + a->bound[i]) / steps));
    return object;
}

static json_t *processes_json(const weft__profiling *p, double steps) {
    json_t *list = json_array();
    for (int i = 0; p->processes && i < weft_process_group_size(p->group); i++) {
        const weft__process_profile *f = &p->processes[i];
        json_array_append_new(list, json_pack("{s:i, s:s, s:f, s:f, s:f, s:I}", "rank", i, "machine",
                                              weft_process_group_host(p->group, i), "seconds_per_step",
                                              f->total / steps, "waiting", f->waiting / steps, "hidden",
                                              f->hidden / steps, "memory_peak", (json_int_t)f->memory));
    }
    return list;
}

static weft_status cli_profile_print_json(const weft__profiling *p, const weft_profile_entry *entries,
                                          size_t count) {
    weft__shares shares;
    weft__json json;
    char *text;
    double steps = (double)p->steps;
    weft__json_build(&json, NULL);
    by_stage(&p->times, &shares);
    json_t *kernels = json_array(), *times = json_object();
    for (size_t i = 0; i < count; i++) json_array_append_new(kernels, entry_json(&entries[i], steps));
    for (size_t i = 0; i < shares.count; i++)
        json_object_set_new(times, shares.item[i].name, json_real(shares.item[i].seconds / steps));
    const amdahl a = amdahl_of(p, entries, count);
    json_t *parts = json_object();
    for (size_t i = 0; i < a.parts.count; i++)
        json_object_set_new(parts, a.parts.item[i].name, part_json(&a, i, steps));
    const weft_profile_times *t = &p->times;
    json_t *object =
        json_pack("{s:I, s:f, s:f, s:f, s:f, s:o, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:I, s:o, s:o}",
                  "steps", (json_int_t)p->steps, "seconds_per_step", p->times.total / steps, "prepare",
                  p->prepare, "first_step", p->first_step, "compile", p->compile, "parts", parts,
                  "peak_flops", p->peak_flops, "peak_bytes", p->peak_bytes, "context", t->context, "busy",
                  t->busy, "uploads", (double)t->uploads / steps, "downloads", (double)t->downloads / steps,
                  "submissions", (double)t->submissions / steps, "bytes_in_use", (json_int_t)t->bytes_in_use,
                  "bytes_peak", (json_int_t)t->bytes_peak, "stages", times, "kernels", kernels);
    if (p->processes) json_object_set_new(object, "processes", processes_json(p, steps));
    WEFT_TRY(
        weft__json_text(&json, object, JSON_INDENT(1) | JSON_REAL_PRECISION(9), "the profile", &text, NULL));
    weft__print(stdout, "%s\n", text);
    weft__free(NULL, text);
    return WEFT_OK;
}

static weft_status cli_profile_show(weft__profiling *p, bool json, const char *trace) {
    size_t count = 0;
    weft_profile_entry sums[WEFT_STAGE_COUNT];
    const weft_profile_entry *entries = weft_profile_entries(p->profile, &count);
    if (!entries) return WEFT_ERR_OOM;
    if (trace) WEFT_TRY(weft_profile_trace(p->profile, trace));
    if (json) return cli_profile_print_json(p, entries, count);
    sum_stages(entries, count, sums);
    const amdahl a = amdahl_of(p, entries, count);
    print_head(p);
    WEFT_TRY(weft__print_profile(p->profile, p->steps)); /* invalidates `entries` */
    print_stages(p, sums);
    print_amdahl(p, &a);
    print_processes(p);
    if (trace) weft__print(stdout, "\ntrace: %s (ui.perfetto.dev opens it)\n", trace);
    return WEFT_OK;
}

static bool wrote_trace(const char *path) { return weft__file_begins(path, WEFT__TRACE_BEGIN); }

static weft_status check_trace(const weft__wanted *wanted, const weft__config *config, bool force,
                               const char *trace) {
    weft__output output = {.command = "profile", .force = force, .wrote = wrote_trace};
    weft__output_reads(&output, wanted->config);
    weft__output_reads(&output, config->data_path);
    weft__output_reads(&output, config->model_init);
    WEFT_TRY(weft__output_file(&output, trace));
    if (force && !weft__is_stream(trace)) (void)unlink(trace); /* it may be read-only */
    return WEFT_OK;
}

/* Profiles in all processes that were started with this one. Rank 0 prints. */
static int profile_together(weft__profiling *p, weft__wanted *wanted, bool json, bool force,
                            const char *trace) {
    weft__config config;
    weft__config_init(&config);
    weft_status status = weft__cli_join(&config, wanted, &p->group);
    if (status == WEFT_OK) status = weft__cli_config(&config, wanted);
    if (status == WEFT_OK && trace && weft_process_group_rank(p->group) == 0)
        status = check_trace(wanted, &config, force, trace);
    status = weft__processes_agree(p->group, config.train_timeout, status, &p->silent);
    if (status == WEFT_OK) status = weft__profiling_run(p, &config);
    if (status == WEFT_OK && weft_process_group_rank(p->group) == 0)
        status = cli_profile_show(p, json, trace);
    int code = WEFT__EXIT_DONE;
    if (status != WEFT_OK) code = p->silent ? weft__exit_code(status) : weft__give_up(NULL, status);
    if (p->abandons) weft_process_group_abort(p->group, code);
    weft__profiling_free(p);
    weft_process_group_close(p->group);
    weft__config_free(&config);
    return code;
}

int weft__command_profile(const weft__command *command, int argc, char **argv) {
    weft__wanted wanted = {.config = getenv("WEFT_CONFIG")};
    const char *trace = NULL;
    int64_t steps = 20, warmup = 3;
    bool json = false, force = false;
    int code = 0;
    const weft__option options[] = {
        WEFT__CONFIG_OPTIONS(&wanted),
        WEFT__DEVICE_OPTION(&wanted.device),
        {"--steps N", WEFT__OPTION_INT, &steps, "steps to profile; default: 20"},
        {"--warmup N", WEFT__OPTION_INT, &warmup, "steps before the profiled ones; default: 3"},
        {"--trace FILE", WEFT__OPTION_TEXT, &trace, "write a trace for Perfetto"},
        WEFT__FORCE_OPTION(&force),
        {"--json", WEFT__OPTION_FLAG, &json, "print one JSON object"},
    };
    if (!weft__arguments(command, argc, argv, options, sizeof options / sizeof *options, &code)) return code;
    if (!weft__cli_has_config(command, &wanted)) return WEFT__EXIT_USAGE;
    if (steps < 1 || steps > 1000000 || warmup < 1 || warmup > 1000000) {
        weft__complain("profile: --steps and --warmup must be 1 to 1000000");
        return WEFT__EXIT_USAGE;
    }
    weft__profiling profiling = {
        .warmup = (uint64_t)warmup, .steps = (uint64_t)steps, .trace = trace != NULL};
    return profile_together(&profiling, &wanted, json, force, trace);
}
