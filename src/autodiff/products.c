/* The gradients of products along dimensions (PROD) and of running products (SCAN). The gradient is recorded
 * as a composite. It divides the product by each element, which is fast, and exact where no element is 0.
 * Where elements are 0 it uses the product of the others. Differentiating this formula again would be wrong
 * at 0, since a product stands in for a quotient there. So the second derivative is that of plain
 * multiplications, whose derivatives are all right.
 * Must not know: kernels. Read next: rules.c; ops/scan.c. */
#include "autodiff/autodiff.h"
#include "ops/composite.h"

/* The dimensions of the products: a scan along `axis`, or a reduction of the dimensions in `mask`. */
typedef struct products {
    uint32_t mask;
    int32_t axis;
    uint8_t is_scan, reverse;
} products;

enum { X, Y, G, INPUTS };

static void shape_of(const void *params, weft_tensor *const *in, int output, weft_dtype *dtype, int *rank,
                     int64_t *dims) {
    (void)params, (void)output;
    *dtype = (weft_dtype)in[X]->dtype;
    *rank = in[X]->rank;
    for (int i = 0; i < *rank; i++) dims[i] = in[X]->shape[i];
}

/* ---- the gradient, by division ---- */

/* g * y / x. If x is the only 0, it is g times the product of the other elements. If other elements are 0 it
 * is g * y, which is 0, or NaN beside an infinity or NaN. */
static weft_tensor *of_reduction(const char *where, weft_tensor *x, weft_tensor *y, weft_tensor *g,
                                 uint32_t mask) {
    weft_tensor *is_zero = at_eq(x, at_zeros_like(x)),
                *others = at_where(is_zero, weft_full_like_at(where, x, 1), x);
    if (others->error) return others;
    weft_tensor *count =
        weft__reduce(where, WEFT_OP_SUM, weft_cast_at(where, is_zero, (weft_dtype)x->dtype), mask);
    weft_tensor *rest = weft__reduce(where, WEFT_OP_PROD, others, mask);
    weft_tensor *none = at_eq(count, at_zeros_like(count)),
                *one = at_eq(count, weft_full_like_at(where, count, 1));
    return at_mul(g, at_where(none, at_div(y, others), at_where(at_and(one, is_zero), rest, y)));
}

/* The gradient of a running product. Before the first 0 it is the sum of g y from there on, divided by x. At
 * the first 0 it is the same sum, with y computed as if this 0 were a 1, up to the second 0. After the first
 * 0 it is 0. */
static weft_tensor *of_scan(const char *where, weft_tensor *x, weft_tensor *y, weft_tensor *g, int axis,
                            bool reverse) {
    weft_tensor *one = weft_full_like_at(where, x, 1), *is_zero = at_eq(x, at_zeros_like(x));
    weft_tensor *zeros = weft__scan(where, weft_cast_at(where, is_zero, WEFT_I32), axis, false, reverse);
    weft_tensor *before = at_eq(zeros, at_zeros_like(zeros)),
                *up_to_second = at_eq(zeros, weft_full_like_at(where, zeros, 1));
    weft_tensor *first = at_and(is_zero, up_to_second);
    weft_tensor *others = weft__scan(where, at_where(first, one, x), axis, true, reverse);
    weft_tensor *sums = weft__scan(where, at_mul(g, y), axis, false, !reverse);
    weft_tensor *at_first =
        weft__scan(where, at_where(up_to_second, at_mul(g, others), at_zeros_like(x)), axis, false, !reverse);
    return at_where(before, at_div(sums, at_where(is_zero, one, x)),
                    at_where(first, at_first, at_zeros_like(x)));
}

static void products_expand(const char *where, const void *params, weft_tensor *const *in,
                            weft_tensor **out) {
    const products *p = params;
    out[0] = p->is_scan ? of_scan(where, in[X], in[Y], in[G], p->axis, p->reverse)
                        : of_reduction(where, in[X], in[Y], in[G], p->mask);
}

/* ---- its gradients, by multiplications ---- */

static weft_tensor *multiplied(const char *where, const products *p, weft_tensor *x) {
    if (p->is_scan) {
        weft_tensor *y = p->reverse ? weft_flip_at(where, x, p->axis) : x;
        y = weft__products_along(where, y, p->axis);
        return p->reverse ? weft_flip_at(where, y, p->axis) : y;
    }
    for (int i = 0; i < x->rank && !x->error; i++)
        if (p->mask >> i & 1u) x = weft__product_along(where, x, i);
    return x;
}

/* A new node over t at which a gradient ends, in f32 if t has 16 bits. */
static weft_tensor *end_of(const char *where, weft_tensor *t) {
    t = widen(where, t);
    return t->error ? t
                    : weft__node(t->ctx, where, WEFT_OP_RESHAPE, (weft_dtype)t->dtype, t->rank, t->shape, 1,
                                 &t, 0, NULL);
}

/* y is computed again from x. So the gradient by y reaches x through this copy, and y gets none of its
 * own. */
static void products_backward(const char *where, weft_tensor *whole, weft_tensor *h, weft_tensor **grads) {
    const weft_dtype dtype = (weft_dtype)whole->in[X]->dtype;
    weft_tensor *x = end_of(where, whole->in[X]), *g = end_of(where, whole->in[G]);
    weft_tensor *y = multiplied(where, weft__params_of(whole), x), *slope = NULL, *given = widen(where, h);
    weft_tensor *wrt[2] = {x, g}, *found[2] = {NULL, NULL};
    if (y->error || g->error || given->error) {
        grads[X] = y->error ? y : g->error ? g : given;
        return;
    }
    weft_status status = weft__vjp(where, &y, &g, 1, &x, 1, &slope);
    if (status == WEFT_OK && slope) status = weft__vjp(where, &slope, &given, 1, wrt, 2, found);
    if (status != WEFT_OK) { /* these rules fail only if memory runs out */
        grads[X] = &whole->ctx->graph->oom;
        return;
    }
    grads[X] = found[0] ? as_dtype(where, found[0], dtype) : NULL;
    grads[G] = found[1] ? as_dtype(where, found[1], dtype) : NULL;
}

static const weft_composite gradient_of_products = {
    .name = "products_gradient",
    .kind = -1,
    .n_inputs = INPUTS,
    .n_outputs = 1,
    .params_bytes = sizeof(products),
    .shape = shape_of,
    .expand = products_expand,
    .backward = products_backward,
};

weft_tensor *weft__products_gradient(const char *where, weft_tensor *y, weft_tensor *g) {
    products p = {0};
    if (y->op == WEFT_OP_SCAN) {
        const weft_attr_scan *attr = y->attr;
        p.is_scan = 1, p.reverse = attr->reverse != 0, p.axis = (int32_t)attr->axis;
    } else {
        p.mask = ((const weft_attr_axes *)y->attr)->mask;
    }
    weft_tensor *out;
    weft__composite(where, &gradient_of_products, &p, (weft_tensor *[INPUTS]){y->in[0], y, g}, &out);
    return out;
}
