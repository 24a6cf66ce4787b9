/* Views: the movement of tensors as index arithmetic. Every function ends in `simplify`. It merges
 * neighbouring maps of a list wherever one affine guarded map can say the same. A reshape therefore only puts
 * a row-major map in front. Maps have one canonical form, so that equal accesses usually compare and hash as
 * equal.
 * Must not know: nodes, kernels, dtypes. Read next: kernel/kernel.h. */
#include <string.h>

#include "graph/view.h"

/* ---- one map ---- */

static int64_t width(const weft_map *m, int d) { return m->hi[d] - m->lo[d]; }

static bool map_empty(const weft_map *m) {
    for (int d = 0; d < m->rank; d++)
        if (m->extent[d] == 0) return true;
    return false;
}

/* Whether the guards reject every index, though the index space is not empty. */
static bool map_dead(const weft_map *m) {
    for (int d = 0; d < m->rank; d++)
        if (m->lo[d] >= m->hi[d]) return !map_empty(m);
    return false;
}

void weft__map_identity(weft_map *map, int rank, const int64_t *shape) {
    int64_t pitch = 1;
    memset(map, 0, sizeof *map);
    map->rank = rank;
    for (int d = rank - 1; d >= 0; d--) {
        map->extent[d] = map->hi[d] = shape[d];
        map->stride[d] = shape[d] == 1 ? 0 : pitch;
        if (shape[d] > 1) pitch *= shape[d];
    }
}

/* Makes m reject every index, keeping its index space. The rank must be at least 1, since the guard needs a
 * dimension. */
static void map_kill(weft_map *m) {
    m->guarded = true;
    m->offset = 0;
    for (int d = 0; d < m->rank; d++) {
        m->stride[d] = m->lo[d] = 0;
        m->hi[d] = d ? m->extent[d] : 0;
    }
}

/* Brings a map into canonical form:
 *   - guards lie within the extents;
 *   - a dimension whose guard admits one index has stride 0;
 *   - a map that admits no index has the form that map_kill gives;
 *   - an empty map has no guards but keeps its strides. Kernels use the strides of the parallel dimensions if
 *     a reduction is over nothing. */
static void map_canonical(weft_map *m) {
    m->guarded = false;
    if (map_empty(m)) {
        memset(m->lo, 0, sizeof m->lo);
        memcpy(m->hi, m->extent, sizeof m->hi);
        return;
    }
    for (int d = 0; d < m->rank; d++) {
        if (m->lo[d] < 0) m->lo[d] = 0;
        if (m->hi[d] > m->extent[d]) m->hi[d] = m->extent[d];
        if (m->lo[d] >= m->hi[d]) {
            map_kill(m);
            return;
        }
        if (m->lo[d] > 0 || m->hi[d] < m->extent[d]) m->guarded = true;
        if (width(m, d) == 1) {
            m->offset += m->lo[d] * m->stride[d];
            m->stride[d] = 0;
        }
    }
}

/* Merges dimensions k and k + 1 if the access stays affine; else returns false. */
static bool map_merge(weft_map *m, int k) {
    const int64_t inner = m->extent[k + 1], pitch = inner * m->stride[k + 1];
    if (width(m, k) == 1) { /* the outer stride is never used, so any value fits */
        m->offset += m->lo[k] * (m->stride[k] - pitch);
        m->hi[k] = m->lo[k] * inner + m->hi[k + 1];
        m->lo[k] = m->lo[k] * inner + m->lo[k + 1];
    } else {
        if (m->lo[k + 1] > 0 || m->hi[k + 1] < inner || m->stride[k] != pitch) return false;
        m->lo[k] *= inner;
        m->hi[k] *= inner;
    }
    m->extent[k] *= inner;
    m->stride[k] = m->stride[k + 1];
    m->rank--;
    for (int d = k + 1; d < m->rank; d++) {
        m->extent[d] = m->extent[d + 1], m->stride[d] = m->stride[d + 1];
        m->lo[d] = m->lo[d + 1], m->hi[d] = m->hi[d + 1];
    }
    return true;
}

/* ---- merging two maps into one ----
 * `outer` yields a linear index L, which inner splits over its extents:
 *
 *     L = base + sum over d of |stride[d]| t[d]
 *
 * t[d] counts the indices that outer's guard admits, from the end where the stride is negative. Base and
 * strides are written as digits of a mixed-radix system whose radices are inner's extents. While no digit sum
 * overflows, inner's index k is affine in t:
 *
 *     index k = base[k] + sum over d of digit[d][k] t[d]
 *
 * If a digit overflows, dimension k must merge with dimension k - 1 first. */
typedef struct folding {
    weft_map inner;
    int rank;                                      /* rank of outer */
    int64_t base[WEFT_VIEW_RANK];                  /* [k] */
    int64_t digit[WEFT_VIEW_RANK][WEFT_VIEW_RANK]; /* [d][k] */
    int64_t first[WEFT_VIEW_RANK];                 /* smallest valid t[d] */
    int64_t last[WEFT_VIEW_RANK];                  /* largest valid t[d] */
} folding;

/* Writes v as digits; false if v has too many digits. */
static bool to_digits(const weft_map *inner, int64_t v, int64_t *digits) {
    for (int k = inner->rank - 1; k >= 0; k--) {
        digits[k] = v % inner->extent[k];
        v /= inner->extent[k];
    }
    return v == 0;
}

static int64_t digit_least(const folding *f, int k) {
    int64_t sum = f->base[k];
    for (int d = 0; d < f->rank; d++) sum += f->digit[d][k] * f->first[d];
    return sum;
}

static int64_t digit_most(const folding *f, int k) {
    int64_t sum = f->base[k];
    for (int d = 0; d < f->rank; d++) sum += f->digit[d][k] * f->last[d];
    return sum;
}

/* Finds digits that do not overflow. Merges dimensions of inner where needed. */
static bool fold_digits(folding *f, const weft_map *outer) {
    int64_t base = outer->offset;
    f->rank = outer->rank;
    for (int d = 0; d < outer->rank; d++) {
        base += outer->stride[d] * (outer->stride[d] < 0 ? outer->hi[d] - 1 : outer->lo[d]);
        f->first[d] = 0;
        f->last[d] = width(outer, d) - 1;
    }
    if (base < 0) return false;
    for (;;) {
        if (!to_digits(&f->inner, base, f->base)) return false;
        for (int d = 0; d < outer->rank; d++) {
            int64_t s = outer->stride[d];
            if (!to_digits(&f->inner, s < 0 ? -s : s, f->digit[d])) return false;
        }
        int k = f->inner.rank - 1;
        while (k >= 0 && digit_most(f, k) < f->inner.extent[k]) k--;
        if (k < 0) return true;
        if (k == 0 || !map_merge(&f->inner, k - 1)) return false;
    }
}

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

/* Narrows the ranges of t to what inner's guard of dimension k admits; false if nothing is left. */
static bool narrow(folding *f, int k) {
    for (int d = 0; d < f->rank; d++) {
        const int64_t c = f->digit[d][k];
        if (c == 0) continue;
        int64_t rest_most = digit_most(f, k) - c * f->last[d],
                rest_least = digit_least(f, k) - c * f->first[d];
        int64_t from = -floor_div(rest_most - f->inner.lo[k], c);
        int64_t to = floor_div(f->inner.hi[k] - 1 - rest_least, c);
        if (from > f->first[d]) f->first[d] = from;
        if (to < f->last[d]) f->last[d] = to;
        if (f->first[d] > f->last[d]) return false;
    }
    return digit_most(f, k) >= f->inner.lo[k] && digit_least(f, k) < f->inner.hi[k];
}

enum { GUARD_BOX, GUARD_NEVER, GUARD_OTHER };

/* Turns inner's guards into ranges of t. GUARD_BOX: they are a box; GUARD_NEVER: they admit nothing;
 * GUARD_OTHER: they are no box. */
static int fold_guards(folding *f) {
    bool inside = false;
    for (int round = 0; !inside && round < 2 * WEFT_VIEW_RANK; round++) {
        inside = true;
        for (int k = 0; k < f->inner.rank; k++) {
            if (!narrow(f, k)) return GUARD_NEVER;
            if (digit_least(f, k) < f->inner.lo[k] || digit_most(f, k) >= f->inner.hi[k]) inside = false;
        }
    }
    return inside ? GUARD_BOX : GUARD_OTHER;
}

/* Merges two canonical maps: *out does outer, then inner. False if one map cannot say this. */
static bool fold(const weft_map *outer, const weft_map *inner, weft_map *out) {
    if (map_empty(outer) || map_dead(outer)) {
        *out = *outer;
        return true;
    }
    weft_map result = *outer;
    if (map_empty(inner)) return false;
    folding f = {.inner = *inner};
    if (map_dead(inner)) {
        if (outer->rank == 0) return false; /* no dimension to carry the guard */
        map_kill(&result);
        *out = result;
        return true;
    }
    if (!fold_digits(&f, outer)) return false;
    switch (fold_guards(&f)) {
    case GUARD_OTHER: return false;
    case GUARD_NEVER:
        if (outer->rank == 0) return false;
        map_kill(&result);
        *out = result;
        return true;
    default: break;
    }
    result.offset = f.inner.offset;
    for (int k = 0; k < f.inner.rank; k++) result.offset += f.base[k] * f.inner.stride[k];
    for (int d = 0; d < outer->rank; d++) {
        int64_t step = 0;
        for (int k = 0; k < f.inner.rank; k++) step += f.digit[d][k] * f.inner.stride[k];
        if (outer->stride[d] < 0) { /* t = hi - 1 - index */
            result.stride[d] = -step;
            result.offset += (outer->hi[d] - 1) * step;
            result.lo[d] = outer->hi[d] - 1 - f.last[d];
            result.hi[d] = outer->hi[d] - f.first[d];
        } else { /* t = index - lo */
            result.stride[d] = step;
            result.offset -= outer->lo[d] * step;
            result.lo[d] = outer->lo[d] + f.first[d];
            result.hi[d] = outer->lo[d] + f.last[d] + 1;
        }
    }
    map_canonical(&result);
    *out = result;
    return true;
}

/* Merges neighbouring maps of a list where possible. Returns the new length of the list. */
static int simplify(weft_map *list, int count) {
    for (int i = 0; i < count; i++) {
        map_canonical(&list[i]);
        if (i > 0 && map_dead(&list[i]) && list[0].rank == 0) { /* rank 0 has no guard to reject with */
            static const int64_t one[1] = {1};
            weft__map_identity(&list[0], 0, one);
            weft__map_identity(&list[1], 1, one);
            map_kill(&list[1]);
            return 2;
        }
    }
    for (int i = 0; i + 1 < count;) {
        if (fold(&list[i], &list[i + 1], &list[i])) {
            for (int j = i + 1; j + 1 < count; j++) list[j] = list[j + 1];
            count--;
            if (map_empty(&list[0]) || map_dead(&list[0])) return 1;
            i = i > 0 ? i - 1 : 0; /* the new map may merge with the map before it */
        } else {
            i++;
        }
    }
    return count;
}

/* ---- views ---- */

void weft__view_identity(weft_view *view, int rank, const int64_t *shape) {
    view->count = 1;
    weft__map_identity(&view->map[0], rank, shape);
}

bool weft__view_compose(const weft_view *outer, const weft_view *inner, weft_view *out) {
    weft_map list[2 * WEFT_VIEW_MAPS];
    memcpy(list, outer->map, (size_t)outer->count * sizeof *list);
    memcpy(list + outer->count, inner->map, (size_t)inner->count * sizeof *list);
    int count = simplify(list, outer->count + inner->count);
    if (count > WEFT_VIEW_MAPS) return false;
    out->count = count;
    memcpy(out->map, list, (size_t)count * sizeof *list);
    return true;
}

bool weft__view_reshape(weft_view *view, int rank, const int64_t *shape) {
    if (rank > WEFT_VIEW_RANK) return false;
    weft_view front;
    weft__view_identity(&front, rank, shape);
    return weft__view_compose(&front, view, view);
}

/* Replaces the first map by the changed one. The list may become shorter. */
static bool view_moved(weft_view *view, const weft_map *moved) {
    view->map[0] = *moved;
    view->count = simplify(view->map, view->count);
    return true;
}

bool weft__view_permute(weft_view *view, const int *order) {
    const weft_map *m = &view->map[0];
    weft_map moved = *m;
    for (int d = 0; d < m->rank; d++) {
        moved.extent[d] = m->extent[order[d]], moved.stride[d] = m->stride[order[d]];
        moved.lo[d] = m->lo[order[d]], moved.hi[d] = m->hi[order[d]];
    }
    return view_moved(view, &moved);
}

bool weft__view_expand(weft_view *view, const int64_t *shape) {
    weft_map moved = view->map[0];
    for (int d = 0; d < moved.rank; d++) {
        if (moved.extent[d] == shape[d]) continue;
        moved.extent[d] = shape[d]; /* was 1, with stride 0 */
        if (moved.hi[d] > 0) moved.hi[d] = shape[d];
    }
    return view_moved(view, &moved);
}

bool weft__view_slice(weft_view *view, const int64_t *start, const int64_t *extent, const int64_t *step) {
    weft_map moved = view->map[0];
    for (int d = 0; d < moved.rank; d++) {
        const int64_t s = extent[d] > 1 ? step[d] : 1; /* index = start + j * s */
        int64_t shift, stride;
        if (__builtin_mul_overflow(start[d], moved.stride[d], &shift)) return false;
        if (__builtin_mul_overflow(s, moved.stride[d], &stride)) return false;
        if (__builtin_add_overflow(moved.offset, shift, &moved.offset)) return false;
        const int64_t lo = moved.lo[d] - start[d], hi = moved.hi[d] - 1 - start[d]; /* lo <= j * s <= hi */
        moved.lo[d] = s > 0 ? -floor_div(-lo, s) : -floor_div(hi, -s);
        moved.hi[d] = (s > 0 ? floor_div(hi, s) : floor_div(-lo, -s)) + 1;
        moved.stride[d] = stride;
        moved.extent[d] = extent[d];
    }
    return view_moved(view, &moved);
}

bool weft__view_pad(weft_view *view, const int64_t *lo, const int64_t *hi) {
    weft_map moved = view->map[0];
    for (int d = 0; d < moved.rank; d++) {
        int64_t shift;
        if (!weft__add(moved.extent[d], lo[d], &moved.extent[d])) return false;
        if (!weft__add(moved.extent[d], hi[d], &moved.extent[d])) return false;
        if (__builtin_mul_overflow(lo[d], moved.stride[d], &shift)) return false;
        if (__builtin_sub_overflow(moved.offset, shift, &moved.offset)) return false;
        moved.lo[d] += lo[d];
        moved.hi[d] += lo[d];
    }
    return view_moved(view, &moved);
}

/* ---- asking ---- */

bool weft__view_guarded(const weft_view *view) {
    for (int i = 0; i < view->count; i++)
        if (view->map[i].guarded) return true;
    return false;
}

/* Joins two maps whose guards are neighbouring boxes. A dimension whose guard admits one index may have any
 * stride, so joining may choose it. */
static bool join_maps(const weft_map *x, const weft_map *y, weft_map *out) {
    int across = -1;
    *out = *x;
    for (int d = 0; d < x->rank; d++) {
        if (x->extent[d] != y->extent[d]) return false;
        if (x->lo[d] == y->lo[d] && x->hi[d] == y->hi[d]) {
            if (x->hi[d] - x->lo[d] > 1 && x->stride[d] != y->stride[d]) return false;
        } else if (across >= 0 || x->hi[d] != y->lo[d]) {
            return false;
        } else {
            across = d;
        }
    }
    if (across < 0 || x->lo[across] >= x->hi[across] || y->lo[across] >= y->hi[across]) return false;
    int64_t first = x->offset, second = y->offset, width = y->lo[across] - x->lo[across];
    for (int d = 0; d < x->rank; d++) {
        first += x->lo[d] * x->stride[d];
        second += y->lo[d] * y->stride[d];
    }
    if ((second - first) % width != 0) return false;
    int64_t step = (second - first) / width;
    if (x->hi[across] - x->lo[across] > 1 && x->stride[across] != step) return false;
    if (y->hi[across] - y->lo[across] > 1 && y->stride[across] != step) return false;
    out->offset += x->lo[across] * (x->stride[across] - step);
    out->stride[across] = step;
    out->hi[across] = y->hi[across];
    out->guarded = false;
    for (int d = 0; d < x->rank; d++)
        out->guarded = out->guarded || out->lo[d] > 0 || out->hi[d] < out->extent[d];
    return true;
}

bool weft__view_join(const weft_view *x, const weft_view *y, weft_view *out) {
    if (x->count != 1 || y->count != 1 || x->map[0].rank != y->map[0].rank) return false;
    weft_view joined = {.count = 1};
    if (!join_maps(&x->map[0], &y->map[0], &joined.map[0]) &&
        !join_maps(&y->map[0], &x->map[0], &joined.map[0]))
        return false;
    *out = joined;
    return true;
}

bool weft__view_is_identity(const weft_view *view) {
    const weft_map *m = &view->map[0];
    if (view->count != 1) return false;
    if (map_empty(m)) return true;
    if (m->guarded || m->offset != 0) return false;
    int64_t pitch = 1;
    for (int d = m->rank - 1; d >= 0; d--) {
        if (m->extent[d] != 1 && m->stride[d] != pitch) return false;
        pitch *= m->extent[d];
    }
    return true;
}

static bool map_equal(const weft_map *x, const weft_map *y) {
    const size_t bytes = (size_t)x->rank * sizeof *x->extent;
    return x->rank == y->rank && x->offset == y->offset && memcmp(x->extent, y->extent, bytes) == 0 &&
           memcmp(x->stride, y->stride, bytes) == 0 && memcmp(x->lo, y->lo, bytes) == 0 &&
           memcmp(x->hi, y->hi, bytes) == 0;
}

bool weft__view_equal(const weft_view *x, const weft_view *y) {
    if (x->count != y->count) return false;
    for (int i = 0; i < x->count; i++)
        if (!map_equal(&x->map[i], &y->map[i])) return false;
    return true;
}

void weft__view_hash(weft_hash *h, const weft_view *view) {
    weft__hash_u64(h, (uint64_t)view->count);
    for (int i = 0; i < view->count; i++) {
        const weft_map *m = &view->map[i];
        weft__hash_u64(h, (uint64_t)m->rank);
        weft__hash_u64(h, (uint64_t)m->offset);
        for (int d = 0; d < m->rank; d++) {
            weft__hash_u64(h, (uint64_t)m->extent[d]);
            weft__hash_u64(h, (uint64_t)m->stride[d]);
            weft__hash_u64(h, (uint64_t)m->lo[d]);
            weft__hash_u64(h, (uint64_t)m->hi[d]);
        }
    }
}
