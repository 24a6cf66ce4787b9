/* Turns heavy tensors into IR_HEAVY nodes whose operands a device can address. Each kind of heavy operation
 * has a file with one function, weft__build_MEMBER. Must not know: how a device computes them. Read next:
 * operand.c, then matmul.c. */
#ifndef WEFT_COMPILER_PASSES_HEAVY_HEAVY_H
#define WEFT_COMPILER_PASSES_HEAVY_HEAVY_H

#include "compiler/passes/ir.h"
#include "ops/ops.h"

/* Adds the node of t and writes an edge for each of its results: out[0], out[1], ... Returns
 * WEFT_ERR_UNSUPPORTED if the device declines it. */
#define W_HEAVY(KIND, member, OP)                                                                            \
    weft_status weft__build_##member(weft_ir *ir, const weft_tensor *t, const ir_edge *in, ir_edge *out);
#include "heavy/heavy.def"
#undef W_HEAVY

/* ---- operand.c ---- */

/* An operand that a device can address: one map over its shape, with strides in elements and no guard. */
typedef struct heavy_operand {
    ir_edge edge;
    int64_t stride[WEFT_VIEW_RANK];
} heavy_operand;

/* Can a kind of heavy operation read an operand with these strides? */
typedef bool heavy_accepts(int rank, const int64_t *shape, const int64_t *stride);
heavy_accepts weft__ir_contiguous; /* row-major, no gaps */
heavy_accepts weft__ir_unit_last;  /* stride 1 in the last dimension, any others */

/* Can one map without a guard address the edge? Then writes *out. */
bool weft__ir_addressable(const weft_ir *ir, ir_edge edge, int rank, const int64_t *shape,
                          heavy_operand *out);
/* Writes the operand itself, or a row-major copy of it if `direct` does not accept its strides. NULL accepts
 * all strides. */
weft_status weft__ir_take_operand(weft_ir *ir, ir_edge edge, int rank, const int64_t *shape,
                                  heavy_accepts *direct, heavy_operand *out);
/* Marks the value of a node as stored. A leaf has its memory anyway. */
void weft__ir_store(weft_ir *ir, int n);

/* Adds the IR_HEAVY node of t with a copy of the descriptor. -1 if memory is gone. */
int weft__ir_heavy_node(weft_ir *ir, const weft_tensor *t, const weft_heavy *heavy, int n_in,
                        const ir_edge *in);
int weft__ir_heavy_out(weft_ir *ir, int heavy, int index, weft_dtype dtype, int rank, const int64_t *shape);

bool weft__ir_takes(const weft_ir *ir, const weft_heavy *heavy);
/* Fails with the message for an op that the device declines and that has no expansion. */
weft_status weft__ir_declined(const weft_ir *ir, const char *op);

/* Product of the extents of dimensions from..to-1. */
int64_t weft__ir_extent_of(const int64_t *shape, int from, int to);

#endif
