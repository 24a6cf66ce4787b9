/* Numbers that the host sends with each batch:
 *
 * - Weights. The mask of a batch holds them, divided by their mean over all samples. So a sample of weight 3
 *   counts as three equal ones, whatever else is in its batch.
 * - The divisor of the losses. The batches of a step share it. So they add up to one large batch, on any
 *   number of devices and processes.
 * - Extra numbers: what else a loss wants to know.
 *
 * Must not know: losses. Read next: learn/loss.c. */
#include <math.h>
#include <string.h>

#include "data/loader.h"
#include "graph/variable.h"

static weft_status numbers_new(weft_loader *loader, const char *name, int rank, const int64_t *shape,
                               weft__numbers *n) {
    n->count = shape[0] * (rank > 1 ? shape[1] : 1);
    n->host = weft__array(loader->ctx, (size_t)n->count, sizeof *n->host);
    if (!n->host) return weft__fail_oom(loader->ctx, (size_t)n->count * sizeof *n->host, "the loader");
    n->batch = weft_variable_new(loader->ctx, name, WEFT_F32, rank, shape, NULL);
    return weft_tensor_status(n->batch);
}

static void numbers_put(weft__numbers *n, int64_t at, float value) {
    n->written = n->written && memcmp(&n->host[at], &value, sizeof value) == 0;
    n->host[at] = value;
}

/* Sends the numbers, if they differ from those on the device, which are invalid until it succeeds. */
static weft_status numbers_send(weft__numbers *n) {
    if (!n->written) WEFT_TRY(weft_write(n->batch, n->host, (size_t)n->count * sizeof *n->host));
    n->written = true;
    return WEFT_OK;
}

static weft_status weights_new(weft_loader *loader) {
    weft_context *ctx = loader->ctx;
    const float *weights = loader->options.weights;
    if (!weights) return WEFT_OK;
    if (loader->text)
        return weft__fail(ctx, WEFT_ERR_ARGUMENT,
                          "loader: weights are for samples, not for windows of a text");
    double sum = 0;
    for (int64_t i = 0; i < loader->samples; i++) {
        if (!(weights[i] > 0) || !isfinite(weights[i]))
            return weft__fail(ctx, WEFT_ERR_ARGUMENT,
                              "loader: the weight of sample %lld is %g; it must be finite and above 0",
                              (long long)i, (double)weights[i]);
        sum += (double)weights[i];
    }
    loader->mean_weight = sum / (double)loader->samples;
    return numbers_new(loader, "weights", 1, &loader->options.batch, &loader->weights);
}

static weft_status extra_new(weft_loader *loader) {
    const weft_array *extra = loader->options.extra;
    if (!extra) return WEFT_OK;
    if (loader->text || !extra->data || extra->dtype != WEFT_F32 || extra->rank != 2 ||
        extra->shape[0] != loader->samples || extra->shape[1] < 1)
        return weft__fail(
            loader->ctx, WEFT_ERR_ARGUMENT,
            "loader: extra must be f32 (%lld, K), numbers of each sample, and there are none for "
            "windows of a text",
            (long long)loader->samples);
    loader->extra_rows = *extra;
    loader->options.extra = NULL; /* the struct is the caller's */
    return numbers_new(loader, "extra", 2, (int64_t[]){loader->options.batch, extra->shape[1]},
                       &loader->extra);
}

weft_status weft__loader_numbers_new(weft_loader *loader) {
    WEFT_TRY(weights_new(loader));
    return extra_new(loader);
}

void weft__loader_numbers_free(weft_loader *loader) {
    weft__numbers *const all[] = {&loader->weights, &loader->extra};
    for (int i = 0; i < 2; i++) {
        weft_free(all[i]->batch);
        weft__free(loader->ctx, all[i]->host);
    }
}

static weft_status weights_get(weft_loader *loader, weft_batch *batch) {
    batch->weight = 0;
    for (int64_t b = 0; b < loader->options.batch; b++) {
        const double own = b < batch->count ? (double)loader->options.weights[loader->starts[b]] : 0;
        const float weight = (float)(own / loader->mean_weight);
        numbers_put(&loader->weights, b, weight);
        batch->weight += (double)weight;
    }
    batch->mask = loader->weights.batch;
    return numbers_send(&loader->weights);
}

static weft_status extra_get(weft_loader *loader, weft_batch *batch) {
    const int64_t width = loader->extra_rows.shape[1];
    const float *all = loader->extra_rows.data;
    for (int64_t i = 0; i < loader->extra.count; i++) {
        const int64_t b = i / width;
        numbers_put(&loader->extra, i, b < batch->count ? all[loader->starts[b] * width + i % width] : 0);
    }
    batch->extra = loader->extra.batch;
    return numbers_send(&loader->extra);
}

weft_status weft__loader_numbers_get(weft_loader *loader, uint64_t position, weft_batch *batch) {
    if (!loader->weights.batch && !loader->extra.batch) return WEFT_OK;
    (void)weft__loader_starts(loader, position, loader->starts);
    if (loader->weights.batch) WEFT_TRY(weights_get(loader, batch));
    return loader->extra.batch ? extra_get(loader, batch) : WEFT_OK;
}

void weft__loader_share(weft_loader *loader, uint64_t of) {
    loader->of = of ? of : loader->options.accumulate > 1 ? (uint64_t)loader->options.accumulate : 1;
    loader->divided = UINT64_MAX;
}

weft_status weft__loader_divisor_get(weft_loader *loader, uint64_t position, weft_batch *batch) {
    const uint64_t first = position - position % loader->of;
    int64_t targets = 0;
    WEFT_TRY(weft_tensor_status(batch->mask));
    if (!loader->divisor) loader->divisor = weft_keep(weft_scalar_of(loader->ctx, WEFT_F32, 0));
    batch->divisor = loader->divisor;
    WEFT_TRY(weft_tensor_status(loader->divisor));
    if (loader->divided == first) return WEFT_OK;
    for (uint64_t k = 0; k < loader->of; k++) targets += weft__loader_targets(loader, first + k);
    /* Without any target the losses of the step are 0. */
    WEFT_TRY(weft_set_scalar(loader->divisor, targets ? (double)targets / (double)loader->of : 1));
    loader->divided = first;
    return WEFT_OK;
}
