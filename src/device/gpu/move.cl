/* Copies and zeros of `count` elements. Each group moves a stretch of its own, its work-items side by side; a sink
 * leaves its variable as it is after a fault. */
W_FN long w_first(long count, int group) {
    return count / w_groups(0) * group + min((long)group, count % w_groups(0));
}

#define MOVES(T)                                                                                              \
    W_KERNEL void copy_##T(W_GLOBAL const T *from, long from_at, W_GLOBAL T *to, long to_at, long count,      \
                           int items, int sink, W_GLOBAL w_faults *faults, int command) {                     \
        const long end = w_first(count, w_group(0) + 1);                                                      \
        if (sink && w_faulted(faults)) return;                                                                \
        for (long i = w_first(count, w_group(0)) + w_item(0); i < end; i += items)                            \
            to[to_at + i] = from[from_at + i];                                                                \
    }                                                                                                         \
    W_KERNEL void zero_##T(W_GLOBAL T *to, long to_at, long count, int items, int sink,                       \
                           W_GLOBAL w_faults *faults, int command) {                                          \
        const long end = w_first(count, w_group(0) + 1);                                                      \
        if (sink && w_faulted(faults)) return;                                                                \
        for (long i = w_first(count, w_group(0)) + w_item(0); i < end; i += items) to[to_at + i] = 0;         \
    }
MOVES(w_u64)
MOVES(w_u8)
