/* Heavy tensors -> HEAVY nodes. Operands must be stored and addressed by one affine map with a unit stride;
 * what is not gets a copy node, which the plan shows. Attention writes (B, T, H, D) and reads any strides, so
 * that heads are never copied. */
#include <string.h>
#include "compiler/passes/ir.h"
#include "ops/ops.h"

/* An operand that a device can address, over an index space of that shape. */
typedef struct operand {
    ir_edge edge;
    int64_t stride[WEFT_VIEW_RANK];
} operand;

/* The strides of a map over the shape; false where a device cannot address it. */
static bool strides_of(const weft_map *map, const int64_t *shape, int64_t *stride) {
    for (int i = 0; i < map->rank; i++) {
        stride[i] = shape[i] == 1 ? 0 : map->stride[i];
        if (stride[i] < 0) return false;
    }
    return !map->guarded;
}

static bool addressable(const weft_ir *ir, ir_edge edge, int rank, const int64_t *shape, operand *out) {
    weft_view view;
    if (ir_is_source(&ir->nodes[edge.node]) || !weft__ir_edge_view(ir, edge, rank, shape, &view))
        return false;
    out->edge = edge;
    return view.count == 1 && strides_of(&view.map[0], shape, out->stride);
}

static void store(weft_ir *ir, int n) {
    if (ir->nodes[n].kind != IR_LEAF) ir->nodes[n].stored = true;
}

typedef bool accepts(int rank, const int64_t *shape, const int64_t *stride);

/* An operand that is a transposition of a reshaped value: copies the reshaped value, which other readers can
 * share, and reads the copy by transposed strides. False for any other operand. */
static bool copy_within(weft_ir *ir, ir_edge edge, int rank, const int64_t *shape, accepts *direct,
                        operand *out) {
    weft_view outer, inner = {.count = 1};
    if (!weft__ir_edge_view(ir, edge, rank, shape, &outer) || outer.count != 2) return false;
    inner.map[0] = outer.map[1];
    outer.count = 1;
    if (!direct || inner.map[0].rank > WEFT_MAX_RANK || !strides_of(&outer.map[0], shape, out->stride) ||
        !direct(rank, shape, out->stride))
        return false;
    edge.view = weft__ir_view(ir, edge.node, &inner);
    if (edge.view == -2) return false;
    const int copy = weft__ir_unify(ir, weft__ir_copy(ir, edge, inner.map[0].rank, inner.map[0].extent));
    out->edge = (ir_edge){copy, copy < 0 ? -2 : weft__ir_view(ir, copy, &outer)};
    return out->edge.view != -2;
}

/* The operand itself, or a row-major copy of it where `direct` does not accept its strides. */
static weft_status take_operand(weft_ir *ir, ir_edge edge, int rank, const int64_t *shape, accepts *direct,
                                operand *out) {
    const bool fits =
        addressable(ir, edge, rank, shape, out) && (!direct || direct(rank, shape, out->stride));
    if (!fits && !copy_within(ir, edge, rank, shape, direct, out)) {
        const int copy =
            weft__ir_unify(ir, weft__ir_copy(ir, edge, rank, shape)); /* one for all its readers */
        if (copy < 0) return weft__ir_failed(ir);
        addressable(ir, (ir_edge){copy, -1}, rank, shape, out);
    }
    store(ir, out->edge.node);
    return WEFT_OK;
}

/* Gives extents of 1 in the last two dimensions the stride that a matrix library expects. */
static void matrix_strides(const int64_t *shape, int64_t *stride) {
    if (shape[1] == 1 && shape[0] == 1) {
        stride[0] = stride[1] = 1;
    } else if (shape[1] == 1) { /* a column: unit along it, or a row-major matrix one wide */
        stride[1] = stride[0] == 1 ? shape[0] : 1;
    } else if (shape[0] == 1) {
        stride[0] = stride[1] == 1 ? shape[1] : 1;
    }
}

static bool is_matrix(int rank, const int64_t *shape, const int64_t *stride) {
    int64_t s[2] = {stride[rank - 2], stride[rank - 1]};
    matrix_strides(&shape[rank - 2], s);
    if (s[1] == 1) return s[0] >= shape[rank - 1];
    return s[0] == 1 && s[1] >= shape[rank - 2];
}

static bool contiguous(int rank, const int64_t *shape, const int64_t *stride) {
    int64_t expect = 1;
    for (int i = rank - 1; i >= 0; i--) {
        if (shape[i] != 1 && stride[i] != expect) return false;
        expect *= shape[i];
    }
    return true;
}

static bool unit_last(int rank, const int64_t *shape, const int64_t *stride) {
    return shape[rank - 1] == 1 || stride[rank - 1] == 1;
}

/* ---- HEAVY nodes ---- */

static int heavy_node(weft_ir *ir, const weft_tensor *t, const weft_heavy *heavy, int n_in,
                      const ir_edge *in) {
    int n = weft__ir_node(ir, IR_HEAVY, (weft_dtype)t->dtype, 0, NULL, n_in, in);
    if (n < 0) return n;
    weft_heavy *copy = weft__arena_alloc(&ir->arena, sizeof *copy);
    if (!copy) return -1;
    *copy = *heavy;
    copy->path = t->path;
    ir->nodes[n].heavy = copy;
    ir->nodes[n].path = t->path;
    ir->nodes[n].tensor = t;
    ir->nodes[n].op = t->op;
    ir->nodes[n].again = t->again;
    ir->nodes[n].chunk = t->together == WEFT_SEGMENT_CHUNK ? t->segment : 0;
    ir->nodes[n].serial = t->serial;
    return n;
}

static int heavy_out(weft_ir *ir, int heavy, int index, weft_dtype dtype, int rank, const int64_t *shape) {
    int n = weft__ir_node(ir, IR_HEAVY_OUT, dtype, rank, shape, 1, &(ir_edge){heavy, -1});
    if (n < 0) return n;
    ir->nodes[n].imm_i = index;
    ir->nodes[n].path = ir->nodes[heavy].path;
    ir->nodes[n].serial = ir->nodes[heavy].serial;
    ir->nodes[n].tensor = ir->nodes[heavy].tensor;
    return n;
}

static bool takes(const weft_ir *ir, const weft_heavy *heavy) {
    return ir->device->ops->takes(ir->device, heavy);
}

static weft_status declined(const weft_ir *ir, const char *op) {
    return weft__fail(ir->ctx, WEFT_ERR_UNSUPPORTED, "%s: device %s does not run it", op,
                      ir->device->ops->name);
}

/* Merges batch dimensions that both operands step through evenly; false when more than the descriptor holds
 * remain. */
static bool batch_of(weft_heavy_matmul *mm, int n, const int64_t *extent, const int64_t *a,
                     const int64_t *b) {
    mm->batch_rank = 0;
    for (int i = 0; i < n; i++) {
        int last = mm->batch_rank - 1;
        if (extent[i] == 1) continue;
        if (last >= 0 && mm->a_batch[last] == a[i] * extent[i] && mm->b_batch[last] == b[i] * extent[i]) {
            mm->batch[last] *= extent[i];
            mm->a_batch[last] = a[i];
            mm->b_batch[last] = b[i];
            continue;
        }
        if (mm->batch_rank == WEFT_BATCH_DIMS) return false;
        mm->batch[mm->batch_rank] = extent[i];
        mm->a_batch[mm->batch_rank] = a[i];
        mm->b_batch[mm->batch_rank++] = b[i];
    }
    int64_t step = mm->m * mm->n;
    for (int i = mm->batch_rank - 1; i >= 0; i--) {
        mm->c_batch[i] = step;
        step *= mm->batch[i];
    }
    return true;
}

/* The same of a matrix of numbers, which are pairs of what the strides count. */
static bool is_matrix_of_pairs(int rank, const int64_t *shape, const int64_t *stride) {
    int64_t half[WEFT_VIEW_RANK];
    bool even = stride[rank - 1] == 1;
    for (int i = 0; i < rank - 1; i++) {
        half[i] = stride[i] / 2;
        even = even && stride[i] % 2 == 0;
    }
    return even && is_matrix(rank - 1, shape, half);
}

/* The shape in memory, where a complex number is a pair. */
static int stored_shape(const weft_tensor *x, int64_t *shape) {
    memcpy(shape, x->shape, (size_t)x->rank * sizeof *shape);
    if (!is_complex(x)) return x->rank;
    shape[x->rank] = 2;
    return x->rank + 1;
}

/* A matrix, or a batch of them, with strides in elements; flat: contiguous. */
static weft_status take_matrix(weft_ir *ir, ir_edge edge, const weft_tensor *x, bool flat, operand *out) {
    int64_t shape[WEFT_MAX_RANK + 1];
    const int rank = stored_shape(x, shape);
    const bool pairs = is_complex(x);
    WEFT_TRY(take_operand(ir, edge, rank, shape,
                          flat    ? contiguous
                          : pairs ? is_matrix_of_pairs
                                  : is_matrix,
                          out));
    for (int i = 0; i < rank && pairs; i++) out->stride[i] /= 2;
    matrix_strides(&x->shape[x->rank - 2], &out->stride[x->rank - 2]);
    return WEFT_OK;
}

/* t: a product, or the composite that one of complex matrices is. */
static weft_status build_matmul(weft_ir *ir, const weft_tensor *t, const ir_edge *in, ir_edge *out) {
    const weft_tensor *a = t->in[0], *b = t->in[1];
    const int rank = a->rank;
    const bool pairs = is_complex(a);
    operand left, right;
    weft_heavy heavy = {.kind = WEFT_HEAVY_MATMUL};
    weft_heavy_matmul *mm = &heavy.as.matmul;
    mm->dtype = a->dtype;
    mm->out_dtype = (uint8_t)t->dtype;
    mm->m = a->shape[rank - 2];
    mm->k = a->shape[rank - 1];
    mm->n = b->shape[rank - 1];
    if (pairs) mm->conj = (uint8_t)((const weft_product_params *)weft__params_of(t))->conj;
    if (pairs && !takes(ir, &heavy)) return WEFT_ERR_UNSUPPORTED;
    WEFT_TRY(take_matrix(ir, in[0], a, false, &left));
    WEFT_TRY(take_matrix(ir, in[1], b, false, &right));
    if (!batch_of(mm, rank - 2, a->shape, left.stride, right.stride)) { /* contiguous copies merge into one */
        WEFT_TRY(take_matrix(ir, in[0], a, true, &left));
        WEFT_TRY(take_matrix(ir, in[1], b, true, &right));
        batch_of(mm, rank - 2, a->shape, left.stride, right.stride);
    }
    mm->a_m = left.stride[rank - 2];
    mm->a_k = left.stride[rank - 1];
    mm->b_k = right.stride[rank - 2];
    mm->b_n = right.stride[rank - 1];
    mm->c_m = mm->n;
    if (!takes(ir, &heavy)) return declined(ir, "matmul");
    int64_t shape[WEFT_MAX_RANK + 1];
    const int stored = stored_shape(a, shape);
    shape[rank - 1] = mm->n;
    int n = heavy_node(ir, t, &heavy, 2, (ir_edge[]){left.edge, right.edge});
    const weft_dtype dtype = (weft_dtype)t->dtype;
    if (n >= 0) n = heavy_out(ir, n, 0, pairs ? weft__part_dtype(dtype) : dtype, stored, shape);
    *out = (ir_edge){n, -1};
    return n < 0 ? weft__ir_failed(ir) : WEFT_OK;
}

static int64_t extent_of(const int64_t *shape, int from, int to) {
    int64_t n = 1;
    for (int i = from; i < to; i++) n *= shape[i];
    return n;
}

static weft_status build_scatter(weft_ir *ir, const weft_tensor *t, const ir_edge *in, ir_edge *out) {
    const weft_attr_axis *attr = t->attr;
    const weft_tensor *index = t->in[0], *source = t->in[1];
    operand at, from;
    WEFT_TRY(take_operand(ir, in[0], index->rank, index->shape, contiguous, &at));
    WEFT_TRY(take_operand(ir, in[1], source->rank, source->shape, contiguous, &from));
    int axis = (int)attr->axis;
    weft_heavy heavy = {.kind = WEFT_HEAVY_SCATTER};
    heavy.as.scatter = (weft_heavy_scatter){.dtype = (uint8_t)t->dtype,
                                            .index_dtype = (uint8_t)index->dtype,
                                            .unique = attr->unique != 0,
                                            .outer = extent_of(t->shape, 0, axis),
                                            .count = index->numel,
                                            .rows = attr->extent,
                                            .inner = extent_of(t->shape, axis + 1, t->rank)};
    if (!takes(ir, &heavy)) return declined(ir, "scatter_add");
    int n = heavy_node(ir, t, &heavy, 2, (ir_edge[]){at.edge, from.edge});
    if (n >= 0) n = heavy_out(ir, n, 0, (weft_dtype)t->dtype, t->rank, t->shape);
    *out = (ir_edge){n, -1};
    return n < 0 ? weft__ir_failed(ir) : WEFT_OK;
}

/* The scatter-add into zeros that edge k of the sum reads, and nothing else; -1: there is none, or it cannot
 * have the other operand for its base, which must be made before it and have memory. A base that others read
 * as well would be copied. */
static int scatter_of(const weft_ir *ir, const ir_node *sum, int k) {
    const ir_node *part = &ir->nodes[sum->in[k].node], *base = &ir->nodes[sum->in[1 - k].node];
    if (part->kind != IR_HEAVY_OUT || part->users != 1 || part->claimed) return -1;
    const int h = part->in[0].node;
    const weft_heavy *heavy = ir->nodes[h].heavy;
    if (heavy->kind != WEFT_HEAVY_SCATTER || heavy->as.scatter.based) return -1;
    const bool made = ir_is_compute(base) || base->kind == IR_HEAVY_OUT;
    if (base->kind != IR_LEAF && !(made && base->users == 1 && !base->claimed)) return -1;
    if (sum->in[0].view >= 0 || sum->in[1].view >= 0 || base->numel != sum->numel) return -1;
    return sum->in[1 - k].node < h ? h : -1;
}

/* Turns the sum into the result of the scatter-add. */
static weft_status base_scatter(weft_ir *ir, int s, int k, int h) {
    ir_node *sum = &ir->nodes[s], *node = &ir->nodes[h];
    const ir_edge base = sum->in[1 - k];
    weft_heavy based = *node->heavy;
    based.as.scatter.based = true;
    if (!takes(ir, &based)) return WEFT_OK;
    ir_edge *in = weft__arena_alloc(&ir->arena, 3 * sizeof *in);
    if (!in) return weft__ir_failed(ir);
    memcpy(in, node->in, 2 * sizeof *in);
    in[2] = base;
    node->in = in;
    node->n_in = 3;
    *node->heavy = based;
    store(ir, base.node);
    ir->nodes[sum->in[k].node].live = false;
    sum->kind = IR_HEAVY_OUT;
    sum->n_in = 1;
    sum->in[0] = (ir_edge){h, -1};
    sum->path = node->path;
    return WEFT_OK;
}

/* In unfused programs as well: sums keep their order. */
weft_status weft__ir_base_scatters(weft_ir *ir) {
    for (int i = 0; i < (int)ir->n_nodes; i++) {
        const ir_node *node = &ir->nodes[i];
        if (!node->live || node->kind != IR_CALC || node->op != WEFT_OP_ADD) continue;
        for (int k = 1, h = -1; k >= 0 && h < 0; k--) {
            h = scatter_of(ir, node, k);
            if (h >= 0) WEFT_TRY(base_scatter(ir, i, k, h));
        }
    }
    return WEFT_OK;
}

static weft_status build_update(weft_ir *ir, const weft_tensor *t, const ir_edge *in, ir_edge *out) {
    const weft_attr_axis *attr = t->attr;
    operand x, value, offset;
    int64_t one = 1;
    WEFT_TRY(take_operand(ir, in[0], t->rank, t->shape, contiguous, &x));
    WEFT_TRY(take_operand(ir, in[1], t->rank, t->in[1]->shape, contiguous, &value));
    WEFT_TRY(take_operand(ir, in[2], 1, &one, contiguous, &offset));
    int axis = (int)attr->axis;
    weft_heavy heavy = {.kind = WEFT_HEAVY_UPDATE};
    heavy.as.update = (weft_heavy_update){.dtype = (uint8_t)t->dtype,
                                          .outer = extent_of(t->shape, 0, axis),
                                          .total = t->shape[axis],
                                          .extent = attr->extent,
                                          .inner = extent_of(t->shape, axis + 1, t->rank)};
    if (!takes(ir, &heavy)) return declined(ir, "update");
    int n = heavy_node(ir, t, &heavy, 3, (ir_edge[]){x.edge, value.edge, offset.edge});
    if (n >= 0) n = heavy_out(ir, n, 0, (weft_dtype)t->dtype, t->rank, t->shape);
    *out = (ir_edge){n, -1};
    return n < 0 ? weft__ir_failed(ir) : WEFT_OK;
}

static weft_status build_scan(weft_ir *ir, const weft_tensor *t, const ir_edge *in, ir_edge *out) {
    const weft_attr_scan *attr = t->attr;
    operand x;
    WEFT_TRY(take_operand(ir, in[0], t->rank, t->shape, contiguous, &x));
    const int axis = (int)attr->axis;
    weft_heavy heavy = {.kind = WEFT_HEAVY_SCAN};
    const weft_dtype dtype = t->dtype == WEFT_U64 ? WEFT_I64 : (weft_dtype)t->dtype; /* the same bits */
    heavy.as.scan = (weft_heavy_scan){.dtype = (uint8_t)dtype,
                                      .product = attr->product != 0,
                                      .reverse = attr->reverse != 0,
                                      .outer = extent_of(t->shape, 0, axis),
                                      .extent = t->shape[axis],
                                      .inner = extent_of(t->shape, axis + 1, t->rank)};
    if (!takes(ir, &heavy)) return declined(ir, "scan");
    int n = heavy_node(ir, t, &heavy, 1, &x.edge);
    if (n >= 0) n = heavy_out(ir, n, 0, (weft_dtype)t->dtype, t->rank, t->shape);
    *out = (ir_edge){n, -1};
    return n < 0 ? weft__ir_failed(ir) : WEFT_OK;
}

static weft_status build_order(weft_ir *ir, const weft_tensor *t, const ir_edge *in, ir_edge *out) {
    const weft_attr_sorted *attr = t->attr;
    const weft_tensor *input = t->in[0];
    operand x;
    WEFT_TRY(take_operand(ir, in[0], input->rank, input->shape, contiguous, &x));
    weft_heavy heavy = {.kind = WEFT_HEAVY_ORDER};
    heavy.as.order = (weft_heavy_order){.dtype = input->dtype,
                                        .descending = attr->descending != 0,
                                        .rows = extent_of(t->shape, 0, t->rank - 1),
                                        .extent = input->shape[t->rank - 1],
                                        .count = attr->count};
    if (!takes(ir, &heavy)) return declined(ir, "order");
    int n = heavy_node(ir, t, &heavy, 1, &x.edge);
    if (n >= 0) n = heavy_out(ir, n, 0, WEFT_I32, t->rank, t->shape);
    *out = (ir_edge){n, -1};
    return n < 0 ? weft__ir_failed(ir) : WEFT_OK;
}

/* ---- attention: stored (B, T, H, D), seen (B, H, T, D) ---- */

static void head_strides(const int64_t *stride, int64_t *out) {
    for (int i = 0; i < 3; i++) out[i] = stride[i];
}

/* Keys or values (B, heads of theirs, heads that share one, S, D) that are there once for all that share. */
static bool is_shared(int rank, const int64_t *shape, const int64_t *stride) {
    return stride[2] == 0 && unit_last(rank, shape, stride);
}

/* Keys and values that heads share, as they lie; or, where one of them cannot be addressed so, copies of both
 * with one for each head. */
static weft_status take_shared(weft_ir *ir, const weft_tensor *t, const ir_edge *in, weft_heavy_attention *at,
                               operand *op) {
    bool lie = true;
    for (int i = 1; i < 3; i++)
        lie = lie && addressable(ir, in[i], 5, t->in[i]->shape, &op[i]) &&
              is_shared(5, t->in[i]->shape, op[i].stride);
    for (int i = 1; i < 3; i++) {
        const int64_t *s = op[i].stride;
        int64_t *to = i == 1 ? at->k : at->v;
        WEFT_TRY(take_operand(ir, in[i], 5, t->in[i]->shape, lie ? is_shared : contiguous, &op[i]));
        to[0] = s[0];
        to[1] = lie ? s[1] : s[2];
        to[2] = s[3];
    }
    if (!lie) at->sharing = 1;
    return WEFT_OK;
}

/* All operands; rows of heads have their channels side by side. */
static weft_status take_operands(weft_ir *ir, const weft_tensor *t, const ir_edge *in,
                                 weft_heavy_attention *at, operand *op) {
    const int out_at = at->masked ? 5 : 4; /* behind it: lse, dout */
    if (t->in[1]->rank == 5) WEFT_TRY(take_shared(ir, t, in, at, op));
    for (int i = 0; i < t->n_in; i++) {
        const bool head = i < 3 || i == out_at || i == out_at + 2, mask = at->masked && i == 4;
        if (t->in[i]->rank < 5)
            WEFT_TRY(take_operand(ir, in[i], t->in[i]->rank, t->in[i]->shape,
                                  head   ? unit_last
                                  : mask ? NULL
                                         : contiguous,
                                  &op[i]));
    }
    return WEFT_OK;
}

/* Strides of batch, head and position in a tensor stored (B, T, parts, H, D), one of its parts. */
static void stored_strides(const int64_t *shape, int parts, int64_t *out) {
    out[2] = parts * shape[1] * shape[3];
    out[1] = shape[3];
    out[0] = shape[2] * out[2];
}

/* Results index.. of a heavy node, `parts` of them side by side in one node, of logical shape (B, H, T, D);
 * that of keys and values which heads share (B, heads of theirs, heads that share one, T, D), each its own.
 */
static weft_status head_outputs(weft_ir *ir, int heavy, int index, int parts, weft_dtype dtype,
                                const int64_t *shape, int64_t sharing, ir_edge *out) {
    int64_t stored[5] = {shape[0], shape[2], parts, shape[1], shape[3]};
    int n = heavy_out(ir, heavy, index, dtype, 5, stored);
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
        if (sharing > 1 && index + i > 0)
            weft__view_reshape(&view, 5,
                               (int64_t[]){shape[0], shape[1] / sharing, sharing, shape[2], shape[3]});
        out[i] = (ir_edge){n, weft__ir_view(ir, n, &view)};
        if (out[i].view == -2) return weft__ir_failed(ir);
    }
    return WEFT_OK;
}

/* The results of the forward pass; with a mask, lse is in two parts. */
static weft_status attended(weft_ir *ir, int heavy, const weft_heavy_attention *at, const weft_tensor *q,
                            ir_edge *out) {
    const weft_dtype dtype = (weft_dtype)q->dtype;
    const int64_t lse[4] = {2, at->batch, at->heads, at->t_q};
    WEFT_TRY(head_outputs(ir, heavy, 0, 1, dtype, q->shape, 1, &out[0]));
    const int n = heavy_out(ir, heavy, 1, dtype == WEFT_F64 ? WEFT_F64 : WEFT_F32, at->masked ? 4 : 3,
                            at->masked ? lse : lse + 1);
    out[1] = (ir_edge){n, -1};
    return n < 0 ? weft__ir_failed(ir) : WEFT_OK;
}

static weft_status build_attention(weft_ir *ir, const weft_tensor *t, const ir_edge *in, ir_edge *out) {
    const weft_composite *definition = weft__composite_of(t);
    const weft_attention_params *params = weft__params_of(t);
    const weft_tensor *q = t->in[0], *k = t->in[1];
    const bool masked =
        definition == &weft__attention_masked || definition->forward == &weft__attention_masked;
    const int out_at = masked ? 5 : 4; /* behind it: lse, dout */
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
                                 .sharing = k->rank == 5 ? k->shape[2] : 1,
                                 .masked = masked,
                                 .mask_dtype = masked ? t->in[4]->dtype : 0};
    if (!takes(ir, &heavy)) return WEFT_ERR_UNSUPPORTED;
    /* The gradients of q, k and v lie as those three do in a packed projection, whose gradient they then are.
     */
    const int parts = at->t_q == at->t_k ? 3 : 1;
    const int64_t given = at->sharing;
    operand op[8];
    ir_edge edges[8];
    WEFT_TRY(take_operands(ir, t, in, at, op));
    for (int i = 0; i < t->n_in; i++) edges[i] = op[i].edge;
    head_strides(op[0].stride, at->q);
    if (k->rank < 5) head_strides(op[1].stride, at->k), head_strides(op[2].stride, at->v);
    stored_strides(q->shape, 1, at->out);
    for (int i = 0; masked && i < 4; i++) at->mask[i] = op[4].stride[i];
    if (at->backward) {
        head_strides(op[out_at].stride, at->out);
        head_strides(op[out_at + 2].stride, at->dout);
        stored_strides(q->shape, parts, at->dq);
        stored_strides((int64_t[]){at->batch, at->heads, at->t_k, at->d}, parts, at->dk);
        stored_strides((int64_t[]){at->batch, at->heads, at->t_k, at->d}, parts, at->dv);
    }
    int n = heavy_node(ir, t, &heavy, t->n_in, edges);
    if (n < 0) return weft__ir_failed(ir);
    for (int i = 0; at->backward && i < 3; i += parts)
        WEFT_TRY(head_outputs(ir, n, i, parts, (weft_dtype)q->dtype,
                              (int64_t[]){at->batch, at->heads, i == 0 ? at->t_q : at->t_k, at->d}, given,
                              &out[i]));
    return at->backward ? WEFT_OK : attended(ir, n, at, q, out);
}

/* ---- convolution: all stored with channels last ---- */

/* An operand (A, B, H, W) as one stored (A, H, W, B). */
static weft_status channels_last(weft_ir *ir, ir_edge edge, const int64_t *shape, ir_edge *out) {
    const int64_t stored[4] = {shape[0], shape[2], shape[3], shape[1]};
    weft_view view;
    operand op;
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
    WEFT_TRY(take_operand(ir, edge, 4, stored, contiguous, &op));
    *out = op.edge;
    return WEFT_OK;
}

static void copy_pair(const int64_t *from, int64_t *to) { to[0] = from[0], to[1] = from[1]; }

static weft_status build_conv(weft_ir *ir, const weft_tensor *t, const ir_edge *in, ir_edge *out) {
    static const uint8_t pass[] = {[WEFT_CONV_OP_FORWARD] = WEFT_CONV_FORWARD,
                                   [WEFT_CONV_OP_INPUT] = WEFT_CONV_INPUT,
                                   [WEFT_CONV_OP_WEIGHT] = WEFT_CONV_WEIGHT};
    const weft_conv_params *params = weft__params_of(t);
    weft_heavy heavy = {.kind = WEFT_HEAVY_CONV};
    weft_heavy_conv *c = &heavy.as.conv;
    *c = (weft_heavy_conv){.dtype = t->in[0]->dtype,
                           .pass = pass[params->op],
                           .n = params->n,
                           .groups = params->groups,
                           .in = params->in,
                           .out = params->out};
    copy_pair(params->x, c->x), copy_pair(params->size, c->size), copy_pair(params->y, c->y);
    copy_pair(params->stride, c->stride), copy_pair(params->padding, c->padding);
    copy_pair(params->dilation, c->dilation);
    if (!takes(ir, &heavy)) return WEFT_ERR_UNSUPPORTED;
    ir_edge edges[2];
    for (int i = 0; i < 2; i++) WEFT_TRY(channels_last(ir, in[i], t->in[i]->shape, &edges[i]));
    const int n = heavy_node(ir, t, &heavy, 2, edges);
    if (n < 0) return weft__ir_failed(ir);
    const int64_t wide = c->groups * c->out, deep = c->groups * c->in;
    const int64_t stored[3][4] = {[WEFT_CONV_FORWARD] = {c->n, c->y[0], c->y[1], wide},
                                  [WEFT_CONV_INPUT] = {c->n, c->x[0], c->x[1], deep},
                                  [WEFT_CONV_WEIGHT] = {wide, c->size[0], c->size[1], c->in}};
    const int result = heavy_out(ir, n, 0, (weft_dtype)c->dtype, 4, stored[c->pass]);
    if (result < 0) return weft__ir_failed(ir);
    *out = weft__ir_shown(ir, result, 4, stored[c->pass], (int[]){0, 2, 3, 1});
    return out->view == -2 ? weft__ir_failed(ir) : WEFT_OK;
}

/* ---- recurrent layers ---- */

/* Which inputs of the composite the device reads, in its order: inputs x, w, b, d, h, lengths, c; then
 * outputs states, gates, cells, and the gradient of states. */
static int recurrent_inputs(const weft_heavy_recurrent *r, int *which) {
    const bool lstm = r->kind == WEFT_LSTM, gated = lstm || r->kind == WEFT_GRU;
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

static weft_status build_recurrent(weft_ir *ir, const weft_tensor *t, const ir_edge *in, ir_edge *out) {
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
    if (!takes(ir, &heavy)) return WEFT_ERR_UNSUPPORTED;
    int which[16];
    const int n_in = recurrent_inputs(&heavy.as.recurrent, which);
    ir_edge edges[16];
    for (int i = 0; i < n_in; i++) {
        const weft_tensor *read = t->in[which[i]];
        operand op;
        WEFT_TRY(take_operand(ir, in[which[i]], read->rank, read->shape, contiguous, &op));
        edges[i] = op.edge;
    }
    int n = heavy_node(ir, t, &heavy, n_in, edges);
    for (int i = 0; i < definition->n_outputs && n >= 0; i++) {
        weft_dtype dtype;
        int rank;
        int64_t shape[WEFT_MAX_RANK];
        definition->shape(params, t->in, i, &dtype, &rank, shape);
        out[i] = (ir_edge){heavy_out(ir, n, i, dtype, rank, shape), -1};
        if (out[i].node < 0) n = -1;
    }
    return n < 0 ? weft__ir_failed(ir) : WEFT_OK;
}

/* ---- source of a program's own ---- */

_Static_assert((int)WEFT_COMPOSITE_SOURCE == (int)WEFT_HEAVY_SOURCE, "ops know the kind by its number");

static weft_status build_source(weft_ir *ir, const weft_tensor *t, const ir_edge *in, ir_edge *out) {
    const weft_source *source = ((const weft_defined_params *)weft__params_of(t))->source;
    const weft_tensor *x = t->in[0];
    const weft_heavy heavy = {.kind = WEFT_HEAVY_SOURCE,
                              .as.source = {.name = source->name,
                                            .text = source->text,
                                            .dtype = x->dtype,
                                            .language = (uint8_t)source->language,
                                            .arity = t->n_in,
                                            .items = source->items,
                                            .n = x->numel}};
    if (!takes(ir, &heavy)) return WEFT_ERR_UNSUPPORTED;
    operand op;
    ir_edge edges[4];
    for (int i = 0; i < t->n_in; i++) {
        WEFT_TRY(take_operand(ir, in[i], x->rank, x->shape, contiguous, &op));
        edges[i] = op.edge;
    }
    int n = heavy_node(ir, t, &heavy, t->n_in, edges);
    if (n >= 0) n = heavy_out(ir, n, 0, (weft_dtype)x->dtype, x->rank, x->shape);
    *out = (ir_edge){n, -1};
    return n < 0 ? weft__ir_failed(ir) : WEFT_OK;
}

weft_status weft__ir_heavy(weft_ir *ir, const weft_tensor *t, const ir_edge *in, ir_edge *out) {
    switch (t->op) {
    case WEFT_OP_MATMUL: return build_matmul(ir, t, in, out);
    case WEFT_OP_SCATTER_ADD: return build_scatter(ir, t, in, out);
    case WEFT_OP_UPDATE: return build_update(ir, t, in, out);
    case WEFT_OP_SCAN: return build_scan(ir, t, in, out);
    case WEFT_OP_ORDER: return build_order(ir, t, in, out);
    default: break;
    }
    switch (weft__composite_of(t)->kind) {
    case WEFT_HEAVY_ATTENTION: return build_attention(ir, t, in, out);
    case WEFT_HEAVY_CONV: return build_conv(ir, t, in, out);
    case WEFT_HEAVY_RECURRENT: return build_recurrent(ir, t, in, out);
    case WEFT_HEAVY_MATMUL: return build_matmul(ir, t, in, out);
    case WEFT_HEAVY_SOURCE: return build_source(ir, t, in, out);
    default: return WEFT_ERR_UNSUPPORTED;
    }
}
