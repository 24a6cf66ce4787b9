/* The tile steps of one kernel instruction: through which access it reads, which primitive computes it, and
 * in which register the result is.
 * Must not know: the order of phases. Read next: kernel_steps.c, tiles.c. */
#include <math.h>
#include <string.h>

#include "device/cpu/tile/kernel_steps.h"
#include "kernel/rows.h"

/* ---- growing arrays; b->failed remembers a failure, which is reported at the end ---- */

static bool grow(weft_builder *b, void *array, size_t *capacity, size_t count, size_t size) {
    if (!b->failed && !weft__grow(b->ctx, array, capacity, count, size)) b->failed = true;
    return !b->failed;
}

weft_step *weft__step_add(weft_builder *b, weft_step_kind kind, weft_count count) {
    static _Thread_local weft_step nowhere; /* receives writes when memory is short */
    weft_step *s = &nowhere;
    if (grow(b, &b->plan->steps, &b->cap_steps, (size_t)b->plan->n_steps, sizeof *s))
        s = &b->plan->steps[b->plan->n_steps++];
    memset(s, 0, sizeof *s);
    s->kind = (uint8_t)kind;
    s->count = (uint8_t)count;
    s->arg = s->slot = s->access = s->gather.access = -1;
    return s;
}

weft_ref weft__register_new(weft_builder *b, size_t bytes, bool pinned) {
    if (!grow(b, &b->registers, &b->cap_registers, b->n_registers, sizeof *b->registers))
        return (weft_ref){0, 0};
    b->registers[b->n_registers] = (weft_register){.bytes = bytes, .first = -1, .last = -1, .pinned = pinned};
    return (weft_ref){WEFT_BASE_REGISTER, (uint32_t)b->n_registers++};
}

size_t weft__vector_bytes(const weft_builder *b, weft_ct ct, bool full) {
    int64_t n = full ? b->full_max : b->row_max;
    return (size_t)(n > 1 ? n : 1) * weft__ct_size(ct);
}

weft_ref weft__const_new(weft_builder *b, weft_ct ct, double f, int64_t i) {
    char *at = b->plan->consts + 8 * b->n_consts;
    float f32 = (float)f;
    int32_t i32 = (int32_t)i;
    if (ct == WEFT_CT_F32)
        memcpy(at, &f32, sizeof f32);
    else if (ct == WEFT_CT_F64)
        memcpy(at, &f, sizeof f);
    else if (ct == WEFT_CT_I32)
        memcpy(at, &i32, sizeof i32);
    else
        memcpy(at, &i, sizeof i);
    return (weft_ref){WEFT_BASE_CONST, (uint32_t)(8 * b->n_consts++)};
}

static int access_new(weft_builder *b, const weft_view *view, int level) {
    if (!grow(b, &b->plan->accesses, &b->cap_accesses, (size_t)b->plan->n_accesses, sizeof(weft_access)))
        return 0;
    weft__access_make(b->g, view, level, &b->plan->accesses[b->plan->n_accesses]);
    return b->plan->n_accesses++;
}

weft_ref weft__point_add(weft_builder *b, int arg, int access) {
    weft_step *s = weft__step_add(b, WEFT_STEP_POINT, WEFT_COUNT_ONE);
    s->arg = arg;
    s->access = access;
    s->bytes = (int64_t)weft_dtype_size((weft_dtype)b->kernel->args[arg].dtype);
    s->slot = b->plan->n_bases++;
    return (weft_ref){s->slot, 0};
}

/* ---- classifying values, before steps are made ---- */

static bool is_full(const weft_builder *b, const weft_instr *c) {
    return c->level == WEFT_LEVEL_FULL && b->kernel->n_reduce > 0;
}

static bool stored_as_computed(weft_dtype d) {
    return d == WEFT_F32 || d == WEFT_F64 || d == WEFT_I32 || d == WEFT_I64 || d == WEFT_U64;
}

/* Counts the users of each value. Users come after the values that they use, so the walk begins at the
 * end. */
static void find_uses(weft_builder *b) {
    const weft_kernel *k = b->kernel;
    for (int i = k->n_code - 1; i >= 0; i--) {
        const weft_instr *c = &k->code[i];
        const int operands[3] = {c->a, c->b == c->a ? -1 : c->b, c->c == c->a || c->c == c->b ? -1 : c->c};
        for (int j = 0; j < 3; j++) {
            if (operands[j] < 0) continue;
            weft_tile_uses *x = &b->values[operands[j]].uses;
            if (!x->count++) x->last = i;
            if (c->kind != WEFT_INSTR_STORE || k->args[c->arg].dtype != k->code[operands[j]].dtype)
                x->computed = true;
        }
        if (c->a < 0) continue;
        weft_tile_uses *a = &b->values[c->a].uses;
        if (c->kind == WEFT_INSTR_CAST) a->in_place |= b->values[i].uses.in_place;
        if (c->kind == WEFT_INSTR_STORE) a->in_place |= k->args[c->arg].read;
    }
}

/* Returns whether cast v changes nothing. Either both dtypes are computed in the same type and nothing is
 * lost, or the store that follows loses the same. */
static bool cast_is_alias(const weft_builder *b, int v) {
    const weft_kernel *k = b->kernel;
    weft_dtype to = (weft_dtype)k->code[v].dtype, from = (weft_dtype)k->code[k->code[v].a].dtype;
    if (to == from) return true;
    if (to == WEFT_U64 || from == WEFT_U64) /* both are the same 64 bits */
        return weft__ct(to) >= WEFT_CT_I64 && weft__ct(from) >= WEFT_CT_I64 && to != WEFT_U32;
    if (weft__ct(to) != weft__ct(from)) return false;
    if (to == WEFT_F32 || to == WEFT_I32 || to == WEFT_I64) return true; /* the source dtype is not wider */
    if (from == WEFT_BOOL) return true;
    return (to == WEFT_F16 || to == WEFT_BF16) && !b->values[v].uses.computed;
}

static void classify_operands(weft_builder *b, const weft_instr *c, weft_tile_value *x) {
    const int operands[3] = {c->a, c->b, c->c};
    x->scalar = x->access < 0 || b->plan->accesses[x->access].kind == WEFT_ACCESS_SCALAR;
    for (int i = 0; i < 3; i++) {
        if (operands[i] < 0) continue;
        const weft_tile_value *o = &b->values[operands[i]];
        x->scalar = x->scalar && o->scalar;
        x->phase = o->phase > x->phase ? o->phase : x->phase;
    }
}

/* Returns whether product v is only summed: along its rows, or, if a row value scales the rows, over them.
 * Tiles of one row gain nothing by this. */
static bool is_product(const weft_builder *b, int v, int user) {
    const weft_instr *c = &b->kernel->code[v], *u = &b->kernel->code[user];
    if (c->kind != WEFT_INSTR_CALC || c->op != WEFT_OP_MUL || u->op != WEFT_OP_SUM || b->row_max <= 1)
        return false;
    if (c->dtype != WEFT_F32 && c->dtype != WEFT_F64) return false;
    const weft_tile_value *x = &b->values[c->a], *y = &b->values[c->b];
    if (x->scalar || y->scalar) return false;
    if (u->kind == WEFT_INSTR_REDUCE) return x->full && y->full && b->plan->reduction.total > 0;
    return u->kind == WEFT_INSTR_FOLD && u->level == WEFT_LEVEL_COLUMN && x->full != y->full;
}

static void find_products(weft_builder *b) {
    const weft_kernel *k = b->kernel;
    if (b->phased || b->plan->columns || !b->spreading) return;
    for (int v = 0; v < k->n_code; v++) {
        const weft_tile_uses *uses = &b->values[v].uses;
        b->values[v].product = uses->count == 1 && is_product(b, v, uses->last);
    }
}

void weft__values_classify(weft_builder *b) {
    const weft_kernel *k = b->kernel;
    find_uses(b);
    for (int v = 0; v < k->n_code && !b->failed; v++) {
        const weft_instr *c = &k->code[v];
        weft_tile_value *x = &b->values[v]; /* all zero, except for its uses */
        x->full = is_full(b, c);
        x->ct = (uint8_t)weft__ct((weft_dtype)c->dtype);
        x->access = -1;
        x->ref = x->spread = x->state = WEFT_REF_NOTHING;
        if (c->view >= 0) x->access = access_new(b, &k->views[c->view], c->level);
        if (b->failed) return;
        classify_operands(b, c, x);
        if (c->kind == WEFT_INSTR_REDUCE) {
            x->full = false;
            x->scalar = b->row_max <= 1;
            if (b->phased) x->phase++;
        }
        if (c->kind == WEFT_INSTR_CAST && cast_is_alias(b, v)) {
            x->alias = true;
            x->full = b->values[c->a].full;
        }
    }
    find_products(b);
}

/* ---- operands ---- */

static weft_count count_of(const weft_tile_value *x) {
    return x->scalar ? WEFT_COUNT_ONE : x->full ? WEFT_COUNT_FULL : WEFT_COUNT_ROW;
}

weft_ref weft__value_use(weft_builder *b, int v, bool full, bool *scalar) {
    weft_tile_value *x = &b->values[v];
    *scalar = x->scalar;
    if (x->scalar || x->full || !full || !b->spreading) return x->ref;
    if (x->spread.base == WEFT_BASE_NONE) {
        weft_ref out = weft__register_new(b, weft__vector_bytes(b, (weft_ct)x->ct, true), b->phased);
        weft_step *s = weft__step_add(b, WEFT_STEP_SPREAD, WEFT_COUNT_FULL);
        s->fn.spread = b->plan->columns ? b->plan->tiles->repeat[x->ct] : b->plan->tiles->expand[x->ct];
        s->out = x->spread = out;
        s->a = x->ref;
        b->cost_ns += 0.05;
    }
    return x->spread;
}

weft_ref weft__value_vector(weft_builder *b, int v, bool full) {
    bool scalar;
    const weft_tile_value *x = &b->values[v];
    weft_ref a = weft__value_use(b, v, full, &scalar);
    if (!scalar) return a;
    weft_ref out = weft__register_new(b, weft__vector_bytes(b, (weft_ct)x->ct, full), false);
    weft_step *s = weft__step_add(b, WEFT_STEP_CALC, full ? WEFT_COUNT_FULL : WEFT_COUNT_ROW);
    s->fn.calc = b->plan->tiles->fill[x->ct];
    s->ct = x->ct;
    s->out = out;
    s->a = a;
    return out;
}

/* ---- steps that compute ---- */

static weft_ref calc(weft_builder *b, weft_tile_calc fn, weft_count count, weft_ct ct, weft_ref x, weft_ref y,
                     weft_ref z) {
    size_t bytes = count == WEFT_COUNT_ONE ? 8 : weft__vector_bytes(b, ct, count == WEFT_COUNT_FULL);
    weft_ref out = weft__register_new(b, bytes, false);
    weft_step *s = weft__step_add(b, WEFT_STEP_CALC, count);
    s->fn.calc = fn;
    s->ct = (uint8_t)ct;
    s->out = out;
    s->a = x, s->b = y, s->c = z;
    return out;
}

weft_ref weft__wrapped(weft_builder *b, weft_ref ref, weft_dtype dtype, weft_op op, weft_count count) {
    const weft_ct ct = weft__ct(dtype);
    if (!weft__row_wraps((int)op, dtype, weft__ct_size(ct))) return ref;
    return calc(b, b->plan->tiles->cast[ct][dtype], count, ct, ref, ref, ref);
}

/* Returns whether an op takes long enough to fetch memory meanwhile. */
static bool is_long(weft_op op) {
    return weft__row_expensive((int)op) || op == WEFT_OP_DIV || op == WEFT_OP_SQRT || op == WEFT_OP_RSQRT ||
           op == WEFT_OP_RECIP;
}

/* Returns the nanoseconds for one element, measured roughly. Only the number of threads depends on it. */
static double op_cost(weft_op op, weft_ct ct) {
    if (weft__row_expensive((int)op)) return ct == WEFT_CT_F64 ? 12 : 0.6;
    return weft__ct_size(ct) > 4 ? 0.15 : 0.06;
}

static bool is_division(const weft_instr *c, weft_ct ct) {
    return (c->op == WEFT_OP_DIV || c->op == WEFT_OP_MOD) && ct >= WEFT_CT_I32;
}

/* Reduces shift counts modulo the width of the stored type, which may be narrower than the compute type. */
static weft_ref shift_count(weft_builder *b, const weft_instr *c, weft_ref count_ref, weft_count count) {
    size_t bits = c->dtype == WEFT_BOOL ? 1 : 8 * weft_dtype_size((weft_dtype)c->dtype);
    const weft_ct ct = weft__ct((weft_dtype)c->dtype);
    if ((c->op != WEFT_OP_SHL && c->op != WEFT_OP_SHR) || bits >= 8 * weft__ct_size(ct)) return count_ref;
    weft_ref mask = weft__const_new(b, ct, 0, (int64_t)bits - 1);
    return calc(b, b->plan->tiles->calc[WEFT_OP_AND][ct][count == WEFT_COUNT_ONE ? 0 : 2], count, ct,
                count_ref, mask, mask);
}

static void make_calc(weft_builder *b, int v, const weft_instr *c, weft_tile_value *x) {
    const int operands[3] = {c->a, c->b, c->c};
    weft_ref ref[3] = {{0, 0}, {0, 0}, {0, 0}};
    unsigned variant = 0;
    bool scalar[3] = {false, false, false};
    for (int i = 0; i < 3; i++) {
        if (operands[i] < 0) continue;
        ref[i] = weft__value_use(b, operands[i], x->full, &scalar[i]);
        if (scalar[i] && !x->scalar) variant |= 1u << i;
    }
    const weft_count count = count_of(x);
    const weft_ct ct =
        (weft_ct)b->values[c->b >= 0 && c->c >= 0 ? c->b : c->a].ct; /* for where: b, its first choice */
    if (is_division(c, ct)) {
        weft_step *s = weft__step_add(b, WEFT_STEP_CHECK, scalar[1] ? WEFT_COUNT_ONE : count);
        s->ct = (uint8_t)ct;
        s->a = ref[1];
    }
    if (c->op == WEFT_OP_SHL || c->op == WEFT_OP_SHR)
        ref[1] = shift_count(b, c, ref[1], scalar[1] ? WEFT_COUNT_ONE : count);
    weft_tile_calc fn = b->plan->tiles->calc[c->op][ct][variant];
    if (c->op == WEFT_OP_NOT && c->dtype == WEFT_BOOL) { /* exchanges 0 and 1 */
        ref[1] = weft__const_new(b, WEFT_CT_I32, 0, 1);
        fn = b->plan->tiles->calc[WEFT_OP_XOR][WEFT_CT_I32][x->scalar ? 0 : 2];
    }
    if (!fn) {
        b->failed = true;
        b->lacking = v;
        return;
    }
    x->ref = calc(b, fn, count, (weft_ct)x->ct, ref[0], ref[1], ref[2]);
    if (!b->failed && ct == WEFT_CT_F32 && x->ct == ct && c->c < 0 && !x->scalar) {
        weft_step *s = &b->plan->steps[b->plan->n_steps - 1];
        s->expensive = is_long((weft_op)c->op);
        s->slices = 1;
        s->fixed = (uint8_t)variant;
        s->pairs = c->op == WEFT_OP_ADD || c->op == WEFT_OP_SUB || c->op == WEFT_OP_MUL;
        s->pair = c->op == WEFT_OP_ADD ? WEFT_PAIR_ADD : c->op == WEFT_OP_SUB ? WEFT_PAIR_SUB : WEFT_PAIR_MUL;
    }
    x->ref = weft__wrapped(b, x->ref, (weft_dtype)c->dtype, (weft_op)c->op, count);
    if (!x->scalar) b->cost_ns += op_cost((weft_op)c->op, ct) * (x->full || !b->kernel->n_reduce ? 1 : 0.02);
}

static void make_cast(weft_builder *b, const weft_instr *c, weft_tile_value *x) {
    const weft_tile_value *from = &b->values[c->a];
    if (x->alias) {
        x->ref = from->ref;
        x->spread = from->spread;
        return;
    }
    bool scalar;
    weft_ref a = weft__value_use(b, c->a, x->full, &scalar);
    x->ref = calc(b, b->plan->tiles->cast[from->ct][c->dtype], count_of(x), (weft_ct)x->ct, a, a, a);
    b->cost_ns += 0.1;
}

/* ---- steps that read ---- */

/* Returns whether a broadcast operand is the same in every tile. Then it is read once in a run. */
static bool same_in_all_tiles(const weft_builder *b, const weft_instr *c, const weft_tile_value *x) {
    const weft_access *a = &b->plan->accesses[x->access];
    if (b->phased || a->guarded || a->n_terms || x->scalar) return false;
    if (c->kind == WEFT_INSTR_GATHER || (c->arg >= 0 && b->kernel->args[c->arg].written)) return false;
    for (int i = 0; b->plan->columns && i < a->n_local; i++)
        if (a->local[i].by) return false;
    return true;
}

/* Returns the access that read an index, perhaps through casts, or -1 if the index was computed. */
static int access_behind(const weft_builder *b, int v) {
    const weft_instr *code = b->kernel->code;
    while (code[v].kind == WEFT_INSTR_CAST) v = code[v].a;
    return code[v].kind == WEFT_INSTR_LOAD ? b->values[v].access : -1;
}

static void make_read(weft_builder *b, const weft_instr *c, weft_tile_value *x) {
    const weft_kernel *k = b->kernel;
    const weft_access *access = &b->plan->accesses[x->access];
    weft_dtype dtype = (weft_dtype)(c->arg >= 0 ? k->args[c->arg].dtype : c->dtype);
    bool direct = c->kind == WEFT_INSTR_LOAD && access->kind != WEFT_ACCESS_GENERAL && !access->guarded &&
                  !access->empty && access->view->count == 1 && stored_as_computed(dtype);
    if (direct && !x->uses.in_place) {
        x->ref = weft__point_add(b, c->arg, x->access);
        b->cost_ns += x->full || !k->n_reduce ? 0.08 * (double)weft_dtype_size(dtype) * !x->scalar : 0;
        return;
    }
    weft_ref a = {0, 0};
    if (c->kind == WEFT_INSTR_GATHER)
        a = x->scalar ? b->values[c->a].ref : weft__value_vector(b, c->a, x->full);
    bool once = same_in_all_tiles(b, c, x);
    size_t bytes = x->scalar ? 8 : weft__vector_bytes(b, (weft_ct)x->ct, x->full);
    x->ref = weft__register_new(b, bytes, once);
    weft_step *s = weft__step_add(b, WEFT_STEP_READ, count_of(x));
    s->once = once;
    s->source = c->kind;
    s->ct = x->ct;
    s->dtype = (uint8_t)dtype;
    s->arg = c->arg;
    s->access = x->access;
    s->out = x->ref;
    s->a = a;
    if (c->kind == WEFT_INSTR_GATHER) {
        s->gather.ct = b->values[c->a].ct;
        s->gather.pitch = c->imm_i;
        s->gather.bound = c->bound;
        s->gather.access = access_behind(b, c->a);
    }
    if (!x->scalar && !once) b->cost_ns += c->kind == WEFT_INSTR_RANDOM ? 1.2 : 0.6;
}

/* ---- reductions of one chunk ---- */

weft_ref weft__identity(weft_builder *b, weft_op op, weft_dtype dtype) {
    double f = 0;
    int64_t i = 0, lo = INT32_MIN, hi = INT32_MAX;
    switch (dtype) {
    case WEFT_I8: lo = INT8_MIN, hi = INT8_MAX; break;
    case WEFT_I16: lo = INT16_MIN, hi = INT16_MAX; break;
    case WEFT_U8: lo = 0, hi = UINT8_MAX; break;
    case WEFT_U16: lo = 0, hi = UINT16_MAX; break;
    case WEFT_U32: lo = 0, hi = UINT32_MAX; break;
    case WEFT_BOOL: lo = 0, hi = 1; break;
    case WEFT_I64: lo = INT64_MIN, hi = INT64_MAX; break;
    case WEFT_U64: lo = 0, hi = -1; break; /* as bits */
    default: break;
    }
    if (op == WEFT_OP_PROD) f = 1, i = 1;
    if (op == WEFT_OP_MAX) f = -HUGE_VAL, i = lo;
    if (op == WEFT_OP_MIN) f = HUGE_VAL, i = hi;
    return weft__const_new(b, weft__ct(dtype), f, i);
}

static void make_dot(weft_builder *b, const weft_instr *c, weft_tile_value *x) {
    const weft_instr *product = &b->kernel->code[c->a];
    const weft_ref left = weft__value_vector(b, product->a, true);
    const weft_ref right = weft__value_vector(b, product->b, true);
    x->ref = weft__register_new(b, weft__vector_bytes(b, (weft_ct)x->ct, false), false);
    weft_step *s = weft__step_add(b, WEFT_STEP_DOT, WEFT_COUNT_ROW);
    s->fn.products = b->plan->tiles->dot[x->ct];
    s->ct = x->ct;
    s->out = x->ref;
    s->a = left;
    s->b = right;
    b->cost_ns += 0.1;
}

static void make_rows(weft_builder *b, const weft_instr *c, weft_tile_value *x) {
    if (b->values[c->a].product) {
        make_dot(b, c, x);
        return;
    }
    weft_ref a = weft__value_vector(b, c->a, true);
    const weft_count count = count_of(x);
    if (b->plan->reduction.total == 0) { /* the reduction is empty */
        weft_ref neutral = weft__identity(b, (weft_op)c->op, (weft_dtype)c->dtype);
        x->ref = calc(b, b->plan->tiles->fill[x->ct], count, (weft_ct)x->ct, neutral, neutral, neutral);
        return;
    }
    weft_ref out = weft__register_new(b, weft__vector_bytes(b, (weft_ct)x->ct, false), false);
    weft_step *s = weft__step_add(b, WEFT_STEP_ROWS, WEFT_COUNT_ROW);
    s->reduce = b->plan->tiles->reduce[c->op][x->ct];
    s->ct = x->ct;
    s->out = out;
    s->a = a;
    x->ref = weft__wrapped(b, out, (weft_dtype)c->dtype, (weft_op)c->op, count);
    b->cost_ns += 0.1;
}

void weft__value_make(weft_builder *b, int v) {
    const weft_instr *c = &b->kernel->code[v];
    weft_tile_value *x = &b->values[v];
    if (x->product) return;
    switch (c->kind) {
    case WEFT_INSTR_CONST:
        if (x->ref.base == WEFT_BASE_NONE) x->ref = weft__const_new(b, (weft_ct)x->ct, c->imm_f, c->imm_i);
        break;
    case WEFT_INSTR_CALC: make_calc(b, v, c, x); break;
    case WEFT_INSTR_CAST: make_cast(b, c, x); break;
    case WEFT_INSTR_REDUCE: make_rows(b, c, x); break;
    case WEFT_INSTR_STORE:
    case WEFT_INSTR_FOLD: break;
    default: make_read(b, c, x);
    }
}
