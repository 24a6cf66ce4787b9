/* Matmul: c[i] = a[i] b[i] for each batch index i, (m, k) x (k, n) -> (m, n). Sums accumulate in f32 or
 * wider. Must not know: devices. Read next: heavy.h. */
#ifndef WEFT_HEAVY_MATMUL_H
#define WEFT_HEAVY_MATMUL_H

#include "kernel/kernel.h"

#define WEFT_BATCH_DIMS 4

/* Operands. With an epilogue, the arguments of its kernel take the place of C. Row sums are the last
 * operand. */
enum { WEFT_MATMUL_A, WEFT_MATMUL_B, WEFT_MATMUL_C };

/* Strides count elements. c has stride 1 along n.
 *
 * With an epilogue, c is contiguous. The result is what the epilogue's map kernel stores (kernel/epilogue.c).
 * The kernel's loads of argument `product` yield the elements of c, rounded to out_dtype. c is in memory only
 * if the kernel writes it. */
typedef struct weft_heavy_matmul {
    uint8_t dtype;     /* of a and b: f32, f64, f16, bf16, i32, i64; c64, c128: strides count complex
                        * numbers */
    uint8_t out_dtype; /* of c: the same, or f32 */
    uint8_t conj;      /* complex only; bits: 1 conjugates a, 2 conjugates b */
    int batch_rank;
    int64_t batch[WEFT_BATCH_DIMS], a_batch[WEFT_BATCH_DIMS], b_batch[WEFT_BATCH_DIMS],
        c_batch[WEFT_BATCH_DIMS];
    int64_t m, n, k;
    int64_t a_m, a_k, b_k, b_n,
        c_m;                     /* one of a_m, a_k is 1, and one of b_k, b_n (extent 1 aside); all >= 0 */
    const weft_kernel *epilogue; /* NULL: none */
    int product;
    bool sums; /* also returns the m sums of a over k; then there is no batch, and a has floats */
} weft_heavy_matmul;

/* Returns the dtype of the row sums. Bool means that this dtype has no row sums. */
static inline weft_dtype weft__matmul_sums_dtype(const weft_heavy_matmul *mm) {
    return mm->dtype == WEFT_F64                        ? WEFT_F64
           : weft_dtype_is_float((weft_dtype)mm->dtype) ? WEFT_F32
                                                        : WEFT_BOOL;
}

/* Returns the number of operands before the row sums. */
static inline int weft__matmul_sums_at(const weft_heavy_matmul *mm) {
    return mm->epilogue ? WEFT_MATMUL_C + mm->epilogue->n_args : WEFT_MATMUL_C + 1;
}

#endif
