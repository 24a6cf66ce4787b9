/* The update of a slice by its definition.
 * Must not know: other devices. Read next: heavy/update.h. */
#include <string.h>
#include "interp/heavy/heavy.h"

bool weft__interp_update_takes(const weft_heavy_update *heavy) {
    (void)heavy;
    return true;
}

weft_status weft__interp_update(weft_interp *device, const weft_heavy *heavy, void *const *args,
                                const int64_t *bytes) {
    const weft_heavy_update *u = &heavy->as.update;
    const weft_dtype dtype = (weft_dtype)u->dtype;
    const int64_t size = (int64_t)weft_dtype_size(dtype), flat[1] = {1}, one[1] = {1};
    const int64_t whole = u->outer * u->total * u->inner, part = u->outer * u->extent * u->inner;
    WEFT_TRY(weft__interp_inside(device, heavy, 0, bytes[0], dtype, 1, &whole, flat));
    WEFT_TRY(weft__interp_inside(device, heavy, 1, bytes[1], dtype, 1, &part, flat));
    WEFT_TRY(weft__interp_inside(device, heavy, 2, bytes[2], WEFT_I32, 1, one, flat));
    WEFT_TRY(weft__interp_inside(device, heavy, 3, bytes[3], dtype, 1, &whole, flat));
    if (u->in_place != (args[0] == args[3]) && whole > 0)
        return weft__fail(device->base.ctx, WEFT_ERR_INTERNAL,
                          "interp: update: %s: in_place does not match its buffers",
                          heavy->path ? heavy->path : "");
    if (!u->in_place) memcpy(args[3], args[0], (size_t)(whole * size));
    const int64_t offset = interp_get((interp_operand){WEFT_I32, args[2]}, 0).i;
    if (offset < 0 || offset > u->total - u->extent) {
        weft__interp_fault(device, WEFT_FAULT_UPDATE, heavy->path, offset, u->total - u->extent + 1, 0);
        return WEFT_OK;
    }
    for (int64_t o = 0; o < u->outer; o++)
        memcpy((char *)args[3] + (o * u->total + offset) * u->inner * size,
               (char *)args[1] + o * u->extent * u->inner * size, (size_t)(u->extent * u->inner * size));
    return WEFT_OK;
}
