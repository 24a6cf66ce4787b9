/* Maxima over small windows of the last dimensions, as a composite with two outputs: the largest elements,
 * and their places within the windows. The gradient goes to these places alone. Each element of a window is a
 * slice of x. So both outputs are elementwise and read x in its memory order. No device computes it as a
 * whole.
 * Must not know: convolution. Read next: pool.c. */
#include "ops/composite.h"
#include "ops/ops.h"
#include "ops/window.h"

static int64_t taps_of(const weft_max_params *p) { return p->size[0] * p->size[1]; }

/* The dimension of a tensor for dimension i of the window. Lines are images of one row. */
static int dim_of(int rank, int i) { return rank - 2 + i; }

static void shape(const void *params, weft_tensor *const *in, int output, weft_dtype *dtype, int *rank,
                  int64_t *dims) {
    const weft_max_params *p = params;
    *dtype = output == 0 ? (weft_dtype)in[0]->dtype : WEFT_U8;
    *rank = in[0]->rank;
    for (int i = 0; i < *rank; i++) dims[i] = in[0]->shape[i];
    for (int i = 0; i < 2; i++) dims[dim_of(*rank, i)] = p->count[i];
}

/* A constant u8: places within a window, up to WEFT_MAX_TAPS, fit into a byte. */
static weft_tensor *max_pool_number(const char *where, weft_tensor *like, int64_t value) {
    return weft__poisoned(like)
               ? like
               : weft__constant(like->ctx, where, WEFT_U8, like->rank, like->shape, (double)value, value);
}

/* Element `tap` of all windows of x. x is padded already. */
static weft_tensor *element(const char *where, weft_tensor *x, const weft_max_params *p, int64_t tap) {
    const int64_t at[2] = {tap / p->size[1], tap % p->size[1]};
    int64_t start[WEFT_MAX_RANK] = {0}, stop[WEFT_MAX_RANK], step[WEFT_MAX_RANK];
    if (weft__poisoned(x)) return x;
    for (int i = 0; i < x->rank; i++) stop[i] = x->shape[i], step[i] = 1;
    for (int i = 0; i < 2; i++) {
        const int d = dim_of(x->rank, i);
        start[d] = at[i] * p->dilation[i];
        stop[d] = start[d] + (p->count[i] - 1) * p->stride[i] + 1;
        step[d] = p->stride[i];
    }
    return weft_slice_at(where, x, start, stop, step);
}

/* Among equal elements the first is the largest. The first NaN is larger than all numbers. */
static void max_pool_expand(const char *where, const void *params, weft_tensor *const *in,
                            weft_tensor **out) {
    const weft_max_params *p = params;
    int64_t around[WEFT_MAX_RANK] = {0};
    for (int i = 0; i < 2; i++) around[dim_of(in[0]->rank, i)] = p->padding[i];
    weft_tensor *x = weft_pad_at(where, in[0], around, around, -HUGE_VAL);
    weft_tensor *best = element(where, x, p, 0), *place = max_pool_number(where, best, 0);
    for (int64_t tap = 1; tap < taps_of(p) && !weft__poisoned(best); tap++) {
        weft_tensor *other = element(where, x, p, tap);
        weft_tensor *stays = weft_or_at(where, weft_ge_at(where, best, other), weft_ne_at(where, best, best));
        place = at_where(stays, place, max_pool_number(where, place, tap));
        best = at_where(stays, best, other);
    }
    out[0] = best;
    out[1] = place;
}

/* ---- the gradient ---- */

/* The gradient for adjacent windows that share no element: each element asks whether it is its window's
 * largest. */
static weft_tensor *spread_apart(const char *where, weft_tensor *g, weft_tensor *place,
                                 const weft_max_params *p) {
    const int64_t taps = taps_of(p), window[3] = {p->size[0], 1, p->size[1]};
    int64_t one[WEFT_MAX_RANK], whole[WEFT_MAX_RANK];
    const int rank = g->rank;
    for (int i = 0; i < rank - 2; i++) one[i] = whole[i] = g->shape[i];
    for (int i = 0; i < 2; i++) {
        one[rank - 2 + 2 * i] = p->count[i], one[rank - 1 + 2 * i] = 1;
        whole[rank - 2 + i] = p->count[i] * p->size[i];
    }
    weft_tensor *tap = weft_cast_at(where, weft_iota(g->ctx, WEFT_I32, 1, &taps), WEFT_U8);
    if (!weft__poisoned(tap)) tap = weft__reshape_to(where, tap, 3, window);
    weft_tensor *chosen = at_eq(weft__reshape_to(where, place, rank + 2, one), tap);
    if (weft__poisoned(chosen)) return chosen;
    g = weft__expand_to(where, weft__reshape_to(where, g, rank + 2, one), rank + 2, chosen->shape);
    return weft__reshape_to(where, at_where(chosen, g, at_zeros_like(g)), rank, whole);
}

/* The gradient for windows that overlap or leave elements out. Take the elements whose index has remainder
 * `rest` by the stride. They meet the same taps, in consecutive windows. So their gradient is a sum of
 * shifted windows; the sums of all remainders are then interleaved. NULL: no tap has this remainder.
 *
 *     stride 2, size 3:   index      0  1  2  3  4  5  6
 *                         window 0   0  1  2                  remainder 0 meets taps 0 and 2,
 *                         window 1         0  1  2            remainder 1 meets tap 1
 *                         window 2               0  1  2 */
static weft_tensor *spread_rest(const char *where, weft_tensor *g, weft_tensor *place,
                                const weft_max_params *p, const int64_t *rest, const int64_t *blocks) {
    weft_tensor *sum = NULL;
    for (int64_t tap = 0; tap < taps_of(p) && !weft__poisoned(g); tap++) {
        const int64_t at[2] = {tap / p->size[1] * p->dilation[0], tap % p->size[1] * p->dilation[1]};
        int64_t before[WEFT_MAX_RANK] = {0}, after[WEFT_MAX_RANK] = {0};
        if (at[0] % p->stride[0] != rest[0] || at[1] % p->stride[1] != rest[1]) continue;
        for (int i = 0; i < 2; i++) {
            const int d = dim_of(g->rank, i);
            before[d] = at[i] / p->stride[i];
            after[d] = blocks[i] - before[d] - p->count[i];
        }
        weft_tensor *part = at_where(at_eq(place, max_pool_number(where, place, tap)), g, at_zeros_like(g));
        part = weft_pad_at(where, part, before, after, 0);
        sum = sum ? at_add(sum, part) : part;
    }
    return sum;
}

static weft_tensor *spread_each(const char *where, weft_tensor *g, weft_tensor *place,
                                const weft_max_params *p, const int64_t *extent) {
    const int rank = g->rank;
    int64_t blocks[2], cut[WEFT_MAX_RANK], whole[WEFT_MAX_RANK];
    for (int i = 0; i < rank - 2; i++) cut[i] = whole[i] = g->shape[i];
    for (int i = 0; i < 2; i++) {
        blocks[i] = weft__ceil_div(extent[i], p->stride[i]);
        cut[rank - 2 + 2 * i] = blocks[i], cut[rank - 1 + 2 * i] = 1;
        whole[rank - 2 + i] = blocks[i] * p->stride[i];
    }
    weft_tensor *sum = NULL;
    int64_t rests[2]; /* larger remainders have no tap */
    for (int i = 0; i < 2; i++) rests[i] = weft__smaller(p->stride[i], (p->size[i] - 1) * p->dilation[i] + 1);
    for (int64_t r = 0; r < rests[0] * rests[1]; r++) {
        const int64_t rest[2] = {r / rests[1], r % rests[1]};
        int64_t before[WEFT_MAX_RANK] = {0}, after[WEFT_MAX_RANK] = {0};
        weft_tensor *part = spread_rest(where, g, place, p, rest, blocks);
        if (!part) continue;
        if (weft__poisoned(part)) return part;
        for (int i = 0; i < 2; i++) {
            before[rank - 1 + 2 * i] = rest[i];
            after[rank - 1 + 2 * i] = p->stride[i] - 1 - rest[i];
        }
        part = weft_pad_at(where, weft__reshape_to(where, part, rank + 2, cut), before, after, 0);
        sum = sum ? at_add(sum, part) : part;
    }
    if (!sum || weft__poisoned(sum)) return sum ? sum : g;
    sum = weft__reshape_to(where, sum, rank, whole);
    for (int i = 0; i < 2; i++) sum = weft_narrow_at(where, sum, dim_of(rank, i), 0, extent[i]);
    return sum;
}

/* Merges leading dimensions if two more dimensions would be too many. */
static weft_tensor *room_for_two(const char *where, weft_tensor *t) {
    int64_t shape[WEFT_MAX_RANK] = {1};
    if (weft__poisoned(t) || t->rank + 2 <= WEFT_MAX_RANK) return t;
    const int less = t->rank + 2 - WEFT_MAX_RANK;
    for (int i = 0; i < t->rank; i++) {
        const int to = i < less ? 0 : i - less;
        shape[to] = to ? t->shape[i] : shape[0] * t->shape[i];
    }
    return weft__reshape_to(where, t, t->rank - less, shape);
}

static void max_pool_backward(const char *where, weft_tensor *whole, weft_tensor *g, weft_tensor **grads) {
    const weft_max_params *p = weft__params_of(whole);
    const weft_tensor *x = whole->in[0];
    const weft_dtype dtype = (weft_dtype)g->dtype;
    weft_tensor *place = room_for_two(where, weft__composite_output(where, whole, 1));
    int64_t none[WEFT_MAX_RANK] = {0}, after[WEFT_MAX_RANK] = {0}, padded[2];
    bool apart = true;
    g = room_for_two(where, g);
    if (weft__poisoned(g) || weft__poisoned(place)) {
        grads[0] = weft__poisoned(g) ? g : place;
        return;
    }
    for (int i = 0; i < 2; i++) {
        const int64_t n = x->shape[dim_of(x->rank, i)];
        padded[i] = n + 2 * p->padding[i];
        after[dim_of(g->rank, i)] = n - p->count[i] * p->size[i];
        apart = apart && p->padding[i] == 0 && p->stride[i] == p->size[i] &&
                (p->dilation[i] == 1 || p->size[i] == 1);
    }
    if (apart) {
        g = weft_pad_at(where, spread_apart(where, g, place, p), none, after, 0);
        grads[0] = weft__poisoned(g) ? g : weft__reshape_to(where, g, x->rank, x->shape);
        return;
    }
    g = spread_each(where, widen(where, g), place, p, padded);
    for (int i = 0; i < 2 && !weft__poisoned(g); i++)
        g = weft_narrow_at(where, g, dim_of(g->rank, i), p->padding[i], x->shape[dim_of(x->rank, i)]);
    g = as_dtype(where, g, dtype);
    grads[0] = weft__poisoned(g) ? g : weft__reshape_to(where, g, x->rank, x->shape);
}

static const weft_composite max_pool = {
    .name = "max_pool",
    .kind = -1,
    .n_inputs = 1,
    .n_outputs = 2,
    .params_bytes = sizeof(weft_max_params),
    .shape = shape,
    .expand = max_pool_expand,
    .backward = max_pool_backward,
};

weft_tensor *weft__max_pool(const char *where, weft_tensor *x, const weft_max_params *params) {
    weft_tensor *out[2];
    weft__composite(where, &max_pool, params, &x, out);
    return out[0];
}
