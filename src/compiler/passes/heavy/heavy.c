/* The table of build functions, one for each kind of heavy operation. Must not know: kinds beyond this table.
 * Read next: operand.c. */
#include "compiler/passes/heavy/heavy.h"

typedef weft_status build_heavy(weft_ir *ir, const weft_tensor *t, const ir_edge *in, ir_edge *out);

static build_heavy *const table[] = {
#define W_HEAVY(KIND, member, OP) [WEFT_HEAVY_##KIND] = weft__build_##member,
#include "heavy/heavy.def"
#undef W_HEAVY
};

weft_status weft__ir_heavy(weft_ir *ir, const weft_tensor *t, const ir_edge *in, ir_edge *out) {
    weft_heavy_kind kind = weft__heavy_of_op(t->op);
    if (kind == WEFT_HEAVY_NONE) kind = weft__composite_of(t)->kind;
    return kind == WEFT_HEAVY_NONE ? WEFT_ERR_UNSUPPORTED : table[kind](ir, t, in, out);
}
