/* Matmuls of few tiles on CUDA, by matmul_slices.cl: the tile, and the slices of k.
 * Must not know: how launches run. Read next: matmul_slices.cl. */
#include <math.h>
#include <stdio.h>

#include "device/gpu/heavy/matmul/matmul_params.h"
#include "device/gpu/heavy/matmul/matmul_plan.h"
#include "device/gpu/backend/kernel_source.h"

/* Tiles of a warp, or of half a warp. Each warp of a work-group has a slice of its part of k. So a small
 * matmul waits for memory a few times only, without a second launch that adds up parts. */
static const struct sliced {
    int high, wide;     /* work-items of a tile */
    int each_m, each_n; /* sums of a work-item */
    int tiles;          /* of a work-group, side by side */
} sliced[] = {{8, 4, 8, 8, 2}, {8, 4, 8, 8, 1}, {4, 4, 8, 4, 1}, {4, 4, 4, 4, 1}};
enum {
    SLICED = sizeof sliced / sizeof *sliced,
    SLICED_ITEMS = 256,
    SLICED_WARPS = SLICED_ITEMS / 32,
    SLICED_SQUARES = 128, /* with more, whole work-groups compute tiles (matmul_tiles.cl) */
    SLICED_WORTH = 512    /* the shortest part of k that is worth a second launch */
};

bool weft__matmul_is_sliced(const matmul_plan *p) {
    return p->target->dialect == WEFT_DIALECT_CUDA && p->target->lanes == SLICED_ITEMS && !p->view &&
           weft__matmul_squares(p) <= SLICED_SQUARES;
}

/* Returns 4 if an operand can be copied 4 elements at a time, else 1. `line`: the stride that is not 1;
 * `extent`: of the dimension whose stride is 1. */
static int four_of(const matmul_plan *p, int operand, int64_t line, int64_t extent, const int64_t *batch) {
    bool four = p->dtype == p->sum && p->aligned && p->aligned[operand] >= 16;
    four = four && line % 4 == 0 && extent % 4 == 0;
    for (int d = 0; d < WEFT_BATCH_DIMS; d++) four = four && (p->mm.batch[d] <= 1 || batch[d] % 4 == 0);
    return four ? 4 : 1;
}

/* Sets the tile and the parts of k. Returns the estimated clocks of a card with SLICED_UNITS multiprocessors.
 * They are spent on reading local memory, 32 elements a clock, and on joining the slices. A second launch
 * adds up parts. One work-group saves a launch in small nets, whose launches are fused. */
static double use_slices(matmul_plan *p, const struct sliced *s) {
    enum { SLICED_UNITS = 128, LAUNCH_CLOCKS = 2500 };
    const int teams = 32 / (s->high * s->wide), slices = SLICED_WARPS / s->tiles;
    p->block.m = (int64_t)s->high * s->each_m, p->block.n = (int64_t)s->wide * s->each_n * s->tiles;
    const int64_t tiles =
        weft__ceil_div(p->mm.m, p->block.m) * weft__ceil_div(p->mm.n, p->block.n) * p->items;
    weft__matmul_split(p, tiles, SLICED_UNITS, SLICED_WORTH, 4 * slices);
    p->part = weft__matmul_round_up(weft__ceil_div(p->part, slices), 4);
    const double reading = (double)SLICED_WARPS * (s->each_m + s->each_n) * (double)p->part / teams;
    const double joining = 1200 + (double)(p->block.m * p->block.n) / 2;
    return (double)weft__ceil_div(tiles * p->splits, SLICED_UNITS) * (reading + joining) +
           LAUNCH_CLOCKS * ((p->splits > 1) + (tiles > 1));
}

/* Shape and dtype decide all but the way of copying, which does not change bits. */
const char *weft__matmul_plan_slices(matmul_plan *p) {
    const weft_heavy_matmul *mm = &p->mm;
    const int64_t size = (int64_t)weft_dtype_size(p->sum);
    const matmul_plan unplanned = *p;
    int best = -1;
    double least = INFINITY;
    for (int i = size > 4 ? 2 : 0; i < SLICED; i++) { /* sums of 8 bytes do not fit in the first two */
        *p = unplanned;
        const double cost = use_slices(p, &sliced[i]);
        if (cost < least) least = cost, best = i;
    }
    const struct sliced *const s = &sliced[best];
    *p = unplanned;
    use_slices(p, s);
    const int teams = 32 / (s->high * s->wide), depth = size > 4 || teams == 1 ? 8 : 16;
    const int64_t n = p->block.n / s->tiles;
    const int64_t a = weft__matmul_a_lines(p) ? p->block.m * (depth + 4) : depth * (p->block.m + 4);
    const int64_t b = weft__matmul_b_lines(p) ? depth * (n + 4) : n * (depth + 4);
    const int64_t kept = p->block.m * (n + 4) + p->block.m + 16;
    p->local.declared = SLICED_WARPS * weft__larger(a + b, teams * kept / 2) * size;
    p->group_items = SLICED_ITEMS;
    p->steps = (double)weft__smaller(p->part, mm->k) / depth + (mm->k > p->part); /* and for its slices */
    p->at_once = (int)((p->block.m + n) * depth * size) / 32;
    p->variant.count = 1;
    snprintf(p->name, sizeof p->name, "%d x %d by %d", (int)p->block.m, (int)p->block.n, s->high * s->wide);
    snprintf(p->head, sizeof p->head,
             "#define S4 %s\n#define WIDE_ITEMS %d\n#define HIGH %d\n#define EACH_M %d\n#define EACH_N %d\n"
             "#define TILES %d\n#define DEPTH %d\n#define A_LINES %d\n#define B_LINES %d\n#define A_FOUR %d\n"
             "#define B_FOUR %d\n#define K_SLICES %d\n#define LONG %d\n#define ODD %d\n#undef ITEMS\n#define "
             "ITEMS %d\n",
             weft__matmul_sum_vector(p), s->wide, s->high, s->each_m, s->each_n, s->tiles, depth,
             weft__matmul_a_lines(p), weft__matmul_b_lines(p),
             weft__matmul_a_lines(p) ? four_of(p, p->a, mm->a_m, mm->k, mm->a_batch)
                                     : four_of(p, p->a, mm->a_k, mm->m, mm->a_batch),
             weft__matmul_b_lines(p) ? four_of(p, p->b, mm->b_k, mm->n, mm->b_batch)
                                     : four_of(p, p->b, mm->b_n, mm->k, mm->b_batch),
             SLICED_WARPS / s->tiles, p->part > CHUNK, mm->k % 4 != 0, p->group_items);
    return weft__source_matmul_slices;
}
