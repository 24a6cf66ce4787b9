/* The sums over the parts of k, added in order. Behind storage.cl and matmul.cl. */
W_NUMBERS(matmul_sum) {
    w_i64 parts_at, c_at;
    w_product product;
    int command;
};
W_KERNEL W_ITEMS(ITEMS, 1, 1) void matmul_sum(const W_GLOBAL S *parts, W_GLOBAL O *c, W_GLOBAL w_faults *faults,
                                              const W_NUMBERS(matmul_sum) given) {
    if (SINK && w_faulted(faults)) return;
    const w_product of = given.product;
    const int item = w_group(1), n = of.n;
    const w_i64 size = (w_i64)of.m * n, first = (w_i64)w_group(0) * EACH;
    parts += given.parts_at + item * of.splits * size;
    c += given.c_at + item_at(&of, item, of.c_batch);
    for (w_i64 e = first + w_item(0); e < min(first + EACH, size); e += ITEMS) {
        S total = parts[e];
        for (int s = 1; s < of.splits; s++) total += parts[s * size + e];
        PUT(c, e / n * of.c_m + e % n, total);
    }
}
