/* Positions of one row in order, for keys of type KEY that compare as unsigned integers: the first few by a
 * heap of the best so far, all by counting digits, from the last to the first (LSD radix sort), which keeps
 * equal keys in order. Included by order.c, once a width, with KEY, KEY_DIGITS, KEY_INFINITE (the bits of an
 * infinity) and NAME. Read next: order.c. */

enum { NAME(digits) = KEY_DIGITS };

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

/* The first `count` of n keys; most are looked at once, BLOCK at a time. */
static void NAME(few)(const KEY *key, int64_t n, int64_t count, KEY *best, uint32_t *place, int32_t *out) {
    enum { BLOCK = 64 };
    for (int64_t i = 0; i < count; i++) {
        best[i] = key[i];
        place[i] = (uint32_t)i;
    }
    for (int64_t i = count / 2; i-- > 0;) NAME(sink)(best, place, i, count);
    for (int64_t at = count; at < n; at += BLOCK) {
        const int64_t end = weft__smaller(at + BLOCK, n);
        KEY least = key[at];
        for (int64_t i = at; i < end; i++) least = key[i] < least ? key[i] : least;
        for (int64_t i = at; i < end && least < best[0]; i++) {
            if (key[i] >= best[0]) continue; /* equal ones come later */
            best[0] = key[i];
            place[0] = (uint32_t)i;
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

/* All of n keys. keys and places have room for two rows; counts for a table a digit. */
static void NAME(all)(KEY *keys, uint32_t *places, uint32_t *counts, int64_t n, int32_t *out) {
    KEY *from = keys, *to = keys + n;
    uint32_t *at = places, *next = places + n;
    memset(counts, 0, (size_t)NAME(digits) * RADIX * sizeof *counts);
    for (int64_t i = 0; i < n; i++) {
        at[i] = (uint32_t)i;
        for (int d = 0; d < NAME(digits); d++)
            counts[d * RADIX + (int)(from[i] >> (d * BITS) & (RADIX - 1))]++;
    }
    for (int d = 0; d < NAME(digits); d++) {
        uint32_t *count = counts + d * RADIX, sum = 0;
        const int shift = d * BITS;
        if (count[from[0] >> shift & (RADIX - 1)] == (uint32_t)n) continue; /* the same in all */
        for (int v = 0; v < RADIX; v++) {
            const uint32_t here = count[v];
            count[v] = sum;
            sum += here;
        }
        for (int64_t i = 0; i < n; i++) {
            const uint32_t place = count[from[i] >> shift & (RADIX - 1)]++;
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

static void NAME(keys)(const KEY *x, KEY *key, int64_t n, bool is_float, KEY turned) {
    const KEY top = (KEY)1 << (sizeof(KEY) * 8 - 1);
    for (int64_t i = 0; i < n; i++) {
        const KEY bits = x[i], size = bits & ~top;
        KEY k = size == 0 ? top : bits & top ? ~bits : bits | top;
        k = size > KEY_INFINITE ? ~(KEY)0 : k;
        key[i] = (is_float ? k : bits ^ top) ^ turned;
    }
}

/* One row. scratch: two rows of keys, then two of places, then the counts. */
static void NAME(row)(const order_plan *plan, const KEY *x, void *scratch, int32_t *out) {
    const weft_heavy_order *o = &plan->order;
    const int64_t n = o->extent;
    KEY *keys = scratch;
    uint32_t *places = (uint32_t *)(void *)(keys + 2 * n);
    NAME(keys)(x, keys, n, weft_dtype_is_float((weft_dtype)o->dtype), o->descending ? ~(KEY)0 : 0);
    if (plan->few) {
        NAME(few)(keys, n, o->count, keys + n, places, out);
    } else if (n <= SMALL) {
        NAME(small)(keys, n, places);
        memcpy(out, places, (size_t)o->count * sizeof *out);
    } else {
        int32_t *all = o->count == n ? out : (int32_t *)scratch;
        NAME(all)(keys, places, places + 2 * n, n, all);
        if (all != out) memcpy(out, all, (size_t)o->count * sizeof *out);
    }
}
