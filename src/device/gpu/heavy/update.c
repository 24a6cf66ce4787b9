/* Assignment into a slice for the GPU backends. Rows are divided among work-groups.
 * Must not know: how launches run. Read next: update.cl. */
#include "device/gpu/heavy/heavy.h"
#include "device/gpu/heavy/update_params.h"
#include "device/gpu/backend/template.h"
#include "device/gpu/backend/kernel_source.h"

#define WORK 32768 /* elements of a work-group */

_Static_assert(sizeof(w_update) == 5 * 8 + 4 * 4, "no padding");

/* Returns the unsigned integer of the dtype's size. Bits are copied, so it can stand for every dtype. */
static weft_dtype bits_of(uint8_t dtype) {
    switch (weft_dtype_size((weft_dtype)dtype)) {
    case 1: return WEFT_U8;
    case 2: return WEFT_U16;
    case 4: return WEFT_U32;
    default: return WEFT_U64;
    }
}

bool weft__gpu_update_takes(const weft_target *target, const weft_heavy_update *update) {
    (void)target;
    return weft_dtype_size((weft_dtype)update->dtype) <= 8;
}

weft_status weft__gpu_update(weft_launches *launches, const weft_heavy *heavy, bool sink) {
    const weft_heavy_update *up = &heavy->as.update;
    const int items = launches->target->lanes;
    const uint8_t dtype = (uint8_t)bits_of(up->dtype);
    const int64_t rows = up->outer * (up->in_place ? up->extent : up->total);
    if (rows == 0 || up->inner == 0) return WEFT_OK;
    const int64_t most = 64 * (int64_t)launches->target->units, least = weft__ceil_div(WORK, up->inner);
    int64_t block = weft__ceil_div(rows, most);
    if (block < least) block = least;
    const w_update of = {.outer = up->outer,
                         .total = up->total,
                         .extent = up->extent,
                         .inner = up->inner,
                         .block = block,
                         .in_place = up->in_place,
                         .width = up->inner < items ? (int32_t)up->inner : items,
                         .sink = sink};
    weft_argument arguments[] = {READS(WEFT_UPDATE_INPUT, dtype),
                                 READS(WEFT_UPDATE_VALUE, dtype),
                                 READS(WEFT_UPDATE_OFFSET, WEFT_I32),
                                 WRITES(WEFT_UPDATE_OUT, dtype),
                                 STRUCT(of),
                                 FAULT};
    const char *source = weft__gpu_template_source(launches, (weft_dtype)dtype, "", weft__source_update);
    if (!source) return weft__fail_oom(launches->ctx, 0, "the kernel source of an update");
    const weft_launch launch = {.name = "update",
                                .source = source,
                                .may_fuse = true,
                                ARGUMENTS(arguments),
                                .groups = {weft__ceil_div(rows, block), 1, 1},
                                .items = {items, 1, 1}};
    return weft__launch(launches, &launch);
}
