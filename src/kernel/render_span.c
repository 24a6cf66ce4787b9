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
    if (view->count > 1 || weft__view_guarded(view) || m->stride[r->lanes.dim] != 1 || m->offset % n != 0)
        return false;
    if (r->lanes.reduced && !weft__level_inner(in->level)) return false;
    for (int d = 0; d < m->rank; d++)
        if (d != r->lanes.dim && r->kernel->extent[d] != 1 && m->stride[d] % n != 0) return false;
    return true;
}

static int64_t render_span_bytes_of(const weft_render *r, int v) {
    return (int64_t)weft_dtype_size((weft_dtype)r->kernel->args[weft__code_of(r, v)->arg].dtype);
}

/* The lanes that take spans of n elements. In a short row, as many as it has spans. */
static int lanes_of(const weft_render *r, int n) {
    if (!weft__takes_short_rows(r, r->lanes.dim)) return r->lanes.count;
    return weft__team_of(r, weft__ceil_div(r->kernel->extent[r->lanes.dim], n));
}

/* Are all stores along the lanes dense, and do idle lanes add at most a third to the work? */
static bool suits(const weft_render *r, int n) {
    const int64_t extent = r->kernel->extent[r->lanes.dim], step = (int64_t)lanes_of(r, n) * n;
    if (extent % n != 0 || 3 * weft__ceil_div(extent, step) * step > 4 * extent) return false;
    for (int v = 0; v < r->kernel->n_code; v++) {
        const weft_instr *in = weft__code_of(r, v);
        if (in->kind == WEFT_INSTR_STORE && (!r->lanes.reduced || weft__level_inner(in->level)) &&
            !is_dense(r, v, n))
            return false;
    }
    return true;
}

void weft__choose_span(weft_render *r) {
    const weft_kernel *k = r->kernel;
    const bool folds = k->n_fold > 0 && !(weft__has_teams(r) && r->lanes.reduced);
    int64_t widest = 0, narrowest = SPAN_BYTES;
    r->lanes.span = 1;
    if (r->lanes.dim < 0 || folds || r->product >= 0) return;
    if (k->n_reduce > 0 && !r->lanes.reduced) return;
    for (int v = 0; v < k->n_code; v++) {
        if (!is_dense(r, v, 2)) continue;
        widest = weft__larger(widest, render_span_bytes_of(r, v));
        narrowest = weft__smaller(narrowest, render_span_bytes_of(r, v));
    }
    if (widest == 0) return;
    /* A lane of a team has few spans, so the narrowest elements fill 16 bytes and wider ones take several
     * accesses. */
    const int64_t bytes = weft__has_teams(r) && r->lanes.reduced ? narrowest : widest;
    int n = (int)weft__smaller(SPAN_MOST, SPAN_BYTES / bytes);
    while (n > 1 && (n * widest > 2 * SPAN_BYTES || !suits(r, n))) n /= 2;
    r->lanes.span = n;
    r->lanes.count = lanes_of(r, n);
}

bool weft__could_span(const weft_render *r, int v, int n) {
    return r->lanes.dim >= 0 && r->kernel->extent[r->lanes.dim] % n == 0 && is_dense(r, v, n);
}

bool weft__in_span(const weft_render *r, int v) { return r->lanes.span > 1 && is_dense(r, v, r->lanes.span); }

static const char *word_of(int64_t bytes) {
    static const char *const words[] = {
        [1] = "uchar", [2] = "ushort", [4] = "uint", [8] = "ulong", [16] = "uint4"};
    return words[weft__smaller(bytes, SPAN_BYTES)];
}

/* A type that has the size of an element in memory and can be copied; half cannot. */
static const char *copied_type(weft_dtype dtype) {
    return dtype == WEFT_F16 ? "ushort" : weft__storage_name(dtype);
}

static weft_dtype dtype_of(const weft_render *r, int v) {
    return (weft_dtype)r->kernel->args[weft__code_of(r, v)->arg].dtype;
}

/* Is the place of a span in memory a multiple of its word? Views are (is_dense), so the operand decides. */
bool weft__is_aligned(const weft_render *r, int v) {
    const uint8_t *aligned = r->launches->aligned;
    return aligned && aligned[weft__code_of(r, v)->arg] >=
                          weft__smaller(render_span_bytes_of(r, v) * r->lanes.span, SPAN_BYTES);
}

/* Writes a wide read or write of a span: what(dtype, type, word, n, place, to). With `named` the dtype is
 * given. */
static void put_access(weft_render *r, int v, const char *what, bool named, const char *to) {
    const weft_dtype dtype = dtype_of(r, v);
    weft_place p;
    r->lanes.outside = true;
    weft__put_place(r, v, &p);
    r->lanes.outside = false;
    weft__put_line(r, "%s%s(%s%s%s, %s, %d, arg%d + (%s), %s)%s", what,
                   weft__is_aligned(r, v) ? "_ALIGNED" : "", named ? weft_dtype_name(dtype) : "",
                   named ? ", " : "", copied_type(dtype), word_of(render_span_bytes_of(r, v) * r->lanes.span),
                   r->lanes.span, weft__code_of(r, v)->arg, p.element, to, named ? ";" : "");
}

/* ---- held elements ---- */

void weft__put_held(weft_render *r, int v, int turns) {
    const bool read = weft__in_span(r, v);
    char count[24] = "";
    if (turns) snprintf(count, sizeof count, "[%d]", turns);
    weft__put_line(r, "W_HELD(%s, %s, %d) held%d%s;",
                   read ? copied_type(dtype_of(r, v)) : weft__type_name(weft__type_of(r, v)),
                   word_of(weft__stash_word(r, v)), r->lanes.span, v, count);
}

int weft__open_turns(weft_render *r) {
    const int64_t step = (int64_t)r->lanes.count * r->lanes.span, extent = r->kernel->extent[r->lanes.dim];
    char x[8];
    r->lanes.outside = r->lanes.span > 1;
    weft__render_index(r, r->lanes.dim, x);
    r->lanes.outside = false;
    weft__put_line(r, "W_UNROLL");
    weft__put_open(r, "for (int turn = 0; turn < %d; turn++)", r->lanes.turns);
    if (r->lanes.span > 1)
        weft__put_line(r, "const %s %s = (turn*%d + lane)*%d;", weft__index_type(r), x, r->lanes.count,
                       r->lanes.span);
    else
        weft__put_line(r, "const %s %s = turn*%d + lane;", weft__index_type(r), x, r->lanes.count);
    if (extent == step * r->lanes.turns) return 1;
    weft__put_open(r, "if (%s < %s)", x, weft__render_extent(r, r->lanes.dim));
    return 2;
}

bool weft__is_held_from(const weft_render *r, int v, int stage) {
    return r->lanes.turns && r->row.kept[v] && r->row.first[v] == stage && weft__in_span(r, v);
}

void weft__put_holds(weft_render *r, int stage) {
    bool any = false;
    for (int v = 0; v < r->kernel->n_code; v++) any = any || weft__is_held_from(r, v, stage);
    if (!any) return;
    const int braces = weft__open_turns(r);
    for (int v = 0; v < r->kernel->n_code; v++) {
        char to[WEFT_RENDER_NAME];
        snprintf(to, sizeof to, "held%d[turn]", v);
        if (weft__is_held_from(r, v, stage)) put_access(r, v, "W_HOLD", false, to);
    }
    for (int i = 0; i < braces; i++) weft__put_close(r);
}

/* The number of an element, shifted by so many bits, is the number of its span, and so of its slot in the
 * stash. */
static int slot_shift(const weft_render *r) {
    int shift = 0;
    while (1 << shift < r->lanes.span) shift++;
    return shift;
}

/* Writes the index of the first element of a span. */
static const char *first_index(weft_render *r, char x[8]) {
    r->lanes.outside = r->lanes.span > 1;
    weft__render_index(r, r->lanes.dim, x);
    r->lanes.outside = false;
    return x;
}

static const char *stash_of(weft_render *r, int v) {
    return weft__render_number(r, WEFT_ARGUMENT_I32, (weft_argument){.i = r->row.stash[v]}, "stash%d", v);
}

/* Writes the held elements of a slot to the stash, or reads them from there. */
static void put_stash(weft_render *r, int v, const char *what) {
    char x[8];
    const int shift = slot_shift(r);
    const char *extent = weft__render_extent(r, r->lanes.dim);
    weft__put_line(r, "%s(%s, %s >> %d, %s >> %d, held%d, stash + %s)", what, word_of(weft__stash_word(r, v)),
                   extent, shift, first_index(r, x), shift, v, stash_of(r, v));
}

void weft__put_stash_copy(weft_render *r, int v) {
    char x[8];
    weft_place p;
    r->lanes.outside = true;
    weft__put_place(r, v, &p);
    r->lanes.outside = false;
    weft__put_line(r, "W_STASH_COPY(%s >> %d, arg%d + (%s), stash + %s)", first_index(r, x), slot_shift(r),
                   weft__code_of(r, v)->arg, p.element, stash_of(r, v));
}

/* Gets the values of a kept LOAD that is a span. */
static void put_unpacked(weft_render *r, int v, int stage) {
    char held[WEFT_RENDER_NAME];
    snprintf(held, sizeof held, r->lanes.turns ? "held%d[turn]" : "held%d", v);
    if (!r->lanes.turns) {
        weft__put_held(r, v, 0);
        if (v == r->row.ahead) {
            put_stash(r, v, "W_UNSTASH");
            weft__put_next_copy(r, stage);
        } else if (weft__is_kept(r, v, stage)) {
            put_stash(r, v, "W_UNSTASH");
        } else {
            put_access(r, v, "W_HOLD", false, held);
            put_stash(r, v, "W_STASH");
        }
    }
    weft__put_line(r, "W_UNPACK(%s, %d, %s, span%d)", weft_dtype_name(dtype_of(r, v)), r->lanes.span, held,
                   v);
}

/* ---- the loop over a span ---- */

static bool takes_part(const weft_render *r, int v) {
    return weft__in_span(r, v) && (!r->lanes.reduced || r->wanted[v]);
}

/* Is v kept in the stash, element by element? */
static bool in_stash(const weft_render *r, int v) {
    return r->row.kept[v] && r->wanted[v] && !r->lanes.turns && !weft__in_span(r, v);
}

void weft__put_span(weft_render *r, int stage) {
    const weft_kernel *k = r->kernel;
    char x[8], first[8], to[WEFT_RENDER_NAME];
    for (int v = 0; v < k->n_code; v++) {
        if (in_stash(r, v)) {
            weft__put_held(r, v, 0);
            if (weft__is_kept(r, v, stage)) put_stash(r, v, "W_UNSTASH");
        }
        if (r->lanes.span == 1 || !takes_part(r, v)) continue;
        snprintf(to, sizeof to, "span%d", v);
        weft__put_line(r, "%s %s[%d];", weft__type_name(weft__render_type(dtype_of(r, v))), to,
                       r->lanes.span);
        if (weft__code_of(r, v)->kind != WEFT_INSTR_LOAD) continue;
        if (r->row.kept[v])
            put_unpacked(r, v, stage);
        else
            put_access(r, v, "W_READ", true, to);
    }
    if (r->lanes.span == 1) return;
    weft__render_index(r, r->lanes.dim, x);
    r->lanes.outside = true;
    weft__render_index(r, r->lanes.dim, first);
    r->lanes.outside = false;
    weft__put_line(r, "W_UNROLL");
    weft__put_open(r, "for (int e = 0; e < %d; e++)", r->lanes.span);
    weft__put_line(r, "const %s %s = %s + e;", weft__index_type(r), x, first);
}

void weft__put_span_end(weft_render *r, int stage) {
    if (r->lanes.span > 1) weft__put_close(r);
    for (int v = 0; v < r->kernel->n_code; v++) {
        char from[WEFT_RENDER_NAME];
        snprintf(from, sizeof from, "span%d", v);
        if (in_stash(r, v) && !weft__is_kept(r, v, stage)) put_stash(r, v, "W_STASH");
        if (r->lanes.span > 1 && takes_part(r, v) && weft__code_of(r, v)->kind == WEFT_INSTR_STORE)
            put_access(r, v, "W_WRITE", true, from);
    }
}
