/* Modules as cubins (for HIP: code objects), compiled by NVRTC (hipRTC) or read from disk. The driver loads
 * them. Must not know: what kernels compute. Read next: gpu/backend/compile.c, nvrtc.c. */
#include "device/gpu/driver/driver.h"
#include "device/gpu/driver/nvrtc.h"

enum { TOGETHER = 8 };

static weft__cuda *cuda_compile_of(weft_gpu_compiler *compiler) { return weft__cuda_of(compiler->device); }

static void compile_text(weft__cuda *d, weft_gpu_unit *u) {
    weft_nvrtc_job job = {.compiler = d->found->api->compiler, .source = u->source, .arch = d->found->arch};
    u->fresh = true;
    weft__nvrtc_compile(&job);
    u->job = job.program;
    u->error = (int)job.error;
}

static void compile(weft_gpu_compiler *compiler, weft_gpu_unit *u) {
    if (!u->binary) compile_text(cuda_compile_of(compiler), u);
}

/* Takes the cubin of a module that was just compiled. */
static weft_status cuda_compile_take(weft_gpu_compiler *compiler, weft_gpu_unit *u) {
    weft_context *ctx = compiler->device->ctx;
    const weft__cuda_found *found = cuda_compile_of(compiler)->found;
    weft_nvrtc_job job = {.compiler = found->api->compiler,
                          .source = u->source,
                          .arch = found->arch,
                          .program = u->job,
                          .error = (unsigned)u->error};
    u->job = NULL;
    if (!u->error) return weft__nvrtc_take(ctx, &job, u->launch->name, &u->binary, &u->binary_bytes);
    char *log = weft__nvrtc_log(ctx, &job);
    const weft_status status = weft__gpu_refused(compiler, u, log ? log : "its log could not be read");
    weft__free(ctx, log);
    weft__nvrtc_drop(&job);
    return status;
}

static CUresult cuda_compile_load(const weft__cuda *d, weft_gpu_unit *u) {
    CUmodule module = NULL;
    const CUresult error = d->cu->cuModuleLoadData(&module, u->binary);
    u->module = error ? NULL : module;
    return error;
}

static weft_status cuda_compile_finish(weft_gpu_compiler *compiler, weft_gpu_unit *u) {
    weft__cuda *d = cuda_compile_of(compiler);
    if (!u->fresh && cuda_compile_load(d, u) == 0)
        return u->error ? weft__gpu_refused(compiler, u, "a test requested it") : WEFT_OK;
    if (!u->fresh) { /* for example, the file was made for another card */
        weft__free(d->gpu.base.ctx, u->binary);
        u->binary = NULL;
        compile_text(d, u);
    }
    WEFT_TRY(cuda_compile_take(compiler, u));
    const CUresult error = cuda_compile_load(d, u);
    return error ? weft__cuda_fail(d, error, "loading kernels") : WEFT_OK;
}

static void cuda_compile_release(weft_gpu_compiler *compiler, void *module) {
    cuda_compile_of(compiler)->cu->cuModuleUnload(module);
}

void weft__cuda_compiler_open(weft__cuda *d) {
    d->gpu.compiler = (weft_gpu_compiler){.device = &d->gpu.base,
                                          .dialect = WEFT_DIALECT_CUDA,
                                          .identity = d->found->compiler,
                                          .options = weft__nvrtc_options(d->found->api->compiler, d->options),
                                          .together = TOGETHER,
                                          .compile = compile,
                                          .finish = cuda_compile_finish,
                                          .release = cuda_compile_release};
}
