/* Writes the kernel sources that a CUDA, a HIP or a WebGPU device would compile. The null device of a context
 * is changed so that it accepts what that device accepts, and writes the source of each launch to a file of
 * its own in a folder. Those for WebGPU are also translated; an error of the translator is a failure. Sources
 * in f64 are left out there. This needs no GPU and no library. */
#ifndef WEFT_TESTS_CUDA_SOURCES_H
#define WEFT_TESTS_CUDA_SOURCES_H

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "device/gpu/backend/program.h"
#include "device/gpu/backend/tune.h"
#include "device/webgpu/wgsl/wgsl.h"
#include "graph/graph.h"

/* Two GPUs with 100 multiprocessors: one of the oldest compute capability, one of a new one. Files of sources
 * that only the new GPU gets are named so, and are compiled for CUDA_SOURCES_NEW and later. */
static const weft_target cuda_sources_targets[] = {{.dialect = WEFT_DIALECT_CUDA,
                                                    .lanes = 256,
                                                    .units = 100,
                                                    .local_bytes = 48 << 10,
                                                    .most_local_bytes = 99 << 10,
                                                    .f64 = true,
                                                    .capability = 75},
                                                   {.dialect = WEFT_DIALECT_CUDA,
                                                    .lanes = 256,
                                                    .units = 100,
                                                    .local_bytes = 48 << 10,
                                                    .most_local_bytes = 227 << 10,
                                                    .f64 = true,
                                                    .capability = 90}};
enum { CUDA_SOURCES_OLD, CUDA_SOURCES_TARGETS = sizeof cuda_sources_targets / sizeof *cuda_sources_targets };
enum { CUDA_SOURCES_NEW = 80 };
#define CUDA_SOURCES_MARK ".new"
/* AMD's cards without matrix cores, and with those of 32 and of 64 lanes. Files of sources that only one of
 * the last two gets are named so. */
#define CUDA_SOURCES_HIP(cores)                                                                              \
    {                                                                                                        \
        .dialect = WEFT_DIALECT_CUDA, .lanes = 256, .units = 100, .local_bytes = 64 << 10,                   \
        .most_local_bytes = 64 << 10, .groups_most = UINT16_MAX, .f64 = true, .matrix_lanes = (cores)        \
    }
static const weft_target cuda_sources_hip[] = {CUDA_SOURCES_HIP(0), CUDA_SOURCES_HIP(32),
                                               CUDA_SOURCES_HIP(64)};
enum { CUDA_SOURCES_HIPS = sizeof cuda_sources_hip / sizeof *cuda_sources_hip };
static const char *const cuda_sources_marks[] = {"", ".wave32", ".wave64"};
/* WebGPU on cards, and on processors. */
#define CUDA_SOURCES_WGSL(processor)                                                                         \
    {                                                                                                        \
        .dialect = WEFT_DIALECT_WGSL, .lanes = 256, .units = 4, .local_bytes = 16 << 10,                     \
        .groups_most = INT32_MAX, .on_processor = (processor)                                                \
    }
static const weft_target cuda_sources_wgsl[] = {CUDA_SOURCES_WGSL(false), CUDA_SOURCES_WGSL(true)};
enum { CUDA_SOURCES_WGSLS = sizeof cuda_sources_wgsl / sizeof *cuda_sources_wgsl };

static struct {
    weft_device_ops ops; /* the null device's, except for two functions */
    const weft_device_ops *null;
    const char *folder;
    int count;
    weft_hash known[4096];
    bool failed;
    bool wgsl;        /* for WebGPU */
    bool hip;         /* for HIP */
    weft_tuner tuner; /* asked if one of its variants is forced */
} cuda_sources;

static inline const weft_target *cuda_sources_target(int i) {
    if (cuda_sources.hip) return &cuda_sources_hip[i];
    return cuda_sources.wgsl ? &cuda_sources_wgsl[i] : &cuda_sources_targets[i];
}

static inline void cuda_sources_translate(const char *path) {
    static char text[1 << 18];
    weft_wgsl_source *source;
    char message[300] = "the source is too long";
    FILE *file = fopen(path, "rb");
    const size_t n = file ? fread(text, 1, sizeof text, file) : sizeof text;
    if (file) fclose(file);
    text[n < sizeof text ? n : 0] = 0;
    if (n == sizeof text || weft__wgsl_read(NULL, text, &source, message, sizeof message) != WEFT_OK) {
        fprintf(stderr, "%s: %s\n", path, message);
        cuda_sources.failed = true;
    } else {
        weft__wgsl_free(source);
    }
}

/* Writes a source to the folder, unless the same source was written before. */
static inline bool cuda_sources_keep(const weft_launch *launch, int target) {
    const char *parts[WEFT_GPU_PRELUDE_MOST];
    const int n = weft__gpu_prelude_parts(cuda_sources_target(target)->dialect, launch->prelude, parts);
    char path[1024];
    weft_hash key;
    if (cuda_sources.wgsl && (launch->prelude & WEFT_PRELUDE_F64)) return true;
    weft__hash_init(&key);
    weft__hash_u64(&key, launch->prelude);
    weft__hash_str(&key, launch->source);
    snprintf(path, sizeof path, "%s/%.80s.%016" PRIx64 "%s.cu", cuda_sources.folder, launch->name, key.a,
             cuda_sources.hip             ? cuda_sources_marks[target]
             : target == CUDA_SOURCES_OLD ? ""
                                          : CUDA_SOURCES_MARK);
    for (int i = 0; i < cuda_sources.count; i++)
        if (weft__hash_equal(cuda_sources.known[i], key)) return true;
    if (cuda_sources.count == (int)(sizeof cuda_sources.known / sizeof *cuda_sources.known)) return false;
    FILE *file = fopen(path, "wb");
    if (!file) return false;
    cuda_sources.known[cuda_sources.count++] = key;
    for (int i = 0; i < n; i++) fputs(parts[i], file);
    fputs(launch->source, file);
    if (fclose(file) != 0) return false;
    if (cuda_sources.wgsl) cuda_sources_translate(path);
    return true;
}

static inline bool cuda_sources_takes(weft_device *device, const weft_heavy *heavy) {
    (void)device;
    return weft__gpu_takes(cuda_sources_target(CUDA_SOURCES_OLD), heavy);
}

static inline weft_status cuda_sources_build(weft_device *device, const weft_commands *commands,
                                             weft_executable **executable) {
    /* once as it is, and once with fused launches where they pay; WebGPU fuses none */
    const int variants = cuda_sources.wgsl  ? CUDA_SOURCES_WGSLS
                         : cuda_sources.hip ? 2 * CUDA_SOURCES_HIPS
                                            : 2 * CUDA_SOURCES_TARGETS;
    for (int i = 0; i < variants; i++) {
        const int each = cuda_sources.wgsl ? 1 : 2, target = i / each, fused = i % each;
        weft_arena arena;
        weft_gpu_paths paths = {0};
        weft__arena_init(&arena, device->ctx);
        weft_gpu_program program = {
            .launches = {.ctx = device->ctx,
                         .arena = &arena,
                         .target = cuda_sources_target(target),
                         .tuner = cuda_sources.tuner.forced ? &cuda_sources.tuner : NULL}};
        const weft_gpu_request request = {.paths = &paths, .fused = fused};
        const weft_status status = weft__gpu_program(&program, commands, &request);
        if (status != WEFT_OK) fprintf(stderr, "%s\n", weft_last_error(device->ctx));
        cuda_sources.failed = cuda_sources.failed || status != WEFT_OK;
        for (int l = 0; l < program.launches.count; l++)
            if (!cuda_sources_keep(&program.launches.list[l], target)) cuda_sources.failed = true;
        weft__gpu_program_free(&program);
        weft__free(device->ctx, paths.list);
        weft__arena_free(&arena);
    }
    return cuda_sources.null->build(device, commands, executable);
}

/* Starts writing sources. ctx must be open on "null". */
static inline void cuda_sources_write(weft_context *ctx, const char *folder) {
    cuda_sources.folder = folder;
    cuda_sources.null = ctx->device->ops;
    cuda_sources.ops = *ctx->device->ops;
    cuda_sources.ops.takes = cuda_sources_takes;
    cuda_sources.ops.build = cuda_sources_build;
    ctx->device->ops = &cuda_sources.ops;
    ctx->device->many_blocks = !cuda_sources.wgsl;
}

#endif
