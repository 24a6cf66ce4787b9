/* What plain calls get out of this machine: the products of `weft bench gemm` by a library of matrix
 * products, or the bandwidth of a copy of 4096 x 4096 numbers. Must not know: Weft. cc -O3 -march=native
 * -fopenmp machine.c -ldl -lm -o machine
 *   ./machine copy
 *   ./machine PEER LIBRARY.so [TEXT]        lines whose name contains TEXT */
#include <dlfcn.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

typedef struct product {
    const char *name;
    int m, n, k;
    bool a_t, b_t; /* in memory a is (k, m), b is (n, k) */
} product;

static const product products[] = {
    {"n8", 8, 8, 8, 0, 0},
    {"n16", 16, 16, 16, 0, 0},
    {"n32", 32, 32, 32, 0, 0},
    {"n48", 48, 48, 48, 0, 0},
    {"n64", 64, 64, 64, 0, 0},
    {"n128", 128, 128, 128, 0, 0},
    {"n256", 256, 256, 256, 0, 0},
    {"n512", 512, 512, 512, 0, 0},
    {"n1024", 1024, 1024, 1024, 0, 0},
    {"n2048", 2048, 2048, 2048, 0, 0},
    {"n4096", 4096, 4096, 4096, 0, 0},
    {"mlp_fwd_nt_128x512x784", 128, 512, 784, 0, 1},
    {"mlp_dx_nn_128x512x512", 128, 512, 512, 0, 0},
    {"mlp_dw_tn_512x784x128", 512, 784, 128, 1, 0},
    {"gpt2_fwd_nt_256x3072x768", 256, 3072, 768, 0, 1},
    {"gpt2_dx_nn_256x768x3072", 256, 768, 3072, 0, 0},
    {"gpt2_dw_tn_3072x768x256", 3072, 768, 256, 1, 0},
    {"gpt2_head_nt_256x50304x768", 256, 50304, 768, 0, 1},
    {"gemv_nt_1x3072x768", 1, 3072, 768, 0, 1},
};

enum { ROW_MAJOR = 101, PLAIN = 111, TURNED = 112, MOST = 1000 };
typedef void cblas_fn(int, int, int, int, int, int, float, const float *, int, const float *, int, float,
                      float *, int);
typedef int dnnl_fn(char, char, int64_t, int64_t, int64_t, float, const float *, int64_t, const float *,
                    int64_t, float, float *, int64_t);
static cblas_fn *cblas;
static dnnl_fn *dnnl;

static void multiply(const product *p, const float *a, const float *b, float *c) {
    int lda = p->a_t ? p->m : p->k, ldb = p->b_t ? p->k : p->n;
    if (dnnl)
        dnnl(p->a_t ? 'T' : 'N', p->b_t ? 'T' : 'N', p->m, p->n, p->k, 1, a, lda, b, ldb, 0, c, p->n);
    else
        cblas(ROW_MAJOR, p->a_t ? TURNED : PLAIN, p->b_t ? TURNED : PLAIN, p->m, p->n, p->k, 1, a, lda, b,
              ldb, 0, c, p->n);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static float *numbers(size_t count) {
    float *x = aligned_alloc(2097152, (count * 4 + 2097151) / 2097152 * 2097152);
    if (!x) exit(1);
    madvise(x, (count * 4 + 2097151) / 2097152 * 2097152, MADV_HUGEPAGE);
    for (size_t i = 0; i < count; i++) x[i] = (float)((i * 2654435761u >> 8) % 2001) / 1000 - 1;
    return x;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void report(const char *prefix, const char *name, const char *peer, double *seconds, int runs) {
    qsort(seconds, (size_t)runs, sizeof *seconds, ascending);
    printf("{\"workload\": \"%s%s\", \"peer\": \"%s\", \"seconds_per_step_min\": %.6g, "
           "\"seconds_per_step_median\": "
           "%.6g}\n",
           prefix, name, peer, seconds[0], seconds[runs / 2]);
    fflush(stdout);
}

/* As weft bench gemm: different products one after the other, whose results fit the caches. */
static void time_product(const product *p, const char *peer) {
    double flops = 2.0 * p->m * p->n * p->k, seconds[1000];
    int count = (int)fmax(1, fmin(MOST, fmin(6e9 / flops, 4194304.0 / 4 / p->m / p->n)));
    int runs = (int)fmax(5, fmin(1000, 9e10 / flops / count)), width = p->a_t ? p->m : p->k;
    float *a = numbers((size_t)((p->a_t ? p->k : p->m) + count - 1) * (size_t)width);
    float *b = numbers((size_t)p->k * (size_t)p->n),
          *c = numbers((size_t)p->m * (size_t)p->n * (size_t)count);
    for (int run = -2; run < runs; run++) {
        double from = now();
        for (int i = 0; i < count; i++)
            multiply(p, a + (size_t)i * (size_t)width, b, c + (size_t)i * (size_t)p->m * (size_t)p->n);
        if (run >= 0) seconds[run] = (now() - from) / count;
    }
    report("gemm_f32_", p->name, peer, seconds, runs);
    free(a);
    free(b);
    free(c);
}

static void time_copy(void) {
    long count = 4096L * 4096;
    float *x = numbers((size_t)count), *y = numbers((size_t)count);
    double seconds[25];
    for (int run = -3; run < 25; run++) {
        double from = now();
#pragma omp parallel for schedule(static)
        for (long i = 0; i < count; i++) y[i] = x[i] + (float)run;
        if (run >= 0) seconds[run] = now() - from;
    }
    report("", "copy_4096", "plain loop", seconds, 25);
    free(x);
    free(y);
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "copy") == 0) return time_copy(), 0;
    void *library = argc > 2 ? dlopen(argv[2], RTLD_NOW | RTLD_GLOBAL) : NULL;
    if (!library) return fprintf(stderr, "machine: %s\n", argc > 2 ? dlerror() : "PEER LIBRARY.so [TEXT]"), 1;
    *(void **)&dnnl = dlsym(library, "dnnl_sgemm");
    *(void **)&cblas = dlsym(library, "scipy_cblas_sgemm"); /* OpenBLAS of the wheel scipy-openblas32 */
    if (!cblas) *(void **)&cblas = dlsym(library, "cblas_sgemm");
    if (!dnnl && !cblas) return fprintf(stderr, "machine: %s has no sgemm\n", argv[2]), 1;
    for (size_t i = 0; i < sizeof products / sizeof *products; i++)
        if (argc < 4 || strstr(products[i].name, argv[3])) time_product(&products[i], argv[1]);
    return 0;
}
