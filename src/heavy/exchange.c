/* What the compiler and the profile know of an exchange. Must not know: devices, processes. Read next:
 * exchange.h. */
#include <stdio.h>
#include "heavy/heavy.h"

static int exchange_operands(const weft_heavy *heavy) {
    (void)heavy;
    return WEFT_EXCHANGE_OPERANDS;
}

static int exchange_base(const weft_heavy *heavy) {
    return heavy->as.exchange.part || heavy->as.exchange.gather ? -1 : WEFT_EXCHANGE_INPUT;
}

static void exchange_take_base(weft_heavy *heavy) { heavy->as.exchange.in_place = true; }

static void exchange_cost(const weft_heavy *heavy, double *flops, double *bytes) {
    const weft_heavy_exchange *x = &heavy->as.exchange;
    (void)flops;
    *bytes = x->in_place || x->part || x->gather ? 0 : 2 * (double)x->n * weft__heavy_size(x->dtype);
}

static void exchange_describe(const weft_heavy *heavy, char *text, size_t size) {
    const weft_heavy_exchange *x = &heavy->as.exchange;
    char part[40] = "";
    if (x->part) snprintf(part, sizeof part, ", part of %lld", (long long)x->part);
    snprintf(text, size, "%s %d of %d: %s %lld%s", x->gather ? "gather" : "exchange", x->number + 1, x->count,
             weft_dtype_name((weft_dtype)x->dtype), (long long)x->n, part);
}

static const char *exchange_check(const weft_heavy *heavy) {
    const weft_heavy_exchange *x = &heavy->as.exchange;
    if (x->number < 0 || x->number >= x->count) return "a number beyond the count";
    return x->n < 0 || x->part < 0 ? "a negative extent" : NULL;
}

/* ---- exact sums on linked devices ---- */

enum {
    RECEIVED_MOST = 32 << 20, /* bytes of all processes */
    FEW_BYTES = 1 << 16,      /* of all processes: one transfer of all is faster than two of parts */
    ALIGNED = 16              /* numbers: parts begin at a multiple of 64 bytes */
};

weft__exchange_parts weft__exchange_divide(const weft_heavy_exchange *x, int processes) {
    const int64_t size = (int64_t)weft_dtype_size((weft_dtype)x->dtype),
                  most = RECEIVED_MOST / size / processes / ALIGNED * ALIGNED + ALIGNED;
    const bool few = x->n * size * processes <= FEW_BYTES;
    const int64_t part = x->part ? x->part : few ? 0 : x->n / processes / ALIGNED * ALIGNED;
    return (weft__exchange_parts){part, part < most ? part : most, x->part ? 0 : x->n - part * processes};
}

int64_t weft__exchange_received(const weft_heavy_exchange *x, int processes) {
    if (x->gather || (!x->exact && !x->part)) return 0;
    const weft__exchange_parts parts = weft__exchange_divide(x, processes);
    const int64_t most = parts.at_once > parts.rest ? parts.at_once : parts.rest;
    return most * processes * (int64_t)weft_dtype_size((weft_dtype)x->dtype);
}

const weft_heavy_class weft__heavy_exchange = {.name = "exchange",
                                               .work = WEFT_WORK_EXCHANGE,
                                               .operands = exchange_operands,
                                               .base = exchange_base,
                                               .assigns = true,
                                               .base_in_arena = true,
                                               .take_base = exchange_take_base,
                                               .cost = exchange_cost,
                                               .describe = exchange_describe,
                                               .check = exchange_check};
