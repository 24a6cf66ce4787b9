/* Positions that sort rows, for the GPU backends. A row is divided into sorted runs, which are merged until
 * one is left. The scratch memory has two halves, which are read and written in turn. Each half has a row of
 * keys, then a row of positions.
 * Must not know: how launches run. Read next: argsort.cl. */
#include "device/gpu/heavy/argsort_params.h"
#include "device/gpu/heavy/heavy.h"
#include "device/gpu/backend/template.h"
#include "device/gpu/backend/kernel_source.h"

_Static_assert(sizeof(w_order) == 8 * 8 + 4 * 4, "no padding");

int64_t weft__gpu_groups(const weft_target *target, int64_t workers) {
    return weft__smaller(weft__ceil_div(workers, target->lanes), 1 << 20);
}

typedef struct ordering {
    const weft_heavy_argsort *order;
    const char *source;
    uint8_t key;
    int64_t runs, span, room; /* runs of a row; elements of a run; elements of a run that are kept */
    int64_t half, places;     /* bytes of a half of the scratch memory; offset of the positions in it */
} ordering;

static weft_status gpu_argsort_launch(weft_launches *launches, const char *name, const char *source,
                                      weft_argument *arguments, int count, int64_t workers) {
    return weft__launch(launches,
                        &(weft_launch){.name = name,
                                       .source = source,
                                       .n_arguments = count,
                                       .arguments = arguments,
                                       .groups = {weft__gpu_groups(launches->target, workers), 1, 1},
                                       .items = {launches->target->lanes, 1, 1}});
}

/* Returns the numbers of a launch that makes runs. */
static w_order gpu_argsort_numbers_of(const ordering *s, bool last, bool sink) {
    return (w_order){.rows = s->order->rows,
                     .extent = s->order->extent,
                     .count = s->order->count,
                     .runs = s->runs,
                     .span = s->span,
                     .room = s->room,
                     .is_float = weft_dtype_is_float((weft_dtype)s->order->dtype),
                     .descending = s->order->descending,
                     .last = last,
                     .sink = sink};
}

static weft_status runs_of(weft_launches *launches, const ordering *s, bool sink) {
    const weft_heavy_argsort *o = s->order;
    const w_order of = gpu_argsort_numbers_of(s, s->runs == 1, sink);
    weft_argument arguments[] = {
        READS(WEFT_ARGSORT_INPUT, s->key),  SCRATCH(0, s->key), SCRATCH(s->places, WEFT_I32),
        WRITES(WEFT_ARGSORT_OUT, WEFT_I32), STRUCT(of),         FAULT};
    const int count = (int)(sizeof arguments / sizeof *arguments);
    if (launches->scratch_bytes == 0) /* one run for a row is sorted in registers */
        arguments[1] = (weft_argument)WRITES(WEFT_ARGSORT_OUT, s->key),
        arguments[2] = (weft_argument)WRITES(WEFT_ARGSORT_OUT, WEFT_I32);
    return gpu_argsort_launch(launches, "argsort_runs", s->source, arguments, count, o->rows * s->runs);
}

/* Merges pairs of runs: half as many, of twice the span. */
static weft_status merge(weft_launches *launches, ordering *s, int level, bool sink) {
    const weft_heavy_argsort *o = s->order;
    const int64_t wide = weft__smaller(2 * s->span, o->count), pieces = weft__ceil_div(wide, PIECE);
    const int64_t merged = (s->runs + 1) / 2, from = level % 2 ? s->half : 0, to = s->half - from;
    w_order of = gpu_argsort_numbers_of(s, merged == 1, sink);
    of.wide = wide, of.pieces = pieces;
    weft_argument arguments[] = {SCRATCH(from, s->key),
                                 SCRATCH(from + s->places, WEFT_I32),
                                 SCRATCH(to, s->key),
                                 SCRATCH(to + s->places, WEFT_I32),
                                 WRITES(WEFT_ARGSORT_OUT, WEFT_I32),
                                 STRUCT(of),
                                 FAULT};
    const int count = (int)(sizeof arguments / sizeof *arguments);
    s->runs = merged;
    s->span *= 2;
    s->room = wide;
    return gpu_argsort_launch(launches, "argsort_merge", s->source, arguments, count,
                              o->rows * merged * pieces);
}

/* Returns the elements of a row of runs, at the level that needs most. The last run of each level counts as
 * full. */
static int64_t most_room(const ordering *s) {
    int64_t most = s->runs * s->room, span = s->span;
    for (int64_t runs = s->runs; runs > 1; span *= 2, runs = (runs + 1) / 2)
        most = weft__larger(most, (runs + 1) / 2 * weft__smaller(2 * span, s->order->count));
    return most;
}

bool weft__gpu_argsort_takes(const weft_target *target, const weft_heavy_argsort *argsort) {
    (void)target, (void)argsort;
    return true;
}

weft_status weft__gpu_argsort(weft_launches *launches, const weft_heavy *heavy, bool sink) {
    const weft_heavy_argsort *o = &heavy->as.argsort;
    if (o->rows == 0 || o->count == 0) return WEFT_OK;
    const bool narrow = weft_dtype_size((weft_dtype)o->dtype) == 4;
    ordering s = {.order = o,
                  .key = narrow ? WEFT_U32 : WEFT_U64,
                  .runs = weft__ceil_div(o->extent, RUN),
                  .span = RUN,
                  .room = weft__smaller(RUN, o->count)};
    const int64_t room = o->rows * most_room(&s);
    s.places = room * (narrow ? 4 : 8);
    s.half = s.places + (room * 4 + 7) / 8 * 8;
    s.source = weft__gpu_template_source(launches, (weft_dtype)s.key,
                                         narrow ? "#define INFINITE 0x7f800000u\n"
                                                : "#define INFINITE 0x7ff0000000000000ul\n",
                                         weft__source_argsort);
    if (!s.source) return weft__fail_oom(launches->ctx, 0, "the kernel source of an argsort");
    if (s.runs > 1) launches->scratch_bytes = 2 * s.half;
    WEFT_TRY(runs_of(launches, &s, sink));
    for (int level = 0; s.runs > 1; level++) WEFT_TRY(merge(launches, &s, level, sink));
    return WEFT_OK;
}
