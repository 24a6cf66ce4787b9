/* The heavy operations as plain loops in f64, and integers in 64 bits. Each is written from its definition in
 * src/heavy.
 * Must not know: other devices. Read next: heavy.c, then matmul.c. */
#ifndef WEFT_DEVICE_INTERP_HEAVY_HEAVY_H
#define WEFT_DEVICE_INTERP_HEAVY_HEAVY_H

#include "device/interp/interp.h"

/* For each row of heavy.def: whether the interpreter takes it, and one run. Operand i is at args[i], and
 * bytes[i] bytes of its buffer follow. */
#define W_HEAVY(KIND, member, OP)                                                                            \
    bool weft__interp_##member##_takes(const weft_heavy_##member *heavy);                                    \
    weft_status weft__interp_##member(weft_interp *device, const weft_heavy *heavy, void *const *args,       \
                                      const int64_t *bytes);
#include "heavy/heavy.def"
#undef W_HEAVY

typedef struct interp_operand {
    weft_dtype dtype;
    char *base;
} interp_operand;

static inline weft_value interp_get(interp_operand o, int64_t element) {
    return weft__interp_load(o.dtype, o.base, element);
}
static inline void interp_put(interp_operand o, int64_t element, weft_value v) {
    weft__interp_store(o.dtype, o.base, element, v);
}

/* Fails, for an operation that the device declines. */
weft_status weft__interp_declined(weft_interp *device, const weft_heavy *heavy);

/* Returns an error unless a strided block is inside operand i. */
weft_status weft__interp_inside(weft_interp *device, const weft_heavy *heavy, int i, int64_t bytes,
                                weft_dtype dtype, int rank, const int64_t *extent, const int64_t *stride);

#endif
