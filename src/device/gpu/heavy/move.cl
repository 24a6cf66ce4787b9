/* Copies `count` elements, or sets blocks of elements to 0. Each work-group has a contiguous part, and adjacent
 * work-items have adjacent elements. With `sink`, nothing is written after a fault. */
#include "device/gpu/heavy/move_params.h"

W_FN w_i64 first_of(w_i64 count, int group) {
    return count / w_groups(0) * group + min((w_i64)group, count % w_groups(0));
}

W_NUMBERS(copy) {
    w_i64 from_at, to_at;
    w_copy copy;
    int command;
};
W_KERNEL W_ITEMS(ITEMS, 1, 1) void copy(const W_GLOBAL T *from, W_GLOBAL T *to, W_GLOBAL w_faults *faults,
                                        const W_NUMBERS(copy) given) {
    const w_copy of = given.copy;
    const w_i64 end = first_of(of.count, w_group(0) + 1);
    W_RETURN_IF_FAULTED(ITEMS, of.sink)
    for (w_i64 i = first_of(of.count, w_group(0)) + w_item(0); i < end; i += ITEMS)
        to[given.to_at + i] = from[given.from_at + i];
}

W_NUMBERS(zero) {
    w_i64 to_at;
    w_stretches stretches;
    int command;
};
W_KERNEL W_ITEMS(ITEMS, 1, 1) void zero(W_GLOBAL T *to, W_GLOBAL w_faults *faults, const W_NUMBERS(zero) given) {
    W_RETURN_IF_FAULTED(ITEMS, given.stretches.sink)
    W_CARD_UNROLL for (int s = 0; s < STRETCHES; s++) {
        if (s >= given.stretches.n) break;
        const w_i64 count = given.stretches.count[s], end = first_of(count, w_group(0) + 1);
        W_GLOBAL T *from = to + given.to_at + given.stretches.at[s];
#pragma unroll 1 /* most blocks have fewer elements than there are work-items */
        for (w_i64 i = first_of(count, w_group(0)) + w_item(0); i < end; i += ITEMS) from[i] = 0;
    }
}
