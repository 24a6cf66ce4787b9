/* A matrix times a vector, as tasks. A task is a range of rows of the matrix; reading its bytes is the main
 * cost. 16-bit matrices are widened in registers, never as a whole. Shape and dtype alone decide the
 * partition. The partition changes no result.
 * Must not know: threads. Read next: gemv_float.inc. */
#include <string.h>

#include "device/cpu/gemm/gemm.h"

#define TASK_BYTES   65536 /* of the matrix */
#define TASKS_MOST   64
#define LEAST_ROWS   16  /* of a task, if rows are contiguous */
#define LEAST_ACROSS 256 /* of a task, if columns are contiguous */

typedef struct gemv_plan {
    weft_heavy_matmul mm;
    const weft_gemm_own *own;
    weft_gemv g;           /* one whole matmul of the batch */
    bool left;             /* the vector is a and the matrix is b; otherwise the matrix is a */
    int64_t v_k;           /* stride of the vector */
    size_t size, out_size; /* of an element */
    int64_t items, group;  /* number of matmuls, and how many of them one task computes */
    int64_t parts;         /* into which the rows of one matmul are divided */
    size_t v_bytes; /* scratch bytes for the vector in the kernels' type; after it come the results before
                       rounding */
} gemv_plan;

static bool is_half(uint8_t dtype) { return dtype == WEFT_F16 || dtype == WEFT_BF16; }

bool weft__cpu_gemv_takes(const weft_heavy_matmul *mm) {
    bool real = mm->dtype == WEFT_F32 || mm->dtype == WEFT_F64 || is_half(mm->dtype);
    return real && mm->k > 0 && (mm->m == 1 || mm->n == 1);
}

static size_t cpu_gemv_aligned(size_t bytes) { return (bytes + 63) & ~(size_t)63; }

/* Returns the vector in the compute type with stride 1. It is in scratch memory if it had to be converted. */
static const void *vector_of(const gemv_plan *plan, const void *v, void *scratch) {
    int64_t k = plan->g.k, step = plan->v_k;
    if (is_half(plan->mm.dtype)) {
        const uint16_t *from = v;
        void (*widen)(int64_t, const uint16_t *, float *) =
            plan->mm.dtype == WEFT_F16 ? plan->own->convert.from_f16 : plan->own->convert.from_bf16;
        if (step == 1) widen(k, from, scratch);
        for (int64_t p = 0; step != 1 && p < k; p++) widen(1, from + p * step, (float *)scratch + p);
        return scratch;
    }
    if (step == 1 || k == 1) return v;
    for (int64_t p = 0; p < k; p++)
        memcpy((char *)scratch + (size_t)p * plan->size, (const char *)v + (size_t)(p * step) * plan->size,
               plan->size);
    return scratch;
}

static void half_rows(const gemv_plan *plan, const weft_gemv *g, const void *x, const float *v, void *out,
                      float *sums) {
    weft_gemv part = *g;
    bool f16 = plan->mm.dtype == WEFT_F16, direct = plan->mm.out_dtype == WEFT_F32;
    if (direct)
        sums = out;
    else
        part.out_i = 1;
    (f16 ? plan->own->gemv.f16 : plan->own->gemv.bf16)(&part, x, v, sums);
    if (direct) return;
    void (*round)(int64_t, const float *, uint16_t *) =
        f16 ? plan->own->convert.to_f16 : plan->own->convert.to_bf16;
    uint16_t *to = out;
    if (g->out_i == 1) round(g->rows, sums, to);
    for (int64_t i = 0; g->out_i != 1 && i < g->rows; i++) round(1, sums + i, to + i * g->out_i);
}

static void cpu_gemv_run(const void *plan_, void *const *args, int64_t begin, int64_t end, void *scratch,
                         weft_fault *fault) {
    (void)fault;
    const gemv_plan *plan = plan_;
    const weft_heavy_matmul *mm = &plan->mm;
    const char *matrix = args[plan->left ? 1 : 0], *vector = args[plan->left ? 0 : 1];
    void *sums = plan->v_bytes > 0 ? (char *)scratch + plan->v_bytes : scratch;
    for (int64_t task = begin; task < end; task++) {
        int64_t first = task / plan->parts * plan->group, last = first + plan->group,
                part = task % plan->parts;
        weft_gemv g = plan->g;
        int64_t from = weft__border(plan->g.rows, plan->parts, part);
        g.rows = weft__border(plan->g.rows, plan->parts, part + 1) - from;
        for (int64_t item = first; item < last && item < plan->items; item++) {
            int64_t a = 0, b = 0, c = from * g.out_i, rest = item;
            for (int d = mm->batch_rank - 1; d >= 0; d--) {
                int64_t at = rest % mm->batch[d];
                rest /= mm->batch[d];
                a += at * mm->a_batch[d], b += at * mm->b_batch[d], c += at * mm->c_batch[d];
            }
            const void *x = matrix + (size_t)((plan->left ? b : a) + from * g.x_i) * plan->size;
            const void *v = vector_of(plan, vector + (size_t)(plan->left ? a : b) * plan->size, scratch);
            void *out = (char *)args[2] + (size_t)c * plan->out_size;
            if (mm->dtype == WEFT_F32)
                plan->own->gemv.f32(&g, x, v, out);
            else if (mm->dtype == WEFT_F64)
                plan->own->gemv.f64(&g, x, v, out);
            else
                half_rows(plan, &g, x, v, out, sums);
        }
    }
}

/* Runs the only task of a single f32 matmul whose vector is contiguous. */
static void run_one(const void *plan_, void *const *args, int64_t begin, int64_t end, void *scratch,
                    weft_fault *fault) {
    const gemv_plan *plan = plan_;
    (void)fault, (void)begin, (void)end, (void)scratch;
    plan->own->gemv.f32(&plan->g, args[plan->left ? 1 : 0], args[plan->left ? 0 : 1], args[2]);
}

static void cpu_gemv_plan_free(weft_context *ctx, void *plan) { weft__free(ctx, plan); }

static int64_t at_most(int64_t wanted, int64_t most) {
    return wanted > most ? most : wanted < 1 ? 1 : wanted;
}

static void gemv_partition(gemv_plan *plan) {
    const weft_gemv *g = &plan->g;
    int64_t item_bytes = g->rows * g->k * (int64_t)plan->size,
            least = g->x_k == 1 ? LEAST_ROWS : LEAST_ACROSS;
    int64_t tasks = at_most(item_bytes / TASK_BYTES, TASKS_MOST);
    plan->parts = at_most(g->rows / least, tasks);
    double all = (double)item_bytes * (double)plan->items / TASK_BYTES;
    int64_t groups = at_most(all < TASKS_MOST ? (int64_t)all : TASKS_MOST, plan->items);
    plan->group = plan->parts > 1 ? 1 : (plan->items + groups - 1) / groups;
}

weft_status weft__cpu_gemv_prepare(weft_context *ctx, const weft_heavy_matmul *mm, weft_cpu_work *work) {
    gemv_plan *plan = weft__zalloc(ctx, sizeof *plan);
    if (!plan) return weft__fail_oom(ctx, sizeof *plan, "a matmul plan");
    plan->mm = *mm;
    plan->own = weft__gemm_own();
    plan->size = weft_dtype_size((weft_dtype)mm->dtype);
    plan->out_size = weft_dtype_size((weft_dtype)mm->out_dtype);
    plan->left = mm->m == 1;
    plan->v_k = plan->left ? mm->a_k : mm->b_k;
    if (plan->left)
        plan->g = (weft_gemv){.rows = mm->n, .k = mm->k, .x_i = mm->b_n, .x_k = mm->b_k, .out_i = 1};
    else
        plan->g = (weft_gemv){.rows = mm->m, .k = mm->k, .x_i = mm->a_m, .x_k = mm->a_k, .out_i = mm->c_m};
    plan->items = 1;
    for (int d = 0; d < mm->batch_rank; d++) plan->items *= mm->batch[d];
    *work = (weft_cpu_work){.run = cpu_gemv_run, .free = cpu_gemv_plan_free, .plan = plan};
    if (plan->items == 0 || plan->g.rows == 0) {
        plan->parts = plan->group = 1;
        return WEFT_OK;
    }
    gemv_partition(plan);
    work->tasks = (plan->items + plan->group - 1) / plan->group * plan->parts;
    const bool in_order = plan->v_k == 1 || mm->k == 1;
    if (work->tasks == 1 && plan->items == 1 && mm->dtype == WEFT_F32 && in_order) work->run = run_one;
    if (is_half(mm->dtype) || !in_order)
        plan->v_bytes = cpu_gemv_aligned((size_t)mm->k * (mm->dtype == WEFT_F64 ? 8 : 4));
    work->scratch_bytes = plan->v_bytes;
    if (is_half(mm->dtype) && mm->out_dtype != WEFT_F32)
        work->scratch_bytes += (size_t)weft__largest_block(plan->g.rows, plan->parts) * 4;
    double bytes = (double)plan->g.rows * (double)mm->k * (double)plan->size * (double)plan->items;
    static const double ns[] = {[WEFT_ISA_BASELINE] = 0.1, [WEFT_ISA_AVX2] = 0.06, [WEFT_ISA_AVX512] = 0.05};
    work->cost_ns = bytes * ns[weft__cpu_isa()] + 40.0 * (double)(plan->items * plan->parts);
    return WEFT_OK;
}
