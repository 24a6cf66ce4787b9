/* Attention on GPUs without tensor cores, in blocks (Dao et al. 2022). A work-group has BR rows in local memory and
 * walks over blocks of BC others. Rows are queries and others are keys; for the gradients of keys and values it is the
 * reverse.
 *
 *              BC others                         D channels
 *            +-----------+                     +-----------+
 *     BR     | s = x y^T |  -> weights (tile)  | sums +=   |  BR rows
 *     rows   |           |                     | tile y    |
 *            +-----------+                     +-----------+
 *
 * Each work-item holds its part of s and of the sums in registers. TPR work-items share a row. A work-item has HIGH
 * rows, BR / HIGH apart. Of each row it has every TPR-th of the BC products, and every TPR-th group of four channels.
 *
 * Local memory limits the speed of these products. So it is read four numbers at a time, and its rows have LD and PITCH
 * elements, so that work-items that read together meet no bank conflicts. D: room for channels, a power of two. */
#define LD       (D + 4)
#define PITCH    (BC + 8)
#define COLUMNS  (BC / TPR)
#define CHANNELS (D / TPR)
#define ROW(q)   (w_item(0) / TPR + (q) * (BR / HIGH))
#define COLUMN(u) (w_item(0) % TPR + (u) * TPR)
#define CHANNEL(u) ((w_item(0) % TPR + (u) / 4 * TPR) * 4 + (u) % 4)

W_FN void four(const W_LOCAL S *from, S *to) {
    const S4 x = *(const W_LOCAL S4 *)from;
    to[0] = x.x, to[1] = x.y, to[2] = x.z, to[3] = x.w;
}

/* Loads n rows of d channels; zeros up to `rows` rows and D channels. */
W_FN void load(const W_GLOBAL T *from, w_i64 stride, int n, int rows, int d, W_LOCAL S *to) {
    for (int e = w_item(0); e < rows * D; e += ITEMS) {
        const int r = e / D, c = e % D;
        to[r * LD + c] = r < n && c < d ? LOAD(from, r * stride + c) : 0;
    }
}

/* sum = x y^T: the products of this work-item's rows of x (BR, D) and rows of y (BC, D). */
W_FN void dots(const W_LOCAL S *x, const W_LOCAL S *y, int d, S sum[HIGH][COLUMNS]) {
#pragma unroll
    for (int u = 0; u < HIGH * COLUMNS; u++) sum[u / COLUMNS][u % COLUMNS] = 0;
    for (int c = 0; c < d; c += 4) { /* there are zeros after the last */
        S mine[HIGH][4], z[4];
#pragma unroll
        for (int q = 0; q < HIGH; q++) four(x + ROW(q) * LD + c, mine[q]);
#pragma unroll
        for (int u = 0; u < COLUMNS; u++) {
            four(y + COLUMN(u) * LD + c, z);
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int q = 0; q < HIGH; q++) sum[q][u] = fma(mine[q][i], z[i], sum[q][u]);
        }
    }
}

/* sum += tile y: tile (BR, BC), y (BC, D). */
W_FN void gather(const W_LOCAL S *tile, const W_LOCAL S *y, S sum[HIGH][CHANNELS]) {
    for (int j = 0; j < BC; j += 4) {
        S mine[HIGH][4], z[4];
#pragma unroll
        for (int q = 0; q < HIGH; q++) four(tile + ROW(q) * PITCH + j, mine[q]);
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int u = 0; u < CHANNELS; u++) {
                if (u % 4 == 0) four(y + (j + i) * LD + CHANNEL(u), z);
#pragma unroll
                for (int q = 0; q < HIGH; q++) sum[q][u] = fma(mine[q][i], z[u % 4], sum[q][u]);
            }
    }
}

W_FN void clear(S sum[HIGH][CHANNELS]) {
#pragma unroll
    for (int u = 0; u < HIGH * CHANNELS; u++) sum[u / CHANNELS][u % CHANNELS] = 0;
}

/* Stores the first n rows and d channels of `sum`, row q times by[q]. */
W_FN void put(W_GLOBAL T *to, w_i64 stride, int n, int d, S sum[HIGH][CHANNELS], const S by[HIGH]) {
#pragma unroll
    for (int q = 0; q < HIGH; q++)
#pragma unroll
        for (int u = 0; u < CHANNELS; u++)
            if (ROW(q) < n && CHANNEL(u) < d) STORE(to, ROW(q) * stride + CHANNEL(u), sum[q][u] * by[q]);
}

/* Adds up v over the work-items that share a row, in order. The whole work-group calls it. */
W_FN void row_sums(W_LOCAL S *part, S v[HIGH]) {
#pragma unroll
    for (int q = 0; q < HIGH; q++) part[ROW(q) * TPR + COLUMN(0)] = v[q];
    w_barrier();
#pragma unroll
    for (int q = 0; q < HIGH; q++) {
        v[q] = 0;
        for (int t = 0; t < TPR; t++) v[q] += part[ROW(q) * TPR + t];
    }
    w_barrier();
}

/* The mask of dropout for a block of `queries` x `keys` weights, as bits in local memory: bit k of byte x is that of
 * weight 4 x + k, counted along the keys. DRAW computes it; element: that of the first weight of the block. KEEP is the
 * factor of a weight. */
#ifdef DROPOUT
W_FN void draw(const W_GLOBAL int *key, w_i64 element, w_i64 step, int queries, int keys, uint limit,
               W_LOCAL uchar *to) {
    for (int x = w_item(0); x < queries * keys / 4; x += ITEMS)
        to[x] = (uchar)kept_four(key, element + x / (keys / 4) * step + x % (keys / 4) * 4, limit);
}
W_FN S drawn_factor(const W_LOCAL uchar *drawn, int weight, S factor) {
    return drawn[weight >> 2] >> (weight & 3) & 1 ? factor : (S)0;
}
#define DRAWN_ROOM W_LOCAL_ROOM uchar drawn[BR * BC / 4];
#define DRAW(element, queries, keys) draw(key + given.key_at, element, t_k, queries, keys, LIMIT, drawn)
#define KEEP(weight)                 drawn_factor(drawn, weight, factor)
/* For single queries. Work-items share no blocks: few programs drop their weights. */
#define KEEP_ONE(element) (kept_four(key + given.key_at, element, LIMIT) & 1 ? factor : (S)0)
#else
#define DRAWN_ROOM
#define DRAW(element, queries, keys)
#define KEEP(weight)      1
#define KEEP_ONE(element) 1
#endif

/* The log-sum-exp of query i. With a mask it has two parts: first the largest scores of all queries, then the
 * logarithms (heavy/attention.h). */
#define LSE_AT(i) (given.lse_at + pair * t_q + (i))
#ifdef MASK
#define PART_AT(i) (LSE_AT(i) + of.pairs * t_q)
#define PUT_LSE(i, most, sum)                                                                                \
    lse[LSE_AT(i)] = (sum) == 0 ? (S)0 : (most), lse[PART_AT(i)] = (sum) == 0 ? (S)-INFINITY : LOG(sum)
#define LSE(i) lse[PART_AT(i)]
#else
#define PUT_LSE(i, most, sum) lse[LSE_AT(i)] = (sum) == 0 ? (S)-INFINITY : (most) + LOG(sum)
#define LSE(i) lse[LSE_AT(i)]
#endif

#ifndef BACKWARD
W_KERNEL W_ITEMS(ITEMS, 1, 1) void attention(const W_GLOBAL T *q, const W_GLOBAL T *k, const W_GLOBAL T *v,
                                             const W_GLOBAL int *key, MASK_OPERAND
                                             W_GLOBAL T *out, W_GLOBAL S *lse,
                                             W_GLOBAL w_faults *faults, const W_NUMBERS(attention) given) {
    W_LOCAL_ROOM S4 mine4[BR * LD / 4], other4[BC * LD / 4], tile4[BR * PITCH / 4];
    W_LOCAL_ROOM S part[BR * TPR];
    DRAWN_ROOM
    W_LOCAL S *mine = (W_LOCAL S *)mine4, *other = (W_LOCAL S *)other4, *tile = (W_LOCAL S *)tile4;
    OPEN
    const int i0 = (w_groups(0) - 1 - w_group(0)) * BR, n = min(t_q - i0, BR); /* blocks that see the most keys first */
    const int shift = cached ? W_SAME(key[given.key_at]) : t_k - t_q;
    const int end = causal ? min(t_k, max(0, i0 + n + shift)) : t_k;
    S sums[HIGH][CHANNELS], most[HIGH], sum[HIGH];
    clear(sums);
    W_CARD_UNROLL for (int q_ = 0; q_ < HIGH; q_++) most[q_] = -INFINITY, sum[q_] = 0;
    load(AT(q, i0), of.q.time, n, BR, d, mine);
    for (int j = 0; j < end; j += BC) {
        S s[HIGH][COLUMNS];
        load(KEYS_AT(k, j), of.k.time, end - j, BC, d, other);
        DRAW((pair * t_q + i0) * t_k + j, BR, BC);
        w_barrier();
        dots(mine, other, d, s);
        W_CARD_UNROLL for (int q_ = 0; q_ < HIGH; q_++) {
            S best = -INFINITY;
            W_CARD_UNROLL for (int u = 0; u < COLUMNS; u++) {
                const int at = j + COLUMN(u), seen = at < end && (!causal || at <= i0 + ROW(q_) + shift);
                s[q_][u] = seen ? MASKED(s[q_][u] * scale, i0 + min(ROW(q_), n - 1), at) : (S)-INFINITY;
                best = s[q_][u] > best ? s[q_][u] : best;
            }
            part[ROW(q_) * TPR + COLUMN(0)] = best;
        }
        w_barrier();
        load(KEYS_AT(v, j), of.v.time, end - j, BC, d, other);
        W_CARD_UNROLL for (int q_ = 0; q_ < HIGH; q_++) {
            S best = most[q_];
            for (int t = 0; t < TPR; t++) best = fmax(best, part[ROW(q_) * TPR + t]);
            const S base = best == (S)-INFINITY ? (S)0 : best; /* if all scores are -inf, weights are 0, not NaN */
            const S keep = most[q_] == (S)-INFINITY ? (S)0 : EXP(most[q_] - base);
            most[q_] = best;
            S more = 0;
            W_CARD_UNROLL for (int u = 0; u < COLUMNS; u++) {
                const S e = s[q_][u] == (S)-INFINITY ? (S)0 : EXP(s[q_][u] - base);
                more += e;
                tile[ROW(q_) * PITCH + COLUMN(u)] = e * KEEP(ROW(q_) * BC + COLUMN(u));
            }
            sum[q_] = fma(sum[q_], keep, more);
#pragma unroll
            for (int u = 0; u < CHANNELS; u++) sums[q_][u] *= keep;
        }
        w_barrier();
        gather(tile, other, sums);
        w_barrier();
    }
    row_sums(part, sum);
    W_CARD_UNROLL for (int q_ = 0; q_ < HIGH; q_++) {
        if (COLUMN(0) == 0 && ROW(q_) < n) PUT_LSE(i0 + ROW(q_), most[q_], sum[q_]);
        sum[q_] = sum[q_] == 0 ? (S)0 : (S)1 / sum[q_];
    }
    put(AT(out, i0), of.out.time, n, d, sums, sum);
}

/* ---- single queries, as in decoding ----
 *
 * A work-group has one query, or one of `parts` parts of its keys, of `length` keys each.
 *
 *     1. scores: SHARE adjacent work-items share a key. Each reads EACH channels at once, of HOLD keys in advance.
 *     2. weights: one work-item for each key.
 *     3. values: SHARE adjacent work-items share a row again.
 *
 * With several parts, each leaves D + 2 numbers in `some`, which attention_join joins: the sums of D channels, the
 * largest score, the sum of the weights. */

#if FORMAT == FORMAT_SAME
#define EACH 4
#define PIECE S4
#define NUMBER(p, i) ((p)[i])
#else
#define EACH 8
#define PIECE uint4
#if FORMAT == FORMAT_F16 && defined(W_ELEMENTWISE)
#define NUMBER(p, i) w_from_f16_bits((p)[i])
#elif FORMAT == FORMAT_F16
#define NUMBER(p, i) vload_half(i, (const half *)(p))
#else
#define NUMBER(p, i) as_float((w_u32)(p)[i] << 16)
#endif
#endif
#ifdef W_ELEMENTWISE
typedef struct piece {
    T each[EACH];
} piece;
#else
typedef union piece { /* as it is in memory; converted to numbers where it is used */
    PIECE all;
    T each[EACH];
} piece;
#endif
#define SHARE_MOST (D / EACH < 8 ? D / EACH : 8)
#define SHARE      (ITEMS < SHARE_MOST ? ITEMS : SHARE_MOST)
#define AT_ONCE    (ITEMS / SHARE)
#define ACROSS     (SHARE * EACH) /* channels that the work-items of a key read at once */
#define HOLD       (SHARE < 512 / D ? SHARE : 512 / D)

/* Whether rows are aligned as pieces are. */
#define LIES(p, stride) ((((ulong)(p) | (ulong)(stride) * sizeof(T)) & (sizeof(PIECE) - 1)) == 0)
W_FN void read(const W_GLOBAL T *row, int c, int d, bool lies, piece *to) {
#ifndef W_ELEMENTWISE
    if (lies && c + EACH <= d)
        to->all = *(const W_GLOBAL PIECE *)(row + c);
    else
#endif
        for (int i = 0; i < EACH; i++) to->each[i] = c + i < d ? row[c + i] : (T)0;
}

/* Reads HOLD rows, AT_ONCE apart; rows from n on become 0. */
W_FN void rows(const W_GLOBAL T *from, w_i64 stride, int first, int n, int d, bool lies, piece x[HOLD][D / ACROSS]) {
    W_CARD_UNROLL for (int u = 0; u < HOLD; u++)
        W_CARD_UNROLL for (int t = 0; t < D / ACROSS; t++) {
            const int r = first + u * AT_ONCE;
            read(from + r * stride, t * ACROSS + w_item(0) % SHARE * EACH, r < n ? d : 0, lies, &x[u][t]);
        }
}

/* Returns the largest v of the work-group, or the sum of all v. */
W_FN S group_best(W_LOCAL S *part, S v, int sum) {
    part[w_item(0)] = v;
    for (int left = ITEMS / 2; left > 0; left /= 2) {
        w_barrier();
        if (w_item(0) < left) {
            const S x = part[w_item(0)], y = part[w_item(0) + left];
            part[w_item(0)] = sum ? x + y : fmax(x, y);
        }
    }
    w_barrier();
    const S all = part[0];
    w_barrier();
    return all;
}

W_NUMBERS(attention_row) {
    w_i64 q_at, k_at, v_at, key_at, MASK_ORIGIN out_at, lse_at;
    w_i64 some_at;
    ATTENTION_NUMBERS
};
W_KERNEL W_ITEMS(ITEMS, 1, 1) void attention_row(const W_GLOBAL T *q, const W_GLOBAL T *k, const W_GLOBAL T *v,
                                                 const W_GLOBAL int *key, MASK_OPERAND
                                             W_GLOBAL T *out, W_GLOBAL S *lse,
                                                 W_GLOBAL S *some, W_GLOBAL w_faults *faults,
                                                 const W_NUMBERS(attention_row) given) {
    W_LOCAL_ROOM S weight[ITEMS], part[ITEMS], products[ITEMS * (SHARE + 1)], room[AT_ONCE * ACROSS];
    OPEN
    const int i = w_group(0) % t_q, begin = w_group(0) / t_q * of.length, item = w_item(0);
    const int shift = cached ? W_SAME(key[given.key_at]) : t_k - t_q, mine = item / SHARE, at = item % SHARE * EACH;
    const int end = min(begin + of.length, causal ? min(t_k, max(0, i + 1 + shift)) : t_k);
    const bool lies_k = LIES(KEYS_AT(k, 0), of.k.time), lies_v = LIES(KEYS_AT(v, 0), of.v.time);
    S query[D / ACROSS][EACH], sums[D / ACROSS][EACH], most = -INFINITY, sum = 0;
    piece x[HOLD][D / ACROSS];
    W_CARD_UNROLL for (int t = 0; t < D / ACROSS; t++) {
        read(AT(q, i), t * ACROSS + at, d, false, &x[0][0]);
        W_CARD_UNROLL for (int e = 0; e < EACH; e++) query[t][e] = NUMBER(x[0][0].each, e), sums[t][e] = 0;
    }
    for (int j = begin; j < end; j += ITEMS) {
        S s = 0;
        const int n = min(end - j, ITEMS);
        W_CARD_UNROLL for (int first = mine; first < ITEMS; first += HOLD * AT_ONCE) {
            rows(KEYS_AT(k, j), of.k.time, first, n, d, lies_k, x);
            W_CARD_UNROLL for (int u = 0; u < HOLD; u++) {
                S dot = 0;
                W_CARD_UNROLL for (int t = 0; t < D / ACROSS; t++)
                    W_CARD_UNROLL for (int e = 0; e < EACH; e++) dot = fma(query[t][e], NUMBER(x[u][t].each, e), dot);
                products[(first + u * AT_ONCE) * (SHARE + 1) + item % SHARE] = dot;
            }
        }
        w_barrier();
        for (int t = 0; t < SHARE && item < n; t++) s += products[item * (SHARE + 1) + t];
        s = item < n ? MASKED(s * scale, i, j + item) : (S)-INFINITY;
        const S best = fmax(most, group_best(part, s, 0)), base = best == (S)-INFINITY ? (S)0 : best;
        const S keep = most == (S)-INFINITY ? (S)0 : EXP(most - base), e = s == (S)-INFINITY ? (S)0 : EXP(s - base);
        most = best;
        sum = fma(sum, keep, e);
        weight[item] = e * KEEP_ONE((pair * t_q + i) * t_k + j + item);
        w_barrier();
        W_CARD_UNROLL for (int t = 0; t < D / ACROSS; t++)
            W_CARD_UNROLL for (int e_ = 0; e_ < EACH; e_++) sums[t][e_] *= keep;
        W_CARD_UNROLL for (int first = mine; first < ITEMS; first += HOLD * AT_ONCE) {
            rows(KEYS_AT(v, j), of.v.time, first, n, d, lies_v, x);
            W_CARD_UNROLL for (int u = 0; u < HOLD; u++)
                W_CARD_UNROLL for (int t = 0; t < D / ACROSS; t++)
                    W_CARD_UNROLL for (int e_ = 0; e_ < EACH; e_++)
                        sums[t][e_] = fma(weight[first + u * AT_ONCE], NUMBER(x[u][t].each, e_), sums[t][e_]);
        }
        w_barrier();
    }
    const S total = group_best(part, sum, 1), by = total == 0 ? (S)0 : (S)1 / total;
    W_GLOBAL S *left = some + given.some_at + ((pair * t_q + i) * of.parts + w_group(0) / t_q) * (D + 2);
    if (item == 0 && of.parts == 1) PUT_LSE(i, most, total);
    if (item == 0 && of.parts > 1) left[D] = most, left[D + 1] = total;
    W_CARD_UNROLL for (int t = 0; t < D / ACROSS; t++) {
        W_CARD_UNROLL for (int e = 0; e < EACH; e++) room[mine * ACROSS + at + e] = sums[t][e];
        w_barrier();
        for (int c = item; c < ACROSS; c += ITEMS) {
            S all = 0;
            for (int r = 0; r < AT_ONCE; r++) all += room[r * ACROSS + c];
            if (of.parts > 1)
                left[t * ACROSS + c] = all;
            else if (t * ACROSS + c < d)
                STORE(AT(out, i), t * ACROSS + c, all * by);
        }
        w_barrier();
    }
}

W_NUMBERS(attention_join) {
    w_i64 some_at, out_at, lse_at;
    ATTENTION_NUMBERS
};
W_KERNEL W_ITEMS(ITEMS, 1, 1) void attention_join(const W_GLOBAL S *some, W_GLOBAL T *out, W_GLOBAL S *lse,
                                                  W_GLOBAL w_faults *faults, const W_NUMBERS(attention_join) given) {
    const w_attention of = given.attention;
    W_RETURN_IF_FAULTED(ITEMS, of.sink)
    OPEN_PAIR
    const int t_q = of.t_q;
    const w_i64 row = pair * t_q + w_group(0);
    const W_GLOBAL S *parts = some + given.some_at + row * of.parts * (D + 2);
    S best = -INFINITY, total = 0;
    for (int p = 0; p < of.parts; p++) best = fmax(best, parts[p * (D + 2) + D]);
    const S base = best == (S)-INFINITY ? (S)0 : best;
    for (int p = 0; p < of.parts; p++)
        total = fma(EXP(parts[p * (D + 2) + D] - base), parts[p * (D + 2) + D + 1], total);
    for (int c = w_item(0); c < of.d; c += ITEMS) {
        S sum = 0;
        for (int p = 0; p < of.parts; p++) sum = fma(EXP(parts[p * (D + 2) + D] - base), parts[p * (D + 2) + c], sum);
        STORE(AT(out, w_group(0)), c, total == 0 ? (S)0 : sum / total);
    }
    if (w_item(0) == 0) PUT_LSE(w_group(0), best, total);
}

#else

/* Recomputes the weight of key j for query i from their product s. l: the log-sum-exp. */
#ifdef MASK
#define AGAIN(s, i, j, l) EXP(MASKED((s) * scale, i, j) - lse[LSE_AT(i)] - ((l) == (S)-INFINITY ? (S)INFINITY : (l)))
#else
#define AGAIN(s, i, j, l) EXP((s) * scale - ((l) == (S)-INFINITY ? (S)INFINITY : (l)))
#endif

/* dq of a block of queries. Also writes delta, the dot products of the rows of out and dout. */
W_KERNEL W_ITEMS(ITEMS, 1, 1) void attention_dq(const W_GLOBAL T *q, const W_GLOBAL T *k, const W_GLOBAL T *v,
                                                const W_GLOBAL int *key, MASK_OPERAND const W_GLOBAL T *out,
                                                const W_GLOBAL S *lse,
                                                const W_GLOBAL T *dout, W_GLOBAL T *dq, W_GLOBAL S *delta,
                                                W_GLOBAL w_faults *faults, const W_NUMBERS(attention_dq) given) {
    W_LOCAL_ROOM S4 mine4[BR * LD / 4], douts4[BR * LD / 4], keys4[BC * LD / 4], values4[BC * LD / 4];
    W_LOCAL_ROOM S4 tile4[BR * PITCH / 4];
    W_LOCAL_ROOM S part[BR * TPR];
    DRAWN_ROOM
    W_LOCAL S *mine = (W_LOCAL S *)mine4, *douts = (W_LOCAL S *)douts4, *keys = (W_LOCAL S *)keys4,
              *values = (W_LOCAL S *)values4, *tile = (W_LOCAL S *)tile4;
    OPEN
    const int i0 = (w_groups(0) - 1 - w_group(0)) * BR, n = min(t_q - i0, BR);
    const int shift = cached ? W_SAME(key[given.key_at]) : t_k - t_q;
    const int end = causal ? min(t_k, max(0, i0 + n + shift)) : t_k;
    S sums[HIGH][CHANNELS], mean[HIGH], norm[HIGH], one[HIGH];
    clear(sums);
    load(AT(q, i0), of.q.time, n, BR, d, mine);
    load(AT(dout, i0), of.dout.time, n, BR, d, douts);
    w_barrier();
    W_CARD_UNROLL for (int q_ = 0; q_ < HIGH; q_++) {
        mean[q_] = 0, one[q_] = 1;
        for (int c = COLUMN(0); c < d && ROW(q_) < n; c += TPR)
            mean[q_] = fma(LOAD(AT(out, i0 + ROW(q_)), c), douts[ROW(q_) * LD + c], mean[q_]);
    }
    row_sums(part, mean);
    W_CARD_UNROLL for (int q_ = 0; q_ < HIGH; q_++) {
        norm[q_] = ROW(q_) < n ? LSE(i0 + ROW(q_)) : 0;
        if (COLUMN(0) == 0 && ROW(q_) < n) delta[given.delta_at + pair * t_q + i0 + ROW(q_)] = mean[q_];
    }
    for (int j = 0; j < end; j += BC) {
        S s[HIGH][COLUMNS], dp[HIGH][COLUMNS];
        load(KEYS_AT(k, j), of.k.time, end - j, BC, d, keys);
        load(KEYS_AT(v, j), of.v.time, end - j, BC, d, values);
        DRAW((pair * t_q + i0) * t_k + j, BR, BC);
        w_barrier();
        dots(mine, keys, d, s);
        dots(douts, values, d, dp);
        W_CARD_UNROLL for (int q_ = 0; q_ < HIGH; q_++)
            W_CARD_UNROLL for (int u = 0; u < COLUMNS; u++) {
                const int i = i0 + ROW(q_), at = j + COLUMN(u), seen = at < end && (!causal || at <= i + shift);
                const S weight = seen ? AGAIN(s[q_][u], min(i, t_q - 1), at, norm[q_]) : (S)0;
                const S by = KEEP(ROW(q_) * BC + COLUMN(u));
                tile[ROW(q_) * PITCH + COLUMN(u)] = weight * (dp[q_][u] * by - mean[q_]) * scale;
            }
        w_barrier();
        gather(tile, keys, sums);
        w_barrier();
    }
    put(AT(dq, i0), of.dq.time, n, d, sums, one);
}

/* dk and dv of a block of keys. */
W_KERNEL W_ITEMS(ITEMS, 1, 1) void attention_dkv(const W_GLOBAL T *q, const W_GLOBAL T *k, const W_GLOBAL T *v,
                                                 const W_GLOBAL int *key, MASK_OPERAND const W_GLOBAL S *lse,
                                                 const W_GLOBAL T *dout,
                                                 W_GLOBAL T *dk, W_GLOBAL T *dv, const W_GLOBAL S *delta,
                                                 W_GLOBAL w_faults *faults, const W_NUMBERS(attention_dkv) given) {
    W_LOCAL_ROOM S4 keys4[BR * LD / 4], values4[BR * LD / 4], mine4[BC * LD / 4], douts4[BC * LD / 4];
    W_LOCAL_ROOM S4 tile4[BR * PITCH / 4];
    DRAWN_ROOM
    W_LOCAL S *keys = (W_LOCAL S *)keys4, *values = (W_LOCAL S *)values4, *mine = (W_LOCAL S *)mine4,
              *douts = (W_LOCAL S *)douts4, *tile = (W_LOCAL S *)tile4;
    OPEN
    const int j0 = w_group(0) * BR, n = min(t_k - j0, BR), shift = cached ? W_SAME(key[given.key_at]) : t_k - t_q;
    S sums_k[HIGH][CHANNELS], sums_v[HIGH][CHANNELS], one[HIGH];
    clear(sums_k);
    clear(sums_v);
    W_CARD_UNROLL for (int q_ = 0; q_ < HIGH; q_++) one[q_] = 1;
    load(KEYS_AT(k, j0), of.k.time, n, BR, d, keys);
    load(KEYS_AT(v, j0), of.v.time, n, BR, d, values);
    for (int i = causal && j0 > shift ? (j0 - shift) / BC * BC : 0; i < t_q; i += BC) {
        S s[HIGH][COLUMNS], dp[HIGH][COLUMNS];
        load(AT(q, i), of.q.time, t_q - i, BC, d, mine);
        load(AT(dout, i), of.dout.time, t_q - i, BC, d, douts);
        DRAW((pair * t_q + i) * t_k + j0, BC, BR);
        w_barrier();
        dots(keys, mine, d, s);
        dots(values, douts, d, dp);
        W_CARD_UNROLL for (int q_ = 0; q_ < HIGH; q_++)
            W_CARD_UNROLL for (int u = 0; u < COLUMNS; u++) {
                const int at = i + COLUMN(u), j = j0 + ROW(q_), seen = at < t_q && (!causal || j <= at + shift);
                const S weight = seen ? AGAIN(s[q_][u], at, min(j, t_k - 1), LSE(at)) : (S)0;
                const S by = KEEP(COLUMN(u) * BR + ROW(q_));
                tile[ROW(q_) * PITCH + COLUMN(u)] = weight * by;
                s[q_][u] = seen ? weight * (dp[q_][u] * by - delta[given.delta_at + pair * t_q + at]) * scale : (S)0;
            }
        w_barrier();
        gather(tile, douts, sums_v);
        w_barrier();
        W_CARD_UNROLL for (int q_ = 0; q_ < HIGH; q_++)
            W_CARD_UNROLL for (int u = 0; u < COLUMNS; u++) tile[ROW(q_) * PITCH + COLUMN(u)] = s[q_][u];
        w_barrier();
        gather(tile, mine, sums_k);
        w_barrier();
    }
    put(AT(dk, j0), of.dk.time, n, d, sums_k, one);
    put(AT(dv, j0), of.dv.time, n, d, sums_v, one);
}
#endif
