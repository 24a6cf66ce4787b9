/* How the same kernel opens as a link of a chain, which calls it (fused_launch.c) and lends it local memory. PoCL 3.1
 * crashes where it has to inline the second call of a long function by itself. */
#undef W_KERNEL
#undef W_ITEMS
#undef W_ALSO
#undef W_MEMORY
#define W_KERNEL         W_FN __attribute__((always_inline))
#define W_ITEMS(x, y, z)
#define W_ALSO(name)     , W_LOCAL W_SHARED(name) *shared
#define W_MEMORY(name)
