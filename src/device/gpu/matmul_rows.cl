/* Products of a few rows, ROWS at most, where reading b is all the work, as in decoding. a is read again by every
 * group and comes from the cache. */
#ifdef VECTORS
#define DEPTH 1024 /* of a kept in local memory */

W_FN S16 some(const W_GLOBAL T *from, int count) {
    S x[16];
    for (int j = 0; j < 16; j++) x[j] = j < count ? LOAD(from, j) : (S)0;
    return vload16(0, x);
}

/* Rows of a, zeros behind them. */
W_FN void pack_a(const W_GLOBAL T *from, w_i64 row, w_i64 step, int rows, int depth, W_LOCAL S *to) {
    for (int i = 0; i < ROWS; i++, from += row, to += DEPTH) {
        int p = 0;
        if (i < rows && step == 1)
            for (; p + 16 <= depth; p += 16) vstore16(LOAD16(from + p), 0, to + p);
        for (; p < depth; p++) to[p] = i < rows ? LOAD(from, p * step) : (S)0;
        for (; p & 15; p++) to[p] = 0;
    }
}

#if B_LINES
/* COLUMNS columns, k in order. */
W_KERNEL W_ITEMS(1, 1, 1) void matmul(PARAMETERS) {
    W_LOCAL S16 x[ROWS * DEPTH / 16];
    BEGIN
    S16 sum[ROWS][COLUMNS / 16];
#pragma unroll
    for (int i = 0; i < ROWS; i++)
#pragma unroll
        for (int v = 0; v < COLUMNS / 16; v++) sum[i][v] = 0;
    for (int p0 = k0; p0 < k1; p0 += DEPTH) {
        const int depth = min(DEPTH, k1 - p0);
        const W_GLOBAL T *from = b + p0 * b_line;
        pack_a(a + p0 * A_K, A_LINES ? a_line : 1, A_K, rows, depth, (W_LOCAL S *)x);
        for (int p = 0; p < depth; p++, from += b_line) {
#pragma unroll
            for (int v = 0; v < COLUMNS / 16; v++) {
                const S16 y = v * 16 + 16 <= cols ? LOAD16(from + v * 16) : some(from + v * 16, cols - v * 16);
#pragma unroll
                for (int i = 0; i < ROWS; i++)
                    sum[i][v] = MAD((S16)(((W_LOCAL S *)x)[i * DEPTH + p]), y, sum[i][v]);
            }
        }
    }
#pragma unroll
    for (int i = 0; i < ROWS; i++)
#pragma unroll
        for (int v = 0; v < COLUMNS / 16; v++) {
            S x[16];
            vstore16(sum[i][v], 0, x);
            for (int j = 0; j < 16 && i < rows && v * 16 + j < cols; j++) PUT(c, i * c_m + v * 16 + j, x[j]);
        }
}
#else
W_FN S folded(S16 of) {
    S x[16];
    vstore16(of, 0, x);
#pragma unroll
    for (int half_of = 8; half_of > 0; half_of /= 2)
#pragma unroll
        for (int j = 0; j < half_of; j++) x[j] += x[j + half_of];
    return x[0];
}

/* AT_ONCE columns of b, which lie along k: sixteen sums each, k over sixteen in turn, then folded by halves. */
W_KERNEL W_ITEMS(1, 1, 1) void matmul(PARAMETERS) {
    W_LOCAL S16 x[ROWS * DEPTH / 16], kept[COLUMNS * ROWS];
    BEGIN
    int p0 = k0;
    do {
        const int depth = min(DEPTH, k1 - p0);
        pack_a(a + p0 * A_K, A_LINES ? a_line : 1, A_K, rows, depth, (W_LOCAL S *)x);
        for (int j0 = 0; j0 < cols; j0 += AT_ONCE) {
            S16 sum[AT_ONCE][ROWS];
            const W_GLOBAL T *from[AT_ONCE];
#pragma unroll
            for (int j = 0; j < AT_ONCE; j++) {
                from[j] = b + min(j0 + j, cols - 1) * b_line + p0;
#pragma unroll
                for (int i = 0; i < ROWS; i++) sum[j][i] = p0 == k0 ? (S16)(0) : kept[(j0 + j) * ROWS + i];
            }
            int p = 0;
            for (; p + 16 <= depth; p += 16)
#pragma unroll
                for (int j = 0; j < AT_ONCE; j++) {
                    const S16 y = LOAD16(from[j] + p);
#pragma unroll
                    for (int i = 0; i < ROWS; i++) sum[j][i] = MAD(x[(i * DEPTH + p) / 16], y, sum[j][i]);
                }
            if (p < depth)
                for (int j = 0; j < AT_ONCE; j++) {
                    const S16 y = some(from[j] + p, depth - p);
                    for (int i = 0; i < ROWS; i++) sum[j][i] = MAD(x[(i * DEPTH + p) / 16], y, sum[j][i]);
                }
#pragma unroll
            for (int j = 0; j < AT_ONCE; j++)
#pragma unroll
                for (int i = 0; i < ROWS; i++) kept[(j0 + j) * ROWS + i] = sum[j][i];
        }
        p0 += DEPTH;
    } while (p0 < k1);
    for (int j = 0; j < cols; j++)
        for (int i = 0; i < rows; i++) PUT(c, i * c_m + j, folded(kept[j * ROWS + i]));
}
#endif

#else /* work-items: COLUMNS columns of a group, each by ITEMS / COLUMNS items */
#define SLICES (ITEMS / COLUMNS)

W_KERNEL W_ITEMS(ITEMS, 1, 1) void matmul(PARAMETERS) {
    W_LOCAL S kept[ITEMS * ROWS];
    BEGIN
    /* neighbours read neighbours of b; those of one column take its k in turn */
    const int j = B_LINES ? w_item(0) % COLUMNS : w_item(0) / SLICES;
    const int slice = B_LINES ? w_item(0) / COLUMNS : w_item(0) % SLICES;
    S sum[ROWS];
    for (int i = 0; i < ROWS; i++) sum[i] = 0;
    if (j < cols)
        for (int p = k0 + slice; p < k1; p += SLICES) {
            const S y = LOAD(b, j * (B_LINES ? 1 : b_line) + p * B_K);
            for (int i = 0; i < ROWS; i++)
                sum[i] = MAD(LOAD(a, min(i, rows - 1) * (A_LINES ? a_line : 1) + p * A_K), y, sum[i]);
        }
    for (int i = 0; i < ROWS; i++) kept[(slice * COLUMNS + j) * ROWS + i] = sum[i];
    w_barrier();
    for (int e = w_item(0); e < cols * rows; e += ITEMS) {
        const int row = e / cols, column = e % cols;
        S total = 0;
        for (int s = 0; s < SLICES; s++) total += kept[(s * COLUMNS + column) * ROWS + row];
        PUT(c, row * c_m + column, total);
    }
}
#endif
