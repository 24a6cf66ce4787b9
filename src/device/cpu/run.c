/* Programs of the CPU device. Commands become items when a program is built. The caller runs the items one
 * after the other. If a program is long enough, the thread pool runs it (chunks.c).
 * Must not know: the inside of kernels. Read next: chunks.c, tile/kernel_run.c. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#endif
#include <string.h>
#include <time.h>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "device/cpu/run.h"

#define MOVE_BLOCK ((int64_t)1 << 16)

/* ---- copies and zeros as work ---- */

static void copy_tasks(const void *plan, void *const *args, int64_t begin, int64_t end, void *scratch,
                       weft_fault *fault) {
    const int64_t bytes = *(const int64_t *)plan, from = begin * MOVE_BLOCK;
    const int64_t to = end * MOVE_BLOCK < bytes ? end * MOVE_BLOCK : bytes;
    (void)scratch, (void)fault;
    if (to > from) memmove((char *)args[1] + from, (const char *)args[0] + from, (size_t)(to - from));
}

static void zero_tasks(const void *plan, void *const *args, int64_t begin, int64_t end, void *scratch,
                       weft_fault *fault) {
    const int64_t bytes = *(const int64_t *)plan, from = begin * MOVE_BLOCK;
    const int64_t to = end * MOVE_BLOCK < bytes ? end * MOVE_BLOCK : bytes;
    (void)scratch, (void)fault;
    if (to > from) memset((char *)args[0] + from, 0, (size_t)(to - from));
}

static void move_free(weft_context *ctx, void *plan) { weft__free(ctx, plan); }

static weft_status prepare_move(weft_context *ctx, const weft_command *c, weft_cpu_work *work) {
    int64_t *bytes = weft__alloc(ctx, sizeof *bytes);
    if (!bytes) return weft__fail_oom(ctx, sizeof *bytes, "a copy command");
    *bytes = c->bytes;
    *work = (weft_cpu_work){.tasks = (c->bytes + MOVE_BLOCK - 1) / MOVE_BLOCK,
                            .cost_ns = 10 + 0.1 * (double)c->bytes,
                            .run = c->kind == WEFT_COMMAND_COPY ? copy_tasks : zero_tasks,
                            .free = move_free,
                            .plan = bytes};
    return WEFT_OK;
}

/* ---- building ---- */

static weft_status prepare(weft_context *ctx, const weft_command *c, int threads, weft_cpu_work *work) {
    switch (c->kind) {
    case WEFT_COMMAND_KERNEL: return weft__cpu_kernel_prepare(ctx, c->kernel, c->operands, work);
    case WEFT_COMMAND_HEAVY: return weft__cpu_heavy_prepare(ctx, &c->heavy, threads, work);
    case WEFT_COMMAND_COPY:
    case WEFT_COMMAND_ZERO: return prepare_move(ctx, c, work);
    case WEFT_COMMAND_WAIT: return weft__cpu_wait_prepare(ctx, &c->heavy.as.exchange, work);
    }
    return weft__fail(ctx, WEFT_ERR_INTERNAL, "cpu: command of an unknown kind");
}

static weft_status cpu_run_fill(weft_cpu_device *d, const weft_commands *commands, weft_executable *e) {
    weft_context *ctx = d->base.ctx;
    for (int i = 0; i < commands->count; i++) e->n_args += commands->list[i].n_operands;
    e->n_slots = commands->n_slots;
    e->items = weft__array(ctx, (size_t)commands->count + 1, sizeof *e->items);
    e->args = weft__array(ctx, (size_t)e->n_args + 1, sizeof *e->args);
    e->places = weft__array(ctx, (size_t)e->n_args + 1, sizeof *e->places);
    e->bound = weft__array(ctx, (size_t)e->n_slots + 1, sizeof *e->bound);
    e->timings = weft__array(ctx, (size_t)commands->count + 1, sizeof *e->timings);
    if (!e->items || !e->args || !e->places || !e->bound || !e->timings)
        return weft__fail_oom(ctx, (size_t)commands->count * sizeof *e->items, "a program of the cpu device");
    int args = 0;
    for (int i = 0; i < commands->count; i++) {
        const weft_command *c = &commands->list[i];
        weft_cpu_item *x = &e->items[i];
        WEFT_TRY(prepare(ctx, c, d->base.threads, &x->work));
        e->count = i + 1;
        x->args = e->args + args;
        x->sink = c->sink;
        x->after = c->after;
        for (int k = 0; k < c->n_operands; k++) e->places[args++] = &c->operands[k];
        if (x->work.scratch_bytes > e->scratch_bytes) e->scratch_bytes = x->work.scratch_bytes;
        e->cost_ns += x->work.cost_ns;
    }
    e->threads = d->base.threads;
    if (e->threads > 1) WEFT_TRY(weft__cpu_chunks_build(ctx, e));
    /* keeps the scratch of two threads out of the same sets of the cache */
    e->scratch_bytes = (e->scratch_bytes + 4095) / 4096 * 4096 + 64;
    e->scratch = weft__alloc_aligned(ctx, e->scratch_bytes * (size_t)e->threads);
    if (!e->scratch)
        return weft__fail_oom(ctx, e->scratch_bytes * (size_t)e->threads, "scratch of a program");
    return WEFT_OK;
}

weft_status weft__cpu_build(weft_device *device, const weft_commands *commands, weft_executable **out) {
    weft_executable *e = weft__zalloc(device->ctx, sizeof *e);
    if (!e) return weft__fail_oom(device->ctx, sizeof *e, "a program of the cpu device");
    weft_status status = cpu_run_fill((weft_cpu_device *)device, commands, e);
    if (status != WEFT_OK) {
        weft__cpu_executable_free(device, e);
        return status;
    }
    *out = e;
    return WEFT_OK;
}

void weft__cpu_executable_free(weft_device *device, weft_executable *e) {
    if (!e) return;
    weft_context *ctx = device->ctx;
    for (int i = 0; i < e->count; i++)
        if (e->items[i].work.free) e->items[i].work.free(ctx, e->items[i].work.plan);
    weft__free(ctx, e->items);
    weft__free(ctx, e->args);
    weft__free(ctx, e->places);
    weft__free(ctx, e->bound);
    weft__free(ctx, e->timings);
    weft__free(ctx, e->units);
    weft__free_aligned(ctx, e->chunks);
    weft__free_aligned(ctx, e->scratch);
    weft__free(ctx, e);
}

/* ---- running ---- */

unsigned weft__cpu_standard_float_state(void) {
#if defined(__SSE2__)
    unsigned state = _mm_getcsr();
    if (state & 0xe040u) _mm_setcsr(state & ~0xe040u); /* flush to zero, rounding, denormals are zero */
    return state;
#else
    return 0;
#endif
}

void weft__cpu_restore_float_state(unsigned state) {
#if defined(__SSE2__)
    if (state & 0xe040u) _mm_setcsr(state);
#else
    (void)state;
#endif
}

double weft__cpu_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void bind(weft_executable *e, weft_buffer *const *buffers) {
    bool same = true;
    for (int i = 0; i < e->n_slots; i++) {
        void *host = buffers[i] ? buffers[i]->host : NULL;
        same = same && e->bound[i] == host && host;
        e->bound[i] = host;
    }
    if (same) return;
    for (int i = 0; i < e->n_args; i++) {
        char *host = e->bound[e->places[i]->slot];
        e->args[i] = host ? host + e->places[i]->offset : NULL;
    }
}

static void run_alone(weft_cpu_device *d, weft_executable *e, int times) {
    for (; times > 0; times--)
        for (int i = 0; i < e->count; i++) {
            const weft_cpu_item *x = &e->items[i];
            if (x->sink && d->fault.set) continue;
            if (d->timing) e->timings[i].start_ns = weft__cpu_now_ns();
            x->work.run(x->work.plan, x->args, 0, x->work.tasks, e->scratch, &d->fault);
            if (d->timing) e->timings[i].end_ns = weft__cpu_now_ns();
        }
}

weft_status weft__cpu_run(weft_device *device, weft_executable *e, weft_buffer *const *buffers, int times) {
    weft_cpu_device *d = (weft_cpu_device *)device;
    unsigned state = weft__cpu_standard_float_state();
    bind(e, buffers);
    if (e->threads > 1)
        weft__cpu_chunks_run(d, e, times);
    else
        run_alone(d, e, times);
    weft__cpu_restore_float_state(state);
    return WEFT_OK;
}
