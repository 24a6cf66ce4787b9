/* Sums of the rows of a product's left operand: a bias has the column sums of dy for its gradient, the
 * weights have dy^T x, which reads all of dy as well, so that a device may do both in one pass. What is left
 * of a kernel that made dy and added it up is then elementwise, and may be the epilogue of the product before
 * it. Must not know: why devices decline. Read next: epilogue.c. */
#include <string.h>
#include "compiler/ir.h"

/* ---- column sums ---- */

/* Does the reduction add up dimension `axis` alone, -1: leading ones, of all `numel` elements in order? */
static bool sums_axis(const ir_node *r, int axis, int64_t numel) {
    int64_t all = 1;
    bool kept = false;
    if (r->op != WEFT_OP_SUM || r->in[0].view >= 0 || r->imm_i) return false;
    for (int d = 0; d < r->rank_in; d++) {
        const bool reduced = r->axes >> d & 1u;
        all *= r->shape_in[d];
        if (r->shape_in[d] == 1) continue;
        if (axis < 0 ? reduced && kept : reduced != (d == axis)) return false;
        kept = kept || !reduced;
    }
    return all == numel;
}

/* The value whose columns node n adds up, at once or in two stages of blocks (build.c); -1: none. */
static int summed(const weft_ir *ir, int n, bool *staged) {
    const ir_node *r = &ir->nodes[n], *first = r;
    if (r->kind != IR_REDUCE || !r->live || r->numel < 2) return -1;
    const ir_node *in = &ir->nodes[r->in[0].node];
    *staged = in->kind == IR_REDUCE && in->rank_in == 4;
    if (*staged) { /* (1, blocks, block, columns) -> (1, blocks, columns) -> columns */
        first = in;
        if (first->users != 1 || first->shape_in[0] != 1 || first->shape_in[3] != r->numel ||
            !sums_axis(r, -1, first->numel))
            return -1;
    }
    const int d = first->in[0].node;
    const ir_node *node = &ir->nodes[d];
    if (!sums_axis(first, *staged ? 2 : -1, node->numel)) return -1;
    const bool widened = node->kind == IR_CAST && !node->copy && node->in[0].view < 0;
    return widened && ir->nodes[node->in[0].node].numel == node->numel ? node->in[0].node : d;
}

/* Is something reduced on the way to the value? Then a kernel of rows makes it, which adds it up on the way.
 */
static bool of_rows(const weft_ir *ir, int n, int depth) {
    const ir_node *node = &ir->nodes[n];
    if (node->kind == IR_REDUCE || depth > 32) return true;
    if (node->kind != IR_CALC && node->kind != IR_CAST) return false;
    for (int k = 0; k < node->n_in; k++)
        if (of_rows(ir, node->in[k].node, depth + 1)) return true;
    return false;
}

/* ---- the product ---- */

/* Its left operand is all of node d, columns of which are its rows. */
static bool has_rows(const weft_ir *ir, const ir_node *heavy, int d, int64_t columns) {
    if (heavy->kind != IR_HEAVY || heavy->heavy->kind != WEFT_HEAVY_MATMUL || heavy->in[0].node != d)
        return false;
    const weft_heavy_matmul *mm = &heavy->heavy->as.matmul;
    return !mm->sums && mm->batch_rank == 0 && mm->m == columns && mm->m * mm->k == ir->nodes[d].numel &&
           mm->a_m == 1 && mm->a_k == mm->m &&
           (heavy->in[0].view < 0 || ir->views[heavy->in[0].view].map[0].offset == 0);
}

/* Does node n need node `of`? */
static bool needs(const weft_ir *ir, int n, int of, bool *seen, int *stack) {
    int depth = 0;
    memset(seen, 0, ir->n_nodes);
    for (stack[depth++] = n; depth > 0;) {
        const ir_node *node = &ir->nodes[stack[--depth]];
        for (int k = 0; k < node->n_in; k++) {
            const int in = node->in[k].node;
            if (in == of) return true;
            if (seen[in]) continue;
            seen[in] = true;
            stack[depth++] = in;
        }
    }
    return false;
}

static int product_for(const weft_ir *ir, int n, int d, bool *seen, int *stack) {
    for (size_t h = 0; h < ir->n_nodes; h++) {
        const ir_node *heavy = &ir->nodes[h];
        if (!heavy->live || !has_rows(ir, heavy, d, ir->nodes[n].numel)) continue;
        weft_heavy with = *heavy->heavy;
        with.as.matmul.sums = true;
        if (ir->nodes[n].dtype == weft__heavy_sums_dtype(&with.as.matmul) &&
            ir->device->ops->takes(ir->device, &with) && !needs(ir, (int)h, n, seen, stack))
            return (int)h;
    }
    return -1;
}

/* ---- order ---- */

/* Operands come before their users again. */
static weft_status sort(weft_ir *ir) {
    const size_t n = ir->n_nodes;
    ir_node *old = weft__arena_alloc(&ir->arena, (n + 1) * sizeof *old);
    int *number = weft__arena_alloc(&ir->arena, (n + 1) * sizeof *number), count = 0, depth = 0;
    int *stack = weft__arena_alloc(&ir->arena, (n + 1) * sizeof *stack);
    int *next = weft__arena_alloc(&ir->arena, (n + 1) * sizeof *next);
    if (!old || !number || !stack || !next) return weft__ir_failed(ir);
    memcpy(old, ir->nodes, n * sizeof *old);
    for (size_t i = 0; i < n; i++) number[i] = -1;
    for (size_t i = 0; i < n; i++) {
        if (number[i] < 0) stack[depth++] = (int)i;
        while (depth > 0) {
            const int at = stack[depth - 1];
            if (next[at] < old[at].n_in) {
                const int in = old[at].in[next[at]++].node;
                if (number[in] < 0) stack[depth++] = in;
            } else {
                number[at] = count++;
                depth--;
            }
        }
    }
    for (size_t i = 0; i < n; i++) {
        ir_node *node = &ir->nodes[number[i]];
        *node = old[i];
        for (int k = 0; k < node->n_in; k++) node->in[k].node = number[node->in[k].node];
        if (node->pack >= 0) node->pack = number[node->pack];
    }
    for (size_t i = 0; i < ir->n_outputs; i++) ir->output_nodes[i] = number[ir->output_nodes[i]];
    for (size_t i = 0; i < ir->n_sinks; i++) ir->sinks[i].node = number[ir->sinks[i].node];
    return WEFT_OK;
}

/* Node n becomes a result of the product. */
static void take(weft_ir *ir, int n, int h) {
    ir_node *sum = &ir->nodes[n];
    const ir_node *heavy = &ir->nodes[h];
    heavy->heavy->as.matmul.sums = true;
    sum->kind = IR_HEAVY_OUT;
    sum->in[0] = (ir_edge){h, -1};
    sum->imm_i = 1;
    sum->path = heavy->path;
    sum->serial = heavy->serial;
}

weft_status weft__ir_sums(weft_ir *ir, bool *taken) {
    bool *seen = weft__arena_alloc(&ir->arena, ir->n_nodes + 1);
    int *stack = weft__arena_alloc(&ir->arena, (ir->n_nodes + 1) * sizeof *stack);
    if (!seen || !stack) return weft__ir_failed(ir);
    for (int n = 0; n < (int)ir->n_nodes; n++) {
        bool staged;
        const int d = summed(ir, n, &staged);
        if (d < 0 || (staged && of_rows(ir, d, 0))) continue;
        const int h = product_for(ir, n, d, seen, stack);
        if (h < 0) continue;
        take(ir, n, h);
        *taken = true;
    }
    return *taken ? sort(ir) : WEFT_OK;
}
