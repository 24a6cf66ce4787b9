/* A matmul as tasks. A task is a group of small batch items, or a block of one item along M and N, never
 * along K. Shape, dtype and instruction set alone decide between the library and own kernels.
 *
 * - Library: shape, dtype and instruction set also decide the partition, so that bits do not depend on the
 *   number of threads.
 * - Own kernels: every partition gives the same bits, so the partition may follow the number of threads.
 *
 * Must not know: other heavy operations. Read next: gemv.c (matrix times vector), gemm_own.c,
 * matmul_library.c. */
#include <math.h>
#include <string.h>

#include "device/cpu/gemm/gemm.h"
#include "device/cpu/heavy/heavy.h"

/* f16 and bf16: products added in f32 before the next blocks of a and b are converted */
#define HALF_DEPTH 512
/* f16 and bf16: the largest block, which limits the scratch memory */
#define HALF_ROWS 256
#define HALF_COLS 256

#define OWN_COLUMNS 768 /* of b that the own kernels pack at once */

#define M_LEAST 16 /* rows of a block, at least */
#define N_LEAST 64

typedef struct matmul_plan {
    weft_heavy_matmul mm; /* leading batch dimensions are merged into m if possible */
    const weft_gemm_own *own;
    bool library;          /* false: own kernels */
    size_t size, out_size; /* of an element */
    int64_t items, group;  /* number of matmuls, and how many of them one task computes */
    int64_t m_blocks, n_blocks;
    int64_t half_depth;
    size_t own_scratch; /* bytes of the scratch memory, at its start, for the own kernels */
} matmul_plan;

bool weft__cpu_matmul_takes(const weft_heavy_matmul *mm) {
    /* the next kernel reads from a cache: docs/design/013-epilogues.md */
    if (mm->epilogue || mm->sums) return false;
    switch (mm->dtype) {
    case WEFT_F32:
    case WEFT_F64:
    case WEFT_I32:
    case WEFT_U32:
    case WEFT_I64:
    case WEFT_U64:
    case WEFT_C64:
    case WEFT_C128: return mm->out_dtype == mm->dtype;
    case WEFT_F16:
    case WEFT_BF16: return mm->out_dtype == mm->dtype || mm->out_dtype == WEFT_F32;
    default: return false;
    }
}

static bool is_half(const weft_heavy_matmul *mm) { return mm->dtype == WEFT_F16 || mm->dtype == WEFT_BF16; }

static bool is_pairs(const weft_heavy_matmul *mm) { return mm->dtype == WEFT_C64 || mm->dtype == WEFT_C128; }

static int64_t clamp(int64_t v, int64_t lo, int64_t hi) { return v < lo ? lo : v > hi ? hi : v; }

static weft_gemm gemm_of(const weft_heavy_matmul *mm, int64_t m, int64_t n, int64_t k) {
    return (weft_gemm){.m = m,
                       .n = n,
                       .k = k,
                       .a_m = mm->a_m,
                       .a_k = mm->a_k,
                       .b_k = mm->b_k,
                       .b_n = mm->b_n,
                       .c_m = mm->c_m};
}

/* ---- one block ---- */

static void block_f32(const matmul_plan *plan, const weft_gemm *g, const float *a, const float *b, float *c,
                      void *scratch) {
    if (plan->library)
        weft__library_f32(g, a, b, c);
    else
        plan->own->f32(g, a, b, c, scratch);
}

static void block_f64(const matmul_plan *plan, const weft_gemm *g, const double *a, const double *b,
                      double *c, void *scratch) {
    if (plan->library)
        weft__library_f64(g, a, b, c);
    else
        plan->own->f64(g, a, b, c, scratch);
}

static void block_pairs(const matmul_plan *plan, const weft_gemm *g, const char *a, const char *b, char *c,
                        void *scratch) {
    const int conj = plan->mm.conj;
    if (plan->library)
        weft__library_complex(g, (weft_dtype)plan->mm.dtype, conj, a, b, c);
    else if (plan->mm.dtype == WEFT_C64)
        plan->own->c64(g, conj, (const void *)a, (const void *)b, (void *)c, scratch);
    else
        plan->own->c128(g, conj, (const void *)a, (const void *)b, (void *)c, scratch);
}

/* Widens a (rows, cols) block to f32. Its dimension of stride 1 stays the same. Returns the new strides. */
static void widen(const matmul_plan *plan, const uint16_t *from, int64_t rows, int64_t cols, int64_t *s_row,
                  int64_t *s_col, float *to) {
    void (*convert)(int64_t, const uint16_t *, float *) =
        plan->mm.dtype == WEFT_F16 ? plan->own->convert.from_f16 : plan->own->convert.from_bf16;
    if (*s_col == 1 || cols == 1) {
        for (int64_t i = 0; i < rows; i++) convert(cols, from + i * *s_row, to + i * cols);
        *s_row = cols;
        *s_col = 1;
    } else if (*s_row == 1 || rows == 1) {
        for (int64_t j = 0; j < cols; j++) convert(rows, from + j * *s_col, to + j * rows);
        *s_row = 1;
        *s_col = rows;
    } else {
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < cols; j++) convert(1, from + i * *s_row + j * *s_col, to + i * cols + j);
        *s_row = cols;
        *s_col = 1;
    }
}

static size_t cpu_matmul_aligned(size_t bytes) { return (bytes + 63) & ~(size_t)63; }

/* Converts blocks along K, multiplies them in f32 and rounds once at the end. */
static void block_half(const matmul_plan *plan, const weft_gemm *g, const uint16_t *a, const uint16_t *b,
                       void *c, char *scratch) {
    int64_t depth = plan->half_depth;
    float *wide_a = (float *)(void *)(scratch + cpu_matmul_aligned(plan->own_scratch));
    float *wide_b = wide_a + cpu_matmul_aligned((size_t)(g->m * depth) * 4) / 4;
    float *sum = wide_b + cpu_matmul_aligned((size_t)(depth * g->n) * 4) / 4;
    bool direct = plan->mm.out_dtype == WEFT_F32;
    weft_gemm part = *g;
    if (direct)
        sum = c;
    else
        part.c_m = g->n;
    for (int64_t p = 0; p < g->k; p += depth) {
        part.k = clamp(g->k - p, 0, depth);
        part.a_m = g->a_m, part.a_k = g->a_k, part.b_k = g->b_k, part.b_n = g->b_n;
        widen(plan, a + p * g->a_k, g->m, part.k, &part.a_m, &part.a_k, wide_a);
        widen(plan, b + p * g->b_k, part.k, g->n, &part.b_k, &part.b_n, wide_b);
        part.add = p > 0;
        block_f32(plan, &part, wide_a, wide_b, sum, scratch);
    }
    for (int64_t i = 0; i < g->m && !direct; i++) {
        uint16_t *to = (uint16_t *)c + i * g->c_m;
        (plan->mm.dtype == WEFT_F16 ? plan->own->convert.to_f16
                                    : plan->own->convert.to_bf16)(g->n, sum + i * g->n, to);
    }
}

static void block(const matmul_plan *plan, const weft_gemm *g, const char *a, const char *b, char *c,
                  void *scratch) {
    if (g->k == 0) {
        for (int64_t i = 0; i < g->m; i++)
            memset(c + (size_t)(i * g->c_m) * plan->out_size, 0, (size_t)g->n * plan->out_size);
        return;
    }
    switch (plan->mm.dtype) {
    case WEFT_F32: block_f32(plan, g, (const void *)a, (const void *)b, (void *)c, scratch); return;
    case WEFT_F64: block_f64(plan, g, (const void *)a, (const void *)b, (void *)c, scratch); return;
    case WEFT_I32: plan->own->i32(g, (const void *)a, (const void *)b, (void *)c); return;
    case WEFT_I64: plan->own->i64(g, (const void *)a, (const void *)b, (void *)c); return;
    case WEFT_C64:
    case WEFT_C128: block_pairs(plan, g, a, b, c, scratch); return;
    default: block_half(plan, g, (const void *)a, (const void *)b, c, scratch); return;
    }
}

/* ---- tasks ---- */

static void cpu_matmul_run(const void *plan_, void *const *args, int64_t begin, int64_t end, void *scratch,
                           weft_fault *fault) {
    (void)fault;
    const matmul_plan *plan = plan_;
    const weft_heavy_matmul *mm = &plan->mm;
    int token = plan->library ? weft__library_enter() : 0;
    int64_t pieces = plan->m_blocks * plan->n_blocks;
    for (int64_t task = begin; task < end; task++) {
        int64_t piece = task % pieces, mi = piece / plan->n_blocks, ni = piece % plan->n_blocks;
        int64_t first = task / pieces * plan->group, last = clamp(first + plan->group, 0, plan->items);
        int64_t i0 = weft__border(mm->m, plan->m_blocks, mi), j0 = weft__border(mm->n, plan->n_blocks, ni);
        weft_gemm g = gemm_of(mm, weft__border(mm->m, plan->m_blocks, mi + 1) - i0,
                              weft__border(mm->n, plan->n_blocks, ni + 1) - j0, mm->k);
        for (int64_t item = first; item < last; item++) {
            int64_t a = i0 * mm->a_m, b = j0 * mm->b_n, c = i0 * mm->c_m + j0, rest = item;
            for (int d = mm->batch_rank - 1; d >= 0; d--) {
                int64_t at = rest % mm->batch[d];
                rest /= mm->batch[d];
                a += at * mm->a_batch[d], b += at * mm->b_batch[d], c += at * mm->c_batch[d];
            }
            block(plan, &g, (const char *)args[0] + (size_t)a * plan->size,
                  (const char *)args[1] + (size_t)b * plan->size,
                  (char *)args[2] + (size_t)c * plan->out_size, scratch);
        }
    }
    if (plan->library) weft__library_leave(token);
}

static void cpu_matmul_plan_free(weft_context *ctx, void *plan) { weft__free(ctx, plan); }

/* ---- one task of a few kernel calls, all prepared in advance ---- */

#define CALLS_MOST 16

typedef struct direct_plan {
    weft_gemm g; /* as the kernels get it */
    bool packs;
    int64_t b_k, b_n; /* strides of b before it is packed */
    void (*pack)(float *to, int64_t width, const float *from, int64_t s_i, int64_t s_k, int64_t rows,
                 int64_t k);
    int64_t n_calls;
    weft_gemm_call_f32 calls[];
} direct_plan;

static void run_direct(const void *plan_, void *const *args, int64_t begin, int64_t end, void *scratch,
                       weft_fault *fault) {
    (void)fault, (void)begin, (void)end;
    const direct_plan *plan = plan_;
    const weft_gemm *g = &plan->g;
    const float *a = args[0], *b = args[1];
    float *c = args[2];
    if (plan->packs) {
        plan->pack(scratch, g->b_k, b, plan->b_n, plan->b_k, g->n, g->k);
        b = scratch;
    }
    for (const weft_gemm_call_f32 *x = plan->calls, *last = x + plan->n_calls; x < last; x++)
        x->kernel(g->k, a + x->a, g->a_m, g->a_k, b + x->b, g->b_k, c + x->c, g->c_m, x->last, false);
}

/* Replaces the plan of a work with one task by prepared calls, if possible. */
static weft_status make_direct(weft_context *ctx, weft_cpu_work *work) {
    const matmul_plan *plan = work->plan;
    const weft_heavy_matmul *mm = &plan->mm;
    weft_gemm_call_f32 calls[CALLS_MOST];
    if (work->tasks != 1 || plan->items != 1 || mm->dtype != WEFT_F32 || plan->library) return WEFT_OK;
    weft_gemm g = gemm_of(mm, mm->m, mm->n, mm->k);
    const int64_t n = plan->own->f32_calls(&g, calls, CALLS_MOST);
    if (n == 0) return WEFT_OK;
    direct_plan *direct = weft__zalloc(ctx, sizeof *direct + (size_t)n * sizeof *calls);
    if (direct) {
        *direct = (direct_plan){.g = g,
                                .packs = mm->b_n != 1 && mm->n != 1,
                                .b_k = mm->b_k,
                                .b_n = mm->b_n,
                                .pack = plan->own->f32_pack,
                                .n_calls = n};
        memcpy(direct->calls, calls, (size_t)n * sizeof *calls);
    }
    work->free(ctx, work->plan);
    if (!direct) return weft__fail_oom(ctx, sizeof *direct, "a matmul plan");
    work->plan = direct;
    work->run = run_direct;
    return WEFT_OK;
}

/* ---- the plan ---- */

/* Merges batch dimensions: (B, M, K) x (K, N) with contiguous rows is one matmul of B * M rows. */
static void fold_batch(weft_heavy_matmul *mm) {
    while (mm->batch_rank > 0) {
        int d = mm->batch_rank - 1;
        bool one = mm->batch[d] == 1;
        bool follows =
            mm->b_batch[d] == 0 && mm->a_batch[d] == mm->m * mm->a_m && mm->c_batch[d] == mm->m * mm->c_m;
        int64_t rows;
        if (!one && (!follows || !weft__mul(mm->m, mm->batch[d], &rows))) return;
        if (!one) mm->m = rows;
        mm->batch_rank = d;
    }
}

/* Returns whether own packed kernels are at least as fast as oneDNN 2.6. With AVX-512 they are if a is stored
 * by columns, b is narrow, or the matmul is large: up to 15 % faster. At n = 256 and 512 they are 3 to 8 %
 * slower. */
static bool own_is_faster(const weft_heavy_matmul *mm) {
    if (weft__cpu_isa() != WEFT_ISA_AVX512) return false;
    return mm->a_k != 1 || mm->n <= 128 || (double)mm->m * (double)mm->n * (double)mm->k >= 0x1p28;
}

/* Returns whether the library computes the matmul. Without AVX-512, own kernels are faster up to about n =
 * 128, and the library is faster above. For f64 and complex numbers the library must be a CBLAS. For complex
 * numbers, own kernels are as fast as MKL with AVX-512, and 3 to 6 % slower with AVX2. */
static bool wants_library(const matmul_plan *plan) {
    const weft_heavy_matmul *mm = &plan->mm;
    if (mm->dtype == WEFT_I32 || mm->dtype == WEFT_I64 || mm->k == 0) return false;
    weft_gemm g = gemm_of(mm, mm->m, mm->n, mm->k);
    if (is_pairs(mm)) return weft__cpu_isa() != WEFT_ISA_AVX512 && weft__library_takes_complex(&g, mm->conj);
    if (mm->dtype != WEFT_F64 && (plan->own->f32_direct(&g) || own_is_faster(mm))) return false;
    if (mm->dtype == WEFT_F64 && mm->m * mm->n <= 128 * 128 && mm->k <= 256) return false;
    bool serves = mm->dtype == WEFT_F64 ? weft__matmul_library()->f64 : weft__matmul_library()->f32;
    return serves && (is_half(mm) || weft__library_fits(&g));
}

/* Returns into how many pieces a library matmul of so many operations is divided. There are enough pieces to
 * load a few threads evenly. There are few enough that repeated packing costs less than about 5 %. */
static int64_t pieces_for(double flops) {
    if (flops < 1e6) return 1;
    if (flops < 4e6) return 2;
    if (flops < 256e6) return 4;
    if (flops < 32e9) return 8;
    return flops < 256e9 ? 16 : 32;
}

/* Returns as many pieces as threads, if each piece is worth claiming. A piece takes at most about 40 ms, so
 * that a thread that comes late does not delay the others for long. */
static int64_t own_pieces_for(double flops, int threads) {
    double waves = ceil(flops / (8e9 * threads)), most = flops / 5e5;
    double pieces = waves * threads < most ? waves * threads : most;
    return clamp((int64_t)pieces, 1, 1 << 20);
}

/* Returns the elements that a partition packs repeatedly. Every block along M packs b again, and every block
 * along N packs a again. Own kernels also pack a for each OWN_COLUMNS. Blocks that are narrow in N or flat in
 * M are slow, too. Measured with AVX-512 on two cores: oneDNN 2.6 loses 0 to 5 % with 4 pieces, and up to 10
 * % with 8. */
static double repeated(const matmul_plan *plan, int64_t m_blocks, int64_t n_blocks) {
    const weft_heavy_matmul *mm = &plan->mm;
    bool own = !plan->library;
    const int64_t parts = is_pairs(mm) ? 2 : 1, n = mm->n * parts; /* floats in a row */
    int64_t spans = own ? n_blocks * weft__ceil_div(weft__ceil_div(n, n_blocks), OWN_COLUMNS) : n_blocks;
    double cost = (double)m_blocks * (double)n + (double)(spans * parts) * (double)mm->m;
    if (n / n_blocks < (own ? 96 : 128)) cost *= 1.3;
    if (mm->m / m_blocks < (own ? 16 : 32)) cost *= 1.3;
    return cost;
}

static void matmul_partition(matmul_plan *plan, int64_t pieces) {
    const weft_heavy_matmul *mm = &plan->mm;
    double best = INFINITY;
    plan->m_blocks = plan->n_blocks = 1;
    for (; pieces > 1 && best == INFINITY; pieces--) {
        for (int64_t m_blocks = 1; m_blocks <= pieces; m_blocks++) {
            int64_t n_blocks = pieces / m_blocks;
            if (m_blocks * n_blocks != pieces) continue;
            if (m_blocks > 1 && mm->m < m_blocks * M_LEAST) continue;
            if (n_blocks > 1 && mm->n < n_blocks * N_LEAST) continue;
            double cost = repeated(plan, m_blocks, n_blocks);
            if (cost >= best) continue;
            best = cost;
            plan->m_blocks = m_blocks;
            plan->n_blocks = n_blocks;
        }
    }
    if (is_half(mm)) {
        if (mm->m > plan->m_blocks * HALF_ROWS) plan->m_blocks = weft__ceil_div(mm->m, HALF_ROWS);
        if (mm->n > plan->n_blocks * HALF_COLS) plan->n_blocks = weft__ceil_div(mm->n, HALF_COLS);
    }
}

/* Returns how many times longer an operation of a dtype takes than one of f32. */
static double slowness(weft_dtype dtype) {
    switch (dtype) {
    case WEFT_F64: return 2;
    case WEFT_I32: return 6;
    case WEFT_I64: return 20;
    case WEFT_C64: return 4;
    case WEFT_C128: return 8;
    default: return 1;
    }
}

static size_t scratch_for(matmul_plan *plan) {
    const weft_heavy_matmul *mm = &plan->mm;
    int64_t m = weft__largest_block(mm->m, plan->m_blocks), n = weft__largest_block(mm->n, plan->n_blocks);
    weft_gemm g = gemm_of(mm, m, n, mm->k);
    plan->half_depth = mm->k < HALF_DEPTH ? mm->k : HALF_DEPTH;
    if (is_half(mm)) {
        /* the widened blocks keep their dimension of stride 1; this asks for the larger of both layouts of
         * b */
        g.k = plan->half_depth;
        g.b_n = 2;
    }
    plan->own_scratch = 0;
    const bool whole = mm->dtype == WEFT_I32 || mm->dtype == WEFT_I64;
    if (!plan->library && !whole)
        plan->own_scratch = mm->dtype == WEFT_F64    ? plan->own->scratch.f64(&g)
                            : mm->dtype == WEFT_C64  ? plan->own->scratch.c64(&g)
                            : mm->dtype == WEFT_C128 ? plan->own->scratch.c128(&g)
                                                     : plan->own->scratch.f32(&g);
    size_t bytes = cpu_matmul_aligned(plan->own_scratch);
    if (is_half(mm)) {
        bytes += cpu_matmul_aligned((size_t)(m * plan->half_depth) * 4) +
                 cpu_matmul_aligned((size_t)(plan->half_depth * n) * 4);
        if (mm->out_dtype != WEFT_F32) bytes += cpu_matmul_aligned((size_t)(m * n) * 4);
    }
    return bytes;
}

weft_status weft__cpu_matmul_prepare(weft_context *ctx, const weft_heavy_matmul *given, const char *path,
                                     int threads, weft_cpu_work *work) {
    (void)path;
    weft_heavy_matmul folded = *given, *mm = &folded;
    if (mm->dtype == WEFT_U32) mm->dtype = mm->out_dtype = WEFT_I32; /* it wraps to the same values */
    if (mm->dtype == WEFT_U64) mm->dtype = mm->out_dtype = WEFT_I64;
    fold_batch(mm);
    if (weft__cpu_gemv_takes(mm)) return weft__cpu_gemv_prepare(ctx, mm, work);
    matmul_plan *plan = weft__zalloc(ctx, sizeof *plan);
    if (!plan) return weft__fail_oom(ctx, sizeof *plan, "a matmul plan");
    plan->mm = *mm;
    plan->own = weft__gemm_own();
    plan->size = weft_dtype_size((weft_dtype)mm->dtype);
    plan->out_size = weft_dtype_size((weft_dtype)mm->out_dtype);
    plan->items = 1;
    for (int d = 0; d < mm->batch_rank; d++) plan->items *= mm->batch[d];
    *work = (weft_cpu_work){.run = cpu_matmul_run, .free = cpu_matmul_plan_free, .plan = plan};
    if (plan->items == 0 || mm->m == 0 || mm->n == 0) {
        plan->m_blocks = plan->n_blocks = plan->group = 1;
        return WEFT_OK;
    }
    plan->library = wants_library(plan);
    if (plan->library) WEFT_TRY(weft__library_prepare(ctx));
    double flops = 2.0 * (double)mm->m * (double)mm->n * (double)(mm->k > 0 ? mm->k : 1);
    double total = flops * (double)plan->items * slowness((weft_dtype)mm->dtype);
    plan->group = weft__ceil_div(plan->items, clamp((int64_t)(total / 1e6), 1, 64));
    int64_t pieces = plan->library ? pieces_for(total) : own_pieces_for(total, threads);
    matmul_partition(plan, plan->group > 1 ? 1 : weft__ceil_div(pieces, plan->items));
    work->tasks = weft__ceil_div(plan->items, plan->group) * plan->m_blocks * plan->n_blocks;
    work->scratch_bytes = scratch_for(plan);
    double touched = (double)plan->size * (double)mm->k * (double)(mm->m + mm->n) * (double)plan->items;
    double calls = (double)(plan->items * plan->m_blocks * plan->n_blocks);
    static const double rate[] = {[WEFT_ISA_BASELINE] = 15, [WEFT_ISA_AVX2] = 60, [WEFT_ISA_AVX512] = 120};
    work->cost_ns = total / rate[weft__cpu_isa()] + touched / 20 + calls * (plan->library ? 400 : 40);
    return make_direct(ctx, work);
}
