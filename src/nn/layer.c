/* Layers around one tensor function: norms, dropout, activations.
 * Must not know: formulas, which are in ops/. Read next: linear.c. */
#include <string.h>
#include "base/option.h"
#include "nn/module.h"
#include "ops/build.h"

/* ---- norms ---- */

typedef struct norm_own {
    double eps;
    int64_t width;  /* for a groupnorm: number of channels */
    int64_t groups; /* only for a groupnorm */
    bool plus_one;  /* only for an RMS norm */
} norm_own;

static weft_tensor *reject_width(weft_module *m, weft_tensor *x) {
    const norm_own *own = m->user;
    if (x->rank >= 1 && x->shape[x->rank - 1] == own->width) return NULL;
    char text[WEFT_SHAPE_TEXT];
    return weft__poison(x->ctx, m->where, WEFT_ERR_SHAPE, "%s: the last dimension of input %s must be %lld",
                        m->kind, weft__tensor_text(x, text), (long long)own->width);
}

static weft_tensor *layernorm_forward(weft_module *m, weft_tensor *x) {
    weft_tensor *bad = reject_width(m, x);
    if (bad) return bad;
    weft_tensor *gamma = m->n_parameters > 0 ? weft__parameter_of(m, 0) : NULL;
    weft_tensor *beta = m->n_parameters > 1 ? weft__parameter_of(m, 1) : NULL;
    return weft_layer_norm_at(m->where, x, gamma, beta, ((const norm_own *)m->user)->eps);
}

static weft_tensor *rmsnorm_forward(weft_module *m, weft_tensor *x) {
    weft_tensor *bad = reject_width(m, x);
    if (bad) return bad;
    const norm_own *own = m->user;
    const char *where = m->where;
    weft_tensor *gamma = m->n_parameters > 0 ? weft__parameter_of(m, 0) : NULL;
    if (gamma && own->plus_one) gamma = at_add_scalar(gamma, 1.0);
    return weft_rms_norm_at(where, x, gamma, own->eps);
}

static weft_module *norm(weft_context *ctx, const char *kind, weft_forward_fn forward, int64_t width,
                         const weft_norm_options *options, bool biased) {
    weft_norm_options o = options ? *options : (weft_norm_options){0};
    weft_module *m = weft__module_make(ctx, kind, forward, sizeof(norm_own));
    if (m->error) return m;
    if (width < 1 || !(o.eps >= 0.0))
        return weft__module_poison(m, WEFT_ERR_ARGUMENT,
                                   "%s: width %lld must be positive, and eps %g must not be negative", kind,
                                   (long long)width, o.eps);
    *(norm_own *)m->user = (norm_own){weft__value_or(o.eps, 1e-5), width, 0, o.plus_one};
    m->cheap = WEFT_RECOMPUTE_NORM;
    if (o.no_affine) return m;
    const weft_init factor = {o.plus_one ? WEFT_INIT_ZEROS : WEFT_INIT_ONES, 0.0};
    weft_module_parameter(m, "weight", o.dtype, 1, &width, &factor);
    if (biased && !o.no_bias)
        weft_module_parameter(m, "bias", o.dtype, 1, &width, &(weft_init){WEFT_INIT_ZEROS, 0.0});
    return m;
}

weft_module *weft_nn_layer_norm(weft_context *ctx, int64_t width, const weft_norm_options *options) {
    return norm(ctx, "layer_norm", layernorm_forward, width, options, true);
}

weft_module *weft_nn_rms_norm(weft_context *ctx, int64_t width, const weft_norm_options *options) {
    return norm(ctx, "rms_norm", rmsnorm_forward, width, options, false);
}

static weft_tensor *groupnorm_forward(weft_module *m, weft_tensor *x) {
    const norm_own *own = m->user;
    if (x->rank < 2 || x->shape[1] != own->width) {
        char text[WEFT_SHAPE_TEXT];
        return weft__poison(x->ctx, m->where, WEFT_ERR_SHAPE, "groupnorm: input %s must have %lld channels",
                            weft__tensor_text(x, text), (long long)own->width);
    }
    weft_tensor *gamma = m->n_parameters > 0 ? weft__parameter_of(m, 0) : NULL;
    weft_tensor *beta = m->n_parameters > 1 ? weft__parameter_of(m, 1) : NULL;
    return weft_group_norm_at(m->where, x, own->groups, gamma, beta, own->eps);
}

weft_module *weft_nn_group_norm(weft_context *ctx, int64_t groups, int64_t channels,
                                const weft_norm_options *options) {
    weft_module *m = norm(ctx, "group_norm", groupnorm_forward, channels, options, true);
    if (m->error) return m;
    if (groups < 1 || channels % groups)
        return weft__module_poison(m, WEFT_ERR_ARGUMENT,
                                   "weft_nn_group_norm: %lld channels are not a multiple of %lld groups",
                                   (long long)channels, (long long)groups);
    ((norm_own *)m->user)->groups = groups;
    return m;
}

static weft_tensor *instancenorm_forward(weft_module *m, weft_tensor *x) {
    const norm_own *own = m->user;
    if (x->rank < 3 || x->shape[1] != own->width) {
        char text[WEFT_SHAPE_TEXT];
        return weft__poison(
            x->ctx, m->where, WEFT_ERR_SHAPE,
            "instancenorm: input %s must be (N, C, ...) with at least 3 dimensions and %lld channels",
            weft__tensor_text(x, text), (long long)own->width);
    }
    weft_tensor *gamma = m->n_parameters > 0 ? weft__parameter_of(m, 0) : NULL;
    weft_tensor *beta = m->n_parameters > 1 ? weft__parameter_of(m, 1) : NULL;
    return weft_instance_norm_at(m->where, x, gamma, beta, own->eps);
}

weft_module *weft_nn_instance_norm(weft_context *ctx, int64_t channels, const weft_norm_options *options) {
    return norm(ctx, "instance_norm", instancenorm_forward, channels, options, true);
}

/* ---- dropout ---- */

static weft_tensor *dropout_forward(weft_module *m, weft_tensor *x) {
    return m->ctx->training ? weft_dropout_at(m->where, x, *(const double *)m->user) : x;
}

static weft_tensor *dropout2d_forward(weft_module *m, weft_tensor *x) {
    return m->ctx->training ? weft_dropout2d_at(m->where, x, *(const double *)m->user) : x;
}

static weft_module *dropout(weft_context *ctx, const char *kind, weft_forward_fn forward, double p) {
    weft_module *m = weft__module_make(ctx, kind, forward, sizeof p);
    if (m->error) return m;
    if (!(p >= 0.0 && p <= 1.0))
        return weft__module_poison(m, WEFT_ERR_ARGUMENT, "weft_nn_%s: probability %g is not in 0..1", kind,
                                   p);
    *(double *)m->user = p;
    return m;
}

weft_module *weft_nn_dropout(weft_context *ctx, double p) {
    return dropout(ctx, "dropout", dropout_forward, p);
}

weft_module *weft_nn_dropout2d(weft_context *ctx, double p) {
    return dropout(ctx, "dropout2d", dropout2d_forward, p);
}

/* ---- activations ---- */

static const char *const activation_names[WEFT_ACTIVATION_COUNT] = {
#define ACTIVATION_NAME(name, text) [WEFT_##name] = text,
    WEFT_ACTIVATION_LIST(ACTIVATION_NAME)
#undef ACTIVATION_NAME
};

static bool is_activation(weft_activation_kind kind) {
    return kind > WEFT_ACTIVATION_DEFAULT && kind < WEFT_ACTIVATION_COUNT;
}

const char *weft_activation_name(weft_activation_kind kind) {
    return is_activation(kind) ? activation_names[kind] : "?";
}

bool weft_activation_parse(const char *name, weft_activation_kind *kind) {
    for (int i = WEFT_ACTIVATION_DEFAULT + 1; i < WEFT_ACTIVATION_COUNT; i++)
        if (name && strcmp(name, activation_names[i]) == 0) {
            if (kind) *kind = (weft_activation_kind)i;
            return true;
        }
    return false;
}

weft_tensor *weft__activate(const char *where, weft_activation_kind kind, weft_tensor *x) {
    switch (kind) {
    case WEFT_IDENTITY: return x;
    case WEFT_RELU: return weft_relu_at(where, x);
    case WEFT_LEAKY_RELU: return weft_leaky_relu_at(where, x, 0.01);
    case WEFT_GELU: return weft_gelu_at(where, x);
    case WEFT_GELU_TANH: return weft_gelu_tanh_at(where, x);
    case WEFT_SILU: return weft_silu_at(where, x);
    case WEFT_TANH: return weft_tanh_at(where, x);
    case WEFT_SIGMOID: return weft_sigmoid_at(where, x);
    case WEFT_SOFTPLUS: return weft_softplus_at(where, x);
    case WEFT_ELU: return weft_elu_at(where, x, 1.0);
    case WEFT_ACTIVATION_DEFAULT:
    case WEFT_ACTIVATION_COUNT: break;
    }
    return weft__poison(x->ctx, where, WEFT_ERR_ARGUMENT, "unknown activation %d", (int)kind);
}

static weft_tensor *activation_forward(weft_module *m, weft_tensor *x) {
    return weft__activate(m->where, *(const weft_activation_kind *)m->user, x);
}

weft_module *weft_nn_activation(weft_context *ctx, weft_activation_kind kind) {
    if (!ctx) return weft__module_without_context(__func__);
    const bool known = is_activation(kind);
    weft_module *m = weft__module_make(ctx, known ? activation_names[kind] : "activation", activation_forward,
                                       sizeof kind);
    if (m->error) return m;
    if (!known)
        return weft__module_poison(m, WEFT_ERR_ARGUMENT, "weft_nn_activation: unknown activation %d",
                                   (int)kind);
    *(weft_activation_kind *)m->user = kind;
    m->cheap = WEFT_RECOMPUTE_GELU;
    return m;
}
