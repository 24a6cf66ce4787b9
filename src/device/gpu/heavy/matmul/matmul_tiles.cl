/* Products on GPUs: a group of WIDE_ITEMS x HIGH_ITEMS items holds a tile of c in its registers, PATCH_N x PATCH_M
 * patches of 4 x 4 an item, and reads a and b in parts DEPTH deep through local memory; the next part is on its
 * variant from global memory while one is multiplied. A_LINES, B_LINES: the unit stride of a is along k, that of b along
 * n. */
#define TILE_M (HIGH_ITEMS * 4 * PATCH_M)
#define TILE_N (WIDE_ITEMS * 4 * PATCH_N)
#define A_EACH ((TILE_M * DEPTH + ITEMS - 1) / ITEMS)
#define B_EACH ((TILE_N * DEPTH + ITEMS - 1) / ITEMS)

/* Element e of a part that has `size` lines of either kind: neighbours lie along the unit stride. */
#define K_OF(e, along_k, size)    ((along_k) ? (e) % DEPTH : (e) / (size))
#define LINE_OF(e, along_k, size) ((along_k) ? (e) / DEPTH : (e) % (size))

/* What this item brings of one part; zeros outside. */
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

INLINE void spread(const S4 from, S *to) { to[0] = from.x, to[1] = from.y, to[2] = from.z, to[3] = from.w; }

/* Sums of a: items of the first column of groups have a line each. */
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

W_SHARED(matmul) { S4 x[DEPTH * (TILE_M + 4) / 4], y[DEPTH * (TILE_N + 4) / 4]; };
W_KERNEL W_ITEMS(ITEMS, 1, 1) void matmul(PARAMETERS W_ALSO(matmul)) {
    W_MEMORY(matmul)
    W_LOCAL S4 *const x = shared->x, *const y = shared->y;
    BEGIN
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
