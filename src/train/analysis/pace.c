/* Fits a run to a time by measuring some of its steps. Must not know: run folders. Read next:
 * train/run/loop_setup.c. */
#include <string.h>

#include <weft/recurrent.h>

#include "train/analysis/pace.h"

enum {
    WARM_UP = 3,     /* steps before the measurement: the first compiles, the next ones touch new memory */
    MEASURED = 2000, /* most steps that are measured */
    STEPS_LEAST = 10
};
#define SHARE_MEASURED 0.03      /* of the time, for a measurement */
#define SECONDS_MOST   5.0       /* the longest measurement */
#define FORWARD_SHARE  (1.0 / 3) /* of a training step: the backward pass has twice the matmuls */

/* ---- measuring ---- */

typedef struct probe {
    weft__loop loop;
    double limit, from, seconds; /* how long to measure; when it began; how long it took */
    uint64_t steps;              /* measured */
} probe;

static weft_status pace_step(void *user, const weft_fit_state *state, bool *stop) {
    probe *p = user;
    if (state->epoch_ends && p->loop.config->data_streams)
        WEFT_TRY(weft_streams_restart(p->loop.model.module));
    if (state->step < WARM_UP) return WEFT_OK;
    const double before = weft__now();
    const uint64_t measured = state->step - WARM_UP;
    /* the device may run ahead, so wait for it, but not at each step */
    const bool looks = measured == 0 || before - p->from > p->limit || measured == MEASURED - WARM_UP;
    if (looks) WEFT_TRY(weft_fit_losses(state, NULL, NULL));
    if (measured == 0) p->from = weft__now();
    p->seconds = weft__now() - p->from;
    p->steps = measured;
    *stop = measured > 0 && p->seconds > p->limit;
    return WEFT_OK;
}

/* Estimates the share of the time that evaluations will take. */
static double evaluations(const weft__loop *loop, uint64_t steps) {
    const weft__config *c = loop->config;
    const double every = (double)c->train_eval_every,
                 all = (double)(loop->whole ? weft_loader_batches(loop->whole) : 0);
    const double each = loop->validation ? (double)weft_loader_batches(loop->validation) : 0;
    const double last = all > each ? all : each;
    const double forward = (every > 0 ? each / every : 0) + last / (double)(steps > 0 ? steps : 1);
    return forward * FORWARD_SHARE / (double)c->train_accumulate;
}

static weft_status pace_measure(probe *p, weft__config *config, double seconds) {
    weft__loop *loop = &p->loop;
    *loop = (weft__loop){.saved = UINT64_MAX};
    WEFT_TRY(weft__loop_prepare(loop, config, NULL));
    p->limit = seconds * SHARE_MEASURED < SECONDS_MOST ? seconds * SHARE_MEASURED : SECONDS_MOST;
    weft_fit_options options = weft__loop_fit(loop, MEASURED);
    options.on_step = pace_step;
    options.user = p;
    return weft_fit(loop->model.module, loop->model.optimizer, loop->loader, &options, NULL);
}

weft_status weft__pace_steps(weft__config *config, double seconds, weft__pace *pace) {
    const weft__origin_kind warmup = config->origin[WEFT__KEY_schedule_warmup];
    probe p = {.seconds = 0};
    config->train_steps = MEASURED; /* for the schedule of the measurement */
    config->train_epochs = 0;
    weft_status status = pace_measure(&p, config, seconds);
    *pace = (weft__pace){0};
    if (status == WEFT_OK && p.steps == 0)
        status =
            weft__fail(NULL, WEFT_ERR_STATE, "--minutes: no step could be measured: use --set train.steps=N");
    if (status == WEFT_OK) {
        pace->step = p.seconds / (double)p.steps;
        pace->tokens = (int64_t)p.loop.items;
        pace->parameters = weft_parameter_elements(p.loop.model.module, false);
        pace->samples = weft__dataset_samples(&p.loop.dataset, WEFT__TRAIN);
        pace->share = evaluations(&p.loop, (uint64_t)(seconds / pace->step));
        const double steps = seconds / (pace->step * (1 + pace->share));
        pace->steps = steps > STEPS_LEAST ? (uint64_t)steps : STEPS_LEAST;
        config->train_steps = (int64_t)pace->steps;
        config->origin[WEFT__KEY_train_steps] = WEFT__ORIGIN_FOUND;
        config->origin[WEFT__KEY_train_epochs] = WEFT__ORIGIN_UNSET;
    }
    if (warmup == WEFT__ORIGIN_UNSET) { /* that of the measurement does not count */
        config->schedule_warmup = 0;
        config->origin[WEFT__KEY_schedule_warmup] = WEFT__ORIGIN_UNSET;
    }
    weft__loop_close(&p.loop);
    return status;
}

/* ---- the size of a gpt ---- */

/* Sizes for texts of characters, the smallest first: that of the defaults of a gpt, then those between it and
 * nanoGPT's configuration for a card. */
static const struct {
    int64_t layers, heads, width, context, batch;
} sizes[] = {{4, 4, 128, 64, 12}, {6, 6, 192, 128, 16}, {6, 6, 384, 256, 32}};
enum { SIZES = sizeof sizes / sizeof *sizes };

#define TOKENS_PER_PARAMETER 20.0
#define EPOCHS_MOST          10.0

/* Returns about how many parameters the blocks of a gpt have. The tables of tokens are small beside them. */
static double pace_parameters(int i) {
    return 12.0 * (double)(sizes[i].layers * sizes[i].width * sizes[i].width);
}

/* Chooses the largest size for which the time lasts. `known` is what the first size was measured at. The time
 * of a token grows with the parameters. */
static int choose_size(const weft__pace *known, double seconds) {
    const double rate = (double)known->tokens / known->step / (1 + known->share);
    int best = 0;
    for (int i = 1; i < SIZES; i++) {
        const double tokens = rate * seconds * pace_parameters(0) / pace_parameters(i);
        if (tokens >= TOKENS_PER_PARAMETER * pace_parameters(i) &&
            tokens <= EPOCHS_MOST * (double)known->samples)
            best = i;
    }
    return best;
}

static void take_size(weft__config *config, weft__config_key key, int64_t *field, int64_t value) {
    if (weft__config_given(config, key)) return;
    *field = value;
    config->origin[key] = WEFT__ORIGIN_FOUND;
}

weft_status weft__pace_text(weft__config *config, double seconds, weft__pace *pace) {
    WEFT_TRY(weft__pace_steps(config, seconds, pace));
    const int i = choose_size(pace, seconds);
    if (i == 0) return WEFT_OK;
    take_size(config, WEFT__KEY_model_layers, &config->model_layers, sizes[i].layers);
    take_size(config, WEFT__KEY_model_heads, &config->model_heads, sizes[i].heads);
    take_size(config, WEFT__KEY_model_width, &config->model_width, sizes[i].width);
    take_size(config, WEFT__KEY_model_context, &config->model_context, sizes[i].context);
    take_size(config, WEFT__KEY_train_batch, &config->train_batch, sizes[i].batch);
    if (!weft__config_given(config, WEFT__KEY_optimizer_lr)) { /* see pace.h */
        config->optimizer_lr *= (double)sizes[0].width / (double)config->model_width;
        config->origin[WEFT__KEY_optimizer_lr] = WEFT__ORIGIN_FOUND;
    }
    if (config->model_width % config->model_heads != 0) /* the user set one of them */
        take_size(config, WEFT__KEY_model_heads, &config->model_heads, 1);
    return weft__pace_steps(config, seconds, pace);
}
