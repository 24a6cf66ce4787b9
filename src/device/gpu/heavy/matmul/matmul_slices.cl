/* Matmuls of few tiles on CUDA. A work-group computes TILES tiles side by side. Each has TILE_M x TILE_N elements of c.
 * The work-group divides its part of k into K_SLICES slices. A warp computes one tile for one slice, and waits only for
 * itself. At the end the work-group adds up the slices of each tile. TEAM work-items, a warp or half of one, share a
 * tile. Two teams of a warp take turns in the steps of their slice.
 *
 * A work-item has EACH_M x EACH_N sums in registers, and takes 4 steps of k at once. What limits this kernel is reading
 * local memory: EACH_M + EACH_N elements for EACH_M * EACH_N products.
 *
 * a and b are read through local memory, DEPTH steps of k at a time. The next part is loaded to registers (next_a,
 * next_b) while one is multiplied. Local memory has the order of the operand. So an operand is copied 4 elements at a
 * time, if its address and its strides allow that (A_FOUR and B_FOUR are 4, else 1):
 *
 *     A_LINES   a has stride 1 along k; x is (TILE_M, DEPTH). Row i of a work-item is row i * HIGH + down of the tile.
 *     else      a has stride 1 along m; x is (DEPTH, TILE_M). Four rows of a work-item are adjacent.
 *     B_LINES   b has stride 1 along n; y is (DEPTH, TILE_N). Four columns of a work-item are adjacent.
 *     else      b has stride 1 along k; y is (TILE_N, DEPTH).
 *
 * Each line of x and y has 4 elements of padding, so that neighbours use different banks.
 *
 * LONG: slices are longer than CHUNK, so sums have two levels. ODD: k is no multiple of 4. */
#define WARP        32
#define TEAM        (HIGH * WIDE_ITEMS)
#define TEAMS       (WARP / TEAM)
#define WARP_ITEM   ((int)((uint)w_item(0) % WARP))
#define TILE_M      (HIGH * EACH_M)
#define TILE_N      (WIDE_ITEMS * EACH_N)
#define BLOCK_N     (TILE_N * TILES)
#define LENGTH(size, along_k) ((along_k) ? DEPTH : (size))
#define PITCH(size, along_k) (LENGTH(size, along_k) + 4)
#define ROOM(size, along_k)  (((along_k) ? (size) : DEPTH) * PITCH(size, along_k))
#define A_EACH      (TILE_M * DEPTH / WARP)
#define B_EACH      (TILE_N * DEPTH / WARP)

INLINE S4 joined_four(const S *from) {
    S4 four;
    four.x = from[0], four.y = from[1], four.z = from[2], four.w = from[3];
    return four;
}

/* The place of this work-item's unit i of a part: `wide` elements that are adjacent in memory. */
#define ACROSS(i, size, along_k, wide)                                                                       \
    ((WARP_ITEM + (i) * WARP) % (LENGTH(size, along_k) / (wide)) * (wide))
/* Eight work-items write 16 bytes each at once. These are LINES_AT_ONCE lines, if lines have less than 32 elements.
 * Such lines are 8 / LINES_AT_ONCE lines apart, so that they use different banks. */
#define LINES_AT_ONCE(size, along_k, wide) ((wide) == 4 && LENGTH(size, along_k) < 32 ? 32 / LENGTH(size, along_k) : 1)
#define APART(n, at_once)                                                                                    \
    ((n) % (at_once) * (8 / (at_once)) + (n) / (at_once) % (8 / (at_once)) + (n) / 8 * 8)
#define DOWN(i, size, along_k, wide)                                                                         \
    APART((WARP_ITEM + (i) * WARP) / (LENGTH(size, along_k) / (wide)), LINES_AT_ONCE(size, along_k, wide))

/* Loads this work-item's elements of one part, which begins at line `first` and at step k of `steps`. Behind the last
 * line and step it loads the last one again, so that no load waits for a branch. The results of such lines are not
 * stored. Such steps are left out, or become 0. */
INLINE void fetch(const W_GLOBAL T *from, STRIDE line, int along_k, int size, int first, int lines, int wide, int each,
                  int k, int steps, S *to) {
#pragma unroll
    for (int i = 0; i < each / wide; i++) {
        const int across = ACROSS(i, size, along_k, wide), down = DOWN(i, size, along_k, wide);
        const int p = k + (along_k ? across : down), q = min(p, steps - (along_k ? wide : 1));
        const int l = min(first + (along_k ? down : across), lines - (along_k ? 1 : wide));
        const STRIDE at = along_k ? l * line + q : q * line + l;
#if FORMAT == FORMAT_SAME
        if (wide == 4)
            spread(*(const W_GLOBAL S4 *)(from + at), to + i * 4);
        else
#endif
            to[i] = LOAD(from, at);
#if ODD
#pragma unroll
        for (int n = 0; n < wide; n++) to[i * wide + n] = p < steps ? to[i * wide + n] : (S)0;
#endif
    }
}

INLINE void put_down(const S *from, int along_k, int size, int wide, int each, W_LOCAL S *to) {
#pragma unroll
    for (int i = 0; i < each / wide; i++) {
        W_LOCAL S *const place =
            to + DOWN(i, size, along_k, wide) * PITCH(size, along_k) + ACROSS(i, size, along_k, wide);
        if (wide == 4)
            *(W_LOCAL S4 *)place = joined_four(from + i * 4);
        else
            *place = from[i];
    }
}

/* Reads 4 steps of k, from step q of the part on, for `each` lines of a work-item. `beside` work-items share the lines
 * of the tile. */
INLINE void take(const W_LOCAL S *from, int along_k, int size, int each, int beside, int item, int q, S (*to)[4]) {
#pragma unroll
    for (int i = 0; i < each; i++) {
        S four[4];
        if (along_k) {
            spread(*(const W_LOCAL S4 *)(from + (i * beside + item) * PITCH(size, along_k) + q), to[i]);
            continue;
        }
        spread(*(const W_LOCAL S4 *)(from + (q + i % 4) * PITCH(size, along_k) + (i / 4 * beside + item) * 4), four);
#pragma unroll
        for (int l = 0; l < 4; l++) to[i / 4 * 4 + l][i % 4] = four[l];
    }
}

/* Row i and column j of a work-item, in the tile. */
#define ROW_OF(i)    (A_LINES ? (i) * HIGH + down : ((i) / 4 * HIGH + down) * 4 + (i) % 4)
#define COLUMN_OF(j) (!B_LINES ? (j) * WIDE_ITEMS + across : ((j) / 4 * WIDE_ITEMS + across) * 4 + (j) % 4)
#define EACH_SUM                                                                                             \
    _Pragma("unroll") for (int i = 0; i < EACH_M; i++) _Pragma("unroll") for (int j = 0; j < EACH_N; j++)
#define EACH_ROW _Pragma("unroll") for (int i = 0; i < EACH_M; i++)

/* The sums of a work-item. `lines` are the row sums of a, if `adds` says so: in work-groups at the first column. */
typedef struct item_sums {
    S of[EACH_M][EACH_N], lines[EACH_M];
    int adds;
} item_sums;

INLINE void clear(int adds, item_sums *sum) {
    EACH_SUM sum->of[i][j] = 0;
    EACH_ROW sum->lines[i] = 0;
    sum->adds = adds;
}

INLINE void add(item_sums *sum, item_sums *total) {
    EACH_SUM total->of[i][j] += sum->of[i][j], sum->of[i][j] = 0;
    EACH_ROW total->lines[i] += sum->lines[i], sum->lines[i] = 0;
}

/* Multiplies the steps of a part from `first` to `last` - 1. */
INLINE void multiply(const W_LOCAL S *x, const W_LOCAL S *y, int first, int last, int down, int across,
                     item_sums *sum) {
#pragma unroll 1
    for (int q = first; q < last; q += 4) {
        S ones[EACH_M][4], others[EACH_N][4];
        take(x, A_LINES, TILE_M, EACH_M, HIGH, down, q, ones);
        take(y, !B_LINES, TILE_N, EACH_N, WIDE_ITEMS, across, q, others);
#pragma unroll
        for (int p = 0; p < 4; p++) EACH_SUM sum->of[i][j] = MAD(ones[i][p], others[j][p], sum->of[i][j]);
        if (sum->adds)
#pragma unroll
            for (int p = 0; p < 4; p++) EACH_ROW sum->lines[i] += ones[i][p];
    }
}

/* At the end the second half of the warps leave their tiles in local memory. The first half add them to their own. Then
 * the work-group adds up these, KEPT for each tile. */
#define HALF        (K_SLICES / 2)
#define KEPT        (HALF * TEAMS)
#define KEPT_PITCH  (TILE_N + (A_LINES && B_LINES && TILE_N == 16 ? 0 : 4)) /* for different banks */
#define KEPT_SIZE   (TILE_M * KEPT_PITCH)
#define KEPT_ROOM   (KEPT_SIZE + TILE_M + 16) /* row sums, and half of the banks */
#define PART_ROOM   (ROOM(TILE_M, A_LINES) + ROOM(TILE_N, !B_LINES))
#define ROOM_SIZE   (TILES * (K_SLICES * PART_ROOM > KEPT * KEPT_ROOM ? K_SLICES * PART_ROOM : KEPT * KEPT_ROOM))
W_SHARED(matmul) { S4 room[ROOM_SIZE / 4]; };

INLINE void keep(item_sums *sum, int down, int across, W_LOCAL S *kept) {
    EACH_SUM {
        W_LOCAL S *const place = kept + ROW_OF(i) * KEPT_PITCH + COLUMN_OF(j);
        if (!B_LINES)
            *place = sum->of[i][j];
        else if (j % 4 == 0)
            *(W_LOCAL S4 *)place = joined_four(&sum->of[i][j]);
    }
    if (sum->adds && across == 0) EACH_ROW kept[KEPT_SIZE + ROW_OF(i)] = sum->lines[i];
}

INLINE void add_kept(const W_LOCAL S *kept, int down, int across, item_sums *sum) {
    EACH_SUM {
        const W_LOCAL S *const place = kept + ROW_OF(i) * KEPT_PITCH + COLUMN_OF(j);
        S four[4];
        if (!B_LINES) {
            sum->of[i][j] += *place;
        } else if (j % 4 == 0) {
            spread(*(const W_LOCAL S4 *)place, four);
#pragma unroll
            for (int l = 0; l < 4; l++) sum->of[i][j + l] += four[l];
        }
    }
    if (sum->adds) EACH_ROW sum->lines[i] += kept[KEPT_SIZE + ROW_OF(i)];
}

INLINE void join(item_sums *sum, int slice, int down, int across, W_LOCAL S *kept) {
    w_barrier();
    if (slice >= HALF) keep(sum, down, across, kept);
    w_barrier();
    if (slice < HALF) {
        add_kept(kept, down, across, sum);
        w_barrier_warp();
        keep(sum, down, across, kept);
    }
    w_barrier();
}

INLINE S joined(const W_LOCAL S *kept) {
    S whole = kept[0];
#pragma unroll
    for (int s = 1; s < KEPT; s++) whole += kept[s * KEPT_ROOM];
    return whole;
}

#if SUMS
#define ADDS      (j0 == 0 && tile == 0)
#define PUT_LINES if (j0 == 0 && w_item(0) < rows) sums[w_item(0)] = joined(room + KEPT_SIZE + w_item(0));
#else
#define ADDS      0
#define PUT_LINES
#endif
#define FETCH(step)                                                                                          \
    fetch(a, A_LINES ? a_m : a_k, A_LINES, TILE_M, 0, rows, A_FOUR, A_EACH, step, of.k, next_a);             \
    fetch(b, B_LINES ? b_k : b_n, !B_LINES, TILE_N, tile * TILE_N, cols, B_FOUR, B_EACH, step, of.k, next_b);

W_KERNEL W_ITEMS(ITEMS, 1, 1) void matmul(PARAMETERS W_ALSO(matmul)) {
    W_MEMORY(matmul)
    BEGIN
    const int team = WARP_ITEM / TEAM, across = WARP_ITEM % WIDE_ITEMS, down = WARP_ITEM % TEAM / WIDE_ITEMS;
    const int warp = w_item(0) / WARP, tile = warp / K_SLICES;
    W_LOCAL S *const room = (W_LOCAL S *)shared->room, *const x = room + warp * PART_ROOM;
    W_LOCAL S *const y = x + ROOM(TILE_M, A_LINES);
    S next_a[A_EACH], next_b[B_EACH];
    item_sums sum, total;
    clear(ADDS, &sum);
    clear(ADDS, &total);
    if (k0 < k1) {
        FETCH(k0)
    }
    for (int p0 = k0; p0 < k1; p0 += DEPTH) {
        put_down(next_a, A_LINES, TILE_M, A_FOUR, A_EACH, x);
        put_down(next_b, !B_LINES, TILE_N, B_FOUR, B_EACH, y);
        w_barrier_warp();
        if (p0 + DEPTH < k1) {
            FETCH(p0 + DEPTH)
        }
        const int first = team * (DEPTH / TEAMS);
        multiply(x, y, first, min(first + DEPTH / TEAMS, k1 - p0), down, across, &sum);
        w_barrier_warp();
        if (LONG && (p0 + DEPTH - k0) % CHUNK == 0) add(&sum, &total);
    }
    if (LONG) add(&total, &sum);
    join(&sum, K_SLICE, down, across, room + (tile * KEPT + K_SLICE % HALF * TEAMS + team) * KEPT_ROOM);
    const int at = (int)((uint)w_item(0) % BLOCK_N);
    const W_LOCAL S *const joins = room + at / TILE_N * (KEPT * KEPT_ROOM) + at % TILE_N;
    if (at < cols)
        for (int row = (int)((uint)w_item(0) % ITEMS) / BLOCK_N; row < rows; row += ITEMS / BLOCK_N)
            PUT(row, at, joined(joins + row * KEPT_PITCH));
    PUT_LINES
}
