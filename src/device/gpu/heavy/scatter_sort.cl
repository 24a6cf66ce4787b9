/* Scatter-add for many indices on GPUs: the positions of the index are sorted by row, then each row is added up.
 *
 *     scatter_fill       out = base, or 0, if rows without an index must be set
 *     for each digit of the rows, from the lowest:
 *       scatter_count    how often each digit occurs in each tile of keys
 *       scatter_offsets  for each digit, its sums over the tiles before
 *       scatter_place    moves keys and positions to their places; equal keys keep their order
 *     scatter_sum        adds the sources of each row, in pieces of SEGMENT of them
 *     scatter_join       adds up the pieces of rows that have several
 *
 * A row's sum depends on its own sources alone: base + s0 + s1 + ..., in the order of the index, for rows of at most
 * SEGMENT sources. Longer rows are (base + s0 + ...) + (s128 + ...) + .... Atomics only count, so nothing depends on
 * their order. A bad index gets the key `rows`, which comes last, and its first position is reported.
 * INDEX: the type of the index. */
#include "device/gpu/heavy/scatter_params.h"
#include "device/gpu/heavy/scatter_sort_params.h"

#define WIDE  (16 / (int)sizeof(T)) /* elements of a chunk */
#define AHEAD 4                     /* chunks that a work-item loads before it adds them */

#ifdef W_ELEMENTWISE
typedef struct lump {
    T each[WIDE];
} lump;
#else
typedef union lump {
    uint4 all;
    T each[WIDE];
} lump;
#endif

#if FORMAT == FORMAT_SAME
#define GET(l, i)    ((l).each[i])
#define PUT(l, i, v) ((l).each[i] = (v))
#elif FORMAT == FORMAT_F16 && defined(W_ELEMENTWISE)
#define GET(l, i)    w_from_f16_bits((l).each[i])
#define PUT(l, i, v) ((l).each[i] = (T)w_to_f16_bits(v))
#elif FORMAT == FORMAT_F16
#define GET(l, i)    vload_half(i, (const half *)(l).each)
#define PUT(l, i, v) vstore_half_rte(v, i, (half *)(l).each)
#else
#define GET(l, i)    as_float((w_u32)(l).each[i] << 16)
#define PUT(l, i, v) ((l).each[i] = to_bf16(v))
#endif

/* `wide` adjacent elements: 1, or a chunk, whose address is then a multiple of 16. */
INLINE lump fetch(const W_GLOBAL T *from, int wide) {
    lump l;
    if (wide == 1)
        l.each[0] = from[0];
    else
#ifdef W_ELEMENTWISE
        for (int i = 0; i < WIDE; i++) l.each[i] = from[i];
#else
        l.all = *(const W_GLOBAL uint4 *)from;
#endif
    return l;
}

INLINE void put(W_GLOBAL T *to, lump l, int wide) {
    if (wide == 1)
        to[0] = l.each[0];
    else
#ifdef W_ELEMENTWISE
        for (int i = 0; i < WIDE; i++) to[i] = l.each[i];
#else
        *(W_GLOBAL uint4 *)to = l.all;
#endif
}

/* Are all of these addresses multiples of 16? */
#define ALIGNED(a, b, c) ((((ulong)(a) | (ulong)(b) | (ulong)(c)) & 15) == 0)

W_NUMBERS(scatter_fill) {
    w_i64 base_at, out_at, state_at;
    w_scatter_sort scatter;
    int command;
};
W_KERNEL W_ITEMS(ITEMS, 1, 1) void scatter_fill(const W_GLOBAL T *base, W_GLOBAL T *out, const W_GLOBAL int *state,
                                                W_GLOBAL w_faults *faults, const W_NUMBERS(scatter_fill) given) {
    const w_scatter_sort of = given.scatter;
    if (state[given.state_at]) return;
    base += given.base_at, out += given.out_at;
    const w_i64 n = of.outer * of.rows * of.inner, chunks = ALIGNED(base, out, 0) ? n / WIDE : 0;
    lump none;
    W_CARD_UNROLL for (int e = 0; e < WIDE; e++) none.each[e] = 0;
    FOR_MINE(i, chunks) put(out + i * WIDE, of.based ? fetch(base + i * WIDE, WIDE) : none, WIDE);
    FOR_MINE(i, n - chunks * WIDE) out[chunks * WIDE + i] = of.based ? base[chunks * WIDE + i] : (T)0;
}

/* ---- the sort ---- */

/* Returns the sum of `mine` over the work-items before this one. */
INLINE int sum_before(W_LOCAL int *room, int mine) {
    const int lane = w_item(0);
    int sum = mine;
    for (int by = 1; by < ITEMS; by *= 2) {
        room[lane] = sum;
        w_barrier();
        if (lane >= by) sum += room[lane - by];
        w_barrier();
    }
    return sum - mine;
}

/* Key i of a pass. The first pass reads the index, where a bad one becomes `rows`. */
INLINE w_u32 key_of(const W_GLOBAL INDEX *index, const W_GLOBAL w_u32 *keys, const w_scatter_sort of, w_i64 i) {
    if (!of.first) return keys[i];
    const w_i64 row = index[i];
    return (w_u32)(row >= 0 && row < of.rows ? row : of.rows);
}

/* Begins a kernel of the sort. */
#define OPEN                                                                                                 \
    const w_scatter_sort of = given.scatter;                                                                 \
    const int lane = w_item(0), tile = w_group(0);                                                           \
    const w_i64 begin = (w_i64)tile * of.tile, end = min(begin + of.tile, of.count);                         \
    index += given.index_at, keys += given.keys_at, counts += given.counts_at;

/* state: does the whole scatter-add do nothing? Later launches read it, since a fault may be recorded meanwhile. */
W_NUMBERS(scatter_count) {
    w_i64 index_at, keys_at, counts_at, state_at;
    w_scatter_sort scatter;
    int command;
};
W_KERNEL W_ITEMS(ITEMS, 1, 1) void scatter_count(const W_GLOBAL INDEX *index, const W_GLOBAL w_u32 *keys,
                                                 W_GLOBAL int *counts, W_GLOBAL int *state, W_GLOBAL w_faults *faults,
                                                 const W_NUMBERS(scatter_count) given) {
    W_LOCAL_ROOM int here[DIGITS];
    OPEN
    if (tile == 0 && lane == 0 && of.first) state[given.state_at] = of.sink && w_faulted(faults);
    for (int d = lane; d < DIGITS; d += ITEMS) here[d] = 0;
    w_barrier();
    for (w_i64 i = begin + lane; i < end; i += ITEMS)
        atomic_add(&here[key_of(index, keys, of, i) >> of.shift & (DIGITS - 1)], 1);
    w_barrier();
    for (int d = lane; d < DIGITS; d += ITEMS) counts[(w_i64)d * of.tiles + tile] = here[d];
}

/* A work-group has one digit. */
W_NUMBERS(scatter_offsets) {
    w_i64 counts_at, totals_at;
    w_scatter_sort scatter;
    int command;
};
W_KERNEL W_ITEMS(ITEMS, 1, 1) void scatter_offsets(W_GLOBAL int *counts, W_GLOBAL int *totals,
                                                   W_GLOBAL w_faults *faults,
                                                   const W_NUMBERS(scatter_offsets) given) {
    W_LOCAL_ROOM int room[ITEMS];
    const int tiles = given.scatter.tiles, each = (tiles + ITEMS - 1) / ITEMS, lane = w_item(0);
    const int first = min(lane * each, tiles), last = min(first + each, tiles);
    counts += given.counts_at + (w_i64)w_group(0) * tiles;
    int sum = 0;
    for (int t = first; t < last; t++) sum += counts[t];
    sum = sum_before(room, sum);
    for (int t = first; t < last; t++) {
        const int here = counts[t];
        counts[t] = sum;
        sum += here;
    }
    if (lane == ITEMS - 1) totals[given.totals_at + w_group(0)] = sum;
}

W_NUMBERS(scatter_place) {
    w_i64 index_at, keys_at, places_at, counts_at, totals_at, to_keys_at, to_places_at;
    w_scatter_sort scatter;
    int command;
};
W_KERNEL W_ITEMS(ITEMS, 1, 1) void scatter_place(const W_GLOBAL INDEX *index, const W_GLOBAL w_u32 *keys,
                                                 const W_GLOBAL int *places, const W_GLOBAL int *counts,
                                                 const W_GLOBAL int *totals, W_GLOBAL w_u32 *to_keys,
                                                 W_GLOBAL int *to_places, W_GLOBAL w_faults *faults,
                                                 const W_NUMBERS(scatter_place) given) {
    W_LOCAL_ROOM int next[DIGITS]; /* where the next key with this digit goes */
    W_LOCAL_ROOM int room[ITEMS];
    OPEN
    places += given.places_at, totals += given.totals_at;
    to_keys += given.to_keys_at, to_places += given.to_places_at;
    const int each = DIGITS / ITEMS;
    int sum = 0;
    for (int d = lane * each; d < (lane + 1) * each; d++) sum += totals[d];
    sum = sum_before(room, sum);
    for (int d = lane * each; d < (lane + 1) * each; d++) {
        next[d] = sum + counts[(w_i64)d * of.tiles + tile];
        sum += totals[d];
    }
    for (w_i64 i0 = begin; i0 < end; i0 += ITEMS) {
        const w_i64 i = i0 + lane;
        const w_u32 key = i < end ? key_of(index, keys, of, i) : 0;
        const int digit = i < end ? (int)(key >> of.shift & (DIGITS - 1)) : DIGITS;
        room[lane] = digit;
        w_barrier();
        int to = i < end ? next[digit] : 0;
        for (int k = 0; k < lane; k++) to += room[k] == digit;
        w_barrier();
        if (i < end) {
            atomic_add(&next[digit], 1);
            to_keys[to] = key;
            to_places[to] = of.first ? (int)i : places[i];
        }
    }
}

/* ---- the sums ---- */

/* Returns the first of the ascending keys from..to-1 that is not below `key`, or `to`. */
#define SEARCH(SPACE, name)                                                                                  \
    W_FN int name(const SPACE w_u32 *keys, int from, int to, w_u32 key) {                                    \
        while (from < to) {                                                                                  \
            const int middle = from + (to - from) / 2;                                                       \
            if (keys[middle] < key)                                                                          \
                from = middle + 1;                                                                           \
            else                                                                                             \
                to = middle;                                                                                 \
        }                                                                                                    \
        return from;                                                                                         \
    }
SEARCH(W_GLOBAL, search)
SEARCH(W_LOCAL, search_local)

/* How a piece begins at key k of a work-group: its length, and two flags. 0: no piece begins there. */
#define FIRST      1 /* of its row */
#define MORE       2 /* its row has another piece */
#define FLAGS      2
#define LENGTH(of) ((of) >> FLAGS)

/* Returns that for key k of n. begun: the place of the first key that equals key 0, which may be before it. */
W_FN int piece_at(const W_LOCAL w_u32 *key, int k, int n, int begun) {
    const w_u32 row = key[k];
    const int since = row == key[0] ? k - begun : k && key[k - 1] == row ? 1 : 0;
    if (since % SEGMENT != 0) return 0;
    const int end = search_local(key, k, min(k + SEGMENT, n), row + 1);
    const int more = k + SEGMENT < n && key[k + SEGMENT] == row;
    return (end - k) << FLAGS | (more ? MORE : 0) | (since == 0 ? FIRST : 0);
}

/* Adds up `wide` columns of a piece, and returns them in sum. from: positions in the source. */
INLINE void add_piece(const W_GLOBAL T *source, w_i64 inner, const W_LOCAL int *from, int length, int wide, S *sum) {
    for (int k = 0; k < length; k += AHEAD) {
        lump got[AHEAD];
        W_CARD_UNROLL for (int a = 0; a < AHEAD; a++)
            if (k + a < length) got[a] = fetch(source + from[k + a] * inner, wide);
        W_CARD_UNROLL for (int a = 0; a < AHEAD; a++) {
            if (k + a >= length) continue;
            W_CARD_UNROLL for (int e = 0; e < WIDE; e++)
                if (e < wide) sum[e] += GET(got[a], e);
        }
    }
}

/* The same, from the base on, to out or to `room`. */
INLINE void sum_piece(const W_GLOBAL T *source, const W_GLOBAL T *base, W_GLOBAL T *out, W_GLOBAL S *room, w_i64 inner,
                      const W_LOCAL int *from, int piece, int based, int wide) {
    S sum[WIDE];
    lump l;
    W_CARD_UNROLL for (int e = 0; e < WIDE; e++) sum[e] = 0;
    if (based && (piece & FIRST)) {
        l = fetch(base, wide);
        W_CARD_UNROLL for (int e = 0; e < WIDE; e++)
            if (e < wide) sum[e] = GET(l, e);
    }
    add_piece(source, inner, from, LENGTH(piece), wide, sum);
    if ((piece & (FIRST | MORE)) == FIRST) {
        W_CARD_UNROLL for (int e = 0; e < WIDE; e++)
            if (e < wide) PUT(l, e, sum[e]);
        put(out, l, wide);
    } else {
        W_CARD_UNROLL for (int e = 0; e < WIDE; e++)
            if (e < wide) room[e] = sum[e];
    }
}

/* A work-group has the pieces that begin among SEGMENT keys. At most two of them belong to rows of several pieces: the
 * last piece of a row, and then the first one of another row. So room has two slots for each work-group.
 * joins: the first key of that other row, or -1. */
W_NUMBERS(scatter_sum) {
    w_i64 index_at, source_at, base_at, out_at, keys_at, places_at, room_at, joins_at, state_at;
    w_scatter_sort scatter;
    int command;
};
W_KERNEL W_ITEMS(ITEMS, 1, 1) void scatter_sum(const W_GLOBAL INDEX *index, const W_GLOBAL T *source,
                                               const W_GLOBAL T *base, W_GLOBAL T *out, const W_GLOBAL w_u32 *keys,
                                               const W_GLOBAL int *places, W_GLOBAL S *room, W_GLOBAL int *joins,
                                               const W_GLOBAL int *state, W_GLOBAL w_faults *faults,
                                               const W_NUMBERS(scatter_sum) given) {
    W_LOCAL_ROOM w_u32 key[2 * SEGMENT];
    W_LOCAL_ROOM int from[2 * SEGMENT], pieces[SEGMENT], begun, joined;
    const w_scatter_sort of = given.scatter;
    if (W_SAME(state[given.state_at])) return;
    const int lane = w_item(0), group = w_group(0), once = w_group(1) == 0 && w_group(2) == 0;
    const w_i64 k0 = (w_i64)group * SEGMENT, inner = of.inner, tiles = w_groups(0);
    const int n = (int)min((w_i64)2 * SEGMENT, of.count - k0), mine = min(n, SEGMENT);
    index += given.index_at, source += given.source_at, base += given.base_at, out += given.out_at;
    keys += given.keys_at, room += given.room_at + group * 2 * inner;
    for (int k = lane; k < n; k += ITEMS) key[k] = keys[k0 + k], from[k] = places[given.places_at + k0 + k];
    if (lane == 0) {
        joined = -1;
        begun = group && keys[k0 - 1] == keys[k0] ? (int)(search(keys, 0, (int)k0, keys[k0]) - k0) : 0;
    }
    w_barrier();
    for (int k = lane; k < mine; k += ITEMS) {
        const int piece = piece_at(key, k, n, begun), bad = key[k] == (w_u32)of.rows;
        pieces[k] = bad ? 0 : piece;
        if (bad && once && (piece & FIRST))
            w_fault(faults, given.command, W_FAULT_SCATTER, index[from[k]], of.rows, from[k]);
        if (!bad && (piece & FIRST) && (piece & MORE)) joined = (int)k0 + k;
    }
    w_barrier();
    if (lane == 0 && once) joins[given.joins_at + group] = joined;
    const int wide = inner % WIDE == 0 && ALIGNED(source, base, out) ? WIDE : 1;
    const w_i64 chunks = inner / wide;
    for (w_i64 o = w_group(2); o < of.outer; o += w_groups(2))
        for (w_i64 c0 = (w_i64)w_group(1) * SPAN; c0 < chunks; c0 += (w_i64)w_groups(1) * SPAN) {
            const int span = (int)min((w_i64)SPAN, chunks - c0);
            for (int w = lane; w < mine * span; w += ITEMS) {
                const int k = w / span, piece = pieces[k];
                if (piece == 0) continue;
                const w_i64 c = (c0 + w % span) * wide, to = (o * of.rows + key[k]) * inner + c;
                const W_GLOBAL T *s = source + o * of.count * inner + c;
                W_GLOBAL S *r = room + (o * tiles * 2 + (piece & FIRST ? 1 : 0)) * inner + c;
                if (wide == 1)
                    sum_piece(s, base + to, out + to, r, inner, from + k, piece, of.based, 1);
                else
                    sum_piece(s, base + to, out + to, r, inner, from + k, piece, of.based, WIDE);
            }
        }
}

/* A work-item has one column of a row whose first piece begins among the keys of a work-group of scatter_sum. */
W_NUMBERS(scatter_join) {
    w_i64 out_at, keys_at, room_at, joins_at, state_at;
    w_scatter_sort scatter;
    int command;
};
W_KERNEL W_ITEMS(ITEMS, 1, 1) void scatter_join(W_GLOBAL T *out, const W_GLOBAL w_u32 *keys, const W_GLOBAL S *room,
                                                const W_GLOBAL int *joins, const W_GLOBAL int *state,
                                                W_GLOBAL w_faults *faults, const W_NUMBERS(scatter_join) given) {
    const w_scatter_sort of = given.scatter;
    if (state[given.state_at]) return;
    const w_i64 inner = of.inner, tiles = (of.count + SEGMENT - 1) / SEGMENT;
    keys += given.keys_at;
    for (w_i64 o = w_group(2); o < of.outer; o += w_groups(2))
        FOR_MINE(w, tiles * inner) {
            const w_i64 tile = w / inner, c = w - tile * inner;
            const int k = joins[given.joins_at + tile];
            if (k < 0) continue;
            const w_u32 row = keys[k];
            const int end = search(keys, k + SEGMENT, (int)of.count, row + 1), pieces = (end - k - 1) / SEGMENT + 1;
            const W_GLOBAL S *from = room + given.room_at + (o * tiles + tile) * 2 * inner + c;
            S sum = from[inner];
            for (int p = 1; p < pieces; p += AHEAD) {
                S got[AHEAD];
                W_CARD_UNROLL for (int a = 0; a < AHEAD; a++) got[a] = from[min(p + a, pieces - 1) * 2 * inner];
                W_CARD_UNROLL for (int a = 0; a < AHEAD; a++)
                    if (p + a < pieces) sum += got[a];
            }
            STORE(out, given.out_at + (o * of.rows + row) * inner + c, sum);
        }
}
