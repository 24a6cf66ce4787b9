/* Writes stages, loops over reduced indices, reductions and folds. A stage is everything that needs the
 * reductions of the stage before. Each stage computes FULL values again, and the last one stores them. The
 * order of sums is fixed: each lane sums in tiles, the sums of tiles are added, then the lanes are joined
 * by halves. Must not know: groups. Read next: render.c.
 *
 *     softmax     stage 0: m = max of x         loop over the row
 *                 stage 1: s = sum of exp(x-m)  loop over the row
 *                 stage 2: store exp(x-m) / s   loop over the row */
#include <stdio.h>
#include <string.h>

#include "kernel/render.h"
#include "kernel/rows.h"

#define TILE 32 /* terms of a tile: a lane adds so many before they join the sum of all tiles */
#define LINE 512

/* ---- reductions ---- */

/* Is the reduction summed in tiles? Sums of floats are, unless a lane has so few terms that they are one
 * tile. */
static bool in_tiles(const weft_render *r, int v) {
    return !r->lanes.turns && weft__code_of(r, v)->op == WEFT_OP_SUM &&
           weft_dtype_is_float((weft_dtype)weft__code_of(r, v)->dtype);
}

static void put_variable(weft_render *r, int v, char letter) {
    char start[64];
    weft_text text = weft__text(start, sizeof start);
    weft__put_start(&text, weft__code_of(r, v)->op, (weft_dtype)weft__code_of(r, v)->dtype);
    weft__put_line(r, "%s %c%d = %s;", weft__type_name(weft__type_of(r, v)), letter, v, start);
}

/* Writes x = x joined with y. */
static void put_join(weft_render *r, int v, const char *x, const char *y) {
    char line[LINE];
    weft_text out = weft__text(line, sizeof line);
    weft__put_row(&out, weft__code_of(r, v)->op, weft__type_of(r, v), x, y, "");
    weft__put_line(r, "%s = %s;", x, line);
}

static void put_term(weft_render *r, int v) {
    char sum[WEFT_RENDER_NAME], term[128];
    weft_text text = weft__text(term, sizeof term);
    snprintf(sum, sizeof sum, "%c%d", in_tiles(r, v) ? 'p' : 't', v);
    weft__put_operand(r, &text, weft__code_of(r, v)->a);
    put_join(r, v, sum, term);
}

static void need_local(weft_render *r, weft_render_type type, int elements) {
    if (r->local[type] < elements) r->local[type] = elements;
}

/* Writes how x and y of a reduction or a fold are joined. */
static const char *joined(const weft_render *r, int v, char line[LINE]) {
    weft_text out = weft__text(line, LINE);
    weft__put_row(&out, weft__code_of(r, v)->op, weft__type_of(r, v), "x", "y", "");
    return line;
}

/* Joins the lanes of a group, or of each team, by halves, in local memory. */
static void put_halves_of_group(weft_render *r, int v) {
    const weft_render_type type = weft__type_of(r, v);
    char line[LINE];
    need_local(r, type, r->lanes.count > 256 ? r->lanes.count / 32 : r->lanes.count);
    weft__put_line(r, "W_HALVES(%s, t%d, shared->%s, %d, %s);", weft__type_name(type), v,
                   weft__type_suffix(type), r->lanes.count, joined(r, v, line));
}

/* Joins the sums of all teams. */
static void put_teams(weft_render *r, int v, char letter) {
    const weft_render_type type = weft__type_of(r, v);
    char line[LINE];
    need_local(r, type, (r->lanes.teams + 1) / 2 * r->lanes.count);
    weft__put_line(r, "W_TEAMS_SHARE(%s, %c%d, shared->%s, %d, %d, %s);", weft__type_name(type), letter, v,
                   weft__type_suffix(type), r->lanes.count, r->lanes.teams, joined(r, v, line));
}

/* Writes the result of a reduction. Narrow integers may leave their range on the way, so the result is
 * wrapped. */
static void put_result(weft_render *r, int v, char letter) {
    const weft_dtype dtype = (weft_dtype)weft__code_of(r, v)->dtype;
    const bool wrap = weft__row_wraps(weft__code_of(r, v)->op, dtype, 4);
    weft__put_line(r, "const %s v%d = %s%s%s%c%d%s;", weft__type_name(weft__type_of(r, v)), v,
                   wrap ? "w_wrap_" : "", wrap ? weft_dtype_name(dtype) : "", wrap ? "(" : "", letter, v,
                   wrap ? ")" : "");
}

static void put_reduced(weft_render *r, int v) {
    if (r->lanes.reduced)
        put_halves_of_group(r, v);
    else if (r->lanes.split)
        put_teams(r, v, 't');
    put_result(r, v, 't');
}

/* ---- loops over reduced indices ---- */

/* The dimension of the innermost loop. -1: the row has one element. */
static int inner_dimension(const weft_render *r) {
    const weft_kernel *k = r->kernel;
    if (r->lanes.reduced) return r->lanes.dim;
    for (int d = k->n_parallel + k->n_reduce - 1; d >= k->n_parallel; d--)
        if (k->extent[d] != 1) return d;
    return -1;
}

/* Opens all loops of a stage and returns the number of braces to close. With `tiles` the innermost loop is
 * split into tiles, and partial sums begin. */
static int open_loops(weft_render *r, int stage, bool tiles) {
    const weft_kernel *k = r->kernel;
    const int inner = inner_dimension(r);
    const bool lanes = r->lanes.reduced;
    const int step = lanes ? r->lanes.count : r->lanes.split ? r->lanes.teams : 1;
    char x[8];
    int braces = 0;
    if (r->lanes.turns) return weft__open_turns(r);
    for (int d = k->n_parallel; d < k->n_parallel + k->n_reduce; d++) {
        if (d == inner || k->extent[d] == 1) continue;
        weft__render_index(r, d, x);
        weft__put_open(r, "for (%s %s = 0; %s < %s; %s++)", weft__index_type(r), x, x,
                       weft__render_extent(r, d), x);
        braces++;
    }
    if (inner < 0) {
        weft__put_open(r, " ");
        braces++;
    }
    weft__render_index(r, inner < 0 ? 0 : inner, x);
    if (tiles && inner >= 0) {
        weft__put_open(r, "for (%s tile = 0; tile < %s; tile += %d)", weft__index_type(r),
                       weft__render_extent(r, inner), TILE * step);
        braces++;
    }
    for (int v = 0; tiles && v < k->n_code; v++)
        if (weft__code_of(r, v)->kind == WEFT_INSTR_REDUCE && r->stage[v] == stage && in_tiles(r, v))
            put_variable(r, v, 'p');
    if (inner < 0) return braces;
    if (tiles)
        weft__put_line(r, "const %s end = min(tile + %d, %s);", weft__index_type(r), TILE * step,
                       weft__render_extent(r, inner));
    const char *end = tiles ? "end" : weft__render_extent(r, inner);
    char of_lane[16] = "";
    r->lanes.outside = lanes && r->lanes.span > 1;
    weft__render_index(r, inner, x);
    if (lanes) snprintf(of_lane, sizeof of_lane, r->lanes.outside ? "lane*%d" : "lane", r->lanes.span);
    if (r->lanes.split) snprintf(of_lane, sizeof of_lane, "team");
    weft__put_open(r, "for (%s %s = %s%s%s; %s < %s; %s += %d)", weft__index_type(r), x,
                   tiles        ? "tile"
                   : of_lane[0] ? ""
                                : "0",
                   tiles && of_lane[0] ? " + " : "", of_lane, x, end, x,
                   r->lanes.outside ? step * r->lanes.span : step);
    r->lanes.outside = false;
    return braces + 1;
}

/* ---- folds ---- */

/* Writes the element number in the scratch memory of a COLUMN fold: over blocks and reduced indices, with
 * lanes adjacent. */
static void put_column_number(weft_render *r) {
    const weft_kernel *k = r->kernel;
    char line[LINE], x[8];
    weft_text out = weft__text(line, sizeof line);
    const int folds = k->n_parallel - k->n_fold;
    for (int pass = 0; pass < 2; pass++)
        for (int d = 0; d < k->n_parallel + k->n_reduce; d++) {
            if ((d >= folds && d < k->n_parallel) || k->extent[d] == 1 || (d == r->lanes.dim) != (pass == 1))
                continue;
            if (out.length == 0) {
                weft__put(&out, "%s", weft__render_index(r, d, x));
                continue;
            }
            char before[LINE];
            memcpy(before, line, sizeof before);
            out = weft__text(line, sizeof line);
            weft__put(&out, "(%s)*%s + %s", before, weft__render_extent(r, d), weft__render_index(r, d, x));
        }
    weft__put_line(r, "const %s column = %s;", weft__index_type(r), out.length ? line : "0");
}

/* Writes the name of the register that holds a lane's column of a fold. */
static void column_name(const weft_render *r, int v, char *name, size_t size) {
    snprintf(name, size, r->lanes.span > 1 ? "s%d[turn*%d + e]" : "s%d[turn]", v, r->lanes.span);
}

static void put_column_term(weft_render *r, int v) {
    char term[128], sum[WEFT_RENDER_NAME], so_far[WEFT_RENDER_NAME];
    weft_text text = weft__text(term, sizeof term);
    weft__put_operand(r, &text, weft__code_of(r, v)->a);
    if (r->lanes.turns) {
        column_name(r, v, sum, sizeof sum);
        put_join(r, v, sum, term);
        return;
    }
    snprintf(sum, sizeof sum, "s%d", v);
    snprintf(so_far, sizeof so_far, "fold%d[column]", v);
    weft__put_line(r, "%s %s = %s;", weft__type_name(weft__type_of(r, v)), sum, term);
    weft__put_open(r, "if (!fresh)");
    put_join(r, v, sum, so_far);
    weft__put_close(r);
    weft__put_line(r, "%s = %s;", so_far, sum);
}

static bool has_columns(const weft_render *r, int stage) {
    for (int v = 0; v < r->kernel->n_code; v++)
        if (weft__code_of(r, v)->kind == WEFT_INSTR_FOLD && weft__code_of(r, v)->level == WEFT_LEVEL_COLUMN &&
            (stage < 0 || r->stage[v] == stage))
            return true;
    return false;
}

/* Returns the condition under which an item writes a value that several items share. NULL: no item shares it.
 */
static const char *who_writes(const weft_render *r, int v, char *line, size_t size) {
    const bool folded = weft__level_folded(weft__code_of(r, v)->level);
    char x[8];
    if (weft__level_inner(weft__code_of(r, v)->level)) return NULL;
    if (r->lanes.split) {
        snprintf(line, size, "team == 0 && first_lane + lane < n_%s", weft__render_index(r, r->lanes.dim, x));
        return line;
    }
    if (!r->lanes.reduced) return NULL;
    return folded && r->lanes.teams > 1 ? "lane == 0 && team == 0" : "lane == 0";
}

/* Returns the value that STORE v writes. Storing rounds, so a value need not be rounded before. */
static int stored_value(const weft_render *r, int v) {
    const weft_instr *in = weft__code_of(r, v), *value = weft__code_of(r, in->a);
    const bool half = value->dtype == WEFT_F16 || value->dtype == WEFT_BF16;
    if (value->kind != WEFT_INSTR_CAST || !half || r->row.kept[in->a]) return in->a;
    if (r->kernel->args[in->arg].dtype != value->dtype || weft__code_of(r, value->a)->level != value->level)
        return in->a;
    return weft__render_type((weft_dtype)weft__code_of(r, value->a)->dtype) == WEFT_RENDER_F32 ? value->a
                                                                                               : in->a;
}

static void put_result_store(weft_render *r, int v) {
    char value[160];
    weft_text text = weft__text(value, sizeof value);
    weft__put_operand(r, &text, stored_value(r, v));
    char condition[64];
    const char *who = who_writes(r, v, condition, sizeof condition);
    if (who) {
        const bool apart = r->lanes.teams > 1 && !weft__level_folded(weft__code_of(r, v)->level);
        if (r->kernel->args[weft__code_of(r, v)->arg].read &&
            !r->lanes.split) /* in place: first all lanes must
                              * have read the old value */
            weft__put_line(r, apart ? "w_barrier_warp();" : "w_barrier_all();");
        weft__put_open(r, "if (%s)", who);
        weft__put_store(r, v, value);
        weft__put_close(r);
        return;
    }
    weft__put_store(r, v, value);
}

/* Writes the sum of a column and its store. */
static void put_column_store(weft_render *r, int v) {
    const int a = weft__code_of(r, v)->a;
    const char letter = r->lanes.turns ? 'c' : 's';
    char sum[WEFT_RENDER_NAME];
    if (r->lanes.turns)
        column_name(r, a, sum, sizeof sum);
    else
        snprintf(sum, sizeof sum, "fold%d[column]", a);
    weft__put_line(r, "const %s %c%d = %s;", weft__type_name(weft__type_of(r, a)), letter, a, sum);
    put_result(r, a, letter);
    put_result_store(r, v);
}

/* Joins the columns that the teams hold. Afterwards team 0 has the sums. */
static void put_columns_joined(weft_render *r) {
    const int each = r->lanes.turns * r->lanes.span;
    char line[LINE];
    for (int v = 0; r->lanes.teams > 1 && v < r->kernel->n_code; v++) {
        if (!weft__is_column_fold(r, v)) continue;
        const weft_render_type type = weft__type_of(r, v);
        need_local(r, type, r->lanes.teams / 2 * each * r->lanes.count);
        weft__put_line(r, "W_TEAMS(%s, s%d, %d, shared->%s, %d, %d, %s);", weft__type_name(type), v, each,
                       weft__type_suffix(type), r->lanes.count, r->lanes.teams, joined(r, v, line));
    }
}

static void put_fold_stores(weft_render *r) {
    const bool team = r->lanes.turns && r->lanes.teams > 1;
    for (int v = 0; v < r->kernel->n_code; v++) {
        const weft_instr *in = weft__code_of(r, v);
        if (in->kind != WEFT_INSTR_STORE || in->level != WEFT_LEVEL_BLOCK) continue;
        if (r->lanes.teams > 1) put_teams(r, in->a, 'b');
        put_result(r, in->a, 'b');
        put_result_store(r, v);
    }
    if (!has_columns(r, -1)) return;
    put_columns_joined(r);
    if (team) weft__put_open(r, "if (team == 0)");
    const int braces = open_loops(r, 0, false);
    for (int v = 0; v < r->kernel->n_code; v++)
        r->wanted[v] =
            weft__code_of(r, v)->kind == WEFT_INSTR_STORE && weft__code_of(r, v)->level == WEFT_LEVEL_COLUMN;
    if (r->lanes.turns)
        weft__put_span(r, r->stages + 1);
    else
        put_column_number(r);
    for (int v = 0; v < r->kernel->n_code; v++)
        if (r->wanted[v]) put_column_store(r, v);
    if (r->lanes.turns) weft__put_span_end(r, r->stages + 1);
    for (int i = 0; i < braces + team; i++) weft__put_close(r);
}

/* ---- stages ---- */

static void put_row_values(weft_render *r, int stage) {
    const weft_kernel *k = r->kernel;
    for (int v = 0; v < k->n_code; v++) {
        const weft_instr *in = weft__code_of(r, v);
        if (in->level != WEFT_LEVEL_ROW || r->stage[v] != stage || in->kind == WEFT_INSTR_REDUCE) continue;
        if (in->kind != WEFT_INSTR_STORE)
            weft__put_value(r, v);
        else if (k->n_reduce == 0)
            put_result_store(r, v);
    }
}

/* Writes a value of a loop. It is computed, and kept if a later loop needs it. Or it is read from where an
 * earlier loop kept it. */
static void put_inner_value(weft_render *r, int v, int stage) {
    char kept[WEFT_RENDER_NAME];
    if (weft__in_span(r, v)) {
        weft__put_value(r, v);
        return;
    }
    if (r->row.kept[v]) weft__kept_name(r, v, kept, sizeof kept);
    if (weft__is_kept(r, v, stage)) {
        weft__put_line(r, "const %s v%d = %s;", weft__type_name(weft__type_of(r, v)), v, kept);
        return;
    }
    weft__put_value(r, v);
    if (r->row.kept[v]) weft__put_line(r, "%s = v%d;", kept, v);
}

/* Writes the loop of a stage over the reduced indices: partial sums, values, stores, then the joined sums. */
static void put_loop(weft_render *r, int stage) {
    const weft_kernel *k = r->kernel;
    bool tiles = false;
    weft__find_wanted(r, stage);
    for (int v = 0; v < k->n_code; v++) {
        if (weft__code_of(r, v)->kind != WEFT_INSTR_REDUCE || r->stage[v] != stage) continue;
        put_variable(r, v, 't');
        tiles = tiles || in_tiles(r, v);
    }
    weft__put_holds(r, stage);
    weft__put_copies_awaited(r, stage);
    const int braces = open_loops(r, stage, tiles);
    weft__put_span(r, stage);
    if (has_columns(r, stage) && !r->lanes.turns) put_column_number(r);
    for (int v = 0; v < k->n_code; v++) {
        if (!r->wanted[v]) continue;
        const weft_instr *in = weft__code_of(r, v);
        if (in->kind == WEFT_INSTR_REDUCE)
            put_term(r, v);
        else if (in->kind == WEFT_INSTR_FOLD)
            put_column_term(r, v);
        else if (in->kind == WEFT_INSTR_STORE)
            put_result_store(r, v);
        else
            put_inner_value(r, v, stage);
    }
    weft__put_span_end(r, stage);
    if (inner_dimension(r) >= 0) weft__put_close(r);
    for (int v = 0; tiles && v < k->n_code; v++) {
        char sum[WEFT_RENDER_NAME], part[WEFT_RENDER_NAME];
        if (weft__code_of(r, v)->kind != WEFT_INSTR_REDUCE || r->stage[v] != stage || !in_tiles(r, v))
            continue;
        snprintf(sum, sizeof sum, "t%d", v);
        snprintf(part, sizeof part, "p%d", v);
        put_join(r, v, sum, part);
    }
    for (int i = inner_dimension(r) >= 0; i < braces; i++) weft__put_close(r);
    for (int v = 0; v < k->n_code; v++)
        if (weft__code_of(r, v)->kind == WEFT_INSTR_REDUCE && r->stage[v] == stage) put_reduced(r, v);
}

/* Writes all stages of one row. */
static void put_row(weft_render *r) {
    const weft_kernel *k = r->kernel;
    if (k->n_reduce == 0) weft__put_span(r, 0);
    for (int s = 0; s <= r->stages; s++) {
        put_row_values(r, s);
        if (weft__stage_is_full(r, s)) put_loop(r, s);
    }
    if (k->n_reduce == 0) weft__put_span_end(r, 0);
    for (int v = 0; v < k->n_code; v++) {
        const weft_instr *in = weft__code_of(r, v);
        if (in->kind == WEFT_INSTR_FOLD && in->level == WEFT_LEVEL_BLOCK) {
            char sum[WEFT_RENDER_NAME], term[128];
            weft_text text = weft__text(term, sizeof term);
            snprintf(sum, sizeof sum, "b%d", v);
            weft__put_operand(r, &text, in->a);
            put_join(r, v, sum, term);
        }
        if (k->n_reduce > 0 && in->kind == WEFT_INSTR_STORE && in->level == WEFT_LEVEL_ROW)
            put_result_store(r, v);
    }
}

/* Opens the loop over one dimension of the rows of a block. The last block may have fewer rows. */
static void put_rows_of_block(weft_render *r, int d, const char *x) {
    const weft_kernel *k = r->kernel;
    const char *rows = weft__render_extent(r, d);
    if (k->last_rows) {
        const char *last = weft__render_size(r, k->last_rows, "last_rows");
        if (k->extent[0] > 1)
            weft__put_line(r, "const %s rows = i0 == %s - 1 ? %s : %s;", weft__index_type(r),
                           weft__render_extent(r, 0), last, rows);
        rows = k->extent[0] > 1 ? "rows" : last;
    }
    if (r->lanes.teams > 1 && d == k->n_parallel - 1)
        weft__put_open(r, "for (%s %s = team; %s < %s; %s += %d)", weft__index_type(r), x, x, rows, x,
                       r->lanes.teams);
    else
        weft__put_open(r, "for (%s %s = 0; %s < %s; %s++)", weft__index_type(r), x, x, rows, x);
}

/* Declares the registers for the columns of folds. */
static void put_column_registers(weft_render *r) {
    for (int v = 0; r->lanes.turns && v < r->kernel->n_code; v++) {
        char start[64];
        weft_text text = weft__text(start, sizeof start);
        if (!weft__is_column_fold(r, v)) continue;
        weft__put_start(&text, weft__code_of(r, v)->op, (weft_dtype)weft__code_of(r, v)->dtype);
        weft__put_line(r, "%s s%d[%d];", weft__type_name(weft__type_of(r, v)), v,
                       r->lanes.turns * r->lanes.span);
        weft__put_line(r, "W_UNROLL");
        weft__put_line(r, "for (int e = 0; e < %d; e++) s%d[e] = %s;", r->lanes.turns * r->lanes.span, v,
                       start);
    }
}

void weft__put_unit(weft_render *r) {
    const weft_kernel *k = r->kernel;
    const int folds = k->n_parallel - k->n_fold;
    weft__put_kept(r);
    if (k->n_fold == 0) {
        put_row(r);
        return;
    }
    for (int v = 0; v < k->n_code; v++)
        if (weft__code_of(r, v)->kind == WEFT_INSTR_FOLD && weft__code_of(r, v)->level == WEFT_LEVEL_BLOCK)
            put_variable(r, v, 'b');
    put_column_registers(r);
    char x[8], fresh[256];
    weft_text first = weft__text(fresh, sizeof fresh);
    for (int d = folds; d < k->n_parallel; d++) {
        weft__render_index(r, d, x);
        weft__put(&first, "%s%s == 0", d > folds ? " && " : "", x);
        put_rows_of_block(r, d, x);
    }
    if (has_columns(r, -1) && !r->lanes.turns) weft__put_line(r, "const int fresh = %s;", fresh);
    put_row(r);
    for (int d = folds; d < k->n_parallel; d++) weft__put_close(r);
    put_fold_stores(r);
}
