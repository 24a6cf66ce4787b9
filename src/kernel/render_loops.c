/* The loops of a row, on CPUs: which values each of them computes, which values a row keeps from one to a
 * later one, and which lines of memory it asks for ahead of need. A row passes through the cache once if it
 * is short: what is cheap is computed anew at each stage, what is dear (an exponential) is kept; and while
 * the dearest loop computes, the next row comes in, so that the loop that only reads does not wait. Must not
 * know: values, the text of loops. Read next: render_rows.c. */
#include <stdio.h>
#include <string.h>

#include "kernel/render.h"
#include "kernel/rows.h"

#define NEVER      255  /* no loop computes it */
#define FEW        256  /* vectors that a row may have so that values of it are kept: 16 KiB of f32 */
#define MANY       1024 /* the same, where it has more than those */
#define DEAR       8    /* a dear value, in cheap ones */
#define KEPT_MOST  4    /* values that a row keeps */
#define FAR        1024 /* elements to look ahead: two to four kibibytes are best (PoCL, one to seven streams) */
#define NEAR_ROW   16384 /* a row of so many elements is still in the cache when it is read again */
#define WORTHWHILE 65536 /* elements of an operand that does not stay in a cache */

/* ---- which values a loop computes ---- */

static bool ends_stage(const weft_render *r, int v, int stage) {
    const weft_instr *in = weft__code_of(r, v);
    if (in->kind == WEFT_INSTR_REDUCE) return r->stage[v] == stage;
    if (in->kind == WEFT_INSTR_FOLD) return in->level == WEFT_LEVEL_COLUMN && r->stage[v] == stage;
    return in->kind == WEFT_INSTR_STORE && in->level == WEFT_LEVEL_FULL && stage == r->stages;
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

bool weft__is_kept(const weft_render *r, int v, int stage) { return r->kept[v] && r->first[v] < stage; }

/* ---- what is kept ---- */

static bool is_dear(const weft_render *r, int v) {
    const weft_instr *in = weft__code_of(r, v);
    if (in->kind == WEFT_INSTR_RANDOM || in->kind == WEFT_INSTR_GATHER) return true;
    if (in->kind == WEFT_INSTR_LOAD) { /* without lanes no access is a vector */
        const weft_view *view = &r->kernel->views[in->view];
        return r->lane < 0 || view->count > 1 || view->map[0].stride[r->lane] != 1;
    }
    if (in->kind != WEFT_INSTR_CALC) return false;
    return weft__row_dear(in->op) || in->op == WEFT_OP_DIV || in->op == WEFT_OP_SQRT ||
           in->op == WEFT_OP_RSQRT || in->op == WEFT_OP_RECIP;
}

/* The one dimension that the loops over a row run along; -1: several, or none. */
static int only_loop(const weft_render *r) {
    const weft_kernel *k = r->kernel;
    int found = -1;
    for (int d = k->n_parallel; d < k->n_parallel + k->n_reduce; d++) {
        if (k->extent[d] == 1) continue;
        if (found >= 0) return -1;
        found = d;
    }
    return found;
}

/* Vectors of a row; 0: too many. */
static int64_t vectors_of_row(const weft_render *r) {
    const int d = only_loop(r);
    if (d < 0 || !r->target->vectors) return 0;
    const int64_t n = r->reduced ? weft__ceil_div(r->kernel->extent[d], r->lanes) : r->kernel->extent[d];
    return n <= FEW ? FEW : n <= MANY ? MANY : 0;
}

void weft__put_kept(weft_render *r) {
    for (int v = 0; v < r->kernel->n_code; v++)
        if (r->kept[v])
            weft__put_line(r, "%s kept%d[%d];", weft__type_name(weft__type_of(r, v), true), v,
                           (int)vectors_of_row(r));
}

void weft__kept_name(const weft_render *r, int v, char *name, size_t size) {
    char x[8];
    snprintf(name, size, r->reduced ? "kept%d[%s >> 4]" : "kept%d[%s]", v,
             weft__render_index(r, only_loop(r), x));
}

/* The last value that loop `stage` would compute again; -1: none. */
static int dear_again(const weft_render *r, int stage) {
    for (int v = r->kernel->n_code - 1; v >= 0; v--)
        if (r->wanted[v] && r->first[v] < stage && !r->kept[v] && weft__render_vector(r, v) && is_dear(r, v))
            return v;
    return -1;
}

void weft__choose_loops(weft_render *r) {
    int room = vectors_of_row(r) > 0 ? KEPT_MOST : 0;
    int64_t most = 0;
    memset(r->first, NEVER, (size_t)r->kernel->n_code);
    for (int s = 0; s <= r->stages; s++) {
        if (!weft__stage_is_full(r, s)) continue;
        weft__find_wanted(r, s);
        for (int v; room > 0 && (v = dear_again(r, s)) >= 0; room--) {
            r->kept[v] = true;
            weft__find_wanted(r, s);
        }
        int64_t cost = 1;
        for (int v = 0; v < r->kernel->n_code; v++) {
            if (!r->wanted[v] || weft__is_kept(r, v, s)) continue;
            cost += is_dear(r, v) ? DEAR : 1;
            if (r->first[v] == NEVER) r->first[v] = (uint8_t)s;
        }
        if (cost > most) r->dearest = s;
        most = weft__larger(most, cost);
    }
    r->dear = most > DEAR;
}

/* ---- what is fetched ahead ---- */

/* Lines of memory that lanes pass over one after the other. */
static bool is_stream(const weft_render *r, int v) {
    const weft_kernel *k = r->kernel;
    const weft_instr *in = weft__code_of(r, v);
    if (in->kind != WEFT_INSTR_LOAD && in->kind != WEFT_INSTR_STORE) return false;
    if (k->n_reduce > 0 && in->level != WEFT_LEVEL_FULL) return false;
    return weft__in_line(r, v) && k->args[in->arg].elements >= WORTHWHILE;
}

/* The dimension that a unit differs in from the next one; -1: there is one unit, or lanes run along it. */
static int next_dimension(const weft_render *r) {
    for (int d = r->kernel->n_parallel - 1; d >= 0; d--)
        if (d != r->lane && r->kernel->extent[d] != 1) return d;
    return -1;
}

/* A row comes in while the one before is computed. */
static bool by_rows(const weft_render *r) {
    return r->reduced && next_dimension(r) >= 0 && weft__kernel_row_length(r->kernel) <= NEAR_ROW;
}

/* Lines of many rows are read in turn: the next of each is asked for while dear values are computed. Where
 * there is no such time, that would slow sums down; four of each, once in four vectors, do not. */
static bool by_columns(const weft_render *r) { return r->kernel->n_reduce > 0 && !r->reduced; }
static bool by_fours(const weft_render *r) { return by_columns(r) && !r->dear; }

/* How many elements ahead; 0: what lies there is not needed next. */
static int64_t distance(const weft_render *r, const weft_map *map) {
    const weft_kernel *k = r->kernel;
    const int next = next_dimension(r);
    if (r->along >= 0) return map->stride[r->along];
    if (by_columns(r)) return (by_fours(r) ? 4 : 1) * r->target->lanes;
    if (by_rows(r))
        return map->stride[next] * weft__larger(1, FAR / weft__larger(1, weft__kernel_row_length(k)));
    const bool joined = next >= 0 && map->stride[next] == k->extent[r->lane];
    return joined || k->extent[r->lane] > FAR ? FAR : 0;
}

static bool same_place(const weft_render *r, int v, int w) {
    const weft_instr *x = weft__code_of(r, v), *y = weft__code_of(r, w);
    return x->arg == y->arg && x->view == y->view;
}

/* What is written in the same place is asked for once, to be written. */
static bool is_repeated(const weft_render *r, int v) {
    const bool stored = weft__code_of(r, v)->kind == WEFT_INSTR_STORE;
    for (int w = 0; w < r->kernel->n_code; w++) {
        const bool store = weft__code_of(r, w)->kind == WEFT_INSTR_STORE;
        if (w != v && is_stream(r, w) && same_place(r, v, w) && (store == stored ? w < v : store))
            return true;
    }
    return false;
}

void weft__put_fetches(weft_render *r, int stage) {
    for (int v = 0; r->target->vectors && r->lane >= 0 && v < r->kernel->n_code; v++) {
        if (!is_stream(r, v) || is_repeated(r, v)) continue;
        const weft_instr *in = weft__code_of(r, v);
        const bool stored = in->kind == WEFT_INSTR_STORE;
        const int loop = r->kernel->n_reduce == 0 ? 0
                         : by_rows(r)             ? r->dearest
                         : stored                 ? r->stages
                                                  : r->first[v];
        const int64_t ahead = distance(r, &r->kernel->views[in->view].map[0]);
        if (loop != stage || ahead == 0) continue;
        weft_place p;
        weft__put_place(r, v, false, &p);
        weft__put_line(
            r, "w_fetch%s%s(arg%d + (%s), %s);", by_fours(r) ? "_four" : "", stored ? "_to_write" : "",
            in->arg, p.element,
            weft__render_number(r, WEFT_ARGUMENT_I64, (weft_argument){.i = ahead}, "ahead%d", in->view));
    }
}
