/* Builds programs, chooses their form, binds buffers, runs programs and times their commands.
 * Must not know: OpenCL, CUDA. Read next: opencl/run.c, driver/run.c. */
#include "device/gpu/backend/executable.h"

#include <string.h>

/* ---- building ---- */

static weft_status make_members(weft_gpu_device *d, weft_gpu_executable *e, const weft_gpu_program *p) {
    weft_context *ctx = d->base.ctx;
    const size_t count = (size_t)p->launches.count;
    e->repeats = p->repeats;
    e->n_launches = p->launches.count;
    e->bound = weft__array(ctx, (size_t)weft__gpu_slots(e), sizeof *e->bound);
    e->timings = weft__array(ctx, (size_t)e->commands->count + 1, sizeof *e->timings);
    e->clocked = weft__array(ctx, count + 1, sizeof *e->clocked);
    if (!e->bound || !e->timings || !e->clocked)
        return weft__fail_oom(ctx, (count + 1) * sizeof *e->clocked, "a program");
    for (size_t l = 0; l < count; l++) e->clocked[l].command = p->commands[l];
    return WEFT_OK;
}

/* Uploads the parameter buffer of fused launches. */
static weft_status make_parameters(weft_gpu_device *d, weft_gpu_executable *e, const weft_gpu_program *p) {
    const size_t bytes = p->n_parameters * sizeof *p->parameters;
    if (!bytes) return WEFT_OK;
    WEFT_TRY(weft__gpu_memory_new(d, bytes, "the parameters of a program", &e->parameters));
    const int error = d->backend->memory->write(d, e->parameters, 0, p->parameters, bytes, NULL);
    return error ? weft__gpu_fail(d, error, "uploading the parameters of a program") : WEFT_OK;
}

static weft_status gpu_executable_fill(weft_gpu_device *d, weft_gpu_executable *e,
                                       const weft_gpu_program *p) {
    weft_context *ctx = d->base.ctx;
    const int count = p->launches.count;
    const weft_gpu_source **sources = weft__array(ctx, (size_t)count + 1, sizeof *sources);
    weft_status status = sources ? weft__gpu_compile(&d->compiler, p->launches.list, count, sources)
                                 : weft__fail_oom(ctx, (size_t)count * sizeof *sources, "a program");
    if (status == WEFT_OK) status = make_parameters(d, e, p);
    if (status == WEFT_OK) status = weft__gpu_make_launches(d, e, p, sources);
    weft__free(ctx, sources);
    return status;
}

/* i: the index of the scratch memory. */
static weft_status grow_scratch(weft_gpu_device *d, int i, size_t bytes) {
    weft_gpu_buffer *scratch;
    if (bytes <= d->scratch_bytes[i]) return WEFT_OK;
    WEFT_TRY(weft__gpu_memory_new(d, bytes + 2 * d->guard, "scratch memory", &scratch));
    weft__gpu_memory_free(d, d->scratch[i]);
    d->scratch[i] = scratch;
    weft__gpu_count_memory(&d->base, bytes, d->scratch_bytes[i]);
    d->scratch_bytes[i] = bytes;
    d->base.workspace = d->scratch_bytes[0] + d->scratch_bytes[1];
    return WEFT_OK;
}

weft_status weft__gpu_build_form(weft_gpu_device *d, const weft_commands *commands, bool fused,
                                 weft_gpu_executable **out) {
    weft_context *ctx = d->base.ctx;
    const size_t size = d->backend->program->executable_bytes;
    weft_gpu_executable *e = weft__zalloc(ctx, size);
    if (!e) return weft__fail_oom(ctx, size, "a program");
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
    for (int i = 0; i < 2 && status == WEFT_OK; i++)
        status = grow_scratch(d, i, (size_t)program.scratch_bytes[i]);
    if (status == WEFT_OK) status = make_members(d, e, &program);
    if (status == WEFT_OK) status = gpu_executable_fill(d, e, &program);
    weft__gpu_program_free(&program);
    weft__arena_free(&arena);
    if (status != WEFT_OK)
        weft__gpu_executable_free(&d->base, (weft_executable *)e);
    else
        *out = e;
    return status;
}

static weft_status gpu_executable_build(weft_gpu_device *d, const weft_commands *commands, bool fused,
                                        weft_gpu_executable **e) {
    const weft_gpu_program_functions *program = d->backend->program;
    return (program->build ? program->build : weft__gpu_build_form)(d, commands, fused, e);
}

weft_status weft__gpu_build(weft_device *device, const weft_commands *commands, weft_executable **out) {
    weft_gpu_device *d = weft__gpu_of(device);
    weft_gpu_executable *e = NULL;
    const int error = weft__gpu_enter(d);
    if (error) return weft__gpu_fail(d, error, "loading a program");
    const weft_status status = gpu_executable_build(d, commands, false, &e);
    weft__gpu_leave(d);
    *out = (weft_executable *)e;
    return status;
}

void weft__gpu_executable_free(weft_device *device, weft_executable *executable) {
    weft_gpu_device *d = weft__gpu_of(device);
    weft_gpu_executable *e = (weft_gpu_executable *)executable;
    if (!e || weft__device_forked(device->forks)) return;
    weft__gpu_executable_free(device, (weft_executable *)e->fused_form);
    if (weft__gpu_enter(d) == 0) {
        d->backend->program->empty(d, e);
        weft__gpu_free_launches(d, e);
        weft__gpu_memory_free(d, e->parameters);
        weft__gpu_leave(d);
    }
    weft__free(device->ctx, e->bound);
    weft__free(device->ctx, e->timings);
    weft__free(device->ctx, e->clocked);
    weft__free(device->ctx, e);
}

/* ---- running ---- */

/* Builds the form with fused launches. The program stays plain if that fails, whatever the reason. */
static weft_status build_fused(weft_gpu_device *d, weft_gpu_executable *plain) {
    const weft_status status = gpu_executable_build(d, plain->commands, true, &plain->fused_form);
    if (status == WEFT_OK || status == WEFT_ERR_STOPPED) return status;
    weft__gpu_hook.unfused++;
    weft__log(d->base.ctx, status == WEFT_ERR_OOM ? WEFT_LOG_INFO : WEFT_LOG_WARNING,
              "%s: a step runs without fused launches: %s", d->base.name, weft_last_error(d->base.ctx));
    return WEFT_OK;
}

/* Replaces *e by the form that runs now. It is the form with fused launches if the program ran often enough
 * for compiling them to pay, and if commands are not timed. `times` is the number of runs requested. */
static weft_status choose_form(weft_gpu_device *d, weft_gpu_executable **e, int times) {
    weft_gpu_executable *plain = *e;
    /* drivers for processors take minutes to compile a long fused launch */
    if (!d->backend->program->plain && !d->target.on_processor && weft__gpu_fuse_now(&plain->runs, times))
        WEFT_TRY(build_fused(d, plain));
    if (plain->fused_form && plain->fused_form->parameters && !d->timing) *e = plain->fused_form;
    return WEFT_OK;
}

/* Returns the buffer in a slot, or NULL. */
static const weft_gpu_buffer *in_slot(const weft_gpu_device *d, const weft_gpu_executable *e,
                                      weft_buffer *const *buffers, int slot) {
    return slot < e->n_slots ? (const weft_gpu_buffer *)buffers[slot] : d->scratch[slot - e->n_slots];
}

static uint64_t identity(const weft_gpu_device *d, const weft_gpu_executable *e, weft_buffer *const *buffers,
                         int slot) {
    const weft_gpu_buffer *b = in_slot(d, e, buffers, slot);
    return b ? b->identity : 0;
}

/* Gives the argument at a place the address of a buffer. */
static weft_status bind_place(weft_gpu_device *d, weft_gpu_executable *e, const weft_gpu_place *p,
                              const weft_gpu_buffer *buffer) {
    const weft_gpu_program_functions *program = d->backend->program;
    const weft_gpu_launch *launch = &e->launches[p->launch];
    const uint64_t address = buffer->address + (uint64_t)p->offset;
    memcpy(launch->arguments[p->index], &address, WEFT_GPU_POINTER_BYTES);
    const int error = program->set_argument ? program->set_argument(d, launch, p->index) : 0;
    return error ? weft__gpu_fail(d, error, "setting an argument of a kernel") : WEFT_OK;
}

static weft_status bind(weft_gpu_device *d, weft_gpu_executable *e, weft_buffer *const *buffers) {
    bool same = true;
    for (int s = 0; s < weft__gpu_slots(e); s++) same = same && e->bound[s] == identity(d, e, buffers, s);
    if (same) return WEFT_OK;
    for (int p = 0; p < e->n_places; p++) {
        const int slot = e->places[p].slot;
        const uint64_t now = identity(d, e, buffers, slot);
        if (!now) return weft__fail(d->base.ctx, WEFT_ERR_INTERNAL, "%s: a slot has no buffer", d->base.name);
        if (e->bound[slot] == now) continue;
        WEFT_TRY(bind_place(d, e, &e->places[p], in_slot(d, e, buffers, slot)));
    }
    for (int s = 0; s < weft__gpu_slots(e); s++) e->bound[s] = identity(d, e, buffers, s);
    return WEFT_OK;
}

/* Tells the only launch of a program that repeats to do the work of so many runs, and where in the buffer of
 * scalars each of them reads. */
static int set_times(weft_gpu_device *d, weft_gpu_executable *e, weft_rows rows, int times) {
    const weft_gpu_program_functions *program = d->backend->program;
    const int32_t values[] = {times, rows.first * (int32_t)rows.bytes, (int32_t)rows.bytes};
    int error = 0;
    for (int i = 0; i < 3 && !error; i++) {
        void *value = e->arguments[e->times_index + i];
        if (memcmp(value, &values[i], sizeof values[i]) == 0) continue;
        memcpy(value, &values[i], sizeof values[i]);
        if (program->set_argument) error = program->set_argument(d, e->launches, e->times_index + i);
    }
    return error;
}

static weft_status submit(weft_gpu_device *d, weft_gpu_executable *e, weft_buffer *const *buffers,
                          weft_rows rows, int times) {
    const weft_gpu_program_functions *program = d->backend->program;
    WEFT_TRY(choose_form(d, &e, times));
    WEFT_TRY(bind(d, e, buffers));
    d->unseen = true;
    int error = program->before_run ? program->before_run(d, buffers, e->n_slots) : 0;
    for (int now = 1; !error && times > 0; times -= now) {
        if (e->repeats) {
            now = times < WEFT_ROWS ? times : WEFT_ROWS;
            error = set_times(d, e, rows, now);
        }
        if (!error) WEFT_TRY(program->run(d, e));
    }
    if (!error && program->after_run) error = program->after_run(d, buffers, e->n_slots);
    return error ? weft__gpu_fail(d, error, "running a program") : WEFT_OK;
}

bool weft__gpu_reads_rows(const weft_device *device, const weft_executable *executable) {
    const weft_gpu_executable *fused = ((const weft_gpu_executable *)executable)->fused_form;
    return fused && fused->repeats && !((const weft_gpu_device *)device)->timing;
}

weft_status weft__gpu_run_rows(weft_device *device, weft_executable *executable, weft_buffer *const *buffers,
                               weft_rows rows, int times) {
    weft_gpu_device *d = weft__gpu_of(device);
    const int error = weft__gpu_enter(d);
    if (error) return weft__gpu_fail(d, error, "running a program");
    const weft_status status = submit(d, (weft_gpu_executable *)executable, buffers, rows, times);
    weft__gpu_leave(d);
    return status;
}

weft_status weft__gpu_run(weft_device *device, weft_executable *executable, weft_buffer *const *buffers,
                          int times) {
    return weft__gpu_run_rows(device, executable, buffers, (weft_rows){0}, times);
}

int weft__gpu_launches_of(const weft_executable *executable) {
    return ((const weft_gpu_executable *)executable)->n_launches;
}

/* ---- timings ---- */

void weft__gpu_set_timing(weft_device *device, bool on) { weft__gpu_of(device)->timing = on; }

/* Computes the timings of commands from their launches. A command lasts from the start of its first launch to
 * the end of its last one. A command without launches takes no time at its place in the order. */
static void fold_times(weft_gpu_executable *e) {
    const int n_commands = e->commands->count;
    double last = 0;
    memset(e->timings, 0, (size_t)n_commands * sizeof *e->timings);
    for (int l = 0; l < e->n_launches; l++) {
        weft_timing *t = &e->timings[e->clocked[l].command];
        if (t->end_ns == 0) t->start_ns = e->clocked[l].start_ns;
        t->end_ns = last = e->clocked[l].end_ns;
    }
    for (int i = n_commands - 1; i >= 0; i--) {
        weft_timing *t = &e->timings[i];
        if (t->end_ns == 0) t->start_ns = t->end_ns = last;
        last = t->start_ns;
    }
}

const weft_timing *weft__gpu_timings(weft_device *device, const weft_executable *executable) {
    weft_gpu_device *d = weft__gpu_of(device);
    weft_gpu_executable *e = (weft_gpu_executable *)(uintptr_t)executable;
    if (!d->timing || weft__gpu_enter(d) != 0) return NULL;
    const int error = d->backend->program->read_times(d, e);
    weft__gpu_leave(d);
    if (error) return NULL;
    fold_times(e);
    return e->timings;
}
