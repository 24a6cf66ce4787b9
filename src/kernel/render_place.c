/* Writes views as index arithmetic. Indices have the names of kernel/print.c: i0, i1, .. are parallel, f0, ..
 * count the rows of a block, r0, .. are reduced. The index of the lane dimension is that of lane 0 of a
 * vector. Sizes, strides, offsets and guards are arguments. Whether one of them is 0, 1 or absent changes the
 * source. Must not know: what is done with elements. Read next: render_value.c. */
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
    if (r->outside && d == r->lane) snprintf(name + strlen(name), 8 - strlen(name), "_0");
    return name;
}

/* A view that is being written. */
typedef struct walk {
    weft_render *r;
    const weft_view *view;
    int v, number; /* numbers of the instruction and of the view */
    int level;
    bool vector; /* each lane gets an element number of its own */
    char digits[WEFT_VIEW_MAPS];
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
    char plain[8];
    if (m > 0)
        snprintf(name, 32, "e%d_%c%d", w->v, 'a' + m - 1, d);
    else if (w->vector && d == w->r->lane)
        snprintf(name, 32, "(%s + %s)", weft__render_index(w->r, d, plain),
                 w->r->wide ? "convert_long16(W_LANES)" : "W_LANES");
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

/* Writes the guards of map m: i0 >= lo && i0 < hi && ..; for vectors w_bool(..) & ... With `lane` it leaves
 * out the lane dimension, which the caller guards. */
static void put_guards(const walk *w, int m, bool lane, weft_text *out) {
    const weft_map *map = &w->view->map[m];
    char name[32];
    for (int d = 0; d < map->rank; d++) {
        if (!takes_part(w, m, d) || (m == 0 && lane && d == w->r->lane)) continue;
        for (int high = 0; high < 2; high++) {
            if (high ? map->hi[d] >= map->extent[d] : map->lo[d] <= 0) continue;
            const bool vector = w->vector && (m > 0 || d == w->r->lane);
            weft__put(out, "%s", out->length ? w->vector ? " & " : " && " : "");
            weft__put(out,
                      vector      ? "w_bool(%s %s %s)"
                      : w->vector ? "(int16)(%s %s %s)"
                                  : "%s %s %s",
                      index_of(w, m, d, name), high ? "<" : ">=", guard_name(w, m, d, high));
        }
    }
}

static const char *index_type(const walk *w) {
    return weft__type_name(w->r->wide ? WEFT_RENDER_I64 : WEFT_RENDER_I32, w->vector);
}

/* Writes the lines that split the number of map m - 1 over the extents of map m. */
static void put_digits(walk *w, int m, const char *number) {
    const weft_map *map = &w->view->map[m];
    const char letter = (char)('a' + m - 1);
    int left = 0;
    for (int d = 0; d < map->rank; d++) left += map->extent[d] != 1;
    weft__put_line(w->r, "%s e%d_%c = %s;", index_type(w), w->v, letter, number);
    for (int d = map->rank - 1; d >= 0; d--) {
        if (map->extent[d] == 1) continue;
        const char *extent = weft__render_size(w->r, map->extent[d], "n%d_%c%d", w->number, letter, d);
        if (--left == 0) {
            weft__put_line(w->r, "const %s e%d_%c%d = e%d_%c;", index_type(w), w->v, letter, d, w->v, letter);
            continue;
        }
        weft__put_line(w->r, "const %s e%d_%c%d = e%d_%c %% %s;", index_type(w), w->v, letter, d, w->v,
                       letter, extent);
        weft__put_line(w->r, "e%d_%c /= %s;", w->v, letter, extent);
    }
}

/* Follows the list of maps. Leaves the element of the last map and all guards in *out. */
static void render_place_follow(walk *w, bool lane, weft_place *out) {
    weft_text guard = weft__text(out->guard, sizeof out->guard);
    for (int m = 0; m < w->view->count; m++) {
        weft_text element = weft__text(out->element, sizeof out->element);
        if (m > 0) {
            char number[WEFT_RENDER_TERM];
            weft_text text = weft__text(number, sizeof number);
            put_element(w, m - 1, &text);
            put_digits(w, m, number);
        }
        put_guards(w, m, lane, &guard);
        put_element(w, m, &element);
    }
}

/* Writes the range from..to-1 of lanes that pass the guards of the lane dimension and of others. */
static void put_lanes(const walk *w, weft_place *out) {
    const weft_map *map = &w->view->map[0];
    const int d = w->r->lane;
    char name[8];
    const char *x = weft__render_index(w->r, d, name), *narrow = w->r->wide ? "(int)" : "";
    weft_text to = weft__text(out->to, sizeof out->to);
    snprintf(out->from, sizeof out->from, "0");
    if (map->lo[d] > 0)
        snprintf(out->from, sizeof out->from, "%s(%s - %s)", narrow, guard_name(w, 0, d, false), x);
    if (out->guard[0]) weft__put(&to, "(%s ? ", out->guard);
    if (map->hi[d] < map->extent[d])
        weft__put(&to, "min(m, %s(%s - %s))", narrow, guard_name(w, 0, d, true), x);
    else
        weft__put(&to, "m");
    if (out->guard[0]) weft__put(&to, " : 0)");
    out->step = map->stride[d] != 1 ? stride_name(w, 0, d) : "";
    out->kind = map->stride[d] == 1 ? WEFT_PLACE_LINE : WEFT_PLACE_STEP;
}

void weft__put_place(weft_render *r, int v, bool each, weft_place *out) {
    const weft_instr *in = &r->kernel->code[v];
    walk w = {.r = r, .view = &r->kernel->views[in->view], .v = v, .number = in->view, .level = in->level};
    const weft_map *map = &w.view->map[0];
    const bool stored = in->kind == WEFT_INSTR_STORE || in->kind == WEFT_INSTR_GATHER;
    bool moves = r->lane >= 0 && in_level(&w, r->lane) && weft__moves_along(map, r->lane);
    if (stored && r->varies[v]) moves = true;
    *out = (weft_place){.kind = WEFT_PLACE_ONE, .step = ""};
    if (!r->target->vectors || !moves) {
        render_place_follow(&w, false, out);
        return;
    }
    if (!each && w.view->count == 1) {
        render_place_follow(&w, true, out);
        put_lanes(&w, out);
        return;
    }
    w.vector = true;
    render_place_follow(&w, false, out);
    out->kind = WEFT_PLACE_EACH;
}
