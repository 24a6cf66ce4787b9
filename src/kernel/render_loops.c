/* The loops of a row: which values each loop computes, and which values it keeps for a later loop. Each stage
 * computes cheap values again and keeps expensive ones, such as exponentials. Must not know: how values and
 * loops are written. Read next: render_rows.c. */
#include <stdio.h>
#include <string.h>

#include "kernel/render.h"
#include "kernel/rows.h"

#define NEVER     255 /* no loop computes it */
#define KEPT_MOST 4   /* number of values that a row keeps */
#define AT_ONCE   2   /* groups with a stash that a multiprocessor should hold: one reads, one computes */

/* ---- which values a loop computes ---- */

static bool ends_stage(const weft_render *r, int v, int stage) {
    const weft_instr *in = weft__code_of(r, v);
    if (weft__stores_elements(in)) return stage == r->last_loop;
    return weft__ends_loop(in) && r->stage[v] == stage;
}

void weft__find_wanted(weft_render *r, int stage) {
    memset(r->wanted, 0, (size_t)r->kernel->n_code * sizeof *r->wanted);
    for (int v = r->kernel->n_code - 1; v >= 0; v--) {
        const weft_instr *in = weft__code_of(r, v);
        const int operands[3] = {in->a, in->b, in->c};
        r->wanted[v] = r->wanted[v] || ends_stage(r, v, stage);
        if (!r->wanted[v] || weft__is_kept(r, v, stage)) continue;
        for (int o = 0; o < 3; o++)
            if (operands[o] >= 0 && weft__code_of(r, operands[o])->level == WEFT_LEVEL_FULL)
                r->wanted[operands[o]] = true;
    }
}

bool weft__is_kept(const weft_render *r, int v, int stage) {
    return r->row.kept[v] && r->row.first[v] < stage;
}

/* ---- what is kept ---- */

/* Is a value expensive to compute again? */
static bool is_expensive(const weft_render *r, int v) {
    const weft_instr *in = weft__code_of(r, v);
    if (in->kind == WEFT_INSTR_RANDOM || in->kind == WEFT_INSTR_GATHER) return true;
    if (in->kind == WEFT_INSTR_LOAD) return true; /* memory is far away */
    if (in->kind != WEFT_INSTR_CALC || weft__is_near(r, in)) return false;
    return weft__row_expensive(in->op) || in->op == WEFT_OP_DIV || in->op == WEFT_OP_SQRT ||
           in->op == WEFT_OP_RSQRT || in->op == WEFT_OP_RECIP;
}

void weft__put_kept(weft_render *r) {
    for (int v = 0; v < r->kernel->n_code; v++) {
        if (!r->row.kept[v] || !r->lanes.turns) continue; /* the stash needs no arrays */
        if (weft__in_span(r, v))
            weft__put_held(r, v, r->lanes.turns);
        else
            weft__put_line(r, "%s kept%d[%d];", weft__type_name(weft__type_of(r, v)), v,
                           r->lanes.turns * r->lanes.span);
    }
}

void weft__kept_name(const weft_render *r, int v, char *name, size_t size) {
    if (r->lanes.turns)
        snprintf(name, size, r->lanes.span > 1 ? "kept%d[turn*%d + e]" : "kept%d[turn]", v, r->lanes.span);
    else
        snprintf(name, size, r->lanes.span > 1 ? "held%d.each[e]" : "held%d.each[0]", v);
}

/* The last expensive value that the loop of `stage` would compute again. -1: none. */
static int expensive_again(const weft_render *r, int stage, bool reads_only) {
    for (int v = r->kernel->n_code - 1; v >= 0; v--) {
        const bool read = weft__code_of(r, v)->kind == WEFT_INSTR_LOAD;
        if (r->wanted[v] && r->row.first[v] < stage && !r->row.kept[v] && r->varies[v] &&
            is_expensive(r, v) && (read || !reads_only))
            return v;
    }
    return -1;
}

/* Chooses what to keep: at most `room` values, or only elements that were read. */
static void choose_kept(weft_render *r, int room, bool reads_only) {
    memset(r->row.first, NEVER, (size_t)r->kernel->n_code);
    memset(r->row.kept, 0, (size_t)r->kernel->n_code * sizeof *r->row.kept);
    for (int s = 0; s <= r->stages; s++) {
        if (!weft__stage_is_full(r, s)) continue;
        weft__find_wanted(r, s);
        for (int v; room > 0 && (v = expensive_again(r, s, reads_only)) >= 0; room--) {
            r->row.kept[v] = true;
            weft__find_wanted(r, s);
        }
        for (int v = 0; v < r->kernel->n_code; v++)
            if (r->wanted[v] && !weft__is_kept(r, v, s) && r->row.first[v] == NEVER)
                r->row.first[v] = (uint8_t)s;
    }
}

/* Does a lane read v elsewhere for each row? The same elements for all rows are in a cache. */
static bool is_far(const weft_render *r, int v) {
    const weft_instr *in = weft__code_of(r, v);
    if (in->kind != WEFT_INSTR_LOAD || r->row.first[v] == NEVER || !weft__in_span(r, v)) return false;
    const weft_map *m = &r->kernel->views[in->view].map[0];
    for (int d = 0; d < m->rank; d++)
        if (d != r->lanes.dim && r->kernel->extent[d] != 1 && m->stride[d] != 0) return true;
    return false;
}

/* Lets the lanes read all of a row before the first loop, also what only later loops or turns need, so that
 * they wait for memory once. */
static void keep_ahead(weft_render *r) {
    int loop = 0;
    while (!weft__stage_is_full(r, loop)) loop++;
    for (int v = 0; v < r->kernel->n_code; v++) {
        const uint8_t first = r->row.first[v];
        if (r->row.kept[v] || !is_far(r, v)) continue;
        r->row.kept[v] = true;
        r->row.first[v] = (uint8_t)loop;
        if (weft__holding_fits(r, 1)) continue;
        r->row.kept[v] = false;
        r->row.first[v] = first;
    }
}

void weft__choose_loops(weft_render *r) {
    for (int at_once = weft__may_hold(r) ? AT_ONCE : 0; at_once > 0; at_once--)
        for (int reads_only = 0; reads_only <= 1; reads_only++) {
            choose_kept(r, KEPT_MOST, reads_only);
            if (!weft__holding_fits(r, at_once)) continue;
            if (r->lanes.turns) keep_ahead(r);
            weft__choose_ahead(r, at_once);
            return;
        }
    choose_kept(r, 0, false);
    r->row.stash_bytes = 0;
}
