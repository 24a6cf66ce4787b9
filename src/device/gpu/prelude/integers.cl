/* Integers: functions by the macros of kernel/prelude_int.h, and for the dtypes that are computed in 32 bits. */
W_SIGNED(W_V(int), W_V(uint), i32, W_V(as_uint), W_V(as_int), 31)
W_SIGNED(W_V(long), W_V(ulong), i64, W_V(as_ulong), W_V(as_long), 63)
W_UNSIGNED(W_V(uint), u32, W_V(as_uint), 31)
W_UNSIGNED(W_V(ulong), u64, W_V(as_ulong), 63)
/* Return the low bits of an i32, as a number of the dtype. */
W_FN W_I32 w_wrap_i8(W_I32 a) { return w_sig(w_uns(a) << 24) >> 24; }
W_FN W_I32 w_wrap_i16(W_I32 a) { return w_sig(w_uns(a) << 16) >> 16; }
W_FN W_I32 w_wrap_u8(W_I32 a) { return a & 0xff; }
W_FN W_I32 w_wrap_u16(W_I32 a) { return a & 0xffff; }
