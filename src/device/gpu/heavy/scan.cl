/* Cumulative sums, or products, along the middle of (outer, extent, inner). If there are few columns, sums are divided
 * into segments, and there are three kernels:
 *
 *     row            | segment 0   | segment 1   | segment 2   |
 *     scan_totals      sum s0        sum s1        sum s2
 *     scan_join        0             s0            s0 + s1          (replaces the sums)
 *     scan_write       cumulative sums of each segment, from there on
 *
 * With one segment, scan_write is all. Products are never divided: after a 0, a segment whose factors give infinity
 * would become NaN. A worker has one column of a segment. A: the type of the sums. It is f64 for f32, as on CPUs, if
 * the device has f64. Otherwise float sums are COMPENSATED. */
#include "device/gpu/heavy/scan_params.h"

W_NUMBERS(scan) {
    w_i64 input_at, totals_at, out_at;
    w_scan scan;
    int command;
};

/* Returns `all` joined with x. COMPENSATED: *rest is the rounding error of the last sum (Kahan 1965). Without it, long
 * sums of one sign lose many digits. Infinities have no rounding error. */
W_FN A joined(A all, A x, int product, A *rest) {
    if (product) return all * x;
#if COMPENSATED
    const A more = w_exact(x - *rest), sum = w_exact(all + more), off = w_exact(sum - all) - more;
    *rest = w_exact(off) - off == (A)0 ? off : (A)0;
    return sum;
#else
    return all + x;
#endif
}

/* The work of a worker: n elements of a column, from element `at` on. `total`: place of their total. */
typedef struct stretch {
    w_i64 at, n, total;
} stretch;

W_FN stretch stretch_of(w_i64 worker, const w_scan of) {
    const w_i64 outer = of.segments * of.inner, o = outer == 1 ? worker : worker / outer, rest = worker - o * outer;
    const w_i64 segment = of.inner == 1 ? rest : rest / of.inner, c = rest - segment * of.inner;
    const w_i64 first = segment * of.length;
    stretch s;
    s.at = (o * of.extent + (of.reverse ? of.extent - 1 - first : first)) * of.inner + c;
    s.n = min(of.length, of.extent - first);
    s.total = (o * of.segments + segment) * of.inner + c;
    return s;
}

W_FN w_i64 workers_of(const w_scan of) { return of.outer * of.segments * of.inner; }

W_KERNEL W_ITEMS(ITEMS, 1, 1) void scan_totals(const W_GLOBAL T *input, W_GLOBAL A *totals, W_GLOBAL T *out,
                                               W_GLOBAL w_faults *faults, const W_NUMBERS(scan) given) {
    const w_scan of = given.scan;
    const w_i64 step = of.reverse ? -of.inner : of.inner;
    FOR_MINE(w, workers_of(of)) {
        const stretch s = stretch_of(w, of);
        const W_GLOBAL T *x = input + given.input_at + s.at;
        A sum = 0, rest = 0;
        for (w_i64 k = 0, at = 0; k < s.n; k++, at += step) sum = joined(sum, LOAD(x, at), 0, &rest);
        totals[given.totals_at + s.total] = sum;
    }
}

/* Replaces the total of each segment by the sum of all segments before it. */
W_KERNEL W_ITEMS(ITEMS, 1, 1) void scan_join(const W_GLOBAL T *input, W_GLOBAL A *totals, W_GLOBAL T *out,
                                             W_GLOBAL w_faults *faults, const W_NUMBERS(scan) given) {
    const w_scan of = given.scan;
    FOR_MINE(w, of.outer * of.inner) {
        w_i64 at = given.totals_at + w / of.inner * of.segments * of.inner + w % of.inner;
        A all = 0, rest = 0;
        for (w_i64 i = 0; i < of.segments; i++, at += of.inner) {
            const A here = totals[at];
            totals[at] = all;
            all = joined(all, here, 0, &rest);
        }
    }
}

W_KERNEL W_ITEMS(ITEMS, 1, 1) void scan_write(const W_GLOBAL T *input, W_GLOBAL A *totals, W_GLOBAL T *out,
                                              W_GLOBAL w_faults *faults, const W_NUMBERS(scan) given) {
    const w_scan of = given.scan;
    W_RETURN_IF_FAULTED(ITEMS, of.sink)
    const w_i64 step = of.reverse ? -of.inner : of.inner;
    const A none = of.product ? 1 : 0;
    FOR_MINE(w, workers_of(of)) {
        const stretch s = stretch_of(w, of);
        const W_GLOBAL T *x = input + given.input_at + s.at;
        W_GLOBAL T *y = out + given.out_at + s.at;
        A all = of.segments > 1 ? totals[given.totals_at + s.total] : none, rest = 0;
        for (w_i64 k = 0, at = 0; k < s.n; k++, at += step) {
            all = joined(all, LOAD(x, at), of.product, &rest);
            STORE(y, at, all);
        }
    }
}
