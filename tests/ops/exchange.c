/* exchange: on a device that takes it, the sum over processes, here of two that have the same numbers. With a
 * part, the elements of the sum that rank 0 receives. Other devices refuse it when the program is compiled.
 */
#include "device/device.h"
#include "ops/build.h"
#include "ops/matrix.h"

/* Ends each exchange at once. */
static void start(weft_exchanger *x, const weft_heavy_exchange *what, const void *in, void *out) {
    (void)x;
    for (int64_t i = 0; i < (what->part ? what->part : what->n); i++)
        if (what->dtype == WEFT_F32)
            ((float *)out)[i] = i < what->n ? 2 * ((const float *)in)[i] : 0;
        else
            ((double *)out)[i] = i < what->n ? 2 * ((const double *)in)[i] : 0;
}
static bool wait_for(weft_exchanger *x, int number) {
    (void)x;
    return number == 0;
}

static weft_status reserve(weft_exchanger *x, int count) {
    (void)x, (void)count;
    return WEFT_OK;
}

static weft_exchanger doubles = {.reserve = reserve, .start = start, .wait = wait_for};

void ops_case_exchange(matrix *m);
void ops_case_exchange(matrix *m) {
    static const int64_t parts[] = {0, 9, 20}; /* 0: all elements */
    static const weft_dtype dtypes[] = {WEFT_F32, WEFT_F64};
    for (int d = 0; d < 2; d++) {
        const weft_heavy heavy = {.kind = WEFT_HEAVY_EXCHANGE,
                                  .as.exchange = {.dtype = (uint8_t)dtypes[d], .count = 1}};
        if (!ops_has_dtype(m, "exchange", dtypes[d])) continue;
        const bool takes = m->ctx->device->ops->takes(m->ctx->device, &heavy);
        weft_exchanger *const kept = m->ctx->device->exchanger;
        m->ctx->device->exchanger = &doubles;
        for (int v = 0; v < VIEW_COUNT; v++) {
            const weft_attr_exchange attr = {.exact = 1, .part = parts[v % 3]};
            operand x = operand_new(m, dtypes[d], SHAPE(17), (view_kind)v, GEN_NORMAL);
            weft_tensor *sum = weft__exchange(WEFT_HERE, x.t, &attr);
            array *y = array_new(m, dtypes[d], SHAPE(attr.part ? attr.part : 17));
            for (int64_t k = 0; k < y->n; k++) y->f[k] = k < 17 ? 2 * x.h->f[k] : 0;
            if (takes) ops_check(m, "exchange", dtypes[d], view_name((view_kind)v), sum, y, TOLERANCE_COPY);
            if (!takes && v == 0 && weft_eval(&sum, 1) != WEFT_ERR_UNSUPPORTED) /* no entry of the page */
                ops_hold(m, "exchange", dtypes[d], "refused", false);
            ops_settle(m);
        }
        m->ctx->device->exchanger = kept;
    }
}
