/* Rounding to 16-bit floats; the results are f32 values. w_odd converts longer numbers to f32 and rounds to odd: it
 * sets the last bit if something was cut off. A second rounding, to 16 bits, then gives the same result as a single
 * one (Boldo and Melquiond, 2008). */
#ifdef W_VECTORS
W_FN float16 w_round_f16(float16 x) {
    ushort t[16];
    vstore_half16_rte(x, 0, (half *)t);
    return vload_half16(0, (const half *)t);
}
W_FN float16 w_round_bf16(float16 x) { return as_float16(convert_uint16(w_to_bf16(x)) << 16); }
#else
#ifdef W_ELEMENTWISE
W_FN float w_round_f16(float x) { return w_round_to_f16(x); }
#else
W_FN float w_round_f16(float x) {
    ushort t[1];
    vstore_half_rte(x, 0, (half *)t);
    return vload_half(0, (const half *)t);
}
#endif
W_FN float w_round_bf16(float x) {
#ifdef W_CVT_TWO_BF16
    return as_float(W_CVT_TWO_BF16(0.0f, x));
#else
    return W_BF16(w_to_bf16(x));
#endif
}
#endif
#undef W_ODD
#define W_ODD(id, T, back)                                         \
    W_FN W_F32 w_odd_##id(T from) {                                \
        W_F32 x = W_CUT(convert_float)(from);                    \
        return w_float(w_bits(x) | w_bool(back(x) != from));       \
    }
W_ODD(i32, W_V(int), W_V(convert_int))
W_ODD(i64, W_V(long), W_V(convert_long))
W_ODD(u32, W_V(uint), W_V(convert_uint))
W_ODD(u64, W_V(ulong), W_V(convert_ulong))
