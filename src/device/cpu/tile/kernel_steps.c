/* The order of a tile program: one list, or phases that reductions separate. Values are kept between phases
 * or recomputed. Then come stores, and at the end registers get places in scratch memory by their lifetimes.
 * Must not know: how a single instruction is computed. Read next: kernel_values.c, kernel_run.c. */
#include <stdlib.h>
#include <string.h>

#include "base/ranked.h"
#include "device/cpu/tile/kernel_steps.h"

#define KEEP_MOST   ((size_t)1 << 20)  /* bytes of values kept between phases, for each thread */
#define AHEAD_LEAST ((int64_t)4 << 20) /* bytes that a kernel must touch before fetching ahead pays */
#define FEW_SLOTS   8

/* ---- stores ---- */

/* Returns whether two arguments share memory. A variable that is replaced in place is one argument that is
 * read and one that is written. */
static bool share(const weft_builder *b, int x, int y) {
    const weft_kernel_arg *args = b->kernel->args;
    if (x == y || !b->g->places) return x == y;
    const weft_operand *p = &b->g->places[x], *q = &b->g->places[y];
    return p->slot == q->slot &&
           p->offset < q->offset + args[y].elements * (int64_t)weft_dtype_size((weft_dtype)args[y].dtype) &&
           q->offset < p->offset + args[x].elements * (int64_t)weft_dtype_size((weft_dtype)args[x].dtype);
}

/* Returns the last step since `begin` that reads memory of the argument, by itself or through a base that
 * points there. Returns -1 if there is none. */
static int last_reader(weft_builder *b, int begin, int arg) {
    const weft_step *steps = b->plan->steps;
    bool *points = weft__array(b->ctx, (size_t)b->plan->n_bases + 1, sizeof *points); /* for each base */
    int last = -1;
    if (!points) {
        b->failed = true;
        return last;
    }
    for (int i = 0; i < b->plan->n_steps; i++)
        if (steps[i].kind == WEFT_STEP_POINT) points[steps[i].slot] = share(b, steps[i].arg, arg);
    for (int i = b->plan->n_steps - 1; i >= begin && last < 0; i--) {
        const weft_ref *const read[] = {&steps[i].a, &steps[i].b, &steps[i].c};
        if (steps[i].kind == WEFT_STEP_READ && steps[i].arg >= 0 && share(b, steps[i].arg, arg)) last = i;
        for (int k = 0; k < 3; k++)
            if (read[k]->base >= 0 && points[read[k]->base]) last = i;
    }
    weft__free(b->ctx, points);
    return last;
}

/* Returns the step since `begin` that makes the value and can write it directly to the place where c stores
 * it. Returns -1 if there is none. A later step must not read memory that this would overwrite. */
static int writer_of(weft_builder *b, const weft_instr *c, int begin, weft_ref value, int access) {
    const weft_kernel_arg *arg = &b->kernel->args[c->arg];
    const weft_dtype dtype = (weft_dtype)arg->dtype;
    if (b->failed || value.base != WEFT_BASE_REGISTER) return -1;
    if (b->plan->accesses[access].kind != WEFT_ACCESS_DIRECT) return -1;
    if (dtype != (weft_dtype)b->kernel->code[c->a].dtype) return -1;
    if (weft__ct_size(weft__ct(dtype)) != weft_dtype_size(dtype)) return -1;
    const int last = last_reader(b, begin, c->arg);
    for (int i = b->plan->n_steps - 1; i >= begin; i--) {
        const weft_step *s = &b->plan->steps[i];
        const bool one_call = s->kind == WEFT_STEP_CALC || s->kind == WEFT_STEP_READ ||
                              s->kind == WEFT_STEP_ROWS || s->kind == WEFT_STEP_SPREAD;
        if (weft__same_ref(s->out, value)) return one_call && !s->once ? i : -1;
        if (i == last) return -1;
    }
    return -1;
}

/* Makes step `at` write its result directly into the buffer. Steps that read the result read it from
 * there. */
static void write_through(weft_builder *b, const weft_instr *c, int at, weft_ref value, int access) {
    weft_ref there = weft__point_add(b, c->arg, access);
    if (b->failed) return;
    weft_step *steps = b->plan->steps, point = steps[b->plan->n_steps - 1];
    memmove(steps + at + 1, steps + at, (size_t)(b->plan->n_steps - 1 - at) * sizeof *steps);
    steps[at] = point;
    for (int i = at + 1; i < b->plan->n_steps; i++) {
        if (weft__same_ref(steps[i].out, value)) steps[i].out = there;
        if (weft__same_ref(steps[i].a, value)) steps[i].a = there;
        if (weft__same_ref(steps[i].b, value)) steps[i].b = there;
        if (weft__same_ref(steps[i].c, value)) steps[i].c = there;
    }
    for (int v = 0; v < b->kernel->n_code; v++) {
        if (weft__same_ref(b->values[v].ref, value)) b->values[v].ref = there;
        if (weft__same_ref(b->values[v].spread, value)) b->values[v].spread = there;
    }
}

/* Returns whether c is a store, other than a store of a fold. Folds are stored at the end of a block. */
static bool is_store(const weft_instr *c) {
    return c->kind == WEFT_INSTR_STORE && !weft__level_folded(c->level);
}

/* Appends the stores of the `chosen` instructions to the list that begins at step `begin`. */
static void make_stores(weft_builder *b, const uint8_t *chosen, int begin) {
    const weft_kernel *k = b->kernel;
    for (int v = 0; v < k->n_code; v++) { /* first the spreads and fills that the stores need */
        const weft_instr *c = &k->code[v];
        if (!chosen[v] || !is_store(c)) continue;
        weft_tile_value *x = &b->values[v];
        bool scalar = b->plan->accesses[x->access].kind == WEFT_ACCESS_SCALAR;
        bool one;
        x->ref = scalar ? weft__value_use(b, c->a, x->full, &one) : weft__value_vector(b, c->a, x->full);
    }
    for (int v = 0; v < k->n_code; v++) {
        const weft_instr *c = &k->code[v];
        if (!chosen[v] || !is_store(c)) continue;
        weft_tile_value *x = &b->values[v];
        const int writer = writer_of(b, c, begin, x->ref, x->access);
        if (writer >= 0) {
            write_through(b, c, writer, x->ref, x->access);
            continue;
        }
        const bool one = b->plan->accesses[x->access].kind == WEFT_ACCESS_SCALAR;
        weft_count count = one ? WEFT_COUNT_ONE : x->full ? WEFT_COUNT_FULL : WEFT_COUNT_ROW;
        weft_step *s = weft__step_add(b, WEFT_STEP_WRITE, count);
        s->ct = b->values[c->a].ct;
        s->dtype = k->args[c->arg].dtype;
        s->arg = c->arg;
        s->access = x->access;
        s->a = x->ref;
        b->cost_ns += x->full || !k->n_reduce ? 0.2 : 0;
    }
}

/* ---- accumulators ---- */

static int64_t group_of(const weft_builder *b, const weft_instr *c) {
    bool sums = c->op == WEFT_OP_SUM || c->op == WEFT_OP_PROD;
    weft_ct ct = weft__ct((weft_dtype)c->dtype);
    if (!sums || ct >= WEFT_CT_I32) return INT64_MAX; /* any order is exact */
    return b->plan->columns ? WEFT_SUM_GROUP : 1;
}

static weft_step *accumulator_step(weft_builder *b, weft_step_kind kind, const weft_instr *c) {
    weft_step *s = weft__step_add(b, kind, WEFT_COUNT_ROW);
    weft_ct ct = weft__ct((weft_dtype)c->dtype);
    s->ct = (uint8_t)ct;
    s->group = group_of(b, c);
    s->bytes = (int64_t)((weft__vector_bytes(b, ct, false) + 63) / 64 * 64);
    s->join = b->plan->tiles->join[c->op][ct];
    s->reduce = b->plan->tiles->reduce[c->op][ct];
    return s;
}

static void begin_reduction(weft_builder *b, int v) {
    const weft_instr *c = &b->kernel->code[v];
    const weft_nest *r = &b->plan->reduction;
    weft_step *s = accumulator_step(b, WEFT_STEP_INIT, c);
    weft_ref state = weft__register_new(b, weft__accumulator_bytes(s->bytes, r->tiles, s->group), b->phased);
    s->out = b->values[v].state = state;
}

static void add_to_reduction(weft_builder *b, int v) {
    const weft_instr *c = &b->kernel->code[v];
    weft_ref a = weft__value_vector(b, c->a, true);
    weft_step *s = accumulator_step(b, WEFT_STEP_ADD, c);
    if (b->plan->columns) s->fn.products = b->plan->tiles->columns[c->op][s->ct];
    s->out = b->values[v].state;
    s->a = a;
    b->cost_ns += 0.1;
}

static void end_reduction(weft_builder *b, int v) {
    const weft_instr *c = &b->kernel->code[v];
    weft_tile_value *x = &b->values[v];
    weft_ref neutral = weft__identity(b, (weft_op)c->op, (weft_dtype)c->dtype);
    weft_ref out = weft__register_new(b, weft__vector_bytes(b, (weft_ct)x->ct, false), b->phased);
    weft_step *s = accumulator_step(b, WEFT_STEP_DONE, c);
    s->fn.calc = b->plan->tiles->fill[x->ct];
    s->a = x->state;
    s->b = neutral;
    s->out = out;
    x->ref = weft__wrapped(b, out, (weft_dtype)c->dtype, (weft_op)c->op,
                           x->scalar ? WEFT_COUNT_ONE : WEFT_COUNT_ROW);
}

/* ---- one list ---- */

static void make_list(weft_builder *b, uint8_t *chosen) {
    const weft_kernel *k = b->kernel;
    const int begin = b->plan->n_steps;
    memset(chosen, 1, (size_t)k->n_code);
    for (int v = 0; v < k->n_code && !b->failed; v++) {
        if (k->code[v].kind == WEFT_INSTR_REDUCE && b->plan->columns && b->spreading) {
            begin_reduction(b, v);
            add_to_reduction(b, v);
            end_reduction(b, v);
        } else if (k->code[v].kind == WEFT_INSTR_FOLD)
            weft__fold_add(b, v);
        else
            weft__value_make(b, v);
    }
    weft__pairs_make(b, chosen, begin);
    make_stores(b, chosen, begin);
    b->plan->phases[0].before = (weft_range){begin, b->plan->n_steps};
}

/* ---- phases ---- */

/* Returns whether it is better to keep such a value than to recompute it. */
static bool worth_keeping(const weft_instr *c, const weft_tile_value *x) {
    if (x->scalar || x->alias || !x->full) return false;
    return c->kind == WEFT_INSTR_CALC || c->kind == WEFT_INSTR_CAST || c->kind == WEFT_INSTR_GATHER ||
           c->kind == WEFT_INSTR_RANDOM;
}

/* Returns the phase in which a FULL store runs. It is the phase of its value, or the last phase if the
 * argument's old memory is also read. */
static int store_phase(const weft_builder *b, int v, int n_phases) {
    const weft_instr *c = &b->kernel->code[v];
    return b->kernel->args[c->arg].read ? n_phases - 1 : b->values[c->a].phase;
}

/* Returns whether phase p adds the value of c to a fold, chunk by chunk. */
static bool folds_in(const weft_instr *c, const weft_tile_value *x, int p) {
    return c->kind == WEFT_INSTR_FOLD && c->level == WEFT_LEVEL_COLUMN && x->phase == p;
}

/* Fills in needed[phase * n_code + v]: 1 if the phase computes v for each chunk, 2 if it finds v kept. */
static void choose_values(weft_builder *b, uint8_t *needed, int n_phases) {
    const weft_kernel *k = b->kernel;
    const size_t n = (size_t)k->n_code;
    size_t kept = 0;
    for (int p = 0; p < n_phases; p++) {
        uint8_t *now = needed + (size_t)p * n;
        for (int v = k->n_code - 1; v >= 0; v--) {
            const weft_instr *c = &k->code[v];
            weft_tile_value *x = &b->values[v];
            if (c->kind == WEFT_INSTR_REDUCE && x->phase == p + 1) now[c->a] = 1;
            if (folds_in(c, x, p)) now[c->a] = 1;
            if (c->kind == WEFT_INSTR_STORE && x->full && store_phase(b, v, n_phases) == p)
                now[v] = now[c->a] = 1;
            if (!now[v] || c->kind == WEFT_INSTR_REDUCE || c->level != WEFT_LEVEL_FULL) continue;
            bool before = false;
            for (int q = 0; q < p; q++) before = before || needed[(size_t)q * n + (size_t)v] == 1;
            size_t bytes = weft__vector_bytes(b, (weft_ct)x->ct, true) * (size_t)b->plan->reduction.tiles;
            if (before && worth_keeping(c, x) && (x->kept || kept + bytes <= KEEP_MOST)) {
                kept += x->kept ? 0 : bytes;
                x->kept = true;
                now[v] = 2;
                continue;
            }
            if (c->a >= 0) now[c->a] = 1;
            if (c->b >= 0) now[c->b] = 1;
            if (c->c >= 0) now[c->c] = 1;
        }
    }
}

/* Appends a step that points a base at this chunk's part of a kept value. */
static weft_ref keep_base(weft_builder *b, weft_tile_value *x) {
    size_t bytes = weft__vector_bytes(b, (weft_ct)x->ct, true);
    if (x->state.base == WEFT_BASE_NONE)
        x->state = weft__register_new(b, bytes * (size_t)b->plan->reduction.tiles, true);
    weft_step *s = weft__step_add(b, WEFT_STEP_KEEP, WEFT_COUNT_ONE);
    s->out = x->state;
    s->bytes = (int64_t)bytes;
    s->slot = b->plan->n_bases++;
    return (weft_ref){s->slot, 0};
}

/* Appends the steps of the ROW values of phase p: results of the phase before, and values computed from
 * them. */
static void make_rows(weft_builder *b, int p) {
    const weft_kernel *k = b->kernel;
    for (int v = 0; v < k->n_code && !b->failed; v++) {
        const weft_instr *c = &k->code[v];
        weft_tile_value *x = &b->values[v];
        if (c->kind == WEFT_INSTR_STORE || c->kind == WEFT_INSTR_FOLD || x->done || x->phase != p) continue;
        if (c->level == WEFT_LEVEL_FULL && c->kind != WEFT_INSTR_REDUCE && c->kind != WEFT_INSTR_CONST)
            continue;
        if (c->kind == WEFT_INSTR_REDUCE)
            end_reduction(b, v);
        else
            weft__value_make(b, v);
        x->done = true;
    }
}

/* Appends what runs before the chunks: empty accumulators, and spreads of the ROW vectors that chunks use. */
static void prepare_chunks(weft_builder *b, int p, const uint8_t *now) {
    const weft_kernel *k = b->kernel;
    for (int v = 0; v < k->n_code && !b->failed; v++) {
        const weft_instr *c = &k->code[v];
        const bool reduces = c->kind == WEFT_INSTR_REDUCE && b->values[v].phase == p + 1;
        if (reduces) begin_reduction(b, v);
        if (!reduces && !(now[v] == 1 && c->level == WEFT_LEVEL_FULL)) continue;
        const int operands[3] = {c->a, c->b, c->c};
        bool scalar;
        for (int i = 0; i < 3; i++)
            if (operands[i] >= 0 && b->values[operands[i]].done)
                (void)weft__value_use(b, operands[i], true, &scalar);
    }
}

static void make_chunk(weft_builder *b, int p, const uint8_t *now) {
    const weft_kernel *k = b->kernel;
    const int begin = b->plan->n_steps;
    for (int v = 0; v < k->n_code && !b->failed; v++) {
        const weft_instr *c = &k->code[v];
        weft_tile_value *x = &b->values[v];
        if (c->kind == WEFT_INSTR_REDUCE && x->phase == p + 1) add_to_reduction(b, v);
        if (folds_in(c, x, p)) weft__fold_add(b, v);
        if (!now[v] || x->done || c->kind == WEFT_INSTR_STORE || c->kind == WEFT_INSTR_REDUCE) continue;
        if (now[v] == 2) {
            x->ref = keep_base(b, x);
            continue;
        }
        weft_ref kept = x->kept ? keep_base(b, x) : WEFT_REF_NOTHING;
        weft__value_make(b, v);
        if (!x->kept || b->failed) continue;
        weft_ref made = x->ref;
        for (int i = begin; i < b->plan->n_steps; i++) { /* its step writes to the kept place instead */
            weft_step *s = &b->plan->steps[i];
            if (s->out.base == made.base && s->out.offset == made.offset) s->out = kept;
        }
        x->ref = kept;
    }
    weft__pairs_make(b, now, begin);
    make_stores(b, now, begin);
    b->plan->phases[p].chunk = (weft_range){begin, b->plan->n_steps};
}

static void make_phases(weft_builder *b, uint8_t *needed, int n_phases) {
    const weft_kernel *k = b->kernel;
    const size_t n = (size_t)k->n_code;
    choose_values(b, needed, n_phases);
    for (int p = 0; p <= n_phases && !b->failed; p++) {
        const int begin = b->plan->n_steps;
        make_rows(b, p);
        if (p < n_phases)
            prepare_chunks(b, p, needed + (size_t)p * n);
        else {
            uint8_t *chosen = needed + (size_t)n_phases * n;
            for (int v = 0; v < k->n_code; v++) {
                chosen[v] = is_store(&k->code[v]) && !b->values[v].full;
                if (k->code[v].kind == WEFT_INSTR_FOLD && k->code[v].level == WEFT_LEVEL_BLOCK)
                    weft__fold_add(b, v);
            }
            make_stores(b, chosen, begin);
        }
        b->plan->phases[p].before = (weft_range){begin, b->plan->n_steps};
        if (p < n_phases) make_chunk(b, p, needed + (size_t)p * n);
    }
}

static int count_phases(const weft_builder *b) {
    int n = 1;
    for (int v = 0; v < b->kernel->n_code; v++) {
        const weft_instr *c = &b->kernel->code[v];
        const weft_tile_value *x = &b->values[v];
        if (c->kind == WEFT_INSTR_REDUCE && x->phase > n) n = x->phase;
        if (((c->kind == WEFT_INSTR_STORE && x->full) || folds_in(c, x, x->phase)) &&
            b->values[c->a].phase + 1 > n)
            n = b->values[c->a].phase + 1;
    }
    return n;
}

/* ---- registers: first fit over lifetimes ---- */

static void see(weft_builder *b, weft_ref r, int step) {
    if (r.base != WEFT_BASE_REGISTER) return;
    weft_register *q = &b->registers[r.offset];
    if (q->first < 0) q->first = step;
    q->last = step;
}

/* Pins ROW values. They live across the chunks of all phases, from the step that makes them to the end. */
static void extend_lives(weft_builder *b) {
    for (int p = 0; b->phased && p < b->plan->n_phases; p++) {
        weft_range rows = b->plan->phases[p].before;
        for (size_t i = 0; i < b->n_registers; i++)
            if (b->registers[i].first >= rows.begin && b->registers[i].first < rows.end)
                b->registers[i].pinned = true;
    }
    for (size_t i = 0; i < b->n_registers; i++)
        if (b->registers[i].pinned) b->registers[i].first = 0, b->registers[i].last = b->plan->n_steps;
}

/* Removes registers from `live` that are dead at step `at`. Returns how many are left. */
static size_t drop_dead(const weft_builder *b, int64_t *live, size_t n, int at) {
    size_t left = 0;
    for (size_t j = 0; j < n; j++)
        if (b->registers[live[j]].last >= at) live[left++] = live[j];
    return left;
}

/* Places registers in the order of their first use. Each gets the lowest offset that is free during its
 * lifetime. `order` has room for two numbers for each register: the registers to place, by first use, and the
 * live ones, by offset. */
static size_t place_registers(weft_builder *b, size_t end, int64_t *order) {
    const size_t start = end, n = b->n_registers;
    int64_t *live = order + n;
    size_t n_live = 0;
    for (size_t i = 0; i < n; i++) order[i] = weft__ranked(b->registers[i].first + 1, (int)i);
    qsort(order, n, sizeof *order, weft__by_rank);
    for (size_t i = 0; i < n; i++) {
        const int number = weft__ranked_value(order[i]);
        weft_register *r = &b->registers[number];
        r->bytes = r->first < 0 ? 0 : (r->bytes + 63) / 64 * 64; /* 0: its step writes elsewhere */
        r->offset = start;
        if (!r->bytes) continue;
        n_live = drop_dead(b, live, n_live, r->first);
        for (size_t j = 0; j < n_live; j++) {
            const weft_register *q = &b->registers[live[j]];
            if (r->offset + r->bytes <= q->offset) break;
            if (q->offset + q->bytes > r->offset) r->offset = q->offset + q->bytes;
        }
        size_t at = n_live++;
        for (; at > 0 && b->registers[live[at - 1]].offset > r->offset; at--) live[at] = live[at - 1];
        live[at] = number;
        if (r->offset + r->bytes > end) end = r->offset + r->bytes;
    }
    return end;
}

static weft_ref placed(const weft_builder *b, weft_ref r) {
    if (r.base == WEFT_BASE_NONE) return (weft_ref){0, 0};
    if (r.base != WEFT_BASE_REGISTER) return r;
    return (weft_ref){WEFT_BASE_SCRATCH, (uint32_t)b->registers[r.offset].offset};
}

static bool lay_out(weft_builder *b) {
    weft_kernel_plan *plan = b->plan;
    int64_t *order = weft__array(b->ctx, 2 * b->n_registers + 1, sizeof *order);
    if (!order) return false;
    for (int i = 0; i < plan->n_steps; i++) {
        const weft_step *s = &plan->steps[i];
        see(b, s->a, i), see(b, s->b, i), see(b, s->c, i), see(b, s->out, i);
    }
    extend_lives(b);
    size_t bases = ((size_t)plan->n_bases * sizeof(char *) + 63) / 64 * 64;
    plan->scratch_bytes = place_registers(b, bases, order);
    weft__free(b->ctx, order);
    for (int i = 0; i < plan->n_steps; i++) {
        weft_step *s = &plan->steps[i];
        s->a = placed(b, s->a), s->b = placed(b, s->b), s->c = placed(b, s->c), s->out = placed(b, s->out);
    }
    return true;
}

/* ---- what to fetch ahead ---- */

/* Returns whether this memory is already fetched. It may be the argument that is read while another one is
 * written in place. */
static bool known_ahead(const weft_builder *b, int arg, int64_t offset) {
    weft_kernel_plan *plan = b->plan;
    for (int i = 0; i < plan->ahead.count; i++) {
        weft_ahead *a = &plan->ahead.list[i];
        if (!share(b, a->arg, arg) || plan->accesses[a->access].offset != offset) continue;
        a->written = a->written || b->kernel->args[arg].written;
        return true;
    }
    return false;
}

/* Returns how many times the steps of a range issue fetches. */
static int64_t slots_in(const weft_builder *b, weft_range range) {
    int64_t slots = 0;
    for (int i = range.begin; i < range.end; i++) {
        const weft_step *s = &b->plan->steps[i];
        const int64_t n = s->count == WEFT_COUNT_FULL ? b->full_max : b->row_max;
        if (s->kind == WEFT_STEP_POINT || s->once) continue;
        slots += s->expensive && s->count != WEFT_COUNT_ONE ? n / WEFT_AHEAD_SLICE + 1 : 1;
    }
    return slots;
}

/* Adds the slots of a phase. For rows these are the slots of all its chunks. For columns each chunk fetches
 * the next one, so the phase with the fewest slots counts. */
static int64_t add_slots(const weft_builder *b, const weft_phase *phase, int64_t slots) {
    const int64_t chunk = slots_in(b, phase->chunk);
    if (b->plan->columns) return chunk && (!slots || chunk < slots) ? chunk : slots;
    return slots + slots_in(b, phase->before) + chunk * (b->phased ? b->plan->reduction.tiles : 1);
}

/* Returns the number of slots over which the fetches of one piece are spread. With few slots each would
 * request too much at once, so cheap steps are then done in slices, too. */
static int64_t slots_of(weft_builder *b) {
    const weft_kernel_plan *plan = b->plan;
    int64_t slots = 0;
    for (int pass = 0; pass < 2 && slots < FEW_SLOTS; pass++) {
        for (int i = 0; pass == 1 && i < plan->n_steps; i++)
            plan->steps[i].expensive |= plan->steps[i].slices;
        slots = 0;
        for (int i = 0; i < plan->n_phases; i++) slots = add_slots(b, &plan->phases[i], slots);
    }
    return slots > 0 ? slots : 1;
}

/* Returns the piece of an argument that instruction c reads or writes at a time. It has no lines if the next
 * piece does not follow it in memory. */
static weft_ahead piece_of(const weft_builder *b, int v, const weft_instr *c) {
    const weft_kernel_plan *plan = b->plan;
    const weft_nest *p = &plan->parallel, *r = &plan->reduction;
    const weft_access *x = &plan->accesses[b->values[v].access];
    const weft_kernel_arg *arg = &b->kernel->args[c->arg];
    weft_ahead a = {.arg = c->arg, .access = b->values[v].access, .written = arg->written};
    a.size = (int64_t)weft_dtype_size((weft_dtype)arg->dtype);
    const bool full = b->values[v].full;
    if (x->kind != WEFT_ACCESS_DIRECT || p->count == 0 || (plan->columns && !(full && b->phased))) return a;
    const int64_t extent = p->max * (plan->columns ? r->max : full ? r->total : 1) * a.size;
    a.bytes = plan->columns ? x->stride[r->split] * r->chunk * a.size : extent;
    if (extent >= 512 && x->stride[plan->columns ? r->split : p->split] != 0) a.lines = (extent + 63) / 64;
    return a;
}

/* Chooses the arguments to fetch ahead. Each tile (with columns, each chunk) takes the next piece of such an
 * argument, and together the pieces exceed a cache. */
static void look_ahead(weft_builder *b) {
    weft_kernel_plan *plan = b->plan;
    const int64_t chunks = b->phased ? plan->reduction.tiles : 1;
    int64_t all = 0;
    for (int v = 0; v < b->kernel->n_code; v++) {
        const weft_instr *c = &b->kernel->code[v];
        if (c->arg < 0 || (c->kind != WEFT_INSTR_LOAD && c->kind != WEFT_INSTR_STORE)) continue;
        const weft_ahead a = piece_of(b, v, c);
        if (a.lines == 0 || known_ahead(b, c->arg, plan->accesses[a.access].offset) ||
            plan->ahead.count == WEFT_AHEAD_MOST)
            continue;
        plan->ahead.list[plan->ahead.count++] = a;
        if (a.lines > plan->ahead.end) plan->ahead.end = a.lines;
        all += 64 * a.lines * plan->parallel.tiles * (plan->columns ? chunks : 1);
    }
    /* down a single matrix the hardware prefetcher is faster */
    const bool alone = plan->columns && plan->ahead.count == 1;
    if (all < AHEAD_LEAST || alone) plan->ahead.count = 0, plan->ahead.end = 0;
    plan->ahead.lines = plan->ahead.end / slots_of(b) + 1;
}

/* ---- all of it ---- */

static weft_status kernel_steps_make(weft_builder *b, uint8_t **needed) {
    weft_kernel_plan *plan = b->plan;
    const size_t n = (size_t)b->kernel->n_code;
    b->values = weft__array(b->ctx, n + 1, sizeof *b->values);
    plan->consts = weft__array(b->ctx, 3 * n + 8, 8);
    if (!b->values || !plan->consts)
        return weft__fail_oom(b->ctx, n * sizeof *b->values, "the plan of a kernel");
    weft__values_classify(b);
    if (b->failed) return weft__fail_oom(b->ctx, n * sizeof(weft_access), "the plan of a kernel");
    const int n_phases = b->phased ? count_phases(b) : 0;
    plan->n_phases = n_phases + 1;
    plan->phases = weft__array(b->ctx, (size_t)plan->n_phases, sizeof *plan->phases);
    *needed = weft__array(b->ctx, n + 1, (size_t)plan->n_phases);
    if (!plan->phases || !*needed)
        return weft__fail_oom(b->ctx, n * (size_t)plan->n_phases, "the plan of a kernel");
    weft__folds_begin(b);
    if (b->phased)
        make_phases(b, *needed, n_phases);
    else
        make_list(b, *needed);
    weft__folds_end(b);
    if (b->lacking >= 0)
        return weft__fail(b->ctx, WEFT_ERR_INTERNAL,
                          "kernel %s: instruction %d has an op that its dtype lacks",
                          b->kernel->name ? b->kernel->name : "?", b->lacking);
    if (b->failed) return weft__fail_oom(b->ctx, n * sizeof(weft_step), "the plan of a kernel");
    look_ahead(b);
    return lay_out(b) ? WEFT_OK : weft__fail_oom(b->ctx, n * sizeof(weft_step), "the plan of a kernel");
}

weft_status weft__steps_make(weft_context *ctx, const weft_geometry *g, double *cost_ns) {
    weft_kernel_plan *plan = g->plan;
    const weft_nest *r = &plan->reduction;
    weft_builder b = {.ctx = ctx, .g = g, .kernel = g->kernel, .plan = plan, .lacking = -1};
    plan->n_bases = WEFT_BASE_FIRST;
    b.phased = r->tiles > 1;
    b.spreading = (b.phased ? r->max : r->total) != 1;
    b.row_max = plan->parallel.max;
    b.full_max = b.row_max * (b.phased ? r->max : r->total);
    uint8_t *needed = NULL;
    weft_status status = kernel_steps_make(&b, &needed);
    weft__free(ctx, needed);
    weft__free(ctx, b.values);
    weft__free(ctx, b.registers);
    *cost_ns = 20 + b.cost_ns * (double)plan->parallel.total * (double)r->total +
               (double)plan->parallel.tiles * (double)(b.phased ? r->tiles : 1) * 4 * plan->n_steps;
    return status;
}
