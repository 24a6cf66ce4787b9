/* Modules in PTX, which the interpreter of tests/ptx runs. Tests get them from the NVRTC of tests/ptx/nvrtc.
 *     FAKE_PTX_SEED=N    other orders of blocks and warps
 *     FAKE_PTX_KEEP=DIR  writes each module to DIR
 *     FAKE_PTX_EDIT=A=>B replaces each A in a module by B: a planted fault (tests/ptx/test_ptx_faults.sh)
 *     FAKE_PTX_BANKS=FILE  appends a line to FILE for each launch: its bank conflicts (tests/ptx/banks.c)
 *     FAKE_PTX_CLOCKS=FILE  appends a line to FILE for each launch: the estimated clocks (tests/ptx/clock.c)
 *     FAKE_PTX_TIME=1    prints the speed of each kernel
 * Read next: ptx/ptx.h. */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ptx/ptx.h"

bool fake_is_ptx(const void *image) { return memcmp(image, "//", 2) == 0 || memcmp(image, ".v", 2) == 0; }

static void keep(const char *text) {
    static int count;
    const char *folder = getenv("FAKE_PTX_KEEP");
    char path[500];
    if (!folder) return;
    snprintf(path, sizeof path, "%s/%05d.ptx", folder, count++);
    FILE *file = fopen(path, "w");
    if (!file) return;
    fputs(text, file);
    fclose(file);
}

/* The text with the edit of $FAKE_PTX_EDIT. */
static char *edited(const char *text) {
    const char *edit = getenv("FAKE_PTX_EDIT"), *arrow = edit ? strstr(edit, "=>") : NULL;
    if (!arrow) return strdup(text);
    const size_t from = (size_t)(arrow - edit), to = strlen(arrow + 2);
    char *copy = malloc(strlen(text) * (to + 1) + 1), *end = copy;
    for (const char *at = text; *at;) {
        const bool here = strncmp(at, edit, from) == 0;
        memcpy(end, here ? arrow + 2 : at, here ? to : 1);
        end += here ? to : 1;
        at += here ? from : 1;
    }
    *end = 0;
    return copy;
}

CUresult fake_ptx_load(CUcontext context, CUmodule *module, const char *image) {
    char why[500], *text = edited(image);
    keep(text);
    ptx_module *m = ptx_load(text, why, sizeof why);
    free(text);
    if (!m) return fake_refuse("cuModuleLoadData", CUDA_ERROR_INVALID_IMAGE, "%s", why);
    *module = fake_make(context, FAKE_MODULE, sizeof **module);
    (*module)->ptx = m; /* never freed, like the handle */
    fake_cuda.modules++;
    return 0;
}

CUresult fake_ptx_function(CUmodule module, const char *name, CUfunction *function) {
    const ptx_function *ptx = ptx_kernel(module->ptx, name);
    if (!ptx) return CUDA_ERROR_NOT_FOUND;
    for (int i = 0; i < module->n_functions; i++)
        if (module->functions[i].ptx == ptx) {
            *function = &module->functions[i];
            return 0;
        }
    if (module->n_functions == FAKE_FUNCTIONS) return CUDA_ERROR_OUT_OF_MEMORY;
    CUfunction f = *function = &module->functions[module->n_functions++];
    f->handle = module->handle;
    f->handle.kind = FAKE_FUNCTION;
    f->ptx = ptx;
    f->sizes = ptx_parameter_sizes(ptx, &f->n_arguments);
    snprintf(f->name, sizeof f->name, "%s", name);
    f->most_threads = 1024; /* the interpreter checks .maxntid */
    f->static_shared = ptx_static_shared(ptx);
    f->most_shared = FAKE_SHARED_STATIC - (int)f->static_shared;
    return 0;
}

static bool range(void *user, uint64_t at, uint64_t *begin, uint64_t *end) {
    return fake_memory_range(user, (const char *)(uintptr_t)at, begin, end);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void note_clocks(const ptx_launch *l) {
    FILE *to = fopen(getenv("FAKE_PTX_CLOCKS"), "a");
    if (!to) abort();
    fprintf(to, "%s\t%llu\n", ptx_name(l->kernel), (unsigned long long)l->clocks);
    fclose(to);
}

/* Without a seed, every other launch runs its blocks and warps in order. */
CUresult fake_ptx_run(const fake_launch *l) {
    const char *seed = getenv("FAKE_PTX_SEED");
    const uint64_t number = (uint64_t)fake_cuda.kernels;
    ptx_launch launch = {.kernel = l->function->ptx,
                         .blocks = {l->blocks.x, l->blocks.y, l->blocks.z},
                         .threads = {l->threads.x, l->threads.y, l->threads.z},
                         .shared_bytes = l->shared_bytes,
                         .values = l->values,
                         .seed = seed         ? strtoull(seed, NULL, 10) * 1000003 + number
                                 : number % 2 ? 0
                                              : number,
                         .races = true,
                         .timed = getenv("FAKE_PTX_CLOCKS") != NULL,
                         .banks = getenv("FAKE_PTX_BANKS"),
                         .memory = range,
                         .user = l->function->handle.context};
    const double begin = now();
    const bool good = ptx_run(&launch);
    if (getenv("FAKE_PTX_TIME"))
        fprintf(stderr, "ptx: %10llu instructions, %8.4f s, %s\n", (unsigned long long)launch.instructions,
                now() - begin, ptx_name(l->function->ptx));
    if (launch.timed) note_clocks(&launch);
    return good ? 0 : fake_refuse("a kernel", CUDA_ERROR_LAUNCH_FAILED, "%s", launch.why);
}
