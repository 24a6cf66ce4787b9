/* A program that runs a table of ops on one device:
 *     NAME DEVICE [--op NAME,...] [--part K/N] [--seed N] [--record FILE] [--fusion off] [--calls WORK]
 *                 [--indices 64] [--card on] [--debug memory] [--differences off]
 *     NAME null --sources FOLDER    writes what a CUDA device would compile, and compares nothing
 *     NAME null --wgsl-sources FOLDER    the same for a WebGPU device; the sources must translate to WGSL
 * Prints each failed check and one line of totals. Exit status: 1 if a check failed, 77 (skipped) if the
 * device is absent. */
#include <time.h>
#include "cuda_sources.h"
#include "device.h"
#include "device/gpu/driver/hooks.h"
#include "device/webgpu/hooks.h"
#include "ops/matrix.h"

static bool done_before(const op_cases *table, int i) {
    for (int k = 0; k < i; k++)
        if (table[k].run == table[i].run) return true;
    return false;
}

/* Is the op in a list of names separated by commas? */
static bool is_listed(const char *list, const char *name) {
    const size_t length = strlen(name);
    for (const char *at = list; (at = strstr(at, name)); at++)
        if ((at == list || at[-1] == ',') && (at[length] == ',' || at[length] == 0)) return true;
    return false;
}

static void usage(const char *name) {
    fprintf(
        stderr,
        "usage: %s DEVICE [--op NAME,...] [--part K/N] [--seed N] [--record FILE] [--fusion off] [--calls "
        "WORK] [--indices 64] [--card on] [--debug memory] [--differences off] [--sources FOLDER] "
        "[--wgsl-sources FOLDER] "
        "[--hip-sources FOLDER]\n",
        name);
    exit(2);
}

static matrix arguments(int argc, char **argv) {
    matrix m = {.seed = 1, .part = 1, .parts = 1};
    if (argc < 2 || argc % 2) usage(argv[0]);
    m.device = argv[1];
    for (int i = 2; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--op"))
            m.only = argv[i + 1];
        else if (!strcmp(argv[i], "--part")) {
            if (sscanf(argv[i + 1], "%d/%d", &m.part, &m.parts) != 2 || m.parts < 1) usage(argv[0]);
        } else if (!strcmp(argv[i], "--seed"))
            m.seed = strtoull(argv[i + 1], NULL, 10);
        else if (!strcmp(argv[i], "--fusion"))
            m.unfused = !strcmp(argv[i + 1], "off");
        else if (!strcmp(argv[i], "--calls")) /* so large matmuls go to a library */
            weft__driver_hook.call_worth = strtod(argv[i + 1], NULL);
        else if (!strcmp(argv[i], "--indices"))
            weft__gpu_hook.long_indices = !strcmp(argv[i + 1], "64");
        else if (!strcmp(argv[i], "--card")) /* WebGPU on a processor runs the kernels of graphics cards */
            weft__webgpu_hook.card = !strcmp(argv[i + 1], "on");
        else if (!strcmp(argv[i], "--debug"))
            setenv("WEFT_DEBUG", argv[i + 1], 1);
        else if (!strcmp(argv[i], "--differences")) /* gradients in f64 are taken for right */
            m.no_differences = !strcmp(argv[i + 1], "off");
        else if (!strcmp(argv[i], "--sources"))
            cuda_sources.folder = argv[i + 1];
        else if (!strcmp(argv[i], "--wgsl-sources"))
            cuda_sources.folder = argv[i + 1], cuda_sources.wgsl = true;
        else if (!strcmp(argv[i], "--hip-sources"))
            cuda_sources.folder = argv[i + 1], cuda_sources.hip = true;
        else if (strcmp(argv[i], "--record"))
            usage(argv[0]);
        else if (!(m.record = fopen(argv[i + 1], "w")))
            fprintf(stderr, "%s: cannot write %s\n", argv[0], argv[i + 1]);
    }
    return m;
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void run_op(matrix *m, const op_cases *op, uint64_t number) {
    double from = seconds();
    long cells = m->cells;
    m->worst = 0;
    m->met = 0;
    m->random = m->seed * 1000003u + number; /* so an op that runs alone gets the same numbers */
    op->run(m);
    ops_flush(m);
    ops_end(m);
    grad_end(m);
    if (m->queued || m->n_grads) return; /* settled later, together with other ops */
    printf("%-16s %5ld cells, worst %.3g of the bound, %.2f s\n", op->name, m->cells - cells, m->worst,
           seconds() - from);
}

int ops_main(int argc, char **argv, const char *title, const op_cases *table, int count) {
    matrix m = arguments(argc, argv);
    test_guard_buffers();
    if (weft_open(&(weft_open_options){.device = m.device, .seed = m.seed, .no_fusion = m.unfused}, &m.ctx) !=
        WEFT_OK) {
        printf("%s: skipped, no device %s: %s\n", title, m.device, weft_last_error(NULL));
        return 77;
    }
    m.slow = !strcmp(m.device, "interp");
    m.sources = cuda_sources.folder != NULL;
    static const char *const gpus[] = {"opencl", "cuda", "hip", "webgpu"};
    m.gpu = m.sources;
    for (size_t i = 0; i < sizeof gpus / sizeof *gpus; i++) m.gpu = m.gpu || !strcmp(m.device, gpus[i]);
    if (m.sources) cuda_sources_write(m.ctx, cuda_sources.folder);
    m.wide = m.ctx;
    if (!test_has_f64(m.ctx) &&
        weft_open(&(weft_open_options){.device = "cpu", .seed = m.seed}, &m.wide) != WEFT_OK) {
        printf("%s: no context for f64: %s\n", title, weft_last_error(NULL));
        return 1;
    }
    double begin = seconds();
    ops_settle(&m);
    for (int i = 0; i < count; i++)
        if (!done_before(table, i) && i % m.parts == m.part - 1 &&
            (!m.only || is_listed(m.only, table[i].name)))
            run_op(&m, &table[i], (uint64_t)i);
    ops_settle(&m);
    if (m.gpu)
        printf("%s: %ld cells left out, %d kernel sources in %d programs\n", title, m.left_out,
               (int)weft__gpu_hook.sources, (int)weft__gpu_hook.compiles);
    printf("%s: cells=%ld fail=%ld skip=%ld seed=%llu device=%s in %.1f s\n", title, m.cells, m.failures,
           m.skipped, (unsigned long long)m.seed, m.device, seconds() - begin);
    if (m.record) fclose(m.record);
    free(m.queue);
    free(m.grads);
    weft_scope_close(m.scope);
    weft_close(m.ctx);
    if (m.wide_scope) weft_scope_close(m.wide_scope);
    if (m.wide != m.ctx) weft_close(m.wide);
    if (m.sources) printf("%s: %d kernel sources in %s\n", title, cuda_sources.count, cuda_sources.folder);
    return m.failures != 0 || m.cells == 0 || cuda_sources.failed;
}
