/* The table of the interpreter's heavy operations, and the check of their operands.
 * Must not know: what an operation computes. Read next: matmul.c. */
#include <inttypes.h>
#include "interp/heavy/heavy.h"

#define TAKES(KIND, member)                                                                                  \
    static bool takes_##member(const weft_heavy *heavy) {                                                    \
        return weft__interp_##member##_takes(&heavy->as.member);                                             \
    }
WEFT_INTERP_HEAVY(TAKES)

static const struct {
    bool (*takes)(const weft_heavy *heavy);
    weft_status (*run)(weft_interp *device, const weft_heavy *heavy, void *const *args, const int64_t *bytes);
} table[WEFT_HEAVY_KINDS] = {
#define ROW(KIND, member) [WEFT_HEAVY_##KIND] = {takes_##member, weft__interp_##member},
    WEFT_INTERP_HEAVY(ROW)};

bool weft__interp_heavy_takes(const weft_heavy *heavy) {
    return table[heavy->kind].takes && table[heavy->kind].takes(heavy);
}

weft_status weft__interp_heavy(weft_interp *device, const weft_heavy *heavy, void *const *args,
                               const int64_t *bytes) {
    const weft_heavy_class *class = weft__heavy_class(heavy);
    const char *wrong = class->check(heavy);
    if (wrong)
        return weft__fail(device->base.ctx, WEFT_ERR_INTERNAL, "interp: %s: %s: %s", class->name,
                          heavy->path ? heavy->path : "", wrong);
    if (table[heavy->kind].run) return table[heavy->kind].run(device, heavy, args, bytes);
    return weft__fail(device->base.ctx, WEFT_ERR_UNSUPPORTED, "interp: %s is not supported", class->name);
}

weft_status weft__interp_inside(weft_interp *device, const weft_heavy *heavy, int i, int64_t bytes,
                                weft_dtype dtype, int rank, const int64_t *extent, const int64_t *stride) {
    int64_t least = 0, most = 0;
    for (int d = 0; d < rank; d++) {
        if (extent[d] == 0) return WEFT_OK;
        const int64_t reach = (extent[d] - 1) * stride[d];
        if (reach < 0)
            least += reach;
        else
            most += reach;
    }
    const int64_t n = bytes / (int64_t)weft_dtype_size(dtype);
    if (least >= 0 && most < n) return WEFT_OK;
    return weft__fail(device->base.ctx, WEFT_ERR_INTERNAL,
                      "interp: %s: %s: operand %d: elements %" PRId64 "..%" PRId64 " of a buffer of %" PRId64,
                      weft__heavy_class(heavy)->name, heavy->path ? heavy->path : "", i, least, most, n);
}
