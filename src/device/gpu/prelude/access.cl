/* Loads and stores of single elements: w_get_f32(p, i), w_put_f32(p, i, v), and the same for each dtype. As values,
 * 16-bit floats are f32, integers of 8 and 16 bits are i32, and bools are 0 or 1. */
#define W_BF16(u)         as_float((uint)(u) << 16)
#define W_ROUND_BF16(b)   (((b) + 0x7fffu + ((b) >> 16 & 1u)) >> 16)
W_FN ushort w_to_bf16(float x) {
#ifdef W_CVT_TWO_BF16
    return (ushort)W_CVT_TWO_BF16(x, 0.0f);
#else
    uint b = as_uint(x);
    return (ushort)((b & 0x7fffffffu) > 0x7f800000u ? (b >> 16 | 0x40u) : W_ROUND_BF16(b));
#endif
}

#define W_ALONE(id, S, V, get, put)                                \
    W_FN V w_get_##id(const W_GLOBAL S *p, w_i64 i) { return get; } \
    W_FN void w_put_##id(W_GLOBAL S *p, w_i64 i, V v) { put; }
#define W_ONE(id, S, V, get, put) W_ALONE(id, S, V, get, put) W_MINE(id, S, V, get, put)
/* W_READ and W_WRITE, for work-items: n elements from p on. If p is aligned for it, this is one access of type
 * W, otherwise n accesses. S: a type of the size of an element that can be copied (half cannot). The words with
 * _ALIGNED are for a p that is known to be aligned: the test of each access takes as long as reading 8 bytes. */
#ifdef W_ELEMENTWISE
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
    }                                                                                                \
    W_FN void w_pack_two_##id(void *bits, long i, V v, V next) {                                     \
        w_pack_##id(bits, i, v);                                                                     \
        w_pack_##id(bits, i + 1, next);                                                              \
    }
/* n elements as they lie in memory. W_HOLD reads them from p on, by words of type W. W_UNPACK makes them values. */
#define W_HELD(S, W, n) union { W all[sizeof(S) * (n) / sizeof(W)]; S each[n]; }
#define W_IS_ALIGNED(W, p) W_USUALLY(((ulong)(p) & (sizeof(W) - 1)) == 0)
#define W_HOLD_IF(aligned, S, W, n, p, bits)                                                         \
    {                                                                                                \
        const W_GLOBAL S *from_ = (const W_GLOBAL S *)(p);                                           \
        if (aligned)                                                                                 \
            W_CARD_UNROLL for (int i_ = 0; i_ < (int)(sizeof(S) * (n) / sizeof(W)); i_++)            \
                (bits).all[i_] = ((const W_GLOBAL W *)from_)[i_];                                    \
        else                                                                                         \
            W_CARD_UNROLL for (int i_ = 0; i_ < (n); i_++) (bits).each[i_] = from_[i_];              \
    }
#define W_HOLD(S, W, n, p, bits)         W_HOLD_IF(W_IS_ALIGNED(W, from_), S, W, n, p, bits)
#define W_HOLD_ALIGNED(S, W, n, p, bits) W_HOLD_IF(1, S, W, n, p, bits)
#define W_UNPACK(id, n, bits, values) \
    W_UNROLL for (int i_ = 0; i_ < (n); i_++) (values)[i_] = w_unpack_##id((bits).each, i_);
#define W_READ_BY(hold, id, S, W, n, p, values)                                                      \
    {                                                                                                \
        W_HELD(S, W, n) bits_;                                                                       \
        hold(S, W, n, p, bits_)                                                                      \
        W_UNPACK(id, n, bits_, values)                                                               \
    }
#define W_READ(id, S, W, n, p, values)         W_READ_BY(W_HOLD, id, S, W, n, p, values)
#define W_READ_ALIGNED(id, S, W, n, p, values) W_READ_BY(W_HOLD_ALIGNED, id, S, W, n, p, values)
#define W_WRITE_IF(aligned, id, S, W, n, p, values)                                                  \
    {                                                                                                \
        W_HELD(S, W, n) bits_;                                                                       \
        W_GLOBAL S *to_ = (W_GLOBAL S *)(p);                                                         \
        W_UNROLL for (int i_ = 0; i_ < (n); i_ += 2)                                                 \
            w_pack_two_##id(bits_.each, i_, (values)[i_], (values)[i_ + 1]);                         \
        if (aligned)                                                                                 \
            W_CARD_UNROLL for (int i_ = 0; i_ < (int)(sizeof(S) * (n) / sizeof(W)); i_++)            \
                ((W_GLOBAL W *)to_)[i_] = bits_.all[i_];                                             \
        else                                                                                         \
            W_CARD_UNROLL for (int i_ = 0; i_ < (n); i_++) to_[i_] = bits_.each[i_];                 \
    }
#define W_WRITE(id, S, W, n, p, values)         W_WRITE_IF(W_IS_ALIGNED(W, to_), id, S, W, n, p, values)
#define W_WRITE_ALIGNED(id, S, W, n, p, values) W_WRITE_IF(1, id, S, W, n, p, values)
#endif
W_ONE(f32, float, float, p[i], p[i] = v)
W_ONE(f16, half, float, vload_half(i, p), vstore_half_rte(v, i, p))
#ifdef W_CVT_TWO_BF16 /* one instruction for both elements of a word, and one for each of them back */
W_ALONE(bf16, ushort, float, W_BF16(p[i]), p[i] = w_to_bf16(v))
W_FN float w_unpack_bf16(const void *bits, long i) {
    const uint both = ((const uint *)bits)[i / 2];
    return as_float(i % 2 ? both & 0xffff0000u : both << 16);
}
W_FN void w_pack_two_bf16(void *bits, long i, float v, float next) { ((uint *)bits)[i / 2] = W_CVT_TWO_BF16(v, next); }
#else
W_ONE(bf16, ushort, float, W_BF16(p[i]), p[i] = w_to_bf16(v))
#endif
W_ONE(i8, w_i8, int, p[i], p[i] = (w_i8)v)
W_ONE(i16, short, int, p[i], p[i] = (short)v)
W_ONE(i32, int, int, p[i], p[i] = v)
W_ONE(i64, long, long, p[i], p[i] = v)
W_ONE(u8, uchar, int, p[i], p[i] = (uchar)v)
W_ONE(u16, ushort, int, p[i], p[i] = (ushort)v)
W_ONE(u32, uint, uint, p[i], p[i] = v)
W_ONE(u64, ulong, ulong, p[i], p[i] = v)
W_ONE(bool, uchar, int, p[i] != 0, p[i] = (uchar)v)
