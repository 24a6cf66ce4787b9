/* Scans by their definition.
 * Must not know: other devices. Read next: heavy/scan.h. */
#include "interp/heavy/heavy.h"

bool weft__interp_scan_takes(const weft_heavy_scan *heavy) {
    (void)heavy;
    return true;
}

weft_status weft__interp_scan(weft_interp *device, const weft_heavy *heavy, void *const *args,
                              const int64_t *bytes) {
    const weft_heavy_scan *s = &heavy->as.scan;
    const weft_dtype dtype = (weft_dtype)s->dtype;
    const int64_t whole = s->outer * s->extent * s->inner, flat[1] = {1};
    const weft_value start = weft__interp_start(s->product ? WEFT_OP_PROD : WEFT_OP_SUM, dtype);
    for (int i = 0; i < 2; i++)
        WEFT_TRY(weft__interp_inside(device, heavy, i, bytes[i], dtype, 1, &whole, flat));
    for (int64_t k = 0; k < s->outer * s->inner; k++) {
        weft_value all = start;
        for (int64_t i = 0; i < s->extent; i++) {
            const int64_t row = s->reverse ? s->extent - 1 - i : i;
            const int64_t at = (k / s->inner * s->extent + row) * s->inner + k % s->inner;
            const weft_value next = interp_get((interp_operand){dtype, args[0]}, at);
            if (weft_dtype_is_float(dtype))
                all.f = s->product ? all.f * next.f : all.f + next.f;
            else
                all.i = (int64_t)(s->product ? (uint64_t)all.i * (uint64_t)next.i
                                             : (uint64_t)all.i + (uint64_t)next.i);
            weft__interp_store(dtype, args[1], at, all);
        }
    }
    return WEFT_OK;
}
