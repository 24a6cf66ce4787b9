/* Profiles some training steps of a configuration. The steps run as in a real run, but without a run folder.
 * Must not know: how a profile is shown. Read next: src/cli/profile.c. */
#include <stdlib.h>
#include <weft/recurrent.h>

#include "train/analysis/profile.h"

/* Ends the sampled profile of the warm-up, which measured compilation, and starts a profile of every
 * command. */
static weft_status begin(weft__profiling *p) {
    weft_context *ctx = p->loop.model.ctx;
    weft_profile_free(p->loop.profile);
    p->loop.profile = NULL;
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

weft_status weft__profiling_run(weft__profiling *p, weft__config *config) {
    double from = weft__now();
    weft__loop *loop = &p->loop;
    *loop = (weft__loop){.saved = UINT64_MAX};
    WEFT_TRY(weft__loop_prepare(loop, config, NULL));
    p->prepare = weft__now() - from;
    weft_fit_options options = weft__loop_fit(loop, p->warmup + p->steps);
    options.on_step = on_step;
    options.user = p;
    WEFT_TRY(weft_fit(loop->model.module, loop->model.optimizer, loop->loader, &options, NULL));
    weft_profile_stop(p->profile);
    weft_profile_total(p->profile, &p->times);
    return weft_profile_peaks(p->profile, &p->peak_flops, &p->peak_bytes);
}

void weft__profiling_free(weft__profiling *p) {
    weft_profile_free(p->profile);
    weft__loop_close(&p->loop);
}
