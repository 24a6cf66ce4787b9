/* Weights of samples: the mask of a batch holds them, so that a masked mean is a weighted mean. Must not
 * know: losses. Read next: loss.c. */
#include <math.h>
#include <string.h>

#include "data/loader.h"
#include "graph/variable.h"

weft_status weft__loader_weights_new(weft_loader *loader) {
    weft_context *ctx = loader->ctx;
    const float *weights = loader->options.weights;
    const int64_t batch = loader->options.batch;
    if (!weights) return WEFT_OK;
    if (loader->text)
        return weft__fail(ctx, WEFT_ERR_ARGUMENT,
                          "loader: weights are for samples, not for windows of a text");
    for (int64_t i = 0; i < loader->samples; i++)
        if (!(weights[i] > 0) || !isfinite(weights[i]))
            return weft__fail(ctx, WEFT_ERR_ARGUMENT,
                              "loader: the weight of sample %lld is %g; it must be finite and above 0",
                              (long long)i, (double)weights[i]);
    loader->weights_host = weft__array(ctx, (size_t)batch, sizeof *loader->weights_host);
    if (!loader->weights_host) return weft__fail_oom(ctx, (size_t)batch * 4, "the loader");
    loader->weights = weft_variable_new(ctx, "weights", WEFT_F32, 1, &batch, NULL);
    return weft_tensor_status(loader->weights);
}

void weft__loader_weights_free(weft_loader *loader) {
    weft_free(loader->weights);
    weft__free(loader->ctx, loader->weights_host);
}

weft_status weft__loader_weights_get(weft_loader *loader, uint64_t position, weft_batch *batch) {
    const int64_t rows = loader->options.batch;
    bool same = loader->weighed;
    (void)weft__loader_starts(loader, position, loader->starts);
    batch->weight = 0;
    for (int64_t b = 0; b < rows; b++) {
        const float weight = b < batch->count ? loader->options.weights[loader->starts[b]] : 0;
        same = same && !(loader->weights_host[b] < weight) && !(loader->weights_host[b] > weight);
        loader->weights_host[b] = weight;
        batch->weight += (double)weight;
    }
    loader->weighed = same; /* the weights on the device are invalid until weft_write succeeds */
    if (!same) WEFT_TRY(weft_write(loader->weights, loader->weights_host, (size_t)rows * sizeof(float)));
    loader->weighed = true;
    batch->mask = loader->weights;
    return WEFT_OK;
}
