/* The positions that sort rows, or the first `count` of them, by merging sorted runs (Green et al. 2012, "GPU merge
 * path").
 *
 *     row            | run 0 | run 1 | run 2 | run 3 |    sorted by one worker each
 *     argsort_merge    |    run 0      |    run 1      |    each launch halves the number of runs
 *     argsort_merge    |             run 0             |
 *
 * Runs are cut off at `count` elements, since later ones are in no result. The first runs:
 *
 *     argsort_runs      RUN elements, in registers, by exchanging neighbours (odd-even transposition)
 *
 * Keys are unsigned integers T that compare as the elements do: -0 equals 0, and NaN comes last. For descending order
 * their bits are inverted. Of equal keys, those of the left run come first. INFINITE: the bits of infinity. */
#include "device/gpu/heavy/argsort_params.h"

/* Returns the key of an element with these bits. floats: all bits set if elements are floats. turned: all bits set for
 * descending order. */
W_FN T key_of(T bits, T floats, T turned) {
    const int sign = 8 * sizeof(T) - 1;
    const T top = (T)1 << sign;
    const T size = bits & ~top, zero = (size - 1) >> sign, nan = ((T)INFINITE - size) >> sign;
    const T some = bits & ~(-zero & floats), flip = (-(some >> sign) & floats) | top;
    return ((some ^ flip) | (-nan & floats)) ^ turned;
}

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
