/* Loads, stores, atomics and asynchronous copies, and the checks of each access: bounds, alignment, races.
 * Read next: race.c, warp.c. */
#include <stdlib.h>

#include "actions.h"
#include "number.h"
#include "parse.h"

/* ---- global memory ---- */

static bool is_inside(uint64_t at, unsigned bytes, uint64_t begin, uint64_t end) {
    return at >= begin && at <= end && bytes <= end - at;
}

/* Also gives what is known about the bytes, or NULL. */
static bool is_global(ptx_machine *m, uint64_t at, unsigned bytes, ptx_cell **cells) {
    uint64_t begin, end;
    *cells = NULL;
    for (int i = 0; i < KNOWN_RANGES; i++) {
        if (!is_inside(at, bytes, m->known[i].begin, m->known[i].end)) continue;
        if (m->known[i].cells) *cells = m->known[i].cells + (at - m->known[i].begin);
        return true;
    }
    for (int i = 0; i < m->module->n_variables; i++) {
        const ptx_variable *v = &m->module->variables[i];
        begin = (uint64_t)(uintptr_t)v->memory;
        if (is_inside(at, bytes, begin, begin + v->bytes)) return true;
    }
    if (!m->launch->memory || !m->launch->memory(m->launch->user, at, &begin, &end)) return false;
    m->known[m->next_known].begin = begin;
    m->known[m->next_known].end = end;
    m->known[m->next_known].cells = m->launch->races ? ptx_cells_of(begin, end) : NULL;
    if (m->launch->races) *cells = m->known[m->next_known].cells + (at - begin);
    m->next_known = (m->next_known + 1) % KNOWN_RANGES;
    return is_inside(at, bytes, begin, end);
}

/* ---- addresses ---- */

static const char *const space_names[] = {"generic", "global", "shared", "local", "param", "const"};

static char *outside(ptx_warp *w, uint32_t lane, ptx_space space, uint64_t at, unsigned bytes) {
    ptx_fault(w, (int)lane, "%u bytes at %#llx are outside of %s memory", bytes, (unsigned long long)at,
              space_names[space]);
    return NULL;
}

static char *local_at(ptx_warp *w, uint32_t lane, ptx_space space, uint64_t at, unsigned bytes) {
    const unsigned all = w->machine->module->local_bytes;
    if (!is_inside(at, bytes, 0, all)) return outside(w, lane, space, at, bytes);
    return w->local + (size_t)lane * all + at;
}

static char *global_at(ptx_warp *w, uint32_t lane, ptx_space space, uint64_t at, unsigned bytes,
                       ptx_access how) {
    ptx_cell *cells;
    if (!is_global(w->machine, at, bytes, &cells)) return outside(w, lane, space, at, bytes);
    for (unsigned i = 0; i < bytes && cells; i++)
        if (!ptx_check_global(w, lane, &cells[i], at + i, how)) return NULL;
    return (char *)(uintptr_t)at;
}

/* Two threads may write the same value. */
static bool is_free_of_races(ptx_warp *w, uint32_t lane, uint64_t at, unsigned bytes, ptx_access how,
                             const char *value) {
    for (unsigned i = 0; i < bytes; i++)
        if (!ptx_check_shared(w, lane, at + i, how, value && w->block->shared[at + i] == value[i]))
            return false;
    return true;
}

char *ptx_at(ptx_warp *w, uint32_t lane, ptx_space space, uint64_t at, unsigned bytes, ptx_access how,
             const void *value) {
    ptx_machine *m = w->machine;
    if (space == GENERIC) {
        const uint64_t window = at >> 56 << 56;
        space = window == PTX_SHARED_WINDOW ? SHARED : window == PTX_LOCAL_WINDOW ? LOCAL : GLOBAL;
        if (space != GLOBAL) at -= window;
    }
    if (at % bytes) {
        ptx_fault(w, (int)lane, "misaligned: %u bytes at %#llx of %s memory", bytes, (unsigned long long)at,
                  space_names[space]);
        return NULL;
    }
    switch (space) {
    case SHARED:
        if (!is_inside(at, bytes, 0, w->block->shared_bytes)) return outside(w, lane, space, at, bytes);
        return is_free_of_races(w, lane, at, bytes, how, value) ? w->block->shared + at : NULL;
    case LOCAL: return local_at(w, lane, space, at, bytes);
    case PARAMETER:
        if (at >= PTX_FUNCTION_PARAMETERS)
            return local_at(w, lane, space, at - PTX_FUNCTION_PARAMETERS, bytes);
        return is_inside(at, bytes, 0, m->kernel->parameter_bytes) ? m->parameters + at
                                                                   : outside(w, lane, space, at, bytes);
    default: return global_at(w, lane, space, at, bytes, how);
    }
}

/* ---- loads and stores ---- */

void ptx_cvta(ptx_warp *w, const ptx_instruction *in, uint32_t mask) {
    const uint64_t *a = ptx_from(w, in, 0);
    const uint64_t window = in->space == SHARED  ? PTX_SHARED_WINDOW
                            : in->space == LOCAL ? PTX_LOCAL_WINDOW
                                                 : 0;
    uint64_t *to = ptx_to(w, in, 0);
    EACH_LANE(mask) {
        if (in->flags & TO && window && a[l] >> 56 << 56 != window)
            ptx_fault(w, (int)l, "%#llx is no address of %s memory", (unsigned long long)a[l],
                      space_names[in->space]);
        to[l] = in->flags & TO ? a[l] - window : a[l] + window;
    }
}

void ptx_ld(ptx_warp *w, const ptx_instruction *in, uint32_t mask) {
    const uint64_t *a = ptx_from(w, in, 0);
    const unsigned one = ptx_bytes(in->type);
    if (in->n_to != in->vector || one > 8) {
        ptx_unknown(w, in);
        return;
    }
    const unsigned bytes = one * in->vector;
    ptx_clock_access(w, in, mask, a, bytes, ptx_count_banks(w, in, in->space, mask, a, bytes));
    EACH_LANE(mask) {
        const char *from = ptx_at(w, l, in->space, a[l] + (uint64_t)in->offset[0], bytes, READ, NULL);
        if (!from) return;
        for (int k = 0; k < in->vector; k++) {
            uint64_t value = 0;
            memcpy(&value, from + (unsigned)k * one, one);
            ptx_to(w, in, k)[l] = ptx_integer(in->type, value) & in->keep;
        }
    }
}

void ptx_st(ptx_warp *w, const ptx_instruction *in, uint32_t mask) {
    const uint64_t *a = ptx_from(w, in, 0);
    const unsigned one = ptx_bytes(in->type);
    if (in->n_from != 1 + in->vector || one > 8) {
        ptx_unknown(w, in);
        return;
    }
    const unsigned bytes = one * in->vector;
    ptx_clock_access(w, in, mask, a, bytes, ptx_count_banks(w, in, in->space, mask, a, bytes));
    EACH_LANE(mask) {
        char value[4 * 8];
        for (int k = 0; k < in->vector; k++)
            memcpy(value + (unsigned)k * one, &ptx_from(w, in, 1 + k)[l], one);
        char *to = ptx_at(w, l, in->space, a[l] + (uint64_t)in->offset[0], bytes, WRITE, value);
        if (!to) return;
        memcpy(to, value, bytes);
    }
}

/* ---- atomics ---- */

enum { ADD = 1, EXCH, CAS, MIN, MAX, AND, OR, XOR, INC, DEC };

static uint64_t combined(const ptx_instruction *in, uint64_t old, uint64_t b, uint64_t c) {
    const bool less = ptx_is_signed(in->type) ? (int64_t)b < (int64_t)old : b < old;
    switch (in->word) {
    case ADD: return old + b;
    case EXCH: return b;
    case CAS: return old == b ? c : old;
    case MIN: return less ? b : old;
    case MAX: return less ? old : b;
    case AND: return old & b;
    case OR: return old | b;
    case XOR: return old ^ b;
    case INC: return old >= b ? 0 : old + 1;
    default: return old == 0 || old > b ? b : old - 1;
    }
}

void ptx_atom(ptx_warp *w, const ptx_instruction *in, uint32_t mask) {
    const unsigned bytes = ptx_bytes(in->type);
    const uint64_t *a = ptx_from(w, in, 0), *b = ptx_from(w, in, 1),
                   *c = in->n_from > 2 ? ptx_from(w, in, 2) : NULL;
    if (!in->word || ptx_is_float(in->type) || bytes < 4 || bytes > 8 || (in->word == CAS) != (c != NULL)) {
        ptx_unknown(w, in);
        return;
    }
    EACH_LANE(mask) {
        char *at = ptx_at(w, l, in->space, a[l] + (uint64_t)in->offset[0], bytes, ATOMIC, NULL);
        uint64_t old = 0, fresh;
        if (!at) return;
        memcpy(&old, at, bytes);
        fresh = combined(in, ptx_integer(in->type, old), ptx_integer(in->type, b[l]),
                         c ? ptx_integer(in->type, c[l]) : 0);
        memcpy(at, &fresh, bytes);
        if (in->n_to) ptx_to(w, in, 0)[l] = old;
    }
}

/* ---- asynchronous copies ---- */

/* cp.async [to], [from], bytes[, read]: the copy happens when the thread waits for it, and not before. */
void ptx_copy_async(ptx_warp *w, const ptx_instruction *in, uint32_t mask) {
    enum { CA = 1, CG };
    const uint64_t *to = ptx_from(w, in, 0), *from = ptx_from(w, in, 1), *bytes = ptx_from(w, in, 2);
    const uint64_t *read = ptx_from(w, in, in->n_from > 3 ? 3 : 2);
    ptx_count_banks(w, in, SHARED, mask, to, (unsigned)bytes[__builtin_ctz(mask)]);
    EACH_LANE(mask) {
        ptx_copy c = {.lane = (int)l,
                      .group = w->groups[l],
                      .to = (uint32_t)(to[l] + (uint64_t)in->offset[0]),
                      .from = from[l] + (uint64_t)in->offset[1],
                      .bytes = (unsigned)bytes[l],
                      .read = (unsigned)read[l]};
        if ((c.bytes != 4 && c.bytes != 8 && c.bytes != 16) || (in->word == CG && c.bytes != 16) ||
            c.read > c.bytes)
            ptx_fault(w, (int)l, "cp.async of %u of %u bytes", c.read, c.bytes);
        else if (c.from % c.bytes)
            ptx_fault(w, (int)l, "misaligned: %u bytes at %#llx of global memory", c.bytes,
                      (unsigned long long)c.from);
        else if (c.read)
            (void)global_at(w, l, GLOBAL, c.from, c.read, READ);
        if (w->machine->failed || !ptx_at(w, l, SHARED, c.to, c.bytes, WRITE, NULL)) return;
        for (unsigned i = 0; i < c.bytes; i++) w->block->shadow[c.to + i].pending = true;
        w->copies = ptx_more(w->copies, w->n_copies, sizeof *w->copies);
        w->copies[w->n_copies++] = c;
    }
}

void ptx_commit(ptx_warp *w, const ptx_instruction *in, uint32_t mask) {
    (void)in;
    EACH_LANE(mask) w->groups[l]++;
}

static void arrive(ptx_warp *w, const ptx_copy *c) {
    char *to = w->block->shared + c->to;
    memcpy(to, (const void *)(uintptr_t)c->from, c->read);
    memset(to + c->read, 0, c->bytes - c->read);
    for (unsigned i = 0; i < c->bytes; i++) {
        ptx_shadow *s = &w->block->shadow[c->to + i];
        s->pending = false;
        ptx_note_write(w, (uint32_t)c->lane, s, false);
    }
}

/* wait_group n: all but the last n groups have arrived. wait_all: all copies have. */
void ptx_wait(ptx_warp *w, const ptx_instruction *in, uint32_t mask) {
    const uint64_t *open = in->n_from ? ptx_from(w, in, 0) : NULL;
    int left = 0;
    for (int i = 0; i < w->n_copies; i++) {
        const ptx_copy c = w->copies[i];
        const bool mine = mask >> c.lane & 1;
        if (mine && (!open || c.group + (int)open[c.lane] < w->groups[c.lane]))
            arrive(w, &c);
        else
            w->copies[left++] = c;
    }
    w->n_copies = left;
}
