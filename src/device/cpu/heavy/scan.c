/* Cumulative sums and products. A task is a group of rows, or of columns of one block. Each row or column is
 * walked from end to end. f32 accumulates in f64.
 * Must not know: threads. Read next: scan_rows.inc, heavy.c. */
#include "device/cpu/heavy/heavy.h"

#define COLUMNS    256 /* columns that a task walks side by side */
#define LANES      16
#define TASK_COUNT 16384 /* elements that are worth a task */

typedef struct scan_plan {
    weft_heavy_scan scan;
    int64_t blocks; /* blocks of columns for each outer index */
    int64_t group;  /* outer indices of a task */
} scan_plan;

#define ALWAYS inline __attribute__((always_inline))

#define FN(x)         x##_f32
#define T             float
#define S             double
#define FOUR_PRODUCTS true
#include "device/cpu/heavy/scan_rows.inc"
#define FN(x)         x##_f64
#define T             double
#define S             double
#define FOUR_PRODUCTS false
#include "device/cpu/heavy/scan_rows.inc"
#define FN(x)         x##_i32
#define T             uint32_t
#define S             uint32_t
#define FOUR_PRODUCTS true
#include "device/cpu/heavy/scan_rows.inc"
#define FN(x)         x##_i64
#define T             uint64_t
#define S             uint64_t
#define FOUR_PRODUCTS true
#include "device/cpu/heavy/scan_rows.inc"

static void cpu_scan_run(const void *plan_, void *const *args, int64_t begin, int64_t end, void *scratch,
                         weft_fault *fault) {
    const scan_plan *plan = plan_;
    const weft_heavy_scan *s = &plan->scan;
    (void)fault;
    for (int64_t task = begin; task < end; task++) {
        const int64_t c0 = task % plan->blocks * COLUMNS, columns = weft__smaller(COLUMNS, s->inner - c0);
        const int64_t first = task / plan->blocks * plan->group;
        const int64_t rows = weft__smaller(plan->group, s->outer - first);
        const int64_t at = (first * s->extent + (s->reverse ? s->extent - 1 : 0)) * s->inner + c0;
        switch (s->dtype) {
        case WEFT_F32: scan_f32(s, at, rows, columns, args, scratch); break;
        case WEFT_F64: scan_f64(s, at, rows, columns, args, scratch); break;
        case WEFT_I32: scan_i32(s, at, rows, columns, args, scratch); break;
        default: scan_i64(s, at, rows, columns, args, scratch); break;
        }
    }
}

static void cpu_scan_plan_free(weft_context *ctx, void *plan) { weft__free(ctx, plan); }

bool weft__cpu_scan_takes(const weft_heavy_scan *scan) {
    (void)scan;
    return true;
}

weft_status weft__cpu_scan_prepare(weft_context *ctx, const weft_heavy_scan *scan, const char *path,
                                   int threads, weft_cpu_work *work) {
    (void)path, (void)threads;
    scan_plan *plan = weft__zalloc(ctx, sizeof *plan);
    if (!plan) return weft__fail_oom(ctx, sizeof *plan, "the plan of a scan");
    *work = (weft_cpu_work){.run = cpu_scan_run, .free = cpu_scan_plan_free, .plan = plan};
    plan->scan = *scan;
    if (scan->outer == 0 || scan->extent == 0 || scan->inner == 0) return WEFT_OK;
    plan->blocks = weft__ceil_div(scan->inner, COLUMNS);
    plan->group = weft__larger(1, TASK_COUNT / (scan->extent * weft__smaller(COLUMNS, scan->inner)));
    work->tasks = weft__ceil_div(scan->outer, plan->group) * plan->blocks;
    work->scratch_bytes = COLUMNS * sizeof(double);
    work->cost_ns = 20 + 1.5 * (double)scan->outer * (double)scan->extent * (double)scan->inner;
    return WEFT_OK;
}
