/* Packed matrices: matmuls that read the blocks, and unpacking. A task of a matmul is a range of rows of x by
 * a range of columns; it rounds its rows first. The partition changes no bit. Must not know: threads,
 * formats. Read next: ../gemm/packed_own.c. */
#include "device/cpu/gemm/packed.h"
#include "device/cpu/heavy/heavy.h"

#define ROWS_OF_TASK    64
#define NUMBERS_OF_TASK 32768 /* that are worth a task of unpacking */

typedef struct packed_plan {
    weft_heavy_packed of;
    const weft_packed_info *info;
    const weft_packed_own *own;
    int64_t row_bytes, rows, columns; /* rows and columns of a task */
    int64_t column_tasks;
} packed_plan;

/* Divides the scratch memory; returns the bytes that it needs. base may be NULL. */
static size_t packed_layout(const packed_plan *plan, char *base, weft_packed_x *x, void **panel) {
    const size_t k = (size_t)plan->of.k, rows = (size_t)plan->rows, spans = k / (size_t)plan->info->span;
    const size_t sizes[] = {WEFT_PACKED_PANEL, rows * k, rows * spans * 4, rows * spans * 4,
                            rows * spans * 4};
    char *at[5];
    size_t used = 0;
    for (int i = 0; i < 5; i++) {
        at[i] = base ? base + used : NULL;
        used += (sizes[i] + 63) & ~(size_t)63;
    }
    *panel = at[0];
    *x = (weft_packed_x){.k = plan->of.k,
                         .spans = (int64_t)spans,
                         .q = (int8_t *)(void *)at[1],
                         .scale = (float *)(void *)at[2],
                         .sum = (float *)(void *)at[3],
                         .less = (int32_t *)(void *)at[4]};
    return used;
}

static void multiply_tasks(const void *plan_, void *const *args, int64_t begin, int64_t end, void *scratch,
                           weft_fault *fault) {
    const packed_plan *plan = plan_;
    const weft_heavy_packed *p = &plan->of;
    weft_packed_x x;
    void *panel;
    int64_t rounded = -1;
    (void)fault;
    packed_layout(plan, scratch, &x, &panel);
    for (int64_t task = begin; task < end; task++) {
        const int64_t row = task / plan->column_tasks * plan->rows,
                      rows = weft__smaller(plan->rows, p->m - row);
        const int64_t first = task % plan->column_tasks * plan->columns,
                      last = weft__smaller(first + plan->columns, p->n);
        if (rounded != row)
            plan->own->round(p->format, rows, (const float *)args[WEFT_PACKED_X] + row * p->k, &x);
        rounded = row;
        for (int64_t j = first; j < last; j += WEFT_PACKED_COLUMNS) {
            const int64_t count = weft__smaller(WEFT_PACKED_COLUMNS, last - j);
            const weft_packed_part part = {.format = p->format,
                                           .rows = (const uint8_t *)args[WEFT_PACKED_MATRIX] +
                                                   j * plan->row_bytes,
                                           .row_bytes = plan->row_bytes,
                                           .count = count,
                                           .after = (last - j - count) * plan->row_bytes};
            plan->own->multiply(&part, rows, &x, (float *)args[WEFT_PACKED_OUT] + row * p->n + j, p->n,
                                panel);
        }
    }
}

static void unpack_tasks(const void *plan_, void *const *args, int64_t begin, int64_t end, void *scratch,
                         weft_fault *fault) {
    const packed_plan *plan = plan_;
    const int64_t blocks = plan->of.n * plan->of.k / plan->info->elements,
                  each = NUMBERS_OF_TASK / plan->info->elements;
    const int64_t first = begin * each, count = weft__smaller(end * each, blocks) - first;
    (void)scratch, (void)fault;
    plan->own->unpack(plan->of.format, count, (const uint8_t *)args[0] + first * plan->info->bytes,
                      (float *)args[1] + first * plan->info->elements);
}

static void packed_plan_free(weft_context *ctx, void *plan) { weft__free(ctx, plan); }

bool weft__cpu_packed_takes(const weft_heavy_packed *packed) {
    return packed->k > 0 && packed->k <= INT32_MAX / 32; /* kernels count the bytes of 16 rows in 32 bits */
}

/* The columns of a task: for few rows of x as many as keep two threads busy, for many rows so many that
 * rounding x takes little of the time. */
static int64_t columns_of_task(const weft_heavy_packed *p) {
    const int64_t most = 512, least = p->m > 8 ? 128 : 64;
    const int64_t part = weft__ceil_div(weft__ceil_div(p->n, p->m > 8 ? 4 : 8), 16) * 16;
    return part < least ? least : part > most ? most : part;
}

static double packed_cost_ns(const weft_heavy_packed *p) {
    static const double per_number[] = {
        [WEFT_ISA_BASELINE] = 1.5, [WEFT_ISA_AVX2] = 0.06, [WEFT_ISA_AVX512] = 0.03};
    const double by = per_number[weft__cpu_isa()], numbers = (double)p->n * (double)p->k;
    return 50 + numbers * by * (p->multiply ? 1 + 0.2 * (double)p->m : 4);
}

weft_status weft__cpu_packed_prepare(weft_context *ctx, const weft_heavy_packed *packed, const char *path,
                                     int threads, weft_cpu_work *work) {
    (void)path, (void)threads;
    packed_plan *plan = weft__zalloc(ctx, sizeof *plan);
    if (!plan) return weft__fail_oom(ctx, sizeof *plan, "the plan of a packed matrix");
    *plan =
        (packed_plan){.of = *packed, .info = weft__packed_info(packed->format), .own = weft__packed_own()};
    *work = (weft_cpu_work){
        .run = packed->multiply ? multiply_tasks : unpack_tasks, .free = packed_plan_free, .plan = plan};
    if (packed->n == 0 || (packed->multiply && packed->m == 0)) return WEFT_OK;
    work->cost_ns = packed_cost_ns(packed);
    if (!packed->multiply) {
        work->tasks = weft__ceil_div(packed->n * packed->k, NUMBERS_OF_TASK);
        return WEFT_OK;
    }
    plan->row_bytes = weft__packed_row(plan->info, packed->k);
    plan->rows = weft__smaller(packed->m, ROWS_OF_TASK);
    plan->columns = columns_of_task(packed);
    plan->column_tasks = weft__ceil_div(packed->n, plan->columns);
    work->tasks = weft__ceil_div(packed->m, plan->rows) * plan->column_tasks;
    weft_packed_x x;
    void *panel;
    work->scratch_bytes = packed_layout(plan, NULL, &x, &panel);
    return WEFT_OK;
}
