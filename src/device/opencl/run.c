/* Programs of the OpenCL device: the launches of all commands. Each launch is a kernel object. Its arguments
 * are set once, and a buffer is bound again only if its slot holds another one. A run enqueues the launches
 * in order and waits for nothing.
 * Must not know: kernel forms, heavy operations. Read next: gpu/backend/executable.c. */
#include "device/opencl/opencl.h"

enum { RUN_AHEAD = 1024 }; /* launches between two marks */

typedef struct opencl_launch {
    cl_kernel kernel;
    size_t items[3], group[3];
} opencl_launch;

typedef struct opencl_executable {
    weft_gpu_executable gpu;
    opencl_launch *launches;
    int n_launches;      /* launches that have their kernel */
    cl_uint times_index; /* the argument that says how many runs the one launch does */
    int times;           /* its value */
    cl_event *events;    /* one for each launch of a timed run */
    bool warm;           /* it has run before: drivers make the code of a kernel at its first launch */
} opencl_executable;

static weft__opencl *of(weft_gpu_device *device) { return weft__opencl_of(&device->base); }

static opencl_executable *executable_of(weft_gpu_executable *e) { return (opencl_executable *)e; }

/* ---- building ---- */

static weft_status set(weft__opencl *d, const opencl_launch *launch, cl_uint index, size_t bytes,
                       const void *value) {
    const cl_int error = weft__cl.clSetKernelArg(launch->kernel, index, bytes, value);
    return error ? weft__gpu_fail(&d->gpu, error, "an argument of a kernel") : WEFT_OK;
}

/* Sets an argument. The first run binds the buffers. */
static weft_status set_argument(weft__opencl *d, opencl_executable *e, const opencl_launch *l,
                                const weft_argument *a, cl_uint *index) {
    const cl_uint at = (*index)++;
    switch ((weft_argument_kind)a->kind) {
    case WEFT_ARGUMENT_BUFFER: return WEFT_OK;
    case WEFT_ARGUMENT_FAULTS: return set(d, l, at, sizeof(cl_mem), &d->gpu.faults->handle);
    case WEFT_ARGUMENT_NUMBERS: return set(d, l, at, (size_t)a->i, a->numbers);
    case WEFT_ARGUMENT_PARAMETERS:
        WEFT_TRY(set(d, l, at, sizeof(cl_mem), &e->gpu.parameters->handle));
        return set(d, l, (*index)++, 8, &a->i);
    case WEFT_ARGUMENT_TIMES:
        e->times_index = at;
        e->times = 1;
        return set(d, l, at, 4, &(int32_t){1});
    default: break; /* a program has no other kinds */
    }
    return weft__fail(d->gpu.base.ctx, WEFT_ERR_INTERNAL, "opencl: an argument of an unknown kind");
}

static weft_status make_launch(weft__opencl *d, opencl_executable *e, const weft_launch *from,
                               const weft_gpu_source *source) {
    opencl_launch *to = &e->launches[e->n_launches];
    char name[WEFT_GPU_NAME];
    cl_int error = 0;
    weft__gpu_kernel_name(source, from->name, name);
    to->kernel = weft__cl.clCreateKernel(d->gpu.compiler.modules[source->module].module, name, &error);
    if (error) return weft__gpu_fail(&d->gpu, error, from->name);
    weft__gpu_hook.kernels++;
    e->n_launches++;
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
    weft__opencl *d = of(device);
    opencl_executable *e = executable_of(executable);
    const size_t count = (size_t)p->launches.count;
    e->launches = weft__array(device->base.ctx, count + 1, sizeof *e->launches);
    e->events = weft__array(device->base.ctx, count + 1, sizeof *e->events);
    if (!e->launches || !e->events)
        return weft__fail_oom(device->base.ctx, (count + 1) * sizeof *e->launches, "opencl: a program");
    for (int l = 0; l < p->launches.count; l++) WEFT_TRY(make_launch(d, e, &p->launches.list[l], sources[l]));
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
    for (int l = 0; l < e->n_launches; l++) weft__cl.clReleaseKernel(e->launches[l].kernel);
    weft__free(device->base.ctx, e->launches);
    weft__free(device->base.ctx, e->events);
}

static weft_status build(weft_gpu_device *device, const weft_commands *commands, bool fused,
                         weft_gpu_executable **e) {
    weft__opencl_signals signals;
    weft__opencl_keep_signals(&signals);
    const weft_status status = weft__gpu_build_form(device, commands, fused, e);
    weft__opencl_restore_signals(&signals);
    return status;
}

static weft_status bind(weft_gpu_device *device, weft_gpu_executable *executable, int place,
                        const weft_gpu_buffer *buffer) {
    const weft_gpu_place *p = &executable->places[place];
    return set(of(device), &executable_of(executable)->launches[p->launch], (cl_uint)p->index, sizeof(cl_mem),
               &buffer->handle);
}

/* ---- running ---- */

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
    cl_int error = weft__gpu_gone(&d->gpu);
    if (!error)
        error = weft__cl.clEnqueueNDRangeKernel(d->queue, launch->kernel, 3, NULL, launch->items,
                                                launch->group, 0, NULL,
                                                d->gpu.timing ? &e->events[l]
                                                : marks       ? &event
                                                              : NULL);
    return error || !marks ? error : keep_step(d, event);
}

/* Enqueues the only launch to do the work of `times` runs. */
static cl_int run_repeated(weft__opencl *d, opencl_executable *e, int times) {
    cl_int error = 0;
    if (times != e->times) error = weft__cl.clSetKernelArg(e->launches[0].kernel, e->times_index, 4, &times);
    e->times = times;
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
        if (error) return weft__gpu_fail(&d->gpu, error, "a run");
        if (cold) WEFT_TRY(weft__go_on(d->gpu.base.ctx));
    }
    e->warm = true;
    return WEFT_OK;
}

static weft_status run(weft_gpu_device *device, weft_gpu_executable *e, int times) {
    if (!e->repeats) return run_once(of(device), executable_of(e));
    const cl_int error = run_repeated(of(device), executable_of(e), times);
    return error ? weft__gpu_fail(device, error, "a run") : WEFT_OK;
}

static int after_run(weft_gpu_device *device, weft_buffer *const *buffers, int count) {
    (void)buffers;
    (void)count;
    return weft__cl.clFlush(of(device)->queue);
}

static int read_times(weft_gpu_device *device, weft_gpu_executable *executable) {
    const opencl_executable *e = executable_of(executable);
    (void)device;
    for (int l = 0; l < e->n_launches; l++) {
        cl_ulong from = 0, to = 0;
        if (!e->events[l]) return OPENCL_INVALID_VALUE;
        weft__cl.clGetEventProfilingInfo(e->events[l], OPENCL_PROFILING_COMMAND_START, sizeof from, &from,
                                         NULL);
        weft__cl.clGetEventProfilingInfo(e->events[l], OPENCL_PROFILING_COMMAND_END, sizeof to, &to, NULL);
        executable->clocked[l].start_ns = (double)from;
        executable->clocked[l].end_ns = (double)to;
    }
    return 0;
}

const weft_gpu_program_functions weft__opencl_program = {
    .executable_bytes = sizeof(opencl_executable),
    .build = build,
    .fill = fill,
    .empty = empty,
    .bind = bind,
    .after_run = after_run,
    .run = run,
    .read_times = read_times,
};
