/* Exchanges with other processes are declined: gradients are then exchanged after the program.
 * Must not know: other devices. Read next: heavy/exchange.h. */
#include "device/interp/heavy/heavy.h"

bool weft__interp_exchange_takes(const weft_heavy_exchange *heavy) {
    (void)heavy;
    return false;
}

weft_status weft__interp_exchange(weft_interp *device, const weft_heavy *heavy, void *const *args,
                                  const int64_t *bytes) {
    (void)args, (void)bytes;
    return weft__interp_declined(device, heavy);
}
