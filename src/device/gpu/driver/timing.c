/* Times library calls by events on the main stream.
 * Must not know: what the calls compute. Read next: timing.h. */
#include "device/gpu/driver/timing.h"

#define FAR 1.25F /* times the best time: such a call will not become the best */
enum { RUNS = 3, RANDOM_BYTES = 4 << 20 };

bool weft__timing_fits(const weft__cuda *d, size_t bytes) {
    size_t unused = 0, total = 0;
    return d->cu->cuMemGetInfo_v2(&unused, &total) == 0 && bytes <= unused / 2;
}

/* Up to RANDOM_BYTES the bits are random, since the speed of a card depends on the values. */
CUresult weft__timing_fill(weft__cuda *d, CUdeviceptr to, size_t bytes, size_t size, bool f16) {
    const size_t some = bytes < RANDOM_BYTES ? bytes : RANDOM_BYTES;
    unsigned char *values = weft__alloc(d->gpu.base.ctx, some + 1);
    uint32_t state = 12345;
    if (!values) return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < some; i++) {
        state = state * 1664525u + 1013904223u;
        values[i] = (unsigned char)(state >> 24);
        if (i % size == size - 1) values[i] = f16 ? 0x38 : 0x3f;
        if (size == 8 && i % size == 6) values[i] |= 0xe0;
    }
    CUresult error = d->cu->cuMemsetD8Async(to, 0x3c, bytes, d->stream);
    if (!error) error = weft__cuda_put(d, to, values, some);
    weft__free(d->gpu.base.ctx, values);
    return error;
}

float weft__timing_of(weft__cuda *d, weft__timing_run run, const void *call, const CUevent events[2],
                      float best) {
    float least = -1;
    if (!run(d, call)) return -1;
    for (int i = 0; i < RUNS && (i == 0 || best <= 0 || least < FAR * best); i++) {
        float ms;
        CUresult error = d->cu->cuEventRecord(events[0], d->stream);
        if (error || !run(d, call)) return -1;
        error = d->cu->cuEventRecord(events[1], d->stream);
        if (!error) error = d->cu->cuEventSynchronize(events[1]);
        if (!error) error = d->cu->cuEventElapsedTime(&ms, events[0], events[1]);
        if (error) return -1;
        if (least < 0 || ms < least) least = ms;
    }
    return least;
}
