/* Teams and held rows, on CUDA. The items of a group form teams of as many lanes as a row needs. Each team
 * takes rows of its own, or all teams share the rows that are added up for each column. The lanes of a team
 * hold what they have read of a row, and their columns of a fold, so global memory is read once:
 *
 *     in registers     a short row. Loops over it are unrolled: a lane has `turns` spans of the row
 *     in the stash     a long row: local memory that the launch asks for. Loops stay loops
 *
 * All choices depend on shapes alone: lanes and teams change the order of sums, and the bits must not depend
 * on the card. Must not know: how values are computed. Read next: render_rows.c.
 *
 *     turns = 2, span = 2, lanes = 4    lane 0: e0 e1 and e8 e9, lane 1: e2 e3 and e10 e11, .. */
#include <stdio.h>
#include <string.h>

#include "kernel/render.h"

#define WARP       32
#define TEAM_LEAST 4    /* lanes of a team that takes short rows */
#define SHORT_ROW  256  /* most columns of a short row that is summed by columns */
#define ROWS_MANY  1024 /* from so many rows on, each row gets few lanes */
#define EACH_MOST  32   /* elements of a row for each lane */
#define EACH_FEW   4    /* the same if rows are few */
#define LONG_ROW   8192 /* longer rows that are read several times get LONG_LANES lanes */
#define LONG_LANES 512
#define TURNS_MOST 16
#define SUMS_MOST  96 /* registers of a lane for columns of folds */
#define SUMS_FEW   48 /* with more, a group has half as many teams */
#define HELD_MOST  64 /* registers of a lane for held values */
/* Warps that a multiprocessor with 65,536 registers holds, by the words that a lane has in registers: so they
 * have 80, 128 or 168 registers each. */
#define WORDS_FEW   48
#define WORDS_MANY  100
#define WARPS_MANY  24
#define WARPS_SOME  16
#define WARPS_FEW   12
#define STASH_AWAY  512    /* bytes of local memory that are no stash: room of sums */
#define SPLIT_MOST  65536  /* with more results there are enough groups without splitting rows */
#define SPLIT_LEAST 32     /* reduced elements */
#define LANES_LEAST 8      /* that share the reduced elements of a column: 8 f32 are a sector of memory */
#define SPLIT_SMALL 4096   /* with at most so many elements, one group adds up all */
#define SPLIT_LARGE 262144 /* with more elements, groups have few columns, so that there are many groups */

bool weft__has_teams(const weft_render *r) {
    return r->target->dialect == WEFT_DIALECT_CUDA && r->product < 0;
}

bool weft__is_column_fold(const weft_render *r, int v) {
    const weft_instr *in = weft__code_of(r, v);
    return in->kind == WEFT_INSTR_FOLD && in->level == WEFT_LEVEL_COLUMN;
}

static int64_t registers_of(const weft_render *r, int v) {
    const weft_render_type type = weft__type_of(r, v);
    return type == WEFT_RENDER_F64 || type == WEFT_RENDER_I64 || type == WEFT_RENDER_U64 ? 2 : 1;
}

/* Registers of a lane for one column of each fold. */
static int64_t column_registers(const weft_render *r) {
    int64_t n = 0;
    for (int v = 0; v < r->kernel->n_code; v++) n += weft__is_column_fold(r, v) ? registers_of(r, v) : 0;
    return n;
}

/* Number of loops over a row. */
static int loops_of(const weft_render *r) {
    int n = 0;
    for (int s = 0; s <= r->stages; s++) n += weft__stage_is_full(r, s);
    return n;
}

/* Most elements of a row that one lane can hold in registers. */
static int64_t each_most(const weft_render *r) {
    const int64_t columns = weft__larger(column_registers(r), 1);
    return weft__larger(8, weft__smaller(EACH_MOST, SUMS_MOST / columns / 8 * 8));
}

/* Must the lanes of a row meet? */
static bool reduces_rows(const weft_render *r) {
    for (int v = 0; v < r->kernel->n_code; v++)
        if (r->kernel->code[v].kind == WEFT_INSTR_REDUCE) return true;
    return false;
}

bool weft__takes_short_rows(const weft_render *r, int d) {
    const weft_kernel *k = r->kernel;
    if (!weft__has_teams(r)) return false;
    if (d < k->n_parallel) return k->n_reduce == 0 && k->n_fold == 0;
    return k->n_fold > 0 && k->extent[d] <= SHORT_ROW && !reduces_rows(r);
}

int weft__team_of(const weft_render *r, int64_t spans) {
    int lanes = r->target->lanes;
    while (lanes > TEAM_LEAST && lanes / 2 >= spans) lanes /= 2;
    return lanes;
}

int weft__team_lanes(const weft_render *r, int d) {
    const weft_kernel *k = r->kernel;
    const int64_t rows = weft__kernel_rows(k) / weft__kernel_block_rows(k), n = k->extent[d];
    const int most = r->target->lanes;
    int lanes = most < WARP ? most : WARP;
    if (weft__takes_short_rows(r, d)) return weft__team_of(r, n);
    if (d < k->n_parallel) return most;
    if (k->n_fold == 0 && n > LONG_ROW && loops_of(r) > 1) return most < 256 ? most : LONG_LANES;
    if (k->n_fold == 0 && rows < ROWS_MANY)
        return n > lanes * EACH_FEW ? most : lanes; /* groups of equal size fuse */
    while (lanes < most && n > lanes * each_most(r)) lanes *= 2;
    return lanes;
}

/* ---- teams that share rows of a column sum ---- */

bool weft__may_split(const weft_render *r) {
    const weft_kernel *k = r->kernel;
    int64_t length = 1;
    if (!weft__has_teams(r) || k->n_reduce == 0 || k->n_fold > 0) return false;
    for (int v = 0; v < k->n_code; v++)
        if (weft__stores_elements(&k->code[v])) return false;
    for (int d = k->n_parallel; d < k->n_parallel + k->n_reduce; d++)
        if (k->extent[d] != 1) length = k->extent[d];
    return length >= SPLIT_LEAST && weft__kernel_rows(k) < SPLIT_MOST;
}

static void choose_split(weft_render *r) {
    const weft_kernel *k = r->kernel;
    const int64_t results = weft__kernel_rows(k);
    const int items = r->lanes.count;
    if (r->lanes.span > 1 || !weft__may_split(r)) return;
    r->lanes.count = WARP;
    while (r->lanes.count > LANES_LEAST && r->lanes.count / 2 >= k->extent[r->lanes.dim]) r->lanes.count /= 2;
    if (results <= items && results * weft__kernel_row_length(k) <= SPLIT_SMALL)
        while (r->lanes.count < items && r->lanes.count < k->extent[r->lanes.dim]) r->lanes.count *= 2;
    else if (results * weft__kernel_row_length(k) > SPLIT_LARGE)
        while (r->lanes.count > LANES_LEAST && results / r->lanes.count < 512) r->lanes.count /= 2;
    r->lanes.teams = items / r->lanes.count;
    r->lanes.split = r->lanes.teams > 1;
    if (!r->lanes.split) r->lanes.count = items, r->lanes.teams = 1;
}

/* ---- held rows ---- */

int weft__only_loop(const weft_render *r) {
    const weft_kernel *k = r->kernel;
    int found = -1;
    for (int d = k->n_parallel; d < k->n_parallel + k->n_reduce; d++) {
        if (k->extent[d] == 1) continue;
        if (found >= 0) return -1;
        found = d;
    }
    return found;
}

/* Finds the number of turns if the lanes can hold a row in registers. */
static void choose_turns(weft_render *r) {
    if (r->lanes.count == LONG_LANES) return; /* so many items have few registers */
    if (weft__only_loop(r) != r->lanes.dim || (loops_of(r) < 2 && column_registers(r) == 0)) return;
    const int64_t step = (int64_t)r->lanes.count * r->lanes.span;
    const int64_t turns = weft__ceil_div(r->kernel->extent[r->lanes.dim], step);
    const int64_t each = turns * r->lanes.span;
    if (turns > TURNS_MOST || each > EACH_MOST || each * column_registers(r) > SUMS_MOST) return;
    r->lanes.turns = (int)turns;
}

void weft__choose_teams(weft_render *r) {
    r->lanes.teams = 1;
    if (!weft__has_teams(r) || r->lanes.dim < 0) return;
    if (!r->lanes.reduced) {
        choose_split(r);
        if (weft__takes_short_rows(r, r->lanes.dim)) r->lanes.teams = r->target->lanes / r->lanes.count;
        return;
    }
    choose_turns(r);
    while (column_registers(r) > 0 && !r->lanes.turns &&
           r->lanes.count < r->target->lanes) { /* short spans: more lanes */
        r->lanes.count *= 2;
        weft__choose_span(r);
        choose_turns(r);
    }
    const int64_t sums = column_registers(r) * r->lanes.turns * r->lanes.span;
    if (r->lanes.count > WARP || (column_registers(r) > 0 && !r->lanes.turns)) return;
    r->lanes.teams = r->target->lanes / r->lanes.count / (sums > SUMS_FEW ? 2 : 1);
    if (r->lanes.teams < 1) r->lanes.teams = 1;
}

/* ---- what fits ---- */

static int64_t bytes_of(const weft_render *r, int v) {
    if (weft__in_span(r, v))
        return (int64_t)weft_dtype_size((weft_dtype)r->kernel->args[weft__code_of(r, v)->arg].dtype);
    return 4 * registers_of(r, v);
}

int weft__last_loop_of(weft_render *r, int v) {
    int last = -1;
    for (int s = 0; s <= r->stages; s++) {
        if (!weft__stage_is_full(r, s)) continue;
        weft__find_wanted(r, s);
        if (r->wanted[v]) last = s;
    }
    return last;
}

/* Registers of a lane for held values. */
static int64_t held_registers(const weft_render *r) {
    int64_t words = 0;
    for (int v = 0; v < r->kernel->n_code; v++)
        if (r->row.kept[v]) words += weft__ceil_div(bytes_of(r, v) * r->lanes.turns * r->lanes.span, 4);
    return words;
}

/* The warps must be enough to wait for memory, since compilers read ahead as far as registers allow. */
int weft__groups_beside(const weft_render *r, int items) {
    if (!r->lanes.turns) return 0;
    const int64_t words = held_registers(r) + column_registers(r) * r->lanes.turns * r->lanes.span;
    const int warps = words > WORDS_MANY ? WARPS_FEW : words > WORDS_FEW ? WARPS_SOME : WARPS_MANY;
    return warps * WARP / items;
}

int weft__stash_word(const weft_render *r, int v) {
    return (int)weft__smaller(16, bytes_of(r, v) * r->lanes.span);
}

/* Gives each kept value a part of the stash. A value may take the place of another one that no later loop
 * needs: each lane reads the old value of a slot before it writes the new one. False if the stash is too
 * small. */
static bool fits_stash(weft_render *r, int at_once) {
    const weft_kernel *k = r->kernel;
    const int64_t most = r->target->most_local_bytes / at_once - STASH_AWAY;
    struct {
        int64_t at, bytes;
        int last, word;
    } parts[8];
    int n = 0;
    r->row.stash_bytes = 0;
    for (int s = 0; s <= r->stages; s++)
        for (int v = 0; v < k->n_code; v++) {
            if (!r->row.kept[v] || r->row.first[v] != s) continue;
            const int64_t bytes = weft__ceil_div(bytes_of(r, v) * k->extent[r->lanes.dim], 16) * 16;
            int p = 0;
            while (p < n && (parts[p].last > s || parts[p].word != weft__stash_word(r, v))) p++;
            if (p == 8) return false;
            if (p == n) parts[n++].bytes = 0;
            parts[p].bytes = weft__larger(parts[p].bytes, bytes);
            parts[p].last = weft__last_loop_of(r, v);
            parts[p].word = weft__stash_word(r, v);
            r->row.stash[v] = p;
        }
    for (int p = 0; p < n; p++) {
        parts[p].at = r->row.stash_bytes;
        r->row.stash_bytes += parts[p].bytes;
    }
    for (int v = 0; v < k->n_code; v++)
        if (r->row.kept[v]) r->row.stash[v] = parts[r->row.stash[v]].at;
    return r->row.stash_bytes <= most;
}

bool weft__may_hold(const weft_render *r) {
    if (!weft__has_teams(r) || !r->lanes.reduced || r->lanes.dim < 0) return false;
    return r->lanes.turns || (weft__only_loop(r) == r->lanes.dim && loops_of(r) > 1 &&
                              r->target->most_local_bytes > 0 && r->lanes.teams == 1);
}

bool weft__holding_fits(weft_render *r, int at_once) {
    r->row.stash_bytes = 0;
    return r->lanes.turns ? held_registers(r) <= HELD_MOST : fits_stash(r, at_once);
}
