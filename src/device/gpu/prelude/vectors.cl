/* From here on the macros of lanes.cl mean vectors of 16. */
#define W_VECTORS
#define W_LANES ((int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15))

/* 1 in the lanes with a number below n. */
#define w_live(n)         ((W_LANES < (int16)(n)) & 1)
#define w_any(c)          any(-(c))
/* Returns the first lane in which c is true, or 16. */
W_FN int w_first(int16 c) {
    int at = 0;
    int lane[16];
    vstore16(c, 0, lane);
    while (at < 16 && !lane[at]) at++;
    return at;
}
W_FN int w_lane(int16 v, int j) {
    int lane[16];
    vstore16(v, 0, lane);
    return lane[j & 15];
}
W_FN long w_lane(long16 v, int j) {
    long lane[16];
    vstore16(v, 0, lane);
    return lane[j & 15];
}

/* Prefetches the cache line of the vector that begins `ahead` elements after p, or its two lines, to be read or
 * written. Compilers of CPUs have a builtin for it; most of them ignore the prefetch of OpenCL. */
#if defined(__has_builtin)
#if __has_builtin(__builtin_prefetch)
#define w_ask(p, ahead, write)                                                                       \
    do {                                                                                             \
        __builtin_prefetch((const void *)(ulong)((p) + (ahead)), write, 2);                          \
        if (sizeof *(p) > 4) __builtin_prefetch((const void *)(ulong)((p) + (ahead) + 8), write, 2); \
    } while (0)
#endif
#endif
#ifndef w_ask
#define w_ask(p, ahead, write)
#endif
#define w_fetch(p, ahead)          w_ask(p, ahead, 0)
#define w_fetch_to_write(p, ahead) w_ask(p, ahead, 1)
/* Prefetches four vectors at once, if p is in the first of four. For kernels that take turns between many rows. */
#define w_ask_four(p, ahead, write)                                                                  \
    do {                                                                                             \
        if (((ulong)(p) & (64 * sizeof *(p) - 1)) < 16 * sizeof *(p)) {                              \
            w_ask(p, ahead, write);                                                                  \
            w_ask(p, (ahead) + 16, write);                                                           \
            w_ask(p, (ahead) + 32, write);                                                           \
            w_ask(p, (ahead) + 48, write);                                                           \
        }                                                                                            \
    } while (0)
#define w_fetch_four(p, ahead)          w_ask_four(p, ahead, 0)
#define w_fetch_four_to_write(p, ahead) w_ask_four(p, ahead, 1)
