/* Matmul that reads its operands in place, without local memory and barriers. It has two uses:
 *
 *     SIDE 8        where work-items run on a processor, as by drivers of WebGPU. They load each value of each
 *                   work-item by itself, also from local memory. Compilers of such drivers are slow. So strides are
 *                   numbers, which makes one kernel for all layouts, and a result is stored in one place of the code.
 *     SIDE 1 or 2   for tiny matmuls on CUDA. Waiting for local memory would take longer than the matmul.
 *
 * A work-item computes SIDE x SIDE elements of c (here SIDE 2, and two work-items side by side):
 *
 *              +-----+-----+
 *              | 0 0 | 1 1 |
 *              | 0 0 | 1 1 |
 *              +-----+-----+
 *              | 2 2 | 3 3 |
 *              | 2 2 | 3 3 |
 *              +-----+-----+
 *
 * Sums have the order of matmul_tiles.cl, so the bits are the same. */
#if SUMS
#define ADD_LINE(i, x) line_sum[i] += x;
#define ADD_CHUNK(i)   line_total[i] += line_sum[i], line_sum[i] = 0;
#define PUT_LINE(row)  if (j0 + at0 == 0) sums[row] = line_total[0];
#define NEXT_LINE(i)   line_total[i - 1] = line_total[i];
#define PUT_LINES                                                                                            \
    for (int i = 0; i < SIDE; i++)                                                                           \
        if (j0 + at0 == 0 && row0 + i < rows) sums[row0 + i] = line_total[i];
#else
#define ADD_LINE(i, x)
#define ADD_CHUNK(i)
#define PUT_LINE(row)
#define NEXT_LINE(i)
#define PUT_LINES
#endif

#if SIDE < 8
#define UNROLLED _Pragma("unroll 8")
#define PUT_SUMS                                                                                             \
    _Pragma("unroll") for (int i = 0; i < SIDE; i++) _Pragma("unroll") for (int j = 0; j < SIDE; j++)         \
        if (row0 + i < rows && at0 + j < cols) PUT(row0 + i, at0 + j, total[i][j]);
#else
#define UNROLLED
#endif

W_KERNEL W_ITEMS(ITEMS, 1, 1) void matmul(PARAMETERS) {
    BEGIN
    const int across = of.block_n / SIDE, row0 = w_item(0) / across * SIDE, at0 = w_item(0) % across * SIDE;
    if (row0 >= rows || at0 >= cols) return;
    STRIDE line_a[SIDE], line_b[SIDE];
    S total[SIDE][SIDE], sum[SIDE][SIDE], y[SIDE];
#if SUMS
    S line_total[SIDE], line_sum[SIDE];
#pragma unroll
    for (int i = 0; i < SIDE; i++) line_total[i] = line_sum[i] = 0;
#endif
#pragma unroll
    for (int i = 0; i < SIDE; i++) {
        line_a[i] = min(row0 + i, rows - 1) * a_m, line_b[i] = min(at0 + i, cols - 1) * b_n;
#pragma unroll
        for (int j = 0; j < SIDE; j++) total[i][j] = sum[i][j] = 0;
    }
    for (int p0 = k0; p0 < k1; p0 += CHUNK) {
        UNROLLED
        for (int p = p0; p < min(k1, p0 + CHUNK); p++) {
#pragma unroll
            for (int j = 0; j < SIDE; j++) y[j] = LOAD(b, line_b[j] + p * b_k);
#pragma unroll
            for (int i = 0; i < SIDE; i++) {
                const S x = LOAD(a, line_a[i] + p * a_k);
                ADD_LINE(i, x)
#pragma unroll
                for (int j = 0; j < SIDE; j++) sum[i][j] = MAD(x, y[j], sum[i][j]);
            }
        }
#pragma unroll
        for (int i = 0; i < SIDE; i++) {
            ADD_CHUNK(i)
#pragma unroll
            for (int j = 0; j < SIDE; j++) total[i][j] += sum[i][j], sum[i][j] = 0;
        }
    }
#if SIDE < 8
    PUT_SUMS
    PUT_LINES
#else
    /* The next result moves to total[0][0]: an index that the compiler does not know would make it choose among all
     * elements. The numbers of turns depend on the work-item, so that compilers do not unroll the loops. */
    for (int row = row0; row < min(rows, row0 + SIDE); row++) {
        for (int at = at0; at < min(cols, at0 + SIDE); at++) {
            PUT(row, at, total[0][0]);
#pragma unroll
            for (int j = 1; j < SIDE; j++) total[0][j - 1] = total[0][j];
        }
        PUT_LINE(row)
#pragma unroll
        for (int i = 1; i < SIDE; i++) {
            NEXT_LINE(i)
#pragma unroll
            for (int j = 0; j < SIDE; j++) total[i - 1][j] = total[i][j];
        }
    }
#endif
}
