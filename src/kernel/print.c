/* Kernels as text: one line an instruction, views as index expressions. Golden files and messages hold it.
 *
 *   kernel row_softmax (rows 12, 64; reduce 128)  # gpt.h0.attn
 *     arg0 f32 in 98304
 *     arg1 f32 out 98304
 *     v0 f32 = load arg0[i0*8192 + i1*128 + r0]
 *     v1 f32 row = reduce max v0
 *     ...
 *     store arg1[i0*8192 + i1*128 + r0] = v5
 *
 * i0, i1, .. are parallel indices, f0, .. those of the rows of a block, r0, .. reduction indices. A list of
 * maps reads from the buffer outwards: `arg0[a0*4 + a1] with a = (i0*2 + i1) in (3, 4)` splits the number in
 * brackets over the extents (3, 4). Must not know: devices. Read next: verify.c. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kernel/kernel.h"
#include "kernel/print.h"
#include "kernel/rows.h"

/* A text that is cut at `size` and goes on counting. */
typedef struct writer {
    char *text;
    size_t size, length;
} writer;

static void put(writer *w, const char *fmt, ...) WEFT_PRINTF(2, 3);
static void put(writer *w, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    size_t room = w->length < w->size ? w->size - w->length : 0;
    int n = vsnprintf(room ? w->text + w->length : NULL, room, fmt, args);
    va_end(args);
    if (n > 0) w->length += (size_t)n;
}

static writer writer_of(char *buffer, size_t size) {
    if (size) buffer[0] = '\0';
    return (writer){buffer, size, 0};
}

/* ---- views ---- */

/* The space that a map takes its index from: that of the kernel, or the digits named by a letter. */
typedef struct space {
    const weft_kernel *kernel; /* NULL for a letter */
    char letter;
} space;

static space space_of(const weft_kernel *kernel, int map) {
    return map == 0 ? (space){kernel, 0} : (space){NULL, (char)('a' + map - 1)};
}

static void put_index(writer *w, space s, int d) {
    const int folds = s.kernel ? s.kernel->n_parallel - s.kernel->n_fold : 0;
    if (!s.kernel)
        put(w, "%c%d", s.letter, d);
    else if (d < folds)
        put(w, "i%d", d);
    else if (d < s.kernel->n_parallel)
        put(w, "f%d", d - folds);
    else
        put(w, "r%d", d - s.kernel->n_parallel);
}

/* i0*128 - i1 + 7 */
static void put_sum(writer *w, const weft_map *m, space s) {
    bool first = true;
    for (int d = 0; d < m->rank; d++) {
        const int64_t stride = m->stride[d];
        if (stride == 0) continue;
        put(w, "%s", first ? (stride < 0 ? "-" : "") : stride < 0 ? " - " : " + ");
        put_index(w, s, d);
        if (stride != 1 && stride != -1)
            put(w, "*%" PRIu64, stride < 0 ? 0 - (uint64_t)stride : (uint64_t)stride);
        first = false;
    }
    if (first)
        put(w, "%" PRId64, m->offset);
    else if (m->offset != 0)
        put(w, " %c %" PRIu64, m->offset < 0 ? '-' : '+',
            m->offset < 0 ? 0 - (uint64_t)m->offset : (uint64_t)m->offset);
}

/* 1 <= i0 < 4, a1 < 3 */
static void put_guards(writer *w, const weft_kernel *kernel, const weft_view *view, const char *before) {
    for (int k = 0; k < view->count; k++) {
        const weft_map *m = &view->map[k];
        for (int d = 0; d < m->rank; d++) {
            const bool below = m->lo[d] > 0, above = m->hi[d] < m->extent[d];
            if (!below && !above) continue;
            put(w, "%s", before);
            before = ", ";
            if (below) put(w, "%" PRId64 " <= ", m->lo[d]);
            put_index(w, space_of(kernel, k), d);
            if (above) put(w, " < %" PRId64, m->hi[d]);
        }
    }
}

/* with a = (i0*4 + i1) in (3, 4) */
static void put_chain(writer *w, const weft_kernel *kernel, const weft_view *view) {
    for (int k = view->count - 1; k > 0; k--) {
        put(w, "%s%c = (", k == view->count - 1 ? " with " : ", ", space_of(kernel, k).letter);
        put_sum(w, &view->map[k - 1], space_of(kernel, k - 1));
        put(w, ") in (");
        for (int d = 0; d < view->map[k].rank; d++)
            put(w, "%s%" PRId64, d ? ", " : "", view->map[k].extent[d]);
        put(w, ")");
    }
}

/* The view of an instruction if its number is good. */
static const weft_view *view_of(const weft_kernel *kernel, const weft_instr *in) {
    const weft_view *v = in->view >= 0 && in->view < kernel->n_views ? &kernel->views[in->view] : NULL;
    return v && v->count >= 1 && v->count <= WEFT_VIEW_MAPS ? v : NULL;
}

static void put_element(writer *w, const weft_kernel *kernel, const weft_instr *in) {
    const weft_view *view = view_of(kernel, in);
    if (view)
        put_sum(w, &view->map[view->count - 1], space_of(kernel, view->count - 1));
    else
        put(w, "view%d", in->view);
}

/* Is every index mapped to element 0? */
static bool is_zero(const weft_view *view) {
    if (!view || view->map[view->count - 1].offset != 0) return false;
    for (int d = 0; d < view->map[view->count - 1].rank; d++)
        if (view->map[view->count - 1].stride[d] != 0) return false;
    return true;
}

static void put_rest(writer *w, const weft_kernel *kernel, const weft_instr *in) {
    const weft_view *view = view_of(kernel, in);
    if (!view) return;
    put_chain(w, kernel, view);
    put_guards(w, kernel, view, " if ");
}

/* ---- instructions ---- */

/* The shortest of the usual precisions that reads back as the same number; always with a point for the
 * decimal separator, whatever the locale. */
static void put_double(writer *w, double v) {
    static const int precisions[] = {6, 9, 17};
    char text[64];
    for (int i = 0; i < 3; i++) {
        double back = 0;
        snprintf(text, sizeof text, "%.*g", precisions[i], v);
        if (sscanf(text, "%lf", &back) == 1 && back == v) break; // NOLINT(cert-err34-c): written a line above
    }
    for (char *p = text; *p; p++)
        if (!strchr("0123456789+-einfa", *p)) *p = '.';
    put(w, "%s", text);
}

static const char *op_name(const weft_instr *in) {
    const weft_row *row = weft__row(in->op);
    return row ? row->name : "?";
}

static void put_operands(writer *w, const weft_instr *in) {
    const int operands[3] = {in->a, in->b, in->c};
    const char *before = " ";
    for (int i = 0; i < 3; i++) {
        if (operands[i] == -1) continue;
        put(w, "%sv%d", before, operands[i]);
        before = ", ";
    }
}

/* arg0[i0*4 + v3*2] */
static void put_access(writer *w, const weft_kernel *kernel, const weft_instr *in) {
    put(w, " arg%d[", in->arg);
    if (in->kind == WEFT_INSTR_GATHER) {
        if (!is_zero(view_of(kernel, in))) {
            put_element(w, kernel, in);
            put(w, " + ");
        }
        put(w, "v%d", in->a);
        if (in->imm_i != 1) put(w, "*%" PRId64, in->imm_i);
    } else {
        put_element(w, kernel, in);
    }
    put(w, "]");
    if (in->kind == WEFT_INSTR_STORE) put(w, " = v%d", in->a);
    put_rest(w, kernel, in);
    if (in->kind == WEFT_INSTR_GATHER) put(w, " bound v%d < %" PRId64, in->a, in->bound);
}

static void put_body(writer *w, const weft_kernel *kernel, const weft_instr *in) {
    static const char *const words[WEFT_INSTR_COUNT] = {
#define WORD(id, text) [WEFT_INSTR_##id] = text,
        WEFT_INSTR_LIST(WORD)
#undef WORD
    };
    if (in->kind >= WEFT_INSTR_COUNT) {
        put(w, "instruction kind %d", in->kind);
        return;
    }
    if (in->kind != WEFT_INSTR_CALC) put(w, "%s", words[in->kind]);
    switch ((weft_instr_kind)in->kind) {
    case WEFT_INSTR_CONST:
        put(w, " ");
        if (weft_dtype_is_float((weft_dtype)in->dtype))
            put_double(w, in->imm_f);
        else
            put(w, "%" PRId64, in->imm_i);
        break;
    case WEFT_INSTR_INDEX:
        put(w, " ");
        put_element(w, kernel, in);
        put_rest(w, kernel, in);
        break;
    case WEFT_INSTR_MASK: {
        const weft_view *view = view_of(kernel, in);
        if (!view) {
            put(w, " view%d", in->view);
            break;
        }
        put(w, weft__view_guarded(view) ? "" : " true");
        put_guards(w, kernel, view, " ");
        put_chain(w, kernel, view);
        break;
    }
    case WEFT_INSTR_RANDOM:
        put(w, " arg%d at ", in->arg);
        put_element(w, kernel, in);
        put_rest(w, kernel, in);
        break;
    case WEFT_INSTR_LOAD:
    case WEFT_INSTR_STORE:
    case WEFT_INSTR_GATHER: put_access(w, kernel, in); break;
    case WEFT_INSTR_CALC:
    case WEFT_INSTR_REDUCE:
    case WEFT_INSTR_FOLD:
        put(w, "%s%s", in->kind == WEFT_INSTR_CALC ? "" : " ", op_name(in)); /* fall through */
    case WEFT_INSTR_CAST: put_operands(w, in); break;
    case WEFT_INSTR_COUNT: break;
    }
}

static void put_instr(writer *w, const weft_kernel *kernel, int i) {
    const weft_instr *in = &kernel->code[i];
    if (in->kind != WEFT_INSTR_STORE) {
        static const char *const levels[] = {" row", "", " block", " column"};
        const bool plain = in->level > WEFT_LEVEL_COLUMN || (in->level == 0 && kernel->n_reduce == 0);
        put(w, "v%d %s%s = ", i, weft_dtype_name((weft_dtype)in->dtype), plain ? "" : levels[in->level]);
    }
    put_body(w, kernel, in);
}

size_t weft__kernel_print_instr(const weft_kernel *kernel, int i, char *buffer, size_t size) {
    writer w = writer_of(buffer, size);
    put_instr(&w, kernel, i);
    return w.length;
}

size_t weft__kernel_print(const weft_kernel *kernel, char *buffer, size_t size) {
    writer w = writer_of(buffer, size);
    put(&w, "kernel %s (", kernel->name ? kernel->name : "?");
    const int outer = kernel->n_parallel - kernel->n_fold;
    for (int d = 0; d < outer; d++)
        put(&w, "%s%" PRId64, d ? ", " : kernel->n_fold ? "blocks " : "rows ", kernel->extent[d]);
    if (outer == 0) put(&w, kernel->n_fold ? "one block" : "one row");
    for (int d = outer; d < kernel->n_parallel; d++)
        put(&w, "%s%" PRId64, d > outer ? ", " : "; rows ", kernel->extent[d]);
    for (int d = 0; d < kernel->n_reduce; d++)
        put(&w, "%s%" PRId64, d ? ", " : "; reduce ", kernel->extent[kernel->n_parallel + d]);
    put(&w, ")");
    if (kernel->path && *kernel->path) put(&w, "  # %s", kernel->path);
    put(&w, "\n");
    for (int i = 0; i < kernel->n_args; i++) {
        const weft_kernel_arg *arg = &kernel->args[i];
        put(&w, "  arg%d %s%s%s %" PRId64 "\n", i, weft_dtype_name((weft_dtype)arg->dtype),
            arg->read ? " in" : "", arg->written ? " out" : "", arg->elements);
    }
    for (int i = 0; i < kernel->n_code; i++) {
        put(&w, "  ");
        put_instr(&w, kernel, i);
        put(&w, "\n");
    }
    return w.length;
}
