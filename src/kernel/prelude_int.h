/* The integer functions of the op table. They wrap and never trap. W_SIGNED and W_UNSIGNED define them for a
 * type T and the unsigned type U of the same size (prelude.h, integers.cl). as_u and as_t convert
 * bits between T and U; `mask` is the width minus 1; W_MASK: see prelude_f32.h. x / 0 is 0 (the caller raises
 * the fault). The smallest number / -1 wraps. There is no include guard. */

#undef W_SIGNED
#undef W_UNSIGNED
#undef W_INTEGERS_

#define W_INTEGERS_(T, U, id, as_u, as_t, mask)                                                              \
    W_FN T w_max_##id(T a, T b) { return a > b ? a : b; }                                                    \
    W_FN T w_min_##id(T a, T b) { return a < b ? a : b; }                                                    \
    W_FN T w_not_##id(T a) { return ~a; }                                                                    \
    W_FN T w_shl_##id(T a, T b) { return as_t(as_u(a) << as_u(b & mask)); }                                  \
    W_FN T w_shr_##id(T a, T b) { return a >> (b & mask); }

#define W_SIGNED(T, U, id, as_u, as_t, mask)                                                                 \
    W_INTEGERS_(T, U, id, as_u, as_t, mask)                                                                  \
    W_FN T w_abs_##id(T a) { return a < 0 ? as_t((U)0 - as_u(a)) : a; }                                      \
    W_FN T w_sign_##id(T a) { return W_MASK(a < 0) - W_MASK(a > 0); }                                        \
    W_FN T w_div_##id(T a, T b) {                                                                            \
        T safe = ((b == 0) | (b == -1)) ? (T)1 : b;                                                          \
        T q = a / safe;                                                                                      \
        return b == 0 ? (T)0 : (b == -1 ? as_t((U)0 - as_u(a)) : q);                                         \
    }                                                                                                        \
    W_FN T w_mod_##id(T a, T b) {                                                                            \
        T safe = ((b == 0) | (b == -1)) ? (T)1 : b;                                                          \
        T r = a % safe;                                                                                      \
        return ((r != 0) & ((r < 0) != (b < 0))) ? r + b : r;                                                \
    }

#define W_UNSIGNED(T, id, as_u, mask)                                                                        \
    W_INTEGERS_(T, T, id, as_u, as_u, mask)                                                                  \
    W_FN T w_abs_##id(T a) { return a; }                                                                     \
    W_FN T w_sign_##id(T a) { return a == 0 ? (T)0 : (T)1; }                                                 \
    W_FN T w_div_##id(T a, T b) {                                                                            \
        T q = a / (b == 0 ? (T)1 : b);                                                                       \
        return b == 0 ? (T)0 : q;                                                                            \
    }                                                                                                        \
    W_FN T w_mod_##id(T a, T b) { return a % (b == 0 ? (T)1 : b); }
