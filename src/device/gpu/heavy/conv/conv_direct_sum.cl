/* The sums over the parts of the windows, added in order. Behind storage.cl. */
W_NUMBERS(conv_sum) {
    w_i64 parts_at, c_at;
    int parts, count, command;
};
W_KERNEL W_ITEMS(ITEMS, 1, 1) void conv_sum(const W_GLOBAL S *from, W_GLOBAL T *c, W_GLOBAL w_faults *faults,
                                            const W_NUMBERS(conv_sum) given) {
    if (SINK && w_faulted(faults)) return;
    from += given.parts_at;
    for (int e = w_group(0) * ITEMS + w_item(0); e < given.count; e += w_groups(0) * ITEMS) {
        S total = from[e];
        for (int p = 1; p < given.parts; p++) total += from[(w_i64)p * given.count + e];
        STORE(c, given.c_at + e, total);
    }
}
