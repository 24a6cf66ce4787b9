/* Elements in memory have the type T. Kernels compute with S, or with 16 of them, S16. With FORMAT_SAME, T is S. With
 * FORMAT_F16 and FORMAT_BF16, T is an unsigned integer of 16 bits, and S is float. Stands before the source of every
 * template (backend/template.c).
 *
 *     LOAD(p, i), STORE(p, i, v)    element i
 *     LOAD16(p), STORE16(p, v)      16 elements from p on, at any address */
#include "device/gpu/heavy/storage_params.h"

/* A function that must be inlined: its counts are then constants, and its arrays registers. */
#define INLINE W_FN __attribute__((always_inline))

/* Begins a loop over i from 0 to n - 1, divided among all work-groups. With vectors each work-group has a contiguous
 * range. Else adjacent work-items have adjacent i. */
#ifdef VECTORS
#define FOR_MINE(i, n)                                                                                       \
    for (w_i64 all_ = n, part_ = (all_ + w_groups(0) - 1) / w_groups(0), i = part_ * w_group(0),             \
               end_ = min(i + part_, all_);                                                                  \
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
/* Stores at any element, in one access. PoCL's vstore16 makes three, and a later load of the whole vector must wait for
 * them. */
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
