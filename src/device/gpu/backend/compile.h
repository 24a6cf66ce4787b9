/* Texts that a device has compiled, each once. A compiler takes long to begin (PoCL 80 ms a program, 8 more
 * for each kernel in it), so the texts that a program of Weft adds, as far as they define nothing but their
 * kernel, share one module, under names that cannot meet; on cards several, which are compiled at once. What
 * was compiled is kept on disk. Must not know: OpenCL, CUDA, what texts compute. Read next: compile.c. */
#ifndef WEFT_DEVICE_GPU_BACKEND_COMPILE_H
#define WEFT_DEVICE_GPU_BACKEND_COMPILE_H

#include "device/gpu/gpu.h"
#include "device/gpu/backend/hooks.h"

/* A text that was compiled; they lie in the order of their keys. */
typedef struct weft_gpu_text {
    weft_hash key;
    int module;
    bool shares; /* the module with others, under another name */
} weft_gpu_text;

/* A module in the making. */
typedef struct weft_gpu_unit {
    const char *text; /* the whole of it */
    weft_hash key;    /* of what is compiled, by what */
    void *binary;     /* found on disk, or to be kept there; NULL: neither. Freed with weft__free */
    size_t binary_bytes;
    bool met;                  /* compiled, or found: a stop comes before others */
    bool fresh;                /* compiled here */
    void *module;              /* of the driver's */
    int error;                 /* of the driver's or the compiler's; 0: none */
    void *job;                 /* the backend's own, between its calls */
    const weft_launch *launch; /* the first of its texts */
    int texts;
} weft_gpu_unit;

typedef struct weft_gpu_module {
    void *module;
    weft_hash key; /* on disk */
    bool fresh;    /* compiled in this process */
} weft_gpu_module;

typedef struct weft_gpu_compiler weft_gpu_compiler;
struct weft_gpu_compiler {
    weft_device *device;
    weft_dialect dialect;
    const char *identity, *options; /* all that a binary depends on besides its sources */
    int together;                   /* texts in a module, at most */
    /* Makes the module of a unit, or all that can be done for it in any thread; sets `fresh` where that did
     * not come from its binary. */
    void (*compile)(weft_gpu_compiler *compiler, weft_gpu_unit *unit);
    /* What is left, in the caller's thread; the error of a unit that has one. */
    weft_status (*finish)(weft_gpu_compiler *compiler, weft_gpu_unit *unit);
    void (*release)(weft_gpu_compiler *compiler, void *module);
    /* so far: */
    weft_gpu_text *texts;
    size_t n_texts, text_capacity;
    weft_gpu_module *modules;
    size_t n_modules, module_capacity;
};

enum { WEFT_GPU_NO_ERROR, WEFT_GPU_TEST_ERROR = -9999 }; /* of a unit: a test has it refused */

/* texts[i] is the text of launches[i], until the next call; NULL where a library does it. */
weft_status weft__gpu_compile(weft_gpu_compiler *compiler, const weft_launch *launches, int count,
                              const weft_gpu_text **texts);
/* "its compiler refuses kernel NAME: WORDS"; the sources go to the log. */
weft_status weft__gpu_refused(weft_gpu_compiler *compiler, const weft_gpu_unit *unit, const char *words);
/* What the kernel that its launch calls `name` is called in its module. */
enum { WEFT_GPU_NAME = 160 };
void weft__gpu_kernel_name(const weft_gpu_text *text, const char *name, char to[WEFT_GPU_NAME]);
void weft__gpu_compiler_close(weft_gpu_compiler *compiler);

#endif
