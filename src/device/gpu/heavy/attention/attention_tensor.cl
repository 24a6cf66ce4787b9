/* Attention on tensor cores, for f16 (compute capability 7.5 or higher) and bf16 (8.0 or higher), and on AMD's matrix
 * cores. The kernels have the names and tasks of those in attention_items.cl: a work-group has BR rows and walks over
 * blocks of BC others.
 *
 *              BC others                           D channels
 *     warp 0 +-----------+  16 MT rows           +-----------+
 *     warp 1 |  s = x y^T|  weights, rounded     | sums +=   |
 *     warp 2 |           |  to T: operand of the | weights y |
 *     warp 3 +-----------+  next product   --->  +-----------+
 *
 * The accumulators of s, rounded to T, have the layout that the next product needs for its operand (prelude/tensor.cu,
 * prelude/matrix.cu). So weights never leave the registers. exp(scale s - x) is one fma and one exp2. Sums are f32. The
 * order of additions is fixed.
 *
 *     D        room for channels, a multiple of 32
 *     STEPS    backward: blocks of others in local memory at once. With 2, the next block is loaded in advance
 *     MORE     the launch asks for the local memory, since it is more than source may declare
 *
 * Comes after attention_common.cl. */
#define WARPS  (ITEMS / W_CORE_LANES)
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
#define LANE   (w_item(0) % W_CORE_LANES)
#define ROW(m) (w_item(0) / W_CORE_LANES * (MT * 16) + (m) * 16) /* the first of 16 rows of this warp */
#define LOG2E  1.44269504f
#if FORMAT == FORMAT_F16
#define MMA w_mma_f16
#else
#define MMA w_mma_bf16
#endif

/* The accumulators of a lane: SUMS of each block of 16 rows and ACROSS columns. They are in GROUPS rows, EACH of a row.
 * A row is in PARTS lanes, whose numbers differ in the bits from NEAR up to FAR. This lane is number PART of them.
 *
 *     MINE(m, i)      the row of accumulator i, which is the same for all accumulators of a group
 *     COLUMN(c, i)    its column
 *
 * On AMD's cards (prelude/matrix.cu) the product is transposed: a column of d is a row here. */
#define ACROSS  W_CORE_ACROSS
#define SUMS    W_CORE_SUMS
#define OTHERS  (BC / ACROSS)
#define BLOCKS  (D / ACROSS)
#define EACH    (SUMS / GROUPS)
#ifdef W_CORE_READ
#define GROUPS       1
#define PARTS        (W_CORE_LANES / 16)
#define PART         (LANE / 16)
#define NEAR         16
#define FAR          W_CORE_LANES
#define MINE(m, i)   (ROW(m) + LANE % 16)
#define COLUMN(c, i) ((c) * 16 + w_core_row(LANE, i))
#else
#define GROUPS       2
#define PARTS        4
#define PART         (LANE % 4)
#define NEAR         1
#define FAR          4
#define MINE(m, i)   (ROW(m) + (i) / 2 * 8 + LANE / 4)
#define COLUMN(c, i) ((c) * 8 + LANE % 4 * 2 + (i) % 2)
#endif
/* For all accumulators; for those of a group; for all groups. */
#define FOR_ALL(m, c, n, i)                                                                                  \
    W_UNROLL for (int m = 0; m < MT; m++)                                                                    \
        W_UNROLL for (int c = 0; c < (n); c++)                                                               \
            W_UNROLL for (int i = 0; i < SUMS; i++)
#define FOR_GROUP(g, i) W_UNROLL for (int i = (g) * EACH; i < ((g) + 1) * EACH; i++)
#define FOR_GROUPS(m, g)                                                                                     \
    W_UNROLL for (int m = 0; m < MT; m++)                                                                    \
        W_UNROLL for (int g = 0; g < GROUPS; g++)

/* Rounds two numbers to T, the first one in the low half. */
#ifndef W_CORE_READ
#if FORMAT == FORMAT_F16
#define PAIR w_pair_f16
#else
#define PAIR w_pair_bf16
#endif
#else
W_FN uint PAIR(float low, float high) {
    T bits[2];
    STORE(bits, 0, low);
    STORE(bits, 1, high);
    return bits[0] | (uint)bits[1] << 16;
}
#endif

/* Starts to copy the first n of `rows` rows of d channels; zeros after them. Copies are asynchronous if the rows are
 * aligned to 16 bytes. */
W_FN void load(const T *from, w_i64 stride, int n, int rows, int d, uint4 *to) {
    const bool lies = (((ulong)from | (ulong)stride * sizeof(T)) & 15) == 0;
    const int pieces = rows * CHUNKS, item = w_core_anew(w_item(0));
    W_UNROLL for (int u = 0; lies && u < (pieces + ITEMS - 1) / ITEMS; u++) {
        const int e = u * ITEMS + item, r = e / CHUNKS, c = e % CHUNKS, some = r < n ? clamp(d - c * 8, 0, 8) : 0;
        if (pieces % ITEMS && e >= pieces) break;
#ifdef W_COPY_HELD
        uint4 held;
        w_copy16((w_copy_place)&held, from + r * stride + c * 8, some * (int)sizeof(T));
        to[PLACE(r, c)] = held;
#else
        w_copy16(w_local_at(to + PLACE(r, c)), from + r * stride + c * 8, some * (int)sizeof(T));
#endif
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

#ifdef W_CORE_READ
/* Loads row `row` of a tile for step `step` of 16 channels: the fragment of a lane. */
W_FN void along(const uint4 *tile, int lane, int row, int step, uint to[W_CORE_WORDS]) {
    const int first = step * 16 + W_CORE_K(lane);
    W_UNROLL for (int i = 0; i < W_CORE_WORDS; i += W_CORE_READ)
        w_core_read(to + i, w_local_at(tile + PLACE(row, (first + 2 * i) / 8)) + first % 8 * 2);
}

/* The same for channel `channel` of 16 rows, from row 16 step on. */
W_FN void across(const uint4 *tile, int lane, int step, int channel, uint to[W_CORE_WORDS]) {
    const int first = step * 16 + W_CORE_K(lane), chunk = channel / 8, place = channel % 8 * 2;
    W_UNROLL for (int i = 0; i < W_CORE_WORDS; i++)
        to[i] = w_core_pair(w_local_at(tile + PLACE(first + 2 * i, chunk)) + place,
                            w_local_at(tile + PLACE(first + 2 * i + 1, chunk)) + place);
}

/* Rounds 16 weights of a row to T. A lane has them as the next product wants them. Only on gfx11 it needs all 16, and
 * has every second one. */
W_FN void weights_of(const float *p, uint to[W_CORE_WORDS]) {
#if W_CORE_WORDS == 8
    const int upper = LANE / 16;
    W_UNROLL for (int i = 0; i < 8; i += 2) {
        const uint mine = PAIR(p[i], p[i + 1]), other = w_core_near(mine, 16);
        const uint even = upper ? other : mine, odd = upper ? mine : other;
        to[i] = (even & 0xffff) | odd << 16;
        to[i + 1] = even >> 16 | (odd & 0xffff0000);
    }
#else
    W_UNROLL for (int i = 0; i < W_CORE_WORDS; i++) to[i] = PAIR(p[2 * i], p[2 * i + 1]);
#endif
}

/* s += x y^T: x is the warp's rows of a tile, y is (BC, D). */
W_FN void dots(const uint4 *x, const uint4 *y, float s[MT][OTHERS][SUMS]) {
    W_UNROLL for (int k = 0; k < D / 16; k++) {
        uint a[W_CORE_WORDS], b[MT][W_CORE_WORDS];
        const int lane = w_core_anew(LANE);
        W_UNROLL for (int m = 0; m < MT; m++) along(x, lane, ROW(m) + lane % 16, k, b[m]);
        W_UNROLL for (int c = 0; c < OTHERS; c++) {
            along(y, lane, c * 16 + lane % 16, k, a);
            W_UNROLL for (int m = 0; m < MT; m++) MMA(s[m][c], a, b[m]);
        }
        W_CORE_NEXT();
    }
}

/* sums += p y: p as `dots` leaves it, rounded to T; y is (BC, D). */
W_FN void gather(float p[MT][OTHERS][SUMS], const uint4 *y, float sums[MT][BLOCKS][SUMS]) {
    W_UNROLL for (int k = 0; k < OTHERS; k++) {
        uint a[W_CORE_WORDS], b[MT][W_CORE_WORDS];
        W_UNROLL for (int m = 0; m < MT; m++) weights_of(p[m][k], b[m]);
        W_UNROLL for (int c = 0; c < BLOCKS; c++) {
            const int lane = w_core_anew(LANE);
            across(y, lane, k, c * 16 + lane % 16, a);
            W_UNROLL for (int m = 0; m < MT; m++) MMA(sums[m][c], a, b[m]);
            W_CORE_NEXT();
        }
    }
}
#else
/* row_at returns the address of chunk `chunk` of row r of a tile, in bytes of local memory. chunk_at returns the
 * address of a chunk c further on; `at` must have no bit of c. */
W_FN uint row_at(const uint4 *tile, int r, int chunk) { return w_local_at(tile) + (uint)PLACE(r, chunk) * 16; }
W_FN uint chunk_at(uint at, int c) { return (at ^ (uint)(c & SWAPPED) * 16) + (uint)(c & ~SWAPPED) * 16; }

/* s += x y^T: x is the warp's rows of a tile, y is (BC, D). */
W_FN void dots(const uint4 *x, const uint4 *y, float s[MT][OTHERS][SUMS]) {
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
W_FN void gather(float p[MT][OTHERS][SUMS], const uint4 *y, float sums[MT][BLOCKS][SUMS]) {
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
#endif

/* Sets scores to -inf, except those whose column is before `end`, at most `on` after their row and `back` before it. */
#define INT_MOST 0x7fffffff
W_FN void hide(float s[MT][OTHERS][SUMS], int rows, int columns, int end, int on, int back) {
    FOR_ALL(m, c, OTHERS, i) {
        const int row = rows + MINE(m, i), column = columns + COLUMN(c, i);
        if (column >= end || column - row > on || row - column > back) s[m][c][i] = -INFINITY;
    }
}

#ifdef MASK
/* Multiplies products by scale and applies the mask of the pair. Rows and columns are queries and keys, or the reverse.
 * Rows and columns past the last ones use the mask of the last ones. */
W_FN void mask_tile(float s[MT][OTHERS][SUMS], float scale, const MASK *mask, w_i64 row_step, w_i64 column_step,
                    int rows, int columns, int last_row, int last_column) {
    FOR_ALL(m, c, OTHERS, i) {
        const w_i64 row = min(rows + MINE(m, i), last_row), column = min(columns + COLUMN(c, i), last_column);
        s[m][c][i] = masked(s[m][c][i] * scale, mask[row * row_step + column * column_step]);
    }
}
#define MASK_OF_PAIR (mask + given.mask_at + b * of.mask_b + h * of.mask_h)
#endif

W_FN void clear(float sums[MT][BLOCKS][SUMS]) {
    FOR_ALL(m, c, BLOCKS, i) sums[m][c][i] = 0;
}

/* Stores the warp's rows times `by`. They go through the warp's own rows of a tile, which nobody else reads. */
W_FN void put(T *to, w_i64 stride, int n, int d, float sums[MT][BLOCKS][SUMS], float by, uint4 *tile) {
    const bool lies = (((ulong)to | (ulong)stride * sizeof(T)) & 15) == 0;
    w_warp();
#ifdef W_CORE_READ
    FOR_ALL(m, c, BLOCKS, i) {
        const int channel = COLUMN(c, i);
        STORE((T *)(tile + PLACE(MINE(m, i), channel / 8)), channel % 8, sums[m][c][i] * by);
    }
#else
    W_UNROLL for (int m = 0; m < MT; m++)
        W_UNROLL for (int c = 0; c < CHUNKS; c++)
            W_UNROLL for (int i = 0; i < 4; i += 2)
                ((uint *)(tile + PLACE(MINE(m, i), c)))[LANE % 4] = PAIR(sums[m][c][i] * by, sums[m][c][i + 1] * by);
#endif
    w_warp();
    for (int e = LANE; e < MT * 16 * CHUNKS; e += W_CORE_LANES) {
        const int r = ROW(0) + e / CHUNKS, c = e % CHUNKS, some = r < n ? clamp(d - c * 8, 0, 8) : 0;
        T *p = to + (some ? r * stride + c * 8 : 0);
        const uint4 *from = tile + PLACE(r, c);
        if (lies && some == 8)
            *(uint4 *)p = *from;
        else
            for (int i = 0; i < some; i++) p[i] = ((const T *)from)[i];
    }
}

/* Returns the sum, or the largest, of the lanes that share a row. */
W_FN float row_sum(float x) {
    W_UNROLL for (int by = NEAR; by < FAR; by *= 2) x += w_core_near(x, by);
    return x;
}
W_FN float row_most(float x) {
    W_UNROLL for (int by = NEAR; by < FAR; by *= 2) x = fmax(x, w_core_near(x, by));
    return x;
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
#if BC > 32 || defined(W_CORE_READ)
typedef ulong kept_bits;
#else
typedef uint kept_bits;
#endif
/* Joins the bits of four lanes, whose numbers differ in bit a or bit b. */
W_FN kept_bits joined(kept_bits x, int a, int b) {
    x |= w_core_near(x, a);
    return x | w_core_near(x, b);
}

#ifdef W_CORE_READ
/* The lanes of a row compute the blocks of 4 PARTS columns in turn: mostly these are the columns that they hold. On
 * gfx11 two lanes hold every second one. Bit x: column x + w_core_row(LANE, 0). */
W_FN void kept_rows(const int *key, w_i64 element, w_i64 step, uint limit, kept_bits kept[MT][GROUPS]) {
    W_UNROLL for (int m = 0; m < MT; m++) {
        const w_i64 row = element + MINE(m, 0) * step;
        kept[m][0] = 0;
        W_UNROLL for (int k = 0; k < BC / 4 / PARTS; k++) {
            const int at = k / (4 / PARTS) * 16 + PART * (16 / PARTS) + k % (4 / PARTS) * 4;
            kept[m][0] |= (kept_bits)kept_four(key, row + at, limit) << at;
        }
#if W_CORE_WORDS == 8
        kept[m][0] |= w_core_near(kept[m][0], 16);
#endif
        kept[m][0] >>= w_core_row(LANE, 0);
    }
}

/* Four adjacent lanes have the same columns and four adjacent rows. They compute the blocks of a quarter of the columns
 * each. Bit 4 x: column x of those that the lane holds. */
W_FN void kept_columns(const int *key, w_i64 element, w_i64 step, uint limit, kept_bits kept[MT][GROUPS]) {
    W_UNROLL for (int m = 0; m < MT; m++) {
        const w_i64 rows = element + ROW(m) + LANE % 16 / 4 * 4;
        kept[m][0] = 0;
        W_UNROLL for (int k = 0; k < OTHERS * SUMS / 4; k++) {
            const int x = 4 * k + LANE % 4;
            kept[m][0] |= (kept_bits)kept_four(key, rows + COLUMN(4 * k / SUMS, x % SUMS) * step, limit) << 4 * x;
        }
        kept[m][0] = joined(kept[m][0], 1, 2) >> LANE % 4;
    }
}
#else
/* The four lanes of a row compute a quarter of its blocks each. Bit x: column x + 2 (LANE % 4). */
W_FN void kept_rows(const int *key, w_i64 element, w_i64 step, uint limit, kept_bits kept[MT][GROUPS]) {
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
W_FN void kept_columns(const int *key, w_i64 element, w_i64 step, uint limit, kept_bits kept[MT][GROUPS]) {
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
#endif
#define KEPT_ROWS(element, step)                                                                             \
    kept_bits kept[MT][GROUPS];                                                                              \
    kept_rows(key + given.key_at, element, step, LIMIT, kept)
#define KEPT_COLUMNS(element, step)                                                                          \
    kept_bits kept[MT][GROUPS];                                                                              \
    kept_columns(key + given.key_at, element, step, LIMIT, kept)
#ifdef W_CORE_READ
#define KEPT_PLACE(c, i) ((c) * 16 + W_CORE_ROW(0, i))
#else
#define KEPT_PLACE(c, i) ((c) * 8 + (i) % 2)
#endif
#define KEEP_ROWS(m, c, i)    (kept[m][(i) / EACH] >> KEPT_PLACE(c, i) & 1 ? factor : 0)
#define KEEP_COLUMNS(m, c, i) (kept[m][(i) / EACH] >> 4 * ((c) * EACH + (i) % EACH) & 1 ? factor : 0)
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
    float sums[MT][BLOCKS][SUMS], most[MT][GROUPS], sum[MT][GROUPS];
    clear(sums);
    FOR_GROUPS(m, g) most[m][g] = -INFINITY, sum[m][g] = 0;
    load(AT(q, i0), of.q.time, n, BR, d, mine);
    load(KEYS_AT(k, 0), of.k.time, end, BC, d, keys);
    w_copy_group();
    for (int j = 0; j < end; j += BC) {
        float s[MT][OTHERS][SUMS] = {};
        KEPT_ROWS((pair * t_q + i0) * t_k + j, (w_i64)t_k);
        arrive(); /* the keys are there, and nobody reads the values any more */
        load(KEYS_AT(v, j), of.v.time, end - j, BC, d, values);
        w_copy_group();
        dots(mine, keys, s);
#ifdef MASK
        mask_tile(s, scale, MASK_OF_PAIR, of.mask_t, of.mask_j, i0, j, t_q - 1, t_k - 1);
#endif
        if (j + BC > all) hide(s, i0, j, end, causal ? shift : INT_MOST, INT_MOST);
        FOR_GROUPS(m, g) {
            float best = -INFINITY, more = 0;
            W_UNROLL for (int c = 0; c < OTHERS; c++) FOR_GROUP(g, i) best = fmax(best, s[m][c][i]);
            best = fmax(most[m][g], row_most(best));
            const float high = best == -INFINITY ? 0 : best; /* if all scores are -inf, weights are 0, not NaN */
            const float base = high * by, keep = w_exp2_normal(EXPONENT(most[m][g], high, base));
            most[m][g] = best;
            W_UNROLL for (int c = 0; c < OTHERS; c++)
                FOR_GROUP(g, i) {
                    const float e = w_exp2_normal(EXPONENT(s[m][c][i], high, base));
                    more += e;
                    s[m][c][i] = e * KEEP_ROWS(m, c, i);
                }
            sum[m][g] = fma(sum[m][g], keep, more);
            W_UNROLL for (int c = 0; c < BLOCKS; c++) FOR_GROUP(g, i) sums[m][c][i] *= keep;
        }
        arrive(); /* the values are there, and nobody reads the keys any more */
        if (j + BC < end) load(KEYS_AT(k, j + BC), of.k.time, end - j - BC, BC, d, keys);
        w_copy_group();
        gather(s, values, sums);
    }
    arrive(); /* where there was no step, what it would have read */
    FOR_GROUPS(m, g) {
        const float total = row_sum(sum[m][g]), part = total == 0 ? 0 : 1 / total;
        const int i = MINE(m, g * EACH);
        const w_i64 to = given.lse_at + pair * t_q + i0 + i;
#ifdef MASK /* in two parts (heavy/attention.h) */
        if (PART == 0 && i < n) {
            lse[to] = total == 0 ? 0 : most[m][g];
            lse[to + of.pairs * t_q] = total == 0 ? -INFINITY : LOG(total);
        }
#else
        if (PART == 0 && i < n) lse[to] = total == 0 ? -INFINITY : fma(most[m][g], scale, LOG(total));
#endif
        W_UNROLL for (int c = 0; c < BLOCKS; c++) FOR_GROUP(g, k) sums[m][c][k] *= part;
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
    W_UNROLL for (int c = PART; c < CHUNKS; c += PARTS)
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
    float sums[MT][BLOCKS][SUMS], mean[MT][GROUPS], begin[MT][GROUPS];
#ifdef MASK
    const w_i64 other_part = of.pairs * t_q;
    float high[MT][GROUPS];
#else
    const int other_part = 0;
#endif
    clear(sums);
    load(AT(dout, i0), of.dout.time, n, BR, d, douts);
    load(AT(out, i0), of.out.time, n, BR, d, mine);
    w_copy_group();
    arrive();
    FOR_GROUPS(m, g) {
        const int i = MINE(m, g * EACH);
        const w_i64 row = pair * t_q + i0 + i;
        mean[m][g] = row_dot(mine, douts, i);
        begin[m][g] = i < n ? begin_of(lse + given.lse_at + other_part + row, per) : -INFINITY;
#ifdef MASK
        high[m][g] = i < n ? lse[given.lse_at + row] : 0;
#endif
        if (PART == 0 && i < n) delta[given.delta_at + row] = mean[m][g];
    }
    w_barrier();
    load(AT(q, i0), of.q.time, n, BR, d, mine);
    load(KEYS_AT(k, 0), of.k.time, end, BC, d, keys);
    load(KEYS_AT(v, 0), of.v.time, end, BC, d, values);
    w_copy_group();
    for (int j = 0, step = 0; j < end; j += BC, step = (step + 1) % STEPS) {
        float s[MT][OTHERS][SUMS], dp[MT][OTHERS][SUMS];
        const int next = j + BC, other = (step + 1) % STEPS;
        KEPT_ROWS((pair * t_q + i0) * t_k + j, (w_i64)t_k);
        FOR_ALL(m, c, OTHERS, i)
            s[m][c][i] = BEGIN_S(begin[m][i / EACH]), dp[m][c][i] = BEGIN_DP(mean[m][i / EACH]);
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
        FOR_ALL(m, c, OTHERS, i) s[m][c][i] = LESS_LSE(s[m][c][i], high[m][i / EACH], begin[m][i / EACH]);
#endif
        if (next > all) hide(s, i0, j, end, causal ? shift : INT_MOST, INT_MOST);
        FOR_ALL(m, c, OTHERS, i)
            s[m][c][i] = w_exp2_normal(s[m][c][i] * by) * LESS(dp[m][c][i], KEEP_ROWS(m, c, i), mean[m][i / EACH]);
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
    float sums_k[MT][BLOCKS][SUMS], sums_v[MT][BLOCKS][SUMS];
    clear(sums_k);
    clear(sums_v);
    load(KEYS_AT(k, j0), of.k.time, n, BR, d, keys);
    load(KEYS_AT(v, j0), of.v.time, n, BR, d, values);
    load(AT(q, first), of.q.time, t_q - first, BC, d, mine);
    load(AT(dout, first), of.dout.time, t_q - first, BC, d, douts);
    w_copy_group();
    for (int i0 = first, step = 0; i0 < t_q; i0 += BC, step = (step + 1) % STEPS) {
        float s[MT][OTHERS][SUMS], dp[MT][OTHERS][SUMS], mean[OTHERS][EACH];
        const int next = i0 + BC, other = (step + 1) % STEPS;
        KEPT_COLUMNS((pair * t_q + i0) * t_k + j0, (w_i64)t_k);
        W_UNROLL for (int c = 0; c < OTHERS; c++)
            W_UNROLL for (int i = 0; i < EACH; i++) {
                const w_i64 at = pair * t_q + min(i0 + COLUMN(c, i), t_q - 1);
                mean[c][i] = delta[given.delta_at + at];
                FOR_GROUPS(m, g) {
                    s[m][c][g * EACH + i] = BEGIN_S(begin_of(lse + given.lse_at + at, per));
                    dp[m][c][g * EACH + i] = BEGIN_DP(mean[c][i]);
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
        W_UNROLL for (int c = 0; c < OTHERS; c++)
            W_UNROLL for (int i = 0; i < EACH; i++) {
                const w_i64 at = given.lse_at + pair * t_q + min(i0 + COLUMN(c, i), t_q - 1);
                const float high = lse[at], begin = begin_of(lse + at + of.pairs * t_q, per);
                FOR_GROUPS(m, g) s[m][c][g * EACH + i] = LESS_LSE(s[m][c][g * EACH + i], high, begin);
            }
#endif
        if (i0 < all || next > t_q) hide(s, j0, i0, t_q, INT_MOST, causal ? shift : INT_MOST);
        FOR_ALL(m, c, OTHERS, i) {
            const float keep = KEEP_COLUMNS(m, c, i), weight = w_exp2_normal(s[m][c][i] * by);
            s[m][c][i] = weight * keep;
            dp[m][c][i] = weight * LESS(dp[m][c][i], keep, mean[c][i % EACH]);
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
