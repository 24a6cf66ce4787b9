/* Prints kernels as text: one line for each instruction, views as index expressions. Golden files and
 * messages hold this text.
 *
 *     kernel row_softmax (rows 12, 64; reduce 128)  # gpt.h0.attn
 *       arg0 f32 in 98304
 *       arg1 f32 out 98304
 *       v0 f32 = load arg0[i0*8192 + i1*128 + r0]
 *       v1 f32 row = reduce max v0
 *       ...
 *       store arg1[i0*8192 + i1*128 + r0] = v5
 *
 * i0, i1, .. are parallel indices; f0, .. count the rows of a block; r0, .. are reduction indices. A list of
 * maps reads from the buffer outwards: `arg0[a0*4 + a1] with a = (i0*2 + i1) in (3, 4)` splits the number in
 * brackets over the extents (3, 4). Must not know: devices. Read next: verify.c. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "kernel/kernel.h"
#include "kernel/print.h"
#include "kernel/rows.h"

/* ---- views ---- */

/* The space of a map's index: the kernel's index space, or the digits that a letter names. */
typedef struct space {
    const weft_kernel *kernel; /* NULL for a letter */
    char letter;
} space;

static space space_of(const weft_kernel *kernel, int map) {
    return map == 0 ? (space){kernel, 0} : (space){NULL, (char)('a' + map - 1)};
}

static void put_index(weft_text *w, space s, int d) {
    const int folds = s.kernel ? s.kernel->n_parallel - s.kernel->n_fold : 0;
    if (!s.kernel)
        weft__put(w, "%c%d", s.letter, d);
    else if (d < folds)
        weft__put(w, "i%d", d);
    else if (d < s.kernel->n_parallel)
        weft__put(w, "f%d", d - folds);
    else
        weft__put(w, "r%d", d - s.kernel->n_parallel);
}

/* i0*128 - i1 + 7 */
static void put_sum(weft_text *w, const weft_map *m, space s) {
    bool first = true;
    for (int d = 0; d < m->rank; d++) {
        const int64_t stride = m->stride[d];
        if (stride == 0) continue;
        weft__put(w, "%s", first ? (stride < 0 ? "-" : "") : stride < 0 ? " - " : " + ");
        put_index(w, s, d);
        if (stride != 1 && stride != -1)
            weft__put(w, "*%" PRIu64, stride < 0 ? 0 - (uint64_t)stride : (uint64_t)stride);
        first = false;
    }
    if (first)
        weft__put(w, "%" PRId64, m->offset);
    else if (m->offset != 0)
        weft__put(w, " %c %" PRIu64, m->offset < 0 ? '-' : '+',
                  m->offset < 0 ? 0 - (uint64_t)m->offset : (uint64_t)m->offset);
}

/* 1 <= i0 < 4, a1 < 3 */
static void put_guards(weft_text *w, const weft_kernel *kernel, const weft_view *view, const char *before) {
    for (int k = 0; k < view->count; k++) {
        const weft_map *m = &view->map[k];
        for (int d = 0; d < m->rank; d++) {
            const bool below = m->lo[d] > 0, above = m->hi[d] < m->extent[d];
            if (!below && !above) continue;
            weft__put(w, "%s", before);
            before = ", ";
            if (below) weft__put(w, "%" PRId64 " <= ", m->lo[d]);
            put_index(w, space_of(kernel, k), d);
            if (above) weft__put(w, " < %" PRId64, m->hi[d]);
        }
    }
}

/* with a = (i0*4 + i1) in (3, 4) */
static void put_chain(weft_text *w, const weft_kernel *kernel, const weft_view *view) {
    for (int k = view->count - 1; k > 0; k--) {
        weft__put(w, "%s%c = (", k == view->count - 1 ? " with " : ", ", space_of(kernel, k).letter);
        put_sum(w, &view->map[k - 1], space_of(kernel, k - 1));
        weft__put(w, ") in (");
        for (int d = 0; d < view->map[k].rank; d++)
            weft__put(w, "%s%" PRId64, d ? ", " : "", view->map[k].extent[d]);
        weft__put(w, ")");
    }
}

/* The view of an instruction, NULL if its number is invalid. */
static const weft_view *view_of(const weft_kernel *kernel, const weft_instr *in) {
    const weft_view *v = in->view >= 0 && in->view < kernel->n_views ? &kernel->views[in->view] : NULL;
    return v && v->count >= 1 && v->count <= WEFT_VIEW_MAPS ? v : NULL;
}

static void put_element(weft_text *w, const weft_kernel *kernel, const weft_instr *in) {
    const weft_view *view = view_of(kernel, in);
    if (view)
        put_sum(w, &view->map[view->count - 1], space_of(kernel, view->count - 1));
    else
        weft__put(w, "view%d", in->view);
}

/* Is every index mapped to element 0? */
static bool is_zero(const weft_view *view) {
    if (!view || view->map[view->count - 1].offset != 0) return false;
    for (int d = 0; d < view->map[view->count - 1].rank; d++)
        if (view->map[view->count - 1].stride[d] != 0) return false;
    return true;
}

static void put_rest(weft_text *w, const weft_kernel *kernel, const weft_instr *in) {
    const weft_view *view = view_of(kernel, in);
    if (!view) return;
    put_chain(w, kernel, view);
    put_guards(w, kernel, view, " if ");
}

/* ---- instructions ---- */

/* Writes a number with the least of three precisions that reads back as the same number. The decimal
 * separator is a point in every locale. */
static void put_double(weft_text *w, double v) {
    static const int precisions[] = {6, 9, 17};
    char text[64];
    for (int i = 0; i < 3; i++) {
        double back = 0;
        snprintf(text, sizeof text, "%.*g", precisions[i], v);
        if (sscanf(text, "%lf", &back) == 1 && back == v) break; // NOLINT(cert-err34-c): written a line above
    }
    for (char *p = text; *p; p++)
        if (!strchr("0123456789+-einfa", *p)) *p = '.';
    weft__put(w, "%s", text);
}

static const char *op_name(const weft_instr *in) {
    const weft_row *row = weft__row(in->op);
    return row ? row->name : "?";
}

static void put_operands(weft_text *w, const weft_instr *in) {
    const int operands[3] = {in->a, in->b, in->c};
    const char *before = " ";
    for (int i = 0; i < 3; i++) {
        if (operands[i] == -1) continue;
        weft__put(w, "%sv%d", before, operands[i]);
        before = ", ";
    }
}

/* arg0[i0*4 + v3*2] */
static void put_access(weft_text *w, const weft_kernel *kernel, const weft_instr *in) {
    weft__put(w, " arg%d[", in->arg);
    if (in->kind == WEFT_INSTR_GATHER) {
        if (!is_zero(view_of(kernel, in))) {
            put_element(w, kernel, in);
            weft__put(w, " + ");
        }
        weft__put(w, "v%d", in->a);
        if (in->imm_i != 1) weft__put(w, "*%" PRId64, in->imm_i);
    } else {
        put_element(w, kernel, in);
    }
    weft__put(w, "]");
    if (in->kind == WEFT_INSTR_STORE) weft__put(w, " = v%d", in->a);
    put_rest(w, kernel, in);
    if (in->kind == WEFT_INSTR_GATHER) weft__put(w, " bound v%d < %" PRId64, in->a, in->bound);
}

static void put_body(weft_text *w, const weft_kernel *kernel, const weft_instr *in) {
    static const char *const words[WEFT_INSTR_COUNT] = {
#define WORD(id, text) [WEFT_INSTR_##id] = text,
        WEFT_INSTR_LIST(WORD)
#undef WORD
    };
    if (in->kind >= WEFT_INSTR_COUNT) {
        weft__put(w, "instruction kind %d", in->kind);
        return;
    }
    if (in->kind != WEFT_INSTR_CALC) weft__put(w, "%s", words[in->kind]);
    switch ((weft_instr_kind)in->kind) {
    case WEFT_INSTR_CONST:
        weft__put(w, " ");
        if (weft_dtype_is_float((weft_dtype)in->dtype))
            put_double(w, in->imm_f);
        else
            weft__put(w, "%" PRId64, in->imm_i);
        break;
    case WEFT_INSTR_INDEX:
        weft__put(w, " ");
        put_element(w, kernel, in);
        put_rest(w, kernel, in);
        break;
    case WEFT_INSTR_MASK: {
        const weft_view *view = view_of(kernel, in);
        if (!view) {
            weft__put(w, " view%d", in->view);
            break;
        }
        weft__put(w, weft__view_guarded(view) ? "" : " true");
        put_guards(w, kernel, view, " ");
        put_chain(w, kernel, view);
        break;
    }
    case WEFT_INSTR_RANDOM:
        weft__put(w, " arg%d at ", in->arg);
        put_element(w, kernel, in);
        put_rest(w, kernel, in);
        break;
    case WEFT_INSTR_LOAD:
    case WEFT_INSTR_STORE:
    case WEFT_INSTR_GATHER: put_access(w, kernel, in); break;
    case WEFT_INSTR_CALC:
    case WEFT_INSTR_REDUCE:
    case WEFT_INSTR_FOLD:
        weft__put(w, "%s%s", in->kind == WEFT_INSTR_CALC ? "" : " ", op_name(in)); /* fall through */
    case WEFT_INSTR_CAST: put_operands(w, in); break;
    case WEFT_INSTR_COUNT: break;
    }
}

static void put_instr(weft_text *w, const weft_kernel *kernel, int i) {
    const weft_instr *in = &kernel->code[i];
    if (in->kind != WEFT_INSTR_STORE) {
        static const char *const levels[] = {" row", "", " block", " column"};
        const bool plain = in->level > WEFT_LEVEL_COLUMN || (in->level == 0 && kernel->n_reduce == 0);
        weft__put(w, "v%d %s%s = ", i, weft_dtype_name((weft_dtype)in->dtype),
                  plain ? "" : levels[in->level]);
    }
    put_body(w, kernel, in);
}

size_t weft__kernel_print_instr(const weft_kernel *kernel, int i, char *buffer, size_t size) {
    weft_text w = weft__text(buffer, size);
    put_instr(&w, kernel, i);
    return w.length;
}

size_t weft__kernel_print(const weft_kernel *kernel, char *buffer, size_t size) {
    weft_text w = weft__text(buffer, size);
    weft__put(&w, "kernel %s (", kernel->name ? kernel->name : "?");
    const int outer = kernel->n_parallel - kernel->n_fold;
    for (int d = 0; d < outer; d++)
        weft__put(&w, "%s%" PRId64, d ? ", " : kernel->n_fold ? "blocks " : "rows ", kernel->extent[d]);
    if (outer == 0) weft__put(&w, kernel->n_fold ? "one block" : "one row");
    for (int d = outer; d < kernel->n_parallel; d++)
        weft__put(&w, "%s%" PRId64, d > outer ? ", " : "; rows ", kernel->extent[d]);
    if (kernel->last_rows) weft__put(&w, ", in the last %" PRId64, kernel->last_rows);
    for (int d = 0; d < kernel->n_reduce; d++)
        weft__put(&w, "%s%" PRId64, d ? ", " : "; reduce ", kernel->extent[kernel->n_parallel + d]);
    weft__put(&w, ")");
    if (kernel->path && *kernel->path) weft__put(&w, "  # %s", kernel->path);
    weft__put(&w, "\n");
    for (int i = 0; i < kernel->n_args; i++) {
        const weft_kernel_arg *arg = &kernel->args[i];
        weft__put(&w, "  arg%d %s%s%s %" PRId64 "\n", i, weft_dtype_name((weft_dtype)arg->dtype),
                  arg->read ? " in" : "", arg->written ? " out" : "", arg->elements);
    }
    for (int i = 0; i < kernel->n_code; i++) {
        weft__put(&w, "  ");
        put_instr(&w, kernel, i);
        weft__put(&w, "\n");
    }
    return w.length;
}
