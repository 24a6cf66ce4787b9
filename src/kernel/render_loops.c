/* The loops of a row: which values each loop computes, which values it keeps for a later loop, and, on CPUs,
 * which memory it fetches ahead. A short row passes through the cache once. Each stage computes cheap values
 * again and keeps expensive ones, such as exponentials. The most expensive loop fetches the next row while it
 * computes, so the loop that only reads does not wait. Must not know: how values and loops are written. Read
 * next: render_rows.c. */
#include <stdio.h>
#include <string.h>

#include "kernel/render.h"
#include "kernel/rows.h"

#define NEVER      255   /* no loop computes it */
#define FEW        256   /* values of a row with at most so many vectors are kept: 16 KiB of f32 */
#define MANY       1024  /* size of the array for a row with more than FEW vectors */
#define EXPENSIVE  8     /* cost of an expensive value, in cheap values */
#define KEPT_MOST  4     /* number of values that a row keeps */
#define AT_ONCE    2     /* groups with a stash that a multiprocessor should hold: one reads, one computes */
#define FAR        1024  /* elements to fetch ahead: 2 to 4 KiB are best (PoCL, one to seven streams) */
#define NEAR_ROW   16384 /* a row of at most so many elements is still in the cache when it is read again */
#define WORTHWHILE 65536 /* an operand of at least so many elements does not stay in a cache */

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

bool weft__is_kept(const weft_render *r, int v, int stage) { return r->kept[v] && r->first[v] < stage; }

/* ---- what is kept ---- */

/* Is a value expensive to compute again? */
static bool is_expensive(const weft_render *r, int v) {
    const weft_instr *in = weft__code_of(r, v);
    if (in->kind == WEFT_INSTR_RANDOM || in->kind == WEFT_INSTR_GATHER) return true;
    if (in->kind == WEFT_INSTR_LOAD && !r->target->vectors) return true; /* it is far away */
    if (in->kind == WEFT_INSTR_LOAD) { /* without a lane dimension no access is a vector */
        const weft_view *view = &r->kernel->views[in->view];
        return r->lane < 0 || view->count > 1 || view->map[0].stride[r->lane] != 1;
    }
    if (in->kind != WEFT_INSTR_CALC || weft__is_near(r, in)) return false;
    return weft__row_expensive(in->op) || in->op == WEFT_OP_DIV || in->op == WEFT_OP_SQRT ||
           in->op == WEFT_OP_RSQRT || in->op == WEFT_OP_RECIP;
}

/* Size of the array of vectors for a row. 0: the row has too many. */
static int64_t vectors_of_row(const weft_render *r) {
    const int d = weft__only_loop(r);
    if (d < 0 || !r->target->vectors) return 0;
    const int64_t n = r->reduced ? weft__ceil_div(r->kernel->extent[d], r->lanes) : r->kernel->extent[d];
    return n <= FEW ? FEW : n <= MANY ? MANY : 0;
}

void weft__put_kept(weft_render *r) {
    for (int v = 0; v < r->kernel->n_code; v++) {
        if (!r->kept[v] || (!r->target->vectors && !r->turns)) continue; /* the stash needs no arrays */
        const weft_render_type type = weft__type_of(r, v);
        if (r->target->vectors)
            weft__put_line(r, "%s kept%d[%d];", weft__type_name(type, true), v, (int)vectors_of_row(r));
        else if (weft__in_span(r, v))
            weft__put_held(r, v, r->turns);
        else
            weft__put_line(r, "%s kept%d[%d];", weft__type_name(type, false), v, r->turns * r->span);
    }
}

void weft__kept_name(const weft_render *r, int v, char *name, size_t size) {
    char x[8];
    if (r->turns)
        snprintf(name, size, r->span > 1 ? "kept%d[turn*%d + e]" : "kept%d[turn]", v, r->span);
    else if (!r->target->vectors)
        snprintf(name, size, r->span > 1 ? "held%d.each[e]" : "held%d.each[0]", v);
    else
        snprintf(name, size, r->reduced ? "kept%d[%s >> 4]" : "kept%d[%s]", v,
                 weft__render_index(r, weft__only_loop(r), x));
}

/* The last expensive value that the loop of `stage` would compute again. -1: none. */
static int expensive_again(const weft_render *r, int stage, bool reads_only) {
    for (int v = r->kernel->n_code - 1; v >= 0; v--) {
        const bool read = weft__code_of(r, v)->kind == WEFT_INSTR_LOAD;
        if (r->wanted[v] && r->first[v] < stage && !r->kept[v] && r->varies[v] && is_expensive(r, v) &&
            (read || !reads_only))
            return v;
    }
    return -1;
}

/* Chooses what to keep: at most `room` values, or only elements that were read. */
static void choose_kept(weft_render *r, int room, bool reads_only) {
    int64_t most = 0;
    memset(r->first, NEVER, (size_t)r->kernel->n_code);
    memset(r->kept, 0, (size_t)r->kernel->n_code * sizeof *r->kept);
    for (int s = 0; s <= r->stages; s++) {
        if (!weft__stage_is_full(r, s)) continue;
        weft__find_wanted(r, s);
        for (int v; room > 0 && (v = expensive_again(r, s, reads_only)) >= 0; room--) {
            r->kept[v] = true;
            weft__find_wanted(r, s);
        }
        int64_t cost = 1;
        for (int v = 0; v < r->kernel->n_code; v++) {
            if (!r->wanted[v] || weft__is_kept(r, v, s)) continue;
            cost += is_expensive(r, v) ? EXPENSIVE : 1;
            if (r->first[v] == NEVER) r->first[v] = (uint8_t)s;
        }
        if (cost > most) r->most_expensive = s;
        most = weft__larger(most, cost);
    }
    r->expensive = most > EXPENSIVE;
}

/* Does a lane read v elsewhere for each row? The same elements for all rows are in a cache. */
static bool is_far(const weft_render *r, int v) {
    const weft_instr *in = weft__code_of(r, v);
    if (in->kind != WEFT_INSTR_LOAD || r->first[v] == NEVER || !weft__in_span(r, v)) return false;
    const weft_map *m = &r->kernel->views[in->view].map[0];
    for (int d = 0; d < m->rank; d++)
        if (d != r->lane && r->kernel->extent[d] != 1 && m->stride[d] != 0) return true;
    return false;
}

/* Lets the lanes read all of a row before the first loop, also what only later loops or turns need, so that
 * they wait for memory once. */
static void keep_ahead(weft_render *r) {
    int loop = 0;
    while (!weft__stage_is_full(r, loop)) loop++;
    for (int v = 0; v < r->kernel->n_code; v++) {
        const uint8_t first = r->first[v];
        if (r->kept[v] || !is_far(r, v)) continue;
        r->kept[v] = true;
        r->first[v] = (uint8_t)loop;
        if (weft__holding_fits(r, 1)) continue;
        r->kept[v] = false;
        r->first[v] = first;
    }
}

void weft__choose_loops(weft_render *r) {
    const bool hold = weft__may_hold(r);
    if (!hold) {
        choose_kept(r, vectors_of_row(r) > 0 ? KEPT_MOST : 0, false);
        return;
    }
    for (int at_once = AT_ONCE; at_once > 0; at_once--)
        for (int reads_only = 0; reads_only <= 1; reads_only++) {
            choose_kept(r, KEPT_MOST, reads_only);
            if (!weft__holding_fits(r, at_once)) continue;
            if (r->turns) keep_ahead(r);
            weft__choose_ahead(r, at_once);
            return;
        }
    choose_kept(r, 0, false);
    r->stash_bytes = 0;
}

/* ---- what is fetched ahead ---- */

/* Do the lanes of v pass over memory in sequence? */
static bool is_stream(const weft_render *r, int v) {
    const weft_kernel *k = r->kernel;
    const weft_instr *in = weft__code_of(r, v);
    if (in->kind != WEFT_INSTR_LOAD && in->kind != WEFT_INSTR_STORE) return false;
    if (k->n_reduce > 0 && in->level != WEFT_LEVEL_FULL) return false;
    return weft__in_line(r, v) && k->args[in->arg].elements >= WORTHWHILE;
}

/* The dimension in which a unit differs from the next unit. -1: there is only one unit, or lanes run outer
 * it. */
static int next_dimension(const weft_render *r) {
    for (int d = r->kernel->n_parallel - 1; d >= 0; d--)
        if (d != r->lane && r->kernel->extent[d] != 1) return d;
    return -1;
}

/* Is the next row fetched while this one is computed? */
static bool by_rows(const weft_render *r) {
    return r->reduced && next_dimension(r) >= 0 && weft__kernel_row_length(r->kernel) <= NEAR_ROW;
}

/* by_columns: parts of many rows are read in turn. If the loop computes expensive values, the next part of
 * each row is fetched meanwhile. A cheap loop has no time for this, and single fetches would slow its sums
 * down. It fetches four lines of each row at once, in every fourth vector (by_fours). */
static bool by_columns(const weft_render *r) { return r->kernel->n_reduce > 0 && !r->reduced; }
static bool by_fours(const weft_render *r) { return by_columns(r) && !r->expensive; }

/* How many elements ahead to fetch. 0: what is there is not needed next. */
static int64_t distance(const weft_render *r, const weft_map *map) {
    const weft_kernel *k = r->kernel;
    const int next = next_dimension(r);
    if (r->outer >= 0) return map->stride[r->outer];
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

/* Is the same place fetched by another instruction? A store has precedence over a load. */
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
                         : by_rows(r)             ? r->most_expensive
                         : stored                 ? r->last_loop
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
