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
    case WEFT_ARGUMENT_FAULTS: put(to, &d->faults, sizeof d->faults); break;
    case WEFT_ARGUMENT_NUMBERS: put(to, a->numbers, (size_t)a->i); break;
    case WEFT_ARGUMENT_PARAMETERS:
        put(to, &e->parameters, sizeof e->parameters);
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

static weft_status scratch(weft_gpu_device *device, size_t bytes) {
    weft__cuda *d = weft__cuda_of(&device->base);
    CUdeviceptr memory;
    WEFT_TRY(weft__cuda_memory(d, bytes + 2 * d->gpu.guard, "scratch memory", &memory));
    if (d->scratch) weft__cu.cuMemFree_v2(d->scratch); /* which waits for the work */
    d->scratch = memory;
    return WEFT_OK;
}

/* Uploads the parameter buffer of fused launches. */
static weft_status make_parameters(weft__cuda *d, cuda_executable *e, const weft_gpu_program *p) {
    const size_t bytes = p->n_parameters * sizeof *p->parameters;
    if (!bytes) return WEFT_OK;
    WEFT_TRY(weft__cuda_memory(d, bytes, "the parameters of a program", &e->parameters));
    const CUresult error = weft__cuda_put(d, e->parameters, p->parameters, bytes);
    return error ? weft__cuda_fail(d, error, "the parameters of a program") : WEFT_OK;
}

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
                          d->found->spec, from->name);
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
    to->command = p->commands[l];
    to->follows = l > 0 && p->commands[l - 1] == to->command;
    to->after = !to->follows && (e->gpu.fused || waits(e->gpu.commands, p->commands, l));
    for (int a = 0; a < from->n_arguments; a++)
        to->scratch = to->scratch || (from->arguments[a].kind == WEFT_ARGUMENT_BUFFER &&
                                      from->arguments[a].index == p->scratch_slot);
    return WEFT_OK;
}

static weft_status fill(weft_gpu_device *device, weft_gpu_executable *executable, const weft_gpu_program *p,
                        const weft_gpu_source *const *sources) {
    weft__cuda *d = weft__cuda_of(&device->base);
    cuda_executable *e = (cuda_executable *)executable;
    const size_t count = (size_t)p->launches.count;
    e->launches = weft__array(device->base.ctx, count + 1, sizeof *e->launches);
    e->events = weft__array(device->base.ctx, count + 1, sizeof *e->events);
    if (!e->launches || !e->events)
        return weft__fail_oom(device->base.ctx, (count + 1) * sizeof *e->launches, "cuda: a program");
    WEFT_TRY(make_parameters(d, e, p));
    WEFT_TRY(make_arguments(d, e, p));
    for (int l = 0; l < p->launches.count; l++) WEFT_TRY(make_launch(d, e, p, l, sources[l]));
    return WEFT_OK;
}

static void empty(weft_gpu_device *device, weft_gpu_executable *executable) {
    weft__cuda *d = weft__cuda_of(&device->base);
    cuda_executable *e = (cuda_executable *)executable;
    if (weft__cuda_enter(d) == 0) {
        weft__cuda_graphs_free(d, e);
        for (int l = 0; e->events && l <= e->gpu.n_launches; l++)
            if (e->events[l]) weft__cu.cuEventDestroy_v2(e->events[l]);
        if (e->parameters) weft__cu.cuMemFree_v2(e->parameters);
        weft__cuda_leave(d);
    }
    weft__free_aligned(device->base.ctx, e->values);
    weft__free(device->base.ctx, e->launches);
    weft__free(device->base.ctx, e->arguments);
    weft__free(device->base.ctx, e->events);
}

/* Returns a buffer's address. Two live buffers never have the same address. If an address is reused,
 * arguments with it are valid again. */
static uint64_t identity(weft_gpu_device *device, const weft_buffer *buffer) {
    return buffer ? ((const weft__cuda_buffer *)buffer)->memory : weft__cuda_of(&device->base)->scratch;
}

static weft_status bind(weft_gpu_device *device, weft_gpu_executable *executable, int place,
                        const weft_buffer *buffer) {
    const weft_gpu_place *p = &executable->places[place];
    const CUdeviceptr memory = identity(device, buffer) + (CUdeviceptr)p->offset;
    memcpy(((cuda_executable *)executable)->launches[p->launch].arguments[p->index], &memory, sizeof memory);
    return WEFT_OK;
}

/* Asks the libraries in turn. Each handles its own kinds of operation. */
static weft_status offer(weft_gpu_device *device, weft_launches *launches, const weft_command *command) {
    WEFT_TRY(weft__blas_offer((weft__cuda *)device, launches, command));
    return weft__dnn_offer((weft__cuda *)device, launches, command);
}

const weft_gpu_backend weft__cuda_backend = {
    .executable_bytes = sizeof(cuda_executable),
    .scratch = scratch,
    .fill = fill,
    .empty = empty,
    .identity = identity,
    .bind = bind,
    .build = weft__gpu_build,
    .offer = offer,
};

weft_status weft__cuda_build(weft_device *device, const weft_commands *commands, weft_executable **out) {
    weft__cuda *d = weft__cuda_of(device);
    weft_gpu_executable *e = NULL;
    const CUresult error = weft__cuda_enter(d);
    if (error) return weft__cuda_fail(d, error, "a program");
    const weft_status status = weft__gpu_build(&d->gpu, commands, false, &e);
    weft__cuda_leave(d);
    *out = (weft_executable *)e;
    return status;
}

/* ---- running ---- */

CUresult weft__cuda_call(weft__cuda *d, const cuda_launch *l, CUstream stream) {
    return l->call->run(d, l->call, l->arguments, stream);
}

static CUresult launch(weft__cuda *d, const cuda_launch *l) {
    const CUresult error = weft__cuda_gone();
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

/* Submits the only launch for as many runs as it may do at once, and subtracts them from *times. */
static CUresult launch_repeated(weft__cuda *d, cuda_executable *e, int *times) {
    const int32_t now = weft__gpu_repeat(times);
    memcpy(e->times, &now, sizeof now);
    return launch(d, &e->launches[0]);
}

static CUresult run(weft__cuda *d, cuda_executable *e, int times) {
    const int plain = weft__cuda_hook.plain ? weft__cuda_hook.plain - 1 : PLAIN_RUNS;
    CUresult error = 0;
    while (e->gpu.repeats && times > 0 && !error) error = launch_repeated(d, e, &times);
    for (; times > 0 && !error; times--, e->done++) {
        if (d->gpu.timing || e->done < plain || e->gpu.n_launches == 0) {
            error = launch_all(d, e);
        } else {
            cuda_graph *graph;
            error = weft__cuda_graph(d, e, &graph);
            if (!error) error = weft__cuda_gone();
            if (!error) error = weft__cu.cuGraphLaunch(graph->executable, d->stream);
        }
    }
    return error;
}

/* Runs after large uploads to its buffers, and before later ones. */
static CUresult run_with(weft__cuda *d, cuda_executable *e, weft_buffer *const *buffers, int times) {
    CUresult error = 0;
    for (int s = 0; s < e->gpu.n_slots && !error; s++)
        if (buffers[s]) error = weft__cuda_before_use(d, (weft__cuda_buffer *)buffers[s]);
    if (!error) error = run(d, e, times);
    for (int s = 0; s < e->gpu.n_slots && !error; s++)
        if (buffers[s]) error = weft__cuda_after_use(d, (weft__cuda_buffer *)buffers[s]);
    return error;
}

static weft_status submit(weft__cuda *d, weft_gpu_executable *e, weft_buffer *const *buffers, int times) {
    WEFT_TRY(weft__gpu_ready(&d->gpu, &e, buffers, times));
    const CUresult error = run_with(d, (cuda_executable *)e, buffers, times);
    return error ? weft__cuda_fail(d, error, "a run") : WEFT_OK;
}

weft_status weft__cuda_run(weft_device *device, weft_executable *executable, weft_buffer *const *buffers,
                           int times) {
    weft__cuda *d = weft__cuda_of(device);
    const CUresult error = weft__cuda_enter(d);
    if (error) return weft__cuda_fail(d, error, "a run");
    const weft_status status = submit(d, (weft_gpu_executable *)executable, buffers, times);
    weft__cuda_leave(d);
    return status;
}

static CUresult read_clocks(cuda_executable *e) {
    CUresult error = 0;
    double before = 0;
    for (int l = 0; l < e->gpu.n_launches && !error; l++) {
        float now = 0;
        if (!e->events[l + 1]) return CUDA_ERROR_NOT_READY;
        error = weft__cu.cuEventElapsedTime(&now, e->events[0], e->events[l + 1]);
        e->gpu.clocked[l] = (weft_gpu_time){e->launches[l].command, before, 1e6 * (double)now};
        before = 1e6 * (double)now;
    }
    return error;
}

const weft_timing *weft__cuda_timings(weft_device *device, const weft_executable *executable) {
    weft__cuda *d = weft__cuda_of(device);
    cuda_executable *e = (cuda_executable *)(uintptr_t)executable;
    if (!d->gpu.timing || weft__cuda_enter(d) != 0) return NULL;
    const CUresult error = read_clocks(e);
    weft__cuda_leave(d);
    if (error) return NULL;
    return weft__gpu_timings(&e->gpu);
}
