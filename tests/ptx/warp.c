/* What the lanes of a warp do together: exchange, votes. run.c has brought the lanes of the mask together.
 * Read next: tensor.c. */
#include "actions.h"
#include "number.h"

void ptx_nothing(ptx_warp *w, const ptx_instruction *in, uint32_t mask) { (void)w, (void)in, (void)mask; }

void ptx_trap(ptx_warp *w, const ptx_instruction *in, uint32_t mask) {
    (void)in;
    ptx_fault(w, __builtin_ctz(mask), "trap");
}

/* bar.warp.sync orders the memory of its lanes. The race detector counts it if no lane is missing. */
void ptx_meet(ptx_warp *w, const ptx_instruction *in, uint32_t mask) {
    (void)in;
    if (mask == (w->running | w->parked | w->waiting)) w->meets++;
}

void ptx_activemask(ptx_warp *w, const ptx_instruction *in, uint32_t mask) {
    uint64_t *to = ptx_to(w, in, 0);
    EACH_LANE(mask) to[l] = mask;
}

/* shfl d[|p], a, b, c: c has the last lane and, from bit 8 on, the mask of a segment. */
void ptx_shfl(ptx_warp *w, const ptx_instruction *in, uint32_t mask) {
    enum { UP = 1, DOWN, BUTTERFLY, INDEX };
    uint64_t old[LANES], *to = ptx_to(w, in, 0), *valid = in->n_to > 1 ? ptx_to(w, in, 1) : NULL;
    const uint64_t *b = ptx_from(w, in, 1), *c = ptx_from(w, in, 2);
    const uint32_t defined = ptx_defined(w, in, 0);
    memcpy(old, ptx_from(w, in, 0), sizeof old);
    if (!in->word || in->type != B32) {
        ptx_unknown(w, in);
        return;
    }
    w->lost = 0;
    EACH_LANE(mask) {
        const int lane = (int)l, by = (int)(b[l] & 31), clamp = (int)(c[l] & 31),
                  segment = (int)(c[l] >> 8 & 31);
        const int first = lane & segment, last = first | (clamp & ~segment);
        int from = in->word == UP          ? lane - by
                   : in->word == DOWN      ? lane + by
                   : in->word == BUTTERFLY ? lane ^ by
                                           : first | (by & ~segment);
        const bool inside = in->word == UP ? from >= last : from <= last;
        if (!inside) from = lane;
        to[l] = old[from];
        if (valid) valid[l] = inside;
        if (!(mask & defined & 1u << from)) w->lost |= 1u << l;
    }
}

/* The lanes of a mask whose predicate is true. */
static uint32_t trues(const uint64_t *p, uint32_t mask) {
    uint32_t all = 0;
    EACH_LANE(mask) all |= (uint32_t)(p[l] & 1) << l;
    return all;
}

void ptx_vote(ptx_warp *w, const ptx_instruction *in, uint32_t mask) {
    enum { ALL = 1, ANY, SAME, BALLOT };
    const uint32_t yes = trues(ptx_from(w, in, 0), mask);
    uint64_t *to = ptx_to(w, in, 0);
    if (!in->word) ptx_unknown(w, in);
    EACH_LANE(mask)
    to[l] = in->word == ALL    ? yes == mask
            : in->word == ANY  ? yes != 0
            : in->word == SAME ? yes == mask || !yes
                               : yes;
}

/* match.any: the lanes with the same value. match.all d|p: all lanes, if all have the same one. */
void ptx_match(ptx_warp *w, const ptx_instruction *in, uint32_t mask) {
    const bool all = in->n_to > 1;
    uint64_t value[LANES], *to = ptx_to(w, in, 0);
    memcpy(value, ptx_from(w, in, 0), sizeof value);
    EACH_LANE(mask) {
        uint32_t same = 0;
        for (int k = 0; k < LANES; k++)
            if (mask >> k & 1 && value[k] == value[l]) same |= 1u << k;
        to[l] = all && same != mask ? 0 : same;
        if (all) ptx_to(w, in, 1)[l] = same == mask;
    }
}

void ptx_redux(ptx_warp *w, const ptx_instruction *in, uint32_t mask) {
    enum { ADD = 1, MIN, MAX, AND, OR, XOR };
    const uint64_t *a = ptx_from(w, in, 0);
    uint64_t *to = ptx_to(w, in, 0), all = ptx_integer(in->type, a[__builtin_ctz(mask)]);
    if (!in->word || ptx_bytes(in->type) != 4 || ptx_is_float(in->type)) {
        ptx_unknown(w, in);
        return;
    }
    EACH_LANE(mask & (mask - 1)) {
        const uint64_t x = ptx_integer(in->type, a[l]);
        const bool less = ptx_is_signed(in->type) ? (int64_t)x < (int64_t)all : x < all;
        switch (in->word) {
        case ADD: all += x; break;
        case MIN: all = less ? x : all; break;
        case MAX: all = less ? all : x; break;
        case AND: all &= x; break;
        case OR: all |= x; break;
        default: all ^= x;
        }
    }
    EACH_LANE(mask) to[l] = (uint32_t)all;
}
