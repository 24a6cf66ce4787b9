/* How the same kernel begins as an entry of a fused launch, which calls it and lends it local memory
 * (backend/fused_launch.c).
 * It must be inlined by force: PoCL 3.1 crashes when it decides itself to inline the second call of a long function. */
#undef W_KERNEL
#undef W_ITEMS
#undef W_ITEMS_BESIDE
#undef W_ALSO
#undef W_MEMORY
#define W_KERNEL         W_FN __attribute__((always_inline))
#define W_ITEMS(x, y, z)
#define W_ITEMS_BESIDE(x, groups)
#define W_ALSO(name)     , W_LOCAL W_SHARED(name) *shared
#define W_MEMORY(name)
#ifndef W_ANY_ITEM /* OpenCL: there is no other work-group */
#undef W_RETURN_IF_FAULTED
#define W_RETURN_IF_FAULTED(items, sink)                                                                     \
    const int stop_ = (sink) && w_faulted(faults);                                                           \
    if ((items) > 1) w_barrier();                                                                            \
    if (stop_) return;
#endif
