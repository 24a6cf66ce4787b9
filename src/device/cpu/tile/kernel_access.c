/* How tiles read and write through views. The box of a tile is divided into runs. The elements of a run are
 * numbered in arithmetic progression. The primitives load, gather, count or store one run. Elements that a
 * guard excludes become runs of zeros. If a view is a list of maps, each run is followed through all of them.
 * Must not know: what the values are for. Read next: kernel_run.c. */
#include <string.h>

#include "device/cpu/tile/kernel_plan.h"

/* ---- making ---- */

/* Adds the dimensions of a nest to the box of a tile, outermost first. */
static void add_locals(const weft_geometry *g, const weft_nest *n, uint8_t bit, weft_access *x) {
    for (int d = n->split; d < n->first + n->count; d++) {
        bool varies = d == n->split && (n->chunks > 1 || (bit == 1 && g->plan->last_rows));
        if (varies && n->chunk == 1) continue; /* a tile has one index of it */
        int64_t unit = varies ? 1 : g->plan->extent[d];
        x->local[x->n_local++] = (weft_local){unit, x->stride[d], d, varies ? bit : 0};
    }
}

static void add_terms(const weft_nest *n, weft_access *x) {
    for (int d = n->first; d < n->first + n->count && d <= n->split; d++) {
        if (d == n->split && n->chunks <= 1) break;
        if (x->stride[d] == 0) continue;
        x->terms[x->n_terms].dim = d;
        x->terms[x->n_terms++].stride = x->stride[d];
    }
}

/* Merges neighbouring dimensions if one step of the outer one is as long as all steps of the inner one. If
 * the inner extent is smaller in the last tile, they are merged only if neither moves. */
static void merge_locals(weft_access *x) {
    int n = 0;
    for (int i = 0; i < x->n_local; i++) {
        weft_local *last = n ? &x->local[n - 1] : NULL;
        const weft_local *in = &x->local[i];
        bool still = last && last->stride == 0 && in->stride == 0;
        if (still || (last && in->by == 0 && last->stride == in->stride * in->unit)) {
            *last = (weft_local){last->unit * in->unit, in->stride, in->dim, last->by | in->by};
            continue;
        }
        x->local[n++] = *in;
    }
    x->n_local = n;
}

static void set_dims(const weft_geometry *g, const weft_map *m, weft_access *x) {
    const weft_kernel_plan *plan = g->plan;
    const int n = plan->parallel.count + plan->reduction.count;
    for (int d = 0; d < n; d++) {
        const weft_group *q = &g->group[d];
        x->stride[d] = m->stride[q->inner] * q->step;
        x->hi[d] = plan->extent[d];
        if (q->part) continue;
        x->lo[d] = m->lo[q->outer] * q->scale;
        x->hi[d] = m->hi[q->outer] * q->scale;
        if (x->lo[d] > 0 || x->hi[d] < plan->extent[d]) x->guarded = 1;
    }
    for (int d = 0; d < m->rank; d++)
        if (g->kernel->extent[d] == 1 && (m->lo[d] > 0 || m->hi[d] < 1)) x->empty = 1;
}

void weft__access_make(const weft_geometry *g, const weft_view *view, int level, weft_access *x) {
    const weft_kernel_plan *plan = g->plan;
    const bool full = weft__level_inner(level) && g->kernel->n_reduce > 0;
    memset(x, 0, sizeof *x);
    x->view = view;
    x->offset = view->map[0].offset;
    set_dims(g, &view->map[0], x);
    add_terms(&plan->parallel, x);
    if (full) add_terms(&plan->reduction, x);
    if (full && plan->columns) add_locals(g, &plan->reduction, 2, x);
    if (!weft__level_folded(level)) add_locals(g, &plan->parallel, 1, x);
    if (full && !plan->columns) add_locals(g, &plan->reduction, 2, x);
    bool still = true, guarded = false; /* both within the box */
    for (int i = 0; i < x->n_local; i++) {
        int d = x->local[i].dim;
        still = still && x->local[i].stride == 0;
        guarded = guarded || x->lo[d] > 0 || x->hi[d] < plan->extent[d];
    }
    x->kind = still && !guarded ? WEFT_ACCESS_SCALAR : WEFT_ACCESS_GENERAL;
    if (x->guarded) return;
    merge_locals(x);
    if (x->n_local == 1 && x->local[0].stride == 1 && view->count == 1 && !x->empty)
        x->kind = WEFT_ACCESS_DIRECT;
}

/* ---- running ---- */

typedef struct walk {
    const weft_frame *frame;
    const weft_step *step;
    const weft_access *access;
    char *out;     /* READ: the tile */
    const char *a; /* WRITE: the tile; GATHER: the indices */
    char *buffer;
    size_t size, ct_size; /* bytes of an element: in the buffer, in the tile */
} walk;

/* Returns which element of the index tensor gave index `at` of the tile. */
static int64_t index_element(const walk *w, int64_t at) {
    const weft_kernel_plan *plan = w->frame->plan;
    if (w->step->gather.access < 0) return at;
    const weft_access *x = &plan->accesses[w->step->gather.access];
    const weft_nest *nests[2] = {plan->columns ? &plan->parallel : &plan->reduction,
                                 /* the faster one first */
                                 plan->columns ? &plan->reduction : &plan->parallel};
    int64_t index[WEFT_DIMS], element = x->offset;
    memcpy(index, w->frame->start, sizeof index);
    for (int k = 0; k < 2; k++) {
        const weft_nest *n = nests[k];
        if (n == &plan->reduction && w->step->count != WEFT_COUNT_FULL) continue;
        for (int d = n->first + n->count - 1; d >= n->split && n->count; d--) {
            bool cut = d == n->split && n->chunks > 1;
            int64_t extent = cut ? w->frame->chunk[n == &plan->parallel ? 1 : 2] : plan->extent[d];
            if (extent > 0) index[d] += at % extent, at /= extent;
        }
    }
    for (int d = 0; d < plan->parallel.count + plan->reduction.count; d++) element += index[d] * x->stride[d];
    return element;
}

static void report_index(const walk *w, int64_t at) {
    const int64_t value = w->step->gather.ct == WEFT_CT_I64 ? ((const int64_t *)(const void *)w->a)[at]
                                                            : ((const int32_t *)(const void *)w->a)[at];
    weft__cpu_fault(w->frame->fault, WEFT_FAULT_GATHER, w->frame->plan->path, value, w->step->gather.bound,
                    index_element(w, at));
}

/* Handles n elements of the tile from `at` on. They are elements offset, offset + stride, ... of the
 * buffer. */
static void run_of(const walk *w, int64_t at, int64_t n, int64_t offset, int64_t stride) {
    const weft_step *s = w->step;
    const weft_tiles *tiles = w->frame->plan->tiles;
    if (s->kind == WEFT_STEP_WRITE) {
        tiles->store[s->dtype](n, w->buffer + offset * (int64_t)w->size, stride,
                               w->a + at * (int64_t)w->ct_size);
        return;
    }
    char *out = w->out + at * (int64_t)w->ct_size;
    switch (s->source) {
    case WEFT_INSTR_LOAD: tiles->load[s->dtype](n, out, w->buffer + offset * (int64_t)w->size, stride); break;
    case WEFT_INSTR_INDEX: tiles->count[s->ct == WEFT_CT_I64](n, out, offset, stride); break;
    case WEFT_INSTR_MASK: tiles->count[0](n, out, 1, 0); break;
    case WEFT_INSTR_RANDOM:
        tiles->random(n, (int32_t *)(void *)out, offset, stride, (const int32_t *)(const void *)w->buffer);
        break;
    case WEFT_INSTR_GATHER: {
        size_t wide = weft__ct_size((weft_ct)s->gather.ct);
        int64_t bad =
            tiles->gather[s->dtype][wide == 8](n, out, w->buffer + offset * (int64_t)w->size, stride,
                                               w->a + at * (int64_t)wide, s->gather.pitch, s->gather.bound);
        if (bad >= 0) report_index(w, at + bad);
        break;
    }
    default: break;
    }
}

/* Sets n elements of the tile to 0, since a guard excludes them. For a WRITE it does nothing. */
static void gap_of(const walk *w, int64_t at, int64_t n) {
    if (w->step->kind != WEFT_STEP_WRITE && n > 0)
        memset(w->out + at * (int64_t)w->ct_size, 0, (size_t)n * w->ct_size);
}

/* Where a linear index is in a map: the element of the map's buffer, without the innermost index. */
typedef struct place {
    int64_t offset, inner; /* inner: the innermost index */
    bool inside;           /* the guards of the other dimensions let it pass */
} place;

static place place_of(const weft_map *map, int64_t linear) {
    place p = {.offset = map->offset, .inside = true};
    for (int d = map->rank - 1; d >= 0; d--) {
        int64_t i = map->extent[d] > 1 ? linear % map->extent[d] : 0;
        if (map->extent[d] > 1) linear /= map->extent[d];
        if (d == map->rank - 1) {
            p.inner = i;
            continue;
        }
        p.inside = p.inside && i >= map->lo[d] && i < map->hi[d];
        p.offset += i * map->stride[d];
    }
    return p;
}

static int64_t clamp(int64_t i, int64_t n) { return i < 0 ? 0 : i > n ? n : i; }

/* Returns the smallest k >= 0 with start + k * stride >= bound. stride > 0. */
static int64_t steps_to(int64_t start, int64_t stride, int64_t bound) {
    return bound <= start ? 0 : (bound - start + stride - 1) / stride;
}

/* Of n indices start, start + stride, ..., those with numbers *from .. *to - 1 are in lo..hi-1. */
static void passing(int64_t n, int64_t start, int64_t stride, int64_t lo, int64_t hi, int64_t *from,
                    int64_t *to) {
    if (stride == 0)
        *from = 0, *to = start >= lo && start < hi ? n : 0;
    else if (stride > 0)
        *from = steps_to(start, stride, lo), *to = steps_to(start, stride, hi);
    else
        *from = steps_to(-start, -stride, 1 - hi), *to = steps_to(-start, -stride, 1 - lo);
    *from = clamp(*from, n);
    *to = clamp(*to, n);
    if (*to < *from) *to = *from;
}

/* Follows the linear indices linear, linear + stride, ... through map `m` and the maps after it. */
static void kernel_access_follow(const walk *w, int m, int64_t at, int64_t n, int64_t linear,
                                 int64_t stride) {
    const weft_view *v = w->access->view;
    if (m == v->count) {
        run_of(w, at, n, linear, stride);
        return;
    }
    const weft_map *map = &v->map[m];
    const int last = map->rank - 1;
    while (n > 0) {
        place p = place_of(map, linear);
        int64_t take = n, from = 0, to, step = 0; /* up to the end of the innermost dimension */
        if (last >= 0 && stride > 0) take = steps_to(p.inner, stride, map->extent[last]);
        if (last >= 0 && stride < 0) take = steps_to(-p.inner, -stride, 1);
        if (take > n) take = n;
        to = take;
        if (last >= 0) {
            passing(take, p.inner, stride, map->lo[last], map->hi[last], &from, &to);
            step = map->stride[last];
        }
        if (!p.inside) to = from;
        gap_of(w, at, from);
        if (to > from)
            kernel_access_follow(w, m + 1, at + from, to - from, p.offset + (p.inner + from * stride) * step,
                                 stride * step);
        gap_of(w, at + to, take - to);
        at += take, n -= take, linear += take * stride;
    }
}

static bool outside(const walk *w) { /* whether a guard of a dimension outside the box excludes the tile */
    const weft_access *x = w->access;
    const weft_kernel_plan *plan = w->frame->plan;
    if (x->empty) return true;
    if (!x->guarded) return false;
    for (int d = 0; d < plan->parallel.count + plan->reduction.count; d++) {
        const weft_nest *n = d < plan->reduction.first ? &plan->parallel : &plan->reduction;
        if (d > n->split || (d == n->split && (n->chunks <= 1 || n->chunk > 1))) continue;
        if (w->frame->start[d] < x->lo[d] || w->frame->start[d] >= x->hi[d]) return true;
    }
    return false;
}

/* Handles the box of a single map without guards, from dimension `level` on. Returns its number of
 * elements. */
static int64_t plain_box(const walk *w, int level, int64_t at, int64_t offset) {
    const weft_step *s = w->step;
    const weft_tiles *tiles = w->frame->plan->tiles;
    const int64_t *chunk = w->frame->chunk;
    const int left = w->access->n_local - level;
    const bool loads = s->kind == WEFT_STEP_READ && s->source == WEFT_INSTR_LOAD;
    const weft_local *l = &w->access->local[level];
    const int64_t n = l->unit * chunk[l->by];
    if (left == 1) {
        run_of(w, at, n, offset, l->stride);
        return n;
    }
    if (left > 3 || !(loads || s->kind == WEFT_STEP_WRITE)) {
        int64_t here = at;
        for (int64_t i = 0; i < n; i++) here += plain_box(w, level + 1, here, offset + i * l->stride);
        return here - at;
    }
    weft_tile_box box = {.n = {1, 1, 1}};
    for (int i = 0; i < left; i++) {
        box.n[3 - left + i] = l[i].unit * chunk[l[i].by];
        box.stride[3 - left + i] = l[i].stride;
    }
    char *from = w->buffer + offset * (int64_t)w->size;
    if (loads)
        tiles->load_box[s->dtype](&box, w->out + at * (int64_t)w->ct_size, from);
    else
        tiles->store_box[s->dtype](&box, from, w->a + at * (int64_t)w->ct_size);
    return box.n[0] * box.n[1] * box.n[2];
}

/* Handles a box by nested loops. The last dimension is a run, and guards cut off its ends. */
static int64_t box(const walk *w, int level, int64_t at, int64_t offset) {
    const weft_access *x = w->access;
    const weft_frame *f = w->frame;
    const weft_local *l = &x->local[level];
    int64_t n = l->unit * f->chunk[l->by], lo = 0, hi = n;
    if (x->guarded) {
        lo = clamp(x->lo[l->dim] - f->start[l->dim], n);
        hi = clamp(x->hi[l->dim] - f->start[l->dim], n);
        if (hi < lo) hi = lo;
    }
    if (level == x->n_local - 1) {
        gap_of(w, at, lo);
        if (hi > lo) kernel_access_follow(w, 1, at + lo, hi - lo, offset + lo * l->stride, l->stride);
        gap_of(w, at + hi, n - hi);
        return n;
    }
    int64_t size = 1, here = at;
    for (int i = level + 1; i < x->n_local; i++) size *= x->local[i].unit * f->chunk[x->local[i].by];
    for (int64_t i = 0; i < n; i++, here += size) {
        if (i < lo || i >= hi)
            gap_of(w, here, size);
        else
            box(w, level + 1, here, offset + i * l->stride);
    }
    return here - at;
}

void weft__access_run(const weft_frame *f, const weft_step *s) {
    const weft_access *x = &f->plan->accesses[s->access];
    walk w = {.frame = f, .step = s, .access = x, .ct_size = weft__ct_size((weft_ct)s->ct)};
    if (s->arg >= 0) {
        w.buffer = f->args[s->arg];
        w.size = weft_dtype_size((weft_dtype)s->dtype);
    }
    if (s->kind == WEFT_STEP_WRITE)
        w.a = weft__ref(f, s->a);
    else {
        w.out = weft__ref(f, s->out);
        if (s->source == WEFT_INSTR_GATHER) w.a = weft__ref(f, s->a);
    }
    const bool one = x->n_local == 0 || s->count == WEFT_COUNT_ONE;
    if (!x->guarded && !x->empty && !one && x->view->count == 1)
        plain_box(&w, 0, 0, weft__access_offset(f, x));
    else if (outside(&w))
        gap_of(&w, 0, f->count[s->count]);
    else if (one) /* a broadcast has room for one element only */
        kernel_access_follow(&w, 1, 0, 1, weft__access_offset(f, x), 0);
    else
        box(&w, 0, 0, weft__access_offset(f, x));
}
