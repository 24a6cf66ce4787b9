/* Sums, or products, up to each element along the middle of (outer, extent, inner), which is cut into segments: what
 * each comes to, that joined segment by segment, and each again from there. Workers beside each other have columns
 * beside each other; one that has a segment walks through it. Of one segment the last kernel is all. A: what is added
 * up in, f64 for f32 as on CPUs where there is that, else COMPENSATED. */
W_NUMBERS(scan) {
    w_i64 input_at, totals_at, out_at;
    w_i64 outer, extent, inner, length, segments;
    int product, reverse, sink, command;
};

/* Element 0 of a segment's column, and how far the next one is. */
W_FN w_i64 place_of(w_i64 worker, w_i64 extent, w_i64 inner, w_i64 length, w_i64 segments, int reverse, w_i64 *n) {
    const w_i64 c = worker % inner, segment = worker / inner % segments, o = worker / inner / segments;
    const w_i64 first = segment * length;
    *n = min(length, extent - first);
    return (o * extent + (reverse ? extent - 1 - first : first)) * inner + c;
}

/* all and x. COMPENSATED: of sums, *rest is what the last one rounded off (Kahan 1965), since a chain that is all
 * one sign is far off otherwise; infinities leave none. */
W_FN A joined(A all, A x, int product, A *rest) {
    if (product) return all * x;
#if COMPENSATED
    const A more = x - *rest, sum = all + more, off = (sum - all) - more;
    *rest = off - off == 0 ? off : 0;
    return sum;
#else
    return all + x;
#endif
}

W_KERNEL W_ITEMS(ITEMS, 1, 1) void scan_totals(const W_GLOBAL T *input, W_GLOBAL A *totals, W_GLOBAL T *out,
                                               W_GLOBAL w_faults *faults, const W_NUMBERS(scan) of) {
    const w_i64 step = of.reverse ? -of.inner : of.inner;
    for (w_i64 w = (w_i64)w_group(0) * ITEMS + w_item(0); w < of.outer * of.segments * of.inner;
         w += (w_i64)w_groups(0) * ITEMS) {
        w_i64 n, at = of.input_at + place_of(w, of.extent, of.inner, of.length, of.segments, of.reverse, &n);
        A all = of.product ? 1 : 0, rest = 0;
        for (; n > 0; n--, at += step) all = joined(all, LOAD(input, at), of.product, &rest);
        totals[of.totals_at + w] = all;
    }
}

/* What comes before each segment, in place of what it comes to. */
W_KERNEL W_ITEMS(ITEMS, 1, 1) void scan_join(const W_GLOBAL T *input, W_GLOBAL A *totals, W_GLOBAL T *out,
                                             W_GLOBAL w_faults *faults, const W_NUMBERS(scan) of) {
    for (w_i64 w = (w_i64)w_group(0) * ITEMS + w_item(0); w < of.outer * of.inner; w += (w_i64)w_groups(0) * ITEMS) {
        w_i64 at = of.totals_at + w / of.inner * of.segments * of.inner + w % of.inner;
        A all = of.product ? 1 : 0, rest = 0;
        for (w_i64 i = 0; i < of.segments; i++, at += of.inner) {
            const A here = totals[at];
            totals[at] = all;
            all = joined(all, here, of.product, &rest);
        }
    }
}

W_KERNEL W_ITEMS(ITEMS, 1, 1) void scan_write(const W_GLOBAL T *input, W_GLOBAL A *totals, W_GLOBAL T *out,
                                              W_GLOBAL w_faults *faults, const W_NUMBERS(scan) of) {
    if (of.sink && w_faulted(faults)) return;
    const w_i64 step = of.reverse ? -of.inner : of.inner;
    for (w_i64 w = (w_i64)w_group(0) * ITEMS + w_item(0); w < of.outer * of.segments * of.inner;
         w += (w_i64)w_groups(0) * ITEMS) {
        w_i64 n, at = place_of(w, of.extent, of.inner, of.length, of.segments, of.reverse, &n);
        A all = of.segments > 1 ? totals[of.totals_at + w] : (A)(of.product ? 1 : 0), rest = 0;
        for (; n > 0; n--, at += step) {
            all = joined(all, LOAD(input, of.input_at + at), of.product, &rest);
            STORE(out, of.out_at + at, all);
        }
    }
}
