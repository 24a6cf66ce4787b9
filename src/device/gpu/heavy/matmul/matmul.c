/* Matmuls for the GPU backends: which template, which tile, how many work-groups.
 * Must not know: how launches run. Read next: matmul.cl, then matmul_tiles.cl, matmul_slices.cl (few
 * tiles, CUDA), matmul_direct.cl (processors, and tiny matmuls on CUDA), matmul_tensor.cl (tensor and matrix
 * cores), matmul_rows.cl (few rows). */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "device/gpu/heavy/heavy.h"
#include "device/gpu/heavy/matmul/matmul_params.h"
#include "device/gpu/heavy/matmul/matmul.h"
#include "device/gpu/heavy/matmul/matmul_plan.h"
#include "device/gpu/backend/template.h"
#include "device/gpu/backend/kernel_source.h"
#include "device/gpu/backend/tune.h"

#define FEW_ROWS 4   /* with at most so many rows, b is read in place */
#define BEYOND   512 /* lines after the last one whose address a template may compute */

/* Returns whether c is a column. It is computed as one row of the transposed matmul. */
static bool is_column(const weft_heavy_matmul *mm) { return mm->n == 1 && mm->c_m == 1 && mm->m > 1; }

#define EPILOGUE_ARGUMENTS 32 /* the most that a launch has room for */

static bool takes_epilogue(const weft_target *target, const weft_heavy_matmul *mm) {
    const weft_kernel *k = mm->epilogue;
    for (int i = 0; i < k->n_code; i++)
        if (k->code[i].dtype == WEFT_F64 && !target->f64) return false;
    return k->n_args <= EPILOGUE_ARGUMENTS && weft__kernel_has_rows(k, is_column(mm) ? mm->m : mm->n);
}

/* Returns whether the template can also return the row sums of a. Only tiles can: those at the first column
 * of c have the parts of a at hand. */
static bool takes_sums(const weft_heavy_matmul *mm) {
    return mm->batch_rank == 0 && mm->m > FEW_ROWS && mm->n > 0 && !is_column(mm);
}

bool weft__gpu_matmul_takes(const weft_target *target, const weft_heavy_matmul *mm) {
    if (mm->sums && !takes_sums(mm)) return false;
    if (!weft__gpu_knows(target, (weft_dtype)mm->dtype)) return false;
    if (mm->m > INT_MAX / 2 || mm->n > INT_MAX / 2 || mm->k > INT_MAX / 2) return false;
    if (mm->epilogue && !takes_epilogue(target, mm)) return false;
    switch (mm->dtype) {
    case WEFT_F32:
    case WEFT_F64:
    case WEFT_I32:
    case WEFT_U32:
    case WEFT_I64:
    case WEFT_U64: return mm->out_dtype == mm->dtype;
    case WEFT_F16:
    case WEFT_BF16: return mm->out_dtype == mm->dtype || mm->out_dtype == WEFT_F32;
    default: return false;
    }
}

static matmul_plan plan_of(const weft_launches *launches, const weft_heavy_matmul *mm, int a, int b,
                           const weft_gpu_view *view, bool sink) {
    matmul_plan p = {.target = launches->target,
                     .dtype = (weft_dtype)mm->dtype,
                     .out = (weft_dtype)mm->out_dtype,
                     .sum = weft__gpu_sum_dtype((weft_dtype)mm->dtype),
                     .sink = sink,
                     .a = a,
                     .b = b,
                     .mm = *mm,
                     .view = view,
                     .aligned = launches->aligned,
                     .items = 1,
                     .splits = 1,
                     .part = mm->k,
                     .prelude = weft__gpu_prelude((weft_dtype)mm->dtype)};
    if (mm->sums) p.sums = mm->epilogue ? 2 + mm->epilogue->n_args : 3;
    if (!view && is_column(mm)) {
        p.a = b, p.b = a;
        p.mm.m = 1, p.mm.n = mm->m, p.mm.c_m = mm->m;
        p.mm.a_m = mm->b_n, p.mm.a_k = mm->b_k;
        p.mm.b_n = mm->a_m, p.mm.b_k = mm->a_k;
        for (int d = 0; d < mm->batch_rank; d++)
            p.mm.a_batch[d] = mm->b_batch[d], p.mm.b_batch[d] = mm->a_batch[d];
    }
    for (int d = p.mm.batch_rank; d < WEFT_BATCH_DIMS; d++) {
        p.mm.batch[d] = 1;
        p.mm.a_batch[d] = p.mm.b_batch[d] = p.mm.c_batch[d] = 0;
    }
    for (int d = 0; d < WEFT_BATCH_DIMS; d++) p.items *= p.mm.batch[d];
    return p;
}

void weft__matmul_split(matmul_plan *p, int64_t tiles, int64_t wanted, int64_t least, int64_t step) {
    if (tiles >= wanted || p->mm.k < 2 * least || (p->view && p->view->spread)) return;
    const int64_t splits = weft__smaller(weft__ceil_div(wanted, tiles), p->mm.k / least);
    p->part = weft__matmul_round_up(weft__ceil_div(p->mm.k, splits), step);
    p->splits = weft__ceil_div(p->mm.k, p->part);
}

static void split(matmul_plan *p, int64_t tiles, int64_t wanted, int64_t least) {
    weft__matmul_split(p, tiles, wanted, least, CHUNK);
}

/* ---- tiles ---- */

/* Tiles: m x n patches of 4 x 4 sums for each work-item, and `share`, by which the largest work-group is
 * divided. The default is one of the first three. The tuner also tries the others. */
static const struct patches {
    int m, n, share;
} patches[] = {{2, 2, 1}, {2, 1, 1}, {1, 1, 1}, {2, 2, 4}, {1, 2, 2}};
enum { PATCHES = sizeof patches / sizeof *patches, PATCHES_USUAL = 3 };

/* Returns the work-items of a work-group across: as many as down, or half as many. */
static int wide_of(int items) {
    int wide = 1;
    while (2 * wide * 2 * wide <= items && wide < 16) wide *= 2;
    return wide;
}

/* The shortest part of k on CUDA. A tile of 64 x 64 takes 32 cycles of a multiprocessor for each step of k.
 * So a part of 128 takes as long as the launch that adds up the parts, some 2 us. DEPTH_MOST: steps of k that
 * are read at once. */
enum { CUDA_PART = 128, DEPTH_MOST = 16 };

const char *weft__matmul_sum_vector(const matmul_plan *p) {
    const bool floats = p->sum == WEFT_F32 || p->sum == WEFT_F64;
    return weft_dtype_size(p->sum) == 4 ? floats ? "float4" : "uint4" : floats ? "double4" : "ulong4";
}

/* Matmuls that one small work-group computes on WebGPU, where no launches are fused: fewer work-items wait
 * for each other. 32 work-items have tiles of 32 x 16. */
enum { TINY_ITEMS = 32, TINY_M = 32, TINY_N = 16, TINY_K = 64 };

static bool is_tiny(const matmul_plan *p) {
    return p->target->dialect == WEFT_DIALECT_WGSL && p->target->lanes >= TINY_ITEMS && !p->view &&
           p->mm.m <= TINY_M && p->mm.n <= TINY_N && p->mm.k <= TINY_K;
}

static const char *plan_tiles(matmul_plan *p, int variant) {
    if (weft__matmul_is_sliced(p)) return weft__matmul_plan_slices(p);
    const bool tiny = is_tiny(p);
    const int64_t size = (int64_t)weft_dtype_size(p->sum), groups = 2 * (int64_t)p->target->units;
    int depth = DEPTH_MOST, i = tiny ? PATCHES_USUAL - 1 : variant < 0 ? 0 : variant, wide = 1, high = 1;
    const int64_t squares = weft__matmul_squares(p);
    if (p->target->dialect == WEFT_DIALECT_CUDA)
        weft__matmul_split(p, squares, 128, CUDA_PART, DEPTH_MOST);
    else
        split(p, squares, 64, 512);
    for (; i < PATCHES; i++) { /* the largest tile that keeps all units busy */
        p->group_items = tiny ? TINY_ITEMS : (int)weft__larger(1, p->target->lanes / patches[i].share);
        wide = wide_of(p->group_items), high = p->group_items / wide;
        p->block.m = high * 4 * patches[i].m;
        p->block.n = wide * 4 * patches[i].n;
        const int64_t tiles = weft__ceil_div(p->mm.m, p->block.m) * weft__ceil_div(p->mm.n, p->block.n);
        if (variant >= 0 || i == PATCHES_USUAL - 1 || tiles * p->items * p->splits >= groups) break;
    }
    while (depth > 4 && (p->block.m + p->block.n + 8) * depth * size > p->target->local_bytes) depth /= 2;
    p->local.declared = (p->block.m + p->block.n + 8) * depth * size;
    p->variant.number = tiny ? 0 : i, p->variant.count = tiny ? 1 : PATCHES;
    snprintf(p->name, sizeof p->name, "%d x %d by %d", (int)p->block.m, (int)p->block.n, p->group_items);
    snprintf(p->head, sizeof p->head,
             "#define S4 %s\n#define WIDE_ITEMS %d\n#define HIGH_ITEMS %d\n#define PATCH_M %d\n"
             "#define PATCH_N %d\n#define DEPTH %d\n#define A_LINES %d\n#define B_LINES %d\n"
             "#undef ITEMS\n#define ITEMS %d\n",
             weft__matmul_sum_vector(p), wide, high, patches[i].m, patches[i].n, depth,
             weft__matmul_a_lines(p), weft__matmul_b_lines(p), p->group_items);
    return weft__source_matmul_tiles;
}

/* ---- processors that run work-items ---- */

/* A work-item has DIRECT_SIDE x DIRECT_SIDE sums. At most DIRECT_WIDE work-items of a work-group are side by
 * side: with fewer columns there are fewer, so that none is idle. DIRECT_TINY are enough for tiny matmuls. */
enum { DIRECT_ITEMS = 64, DIRECT_TINY = 8, DIRECT_WIDE = 8, DIRECT_SIDE = 8 };
_Static_assert(DIRECT_TINY *DIRECT_SIDE *DIRECT_SIDE == TINY_M * TINY_N,
               "one work-group computes a tiny matmul");

static bool is_direct(const matmul_plan *p) { return p->target->on_processor && !p->view; }

static const char *plan_in_place(matmul_plan *p, int side, int wide) {
    p->block.m = (int64_t)(p->group_items / wide) * side;
    p->block.n = (int64_t)wide * side;
    p->variant.count = 1;
    snprintf(p->name, sizeof p->name, "%d x %d in place", (int)p->block.m, (int)p->block.n);
    snprintf(p->head, sizeof p->head, "#define SIDE %d\n#undef ITEMS\n#define ITEMS %d\n", side,
             p->group_items);
    return weft__source_matmul_direct;
}

static const char *plan_direct(matmul_plan *p) {
    int wide = 1;
    while (wide < DIRECT_WIDE && wide * DIRECT_SIDE < p->mm.n) wide *= 2;
    split(p, weft__matmul_squares(p), 64, 512);
    p->group_items = (int)weft__smaller(is_tiny(p) ? DIRECT_TINY : DIRECT_ITEMS, p->target->lanes);
    return plan_in_place(p, DIRECT_SIDE, wide);
}

/* The same on CUDA: each work-item of one work-group computes 1 or 4 elements, in a few steps of k. Copying
 * to local memory, and waiting for it, would take longer. */
enum { CARD_STEPS = 16, CARD_SIDE = 2 };

static bool is_direct_on_card(const matmul_plan *p) {
    const int64_t items = weft__ceil_div(p->mm.m, CARD_SIDE) * weft__ceil_div(p->mm.n, CARD_SIDE);
    return p->target->dialect == WEFT_DIALECT_CUDA && !p->view && p->mm.k <= CARD_STEPS &&
           items <= p->target->lanes;
}

static const char *plan_direct_on_card(matmul_plan *p) {
    const int side = p->mm.m * p->mm.n <= p->group_items ? 1 : CARD_SIDE;
    return plan_in_place(p, side, (int)weft__ceil_div(p->mm.n, side));
}

/* ---- tensor cores ---- */

/* Tiles of warps_m x warps_n warps. Local memory holds `stages` parts, each `pieces` times 16 bytes deep.
 * This is at most 48 KiB, which every card has, except for the first tile. The sums of a warp are in
 * registers. The first two tiles have too few registers for sums in two levels. The rate is a relative guess,
 * from what a tile reads for each product. */
static const struct tensor_tile {
    int m, n, pieces, warps_m, warps_n, stages;
    double rate;
} tensor_tiles[] = {{128, 256, 4, 2, 4, 3, 1.1}, {128, 128, 4, 2, 2, 3, 1},  {128, 128, 4, 2, 4, 3, 0.9},
                    {128, 64, 4, 2, 2, 4, 0.8},  {64, 64, 8, 2, 2, 3, 0.65}, {64, 32, 8, 2, 2, 4, 0.5},
                    {32, 64, 8, 1, 4, 4, 0.5}};
enum { TENSOR_TILES = sizeof tensor_tiles / sizeof *tensor_tiles, ONE_LEVEL = 2 };
_Static_assert((int)TENSOR_TILES <= (int)WEFT_TUNER_VARIANTS, "the tuner knows all");

/* The same for AMD's cards, with wavefronts of 64 and of 32 lanes. Registers hold the part that comes next,
 * so two stages are enough. The last tile has no registers for sums of two levels, for the places of windows,
 * or for row sums. */
static const struct tensor_tile matrix_tiles[2][5] = {{{128, 64, 4, 2, 2, 2, 0.8},
                                                       {64, 64, 8, 2, 2, 2, 0.65},
                                                       {64, 32, 8, 2, 2, 2, 0.5},
                                                       {32, 64, 8, 1, 4, 2, 0.5},
                                                       {128, 128, 4, 2, 2, 2, 1}},
                                                      {{128, 64, 4, 4, 2, 2, 0.8},
                                                       {64, 64, 4, 2, 2, 2, 0.65},
                                                       {64, 32, 8, 2, 2, 2, 0.5},
                                                       {32, 64, 8, 1, 4, 2, 0.5},
                                                       {128, 128, 4, 2, 4, 2, 1}}};
enum { MATRIX_TILES = sizeof matrix_tiles[0] / sizeof **matrix_tiles };

static int64_t tensor_bytes(const struct tensor_tile *t) {
    return (int64_t)(t->m + t->n) * t->pieces * t->stages * 16;
}

/* Returns whether tensor cores compute a matmul of more than FEW_ROWS rows. Device, dtype and options decide,
 * since the bits differ from those of the other templates. */
static bool uses_tensor(const matmul_plan *p) {
    const weft_target *t = p->target;
    if (t->local_bytes < 48 << 10) return false;
    switch (p->dtype) {
    case WEFT_F16: return t->capability >= 75 || t->matrix_lanes;
    case WEFT_BF16: return t->capability >= 80 || t->matrix_lanes;
    case WEFT_F32: return t->capability >= 80 && t->tf32;
    default: return false;
    }
}

/* Returns how many elements can be copied at once if lines are `stride` apart, at most 16 bytes. */
static int width_of(const matmul_plan *p, int64_t stride, const int64_t *batch) {
    int width = 16 / (int)weft_dtype_size(p->dtype);
    for (; width > 1; width /= 2) {
        bool all = stride % width == 0;
        for (int d = 0; d < WEFT_BATCH_DIMS; d++) all = all && (p->mm.batch[d] <= 1 || batch[d] % width == 0);
        if (all) break;
    }
    return width;
}

/* Returns the estimated cost of c with a tile. It counts rounds of as many work-groups as there are units.
 * Each work-group costs a little more, since it takes bandwidth from others. */
static double tensor_cost(const matmul_plan *p, const struct tensor_tile *t) {
    const int64_t groups =
        weft__ceil_div(p->mm.m, t->m) * weft__ceil_div(p->mm.n, t->n) * p->items * p->splits;
    const int64_t units = weft__larger(p->target->units, 1);
    const double rounds = (double)weft__ceil_div(groups, units) + 0.1 * (double)groups / (double)units;
    return rounds * t->m * t->n / t->rate;
}

/* Returns A_WIDTH or B_WIDTH. A piece of a window is contiguous if all its elements are channels of one
 * pixel. */
static int tensor_width(const matmul_plan *p, bool of_b) {
    const weft_heavy_matmul *mm = &p->mm;
    const int whole = 16 / (int)weft_dtype_size(p->dtype), kind = p->view ? p->view->kind : 0;
    const w_image *v = p->view ? &p->view->image : NULL;
    if (kind && of_b == (kind == WEFT_GPU_WINDOWS_B))
        return v->depth % whole == 0 && v->channels % whole == 0 ? whole : 1;
    const int width = of_b ? width_of(p, weft__matmul_b_lines(p) ? mm->b_k : mm->b_n, mm->b_batch)
                           : width_of(p, weft__matmul_a_lines(p) ? mm->a_m : mm->a_k, mm->a_batch);
    if (kind != WEFT_GPU_WINDOWS_A_BACK || !of_b) return width;
    return width == whole && v->weight[0] % whole == 0 && v->weight[1] % whole == 0 &&
                   v->weight[2] % whole == 0
               ? whole
               : 1;
}

/* Returns the tiles for a matmul, and sets their number. */
static const struct tensor_tile *tiles_for(matmul_plan *p, bool two_levels) {
    if (p->target->matrix_lanes) {
        const bool windows = p->view && p->view->kind == WEFT_GPU_WINDOWS_B;
        p->variant.count = MATRIX_TILES - (two_levels || windows || p->sums);
        return matrix_tiles[p->target->matrix_lanes == 32];
    }
    const int first = two_levels ? ONE_LEVEL : tensor_bytes(tensor_tiles) > p->target->most_local_bytes;
    p->variant.count = TENSOR_TILES - first;
    return tensor_tiles + first;
}

static const char *plan_tensor(matmul_plan *p, int variant) {
    const weft_heavy_matmul *mm = &p->mm;
    /* the gradient of the weight of a convolution has few tiles, and k is all pixels */
    split(p, weft__ceil_div(mm->m, 64) * weft__ceil_div(mm->n, 64) * p->items, p->view ? 256 : 64, 512);
    if (p->splits == 1) /* gradients of weights: k is long, and there are tiles for half of a large card */
        split(p, weft__ceil_div(mm->m, 128) * weft__ceil_div(mm->n, 64) * p->items, 200, 4096);
    const bool two_levels = p->splits > 1 || p->out == p->sum;
    const struct tensor_tile *const list = tiles_for(p, two_levels), *t = list;
    for (int i = 0; i < p->variant.count; i++)
        if (variant < 0 ? tensor_cost(p, &list[i]) < tensor_cost(p, t) : i == variant) t = &list[i];
    p->variant.number = (int)(t - list);
    p->block.m = t->m, p->block.n = t->n;
    p->group_items = (p->target->matrix_lanes ? p->target->matrix_lanes : 32) * t->warps_m * t->warps_n;
    p->prelude |= p->target->matrix_lanes ? WEFT_PRELUDE_MATRIX : WEFT_PRELUDE_TENSOR;
    if (tensor_bytes(t) <= p->target->local_bytes)
        p->local.declared = tensor_bytes(t);
    else
        p->local.requested = (int)tensor_bytes(t);
    snprintf(p->name, sizeof p->name, "tensor %d x %d by %d", t->m, t->n, p->group_items);
    snprintf(
        p->head, sizeof p->head,
        "#define TENSOR\n#define TILE_M %d\n#define TILE_N %d\n#define PIECES %d\n#define WARPS_M "
        "%d\n#define WARPS_N %d\n"
        "#define STAGES %d\n#define A_LINES %d\n#define B_LINES %d\n#define A_WIDTH %d\n#define B_WIDTH %d\n"
        "#define SHORT %d\n#define MORE %d\n#undef ITEMS\n#define ITEMS %d\n",
        t->m, t->n, t->pieces, t->warps_m, t->warps_n, t->stages, weft__matmul_a_lines(p),
        weft__matmul_b_lines(p), tensor_width(p, false), tensor_width(p, true), two_levels,
        p->local.requested > 0, p->group_items);
    return weft__source_matmul_tensor;
}

/* ---- few rows ---- */

static const char *plan_rows(matmul_plan *p) {
    const int rows = p->mm.m == 1 ? 1 : FEW_ROWS;
    /* 32 neighbours read contiguous memory, which is columns of b or elements along k. */
    const int columns = (int)(weft__matmul_b_lines(p) ? weft__smaller(32, p->group_items)
                                                      : weft__larger(1, p->group_items / 32));
    p->block.m = rows, p->block.n = columns;
    p->variant.count = 1;
    p->local.declared = (int64_t)p->group_items * rows * (int64_t)weft_dtype_size(p->sum);
    split(p, weft__ceil_div(p->mm.n, columns) * p->items, 64, 512);
    snprintf(p->head, sizeof p->head, "#define ROWS %d\n#define COLUMNS %d\n#define B_LINES %d\n", rows,
             columns, weft__matmul_b_lines(p));
    return weft__source_matmul_rows;
}

/* ---- launches ---- */

/* Returns whether all offsets in a and b of one matmul, and offsets up to one tile beyond, fit in 32 bits. */
static bool is_narrow(const matmul_plan *p) {
    const int64_t extents[] = {p->mm.m, p->mm.k, p->mm.k, p->mm.n};
    const int64_t strides[] = {p->mm.a_m, p->mm.a_k, p->mm.b_k, p->mm.b_n};
    if (p->view && p->view->image.end > INT32_MAX / 2) return false;
    for (int i = 0; i < 4; i++) {
        int64_t most;
        const int64_t stride = strides[i] < 0 ? -strides[i] : strides[i];
        if (!weft__mul(extents[i] + BEYOND, stride, &most) || most > INT32_MAX / 2) return false;
    }
    return true;
}

/* Returns the number of blocks of c along m. */
static int64_t blocks_high(const matmul_plan *p) { return weft__ceil_div(p->mm.m, p->block.m); }

/* Returns whether there are more work-groups than a launch may have along its second or third dimension. */
static bool is_flat(const matmul_plan *p) {
    const int64_t most = p->target->groups_most;
    return most && (blocks_high(p) > most || p->items * p->splits > most);
}

static const char *gpu_matmul_source_of(weft_launches *launches, const matmul_plan *p, bool last,
                                        const char *source) {
    const bool integers =
        p->sum == WEFT_I32 || p->sum == WEFT_U32 || p->sum == WEFT_I64 || p->sum == WEFT_U64;
    const char *epilogue = last && p->epilogue.source ? p->epilogue.source : "";
    const int kind = p->view && source != weft__source_matmul_sum ? p->view->kind : 0;
    const char *image = kind ? weft__source_image : "";
    const size_t size = strlen(epilogue) + strlen(image) + strlen(weft__source_matmul) + strlen(source) + 1;
    char head[sizeof p->head + 192], *whole = weft__arena_alloc(launches->arena, size);
    if (!whole) return NULL;
    snprintf(
        head, sizeof head,
        "%s#define WIDE %d\n#define INTEGERS %d\n#define SINK %d\n#define EPILOGUE %d\n#define STRIDE %s\n"
        "#define SUMS %d\n#define IMAGE %d\n#define SPREAD %d\n#define FLAT %d\n",
        p->head, !last || p->out == p->sum, integers, p->sink, *epilogue != 0, is_narrow(p) ? "int" : "w_i64",
        p->sums != 0, kind, kind && p->view->spread, is_flat(p));
    snprintf(whole, size, "%s%s%s%s", epilogue, image, weft__source_matmul, source);
    return weft__gpu_template_source(launches, p->dtype, head, whole);
}

_Static_assert(sizeof(w_matmul) == 17 * 8 + 12 * 4, "no padding");
_Static_assert(WEFT_BATCH_DIMS == 4, "w_matmul has the strides of all dimensions");

static w_matmul gpu_matmul_numbers_of(const matmul_plan *p) {
    const weft_heavy_matmul *mm = &p->mm;
    w_matmul to = {.a_m = mm->a_m,
                   .a_k = mm->a_k,
                   .b_k = mm->b_k,
                   .b_n = mm->b_n,
                   .c_m = mm->c_m,
                   .m = (int32_t)mm->m,
                   .n = (int32_t)mm->n,
                   .k = (int32_t)mm->k,
                   .splits = (int32_t)p->splits,
                   .part = (int32_t)p->part,
                   .block_m = (int32_t)p->block.m,
                   .block_n = (int32_t)p->block.n,
                   .wide = (int32_t)weft__ceil_div(mm->n, p->block.n),
                   .high = (int32_t)blocks_high(p)};
    for (int d = 0; d < 4; d++) {
        to.a_batch[d] = mm->a_batch[d], to.b_batch[d] = mm->b_batch[d], to.c_batch[d] = mm->c_batch[d];
        if (d) to.extent[d - 1] = (int32_t)mm->batch[d];
    }
    return to;
}

/* Adds a launch. If it is the last one, the epilogue's arguments replace its argument number `c`. */
static weft_status launch_with(weft_launches *launches, const matmul_plan *p, bool last, weft_launch launch,
                               int c) {
    const weft_epilogue *e = &p->epilogue;
    if (!last || !e->source) return weft__launch(launches, &launch);
    const int count = launch.n_arguments - 1 + e->n_arguments;
    weft_argument *all = weft__arena_alloc(launches->arena, (size_t)count * sizeof *all);
    if (!all) return weft__fail_oom(launches->ctx, (size_t)count * sizeof *all, "a launch");
    for (int i = 0; i < count; i++) {
        const bool behind = i >= c + e->n_arguments, own = i < c || behind;
        all[i] = own ? launch.arguments[behind ? i - e->n_arguments + 1 : i] : e->arguments[i - c];
        if (!own && all[i].kind == WEFT_ARGUMENT_OPERAND) all[i].index += 2; /* after a and b */
    }
    launch.arguments = all;
    launch.n_arguments = count;
    launch.prelude |= e->prelude;
    return weft__launch(launches, &launch);
}

/* Returns the bytes of the partial results of c when k is divided. Partial row sums follow them. */
static int64_t parts_bytes(const matmul_plan *p) {
    return p->items * p->splits * p->mm.m * p->mm.n * (int64_t)weft_dtype_size(p->sum);
}

static weft_status launch_matmul(weft_launches *launches, const matmul_plan *p, const char *source) {
    const weft_heavy_matmul *mm = &p->mm;
    const int64_t parts = p->items * p->splits;
    const bool flat = is_flat(p);
    w_matmul of = gpu_matmul_numbers_of(p);
    weft_argument arguments[7] = {READS(p->a, p->dtype), READS(p->b, p->dtype), WRITES(2, p->out)};
    int n = 3;
    if (p->sums) arguments[n++] = (weft_argument)WRITES(p->sums, p->sum);
    if (p->splits > 1) {
        of.c_m = mm->n;
        arguments[2] = (weft_argument)SCRATCH(0, p->sum);
        if (p->sums) arguments[3] = (weft_argument)SCRATCH(parts_bytes(p), p->sum);
    }
    arguments[n++] = (weft_argument)STRUCT(of);
    if (p->view) arguments[n++] = (weft_argument)STRUCT(p->view->image);
    arguments[n++] = (weft_argument)FAULT;
    const weft_launch launch = {
        .name = "matmul",
        .source = source,
        .may_fuse = p->local.requested == 0,
        .local_bytes = (int)p->local.declared,
        .shared_bytes = p->local.requested,
        .facts = {.steps = p->steps, .at_once = p->at_once},
        .prelude = p->prelude,
        .n_arguments = n,
        .arguments = arguments,
        .groups = {flat ? of.wide * parts * of.high : of.wide, flat ? 1 : of.high, flat ? 1 : parts},
        .items = {p->group_items, 1, 1}};
    return launch_with(launches, p, p->splits == 1, launch, 2);
}

#define SUM_EACH 1024 /* elements of a work-group */

static weft_status launch_sum(weft_launches *launches, matmul_plan *p) {
    const weft_heavy_matmul *mm = &p->mm;
    snprintf(p->head, sizeof p->head, "#define EACH %d\n", SUM_EACH);
    const char *source = gpu_matmul_source_of(launches, p, true, weft__source_matmul_sum);
    if (!source) return weft__fail_oom(launches->ctx, 0, "the kernel source of a matmul");
    const w_matmul of = gpu_matmul_numbers_of(p);
    weft_argument arguments[6] = {SCRATCH(0, p->sum), WRITES(2, p->out)};
    int n = 2;
    arguments[0].written = false;
    if (p->sums) {
        arguments[n] = (weft_argument)SCRATCH(parts_bytes(p), p->sum);
        arguments[n++].written = false;
        arguments[n++] = (weft_argument)WRITES(p->sums, p->sum);
    }
    arguments[n++] = (weft_argument)STRUCT(of);
    arguments[n++] = (weft_argument)FAULT;
    const weft_launch launch = {.name = "matmul_sum",
                                .source = source,
                                .may_fuse = true,
                                .prelude = weft__gpu_prelude(p->dtype),
                                .n_arguments = n,
                                .arguments = arguments,
                                .groups = {weft__ceil_div(mm->m * mm->n, SUM_EACH), p->items, 1},
                                .items = {p->target->lanes, 1, 1}};
    return launch_with(launches, p, true, launch, 1);
}

/* ---- choosing the tile ---- */

static const char *gpu_matmul_plan(matmul_plan *p, int variant) {
    p->group_items = p->target->lanes;
    if (is_direct_on_card(p) && !uses_tensor(p)) return plan_direct_on_card(p);
    if (!p->view && p->mm.m <= FEW_ROWS) return plan_rows(p);
    if (uses_tensor(p)) return plan_tensor(p, variant);
    if (is_direct(p)) return plan_direct(p);
    return plan_tiles(p, variant);
}

static int bucket(int64_t n) {
    int at = 0;
    while (n > (int64_t)1 << at) at++;
    return at;
}

/* Returns the hash of the class of matmuls that share a choice. */
static weft_hash class_of(const matmul_plan *p) {
    const uint64_t facts[] = {(uint64_t)p->dtype,
                              (uint64_t)p->out,
                              (uint64_t)weft__matmul_a_lines(p),
                              (uint64_t)weft__matmul_b_lines(p),
                              (uint64_t)bucket(p->items),
                              (uint64_t)bucket(p->mm.m),
                              (uint64_t)bucket(p->mm.n),
                              (uint64_t)bucket(p->mm.k),
                              (uint64_t)p->variant.count,
                              (uint64_t)p->prelude};
    weft_hash key;
    weft__hash_init(&key);
    weft__hash_str(&key, "tile of a matmul");
    weft__hash_bytes(&key, facts, sizeof facts);
    return key;
}

/* Returns the number of elements from the first to the last. */
static int64_t span(const int64_t *batch, const int64_t *strides, int rank, int64_t rows, int64_t row,
                    int64_t columns, int64_t column) {
    int64_t last = (rows - 1) * row + (columns - 1) * column;
    for (int d = 0; d < rank; d++) last += (batch[d] - 1) * strides[d];
    return last + 1;
}

/* Returns the tile to use. It asks the tuner if the work is worth it. p->variant is the default. */
static int tuned(weft_launches *launches, const weft_heavy *heavy, const matmul_plan *p) {
    if (heavy->kind != WEFT_HEAVY_MATMUL) return p->variant.number;
    const weft_heavy_matmul *mm = &heavy->as.matmul;
    const double work = (double)mm->m * (double)mm->n * (double)mm->k * (double)p->items;
    weft_heavy alone = *heavy;
    alone.as.matmul.epilogue = NULL;
    alone.as.matmul.sums = false;
    weft_tuner_question q = {.heavy = &alone, .usual = p->variant.number, .variants = p->variant.count};
    if (p->variant.count < 2 || !weft__tuner_asks(launches->tuner, work)) return p->variant.number;
    const int64_t size = (int64_t)weft_dtype_size(p->dtype);
    q.key = class_of(p);
    q.bytes[0] = span(mm->batch, mm->a_batch, mm->batch_rank, mm->m, mm->a_m, mm->k, mm->a_k) * size;
    q.bytes[1] = span(mm->batch, mm->b_batch, mm->batch_rank, mm->k, mm->b_k, mm->n, mm->b_n) * size;
    q.bytes[2] = span(mm->batch, mm->c_batch, mm->batch_rank, mm->m, mm->c_m, mm->n, 1) *
                 (int64_t)weft_dtype_size(p->out);
    snprintf(q.what, sizeof q.what, "matmul %s %lldx %lldx%lldx%lld %c%c", weft_dtype_name(p->dtype),
             (long long)p->items, (long long)mm->m, (long long)mm->n, (long long)mm->k,
             weft__matmul_a_lines(p) ? 'n' : 't', weft__matmul_b_lines(p) ? 'n' : 't');
    for (int variant = 0; variant < p->variant.count; variant++) {
        matmul_plan one = *p;
        gpu_matmul_plan(&one, variant);
        memcpy(q.names[variant], one.name, sizeof one.name);
    }
    return weft__tuner_choose(launches->tuner, &q);
}

weft_status weft__gpu_matmul_launches(weft_launches *launches, const weft_heavy *heavy,
                                      const weft_heavy_matmul *mm, int a, int b, const weft_gpu_view *view,
                                      bool sink) {
    matmul_plan p = plan_of(launches, mm, a, b, view, sink);
    if (p.mm.m == 0 || p.mm.n == 0 || p.items == 0) return WEFT_OK;
    const matmul_plan unplanned = p;
    const char *source = gpu_matmul_plan(&p, -1);
    const int variant = tuned(launches, heavy, &p);
    if (variant != p.variant.number) {
        p = unplanned;
        source = gpu_matmul_plan(&p, variant);
    }
    if (p.mm.epilogue)
        WEFT_TRY(weft__render_epilogue(launches, p.mm.epilogue, p.mm.product, p.mm.n, &p.epilogue));
    source = gpu_matmul_source_of(launches, &p, p.splits == 1, source);
    if (!source) return weft__fail_oom(launches->ctx, 0, "the kernel source of a matmul");
    WEFT_TRY(launch_matmul(launches, &p, source));
    if (p.splits == 1) return WEFT_OK;
    launches->scratch_bytes = parts_bytes(&p);
    if (p.sums) launches->scratch_bytes += p.splits * p.mm.m * (int64_t)weft_dtype_size(p.sum);
    return launch_sum(launches, &p);
}

weft_status weft__gpu_matmul(weft_launches *launches, const weft_heavy *heavy, bool sink) {
    return weft__gpu_matmul_launches(launches, heavy, &heavy->as.matmul, 0, 1, NULL, sink);
}
