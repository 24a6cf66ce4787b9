/* Threads of the library: the thread pool of the CPU device. The tests also cover a process that forks, a
 * library that is closed while its threads run, and a system that grants no threads. */
#define _DEFAULT_SOURCE
#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/threads.h"
#include "device.h"
#include "device/cpu/thread_pool.h"
#include "device/device.h"

#define SECONDS 60 /* a child that takes longer is ended */

enum { N = 1 << 20 };

/* Calls `run` in a forked child. Returns whether the child ended with status 0. */
static bool in_child(bool (*run)(void *user), void *user) {
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(SECONDS);
        _exit(run(user) ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status)) print_error("the child was ended by signal %d\n", WTERMSIG(status));
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* exp of 0, 1e-6, 2e-6, ...: large enough to be split between threads. */
static bool compute(weft_context *ctx, float *out) {
    float *in = malloc(N * sizeof *in);
    for (int i = 0; i < N; i++) in[i] = 1e-6f * (float)i;
    weft_scope *scope = weft_scope_open(ctx);
    weft_tensor *x = weft_from(ctx, WEFT_F32, 1, (int64_t[]){N}, in);
    const bool good = weft_read(weft_exp(weft_exp(x)), out, N * sizeof *out) == WEFT_OK;
    weft_scope_close(scope);
    free(in);
    return good;
}

static weft_context *open_two(void) {
    weft_context *ctx = NULL;
    assert_ok(weft_open(&(weft_open_options){.device = "cpu", .threads = 2}, &ctx));
    return ctx;
}

/* ---- the pool ---- */

typedef struct tally {
    _Atomic int calls[8];
    _Atomic int wrong;
    int threads;
} tally;

static void count_call(void *user, int thread, int threads) {
    tally *t = user;
    t->calls[thread]++;
    if (threads != t->threads) t->wrong++;
}

static void test_pool(void **state) {
    (void)state;
    for (int threads = 1; threads <= 8; threads++) {
        weft_thread_pool *pool = weft__thread_pool_new(NULL, threads);
        tally t = {.threads = threads};
        assert_non_null(pool);
        assert_int_equal(weft__thread_pool_size(pool), threads);
        for (int run = 0; run < 300; run++) {
            if (run % 100 == 50) usleep(5000); /* long enough for them to sleep */
            weft__thread_pool_run(pool, count_call, &t);
            for (int i = 0; i < threads; i++) assert_int_equal(t.calls[i], run + 1);
        }
        assert_int_equal(t.wrong, 0);
        weft__thread_pool_free(pool);
    }
    weft__thread_pool_free(NULL);
}

typedef struct shared {
    _Atomic int next, done;
} shared;

static void *take_all(void *user) {
    shared *s = user;
    while (s->next++ < 1000) s->done++;
    return NULL;
}

static void test_parallel(void **state) {
    (void)state;
    const int threads[] = {-1, 0, 1, 2, 7, 100000};
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        shared s = {0};
        weft__parallel(threads[i], take_all, &s);
        assert_int_equal(s.done, 1000);
    }
}

static void test_default(void **state) {
    (void)state;
    setenv("OMP_NUM_THREADS", "3,2", 1);
    assert_int_equal(weft__default_threads(), 3);
    setenv("OMP_NUM_THREADS", "1000000", 1);
    assert_int_equal(weft__default_threads(), WEFT__THREADS_MOST);
    setenv("OMP_NUM_THREADS", "none", 1);
    assert_int_equal(weft__default_threads(), weft__processors());
    unsetenv("OMP_NUM_THREADS");
    assert_int_equal(weft__default_threads(), weft__processors());
}

/* ---- signals ---- */

static volatile sig_atomic_t delivered;
static void note(int signal) { delivered = signal; }

/* A signal to the process is for the program's threads. It must stay pending while the program's only
 * thread blocks it. */
static void test_signals(void **state) {
    (void)state;
    sigset_t mask, before;
    weft_thread_pool *pool = weft__thread_pool_new(NULL, 4);
    struct sigaction action = {.sa_handler = note}, old;
    sigaction(SIGUSR1, &action, &old);
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &mask, &before);
    kill(getpid(), SIGUSR1);
    usleep(50000);
    assert_int_equal(delivered, 0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    assert_int_equal(delivered, SIGUSR1);
    sigaction(SIGUSR1, &old, NULL);
    weft__thread_pool_free(pool);
}

/* ---- fork ---- */

typedef struct family {
    weft_context *parents; /* the parent's context */
    const float *expected;
    weft_loader *loader;
} family;

static bool same(weft_context *ctx, const float *expected) {
    float *out = malloc(N * sizeof *out);
    const bool good = compute(ctx, out) && memcmp(out, expected, N * sizeof *out) == 0;
    free(out);
    return good;
}

static bool use_both(void *user) {
    const family *f = user;
    weft_context *ctx;
    if (!same(f->parents, f->expected)) return false;
    if (weft_open(&(weft_open_options){.device = "cpu", .threads = 2}, &ctx) != WEFT_OK) return false;
    const bool good = same(ctx, f->expected) && same(f->parents, f->expected);
    weft_close(ctx);
    weft_close(f->parents);
    return good;
}

static bool close_first(void *user) {
    const family *f = user;
    weft_context *ctx;
    weft_close(f->parents);
    if (weft_open(&(weft_open_options){.device = "cpu", .threads = 2}, &ctx) != WEFT_OK) return false;
    const bool good = same(ctx, f->expected);
    weft_close(ctx);
    return good;
}

static void test_fork(void **state) {
    (void)state;
    float *expected = malloc(N * sizeof *expected);
    weft_context *ctx = open_two();
    assert_true(compute(ctx, expected));
    family f = {.parents = ctx, .expected = expected};
    assert_true(in_child(use_both, &f));
    assert_true(in_child(close_first, &f));
    assert_true(same(ctx, expected)); /* the parent can still compute */
    weft_close(ctx);
    weft_context *again = open_two(); /* a context that has not computed anything yet */
    f.parents = again;
    assert_true(in_child(use_both, &f));
    weft_close(again);
    free(expected);
}

static bool next_batches(void *user) {
    weft_loader *loader = ((const family *)user)->loader;
    weft_batch batch;
    for (uint64_t i = 0; i < 4; i++)
        if (weft_loader_get(loader, i, &batch) != WEFT_OK) return false;
    weft_loader_free(loader);
    return true;
}

/* After a fork the loader's thread exists only in the parent. The child's loader gathers its batches
 * itself. */
static void test_fork_loader(void **state) {
    (void)state;
    weft_context *ctx = open_two();
    weft_array x;
    family f = {0};
    weft_batch batch;
    assert_ok(weft_array_new(ctx, WEFT_F32, 2, (int64_t[]){64, 8}, &x));
    assert_ok(
        weft_loader_new(ctx, &x, NULL, &(weft_loader_options){.batch = 8, .device_bytes = -1}, &f.loader));
    assert_ok(weft_loader_get(f.loader, 0, &batch));
    assert_true(in_child(next_batches, &f));
    assert_ok(weft_loader_get(f.loader, 1, &batch));
    weft_loader_free(f.loader);
    weft_array_free(ctx, &x);
    weft_close(ctx);
}

/* OpenCL's threads exist only in the parent, and so does a CUDA context. */
static bool driver_is_refused(void *user) {
    const family *f = user;
    weft_context *ctx = NULL;
    float out[4];
    weft_device_description d;
    if (weft_open(&(weft_open_options){.device = "opencl"}, &ctx) != WEFT_ERR_DEVICE) return false;
    if (!strstr(weft_last_error(NULL), "forked")) return false;
    for (int i = 0; weft_device_info(i, &d); i++)
        if (strncmp(d.name, "opencl", 6) == 0 && d.present) return false;
    weft_tensor *x = weft_from(f->parents, WEFT_F32, 1, (int64_t[]){4}, (float[]){1, 2, 3, 4});
    if (weft_read(weft_exp(x), out, sizeof out) != WEFT_ERR_DEVICE) return false;
    if (!strstr(weft_last_error(f->parents), "forked")) return false;
    weft_close(f->parents);
    return weft_open(&(weft_open_options){.device = "cpu"}, &ctx) == WEFT_OK;
}

static void test_fork_opencl(void **state) {
    (void)state;
    family f = {0};
    if (weft_open(&(weft_open_options){.device = "opencl"}, &f.parents) != WEFT_OK) {
        print_message("no OpenCL device: a fork beside one is not tried\n");
        return;
    }
    float out[4];
    weft_tensor *x = weft_from(f.parents, WEFT_F32, 1, (int64_t[]){4}, (float[]){1, 2, 3, 4});
    assert_ok(weft_read(weft_exp(x), out, sizeof out));
    assert_true(in_child(driver_is_refused, &f));
    assert_ok(weft_read(weft_exp(weft_exp(x)), out, sizeof out));
    weft_close(f.parents);
}

/* ---- dlclose, and a system without free threads ---- */

#define FUNCTIONS(X)                                                                                         \
    X(weft_status, weft_open, (const weft_open_options *options, weft_context **ctx))                        \
    X(weft_tensor *, weft_from,                                                                              \
      (weft_context * ctx, weft_dtype dtype, int rank, const int64_t *shape, const void *data))              \
    X(weft_tensor *, weft_exp_at, (const char *where, weft_tensor *x))                                       \
    X(weft_status, weft_eval, (weft_tensor *const *tensors, size_t count))

/* Closes the library while its threads wait inside it, because nobody closed the context. */
static bool close_library(void *user) {
    void *library = dlopen(user, RTLD_NOW | RTLD_LOCAL), *symbol;
    if (!library) return false;
#define LOAD(result, name, arguments)                                                                        \
    result(*f_##name) arguments;                                                                             \
    if (!(symbol = dlsym(library, #name))) return false;                                                     \
    memcpy(&f_##name, &symbol, sizeof symbol);
    FUNCTIONS(LOAD)
    weft_context *ctx;
    float *zeros = calloc(N, sizeof *zeros);
    if (f_weft_open(&(weft_open_options){.device = "cpu", .threads = 2}, &ctx) != WEFT_OK) return false;
    weft_tensor *x = f_weft_from(ctx, WEFT_F32, 1, (int64_t[]){N}, zeros);
    weft_tensor *y = f_weft_exp_at("here", f_weft_exp_at("here", x));
    if (f_weft_eval(&y, 1) != WEFT_OK) return false;
    free(zeros);
    dlclose(library);
    usleep(100000); /* its threads spin, then sleep, in the library's code */
    return true;
}

static void test_dlclose(void **state) {
    (void)state;
    char path[4096];
    const char *folder = getenv("WEFT_BINARY_DIR");
    snprintf(path, sizeof path, "%s/libweft.so", folder ? folder : "build");
    if (access(path, R_OK) != 0) {
        print_message("%s is not built: closing it is not tried\n", path);
        return;
    }
    assert_true(in_child(close_library, path));
}

#ifndef WEFT_SANITIZED /* sanitizers map terabytes */
/* The limit refuses memory for thread stacks. The context then computes with the caller's thread, to the
 * same bits. */
static bool compute_alone(void *user) {
    const family *f = user;
    weft_context *ctx;
    if (weft_open(&(weft_open_options){.device = "cpu", .threads = 2}, &ctx) != WEFT_OK) return false;
    weft_close(ctx); /* devices stay open once they were opened */
    FILE *file = fopen("/proc/self/statm", "r");
    long pages = 0;
    if (!file || fscanf(file, "%ld", &pages) != 1) return false;
    fclose(file);
    float *room = malloc((size_t)64 << 20), *out = malloc(N * sizeof *out);
    struct rlimit limit = {.rlim_cur = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + ((rlim_t)69 << 20)};
    limit.rlim_max = limit.rlim_cur;
    if (!room || !out || setrlimit(RLIMIT_AS, &limit) != 0) return false;
    if (weft_open(&(weft_open_options){.device = "cpu", .threads = 64}, &ctx) != WEFT_OK) return false;
    if (ctx->device->threads >= 64) return false; /* stacks of threads that ended may be reused */
    free(room);
    const bool good = compute(ctx, out) && memcmp(out, f->expected, N * sizeof *out) == 0;
    weft_close(ctx);
    return good;
}

static void test_no_threads(void **state) {
    (void)state;
    float *expected = malloc(N * sizeof *expected);
    weft_context *ctx = open_two();
    assert_true(compute(ctx, expected));
    weft_close(ctx);
    assert_true(in_child(compute_alone, &(family){.expected = expected}));
    free(expected);
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dlclose), /* first: its children must have no context of the parent */
        cmocka_unit_test(test_pool),        cmocka_unit_test(test_parallel),
        cmocka_unit_test(test_default),     cmocka_unit_test(test_signals),
        cmocka_unit_test(test_fork),        cmocka_unit_test(test_fork_loader),
#ifndef WEFT_SANITIZED
        cmocka_unit_test(test_no_threads),
#endif
        cmocka_unit_test(test_fork_opencl),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
