/* The verifier. Checks that a kernel is well formed, and that no index that passes its guards leaves its
 * buffer. Devices rely on it and execute kernels without checks. A kernel that it refuses is a bug of the
 * compiler. The message shows the instruction. Must not know: devices. Read next: device/device.h. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "kernel/kernel.h"
#include "kernel/print.h"
#include "kernel/rows.h"

typedef __int128 wide; /* holds sums of products of 64-bit numbers without overflow */

static const char *name_of(const weft_kernel *kernel) { return kernel->name ? kernel->name : "?"; }
static const char *path_of(const weft_kernel *kernel) { return kernel->path ? kernel->path : ""; }

static weft_status verify_refuse(weft_context *ctx, const weft_kernel *kernel, const char *fmt, ...)
    WEFT_PRINTF(3, 4);
static weft_status verify_refuse(weft_context *ctx, const weft_kernel *kernel, const char *fmt, ...) {
    char text[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return weft__fail(ctx, WEFT_ERR_INTERNAL, "kernel %s: %s: %s (a bug in Weft's compiler)", name_of(kernel),
                      path_of(kernel), text);
}

/* Like refuse, for instruction i. */
static weft_status refuse_at(weft_context *ctx, const weft_kernel *kernel, int i, const char *fmt, ...)
    WEFT_PRINTF(4, 5);
static weft_status refuse_at(weft_context *ctx, const weft_kernel *kernel, int i, const char *fmt, ...) {
    char text[256], line[400];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    weft__kernel_print_instr(kernel, i, line, sizeof line);
    return weft__fail(ctx, WEFT_ERR_INTERNAL,
                      "kernel %s: %s: instruction %d, \"%s\": %s (a bug in Weft's compiler)", name_of(kernel),
                      path_of(kernel), i, line, text);
}

static bool known_dtype(int dtype) {
    return dtype < WEFT_DTYPE_COUNT && dtype != WEFT_C64 && dtype != WEFT_C128;
}

/* ---- the frame ---- */

/* Checks extents, blocks of rows, counts and arguments. */
static weft_status check_frame(weft_context *ctx, const weft_kernel *k) {
    if (k->n_parallel < 0 || k->n_reduce < 0 || k->n_parallel + k->n_reduce > WEFT_VIEW_RANK)
        return verify_refuse(ctx, k, "%d parallel and %d reduction dimensions are not possible",
                             k->n_parallel, k->n_reduce);
    int64_t total;
    if (!weft__numel(k->n_parallel + k->n_reduce, k->extent, &total))
        return verify_refuse(ctx, k, "the index space is too large or has a negative extent");
    if (k->n_fold < 0 || k->n_fold > k->n_parallel)
        return verify_refuse(ctx, k, "%d of %d parallel dimensions are rows of a block", k->n_fold,
                             k->n_parallel);
    if (weft__kernel_block_rows(k) == 0) return verify_refuse(ctx, k, "a block has no rows");
    if (k->last_rows && (k->n_fold != 1 || k->n_parallel != 2 || k->extent[0] < 1 || k->last_rows < 0 ||
                         k->last_rows >= k->extent[1]))
        return verify_refuse(ctx, k, "%" PRId64 " rows in the last block", k->last_rows);
    if (k->n_args < 0 || k->n_views < 0 || k->n_code < 0) return verify_refuse(ctx, k, "a negative count");
    for (int i = 0; i < k->n_args; i++) {
        if (!known_dtype(k->args[i].dtype))
            return verify_refuse(ctx, k, "arg%d has dtype %d", i, k->args[i].dtype);
        if (k->args[i].elements < 0) return verify_refuse(ctx, k, "arg%d has a negative size", i);
    }
    return WEFT_OK;
}

static weft_status check_view(weft_context *ctx, const weft_kernel *k, int v) {
    const weft_view *view = &k->views[v];
    if (view->count < 1 || view->count > WEFT_VIEW_MAPS)
        return verify_refuse(ctx, k, "view %d has %d maps", v, view->count);
    for (int i = 0; i < view->count; i++) {
        const weft_map *m = &view->map[i];
        int64_t n;
        if (m->rank < 0 || m->rank > WEFT_VIEW_RANK || !weft__numel(m->rank, m->extent, &n))
            return verify_refuse(ctx, k, "map %d of view %d has a bad shape", i, v);
    }
    const weft_map *first = &view->map[0];
    bool same = first->rank == k->n_parallel + k->n_reduce;
    for (int d = 0; same && d < first->rank; d++) same = first->extent[d] == k->extent[d];
    return same ? WEFT_OK : verify_refuse(ctx, k, "the index space of view %d is not the kernel's", v);
}

/* ---- bounds ---- */

/* The smallest and largest number that a map yields for indices first[d]..last[d] that pass its guards. False
 * if no index passes. */
static bool map_range(const weft_map *m, const int64_t *first, const int64_t *last, wide *least, wide *most) {
    *least = *most = m->offset;
    for (int d = 0; d < m->rank; d++) {
        const int64_t from = first[d] > m->lo[d] ? first[d] : m->lo[d];
        const int64_t to = last[d] < m->hi[d] - 1 ? last[d] : m->hi[d] - 1;
        if (from > to) return false;
        const wide x = (wide)from * m->stride[d], y = (wide)to * m->stride[d];
        *least += x < y ? x : y;
        *most += x < y ? y : x;
    }
    return true;
}

/* A number is split into digits over the extents of m. Writes the range of each digit for the numbers
 * least..most. */
static void digit_ranges(const weft_map *m, wide least, wide most, int64_t *first, int64_t *last) {
    for (int d = m->rank - 1; d >= 0; d--) {
        const int64_t e = m->extent[d];
        const bool one_block = least / e == most / e;
        first[d] = one_block ? (int64_t)(least % e) : 0;
        last[d] = one_block ? (int64_t)(most % e) : e - 1;
        least /= e;
        most /= e;
    }
}

enum { RANGE_PROVED, RANGE_NEVER, RANGE_LEAVES };

/* The smallest and largest index of the kernel's space. If the last block is shorter, the space has two
 * parts: all other blocks (part 0) and the last one (part 1). */
static void part_of(const weft_kernel *k, int part, int64_t *first, int64_t *last) {
    for (int d = 0; d < k->n_parallel + k->n_reduce; d++) {
        first[d] = 0;
        last[d] = k->extent[d] - 1;
    }
    if (!k->last_rows) return;
    if (part == 0)
        last[0]--;
    else
        first[0] = last[0], last[1] = k->last_rows - 1;
}

/* The interval of the element numbers of a view over the first `rank` dimensions. RANGE_LEAVES: a number
 * leaves the index space of a map inside the list; *where is that map. RANGE_NEVER: no index passes the
 * guards. */
static int view_range(const weft_kernel *k, int part, const weft_view *view, int rank, wide *least,
                      wide *most, int *where) {
    int64_t first[WEFT_VIEW_RANK], last[WEFT_VIEW_RANK];
    weft_map outer = view->map[0];
    outer.rank = rank;
    part_of(k, part, first, last);
    for (int i = 0; i < view->count; i++) {
        const weft_map *m = i ? &view->map[i] : &outer;
        if (i > 0) {
            wide n = 1;
            for (int d = 0; d < m->rank; d++) n *= m->extent[d];
            *where = i;
            if (*least < 0 || *most >= n) return RANGE_LEAVES;
            digit_ranges(m, *least, *most, first, last);
        }
        if (!map_range(m, first, last, least, most)) return RANGE_NEVER;
    }
    return RANGE_PROVED;
}

static int64_t clip(wide v) { return v > INT64_MAX ? INT64_MAX : v < INT64_MIN ? INT64_MIN : (int64_t)v; }

static weft_status check_part(weft_context *ctx, const weft_kernel *k, int part, int i, int rank,
                              wide span_low, wide span_high, wide limit) {
    wide least = 0, most = 0;
    int where = 0;
    switch (view_range(k, part, &k->views[k->code[i].view], rank, &least, &most, &where)) {
    case RANGE_NEVER: return WEFT_OK;
    case RANGE_LEAVES:
        return refuse_at(ctx, k, i, "%" PRId64 "..%" PRId64 " leaves the index space of map %d", clip(least),
                         clip(most), where);
    default: break;
    }
    least += span_low;
    most += span_high;
    if (least >= 0 && most < limit) return WEFT_OK;
    return refuse_at(ctx, k, i, "elements %" PRId64 "..%" PRId64 " are not in 0..%" PRId64, clip(least),
                     clip(most), clip(limit - 1));
}

/* Proves that the element numbers of instruction i's view, plus span_low..span_high, lie in 0..limit-1. */
static weft_status check_range(weft_context *ctx, const weft_kernel *k, int i, wide span_low, wide span_high,
                               wide limit) {
    const int rank = k->n_parallel + (weft__level_inner(k->code[i].level) ? k->n_reduce : 0);
    for (int d = 0; d < rank; d++)
        if (k->extent[d] == 0) return WEFT_OK;
    if (k->last_rows) WEFT_TRY(check_part(ctx, k, 1, i, rank, span_low, span_high, limit));
    if (k->last_rows && k->extent[0] == 1) return WEFT_OK;
    return check_part(ctx, k, 0, i, rank, span_low, span_high, limit);
}

/* ---- instructions ---- */

/* The fields that an instruction of each kind has. */
typedef struct fields {
    int operands; /* -1: the arity of the row */
    bool arg, view, reads, writes;
} fields;

static const fields fields_of[WEFT_INSTR_COUNT] = {
    [WEFT_INSTR_CONST] = {0, false, false, false, false},
    [WEFT_INSTR_INDEX] = {0, false, true, false, false},
    [WEFT_INSTR_MASK] = {0, false, true, false, false},
    [WEFT_INSTR_LOAD] = {0, true, true, true, false},
    [WEFT_INSTR_GATHER] = {1, true, true, true, false},
    [WEFT_INSTR_RANDOM] = {0, true, true, true, false},
    [WEFT_INSTR_CALC] = {-1, false, false, false, false},
    [WEFT_INSTR_CAST] = {1, false, false, false, false},
    [WEFT_INSTR_REDUCE] = {1, false, false, false, false},
    [WEFT_INSTR_FOLD] = {1, false, false, false, false},
    [WEFT_INSTR_STORE] = {1, true, true, false, true},
};

/* Checks that operands come before the instruction and have levels that it may read. */
static weft_status check_operands(weft_context *ctx, const weft_kernel *k, int i, int count) {
    const weft_instr *in = &k->code[i];
    const int operands[3] = {in->a, in->b, in->c};
    for (int o = 0; o < 3; o++) {
        if (o >= count) {
            if (operands[o] != -1) return refuse_at(ctx, k, i, "operand %d is one too many", o);
            continue;
        }
        if (operands[o] < 0) return refuse_at(ctx, k, i, "operand %d is missing", o);
        if (operands[o] >= i) return refuse_at(ctx, k, i, "v%d does not come before its user", operands[o]);
        const weft_instr *from = &k->code[operands[o]];
        if (from->kind == WEFT_INSTR_STORE) return refuse_at(ctx, k, i, "v%d is a store", operands[o]);
        if (from->kind == WEFT_INSTR_FOLD && (in->kind != WEFT_INSTR_STORE || in->level != from->level))
            return refuse_at(ctx, k, i, "v%d is folded: it can only be stored, once for each block",
                             operands[o]);
        if (in->kind != WEFT_INSTR_REDUCE && in->level == WEFT_LEVEL_ROW && from->level == WEFT_LEVEL_FULL)
            return refuse_at(ctx, k, i, "a row value cannot need v%d, which is not a row value", operands[o]);
        if (in->kind == WEFT_INSTR_STORE && weft__level_folded(in->level) && from->kind != WEFT_INSTR_FOLD)
            return refuse_at(ctx, k, i, "v%d is not folded", operands[o]);
    }
    return WEFT_OK;
}

/* Does the view ignore dimensions first..last-1, in strides and guards? */
static bool still_along(const weft_view *view, int first, int last) {
    const weft_map *m = &view->map[0];
    for (int d = first; d < last; d++)
        if ((m->extent[d] > 1 && m->stride[d] != 0) || m->lo[d] > 0 || m->hi[d] < m->extent[d]) return false;
    return true;
}

/* Checks the argument and the view of instruction i against its kind and level. */
static weft_status check_places(weft_context *ctx, const weft_kernel *k, int i, const fields *f) {
    const weft_instr *in = &k->code[i];
    if (f->arg ? in->arg < 0 || in->arg >= k->n_args : in->arg != -1)
        return refuse_at(ctx, k, i, "argument %d is not valid here", in->arg);
    if (f->view ? in->view < 0 || in->view >= k->n_views : in->view != -1)
        return refuse_at(ctx, k, i, "view %d is not valid here", in->view);
    if (f->reads && !k->args[in->arg].read) return refuse_at(ctx, k, i, "arg%d is not read", in->arg);
    if (f->writes && !k->args[in->arg].written) return refuse_at(ctx, k, i, "arg%d is not written", in->arg);
    const int p = k->n_parallel;
    if (f->view && !weft__level_inner(in->level) && !still_along(&k->views[in->view], p, p + k->n_reduce))
        return refuse_at(ctx, k, i, "a row's view depends on a reduction index");
    if (f->view && weft__level_folded(in->level) && !still_along(&k->views[in->view], p - k->n_fold, p))
        return refuse_at(ctx, k, i, "a block's view depends on the row");
    return WEFT_OK;
}

static weft_status check_calc(weft_context *ctx, const weft_kernel *k, int i) {
    const weft_instr *in = &k->code[i];
    const weft_row *row = weft__row(in->op);
    const int operands[3] = {in->a, in->b, in->c};
    const int first = row->arity == 3 ? 1 : 0; /* the first operand of three is the condition */
    const int dtype = k->code[operands[first]].dtype;
    if (first == 1 && k->code[in->a].dtype != WEFT_BOOL)
        return refuse_at(ctx, k, i, "v%d is not a bool", in->a);
    for (int o = first; o < row->arity; o++)
        if (k->code[operands[o]].dtype != dtype) return refuse_at(ctx, k, i, "operands of different dtypes");
    if (!weft__row_takes(row, (weft_dtype)dtype))
        return refuse_at(ctx, k, i, "%s does not take %s", row->name, weft_dtype_name((weft_dtype)dtype));
    if (in->dtype != (row->to_bool ? WEFT_BOOL : dtype))
        return refuse_at(ctx, k, i, "the result has another dtype");
    return WEFT_OK;
}

static weft_status check_access(weft_context *ctx, const weft_kernel *k, int i) {
    const weft_instr *in = &k->code[i];
    const weft_kernel_arg *arg = in->arg >= 0 ? &k->args[in->arg] : NULL;
    wide low = 0, high = 0;
    switch ((weft_instr_kind)in->kind) {
    case WEFT_INSTR_INDEX:
        if (in->dtype != WEFT_I32 && in->dtype != WEFT_I64)
            return refuse_at(ctx, k, i, "an index is i32 or i64");
        return check_range(ctx, k, i, 0, 0,
                           in->dtype == WEFT_I32 ? (wide)INT32_MAX + 1 : (wide)INT64_MAX + 1);
    case WEFT_INSTR_MASK:
        if (in->dtype != WEFT_BOOL) return refuse_at(ctx, k, i, "a mask is bool");
        return WEFT_OK;
    case WEFT_INSTR_RANDOM:
        if (in->dtype != WEFT_I32) return refuse_at(ctx, k, i, "random bits are i32");
        if (arg->dtype != WEFT_I32 || arg->elements < 8) return refuse_at(ctx, k, i, "a key has eight i32");
        return check_range(ctx, k, i, 0, 0, (wide)INT64_MAX + 1);
    case WEFT_INSTR_GATHER: {
        const int index_dtype = k->code[in->a].dtype;
        if (index_dtype != WEFT_I32 && index_dtype != WEFT_I64)
            return refuse_at(ctx, k, i, "v%d is not an index", in->a);
        if (in->bound < 0) return refuse_at(ctx, k, i, "a negative bound");
        if (in->bound == 0) return in->dtype == arg->dtype ? WEFT_OK : refuse_at(ctx, k, i, "dtypes differ");
        const wide reach = (wide)in->imm_i * (in->bound - 1);
        low = reach < 0 ? reach : 0;
        high = reach < 0 ? 0 : reach;
    } /* fall through */
    case WEFT_INSTR_LOAD:
        if (in->dtype != arg->dtype) return refuse_at(ctx, k, i, "arg%d has another dtype", in->arg);
        return check_range(ctx, k, i, low, high, arg->elements);
    default: /* STORE */
        if (k->code[in->a].dtype != arg->dtype)
            return refuse_at(ctx, k, i, "arg%d has another dtype", in->arg);
        return check_range(ctx, k, i, 0, 0, arg->elements);
    }
}

static weft_status check_instr(weft_context *ctx, const weft_kernel *k, int i) {
    const weft_instr *in = &k->code[i];
    if (in->kind >= WEFT_INSTR_COUNT) return refuse_at(ctx, k, i, "unknown instruction");
    if (in->kind != WEFT_INSTR_STORE && !known_dtype(in->dtype))
        return refuse_at(ctx, k, i, "unknown dtype %d", in->dtype);
    const bool fold = in->kind == WEFT_INSTR_FOLD, reduce = in->kind == WEFT_INSTR_REDUCE || fold;
    const bool calc = in->kind == WEFT_INSTR_CALC;
    if (in->level > WEFT_LEVEL_COLUMN) return refuse_at(ctx, k, i, "unknown level %d", in->level);
    if (weft__level_inner(in->level) && k->n_reduce == 0)
        return refuse_at(ctx, k, i, "without reduction dimensions all values are row values");
    if (weft__level_folded(in->level) && (k->n_fold == 0 || !(fold || in->kind == WEFT_INSTR_STORE)))
        return refuse_at(ctx, k, i, "only folds and their stores can belong to a block of rows");
    const fields *f = &fields_of[in->kind];
    const weft_row *row = weft__row(in->op);
    if ((calc || reduce) && (!row || row->reduce != reduce))
        return refuse_at(ctx, k, i, "op %d is not valid here", in->op);
    WEFT_TRY(check_operands(ctx, k, i, calc ? row->arity : f->operands));
    WEFT_TRY(check_places(ctx, k, i, f));
    if (calc) return check_calc(ctx, k, i);
    if (reduce) {
        const weft_instr *from = &k->code[in->a];
        if (fold && in->level != (from->level | WEFT_LEVEL_BLOCK))
            return refuse_at(ctx, k, i,
                             "a fold turns a full value into a column, and a row value into a block");
        if (!fold && (from->level != WEFT_LEVEL_FULL || in->level != WEFT_LEVEL_ROW))
            return refuse_at(ctx, k, i, "a reduction turns a full value into a row value");
        if (from->dtype != in->dtype || !weft__row_takes(row, (weft_dtype)in->dtype))
            return refuse_at(ctx, k, i, "%s does not take %s, or its result has another dtype", row->name,
                             weft_dtype_name((weft_dtype)from->dtype));
    }
    return f->view ? check_access(ctx, k, i) : WEFT_OK;
}

/* ---- arguments ---- */

/* Checks a written argument. Some instruction must store to it. If it is also read, it is read only at the
 * index that writes it. A row of a block may not read what the block writes. */
static weft_status check_arg_use(weft_context *ctx, const weft_kernel *k, int arg) {
    int store = -1;
    if (!k->args[arg].written) return WEFT_OK;
    for (int i = 0; i < k->n_code; i++)
        if (k->code[i].kind == WEFT_INSTR_STORE && k->code[i].arg == arg) store = i;
    if (store < 0) return verify_refuse(ctx, k, "arg%d is never stored to", arg);
    for (int i = 0; i < k->n_code; i++) {
        const weft_instr *in = &k->code[i];
        if (in->arg != arg || in->kind == WEFT_INSTR_STORE) continue;
        bool same = false;
        for (int s = 0; !same && in->kind == WEFT_INSTR_LOAD && s < k->n_code; s++)
            same = k->code[s].kind == WEFT_INSTR_STORE && k->code[s].arg == arg &&
                   !weft__level_folded(k->code[s].level) &&
                   weft__view_equal(&k->views[k->code[s].view], &k->views[in->view]);
        if (!same)
            return refuse_at(ctx, k, i, "arg%d is written, and read at another element than the written one",
                             arg);
    }
    return WEFT_OK;
}

weft_status weft__kernel_verify(weft_context *ctx, const weft_kernel *kernel) {
    WEFT_TRY(check_frame(ctx, kernel));
    for (int v = 0; v < kernel->n_views; v++) WEFT_TRY(check_view(ctx, kernel, v));
    for (int i = 0; i < kernel->n_code; i++) WEFT_TRY(check_instr(ctx, kernel, i));
    for (int a = 0; a < kernel->n_args; a++) WEFT_TRY(check_arg_use(ctx, kernel, a));
    return WEFT_OK;
}
