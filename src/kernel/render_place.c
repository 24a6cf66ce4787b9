/* Writes views as index arithmetic. Indices have the names of kernel/print.c: i0, i1, .. are parallel, f0, ..
 * count the rows of a block, r0, .. are reduced. Sizes, strides, offsets and guards are arguments. Whether
 * one of them is 0, 1 or absent changes the source. Must not know: what is done with elements. Read next:
 * render_value.c. */
#include <stdio.h>
#include <string.h>

#include "kernel/render.h"

const char *weft__render_index(const weft_render *r, int d, char name[8]) {
    const weft_kernel *k = r->kernel;
    const int folds = k->n_parallel - k->n_fold;
    if (d < folds)
        snprintf(name, 8, "i%d", d & 15);
    else if (d < k->n_parallel)
        snprintf(name, 8, "f%d", (d - folds) & 15);
    else
        snprintf(name, 8, "r%d", (d - k->n_parallel) & 15);
    if (r->lanes.outside && d == r->lanes.dim) snprintf(name + strlen(name), 8 - strlen(name), "_0");
    return name;
}

/* A view that is being written. */
typedef struct walk {
    weft_render *r;
    const weft_view *view;
    int v, number; /* numbers of the instruction and of the view */
    int level;
} walk;

/* Is dimension d part of the level? Others count as index 0. */
static bool in_level(const walk *w, int d) {
    const weft_kernel *k = w->r->kernel;
    if (k->extent[d] == 1) return false;
    if (d >= k->n_parallel) return weft__level_inner(w->level);
    return d < k->n_parallel - k->n_fold || !weft__level_folded(w->level);
}

/* Returns index d of map m: i0, or a digit of the number that the map before yields. */
static const char *index_of(const walk *w, int m, int d, char name[32]) {
    if (m > 0)
        snprintf(name, 32, "e%d_%c%d", w->v, 'a' + m - 1, d);
    else
        weft__render_index(w->r, d, name);
    return name;
}

static bool takes_part(const walk *w, int m, int d) {
    return m > 0 ? w->view->map[m].extent[d] != 1 : in_level(w, d);
}

static const char *stride_name(const walk *w, int m, int d) {
    char plain[8];
    const int64_t stride = w->view->map[m].stride[d];
    if (m > 0) return weft__render_size(w->r, stride, "s%d_%c%d", w->number, 'a' + m - 1, d);
    return weft__render_size(w->r, stride, "s%d_%s", w->number, weft__render_index(w->r, d, plain));
}

/* Writes the element number of map m, such as i0*s0_i0 + r0 + o0. */
static void put_element(const walk *w, int m, weft_text *out) {
    const weft_map *map = &w->view->map[m];
    const size_t before = out->length;
    char name[32];
    for (int d = 0; d < map->rank; d++) {
        if (map->stride[d] == 0 || !takes_part(w, m, d)) continue;
        weft__put(out, "%s%s", out->length > before ? " + " : "", index_of(w, m, d, name));
        if (map->stride[d] != 1) weft__put(out, "*%s", stride_name(w, m, d));
    }
    if (map->offset != 0)
        weft__put(out, "%s%s", out->length > before ? " + " : "",
                  m > 0 ? weft__render_size(w->r, map->offset, "o%d_%c", w->number, 'a' + m - 1)
                        : weft__render_size(w->r, map->offset, "o%d", w->number));
    if (out->length == before) weft__put(out, "0");
}

static const char *guard_name(const walk *w, int m, int d, bool high) {
    char plain[8];
    const int64_t value = high ? w->view->map[m].hi[d] : w->view->map[m].lo[d];
    const char *which = high ? "hi" : "lo";
    if (m > 0) return weft__render_size(w->r, value, "%s%d_%c%d", which, w->number, 'a' + m - 1, d);
    return weft__render_size(w->r, value, "%s%d_%s", which, w->number, weft__render_index(w->r, d, plain));
}

/* Writes the guards of map m: i0 >= lo && i0 < hi && .. */
static void put_guards(const walk *w, int m, weft_text *out) {
    const weft_map *map = &w->view->map[m];
    char name[32];
    for (int d = 0; d < map->rank; d++) {
        if (!takes_part(w, m, d)) continue;
        for (int high = 0; high < 2; high++) {
            if (high ? map->hi[d] >= map->extent[d] : map->lo[d] <= 0) continue;
            weft__put(out, "%s%s %s %s", out->length ? " && " : "", index_of(w, m, d, name),
                      high ? "<" : ">=", guard_name(w, m, d, high));
        }
    }
}

/* Writes the lines that split the number of map m - 1 over the extents of map m. */
static void put_digits(const walk *w, int m, const char *number) {
    const weft_map *map = &w->view->map[m];
    const char letter = (char)('a' + m - 1), *type = weft__index_type(w->r);
    int left = 0;
    for (int d = 0; d < map->rank; d++) left += map->extent[d] != 1;
    weft__put_line(w->r, "%s e%d_%c = %s;", type, w->v, letter, number);
    for (int d = map->rank - 1; d >= 0; d--) {
        if (map->extent[d] == 1) continue;
        const char *extent = weft__render_size(w->r, map->extent[d], "n%d_%c%d", w->number, letter, d);
        if (--left == 0) {
            weft__put_line(w->r, "const %s e%d_%c%d = e%d_%c;", type, w->v, letter, d, w->v, letter);
            continue;
        }
        weft__put_line(w->r, "const %s e%d_%c%d = e%d_%c %% %s;", type, w->v, letter, d, w->v, letter,
                       extent);
        weft__put_line(w->r, "e%d_%c /= %s;", w->v, letter, extent);
    }
}

void weft__put_place(weft_render *r, int v, weft_place *out) {
    const weft_instr *in = &r->kernel->code[v];
    const walk w = {
        .r = r, .view = &r->kernel->views[in->view], .v = v, .number = in->view, .level = in->level};
    weft_text guard = weft__text(out->guard, sizeof out->guard);
    for (int m = 0; m < w.view->count; m++) { /* follows the list of maps */
        weft_text element = weft__text(out->element, sizeof out->element);
        if (m > 0) {
            char number[WEFT_RENDER_TERM];
            weft_text text = weft__text(number, sizeof number);
            put_element(&w, m - 1, &text);
            put_digits(&w, m, number);
        }
        put_guards(&w, m, &guard);
        put_element(&w, m, &element);
    }
}
