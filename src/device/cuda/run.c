/* Programs of the CUDA device: the launches of all commands, with their arguments laid out once. When a
 * program runs for the third time it becomes a graph, which is one submission for each step. Launches that
 * are independent in the plan are independent in the graph. A run waits for nothing.
 * Must not know: kernel forms, heavy operations. Read next: gpu/backend/executable.c, driver/graph.c. */
#include "device/cuda/run.h"

#include <string.h>

enum { PLAIN_RUNS = 2 };

/* ---- arguments ---- */

/* Memory in which arguments are laid out; NULL to count only. */
typedef struct layout {
    cuda_executable *e;
    char *values;
    void **arguments;
    size_t bytes;
    int n_arguments;
} layout;

static weft__cuda *of(weft_gpu_device *device) { return weft__cuda_of(&device->base); }

static cuda_executable *executable_of(weft_gpu_executable *e) { return (cuda_executable *)e; }

static void *put(layout *to, const void *value, size_t bytes) {
    char *at = to->values ? to->values + to->bytes : NULL;
    if (at) memcpy(at, value, bytes);
    if (to->arguments) to->arguments[to->n_arguments] = at;
    to->n_arguments++;
    to->bytes += (bytes + 15) & ~(size_t)15;
    return at;
}

static void put_argument(layout *to, const weft__cuda *d, const weft_argument *a) {
    cuda_executable *e = to->e;
    switch ((weft_argument_kind)a->kind) {
    case WEFT_ARGUMENT_BUFFER: put(to, &(CUdeviceptr){0}, sizeof(CUdeviceptr)); break; /* bound later */
    case WEFT_ARGUMENT_FAULTS: put(to, &d->gpu.faults->address, sizeof(CUdeviceptr)); break;
    case WEFT_ARGUMENT_NUMBERS: put(to, a->numbers, (size_t)a->i); break;
    case WEFT_ARGUMENT_PARAMETERS:
        put(to, &e->gpu.parameters->address, sizeof(CUdeviceptr));
        put(to, &a->i, 8);
        break;
    case WEFT_ARGUMENT_TIMES: e->times = put(to, &(int32_t){1}, 4); break;
    default: break; /* a program has no other kinds */
    }
}

static void lay_out(layout *to, const weft__cuda *d, const weft_gpu_program *p) {
    for (int l = 0; l < p->launches.count; l++) {
        const weft_launch *launch = &p->launches.list[l];
        const int first = to->n_arguments;
        for (int a = 0; a < launch->n_arguments; a++) put_argument(to, d, &launch->arguments[a]);
        if (to->values) to->e->launches[l].arguments = to->arguments + first;
    }
}

static weft_status make_arguments(weft__cuda *d, cuda_executable *e, const weft_gpu_program *p) {
    layout to = {.e = e};
    lay_out(&to, d, p);
    e->values = weft__alloc_aligned(d->gpu.base.ctx, to.bytes + 16);
    e->arguments = weft__array(d->gpu.base.ctx, (size_t)to.n_arguments + 1, sizeof *e->arguments);
    if (!e->values || !e->arguments) return weft__fail_oom(d->gpu.base.ctx, to.bytes, "cuda: a program");
    to = (layout){.e = e, .values = e->values, .arguments = e->arguments};
    lay_out(&to, d, p);
    return WEFT_OK;
}

/* ---- building ---- */

/* Returns whether a launch waits for all launches before it. It does if a command after the previous launch
 * does. */
static bool waits(const weft_commands *commands, const int *of, int l) {
    for (int c = l ? of[l - 1] + 1 : 0; c <= of[l]; c++)
        if (commands->list[c].after) return true;
    return false;
}

static weft_status find_function(weft__cuda *d, cuda_launch *to, const weft_launch *from,
                                 const weft_gpu_source *source) {
    char name[WEFT_GPU_NAME];
    weft__gpu_kernel_name(source, from->name, name);
    CUresult error =
        weft__cu.cuModuleGetFunction(&to->function, d->gpu.compiler.modules[source->module].module, name);
    if (!error && from->shared_bytes > 0)
        error = weft__cu.cuFuncSetAttribute(to->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                            from->shared_bytes);
    if (error) return weft__cuda_fail(d, error, from->name);
    weft__gpu_hook.kernels++;
    if (from->groups[0] > INT32_MAX || from->groups[1] > WEFT_CUDA_GROUPS ||
        from->groups[2] > WEFT_CUDA_GROUPS)
        return weft__fail(d->gpu.base.ctx, WEFT_ERR_DEVICE, "%s: %s needs more blocks than a launch can have",
                          d->gpu.base.name, from->name);
    return WEFT_OK;
}

static weft_status make_launch(weft__cuda *d, cuda_executable *e, const weft_gpu_program *p, int l,
                               const weft_gpu_source *source) {
    const weft_launch *from = &p->launches.list[l];
    cuda_launch *to = &e->launches[l];
    to->call = from->call;
    if (!from->call) WEFT_TRY(find_function(d, to, from, source));
    for (int i = 0; i < 3; i++) {
        to->groups[i] = (unsigned)from->groups[i];
        to->items[i] = (unsigned)from->items[i];
    }
    to->shared_bytes = (unsigned)from->shared_bytes;
    to->follows = l > 0 && p->commands[l - 1] == p->commands[l];
    to->after = !to->follows && (e->gpu.fused || waits(e->gpu.commands, p->commands, l));
    for (int a = 0; a < from->n_arguments; a++)
        to->scratch = to->scratch || (from->arguments[a].kind == WEFT_ARGUMENT_BUFFER &&
                                      from->arguments[a].index == p->scratch_slot);
    return WEFT_OK;
}

static weft_status fill(weft_gpu_device *device, weft_gpu_executable *executable, const weft_gpu_program *p,
                        const weft_gpu_source *const *sources) {
    weft__cuda *d = of(device);
    cuda_executable *e = executable_of(executable);
    const size_t count = (size_t)p->launches.count;
    e->launches = weft__array(device->base.ctx, count + 1, sizeof *e->launches);
    e->events = weft__array(device->base.ctx, count + 1, sizeof *e->events);
    if (!e->launches || !e->events)
        return weft__fail_oom(device->base.ctx, (count + 1) * sizeof *e->launches, "cuda: a program");
    WEFT_TRY(make_arguments(d, e, p));
    for (int l = 0; l < p->launches.count; l++) WEFT_TRY(make_launch(d, e, p, l, sources[l]));
    return WEFT_OK;
}

static void empty(weft_gpu_device *device, weft_gpu_executable *executable) {
    cuda_executable *e = executable_of(executable);
    weft__cuda_graphs_free(of(device), e);
    for (int l = 0; e->events && l <= e->gpu.n_launches; l++)
        if (e->events[l]) weft__cu.cuEventDestroy_v2(e->events[l]);
    weft__free_aligned(device->base.ctx, e->values);
    weft__free(device->base.ctx, e->launches);
    weft__free(device->base.ctx, e->arguments);
    weft__free(device->base.ctx, e->events);
}

static weft_status bind(weft_gpu_device *device, weft_gpu_executable *e, int place,
                        const weft_gpu_buffer *buffer) {
    const weft_gpu_place *p = &e->places[place];
    const CUdeviceptr memory = buffer->address + (CUdeviceptr)p->offset;
    (void)device;
    memcpy(executable_of(e)->launches[p->launch].arguments[p->index], &memory, sizeof memory);
    return WEFT_OK;
}

/* ---- running ---- */

CUresult weft__cuda_call(weft__cuda *d, const cuda_launch *l, CUstream stream) {
    return l->call->run(d, l->call, l->arguments, stream);
}

static CUresult launch(weft__cuda *d, const cuda_launch *l) {
    const CUresult error = (CUresult)weft__gpu_gone(&d->gpu);
    if (error) return error;
    if (l->call) return weft__cuda_call(d, l, d->stream);
    return weft__cu.cuLaunchKernel(l->function, l->groups[0], l->groups[1], l->groups[2], l->items[0],
                                   l->items[1], l->items[2], l->shared_bytes, d->stream, l->arguments, NULL);
}

static CUresult mark(weft__cuda *d, CUevent *event) {
    CUresult error = *event ? 0 : weft__cu.cuEventCreate(event, CU_EVENT_DEFAULT);
    return error ? error : weft__cu.cuEventRecord(*event, d->stream);
}

/* Submits all launches in order. In a timed run it also records the time before each launch and after the
 * last one. */
static CUresult launch_all(weft__cuda *d, cuda_executable *e) {
    CUresult error = d->gpu.timing ? mark(d, &e->events[0]) : 0;
    for (int l = 0; l < e->gpu.n_launches && !error; l++) {
        error = launch(d, &e->launches[l]);
        if (d->gpu.timing && !error) error = mark(d, &e->events[l + 1]);
    }
    return error;
}

static CUresult launch_graph(weft__cuda *d, cuda_executable *e) {
    cuda_graph *graph;
    CUresult error = weft__cuda_graph(d, e, &graph);
    if (!error) error = (CUresult)weft__gpu_gone(&d->gpu);
    return error ? error : weft__cu.cuGraphLaunch(graph->executable, d->stream);
}

static CUresult submit(weft__cuda *d, cuda_executable *e, int times) {
    const int plain = weft__cuda_hook.plain ? weft__cuda_hook.plain - 1 : PLAIN_RUNS;
    if (e->gpu.repeats) {
        memcpy(e->times, &(int32_t){times}, sizeof(int32_t));
        return launch(d, &e->launches[0]);
    }
    const bool alone = d->gpu.timing || e->done < plain || e->gpu.n_launches == 0;
    const CUresult error = alone ? launch_all(d, e) : launch_graph(d, e);
    e->done++;
    return error;
}

static weft_status run(weft_gpu_device *device, weft_gpu_executable *e, int times) {
    const CUresult error = submit(of(device), executable_of(e), times);
    return error ? weft__cuda_fail(of(device), error, "a run") : WEFT_OK;
}

/* A run waits for large uploads to its buffers. */
static int before_run(weft_gpu_device *device, weft_buffer *const *buffers, int count) {
    CUresult error = 0;
    for (int s = 0; s < count && !error; s++)
        if (buffers[s]) error = weft__cuda_before_use(of(device), (weft__cuda_buffer *)buffers[s]);
    return (int)error;
}

/* Later uploads wait for the run. */
static int after_run(weft_gpu_device *device, weft_buffer *const *buffers, int count) {
    CUresult error = 0;
    for (int s = 0; s < count && !error; s++)
        if (buffers[s]) error = weft__cuda_after_use(of(device), (weft__cuda_buffer *)buffers[s]);
    return (int)error;
}

static int read_times(weft_gpu_device *device, weft_gpu_executable *executable) {
    const cuda_executable *e = executable_of(executable);
    CUresult error = 0;
    double before = 0;
    (void)device;
    for (int l = 0; l < executable->n_launches && !error; l++) {
        float now = 0;
        if (!e->events[l + 1]) return CUDA_ERROR_NOT_READY;
        error = weft__cu.cuEventElapsedTime(&now, e->events[0], e->events[l + 1]);
        executable->clocked[l].start_ns = before;
        executable->clocked[l].end_ns = before = 1e6 * (double)now;
    }
    return (int)error;
}

const weft_gpu_program_functions weft__cuda_program = {
    .executable_bytes = sizeof(cuda_executable),
    .fill = fill,
    .empty = empty,
    .bind = bind,
    .before_run = before_run,
    .after_run = after_run,
    .run = run,
    .read_times = read_times,
};
