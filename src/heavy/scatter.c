/* What the compiler and the profile know of a scatter-add. Must not know: devices. Read next: scatter.h. */
#include <stdio.h>
#include "heavy/heavy.h"

static int scatter_operands(const weft_heavy *heavy) { return weft__scatter_out(&heavy->as.scatter) + 1; }
static int base(const weft_heavy *heavy) { return heavy->as.scatter.based ? WEFT_SCATTER_BASE : -1; }
static void take_base(weft_heavy *heavy) { heavy->as.scatter.in_place = true; }

static void scatter_cost(const weft_heavy *heavy, double *flops, double *bytes) {
    const weft_heavy_scatter *s = &heavy->as.scatter;
    const double inner = (double)s->outer * (double)s->inner;
    const double touched = (double)(s->count < s->rows ? s->count : s->rows);
    const bool touched_only = s->in_place || weft__scatter_is_direct(s);
    const double swept = touched_only ? 0 : s->based ? 2 : 1; /* all rows are copied, or set to zero */
    *flops = (double)s->count * inner;
    *bytes = weft__heavy_size(s->dtype) * inner * ((double)s->count + 2 * touched + swept * (double)s->rows) +
             (double)s->count * weft__heavy_size(s->index_dtype);
}

static void scatter_describe(const weft_heavy *heavy, char *text, size_t size) {
    const weft_heavy_scatter *s = &heavy->as.scatter;
    const char *how = s->in_place ? " in place" : s->based ? " to base" : "";
    snprintf(text, size, "scatter_add%s %lld into %lldx%lld", how, (long long)s->count, (long long)s->rows,
             (long long)s->inner);
}

static const char *scatter_check(const weft_heavy *heavy) {
    const weft_heavy_scatter *s = &heavy->as.scatter;
    if (!weft__heavy_extents(4, (int64_t[]){s->outer, s->count, s->rows, s->inner}))
        return "a negative extent";
    if (s->index_dtype != WEFT_I32 && s->index_dtype != WEFT_I64) return "the index is neither i32 nor i64";
    return s->in_place && !s->based ? "in place without a base" : NULL;
}

const weft_heavy_class weft__heavy_scatter = {.name = "scatter",
                                              .work = WEFT_WORK_OTHER,
                                              .faults = true,
                                              .operands = scatter_operands,
                                              .base = base,
                                              .base_in_arena = true,
                                              .take_base = take_base,
                                              .cost = scatter_cost,
                                              .describe = scatter_describe,
                                              .check = scatter_check};
