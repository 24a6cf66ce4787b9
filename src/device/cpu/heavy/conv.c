/* Convolution on the CPU: the result, and the gradient of the input. Both are the same computation: each
 * pixel gathers the products of the taps of its window. Tables say where pixels and taps begin. With a
 * stride, the pixels of an input form classes that meet the same taps.
 *
 * A task is an image or a band of its rows, times a range of output channels. Each task packs its part of the
 * weight once. Taps and channels alone decide how the sum of an element is split, so the partition changes no
 * bit. gemm/matmul.c computes 1 x 1 convolutions.
 *
 * Must not know: threads. Read next: conv_float.inc, conv_weight.c, docs/design/016-cpu-convolutions.md. */
#include <string.h>

#include "device/conv_matmul.h"
#include "device/cpu/heavy/conv.h"

#define BAND_BYTES 65536 /* of a band in scratch memory; its edges are read twice */
#define BAND_IN_PLACE                                                                                        \
    32768 /* stays in the first cache; a band is read once for every few vectors of output channels */
#define BAND_PIXELS 1024

/* ---- bands ---- */

static bool is_half(uint8_t dtype) { return dtype == WEFT_F16 || dtype == WEFT_BF16; }

size_t weft__conv_band_bytes(const weft_conv_band *band) {
    if (band->in_place) return 0;
    return (size_t)(band->most * band->wide * band->channels) * weft__conv_wide_size(band->dtype) + 64;
}

static void convert(uint8_t dtype, const weft_gemm_own *own, const void *from, int64_t n, void *to) {
    if (dtype == WEFT_F16)
        own->convert.from_f16(n, from, to);
    else if (dtype == WEFT_BF16)
        own->convert.from_bf16(n, from, to);
    else
        memcpy(to, from, (size_t)n * weft__conv_wide_size(dtype));
}

const void *weft__conv_wide(weft_dtype dtype, const weft_gemm_own *own, const void *from, int64_t n,
                            void *scratch) {
    if (!is_half((uint8_t)dtype)) return from;
    convert((uint8_t)dtype, own, from, n, scratch);
    return scratch;
}

const void *weft__conv_band_fill(const weft_conv_band *band, const weft_gemm_own *own, const void *image,
                                 int64_t first, int64_t rows, void *scratch) {
    const size_t size = weft_dtype_size((weft_dtype)band->dtype), wide = weft__conv_wide_size(band->dtype);
    const int64_t c = band->channels;
    if (band->in_place)
        return (const char *)image + (size_t)((first * band->columns + band->low[1]) * c) * size;
    const int64_t left = band->low[1] < 0 ? -band->low[1] : 0, skip = band->low[1] > 0 ? band->low[1] : 0;
    int64_t n = band->columns - skip < band->wide - left ? band->columns - skip : band->wide - left;
    if (n < 0) n = 0;
    char *to = scratch;
    for (int64_t r = first; r < first + rows; r++, to += (size_t)(band->wide * c) * wide) {
        if (r < 0 || r >= band->rows || n == 0) {
            memset(to, 0, (size_t)(band->wide * c) * wide);
            continue;
        }
        memset(to, 0, (size_t)(left * c) * wide);
        convert(band->dtype, own, (const char *)image + (size_t)((r * band->columns + skip) * c) * size,
                n * c, to + (size_t)(left * c) * wide);
        memset(to + (size_t)((left + n) * c) * wide, 0, (size_t)((band->wide - left - n) * c) * wide);
    }
    return scratch;
}

double weft__conv_operations(const weft_heavy_conv *c) {
    const double products = (double)c->n * (double)(c->y[0] * c->y[1]) * (double)(c->size[0] * c->size[1]) *
                            (double)c->groups * (double)c->in * (double)c->out;
    /* relative to f32 matmuls */
    const double slow = (c->dtype == WEFT_F64 ? 2 : 1) * (weft__conv_each(c) ? 6 : 1);
    return 2 * products * slow;
}

double weft__conv_cost(const weft_heavy_conv *c) {
    static const double rate[] = {[WEFT_ISA_BASELINE] = 12, [WEFT_ISA_AVX2] = 50, [WEFT_ISA_AVX512] = 110};
    return weft__conv_operations(c) / rate[weft__cpu_isa()] + 100;
}

/* ---- the plan ---- */

/* Pixels origin + stride * q of the result, q < count. They meet the same taps. */
typedef struct pixel_class {
    int64_t origin[2], count[2];
    int64_t first_tap, n_taps;     /* in the order of the packed weight */
    int64_t first_part, n_parts;   /* parts of its sum */
    const weft_conv_place *places; /* of a whole band */
} pixel_class;

/* A part of a sum: its runs, and where its rows of the packed weight begin. */
typedef struct sum_part {
    int64_t first_run, n_runs, k;
} sum_part;

typedef struct conv_plan {
    weft_heavy_conv c;
    const weft_gemm_own *own;
    const weft_conv_own *kernels;
    bool turned; /* the gradient of the input */
    size_t size, wide;
    int64_t from[2], to[2], n_from, n_to; /* sizes of the tensors read and written; channels of one group */
    int64_t step[2], stride[2];           /* between windows; between pixels of a class */
    weft_conv_band band;
    struct {
        int64_t rows, band; /* of the largest class; of a band */
    } q;
    int64_t bands;
    int64_t parts, panels; /* ranges of output channels; vectors of output channels */
    int64_t blocks;        /* groups of images and bands */
    int64_t *tap;          /* numbers of the taps, class by class */
    struct {
        weft_conv_run *list;
        int64_t count;
    } runs;
    struct {
        sum_part *list;
        int64_t count;
    } sums;
    struct {
        pixel_class *list;
        int64_t count;
    } classes;
    weft_conv_place *places;
    struct {
        size_t packed, raw, band, result;
    } bytes;
} conv_plan;

/* Computes in *at where tap k of dimension d begins for pixel `origin`, in steps of the tensor that is read.
 * Returns false if the tap does not meet the pixel. */
static bool tap_at(const conv_plan *p, int d, int64_t origin, int64_t k, int64_t *at) {
    const weft_heavy_conv *c = &p->c;
    if (!p->turned) {
        *at = k * c->dilation[d] - c->padding[d];
        return true;
    }
    const int64_t whole = origin + c->padding[d] - k * c->dilation[d];
    *at = (whole - (whole % c->stride[d] + c->stride[d]) % c->stride[d]) / c->stride[d];
    return whole % c->stride[d] == 0;
}

/* Computes the smallest and the largest tap position of all classes. */
static void reach(const conv_plan *p, int d, int64_t *low, int64_t *high) {
    int64_t at;
    bool any = false;
    *low = *high = 0;
    for (int64_t o = 0; o < p->stride[d] && o < p->to[d]; o++)
        for (int64_t k = 0; k < p->c.size[d]; k++) {
            if (!tap_at(p, d, o, k, &at)) continue;
            if (!any || at < *low) *low = at;
            if (!any || at > *high) *high = at;
            any = true;
        }
}

static void set_band(conv_plan *p) {
    int64_t low, high, count[2];
    weft_conv_band *b = &p->band;
    *b = (weft_conv_band){.rows = p->from[0],
                          .columns = p->from[1],
                          .channels = p->c.groups * p->n_from,
                          .dtype = p->c.dtype,
                          .in_place = !is_half(p->c.dtype)};
    for (int d = 0; d < 2; d++) count[d] = weft__ceil_div(p->to[d], p->stride[d]);
    for (int d = 1; d >= 0; d--) {
        reach(p, d, &low, &high);
        b->low[d] = low;
        b->in_place = b->in_place && low >= 0 && (count[d] - 1) * p->step[d] + high < p->from[d];
    }
    p->q.rows = count[0];
    reach(p, 1, &low, &high);
    b->wide = (count[1] - 1) * p->step[1] + high - low + 1;
    reach(p, 0, &low, &high);
    const int64_t row = b->wide * b->channels * (int64_t)p->wide, tall = high - low + 1;
    int64_t most = ((b->in_place ? BAND_IN_PLACE : BAND_BYTES) / row - tall) / p->step[0] + 1;
    if (most > BAND_PIXELS / count[1]) most = BAND_PIXELS / count[1];
    p->bands = weft__ceil_div(count[0], most < 1 ? 1 : most);
    p->q.band = weft__ceil_div(count[0], p->bands);
    p->bands = weft__ceil_div(count[0], p->q.band);
    b->most = (p->q.band - 1) * p->step[0] + tall;
}

/* Lists the taps of a class in the order of their positions. They are joined into runs, and runs into parts
 * of a sum. */
static void list_taps(conv_plan *p, pixel_class *k, int64_t row) {
    const weft_heavy_conv *c = &p->c;
    int64_t in_part = CONV_DEPTH, depth = 0;
    for (int64_t i = 0; i < c->size[0]; i++)
        for (int64_t j = 0; j < c->size[1]; j++) {
            const int64_t tap[2] = {p->turned ? c->size[0] - 1 - i : i, p->turned ? c->size[1] - 1 - j : j};
            int64_t at[2];
            if (!tap_at(p, 0, k->origin[0], tap[0], &at[0]) || !tap_at(p, 1, k->origin[1], tap[1], &at[1]))
                continue;
            p->tap[k->first_tap + k->n_taps++] = tap[0] * c->size[1] + tap[1];
            int64_t start = (at[0] - p->band.low[0]) * row + (at[1] - p->band.low[1]) * p->band.channels;
            for (int64_t left = p->n_from, n; left > 0; left -= n, start += n, depth += n, in_part += n) {
                if (in_part >= CONV_DEPTH) {
                    p->sums.list[p->sums.count++] = (sum_part){.first_run = p->runs.count, .k = depth};
                    k->n_parts++;
                    in_part = 0;
                }
                n = left < CONV_DEPTH - in_part ? left : CONV_DEPTH - in_part;
                sum_part *sum = &p->sums.list[p->sums.count - 1];
                weft_conv_run *last = sum->n_runs ? &p->runs.list[p->runs.count - 1] : NULL;
                if (last && last->at + last->n == start) {
                    last->n += n;
                    continue;
                }
                p->runs.list[p->runs.count++] = (weft_conv_run){start, n};
                sum->n_runs++;
            }
        }
    if (k->n_parts) return;
    /* no tap meets the pixels: the result is zeros */
    p->sums.list[p->sums.count++] = (sum_part){.first_run = p->runs.count, .k = 0};
    k->n_parts = 1;
}

static void list_places(const conv_plan *p, const pixel_class *k, int64_t row, weft_conv_place *places) {
    const int64_t wide = p->c.groups * p->n_to;
    for (int64_t h = 0; h < p->q.band; h++)
        for (int64_t w = 0; w < k->count[1]; w++)
            *places++ = (weft_conv_place){
                h * p->step[0] * row + w * p->step[1] * p->band.channels,
                ((k->origin[0] + h * p->stride[0]) * p->to[1] + k->origin[1] + w * p->stride[1]) * wide};
}

static void cpu_conv_plan_free(weft_context *ctx, void *plan) {
    conv_plan *p = plan;
    if (!p) return;
    weft__free(ctx, p->tap);
    weft__free(ctx, p->runs.list);
    weft__free(ctx, p->sums.list);
    weft__free(ctx, p->classes.list);
    weft__free(ctx, p->places);
    weft__free(ctx, p);
}

static bool list_classes(weft_context *ctx, conv_plan *p) {
    const int64_t down = weft__smaller(p->stride[0], p->to[0]),
                  across = weft__smaller(p->stride[1], p->to[1]);
    const int64_t taps = p->c.size[0] * p->c.size[1], row = weft__conv_band_row(&p->band);
    const int64_t cuts = weft__ceil_div(taps * p->n_from, CONV_DEPTH) + down * across;
    p->tap = weft__array(ctx, (size_t)taps, sizeof *p->tap);
    p->runs.list = weft__array(ctx, (size_t)(taps + cuts), sizeof *p->runs.list);
    p->sums.list = weft__array(ctx, (size_t)cuts, sizeof *p->sums.list);
    p->classes.list = weft__array(ctx, (size_t)(down * across), sizeof *p->classes.list);
    p->places = weft__array(ctx, (size_t)(p->q.band * (p->to[1] + across) * down), sizeof *p->places);
    if (!p->tap || !p->runs.list || !p->sums.list || !p->classes.list || !p->places) return false;
    int64_t tap = 0;
    weft_conv_place *places = p->places;
    for (int64_t i = 0; i < down; i++)
        for (int64_t j = 0; j < across; j++) {
            pixel_class *k = &p->classes.list[p->classes.count++];
            *k = (pixel_class){.origin = {i, j},
                               .count = {weft__ceil_div(p->to[0] - i, p->stride[0]),
                                         weft__ceil_div(p->to[1] - j, p->stride[1])},
                               .first_tap = tap,
                               .first_part = p->sums.count,
                               .places = places};
            list_taps(p, k, row);
            list_places(p, k, row, places);
            tap += k->n_taps;
            places += p->q.band * k->count[1];
        }
    return true;
}

/* ---- a task ---- */

/* Returns the number of calls. A call's group of vectors is never divided. */
static int64_t calls_of(const conv_plan *p) { return weft__ceil_div(p->panels, p->kernels->vectors); }

/* Returns the first vector of range i of the output channels. */
static int64_t panel_at(const conv_plan *p, int64_t i) {
    return weft__smaller(calls_of(p) * i / p->parts * p->kernels->vectors, p->panels);
}

typedef struct span {
    /* first channel, vectors, channels, channels of the last vector */
    int64_t first, vectors, channels, last;
} span;

/* Returns the vectors of one call: from vector v on, not beyond `end`. */
static span span_at(const conv_plan *p, int64_t v, int64_t end) {
    const int64_t lanes = p->kernels->lanes, calls = weft__ceil_div(end - v, p->kernels->vectors);
    span s = {.first = v * lanes, .vectors = weft__ceil_div(end - v, calls)};
    s.channels = weft__smaller(s.vectors * lanes, p->n_to - s.first);
    s.last = s.channels - (s.vectors - 1) * lanes;
    return s;
}

/* Packs the weight for vectors begin..end of all groups. For each call it stores the rows (tap, channel
 * read), class after class. */
static void pack(const conv_plan *p, const char *w, int64_t begin, int64_t end, char *packed) {
    const weft_heavy_conv *c = &p->c;
    const int64_t taps = c->size[0] * c->size[1], depth = taps * c->in; /* elements of a row of the weight */
    for (int64_t g = 0; g < c->groups; g++)
        for (int64_t v = begin; v < end;) {
            const span s = span_at(p, v, end);
            const int64_t width = s.vectors * p->kernels->lanes;
            if (!p->turned) { /* all taps in order */
                p->kernels->pack(packed, width, w + (size_t)((g * c->out + s.first) * depth) * p->wide, depth,
                                 1, s.channels, depth);
                packed += (size_t)(depth * width) * p->wide;
            }
            for (int64_t t = 0; p->turned && t < taps; t++) {
                const char *from = w + (size_t)(g * c->out * depth + p->tap[t] * c->in + s.first) * p->wide;
                p->kernels->pack(packed, width, from, 1, depth, s.channels, c->out);
                packed += (size_t)(c->out * width) * p->wide;
            }
            v += s.vectors;
        }
}

/* Computes all pixels of a band for one call's vectors of one group. */
static void cpu_conv_gather(const conv_plan *p, int64_t q, int64_t rows, const char *x, const char *w,
                            char *y, const span *s, const char *ahead, int64_t ahead_bytes) {
    const int64_t width = s->vectors * p->kernels->lanes;
    for (const pixel_class *k = p->classes.list, *end = k + p->classes.count; k < end; k++) {
        /* a class may have no pixels in the last band */
        const int64_t count = weft__smaller(rows, k->count[0] - q) * k->count[1];
        for (int64_t i = 0; count > 0 && i < k->n_parts; i++) {
            const sum_part *sum = &p->sums.list[k->first_part + i];
            const int64_t row = k->first_tap * p->n_from + sum->k;
            const weft_conv_gather g = {.x = x,
                                        .w = w + (size_t)(row * width) * p->wide,
                                        .y = y,
                                        .runs = p->runs.list + sum->first_run,
                                        .n_runs = sum->n_runs,
                                        .last = s->last,
                                        .row = k->count[1],
                                        .step = p->step[1] * p->band.channels,
                                        .add = i > 0,
                                        .ahead = ahead,
                                        .ahead_bytes = k == p->classes.list && i == 0 ? ahead_bytes : 0};
            p->kernels->gather(&g, s->vectors, k->places, count);
        }
    }
}

static void round_row(const conv_plan *p, const float *from, int64_t n, char *to) {
    (p->c.dtype == WEFT_F16 ? p->own->convert.to_f16 : p->own->convert.to_bf16)(n, from,
                                                                                (uint16_t *)(void *)to);
}

/* Computes band `unit`, counted over all images. */
static void do_band(const conv_plan *p, void *const *args, int64_t unit, int64_t begin, int64_t end,
                    const char *packed, char *scratch) {
    const int64_t q = unit % p->bands * p->q.band, image = unit / p->bands, in = p->c.groups * p->n_from,
                  out = p->c.groups * p->n_to, taps = p->c.size[0] * p->c.size[1];
    const int64_t first = q * p->stride[0], rows = weft__smaller(p->q.band * p->stride[0], p->to[0] - first);
    const char *from = (const char *)args[0] + (size_t)(image * p->from[0] * p->from[1] * in) * p->size;
    char *to = (char *)args[2] + (size_t)((image * p->to[0] + first) * p->to[1] * out) * p->size;
    char *y = is_half(p->c.dtype) ? scratch + p->bytes.band : to;
    const int64_t q_rows = weft__ceil_div(rows, p->stride[0]);
    const char *x = weft__conv_band_fill(
        &p->band, p->own, from, q * p->step[0] + p->band.low[0],
        (q_rows - 1) * p->step[0] + p->band.most - (p->q.band - 1) * p->step[0], scratch);
    /* The next band, and how much of it is not part of this one. */
    const int64_t next = p->q.band * p->step[0] * p->from[1] * in * (int64_t)p->size;
    const int64_t left = (p->c.n - image) * p->from[0] * p->from[1] * in * (int64_t)p->size;
    const int64_t at = (q * p->step[0]) * p->from[1] * in * (int64_t)p->size + next;
    const int64_t ahead = at + next <= left ? next : at < left ? left - at : 0;
    for (int64_t g = 0; g < p->c.groups; g++)
        for (int64_t v = begin; v < end;) {
            const span s = span_at(p, v, end);
            cpu_conv_gather(p, q, q_rows, x + (size_t)(g * p->n_from) * p->wide, packed,
                            y + (size_t)(g * p->n_to + s.first) * p->wide, &s, from + at,
                            g == 0 && v == begin ? ahead : 0);
            packed += (size_t)(taps * p->n_from * s.vectors * p->kernels->lanes) * p->wide;
            v += s.vectors;
        }
    if (y != to) round_row(p, (const float *)(const void *)y, rows * p->to[1] * out, to);
}

static void cpu_conv_run(const void *plan, void *const *args, int64_t begin, int64_t end, void *scratch,
                         weft_fault *fault) {
    (void)fault;
    const conv_plan *p = plan;
    const int64_t taps = p->c.size[0] * p->c.size[1], units = p->c.n * p->bands;
    char *packed = scratch, *raw = packed + p->bytes.packed, *rest = raw + p->bytes.raw;
    for (int64_t task = begin, have = -1; task < end; task++) {
        const int64_t part = task / p->blocks, block = task % p->blocks;
        const int64_t from = panel_at(p, part), to = panel_at(p, part + 1);
        if (part != have)
            pack(p,
                 weft__conv_wide((weft_dtype)p->c.dtype, p->own, args[1],
                                 p->c.groups * p->c.out * taps * p->c.in, raw),
                 from, to, packed);
        have = part;
        for (int64_t u = units * block / p->blocks; u < units * (block + 1) / p->blocks; u++)
            do_band(p, args, u, from, to, packed, rest);
    }
}

/* ---- preparing ---- */

/* Chooses the partition. Each range of channels copies the bands again, and each block of images packs the
 * weight again. */
static void conv_partition(conv_plan *p, double cost_ns, int threads) {
    const double weight = (double)(p->c.size[0] * p->c.size[1]) * (double)(p->c.groups * p->c.in * p->c.out);
    const double image = p->band.in_place ? 0 : (double)(p->c.n * p->from[0] * p->from[1] * p->band.channels);
    const int64_t units = p->c.n * p->bands,
                  wanted = weft__smaller((int64_t)(cost_ns / 10e3), 4 * (int64_t)threads);
    double best = 0;
    p->parts = p->blocks = 1;
    for (int64_t parts = 1; parts <= wanted && parts <= calls_of(p); parts++) {
        if (parts > 1 && (is_half(p->c.dtype) || p->c.groups > 1)) break;
        const int64_t blocks = weft__smaller(weft__ceil_div(wanted, parts), units);
        const double cost = weight * (double)blocks + image * (double)parts +
                            (parts * blocks < wanted ? 1e12 / (double)(parts * blocks) : 0);
        if (parts > 1 && cost >= best) continue;
        best = cost;
        p->parts = parts, p->blocks = blocks;
    }
}

static void set_scratch(conv_plan *p, weft_cpu_work *work) {
    const int64_t taps = p->c.size[0] * p->c.size[1];
    const int64_t most = weft__ceil_div(calls_of(p), p->parts) * p->kernels->vectors * p->kernels->lanes;
    const bool half = is_half(p->c.dtype);
    p->bytes.packed = weft__conv_aligned((size_t)(taps * p->n_from * p->c.groups * most) * p->wide);
    p->bytes.raw = half ? weft__conv_aligned((size_t)(p->c.groups * p->c.out * taps * p->c.in) * p->wide) : 0;
    p->bytes.band = weft__conv_aligned(weft__conv_band_bytes(&p->band));
    p->bytes.result =
        half ? (size_t)(p->q.band * p->stride[0] * p->to[1] * p->c.groups * p->n_to) * p->wide : 0;
    work->scratch_bytes = p->bytes.packed + p->bytes.raw + p->bytes.band + p->bytes.result;
}

bool weft__cpu_conv_takes(const weft_heavy_conv *c) { return weft_dtype_is_float((weft_dtype)c->dtype); }

weft_status weft__cpu_conv_prepare(weft_context *ctx, const weft_heavy_conv *c, const char *path, int threads,
                                   weft_cpu_work *work) {
    if (c->pass == WEFT_CONV_WEIGHT) return weft__cpu_conv_weight_prepare(ctx, c, threads, work);
    if (weft__conv_each(c)) return weft__cpu_conv_each_prepare(ctx, c, work);
    if (c->groups == 1 && weft__conv_is_matmul(c)) {
        bool swapped;
        const weft_heavy_matmul mm = weft__conv_matmul(c, &swapped);
        return weft__cpu_matmul_prepare(ctx, &mm, path, threads, work);
    }
    conv_plan *p = weft__zalloc(ctx, sizeof *p);
    if (!p) return weft__fail_oom(ctx, sizeof *p, "a convolution's plan");
    *work = (weft_cpu_work){
        .run = cpu_conv_run, .free = cpu_conv_plan_free, .plan = p, .cost_ns = weft__conv_cost(c)};
    p->c = *c;
    p->own = weft__gemm_own();
    p->kernels = weft__conv_kernels(p->own, c->dtype);
    p->turned = c->pass == WEFT_CONV_INPUT;
    p->size = weft_dtype_size((weft_dtype)c->dtype);
    p->wide = weft__conv_wide_size(c->dtype);
    for (int d = 0; d < 2; d++) {
        p->from[d] = p->turned ? c->y[d] : c->x[d];
        p->to[d] = p->turned ? c->x[d] : c->y[d];
        p->step[d] = p->turned ? 1 : c->stride[d];
        p->stride[d] = p->turned ? c->stride[d] : 1;
    }
    p->n_from = p->turned ? c->out : c->in;
    p->n_to = p->turned ? c->in : c->out;
    if (c->n * p->to[0] * p->to[1] * c->groups * p->n_to == 0) return WEFT_OK;
    set_band(p);
    p->panels = weft__ceil_div(p->n_to, p->kernels->lanes);
    if (!list_classes(ctx, p)) {
        cpu_conv_plan_free(ctx, p);
        *work = (weft_cpu_work){.tasks = 0};
        return weft__fail_oom(ctx, sizeof *p, "a convolution's tables");
    }
    conv_partition(p, work->cost_ns, threads);
    set_scratch(p, work);
    work->tasks = p->parts * p->blocks;
    return WEFT_OK;
}
