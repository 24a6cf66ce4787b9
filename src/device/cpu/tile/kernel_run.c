/* Runs a tile program over its tasks. It does little work for each step, so that a kernel over a few elements
 * costs tens of nanoseconds.
 * Must not know: how programs are made. Read next: kernel_access.c, ../run.c. */
#include <string.h>

#include "device/cpu/tile/kernel_plan.h"

/* ---- accumulators ----
 *
 * Partial results climb a binary counter. So the depth of a sum is only logarithmic, and the order of
 * additions depends on the shape alone. This is pairwise summation; Higham, "Accuracy and Stability", section
 * 4.2. */

typedef struct accumulator {
    int64_t parts;  /* number of parts added up in `current` */
    int64_t groups; /* number of finished groups; level k holds the sum of 2^k of them if bit k is set */
    char pad[48];
    char data[]; /* current, a spare, then the levels: one vector each */
} accumulator;

static int levels_of(int64_t parts, int64_t group) {
    int levels = 1;
    for (int64_t n = group > parts ? 0 : parts / group; n; n >>= 1) levels++;
    return levels;
}

size_t weft__accumulator_bytes(int64_t bytes, int64_t parts, int64_t group) {
    return sizeof(accumulator) + (size_t)bytes * (size_t)(2 + levels_of(parts, group));
}

static void climb(accumulator *acc, const weft_step *s, int64_t n) {
    char *level = acc->data + 2 * s->bytes;
    for (int64_t rest = acc->groups; rest & 1; rest >>= 1, level += s->bytes) s->join(n, acc->data, level);
    memcpy(level, acc->data, (size_t)s->bytes);
    acc->groups++;
    acc->parts = 0;
}

static void add_part(accumulator *acc, const weft_step *s, int64_t n, const char *part) {
    if (acc->parts == 0)
        memcpy(acc->data, part, (size_t)n * weft__ct_size((weft_ct)s->ct));
    else
        s->join(n, acc->data, part);
    if (++acc->parts == s->group) climb(acc, s, n);
}

/* Reduces the FULL elements of one chunk, then adds the result to the accumulator. */
static void add_chunk(const weft_frame *f, const weft_step *s) {
    accumulator *acc = (accumulator *)(void *)weft__ref(f, s->out);
    const char *a = weft__ref(f, s->a);
    const int64_t n = f->count[WEFT_COUNT_ROW];
    if (f->count[WEFT_COUNT_FULL] == 0) return;
    if (!f->plan->columns) {
        s->reduce(1, f->count[WEFT_COUNT_FULL], acc->data + s->bytes, a);
        add_part(acc, s, 1, acc->data + s->bytes);
        return;
    }
    const int64_t rows = f->count[WEFT_COUNT_FULL] / n;
    if (rows > 1) {
        s->fn.products(rows, n, acc->data + s->bytes, a, NULL);
        a = acc->data + s->bytes;
    }
    add_part(acc, s, n, a);
}

/* Adds all rows of a tile to the accumulator. */
static void add_rows(const weft_frame *f, const weft_step *s) {
    accumulator *acc = (accumulator *)(void *)weft__ref(f, s->out);
    const int64_t n = f->count[s->count], rows = f->count[WEFT_COUNT_ROW];
    const char *part = weft__ref(f, s->a);
    if (n == 0) return;
    if (f->plan->parallel.max > 1) { /* otherwise the tile is one row, which is added as it is */
        char *spare = acc->data + s->bytes;
        if (s->count == WEFT_COUNT_ONE)
            s->reduce(1, rows, spare, part);
        else
            s->fn.products(rows, n, spare, part, weft__ref(f, s->b));
        part = spare;
    }
    add_part(acc, s, n, part);
}

static void kernel_run_finish(const weft_frame *f, const weft_step *s) {
    accumulator *acc = (accumulator *)(void *)weft__ref(f, s->a);
    const int64_t n = f->count[s->count];
    char *level = acc->data + 2 * s->bytes;
    if (acc->parts == 0 && acc->groups == 0) {
        s->fn.calc(n, weft__ref(f, s->out), weft__ref(f, s->b), NULL, NULL);
        return;
    }
    bool any = acc->parts > 0;
    for (int64_t rest = acc->groups; rest; rest >>= 1, level += s->bytes) {
        if (!(rest & 1)) continue;
        if (any)
            s->join(n, acc->data, level);
        else
            memcpy(acc->data, level, (size_t)s->bytes);
        any = true;
    }
    memcpy(weft__ref(f, s->out), acc->data, (size_t)n * weft__ct_size((weft_ct)s->ct));
}

/* ---- steps ---- */

static void check_divisor(const weft_frame *f, const weft_step *s) {
    int64_t at = f->plan->tiles->find_zero[s->ct != WEFT_CT_I32](f->count[s->count], weft__ref(f, s->a));
    if (at >= 0) weft__cpu_fault(f->fault, WEFT_FAULT_DIVIDE, f->plan->path, 0, 0, at);
}

static void point(const weft_frame *f, const weft_step *s) {
    const weft_access *x = &f->plan->accesses[s->access];
    f->base[s->slot] = (char *)f->args[s->arg] + weft__access_offset(f, x) * s->bytes;
}

static void keep(const weft_frame *f, const weft_step *s) {
    f->base[s->slot] = weft__ref(f, s->out) + f->ordinal * s->bytes;
}

/* Runs the kinds of step that are more than one call. */
static void rare_step(const weft_frame *f, const weft_step *s) {
    switch (s->kind) {
    case WEFT_STEP_READ:
    case WEFT_STEP_WRITE: weft__access_run(f, s); break;
    case WEFT_STEP_KEEP: keep(f, s); break;
    case WEFT_STEP_INIT: memset(weft__ref(f, s->out), 0, sizeof(accumulator)); break;
    case WEFT_STEP_ADD: add_chunk(f, s); break;
    case WEFT_STEP_DONE: kernel_run_finish(f, s); break;
    case WEFT_STEP_FOLD: add_rows(f, s); break;
    case WEFT_STEP_CHECK: check_divisor(f, s); break;
    default: break;
    }
}

/* ---- fetching ahead ---- */

static void look_ahead(weft_frame *f) {
    const weft_kernel_plan *plan = f->plan;
    for (int i = 0; i < plan->ahead.count; i++) {
        const weft_ahead *a = &plan->ahead.list[i];
        f->ahead.from[i] = (const char *)f->args[a->arg] +
                           weft__access_offset(f, &plan->accesses[a->access]) * a->size + a->bytes;
    }
    f->ahead.at = 0;
}

/* Fetches lines for writing. A plain prefetch of a line that another core has read would share the line, and
 * the store would request it again. In code for all x86-64 processors, gcc has no builtin for this
 * instruction. Processors without it ignore it. */
static inline void fetch_to_write(const char *from, int64_t lines) {
    for (int64_t i = 0; i < lines; i++) {
#if defined(__x86_64__)
        __asm__ volatile("prefetchw %0" : : "m"(from[64 * i]));
#else
        __builtin_prefetch(from + 64 * i, 1, 2);
#endif
    }
}

/* Fetches a few lines of every stream in turn. The hardware prefetcher continues within each page that it
 * sees read, so it then works in all these pages at once. */
static void fetch_lines(weft_frame *f) {
    const weft_kernel_plan *plan = f->plan;
    const int64_t first = f->ahead.at, last = first + plan->ahead.lines;
    for (int i = 0; i < plan->ahead.count; i++) {
        const weft_ahead *a = &plan->ahead.list[i];
        const char *from = f->ahead.from[i] + 64 * first;
        const int64_t n = (last < a->lines ? last : a->lines) - first;
        if (a->written)
            fetch_to_write(from, n);
        else
            for (int64_t k = 0; k < n; k++) __builtin_prefetch(from + 64 * k, 0, 2);
    }
    f->ahead.at = last;
}

static void run_slices(weft_frame *f, const weft_step *s) {
    const int64_t n = f->count[s->count];
    float *out = (float *)(void *)weft__ref(f, s->out);
    const float *a = (const float *)(const void *)weft__ref(f, s->a);
    const float *b = (const float *)(const void *)weft__ref(f, s->b);
    const float *c = (const float *)(const void *)weft__ref(f, s->c);
    const int64_t step_a = s->fixed & 1 ? 0 : 1, step_b = s->fixed & 2 ? 0 : 1, step_c = s->fixed & 4 ? 0 : 1;
    for (int64_t i = 0; i < n; i += WEFT_AHEAD_SLICE) {
        if (i) fetch_lines(f);
        s->fn.calc(n - i < WEFT_AHEAD_SLICE ? n - i : WEFT_AHEAD_SLICE, out + i, a + i * step_a,
                   b + i * step_b, c + i * step_c);
    }
}

/* Runs a list of steps. A plain plan has one tile and nothing to fetch ahead. */
static inline __attribute__((always_inline)) void run_list(weft_frame *f, weft_range range,
                                                           const bool plain) {
    const weft_step *s = f->plan->steps + range.begin, *end = f->plan->steps + range.end;
    const int64_t rows = f->count[WEFT_COUNT_ROW];
    for (; s < end; s++) {
        if (!plain && s->once && !f->fresh) continue;
        if (!plain && f->ahead.at < f->plan->ahead.end && s->kind != WEFT_STEP_POINT) fetch_lines(f);
        switch (s->kind) {
        case WEFT_STEP_CALC:
            if (!plain && s->expensive && f->ahead.at < f->plan->ahead.end) {
                run_slices(f, s);
                break;
            }
            s->fn.calc(f->count[s->count], weft__ref(f, s->out), weft__ref(f, s->a), weft__ref(f, s->b),
                       weft__ref(f, s->c));
            break;
        case WEFT_STEP_POINT: point(f, s); break;
        case WEFT_STEP_ROWS:
            s->reduce(rows, f->count[WEFT_COUNT_FULL] / rows, weft__ref(f, s->out), weft__ref(f, s->a));
            break;
        case WEFT_STEP_DOT:
            s->fn.products(rows, f->count[WEFT_COUNT_FULL] / rows, weft__ref(f, s->out), weft__ref(f, s->a),
                           weft__ref(f, s->b));
            break;
        case WEFT_STEP_SPREAD:
            s->fn.spread(f->count[WEFT_COUNT_FULL] / rows, rows, weft__ref(f, s->out), weft__ref(f, s->a));
            break;
        default: rare_step(f, s);
        }
    }
}

static void run_steps(weft_frame *f, weft_range range) {
    if (f->plan->plain)
        run_list(f, range, true);
    else
        run_list(f, range, false);
}

/* ---- tiles and chunks ---- */

static int64_t chunk_length(const weft_frame *f, const weft_nest *n) {
    if (n->count == 0) return 1;
    int64_t left = f->plan->extent[n->split] - f->start[n->split];
    return left < n->chunk ? left : n->chunk;
}

static void seek(weft_frame *f, const weft_nest *n, int64_t tile) {
    if (n->chunks <= 1 && n->split == n->first) return; /* there is one tile: all starts stay 0 */
    f->start[n->split] = tile % n->chunks * n->chunk;
    tile /= n->chunks;
    for (int d = n->split - 1; d >= n->first; d--) {
        f->start[d] = tile % f->plan->extent[d];
        tile /= f->plan->extent[d];
    }
}

static void next(weft_frame *f, const weft_nest *n) {
    f->start[n->split] += n->chunk;
    for (int d = n->split; d >= n->first && f->start[d] >= f->plan->extent[d]; d--) {
        f->start[d] = 0;
        if (d > n->first) f->start[d - 1]++;
    }
}

static void run_phase(weft_frame *f, const weft_phase *phase) {
    const weft_nest *r = &f->plan->reduction;
    const int64_t rows = f->count[WEFT_COUNT_ROW], parallel = f->chunk[1];
    if (r->tiles > 1) f->count[WEFT_COUNT_FULL] = rows * r->max;
    run_steps(f, phase->before);
    if (phase->chunk.begin == phase->chunk.end) return;
    for (f->ordinal = 0; f->ordinal < r->tiles; f->ordinal++) {
        f->chunk[2] = chunk_length(f, r);
        f->chunk[3] = parallel * f->chunk[2];
        f->count[WEFT_COUNT_LINE] = f->chunk[2] * r->inner;
        f->count[WEFT_COUNT_FULL] = rows * f->count[WEFT_COUNT_LINE];
        if (f->plan->columns && f->plan->ahead.count) look_ahead(f);
        run_steps(f, phase->chunk);
        next(f, r);
    }
}

/* Returns the number of parallel indices of a tile. It is 0 after the last row. */
static int64_t tile_length(const weft_frame *f, int64_t tile) {
    const weft_kernel_plan *plan = f->plan;
    const int64_t length = chunk_length(f, &plan->parallel);
    if (!plan->last_rows || tile < plan->parallel.tiles - plan->tiles_a_block) return length;
    const int64_t left = plan->last_rows - f->start[plan->parallel.split];
    return left < 0 ? 0 : left < length ? left : length;
}

void weft__plan_run(const void *p, void *const *args, int64_t begin, int64_t end, void *scratch,
                    weft_fault *fault) {
    const weft_kernel_plan *plan = p;
    const weft_nest *r = &plan->reduction;
    weft_frame f; /* not cleared as a whole: clearing 300 bytes takes as long as a small kernel */
    f.plan = plan;
    f.args = args;
    f.base = scratch;
    f.fault = fault;
    f.ordinal = 0;
    f.ahead.at = plan->ahead.end; /* nothing to fetch yet */
    memset(f.start, 0, sizeof f.start);
    f.base[WEFT_BASE_SCRATCH] = scratch;
    f.base[WEFT_BASE_CONST] = plan->consts;
    f.count[WEFT_COUNT_ONE] = 1;
    f.chunk[0] = 1;
    f.chunk[2] = r->chunk;
    f.count[WEFT_COUNT_LINE] = r->total;
    const int64_t first = begin * plan->tiles_a_block, last = end * plan->tiles_a_block;
    int64_t most = -1, in_block = 0;
    seek(&f, &plan->parallel, first);
    for (int64_t tile = first; tile < last; tile++) {
        f.chunk[1] = tile_length(&f, tile);
        f.chunk[3] = f.chunk[1] * f.chunk[2];
        f.count[WEFT_COUNT_ROW] = f.chunk[1] * plan->parallel.inner;
        f.count[WEFT_COUNT_FULL] = f.count[WEFT_COUNT_ROW] * (r->tiles > 1 ? r->max : r->total);
        f.fresh = f.count[WEFT_COUNT_ROW] > most;
        if (f.fresh) most = f.count[WEFT_COUNT_ROW];
        if (plan->ahead.count && !plan->columns) look_ahead(&f);
        if (plan->folds && in_block == 0) run_phase(&f, &plan->open);
        for (int i = 0; i < plan->n_phases && f.chunk[1] > 0; i++) run_phase(&f, &plan->phases[i]);
        if (plan->folds && ++in_block == plan->tiles_a_block) run_phase(&f, &plan->close), in_block = 0;
        if (tile + 1 < last) next(&f, &plan->parallel);
    }
}
