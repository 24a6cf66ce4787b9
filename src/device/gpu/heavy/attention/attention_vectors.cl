/* Attention on CPUs, in blocks (Dao et al. 2022). A work-group is one work-item. It has a block of LANES queries and
 * walks over blocks of KEYS keys. Queries are the lanes of VECS vectors, and all work is products of these:
 *
 *                 LANES queries                           LANES queries
 *               +---------------+                       +---------------+
 *     KEYS      |  s = k q^T    |   -> weights     D    | sums +=       |
 *     keys      |               |      channels         | v^T weights   |
 *               +---------------+                       +---------------+
 *
 * Rows of k and v are copied next to each other, with zeros up to a multiple of ROWS. D: room for channels, a power of
 * two. */
#include "device/gpu/heavy/attention/attention_params.h"

#define VECS  2
#define ROWS  8  /* rows of a product whose sums are in registers */
#define WHOLE(n) (((n) + ROWS - 1) / ROWS * ROWS)

typedef S16 V;

/* Rows of the next pair, which are prefetched while this pair is computed. They are too far apart for the prefetcher of
 * the processor. `once`: rows of each operand to prefetch with one tile of a product. */
typedef struct ahead {
    const W_GLOBAL T *next[8];
    w_i64 stride[8];
    int n, rows, once, d;
} ahead;

W_FN void ask(ahead *to) {
    for (int r = 0; r < to->once && to->rows > 0; r++, to->rows--)
        for (int i = 0; i < to->n; i++) {
            for (int c = 0; c < to->d; c += sizeof(T) == 2 ? 32 : 16) w_fetch(to->next[i] + c, 0);
            to->next[i] += to->stride[i];
        }
}

/* Adds an operand to the list. */
W_FN void look(ahead *to, const W_GLOBAL T *from, w_i64 stride) {
    to->next[to->n] = from;
    to->stride[to->n++] = stride;
}

/* c (m, vectors) = c * keep + a b; without `keep`, c = a b. Element (r, p) of a (m, n) is a[r * ar + p * ap]. Rows of
 * b (n, vectors) and of c are ldb and ldc vectors apart. m is a multiple of ROWS. */
INLINE void product(const S *a, int ar, int ap, const V *b, int ldb, V *c, int ldc, int vectors, const V *keep, int m,
                    int n, ahead *next) {
    for (int r0 = 0; r0 < m; r0 += ROWS, a += ROWS * ar, c += ROWS * ldc) {
        V sum[ROWS][VECS];
        ask(next);
#pragma unroll
        for (int r = 0; r < ROWS; r++)
#pragma unroll
            for (int l = 0; l < vectors; l++) sum[r][l] = 0;
        for (int p = 0; p < n; p++) {
#pragma unroll
            for (int r = 0; r < ROWS; r++)
#pragma unroll
                for (int l = 0; l < vectors; l++)
                    sum[r][l] = fma((V)(a[r * ar + p * ap]), b[p * ldb + l], sum[r][l]);
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++)
#pragma unroll
            for (int l = 0; l < vectors; l++)
                c[r * ldc + l] = keep ? fma(c[r * ldc + l], keep[l], sum[r][l]) : sum[r][l];
    }
}

/* s (keys, LANES) = rows (keys, D) columns (D, LANES). The queries of the first vector see only the first `both` keys
 * of a block. `whole`: number of keys, rounded up to ROWS. */
W_ONCE void scores(const V *rows, const V *columns, V *s, int both, int whole, int d, ahead *next) {
    product((const S *)rows, D, 1, columns, VECS, s, VECS, 2, 0, both, d, next);
    product((const S *)(rows + both * D / 16), D, 1, columns + 1, VECS, s + both * VECS + 1, VECS, 1, 0, whole - both,
            d, next);
}

/* sums (D, LANES) = sums * keep + columns (D, keys) s (keys, LANES). Column p is row p of `rows`. */
W_ONCE void add_to_queries(const V *rows, const V *s, V *sums, const V *keep, int both, int whole, int d,
                           ahead *next) {
    if (both == whole) {
        product((const S *)rows, 1, D, s, VECS, sums, VECS, 2, keep, WHOLE(d), whole, next);
        return;
    }
    product((const S *)rows, 1, D, s, VECS, sums, VECS, 1, keep, WHOLE(d), both, next);
    product((const S *)rows, 1, D, s + 1, VECS, sums + 1, VECS, 1, keep + 1, WHOLE(d), whole, next);
}

/* sums (keys, D) += s (keys, LANES) rows (LANES, D). */
W_ONCE void add_to_keys(const V *s, const V *rows, V *sums, int both, int whole, int d, ahead *next) {
    const V one[2] = {1, 1};
    for (int c = 0; c < d; c += 32) {
        product((const S *)s, LANES, 1, rows + c / 16, D / 16, sums + c / 16, D / 16, 2, one, both, LANES, next);
        product((const S *)(s + both * VECS + 1), LANES, 1, rows + D + c / 16, D / 16, sums + (both * D + c) / 16,
                D / 16, 2, one, whole - both, 16, next);
    }
}

/* Transposes 16 x 16 numbers. */
W_FN void transpose(V *x) {
    V y[16];
#pragma unroll
    for (int round = 0; round < 2; round++) {
#pragma unroll
        for (int i = 0; i < 8; i++) {
            y[i] = (V)(x[2 * i].even, x[2 * i + 1].even);
            y[i + 8] = (V)(x[2 * i].odd, x[2 * i + 1].odd);
        }
#pragma unroll
        for (int i = 0; i < 8; i++) {
            x[i] = (V)(y[2 * i].even, y[2 * i + 1].even);
            x[i + 8] = (V)(y[2 * i].odd, y[2 * i + 1].odd);
        }
    }
}

/* to (D, LANES) = the rows (LANES, D), transposed, times `by`. */
W_ONCE void turn(const V *rows, int d, S by, V *to) {
    for (int l = 0; l < VECS; l++)
        for (int c = 0; c < d; c += 16) {
            V x[16];
#pragma unroll
            for (int i = 0; i < 16; i++) x[i] = rows[(l * 16 + i) * (D / 16) + c / 16];
            transpose(x);
#pragma unroll
            for (int i = 0; i < 16; i++) to[(c + i) * VECS + l] = x[i] * by;
        }
}

/* The reverse; each lane is multiplied by its lane of `by`. */
W_ONCE void turn_back(const V *from, int d, const V *by, V *rows) {
    for (int l = 0; l < VECS; l++)
        for (int c = 0; c < d; c += 16) {
            V x[16];
#pragma unroll
            for (int i = 0; i < 16; i++) x[i] = from[(c + i) * VECS + l] * by[l];
            transpose(x);
#pragma unroll
            for (int i = 0; i < 16; i++) rows[(l * 16 + i) * (D / 16) + c / 16] = x[i];
        }
}

/* Returns n channels; zeros after them. */
W_FN V part(const W_GLOBAL T *from, int n) {
    if (n >= 16) return LOAD16(from);
    S x[16];
    for (int c = 0; c < 16; c++) x[c] = c < n ? LOAD(from, c) : 0;
    return vload16(0, x);
}

/* Copies n rows of d channels to `to` (whole, D). Zeros follow, up to `whole` rows and a multiple of 32 channels. */
W_ONCE void fetch(const W_GLOBAL T *from, w_i64 stride, int n, int whole, int d, V *to) {
    for (int r = 0; r < whole; r++, from += stride, to += D / 16)
        for (int c = 0; c < (d + 31) / 32 * 2; c++)
            to[c] = r < n && c * 16 < d ? part(from + c * 16, d - c * 16) : (V)(0);
}

/* Stores n rows of d channels. */
W_ONCE void put(const V *rows, W_GLOBAL T *to, w_i64 stride, int n, int d) {
    for (int r = 0; r < n; r++, to += stride, rows += D / 16) {
        int c = 0;
        for (; c + 16 <= d; c += 16) STORE16(to + c, rows[c / 16]);
        for (; c < d; c++) STORE(to, c, ((const S *)rows)[c]);
    }
}

/* Returns x in lanes of vector l that see a row of a block, and `other` in the lanes below `first`, which do not. */
W_FN V seen(V x, int first, int l, V other) {
    const INT16 lane = (INT16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) + l * 16;
    return select(other, x, lane >= first);
}

/* The number of rows of a block that all lanes of vector l see, and that any lane sees. */
W_FN int whole_rows(int first, int l, int keys) { return clamp(l * 16 + 1 - first, 0, keys); }
W_FN int seen_rows(int first, int l, int keys) { return clamp(l * 16 + 16 - first, 0, keys); }

/* One step of the online softmax. Scores become weights relative to the running maximum of each lane. `keep` is the
 * factor for earlier sums, which were relative to an earlier maximum. Rows after `keys` become 0. */
W_ONCE void weigh(V *s, int keys, int first, V *most, V *sum, V *keep) {
    for (int l = 0; l < VECS; l++) {
        const int whole = whole_rows(first, l, keys), some = seen_rows(first, l, keys);
        V best = most[l];
        for (int r = 0; r < whole; r++) best = select(best, s[r * VECS + l], s[r * VECS + l] > best);
        for (int r = whole; r < some; r++) {
            const V x = seen(s[r * VECS + l], first + r, l, -INFINITY);
            best = select(best, x, x > best);
        }
        const V base = select(best, (V)(0), best == (S)-INFINITY); /* if all scores are -inf, weights are 0, not NaN */
        keep[l] = select(EXP(most[l] - base), (V)(0), most[l] == (S)-INFINITY);
        most[l] = best;
        V more = 0;
        for (int r = 0; r < whole; r++) {
            const V e = EXP(s[r * VECS + l] - base);
            s[r * VECS + l] = e;
            more += e;
        }
        for (int r = whole; r < some; r++) {
            const V e = seen(EXP(seen(s[r * VECS + l] - base, first + r, l, 0)), first + r, l, 0);
            s[r * VECS + l] = e;
            more += e;
        }
        for (int r = some; r < WHOLE(keys); r++) s[r * VECS + l] = 0;
        sum[l] = fma(sum[l], keep[l], more);
    }
}

/* -inf in a mask hides a key, whatever the score (attention.c). */
#ifdef MASK
#define MASK_AT(i, j)                                                                                        \
    (mask + given.mask_at + pair / heads * of.mask_b + pair % heads * of.mask_h + (i) * of.mask_t + (j) * of.mask_j)
#ifdef MASK_BOOL
#define BIAS(x)      ((x) ? (S)0 : (S)-INFINITY)
#define BIAS16(p)    select((V)(-INFINITY), (V)(0), SEEN16(vload16(0, p)) != 0)
#else
#define BIAS(x)      (x)
#define BIAS16(p)    vload16(0, p)
#endif
W_FN V masked(V s, V bias) { return select(s + bias, bias, bias == (S)-INFINITY); }

/* Returns whether any of n queries sees any of the keys. */
W_FN int any_seen(const W_GLOBAL MASK *mask, w_i64 mask_t, w_i64 mask_j, int n, int keys) {
    for (int i = 0; i < (mask_t ? n : 1); i++)
        for (int r = 0; r < keys; r++)
            if (BIAS(mask[i * mask_t + r * mask_j]) != (S)-INFINITY) return 1;
    return 0;
}

/* Applies the mask to the scores of a block, and subtracts `less` from each lane. */
W_ONCE void mask_block(V *s, const W_GLOBAL MASK *mask, w_i64 mask_t, w_i64 mask_j, int n, int keys, const V *less) {
    for (int r = 0; r < keys && mask_t == 0; r++)
        for (int l = 0; l < VECS; l++) s[r * VECS + l] = masked(s[r * VECS + l], (V)(BIAS(mask[r * mask_j]))) - less[l];
    for (int l = 0; l < VECS && mask_t; l++)
        for (int r = 0; r < keys; r += 16) {
            V x[16];
            for (int i = 0; i < 16; i++) {
                const W_GLOBAL MASK *row = mask + min(l * 16 + i, n - 1) * mask_t + r * mask_j;
                if (mask_j == 1 && r + 16 <= keys)
                    x[i] = BIAS16(row);
                else
                    for (int c = 0; c < 16; c++) ((S *)&x[i])[c] = r + c < keys ? BIAS(row[c * mask_j]) : (S)0;
            }
            transpose(x);
            for (int i = 0; i < min(16, keys - r); i++)
                s[(r + i) * VECS + l] = masked(s[(r + i) * VECS + l], x[i]) - less[l];
        }
}
#endif

#ifdef DROPOUT
/* The high and low halves of x m. Processors multiply even lanes and odd lanes separately. */
W_FN void wide(uint16 x, uint m, uint16 *high, uint16 *low) {
    const ulong8 word = (ulong8)(0xffffffffu);
    const ulong8 even = (as_ulong8(x) & word) * (ulong)m, odd = (as_ulong8(x) >> 32) * (ulong)m;
    *high = as_uint16(even >> 32 | (odd & ~word));
    *low = as_uint16((even & word) | odd << 32);
}

/* Writes four words of the random stream for each lane: Philox 4x32-10 (base/random.c). */
W_FN void philox(ulong16 block, const W_GLOBAL int *key, uint16 *word) {
    uint16 c0 = convert_uint16(block), c1 = convert_uint16(block >> 32), c2 = (uint)key[2], c3 = (uint)key[3];
    uint k0 = (uint)key[0], k1 = (uint)key[1];
    for (int round = 0; round < 10; round++) {
        uint16 h0, l0, h1, l1;
        wide(c0, 0xD2511F53u, &h0, &l0);
        wide(c2, 0xCD9E8D57u, &h1, &l1);
        c0 = h1 ^ c1 ^ k0;
        c1 = l1;
        c2 = h0 ^ c3 ^ k1;
        c3 = l0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    word[0] = c0, word[1] = c1, word[2] = c2, word[3] = c3;
}

/* Returns the factor of dropout for a weight: 0 if it is dropped, else `factor`. */
W_FN V kept(uint16 word, S dropout, S factor) {
    const V u = TO_V(word >> 8) * (S)0x1p-24f;
    return select((V)(factor), (V)(0), u < (V)(dropout));
}

/* Returns the factors of 16 elements of the stream. */
W_FN V keep_of(ulong16 element, const W_GLOBAL int *key, S dropout, S factor) {
    const ulong16 n = element + ((ulong)(uint)key[4] | (ulong)(uint)key[5] << 32);
    uint16 word[4];
    philox(n >> 2, key, word);
    const uint16 which = convert_uint16(n) & 3;
    const uint16 low = select(word[0], word[1], (which & 1) != 0), high = select(word[2], word[3], (which & 1) != 0);
    return kept(select(low, high, (which & 2) != 0), dropout, factor);
}

/* Writes the factors of a block of scores. Its first lane and row have number `element`; lanes are t_k apart. */
W_ONCE void keep_block(V *keep, int keys, w_i64 element, int t_k, const W_GLOBAL int *key, S dropout, S factor) {
    const ulong origin = (ulong)(uint)key[4] | (ulong)(uint)key[5] << 32;
    const ulong16 lane = (ulong16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) * (ulong)t_k;
    const int quads = ((origin | (ulong)element | (ulong)t_k) & 3) == 0; /* rows r to r + 3 are four words */
    for (int l = 0; l < VECS; l++) {
        const ulong16 first = lane + (ulong)(element + l * 16 * (w_i64)t_k);
        for (int r = 0; r < keys && quads; r += 4) {
            uint16 word[4];
            philox((first + origin + (ulong)r) >> 2, key, word);
            for (int i = 0; i < 4; i++) keep[(r + i) * VECS + l] = kept(word[i], dropout, factor);
        }
        for (int r = 0; r < keys && !quads; r++) keep[r * VECS + l] = keep_of(first + (ulong)r, key, dropout, factor);
    }
}
#endif

#define PLACE(name, pair, t) \
    (name + given.name##_at + (pair) / heads * of.name.batch + (pair) % heads * of.name.head + (t) * of.name.time)
/* For k and v: query heads share KV heads. */
#define KEYS_PLACE(name, pair, t)                                                                                 \
    (name + given.name##_at + (pair) / heads * of.name.batch + (pair) % heads / of.query_group * of.name.head +   \
     (t) * of.name.time)
#define AT(name, t)   PLACE(name, pair, t)
#define LOOK(name, t) look(&next, PLACE(name, pair + 1, t), of.name.time)
#define KEYS_AT(name, t)   KEYS_PLACE(name, pair, t)
#define KEYS_LOOK(name, t) look(&next, KEYS_PLACE(name, pair + 1, t), of.name.time)
/* The log-sum-exp of query i, or with a mask its second part. */
#ifdef MASK
#define LSE_AT(i) (given.lse_at + ((w_i64)w_groups(1) + pair) * t_q + (i))
#else
#define LSE_AT(i) (given.lse_at + pair * t_q + (i))
#endif
#define OPEN                                                                                                 \
    const w_attention of = given.attention;                                                                  \
    W_RETURN_IF_FAULTED(ITEMS, of.sink)                                                                      \
    const w_i64 heads = of.heads;                                                                            \
    const int t_q = of.t_q, t_k = of.t_k, d = CHANNELS, causal = of.causal, cached = of.cached;                  \
    const S scale = given.scale, dropout = given.dropout, factor = given.factor;

W_NUMBERS(attention) {
    w_i64 q_at, k_at, v_at, key_at, MASK_ORIGIN out_at, lse_at;
    ATTENTION_NUMBERS
};
W_KERNEL W_ITEMS(1, 1, 1) void attention(const W_GLOBAL T *q, const W_GLOBAL T *k, const W_GLOBAL T *v,
                                         const W_GLOBAL int *key, MASK_OPERAND W_GLOBAL T *out, W_GLOBAL S *lse,
                                         W_GLOBAL w_faults *faults, const W_NUMBERS(attention) given) {
    OPEN
    V rows[KEYS * D / 16], qt[D * VECS], sums[D * VECS], s[KEYS * VECS], most[VECS], sum[VECS], keep[VECS];
#ifdef DROPOUT
    V kept[KEYS * VECS];
#endif
    const w_i64 pair = w_group(1);
    /* blocks that see the most keys come first */
    const int i0 = (w_groups(0) - 1 - w_group(0)) * LANES, n = min(t_q - i0, LANES);
    const int shift = cached ? key[given.key_at] : t_k - t_q, end = causal ? min(t_k, max(0, i0 + n + shift)) : t_k;
    ahead next = {.rows = pair + 1 < w_groups(1) ? n : 0, .once = 4, .d = d};
    LOOK(q, i0), KEYS_LOOK(k, i0), KEYS_LOOK(v, i0), LOOK(out, i0);
    fetch(AT(q, i0), of.q.time, n, LANES, d, rows);
    turn(rows, d, scale, qt);
    for (int l = 0; l < VECS; l++) most[l] = -INFINITY, sum[l] = 0;
    for (int c = 0; c < D * VECS; c++) sums[c] = 0;
    for (int j = 0; j < end; j += KEYS) {
        const int keys = min(end - j, KEYS), whole = WHOLE(keys), first = causal ? j - i0 - shift : -keys,
                  both = WHOLE(seen_rows(first, 0, keys));
#ifdef MASK
        const V nothing[VECS] = {0, 0};
        if (!any_seen(MASK_AT(i0, j), of.mask_t, of.mask_j, n, keys)) continue;
#endif
        fetch(KEYS_AT(k, j), of.k.time, keys, whole, d, rows);
        scores(rows, qt, s, both, whole, d, &next);
#ifdef MASK
        mask_block(s, MASK_AT(i0, j), of.mask_t, of.mask_j, n, keys, nothing);
#endif
        weigh(s, keys, first, most, sum, keep);
#ifdef DROPOUT
        keep_block(kept, keys, (pair * t_q + i0) * t_k + j, t_k, key + given.key_at, dropout, factor);
        for (int r = 0; r < keys * VECS; r++) s[r] *= kept[r];
#endif
        fetch(KEYS_AT(v, j), of.v.time, keys, whole, d, rows);
        add_to_queries(rows, s, sums, keep, both, whole, d, &next);
    }
    for (int l = 0; l < VECS; l++) {
#ifdef MASK /* in two parts (heavy/attention.h) */
        const V base = select(most[l], (V)(0), sum[l] == 0);
        for (int i = 0; i < 16 && l * 16 + i < n; i++)
            lse[given.lse_at + pair * t_q + i0 + l * 16 + i] = ((const S *)&base)[i];
        const V log_sum = LOG(select(sum[l], (V)(1), sum[l] == 0));
#else
        const V log_sum = most[l] + LOG(select(sum[l], (V)(1), sum[l] == 0));
#endif
        most[l] = select(log_sum, (V)(-INFINITY), sum[l] == 0);
        keep[l] = select((S)1 / sum[l], (V)(0), sum[l] == 0);
    }
    for (int i = 0; i < n; i++) lse[LSE_AT(i0 + i)] = ((const S *)most)[i];
    turn_back(sums, d, keep, rows);
    put(rows, AT(out, i0), of.out.time, n, d);
}

/* ---- single queries, as in decoding: lanes are keys, then channels ---- */

/* Lane i of the result is the sum of the lanes of x[i], for 16 vectors. */
W_FN V lane_sums(V *x) {
#pragma unroll
    for (int left = 8; left > 0; left /= 2) {
#pragma unroll
        for (int i = 0; i < left; i++) x[i] = (V)(x[2 * i].even + x[2 * i].odd, x[2 * i + 1].even + x[2 * i + 1].odd);
    }
    return x[0];
}
W_FN S lanes_sum(V x) {
    const S8 a = x.lo + x.hi;
    return (a.s0 + a.s4) + (a.s2 + a.s6) + ((a.s1 + a.s5) + (a.s3 + a.s7));
}
W_FN S lanes_max(V x) {
    const S8 a = fmax(x.lo, x.hi);
    return fmax(fmax(fmax(a.s0, a.s4), fmax(a.s2, a.s6)), fmax(fmax(a.s1, a.s5), fmax(a.s3, a.s7)));
}

/* Scores of a query and n keys, at most KEYS; -inf after them. */
W_ONCE void dots(const W_GLOBAL T *k, w_i64 stride, int n, int d, const V *q, S scale, V *s) {
    const V lane = (V)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    for (int r = 0; r < KEYS; r += 16) {
        V x[16];
#pragma unroll
        for (int i = 0; i < 16; i++) {
            const W_GLOBAL T *row = k + min(r + i, n - 1) * stride;
            x[i] = 0;
            for (int c = 0; c < d; c += 16) x[i] = fma(q[c / 16], part(row + c, d - c), x[i]);
        }
        s[r / 16] = select((V)(-INFINITY), lane_sums(x) * scale, lane < (V)(n - r));
    }
}

/* Multiplies sums by keep and adds rows of v, each times its weight. */
W_ONCE void add_values(const W_GLOBAL T *v, w_i64 stride, int rows, int d, const S *weights, V keep, V *sums) {
    for (int c = 0; c < d; c += 64) {
        const W_GLOBAL T *row = v + c;
        V some[4];
#pragma unroll
        for (int u = 0; u < 4; u++) some[u] = c + u * 16 < d ? sums[c / 16 + u] * keep : (V)(0);
        for (int r = 0; r < rows; r++, row += stride) {
            const V weight = weights[r];
            if (d - c >= 64) {
#pragma unroll
                for (int u = 0; u < 4; u++) some[u] = fma(weight, LOAD16(row + u * 16), some[u]);
            } else {
                for (int u = 0; c + u * 16 < d; u++)
                    some[u] = fma(weight, part(row + u * 16, d - c - u * 16), some[u]);
            }
        }
#pragma unroll
        for (int u = 0; u < 4; u++)
            if (c + u * 16 < d) sums[c / 16 + u] = some[u];
    }
}

W_NUMBERS(attention_row) {
    w_i64 q_at, k_at, v_at, key_at, MASK_ORIGIN out_at, lse_at;
    ATTENTION_NUMBERS
};
W_KERNEL W_ITEMS(1, 1, 1) void attention_row(const W_GLOBAL T *q, const W_GLOBAL T *k, const W_GLOBAL T *v,
                                             const W_GLOBAL int *key, MASK_OPERAND W_GLOBAL T *out, W_GLOBAL S *lse,
                                             W_GLOBAL w_faults *faults, const W_NUMBERS(attention_row) given) {
    OPEN
    V query[D / 16], sums[D / 16], s[KEYS / 16], sum = 0;
    S most = -INFINITY;
    const w_i64 pair = w_group(1);
    const int i = w_group(0), shift = cached ? key[given.key_at] : t_k - t_q;
    const int end = causal ? min(t_k, max(0, i + 1 + shift)) : t_k;
    for (int c = 0; c < d; c += 16) query[c / 16] = part(AT(q, i) + c, d - c), sums[c / 16] = 0;
    for (int j = 0; j < end; j += KEYS) {
        const int keys = min(end - j, KEYS);
#ifdef MASK
        if (!any_seen(MASK_AT(i, j), of.mask_t, of.mask_j, 1, keys)) continue;
#endif
        dots(KEYS_AT(k, j), of.k.time, keys, d, query, scale, s);
#ifdef MASK
        for (int r = 0; r < keys; r++) {
            const S bias = BIAS(*MASK_AT(i, j + r));
            ((S *)s)[r] = bias == (S)-INFINITY ? bias : ((const S *)s)[r] + bias;
        }
#endif
        V best = s[0];
        for (int r = 1; r < KEYS / 16; r++) best = select(best, s[r], s[r] > best);
        const S now = fmax(most, lanes_max(best)), base = now == (S)-INFINITY ? 0 : now;
        const V keep = most == (S)-INFINITY ? (V)(0) : EXP((V)(most - base));
        most = now;
        sum *= keep;
        for (int r = 0; r < KEYS / 16; r++) {
            s[r] = select((V)(0), EXP(s[r] - base), s[r] != (V)(-INFINITY));
            sum += s[r];
#ifdef DROPOUT
            s[r] *= keep_of((ulong16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) +
                                (ulong)((pair * t_q + i) * t_k + j + r * 16), key + given.key_at, dropout, factor);
#endif
        }
        add_values(KEYS_AT(v, j), of.v.time, keys, d, (const S *)s, keep, sums);
    }
    const S total = lanes_sum(sum);
#ifdef MASK
    lse[given.lse_at + pair * t_q + i] = total == 0 ? 0 : most;
    most = 0;
#endif
    lse[LSE_AT(i)] = total == 0 ? -INFINITY : most + LOG(total);
    for (int c = 0; c < d; c++)
        STORE(AT(out, i), c, total == 0 ? (S)0 : ((const S *)sums)[c] / total);
}

/* ---- backward: a work-group has some key blocks of a pair ---- */

/* Recomputes the weights from the log-sum-exp of the lanes. */
W_ONCE void weigh_again(V *s, int keys, int first, const V *lse) {
    for (int l = 0; l < VECS; l++) {
        const V base = select(lse[l], (V)(INFINITY), lse[l] == (S)-INFINITY);
        const int whole = whole_rows(first, l, keys), some = seen_rows(first, l, keys);
        for (int r = 0; r < whole; r++) s[r * VECS + l] = EXP(s[r * VECS + l] - base);
        for (int r = whole; r < some; r++)
            s[r * VECS + l] = seen(EXP(seen(s[r * VECS + l] - base, first + r, l, 0)), first + r, l, 0);
        for (int r = some; r < WHOLE(keys); r++) s[r * VECS + l] = 0;
    }
}

/* The dot products of n rows of x and of y (LANES, D). */
W_ONCE void row_dots(const W_GLOBAL T *x, w_i64 stride, const V *y, int n, int d, V *to) {
    for (int l = 0; l < VECS; l++) {
        V sum[16];
        for (int i = 0; i < 16; i++) {
            const int r = l * 16 + i;
            sum[i] = 0;
            for (int c = 0; c < d && r < n; c += 16)
                sum[i] = fma(part(x + r * stride + c, d - c), y[r * (D / 16) + c / 16], sum[i]);
        }
        to[l] = lane_sums(sum);
    }
}

/* A work-group has every `parts`-th block of keys of a pair, and writes dk and dv of these. Its share of dq is summed
 * in `room`, (parts, pairs, query blocks) of (D, LANES). If a work-group has all key blocks, it stores dq with the last
 * block that a query sees. */
W_NUMBERS(attention_back) {
    w_i64 q_at, k_at, v_at, key_at, MASK_ORIGIN out_at, lse_at, dout_at, dq_at, dk_at, dv_at, room_at;
    ATTENTION_NUMBERS
};
W_KERNEL W_ITEMS(1, 1, 1) void attention_back(const W_GLOBAL T *q, const W_GLOBAL T *k, const W_GLOBAL T *v,
                                              const W_GLOBAL int *key, MASK_OPERAND const W_GLOBAL T *out,
                                              const W_GLOBAL S *lse,
                                              const W_GLOBAL T *dout, W_GLOBAL T *dq, W_GLOBAL T *dk, W_GLOBAL T *dv,
                                              W_GLOBAL S *room, W_GLOBAL w_faults *faults,
                                              const W_NUMBERS(attention_back) given) {
    OPEN
    V keys_[KEYS * D / 16], values[KEYS * D / 16], dkeys[KEYS * D / 16], dvalues[KEYS * D / 16];
    V queries[LANES * D / 16], douts[LANES * D / 16], qt[D * VECS], doutt[D * VECS], dqt[D * VECS];
    V s[KEYS * VECS], dp[KEYS * VECS], lses[VECS], delta[VECS];
#ifdef DROPOUT
    V kept[KEYS * VECS], weights[KEYS * VECS];
#else
    V *weights = s;
#endif
    const V one[VECS] = {1, 1};
    const w_i64 pair = w_group(1);
    const int shift = cached ? key[given.key_at] : t_k - t_q, blocks = (t_q + LANES - 1) / LANES;
    const int first = w_group(0) * KEYS, step = w_groups(0) * KEYS;
    room += given.room_at + (w_group(0) * (w_i64)w_groups(1) + pair) * blocks * D * LANES;
    ahead next = {.rows = pair + 1 < w_groups(1) ? min(t_q, t_k) : 0, .once = 2, .d = d};
    LOOK(q, 0), KEYS_LOOK(k, 0), KEYS_LOOK(v, 0), LOOK(out, 0), LOOK(dout, 0), LOOK(dq, 0), LOOK(dk, 0), LOOK(dv, 0);
    for (int j = first; j < t_k; j += step) {
        const int width = min(t_k - j, KEYS);
        fetch(KEYS_AT(k, j), of.k.time, width, WHOLE(width), d, keys_);
        fetch(KEYS_AT(v, j), of.v.time, width, WHOLE(width), d, values);
        for (int c = 0; c < KEYS * D / 16; c++) dkeys[c] = 0, dvalues[c] = 0;
        for (int i = 0; i < t_q; i += LANES) {
            const int n = min(t_q - i, LANES), keys = causal ? min(width, i + n + shift - j) : width,
                      whole = WHOLE(keys), before = causal ? j - i - shift : -keys,
                      both = WHOLE(seen_rows(before, 0, keys)),
                      last = step == KEYS && (j + KEYS >= t_k || (causal && i + n + shift <= j + KEYS));
            W_GLOBAL S *at = room + (w_i64)(i / LANES) * D * LANES;
            if (keys <= 0 && j > first) continue;
            int some = keys > 0;
#ifdef MASK
            V mosts[VECS];
            some = some && any_seen(MASK_AT(i, j), of.mask_t, of.mask_j, n, keys);
            if (!some && j > first && !last) continue;
#endif
            if (j == first)
                for (int c = 0; c < WHOLE(d) * VECS; c++) dqt[c] = 0;
            else
                for (int c = 0; c < WHOLE(d) * VECS; c++) dqt[c] = vload16(c, at);
            if (some) {
                fetch(AT(q, i), of.q.time, n, LANES, d, queries);
                fetch(AT(dout, i), of.dout.time, n, LANES, d, douts);
                turn(queries, d, scale, qt);
                turn(douts, d, 1, doutt);
                row_dots(AT(out, i), of.out.time, douts, n, d, delta);
                for (int r = 0; r < LANES; r++) ((S *)lses)[r] = r < n ? lse[LSE_AT(i + r)] : 0;
                scores(keys_, qt, s, both, whole, d, &next);
#ifdef MASK
                for (int r = 0; r < LANES; r++) ((S *)mosts)[r] = r < n ? lse[given.lse_at + pair * t_q + i + r] : 0;
                mask_block(s, MASK_AT(i, j), of.mask_t, of.mask_j, n, keys, mosts);
#endif
                weigh_again(s, keys, before, lses);
                scores(values, doutt, dp, both, whole, d, &next);
#ifdef DROPOUT
                keep_block(kept, keys, (pair * t_q + i) * t_k + j, t_k, key + given.key_at, dropout, factor);
                for (int r = 0; r < whole * VECS; r++) {
                    const V by = r < keys * VECS ? kept[r] : (V)(0);
                    weights[r] = s[r] * by;
                    dp[r] *= by;
                }
#endif
                add_to_keys(weights, douts, dvalues, both, whole, d, &next);
                for (int r = 0; r < whole; r++)
                    for (int l = 0; l < VECS; l++)
                        dp[r * VECS + l] = s[r * VECS + l] * (dp[r * VECS + l] - delta[l]) * scale;
                add_to_keys(dp, queries, dkeys, both, whole, d, &next);
                add_to_queries(keys_, dp, dqt, one, both, whole, d, &next);
            }
            if (last) {
                turn_back(dqt, d, one, queries);
                put(queries, AT(dq, i), of.dq.time, n, d);
            } else
                for (int c = 0; c < WHOLE(d) * VECS; c++) write16(at + c * 16, dqt[c]);
        }
        put(dkeys, AT(dk, j), of.dk.time, width, d);
        put(dvalues, AT(dv, j), of.dv.time, width, d);
    }
}

/* dq is the sum of the shares of all parts. */
W_NUMBERS(attention_dq) {
    w_i64 room_at, dq_at;
    ATTENTION_NUMBERS
};
W_KERNEL W_ITEMS(1, 1, 1) void attention_dq(const W_GLOBAL S *room, W_GLOBAL T *dq, W_GLOBAL w_faults *faults,
                                            const W_NUMBERS(attention_dq) given) {
    const w_attention of = given.attention;
    W_RETURN_IF_FAULTED(ITEMS, of.sink)
    const w_i64 heads = of.heads;
    const int t_q = of.t_q, d = CHANNELS, parts = of.parts;
    V sums[D * VECS], rows[LANES * D / 16];
    const V one[VECS] = {1, 1};
    const w_i64 pair = w_group(1), i = (w_i64)w_group(0) * LANES;
    for (int c = 0; c < (d + 15) / 16 * 16 * VECS; c++) sums[c] = 0;
    for (int part = 0; part < parts; part++) {
        const W_GLOBAL S *from =
            room + given.room_at + ((part * (w_i64)w_groups(1) + pair) * w_groups(0) + w_group(0)) * D * LANES;
        for (int c = 0; c < d * VECS; c++) sums[c] += vload16(c, from);
    }
    turn_back(sums, d, one, rows);
    put(rows, AT(dq, i), of.dq.time, (int)min((w_i64)LANES, t_q - i), d);
}
