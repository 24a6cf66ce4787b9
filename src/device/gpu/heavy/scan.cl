/* Cumulative sums, or products, along the middle of (outer, extent, inner). If there are few columns, sums are divided
 * into segments, and there are three kernels:
 *
 *     row            | segment 0   | segment 1   | segment 2   |
 *     scan_totals      sum s0        sum s1        sum s2
 *     scan_join        0             s0            s0 + s1          (replaces the sums)
 *     scan_write       cumulative sums of each segment, from there on
 *
 * With one segment, scan_write is all. Products are never divided: after a 0, a segment whose factors give infinity
 * would become NaN. A worker has one column of a segment, or WIDE adjacent columns with vectors. A: the type of the
 * sums. It is f64 for f32, as on CPUs, if the device has f64. Otherwise float sums are COMPENSATED. */
#include "device/gpu/heavy/scan_params.h"

W_NUMBERS(scan) {
    w_i64 input_at, totals_at, out_at;
    w_scan scan;
    int command;
};

/* Returns `all` joined with x. COMPENSATED: *rest is the rounding error of the last sum (Kahan 1965). Without it, long
 * sums of one sign lose many digits. Infinities have no rounding error. */
#if COMPENSATED
#define JOINED(V, name)                                                                                      \
    W_FN V name(V all, V x, int product, V *rest) {                                                          \
        const V more = w_exact(x - *rest), sum = w_exact(all + more), off = w_exact(sum - all) - more;       \
        if (product) return all * x;                                                                         \
        *rest = w_exact(off) - off == (V)0 ? off : (V)0;                                                     \
        return sum;                                                                                          \
    }
#else
#define JOINED(V, name)                                                                                      \
    W_FN V name(V all, V x, int product, V *rest) { return product ? all * x : all + x; }
#endif
JOINED(A, joined)
#ifdef VECTORS
#define WIDE SCAN_WIDE
JOINED(A16, joined16)
#else
#define WIDE 1
#endif

/* The work of a worker: `columns` columns from element `at` on, n elements of each. `total`: place of their totals. */
typedef struct stretch {
    w_i64 at, n, total;
    int columns;
} stretch;

W_FN stretch stretch_of(w_i64 worker, const w_scan of) {
    const w_i64 blocks = (of.inner + WIDE - 1) / WIDE, outer = of.segments * blocks;
    const w_i64 o = outer == 1 ? worker : worker / outer, rest = worker - o * outer;
    const w_i64 segment = blocks == 1 ? rest : rest / blocks, c = (rest - segment * blocks) * WIDE;
    const w_i64 first = segment * of.length;
    stretch s;
    s.at = (o * of.extent + (of.reverse ? of.extent - 1 - first : first)) * of.inner + c;
    s.n = min(of.length, of.extent - first);
    s.total = (o * of.segments + segment) * of.inner + c;
    s.columns = (int)min((w_i64)WIDE, of.inner - c);
    return s;
}

W_FN w_i64 workers_of(const w_scan of) { return of.outer * of.segments * ((of.inner + WIDE - 1) / WIDE); }

W_KERNEL W_ITEMS(ITEMS, 1, 1) void scan_totals(const W_GLOBAL T *input, W_GLOBAL A *totals, W_GLOBAL T *out,
                                               W_GLOBAL w_faults *faults, const W_NUMBERS(scan) given) {
    const w_scan of = given.scan;
    const w_i64 step = of.reverse ? -of.inner : of.inner;
    FOR_MINE(w, workers_of(of)) {
        const stretch s = stretch_of(w, of);
        const W_GLOBAL T *x = input + given.input_at + s.at;
        W_GLOBAL A *total = totals + given.totals_at + s.total;
#ifdef VECTORS
        A16 all = (A16)0, rests = (A16)0;
        if (s.columns == WIDE) {
            for (w_i64 i = 0; i < s.n; i++, x += step) all = joined16(all, WIDEN(LOAD16(x)), 0, &rests);
            vstore16(all, 0, total);
            continue;
        }
        if (of.inner == 1) { /* one contiguous column: 16 sums of adjacent elements */
            const W_GLOBAL T *from = of.reverse ? x - s.n + 1 : x;
            A sum = 0, rest = 0;
            w_i64 i = 0;
            for (; i + 16 <= s.n; i += 16) all = joined16(all, WIDEN(LOAD16(from + i)), 0, &rests);
            for (; i < s.n; i++) sum = joined(sum, LOAD(from, i), 0, &rest);
            sum += ((all.s0 + all.s1) + (all.s2 + all.s3)) + ((all.s4 + all.s5) + (all.s6 + all.s7));
            total[0] = sum + (((all.s8 + all.s9) + (all.sa + all.sb)) + ((all.sc + all.sd) + (all.se + all.sf)));
            continue;
        }
#endif
        for (int c = 0; c < s.columns; c++) {
            A sum = 0, rest = 0;
            for (w_i64 k = 0, at = c; k < s.n; k++, at += step) sum = joined(sum, LOAD(x, at), 0, &rest);
            total[c] = sum;
        }
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
        const W_GLOBAL A *total = totals + given.totals_at + s.total;
        W_GLOBAL T *y = out + given.out_at + s.at;
        w_i64 done = 0; /* elements */
#ifdef VECTORS
        if (s.columns == WIDE) {
            A16 all = of.segments > 1 ? vload16(0, total) : (A16)none, rests = (A16)0;
            for (; done < s.n; done++, x += step, y += step) {
                all = joined16(all, WIDEN(LOAD16(x)), of.product, &rests);
                STORE16(y, NARROW(all));
            }
            continue;
        }
        A before = of.segments > 1 ? total[0] : none, rest_before = 0;
        if (of.inner == 1 && !of.product) /* cumulative sums among 16 elements, plus the sum before them */
            for (; done + 16 <= s.n; done += 16, x += 16 * step, y += 16 * step) {
                A16 v = WIDEN(of.reverse ? LOAD16(x - 15).sfedcba9876543210 : LOAD16(x));
                v += (A16)((A)0, v.s01234567, v.s89ab, v.scd, v.se);
                v += (A16)((A)0, (A)0, v.s01234567, v.s89ab, v.scd);
                v += (A16)((A)0, (A)0, (A)0, (A)0, v.s01234567, v.s89ab);
                v += (A16)((A)0, (A)0, (A)0, (A)0, (A)0, (A)0, (A)0, (A)0, v.s01234567);
                const A last = v.sf;
                v += before;
                before = joined(before, last, 0, &rest_before);
                if (of.reverse)
                    STORE16(y - 15, NARROW(v).sfedcba9876543210);
                else
                    STORE16(y, NARROW(v));
            }
#endif
        for (int c = 0; c < s.columns; c++) {
            A all = of.segments > 1 ? total[c] : none, rest = 0;
#ifdef VECTORS
            if (done) all = before, rest = rest_before;
#endif
            for (w_i64 k = done, at = c; k < s.n; k++, at += step) {
                all = joined(all, LOAD(x, at), of.product, &rest);
                STORE(y, at, all);
            }
        }
    }
}
