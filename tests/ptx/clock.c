/* How long a block would take on a multiprocessor that it has for itself: an estimate, which needs no card.
 * It is meant for kernels that wait more than they compute: small nets, matmuls of few tiles. It is too fast,
 * but ratios are of use. In db6f3daf it says 5.7 us for a step of XOR as one launch and 54 us for the
 * matmuls of `weft bench mlp`, where an H200 took 7.7 us and 87 us.
 *
 * A warp issues at most one instruction a clock, and those before a branch before it branches. Four
 * schedulers issue one instruction a clock each, and one unit serves all accesses to memory. Between two
 * barriers of the block the slowest warp counts, or the busiest scheduler, or the unit for memory.
 *
 * The constants for memory are those of published microbenchmarks of the H100: 29 clocks for shared memory,
 * 33 for the cache of a multiprocessor, 261 for L2. Arithmetic takes 4. The others are estimates from the
 * instructions that the assembler makes. What a block has read or written stays in its cache. cp.async takes
 * no time.
 *
 * Must not know what instructions compute. Read next: run.c. */
#include <string.h>

#include "actions.h"
#include "number.h"

enum {
    LINE_BYTES = 128,
    NEAR = 33,        /* clocks of a load from the multiprocessor's own cache */
    FAR = 261,        /* from L2 */
    SHARED_NEAR = 29, /* from shared memory */
    TAKEN = 8,        /* of a branch */
    SHORT = 8,        /* instructions that a branch skips without being one */
    MEETING = 20      /* of a barrier, after the last warp has come */
};

/* Instructions, the clocks that they keep the unit for integers and special functions busy, and those from
 * issue to result. */
typedef struct cost {
    unsigned issue, busy, result;
} cost;

static const struct row {
    ptx_action action;
    cost narrow, wide; /* wide: of 64 bits */
} rows[] = {
    {ptx_mov, {0, 0, 0}, {0, 0, 0}},         {ptx_cvta, {0, 0, 0}, {0, 0, 0}},
    {ptx_mul, {1, 2, 5}, {3, 6, 16}},        {ptx_mad, {1, 2, 5}, {4, 8, 18}},
    {ptx_div, {15, 30, 130}, {45, 90, 400}}, {ptx_rem, {15, 30, 130}, {45, 90, 400}},
    {ptx_setp, {1, 2, 9}, {2, 4, 14}},       {ptx_sqrt, {8, 12, 60}, {40, 80, 150}},
    {ptx_rsqrt, {3, 10, 40}, {40, 80, 150}}, {ptx_rcp, {3, 10, 40}, {40, 80, 150}},
    {ptx_ex2, {2, 8, 24}, {40, 80, 150}},    {ptx_lg2, {2, 8, 24}, {40, 80, 150}},
    {ptx_sin, {2, 8, 24}, {40, 80, 150}},    {ptx_cos, {2, 8, 24}, {40, 80, 150}},
    {ptx_tanh, {1, 8, 24}, {40, 80, 150}},   {ptx_cvt, {1, 2, 8}, {1, 2, 8}},
    {ptx_shfl, {1, 2, 24}, {2, 4, 28}},      {ptx_vote, {1, 2, 14}, {1, 2, 14}},
    {ptx_meet, {1, 2, 12}, {1, 2, 12}},      {ptx_mma, {1, 16, 33}, {1, 32, 33}},
};

static bool is_wide(const ptx_instruction *in) { return ptx_bytes(in->type) == 8; }

static cost cost_of(const ptx_instruction *in) {
    const bool floats = ptx_is_float(in->type);
    if (in->action == ptx_div && floats && !is_wide(in))
        return in->flags & (APPROX | FULL) ? (cost){4, 10, 44} : (cost){12, 20, 80};
    if (in->action == ptx_cvt && floats != ptx_is_float(in->from_type)) return (cost){1, 8, 20};
    if (floats && (in->action == ptx_add || in->action == ptx_sub || in->action == ptx_mul ||
                   in->action == ptx_fma || in->action == ptx_mad))
        return is_wide(in) ? (cost){1, 2, 8} : (cost){1, 0, 4};
    if (in->flags & WIDE) return (cost){1, 2, 5};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].action == in->action) return is_wide(in) ? rows[i].wide : rows[i].narrow;
    return is_wide(in) ? (cost){2, 4, 10} : (cost){1, 2, 5};
}

/* ---- memory ---- */

static uint64_t later(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* Returns whether the block has the line in its cache; then it has. */
static bool has_line(ptx_block *b, uint64_t line) {
    enum { WAYS = 32 }; /* so many that addresses, which differ from run to run, hardly matter */
    const uint64_t first = line ^ line >> 11;
    uint64_t *at = NULL;
    for (uint64_t i = 0; i < WAYS; i++) {
        at = &b->clock.lines[(first + i) % CACHE_LINES];
        if (*at == line) return true;
        if (*at == 0) break;
    }
    *at = line;
    return false;
}

/* A line of global memory takes a clock, and so do the 128 bytes that shared memory or the cache gives at
 * once. */
void ptx_clock_access(ptx_warp *w, const ptx_instruction *in, uint32_t mask, const uint64_t *addresses,
                      unsigned bytes, unsigned times) {
    uint64_t lines[LANES];
    unsigned n = 0;
    bool far = false;
    if (!w->machine->launch->timed || in->space == PARAMETER) return;
    EACH_LANE(mask) {
        const uint64_t at = addresses[l] + (uint64_t)in->offset[0], line = at / LINE_BYTES;
        if (in->space == SHARED || in->space == LOCAL || at >> 56) continue;
        unsigned i = 0;
        while (i < n && lines[i] != line) i++;
        if (i < n) continue;
        lines[n++] = line;
        far = !has_line(w->block, line) || far;
    }
    w->clock.wait = far ? FAR : n ? NEAR : SHARED_NEAR;
    const unsigned whole = bytes * (unsigned)__builtin_popcount(mask) / LINE_BYTES;
    w->block->clock.memory += times + (n ? later(n, whole) : !times);
}

/* ---- instructions ---- */

static cost cost_here(const ptx_warp *w, const ptx_instruction *in) {
    if (in->action == ptx_atom) return (cost){1, 0, FAR};
    if (in->action == ptx_ldmatrix) return (cost){1, 0, SHARED_NEAR};
    if (in->action != ptx_ld && in->action != ptx_st) return cost_of(in);
    return in->space == PARAMETER ? (cost){0, 0, 0} : (cost){1, 0, w->clock.wait};
}

/* The assembler moves instructions that wait behind others, up to the next branch. */
void ptx_clock_issue(ptx_warp *w, const ptx_instruction *in, bool executed) {
    ptx_block *const b = w->block;
    if (!w->machine->launch->timed) return;
    const cost c = cost_here(w, in);
    uint64_t at = w->clock.now;
    if (in->guard >= 0) at = later(at, w->clock.ready[in->guard]);
    for (int k = 0; k < in->n_from && executed; k++)
        if (in->from[k] >= 0) at = later(at, w->clock.ready[in->from[k]]);
    w->clock.now += c.issue;
    if (c.issue) w->clock.last = later(w->clock.last, at);
    b->clock.issued[w->number % SCHEDULERS] += c.issue;
    b->clock.busy[w->number % SCHEDULERS] += c.busy;
    for (int k = 0; k < in->n_to && executed; k++) w->clock.ready[in->to[k]] = at + c.result;
}

/* A branch waits for the instructions before it to be issued. The assembler makes predicates of short ones.
 */
void ptx_clock_branch(ptx_warp *w, const ptx_instruction *in, bool taken) {
    const long over = in->target - (in - w->machine->module->code);
    if (!w->machine->launch->timed) return;
    if (in->control != BRANCH || over <= 0 || over > SHORT) {
        w->clock.now = later(w->clock.now, w->clock.last);
        if (in->guard >= 0) w->clock.now = later(w->clock.now, w->clock.ready[in->guard]);
    }
    w->clock.now += taken && (over <= 0 || over > SHORT) ? TAKEN : 1;
}

/* All warps have come to a barrier, or to the end. */
void ptx_clock_meet(ptx_block *b) {
    uint64_t at = b->clock.begin + b->clock.memory;
    if (!b->machine->launch->timed) return;
    for (int i = 0; i < b->n_warps; i++) at = later(at, later(b->warps[i].clock.now, b->warps[i].clock.last));
    for (int s = 0; s < SCHEDULERS; s++)
        at = later(at, b->clock.begin + later(b->clock.issued[s], b->clock.busy[s]));
    at += MEETING;
    for (int i = 0; i < b->n_warps; i++) b->warps[i].clock.now = at;
    b->clock.begin = at;
    b->clock.memory = 0;
    memset(b->clock.issued, 0, sizeof b->clock.issued);
    memset(b->clock.busy, 0, sizeof b->clock.busy);
    b->machine->launch->clocks = later(b->machine->launch->clocks, at);
}
