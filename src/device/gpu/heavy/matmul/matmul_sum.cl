/* Second launch of a matmul whose k was divided: c is the sum of the `splits` partial results (m, n), added in order.
 * With SUMS it also adds up the row sums of a. A work-group computes EACH elements. Comes after storage.cl
 * and matmul.cl. */
W_NUMBERS(matmul_sum) {
    w_i64 parts_at;
    OUT_NUMBERS
#if SUMS
    w_i64 sum_parts_at;
#endif
    SUMS_NUMBERS
    w_matmul product;
    int command;
};
#if SUMS
#define PARTS const W_GLOBAL S *parts, OUT const W_GLOBAL S *sum_parts, SUMS_OUT
#else
#define PARTS const W_GLOBAL S *parts, OUT
#endif
W_KERNEL W_ITEMS(ITEMS, 1, 1) void matmul_sum(PARTS W_GLOBAL w_faults *faults, const W_NUMBERS(matmul_sum) given) {
    W_RETURN_IF_FAULTED(ITEMS, SINK)
    const w_matmul of = given.product;
    const int item = w_group(1), n = of.n;
    const w_i64 size = (w_i64)of.m * n, first = (w_i64)w_group(0) * EACH;
    parts += given.parts_at + item * of.splits * size;
#if EPILOGUE
    const w_epilogue numbers = given.epilogue;
    const w_i64 line = item * (w_i64)of.m;
    const int column = 0;
#else
    const w_i64 c_m = of.c_m;
    c += given.c_at + item_at(&of, item, of.c_batch);
#endif
#if SUMS
    sums += given.sums_at, sum_parts += given.sum_parts_at;
    for (int i = w_group(0) * ITEMS + w_item(0); i < of.m; i += w_groups(0) * ITEMS) {
        S total = sum_parts[i];
        for (int s = 1; s < of.splits; s++) total += sum_parts[i + s * of.m];
        sums[i] = total;
    }
#endif
    for (w_i64 e = first + w_item(0); e < min(first + EACH, size); e += ITEMS) {
        const int row = e / n, at = e % n;
        const W_GLOBAL S *from = parts + e;
        S total = *from;
        for (int s = 1; s < of.splits; s++) total += from[s * size];
        PUT(row, at, total);
    }
}
