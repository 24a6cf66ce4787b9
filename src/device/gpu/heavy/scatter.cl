/* Scatter-add: out (outer, rows, inner) = base, or 0; then out[o][index[i]] += source[o][i], in the order of i.
 *
 * There are no atomics. A worker is `width` work-items of a work-group, with one column each. It owns `tile` rows of
 * out, walks through the whole index and adds the rows that fall into its own. INDEX: the type of the index. Sums are
 * kept in out. If their type is wider than out's, they are in `room` until the rows are done. */
#include "device/gpu/heavy/scatter_params.h"

#define CHUNK 256 /* elements of the index in local memory, for the whole work-group */

W_NUMBERS(scatter) {
    w_i64 index_at, source_at, base_at, out_at, room_at;
    w_scatter scatter;
    int command;
};
W_KERNEL W_ITEMS(ITEMS, 1, 1) void scatter(const W_GLOBAL INDEX *index, const W_GLOBAL T *source,
                                           const W_GLOBAL T *base, W_GLOBAL T *out, W_GLOBAL S *room,
                                           W_GLOBAL w_faults *faults, const W_NUMBERS(scatter) given) {
    const w_scatter of = given.scatter;
    W_LOCAL_ROOM INDEX chunk[CHUNK];
    W_RETURN_IF_FAULTED(ITEMS, of.sink)
    const w_i64 outer = of.outer, count = of.count, rows = of.rows, inner = of.inner, tile = of.tile, width = of.width;
    const int start = of.start;
    index += given.index_at, source += given.source_at, base += given.base_at, out += given.out_at;
    const w_i64 workers = ITEMS / width, worker = w_item(0) / width,
                c0 = w_group(0) * width + w_item(0) % width, mine = worker < workers && c0 < inner;
    const w_i64 slot = ((w_group(2) * (w_i64)w_groups(1) + w_group(1)) * w_groups(0) + w_group(0)) * workers;
    room += given.room_at + (slot + worker) * tile * width + c0 % width;
    for (w_i64 o = w_group(2); o < outer; o += w_groups(2))
        for (w_i64 r = w_group(1) * workers * tile; r < rows; r += w_groups(1) * workers * tile) {
            const w_i64 r0 = r + worker * tile, r1 = mine ? min(r0 + tile, rows) : r0;
            const w_i64 at = (o * rows + r0) * inner + c0;
#if FORMAT != FORMAT_SAME
            const w_i64 ld = width;
            W_GLOBAL S *sums = room;
#else
            const w_i64 ld = inner;
            W_GLOBAL S *sums = out + at;
#endif
            for (w_i64 i = r0; i < r1 && start != START_OUT; i++)
                sums[(i - r0) * ld] = start != START_ZERO ? LOAD(base, at + (i - r0) * inner) : (S)0;
            for (w_i64 i0 = 0; i0 < count; i0 += CHUNK) {
                const int n = (int)min(count - i0, (w_i64)CHUNK);
                w_barrier();
                for (int k = w_item(0); k < n; k += ITEMS) chunk[k] = index[i0 + k];
                w_barrier();
                for (int k = 0; k < n; k++) {
                    const w_i64 row = chunk[k];
                    if (row >= r0 && row < r1)
                        sums[(row - r0) * ld] += LOAD(source, (o * count + i0 + k) * inner + c0);
                    else if (row < 0 || row >= rows) /* every worker finds the same bad index first */
                        w_fault(faults, given.command, W_FAULT_SCATTER, row, rows, i0 + k);
                }
            }
#if FORMAT != FORMAT_SAME
            for (w_i64 i = r0; i < r1; i++) STORE(out, at + (i - r0) * inner, sums[(i - r0) * ld]);
#endif
        }
}

/* For rows of one element whose indices are all different: any worker may add any of them. If some rows get nothing,
 * scatter_begin sets all rows first. */
W_NUMBERS(scatter_begin) {
    w_i64 base_at, out_at;
    w_scatter scatter;
    int command;
};
W_KERNEL W_ITEMS(ITEMS, 1, 1) void scatter_begin(const W_GLOBAL T *base, W_GLOBAL T *out, W_GLOBAL w_faults *faults,
                                                 const W_NUMBERS(scatter_begin) given) {
    const w_scatter of = given.scatter;
    W_RETURN_IF_FAULTED(ITEMS, of.sink)
    FOR_MINE(i, of.outer * of.rows) out[given.out_at + i] = of.start != START_ZERO ? base[given.base_at + i] : (T)0;
}

W_NUMBERS(scatter_each) {
    w_i64 index_at, source_at, base_at, out_at;
    w_scatter scatter;
    int command;
};
W_KERNEL W_ITEMS(ITEMS, 1, 1) void scatter_each(const W_GLOBAL INDEX *index, const W_GLOBAL T *source,
                                                const W_GLOBAL T *base, W_GLOBAL T *out, W_GLOBAL w_faults *faults,
                                                const W_NUMBERS(scatter_each) given) {
    const w_scatter of = given.scatter;
    W_RETURN_IF_FAULTED(ITEMS, of.sink)
    for (w_i64 o = w_group(2); o < of.outer; o += w_groups(2))
        FOR_MINE(i, of.count) {
            const w_i64 row = index[given.index_at + i], to = o * of.rows + row;
            if (row >= 0 && row < of.rows)
                STORE(out, given.out_at + to,
                      (of.start != START_ZERO ? LOAD(base, given.base_at + to) : (S)0) +
                          LOAD(source, given.source_at + o * of.count + i));
            else
                w_fault(faults, given.command, W_FAULT_SCATTER, row, of.rows, i);
        }
}
