/* The positions that sort rows, or the first `count` of them, by merging sorted runs (Green et al. 2012, "GPU merge
 * path").
 *
 *     row            | run 0 | run 1 | run 2 | run 3 |    sorted by one worker each
 *     argsort_merge    |    run 0      |    run 1      |    each launch halves the number of runs
 *     argsort_merge    |             run 0             |
 *
 * Runs are cut off at `count` elements, since later ones are in no result. First runs:
 *
 *     argsort_runs      (GPUs) RUN elements, in registers, by exchanging neighbours (odd-even transposition)
 *     argsort_digits    (CPUs) a radix sort of a longer run
 *     argsort_heads     (CPUs) only the first `count` of a longer run, by a heap
 *
 * Keys are unsigned integers T that compare as the elements do: -0 equals 0, and NaN comes last. For descending order
 * their bits are inverted. Of equal keys, those of the left run come first. INFINITE: the bits of infinity. */
#include "device/gpu/heavy/argsort_params.h"

/* Returns the key of an element with these bits. floats: all bits set if elements are floats. turned: all bits set for
 * descending order. There is no branch, so it works for vectors, too. */
#define KEY_OF(KEY, name)                                                                                    \
    W_FN KEY name(KEY bits, T floats, T turned) {                                                            \
        const int sign = 8 * sizeof(T) - 1;                                                                  \
        const T top = (T)1 << sign;                                                                          \
        const KEY size = bits & ~top, zero = (size - 1) >> sign, nan = ((T)INFINITE - size) >> sign;         \
        const KEY some = bits & ~(-zero & floats), flip = (-(some >> sign) & floats) | top;                  \
        return ((some ^ flip) | (-nan & floats)) ^ turned;                                                   \
    }
KEY_OF(T, key_of)

#ifdef VECTORS
KEY_OF(S16, keys_of)

/* Restores the heap of n elements below element `at`. Its root is the element that comes last in the order. */
W_FN void sink_in(W_GLOBAL T *key, W_GLOBAL int *place, w_i64 at, w_i64 n) {
    const T k = key[at];
    const int p = place[at];
    for (w_i64 child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && (key[child + 1] > key[child] ||
                              (key[child + 1] == key[child] && place[child + 1] > place[child])))
            child++;
        if (key[child] < k || (key[child] == k && place[child] < p)) break;
        key[at] = key[child];
        place[at] = place[child];
    }
    key[at] = k;
    place[at] = p;
}

/* The first `count` elements of runs of `span`. A heap holds the first ones so far. Most elements are only compared
 * with its root. */
W_NUMBERS(argsort_heads) {
    w_i64 input_at, keys_at, places_at, out_at;
    w_order order;
    int command;
};
W_KERNEL W_ITEMS(1, 1, 1) void argsort_heads(const W_GLOBAL T *input, W_GLOBAL T *keys, W_GLOBAL int *places,
                                           W_GLOBAL int *out, W_GLOBAL w_faults *faults,
                                           const W_NUMBERS(argsort_heads) given) {
    const w_order of = given.order;
    W_RETURN_IF_FAULTED(ITEMS, of.sink)
    const T floats = of.is_float ? ~(T)0 : 0, turned = of.descending ? ~(T)0 : 0;
    FOR_MINE(w, of.rows * of.runs) {
        const w_i64 row = w / of.runs, first = w % of.runs * of.span;
        const w_i64 n = min(of.span, of.extent - first), count = min(n, of.count);
        const W_GLOBAL T *x = input + given.input_at + row * of.extent + first;
        W_GLOBAL T *key = keys + given.keys_at + w * of.room;
        W_GLOBAL int *place = places + given.places_at + w * of.room;
        for (w_i64 i = 0; i < count; i++) {
            key[i] = key_of(x[i], floats, turned);
            place[i] = (int)(first + i);
        }
        for (w_i64 i = count / 2; i-- > 0;) sink_in(key, place, i, count);
        T least = key[0]; /* only smaller keys are among the first */
        for (w_i64 i = count, some; i < n; i += some) {
            some = min(n - i, (w_i64)64);
            if (some == 64) {
                const S16 a = keys_of(vload16(0, x + i), floats, turned),
                          b = keys_of(vload16(1, x + i), floats, turned),
                          c = keys_of(vload16(2, x + i), floats, turned),
                          d = keys_of(vload16(3, x + i), floats, turned);
                if (!any(min(min(a, b), min(c, d)) < least)) continue;
            }
            for (w_i64 k = i; k < i + some; k++) {
                const T here = key_of(x[k], floats, turned);
                if (here >= least) continue; /* equal keys come later */
                key[0] = here;
                place[0] = (int)(first + k);
                sink_in(key, place, 0, count);
                least = key[0];
            }
        }
        for (w_i64 left = count; left-- > 0;) { /* sorts the heap, from the last element to the first */
            const T k = key[0];
            const int p = place[0];
            key[0] = key[left], place[0] = place[left];
            sink_in(key, place, 0, left);
            key[left] = k, place[left] = p;
        }
        if (of.last)
            for (w_i64 i = 0; i < count; i++) out[given.out_at + row * of.count + i] = place[i];
    }
}

/* Insertion sort, for few elements. */
W_FN void insert_each(W_GLOBAL T *key, W_GLOBAL int *place, int n) {
    for (int i = 1; i < n; i++) {
        const T k = key[i];
        const int p = place[i];
        int at = i;
        for (; at > 0 && key[at - 1] > k; at--) {
            key[at] = key[at - 1];
            place[at] = place[at - 1];
        }
        key[at] = k;
        place[at] = p;
    }
}

/* Sorts a run of `span` elements by radix sort, one byte after the other, from the lowest. It keeps the order of equal
 * keys. */
#define DIGITS (int)sizeof(T)
W_NUMBERS(argsort_digits) {
    w_i64 input_at, keys_at, places_at, more_keys_at, more_places_at, out_at;
    w_order order;
    int command;
};
W_KERNEL W_ITEMS(1, 1, 1) void argsort_digits(const W_GLOBAL T *input, W_GLOBAL T *keys, W_GLOBAL int *places,
                                            W_GLOBAL T *more_keys, W_GLOBAL int *more_places, W_GLOBAL int *out,
                                            W_GLOBAL w_faults *faults, const W_NUMBERS(argsort_digits) given) {
    const w_order of = given.order;
    W_RETURN_IF_FAULTED(ITEMS, of.sink)
    const T floats = of.is_float ? ~(T)0 : 0, turned = of.descending ? ~(T)0 : 0;
    FOR_MINE(w, of.rows * of.runs) {
        const w_i64 row = w / of.runs, first = w % of.runs * of.span;
        const int n = (int)min(of.span, of.extent - first);
        const W_GLOBAL T *x = input + given.input_at + row * of.extent + first;
        W_GLOBAL T *key = keys + given.keys_at + w * of.span, *from = key;
        W_GLOBAL T *to = more_keys + given.more_keys_at + w * of.span;
        W_GLOBAL int *place = places + given.places_at + w * of.span, *at = place,
                     *next = more_places + given.more_places_at + w * of.span;
        for (int i = 0; i < n; i++) {
            from[i] = key_of(x[i], floats, turned);
            at[i] = (int)first + i;
        }
        if (n <= 32) {
            insert_each(from, at, n);
        } else {
            int counts[DIGITS * 256];
            for (int i = 0; i < DIGITS * 256; i++) counts[i] = 0;
            for (int i = 0; i < n; i++)
                for (int d = 0; d < DIGITS; d++) counts[d * 256 + (int)(from[i] >> 8 * d & 255)]++;
            for (int d = 0; d < DIGITS; d++) {
                int *count = counts + d * 256, sum = 0;
                if (count[(int)(from[0] >> 8 * d & 255)] == n) continue; /* all keys have the same byte */
                for (int v = 0; v < 256; v++) {
                    const int here = count[v];
                    count[v] = sum;
                    sum += here;
                }
                for (int i = 0; i < n; i++) {
                    const int to_place = count[(int)(from[i] >> 8 * d & 255)]++;
                    to[to_place] = from[i];
                    next[to_place] = at[i];
                }
                W_GLOBAL T *spare = from;
                W_GLOBAL int *room = at;
                from = to, to = spare, at = next, next = room;
            }
        }
        for (int i = 0; of.last && i < (int)min((w_i64)n, of.count); i++)
            out[given.out_at + row * of.count + i] = at[i];
        for (int i = 0; !of.last && from != key && i < n; i++) {
            key[i] = from[i];
            place[i] = at[i];
        }
    }
}
#else
W_NUMBERS(argsort_runs) {
    w_i64 input_at, keys_at, places_at, out_at;
    w_order order;
    int command;
};
W_KERNEL W_ITEMS(ITEMS, 1, 1) void argsort_runs(const W_GLOBAL T *input, W_GLOBAL T *keys, W_GLOBAL int *places,
                                              W_GLOBAL int *out, W_GLOBAL w_faults *faults,
                                              const W_NUMBERS(argsort_runs) given) {
    const w_order of = given.order;
    W_RETURN_IF_FAULTED(ITEMS, of.sink)
    FOR_MINE(w, of.rows * of.runs) {
        const w_i64 row = w / of.runs, first = w % of.runs * RUN;
        const int n = (int)min((w_i64)RUN, of.extent - first), most = (int)min((w_i64)n, of.count);
        const T floats = of.is_float ? ~(T)0 : 0, turned = of.descending ? ~(T)0 : 0;
        T key[RUN];
        int place[RUN];
        W_CARD_UNROLL for (int i = 0; i < RUN; i++) {
            key[i] = i < n ? key_of(input[given.input_at + row * of.extent + first + i], floats, turned) : ~(T)0;
            place[i] = (int)first + i;
        }
        W_CARD_UNROLL for (int turn = 0; turn < RUN; turn++) {
            W_CARD_UNROLL for (int i = turn % 2; i + 1 < RUN; i += 2) {
                const T x = key[i], y = key[i + 1];
                const int swap = x > y, p = place[i], q = place[i + 1];
                key[i] = swap ? y : x;
                key[i + 1] = swap ? x : y;
                place[i] = swap ? q : p;
                place[i + 1] = swap ? p : q;
            }
        }
        W_CARD_UNROLL for (int i = 0; i < RUN; i++) {
            if (i >= most) continue;
            if (of.last) {
                out[given.out_at + row * of.count + i] = place[i];
            } else {
                keys[given.keys_at + w * of.room + i] = key[i];
                places[given.places_at + w * of.room + i] = place[i];
            }
        }
    }
}
#endif

/* Merges pairs of runs of `span` elements each. `room` elements of each run are stored, and `wide` of a merged one. A
 * worker writes PIECE elements. It finds by bisection how many of the elements before them come from the left run. */
W_NUMBERS(argsort_merge) {
    w_i64 from_keys_at, from_places_at, to_keys_at, to_places_at, out_at;
    w_order order;
    int command;
};
W_KERNEL W_ITEMS(ITEMS, 1, 1) void argsort_merge(const W_GLOBAL T *from_keys, const W_GLOBAL int *from_places,
                                               W_GLOBAL T *to_keys, W_GLOBAL int *to_places, W_GLOBAL int *out,
                                               W_GLOBAL w_faults *faults, const W_NUMBERS(argsort_merge) given) {
    const w_order of = given.order;
    W_RETURN_IF_FAULTED(ITEMS, of.sink)
    const w_i64 merged = (of.runs + 1) / 2;
    FOR_MINE(w, of.rows * merged * of.pieces) {
        const w_i64 run = w / of.pieces % merged, row = w / of.pieces / merged, left = row * of.runs + 2 * run;
        const w_i64 n = min(of.room, of.extent - 2 * run * of.span);
        const w_i64 m = 2 * run + 1 < of.runs ? min(of.room, of.extent - (2 * run + 1) * of.span) : 0;
        const w_i64 begin = w % of.pieces * PIECE, end = min(begin + PIECE, min(n + m, of.wide));
        const W_GLOBAL T *a = from_keys + given.from_keys_at + left * of.room, *b = a + of.room;
        const W_GLOBAL int *at_a = from_places + given.from_places_at + left * of.room, *at_b = at_a + of.room;
        if (begin >= end) continue;
        w_i64 i = begin > m ? begin - m : 0, most = min(begin, n);
        while (i < most) { /* how many of the first `begin` elements come from a */
            const w_i64 middle = (i + most) / 2;
            if (a[middle] <= b[begin - 1 - middle])
                i = middle + 1;
            else
                most = middle;
        }
        w_i64 j = begin - i;
        for (w_i64 k = begin; k < end; k++) {
            const int first = j >= m || (i < n && a[i] <= b[j]);
            const T key = first ? a[i] : b[j];
            const int place = first ? at_a[i] : at_b[j];
            if (of.last) {
                out[given.out_at + row * of.count + k] = place;
            } else {
                to_keys[given.to_keys_at + (row * merged + run) * of.wide + k] = key;
                to_places[given.to_places_at + (row * merged + run) * of.wide + k] = place;
            }
            if (first)
                i++;
            else
                j++;
        }
    }
}
