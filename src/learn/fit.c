/* weft_fit: the loop over batches, steps and epochs. The file uses only public headers, except to name
 * samples in messages. Must not know: files, terminals. Read next: train/run/loop.c, which calls weft_fit for
 * the command. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <weft/fit.h>

#include "data/loader.h"
#include "learn/loss.h"
#include "learn/pending.h"
#include "process/group.h"

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

enum { LOOK_EVERY = 64 }; /* steps after which several processes look at their losses at the latest */

/* ---- training ---- */

/* Computes batches on one device: the model of the call, or a replica. */
typedef struct worker {
    weft_context *ctx;
    weft_module *m;
    weft_optimizer *opt;
    weft_loader *loader;
    weft_tensor *weights;  /* class weights, kept; NULL: all classes count the same */
    weft__pending pending; /* losses of its batches that were not read yet; they follow `losses` */
    double *losses;        /* losses that were read, of steps that are not complete yet */
    size_t n_losses, capacity;
} worker;

typedef struct weft__fit {
    weft_context *ctx; /* context of the first worker, used for all that belongs to no worker */
    weft_module *m;
    weft_optimizer *opt;
    weft_loader *loader;
    const weft_fit_options *options;
    weft_history *history;
    worker *workers;
    weft_optimizer **optimizers; /* the optimizers of all workers */
    size_t n_workers;
    weft_process_group *group; /* the optimizer's; each process has as many workers; NULL: this one alone */
    bool shares;               /* there are several workers */
    uint64_t accumulate;       /* batches of one step, of all processes */
    uint64_t per_worker;       /* batches of one step that one worker computes, in a row */
    uint64_t first;            /* the first batch of a step that this process computes */
    uint64_t stride;           /* from a batch that a worker computes to its next one */
    bool assigns;              /* forward passes change buffers such as running statistics */
    bool planned;
    uint64_t seen;       /* steps whose losses were read */
    double loss;         /* loss of the last of these steps */
    double epoch_sum;    /* sum of the losses of its epoch's steps */
    uint64_t epoch_done; /* number of losses in this sum */
    bool epoch_over;     /* the last of these steps ended its epoch */
} fit;

uint64_t weft_fit_epoch_steps(const weft_loader *loader, int accumulate) {
    uint64_t batches = loader ? (uint64_t)loader->batches : 0, of = accumulate > 1 ? (uint64_t)accumulate : 1;
    return (batches + of - 1) / of;
}

/* Reports a loss that is not finite. The message names the samples of the step. */
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

/* Tells whether the step takes the last batch of an epoch. A step may span two epochs. */
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

/* Takes the losses of complete steps. all: for each process, for each step, those of its workers. */
static weft_status take_losses(fit *f, uint64_t steps, const double *all) {
    const uint64_t processes = (uint64_t)weft_process_group_size(f->group), own = f->accumulate / processes;
    for (uint64_t s = 0; s < steps; s++, f->seen++) {
        f->loss = 0;
        for (uint64_t b = 0; b < f->accumulate; b++) {
            const uint64_t p = f->stride > 1 ? b % processes : b / own,
                           k = f->stride > 1 ? b / processes : b % own;
            f->loss += all[(p * steps + s) * own + k] / (double)f->accumulate;
        }
        WEFT_TRY(take_loss(f, f->seen));
    }
    return WEFT_OK;
}

/* Moves the losses of complete steps out of the workers. */
static void move_losses(const fit *f, uint64_t steps, double *to) {
    for (uint64_t s = 0; s < steps; s++)
        for (size_t i = 0; i < f->n_workers; i++, to += f->per_worker)
            memcpy(to, f->workers[i].losses + s * f->per_worker, f->per_worker * sizeof *to);
    for (size_t i = 0; i < f->n_workers; i++) {
        worker *w = &f->workers[i];
        w->n_losses -= steps * f->per_worker;
        memmove(w->losses, w->losses + steps * f->per_worker, w->n_losses * sizeof *w->losses);
    }
}

/* Reads the losses of all batches so far. This waits for the devices, and for the other processes. */
static weft_status fit_look(fit *f) {
    const size_t rank = (size_t)weft_process_group_rank(f->group);
    uint64_t steps = UINT64_MAX; /* complete steps: every worker has all its losses of them */
    for (size_t i = 0; i < f->n_workers; i++) {
        worker *w = &f->workers[i];
        WEFT_TRY(read_losses(w));
        if (w->n_losses / f->per_worker < steps) steps = w->n_losses / f->per_worker;
    }
    if (steps == 0) return WEFT_OK; /* also in the other processes, which have made as many steps */
    const size_t own = steps * f->per_worker * f->n_workers;
    double *all = weft__array(f->ctx, (size_t)weft_process_group_size(f->group), own * sizeof *all);
    if (!all) return weft__fail_oom(f->ctx, own * sizeof *all, "losses");
    move_losses(f, steps, all + rank * own);
    weft__process_group_purpose(f->group, f->seen + steps, "the losses");
    weft_status status = weft_process_group_all_gather(f->group, all, own * sizeof *all);
    if (status == WEFT_OK) status = take_losses(f, steps, all);
    weft__free(f->ctx, all);
    return status;
}

weft_status weft_fit_losses(const weft_fit_state *state, double *loss, double *mean) {
    if (loss) *loss = (double)NAN;
    if (mean) *mean = (double)NAN;
    WEFT_NEED(NULL, state);
    fit *f = state->fit;
    if (!f)
        return weft__fail(
            NULL, WEFT_ERR_ARGUMENT,
            "weft_fit_losses: state.fit is NULL; it takes the state that weft_fit gives a callback");
    WEFT_TRY(fit_look(f));
    if (loss) *loss = f->loss;
    if (mean) *mean = f->epoch_sum / (double)f->epoch_done;
    return WEFT_OK;
}

static weft_tensor *loss_of(const fit *f, const worker *w, weft_tensor *prediction, const weft_batch *batch) {
    const weft_fit_options *o = f->options;
    const weft__loss loss = {
        .kind = o->loss, .smoothing = o->label_smoothing, .weights = w->weights, .beta = o->beta};
    if (!o->custom_loss) return weft__loss_mean(&loss, prediction, batch);
    weft_tensor *each = o->custom_loss(o->user, prediction, batch);
    return weft__batch_mean(each, batch);
}

/* Plans the memory of a step: of one with whole samples, if the loader cuts them, since others need less. */
static weft_status fit_plan(fit *f, const worker *w, const weft_batch *batch, weft_tensor *loss) {
    weft_memory_plan memory;
    f->planned = true;
    if (w->loader->uncut) loss = loss_of(f, w, weft_forward(w->m, w->loader->uncut), batch);
    const uint64_t batches = f->shares ? f->accumulate : f->per_worker;
    WEFT_TRY(weft_optimizer_plan(f->opt, loss, (int)batches, &memory));
    f->options->on_plan(f->options->user, &memory);
    return WEFT_OK;
}

/* Adds the gradients of micro-batch k of this worker. With a single worker, the last micro-batch also updates
 * the parameters. */
static weft_status learn(const fit *f, const worker *w, weft_tensor *loss, uint64_t k) {
    return f->shares ? weft_optimizer_add_gradients(w->opt, loss)
                     : weft_optimizer_accumulate(w->opt, loss, (int)k, (int)f->per_worker);
}

/* Runs micro-batch k of a worker, forward and backward. It is micro-batch `number` of the step. */
static weft_status micro_batch(fit *f, worker *w, uint64_t step, uint64_t k, uint64_t number,
                               weft_fit_state *state) {
    weft_batch batch;
    double started = now();
    weft_scope *scope = weft_scope_open(w->ctx);
    if (!scope) return weft__fail_oom(w->ctx, 0, "a scope");
    weft_status status = weft_loader_get(w->loader, step * f->accumulate + number, &batch);
    double loaded = now();
    state->seconds_data += loaded - started;
    if (status == WEFT_OK && (f->shares || f->group))
        status = weft_optimizer_micro_batch(w->opt, (int)number);
    if (status == WEFT_OK) {
        weft_tensor *value = loss_of(f, w, weft_forward(w->m, batch.x), &batch);
        if (f->options->on_plan && !f->planned) status = fit_plan(f, w, &batch, value);
        if (status == WEFT_OK) status = learn(f, w, value, k);
        if (status == WEFT_OK) status = weft__pending_add(&w->pending, value);
    }
    weft_scope_close(scope);
    if (status == WEFT_OK && weft__pending_due(&w->pending, 1))
        status = f->group ? read_losses(w) : fit_look(f);
    state->seconds_step += now() - loaded;
    return status;
}

/* Decides whether a stop may abandon the step after k micro-batches. Usually it may: gradients that are still
 * being accumulated are dropped. But buffers that forward passes changed would keep their values, and
 * replicas would differ. In these cases the step is completed. Other processes wait for each step. */
static weft_status may_leave(const fit *f, uint64_t k) {
    if (f->group || (k > 0 && (f->assigns || f->n_workers > 1)))
        for (size_t i = 0; i < f->n_workers; i++) f->workers[i].ctx->caller.completes = true;
    return weft__go_on(f->ctx);
}

/* Runs all micro-batches of a step. Every worker starts its micro-batch before any worker is waited for. */
static weft_status micro_batches(fit *f, uint64_t step, weft_fit_state *state) {
    for (uint64_t k = 0; k < f->per_worker; k++)
        for (size_t i = 0; i < f->n_workers; i++) {
            WEFT_TRY(may_leave(f, k + i));
            const uint64_t number = f->first + i * f->per_worker + k * f->stride;
            WEFT_TRY(micro_batch(f, &f->workers[i], step, k, number, state));
        }
    const double started = now();
    if (f->shares) WEFT_TRY(weft_optimizer_all_reduce(f->optimizers, f->n_workers));
    for (size_t i = 0; f->shares && i < f->n_workers; i++)
        WEFT_TRY(weft_optimizer_update(f->optimizers[i], (int)f->accumulate));
    state->seconds_step += now() - started;
    return f->group && (step + 1) % LOOK_EVERY == 0 ? fit_look(f) : WEFT_OK;
}

static weft_status end_epoch(fit *f, weft_fit_state *state, bool *stop) {
    const weft_fit_options *o = f->options;
    weft_history *h = f->history;
    double mean;
    if (!h && !o->validation && !o->on_epoch) return WEFT_OK;
    WEFT_TRY(weft_fit_losses(state, NULL, &mean));
    if (o->validation)
        WEFT_TRY(weft_module_evaluate(f->m, o->validation, o->loss, &state->val_loss, &state->val_accuracy));
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
    const weft_status status = micro_batches(f, step, &state);
    for (size_t i = 0; i < f->n_workers; i++) f->workers[i].ctx->caller.completes = false;
    WEFT_TRY(status);
    if (o->on_step) WEFT_TRY(o->on_step(o->user, &state, stop));
    return state.epoch_ends || step + 1 == steps || *stop ? end_epoch(f, &state, stop) : WEFT_OK;
}

/* Computes the step at which training ends, and checks that there is something to learn. */
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
    if (f->loader->y.rank == 0 && !f->loader->reproduces)
        return weft__fail(f->ctx, WEFT_ERR_ARGUMENT, "fit: the loader has no targets to learn from");
    return WEFT_OK;
}

/* Copies the class weights, if there are any, to the device of a worker. */
static weft_status add_weights(const fit *f, worker *w) {
    const weft_fit_options *o = f->options;
    const bool known =
        o->loss == WEFT_LOSS_CROSS_ENTROPY ? o->n_classes > 0 : o->loss == WEFT_LOSS_BCE && o->n_classes == 2;
    if (!o->class_weights) return WEFT_OK;
    if (!known || o->custom_loss)
        return weft__fail(
            f->ctx, WEFT_ERR_ARGUMENT,
            "fit: class_weights go with a cross-entropy loss, or two of them with a binary one");
    for (int64_t i = 0; i < o->n_classes; i++)
        if (!(o->class_weights[i] >= 0) || !isfinite(o->class_weights[i]))
            return weft__fail(f->ctx, WEFT_ERR_ARGUMENT,
                              "fit: the weight of class %lld is %g; it must be finite and not negative",
                              (long long)i, (double)o->class_weights[i]);
    w->weights = weft_keep(weft_from(w->ctx, WEFT_F32, 1, &o->n_classes, o->class_weights));
    return weft_tensor_status(w->weights);
}

static weft_status add_worker(fit *f, const weft_replica *r) {
    if (!r->loader)
        return weft__fail(f->ctx, WEFT_ERR_ARGUMENT, "fit: replica %zu has no loader", f->n_workers);
    WEFT_TRY(weft_module_status(r->module));
    WEFT_TRY(weft_optimizer_status(r->optimizer));
    if (weft_optimizer_steps(r->optimizer) != weft_optimizer_steps(f->opt) ||
        r->loader->batches != f->loader->batches)
        return weft__fail(f->ctx, WEFT_ERR_ARGUMENT,
                          "fit: replica %zu has made %llu steps and has %lld batches, but the first has made "
                          "%llu and has %lld",
                          f->n_workers, (unsigned long long)weft_optimizer_steps(r->optimizer),
                          (long long)r->loader->batches, (unsigned long long)weft_optimizer_steps(f->opt),
                          (long long)f->loader->batches);
    if (r->loader->options.accumulate > 1 && r->loader->of != f->accumulate)
        return weft__fail(f->ctx, WEFT_ERR_ARGUMENT,
                          "fit: options.accumulate is %llu, but %d for the loader: give both the same number",
                          (unsigned long long)f->accumulate, r->loader->options.accumulate);
    weft__loader_share(r->loader, f->accumulate);
    f->optimizers[f->n_workers] = r->optimizer;
    f->workers[f->n_workers++] = (worker){
        .ctx = weft_module_context(r->module), .m = r->module, .opt = r->optimizer, .loader = r->loader};
    return add_weights(f, &f->workers[f->n_workers - 1]);
}

static weft_status add_workers(fit *f) {
    const weft_fit_options *o = f->options;
    if (o->n_replicas > 0 && !o->replicas)
        return weft__fail(f->ctx, WEFT_ERR_ARGUMENT, "fit: options.replicas is NULL, but there are %zu",
                          o->n_replicas);
    const size_t n = o->n_replicas + 1, processes = (size_t)weft_process_group_size(f->group);
    if (n == 0 || f->accumulate % n || f->accumulate / n % processes) /* n is 0: the sum overflowed */
        return weft__fail(f->ctx, WEFT_ERR_ARGUMENT,
                          "fit: the %llu batches of a step cannot be divided evenly among %zu %s",
                          (unsigned long long)f->accumulate, n * processes,
                          processes > 1 ? "copies of the model in all processes" : "devices");
    f->shares = n > 1;
    f->per_worker = f->accumulate / n / processes;
    const int own = (int)(f->per_worker * n);
    f->first = (uint64_t)weft_optimizer_batch_number(f->opt, 0, own);
    f->stride = (uint64_t)weft_optimizer_batch_number(f->opt, 1, own) - f->first;
    f->workers = weft__array(f->ctx, n, sizeof *f->workers);
    f->optimizers = weft__array(f->ctx, n, sizeof *f->optimizers);
    if (!f->workers || !f->optimizers) return weft__fail_oom(f->ctx, n * sizeof *f->workers, "replicas");
    WEFT_TRY(add_worker(f, &(weft_replica){f->m, f->opt, f->loader}));
    for (size_t i = 0; i < o->n_replicas; i++) WEFT_TRY(add_worker(f, &o->replicas[i]));
    return WEFT_OK;
}

static void free_workers(fit *f) {
    for (size_t i = 0; i < f->n_workers; i++) {
        weft__loader_share(f->workers[i].loader, 0);
        weft__pending_free(&f->workers[i].pending);
        weft_free(f->workers[i].weights);
        weft__free(NULL, f->workers[i].losses);
    }
    weft__free(f->ctx, f->workers);
    weft__free(f->ctx, f->optimizers);
}

static bool assigns(weft_module *m) {
    weft_parameter_info info;
    for (size_t i = 0; weft_parameter_get(m, i, &info); i++)
        if (info.buffer) return true;
    return false;
}

static weft_status train(fit *f, bool *stop) {
    uint64_t steps;
    weft_status status = WEFT_OK;
    WEFT_TRY(add_workers(f));
    WEFT_TRY(count_steps(f, &steps));
    f->assigns = assigns(f->m);
    f->seen = weft_optimizer_steps(f->opt);
    for (uint64_t step = f->seen; step < steps && !*stop && status == WEFT_OK; step++)
        status = one_step(f, step, steps, stop);
    if (status != WEFT_OK && status != WEFT_ERR_STOPPED) return status;
    WEFT_TRY(fit_look(f)); /* also after a stop: a loss that is not finite is the more important error */
    return status;
}

weft_status weft_fit(weft_module *m, weft_optimizer *opt, weft_loader *loader,
                     const weft_fit_options *options, weft_history *history) {
    static const weft_fit_options none = {0};
    if (history) *history = (weft_history){0};
    if (!options) options = &none;
    WEFT_NEED(NULL, m);
    WEFT_NEED(weft_module_context(m), opt);
    WEFT_NEED(weft_module_context(m), loader);
    WEFT_TRY(weft_module_status(m));
    WEFT_TRY(weft_optimizer_status(opt));
    fit f = {.ctx = weft_module_context(m),
             .m = m,
             .opt = opt,
             .loader = loader,
             .options = options,
             .history = history};
    f.group = weft_optimizer_processes(opt);
    f.accumulate = options->accumulate > 0 ? (uint64_t)options->accumulate : loader->of;
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
