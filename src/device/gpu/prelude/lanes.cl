/* The types and helpers that the functions of kernel/prelude_*.h are written with. */
#define W_F32             float
#define W_F64             double
#define W_I32             int
#define W_U32             uint
#define W_MASK(c)         (-(c))
#define w_uns(i)          w_bits_u32(i)
#define w_sig(u)          w_bits_i32(u)
#define w_root(x)         sqrt(x)
#define w_remainder(x, y) fmod(x, y)

W_FN W_I32 w_bool(W_I32 c) { return c & 1; }
W_FN W_I32 w_bits(W_F32 x) { return as_int(x); }
W_FN W_F32 w_float(W_I32 i) { return as_float(i); }
W_FN W_U32 w_bits_u32(W_I32 i) { return as_uint(i); }
W_FN W_I32 w_bits_i32(W_U32 u) { return as_int(u); }
W_FN W_F32 w_to_f32(W_I32 i) { return convert_float(i); }
W_FN W_I32 w_to_i32(W_F32 x) { return convert_int(x); }

/* Returns a * b + c: with one rounding if the device has an instruction for it, else with two. */
W_FN W_F32 w_fma_f32(W_F32 a, W_F32 b, W_F32 c) {
#ifdef FP_FAST_FMAF
    return fma(a, b, c);
#else
    return a * b + c;
#endif
}

/* Returns x where c is true, else y. */
W_FN float w_sel_f32(int c, float x, float y) { return c ? x : y; }
W_FN int w_sel_i32(int c, int x, int y) { return c ? x : y; }
W_FN uint w_sel_u32(int c, uint x, uint y) { return c ? x : y; }
W_FN long w_sel_i64(int c, long x, long y) { return c ? x : y; }
W_FN ulong w_sel_u64(int c, ulong x, ulong y) { return c ? x : y; }
