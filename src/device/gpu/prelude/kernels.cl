/* How a kernel begins that is launched alone:
 *     W_SHARED(name) { float x[256]; };
 *     W_KERNEL W_ITEMS(256, 1, 1) void name(int n W_ALSO(name)) {
 *         W_MEMORY(name)
 *         shared->x[w_item(0)] = n; ..
 * Kernels without local memory have neither W_SHARED nor W_ALSO nor W_MEMORY. For fused launches entries.cl replaces
 * these definitions. */
#undef W_KERNEL
#undef W_ITEMS
#undef W_ITEMS_BESIDE
#undef W_ALSO
#undef W_MEMORY
#define W_KERNEL         W_ENTRY
#define W_ITEMS(x, y, z) W_ENTRY_ITEMS(x, y, z)
/* The same for x items. The compiler takes so few registers that a multiprocessor holds so many groups. CUDA only. */
#define W_ITEMS_BESIDE(x, groups) W_ENTRY_ITEMS_BESIDE(x, groups)
#define W_ALSO(name)
#define W_MEMORY(name)                                                                                       \
    W_LOCAL_ROOM W_SHARED(name) shared_;                                                                         \
    W_LOCAL W_SHARED(name) *const shared = &shared_;

/* If `sink` holds and a fault is recorded, the whole work-group returns. One answer serves all its items: another
 * work-group may record a fault meanwhile, and each item must reach the same barriers. */
#undef W_RETURN_IF_FAULTED
#ifdef W_ANY_ITEM
#define W_RETURN_IF_FAULTED(items, sink)                                                                     \
    if ((sink) && W_ANY_ITEM(w_faulted(faults))) return;
#else
#define W_RETURN_IF_FAULTED(items, sink)                                                                     \
    W_LOCAL_ROOM int stop_;                                                                                  \
    if (w_item(0) == 0) stop_ = (sink) && w_faulted(faults);                                                 \
    if ((items) > 1) w_barrier();                                                                            \
    if (stop_) return;
#endif
