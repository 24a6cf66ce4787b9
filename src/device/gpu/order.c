/* The positions that put rows in order for GPU backends: runs, merged until one is left. Two halves of the
 * scratch are read and written in turn, each with a row of keys and then of places. Read next: order.cl. */
#include "device/gpu/heavy.h"
#include "device/gpu/template.h"
#include "device/gpu/text.h"

enum { RUN = 16, PIECE = 64 }; /* as in order.cl */

int64_t weft__gpu_groups(const weft_target *target, int64_t workers) {
    const int64_t most = target->vectors ? 16 * (int64_t)target->units : 1 << 20;
    return weft__smaller(weft__ceil_div(workers, weft__target_items(target)), most);
}

typedef struct ordering {
    const weft_heavy_order *order;
    const char *text;
    uint8_t key;
    int64_t half, places; /* bytes of a half of the scratch, and to the places in it */
} ordering;

static weft_status launch(weft_launches *launches, const char *name, const char *text,
                          weft_argument *arguments, int count, int64_t workers) {
    return weft__launch(launches,
                        &(weft_launch){.name = name,
                                       .text = text,
                                       .n_arguments = count,
                                       .arguments = arguments,
                                       .groups = {weft__gpu_groups(launches->target, workers), 1, 1},
                                       .items = {weft__target_items(launches->target), 1, 1}});
}

static weft_status runs_of(weft_launches *launches, const ordering *s, int64_t runs, int64_t room,
                           bool sink) {
    const weft_heavy_order *o = s->order;
    weft_argument arguments[] = {READS(0, s->key),
                                 SCRATCH(0, s->key),
                                 SCRATCH(s->places, WEFT_I32),
                                 WRITES(1, WEFT_I32),
                                 I64(o->rows),
                                 I64(o->extent),
                                 I64(o->count),
                                 I64(runs),
                                 I64(room),
                                 I32(weft_dtype_is_float((weft_dtype)o->dtype)),
                                 I32(o->descending),
                                 I32(runs == 1),
                                 I32(sink),
                                 FAULT};
    const int count = (int)(sizeof arguments / sizeof *arguments);
    return launch(launches, "order_runs", s->text, arguments, count, o->rows * runs);
}

static weft_status merge(weft_launches *launches, const ordering *s, int level, int64_t runs, int64_t span,
                         bool sink) {
    const weft_heavy_order *o = s->order;
    const int64_t room = weft__smaller(span, o->count), wide = weft__smaller(2 * span, o->count);
    const int64_t pieces = weft__ceil_div(wide, PIECE), merged = (runs + 1) / 2;
    const int64_t from = level % 2 ? s->half : 0, to = s->half - from;
    weft_argument arguments[] = {SCRATCH(from, s->key),
                                 SCRATCH(from + s->places, WEFT_I32),
                                 SCRATCH(to, s->key),
                                 SCRATCH(to + s->places, WEFT_I32),
                                 WRITES(1, WEFT_I32),
                                 I64(o->rows),
                                 I64(o->extent),
                                 I64(o->count),
                                 I64(runs),
                                 I64(span),
                                 I64(room),
                                 I64(wide),
                                 I64(pieces),
                                 I32(merged == 1),
                                 I32(sink),
                                 FAULT};
    const int count = (int)(sizeof arguments / sizeof *arguments);
    return launch(launches, "order_merge", s->text, arguments, count, o->rows * merged * pieces);
}

/* Elements of a row of runs at the level that needs most: the last run of each counts as full. */
static int64_t most_room(const weft_heavy_order *o) {
    int64_t most = 0, runs = weft__ceil_div(o->extent, RUN);
    for (int64_t span = RUN; runs > 1; span *= 2, runs = (runs + 1) / 2)
        most = weft__larger(most, runs * weft__smaller(span, o->count));
    return most;
}

weft_status weft__gpu_order(weft_launches *launches, const weft_heavy *heavy, bool sink) {
    const weft_heavy_order *o = &heavy->as.order;
    if (o->rows == 0 || o->count == 0) return WEFT_OK;
    const bool narrow = weft_dtype_size((weft_dtype)o->dtype) == 4;
    int64_t runs = weft__ceil_div(o->extent, RUN), span = RUN;
    const int64_t room = o->rows * most_room(o);
    ordering s = {.order = o, .key = narrow ? WEFT_U32 : WEFT_U64, .places = room * (narrow ? 4 : 8)};
    s.half = s.places + (room * 4 + 7) / 8 * 8;
    s.text =
        weft__gpu_text(launches, (weft_dtype)s.key,
                       narrow ? "#define INFINITE 0x7f800000u\n" : "#define INFINITE 0x7ff0000000000000ul\n",
                       weft__text_order);
    if (!s.text) return weft__fail_oom(launches->ctx, 0, "the text of an order");
    if (runs > 1) launches->scratch_bytes = 2 * s.half;
    WEFT_TRY(runs_of(launches, &s, runs, weft__smaller(RUN, o->count), sink));
    for (int level = 0; runs > 1; level++, span *= 2, runs = (runs + 1) / 2)
        WEFT_TRY(merge(launches, &s, level, runs, span, sink));
    return WEFT_OK;
}
