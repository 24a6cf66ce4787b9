/* Copies and zeros of `count` elements. Each group moves a stretch of its own, its work-items side by side; a sink
 * leaves its variable as it is after a fault. */
W_FN long first_of(long count, int group) {
    return count / w_groups(0) * group + min((long)group, count % w_groups(0));
}

W_KERNEL void copy(W_GLOBAL const T *from, long from_at, W_GLOBAL T *to, long to_at, long count, int sink,
                   W_GLOBAL w_faults *faults, int command) {
    const long end = first_of(count, w_group(0) + 1);
    if (sink && w_faulted(faults)) return;
    for (long i = first_of(count, w_group(0)) + w_item(0); i < end; i += ITEMS) to[to_at + i] = from[from_at + i];
}

W_KERNEL void zero(W_GLOBAL T *to, long to_at, long count, int sink, W_GLOBAL w_faults *faults, int command) {
    const long end = first_of(count, w_group(0) + 1);
    if (sink && w_faulted(faults)) return;
    for (long i = first_of(count, w_group(0)) + w_item(0); i < end; i += ITEMS) to[to_at + i] = 0;
}
