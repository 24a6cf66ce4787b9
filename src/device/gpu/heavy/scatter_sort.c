/* Scatter-add of many indices for GPUs: sorts the index by row, then adds up each row. The launches depend on
 * shapes alone, and so do the bits.
 * Must not know: how launches run. Read next: scatter_sort.cl. */
#include <stdio.h>

#include "device/gpu/heavy/heavy.h"
#include "device/gpu/heavy/scatter_sort_params.h"
#include "device/gpu/backend/template.h"
#include "device/gpu/backend/kernel_source.h"

enum {
    FEW = 256,           /* so few indices cost less if each worker reads all of them (scatter.cl) */
    TILE = 512,          /* keys that a work-group sorts, at least */
    TILES = 1024,        /* their number, at most */
    SEGMENT = 128,       /* sources of a row that are added in one piece, at least */
    SEGMENT_MOST = 1024, /* so that their keys fit into local memory */
    GROUPS_MAX = 65535   /* of the second and third dimension */
};

_Static_assert(sizeof(w_scatter_sort) == 4 * 8 + 6 * 4, "no padding");

bool weft__gpu_scatter_is_sorted(const weft_heavy_scatter *sc) {
    return sc->count > FEW && sc->count <= INT32_MAX / 2 && sc->rows < INT32_MAX;
}

/* The scratch memory: bytes from its start on. */
typedef struct sorting {
    const weft_heavy_scatter *sc;
    const char *source;
    w_scatter_sort of;
    int64_t segment, tiles;     /* sources of a piece; work-groups of the sums */
    int64_t keys[2], places[2]; /* read and written by the passes in turn */
    int64_t counts, totals, joins, state, room;
} sorting;

/* Returns the place of n elements of `size` bytes, after *used. */
static int64_t place_for(int64_t *used, int64_t n, int64_t size) {
    const int64_t at = *used;
    *used += weft__ceil_div(n * size, 16) * 16;
    return at;
}

static void lay_out_scratch(weft_launches *launches, sorting *s) {
    const weft_heavy_scatter *sc = s->sc;
    const int64_t sum = (int64_t)weft_dtype_size(weft__gpu_sum_dtype((weft_dtype)sc->dtype));
    int64_t used = 0;
    for (int i = 0; i < 2; i++) {
        s->keys[i] = place_for(&used, sc->count, 4);
        s->places[i] = place_for(&used, sc->count, 4);
    }
    s->counts = place_for(&used, (int64_t)DIGITS * s->of.tiles, 4);
    s->totals = place_for(&used, DIGITS, 4);
    s->joins = place_for(&used, s->tiles, 4);
    s->state = place_for(&used, 1, 4);
    s->room = place_for(&used, 2 * s->tiles * sc->outer * sc->inner, sum);
    launches->scratch_bytes = used;
}

static weft_status begin_sort(weft_launches *launches, sorting *s, bool sink) {
    const weft_heavy_scatter *sc = s->sc;
    const int items = launches->target->lanes;
    char head[80];
    s->segment = SEGMENT;
    while (s->segment < SEGMENT_MOST && 4 * s->segment * s->segment < sc->count) s->segment *= 2;
    s->tiles = weft__ceil_div(sc->count, s->segment);
    const int64_t tile = weft__larger(TILE, weft__ceil_div(weft__ceil_div(sc->count, TILES), items) * items);
    s->of = (w_scatter_sort){.outer = sc->outer,
                             .count = sc->count,
                             .rows = sc->rows,
                             .inner = sc->inner,
                             .tile = (w_i32)tile,
                             .tiles = (w_i32)weft__ceil_div(sc->count, tile),
                             .based = sc->based,
                             .sink = sink};
    snprintf(head, sizeof head, "#define INDEX %s\n#define SEGMENT %d\n",
             sc->index_dtype == WEFT_I32 ? "int" : "long", (int)s->segment);
    s->source = weft__gpu_template_source(launches, (weft_dtype)sc->dtype, head, weft__source_scatter_sort);
    lay_out_scratch(launches, s);
    return s->source ? WEFT_OK : weft__fail_oom(launches->ctx, 0, "the kernel source of a scatter");
}

static weft_status add_launch(weft_launches *launches, const sorting *s, const char *name,
                              weft_argument *arguments, int count, const int64_t *groups) {
    return weft__launch(launches, &(weft_launch){.name = name,
                                                 .source = s->source,
                                                 .prelude = weft__gpu_prelude((weft_dtype)s->sc->dtype),
                                                 .arguments = arguments,
                                                 .n_arguments = count,
                                                 .groups = {groups[0], groups[1], groups[2]},
                                                 .items = {launches->target->lanes, 1, 1}});
}
#define ADD(name, arguments, ...)                                                                            \
    add_launch(launches, s, name, arguments, (int)(sizeof(arguments) / sizeof *(arguments)),                 \
               (int64_t[]){__VA_ARGS__})

/* Sorts by one digit, from the keys and places of half `from` to those of the other one. */
static weft_status add_pass(weft_launches *launches, const sorting *s, int from) {
    const w_scatter_sort of = s->of;
    weft_argument count[] = {READS(WEFT_SCATTER_INDEX, s->sc->index_dtype),
                             SCRATCH(s->keys[from], WEFT_U32),
                             SCRATCH(s->counts, WEFT_I32),
                             SCRATCH(s->state, WEFT_I32),
                             STRUCT(of),
                             FAULT};
    weft_argument offsets[] = {SCRATCH(s->counts, WEFT_I32), SCRATCH(s->totals, WEFT_I32), STRUCT(of), FAULT};
    weft_argument place[] = {READS(WEFT_SCATTER_INDEX, s->sc->index_dtype),
                             SCRATCH(s->keys[from], WEFT_U32),
                             SCRATCH(s->places[from], WEFT_I32),
                             SCRATCH(s->counts, WEFT_I32),
                             SCRATCH(s->totals, WEFT_I32),
                             SCRATCH(s->keys[!from], WEFT_U32),
                             SCRATCH(s->places[!from], WEFT_I32),
                             STRUCT(of),
                             FAULT};
    WEFT_TRY(ADD("scatter_count", count, of.tiles, 1, 1));
    WEFT_TRY(ADD("scatter_offsets", offsets, DIGITS, 1, 1));
    return ADD("scatter_place", place, of.tiles, 1, 1);
}

/* Sets all rows. It comes after the first pass, which finds out whether anything may be written. */
static weft_status add_fill(weft_launches *launches, const sorting *s) {
    const weft_heavy_scatter *sc = s->sc;
    const w_scatter_sort of = s->of;
    weft_argument fill[] = {READS(WEFT_SCATTER_BASE, sc->dtype), WRITES(weft__scatter_out(sc), sc->dtype),
                            SCRATCH(s->state, WEFT_I32), STRUCT(of), FAULT};
    const int64_t chunks = weft__ceil_div(sc->outer * sc->rows * sc->inner,
                                          16 / (int64_t)weft_dtype_size((weft_dtype)sc->dtype));
    return ADD("scatter_fill", fill, weft__gpu_groups(launches->target, chunks), 1, 1);
}

/* Adds up the rows from the sorted keys and places of half `from`. */
static weft_status add_sums(weft_launches *launches, const sorting *s, int from) {
    const weft_heavy_scatter *sc = s->sc;
    const w_scatter_sort of = s->of;
    const uint8_t sum = (uint8_t)weft__gpu_sum_dtype((weft_dtype)sc->dtype);
    const int out = weft__scatter_out(sc);
    const int64_t outer = weft__smaller(sc->outer, GROUPS_MAX), items = launches->target->lanes;
    const int64_t wide = 16 / (int64_t)weft_dtype_size((weft_dtype)sc->dtype);
    const int64_t spans = weft__ceil_div(sc->inner % wide == 0 ? sc->inner / wide : sc->inner, SPAN);
    weft_argument sums[] = {READS(WEFT_SCATTER_INDEX, sc->index_dtype),
                            READS(WEFT_SCATTER_SOURCE, sc->dtype),
                            READS(WEFT_SCATTER_BASE, sc->dtype), /* without a base, it is out, and unread */
                            WRITES(out, sc->dtype),
                            SCRATCH(s->keys[from], WEFT_U32),
                            SCRATCH(s->places[from], WEFT_I32),
                            SCRATCH(s->room, sum),
                            SCRATCH(s->joins, WEFT_I32),
                            SCRATCH(s->state, WEFT_I32),
                            STRUCT(of),
                            FAULT};
    weft_argument join[] = {WRITES(out, sc->dtype),
                            SCRATCH(s->keys[from], WEFT_U32),
                            SCRATCH(s->room, sum),
                            SCRATCH(s->joins, WEFT_I32),
                            SCRATCH(s->state, WEFT_I32),
                            STRUCT(of),
                            FAULT};
    WEFT_TRY(ADD("scatter_sum", sums, s->tiles, weft__smaller(spans, GROUPS_MAX), outer));
    return ADD("scatter_join", join, weft__ceil_div(s->tiles * sc->inner, items), 1, outer);
}

weft_status weft__gpu_scatter_sorted(weft_launches *launches, const weft_heavy *heavy, bool sink) {
    const weft_heavy_scatter *sc = &heavy->as.scatter;
    sorting sort = {.sc = sc}, *const s = &sort;
    int from = 0;
    WEFT_TRY(begin_sort(launches, s, sink));
    for (int shift = 0; shift == 0 || sc->rows >> shift; shift += DIGIT_BITS, from = !from) {
        s->of.shift = shift;
        s->of.first = shift == 0;
        WEFT_TRY(add_pass(launches, s, from));
    }
    if (!sc->in_place && !weft__scatter_is_direct(sc)) WEFT_TRY(add_fill(launches, s));
    return add_sums(launches, s, from);
}
