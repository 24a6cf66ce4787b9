/* Second launch of the gradient of a weight (conv_direct.cl): adds the sums over the parts of the windows, in order.
 * Comes after storage.cl. */
#include "device/gpu/heavy/conv/conv_direct_params.h"

W_NUMBERS(conv_sum) {
    w_i64 parts_at, c_at;
    w_direct_sum sum;
    int command;
};
W_KERNEL W_ITEMS(ITEMS, 1, 1) void conv_sum(const W_GLOBAL S *from, W_GLOBAL T *c, W_GLOBAL w_faults *faults,
                                            const W_NUMBERS(conv_sum) given) {
    W_RETURN_IF_FAULTED(ITEMS, SINK)
    const w_direct_sum of = given.sum;
    from += given.parts_at;
    for (int e = w_group(0) * ITEMS + w_item(0); e < of.count; e += w_groups(0) * ITEMS) {
        S total = from[e];
        for (int p = 1; p < of.parts; p++) total += from[(w_i64)p * of.count + e];
        STORE(c, given.c_at + e, total);
    }
}
