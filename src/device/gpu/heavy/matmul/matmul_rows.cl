/* Matmul with at most ROWS rows, as in decoding. Nearly all the time goes into reading b. It is read once, in place.
 * Every work-group reads a again, from the cache. There are three kernels:
 *
 *     VECTORS, B_LINES    (CPUs) b has stride 1 along n: vectors are 16 columns
 *     VECTORS             (CPUs) b has stride 1 along k: vectors are 16 steps of k, added up at the end
 *     else                (GPUs) COLUMNS columns for a work-group; ITEMS / COLUMNS work-items share a column */
#ifdef VECTORS
#if B_LINES
#define DEPTH CHUNK /* steps of k whose part of a is in local memory */
#else
#define DEPTH (4 * CHUNK) /* divided among sixteen sums */
#endif

W_FN S16 some(const W_GLOBAL T *from, int count) {
    S x[16];
    for (int j = 0; j < 16; j++) x[j] = j < count ? LOAD(from, j) : (S)0;
    return vload16(0, x);
}

/* Copies rows of a; zeros after them. */
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
#define AHEAD 4 /* rows of b at once: more streams for the prefetcher, and fewer loads and stores of sums */

/* sum (ROWS, 16) += x (ROWS, lines) b (lines, 16), k in order */
INLINE void add_lines(const S *x, const S16 *y, int lines, W_LOCAL S16 *sum) {
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        S16 total = sum[i];
#pragma unroll
        for (int p = 0; p < lines; p++) total = MAD((S16)(x[i * AHEAD + p]), y[p], total);
        sum[i] = total;
    }
}

INLINE void add(const W_LOCAL S *from, const W_GLOBAL T *b, w_i64 b_k, int lines, int cols, W_LOCAL S16 *sum) {
    S x[ROWS * AHEAD];
    S16 y[AHEAD];
#pragma unroll
    for (int i = 0; i < ROWS; i++)
#pragma unroll
        for (int p = 0; p < lines; p++) x[i * AHEAD + p] = from[i * DEPTH + p];
    for (; cols >= 16; cols -= 16, b += 16, sum += ROWS) {
#pragma unroll
        for (int p = 0; p < lines; p++) y[p] = LOAD16(b + p * b_k);
        add_lines(x, y, lines, sum);
    }
    if (cols <= 0) return;
#pragma unroll
    for (int p = 0; p < lines; p++) y[p] = some(b + p * b_k, cols);
    add_lines(x, y, lines, sum);
}

W_SHARED(matmul) { S16 x[ROWS * DEPTH / 16], sum[ROWS * COLUMNS / 16], total[ROWS * COLUMNS / 16]; };
W_KERNEL W_ITEMS(1, 1, 1) void matmul(PARAMETERS W_ALSO(matmul)) {
    W_MEMORY(matmul)
    W_LOCAL S16 *const sum = shared->sum, *const total = shared->total;
    W_LOCAL S *const x = (W_LOCAL S *)shared->x;
    BEGIN
    const int vectors = (cols + 15) / 16 * ROWS;
    for (int v = 0; v < vectors; v++) total[v] = sum[v] = 0;
    for (int p0 = k0; p0 < k1; p0 += DEPTH) {
        const int depth = min(DEPTH, k1 - p0);
        const W_GLOBAL T *from = b + p0 * b_k;
        pack_a(a + p0 * a_k, a_m, a_k, rows, depth, x);
        int p = 0;
        for (; p + AHEAD <= depth; p += AHEAD) add(x + p, from + p * b_k, b_k, AHEAD, cols, sum);
        for (; p < depth; p++) add(x + p, from + p * b_k, b_k, 1, cols, sum);
        for (int v = 0; v < vectors; v++) total[v] += sum[v], sum[v] = 0;
    }
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < cols; j += 16) PUT16(i, j, cols - j, total[j / 16 * ROWS + i]);
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

/* Goes through AT_ONCE columns of b at a time. Each element has sixteen sums, which `folded` adds up at the end. */
W_SHARED(matmul) { S16 x[ROWS * DEPTH / 16], kept[COLUMNS * ROWS]; };
W_KERNEL W_ITEMS(1, 1, 1) void matmul(PARAMETERS W_ALSO(matmul)) {
    W_MEMORY(matmul)
    W_LOCAL S16 *const x = shared->x, *const kept = shared->kept;
    BEGIN
    int p0 = k0;
    do {
        const int depth = min(DEPTH, k1 - p0);
        pack_a(a + p0 * a_k, a_m, a_k, rows, depth, (W_LOCAL S *)x);
        for (int j0 = 0; j0 < cols; j0 += AT_ONCE) {
            S16 sum[AT_ONCE][ROWS];
            const W_GLOBAL T *from[AT_ONCE];
#pragma unroll
            for (int j = 0; j < AT_ONCE; j++) {
                from[j] = b + min(j0 + j, cols - 1) * b_n + p0;
#pragma unroll
                for (int i = 0; i < ROWS; i++) sum[j][i] = 0;
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
                for (int i = 0; i < ROWS; i++)
                    kept[(j0 + j) * ROWS + i] = sum[j][i] + (p0 == k0 ? (S16)(0) : kept[(j0 + j) * ROWS + i]);
        }
        p0 += DEPTH;
    } while (p0 < k1);
    for (int i = 0; i < rows; i++)
        for (int j0 = 0; j0 < cols; j0 += 16) {
            S x[16];
            for (int j = 0; j < 16; j++) x[j] = j0 + j < cols ? folded(kept[(j0 + j) * ROWS + i]) : (S)0;
            PUT16(i, j0, cols - j0, vload16(0, x));
        }
}
#endif

#else /* work-items */
#define SLICES (ITEMS / COLUMNS)

W_SHARED(matmul) { S kept[ITEMS * ROWS]; };
W_KERNEL W_ITEMS(ITEMS, 1, 1) void matmul(PARAMETERS W_ALSO(matmul)) {
    W_MEMORY(matmul)
    W_LOCAL S *const kept = shared->kept;
    BEGIN
    /* adjacent work-items read adjacent elements of b; those of one column take steps of k in turn */
    const int j = B_LINES ? w_item(0) % COLUMNS : w_item(0) / SLICES;
    const int slice = B_LINES ? w_item(0) / COLUMNS : w_item(0) % SLICES;
    S total[ROWS];
#pragma unroll
    for (int i = 0; i < ROWS; i++) total[i] = 0;
    for (int p0 = k0 + slice; p0 < k1 && j < cols; p0 += SLICES * CHUNK) {
        S sum[ROWS];
#pragma unroll
        for (int i = 0; i < ROWS; i++) sum[i] = 0;
#pragma unroll 4
        for (int p = p0; p < min(k1, p0 + SLICES * CHUNK); p += SLICES) {
            const S y = LOAD(b, j * b_n + p * b_k);
#pragma unroll
            for (int i = 0; i < ROWS; i++) sum[i] = MAD(LOAD(a, min(i, rows - 1) * a_m + p * a_k), y, sum[i]);
        }
#pragma unroll
        for (int i = 0; i < ROWS; i++) total[i] += sum[i];
    }
    for (int i = 0; i < ROWS; i++) kept[(slice * COLUMNS + j) * ROWS + i] = total[i];
    w_barrier();
    for (int e = w_item(0); e < cols * rows; e += ITEMS) {
        const int row = e / cols, at = e % cols;
        S whole = 0;
        for (int s = 0; s < SLICES; s++) whole += kept[(s * COLUMNS + at) * ROWS + row];
        PUT(row, at, whole);
    }
}
#endif
