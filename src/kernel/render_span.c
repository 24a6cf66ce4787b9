/* Spans, on GPUs. If elements are adjacent, a work-item takes several of them. It reads and writes 16 bytes
 * at once and computes its place once for all. Dense elements are read before the elements are computed one
 * by one, and written after that. Must not know: values. Read next: render_rows.c.
 *
 *     span of 4     item 0: e0 e1 e2 e3   item 1: e4 e5 e6 e7 */
#include <stdio.h>

#include "kernel/render.h"

#define SPAN_BYTES 16
#define SPAN_MOST  8 /* elements */

/* Does v access n adjacent elements of a lane, from a multiple of n elements on? Then one wide access serves
 * all. */
static bool is_dense(const weft_render *r, int v, int n) {
    const weft_instr *in = weft__code_of(r, v);
    if (in->kind != WEFT_INSTR_LOAD && in->kind != WEFT_INSTR_STORE) return false;
    const weft_view *view = &r->kernel->views[in->view];
    const weft_map *m = &view->map[0];
    if (view->count > 1 || weft__view_guarded(view) || m->stride[r->lane] != 1 || m->offset % n != 0)
        return false;
    if (r->reduced && !weft__level_inner(in->level)) return false;
    for (int d = 0; d < m->rank; d++)
        if (d != r->lane && r->kernel->extent[d] != 1 && m->stride[d] % n != 0) return false;
    return true;
}

static int64_t render_span_bytes_of(const weft_render *r, int v) {
    return (int64_t)weft_dtype_size((weft_dtype)r->kernel->args[weft__code_of(r, v)->arg].dtype);
}

/* Are all stores outer the lanes dense, and do idle lanes add at most a third to the work? */
static bool suits(const weft_render *r, int n) {
    const int64_t extent = r->kernel->extent[r->lane], step = (int64_t)r->lanes * n;
    if (extent % n != 0 || 3 * weft__ceil_div(extent, step) * step > 4 * extent) return false;
    for (int v = 0; v < r->kernel->n_code; v++) {
        const weft_instr *in = weft__code_of(r, v);
        if (in->kind == WEFT_INSTR_STORE && (!r->reduced || weft__level_inner(in->level)) &&
            !is_dense(r, v, n))
            return false;
    }
    return true;
}

void weft__choose_span(weft_render *r) {
    const weft_kernel *k = r->kernel;
    int64_t widest = 0;
    r->span = 1;
    if (r->target->vectors || r->lane < 0 || k->n_fold > 0 || r->product >= 0) return;
    if (k->n_reduce > 0 && !r->reduced) return;
    for (int v = 0; v < k->n_code; v++)
        if (is_dense(r, v, 2)) widest = weft__larger(widest, render_span_bytes_of(r, v));
    if (widest == 0) return;
    int n = (int)weft__smaller(SPAN_MOST, SPAN_BYTES / widest);
    while (n > 1 && !suits(r, n)) n /= 2;
    r->span = n;
}

bool weft__in_span(const weft_render *r, int v) { return r->span > 1 && is_dense(r, v, r->span); }

/* Writes a wide read or write of a span. */
static void put_access(weft_render *r, int v, const char *what) {
    static const char *const words[] = {[2] = "ushort", [4] = "uint", [8] = "ulong", [16] = "uint4"};
    const weft_instr *in = weft__code_of(r, v);
    const weft_dtype dtype = (weft_dtype)r->kernel->args[in->arg].dtype;
    weft_place p;
    r->outside = true;
    weft__put_place(r, v, false, &p);
    r->outside = false;
    weft__put_line(r, "%s(%s, %s, %s, %d, arg%d + (%s), span%d);", what, weft_dtype_name(dtype),
                   dtype == WEFT_F16 ? "ushort" : weft__storage_name(dtype),
                   words[render_span_bytes_of(r, v) * r->span], r->span, in->arg, p.element, v);
}

static bool takes_part(const weft_render *r, int v) {
    return weft__in_span(r, v) && (!r->reduced || r->wanted[v]);
}

void weft__put_span(weft_render *r) {
    const weft_kernel *k = r->kernel;
    char x[8], first[8];
    for (int v = 0; v < k->n_code && r->span > 1; v++) {
        if (!takes_part(r, v)) continue;
        const weft_dtype dtype = (weft_dtype)k->args[weft__code_of(r, v)->arg].dtype;
        weft__put_line(r, "%s span%d[%d];", weft__type_name(weft__render_type(dtype), false), v, r->span);
        if (weft__code_of(r, v)->kind == WEFT_INSTR_LOAD) put_access(r, v, "W_READ");
    }
    if (r->span == 1) return;
    weft__render_index(r, r->lane, x);
    r->outside = true;
    weft__render_index(r, r->lane, first);
    r->outside = false;
    weft__put_line(r, "W_UNROLL");
    weft__put_open(r, "for (int e = 0; e < %d; e++)", r->span);
    weft__put_line(r, "const %s %s = %s + e;", weft__index_type(r), x, first);
}

void weft__put_span_end(weft_render *r) {
    if (r->span == 1) return;
    weft__put_close(r);
    for (int v = 0; v < r->kernel->n_code; v++)
        if (takes_part(r, v) && weft__code_of(r, v)->kind == WEFT_INSTR_STORE) put_access(r, v, "W_WRITE");
}
