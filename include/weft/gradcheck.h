/* Checks gradients against finite differences: for tests of your own ops, layers and losses. */
#ifndef WEFT_GRADCHECK_H
#define WEFT_GRADCHECK_H

#include <weft/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Records the loss, one f32 or f64, from variables that the caller passes in `user`. Called many times, each
 * time within a scope of its own. It must record the same graph each time: no dropout, no changing data. */
typedef weft_tensor *(*weft_loss_graph_fn)(void *user);

typedef struct weft_gradcheck_options {
    double step;  /* distance of the finite differences; 0: 2e-4 for f64, 2e-2 for f32 */
    int64_t most; /* elements that are checked of each variable, evenly spread; 0: 64; negative: all */
} weft_gradcheck_options;

/* The element with the largest error. */
typedef struct weft_gradcheck_worst {
    double error;             /* |analytic - numeric| / max(1, |analytic|, |numeric|) */
    size_t variable;          /* index of the variable */
    int64_t element;          /* index of the element in the variable, row by row */
    double analytic, numeric; /* its gradient by weft_gradient, and by finite differences */
} weft_gradcheck_worst;

/* Compares the gradients of `loss` by each variable with central differences of fourth order,
 * (8 (f(x + h) - f(x - h)) - (f(x + 2h) - f(x - 2h))) / 12h. Changes the variables while it works, and
 * restores them. Only the host's numbers are f64, so use f64 variables: correct gradients of smooth losses
 * then have errors below 1e-7. With f32 expect about 1e-3.
 *
 * Differences mean nothing across a kink, such as that of relu at 0: choose values away from it.
 *
 * WEFT_ERR_DTYPE: a variable is neither f32 nor f64. WEFT_ERR_NUMERIC: the loss is not finite. Other statuses
 * are those of weft_gradient. */
WEFT_API WEFT_CHECKED weft_status weft_gradcheck(weft_context *ctx, weft_loss_graph_fn loss, void *user,
                                                 weft_tensor *const *variables, size_t count,
                                                 const weft_gradcheck_options *options,
                                                 weft_gradcheck_worst *worst);

#ifdef __cplusplus
}
#endif
#endif
