/* Measures what this machine can reach without Weft: the matmuls of `weft bench matmul` by a matmul
 * library, or the bandwidth of copying 4096 x 4096 numbers. Must not know: Weft. cc -O3 -march=native
 * -fopenmp machine.c -ldl -lm -o machine
 *   ./machine copy
 *   ./machine PEER LIBRARY.so [TEXT]        runs only the lines whose name contains TEXT */
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "matmuls.h"

enum { ROW_MAJOR = 101, PLAIN = 111, TURNED = 112 };
typedef void cblas_fn(int, int, int, int, int, int, float, const float *, int, const float *, int, float,
                      float *, int);
typedef int dnnl_fn(char, char, int64_t, int64_t, int64_t, float, const float *, int64_t, const float *,
                    int64_t, float, float *, int64_t);
static cblas_fn *cblas;
static dnnl_fn *dnnl;

static void multiply(const matmul *p, const float *a, const float *b, float *c) {
    int lda = p->a_t ? p->m : p->k, ldb = p->b_t ? p->k : p->n;
    for (int i = 0; i < items_of(p); i++, a += p->m * p->k, b += p->k * p->n, c += p->m * p->n)
        if (dnnl)
            dnnl(p->a_t ? 'T' : 'N', p->b_t ? 'T' : 'N', p->m, p->n, p->k, 1, a, lda, b, ldb, 0, c, p->n);
        else
            cblas(ROW_MAJOR, p->a_t ? TURNED : PLAIN, p->b_t ? TURNED : PLAIN, p->m, p->n, p->k, 1, a, lda, b,
                  ldb, 0, c, p->n);
}

static float *numbers(size_t count) {
    float *x = aligned_alloc(2097152, (count * 4 + 2097151) / 2097152 * 2097152);
    if (!x) exit(1);
    madvise(x, (count * 4 + 2097151) / 2097152 * 2097152, MADV_HUGEPAGE);
    for (size_t i = 0; i < count; i++) x[i] = number(i);
    return x;
}

static void time_matmul(const matmul *p, const char *peer) {
    double seconds[RUNS_MOST];
    int count = count_of(p), runs = (int)fmax(5, fmin(RUNS_MOST, 9e10 / flops_of(p) / count));
    float *a = numbers(a_size(p)), *b = numbers(b_size(p)), *c = numbers(c_size(p) * (size_t)count);
    for (int run = -2; run < runs; run++) {
        double from = now();
        for (int i = 0; i < count; i++)
            multiply(p, a + (size_t)i * width_of(p), b, c + (size_t)i * c_size(p));
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
    *(void **)&cblas = dlsym(library, "scipy_cblas_sgemm"); /* the OpenBLAS of the wheel scipy-openblas32 */
    if (!cblas) *(void **)&cblas = dlsym(library, "cblas_sgemm");
    if (!dnnl && !cblas) return fprintf(stderr, "machine: %s has no sgemm\n", argv[2]), 1;
    for (int i = 0; i < MATMULS; i++)
        if (argc < 4 || strstr(matmuls[i].name, argv[3])) time_matmul(&matmuls[i], argv[1]);
    return 0;
}
