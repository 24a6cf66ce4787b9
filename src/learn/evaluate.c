/* weft_module_evaluate and weft_module_evaluate_all: run a module over all samples of a loader, and return
 * loss, accuracy or predictions. Several devices with equal copies of the module share the batches. Must not
 * know: optimizers, files. Read next: fit.c, and metrics.c for scores of predictions. */
#include <math.h>
#include <pthread.h>
#include <string.h>

#include <weft/metrics.h>

#include "base/each.h"
#include "learn/evaluate.h"
#include "data/loader.h"
#include "learn/pending.h"
#include "process/group.h"
#include "ops/head.h"

typedef struct evaluation {
    const weft__evaluators *on;
    weft_process_group *group; /* processes that share the batches, or NULL */
    const weft__loss *loss;
    int count;       /* sums that are wanted: those of losses, of right answers, of margins */
    int64_t batches; /* of the loaders */
    double *sums;    /* [batches][count] of each batch */
    double *weights; /* [batches] of each batch */
    weft_array *predictions, *targets; /* results of each sample; NULL if not wanted */
    bool answers;                      /* predictions are (class, log of its probability) */
    pthread_mutex_t lock;              /* of making these arrays */
    weft__each devices;
} evaluation;

/* What one device does: batches index, index + devices, index + 2 devices, ... Index and devices are counted
 * over all processes. */
typedef struct evaluating {
    evaluation *e;
    const weft__evaluated *on;
    weft_module *m;
    weft_loader *loader;
    int64_t step, read;    /* number of devices; the next batch whose sums will be read */
    weft__pending pending; /* per batch: its sums */
} evaluating;

/* Sums over predictions, or over a part of them. */
typedef struct sums {
    weft_tensor *of[WEFT__MEANS];
} sums;

static weft_tensor *plus(weft_tensor *so_far, weft_tensor *more) {
    return so_far ? weft_add(so_far, more) : more;
}

static weft_tensor *is_above(weft_tensor *x, weft_tensor *y) { return weft_cast(weft_gt(x, y), WEFT_F32); }

/* Returns 1 for each right answer and 0 for each wrong one. A sample with several answers gets their mean. */
static weft_tensor *hits_of(const weft__loss *loss, weft_tensor *prediction, const weft_batch *batch) {
    weft_tensor *target = batch->y;
    if (loss->kind == WEFT_LOSS_CROSS_ENTROPY) {
        weft_tensor *best = weft_argmax(prediction, -1, false);
        if (weft_dtype_of(target) != weft_dtype_of(best)) target = weft_cast(target, weft_dtype_of(best));
        return weft_cast(weft_eq(best, target), WEFT_F32);
    }
    if (loss->kind == WEFT_LOSS_DPO) {
        weft_tensor *margin = weft__pair_margins(loss, prediction, batch);
        return is_above(margin, weft_zeros_like(margin));
    }
    target = weft__binary_target(prediction, target);
    weft_tensor *is = weft_gt(target, weft_full_like(target, 0.5)),
                *says = weft_gt(prediction, weft_zeros_like(prediction));
    weft_tensor *hits = weft_cast(weft_eq(weft_cast(is, WEFT_I32), weft_cast(says, WEFT_I32)), WEFT_F32);
    while (weft_rank(hits) > 1) hits = weft_mean(hits, -1, false);
    return hits;
}

/* Adds what is measured of some rows to the sums. */
static void add_sums(const evaluation *e, weft_tensor *prediction, const weft_batch *batch, sums *to) {
    for (int i = 0; i < e->count; i++) {
        weft_tensor *each = i == WEFT__MEAN_LOSS    ? weft__loss_each(e->loss, prediction, batch)
                            : i == WEFT__MEAN_RIGHT ? hits_of(e->loss, prediction, batch)
                                                    : weft__pair_margins(e->loss, prediction, batch);
        if (batch->mask) each = weft_mul(each, weft__mask_like(batch->mask, each));
        to->of[i] = plus(to->of[i], weft_sum(each, WEFT_ALL_AXES, false));
    }
}

/* Adds the sums of a large logits tensor part by part, so that the logits are never in memory as a whole. */
static void add_parts(const evaluation *e, weft_tensor *logits, int64_t parts, const weft_batch *batch,
                      sums *to) {
    const int64_t rows = weft_numel(batch->y), step = weft__ceil_div(rows, parts);
    weft_tensor *y = weft_reshape(batch->y, 1, &rows);
    weft_tensor *mask = batch->mask ? weft_reshape(batch->mask, 1, &rows) : NULL;
    for (int64_t first = 0; first < rows; first += step) {
        const int64_t count = weft__smaller(step, rows - first);
        uint32_t segment;
        weft_tensor *part = weft__logit_part(NULL, logits, first / step, parts, &segment);
        const weft_batch of_part = {.y = weft_narrow(y, 0, first, count),
                                    .mask = mask ? weft_narrow(mask, 0, first, count) : NULL};
        add_sums(e, part, &of_part, to);
        weft__segment_end(weft_context_of(logits), segment);
    }
}

/* Makes the array for all samples, unless another batch did. `t` has the results of one batch. */
static weft_status make_rows(evaluation *e, weft_tensor *t, int64_t samples, weft_array *array) {
    int64_t shape[WEFT_MAX_RANK];
    weft_status status = WEFT_OK;
    if (weft_rank(t) < 1)
        return weft__fail(weft_context_of(t), WEFT_ERR_SHAPE, "evaluate: a prediction has no samples");
    for (int i = 0; i < weft_rank(t); i++) shape[i] = weft_dim(t, i);
    shape[0] = samples;
    pthread_mutex_lock(&e->lock);
    if (!array->data) status = weft_array_new(NULL, weft_dtype_of(t), weft_rank(t), shape, array);
    pthread_mutex_unlock(&e->lock);
    return status;
}

/* Copies the rows of an evaluated tensor into the array, from row `first` on. Rows that only pad the batch
 * are left out. */
static weft_status take_rows(evaluation *e, const weft_loader *loader, weft_tensor *t, int64_t first,
                             weft_array *array) {
    WEFT_TRY(make_rows(e, t, loader->samples, array));
    const int64_t left = weft__smaller(loader->samples - first, loader->options.batch),
                  rows = weft__smaller(left, weft_dim(t, 0));
    const size_t row = array->bytes / (size_t)loader->samples, batch = row * (size_t)weft_dim(t, 0);
    char *whole = weft__alloc(NULL, batch);
    if (!whole) return weft__fail_oom(weft_context_of(t), batch, "predictions");
    const weft_status status = weft_read(t, whole, batch);
    if (status == WEFT_OK) memcpy((char *)array->data + row * (size_t)first, whole, row * (size_t)rows);
    weft__free(NULL, whole);
    return status;
}

/* Computes the layers of the other devices, one after the other. Each has an open scope. *x becomes the
 * hidden states, in the scope of the last device. */
static weft_status layers_before(const weft__evaluated *on, int64_t position, weft_tensor **x) {
    weft_batch batch;
    WEFT_TRY(weft_loader_get(on->first, (uint64_t)position, &batch));
    *x = batch.x;
    for (size_t i = 0; i < on->n_before; i++) {
        weft_module *next = i + 1 < on->n_before ? on->before[i + 1] : on->module;
        *x = weft_to(weft_forward(on->before[i], *x), weft_module_context(next));
        WEFT_TRY(weft_tensor_status(*x));
    }
    return WEFT_OK;
}

/* The predictions of a batch, whose inputs are x on the device of the last layers. */
static weft_status predict_batch(const weft__evaluated *on, int64_t position, weft_tensor *x,
                                 weft_tensor **prediction) {
    weft_scope *scopes[WEFT__EACH_MOST];
    weft_status status = WEFT_OK;
    size_t open = 0;
    for (; open < on->n_before && status == WEFT_OK; open++)
        if (!(scopes[open] = weft_scope_open(weft_module_context(on->before[open])))) status = WEFT_ERR_OOM;
    if (status == WEFT_OK && on->n_before) status = layers_before(on, position, &x);
    while (open > 0) weft_scope_close(scopes[--open]);
    WEFT_TRY(status);
    *prediction = weft_forward(on->module, x);
    return weft_tensor_status(*prediction);
}

/* Returns the likeliest classes and the logs of their probabilities, (rows, 2). */
static weft_tensor *answers_of(weft_tensor *logits) {
    weft_tensor *best = weft_cast(weft_argmax(logits, -1, true), WEFT_F32),
                *log = weft_sub(weft_max(logits, -1, true), weft_logsumexp(logits, -1, true));
    return weft_concat((weft_tensor *[]){best, weft_cast(log, WEFT_F32)}, 2, -1);
}

/* Computes one batch: the sums of its losses and of its right answers, and its predictions if they are
 * wanted. */
static weft_status evaluate_batch(evaluating *d, int64_t position) {
    evaluation *e = d->e;
    weft_batch batch;
    WEFT_TRY(weft_loader_get(d->loader, (uint64_t)position, &batch));
    weft_tensor *prediction = NULL;
    WEFT_TRY(predict_batch(d->on, position, batch.x, &prediction));
    const bool classes = e->loss->kind == WEFT_LOSS_CROSS_ENTROPY;
    const int64_t parts = classes ? weft__logit_parts(prediction) : 1;
    /* Parts need a mask with one element per target. */
    const bool whole = parts < 2 || (batch.mask && weft_numel(batch.mask) != weft_numel(batch.y));
    sums made = {{NULL}};
    if (whole)
        add_sums(e, prediction, &batch, &made);
    else
        add_parts(e, prediction, parts, &batch, &made);
    weft_tensor *results[WEFT__MEANS + 2];
    const size_t n = (size_t)e->count;
    memcpy(results, made.of, sizeof made.of);
    if (e->predictions) {
        results[n] = e->answers ? answers_of(prediction) : weft_cast(prediction, WEFT_F32);
        results[n + 1] = weft_cast(batch.y, classes ? WEFT_I32 : weft_dtype_of(batch.y));
    }
    WEFT_TRY(weft_eval(results, e->predictions ? n + 2 : n));
    e->weights[position] = batch.weight;
    for (size_t i = 0; i < n; i++) WEFT_TRY(weft__pending_add(&d->pending, results[i]));
    if (!e->predictions) return WEFT_OK;
    const int64_t first = position * d->loader->options.batch;
    WEFT_TRY(take_rows(e, d->loader, results[n], first, e->predictions));
    return take_rows(e, d->loader, results[n + 1], first, e->targets);
}

static weft_status read_sums(evaluating *d) {
    const size_t n = (size_t)d->e->count;
    double values[WEFT__PENDING];
    size_t count;
    WEFT_TRY(weft__pending_read(&d->pending, values, &count));
    for (size_t i = 0; i < count; i += n, d->read += d->step)
        memcpy(d->e->sums + (size_t)d->read * n, values + i, n * sizeof *values);
    return WEFT_OK;
}

static weft_status evaluate_in_scope(evaluating *d, int64_t position) {
    weft_context *ctx = weft_module_context(d->m);
    weft_scope *scope = weft_scope_open(ctx);
    if (!scope) return weft__fail_oom(ctx, 0, "a scope");
    const weft_status status = evaluate_batch(d, position);
    weft_scope_close(scope);
    return status;
}

/* If parameters are divided, all processes must evaluate as many batches, since they gather the parameters
 * together. A process without a batch in the last round computes its last one again. */
static weft_status evaluate_again(evaluating *d, int64_t last) {
    double values[WEFT__PENDING];
    size_t count;
    const int64_t left = d->e->batches % d->step;
    const bool lacks = d->e->group && left > 0 && last % d->step >= left;
    if (!lacks || !weft_module_context(d->m)->divides) return WEFT_OK;
    WEFT_TRY(evaluate_in_scope(d, last));
    return weft__pending_read(&d->pending, values, &count);
}

static weft_status evaluate_batches(evaluating *d) {
    int64_t last = d->read;
    for (int64_t b = d->read; b < d->e->batches && !d->e->devices.failed; b += d->step) {
        WEFT_TRY(weft__go_on(weft_module_context(d->m)));
        WEFT_TRY(evaluate_in_scope(d, b));
        if (weft__pending_due(&d->pending, (size_t)d->e->count)) WEFT_TRY(read_sums(d));
        last = b;
    }
    WEFT_TRY(read_sums(d));
    return evaluate_again(d, last);
}

/* Evaluates a device's batches in evaluation mode. The previous mode is restored. */
static weft_status evaluate_on(void *user, size_t index) {
    evaluation *e = user;
    const weft__evaluated *on = &e->on->list[index];
    const int64_t count = (int64_t)e->on->count;
    evaluating d = {.e = e,
                    .on = on,
                    .m = on->module,
                    .loader = on->loader,
                    .step = count * weft_process_group_size(e->group),
                    .read = count * weft_process_group_rank(e->group) + (int64_t)index};
    const bool was_training = weft_module_is_training(d.m);
    WEFT_TRY(weft_module_status(d.m));
    weft_module_set_training(d.m, false);
    for (size_t i = 0; i < on->n_before; i++) weft_module_set_training(on->before[i], false);
    const weft_status status = evaluate_batches(&d);
    weft__pending_free(&d.pending);
    weft_module_set_training(d.m, was_training);
    return status;
}

/* ---- several processes ---- */

/* Gives all processes the results of all batches. A round is the batches that all devices compute at the same
 * time; they are adjacent, and so are those of a process. each: bytes of a batch; bytes: of all results,
 * whose last batch may be shorter. */
static weft_status share_results(const evaluation *e, void *results, size_t each, size_t bytes) {
    const size_t own = e->on->count * each, round = own * (size_t)weft_process_group_size(e->group),
                 first = own * (size_t)weft_process_group_rank(e->group);
    for (size_t at = 0; at < bytes; at += round) {
        char *all = (char *)results + at;
        WEFT_TRY(weft__process_group_collect(e->group, all + first, all, own,
                                             bytes - at < round ? bytes - at : round));
    }
    return WEFT_OK;
}

static weft_status share_array(const evaluation *e, weft_array *array) {
    const weft_loader *loader = e->on->list[0].loader;
    if (!array) return WEFT_OK;
    const size_t row = array->bytes / (size_t)loader->samples;
    return share_results(e, array->data, row * (size_t)loader->options.batch, array->bytes);
}

static weft_status share_all(const evaluation *e) {
    const size_t batches = (size_t)e->batches, each = (size_t)e->count * sizeof *e->sums;
    if (!e->group) return WEFT_OK;
    weft__process_group_purpose(e->group, e->group->step, "the evaluation");
    WEFT_TRY(share_results(e, e->sums, each, batches * each));
    WEFT_TRY(share_results(e, e->weights, sizeof *e->weights, batches * sizeof *e->weights));
    WEFT_TRY(share_array(e, e->predictions));
    return share_array(e, e->targets);
}

/* Evaluates on all devices, and adds up what they measured. */
static weft_status evaluate_each(evaluation *e, double means[WEFT__MEANS]) {
    double totals[WEFT__MEANS] = {0}, weight = 0;
    e->devices.count = e->on->count;
    e->devices.task = evaluate_on;
    e->devices.user = e;
    for (size_t i = 0; i < e->on->count; i++)
        e->devices.names[i] = weft_device_of(weft_module_context(e->on->list[i].module));
    WEFT_TRY(weft__each_run(&e->devices));
    WEFT_TRY(share_all(e));
    for (int64_t b = 0; b < e->batches; b++) {
        for (int i = 0; i < e->count; i++) totals[i] += e->sums[b * e->count + i];
        weight += e->weights[b];
    }
    for (int i = 0; i < e->count && weight > 0; i++) means[i] = totals[i] / weight;
    return WEFT_OK;
}

static weft_status evaluate(evaluation *e, double means[WEFT__MEANS]) {
    weft_context *ctx = weft_module_context(e->on->list[0].module);
    e->batches = e->on->list[0].loader->batches;
    /* Each process needs a batch, to know what a result is. Otherwise each computes all batches. */
    e->group =
        e->batches < (int64_t)e->on->count * weft_process_group_size(e->on->group) ? NULL : e->on->group;
    const size_t batches = (size_t)e->batches + 1, count = (size_t)e->count;
    e->sums = weft__array(NULL, batches, count * sizeof *e->sums);
    e->weights = weft__array(NULL, batches, sizeof *e->weights);
    weft_status status = WEFT_OK;
    if (!e->sums || !e->weights)
        status = weft__fail_oom(ctx, batches * (count + 1) * sizeof *e->sums, "an evaluation");
    else if (pthread_mutex_init(&e->lock, NULL) != 0)
        status = weft__fail(ctx, WEFT_ERR_INTERNAL, "evaluate: the system made no lock");
    else {
        status = evaluate_each(e, means);
        pthread_mutex_destroy(&e->lock);
    }
    weft__free(NULL, e->sums);
    weft__free(NULL, e->weights);
    return status;
}

weft_status weft__evaluate_means(const weft__evaluators *on, const weft__loss *loss, int count,
                                 double means[WEFT__MEANS]) {
    evaluation e = {.on = on, .loss = loss, .count = count};
    for (int i = 0; i < WEFT__MEANS; i++) means[i] = (double)NAN;
    return evaluate(&e, means);
}

weft_status weft__evaluate(const weft__evaluators *on, weft_loss_kind kind, double *loss, double *accuracy) {
    const bool answers = kind == WEFT_LOSS_CROSS_ENTROPY || kind == WEFT_LOSS_BCE || kind == WEFT_LOSS_DPO;
    double means[WEFT__MEANS];
    const weft_status status =
        weft__evaluate_means(on, &(weft__loss){.kind = kind}, accuracy && answers ? 2 : 1, means);
    *loss = means[WEFT__MEAN_LOSS];
    if (accuracy) *accuracy = means[WEFT__MEAN_RIGHT];
    return status;
}

static weft_status evaluate_samples(const weft__evaluators *on, weft_loss_kind kind, bool answers,
                                    double *loss, weft_array *predictions, weft_array *targets) {
    const weft_loader *loader = on->list[0].loader;
    const weft__loss how = {.kind = kind};
    evaluation e = {.on = on,
                    .loss = &how,
                    .count = 1,
                    .predictions = predictions,
                    .targets = targets,
                    .answers = answers};
    double means[WEFT__MEANS] = {(double)NAN};
    *predictions = *targets = (weft_array){0};
    if (loader->text || !loader->options.in_order)
        return weft__fail(loader->ctx, WEFT_ERR_ARGUMENT,
                          "evaluate_all: give a loader of samples, not of text, with options.in_order");
    const weft_status status = evaluate(&e, means);
    *loss = means[WEFT__MEAN_LOSS];
    if (status != WEFT_OK) {
        weft_array_free(NULL, predictions);
        weft_array_free(NULL, targets);
    }
    return status;
}

weft_status weft__evaluate_all(const weft__evaluators *on, weft_loss_kind kind, double *loss,
                               weft_array *predictions, weft_array *targets) {
    return evaluate_samples(on, kind, false, loss, predictions, targets);
}

weft_status weft__evaluate_answers(const weft__evaluators *on, double *loss, weft_array *predictions,
                                   weft_array *targets) {
    return evaluate_samples(on, WEFT_LOSS_CROSS_ENTROPY, true, loss, predictions, targets);
}

weft_status weft_module_evaluate(weft_module *m, weft_loader *loader, weft_loss_kind kind, double *loss,
                                 double *accuracy) {
    WEFT_NEED(NULL, m);
    WEFT_NEED(weft_module_context(m), loader);
    WEFT_NEED(weft_module_context(m), loss);
    return weft__evaluate(&(weft__evaluators){&(weft__evaluated){.module = m, .loader = loader}, 1, NULL},
                          kind, loss, accuracy);
}

weft_status weft_module_evaluate_all(weft_module *m, weft_loader *loader, weft_loss_kind kind, double *loss,
                                     weft_array *predictions, weft_array *targets) {
    WEFT_NEED(NULL, m);
    WEFT_NEED(weft_module_context(m), loader);
    WEFT_NEED(weft_module_context(m), loss);
    WEFT_NEED(weft_module_context(m), predictions);
    WEFT_NEED(weft_module_context(m), targets);
    return weft__evaluate_all(&(weft__evaluators){&(weft__evaluated){.module = m, .loader = loader}, 1, NULL},
                              kind, loss, predictions, targets);
}
