/* Sums and products up to each element. A task is a group of rows, or of columns of one block, each walked
 * from end to end; f32 accumulates in f64. Read next: heavy.c. */
#include "device/cpu/gemm.h"

#define COLUMNS    256   /* that a task walks side by side */
#define TASK_COUNT 16384 /* elements that are worth a task */

typedef struct scan_plan {
    weft_heavy_scan scan;
    int64_t blocks; /* of columns, in each outer one */
    int64_t group;  /* outer ones of a task */
} scan_plan;

/* One row of `columns` accumulators in `all`, of type S, over rows `step` elements of type T apart. */
#define SCAN(name, T, S)                                                                                     \
    static void name(const weft_heavy_scan *s, const T *x, T *y, int64_t columns, int64_t step, S *all) {    \
        for (int64_t c = 0; c < columns; c++) all[c] = s->product ? 1 : 0;                                   \
        if (columns == 1) {                                                                                  \
            S one = all[0];                                                                                  \
            for (int64_t i = 0; i < s->extent; i++, x += step, y += step) {                                  \
                one = s->product ? one * (S)*x : one + (S)*x;                                                \
                *y = (T)one;                                                                                 \
            }                                                                                                \
            return;                                                                                          \
        }                                                                                                    \
        for (int64_t i = 0; i < s->extent; i++, x += step, y += step)                                        \
            for (int64_t c = 0; c < columns; c++) {                                                          \
                all[c] = s->product ? all[c] * (S)x[c] : all[c] + (S)x[c];                                   \
                y[c] = (T)all[c];                                                                            \
            }                                                                                                \
    }
SCAN(scan_f32, float, double)
SCAN(scan_f64, double, double)
SCAN(scan_i32, uint32_t, uint32_t)
SCAN(scan_i64, uint64_t, uint64_t)

static void run(const void *plan_, void *const *args, int64_t begin, int64_t end, void *scratch,
                weft_fault *fault) {
    const scan_plan *plan = plan_;
    const weft_heavy_scan *s = &plan->scan;
    (void)fault;
    for (int64_t task = begin; task < end; task++) {
        const int64_t c0 = task % plan->blocks * COLUMNS, columns = weft__smaller(COLUMNS, s->inner - c0);
        const int64_t first = task / plan->blocks * plan->group;
        for (int64_t o = first; o < weft__smaller(first + plan->group, s->outer); o++) {
            const int64_t at = (o * s->extent + (s->reverse ? s->extent - 1 : 0)) * s->inner + c0;
            const int64_t step = s->reverse ? -s->inner : s->inner;
            switch (s->dtype) {
            case WEFT_F32:
                scan_f32(s, (const float *)args[0] + at, (float *)args[1] + at, columns, step, scratch);
                break;
            case WEFT_F64:
                scan_f64(s, (const double *)args[0] + at, (double *)args[1] + at, columns, step, scratch);
                break;
            case WEFT_I32:
                scan_i32(s, (const uint32_t *)args[0] + at, (uint32_t *)args[1] + at, columns, step, scratch);
                break;
            default:
                scan_i64(s, (const uint64_t *)args[0] + at, (uint64_t *)args[1] + at, columns, step, scratch);
                break;
            }
        }
    }
}

static void plan_free(weft_context *ctx, void *plan) { weft__free(ctx, plan); }

weft_status weft__cpu_scan_prepare(weft_context *ctx, const weft_heavy_scan *scan, weft_cpu_work *work) {
    scan_plan *plan = weft__zalloc(ctx, sizeof *plan);
    if (!plan) return weft__fail_oom(ctx, sizeof *plan, "the plan of a scan");
    *work = (weft_cpu_work){.run = run, .free = plan_free, .plan = plan};
    plan->scan = *scan;
    if (scan->outer == 0 || scan->extent == 0 || scan->inner == 0) return WEFT_OK;
    plan->blocks = weft__ceil_div(scan->inner, COLUMNS);
    plan->group = weft__larger(1, TASK_COUNT / (scan->extent * weft__smaller(COLUMNS, scan->inner)));
    work->tasks = weft__ceil_div(scan->outer, plan->group) * plan->blocks;
    work->scratch_bytes = COLUMNS * sizeof(double);
    work->cost_ns = 20 + 1.5 * (double)scan->outer * (double)scan->extent * (double)scan->inner;
    return WEFT_OK;
}
