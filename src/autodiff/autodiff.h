/* Reverse-mode differentiation as a transformation of the graph: gradients are more nodes of the same ops. */
#ifndef WEFT_AUTODIFF_AUTODIFF_H
#define WEFT_AUTODIFF_AUTODIFF_H

#include "ops/ops.h"

/* grads[i] = sum over j of g[j] * d(out[j])/d(wrt[i]); NULL where nothing flows. */
weft_status weft__vjp(const char *where, weft_tensor *const *out, weft_tensor *const *g, int n_out,
                      weft_tensor *const *wrt, size_t n_wrt, weft_tensor **grads);

/* Does a float lead from loss back to one of wrt, not counting weft_detach, conditions and indices? */
weft_status weft__gradient_reaches(weft_tensor *loss, weft_tensor *const *wrt, size_t count, bool *reaches);

/* The gradient rule of a node's op: adds to grads[k] for each float input k. rules.c */
weft_status weft__gradient_rule(weft_tensor *node, weft_tensor *g, weft_tensor **grads);

/* The gradient by x of the node y, a PROD or a SCAN of products of x, from that of y. products.c */
weft_tensor *weft__products_gradient(const char *where, weft_tensor *y, weft_tensor *g);

/* The outputs of a composite by its expansion; a gradient without one is the autodiff of its forward's. */
weft_status weft__composite_expand(const char *where, const weft_tensor *composite, weft_tensor **out);

#endif
