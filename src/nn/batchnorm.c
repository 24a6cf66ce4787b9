/* Batch normalisation as a layer. In training it normalises by the statistics of the batch, and the forward
 * pass assigns their running means to buffers. In evaluation it normalises by the buffers. ops/batch_norm.c
 * has the formulas.
 * Must not know: devices, optimizers. Read next: use.c, graph/assignment.c. */
#include "base/option.h"
#include "nn/module.h"
#include "ops/build.h"

typedef struct batchnorm_own {
    int64_t channels;
    double eps, momentum;
    bool affine, biased, tracked, cumulative, shared; /* shared: statistics are those of all processes */
    size_t mean, variance, count;                     /* indices of the buffers */
} batchnorm_own;

/* Assigns running + weight (value - running), in the form that PyTorch computes. */
static weft_status batchnorm_follow(weft_module *m, const char *name, size_t buffer, weft_tensor *weight,
                                    weft_tensor *value) {
    const char *where = m->where;
    weft_tensor *old = weft__buffer_of(m, buffer), *rest = at_sub_from(1.0, weight);
    return weft_module_assign(m, name, at_add(at_mul(value, weight), at_mul(old, rest)));
}

/* The variance of a sample of `count` values a channel: times count / (count - 1). count NULL: `values`. */
static weft_tensor *unbiased(const char *where, weft_tensor *variance, weft_tensor *count, int64_t values) {
    return count ? at_mul(variance, at_div(count, at_add_scalar(count, -1)))
                 : at_mul_scalar(variance, (double)values / (double)(values - 1));
}

/* Updates the running statistics with those of a batch. */
static weft_status track(weft_module *m, weft_tensor *mean, weft_tensor *variance) {
    const batchnorm_own *own = m->user;
    const char *where = m->where;
    weft_tensor *weight = weft_full(m->ctx, weft_dtype_of(mean), 0, NULL, own->momentum);
    if (own->cumulative) {
        weft_tensor *batches = at_add_scalar(weft__buffer_of(m, own->count), 1);
        WEFT_TRY(weft_module_assign(m, "num_batches_tracked", batches));
        weight = weft_recip_at(where, weft_cast_at(where, batches, weft_dtype_of(mean)));
    }
    WEFT_TRY(batchnorm_follow(m, "running_mean", own->mean, weight, mean));
    return batchnorm_follow(m, "running_var", own->variance, weight, variance);
}

static weft_tensor *batchnorm_forward(weft_module *m, weft_tensor *x) {
    const batchnorm_own *own = m->user;
    weft_batch_norm_options o = {.eps = own->eps};
    if (x->rank < 2 || x->shape[1] != own->channels) {
        char text[WEFT_SHAPE_TEXT];
        return weft__poison(x->ctx, m->where, WEFT_ERR_SHAPE, "batchnorm: input %s must have %lld channels",
                            weft__tensor_text(x, text), (long long)own->channels);
    }
    weft_tensor *count = NULL;
    if (!own->tracked || m->ctx->training) {
        const bool shared = own->shared && m->ctx->training && m->ctx->processes > 1;
        weft_tensor *bad = shared ? weft__shared_moments(m->where, x, &o.mean, &o.variance, &count)
                                  : weft__batch_moments(m->where, x, &o.mean, &o.variance);
        if (bad) return bad;
    } else {
        o.mean = weft__buffer_of(m, own->mean);
        o.variance = weft__buffer_of(m, own->variance);
    }
    if (own->tracked && m->ctx->training) {
        weft_tensor *variance = unbiased(m->where, o.variance, count, x->numel / own->channels);
        const weft_status status = track(m, o.mean, variance);
        if (status != WEFT_OK) return weft__poison(x->ctx, m->where, status, "%s", weft_last_error(x->ctx));
    }
    return weft_batch_norm_at(m->where, x, own->affine ? weft__parameter_of(m, 0) : NULL,
                              own->biased ? weft__parameter_of(m, 1) : NULL, &o);
}

weft_module *weft_nn_batch_norm(weft_context *ctx, int64_t channels, const weft_batchnorm_options *options) {
    const weft_batchnorm_options o = options ? *options : (weft_batchnorm_options){.eps = 0};
    weft_module *m = weft__module_make(ctx, "batch_norm", batchnorm_forward, sizeof(batchnorm_own));
    if (m->error) return m;
    if (channels < 1 || !(o.eps >= 0.0) || !(o.momentum >= 0.0 && o.momentum <= 1.0))
        return weft__module_poison(m, WEFT_ERR_ARGUMENT,
                                   "weft_nn_batch_norm: %lld channels must be positive, eps %g must not be "
                                   "negative, and momentum %g must be in 0..1",
                                   (long long)channels, o.eps, o.momentum);
    const weft_init ones = {WEFT_INIT_ONES, 0.0}, zeros = {WEFT_INIT_ZEROS, 0.0};
    const weft_dtype wide = o.dtype == WEFT_F64 ? WEFT_F64 : WEFT_F32;
    batchnorm_own *own = m->user;
    *own = (batchnorm_own){.channels = channels,
                           .eps = weft__given(weft__value_or(o.eps, 1e-5)),
                           .momentum = weft__value_or(o.momentum, 0.1),
                           .affine = !o.no_affine,
                           .biased = !o.no_affine && !o.no_bias,
                           .tracked = !o.no_running,
                           .cumulative = o.cumulative};
    m->cheap = WEFT_RECOMPUTE_NORM;
    if (own->affine) weft_module_parameter(m, "weight", o.dtype, 1, &channels, &ones);
    if (own->biased) weft_module_parameter(m, "bias", o.dtype, 1, &channels, &zeros);
    if (!own->tracked) return m;
    own->mean = m->n_parameters;
    weft_module_buffer(m, "running_mean", wide, 1, &channels, &zeros);
    own->variance = m->n_parameters;
    weft_module_buffer(m, "running_var", wide, 1, &channels, &ones);
    own->count = m->n_parameters;
    if (own->cumulative) weft_module_buffer(m, "num_batches_tracked", WEFT_I64, 0, NULL, &zeros);
    return m;
}

weft_status weft_module_sync_batch_norm(weft_module *m, bool on) {
    WEFT_NEED(NULL, m);
    if (m->error) return weft_module_status(m);
    if (m->forward == batchnorm_forward) ((batchnorm_own *)m->user)->shared = on;
    for (size_t i = 0; i < m->n_children; i++) WEFT_TRY(weft_module_sync_batch_norm(m->children[i], on));
    return WEFT_OK;
}
