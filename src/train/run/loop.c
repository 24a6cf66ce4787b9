/* The training loop of the command: what happens after each step of weft_fit (evaluate, sample, log, save,
 * stop), and how a run ends. Must not know: how models and data are made. Read next: src/cli/train.c. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/generate.h>
#include <weft/recurrent.h>

#include "base/text.h"
#include "optim/optimizer.h"
#include "train/print.h"
#include "train/dataset/dataset_summary.h"
#include "train/model/reference.h"
#include "train/run/loop_scores.h"
#include "train/run/loop_setup.h"
#include "train/analysis/planning.h"
#include "train/report/report.h"
#include "train/run/signals.h"

#define REPORT_SECONDS 2.0  /* least seconds between two reports; the end always writes one */
#define REPORT_SHARE   0.01 /* of the time may go into reports of a run under way */

/* ---- what is due ---- */

/* Tells whether something is due after this step. every > 0: after each `every` steps. A given 0: never. Not
 * given: at the end of each epoch. The last step always counts. */
static bool due(const weft__loop *loop, weft__config_key key, int64_t every, const weft_fit_state *state) {
    if (state->step == state->steps) return true;
    if (every > 0) return state->step % (uint64_t)every == 0;
    return loop->config->origin[key] == WEFT__ORIGIN_UNSET && state->epoch_ends;
}

/* ---- actions after a step ---- */

/* Lets the model write. If parameters are divided, all processes do. */
static weft_status sample(weft__loop *loop, uint64_t step) {
    const weft__sample *made = &loop->sample;
    if (loop->config->task != WEFT__TASK_LANGUAGE_MODEL) return WEFT_OK;
    const bool together = weft__optimizer_divides_parameters(loop->model.optimizer);
    if (together) WEFT_TRY(weft__processes_together(&loop->processes, WEFT__ORDER_SAMPLE));
    WEFT_TRY(weft__loop_sample(loop, step));
    loop->processes.followers_wait = together || loop->processes.followers_wait;
    return weft__run_sample(&loop->run, step, made->data ? made->data : "", made->size);
}

static weft_status save(weft__loop *loop, uint64_t step) {
    if (loop->saved == step) return WEFT_OK;
    weft__progress_phase(&loop->progress, WEFT__PHASE_SAVE);
    WEFT_TRY(weft__run_log(&loop->run, step, "saving"));
    WEFT_TRY(weft__run_sync(&loop->run)); /* the checkpoint promises that the logs reach this step */
    WEFT_TRY(weft__processes_save(&loop->processes, loop->model.optimizer));
    const weft_status status =
        weft__model_save(&loop->model, loop->config, &loop->dataset, loop->run.dir, &loop->stopping);
    weft__processes_saved(&loop->processes);
    if (status == WEFT_OK) loop->saved = step;
    return status;
}

/* Calls a function that writes several files. If the run folder was moved meanwhile, the function is called a
 * second time. */
static weft_status write_in_folder(weft__loop *loop, uint64_t step,
                                   weft_status (*write)(weft__loop *, uint64_t)) {
    WEFT_TRY(weft__run_follow(&loop->run));
    const int moves = loop->run.moves;
    const weft_status status = write(loop, step);
    if (status == WEFT_OK) return status;
    WEFT_TRY(weft__run_follow(&loop->run)); /* fails if the folder was removed */
    return loop->run.moves == moves ? status : write(loop, step);
}

/* Saves this step, and marks it if it is the best so far. The previous best checkpoint may then be pruned
 * like any other. */
static weft_status keep(weft__loop *loop, uint64_t step) {
    WEFT_TRY(save(loop, step));
    if (loop->config->train_keep_best && loop->stopping.best_step == step)
        WEFT_TRY(weft_checkpoint_mark_best(loop->model.ctx, loop->run.dir, step));
    weft__model_prune(&loop->model, loop->config, loop->run.dir, step);
    return WEFT_OK;
}

static weft_status report(weft__loop *loop, uint64_t step) {
    (void)step;
    if (loop->processes.group) WEFT_TRY(weft__processes_write(&loop->processes, loop->run.dir));
    return weft__report_write(loop->run.dir);
}

/* Writes the report of a run under way if it is due. The time that this took decides when the next one is. */
static weft_status report_on(weft__loop *loop, uint64_t step) {
    const double from = weft__now();
    if (from < loop->report_due) return WEFT_OK;
    weft__progress_phase(&loop->progress, WEFT__PHASE_REPORT);
    WEFT_TRY(weft__loop_summary(loop, "running"));
    WEFT_TRY(write_in_folder(loop, step, report));
    const double now = weft__now();
    loop->report_due = now + fmax(REPORT_SECONDS, (now - from) / REPORT_SHARE);
    return WEFT_OK;
}

/* Fills in the numbers of a step except losses. */
static void describe_step(weft__loop *loop, const weft_fit_state *state, weft__metrics *m) {
    m->lr = state->lr;
    m->grad_norm = weft_optimizer_grad_norm(loop->model.optimizer);
    m->loss_scale = weft_optimizer_loss_scale(loop->model.optimizer);
    if (loop->rate_seconds > 0) m->rate = loop->items * (double)loop->rate_steps / loop->rate_seconds;
    loop->rate_seconds = 0;
    loop->rate_steps = 0;
    if (state->epoch_ends) {
        m->epoch_seconds = weft__now() - loop->epoch_started;
        loop->epoch_started = weft__now();
    }
}

static weft_status log_step(weft__loop *loop, weft__metrics *m) {
    m->memory_peak = weft__memory_peak();
    m->telemetry = weft__telemetry_take(loop->telemetry);
    loop->last = *m;
    return weft__run_metrics(&loop->run, m);
}

/* What must happen after a step. */
typedef struct duties {
    bool evaluates, logs, shows, saves;
    bool ends; /* early stopping: patience is used up */
} duties;

static duties duties_of(const weft__loop *loop, const weft_fit_state *state) {
    const weft__config *c = loop->config;
    const bool regular = state->step % (uint64_t)c->train_log_every == 0;
    duties d = {.evaluates = due(loop, WEFT__KEY_train_eval_every, c->train_eval_every, state),
                .saves = due(loop, WEFT__KEY_train_save_every, c->train_save_every, state)};
    d.logs = d.evaluates || state->epoch_ends || regular;
    d.shows = d.evaluates || regular || weft__progress_stale(&loop->progress);
    return d;
}

/* Returns the number of evaluations after this step, the one at the last step included. */
static uint64_t evaluations_left(const weft__loop *loop, uint64_t step) {
    const weft__config *c = loop->config;
    uint64_t every = (uint64_t)c->train_eval_every;
    if (c->train_eval_every == 0 && loop->config->origin[WEFT__KEY_train_eval_every] == WEFT__ORIGIN_UNSET)
        every = loop->summary.epoch_size;
    if (step >= loop->steps) return 0;
    return every ? (loop->steps - 1) / every - step / every + 1 : 1;
}

/* Returns the number of batches that will be evaluated after this step, those of the final scores
 * included. */
static uint64_t batches_left(const weft__loop *loop, uint64_t step) {
    const weft_loader *final[] = {loop->whole, loop->test};
    uint64_t batches = 0;
    if (loop->validation)
        batches = evaluations_left(loop, step) * (uint64_t)weft_loader_batches(loop->validation);
    for (int i = 0; i < 2; i++)
        if (final[i]) batches += (uint64_t)weft_loader_batches(final[i]);
    return batches;
}

/* Reads the loss if it is needed now. Reading waits for the device. */
static weft_status loop_look(weft__loop *loop, const weft_fit_state *state, const duties *d, double *loss) {
    const double from = weft__now();
    if (d->logs || d->shows || d->saves) WEFT_TRY(weft__processes_losses(&loop->processes, state, loss));
    if (state->step > loop->first + 1) { /* the first step is mostly compilation */
        loop->rate_seconds += state->seconds_data + state->seconds_step + weft__now() - from;
        loop->rate_steps++;
    }
    return WEFT_OK;
}

/* Handles a requested stop. From here on nothing interrupts what is needed to save. */
static void heed_stop(weft__loop *loop) {
    if (loop->signal) return;
    const int own = weft__signals_stop();
    loop->signal = own ? own : loop->processes.signal;
    if (!loop->signal) return;
    weft__signals_mode(WEFT__STOP_UNDER_WAY, NULL);
    weft__signals_drop_output();
}

static weft_status evaluate(weft__loop *loop, weft__metrics *m, duties *d) {
    WEFT_TRY(weft__loop_evaluate(loop, m));
    weft__run_beat(&loop->run);
    if (loop->validation && weft__stopping_look(&loop->stopping, loop->config, m->step, m->val_loss))
        d->saves = d->saves || loop->config->train_keep_best;
    d->ends = weft__stopping_over(&loop->stopping, loop->config);
    weft__progress_phase(&loop->progress, WEFT__PHASE_SAMPLE);
    WEFT_TRY(sample(loop, m->step));
    weft__progress_phase(&loop->progress, WEFT__PHASE_REPORT);
    return WEFT_OK;
}

/* Evaluates, logs and shows the step. If a stop interrupts this, all of it stays due: the checkpoint stores
 * what is known, and a resumed run catches up first. */
static weft_status tell(weft__loop *loop, weft__metrics *m, duties *d) {
    const weft__stopping before = loop->stopping;
    const weft__metrics known = *m;
    loop->stopping.due.step = 0;
    weft_status status = d->evaluates ? evaluate(loop, m, d) : WEFT_OK;
    if (status == WEFT_ERR_STOPPED) {
        loop->stopping = before;
        loop->stopping.due = known;
        return WEFT_OK;
    }
    if (status == WEFT_OK && d->logs) status = log_step(loop, m);
    if (status != WEFT_OK || !d->shows) return status;
    weft__metrics shown = loop->last;
    shown.epoch = m->epoch;
    shown.loss = m->loss;
    loop->progress.batches_left = batches_left(loop, m->step);
    weft__progress_step(&loop->progress, m->step, &shown);
    return WEFT_OK;
}

/* Saves if a save is due or a stop was requested. state NULL: an earlier process made the step. */
static weft_status keep_due(weft__loop *loop, const weft_fit_state *state, uint64_t step, const duties *d) {
    const bool wanted = weft__signals_save() || loop->processes.save;
    loop->processes.save = false;
    heed_stop(loop);
    if (!d->saves && !d->ends && !wanted && !loop->signal) return WEFT_OK;
    if (state) /* never save weights that follow from a loss that is not finite */
        WEFT_TRY(weft__processes_losses(&loop->processes, state, NULL));
    return write_in_folder(loop, step, keep);
}

static weft_status after_step(weft__loop *loop, const weft_fit_state *state, bool *stop) {
    duties d = duties_of(loop, state);
    loop->processes.followers_wait = true;
    weft__processes_step(&loop->processes, state);
    weft__run_beat(&loop->run);
    weft__metrics m = weft__metrics_none(state->step);
    weft__signals_mode(WEFT__STOP_IN_ORDER, NULL); /* from now on there is something to save */
    WEFT_TRY(loop_look(loop, state, &d, &m.loss));
    if (state->epoch_ends && loop->config->data_streams) /* before the states are saved */
        WEFT_TRY(weft_streams_restart(loop->model.module));
    weft__progress_phase(&loop->progress, WEFT__PHASE_REPORT);
    m.epoch = state->epoch;
    if (d.logs) describe_step(loop, state, &m);
    WEFT_TRY(tell(loop, &m, &d));
    WEFT_TRY(keep_due(loop, state, state->step, &d));
    if (d.logs && !loop->signal) WEFT_TRY(report_on(loop, state->step));
    *stop = loop->signal != 0 || d.ends;
    weft__progress_phase(&loop->progress, WEFT__PHASE_TRAIN);
    return weft__processes_order(&loop->processes, *stop ? WEFT__ORDER_STOP : WEFT__ORDER_GO);
}

/* Makes the evaluation that a stop interrupted in an earlier process. The checkpoint is written again, as if
 * the evaluation had not been interrupted. */
static weft_status catch_up(weft__loop *loop, bool *stop) {
    weft__metrics m = loop->stopping.due;
    duties d = {.evaluates = true, .logs = true, .shows = true, .saves = true};
    WEFT_TRY(tell(loop, &m, &d));
    if (loop->stopping.due.step == 0) loop->saved = UINT64_MAX;
    WEFT_TRY(keep_due(loop, NULL, m.step, &d));
    *stop = loop->signal != 0 || d.ends;
    weft__progress_phase(&loop->progress, WEFT__PHASE_TRAIN);
    return weft__processes_order(&loop->processes, *stop ? WEFT__ORDER_STOP : WEFT__ORDER_GO);
}

static weft_status on_step(void *user, const weft_fit_state *state, bool *stop) {
    return after_step(user, state, stop);
}

/* ---- begin and end ---- */

static weft_status introduce(weft__loop *loop) {
    char number[24];
    weft__lines lines;
    const weft__summary *s = &loop->summary;
    loop->introduced = true;
    weft__progress_say(&loop->progress, "%s, %s parameters, on %s", s->model,
                       weft__short_number((double)s->parameters, number), s->device);
    const int64_t trained = weft_parameter_elements(loop->model.module, true);
    if (loop->config->lora_rank > 0)
        weft__progress_say(&loop->progress, "adapters of rank %lld: training changes %s of the parameters",
                           (long long)loop->config->lora_rank, weft__short_number((double)trained, number));
    else if (trained < weft_parameter_elements(loop->model.module, false))
        weft__progress_say(&loop->progress, "train.freeze: training changes %s of the parameters",
                           weft__short_number((double)trained, number));
    WEFT_TRY(weft__dataset_summary(&loop->dataset, loop->config, &lines));
    weft__progress_say(&loop->progress, "%s", lines.text);
    if (loop->dataset.chats.pairs)
        weft__progress_say(&loop->progress,
                           "before training the chosen answer is likelier in %.1f %% of the training pairs",
                           100 * weft__reference_agrees(&loop->dataset));
    weft_device_description device;
    weft_device_describe(loop->model.ctx, &device);
    const char *setting = loop->config->device && loop->config->device[0] ? loop->config->device : NULL;
    const char *why = loop->choice.why[0] ? loop->choice.why : "there is no graphics card";
    const bool automatic = setting && strcmp(setting, "auto") == 0;
    weft__progress_say(&loop->progress, "device %s, %s%s: %s", s->device,
                       automatic ? "as auto chooses: "
                       : setting ? "as requested: "
                                 : "the default",
                       automatic ? why
                       : setting ? setting
                                 : "",
                       device.detail ? device.detail : "");
    if (loop->processes.group)
        weft__progress_say(&loop->progress, "%d processes by %s share the %lld batches of a step",
                           weft_process_group_size(loop->processes.group),
                           weft_process_group_engine(loop->processes.group),
                           (long long)loop->config->train_accumulate);
    for (size_t i = 0; i < loop->replicas.count; i++)
        weft__progress_say(&loop->progress, "and on %s: the devices share the micro-batches of a step",
                           weft_device_of(loop->replicas.models[i].ctx));
    weft__progress_say(&loop->progress, "%s: %llu steps%s, %llu an epoch", loop->run.dir,
                       (unsigned long long)loop->steps, loop->first > 0 ? " in all, resumed" : "",
                       (unsigned long long)s->epoch_size);
    return WEFT_OK;
}

/* Memory for code, stacks and buffers that the first step, an evaluation and a checkpoint will use: 1.2 to
 * 2.1 MiB for a small model on the CPU. */
enum { YET_TO_RUN = 3 << 19 };

/* Shows the memory that the process will need at its peak: what it uses so far, data included, plus what a
 * step takes. */
static void on_plan(void *user, const weft_memory_plan *plan) {
    weft__loop *loop = user;
    weft_device_description device;
    weft_device_describe(loop->model.ctx, &device);
    const double mb = 1 << 20, total = (weft__memory_peak() + (double)(plan->pending + YET_TO_RUN)) / mb;
    double parameters = (double)plan->parameters / mb, states = (double)plan->states / mb,
           work = (double)plan->work / mb, rest = total - parameters - states - work;
    weft__progress_say(&loop->progress,
                       "memory: %.1f MB: parameters %.1f, optimizer %.1f, activations and gradients %.1f, "
                       "data and program %.1f",
                       total, parameters, states, work, rest > 0 ? rest : 0);
    if (plan->threads > 0)
        weft__progress_say(
            &loop->progress, "a step runs on %d thread%s%s", plan->threads, plan->threads == 1 ? "" : "s",
            plan->threads < device.threads ? ": more threads would cost more than they save" : "");
}

/* Shows the telemetry of the card, as means. */
static void say_telemetry(weft__loop *loop) {
    weft__metrics m = weft__metrics_none(0);
    char line[WEFT__METRICS * 48];
    weft_text t = weft__text(line, sizeof line);
    m.telemetry = weft__telemetry_all(loop->telemetry);
    for (int place = 1; place <= WEFT__METRICS; place++)
        for (int i = 0; i < WEFT__METRICS; i++) {
            const weft__metric *metric = weft__metric_rows[i];
            const double value = weft__metric_get(&m, metric) * metric->factor;
            if (metric->place == place && isfinite(value))
                weft__put(&t, "%s%.0f %s", t.length ? ", " : "", value, metric->unit[0]);
        }
    if (t.length) weft__progress_say(&loop->progress, "the card, on average: %s", line);
}

/* Shows what the run gave. */
static void conclude(weft__loop *loop, bool early) {
    weft__progress *p = &loop->progress;
    const weft__sample *written = &loop->sample;
    weft_profile_times times;
    weft_profile_total(loop->profile, &times);
    weft__progress_end(p);
    if (loop->options->verbose) {
        weft__progress_times(p, &times);
        weft__processes_say(&loop->processes, p->out);
        say_telemetry(loop);
    }
    weft__loop_say_scores(loop);
    if (written->size > 0) {
        weft__progress_say(p, "the model writes:");
        weft__progress_sample(p, written->data + written->from, written->size - written->from);
    }
    if (early)
        weft__progress_say(p,
                           "stopped early: the last %lld evaluations were not better; to continue, use --set "
                           "train.patience=0",
                           (long long)loop->stopping.waited);
    weft__progress_say(p, "report: %s/report.html", loop->run.dir);
}

/* Measures the trained model, unless a stop was requested. Then `weft resume` measures it. */
static weft_status loop_measure(weft__loop *loop) {
    if (loop->signal) return WEFT_OK;
    weft__progress_phase(&loop->progress, WEFT__PHASE_EVAL);
    const weft_status status = weft__loop_score(loop);
    heed_stop(loop);
    return status == WEFT_ERR_STOPPED ? WEFT_OK : status;
}

static weft_status loop_finish(weft__loop *loop) {
    WEFT_TRY(loop_measure(loop));
    const bool early = weft__stopping_over(&loop->stopping, loop->config);
    const char *how = loop->signal ? "stopped by a signal" : early ? "stopped early" : "done";
    weft__progress_phase(&loop->progress, WEFT__PHASE_REPORT);
    WEFT_TRY(weft__loop_summary(loop, loop->signal ? "stopped" : how));
    WEFT_TRY(weft__run_log(&loop->run, loop->saved, "%s", how));
    WEFT_TRY(write_in_folder(loop, loop->saved, report));
    conclude(loop, early);
    return WEFT_OK;
}

static weft_status train(weft__loop *loop) {
    WEFT_TRY(introduce(loop));
    static const char *const results[] = {"scores.json", "pictures.json"};
    char path[4096];
    for (int i = 0; i < 2; i++)
        if (weft__join(path, sizeof path, loop->run.dir, results[i]))
            (void)unlink(path); /* results of fewer steps are out of date */
    loop->progress.first = loop->first;
    loop->progress.last = loop->steps;
    loop->progress.batches_step = (double)loop->config->train_accumulate;
    loop->epoch_started = weft__now();
    weft__progress_phase(&loop->progress, WEFT__PHASE_TRAIN);
    weft_fit_options options = weft__loop_fit(loop, loop->steps);
    options.on_step = on_step;
    options.on_plan = on_plan;
    options.user = loop;
    bool stop = false;
    loop->processes.followers_wait = loop->stopping.due.step != 0;
    if (loop->stopping.due.step) WEFT_TRY(catch_up(loop, &stop));
    weft_status status = WEFT_OK;
    if (!stop) status = weft_fit(loop->model.module, loop->model.optimizer, loop->loader, &options, NULL);
    if (status == WEFT_OK) loop->processes.followers_wait = true;
    if (status == WEFT_ERR_STOPPED) { /* stopped between two micro-batches of a step */
        heed_stop(loop);
        status = write_in_folder(loop, weft_optimizer_steps(loop->model.optimizer), keep);
    }
    return status == WEFT_OK ? loop_finish(loop) : status;
}

/* Adds advice to the error message when the loss is not finite. */
static void advise_rate(const weft__loop *loop, weft__train_result *result) {
    const weft__config *c = loop->config;
    const size_t used = strlen(result->error);
    const bool raw =
        weft__config_for(WEFT__KEY_data_standardize, (weft__model_type)c->model_type) && !c->data_standardize;
    snprintf(result->error + used, sizeof result->error - used,
             "; try --set optimizer.lr=%g, which is %g now%s%s", c->optimizer_lr / 10, c->optimizer_lr,
             c->optimizer_clip > 0 ? "" : ", or --set optimizer.clip=1",
             raw ? ", or --set data.standardize=true" : "");
}

/* Keeps the message of a failure, and notes it in the run folder if possible. */
static void note_failure(weft__loop *loop, weft_status status, weft__train_result *result) {
    snprintf(result->error, sizeof result->error, "%s", weft_last_error(NULL));
    if (!loop->run.dir) return;
    if ((status == WEFT_ERR_NUMERIC || status == WEFT_ERR_DEVICE) && loop->saved != UINT64_MAX) {
        size_t used = strlen(result->error);
        snprintf(result->error + used, sizeof result->error - used, "; the checkpoint of step %llu is kept",
                 (unsigned long long)loop->saved);
    }
    if (status == WEFT_ERR_NUMERIC && loop->introduced) advise_rate(loop, result);
    uint64_t step = loop->model.optimizer ? weft_optimizer_steps(loop->model.optimizer) : 0;
    bool noted = weft__run_log(&loop->run, step, "%s", result->error) == WEFT_OK;
    if (loop->introduced && noted && /* otherwise an earlier process wrote the summary */
        weft__loop_summary(loop, status == WEFT_ERR_NUMERIC ? "diverged" : "failed") == WEFT_OK)
        noted = weft__report_write(loop->run.dir) == WEFT_OK;
    (void)noted; /* the first failure is the one that counts */
    if (loop->progress.line_shown) fputc('\n', loop->progress.out);
}

/* Adds advice to an out-of-memory error: plans tell which settings need less memory. */
static void advise(const weft__loop *loop) {
    char error[WEFT_ERROR_SIZE], advice[400];
    snprintf(error, sizeof error, "%s", weft_last_error(NULL));
    if (!loop->config || !loop->model.ctx) return;
    weft__planning_advice(loop->config, &loop->dataset, weft_device_of(loop->model.ctx), advice,
                          sizeof advice);
    const weft_status same = weft__fail(NULL, WEFT_ERR_OOM, "%s%s%s", error,
                                        advice[0] ? "; according to the memory plan: " : "", advice);
    (void)same; /* the caller returns this status already */
}

/* Completes a run whose steps are all done. If a process was killed while it measured the results, there are
 * no scores yet. */
static weft_status complete(weft__loop *loop, const char *how) {
    char path[4096];
    const bool ended = strcmp(loop->before.status, how) == 0;
    weft__model_prune(&loop->model, loop->config, loop->run.dir, loop->first);
    if (ended) /* the summary then has the scores already */
        loop->summary.results = loop->before.results;
    if (!weft__join(path, sizeof path, loop->run.dir, "scores.json") || access(path, F_OK) != 0 || !ended)
        WEFT_TRY(weft__loop_score(loop));
    WEFT_TRY(weft__loop_summary(loop, how));
    return weft__report_write(loop->run.dir);
}

weft_status weft__train(weft__config *config, const weft__train_options *options,
                        weft__train_result *result) {
    weft__loop loop;
    memset(result, 0, sizeof *result);
    weft__signals_install(options->resume ? "weft: stopped before the next step: the run is unchanged\n"
                                          : "weft: stopped before the first step: nothing was saved\n");
    weft_status status = weft__loop_open(&loop, config, options);
    status = weft__loop_unite(&loop, status, &result->silent);
    if (loop.run.dir) snprintf(result->dir, sizeof result->dir, "%s", loop.run.dir);
    result->early = status == WEFT_OK && weft__stopping_over(&loop.stopping, config);
    if (status == WEFT_OK && weft__loop_done(&loop)) {
        result->nothing = loop.processes.followers_wait = true;
        status = complete(&loop, result->early ? "stopped early" : "done");
    } else if (status == WEFT_OK) {
        status = train(&loop);
    }
    if (status == WEFT_ERR_OOM) advise(&loop);
    if (status != WEFT_OK) note_failure(&loop, status, result);
    /* the folder may have moved */
    if (loop.run.dir) snprintf(result->dir, sizeof result->dir, "%s", loop.run.dir);
    result->signal = loop.signal;
    result->abandons = weft__processes_end(&loop.processes, status);
    weft__signals_mode(WEFT__STOP_AT_ONCE, ""); /* everything is written */
    weft__loop_close(&loop);
    weft__signals_restore();
    return status;
}
