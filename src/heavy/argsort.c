/* What the compiler and the profile know of an argsort. Must not know: devices. Read next: argsort.h. */
#include <math.h>
#include <stdio.h>
#include "heavy/heavy.h"

static int argsort_operands(const weft_heavy *heavy) {
    (void)heavy;
    return WEFT_ARGSORT_OPERANDS;
}

/* Counts one pass over keys and positions for each doubling of the sorted length. */
static void argsort_cost(const weft_heavy *heavy, double *flops, double *bytes) {
    const weft_heavy_argsort *o = &heavy->as.argsort;
    const double all = (double)o->rows * (double)o->extent, levels = log2(fmax(2, (double)o->count));
    *flops = all * levels;
    *bytes = all * weft__heavy_size(o->dtype) + levels * 2 * all * (4 + weft__heavy_size(o->dtype));
}

static void argsort_describe(const weft_heavy *heavy, char *text, size_t size) {
    const weft_heavy_argsort *o = &heavy->as.argsort;
    snprintf(text, size, "argsort %s %lldx%lld to %lld", weft_dtype_name((weft_dtype)o->dtype),
             (long long)o->rows, (long long)o->extent, (long long)o->count);
}

static const char *argsort_check(const weft_heavy *heavy) {
    const weft_heavy_argsort *o = &heavy->as.argsort;
    if (!weft__heavy_extents(3, (int64_t[]){o->rows, o->extent, o->count})) return "a negative extent";
    return o->count > o->extent ? "more positions than elements" : NULL;
}

const weft_heavy_class weft__heavy_argsort = {.name = "argsort",
                                              .work = WEFT_WORK_OTHER,
                                              .operands = argsort_operands,
                                              .cost = argsort_cost,
                                              .describe = argsort_describe,
                                              .check = argsort_check};
