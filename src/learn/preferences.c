/* What DPO computes without gradients: the reference of pairs, and how far a model follows preferences. Must
 * not know: how pairs are read (text/preferences.c). Read next: loss.c, evaluate.c. */
#include <string.h>

#include <weft/preferences.h>

#include "learn/evaluate.h"
#include "data/loader.h"

/* Writes the log-probabilities of the batch at that position to the rows of `reference`. */
static weft_status reference_batch(weft_module *gpt, weft_loader *loader, int64_t position,
                                   weft_array *reference) {
    const int64_t rows = loader->options.batch;
    weft_batch batch;
    WEFT_TRY(weft_loader_get(loader, (uint64_t)position, &batch));
    weft_tensor *pairs = weft_sequence_log_probs(weft_forward(gpt, batch.x), batch.y);
    if (weft_tensor_status(pairs) == WEFT_OK && (weft_rank(pairs) != 2 || weft_dim(pairs, 1) != 2))
        return weft__fail(loader->ctx, WEFT_ERR_SHAPE,
                          "weft_preferences_reference: the loader needs rows of weft_preferences_pack");
    float *values = weft__array(NULL, (size_t)rows * 2, sizeof *values);
    if (!values) return weft__fail_oom(loader->ctx, (size_t)rows * 2 * sizeof *values, "the reference");
    const weft_status status =
        weft_read(weft_cast(pairs, WEFT_F32), values, (size_t)rows * 2 * sizeof *values);
    if (status == WEFT_OK)
        memcpy((float *)reference->data + position * rows * 2, values,
               (size_t)batch.count * 2 * sizeof *values);
    weft__free(NULL, values);
    return status;
}

static weft_status reference_all(weft_module *gpt, weft_loader *loader, weft_array *reference) {
    for (int64_t position = 0; position < loader->batches; position++) {
        WEFT_TRY(weft__go_on(loader->ctx));
        weft_scope *scope = weft_scope_open(loader->ctx);
        if (!scope) return weft__fail_oom(loader->ctx, 0, "a scope");
        const weft_status status = reference_batch(gpt, loader, position, reference);
        weft_scope_close(scope);
        WEFT_TRY(status);
    }
    return WEFT_OK;
}

weft_status weft_preferences_reference(weft_module *gpt, weft_loader *loader, weft_array *reference) {
    WEFT_NEED(NULL, gpt);
    WEFT_NEED(weft_module_context(gpt), loader);
    WEFT_NEED(loader->ctx, reference);
    *reference = (weft_array){0};
    WEFT_TRY(weft_module_status(gpt));
    if (loader->text || !loader->options.in_order || loader->y.rank != 3)
        return weft__fail(
            loader->ctx, WEFT_ERR_ARGUMENT,
            "weft_preferences_reference: give a loader of the rows of weft_preferences_pack, with "
            "options.in_order");
    WEFT_TRY(weft_array_new(NULL, WEFT_F32, 2, (int64_t[]){loader->samples, 2}, reference));
    const bool was_training = weft_module_is_training(gpt);
    weft_module_set_training(gpt, false);
    const weft_status status = reference_all(gpt, loader, reference);
    weft_module_set_training(gpt, was_training);
    if (status != WEFT_OK) weft_array_free(NULL, reference);
    return status;
}

weft_status weft__preferences_evaluate(const weft__evaluators *on, double beta,
                                       weft_preference_scores *scores) {
    double means[WEFT__MEANS];
    const weft__loss loss = {.kind = WEFT_LOSS_DPO, .beta = beta};
    const weft_status status = weft__evaluate_means(on, &loss, WEFT__MEANS, means);
    *scores =
        (weft_preference_scores){means[WEFT__MEAN_LOSS], means[WEFT__MEAN_RIGHT], means[WEFT__MEAN_MARGIN]};
    return status;
}

weft_status weft_preferences_evaluate(weft_module *gpt, weft_loader *loader, double beta,
                                      weft_preference_scores *scores) {
    WEFT_NEED(NULL, gpt);
    WEFT_NEED(weft_module_context(gpt), loader);
    WEFT_NEED(loader->ctx, scores);
    return weft__preferences_evaluate(
        &(weft__evaluators){&(weft__evaluated){.module = gpt, .loader = loader}, 1, NULL}, beta, scores);
}
