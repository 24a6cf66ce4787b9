/* The types and helpers that the functions of kernel/prelude_*.h are written with, for numbers. If lanes are
 * elements of vectors, this file stands there a second time, for vectors of 16 (W_VECTORS). A comparison that holds
 * gives -1 for vectors and 1 for numbers. */
#undef W_V
#undef W_CUT
#undef W_F32
#undef W_F64
#undef W_I32
#undef W_U32
#undef W_MASK
#undef w_sin_f32
#undef w_cos_f32
#ifdef W_VECTORS
#define W_V(T)    T##16
#define W_CUT(T)  T##16_rtz
#define W_MASK(c) (c)
#else
#define W_V(T)    T
#define W_CUT(T)  T##_rtz
#define W_MASK(c) (-(c))
#endif
#define W_F32 W_V(float)
#define W_F64 W_V(double)
#define W_I32 W_V(int)
#define W_U32 W_V(uint)
#define w_uns(i)          w_bits_u32(i)
#define w_sig(u)          w_bits_i32(u)
#define w_root(x)         sqrt(x)
#define w_remainder(x, y) fmod(x, y)

W_FN W_I32 w_bool(W_I32 c) { return c & 1; }
W_FN W_I32 w_bits(W_F32 x) { return W_V(as_int)(x); }
W_FN W_F32 w_float(W_I32 i) { return W_V(as_float)(i); }
W_FN W_U32 w_bits_u32(W_I32 i) { return W_V(as_uint)(i); }
W_FN W_I32 w_bits_i32(W_U32 u) { return W_V(as_int)(u); }
W_FN W_F32 w_to_f32(W_I32 i) { return W_V(convert_float)(i); }
W_FN W_I32 w_to_i32(W_F32 x) { return W_V(convert_int)(x); }

/* Returns a * b + c: with one rounding if the device has an instruction for it, else with two. */
W_FN W_F32 w_fma_f32(W_F32 a, W_F32 b, W_F32 c) {
#if defined(FP_FAST_FMAF) || defined(W_OVERLOADS)
    return fma(a, b, c);
#else
    return a * b + c;
#endif
}

/* Returns x where c is true, else y. */
#ifdef W_VECTORS
W_FN int16 w_bool(long16 c) { return convert_int16(c) & 1; }
W_FN float16 w_sel_f32(int16 c, float16 x, float16 y) { return select(y, x, -c); }
W_FN int16 w_sel_i32(int16 c, int16 x, int16 y) { return select(y, x, -c); }
W_FN uint16 w_sel_u32(int16 c, uint16 x, uint16 y) { return select(y, x, -c); }
W_FN long16 w_sel_i64(int16 c, long16 x, long16 y) { return select(y, x, convert_long16(-c)); }
W_FN ulong16 w_sel_u64(int16 c, ulong16 x, ulong16 y) { return select(y, x, convert_long16(-c)); }
#else
W_FN float w_sel_f32(int c, float x, float y) { return c ? x : y; }
W_FN int w_sel_i32(int c, int x, int y) { return c ? x : y; }
W_FN uint w_sel_u32(int c, uint x, uint y) { return c ? x : y; }
W_FN long w_sel_i64(int c, long x, long y) { return c ? x : y; }
W_FN ulong w_sel_u64(int c, ulong x, ulong y) { return c ? x : y; }
#endif
