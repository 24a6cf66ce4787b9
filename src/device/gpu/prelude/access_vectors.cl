/* Loads and stores of 16 elements, as access.cl has for single ones. For each dtype:
 *
 *     w_load_f32(p, from, to)          p[0] to p[15]; lanes outside of from..to-1 are 0 and are not read
 *     w_load_step_f32(p, s, from, to)  p[0], p[s], ...
 *     w_load_at_f32(p, e, live)        p[e[0]], p[e[1]], ... in lanes where `live` is true
 *
 * and w_store_f32 and so on. */
W_FN ushort16 w_to_bf16(float16 x) {
    uint16 b = as_uint16(x);
    return convert_ushort16((b & 0x7fffffffu) > 0x7f800000u ? (b >> 16 | 0x40u) : W_ROUND_BF16(b));
}

/* Stores vectors at any element, in one access. PoCL 3.1 divides vstore16 into halves and quarters, and a later load of
 * the whole vector must wait for them. */
#define W_UNALIGNED(V16, bytes)                                      \
    typedef V16 w_any_##V16 __attribute__((aligned(bytes)));         \
    W_FN void w_write(W_GLOBAL void *p, V16 v) { *(W_GLOBAL w_any_##V16 *)p = v; }
W_UNALIGNED(float16, 4)
W_UNALIGNED(char16, 1)
W_UNALIGNED(uchar16, 1)
W_UNALIGNED(short16, 2)
W_UNALIGNED(ushort16, 2)
W_UNALIGNED(int16, 4)
W_UNALIGNED(uint16, 4)
W_UNALIGNED(long16, 8)
W_UNALIGNED(ulong16, 8)

/* Lane by lane if not all 16 lanes are wanted. */
#define W_SIXTEEN(id, S, V, V16, get, put)                                                              \
    W_ONCE V16 w_load_some_##id(const W_GLOBAL S *p, int from, int to) {                                \
        V t[16];                                                                                        \
        for (int j = 0; j < 16; j++) t[j] = j >= from && j < to ? w_get_##id(p, j) : (V)0;              \
        return vload16(0, t);                                                                           \
    }                                                                                                   \
    W_FN V16 w_load_##id(const W_GLOBAL S *p, int from, int to) {                                       \
        if (W_USUALLY(from <= 0 && to >= 16)) return get;                                               \
        return w_load_some_##id(p, from, to);                                                           \
    }                                                                                                   \
    W_FN V16 w_load_step_##id(const W_GLOBAL S *p, long s, int from, int to) {                          \
        V t[16];                                                                                        \
        if (from <= 0 && to >= 16)                                                                      \
            for (int j = 0; j < 16; j++) t[j] = w_get_##id(p, j * s);                                   \
        else                                                                                            \
            for (int j = 0; j < 16; j++) t[j] = j >= from && j < to ? w_get_##id(p, j * s) : (V)0;      \
        return vload16(0, t);                                                                           \
    }                                                                                                   \
    W_ONCE void w_store_some_##id(W_GLOBAL S *p, int from, int to, V16 v) {                             \
        V t[16];                                                                                        \
        vstore16(v, 0, t);                                                                              \
        for (int j = from > 0 ? from : 0; j < to && j < 16; j++) w_put_##id(p, j, t[j]);                \
    }                                                                                                   \
    W_FN void w_store_##id(W_GLOBAL S *p, int from, int to, V16 v) {                                    \
        if (W_USUALLY(from <= 0 && to >= 16)) {                                                         \
            put;                                                                                        \
            return;                                                                                     \
        }                                                                                               \
        w_store_some_##id(p, from, to, v);                                                              \
    }                                                                                                   \
    W_FN void w_store_step_##id(W_GLOBAL S *p, long s, int from, int to, V16 v) {                       \
        V t[16];                                                                                        \
        vstore16(v, 0, t);                                                                              \
        for (int j = from > 0 ? from : 0; j < to && j < 16; j++) w_put_##id(p, j * s, t[j]);            \
    }                                                                                                   \
    W_AT(id, S, V, V16, int, int16)                                                                     \
    W_AT(id, S, V, V16, long, long16)
#define W_AT(id, S, V, V16, E, E16)                                                                     \
    W_FN V16 w_load_at_##id(const W_GLOBAL S *p, E16 e, int16 live) {                                   \
        V t[16];                                                                                        \
        E at[16];                                                                                       \
        int in[16];                                                                                     \
        vstore16(e, 0, at);                                                                             \
        vstore16(live, 0, in);                                                                          \
        for (int j = 0; j < 16; j++) t[j] = in[j] ? w_get_##id(p, at[j]) : (V)0;                        \
        return vload16(0, t);                                                                           \
    }                                                                                                   \
    W_FN void w_store_at_##id(W_GLOBAL S *p, E16 e, int16 live, V16 v) {                                \
        V t[16];                                                                                        \
        E at[16];                                                                                       \
        int in[16];                                                                                     \
        vstore16(v, 0, t);                                                                              \
        vstore16(e, 0, at);                                                                             \
        vstore16(live, 0, in);                                                                          \
        for (int j = 0; j < 16; j++)                                                                    \
            if (in[j]) w_put_##id(p, at[j], t[j]);                                                      \
    }
W_SIXTEEN(f32, float, float, float16, vload16(0, p), w_write(p, v))
W_SIXTEEN(f16, half, float, float16, vload_half16(0, p), vstore_half16_rte(v, 0, p))
W_SIXTEEN(bf16, ushort, float, float16, as_float16(convert_uint16(vload16(0, p)) << 16),
          w_write(p, w_to_bf16(v)))
W_SIXTEEN(i8, char, int, int16, convert_int16(vload16(0, p)), w_write(p, convert_char16(v)))
W_SIXTEEN(i16, short, int, int16, convert_int16(vload16(0, p)), w_write(p, convert_short16(v)))
W_SIXTEEN(i32, int, int, int16, vload16(0, p), w_write(p, v))
W_SIXTEEN(i64, long, long, long16, vload16(0, p), w_write(p, v))
W_SIXTEEN(u8, uchar, int, int16, convert_int16(vload16(0, p)), w_write(p, convert_uchar16(v)))
W_SIXTEEN(u16, ushort, int, int16, convert_int16(vload16(0, p)), w_write(p, convert_ushort16(v)))
W_SIXTEEN(u32, uint, uint, uint16, vload16(0, p), w_write(p, v))
W_SIXTEEN(u64, ulong, ulong, ulong16, vload16(0, p), w_write(p, v))
W_SIXTEEN(bool, uchar, int, int16, (convert_int16(vload16(0, p)) != 0) & 1, w_write(p, convert_uchar16(v)))
