/* Draws in parallel: pieces of fixed size, which threads share. Read next: draw_tile.c. */
#include "device/cpu/draw.h"
#include "device/cpu/cpu.h"

#define PIECE 65536 /* elements */

static weft_draw_fn *draw_fn(void) {
#if defined(__x86_64__)
    if (weft__cpu_isa() == WEFT_ISA_AVX512) return weft__draw_avx512;
    if (weft__cpu_isa() == WEFT_ISA_AVX2) return weft__draw_avx2;
#endif
    return weft__draw_baseline;
}

void weft__draw(weft_draw_kind kind, uint64_t seed, uint64_t stream, double scale, int64_t n, float *out,
                int threads) {
    uint32_t key[2];
    weft__philox_key(seed, stream, key);
    weft_draw_fn *draw = draw_fn();
    const int64_t pieces = (n + PIECE - 1) / PIECE;
    if (threads < 1) threads = 1;
#pragma omp parallel for num_threads(threads) schedule(static) if (pieces > 1)
    for (int64_t i = 0; i < pieces; i++) {
        int64_t first = i * PIECE, count = n - first < PIECE ? n - first : PIECE;
        draw(kind, key, scale, first, count, out + first);
    }
}
