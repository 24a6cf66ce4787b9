/* Heavy tensors -> IR_HEAVY nodes whose operands a device can address. Each kind has a file with one
 * function, weft__build_MEMBER. Read next: operand.c, then matmul.c. */
#ifndef WEFT_COMPILER_PASSES_HEAVY_HEAVY_H
#define WEFT_COMPILER_PASSES_HEAVY_HEAVY_H

#include "compiler/passes/ir.h"
#include "ops/ops.h"

/* Makes the node of t, and an edge for each of its results: out[0], ... WEFT_ERR_UNSUPPORTED where the device
 * declines it. */
#define W_HEAVY(KIND, member, OP)                                                                            \
    weft_status weft__build_##member(weft_ir *ir, const weft_tensor *t, const ir_edge *in, ir_edge *out);
#include "heavy/heavy.def"
#undef W_HEAVY

/* ---- operand.c ---- */

/* An operand that a device can address, over the index space of its shape. */
typedef struct heavy_operand {
    ir_edge edge;
    int64_t stride[WEFT_VIEW_RANK];
} heavy_operand;

/* Whether a kind can read an operand with these strides. */
typedef bool heavy_accepts(int rank, const int64_t *shape, const int64_t *stride);
heavy_accepts weft__ir_contiguous; /* row-major without gaps */
heavy_accepts weft__ir_unit_last;  /* any strides, 1 in the last dimension */

/* Whether one map without a guard addresses the edge; *out is it then. */
bool weft__ir_addressable(const weft_ir *ir, ir_edge edge, int rank, const int64_t *shape,
                          heavy_operand *out);
/* The operand itself, or a row-major copy of it where `direct` does not accept its strides (NULL: it accepts
 * all). */
weft_status weft__ir_take_operand(weft_ir *ir, ir_edge edge, int rank, const int64_t *shape,
                                  heavy_accepts *direct, heavy_operand *out);
/* Makes the value of a node stored. */
void weft__ir_store(weft_ir *ir, int n);

/* The IR_HEAVY node of t with a copy of the descriptor, and its result `index`; negative without memory. */
int weft__ir_heavy_node(weft_ir *ir, const weft_tensor *t, const weft_heavy *heavy, int n_in,
                        const ir_edge *in);
int weft__ir_heavy_out(weft_ir *ir, int heavy, int index, weft_dtype dtype, int rank, const int64_t *shape);

/* Whether the device runs it. */
bool weft__ir_takes(const weft_ir *ir, const weft_heavy *heavy);
/* The error for an op that has no expansion. */
weft_status weft__ir_declined(const weft_ir *ir, const char *op);

/* The number of elements of dimensions from..to-1. */
int64_t weft__ir_extent_of(const int64_t *shape, int from, int to);

#endif
