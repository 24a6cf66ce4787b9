/* Positions that put rows in order, all or the first few. Elements become keys, unsigned integers that
 * compare as they do (-0 as 0, NaN last; turned round for descending order), and one thread orders a row.
 * Read next: order_rows.h. */
#include <string.h>

#include "device/cpu/gemm.h"

enum { BITS = 11, RADIX = 1 << BITS, SMALL = 48 /* elements that insertion is faster for */ };

#define TASK_COUNT 4096 /* elements that are worth a task */

#define KEY        uint32_t
#define KEY_DIGITS 3
#define NAME(part) narrow_##part
#include "device/cpu/order_rows.h"
#undef KEY
#undef KEY_DIGITS
#undef NAME
#define KEY        uint64_t
#define KEY_DIGITS 6
#define NAME(part) wide_##part
#include "device/cpu/order_rows.h"

typedef struct order_plan {
    weft_heavy_order order;
    bool few;      /* by a heap */
    int64_t group; /* rows of a task */
} order_plan;

/* Keys of a row: KEYS(type, bits, number of them, of the infinity). */
#define KEYS(name, T, WIDTH, INFINITE)                                                                       \
    static void name(const T *x, T *key, int64_t n, bool is_float, T turned) {                               \
        const T top = (T)1 << (WIDTH - 1);                                                                   \
        for (int64_t i = 0; i < n; i++) {                                                                    \
            const T bits = x[i], size = bits & ~top;                                                         \
            T k = size == 0 ? top : bits & top ? ~bits : bits | top;                                         \
            k = size > INFINITE ? ~(T)0 : k;                                                                 \
            key[i] = (is_float ? k : bits ^ top) ^ turned;                                                   \
        }                                                                                                    \
    }
KEYS(keys_32, uint32_t, 32, UINT32_C(0x7f800000))
KEYS(keys_64, uint64_t, 64, UINT64_C(0x7ff0000000000000))

static size_t key_bytes(const weft_heavy_order *o) { return weft_dtype_size((weft_dtype)o->dtype); }

/* Two rows of keys, then two of places, then the counts. */
static void run(const void *plan_, void *const *args, int64_t begin, int64_t end, void *scratch,
                weft_fault *fault) {
    const order_plan *plan = plan_;
    const weft_heavy_order *o = &plan->order;
    const bool is_float = weft_dtype_is_float((weft_dtype)o->dtype), narrow = key_bytes(o) == 4;
    const int64_t n = o->extent;
    uint32_t *places = (uint32_t *)(void *)((char *)scratch + 2 * (size_t)n * key_bytes(o));
    (void)fault;
    for (int64_t row = begin * plan->group; row < weft__smaller(end * plan->group, o->rows); row++) {
        int32_t *out = (int32_t *)args[1] + row * o->count, *all = o->count == n ? out : (int32_t *)scratch;
        if (narrow) {
            uint32_t *keys = scratch;
            keys_32((const uint32_t *)args[0] + row * n, keys, n, is_float, o->descending ? UINT32_MAX : 0);
            if (plan->few)
                narrow_few(keys, n, o->count, keys + n, places, out);
            else if (n <= SMALL)
                narrow_small(keys, n, places);
            else
                narrow_all(keys, places, places + 2 * n, n, all);
        } else {
            uint64_t *keys = scratch;
            keys_64((const uint64_t *)args[0] + row * n, keys, n, is_float, o->descending ? UINT64_MAX : 0);
            if (plan->few)
                wide_few(keys, n, o->count, keys + n, places, out);
            else if (n <= SMALL)
                wide_small(keys, n, places);
            else
                wide_all(keys, places, places + 2 * n, n, all);
        }
        if (plan->few) continue;
        if (n <= SMALL)
            memcpy(out, places, (size_t)o->count * sizeof *out);
        else if (all != out)
            memcpy(out, all, (size_t)o->count * sizeof *out);
    }
}

static void plan_free(weft_context *ctx, void *plan) { weft__free(ctx, plan); }

weft_status weft__cpu_order_prepare(weft_context *ctx, const weft_heavy_order *order, weft_cpu_work *work) {
    order_plan *plan = weft__zalloc(ctx, sizeof *plan);
    if (!plan) return weft__fail_oom(ctx, sizeof *plan, "the plan of an order");
    *work = (weft_cpu_work){.run = run, .free = plan_free, .plan = plan};
    plan->order = *order;
    if (order->rows == 0 || order->count == 0) return WEFT_OK;
    const int64_t n = order->extent;
    plan->few = order->count <= n / 16;
    plan->group = weft__larger(1, TASK_COUNT / n);
    work->tasks = weft__ceil_div(order->rows, plan->group);
    work->scratch_bytes = 2 * (size_t)n * (key_bytes(order) + sizeof(uint32_t)) +
                          (size_t)wide_digits * RADIX * sizeof(uint32_t);
    work->cost_ns = 20 + (double)order->rows * (double)n *
                             (plan->few               ? 0.5
                              : key_bytes(order) == 4 ? 10
                                                      : 25);
    return WEFT_OK;
}
