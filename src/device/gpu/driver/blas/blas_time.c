/* Finds the fastest of the algorithms that cuBLASLt, or hipBLASLt, proposes, on memory of its own.
 * Must not know: where the choice is stored. Read next: blas_plan.c. */
#include "device/gpu/driver/blas/blas_plan.h"
#include "device/gpu/driver/timing.h"

enum { RUNS = 3 };

static size_t blas_time_size(int32_t type) { return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2; }

static size_t blas_time_bytes_of(const weft__blas_problem *p, const weft__blas_matrix *m) {
    return (size_t)((m->columns - 1) * m->ld + m->rows + (p->batch - 1) * m->step) * blas_time_size(m->type);
}

enum { A, B, D, C, BIAS, AUX, WORKSPACE, BUFFERS };

typedef struct attempt {
    const weft__blas_plan *plan;
    const weft__blas_algorithm *algorithm;
    const weft__blas_places *at;
} attempt;

static bool blas_time_run(weft__cuda *d, const void *call) {
    const attempt *a = call;
    return weft__blas_multiply(&d->blas, a->plan, a->algorithm, a->at, d->stream) == 0;
}

/* Returns the milliseconds of writing D once. */
static float time_sweep(weft__cuda *d, CUdeviceptr to, size_t bytes, const CUevent events[2]) {
    float ms = 0;
    CUresult error = d->cu->cuMemsetD8Async(to, 0x3c, bytes, d->stream);
    if (!error) error = d->cu->cuEventRecord(events[0], d->stream);
    for (int run = 0; run < RUNS && !error; run++) error = d->cu->cuMemsetD8Async(to, 0x3c, bytes, d->stream);
    if (!error) error = d->cu->cuEventRecord(events[1], d->stream);
    if (!error) error = d->cu->cuEventSynchronize(events[1]);
    if (!error) error = d->cu->cuEventElapsedTime(&ms, events[0], events[1]);
    return error ? 0 : ms / (float)RUNS;
}

static weft__blas_timing time_all(weft__cuda *d, const weft__blas_plan *plan,
                                  const weft__blas_algorithm *algorithms, int count,
                                  const weft__blas_places *at, size_t d_bytes) {
    weft__blas_timing timing = {.gain = 1, .proposed = count};
    CUevent events[2] = {NULL, NULL};
    float first = -1, best = -1;
    CUresult error = d->cu->cuEventCreate(&events[0], CU_EVENT_DEFAULT);
    if (!error) error = d->cu->cuEventCreate(&events[1], CU_EVENT_DEFAULT);
    for (int i = 0; i < count && !error && !weft__interrupted(d->gpu.base.ctx); i++) {
        const attempt one = {plan, &algorithms[i], at};
        const float ms = weft__timing_of(d, blas_time_run, &one, events, best);
        if (ms <= 0) continue;
        if (i == 0) first = best = ms;
        if (best > 0 && (ms >= best || ms >= WEFT_TIMING_BETTER * first)) continue;
        best = ms;
        timing.chosen = i;
    }
    if (first > 0 && best > 0) timing.gain = (double)(first / best);
    if (best > 0) timing.ms = best, timing.sweep = time_sweep(d, at->d, d_bytes, events);
    for (int i = 0; i < 2; i++)
        if (events[i]) d->cu->cuEventDestroy_v2(events[i]);
    return timing;
}

static CUdeviceptr blas_time_place(const weft_gpu_buffer *memory) { return memory ? memory->address : 0; }

weft__blas_timing weft__blas_fastest(weft__cuda *d, const weft__blas_plan *plan,
                                     const weft__blas_algorithm *algorithms, int count) {
    const weft__blas_problem *p = &plan->key.problem;
    size_t bytes[BUFFERS] = {blas_time_bytes_of(p, &p->a), blas_time_bytes_of(p, &p->b),
                             blas_time_bytes_of(p, &p->d)};
    weft_gpu_buffer *memory[BUFFERS] = {NULL};
    const weft_error error = d->gpu.base.ctx->error; /* errors of timing must not reach the caller */
    weft__blas_timing timing = {.gain = 1, .proposed = count};
    bytes[C] = p->based ? bytes[D] : 0;
    bytes[BIAS] = weft__blas_has_bias(p) ? (size_t)(p->d.rows + p->d.columns) * 8 : 0;
    bytes[AUX] = weft__blas_has_aux(p) ? bytes[D] : 0;
    for (int i = 0; i < count; i++)
        if (algorithms[i].workspace > bytes[WORKSPACE]) bytes[WORKSPACE] = (size_t)algorithms[i].workspace;
    size_t all = 0;
    for (int i = 0; i < BUFFERS; i++) all += bytes[i];
    bool made = weft__timing_fits(d, all);
    for (int i = 0; i < BUFFERS && made; i++)
        made = !bytes[i] ||
               weft__gpu_memory_new(&d->gpu, bytes[i], "memory for timing matmuls", &memory[i]) == WEFT_OK;
    for (int i = 0; i < BUFFERS && made; i++) {
        const int32_t type = i == A || i == B ? p->a.type : p->d.type;
        made = !bytes[i] || weft__timing_fill(d, memory[i]->address, bytes[i], blas_time_size(type),
                                              type == CUDA_R_16F) == 0;
    }
    const weft__blas_places at = {blas_time_place(memory[A]),        blas_time_place(memory[B]),
                                  blas_time_place(memory[D]),        blas_time_place(memory[C]),
                                  blas_time_place(memory[BIAS]),     blas_time_place(memory[AUX]),
                                  blas_time_place(memory[WORKSPACE])};
    if (made) timing = time_all(d, plan, algorithms, count, &at, bytes[D]);
    for (int i = 0; i < BUFFERS; i++) weft__gpu_memory_free(&d->gpu, memory[i]);
    d->gpu.base.ctx->error = error;
    return timing;
}
