/* Runs a launch. The lanes of a warp have a place each; those at the lowest place run together until they
 * reach others, so they meet again after a branch. Warps of the blocks that are resident take turns. Must not
 * know what instructions do, except for those that change the place of a lane. Read next: ptx.h. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "module.h"

/* ---- faults ---- */

void ptx_fault(ptx_warp *w, int lane, const char *why, ...) {
    ptx_machine *m = w->machine;
    ptx_launch *l = m->launch;
    va_list args;
    if (m->failed) return;
    m->failed = true;
    const int line = m->now ? m->now->line : 1;
    const char *text = m->module->lines[line - 1];
    text += strspn(text, " \t");
    const ptx_block *b = w->block;
    int n = snprintf(l->why, sizeof l->why, "%s, PTX line %d, '%.*s', block %u,%u,%u, ", m->kernel->name,
                     line, (int)strcspn(text, "\n"), text, b->index[0], b->index[1], b->index[2]);
    if (lane >= 0)
        n += snprintf(l->why + n, sizeof l->why - (size_t)n, "thread %d: ", w->number * LANES + lane);
    else
        n += snprintf(l->why + n, sizeof l->why - (size_t)n, "warp %d: ", w->number);
    va_start(args, why);
    vsnprintf(l->why + n, sizeof l->why - (size_t)n, why, args);
    va_end(args);
}

/* Registers that are read must have been written. Compilers compute some results before they know whether
 * they need them, so arithmetic may read others: its result must then not be used where it matters. */
static void check_operands(ptx_warp *w, const ptx_instruction *in, uint32_t mask) {
    for (int k = 0; k < in->n_from; k++) {
        const uint32_t missing = mask & ~ptx_defined(w, in, k);
        if (missing && in->spreads)
            w->lost |= missing;
        else if (missing)
            ptx_fault(w, __builtin_ctz(missing),
                      "operand %d was never written, or computed from such a register", k + 1);
    }
}

/* ---- warps ---- */

static uint32_t live(const ptx_warp *w) { return w->running | w->parked | w->waiting; }

/* The lanes that go next: those of the innermost function, at the lowest place. Sets the place where the next
 * others are. */
static uint32_t choose_lanes(const ptx_warp *w, uint32_t *others) {
    int deepest = 0;
    uint32_t lowest = UINT32_MAX, mask = 0;
    EACH_LANE(w->running) if (w->depth[l] > deepest) deepest = w->depth[l];
    *others = UINT32_MAX;
    EACH_LANE(w->running) {
        if (w->depth[l] != deepest) continue;
        if (w->at[l] < lowest) {
            *others = lowest;
            lowest = w->at[l];
            mask = 0;
        }
        if (w->at[l] == lowest)
            mask |= 1u << l;
        else if (w->at[l] < *others)
            *others = w->at[l];
    }
    return mask;
}

static void place(ptx_warp *w, uint32_t mask, uint32_t at) { EACH_LANE(mask) w->at[l] = at; }

/* The lanes that wait at the same place as these for lanes of their warp. */
static uint32_t parked_beside(const ptx_warp *w, uint32_t lanes) {
    uint32_t all = 0;
    const int first = __builtin_ctz(lanes);
    EACH_LANE(w->parked) if (w->at[l] == w->at[first] && w->depth[l] == w->depth[first]) all |= 1u << l;
    return all;
}

/* The lanes that an instruction needs at once. */
static uint32_t needed(ptx_warp *w, const ptx_instruction *in, uint32_t mask) {
    if (in->control != TOGETHER) return live(w);
    const uint64_t *wanted = in->from[in->n_from - 1] >= 0
                                 ? w->registers[in->from[in->n_from - 1]]
                                 : w->machine->module->constants[~in->from[in->n_from - 1]];
    const uint32_t first = (uint32_t)wanted[__builtin_ctz(mask)];
    EACH_LANE(mask) {
        if ((uint32_t)wanted[l] != first) ptx_fault(w, (int)l, "the lanes have different masks");
        if (!(first >> l & 1)) ptx_fault(w, (int)l, "the lane is not in its mask %#x", first);
    }
    return first & live(w);
}

static void run_action(ptx_warp *w, const ptx_instruction *in, uint32_t mask) {
    w->lost = 0;
    check_operands(w, in, mask);
    if (w->machine->failed) return;
    if (in->control == TOGETHER) w->lost = 0; /* the action says which lanes get nothing */
    in->action(w, in, mask);
    for (int k = 0; k < in->n_to; k++) w->defined[in->to[k]] = (w->defined[in->to[k]] | mask) & ~w->lost;
    w->machine->launch->instructions += (unsigned)__builtin_popcount(mask);
}

/* ---- calls ---- */

static void copy_local(ptx_warp *w, uint32_t lane, uint64_t to, uint64_t from, unsigned bytes) {
    char *local = w->local + (size_t)lane * w->machine->module->local_bytes;
    memcpy(local + (to - PTX_FUNCTION_PARAMETERS), local + (from - PTX_FUNCTION_PARAMETERS), bytes);
}

static void run_call(ptx_warp *w, const ptx_instruction *in, uint32_t mask, uint32_t at) {
    const ptx_module *m = w->machine->module;
    const ptx_function *f = m->functions[in->target];
    const ptx_call *call = &m->calls[in->call];
    EACH_LANE(mask) {
        if (w->depth[l] == CALLS_MOST) {
            ptx_fault(w, (int)l, "more than %d calls in each other", CALLS_MOST);
            return;
        }
        for (unsigned i = 0; i < f->n_parameters; i++)
            copy_local(w, l, f->parameters[i].at, call->arguments[i], f->parameters[i].bytes);
        w->back[w->depth[l]++][l] = at + 1;
        w->at[l] = (uint32_t)f->first;
    }
}

/* Lanes that wait for others look again whether any are missing. */
static void leave(ptx_warp *w, uint32_t lane) {
    w->running = (w->running | w->parked) & ~(1u << lane);
    w->parked = 0;
    w->block->live--;
}

static void run_return(ptx_warp *w, uint32_t mask) {
    const ptx_module *m = w->machine->module;
    EACH_LANE(mask) {
        if (w->depth[l] == 0) {
            leave(w, l);
            continue;
        }
        w->at[l] = w->back[--w->depth[l]][l];
        const ptx_instruction *in = &m->code[w->at[l] - 1];
        const ptx_function *f = m->functions[in->target];
        for (unsigned i = 0; i < f->n_results; i++)
            copy_local(w, l, m->calls[in->call].results[i], f->results[i].at, f->results[i].bytes);
    }
}

/* ---- barriers of a block ---- */

static uint64_t operand(const ptx_warp *w, const ptx_instruction *in, int k, uint32_t lane) {
    const int slot = in->from[k];
    return slot >= 0 ? w->registers[slot][lane] : w->machine->module->constants[~slot][lane];
}

static void release(ptx_block *b, int id) {
    enum { COUNT = 1, AND, OR };
    for (int i = 0; i < b->n_warps; i++) {
        ptx_warp *w = &b->warps[i];
        EACH_LANE(w->waiting) {
            const ptx_instruction *in = &w->machine->module->code[w->at[l]];
            if (w->barrier[l] != id) continue;
            if (in->n_to) {
                const int n = b->barriers[id].trues;
                w->registers[in->to[0]][l] = in->word == COUNT ? (unsigned)n
                                             : in->word == AND ? n == b->barriers[id].arrived
                                                               : n > 0;
                w->defined[in->to[0]] |= 1u << l;
            }
            w->waiting &= ~(1u << l);
            w->running |= 1u << l;
            w->at[l]++;
        }
    }
    memset(&b->barriers[id], 0, sizeof b->barriers[id]);
    b->epoch++;
    ptx_clock_meet(b);
}

/* bar.sync id[, count]; bar.red d, id[, count], p */
static void run_barrier(ptx_warp *w, const ptx_instruction *in, uint32_t mask) {
    ptx_block *b = w->block;
    const uint32_t first = (uint32_t)__builtin_ctz(mask);
    const int operands = in->n_from - in->n_to, id = (int)operand(w, in, 0, first);
    const unsigned *threads = w->machine->launch->threads;
    const int all = (int)(threads[0] * threads[1] * threads[2]);
    const int count = operands > 1 ? (int)operand(w, in, 1, first) : all;
    check_operands(w, in, mask);
    if (id < 0 || id >= BARRIERS || count <= 0 || (operands > 1 && count % LANES))
        ptx_fault(w, -1, "barrier %d of %d threads", id, count);
    if (w->machine->failed) return;
    if (b->barriers[id].arrived && b->barriers[id].line != in->line)
        ptx_fault(w, -1, "other threads wait at the barrier in line %d", b->barriers[id].line);
    b->barriers[id].line = in->line;
    EACH_LANE(mask) {
        w->barrier[l] = (uint8_t)id;
        b->barriers[id].arrived++;
        if (in->n_to) b->barriers[id].trues += operand(w, in, in->n_from - 1, l) != 0;
    }
    w->running &= ~mask;
    w->waiting |= mask;
    if (b->barriers[id].arrived >= count) release(b, id);
}

/* ---- running ---- */

/* Branches, calls, and the end of lanes. guarded: the lanes of the mask whose guard is true. */
static void run_jump(ptx_warp *w, const ptx_instruction *in, uint32_t mask, uint32_t guarded, uint32_t at) {
    place(w, mask & ~guarded, at + 1);
    switch (in->control) {
    case BRANCH: place(w, guarded, (uint32_t)in->target); break;
    case TABLE: {
        const ptx_table *t = &w->machine->module->tables[in->target];
        check_operands(w, in, guarded);
        EACH_LANE(guarded) {
            const uint64_t index = (uint32_t)operand(w, in, 0, l);
            if (index >= (uint64_t)t->count)
                ptx_fault(w, (int)l, "branch %llu of %d", (unsigned long long)index, t->count);
            else
                w->at[l] = (uint32_t)t->targets[index];
        }
        break;
    }
    case CALL: run_call(w, in, guarded, at); break;
    case EXIT: EACH_LANE(guarded) leave(w, l); break;
    default: run_return(w, guarded);
    }
}

/* An instruction for which lanes must come together. Returns false if some are missing, and parks the others.
 */
static bool run_together(ptx_warp *w, const ptx_instruction *in, uint32_t mask, uint32_t at) {
    place(w, mask, at);
    mask |= parked_beside(w, mask);
    const uint32_t wanted = needed(w, in, mask);
    if (w->machine->failed) return false;
    if (wanted & ~mask) {
        w->running &= ~mask;
        w->parked |= mask;
        return false;
    }
    w->parked &= ~mask;
    w->running |= mask;
    if (in->control == BARRIER) {
        run_barrier(w, in, mask);
    } else {
        run_action(w, in, mask);
        ptx_clock_issue(w, in, true);
        place(w, mask, at + 1);
    }
    return true;
}

static uint32_t guarded_lanes(ptx_warp *w, const ptx_instruction *in, uint32_t mask) {
    uint32_t yes = 0;
    if (in->guard < 0) return mask;
    if (mask & ~w->defined[in->guard])
        ptx_fault(w, __builtin_ctz(mask & ~w->defined[in->guard]),
                  "the predicate was never written, or computed from such a register");
    EACH_LANE(mask) yes |= (uint32_t)(w->registers[in->guard][l] != in->guard_not) << l;
    return yes;
}

/* Runs lanes of a warp that are at one place until they branch, wait, or reach others. Returns the number of
 * instructions. */
static int run_lanes(ptx_warp *w, int most) {
    ptx_machine *m = w->machine;
    uint32_t others, mask = choose_lanes(w, &others), at = w->at[__builtin_ctz(mask)];
    int n = 0;
    for (; n < most && at < others && !m->failed; n++) {
        const ptx_instruction *in = m->now = &m->module->code[at];
        const uint32_t guarded = guarded_lanes(w, in, mask);
        if (in->control == PLAIN) {
            if (guarded) run_action(w, in, guarded);
            ptx_clock_issue(w, in, guarded != 0);
            at++;
        } else if (in->control < BARRIER) {
            ptx_clock_branch(w, in, guarded != 0);
            run_jump(w, in, mask, guarded, at);
            return n + 1;
        } else if (!guarded) {
            at++;
        } else {
            place(w, mask & ~guarded, at + 1);
            (void)run_together(w, in, guarded, at);
            return n + 1;
        }
    }
    place(w, mask, at);
    return n;
}

/* ---- blocks ---- */

static uint64_t draw(ptx_machine *m, uint64_t below) {
    m->random ^= m->random << 13;
    m->random ^= m->random >> 7;
    m->random ^= m->random << 17;
    return m->random % below;
}

static void set_special(ptx_warp *w, int slot, uint32_t lane, uint64_t value) {
    w->registers[slot][lane] = value;
}

static void begin_warp(ptx_warp *w) {
    const ptx_machine *m = w->machine;
    const unsigned *threads = m->launch->threads, *blocks = m->launch->blocks;
    w->running = w->n_lanes == LANES ? ~0u : (1u << w->n_lanes) - 1;
    w->parked = w->waiting = w->carry = w->meets = 0;
    w->n_copies = 0;
    w->clock.now = w->clock.last = 0;
    memset(w->clock.ready, 0, (size_t)m->module->n_registers * sizeof *w->clock.ready);
    memset(w->groups, 0, sizeof w->groups);
    memset(w->depth, 0, sizeof w->depth);
    memset(w->defined, 0, (size_t)m->module->n_registers * sizeof *w->defined);
    memset(w->defined, 255, SPECIAL_REGISTERS * sizeof *w->defined);
    memset(w->local, 0xa5, (size_t)m->module->local_bytes * LANES);
    for (uint32_t l = 0; l < LANES; l++) {
        const unsigned n = (unsigned)w->number * LANES + l;
        w->at[l] = (uint32_t)m->kernel->first;
        set_special(w, TID_X, l, n % threads[0]);
        set_special(w, TID_Y, l, n / threads[0] % threads[1]);
        set_special(w, TID_Z, l, n / threads[0] / threads[1]);
        for (int k = 0; k < 3; k++) {
            set_special(w, NTID_X + k, l, threads[k]);
            set_special(w, CTAID_X + k, l, w->block->index[k]);
            set_special(w, NCTAID_X + k, l, blocks[k]);
        }
        set_special(w, LANEID, l, l);
        set_special(w, WARPID, l, (unsigned)w->number);
        set_special(w, NWARPID, l, (unsigned)w->block->n_warps);
        set_special(w, LANEMASK_EQ, l, 1u << l);
        set_special(w, LANEMASK_LT, l, (1u << l) - 1);
        set_special(w, LANEMASK_LE, l, (2ull << l) - 1);
        set_special(w, LANEMASK_GE, l, (uint32_t) ~((1u << l) - 1));
        set_special(w, LANEMASK_GT, l, (uint32_t) ~((2ull << l) - 1));
        set_special(w, CLOCK, l, (uint32_t)m->launch->instructions);
    }
}

static void begin_block(ptx_block *b, uint64_t number) {
    const ptx_launch *l = b->machine->launch;
    b->used = true;
    b->number = (uint32_t)number;
    b->index[0] = (unsigned)(number % l->blocks[0]);
    b->index[1] = (unsigned)(number / l->blocks[0] % l->blocks[1]);
    b->index[2] = (unsigned)(number / l->blocks[0] / l->blocks[1]);
    b->live = (int)(l->threads[0] * l->threads[1] * l->threads[2]);
    b->epoch = 1;
    memset(&b->clock, 0, sizeof b->clock);
    memset(b->barriers, 0, sizeof b->barriers);
    memset(b->shared, 0xff, b->shared_bytes); /* NaN as a float, -1 as an integer */
    memset(b->shadow, 0, (b->shared_bytes + 1) * sizeof *b->shadow);
    for (int i = 0; i < b->n_warps; i++) begin_warp(&b->warps[i]);
}

/* No lane of the block can go on. */
static void report_deadlock(ptx_block *b) {
    ptx_machine *m = b->machine;
    for (int i = 0; i < b->n_warps; i++) {
        ptx_warp *w = &b->warps[i];
        if (!w->parked) continue;
        const int lane = __builtin_ctz(w->parked);
        m->now = &m->module->code[w->at[lane]];
        ptx_fault(w, lane, "divergent: lanes %#x of the warp are here, %#x of %#x are not and never come",
                  parked_beside(w, 1u << lane), live(w) & ~parked_beside(w, 1u << lane), live(w));
    }
    for (int i = 0; i < b->n_warps; i++) {
        ptx_warp *w = &b->warps[i];
        if (!w->waiting) continue;
        const int lane = __builtin_ctz(w->waiting);
        m->now = &m->module->code[w->at[lane]];
        const int returned =
            (int)(m->launch->threads[0] * m->launch->threads[1] * m->launch->threads[2]) - b->live;
        ptx_fault(w, lane,
                  "divergent barrier: %d threads of the block have arrived, %d have returned before it",
                  b->barriers[w->barrier[lane]].arrived, returned);
    }
}

/* Gives each warp of a block its turn. */
static void run_block(ptx_block *b) {
    ptx_machine *m = b->machine;
    const bool random = m->launch->seed != 0;
    const int first = random ? (int)draw(m, (uint64_t)b->n_warps) : 0;
    bool any = false;
    for (int i = 0; i < b->n_warps && !m->failed; i++) {
        ptx_warp *w = &b->warps[(first + i) % b->n_warps];
        int left = random ? 1 + (int)draw(m, 300) : 2000;
        any = any || w->running;
        while (left > 0 && w->running && !m->failed) left -= run_lanes(w, left);
    }
    if (b->live == 0) {
        ptx_clock_meet(b);
        b->used = false;
    } else if (!any && !m->failed)
        report_deadlock(b);
}

/* ---- a launch ---- */

static void *get(size_t bytes) {
    void *memory = aligned_alloc(1024, (bytes + 1024) / 1024 * 1024);
    if (!memory) abort();
    return memory;
}

static void make_block(ptx_machine *m, ptx_block *b, unsigned shared_bytes) {
    const unsigned *threads = m->launch->threads, all = threads[0] * threads[1] * threads[2];
    const size_t registers = (size_t)m->module->n_registers;
    b->machine = m;
    b->n_warps = (int)((all + LANES - 1) / LANES);
    b->shared_bytes = shared_bytes;
    b->shared = get(shared_bytes);
    b->shadow = get((shared_bytes + 1) * sizeof *b->shadow);
    for (int i = 0; i < b->n_warps; i++) {
        ptx_warp *w = &b->warps[i];
        w->machine = m;
        w->block = b;
        w->number = i;
        w->n_lanes = (int)(all - (unsigned)i * LANES < LANES ? all - (unsigned)i * LANES : LANES);
        w->registers = get(registers * sizeof *w->registers);
        w->defined = get(registers * sizeof *w->defined);
        w->clock.ready = get(registers * sizeof *w->clock.ready);
        w->local = get((size_t)m->module->local_bytes * LANES);
    }
}

static void free_block(ptx_block *b) {
    for (int i = 0; i < b->n_warps; i++) {
        free(b->warps[i].registers);
        free(b->warps[i].defined);
        free(b->warps[i].clock.ready);
        free(b->warps[i].local);
        free(b->warps[i].copies);
    }
    free(b->shared);
    free(b->shadow);
}

static const char *wrong_with(const ptx_launch *l) {
    const ptx_function *f = l->kernel;
    const unsigned threads = l->threads[0] * l->threads[1] * l->threads[2];
    if (threads == 0 || threads > 1024 || (f->threads_most && threads > f->threads_most))
        return "too many threads, or none";
    if (l->shared_bytes > PTX_SHARED_MOST || f->dynamic_at + l->shared_bytes > PTX_SHARED_MOST)
        return "too much shared memory";
    return NULL;
}

/* The number of the block that begins as the i-th: with a seed, a permutation of them. */
static uint64_t block_number(const ptx_launch *l, uint64_t i, uint64_t all) {
    if (!l->seed) return i;
    uint64_t step = l->seed % all | 1, a = step, b = all;
    while (b) { /* the nearest step that has no divisor in common with the number of blocks */
        const uint64_t rest = a % b;
        a = b;
        b = rest;
        if (!b && a != 1) {
            a = ++step;
            b = all;
        }
    }
    return (i * (step % all) + l->seed / 7 % all) % all;
}

static void run_blocks(ptx_machine *m) {
    const ptx_launch *l = m->launch;
    const uint64_t all = (uint64_t)l->blocks[0] * l->blocks[1] * l->blocks[2];
    for (uint64_t next = 0, running = 1; (next < all || running) && !m->failed;) {
        running = 0;
        for (int i = 0; i < m->n_blocks && !m->failed; i++) {
            if (!m->blocks[i].used && next < all) begin_block(&m->blocks[i], block_number(l, next++, all));
            if (m->blocks[i].used) run_block(&m->blocks[i]);
            running += m->blocks[i].used;
        }
    }
}

static void report_banks(const ptx_machine *m) {
    FILE *to = fopen(m->launch->banks, "a");
    if (!to) abort();
    ptx_report_banks(m, to);
    fclose(to);
    free(m->banks);
}

bool ptx_run(ptx_launch *l) {
    const ptx_function *f = l->kernel;
    const uint64_t all = (uint64_t)l->blocks[0] * l->blocks[1] * l->blocks[2];
    ptx_machine m = {.launch = l, .module = f->module, .kernel = f, .random = l->seed * 2 + 1};
    const char *wrong = wrong_with(l);
    static uint32_t launches;
    m.number = ++launches;
    l->instructions = l->clocks = 0;
    snprintf(l->why, sizeof l->why, "%s: %s", f->name, wrong ? wrong : "");
    if (wrong) return false;
    const unsigned resident = l->resident ? l->resident : 2;
    m.n_blocks = (int)(all < resident ? all : resident);
    m.parameters = get(f->parameter_bytes);
    m.blocks = calloc((size_t)m.n_blocks + 1, sizeof *m.blocks);
    if (!m.blocks) abort();
    for (unsigned i = 0; i < f->n_parameters; i++)
        memcpy(m.parameters + f->parameters[i].at, l->values[i], f->parameters[i].bytes);
    for (int i = 0; i < m.n_blocks; i++) make_block(&m, &m.blocks[i], f->dynamic_at + l->shared_bytes);
    if (l->banks) m.banks = calloc((size_t)m.module->n_code + 1, sizeof *m.banks);
    run_blocks(&m);
    if (m.banks) report_banks(&m);
    for (int i = 0; i < m.n_blocks; i++) free_block(&m.blocks[i]);
    free(m.blocks);
    free(m.parameters);
    return !m.failed;
}
