/* The gradient of every op. Elementwise ops have theirs in ops.def. Movement, reductions and ops with a file
 * of their own have a function here. A rule gets the node and the gradient g of its output. It returns a
 * gradient for each float input.
 * Must not know: the order of the reverse walk. Read next: gradient.c, products.c. */
#include <string.h>
#include "autodiff/autodiff.h"
#include "ops/composite.h"

/* NO_GRAD: not differentiable, an error if the gradient is needed. ZERO_GRAD: no gradient flows. */
static weft_tensor not_differentiable;
#define NO_GRAD   (&not_differentiable)
#define ZERO_GRAD NULL

/* ---- movement ---- */

static void grad_reshape(const char *where, weft_tensor *node, weft_tensor *g, weft_tensor **grads) {
    grads[0] = weft__reshape_to(where, g, node->in[0]->rank, node->in[0]->shape);
}

static void grad_permute(const char *where, weft_tensor *node, weft_tensor *g, weft_tensor **grads) {
    const weft_attr_permutation *attr = node->attr;
    int inverse[WEFT_MAX_RANK];
    for (int i = 0; i < node->rank; i++) inverse[attr->order[i]] = i;
    grads[0] = weft_permute_at(where, g, inverse);
}

static void grad_expand(const char *where, weft_tensor *node, weft_tensor *g, weft_tensor **grads) {
    grads[0] = weft_sum_to_at(where, g, node->in[0]->rank, node->in[0]->shape);
}

static void grad_pad(const char *where, weft_tensor *node, weft_tensor *g, weft_tensor **grads) {
    const weft_attr_pad *attr = node->attr;
    grads[0] = g;
    for (int i = 0; i < node->rank; i++)
        grads[0] = weft_narrow_at(where, grads[0], i, attr->lo[i], node->in[0]->shape[i]);
}

/* Puts g back at start, start + step, ... of a dimension of `extent`, with zeros between, seen as (A, n,
 * B). */
static weft_tensor *spread(const char *where, weft_tensor *g, int dim, int64_t start, int64_t step,
                           int64_t extent) {
    int rank = g->rank;
    int64_t n = g->shape[dim], shape[WEFT_MAX_RANK], inner = 1, outer = 1;
    for (int i = 0; i < g->rank; i++) {
        shape[i] = i == dim ? extent : g->shape[i];
        if (i < dim) outer *= g->shape[i];
        if (i > dim) inner *= g->shape[i];
    }
    if (n == 0) return weft__constant(g->ctx, where, (weft_dtype)g->dtype, g->rank, shape, 0, 0);
    if (step < 0) { /* element i of g belongs at start + i * step, so the last element comes first */
        g = weft_flip_at(where, g, dim);
        start += (n - 1) * step;
        step = -step;
    }
    /* Each element gets a slot of `step` elements, in which it stands at `lead`. Slices that interleave are
     * then boxes of one index space.
     *
     *     step 3, lead 1:   0 g0 0 | 0 g1 0 | 0 g2 0 | ... */
    const int64_t lead = start % step, first = start - lead;
    const int64_t used = n * step < extent - first ? n * step : extent - first;
    int64_t slots[4] = {outer, n, 1, inner}, flat[3] = {outer, n * step, inner};
    int64_t ahead[4] = {0, 0, lead, 0}, behind[4] = {0, 0, step - 1 - lead, 0};
    g = weft_pad_at(where, weft__reshape_to(where, g, 4, slots), ahead, behind, 0);
    g = weft_narrow_at(where, weft__reshape_to(where, g, 3, flat), 1, 0, used);
    int64_t before[3] = {0, first, 0}, after[3] = {0, extent - first - used, 0};
    g = weft_pad_at(where, g, before, after, 0);
    return g->error ? g : weft__reshape_to(where, g, rank, shape);
}

static void grad_slice(const char *where, weft_tensor *node, weft_tensor *g, weft_tensor **grads) {
    const weft_attr_slice *attr = node->attr;
    const weft_tensor *x = node->in[0];
    for (int i = 0; i < node->rank && !g->error; i++) {
        if (attr->step[i] == 1) {
            int64_t before[WEFT_MAX_RANK] = {0}, after[WEFT_MAX_RANK] = {0};
            before[i] = attr->start[i];
            after[i] = x->shape[i] - attr->start[i] - node->shape[i];
            g = weft_pad_at(where, g, before, after, 0);
        } else {
            g = spread(where, g, i, attr->start[i], attr->step[i], x->shape[i]);
        }
    }
    grads[0] = g;
}

/* ---- reductions: y keeps extents of 1 ---- */

static void grad_sum(const char *where, weft_tensor *node, weft_tensor *g, weft_tensor **grads) {
    grads[0] = weft__expand_to(where, g, node->in[0]->rank, node->in[0]->shape);
}

/* Equal elements share the gradient equally. If the extreme is NaN, all NaNs share it. */
static void grad_extreme(const char *where, weft_tensor *node, weft_tensor *g, weft_tensor **grads) {
    weft_tensor *x = node->in[0];
    weft_tensor *hit = at_where(at_or(at_eq(x, node), weft_isnan_at(where, x)),
                                weft_full_like_at(where, x, 1), at_zeros_like(x));
    uint32_t mask = ((const weft_attr_axes *)node->attr)->mask;
    if (hit->error) {
        grads[0] = hit;
        return;
    }
    grads[0] = at_mul(hit, at_div(g, weft__reduce(where, WEFT_OP_SUM, hit, mask)));
}

/* ---- elementwise ops ---- */

/* The gradient of a remainder by b: -g q, with the whole number q for which rest = a - q b. floor(a / b) may
 * be one too large if the quotient was rounded up to a whole number, as 1 / 0.1 is. So q is rounded from (a -
 * rest) / b. If b is infinite, or a vanishes beside b, the remainder is b itself and q is -1. */
static weft_tensor *divisor(const char *where, weft_tensor *g, weft_tensor *a, weft_tensor *b,
                            weft_tensor *rest) {
    const weft_dtype dtype = weft_dtype_of(g);
    g = widen(where, g), a = widen(where, a), b = widen(where, b), rest = widen(where, rest);
    weft_tensor *q = weft_round_at(where, at_div(at_sub(a, rest), b));
    q = at_where(at_eq(rest, b), weft_full_like_at(where, q, -1), q);
    return as_dtype(where, at_neg(at_mul(g, q)), dtype);
}

/* A part x of the vector (a, b) divided by its length. Both are first multiplied by a power of 2, `scale`, so
 * that neither the length nor a quotient by it leaves the normal numbers. 16-bit floats are computed in f32,
 * so that the length is not rounded to 16 bits. At the origin the part is 0 and the length 1. */
typedef struct direction {
    weft_tensor *part, *length, *scale;
} direction;

static direction direction_of(const char *where, weft_tensor *x, weft_tensor *a, weft_tensor *b) {
    x = widen(where, x), a = widen(where, a), b = widen(where, b);
    const bool wide = weft_dtype_of(a) == WEFT_F64;
    const double most = wide ? 0x1p1000 : 0x1p100, shift = wide ? 0x1p200 : 0x1p40;
    weft_tensor *length = weft_hypot_at(where, a, b), *one = weft_full_like_at(where, length, 1);
    weft_tensor *big = at_gt(length, weft_full_like_at(where, length, most)),
                *tiny = at_lt(length, weft_full_like_at(where, length, 1 / most));
    weft_tensor *scale = at_where(big, weft_full_like_at(where, one, 1 / shift),
                                  at_where(tiny, weft_full_like_at(where, one, shift), one));
    length = weft_hypot_at(where, at_mul(a, scale), at_mul(b, scale));
    weft_tensor *origin = at_eq(length, at_zeros_like(length));
    length = at_where(origin, one, length);
    return (direction){at_where(origin, at_zeros_like(x), at_div(at_mul(x, scale), length)), length, scale};
}

/* g x / sqrt(a^2 + b^2): the gradient of hypot by x, which is a or b. 0 at the origin. */
static weft_tensor *along(const char *where, weft_tensor *g, weft_tensor *x, weft_tensor *a, weft_tensor *b) {
    const direction d = direction_of(where, x, a, b);
    return as_dtype(where, at_mul(widen(where, g), d.part), weft_dtype_of(g));
}

/* g x / (a^2 + b^2): the gradient of atan2 by a (x = b) and, negated, by b (x = a). 0 at the origin. */
static weft_tensor *turn(const char *where, weft_tensor *g, weft_tensor *x, weft_tensor *a, weft_tensor *b) {
    const direction d = direction_of(where, x, a, b);
    return as_dtype(where, at_mul(widen(where, g), at_mul(at_div(d.part, d.length), d.scale)),
                    weft_dtype_of(g));
}

/* ---- ops with a file of their own ---- */

/* The value that g had before it was rounded to f16 or bf16: the f32 result of a matmul, or of a computation
 * in f32 (as sums are), or a view of these. NULL if g is something else. So the gradient of an f32 weight is
 * not rounded if the layer computes in 16 bits. */
static weft_tensor *unrounded(const char *where, weft_tensor *g, int views) {
    weft_tensor *in = g->n_in > 0 && !g->leaf ? g->in[0] : NULL;
    if (!in || g->error || (g->dtype != WEFT_F16 && g->dtype != WEFT_BF16)) return NULL;
    if (g->op == WEFT_OP_CAST) return in->dtype == WEFT_F32 ? in : NULL;
    const bool view = g->op == WEFT_OP_PERMUTE || g->op == WEFT_OP_RESHAPE;
    weft_tensor *wide = view && views ? unrounded(where, in, views - 1) : NULL;
    if (g->op != WEFT_OP_MATMUL && !wide) return NULL;
    return weft__node(g->ctx, where, (weft_op)g->op, WEFT_F32, g->rank, g->shape, g->n_in,
                      wide ? &wide : g->in, g->attr_bytes, g->attr);
}

/* Complex numbers: the gradient by z = x + iy is the gradient by x plus i times the gradient by y
 * (ops/complex.c). */
static void grad_complex(const char *where, weft_tensor *node, weft_tensor *g, weft_tensor **grads) {
    (void)node;
    grads[0] = weft_real_at(where, g);
    grads[1] = weft_imag_at(where, g);
}

static void grad_real(const char *where, weft_tensor *node, weft_tensor *g, weft_tensor **grads) {
    (void)node;
    grads[0] = weft_complex_at(where, g, at_zeros_like(g));
}

static void grad_imag(const char *where, weft_tensor *node, weft_tensor *g, weft_tensor **grads) {
    (void)node;
    grads[0] = weft_complex_at(where, at_zeros_like(g), g);
}

static void grad_view_as_real(const char *where, weft_tensor *node, weft_tensor *g, weft_tensor **grads) {
    (void)node;
    grads[0] = weft_view_as_complex_at(where, g);
}

static void grad_view_as_complex(const char *where, weft_tensor *node, weft_tensor *g, weft_tensor **grads) {
    (void)node;
    grads[0] = weft_view_as_real_at(where, g);
}

static void grad_cast(const char *where, weft_tensor *node, weft_tensor *g, weft_tensor **grads) {
    const weft_dtype dtype = (weft_dtype)node->in[0]->dtype;
    const bool weight =
        (node->in[0]->flags & WEFT_NODE_VARIABLE) && dtype == WEFT_F32; /* for others f32 would be slower */
    weft_tensor *wide = weight ? unrounded(where, g, 8) : NULL;
    grads[0] = wide ? wide : weft_cast_at(where, g, dtype);
}

/* The gradient of an operand that is recorded as a transpose is computed transposed. The matmul then
 * writes the layout of the tensor behind the transpose, and the gradient of a weight goes straight into
 * its block. */
static void grad_matmul(const char *where, weft_tensor *node, weft_tensor *g, weft_tensor **grads) {
    weft_tensor *a = node->in[0], *b = node->in[1];
    g = weft_cast_at(where, g, (weft_dtype)a->dtype); /* for a matmul of 16-bit floats with an f32 result */
    weft_tensor *at = weft_transpose_at(where, a, -1, -2), *bt = weft_transpose_at(where, b, -1, -2);
    weft_tensor *gt = weft_transpose_at(where, g, -1, -2);
    grads[0] = weft__is_transpose(a) ? weft_transpose_at(where, weft_matmul_at(where, b, gt), -1, -2)
                                     : weft_matmul_at(where, g, bt);
    grads[1] = weft__is_transpose(b) ? weft_transpose_at(where, weft_matmul_at(where, gt, a), -1, -2)
                                     : weft_matmul_at(where, at, g);
}

static void grad_gather(const char *where, weft_tensor *node, weft_tensor *g, weft_tensor **grads) {
    const weft_attr_axis *attr = node->attr;
    grads[0] = weft__scatter(where, node->in[1], g, (int)attr->axis, attr->extent, attr->unique);
}

static void grad_scatter_add(const char *where, weft_tensor *node, weft_tensor *g, weft_tensor **grads) {
    const weft_attr_axis *attr = node->attr;
    grads[1] = weft__gather(where, g, node->in[0], (int)attr->axis, attr->unique);
}

static void grad_update(const char *where, weft_tensor *node, weft_tensor *g, weft_tensor **grads) {
    const weft_attr_axis *attr = node->attr;
    weft_tensor *offset = node->in[2];
    grads[0] = weft_update_at(where, g, at_zeros_like(node->in[1]), offset, (int)attr->axis);
    weft_tensor *index = weft_iota(g->ctx, WEFT_I32, 1, &attr->extent);
    grads[1] =
        weft_gather_at(where, g, at_add(index, weft__reshape_to(where, offset, 0, NULL)), (int)attr->axis);
}

static void grad_pack(const char *where, weft_tensor *node, weft_tensor *g, weft_tensor **grads) {
    const int64_t *offsets = node->attr;
    for (int i = 0; i < node->n_in; i++) {
        const weft_tensor *part = node->in[i];
        grads[i] = weft_narrow_at(where, g, 0, offsets[i], part->numel);
        if (!grads[i]->error) grads[i] = weft__reshape_to(where, grads[i], part->rank, part->shape);
    }
}

/* Each process has a loss of its own, and the gradient is that of their sum. */
static void grad_exchange(const char *where, weft_tensor *node, weft_tensor *g, weft_tensor **grads) {
    const weft_attr_exchange *attr = node->attr;
    grads[0] = attr->part ? weft__poison(node->ctx, where, WEFT_ERR_UNSUPPORTED,
                                         "exchange: the gradient of a part of the sum is not there: exchange "
                                         "the whole sum")
                          : weft__exchange(where, g, attr);
}

static void grad_scan(const char *where, weft_tensor *node, weft_tensor *g, weft_tensor **grads) {
    const weft_attr_scan *attr = node->attr;
    grads[0] = attr->product ? weft__products_gradient(where, node, g)
                             : weft__scan(where, g, (int)attr->axis, false, !attr->reverse);
}

static void grad_prod(const char *where, weft_tensor *node, weft_tensor *g, weft_tensor **grads) {
    grads[0] = weft__products_gradient(where, node, g);
}

/* ---- composites: gradients arrive at their OUTPUT nodes ---- */

weft_status weft__composite_expand(const char *where, const weft_tensor *t, weft_tensor **out) {
    const weft_composite *definition = weft__composite_of(t);
    const void *params = weft__params_of(t);
    if (definition->expand) {
        definition->expand(where, params, t->in, out);
    } else { /* a gradient composite: the gradient of output 0 of its forward composite */
        const weft_composite *forward = definition->forward;
        weft_tensor *y[4];
        forward->expand(where, params, t->in, y);
        weft_tensor *g = t->in[forward->n_inputs + forward->n_outputs];
        WEFT_TRY(weft__vjp(where, y, &g, 1, t->in, (size_t)definition->n_outputs, out));
        for (int i = 0; i < definition->n_outputs; i++)
            if (!out[i]) out[i] = weft_zeros_like_at(where, t->in[i]);
    }
    for (int i = 0; i < definition->n_outputs; i++) WEFT_TRY(weft_tensor_status(out[i]));
    return WEFT_OK;
}

/* The rule of an OUTPUT node. The gradient of output 0 is recorded by the composite's own gradient, unless
 * the gradient of an input is needed that this does not compute. Other outputs, and gradients of gradients,
 * use the expansion. */
static weft_status grad_output(const char *where, weft_tensor *node, weft_tensor *g, weft_tensor **grads) {
    weft_tensor *whole = node->in[0];
    const weft_composite *definition = weft__composite_of(whole);
    int index = (int)((const weft_attr_output *)node->attr)->index;
    if (definition->backward && index == 0) {
        definition->backward(where, whole, g, grads);
        return WEFT_OK;
    }
    const weft_composite *own = definition->gradient;
    if (own && index == 0 && !(node->ctx->graph->wanted >> own->n_outputs)) {
        weft_tensor *in[16], *out[16];
        int n = 0;
        for (int i = 0; i < definition->n_inputs; i++) in[n++] = whole->in[i];
        for (int i = 0; i < definition->n_outputs; i++)
            in[n++] = i == index ? node : weft__composite_output(where, whole, i);
        in[n++] = g;
        weft__composite(where, own, weft__params_of(whole), in, out);
        for (int i = 0; i < own->n_outputs; i++) grads[i] = out[i];
        return WEFT_OK;
    }
    /* Each input is replaced by a new node over it, at which the gradient ends. One input may depend on
     * another, as saved values depend on inputs of the forward pass. The driver then continues from all
     * inputs. */
    weft_tensor *out[16] = {NULL}, *in[16], *kept[16];
    for (int i = 0; i < whole->n_in; i++) {
        kept[i] = whole->in[i];
        in[i] = weft__node(node->ctx, where, WEFT_OP_RESHAPE, (weft_dtype)kept[i]->dtype, kept[i]->rank,
                           kept[i]->shape, 1, &kept[i], 0, NULL);
        WEFT_TRY(weft_tensor_status(in[i]));
    }
    memcpy(whole->in, in, (size_t)whole->n_in * sizeof *in);
    const weft_status status = weft__composite_expand(where, whole, out);
    memcpy(whole->in, kept, (size_t)whole->n_in * sizeof *kept);
    WEFT_TRY(status);
    return weft__vjp(where, &out[index], &g, 1, in, (size_t)whole->n_in, grads);
}

/* ---- second derivatives of gelu; the first derivative is an op ---- */

/* phi(x) (2 - x^2), where phi is the density of the normal distribution. */
static weft_tensor *gelu_bend(const char *where, weft_tensor *x) {
    weft_tensor *square = at_mul(x, x);
    return at_mul(at_mul_scalar(at_exp(at_mul_scalar(square, -0.5)), 0.39894228040143267794),
                  at_sub_from(2.0, square));
}

/* The second derivative of x s(z), with z = 2 sqrt(2/pi) (x + 0.044715 x^3) and the sigmoid s: s (1 - s) (2
 * z' + x (z'' + (1 - 2 s) z'^2)). */
static weft_tensor *gelu_tanh_bend(const char *where, weft_tensor *x) {
    weft_tensor *square = at_mul(x, x);
    weft_tensor *z =
        at_mul_scalar(at_mul(x, at_add_scalar(at_mul_scalar(square, 0.044715), 1.0)), 1.59576912160573071176);
    weft_tensor *first =
        at_mul_scalar(at_add_scalar(at_mul_scalar(square, 0.134145), 1.0), 1.59576912160573071176);
    weft_tensor *second = at_mul_scalar(x, 1.59576912160573071176 * 0.26829);
    weft_tensor *s = weft_sigmoid_at(where, z);
    weft_tensor *turn = at_add(second, at_mul(at_sub_from(1.0, at_mul_scalar(s, 2.0)), at_mul(first, first)));
    return at_mul(at_mul(s, at_sub_from(1.0, s)), at_add(at_mul_scalar(first, 2.0), at_mul(x, turn)));
}

/* ---- the table ---- */

typedef void (*rule)(const char *where, weft_tensor *node, weft_tensor *g, weft_tensor **grads);

#define W_ELEM1(id, name, dtypes, result, expr, grad, doc)                                                   \
    static void rule_##id(const char *where, weft_tensor *y, weft_tensor *g, weft_tensor **grads) {          \
        weft_tensor *a = y->in[0];                                                                           \
        (void)where, (void)a, (void)g;                                                                       \
        grads[0] = grad;                                                                                     \
    }
#define W_ELEM2(id, name, dtypes, result, expr, grad_a, grad_b, doc)                                         \
    static void rule_##id(const char *where, weft_tensor *y, weft_tensor *g, weft_tensor **grads) {          \
        weft_tensor *a = y->in[0], *b = y->in[1];                                                            \
        (void)where, (void)a, (void)b, (void)g;                                                              \
        grads[0] = grad_a;                                                                                   \
        grads[1] = grad_b;                                                                                   \
    }
#define W_ELEM3(id, name, dtypes, result, expr, grad_a, grad_b, grad_c, doc)                                 \
    static void rule_##id(const char *where, weft_tensor *y, weft_tensor *g, weft_tensor **grads) {          \
        weft_tensor *a = y->in[0];                                                                           \
        grads[0] = grad_a;                                                                                   \
        grads[1] = grad_b;                                                                                   \
        grads[2] = grad_c;                                                                                   \
    }
#include "ops/ops.def"

static void none(const char *where, weft_tensor *node, weft_tensor *g, weft_tensor **grads) {
    (void)where, (void)g;
    for (int i = 0; i < node->n_in; i++) grads[i] = NO_GRAD;
}

static void zero_rule(const char *where, weft_tensor *node, weft_tensor *g, weft_tensor **grads) {
    (void)where, (void)node, (void)g, (void)grads;
}

#undef NO_GRAD
#undef ZERO_GRAD
#define NO_GRAD        none
#define ZERO_GRAD      zero_rule
#define grad_composite none
static const rule rules[WEFT_OP_COUNT] = {
#define W_ELEM1(id, name, dtypes, result, expr, grad, doc)                   [WEFT_OP_##id] = rule_##id,
#define W_ELEM2(id, name, dtypes, result, expr, grad_a, grad_b, doc)         [WEFT_OP_##id] = rule_##id,
#define W_ELEM3(id, name, dtypes, result, expr, grad_a, grad_b, grad_c, doc) [WEFT_OP_##id] = rule_##id,
#define W_REDUCE(id, name, dtypes, init, expr, grad, doc)                    [WEFT_OP_##id] = grad,
#define W_NODE(id, name, grad)                                               [WEFT_OP_##id] = grad,
#include "ops/ops.def"
};

weft_status weft__gradient_rule(weft_tensor *node, weft_tensor *g, weft_tensor **grads) {
    if (node->op == WEFT_OP_OUTPUT) return grad_output(node->where, node, g, grads);
    rules[node->op](node->where, node, g, grads);
    for (int i = 0; i < node->n_in; i++)
        if (grads[i] == &not_differentiable) {
            grads[i] = NULL;
            if (weft__has_gradient(node->in[i]))
                return weft__fail(node->ctx, WEFT_ERR_UNSUPPORTED,
                                  "%s: %s%s%s is not differentiable; use weft_detach before it",
                                  node->where ? node->where : "gradient", node->path, *node->path ? ": " : "",
                                  weft__op_name(node->op));
        }
    return WEFT_OK;
}
