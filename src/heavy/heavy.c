/* The table of classes, and what a class leaves out. Read next: matmul.c. */
#include "graph/opcode.h"
#include "heavy/heavy.h"

static const weft_heavy_class *const classes[] = {
#define W_HEAVY(KIND, member, OP) [WEFT_HEAVY_##KIND] = &weft__heavy_##member,
#include "heavy/heavy.def"
#undef W_HEAVY
};

static const int ops[] = {
#define W_HEAVY(KIND, member, OP) [WEFT_HEAVY_##KIND] = OP,
#include "heavy/heavy.def"
#undef W_HEAVY
};

weft_heavy_kind weft__heavy_of_op(int op) {
    for (int kind = 0; kind < WEFT_HEAVY_KINDS; kind++)
        if (ops[kind] == op) return (weft_heavy_kind)kind;
    return WEFT_HEAVY_NONE;
}

const weft_heavy_class *weft__heavy_class(const weft_heavy *heavy) { return classes[heavy->kind]; }

int weft__heavy_results(const weft_heavy *heavy) {
    const weft_heavy_class *c = classes[heavy->kind];
    return c->results ? c->results(heavy) : 1;
}

int weft__heavy_base(const weft_heavy *heavy) {
    const weft_heavy_class *c = classes[heavy->kind];
    return c->base ? c->base(heavy) : -1;
}

const weft_kernel *weft__heavy_epilogue(const weft_heavy *heavy) {
    const weft_heavy_class *c = classes[heavy->kind];
    return c->epilogue ? c->epilogue(heavy) : NULL;
}

weft_dtype weft__heavy_dtype(const weft_heavy *heavy) {
    const weft_heavy_class *c = classes[heavy->kind];
    return c->dtype ? c->dtype(heavy) : WEFT_F32;
}

bool weft__heavy_extents(int count, const int64_t *extents) {
    for (int i = 0; i < count; i++)
        if (extents[i] < 0) return false;
    return true;
}
