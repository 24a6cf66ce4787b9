/* weft runs: prints a line for each run of a folder. weft compare: prints two runs side by side. Must not
 * know: how runs are trained. Read next: train/run/history.c. */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "io/publish.h"
#include "train/config/config.h"
#include "train/run/history.h"

#define PATH_BYTES 4096

typedef struct facts {
    weft__summary summary;
    weft__metrics averages;
    double best, last;
} facts;

static weft_status cli_runs_gather(const char *dir, facts *f) {
    weft__history history;
    if (!weft__is_run(dir))
        return weft__fail(NULL, WEFT_ERR_ARGUMENT,
                          "%s is not a run folder (it has no config.yaml); 'weft runs' lists the runs", dir);
    WEFT_TRY(weft__summary_read(dir, &f->summary));
    WEFT_TRY(weft__history_read(dir, &history));
    char damage[WEFT__DAMAGE_TEXT];
    if (history.damaged) weft__complain("%s/%s", dir, weft__history_damage(&history, damage));
    f->best = weft__history_best(&history);
    f->averages = history.averages;
    f->last = (double)NAN;
    for (size_t i = 0; i < history.count; i++) {
        if (history.lines[i].step > f->summary.step) f->summary.step = history.lines[i].step;
        if (isfinite(history.lines[i].loss)) f->last = history.lines[i].loss;
    }
    weft__history_free(&history);
    return WEFT_OK;
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void print_run(const char *root, const char *name) {
    char dir[PATH_BYTES], best[24], rate[24], parameters[24];
    facts f;
    if (!weft__join(dir, sizeof dir, root, name) || !weft__is_run(dir)) return;
    if (cli_runs_gather(dir, &f) != WEFT_OK) {
        weft__print(stdout, "%-32s %s\n", name, weft_last_error(NULL));
        return;
    }
    weft__print(stdout, "%-32s %-9s %8llu/%-8llu %10s %8s %s/s\n", name, f.summary.status,
                (unsigned long long)f.summary.step, (unsigned long long)f.summary.steps,
                weft__short_number(f.best, best),
                weft__short_number((double)f.summary.parameters, parameters),
                weft__short_number(f.averages.rate, rate));
}

int weft__command_runs(const weft__command *command, int argc, char **argv) {
    const char *root = WEFT__RUNS_ROOT;
    int code = 0;
    const weft__option options[] = {
        {"[FOLDER]", WEFT__OPTION_ARG, &root, "the folder of the runs; default: runs"}};
    if (!weft__arguments(command, argc, argv, options, 1, &code)) return code;
    char **names = NULL;
    size_t count = 0, capacity = 0;
    DIR *dir = weft__opendir(root);
    if (!dir && errno != ENOENT) return weft__give_up(NULL, weft__fail_io(NULL, "list", root, errno));
    if (!dir) {
        weft__complain("%s: no such folder: 'weft train' creates runs", root);
        return WEFT__EXIT_NOTHING;
    }
    weft_status status = WEFT_OK;
    int error = 0;
    for (const struct dirent *entry; (entry = weft__next_entry(dir, &error));) {
        if (entry->d_name[0] == '.') continue;
        char *name = weft__strdup(NULL, entry->d_name);
        if (!name || !weft__grow(NULL, &names, &capacity, count, sizeof *names)) {
            weft__free(NULL, name);
            status = weft__fail_oom(NULL, count * sizeof *names, "the names of runs");
            break;
        }
        names[count++] = name;
    }
    closedir(dir);
    if (status == WEFT_OK && error) status = weft__fail_io(NULL, "list", root, error);
    if (count > 0) qsort(names, count, sizeof *names, by_name);
    if (status == WEFT_OK)
        weft__print(stdout, "%-32s %-9s %17s %10s %8s %s\n", "run", "status", "steps", "best loss", "weights",
                    "rate");
    for (size_t i = 0; i < count; i++) {
        if (status == WEFT_OK) print_run(root, names[i]);
        weft__free(NULL, names[i]);
    }
    weft__free(NULL, names);
    return status == WEFT_OK ? WEFT__EXIT_DONE : weft__give_up(NULL, status);
}

static void row(const char *label, double a, double b, bool ratio) {
    char left[24], right[24];
    weft__print(stdout, "%-18s %16s %16s", label, weft__short_number(a, left), weft__short_number(b, right));
    if (ratio && isfinite(a) && isfinite(b) && a > 0) weft__print(stdout, "  x %.3f", b / a);
    weft__print(stdout, "\n");
}

static void average_rows(const facts *left, const facts *right) {
    for (int i = 0; i < WEFT__METRICS; i++) {
        const weft__metric *metric = weft__metric_rows[i];
        const char *label = weft__metric_word(metric->compared, left->summary.tokens);
        const double a = weft__metric_get(&left->averages, metric),
                     b = weft__metric_get(&right->averages, metric);
        const bool known = isfinite(a) || isfinite(b) || metric->part != WEFT__PART_CARD;
        if (label && known) row(label, a, b, true);
    }
}

int weft__command_compare(const weft__command *command, int argc, char **argv) {
    const char *a = NULL, *b = NULL;
    int code = 0;
    const weft__option options[] = {{"A", WEFT__OPTION_ARG, &a, "the folder of a run"},
                                    {"B", WEFT__OPTION_ARG, &b, "the folder of another one"}};
    if (!weft__arguments(command, argc, argv, options, 2, &code)) return code;
    facts left, right;
    weft_status status = cli_runs_gather(a, &left);
    if (status == WEFT_OK) status = cli_runs_gather(b, &right);
    if (status != WEFT_OK) return weft__give_up(NULL, status);
    weft__print(stdout, "%-18s %16s %16s\n", "", "A", "B");
    weft__print(stdout, "%-18s %16s %16s\n", "model", left.summary.model, right.summary.model);
    weft__print(stdout, "%-18s %16s %16s\n", "device", left.summary.device, right.summary.device);
    weft__print(stdout, "%-18s %16s %16s\n", "status", left.summary.status, right.summary.status);
    row("parameters", (double)left.summary.parameters, (double)right.summary.parameters, true);
    row("steps", (double)left.summary.step, (double)right.summary.step, true);
    row("seconds", left.summary.seconds, right.summary.seconds, true);
    average_rows(&left, &right);
    row("last loss", left.last, right.last, false);
    row("best loss", left.best, right.best, false);
    for (int i = 0; i < WEFT__RESULTS; i++)
        row(weft__result_rows[i].label, weft__result_get(&left.summary.results, &weft__result_rows[i]),
            weft__result_get(&right.summary.results, &weft__result_rows[i]), false);
    return WEFT__EXIT_DONE;
}
