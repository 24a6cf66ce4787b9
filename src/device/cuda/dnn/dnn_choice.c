/* Chooses an engine of cuDNN for each problem. Plans of several engines are made and timed on memory of their
 * own, as cuBLASLt's algorithms are. The choice and its plan are stored on disk, because engines add in
 * different orders, and a machine must always give equal bits. For the same reason the first engine is taken
 * if nothing can be stored.
 * Must not know: what graphs compute. Read next: dnn_plan.c, gpu/driver/timing.h. */
#include "device/cuda/dnn/dnn_choice.h"

#include <stdio.h>
#include <string.h>

#include "device/gpu/driver/timing.h"
#include "device/gpu/backend/cache.h"

/* of making and timing plans after the first one of a problem, for an opened device; later problems get the
 * first engine */
#define SECONDS_MOST 10.0
enum { PLANS_MOST = 8 /* of a problem */, ALIGNMENT = 256 };

/* The choice as stored on disk. Engines are counted that build and meet the request. */
typedef struct kept {
    int32_t engine, tried;
    double gain; /* speed relative to the first engine */
} kept;

void weft__dnn_problem_add(weft_dnn_problem *p, int64_t id, size_t bytes, size_t size) {
    p->tensors[p->count].id = id;
    p->tensors[p->count].bytes = bytes;
    p->tensors[p->count].size = size;
    p->tensors[p->count++].number = NULL;
}

void weft__dnn_problem_number(weft_dnn_problem *p, int64_t id, const float *number) {
    weft__dnn_problem_add(p, id, 0, 0);
    p->tensors[p->count - 1].number = number;
}

/* ---- timing ---- */

static size_t dnn_choice_aligned(size_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

/* A search among the engines of a problem. */
typedef struct engine_search {
    weft__cuda *d;
    const weft_dnn_problem *problem;
    int wanted; /* the engine that was chosen earlier; -1: none */
    bool timed;
    CUevent events[2];
    weft_gpu_buffer *operands, *workspace;
    float first, least; /* milliseconds of the first engine that runs, and of the best one */
    double end;         /* time when the search must end */
    weft_dnn_plan best;
    kept found;
    int64_t ids[WEFT_DNN_TENSORS];
    void *values[WEFT_DNN_TENSORS];
    const weft_dnn_plan *now;
    char *message;
} engine_search;

static bool dnn_choice_run(weft__cuda *d, const void *call) {
    const engine_search *s = call;
    const size_t at = s->workspace ? dnn_choice_aligned((size_t)s->workspace->address) : 0;
    return weft__dnn_execute(weft__dnn_of(d)->card.handle, s->now, s->problem->count, s->ids, s->values,
                             (void *)(uintptr_t)at, s->message) == 0;
}

/* Makes the memory of all tensors. */
static bool make_operands(engine_search *s) {
    const weft_dnn_problem *p = s->problem;
    size_t bytes = 0, at = 0;
    for (int i = 0; i < p->count; i++) bytes += dnn_choice_aligned(p->tensors[i].bytes);
    if (!weft__timing_fits(s->d, bytes + (size_t)p->request.workspace) ||
        weft__gpu_memory_new(&s->d->gpu, bytes + ALIGNMENT, "memory for timing cuDNN", &s->operands) !=
            WEFT_OK)
        return false;
    const size_t from = dnn_choice_aligned((size_t)s->operands->address);
    for (int i = 0; i < p->count; i++) {
        s->ids[i] = p->tensors[i].id;
        s->values[i] = (void *)(uintptr_t)(from + at);
        if (p->tensors[i].number)
            memcpy(&s->values[i], &p->tensors[i].number, sizeof s->values[i]);
        else if (weft__timing_fill(s->d, from + at, p->tensors[i].bytes, p->tensors[i].size, p->f16) != 0)
            return false;
        at += dnn_choice_aligned(p->tensors[i].bytes);
    }
    return true;
}

static bool make_workspace(engine_search *s, int64_t bytes) {
    weft__gpu_memory_free(&s->d->gpu, s->workspace);
    s->workspace = NULL;
    return weft__gpu_memory_new(&s->d->gpu, (size_t)bytes + ALIGNMENT, "memory for timing cuDNN",
                                &s->workspace) == WEFT_OK;
}

static void begin_timing(engine_search *s) {
    const weft_dnn_problem *p = s->problem;
    const double most = weft__cuda_hook.dnn_seconds > 0 ? weft__cuda_hook.dnn_seconds : SECONDS_MOST;
    s->timed = weft__tuner_asks(&s->d->gpu.tuner, p->work) && weft__dnn_of(s->d)->seconds < most &&
               weft__gpu_cache_wanted() && weft__cu.cuEventCreate(&s->events[0], CU_EVENT_DEFAULT) == 0 &&
               weft__cu.cuEventCreate(&s->events[1], CU_EVENT_DEFAULT) == 0 && make_operands(s);
    s->end = weft__tuner_clock() + most - weft__dnn_of(s->d)->seconds;
}

static void end_timing(engine_search *s) {
    for (int i = 0; i < 2; i++)
        if (s->events[i]) weft__cu.cuEventDestroy_v2(s->events[i]);
    weft__gpu_memory_free(&s->d->gpu, s->operands);
    weft__gpu_memory_free(&s->d->gpu, s->workspace);
}

/* ---- searching ---- */

static void dnn_choice_take(engine_search *s, weft_dnn_plan *plan, int engine) {
    weft__dnn_plan_free(&s->best);
    s->best = *plan;
    s->found.engine = engine;
}

/* Keeps the plan if it is the fastest so far. A plan whose execution fails is dropped. Without memory for an
 * execution, the first plan stays. */
static void compare(engine_search *s, weft_dnn_plan *plan, int engine) {
    bool better = !s->best.descriptor;
    s->now = plan;
    if (make_workspace(s, plan->workspace)) {
        const float ms = weft__timing_of(s->d, dnn_choice_run, s, s->events, s->least);
        if (ms > 0 && s->first <= 0) s->first = ms;
        better = ms > 0 && (s->least <= 0 || (ms < s->least && ms < WEFT_TIMING_BETTER * s->first));
        if (better) s->least = ms;
    }
    if (better)
        dnn_choice_take(s, plan, engine);
    else
        weft__dnn_plan_free(plan);
}

/* Gets each plan in cuDNN's order, and NULL after the last one of a mode. Returns whether the search ends. */
static bool dnn_choice_visit(void *user, weft_dnn_plan *plan) {
    engine_search *s = user;
    if (!plan) return s->best.descriptor != NULL;
    const int engine = s->found.tried++;
    if (s->wanted >= 0 && engine < s->wanted) {
        weft__dnn_plan_free(plan);
        return false;
    }
    if (s->wanted >= 0 || !s->timed) {
        dnn_choice_take(s, plan, engine);
        return true;
    }
    compare(s, plan, engine);
    return s->found.tried == PLANS_MOST || weft__tuner_clock() > s->end ||
           weft__interrupted(s->d->gpu.base.ctx);
}

/* wanted: the engine that was chosen earlier; -1: none. */
static bool dnn_choice_search(weft__cuda *d, const weft_dnn_problem *p, int wanted, kept *found,
                              weft_dnn_plan *plan, char message[WEFT_DNN_MESSAGE]) {
    engine_search s = {.d = d, .problem = p, .wanted = wanted, .message = message};
    const weft_error error = d->gpu.base.ctx->error; /* errors of timing must not reach the caller */
    const double from = weft__tuner_clock();
    weft_dnn_graph graph = {.error = 0};
    if (wanted < 0) begin_timing(&s);
    p->describe(&graph, p->what);
    weft__dnn_plans(&weft__dnn_of(d)->card, &graph, &p->request, dnn_choice_visit, &s, message);
    weft__dnn_graph_free(&graph);
    if (s.timed) weft__dnn_of(d)->seconds += weft__tuner_clock() - from;
    end_timing(&s);
    d->gpu.base.ctx->error = error;
    s.found.gain = s.least > 0 ? (double)(s.first / s.least) : 1;
    *found = s.found;
    *plan = s.best;
    return plan->descriptor != NULL;
}

/* ---- keeping ---- */

/* Returns the key of the plan of an engine. */
static weft_hash key_of_plan(weft_hash key, int32_t engine) {
    weft__hash_u64(&key, (uint64_t)engine);
    return key;
}

static bool dnn_choice_load(weft__cuda *d, const weft_dnn_problem *p, const kept *found,
                            weft_dnn_plan *plan) {
    weft_context *ctx = d->gpu.base.ctx;
    void *saved = NULL;
    size_t bytes = 0;
    if (!weft__gpu_cache_load(ctx, key_of_plan(p->key, found->engine), &saved, &bytes)) return false;
    const bool done = weft__dnn_plan_load(&weft__dnn_of(d)->card, saved, bytes, plan);
    weft__free(ctx, saved);
    weft__dnn_of(d)->loaded += done;
    return done;
}

static void dnn_choice_store(weft__cuda *d, const weft_dnn_problem *p, const kept *found,
                             const weft_dnn_plan *plan) {
    weft_context *ctx = d->gpu.base.ctx;
    size_t bytes = 0;
    char *saved = weft__dnn_plan_save(ctx, plan, &bytes);
    weft__gpu_cache_store(ctx, p->key, found, sizeof *found);
    if (saved) weft__gpu_cache_store(ctx, key_of_plan(p->key, found->engine), saved, bytes);
    weft__free(ctx, saved);
}

bool weft__dnn_choose(weft__cuda *d, const weft_dnn_problem *p, weft_dnn_plan *plan,
                      char message[WEFT_DNN_MESSAGE]) {
    kept found = {.engine = -1};
    const bool known = weft__tuner_kept(&d->gpu.tuner, p->key, &found, sizeof found) && found.engine >= 0;
    bool done = known && dnn_choice_load(d, p, &found, plan);
    if (!done) {
        const kept earlier = found;
        done = known && dnn_choice_search(d, p, earlier.engine, &found, plan, message);
        if (done)
            found = earlier;
        else
            done = dnn_choice_search(d, p, -1, &found, plan, message);
        weft__dnn_of(d)->built += done;
        if (done) dnn_choice_store(d, p, &found, plan);
    }
    if (!done) return false;
    weft_tile_choice choice = {.gain = found.gain};
    _Static_assert(sizeof found <= WEFT_CHOICE_BYTES, "a choice");
    snprintf(choice.what, sizeof choice.what, "%s", p->name);
    snprintf(choice.chosen, sizeof choice.chosen, "cuDNN %d of %d", found.engine + 1, found.tried);
    weft__tuner_note(&d->gpu.tuner, &choice, p->key, &found, sizeof found);
    return true;
}
