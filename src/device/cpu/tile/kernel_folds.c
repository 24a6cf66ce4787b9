/* Folds: the sums over the rows of a block. A task is one block of several tiles. Each tile adds its rows to
 * one accumulator for each fold. The accumulator is empty before the first tile, and its result is stored
 * after the last one. If columns are divided into chunks, each chunk has its own accumulator.
 *
 *     block (task):  empty -> tile 0 -> tile 1 -> ... -> store
 *                             |  adds to accumulator  |
 *
 * Must not know: how accumulators add. Read next: kernel_steps.c, kernel_run.c. */
#include "device/cpu/tile/kernel_steps.h"

static bool is_column(const weft_instr *c) { return c->level == WEFT_LEVEL_COLUMN; }

/* Returns how many elements the fold has in one chunk. */
static int64_t line_of(const weft_builder *b, const weft_instr *c) {
    const weft_nest *r = &b->plan->reduction;
    return !is_column(c) ? 1 : b->phased ? r->max : r->total;
}

/* Returns the accumulator of fold v, or the one of this chunk. Its vectors have `bytes` bytes. */
static weft_ref state_of(weft_builder *b, int v, int64_t bytes) {
    weft_ref *state = &b->values[v].state;
    const bool cut = b->phased && is_column(&b->kernel->code[v]);
    const size_t size = weft__accumulator_bytes(bytes, b->plan->tiles_a_block, WEFT_SUM_GROUP);
    const size_t pitch = (size + 63) / 64 * 64;
    if (state->base == WEFT_BASE_NONE)
        *state = weft__register_new(b, cut ? pitch * (size_t)b->plan->reduction.tiles : pitch, true);
    if (!cut) return *state;
    weft_step *s = weft__step_add(b, WEFT_STEP_KEEP, WEFT_COUNT_ONE);
    s->out = *state;
    s->bytes = (int64_t)pitch;
    s->slot = b->plan->n_bases++;
    return (weft_ref){s->slot, 0};
}

/* Appends a step on the accumulator of fold v. The accumulator is operand `a` of a DONE step, and `out` of
 * other steps. */
static weft_step *fold_step(weft_builder *b, weft_step_kind kind, int v) {
    const weft_instr *c = &b->kernel->code[v];
    const weft_ct ct = weft__ct((weft_dtype)c->dtype);
    const int64_t bytes = (line_of(b, c) * (int64_t)weft__ct_size(ct) + 63) / 64 * 64;
    const weft_ref state = state_of(b, v, bytes);
    weft_step *s = weft__step_add(b, kind, is_column(c) ? WEFT_COUNT_LINE : WEFT_COUNT_ONE);
    *(kind == WEFT_STEP_DONE ? &s->a : &s->out) = state;
    s->ct = (uint8_t)ct;
    s->group = WEFT_SUM_GROUP;
    s->bytes = bytes;
    s->join = b->plan->tiles->join[c->op][ct];
    s->reduce = b->plan->tiles->reduce[c->op][ct];
    if (is_column(c)) s->fn.products = b->plan->tiles->columns[c->op][ct];
    return s;
}

/* Appends a step that adds rows, each multiplied by its row value. Neither the spread value nor the products
 * are stored. */
static void fold_product(weft_builder *b, int v) {
    const weft_instr *product = &b->kernel->code[b->kernel->code[v].a];
    const bool turned = !b->values[product->a].full;
    const weft_ref rows = weft__value_vector(b, turned ? product->b : product->a, true);
    const weft_ref by = weft__value_vector(b, turned ? product->a : product->b, false);
    weft_step *s = fold_step(b, WEFT_STEP_FOLD, v);
    s->a = rows;
    s->b = by;
    s->fn.products = b->plan->tiles->scaled[s->ct];
    b->cost_ns += 0.1;
}

void weft__fold_add(weft_builder *b, int v) {
    const weft_instr *c = &b->kernel->code[v];
    if (b->values[c->a].product) {
        fold_product(b, v);
        return;
    }
    const weft_ref a = weft__value_vector(b, c->a, is_column(c));
    fold_step(b, WEFT_STEP_FOLD, v)->a = a;
    b->cost_ns += is_column(c) ? 0.1 : 0;
}

/* Appends the steps that take the result of a fold and store it. */
static void end_fold(weft_builder *b, int store) {
    const weft_instr *to = &b->kernel->code[store], *c = &b->kernel->code[to->a];
    const weft_ct ct = weft__ct((weft_dtype)c->dtype);
    const weft_count count = is_column(c) ? WEFT_COUNT_LINE : WEFT_COUNT_ONE;
    const weft_ref neutral = weft__identity(b, (weft_op)c->op, (weft_dtype)c->dtype);
    const weft_ref out = weft__register_new(b, (size_t)line_of(b, c) * weft__ct_size(ct), true);
    weft_step *s = fold_step(b, WEFT_STEP_DONE, to->a);
    s->fn.calc = b->plan->tiles->fill[ct];
    s->b = neutral;
    s->out = out;
    const weft_ref result = weft__wrapped(b, out, (weft_dtype)c->dtype, (weft_op)c->op, count);
    const int access = b->values[store].access;
    const bool one = b->plan->accesses[access].kind == WEFT_ACCESS_SCALAR;
    s = weft__step_add(b, WEFT_STEP_WRITE, one ? WEFT_COUNT_ONE : count);
    s->ct = (uint8_t)ct;
    s->dtype = b->kernel->args[to->arg].dtype;
    s->arg = to->arg;
    s->access = access;
    s->a = result;
}

/* Appends the first or the last steps of a block. If there are chunks, folds of columns go into the list that
 * runs once for each chunk. All others go into the list that runs once. */
static weft_phase edge(weft_builder *b, bool begin) {
    const weft_kernel *k = b->kernel;
    weft_phase phase = {{0, 0}, {0, 0}};
    for (int pass = 0; pass < (b->phased ? 2 : 1); pass++) {
        const int from = b->plan->n_steps;
        for (int v = 0; v < k->n_code && !b->failed; v++) {
            const weft_instr *c = &k->code[v];
            if (b->phased && is_column(c) != (pass == 1)) continue;
            if (begin && c->kind == WEFT_INSTR_FOLD) fold_step(b, WEFT_STEP_INIT, v);
            if (!begin && c->kind == WEFT_INSTR_STORE && weft__level_folded(c->level)) end_fold(b, v);
        }
        *(pass == 1 ? &phase.chunk : &phase.before) = (weft_range){from, b->plan->n_steps};
    }
    return phase;
}

void weft__folds_begin(weft_builder *b) { b->plan->open = edge(b, true); }
void weft__folds_end(weft_builder *b) { b->plan->close = edge(b, false); }
