/* A process of a run that is not the leader: it trains its part of each step, and follows orders. It writes
 * no file but its part of a divided checkpoint. Must not know: the run folder, the terminal. Read next:
 * processes.h, loop.c. */
#include <stdio.h>
#include <string.h>

#include "train/run/loop_scores.h"
#include "train/run/signals.h"

/* Writes the part of this process. After a failure the leader knows as much as this process. It says what
 * failed, and orders what follows. */
static weft_status follow_save(weft__loop *loop) {
    WEFT_TRY(weft__processes_prepare_save(&loop->processes, loop->model.optimizer));
    return weft__model_save_part(&loop->model, loop->config) == WEFT_ERR_TIMEOUT ? WEFT_ERR_TIMEOUT : WEFT_OK;
}

/* Obeys an order that does not end the wait. state NULL: no step was just made. */
static weft_status obey(weft__loop *loop, const weft_fit_state *state, weft__order order, int loader) {
    weft__scores scores;
    uint64_t step;
    if (order == WEFT__ORDER_SAMPLE)
        return weft__loop_sample(loop, weft_optimizer_steps(loop->model.optimizer));
    if (order == WEFT__ORDER_BEST) return weft__loop_best(loop, NULL, &step);
    if (order == WEFT__ORDER_LOSSES && state) return weft_fit_losses(state, NULL, NULL);
    if (order == WEFT__ORDER_SAVE) return follow_save(loop);
    if (order != WEFT__ORDER_EVALUATE) return WEFT_OK;
    const weft_status status = weft__loop_take(loop, (weft__loaders)loader, false, &scores);
    weft__scores_free(&scores);
    return status;
}

/* Obeys orders until one of them ends this wait: GO, STOP or END. */
static weft_status await(weft__loop *loop, const weft_fit_state *state, weft__order *order) {
    for (int loader;;) {
        WEFT_TRY(weft__processes_await(&loop->processes, order, &loader));
        loop->ended = *order == WEFT__ORDER_END;
        if (*order == WEFT__ORDER_GO || *order == WEFT__ORDER_STOP || loop->ended) return WEFT_OK;
        WEFT_TRY(obey(loop, state, *order, loader));
    }
}

static weft_status on_step(void *user, const weft_fit_state *state, bool *stop) {
    weft__loop *loop = user;
    weft__order order;
    weft__processes_step(&loop->processes, state);
    WEFT_TRY(await(loop, state, &order));
    *stop = order != WEFT__ORDER_GO;
    return WEFT_OK;
}

static weft_status follow(weft__loop *loop, bool trains) {
    weft__order order = WEFT__ORDER_GO;
    weft_fit_options options = weft__loop_fit(loop, loop->steps);
    options.on_step = on_step;
    options.user = loop;
    weft__signals_mode(WEFT__STOP_IN_ORDER, NULL);
    if (trains && loop->stopping.due.step)
        WEFT_TRY(await(loop, NULL, &order)); /* the leader evaluates first */
    if (trains && order == WEFT__ORDER_GO)
        WEFT_TRY(weft_fit(loop->model.module, loop->model.optimizer, loop->loader, &options, NULL));
    weft__signals_mode(WEFT__STOP_UNDER_WAY, NULL);
    while (!loop->ended) WEFT_TRY(await(loop, NULL, &order));
    return WEFT_OK;
}

weft_status weft__follow(weft__config *config, const weft__train_options *options,
                         weft__train_result *result) {
    weft__loop loop;
    memset(result, 0, sizeof *result);
    weft__signals_install("");
    weft_status status = weft__loop_follow(&loop, config, options);
    status = weft__loop_unite(&loop, status, &result->silent);
    const bool united = status == WEFT_OK;
    if (united) status = follow(&loop, !weft__loop_done(&loop));
    if (united)
        result->silent = loop.processes.parted || status == WEFT_ERR_NUMERIC; /* all have seen the losses */
    result->abandons = status != WEFT_OK && !loop.processes.parted && !result->silent;
    if (status != WEFT_OK) snprintf(result->error, sizeof result->error, "%s", weft_last_error(NULL));
    weft__signals_mode(WEFT__STOP_AT_ONCE, "");
    weft__loop_close(&loop);
    weft__signals_restore();
    return status;
}
