/* Exchanges with other processes: one command hands its memory to the device's exchanger, and a later one
 * waits. Must not know: processes. Read next: heavy/exchange.h, process/exchange.c. */
#include <string.h>

#include "device/cpu/heavy/heavy.h"

#define EXCHANGE_NS 1000.0 /* of either command; nobody knows how long the exchange itself takes */

typedef struct exchange_plan {
    const weft_device *device; /* its exchanger may change between runs */
    weft_heavy_exchange what;
} exchange_plan;

static void exchange_start(const void *user, void *const *args, int64_t begin, int64_t end, void *scratch,
                           weft_fault *fault) {
    const exchange_plan *plan = user;
    weft_exchanger *x = plan->device->exchanger;
    const void *in = args[WEFT_EXCHANGE_INPUT];
    void *out = args[WEFT_EXCHANGE_OUT];
    (void)begin, (void)end, (void)scratch, (void)fault;
    if (in != out && !plan->what.part && !plan->what.gather)
        memcpy(out, in, (size_t)plan->what.n * weft_dtype_size((weft_dtype)plan->what.dtype));
    x->start(x, &plan->what, in, out);
}

static void exchange_wait(const void *user, void *const *args, int64_t begin, int64_t end, void *scratch,
                          weft_fault *fault) {
    const exchange_plan *plan = user;
    weft_exchanger *x = plan->device->exchanger;
    (void)args, (void)begin, (void)end, (void)scratch;
    if (!x->wait(x, plan->what.number)) weft__cpu_fault(fault, WEFT_FAULT_EXCHANGE, NULL, 0, 0, -1);
}

static void exchange_free(weft_context *ctx, void *plan) { weft__free(ctx, plan); }

static weft_status exchange_prepare(weft_context *ctx, const weft_heavy_exchange *exchange, bool wait,
                                    weft_cpu_work *work) {
    exchange_plan *plan = weft__alloc(ctx, sizeof *plan);
    if (!plan) return weft__fail_oom(ctx, sizeof *plan, "an exchange");
    *plan = (exchange_plan){ctx->device, *exchange};
    *work = (weft_cpu_work){.tasks = 1,
                            .cost_ns = EXCHANGE_NS,
                            .run = wait ? exchange_wait : exchange_start,
                            .free = exchange_free,
                            .plan = plan};
    return WEFT_OK;
}

bool weft__cpu_exchange_takes(const weft_heavy_exchange *exchange) {
    return exchange->gather || exchange->dtype == WEFT_F32 || exchange->dtype == WEFT_F64;
}

weft_status weft__cpu_exchange_prepare(weft_context *ctx, const weft_heavy_exchange *exchange,
                                       const char *path, int threads, weft_cpu_work *work) {
    weft_exchanger *x = ctx->device->exchanger;
    (void)path, (void)threads;
    if (x) WEFT_TRY(x->reserve(x, exchange->count)); /* there is none if the program is only planned */
    return exchange_prepare(ctx, exchange, false, work);
}

weft_status weft__cpu_wait_prepare(weft_context *ctx, const weft_heavy_exchange *exchange,
                                   weft_cpu_work *work) {
    return exchange_prepare(ctx, exchange, true, work);
}
