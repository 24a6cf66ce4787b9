/* Texts as programs of OpenCL, each compiled once a device. Must not know: what they compute. Read next:
 * gpu/text.c. */
#include <string.h>

#include "device/opencl/opencl.h"

/* Denormals, NaN and infinity as IEEE 754 has them, which is what there is without further options. */
static const char options[] = "-cl-std=CL1.2";

static weft_hash key_of(const weft_launch *launch) {
    weft_hash key;
    weft__hash_init(&key);
    weft__hash_u64(&key, launch->prelude);
    weft__hash_str(&key, launch->text);
    return key;
}

static weft__opencl_text *find(weft__opencl *d, weft_hash key) {
    for (size_t i = 0; i < d->n_texts; i++)
        if (weft__hash_equal(d->texts[i].key, key)) return &d->texts[i];
    return NULL;
}

/* The compiler's own words go to the log, their beginning into the error. */
static weft_status refused(weft__opencl *d, cl_program program, const weft_launch *launch, cl_int error) {
    char log[2000] = "";
    size_t bytes = 0;
    if (error != OPENCL_BUILD_PROGRAM_FAILURE) return weft__opencl_fail(d, error, "compiling a kernel");
    if (weft__cl.clGetProgramBuildInfo(program, d->found->id, OPENCL_PROGRAM_BUILD_LOG, sizeof log - 1, log,
                                       &bytes) != 0)
        memcpy(log, "longer than could be shown", 27);
    weft__log(d->base.ctx, WEFT_LOG_DEBUG, "%s", launch->text);
    return weft__fail(d->base.ctx, WEFT_ERR_DEVICE, "%s: its compiler refuses kernel %s: %.600s",
                      d->found->spec, launch->name, log);
}

static weft_status compile(weft__opencl *d, const weft_launch *launch, cl_program *out) {
    const char *parts[WEFT_GPU_PARTS + 1];
    cl_int error = 0;
    int n = weft__gpu_parts(d->target.language, launch->prelude, parts);
    parts[n++] = launch->text;
    cl_program program = weft__cl.clCreateProgramWithSource(d->context, (cl_uint)n, parts, NULL, &error);
    if (error) return weft__opencl_fail(d, error, "a program");
    weft__opencl_hook.compiles++;
    if (weft__opencl_hook.fail_compile && --weft__opencl_hook.fail_compile == 0)
        error = OPENCL_BUILD_PROGRAM_FAILURE;
    else
        error = weft__cl.clBuildProgram(program, 1, &d->found->id, options, NULL, NULL);
    if (error) {
        const weft_status status = refused(d, program, launch, error);
        weft__cl.clReleaseProgram(program);
        return status;
    }
    *out = program;
    return WEFT_OK;
}

weft_status weft__opencl_compile(weft__opencl *d, const weft_launch *launches, int count,
                                 cl_program *programs) {
    for (int i = 0; i < count; i++) {
        const weft_hash key = key_of(&launches[i]);
        weft__opencl_text *text = find(d, key);
        if (!text) {
            if (!weft__grow(d->base.ctx, &d->texts, &d->text_capacity, d->n_texts, sizeof *d->texts))
                return weft__fail_oom(d->base.ctx, sizeof *d->texts, "a compiled kernel");
            cl_program program = NULL;
            WEFT_TRY(compile(d, &launches[i], &program));
            text = &d->texts[d->n_texts++];
            *text = (weft__opencl_text){key, program};
        }
        programs[i] = text->program;
    }
    return WEFT_OK;
}

void weft__opencl_texts_free(weft__opencl *d) {
    for (size_t i = 0; i < d->n_texts; i++) weft__cl.clReleaseProgram(d->texts[i].program);
    weft__free(d->base.ctx, d->texts);
    d->texts = NULL;
    d->n_texts = d->text_capacity = 0;
}
