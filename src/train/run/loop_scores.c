/* What the loop measures, and what it prints about it. Must not know: steps, and checkpoints other than the
 * best. Read next: train/report/scores.c. */
#define _XOPEN_SOURCE 700 /* realpath */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/generate.h>

#include "io/sealed.h"
#include "optim/optimizer.h"
#include "process/group.h"
#include "train/dataset/class_weights.h"
#include "train/model/trained.h"
#include "train/report/pictures.h"
#include "train/run/loop_scores.h"
#include "train/run/signals.h"

/* Tells the user once that the model predicts the same class for all samples, and what to try. */
static void hint(weft__loop *loop, uint64_t step) {
    char name[24], line[600];
    double share;
    const int64_t only = weft__scores_only(&loop->scores);
    if (loop->hinted || only < 0) return;
    const int64_t most = weft__class_majority(&loop->dataset, &share);
    const weft__config *c = loop->config;
    loop->hinted = true;
    snprintf(
        line, sizeof line,
        "all %lld validation samples are predicted as class %.60s%s: after %llu steps the network does not "
        "distinguish the classes. Try a %s learning rate (--set optimizer.lr=%g), more epochs%s%s",
        (long long)loop->scores.samples, weft__class_name(&loop->dataset, only, name),
        only == most ? ", the most frequent class of the training data" : "", (unsigned long long)step,
        c->optimizer_lr >= 0.01 ? "lower" : "higher",
        c->optimizer_lr >= 0.01 ? c->optimizer_lr / 10 : c->optimizer_lr * 10,
        c->train_class_weights.count ? "" : ", or --set train.class_weights=balanced",
        c->data_standardize || weft__config_is(c, WEFT__TRAIT_TEXTS) ? ""
                                                                     : ", or --set data.standardize=true");
    weft__progress_say(&loop->progress, "%s", line);
    const weft_status noted = weft__run_log(&loop->run, step, "%s", line);
    (void)noted; /* writing the metrics will report what is wrong with the disk */
}

static weft_loader *loader_of(const weft__loop *loop, weft__loaders which) {
    return which == WEFT__LOADER_VALIDATION ? loop->validation
           : which == WEFT__LOADER_WHOLE    ? loop->whole
                                            : loop->test;
}

weft_status weft__loop_take(weft__loop *loop, weft__loaders which, bool auc, weft__scores *scores) {
    weft_loader *loader = loader_of(loop, which);
    weft__processes *p = &loop->processes;
    const weft__evaluated here = {.module = loop->model.module, .loader = loader};
    if (!p->group) return weft__scores_take(&loop->model, &loop->dataset, loader, auc, scores);
    *scores = (weft__scores){0};
    if (!weft__processes_follows(p)) WEFT_TRY(weft__processes_evaluate(p, (int)which));
    WEFT_TRY(weft__optimizer_share_buffers(loop->model.optimizer));
    loop->model.ctx->caller.completes = true; /* the others wait for the results */
    const weft_status status = weft__scores_gather(&loop->model, &loop->dataset,
                                                   &(weft__evaluators){&here, 1, p->group}, auc, scores);
    loop->model.ctx->caller.completes = false;
    p->followers_wait = status == WEFT_OK && !weft__processes_follows(p);
    return status;
}

#define HINT_STEPS      10      /* fewer steps tell nothing, even if they are epochs */
#define AUC_IN_TRAINING 1000000 /* samples times classes; above this, ROC AUC is computed only at the end */

weft_status weft__loop_evaluate(weft__loop *loop, weft__metrics *m) {
    weft__scores *s = &loop->scores;
    if (!loop->validation) return WEFT_OK;
    weft__progress_phase(&loop->progress, WEFT__PHASE_EVAL);
    const bool last = m->step == loop->steps,
               few = loop->dataset.outputs <= AUC_IN_TRAINING / (weft_loader_samples(loop->validation) + 1);
    weft__scores_free(s);
    WEFT_TRY(weft__loop_take(loop, WEFT__LOADER_VALIDATION, last || few, s));
    loop->progress.batches_done += (uint64_t)weft_loader_batches(loop->validation);
    loop->summary.results.val_loss = m->val_loss = s->loss;
    loop->summary.results.val_accuracy = m->val_accuracy = s->accuracy;
    if (s->pairs) m->val_margin = s->margin;
    if (s->task == WEFT__TASK_CLASSIFICATION) {
        m->val_f1 = s->classes.f1;
        m->val_auc = s->classes.auc;
        if (m->epoch >= 1 && m->step >= HINT_STEPS) hint(loop, m->step);
    } else if (s->task == WEFT__TASK_REGRESSION) {
        m->val_r2 = s->numbers.r2;
        m->val_rmse = s->numbers.rmse;
        m->val_mae = s->numbers.mae;
    }
    return WEFT_OK;
}

/* ---- samples ---- */

#define SAMPLE_TOKENS   300
#define GATHERED_TOKENS 60 /* if parameters are divided: each token gathers all of them */

static weft_status sample_collect(void *user, const char *piece, size_t bytes) {
    weft__loop *loop = user;
    weft__sample *t = &loop->sample;
    if (!loop->model.ctx->caller.completes && weft__signals_interrupt(NULL))
        return weft__fail(NULL, WEFT_ERR_STOPPED, "the run was stopped while the model wrote a sample");
    for (size_t i = 0; i < bytes; i++) {
        if (!weft__grow(NULL, &t->data, &t->capacity, t->size, 1))
            return weft__fail_oom(NULL, t->size, "a sample");
        t->data[t->size++] = piece[i];
    }
    return WEFT_OK;
}

/* The begin of the last lines of a question. */
static size_t last_lines(const char *question) {
    enum { BYTES = 160 };
    const size_t size = question ? strlen(question) : 0;
    const char *line = size > BYTES ? strchr(question + size - BYTES, '\n') : NULL;
    return line ? (size_t)(line + 1 - question) : 0;
}

weft_status weft__loop_sample(weft__loop *loop, uint64_t step) {
    weft__sample *made = &loop->sample;
    weft_context *ctx = loop->model.ctx;
    char *question;
    int32_t end;
    if (!loop->cache) loop->cache = weft_decode_state_new(loop->model.module);
    if (!loop->cache) return weft_last_status(ctx);
    WEFT_TRY(weft__dataset_question(NULL, &loop->dataset, &question, &end));
    const weft_generate_options wanted = {.prompt = question,
                                          .tokens = ctx->divides ? GATHERED_TOKENS : SAMPLE_TOKENS,
                                          .temperature = question ? 0 : 0.8,
                                          .seed = (uint64_t)loop->config->train_seed + step,
                                          .vocabulary = loop->model.tokens,
                                          .no_frame = question != NULL,
                                          .ends = &end,
                                          .end_count = question != NULL};
    made->size = 0;
    made->from = last_lines(question);
    ctx->caller.completes = ctx->divides; /* the others gather parameters with this process */
    const weft_status status =
        weft_generate(loop->cache, weft__dataset_tokenizer(&loop->dataset), &wanted, sample_collect, loop);
    ctx->caller.completes = false;
    weft__free(NULL, question);
    return status;
}

/* ---- the end ---- */

/* Loads the weights of the best checkpoint. If parameters are divided, all processes do. dir: the run, in the
 * leader. */
weft_status weft__loop_best(weft__loop *loop, const char *dir, uint64_t *step) {
    weft__processes *p = &loop->processes;
    char path[4096] = "";
    char *whole = dir ? realpath(dir, NULL) : NULL;
    weft_status status = WEFT_OK;
    if (dir && (!whole || strlen(whole) >= sizeof path))
        status = weft__fail(NULL, WEFT_ERR_IO, "%s: the run folder is gone, or its path is too long", dir);
    else if (whole)
        snprintf(path, sizeof path, "%s", whole);
    free(whole);
    WEFT_TRY(weft__process_group_agree(p->group, status, NULL));
    WEFT_TRY(weft_process_group_broadcast(p->group, path, sizeof path, 0));
    status = weft__model_use(&loop->model, loop->config, path, "best", false, step);
    return weft__process_group_agree(p->group, status, NULL);
}

static weft_status use_best(weft__loop *loop, uint64_t *step) {
    weft__processes *p = &loop->processes;
    if (!weft__optimizer_divides_parameters(loop->model.optimizer))
        return weft__model_use(&loop->model, loop->config, loop->run.dir, "best", false, step);
    WEFT_TRY(weft__processes_together(p, WEFT__ORDER_BEST));
    WEFT_TRY(weft__loop_best(loop, loop->run.dir, step));
    p->followers_wait = true;
    return WEFT_OK;
}

static weft_status write_scores(weft__loop *loop, uint64_t step, const weft__scores *test) {
    weft__json json;
    WEFT_TRY(weft__run_follow(&loop->run));
    weft__json_build(&json, NULL);
    json_t *all = json_pack("{s:I}", "step", (json_int_t)step);
    if (loop->validation)
        json_object_set_new(all, "validation", weft__scores_json(&loop->scores, &loop->dataset));
    if (test) json_object_set_new(all, "test", weft__scores_json(test, &loop->dataset));
    return weft__sealed_write(loop->run.dir, "scores.json", &json, all, JSON_REAL_PRECISION(9));
}

/* Writes pictures.json, always before scores.json: a run with scores is complete. */
static weft_status write_pictures(weft__loop *loop, weft__split split, const weft__scores *scores) {
    WEFT_TRY(weft__run_follow(&loop->run));
    return weft__pictures_write(loop->run.dir, &loop->dataset, split, scores);
}

/* Takes final scores. Unless parameters are divided, only the leader has the weights of an earlier
 * checkpoint, so it is alone with them. */
static weft_status measure(weft__loop *loop, weft__loaders which, bool alone, weft__scores *scores) {
    return alone ? weft__scores_take(&loop->model, &loop->dataset, loader_of(loop, which), true, scores)
                 : weft__loop_take(loop, which, true, scores);
}

weft_status weft__loop_score(weft__loop *loop) {
    weft__results *s = &loop->summary.results;
    weft__scores test;
    uint64_t step = weft_optimizer_steps(loop->model.optimizer);
    const uint64_t best = loop->stopping.best_step;
    const bool earlier = loop->config->train_keep_best && best && best != step;
    WEFT_TRY(weft__run_follow(&loop->run));
    const bool alone = earlier && !weft__optimizer_divides_parameters(loop->model.optimizer);
    if (earlier) WEFT_TRY(use_best(loop, &step));
    if (loop->validation && (earlier || loop->whole || loop->scores.samples == 0)) {
        weft__scores_free(&loop->scores);
        WEFT_TRY(
            measure(loop, loop->whole ? WEFT__LOADER_WHOLE : WEFT__LOADER_VALIDATION, alone, &loop->scores));
        s->val_loss = loop->scores.loss;
        s->val_accuracy = loop->scores.accuracy;
    }
    if (loop->validation || !loop->test) WEFT_TRY(write_pictures(loop, WEFT__VALIDATION, &loop->scores));
    if (!loop->test) return write_scores(loop, step, NULL);
    weft_status status = measure(loop, WEFT__LOADER_TEST, alone, &test);
    s->test_loss = test.loss;
    s->test_accuracy = test.accuracy;
    loop->test_r2 = test.task == WEFT__TASK_REGRESSION ? test.numbers.r2 : (double)NAN;
    if (status == WEFT_OK && !loop->validation) status = write_pictures(loop, WEFT__TEST, &test);
    if (status == WEFT_OK) status = write_scores(loop, step, &test);
    weft__scores_free(&test);
    return status;
}

void weft__loop_say_scores(weft__loop *loop) {
    weft__progress *p = &loop->progress;
    const weft__results *s = &loop->summary.results;
    const weft__scores *v = &loop->scores;
    const bool numbers = v->task == WEFT__TASK_REGRESSION && v->samples > 0;
    if (isfinite(s->val_loss)) weft__progress_say(p, "validation loss %.4f", s->val_loss);
    if (v->samples > 0 && v->task == WEFT__TASK_LANGUAGE_MODEL && !v->pairs)
        weft__progress_say(p, "validation perplexity %.2f", exp(v->loss));
    if (v->samples > 0 && isfinite(v->accuracy))
        weft__progress_say(p, "validation accuracy %.2f %%", v->accuracy * 100);
    if (v->samples > 0 && v->pairs) weft__progress_say(p, "validation margin %.4f", v->margin);
    if (numbers)
        weft__progress_say(p, "validation R2 %.4f, root mean square error %.4g", v->numbers.r2,
                           v->numbers.rmse);
    if (isfinite(s->test_loss)) weft__progress_say(p, "test loss %.4f", s->test_loss);
    if (isfinite(s->test_accuracy)) weft__progress_say(p, "test accuracy %.2f %%", s->test_accuracy * 100);
    if (s->test_loss >= 0 && isfinite(loop->test_r2)) weft__progress_say(p, "test R2 %.4f", loop->test_r2);
    const uint64_t done = weft_optimizer_steps(loop->model.optimizer);
    if (loop->config->train_keep_best && loop->stopping.best_step && loop->stopping.best_step != done)
        weft__progress_say(
            p, "these scores are of step %llu, the best checkpoint, which eval, predict and generate use",
            (unsigned long long)loop->stopping.best_step);
}
