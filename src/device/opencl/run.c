/* Programs of the OpenCL device: the launches of all commands. Each launch is a kernel object. Its arguments
 * are set once, and a buffer is bound again only if its slot holds another one. A run enqueues the launches
 * in order and waits for nothing.
 * Must not know: kernel forms, heavy operations. Read next: gpu/backend/executable.c. */
#include "device/opencl/opencl.h"

enum { RUN_AHEAD = 1024 }; /* launches between two marks */

typedef struct opencl_launch {
    cl_kernel kernel;
    size_t items[3], group[3];
    int command;
} opencl_launch;

typedef struct opencl_executable {
    weft_gpu_executable gpu;
    opencl_launch *launches;
    int n_launches;      /* launches that have their kernel */
    cl_mem parameters;   /* parameter buffer of fused launches */
    cl_uint times_index; /* the argument that says how many runs the one launch does */
    int times;           /* its value */
    cl_event *events;    /* one for each launch of a timed run */
    bool warm;           /* it has run before: drivers make the code of a kernel at its first launch */
} opencl_executable;

static opencl_executable *executable_of(weft_gpu_executable *e) { return (opencl_executable *)e; }

/* ---- building ---- */

static weft_status scratch(weft_gpu_device *device, size_t bytes) {
    weft__opencl *d = weft__opencl_of(&device->base);
    cl_mem memory;
    WEFT_TRY(weft__opencl_memory(d, bytes + 2 * d->gpu.guard, "scratch memory", &memory));
    if (d->scratch) weft__cl.clReleaseMemObject(d->scratch);
    d->scratch = memory;
    d->scratch_serial = ++d->serial;
    return WEFT_OK;
}

static weft_status set(weft__opencl *d, const opencl_launch *launch, cl_uint index, size_t bytes,
                       const void *value) {
    const cl_int error = weft__cl.clSetKernelArg(launch->kernel, index, bytes, value);
    return error ? weft__opencl_fail(d, error, "an argument of a kernel") : WEFT_OK;
}

/* Sets an argument. The first run binds the buffers. */
static weft_status set_argument(weft__opencl *d, opencl_executable *e, const opencl_launch *l,
                                const weft_argument *a, cl_uint *index) {
    const cl_uint at = (*index)++;
    switch ((weft_argument_kind)a->kind) {
    case WEFT_ARGUMENT_BUFFER: return WEFT_OK;
    case WEFT_ARGUMENT_FAULTS: return set(d, l, at, sizeof d->faults, &d->faults);
    case WEFT_ARGUMENT_NUMBERS: return set(d, l, at, (size_t)a->i, a->numbers);
    case WEFT_ARGUMENT_PARAMETERS:
        WEFT_TRY(set(d, l, at, sizeof e->parameters, &e->parameters));
        return set(d, l, (*index)++, 8, &a->i);
    case WEFT_ARGUMENT_TIMES:
        e->times_index = at;
        e->times = 1;
        return set(d, l, at, 4, &(int32_t){1});
    default: break; /* a program has no other kinds */
    }
    return weft__fail(d->gpu.base.ctx, WEFT_ERR_INTERNAL, "opencl: an argument of an unknown kind");
}

static weft_status make_parameters(weft__opencl *d, opencl_executable *e, const weft_gpu_program *p) {
    const size_t bytes = p->n_parameters * sizeof *p->parameters;
    if (!bytes) return WEFT_OK;
    WEFT_TRY(weft__opencl_memory(d, bytes, "the parameters of a program", &e->parameters));
    const cl_int error =
        weft__cl.clEnqueueWriteBuffer(d->queue, e->parameters, 1, 0, bytes, p->parameters, 0, NULL, NULL);
    return error ? weft__opencl_fail(d, error, "the parameters of a program") : WEFT_OK;
}

static weft_status make_launch(weft__opencl *d, opencl_executable *e, const weft_launch *from, int command,
                               const weft_gpu_source *source) {
    opencl_launch *to = &e->launches[e->n_launches];
    char name[WEFT_GPU_NAME];
    cl_int error = 0;
    weft__gpu_kernel_name(source, from->name, name);
    to->kernel = weft__cl.clCreateKernel(d->gpu.compiler.modules[source->module].module, name, &error);
    if (error) return weft__opencl_fail(d, error, from->name);
    weft__gpu_hook.kernels++;
    e->n_launches++;
    to->command = command;
    for (int i = 0; i < 3; i++) {
        to->group[i] = (size_t)from->items[i];
        to->items[i] = (size_t)from->groups[i] * to->group[i];
    }
    cl_uint index = 0;
    for (int a = 0; a < from->n_arguments; a++) WEFT_TRY(set_argument(d, e, to, &from->arguments[a], &index));
    return WEFT_OK;
}

static weft_status fill(weft_gpu_device *device, weft_gpu_executable *executable, const weft_gpu_program *p,
                        const weft_gpu_source *const *sources) {
    weft__opencl *d = weft__opencl_of(&device->base);
    opencl_executable *e = executable_of(executable);
    const size_t count = (size_t)p->launches.count;
    e->launches = weft__array(device->base.ctx, count + 1, sizeof *e->launches);
    e->events = weft__array(device->base.ctx, count + 1, sizeof *e->events);
    if (!e->launches || !e->events)
        return weft__fail_oom(device->base.ctx, (count + 1) * sizeof *e->launches, "opencl: a program");
    WEFT_TRY(make_parameters(d, e, p));
    for (int l = 0; l < p->launches.count; l++)
        WEFT_TRY(make_launch(d, e, &p->launches.list[l], p->commands[l], sources[l]));
    return WEFT_OK;
}

static void release_events(opencl_executable *e) {
    for (int l = 0; e->events && l < e->n_launches; l++) {
        if (e->events[l]) weft__cl.clReleaseEvent(e->events[l]);
        e->events[l] = NULL;
    }
}

static void empty(weft_gpu_device *device, weft_gpu_executable *executable) {
    opencl_executable *e = executable_of(executable);
    release_events(e);
    if (e->parameters) weft__cl.clReleaseMemObject(e->parameters);
    for (int l = 0; l < e->n_launches; l++) weft__cl.clReleaseKernel(e->launches[l].kernel);
    weft__free(device->base.ctx, e->launches);
    weft__free(device->base.ctx, e->events);
}

static weft_status build(weft_gpu_device *device, const weft_commands *commands, bool fused,
                         weft_gpu_executable **e) {
    weft__opencl_signals signals;
    weft__opencl_keep_signals(&signals);
    const weft_status status = weft__gpu_build(device, commands, fused, e);
    weft__opencl_restore_signals(&signals);
    return status;
}

weft_status weft__opencl_build(weft_device *device, const weft_commands *commands, weft_executable **out) {
    weft_gpu_executable *e;
    WEFT_TRY(build(weft__gpu_of(device), commands, false, &e));
    *out = (weft_executable *)e;
    return WEFT_OK;
}

/* ---- running ---- */

/* Returns a buffer's serial number. Addresses may be reused, serial numbers never are. */
static uint64_t identity(weft_gpu_device *device, const weft_buffer *buffer) {
    return buffer ? ((const weft__opencl_buffer *)buffer)->serial
                  : weft__opencl_of(&device->base)->scratch_serial;
}

static weft_status bind(weft_gpu_device *device, weft_gpu_executable *executable, int place,
                        const weft_buffer *buffer) {
    weft__opencl *d = weft__opencl_of(&device->base);
    const weft_gpu_place *p = &executable->places[place];
    const cl_mem *memory = buffer ? &((const weft__opencl_buffer *)buffer)->memory : &d->scratch;
    return set(d, &executable_of(executable)->launches[p->launch], (cl_uint)p->index, sizeof *memory, memory);
}

const weft_gpu_backend weft__opencl_backend = {
    .executable_bytes = sizeof(opencl_executable),
    .scratch = scratch,
    .fill = fill,
    .empty = empty,
    .identity = identity,
    .bind = bind,
    .build = build,
};

/* Waits until the device has reached the mark before the last one. */
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
    const bool marks = !d->gpu.timing && ++d->since_mark >= RUN_AHEAD;
    cl_event event = NULL;
    cl_int error = weft__opencl_gone();
    if (!error)
        error = weft__cl.clEnqueueNDRangeKernel(d->queue, launch->kernel, 3, NULL, launch->items,
                                                launch->group, 0, NULL,
                                                d->gpu.timing ? &e->events[l]
                                                : marks       ? &event
                                                              : NULL);
    return error || !marks ? error : keep_step(d, event);
}

/* Enqueues the only launch for as many runs as it may do at once, and subtracts them from *times. */
static cl_int enqueue_repeated(weft__opencl *d, opencl_executable *e, int *times) {
    const int now = weft__gpu_repeat(times);
    cl_int error = 0;
    if (now != e->times) error = weft__cl.clSetKernelArg(e->launches[0].kernel, e->times_index, 4, &now);
    e->times = now;
    return error ? error : enqueue(d, e, 0);
}

/* Returns whether a program changes variables. If it does not, a stop may end it between any two launches. */
static bool changes_variables(const weft_gpu_executable *e) {
    for (int i = 0; i < e->commands->count; i++)
        if (e->commands->list[i].sink) return true;
    return false;
}

/* Returns whether to wait for each launch of this run. Drivers take seconds to make the code of a kernel at
 * its first launch. With a wait after each one, a stop takes effect between two kernels. */
static bool is_cold(const weft__opencl *d, const opencl_executable *e) {
    return !e->warm && d->gpu.base.ctx->interrupted && !changes_variables(&e->gpu);
}

static weft_status run_once(weft__opencl *d, opencl_executable *e) {
    const bool cold = is_cold(d, e);
    release_events(e);
    for (int l = 0; l < e->n_launches; l++) {
        cl_int error = enqueue(d, e, l);
        if (!error && cold) error = weft__cl.clFinish(d->queue);
        if (error) return weft__opencl_fail(d, error, "a run");
        if (cold) WEFT_TRY(weft__go_on(d->gpu.base.ctx));
    }
    e->warm = true;
    return WEFT_OK;
}

weft_status weft__opencl_run(weft_device *device, weft_executable *executable, weft_buffer *const *buffers,
                             int times) {
    weft__opencl *d = weft__opencl_of(device);
    weft_gpu_executable *form = (weft_gpu_executable *)executable;
    cl_int error = 0;
    WEFT_TRY(weft__gpu_ready(&d->gpu, &form, buffers, times));
    opencl_executable *e = executable_of(form);
    while (form->repeats && times > 0 && !error) error = enqueue_repeated(d, e, &times);
    for (; times > 0 && !error; times--) WEFT_TRY(run_once(d, e));
    if (!error) error = weft__cl.clFlush(d->queue);
    return error ? weft__opencl_fail(d, error, "a run") : WEFT_OK;
}

const weft_timing *weft__opencl_timings(weft_device *device, const weft_executable *executable) {
    opencl_executable *e = (opencl_executable *)(uintptr_t)executable;
    if (!weft__gpu_of(device)->timing) return NULL;
    for (int l = 0; l < e->n_launches; l++) {
        cl_ulong from = 0, to = 0;
        if (!e->events[l]) return NULL;
        weft__cl.clGetEventProfilingInfo(e->events[l], OPENCL_PROFILING_COMMAND_START, sizeof from, &from,
                                         NULL);
        weft__cl.clGetEventProfilingInfo(e->events[l], OPENCL_PROFILING_COMMAND_END, sizeof to, &to, NULL);
        e->gpu.clocked[l] = (weft_gpu_time){e->launches[l].command, (double)from, (double)to};
    }
    return weft__gpu_timings(&e->gpu);
}
