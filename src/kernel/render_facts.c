/* What a rendered launch moves and computes, from the choices that its source is made of: passes over a row,
 * the width of accesses, folds in memory, an estimate of instructions. For prices and tests; the source does
 * not depend on it. Must not know: cards. Read next: source.h, device/gpu/card/price.c. */
#include <string.h>

#include "kernel/render.h"
#include "kernel/rows.h"

/* Instructions of a work-item for one value, counted in the SASS that NVRTC 13 makes for sm_90; an access
 * also takes its index. */
enum {
    CHEAP = 1,
    ROOT = 8,    /* division, roots */
    LONG = 11,   /* exponentials and the like */
    NEAR = 3,    /* the same for numbers that were rounded to 16 bits */
    DRAW = 60,   /* random bits */
    ACCESS = 6,  /* one element alone */
    NARROW = 3,  /* rounding to 16 bits */
    SPANNED = 1, /* an element of a span, besides the access */
    TURN = 4,    /* a turn of a loop */
    JOIN = 40    /* lanes that join their sums */
};

enum { WIDEST = 16, UNROLLED = 4, REGISTERS = 40, NO_LOOP = -1 };

static int64_t facts_size(const weft_render *r, int v) {
    return (int64_t)weft_dtype_size((weft_dtype)r->kernel->args[weft__code_of(r, v)->arg].dtype);
}

static bool is_access(const weft_render *r, int v) {
    const weft_instr_kind kind = weft__code_of(r, v)->kind;
    return kind == WEFT_INSTR_LOAD || kind == WEFT_INSTR_STORE || kind == WEFT_INSTR_GATHER;
}

/* The bytes of one access by a work-item. */
static int64_t facts_width(const weft_render *r, int v) {
    return facts_size(r, v) * (weft__in_span(r, v) ? r->lanes.span : 1);
}

/* The bytes that one access could have. */
static int64_t facts_allowed(const weft_render *r, int v) {
    int64_t n = WIDEST / facts_size(r, v);
    while (n > 1 && !weft__could_span(r, v, (int)n)) n /= 2;
    return weft__larger(n, 1) * facts_size(r, v);
}

/* Is v a sum of columns in memory? Rows of known length have them in registers. */
static bool is_folded_column(const weft_render *r, int v) {
    return !r->lanes.turns && weft__is_column_fold(r, v);
}

static double instructions_of(const weft_render *r, int v) {
    const weft_instr *in = weft__code_of(r, v);
    switch ((weft_instr_kind)in->kind) {
    case WEFT_INSTR_CONST: return 0;
    case WEFT_INSTR_RANDOM: return DRAW;
    case WEFT_INSTR_LOAD:
    case WEFT_INSTR_GATHER:
    case WEFT_INSTR_STORE: {
        const bool rounds = in->kind == WEFT_INSTR_STORE && facts_size(r, v) == 2;
        return (weft__in_span(r, v) ? SPANNED + (double)ACCESS / r->lanes.span : ACCESS) +
               (rounds ? NARROW : 0);
    }
    case WEFT_INSTR_CAST: return weft_dtype_size((weft_dtype)in->dtype) == 2 ? NARROW : CHEAP;
    case WEFT_INSTR_CALC:
        if (weft__row_expensive(in->op)) return weft__is_near(r, in) ? NEAR : LONG;
        if (in->op == WEFT_OP_DIV || in->op == WEFT_OP_SQRT || in->op == WEFT_OP_RSQRT ||
            in->op == WEFT_OP_RECIP)
            return ROOT;
        return CHEAP;
    default: return CHEAP;
    }
}

/* How often each element of the innermost level is computed: once for each index. */
static double all_elements(const weft_render *r) {
    return (double)weft__kernel_rows(r->kernel) * (double)weft__kernel_row_length(r->kernel);
}

/* Adds a value that a loop over `elements` elements computes, after `passes` other loops that did. */
static void add_value(const weft_render *r, int v, double elements, int passes, weft_launch_facts *to) {
    const weft_kernel *k = r->kernel;
    to->work[WEFT_UNIT_ISSUE] += elements * instructions_of(r, v);
    if (is_folded_column(r, v)) { /* a read and a write for each element of each row */
        to->sums += 2 * sizeof(float) * elements;
        to->work[WEFT_UNIT_ISSUE] += 2 * ACCESS * elements;
    }
    if (!is_access(r, v)) return;
    const weft_map *m = &k->views[weft__code_of(r, v)->view].map[0];
    const bool lies_along = r->lanes.dim >= 0 && weft__moves_along(m, r->lanes.dim);
    if (lies_along) {
        to->width = (int)weft__larger(to->width, facts_width(r, v));
        to->allowed = (int)weft__larger(to->allowed, facts_allowed(r, v));
    }
    if (passes > 0 && lies_along && weft__code_of(r, v)->kind != WEFT_INSTR_STORE) {
        to->again += elements * (double)facts_size(r, v);
        if (passes == 1) to->row += (double)facts_size(r, v) * (double)weft__kernel_row_length(k);
    }
}

/* The bytes that a work-item reads before it needs the first of them, in the loop of a stage or in a kernel
 * without loops. Compilers unroll loops that do not store. */
static int at_once(const weft_render *r, int stage) {
    int64_t bytes = 0;
    bool stores = false;
    const bool loop = stage >= 0;
    for (int v = 0; v < r->kernel->n_code; v++) {
        if (loop && !r->wanted[v] && !weft__is_held_from(r, v, stage)) continue;
        const weft_instr_kind kind = weft__code_of(r, v)->kind;
        stores = stores || kind == WEFT_INSTR_STORE || is_folded_column(r, v);
        if (kind != WEFT_INSTR_LOAD && kind != WEFT_INSTR_GATHER) continue;
        const weft_map *m = &r->kernel->views[weft__code_of(r, v)->view].map[0];
        if (r->lanes.dim >= 0 && weft__moves_along(m, r->lanes.dim)) bytes += facts_width(r, v);
    }
    if (loop && r->lanes.turns) return (int)(r->lanes.turns * bytes);
    return (int)(loop && !stores ? UNROLLED * bytes : bytes);
}

static int larger_int(int a, int b) { return a > b ? a : b; }

static void add_loop(weft_render *r, int stage, int *passes, weft_launch_facts *to) {
    const double elements = all_elements(r);
    weft__find_wanted(r, stage);
    for (int v = 0; v < r->kernel->n_code; v++) {
        if (!weft__is_held_from(r, v, stage) && (!r->wanted[v] || weft__is_kept(r, v, stage))) continue;
        const bool reduces = weft__code_of(r, v)->kind == WEFT_INSTR_REDUCE;
        add_value(r, v, elements, passes[v]++, to);
        if (reduces && r->lanes.reduced)
            to->work[WEFT_UNIT_ISSUE] += (double)weft__kernel_rows(r->kernel) * r->lanes.count * JOIN;
    }
    to->work[WEFT_UNIT_ISSUE] += elements * TURN / r->lanes.span;
    to->at_once = larger_int(to->at_once, at_once(r, stage));
}

/* A value that exists once for each row. If lanes share the row, each of them computes it. */
static void add_row_value(const weft_render *r, int v, weft_launch_facts *to) {
    const weft_kernel *k = r->kernel;
    const double rows = (double)weft__kernel_rows(k);
    if (k->n_reduce == 0)
        add_value(r, v, rows, 0, to);
    else
        to->work[WEFT_UNIT_ISSUE] += rows * (r->lanes.reduced ? r->lanes.count : 1) * instructions_of(r, v);
}

weft_launch_facts weft__render_facts(weft_render *r, int64_t per) {
    enum { VALUES_MOST = 512 };
    const weft_kernel *k = r->kernel;
    int passes[VALUES_MOST] = {0}; /* loops that have computed a value so far */
    double flops = 0;
    weft_launch_facts to = {.registers = REGISTERS};
    weft__kernel_cost(k, &flops, &to.bytes);
    if (k->n_code > VALUES_MOST) { /* as good as any: one instruction for each operation */
        to.work[WEFT_UNIT_ISSUE] = flops;
        return to;
    }
    for (int s = 0; s <= r->stages; s++)
        if (weft__stage_is_full(r, s)) add_loop(r, s, passes, &to);
    for (int v = 0; v < k->n_code; v++)
        if (!weft__level_inner(weft__code_of(r, v)->level) && weft__code_of(r, v)->kind != WEFT_INSTR_REDUCE)
            add_row_value(r, v, &to);
    if (k->n_reduce == 0) to.at_once = at_once(r, NO_LOOP);
    if (r->lanes.reduced)
        to.steps = (double)weft__ceil_div(
            per * weft__kernel_block_rows(k),
            r->lanes.split ? 1 : r->lanes.teams); /* a row waits for the sums of the last */
    return to;
}
