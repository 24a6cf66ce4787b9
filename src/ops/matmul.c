/* Matrix multiplication: y (..., m, n) = a (..., m, k) b (..., k, n). Leading dimensions broadcast. A matrix
 * b that all batches of a share is one matmul over (batch * m) rows. So neither b nor its gradient is copied
 * or summed over the batch. Gradients: da = dy b^T, db = a^T dy.
 * Must not know: devices. Read next: complex_matmul.c, autodiff/rules.c. */
#include "ops/ops.h"

static weft_tensor *node(const char *where, weft_tensor *a, weft_tensor *b) {
    if (is_complex(a)) return weft__complex_matmul(where, a, b);
    int64_t shape[WEFT_MAX_RANK];
    for (int i = 0; i < a->rank; i++) shape[i] = i == a->rank - 1 ? b->shape[b->rank - 1] : a->shape[i];
    return weft__node(a->ctx, where, WEFT_OP_MATMUL, (weft_dtype)a->dtype, a->rank, shape, 2,
                      (weft_tensor *const[]){a, b}, 0, NULL);
}

/* The matmul of two tensors of rank 2 or more. */
static weft_tensor *matmul_product(const char *where, weft_tensor *a, weft_tensor *b) {
    int64_t m = a->shape[a->rank - 2], k = a->shape[a->rank - 1], n = b->shape[b->rank - 1];
    char ta[WEFT_SHAPE_TEXT], tb[WEFT_SHAPE_TEXT];
    if (b->shape[b->rank - 2] != k)
        return weft__poison(a->ctx, where, WEFT_ERR_SHAPE,
                            "matmul: inner sizes differ: a %s, b %s (%lld and %lld)%s",
                            weft__tensor_text(a, ta), weft__tensor_text(b, tb), (long long)k,
                            (long long)b->shape[b->rank - 2], n == k ? "; did you mean b transposed?" : "");
    if (b->rank == 2 && a->rank > 2) {
        int64_t shape[WEFT_MAX_RANK], rows[2] = {a->numel && k ? a->numel / k : 0, k};
        if (!rows[0]) {
            rows[0] = 1;
            for (int i = 0; i < a->rank - 1; i++) rows[0] *= a->shape[i];
        }
        for (int i = 0; i < a->rank; i++) shape[i] = i == a->rank - 1 ? n : a->shape[i];
        return weft__reshape_to(where, node(where, weft__reshape_to(where, a, 2, rows), b), a->rank, shape);
    }
    int batch_rank;
    int64_t batch[WEFT_MAX_RANK];
    if (!weft__broadcast(a->rank - 2, a->shape, b->rank - 2, b->shape, &batch_rank, batch))
        return weft__poison(a->ctx, where, WEFT_ERR_SHAPE,
                            "matmul: leading dimensions do not broadcast: a %s, b %s",
                            weft__tensor_text(a, ta), weft__tensor_text(b, tb));
    batch[batch_rank] = m;
    batch[batch_rank + 1] = k;
    a = weft__expand_to(where, a, batch_rank + 2, batch);
    batch[batch_rank] = k;
    batch[batch_rank + 1] = n;
    b = weft__expand_to(where, b, batch_rank + 2, batch);
    return a->error ? a : b->error ? b : node(where, a, b);
}

weft_tensor *weft_matmul_at(const char *where, weft_tensor *a, weft_tensor *b) {
    weft_tensor *in[2] = {a, b}, *bad = weft__reject("matmul", where, in, 2);
    if (bad || !a) return bad;
    char ta[WEFT_SHAPE_TEXT], tb[WEFT_SHAPE_TEXT];
    if (a->dtype != b->dtype || a->dtype == WEFT_BOOL)
        return weft__poison(a->ctx, where, WEFT_ERR_DTYPE,
                            "matmul: a %s and b %s must be numbers of one dtype; convert with weft_cast",
                            weft__tensor_text(a, ta), weft__tensor_text(b, tb));
    if (a->rank == 0 || b->rank == 0)
        return weft__poison(a->ctx, where, WEFT_ERR_SHAPE, "matmul: a %s, b %s: a scalar is not a matrix",
                            weft__tensor_text(a, ta), weft__tensor_text(b, tb));
    bool row = a->rank == 1, column = b->rank == 1;
    if (row) a = weft_unsqueeze_at(where, a, 0);
    if (column) b = weft_unsqueeze_at(where, b, 1);
    weft_dtype dtype = (weft_dtype)a->dtype;
    bool narrow =
        !weft_dtype_is_float(dtype) && weft_dtype_size(dtype) < 4; /* i32 wraps to the same values */
    if (narrow) {
        a = weft_cast_at(where, a, WEFT_I32);
        b = weft_cast_at(where, b, WEFT_I32);
    }
    weft_tensor *y = matmul_product(where, a, b);
    if (y->error) return y;
    if (narrow) y = weft_cast_at(where, y, dtype);
    if (column) y = weft_squeeze_at(where, y, -1);
    if (row) y = weft_squeeze_at(where, y, column ? -1 : -2);
    return y;
}
