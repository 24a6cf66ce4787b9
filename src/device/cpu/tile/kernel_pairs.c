/* Merges two additions, subtractions or multiplications into one loop if the second reads the first one's
 * result. Then a temporary tile is neither written nor read. Each operation still rounds, so the bits are
 * those of two steps.
 * Must not know: what the values are for. Read next: kernel_steps.c. */
#include <string.h>

#include "device/cpu/tile/kernel_steps.h"

static int times(weft_ref value, const weft_step *s) {
    return weft__same_ref(s->a, value) + weft__same_ref(s->b, value) + weft__same_ref(s->c, value);
}

/* Returns whether exactly one step of the list reads the value, once, and no instruction stores it. */
static bool read_once(const weft_builder *b, const uint8_t *chosen, int begin, weft_ref value) {
    int reads = 0;
    for (int i = begin; i < b->plan->n_steps && reads < 2; i++) reads += times(value, &b->plan->steps[i]);
    for (int v = 0; v < b->kernel->n_code && reads == 1; v++) {
        const weft_instr *c = &b->kernel->code[v];
        if (!chosen[v] || c->kind != WEFT_INSTR_STORE) continue;
        if (weft__same_ref(b->values[c->a].ref, value) || weft__same_ref(b->values[c->a].spread, value))
            return false;
    }
    return reads == 1;
}

/* Returns the step that computes operand `value` of step `second` and can be merged into it, or -1. */
static int first_of(const weft_builder *b, const uint8_t *chosen, int begin, int second, weft_ref value) {
    if (value.base != WEFT_BASE_REGISTER || b->registers[value.offset].pinned) return -1;
    for (int i = second - 1; i >= begin; i--) {
        const weft_step *s = &b->plan->steps[i];
        if (!weft__same_ref(s->out, value)) continue;
        const bool fits =
            s->kind == WEFT_STEP_CALC && s->pairs && !s->once && s->count == b->plan->steps[second].count;
        return fits && read_once(b, chosen, begin, value) ? i : -1;
    }
    return -1;
}

void weft__pairs_make(weft_builder *b, const uint8_t *chosen, int begin) {
    for (int i = begin; i < b->plan->n_steps && !b->failed; i++) {
        weft_step *s = &b->plan->steps[i];
        if (s->kind != WEFT_STEP_CALC || !s->pairs || s->once) continue;
        int first = s->fixed & 1 ? -1 : first_of(b, chosen, begin, i, s->a);
        const bool right = first < 0;
        if (right && !(s->fixed & 2)) first = first_of(b, chosen, begin, i, s->b);
        if (first < 0) continue;
        const weft_step *f = &b->plan->steps[first];
        const weft_pair pair = right && s->pair == WEFT_PAIR_SUB ? WEFT_PAIR_FROM : (weft_pair)s->pair;
        const unsigned other = right ? s->fixed & 1u : s->fixed >> 1 & 1u;
        s->c = right ? s->a : s->b;
        s->a = f->a;
        s->b = f->b;
        s->fn.calc = b->plan->tiles->pair[f->pair][pair][f->fixed | other << 2];
        s->fixed = (uint8_t)(f->fixed | other << 2);
        s->pairs = 0;
        s->slices = 1;
        memmove(&b->plan->steps[first], &b->plan->steps[first + 1],
                (size_t)(b->plan->n_steps - first - 1) * sizeof *s);
        b->plan->n_steps--;
        i--;
    }
}
