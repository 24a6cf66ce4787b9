/* prelude/tensor.cu, on a GPU or on the simulated driver of tests/cuda. Checks that each element of each
 * fragment is where the header says, by matmuls of small integers compared with plain sums. Also checks rows
 * of matrices and their transposes from shared memory, and partial copies, whose rest must be 0. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <cmocka.h>

#include "device/cuda/nvrtc.h"
#include "gpu.h"

#define COUNT(x) ((int)(sizeof(x) / sizeof *(x)))

/* One warp. `what`: 0 f16, 1 bf16, 2 TF32. */
static const char kernels[] =
    "W_ENTRY void multiply(const uint *a, const uint *b, float *d, int what) {\n"
    "    const int lane = (int)threadIdx.x;\n"
    "    uint x[4], y[2];\n"
    "    float s[4];\n"
    "    for (int i = 0; i < 4; i++) x[i] = a[lane * 4 + i], s[i] = d[lane * 4 + i];\n"
    "    for (int i = 0; i < 2; i++) y[i] = b[lane * 2 + i];\n"
    "    if (what == 0) w_mma_f16(s, x, y);\n"
    "#if __CUDA_ARCH__ >= 800\n"
    "    if (what == 1) w_mma_bf16(s, x, y);\n"
    "    if (what == 2) w_mma_tf32(s, x, y);\n"
    "#endif\n"
    "    for (int i = 0; i < 4; i++) d[lane * 4 + i] = s[i];\n"
    "}\n"
    "W_ENTRY void matrices(const uint *from, uint *to) {\n"
    "    const int lane = (int)threadIdx.x;\n"
    "    __shared__ uint room[32 * 8] __attribute__((aligned(16)));\n" /* rows of 32 bytes, of which 16 are
                                                                          used */
    "    for (int i = 0; i < 8; i++) room[lane * 8 + i] = from[lane * 8 + i];\n"
    "    w_barrier();\n"
    "    w_ldmatrix4(to + lane * 8, w_local_at(room + lane * 8));\n"
    "    w_ldmatrix4_turned(to + lane * 8 + 4, w_local_at(room + lane * 8));\n"
    "}\n"
    "W_ENTRY void copies(const uchar *from, uint *to) {\n"
    "    const int lane = (int)threadIdx.x, count = lane % 9 * 2;\n"
    "    __shared__ uint room[32 * 12] __attribute__((aligned(16)));\n"
    "    for (int i = 0; i < 12; i++) room[lane * 12 + i] = ~0u;\n"
    "    w_copy16(w_local_at(room + lane * 12), from + lane * 16, count);\n"
    "    w_copy_group();\n"
    "    w_copy8(w_local_at(room + lane * 12 + 4), from + lane * 16 + 8, count < 8 ? count : 8);\n"
    "    w_copy_group();\n"
    "    w_copy4(w_local_at(room + lane * 12 + 8), from + lane * 16 + 4, count < 4 ? count : 4);\n"
    "    w_copy_group();\n"
    "    w_copy_wait<1>();\n"
    "    for (int i = 0; i < 8; i++) to[lane * 12 + i] = room[lane * 12 + i];\n"
    "    w_copy_wait<0>();\n"
    "    for (int i = 8; i < 12; i++) to[lane * 12 + i] = room[lane * 12 + i];\n"
    "}\n"
    "W_ENTRY void rounded(const float *from, uint *to) {\n"
    "    const int lane = (int)threadIdx.x;\n"
    "    to[lane * 3] = w_pair_f16(from[lane], from[31 - lane]);\n"
    "#if __CUDA_ARCH__ >= 800\n"
    "    to[lane * 3 + 1] = w_pair_bf16(from[lane], from[31 - lane]);\n"
    "    to[lane * 3 + 2] = w_tf32(from[lane]);\n"
    "#endif\n"
    "}\n";

typedef struct fixture {
    weft_context ctx;
    weft__cuda *d;
    CUmodule module;
} fixture;

static void compile(fixture *f) {
    const char *parts[WEFT_GPU_PRELUDE_MOST];
    const int n = weft__gpu_prelude_parts(WEFT_DIALECT_CUDA, WEFT_PRELUDE_TENSOR, parts);
    size_t size = sizeof kernels, bytes = 0;
    for (int i = 0; i < n; i++) size += strlen(parts[i]);
    char *text = calloc(1, size);
    for (int i = 0; i < n; i++) strcat(text, parts[i]);
    strcat(text, kernels);
    weft_nvrtc_job job = {.compiler = &weft__nvrtc, .source = text, .arch = f->d->found->arch};
    void *cubin;
    weft__nvrtc_compile(&job);
    const weft_status status = weft__nvrtc_take(&f->ctx, &job, "tensor.cu", &cubin, &bytes);
    if (status != WEFT_OK) fail_msg("%s", weft_last_error(&f->ctx));
    assert_int_equal(weft__cu.cuModuleLoadData(&f->module, cubin), 0);
    weft__free(&f->ctx, cubin);
    free(text);
}

static fixture *open_card(const char *capability) {
    static fixture f;
    f = (fixture){.d = NULL};
    weft_device *device;
    setenv("FAKE_CUDA_CAPABILITY", capability, 1); /* a real GPU has its own capability */
    weft__cuda_forget();
    if (weft__device_open(&f.ctx, "cuda", NULL, &device) != WEFT_OK) return NULL;
    f.d = weft__cuda_of(device);
    assert_int_equal(weft__cuda_enter(f.d), 0);
    compile(&f);
    return &f;
}

static void close_card(fixture *f) {
    assert_int_equal(weft__cu.cuModuleUnload(f->module), 0);
    weft__cuda_leave(f->d);
    f->d->gpu.base.ops->close(&f->d->gpu.base);
    weft__strings_free(&f->ctx);
}

/* Memory on the device. A kernel of one warp gets pointers to it, and the last one is read back. */
typedef struct memory {
    void *at;
    size_t bytes;
} memory;

static void run(fixture *f, const char *name, const memory *list, int n, int what) {
    CUfunction function;
    CUdeviceptr places[4];
    void *arguments[5];
    assert_int_equal(weft__cu.cuModuleGetFunction(&function, f->module, name), 0);
    for (int i = 0; i < n; i++) {
        assert_int_equal(weft__cu.cuMemAlloc_v2(&places[i], list[i].bytes), 0);
        assert_int_equal(weft__cuda_put(f->d, places[i], list[i].at, list[i].bytes), 0);
        arguments[i] = &places[i];
    }
    arguments[n] = &what;
    assert_int_equal(weft__cu.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, f->d->stream, arguments, NULL),
                     0);
    assert_int_equal(
        weft__cu.cuMemcpyDtoHAsync_v2(list[n - 1].at, places[n - 1], list[n - 1].bytes, f->d->stream), 0);
    assert_int_equal(weft__cu.cuStreamSynchronize(f->d->stream), 0);
    for (int i = 0; i < n; i++) assert_int_equal(weft__cu.cuMemFree_v2(places[i]), 0);
}

/* ---- matmuls ---- */

static uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* An integer from -15 to 15 as a 16-bit float. */
static uint32_t sixteen(int what, float x) {
    if (what == 1) return bits_of(x) >> 16;
    if (x == 0) return 0;
    const uint32_t bits = bits_of(x);
    return (bits >> 16 & 0x8000) | (((bits >> 23 & 0xff) - 127 + 15) << 10) | (bits >> 13 & 0x3ff);
}

static int drawn(uint32_t *seed) {
    *seed = *seed * 1664525u + 1013904223u;
    return (int)(*seed >> 24) % 31 - 15;
}

/* The tables of tensor.cu, written independently: row and column of each register of lane 4 g + t. */
static void check_product(fixture *f, int what) {
    static const int row_of_a[] = {0, 8, 0, 8}, half_of_a[] = {0, 0, 1, 1};
    float a[16][16], b[16][8], c[16][8], d[32 * 4];
    uint32_t x[32 * 4] = {0}, y[32 * 2] = {0}, seed = 7;
    const int depth = what == 2 ? 8 : 16, in_word = what == 2 ? 1 : 2, half = depth / 2;
    for (int i = 0; i < 16; i++)
        for (int k = 0; k < 16; k++) a[i][k] = (float)drawn(&seed);
    for (int k = 0; k < 16; k++)
        for (int j = 0; j < 8; j++) b[k][j] = (float)drawn(&seed), c[k][j] = (float)drawn(&seed);
    for (int lane = 0; lane < 32; lane++) {
        const int g = lane / 4, t = lane % 4;
        for (int r = 0; r < 4; r++)
            for (int i = 0; i < in_word; i++) {
                const float v = a[g + row_of_a[r]][half_of_a[r] * half + in_word * t + i];
                x[lane * 4 + r] |= what == 2 ? bits_of(v) : sixteen(what, v) << 16 * i;
            }
        for (int r = 0; r < 2; r++)
            for (int i = 0; i < in_word; i++) {
                const float v = b[r * half + in_word * t + i][g];
                y[lane * 2 + r] |= what == 2 ? bits_of(v) : sixteen(what, v) << 16 * i;
            }
        for (int i = 0; i < 4; i++) d[lane * 4 + i] = c[g + i / 2 * 8][2 * t + i % 2];
    }
    run(f, "multiply", (memory[]){{x, sizeof x}, {y, sizeof y}, {d, sizeof d}}, 3, what);
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 8; j++) {
            float sum = c[i][j]; /* exact */
            for (int k = 0; k < depth; k++) sum += a[i][k] * b[k][j];
            assert_float_equal(d[(i % 8 * 4 + j / 2) * 4 + i / 8 * 2 + j % 2], sum, 0);
        }
}

/* ---- matrices and copies ---- */

static void check_matrices(fixture *f) {
    uint16_t from[32][16];
    uint32_t to[32][8];
    for (int i = 0; i < 32; i++)
        for (int j = 0; j < 16; j++) from[i][j] = (uint16_t)(i * 100 + j);
    memset(to, 0xff, sizeof to);
    run(f, "matrices", (memory[]){{from, sizeof from}, {to, sizeof to}}, 2, 0);
    for (int lane = 0; lane < 32; lane++)
        for (int j = 0; j < 4; j++) {
            const int g = lane / 4, t = lane % 4;
            for (int i = 0; i < 2; i++) {
                assert_int_equal(to[lane][j] >> 16 * i & 0xffff, (8 * j + g) * 100 + 2 * t + i);
                assert_int_equal(to[lane][4 + j] >> 16 * i & 0xffff, (8 * j + 2 * t + i) * 100 + g);
            }
        }
}

static void check_copies(fixture *f) {
    uint8_t from[32 * 16], to[32][48];
    for (int i = 0; i < COUNT(from); i++) from[i] = (uint8_t)(i % 251 + 1);
    run(f, "copies", (memory[]){{from, sizeof from}, {to, sizeof to}}, 2, 0);
    for (int lane = 0; lane < 32; lane++)
        for (int i = 0; i < 48; i++) {
            static const int begin[] = {0, 16, 24, 32, 36}, source[] = {0, 8, 0, 4, 0};
            int part = 0;
            while (part < 4 && i >= begin[part + 1]) part++;
            const int at = i - begin[part], size = part == 0 ? 16 : part == 1 ? 8 : part == 3 ? 4 : 0;
            const int count = lane % 9 * 2 < size ? lane % 9 * 2 : size;
            const int expected = size == 0 ? 0xff : at < count ? from[lane * 16 + source[part] + at] : 0;
            assert_int_equal(to[lane][i], expected);
        }
}

/* Numbers from 8 to 16, each a little above a whole number, or above it by almost 2^-7, which is the last
 * place of f16 and TF32. */
static void check_rounding(fixture *f) {
    float from[32], near[32], nearer[32];
    uint32_t to[32][3];
    memset(to, 0, sizeof to);
    for (int i = 0; i < 32; i++) {
        near[i] = (float)(i % 3 ? 8 + i % 8 : -8 - i % 8);
        nearer[i] = near[i] + (i % 4 == 3 ? 0x1p-7f : 0);
        from[i] = near[i] + (i % 4 == 3 ? 0x1.8p-8f : i % 4 == 1 ? 0x1p-9f : 0);
    }
    run(f, "rounded", (memory[]){{from, sizeof from}, {to, sizeof to}}, 2, 0);
    for (int i = 0; i < 32; i++) {
        assert_int_equal(to[i][0], sixteen(0, nearer[i]) | sixteen(0, nearer[31 - i]) << 16);
        if (f->d->found->capability < 80) continue;
        assert_int_equal(to[i][1], sixteen(1, near[i]) | sixteen(1, near[31 - i]) << 16);
        assert_int_equal(to[i][2], bits_of(nearer[i]));
    }
}

static void check_card(const char *capability) {
    fixture *f = open_card(capability);
    if (!f) skip();
    for (int what = 0; what < (f->d->found->capability < 80 ? 1 : 3); what++) check_product(f, what);
    check_matrices(f);
    check_copies(f);
    check_rounding(f);
    close_card(f);
}

static void test_newer(void **state) {
    (void)state;
    check_card("90");
}

static void test_turing(void **state) {
    (void)state;
    check_card("75");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_newer), cmocka_unit_test(test_turing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
