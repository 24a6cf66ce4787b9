/* The simulated CUDA driver: devices, contexts, modules. It checks each call. Work for a stream is queued
 * until somebody waits. This file must not know Weft, except for its declarations. Read next: fake.h,
 * queue.c. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "driver.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

__attribute__((visibility("default"))) fake_cuda_state fake_cuda;
pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;

enum { CARDS = 2, CARDS_MOST = 4, DEPTH = 16 };
static struct CUctx_st contexts[CARDS_MOST]; /* primary contexts */
static _Thread_local CUcontext stack[DEPTH];
static _Thread_local int depth;
static bool initialised;

int fake_contexts(CUcontext *first) {
    if (first) *first = contexts;
    return CARDS_MOST;
}

bool fake_chance(unsigned n) {
    static uint64_t random;
    const char *seed = getenv("FAKE_CUDA_SEED");
    if (!random) random = 88172645463325252u + (uint64_t)(seed ? atol(seed) : 0);
    random ^= random << 13, random ^= random >> 7, random ^= random << 17; /* xorshift64 */
    return (random >> 20) % n == 0;
}

/* Should a library refuse what it is asked for? FAKE_CUDA_DECLINE=n: one request in n. */
__attribute__((visibility("default"))) int fake_declines(void) {
    const char *n = getenv("FAKE_CUDA_DECLINE");
    return n && atoi(n) > 0 && fake_chance((unsigned)atoi(n));
}

/* ---- refusing calls ---- */

CUresult fake_refuse(const char *function, CUresult error, const char *why, ...) {
    va_list args;
    fake_cuda.refused++;
    if (fake_cuda.quiet) return error;
    fprintf(stderr, "fake cuda: %s: ", function);
    va_start(args, why);
    vfprintf(stderr, why, args);
    va_end(args);
    fputc('\n', stderr);
    return error;
}

__attribute__((destructor)) static void at_end(void) {
    if (!fake_cuda.refused && !fake_cuda.reports) return;
    fprintf(stderr, "fake cuda: %ld calls were refused, %ld faults of kernels were reported\n",
            fake_cuda.refused, fake_cuda.reports);
    _exit(1);
}

/* The current context of the thread. If there is none, or a kernel has failed in it, sets *error. */
CUcontext fake_context(const char *function, CUresult *error) {
    CUcontext c = depth ? stack[depth - 1] : NULL;
    *error = 0;
    if (!initialised)
        *error = fake_refuse(function, CUDA_ERROR_NOT_INITIALIZED, "before cuInit");
    else if (!c)
        *error = fake_refuse(function, CUDA_ERROR_INVALID_CONTEXT, "the thread has no context");
    else if (!c->users)
        *error = fake_refuse(function, CUDA_ERROR_CONTEXT_IS_DESTROYED, "the context was released");
    else
        *error = c->failed;
    return c;
}

/* The card whose context is current. -1: there is none. */
__attribute__((visibility("default"))) int fake_current_card(void) {
    CUresult error;
    const CUcontext c = fake_context("a library", &error);
    return c && !error ? (int)(c - contexts) : -1;
}

/* Is the handle of this kind, alive, and of this context? */
bool fake_alive(const char *function, const void *handle, fake_kind kind, CUcontext context) {
    const fake_handle *h = handle;
    if (h && h->kind == kind && h->alive && h->context == context && h->era == context->era) return true;
    fake_refuse(function, CUDA_ERROR_INVALID_HANDLE, "%s",
                !h                       ? "no handle"
                : h->kind != kind        ? "a handle of another kind"
                : !h->alive              ? "a handle that was freed"
                : h->era != context->era ? "a handle from before the context was reset"
                                         : "a handle of another context");
    return false;
}

void *fake_make(CUcontext context, fake_kind kind, size_t bytes) {
    fake_handle *h = calloc(1, bytes);
    *h = (fake_handle){.kind = kind, .alive = true, .context = context, .era = context->era};
    fake_cuda.handles++;
    return h;
}

/* Marks a handle as dead. Its memory is not freed, so that later use is detected. */
void fake_unmake(void *handle) {
    ((fake_handle *)handle)->alive = false;
    fake_cuda.handles--;
}

/* ---- devices and contexts ---- */

API cuInit(unsigned flags) {
    initialised = true;
    return flags ? fake_refuse("cuInit", CUDA_ERROR_INVALID_VALUE, "flags") : 0;
}

API cuDriverGetVersion(int *version) {
    const char *wish = getenv("FAKE_CUDA_VERSION");
    *version = wish ? atoi(wish) : FAKE_VERSION;
    return 0;
}

API cuGetErrorName(CUresult error, const char **name) {
    static const struct {
        CUresult error;
        const char *name;
    } names[] = {
#define CUDA_CONSTANT(name, value) {value, #name},
#include "device/gpu/driver/cuda.def"
#undef CUDA_CONSTANT
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].error == error && strncmp(names[i].name, "CUDA_ERROR", 10) == 0) {
            *name = names[i].name;
            return 0;
        }
    return CUDA_ERROR_INVALID_VALUE;
}

API cuGetErrorString(CUresult error, const char **text) {
    *text = error == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : "said by the driver of the tests";
    return 0;
}

API cuDeviceGetCount(int *n) {
    const char *wish = getenv("FAKE_CUDA_CARDS");
    *n = wish ? atoi(wish) : CARDS;
    if (*n == 0) return CUDA_ERROR_NO_DEVICE;
    return initialised ? 0 : fake_refuse("cuDeviceGetCount", CUDA_ERROR_NOT_INITIALIZED, "before cuInit");
}

API cuDeviceGet(CUdevice *device, int ordinal) {
    *device = ordinal;
    return ordinal >= 0 && ordinal < CARDS_MOST ? 0 : CUDA_ERROR_INVALID_DEVICE;
}

API cuDeviceGetName(char *name, int size, CUdevice device) {
    snprintf(name, (size_t)size, "Test driver, no card %c", 'A' + device);
    return 0;
}

API cuDeviceGetPCIBusId(char *bus, int size, CUdevice device) {
    snprintf(bus, (size_t)size, "0000:%02X:00.0", 0x3a + device);
    return 0;
}

size_t fake_memory(void) { return fake_cuda.memory ? (size_t)fake_cuda.memory : (size_t)1 << 30; }

API cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
    (void)device;
    *bytes = fake_memory();
    return 0;
}

API cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
    const char *capability = getenv("FAKE_CUDA_CAPABILITY"); /* instead of 90 */
    const int c = capability ? atoi(capability) : 90;
    (void)device;
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = 1024; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: *value = 48 << 10; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *value = FAKE_SHARED_MOST; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 2; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_MODE: *value = 0; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = c / 10; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = c % 10; break;
    default: return fake_refuse("cuDeviceGetAttribute", CUDA_ERROR_INVALID_VALUE, "attribute %u", attribute);
    }
    return 0;
}

API cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    *context = &contexts[device];
    (*context)->users++;
    return 0;
}

API cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    if (!contexts[device].users)
        return fake_refuse("cuDevicePrimaryCtxRelease", CUDA_ERROR_INVALID_CONTEXT, "it was not retained");
    contexts[device].users--;
    return 0;
}

/* Destroys everything in the context. */
API cuDevicePrimaryCtxReset_v2(CUdevice device) {
    contexts[device].failed = 0;
    contexts[device].era++;
    fake_memory_reset(&contexts[device]);
    return 0;
}

API cuCtxPushCurrent_v2(CUcontext context) {
    if (depth == DEPTH)
        return fake_refuse("cuCtxPushCurrent", CUDA_ERROR_INVALID_VALUE, "pushed and never popped");
    stack[depth++] = context;
    return context ? 0 : fake_refuse("cuCtxPushCurrent", CUDA_ERROR_INVALID_CONTEXT, "no context");
}

API cuCtxPopCurrent_v2(CUcontext *context) {
    if (!depth) return fake_refuse("cuCtxPopCurrent", CUDA_ERROR_INVALID_CONTEXT, "there is none");
    *context = stack[--depth];
    return 0;
}

__attribute__((visibility("default"))) void fake_enter_card(int card) {
    cuCtxPushCurrent_v2(&contexts[card]);
}

__attribute__((visibility("default"))) void fake_leave_card(void) {
    CUcontext context;
    cuCtxPopCurrent_v2(&context);
}

/* ---- modules ---- */

/* Finds the static shared memory of a module. */
static void find_rooms(CUmodule module, const char *image) {
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)(const void *)image;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(const void *)(image + head->e_shoff);
    struct link_map *map;
    if (dlinfo(module->library, RTLD_DI_LINKMAP, &map) != 0) return;
    module->base = module->end = (const char *)(uintptr_t)map->l_addr;
    for (int i = 0; i < head->e_phnum; i++) {
        const Elf64_Phdr *p = (const Elf64_Phdr *)(const void *)(image + head->e_phoff) + i;
        const char *end = module->base + p->p_vaddr + p->p_memsz;
        if (p->p_type == PT_LOAD && end > module->end) module->end = end;
    }
    for (int i = 0; i < head->e_shnum; i++)
        if (strcmp(image + sections[head->e_shstrndx].sh_offset + sections[i].sh_name, ".bss") == 0) {
            module->rooms = (char *)(uintptr_t)(map->l_addr + sections[i].sh_addr);
            module->rooms_bytes = sections[i].sh_size;
        }
}

API cuModuleLoadData(CUmodule *module, const void *image) {
    CUresult error;
    ENTER("cuModuleLoadData");
    const Elf64_Ehdr *head = image;
    if (fake_is_ptx(image)) LEAVE(fake_ptx_load(context, module, image));
    if (memcmp(head->e_ident, ELFMAG, SELFMAG) != 0) LEAVE(CUDA_ERROR_INVALID_IMAGE);
    const size_t bytes = head->e_shoff + (size_t)head->e_shnum * head->e_shentsize;
    char path[64];
    const int file = memfd_create("cubin", 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    const bool written = file >= 0 && write(file, image, bytes) == (ssize_t)bytes;
    void *library = written ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library && file >= 0) close(file);
    if (!library) LEAVE(CUDA_ERROR_INVALID_IMAGE);
    *module = fake_make(context, FAKE_MODULE, sizeof **module);
    (*module)->library = library;
    find_rooms(*module, image);
    (*module)->file = file; /* kept open, since the loader identifies libraries by their paths */
    fake_cuda.modules++;
    LEAVE(0);
}

API cuModuleUnload(CUmodule module) {
    CUresult error;
    ENTER("cuModuleUnload");
    WANT(module, FAKE_MODULE);
    if (fake_pending(context))
        LEAVE(fake_refuse("cuModuleUnload", CUDA_ERROR_INVALID_VALUE, "kernels may be running"));
    for (int i = 0; i < module->n_functions; i++) module->functions[i].handle.alive = false;
    if (module->library) {
        dlclose(module->library);
        close(module->file);
    }
    fake_unmake(module);
    LEAVE(0);
}

/* Looks up what nvrtc.c made for a kernel: fake_WHAT_NAME. */
static void *look_up(CUmodule module, const char *what, const char *name) {
    char symbol[340];
    snprintf(symbol, sizeof symbol, "fake_%s_%s", what, name);
    return dlsym(module->library, symbol);
}

API cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    typedef const unsigned *sizes_of(unsigned *count);
    typedef unsigned threads_of(void);
    typedef int faults_of(void);
    CUresult error;
    ENTER("cuModuleGetFunction");
    WANT(module, FAKE_MODULE);
    if (module->ptx) LEAVE(fake_ptx_function(module, name, function));
    void *call = look_up(module, "call", name);
    if (!call) LEAVE(CUDA_ERROR_NOT_FOUND);
    for (int i = 0; i < module->n_functions; i++)
        if ((void *)(uintptr_t)module->functions[i].code.call == call) {
            *function = &module->functions[i];
            LEAVE(0);
        }
    if (module->n_functions == FAKE_FUNCTIONS) LEAVE(CUDA_ERROR_OUT_OF_MEMORY);
    CUfunction f = &module->functions[module->n_functions++];
    f->handle = (fake_handle){.kind = FAKE_FUNCTION, .alive = true, .context = context, .era = context->era};
    snprintf(f->name, sizeof f->name, "%s", name);
    f->code = (fake_code){.call = (fake_kernel)(uintptr_t)call,
                          .name = f->name,
                          .text = dlsym(module->library, "fake_text"),
                          .rooms = module->rooms,
                          .rooms_bytes = module->rooms_bytes,
                          .faults = ((faults_of *)(uintptr_t)look_up(module, "faults", name))(),
                          .file = module->file,
                          .base = module->base,
                          .end = module->end};
    f->sizes = ((sizes_of *)(uintptr_t)look_up(module, "sizes", name))(&f->n_arguments);
    f->most_threads = ((threads_of *)(uintptr_t)look_up(module, "threads", name))();
    f->static_shared =
        (unsigned)(uintptr_t)look_up(module, "rooms", name); /* a symbol whose address is a size */
    f->most_shared = FAKE_SHARED_STATIC - (int)f->static_shared;
    *function = f;
    LEAVE(0);
}
