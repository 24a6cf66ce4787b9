/* What the compiler and the profile know of a slice update. Must not know: devices. Read next: update.h. */
#include <stdio.h>
#include "heavy/heavy.h"

static int update_operands(const weft_heavy *heavy) {
    (void)heavy;
    return WEFT_UPDATE_OPERANDS;
}

static int base(const weft_heavy *heavy) {
    (void)heavy;
    return WEFT_UPDATE_INPUT;
}

static void take_base(weft_heavy *heavy) { heavy->as.update.in_place = true; }

static void update_cost(const weft_heavy *heavy, double *flops, double *bytes) {
    const weft_heavy_update *u = &heavy->as.update;
    (void)flops;
    *bytes = 2 * weft__heavy_size(u->dtype) * (double)u->outer * (double)u->inner *
             (double)(u->in_place ? u->extent : u->total);
}

static void update_describe(const weft_heavy *heavy, char *text, size_t size) {
    const weft_heavy_update *u = &heavy->as.update;
    snprintf(text, size, "update%s %lldx%lldx%lld", u->in_place ? " in place" : "", (long long)u->outer,
             (long long)u->extent, (long long)u->inner);
}

static const char *update_check(const weft_heavy *heavy) {
    const weft_heavy_update *u = &heavy->as.update;
    if (!weft__heavy_extents(4, (int64_t[]){u->outer, u->total, u->extent, u->inner}))
        return "a negative extent";
    return u->extent > u->total ? "the slice is longer than its dimension" : NULL;
}

const weft_heavy_class weft__heavy_update = {.name = "update",
                                             .work = WEFT_WORK_OTHER,
                                             .operands = update_operands,
                                             .base = base,
                                             .assigns = true,
                                             .take_base = take_base,
                                             .cost = update_cost,
                                             .describe = update_describe,
                                             .check = update_check};
