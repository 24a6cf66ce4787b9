/* The sums over the parts of k, added in order. Behind storage.cl and matmul.cl. */
W_KERNEL W_ITEMS(ITEMS, 1, 1) void matmul_sum(const W_GLOBAL S *parts, w_i64 parts_at, W_GLOBAL O *c, w_i64 c_at,
                                              int m, int n, w_i64 c_m, int splits, int extent1, int extent2,
                                              int extent3, BATCH(c_batch), int sink, W_GLOBAL w_faults *faults,
                                              int command) {
    if (sink && w_faulted(faults)) return;
    const int item = w_group(1), at3 = item % extent3, at2 = item / extent3 % extent2;
    const int at1 = item / extent3 / extent2 % extent1, at0 = item / extent3 / extent2 / extent1;
    const w_i64 size = (w_i64)m * n, first = (w_i64)w_group(0) * EACH;
    parts += parts_at + item * splits * size;
    c += c_at + at0 * c_batch0 + at1 * c_batch1 + at2 * c_batch2 + at3 * c_batch3;
    for (w_i64 e = first + w_item(0); e < min(first + EACH, size); e += ITEMS) {
        S total = parts[e];
        for (int s = 1; s < splits; s++) total += parts[s * size + e];
        PUT(c, e / n * c_m + e % n, total);
    }
}
