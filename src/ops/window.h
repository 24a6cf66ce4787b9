/* What windows share: how many there are, and the largest element of each. */
#ifndef WEFT_OPS_WINDOW_H
#define WEFT_OPS_WINDOW_H

#include "graph/graph.h"

/* How many windows of `size` elements, `dilation` apart, begin every `step` in an extent; else the poisoned
 * tensor. */
weft_tensor *weft__window_count(const char *where, const char *op, weft_context *ctx, int64_t extent,
                                int64_t size, int64_t step, int64_t dilation, int64_t *n);
/* x with `count` extents in place of dimension dim and of the `gone - 1` after it. */
weft_tensor *weft__recut(const char *where, weft_tensor *x, int dim, int gone, int count,
                         const int64_t *extents);
/* The largest elements along dimension dim, NaN first; the gradient goes to the first of equals. */
weft_tensor *weft__first_largest(const char *where, weft_tensor *w, int dim);

/* Windows of the last two dimensions; the padding is less than every number. */
typedef struct weft_max_params {
    int64_t size[2], stride[2], padding[2], dilation[2], count[2];
} weft_max_params;

enum { WEFT_MAX_TAPS = 32 }; /* more elements of a window are not worth a slice each */

/* max_pool.c: x has two dimensions or more. */
weft_tensor *weft__max_pool(const char *where, weft_tensor *x, const weft_max_params *params);

#endif
