/* Views: how an index space is mapped onto the elements of a buffer. One map is affine with a guard per
 * dimension; what one map cannot say (a reshape of a permuted view, say) is a list of them. Pure functions
 * on numbers: knows neither nodes nor kernels. */
#ifndef WEFT_GRAPH_VIEW_H
#define WEFT_GRAPH_VIEW_H

#include "base/base.h"

#define WEFT_VIEW_RANK 12 /* a tensor's 8 dimensions and those that splitting reductions adds */
#define WEFT_VIEW_MAPS 4  /* longest list */

/* index[0..rank) -> offset + sum index[i] * stride[i], valid where lo[i] <= index[i] < hi[i] for all i.
 * Extents, strides and offset in elements. Where invalid, a load gives 0. */
typedef struct weft_map {
    int rank;
    bool guarded; /* some lo > 0 or hi < extent */
    int64_t offset;
    int64_t extent[WEFT_VIEW_RANK];
    int64_t stride[WEFT_VIEW_RANK];
    int64_t lo[WEFT_VIEW_RANK], hi[WEFT_VIEW_RANK];
} weft_map;

/* map[0] takes the index of the outermost space; its result, a linear row-major index, is split over the
 * extents of map[1], and so on; the last one yields the element of the buffer. A guard that fails anywhere
 * makes the whole access invalid. */
typedef struct weft_view {
    int count;
    weft_map map[WEFT_VIEW_MAPS];
} weft_view;

/* The row-major map of a shape. */
void weft__map_identity(weft_map *map, int rank, const int64_t *shape);
void weft__view_identity(weft_view *view, int rank, const int64_t *shape);

/* The movement functions replace a view by that of the moved tensor. False: the list would grow past
 * WEFT_VIEW_MAPS or the rank past WEFT_VIEW_RANK; the view is then unchanged and the caller must copy. */
bool weft__view_reshape(weft_view *view, int rank, const int64_t *shape);
bool weft__view_permute(weft_view *view, const int *order);
bool weft__view_expand(weft_view *view, const int64_t *shape); /* extents 1 grow, same rank */
bool weft__view_slice(weft_view *view, const int64_t *start, const int64_t *extent, const int64_t *step);
bool weft__view_pad(weft_view *view, const int64_t *lo, const int64_t *hi); /* zeros around */

/* outer after inner: the result maps outer's index space to inner's buffer; inner's index space must have
 * as many elements as outer's last map addresses. False as above. */
bool weft__view_compose(const weft_view *outer, const weft_view *inner, weft_view *out);

/* One view for two into the same buffer whose guards let disjoint neighbouring boxes through: what the sum of
 * both loads is, parts of a buffer put side by side again. False where it is none. */
bool weft__view_join(const weft_view *x, const weft_view *y, weft_view *out);

/* True when the access is the row-major identity over n elements: no guard, linear index = element. */
bool weft__view_is_identity(const weft_view *view);
bool weft__view_guarded(const weft_view *view);
bool weft__view_equal(const weft_view *x, const weft_view *y);
void weft__view_hash(weft_hash *h, const weft_view *view);
/* Extents of the index space. */
static inline int weft__view_rank(const weft_view *view) { return view->map[0].rank; }

/* The element that `index` addresses; -1 where a guard fails. */
int64_t weft__view_at(const weft_view *view, const int64_t *index);

#endif
