/* The simulated GPU (tests/cuda/fake.h). For each of its checks there is a small kernel with a fault that
 * only this check finds, and the same kernel without the fault. Each runs in forward, reversed and random
 * order. The sound one must compute the expected values in each order, without a report. The faulty one must
 * be reported, with the kernel's name. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cuda/fake.h"
#include "device/cuda/cuda.h"
#include "device/gpu/driver/api.h"
#include "device/cuda/nvrtc.h"

enum { N = 1024 };

static fake_cuda_state *card;
static CUcontext context;
static weft_context host; /* for Weft's allocator */

/* A kernel k(float *out, const float *in, int *word). `in` has 0, 1, 2, ... */
typedef struct planted {
    const char *source; /* FAULT is 0 or 1 */
    const char *says;   /* what the report contains */
    unsigned blocks, threads, shared_bytes;
} planted;

static int set_up(void **state) {
    const weft__cuda_found *list;
    const char *why;
    (void)state;
    if (!weft__cuda_devices(&list, &why) || list[0].gpu.reason[0]) return 0;
    void *library = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_NOW);
    card = library ? dlsym(library, "fake_cuda") : NULL;
    if (!card || weft__nvrtc_open()) return 0;
    assert_int_equal(weft__cu.cuDevicePrimaryCtxRetain(&context, 0), 0);
    assert_int_equal(weft__cu.cuCtxPushCurrent_v2(context), 0);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    weft__strings_free(&host);
    if (!card) return 0;
    weft__cu.cuCtxPopCurrent_v2(&context);
    weft__cu.cuDevicePrimaryCtxRelease_v2(0);
    return 0;
}

/* ---- compiling and launching ---- */

/* Returns a cubin, or NULL and the compiler's log. The caller frees both with weft__free. */
static void *compile(const char *source, bool fault, char **log) {
    char whole[6000];
    size_t bytes;
    void *cubin = NULL;
    snprintf(whole, sizeof whole, "#define FAULT %d\n%s%s", fault,
             strstr(source, "__global__") ? "" : "extern \"C\" __global__ ", source);
    weft_nvrtc_job job = {.compiler = &weft__nvrtc, .source = whole, .arch = "sm_90"};
    weft__nvrtc_compile(&job);
    *log = weft__nvrtc_log(&host, &job);
    if (weft__nvrtc_take(&host, &job, "a test", &cubin, &bytes) != WEFT_OK) cubin = NULL;
    return cubin;
}

typedef struct loaded {
    CUmodule module;
    CUfunction function;
    CUstream stream;
    CUdeviceptr memory; /* out, in, word */
    float out[N];
} loaded;

static void load(loaded *l, const char *source, bool fault) {
    char *log;
    void *cubin = compile(source, fault, &log);
    float in[N];
    if (!cubin) fail_msg("%s", log);
    assert_int_equal(weft__cu.cuModuleLoadData(&l->module, cubin), 0);
    assert_int_equal(weft__cu.cuModuleGetFunction(&l->function, l->module, "k"), 0);
    assert_int_equal(weft__cu.cuStreamCreate(&l->stream, CU_STREAM_NON_BLOCKING), 0);
    assert_int_equal(weft__cu.cuMemAlloc_v2(&l->memory, 2 * sizeof in + sizeof(int)), 0);
    for (int i = 0; i < N; i++) in[i] = (float)i;
    assert_int_equal(weft__cu.cuMemcpyHtoDAsync_v2(l->memory + sizeof in, in, sizeof in, l->stream), 0);
    weft__free(&host, cubin);
    weft__free(&host, log);
}

static void unload(loaded *l) {
    assert_int_equal(weft__cu.cuMemFree_v2(l->memory), 0);
    assert_int_equal(weft__cu.cuStreamDestroy_v2(l->stream), 0);
    assert_int_equal(weft__cu.cuModuleUnload(l->module), 0);
}

static CUresult launch(const loaded *l, const unsigned blocks[3], const unsigned threads[3],
                       unsigned shared_bytes) {
    CUdeviceptr out = l->memory, in = out + sizeof l->out, word = in + sizeof l->out;
    void *values[] = {&out, &in, &word};
    return weft__cu.cuLaunchKernel(l->function, blocks[0], blocks[1], blocks[2], threads[0], threads[1],
                                   threads[2], shared_bytes, l->stream, values, NULL);
}

/* Runs a kernel once and fetches its result. Returns whether the GPU reported a fault. */
static bool runs(loaded *l, const planted *p) {
    const unsigned blocks[] = {p->blocks, 1, 1}, threads[] = {p->threads, 1, 1};
    const size_t words = 2 * sizeof l->out;
    card->reports = 0;
    assert_int_equal(weft__cu.cuMemsetD8Async(l->memory, 0, sizeof l->out, l->stream), 0);
    assert_int_equal(weft__cu.cuMemsetD8Async(l->memory + words, 0, sizeof(int), l->stream), 0);
    assert_int_equal(launch(l, blocks, threads, p->shared_bytes), 0);
    assert_int_equal(weft__cu.cuMemcpyDtoHAsync_v2(l->out, l->memory, sizeof l->out, l->stream), 0);
    const CUresult error = weft__cu.cuStreamSynchronize(l->stream);
    const bool reported = card->reports > 0;
    if (error) { /* a deadlock: the context is lost */
        assert_true(reported);
        assert_int_equal(weft__cu.cuDevicePrimaryCtxReset_v2(0), 0);
    }
    card->reports = 0;
    return reported;
}

enum { SEEDS = 8 };

/* Runs a kernel in all orders, with some seeds of each. Returns how often the GPU reported a fault or the
 * values are not those of the first run. */
static int failures(const planted *p, bool fault, const float *expected) {
    int count = 0;
    bool lost = false;
    loaded l;
    load(&l, p->source, fault);
    card->quiet = fault;
    for (long order = FAKE_FORWARD; order <= FAKE_RANDOM && !lost; order++)
        for (long seed = 1; seed <= SEEDS && !lost; seed++) {
            card->order = order, card->seed = seed;
            const long before = card->handles;
            const bool reported = runs(&l, p);
            lost = card->handles < before; /* the context was reset, and the memory is gone */
            if (reported && p->says && !strstr(card->report, p->says))
                fail_msg("\"%s\" is reported instead of \"%s\"", card->report, p->says);
            if (reported) assert_non_null(strstr(card->report, "k, line"));
            count += reported || (expected && memcmp(expected, l.out, sizeof l.out) != 0);
        }
    card->order = FAKE_ANY, card->seed = card->quiet = 0;
    if (!lost) unload(&l);
    return count;
}

/* expected: the result of the sound kernel. If the fault has no report, its results must be wrong. */
static void check(const planted *p, float (*expected)(int i)) {
    float values[N];
    if (!card) return skip();
    for (int i = 0; i < N; i++) values[i] = expected ? expected(i) : 0;
    assert_int_equal(failures(p, false, expected ? values : NULL), 0);
    assert_true(failures(p, true, expected ? values : NULL) > 0);
}

/* The same with a switch of the simulated GPU, which finds nothing without the switch. */
static void check_only_with(const char *variable, const planted *p, float (*expected)(int i)) {
    float values[N];
    if (!card) return skip();
    for (int i = 0; i < N; i++) values[i] = expected ? expected(i) : 0;
    assert_int_equal(failures(p, true, expected ? values : NULL), 0);
    setenv(variable, "1", 1);
    check(p, expected);
    unsetenv(variable);
}

/* ---- orders and shared memory ---- */

static float next_of_64(int i) { return i < 64 ? (float)((i + 1) % 64) : 0; }
static float once(int i) { return (float)i; }
static float block_sum(int i) { return i < 16 ? 64.0f * 63 / 2 : 0; }

/* Without the barrier the neighbour may not have written yet, in some order. */
static void test_order(void **state) {
    const planted p = {"void k(float *out, const float *in, int *word) {\n"
                       "    __shared__ float room[64];\n"
                       "    room[threadIdx.x] = in[threadIdx.x];\n"
                       "    if (!FAULT) __syncthreads();\n"
                       "    out[threadIdx.x] = room[(threadIdx.x + 1) % 64];\n}\n",
                       NULL, 1, 64, 0};
    (void)state;
    check(&p, next_of_64);
}

/* The last block to run overwrites what others need. */
static void test_order_of_blocks(void **state) {
    const planted p = {"void k(float *out, const float *in, int *word) {\n"
                       "    const int i = blockIdx.x * 64 + threadIdx.x;\n"
                       "    out[i] = FAULT && i >= 64 ? out[i - 64] + 64 : in[i];\n}\n",
                       NULL, 16, 64, 0};
    (void)state;
    check(&p, once);
}

/* Shared memory does not begin with 0, static or dynamic, and not with what the block before left. */
static void test_garbage(void **state) {
    static const char source[] = "void k(float *out, const float *in, int *word) {\n"
                                 "    %s\n"
                                 "    if (!FAULT && threadIdx.x == 0) *sum = 0;\n"
                                 "    __syncthreads();\n"
                                 "    atomicAdd((int *)sum, (int)in[threadIdx.x]);\n"
                                 "    __syncthreads();\n"
                                 "    if (threadIdx.x == 0) out[blockIdx.x] = *(int *)sum, *sum = 0;\n}\n";
    static const char *const rooms[] = {"__shared__ float room[1]; float *const sum = room;",
                                        "W_MORE_SHARED(float, sum);"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        char text[1000];
        snprintf(text, sizeof text, source, rooms[i]);
        check(&(planted){text, NULL, 16, 64, 64}, block_sum);
    }
}

/* Block 1 waits for block 0, which may not be resident. The sound kernel takes its number from a counter. */
static void test_spin(void **state) {
    const planted p = {"void k(float *out, const float *in, int *word) {\n"
                       "    const int mine = FAULT ? (int)blockIdx.x : atomicAdd(word, 1);\n"
                       "    while (FAULT && atomicAdd(word, 0) != 15 - mine) continue;\n"
                       "    if (FAULT) atomicAdd(word, 1);\n"
                       "    out[mine] = 2016;\n}\n",
                       "deadlock", 16, 1, 0};
    (void)state;
    if (!card) return skip();
    float values[N];
    for (int i = 0; i < N; i++) values[i] = block_sum(i);
    assert_int_equal(failures(&p, false, values), 0);
    card->order = FAKE_FORWARD;
    loaded l;
    load(&l, p.source, true);
    card->order = FAKE_FORWARD;
    assert_true(runs(&l, &p));
    assert_non_null(strstr(card->report, "deadlock"));
    card->order = FAKE_ANY;
}

/* ---- limits ---- */

static const char plain[] = "void k(float *out, const float *in, int *word) { out[0] = in[0]; }\n";
static const char bounded[] = "__launch_bounds__(64) void k(float *out, const float *in, int *word) {\n"
                              "    __shared__ float room[1024];\n"
                              "    room[threadIdx.x] = 1;\n"
                              "    out[0] = room[0];\n}\n";

static bool is_launched(const char *source, unsigned bx, unsigned by, unsigned bz, unsigned tx, unsigned ty,
                        unsigned tz, unsigned shared_bytes, int most_shared) {
    const unsigned blocks[] = {bx, by, bz}, threads[] = {tx, ty, tz};
    loaded l;
    load(&l, source, false);
    CUresult error =
        most_shared ? weft__cu.cuFuncSetAttribute(l.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                  most_shared)
                    : 0;
    if (!error) error = launch(&l, blocks, threads, shared_bytes);
    assert_int_equal(weft__cu.cuStreamSynchronize(l.stream), 0);
    unload(&l);
    assert_int_equal(card->refused, error ? 1 : 0);
    card->refused = 0;
    return !error;
}

static void test_limits_of_launches(void **state) {
    (void)state;
    if (!card) return skip();
    assert_true(is_launched(plain, 1, 65535, 1, 1, 1, 1, 0, 0));
    assert_false(is_launched(plain, 1, 65536, 1, 1, 1, 1, 0, 0));
    assert_false(is_launched(plain, 1, 1, 65536, 1, 1, 1, 0, 0));
    assert_true(is_launched(plain, 1, 1, 1, 1, 1, 64, 0, 0));
    assert_false(is_launched(plain, 1, 1, 1, 1, 1, 65, 0, 0));
    assert_true(is_launched(plain, 1, 1, 1, 1024, 1, 1, 0, 0));
    assert_false(is_launched(plain, 1, 1, 1, 1024, 2, 1, 0, 0));
    assert_true(is_launched(bounded, 1, 1, 1, 64, 1, 1, 0, 0));
    assert_false(is_launched(bounded, 1, 1, 1, 65, 1, 1, 0, 0));
    assert_true(is_launched(plain, 1, 1, 1, 1, 1, 1, 48 << 10, 0));
    assert_false(is_launched(bounded, 1, 1, 1, 1, 1, 1, 48 << 10, 0)); /* static and dynamic together */
    assert_true(is_launched(bounded, 1, 1, 1, 1, 1, 1, 44 << 10, 0));
    assert_true(is_launched(bounded, 1, 1, 1, 1, 1, 1, 223 << 10, 223 << 10));
    assert_false(is_launched(bounded, 1, 1, 1, 1, 1, 1, 227 << 10, 227 << 10));
}

static void refuses(const char *source, const char *says) {
    char *log;
    void *cubin = compile(source, false, &log);
    assert_non_null(cubin);
    weft__free(&host, cubin);
    weft__free(&host, log);
    cubin = compile(source, true, &log);
    assert_null(cubin);
    if (!strstr(log, says)) fail_msg("%s", log);
    weft__free(&host, log);
}

static void test_limits_of_source(void **state) {
    (void)state;
    if (!card) return skip();
    refuses("void k(float *out) {\n"
            "    __shared__ float room[12288];\n"
            "    __shared__ int more[1];\n"
            "    room[threadIdx.x] = 1;\n"
            "    if (FAULT) more[0] = threadIdx.x;\n"
            "    __syncthreads();\n"
            "    out[0] = room[0];\n"
            "    if (FAULT) out[1] = more[0];\n}\n",
            "uses too much shared data (0xc004 bytes, 0xc000 max)");
    refuses("struct many { int list[(4096 - 8) / 4 + FAULT]; };\n"
            "extern \"C\" __global__ void k(int *out, many numbers) { out[0] = numbers.list[0]; }\n",
            "too many bytes of arguments");
}

/* What the driver forbids while a graph is captured. */
static void test_captures(void **state) {
    (void)state;
    if (!card) return skip();
    loaded l;
    CUdeviceptr memory;
    CUgraph graph;
    CUevent event;
    load(&l, plain, false);
    assert_int_equal(weft__cu.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), 0);
    assert_int_equal(weft__cu.cuStreamBeginCapture_v2(l.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), 0);
    card->quiet = 1;
    assert_int_not_equal(weft__cu.cuMemAlloc_v2(&memory, 64), 0);
    assert_int_not_equal(weft__cu.cuMemFree_v2(l.memory), 0);
    assert_int_not_equal(weft__cu.cuStreamSynchronize(l.stream), 0);
    assert_int_not_equal(weft__cu.cuEventSynchronize(event), 0);
    assert_int_not_equal(weft__cu.cuStreamDestroy_v2(l.stream), 0);
    assert_int_equal(card->refused, 5);
    card->refused = card->quiet = 0;
    assert_int_equal(weft__cu.cuStreamEndCapture(l.stream, &graph), 0);
    assert_int_equal(weft__cu.cuGraphDestroy(graph), 0);
    assert_int_equal(weft__cu.cuEventDestroy_v2(event), 0);
    unload(&l);
}

/* A kernel does not wait for another stream without an event: in some order the second one comes first. */
static void test_streams(void **state) {
    (void)state;
    if (!card) return skip();
    static const char source[] = "void k(float *out, const float *in, int *word) {\n"
                                 "    out[0] = 2 * out[0];\n}\n";
    const unsigned blocks[] = {1, 1, 1}, one[] = {1, 1, 1};
    float out;
    bool first = false, second = false;
    loaded l;
    CUstream other, mine;
    load(&l, source, false);
    assert_int_equal(weft__cu.cuStreamSynchronize(l.stream), 0);
    assert_int_equal(weft__cu.cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), 0);
    mine = l.stream;
    for (int i = 0; i < 64; i++) {
        const float begin = 1;
        assert_int_equal(weft__cu.cuMemcpyHtoDAsync_v2(l.memory, &begin, sizeof begin, mine), 0);
        assert_int_equal(weft__cu.cuStreamSynchronize(mine), 0);
        l.stream = other;
        assert_int_equal(launch(&l, blocks, one, 0), 0); /* doubles the number */
        l.stream = mine;
        assert_int_equal(weft__cu.cuMemcpyDtoHAsync_v2(&out, l.memory, sizeof out, mine), 0);
        assert_int_equal(weft__cu.cuStreamSynchronize(mine), 0);
        assert_int_equal(weft__cu.cuStreamSynchronize(other), 0);
        first = first || out == 1;
        second = second || out == 2;
    }
    assert_true(first && second);
    assert_int_equal(weft__cu.cuStreamDestroy_v2(other), 0);
    unload(&l);
}

/* ---- barriers, warps, asynchronous copies ---- */

static float reversed(int i) { return i < 64 ? (float)(63 - i) : 0; }
static float zero(int i) { return 0 * (float)i; }
static float half_of(int i) { return i < 32 ? (float)((i + 16) % 32) : 0; }

static void test_barrier_after_return(void **state) {
    const planted p = {"void k(float *out, const float *in, int *word) {\n"
                       "    __shared__ float room[64];\n"
                       "    if (FAULT && threadIdx.x == 5) return;\n"
                       "    room[threadIdx.x] = in[threadIdx.x];\n"
                       "    __syncthreads();\n"
                       "    out[threadIdx.x] = room[63 - threadIdx.x];\n}\n",
                       "1 of 64 threads ended before this barrier", 1, 64, 0};
    (void)state;
    check(&p, reversed);
}

/* All threads arrive at a barrier, but not at the same one. */
static void test_two_barriers(void **state) {
    const planted p = {"void k(float *out, const float *in, int *word) {\n"
                       "    __shared__ float room[64];\n"
                       "    room[threadIdx.x] = in[threadIdx.x];\n"
                       "    if (FAULT && threadIdx.x >= 32) __syncthreads();\n"
                       "    else __syncthreads();\n"
                       "    out[threadIdx.x] = room[63 - threadIdx.x];\n}\n",
                       "waits at this barrier", 1, 64, 0};
    (void)state;
    check(&p, reversed);
}

/* The flag is read by each thread, and another block sets it meanwhile. The sound kernel reads it once. */
static void test_flag_of_another_block(void **state) {
    const planted p = {"void k(float *out, const float *in, int *word) {\n"
                       "    __shared__ int stop;\n"
                       "    if (FAULT && *word) return;\n"
                       "    if (threadIdx.x == 0) stop = *word;\n"
                       "    __syncthreads();\n"
                       "    if (stop) return;\n"
                       "    if (in[threadIdx.x] == 40) atomicCAS(word, 0, 1);\n"
                       "    __syncthreads();\n}\n",
                       "threads ended before this barrier", 16, 64, 0};
    (void)state;
    check(&p, NULL);
}

/* The same flag, which the simulated GPU sets in the midst of a launch. */
static void test_recorded_fault(void **state) {
    const planted p = {"struct w_faults { int set; };\n"
                       "extern \"C\" __global__ void k(float *out, const float *in, w_faults *faults) {\n"
                       "    __shared__ int stop;\n"
                       "    if (FAULT && faults->set) return;\n"
                       "    if (threadIdx.x == 0) stop = faults->set;\n"
                       "    __syncthreads();\n"
                       "    if (stop) return;\n"
                       "    __syncthreads();\n}\n",
                       "threads ended before this barrier", 2, 64, 0};
    (void)state;
    if (!card) return skip();
    card->raise = 1, card->raised = 0;
    check(&p, NULL);
    assert_true(card->raised > 0);
    card->raise = 0;
}

static void test_masks(void **state) {
    static const planted list[] = {
        {"void k(float *out, const float *in, int *word) { /* the mask lacks lanes that use it */\n"
         "    out[threadIdx.x] = __shfl_xor_sync(FAULT ? 0xffffu : ~0u, in[threadIdx.x], 16);\n}\n",
         "does not name lane", 1, 32, 0},
        {"void k(float *out, const float *in, int *word) { /* a lane that the mask names is absent */\n"
         "    if (FAULT && threadIdx.x == 3) return;\n"
         "    out[threadIdx.x] = __shfl_xor_sync(~0u, in[threadIdx.x], 16);\n}\n",
         "ended, and the mask", 1, 32, 0},
        {"void k(float *out, const float *in, int *word) { /* two places */\n"
         "    float x = in[threadIdx.x];\n"
         "    if (FAULT && threadIdx.x >= 16) x = __shfl_xor_sync(~0u, x, 16);\n"
         "    else x = __shfl_xor_sync(~0u, x, 16);\n"
         "    out[threadIdx.x] = x;\n}\n",
         "deadlock", 1, 32, 0},
        {"void k(float *out, const float *in, int *word) { /* half of a warp waits for all of it */\n"
         "    float x = in[(threadIdx.x + 16) % 32];\n"
         "    if (threadIdx.x < 16) __syncwarp(FAULT ? ~0u : 0xffffu);\n"
         "    __syncthreads();\n"
         "    out[threadIdx.x] = x;\n}\n",
         "deadlock", 1, 32, 0},
    };
    (void)state;
    for (int i = 0; i < 4; i++) check(&list[i], half_of);
}

/* A block of 16 threads takes values of lanes that do not exist. */
static void test_absent_lane(void **state) {
    const planted p = {
        "void k(float *out, const float *in, int *word) {\n"
        "    float x = in[threadIdx.x];\n"
        "    for (int by = FAULT ? 16 : 8; by > 0; by /= 2) x += __shfl_down_sync(0xffffu, x, by);\n"
        "    if (threadIdx.x == 0) out[0] = x - 120;\n}\n",
        NULL, 1, 16, 0};
    (void)state;
    check(&p, zero);
}

/* What is copied is garbage before the wait, and before a barrier if another thread copies it. */
static void test_copies(void **state) {
    static const char source[] =
        "void k(float *out, const float *in, int *word) {\n"
        "    __shared__ __align__(16) float room[64];\n"
        "    const int i = threadIdx.x, from = %s ? 63 - i : i;\n"
        "    const unsigned to = (unsigned)__cvta_generic_to_shared(room + i);\n"
        "    asm volatile(\"cp.async.ca.shared.global [%%0], [%%1], %%2, %%3;\" ::\"r\"(to), \"l\"(in + i),\n"
        "                 \"n\"(4), \"r\"(4) : \"memory\");\n"
        "    asm volatile(\"cp.async.commit_group;\" ::: \"memory\");\n"
        "    asm volatile(\"cp.async.wait_group %%0;\" ::\"n\"(%s) : \"memory\");\n"
        "    if (!(%s)) __syncthreads();\n"
        "    out[i] = %s ? room[from] : room[63 - i];\n}\n";
    static const char *const faults[][4] = {{"0", "FAULT", "0", "0"}, {"1", "0", "FAULT", "1"}};
    (void)state;
    for (int i = 0; i < 2; i++) {
        char text[1500];
        const char *const *f = faults[i];
        snprintf(text, sizeof text, source, f[0], f[1], f[2], f[3]);
        check(&(planted){text, NULL, 1, 64, 0}, reversed);
    }
}

/* ---- races ---- */

/* What the race detector finds, in kernels that compute the right values in most orders, or in all. */
static const planted races[] = {
    {"void k(float *out, const float *in, int *word) { /* two warps, without a barrier */\n"
     "    __shared__ float room[64];\n"
     "    room[threadIdx.x] = in[threadIdx.x];\n"
     "    if (!FAULT) __syncthreads();\n"
     "    out[threadIdx.x] = room[threadIdx.x ^ 32];\n}\n",
     "reads shared memory that", 1, 64, 0},
    {"void k(float *out, const float *in, int *word) { /* one warp */\n"
     "    __shared__ float room[32];\n"
     "    room[threadIdx.x] = in[threadIdx.x];\n"
     "    __syncwarp(~0u);\n"
     "    const float x = room[threadIdx.x ^ 1];\n"
     "    if (!FAULT) __syncwarp(~0u);\n"
     "    room[threadIdx.x] = x;\n"
     "    out[threadIdx.x] = room[threadIdx.x];\n}\n",
     "shared memory that thread", 1, 32, 0},
    {"void k(float *out, const float *in, int *word) { /* a mask that does not name the other lane */\n"
     "    __shared__ float room[32];\n"
     "    const unsigned half = 0xffffu << (threadIdx.x & 16);\n"
     "    room[threadIdx.x] = in[threadIdx.x];\n"
     "    __syncwarp(FAULT ? half : ~0u);\n"
     "    out[threadIdx.x] = room[threadIdx.x ^ 16];\n}\n",
     "reads shared memory that", 1, 32, 0},
    {"void k(float *out, const float *in, int *word) { /* two blocks write the same byte */\n"
     "    ((char *)out)[blockIdx.x * 64 + threadIdx.x - (FAULT && blockIdx.x)] = 1;\n}\n",
     "writes global memory that thread", 2, 64, 0},
    {"void k(float *out, const float *in, int *word) { /* two threads add without atomics */\n"
     "    if (FAULT) *word += 1;\n"
     "    else atomicAdd(word, 1);\n}\n",
     "global memory that thread", 2, 64, 0},
    {"struct alignas(16) four { float x[4]; };\n"
     "extern \"C\" __global__ void k(four *out, const float *in, int *word) { /* not at a multiple of 16 "
     "bytes */\n"
     "    four f = *(const four *)(in + 4 + FAULT * 2);\n"
     "    out[threadIdx.x] = f;\n}\n",
     "not aligned", 1, 8, 0},
    {"void k(float *out, const float *in, int *word) {\n"
     "    __shared__ float room[64];\n"
     "    if (!FAULT || threadIdx.x != 3) room[threadIdx.x] = in[threadIdx.x];\n"
     "    __syncthreads();\n"
     "    out[threadIdx.x] = 0 * room[63 - threadIdx.x];\n}\n",
     "no thread of its block has written", 1, 64, 0},
    {"void k(float *out, const float *in, int *word) { out[0] = word[FAULT]; }\n", "beyond an allocation", 1,
     1, 0},
    {"void k(float *out, const float *in, int *word) {\n"
     "    W_MORE_SHARED(float, room);\n"
     "    room[threadIdx.x + FAULT] = 1;\n}\n",
     "beyond the dynamic shared memory", 1, 64, 256},
};

static void test_races(void **state) {
    (void)state;
    if (!card) return skip();
    setenv("FAKE_CUDA_RACES", "1", 1);
    for (size_t i = 0; i < sizeof races / sizeof *races; i++) check(&races[i], NULL);
    unsetenv("FAKE_CUDA_RACES");
}

/* ---- races between launches ---- */

typedef enum second { A_LAUNCH, A_COPY, A_FILL, A_NODE, SECONDS } second;

/* A launch in a graph, and perhaps another one after it. */
static void launch_graph(const loaded *l, bool ordered) {
    CUdeviceptr out = l->memory, in = out + sizeof l->out, word = in + sizeof l->out;
    void *values[] = {&out, &in, &word};
    const CUDA_KERNEL_NODE_PARAMS_v2 p = {.func = l->function,
                                          .gridDimX = 1,
                                          .gridDimY = 1,
                                          .gridDimZ = 1,
                                          .blockDimX = 32,
                                          .blockDimY = 1,
                                          .blockDimZ = 1,
                                          .kernelParams = values};
    CUgraph graph;
    CUgraphNode nodes[3];
    CUgraphExec executable;
    assert_int_equal(weft__cu.cuGraphCreate(&graph, 0), 0);
    for (int i = 0; i < 3; i++) { /* the third one waits for the first one, too, by the second */
        const bool waits = i && ordered;
        assert_int_equal(
            weft__cu.cuGraphAddKernelNode_v2(&nodes[i], graph, waits ? &nodes[i - 1] : NULL, waits, &p), 0);
    }
    assert_int_equal(weft__cu.cuGraphInstantiateWithFlags(&executable, graph, 0), 0);
    assert_int_equal(weft__cu.cuGraphLaunch(executable, l->stream), 0);
    assert_int_equal(weft__cu.cuStreamSynchronize(l->stream), 0);
    assert_int_equal(weft__cu.cuGraphExecDestroy(executable), 0);
    assert_int_equal(weft__cu.cuGraphDestroy(graph), 0);
}

/* Runs a kernel, and something else that writes the same bytes in another stream. Both write the same values,
 * so no order shows a fault. Returns the number of reports. */
static long reports_of(loaded *l, second what, bool ordered) {
    const unsigned one[] = {1, 1, 1}, threads[] = {32, 1, 1};
    const CUstream mine = l->stream;
    CUstream other;
    CUevent event;
    float zeros[8] = {0};
    card->reports = 0;
    if (what == A_NODE) {
        launch_graph(l, ordered);
        return card->reports;
    }
    assert_int_equal(weft__cu.cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), 0);
    assert_int_equal(weft__cu.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), 0);
    assert_int_equal(launch(l, one, threads, 0), 0);
    assert_int_equal(weft__cu.cuEventRecord(event, mine), 0);
    if (ordered) assert_int_equal(weft__cu.cuStreamWaitEvent(other, event, 0), 0);
    l->stream = other;
    if (what == A_LAUNCH) assert_int_equal(launch(l, one, threads, 0), 0);
    if (what == A_COPY)
        assert_int_equal(weft__cu.cuMemcpyHtoDAsync_v2(l->memory, zeros, sizeof zeros, other), 0);
    if (what == A_FILL) assert_int_equal(weft__cu.cuMemsetD8Async(l->memory + 124, 0, 4, other), 0);
    l->stream = mine;
    assert_int_equal(weft__cu.cuStreamSynchronize(other), 0);
    assert_int_equal(weft__cu.cuStreamSynchronize(mine), 0);
    assert_int_equal(weft__cu.cuEventDestroy_v2(event), 0);
    assert_int_equal(weft__cu.cuStreamDestroy_v2(other), 0);
    return card->reports;
}

static void test_races_between_launches(void **state) {
    static const char source[] = "void k(float *out, const float *in, int *word) {\n"
                                 "    out[threadIdx.x] = 0 * in[threadIdx.x];\n}\n";
    (void)state;
    if (!card) return skip();
    for (int watched = 0; watched < 2; watched++) {
        loaded l;
        if (watched) setenv("FAKE_CUDA_RACES", "1", 1);
        load(&l, source, false);
        assert_int_equal(weft__cu.cuStreamSynchronize(l.stream), 0);
        for (second what = A_LAUNCH; what < SECONDS; what++) {
            assert_int_equal(reports_of(&l, what, true), 0);
            card->quiet = 1;
            assert_int_equal(reports_of(&l, what, false) > 0, watched);
            card->quiet = 0;
            if (watched) assert_non_null(strstr(card->report, "and nothing orders the two"));
        }
        card->reports = 0;
        unload(&l);
    }
    unsetenv("FAKE_CUDA_RACES");
}

/* A copy reads pinned memory when its turn comes, not when it is submitted. */
static void test_changed_source(void **state) {
    (void)state;
    if (!card) return skip();
    loaded l;
    void *memory;
    load(&l, plain, false);
    assert_int_equal(weft__cu.cuMemHostAlloc(&memory, 64, CU_MEMHOSTALLOC_PORTABLE), 0);
    memset(memory, 0, 64);
    for (int early = 0; early < 2; early++) {
        assert_int_equal(weft__cu.cuMemcpyHtoDAsync_v2(l.memory, memory, 64, l.stream), 0);
        if (!early) assert_int_equal(weft__cu.cuStreamSynchronize(l.stream), 0);
        card->quiet = 1;
        ((char *)memory)[63]++;
        assert_int_equal(weft__cu.cuStreamSynchronize(l.stream), 0);
        card->quiet = 0;
        assert_int_equal(card->refused, early);
    }
    card->refused = 0;
    assert_int_equal(weft__cu.cuMemFreeHost(memory), 0);
    unload(&l);
}

/* ---- delayed stores ---- */

static float parts_and_sum(int i) { return i < 16 ? (float)(i + 1) : i == 16 ? 136 : 0; }
static float data_and_flag(int i) { return i == 100 || i == 101 ? 1 : 0; }
static float neighbour(int i) { return i < 32 ? (float)i : i < 64 ? (float)((i - 32) ^ 1) : 0; }

/* What is right in every order as long as stores are visible at once. */
static void test_delayed_stores(void **state) {
    static const char sum[] =
        "void k(float *out, const float *in, int *word) { /* the last block adds up */\n"
        "    if (threadIdx.x) return;\n"
        "    out[blockIdx.x] = in[blockIdx.x + 1];\n"
        "    %s;\n"
        "    if (atomicAdd(word, 1) != 15) return;\n"
        "    float all = 0;\n"
        "    for (int i = 0; i < 16; i++) all += ((volatile float *)out)[i];\n"
        "    out[16] = all;\n}\n";
    static const char *const fences[] = {"if (!FAULT) __threadfence()",
                                         "if (FAULT) __threadfence_block(); else __threadfence()",
                                         "if (FAULT) __syncwarp(1); else __threadfence()"};
    const planted flag = {
        "void k(float *out, const float *in, int *word) { /* a flag says that there are data */\n"
        "    volatile float *const data = out + 100, *const flag = out + 101;\n"
        "    if (blockIdx.x == 7) {\n"
        "        *data = 1;\n"
        "        if (!FAULT) __threadfence();\n"
        "        *flag = 1;\n"
        "    } else if (*flag == 1 && *data != 1) {\n"
        "        out[0] = 1;\n"
        "    }\n}\n",
        NULL, 64, 1, 0};
    const planted warp = {"void k(float *out, const float *in, int *word) { /* a shuffle is no barrier */\n"
                          "    out[threadIdx.x] = in[threadIdx.x];\n"
                          "    if (FAULT) __shfl_sync(~0u, 0, 0); else __syncwarp();\n"
                          "    out[threadIdx.x + 32] = ((volatile float *)out)[threadIdx.x ^ 1];\n}\n",
                          NULL, 1, 32, 0};
    (void)state;
    for (int i = 0; i < 3; i++) {
        char text[1000];
        snprintf(text, sizeof text, sum, fences[i]);
        check_only_with("FAKE_CUDA_DELAYS", &(planted){text, NULL, 16, 32, 0}, parts_and_sum);
    }
    check_only_with("FAKE_CUDA_DELAYS", &flag, data_and_flag);
    check_only_with("FAKE_CUDA_DELAYS", &warp, neighbour);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_order_of_blocks),
        cmocka_unit_test(test_garbage),
        cmocka_unit_test(test_limits_of_launches),
        cmocka_unit_test(test_limits_of_source),
        cmocka_unit_test(test_captures),
        cmocka_unit_test(test_streams),
        cmocka_unit_test(test_barrier_after_return),
        cmocka_unit_test(test_two_barriers),
        cmocka_unit_test(test_flag_of_another_block),
        cmocka_unit_test(test_recorded_fault),
        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_absent_lane),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_races),
        cmocka_unit_test(test_races_between_launches),
        cmocka_unit_test(test_changed_source),
        cmocka_unit_test(test_delayed_stores),
        cmocka_unit_test(test_spin),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
