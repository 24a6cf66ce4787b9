/* The kernel sources that a device has compiled, each once. A compiler takes long to start: PoCL 80 ms for a
 * program, and 8 ms more for each kernel in it. So the new sources of a Weft program share one module if they
 * define only their kernel. On processors so do templates, by other names. Their names never collide. On
 * graphics cards there are several modules, which are compiled at the same time. Compiled modules are stored
 * on disk. Must not know: OpenCL, CUDA, what kernels compute. Read next: compile.c,
 * docs/design/019-many-kernels-in-one-module.md. */
#ifndef WEFT_DEVICE_GPU_BACKEND_COMPILE_H
#define WEFT_DEVICE_GPU_BACKEND_COMPILE_H

#include "device/gpu/gpu.h"
#include "device/gpu/backend/hooks.h"

/* A compiled kernel source. The list is sorted by key. */
typedef struct weft_gpu_source {
    weft_hash key;
    int module;
    bool shares; /* it defines only its kernel, which has another name in the module */
    bool joins;  /* its names have a suffix in the module */
} weft_gpu_source;

/* A module that is being compiled. */
typedef struct weft_gpu_unit {
    const char *source; /* the whole source */
    weft_hash key;      /* hash of the source, the options and the compiler */
    void *binary;       /* found on disk, or to be stored there; or NULL. Freed with weft__free */
    size_t binary_bytes;
    bool met;                  /* compiled or loaded; false if a stop came first */
    bool fresh;                /* compiled now, not loaded */
    void *module;              /* the driver's module */
    int error;                 /* the error of the driver or compiler; 0: none */
    void *job;                 /* private to the backend, between its calls */
    const weft_launch *launch; /* the first launch that uses it */
    unsigned prelude;          /* the parts that any of its sources needs */
    int sources;
} weft_gpu_unit;

typedef struct weft_gpu_module {
    void *module;
    weft_hash key; /* its key on disk */
    bool fresh;    /* compiled in this process */
} weft_gpu_module;

typedef struct weft_gpu_compiler weft_gpu_compiler;
struct weft_gpu_compiler {
    weft_device *device;
    weft_dialect dialect;
    const char *identity, *options; /* all that a binary depends on besides its source */
    int together;                   /* the most sources in one module */
    bool joins; /* sources that may fuse share modules, too, and so do sources with different preludes */
    /* Makes the module of a unit, as far as any thread can. Sets `fresh` if the module did not come from its
     * binary. */
    void (*compile)(weft_gpu_compiler *compiler, weft_gpu_unit *unit);
    /* Does the rest in the caller's thread. Returns the error of the unit, if it has one. */
    weft_status (*finish)(weft_gpu_compiler *compiler, weft_gpu_unit *unit);
    void (*release)(weft_gpu_compiler *compiler, void *module);
    /* Compiled so far: */
    weft_gpu_source *sources;
    size_t n_sources, source_capacity;
    weft_gpu_module *modules;
    size_t n_modules, module_capacity;
};

enum { WEFT_GPU_NO_ERROR, WEFT_GPU_TEST_ERROR = -9999 }; /* error of a unit: a test refuses it */

/* Compiles the sources that are new. sources[i] is the source of launches[i], or NULL if a library replaces
 * the launch. The pointers are valid until the next call. */
weft_status weft__gpu_compile(weft_gpu_compiler *compiler, const weft_launch *launches, int count,
                              const weft_gpu_source **sources);
/* Returns the error "its compiler refuses kernel NAME: WORDS". The source goes to the log. */
weft_status weft__gpu_refused(weft_gpu_compiler *compiler, const weft_gpu_unit *unit, const char *message);
/* Writes the name that a kernel has in its module. `name` is its name in the launch. */
enum { WEFT_GPU_NAME = 160 };
void weft__gpu_kernel_name(const weft_gpu_source *source, const char *name, char to[WEFT_GPU_NAME]);
void weft__gpu_compiler_close(weft_gpu_compiler *compiler);

#endif
