/* One time step of a recurrent layer, without its matmul (ops/recurrent.c defines the layers). BACK 0: forward, 1:
 * backward. A work-item has single elements of the state (batch, width). Offsets say where the rows of the time step
 * are, so all time steps use one kernel source.
 *
 *     KIND     RNN_TANH, RNN_RELU, LSTM or GRU
 *     GATED    LSTM or GRU
 *     FN(f)    f for the type of sums */
#define GET(p)     LOAD(p, 0)
#define SET(p, v)  STORE(p, 0, v)
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
    FOR_MINE(k, of.batch * of.width) {
        const w_i64 row = k / of.width, j = k % of.width;
        W_GLOBAL T *y = states + given.states_at + k;
        if (of.start == STEP_FIRST) { /* the first states */
            SET(y + of.state, GET(more + given.more_at + k));
            continue;
        }
        const S last = GET(y + of.last);
#if KIND == LSTM
        const S c = of.before < 0 ? GET(first + given.first_at + k)
                                  : cells[given.cells_at + of.before + k];
        S next = c;
#endif
        S h = last, v[4] = {(S)0, (S)0, (S)0, (S)0};
        if (!of.masked || of.t < lengths[given.lengths_at + row]) {
            const W_GLOBAL T *in = x + given.x_at + of.x_row + row * of.gates * of.width + j;
            const W_GLOBAL S *sum = z + given.z_at + row * of.gates * of.width + j;
            for (int g = 0; g < (!GATED ? 1 : KIND == LSTM ? 4 : 2); g++)
                v[g] = (GET(in + PART(g)) +
                        (GET(b + given.b_at + PART(g) + j) + GET(d + given.d_at + PART(g) + j))) +
                       sum[PART(g)];
#if KIND == RNN_TANH
            h = TANH(v[0]);
#elif KIND == RNN_RELU
            h = FN(w_sel)(w_bool(v[0] <= 0), (S)0, v[0]);
#else
            v[0] = SQUASH(v[0]), v[1] = SQUASH(v[1]);
#if KIND == LSTM
            v[2] = TANH(v[2]), v[3] = SQUASH(v[3]);
            next = v[1] * c + v[0] * v[2];
            h = v[3] * TANH(next);
#else
            v[3] = sum[PART(2)] + GET(d + given.d_at + PART(2) + j);
            v[2] = TANH(GET(in + PART(2)) + GET(b + given.b_at + PART(2) + j) + v[0] * v[3]);
            h = v[2] + v[1] * (last - v[2]);
#endif
#endif
        }
#if GATED
        W_GLOBAL T *saved = gates + given.gates_at + of.gate + k;
        for (int g = 0; g < 4; g++) SET(saved + GATE(g), v[g]);
#endif
        SET(y + of.state, h);
#if KIND == LSTM
        cells[given.cells_at + of.cell + k] = next;
        if (of.end >= 0) SET(y + of.end, next);
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
    FOR_MINE(k, of.batch * of.width) {
        const w_i64 row = k / of.width, j = k % of.width;
        S dh = GET(more + given.more_at + of.state + k);
        if (of.start != STEP_FIRST) {
            dh += z[given.z_at + k];
            if (KIND == GRU || of.masked) dh += pass[given.pass_at + k];
        }
        if (of.start == STEP_AFTER) {
            SET(dz + given.dz_at + k, dh);
#if KIND == LSTM
            SET(x + given.x_at + k, dc[given.dc_at + k]);
#endif
            continue;
        }
        W_GLOBAL T *out = x + given.x_at + of.x_row + row * of.gates * of.width + j;
        S v[4], passed = (S)0;
        for (int g = 0; g < 4; g++) v[g] = (S)0;
#if KIND == LSTM
        S after = of.end >= 0 ? GET(more + given.more_at + of.end + k) : dc[given.dc_at + k];
#endif
        if (!of.masked || of.t < lengths[given.lengths_at + row]) {
#if !GATED
            const S h = GET(states + given.states_at + of.state + k);
            v[0] = KIND == RNN_TANH ? dh * ((S)1 - h * h) : RELU_BACK(h, dh);
#else
            const W_GLOBAL T *saved = gates + given.gates_at + of.gate + k;
            const S g0 = GET(saved), g1 = GET(saved + GATE(1)), g2 = GET(saved + GATE(2)),
                    g3 = GET(saved + GATE(3));
#if KIND == LSTM
            const S c = of.before < 0 ? GET(first + given.first_at + k)
                                  : cells[given.cells_at + of.before + k];
            const S y = TANH(cells[given.cells_at + of.cell + k]);
            after += dh * g3 * ((S)1 - y * y);
            v[0] = after * g2 * (g0 * ((S)1 - g0));
            v[1] = after * c * (g1 * ((S)1 - g1));
            v[2] = after * g0 * ((S)1 - g2 * g2);
            v[3] = dh * y * (g3 * ((S)1 - g3));
            after *= g1;
#else
            const S h = GET(states + given.states_at + of.last + k);
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
        for (int g = 0; g < (!GATED ? 1 : KIND == LSTM ? 4 : 3); g++) SET(out + PART(g), v[g]);
#if KIND == GRU
        W_GLOBAL T *other = dz + given.dz_at + of.x_row + row * of.gates * of.width + j;
        SET(other, v[0]), SET(other + PART(1), v[1]), SET(other + PART(2), v[3]);
#endif
#if KIND == LSTM
        dc[given.dc_at + k] = after;
#endif
        if (KIND == GRU || of.masked) pass[given.pass_at + k] = passed;
    }
}
#endif
