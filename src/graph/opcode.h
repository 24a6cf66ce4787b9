/* The number of every op, made from the op table. Tables are indexed by it. Files and messages use the op's
 * name, since numbers change when the table grows.
 * Must not know: what ops mean. Read next: ops/ops.def. */
#ifndef WEFT_GRAPH_OPCODE_H
#define WEFT_GRAPH_OPCODE_H

typedef enum weft_op {
#define W_ELEM1(id, name, dtypes, result, expr, grad, doc)                   WEFT_OP_##id,
#define W_ELEM2(id, name, dtypes, result, expr, grad_a, grad_b, doc)         WEFT_OP_##id,
#define W_ELEM3(id, name, dtypes, result, expr, grad_a, grad_b, grad_c, doc) WEFT_OP_##id,
#define W_REDUCE(id, name, dtypes, init, expr, grad, doc)                    WEFT_OP_##id,
#define W_NODE(id, name, grad)                                               WEFT_OP_##id,
#include "ops/ops.def"
    WEFT_OP_COUNT
} weft_op;

#endif
