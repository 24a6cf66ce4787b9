/* The sums over the parts of k, added in order. Behind storage.cl and matmul.cl. */
W_KERNEL W_ITEMS(ITEMS, 1, 1) void matmul_sum(const W_GLOBAL S *parts, w_i64 parts_at, W_GLOBAL O *c, w_i64 c_at,
                                              const w_product of, W_GLOBAL w_faults *faults, int command) {
    if (SINK && w_faulted(faults)) return;
    const int item = w_group(1), n = of.n;
    const w_i64 size = (w_i64)of.m * n, first = (w_i64)w_group(0) * EACH;
    parts += parts_at + item * of.splits * size;
    c += c_at + item_at(&of, item, of.c_batch);
    for (w_i64 e = first + w_item(0); e < min(first + EACH, size); e += ITEMS) {
        S total = parts[e];
        for (int s = 1; s < of.splits; s++) total += parts[s * size + e];
        PUT(c, e / n * of.c_m + e % n, total);
    }
}
