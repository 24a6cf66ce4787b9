/* Matmul with at most ROWS rows, as in decoding. Nearly all the time goes into reading b. It is read once, in place.
 * A work-group has COLUMNS columns; ITEMS / COLUMNS work-items share a column. */
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
