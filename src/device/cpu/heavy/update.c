/* Assignment into a slice at an offset that only the device knows, as in the key/value cache. A task is a
 * range of rows of out, so that threads share the copy if the update is not in place.
 * Must not know: threads. Read next: heavy.c. */
#include <string.h>

#include "device/cpu/heavy/heavy.h"

#define TASK_BYTES 131072 /* about ten microseconds of copying */

typedef struct update_plan {
    weft_heavy_update up;
    const char *path;
    size_t row_bytes; /* bytes of the inner elements */
    int64_t rows;     /* rows of out: outer * total; a task handles `block` of them */
    int64_t block;
} update_plan;

static void cpu_update_run(const void *plan_, void *const *args, int64_t begin, int64_t end, void *scratch,
                           weft_fault *fault) {
    (void)scratch;
    const update_plan *plan = plan_;
    const weft_heavy_update *up = &plan->up;
    const char *input = args[WEFT_UPDATE_INPUT], *value = args[WEFT_UPDATE_VALUE];
    char *out = args[WEFT_UPDATE_OUT];
    int32_t offset;
    memcpy(&offset, args[WEFT_UPDATE_OFFSET], sizeof offset);
    int64_t extent = up->extent, bound = up->total - extent + 1;
    if (offset < 0 || offset >= bound) {
        weft__cpu_fault(fault, WEFT_FAULT_UPDATE, plan->path, offset, bound, 0);
        extent = 0; /* out then equals input */
    }
    for (int64_t row = begin * plan->block; row < end * plan->block && row < plan->rows;) {
        int64_t outer = row / up->total, at = row % up->total, stop = up->total;
        int64_t limit = end * plan->block - outer * up->total;
        if (stop > limit) stop = limit;
        bool inside = at >= offset && at < offset + extent;
        if (inside && stop > offset + extent) stop = offset + extent;
        if (!inside && at < offset && stop > offset && extent > 0) stop = offset;
        size_t to = (size_t)row * plan->row_bytes, bytes = (size_t)(stop - at) * plan->row_bytes;
        if (inside)
            memcpy(out + to, value + (size_t)(outer * extent + at - offset) * plan->row_bytes, bytes);
        else if (input != out)
            memcpy(out + to, input + to, bytes);
        row += stop - at;
    }
}

static void cpu_update_plan_free(weft_context *ctx, void *plan) { weft__free(ctx, plan); }

bool weft__cpu_update_takes(const weft_heavy_update *up) {
    return weft_dtype_size((weft_dtype)up->dtype) > 0;
}

weft_status weft__cpu_update_prepare(weft_context *ctx, const weft_heavy_update *up, const char *path,
                                     int threads, weft_cpu_work *work) {
    (void)threads;
    update_plan *plan = weft__zalloc(ctx, sizeof *plan);
    if (!plan) return weft__fail_oom(ctx, sizeof *plan, "an update plan");
    plan->up = *up;
    plan->path = path;
    plan->row_bytes = weft_dtype_size((weft_dtype)up->dtype) * (size_t)up->inner;
    plan->rows = up->outer * up->total;
    /* An update in place touches only the rows of value; otherwise it touches all rows. */
    size_t touched = plan->row_bytes * (size_t)(up->outer * (up->in_place ? up->extent : up->total));
    int64_t tasks = (int64_t)(touched / TASK_BYTES);
    tasks = tasks < 1 ? 1 : tasks > 64 ? 64 : tasks;
    plan->block = plan->rows > 0 ? (plan->rows + tasks - 1) / tasks : 1;
    *work = (weft_cpu_work){.run = cpu_update_run,
                            .free = cpu_update_plan_free,
                            .plan = plan,
                            .cost_ns = (double)touched / 8 + 20};
    work->tasks = plan->row_bytes > 0 ? (plan->rows + plan->block - 1) / plan->block : 0;
    return WEFT_OK;
}
