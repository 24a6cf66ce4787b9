/* Builds the nodes of attention. Heads are stored as (B, T, H, D) and shown as (B, H, T, D), so they are
 * never copied. Must not know: how a device computes attention. Read next: heavy/attention.h. */
#include "compiler/passes/heavy/heavy.h"

static void head_strides(const int64_t *stride, int64_t *out) {
    for (int i = 0; i < 3; i++) out[i] = stride[i];
}

/* Grouped-query attention: keys or values have the shape (B, KV heads, query heads per KV head, S, D). Are
 * they in memory once for all query heads of a KV head? */
static bool is_shared(int rank, const int64_t *shape, const int64_t *stride) {
    return stride[2] == 0 && weft__ir_unit_last(rank, shape, stride);
}

/* Takes keys and values of grouped-query attention in place. If one of them cannot be addressed in place,
 * copies both, with one KV head for each query head. */
static weft_status take_shared(weft_ir *ir, const weft_tensor *t, const ir_edge *in, weft_heavy_attention *at,
                               heavy_operand *op) {
    bool lie = true;
    for (int i = 1; i < 3; i++)
        lie = lie && weft__ir_addressable(ir, in[i], 5, t->in[i]->shape, &op[i]) &&
              is_shared(5, t->in[i]->shape, op[i].stride);
    for (int i = 1; i < 3; i++) {
        const int64_t *s = op[i].stride;
        int64_t *to = i == 1 ? at->k : at->v;
        WEFT_TRY(weft__ir_take_operand(ir, in[i], 5, t->in[i]->shape, lie ? is_shared : weft__ir_contiguous,
                                       &op[i]));
        to[0] = s[0];
        to[1] = lie ? s[1] : s[2];
        to[2] = s[3];
    }
    if (!lie) at->query_group = 1;
    return WEFT_OK;
}

/* Takes all operands. The channels of a head must be contiguous. */
static weft_status take_operands(weft_ir *ir, const weft_tensor *t, const ir_edge *in,
                                 weft_heavy_attention *at, heavy_operand *op) {
    const int out_at = weft__attention_operand(at, WEFT_ATTENTION_OUT);
    const int dout_at = weft__attention_operand(at, WEFT_ATTENTION_DOUT);
    const int mask_at = at->masked ? weft__attention_operand(at, WEFT_ATTENTION_MASK) : -1;
    if (t->in[1]->rank == 5) WEFT_TRY(take_shared(ir, t, in, at, op));
    for (int i = 0; i < t->n_in; i++) {
        const bool head = i <= WEFT_ATTENTION_V || i == out_at || i == dout_at, mask = i == mask_at;
        if (t->in[i]->rank < 5)
            WEFT_TRY(weft__ir_take_operand(ir, in[i], t->in[i]->rank, t->in[i]->shape,
                                           head   ? weft__ir_unit_last
                                           : mask ? NULL
                                                  : weft__ir_contiguous,
                                           &op[i]));
    }
    return WEFT_OK;
}

/* Strides of batch, head and position in one part of a tensor that is stored as (B, T, parts, H, D). */
static void stored_strides(const int64_t *shape, int parts, int64_t *out) {
    out[2] = parts * shape[1] * shape[3];
    out[1] = shape[3];
    out[0] = shape[2] * out[2];
}

/* Adds the results index, index + 1, ... of a heavy node: `parts` of them are interleaved in one node. Each
 * has the logical shape (B, H, T, D). With grouped-query attention, gradients of keys and values have the
 * shape (B, KV heads, query heads per KV head, T, D) instead, with a gradient for each query head.
 *
 *     stored (B, T, parts, H, D):   for each position   q heads | k heads | v heads */
static weft_status head_outputs(weft_ir *ir, int heavy, int index, int parts, weft_dtype dtype,
                                const int64_t *shape, int64_t query_group, ir_edge *out) {
    int64_t stored[5] = {shape[0], shape[2], parts, shape[1], shape[3]};
    int n = weft__ir_heavy_out(ir, heavy, index, dtype, 5, stored);
    int64_t *offsets = weft__arena_alloc(&ir->arena, (size_t)parts * sizeof *offsets);
    if (n < 0 || !offsets) return weft__ir_failed(ir);
    ir->nodes[n].offsets = offsets;
    ir->nodes[n].n_results = parts;
    for (int i = 0; i < parts; i++) {
        weft_view view;
        offsets[i] = i * shape[1] * shape[3];
        weft__view_identity(&view, 5, stored);
        weft__view_slice(&view, (int64_t[]){0, 0, i, 0, 0},
                         (int64_t[]){stored[0], stored[1], 1, stored[3], stored[4]},
                         (int64_t[]){1, 1, 1, 1, 1});
        weft__view_reshape(&view, 4, (int64_t[]){stored[0], stored[1], stored[3], stored[4]});
        weft__view_permute(&view, (int[]){0, 2, 1, 3});
        if (query_group > 1 && index + i > 0)
            weft__view_reshape(
                &view, 5, (int64_t[]){shape[0], shape[1] / query_group, query_group, shape[2], shape[3]});
        out[i] = (ir_edge){n, weft__ir_view(ir, n, &view)};
        if (out[i].view == -2) return weft__ir_failed(ir);
    }
    return WEFT_OK;
}

/* Adds the results of the forward pass: the output, and lse, the logarithm of the sum of exponentials. With a
 * mask, lse has two parts. */
static weft_status attended(weft_ir *ir, int heavy, const weft_heavy_attention *at, const weft_tensor *q,
                            ir_edge *out) {
    const weft_dtype dtype = (weft_dtype)q->dtype;
    const int64_t lse[4] = {2, at->batch, at->heads, at->t_q};
    WEFT_TRY(head_outputs(ir, heavy, 0, 1, dtype, q->shape, 1, &out[0]));
    const int n = weft__ir_heavy_out(ir, heavy, 1, dtype == WEFT_F64 ? WEFT_F64 : WEFT_F32,
                                     at->masked ? 4 : 3, at->masked ? lse : lse + 1);
    out[1] = (ir_edge){n, -1};
    return n < 0 ? weft__ir_failed(ir) : WEFT_OK;
}

weft_status weft__build_attention(weft_ir *ir, const weft_tensor *t, const ir_edge *in, ir_edge *out) {
    const weft_composite *definition = weft__composite_of(t);
    const weft_attention_params *params = weft__params_of(t);
    const weft_tensor *q = t->in[0], *k = t->in[1];
    const bool masked =
        definition == &weft__attention_masked || definition->forward == &weft__attention_masked;
    weft_heavy heavy = {.kind = WEFT_HEAVY_ATTENTION};
    weft_heavy_attention *at = &heavy.as.attention;
    *at = (weft_heavy_attention){.dtype = (uint8_t)q->dtype,
                                 .causal = params->causal != 0,
                                 .backward = definition->forward != NULL,
                                 .cached = definition == &weft__attention_cached,
                                 .scale = params->scale,
                                 .dropout = params->dropout,
                                 .batch = q->shape[0],
                                 .heads = q->shape[1],
                                 .t_q = q->shape[2],
                                 .t_k = k->shape[k->rank - 2],
                                 .d = q->shape[3],
                                 .query_group = k->rank == 5 ? k->shape[2] : 1,
                                 .masked = masked,
                                 .mask_dtype = masked ? t->in[4]->dtype : 0};
    /* No device has kernels for windows and soft caps. */
    if (params->window > 0 || params->softcap > 0 || !weft__ir_takes(ir, &heavy)) return WEFT_ERR_UNSUPPORTED;
    /* The gradients of q, k and v are stored in the layout of a packed projection of q, k and v. So together
     * they are the gradient of this projection, without a copy. */
    const int parts = at->t_q == at->t_k ? 3 : 1;
    const int64_t given = at->query_group;
    heavy_operand op[8];
    ir_edge edges[8];
    WEFT_TRY(take_operands(ir, t, in, at, op));
    for (int i = 0; i < t->n_in; i++) edges[i] = op[i].edge;
    head_strides(op[WEFT_ATTENTION_Q].stride, at->q);
    if (k->rank < 5)
        head_strides(op[WEFT_ATTENTION_K].stride, at->k), head_strides(op[WEFT_ATTENTION_V].stride, at->v);
    stored_strides(q->shape, 1, at->out);
    for (int i = 0; masked && i < 4; i++)
        at->mask[i] = op[weft__attention_operand(at, WEFT_ATTENTION_MASK)].stride[i];
    if (at->backward) {
        head_strides(op[weft__attention_operand(at, WEFT_ATTENTION_OUT)].stride, at->out);
        head_strides(op[weft__attention_operand(at, WEFT_ATTENTION_DOUT)].stride, at->dout);
        stored_strides(q->shape, parts, at->dq);
        stored_strides((int64_t[]){at->batch, at->heads, at->t_k, at->d}, parts, at->dk);
        stored_strides((int64_t[]){at->batch, at->heads, at->t_k, at->d}, parts, at->dv);
    }
    int n = weft__ir_heavy_node(ir, t, &heavy, t->n_in, edges);
    if (n < 0) return weft__ir_failed(ir);
    for (int i = 0; at->backward && i < 3; i += parts)
        WEFT_TRY(head_outputs(ir, n, i, parts, (weft_dtype)q->dtype,
                              (int64_t[]){at->batch, at->heads, i == 0 ? at->t_q : at->t_k, at->d}, given,
                              &out[i]));
    return at->backward ? WEFT_OK : attended(ir, n, at, q, out);
}
