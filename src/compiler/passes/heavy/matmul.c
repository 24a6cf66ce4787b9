/* Builds the nodes of matmuls: strides of both matrices and merged batch dimensions. Must not know: how a
 * device multiplies. Read next: heavy/matmul.h. */
#include <string.h>
#include "compiler/passes/heavy/heavy.h"

/* If one of the last two dimensions has an extent of 1, gives it the stride that a matrix library expects. */
static void matrix_strides(const int64_t *shape, int64_t *stride) {
    if (shape[1] == 1 && shape[0] == 1) {
        stride[0] = stride[1] = 1;
    } else if (shape[1] == 1) { /* a column: contiguous, or a row-major matrix with one column */
        stride[1] = stride[0] == 1 ? shape[0] : 1;
    } else if (shape[0] == 1) {
        stride[0] = stride[1] == 1 ? shape[1] : 1;
    }
}

static bool is_matrix(int rank, const int64_t *shape, const int64_t *stride) {
    int64_t s[2] = {stride[rank - 2], stride[rank - 1]};
    matrix_strides(&shape[rank - 2], s);
    if (s[1] == 1) return s[0] >= shape[rank - 1];
    return s[0] == 1 && s[1] >= shape[rank - 2];
}

/* Merges adjacent batch dimensions where both operands allow it: the outer stride is the inner stride times
 * the inner extent. False if more dimensions remain than the descriptor holds. */
static bool batch_of(weft_heavy_matmul *mm, int n, const int64_t *extent, const int64_t *a,
                     const int64_t *b) {
    mm->batch_rank = 0;
    for (int i = 0; i < n; i++) {
        int last = mm->batch_rank - 1;
        if (extent[i] == 1) continue;
        if (last >= 0 && mm->a_batch[last] == a[i] * extent[i] && mm->b_batch[last] == b[i] * extent[i]) {
            mm->batch[last] *= extent[i];
            mm->a_batch[last] = a[i];
            mm->b_batch[last] = b[i];
            continue;
        }
        if (mm->batch_rank == WEFT_BATCH_DIMS) return false;
        mm->batch[mm->batch_rank] = extent[i];
        mm->a_batch[mm->batch_rank] = a[i];
        mm->b_batch[mm->batch_rank++] = b[i];
    }
    int64_t step = mm->m * mm->n;
    for (int i = mm->batch_rank - 1; i >= 0; i--) {
        mm->c_batch[i] = step;
        step *= mm->batch[i];
    }
    return true;
}

/* Like is_matrix for complex matrices, whose strides count floats: two for each number. */
static bool is_matrix_of_pairs(int rank, const int64_t *shape, const int64_t *stride) {
    int64_t half[WEFT_VIEW_RANK];
    bool even = stride[rank - 1] == 1;
    for (int i = 0; i < rank - 1; i++) {
        half[i] = stride[i] / 2;
        even = even && stride[i] % 2 == 0;
    }
    return even && is_matrix(rank - 1, shape, half);
}

/* Writes the shape in memory, where a complex number is a pair, and returns its rank. */
static int stored_shape(const weft_tensor *x, int64_t *shape) {
    memcpy(shape, x->shape, (size_t)x->rank * sizeof *shape);
    if (!is_complex(x)) return x->rank;
    shape[x->rank] = 2;
    return x->rank + 1;
}

/* Takes a matrix, or a batch of matrices, as an operand. Its strides count elements; a complex number is one.
 * With `flat` the operand has no gaps. */
static weft_status take_matrix(weft_ir *ir, ir_edge edge, const weft_tensor *x, bool flat,
                               heavy_operand *out) {
    int64_t shape[WEFT_MAX_RANK + 1];
    const int rank = stored_shape(x, shape);
    const bool pairs = is_complex(x);
    WEFT_TRY(weft__ir_take_operand(ir, edge, rank, shape,
                                   flat    ? weft__ir_contiguous
                                   : pairs ? is_matrix_of_pairs
                                           : is_matrix,
                                   out));
    for (int i = 0; i < rank && pairs; i++) out->stride[i] /= 2;
    matrix_strides(&x->shape[x->rank - 2], &out->stride[x->rank - 2]);
    return WEFT_OK;
}

/* t is a matmul, or the composite of a complex matmul. */
weft_status weft__build_matmul(weft_ir *ir, const weft_tensor *t, const ir_edge *in, ir_edge *out) {
    const weft_tensor *a = t->in[0], *b = t->in[1];
    const int rank = a->rank;
    const bool pairs = is_complex(a);
    heavy_operand left, right;
    weft_heavy heavy = {.kind = WEFT_HEAVY_MATMUL};
    weft_heavy_matmul *mm = &heavy.as.matmul;
    mm->dtype = a->dtype;
    mm->out_dtype = (uint8_t)t->dtype;
    mm->m = a->shape[rank - 2];
    mm->k = a->shape[rank - 1];
    mm->n = b->shape[rank - 1];
    if (pairs) mm->conj = (uint8_t)((const weft_prod_params *)weft__params_of(t))->conj;
    if (pairs && !weft__ir_takes(ir, &heavy)) return WEFT_ERR_UNSUPPORTED;
    WEFT_TRY(take_matrix(ir, in[0], a, false, &left));
    WEFT_TRY(take_matrix(ir, in[1], b, false, &right));
    if (!batch_of(mm, rank - 2, a->shape, left.stride, right.stride)) { /* the batch dimensions of contiguous
                                                                         * copies merge into one */
        WEFT_TRY(take_matrix(ir, in[0], a, true, &left));
        WEFT_TRY(take_matrix(ir, in[1], b, true, &right));
        batch_of(mm, rank - 2, a->shape, left.stride, right.stride);
    }
    mm->a_m = left.stride[rank - 2];
    mm->a_k = left.stride[rank - 1];
    mm->b_k = right.stride[rank - 2];
    mm->b_n = right.stride[rank - 1];
    mm->c_m = mm->n;
    if (!weft__ir_takes(ir, &heavy)) return weft__ir_declined(ir, "matmul");
    int64_t shape[WEFT_MAX_RANK + 1];
    const int stored = stored_shape(a, shape);
    shape[rank - 1] = mm->n;
    int n = weft__ir_heavy_node(ir, t, &heavy, 2, (ir_edge[]){left.edge, right.edge});
    const weft_dtype dtype = (weft_dtype)t->dtype;
    if (n >= 0) n = weft__ir_heavy_out(ir, n, 0, pairs ? weft__part_dtype(dtype) : dtype, stored, shape);
    *out = (ir_edge){n, -1};
    return n < 0 ? weft__ir_failed(ir) : WEFT_OK;
}
