/* weft sweep: a search for good values of the configuration. Trains a run for each combination, and shows
 * them sorted. Must not know: how runs are started (jobs.c), how values are combined (sweep_axes.c). Read
 * next: sweep_axes.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/grid.h"
#include "cli/jobs.h"
#include "cli/sweep_axes.h"
#include "train/report/overlay.h"

enum { CURVES_MOST = 24 }; /* more curves in a chart cannot be told apart */

typedef struct sweep {
    weft__jobs jobs;
    weft__axes axes;
    const weft__job **sorted; /* [jobs.count], the best first */
} sweep;

/* ---- points ---- */

/* Adds a run for the point, unless there is one with the same values. */
static weft_status add_point(sweep *s, const weft__point *point) {
    const char *changes[WEFT__AXES_MOST];
    char name[256];
    weft__axes_name(&s->axes, point, name);
    for (size_t a = 0; a < s->axes.count; a++) changes[a] = point->changes[a];
    for (size_t i = 0; i < s->jobs.count; i++) {
        const weft__job *job = &s->jobs.items[i];
        bool same = true;
        if (strcmp(job->name, name) != 0) continue;
        for (size_t a = 0; a < s->axes.count; a++)
            same = same && strcmp(job->changes.values[a], changes[a]) == 0;
        if (same) return WEFT_OK;
        return weft__fail(NULL, WEFT_ERR_ARGUMENT,
                          "sweep: two combinations would have the same folder, %s: write each value once",
                          name);
    }
    return weft__jobs_add(&s->jobs, name, changes, s->axes.count);
}

static weft_status prepare_sweep(sweep *s, const weft__repeated *texts, int64_t random, int64_t seed) {
    int64_t count;
    WEFT_TRY(weft__axes_read(texts, &s->axes));
    WEFT_TRY(weft__axes_points(&s->axes, random, &count));
    weft__point *point = weft__alloc(NULL, sizeof *point);
    if (!point) return weft__fail_oom(NULL, sizeof *point, "the values of a run");
    weft_status status = WEFT_OK;
    for (int64_t i = 0; i < count && status == WEFT_OK; i++) {
        weft__axes_point(&s->axes, random > 0, (uint64_t)seed, i, point);
        status = add_point(s, point);
    }
    weft__free(NULL, point);
    return status == WEFT_OK ? weft__jobs_check(&s->jobs) : status;
}

/* ---- the end ---- */

static int by_result(const void *a, const void *b) {
    const weft__job *x = *(const weft__job *const *)a, *y = *(const weft__job *const *)b;
    if (weft__facts_better(&x->facts, &y->facts)) return -1;
    if (weft__facts_better(&y->facts, &x->facts)) return 1;
    return weft__natural_order(x->name, y->name);
}

/* Runs that diverged have no result that counts. */
static bool is_sound(const weft__job *job) { return strcmp(job->facts.summary.status, "diverged") != 0; }

static weft_status sort_points(sweep *s) {
    s->sorted = weft__array(NULL, s->jobs.count, sizeof *s->sorted);
    if (!s->sorted) return weft__fail_oom(NULL, s->jobs.count * sizeof *s->sorted, "the order of the runs");
    for (size_t i = 0; i < s->jobs.count; i++) {
        weft__job *job = &s->jobs.items[i];
        if (!is_sound(job)) job->facts.measure = NULL;
        s->sorted[i] = job;
    }
    qsort(s->sorted, s->jobs.count, sizeof *s->sorted, by_result);
    return WEFT_OK;
}

static weft_status print_points(const sweep *s) {
    char text[WEFT__FACT_TEXT], number[24];
    weft__grid grid = {.columns = s->axes.count + 4};
    for (size_t a = 0; a < s->axes.count; a++) weft__grid_put(&grid, "%s", s->axes.items[a].label);
    static const char *const heads[] = {"result", "validation loss", "time", "status"};
    for (size_t i = 0; i < 4; i++) weft__grid_put(&grid, "%s", heads[i]);
    for (size_t i = 0; i < s->jobs.count; i++) {
        const weft__job *job = s->sorted[i];
        for (size_t a = 0; a < s->axes.count; a++)
            weft__grid_put(&grid, "%s", weft__axis_value(job->changes.values[a]));
        weft__grid_put(&grid, "%s", weft__facts_result(&job->facts, text));
        weft__grid_put(&grid, "%s", weft__short_number(job->facts.summary.results.val_loss, number));
        weft__grid_put(&grid, "%s", weft__facts_time(job->facts.summary.seconds, text));
        weft__grid_put(&grid, "%s", job->facts.summary.status);
    }
    const weft_status status = grid.status;
    weft__print(stdout, "\n");
    if (status == WEFT_OK) weft__grid_print(stdout, &grid, weft__grid_room(stdout));
    weft__grid_free(&grid);
    return status;
}

/* ---- the page ---- */

/* Fills x with the values of a key, or their logarithms if they span a factor of 10. Returns the label of the
 * axis, or NULL if the values are no numbers. */
static const char *scatter_axis(const sweep *s, size_t axis, double *x, char label[96]) {
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < s->jobs.count; i++) {
        if (!weft__axis_number(s->sorted[i]->changes.values[axis], &x[i])) return NULL;
        low = fmin(low, x[i]);
        high = fmax(high, x[i]);
    }
    const bool logarithmic = low > 0 && high >= 10 * low;
    for (size_t i = 0; i < s->jobs.count && logarithmic; i++) x[i] = log10(x[i]);
    snprintf(label, 96, "%s%s", logarithmic ? "log10 of " : "",
             weft__config_key_name(s->axes.items[axis].key));
    return low < high ? label : NULL;
}

static weft_status draw_sweep(const sweep *s, const char *path) {
    const size_t n = s->jobs.count;
    char labels[WEFT__AXES_MOST][96], titles[WEFT__AXES_MOST][128];
    weft__scatter scatters[WEFT__AXES_MOST];
    size_t count = 0;
    double *values = weft__array(NULL, n, (s->axes.count + 1) * sizeof *values);
    weft__overlaid *curves = weft__array(NULL, n, sizeof *curves);
    weft_status status = values && curves ? WEFT_OK : weft__fail_oom(NULL, n * sizeof *curves, "the curves");
    for (size_t i = 0; i < n && status == WEFT_OK; i++) {
        curves[i] = (weft__overlaid){s->sorted[i]->name, &s->sorted[i]->facts.history};
        values[i] = s->sorted[i]->facts.measure ? s->sorted[i]->facts.value : (double)NAN;
    }
    for (size_t a = 0; a < s->axes.count && status == WEFT_OK; a++) {
        double *x = values + (a + 1) * n;
        const char *label = scatter_axis(s, a, x, labels[a]);
        if (!label || !s->sorted[0]->facts.measure) continue;
        snprintf(titles[a], sizeof titles[a], "Validation %s over %s", s->sorted[0]->facts.measure->label,
                 weft__config_key_name(s->axes.items[a].key));
        scatters[count++] = (weft__scatter){titles[a], label, x, values, n};
    }
    if (status == WEFT_OK)
        status = weft__overlay_write(path, s->jobs.dir, curves, n < CURVES_MOST ? n : CURVES_MOST, scatters,
                                     count);
    weft__free(NULL, values);
    weft__free(NULL, curves);
    return status;
}

/* ---- JSON, and what comes next ---- */

static json_t *point_json(const sweep *s, const weft__job *job) {
    char dir[4096];
    double number;
    if (!weft__join(dir, sizeof dir, s->jobs.dir, job->name)) return NULL;
    json_t *object = weft__facts_json(dir, &job->facts), *values = json_object();
    for (size_t a = 0; a < s->axes.count; a++) {
        const char *value = weft__axis_value(job->changes.values[a]);
        json_object_set_new(values, weft__config_key_name(s->axes.items[a].key),
                            weft__axis_number(job->changes.values[a], &number) ? json_real(number)
                                                                               : json_string(value));
    }
    json_object_set_new(object, "values", values);
    return object;
}

static weft_status write_sweep(const sweep *s) {
    weft__json json;
    weft__json_build(&json, NULL);
    json_t *runs = json_array();
    for (size_t i = 0; i < s->jobs.count; i++) json_array_append_new(runs, point_json(s, s->sorted[i]));
    return weft__jobs_write(&s->jobs, "sweep.json", &json,
                            json_pack("{s:s, s:o}", "folder", s->jobs.dir, "runs", runs));
}

/* Prints the best point, the command that uses it, and the command that trains with its values. */
static void conclude_sweep(const sweep *s, const char *page) {
    const weft__job *best = s->sorted[0];
    char text[WEFT__FACT_TEXT], dir[4096];
    const weft__config task = {.task = (int)s->jobs.task};
    weft__print(stdout, "\nplots: %s\n", page);
    if (!best->facts.measure || !weft__join(dir, sizeof dir, s->jobs.dir, best->name)) return;
    weft__print(stdout, "best: %s with", weft__facts_result(&best->facts, text));
    for (size_t a = 0; a < s->axes.count; a++) weft__print(stdout, " %s", best->changes.values[a]);
    weft__print(stdout, "\n");
    weft__cli_next(&task, dir);
    weft__print(stdout, "to train with these values: ");
    weft__jobs_print_command(&s->jobs, "train");
    for (size_t a = 0; a < s->axes.count; a++) {
        weft__print(stdout, " --set");
        weft__print_argument(stdout, best->changes.values[a]);
    }
    weft__print(stdout, "\n");
}

static weft_status tell_sweep(sweep *s) {
    char page[4096];
    WEFT_TRY(sort_points(s));
    if (!weft__join(page, sizeof page, s->jobs.dir, "sweep.html"))
        return weft__fail(NULL, WEFT_ERR_ARGUMENT, "%s: the path is too long", s->jobs.dir);
    if (!s->jobs.json) WEFT_TRY(print_points(s));
    WEFT_TRY(draw_sweep(s, page));
    WEFT_TRY(write_sweep(s));
    if (!s->jobs.json) conclude_sweep(s, page);
    return WEFT_OK;
}

/* ---- the command ---- */

/* If the first argument is a list of values, the configuration is that of WEFT_CONFIG. */
static void find_config(weft__wanted *wanted, const char *usual, weft__repeated *texts) {
    if (!wanted->config || wanted->config == usual || !strchr(wanted->config, '=')) return;
    if (texts->count == WEFT__REPEATED_MAX) return;
    memmove(texts->values + 1, texts->values, texts->count++ * sizeof *texts->values);
    texts->values[0] = wanted->config;
    wanted->config = usual;
}

int weft__command_sweep(const weft__command *command, int argc, char **argv) {
    const char *usual = getenv("WEFT_CONFIG");
    sweep s = {.jobs = {.wanted.config = usual, .argc = argc, .argv = argv}};
    weft__repeated texts = {0};
    int64_t random = 0, seed = 1;
    char type[32], stem[48];
    int code = 0;
    const weft__option options[] = {
        WEFT__CONFIG_OPTIONS(&s.jobs.wanted),
        {"[KEY=VALUES ...]", WEFT__OPTION_ARGS, &texts,
         "keys of the configuration, each with the values to try"},
        {"--random N", WEFT__OPTION_INT, &random, "try N combinations that are drawn at random"},
        {"--seed S", WEFT__OPTION_INT, &seed,
         "the seed of --random; default: 1. With the same seed, a larger N adds combinations"},
        WEFT__JOBS_OPTIONS(&s.jobs),
    };
    if (!weft__arguments(command, argc, argv, options, sizeof options / sizeof *options, &code)) return code;
    find_config(&s.jobs.wanted, usual, &texts);
    if (!weft__cli_has_config(command, &s.jobs.wanted)) return WEFT__EXIT_USAGE;
    if (texts.count == 0) {
        weft__complain("sweep: name keys and the values to try, such as optimizer.lr=0.001,0.01,0.1");
        return WEFT__EXIT_USAGE;
    }
    weft_status status = prepare_sweep(&s, &texts, random, seed);
    if (status == WEFT_OK) {
        snprintf(stem, sizeof stem, "sweep-%s",
                 weft__config_choice(WEFT__KEY_model_type, (int)s.jobs.model, type));
        code = weft__jobs_run(&s.jobs, stem);
        if (code == WEFT__EXIT_DONE) status = tell_sweep(&s);
    }
    if (status != WEFT_OK) code = weft__give_up(NULL, status);
    weft__free(NULL, s.sorted);
    weft__axes_free(&s.axes);
    weft__jobs_free(&s.jobs);
    return code;
}
