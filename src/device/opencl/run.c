/* Programs of the OpenCL device. Each launch has a kernel object, which keeps its arguments. A run enqueues
 * the launches in order and waits for nothing.
 * Must not know: kernel forms, heavy operations. Read next: gpu/backend/executable.c. */
#include "device/opencl/opencl.h"
#include "device/signals.h"

enum { RUN_AHEAD = 1024 }; /* launches between two marks */

typedef struct opencl_executable {
    weft_gpu_executable gpu;
    bool warm; /* it has run before: drivers make the code of a kernel at its first launch */
} opencl_executable;

/* ---- building ---- */

static int kernel_new(weft_gpu_device *device, weft_gpu_launch *launch, void *module, const char *name) {
    cl_int error = 0;
    (void)device;
    launch->kernel = weft__cl.clCreateKernel(module, name, &error);
    if (error) launch->kernel = NULL;
    return error;
}

static void kernel_free(weft_gpu_device *device, void *kernel) {
    (void)device;
    weft__cl.clReleaseKernel(kernel);
}

static int set_argument(weft_gpu_device *device, const weft_gpu_launch *launch, int index) {
    (void)device;
    return weft__cl.clSetKernelArg(launch->kernel, (cl_uint)index, launch->argument_bytes[index],
                                   launch->arguments[index]);
}

static void release_events(weft_gpu_executable *e) {
    for (int l = 0; e->events && l < e->n_launches; l++) {
        if (e->events[l]) weft__cl.clReleaseEvent(e->events[l]);
        e->events[l] = NULL;
    }
}

static void empty(weft_gpu_device *device, weft_gpu_executable *e) {
    (void)device;
    release_events(e);
}

static weft_status opencl_run_build(weft_gpu_device *device, const weft_commands *commands, bool fused,
                                    weft_gpu_executable **e) {
    weft__signals signals;
    weft__keep_signals(&signals);
    const weft_status status = weft__gpu_build_form(device, commands, fused, e);
    weft__restore_signals(&signals);
    return status;
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

static cl_int enqueue(weft__opencl *d, weft_gpu_executable *e, int l) {
    const weft_gpu_launch *launch = &e->launches[l];
    const bool timed = d->gpu.timing, marks = !timed && ++d->since_mark >= RUN_AHEAD;
    cl_event event = NULL;
    cl_int error = weft__gpu_gone(&d->gpu);
    if (!error)
        error = weft__cl.clEnqueueNDRangeKernel(d->queue, launch->kernel, 3, NULL, launch->all_items,
                                                launch->items, 0, NULL, timed || marks ? &event : NULL);
    if (timed) e->events[l] = event;
    return error || !marks ? error : keep_step(d, event);
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
    return !e->warm && d->gpu.base.ctx->caller.interrupted && !changes_variables(&e->gpu);
}

static weft_status opencl_run_run(weft_gpu_device *device, weft_gpu_executable *executable) {
    weft__opencl *d = weft__opencl_of_gpu(device);
    opencl_executable *e = (opencl_executable *)executable;
    const bool cold = is_cold(d, e);
    release_events(executable);
    for (int l = 0; l < executable->n_launches; l++) {
        cl_int error = enqueue(d, executable, l);
        if (!error && cold) error = weft__cl.clFinish(d->queue);
        if (error) return weft__gpu_fail(device, error, "running a program");
        if (cold) WEFT_TRY(weft__go_on(device->base.ctx));
    }
    e->warm = true;
    return WEFT_OK;
}

static int after_run(weft_gpu_device *device, weft_buffer *const *buffers, int count) {
    (void)buffers;
    (void)count;
    return weft__cl.clFlush(weft__opencl_of_gpu(device)->queue);
}

static int read_times(weft_gpu_device *device, weft_gpu_executable *e) {
    (void)device;
    for (int l = 0; l < e->n_launches; l++) {
        cl_ulong from = 0, to = 0;
        if (!e->events[l]) return OPENCL_INVALID_VALUE;
        weft__cl.clGetEventProfilingInfo(e->events[l], OPENCL_PROFILING_COMMAND_START, sizeof from, &from,
                                         NULL);
        weft__cl.clGetEventProfilingInfo(e->events[l], OPENCL_PROFILING_COMMAND_END, sizeof to, &to, NULL);
        e->clocked[l].start_ns = (double)from;
        e->clocked[l].end_ns = (double)to;
    }
    return 0;
}

const weft_gpu_program_functions weft__opencl_program = {
    .executable_bytes = sizeof(opencl_executable),
    .build = opencl_run_build,
    .kernel_new = kernel_new,
    .kernel_free = kernel_free,
    .set_argument = set_argument,
    .empty = empty,
    .after_run = after_run,
    .run = opencl_run_run,
    .read_times = read_times,
};
