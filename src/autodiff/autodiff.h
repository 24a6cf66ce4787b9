/* Reverse-mode differentiation as a transformation of the graph: gradients are more nodes of the same ops.
 * Must not know: kernels, modules. Read next: gradient.c for the reverse walk, rules.c for the rules. */
#ifndef WEFT_AUTODIFF_AUTODIFF_H
#define WEFT_AUTODIFF_AUTODIFF_H

#include "ops/ops.h"

/* Vector-Jacobian product: grads[i] = sum over j of g[j] * d(out[j])/d(wrt[i]); NULL if no gradient flows to
 * wrt[i]. */
weft_status weft__vjp(const char *where, weft_tensor *const *out, weft_tensor *const *g, int n_out,
                      weft_tensor *const *wrt, size_t n_wrt, weft_tensor **grads);

/* Whether loss depends on one of wrt. Paths through integers and bools count; paths through weft_detach, and
 * to conditions and indices, do not. */
weft_status weft__gradient_reaches(weft_tensor *loss, weft_tensor *const *wrt, size_t count, bool *reaches);

/* Lists the evaluated nodes through which loss depends on one of wrt. Free *list with weft__free. Fails with
 * WEFT_ERR_STATE if the recipe of such a node may be gone. */
weft_status weft__gradient_evaluated(weft_tensor *loss, weft_tensor *const *wrt, size_t count,
                                     weft_tensor ***list, size_t *n);

/* Applies the gradient rule of a node's op: sets grads[k] for each float input k. rules.c */
weft_status weft__gradient_rule(weft_tensor *node, weft_tensor *g, weft_tensor **grads);

/* The gradient by x of node y, a PROD or a SCAN of products of x. g is the gradient of y. products.c */
weft_tensor *weft__products_gradient(const char *where, weft_tensor *y, weft_tensor *g);

/* Records the outputs of a composite by its expansion. For a gradient composite without one, it
 * differentiates the expansion of its forward composite. */
weft_status weft__composite_expand(const char *where, const weft_tensor *composite, weft_tensor **out);

#endif
