/* Argsort by its definition.
 * Must not know: other devices. Read next: heavy/argsort.h. */
#include <math.h>
#include "interp/heavy/heavy.h"

bool weft__interp_argsort_takes(const weft_heavy_argsort *heavy) {
    (void)heavy;
    return true;
}

/* Returns whether a, at the smaller position, may precede b. */
static bool in_order(weft_dtype dtype, bool descending, weft_value a, weft_value b) {
    if (!weft_dtype_is_float(dtype)) return descending ? a.i >= b.i : a.i <= b.i;
    if (isnan(a.f) || isnan(b.f)) return descending ? isnan(a.f) : isnan(b.f);
    return descending ? a.f >= b.f : a.f <= b.f;
}

/* The place of an element is the number of elements that precede it. */
weft_status weft__interp_argsort(weft_interp *device, const weft_heavy *heavy, void *const *args,
                                 const int64_t *bytes) {
    const weft_heavy_argsort *o = &heavy->as.argsort;
    const weft_dtype dtype = (weft_dtype)o->dtype;
    const int64_t whole = o->rows * o->extent, some = o->rows * o->count, flat[1] = {1};
    WEFT_TRY(weft__interp_inside(device, heavy, 0, bytes[0], dtype, 1, &whole, flat));
    WEFT_TRY(weft__interp_inside(device, heavy, 1, bytes[1], WEFT_I32, 1, &some, flat));
    for (int64_t k = 0; k < whole; k++) {
        const int64_t row = k / o->extent, i = k % o->extent;
        const weft_value v = interp_get((interp_operand){dtype, args[0]}, k);
        int64_t before = 0;
        for (int64_t j = 0; j < o->extent; j++) {
            const weft_value w = interp_get((interp_operand){dtype, args[0]}, row * o->extent + j);
            before +=
                j < i ? in_order(dtype, o->descending, w, v) : j > i && !in_order(dtype, o->descending, v, w);
        }
        if (before < o->count)
            interp_put((interp_operand){WEFT_I32, args[1]}, row * o->count + before, (weft_value){.i = i});
    }
    return WEFT_OK;
}
