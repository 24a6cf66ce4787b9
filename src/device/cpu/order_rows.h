/* Positions of one row in order, for keys of type KEY that compare as unsigned integers: the first few by a
 * heap of the best so far, all by counting digits, from the last to the first (LSD radix sort), which keeps
 * equal keys in order. Included by order.c, once a width, with KEY, KEY_INFINITE (the bits of an infinity)
 * and NAME. Read next: order.c. */

/* The key of an element, by the bits it has. Without a branch, so that many are made at once. */
static inline KEY NAME(key)(const key_form *form, KEY bits) {
    enum { SIGN = sizeof(KEY) * 8 - 1 };
    const KEY floats = (KEY)form->floats, top = (KEY)1 << SIGN, size = bits & ~top;
    const KEY zero = (size - 1) >> SIGN, nan = (KEY_INFINITE - size) >> SIGN; /* 1 or 0 */
    bits &= ~(((KEY)0 - zero) & floats);
    bits ^= (((KEY)0 - (bits >> SIGN)) & floats) | top;
    return (bits | (((KEY)0 - nan) & floats)) ^ (KEY)form->turned;
}

static bool NAME(after)(KEY a, uint32_t i, KEY b, uint32_t j) { return a > b || (a == b && i > j); }

/* Lets key[at] sink in a heap whose root comes last. */
static void NAME(sink)(KEY *key, uint32_t *place, int64_t at, int64_t n) {
    const KEY k = key[at];
    const uint32_t p = place[at];
    for (int64_t child; (child = 2 * at + 1) < n; at = child) {
        child += child + 1 < n && NAME(after)(key[child + 1], place[child + 1], key[child], place[child]);
        if (!NAME(after)(key[child], place[child], k, p)) break;
        key[at] = key[child];
        place[at] = place[child];
    }
    key[at] = k;
    place[at] = p;
}

/* The first `count` of n elements; most are looked at once, BLOCK at a time. */
static void NAME(few)(const key_form *form, const KEY *x, int64_t n, int64_t count, KEY *best,
                      uint32_t *place, int32_t *out) {
    enum { BLOCK = 64 };
    for (int64_t i = 0; i < count; i++) {
        best[i] = NAME(key)(form, x[i]);
        place[i] = (uint32_t)i;
    }
    for (int64_t i = count / 2; i-- > 0;) NAME(sink)(best, place, i, count);
    for (int64_t at = count; at < n; at += BLOCK) {
        const int64_t end = weft__smaller(BLOCK, n - at);
        KEY key[BLOCK], least = ~(KEY)0;
        if (end == BLOCK)
            for (int i = 0; i < BLOCK; i++) key[i] = NAME(key)(form, x[at + i]);
        else
            for (int i = 0; i < BLOCK; i++) key[i] = i < end ? NAME(key)(form, x[at + i]) : ~(KEY)0;
        for (int i = 0; i < BLOCK; i++) least = key[i] < least ? key[i] : least;
        for (int64_t i = 0; i < end && least < best[0]; i++) {
            if (key[i] >= best[0]) continue; /* equal ones come later */
            best[0] = key[i];
            place[0] = (uint32_t)(at + i);
            NAME(sink)(best, place, 0, count);
        }
    }
    for (int64_t left = count; left-- > 0;) {
        out[left] = (int32_t)place[0];
        best[0] = best[left];
        place[0] = place[left];
        NAME(sink)(best, place, 0, left);
    }
}

/* All of a few keys, by insertion. */
static void NAME(small)(KEY *key, int64_t n, uint32_t *place) {
    for (int64_t i = 0; i < n; i++) {
        const KEY k = key[i];
        int64_t at = i;
        for (; at > 0 && key[at - 1] > k; at--) {
            key[at] = key[at - 1];
            place[at] = place[at - 1];
        }
        key[at] = k;
        place[at] = (uint32_t)i;
    }
}

/* All of n keys, by digits of so many bits, a constant where it is called. keys and places have room for two
 * rows; counts for a table a digit. */
static inline __attribute__((always_inline)) void NAME(digits)(KEY *keys, uint32_t *places, uint32_t *counts,
                                                               int64_t n, int bits, int32_t *out) {
    const int digits = ((int)sizeof(KEY) * 8 + bits - 1) / bits;
    const KEY radix = (KEY)1 << bits;
    KEY *from = keys, *to = keys + n;
    uint32_t *at = places, *next = places + n;
    memset(counts, 0, (size_t)digits * (size_t)radix * sizeof *counts);
    for (int64_t i = 0; i < n; i++) {
        at[i] = (uint32_t)i;
        for (int d = 0; d < digits; d++) counts[((KEY)d << bits) + (from[i] >> (d * bits) & (radix - 1))]++;
    }
    for (int d = 0; d < digits; d++) {
        uint32_t *count = counts + ((size_t)d << bits), sum = 0;
        const int shift = d * bits;
        if (count[from[0] >> shift & (radix - 1)] == (uint32_t)n) continue; /* the same in all */
        for (KEY v = 0; v < radix; v++) {
            const uint32_t here = count[v];
            count[v] = sum;
            sum += here;
        }
        for (int64_t i = 0; i < n; i++) {
            const uint32_t place = count[from[i] >> shift & (radix - 1)]++;
            to[place] = from[i];
            next[place] = at[i];
        }
        KEY *const spare = from;
        uint32_t *const room = at;
        from = to, to = spare;
        at = next, next = room;
    }
    for (int64_t i = 0; i < n; i++) out[i] = (int32_t)at[i];
}

static void NAME(short_row)(KEY *keys, uint32_t *places, uint32_t *counts, int64_t n, int32_t *out) {
    NAME(digits)(keys, places, counts, n, BITS, out);
}

static void NAME(long_row)(KEY *keys, uint32_t *places, uint32_t *counts, int64_t n, int32_t *out) {
    NAME(digits)(keys, places, counts, n, BITS_LONG, out);
}

/* One row. scratch: keys, then places, of the few or of two rows, then the counts. */
static void NAME(row)(const order_plan *plan, const KEY *x, void *scratch, int32_t *out) {
    const weft_heavy_order *o = &plan->order;
    const int64_t n = o->extent;
    KEY *keys = scratch;
    if (plan->few) {
        NAME(few)(&plan->form, x, n, o->count, keys, (uint32_t *)(void *)(keys + o->count), out);
        return;
    }
    uint32_t *places = (uint32_t *)(void *)(keys + 2 * n);
    for (int64_t i = 0; i < n; i++) keys[i] = NAME(key)(&plan->form, x[i]);
    if (n <= SMALL) {
        NAME(small)(keys, n, places);
        memcpy(out, places, (size_t)o->count * sizeof *out);
    } else {
        int32_t *all = o->count == n ? out : (int32_t *)scratch;
        (n < LONG ? NAME(short_row) : NAME(long_row))(keys, places, places + 2 * n, n, all);
        if (all != out) memcpy(out, all, (size_t)o->count * sizeof *out);
    }
}
