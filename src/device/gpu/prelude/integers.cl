/* Integers: functions by the macros of kernel/prelude_int.h, and for the dtypes that are computed in 32 bits. */
W_SIGNED(int, uint, i32, as_uint, as_int, 31)
W_SIGNED(long, ulong, i64, as_ulong, as_long, 63)
W_UNSIGNED(uint, u32, as_uint, 31)
W_UNSIGNED(ulong, u64, as_ulong, 63)
/* Return the low bits of an i32, as a number of the dtype. */
W_FN W_I32 w_wrap_i8(W_I32 a) { return w_sig(w_uns(a) << 24) >> 24; }
W_FN W_I32 w_wrap_i16(W_I32 a) { return w_sig(w_uns(a) << 16) >> 16; }
W_FN W_I32 w_wrap_u8(W_I32 a) { return a & 0xff; }
W_FN W_I32 w_wrap_u16(W_I32 a) { return a & 0xffff; }
