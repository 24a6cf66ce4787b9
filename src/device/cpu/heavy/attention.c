/* Scaled dot-product attention, forward and backward, in blocks that stay in the first caches. A task is one
 * or more (batch, head) pairs. In the forward pass it is a range of queries of one pair if there are few
 * pairs. Shapes alone decide the partition.
 * Must not know: threads. Read next: attention_float.inc (the algorithm), attention_rows.inc. */
#include <math.h>
#include <string.h>

#include "device/cpu/heavy/heavy.h"

#define LANES   WEFT_ATTENTION_LANES /* queries of a block of scores, across */
#define KEYS    128                  /* keys of a block of scores, down */
#define QUERIES 64                   /* backward, where a block has queries down and keys across */
#define STEP    16                   /* queries computed at a time in a block that a causal mask divides */

#define CACHE_NS 0.4 /* to read an element of k and an element of v from memory */

typedef struct attention_plan {
    weft_heavy_attention at;
    const weft_gemm_own *own;
    bool half; /* stored as f16 or bf16, computed in f32 */
    int64_t pairs, group, q_parts;
    int64_t bk, bq; /* keys and queries in a block */
} attention_plan;

static int64_t clip(int64_t x, int64_t least, int64_t most) {
    return x < least ? least : x > most ? most : x;
}

/* Returns the offset of element (pair, t, 0) for strides of batch, head and t. */
static int64_t cpu_attention_place(const attention_plan *plan, const int64_t *strides, int64_t pair,
                                   int64_t t) {
    const bool shared = strides == plan->at.k || strides == plan->at.v;
    const int64_t head = pair % plan->at.heads / (shared ? weft__query_group(&plan->at) : 1);
    return pair / plan->at.heads * strides[0] + head * strides[1] + t * strides[2];
}

/* Returns the operands in the numbering of heavy/attention.h. `own` is memory for them. */
static void *const *ordered(const attention_plan *plan, void *const *args, void **own) {
    if (!plan->at.masked) return args;
    for (int i = 0; i <= (plan->at.backward ? WEFT_ATTENTION_DV : WEFT_ATTENTION_LSE); i++)
        own[i] = args[weft__attention_operand(&plan->at, i)];
    own[WEFT_ATTENTION_MASK] = args[weft__attention_operand(&plan->at, WEFT_ATTENTION_MASK)];
    return own;
}

/* Returns the address of element (i, j) of a pair's mask. */
static const void *mask_at(const attention_plan *plan, void *const *args, int64_t pair, int64_t i,
                           int64_t j) {
    const int64_t *s = plan->at.mask, heads = plan->at.heads;
    return (const char *)args[WEFT_ATTENTION_MASK] +
           (pair / heads * s[0] + pair % heads * s[1] + i * s[2] + j * s[3]) *
               (int64_t)weft_dtype_size((weft_dtype)plan->at.mask_dtype);
}

/* Returns whether the mask lets any of nq queries from i on see any of nk keys from j on. */
static bool any_seen(const attention_plan *plan, void *const *args, int64_t pair, int64_t i, int64_t nq,
                     int64_t j, int64_t nk) {
    const int64_t step = plan->at.mask[3];
    if (!plan->at.masked) return true;
    if (plan->at.mask[2] == 0) nq = nq > 0;
    for (int64_t r = 0; r < nq; r++) {
        const void *row = mask_at(plan, args, pair, i + r, j);
        if (plan->at.mask_dtype == WEFT_BOOL && step == 1) {
            if (memchr(row, true, (size_t)nk)) return true;
            continue;
        }
        for (int64_t k = 0; k < nk; k++) switch (plan->at.mask_dtype) {
            case WEFT_BOOL:
                if (((const uint8_t *)row)[k * step]) return true;
                break;
            case WEFT_F64:
                if (((const double *)row)[k * step] != -(double)INFINITY) return true;
                break;
            default:
                if (((const float *)row)[k * step] != -INFINITY) return true;
            }
    }
    return false;
}

/* Returns the shift of a causal mask: the first query sees keys 0..shift. */
static int64_t shift_of(const attention_plan *plan, void *const *args) {
    return plan->at.cached ? *(const int32_t *)args[WEFT_ATTENTION_KEY] : plan->at.t_k - plan->at.t_q;
}

/* Returns the most keys that the queries before i see. */
static int64_t visible(const attention_plan *plan, int64_t shift, int64_t i) {
    return clip(plan->at.causal ? i + shift : plan->at.t_k, 0, plan->at.t_k);
}

/* Lists the memory that the next pair reads and writes. It is prefetched while this pair is computed. Its
 * rows are too far apart for the hardware prefetcher. */
static void look_ahead(const attention_plan *plan, void *const *args, int64_t pair, weft_lookahead *ahead) {
    const weft_heavy_attention *at = &plan->at;
    const int64_t *strides[] = {at->q, at->k, at->v, NULL, at->out, NULL, at->dout, at->dq, at->dk, at->dv};
    const int64_t size = (int64_t)weft_dtype_size((weft_dtype)at->dtype);
    *ahead = (weft_lookahead){.bytes = at->d * size};
    if (pair + 1 == plan->pairs || plan->q_parts > 1) return;
    ahead->rows = at->t_q < at->t_k ? at->t_q : at->t_k;
    for (int i = 0; i < (at->backward ? 10 : 5); i++) {
        if (!strides[i]) continue;
        ahead->next[ahead->n] =
            (const char *)args[i] + cpu_attention_place(plan, strides[i], pair + 1, 0) * size;
        ahead->stride[ahead->n++] = strides[i][2] * size;
    }
}

/* Returns n rows from t on, in place or converted into buffer. *ld is the stride of the rows. */
static const float *fetch_f32(const attention_plan *plan, const void *base, const int64_t *strides,
                              int64_t pair, int64_t t, int64_t n, float *buffer, int64_t *ld) {
    int64_t at = cpu_attention_place(plan, strides, pair, t), d = plan->at.d;
    if (!plan->half) {
        *ld = strides[2];
        return (const float *)base + at;
    }
    const uint16_t *from = (const uint16_t *)base + at;
    for (int64_t r = 0; r < n; r++)
        (plan->at.dtype == WEFT_F16 ? plan->own->convert.from_f16
                                    : plan->own->convert.from_bf16)(d, from + r * strides[2], buffer + r * d);
    *ld = d;
    return buffer;
}

static void put_f32(const attention_plan *plan, void *base, const int64_t *strides, int64_t pair, int64_t t,
                    int64_t n, const float *rows, int64_t ld) {
    int64_t at = cpu_attention_place(plan, strides, pair, t), d = plan->at.d;
    for (int64_t r = 0; r < n; r++) {
        const float *from = rows + r * ld;
        if (!plan->half) {
            memcpy((float *)base + at + r * strides[2], from, (size_t)d * sizeof *from);
            continue;
        }
        uint16_t *to = (uint16_t *)base + at + r * strides[2];
        (plan->at.dtype == WEFT_F16 ? plan->own->convert.to_f16 : plan->own->convert.to_bf16)(d, from, to);
    }
}

static const double *fetch_f64(const attention_plan *plan, const void *base, const int64_t *strides,
                               int64_t pair, int64_t t, int64_t n, double *buffer, int64_t *ld) {
    (void)n;
    (void)buffer;
    *ld = strides[2];
    return (const double *)base + cpu_attention_place(plan, strides, pair, t);
}

static void put_f64(const attention_plan *plan, void *base, const int64_t *strides, int64_t pair, int64_t t,
                    int64_t n, const double *rows, int64_t ld) {
    double *to = (double *)base + cpu_attention_place(plan, strides, pair, t);
    for (int64_t r = 0; r < n; r++)
        memcpy(to + r * strides[2], rows + r * ld, (size_t)plan->at.d * sizeof *rows);
}

/* Returns the next n elements of T from the scratch memory. They begin at a cache line. */
#define TAKE(n)                                                                                              \
    (used = ((used + 63) & ~(size_t)63) + (n) * sizeof(T), cpu_attention_take(base, used - (n) * sizeof(T)))

static void *cpu_attention_take(char *base, size_t at) { return base ? base + at : NULL; }

#define T            float
#define FN(x)        x##_f32
#define GEMM         f32
#define GEMM_SCRATCH scratch.f32
#define GEMV         gemv.f32
#define ROWS         attention_f32
#include "device/cpu/heavy/attention_float.inc"
#undef T
#undef FN
#undef GEMM
#undef GEMM_SCRATCH
#undef GEMV
#undef ROWS

#define T            double
#define FN(x)        x##_f64
#define GEMM         f64
#define GEMM_SCRATCH scratch.f64
#define GEMV         gemv.f64
#define ROWS         attention_f64
#include "device/cpu/heavy/attention_float.inc"

static void cpu_attention_plan_free(weft_context *ctx, void *plan) { weft__free(ctx, plan); }

/* Returns the estimated nanoseconds: matmuls at the own kernels' speed, exponentials, and the random numbers
 * of dropout. */
static double cost_of(const attention_plan *plan) {
    static const double rate[] = {[WEFT_ISA_BASELINE] = 12, [WEFT_ISA_AVX2] = 50, [WEFT_ISA_AVX512] = 100};
    const weft_heavy_attention *at = &plan->at;
    double wide = at->dtype == WEFT_F64 ? 2 : 1, speed = rate[weft__cpu_isa()];
    double scores = (double)plan->pairs * (double)at->t_q * (double)at->t_k * (at->causal ? 0.5 : 1);
    double products = (at->backward ? 10 : 4) * (double)at->d / speed,
           others = (at->backward ? 60 : 50) / speed;
    if (at->dtype == WEFT_F64) others += 5;
    if (at->dropout > 0) others += 150 / speed;
    /* each key is read for one query alone */
    double keys = at->t_q == 1 ? scores * (double)at->d * CACHE_NS : 0;
    return (scores * (products + others) + keys) * wide + 50 * (double)plan->pairs;
}

bool weft__cpu_attention_takes(const weft_heavy_attention *at) {
    return weft_dtype_is_float((weft_dtype)at->dtype);
}

weft_status weft__cpu_attention_prepare(weft_context *ctx, const weft_heavy_attention *at, const char *path,
                                        int threads, weft_cpu_work *work) {
    (void)path, (void)threads;
    attention_plan *plan = weft__zalloc(ctx, sizeof *plan);
    if (!plan) return weft__fail_oom(ctx, sizeof *plan, "an attention plan");
    plan->at = *at;
    plan->own = weft__gemm_own();
    plan->half = at->dtype == WEFT_F16 || at->dtype == WEFT_BF16;
    plan->pairs = at->batch * at->heads;
    plan->bk = at->t_k < KEYS ? (at->t_k + 15) / 16 * 16 : KEYS; /* whole vectors, for a single query */
    if (plan->bk < 16) plan->bk = 16;
    plan->bq = at->backward ? clip((at->t_q + STEP - 1) / STEP * STEP, STEP, QUERIES) : LANES;
    bool wide = at->dtype == WEFT_F64;
    *work = (weft_cpu_work){.run = wide ? run_f64 : run_f32, .free = cpu_attention_plan_free, .plan = plan};
    plan->group = plan->q_parts = 1;
    if (plan->pairs == 0) return WEFT_OK;
    work->cost_ns = cost_of(plan);
    int64_t pieces = (int64_t)(work->cost_ns / 10e3), blocks = weft__ceil_div(at->t_q, LANES);
    pieces = pieces < 1 ? 1 : pieces > 64 ? 64 : pieces;
    plan->group = weft__ceil_div(plan->pairs, pieces);
    if (!at->backward && plan->pairs < 8 && pieces > plan->pairs) {
        plan->q_parts = weft__ceil_div(pieces < 16 ? pieces : 16, plan->pairs);
        if (plan->q_parts > blocks) plan->q_parts = blocks > 0 ? blocks : 1;
    }
    work->tasks = weft__ceil_div(plan->pairs, plan->group) * plan->q_parts;
    space_f32 sp32;
    space_f64 sp64;
    work->scratch_bytes = wide ? layout_f64(plan, NULL, &sp64) : layout_f32(plan, NULL, &sp32);
    return WEFT_OK;
}
