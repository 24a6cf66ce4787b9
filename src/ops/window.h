/* What functions of windows share: the number of windows, and the largest element of each.
 * Must not know: convolution. Read next: window.c. */
#ifndef WEFT_OPS_WINDOW_H
#define WEFT_OPS_WINDOW_H

#include "graph/graph.h"

/* *n gets the number of windows: `size` elements, `dilation` apart, beginning every `step` within the extent.
 * Returns NULL or a poisoned tensor. */
weft_tensor *weft__window_count(const char *where, const char *op, weft_context *ctx, int64_t extent,
                                int64_t size, int64_t step, int64_t dilation, int64_t *n);
/* x with `count` extents in place of `gone` dimensions from dim on. */
weft_tensor *weft__recut(const char *where, weft_tensor *x, int dim, int gone, int count,
                         const int64_t *extents);
/* The largest elements along dimension dim; NaN counts as the largest. The first of equal elements gets the
 * gradient. */
weft_tensor *weft__first_largest(const char *where, weft_tensor *w, int dim);

/* Windows of the last two dimensions. The padding is smaller than every number. */
typedef struct weft_max_params {
    int64_t size[2], stride[2], padding[2], dilation[2], count[2];
} weft_max_params;

enum { WEFT_MAX_TAPS = 32 }; /* for more elements, a slice for each is too expensive */

/* Maxima of windows, from max_pool.c. x must have at least two dimensions. */
weft_tensor *weft__max_pool(const char *where, weft_tensor *x, const weft_max_params *params);

#endif
