/* The compilation of one source by NVRTC or hipRTC. Kernel sources can include no headers.
 * Must not know: devices, how a compiler is opened. Read next: gpu/backend/kernel_source.c, cuda/nvrtc.c. */
#include <stdio.h>

#include "base/text.h"
#include "device/gpu/driver/nvrtc.h"

static const weft__nvrtc_functions *functions_of(const weft_nvrtc_job *job) {
    return job->compiler->functions;
}

const char *weft__nvrtc_options(const weft_nvrtc *compiler, char words[WEFT_NVRTC_WORDS]) {
    weft_text out = weft__text(words, WEFT_NVRTC_WORDS);
    for (int i = 0; i < compiler->n_options; i++) weft__put(&out, "%s ", compiler->options[i]);
    return words;
}

void weft__nvrtc_compile(weft_nvrtc_job *job) {
    const weft_nvrtc *c = job->compiler;
    const char *list[WEFT_NVRTC_OPTIONS];
    char arch[128];
    int n = 0;
    for (; n < c->n_options; n++) list[n] = c->options[n];
    snprintf(arch, sizeof arch, "%s%s", c->arch, job->arch);
    list[n++] = arch;
    if (job->verbose && c->verbose) list[n++] = c->verbose;
    job->program = NULL;
    job->error = c->functions->nvrtcCreateProgram(&job->program, job->source, "weft.cu", 0, NULL, NULL);
    if (!job->error) job->error = c->functions->nvrtcCompileProgram(job->program, n, list);
}

char *weft__nvrtc_log(weft_context *ctx, const weft_nvrtc_job *job) {
    size_t bytes = 0;
    if (!job->program || functions_of(job)->nvrtcGetProgramLogSize(job->program, &bytes) != 0) return NULL;
    char *log = weft__alloc(ctx, bytes + 1);
    if (!log) return NULL;
    log[bytes] = log[0] = 0;
    if (bytes) functions_of(job)->nvrtcGetProgramLog(job->program, log);
    return log;
}

void weft__nvrtc_drop(weft_nvrtc_job *job) {
    if (job->program) functions_of(job)->nvrtcDestroyProgram(&job->program);
    job->program = NULL;
}

static weft_status nvrtc_take(weft_context *ctx, const weft_nvrtc_job *job, const char *what, void **cubin,
                              size_t *bytes) {
    const char *name = job->compiler->name;
    unsigned error = job->error;
    if (!error) error = functions_of(job)->nvrtcGetCUBINSize(job->program, bytes);
    if (error) {
        char *log = weft__nvrtc_log(ctx, job);
        weft__log(ctx, WEFT_LOG_DEBUG, "%s", job->source);
        const weft_status status =
            weft__fail(ctx, WEFT_ERR_DEVICE, "%s: %s for %s: %s: %.600s", name, what, job->arch,
                       functions_of(job)->nvrtcGetErrorString(error), log ? log : "");
        weft__free(ctx, log);
        return status;
    }
    *cubin = weft__alloc(ctx, *bytes + 1);
    if (!*cubin) return weft__fail_oom(ctx, *bytes, "a compiled kernel");
    error = functions_of(job)->nvrtcGetCUBIN(job->program, *cubin);
    if (!error) return WEFT_OK;
    weft__free(ctx, *cubin);
    return weft__fail(ctx, WEFT_ERR_DEVICE, "%s: %s for %s: %s", name, what, job->arch,
                      functions_of(job)->nvrtcGetErrorString(error));
}

weft_status weft__nvrtc_take(weft_context *ctx, weft_nvrtc_job *job, const char *what, void **cubin,
                             size_t *bytes) {
    *cubin = NULL;
    const weft_status status = nvrtc_take(ctx, job, what, cubin, bytes);
    weft__nvrtc_drop(job);
    if (status != WEFT_OK) *cubin = NULL;
    return status;
}
