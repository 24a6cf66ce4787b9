/* Packed matrices are declined, so that the tests check their expansion.
 * Must not know: other devices. Read next: heavy/packed.h, ops/packed.c. */
#include "device/interp/heavy/heavy.h"

bool weft__interp_packed_takes(const weft_heavy_packed *heavy) {
    (void)heavy;
    return false;
}

weft_status weft__interp_packed(weft_interp *device, const weft_heavy *heavy, void *const *args,
                                const int64_t *bytes) {
    (void)args, (void)bytes;
    return weft__interp_declined(device, heavy);
}
