/* Positions that sort rows, all of them or the first few. Elements become keys, which are unsigned integers
 * in the same order: -0 equals 0, NaN is last, and descending order inverts all bits. One thread sorts a row.
 * Must not know: threads. Read next: argsort_rows.inc. */
#include <string.h>

#include "device/cpu/heavy/heavy.h"

enum {
    SMALL = 48,  /* up to so many elements insertion is faster */
    LONG = 4096, /* from so many elements larger tables of counts pay */
    BITS = 8,
    BITS_LONG = 11 /* bits of a digit */
};

#define TASK_COUNT 4096 /* elements that are worth a task */

/* How elements become keys. All bits of `floats` are set for floating types. All bits of `turned` are set for
 * descending order. */
typedef struct key_form {
    uint64_t floats, turned;
} key_form;

typedef struct order_plan {
    weft_heavy_argsort order;
    key_form form;
    bool few;      /* found by a heap */
    int64_t group; /* rows of a task */
} order_plan;

#define KEY          uint32_t
#define KEY_INFINITE UINT32_C(0x7f800000)
#define NAME(part)   narrow_##part
#include "device/cpu/heavy/argsort_rows.inc"
#undef KEY
#undef KEY_INFINITE
#undef NAME
#define KEY          uint64_t
#define KEY_INFINITE UINT64_C(0x7ff0000000000000)
#define NAME(part)   wide_##part
#include "device/cpu/heavy/argsort_rows.inc"

static size_t key_bytes(const weft_heavy_argsort *o) { return weft_dtype_size((weft_dtype)o->dtype); }

static void cpu_argsort_run(const void *plan_, void *const *args, int64_t begin, int64_t end, void *scratch,
                            weft_fault *fault) {
    const order_plan *plan = plan_;
    const weft_heavy_argsort *o = &plan->order;
    const bool narrow = key_bytes(o) == 4;
    (void)fault;
    for (int64_t row = begin * plan->group; row < weft__smaller(end * plan->group, o->rows); row++) {
        int32_t *out = (int32_t *)args[WEFT_ARGSORT_OUT] + row * o->count;
        if (narrow)
            narrow_row(plan, (const uint32_t *)args[WEFT_ARGSORT_INPUT] + row * o->extent, scratch, out);
        else
            wide_row(plan, (const uint64_t *)args[WEFT_ARGSORT_INPUT] + row * o->extent, scratch, out);
    }
}

static void cpu_argsort_plan_free(weft_context *ctx, void *plan) { weft__free(ctx, plan); }

bool weft__cpu_argsort_takes(const weft_heavy_argsort *order) {
    (void)order;
    return true;
}

weft_status weft__cpu_argsort_prepare(weft_context *ctx, const weft_heavy_argsort *order, const char *path,
                                      int threads, weft_cpu_work *work) {
    (void)path, (void)threads;
    order_plan *plan = weft__zalloc(ctx, sizeof *plan);
    if (!plan) return weft__fail_oom(ctx, sizeof *plan, "the plan of an argsort");
    *work = (weft_cpu_work){.run = cpu_argsort_run, .free = cpu_argsort_plan_free, .plan = plan};
    plan->order = *order;
    if (order->rows == 0 || order->count == 0) return WEFT_OK;
    const int64_t n = order->extent;
    const size_t size = key_bytes(order);
    plan->form.floats = weft_dtype_is_float((weft_dtype)order->dtype) ? ~UINT64_C(0) : 0;
    plan->form.turned = order->descending ? ~UINT64_C(0) : 0;
    const size_t bits = n < LONG ? BITS : BITS_LONG;
    plan->few = order->count <= n / 16;
    plan->group = weft__larger(1, TASK_COUNT / n);
    work->tasks = weft__ceil_div(order->rows, plan->group);
    work->scratch_bytes = (size_t)(plan->few ? order->count : 2 * n) * (size + sizeof(uint32_t));
    if (!plan->few) work->scratch_bytes += ((8 * size / bits + 1) << bits) * sizeof(uint32_t);
    work->cost_ns = 20 + (double)order->rows * (double)n * (plan->few ? 0.5 : size == 4 ? 10 : 25);
    return WEFT_OK;
}
