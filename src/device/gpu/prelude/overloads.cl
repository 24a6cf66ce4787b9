/* Where lanes are elements of vectors (CPUs, whose compilers are clang), the same name serves both numbers and
 * vectors of them. */
#undef W_FN
#define W_FN static inline __attribute__((overloadable))
#define W_OVERLOADS
