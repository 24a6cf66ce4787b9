/* weft_fit and weft_evaluate: the loop over batches, steps and epochs.
 * Built on the public headers alone but for the names of samples in messages.
 * Must not know: files, terminals. Read next: train/loop.c, which drives it for the command. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <weft/fit.h>

#include "data/loader.h"
#include "data/pending.h"
#include "ops/head.h"

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* ---- losses ---- */

/* The loss of each sample (of text: of each token), unreduced over those. */
static weft_tensor *each_loss(weft_loss_kind kind, weft_tensor *prediction, weft_tensor *target) {
    weft_tensor *each = NULL;
    switch (kind) {
    case WEFT_LOSS_CROSS_ENTROPY:
        return weft_cross_entropy(prediction, target, &(weft_cross_entropy_options){.reduction = WEFT_NONE});
    case WEFT_LOSS_BCE: each = weft_bce_with_logits(prediction, target, WEFT_NONE); break;
    case WEFT_LOSS_MSE: each = weft_mse(prediction, target, WEFT_NONE); break;
    case WEFT_LOSS_L1: each = weft_l1(prediction, target, WEFT_NONE); break;
    case WEFT_LOSS_HUBER: each = weft_huber(prediction, target, 1, WEFT_NONE); break;
    }
    while (weft_rank(each) > 1) each = weft_mean(each, -1, false);
    return each;
}

static weft_tensor *mean_loss(weft_loss_kind kind, weft_tensor *prediction, weft_tensor *target) {
    switch (kind) {
    case WEFT_LOSS_CROSS_ENTROPY: return weft_cross_entropy(prediction, target, NULL);
    case WEFT_LOSS_BCE: return weft_bce_with_logits(prediction, target, WEFT_MEAN);
    case WEFT_LOSS_MSE: return weft_mse(prediction, target, WEFT_MEAN);
    case WEFT_LOSS_L1: return weft_l1(prediction, target, WEFT_MEAN);
    case WEFT_LOSS_HUBER: return weft_huber(prediction, target, 1, WEFT_MEAN);
    }
    return NULL;
}

/* The mask in the dtype of what it is multiplied with. */
static weft_tensor *mask_like(weft_tensor *mask, weft_tensor *like) {
    weft_dtype dtype = weft_dtype_of(like);
    return dtype == WEFT_F32 || weft_tensor_status(like) != WEFT_OK ? mask : weft_cast(mask, dtype);
}

static weft_tensor *masked_mean(weft_tensor *each, weft_tensor *mask) {
    mask = mask_like(mask, each);
    weft_tensor *sum = weft_sum(weft_mul(each, mask), WEFT_ALL_AXES, false);
    return weft_div(sum, weft_sum(mask, WEFT_ALL_AXES, false));
}

weft_tensor *weft_batch_loss(weft_loss_kind kind, weft_tensor *prediction, const weft_batch *batch) {
    if (!batch->mask) return mean_loss(kind, prediction, batch->y);
    return masked_mean(each_loss(kind, prediction, batch->y), batch->mask);
}

/* ---- evaluation ---- */

typedef struct evaluation {
    weft_loss_kind kind;
    bool wants_right;
    weft__pending pending; /* of each batch its loss, and where wanted how many answers are right */
    double loss, right, count;
} evaluation;

/* Of predictions, which may be a part of them, and what belongs to them. */
typedef struct sums {
    weft_tensor *loss, *right;
} sums;

static weft_tensor *plus(weft_tensor *so_far, weft_tensor *more) {
    return so_far ? weft_add(so_far, more) : more;
}

static void add_sums(const evaluation *e, weft_tensor *prediction, weft_tensor *target, weft_tensor *mask,
                     sums *to) {
    weft_tensor *each = each_loss(e->kind, prediction, target);
    if (mask) each = weft_mul(each, mask_like(mask, each));
    to->loss = plus(to->loss, weft_sum(each, WEFT_ALL_AXES, false));
    if (!e->wants_right) return;
    weft_tensor *best = weft_argmax(prediction, -1, false);
    if (weft_dtype_of(target) != weft_dtype_of(best)) target = weft_cast(target, weft_dtype_of(best));
    weft_tensor *hits = weft_cast(weft_eq(best, target), WEFT_F32);
    if (mask) hits = weft_mul(hits, mask);
    to->right = plus(to->right, weft_sum(hits, WEFT_ALL_AXES, false));
}

/* Logits that are made in parts. */
static void add_parts(const evaluation *e, weft_tensor *logits, int64_t parts, const weft_batch *batch,
                      sums *to) {
    const int64_t rows = weft_numel(batch->y), step = weft__ceil_div(rows, parts);
    weft_tensor *y = weft_reshape(batch->y, 1, &rows);
    weft_tensor *mask = batch->mask ? weft_reshape(batch->mask, 1, &rows) : NULL;
    for (int64_t first = 0; first < rows; first += step) {
        const int64_t count = weft__smaller(step, rows - first);
        uint32_t segment;
        weft_tensor *part = weft__logit_part(NULL, logits, first / step, parts, &segment);
        add_sums(e, part, weft_narrow(y, 0, first, count), mask ? weft_narrow(mask, 0, first, count) : NULL,
                 to);
        weft__segment_end(weft_context_of(logits), segment);
    }
}

/* Sums of losses and of right answers over one batch. */
static weft_status evaluate_batch(evaluation *e, weft_module *m, weft_loader *loader, uint64_t position) {
    weft_batch batch;
    WEFT_TRY(weft_loader_get(loader, position, &batch));
    weft_tensor *prediction = weft_forward(m, batch.x);
    WEFT_TRY(weft_tensor_status(prediction));
    const int64_t parts = e->kind == WEFT_LOSS_CROSS_ENTROPY ? weft__logit_parts(prediction) : 1;
    const bool whole = parts < 2 || (batch.mask && weft_numel(batch.mask) != weft_numel(batch.y));
    sums made = {NULL, NULL};
    if (whole)
        add_sums(e, prediction, batch.y, batch.mask, &made);
    else
        add_parts(e, prediction, parts, &batch, &made);
    weft_tensor *results[2] = {made.loss, made.right};
    const size_t n = e->wants_right ? 2 : 1;
    WEFT_TRY(weft_eval(results, n));
    e->count += (double)batch.count;
    for (size_t i = 0; i < n; i++) WEFT_TRY(weft__pending_add(&e->pending, results[i]));
    return WEFT_OK;
}

static weft_status add_up(evaluation *e) {
    double values[WEFT__PENDING];
    size_t count;
    WEFT_TRY(weft__pending_read(&e->pending, values, &count));
    for (size_t i = 0; i < count; i++) {
        const bool right = e->wants_right && i % 2 == 1;
        *(right ? &e->right : &e->loss) += values[i];
    }
    return WEFT_OK;
}

static weft_status evaluate_all(evaluation *e, weft_module *m, weft_loader *loader) {
    weft_context *ctx = weft_module_context(m);
    for (int64_t b = 0; b < loader->batches; b++) {
        weft_scope *scope = weft_scope_open(ctx);
        if (!scope) return weft__fail_oom(ctx, 0, "a scope");
        weft_status status = evaluate_batch(e, m, loader, (uint64_t)b);
        weft_scope_close(scope);
        WEFT_TRY(status);
        if (weft__pending_due(&e->pending, 2)) WEFT_TRY(add_up(e));
    }
    return add_up(e);
}

weft_status weft_evaluate(weft_module *m, weft_loader *loader, weft_loss_kind kind, double *loss,
                          double *accuracy) {
    evaluation e = {.kind = kind, .wants_right = accuracy && kind == WEFT_LOSS_CROSS_ENTROPY};
    const bool was_training = weft_is_training(m);
    weft_status status = weft_module_status(m);
    if (status != WEFT_OK) return status;
    weft_train(m, false);
    status = evaluate_all(&e, m, loader);
    weft__pending_free(&e.pending);
    weft_train(m, was_training);
    const bool known = status == WEFT_OK && e.count > 0;
    *loss = known ? e.loss / e.count : (double)NAN;
    if (accuracy) *accuracy = known && e.wants_right ? e.right / e.count : (double)NAN;
    return status;
}

/* ---- training ---- */

/* Who computes batches: the call's model, or a replica. */
typedef struct worker {
    weft_context *ctx;
    weft_module *m;
    weft_optimizer *opt;
    weft_loader *loader;
    weft__pending pending; /* the losses of its batches that nobody has looked at yet, */
    double *losses;        /* after those of a step that is not complete */
    size_t n_losses, capacity;
} worker;

typedef struct weft__fit {
    weft_context *ctx; /* the first worker's, as is all that is not of one */
    weft_module *m;
    weft_optimizer *opt;
    weft_loader *loader;
    const weft_fit_options *options;
    weft_history *history;
    worker *workers;
    weft_optimizer **optimizers; /* theirs */
    size_t n_workers;
    uint64_t accumulate; /* batches of a step, */
    uint64_t share;      /* and of it of a worker's, which follow each other */
    bool planned;
    uint64_t seen;       /* steps whose losses were looked at */
    double loss;         /* of the last of them */
    double epoch_sum;    /* of the losses of its epoch's steps */
    uint64_t epoch_done; /* so many */
    bool epoch_over;     /* and it was the last of them */
} fit;

uint64_t weft_fit_epoch_steps(const weft_loader *loader, int accumulate) {
    uint64_t batches = (uint64_t)loader->batches, of = accumulate > 1 ? (uint64_t)accumulate : 1;
    return (batches + of - 1) / of;
}

/* Names what was in the step whose loss is no number. */
static weft_status diverged(const fit *f, uint64_t step, double loss) {
    char samples[128] = "", later[64] = "";
    const weft_loader *loader = f->loader;
    const unsigned long long done = weft_optimizer_steps(f->opt);
    weft__loader_starts(loader, step * f->accumulate, loader->starts);
    int64_t shown = loader->options.batch < 6 ? loader->options.batch : 6;
    for (int64_t i = 0; i < shown; i++) {
        size_t used = strlen(samples);
        snprintf(samples + used, sizeof samples - used, "%s%lld", i ? ", " : "",
                 (long long)loader->starts[i]);
    }
    if (done > step + 1) snprintf(later, sizeof later, " (seen after step %llu)", done);
    return weft__fail(
        f->ctx, WEFT_ERR_NUMERIC,
        "step %llu: the loss is %f%s, on %s %s%s of the training data: a lower learning rate or a limit "
        "of the gradient norm (clip) keeps it finite",
        (unsigned long long)step + 1, loss, later, loader->text ? "the windows from tokens" : "samples",
        samples, shown < loader->options.batch ? ", ..." : "");
}

static bool ends_epoch(const fit *f, uint64_t step) {
    const uint64_t batches = (uint64_t)f->loader->batches, before = step * f->accumulate;
    return (before + f->accumulate) / batches > before / batches;
}

static weft_status take_loss(fit *f, uint64_t step) {
    if (!isfinite(f->loss)) return diverged(f, step, f->loss);
    if (f->epoch_over) f->epoch_sum = 0, f->epoch_done = 0;
    f->epoch_sum += f->loss;
    f->epoch_done++;
    f->epoch_over = ends_epoch(f, step);
    return WEFT_OK;
}

static weft_status read_losses(worker *w) {
    double values[WEFT__PENDING];
    size_t count;
    WEFT_TRY(weft__pending_read(&w->pending, values, &count));
    for (size_t i = 0; i < count; i++) {
        if (!weft__grow(NULL, &w->losses, &w->capacity, w->n_losses, sizeof *w->losses))
            return weft__fail_oom(w->ctx, w->n_losses * sizeof *w->losses, "losses");
        w->losses[w->n_losses++] = values[i];
    }
    return WEFT_OK;
}

/* Looks at the losses of all batches so far, which waits for the devices. */
static weft_status look(fit *f) {
    uint64_t steps = UINT64_MAX;
    for (size_t i = 0; i < f->n_workers; i++) {
        worker *w = &f->workers[i];
        WEFT_TRY(read_losses(w));
        if (w->n_losses / f->share < steps) steps = w->n_losses / f->share;
    }
    for (uint64_t s = 0; s < steps; s++, f->seen++) {
        f->loss = 0;
        for (size_t i = 0; i < f->n_workers; i++)
            for (uint64_t k = 0; k < f->share; k++)
                f->loss += f->workers[i].losses[s * f->share + k] / (double)f->accumulate;
        WEFT_TRY(take_loss(f, f->seen));
    }
    for (size_t i = 0; i < f->n_workers && steps; i++) {
        worker *w = &f->workers[i];
        w->n_losses -= steps * f->share;
        memmove(w->losses, w->losses + steps * f->share, w->n_losses * sizeof *w->losses);
    }
    return WEFT_OK;
}

weft_status weft_fit_losses(const weft_fit_state *state, double *loss, double *mean) {
    fit *f = state->fit;
    if (loss) *loss = (double)NAN;
    if (mean) *mean = (double)NAN;
    WEFT_TRY(look(f));
    if (loss) *loss = f->loss;
    if (mean) *mean = f->epoch_sum / (double)f->epoch_done;
    return WEFT_OK;
}

static weft_status plan(fit *f, weft_tensor *loss) {
    weft_memory_plan memory;
    f->planned = true;
    WEFT_TRY(weft_optimizer_plan(f->opt, loss, (int)f->accumulate, &memory));
    f->options->on_plan(f->options->user, &memory);
    return WEFT_OK;
}

static weft_tensor *loss_of(const fit *f, weft_tensor *prediction, const weft_batch *batch) {
    if (!f->options->custom_loss) return weft_batch_loss(f->options->loss, prediction, batch);
    weft_tensor *each = f->options->custom_loss(f->options->user, prediction, batch);
    return batch->mask ? masked_mean(each, batch->mask) : weft_mean(each, WEFT_ALL_AXES, false);
}

/* Gradients of batch k of a step; where one worker does them all, the last one changes the parameters. */
static weft_status learn(const fit *f, const worker *w, weft_tensor *loss, uint64_t k) {
    return f->n_workers > 1 ? weft_optimizer_add(w->opt, loss)
                            : weft_optimizer_accumulate(w->opt, loss, (int)k, (int)f->accumulate);
}

/* Batch k of a step, forward and backward. */
static weft_status part(fit *f, worker *w, uint64_t step, uint64_t k, weft_fit_state *state) {
    weft_batch batch;
    double started = now();
    weft_scope *scope = weft_scope_open(w->ctx);
    if (!scope) return weft__fail_oom(w->ctx, 0, "a scope");
    weft_status status = weft_loader_get(w->loader, step * f->accumulate + k, &batch);
    double loaded = now();
    state->seconds_data += loaded - started;
    if (status == WEFT_OK && f->n_workers > 1) status = weft_optimizer_part(w->opt, (int)k);
    if (status == WEFT_OK) {
        weft_tensor *value = loss_of(f, weft_forward(w->m, batch.x), &batch);
        if (f->options->on_plan && !f->planned) status = plan(f, value);
        if (status == WEFT_OK) status = learn(f, w, value, k);
        if (status == WEFT_OK) status = weft__pending_add(&w->pending, value);
    }
    weft_scope_close(scope);
    if (status == WEFT_OK && weft__pending_due(&w->pending, 1)) status = look(f);
    state->seconds_step += now() - loaded;
    return status;
}

/* Each worker has its share of the batches under way before the first is waited for. */
static weft_status parts(fit *f, uint64_t step, weft_fit_state *state) {
    for (uint64_t k = 0; k < f->share; k++)
        for (size_t i = 0; i < f->n_workers; i++)
            WEFT_TRY(part(f, &f->workers[i], step, i * f->share + k, state));
    if (f->n_workers == 1) return WEFT_OK;
    const double started = now();
    WEFT_TRY(weft_optimizer_share(f->optimizers, f->n_workers));
    for (size_t i = 0; i < f->n_workers; i++)
        WEFT_TRY(weft_optimizer_apply(f->optimizers[i], (int)f->accumulate));
    state->seconds_step += now() - started;
    return WEFT_OK;
}

static weft_status end_epoch(fit *f, weft_fit_state *state, bool *stop) {
    const weft_fit_options *o = f->options;
    weft_history *h = f->history;
    double mean;
    if (!h && !o->validation && !o->on_epoch) return WEFT_OK;
    WEFT_TRY(weft_fit_losses(state, NULL, &mean));
    if (o->validation)
        WEFT_TRY(weft_evaluate(f->m, o->validation, o->loss, &state->val_loss, &state->val_accuracy));
    if (h) {
        if (!weft__grow(NULL, &h->lines, &h->capacity, h->count, sizeof *h->lines))
            return weft__fail_oom(f->ctx, h->count * sizeof *h->lines, "the history");
        h->lines[h->count++] = (weft_history_line){state->step, mean, state->val_loss, state->val_accuracy};
    }
    return o->on_epoch ? o->on_epoch(o->user, state, stop) : WEFT_OK;
}

static weft_status one_step(fit *f, uint64_t step, uint64_t steps, bool *stop) {
    const weft_fit_options *o = f->options;
    const double batches = (double)f->loader->batches;
    weft_fit_state state = {.step = step + 1,
                            .steps = steps,
                            .epoch = (double)((step + 1) * f->accumulate) / batches,
                            .epoch_ends = ends_epoch(f, step),
                            .lr = weft_optimizer_lr(f->opt),
                            .val_loss = (double)NAN,
                            .val_accuracy = (double)NAN,
                            .fit = f};
    WEFT_TRY(parts(f, step, &state));
    if (o->on_step) WEFT_TRY(o->on_step(o->user, &state, stop));
    return state.epoch_ends || step + 1 == steps || *stop ? end_epoch(f, &state, stop) : WEFT_OK;
}

/* The step at which training ends, and whether there is anything to do. */
static weft_status count_steps(const fit *f, uint64_t *steps) {
    const weft_fit_options *o = f->options;
    *steps = o->steps;
    if (*steps == 0 && o->epochs > 0) { /* the step that ends the last epoch */
        int64_t batches = 0;
        if (!weft__mul(o->epochs, f->loader->batches, &batches))
            return weft__fail(f->ctx, WEFT_ERR_ARGUMENT, "fit: %lld epochs are too many",
                              (long long)o->epochs);
        *steps = ((uint64_t)batches + f->accumulate - 1) / f->accumulate;
    }
    if (*steps == 0)
        return weft__fail(f->ctx, WEFT_ERR_ARGUMENT, "fit: options.steps or options.epochs must be set");
    if (f->loader->y.rank == 0)
        return weft__fail(f->ctx, WEFT_ERR_ARGUMENT, "fit: the loader has no targets to learn from");
    return WEFT_OK;
}

static weft_status add_worker(fit *f, const weft_replica *r) {
    WEFT_TRY(weft_module_status(r->module));
    WEFT_TRY(weft_optimizer_status(r->optimizer));
    if (weft_optimizer_steps(r->optimizer) != weft_optimizer_steps(f->opt) ||
        r->loader->batches != f->loader->batches)
        return weft__fail(
            f->ctx, WEFT_ERR_ARGUMENT,
            "fit: replica %zu has made %llu steps and has %lld batches, the first %llu and %lld",
            f->n_workers, (unsigned long long)weft_optimizer_steps(r->optimizer),
            (long long)r->loader->batches, (unsigned long long)weft_optimizer_steps(f->opt),
            (long long)f->loader->batches);
    f->optimizers[f->n_workers] = r->optimizer;
    f->workers[f->n_workers++] = (worker){
        .ctx = weft_module_context(r->module), .m = r->module, .opt = r->optimizer, .loader = r->loader};
    return WEFT_OK;
}

static weft_status add_workers(fit *f) {
    const weft_fit_options *o = f->options;
    const size_t n = o->n_replicas + 1;
    f->share = f->accumulate / n;
    if (f->accumulate % n)
        return weft__fail(f->ctx, WEFT_ERR_ARGUMENT,
                          "fit: the %llu batches of a step cannot be shared among %zu devices alike",
                          (unsigned long long)f->accumulate, n);
    f->workers = weft__array(f->ctx, n, sizeof *f->workers);
    f->optimizers = weft__array(f->ctx, n, sizeof *f->optimizers);
    if (!f->workers || !f->optimizers) return weft__fail_oom(f->ctx, n * sizeof *f->workers, "replicas");
    WEFT_TRY(add_worker(f, &(weft_replica){f->m, f->opt, f->loader}));
    for (size_t i = 0; i < o->n_replicas; i++) WEFT_TRY(add_worker(f, &o->replicas[i]));
    return WEFT_OK;
}

static void free_workers(fit *f) {
    for (size_t i = 0; i < f->n_workers; i++) {
        weft__pending_free(&f->workers[i].pending);
        weft__free(NULL, f->workers[i].losses);
    }
    weft__free(f->ctx, f->workers);
    weft__free(f->ctx, f->optimizers);
}

static weft_status train(fit *f, bool *stop) {
    uint64_t steps;
    WEFT_TRY(add_workers(f));
    WEFT_TRY(count_steps(f, &steps));
    f->seen = weft_optimizer_steps(f->opt);
    for (uint64_t step = f->seen; step < steps && !*stop; step++) WEFT_TRY(one_step(f, step, steps, stop));
    return look(f);
}

weft_status weft_fit(weft_module *m, weft_optimizer *opt, weft_loader *loader,
                     const weft_fit_options *options, weft_history *history) {
    static const weft_fit_options none = {0};
    if (history) *history = (weft_history){0};
    if (!options) options = &none;
    WEFT_TRY(weft_module_status(m));
    WEFT_TRY(weft_optimizer_status(opt));
    fit f = {.ctx = weft_module_context(m),
             .m = m,
             .opt = opt,
             .loader = loader,
             .options = options,
             .history = history};
    f.accumulate = options->accumulate > 1 ? (uint64_t)options->accumulate : 1;
    bool stop = false;
    const weft_status status = train(&f, &stop);
    free_workers(&f);
    if (history) history->stopped = stop;
    return status;
}

void weft_history_free(weft_history *history) {
    if (!history) return;
    weft__free(NULL, history->lines);
    *history = (weft_history){0};
}
