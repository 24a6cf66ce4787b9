/* Rows that are copied ahead. If the lanes keep a long row in the stash, they copy the next row of their
 * group into it while they compute this one. So they do not wait for memory at its start. A lane reads only
 * slots that it copied itself. When it has read a slot for the last time, it copies the next row's element
 * into it. CUDA from compute capability 8.0 on. Must not know: what is computed. Read next:
 * render_team.c.
 *
 *     row i        max of x    sum of exp(x-m)    store exp(x-m) / s
 *     row i + 1                                   copied, slot by slot     max of x   .. */
#include "kernel/render.h"

enum { CAPABILITY = 80, WORD = 16 };

/* The only parallel dimension of the rows. -1: there are several, or none. */
static int row_dimension(const weft_render *r) {
    int found = -1;
    for (int d = 0; d < r->kernel->n_parallel; d++) {
        if (r->kernel->extent[d] == 1) continue;
        if (found >= 0) return -1;
        found = d;
    }
    return found;
}

/* The only value in the stash, if it is read in words of 16 bytes. Else -1. */
static int only_kept(const weft_render *r) {
    int found = -1;
    for (int v = 0; v < r->kernel->n_code; v++) {
        if (!r->row.kept[v]) continue;
        if (found >= 0 || !weft__in_span(r, v) || weft__stash_word(r, v) != WORD || !weft__is_aligned(r, v))
            return -1;
        found = v;
    }
    return found >= 0 && weft__code_of(r, found)->kind == WEFT_INSTR_LOAD ? found : -1;
}

void weft__choose_ahead(weft_render *r, int together) {
    if (!r->row.stash_bytes || r->target->capability < CAPABILITY || r->kernel->n_fold > 0) return;
    if (row_dimension(r) < 0) return;
    r->row.ahead = only_kept(r);
    if (r->row.ahead < 0) return;
    r->row.together = together;
    r->row.ahead_last = weft__last_loop_of(r, r->row.ahead);
}

/* Writes the copy of one word of a row, whose number is `row`. */
static void put_copy(weft_render *r, const char *row) {
    char x[8];
    weft__put_line(r, "const %s %s = %s;", weft__index_type(r), weft__render_index(r, row_dimension(r), x),
                   row);
    weft__put_stash_copy(r, r->row.ahead);
}

void weft__put_first_copies(weft_render *r) {
    char x[8];
    if (r->row.ahead < 0) return;
    const char *type = weft__index_type(r), *extent = weft__render_extent(r, r->lanes.dim);
    r->lanes.outside = true;
    weft__render_index(r, r->lanes.dim, x);
    r->lanes.outside = false;
    weft__put_open(r, "for (%s %s = lane*%d; first < last && %s < %s; %s += %d)", type, x, r->lanes.span, x,
                   extent, x, r->lanes.count * r->lanes.span);
    put_copy(r, "first");
    weft__put_close(r);
}

void weft__put_copies_awaited(weft_render *r, int stage) {
    if (r->row.ahead < 0 || r->row.first[r->row.ahead] != stage) return;
    weft__put_line(r, "w_copy_group();");
    weft__put_line(r, "w_copy_wait<0>();");
}

void weft__put_next_copy(weft_render *r, int stage) {
    if (r->row.ahead_last != stage) return;
    weft__put_open(r, "if (unit + 1 < last)");
    put_copy(r, "unit + 1");
    weft__put_close(r);
}
