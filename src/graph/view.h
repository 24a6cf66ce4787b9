/* Views: how an index space is mapped onto the elements of a buffer. One map is affine and has a guard for
 * each dimension. Accesses that one map cannot express, such as the reshape of a permuted view, are a list of
 * maps. All functions are pure functions on numbers.
 * Must not know: nodes, kernels. Read next: view.c. */
#ifndef WEFT_GRAPH_VIEW_H
#define WEFT_GRAPH_VIEW_H

#include "base/base.h"

#define WEFT_VIEW_RANK 12 /* the 8 dimensions of a tensor, and those that split reductions add */
#define WEFT_VIEW_MAPS 4  /* the most maps in a list */

/* Maps an index to an element: index[0..rank) -> offset + sum of index[i] * stride[i]. The index is valid if
 * lo[i] <= index[i] < hi[i] for all i. Extents, strides and offset count elements. A load at an invalid index
 * gives 0. */
typedef struct weft_map {
    int rank;
    bool guarded; /* some lo > 0 or hi < extent */
    int64_t offset;
    int64_t extent[WEFT_VIEW_RANK];
    int64_t stride[WEFT_VIEW_RANK];
    int64_t lo[WEFT_VIEW_RANK], hi[WEFT_VIEW_RANK];
} weft_map;

/* A list of maps. map[0] takes the index; its result is a linear row-major index, which is split over the
 * extents of map[1], and so on. The result of the last map is the element of the buffer:
 *
 *     index -> map[0] -> linear -> split -> map[1] -> ... -> element
 *
 * If any guard fails, the whole access is invalid. */
typedef struct weft_view {
    int count;
    weft_map map[WEFT_VIEW_MAPS];
} weft_view;

/* The row-major map, or view, of a shape. */
void weft__map_identity(weft_map *map, int rank, const int64_t *shape);
void weft__view_identity(weft_view *view, int rank, const int64_t *shape);

/* Each movement function turns the view of a tensor into the view of the moved tensor. Returns false if the
 * list would have more than WEFT_VIEW_MAPS maps, or the rank would exceed WEFT_VIEW_RANK. The view is then
 * unchanged, and the caller must copy the tensor. */
bool weft__view_reshape(weft_view *view, int rank, const int64_t *shape);
bool weft__view_permute(weft_view *view, const int *order);
bool weft__view_expand(weft_view *view, const int64_t *shape); /* grows extents of 1, keeps the rank */
bool weft__view_slice(weft_view *view, const int64_t *start, const int64_t *extent, const int64_t *step);
bool weft__view_pad(weft_view *view, const int64_t *lo, const int64_t *hi); /* zeros around */

/* Composes two views: outer's index space -> inner's index space -> inner's buffer. Inner's index space must
 * have as many elements as outer's last map addresses. Returns false as the movement functions do. */
bool weft__view_compose(const weft_view *outer, const weft_view *inner, weft_view *out);

/* Joins two views of one buffer whose guards admit disjoint neighbouring boxes into one view. A load through
 * it equals the sum of the loads through x and y: it undoes a split of the buffer. Returns false if there is
 * no such view. */
bool weft__view_join(const weft_view *x, const weft_view *y, weft_view *out);

/* True if the access is the row-major identity: no guard, and element = linear index. */
bool weft__view_is_identity(const weft_view *view);
bool weft__view_guarded(const weft_view *view);
bool weft__view_equal(const weft_view *x, const weft_view *y);
void weft__view_hash(weft_hash *h, const weft_view *view);

#endif
