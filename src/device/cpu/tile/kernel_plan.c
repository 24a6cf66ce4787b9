/* Turns a fused kernel into a tile program. It decides which dimensions merge, which layout the tiles have
 * and how the index space is divided. All of this depends on shapes, views and dtypes alone.
 * Must not know: threads. Read next: kernel_plan.h, kernel_steps.c. */
#include <stdlib.h>
#include <string.h>

#include "device/cpu/tile/kernel_plan.h"

/* ---- merging dimensions ---- */

/* Returns whether in every view one step of dimension `outer` is as long as all steps of `inner`. */
static bool mergeable(const weft_kernel *k, int outer, int inner) {
    for (int i = 0; i < k->n_views; i++) {
        const weft_map *m = &k->views[i].map[0];
        if (m->stride[outer] != m->stride[inner] * k->extent[inner]) return false;
        if (m->lo[inner] > 0 || m->hi[inner] < k->extent[inner]) return false;
    }
    return true;
}

/* Merges kernel dimensions begin..end-1 into groups. Returns the new number of dimensions. */
static int collapse(weft_geometry *g, int begin, int end, int n) {
    const weft_kernel *k = g->kernel;
    const int first = n;
    for (int d = begin; d < end; d++) {
        if (k->extent[d] == 1) continue;
        if (n > first && mergeable(k, g->group[n - 1].inner, d)) {
            g->group[n - 1].inner = d;
            g->group[n - 1].scale *= k->extent[d];
            g->plan->extent[n - 1] *= k->extent[d];
            continue;
        }
        g->group[n] = (weft_group){d, d, 1, 1, false};
        g->plan->extent[n++] = k->extent[d];
    }
    return n;
}

/* ---- partition into tiles ---- */

/* Fills in split, chunk and the counts so that a tile has at most about `most` indices, and at least one.
 * Chunks are even. They are multiples of 16 where that costs little. */
static void kernel_plan_partition(const int64_t *extent, weft_nest *n, int64_t most) {
    n->total = n->inner = n->tiles = 1;
    int d = n->first + n->count - 1;
    for (int i = n->first; i <= d; i++) n->total *= extent[i];
    for (; d > n->single && extent[d] * n->inner <= most; d--) n->inner *= extent[d];
    n->split = d;
    if (n->count == 0 || n->total == 0) {
        n->split = n->first, n->inner = n->chunk = n->chunks = 1, n->max = n->total;
        n->tiles = n->total;
        return;
    }
    int64_t fit = most / n->inner;
    n->chunk = extent[d] < fit ? extent[d] : fit;
    if (n->chunk < 1) n->chunk = 1;
    n->chunks = (extent[d] + n->chunk - 1) / n->chunk;
    if (n->chunks > 1) {
        int64_t even = (extent[d] + n->chunks - 1) / n->chunks;
        if (n->inner == 1 && even > 16) even = (even + 15) / 16 * 16;
        n->chunk = even < n->chunk ? even : n->chunk;
        n->chunks = (extent[d] + n->chunk - 1) / n->chunk;
    }
    n->max = n->chunk * n->inner;
    n->tiles = n->chunks;
    for (int i = n->first; i < d; i++) n->tiles *= extent[i];
}

/* Returns the stride of dimension d of the plan in a view. */
static int64_t stride_of(const weft_geometry *g, const weft_view *v, int d) {
    return v->map[0].stride[g->group[d].inner] * g->group[d].step;
}

/* Returns whether columns are the better layout. They are if more views are contiguous along the last
 * parallel dimension than along the last reduction dimension. */
static bool prefers_columns(const weft_geometry *g) {
    const weft_kernel *k = g->kernel;
    const weft_nest *p = &g->plan->parallel, *r = &g->plan->reduction;
    int rows = 0, columns = 0;
    if (r->count == 0 || p->count == 0 || k->n_fold) return false;
    for (int i = 0; i < k->n_code; i++) {
        const weft_instr *c = &k->code[i];
        if (c->level != WEFT_LEVEL_FULL || c->view < 0) continue;
        const weft_view *v = &k->views[c->view];
        int64_t along_row = stride_of(g, v, r->first + r->count - 1);
        int64_t along_column = stride_of(g, v, p->first + p->count - 1);
        if (along_row == 1)
            rows++;
        else if (along_column == 1)
            columns++;
    }
    return columns > rows;
}

/* For kernels without a reduction: returns the dimension along which some view is contiguous although that
 * view jumps along the last dimension. Returns -1 if there is none. */
static int turned_dimension(const weft_geometry *g) {
    const weft_kernel *k = g->kernel;
    const int last = g->plan->parallel.count - 1;
    for (int i = 0; i < k->n_views; i++) {
        int64_t along = stride_of(g, &k->views[i], last);
        if (along >= -1 && along <= 1) continue;
        for (int d = 0; d < last; d++) {
            int64_t side = stride_of(g, &k->views[i], d);
            if ((side == 1 || side == -1) && g->plan->extent[d] >= 8) return d;
        }
    }
    return -1;
}

static bool guarded_along(const weft_kernel *k, int d) {
    for (int i = 0; i < k->n_views; i++)
        if (k->views[i].map[0].lo[d] > 0 || k->views[i].map[0].hi[d] < k->extent[d]) return true;
    return false;
}

/* Makes tiles square for a transposition. Read row by row, it would fetch a cache line for every element. The
 * turned dimension moves next to the last one. The last one is divided so that a tile has room for both.
 *
 *     before: (.., turned, .., last)
 *     after:  (.., last / part, turned, part) */
static void make_square(weft_geometry *g) {
    weft_nest *p = &g->plan->parallel;
    int64_t *extent = g->plan->extent;
    if (g->kernel->n_reduce || g->kernel->n_fold || p->count < 2) return;
    const int turned = turned_dimension(g), last = p->count - 1;
    if (turned < 0) return;
    const weft_group group = g->group[turned];
    const int64_t length = extent[turned];
    for (int d = turned; d < last - 1; d++) g->group[d] = g->group[d + 1], extent[d] = extent[d + 1];
    g->group[last - 1] = group, extent[last - 1] = length;
    int64_t part = 0;
    for (int64_t n = 64; n >= 16 && extent[last] > 64; n--)
        if (extent[last] % n == 0 && (n == 32 || !part)) part = n;
    const weft_group whole = g->group[last];
    if (!part || p->count == WEFT_DIMS || whole.outer != whole.inner || guarded_along(g->kernel, whole.inner))
        return;
    g->group[last + 1] = (weft_group){whole.inner, whole.inner, 1, 1, true};
    extent[last + 1] = part;
    g->group[last] = group, extent[last] = length;
    g->group[last - 1] = (weft_group){whole.inner, whole.inner, 1, part, true};
    extent[last - 1] = g->kernel->extent[whole.inner] / part;
    p->count++;
}

static bool has_wide_values(const weft_kernel *k) {
    for (int i = 0; i < k->n_code; i++)
        if (weft__ct_size(weft__ct((weft_dtype)k->code[i].dtype)) > 4) return true;
    return false;
}

/* Returns whether elements are used only for sums of products. Such products are never stored
 * (weft__values_classify). All other values are row values, and small tiles would have few of these. */
static bool only_sums_products(const weft_kernel *k) {
    bool any = false;
    for (int v = 0; v < k->n_code; v++) {
        const weft_instr *c = &k->code[v];
        if (c->level != WEFT_LEVEL_FULL || c->kind == WEFT_INSTR_LOAD) continue;
        if (c->kind != WEFT_INSTR_CALC || c->op != WEFT_OP_MUL) return false;
        for (int i = v + 1; i < k->n_code; i++) {
            const weft_instr *user = &k->code[i];
            if (user->a != v && user->b != v && user->c != v) continue;
            if ((user->kind != WEFT_INSTR_REDUCE && user->kind != WEFT_INSTR_FOLD) || user->op != WEFT_OP_SUM)
                return false;
        }
        any = true;
    }
    return any;
}

/* Chooses the tile size: WEFT_TILE elements of 4 bytes, or half as many of 8 bytes. If only sums of products
 * are computed, a tile has four times as many. Columns are narrower if this gives the threads enough tiles to
 * share. */
static void cut_space(weft_geometry *g) {
    weft_kernel_plan *plan = g->plan;
    int64_t most = has_wide_values(g->kernel) ? WEFT_TILE / 2 : WEFT_TILE;
    make_square(g);
    plan->reduction.first = plan->reduction.single = plan->parallel.count;
    plan->columns = prefers_columns(g);
    if (!plan->columns && only_sums_products(g->kernel)) most *= 4;
    kernel_plan_partition(plan->extent, &plan->reduction, most);
    kernel_plan_partition(plan->extent, &plan->parallel, most);
    if (plan->reduction.count == 0) return;
    int64_t length = plan->reduction.total, rows = plan->parallel.total;
    if (plan->columns) {
        const int64_t last = plan->extent[plan->parallel.first + plan->parallel.count - 1];
        int64_t width = rows / 8 < 128 ? 128 : rows / 8;
        if ((last >= 128 || (last >= 16 && last * length >= most)) && last < width)
            width = last; /* after it the next row begins, not the next column */
        width = (width < most ? width : most) / 16 * 16;
        kernel_plan_partition(plan->extent, &plan->parallel, width);
        int64_t deep = plan->parallel.max ? most / plan->parallel.max : most;
        kernel_plan_partition(plan->extent, &plan->reduction, deep > 1 ? deep : 1);
    } else {
        int64_t fit = length ? most / length : most;
        kernel_plan_partition(plan->extent, &plan->parallel, fit > 1 ? fit : 1);
    }
}

/* Groups all dimensions. The dimensions of the rows of a block are never merged with others, and there is
 * always at least one. */
static void set_space(weft_geometry *g) {
    const weft_kernel *k = g->kernel;
    const int outer = k->n_parallel - k->n_fold;
    const int single = collapse(g, 0, outer, 0);
    int n = collapse(g, outer, k->n_parallel, single);
    if (k->n_fold && n == single) {
        g->group[n] = (weft_group){outer, outer, 1, 1, false};
        g->plan->extent[n++] = 1;
    }
    g->plan->parallel = (weft_nest){.first = 0, .count = n, .single = k->n_fold ? single : 0};
    const int all = collapse(g, k->n_parallel, k->n_parallel + k->n_reduce, n);
    g->plan->reduction = (weft_nest){.first = n, .count = all - n};
}

/* Returns how many tiles one block of rows has. */
static int64_t tiles_a_block(const weft_geometry *g) {
    const weft_nest *p = &g->plan->parallel;
    int64_t tiles = p->chunks;
    if (g->kernel->n_fold == 0) return 1;
    for (int d = p->single; d < p->split; d++) tiles *= g->plan->extent[d];
    return tiles;
}

static weft_status check_dtypes(weft_context *ctx, const weft_kernel *k) {
    for (int i = 0; i < k->n_code + k->n_args; i++) {
        weft_dtype d = (weft_dtype)(i < k->n_code ? k->code[i].dtype : k->args[i - k->n_code].dtype);
        if (weft__ct(d) == WEFT_CT_COUNT)
            return weft__fail(ctx, WEFT_ERR_UNSUPPORTED,
                              "kernel %s (%s): the cpu device does not compute in %s",
                              k->name ? k->name : "?", k->path ? k->path : "", weft_dtype_name(d));
    }
    return WEFT_OK;
}

static void kernel_plan_plan_free(weft_context *ctx, void *p) {
    weft_kernel_plan *plan = p;
    if (!plan) return;
    weft__free(ctx, plan->steps);
    weft__free(ctx, plan->accesses);
    weft__free(ctx, plan->phases);
    weft__free(ctx, plan->consts);
    weft__free(ctx, plan);
}

weft_status weft__cpu_kernel_prepare(weft_context *ctx, const weft_kernel *kernel, const weft_operand *places,
                                     weft_cpu_work *work) {
    memset(work, 0, sizeof *work);
    WEFT_TRY(check_dtypes(ctx, kernel));
    weft_kernel_plan *plan = weft__zalloc(ctx, sizeof *plan);
    if (!plan) return weft__fail_oom(ctx, sizeof *plan, "the plan of a kernel");
    weft_geometry g = {.plan = plan, .kernel = kernel, .places = places};
    plan->tiles = weft__tiles();
    plan->path = kernel->path;
    set_space(&g);
    cut_space(&g);
    plan->folds = kernel->n_fold > 0;
    plan->tiles_a_block = tiles_a_block(&g);
    plan->last_rows = kernel->last_rows;
    double per_run = 0;
    weft_status status = weft__steps_make(ctx, &g, &per_run);
    if (status != WEFT_OK) {
        kernel_plan_plan_free(ctx, plan);
        return status;
    }
    plan->plain = plan->ahead.count == 0 && plan->parallel.tiles == 1;
    *work = (weft_cpu_work){.tasks = plan->parallel.tiles / plan->tiles_a_block,
                            .scratch_bytes = plan->scratch_bytes,
                            .cost_ns = per_run,
                            .run = weft__plan_run,
                            .free = kernel_plan_plan_free,
                            .plan = plan};
    return WEFT_OK;
}
