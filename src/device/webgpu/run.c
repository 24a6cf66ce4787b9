/* Programs of the WebGPU device. A run encodes all launches into one command buffer and submits it once.
 * Bindings and numbers of launches are made once and kept.
 * Must not know: kernel forms, heavy operations. Read next: gpu/backend/executable.c. */
#include <string.h>

#include "device/signals.h"
#include "device/webgpu/webgpu.h"

enum {
    RUN_AHEAD = 4096, /* launches that the host submits before it waits */
    CLOCKS = 4096     /* times in a query set, two for each launch: the most that WebGPU allows */
};

/* The kernel of a launch. */
typedef struct webgpu_kernel {
    weft__webgpu_module *module;
    int number; /* in the module */
    const weft_wgsl_kernel *facts;
    webgpu_compute_pipeline pipeline;
    webgpu_bind_group group; /* its buffers; NULL before the first run */
    bool bound;              /* the group has the buffers of the arguments */
} webgpu_kernel;

typedef struct webgpu_executable {
    weft_gpu_executable gpu;
    uint32_t stride;       /* bytes of the numbers of a launch */
    webgpu_buffer numbers; /* of all launches */
    webgpu_bind_group numbers_group;
    webgpu_query_set *clocks; /* for timed runs; NULL before the first one */
    webgpu_buffer times;
} webgpu_executable;

/* ---- building ---- */

static int webgpu_kernel_new(weft_gpu_device *device, weft_gpu_launch *launch, void *module,
                             const char *name) {
    webgpu_kernel *kernel = weft__zalloc(device->base.ctx, sizeof *kernel);
    if (!kernel) return WEBGPU_NO_MEMORY;
    kernel->module = module;
    kernel->number = weft__webgpu_kernel_number(module, name);
    kernel->facts = weft__wgsl_kernel(kernel->module->source, kernel->number);
    launch->kernel = kernel;
    return 0;
}

static void webgpu_kernel_free(weft_gpu_device *device, void *kernel_object) {
    webgpu_kernel *kernel = kernel_object;
    if (kernel->group) weft__wgpu.wgpuBindGroupRelease(kernel->group);
    weft__free(device->base.ctx, kernel);
}

static int webgpu_set_argument(weft_gpu_device *device, const weft_gpu_launch *launch, int index) {
    webgpu_kernel *kernel = launch->kernel;
    (void)device;
    (void)index;
    kernel->bound = false; /* numbers never change after the program is built */
    return 0;
}

/* Writes what a shader reads: the number of work-groups, the places of pointers, and the struct of numbers
 * (wgsl/wgsl.h). All pointers begin at the start of their buffer, since offsets are numbers. */
static void write_numbers(const weft_gpu_launch *launch, uint32_t *words) {
    const weft_wgsl_kernel *k = ((const webgpu_kernel *)launch->kernel)->facts;
    for (int i = 0; i < 3; i++) words[i] = (uint32_t)launch->groups[i];
    if (k->number_bytes)
        memcpy(words + WEFT_WGSL_NUMBERS_AT, launch->arguments[k->n_pointers], (size_t)k->number_bytes);
}

static int make_numbers(weft__webgpu *d, webgpu_executable *e) {
    const weft_gpu_executable *g = &e->gpu;
    const uint32_t alignment = d->found->limits.minUniformBufferOffsetAlignment;
    int most = 0;
    for (int l = 0; l < g->n_launches; l++) {
        const weft_wgsl_kernel *k = ((webgpu_kernel *)g->launches[l].kernel)->facts;
        if (k->number_bytes > most) most = k->number_bytes;
    }
    e->stride = (uint32_t)(WEFT_WGSL_NUMBERS_AT * 4 + most);
    e->stride = (e->stride + alignment - 1) / alignment * alignment;
    const size_t bytes = (size_t)e->stride * (size_t)g->n_launches;
    char *values = weft__zalloc(d->gpu.base.ctx, bytes);
    if (!values) return WEBGPU_NO_MEMORY;
    for (int l = 0; l < g->n_launches; l++)
        write_numbers(&g->launches[l], (uint32_t *)(void *)(values + (size_t)l * e->stride));
    e->numbers = weft__webgpu_buffer_new(d, WEBGPU_BufferUsage_Uniform | WEBGPU_BufferUsage_CopyDst, bytes);
    weft__wgpu.wgpuQueueWriteBuffer(d->queue, e->numbers, 0, values, bytes);
    weft__free(d->gpu.base.ctx, values);
    const webgpu_bind_group_entry entry = {.buffer = e->numbers, .size = e->stride};
    e->numbers_group = weft__wgpu.wgpuDeviceCreateBindGroup(
        d->device, &(webgpu_bind_group_descriptor){.layout = d->numbers, .entryCount = 1, .entries = &entry});
    return weft__webgpu_error(d);
}

static weft_status webgpu_build(weft_gpu_device *device, const weft_commands *commands, bool fused,
                                weft_gpu_executable **out) {
    weft__signals signals;
    weft__keep_signals(&signals); /* drivers start threads that compile */
    weft_status status = weft__gpu_build_form(device, commands, fused, out);
    weft__restore_signals(&signals);
    if (status != WEFT_OK || !(*out)->n_launches) return status;
    const int error = make_numbers(weft__webgpu_of_gpu(device), (webgpu_executable *)*out);
    if (!error) return WEFT_OK;
    status = weft__gpu_fail(device, error, "the numbers of a program");
    weft__gpu_executable_free(&device->base, (weft_executable *)*out);
    *out = NULL;
    return status;
}

static void webgpu_empty(weft_gpu_device *device, weft_gpu_executable *executable) {
    webgpu_executable *e = (webgpu_executable *)executable;
    const int sets = (2 * executable->n_launches + CLOCKS - 1) / CLOCKS;
    if (e->numbers_group) weft__wgpu.wgpuBindGroupRelease(e->numbers_group);
    weft__webgpu_buffer_free(e->numbers);
    weft__webgpu_buffer_free(e->times);
    for (int i = 0; e->clocks && i < sets; i++)
        if (e->clocks[i]) weft__wgpu.wgpuQuerySetRelease(e->clocks[i]);
    weft__free(device->base.ctx, e->clocks);
}

/* ---- binding ---- */

/* Gives the kernel of a launch the buffers of its arguments. Pointers into one buffer share a binding, since
 * a buffer that is written must not be bound twice. */
static int bind_buffers(weft__webgpu *d, const weft_gpu_launch *launch) {
    webgpu_kernel *kernel = launch->kernel;
    webgpu_buffer buffers[WEFT_WGSL_POINTERS];
    int binding[WEFT_WGSL_POINTERS], n = 0, error;
    for (int i = 0; i < kernel->facts->n_pointers; i++) {
        webgpu_buffer buffer;
        memcpy(&buffer, launch->arguments[i], sizeof buffer);
        int k = 0;
        while (k < n && buffers[k] != buffer) k++;
        if (k == n) buffers[n++] = buffer;
        binding[i] = k;
    }
    const weft__webgpu_pipeline *p =
        weft__webgpu_pipeline_for(d, kernel->module, kernel->number, binding, &error);
    if (!p) return error;
    if (kernel->group) weft__wgpu.wgpuBindGroupRelease(kernel->group);
    kernel->pipeline = p->pipeline;
    kernel->group = weft__webgpu_bind(d, p->buffers, buffers, n);
    error = weft__webgpu_error(d);
    kernel->bound = !error;
    return error;
}

static int bind_all(weft__webgpu *d, const weft_gpu_executable *e) {
    int error = 0;
    for (int l = 0; l < e->n_launches && !error; l++)
        if (!((const webgpu_kernel *)e->launches[l].kernel)->bound) error = bind_buffers(d, &e->launches[l]);
    return error;
}

/* ---- running ---- */

/* Divides a number of work-groups into at most `most` in each dimension, with few too many. */
static void fold_groups(uint64_t groups, uint64_t most, uint32_t to[3]) {
    const uint64_t rows = (groups + most - 1) / most, planes = (rows + most - 1) / most;
    const uint64_t y = (rows + planes - 1) / planes;
    to[2] = (uint32_t)planes;
    to[1] = (uint32_t)y;
    to[0] = (uint32_t)((groups + planes * y - 1) / (planes * y));
}

static void encode_launch(const weft__webgpu *d, const webgpu_executable *e, int l,
                          webgpu_compute_pass_encoder pass) {
    const weft_gpu_launch *launch = &e->gpu.launches[l];
    const webgpu_kernel *kernel = launch->kernel;
    const uint32_t offset = (uint32_t)l * e->stride;
    uint32_t grid[3];
    fold_groups(launch->groups[0] * launch->groups[1] * launch->groups[2],
                d->found->limits.maxComputeWorkgroupsPerDimension, grid);
    weft__wgpu.wgpuComputePassEncoderSetPipeline(pass, kernel->pipeline);
    weft__wgpu.wgpuComputePassEncoderSetBindGroup(pass, 0, kernel->group, 0, NULL);
    weft__wgpu.wgpuComputePassEncoderSetBindGroup(pass, 1, e->numbers_group, 1, &offset);
    weft__wgpu.wgpuComputePassEncoderDispatchWorkgroups(pass, grid[0], grid[1], grid[2]);
}

/* Begins a pass. A timed one has one launch, and writes its times. */
static webgpu_compute_pass_encoder begin_pass(webgpu_command_encoder encoder, const webgpu_executable *e,
                                              int l, bool timed) {
    if (!timed) return weft__wgpu.wgpuCommandEncoderBeginComputePass(encoder, NULL);
    const uint32_t first = 2 * (uint32_t)l % CLOCKS;
    const webgpu_pass_timestamp_writes writes = {.querySet = e->clocks[2 * l / CLOCKS],
                                                 .beginningOfPassWriteIndex = first,
                                                 .endOfPassWriteIndex = first + 1};
    return weft__wgpu.wgpuCommandEncoderBeginComputePass(
        encoder, &(webgpu_compute_pass_descriptor){.timestampWrites = &writes});
}

static void end_pass(webgpu_compute_pass_encoder pass) {
    weft__wgpu.wgpuComputePassEncoderEnd(pass);
    weft__wgpu.wgpuComputePassEncoderRelease(pass);
}

static void encode_all(const weft__webgpu *d, const webgpu_executable *e, webgpu_command_encoder encoder) {
    const int n = e->gpu.n_launches;
    const bool timed = d->gpu.timing;
    webgpu_compute_pass_encoder pass = NULL;
    for (int l = 0; l < n; l++) {
        if (!pass) pass = begin_pass(encoder, e, l, timed);
        encode_launch(d, e, l, pass);
        if (!timed && l + 1 < n) continue;
        end_pass(pass);
        pass = NULL;
    }
    for (int first = 0; timed && first < 2 * n; first += CLOCKS)
        weft__wgpu.wgpuCommandEncoderResolveQuerySet(
            encoder, e->clocks[first / CLOCKS], 0,
            (uint32_t)(2 * n - first < CLOCKS ? 2 * n - first : CLOCKS), e->times, (uint64_t)first * 8);
}

static int make_clocks(weft__webgpu *d, webgpu_executable *e) {
    const int n = 2 * e->gpu.n_launches, sets = (n + CLOCKS - 1) / CLOCKS;
    if (e->clocks) return 0;
    e->clocks = weft__array(d->gpu.base.ctx, (size_t)sets + 1, sizeof *e->clocks);
    if (!e->clocks) return WEBGPU_NO_MEMORY;
    for (int i = 0; i < sets; i++)
        e->clocks[i] = weft__wgpu.wgpuDeviceCreateQuerySet(
            d->device, &(webgpu_query_set_descriptor){
                           .type = WEBGPU_QueryType_Timestamp,
                           .count = (uint32_t)(n - i * CLOCKS < CLOCKS ? n - i * CLOCKS : CLOCKS)});
    e->times = weft__webgpu_buffer_new(d, WEBGPU_BufferUsage_QueryResolve | WEBGPU_BufferUsage_CopySrc,
                                       (uint64_t)n * 8);
    return weft__webgpu_error(d);
}

static weft_status webgpu_run(weft_gpu_device *device, weft_gpu_executable *executable) {
    weft__webgpu *d = weft__webgpu_of_gpu(device);
    webgpu_executable *e = (webgpu_executable *)executable;
    if (!executable->n_launches) return WEFT_OK;
    int error = weft__gpu_gone(device);
    if (!error) error = bind_all(d, executable);
    if (!error && device->timing) error = make_clocks(d, e);
    if (!error) {
        webgpu_command_encoder encoder = weft__wgpu.wgpuDeviceCreateCommandEncoder(d->device, NULL);
        encode_all(d, e, encoder);
        error = weft__webgpu_submit(d, encoder);
        d->ahead += executable->n_launches;
    }
    if (!error && d->ahead > RUN_AHEAD) error = weft__webgpu_wait(d);
    return error ? weft__gpu_fail(device, error, "a run") : WEFT_OK;
}

static int webgpu_read_times(weft_gpu_device *device, weft_gpu_executable *executable) {
    weft__webgpu *d = weft__webgpu_of_gpu(device);
    const webgpu_executable *e = (const webgpu_executable *)executable;
    const size_t n = (size_t)executable->n_launches;
    const double period =
        weft__wgpu.wgpuQueueGetTimestampPeriod ? (double)weft__wgpu.wgpuQueueGetTimestampPeriod(d->queue) : 1;
    if (!e->times) return n ? WEBGPU_REFUSED : 0;
    uint64_t *times = weft__array(device->base.ctx, 2 * n, sizeof *times);
    if (!times) return WEBGPU_NO_MEMORY;
    const int error = weft__webgpu_read(d, e->times, times, 2 * n * sizeof *times);
    for (size_t l = 0; l < n && !error; l++) {
        executable->clocked[l].start_ns = (double)times[2 * l] * period;
        executable->clocked[l].end_ns = (double)times[2 * l + 1] * period;
    }
    weft__free(device->base.ctx, times);
    return error;
}

const weft_gpu_program_functions weft__webgpu_program = {
    .executable_bytes = sizeof(webgpu_executable),
    .never_fuses = true,
    .build = webgpu_build,
    .kernel_new = webgpu_kernel_new,
    .kernel_free = webgpu_kernel_free,
    .set_argument = webgpu_set_argument,
    .empty = webgpu_empty,
    .run = webgpu_run,
    .read_times = webgpu_read_times,
};
