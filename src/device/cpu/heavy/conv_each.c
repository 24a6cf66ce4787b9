/* Convolutions of groups of one channel (depthwise convolutions) on the CPU. Nothing is summed over channels,
 * so memory bandwidth decides the speed. Images are read in place, without a padded copy. Pixels of a row
 * that meet the same taps are one call of a kernel. Pixels near an edge need calls of their own. A task is a
 * band of rows, and the partition changes no bit.
 * Must not know: threads. Read next: conv_float.inc, conv_weight.c. */
#include <string.h>

#include "device/cpu/heavy/conv.h"

#define BAND_BYTES 65536 /* of the rows of a task */

/* The taps that pixels origin, origin + stride, ... of one dimension meet. */
typedef struct side {
    int64_t count;             /* number of these pixels */
    int64_t taps, first, step; /* number of taps; number of the first tap; step from tap to tap */
    int64_t at, apart;         /* position of the first tap for the first pixel; distance from tap to tap */
} side;

/* Pixels of a row that meet the same `taps` taps of a side, from `tap` on. */
typedef struct stretch {
    int64_t first, pixels, tap, taps;
} stretch;

struct weft_conv_rows {
    int64_t from[2], to[2], step[2], stride[2]; /* sizes of the tensors read and written; steps between
                                                   windows and between pixels of a side */
    int64_t channels, whole, taps; /* channels rounded up to whole vectors; taps in a row of the kernel */
    side *rows, *columns;
    stretch *stretches;
    int64_t *first_stretch; /* for each side of the columns; the last entry is the number of stretches */
};

static side side_of(const weft_heavy_conv *c, bool turned, int d, int64_t origin) {
    const int64_t stride = c->stride[d], dilation = c->dilation[d];
    if (!turned) return (side){c->y[d], c->size[d], 0, 1, -c->padding[d], dilation};
    side s = {.count = weft__ceil_div(c->x[d] - origin, stride), .apart = 1};
    for (int64_t k = c->size[d] - 1; k >= 0; k--) {
        const int64_t whole = origin + c->padding[d] - k * dilation;
        if (whole % stride != 0) continue;
        if (s.taps == 0) s.first = k, s.at = whole / stride;
        if (s.taps == 1) s.step = k - s.first, s.apart = whole / stride - s.at;
        s.taps++;
    }
    return s;
}

/* Returns how many taps of a side pixel q meets within `extent`. *first is the first of them. */
static int64_t meets(const side *s, int64_t q, int64_t step, int64_t extent, int64_t *first) {
    const int64_t at = q * step + s->at;
    int64_t begin = at < 0 ? weft__ceil_div(-at, s->apart) : 0;
    int64_t end = at < extent ? weft__smaller(s->taps, (extent - 1 - at) / s->apart + 1) : 0;
    if (begin >= end) begin = end = 0;
    *first = begin;
    return end - begin;
}

static void list_stretches(weft_conv_rows *r, int64_t sides) {
    int64_t n = 0;
    for (int64_t i = 0; i < sides; i++) {
        const side *s = &r->columns[i];
        r->first_stretch[i] = n;
        for (int64_t q = 0; q < s->count; q++) {
            int64_t tap;
            const int64_t taps = meets(s, q, r->step[1], r->from[1], &tap);
            stretch *last = n > r->first_stretch[i] ? &r->stretches[n - 1] : NULL;
            if (last && last->tap == tap && last->taps == taps && last->pixels < CONV_DEPTH)
                last->pixels++;
            else
                r->stretches[n++] = (stretch){q, 1, tap, taps};
        }
    }
    r->first_stretch[sides] = n;
}

weft_conv_rows *weft__conv_rows_new(weft_context *ctx, const weft_heavy_conv *c, int64_t lanes) {
    weft_conv_rows *r = weft__zalloc(ctx, sizeof *r);
    if (!r) return NULL;
    const bool turned = c->pass == WEFT_CONV_INPUT;
    int64_t sides[2];
    for (int d = 0; d < 2; d++) {
        r->from[d] = turned ? c->y[d] : c->x[d];
        r->to[d] = turned ? c->x[d] : c->y[d];
        r->step[d] = turned ? 1 : c->stride[d];
        r->stride[d] = turned ? c->stride[d] : 1;
        sides[d] = weft__smaller(r->stride[d], r->to[d]);
    }
    r->channels = c->groups;
    r->whole = weft__ceil_div(c->groups, lanes) * lanes;
    r->taps = c->size[1];
    r->rows = weft__array(ctx, (size_t)sides[0] + 1, sizeof *r->rows);
    r->columns = weft__array(ctx, (size_t)sides[1] + 1, sizeof *r->columns);
    r->stretches = weft__array(ctx, (size_t)r->to[1] + 1, sizeof *r->stretches);
    r->first_stretch = weft__array(ctx, (size_t)sides[1] + 1, sizeof *r->first_stretch);
    if (!r->rows || !r->columns || !r->stretches || !r->first_stretch) {
        weft__conv_rows_free(ctx, r);
        return NULL;
    }
    for (int64_t i = 0; i < sides[0]; i++) r->rows[i] = side_of(c, turned, 0, i);
    for (int64_t i = 0; i < sides[1]; i++) r->columns[i] = side_of(c, turned, 1, i);
    list_stretches(r, sides[1]);
    return r;
}

void weft__conv_rows_free(weft_context *ctx, weft_conv_rows *r) {
    if (!r) return;
    weft__free(ctx, r->rows);
    weft__free(ctx, r->columns);
    weft__free(ctx, r->stretches);
    weft__free(ctx, r->first_stretch);
    weft__free(ctx, r);
}

void weft__conv_rows_read(const weft_conv_rows *r, int64_t begin, int64_t end, int64_t *low, int64_t *high) {
    *low = r->from[0], *high = 0;
    for (int64_t o = begin; o < end; o++) {
        const side *s = &r->rows[o % r->stride[0]];
        int64_t tap;
        const int64_t taps = meets(s, o / r->stride[0], r->step[0], r->from[0], &tap);
        const int64_t first = o / r->stride[0] * r->step[0] + s->at + tap * s->apart;
        if (taps > 0 && first < *low) *low = first;
        if (taps > 0 && first + (taps - 1) * s->apart >= *high) *high = first + (taps - 1) * s->apart + 1;
    }
    if (*low > *high) *low = *high;
}

void weft__conv_rows_do(const weft_conv_rows *r, int64_t o, size_t size, const char *x, int64_t x_first,
                        char *w, char *y, void (*kernel)(const weft_conv_each *each)) {
    const side *down = &r->rows[o % r->stride[0]];
    const int64_t q = o / r->stride[0], sides = weft__smaller(r->stride[1], r->to[1]);
    int64_t tap;
    const int64_t taps = meets(down, q, r->step[0], r->from[0], &tap);
    const int64_t row = taps > 0 ? q * r->step[0] + down->at + tap * down->apart - x_first : 0;
    const int64_t next = (taps - 1) * down->apart + r->step[0]; /* distance in rows to the row read next */
    const int64_t x_ahead =
        taps > 0 && row + x_first + next < r->from[0] ? next * r->from[1] * r->channels : 0;
    for (int64_t i = 0; i < sides; i++) {
        const side *across = &r->columns[i];
        for (int64_t n = r->first_stretch[i]; n < r->first_stretch[i + 1]; n++) {
            const stretch *s = &r->stretches[n];
            const int64_t column =
                s->taps > 0 ? s->first * r->step[1] + across->at + s->tap * across->apart : 0;
            const int64_t weight =
                (down->first + tap * down->step) * r->taps + across->first + s->tap * across->step;
            kernel(&(weft_conv_each){.x = x + (size_t)((row * r->from[1] + column) * r->channels) * size,
                                     .w = w + (size_t)(weight * r->whole) * size,
                                     .y = y + (size_t)((s->first * r->stride[1] + i) * r->channels) * size,
                                     .rows = taps,
                                     .columns = s->taps,
                                     .x_row = down->apart * r->from[1] * r->channels,
                                     .x_column = across->apart * r->channels,
                                     .w_row = down->step * r->taps * r->whole,
                                     .w_column = across->step * r->whole,
                                     .step = r->step[1] * r->channels,
                                     .y_step = r->stride[1] * r->channels,
                                     .x_ahead = x_ahead,
                                     .y_ahead = o + 1 < r->to[0] ? r->to[1] * r->channels : 0,
                                     .pixels = s->pixels,
                                     .channels = r->channels});
        }
    }
}

/* ---- the result, and the gradient by the input ---- */

typedef struct each_plan {
    weft_heavy_conv c;
    const weft_gemm_own *own;
    const weft_conv_own *kernels;
    weft_conv_rows *rows;
    int64_t band, bands; /* rows of a task; tasks of an image */
    size_t size, wide, packed_bytes, raw_bytes, x_bytes;
} each_plan;

static void cpu_conv_each_plan_free(weft_context *ctx, void *plan) {
    each_plan *p = plan;
    weft__conv_rows_free(ctx, p->rows);
    weft__free(ctx, p);
}

static void do_band(const each_plan *p, void *const *args, int64_t task, char *packed, char *scratch) {
    const weft_conv_rows *r = p->rows;
    const int64_t image = task / p->bands, first = task % p->bands * p->band,
                  last = weft__smaller(first + p->band, r->to[0]);
    const int64_t from_row = r->from[1] * r->channels, to_row = r->to[1] * r->channels;
    const char *x = (const char *)args[0] + (size_t)(image * r->from[0] * from_row) * p->size;
    char *to = (char *)args[2] + (size_t)((image * r->to[0] + first) * to_row) * p->size, *y = to;
    int64_t low = 0, high;
    if (p->size != p->wide) {
        weft__conv_rows_read(r, first, last, &low, &high);
        x = weft__conv_wide((weft_dtype)p->c.dtype, p->own, x + (size_t)(low * from_row) * p->size,
                            (high - low) * from_row, scratch);
        y = scratch + p->x_bytes;
    }
    for (int64_t o = first; o < last; o++)
        weft__conv_rows_do(r, o, p->wide, x, low, packed, y + (size_t)((o - first) * to_row) * p->wide,
                           p->kernels->each);
    if (y == to) return;
    (p->c.dtype == WEFT_F16 ? p->own->convert.to_f16 : p->own->convert.to_bf16)(
        (last - first) * to_row, (const float *)(const void *)y, (uint16_t *)(void *)to);
}

static void cpu_conv_each_run(const void *plan, void *const *args, int64_t begin, int64_t end, void *scratch,
                              weft_fault *fault) {
    (void)fault;
    const each_plan *p = plan;
    const int64_t taps = p->c.size[0] * p->c.size[1], whole = p->rows->whole;
    char *packed = scratch, *raw = packed + p->packed_bytes, *rest = raw + p->raw_bytes;
    const char *w = weft__conv_wide((weft_dtype)p->c.dtype, p->own, args[1], p->c.groups * taps, raw);
    p->kernels->pack(packed, whole, w, taps, 1, p->c.groups, taps);
    for (int64_t task = begin; task < end; task++) do_band(p, args, task, packed, rest);
}

weft_status weft__cpu_conv_each_prepare(weft_context *ctx, const weft_heavy_conv *c, weft_cpu_work *work) {
    const int64_t taps = c->size[0] * c->size[1];
    each_plan *p = weft__zalloc(ctx, sizeof *p);
    if (!p) return weft__fail_oom(ctx, sizeof *p, "a convolution's plan");
    p->c = *c;
    p->own = weft__gemm_own();
    p->kernels = weft__conv_kernels(p->own, c->dtype);
    p->size = weft_dtype_size((weft_dtype)c->dtype);
    p->wide = weft__conv_wide_size(c->dtype);
    p->rows = weft__conv_rows_new(ctx, c, p->kernels->lanes);
    if (!p->rows) {
        cpu_conv_each_plan_free(ctx, p);
        return weft__fail_oom(ctx, sizeof *p, "a convolution's tables");
    }
    const int64_t row = p->rows->to[1] * c->groups, rows = p->rows->to[0];
    p->band = weft__larger(1, BAND_BYTES / (row * (int64_t)p->wide + 1));
    p->bands = weft__ceil_div(rows, p->band);
    p->packed_bytes = weft__conv_aligned((size_t)(taps * p->rows->whole) * p->wide);
    *work = (weft_cpu_work){.tasks = c->n * p->bands,
                            .scratch_bytes = p->packed_bytes,
                            .cost_ns = weft__conv_cost(c),
                            .run = cpu_conv_each_run,
                            .free = cpu_conv_each_plan_free,
                            .plan = p};
    if (p->size == p->wide) return WEFT_OK;
    int64_t most = 0, low, high;
    for (int64_t o = 0; o < rows; o += p->band) {
        weft__conv_rows_read(p->rows, o, weft__smaller(o + p->band, rows), &low, &high);
        most = weft__larger(most, high - low);
    }
    p->raw_bytes = weft__conv_aligned((size_t)(c->groups * taps) * p->wide);
    p->x_bytes = weft__conv_aligned((size_t)(most * p->rows->from[1] * c->groups) * p->wide);
    work->scratch_bytes += p->raw_bytes + p->x_bytes + (size_t)(p->band * row) * p->wide;
    return WEFT_OK;
}
