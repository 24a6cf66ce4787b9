/* weft compare: shows how the configurations of runs differ, and their results side by side. Must not know:
 * how runs are trained. Read next: facts.c, train/report/overlay.c. */
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/facts.h"
#include "cli/grid.h"
#include "io/publish.h"
#include "train/config/config.h"
#include "train/report/overlay.h"
#include "train/report/page.h"
#include "train/run/output.h"

#define PATH_BYTES 4096

enum { VALUE_BYTES = 65536, SHOWN_MOST = 24, RUNS_MOST = 250 };

typedef struct compared {
    char *dir;
    char letters[3]; /* A, B, ... Z, AA, ... */
    weft__config config;
    weft__facts facts;
} compared;

typedef struct comparison {
    compared *runs;
    size_t count, capacity;
    bool differs[WEFT__KEY_COUNT];
} comparison;

/* ---- reading ---- */

static weft_status add_run(comparison *c, const char *dir) {
    if (c->count == RUNS_MOST)
        return weft__fail(NULL, WEFT_ERR_ARGUMENT, "compare: give at most %d runs", RUNS_MOST);
    if (!weft__grow(NULL, &c->runs, &c->capacity, c->count, sizeof *c->runs))
        return weft__fail_oom(NULL, c->count * sizeof *c->runs, "the runs");
    compared *run = &c->runs[c->count];
    *run = (compared){.dir = weft__strdup(NULL, dir)};
    if (!run->dir) return weft__fail_oom(NULL, strlen(dir) + 1, "the name of a run");
    weft__config_init(&run->config);
    c->count++;
    return WEFT_OK;
}

static int by_dir(const void *a, const void *b) {
    return weft__natural_order(((const compared *)a)->dir, ((const compared *)b)->dir);
}

/* Adds a run, or the runs of a folder, such as that of a search. */
static weft_status add_runs(comparison *c, const char *dir) {
    char path[PATH_BYTES];
    const size_t first = c->count;
    int error = 0;
    DIR *folder = weft__is_run(dir) ? NULL : weft__opendir(dir);
    if (!folder) return add_run(c, dir); /* reading it says what is wrong */
    weft_status status = WEFT_OK;
    for (const struct dirent *entry; status == WEFT_OK && (entry = weft__next_entry(folder, &error));)
        if (entry->d_name[0] != '.' && weft__join(path, sizeof path, dir, entry->d_name) &&
            weft__is_run(path))
            status = add_run(c, path);
    closedir(folder);
    if (status == WEFT_OK && error) status = weft__fail_io(NULL, "list", dir, error);
    if (status == WEFT_OK && c->count == first) return add_run(c, dir);
    if (status == WEFT_OK) qsort(c->runs + first, c->count - first, sizeof *c->runs, by_dir);
    return status;
}

static weft_status compared_read(compared *run, size_t index) {
    char path[PATH_BYTES];
    if (index < 26)
        snprintf(run->letters, sizeof run->letters, "%c", (char)('A' + index));
    else
        snprintf(run->letters, sizeof run->letters, "%c%c", (char)('A' + index / 26 - 1),
                 (char)('A' + index % 26));
    WEFT_TRY(weft__facts_read(run->dir, &run->facts));
    if (!weft__join(path, sizeof path, run->dir, "config.yaml"))
        return weft__fail(NULL, WEFT_ERR_ARGUMENT, "%s: the path is too long", run->dir);
    return weft__config_read(&run->config, path);
}

static weft_status read_runs(comparison *c, const weft__repeated *dirs) {
    for (size_t i = 0; i < dirs->count; i++) WEFT_TRY(add_runs(c, dirs->values[i]));
    for (size_t i = 0; i < c->count; i++) WEFT_TRY(compared_read(&c->runs[i], i));
    if (c->count > 1) return WEFT_OK;
    return weft__fail(NULL, WEFT_ERR_ARGUMENT, "compare: give at least two runs, not only %s",
                      c->runs[0].dir);
}

/* Tells whether a value says something about the run: a key that another model does not use has no value
 * there, which is no difference to a default. */
static bool is_told(const weft__config *config, weft__config_key key, const char *value) {
    return config->origin[key] != WEFT__ORIGIN_UNSET &&
           !weft__config_usual(key, (weft__model_type)config->model_type, value);
}

static bool key_differs(const comparison *c, weft__config_key key, char *first, char *other) {
    bool told = false, unset = false;
    const weft__config *known = NULL;
    for (size_t i = 0; i < c->count; i++) {
        const weft__config *config = &c->runs[i].config;
        char *value = known ? other : first;
        weft__config_value(config, key, value, VALUE_BYTES);
        told = told || is_told(config, key, value);
        if (config->origin[key] == WEFT__ORIGIN_UNSET)
            unset = true;
        else if (known && strcmp(first, other) != 0)
            return true;
        else
            known = config;
    }
    return unset && told;
}

static weft_status find_differences(comparison *c) {
    char *values = weft__alloc(NULL, 2 * VALUE_BYTES);
    if (!values) return weft__fail_oom(NULL, 2 * VALUE_BYTES, "the configurations");
    for (int k = 0; k < WEFT__KEY_COUNT; k++)
        c->differs[k] = key_differs(c, (weft__config_key)k, values, values + VALUE_BYTES);
    weft__free(NULL, values);
    return WEFT_OK;
}

/* ---- tables ---- */

static void put_heads(weft__grid *grid, const char *title, const comparison *c) {
    weft__grid_put(grid, "%s", title);
    for (size_t i = 0; i < c->count; i++) weft__grid_put(grid, "%s", c->runs[i].letters);
}

/* Puts a value of a configuration. Of one that is too long the end of a path is shown, else the beginning. */
static void put_value(weft__grid *grid, const weft__config *config, weft__config_key key) {
    char value[8192];
    const char *text = weft__config_value(config, key, value, sizeof value);
    const size_t size = strlen(text);
    if (size == 0)
        weft__grid_put(grid, "-");
    else if (size <= SHOWN_MOST)
        weft__grid_put(grid, "%s", text);
    else if (weft__config_rows[key].kind == WEFT__KIND_PATH)
        weft__grid_put(grid, "...%s", text + size - (SHOWN_MOST - 3));
    else
        weft__grid_put(grid, "%.*s...", SHOWN_MOST - 3, text);
}

static weft_status print_differences(const comparison *c) {
    weft__grid grid = {.columns = c->count + 1};
    bool some = false;
    put_heads(&grid, "configuration", c);
    for (int k = 0; k < WEFT__KEY_COUNT; k++) {
        if (!c->differs[k]) continue;
        some = true;
        weft__grid_put(&grid, "%s", weft__config_key_name((weft__config_key)k));
        for (size_t i = 0; i < c->count; i++) put_value(&grid, &c->runs[i].config, (weft__config_key)k);
    }
    const weft_status status = grid.status;
    if (status == WEFT_OK && some) weft__grid_print(stdout, &grid, weft__grid_room(stdout));
    if (!some) weft__print(stdout, "the configurations are the same\n");
    weft__print(stdout, "\n");
    weft__grid_free(&grid);
    return status;
}

typedef double number_of_run(const weft__facts *facts, const void *what);

/* Puts a row of numbers, if a run has one. Of two runs a `ratio` also gets how many times the second number
 * is the first. */
static void put_numbers(weft__grid *grid, const comparison *c, const char *label, number_of_run *number,
                        const void *what, bool ratio) {
    char text[24];
    bool known = false;
    for (size_t i = 0; i < c->count; i++) known = known || isfinite(number(&c->runs[i].facts, what));
    if (!known) return;
    weft__grid_put(grid, "%s", label);
    for (size_t i = 0; i < c->count; i++)
        weft__grid_put(grid, "%s", weft__short_number(number(&c->runs[i].facts, what), text));
    if (c->count != 2) return;
    const double a = number(&c->runs[0].facts, what), b = number(&c->runs[1].facts, what);
    if (ratio && isfinite(a) && isfinite(b) && a > 0)
        weft__grid_put(grid, "x %.3f", b / a);
    else
        weft__grid_put(grid, "%s", "");
}

static double number_parameters(const weft__facts *f, const void *what) {
    (void)what;
    return (double)f->summary.parameters;
}
static double number_steps(const weft__facts *f, const void *what) {
    (void)what;
    return (double)f->summary.step;
}
static double number_seconds(const weft__facts *f, const void *what) {
    (void)what;
    return f->summary.seconds;
}
static double number_last(const weft__facts *f, const void *what) {
    (void)what;
    return f->last;
}
static double number_best(const weft__facts *f, const void *what) {
    (void)what;
    return f->best;
}
static double number_average(const weft__facts *f, const void *what) {
    return weft__metric_get(&f->history.averages, what);
}
static double number_result(const weft__facts *f, const void *what) {
    return weft__result_get(&f->summary.results, what);
}

static void put_averages(weft__grid *grid, const comparison *c) {
    for (int i = 0; i < WEFT__METRICS; i++) {
        const char *label =
            weft__metric_word(weft__metric_rows[i]->compared, c->runs[0].facts.summary.tokens);
        if (label) put_numbers(grid, c, label, number_average, weft__metric_rows[i], true);
    }
}

/* Puts a row of texts. */
#define PUT_TEXTS(grid, c, label, text)                                                                      \
    do {                                                                                                     \
        weft__grid_put(grid, "%s", label);                                                                   \
        for (size_t i = 0; i < (c)->count; i++) {                                                            \
            const weft__facts *f = &(c)->runs[i].facts;                                                      \
            weft__grid_put(grid, "%s", text);                                                                \
        }                                                                                                    \
        if ((c)->count == 2) weft__grid_put(grid, "%s", "");                                                 \
    } while (0)

static weft_status print_results(const comparison *c) {
    weft__grid grid = {.columns = c->count + 1 + (c->count == 2)};
    char out[WEFT__FACT_TEXT];
    put_heads(&grid, "results", c);
    if (c->count == 2) weft__grid_put(&grid, "%s", "");
    PUT_TEXTS(&grid, c, "result", weft__facts_result(f, out));
    PUT_TEXTS(&grid, c, "model", f->summary.model);
    PUT_TEXTS(&grid, c, "device", f->summary.device);
    PUT_TEXTS(&grid, c, "status", f->summary.status);
    PUT_TEXTS(&grid, c, "started", weft__facts_started(f, out));
    put_numbers(&grid, c, "parameters", number_parameters, NULL, true);
    put_numbers(&grid, c, "steps", number_steps, NULL, true);
    put_numbers(&grid, c, "seconds", number_seconds, NULL, true);
    put_averages(&grid, c);
    put_numbers(&grid, c, "last loss", number_last, NULL, false);
    put_numbers(&grid, c, "best loss", number_best, NULL, false);
    for (int i = 0; i < WEFT__RESULTS; i++)
        put_numbers(&grid, c, weft__result_rows[i].label, number_result, &weft__result_rows[i], false);
    const weft_status status = grid.status;
    if (status == WEFT_OK) weft__grid_print(stdout, &grid, weft__grid_room(stdout));
    weft__grid_free(&grid);
    return status;
}

static weft_status print_comparison(const comparison *c) {
    for (size_t i = 0; i < c->count; i++)
        weft__print(stdout, "%-2s %s\n", c->runs[i].letters, c->runs[i].dir);
    weft__print(stdout, "\n");
    WEFT_TRY(print_differences(c));
    return print_results(c);
}

/* ---- JSON ---- */

static json_t *value_json(const weft__config *config, weft__config_key key) {
    const weft__config_row *row = &weft__config_rows[key];
    const void *field = (const char *)config + row->offset;
    const weft__ints *ints = field;
    const weft__nums *nums = field;
    const weft__texts *texts = field;
    char value[256];
    json_t *list;
    if (config->origin[key] == WEFT__ORIGIN_UNSET) return json_null();
    switch (row->kind) {
    case WEFT__KIND_NUM: return json_real(*(const double *)field);
    case WEFT__KIND_BOOL: return json_boolean(*(const bool *)field);
    case WEFT__KIND_INT:
        if (*(const int64_t *)field > 0 || !row->choices) return json_integer(*(const int64_t *)field);
        break; /* a word, such as auto */
    case WEFT__KIND_CHOICE: break;
    case WEFT__KIND_TEXT:
    case WEFT__KIND_PATH: return json_string(*(char *const *)field);
    case WEFT__KIND_INTS:
        list = json_array();
        for (size_t i = 0; i < ints->count; i++) json_array_append_new(list, json_integer(ints->values[i]));
        return list;
    case WEFT__KIND_NUMS:
        list = json_array();
        for (size_t i = 0; i < nums->count; i++) json_array_append_new(list, json_real(nums->values[i]));
        return list;
    case WEFT__KIND_TEXTS:
        list = json_array();
        for (size_t i = 0; i < texts->count; i++) json_array_append_new(list, json_string(texts->values[i]));
        return list;
    }
    return json_string(weft__config_value(config, key, value, sizeof value));
}

static weft_status print_comparison_json(const comparison *c) {
    weft__json json;
    char *text;
    weft__json_build(&json, NULL);
    json_t *differences = json_object(), *runs = json_array();
    for (int k = 0; k < WEFT__KEY_COUNT; k++) {
        if (!c->differs[k]) continue;
        json_t *values = json_array();
        for (size_t i = 0; i < c->count; i++)
            json_array_append_new(values, value_json(&c->runs[i].config, (weft__config_key)k));
        json_object_set_new(differences, weft__config_key_name((weft__config_key)k), values);
    }
    for (size_t i = 0; i < c->count; i++)
        json_array_append_new(runs, weft__facts_json(c->runs[i].dir, &c->runs[i].facts));
    WEFT_TRY(weft__json_text(&json, json_pack("{s:o, s:o}", "differences", differences, "runs", runs),
                             JSON_REAL_PRECISION(9), "the comparison", &text, NULL));
    weft__print(stdout, "%s\n", text);
    weft__free(NULL, text);
    return WEFT_OK;
}

/* ---- the command ---- */

static bool wrote_page(const char *path) { return weft__file_begins(path, WEFT__PAGE_BY("compare")); }

static weft_status check_out(const weft__repeated *dirs, bool force, const char *out) {
    weft__output output = {.command = "compare", .force = force, .wrote = wrote_page};
    for (size_t i = 0; i < dirs->count; i++) weft__output_reads(&output, dirs->values[i]);
    return weft__output_file(&output, out);
}

static weft_status write_curves(const comparison *c, const char *path) {
    weft__overlaid *curves = weft__array(NULL, c->count, sizeof *curves);
    if (!curves) return weft__fail_oom(NULL, c->count * sizeof *curves, "the curves");
    for (size_t i = 0; i < c->count; i++)
        curves[i] = (weft__overlaid){c->runs[i].dir, &c->runs[i].facts.history};
    const weft_status status = weft__overlay_write(path, "Comparison of runs", curves, c->count, NULL, 0);
    weft__free(NULL, curves);
    return status;
}

int weft__command_compare(const weft__command *command, int argc, char **argv) {
    const char *out = NULL;
    bool force = false;
    weft__repeated dirs = {0};
    comparison c = {0};
    bool json = false;
    int code = 0;
    const weft__option options[] = {
        {"A B ...", WEFT__OPTION_ARGS, &dirs, "the folders of runs, or a folder that holds runs"},
        {"--out FILE", WEFT__OPTION_TEXT, &out, "write a page (HTML) with the curves of all runs"},
        WEFT__FORCE_OPTION(&force),
        {"--json", WEFT__OPTION_FLAG, &json, "print one JSON object"},
    };
    if (!weft__arguments(command, argc, argv, options, sizeof options / sizeof *options, &code)) return code;
    weft_status status = out ? check_out(&dirs, force, out) : WEFT_OK;
    if (status == WEFT_OK) status = read_runs(&c, &dirs);
    if (status == WEFT_OK) status = find_differences(&c);
    if (status == WEFT_OK) status = (json ? print_comparison_json : print_comparison)(&c);
    if (status == WEFT_OK && out) status = write_curves(&c, out);
    if (status == WEFT_OK && out && !json) weft__print(stdout, "curves: %s\n", out);
    for (size_t i = 0; i < c.count; i++) {
        weft__facts_free(&c.runs[i].facts);
        weft__config_free(&c.runs[i].config);
        weft__free(NULL, c.runs[i].dir);
    }
    weft__free(NULL, c.runs);
    return status == WEFT_OK ? WEFT__EXIT_DONE : weft__give_up(NULL, status);
}
