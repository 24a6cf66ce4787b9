/* Making optimizers and asking about them.
 * Must not know: formulas. Read next: layout.c, update.c. */
#include <math.h>
#include "base/option.h"
#include "optim/optimizer.h"

static const weft_error no_memory = {WEFT_ERR_OOM, "out of memory while making an optimizer"};
static const weft_optimizer no_optimizer = {.error = (weft_error *)(uintptr_t)&no_memory};
static const weft_error no_module = {
    WEFT_ERR_STATE,
    "the optimizer's module was freed, and the optimizer with it: free a module after its last step"};

static const char *const names[] = {
    [WEFT__SGD] = "sgd", [WEFT__RMSPROP] = "rmsprop", [WEFT__ADAM] = "adam", [WEFT__ADAMW] = "adamw"};

static bool is_real(const weft_optimizer *opt) { return opt && opt->ctx; }

/* Returns the thread's poisoned optimizer, for errors without a context. The next such error overwrites
 * it. */
static weft_optimizer *without_context(const weft_module *m, weft__optimizer_kind kind) {
    static _Thread_local weft_optimizer poison;
    if (m)
        (void)weft_module_status(m);
    else
        weft__fail_null(NULL, names[kind], "m");
    poison = (weft_optimizer){.error = weft__orphan_error()};
    return &poison;
}

/* ---- life ---- */

static void optimizer_release(weft_optimizer *opt) {
    weft_context *ctx = opt->ctx;
    weft__optimizer_release(opt);
    for (size_t i = 0; i < opt->n_slots; i++)
        for (size_t s = 0; s < WEFT__STATES; s++) weft_free(opt->slots[i].state[s]);
    weft_free(opt->norm);
    weft__scaling_release(opt);
    weft__free(ctx, opt->slots);
    weft__free(ctx, opt->groups);
    if (opt->error != &no_memory) weft__free(ctx, opt->error);
}

/* The module was freed. Only a shell remains, which reports an error to whoever still holds the optimizer. */
static void module_gone(void *user) {
    weft_optimizer *opt = user;
    optimizer_release(opt);
    *opt = (weft_optimizer){.ctx = opt->ctx, .kind = opt->kind, .error = (weft_error *)(uintptr_t)&no_module};
    weft__tombstone_leave(opt->ctx, &opt->tombstone);
}

void weft_optimizer_free(weft_optimizer *opt) {
    if (!is_real(opt)) return;
    if (!opt->module) {
        weft__tombstone_free(opt->ctx, &opt->tombstone);
        return;
    }
    weft_module_cancel_free(opt->module, module_gone, opt);
    optimizer_release(opt);
    weft__free(opt->ctx, opt);
}

/* Stores the last error of the context as the cause. Returns opt. */
static weft_optimizer *poison(weft_optimizer *opt) {
    opt->error = weft__alloc(opt->ctx, sizeof *opt->error);
    if (opt->error)
        *opt->error = opt->ctx->error;
    else
        opt->error = (weft_error *)(uintptr_t)&no_memory;
    return opt;
}

static weft_status check_hyper(weft_context *ctx, const char *kind, const weft__hyper *h) {
    if (!(h->lr > 0.0) || !isfinite(h->lr))
        return weft__fail(ctx, WEFT_ERR_ARGUMENT, "%s: lr is %g; it must be set, to a positive number", kind,
                          h->lr);
    const struct {
        const char *name;
        double value, below;
    } fields[] = {{"momentum", h->momentum, 1.0}, {"alpha", h->alpha, 1.0},
                  {"beta1", h->beta1, 1.0},       {"beta2", h->beta2, 1.0},
                  {"eps", h->eps, INFINITY},      {"weight_decay", h->weight_decay, INFINITY},
                  {"clip", h->clip, INFINITY},    {"l1", h->l1, INFINITY}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (!(fields[i].value >= 0.0 && fields[i].value < fields[i].below))
            return weft__fail(ctx, WEFT_ERR_ARGUMENT, "%s: %s is %g; it must be at least 0 and below %g",
                              kind, fields[i].name, fields[i].value, fields[i].below);
    if (h->nesterov && h->momentum == 0.0)
        return weft__fail(ctx, WEFT_ERR_ARGUMENT, "%s: nesterov needs a momentum", kind);
    return WEFT_OK;
}

static weft_optimizer *optimizer_make(weft_module *m, weft__optimizer_kind kind, const weft__hyper *hyper) {
    weft_context *ctx = weft_module_context(m);
    if (!ctx) return without_context(m, kind);
    weft_optimizer *opt = weft__zalloc(ctx, sizeof *opt);
    if (!opt) {
        weft__fail_oom(ctx, sizeof *opt, "an optimizer");
        return (weft_optimizer *)(uintptr_t)&no_optimizer;
    }
    opt->ctx = ctx;
    opt->module = m;
    opt->kind = kind;
    opt->hyper = *hyper;
    opt->schedule = (weft_schedule){.kind = WEFT_SCHEDULE_CONSTANT, .lr = hyper->lr};
    if (weft_module_on_free(m, module_gone, opt) != WEFT_OK) {
        weft__free(ctx, opt);
        return (weft_optimizer *)(uintptr_t)&no_optimizer;
    }
    weft_status status = weft_module_status(m);
    if (status == WEFT_OK) status = check_hyper(ctx, weft_optimizer_kind(opt), hyper);
    if (status == WEFT_OK) status = weft__optimizer_layout(opt);
    return status == WEFT_OK ? opt : poison(opt);
}

/* The options that all kinds have. */
#define COMMON(o)                                                                                            \
    .lr = (o).lr, .weight_decay = (o).weight_decay, .decay_matrices_only = (o).decay_matrices_only,          \
    .clip = (o).clip, .track_norm = (o).track_norm, .exact_sum = (o).exact_sum, .l1 = (o).l1

weft_optimizer *weft_sgd(weft_module *m, const weft_sgd_options *options) {
    weft_sgd_options o = options ? *options : (weft_sgd_options){0};
    return optimizer_make(m, WEFT__SGD,
                          &(weft__hyper){COMMON(o), .momentum = o.momentum, .nesterov = o.nesterov});
}

weft_optimizer *weft_rmsprop(weft_module *m, const weft_rmsprop_options *options) {
    weft_rmsprop_options o = options ? *options : (weft_rmsprop_options){0};
    return optimizer_make(m, WEFT__RMSPROP,
                          &(weft__hyper){COMMON(o), .alpha = weft__value_or(o.alpha, 0.99),
                                         .eps = weft__value_or(o.eps, 1e-8), .momentum = o.momentum});
}

static weft_optimizer *adam(weft_module *m, weft__optimizer_kind kind, const weft_adam_options *options) {
    weft_adam_options o = options ? *options : (weft_adam_options){0};
    return optimizer_make(m, kind,
                          &(weft__hyper){COMMON(o), .beta1 = weft__value_or(o.beta1, 0.9),
                                         .beta2 = weft__value_or(o.beta2, 0.999),
                                         .eps = weft__value_or(o.eps, 1e-8)});
}

weft_optimizer *weft_adam(weft_module *m, const weft_adam_options *options) {
    return adam(m, WEFT__ADAM, options);
}
weft_optimizer *weft_adamw(weft_module *m, const weft_adam_options *options) {
    return adam(m, WEFT__ADAMW, options);
}

/* ---- asking ---- */

weft_status weft_optimizer_status(const weft_optimizer *opt) {
    WEFT_NEED(NULL, opt);
    return opt->error ? weft__fail(opt->ctx, opt->error->status, "%s", opt->error->text) : WEFT_OK;
}

const char *weft_optimizer_kind(const weft_optimizer *opt) { return opt ? names[opt->kind] : ""; }

uint64_t weft_optimizer_steps(const weft_optimizer *opt) { return opt ? opt->steps : 0; }

void weft_optimizer_set_steps(weft_optimizer *opt, uint64_t steps) {
    if (is_real(opt)) opt->steps = steps;
}

double weft_optimizer_lr(const weft_optimizer *opt) {
    return is_real(opt) && !opt->error ? weft_schedule_lr(&opt->schedule, opt->steps) : (double)NAN;
}

weft_status weft_optimizer_schedule(weft_optimizer *opt, const weft_schedule *schedule) {
    WEFT_NEED(NULL, opt);
    WEFT_NEED(opt->ctx, schedule);
    WEFT_TRY(weft_optimizer_status(opt));
    if (!(schedule->lr >= 0.0) || !(schedule->min_lr >= 0.0) || !(schedule->factor >= 0.0))
        return weft__fail(opt->ctx, WEFT_ERR_ARGUMENT,
                          "schedule: lr, min_lr and factor must not be negative");
    bool falls = schedule->kind == WEFT_SCHEDULE_COSINE || schedule->kind == WEFT_SCHEDULE_LINEAR;
    if (falls && schedule->steps <= schedule->warmup)
        return weft__fail(opt->ctx, WEFT_ERR_ARGUMENT,
                          "schedule: %llu steps must be more than the %llu steps of warm-up",
                          (unsigned long long)schedule->steps, (unsigned long long)schedule->warmup);
    opt->schedule = *schedule;
    return WEFT_OK;
}

weft_status weft_optimizer_set_lr(weft_optimizer *opt, double lr) {
    WEFT_NEED(NULL, opt);
    return weft_optimizer_schedule(opt, &(weft_schedule){.kind = WEFT_SCHEDULE_CONSTANT, .lr = lr});
}

double weft_optimizer_grad_norm(weft_optimizer *opt) {
    if (!is_real(opt) || opt->error || !opt->norm || opt->steps == 0) return (double)NAN;
    return weft_item(opt->norm);
}
