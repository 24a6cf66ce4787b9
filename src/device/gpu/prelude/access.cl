/* Loads and stores of single elements: w_get_f32(p, i), w_put_f32(p, i, v), and the same for each dtype. As values,
 * 16-bit floats are f32, integers of 8 and 16 bits are i32, and bools are 0 or 1. */
#define W_BF16(u)         as_float((uint)(u) << 16)
#define W_ROUND_BF16(b)   (((b) + 0x7fffu + ((b) >> 16 & 1u)) >> 16)
W_FN ushort w_to_bf16(float x) {
    uint b = as_uint(x);
    return (ushort)((b & 0x7fffffffu) > 0x7f800000u ? (b >> 16 | 0x40u) : W_ROUND_BF16(b));
}

#define W_ONE(id, S, V, get, put)                                  \
    W_FN V w_get_##id(const W_GLOBAL S *p, long i) { return get; } \
    W_FN void w_put_##id(W_GLOBAL S *p, long i, V v) { put; }      \
    W_MINE(id, S, V, get, put)
/* W_READ and W_WRITE, for work-items: n elements from p on. If p is aligned for it, this is one access of type
 * W, otherwise n accesses. S: a type of the size of an element that can be copied (half cannot). */
#ifdef W_OVERLOADS
#define W_MINE(id, S, V, get, put)
#else
#define W_MINE(id, S, V, get, put)                                                                   \
    W_FN V w_unpack_##id(const void *bits, long i) {                                                 \
        const S *p = (const S *)bits;                                                                \
        return get;                                                                                  \
    }                                                                                                \
    W_FN void w_pack_##id(void *bits, long i, V v) {                                                 \
        S *p = (S *)bits;                                                                            \
        put;                                                                                         \
    }
#define W_READ(id, S, W, n, p, values)                                                               \
    {                                                                                                \
        union { W all; S each[n]; } bits_;                                                           \
        const W_GLOBAL S *from_ = (const W_GLOBAL S *)(p);                                           \
        if (((ulong)from_ & (sizeof(W) - 1)) == 0)                                                   \
            bits_.all = *(const W_GLOBAL W *)from_;                                                  \
        else                                                                                         \
            for (int i_ = 0; i_ < (n); i_++) bits_.each[i_] = from_[i_];                             \
        W_UNROLL for (int i_ = 0; i_ < (n); i_++) (values)[i_] = w_unpack_##id(bits_.each, i_);      \
    }
#define W_WRITE(id, S, W, n, p, values)                                                              \
    {                                                                                                \
        union { W all; S each[n]; } bits_;                                                           \
        W_GLOBAL S *to_ = (W_GLOBAL S *)(p);                                                         \
        W_UNROLL for (int i_ = 0; i_ < (n); i_++) w_pack_##id(bits_.each, i_, (values)[i_]);         \
        if (((ulong)to_ & (sizeof(W) - 1)) == 0)                                                     \
            *(W_GLOBAL W *)to_ = bits_.all;                                                          \
        else                                                                                         \
            for (int i_ = 0; i_ < (n); i_++) to_[i_] = bits_.each[i_];                               \
    }
#endif
W_ONE(f32, float, float, p[i], p[i] = v)
W_ONE(f16, half, float, vload_half(i, p), vstore_half_rte(v, i, p))
W_ONE(bf16, ushort, float, W_BF16(p[i]), p[i] = w_to_bf16(v))
W_ONE(i8, w_i8, int, p[i], p[i] = (w_i8)v)
W_ONE(i16, short, int, p[i], p[i] = (short)v)
W_ONE(i32, int, int, p[i], p[i] = v)
W_ONE(i64, long, long, p[i], p[i] = v)
W_ONE(u8, uchar, int, p[i], p[i] = (uchar)v)
W_ONE(u16, ushort, int, p[i], p[i] = (ushort)v)
W_ONE(u32, uint, uint, p[i], p[i] = v)
W_ONE(u64, ulong, ulong, p[i], p[i] = v)
W_ONE(bool, uchar, int, p[i] != 0, p[i] = (uchar)v)
