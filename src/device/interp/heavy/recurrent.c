/* Recurrent layers are declined, so the compiler expands them. This checks their steps, too.
 * Must not know: other devices. Read next: heavy/recurrent.h. */
#include "device/interp/heavy/heavy.h"

bool weft__interp_recurrent_takes(const weft_heavy_recurrent *heavy) {
    (void)heavy;
    return false;
}

weft_status weft__interp_recurrent(weft_interp *device, const weft_heavy *heavy, void *const *args,
                                   const int64_t *bytes) {
    (void)args, (void)bytes;
    return weft__interp_declined(device, heavy);
}
