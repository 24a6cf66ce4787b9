/* Makes the plan of a program. Units are kernels, heavy operations and copies. The plan orders them, divides
 * the order into phases, decides which results are written straight into variables, and makes slots and
 * commands. Must not know: how a device runs a command. Read next: epilogue.c, plan_memory.c.
 *
 * A phase is the stretch between two barriers. Units of one phase may run at the same time:
 *
 *     a --> c --> d        phase 0: a b     phase 1: c     phase 2: d
 *     b -----' */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "compiler/passes/heap.h"
#include "compiler/passes/plan.h"

weft_status weft__plan_add_unit(plan *p, plan_unit u) {
    if (!weft__grow(p->ir->ctx, &p->units, &p->unit_capacity, (size_t)p->n_units, sizeof u))
        return weft__ir_failed(p->ir);
    p->units[p->n_units++] = u;
    return WEFT_OK;
}

/* ---- units ---- */

/* Makes a cluster of node n alone. */
static weft_status alone(weft_ir *ir, int n) {
    ir_node *node = &ir->nodes[n];
    if (ir->n_clusters == ir->cluster_capacity) {
        int capacity = 2 * ir->cluster_capacity;
        ir_cluster *clusters = weft__arena_alloc(&ir->arena, (size_t)capacity * sizeof *clusters);
        if (!clusters) return weft__ir_failed(ir);
        memcpy(clusters, ir->clusters, (size_t)ir->n_clusters * sizeof *clusters);
        ir->clusters = clusters;
        ir->cluster_capacity = capacity;
    }
    ir_cluster *cluster = &ir->clusters[ir->n_clusters];
    *cluster = (ir_cluster){.rank = node->rank, .full = node->numel, .rows = node->numel, .heavy = -1};
    memcpy(cluster->shape, node->shape, (size_t)node->rank * sizeof *node->shape);
    cluster->members = weft__arena_alloc(&ir->arena, sizeof *cluster->members);
    if (!cluster->members) return weft__ir_failed(ir);
    cluster->members[0] = n;
    cluster->n_members = 1;
    node->cluster = ir->n_clusters++;
    return WEFT_OK;
}

/* Stores a value whose views did not compose, in a kernel of its own if it has none. */
static weft_status store_late(weft_ir *ir, int n) {
    ir_node *node = &ir->nodes[n];
    if ((node->stored && node->cluster >= 0) || !node->live)
        return weft__fail(ir->ctx, WEFT_ERR_INTERNAL, "a view of %s cannot be expressed",
                          weft__op_name(node->op));
    node->stored = true;
    return node->cluster >= 0 ? WEFT_OK : alone(ir, n);
}

/* Stores what `user` sees of node n, row-major. Needed where the shape of the user's cluster cuts up the
 * view. */
static weft_status copy_late(weft_ir *ir, int user, int n) {
    for (int k = 0; k < ir->nodes[user].n_in; k++) {
        ir_edge edge = ir->nodes[user].in[k];
        if (edge.node != n || edge.view < 0) continue;
        bool reduces = ir->nodes[user].kind == IR_REDUCE;
        int rank = reduces ? ir->nodes[user].reduce.rank : ir->nodes[user].rank;
        int copy =
            weft__ir_copy(ir, edge, rank, reduces ? ir->nodes[user].reduce.shape : ir->nodes[user].shape);
        if (copy < 0) return weft__ir_failed(ir);
        ir->nodes[copy].live = ir->nodes[copy].stored = true;
        ir->nodes[copy].users = 1;
        ir->nodes[user].in[k] = (ir_edge){copy, -1};
        return alone(ir, copy);
    }
    return store_late(ir, n);
}

static bool cluster_stores(const weft_ir *ir, const ir_cluster *cluster) {
    for (int i = 0; i < cluster->n_members; i++)
        if (ir->nodes[cluster->members[i]].stored) return true;
    return false;
}

static uint64_t newest(const weft_ir *ir, const ir_cluster *cluster) {
    uint64_t serial = 0;
    for (int i = 0; i < cluster->n_members; i++)
        if (ir->nodes[cluster->members[i]].from.serial > serial)
            serial = ir->nodes[cluster->members[i]].from.serial;
    return serial;
}

/* The stage that recorded most of the elements that the cluster computes. */
static uint8_t main_stage(const weft_ir *ir, const ir_cluster *cluster) {
    int64_t elements[WEFT_STAGE_COUNT] = {0};
    for (int i = 0; i < cluster->n_members; i++) {
        const ir_node *node = &ir->nodes[cluster->members[i]];
        elements[node->from.tensor->stage] +=
            node->kind == IR_REDUCE ? ir->nodes[node->in[0].node].numel : node->numel;
    }
    int most = 0;
    for (int s = 1; s < WEFT_STAGE_COUNT; s++)
        if (elements[s] > elements[most]) most = s;
    return (uint8_t)most;
}

/* Lowers every cluster. Starts again if lowering finds a value that needs memory. */
static weft_status make_units(plan *p) {
    weft_ir *ir = p->ir;
    for (int c = 0; c < ir->n_clusters; c++) {
        const ir_cluster *cluster = &ir->clusters[c];
        if (cluster->gone) continue;
        plan_unit u = {.heavy = -1,
                       .waits_for = -1,
                       .from = -1,
                       .to_sink = -1,
                       .key = newest(ir, cluster),
                       .stage = main_stage(ir, cluster),
                       .chunk = cluster->chunk != 0};
        if (cluster->heavy >= 0) {
            u.heavy = cluster->heavy;
            if (ir->nodes[u.heavy].kind == IR_PACK) continue;
        } else {
            if (!cluster_stores(ir, cluster)) continue;
            int failed, user;
            WEFT_TRY(weft__ir_lower(ir, c, &p->program->keep, &u.kernel, &u.args, &failed, &user));
            if (failed >= 0) {
                WEFT_TRY(user >= 0 ? copy_late(ir, user, failed) : store_late(ir, failed));
                p->n_units = 0;
                c = -1;
                continue;
            }
        }
        WEFT_TRY(weft__plan_add_unit(p, u));
    }
    for (int i = 0; i < p->n_units; i++) {
        plan_unit *u = &p->units[i];
        if (u->heavy >= 0) ir->nodes[u->heavy].unit = i;
        for (int a = 0; u->kernel && a < u->kernel->n_args; a++)
            if (u->kernel->args[a].written) ir->nodes[u->args[a]].unit = i;
    }
    for (size_t n = 0; n < ir->n_nodes; n++)
        if (ir->nodes[n].live && ir->nodes[n].kind == IR_HEAVY_OUT)
            ir->nodes[n].unit = ir->nodes[ir->nodes[n].in[0].node].unit;
    return WEFT_OK;
}

weft_status weft__plan_after(plan *p, int later, int earlier) {
    plan_unit *u = &p->units[later];
    if (earlier < 0 || earlier == later) return WEFT_OK;
    for (int i = 0; i < u->n_after; i++)
        if (u->after[i] == earlier) return WEFT_OK;
    if (u->n_after == u->after_capacity) {
        int capacity = u->after_capacity ? 2 * u->after_capacity : 8;
        int *list = weft__arena_alloc(&p->ir->arena, (size_t)capacity * sizeof *list);
        if (!list) return weft__ir_failed(p->ir);
        if (u->n_after) memcpy(list, u->after, (size_t)u->n_after * sizeof *list);
        u->after = list;
        u->after_capacity = capacity;
    }
    u->after[u->n_after++] = earlier;
    return WEFT_OK;
}

/* Records that unit `later` reads node n. A pack is computed by all units that compute its parts. */
static weft_status reads(plan *p, int later, int n) {
    const ir_node *node = &p->ir->nodes[n];
    if (node->kind != IR_PACK) return weft__plan_after(p, later, node->unit);
    for (int i = 0; i < node->n_in; i++)
        WEFT_TRY(weft__plan_after(p, later, p->ir->nodes[node->in[i].node].unit));
    return WEFT_OK;
}

int weft__plan_matmul(const plan *p, const plan_unit *u) {
    return u->kernel && u->heavy >= 0 ? p->ir->nodes[u->heavy].heavy->as.matmul.product : -1;
}

/* Returns the i-th node that an exchange must keep until its end, although only its first command uses it:
 * the input of one whose result lies elsewhere, and the result of one that gathers. -1: none. */
static int kept_node(const plan *p, const plan_unit *wait, int i) {
    const ir_node *heavy = &p->ir->nodes[wait->waits_for];
    const weft_heavy_exchange *x = &heavy->heavy->as.exchange;
    if (i == 0) return x->part || x->gather ? heavy->in[WEFT_EXCHANGE_INPUT].node : -1;
    return i == 1 && x->gather ? wait->waits_for + 1 : -1; /* exchanges.c makes both one after the other */
}

int weft__plan_reads(const plan *p, const plan_unit *u, int i) {
    if (u->waits_for >= 0) return kept_node(p, u, i);
    if (u->heavy >= 0) {
        const ir_node *heavy = &p->ir->nodes[u->heavy];
        if (i < heavy->n_in) return heavy->in[i].node;
        i -= heavy->n_in;
    }
    const int product = weft__plan_matmul(p, u);
    for (int a = 0; u->kernel && a < u->kernel->n_args; a++)
        if (u->kernel->args[a].read && a != product && i-- == 0) return u->args[a];
    return i == 0 ? u->from : -1;
}

/* Each unit runs after the units that compute what it reads. */
static weft_status link_units(plan *p) {
    for (int i = 0; i < p->n_units; i++)
        for (int k = 0, n; (n = weft__plan_reads(p, &p->units[i], k)) >= 0; k++) WEFT_TRY(reads(p, i, n));
    return WEFT_OK;
}

/* ---- assignments ---- */

/* The bytes of a leaf in its storage, from first_byte up to end_byte. Bytes, since a block of floats may hold
 * complex variables. */
static int64_t first_byte(const weft_tensor *t) {
    return t->offset * (int64_t)weft_dtype_size((weft_dtype)t->dtype);
}
static int64_t end_byte(const weft_tensor *t) {
    return (t->offset + t->numel) * (int64_t)weft_dtype_size((weft_dtype)t->dtype);
}

static bool overlaps(const weft_tensor *a, const weft_tensor *b) {
    return a->leaf == WEFT_LEAF_STORAGE && b->leaf == WEFT_LEAF_STORAGE && a->storage == b->storage &&
           first_byte(a) < end_byte(b) && first_byte(b) < end_byte(a);
}

/* Is the variable among the first `most` nodes that the unit reads? */
static bool reads_among(const plan *p, const plan_unit *u, int most, const weft_tensor *variable) {
    for (int k = 0, n; k < most && (n = weft__plan_reads(p, u, k)) >= 0; k++)
        if (p->ir->nodes[n].kind == IR_LEAF && overlaps(p->ir->nodes[n].from.tensor, variable)) return true;
    return false;
}

static bool reads_variable(const plan *p, const plan_unit *u, const weft_tensor *variable) {
    return reads_among(p, u, INT_MAX, variable);
}

bool weft__plan_heavy_reads(const plan *p, const plan_unit *u, const weft_tensor *variable) {
    return reads_among(p, u, p->ir->nodes[u->heavy].n_in, variable);
}

/* Finds the units that must run after unit w, directly or indirectly. */
static weft_status reach(const plan *p, int w, bool **out) {
    bool *later = weft__arena_alloc(&p->ir->arena, (size_t)p->n_units + 1);
    if (!later) return weft__ir_failed(p->ir);
    for (bool grown = true; grown;) {
        grown = false;
        for (int i = 0; i < p->n_units; i++)
            for (int k = 0; !later[i] && k < p->units[i].n_after; k++)
                if (p->units[i].after[k] == w || later[p->units[i].after[k]]) grown = later[i] = true;
    }
    *out = later;
    return WEFT_OK;
}

bool weft__plan_same_index(const weft_kernel *kernel, int in, int out) {
    int store_view = -1;
    for (int i = 0; i < kernel->n_code; i++)
        if (kernel->code[i].kind == WEFT_INSTR_STORE && kernel->code[i].arg == out &&
            !weft__level_folded(kernel->code[i].level))
            store_view = kernel->code[i].view;
    if (store_view < 0) return false;
    for (int i = 0; i < kernel->n_code; i++) {
        const weft_instr *instr = &kernel->code[i], *from = instr;
        while (from->kind == WEFT_INSTR_STORE || from->kind == WEFT_INSTR_CAST) from = &kernel->code[from->a];
        if ((from->kind != WEFT_INSTR_LOAD && from->kind != WEFT_INSTR_GATHER) || from->arg != in) continue;
        if (instr->kind == WEFT_INSTR_STORE || from->kind == WEFT_INSTR_GATHER || from->view != store_view)
            return false;
    }
    return true;
}

int weft__plan_arg_of(const plan_unit *u, int node) {
    for (int a = 0; a < u->kernel->n_args; a++)
        if (u->args[a] == node) return a;
    return -1;
}

/* Does the kernel read the variable only at the index at which it stores `value`, which will replace it? */
static bool same_index_of(const plan *p, const plan_unit *u, const weft_tensor *variable, int value) {
    for (int a = 0; a < u->kernel->n_args; a++) {
        const ir_node *node = &p->ir->nodes[u->args[a]];
        if (node->kind != IR_LEAF || !overlaps(node->from.tensor, variable)) continue;
        if (u->kernel->n_reduce || first_byte(node->from.tensor) != first_byte(variable) ||
            end_byte(node->from.tensor) != end_byte(variable) ||
            !weft__plan_same_index(u->kernel, a, weft__plan_arg_of(u, value)))
            return false;
    }
    return true;
}

/* Can the unit meet a bad index or divisor? Then it must run before any variable changes, so that a fault
 * leaves all variables as they were. (The slice assignment of a cache checks its offset before it writes.) */
static bool can_fault(const plan *p, const plan_unit *u) {
    if (u->heavy >= 0) return weft__heavy_class(p->ir->nodes[u->heavy].heavy)->faults;
    for (int i = 0; u->kernel && i < u->kernel->n_code; i++)
        if (weft__instr_can_fault(&u->kernel->code[i])) return true;
    return false;
}

/* Decides whether the unit that computes the value writes it straight into the variable. It may, if all units
 * that read the old value, and all that can fault, can run before it. Then it is ordered after them.
 * Otherwise place_sinks adds a copy. */
static weft_status try_in_place(plan *p, ir_sink *sink) {
    const ir_node *node = &p->ir->nodes[sink->node];
    int w = node->unit;
    sink->in_place = false;
    if (w < 0 || node->pack.node >= 0 || node->kind == IR_PACK) return WEFT_OK;
    plan_unit *u = &p->units[w];
    if (u->kernel && (can_fault(p, u) || !same_index_of(p, u, sink->variable, sink->node))) return WEFT_OK;
    weft_heavy *heavy = u->heavy >= 0 ? p->ir->nodes[u->heavy].heavy : NULL;
    bool updates = false; /* it updates its own base, a cache; faults of other units do not matter to it */
    if (heavy) {
        const int base = weft__heavy_class(heavy)->assigns ? weft__heavy_base(heavy) : -1;
        const ir_node *x = base < 0 ? NULL : &p->ir->nodes[p->ir->nodes[u->heavy].in[base].node];
        updates = x && x->kind == IR_LEAF && x->from.tensor->storage == sink->variable->storage &&
                  first_byte(x->from.tensor) == first_byte(sink->variable);
        if (!updates && (can_fault(p, u) || weft__plan_heavy_reads(p, u, sink->variable))) return WEFT_OK;
    }
    bool *later = NULL;
    WEFT_TRY(reach(p, w, &later));
    for (int i = 0; i < p->n_units; i++)
        if (later[i] &&
            ((!updates && can_fault(p, &p->units[i])) || reads_variable(p, &p->units[i], sink->variable)))
            return WEFT_OK;
    for (int i = 0; i < p->n_units; i++)
        if (i != w &&
            ((!updates && can_fault(p, &p->units[i])) || reads_variable(p, &p->units[i], sink->variable)))
            WEFT_TRY(weft__plan_after(p, w, i));
    if (updates) weft__heavy_class(heavy)->take_base(heavy);
    sink->in_place = u->sink = true;
    return WEFT_OK;
}

/* Decides for each assignment: written in place, or copied at the end. */
static weft_status place_sinks(plan *p) {
    weft_ir *ir = p->ir;
    for (size_t s = 0; s < ir->sinks.count; s++) WEFT_TRY(try_in_place(p, &ir->sinks.list[s]));
    int values = p->n_units;
    for (size_t s = 0; s < ir->sinks.count; s++) { /* the others are copied after everything else */
        if (ir->sinks.list[s].in_place) continue;
        WEFT_TRY(weft__plan_add_unit(p, (plan_unit){.heavy = -1,
                                                    .waits_for = -1,
                                                    .from = ir->sinks.list[s].node,
                                                    .to_sink = (int)s,
                                                    .key = UINT64_MAX,
                                                    .sink = true,
                                                    .stage = ir->sinks.list[s].value->stage}));
        for (int i = 0; i < values; i++) WEFT_TRY(weft__plan_after(p, p->n_units - 1, i));
    }
    return WEFT_OK;
}

/* ---- order and phases ---- */

/* Returns the rank of each unit: of several units that are ready, the one recorded first runs first. NULL if
 * memory is gone. */
static int *rank_units(const plan *p) {
    ir_keyed *list = weft__arena_alloc(&p->ir->arena, (size_t)(p->n_units + 1) * sizeof *list);
    int *rank = weft__arena_alloc(&p->ir->arena, (size_t)(p->n_units + 1) * sizeof *rank);
    if (!list || !rank) return NULL;
    for (int i = 0; i < p->n_units; i++) list[i] = (ir_keyed){p->units[i].key, i};
    qsort(list, (size_t)p->n_units, sizeof *list, weft__by_key);
    for (int i = 0; i < p->n_units; i++) rank[list[i].number] = i;
    return rank;
}

/* Lists by unit the units that run after it: next[first[i]..first[i + 1]). */
static weft_status list_later(const plan *p, int **first, int **next) {
    weft_arena *arena = &p->ir->arena;
    size_t edges = 0;
    for (int i = 0; i < p->n_units; i++) edges += (size_t)p->units[i].n_after;
    *first = weft__arena_alloc(arena, (size_t)(p->n_units + 2) * sizeof **first);
    *next = weft__arena_alloc(arena, (edges + 1) * sizeof **next);
    if (!*first || !*next) return weft__ir_failed(p->ir);
    int *end = *first + 1; /* end of each unit's list, once it is filled */
    for (int i = 0; i < p->n_units; i++)
        for (int k = 0; k < p->units[i].n_after; k++) end[p->units[i].after[k] + 1]++;
    for (int i = 0; i < p->n_units; i++) end[i + 1] += end[i];
    for (int i = 0; i < p->n_units; i++)
        for (int k = 0; k < p->units[i].n_after; k++) (*next)[end[p->units[i].after[k]]++] = i;
    return WEFT_OK;
}

weft_status weft__plan_order(plan *p) {
    const size_t n = (size_t)p->n_units + 1;
    int64_t *ready = weft__arena_alloc(&p->ir->arena, n * sizeof *ready); /* a heap */
    int *waits = weft__arena_alloc(&p->ir->arena, n * sizeof *waits), *first, *next, count = 0, at = 0;
    const int *rank = rank_units(p);
    p->order = weft__arena_alloc(&p->ir->arena, n * sizeof *p->order);
    if (!p->order || !ready || !waits || !rank) return weft__ir_failed(p->ir);
    WEFT_TRY(list_later(p, &first, &next));
    for (int i = 0; i < p->n_units; i++)
        if (!(waits[i] = p->units[i].n_after)) weft__heap_push(ready, count++, weft__ranked(rank[i], i));
    while (count) {
        const int best = weft__ranked_value(weft__heap_pop(ready, count--));
        p->order[at++] = best;
        for (int k = first[best]; k < first[best + 1]; k++)
            if (!--waits[next[k]]) weft__heap_push(ready, count++, weft__ranked(rank[next[k]], next[k]));
    }
    return at == p->n_units ? WEFT_OK
                            : weft__fail(p->ir->ctx, WEFT_ERR_INTERNAL,
                                         "the kernels of a program depend on each other in a cycle");
}

static bool runs_after(const plan_unit *u, int earlier) {
    for (int k = 0; k < u->n_after; k++)
        if (u->after[k] == earlier) return true;
    return false;
}

/* Moves each forward unit of a chunk to just before its first reader. A chunk is, for example, the logits of
 * some of the tokens. Its gradients need no other chunk, so the memory of the chunk before is free by
 * then. */
static void delay_chunks(plan *p) {
    for (int at = p->n_units - 1; at >= 0; at--) {
        const int i = p->order[at];
        int to = at + 1;
        if (!p->units[i].chunk || p->units[i].stage > WEFT_STAGE_LOSS) continue;
        while (to < p->n_units && !runs_after(&p->units[p->order[to]], i)) to++;
        if (to == p->n_units) continue; /* nothing reads it */
        for (int k = at; k + 1 < to; k++) p->order[k] = p->order[k + 1];
        p->order[to - 1] = i;
        p->units[i].alone = true;
    }
}

/* Numbers the phases. A unit begins a new phase if it needs a unit of the current one. */
static void find_phases(plan *p) {
    int phase = 0;
    for (int at = 0; at < p->n_units; at++) {
        plan_unit *u = &p->units[p->order[at]];
        for (int k = 0; k < u->n_after; k++)
            if (p->units[u->after[k]].phase == phase) phase++;
        if (u->alone) phase++;
        u->phase = phase;
    }
}

/* ---- slots ---- */

static size_t scalar_bytes(const weft_tensor *t) { return t->leaf == WEFT_LEAF_RANDOM ? 32 : 8; }

/* Returns the entry of a tensor, or a storage, in an index over leaves. -1: none. */
static int entry_of(const ir_index *index, const void *what) {
    size_t probe = 0; /* equal hashes are equal pointers: mix64 is a bijection */
    return weft__index_next(index, weft__mix64((uint64_t)(uintptr_t)what), &probe);
}

static bool add_entry(plan *p, ir_index *index, const void *what, int entry) {
    return weft__index_add(p->ir->ctx, index, weft__mix64((uint64_t)(uintptr_t)what), entry);
}

static weft_status index_leaves(plan *p) {
    for (size_t i = 0; p->walk && i < p->walk->n_leaves; i++)
        if (!add_entry(p, &p->walked, p->walk->leaves[i], (int)i)) return weft__ir_failed(p->ir);
    return WEFT_OK;
}

/* Returns the leaf entry of a tensor and makes it at the first use. -1 if memory is gone. */
static int leaf_of(plan *p, const weft_tensor *t) {
    weft_program *program = p->program;
    const int walk = entry_of(&p->walked, t), known = entry_of(&p->leaves, t);
    if (known >= 0) return known;
    program_leaf leaf = {
        .fixed = walk >= 0 ? NULL : (weft_tensor *)(uintptr_t)t, .walk = walk, .slot = SLOT_SCALARS};
    if (t->leaf == WEFT_LEAF_STORAGE) {
        leaf.slot = entry_of(&p->storages, t->storage);
        if (leaf.slot < 0) {
            leaf.slot = program->commands.n_slots++;
            if (!add_entry(p, &p->storages, t->storage, leaf.slot)) return -1;
        }
    } else {
        leaf.offset = (int64_t)program->scalars.bytes;
        program->scalars.bytes += (scalar_bytes(t) + 15) & ~(size_t)15;
    }
    if (!add_entry(p, &p->leaves, t, program->leaves.count)) return -1;
    program->leaves.list[program->leaves.count] = leaf;
    return program->leaves.count++;
}

/* The place of a leaf that has its entry. */
static ir_place place_of_leaf(const plan *p, const weft_tensor *t) {
    const program_leaf *leaf = &p->program->leaves.list[entry_of(&p->leaves, t)];
    bool storage = t->leaf == WEFT_LEAF_STORAGE;
    return (ir_place){leaf->slot, storage ? first_byte(t) : leaf->offset};
}

/* Gives leaves, variables and outputs their slots. */
static weft_status place_leaves(plan *p) {
    weft_ir *ir = p->ir;
    weft_program *program = p->program;
    size_t most = ir->sinks.count + 1;
    for (size_t n = 0; n < ir->n_nodes; n++) most += ir->nodes[n].kind == IR_LEAF;
    program->leaves.list = weft__arena_alloc(&program->keep, most * sizeof *program->leaves.list);
    program->sink_leaf =
        weft__arena_alloc(&program->keep, (ir->sinks.count + 1) * sizeof *program->sink_leaf);
    program->outputs.slots =
        weft__arena_alloc(&program->keep, (ir->outputs.count + 1) * sizeof *program->outputs.slots);
    if (!program->leaves.list || !program->sink_leaf || !program->outputs.slots) return weft__ir_failed(ir);
    program->commands.n_slots = SLOT_FIRST;
    program->commands.scalars = SLOT_SCALARS;
    WEFT_TRY(index_leaves(p));
    for (size_t n = 0; n < ir->n_nodes; n++) {
        if (!ir->nodes[n].live || ir->nodes[n].kind != IR_LEAF || ir->nodes[n].within >= 0) continue;
        if (leaf_of(p, ir->nodes[n].from.tensor) < 0) return weft__ir_failed(ir);
        ir->nodes[n].place = place_of_leaf(p, ir->nodes[n].from.tensor);
    }
    for (size_t s = 0; s < ir->sinks.count; s++) {
        ir_sink *sink = &ir->sinks.list[s];
        if (leaf_of(p, sink->variable) < 0) return weft__ir_failed(ir);
        ir_place place = place_of_leaf(p, sink->variable);
        program->sink_leaf[s] = leaf_of(p, sink->variable);
        if (sink->in_place) ir->nodes[sink->node].place = place;
    }
    for (size_t i = 0; i < ir->outputs.count; i++) {
        program->outputs.slots[i] = program->commands.n_slots++;
        ir->nodes[ir->outputs.nodes[i]].place = (ir_place){program->outputs.slots[i], 0};
    }
    program->outputs.count = ir->outputs.count;
    return WEFT_OK;
}

/* Returns the place of node n: that of its alias, or its own place in a pack. */
static ir_place place_of(const plan *p, int n) {
    while (p->alias[n] >= 0) n = p->alias[n];
    const ir_node *node = &p->ir->nodes[n];
    const int64_t size = (int64_t)weft_dtype_size((weft_dtype)node->dtype);
    if (node->within >= 0) {
        const ir_place piece = place_of(p, node->within);
        return (ir_place){piece.slot, piece.offset + node->imm_i * size};
    }
    if (node->pack.node < 0) return node->place;
    const ir_node *pack = &p->ir->nodes[node->pack.node];
    ir_place place = place_of(p, node->pack.node);
    const int i = p->part[n];
    place.offset += pack->offsets[i] * (int64_t)weft_dtype_size((weft_dtype)pack->dtype);
    return place;
}

static weft_status place_parts(plan *p) {
    weft_ir *ir = p->ir;
    ir_place *places = weft__arena_alloc(&ir->arena, (ir->n_nodes + 1) * sizeof *places);
    p->part = weft__arena_alloc(&ir->arena, (ir->n_nodes + 1) * sizeof *p->part);
    if (!places || !p->part) return weft__ir_failed(ir);
    for (size_t n = 0; n < ir->n_nodes; n++)
        for (int i = ir->nodes[n].n_in - 1; ir->nodes[n].kind == IR_PACK && i >= 0; i--)
            if (ir->nodes[ir->nodes[n].in[i].node].pack.node == (int)n) p->part[ir->nodes[n].in[i].node] = i;
    for (size_t n = 0; n < ir->n_nodes; n++) places[n] = place_of(p, (int)n);
    for (size_t n = 0; n < ir->n_nodes; n++) ir->nodes[n].place = places[n];
    return WEFT_OK;
}

/* ---- commands ---- */

static weft_operand operand_of(const weft_ir *ir, int n, int view) {
    const ir_node *node = &ir->nodes[n];
    int64_t first = view >= 0 ? ir->views[view].map[0].offset : 0;
    return (weft_operand){node->place.slot,
                          node->place.offset + first * (int64_t)weft_dtype_size((weft_dtype)node->dtype)};
}

static weft_operand *new_operands(plan *p, weft_command *command, int n) {
    command->n_operands = n;
    return command->operands =
               weft__arena_alloc(&p->program->keep, (size_t)(n + 1) * sizeof *command->operands);
}

static weft_status heavy_command(plan *p, const plan_unit *u, weft_command *command) {
    weft_ir *ir = p->ir;
    const ir_node *heavy = &ir->nodes[u->heavy];
    int outputs = weft__heavy_results(heavy->heavy);
    const bool sums = heavy->heavy->kind == WEFT_HEAVY_MATMUL && heavy->heavy->as.matmul.sums;
    if (u->kernel) outputs = u->kernel->n_args;
    outputs += sums;
    weft_operand *to = new_operands(p, command, heavy->n_in + outputs);
    if (!to) return weft__ir_failed(ir);
    command->kind = WEFT_COMMAND_HEAVY;
    command->heavy = *heavy->heavy;
    for (int i = 0; i < heavy->n_in; i++) to[i] = operand_of(ir, heavy->in[i].node, heavy->in[i].view);
    for (int a = 0; u->kernel && a < u->kernel->n_args; a++)
        to[heavy->n_in + a] = ir->nodes[u->args[a]].place.slot < 0
                                  ? to[0] /* stored nowhere, so any place will do */
                                  : operand_of(ir, u->args[a], -1);
    for (int n = p->first_out[u->heavy]; n >= 0; n = p->next_out[n]) {
        const ir_node *out = &ir->nodes[n];
        if (u->kernel && out->imm_i == 0) continue; /* an argument of the epilogue */
        weft_operand first = operand_of(ir, n, -1), *results = to + heavy->n_in;
        results += sums && out->imm_i ? outputs - 1 : out->imm_i;
        results[0] = first;
        for (int i = 1; i < out->n_results; i++)
            results[i] = (weft_operand){first.slot,
                                        first.offset + out->offsets[i] *
                                                           (int64_t)weft_dtype_size((weft_dtype)out->dtype)};
    }
    return WEFT_OK;
}

static weft_status make_command(plan *p, const plan_unit *u, weft_command *command) {
    weft_ir *ir = p->ir;
    command->sink = u->sink;
    if (u->heavy >= 0) return heavy_command(p, u, command);
    if (u->waits_for >= 0) {
        command->kind = WEFT_COMMAND_WAIT;
        command->heavy = *ir->nodes[u->waits_for].heavy;
        return WEFT_OK;
    }
    if (u->kernel) {
        weft_operand *to = new_operands(p, command, u->kernel->n_args);
        if (!to) return weft__ir_failed(ir);
        command->kind = WEFT_COMMAND_KERNEL;
        command->kernel = u->kernel;
        for (int a = 0; a < u->kernel->n_args; a++) to[a] = operand_of(ir, u->args[a], -1);
        p->program->n_kernels++;
        return WEFT_OK;
    }
    weft_operand *to = new_operands(p, command, 2);
    if (!to) return weft__ir_failed(ir);
    const ir_sink *sink = &ir->sinks.list[u->to_sink];
    ir_place place = place_of_leaf(p, sink->variable);
    command->kind = WEFT_COMMAND_COPY;
    command->bytes = sink->variable->numel * (int64_t)weft_dtype_size((weft_dtype)sink->variable->dtype);
    to[0] = operand_of(ir, u->from, -1);
    to[1] = (weft_operand){place.slot, place.offset};
    p->program->n_copies++;
    return WEFT_OK;
}

/* Adds commands that zero the gaps between the parts of a pack. */
static weft_status zero_gaps(plan *p, const ir_node *pack, weft_command *list, int *count) {
    int64_t size = (int64_t)weft_dtype_size((weft_dtype)pack->dtype), end = 0;
    if (pack->imm_i != IR_PACK_IN_TURN) return WEFT_OK; /* the parts leave no gaps */
    for (int i = 0; i <= pack->n_in; i++) {
        int64_t start = i < pack->n_in ? pack->offsets[i] : pack->numel;
        if (start > end) {
            weft_command *command = &list[(*count)++];
            weft_operand *to = new_operands(p, command, 1);
            if (!to) return weft__ir_failed(p->ir);
            command->kind = WEFT_COMMAND_ZERO;
            command->bytes = (start - end) * size;
            to[0] = (weft_operand){pack->place.slot, pack->place.offset + end * size};
        }
        if (i < pack->n_in) end = start + p->ir->nodes[pack->in[i].node].numel;
    }
    return WEFT_OK;
}

/* Zeroes the gaps of the packs whose memory is first used in this phase. */
static weft_status begin_packs(plan *p, const int *packs, int phase, weft_command *list, int *count) {
    for (int i = 0; packs[i] >= 0; i++)
        if (p->first_phase[weft__plan_holder(p, packs[i])] == phase)
            WEFT_TRY(zero_gaps(p, &p->ir->nodes[packs[i]], list, count));
    return WEFT_OK;
}

/* Returns the list of packs, -1 after the last, and links the outputs of each heavy node. Commands use both.
 * NULL if memory is gone. */
static int *list_parts(plan *p) {
    weft_ir *ir = p->ir;
    int *packs = weft__arena_alloc(&ir->arena, (ir->n_nodes + 1) * sizeof *packs), count = 0;
    p->first_out = weft__arena_alloc(&ir->arena, (ir->n_nodes + 1) * sizeof *p->first_out);
    p->next_out = weft__arena_alloc(&ir->arena, (ir->n_nodes + 1) * sizeof *p->next_out);
    if (!packs || !p->first_out || !p->next_out) return NULL;
    for (size_t n = 0; n < ir->n_nodes; n++) {
        p->first_out[n] = -1;
        if (ir->nodes[n].live && ir->nodes[n].kind == IR_PACK) packs[count++] = (int)n;
    }
    packs[count] = -1;
    for (size_t n = ir->n_nodes; n-- > 0;) {
        if (!ir->nodes[n].live || ir->nodes[n].kind != IR_HEAVY_OUT) continue;
        int heavy = ir->nodes[n].in[0].node;
        p->next_out[n] = p->first_out[heavy];
        p->first_out[heavy] = (int)n;
    }
    return packs;
}

static weft_status make_commands(plan *p) {
    weft_ir *ir = p->ir;
    weft_program *program = p->program;
    size_t most = (size_t)p->n_units + 1;
    for (size_t n = 0; n < ir->n_nodes; n++)
        if (ir->nodes[n].kind == IR_PACK) most += (size_t)ir->nodes[n].n_in + 1;
    weft_command *list = weft__arena_alloc(&program->keep, most * sizeof *list);
    program->stages = weft__arena_alloc(&program->keep, most);
    const int *packs = list_parts(p);
    if (!list || !program->stages || !packs) return weft__ir_failed(ir);
    int count = 0;
    for (int at = 0, phase = -1; at < p->n_units; at++) {
        const plan_unit *u = &p->units[p->order[at]];
        int first = count;
        if (u->phase != phase) WEFT_TRY(begin_packs(p, packs, u->phase, list, &count));
        memset(program->stages + first, u->stage, (size_t)(count - first + 1));
        p->units[p->order[at]].command = count;
        WEFT_TRY(make_command(p, u, &list[count++]));
        list[first].after = u->phase != phase && at > 0;
        phase = u->phase;
    }
    program->commands.count = count;
    program->commands.list = list;
    return WEFT_OK;
}

static weft_status run_plan(plan *p) {
    WEFT_TRY(make_units(p));
    WEFT_TRY(link_units(p));
    if (p->ir->fuse) WEFT_TRY(weft__plan_epilogues(p));
    WEFT_TRY(weft__plan_exchanges(p));
    WEFT_TRY(place_sinks(p));
    WEFT_TRY(weft__plan_order(p));
    delay_chunks(p);
    find_phases(p);
    WEFT_TRY(place_leaves(p));
    WEFT_TRY(weft__plan_memory(p));
    WEFT_TRY(place_parts(p));
    WEFT_TRY(make_commands(p));
    return weft__plan_name_regions(p);
}

weft_status weft__plan(weft_ir *ir, weft_program *program, const weft_walk *walk) {
    plan p = {.ir = ir, .program = program, .walk = walk};
    weft_status status = run_plan(&p);
    weft__free(ir->ctx, p.units);
    weft__index_free(ir->ctx, &p.walked);
    weft__index_free(ir->ctx, &p.leaves);
    weft__index_free(ir->ctx, &p.storages);
    return status;
}
