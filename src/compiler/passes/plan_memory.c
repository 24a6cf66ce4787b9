/* Gives the values of a plan their places in memory. Lifetimes are counted in phases, since commands of one
 * phase may run at the same time. The arena is packed greedily: the largest value first, each at the lowest
 * offset that is free over its lifetime (docs/design/014-one-arena.md). Must not know: what commands compute.
 * Read next: program.h.
 *
 *     offset
 *       ^
 *       |  +-----------+             a region of the arena is a rectangle: bytes x phases
 *       |  |     c     |
 *       |  +-----+-----+-----+
 *       |  |  a  |     b     |
 *       +--+-----+-----------+---> phase */
#include <stdlib.h>
#include <string.h>
#include "compiler/passes/plan.h"

/* ---- lifetimes ---- */

int weft__plan_holder(const plan *p, int n) {
    for (;;) {
        if (p->alias[n] >= 0)
            n = p->alias[n];
        else if (p->ir->nodes[n].pack.node >= 0)
            n = p->ir->nodes[n].pack.node;
        else if (p->ir->nodes[n].within >= 0)
            n = p->ir->nodes[n].within;
        else
            return n;
    }
}

/* Does node n have a region of the arena? Call it after lifetimes are known. */
static bool in_arena(const plan *p, int n) {
    const ir_node *node = &p->ir->nodes[n];
    return node->live && node->stored && node->place.slot < 0 && node->pack.node < 0 &&
           p->first_phase[n] >= 0;
}

static void live_at(plan *p, int n, int phase) {
    n = weft__plan_holder(p, n);
    if (p->first_phase[n] < 0 || phase < p->first_phase[n]) p->first_phase[n] = phase;
    if (phase > p->last_phase[n]) p->last_phase[n] = phase;
}

/* The lifetime of a value reaches from the phase that computes it to the last phase that reads it. */
static void find_lifetimes(plan *p) {
    weft_ir *ir = p->ir;
    for (size_t n = 0; n < ir->n_nodes; n++) p->first_phase[n] = p->last_phase[n] = -1;
    for (int i = 0; i < p->n_units; i++)
        for (int k = 0, n; (n = weft__plan_reads(p, &p->units[i], k)) >= 0; k++)
            live_at(p, n, p->units[i].phase);
    for (size_t n = 0; n < ir->n_nodes; n++)
        if (ir->nodes[n].live && ir->nodes[n].stored && ir->nodes[n].unit >= 0)
            live_at(p, (int)n, p->units[ir->nodes[n].unit].phase);
}

static int64_t exact_bytes(const ir_node *node) {
    return node->numel * (int64_t)weft_dtype_size((weft_dtype)node->dtype);
}
static int64_t node_bytes(const ir_node *node) { return (exact_bytes(node) + 63) & ~INT64_C(63); }

/* ---- splitting phases ---- */

/* A barrier must save at least so many bytes, and at least 1/SPLIT_SHARE of the memory at the peak. */
enum { SPLIT_BYTES = 4 << 20, SPLIT_SHARE = 64 };

typedef struct pressure {
    int64_t *live;        /* bytes in use, by phase; differences at first */
    int64_t *born, *dead; /* bytes, by unit: that it begins to use, that are free after it */
    int *reader;          /* by node: the unit that reads it in its last phase, -1: none, -2: several */
} pressure;

/* Fills in the pressure and returns the phase that needs most memory. */
static int plan_memory_measure(const plan *p, const pressure *m) {
    weft_ir *ir = p->ir;
    int phases = p->units[p->order[p->n_units - 1]].phase + 1, worst = 0;
    memset(m->live, 0, (size_t)(phases + 1) * sizeof *m->live);
    memset(m->born, 0, (size_t)p->n_units * sizeof *m->born);
    memset(m->dead, 0, (size_t)p->n_units * sizeof *m->dead);
    for (size_t n = 0; n < ir->n_nodes; n++) m->reader[n] = -1;
    for (int i = 0; i < p->n_units; i++)
        for (int k = 0, n; (n = weft__plan_reads(p, &p->units[i], k)) >= 0; k++) {
            n = weft__plan_holder(p, n);
            if (p->units[i].phase == p->last_phase[n] && m->reader[n] != i)
                m->reader[n] = m->reader[n] == -1 ? i : -2;
        }
    for (int n = 0; n < (int)ir->n_nodes; n++) {
        int unit = ir->nodes[n].unit, in = weft__plan_holder(p, n);
        if (unit >= 0 && in_arena(p, in) && ir->nodes[in].kind != IR_PACK &&
            p->units[unit].phase == p->first_phase[in])
            m->born[unit] += node_bytes(&ir->nodes[in]);
        if (!in_arena(p, n)) continue;
        int64_t bytes = node_bytes(&ir->nodes[n]);
        m->live[p->first_phase[n]] += bytes;
        m->live[p->last_phase[n] + 1] -= bytes;
        if (m->reader[n] >= 0) m->dead[m->reader[n]] += bytes;
    }
    for (int f = 1; f < phases; f++) {
        m->live[f] += m->live[f - 1];
        if (m->live[f] > m->live[worst]) worst = f;
    }
    return worst;
}

/* Splits a phase in two. Units that free more memory than they begin to use come first. False if this saves
 * too little. */
static bool split(plan *p, const pressure *m, int phase, int *moved) {
    int from = 0, to, n = 0;
    int64_t ends = 0, begins = 0;
    while (p->units[p->order[from]].phase < phase) from++;
    for (to = from; to < p->n_units && p->units[p->order[to]].phase == phase; to++) {
        int i = p->order[to];
        if (m->dead[i] > m->born[i])
            ends += m->dead[i];
        else
            begins += m->born[i];
    }
    int64_t saved = ends < begins ? ends : begins;
    if (saved < SPLIT_BYTES || saved < m->live[phase] / SPLIT_SHARE) return false;
    for (int second = 0; second < 2; second++)
        for (int at = from; at < to; at++) {
            int i = p->order[at];
            if ((m->dead[i] > m->born[i]) == second) continue;
            moved[n++] = i;
            p->units[i].phase += second;
        }
    memcpy(p->order + from, moved, (size_t)n * sizeof *moved);
    for (int at = to; at < p->n_units; at++) p->units[p->order[at]].phase++;
    return true;
}

/* Splits phases at the peak. For example, the two matmuls of a layer's backward pass are independent, but one
 * of them is the last reader of the layer's input. If the other comes after it, its result can use that
 * memory. At the peak this is worth a barrier. */
static weft_status relieve(plan *p) {
    weft_arena *arena = &p->ir->arena;
    size_t units = (size_t)p->n_units + 1;
    pressure m = {.live = weft__arena_alloc(arena, 2 * units * sizeof *m.live), /* each split adds a phase */
                  .born = weft__arena_alloc(arena, units * sizeof *m.born),
                  .dead = weft__arena_alloc(arena, units * sizeof *m.dead),
                  .reader = weft__arena_alloc(arena, (p->ir->n_nodes + 1) * sizeof *m.reader)};
    int *moved = weft__arena_alloc(arena, units * sizeof *moved);
    if (!m.live || !m.born || !m.dead || !m.reader || !moved) return weft__ir_failed(p->ir);
    while (p->n_units && split(p, &m, plan_memory_measure(p, &m), moved)) find_lifetimes(p);
    return WEFT_OK;
}

/* Merges two arguments of a kernel into one that is read and written. */
static void merge_args(const plan *p, plan_unit *u, int in, int out) {
    weft_kernel *kernel = u->kernel;
    if (weft__plan_matmul(p, u) > in) p->ir->nodes[u->heavy].heavy->as.matmul.product--;
    kernel->args[out].read = true;
    kernel->n_args--;
    for (int a = in; a < kernel->n_args; a++) {
        kernel->args[a] = kernel->args[a + 1];
        u->args[a] = u->args[a + 1];
    }
    for (int i = 0; i < kernel->n_code; i++) {
        int *arg = &kernel->code[i].arg;
        if (*arg == in) *arg = out;
        if (*arg > in) --*arg;
    }
}

/* Is the unit the last to read node n? */
static bool dies_in(const plan *p, int n, const plan_unit *u, const int *last_readers) {
    return in_arena(p, n) && p->last_phase[n] == u->phase && last_readers[n] == 1;
}

/* Returns the argument whose memory `out` may take over, since nothing reads the argument after the unit. -1:
 * none. */
static int dying_arg(const plan *p, const plan_unit *u, int out, const int *last_readers) {
    const weft_kernel *kernel = u->kernel;
    const ir_node *value = &p->ir->nodes[u->args[out]];
    if (!kernel->args[out].written || kernel->args[out].read || value->place.slot >= 0) return -1;
    for (int in = 0; in < kernel->n_args; in++) {
        int n = u->args[in];
        const ir_node *node = &p->ir->nodes[n];
        if (!kernel->args[in].read || kernel->args[in].written || !dies_in(p, n, u, last_readers)) continue;
        if (node->numel == value->numel && node->dtype == value->dtype &&
            weft__plan_same_index(kernel, in, out))
            return in;
    }
    return -1;
}

/* Makes value `to` the alias of `from`: it lies in the same memory. */
static void inherit(plan *p, int to, int from) {
    p->alias[from] = to;
    live_at(p, to, p->first_phase[from]);
    p->first_phase[from] = p->last_phase[from] = -1;
}

/* Lets the result of a heavy operation take over the memory of its base, if nothing reads the base later. */
static void hand_base(plan *p, const plan_unit *u, const int *last_readers) {
    const ir_node *node = &p->ir->nodes[u->heavy];
    const int base = weft__heavy_base(node->heavy), from = base < 0 ? -1 : node->in[base].node;
    if (base < 0 || !weft__heavy_class(node->heavy)->hands) return;
    int to = 0; /* the result comes after the operands */
    while (p->ir->nodes[to].kind != IR_HEAVY_OUT || p->ir->nodes[to].in[0].node != u->heavy ||
           !p->ir->nodes[to].live)
        to++;
    if (p->ir->nodes[to].place.slot >= 0 || !dies_in(p, from, u, last_readers)) return;
    inherit(p, to, from);
    weft__heavy_class(node->heavy)->take_base(node->heavy);
}

/* If nothing reads a value after a kernel, a value that this kernel computes elementwise takes over its
 * memory. For example, the gradient of an activation's input takes the memory of the gradient of its
 * result. */
static weft_status hand_over(plan *p) {
    weft_ir *ir = p->ir;
    int *last_readers = weft__arena_alloc(&ir->arena, (ir->n_nodes + 1) * sizeof *last_readers);
    if (!last_readers) return weft__ir_failed(ir);
    for (int i = 0; i < p->n_units; i++)
        for (int k = 0, n; (n = weft__plan_reads(p, &p->units[i], k)) >= 0; k++)
            last_readers[n] += p->units[i].phase == p->last_phase[n];
    for (int at = 0; at < p->n_units; at++) {
        plan_unit *u = &p->units[p->order[at]];
        if (u->heavy >= 0) hand_base(p, u, last_readers);
        for (int out = 0; u->kernel && out < u->kernel->n_args; out++) {
            int in = dying_arg(p, u, out, last_readers);
            if (in < 0) continue;
            int from = u->args[in], to = u->args[out];
            inherit(p, to, from);
            merge_args(p, u, in, out);
            if (in < out) out--;
        }
    }
    return WEFT_OK;
}

/* ---- places ---- */

/* Returns the lowest offset at which want->bytes are free during the region's phases. Placed regions are
 * sorted by offset. */
static int64_t fit(const program_region *placed, int n, const program_region *want) {
    int64_t at = 0;
    for (int i = 0; i < n; i++) {
        const program_region *r = &placed[i];
        if (r->last < want->first || r->first > want->last) continue;
        if (at + want->bytes <= r->offset) break;
        if (r->offset + r->bytes > at) at = r->offset + r->bytes;
    }
    return at;
}

typedef struct region_of {
    int64_t bytes;
    int node;
} region_of;

static int largest_first(const void *x, const void *y) {
    const region_of *a = x, *b = y;
    return a->bytes != b->bytes ? (a->bytes < b->bytes) - (a->bytes > b->bytes) : a->node - b->node;
}

enum { ZONE = 256 }; /* bytes of a red zone (runtime/zones.c) */

/* Returns where region i begins: at the lowest free offset or, between red zones, behind all others. */
static int64_t offset_of(const program_region *placed, int i, const program_region *want, bool zones) {
    if (!zones) return fit(placed, i, want);
    const int64_t end = i ? placed[i - 1].offset + placed[i - 1].bytes : 0;
    return (end + ZONE + 63) & ~INT64_C(63);
}

/* Packs all regions into the arena, the largest first. */
static weft_status place_arena(plan *p) {
    weft_ir *ir = p->ir;
    const bool zones = ir->ctx->compiler->debug & DEBUG_MEMORY;
    weft_program *program = p->program;
    region_of *list = weft__arena_alloc(&ir->arena, (ir->n_nodes + 1) * sizeof *list);
    if (!list) return weft__ir_failed(ir);
    int count = 0;
    for (int n = 0; n < (int)ir->n_nodes; n++)
        if (in_arena(p, n)) list[count++] = (region_of){node_bytes(&ir->nodes[n]), n};
    qsort(list, (size_t)count, sizeof *list, largest_first);
    program_region *placed = weft__arena_alloc(&program->keep, (size_t)(count + 1) * sizeof *placed);
    p->region_nodes = weft__arena_alloc(&ir->arena, (size_t)(count + 1) * sizeof *p->region_nodes);
    if (!placed || !p->region_nodes) return weft__ir_failed(ir);
    for (int i = 0; i < count; i++) {
        int n = list[i].node, at = i;
        program_region r = {.bytes = list[i].bytes,
                            .first = p->first_phase[n],
                            .last = p->last_phase[n],
                            .command = -1,
                            .kind = WEFT_MEMORY_SCRATCH};
        if (zones) r.bytes = exact_bytes(&ir->nodes[n]);
        r.offset = offset_of(placed, i, &r, zones);
        ir->nodes[n].place = (ir_place){SLOT_ARENA, r.offset};
        if (r.offset + r.bytes > program->arena_bytes) program->arena_bytes = r.offset + r.bytes;
        for (; at > 0 && placed[at - 1].offset > r.offset; at--) {
            placed[at] = placed[at - 1];
            p->region_nodes[at] = p->region_nodes[at - 1];
        }
        placed[at] = r;
        p->region_nodes[at] = n;
    }
    if (zones && count) program->arena_bytes += ZONE;
    if (!zones) program->commands.arena_bytes = program->arena_bytes;
    program->regions.list = placed;
    program->regions.count = count;
    return WEFT_OK;
}

/* The first value in a region names it. Aliases of this value come later. */
weft_status weft__plan_name_regions(const plan *p) {
    const weft_ir *ir = p->ir;
    program_region *regions = p->program->regions.list;
    int *of = weft__arena_alloc(&p->ir->arena, (ir->n_nodes + 1) * sizeof *of); /* region + 1; 0: none */
    if (!of) return weft__ir_failed(p->ir);
    for (int i = 0; i < p->program->regions.count; i++) of[p->region_nodes[i]] = i + 1;
    for (int n = 0; n < (int)ir->n_nodes; n++) {
        const ir_node *node = &ir->nodes[n];
        const int i = node->live && node->stored ? of[weft__plan_holder(p, n)] : 0;
        if (!i) continue;
        program_region *r = &regions[i - 1];
        if (node->kind == IR_PACK) r->kind = WEFT_MEMORY_GRADIENTS;
        const bool gathered = node->kind == IR_HEAVY_OUT && node->from.tensor->leaf;
        if (node->unit < 0 || (r->command >= 0 && r->command <= p->units[node->unit].command)) continue;
        const uint8_t stage = p->units[node->unit].stage;
        r->command = p->units[node->unit].command;
        if (r->kind != WEFT_MEMORY_GRADIENTS)
            r->kind = !gathered && (stage == WEFT_STAGE_FORWARD || stage == WEFT_STAGE_LOSS)
                          ? WEFT_MEMORY_ACTIVATIONS
                          : WEFT_MEMORY_SCRATCH;
    }
    return WEFT_OK;
}

weft_status weft__plan_memory(plan *p) {
    weft_ir *ir = p->ir;
    p->first_phase = weft__arena_alloc(&ir->arena, (ir->n_nodes + 1) * sizeof *p->first_phase);
    p->last_phase = weft__arena_alloc(&ir->arena, (ir->n_nodes + 1) * sizeof *p->last_phase);
    p->alias = weft__arena_alloc(&ir->arena, (ir->n_nodes + 1) * sizeof *p->alias);
    if (!p->first_phase || !p->last_phase || !p->alias) return weft__ir_failed(ir);
    for (size_t n = 0; n < ir->n_nodes; n++) p->alias[n] = -1;
    find_lifetimes(p);
    WEFT_TRY(hand_over(p));
    WEFT_TRY(relieve(p));
    WEFT_TRY(hand_over(p)); /* more values end in the smaller phases */
    return place_arena(p);
}
