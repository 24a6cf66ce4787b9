/* Builds the nodes of recurrent layers. Must not know: how a device computes them. Read next:
 * heavy/recurrent.h. */
#include "compiler/passes/heavy/heavy.h"

/* Lists the inputs of the composite that the device reads, in the device's order. Returns their number. The
 * composite has these inputs:
 *
 * - forward: x, w, b, d, h, lengths; for an LSTM also c.
 * - backward: these, then the outputs (states, gates, cells), then the gradient of the states. */
static int recurrent_inputs(const weft_heavy_recurrent *r, int *which) {
    const bool lstm = r->kind == WEFT_LSTM, gated = weft__recurrent_gated(r);
    const int lengths = 5, c = 6, states = lstm ? 7 : 6, cells = states + 2;
    int n = 0;
    if (!r->backward) {
        while (n < lengths) which[n] = n, n++;
        if (lstm) which[n++] = c;
    } else {
        which[n++] = 1;
        which[n++] = states;
        if (gated) which[n++] = states + 1;
        if (lstm) which[n++] = cells, which[n++] = c;
        which[n++] = states + (lstm ? 3 : gated ? 2 : 1);
    }
    if (r->masked) which[n++] = lengths;
    return n;
}

weft_status weft__build_recurrent(weft_ir *ir, const weft_tensor *t, const ir_edge *in, ir_edge *out) {
    const weft_composite *definition = weft__composite_of(t);
    const weft_recurrent_params *params = weft__params_of(t);
    const weft_tensor *x = t->in[0];
    const weft_heavy heavy = {.kind = WEFT_HEAVY_RECURRENT,
                              .as.recurrent = {.dtype = (uint8_t)x->dtype,
                                               .kind = (weft_recurrent_kind)params->kind,
                                               .reverse = params->reverse != 0,
                                               .masked = params->masked != 0,
                                               .backward = params->back != 0,
                                               .t = x->shape[0],
                                               .batch = x->shape[1],
                                               .width = t->in[1]->shape[1]}};
    if (!weft__ir_takes(ir, &heavy)) return WEFT_ERR_UNSUPPORTED;
    int which[16];
    const int n_in = recurrent_inputs(&heavy.as.recurrent, which);
    ir_edge edges[16];
    for (int i = 0; i < n_in; i++) {
        const weft_tensor *read = t->in[which[i]];
        heavy_operand op;
        WEFT_TRY(weft__ir_take_operand(ir, in[which[i]], read->rank, read->shape, weft__ir_contiguous, &op));
        edges[i] = op.edge;
    }
    int n = weft__ir_heavy_node(ir, t, &heavy, n_in, edges);
    for (int i = 0; i < definition->n_outputs && n >= 0; i++) {
        weft_dtype dtype;
        int rank;
        int64_t shape[WEFT_MAX_RANK];
        definition->shape(params, t->in, i, &dtype, &rank, shape);
        out[i] = (ir_edge){weft__ir_heavy_out(ir, n, i, dtype, rank, shape), -1};
        if (out[i].node < 0) n = -1;
    }
    return n < 0 ? weft__ir_failed(ir) : WEFT_OK;
}
