/* Programs of the OpenCL device: the launches of all commands, each a kernel object whose arguments are set
 * once and whose buffers are bound again only when a slot holds another one. A run enqueues them, in order,
 * and waits for nothing. Must not know: kernel forms, heavy operations. Read next: gpu/program.c. */
#include <string.h>

#include "device/gpu/program.h"
#include "device/opencl/opencl.h"

enum { RUN_AHEAD = 1024 }; /* launches between two marks */

typedef struct opencl_launch {
    cl_kernel kernel;
    size_t items[3], group[3];
    int command;
} opencl_launch;

/* Argument `index` of a launch is the buffer in `slot`. */
typedef struct opencl_place {
    int slot, launch;
    cl_uint index;
} opencl_place;

typedef struct opencl_executable {
    int n_commands, n_slots, n_launches; /* slot n_slots is the scratch */
    opencl_launch *launches;
    opencl_place *places;
    size_t n_places, place_capacity;
    uint64_t *bound; /* serial of the buffer that a slot's arguments name */
    cl_mem words;    /* that chains read */
    bool repeats;    /* the one launch does the work of `times` runs, as its argument times_index says */
    cl_uint times_index;
    int times;
    const weft_commands *commands;
    int64_t runs;                      /* so far */
    struct opencl_executable *chained; /* its form with chains, once it ran often */
    weft_timing *timings;
    weft_gpu_time *clocked;
    cl_event *events; /* of the launches of a timed run */
} opencl_executable;

/* ---- arguments ---- */

static weft_status set(weft__opencl *d, const opencl_launch *launch, cl_uint index, size_t bytes,
                       const void *value) {
    const cl_int error = weft__cl.clSetKernelArg(launch->kernel, index, bytes, value);
    return error ? weft__opencl_fail(d, error, "an argument of a kernel") : WEFT_OK;
}

/* A buffer, bound by the first run. */
static weft_status set_place(weft__opencl *d, opencl_executable *e, int launch, cl_uint index, int slot) {
    if (!weft__grow(d->base.ctx, &e->places, &e->place_capacity, e->n_places, sizeof *e->places))
        return weft__fail_oom(d->base.ctx, sizeof *e->places, "opencl: a program");
    e->places[e->n_places++] = (opencl_place){slot, launch, index};
    return WEFT_OK;
}

static weft_status set_argument(weft__opencl *d, opencl_executable *e, int launch, const weft_argument *a,
                                cl_uint *index) {
    const opencl_launch *l = &e->launches[launch];
    const cl_uint at = (*index)++;
    switch ((weft_argument_kind)a->kind) {
    case WEFT_ARGUMENT_BUFFER: return set_place(d, e, launch, at, a->index);
    case WEFT_ARGUMENT_FAULTS: return set(d, l, at, sizeof d->faults, &d->faults);
    case WEFT_ARGUMENT_NUMBERS: return set(d, l, at, (size_t)a->i, a->numbers);
    case WEFT_ARGUMENT_WORDS:
        WEFT_TRY(set(d, l, at, sizeof e->words, &e->words));
        return set(d, l, (*index)++, 8, &a->i);
    case WEFT_ARGUMENT_TIMES:
        e->times_index = at;
        e->times = 1;
        return set(d, l, at, 4, &(int32_t){1});
    default: break; /* a program has no others */
    }
    return weft__fail(d->base.ctx, WEFT_ERR_INTERNAL, "opencl: an argument of an unknown kind");
}

/* ---- building ---- */

/* The scratch of the device, which all programs share. */
static weft_status grow_scratch(weft__opencl *d, int64_t bytes) {
    cl_mem memory;
    if ((size_t)bytes <= d->scratch_bytes) return WEFT_OK;
    WEFT_TRY(weft__opencl_memory(d, (size_t)bytes + 2 * d->guard, "scratch memory", &memory));
    if (d->scratch) weft__cl.clReleaseMemObject(d->scratch);
    weft__gpu_count_memory(&d->base, (size_t)bytes, d->scratch_bytes);
    d->scratch = memory;
    d->scratch_bytes = (size_t)bytes;
    d->scratch_serial = ++d->serial;
    return WEFT_OK;
}

/* What chains read. */
static weft_status make_words(weft__opencl *d, opencl_executable *e, const weft_gpu_program *p) {
    const size_t bytes = p->n_words * sizeof *p->words;
    if (!bytes) return WEFT_OK;
    WEFT_TRY(weft__opencl_memory(d, bytes, "the words of a program", &e->words));
    const cl_int error =
        weft__cl.clEnqueueWriteBuffer(d->queue, e->words, 1, 0, bytes, p->words, 0, NULL, NULL);
    return error ? weft__opencl_fail(d, error, "the words of a program") : WEFT_OK;
}

static weft_status make_launch(weft__opencl *d, opencl_executable *e, const weft_launch *from,
                               const weft_gpu_text *text) {
    opencl_launch *to = &e->launches[e->n_launches];
    char name[WEFT_GPU_NAME];
    cl_int error = 0;
    weft__gpu_kernel_name(text, from->name, name);
    to->kernel = weft__cl.clCreateKernel(d->compiler.modules[text->module].module, name, &error);
    if (error) return weft__opencl_fail(d, error, from->name);
    weft__gpu_hook.kernels++;
    cl_uint index = 0;
    for (int i = 0; i < 3; i++) {
        to->group[i] = (size_t)from->items[i];
        to->items[i] = (size_t)from->groups[i] * to->group[i];
    }
    e->n_launches++;
    for (int a = 0; a < from->n_arguments; a++)
        WEFT_TRY(set_argument(d, e, e->n_launches - 1, &from->arguments[a], &index));
    return WEFT_OK;
}

static weft_status fill(weft__opencl *d, opencl_executable *e, const weft_gpu_program *p) {
    weft_context *ctx = d->base.ctx;
    const size_t count = (size_t)p->launches.count;
    const weft_gpu_text **texts = weft__array(ctx, count + 1, sizeof *texts);
    e->repeats = p->repeats;
    e->launches = weft__array(ctx, count + 1, sizeof *e->launches);
    e->bound = weft__array(ctx, (size_t)e->n_slots + 1, sizeof *e->bound);
    e->timings = weft__array(ctx, (size_t)e->n_commands + 1, sizeof *e->timings);
    e->clocked = weft__array(ctx, count + 1, sizeof *e->clocked);
    e->events = weft__array(ctx, count + 1, sizeof *e->events);
    weft_status status = texts && e->launches && e->bound && e->timings && e->clocked && e->events
                             ? weft__gpu_compile(&d->compiler, p->launches.list, p->launches.count, texts)
                             : weft__fail_oom(ctx, (count + 1) * sizeof *e->launches, "opencl: a program");
    if (status == WEFT_OK) status = make_words(d, e, p);
    for (int l = 0; status == WEFT_OK && l < p->launches.count; l++) {
        e->launches[l].command = p->commands[l];
        status = make_launch(d, e, &p->launches.list[l], texts[l]);
    }
    weft__free(ctx, texts);
    return status;
}

static weft_status build(weft__opencl *d, const weft_commands *commands, bool chain,
                         opencl_executable **out) {
    weft_context *ctx = d->base.ctx;
    opencl_executable *e = weft__zalloc(ctx, sizeof *e);
    if (!e) return weft__fail_oom(ctx, sizeof *e, "opencl: a program");
    weft_arena arena;
    weft__arena_init(&arena, ctx);
    weft_gpu_program program = {
        .launches = {.ctx = ctx, .arena = &arena, .target = &d->target, .tuner = &d->tuner}};
    const weft_gpu_wish wish = {.guard = (int64_t)d->guard, .paths = &d->paths, .chain = chain};
    weft__tuner_begin(&d->tuner);
    e->commands = commands;
    e->n_commands = commands->count;
    e->n_slots = commands->n_slots;
    weft__opencl_signals signals;
    weft_status status = weft__gpu_program(&program, commands, &wish);
    weft__opencl_keep_signals(&signals);
    if (status == WEFT_OK) status = grow_scratch(d, program.scratch_bytes);
    if (status == WEFT_OK) status = fill(d, e, &program);
    weft__opencl_restore_signals(&signals);
    weft__gpu_program_free(&program);
    weft__arena_free(&arena);
    if (status != WEFT_OK)
        weft__opencl_executable_free(&d->base, (weft_executable *)e);
    else
        *out = e;
    return status;
}

weft_status weft__opencl_build(weft_device *device, const weft_commands *commands, weft_executable **out) {
    opencl_executable *e;
    WEFT_TRY(build(weft__opencl_of(device), commands, false, &e));
    *out = (weft_executable *)e;
    return WEFT_OK;
}

static void release_events(opencl_executable *e) {
    for (int l = 0; e->events && l < e->n_launches; l++) {
        if (e->events[l]) weft__cl.clReleaseEvent(e->events[l]);
        e->events[l] = NULL;
    }
}

void weft__opencl_executable_free(weft_device *device, weft_executable *executable) {
    opencl_executable *e = (opencl_executable *)executable;
    if (!e) return;
    weft__opencl_executable_free(device, (weft_executable *)e->chained);
    release_events(e);
    if (e->words) weft__cl.clReleaseMemObject(e->words);
    for (int l = 0; l < e->n_launches; l++) weft__cl.clReleaseKernel(e->launches[l].kernel);
    weft__free(device->ctx, e->launches);
    weft__free(device->ctx, e->places);
    weft__free(device->ctx, e->bound);
    weft__free(device->ctx, e->timings);
    weft__free(device->ctx, e->clocked);
    weft__free(device->ctx, e->events);
    weft__free(device->ctx, e);
}

/* ---- running ---- */

/* What is bound to a slot, and its serial, 0 where there is nothing. */
static const cl_mem *slot_memory(const weft__opencl *d, const opencl_executable *e,
                                 weft_buffer *const *buffers, int slot, uint64_t *serial) {
    const weft__opencl_buffer *b = slot < e->n_slots ? (const weft__opencl_buffer *)buffers[slot] : NULL;
    *serial = slot == e->n_slots ? d->scratch_serial : b ? b->serial : 0;
    return b ? &b->memory : &d->scratch;
}

static weft_status bind(weft__opencl *d, opencl_executable *e, weft_buffer *const *buffers) {
    bool same = true;
    uint64_t serial;
    for (int s = 0; s <= e->n_slots; s++) {
        slot_memory(d, e, buffers, s, &serial);
        same = same && e->bound[s] == serial;
    }
    if (same) return WEFT_OK;
    for (size_t p = 0; p < e->n_places; p++) {
        const opencl_place *place = &e->places[p];
        const cl_mem *memory = slot_memory(d, e, buffers, place->slot, &serial);
        if (!serial) return weft__fail(d->base.ctx, WEFT_ERR_INTERNAL, "opencl: a slot has no buffer");
        if (e->bound[place->slot] == serial) continue;
        WEFT_TRY(set(d, &e->launches[place->launch], place->index, sizeof *memory, memory));
    }
    for (int s = 0; s <= e->n_slots; s++) slot_memory(d, e, buffers, s, &e->bound[s]);
    return WEFT_OK;
}

/* Lets the device catch up with the mark before the last. */
static cl_int keep_step(weft__opencl *d, cl_event newest) {
    cl_int error = 0;
    if (d->mark) {
        error = weft__cl.clFlush(d->queue);
        if (!error) error = weft__cl.clWaitForEvents(1, &d->mark);
        weft__cl.clReleaseEvent(d->mark);
    }
    d->mark = newest;
    d->since_mark = 0;
    return error;
}

static cl_int enqueue(weft__opencl *d, opencl_executable *e, int l) {
    const opencl_launch *launch = &e->launches[l];
    const bool marks = !d->timing && ++d->since_mark >= RUN_AHEAD;
    cl_event event = NULL;
    cl_int error = weft__opencl_gone();
    if (!error)
        error = weft__cl.clEnqueueNDRangeKernel(d->queue, launch->kernel, 3, NULL, launch->items,
                                                launch->group, 0, NULL,
                                                d->timing ? &e->events[l]
                                                : marks   ? &event
                                                          : NULL);
    return error || !marks ? error : keep_step(d, event);
}

/* Enqueues the one launch for as many runs as it may do at once, and counts them off. */
static cl_int enqueue_repeated(weft__opencl *d, opencl_executable *e, int *times) {
    const int now = *times < WEFT_GPU_REPEATS ? *times : WEFT_GPU_REPEATS;
    cl_int error = 0;
    if (now != e->times) error = weft__cl.clSetKernelArg(e->launches[0].kernel, e->times_index, 4, &now);
    e->times = now;
    *times -= now;
    return error ? error : enqueue(d, e, 0);
}

/* The form of the program that runs: with chains once it ran so often that compiling them pays, and not where
 * commands are timed. */
static weft_status choose_form(weft__opencl *d, opencl_executable **e, int times) {
    opencl_executable *plain = *e;
    if (weft__gpu_chain_now(&plain->runs, times))
        WEFT_TRY(weft__gpu_chain_built(build(d, plain->commands, true, &plain->chained)));
    if (plain->chained && plain->chained->words && !d->timing) *e = plain->chained;
    return WEFT_OK;
}

weft_status weft__opencl_run(weft_device *device, weft_executable *executable, weft_buffer *const *buffers,
                             int times) {
    weft__opencl *d = weft__opencl_of(device);
    opencl_executable *e = (opencl_executable *)executable;
    cl_int error = 0;
    WEFT_TRY(choose_form(d, &e, times));
    WEFT_TRY(bind(d, e, buffers));
    d->unseen = true;
    while (e->repeats && times > 0 && !error) error = enqueue_repeated(d, e, &times);
    for (; times > 0 && !error; times--) {
        release_events(e);
        for (int l = 0; l < e->n_launches && !error; l++) error = enqueue(d, e, l);
    }
    if (!error) error = weft__cl.clFlush(d->queue);
    return error ? weft__opencl_fail(d, error, "a run") : WEFT_OK;
}

const weft_timing *weft__opencl_timings(weft_device *device, const weft_executable *executable) {
    const opencl_executable *e = (const opencl_executable *)executable;
    if (!weft__opencl_of(device)->timing) return NULL;
    for (int l = 0; l < e->n_launches; l++) {
        cl_ulong from = 0, to = 0;
        if (!e->events[l]) return NULL;
        weft__cl.clGetEventProfilingInfo(e->events[l], OPENCL_PROFILING_COMMAND_START, sizeof from, &from,
                                         NULL);
        weft__cl.clGetEventProfilingInfo(e->events[l], OPENCL_PROFILING_COMMAND_END, sizeof to, &to, NULL);
        e->clocked[l] = (weft_gpu_time){e->launches[l].command, (double)from, (double)to};
    }
    weft__gpu_fold_times(e->clocked, e->n_launches, e->timings, e->n_commands);
    return e->timings;
}
