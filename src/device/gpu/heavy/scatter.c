/* Scatter-add for the GPU backends. The rows and columns of out are divided among workers, and each worker
 * walks through the whole index. If no index repeats, the index is divided instead. On GPUs a long index is
 * sorted (scatter_sort.c). Must not know: how launches run. Read next: scatter.cl. */
#include "device/gpu/heavy/heavy.h"
#include "device/gpu/heavy/scatter_params.h"
#include "device/gpu/backend/template.h"
#include "device/gpu/backend/kernel_source.h"

#define ROOM       (1 << 21) /* f16 and bf16: sums kept at a time */
#define WORK       65536     /* elements that are worth a work-group */
#define GROUPS_MAX 65535     /* of the second and third dimension */

_Static_assert(sizeof(w_scatter) == 6 * 8 + 2 * 4, "no padding");

bool weft__gpu_scatter_takes(const weft_target *target, const weft_heavy_scatter *sc) {
    return (sc->index_dtype == WEFT_I32 || sc->index_dtype == WEFT_I64) &&
           weft__gpu_knows(target, (weft_dtype)sc->dtype);
}

typedef struct partition {
    int64_t width, tile; /* columns and rows of a worker, which takes further rows until all are done */
    int64_t columns, rows, outer; /* work-groups */
    int64_t workers;              /* of a work-group */
} partition;

/* Chooses the partition. Columns are balanced whatever the index holds. Rows are divided, too, if there are
 * few columns or if setting rows is most of the work. */
static partition cut_of(const weft_launches *launches, const weft_heavy_scatter *sc) {
    const weft_target *target = launches->target;
    const int items = target->lanes;
    const double begun = sc->in_place ? 0 : (double)sc->rows; /* rows that are set before the additions */
    const double elements = (double)sc->outer * (double)sc->inner * (begun + 2 * (double)sc->count);
    const int64_t pieces =
        (int64_t)weft__larger(1, weft__smaller(8 * (int64_t)target->units, (int64_t)(elements / WORK)));
    partition c = {.width = weft__smaller(sc->inner, items),
                   .workers = 1,
                   .outer = weft__smaller(sc->outer, GROUPS_MAX)};
    int64_t wanted = weft__ceil_div(pieces, c.outer);
    c.workers = items / c.width;
    wanted *= c.workers;
    c.columns = weft__ceil_div(sc->inner, c.width);
    wanted = weft__larger(1, weft__smaller(wanted / c.columns, weft__smaller(sc->rows, GROUPS_MAX)));
    c.tile = weft__ceil_div(sc->rows, wanted);
    c.rows = weft__ceil_div(sc->rows, c.tile * c.workers);
    if (weft__gpu_sum_dtype((weft_dtype)sc->dtype) != (weft_dtype)sc->dtype) {
        const int64_t others = c.columns * c.rows * c.outer * c.workers * c.width;
        c.tile = weft__larger(1, weft__smaller(c.tile, ROOM / weft__larger(1, others)));
    }
    return c;
}

static const char *gpu_scatter_source_of(weft_launches *launches, const weft_heavy_scatter *sc) {
    return weft__gpu_template_source(
        launches, (weft_dtype)sc->dtype,
        sc->index_dtype == WEFT_I32 ? "#define INDEX int\n" : "#define INDEX long\n", weft__source_scatter);
}

static weft_status gpu_scatter_launch(weft_launches *launches, const weft_heavy_scatter *sc, const char *name,
                                      weft_argument *arguments, int count, const int64_t *groups) {
    const char *source = gpu_scatter_source_of(launches, sc);
    if (!source) return weft__fail_oom(launches->ctx, 0, "the kernel source of a scatter");
    return weft__launch(launches, &(weft_launch){.name = name,
                                                 .source = source,
                                                 .prelude = weft__gpu_prelude((weft_dtype)sc->dtype),
                                                 .arguments = arguments,
                                                 .n_arguments = count,
                                                 .groups = {groups[0], groups[1], groups[2]},
                                                 .items = {launches->target->lanes, 1, 1}});
}

static w_scatter gpu_scatter_numbers_of(const weft_heavy_scatter *sc, const partition *c, int start,
                                        bool sink) {
    return (w_scatter){.outer = sc->outer,
                       .count = sc->count,
                       .rows = sc->rows,
                       .inner = sc->inner,
                       .tile = c->tile,
                       .width = c->width,
                       .start = start,
                       .sink = sink};
}

/* Adds launches for rows of one element, if no index repeats. */
static weft_status each(weft_launches *launches, const weft_heavy_scatter *sc, bool sink) {
    const int out = weft__scatter_out(sc);
    /* out already holds what the source is added to */
    const bool begun = sc->in_place || !weft__scatter_is_direct(sc);
    const int base = sc->based ? START_BASE : START_ZERO;
    const w_scatter begun_from = gpu_scatter_numbers_of(sc, &(partition){0}, base, sink);
    const w_scatter added_to = gpu_scatter_numbers_of(sc, &(partition){0}, begun ? START_OUT : base, sink);
    weft_argument begin[] = {READS(WEFT_SCATTER_BASE, sc->dtype), WRITES(out, sc->dtype), STRUCT(begun_from),
                             FAULT};
    weft_argument add[] = {READS(WEFT_SCATTER_INDEX, sc->index_dtype),
                           READS(WEFT_SCATTER_SOURCE, sc->dtype),
                           READS(begun ? out : WEFT_SCATTER_BASE, sc->dtype),
                           WRITES(out, sc->dtype),
                           STRUCT(added_to),
                           FAULT};
    const int64_t whole[] = {weft__gpu_groups(launches->target, sc->outer * sc->rows), 1, 1};
    const int64_t groups[] = {weft__gpu_groups(launches->target, sc->count), 1,
                              weft__smaller(sc->outer, GROUPS_MAX)};
    if (begun && !sc->in_place)
        WEFT_TRY(gpu_scatter_launch(launches, sc, "scatter_begin", begin, (int)(sizeof begin / sizeof *begin),
                                    whole));
    if (sc->count == 0) return WEFT_OK;
    return gpu_scatter_launch(launches, sc, "scatter_each", add, (int)(sizeof add / sizeof *add), groups);
}

weft_status weft__gpu_scatter(weft_launches *launches, const weft_heavy *heavy, bool sink) {
    const weft_heavy_scatter *sc = &heavy->as.scatter;
    if (sc->outer == 0 || sc->rows == 0 || sc->inner == 0) return WEFT_OK;
    if (sc->unique && sc->inner == 1) return each(launches, sc, sink);
    if (weft__gpu_scatter_is_sorted(sc)) return weft__gpu_scatter_sorted(launches, heavy, sink);
    const weft_dtype dtype = (weft_dtype)sc->dtype, sum = weft__gpu_sum_dtype(dtype);
    const partition c = cut_of(launches, sc);
    const bool room = sum != dtype;
    const int out = weft__scatter_out(sc), start = !sc->based              ? START_ZERO
                                                   : sc->in_place && !room ? START_OUT
                                                                           : START_BASE;
    if (room)
        launches->scratch_bytes =
            c.columns * c.rows * c.outer * c.workers * c.tile * c.width * (int64_t)weft_dtype_size(sum);
    const w_scatter of = gpu_scatter_numbers_of(sc, &c, start, sink);
    /* If there is no base, or no room, that argument is out. Nothing reads it. */
    weft_argument arguments[] = {READS(WEFT_SCATTER_INDEX, sc->index_dtype),
                                 READS(WEFT_SCATTER_SOURCE, sc->dtype),
                                 READS(WEFT_SCATTER_BASE, sc->dtype),
                                 WRITES(out, sc->dtype),
                                 WRITES(out, sc->dtype),
                                 STRUCT(of),
                                 FAULT};
    if (room) arguments[4] = (weft_argument)SCRATCH(0, (uint8_t)sum);
    return gpu_scatter_launch(launches, sc, "scatter", arguments, (int)(sizeof arguments / sizeof *arguments),
                              (int64_t[]){c.columns, c.rows, c.outer});
}
