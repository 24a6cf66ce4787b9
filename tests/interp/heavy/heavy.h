/* The heavy operations as plain loops in f64, and integers in 64 bits. Each is written from its definition in
 * src/heavy.
 * Must not know: other devices. Read next: heavy.c, then matmul.c. */
#ifndef WEFT_DEVICE_INTERP_HEAVY_HEAVY_H
#define WEFT_DEVICE_INTERP_HEAVY_HEAVY_H

#include "interp/interp.h"

/* The operations that the interpreter runs. It declines the others of heavy.def: the compiler then expands
 * recurrent layers and packed matrices, so the tests check their steps, too. */
#define WEFT_INTERP_HEAVY(ROW)                                                                               \
    ROW(MATMUL, matmul)                                                                                      \
    ROW(SCATTER, scatter)                                                                                    \
    ROW(ATTENTION, attention)                                                                                \
    ROW(UPDATE, update)                                                                                      \
    ROW(CONV, conv)                                                                                          \
    ROW(SCAN, scan)                                                                                          \
    ROW(ARGSORT, argsort)

/* Two functions for each: whether the interpreter takes it, and one run. Operand i is at args[i], and
 * bytes[i] bytes of its buffer follow. */
#define INTERP_DECLARED(KIND, member)                                                                        \
    bool weft__interp_##member##_takes(const weft_heavy_##member *heavy);                                    \
    weft_status weft__interp_##member(weft_interp *device, const weft_heavy *heavy, void *const *args,       \
                                      const int64_t *bytes);
WEFT_INTERP_HEAVY(INTERP_DECLARED)
#undef INTERP_DECLARED

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

/* Returns an error unless a strided block is inside operand i. */
weft_status weft__interp_inside(weft_interp *device, const weft_heavy *heavy, int i, int64_t bytes,
                                weft_dtype dtype, int rank, const int64_t *extent, const int64_t *stride);

#endif
