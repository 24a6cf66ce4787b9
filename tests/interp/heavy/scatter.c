/* Scatter-add by its definition.
 * Must not know: other devices. Read next: heavy/scatter.h. */
#include <string.h>
#include "interp/heavy/heavy.h"

bool weft__interp_scatter_takes(const weft_heavy_scatter *heavy) {
    (void)heavy;
    return true;
}

static void scatter_block(weft_interp *device, const weft_heavy *heavy, interp_operand index,
                          interp_operand source, interp_operand base, interp_operand out, int64_t block,
                          weft_value *sums) {
    const weft_heavy_scatter *s = &heavy->as.scatter;
    const bool is_float = weft_dtype_is_float(source.dtype);
    const int64_t size = s->rows * s->inner;
    if (!s->based) memset(sums, 0, (size_t)size * sizeof *sums); /* sets 0.0 and 0 alike */
    for (int64_t i = 0; s->based && i < size; i++) sums[i] = interp_get(base, block * size + i);
    for (int64_t i = 0; i < s->count; i++) {
        const int64_t row = interp_get(index, i).i;
        if (row < 0 || row >= s->rows) {
            weft__interp_fault(device, WEFT_FAULT_SCATTER, heavy->path, row, s->rows, i);
            continue;
        }
        for (int64_t j = 0; j < s->inner; j++) {
            const weft_value v = interp_get(source, (block * s->count + i) * s->inner + j);
            weft_value *sum = &sums[row * s->inner + j];
            if (is_float)
                sum->f += v.f;
            else
                sum->i = (int64_t)((uint64_t)sum->i + (uint64_t)v.i);
        }
    }
    for (int64_t i = 0; i < size; i++) interp_put(out, block * size + i, sums[i]);
}

weft_status weft__interp_scatter(weft_interp *device, const weft_heavy *heavy, void *const *args,
                                 const int64_t *bytes) {
    const weft_heavy_scatter *s = &heavy->as.scatter;
    const weft_dtype index_dtype = (weft_dtype)s->index_dtype, dtype = (weft_dtype)s->dtype;
    const int64_t flat[1] = {1}, whole = s->outer * s->rows * s->inner,
                  counts[4] = {s->count, s->outer * s->count * s->inner, whole, whole};
    const int to = s->based ? 3 : 2;
    for (int o = 0; o <= to; o++)
        WEFT_TRY(
            weft__interp_inside(device, heavy, o, bytes[o], o ? dtype : index_dtype, 1, &counts[o], flat));
    if (s->in_place != (s->based && args[2] == args[to]) && whole > 0)
        return weft__fail(device->base.ctx, WEFT_ERR_INTERNAL,
                          "interp: scatter: %s: in_place does not match its buffers",
                          heavy->path ? heavy->path : "");
    const size_t size = (size_t)(s->rows * s->inner);
    weft_value *sums = weft__array(device->base.ctx, size, sizeof *sums);
    if (!sums) return weft__fail_oom(device->base.ctx, size * sizeof *sums, "interp: scatter");
    for (int64_t block = 0; block < s->outer; block++)
        scatter_block(device, heavy, (interp_operand){index_dtype, args[0]}, (interp_operand){dtype, args[1]},
                      (interp_operand){dtype, args[2]}, (interp_operand){dtype, args[to]}, block, sums);
    weft__free(device->base.ctx, sums);
    return WEFT_OK;
}
