/* What the compiler and the profile know of an op that a user defines by kernel source. Must not know:
 * devices. Read next: source.h. */
#include <stdio.h>
#include "heavy/heavy.h"

static int source_operands(const weft_heavy *heavy) { return heavy->as.source.arity + 1; }

static void source_cost(const weft_heavy *heavy, double *flops, double *bytes) {
    const weft_heavy_source *s = &heavy->as.source;
    (void)flops;
    *bytes = (double)s->n * (double)(s->arity + 1) * weft__heavy_size(s->dtype);
}

static void source_describe(const weft_heavy *heavy, char *text, size_t size) {
    snprintf(text, size, "source %s %lld", heavy->as.source.name, (long long)heavy->as.source.n);
}

static const char *source_check(const weft_heavy *heavy) {
    const weft_heavy_source *s = &heavy->as.source;
    if (!s->name || !s->code) return "no source";
    return s->arity < 0 || s->n < 0 ? "a negative extent" : NULL;
}

const weft_heavy_class weft__heavy_source = {.name = "source",
                                             .work = WEFT_WORK_OTHER,
                                             .operands = source_operands,
                                             .cost = source_cost,
                                             .describe = source_describe,
                                             .check = source_check};
