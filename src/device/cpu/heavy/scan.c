/* Cumulative sums and products. A task is a group of rows, or of columns of one block. Each row or column is
 * walked from end to end. f32 accumulates in f64.
 * Must not know: threads. Read next: heavy.c. */
#include "device/cpu/heavy/heavy.h"

#define COLUMNS    256 /* columns that a task walks side by side */
#define LANES      16
#define TASK_COUNT 16384 /* elements that are worth a task */

typedef struct scan_plan {
    weft_heavy_scan scan;
    int64_t blocks; /* blocks of columns for each outer index */
    int64_t group;  /* outer indices of a task */
} scan_plan;

#define ALWAYS    inline __attribute__((always_inline))
#define ADD(a, b) ((a) + (b))
#define MUL(a, b) ((a) * (b))

/* Scans one row of n elements of type T, `step` apart. It is a chain of operations in type S. */
#define CHAIN(name, T, S, JOIN, START)                                                                       \
    static ALWAYS void name(int64_t n, int64_t step, const T *x, T *y) {                                     \
        S all = START;                                                                                       \
        for (; n > 0; n--, x += step, y += step) {                                                           \
            all = JOIN(all, (S)*x);                                                                          \
            *y = (T)all;                                                                                     \
        }                                                                                                    \
    }

/* Same as CHAIN, but four elements at a time. It waits for one operation on the running value instead of
 * four. S must hold the result of any four elements; for products, the element type may be too narrow. */
#define FOURS(name, T, S, JOIN, START)                                                                       \
    static ALWAYS void name(int64_t n, int64_t step, const T *x, T *y) {                                     \
        S all = START;                                                                                       \
        for (; n >= 4; n -= 4, x += 4 * step, y += 4 * step) {                                               \
            const S a = (S)x[0], b = JOIN(a, (S)x[step]), right = (S)x[2 * step];                            \
            const S c = JOIN(b, right), d = JOIN(b, JOIN(right, (S)x[3 * step]));                            \
            y[0] = (T)JOIN(all, a);                                                                          \
            y[step] = (T)JOIN(all, b);                                                                       \
            y[2 * step] = (T)JOIN(all, c);                                                                   \
            all = JOIN(all, d);                                                                              \
            y[3 * step] = (T)all;                                                                            \
        }                                                                                                    \
        for (; n > 0; n--, x += step, y += step) {                                                           \
            all = JOIN(all, (S)*x);                                                                          \
            *y = (T)all;                                                                                     \
        }                                                                                                    \
    }

/* Scans columns side by side. `all` holds their running values. It takes LANES columns at a time, which
 * compilers vectorise. */
#define SIDES(name, T, S, JOIN, START)                                                                       \
    static void name(int64_t n, int64_t step, const T *restrict x, T *restrict y, int64_t columns,           \
                     S *restrict all) {                                                                      \
        for (int64_t c = 0; c < columns; c++) all[c] = START;                                                \
        for (; n > 0; n--, x += step, y += step) {                                                           \
            int64_t c = 0;                                                                                   \
            for (; c + LANES <= columns; c += LANES)                                                         \
                for (int k = 0; k < LANES; k++) {                                                            \
                    all[c + k] = JOIN(all[c + k], (S)x[c + k]);                                              \
                    y[c + k] = (T)all[c + k];                                                                \
                }                                                                                            \
            for (; c < columns; c++) {                                                                       \
                all[c] = JOIN(all[c], (S)x[c]);                                                              \
                y[c] = (T)all[c];                                                                            \
            }                                                                                                \
        }                                                                                                    \
    }

#define SCAN(type, T, S, ROW)                                                                                \
    FOURS(row_sums_##type, T, S, ADD, 0)                                                                     \
    ROW(row_products_##type, T, S, MUL, 1)                                                                   \
    SIDES(sums_##type, T, S, ADD, 0)                                                                         \
    SIDES(products_##type, T, S, MUL, 1)                                                                     \
    static void scan_##type(const weft_heavy_scan *s, int64_t at, int64_t rows, int64_t columns,             \
                            void *const *args, void *all) {                                                  \
        const T *x = (const T *)args[WEFT_SCAN_INPUT] + at;                                                  \
        T *y = (T *)args[WEFT_SCAN_OUT] + at;                                                                \
        const int64_t step = s->reverse ? -s->inner : s->inner, next = s->extent * s->inner;                 \
        for (; rows > 0; rows--, x += next, y += next)                                                       \
            if (columns > 1)                                                                                 \
                (s->product ? products_##type : sums_##type)(s->extent, step, x, y, columns, all);           \
            else if (s->product)                                                                             \
                row_products_##type(s->extent, step, x, y);                                                  \
            else if (step == 1) /* neighbours: a constant */                                                 \
                row_sums_##type(s->extent, 1, x, y);                                                         \
            else                                                                                             \
                row_sums_##type(s->extent, step, x, y);                                                      \
    }
SCAN(f32, float, double, FOURS)
SCAN(f64, double, double, CHAIN)
SCAN(i32, uint32_t, uint32_t, FOURS)
SCAN(i64, uint64_t, uint64_t, FOURS)

static void run(const void *plan_, void *const *args, int64_t begin, int64_t end, void *scratch,
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

static void plan_free(weft_context *ctx, void *plan) { weft__free(ctx, plan); }

bool weft__cpu_scan_takes(const weft_heavy_scan *scan) {
    (void)scan;
    return true;
}

weft_status weft__cpu_scan_prepare(weft_context *ctx, const weft_heavy_scan *scan, const char *path,
                                   int threads, weft_cpu_work *work) {
    (void)path, (void)threads;
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
