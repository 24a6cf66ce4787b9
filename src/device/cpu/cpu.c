/* The CPU device: the functions of weft_device_ops. Programs are in run.c. tile/kernel_plan.c and
 * heavy/heavy.c prepare what they run.
 * Must not know: graphs. Read next: run.c. */
#ifndef _DEFAULT_SOURCE
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, madvise */
#endif
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/threads.h"
#include "device/cpu/run.h"
#include "device/cpu/tile/tiles.h"
#include "device/module.h"

#define HUGE_PAGE ((size_t)2 << 20)

typedef struct cpu_buffer {
    weft_buffer base;
    void *mapped; /* start of the mapping; NULL if weft__alloc_aligned gave the memory */
    size_t mapped_bytes;
} cpu_buffer;

/* ---- description ---- */

static char detail[224];
static pthread_once_t detail_once = PTHREAD_ONCE_INIT;

static void make_detail(void) {
    const int threads = weft__default_threads();
    snprintf(detail, sizeof detail, "%s%s, %s, %d thread%s", weft__cpu_isa_name(weft__cpu_isa()),
             weft__cpu_isa_known() ? "" : " (WEFT_CPU_ISA: must be baseline, avx2 or avx512)",
             weft__cpu_matmul_description(), threads, threads == 1 ? "" : "s");
}

static void cpu_describe(const weft_device_module *module, int i, weft_device_description *d) {
    (void)module, (void)i;
    pthread_once(&detail_once, make_detail);
    *d = (weft_device_description){.name = "cpu",
                                   .detail = detail,
                                   .present = true,
                                   .threads = weft__default_threads(),
                                   .memory = weft__host_memory()};
}

/* ---- open and close ---- */

static weft_status cpu_open(const weft_device_module *module, weft_context *ctx, const char *selector,
                            const weft_open_options *options, weft_device **device) {
    (void)selector;
    if (weft__cpu_isa_lacks())
        return weft__fail(
            ctx, WEFT_ERR_UNSUPPORTED,
            "cpu: this build runs only on processors with %s, such as that of the machine where 'make "
            "demo' made it: run 'make' there or here, which builds for all processors",
            weft__cpu_isa_lacks());
    weft_cpu_device *d = weft__zalloc(ctx, sizeof *d);
    if (!d) return weft__fail_oom(ctx, sizeof *d, "the cpu device");
    d->base.ops = module->ops;
    d->base.ctx = ctx;
    d->base.name = "cpu";
    d->pool = weft__thread_pool_new(ctx, options ? options->threads : 0);
    if (!d->pool) {
        weft__free(ctx, d);
        return weft__fail_oom(ctx, 4096, "the threads of the cpu device");
    }
    d->base.threads = weft__thread_pool_size(d->pool);
    *device = &d->base;
    return WEFT_OK;
}

static bool outline_takes(const weft_target *target, const weft_heavy *heavy) {
    (void)target;
    return weft__cpu_heavy_takes(heavy);
}

static weft_status cpu_outline(const weft_device_module *module, weft_context *ctx, const char *selector,
                               weft_device_outline *outline) {
    weft_device_description d;
    (void)ctx, (void)selector;
    cpu_describe(module, 0, &d);
    snprintf(outline->name, sizeof outline->name, "cpu");
    snprintf(outline->detail, sizeof outline->detail, "%s", d.detail);
    outline->memory = d.memory;
    outline->takes = outline_takes;
    return WEFT_OK;
}

static uint64_t cpu_memory_free(weft_device *device) {
    (void)device;
    return weft__host_memory_free();
}

static void cpu_close(weft_device *device) {
    if (!device) return;
    weft__thread_pool_free(((weft_cpu_device *)device)->pool);
    weft__free(device->ctx, device);
}

static weft_status cpu_check_dtype(weft_device *device, weft_dtype dtype) {
    if (weft__ct(dtype) != WEFT_CT_COUNT || weft_dtype_is_complex(dtype)) return WEFT_OK;
    return weft__fail(device->ctx, WEFT_ERR_DTYPE, "the cpu device does not compute in %s",
                      weft_dtype_name(dtype));
}

/* ---- memory ---- */

/* Maps fresh huge pages, aligned to the size of one. With 4 KiB pages, the page faults of a large result
 * would cost more than computing it. */
static bool map_huge(cpu_buffer *b, size_t bytes) {
    if (bytes > PTRDIFF_MAX - 2 * HUGE_PAGE) return false;
    size_t whole = (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE + HUGE_PAGE;
    char *p = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return false;
    char *host = p + (HUGE_PAGE - (size_t)((uintptr_t)p % HUGE_PAGE)) % HUGE_PAGE;
#ifdef MADV_HUGEPAGE
    madvise(host, whole - (size_t)(host - p), MADV_HUGEPAGE);
#endif
    b->base.host = host;
    b->base.zero = true;
    b->mapped = p;
    b->mapped_bytes = whole;
    return true;
}

static weft_status cpu_buffer_new(weft_device *device, size_t bytes, weft_buffer **buffer) {
    cpu_buffer *b = weft__zalloc(device->ctx, sizeof *b);
    if (!b) return weft__fail_oom(device->ctx, sizeof *b, "a buffer");
    b->base.bytes = bytes;
    bool ours = device->ctx && device->ctx->caller.alloc; /* a user's allocator must see every allocation */
    if (!(bytes >= HUGE_PAGE && !ours && map_huge(b, bytes)))
        b->base.host = weft__alloc_aligned(device->ctx, bytes);
    if (!b->base.host) {
        weft__free(device->ctx, b);
        return weft__fail(device->ctx, WEFT_ERR_OOM,
                          "out of memory: a buffer of %zu bytes on the cpu device, which has %llu in use",
                          bytes, (unsigned long long)device->bytes_in_use);
    }
    device->bytes_in_use += bytes;
    if (device->bytes_in_use > device->bytes_peak) device->bytes_peak = device->bytes_in_use;
    *buffer = &b->base;
    return WEFT_OK;
}

static void cpu_buffer_free(weft_device *device, weft_buffer *buffer) {
    if (!buffer) return;
    cpu_buffer *b = (cpu_buffer *)buffer;
    device->bytes_in_use -= buffer->bytes;
    if (b->mapped)
        munmap(b->mapped, b->mapped_bytes);
    else
        weft__free_aligned(device->ctx, buffer->host);
    weft__free(device->ctx, b);
}

static bool inside(const weft_buffer *b, size_t offset, size_t bytes) {
    return offset <= b->bytes && bytes <= b->bytes - offset;
}

static weft_status cpu_upload(weft_device *device, weft_buffer *to, size_t offset, const void *from,
                              size_t bytes) {
    if (!inside(to, offset, bytes))
        return weft__fail(device->ctx, WEFT_ERR_INTERNAL, "upload: %zu bytes at %zu do not fit into %zu",
                          bytes, offset, to->bytes);
    if (bytes) memcpy((char *)to->host + offset, from, bytes);
    return WEFT_OK;
}

static weft_status cpu_download(weft_device *device, const weft_buffer *from, size_t offset, void *to,
                                size_t bytes) {
    if (!inside(from, offset, bytes))
        return weft__fail(device->ctx, WEFT_ERR_INTERNAL, "download: %zu bytes at %zu do not lie in %zu",
                          bytes, offset, from->bytes);
    if (bytes) memcpy(to, (const char *)from->host + offset, bytes);
    return WEFT_OK;
}

static weft_status cpu_zero(weft_device *device, weft_buffer *to, size_t offset, size_t bytes) {
    if (!inside(to, offset, bytes))
        return weft__fail(device->ctx, WEFT_ERR_INTERNAL, "%zu zeros at %zu do not fit into %zu", bytes,
                          offset, to->bytes);
    if (bytes) memset((char *)to->host + offset, 0, bytes);
    return WEFT_OK;
}

/* ---- the rest ---- */

static bool cpu_takes(weft_device *device, const weft_heavy *heavy) {
    (void)device;
    return weft__cpu_heavy_takes(heavy);
}

/* A run is complete when it returns, so there is nothing to wait for. */
static weft_status cpu_synchronize(weft_device *device) {
    (void)device;
    return WEFT_OK;
}

static weft_status cpu_take_fault(weft_device *device, weft_fault *fault) {
    weft_cpu_device *d = (weft_cpu_device *)device;
    *fault = d->fault;
    memset(&d->fault, 0, sizeof d->fault);
    return WEFT_OK;
}

static void cpu_set_timing(weft_device *device, bool on) { ((weft_cpu_device *)device)->timing = on; }

static const weft_timing *cpu_timings(weft_device *device, const weft_executable *executable) {
    return ((weft_cpu_device *)device)->timing ? executable->timings : NULL;
}

void weft__cpu_fault(weft_fault *fault, weft_fault_kind kind, const char *path, int64_t value, int64_t bound,
                     int64_t element) {
    if (fault->set) return;
    *fault = (weft_fault){.kind = kind, .path = path, .value = value, .bound = bound, .element = element};
    fault->set = 1;
}

static int cpu_threads_of(const weft_executable *executable) { return executable->threads; }

static const weft_device_extras extras = {
    .memory_free = cpu_memory_free,
    .threads_of = cpu_threads_of,
    .set_timing = cpu_set_timing,
    .timings = cpu_timings,
};

static const weft_device_ops ops = {
    .name = "cpu",
    .extras = &extras,
    .close = cpu_close,
    .check_dtype = cpu_check_dtype,
    .buffer_new = cpu_buffer_new,
    .buffer_free = cpu_buffer_free,
    .upload = cpu_upload,
    .download = cpu_download,
    .zero = cpu_zero,
    .takes = cpu_takes,
    .build = weft__cpu_build,
    .executable_free = weft__cpu_executable_free,
    .run = weft__cpu_run,
    .synchronize = cpu_synchronize,
    .take_fault = cpu_take_fault,
};

static const char *find_matmuls(char text[WEFT_COMPONENT_TEXT]) {
    pthread_once(&detail_once, make_detail);
    snprintf(text, WEFT_COMPONENT_TEXT, "%s", detail);
    return strstr(detail, "own kernels") ? detail : NULL;
}

static const weft_device_component components[] = {{"matmuls", "oneDNN 2, MKL, OpenBLAS",
                                                    "Debian: libdnnl2, libopenblas0; PyPI: mkl",
                                                    "Weft's own kernels compute matmuls", find_matmuls},
                                                   {.name = NULL}};

const weft_device_module weft__device_cpu = {
    .ops = &ops,
    .serves = "every processor",
    .components = components,
    .describe = cpu_describe,
    .open = cpu_open,
    .outline = cpu_outline,
};
