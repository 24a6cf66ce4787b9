/* Sums and products up to each element for GPU backends: how many segments there are depends on shapes alone,
 * so bits do too. Read next: scan.cl. */
#include "device/gpu/heavy.h"
#include "device/gpu/template.h"
#include "device/gpu/text.h"

enum {
    SHORT = 64,     /* elements of a segment, at least */
    SEGMENTS = 1024 /* at most, since one worker joins them */
};

static weft_status launch(weft_launches *launches, const weft_heavy_scan *s, const char *name,
                          const char *text, int64_t length, int64_t workers, bool sink) {
    const int items = weft__target_items(launches->target);
    const int64_t segments = weft__ceil_div(s->extent, length);
    const uint8_t sum = (uint8_t)weft__gpu_sum_dtype((weft_dtype)s->dtype);
    weft_argument arguments[] = {READS(0, s->dtype), SCRATCH(0, sum), WRITES(1, s->dtype), I64(s->outer),
                                 I64(s->extent),     I64(s->inner),   I64(length),         I64(segments),
                                 I32(s->product),    I32(s->reverse), I32(sink),           FAULT};
    if (segments == 1) arguments[1] = (weft_argument)WRITES(1, s->dtype); /* not used */
    return weft__launch(launches,
                        &(weft_launch){.name = name,
                                       .text = text,
                                       .prelude = weft__gpu_prelude((weft_dtype)s->dtype),
                                       ARGUMENTS(arguments),
                                       .groups = {weft__gpu_groups(launches->target, workers), 1, 1},
                                       .items = {items, 1, 1}});
}

weft_status weft__gpu_scan(weft_launches *launches, const weft_heavy *heavy, bool sink) {
    const weft_heavy_scan *s = &heavy->as.scan;
    const int64_t columns = s->outer * s->inner;
    if (columns == 0 || s->extent == 0) return WEFT_OK;
    const bool enough = columns >= 4096; /* workers without cutting anything */
    const int64_t length = enough ? s->extent : weft__larger(SHORT, weft__ceil_div(s->extent, SEGMENTS));
    const int64_t segments = weft__ceil_div(s->extent, length);
    const char *text = weft__gpu_text(launches, (weft_dtype)s->dtype, "", weft__text_scan);
    if (!text) return weft__fail_oom(launches->ctx, 0, "the text of a scan");
    if (segments > 1) {
        const size_t size = weft_dtype_size(weft__gpu_sum_dtype((weft_dtype)s->dtype));
        launches->scratch_bytes = columns * segments * (int64_t)size;
        WEFT_TRY(launch(launches, s, "scan_totals", text, length, columns * segments, sink));
        WEFT_TRY(launch(launches, s, "scan_join", text, length, columns, sink));
    }
    return launch(launches, s, "scan_write", text, length, columns * segments, sink);
}
