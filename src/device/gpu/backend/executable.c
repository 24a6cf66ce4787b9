/* Builds programs, chooses their form and binds buffers.
 * Must not know: OpenCL, CUDA. Read next: opencl/run.c, cuda/run.c. */
#include "device/gpu/backend/executable.h"

/* ---- building ---- */

/* Returns how many kernel arguments an argument of a launch becomes. */
static int indices(const weft_argument *a) { return a->kind == WEFT_ARGUMENT_PARAMETERS ? 2 : 1; }

/* Counts the places. Writes them if `places` is not NULL. */
static int list_places(const weft_gpu_program *p, weft_gpu_place *places) {
    int n = 0;
    for (int l = 0; l < p->launches.count; l++) {
        const weft_launch *launch = &p->launches.list[l];
        for (int a = 0, index = 0; a < launch->n_arguments; index += indices(&launch->arguments[a++])) {
            const weft_argument *from = &launch->arguments[a];
            if (from->kind != WEFT_ARGUMENT_BUFFER) continue;
            if (places) places[n] = (weft_gpu_place){from->index, l, index, launch->call ? from->i : 0};
            n++;
        }
    }
    return n;
}

static weft_status make_members(weft_gpu_device *d, weft_gpu_executable *e, const weft_gpu_program *p) {
    weft_context *ctx = d->base.ctx;
    const size_t count = (size_t)p->launches.count;
    e->repeats = p->repeats;
    e->parameters = p->n_parameters > 0;
    e->n_launches = p->launches.count;
    e->n_places = list_places(p, NULL);
    e->places = weft__array(ctx, (size_t)e->n_places + 1, sizeof *e->places);
    e->bound = weft__array(ctx, (size_t)e->n_slots + 1, sizeof *e->bound);
    e->timings = weft__array(ctx, (size_t)e->commands->count + 1, sizeof *e->timings);
    e->clocked = weft__array(ctx, count + 1, sizeof *e->clocked);
    if (!e->places || !e->bound || !e->timings || !e->clocked)
        return weft__fail_oom(ctx, (count + 1) * sizeof *e->clocked, "a program");
    list_places(p, e->places);
    return WEFT_OK;
}

static weft_status fill(weft_gpu_device *d, weft_gpu_executable *e, const weft_gpu_program *p) {
    weft_context *ctx = d->base.ctx;
    const int count = p->launches.count;
    const weft_gpu_source **sources = weft__array(ctx, (size_t)count + 1, sizeof *sources);
    weft_status status = sources ? weft__gpu_compile(&d->compiler, p->launches.list, count, sources)
                                 : weft__fail_oom(ctx, (size_t)count * sizeof *sources, "a program");
    if (status == WEFT_OK) status = d->backend->fill(d, e, p, sources);
    weft__free(ctx, sources);
    return status;
}

static weft_status grow_scratch(weft_gpu_device *d, size_t bytes) {
    if (bytes <= d->scratch_bytes) return WEFT_OK;
    WEFT_TRY(d->backend->scratch(d, bytes));
    weft__gpu_count_memory(&d->base, bytes, d->scratch_bytes);
    d->scratch_bytes = d->base.workspace = bytes;
    return WEFT_OK;
}

weft_status weft__gpu_build(weft_gpu_device *d, const weft_commands *commands, bool fused,
                            weft_gpu_executable **out) {
    weft_context *ctx = d->base.ctx;
    weft_gpu_executable *e = weft__zalloc(ctx, d->backend->executable_bytes);
    if (!e) return weft__fail_oom(ctx, d->backend->executable_bytes, "a program");
    weft_arena arena;
    weft__arena_init(&arena, ctx);
    weft_gpu_program program = {
        .launches = {.ctx = ctx, .arena = &arena, .target = &d->target, .tuner = &d->tuner}};
    const weft_gpu_request request = {
        .guard = (int64_t)d->guard, .paths = &d->paths, .fused = fused, .device = d};
    weft__tuner_begin(&d->tuner);
    e->commands = commands;
    e->n_slots = commands->n_slots;
    e->fused = fused;
    weft_status status = weft__gpu_program(&program, commands, &request);
    if (status == WEFT_OK) status = grow_scratch(d, (size_t)program.scratch_bytes);
    if (status == WEFT_OK) status = make_members(d, e, &program);
    if (status == WEFT_OK) status = fill(d, e, &program);
    weft__gpu_program_free(&program);
    weft__arena_free(&arena);
    if (status != WEFT_OK)
        weft__gpu_executable_free(&d->base, (weft_executable *)e);
    else
        *out = e;
    return status;
}

void weft__gpu_executable_free(weft_device *device, weft_executable *executable) {
    weft_gpu_executable *e = (weft_gpu_executable *)executable;
    if (!e || weft__device_forked(device->forks)) return;
    weft__gpu_executable_free(device, (weft_executable *)e->fused_form);
    weft__gpu_of(device)->backend->empty(weft__gpu_of(device), e);
    weft__free(device->ctx, e->places);
    weft__free(device->ctx, e->bound);
    weft__free(device->ctx, e->timings);
    weft__free(device->ctx, e->clocked);
    weft__free(device->ctx, e);
}

/* ---- running ---- */

static weft_status choose_form(weft_gpu_device *d, weft_gpu_executable **e, int times) {
    weft_gpu_executable *plain = *e;
    if (weft__gpu_fuse_now(&plain->runs, times))
        WEFT_TRY(weft__gpu_fusing_status(d->backend->build(d, plain->commands, true, &plain->fused_form)));
    if (plain->fused_form && plain->fused_form->parameters && !d->timing) *e = plain->fused_form;
    return WEFT_OK;
}

static uint64_t identity(weft_gpu_device *d, const weft_gpu_executable *e, weft_buffer *const *buffers,
                         int slot) {
    if (slot < e->n_slots && !buffers[slot]) return 0;
    return d->backend->identity(d, slot < e->n_slots ? buffers[slot] : NULL);
}

static weft_status bind(weft_gpu_device *d, weft_gpu_executable *e, weft_buffer *const *buffers) {
    bool same = true;
    for (int s = 0; s <= e->n_slots; s++) same = same && e->bound[s] == identity(d, e, buffers, s);
    if (same) return WEFT_OK;
    for (int p = 0; p < e->n_places; p++) {
        const int slot = e->places[p].slot;
        const uint64_t now = identity(d, e, buffers, slot);
        if (!now) return weft__fail(d->base.ctx, WEFT_ERR_INTERNAL, "%s: a slot has no buffer", d->base.name);
        if (e->bound[slot] == now) continue;
        WEFT_TRY(d->backend->bind(d, e, p, slot < e->n_slots ? buffers[slot] : NULL));
    }
    for (int s = 0; s <= e->n_slots; s++) e->bound[s] = identity(d, e, buffers, s);
    return WEFT_OK;
}

weft_status weft__gpu_ready(weft_gpu_device *d, weft_gpu_executable **e, weft_buffer *const *buffers,
                            int times) {
    WEFT_TRY(choose_form(d, e, times));
    WEFT_TRY(bind(d, *e, buffers));
    d->unseen = true;
    return WEFT_OK;
}

int weft__gpu_repeat(int *times) {
    const int now = *times < WEFT_GPU_REPEATS ? *times : WEFT_GPU_REPEATS;
    *times -= now;
    return now;
}

int weft__gpu_launches_of(const weft_executable *executable) {
    return ((const weft_gpu_executable *)executable)->n_launches;
}

const weft_timing *weft__gpu_timings(weft_gpu_executable *e) {
    weft__gpu_fold_times(e->clocked, e->n_launches, e->timings, e->commands->count);
    return e->timings;
}
