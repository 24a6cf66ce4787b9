/* Builds the nodes of convolutions. All three tensors are stored with their channels last. Must not know: how
 * a device computes a convolution. Read next: heavy/conv.h. */
#include "compiler/passes/heavy/heavy.h"

/* Writes the edge of an operand of shape (A, B, H, W) that is stored as (A, H, W, B). Copies it if needed. */
static weft_status channels_last(weft_ir *ir, ir_edge edge, const int64_t *shape, ir_edge *out) {
    const int64_t stored[4] = {shape[0], shape[2], shape[3], shape[1]};
    weft_view view;
    heavy_operand op;
    if (weft__ir_edge_view(ir, edge, 4, shape, &view) && weft__view_permute(&view, (int[]){0, 2, 3, 1})) {
        edge.view = weft__ir_view(ir, edge.node, &view);
    } else { /* the list of maps is full */
        const int copy = weft__ir_copy(ir, edge, 4, shape);
        if (copy < 0) return weft__ir_failed(ir);
        weft__view_identity(&view, 4, shape);
        weft__view_permute(&view, (int[]){0, 2, 3, 1});
        edge = (ir_edge){copy, weft__ir_view(ir, copy, &view)};
    }
    if (edge.view == -2) return weft__ir_failed(ir);
    WEFT_TRY(weft__ir_take_operand(ir, edge, 4, stored, weft__ir_contiguous, &op));
    *out = op.edge;
    return WEFT_OK;
}

static void copy_pair(const int64_t *from, int64_t *to) { to[0] = from[0], to[1] = from[1]; }

weft_status weft__build_conv(weft_ir *ir, const weft_tensor *t, const ir_edge *in, ir_edge *out) {
    const weft_conv_params *params = weft__params_of(t);
    weft_heavy heavy = {.kind = WEFT_HEAVY_CONV};
    weft_heavy_conv *c = &heavy.as.conv;
    *c = (weft_heavy_conv){.dtype = t->in[0]->dtype,
                           .pass = (uint8_t)params->pass,
                           .n = params->n,
                           .groups = params->groups,
                           .in = params->in,
                           .out = params->out};
    copy_pair(params->x, c->x), copy_pair(params->size, c->size), copy_pair(params->y, c->y);
    copy_pair(params->stride, c->stride), copy_pair(params->padding, c->padding);
    copy_pair(params->dilation, c->dilation);
    if (!weft__ir_takes(ir, &heavy)) return WEFT_ERR_UNSUPPORTED;
    ir_edge edges[2];
    for (int i = 0; i < 2; i++) WEFT_TRY(channels_last(ir, in[i], t->in[i]->shape, &edges[i]));
    const int n = weft__ir_heavy_node(ir, t, &heavy, 2, edges);
    if (n < 0) return weft__ir_failed(ir);
    const int64_t wide = c->groups * c->out, deep = c->groups * c->in;
    const int64_t stored[3][4] = {[WEFT_CONV_FORWARD] = {c->n, c->y[0], c->y[1], wide},
                                  [WEFT_CONV_INPUT] = {c->n, c->x[0], c->x[1], deep},
                                  [WEFT_CONV_WEIGHT] = {wide, c->size[0], c->size[1], c->in}};
    const int result = weft__ir_heavy_out(ir, n, 0, (weft_dtype)c->dtype, 4, stored[c->pass]);
    if (result < 0) return weft__ir_failed(ir);
    *out = weft__ir_shown(ir, result, 4, stored[c->pass], (int[]){0, 2, 3, 1});
    return out->view == -2 ? weft__ir_failed(ir) : WEFT_OK;
}
