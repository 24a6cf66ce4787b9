/* A recurrent layer over all time steps, forward and backward.
 * Must not know: the matmul of its inputs, or what follows the layer. Read next: recurrent_float.inc (the
 * loop), recurrent_rows.inc (elementwise work of a step), docs/design/007-recurrent-layers-whole.md. */
#include <string.h>

#include "device/cpu/heavy/heavy.h"

#define SAVED     4  /* parts that a gated layer saves for its gradient */
#define ROWS_MOST 32 /* sequences of a task; with the packed matrix they fit in the second cache */
#define STEPS     4  /* with fewer steps it does not pay to pack the matrix */

typedef struct recurrent_plan {
    weft_heavy_recurrent r;
    const weft_gemm_own *own;
    void (*from)(int64_t n, const uint16_t *from, float *to); /* for 16-bit dtypes */
    void (*to)(int64_t n, const float *from, uint16_t *to);
    size_t size; /* of an element */
    int64_t gates, rows;
} recurrent_plan;

/* Addresses of the operands, in the order of heavy/recurrent.h. */
typedef struct operands {
    const void *x, *w, *b, *d, *h, *c, *dstates;
    const int32_t *lengths;
    void *states, *gates, *cells, *dx, *dh, *dc, *dz;
} operands;

static operands operands_of(const weft_heavy_recurrent *r, void *const *args) {
    const bool lstm = r->kind == WEFT_LSTM, gated = lstm || r->kind == WEFT_GRU;
    operands o = {0};
    if (r->backward) {
        o.w = *args++;
        o.states = *args++;
        if (gated) o.gates = *args++;
        if (lstm) o.cells = *args++, o.c = *args++;
        o.dstates = *args++;
        if (r->masked) o.lengths = *args++;
        o.dx = *args++;
        o.dh = *args++;
        if (lstm) o.dc = *args;
        if (r->kind == WEFT_GRU) o.dz = *args;
        return o;
    }
    o.x = *args++;
    o.w = *args++;
    o.b = *args++;
    o.d = *args++;
    o.h = *args++;
    if (lstm) o.c = *args++;
    if (r->masked) o.lengths = *args++;
    o.states = *args++;
    if (gated) o.gates = *args++;
    if (lstm) o.cells = *args;
    return o;
}

#define T     float
#define FN(x) x##_f32
#define ROWS  recurrent_f32
#include "device/cpu/heavy/recurrent_float.inc"
#undef T
#undef FN
#undef ROWS

#define T     double
#define FN(x) x##_f64
#define ROWS  recurrent_f64
#include "device/cpu/heavy/recurrent_float.inc"

bool weft__cpu_recurrent_takes(const weft_heavy_recurrent *r) {
    return weft_dtype_is_float((weft_dtype)r->dtype) && r->t >= STEPS;
}

static void cpu_recurrent_plan_free(weft_context *ctx, void *plan) { weft__free(ctx, plan); }

weft_status weft__cpu_recurrent_prepare(weft_context *ctx, const weft_heavy_recurrent *r, const char *path,
                                        int threads, weft_cpu_work *work) {
    (void)path;
    static const double rate[] = {[WEFT_ISA_BASELINE] = 12, [WEFT_ISA_AVX2] = 50, [WEFT_ISA_AVX512] = 130};
    recurrent_plan *plan = weft__zalloc(ctx, sizeof *plan);
    if (!plan) return weft__fail_oom(ctx, sizeof *plan, "a recurrent plan");
    const weft_gemm_own *own = plan->own = weft__gemm_own();
    const bool wide = r->dtype == WEFT_F64, f16 = r->dtype == WEFT_F16;
    plan->r = *r;
    plan->from = f16 ? own->convert.from_f16 : own->convert.from_bf16;
    plan->to = f16 ? own->convert.to_f16 : own->convert.to_bf16;
    plan->size = weft_dtype_size((weft_dtype)r->dtype);
    plan->gates = r->kind == WEFT_LSTM ? 4 : r->kind == WEFT_GRU ? 3 : 1;
    /* the bits of a row do not depend on it */
    plan->rows = weft__ceil_div(r->batch, threads > 1 ? threads : 1);
    if (plan->rows > ROWS_MOST)
        plan->rows = weft__ceil_div(plan->rows, weft__ceil_div(plan->rows, ROWS_MOST));
    if (plan->rows < 1) plan->rows = 1;
    *work = (weft_cpu_work){.run = wide ? run_f64 : run_f32, .free = cpu_recurrent_plan_free, .plan = plan};
    work->tasks = weft__ceil_div(r->batch, plan->rows);
    space_f32 sp32;
    space_f64 sp64;
    work->scratch_bytes = wide ? layout_f64(plan, NULL, &sp64) : layout_f32(plan, NULL, &sp32);
    const double cells = (double)r->t * (double)r->batch * (double)r->width * (double)plan->gates;
    work->cost_ns = cells * (2 * (double)r->width + 40) / rate[weft__cpu_isa()] * (wide ? 2 : 1);
    return WEFT_OK;
}
