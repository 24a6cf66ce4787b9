/* Targets below 0, which do not count: the mask of a batch is 0 where they are. Must not know: losses. Read
 * next: loader_numbers.c, learn/loss.c. */
#include <weft/ops.h>

#include "data/loader.h"

weft_status weft__loader_skip_new(weft_loader *loader) {
    const weft_array *y = &loader->y.array;
    if (!loader->options.skip_negative) return WEFT_OK;
    if (loader->text || loader->options.weights || !y->data || y->dtype != WEFT_I32)
        return weft__fail(loader->ctx, WEFT_ERR_ARGUMENT,
                          "loader: skip_negative needs i32 targets, no weights, and samples that are no "
                          "windows of a text");
    const size_t samples = (size_t)loader->samples, each = samples ? loader->y.bytes / sizeof(int32_t) : 0;
    const int32_t *targets = y->data;
    loader->real = weft__array(loader->ctx, samples + 1, sizeof *loader->real);
    if (!loader->real) return weft__fail_oom(loader->ctx, samples * sizeof *loader->real, "the loader");
    for (size_t i = 0; i < samples; i++) {
        loader->real[i] = 0;
        for (size_t k = 0; k < each; k++) loader->real[i] += targets[i * each + k] >= 0;
    }
    return WEFT_OK;
}

int64_t weft__loader_targets(const weft_loader *loader, uint64_t position) {
    int64_t targets = 0;
    if (!loader->real) return weft__loader_count(loader, position);
    const int64_t count = weft__loader_starts(loader, position, loader->starts);
    for (int64_t b = 0; b < count; b++) targets += loader->real[loader->starts[b]];
    return targets;
}

void weft__loader_skip_apply(weft_loader *loader, uint64_t position, weft_batch *batch) {
    weft_tensor *zero = weft_zeros_like(batch->y);
    weft_tensor *real = weft_cast(weft_ge(batch->y, zero), WEFT_F32);
    if (batch->mask) {
        int64_t shape[WEFT_MAX_RANK] = {weft_dim(batch->mask, 0)};
        for (int i = 1; i < weft_rank(batch->y); i++) shape[i] = 1;
        real = weft_mul(real, weft_reshape(batch->mask, weft_rank(batch->y), shape));
    }
    batch->y = weft_maximum(batch->y, zero);
    batch->weight = (double)weft__loader_targets(loader, position);
    batch->mask = real;
}
