/* Chooses what the source of a kernel looks like: stages, the lane dimension, which values vary between
 * lanes, the width of indices. All choices depend on shapes, views and dtypes alone. Must not know: how lines
 * are written. Read next: render_rows.c. */
#include <string.h>

#include "kernel/render.h"

bool weft__stores_elements(const weft_instr *in) {
    return in->kind == WEFT_INSTR_STORE && in->level == WEFT_LEVEL_FULL;
}

bool weft__ends_loop(const weft_instr *in) {
    return in->kind == WEFT_INSTR_REDUCE || (in->kind == WEFT_INSTR_FOLD && in->level == WEFT_LEVEL_COLUMN);
}

static void find_stages(weft_render *r) {
    const weft_kernel *k = r->kernel;
    for (int i = 0; i < k->n_code; i++) {
        const int operands[3] = {k->code[i].a, k->code[i].b, k->code[i].c};
        r->stage[i] = 0;
        for (int o = 0; o < 3; o++) {
            if (operands[o] < 0) continue;
            const int needs = r->stage[operands[o]] + (k->code[operands[o]].kind == WEFT_INSTR_REDUCE);
            if (needs > r->stage[i]) r->stage[i] = (uint8_t)needs;
        }
        if (r->stage[i] > r->stages) r->stages = r->stage[i];
    }
    /* Stores go to the last loop that is needed anyway. A loop of their own would compute all again. */
    for (int i = 0; i < k->n_code; i++)
        if ((weft__ends_loop(&k->code[i]) || weft__stores_elements(&k->code[i])) &&
            r->stage[i] > r->last_loop)
            r->last_loop = r->stage[i];
}

/* Does the stage need a loop over the reduced indices? */
bool weft__stage_is_full(const weft_render *r, int stage) {
    for (int i = 0; i < r->kernel->n_code; i++) {
        const weft_instr *in = &r->kernel->code[i];
        if (weft__ends_loop(in) && r->stage[i] == stage) return true;
        if (weft__stores_elements(in) && stage == r->last_loop) return true;
    }
    return false;
}

/* ---- the lane dimension ---- */

#define ROWS_MANY 8     /* with at least so many rows for each compute unit, rows are many */
#define EACH_MOST 32    /* elements of a row for each lane; longer rows get more lanes */
#define BUSY      16384 /* fewer work-items leave parts of a card idle; fixed, since bits depend on it */
#define TINY      4096  /* elements of a kernel that takes no longer than its launch */

bool weft__moves_along(const weft_map *m, int d) {
    return m->stride[d] != 0 || m->lo[d] > 0 || m->hi[d] < m->extent[d];
}

/* Rough cost of an access by the items of a group, if lanes run along d. */
static double access_cost(const weft_view *view, int d) {
    const weft_map *m = &view->map[0];
    if (!weft__moves_along(m, d)) return 0.5;
    if (view->count > 1) return 12;
    return m->stride[d] == 1 ? 1 : 8;
}

/* Number of lanes if they run along d. Work-items that run in step reduce a row without waiting for each
 * other, so many short rows get only as many lanes. Few rows, or long rows, get all lanes of a group. */
static int lanes_along(const weft_render *r, int d) {
    const weft_kernel *k = r->kernel;
    const int most = r->target->lanes;
    int lanes = 64; /* items in step; OpenCL does not tell */
    if (weft__has_teams(r)) return weft__team_lanes(r, d);
    const int64_t rows = weft__kernel_rows(k) / weft__kernel_block_rows(k);
    if (d < k->n_parallel || rows < ROWS_MANY * (int64_t)r->target->units) return most;
    while (lanes < most && k->extent[d] > (int64_t)lanes * EACH_MOST) lanes *= 2;
    return lanes < most ? lanes : most;
}

/* How many times longer a kernel takes because it has too few work-items, if lanes run along d. */
static double idle(const weft_render *r, int d) {
    const weft_kernel *k = r->kernel;
    const double elements = (double)weft__kernel_rows(k) * (double)weft__kernel_row_length(k);
    double items = (double)weft__kernel_rows(k) / (double)weft__kernel_block_rows(k);
    if (elements <= TINY) return 1;
    if (d >= k->n_parallel)
        items *= k->n_fold > 0 && weft__has_teams(r) ? r->target->lanes : lanes_along(r, d);
    else if (weft__may_split(r))
        items = elements;
    return items < BUSY ? BUSY / items : 1;
}

/* Rough cost of one element of the index space if lanes run along d. */
static double lane_cost(const weft_render *r, int d) {
    const weft_kernel *k = r->kernel;
    const bool reduced = d >= k->n_parallel;
    const double lanes = r->target->lanes, extent = (double)k->extent[d];
    const double length = (double)weft__kernel_row_length(k), used = lanes_along(r, d);
    double full = 0, row = 0;
    for (int i = 0; i < k->n_code; i++) {
        const weft_instr *in = &k->code[i];
        if (in->kind == WEFT_INSTR_CONST) continue;
        double cost = in->view >= 0 ? access_cost(&k->views[in->view], d) : 1;
        if (in->kind == WEFT_INSTR_REDUCE && reduced) row += 60 * used / lanes;
        if (weft__level_inner(in->level) || in->kind == WEFT_INSTR_REDUCE || k->n_reduce == 0)
            full += cost;
        else
            row += reduced ? cost : cost / lanes;
    }
    const double waste = (double)weft__ceil_div((int64_t)extent, (int64_t)used) * used / extent;
    if (!reduced) row *= waste;
    return (full * waste / lanes + row / (length > 0 ? length : 1)) * idle(r, d);
}

static void choose_lane(weft_render *r) {
    const weft_kernel *k = r->kernel;
    double best = 0;
    r->lanes.dim = -1;
    for (int d = 0; d < k->n_parallel + k->n_reduce; d++) {
        const bool folded = d >= k->n_parallel - k->n_fold && d < k->n_parallel;
        if (folded || k->extent[d] <= 1) continue;
        const double cost = lane_cost(r, d);
        if (r->lanes.dim >= 0 && cost >= best) continue;
        best = cost;
        r->lanes.dim = d;
    }
    r->lanes.reduced = r->lanes.dim >= k->n_parallel;
    r->lanes.count = r->lanes.dim >= 0 ? lanes_along(r, r->lanes.dim) : r->target->lanes;
}

/* ---- what varies ---- */

/* Finds the values that differ between lanes: their operands do, or their view moves along the lane
 * dimension. */
static void find_varying(weft_render *r) {
    const weft_kernel *k = r->kernel;
    for (int i = 0; i < k->n_code; i++) {
        const weft_instr *in = &k->code[i];
        const int operands[3] = {in->a, in->b, in->c};
        bool varies = false;
        for (int o = 0; o < 3; o++) varies = varies || (operands[o] >= 0 && r->varies[operands[o]]);
        if (in->view >= 0 && r->lanes.dim >= 0)
            varies = varies || weft__moves_along(&k->views[in->view].map[0], r->lanes.dim);
        if (r->lanes.dim < 0) varies = false;
        if (r->lanes.reduced && !weft__level_inner(in->level)) varies = false;
        if (in->kind == WEFT_INSTR_FOLD && in->level == WEFT_LEVEL_COLUMN) varies = r->lanes.dim >= 0;
        r->varies[i] = varies;
    }
}

/* Finds the values that depend on a float that was rounded to 16 bits. */
static void find_rounded(weft_render *r) {
    const weft_kernel *k = r->kernel;
    for (int i = 0; i < k->n_code; i++) {
        const weft_instr *in = &k->code[i];
        const int operands[3] = {in->a, in->b, in->c};
        if (!weft_dtype_is_float((weft_dtype)in->dtype)) continue;
        r->rounded[i] = in->dtype == WEFT_BF16 || in->dtype == WEFT_F16;
        for (int o = 0; o < 3; o++)
            r->rounded[i] = r->rounded[i] || (operands[o] >= 0 && r->rounded[operands[o]]);
    }
}

/* ---- the width of indices ---- */

#define BEYOND 65536 /* how far a loop may fetch past an end */

/* Do all numbers fit in 32 bits that the computation of an element needs? Lanes may go beyond the end of the
 * lane dimension. */
static bool map_is_narrow(const weft_map *m, int lane, int lanes) {
    int64_t most = m->offset < 0 ? -m->offset : m->offset, term;
    for (int d = 0; d < m->rank; d++) {
        const int64_t stride = m->stride[d] < 0 ? -m->stride[d] : m->stride[d];
        const int64_t extent = m->extent[d] + (d == lane ? lanes : 0);
        if (!weft__mul(extent, stride, &term) || !weft__add(most, term, &most)) return false;
    }
    return most <= INT32_MAX;
}

static bool is_narrow(const weft_render *r) {
    const weft_kernel *k = r->kernel;
    if (weft__kernel_rows(k) * weft__kernel_row_length(k) > INT32_MAX - BEYOND) return false;
    if (weft__kernel_rows(k) > INT32_MAX - BEYOND || weft__kernel_row_length(k) > INT32_MAX - BEYOND)
        return false;
    for (int a = 0; a < k->n_args; a++)
        if (k->args[a].elements > INT32_MAX - BEYOND) return false;
    for (int i = 0; i < k->n_code; i++) {
        const weft_instr *in = &k->code[i];
        int64_t reach = 0;
        const bool gathers = in->kind == WEFT_INSTR_GATHER;
        const int64_t pitch = !gathers ? 0 : in->imm_i < 0 ? -in->imm_i : in->imm_i;
        if (gathers && !weft__mul(pitch, in->bound, &reach)) return false;
        if (reach > INT32_MAX) return false;
        for (int m = 0; in->view >= 0 && m < k->views[in->view].count; m++)
            if (!map_is_narrow(&k->views[in->view].map[m], m == 0 ? r->lanes.dim : -1, r->lanes.count))
                return false;
    }
    return true;
}

weft_status weft__render_choose(weft_render *r) {
    const weft_kernel *k = r->kernel;
    const size_t n = (size_t)k->n_code + 1;
    r->stage = weft__array(r->launches->ctx, n, sizeof *r->stage);
    r->varies = weft__array(r->launches->ctx, n, sizeof *r->varies);
    r->rounded = weft__array(r->launches->ctx, n, sizeof *r->rounded);
    r->wanted = weft__array(r->launches->ctx, n, sizeof *r->wanted);
    r->row.first = weft__array(r->launches->ctx, n, sizeof *r->row.first);
    r->row.kept = weft__array(r->launches->ctx, n, sizeof *r->row.kept);
    r->scratch = weft__array(r->launches->ctx, n, sizeof *r->scratch);
    r->row.stash = weft__array(r->launches->ctx, n, sizeof *r->row.stash);
    if (!r->stage || !r->varies || !r->rounded || !r->wanted || !r->row.first || !r->row.kept ||
        !r->scratch || !r->row.stash)
        return weft__fail_oom(r->launches->ctx, n * 20, "render: kernel");
    r->row.ahead = -1;
    find_stages(r);
    choose_lane(r);
    if (r->product >= 0) r->lanes.dim = k->n_parallel - 1;
    find_varying(r);
    find_rounded(r);
    r->wide = r->launches->target->long_indices || !is_narrow(r);
    weft__choose_span(r);
    weft__choose_teams(r);
    weft__choose_loops(r);
    return WEFT_OK;
}
