/* NVRTC for tests on PTX: the real NVRTC compiles the kernel source, for the virtual architecture of the one
 * that is asked for. The "cubin" is the PTX, which the simulated driver runs by the interpreter. The
 * assembler does not run, so a kernel that exceeds static shared memory is found by the interpreter's parser.
 * WEFT_PTX_NVRTC is the file of the real library. Must not know the driver. Read next: ../ptx.h. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../ptx.h"

typedef struct program {
    void *real;
    char *ptx, *log;
} program;
typedef program *nvrtcProgram;

#define NVRTC_FUNCTION(result, name, hip, arguments) result name arguments;
#include "device/gpu/driver/nvrtc.def"
#undef NVRTC_FUNCTION

enum { NVRTC_OUT_OF_MEMORY = 1, NVRTC_INVALID_PROGRAM = 4, NVRTC_COMPILATION = 6 };

/* The functions of the real library, by the names that NVRTC gives them. */
#define REAL_FUNCTIONS(F)                                                                                    \
    F(unsigned, nvrtcVersion, (int *, int *))                                                                \
    F(unsigned, nvrtcGetNumSupportedArchs, (int *))                                                          \
    F(unsigned, nvrtcGetSupportedArchs, (int *))                                                             \
    F(const char *, nvrtcGetErrorString, (unsigned))                                                         \
    F(unsigned, nvrtcCreateProgram,                                                                          \
      (void **, const char *, const char *, int, const char *const *, const char *const *))                  \
    F(unsigned, nvrtcDestroyProgram, (void **))                                                              \
    F(unsigned, nvrtcCompileProgram, (void *, int, const char *const *))                                     \
    F(unsigned, nvrtcGetProgramLogSize, (void *, size_t *))                                                  \
    F(unsigned, nvrtcGetProgramLog, (void *, char *))                                                        \
    F(unsigned, nvrtcGetPTXSize, (void *, size_t *))                                                         \
    F(unsigned, nvrtcGetPTX, (void *, char *))

#define IN_STRUCT(result, name, arguments) result(*name) arguments;
static struct { REAL_FUNCTIONS(IN_STRUCT) } real;

__attribute__((constructor)) static void open_real(void) {
    void *library = dlopen(WEFT_PTX_NVRTC, RTLD_NOW | RTLD_LOCAL);
    bool whole = library != NULL;
#define LOOK_UP(result, name, arguments)                                                                     \
    *(void **)(void *)&real.name = whole ? dlsym(library, #name) : NULL;                                     \
    whole = whole && real.name;
    REAL_FUNCTIONS(LOOK_UP)
    if (whole) return;
    fprintf(stderr, "%s cannot be used\n", WEFT_PTX_NVRTC);
    _Exit(1);
}

/* ---- forwarded as they are ---- */

unsigned nvrtcVersion(int *major, int *minor) { return real.nvrtcVersion(major, minor); }
unsigned nvrtcGetNumSupportedArchs(int *count) { return real.nvrtcGetNumSupportedArchs(count); }
unsigned nvrtcGetSupportedArchs(int *list) { return real.nvrtcGetSupportedArchs(list); }
const char *nvrtcGetErrorString(unsigned result) { return real.nvrtcGetErrorString(result); }

/* ---- programs ---- */

unsigned nvrtcCreateProgram(nvrtcProgram *p, const char *text, const char *name, int n_headers,
                            const char *const *headers, const char *const *names) {
    *p = calloc(1, sizeof **p);
    if (!*p) return NVRTC_OUT_OF_MEMORY;
    const unsigned error = real.nvrtcCreateProgram(&(*p)->real, text, name, n_headers, headers, names);
    if (!error) return 0;
    free(*p);
    *p = NULL;
    return error;
}

unsigned nvrtcDestroyProgram(nvrtcProgram *p) {
    if (!p || !*p) return NVRTC_INVALID_PROGRAM;
    const unsigned error = real.nvrtcDestroyProgram(&(*p)->real);
    free((*p)->ptx);
    free((*p)->log);
    free(*p);
    *p = NULL;
    return error;
}

static unsigned take_ptx(program *p) {
    size_t bytes = 0;
    char why[500];
    unsigned error = real.nvrtcGetPTXSize(p->real, &bytes);
    if (!error) p->ptx = calloc(1, bytes + 1);
    if (!error && !p->ptx) error = NVRTC_OUT_OF_MEMORY;
    if (!error) error = real.nvrtcGetPTX(p->real, p->ptx);
    if (error) return error;
    ptx_module *m = ptx_load(p->ptx, why, sizeof why);
    ptx_free(m);
    if (m) return 0;
    free(p->ptx);
    p->ptx = NULL;
    p->log = strdup(why);
    return NVRTC_COMPILATION;
}

unsigned nvrtcCompileProgram(nvrtcProgram p, int n_options, const char *const *options) {
    static const char arch[] = "--gpu-architecture=sm_", assembler[] = "--ptxas-options";
    const char *kept[32];
    char named[64];
    int n = 0, major = 0, minor;
    if (!p) return NVRTC_INVALID_PROGRAM;
    real.nvrtcVersion(&major, &minor);
    if (major >= 13) kept[n++] = "--no-cache"; /* its cache would ask the driver for a table of functions */
    for (int i = 0; i < n_options && n < 32; i++) {
        if (strncmp(options[i], assembler, sizeof assembler - 1) == 0) continue;
        kept[n++] = options[i];
        if (strncmp(options[i], arch, sizeof arch - 1) != 0) continue;
        snprintf(named, sizeof named, "--gpu-architecture=compute_%s", options[i] + sizeof arch - 1);
        kept[n - 1] = named;
    }
    const unsigned error = real.nvrtcCompileProgram(p->real, n, kept);
    return error ? error : take_ptx(p);
}

unsigned nvrtcGetProgramLogSize(nvrtcProgram p, size_t *bytes) {
    if (!p) return NVRTC_INVALID_PROGRAM;
    if (!p->log) return real.nvrtcGetProgramLogSize(p->real, bytes);
    *bytes = strlen(p->log) + 1;
    return 0;
}

unsigned nvrtcGetProgramLog(nvrtcProgram p, char *log) {
    if (!p) return NVRTC_INVALID_PROGRAM;
    if (!p->log) return real.nvrtcGetProgramLog(p->real, log);
    memcpy(log, p->log, strlen(p->log) + 1);
    return 0;
}

unsigned nvrtcGetCUBINSize(nvrtcProgram p, size_t *bytes) {
    if (!p || !p->ptx) return NVRTC_INVALID_PROGRAM;
    *bytes = strlen(p->ptx) + 1;
    return 0;
}

unsigned nvrtcGetCUBIN(nvrtcProgram p, char *cubin) {
    if (!p || !p->ptx) return NVRTC_INVALID_PROGRAM;
    memcpy(cubin, p->ptx, strlen(p->ptx) + 1);
    return 0;
}
