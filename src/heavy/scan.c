/* What the compiler and the profile know of a scan. Must not know: devices. Read next: scan.h. */
#include <stdio.h>
#include "heavy/heavy.h"

static int scan_operands(const weft_heavy *heavy) {
    (void)heavy;
    return WEFT_SCAN_OPERANDS;
}

static void scan_cost(const weft_heavy *heavy, double *flops, double *bytes) {
    const weft_heavy_scan *s = &heavy->as.scan;
    *flops = (double)s->outer * (double)s->extent * (double)s->inner;
    *bytes = 2 * *flops * weft__heavy_size(s->dtype);
}

static void scan_describe(const weft_heavy *heavy, char *text, size_t size) {
    const weft_heavy_scan *s = &heavy->as.scan;
    snprintf(text, size, "scan of %s%s %lldx%lldx%lld", s->product ? "products" : "sums",
             s->reverse ? " from the end" : "", (long long)s->outer, (long long)s->extent,
             (long long)s->inner);
}

static const char *scan_check(const weft_heavy *heavy) {
    const weft_heavy_scan *s = &heavy->as.scan;
    return weft__heavy_extents(3, (int64_t[]){s->outer, s->extent, s->inner}) ? NULL : "a negative extent";
}

const weft_heavy_class weft__heavy_scan = {.name = "scan",
                                           .work = WEFT_WORK_OTHER,
                                           .operands = scan_operands,
                                           .cost = scan_cost,
                                           .describe = scan_describe,
                                           .check = scan_check};
