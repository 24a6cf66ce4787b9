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

const weft_heavy_class weft__heavy_exchange = {.name = "exchange",
                                               .work = WEFT_WORK_EXCHANGE,
                                               .operands = exchange_operands,
                                               .base = exchange_base,
                                               .take_base = exchange_take_base,
                                               .cost = exchange_cost,
                                               .describe = exchange_describe,
                                               .check = exchange_check};
