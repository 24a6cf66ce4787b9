/* Writes a kernel form as a C99 function: loops over its parallel indices, and for each stage of reductions a
 * loop over its reduction indices. (Stage 0 needs no reduction; stage s + 1 needs one of stage s.) Values at
 * the reduction indices are computed again in each stage that needs them, and stored in the last one.
 *
 *     for each row:  values of stage 0, [loop 0: reductions of stage 0], values of stage 1, ..., stores
 *
 * Sums of f32 accumulate in double. A fold adds up the rows of a block. A fold with columns accumulates where
 * it is stored, so its sums are f32; a block has few rows. Must not know: commands. Read next: expression.c,
 * kernel/kernel.h. */
#include <stdio.h>
#include <string.h>

#include "device/c99/c99.h"
#include "kernel/rows.h"

typedef struct writing {
    const weft_kernel *k;
    weft_text *out;
    int *stage;   /* of each value; of a reduction, the stage that accumulates it */
    bool *needed; /* in the loop that is being written */
    int stages;   /* the last stage */
    int depth;    /* of the indentation */
} writing;

/* ---- what can be written ---- */

static bool casts(weft_dtype from, weft_dtype to) {
    return weft__c99_type(from) && weft__c99_type(to) &&
           !(from == WEFT_F32 && (to == WEFT_I32 || to == WEFT_I64 || to == WEFT_U8));
}

static const char *instr_problem(const weft_kernel *k, const weft_instr *in) {
    const weft_dtype dtype = (weft_dtype)in->dtype;
    if (!weft__c99_type(dtype)) return weft_dtype_name(dtype);
    if (in->kind == WEFT_INSTR_CAST && !casts((weft_dtype)k->code[in->a].dtype, dtype)) return "a cast";
    const bool joins = in->kind == WEFT_INSTR_REDUCE || in->kind == WEFT_INSTR_FOLD;
    if ((joins || in->kind == WEFT_INSTR_CALC) && !weft__c99_row(in->op, (weft_dtype)k->code[in->a].dtype))
        return weft__row(in->op)->name;
    if (joins && !weft__c99_start(in->op, dtype)) return weft__row(in->op)->name;
    return NULL;
}

bool weft__c99_kernel_check(const weft_kernel *k, weft_text *why) {
    const char *what = NULL;
    for (int i = 0; i < k->n_code && !what; i++) what = instr_problem(k, &k->code[i]);
    for (int a = 0; a < k->n_args && !what; a++)
        if (!weft__c99_type((weft_dtype)k->args[a].dtype))
            what = weft_dtype_name((weft_dtype)k->args[a].dtype);
    if (what) weft__put(why, "%s: %s", k->path && *k->path ? k->path : k->name, what);
    return what == NULL;
}

/* ---- views ---- */

static void line(const writing *w) { weft__put(w->out, "%*s", 4 * w->depth, ""); }

/* Returns the number of dimensions of map m of a view that an instruction of this level reads. */
static int rank_of(const writing *w, int level, const weft_view *view, int m) {
    return m == 0 && !weft__level_inner(level) ? w->k->n_parallel : view->map[m].rank;
}

static bool guards(const weft_map *m, int d) { return m->lo[d] > 0 || m->hi[d] < m->extent[d]; }

/* Does a map read the index that it is given? `element`: is its own result read? */
static bool map_reads(const weft_map *m, int rank, bool element) {
    for (int d = 0; d < rank; d++)
        if (m->extent[d] > 1 && (guards(m, d) || (element && m->stride[d] != 0))) return true;
    return false;
}

/* Writes index d of map m of instruction i: a loop variable, or a part of the number that the map before
 * gave. */
static void put_index(const writing *w, int i, const weft_view *view, int m, int d) {
    const weft_map *map = &view->map[m];
    int64_t later = 1;
    if (m == 0) {
        weft__put(w->out, "i%d", d);
        return;
    }
    for (int e = d + 1; e < map->rank; e++) later *= map->extent[e];
    weft__put(w->out, d > 0 ? "(p%d_%d" : "p%d_%d", i, m);
    if (later > 1) weft__put(w->out, " / %lld", (long long)later);
    if (d > 0) weft__put(w->out, " %% %lld)", (long long)map->extent[d]);
}

/* Writes the number that map m yields. */
static void put_linear(const writing *w, int i, const weft_view *view, int m, int rank) {
    const weft_map *map = &view->map[m];
    bool any = map->offset != 0;
    if (any) weft__put(w->out, "%lld", (long long)map->offset);
    for (int d = 0; d < rank; d++) {
        const int64_t stride = map->stride[d];
        if (stride == 0 || map->extent[d] <= 1) continue;
        weft__put(w->out, stride < 0 ? any ? " - " : "-" : any ? " + " : "");
        put_index(w, i, view, m, d);
        if (stride != 1 && stride != -1)
            weft__put(w->out, " * %lld", (long long)(stride < 0 ? -stride : stride));
        any = true;
    }
    if (!any) weft__put(w->out, "0");
}

/* Writes the numbers between the maps of instruction i as variables. Returns false if no guard of the view
 * can ever hold. */
static bool put_places(const writing *w, int i) {
    const weft_instr *in = &w->k->code[i];
    const weft_view *view = &w->k->views[in->view];
    bool reads[WEFT_VIEW_MAPS + 1], possible = true;
    reads[view->count] = in->kind != WEFT_INSTR_MASK;
    for (int m = view->count - 1; m >= 0; m--) {
        const int rank = rank_of(w, in->level, view, m);
        reads[m] = map_reads(&view->map[m], rank, reads[m + 1]);
        for (int d = 0; d < rank; d++)
            if (view->map[m].lo[d] >= view->map[m].hi[d] ||
                (view->map[m].extent[d] == 1 && view->map[m].lo[d] > 0))
                possible = false;
    }
    for (int m = 1; m < view->count && possible; m++) {
        if (!reads[m]) continue;
        line(w);
        weft__put(w->out, "const int32_t p%d_%d = ", i, m);
        put_linear(w, i, view, m - 1, rank_of(w, in->level, view, m - 1));
        weft__put(w->out, ";\n");
    }
    return possible;
}

/* Writes the condition that all guards hold. Writes nothing, and returns false, if there are none. */
static bool put_condition(const writing *w, int i) {
    const weft_instr *in = &w->k->code[i];
    const weft_view *view = &w->k->views[in->view];
    bool any = false;
    for (int m = 0; m < view->count; m++) {
        const weft_map *map = &view->map[m];
        for (int d = 0; d < rank_of(w, in->level, view, m); d++) {
            if (map->extent[d] <= 1 || !guards(map, d)) continue;
            if (map->lo[d] > 0) {
                weft__put(w->out, any ? " && " : "");
                put_index(w, i, view, m, d);
                weft__put(w->out, " >= %lld", (long long)map->lo[d]);
                any = true;
            }
            if (map->hi[d] < map->extent[d]) {
                weft__put(w->out, any ? " && " : "");
                put_index(w, i, view, m, d);
                weft__put(w->out, " < %lld", (long long)map->hi[d]);
                any = true;
            }
        }
    }
    return any;
}

static void put_element(const writing *w, int i) {
    const weft_instr *in = &w->k->code[i];
    const weft_view *view = &w->k->views[in->view];
    put_linear(w, i, view, view->count - 1, rank_of(w, in->level, view, view->count - 1));
}

/* ---- instructions ---- */

static const char *zero_of(weft_dtype dtype) { return dtype == WEFT_F32 ? "0.0f" : "0"; }

static void put_read(const writing *w, int i) {
    const weft_instr *in = &w->k->code[i];
    weft__put(w->out, "a%d[", in->arg);
    put_element(w, i);
    if (in->kind == WEFT_INSTR_GATHER) weft__put(w->out, " + v%d * %lld", in->a, (long long)in->imm_i);
    weft__put(w->out, "]");
}

/* Writes a value that depends on a view: INDEX, MASK, LOAD, GATHER, RANDOM. */
static void put_viewed(const writing *w, int i, bool possible) {
    const weft_instr *in = &w->k->code[i];
    const char *zero = zero_of((weft_dtype)in->dtype);
    if (!possible) {
        weft__put(w->out, "%s", zero);
        return;
    }
    bool condition = put_condition(w, i);
    if (in->kind == WEFT_INSTR_MASK) {
        if (!condition) weft__put(w->out, "1");
        return;
    }
    if (in->kind == WEFT_INSTR_GATHER) {
        weft__put(w->out, "%sv%d >= 0 && v%d < %lld", condition ? " && " : "", in->a, in->a,
                  (long long)in->bound);
        condition = true;
    }
    if (condition) weft__put(w->out, " ? ");
    if (in->kind == WEFT_INSTR_RANDOM) weft__put(w->out, "draw(a%d, ", in->arg);
    if (in->kind == WEFT_INSTR_INDEX || in->kind == WEFT_INSTR_RANDOM)
        put_element(w, i);
    else
        put_read(w, i);
    if (in->kind == WEFT_INSTR_RANDOM) weft__put(w->out, ")");
    if (condition) weft__put(w->out, " : %s", zero);
}

static void put_value(const writing *w, int i) {
    const weft_instr *in = &w->k->code[i];
    char names[3][16];
    const int operands[3] = {in->a, in->b, in->c};
    const weft_dtype operands_of = in->a < 0 ? WEFT_F32 : (weft_dtype)w->k->code[in->a].dtype;
    for (int o = 0; o < 3; o++) snprintf(names[o], sizeof names[o], "v%d", operands[o]);
    switch ((weft_instr_kind)in->kind) {
    case WEFT_INSTR_CONST:
        if (in->dtype == WEFT_F32)
            weft__c99_f32(w->out, (float)in->imm_f);
        else
            weft__c99_integer(w->out, in->imm_i);
        return;
    case WEFT_INSTR_CALC:
        weft__c99_put(w->out, weft__c99_row(in->op, operands_of), operands_of,
                      (const char *const[]){names[0], names[1], names[2]});
        return;
    default: /* CAST */
        if (in->dtype == WEFT_BOOL)
            weft__put(w->out, "%s != 0", names[0]);
        else
            weft__put(w->out, "(%s)%s", weft__c99_type((weft_dtype)in->dtype), names[0]);
    }
}

static void put_store(const writing *w, int i) {
    const weft_instr *in = &w->k->code[i];
    if (!put_places(w, i)) return;
    line(w);
    weft_text counted = weft__text(NULL, 0); /* is there a condition? */
    writing silent = *w;
    silent.out = &counted;
    if (put_condition(&silent, i)) {
        weft__put(w->out, "if (");
        put_condition(w, i);
        weft__put(w->out, ") ");
    }
    weft__put(w->out, "a%d[", in->arg);
    put_element(w, i);
    weft__put(w->out, "] = v%d;\n", in->a);
}

static void put_instr(const writing *w, int i) {
    const weft_instr *in = &w->k->code[i];
    if (in->kind == WEFT_INSTR_STORE) {
        put_store(w, i);
        return;
    }
    const bool viewed = in->view >= 0;
    const bool possible = !viewed || put_places(w, i);
    line(w);
    weft__put(w->out, "const %s v%d = ", weft__c99_type((weft_dtype)in->dtype), i);
    if (viewed)
        put_viewed(w, i, possible);
    else
        put_value(w, i);
    weft__put(w->out, ";\n");
}

/* ---- rows ---- */

static void c99_find_stages(writing *w) {
    for (int i = 0; i < w->k->n_code; i++) {
        const weft_instr *in = &w->k->code[i];
        const int operands[3] = {in->a, in->b, in->c};
        for (int o = 0; o < 3; o++) {
            if (operands[o] < 0) continue;
            const int needs = w->stage[operands[o]] + (w->k->code[operands[o]].kind == WEFT_INSTR_REDUCE);
            if (needs > w->stage[i]) w->stage[i] = needs;
        }
        if (w->stage[i] > w->stages) w->stages = w->stage[i];
    }
}

static bool in_loop(const writing *w, int i, int stage) {
    const weft_instr *in = &w->k->code[i];
    if (in->kind == WEFT_INSTR_REDUCE) return w->stage[i] == stage;
    if (in->kind == WEFT_INSTR_FOLD) return in->level == WEFT_LEVEL_COLUMN && w->stage[i] == stage;
    return in->kind == WEFT_INSTR_STORE && in->level == WEFT_LEVEL_FULL && stage == w->stages;
}

/* Finds the values at reduction indices that the loop of a stage needs. Returns false if it needs none. */
static bool find_needed(writing *w, int stage) {
    bool any = false;
    memset(w->needed, 0, (size_t)w->k->n_code * sizeof *w->needed);
    for (int i = w->k->n_code - 1; i >= 0; i--) {
        const weft_instr *in = &w->k->code[i];
        if (in_loop(w, i, stage)) w->needed[i] = true;
        if (!w->needed[i]) continue;
        const int operands[3] = {in->a, in->b, in->c};
        for (int o = 0; o < 3; o++)
            if (operands[o] >= 0 && weft__level_inner(w->k->code[operands[o]].level))
                w->needed[operands[o]] = true;
        any = true;
    }
    return any;
}

/* The last block of rows may be shorter than the others. */
static void open_loop(writing *w, int d) {
    const bool rows = w->k->last_rows && d == w->k->n_parallel - 1;
    if (w->k->extent[d] == 1) return; /* index 0 is never written */
    line(w);
    weft__put(w->out, "for (int32_t i%d = 0; i%d < ", d, d);
    if (rows && w->k->extent[d - 1] > 1)
        weft__put(w->out, "(i%d == %lld ? %lld : %lld)", d - 1, (long long)w->k->extent[d - 1] - 1,
                  (long long)w->k->last_rows, (long long)w->k->extent[d]);
    else
        weft__put(w->out, "%lld", (long long)(rows ? w->k->last_rows : w->k->extent[d]));
    weft__put(w->out, "; i%d++) {\n", d);
    w->depth++;
}

static void close_loop(writing *w, int d) {
    if (w->k->extent[d] == 1) return;
    w->depth--;
    line(w);
    weft__put(w->out, "}\n");
}

static bool sums_in_double(const weft_instr *in) { return in->op == WEFT_OP_SUM && in->dtype == WEFT_F32; }

/* Writes "so_far = op(so_far, value)" for the operand of a reduction or fold. */
static void put_joined(const writing *w, int i, const char *so_far) {
    const weft_instr *in = &w->k->code[i];
    char next[16];
    snprintf(next, sizeof next, "v%d", in->a);
    weft__put(w->out, "%s = ", so_far);
    weft__c99_put(w->out, weft__c99_row(in->op, (weft_dtype)in->dtype), (weft_dtype)in->dtype,
                  (const char *const[]){so_far, next, ""});
    weft__put(w->out, ";\n");
}

static void put_join(const writing *w, int i) {
    const weft_instr *in = &w->k->code[i];
    char so_far[16];
    snprintf(so_far, sizeof so_far, "r%d", i);
    line(w);
    if (sums_in_double(in))
        weft__put(w->out, "%s += (double)v%d;\n", so_far, in->a);
    else
        put_joined(w, i, so_far);
}

/* Writes "double r1 = 0.0;", where a reduction or fold begins. */
static void put_start(const writing *w, int i) {
    const weft_instr *in = &w->k->code[i];
    line(w);
    weft__put(w->out, "%s r%d = %s;\n", sums_in_double(in) ? "double" : weft__c99_type((weft_dtype)in->dtype),
              i, weft__c99_start(in->op, (weft_dtype)in->dtype));
}

/* ---- folds with columns, which accumulate where they are stored ---- */

/* Returns the store of a fold, after number `from`. Returns n_code if there is none. */
static int next_store(const writing *w, int fold, int from) {
    int i = from;
    while (i < w->k->n_code && (w->k->code[i].kind != WEFT_INSTR_STORE || w->k->code[i].a != fold)) i++;
    return i;
}

static void put_sums(writing *w, int fold) {
    char so_far[300];
    for (int i = next_store(w, fold, 0); i < w->k->n_code; i = next_store(w, fold, i + 1)) {
        weft_text place = weft__text(so_far, sizeof so_far);
        writing other = *w;
        other.out = &place;
        if (!put_places(w, i)) continue;
        weft__put(&place, "a%d[", w->k->code[i].arg);
        put_element(&other, i);
        weft__put(&place, "]");
        line(w);
        put_joined(w, fold, so_far);
    }
}

/* Writes the loop over the reduction indices of one stage. */
static void put_stage(writing *w, int stage) {
    const weft_kernel *k = w->k;
    if (!find_needed(w, stage)) return;
    for (int i = 0; i < k->n_code; i++) {
        const weft_instr *in = &k->code[i];
        if (in->kind == WEFT_INSTR_REDUCE && w->stage[i] == stage) put_start(w, i);
    }
    for (int d = 0; d < k->n_reduce; d++) open_loop(w, k->n_parallel + d);
    const bool flat = weft__kernel_row_length(k) == 1; /* no loop was opened: a block keeps the names apart */
    if (flat) line(w), weft__put(w->out, "{\n"), w->depth++;
    for (int i = 0; i < k->n_code; i++) {
        if (!w->needed[i]) continue;
        if (k->code[i].kind == WEFT_INSTR_REDUCE)
            put_join(w, i);
        else if (k->code[i].kind == WEFT_INSTR_FOLD)
            put_sums(w, i);
        else
            put_instr(w, i);
    }
    if (flat) w->depth--, line(w), weft__put(w->out, "}\n");
    for (int d = k->n_reduce - 1; d >= 0; d--) close_loop(w, k->n_parallel + d);
    for (int i = 0; i < k->n_code; i++) {
        const weft_instr *in = &k->code[i];
        if (in->kind != WEFT_INSTR_REDUCE || w->stage[i] != stage) continue;
        const char *type = weft__c99_type((weft_dtype)in->dtype);
        line(w);
        weft__put(w->out, "const %s v%d = (%s)r%d;\n", type, i, type, i);
    }
}

/* Stores of rows with reductions come last, since reductions may still read what they replace. */
static void put_row(writing *w) {
    const weft_kernel *k = w->k;
    for (int s = 0; s <= w->stages; s++) {
        for (int i = 0; i < k->n_code; i++) {
            const weft_instr *in = &k->code[i];
            if (in->level != WEFT_LEVEL_ROW || w->stage[i] != s || in->kind == WEFT_INSTR_REDUCE) continue;
            if (in->kind == WEFT_INSTR_STORE && k->n_reduce > 0) continue;
            put_instr(w, i);
        }
        if (k->n_reduce > 0) put_stage(w, s);
    }
    for (int i = 0; i < k->n_code && k->n_reduce > 0; i++)
        if (k->code[i].kind == WEFT_INSTR_STORE && k->code[i].level == WEFT_LEVEL_ROW) put_instr(w, i);
    for (int i = 0; i < k->n_code; i++)
        if (k->code[i].kind == WEFT_INSTR_FOLD && k->code[i].level == WEFT_LEVEL_BLOCK) put_join(w, i);
}

/* Writes where the folds of a block begin. */
static void put_fold_starts(writing *w) {
    const weft_kernel *k = w->k;
    for (int i = 0; i < k->n_code; i++) {
        const weft_instr *in = &k->code[i];
        if (in->kind != WEFT_INSTR_FOLD) continue;
        if (in->level == WEFT_LEVEL_BLOCK) {
            put_start(w, i);
            continue;
        }
        for (int d = 0; d < k->n_reduce; d++) open_loop(w, k->n_parallel + d);
        for (int s = next_store(w, i, 0); s < k->n_code; s = next_store(w, i, s + 1)) {
            if (!put_places(w, s)) continue;
            line(w);
            weft__put(w->out, "a%d[", k->code[s].arg);
            put_element(w, s);
            weft__put(w->out, "] = %s;\n", weft__c99_start(in->op, (weft_dtype)in->dtype));
        }
        for (int d = k->n_reduce - 1; d >= 0; d--) close_loop(w, k->n_parallel + d);
    }
}

/* Writes the stores of folds without columns. */
static void put_fold_stores(writing *w) {
    const weft_kernel *k = w->k;
    for (int i = 0; i < k->n_code; i++) {
        const weft_instr *in = &k->code[i];
        if (in->kind == WEFT_INSTR_FOLD && in->level == WEFT_LEVEL_BLOCK) {
            const char *type = weft__c99_type((weft_dtype)in->dtype);
            line(w);
            weft__put(w->out, "const %s v%d = (%s)r%d;\n", type, i, type, i);
        } else if (in->kind == WEFT_INSTR_STORE && in->level == WEFT_LEVEL_BLOCK) {
            put_store(w, i);
        }
    }
}

static void put_head(const writing *w, const char *name) {
    weft__put(w->out, "static void %s(", name);
    for (int a = 0; a < w->k->n_args; a++)
        weft__put(w->out, "%s%s%s *a%d", a ? ", " : "", w->k->args[a].written ? "" : "const ",
                  weft__c99_type((weft_dtype)w->k->args[a].dtype), a);
    weft__put(w->out, ") {\n");
}

weft_status weft__c99_kernel(weft_context *ctx, const weft_kernel *k, const char *name, weft_text *out) {
    const size_t n = (size_t)k->n_code + 1;
    writing w = {.k = k, .out = out, .depth = 1};
    w.stage = weft__array(ctx, n, sizeof *w.stage);
    w.needed = weft__array(ctx, n, sizeof *w.needed);
    const bool room = w.stage && w.needed;
    if (room) {
        c99_find_stages(&w);
        put_head(&w, name);
        const int blocks = k->n_parallel - k->n_fold;
        for (int d = 0; d < blocks; d++) open_loop(&w, d);
        put_fold_starts(&w);
        for (int d = blocks; d < k->n_parallel; d++) open_loop(&w, d);
        put_row(&w);
        for (int d = k->n_parallel - 1; d >= blocks; d--) close_loop(&w, d);
        put_fold_stores(&w);
        for (int d = blocks - 1; d >= 0; d--) close_loop(&w, d);
        weft__put(out, "}\n\n");
    }
    weft__free(ctx, w.stage);
    weft__free(ctx, w.needed);
    return room ? WEFT_OK : weft__fail_oom(ctx, n * sizeof *w.stage, "a kernel as C");
}
