/* Runs a kernel by walking it: for each parallel index, in shuffled order, instruction after instruction.
 *
 * A row with reductions goes over its reduction indices once for each stage. Stage 0 is all that needs no
 * reduction. Stage s + 1 is what needs a reduction of stage s. Values at the reduction indices are recomputed
 * in each stage and stored in the last one. So memory stays small, and a row may be updated in place.
 *
 * Folds have a sum for each block and reduction index. Rows are added in the order in which they run. The
 * sums are stored after all rows. Every index is checked here, without trust in the verifier or in
 * views.
 *
 * Must not know: other devices. Read next: shadow.c, heavy/heavy.c. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "device/interp/interp.h"
#include "kernel/print.h"

/* A partial sum, with the part that rounding cut off. */
typedef struct sum {
    weft_value value;
    double lost;
} sum;

typedef struct walk {
    weft_interp *device;
    const weft_kernel *kernel;
    void *const *args;
    weft_shadow shadow;
    weft_value *values; /* one for each instruction: of the row, or of the current reduction index */
    double *lost;       /* for partial sums: the part that rounding cut off */
    sum **folds;        /* for folds: one for each element of the result */
    int *stage;         /* of each value; for a reduction, the stage in which it sums */
    int stages;         /* number of the last stage */
    int64_t rows, length, block_rows;
    int64_t index[WEFT_VIEW_RANK];
    int64_t row, inner; /* linear indices; inner is -1 outside the reduction dimensions */
} walk;

static weft_status complain(walk *w, int i, const char *what, int64_t element) {
    char text[300], at[200];
    size_t used = 0;
    at[0] = '\0';
    weft__kernel_print_instr(w->kernel, i, text, sizeof text);
    for (int d = 0; d < w->kernel->n_parallel + w->kernel->n_reduce && used < sizeof at - 24; d++)
        used += (size_t)snprintf(at + used, sizeof at - used, "%s%" PRId64, d ? "," : "", w->index[d]);
    return weft__fail(w->device->base.ctx, WEFT_ERR_INTERNAL,
                      "interp: kernel %s: %s: \"%s\": %s: element %" PRId64 " at index (%s)", w->kernel->name,
                      w->kernel->path ? w->kernel->path : "", text, what, element, at);
}

/* ---- views ---- */

enum { ELEMENT_VALID, ELEMENT_GUARDED, ELEMENT_LOST };

/* Computes the element of a view at the current index. Outside the reduction dimensions only parallel indices
 * count. Returns ELEMENT_LOST if a number leaves the index space of a map in a list. */
static int element_of(const walk *w, const weft_view *view, int64_t *element) {
    int64_t split[WEFT_VIEW_RANK];
    const int64_t *index = w->index;
    int64_t linear = 0;
    for (int k = 0; k < view->count; k++) {
        const weft_map *m = &view->map[k];
        if (k > 0) {
            for (int d = m->rank - 1; d >= 0; d--) {
                if (m->extent[d] == 0 || linear < 0) return ELEMENT_LOST;
                split[d] = linear % m->extent[d];
                linear /= m->extent[d];
            }
            if (linear != 0) return ELEMENT_LOST;
            index = split;
        }
        const int rank = k == 0 && w->inner < 0 ? w->kernel->n_parallel : m->rank;
        linear = m->offset;
        for (int d = 0; d < rank; d++) {
            if (index[d] < m->lo[d] || index[d] >= m->hi[d]) return ELEMENT_GUARDED;
            linear += index[d] * m->stride[d];
        }
    }
    *element = linear;
    return ELEMENT_VALID;
}

/* Computes the element that instruction i addresses. *valid is false if a guard excludes it. */
static weft_status locate(walk *w, int i, int64_t *element, bool *valid) {
    const int found = element_of(w, &w->kernel->views[w->kernel->code[i].view], element);
    *valid = found == ELEMENT_VALID;
    return found == ELEMENT_LOST ? complain(w, i, "leaves the index space of a map", 0) : WEFT_OK;
}

/* ---- instructions ---- */

static int64_t inner_at(const walk *w, int i) {
    return weft__level_inner(w->kernel->code[i].level) ? w->inner : -1;
}

static weft_status read_element(walk *w, int i, int64_t element) {
    const weft_instr *in = &w->kernel->code[i];
    const weft_kernel_arg *arg = &w->kernel->args[in->arg];
    if (element < 0 || element >= arg->elements) return complain(w, i, "outside its buffer", element);
    const char *race = weft__shadow_read(&w->shadow, in->arg, element, w->row, inner_at(w, i));
    if (race) return complain(w, i, race, element);
    w->values[i] = weft__interp_load((weft_dtype)arg->dtype, w->args[in->arg], element);
    return WEFT_OK;
}

/* Returns which element of the index tensor gave the index, if a load did. */
static int64_t origin_of(const walk *w, int i) {
    int64_t element = w->row * w->length + (w->inner < 0 ? 0 : w->inner);
    while (w->kernel->code[i].kind == WEFT_INSTR_CAST) i = w->kernel->code[i].a;
    if (w->kernel->code[i].kind == WEFT_INSTR_LOAD)
        (void)element_of(w, &w->kernel->views[w->kernel->code[i].view], &element);
    return element;
}

static weft_status run_gather(walk *w, int i, int64_t element) {
    const weft_instr *in = &w->kernel->code[i];
    const int64_t chosen = w->values[in->a].i;
    if (chosen >= 0 && chosen < in->bound) return read_element(w, i, element + chosen * in->imm_i);
    weft__interp_fault(w->device, WEFT_FAULT_GATHER, w->kernel->path, chosen, in->bound, origin_of(w, in->a));
    return WEFT_OK;
}

static weft_status run_random(walk *w, int i, int64_t element) {
    int32_t key[8];
    for (int64_t k = 0; k < 8; k++) {
        WEFT_TRY(read_element(w, i, k));
        key[k] = (int32_t)w->values[i].i;
    }
    w->values[i].i = weft__interp_random(key, element);
    return WEFT_OK;
}

static weft_status run_store(walk *w, int i, int64_t element) {
    const weft_instr *in = &w->kernel->code[i];
    const weft_kernel_arg *arg = &w->kernel->args[in->arg];
    if (element < 0 || element >= arg->elements) return complain(w, i, "outside its buffer", element);
    const char *race = weft__shadow_write(&w->shadow, in->arg, element, w->row, inner_at(w, i));
    if (race) return complain(w, i, race, element);
    weft__interp_store((weft_dtype)arg->dtype, w->args[in->arg], element, w->values[in->a]);
    return WEFT_OK;
}

static void run_calc(walk *w, int i) {
    const weft_instr *in = &w->kernel->code[i];
    const weft_value none = {.i = 0};
    const weft_value a = w->values[in->a], b = in->b < 0 ? none : w->values[in->b];
    const weft_value c = in->c < 0 ? none : w->values[in->c];
    bool by_zero = false;
    w->values[i] = weft__interp_calc(in->op, (weft_dtype)w->kernel->code[in->a].dtype, a, b, c, &by_zero);
    if (by_zero)
        weft__interp_fault(w->device, WEFT_FAULT_DIVIDE, w->kernel->path, 0, 0,
                           w->row * w->length + (w->inner < 0 ? 0 : w->inner));
}

/* Runs an instruction that addresses an element. */
static weft_status run_place(walk *w, int i) {
    const weft_instr *in = &w->kernel->code[i];
    int64_t element = 0;
    bool valid;
    WEFT_TRY(locate(w, i, &element, &valid));
    if (in->kind == WEFT_INSTR_MASK) {
        w->values[i].i = valid;
        return WEFT_OK;
    }
    if (in->kind != WEFT_INSTR_STORE) {
        w->values[i].i = 0;
        if (weft_dtype_is_float((weft_dtype)in->dtype)) w->values[i].f = 0;
    }
    if (!valid) return WEFT_OK;
    switch ((weft_instr_kind)in->kind) {
    case WEFT_INSTR_INDEX:
        w->values[i].i = element;
        if (in->dtype == WEFT_I32 && element != (int32_t)element)
            return complain(w, i, "does not fit", element);
        return WEFT_OK;
    case WEFT_INSTR_LOAD: return read_element(w, i, element);
    case WEFT_INSTR_GATHER: return run_gather(w, i, element);
    case WEFT_INSTR_RANDOM: return run_random(w, i, element);
    default: return run_store(w, i, element);
    }
}

static weft_status run_instr(walk *w, int i) {
    const weft_instr *in = &w->kernel->code[i];
    switch ((weft_instr_kind)in->kind) {
    case WEFT_INSTR_CONST:
        if (weft_dtype_is_float((weft_dtype)in->dtype))
            w->values[i] = weft__interp_rounded((weft_dtype)in->dtype, (weft_value){.f = in->imm_f});
        else
            w->values[i] = weft__interp_rounded((weft_dtype)in->dtype, (weft_value){.i = in->imm_i});
        return WEFT_OK;
    case WEFT_INSTR_CAST:
        w->values[i] = weft__interp_cast((weft_dtype)w->kernel->code[in->a].dtype, (weft_dtype)in->dtype,
                                         w->values[in->a]);
        return WEFT_OK;
    case WEFT_INSTR_CALC: run_calc(w, i); return WEFT_OK;
    default: return run_place(w, i);
    }
}

/* ---- rows ---- */

/* Computes the stage of each value, and the last stage. */
static void find_stages(walk *w) {
    w->stages = 0;
    for (int i = 0; i < w->kernel->n_code; i++) {
        const weft_instr *in = &w->kernel->code[i];
        const int operands[3] = {in->a, in->b, in->c};
        w->stage[i] = 0;
        for (int o = 0; o < 3; o++) {
            if (operands[o] < 0) continue;
            const bool reduced = w->kernel->code[operands[o]].kind == WEFT_INSTR_REDUCE;
            const int needs = w->stage[operands[o]] + (reduced ? 1 : 0);
            if (needs > w->stage[i]) w->stage[i] = needs;
        }
        if (w->stage[i] > w->stages) w->stages = w->stage[i];
    }
}

/* Returns whether stage s goes over the reduction indices. */
static bool stage_is_full(const walk *w, int s) {
    for (int i = 0; i < w->kernel->n_code; i++) {
        const weft_instr *in = &w->kernel->code[i];
        if (in->kind == WEFT_INSTR_REDUCE && w->stage[i] == s) return true;
        if (in->kind == WEFT_INSTR_FOLD && in->level == WEFT_LEVEL_COLUMN && w->stage[i] == s) return true;
        if (in->kind == WEFT_INSTR_STORE && in->level == WEFT_LEVEL_FULL && s == w->stages) return true;
    }
    return false;
}

/* Adds one term to reduction or fold i. Sums of floats keep what rounding cuts off (Neumaier, 1974), since a
 * reference must not depend on the order of additions. */
static void join_term(const walk *w, int i, weft_value *value, double *lost) {
    const weft_instr *in = &w->kernel->code[i];
    const weft_value so_far = *value, term = w->values[in->a];
    bool unused = false;
    *value = weft__interp_calc(in->op, (weft_dtype)in->dtype, so_far, term, (weft_value){.i = 0}, &unused);
    if (in->op != WEFT_OP_SUM || !weft_dtype_is_float((weft_dtype)in->dtype) || !isfinite(value->f)) return;
    const double s = value->f, t = s - so_far.f;
    *lost += (so_far.f - (s - t)) + (term.f - t);
}

static void run_fold(walk *w, int i) {
    const int64_t block = w->row / w->block_rows;
    const bool column = w->kernel->code[i].level == WEFT_LEVEL_COLUMN;
    sum *s = &w->folds[i][column ? block * w->length + w->inner : block];
    join_term(w, i, &s->value, &s->lost);
}

/* Runs stage s at the current reduction index. */
static weft_status run_inner(walk *w, int s) {
    for (int i = 0; i < w->kernel->n_code; i++) {
        const weft_instr *in = &w->kernel->code[i];
        if (in->kind == WEFT_INSTR_REDUCE) {
            if (w->stage[i] == s) join_term(w, i, &w->values[i], &w->lost[i]);
        } else if (in->kind == WEFT_INSTR_FOLD) {
            if (w->stage[i] == s && in->level == WEFT_LEVEL_COLUMN) run_fold(w, i);
        } else if (in->level == WEFT_LEVEL_FULL && w->stage[i] <= s) {
            if (in->kind == WEFT_INSTR_STORE && s != w->stages) continue;
            WEFT_TRY(run_instr(w, i));
        }
    }
    return WEFT_OK;
}

static void unravel(int64_t linear, const int64_t *extent, int rank, int64_t *index) {
    for (int d = rank - 1; d >= 0; d--) {
        index[d] = linear % extent[d];
        linear /= extent[d];
    }
}

/* Computes the row values of one stage. Without reductions, stores run in their place in the order. With
 * reductions, they run after all else, since reductions may still read what they replace. */
static weft_status run_row_values(walk *w, int s) {
    for (int i = 0; i < w->kernel->n_code; i++) {
        const weft_instr *in = &w->kernel->code[i];
        if (in->level != WEFT_LEVEL_ROW || w->stage[i] != s || in->kind == WEFT_INSTR_REDUCE) continue;
        if (in->kind == WEFT_INSTR_STORE && w->kernel->n_reduce > 0) continue;
        WEFT_TRY(run_instr(w, i));
    }
    return WEFT_OK;
}

static weft_status run_row(walk *w) {
    const weft_kernel *k = w->kernel;
    unravel(w->row, k->extent, k->n_parallel, w->index);
    memset(w->index + k->n_parallel, 0, (size_t)k->n_reduce * sizeof *w->index);
    for (int s = 0; s <= w->stages; s++) {
        w->inner = -1;
        WEFT_TRY(run_row_values(w, s));
        if (!stage_is_full(w, s)) continue;
        for (int i = 0; i < k->n_code; i++)
            if (k->code[i].kind == WEFT_INSTR_REDUCE && w->stage[i] == s) {
                w->values[i] = weft__interp_start(k->code[i].op, (weft_dtype)k->code[i].dtype);
                w->lost[i] = 0;
            }
        for (w->inner = 0; w->inner < w->length; w->inner++) {
            unravel(w->inner, k->extent + k->n_parallel, k->n_reduce, w->index + k->n_parallel);
            WEFT_TRY(run_inner(w, s));
        }
        for (int i = 0; i < k->n_code; i++)
            if (k->code[i].kind == WEFT_INSTR_REDUCE && w->stage[i] == s && w->lost[i] != 0)
                w->values[i].f += w->lost[i];
        memset(w->index + k->n_parallel, 0, (size_t)k->n_reduce * sizeof *w->index);
    }
    w->inner = -1;
    for (int i = 0; i < k->n_code; i++) {
        if (k->code[i].kind == WEFT_INSTR_FOLD && k->code[i].level == WEFT_LEVEL_BLOCK) run_fold(w, i);
        if (k->n_reduce > 0 && k->code[i].kind == WEFT_INSTR_STORE && k->code[i].level == WEFT_LEVEL_ROW)
            WEFT_TRY(run_instr(w, i));
    }
    return WEFT_OK;
}

/* ---- folds ---- */

static int64_t fold_elements(const walk *w, int i) {
    const int64_t blocks = w->rows / w->block_rows;
    return w->kernel->code[i].level == WEFT_LEVEL_COLUMN ? blocks * w->length : blocks;
}

static weft_status begin_folds(walk *w) {
    const weft_kernel *k = w->kernel;
    for (int i = 0; i < k->n_code; i++) {
        if (k->code[i].kind != WEFT_INSTR_FOLD) continue;
        const int64_t n = fold_elements(w, i);
        w->folds[i] = weft__array(w->device->base.ctx, (size_t)n + 1, sizeof **w->folds);
        if (!w->folds[i])
            return weft__fail_oom(w->device->base.ctx, (size_t)n * sizeof **w->folds, "interp: kernel");
        for (int64_t e = 0; e < n; e++)
            w->folds[i][e].value = weft__interp_start(k->code[i].op, (weft_dtype)k->code[i].dtype);
    }
    return WEFT_OK;
}

/* Stores the results of folds. For the shadow, each block is a row of its own, after all other rows. */
static weft_status store_folds(walk *w) {
    const weft_kernel *k = w->kernel;
    for (int i = 0; i < k->n_code; i++) {
        const weft_instr *in = &k->code[i];
        if (in->kind != WEFT_INSTR_STORE || !weft__level_folded(in->level)) continue;
        const bool column = in->level == WEFT_LEVEL_COLUMN;
        for (int64_t e = 0; e < fold_elements(w, in->a); e++) {
            const sum *s = &w->folds[in->a][e];
            const int64_t block = column ? e / w->length : e;
            w->inner = column ? e % w->length : -1;
            unravel(block * w->block_rows, k->extent, k->n_parallel, w->index);
            unravel(column ? w->inner : 0, k->extent + k->n_parallel, k->n_reduce, w->index + k->n_parallel);
            w->row = w->rows + block;
            w->values[in->a] = s->value;
            if (s->lost != 0) w->values[in->a].f += s->lost;
            WEFT_TRY(run_instr(w, i));
        }
    }
    return WEFT_OK;
}

/* ---- kernels ---- */

static int64_t divisor(int64_t a, int64_t b) {
    while (b) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

/* Runs all rows. The order steps through them by a number that has no common divisor with their count. */
static weft_status run_rows(walk *w) {
    if (w->rows == 0) return WEFT_OK;
    weft_interp *d = w->device;
    const uint64_t draw = weft__mix64(d->random += UINT64_C(0x9e3779b97f4a7c15));
    int64_t step = 1 + (int64_t)(draw % (uint64_t)w->rows);
    while (divisor(step, w->rows) != 1) step++;
    step %= w->rows;
    w->row = (int64_t)(weft__mix64(draw) % (uint64_t)w->rows);
    for (int64_t n = 0; n < w->rows; n++) {
        const bool last = w->row / w->block_rows == w->rows / w->block_rows - 1;
        if (!last || !w->kernel->last_rows || w->row % w->block_rows < w->kernel->last_rows)
            WEFT_TRY(run_row(w));
        w->row = w->row >= w->rows - step ? w->row - (w->rows - step) : w->row + step;
    }
    return WEFT_OK;
}

weft_status weft__interp_kernel(weft_interp *device, const weft_kernel *kernel, void *const *args) {
    weft_context *ctx = device->base.ctx;
    walk w = {.device = device, .kernel = kernel, .args = args};
    w.rows = weft__kernel_rows(kernel);
    w.length = weft__kernel_row_length(kernel);
    w.block_rows = weft__kernel_block_rows(kernel);
    w.values = weft__array(ctx, (size_t)kernel->n_code + 1, sizeof *w.values);
    w.lost = weft__array(ctx, (size_t)kernel->n_code + 1, sizeof *w.lost);
    w.stage = weft__array(ctx, (size_t)kernel->n_code + 1, sizeof *w.stage);
    w.folds = weft__array(ctx, (size_t)kernel->n_code + 1, sizeof *w.folds);
    weft_status status = w.values && w.lost && w.stage && w.folds
                             ? weft__shadow_open(&w.shadow, ctx, kernel, args)
                             : weft__fail_oom(ctx, (size_t)kernel->n_code * 12, "interp: kernel");
    if (status == WEFT_OK) {
        find_stages(&w);
        status = begin_folds(&w);
        if (status == WEFT_OK) status = run_rows(&w);
        if (status == WEFT_OK) status = store_folds(&w);
        weft__shadow_close(&w.shadow);
    }
    weft__free(ctx, w.values);
    weft__free(ctx, w.lost);
    weft__free(ctx, w.stage);
    for (int i = 0; w.folds && i < kernel->n_code; i++) weft__free(ctx, w.folds[i]);
    weft__free(ctx, w.folds);
    return status;
}
