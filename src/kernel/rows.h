/* What a kernel's printer, verifier and executors know of a row of ops.def: its name, arity and dtypes.
 * Not its meaning. */
#ifndef WEFT_KERNEL_ROWS_H
#define WEFT_KERNEL_ROWS_H

#include <weft/dtype.h>
#include "graph/opcode.h"

/* The dtypes an op takes, as in ops.def. */
typedef enum weft_row_dtypes {
    WEFT_ROW_FLOAT,
    WEFT_ROW_NUMBER,  /* float and integer */
    WEFT_ROW_INTEGER, /* integer and bool */
    WEFT_ROW_ANY,
    WEFT_ROW_BOOLS
} weft_row_dtypes;

typedef struct weft_row {
    const char *name;
    int arity;   /* 1 for a reduction; 0 where the op is no row */
    bool reduce; /* a W_REDUCE */
    bool to_bool;
    weft_row_dtypes dtypes;
} weft_row;

/* The row of an op; NULL where the op is none (matmul, reshape, ...) or unknown. */
const weft_row *weft__row(int op);
/* Whether the row accepts operands of that dtype. Complex numbers are in no row yet. */
bool weft__row_takes(const weft_row *row, weft_dtype dtype);
/* Whether results of the op, computed in an integer of so many bytes, leave the range of a dtype that is
 * narrower, so that they have to wrap. */
bool weft__row_wraps(int op, weft_dtype dtype, size_t bytes);
/* Whether the op is a function of many instructions. */
bool weft__row_dear(int op);

#endif
