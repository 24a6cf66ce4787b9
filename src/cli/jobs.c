/* Starts the processes that train runs, waits for them, and passes stops on to them. Must not know: why there
 * are several runs. Read next: cv.c, sweep.c. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "base/threads.h"
#include "cli/jobs_line.h"
#include "io/mark.h"
#include "train/run/opened_model.h"
#include "train/run/loop_setup.h"
#include "train/run/signals.h"

#define JOBS_MARK "runs" /* of the folder (io/mark.h) */

enum { POLL_NS = 20000000 };

/* ---- the list ---- */

weft_status weft__jobs_add(weft__jobs *jobs, const char *name, const char *const *changes, size_t count) {
    if (!weft__grow(NULL, &jobs->items, &jobs->capacity, jobs->count, sizeof *jobs->items))
        return weft__fail_oom(NULL, jobs->count * sizeof *jobs->items, "the list of runs");
    weft__job *job = &jobs->items[jobs->count];
    *job = (weft__job){.name = weft__strdup(NULL, name)};
    if (!job->name) return weft__fail_oom(NULL, strlen(name) + 1, "the name of a run");
    jobs->count++;
    for (size_t i = 0; i < count && i < WEFT__REPEATED_MAX; i++) {
        char *copy = weft__strdup(NULL, changes[i]);
        if (!copy) return weft__fail_oom(NULL, strlen(changes[i]) + 1, "the values of a run");
        job->changes.values[job->changes.count++] = copy;
    }
    return WEFT_OK;
}

void weft__jobs_free(weft__jobs *jobs) {
    for (size_t i = 0; i < jobs->count; i++) {
        weft__job *job = &jobs->items[i];
        for (size_t j = 0; j < job->changes.count; j++)
            weft__free(NULL, (char *)(uintptr_t)job->changes.values[j]);
        weft__facts_free(&job->facts);
        weft__free(NULL, job->name);
    }
    weft__free(NULL, jobs->items);
    jobs->items = NULL;
    jobs->count = jobs->capacity = 0;
}

static weft_status jobs_path(const weft__jobs *jobs, const char *name, char path[4096]) {
    if (weft__join(path, 4096, jobs->dir, name)) return WEFT_OK;
    return weft__fail(NULL, WEFT_ERR_ARGUMENT, "%s: the path is too long", jobs->dir);
}

/* ---- configurations ---- */

/* Reads the configuration of a job into an initialised *config. */
static weft_status job_config(const weft__jobs *jobs, const weft__job *job, bool silent,
                              weft__config *config) {
    weft__wanted wanted = jobs->wanted;
    wanted.silent = silent;
    if (wanted.settings.count + job->changes.count > WEFT__REPEATED_MAX)
        return weft__fail(NULL, WEFT_ERR_ARGUMENT,
                          "--set: at most %d values can be set, including those that this command sets",
                          WEFT__REPEATED_MAX);
    for (size_t i = 0; i < job->changes.count; i++)
        wanted.settings.values[wanted.settings.count++] = job->changes.values[i];
    WEFT_TRY(weft__cli_config(config, &wanted));
    if (weft__config_given(config, WEFT__KEY_train_keep)) return WEFT_OK;
    return weft__config_put(config, WEFT__KEY_train_keep, "1", WEFT__ORIGIN_FOUND, "train.keep");
}

/* Tells whether two runs with different values of the key are different runs. */
static bool key_matters(const weft__config *config, weft__config_key key) {
    const weft__config_row *row = &weft__config_rows[key];
    const bool word = row->kind == WEFT__KIND_INT && row->choices &&
                      *(const int64_t *)((const char *)config + row->offset) <= 0; /* as train.batch: auto */
    return weft__config_given(config, key) && !word && key != WEFT__KEY_device && key != WEFT__KEY_devices &&
           key != WEFT__KEY_train_keep && key != WEFT__KEY_train_log_every;
}

/* Refuses a run that was made with other values than those that are wanted now. */
static weft_status refuse_other(const char *dir, const weft__config *now) {
    enum { VALUE_BYTES = 65536 };
    char path[4096];
    weft__config was;
    if (!weft__join(path, sizeof path, dir, "config.yaml")) return WEFT_OK;
    char *values = weft__alloc(NULL, 2 * VALUE_BYTES);
    if (!values) return weft__fail_oom(NULL, 2 * VALUE_BYTES, "a configuration");
    weft__config_init(&was);
    weft_status status = weft__config_read(&was, path);
    for (int k = 0; k < WEFT__KEY_COUNT && status == WEFT_OK; k++) {
        const weft__config_key key = (weft__config_key)k;
        if (!key_matters(now, key)) continue;
        weft__config_value(&was, key, values, VALUE_BYTES);
        weft__config_value(now, key, values + VALUE_BYTES, VALUE_BYTES);
        if (strcmp(values, values + VALUE_BYTES) != 0)
            status = weft__fail(NULL, WEFT_ERR_ARGUMENT,
                                "%s: this run was trained with %s: %.100s, which now has another value: name "
                                "another folder with --run, or remove this one",
                                dir, weft__config_key_name(key), values[0] ? values : "not set");
    }
    weft__config_free(&was);
    weft__free(NULL, values);
    return status;
}

static weft_status check_job(weft__jobs *jobs, size_t index) {
    char dir[4096];
    const weft__job *job = &jobs->items[index];
    weft__config config;
    weft__config_init(&config);
    weft_status status = job_config(jobs, job, index > 0, &config);
    if (status == WEFT_OK) status = weft__config_absolute(&config);
    if (status == WEFT_OK && jobs->run && weft__join(dir, sizeof dir, jobs->run, job->name) &&
        weft__is_run(dir))
        status = refuse_other(dir, &config);
    if (index == 0) {
        jobs->model = (weft__model_type)config.model_type;
        jobs->task = (weft__task)config.task;
    }
    jobs->shares =
        jobs->shares || (config.device && config.device[0] && strncmp(config.device, "cpu", 3) != 0);
    weft__config_free(&config);
    return status;
}

weft_status weft__jobs_check(weft__jobs *jobs) {
    if (jobs->run && (!jobs->run[0] || weft__is_run(jobs->run)))
        return weft__fail(
            NULL, WEFT_ERR_ARGUMENT,
            jobs->run[0] ? "--run %s: this folder is a run itself: name a folder that may hold several runs"
                         : "--run: give the name of a folder, not an empty text%s",
            jobs->run);
    for (size_t i = 0; i < jobs->count; i++) WEFT_TRY(check_job(jobs, i));
    return WEFT_OK;
}

/* ---- the process of a job ---- */

static int train_job(const weft__jobs *jobs, const weft__job *job) {
    char dir[4096];
    weft__config config;
    weft__train_result result;
    weft__config_init(&config);
    weft_status status = jobs_path(jobs, job->name, dir);
    const bool resume = status == WEFT_OK && weft__is_run(dir);
    if (status == WEFT_OK && resume) status = weft__opened_model_config(dir, jobs->wanted.device, &config);
    if (status == WEFT_OK)
        status = resume ? weft__config_resolve(&config) : job_config(jobs, job, true, &config);
    if (status != WEFT_OK) return weft__give_up(NULL, status);
    const weft__train_options how = {
        .dir = dir, .resume = resume, .quiet = true, .argc = jobs->argc, .argv = jobs->argv};
    status = weft__train(&config, &how, &result);
    weft__config_free(&config);
    if (status == WEFT_OK) return result.signal ? 128 + result.signal : WEFT__EXIT_DONE;
    weft__complain("%s: %s", job->name, result.error[0] ? result.error : weft_status_name(status));
    return weft__exit_code(status);
}

/* Runs in the new process. A stop from now on does what it does in `weft train`. */
static _Noreturn void job_process(const weft__jobs *jobs, const weft__job *job, int threads, pid_t parent) {
    char number[16];
    weft__signals_restore();
    if (weft__signals_stop()) _exit(128 + weft__signals_stop());
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* if the parent is killed, the run saves and ends */
#endif
    if (getppid() != parent) _exit(128 + SIGTERM);
    snprintf(number, sizeof number, "%d", threads);
    setenv("OMP_NUM_THREADS", number, 1);
    weft__dataset_sharers = (int)jobs->at_once;
    const int code = train_job(jobs, job);
    fflush(stdout);
    _exit(code);
}

static weft_status start_job(weft__jobs *jobs, weft__job *job, int threads) {
    const pid_t parent = getpid();
    WEFT_TRY(weft__mark(NULL, jobs->dir, JOBS_MARK));
    fflush(stdout);
    fflush(stderr);
    const pid_t process = fork();
    if (process < 0) return weft__fail(NULL, WEFT_ERR_OOM, "cannot start a process: %s", strerror(errno));
    if (process == 0) job_process(jobs, job, threads, parent);
    job->process = process;
    job->began = weft__now();
    return WEFT_OK;
}

/* ---- waiting ---- */

/* Takes the result of a run that has ended. One that was stopped, was killed or failed has not. */
static weft_status take_facts(const weft__jobs *jobs, weft__job *job) {
    static const char *const ends[] = {"done", "stopped early", "diverged"};
    char dir[4096];
    WEFT_TRY(jobs_path(jobs, job->name, dir));
    if (!weft__is_run(dir)) return WEFT_OK;
    const weft_status status = weft__facts_read(dir, &job->facts);
    for (size_t i = 0; i < sizeof ends / sizeof *ends && status == WEFT_OK; i++)
        job->done = job->done || strcmp(job->facts.summary.status, ends[i]) == 0;
    if (!job->done) weft__facts_free(&job->facts);
    return status == WEFT_ERR_STATE ? WEFT_OK : status; /* killed before it wrote a summary */
}

typedef struct jobs_state {
    size_t next, running, done;
    int threads; /* of a process */
    int code;    /* of the first failure */
    int stopped; /* the signal that was passed on */
    weft__progress progress;
} jobs_state;

/* Looks at a running job. */
static weft_status look_at(weft__jobs *jobs, weft__job *job, jobs_state *s) {
    int how = 0;
    if (!job->process || waitpid(job->process, &how, WNOHANG) == 0) return WEFT_OK;
    job->process = 0;
    s->running--;
    WEFT_TRY(take_facts(jobs, job));
    const int code = WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
    if (job->done) {
        job->seconds = weft__now() - job->began;
        weft__jobs_line_ended(&s->progress, jobs, job, ++s->done);
        return WEFT_OK;
    }
    if (WIFSIGNALED(how) && !s->stopped)
        weft__complain("%s: its process was ended by signal %d", job->name, WTERMSIG(how));
    if (s->code == WEFT__EXIT_DONE) s->code = code ? code : WEFT__EXIT_FAILED;
    return WEFT_OK;
}

/* Passes a stop on. Processes that got it from the terminal take the second one as the same: SIGTERM, unlike
 * a second SIGINT, does not end a run that is saving. */
static void pass_on_stop(const weft__jobs *jobs, jobs_state *s) {
    const int stop = weft__signals_stop();
    if (!stop || s->stopped) return;
    s->stopped = stop;
    for (size_t i = 0; i < jobs->count; i++)
        if (jobs->items[i].process) kill(jobs->items[i].process, SIGTERM);
}

static weft_status jobs_loop(weft__jobs *jobs, jobs_state *s) {
    const struct timespec pause = {.tv_nsec = POLL_NS};
    weft_status status = WEFT_OK;
    for (;;) {
        pass_on_stop(jobs, s);
        const bool open = status == WEFT_OK && !s->stopped && s->code == WEFT__EXIT_DONE;
        while (open && s->next < jobs->count && jobs->items[s->next].done) s->next++;
        if (open && s->next < jobs->count && s->running < (size_t)jobs->at_once) {
            status = start_job(jobs, &jobs->items[s->next++], s->threads);
            s->running += status == WEFT_OK;
            continue;
        }
        if (s->running == 0) return status;
        weft__jobs_line_draw(&s->progress, jobs);
        nanosleep(&pause, NULL);
        for (size_t i = 0; i < jobs->count; i++) {
            const weft_status seen = look_at(jobs, &jobs->items[i], s);
            if (status == WEFT_OK) status = seen;
        }
    }
}

/* Removes the folder if no run began. */
static void remove_empty(const char *dir) {
    char found[WEFT__ENTRY_NAME], mark[4096];
    if (weft__find_foreign(NULL, dir, NULL, found) != WEFT_OK || found[0]) return;
    if (weft__join(mark, sizeof mark, dir, WEFT__MARK_FILE)) (void)unlink(mark);
    (void)rmdir(dir);
}

/* Makes the folder. One that exists must be empty, or have been made for runs. Versions that made no mark
 * left runs of the same names in it. */
static weft_status make_dir(weft__jobs *jobs, const char *stem) {
    char foreign[WEFT__ENTRY_NAME], dir[4096];
    if (!jobs->run) return weft__run_numbered(stem, jobs->dir, sizeof jobs->dir);
    snprintf(jobs->dir, sizeof jobs->dir, "%s", jobs->run);
    WEFT_TRY(weft__find_foreign(NULL, jobs->dir, NULL, foreign));
    bool own = !foreign[0] || weft__marked(jobs->dir, JOBS_MARK);
    for (size_t i = 0; i < jobs->count && !own; i++)
        own = weft__join(dir, sizeof dir, jobs->dir, jobs->items[i].name) && weft__is_run(dir);
    if (own) return weft_make_folder(NULL, jobs->dir);
    return weft__fail(NULL, WEFT_ERR_ARGUMENT,
                      "--run %s: this folder holds other files, such as %s: name a new or an empty folder",
                      jobs->dir, foreign);
}

/* Chooses how many processes run at a time, and the threads of each. */
static void share_threads(weft__jobs *jobs, jobs_state *s) {
    const int threads = weft__default_threads();
    const size_t left = jobs->count - s->done;
    if (jobs->at_once == 0) jobs->at_once = jobs->shares ? 1 : threads;
    if ((size_t)jobs->at_once > left) jobs->at_once = (int64_t)(left ? left : 1);
    s->threads = threads / (int)jobs->at_once > 1 ? threads / (int)jobs->at_once : 1;
}

int weft__jobs_run(weft__jobs *jobs, const char *stem) {
    jobs_state s = {0};
    weft_status status = make_dir(jobs, stem);
    for (size_t i = 0; i < jobs->count && status == WEFT_OK; i++) {
        status = take_facts(jobs, &jobs->items[i]);
        jobs->items[i].before = jobs->items[i].done;
        s.done += jobs->items[i].done;
    }
    if (status != WEFT_OK) return weft__give_up(NULL, status);
    share_threads(jobs, &s);
    weft__jobs_line_start(&s.progress, jobs);
    weft__progress_say(&s.progress, "%zu runs, %lld at a time, in %s", jobs->count - s.done,
                       (long long)jobs->at_once, jobs->dir);
    for (size_t i = 0, before = 0; i < jobs->count; i++)
        if (jobs->items[i].before) weft__jobs_line_ended(&s.progress, jobs, &jobs->items[i], ++before);
    signal(SIGCHLD, SIG_DFL); /* where it is ignored, nobody learns how a process ended */
    weft__signals_install(NULL);
    weft__signals_mode(WEFT__STOP_IN_ORDER, NULL);
    status = jobs_loop(jobs, &s);
    weft__jobs_line_end(&s.progress);
    weft__signals_restore();
    remove_empty(jobs->dir);
    if (status != WEFT_OK) return weft__give_up(NULL, status);
    if (s.stopped) {
        char dir[WEFT__SHELL_WORD(sizeof jobs->dir)];
        weft__complain("stopped: %zu of %zu runs have ended; to continue, add --run %s to the same command",
                       s.done, jobs->count, weft__shell_word(jobs->dir, dir, sizeof dir));
        return 128 + s.stopped;
    }
    return s.code;
}

/* ---- the end ---- */

void weft__jobs_print_command(const weft__jobs *jobs, const char *verb) {
    const weft__wanted *w = &jobs->wanted;
    weft__print_command(stdout, verb, w->config, NULL);
    if (w->data) weft__print(stdout, " --data");
    if (w->data) weft__print_argument(stdout, w->data);
    if (w->device) weft__print(stdout, " --device");
    if (w->device) weft__print_argument(stdout, w->device);
    for (size_t i = 0; i < w->settings.count; i++) {
        weft__print(stdout, " --set");
        weft__print_argument(stdout, w->settings.values[i]);
    }
}

weft_status weft__jobs_write(const weft__jobs *jobs, const char *name, weft__json *json, json_t *root) {
    char path[4096], *text;
    size_t bytes;
    WEFT_TRY(weft__json_text(json, root, JSON_REAL_PRECISION(9), name, &text, &bytes));
    weft_status status = jobs_path(jobs, name, path);
    if (status == WEFT_OK) status = weft_write_file(NULL, path, text, bytes);
    if (status == WEFT_OK && jobs->json) weft__print(stdout, "%s\n", text);
    weft__free(NULL, text);
    return status;
}
