/* Attention on tensor cores, for f16 (compute capability 7.5 or higher) and bf16 (8.0 or higher). The kernels have the
 * names and tasks of those in attention_items.cl: a work-group has BR rows and walks over blocks of BC others.
 *
 *              BC others                           D channels
 *     warp 0 +-----------+  16 MT rows           +-----------+
 *     warp 1 |  s = x y^T|  weights, rounded     | sums +=   |
 *     warp 2 |           |  to T: operand of the | weights y |
 *     warp 3 +-----------+  next product   --->  +-----------+
 *
 * The accumulators of s, rounded to T, have the layout that the next product needs for its operand (prelude/tensor.cu).
 * So weights never leave the registers. exp(scale s - x) is one fma and one exp2. Sums are f32. The order of additions
 * is fixed.
 *
 *     D        room for channels, a multiple of 32
 *     STEPS    backward: blocks of others in local memory at once. With 2, the next block is loaded in advance
 *     MORE     the launch asks for the local memory, since it is more than source may declare
 *
 * Comes after attention_common.cl. */
#define WARPS  (ITEMS / 32)
#define BR     (WARPS * MT * 16)
#define CHUNKS (D / 8) /* pieces of 16 bytes in a row */
#define TILE   (BC * CHUNKS)
#define OWN    (BR * CHUNKS)
/* The place of chunk c of row r. Eight rows that are read together have the same chunk in different banks. SWAPPED: the
 * bits of c that this changes. They are 0 in the place of a row, so chunk_at can change them with an exclusive or. */
#define SWAPPED     (D % 64 == 0 ? 7 : 3)
#define SWAP(r)     (D % 64 == 0 ? (r) & 7 : (r) >> 1 & 3)
#define PLACE(r, c) ((r) * CHUNKS + ((c) ^ SWAP(r)))
#ifdef MORE
#define ROOM(n) W_MORE_SHARED(uint4, room)
#else
#define ROOM(n) alignas(128) W_LOCAL_ROOM uint4 room[n]
#endif
#define LANE        (w_item(0) % 32)
#define ROW(m)      (w_item(0) / 32 * (MT * 16) + (m) * 16) /* the first of 16 rows of this warp */
#define MINE(m, i)  (ROW(m) + (i) / 2 * 8 + LANE / 4)       /* the row of accumulator i of 4, */
#define COLUMN(c, i) ((c) * 8 + LANE % 4 * 2 + (i) % 2)     /* and its column */
#define LOG2E       1.44269504f
#if FORMAT == FORMAT_F16
#define MMA  w_mma_f16
#define PAIR w_pair_f16
#else
#define MMA  w_mma_bf16
#define PAIR w_pair_bf16
#endif

/* Starts to copy the first n of `rows` rows of d channels; zeros after them. Copies are asynchronous if the rows are
 * aligned to 16 bytes. */
W_FN void load(const T *from, w_i64 stride, int n, int rows, int d, uint4 *to) {
    const bool lies = (((ulong)from | (ulong)stride * sizeof(T)) & 15) == 0;
    W_UNROLL for (int u = 0; lies && u < rows * CHUNKS / ITEMS; u++) { /* no remainder */
        const int e = u * ITEMS + w_item(0), r = e / CHUNKS, c = e % CHUNKS, some = r < n ? clamp(d - c * 8, 0, 8) : 0;
        w_copy16(w_local_at(to + PLACE(r, c)), from + r * stride + c * 8, some * (int)sizeof(T));
    }
    if (lies) return;
#pragma unroll 1
    for (int e = w_item(0); e < rows * D; e += ITEMS) {
        const int r = e / D, c = e % D;
        ((T *)(to + PLACE(r, c / 8)))[c % 8] = r < n && c < d ? from[r * stride + c] : (T)0;
    }
}

/* Waits until all copies of the work-group have arrived. */
W_FN void arrive() {
    w_copy_wait<0>();
    w_barrier();
}

/* row_at returns the address of chunk `chunk` of row r of a tile, in bytes of local memory. chunk_at returns the
 * address of a chunk c further on; `at` must have no bit of c. */
W_FN uint row_at(const uint4 *tile, int r, int chunk) { return w_local_at(tile) + (uint)PLACE(r, chunk) * 16; }
W_FN uint chunk_at(uint at, int c) { return (at ^ (uint)(c & SWAPPED) * 16) + (uint)(c & ~SWAPPED) * 16; }

/* s += x y^T: x is the warp's rows of a tile, y is (BC, D). */
W_FN void dots(const uint4 *x, const uint4 *y, float s[MT][BC / 8][4]) {
    const uint from = row_at(x, ROW(0) + LANE % 16, LANE / 16);
    const uint other = row_at(y, LANE / 16 * 8 + LANE % 8, LANE / 8 % 2);
    W_UNROLL for (int k = 0; k < D / 16; k++) {
        uint a[MT][4], b[4];
        W_UNROLL for (int m = 0; m < MT; m++) w_ldmatrix4(a[m], chunk_at(from, 2 * k) + m * 16 * CHUNKS * 16);
        W_UNROLL for (int j = 0; j < BC / 8; j += 2) {
            w_ldmatrix4(b, chunk_at(other, 2 * k) + j * 8 * CHUNKS * 16);
            W_UNROLL for (int m = 0; m < MT; m++) {
                MMA(s[m][j], a[m], b);
                MMA(s[m][j + 1], a[m], b + 2);
            }
        }
    }
}

/* sums += p y: p as `dots` leaves it, rounded to T; y is (BC, D). */
W_FN void gather(float p[MT][BC / 8][4], const uint4 *y, float sums[MT][CHUNKS][4]) {
    const uint other = row_at(y, LANE % 16, LANE / 16);
    W_UNROLL for (int k = 0; k < BC / 16; k++) {
        uint a[MT][4], b[4];
        W_UNROLL for (int m = 0; m < MT; m++)
            W_UNROLL for (int i = 0; i < 4; i++)
                a[m][i] = PAIR(p[m][2 * k + i / 2][i % 2 * 2], p[m][2 * k + i / 2][i % 2 * 2 + 1]);
        W_UNROLL for (int c = 0; c < CHUNKS; c += 2) {
            w_ldmatrix4_turned(b, chunk_at(other, c) + k * 16 * CHUNKS * 16);
            W_UNROLL for (int m = 0; m < MT; m++) {
                MMA(sums[m][c], a[m], b);
                MMA(sums[m][c + 1], a[m], b + 2);
            }
        }
    }
}

/* Sets scores to -inf, except those whose column is before `end`, at most `on` after their row and `back` before it. */
#define INT_MOST 0x7fffffff
W_FN void hide(float s[MT][BC / 8][4], int rows, int columns, int end, int on, int back) {
    W_UNROLL for (int m = 0; m < MT; m++)
        W_UNROLL for (int c = 0; c < BC / 8; c++)
            W_UNROLL for (int i = 0; i < 4; i++) {
                const int row = rows + MINE(m, i), column = columns + COLUMN(c, i);
                if (column >= end || column - row > on || row - column > back) s[m][c][i] = -INFINITY;
            }
}

#ifdef MASK
/* Multiplies products by scale and applies the mask of the pair. Rows and columns are queries and keys, or the reverse.
 * Rows and columns past the last ones use the mask of the last ones. */
W_FN void mask_tile(float s[MT][BC / 8][4], float scale, const MASK *mask, w_i64 row_step, w_i64 column_step, int rows,
                    int columns, int last_row, int last_column) {
    W_UNROLL for (int m = 0; m < MT; m++)
        W_UNROLL for (int c = 0; c < BC / 8; c++)
            W_UNROLL for (int i = 0; i < 4; i++) {
                const w_i64 row = min(rows + MINE(m, i), last_row), column = min(columns + COLUMN(c, i), last_column);
                s[m][c][i] = masked(s[m][c][i] * scale, mask[row * row_step + column * column_step]);
            }
}
#define MASK_OF_PAIR (mask + given.mask_at + b * of.mask_b + h * of.mask_h)
#endif

W_FN void clear(float sums[MT][CHUNKS][4]) {
    W_UNROLL for (int m = 0; m < MT; m++)
        W_UNROLL for (int c = 0; c < CHUNKS; c++)
            W_UNROLL for (int i = 0; i < 4; i++) sums[m][c][i] = 0;
}

/* Stores the warp's rows times `by`. They go through the warp's own rows of a tile, which nobody else reads. */
W_FN void put(T *to, w_i64 stride, int n, int d, float sums[MT][CHUNKS][4], float by, uint4 *tile) {
    const bool lies = (((ulong)to | (ulong)stride * sizeof(T)) & 15) == 0;
    __syncwarp();
    W_UNROLL for (int m = 0; m < MT; m++)
        W_UNROLL for (int c = 0; c < CHUNKS; c++)
            W_UNROLL for (int i = 0; i < 4; i += 2)
                ((uint *)(tile + PLACE(MINE(m, i), c)))[LANE % 4] = PAIR(sums[m][c][i] * by, sums[m][c][i + 1] * by);
    __syncwarp();
    for (int e = LANE; e < MT * 16 * CHUNKS; e += 32) {
        const int r = ROW(0) + e / CHUNKS, c = e % CHUNKS, some = r < n ? clamp(d - c * 8, 0, 8) : 0;
        T *p = to + (some ? r * stride + c * 8 : 0);
        const uint4 *from = tile + PLACE(r, c);
        if (lies && some == 8)
            *(uint4 *)p = *from;
        else
            for (int i = 0; i < some; i++) p[i] = ((const T *)from)[i];
    }
}

/* Returns the sum, or the largest, of the four lanes that share a row. */
W_FN float row_sum(float x) {
    x += __shfl_xor_sync(~0u, x, 1);
    return x + __shfl_xor_sync(~0u, x, 2);
}
W_FN float row_most(float x) {
    x = fmax(x, __shfl_xor_sync(~0u, x, 1));
    return fmax(x, __shfl_xor_sync(~0u, x, 2));
}

/* ---- dropout ----
 *
 * The mask of a warp's weights as bits. Four adjacent weights share a block of random numbers, but lie in the registers
 * of two or four lanes. So each lane computes blocks for its neighbours, and the lanes exchange bits.
 *
 *     KEPT_ROWS(element, step)      if rows are queries, `step` elements apart; element: of the first row and column
 *     KEPT_COLUMNS(element, step)   if columns are queries
 *     KEEP_ROWS(m, c, i)            the factor of accumulator (m, c, i) after KEPT_ROWS
 *     KEEP_COLUMNS(m, c, i)         the same after KEPT_COLUMNS
 *
 * They come before the products: few registers are in use there. */
#ifdef DROPOUT
#if BC > 32
typedef ulong kept_bits;
#else
typedef uint kept_bits;
#endif
/* Joins the bits of four lanes, whose numbers differ in bit a or bit b. */
W_FN kept_bits joined(kept_bits x, int a, int b) {
    x |= __shfl_xor_sync(~0u, x, a);
    return x | __shfl_xor_sync(~0u, x, b);
}

/* The four lanes of a row compute a quarter of its blocks each. Bit x: column x + 2 (LANE % 4). */
W_FN void kept_rows(const int *key, w_i64 element, w_i64 step, uint limit, kept_bits kept[MT][2]) {
    W_UNROLL for (int m = 0; m < MT; m++)
        W_UNROLL for (int g = 0; g < 2; g++) {
            const w_i64 row = element + MINE(m, 2 * g) * step;
            kept[m][g] = 0;
            W_UNROLL for (int k = 0; k < BC / 16; k++) {
                const int at = 16 * k + LANE % 4 * 4;
                kept[m][g] |= (kept_bits)kept_four(key, row + at, limit) << at;
            }
            kept[m][g] = joined(kept[m][g], 1, 2) >> LANE % 4 * 2;
        }
}

/* Four lanes have the same columns and four adjacent rows. They compute the blocks of a quarter of the columns each.
 * Bit 4 x: column x of the BC / 4 columns that the lane holds. */
W_FN void kept_columns(const int *key, w_i64 element, w_i64 step, uint limit, kept_bits kept[MT][2]) {
    W_UNROLL for (int m = 0; m < MT; m++)
        W_UNROLL for (int g = 0; g < 2; g++) {
            const w_i64 rows = element + ROW(m) + g * 8 + LANE / 16 * 4;
            kept[m][g] = 0;
            W_UNROLL for (int k = 0; k < BC / 16; k++) {
                const int x = 4 * k + LANE / 4 % 4;
                kept[m][g] |= (kept_bits)kept_four(key, rows + COLUMN(x / 2, x) * step, limit) << 4 * x;
            }
            kept[m][g] = joined(kept[m][g], 4, 8) >> LANE / 4 % 4;
        }
}
#define KEPT_ROWS(element, step)                                                                             \
    kept_bits kept[MT][2];                                                                                   \
    kept_rows(key + given.key_at, element, step, LIMIT, kept)
#define KEPT_COLUMNS(element, step)                                                                          \
    kept_bits kept[MT][2];                                                                                   \
    kept_columns(key + given.key_at, element, step, LIMIT, kept)
#define KEEP_ROWS(m, c, i)    (kept[m][(i) / 2] >> ((c) * 8 + (i) % 2) & 1 ? factor : 0)
#define KEEP_COLUMNS(m, c, i) (kept[m][(i) / 2] >> ((c) * 8 + (i) % 2 * 4) & 1 ? factor : 0)
#else
#define KEPT_ROWS(element, step)
#define KEPT_COLUMNS(element, step)
#define KEEP_ROWS(m, c, i)    1
#define KEEP_COLUMNS(m, c, i) 1
#endif

#ifndef BACKWARD
/* Weights are exp2(by s - base). With a mask, s already has the scale, and the largest score is subtracted before the
 * multiplication, since scores may be as low as the lowest f32. */
#ifdef MASK
#define EXPONENT(s, most, base) (((s) - (most)) * LOG2E)
#else
#define EXPONENT(s, most, base) fma(s, by, -(base))
#endif
W_KERNEL W_ITEMS(ITEMS, 1, 1) void attention(const T *q, const T *k, const T *v, const int *key, MASK_OPERAND T *out,
                                             float *lse, w_faults *faults, const W_NUMBERS(attention) given) {
    ROOM(OWN + 2 * TILE);
    uint4 *const mine = room, *const keys = mine + OWN, *const values = keys + TILE;
    OPEN
    const int i0 = (w_groups(0) - 1 - w_group(0)) * BR, n = min(t_q - i0, BR); /* blocks that see the most keys first */
    const int shift = cached ? key[given.key_at] : t_k - t_q, end = causal ? min(t_k, max(0, i0 + n + shift)) : t_k;
    const int all = causal ? min(end, i0 + 1 + shift) : end; /* every row sees the keys before it */
    const float by = scale * LOG2E;
    float sums[MT][CHUNKS][4], most[MT][2], sum[MT][2];
    clear(sums);
    W_UNROLL for (int m = 0; m < 2 * MT; m++) most[m / 2][m % 2] = -INFINITY, sum[m / 2][m % 2] = 0;
    load(AT(q, i0), of.q.time, n, BR, d, mine);
    load(KEYS_AT(k, 0), of.k.time, end, BC, d, keys);
    w_copy_group();
    for (int j = 0; j < end; j += BC) {
        float s[MT][BC / 8][4] = {};
        KEPT_ROWS((pair * t_q + i0) * t_k + j, (w_i64)t_k);
        arrive(); /* the keys are there, and nobody reads the values any more */
        load(KEYS_AT(v, j), of.v.time, end - j, BC, d, values);
        w_copy_group();
        dots(mine, keys, s);
#ifdef MASK
        mask_tile(s, scale, MASK_OF_PAIR, of.mask_t, of.mask_j, i0, j, t_q - 1, t_k - 1);
#endif
        if (j + BC > all) hide(s, i0, j, end, causal ? shift : INT_MOST, INT_MOST);
        W_UNROLL for (int m = 0; m < MT; m++)
            W_UNROLL for (int g = 0; g < 2; g++) {
                float best = -INFINITY, more = 0;
                W_UNROLL for (int c = 0; c < BC / 8; c++) best = fmax(best, fmax(s[m][c][2 * g], s[m][c][2 * g + 1]));
                best = fmax(most[m][g], row_most(best));
                const float high = best == -INFINITY ? 0 : best; /* if all scores are -inf, weights are 0, not NaN */
                const float base = high * by, keep = w_exp2_normal(EXPONENT(most[m][g], high, base));
                most[m][g] = best;
                W_UNROLL for (int c = 0; c < BC / 8; c++)
                    W_UNROLL for (int i = 2 * g; i < 2 * g + 2; i++) {
                        const float e = w_exp2_normal(EXPONENT(s[m][c][i], high, base));
                        more += e;
                        s[m][c][i] = e * KEEP_ROWS(m, c, i);
                    }
                sum[m][g] = fma(sum[m][g], keep, more);
                W_UNROLL for (int c = 0; c < CHUNKS; c++) sums[m][c][2 * g] *= keep, sums[m][c][2 * g + 1] *= keep;
            }
        arrive(); /* the values are there, and nobody reads the keys any more */
        if (j + BC < end) load(KEYS_AT(k, j + BC), of.k.time, end - j - BC, BC, d, keys);
        w_copy_group();
        gather(s, values, sums);
    }
    arrive(); /* where there was no step, what it would have read */
    W_UNROLL for (int m = 0; m < MT; m++)
        W_UNROLL for (int g = 0; g < 2; g++) {
            const float total = row_sum(sum[m][g]), part = total == 0 ? 0 : 1 / total;
            const int i = MINE(m, 2 * g);
            const w_i64 to = given.lse_at + pair * t_q + i0 + i;
#ifdef MASK /* in two parts (heavy/attention.h) */
            if (LANE % 4 == 0 && i < n) {
                lse[to] = total == 0 ? 0 : most[m][g];
                lse[to + of.pairs * t_q] = total == 0 ? -INFINITY : LOG(total);
            }
#else
            if (LANE % 4 == 0 && i < n) lse[to] = total == 0 ? -INFINITY : fma(most[m][g], scale, LOG(total));
#endif
            W_UNROLL for (int c = 0; c < CHUNKS; c++) sums[m][c][2 * g] *= part, sums[m][c][2 * g + 1] *= part;
        }
    put(AT(out, i0), of.out.time, n, d, sums, 1, mine);
}

#else

/* Backward, weights are exp(scale s - lse), and ds = weights (dp - delta). The accumulators of s and dp begin at what
 * is subtracted, which saves the subtraction. There are two exceptions: dp with dropout, which scales dp first, and s
 * with a mask, whose lse has two parts. The start of s is divided by scale, since s has no scale yet. For a row that
 * saw no key it is -inf, so that its weights are 0. */
#ifdef MASK
#define BY           LOG2E
#define PER          1
#define BEGIN_S(lse) 0
#define LESS_LSE(s, most, begin) ((s) - (most) + (begin))
#else
#define BY           (scale * LOG2E)
#define PER          (1 / scale)
#define BEGIN_S(lse) (lse)
#endif
W_FN float begin_of(const float *lse, float per) { return *lse == -INFINITY ? *lse : *lse * -per; }
#ifdef DROPOUT
#define BEGIN_DP(delta)         0
#define LESS(dp, by, delta)     fma(dp, by, -(delta))
#else
#define BEGIN_DP(delta)         (-(delta))
#define LESS(dp, by, delta)     (dp)
#endif

/* Returns the dot product of row r of two tiles. */
W_FN float row_dot(const uint4 *x, const uint4 *y, int r) {
    float sum = 0;
    W_UNROLL for (int c = LANE % 4; c < CHUNKS; c += 4)
        W_UNROLL for (int i = 0; i < 8; i++)
            sum = fma(LOAD((const T *)(x + PLACE(r, c)), i), LOAD((const T *)(y + PLACE(r, c)), i), sum);
    return row_sum(sum);
}

/* dq of a block of queries. Also writes delta, the dot products of the rows of out and dout. */
W_KERNEL W_ITEMS(ITEMS, 1, 1) void attention_dq(const T *q, const T *k, const T *v, const int *key, MASK_OPERAND
                                                const T *out, const float *lse, const T *dout, T *dq, float *delta,
                                                w_faults *faults, const W_NUMBERS(attention_dq) given) {
    ROOM(2 * OWN + 2 * STEPS * TILE);
    uint4 *const mine = room, *const douts = mine + OWN, *const keys = douts + OWN, *const values = keys + STEPS * TILE;
    OPEN
    const int i0 = (w_groups(0) - 1 - w_group(0)) * BR, n = min(t_q - i0, BR);
    const int shift = cached ? key[given.key_at] : t_k - t_q, end = causal ? min(t_k, max(0, i0 + n + shift)) : t_k;
    const int all = causal ? min(end, i0 + 1 + shift) : end;
    const float by = BY, per = PER;
    float sums[MT][CHUNKS][4], mean[MT][2], begin[MT][2];
#ifdef MASK
    const w_i64 other_part = of.pairs * t_q;
    float high[MT][2];
#else
    const int other_part = 0;
#endif
    clear(sums);
    load(AT(dout, i0), of.dout.time, n, BR, d, douts);
    load(AT(out, i0), of.out.time, n, BR, d, mine);
    w_copy_group();
    arrive();
    W_UNROLL for (int m = 0; m < MT; m++)
        W_UNROLL for (int g = 0; g < 2; g++) {
            const int i = MINE(m, 2 * g);
            const w_i64 row = pair * t_q + i0 + i;
            mean[m][g] = row_dot(mine, douts, i);
            begin[m][g] = i < n ? begin_of(lse + given.lse_at + other_part + row, per) : -INFINITY;
#ifdef MASK
            high[m][g] = i < n ? lse[given.lse_at + row] : 0;
#endif
            if (LANE % 4 == 0 && i < n) delta[given.delta_at + row] = mean[m][g];
        }
    w_barrier();
    load(AT(q, i0), of.q.time, n, BR, d, mine);
    load(KEYS_AT(k, 0), of.k.time, end, BC, d, keys);
    load(KEYS_AT(v, 0), of.v.time, end, BC, d, values);
    w_copy_group();
    for (int j = 0, step = 0; j < end; j += BC, step = (step + 1) % STEPS) {
        float s[MT][BC / 8][4], dp[MT][BC / 8][4];
        const int next = j + BC, other = (step + 1) % STEPS;
        KEPT_ROWS((pair * t_q + i0) * t_k + j, (w_i64)t_k);
        W_UNROLL for (int m = 0; m < MT; m++)
            W_UNROLL for (int c = 0; c < BC / 8; c++)
                W_UNROLL for (int i = 0; i < 4; i++)
                    s[m][c][i] = BEGIN_S(begin[m][i / 2]), dp[m][c][i] = BEGIN_DP(mean[m][i / 2]);
        arrive();
        if (STEPS > 1 && next < end) {
            load(KEYS_AT(k, next), of.k.time, end - next, BC, d, keys + other * TILE);
            load(KEYS_AT(v, next), of.v.time, end - next, BC, d, values + other * TILE);
            w_copy_group();
        }
        dots(mine, keys + step * TILE, s);
        dots(douts, values + step * TILE, dp);
#ifdef MASK
        mask_tile(s, scale, MASK_OF_PAIR, of.mask_t, of.mask_j, i0, j, t_q - 1, t_k - 1);
        W_UNROLL for (int m = 0; m < MT; m++)
            W_UNROLL for (int c = 0; c < BC / 8; c++)
                W_UNROLL for (int i = 0; i < 4; i++)
                    s[m][c][i] = LESS_LSE(s[m][c][i], high[m][i / 2], begin[m][i / 2]);
#endif
        if (next > all) hide(s, i0, j, end, causal ? shift : INT_MOST, INT_MOST);
        W_UNROLL for (int m = 0; m < MT; m++)
            W_UNROLL for (int c = 0; c < BC / 8; c++)
                W_UNROLL for (int i = 0; i < 4; i++)
                    s[m][c][i] =
                        w_exp2_normal(s[m][c][i] * by) * LESS(dp[m][c][i], KEEP_ROWS(m, c, i), mean[m][i / 2]);
        gather(s, keys + step * TILE, sums);
        if (STEPS == 1 && next < end) {
            w_barrier();
            load(KEYS_AT(k, next), of.k.time, end - next, BC, d, keys);
            load(KEYS_AT(v, next), of.v.time, end - next, BC, d, values);
            w_copy_group();
        }
    }
    arrive(); /* where there was no step, what it would have read */
    put(AT(dq, i0), of.dq.time, n, d, sums, scale, mine);
}

/* dk and dv of a block of keys. */
W_KERNEL W_ITEMS(ITEMS, 1, 1) void attention_dkv(const T *q, const T *k, const T *v, const int *key, MASK_OPERAND
                                                 const float *lse, const T *dout, T *dk, T *dv, const float *delta,
                                                 w_faults *faults, const W_NUMBERS(attention_dkv) given) {
    ROOM(2 * OWN + 2 * STEPS * TILE);
    uint4 *const keys = room, *const values = keys + OWN, *const mine = values + OWN,
          *const douts = mine + STEPS * TILE;
    OPEN
    const int j0 = w_group(0) * BR, n = min(t_k - j0, BR), shift = cached ? key[given.key_at] : t_k - t_q;
    const int first = causal && j0 > shift ? (j0 - shift) / BC * BC : 0;
    const int all = causal ? j0 + BR - 1 - shift : 0; /* queries from this one on see every key of the block */
    const float by = BY, per = PER;
    float sums_k[MT][CHUNKS][4], sums_v[MT][CHUNKS][4];
    clear(sums_k);
    clear(sums_v);
    load(KEYS_AT(k, j0), of.k.time, n, BR, d, keys);
    load(KEYS_AT(v, j0), of.v.time, n, BR, d, values);
    load(AT(q, first), of.q.time, t_q - first, BC, d, mine);
    load(AT(dout, first), of.dout.time, t_q - first, BC, d, douts);
    w_copy_group();
    for (int i0 = first, step = 0; i0 < t_q; i0 += BC, step = (step + 1) % STEPS) {
        float s[MT][BC / 8][4], dp[MT][BC / 8][4], mean[BC / 8][2];
        const int next = i0 + BC, other = (step + 1) % STEPS;
        KEPT_COLUMNS((pair * t_q + i0) * t_k + j0, (w_i64)t_k);
        W_UNROLL for (int c = 0; c < BC / 8; c++)
            W_UNROLL for (int i = 0; i < 2; i++) {
                const w_i64 at = pair * t_q + min(i0 + COLUMN(c, i), t_q - 1);
                mean[c][i] = delta[given.delta_at + at];
                W_UNROLL for (int m = 0; m < 2 * MT; m++) {
                    s[m / 2][c][m % 2 * 2 + i] = BEGIN_S(begin_of(lse + given.lse_at + at, per));
                    dp[m / 2][c][m % 2 * 2 + i] = BEGIN_DP(mean[c][i]);
                }
            }
        arrive();
        if (STEPS > 1 && next < t_q) {
            load(AT(q, next), of.q.time, t_q - next, BC, d, mine + other * TILE);
            load(AT(dout, next), of.dout.time, t_q - next, BC, d, douts + other * TILE);
            w_copy_group();
        }
        dots(keys, mine + step * TILE, s);
        dots(values, douts + step * TILE, dp);
#ifdef MASK
        mask_tile(s, scale, MASK_OF_PAIR, of.mask_j, of.mask_t, j0, i0, t_k - 1, t_q - 1);
        W_UNROLL for (int c = 0; c < BC / 8; c++)
            W_UNROLL for (int i = 0; i < 2; i++) {
                const w_i64 at = given.lse_at + pair * t_q + min(i0 + COLUMN(c, i), t_q - 1);
                const float high = lse[at], begin = begin_of(lse + at + of.pairs * t_q, per);
                W_UNROLL for (int m = 0; m < 2 * MT; m++)
                    s[m / 2][c][m % 2 * 2 + i] = LESS_LSE(s[m / 2][c][m % 2 * 2 + i], high, begin);
            }
#endif
        if (i0 < all || next > t_q) hide(s, j0, i0, t_q, INT_MOST, causal ? shift : INT_MOST);
        W_UNROLL for (int m = 0; m < MT; m++)
            W_UNROLL for (int c = 0; c < BC / 8; c++)
                W_UNROLL for (int i = 0; i < 4; i++) {
                    const float keep = KEEP_COLUMNS(m, c, i), weight = w_exp2_normal(s[m][c][i] * by);
                    s[m][c][i] = weight * keep;
                    dp[m][c][i] = weight * LESS(dp[m][c][i], keep, mean[c][i % 2]);
                }
        gather(s, douts + step * TILE, sums_v);
        gather(dp, mine + step * TILE, sums_k);
        if (STEPS == 1 && next < t_q) {
            w_barrier();
            load(AT(q, next), of.q.time, t_q - next, BC, d, mine);
            load(AT(dout, next), of.dout.time, t_q - next, BC, d, douts);
            w_copy_group();
        }
    }
    arrive(); /* where there was no step, what it would have read */
    put(AT(dk, j0), of.dk.time, n, d, sums_k, scale, keys);
    put(AT(dv, j0), of.dv.time, n, d, sums_v, 1, values);
}
#endif
