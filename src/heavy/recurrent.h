/* A recurrent layer over all time steps, as ops/recurrent.c defines it. Must not know: devices. Read next:
 * heavy.h. */
#ifndef WEFT_HEAVY_RECURRENT_H
#define WEFT_HEAVY_RECURRENT_H

#include <weft/ops.h>

/* All tensors are row-major. They have the dtype `dtype`, except the cells, which are f64 or f32. Operands in
 * [brackets] exist only for the kind of layer that is named.
 *
 * Forward:   x, w, bias of x, bias of the recurrent matmul, h, [lstm: c], [masked: lengths, i32],
 *            states, [gated: gates], [lstm: cells]
 * Backward:  w, states, [gated: gates], [lstm: cells, c], the gradient of states, [masked: lengths],
 *            dx, dh, [lstm: dc] or [gru: dz]
 *
 * Past the end of a sequence, gates are 0 and cells keep their last value. Second derivatives multiply them
 * by 0, which must not meet NaN. */
typedef struct weft_heavy_recurrent {
    uint8_t dtype; /* f32, f64, f16, bf16 */
    weft_recurrent_kind kind;
    bool reverse, masked, backward;
    int64_t t, batch, width; /* width: of h */
} weft_heavy_recurrent;

static inline bool weft__recurrent_gated(const weft_heavy_recurrent *r) {
    return r->kind == WEFT_LSTM || r->kind == WEFT_GRU;
}

#endif
