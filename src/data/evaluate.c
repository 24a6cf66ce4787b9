/* weft_module_evaluate and weft_module_evaluate_all: run a module over all samples of a loader, and return
 * loss, accuracy or predictions. Must not know: optimizers, files. Read next: fit.c, and metrics.c for scores
 * of predictions. */
#include <math.h>
#include <string.h>

#include <weft/metrics.h>

#include "data/evaluate.h"
#include "data/loader.h"
#include "data/pending.h"
#include "ops/head.h"

typedef struct evaluation {
    const weft__loss *loss;
    int count;             /* sums that are wanted: those of losses, of right answers, of margins */
    weft__pending pending; /* per batch: its sums */
    double totals[WEFT__MEANS], weight;
    weft_array *predictions, *targets; /* results of each sample; NULL if not wanted */
    int64_t rows;                      /* rows of these arrays filled so far */
} evaluation;

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

/* Copies the first `count` rows of an evaluated tensor into the array. The first batch allocates the array
 * for all samples. */
static weft_status take_rows(const evaluation *e, weft_tensor *t, int64_t count, int64_t samples,
                             weft_array *array) {
    int64_t shape[WEFT_MAX_RANK];
    if (weft_rank(t) < 1)
        return weft__fail(weft_context_of(t), WEFT_ERR_SHAPE, "evaluate: a prediction has no samples");
    for (int i = 0; i < weft_rank(t); i++) shape[i] = weft_dim(t, i);
    shape[0] = samples;
    if (!array->data) WEFT_TRY(weft_array_new(NULL, weft_dtype_of(t), weft_rank(t), shape, array));
    const size_t row = array->bytes / (size_t)samples, batch = row * (size_t)weft_dim(t, 0);
    char *whole = weft__alloc(NULL, batch);
    if (!whole) return weft__fail_oom(weft_context_of(t), batch, "predictions");
    const weft_status status = weft_read(t, whole, batch);
    if (status == WEFT_OK) memcpy((char *)array->data + row * (size_t)e->rows, whole, row * (size_t)count);
    weft__free(NULL, whole);
    return status;
}

static weft_status take_samples(evaluation *e, weft_tensor *prediction, weft_tensor *target,
                                int64_t samples) {
    const int64_t left = samples - e->rows, rows = weft__smaller(left, weft_dim(prediction, 0));
    WEFT_TRY(take_rows(e, prediction, rows, samples, e->predictions));
    WEFT_TRY(take_rows(e, target, rows, samples, e->targets));
    e->rows += rows;
    return WEFT_OK;
}

/* Adds one batch: the sums of its losses and of its right answers, and its predictions if they are wanted. */
static weft_status evaluate_batch(evaluation *e, weft_module *m, weft_loader *loader, uint64_t position) {
    weft_batch batch;
    WEFT_TRY(weft_loader_get(loader, position, &batch));
    weft_tensor *prediction = weft_forward(m, batch.x);
    WEFT_TRY(weft_tensor_status(prediction));
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
        results[n] = weft_cast(prediction, WEFT_F32);
        results[n + 1] = weft_cast(batch.y, classes ? WEFT_I32 : weft_dtype_of(batch.y));
    }
    WEFT_TRY(weft_eval(results, e->predictions ? n + 2 : n));
    e->weight += batch.weight;
    for (size_t i = 0; i < n; i++) WEFT_TRY(weft__pending_add(&e->pending, results[i]));
    return e->predictions ? take_samples(e, results[n], results[n + 1], loader->samples) : WEFT_OK;
}

static weft_status add_up(evaluation *e) {
    double values[WEFT__PENDING];
    size_t count;
    WEFT_TRY(weft__pending_read(&e->pending, values, &count));
    for (size_t i = 0; i < count; i++) e->totals[i % (size_t)e->count] += values[i];
    return WEFT_OK;
}

static weft_status evaluate_all(evaluation *e, weft_module *m, weft_loader *loader) {
    weft_context *ctx = weft_module_context(m);
    for (int64_t b = 0; b < loader->batches; b++) {
        WEFT_TRY(weft__go_on(ctx));
        weft_scope *scope = weft_scope_open(ctx);
        if (!scope) return weft__fail_oom(ctx, 0, "a scope");
        weft_status status = evaluate_batch(e, m, loader, (uint64_t)b);
        weft_scope_close(scope);
        WEFT_TRY(status);
        if (weft__pending_due(&e->pending, (size_t)e->count)) WEFT_TRY(add_up(e));
    }
    return add_up(e);
}

/* Evaluates in evaluation mode. The previous mode is restored. */
static weft_status evaluate(evaluation *e, weft_module *m, weft_loader *loader, double means[WEFT__MEANS]) {
    const bool was_training = weft_module_is_training(m);
    WEFT_TRY(weft_module_status(m));
    weft_module_set_training(m, false);
    const weft_status status = evaluate_all(e, m, loader);
    weft__pending_free(&e->pending);
    weft_module_set_training(m, was_training);
    for (int i = 0; i < e->count && status == WEFT_OK && e->weight > 0; i++)
        means[i] = e->totals[i] / e->weight;
    return status;
}

weft_status weft__evaluate_means(weft_module *m, weft_loader *loader, const weft__loss *loss, int count,
                                 double means[WEFT__MEANS]) {
    evaluation e = {.loss = loss, .count = count};
    for (int i = 0; i < WEFT__MEANS; i++) means[i] = (double)NAN;
    return evaluate(&e, m, loader, means);
}

weft_status weft_module_evaluate(weft_module *m, weft_loader *loader, weft_loss_kind kind, double *loss,
                                 double *accuracy) {
    WEFT_NEED(NULL, m);
    WEFT_NEED(weft_module_context(m), loader);
    WEFT_NEED(weft_module_context(m), loss);
    const bool answers = kind == WEFT_LOSS_CROSS_ENTROPY || kind == WEFT_LOSS_BCE || kind == WEFT_LOSS_DPO;
    double means[WEFT__MEANS];
    const weft_status status =
        weft__evaluate_means(m, loader, &(weft__loss){.kind = kind}, accuracy && answers ? 2 : 1, means);
    *loss = means[WEFT__MEAN_LOSS];
    if (accuracy) *accuracy = means[WEFT__MEAN_RIGHT];
    return status;
}

weft_status weft_module_evaluate_all(weft_module *m, weft_loader *loader, weft_loss_kind kind, double *loss,
                                     weft_array *predictions, weft_array *targets) {
    WEFT_NEED(NULL, m);
    WEFT_NEED(weft_module_context(m), loader);
    WEFT_NEED(weft_module_context(m), loss);
    WEFT_NEED(weft_module_context(m), predictions);
    WEFT_NEED(weft_module_context(m), targets);
    const weft__loss how = {.kind = kind};
    evaluation e = {.loss = &how, .count = 1, .predictions = predictions, .targets = targets};
    double means[WEFT__MEANS] = {(double)NAN};
    *predictions = *targets = (weft_array){0};
    if (loader->text || !loader->options.in_order)
        return weft__fail(loader->ctx, WEFT_ERR_ARGUMENT,
                          "evaluate_all: give a loader of samples, not of text, with options.in_order");
    const weft_status status = evaluate(&e, m, loader, means);
    *loss = means[WEFT__MEAN_LOSS];
    if (status != WEFT_OK) {
        weft_array_free(NULL, predictions);
        weft_array_free(NULL, targets);
    }
    return status;
}
