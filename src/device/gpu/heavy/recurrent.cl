/* One time step of a recurrent layer, without its matmul (ops/recurrent.c defines the layers). BACK 0: forward, 1:
 * backward. A work-item has single elements of the state (batch, width), or 16 of a row with vectors. Offsets say where
 * the rows of the time step are, so all time steps use one kernel source.
 *
 *     KIND     RNN_TANH, RNN_RELU, LSTM or GRU
 *     GATED    LSTM or GRU
 *     FN(f)    f for the type of sums */
#ifdef VECTORS
#define WIDE 16
#define V    S16
W_FN V rnn_get(const W_GLOBAL T *p, int n) {
    if (n >= 16) return LOAD16(p);
    S x[16];
    for (int j = 0; j < 16; j++) x[j] = j < n ? LOAD(p, j) : (S)0;
    return vload16(0, x);
}
W_FN void rnn_put(W_GLOBAL T *p, int n, V v) {
    if (n >= 16) {
        STORE16(p, v);
        return;
    }
    S x[16];
    vstore16(v, 0, x);
    for (int j = 0; j < n; j++) STORE(p, j, x[j]);
}
W_FN V rnn_sum(const W_GLOBAL S *p, int n) {
    if (n >= 16) return vload16(0, p);
    S x[16];
    for (int j = 0; j < 16; j++) x[j] = j < n ? p[j] : (S)0;
    return vload16(0, x);
}
W_FN void rnn_keep(W_GLOBAL S *p, int n, V v) {
    if (n >= 16) {
        vstore16(v, 0, p);
        return;
    }
    S x[16];
    vstore16(v, 0, x);
    for (int j = 0; j < n; j++) p[j] = x[j];
}
#else
#define WIDE 1
#define V    S
#define rnn_get(p, n)     LOAD(p, 0)
#define rnn_put(p, n, v)  STORE(p, 0, v)
#define rnn_sum(p, n)     (*(p))
#define rnn_keep(p, n, v) (*(p) = (v))
#endif
#define GATED      (KIND == LSTM || KIND == GRU)
#define SQUASH(v)  FN(w_sigmoid)(v)
#define TANH(v)    FN(w_tanh)(v)
#define PART(k)    ((k) * of.width)
#define GATE(k)    ((k) * of.batch * of.width)

#include "device/gpu/heavy/recurrent_params.h"

/* Backward: x is dx. z is the result of the matmul of the step before this one in the walk. b and d are not
 * read. */
W_NUMBERS(recurrent) {
    w_i64 x_at, z_at, b_at, d_at, states_at, gates_at, cells_at, first_at, more_at, lengths_at, dc_at, pass_at, dz_at;
    w_step step;
    int command;
};

#if !BACK
W_KERNEL W_ITEMS(ITEMS, 1, 1) void recurrent(const W_GLOBAL T *x, const W_GLOBAL S *z, const W_GLOBAL T *b,
                                             const W_GLOBAL T *d, W_GLOBAL T *states, W_GLOBAL T *gates,
                                             W_GLOBAL S *cells, const W_GLOBAL T *first, const W_GLOBAL T *more,
                                             const W_GLOBAL int *lengths, W_GLOBAL S *dc, W_GLOBAL S *pass,
                                             W_GLOBAL T *dz, W_GLOBAL w_faults *faults,
                                             const W_NUMBERS(recurrent) given) {
    const w_step of = given.step;
    W_RETURN_IF_FAULTED(ITEMS, of.sink)
    const w_i64 across = (of.width + WIDE - 1) / WIDE, count = of.batch * across;
    const w_i64 from = (w_i64)w_group(0) * of.each * ITEMS + w_item(0), to = min(from + (w_i64)of.each * ITEMS, count);
    for (w_i64 k = from; k < to; k += ITEMS) {
        const w_i64 row = k / across, j = k % across * WIDE, at = row * of.width + j;
        const int n = (int)(of.width - j);
        W_GLOBAL T *y = states + given.states_at + at;
        if (of.start == STEP_FIRST) { /* the first states */
            rnn_put(y + of.state, n, rnn_get(more + given.more_at + at, n));
            continue;
        }
        const V last = rnn_get(y + of.last, n);
#if KIND == LSTM
        const V c = of.before < 0 ? rnn_get(first + given.first_at + at, n)
                                  : rnn_sum(cells + given.cells_at + of.before + at, n);
        V next = c;
#endif
        V h = last, v[4] = {(V)(0), (V)(0), (V)(0), (V)(0)};
        if (!of.masked || of.t < lengths[given.lengths_at + row]) {
            const W_GLOBAL T *in = x + given.x_at + of.x_row + row * of.gates * of.width + j;
            const W_GLOBAL S *sum = z + given.z_at + row * of.gates * of.width + j;
            for (int g = 0; g < (!GATED ? 1 : KIND == LSTM ? 4 : 2); g++)
                v[g] = (rnn_get(in + PART(g), n) +
                        (rnn_get(b + given.b_at + PART(g) + j, n) + rnn_get(d + given.d_at + PART(g) + j, n))) +
                       rnn_sum(sum + PART(g), n);
#if KIND == RNN_TANH
            h = TANH(v[0]);
#elif KIND == RNN_RELU
            h = FN(w_sel)(w_bool(v[0] <= 0), (V)(0), v[0]);
#else
            v[0] = SQUASH(v[0]), v[1] = SQUASH(v[1]);
#if KIND == LSTM
            v[2] = TANH(v[2]), v[3] = SQUASH(v[3]);
            next = v[1] * c + v[0] * v[2];
            h = v[3] * TANH(next);
#else
            v[3] = rnn_sum(sum + PART(2), n) + rnn_get(d + given.d_at + PART(2) + j, n);
            v[2] = TANH(rnn_get(in + PART(2), n) + rnn_get(b + given.b_at + PART(2) + j, n) + v[0] * v[3]);
            h = v[2] + v[1] * (last - v[2]);
#endif
#endif
        }
#if GATED
        W_GLOBAL T *saved = gates + given.gates_at + of.gate + at;
        for (int g = 0; g < 4; g++) rnn_put(saved + GATE(g), n, v[g]);
#endif
        rnn_put(y + of.state, n, h);
#if KIND == LSTM
        rnn_keep(cells + given.cells_at + of.cell + at, n, next);
        if (of.end >= 0) rnn_put(y + of.end, n, next);
#endif
    }
}
#else
/* STEP_FIRST reads neither z nor pass. STEP_AFTER writes dh to dz, and dc to x. */
W_KERNEL W_ITEMS(ITEMS, 1, 1) void recurrent(W_GLOBAL T *x, const W_GLOBAL S *z, const W_GLOBAL T *b,
                                             const W_GLOBAL T *d, const W_GLOBAL T *states, const W_GLOBAL T *gates,
                                             const W_GLOBAL S *cells, const W_GLOBAL T *first, const W_GLOBAL T *more,
                                             const W_GLOBAL int *lengths, W_GLOBAL S *dc, W_GLOBAL S *pass,
                                             W_GLOBAL T *dz, W_GLOBAL w_faults *faults,
                                             const W_NUMBERS(recurrent) given) {
    const w_step of = given.step;
    W_RETURN_IF_FAULTED(ITEMS, of.sink)
    const w_i64 across = (of.width + WIDE - 1) / WIDE, count = of.batch * across;
    const w_i64 from = (w_i64)w_group(0) * of.each * ITEMS + w_item(0), to = min(from + (w_i64)of.each * ITEMS, count);
    for (w_i64 k = from; k < to; k += ITEMS) {
        const w_i64 row = k / across, j = k % across * WIDE, at = row * of.width + j;
        const int n = (int)(of.width - j);
        V dh = rnn_get(more + given.more_at + of.state + at, n);
        if (of.start != STEP_FIRST) {
            dh += rnn_sum(z + given.z_at + at, n);
            if (KIND == GRU || of.masked) dh += rnn_sum(pass + given.pass_at + at, n);
        }
        if (of.start == STEP_AFTER) {
            rnn_put(dz + given.dz_at + at, n, dh);
#if KIND == LSTM
            rnn_put(x + given.x_at + at, n, rnn_sum(dc + given.dc_at + at, n));
#endif
            continue;
        }
        W_GLOBAL T *out = x + given.x_at + of.x_row + row * of.gates * of.width + j;
        V v[4], passed = (V)(0);
        for (int g = 0; g < 4; g++) v[g] = (V)(0);
#if KIND == LSTM
        V after = of.end >= 0 ? rnn_get(more + given.more_at + of.end + at, n) : rnn_sum(dc + given.dc_at + at, n);
#endif
        if (!of.masked || of.t < lengths[given.lengths_at + row]) {
#if !GATED
            const V h = rnn_get(states + given.states_at + of.state + at, n);
            v[0] = KIND == RNN_TANH ? dh * ((S)1 - h * h) : RELU_BACK(h, dh);
#else
            const W_GLOBAL T *saved = gates + given.gates_at + of.gate + at;
            const V g0 = rnn_get(saved, n), g1 = rnn_get(saved + GATE(1), n), g2 = rnn_get(saved + GATE(2), n),
                    g3 = rnn_get(saved + GATE(3), n);
#if KIND == LSTM
            const V c = of.before < 0 ? rnn_get(first + given.first_at + at, n)
                                  : rnn_sum(cells + given.cells_at + of.before + at, n);
            const V y = TANH(rnn_sum(cells + given.cells_at + of.cell + at, n));
            after += dh * g3 * ((S)1 - y * y);
            v[0] = after * g2 * (g0 * ((S)1 - g0));
            v[1] = after * c * (g1 * ((S)1 - g1));
            v[2] = after * g0 * ((S)1 - g2 * g2);
            v[3] = dh * y * (g3 * ((S)1 - g3));
            after *= g1;
#else
            const V h = rnn_get(states + given.states_at + of.last + at, n);
            v[2] = dh * ((S)1 - g1) * ((S)1 - g2 * g2);
            v[1] = dh * (h - g2) * (g1 * ((S)1 - g1));
            v[0] = v[2] * g3 * (g0 * ((S)1 - g0));
            v[3] = v[2] * g0;
            passed = dh * g1;
#endif
#endif
        } else {
            passed = dh;
        }
        for (int g = 0; g < (!GATED ? 1 : KIND == LSTM ? 4 : 3); g++) rnn_put(out + PART(g), n, v[g]);
#if KIND == GRU
        W_GLOBAL T *other = dz + given.dz_at + of.x_row + row * of.gates * of.width + j;
        rnn_put(other, n, v[0]), rnn_put(other + PART(1), n, v[1]), rnn_put(other + PART(2), n, v[3]);
#endif
#if KIND == LSTM
        rnn_keep(dc + given.dc_at + at, n, after);
#endif
        if (KIND == GRU || of.masked) rnn_keep(pass + given.pass_at + at, n, passed);
    }
}
#endif
