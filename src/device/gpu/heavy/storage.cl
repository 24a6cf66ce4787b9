/* Elements in memory have the type T. Kernels compute with S. With FORMAT_SAME, T is S. With
 * FORMAT_F16 and FORMAT_BF16, T is an unsigned integer of 16 bits, and S is float. Stands before the source of every
 * template (backend/template.c).
 *
 *     LOAD(p, i), STORE(p, i, v)    element i */
#include "device/gpu/heavy/storage_params.h"

/* A function that must be inlined: its counts are then constants, and its arrays registers. */
#define INLINE W_FN __attribute__((always_inline))

/* Begins a loop over i from 0 to n - 1, divided among all work-items: adjacent ones have adjacent i. */
#define FOR_MINE(i, n) for (w_i64 i = (w_i64)w_group(0) * ITEMS + w_item(0); i < (n); i += (w_i64)w_groups(0) * ITEMS)

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
