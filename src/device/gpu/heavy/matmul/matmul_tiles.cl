/* Matmul on GPUs without tensor cores. A work-group of WIDE_ITEMS x HIGH_ITEMS work-items computes a tile of
 * TILE_M x TILE_N elements of c. Each work-item has PATCH_M x PATCH_N patches of 4 x 4 sums in registers. The patches
 * of adjacent work-items are adjacent (here WIDE_ITEMS 2, HIGH_ITEMS 2, PATCH_M 1, PATCH_N 2; numbers are work-items):
 *
 *                  TILE_N columns
 *              +----+----+----+----+
 *     TILE_M   | 0  | 1  | 0  | 1  |   4 x 4 sums each
 *     rows     +----+----+----+----+
 *              | 2  | 3  | 2  | 3  |
 *              +----+----+----+----+
 *
 * a and b are read through local memory, DEPTH steps of k at a time: x (DEPTH, TILE_M) and y (DEPTH, TILE_N), with 4
 * elements of padding for each row. The next part is loaded to registers (next_a, next_b) while one is multiplied.
 *
 * A_LINES: a has stride 1 along k, else along m. B_LINES: b has stride 1 along n, else along k. */
#define TILE_M (HIGH_ITEMS * 4 * PATCH_M)
#define TILE_N (WIDE_ITEMS * 4 * PATCH_N)
#define A_EACH ((TILE_M * DEPTH + ITEMS - 1) / ITEMS)
#define B_EACH ((TILE_N * DEPTH + ITEMS - 1) / ITEMS)

/* The place of element e of a part with `size` lines. Adjacent elements are adjacent in memory, along the stride 1. */
#define K_OF(e, along_k, size)    ((along_k) ? (e) % DEPTH : (e) / (size))
#define LINE_OF(e, along_k, size) ((along_k) ? (e) / DEPTH : (e) % (size))

/* Loads this work-item's elements of one part; zeros outside of the operand. */
INLINE void fetch(const W_GLOBAL T *from, STRIDE line, int along_k, int size, int lines, int depth, int each, S *to) {
#pragma unroll
    for (int i = 0; i < each; i++) {
        const int e = w_item(0) + i * ITEMS, p = K_OF(e, along_k, size), l = LINE_OF(e, along_k, size);
        to[i] = p < depth && l < lines ? LOAD(from, along_k ? l * line + p : p * line + l) : (S)0;
    }
}

#ifndef BEGIN_FETCH
#define BEGIN_FETCH
#endif
#ifndef FETCH_A
#define FETCH_A(k) fetch(a + (k)*a_k, A_LINES ? a_m : a_k, A_LINES, TILE_M, rows, k1 - (k), A_EACH, next_a);
#endif
#ifndef FETCH_B
#define FETCH_B(k) fetch(b + (k)*b_k, B_LINES ? b_k : b_n, !B_LINES, TILE_N, cols, k1 - (k), B_EACH, next_b);
#endif

INLINE void put_down(const S *from, int along_k, int size, int each, W_LOCAL S *to) {
#pragma unroll
    for (int i = 0; i < each; i++) {
        const int e = w_item(0) + i * ITEMS;
        if (e < size * DEPTH) to[K_OF(e, along_k, size) * (size + 4) + LINE_OF(e, along_k, size)] = from[i];
    }
}

#define X_SIZE (DEPTH * (TILE_M + 4))
#define Y_SIZE (DEPTH * (TILE_N + 4))

/* Row sums of a. In work-groups at the first column of c, each work-item adds up one row. */
#if SUMS
#if TILE_M > ITEMS
#error an item has one line at most
#endif
#define BEGIN_LINE                                                                                           \
    const int adds = j0 == 0 && w_item(0) < rows;                                                            \
    S line_sum = 0, line_total = 0;
#define ADD_LINE                                                                                             \
    if (adds)                                                                                                \
        for (int p = 0; p < DEPTH; p++) line_sum += ((const W_LOCAL S *)x)[p * (TILE_M + 4) + w_item(0)];
#define ADD_CHUNK line_total += line_sum, line_sum = 0;
#define PUT_LINE  if (adds) sums[w_item(0)] = line_total;
#else
#define BEGIN_LINE
#define ADD_LINE
#define ADD_CHUNK
#define PUT_LINE
#endif

W_SHARED(matmul) { S4 x[X_SIZE / 4], y[Y_SIZE / 4]; };

W_KERNEL W_ITEMS(ITEMS, 1, 1) void matmul(PARAMETERS W_ALSO(matmul)) {
    W_MEMORY(matmul)
    BEGIN
    W_LOCAL S4 *const x = shared->x, *const y = shared->y;
    const int across = w_item(0) % WIDE_ITEMS, down = w_item(0) / WIDE_ITEMS;
    BEGIN_LINE
    S total[PATCH_M * 4][PATCH_N * 4], sum[PATCH_M * 4][PATCH_N * 4], next_a[A_EACH], next_b[B_EACH];
#pragma unroll
    for (int i = 0; i < PATCH_M * 4; i++)
#pragma unroll
        for (int j = 0; j < PATCH_N * 4; j++) total[i][j] = sum[i][j] = 0;
    BEGIN_FETCH
    FETCH_A(k0)
    FETCH_B(k0)
    for (int p0 = k0; p0 < k1; p0 += DEPTH) {
        put_down(next_a, A_LINES, TILE_M, A_EACH, (W_LOCAL S *)x);
        put_down(next_b, !B_LINES, TILE_N, B_EACH, (W_LOCAL S *)y);
        w_barrier();
        ADD_LINE
        const int next = p0 + DEPTH;
        FETCH_A(next)
        FETCH_B(next)
#pragma unroll 2
        for (int p = 0; p < DEPTH; p++) {
            S ones[PATCH_M * 4], others[PATCH_N * 4];
#pragma unroll
            for (int i = 0; i < PATCH_M; i++)
                spread(x[p * (TILE_M / 4 + 1) + i * HIGH_ITEMS + down], ones + i * 4);
#pragma unroll
            for (int j = 0; j < PATCH_N; j++)
                spread(y[p * (TILE_N / 4 + 1) + j * WIDE_ITEMS + across], others + j * 4);
#pragma unroll
            for (int i = 0; i < PATCH_M * 4; i++)
#pragma unroll
                for (int j = 0; j < PATCH_N * 4; j++) sum[i][j] = MAD(ones[i], others[j], sum[i][j]);
        }
        w_barrier();
        if ((next - k0) % CHUNK != 0 && next < k1) continue;
        ADD_CHUNK
#pragma unroll
        for (int i = 0; i < PATCH_M * 4; i++)
#pragma unroll
            for (int j = 0; j < PATCH_N * 4; j++) total[i][j] += sum[i][j], sum[i][j] = 0;
    }
    PUT_LINE
#pragma unroll
    for (int i = 0; i < PATCH_M * 4; i++)
#pragma unroll
        for (int j = 0; j < PATCH_N * 4; j++) {
            const int row = (i / 4 * HIGH_ITEMS + down) * 4 + i % 4;
            const int at = (j / 4 * WIDE_ITEMS + across) * 4 + j % 4;
            if (row < rows && at < cols) PUT(row, at, total[i][j]);
        }
}
