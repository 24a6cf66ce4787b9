/* Sets up a run: data, model, run folder, checkpoint. Must not know: steps. Read next: loop.c. */
#define _XOPEN_SOURCE 700 /* realpath */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "compiler/profile/profile.h"
#include "device/device.h"
#include "train/dataset/class_weights.h"
#include "published/published.h"
#include "train/model/base.h"
#include "train/model/reference.h"
#include "train/model/published.h"
#include "train/run/loop_setup.h"
#include "train/run/signals.h"
#include "train/analysis/planning.h"

#define TIMED_EVERY 100 /* every N-th run of a program is timed; timing makes a run up to a third slower */

/* Writes the library's log messages to log.txt, except those that WEFT_DEBUG asks for. Shows these and
 * warnings to the user. */
static void on_log(void *user, weft_log_level level, const char *message) {
    weft__loop *loop = user;
    if (weft__processes_follows(&loop->processes) && level != WEFT_LOG_ERROR)
        return; /* the leader tells it */
    static const char *const names[] = {"debug", "info", "warning", "error"};
    if (loop->run.dir && !(level == WEFT_LOG_DEBUG && getenv("WEFT_DEBUG"))) {
        uint64_t step = loop->model.optimizer ? weft_optimizer_steps(loop->model.optimizer) : loop->first;
        weft_status ignored = weft__run_log(&loop->run, step, "%s: %s", names[level], message);
        (void)ignored; /* the loop writes to the log too, and reports the error */
    }
    weft__show_log(NULL, level, message);
}

/* Asks for a stop while the leader works, and tells followers that it does. */
static bool interrupted(void *user) {
    weft__loop *loop = user;
    const weft_status status = weft__processes_beat(&loop->processes);
    (void)status; /* the next order reports it */
    return weft__signals_interrupt(NULL);
}

/* ---- the run folder ---- */

static weft_status write_env(weft__loop *loop) {
    struct utsname system;
    char started[32] = "";
    time_t now = time(NULL);
    struct tm utc;
    if (uname(&system) != 0) memset(&system, 0, sizeof system);
    if (gmtime_r(&now, &utc)) strftime(started, sizeof started, "%Y-%m-%dT%H:%M:%SZ", &utc);
    weft_device_description device = {0};
    const char *name = weft_device_of(loop->model.ctx);
    weft_device_describe(loop->model.ctx, &device);
    weft__json json;
    char *text;
    weft__json_build(&json, NULL);
    json_t *words = json_array();
    for (int i = 0; i < loop->options->argc; i++)
        json_array_append_new(words, json_string(loop->options->argv[i]));
    json_t *object = json_pack(
        "{s:s, s:s, s:s, s:i, s:I, s:s, s:s, s:s, s:i, s:s, s:s, s:o}", "weft", weft_version(), "device",
        name, "device_detail", device.detail ? device.detail : "", "device_threads", device.threads,
        "device_memory", (json_int_t)device.memory, "system", system.sysname, "release", system.release,
        "machine", system.machine, "processors", (int)sysconf(_SC_NPROCESSORS_ONLN), "compiler", __VERSION__,
        "started", started, "command", words);
    WEFT_TRY(weft__json_text(&json, object, JSON_INDENT(2), "env.json", &text, NULL));
    weft_status status = weft__run_write(&loop->run, "env.json", text);
    weft__free(NULL, text);
    return status;
}

static weft_status write_config(weft__loop *loop) {
    char *text = weft__config_text(loop->config);
    if (!text) return weft__fail_oom(NULL, 0, "config.yaml");
    weft_status status = weft__run_write(&loop->run, "config.yaml", text);
    free(text);
    if (status == WEFT_OK && !weft__config_remember(loop->config))
        weft__progress_say(&loop->progress, "the paths of this run cannot be kept in ~/.local/state/weft (or "
                                            "$XDG_STATE_HOME): to resume it, you will need --trust");
    return status;
}

/* Keeps the files that describe the published model, so that the run can be used without it. */
static weft_status copy_published(const weft__loop *loop) {
    char path[4096];
    if (!weft__join(path, sizeof path, loop->run.dir, WEFT__PUBLISHED_FOLDER))
        return weft__fail(NULL, WEFT_ERR_ARGUMENT, "%s: the path is too long", loop->run.dir);
    WEFT_TRY(weft__published_copy(NULL, loop->config->published, path, WEFT_F32, 0,
                                  loop->config->model_untied_head));
    const weft__dataset *d = &loop->dataset;
    return d->texts.rows ? weft__published_put_labels(NULL, path, d->classes, (size_t)d->outputs) : WEFT_OK;
}

/* Computes the reference of preferences by the model as it is now. This takes time, so there is no run folder
 * yet: if it is stopped, nothing is left behind. */
static weft_status take_reference(weft__loop *loop) {
    if (!loop->dataset.chats.pairs) return WEFT_OK;
    if (loop->options->dir) WEFT_TRY(weft__run_refuse(loop->options->dir));
    weft__progress_say(&loop->progress,
                       "reference: computing the log-probabilities of the answers before training");
    return weft__reference_compute(&loop->model, loop->config, WEFT__TRAIN, &loop->dataset);
}

/* Makes a new run folder. config.yaml is written last, because it is what makes the folder a run. */
static weft_status create(weft__loop *loop, bool tokens) {
    char stem[128];
    snprintf(stem, sizeof stem, "%s-%s", loop->summary.model, loop->summary.device);
    for (char *c = stem; *c; c++)
        if (*c == ':') *c = '-'; /* as in opencl:0 */
    WEFT_TRY(take_reference(loop));
    WEFT_TRY(weft__run_create(loop->options->dir, stem, tokens, &loop->run));
    WEFT_TRY(weft__dataset_save(&loop->dataset, loop->run.dir));
    if (loop->config->published) WEFT_TRY(copy_published(loop));
    WEFT_TRY(weft__base_save(loop->config, loop->run.dir));
    WEFT_TRY(weft__reference_save(&loop->dataset, loop->run.dir));
    WEFT_TRY(write_env(loop));
    return write_config(loop);
}

/* Loads initial weights from a file, if the configuration names one. */
static weft_status take_init(weft__loop *loop) {
    WEFT_TRY(weft__model_init(&loop->model, loop->config));
    return weft__replicas_init(&loop->replicas, loop->config);
}

/* Gives the devices the tuning choices that this run measured before. Other choices could give other bits:
 * not all algorithms of cuBLASLt round alike. */
static weft_status take_choices(weft__loop *loop) {
    int n = 0;
    const weft_status status = weft__choices_read(loop->run.dir, &loop->choices, &n);
    if (status != WEFT_OK && status != WEFT_ERR_FORMAT) return status;
    if (status != WEFT_OK) {
        weft__progress_say(&loop->progress, "%s: the times so far are lost, and the kernels are tuned again",
                           weft_last_error(NULL));
        WEFT_TRY(weft__run_log(&loop->run, loop->first, "%s", weft_last_error(NULL)));
    }
    for (size_t i = 0; i <= loop->replicas.count; i++) {
        weft_device *device = (i ? loop->replicas.models[i - 1].ctx : loop->model.ctx)->device;
        device->given = loop->choices;
        device->n_given = n;
    }
    return WEFT_OK;
}

/* Marks the best checkpoint that the loaded one knows of. The mark may be missing if the process ended before
 * it was set, or may name a later checkpoint that is damaged. If the best checkpoint no longer exists, early
 * stopping starts anew: the next evaluation is the best so far. */
static weft_status restore_best(weft__loop *loop) {
    weft__stopping *s = &loop->stopping;
    if (!loop->config->train_keep_best || s->best_step == 0) return WEFT_OK;
    const weft_status status = weft_checkpoint_mark_best(loop->model.ctx, loop->run.dir, s->best_step);
    if (status == WEFT_ERR_STATE) *s = (weft__stopping){.due = s->due};
    return status == WEFT_ERR_STATE ? WEFT_OK : status;
}

/* Cuts the logs back to the step of the checkpoint. If the evaluation of this step is still due, the log of
 * the step is cut too, since it will be written again. Warns if the logs are damaged. */
static weft_status cut_logs(weft__loop *loop) {
    weft__history history;
    char damage[WEFT__DAMAGE_TEXT];
    WEFT_TRY(weft__run_truncate(&loop->run, loop->first - (loop->stopping.due.step ? 1 : 0)));
    WEFT_TRY(weft__history_read(loop->run.dir, &history));
    if (history.damaged)
        weft__log(loop->model.ctx, WEFT_LOG_WARNING, "%s/%s", loop->run.dir,
                  weft__history_damage(&history, damage));
    weft__history_free(&history);
    return WEFT_OK;
}

/* Loads the newest checkpoint of a run, if there is one. */
static weft_status loop_load(weft__loop *loop, const char *dir) {
    uint64_t step = 0;
    const bool strict = loop->options->strict;
    weft_status status = weft__reference_load(loop->model.ctx, &loop->dataset, dir);
    WEFT_TRY(weft__processes_ready(&loop->processes, status));
    const bool divides = loop->processes.group && loop->config->train_shard;
    status = weft__model_load(&loop->model, loop->config, &loop->dataset, loop->processes.group, dir, strict,
                              &loop->stopping, &step, divides ? &loop->checkpoint : NULL);
    if (status == WEFT_ERR_STATE)
        return take_init(loop); /* the run was stopped before its first checkpoint */
    WEFT_TRY(status);
    loop->first = loop->saved = step;
    return weft__replicas_load(&loop->replicas, loop->config, &loop->dataset, dir, strict);
}

/* Loads the newest checkpoint, and cuts the logs back to its step. */
static weft_status go_on(weft__loop *loop) {
    WEFT_TRY(loop_load(loop, loop->run.dir));
    WEFT_TRY(restore_best(loop));
    WEFT_TRY(take_choices(loop));
    WEFT_TRY(cut_logs(loop));
    weft_status status = weft__summary_read(loop->run.dir, &loop->before);
    if (status != WEFT_OK && status != WEFT_ERR_STATE && status != WEFT_ERR_FORMAT) return status;
    if (status == WEFT_OK) {
        loop->summary.phases = loop->before.phases;
        loop->summary.parts = loop->before.parts;
    }
    WEFT_TRY(write_config(loop));
    return weft__run_log(&loop->run, loop->first, "resumed");
}

/* ---- setting up ---- */

static weft_status make_loaders(weft__loop *loop) {
    weft_context *ctx = loop->model.ctx;
    const int64_t most = loop->config->train_eval_batches;
    weft_loader **loaders[] = {&loop->loader, &loop->validation, &loop->test};
    for (int i = 0; i < WEFT__SPLIT_COUNT; i++)
        if (i == WEFT__TRAIN || weft__dataset_has(&loop->dataset, (weft__split)i))
            WEFT_TRY(weft__dataset_loader(ctx, &loop->dataset, loop->config, (weft__split)i, 0, loaders[i]));
    if (!loop->validation || most == 0 || weft_loader_batches(loop->validation) <= most) return WEFT_OK;
    loop->whole = loop->validation;
    loop->validation = NULL;
    return weft__dataset_loader(ctx, &loop->dataset, loop->config, WEFT__VALIDATION, most, &loop->validation);
}

static weft_status count_steps(weft__loop *loop) {
    const weft__config *c = loop->config;
    int64_t batches = 0;
    loop->steps = (uint64_t)c->train_steps;
    if (loop->steps == 0) {
        if (!weft__mul(c->train_epochs, weft_loader_batches(loop->loader), &batches))
            return weft__fail(NULL, WEFT_ERR_ARGUMENT, "train.epochs: %lld are too many",
                              (long long)c->train_epochs);
        loop->steps = ((uint64_t)batches + (uint64_t)c->train_accumulate - 1) / (uint64_t)c->train_accumulate;
    }
    loop->items = (double)weft_loader_batch_size(loop->loader) * (double)c->train_accumulate;
    if (c->task == WEFT__TASK_LANGUAGE_MODEL)
        loop->items *= (double)weft__dataset_row_tokens(&loop->dataset, c);
    return WEFT_OK;
}

static void loop_setup_describe(weft__loop *loop) {
    weft__summary *s = &loop->summary;
    weft__model_name(loop->config, &loop->dataset, s->model);
    snprintf(s->device, sizeof s->device, "%s", weft_device_of(loop->model.ctx));
    s->parameters = (uint64_t)weft_parameter_elements(loop->model.module, false);
    s->steps = loop->steps;
    s->epoch_size = weft_fit_epoch_steps(loop->loader, (int)loop->config->train_accumulate);
    s->tokens = loop->config->task == WEFT__TASK_LANGUAGE_MODEL;
    s->results = weft__results_none();
    loop->test_r2 = (double)NAN;
}

/* Replaces train.batch: auto by a number, which the run keeps. */
static weft_status choose_batch(weft__loop *loop, weft__config *config) {
    weft_device *device = loop->model.ctx->device;
    if (config->train_batch) return WEFT_OK;
    const uint64_t memory_free = weft__device_memory_free(device);
    WEFT_TRY(weft__planning_batch(config, &loop->dataset, device->name, memory_free));
    weft__progress_say(&loop->progress, "train.batch %lld: the largest whose step fits into the memory of %s",
                       (long long)config->train_batch, device->name);
    return WEFT_OK;
}

weft_status weft__loop_prepare(weft__loop *loop, weft__config *config, const char *run) {
    WEFT_TRY(weft__config_absolute(config));
    WEFT_TRY(weft__model_vocab(config));
    weft_context *ctx = NULL;
    const bool chooses = weft__auto_chooses(config);
    if (chooses) WEFT_TRY(weft__dataset_read(NULL, config, run, &loop->dataset));
    if (chooses) WEFT_TRY(weft__auto_choose(config, &loop->dataset, WEFT__TO_TRAIN, &loop->choice));
    WEFT_TRY(weft__model_open_context(config, loop->choice.device, on_log, loop, &ctx));
    loop->config = config;
    loop->model.ctx = ctx;
    if (loop->processes.group) ctx->caller.interrupted = interrupted, ctx->caller.interrupted_user = loop;
    WEFT_TRY(weft_profile_start(ctx, &(weft_profile_options){.every = TIMED_EVERY}, &loop->profile));
    weft__span span = weft__profile_enter(ctx, WEFT__DOING_DATA);
    weft_status status = chooses ? WEFT_OK : weft__dataset_read(NULL, config, run, &loop->dataset);
    weft__profile_leave(ctx, span);
    WEFT_TRY(status);
    WEFT_TRY(choose_batch(loop, config));
    WEFT_TRY(weft__model_build(ctx, config, &loop->dataset, NULL, &loop->model));
    WEFT_TRY(make_loaders(loop));
    WEFT_TRY(weft__class_weights(config, &loop->dataset, &loop->class_weights));
    WEFT_TRY(count_steps(loop));
    /* config.yaml holds the value that was used */
    config->schedule_warmup = weft__model_warmup(config, loop->steps);
    if (!weft__config_given(config, WEFT__KEY_schedule_warmup))
        config->origin[WEFT__KEY_schedule_warmup] = WEFT__ORIGIN_FOUND;
    WEFT_TRY(weft__replicas_open(&loop->replicas, config, &loop->dataset, loop->steps, on_log, loop));
    if (!run) WEFT_TRY(take_init(loop));
    return weft__model_optimizer(&loop->model, config, loop->steps);
}

/* Starts a loop. Of several processes on a machine with several devices of a kind, each takes one. */
static void loop_begin(weft__loop *loop, const weft__config *config, const weft__train_options *options,
                       bool quiet) {
    memset(loop, 0, sizeof *loop);
    loop->options = options;
    loop->saved = UINT64_MAX;
    loop->last = weft__metrics_none(0);
    loop->processes = weft__processes_start(options->group, config->train_timeout);
    weft__processes_device(&loop->processes, config, loop->choice.device);
    weft__progress_start(&loop->progress, quiet, config->task == WEFT__TASK_LANGUAGE_MODEL);
}

bool weft__loop_done(const weft__loop *loop) {
    return (loop->first >= loop->steps && !loop->stopping.due.step) ||
           weft__stopping_over(&loop->stopping, loop->config);
}

weft_status weft__loop_follow(weft__loop *loop, weft__config *config, const weft__train_options *options) {
    loop_begin(loop, config, options, true);
    WEFT_TRY(weft__loop_prepare(loop, config, options->resume ? options->dir : NULL));
    if (options->resume) return loop_load(loop, options->dir);
    return loop->dataset.chats.pairs
               ? weft__reference_compute(&loop->model, config, WEFT__TRAIN, &loop->dataset)
               : WEFT_OK;
}

weft_status weft__loop_open(weft__loop *loop, weft__config *config, const weft__train_options *options) {
    const bool tokens = config->task == WEFT__TASK_LANGUAGE_MODEL;
    loop_begin(loop, config, options, options->quiet);
    if (options->resume)
        WEFT_TRY(weft__run_open(options->dir, tokens, &loop->run)); /* the lock keeps other processes out */
    WEFT_TRY(weft__loop_prepare(loop, config, options->resume ? options->dir : NULL));
    loop_setup_describe(loop);
    WEFT_TRY(options->resume ? go_on(loop) : create(loop, tokens));
    loop->telemetry = weft__telemetry_start(loop->model.ctx);
    return weft__loop_summary(loop, "running");
}

weft_status weft__loop_unite(weft__loop *loop, weft_status status, bool *silent) {
    status = weft__processes_join(&loop->processes, status, loop->config, &loop->dataset, &loop->model,
                                  loop->checkpoint, silent);
    weft_checkpoint_close(loop->checkpoint);
    loop->checkpoint = NULL;
    return status;
}

void weft__loop_close(weft__loop *loop) {
    weft_context *ctx = loop->model.ctx;
    weft__telemetry_stop(loop->telemetry);
    loop->telemetry = NULL;
    weft_decode_state_free(loop->cache);
    weft__replicas_close(&loop->replicas);
    weft__processes_free(&loop->processes);
    weft_loader_free(loop->loader);
    weft_loader_free(loop->validation);
    weft_loader_free(loop->whole);
    weft_loader_free(loop->test);
    weft__scores_free(&loop->scores);
    weft__free(NULL, loop->sample.data);
    weft__free(NULL, loop->class_weights);
    loop->class_weights = NULL;
    weft__dataset_free(NULL, &loop->dataset);
    weft_profile_free(loop->profile);
    weft_close(ctx);
    weft__free(NULL, loop->choices);
    loop->choices = NULL;
    loop->model = (weft__model){0};
    weft__run_close(&loop->run);
}

weft_fit_options weft__loop_fit(const weft__loop *loop, uint64_t steps) {
    return (weft_fit_options){.loss = loop->model.loss,
                              .steps = steps,
                              .accumulate = (int)loop->config->train_accumulate,
                              .label_smoothing = weft__model_smoothing(loop->config),
                              .beta = loop->model.beta,
                              .replicas = loop->replicas.list,
                              .n_replicas = loop->replicas.count,
                              .class_weights = loop->class_weights,
                              .n_classes = loop->class_weights ? loop->dataset.outputs : 0};
}

weft_status weft__loop_summary(weft__loop *loop, const char *status) {
    /* holds phases of earlier processes; those of this process are added */
    weft__summary now = loop->summary;
    weft_profile_times times;
    weft_profile_total(loop->profile, &times);
    weft__progress_summary(&loop->progress, &times, &now);
    now.step = loop->model.optimizer ? weft_optimizer_steps(loop->model.optimizer) : loop->first;
    snprintf(now.status, sizeof now.status, "%s", status);
    const weft_device *device = loop->model.ctx ? loop->model.ctx->device : NULL;
    now.choices = device ? device->choices : NULL;
    now.n_choices = device ? device->n_choices : 0;
    now.telemetry = weft__telemetry_all(loop->telemetry);
    return weft__summary_write(&loop->run, &now);
}
