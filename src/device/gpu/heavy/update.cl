/* Assignment into a slice: out is a copy of input (outer, total, inner) in which rows offset to offset + extent - 1
 * come from `value`. The offset is in memory of the device. In place, only the rows of value are written. A work-group
 * writes `block` rows. T: the unsigned integer of an element's size. */
#include "device/gpu/heavy/update_params.h"

W_FN void copy(const W_GLOBAL T *from, W_GLOBAL T *to, w_i64 first, w_i64 step, w_i64 n) {
    for (; first < n; first += step) to[first] = from[first];
}

W_NUMBERS(update) {
    w_i64 input_at, value_at, offset_at, out_at;
    w_update update;
    int command;
};
W_KERNEL W_ITEMS(ITEMS, 1, 1) void update(const W_GLOBAL T *input, const W_GLOBAL T *value,
                                          const W_GLOBAL int *offset, W_GLOBAL T *out, W_GLOBAL w_faults *faults,
                                          const W_NUMBERS(update) given) {
    const w_update of = given.update;
    W_RETURN_IF_FAULTED(ITEMS, of.sink)
    const w_i64 outer = of.outer, total = of.total, extent = of.extent, inner = of.inner, block = of.block;
    const int in_place = of.in_place, width = of.width, at = offset[given.offset_at];
    const int fits = at >= 0 && at <= total - extent;
    if (!fits && w_group(0) == 0 && w_item(0) == 0)
        w_fault(faults, given.command, W_FAULT_UPDATE, at, total - extent + 1, 0);
    if (!fits && in_place) return; /* out is input, and stays as it is */
    const w_i64 each = in_place ? extent : total, workers = ITEMS / width;
    const w_i64 first = w_group(0) * block, last = min(first + block, outer * each);
    for (w_i64 i = first + w_item(0) / width; i < last && w_item(0) < workers * width; i += workers) {
        const w_i64 o = i / each, row = in_place ? at + i % each : i % each;
        const int inside = fits && row >= at && row < at + extent;
        W_GLOBAL T *to = out + given.out_at + (o * total + row) * inner;
        if (inside)
            copy(value + given.value_at + (o * extent + row - at) * inner, to, w_item(0) % width, width, inner);
        else
            copy(input + given.input_at + (o * total + row) * inner, to, w_item(0) % width, width, inner);
    }
}
