/* The matmuls of `weft bench matmul` by CLBlast, on the first OpenCL device (GPUs come first, as in
 * Weft). Operands stay on the device. Several matmuls are queued, and one clFinish waits for all of them.
 * The program checks some elements of each result. Must not know: Weft. Needs no headers: it declares the
 * functions of OpenCL and CLBlast itself. cc -O3 clblast.c -ldl -lm -o clblast
 *   ./clblast [TEXT]        runs only the lines whose name contains TEXT */
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#include "matmuls.h"

typedef void *handle; /* cl_platform_id, cl_device_id, cl_context, cl_command_queue, cl_mem */

/* OpenCL 1.2 functions (Khronos specification, 4.1 to 5.13). */
#define OPENCL(X)                                                                                            \
    X(int, clGetPlatformIDs, (unsigned, handle *, unsigned *))                                               \
    X(int, clGetDeviceIDs, (handle, uint64_t, unsigned, handle *, unsigned *))                               \
    X(int, clGetDeviceInfo, (handle, unsigned, size_t, void *, size_t *))                                    \
    X(handle, clCreateContext, (const intptr_t *, unsigned, const handle *, void *, void *, int *))          \
    X(handle, clCreateCommandQueue, (handle, handle, uint64_t, int *))                                       \
    X(handle, clCreateBuffer, (handle, uint64_t, size_t, void *, int *))                                     \
    X(int, clReleaseMemObject, (handle))                                                                     \
    X(int, clEnqueueWriteBuffer,                                                                             \
      (handle, handle, unsigned, size_t, size_t, const void *, unsigned, const handle *, handle *))          \
    X(int, clEnqueueReadBuffer,                                                                              \
      (handle, handle, unsigned, size_t, size_t, void *, unsigned, const handle *, handle *))                \
    X(int, clFinish, (handle))
#define POINTER(type, name, arguments) static type(*name) arguments;
OPENCL(POINTER)

/* clblast_c.h: CLBlastSgemm and CLBlastSgemmStridedBatched. The batched function takes a stride between
 * items. */
typedef int sgemm_fn(int layout, int a_turned, int b_turned, size_t m, size_t n, size_t k, float alpha,
                     handle a, size_t a_at, size_t lda, handle b, size_t b_at, size_t ldb, float beta,
                     handle c, size_t c_at, size_t ldc, handle *queue, handle *event);
typedef int batched_fn(int layout, int a_turned, int b_turned, size_t m, size_t n, size_t k, float alpha,
                       handle a, size_t a_at, size_t lda, size_t a_step, handle b, size_t b_at, size_t ldb,
                       size_t b_step, float beta, handle c, size_t c_at, size_t ldc, size_t c_step,
                       size_t items, handle *queue, handle *event);
static sgemm_fn *sgemm;
static batched_fn *batched;

enum { ROW_MAJOR = 101, PLAIN = 111, TURNED = 112, GPU = 4, NAME = 0x102B, READ_WRITE = 1 };

static handle context, queue;

static void check(int error, const char *what) {
    if (!error) return;
    fprintf(stderr, "clblast: %s: error %d\n", what, error);
    exit(1);
}

static void open_libraries(void) {
    void *opencl = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_GLOBAL),
         *clblast = dlopen("libclblast.so.1", RTLD_NOW);
    if (!opencl || !clblast) {
        fprintf(stderr, "clblast: %s\n", dlerror());
        exit(1);
    }
#define FIND(type, name, arguments) *(void **)&name = dlsym(opencl, #name);
    OPENCL(FIND)
    *(void **)&sgemm = dlsym(clblast, "CLBlastSgemm");
    *(void **)&batched = dlsym(clblast, "CLBlastSgemmStridedBatched");
    check(!sgemm || !batched, "CLBlastSgemm");
}

static void open_device(void) {
    handle platforms[16], device = NULL;
    char name[256] = "";
    unsigned count = 0;
    int error;
    check(clGetPlatformIDs(16, platforms, &count), "clGetPlatformIDs");
    for (int all = 0; all < 2 && !device; all++)
        for (unsigned i = 0; i < count && i < 16 && !device; i++)
            if (clGetDeviceIDs(platforms[i], all ? (uint64_t)0xffffffff : GPU, 1, &device, NULL) != 0)
                device = NULL;
    check(!device, "no device");
    clGetDeviceInfo(device, NAME, sizeof name - 1, name, NULL);
    fprintf(stderr, "clblast: on %s\n", name);
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    check(error, "clCreateContext");
    queue = clCreateCommandQueue(context, device, 0, &error);
    check(error, "clCreateCommandQueue");
}

/* Allocates `count` numbers on the device and keeps a copy of them on the host. */
static handle numbers(size_t count, float **host) {
    int error;
    *host = malloc(count * sizeof **host);
    check(!*host, "memory");
    for (size_t i = 0; i < count; i++) (*host)[i] = number(i);
    handle memory = clCreateBuffer(context, READ_WRITE, count * sizeof **host, NULL, &error);
    check(error, "clCreateBuffer");
    check(clEnqueueWriteBuffer(queue, memory, 1, 0, count * sizeof **host, *host, 0, NULL, NULL), "a write");
    return memory;
}

static void multiply(const matmul *p, handle a, size_t a_at, handle b, handle c, size_t c_at) {
    const size_t m = (size_t)p->m, n = (size_t)p->n, k = (size_t)p->k, lda = width_of(p),
                 ldb = p->b_t ? k : n;
    const int turned_a = p->a_t ? TURNED : PLAIN, turned_b = p->b_t ? TURNED : PLAIN;
    if (p->batch)
        check(batched(ROW_MAJOR, turned_a, turned_b, m, n, k, 1, a, a_at, lda, m * k, b, 0, ldb, k * n, 0, c,
                      c_at, n, m * n, (size_t)p->batch, &queue, NULL),
              "CLBlastSgemmStridedBatched");
    else
        check(sgemm(ROW_MAJOR, turned_a, turned_b, m, n, k, 1, a, a_at, lda, b, 0, ldb, 0, c, c_at, n, &queue,
                    NULL),
              "CLBlastSgemm");
}

/* Checks a few elements of the last matmul, or of the first item of its batch. */
static void verify(const matmul *p, const float *a, const float *b, handle from, size_t at) {
    for (size_t e = 0; e < 7; e++) {
        const size_t i = e * 131 % (size_t)p->m, j = e * 977 % (size_t)p->n;
        double sum = 0, size = 0;
        float got = 0;
        for (size_t q = 0; q < (size_t)p->k; q++) {
            const double x = a[p->a_t ? q * (size_t)p->m + i : i * (size_t)p->k + q],
                         y = b[p->b_t ? j * (size_t)p->k + q : q * (size_t)p->n + j];
            sum += x * y, size += fabs(x * y);
        }
        check(clEnqueueReadBuffer(queue, from, 1, (at + i * (size_t)p->n + j) * sizeof got, sizeof got, &got,
                                  0, NULL, NULL),
              "a read");
        check(fabs(got - sum) > 1e-5 * (size + 1), p->name);
    }
}

static void time_matmul(const matmul *p) {
    const int count = count_of(p), runs = (int)fmax(3, fmin(200, 2e10 / flops_of(p) / count));
    const size_t step = c_size(p), width = width_of(p);
    double seconds[RUNS_MOST];
    float *host_a, *host_b, *host_c;
    handle a = numbers(a_size(p), &host_a), b = numbers(b_size(p), &host_b),
           c = numbers(step * (size_t)count, &host_c);
    for (int run = -1; run < runs; run++) { /* the first run compiles */
        const double from = now();
        for (int i = 0; i < count; i++) multiply(p, a, (size_t)i * width, b, c, (size_t)i * step);
        check(clFinish(queue), "clFinish");
        if (run >= 0) seconds[run] = (now() - from) / count;
    }
    verify(p, host_a + (size_t)(count - 1) * width, host_b, c, (size_t)(count - 1) * step);
    report("gemm_f32_", p->name, "CLBlast", seconds, runs);
    handle memory[] = {a, b, c};
    for (int i = 0; i < 3; i++) clReleaseMemObject(memory[i]);
    free(host_a), free(host_b), free(host_c);
}

int main(int argc, char **argv) {
    open_libraries();
    open_device();
    for (int i = 0; i < MATMULS; i++)
        if (argc < 2 || strstr(matmuls[i].name, argv[1])) time_matmul(&matmuls[i]);
    return 0;
}
