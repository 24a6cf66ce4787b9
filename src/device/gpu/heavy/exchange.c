/* Adds up what linked devices have received from the other processes. All else of an exchange is a matter of
 * the library that links them (driver/nccl/exchange.c). A device without a link declines exchanges: gradients
 * are then exchanged after the program, through the memory of the host. Must not know: OpenCL, CUDA. Read
 * next: exchange.cl, heavy/exchange.h. */
#include <stdio.h>

#include "device/gpu/heavy/heavy.h"
#include "device/gpu/heavy/exchange_params.h"
#include "device/gpu/backend/template.h"
#include "device/gpu/backend/kernel_source.h"

enum { GROUPS_OF_UNIT = 8 };

_Static_assert(sizeof(w_add_rows) == 3 * 8, "no padding");

bool weft__gpu_exchange_takes(const weft_target *target, const weft_heavy_exchange *exchange) {
    (void)target, (void)exchange;
    return false;
}

/* Only for plans: the library of a linked device makes the launches. */
weft_status weft__gpu_exchange(weft_launches *launches, const weft_heavy *heavy, bool sink) {
    (void)launches, (void)heavy, (void)sink;
    return WEFT_OK;
}

weft_status weft__gpu_add_rows(weft_launches *launches, const weft__added_rows *rows) {
    const int64_t size = (int64_t)weft_dtype_size(rows->dtype), items = launches->target->lanes;
    const w_add_rows of = {.count = rows->count, .all = rows->all, .apart = rows->apart};
    weft_argument arguments[] = {SCRATCH(0, rows->dtype), WRITES(WEFT_EXCHANGE_OUT, rows->dtype), STRUCT(of)};
    char head[64];
    int levels = 1;
    while (1 << (levels - 1) < rows->rows) levels++;
    snprintf(head, sizeof head, "#define ROWS %d\n#define LEVELS %d\n", rows->rows, levels);
    arguments[1].i = rows->at * size;
    const char *source = weft__gpu_template_source(launches, rows->dtype, head, weft__source_exchange);
    if (!source) return weft__fail_oom(launches->ctx, 0, "the kernel source of a sum over processes");
    const int64_t groups =
        weft__smaller(weft__ceil_div(rows->all, items), (int64_t)GROUPS_OF_UNIT * launches->target->units);
    return weft__launch(launches, &(weft_launch){.name = "add_rows",
                                                 .source = source,
                                                 .prelude = weft__gpu_prelude(rows->dtype),
                                                 ARGUMENTS(arguments),
                                                 .beside = true,
                                                 .groups = {groups, 1, 1},
                                                 .items = {(int)items, 1, 1}});
}
