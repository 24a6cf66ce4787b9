/* Programs of the CUDA device. When a program runs for the third time it becomes a graph, which is one
 * submission for each step. Launches that are independent in the plan are independent in the graph. Exchanges
 * with other processes divide it into several graphs. A run waits for nothing, unless it exchanges.
 * Must not know: kernel forms, heavy operations. Read next: gpu/backend/executable.c, graph.c. */
#include "device/gpu/driver/run.h"

enum { PLAIN_RUNS = 2, ALL_SHARED = 100 /* % */ };

/* ---- building ---- */

static int kernel_new(weft_gpu_device *device, weft_gpu_launch *launch, void *module, const char *name) {
    const weft__cuda_functions *cu = weft__cuda_of_gpu(device)->cu;
    CUfunction function = NULL;
    CUresult error = cu->cuModuleGetFunction(&function, module, name);
    if (!error && launch->shared_bytes > 0)
        error = cu->cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                       launch->shared_bytes);
    if (!error && launch->shared_bytes > 0) /* so that a multiprocessor holds several blocks, if they fit */
        error =
            cu->cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, ALL_SHARED);
    launch->kernel = function;
    return (int)error;
}

static void empty(weft_gpu_device *device, weft_gpu_executable *e) {
    weft__cuda_graphs_free(weft__cuda_of_gpu(device), (cuda_executable *)e);
    for (int l = 0; e->events && l <= e->n_launches; l++)
        if (e->events[l]) weft__cuda_of_gpu(device)->cu->cuEventDestroy_v2(e->events[l]);
}

/* ---- running ---- */

CUresult weft__cuda_call(weft__cuda *d, const weft_gpu_launch *l, CUstream stream) {
    return l->call->run(d, l->call, l->arguments, stream);
}

static CUresult cuda_run_launch(weft__cuda *d, const weft_gpu_launch *l) {
    CUstream stream = l->beside ? d->beside : d->stream;
    const CUresult error = (CUresult)weft__gpu_gone(&d->gpu);
    if (error) return error;
    if (l->call) return weft__cuda_call(d, l, stream);
    return d->cu->cuLaunchKernel(l->kernel, (unsigned)l->groups[0], (unsigned)l->groups[1],
                                 (unsigned)l->groups[2], (unsigned)l->items[0], (unsigned)l->items[1],
                                 (unsigned)l->items[2], (unsigned)l->shared_bytes, stream, l->arguments,
                                 NULL);
}

static CUresult mark(weft__cuda *d, void **event) {
    CUevent time = *event;
    const CUresult error = time ? 0 : d->cu->cuEventCreate(&time, CU_EVENT_DEFAULT);
    *event = time;
    return error ? error : d->cu->cuEventRecord(time, d->stream);
}

/* Submits all launches in order. In a timed run it also records the time before each launch and after the
 * last one. */
static CUresult launch_all(weft__cuda *d, weft_gpu_executable *e) {
    CUresult error = d->gpu.timing ? mark(d, &e->events[0]) : 0;
    for (int l = 0; l < e->n_launches && !error; l++) {
        error = cuda_run_launch(d, &e->launches[l]);
        if (d->gpu.timing && !error) error = mark(d, &e->events[l + 1]);
    }
    return error;
}

static CUresult launch_graph(weft__cuda *d, cuda_executable *e, cuda_stretch *stretch) {
    cuda_graph *graph;
    if (stretch->count == 1) return cuda_run_launch(d, &e->gpu.launches[stretch->first]);
    CUresult error = weft__cuda_graph(d, e, stretch, &graph);
    if (!error) error = (CUresult)weft__gpu_gone(&d->gpu);
    return error ? error : d->cu->cuGraphLaunch(graph->executable, d->stream);
}

/* Submits the stretches as graphs, and the launches between them. */
static CUresult launch_graphs(weft__cuda *d, cuda_executable *e) {
    CUresult error = e->stretches ? 0 : weft__cuda_find_stretches(d, e);
    for (int l = 0, s = 0; l < e->gpu.n_launches && !error;) {
        const bool graph = s < e->n_stretches && e->stretches[s].first == l;
        error = graph ? launch_graph(d, e, &e->stretches[s]) : cuda_run_launch(d, &e->gpu.launches[l]);
        l += graph ? e->stretches[s++].count : 1;
    }
    return error;
}

static weft_status cuda_run_run(weft_gpu_device *device, weft_gpu_executable *executable) {
    cuda_executable *e = (cuda_executable *)executable;
    const int plain = weft__driver_hook.plain ? weft__driver_hook.plain - 1 : PLAIN_RUNS;
    const bool alone = device->timing || executable->repeats || e->done < plain || executable->n_launches < 2;
    weft__cuda *d = weft__cuda_of_gpu(device);
    d->reported = WEFT_OK;
    const CUresult error = alone ? launch_all(d, executable) : launch_graphs(d, e);
    e->done++;
    if (error && d->reported != WEFT_OK) return d->reported;
    return error ? weft__cuda_fail(weft__cuda_of_gpu(device), error, "running a program") : WEFT_OK;
}

/* A run waits for large uploads to its buffers. */
static int before_run(weft_gpu_device *device, weft_buffer *const *buffers, int count) {
    CUresult error = 0;
    for (int s = 0; s < count && !error; s++)
        if (buffers[s])
            error = weft__cuda_before_use(weft__cuda_of_gpu(device), (weft__cuda_buffer *)buffers[s]);
    return (int)error;
}

/* Later uploads wait for the run. */
static int after_run(weft_gpu_device *device, weft_buffer *const *buffers, int count) {
    CUresult error = 0;
    for (int s = 0; s < count && !error; s++)
        if (buffers[s])
            error = weft__cuda_after_use(weft__cuda_of_gpu(device), (weft__cuda_buffer *)buffers[s]);
    return (int)error;
}

static int read_times(weft_gpu_device *device, weft_gpu_executable *e) {
    CUresult error = 0;
    double before = 0;
    for (int l = 0; l < e->n_launches && !error; l++) {
        float now = 0;
        if (!e->events[l + 1]) return CUDA_ERROR_NOT_READY;
        error = weft__cuda_of_gpu(device)->cu->cuEventElapsedTime(&now, e->events[0], e->events[l + 1]);
        e->clocked[l].start_ns = before;
        e->clocked[l].end_ns = before = 1e6 * (double)now;
    }
    return (int)error;
}

const weft_gpu_program_functions weft__cuda_program = {
    .executable_bytes = sizeof(cuda_executable),
    .kernel_new = kernel_new,
    .empty = empty,
    .before_run = before_run,
    .after_run = after_run,
    .run = cuda_run_run,
    .read_times = read_times,
};
