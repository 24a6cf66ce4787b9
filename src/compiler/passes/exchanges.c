/* When exchanges with other processes start and end. An exchange has two commands: the first one hands memory
 * to a thread, and a later one waits. All processes must make the same exchanges in the same order, although
 * their plans may differ. So the order follows from the recorded graph.
 *
 *     sums of gradients   start as soon as the gradients are there, in the order in which they were recorded
 *     gathers of pieces   start when the piece before is first read, so that they run beside its layers:
 *
 *     command   gather 0   wait 0   gather 1   layer of piece 0   wait 1   gather 2   layer of piece 1   ...
 *
 * A piece is in memory from its gather to its last reader. If it is needed again after other pieces, as in
 * the backward pass, it is gathered again. Must not know: how processes exchange. Read next: divided.c,
 * process/exchange.c. */
#include <stdlib.h>
#include "compiler/passes/heavy/heavy.h"
#include "compiler/passes/plan.h"

/* The part of all gathered bytes that may be gathered between two reads of a piece before it is gathered
 * again: one and a half pieces of 16. */
#define KEPT_SHARE (1.5 / 16)

/* One of the times that a piece is gathered. */
typedef struct gathering {
    int piece;            /* index in the list of pieces */
    uint64_t first, last; /* serial numbers of the ops that read it */
    uint64_t from, to; /* times at which heavy operations read it, or those that follow from its neighbours */
    int unit, out;     /* the unit that starts it, and the node of its result */
} gathering;

/* An exchange in the order of all. */
typedef struct exchange_turn {
    uint64_t moment; /* serial number of an op, about when it starts */
    int gathering;   /* -1: a sum */
    int unit;
    uint64_t serial; /* of a sum: when it was recorded */
} exchange_turn;

typedef struct exchange_plan {
    plan *p;
    const weft_divided_piece **pieces; /* that some unit reads */
    int n_pieces;
    gathering *gatherings; /* in the order of their first reads */
    int n_gatherings;
    exchange_turn *turns;
    int n_turns;
} exchange_plan;

static weft_heavy_exchange *exchange_of(const plan *p, int unit) {
    const int heavy = unit >= 0 ? p->units[unit].heavy : -1;
    if (heavy < 0 || p->ir->nodes[heavy].heavy->kind != WEFT_HEAVY_EXCHANGE) return NULL;
    return &p->ir->nodes[heavy].heavy->as.exchange;
}

static weft_status no_memory(const exchange_plan *x) { return weft__ir_failed(x->p->ir); }

/* ---- gathering pieces ---- */

static int find_piece(const exchange_plan *x, const weft_divided_piece *piece) {
    int i = x->n_pieces - 1;
    while (i >= 0 && x->pieces[i] != piece) i--;
    return i;
}

/* The piece in which a node lies; -1: the node is no divided parameter. */
static int piece_read(const exchange_plan *x, int node) {
    const ir_node *leaf = &x->p->ir->nodes[node];
    return weft__ir_divided(leaf) ? find_piece(x, weft__ir_piece(leaf->from.tensor)) : -1;
}

/* Lists the pieces that units read. */
static weft_status list_pieces(exchange_plan *x) {
    const plan *p = x->p;
    size_t most = 0;
    for (size_t n = 0; n < p->ir->n_nodes; n++) most += weft__ir_divided(&p->ir->nodes[n]);
    if (!most) return WEFT_OK;
    x->pieces = weft__arena_alloc(&p->ir->arena, most * sizeof *x->pieces);
    if (!x->pieces) return no_memory(x);
    for (int i = 0; i < p->n_units; i++)
        for (int k = 0, n; (n = weft__plan_reads(p, &p->units[i], k)) >= 0; k++) {
            if (!weft__ir_divided(&p->ir->nodes[n]) || piece_read(x, n) >= 0) continue;
            x->pieces[x->n_pieces++] = weft__ir_piece(p->ir->nodes[n].from.tensor);
        }
    return WEFT_OK;
}

static int64_t gathered_elements(const exchange_plan *x, int piece) {
    return x->pieces[piece]->each * x->p->ir->ctx->processes;
}

static double gathered_bytes(const exchange_plan *x, int piece) {
    const size_t size = weft_dtype_size((weft_dtype)x->pieces[piece]->part->dtype);
    return (double)gathered_elements(x, piece) * (double)size;
}

static void add_gathering(exchange_plan *x, int piece, uint64_t serial) {
    x->gatherings[x->n_gatherings++] = (gathering){piece, serial, serial, UINT64_MAX, 0, -1, -1};
}

/* Divides the reads of each piece, in the order of the graph: a piece is gathered again if more than some
 * bytes of others were gathered since the last read. */
static weft_status divide_reads(exchange_plan *x) {
    weft_ir *ir = x->p->ir;
    const size_t n = ir->reads.count, pieces = (size_t)x->n_pieces;
    ir_keyed *reads = weft__arena_alloc(&ir->arena, (n + 1) * sizeof *reads);
    int *now = weft__arena_alloc(&ir->arena, pieces * sizeof *now); /* its gathering so far + 1 */
    double *read_at = weft__arena_alloc(&ir->arena, pieces * sizeof *read_at), gathered = 0, all = 0;
    x->gatherings = weft__arena_alloc(&ir->arena, (n + pieces) * sizeof *x->gatherings);
    if (!reads || !now || !read_at || !x->gatherings) return no_memory(x);
    for (size_t i = 0; i < n; i++) reads[i] = (ir_keyed){ir->reads.list[i].serial, (int)i};
    qsort(reads, n, sizeof *reads, weft__by_key);
    for (int i = 0; i < x->n_pieces; i++) all += gathered_bytes(x, i);
    for (size_t i = 0; i < n; i++) {
        const int piece = find_piece(x, ir->reads.list[reads[i].number].piece);
        if (piece < 0) continue; /* the op was not needed */
        if (!now[piece] || gathered - read_at[piece] > KEPT_SHARE * all) {
            gathered += gathered_bytes(x, piece);
            add_gathering(x, piece, reads[i].key);
            now[piece] = x->n_gatherings;
        }
        x->gatherings[now[piece] - 1].last = reads[i].key;
        read_at[piece] = gathered;
    }
    for (int i = 0; i < x->n_pieces; i++) /* an output is a view of a parameter */
        if (!now[i]) add_gathering(x, i, UINT64_MAX);
    return WEFT_OK;
}

/* Replaces the key of each unit by the time at which it would run without exchanges. Serial numbers of
 * kernels do not tell it, since a kernel of the forward pass may also compute values for the backward pass.
 */
static weft_status time_units(const exchange_plan *x) {
    plan *p = x->p;
    WEFT_TRY(weft__plan_order(p));
    for (int at = 0; at < p->n_units; at++) p->units[p->order[at]].key = (uint64_t)at + 1;
    return WEFT_OK;
}

/* Notes when the heavy operation of a unit reads the gathering. */
static void time_reads(const exchange_plan *x, gathering *g, const plan_unit *u) {
    const ir_node *heavy = u->heavy < 0 ? NULL : &x->p->ir->nodes[u->heavy];
    bool reads = false;
    for (int k = 0; heavy && k < heavy->n_in; k++) reads |= piece_read(x, heavy->in[k].node) == g->piece;
    if (!reads || heavy->from.serial < g->first || heavy->from.serial > g->last) return;
    if (u->key < g->from) g->from = u->key;
    if (u->key > g->to) g->to = u->key;
}

/* Finds the times of all gatherings. One that no heavy operation reads is read between those before and
 * after it. */
static void time_gatherings(const exchange_plan *x) {
    uint64_t before = 0, after = UINT64_MAX;
    for (int i = 0; i < x->n_gatherings; i++) {
        gathering *g = &x->gatherings[i];
        for (int u = 0; u < x->p->n_units; u++) time_reads(x, g, &x->p->units[u]);
        if (g->to > before) before = g->to;
        if (g->to == 0) g->to = before; /* for now */
    }
    for (int i = x->n_gatherings - 1; i >= 0; i--) {
        gathering *g = &x->gatherings[i];
        const bool known = g->from != UINT64_MAX;
        if (!known) g->from = g->to, g->to = after;
        if (known && g->from < after) after = g->from;
    }
}

/* Returns the gathering of a piece whose reads are nearest to a time. */
static const gathering *nearest(const exchange_plan *x, int piece, uint64_t time) {
    const gathering *best = NULL;
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < x->n_gatherings; i++) {
        const gathering *g = &x->gatherings[i];
        const uint64_t apart = time < g->from ? g->from - time : time > g->to ? time - g->to : 0;
        if (g->piece != piece || (best && apart >= least)) continue;
        best = g;
        least = apart;
    }
    return best;
}

/* Adds the nodes and the unit of a gathering. */
static weft_status add_unit(const exchange_plan *x, gathering *g) {
    plan *p = x->p;
    weft_ir *ir = p->ir;
    const weft_divided_piece *piece = x->pieces[g->piece];
    const weft_tensor *part = piece->part;
    const int64_t all = gathered_elements(x, g->piece);
    const int leaf = weft__ir_node(ir, IR_LEAF, (weft_dtype)part->dtype, 1, &piece->each, 0, NULL);
    if (leaf < 0) return no_memory(x);
    ir->nodes[leaf].from.tensor = part;
    ir->nodes[leaf].live = true;
    const weft_heavy heavy = {
        .kind = WEFT_HEAVY_EXCHANGE,
        .as.exchange = {.dtype = part->dtype, .gather = true, .count = 1, .n = piece->each}};
    const int n = weft__ir_heavy_node(ir, part, &heavy, 1, &(ir_edge){leaf, -1});
    g->out = n < 0 ? n : weft__ir_heavy_out(ir, n, 0, (weft_dtype)part->dtype, 1, &all);
    if (g->out < 0) return no_memory(x);
    g->unit = p->n_units;
    ir->nodes[n].live = ir->nodes[g->out].live = ir->nodes[g->out].stored = true;
    ir->nodes[n].unit = ir->nodes[g->out].unit = g->unit;
    return weft__plan_add_unit(p, (plan_unit){.heavy = n, .waits_for = -1, .from = -1, .to_sink = -1});
}

/* Returns the node of a leaf's place in a gathered piece. -1 if memory is gone. */
static int place_within(const exchange_plan *x, int leaf, const gathering *g, int first_new) {
    weft_ir *ir = x->p->ir;
    for (int n = first_new; n < (int)ir->n_nodes; n++)
        if (ir->nodes[n].within == g->out && ir->nodes[n].from.tensor == ir->nodes[leaf].from.tensor)
            return n;
    const int n = weft__ir_node(ir, IR_LEAF, (weft_dtype)ir->nodes[leaf].dtype, ir->nodes[leaf].rank,
                                ir->nodes[leaf].shape, 0, NULL);
    if (n < 0) return n;
    ir_node *node = &ir->nodes[n];
    *node = ir->nodes[leaf];
    node->within = g->out;
    node->imm_i = weft__variable_offset(node->from.tensor) - x->pieces[g->piece]->from;
    node->unit = g->unit;
    return n;
}

/* Lets a unit read the leaf's place in a gathered piece. */
static void replace_leaf(const weft_ir *ir, plan_unit *u, int leaf, int by) {
    for (int k = 0; u->heavy >= 0 && k < ir->nodes[u->heavy].n_in; k++)
        if (ir->nodes[u->heavy].in[k].node == leaf) ir->nodes[u->heavy].in[k].node = by;
    for (int a = 0; u->kernel && a < u->kernel->n_args; a++)
        if (u->args[a] == leaf) u->args[a] = by;
    if (u->from == leaf) u->from = by;
}

/* Replaces all divided leaves that units read. */
static weft_status replace_leaves(const exchange_plan *x, int n_units) {
    plan *p = x->p;
    const int first_new = (int)p->ir->n_nodes;
    for (int i = 0; i < n_units; i++)
        for (int k = 0, n; (n = weft__plan_reads(p, &p->units[i], k)) >= 0; k++) {
            const int piece = piece_read(x, n);
            const gathering *g = piece < 0 ? NULL : nearest(x, piece, p->units[i].key);
            const int by = g ? place_within(x, n, g, first_new) : n;
            if (by < 0) return no_memory(x);
            if (!g) continue;
            replace_leaf(p->ir, &p->units[i], n, by);
            WEFT_TRY(weft__plan_after(p, i, g->unit));
        }
    for (int n = 0; n < first_new; n++)
        if (weft__ir_divided(&p->ir->nodes[n])) p->ir->nodes[n].live = false;
    return WEFT_OK;
}

static weft_status gather_pieces(exchange_plan *x) {
    const int n_units = x->p->n_units;
    WEFT_TRY(divide_reads(x));
    WEFT_TRY(time_units(x));
    time_gatherings(x);
    for (int i = 0; i < x->n_gatherings; i++) WEFT_TRY(add_unit(x, &x->gatherings[i]));
    return replace_leaves(x, n_units);
}

/* ---- the order of all exchanges ---- */

/* The newest op whose result a sum of gradients adds up. The optimizer only packs and casts gradients, and
 * adds those of earlier micro-batches. */
static uint64_t moment_of(const weft_ir *ir, int n) {
    const ir_node *node = &ir->nodes[n];
    const bool adds =
        ir_is_compute(node) && node->from.tensor && node->from.tensor->stage == WEFT_STAGE_OPTIMIZER;
    uint64_t newest = node->kind == IR_PACK || adds ? 0 : node->from.serial;
    for (int i = 0; (node->kind == IR_PACK || adds) && i < node->n_in; i++) {
        const uint64_t moment = moment_of(ir, node->in[i].node);
        if (moment > newest) newest = moment;
    }
    return newest;
}

/* The number of the last gathering that the unit needs, directly or indirectly; -1: none. */
static weft_status last_needed(const exchange_plan *x, int unit, int *last) {
    const plan *p = x->p;
    const size_t n = (size_t)p->n_units + 1;
    int *stack = weft__array(p->ir->ctx, n, sizeof *stack), depth = 0;
    bool *seen = weft__array(p->ir->ctx, n, sizeof *seen);
    const weft_status status = stack && seen ? WEFT_OK : no_memory(x);
    *last = -1;
    if (status == WEFT_OK) stack[depth++] = unit;
    while (depth) {
        const int at = stack[--depth];
        for (int i = *last + 1; i < x->n_gatherings; i++)
            if (x->gatherings[i].unit == at) *last = i;
        for (int k = 0; k < p->units[at].n_after; k++) {
            const int before = p->units[at].after[k];
            if (!seen[before]) stack[depth++] = before;
            seen[before] = true;
        }
    }
    weft__free(p->ir->ctx, stack);
    weft__free(p->ir->ctx, seen);
    return status;
}

static int by_serial(const void *a, const void *b) {
    const exchange_turn *x = a, *y = b;
    return (x->serial > y->serial) - (x->serial < y->serial);
}

static int by_moment(const void *a, const void *b) {
    const exchange_turn *x = a, *y = b;
    if (x->moment != y->moment) return (x->moment > y->moment) - (x->moment < y->moment);
    if ((x->gathering < 0) != (y->gathering < 0)) return x->gathering < 0 ? 1 : -1;
    return x->gathering < 0 ? by_serial(a, b) : x->gathering - y->gathering;
}

/* The moment at which a gathering starts: when the one before is first read. */
static uint64_t moment_of_gathering(const exchange_plan *x, int i) {
    return i > 0 ? x->gatherings[i - 1].first : 0;
}

/* Sums keep the order in which they were recorded, and come after all gatherings that they need. */
static weft_status time_sums(exchange_plan *x) {
    uint64_t newest = 0;
    int last;
    qsort(x->turns, (size_t)x->n_turns, sizeof *x->turns, by_serial);
    for (int i = 0; i < x->n_turns && x->n_gatherings; i++) {
        exchange_turn *turn = &x->turns[i];
        const ir_node *heavy = &x->p->ir->nodes[x->p->units[turn->unit].heavy];
        turn->moment = moment_of(x->p->ir, heavy->in[WEFT_EXCHANGE_INPUT].node);
        WEFT_TRY(last_needed(x, turn->unit, &last));
        if (last >= 0 && moment_of_gathering(x, last) > turn->moment)
            turn->moment = moment_of_gathering(x, last);
        if (newest > turn->moment) turn->moment = newest;
        newest = turn->moment;
    }
    return WEFT_OK;
}

/* Numbers all exchanges, and gives each a hash of their order, by which processes notice that they differ. */
static void number_exchanges(const exchange_plan *x) {
    weft_hash hash;
    weft__hash_init(&hash);
    for (int i = 0; i < x->n_turns; i++) {
        const exchange_turn *turn = &x->turns[i];
        const weft_heavy_exchange *exchange = exchange_of(x->p, turn->unit);
        const gathering *g = turn->gathering < 0 ? NULL : &x->gatherings[turn->gathering];
        weft__hash_u64(&hash, g ? (uint64_t)x->pieces[g->piece]->from : UINT64_MAX);
        weft__hash_u64(&hash, (uint64_t)exchange->n);
        weft__hash_u64(&hash, (uint64_t)exchange->dtype);
    }
    for (int i = 0; i < x->n_turns; i++) {
        weft_heavy_exchange *exchange = exchange_of(x->p, x->turns[i].unit);
        exchange->number = i;
        exchange->count = x->n_turns;
        exchange->order = x->n_gatherings ? hash.a | 1 : 0;
    }
}

static weft_status order_exchanges(exchange_plan *x) {
    const plan *p = x->p;
    x->turns = weft__arena_alloc(&p->ir->arena, ((size_t)p->n_units + 1) * sizeof *x->turns);
    if (!x->turns) return no_memory(x);
    for (int i = 0; i < p->n_units; i++) {
        const weft_heavy_exchange *exchange = exchange_of(p, i);
        if (!exchange || exchange->gather) continue;
        x->turns[x->n_turns++] = (exchange_turn){
            .gathering = -1, .unit = i, .serial = p->ir->nodes[p->units[i].heavy].from.serial};
    }
    WEFT_TRY(time_sums(x));
    for (int i = 0; i < x->n_gatherings; i++)
        x->turns[x->n_turns++] = (exchange_turn){
            .moment = moment_of_gathering(x, i), .gathering = i, .unit = x->gatherings[i].unit};
    if (x->n_gatherings) qsort(x->turns, (size_t)x->n_turns, sizeof *x->turns, by_moment);
    number_exchanges(x);
    return WEFT_OK;
}

/* ---- starts and ends ---- */

/* Adds a unit that waits for the end of the exchange of unit `start`. All readers of the exchange run after
 * it, and it runs as late as the first of them. */
static weft_status add_wait(plan *p, int start) {
    plan_unit wait = {.heavy = -1,
                      .waits_for = p->units[start].heavy,
                      .from = -1,
                      .to_sink = -1,
                      .key = UINT64_MAX,
                      .stage = p->units[start].stage};
    const int at = p->n_units;
    for (int i = 0; i < at; i++)
        for (int k = 0; k < p->units[i].n_after; k++) {
            if (p->units[i].after[k] != start) continue;
            p->units[i].after[k] = at;
            if (p->units[i].key >= wait.key) continue;
            wait.key = p->units[i].key;
            if (exchange_of(p, start)->gather) p->units[start].stage = wait.stage = p->units[i].stage;
        }
    WEFT_TRY(weft__plan_add_unit(p, wait));
    return weft__plan_after(p, at, start);
}

/* The serial number of the newest value that a unit computes, besides those of the optimizer. 0: it has only
 * values of the optimizer. */
static uint64_t key_of_backward(const plan *p, const plan_unit *u) {
    uint64_t key = 0;
    if (u->heavy >= 0) return p->ir->nodes[u->heavy].from.serial;
    if (!u->kernel) return u->key;
    for (int a = 0; a < u->kernel->n_args; a++) {
        const ir_node *node = &p->ir->nodes[u->args[a]];
        const bool counts = u->kernel->args[a].written && node->from.tensor->stage != WEFT_STAGE_OPTIMIZER;
        if (counts && node->from.serial > key) key = node->from.serial;
    }
    return key;
}

/* Lets a unit run as soon as its inputs are there. So do the kernels by which the optimizer adds gradients of
 * earlier micro-batches, or casts them: they were recorded after the backward pass, but an exchange waits. */
static void hurry(plan *p, int unit) {
    plan_unit *u = &p->units[unit];
    uint64_t key = 0;
    for (int k = 0; k < u->n_after; k++) {
        plan_unit *before = &p->units[u->after[k]];
        if (before->waits_for < 0 && !exchange_of(p, u->after[k])) {
            const uint64_t backward = key_of_backward(p, before);
            if (!backward) hurry(p, u->after[k]);
            if (backward && backward < before->key) before->key = backward;
        }
        if (before->key > key) key = before->key;
    }
    u->key = key;
}

/* A sum starts as soon as its input is there, and ends before its first reader. If its input must be kept, it
 * ends before the next sum starts, so that there are never more than two such inputs: one that is exchanged,
 * and one that is computed. before: the exchange before, -1: none. wait: the unit that waits for the sum
 * before, -1: none. */
static weft_status start_sum(plan *p, int start, int before, int *wait) {
    plan_unit *u = &p->units[start];
    hurry(p, start);
    if (before >= 0 && p->units[before].key > u->key) u->key = p->units[before].key;
    if (*wait >= 0 && weft__plan_reads(p, &p->units[*wait], 0) >= 0) {
        p->units[*wait].key = u->key;
        WEFT_TRY(weft__plan_after(p, start, *wait));
    }
    *wait = p->n_units;
    return add_wait(p, start);
}

/* A gathering starts when the first reader of the one before runs, and ends before its own first reader.
 * wait: the unit that waits for the one before, -1: none. */
static weft_status start_gathering(plan *p, const gathering *g, int *wait) {
    p->units[g->unit].key = *wait < 0 ? 0 : p->units[*wait].key;
    if (*wait >= 0) WEFT_TRY(weft__plan_after(p, g->unit, *wait));
    *wait = p->n_units;
    WEFT_TRY(add_wait(p, g->unit));
    if (p->units[*wait].key == UINT64_MAX) p->units[*wait].key = g->from; /* nothing reads it */
    return WEFT_OK;
}

weft_status weft__plan_exchanges(plan *p) {
    exchange_plan x = {.p = p};
    int before = -1, sum = -1, gathered = -1;
    WEFT_TRY(list_pieces(&x));
    if (x.n_pieces) WEFT_TRY(gather_pieces(&x));
    WEFT_TRY(order_exchanges(&x));
    for (int i = 0; i < x.n_turns; i++) {
        const exchange_turn *turn = &x.turns[i];
        WEFT_TRY(turn->gathering < 0 ? start_sum(p, turn->unit, before, &sum)
                                     : start_gathering(p, &x.gatherings[turn->gathering], &gathered));
        WEFT_TRY(weft__plan_after(p, turn->unit, before)); /* in the order of their numbers */
        before = turn->unit;
    }
    return WEFT_OK;
}
