/* If lanes are elements of vectors (CPUs, whose compilers are clang), functions for numbers and for vectors have the
 * same name. */
#undef W_FN
#define W_FN static inline __attribute__((overloadable))
#define W_OVERLOADS
