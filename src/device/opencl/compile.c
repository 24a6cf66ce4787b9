/* Modules as OpenCL programs, made from their sources or from binaries on disk.
 * Must not know: what kernels compute. Read next: gpu/backend/compile.c. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* secure_getenv */
#endif
#include <stdlib.h>
#include <string.h>

#include "device/cache.h"
#include "device/opencl/hooks.h"
#include "device/opencl/opencl.h"

/* Without further options, denormals, NaN and infinity follow IEEE 754. */
static const char options[] = "-cl-std=CL1.2";
enum { TOGETHER_ON_CARDS = 8 };

static weft__opencl *opencl_compile_of(weft_gpu_compiler *compiler) {
    return weft__opencl_of(compiler->device);
}

/* Makes the module from the bytes on disk. Returns false if the driver refuses them. */
static bool from_binary(const weft__opencl *d, weft_gpu_unit *u) {
    const unsigned char *bytes = u->binary;
    cl_int status = 0, error = 0;
    cl_program program = weft__cl.clCreateProgramWithBinary(d->context, 1, &d->found->id, &u->binary_bytes,
                                                            &bytes, &status, &error);
    if (!error && !status) error = weft__cl.clBuildProgram(program, 1, &d->found->id, options, NULL, NULL);
    if (!error && !status) {
        u->module = program;
        return true;
    }
    if (program) weft__cl.clReleaseProgram(program);
    return false;
}

static void compile(weft_gpu_compiler *compiler, weft_gpu_unit *u) {
    const weft__opencl *d = opencl_compile_of(compiler);
    if (u->binary && from_binary(d, u)) return;
    u->fresh = true;
    u->module = weft__cl.clCreateProgramWithSource(d->context, 1, &u->source, NULL, &u->error);
    if (!u->error) u->error = weft__cl.clBuildProgram(u->module, 1, &d->found->id, options, NULL, NULL);
}

static weft_status opencl_compile_finish(weft_gpu_compiler *compiler, weft_gpu_unit *u) {
    weft__opencl *d = opencl_compile_of(compiler);
    char log[4000] = "";
    size_t bytes = 0;
    if (u->fresh) { /* the binary on disk is outdated; store() gets a new one at the end */
        weft__free(d->gpu.base.ctx, u->binary);
        u->binary = NULL;
    }
    if (!u->error) return WEFT_OK;
    if (u->error != OPENCL_BUILD_PROGRAM_FAILURE && u->error != WEFT_GPU_TEST_ERROR)
        return weft__gpu_fail(&d->gpu, u->error, "compiling kernels");
    const bool known = weft__cl.clGetProgramBuildInfo(u->module, d->found->id, OPENCL_PROGRAM_BUILD_LOG,
                                                      sizeof log - 1, log, &bytes) == 0;
    return weft__gpu_refused(compiler, u, known ? log : "its log is too long or cannot be read");
}

static void opencl_compile_release(weft_gpu_compiler *compiler, void *module) {
    (void)compiler;
    weft__cl.clReleaseProgram(module);
}

void weft__opencl_compiler_open(weft__opencl *d) {
    d->gpu.compiler =
        (weft_gpu_compiler){.device = &d->gpu.base,
                            .dialect = d->gpu.target.dialect,
                            .identity = d->gpu.found->detail, /* device, platform, driver, versions */
                            .options = options,
                            .together = d->gpu.found->cpu ? 1 << 20 : TOGETHER_ON_CARDS,
                            .joins = d->gpu.found->cpu,
                            .compile = compile,
                            .finish = opencl_compile_finish,
                            .release = opencl_compile_release};
}

/* ---- storing on disk ---- */

static void opencl_compile_store(weft__opencl *d, const weft_gpu_module *m) {
    size_t bytes = 0;
    if (weft__cl.clGetProgramInfo(m->module, OPENCL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, NULL) != 0 ||
        !bytes)
        return;
    unsigned char *binary = weft__alloc(d->gpu.base.ctx, bytes);
    if (binary && weft__cl.clGetProgramInfo(m->module, OPENCL_PROGRAM_BINARIES, sizeof(unsigned char *),
                                            &binary, NULL) == 0)
        weft__gpu_cache_store(d->gpu.base.ctx, m->key, binary, bytes);
    weft__free(d->gpu.base.ctx, binary);
}

/* Returns whether the driver stores kernels on disk by itself. PoCL does. It also compiles every kernel
 * again, for any size of a work-group, when it is asked for a binary. For a gpt this takes twice as long as
 * the first step. */
static bool stores_itself(const weft__opencl *d) {
    const char *setting = secure_getenv("POCL_KERNEL_CACHE");
    return !weft__opencl_hook.stores && strcmp(d->found->gpu.maker, "Portable Computing Language") == 0 &&
           !(setting && strcmp(setting, "0") == 0);
}

void weft__opencl_store_modules(weft__opencl *d) {
    const weft_gpu_compiler *c = &d->gpu.compiler;
    const bool kept = c->n_modules && !stores_itself(d) && weft__gpu_cache_wanted();
    for (size_t i = 0; kept && i < c->n_modules && !weft__interrupted(d->gpu.base.ctx); i++)
        if (c->modules[i].fresh) opencl_compile_store(d, &c->modules[i]);
}
