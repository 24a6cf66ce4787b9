/* weft cv: cross-validation. Trains a run for each fold, and prints their scores with mean and deviation.
 * Must not know: how data are divided (train/dataset/dataset_split.c). Read next: jobs.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/grid.h"
#include "cli/jobs.h"
#include "train/report/scores.h"
#include "io/sealed.h"

enum { FOLDS_MOST = 1000 };

typedef struct cv_scores {
    double (*values)[WEFT__SCORES]; /* [folds]; NaN: the task has no such score, or the fold diverged */
    double mean[WEFT__SCORES], deviation[WEFT__SCORES];
    bool known[WEFT__SCORES]; /* some fold has it */
    size_t count;             /* folds with scores */
} cv_scores;

/* ---- scores ---- */

/* Reads the validation scores of a fold. One that diverged has none. */
static weft_status read_scores(const weft__jobs *jobs, const weft__job *job, double values[WEFT__SCORES]) {
    char dir[4096];
    weft__json json;
    json_t *root;
    for (int i = 0; i < WEFT__SCORES; i++) values[i] = (double)NAN;
    if (!weft__join(dir, sizeof dir, jobs->dir, job->name)) return WEFT_OK;
    const weft_status status = weft__sealed_read(NULL, dir, "scores.json", &json, &root);
    const json_t *scores = status == WEFT_OK ? json_object_get(root, "validation") : NULL;
    for (int i = 0; i < WEFT__SCORES && scores; i++) {
        const json_t *value = json_object_get(scores, weft__score_rows[i].key);
        if (json_is_number(value)) values[i] = json_number_value(value);
    }
    weft__json_close(&json);
    return status == WEFT_ERR_STATE ? WEFT_OK : status;
}

/* Computes mean and standard deviation over the folds. The deviation divides by the number of folds - 1. */
static void measure_scores(const weft__jobs *jobs, cv_scores *s) {
    for (int i = 0; i < WEFT__SCORES; i++) {
        double sum = 0, squares = 0;
        size_t n = 0;
        for (size_t f = 0; f < jobs->count; f++)
            if (isfinite(s->values[f][i])) sum += s->values[f][i], n++;
        s->known[i] = n > 0;
        s->mean[i] = n > 0 ? sum / (double)n : (double)NAN;
        for (size_t f = 0; f < jobs->count; f++)
            if (isfinite(s->values[f][i])) squares += pow(s->values[f][i] - s->mean[i], 2);
        s->deviation[i] = n > 1 ? sqrt(squares / (double)(n - 1)) : (double)NAN;
        if (n > s->count) s->count = n;
    }
}

static weft_status take_scores(const weft__jobs *jobs, cv_scores *s) {
    *s = (cv_scores){.values = weft__array(NULL, jobs->count, sizeof *s->values)};
    if (!s->values) return weft__fail_oom(NULL, jobs->count * sizeof *s->values, "the scores of the folds");
    for (size_t f = 0; f < jobs->count; f++) WEFT_TRY(read_scores(jobs, &jobs->items[f], s->values[f]));
    measure_scores(jobs, s);
    return WEFT_OK;
}

/* ---- for people ---- */

static const char *score_text(int score, double value, char out[WEFT__SHOWN_BYTES]) {
    const char *key = weft__score_rows[score].key;
    const bool share = strcmp(key, "accuracy") == 0,
               units = strcmp(key, "rmse") == 0 || strcmp(key, "mae") == 0; /* of the data */
    if (!isfinite(value)) return strcpy(out, "-");
    return weft__shown_number(share   ? WEFT__NOTATION_PERCENT
                              : units ? WEFT__NOTATION_GENERAL
                                      : WEFT__NOTATION_FIXED,
                              share   ? 2
                              : units ? 5
                                      : 4,
                              value, out);
}

static void put_scores(weft__grid *grid, const char *name, const cv_scores *s, const double *values) {
    char text[WEFT__SHOWN_BYTES];
    weft__grid_put(grid, "%s", name);
    for (int i = 0; i < WEFT__SCORES; i++)
        if (s->known[i]) weft__grid_put(grid, "%s", score_text(i, values[i], text));
}

/* Returns the label of a score for the head of a column: short, so that all columns fit. */
static const char *head_of(int score) {
    const char *key = weft__score_rows[score].key;
    return strcmp(key, "rmse") == 0  ? "RMSE"
           : strcmp(key, "mae") == 0 ? "MAE"
                                     : weft__score_rows[score].label;
}

static weft_status print_scores(const weft__jobs *jobs, const cv_scores *s) {
    weft__grid grid = {.columns = 1};
    for (int i = 0; i < WEFT__SCORES; i++)
        if (s->known[i]) grid.right[grid.columns++] = true;
    weft__grid_put(&grid, "fold");
    for (int i = 0; i < WEFT__SCORES; i++)
        if (s->known[i]) weft__grid_put(&grid, "%s", head_of(i));
    for (size_t f = 0; f < jobs->count; f++) put_scores(&grid, jobs->items[f].name, s, s->values[f]);
    put_scores(&grid, "mean", s, s->mean);
    put_scores(&grid, "deviation", s, s->deviation);
    const weft_status status = grid.status;
    weft__print(stdout, "\n");
    if (status == WEFT_OK) weft__grid_print(stdout, &grid, weft__grid_room(stdout));
    weft__grid_free(&grid);
    return status;
}

/* Prints the score by which models are judged, then the command that trains on all rows. */
static void conclude_cv(const weft__jobs *jobs, const cv_scores *s) {
    char mean[WEFT__SHOWN_BYTES], deviation[WEFT__SHOWN_BYTES];
    int chosen = -1;
    for (int i = 0; i < WEFT__SCORES; i++) {
        const weft__measure *m = jobs->items[0].facts.measure;
        if (s->known[i] && m && strcmp(weft__score_rows[i].key, m->key) == 0) chosen = i;
    }
    if (chosen >= 0)
        weft__print(stdout, "\n%s %s, standard deviation %s, of %zu folds\n", weft__score_rows[chosen].label,
                    score_text(chosen, s->mean[chosen], mean),
                    score_text(chosen, s->deviation[chosen], deviation), s->count);
    weft__print(stdout, "next: ");
    weft__jobs_print_command(jobs, "train");
    weft__print(stdout, " --set data.val_fraction=0\n");
}

/* ---- JSON ---- */

static json_t *scores_object(const cv_scores *s, const double *values) {
    json_t *object = json_object();
    for (int i = 0; i < WEFT__SCORES; i++)
        if (s->known[i] && isfinite(values[i]))
            json_object_set_new(object, weft__score_rows[i].key, json_real(values[i]));
    return object;
}

static weft_status write_cv(const weft__jobs *jobs, const cv_scores *s) {
    char dir[4096];
    weft__json json;
    weft__json_build(&json, NULL);
    json_t *folds = json_array();
    for (size_t f = 0; f < jobs->count; f++) {
        if (!weft__join(dir, sizeof dir, jobs->dir, jobs->items[f].name)) continue;
        json_t *fold = weft__facts_json(dir, &jobs->items[f].facts);
        json_object_set_new(fold, "scores", scores_object(s, s->values[f]));
        json_array_append_new(folds, fold);
    }
    return weft__jobs_write(jobs, "cv.json", &json,
                            json_pack("{s:s, s:o, s:o, s:o}", "folder", jobs->dir, "mean",
                                      scores_object(s, s->mean), "deviation", scores_object(s, s->deviation),
                                      "folds", folds));
}

/* ---- the command ---- */

static weft_status add_folds(weft__jobs *jobs, int64_t folds) {
    char name[32], all[32], one[32];
    snprintf(all, sizeof all, "data.folds=%lld", (long long)folds);
    for (int64_t i = 1; i <= folds; i++) {
        snprintf(name, sizeof name, "fold-%lld", (long long)i);
        snprintf(one, sizeof one, "data.fold=%lld", (long long)i);
        WEFT_TRY(weft__jobs_add(jobs, name, (const char *const[]){all, one}, 2));
    }
    return WEFT_OK;
}

/* Refuses a text, before anything is said of keys that a language model does not use. */
static weft_status refuse_text(const weft__wanted *given) {
    weft__wanted wanted = *given;
    weft__config config;
    wanted.silent = true;
    weft__config_init(&config);
    weft_status status = weft__cli_config(&config, &wanted);
    if (status == WEFT_OK && config.task == WEFT__TASK_LANGUAGE_MODEL)
        status =
            weft__fail(NULL, WEFT_ERR_ARGUMENT,
                       "cv: cross-validation is for tables and images; for a text, 'weft train' sets aside "
                       "its end (data.val_fraction) and measures the model on it");
    weft__config_free(&config);
    return status;
}

static weft_status prepare_cv(weft__jobs *jobs, int64_t folds) {
    if (folds < 2 || folds > FOLDS_MOST)
        return weft__fail(NULL, WEFT_ERR_ARGUMENT, "cv: --folds %lld: give a number from 2 to %d",
                          (long long)folds, FOLDS_MOST);
    WEFT_TRY(refuse_text(&jobs->wanted));
    WEFT_TRY(add_folds(jobs, folds));
    WEFT_TRY(weft__jobs_check(jobs));
    if (jobs->task == WEFT__TASK_LANGUAGE_MODEL)
        return weft__fail(NULL, WEFT_ERR_ARGUMENT,
                          "cv: cross-validation is for tables and images; for a text, 'weft train' sets "
                          "aside its end (data.val_fraction) and measures the model on it");
    return WEFT_OK;
}

static weft_status tell_cv(const weft__jobs *jobs) {
    cv_scores scores;
    weft_status status = take_scores(jobs, &scores);
    if (status == WEFT_OK && !jobs->json) status = print_scores(jobs, &scores);
    if (status == WEFT_OK) status = write_cv(jobs, &scores);
    if (status == WEFT_OK && !jobs->json) conclude_cv(jobs, &scores);
    weft__free(NULL, scores.values);
    return status;
}

int weft__command_cv(const weft__command *command, int argc, char **argv) {
    weft__jobs jobs = {.wanted.config = getenv("WEFT_CONFIG"), .argc = argc, .argv = argv};
    int64_t folds = 5;
    char type[32], stem[48];
    int code = 0;
    const weft__option options[] = {
        WEFT__CONFIG_OPTIONS(&jobs.wanted),
        {"--folds K", WEFT__OPTION_INT, &folds, "the number of parts of the data; default: 5"},
        WEFT__JOBS_OPTIONS(&jobs),
    };
    if (!weft__arguments(command, argc, argv, options, sizeof options / sizeof *options, &code)) return code;
    if (!weft__cli_has_config(command, &jobs.wanted)) return WEFT__EXIT_USAGE;
    weft_status status = prepare_cv(&jobs, folds);
    if (status == WEFT_OK) {
        snprintf(stem, sizeof stem, "cv-%s",
                 weft__config_choice(WEFT__KEY_model_type, (int)jobs.model, type));
        code = weft__jobs_run(&jobs, stem);
        if (code == WEFT__EXIT_DONE) status = tell_cv(&jobs);
    }
    if (status != WEFT_OK) code = weft__give_up(NULL, status);
    weft__jobs_free(&jobs);
    return code;
}
