/* Cumulative sums and products for the GPU backends. Shapes alone decide the number of segments, and with it
 * the bits.
 * Must not know: how launches run. Read next: scan.cl. */
#include <stdio.h>

#include "device/gpu/heavy/heavy.h"
#include "device/gpu/heavy/scan_params.h"
#include "device/gpu/backend/template.h"
#include "device/gpu/backend/kernel_source.h"

enum {
    SHORT = 64,      /* elements of a segment, at least */
    SEGMENTS = 1024, /* of a row at most, since one work-item joins them */
    ENOUGH = 4096    /* so many work-items are enough; then nothing is divided */
};

_Static_assert(sizeof(w_scan) == 5 * 8 + 4 * 4, "no padding");

/* Returns the dtype that sums are accumulated in. */
static weft_dtype total_of(const weft_target *target, const weft_heavy_scan *s) {
    return s->dtype == WEFT_F32 && target->f64 ? WEFT_F64 : (weft_dtype)s->dtype;
}

static const char *gpu_scan_source_of(weft_launches *launches, const weft_heavy_scan *s) {
    const bool wider = total_of(launches->target, s) != (weft_dtype)s->dtype;
    char head[64];
    snprintf(head, sizeof head, "#define A %s\n#define COMPENSATED %d\n", wider ? "double" : "S",
             !wider && weft_dtype_is_float((weft_dtype)s->dtype));
    return weft__gpu_template_source(launches, (weft_dtype)s->dtype, head, weft__source_scan);
}

static weft_status gpu_scan_launch(weft_launches *launches, const weft_heavy_scan *s, const char *name,
                                   const char *source, int64_t length, int64_t workers, bool sink) {
    const int items = launches->target->lanes;
    const int64_t segments = weft__ceil_div(s->extent, length);
    const weft_dtype total = total_of(launches->target, s);
    const w_scan of = {.outer = s->outer,
                       .extent = s->extent,
                       .inner = s->inner,
                       .length = length,
                       .segments = segments,
                       .product = s->product,
                       .reverse = s->reverse,
                       .sink = sink};
    weft_argument arguments[] = {READS(WEFT_SCAN_INPUT, s->dtype), SCRATCH(0, total),
                                 WRITES(WEFT_SCAN_OUT, s->dtype), STRUCT(of), FAULT};
    if (segments == 1) arguments[1] = (weft_argument)WRITES(WEFT_SCAN_OUT, s->dtype); /* unused */
    return weft__launch(launches,
                        &(weft_launch){.name = name,
                                       .source = source,
                                       .prelude = weft__gpu_prelude(total),
                                       ARGUMENTS(arguments),
                                       .groups = {weft__gpu_groups(launches->target, workers), 1, 1},
                                       .items = {items, 1, 1}});
}

bool weft__gpu_scan_takes(const weft_target *target, const weft_heavy_scan *scan) {
    return weft__gpu_knows(target, (weft_dtype)scan->dtype);
}

weft_status weft__gpu_scan(weft_launches *launches, const weft_heavy *heavy, bool sink) {
    const weft_heavy_scan *s = &heavy->as.scan;
    const int64_t columns = s->outer * s->inner;
    if (columns == 0 || s->extent == 0) return WEFT_OK;
    const bool whole = s->product || columns >= ENOUGH;
    const int64_t length = whole ? s->extent : weft__larger(SHORT, weft__ceil_div(s->extent, SEGMENTS));
    const int64_t segments = weft__ceil_div(s->extent, length);
    const char *source = gpu_scan_source_of(launches, s);
    if (!source) return weft__fail_oom(launches->ctx, 0, "the kernel source of a scan");
    if (segments > 1) {
        const size_t size = weft_dtype_size(total_of(launches->target, s));
        launches->scratch_bytes = columns * segments * (int64_t)size;
        WEFT_TRY(gpu_scan_launch(launches, s, "scan_totals", source, length, columns * segments, sink));
        WEFT_TRY(gpu_scan_launch(launches, s, "scan_join", source, length, columns, sink));
    }
    return gpu_scan_launch(launches, s, "scan_write", source, length, columns * segments, sink);
}
