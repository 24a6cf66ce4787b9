/* Profiles some training steps of a configuration. The steps run as in a real run, but without a run folder.
 * Several processes profile the same steps, and rank 0 gets the figures of all. Must not know: how a profile
 * is shown. Read next: src/cli/profile.c. */
#include <stdlib.h>
#include <weft/recurrent.h>

#include "process/group.h"
#include "train/analysis/profile.h"
#include "train/run/progress.h"

/* Ends the sampled profile of the warm-up, which measured compilation, and starts a profile of every
 * command. */
static weft_status begin(weft__profiling *p) {
    weft_context *ctx = p->loop.model.ctx;
    weft_profile_free(p->loop.profile);
    p->loop.profile = NULL;
    p->waited = p->group ? p->group->waited : 0;
    p->hidden = p->group ? p->group->hidden : 0;
    return weft_profile_start(ctx, &(weft_profile_options){.trace = p->trace}, &p->profile);
}

static weft_status on_step(void *user, const weft_fit_state *state, bool *stop) {
    weft__profiling *p = user;
    if (state->step == 1) {
        weft_profile_times times;
        double from = weft__now();
        WEFT_TRY(weft_fit_losses(state, NULL, NULL)); /* waits until the step is done */
        weft_profile_total(p->loop.profile, &times);
        p->first_step = state->seconds_data + state->seconds_step + weft__now() - from;
        p->compile = times.compile;
    }
    *stop = false;
    if (state->epoch_ends && p->loop.config->data_streams)
        WEFT_TRY(weft_streams_restart(p->loop.model.module));
    return state->step == p->warmup ? begin(p) : WEFT_OK;
}

static weft_status prepare_all(weft__profiling *p, weft__config *config) {
    weft__loop *loop = &p->loop;
    const double from = weft__now();
    *loop = (weft__loop){.saved = UINT64_MAX};
    loop->processes = weft__processes_start(p->group, config->train_timeout);
    weft__processes_device(&loop->processes, config, loop->choice.device);
    weft_status status = weft__loop_prepare(loop, config, NULL);
    status = weft__loop_unite(loop, status, &p->silent);
    p->prepare = weft__now() - from;
    return status;
}

static weft_status profile_steps(weft__profiling *p) {
    weft__loop *loop = &p->loop;
    weft_fit_options options = weft__loop_fit(loop, p->warmup + p->steps);
    options.on_step = on_step;
    options.user = p;
    WEFT_TRY(weft_fit(loop->model.module, loop->model.optimizer, loop->loader, &options, NULL));
    weft_profile_stop(p->profile);
    weft_profile_total(p->profile, &p->times);
    return WEFT_OK;
}

/* Gives rank 0 the figures of all processes. */
static weft_status collect_figures(weft__profiling *p) {
    if (!p->group) return WEFT_OK;
    const size_t size = (size_t)weft_process_group_size(p->group);
    p->processes = weft__array(NULL, size, sizeof *p->processes);
    if (!p->processes) return weft__fail_oom(NULL, size * sizeof *p->processes, "the profiles of processes");
    /* a program that waits for a thread as well as for its exchange waits longer than the exchange takes */
    const double hidden = p->group->hidden > p->hidden ? p->group->hidden - p->hidden : 0;
    p->processes[weft_process_group_rank(p->group)] =
        (weft__process_profile){.total = p->times.total,
                                .waiting = p->group->waited - p->waited,
                                .hidden = hidden,
                                .memory = weft__memory_peak()};
    weft__process_group_purpose(p->group, 0, "the profiles of all processes");
    return weft_process_group_all_gather(p->group, p->processes, sizeof *p->processes);
}

weft_status weft__profiling_run(weft__profiling *p, weft__config *config) {
    WEFT_TRY(prepare_all(p, config));
    weft_status status = profile_steps(p);
    if (status == WEFT_OK) status = collect_figures(p);
    if (status != WEFT_OK) { /* all processes have seen that the loss is not finite */
        p->silent = status == WEFT_ERR_NUMERIC && weft_process_group_rank(p->group) > 0;
        p->abandons = p->group && status != WEFT_ERR_NUMERIC;
        return status;
    }
    /* the others have ended, so rank 0 measures the device's rates alone */
    if (weft_process_group_rank(p->group) > 0) return WEFT_OK;
    return weft_profile_peaks(p->profile, &p->peak_flops, &p->peak_bytes);
}

void weft__profiling_free(weft__profiling *p) {
    weft_profile_free(p->profile);
    weft__free(NULL, p->processes);
    weft__loop_close(&p->loop);
}
