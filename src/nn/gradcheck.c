/* Compares gradients with finite differences (weft/gradcheck.h). Uses only public functions. Must not know:
 * ops, devices. Read next: autodiff/gradient.c. */
#include <math.h>
#include <string.h>

#include <weft/gradcheck.h>

#include "base/base.h"
#include "base/option.h"

typedef struct gradcheck {
    weft_context *ctx;
    weft_loss_graph_fn loss;
    void *user;
    weft_gradcheck_options options;
    weft_gradcheck_worst *worst;
} gradcheck;

/* The values of a variable, or of its gradient. */
typedef struct elements {
    weft_dtype dtype;
    int64_t count;
    void *data;
} elements;

static double get(const elements *e, int64_t i) {
    return e->dtype == WEFT_F64 ? ((const double *)e->data)[i] : (double)((const float *)e->data)[i];
}

static void set(elements *e, int64_t i, double value) {
    if (e->dtype == WEFT_F64)
        ((double *)e->data)[i] = value;
    else
        ((float *)e->data)[i] = (float)value;
}

static size_t bytes_of(const elements *e) { return (size_t)e->count * weft_dtype_size(e->dtype); }

static weft_status elements_read(weft_context *ctx, weft_tensor *t, elements *e) {
    *e = (elements){.dtype = weft_dtype_of(t), .count = weft_numel(t)};
    WEFT_TRY(weft_tensor_status(t));
    e->data = weft__alloc(ctx, bytes_of(e) + 1);
    if (!e->data) return weft__fail_oom(ctx, bytes_of(e), "the values of a gradient check");
    return weft_read(t, e->data, bytes_of(e));
}

/* The value of the loss. */
static weft_status measure(const gradcheck *g, double *value) {
    weft_scope *scope = weft_scope_open(g->ctx);
    if (!scope) return weft__fail_oom(g->ctx, 0, "a scope");
    weft_tensor *loss = g->loss(g->user);
    weft_status status = weft_tensor_status(loss);
    if (status == WEFT_OK) *value = weft_item(loss);
    weft_scope_close(scope);
    WEFT_TRY(status);
    if (isfinite(*value)) return WEFT_OK;
    return weft__fail(g->ctx, WEFT_ERR_NUMERIC, "weft_gradcheck: the loss is %g", *value);
}

/* The derivative by element i. The variable gets its value back, also after a failure. */
static weft_status difference(const gradcheck *g, weft_tensor *variable, elements *x, int64_t i,
                              double *out) {
    static const double steps[4] = {1, -1, 2, -2}, weights[4] = {8, -8, -1, 1};
    const double h = weft__value_or(g->options.step, x->dtype == WEFT_F64 ? 2e-4 : 2e-2);
    const double before = get(x, i);
    double sum = 0, value = 0;
    weft_status status = WEFT_OK;
    for (int k = 0; k < 4 && status == WEFT_OK; k++) {
        set(x, i, before + steps[k] * h);
        status = weft_write(variable, x->data, bytes_of(x));
        if (status == WEFT_OK) status = measure(g, &value);
        sum += weights[k] * value;
    }
    set(x, i, before);
    const weft_status restored = weft_write(variable, x->data, bytes_of(x));
    *out = sum / (12 * h);
    return status != WEFT_OK ? status : restored;
}

static weft_status check_variable(const gradcheck *g, size_t v, weft_tensor *variable, const elements *grad) {
    elements x;
    weft_status status = elements_read(g->ctx, variable, &x);
    const int64_t most = g->options.most ? g->options.most : 64;
    const int64_t stride = most > 0 && x.count > most ? x.count / most : 1;
    for (int64_t i = 0; status == WEFT_OK && i < x.count; i += stride) {
        weft_gradcheck_worst w = {.variable = v, .element = i, .analytic = get(grad, i)};
        status = difference(g, variable, &x, i, &w.numeric);
        w.error = fabs(w.analytic - w.numeric) / fmax(1, fmax(fabs(w.analytic), fabs(w.numeric)));
        if (status == WEFT_OK && !(w.error <= g->worst->error)) *g->worst = w; /* a NaN is the worst */
        if (isnan(g->worst->error)) break;
    }
    weft__free(g->ctx, x.data);
    return status;
}

/* Computes all gradients at once. */
static weft_status take_gradients(const gradcheck *g, weft_tensor *const *variables, size_t count,
                                  elements *to) {
    weft_tensor **grads = weft__array(g->ctx, count, sizeof *grads);
    weft_scope *scope = weft_scope_open(g->ctx);
    weft_status status = grads && scope ? WEFT_OK : weft__fail_oom(g->ctx, 0, "gradients");
    if (status == WEFT_OK) status = weft_gradient(g->loss(g->user), variables, count, grads);
    for (size_t i = 0; status == WEFT_OK && i < count; i++) status = elements_read(g->ctx, grads[i], &to[i]);
    weft_scope_close(scope);
    weft__free(g->ctx, grads);
    return status;
}

static weft_status gradcheck_dtypes(const gradcheck *g, weft_tensor *const *variables, size_t count) {
    for (size_t i = 0; i < count; i++) {
        WEFT_TRY(weft_tensor_status(variables[i]));
        const weft_dtype dtype = weft_dtype_of(variables[i]);
        if (dtype != WEFT_F64 && dtype != WEFT_F32)
            return weft__fail(g->ctx, WEFT_ERR_DTYPE,
                              "weft_gradcheck: variable %zu is %s; it must be f64 or f32", i,
                              weft_dtype_name(dtype));
    }
    if (weft__value_or(g->options.step, 1) > 0 && isfinite(g->options.step)) return WEFT_OK;
    return weft__fail(g->ctx, WEFT_ERR_ARGUMENT, "weft_gradcheck: step is %g; it must be positive",
                      g->options.step);
}

weft_status weft_gradcheck(weft_context *ctx, weft_loss_graph_fn loss, void *user,
                           weft_tensor *const *variables, size_t count, const weft_gradcheck_options *options,
                           weft_gradcheck_worst *worst) {
    WEFT_NEED(NULL, ctx);
    WEFT_NEED(ctx, loss);
    WEFT_NEED_ARRAY(ctx, variables, count);
    WEFT_NEED(ctx, worst);
    *worst = (weft_gradcheck_worst){0};
    gradcheck g = {.ctx = ctx, .loss = loss, .user = user, .worst = worst};
    if (options) g.options = *options;
    WEFT_TRY(gradcheck_dtypes(&g, variables, count));
    elements *grads = weft__array(ctx, count + 1, sizeof *grads);
    if (!grads) return weft__fail_oom(ctx, count * sizeof *grads, "gradients");
    memset(grads, 0, (count + 1) * sizeof *grads);
    weft_status status = take_gradients(&g, variables, count, grads);
    for (size_t i = 0; status == WEFT_OK && i < count; i++)
        status = check_variable(&g, i, variables[i], &grads[i]);
    for (size_t i = 0; i < count; i++) weft__free(ctx, grads[i].data);
    weft__free(ctx, grads);
    return status;
}
