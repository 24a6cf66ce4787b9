/* Maxima over small windows of the last dimensions, as a composite of the largest elements and of which they
 * are: the gradient goes to these alone. Every element of a window is a slice of x, so that both are
 * elementwise and run over the memory of x as it lies. No device takes it whole. Must not know: convolution.
 * Read next: pool.c. */
#include "ops/composite.h"
#include "ops/ops.h"
#include "ops/window.h"

static int64_t taps_of(const weft_max_params *p) { return p->size[0] * p->size[1]; }

/* Lines are images of one row: dimension i of the window counted from the end of x. */
static int dim_of(int rank, int i) { return rank - 2 + i; }

static void shape(const void *params, weft_tensor *const *in, int output, weft_dtype *dtype, int *rank,
                  int64_t *dims) {
    const weft_max_params *p = params;
    *dtype = output == 0 ? (weft_dtype)in[0]->dtype : WEFT_U8;
    *rank = in[0]->rank;
    for (int i = 0; i < *rank; i++) dims[i] = in[0]->shape[i];
    for (int i = 0; i < 2; i++) dims[dim_of(*rank, i)] = p->count[i];
}

/* WEFT_MAX_TAPS places fit a byte. */
static weft_tensor *number(const char *where, weft_tensor *like, int64_t value) {
    return weft__poisoned(like)
               ? like
               : weft__constant(like->ctx, where, WEFT_U8, like->rank, like->shape, (double)value, value);
}

/* Element `tap` of all windows of x, which is padded. */
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

/* Of equal ones the first is the largest; the first that is not a number is larger than all numbers. */
static void expand(const char *where, const void *params, weft_tensor *const *in, weft_tensor **out) {
    const weft_max_params *p = params;
    int64_t around[WEFT_MAX_RANK] = {0};
    for (int i = 0; i < 2; i++) around[dim_of(in[0]->rank, i)] = p->padding[i];
    weft_tensor *x = weft_pad_at(where, in[0], around, around, -HUGE_VAL);
    weft_tensor *best = element(where, x, p, 0), *place = number(where, best, 0);
    for (int64_t tap = 1; tap < taps_of(p) && !weft__poisoned(best); tap++) {
        weft_tensor *other = element(where, x, p, tap);
        weft_tensor *stays = weft_or_at(where, weft_ge_at(where, best, other), weft_ne_at(where, best, best));
        place = select(stays, place, number(where, place, tap));
        best = select(stays, best, other);
    }
    out[0] = best;
    out[1] = place;
}

/* ---- the gradient ---- */

/* Windows side by side that share no element: each element asks whether it is its window's. */
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
    weft_tensor *chosen = eq(weft__reshape_to(where, place, rank + 2, one), tap);
    if (weft__poisoned(chosen)) return chosen;
    g = weft__expand_to(where, weft__reshape_to(where, g, rank + 2, one), rank + 2, chosen->shape);
    return weft__reshape_to(where, select(chosen, g, zero(g)), rank, whole);
}

/* x at start, start + step, ... of `extent` elements of dimension d, 0 elsewhere. */
static weft_tensor *put(const char *where, weft_tensor *x, int d, int64_t start, int64_t step,
                        int64_t extent) {
    int64_t cut[WEFT_MAX_RANK], none[WEFT_MAX_RANK] = {0}, after[WEFT_MAX_RANK] = {0};
    if (weft__poisoned(x)) return x;
    const int64_t n = x->shape[d], reach = (n - 1) * step + 1;
    const int rank = x->rank;
    if (step > 1 && n > 1) {
        for (int i = 0; i <= rank; i++) cut[i] = i <= d ? x->shape[i] : i == d + 1 ? 1 : x->shape[i - 1];
        x = weft__reshape_to(where, x, rank + 1, cut);
        after[d + 1] = step - 1;
        x = weft_pad_at(where, x, none, after, 0);
        after[d + 1] = 0;
        if (weft__poisoned(x)) return x;
        for (int i = 0; i < rank; i++) cut[i] = i < d ? x->shape[i] : i == d ? n * step : x->shape[i + 1];
        x = weft_narrow_at(where, weft__reshape_to(where, x, rank, cut), d, 0, reach);
    }
    none[d] = start;
    after[d] = extent - start - reach;
    return weft_pad_at(where, x, none, after, 0);
}

static weft_tensor *spread_each(const char *where, weft_tensor *g, weft_tensor *place,
                                const weft_max_params *p, const int64_t *extent) {
    weft_tensor *sum = NULL;
    for (int64_t tap = 0; tap < taps_of(p) && !weft__poisoned(g); tap++) {
        weft_tensor *part = select(eq(place, number(where, place, tap)), g, zero(g));
        for (int i = 0; i < 2; i++) {
            const int64_t k = i ? tap % p->size[1] : tap / p->size[1];
            part = put(where, part, dim_of(g->rank, i), k * p->dilation[i], p->stride[i], extent[i]);
        }
        sum = sum ? add(sum, part) : part;
    }
    return sum;
}

static void backward(const char *where, weft_tensor *whole, weft_tensor *g, weft_tensor **grads) {
    const weft_max_params *p = weft__params_of(whole);
    const weft_tensor *x = whole->in[0];
    const weft_dtype dtype = (weft_dtype)g->dtype;
    weft_tensor *place = weft__composite_output(where, whole, 1);
    int64_t none[WEFT_MAX_RANK] = {0}, after[WEFT_MAX_RANK] = {0}, padded[2];
    bool apart = x->rank + 2 <= WEFT_MAX_RANK;
    for (int i = 0; i < 2; i++) {
        const int d = dim_of(x->rank, i);
        padded[i] = x->shape[d] + 2 * p->padding[i];
        after[d] = x->shape[d] - p->count[i] * p->size[i];
        apart = apart && p->padding[i] == 0 && p->stride[i] == p->size[i] &&
                (p->dilation[i] == 1 || p->size[i] == 1);
    }
    if (apart) {
        grads[0] = weft_pad_at(where, spread_apart(where, g, place, p), none, after, 0);
        return;
    }
    g = spread_each(where, widen(where, g), place, p, padded);
    for (int i = 0; i < 2 && !weft__poisoned(g); i++) {
        const int d = dim_of(x->rank, i);
        g = weft_narrow_at(where, g, d, p->padding[i], x->shape[d]);
    }
    grads[0] = as_dtype(where, g, dtype);
}

static const weft_composite max_pool = {
    .name = "max_pool",
    .kind = -1,
    .n_inputs = 1,
    .n_outputs = 2,
    .params_bytes = sizeof(weft_max_params),
    .shape = shape,
    .expand = expand,
    .backward = backward,
};

weft_tensor *weft__max_pool(const char *where, weft_tensor *x, const weft_max_params *params) {
    weft_tensor *out[2];
    weft__composite(where, &max_pool, params, &x, out);
    return out[0];
}
