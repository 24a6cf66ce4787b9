/* Row sums of a matmul's left operand. The bias gradient is the column sums of dy. The weight gradient is
 * dy^T x, which reads all of dy as well, so a device may compute both in one pass
 * (docs/design/012-bias-gradients-in-matmuls.md). The kernel that computed dy and summed it is then
 * elementwise, so it can be the epilogue of the matmul before it. Must not know: why devices decline. Read
 * next: epilogue.c.
 *
 *     before   dy = ...; db = sum of the rows of dy       after   dy = ...
 *              dw = dy^T x                                        dw, db = dy^T x with row sums of dy^T */
#include <string.h>
#include "compiler/passes/ir.h"

/* ---- column sums ---- */

/* Does the reduction sum only dimension `axis`? With axis -1: only leading dimensions? It must read all
 * `numel` elements in order. */
static bool sums_axis(const ir_node *r, int axis, int64_t numel) {
    int64_t all = 1;
    bool kept = false;
    if (r->op != WEFT_OP_SUM || r->in[0].view >= 0 || r->imm_i) return false;
    for (int d = 0; d < r->reduce.rank; d++) {
        const bool reduced = r->reduce.axes >> d & 1u;
        all *= r->reduce.shape[d];
        if (r->reduce.shape[d] == 1) continue;
        if (axis < 0 ? reduced && kept : reduced != (d == axis)) return false;
        kept = kept || !reduced;
    }
    return all == numel;
}

/* Returns the value whose columns node n sums, directly or in the two stages of build.c (*staged). -1:
 * none. */
static int summed(const weft_ir *ir, int n, bool *staged) {
    const ir_node *r = &ir->nodes[n], *first = r;
    if (r->kind != IR_REDUCE || !r->live || r->numel < 2) return -1;
    const ir_node *in = &ir->nodes[r->in[0].node];
    *staged = in->kind == IR_REDUCE && in->reduce.rank == 4;
    if (*staged) { /* (1, blocks, block, columns) -> (1, blocks, columns) -> columns */
        first = in;
        if (first->users != 1 || first->reduce.shape[0] != 1 || first->reduce.shape[3] != r->numel ||
            !sums_axis(r, -1, first->numel))
            return -1;
    }
    const int d = first->in[0].node;
    const ir_node *node = &ir->nodes[d];
    if (!sums_axis(first, *staged ? 2 : -1, node->numel)) return -1;
    const bool widened = node->kind == IR_CAST && !node->copy && node->in[0].view < 0;
    return widened && ir->nodes[node->in[0].node].numel == node->numel ? node->in[0].node : d;
}

/* Scratch memory of the searches, by node. */
typedef struct search {
    int *seen; /* the stamp of the last level or search that visited it */
    int stamp;
    int *now, *next;             /* the nodes of a level, and the nodes that these read */
    int *first_with, *next_with; /* list of heavy operations whose left operand is the node; -1: end */
} search;

enum { ROWS_DEPTH = 32 };

/* Does the value depend on a reduction, or is the answer more than ROWS_DEPTH levels away? Then a row kernel
 * computes the value, and this kernel sums the columns at little extra cost. The search goes level by level
 * and visits each node once a level. */
static bool of_rows(const weft_ir *ir, int n, search *s) {
    int count = 1;
    s->now[0] = n;
    for (int depth = 0; count; depth++) {
        int more = 0;
        if (depth > ROWS_DEPTH) return true;
        s->stamp++;
        for (int i = 0; i < count; i++) {
            const ir_node *node = &ir->nodes[s->now[i]];
            if (node->kind == IR_REDUCE) return true;
            for (int k = 0; (node->kind == IR_CALC || node->kind == IR_CAST) && k < node->n_in; k++) {
                const int in = node->in[k].node;
                if (s->seen[in] == s->stamp) continue;
                s->seen[in] = s->stamp;
                s->next[more++] = in;
            }
        }
        int *level = s->now;
        s->now = s->next;
        s->next = level;
        count = more;
    }
    return false;
}

/* Is the left operand of the matmul the transpose of all of node d? Then the columns of d are its rows. */
static bool has_rows(const weft_ir *ir, const ir_node *heavy, int d, int64_t columns) {
    if (heavy->kind != IR_HEAVY || heavy->heavy->kind != WEFT_HEAVY_MATMUL || heavy->in[0].node != d)
        return false;
    const weft_heavy_matmul *mm = &heavy->heavy->as.matmul;
    return !mm->sums && mm->batch_rank == 0 && mm->m == columns && mm->m * mm->k == ir->nodes[d].numel &&
           mm->a_m == 1 && mm->a_k == mm->m &&
           (heavy->in[0].view < 0 || ir->views[heavy->in[0].view].map[0].offset == 0);
}

/* Does node n depend on node `of`? */
static bool needs(const weft_ir *ir, int n, int of, search *s) {
    int depth = 0, *stack = s->now;
    s->stamp++;
    for (stack[depth++] = n; depth > 0;) {
        const ir_node *node = &ir->nodes[stack[--depth]];
        for (int k = 0; k < node->n_in; k++) {
            const int in = node->in[k].node;
            if (in == of) return true;
            if (s->seen[in] == s->stamp) continue;
            s->seen[in] = s->stamp;
            stack[depth++] = in;
        }
    }
    return false;
}

/* Returns a matmul that can compute the column sums n of value d, -1: none. The device must take it with row
 * sums, and it must not depend on n. */
static int product_for(const weft_ir *ir, int n, int d, search *s) {
    for (int h = s->first_with[d]; h >= 0; h = s->next_with[h]) {
        const ir_node *heavy = &ir->nodes[h];
        if (!heavy->live || !has_rows(ir, heavy, d, ir->nodes[n].numel)) continue;
        weft_heavy with = *heavy->heavy;
        with.as.matmul.sums = true;
        if (ir->nodes[n].dtype == weft__matmul_sums_dtype(&with.as.matmul) &&
            ir->device->ops->takes(ir->device, &with) && !needs(ir, h, n, s))
            return h;
    }
    return -1;
}

/* Turns node n into the second result of the matmul. */
static void sums_take(weft_ir *ir, int n, int h) {
    ir_node *sum = &ir->nodes[n];
    const ir_node *heavy = &ir->nodes[h];
    heavy->heavy->as.matmul.sums = true;
    sum->kind = IR_HEAVY_OUT;
    sum->in[0] = (ir_edge){h, -1};
    sum->imm_i = 1;
    sum->from.path = heavy->from.path;
    sum->from.serial = heavy->from.serial;
}

static bool open_search(weft_ir *ir, search *s) {
    const size_t bytes = (ir->n_nodes + 1) * sizeof(int);
    int **const lists[] = {&s->seen, &s->now, &s->next, &s->first_with, &s->next_with};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (!(*lists[i] = weft__arena_alloc(&ir->arena, bytes))) return false;
    for (size_t i = 0; i < ir->n_nodes; i++) s->first_with[i] = -1;
    for (int h = (int)ir->n_nodes - 1; h >= 0; h--) { /* from the last one, so that the lists ascend */
        if (ir->nodes[h].kind != IR_HEAVY || !ir->nodes[h].n_in) continue;
        const int d = ir->nodes[h].in[0].node;
        s->next_with[h] = s->first_with[d];
        s->first_with[d] = h;
    }
    return true;
}

weft_status weft__ir_sums(weft_ir *ir, bool *taken) {
    search s = {0};
    if (!open_search(ir, &s)) return weft__ir_failed(ir);
    for (int n = 0; n < (int)ir->n_nodes; n++) {
        bool staged;
        const int d = summed(ir, n, &staged);
        if (d < 0 || (staged && of_rows(ir, d, &s))) continue;
        const int h = product_for(ir, n, d, &s);
        if (h < 0) continue;
        sums_take(ir, n, h);
        *taken = true;
    }
    return *taken ? weft__ir_sort(ir) : WEFT_OK;
}
