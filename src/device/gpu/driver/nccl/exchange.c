/* Exchanges with other processes as launches of a program. They run in a stream of their own, beside the
 * launches of the main stream:
 *
 *     main stream     gradients of layer 3   gradients of layer 2   ...        wait   update
 *     stream beside          |--- scatter, add up, gather of layer 3 ---||--- of layer 2 ---|
 *
 * An exact sum receives the parts of all processes, adds them up by Weft's kernel, and gathers the sums. Each
 * transfer is submitted before the next launch, as NCCL demands of calls that do not block. Must not know:
 * what is exchanged, other processes. Read next: link.c, process/link.c, heavy/exchange.h. */
#include <string.h>

#include "device/gpu/driver/nccl/link.h"
#include "device/gpu/driver/run.h"
#include "device/gpu/heavy/heavy.h"
#include "device/gpu/backend/template.h"

enum { PLACES = 2 }; /* of a transfer: what it reads, and what it writes */

typedef enum exchange_transfer { NO_TRANSFER, REDUCE, SCATTER, GATHER } exchange_transfer;

/* What a call does, with all other bytes 0, so that calls can be compared. */
typedef struct exchange_work {
    weft_heavy_exchange exchange;
    size_t from;            /* bytes that are added to the first address */
    weft__nccl_parts parts; /* of the transfer */
    int32_t size;           /* processes when the program was built */
    int16_t transfer;
    bool begins, ends; /* the first and the last call of its exchange */
    bool waits;        /* for its end */
} exchange_work;

typedef struct weft__cuda_exchange {
    weft_call call; /* first */
    struct weft__cuda_exchange *next;
    exchange_work work;
} exchange_call;

/* ---- calls ---- */

static CUresult reported(weft__cuda *d, weft_status status) {
    d->reported = status;
    return status == WEFT_OK ? 0 : CUDA_ERROR_UNKNOWN;
}

/* Makes the events of a program's exchanges. */
static CUresult make_events(weft_link *l, int count) {
    const weft__cuda *d = weft__cuda_of(l->device);
    if (count <= l->n_exchanges) return 0;
    weft__exchange_events *more = weft__array(NULL, (size_t)count, sizeof *more);
    if (!more) return CUDA_ERROR_OUT_OF_MEMORY;
    if (l->n_exchanges) memcpy(more, l->exchanges, (size_t)l->n_exchanges * sizeof *more);
    weft__free(NULL, l->exchanges);
    l->exchanges = more;
    CUresult error = 0;
    while (l->n_exchanges < count && !error) {
        CUevent *events[] = {&more[l->n_exchanges].begun, &more[l->n_exchanges].ended,
                             &more[l->n_exchanges].awaited, &more[l->n_exchanges].waited};
        l->n_exchanges++;
        for (int i = 0; i < 4 && !error; i++) error = d->cu->cuEventCreate(events[i], CU_EVENT_DEFAULT);
    }
    return error;
}

/* Lets the stream beside wait for the numbers. */
static CUresult exchange_begin(weft__cuda *d, weft_linked *linked, const exchange_work *w) {
    const weft_status status = linked->begin(linked, &w->exchange);
    if (status != WEFT_OK) return reported(d, status);
    weft_link *l = linked->link;
    CUresult error = make_events(l, w->exchange.count);
    if (!error) error = d->cu->cuEventRecord(l->ready, d->stream);
    if (!error) error = d->cu->cuStreamWaitEvent(d->beside, l->ready, 0);
    return error ? error : d->cu->cuEventRecord(l->exchanges[w->exchange.number].begun, d->beside);
}

static CUresult exchange_transfer_run(weft__cuda *d, weft_linked *linked, const exchange_work *w,
                                      void *const *addresses) {
    const weft_link *l = linked->link;
    char *from = *(char *const *)addresses[0] + w->from, *to = *(char *const *)addresses[1];
    const weft_dtype dtype = (weft_dtype)w->exchange.dtype;
    const char *error = w->transfer == REDUCE
                            ? weft__nccl_reduce(l, from, to, dtype, (size_t)w->exchange.n, d->beside)
                        : w->transfer == SCATTER ? weft__nccl_scatter(l, from, to, &w->parts, d->beside)
                                                 : weft__nccl_gather(l, from, to, &w->parts, d->beside);
    return reported(d, linked->submitted(linked, error));
}

/* The main stream waits for the end of an exchange. */
static CUresult exchange_await(weft__cuda *d, const weft_link *l, int number) {
    const weft__exchange_events *events = &l->exchanges[number];
    CUresult error = d->cu->cuEventRecord(events->awaited, d->stream);
    if (!error) error = d->cu->cuStreamWaitEvent(d->stream, events->ended, 0);
    return error ? error : d->cu->cuEventRecord(events->waited, d->stream);
}

static CUresult exchange_run(weft__cuda *d, const weft_call *call, void *const *addresses, CUstream stream) {
    const exchange_work *w = &((const exchange_call *)call)->work;
    weft_linked *linked = d->gpu.base.linked;
    CUresult error = 0;
    (void)stream; /* the events order both streams */
    if (!linked || linked->size != w->size)
        return reported(
            d, weft__fail(d->gpu.base.ctx, WEFT_ERR_STATE,
                          "a program exchanges numbers with processes to which the device is no longer "
                          "linked: record it again"));
    if (w->waits) return exchange_await(d, linked->link, w->exchange.number);
    if (w->begins) error = exchange_begin(d, linked, w);
    if (!error && w->transfer != NO_TRANSFER) error = exchange_transfer_run(d, linked, w, addresses);
    if (!error && w->ends)
        error = d->cu->cuEventRecord(linked->link->exchanges[w->exchange.number].ended, d->beside);
    return error;
}

/* ---- launches ---- */

/* Returns the call for some work. Equal calls of all programs are one. */
static const weft_call *call_for(weft__cuda *d, const exchange_work *work) {
    exchange_call *c = d->exchanges;
    while (c && memcmp(&c->work, work, sizeof *work) != 0) c = c->next;
    if (c) return &c->call;
    c = weft__zalloc(d->gpu.base.ctx, sizeof *c);
    if (!c) return NULL;
    c->call.run = exchange_run;
    memcpy(&c->work, work, sizeof *work);
    c->next = d->exchanges;
    d->exchanges = c;
    return &c->call;
}

/* Adds the launch of a call. places: the operands or the scratch memory that it uses; NULL: none. */
static weft_status add_call(weft__cuda *d, weft_launches *launches, const exchange_work *work,
                            weft_argument *places) {
    const weft_call *call = call_for(d, work);
    if (!call) return weft__fail_oom(launches->ctx, sizeof *work, "an exchange with other processes");
    return weft__launch(launches, &(weft_launch){.name = "exchange",
                                                 .call = call,
                                                 .beside = true,
                                                 .arguments = places,
                                                 .n_arguments = places ? PLACES : 0,
                                                 .groups = {1, 1, 1},
                                                 .items = {1, 1, 1}});
}

/* An exchange while its launches are made. */
typedef struct exchange_plan {
    weft__cuda *d;
    weft_launches *launches;
    exchange_work work; /* of the next call */
    int rank;
    int64_t each; /* bytes of a number */
    int input;    /* the operand that is given: of a sum in place, the result */
} exchange_plan;

/* Adds a call with the work so far. */
static weft_status exchange_step(exchange_plan *x, exchange_transfer transfer, weft__nccl_parts parts,
                                 weft_argument *places) {
    x->work.transfer = (int16_t)transfer;
    x->work.parts = parts;
    const weft_status status = add_call(x->d, x->launches, &x->work, places);
    x->work.begins = false;
    x->work.from = 0;
    return status;
}

/* How many of `most` numbers from `at` on exist? */
static int64_t existing(const exchange_plan *x, int64_t at, int64_t most) {
    const int64_t left = x->work.exchange.n - at;
    return left < 0 ? 0 : left < most ? left : most;
}

/* Adds up `count` numbers of each process, from `at` on in each part. */
static weft_status sum_some(exchange_plan *x, int64_t part, int64_t at, int64_t count) {
    const weft_heavy_exchange *of = &x->work.exchange;
    const weft_dtype dtype = (weft_dtype)of->dtype;
    weft_argument places[] = {READS(x->input, dtype), SCRATCH(0, dtype)};
    const int64_t own = existing(x, x->rank * part + at, count), all = existing(x, at, of->n);
    const weft__added_rows rows = {.dtype = dtype,
                                   .rows = x->work.size,
                                   .apart = count,
                                   .at = of->part ? at : x->rank * part + at,
                                   .count = own,
                                   .all = of->part ? count : own};
    x->work.from = (size_t)(at * x->each);
    if (all)
        WEFT_TRY(exchange_step(x, SCATTER,
                               (weft__nccl_parts){.stride = (size_t)(part * x->each),
                                                  .part = (size_t)(count * x->each),
                                                  .bytes = (size_t)(all * x->each)},
                               places));
    return rows.all ? weft__gpu_add_rows(x->launches, &rows) : WEFT_OK;
}

/* Each process adds up all numbers from `at` on. */
static weft_status sum_few(exchange_plan *x, int64_t at, int64_t count) {
    const weft_dtype dtype = (weft_dtype)x->work.exchange.dtype;
    const size_t bytes = (size_t)(count * x->each);
    const weft__added_rows rows = {dtype,    x->work.size,   .apart = count,
                                   .at = at, .count = count, .all = count};
    weft_argument places[] = {READS(x->input, dtype), SCRATCH(0, dtype)};
    x->work.from = (size_t)(at * x->each);
    WEFT_TRY(
        exchange_step(x, GATHER, (weft__nccl_parts){bytes, bytes, bytes * (size_t)x->work.size}, places));
    return weft__gpu_add_rows(x->launches, &rows);
}

/* An exact sum: of which each process gets its part, or all. */
static weft_status sum_exactly(exchange_plan *x) {
    const weft_heavy_exchange *of = &x->work.exchange;
    const weft__exchange_parts parts = weft__exchange_divide(of, x->work.size);
    const size_t part = (size_t)(parts.part * x->each);
    weft_argument places[] = {WRITES(WEFT_EXCHANGE_OUT, of->dtype), WRITES(WEFT_EXCHANGE_OUT, of->dtype)};
    x->launches->beside_bytes = weft__exchange_received(of, x->work.size);
    if (parts.rest) WEFT_TRY(sum_few(x, of->n - parts.rest, parts.rest));
    for (int64_t at = 0; at < parts.part; at += parts.at_once) {
        const int64_t left = parts.part - at;
        WEFT_TRY(sum_some(x, parts.part, at, left < parts.at_once ? left : parts.at_once));
    }
    x->work.ends = true;
    if (!parts.part || of->part) return exchange_step(x, NO_TRANSFER, (weft__nccl_parts){0}, NULL);
    x->work.from = (size_t)x->rank * part;
    return exchange_step(x, GATHER, (weft__nccl_parts){part, part, part * (size_t)x->work.size}, places);
}

/* Copies the numbers of a sum to the result, where it is made. They need not stay until its end. */
static weft_status copy_input(const exchange_plan *x, const weft_command *command) {
    weft_command copy = *command;
    copy.kind = WEFT_COMMAND_COPY;
    copy.sink = false;
    copy.bytes = x->work.exchange.n * x->each;
    return weft__gpu_copy(x->launches, &copy);
}

static weft_status add_exchange(exchange_plan *x, const weft_command *command) {
    const weft_heavy_exchange *of = &x->work.exchange;
    const size_t bytes = (size_t)(of->n * x->each);
    x->input = of->part || of->gather ? WEFT_EXCHANGE_INPUT : WEFT_EXCHANGE_OUT;
    if (x->input == WEFT_EXCHANGE_OUT && !of->in_place && of->n > 0) WEFT_TRY(copy_input(x, command));
    weft_argument places[] = {READS(x->input, of->dtype), WRITES(WEFT_EXCHANGE_OUT, of->dtype)};
    x->work.begins = true;
    if (of->n > 0 && !of->gather && (of->exact || of->part)) return sum_exactly(x);
    x->work.ends = true;
    return of->n == 0 ? exchange_step(x, NO_TRANSFER, (weft__nccl_parts){0}, NULL)
           : of->gather
               ? exchange_step(x, GATHER, (weft__nccl_parts){bytes, bytes, bytes * (size_t)x->work.size},
                               places)
               : exchange_step(x, REDUCE, (weft__nccl_parts){0}, places);
}

weft_status weft__nccl_offer_exchange(weft__cuda *d, weft_launches *launches, const weft_command *command) {
    const weft_linked *linked = d->gpu.base.linked;
    const bool waits = command->kind == WEFT_COMMAND_WAIT;
    if (!waits && (command->kind != WEFT_COMMAND_HEAVY || command->heavy.kind != WEFT_HEAVY_EXCHANGE))
        return WEFT_OK;
    if (!linked)
        return weft__fail(launches->ctx, WEFT_ERR_STATE, "the device is not linked to other processes");
    exchange_plan x = {.d = d,
                       .launches = launches,
                       .rank = linked->rank,
                       .each = (int64_t)weft_dtype_size((weft_dtype)command->heavy.as.exchange.dtype)};
    memset(&x.work, 0, sizeof x.work);
    memcpy(&x.work.exchange, &command->heavy.as.exchange, sizeof x.work.exchange);
    x.work.size = linked->size;
    if (!waits) return add_exchange(&x, command);
    x.work.waits = true;
    return add_call(d, launches, &x.work, NULL);
}

void weft__nccl_exchanges_close(weft__cuda *d) {
    while (d->exchanges) {
        exchange_call *c = d->exchanges;
        d->exchanges = c->next;
        weft__free(d->gpu.base.ctx, c);
    }
}

/* ---- of a link ---- */

CUresult weft__nccl_exchanges_open(weft_link *l) {
    weft__cuda *d = weft__cuda_of(l->device);
    CUresult error = d->beside ? 0 : d->cu->cuStreamCreate(&d->beside, CU_STREAM_NON_BLOCKING);
    return error ? error : d->cu->cuEventCreate(&l->ready, CU_EVENT_DISABLE_TIMING);
}

void weft__nccl_exchanges_free(weft_link *l) {
    const weft__cuda *d = weft__cuda_of(l->device);
    for (int i = 0; i < l->n_exchanges; i++) {
        const CUevent events[] = {l->exchanges[i].begun, l->exchanges[i].ended, l->exchanges[i].awaited,
                                  l->exchanges[i].waited};
        for (int k = 0; k < 4; k++)
            if (events[k]) d->cu->cuEventDestroy_v2(events[k]);
    }
    if (l->ready) d->cu->cuEventDestroy_v2(l->ready);
    weft__free(NULL, l->exchanges);
}

/* Both streams may wait for the exchange that is ended, so the fault is recorded in a third one. */
void weft__nccl_exchanges_fail(const weft_link *l) {
    weft__cuda *d = weft__cuda_of(l->device);
    const w_faults fault = {.set = 1, .command = -1, .what = WEFT_FAULT_EXCHANGE};
    CUstream third = NULL;
    if (!l->n_exchanges || d->cu->cuStreamCreate(&third, CU_STREAM_NON_BLOCKING) != 0) return;
    if (d->cu->cuMemcpyHtoDAsync_v2(d->gpu.faults->address, &fault, sizeof fault, third) == 0)
        d->cu->cuStreamSynchronize(third);
    d->cu->cuStreamDestroy_v2(third);
}

const char *weft__nccl_test_exchange(weft_link *l, int number, bool end, bool *is) {
    weft__cuda *d = weft__cuda_of(l->device);
    const weft__exchange_events *events = &l->exchanges[number];
    *is = false;
    const char *failed = weft__nccl_state(l);
    if (failed) return failed;
    CUresult error = weft__cuda_enter(d);
    if (!error) {
        error = d->cu->cuEventQuery(end ? events->ended : events->begun);
        weft__cuda_leave(d);
    }
    *is = error == 0;
    return error && error != CUDA_ERROR_NOT_READY ? weft__nccl_driver_failed(d, error) : NULL;
}

static double seconds_between(const weft__cuda *d, CUevent from, CUevent to) {
    float milliseconds = 0;
    return d->cu->cuEventElapsedTime(&milliseconds, from, to) == 0 ? 1e-3 * (double)milliseconds : 0;
}

void weft__nccl_exchange_times(weft_link *l, int count, double *took, double *waited) {
    weft__cuda *d = weft__cuda_of(l->device);
    if (weft__cuda_enter(d) != 0) return;
    for (int i = 0; i < count; i++) {
        const weft__exchange_events *events = &l->exchanges[i];
        *took += seconds_between(d, events->begun, events->ended);
        *waited += seconds_between(d, events->awaited, events->waited);
    }
    weft__cuda_leave(d);
}
