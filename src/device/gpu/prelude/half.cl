/* Rounding to 16-bit floats; the results are f32 values. w_odd converts longer numbers to f32 and rounds to odd: it
 * sets the last bit if something was cut off. A second rounding, to 16 bits, then gives the same result as a single
 * one (Boldo and Melquiond, 2008). */
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
#define W_ODD(id, T, back)                                         \
    W_FN W_F32 w_odd_##id(T from) {                                \
        W_F32 x = convert_float_rtz(from);                    \
        return w_float(w_bits(x) | w_bool(back(x) != from));       \
    }
W_ODD(i32, int, convert_int)
W_ODD(i64, long, convert_long)
W_ODD(u32, uint, convert_uint)
W_ODD(u64, ulong, convert_ulong)
