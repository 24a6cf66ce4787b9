/* The table of passes, one a kind. Read next: operand.c. */
#include "compiler/passes/heavy/heavy.h"

typedef weft_status build_heavy(weft_ir *ir, const weft_tensor *t, const ir_edge *in, ir_edge *out);

static const struct {
    int op; /* WEFT_HEAVY_NO_OP: of composites alone */
    build_heavy *build;
} table[] = {
#define W_HEAVY(KIND, member, OP) [WEFT_HEAVY_##KIND] = {OP, weft__build_##member},
#include "heavy/heavy.def"
#undef W_HEAVY
};

static weft_heavy_kind kind_of(const weft_tensor *t) {
    for (int kind = 0; kind < WEFT_HEAVY_KINDS; kind++)
        if (table[kind].op == t->op) return (weft_heavy_kind)kind;
    return weft__composite_of(t)->kind;
}

weft_status weft__ir_heavy(weft_ir *ir, const weft_tensor *t, const ir_edge *in, ir_edge *out) {
    const weft_heavy_kind kind = kind_of(t);
    return kind == WEFT_HEAVY_NONE ? WEFT_ERR_UNSUPPORTED : table[kind].build(ir, t, in, out);
}
