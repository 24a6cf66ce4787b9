/* What the printer, the verifier and the executors of kernels know of a row of ops.def: name, arity, dtypes.
 * Must not know: what a row means. Read next: kernel.c, ops/ops.def. */
#ifndef WEFT_KERNEL_ROWS_H
#define WEFT_KERNEL_ROWS_H

#include <weft/dtype.h>
#include "graph/opcode.h"

/* The dtypes that an op takes, as in ops.def. */
typedef enum weft_row_dtypes {
    WEFT_ROW_FLOAT,
    WEFT_ROW_NUMBER,  /* float and integer */
    WEFT_ROW_INTEGER, /* integer and bool */
    WEFT_ROW_ANY,
    WEFT_ROW_BOOLS
} weft_row_dtypes;

typedef struct weft_row {
    const char *name;
    int arity;   /* 1 for a reduction; 0 if the op is not a row */
    bool reduce; /* a W_REDUCE */
    bool to_bool;
    weft_row_dtypes dtypes;
} weft_row;

/* Returns the row of an op. NULL if the op is not a row (matmul, reshape, ...) or unknown. */
const weft_row *weft__row(int op);
/* Does the row accept operands of the dtype? No row takes complex numbers. */
bool weft__row_takes(const weft_row *row, weft_dtype dtype);
/* Must results of the op be wrapped? That is so if they are computed in an integer of `bytes` bytes and can
 * leave the range of a narrower dtype. */
bool weft__row_wraps(int op, weft_dtype dtype, size_t bytes);
/* Is the op expensive, such as exp or pow? A cheap op is a few machine instructions. */
bool weft__row_expensive(int op);

#endif
