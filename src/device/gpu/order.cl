/* The positions that put rows in order, or the first `count` of them, by merging runs (Green et al. 2012, "GPU merge
 * path"): of RUN elements, which a worker puts in order by exchanging neighbours, all in registers (odd-even
 * transposition), and then of twice as many each time, cut off at `count`, since what comes later is in no answer. Keys
 * are unsigned integers T that compare as the elements do: -0 as 0, NaN last, turned round for descending order. Of equal
 * keys those of the left run come first. INFINITE: the bits of it. */
#define RUN   16
#define PIECE 64 /* of a merged run, for one worker */

W_FN T key_of(T bits, int is_float, int descending) {
    const T top = (T)1 << (8 * sizeof(T) - 1), size = bits & ~top;
    T key = bits ^ top;
    if (is_float) {
        key = size == 0 ? top : bits & top ? ~bits : bits | top;
        if (size > INFINITE) key = ~(T)0;
    }
    return descending ? ~key : key;
}

W_NUMBERS(order_runs) {
    w_i64 input_at, keys_at, places_at, out_at;
    w_i64 rows, extent, count, runs, room;
    int is_float, descending, last, sink, command;
};
W_KERNEL W_ITEMS(ITEMS, 1, 1) void order_runs(const W_GLOBAL T *input, W_GLOBAL T *keys, W_GLOBAL int *places,
                                              W_GLOBAL int *out, W_GLOBAL w_faults *faults,
                                              const W_NUMBERS(order_runs) of) {
    if (of.sink && w_faulted(faults)) return;
    for (w_i64 w = (w_i64)w_group(0) * ITEMS + w_item(0); w < of.rows * of.runs; w += (w_i64)w_groups(0) * ITEMS) {
        const w_i64 row = w / of.runs, first = w % of.runs * RUN;
        const int n = (int)min((w_i64)RUN, of.extent - first), most = (int)min((w_i64)n, of.count);
        T key[RUN];
        int place[RUN];
        W_CARD_UNROLL for (int i = 0; i < RUN; i++) {
            key[i] = i < n ? key_of(input[of.input_at + row * of.extent + first + i], of.is_float, of.descending) : ~(T)0;
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
                out[of.out_at + row * of.count + i] = place[i];
            } else {
                keys[of.keys_at + w * of.room + i] = key[i];
                places[of.places_at + w * of.room + i] = place[i];
            }
        }
    }
}

/* Runs `from` that stand for `span` elements each become half as many `to`, a run in `room` elements each. */
W_NUMBERS(order_merge) {
    w_i64 from_keys_at, from_places_at, to_keys_at, to_places_at, out_at;
    w_i64 rows, extent, count, runs, span, room, wide, pieces;
    int last, sink, command;
};
W_KERNEL W_ITEMS(ITEMS, 1, 1) void order_merge(const W_GLOBAL T *from_keys, const W_GLOBAL int *from_places,
                                               W_GLOBAL T *to_keys, W_GLOBAL int *to_places, W_GLOBAL int *out,
                                               W_GLOBAL w_faults *faults, const W_NUMBERS(order_merge) of) {
    if (of.sink && w_faulted(faults)) return;
    const w_i64 merged = (of.runs + 1) / 2;
    for (w_i64 w = (w_i64)w_group(0) * ITEMS + w_item(0); w < of.rows * merged * of.pieces;
         w += (w_i64)w_groups(0) * ITEMS) {
        const w_i64 run = w / of.pieces % merged, row = w / of.pieces / merged, left = row * of.runs + 2 * run;
        const w_i64 n = min(of.room, of.extent - 2 * run * of.span);
        const w_i64 m = 2 * run + 1 < of.runs ? min(of.room, of.extent - (2 * run + 1) * of.span) : 0;
        const w_i64 begin = w % of.pieces * PIECE, end = min(begin + PIECE, min(n + m, of.wide));
        const W_GLOBAL T *a = from_keys + of.from_keys_at + left * of.room, *b = a + of.room;
        const W_GLOBAL int *at_a = from_places + of.from_places_at + left * of.room, *at_b = at_a + of.room;
        if (begin >= end) continue;
        w_i64 i = begin > m ? begin - m : 0, most = min(begin, n);
        while (i < most) { /* how many of the first `begin` are a's */
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
                out[of.out_at + row * of.count + k] = place;
            } else {
                to_keys[of.to_keys_at + (row * merged + run) * of.wide + k] = key;
                to_places[of.to_places_at + (row * merged + run) * of.wide + k] = place;
            }
            if (first)
                i++;
            else
                j++;
        }
    }
}
