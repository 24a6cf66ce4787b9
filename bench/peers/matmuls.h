/* Shared by the programs that measure matmuls of other libraries: the matmuls of `weft bench matmul`, how
 * many of each are timed together, the clock, the JSON line. Read next: machine.c (CPU libraries). */
#ifndef BENCH_PRODUCTS_H
#define BENCH_PRODUCTS_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct matmul {
    const char *name;
    int m, n, k;
    bool a_t, b_t; /* in memory a is (k, m), b is (n, k) */
    int batch;     /* number of matmuls, stored one after the other; 0: a single one */
} matmul;

static const matmul matmuls[] = {
    {"n8", 8, 8, 8, 0, 0, 0},
    {"n16", 16, 16, 16, 0, 0, 0},
    {"n32", 32, 32, 32, 0, 0, 0},
    {"n48", 48, 48, 48, 0, 0, 0},
    {"n64", 64, 64, 64, 0, 0, 0},
    {"n128", 128, 128, 128, 0, 0, 0},
    {"n256", 256, 256, 256, 0, 0, 0},
    {"n512", 512, 512, 512, 0, 0, 0},
    {"n1024", 1024, 1024, 1024, 0, 0, 0},
    {"n2048", 2048, 2048, 2048, 0, 0, 0},
    {"n4096", 4096, 4096, 4096, 0, 0, 0},
    {"mlp_fwd_nt_128x512x784", 128, 512, 784, 0, 1, 0},
    {"mlp_dx_nn_128x512x512", 128, 512, 512, 0, 0, 0},
    {"mlp_dw_tn_512x784x128", 512, 784, 128, 1, 0, 0},
    {"gpt2_fwd_nt_256x3072x768", 256, 3072, 768, 0, 1, 0},
    {"gpt2_dx_nn_256x768x3072", 256, 768, 3072, 0, 0, 0},
    {"gpt2_dw_tn_3072x768x256", 3072, 768, 256, 1, 0, 0},
    {"gpt2_head_nt_256x50304x768", 256, 50304, 768, 0, 1, 0},
    {"gemv_nt_1x3072x768", 1, 3072, 768, 0, 1, 0},
    {"batch96_nt_64x64x64", 64, 64, 64, 0, 1, 96},
};
enum { MATMULS = sizeof matmuls / sizeof *matmuls, RUNS_MOST = 1000 };

static inline int items_of(const matmul *p) { return p->batch ? p->batch : 1; }
static inline double flops_of(const matmul *p) { return 2.0 * items_of(p) * p->m * p->n * p->k; }

/* As in weft bench matmul: different matmuls are computed one after the other. Matmul i uses the rows i,
 * i + 1, ... of a. All results together fit in the caches. */
static inline int count_of(const matmul *p) {
    return (int)fmax(1, fmin(1000, fmin(6e9 / flops_of(p), 4194304.0 / 4 / items_of(p) / p->m / p->n)));
}

static inline size_t width_of(const matmul *p) {
    return (size_t)(p->a_t ? p->m : p->k);
} /* number of elements of a in memory */
static inline size_t a_size(const matmul *p) {
    return (size_t)(items_of(p) * (p->a_t ? p->k : p->m) + count_of(p) - 1) * width_of(p);
}
static inline size_t b_size(const matmul *p) { return (size_t)items_of(p) * (size_t)p->k * (size_t)p->n; }
static inline size_t c_size(const matmul *p) { return (size_t)items_of(p) * (size_t)p->m * (size_t)p->n; }
static inline float number(size_t i) { return (float)((i * 2654435761u >> 8) % 2001) / 1000 - 1; }

static inline double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline void report(const char *prefix, const char *name, const char *peer, double *seconds, int runs) {
    qsort(seconds, (size_t)runs, sizeof *seconds, ascending);
    printf("{\"workload\": \"%s%s\", \"peer\": \"%s\", \"seconds_per_step_min\": %.6g, "
           "\"seconds_per_step_median\": %.6g}\n",
           prefix, name, peer, seconds[0], seconds[runs / 2]);
    fflush(stdout);
}

#endif
