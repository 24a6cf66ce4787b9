/* What the composites share. 16-bit floats are widened to f32 for statistics, and the result is rounded once.
 * A composite is a function of other ops: it has no kernel and no gradient rule of its own.
 * Must not know: devices. Read next: softmax.c, norm.c. */
#ifndef WEFT_OPS_COMPOSITE_H
#define WEFT_OPS_COMPOSITE_H

#include <math.h>
#include "graph/graph.h"
#include "ops/build.h"

/* True for the floats that are stored in 16 bits and computed in 32 bits. */
static inline bool is_half(weft_dtype dtype) { return dtype == WEFT_F16 || dtype == WEFT_BF16; }

/* x, in f32 if it is stored in 16 bits. */
static inline weft_tensor *widen(const char *where, weft_tensor *x) {
    return is_half(weft_dtype_of(x)) ? weft_cast_at(where, x, WEFT_F32) : x;
}

/* y cast to `dtype`, if it has another one. */
static inline weft_tensor *as_dtype(const char *where, weft_tensor *y, weft_dtype dtype) {
    return weft__poisoned(y) || weft_dtype_of(y) == dtype ? y : weft_cast_at(where, y, dtype);
}

/* NULL if x is a float tensor without error. Else the poisoned tensor that op `name` must return. */
static inline weft_tensor *reject_float(const char *name, const char *where, weft_tensor *x) {
    weft_tensor *bad = weft__reject(name, where, &x, 1);
    if (bad || !x) return bad ? bad : x;
    if (weft_dtype_is_float(weft_dtype_of(x))) return NULL;
    char text[WEFT_SHAPE_TEXT];
    return weft__poison(x->ctx, where, WEFT_ERR_DTYPE, "%s: %s is not a float; cast it with weft_cast", name,
                        weft__tensor_text(x, text));
}

#endif
