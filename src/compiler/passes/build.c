/* Builds the IR from tensors. Movement ops become views on edges. Equal nodes become one. A composite is
 * taken by the device as a heavy operation, or expanded. Must not know: which nodes share a kernel, how
 * kernels run. Read next: reduce.c, layout.c, heavy/heavy.h, fuse.c. */
#include <math.h>
#include <string.h>
#include <weft/profile.h>
#include "autodiff/autodiff.h"
#include "compiler/program.h"

/* ---- tensor -> edge ---- */

static size_t slot_of(const weft_ir *ir, const void *key) {
    size_t at = (size_t)weft__mix64((uint64_t)(uintptr_t)key) & (ir->map.capacity - 1);
    while (ir->map.entries[at].key && ir->map.entries[at].key != key) at = (at + 1) & (ir->map.capacity - 1);
    return at;
}

static bool ir_build_find(const weft_ir *ir, const void *key, ir_edge *edge) {
    if (!ir->map.capacity) return false;
    size_t at = slot_of(ir, key);
    *edge = ir->map.entries[at].edge;
    return ir->map.entries[at].key != NULL;
}

static weft_status remember(weft_ir *ir, const void *key, ir_edge edge) {
    if (2 * (ir->map.count + 1) > ir->map.capacity) {
        size_t old = ir->map.capacity, capacity = old ? 2 * old : 1024;
        ir_map_entry *from = ir->map.entries, *to = weft__array(ir->ctx, capacity, sizeof *to);
        if (!to) return weft__ir_failed(ir);
        ir->map.entries = to;
        ir->map.capacity = capacity;
        for (size_t i = 0; i < old; i++)
            if (from[i].key) ir->map.entries[slot_of(ir, from[i].key)] = from[i];
        weft__free(ir->ctx, from);
    }
    size_t at = slot_of(ir, key);
    if (!ir->map.entries[at].key) ir->map.count++;
    ir->map.entries[at] = (ir_map_entry){key, edge};
    return WEFT_OK;
}

typedef struct pairs {
    weft_dtype dtype;
    int rank;
    int64_t shape[WEFT_MAX_RANK + 1];
} pairs;

static pairs pairs_of(const weft_tensor *t) {
    pairs p = {.dtype = (weft_dtype)t->dtype, .rank = t->rank};
    memcpy(p.shape, t->shape, (size_t)t->rank * sizeof *p.shape);
    if (!is_complex(t)) return p;
    p.dtype = weft__part_dtype(p.dtype);
    p.shape[p.rank++] = 2;
    return p;
}

/* ---- equal nodes become one ---- */

static uint64_t node_hash(const ir_node *node) {
    weft_hash h;
    weft__hash_init(&h);
    weft__hash_u64(&h, (uint64_t)node->kind | (uint64_t)node->op << 8 | (uint64_t)node->dtype << 16 |
                           (uint64_t)node->reduce.axes << 24 | (uint64_t)node->from.recomputed << 63);
    weft__hash_bytes(&h, node->shape, (size_t)node->rank * sizeof *node->shape);
    weft__hash_bytes(&h, node->in, (size_t)node->n_in * sizeof *node->in);
    weft__hash_bytes(&h, &node->imm_f, sizeof node->imm_f);
    weft__hash_u64(&h, (uint64_t)node->imm_i);
    if (node->reduce.rank)
        weft__hash_bytes(&h, node->reduce.shape, (size_t)node->reduce.rank * sizeof *node->reduce.shape);
    return h.a;
}

static bool node_same(const ir_node *x, const ir_node *y) {
    return x->kind == y->kind && x->op == y->op && x->dtype == y->dtype && x->reduce.axes == y->reduce.axes &&
           x->rank == y->rank && x->n_in == y->n_in && x->reduce.rank == y->reduce.rank &&
           x->imm_i == y->imm_i && x->copy == y->copy && x->from.recomputed == y->from.recomputed &&
           memcmp(&x->imm_f, &y->imm_f, sizeof x->imm_f) == 0 &&
           memcmp(x->shape, y->shape, (size_t)x->rank * sizeof *x->shape) == 0 &&
           memcmp(x->in, y->in, (size_t)x->n_in * sizeof *x->in) == 0 &&
           (!x->reduce.rank ||
            memcmp(x->reduce.shape, y->reduce.shape, (size_t)x->reduce.rank * sizeof *x->reduce.shape) == 0);
}

int weft__ir_unify(weft_ir *ir, int newest) {
    if (newest < 0) return newest;
    if (2 * (ir->cse.count + 1) > ir->cse.capacity) {
        size_t capacity = ir->cse.capacity ? 2 * ir->cse.capacity : 1024;
        int *table = weft__array(ir->ctx, capacity, sizeof *table);
        if (!table) return -1;
        for (size_t i = 0; i < ir->cse.capacity; i++) {
            if (!ir->cse.table[i]) continue;
            size_t at = node_hash(&ir->nodes[ir->cse.table[i] - 1]) & (capacity - 1);
            while (table[at]) at = (at + 1) & (capacity - 1);
            table[at] = ir->cse.table[i];
        }
        weft__free(ir->ctx, ir->cse.table);
        ir->cse.table = table;
        ir->cse.capacity = capacity;
    }
    size_t at = node_hash(&ir->nodes[newest]) & (ir->cse.capacity - 1);
    for (; ir->cse.table[at]; at = (at + 1) & (ir->cse.capacity - 1))
        if (node_same(&ir->nodes[ir->cse.table[at] - 1], &ir->nodes[newest])) {
            ir->n_nodes--;
            return ir->cse.table[at] - 1;
        }
    ir->cse.table[at] = newest + 1;
    ir->cse.count++;
    return newest;
}

void weft__ir_comes_from(ir_node *node, const weft_tensor *t, weft_op op) {
    node->op = (uint8_t)op;
    node->from.tensor = t;
    node->from.path = t->path;
    node->from.recomputed = t->recomputed;
    node->from.early = !t->recomputed && t->stage != WEFT_STAGE_BACKWARD && t->stage != WEFT_STAGE_OPTIMIZER;
    node->from.chunk = t->segment_kind == WEFT_SEGMENT_CHUNK ? t->segment : 0;
    node->from.serial = t->serial;
}

int weft__ir_shaped(weft_ir *ir, ir_kind kind, const weft_tensor *t, const int64_t *shape, int n_in,
                    const ir_edge *in) {
    int n = weft__ir_node(ir, kind, (weft_dtype)t->dtype, t->rank, shape, n_in, in);
    if (n >= 0) weft__ir_comes_from(&ir->nodes[n], t, (weft_op)t->op);
    return n;
}

static int new_node(weft_ir *ir, ir_kind kind, const weft_tensor *t, int n_in, const ir_edge *in) {
    const pairs p = pairs_of(t);
    int n = weft__ir_node(ir, kind, p.dtype, p.rank, p.shape, n_in, in);
    if (n >= 0) weft__ir_comes_from(&ir->nodes[n], t, (weft_op)t->op);
    return n;
}

/* ---- movement ---- */

/* Applies the movement op of t to the view of its input. False if the list of maps would be too long. */
static bool move(weft_view *view, const weft_tensor *t) {
    const pairs to = pairs_of(t);
    const size_t bytes = (size_t)t->rank * sizeof *to.shape;
    int64_t first[WEFT_MAX_RANK + 1] = {0}, second[WEFT_MAX_RANK + 1] = {0};
    switch (t->op) {
    case WEFT_OP_RESHAPE: return weft__view_reshape(view, to.rank, to.shape);
    case WEFT_OP_PERMUTE: {
        int order[WEFT_MAX_RANK + 1];
        for (int i = 0; i < to.rank; i++)
            order[i] = i < t->rank ? ((const weft_attr_permutation *)t->attr)->order[i] : i;
        return weft__view_permute(view, order);
    }
    case WEFT_OP_EXPAND: return weft__view_expand(view, to.shape);
    case WEFT_OP_PAD:
        memcpy(first, ((const weft_attr_pad *)t->attr)->lo, bytes);
        memcpy(second, ((const weft_attr_pad *)t->attr)->hi, bytes);
        return weft__view_pad(view, first, second);
    case WEFT_OP_SLICE:
        second[t->rank] = 1;
        memcpy(first, ((const weft_attr_slice *)t->attr)->start, bytes);
        memcpy(second, ((const weft_attr_slice *)t->attr)->step, bytes);
        return weft__view_slice(view, first, to.shape, second);
    default: { /* REAL, IMAG: every second element of the pairs */
        const pairs from = pairs_of(t->in[0]);
        int64_t extent[WEFT_MAX_RANK + 1];
        for (int i = 0; i < from.rank; i++) extent[i] = i < t->rank ? t->shape[i] : 1, second[i] = 1;
        first[t->rank] = t->op == WEFT_OP_IMAG;
        return weft__view_slice(view, first, extent, second) && weft__view_reshape(view, t->rank, t->shape);
    }
    }
}

/* A view may see only the real or only the imaginary parts of a PACK of pairs. Then *node and *view become
 * the value that this part was copied from, and the reader does not need the PACK.
 *
 *     view of the pack   r i r i r i   offset 1, stride 2   ->   view of i   offset 0, stride 1 */
static bool see_part(const weft_ir *ir, int *node, weft_view *view) {
    const ir_node *pack = &ir->nodes[*node];
    weft_map *last = &view->map[view->count - 1];
    if (pack->kind != IR_PACK || pack->imm_i != IR_PACK_PAIRS) return false;
    weft_view halved = *view, whole;
    weft_map *map = &halved.map[view->count - 1];
    const int64_t which = last->offset & 1;
    for (int d = 0; d < last->rank; d++) {
        if (last->extent[d] > 1 && last->stride[d] % 2 != 0) return false;
        map->stride[d] = last->extent[d] > 1 ? last->stride[d] / 2 : 0;
    }
    map->offset = (last->offset - which) / 2;
    const ir_edge from = ir->nodes[pack->in[which].node].in[0];
    if (from.view >= 0 && !weft__view_compose(&halved, &ir->views[from.view], &whole)) return false;
    *view = from.view >= 0 ? whole : halved;
    *node = from.node;
    return true;
}

/* A movement op adds no node: it only changes the view of the edge. */
static weft_status build_movement(weft_ir *ir, const weft_tensor *t, ir_edge in, ir_edge *out) {
    const pairs x = pairs_of(t->in[0]);
    weft_view view;
    if (!weft__ir_edge_view(ir, in, x.rank, x.shape, &view) || !move(&view, t)) {
        int copy = weft__ir_copy(ir, in, x.rank, x.shape); /* the list of maps is full */
        if (copy < 0) return weft__ir_failed(ir);
        in = (ir_edge){copy, -1};
        weft__view_identity(&view, x.rank, x.shape);
        if (!move(&view, t))
            return weft__fail(ir->ctx, WEFT_ERR_INTERNAL, "%s: no view of a contiguous tensor",
                              weft__op_name(t->op));
    }
    while (see_part(ir, &in.node, &view)) {
    }
    *out = (ir_edge){in.node, weft__ir_view(ir, in.node, &view)};
    return out->view == -2 ? weft__ir_failed(ir) : WEFT_OK;
}

/* ---- the other ops ---- */

/* Gives the value of a constant. A view with guards shows zeros besides. */
static bool constant_of(const weft_ir *ir, ir_edge edge, double *value) {
    const ir_node *node = &ir->nodes[edge.node];
    if (node->kind != IR_CONST || (edge.view >= 0 && weft__view_guarded(&ir->views[edge.view]))) return false;
    *value = weft_dtype_is_float((weft_dtype)node->dtype) ? node->imm_f : (double)node->imm_i;
    return true;
}

static bool is_one(const weft_ir *ir, ir_edge edge) {
    double value;
    return constant_of(ir, edge, &value) && value == 1;
}

/* The cast of a small whole number is the same number in every dtype. So a gradient that begins with 1 in f32
 * begins with 1 in f16, too, and `simplify` finds it. Returns false if `t` is no such cast. */
static bool cast_constant(const weft_ir *ir, const weft_tensor *t, const ir_edge *in, weft_attr_const *out) {
    double value;
    if (t->op != WEFT_OP_CAST || t->n_in != 1 || !constant_of(ir, in[0], &value)) return false;
    const double most = t->dtype == WEFT_BOOL ? 1 : INT8_MAX;
    if (!(value >= 0 && value <= most) || value != floor(value) || signbit(value)) return false;
    *out = (weft_attr_const){.f = value, .i = (int64_t)value};
    return true;
}

/* Adjacent padded parts of one value are a view of this value: their sum is the gradient of slices that split
 * a tensor. (x + 0 is x except for the sign of a zero.) */
static bool join_parts(weft_ir *ir, const weft_tensor *t, const ir_edge *in, ir_edge *out) {
    weft_view x, y, joined;
    if (in[0].node != in[1].node || in[0].view < 0 || in[1].view < 0) return false;
    if (!weft__ir_edge_view(ir, in[0], t->rank, t->shape, &x) ||
        !weft__ir_edge_view(ir, in[1], t->rank, t->shape, &y) || !weft__view_join(&x, &y, &joined))
        return false;
    *out = (ir_edge){in[0].node, weft__ir_view(ir, in[0].node, &joined)};
    return out->view != -2;
}

/* A cast that undoes one to a wider float has the first value: f16 -> f32 -> f16. Returns false if `t` is no
 * such cast. */
static bool casts_back(const weft_ir *ir, const weft_tensor *t, ir_edge in, ir_edge *out) {
    const ir_node *wide = &ir->nodes[in.node];
    if (wide->kind != IR_CAST || wide->n_in != 1 || (in.view >= 0 && wide->in[0].view >= 0)) return false;
    const weft_dtype to = (weft_dtype)t->dtype, from = (weft_dtype)wide->dtype;
    if (ir->nodes[wide->in[0].node].dtype != to || !weft_dtype_is_float(to) || !weft_dtype_is_float(from) ||
        weft_dtype_size(from) <= weft_dtype_size(to))
        return false;
    *out = (ir_edge){wide->in[0].node, in.view >= 0 ? in.view : wide->in[0].view};
    return true;
}

/* x * 1 is exactly x. A cast with a second input has its result already: that input holds the rounded
 * values. */
static bool simplify(weft_ir *ir, const weft_tensor *t, const ir_edge *in, ir_edge *out) {
    if (t->op == WEFT_OP_ADD) return join_parts(ir, t, in, out);
    if (t->op == WEFT_OP_CAST && t->n_in == 2) {
        *out = in[1];
        return true;
    }
    if (t->op == WEFT_OP_CAST) return casts_back(ir, t, in[0], out);
    if (t->op != WEFT_OP_MUL) return false;
    if (is_one(ir, in[1])) {
        *out = in[0];
        return true;
    }
    *out = in[1];
    return is_one(ir, in[0]);
}

static weft_status build_gather(weft_ir *ir, const weft_tensor *t, ir_edge *in, ir_edge *out) {
    const weft_tensor *x = t->in[0];
    uint8_t kind = ir->nodes[in[0].node].kind;
    if (in[0].view >= 0 && weft__view_is_identity(&ir->views[in[0].view]))
        in[0].view = -1; /* sees a prefix */
    if (in[0].view >= 0 || kind == IR_CONST || kind == IR_IOTA ||
        kind == IR_RANDOM) { /* a device addresses the table, so it must be in memory */
        int copy = weft__ir_copy(ir, in[0], x->rank, x->shape);
        if (copy < 0) return weft__ir_failed(ir);
        in[0] = (ir_edge){copy, -1};
    }
    int n = new_node(ir, IR_GATHER, t, 2, in);
    if (n < 0) return weft__ir_failed(ir);
    ir->nodes[n].imm_i = ((const weft_attr_axis *)t->attr)->axis;
    n = weft__ir_unify(ir, n);
    *out = (ir_edge){n, -1};
    return n < 0 ? weft__ir_failed(ir) : WEFT_OK;
}

/* Each part becomes a stored node of its own that lies in the pack. A part that has another place already, or
 * that occurs twice, is copied. Operands come before their users. */
static weft_status build_pack(weft_ir *ir, const weft_tensor *t, ir_edge *in, ir_edge *out) {
    for (int i = 0; i < t->n_in; i++) {
        const ir_node *part = &ir->nodes[in[i].node];
        bool direct = in[i].view < 0 && part->pack.node < 0 && part->kind != IR_LEAF &&
                      part->kind != IR_PACK && !ir_is_source(part) && part->numel == t->in[i]->numel;
        for (int k = 0; direct && k < i; k++) direct = in[k].node != in[i].node;
        if (direct) continue;
        int copy = weft__ir_copy(ir, in[i], t->in[i]->rank, t->in[i]->shape);
        if (copy < 0) return weft__ir_failed(ir);
        in[i] = (ir_edge){copy, -1};
    }
    int n = new_node(ir, IR_PACK, t, t->n_in, in);
    if (n < 0) return weft__ir_failed(ir);
    ir->nodes[n].offsets = weft__arena_alloc(&ir->arena, (size_t)t->n_in * sizeof(int64_t));
    if (!ir->nodes[n].offsets) return weft__ir_failed(ir);
    memcpy(ir->nodes[n].offsets, t->attr, (size_t)t->n_in * sizeof(int64_t));
    for (int i = 0; i < t->n_in; i++) ir->nodes[in[i].node].pack.node = n;
    *out = (ir_edge){n, -1};
    return WEFT_OK;
}

/* Interleaves real and imaginary parts: two parts of a pack, each with a stride of 2. */
static weft_status build_complex(weft_ir *ir, const weft_tensor *t, ir_edge *in, ir_edge *out) {
    for (int i = 0; i < 2; i++) {
        int copy = weft__ir_copy(ir, in[i], t->rank, t->shape);
        if (copy < 0) return weft__ir_failed(ir);
        in[i] = (ir_edge){copy, -1};
    }
    int n = new_node(ir, IR_PACK, t, 2, in);
    if (n < 0) return weft__ir_failed(ir);
    ir_node *pack = &ir->nodes[n];
    pack->imm_i = IR_PACK_PAIRS;
    pack->offsets = weft__arena_alloc(&ir->arena, 2 * sizeof *pack->offsets);
    if (!pack->offsets) return weft__ir_failed(ir);
    pack->offsets[0] = 0, pack->offsets[1] = 1;
    for (int i = 0; i < 2; i++) {
        ir_node *part = &ir->nodes[in[i].node];
        weft_view lies;
        weft__view_identity(&lies, part->rank, part->shape);
        for (int d = 0; d < part->rank; d++) lies.map[0].stride[d] *= 2;
        part->pack.node = n;
        part->pack.lies = weft__ir_view(ir, in[i].node, &lies);
        if (part->pack.lies == -2) return weft__ir_failed(ir);
    }
    *out = (ir_edge){n, -1};
    return WEFT_OK;
}

static weft_status build_leaf(weft_ir *ir, const weft_tensor *t, ir_edge *out) {
    if (t->leaf == WEFT_LEAF_STORAGE && t->storage->divided) WEFT_TRY(weft__ir_check_divided(ir, t));
    int n = new_node(ir, IR_LEAF, t, 0, NULL);
    *out = (ir_edge){n, -1};
    return n < 0 ? weft__ir_failed(ir) : WEFT_OK;
}

/* Builds a constant, a counter, random bits, a cast or an elementwise op. Casts and elementwise ops run in
 * the memory order of their largest operand. */
static weft_status build_plain(weft_ir *ir, const weft_tensor *t, ir_edge *in, ir_edge *out) {
    ir_kind kind = t->op == WEFT_OP_CONST    ? IR_CONST
                   : t->op == WEFT_OP_IOTA   ? IR_IOTA
                   : t->op == WEFT_OP_RANDOM ? IR_RANDOM
                   : t->op == WEFT_OP_CAST   ? IR_CAST
                                             : IR_CALC;
    if (is_complex(t))
        return weft__fail(ir->ctx, WEFT_ERR_INTERNAL, "%s of complex numbers was not lowered",
                          weft__op_name(t->op));
    if (simplify(ir, t, in, out)) return WEFT_OK;
    weft_attr_const constant = {0};
    if (kind == IR_CONST) constant = *(const weft_attr_const *)t->attr;
    if (cast_constant(ir, t, in, &constant)) kind = IR_CONST;
    int64_t stored[WEFT_MAX_RANK];
    int order[WEFT_MAX_RANK];
    const bool each = (kind == IR_CALC || kind == IR_CAST) && t->n_in > 0;
    const bool turned = each && weft__ir_in_order(ir, t->rank, t->shape, t->n_in, in, order, stored);
    int n = weft__ir_shaped(ir, kind, t, turned ? stored : t->shape, kind == IR_CONST ? 0 : t->n_in, in);
    if (n < 0) return weft__ir_failed(ir);
    if (kind == IR_CONST) ir->nodes[n].op = WEFT_OP_CONST;
    ir->nodes[n].imm_f = constant.f;
    ir->nodes[n].imm_i = constant.i;
    n = weft__ir_unify(ir, n);
    *out = (ir_edge){n, -1};
    if (n >= 0 && turned) *out = weft__ir_shown(ir, n, t->rank, stored, order);
    return n < 0 || out->view == -2 ? weft__ir_failed(ir) : WEFT_OK;
}

static weft_status build_graph(weft_ir *ir, const weft_tensor *root);

/* Notes the reads of divided parameters. Movements only pass them on, and so does a cast that has its result
 * already. An op of an expansion reads when its composite does. */
static weft_status note_reads(weft_ir *ir, const weft_tensor *t, const ir_edge *in) {
    if (t->op == WEFT_OP_CAST && t->n_in == 2) return WEFT_OK; /* a movement of the second one */
    switch (t->op) {
    case WEFT_OP_INPUT:
    case WEFT_OP_RESHAPE:
    case WEFT_OP_PERMUTE:
    case WEFT_OP_EXPAND:
    case WEFT_OP_PAD:
    case WEFT_OP_SLICE:
    case WEFT_OP_REAL:
    case WEFT_OP_IMAG:
    case WEFT_OP_DETACH:
    case WEFT_OP_VIEW_AS_REAL:
    case WEFT_OP_VIEW_AS_COMPLEX: return WEFT_OK;
    default: return weft__ir_note_reads(ir, ir->expanded ? ir->expanded : t->serial, in, t->n_in);
    }
}

/* Builds the outputs of an expansion. If processes exchange parameters, its units run when the composite
 * would: the nodes get its serial number. */
static weft_status build_expansion(weft_ir *ir, const weft_tensor *whole, weft_tensor *const *outputs, int n,
                                   ir_edge *results) {
    const size_t before = ir->n_nodes;
    const uint64_t outer = ir->expanded;
    if (!outer) ir->expanded = whole->serial;
    for (int i = 0; i < n; i++) {
        WEFT_TRY(build_graph(ir, outputs[i]));
        ir_build_find(ir, outputs[i], &results[i]);
    }
    for (size_t k = before; k < ir->n_nodes && ir->ctx->divides; k++)
        if (ir->nodes[k].from.serial > ir->expanded) ir->nodes[k].from.serial = ir->expanded;
    ir->expanded = outer;
    return WEFT_OK;
}

/* Builds all outputs of the composite of t: as a heavy operation if the device takes it, else by its
 * expansion. *out is the output that t stands for. */
static weft_status build_output(weft_ir *ir, const weft_tensor *t, ir_edge *out) {
    const weft_tensor *whole = t->in[0];
    const weft_composite *definition = weft__composite_of(whole);
    int index = (int)((const weft_attr_output *)t->attr)->index;
    /* Addresses inside the composite are the map's keys of its outputs. */
    const char *keys = (const char *)whole->shape;
    if (ir_build_find(ir, keys + index, out)) return WEFT_OK;
    ir_edge in[16], results[16];
    for (int i = 0; i < whole->n_in; i++)
        if (!ir_build_find(ir, whole->in[i], &in[i]))
            return weft__fail(ir->ctx, WEFT_ERR_INTERNAL, "a composite comes before its inputs");
    weft_status status = weft__ir_heavy(ir, whole, in, results);
    if (status == WEFT_OK && ir->ctx->divides) status = note_reads(ir, whole, in);
    if (status == WEFT_ERR_UNSUPPORTED) { /* the device declines it */
        weft_tensor *expanded[16];
        uint8_t stage = ir->ctx->stage;
        ir->ctx->stage = whole->stage;
        status = weft__composite_expand(whole->where, whole, expanded);
        ir->ctx->stage = stage;
        WEFT_TRY(status);
        WEFT_TRY(build_expansion(ir, whole, expanded, definition->n_outputs, results));
    } else if (status != WEFT_OK) {
        return status;
    }
    for (int i = 0; i < definition->n_outputs; i++) WEFT_TRY(remember(ir, keys + i, results[i]));
    *out = results[index];
    return WEFT_OK;
}

/* Builds t, whose inputs are built already. */
static weft_status build_tensor(weft_ir *ir, const weft_tensor *t) {
    ir_edge small[8], *in = small, out = {-1, -1};
    if (ir->ctx->compiler->debug & DEBUG_GRAPH) weft__node_say(t);
    if (t->n_in > 8 && !(in = weft__arena_alloc(&ir->arena, (size_t)t->n_in * sizeof *in)))
        return weft__ir_failed(ir);
    if (t->op == WEFT_OP_OUTPUT) {
        WEFT_TRY(build_output(ir, t, &out));
        return remember(ir, t, out);
    }
    if (t->op == WEFT_OP_COMPOSITE) return remember(ir, t, (ir_edge){-1, -1});
    for (int i = 0; i < t->n_in; i++)
        if (!ir_build_find(ir, t->in[i], &in[i]))
            return weft__fail(ir->ctx, WEFT_ERR_INTERNAL, "an op comes before its inputs");
    if (ir->ctx->divides) WEFT_TRY(note_reads(ir, t, in));
    switch (t->op) {
    case WEFT_OP_INPUT: WEFT_TRY(build_leaf(ir, t, &out)); break;
    case WEFT_OP_RESHAPE:
    case WEFT_OP_PERMUTE:
    case WEFT_OP_EXPAND:
    case WEFT_OP_PAD:
    case WEFT_OP_SLICE:
    case WEFT_OP_REAL:
    case WEFT_OP_IMAG: WEFT_TRY(build_movement(ir, t, in[0], &out)); break;
    case WEFT_OP_DETACH:
    case WEFT_OP_VIEW_AS_REAL:
    case WEFT_OP_VIEW_AS_COMPLEX: out = in[0]; break;
    case WEFT_OP_COMPLEX: WEFT_TRY(build_complex(ir, t, in, &out)); break;
    case WEFT_OP_SUM:
    case WEFT_OP_MAX:
    case WEFT_OP_MIN:
    case WEFT_OP_PROD: WEFT_TRY(weft__ir_reduce(ir, t, in[0], &out)); break;
    case WEFT_OP_GATHER: WEFT_TRY(build_gather(ir, t, in, &out)); break;
    case WEFT_OP_PACK: WEFT_TRY(build_pack(ir, t, in, &out)); break;
    case WEFT_OP_MATMUL: WEFT_TRY(weft__ir_matmul(ir, t, in, &out)); break;
    default: {
        const bool heavy = weft__heavy_of_op(t->op) != WEFT_HEAVY_NONE;
        WEFT_TRY(heavy ? weft__ir_heavy(ir, t, in, &out) : build_plain(ir, t, in, &out));
        break;
    }
    }
    return remember(ir, t, out);
}

/* ---- walking ---- */

typedef struct frame {
    const weft_tensor *t;
    int next;
} frame;

/* All tensors enter the IR here, so a poisoned tensor fails here with its first cause. */
static weft_status push(weft_ir *ir, frame **stack, size_t *depth, size_t *capacity, const weft_tensor *t) {
    WEFT_TRY(weft_tensor_status(t));
    if (!weft__grow(ir->ctx, stack, capacity, *depth, sizeof **stack)) return weft__ir_failed(ir);
    (*stack)[(*depth)++] = (frame){t, 0};
    return WEFT_OK;
}

/* Builds everything that the root needs, inputs first. Uses its own stack, since graphs can be deep. */
static weft_status build_graph(weft_ir *ir, const weft_tensor *root) {
    frame *stack = NULL;
    size_t depth = 0, capacity = 0;
    ir_edge seen;
    weft_status status = ir_build_find(ir, root, &seen) ? WEFT_OK : push(ir, &stack, &depth, &capacity, root);
    while (depth && status == WEFT_OK) {
        frame *top = &stack[depth - 1];
        int inputs = top->t->leaf ? 0 : top->t->n_in;
        if (top->next < inputs) {
            const weft_tensor *next = top->t->in[top->next++];
            if (!ir_build_find(ir, next, &seen)) status = push(ir, &stack, &depth, &capacity, next);
            continue;
        }
        const weft_tensor *t = top->t;
        depth--;
        if (!ir_build_find(ir, t, &seen)) status = build_tensor(ir, t);
    }
    weft__free(ir->ctx, stack);
    return status;
}

/* Returns a stored node that holds exactly the values of t and that no other output or variable has claimed.
 * Other nodes may read it. If there is none, adds a copy. -1 if memory is gone. */
static int claim(weft_ir *ir, const weft_tensor *t) {
    ir_edge edge;
    if (!ir_build_find(ir, t, &edge)) return -1;
    const ir_node *node = &ir->nodes[edge.node];
    const pairs p = pairs_of(t);
    bool free = edge.view < 0 &&
                (ir_is_compute(node) || node->kind == IR_HEAVY_OUT || node->kind == IR_PACK) &&
                !node->claimed && node->pack.node < 0 && node->numel == (is_complex(t) ? 2 : 1) * t->numel;
    int n = free ? edge.node : weft__ir_copy(ir, edge, p.rank, p.shape);
    if (n >= 0) ir->nodes[n].stored = ir->nodes[n].claimed = true;
    return n;
}

weft_status weft__ir_build(weft_ir *ir, weft_tensor *const *outputs, size_t n_outputs, ir_sink *sinks,
                           size_t n_sinks) {
    for (size_t i = 0; i < n_outputs; i++) WEFT_TRY(build_graph(ir, outputs[i]));
    for (size_t i = 0; i < n_sinks; i++) WEFT_TRY(build_graph(ir, sinks[i].value));
    ir->outputs.list = outputs;
    ir->outputs.count = n_outputs;
    ir->sinks.list = sinks;
    ir->sinks.count = n_sinks;
    ir->outputs.nodes = weft__arena_alloc(&ir->arena, (n_outputs + 1) * sizeof *ir->outputs.nodes);
    if (!ir->outputs.nodes) return weft__ir_failed(ir);
    /* Assignments claim their values first: they can be written in place. An output of the same value gets a
     * copy. */
    for (size_t i = 0; i < n_sinks; i++) {
        sinks[i].node = claim(ir, sinks[i].value);
        if (sinks[i].node < 0) return weft__ir_failed(ir);
        ir->nodes[sinks[i].node].sink = (int)i;
    }
    for (size_t i = 0; i < n_outputs; i++) {
        ir->outputs.nodes[i] = claim(ir, outputs[i]);
        if (ir->outputs.nodes[i] < 0) return weft__ir_failed(ir);
    }
    return WEFT_OK;
}
