/* Elements as they lie in memory: T; as they are computed with: S, S16 sixteen of them. FORMAT: FORMAT_SAME
 * where T is S; FORMAT_F16 and FORMAT_BF16 are 16 bits of an unsigned T, with S float. Before the texts of heavy
 * operations. */
#include "device/gpu/heavy/storage_params.h"

/* Functions whose counts are constants where they are called, and whose arrays are registers then. */
#define INLINE W_FN __attribute__((always_inline))

/* Before what is done for each i of n: with vectors a group has its own stretch of them, else all work-items of all
 * groups have neighbouring ones. */
#ifdef VECTORS
#define FOR_MINE(i, n)                                                                                                  \
    for (w_i64 all_ = n, part_ = (all_ + w_groups(0) - 1) / w_groups(0), i = part_ * w_group(0), end_ = min(i + part_, all_); \
         i < end_; i++)
#else
#define FOR_MINE(i, n) for (w_i64 i = (w_i64)w_group(0) * ITEMS + w_item(0); i < (n); i += (w_i64)w_groups(0) * ITEMS)
#endif

#if FORMAT == FORMAT_SAME
#define LOAD(p, i)     ((p)[i])
#define STORE(p, i, v) ((p)[i] = (v))
#elif FORMAT == FORMAT_F16
#define LOAD(p, i)     vload_half(i, (const W_GLOBAL half *)(p))
#define STORE(p, i, v) vstore_half_rte(v, i, (W_GLOBAL half *)(p))
#else
#define LOAD(p, i)     as_float((w_u32)(p)[i] << 16)
#define STORE(p, i, v) ((p)[i] = to_bf16(v))
W_FN w_u16 to_bf16(float v) {
    const w_u32 bits = as_uint(v), nan = bits >> 16 | 64;
    return (w_u16)(v != v ? nan : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
#endif

#ifdef VECTORS
/* At any element, by one access: PoCL's vstore16 makes three, which no load of the whole can be forwarded from. */
W_FN void write16(W_GLOBAL S *p, S16 v) {
    typedef S16 any __attribute__((aligned(sizeof(S))));
    *(W_GLOBAL any *)p = v;
}
#if FORMAT == FORMAT_SAME
#define LOAD16(p)     vload16(0, p)
#define STORE16(p, v) write16(p, v)
#elif FORMAT == FORMAT_F16
#define LOAD16(p)     vload_half16(0, (const W_GLOBAL half *)(p))
#define STORE16(p, v) vstore_half16_rte(v, 0, (W_GLOBAL half *)(p))
#else
#define LOAD16(p)     as_float16(convert_uint16(vload16(0, p)) << 16)
#define STORE16(p, v) vstore16(to_bf16x16(v), 0, p)
W_FN ushort16 to_bf16x16(float16 v) {
    const uint16 bits = as_uint16(v), nan = bits >> 16 | 64;
    return convert_ushort16(select((bits + 0x7fff + (bits >> 16 & 1)) >> 16, nan, v != v));
}
#endif
#endif
