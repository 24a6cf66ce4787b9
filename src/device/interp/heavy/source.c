/* A program's own kernel source is declined: only a GPU has a compiler for it.
 * Must not know: other devices. Read next: heavy/source.h. */
#include "device/interp/heavy/heavy.h"

bool weft__interp_source_takes(const weft_heavy_source *heavy) {
    (void)heavy;
    return false;
}

weft_status weft__interp_source(weft_interp *device, const weft_heavy *heavy, void *const *args,
                                const int64_t *bytes) {
    (void)args, (void)bytes;
    return weft__interp_declined(device, heavy);
}
