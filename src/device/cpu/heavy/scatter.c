/* Scatter-add without atomics. A task owns a tile of out: some leading blocks, rows and columns. It sets the
 * tile to zero or to its base; an update in place has its base already. Then it walks through the whole index
 * in order and adds the elements that fall into its rows. So every element is summed in the order of the
 * index, whatever the threads.
 *
 * f16 and bf16 are summed in an f32 tile of scratch memory and rounded once. If no index repeats and nothing
 * must be set before, a task is a part of the index.
 *
 * Must not know: threads. Read next: scatter_ones.inc, heavy.c. */
#include <string.h>

#include "device/cpu/heavy/heavy.h"

#define HALF_TILE 65536 /* f16 and bf16: elements of the f32 tile */

typedef struct scatter_plan {
    weft_heavy_scatter sc;
    const char *path;
    const weft_gemm_own *own;
    size_t size;   /* of an element */
    int64_t group; /* leading blocks of a task */
    int64_t row_tiles, col_tiles;
    int64_t tile_rows, tile_cols;
    const struct ones *ones; /* functions for rows of one element, or NULL */
    int64_t part;            /* length of the index that one task handles; 0: tasks are tiles */
} scatter_plan;

bool weft__cpu_scatter_takes(const weft_heavy_scatter *sc) {
    if (sc->index_dtype != WEFT_I32 && sc->index_dtype != WEFT_I64) return false;
    switch (sc->dtype) {
    case WEFT_F32:
    case WEFT_F64:
    case WEFT_F16:
    case WEFT_BF16:
    case WEFT_I32:
    case WEFT_U32:
    case WEFT_I64:
    case WEFT_U64: return true;
    default: return false;
    }
}

static bool is_half(const weft_heavy_scatter *sc) { return sc->dtype == WEFT_F16 || sc->dtype == WEFT_BF16; }

static void add_row(const scatter_plan *plan, int64_t n, const char *from, void *to) {
    switch (plan->sc.dtype) {
    case WEFT_F32: plan->own->add.f32(n, (const void *)from, to); return;
    case WEFT_F64: plan->own->add.f64(n, (const void *)from, to); return;
    case WEFT_F16: plan->own->add.f16(n, (const void *)from, to); return;
    case WEFT_BF16: plan->own->add.bf16(n, (const void *)from, to); return;
    case WEFT_I32:
    case WEFT_U32: {
        uint32_t *sum = to;
        const uint32_t *more = (const void *)from;
        for (int64_t i = 0; i < n; i++) sum[i] += more[i];
        return;
    }
    default: {
        uint64_t *sum = to;
        const uint64_t *more = (const void *)from;
        for (int64_t i = 0; i < n; i++) sum[i] += more[i];
        return;
    }
    }
}

/* Sets rows of sums before the first addition: to zeros, or to the rows of base. */
static void begin_rows(const scatter_plan *plan, int64_t rows, int64_t width, const char *base, char *sums,
                       size_t step) {
    const weft_heavy_scatter *sc = &plan->sc;
    bool half = is_half(sc);
    if (!base && (half || width == sc->inner)) {
        memset(sums, 0, (size_t)rows * step);
        return;
    }
    if (base == sums) return;
    for (int64_t r = 0; r < rows; r++, sums += step) {
        const char *from = base ? base + (size_t)(r * sc->inner) * plan->size : NULL;
        if (!base)
            memset(sums, 0, (size_t)width * plan->size);
        else if (half)
            (sc->dtype == WEFT_F16 ? plan->own->convert.from_f16
                                   : plan->own->convert.from_bf16)(width, (const void *)from, (void *)sums);
        else
            memcpy(sums, from, (size_t)width * plan->size);
    }
}

/* For rows of one element. */
#define FN(x) x##_f32
#define I     int32_t
#define T     float
#include "device/cpu/heavy/scatter_ones.inc"
#define FN(x) x##_f64
#define I     int32_t
#define T     double
#include "device/cpu/heavy/scatter_ones.inc"
#define FN(x) x##_u32
#define I     int32_t
#define T     uint32_t
#include "device/cpu/heavy/scatter_ones.inc"
#define FN(x) x##_u64
#define I     int32_t
#define T     uint64_t
#include "device/cpu/heavy/scatter_ones.inc"
#define FN(x) x##_f32_long
#define I     int64_t
#define T     float
#include "device/cpu/heavy/scatter_ones.inc"
#define FN(x) x##_f64_long
#define I     int64_t
#define T     double
#include "device/cpu/heavy/scatter_ones.inc"
#define FN(x) x##_u32_long
#define I     int64_t
#define T     uint32_t
#include "device/cpu/heavy/scatter_ones.inc"
#define FN(x) x##_u64_long
#define I     int64_t
#define T     uint64_t
#include "device/cpu/heavy/scatter_ones.inc"

typedef struct ones {
    void (*one)(const scatter_plan *plan, const void *index, const void *source, int64_t r0, int64_t n,
                void *sums, weft_fault *fault);
    void (*each)(const scatter_plan *plan, const void *index, const void *source, int64_t begin, int64_t end,
                 const void *base, void *out, weft_fault *fault);
} ones;

/* Returns the functions for rows of one element, or NULL if there are none. */
static const ones *ones_of(const weft_heavy_scatter *sc) {
    static const ones floats[2][2] = {{{one_f32, each_f32}, {one_f64, each_f64}},
                                      {{one_f32_long, each_f32_long}, {one_f64_long, each_f64_long}}};
    static const ones integers[2][2] = {{{one_u32, each_u32}, {one_u64, each_u64}},
                                        {{one_u32_long, each_u32_long}, {one_u64_long, each_u64_long}}};
    const size_t size = weft_dtype_size((weft_dtype)sc->dtype);
    if (sc->inner != 1 || size < 4) return NULL;
    return &(weft_dtype_is_float((weft_dtype)sc->dtype) ? floats
                                                        : integers)[sc->index_dtype == WEFT_I64][size == 8];
}

/* Computes one tile: rows r0..r1-1, columns c0..c1-1 of leading block `outer`. */
static void tile(const scatter_plan *plan, void *const *args, int64_t outer, int64_t r0, int64_t r1,
                 int64_t c0, int64_t c1, float *scratch, weft_fault *fault) {
    const weft_heavy_scatter *sc = &plan->sc;
    const char *source =
        (const char *)args[WEFT_SCATTER_SOURCE] + (size_t)(outer * sc->count * sc->inner + c0) * plan->size;
    size_t first = (size_t)(outer * sc->rows * sc->inner + c0) * plan->size,
           row0 = (size_t)(r0 * sc->inner) * plan->size;
    const char *base = sc->based ? (const char *)args[WEFT_SCATTER_BASE] + first + row0 : NULL;
    char *out = (char *)args[weft__scatter_out(sc)] + first;
    int64_t width = c1 - c0,
            step = is_half(sc) ? width * (int64_t)sizeof(float) : sc->inner * (int64_t)plan->size;
    char *sums = is_half(sc) ? (char *)scratch : out + row0;
    begin_rows(plan, r1 - r0, width, base, sums, (size_t)step);
    if (plan->ones) {
        plan->ones->one(plan, args[WEFT_SCATTER_INDEX], source, r0, r1 - r0, sums, fault);
        return;
    }
    for (int64_t i = 0; i < sc->count; i++) {
        int64_t row = sc->index_dtype == WEFT_I32 ? ((const int32_t *)args[WEFT_SCATTER_INDEX])[i]
                                                  : ((const int64_t *)args[WEFT_SCATTER_INDEX])[i];
        if (row < 0 || row >= sc->rows) {
            /* every task meets the same first one, so the report does not depend on which task is first */
            weft__cpu_fault(fault, WEFT_FAULT_SCATTER, plan->path, row, sc->rows, i);
        } else if (row >= r0 && row < r1) {
            add_row(plan, width, source + (size_t)(i * sc->inner) * plan->size,
                    sums + (size_t)((row - r0) * step));
        }
    }
    for (int64_t r = r0; r < r1 && is_half(sc); r++) {
        uint16_t *to = (uint16_t *)(void *)(out + (size_t)(r * sc->inner) * plan->size);
        const float *from = scratch + (r - r0) * width;
        (sc->dtype == WEFT_F16 ? plan->own->convert.to_f16 : plan->own->convert.to_bf16)(width, from, to);
    }
}

static void cpu_scatter_run(const void *plan_, void *const *args, int64_t begin, int64_t end, void *scratch,
                            weft_fault *fault) {
    const scatter_plan *plan = plan_;
    const weft_heavy_scatter *sc = &plan->sc;
    int64_t tiles = plan->row_tiles * plan->col_tiles;
    for (int64_t task = begin; task < end; task++) {
        int64_t r0 = task % tiles / plan->col_tiles * plan->tile_rows,
                c0 = task % plan->col_tiles * plan->tile_cols;
        int64_t first = task / tiles * plan->group, last = weft__smaller(first + plan->group, sc->outer);
        for (int64_t outer = first; outer < last; outer++)
            tile(plan, args, outer, r0, weft__smaller(r0 + plan->tile_rows, sc->rows), c0,
                 weft__smaller(c0 + plan->tile_cols, sc->inner), scratch, fault);
    }
}

/* Same as run, if no index repeats. A task is a part of the index of one leading block. */
static void run_parts(const void *plan_, void *const *args, int64_t begin, int64_t end, void *scratch,
                      weft_fault *fault) {
    const scatter_plan *plan = plan_;
    const weft_heavy_scatter *sc = &plan->sc;
    const int64_t parts = weft__ceil_div(sc->count, plan->part);
    (void)scratch;
    for (int64_t task = begin; task < end; task++) {
        const int64_t outer = task / parts, first = task % parts * plan->part;
        const size_t at = (size_t)(outer * sc->rows) * plan->size;
        plan->ones->each(plan, args[WEFT_SCATTER_INDEX],
                         (const char *)args[WEFT_SCATTER_SOURCE] + (size_t)(outer * sc->count) * plan->size,
                         first, weft__smaller(first + plan->part, sc->count),
                         sc->based ? (const char *)args[WEFT_SCATTER_BASE] + at : NULL,
                         (char *)args[weft__scatter_out(sc)] + at, fault);
    }
}

static void cpu_scatter_plan_free(weft_context *ctx, void *plan) { weft__free(ctx, plan); }

/* Returns the number of rows that are read or written whatever the index holds. */
static int64_t swept_rows(const weft_heavy_scatter *sc) {
    return sc->in_place && !is_half(sc) ? 0 : sc->based ? 2 * sc->rows : sc->rows;
}

/* Divides a leading block into tiles. If setting rows is most of the work, tiles are ranges of rows, which
 * are contiguous. Otherwise they are ranges of columns, which are balanced whatever the index holds. With few
 * columns they are a few ranges of rows. */
static void cut(scatter_plan *plan, int64_t pieces) {
    const weft_heavy_scatter *sc = &plan->sc;
    int64_t rows = sc->rows, cols = sc->inner;
    bool sweeps = swept_rows(sc) >= 2 * sc->count;
    if (sweeps || sc->inner < 64) {
        if (sc->inner < 64 && !sweeps) pieces = weft__smaller(pieces, 4);
        rows = weft__ceil_div(sc->rows, weft__smaller(pieces, sc->rows));
    } else {
        cols = weft__ceil_div(weft__ceil_div(sc->inner, 16), weft__smaller(pieces, sc->inner / 32)) * 16;
    }
    if (is_half(sc)) {
        cols = weft__smaller(cols, 1024);
        rows = weft__smaller(rows, HALF_TILE / cols);
    }
    plan->tile_rows = rows;
    plan->tile_cols = cols;
    plan->row_tiles = weft__ceil_div(sc->rows, rows);
    plan->col_tiles = weft__ceil_div(sc->inner, cols);
}

weft_status weft__cpu_scatter_prepare(weft_context *ctx, const weft_heavy_scatter *sc, const char *path,
                                      int threads, weft_cpu_work *work) {
    (void)threads;
    scatter_plan *plan = weft__zalloc(ctx, sizeof *plan);
    if (!plan) return weft__fail_oom(ctx, sizeof *plan, "a scatter plan");
    plan->sc = *sc;
    plan->path = path;
    plan->own = weft__gemm_own();
    plan->size = weft_dtype_size((weft_dtype)sc->dtype);
    *work = (weft_cpu_work){.run = cpu_scatter_run, .free = cpu_scatter_plan_free, .plan = plan};
    if (sc->outer == 0 || sc->rows == 0 || sc->inner == 0) return WEFT_OK;
    double bytes = (double)plan->size * (double)sc->inner * ((double)swept_rows(sc) + 2 * (double)sc->count);
    work->cost_ns = (double)sc->outer * (bytes / 6 + 3 * (double)sc->count) + 20;
    int64_t pieces = (int64_t)(work->cost_ns / 10e3);
    pieces = pieces < 1 ? 1 : pieces > 16 ? 16 : pieces;
    plan->ones = ones_of(sc);
    if (plan->ones && sc->count > 0 && weft__scatter_is_direct(sc)) {
        work->run = run_parts;
        plan->part = weft__ceil_div(sc->count, weft__ceil_div(pieces, sc->outer));
        work->tasks = sc->outer * weft__ceil_div(sc->count, plan->part);
        return WEFT_OK;
    }
    plan->group = weft__ceil_div(sc->outer, pieces);
    cut(plan, weft__ceil_div(pieces, sc->outer));
    work->tasks = weft__ceil_div(sc->outer, plan->group) * plan->row_tiles * plan->col_tiles;
    if (is_half(sc)) work->scratch_bytes = (size_t)(plan->tile_rows * plan->tile_cols) * sizeof(float);
    return WEFT_OK;
}
