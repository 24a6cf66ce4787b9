/* The matmul of complex matrices, as a composite that a device may compute as a whole. Such a device reads
 * conjugated operands in place. So neither conj nor the gradients, g b^H and a^H g, copy a matrix. On other
 * devices it is one matmul of real matrices of twice the width.
 * Must not know: devices. Read next: complex.c, matmul.c; device/cpu/gemm/gemm_complex.inc. */
#include "ops/ops.h"

static void shape(const void *params, weft_tensor *const *in, int output, weft_dtype *dtype, int *rank,
                  int64_t *dims) {
    (void)params, (void)output;
    *dtype = (weft_dtype)in[0]->dtype;
    *rank = in[0]->rank;
    for (int i = 0; i < *rank; i++) dims[i] = in[i == *rank - 1]->shape[i];
}

/* Multiplies a in place, as rows of floats, by a matrix with two rows for each row of b:
 *
 *     (re, im, re, im, ...)  x  | (re, im, ...)  |
 *                               | (-im, re, ...) |
 *
 * This takes as many multiplications as a complex product and copies only b. */
static void complex_matmul_expand(const char *where, const void *params, weft_tensor *const *in,
                                  weft_tensor **out) {
    const int64_t conj = ((const weft_prod_params *)params)->conj;
    weft_tensor *a = in[0], *b = in[1];
    const int r = a->rank;
    const int64_t k = a->shape[r - 1], n = b->shape[r - 1];
    int64_t dims[WEFT_MAX_RANK];
    weft_tensor *re = weft_unsqueeze_at(where, weft_real_at(where, b), -2),
                *im = weft_unsqueeze_at(where, weft_imag_at(where, b), -2);
    weft_tensor *minus = at_neg(im), *right = conj & 2 ? minus : im;
    weft_tensor *first[2] = {re, conj & 1   ? right
                                 : conj & 2 ? im
                                            : minus},
                *second[2] = {right, conj & 1 ? at_neg(re) : re};
    weft_tensor *rows =
        weft_complex_at(where, weft_concat_at(where, first, 2, -2), weft_concat_at(where, second, 2, -2));
    for (int i = 0; i < r; i++) dims[i] = i == r - 2 ? 2 * k : b->shape[i];
    if (!weft__poisoned(rows)) rows = weft__reshape_to(where, rows, r, dims);
    weft_tensor *wide = weft_view_as_real_at(where, rows), *flat = weft_view_as_real_at(where, a);
    dims[r - 1] = 2 * n;
    if (!weft__poisoned(wide)) wide = weft__reshape_to(where, wide, r, dims);
    for (int i = 0; i < r; i++) dims[i] = i == r - 1 ? 2 * k : a->shape[i];
    if (!weft__poisoned(flat)) flat = weft__reshape_to(where, flat, r, dims);
    weft_tensor *y = weft_matmul_at(where, flat, wide);
    dims[r - 1] = n, dims[r] = 2;
    out[0] = weft__poisoned(y) ? y : weft_view_as_complex_at(where, weft__reshape_to(where, y, r + 1, dims));
}

static weft_tensor *turned(const char *where, weft_tensor *x) { return weft_transpose_at(where, x, -1, -2); }

/* Gradients of a' b', where ' is conjugation if asked for. The gradient of a' is g (b')^H; the gradient of a
 * is that or its conjugate. An operand that is recorded as a transpose gets its gradient transposed, as in
 * autodiff/rules.c. */
static void complex_matmul_backward(const char *where, weft_tensor *whole, weft_tensor *g,
                                    weft_tensor **grads) {
    const int64_t conj = ((const weft_prod_params *)weft__params_of(whole))->conj;
    const bool ca = conj & 1, cb = conj & 2;
    weft_tensor *a = whole->in[0], *b = whole->in[1], *g_conj = weft_conj_at(where, g);
    weft_tensor *left = ca ? g_conj : g, *by = ca == cb ? weft_conj_at(where, b) : b;
    grads[0] = weft__is_transpose(a) ? turned(where, weft_matmul_at(where, by, turned(where, left)))
                                     : weft_matmul_at(where, left, turned(where, by));
    weft_tensor *right = cb ? g_conj : g, *from = ca == cb ? weft_conj_at(where, a) : a;
    grads[1] = weft__is_transpose(b) ? turned(where, weft_matmul_at(where, turned(where, right), from))
                                     : weft_matmul_at(where, turned(where, from), right);
}

static const weft_composite complex_product = {
    .name = "matmul",
    .kind = WEFT_HEAVY_MATMUL,
    .n_inputs = 2,
    .n_outputs = 1,
    .params_bytes = sizeof(weft_prod_params),
    .shape = shape,
    .expand = complex_matmul_expand,
    .backward = complex_matmul_backward,
};

/* The tensor that x is recorded as the conjugate of, looking through movements; NULL: x is no conjugate. */
static weft_tensor *unconjugated(const char *where, weft_tensor *x) {
    if (x->error || x->leaf || x->n_in == 0) return NULL;
    weft_tensor *in = x->in[0];
    if (x->op == WEFT_OP_COMPLEX) {
        const weft_tensor *minus = x->in[1];
        const bool is = in->op == WEFT_OP_REAL && minus->op == WEFT_OP_NEG &&
                        minus->in[0]->op == WEFT_OP_IMAG && minus->in[0]->in[0] == in->in[0];
        return is ? in->in[0] : NULL;
    }
    const bool moves = x->op == WEFT_OP_PERMUTE || x->op == WEFT_OP_RESHAPE || x->op == WEFT_OP_EXPAND ||
                       x->op == WEFT_OP_SLICE;
    weft_tensor *plain = moves ? unconjugated(where, in) : NULL;
    return plain ? weft__node(x->ctx, where, (weft_op)x->op, (weft_dtype)x->dtype, x->rank, x->shape, 1,
                              &plain, x->attr_bytes, x->attr)
                 : NULL;
}

weft_tensor *weft__complex_matmul(const char *where, weft_tensor *a, weft_tensor *b) {
    weft_tensor *in[2] = {a, b}, *out;
    weft_prod_params params = {0};
    char text[WEFT_SHAPE_TEXT];
    if (a->rank == WEFT_MAX_RANK)
        return weft__poison(a->ctx, where, WEFT_ERR_SHAPE,
                            "matmul: %s: the rank of complex matrices must be at most %d",
                            weft__tensor_text(a, text), WEFT_MAX_RANK - 1);
    for (int i = 0; i < 2; i++) {
        weft_tensor *plain = unconjugated(where, in[i]);
        if (!plain) continue;
        in[i] = plain;
        params.conj |= 1 << i;
    }
    if (in[0]->error || in[1]->error) return in[0]->error ? in[0] : in[1];
    weft__composite(where, &complex_product, &params, in, &out);
    return out;
}
