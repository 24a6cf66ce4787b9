/* Modules as translated sources, and pipelines: kernels for one assignment of pointers to buffers.
 * Must not know: what kernels compute. Read next: gpu/backend/compile.c, wgsl/wgsl.h. */
#include <stdio.h>
#include <string.h>

#include "device/webgpu/webgpu.h"

/* Threads compile at the same time, so nothing here allocates from the context. */
static weft__webgpu *webgpu_compile_of(weft_gpu_compiler *compiler) {
    return weft__webgpu_of(compiler->device);
}

/* ---- pipelines ---- */

webgpu_bind_group weft__webgpu_bind(weft__webgpu *d, webgpu_bind_group_layout layout,
                                    const webgpu_buffer *buffers, int count) {
    webgpu_bind_group_entry entries[WEFT_WGSL_POINTERS];
    for (int i = 0; i < count; i++)
        entries[i] =
            (webgpu_bind_group_entry){.binding = (uint32_t)i, .buffer = buffers[i], .size = WEBGPU_REST};
    const webgpu_bind_group_descriptor wanted = {
        .layout = layout, .entryCount = (size_t)count, .entries = entries};
    return weft__wgpu.wgpuDeviceCreateBindGroup(d->device, &wanted);
}

/* Returns the layout of `count` buffers. */
static webgpu_bind_group_layout layout_of(weft__webgpu *d, const bool *written, int count) {
    webgpu_bind_group_layout_entry entries[WEFT_WGSL_POINTERS];
    for (int i = 0; i < count; i++)
        entries[i] = (webgpu_bind_group_layout_entry){
            .binding = (uint32_t)i,
            .visibility = WEBGPU_ShaderStage_Compute,
            .buffer.type =
                written[i] ? WEBGPU_BufferBindingType_Storage : WEBGPU_BufferBindingType_ReadOnlyStorage};
    return weft__wgpu.wgpuDeviceCreateBindGroupLayout(
        d->device, &(webgpu_bind_group_layout_descriptor){.entryCount = (size_t)count, .entries = entries});
}

static webgpu_bind_group_layout numbers_layout(weft__webgpu *d) {
    const webgpu_bind_group_layout_entry entry = {
        .visibility = WEBGPU_ShaderStage_Compute,
        .buffer = {.type = WEBGPU_BufferBindingType_Uniform, .hasDynamicOffset = true}};
    return weft__wgpu.wgpuDeviceCreateBindGroupLayout(
        d->device, &(webgpu_bind_group_layout_descriptor){.entryCount = 1, .entries = &entry});
}

int weft__webgpu_pipeline_make(weft__webgpu *d, const char *wgsl, const bool *written,
                               weft__webgpu_pipeline *p) {
    webgpu_shader_source_wgsl source = {.chain = {.sType = WEBGPU_SType_ShaderSourceWGSL},
                                        .code = {wgsl, WEBGPU_STRLEN}};
    const webgpu_shader_module_descriptor wanted = {.nextInChain = &source.chain};
    /* without checks of indices and loops, which cost much and never find anything */
    webgpu_shader_module module = weft__wgpu.wgpuDeviceCreateShaderModuleTrusted
                                      ? weft__wgpu.wgpuDeviceCreateShaderModuleTrusted(d->device, &wanted, 0)
                                      : weft__wgpu.wgpuDeviceCreateShaderModule(d->device, &wanted);
    int error = weft__webgpu_error(d);
    if (error) {
        if (module) weft__wgpu.wgpuShaderModuleRelease(module);
        return error;
    }
    p->buffers = layout_of(d, written, p->n_bindings);
    const webgpu_bind_group_layout layouts[] = {p->buffers, d->numbers};
    webgpu_pipeline_layout layout = weft__wgpu.wgpuDeviceCreatePipelineLayout(
        d->device,
        &(webgpu_pipeline_layout_descriptor){.bindGroupLayoutCount = 2, .bindGroupLayouts = layouts});
    error = weft__webgpu_error(d);
    if (!error) {
        p->pipeline = weft__wgpu.wgpuDeviceCreateComputePipeline(
            d->device, &(webgpu_compute_pipeline_descriptor){
                           .layout = layout, .compute = {.module = module, .entryPoint = {"main", 4}}});
        error = weft__webgpu_error(d);
    }
    if (layout) weft__wgpu.wgpuPipelineLayoutRelease(layout);
    weft__wgpu.wgpuShaderModuleRelease(module);
    return error;
}

void weft__webgpu_pipeline_empty(weft__webgpu_pipeline *p) {
    if (p->buffers) weft__wgpu.wgpuBindGroupLayoutRelease(p->buffers);
    if (p->pipeline) weft__wgpu.wgpuComputePipelineRelease(p->pipeline);
    p->buffers = NULL;
    p->pipeline = NULL;
}

/* Prints the kernel and makes its pipeline. */
static int make_pipeline(weft__webgpu *d, weft__webgpu_module *m, weft__webgpu_pipeline *p) {
    bool written[WEFT_WGSL_POINTERS] = {false};
    char *wgsl = NULL;
    const weft_wgsl_kernel *kernel = weft__wgsl_kernel(m->source, p->kernel);
    const uint32_t most = d->found->limits.maxStorageBuffersPerShaderStage;
    for (int i = 0; i < kernel->n_pointers; i++) {
        written[p->binding[i]] = written[p->binding[i]] || kernel->written[i];
        if (p->binding[i] >= p->n_bindings) p->n_bindings = p->binding[i] + 1;
    }
    if (p->n_bindings > (int)most) {
        snprintf(m->message, sizeof m->message, "it needs %d buffers, and the device binds at most %u",
                 p->n_bindings, most);
        return WEBGPU_REFUSED;
    }
    const weft_status status = weft__wgsl_print(m->source, p->kernel, p->binding, &wgsl);
    if (status != WEFT_OK) {
        snprintf(m->message, sizeof m->message, "%s", weft_last_error(NULL));
        return status == WEFT_ERR_OOM ? WEBGPU_NO_MEMORY : WEBGPU_REFUSED;
    }
    const int error = weft__webgpu_pipeline_make(d, wgsl, written, p);
    if (error) snprintf(m->message, sizeof m->message, "%s", weft__webgpu_message());
    weft__free(NULL, wgsl);
    return error;
}

weft__webgpu_pipeline *weft__webgpu_pipeline_for(weft__webgpu *d, weft__webgpu_module *m, int kernel,
                                                 const int *binding, int *error) {
    const size_t bytes = (size_t)weft__wgsl_kernel(m->source, kernel)->n_pointers * sizeof *binding;
    weft__webgpu_pipeline *p = m->pipelines;
    *error = 0;
    while (p && (p->kernel != kernel || memcmp(p->binding, binding, bytes) != 0)) p = p->next;
    if (p) return p;
    p = weft__zalloc(NULL, sizeof *p);
    if (!p) {
        *error = WEBGPU_NO_MEMORY;
        return NULL;
    }
    p->kernel = kernel;
    memcpy(p->binding, binding, bytes);
    *error = make_pipeline(d, m, p);
    if (*error) {
        weft__webgpu_pipeline_empty(p);
        weft__free(NULL, p);
        return NULL;
    }
    p->next = m->pipelines;
    m->pipelines = p;
    return p;
}

/* ---- modules ---- */

int weft__webgpu_kernel_number(const weft__webgpu_module *m, const char *name) {
    for (int k = weft__wgsl_kernels(m->source) - 1; k > 0; k--)
        if (strcmp(weft__wgsl_kernel(m->source, k)->name, name) == 0) return k;
    return 0;
}

/* Assigns pointers to bindings: those in one slot share a buffer. Other slots may still turn out to hold the
 * same buffer, and then the run makes another pipeline. */
static void expected_bindings(const weft_launch *launch, int n_pointers, int *binding) {
    const weft_argument *a = launch->arguments;
    int n = 0;
    for (int i = 0; i < n_pointers; i++) {
        int k = 0;
        while (k < i && (a[k].kind != a[i].kind || a[k].index != a[i].index)) k++;
        binding[i] = k < i ? binding[k] : n++;
    }
}

static int compile_source(weft__webgpu *d, weft__webgpu_module *m, const weft_gpu_unit *u) {
    int binding[WEFT_WGSL_POINTERS], error;
    const weft_status status = weft__wgsl_read(NULL, u->source, &m->source, m->message, sizeof m->message);
    if (status != WEFT_OK) return status == WEFT_ERR_OOM ? WEBGPU_NO_MEMORY : WEBGPU_REFUSED;
    const int kernel = weft__webgpu_kernel_number(m, u->launch->name);
    const int n_pointers = weft__wgsl_kernel(m->source, kernel)->n_pointers;
    if (n_pointers > u->launch->n_arguments) {
        snprintf(m->message, sizeof m->message, "it has %d pointers, and the launch %d arguments", n_pointers,
                 u->launch->n_arguments);
        return WEBGPU_REFUSED;
    }
    expected_bindings(u->launch, n_pointers, binding);
    weft__webgpu_pipeline_for(d, m, kernel, binding, &error);
    return error;
}

static void webgpu_compile(weft_gpu_compiler *compiler, weft_gpu_unit *u) {
    weft__webgpu_module *m = weft__zalloc(NULL, sizeof *m);
    u->fresh = true;
    u->module = m;
    u->error = m ? compile_source(webgpu_compile_of(compiler), m, u) : WEBGPU_NO_MEMORY;
}

static weft_status webgpu_compile_finish(weft_gpu_compiler *compiler, weft_gpu_unit *u) {
    const weft__webgpu_module *m = u->module;
    weft__webgpu *d = webgpu_compile_of(compiler);
    if (!u->error) return WEFT_OK;
    if (u->error == WEBGPU_NO_MEMORY || u->error == WEBGPU_LOST)
        return weft__gpu_fail(&d->gpu, u->error, "compiling kernels");
    return weft__gpu_refused(compiler, u, m->message);
}

static void webgpu_compile_release(weft_gpu_compiler *compiler, void *module) {
    weft__webgpu_module *m = module;
    (void)compiler;
    while (m->pipelines) {
        weft__webgpu_pipeline *p = m->pipelines;
        m->pipelines = p->next;
        weft__webgpu_pipeline_empty(p);
        weft__free(NULL, p);
    }
    weft__wgsl_free(m->source);
    weft__free(NULL, m);
}

int weft__webgpu_compiler_open(weft__webgpu *d) {
    d->gpu.compiler = (weft_gpu_compiler){.device = &d->gpu.base,
                                          .dialect = d->gpu.target.dialect,
                                          .identity = d->gpu.found->detail,
                                          .options = "",
                                          .together = 1,
                                          .compile = webgpu_compile,
                                          .finish = webgpu_compile_finish,
                                          .release = webgpu_compile_release};
    d->numbers = numbers_layout(d);
    return weft__webgpu_error(d);
}
