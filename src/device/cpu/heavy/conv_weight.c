/* The gradient of a convolution's weight on the CPU. For each tap and input channel it is a sum over all
 * pixels of x times y, with output channels side by side. Images are divided into blocks; the shape alone
 * decides how many. Each block has its own sum, and the sums are added in pairs.
 * Must not know: threads. Read next: conv_float.inc. */
#include <string.h>

#include "device/cpu/heavy/conv.h"

#define BAND_BYTES      262144
#define PARTIAL_BYTES   4194304 /* of the sums of all blocks together */
#define MOST_BLOCKS     16
#define TASK_OPERATIONS 3.3e6 /* of a block: 30 us with AVX-512 */
/* added in sequence; with the part of them that a tile reads, they fit in the first cache */
#define LINE_PIXELS 112
#define TURN        64 /* rows */

typedef struct weight_plan {
    weft_heavy_conv c;
    const weft_gemm_own *own;
    const weft_conv_own *kernels;
    size_t size, wide;
    weft_conv_band band;
    int64_t band_rows, bands; /* rows of y in a band; bands of an image */
    bool each;                /* groups of one channel, which form one set */
    weft_conv_rows *each_row; /* rows of such groups */
    int64_t sets, out;        /* sets of output channels with a sum each; channels of a set */
    int64_t depth, width;     /* rows (tap, input channel) of a sum; its columns, in whole vectors */
    int64_t parts, panels;    /* ranges of output channels; vectors of output channels */
    int64_t blocks;
    int64_t *rows;  /* position of each row in a window */
    int64_t joined; /* number of rows that are contiguous */
    struct {
        weft_conv_line *list; /* lines of a whole band, in pieces of at most LINE_PIXELS pixels */
        int64_t *first;       /* first line of each piece; the last entry is the number of lines */
    } lines;
    int64_t n_parts;
    void *sums; /* (blocks, sets, panels of a call (depth, its vectors)) */
    int *done;  /* (parts, blocks): how many of the two sums of a pair are complete */
    struct {
        size_t band, y;
    } bytes;
} weight_plan;

static void cpu_conv_weight_plan_free(weft_context *ctx, void *plan) {
    weight_plan *p = plan;
    if (!p) return;
    weft__conv_rows_free(ctx, p->each_row);
    weft__free(ctx, p->rows);
    weft__free(ctx, p->lines.list);
    weft__free(ctx, p->lines.first);
    weft__free_aligned(ctx, p->sums);
    weft__free(ctx, p->done);
    weft__free(ctx, p);
}

/* ---- a task ---- */

/* Returns the number of calls. A call's group of vectors is never divided. */
static int64_t calls_of(const weight_plan *p) { return weft__ceil_div(p->panels, p->kernels->vectors); }

static int64_t panel_at(const weight_plan *p, int64_t i) {
    return weft__smaller(calls_of(p) * i / p->parts * p->kernels->vectors, p->panels);
}

/* Returns the vectors of the call that begins with vector v, not beyond `end`. */
static int64_t vectors_at(const weight_plan *p, int64_t v, int64_t end) {
    return p->each ? end - v : weft__ceil_div(end - v, weft__ceil_div(end - v, p->kernels->vectors));
}

/* Returns the sum of the call that begins with vector v. */
static char *sum_of(const weight_plan *p, int64_t block, int64_t set, int64_t v) {
    return (char *)p->sums +
           (size_t)(((block * p->sets + set) * p->width + v * p->kernels->lanes) * p->depth) * p->wide;
}

/* Memory of x or y that follows a part of a band. */
typedef struct following {
    const char *at;
    int64_t bytes;
} following;

/* Returns piece i of n, in whole cache lines. */
static following piece_of(following f, int64_t i, int64_t n) {
    const int64_t size = weft__ceil_div(f.bytes, 64 * n) * 64, at = weft__smaller(i * size, f.bytes);
    return (following){f.at + at, weft__smaller(size, f.bytes - at)};
}

/* Adds a band to the sums of vectors begin..end. The first band sets them. If other channels are between a
 * call's channels of y, the call's channels are packed, since distant pixels would share sets of the first
 * cache. Meanwhile each part of the band prefetches a part of `next`. */
static void add_band(const weight_plan *p, const char *x, const char *y, int64_t rows, int64_t block,
                     int64_t begin, int64_t end, bool first, const following *next, char *packed) {
    const weft_heavy_conv *c = &p->c;
    const int64_t lanes = p->kernels->lanes, wide = c->groups * c->out;
    const int64_t calls = p->sets * weft__ceil_div(end - begin, p->kernels->vectors);
    for (int64_t i = 0; i < p->n_parts; i++) {
        int64_t n = 0, pixels = 0, call = i * calls;
        const weft_conv_line *lines = p->lines.list + p->lines.first[i];
        for (; n < p->lines.first[i + 1] - p->lines.first[i] && lines[n].y < rows * c->y[1] * wide; n++)
            pixels += lines[n].n;
        if (n == 0) break;
        for (int64_t g = 0; g < p->sets; g++)
            for (int64_t v = begin, nv; v < end; v += nv, call++) {
                nv = vectors_at(p, v, end);
                const int64_t width = nv * lanes, channels = weft__smaller(width, p->out - v * lanes);
                weft_conv_weight w = {.x = x + (size_t)(g * c->in) * p->wide,
                                      .y = y + (size_t)(lines->y + g * c->out + v * lanes) * p->wide,
                                      .to = sum_of(p, block, g, v),
                                      .lines = lines,
                                      .n_lines = n,
                                      .step = c->stride[1] * c->groups * c->in,
                                      .wide = wide,
                                      .to_row = width,
                                      .add = !first || i > 0};
                for (int k = 0; k < 2; k++) {
                    const following f = piece_of(next[k], call, calls * p->n_parts);
                    w.ahead[k] = f.at, w.ahead_bytes[k] = f.bytes;
                }
                if (width != wide) {
                    p->kernels->pack(packed, width, w.y, 1, wide, channels, pixels);
                    w.y = packed;
                    w.wide = width;
                }
                p->kernels->weight(&w, nv, p->rows, p->depth, p->joined);
            }
    }
}

/* Adds rows to the sums, for groups of one channel. */
static void add_rows(const weight_plan *p, const char *image, char *y, int64_t at, int64_t rows,
                     int64_t block, bool first, char *scratch) {
    const int64_t deep = p->c.x[1] * p->c.groups, wide = p->c.y[1] * p->c.groups;
    char *sum = sum_of(p, block, 0, 0);
    int64_t low = 0, high;
    if (first) memset(sum, 0, (size_t)(p->depth * p->width) * p->wide);
    if (p->size != p->wide) {
        weft__conv_rows_read(p->each_row, at, at + rows, &low, &high);
        image = weft__conv_wide((weft_dtype)p->c.dtype, p->own, image + (size_t)(low * deep) * p->size,
                                (high - low) * deep, scratch);
    }
    for (int64_t r = 0; r < rows; r++)
        weft__conv_rows_do(p->each_row, at + r, p->wide, image, low, sum, y + (size_t)(r * wide) * p->wide,
                           p->kernels->each_weight);
}

/* Returns the part of `bytes` bytes from `from` on that exists in an operand of `all` bytes. */
static following cpu_conv_weight_follow(const void *operand, int64_t all, int64_t from, int64_t bytes) {
    from = weft__smaller(from, all);
    return (following){(const char *)operand + from, weft__smaller(bytes, all - from)};
}

static void do_band(const weight_plan *p, void *const *args, int64_t unit, int64_t block, int64_t begin,
                    int64_t end, bool first, char *scratch) {
    const weft_heavy_conv *c = &p->c;
    const int64_t at = unit % p->bands * p->band_rows, image = unit / p->bands, size = (int64_t)p->size;
    const int64_t rows = weft__smaller(p->band_rows, c->y[0] - at), wide = c->y[1] * c->groups * c->out;
    const int64_t deep = c->x[1] * c->groups * c->in, y_at = (image * c->y[0] + at) * wide * size;
    const char *from = (const char *)args[0] + image * c->x[0] * deep * size;
    const char *y = weft__conv_wide((weft_dtype)c->dtype, p->own, (const char *)args[1] + y_at, rows * wide,
                                    scratch + p->bytes.band);
    if (p->each) {
        add_rows(p, from, (char *)y, at, rows, block, first, scratch);
        return;
    }
    const int64_t x_at = (image * c->x[0] + at * c->stride[0]) * deep * size;
    const int64_t x_bytes = p->band_rows * c->stride[0] * deep * size, y_bytes = p->band_rows * wide * size;
    const following next[2] = {
        cpu_conv_weight_follow(args[0], c->n * c->x[0] * deep * size,
                               x_at + x_bytes / (p->band.in_place ? p->n_parts : 1), x_bytes),
        cpu_conv_weight_follow(args[1], c->n * c->y[0] * wide * size,
                               y_at + y_bytes / (p->size == p->wide ? p->n_parts : 1), y_bytes)};
    const char *x = weft__conv_band_fill(&p->band, p->own, from, at * c->stride[0] + p->band.low[0],
                                         p->band.most - (p->band_rows - rows) * c->stride[0], scratch);
    add_band(p, x, y, rows, block, begin, end, first, next, scratch + p->bytes.band + p->bytes.y);
}

/* ---- the sums of blocks ---- */

static void store_row(const weight_plan *p, const void *from, int64_t n, char *to) {
    if (p->c.dtype == WEFT_F16)
        p->own->convert.to_f16(n, from, (uint16_t *)(void *)to);
    else if (p->c.dtype == WEFT_BF16)
        p->own->convert.to_bf16(n, from, (uint16_t *)(void *)to);
    else
        memcpy(to, from, (size_t)n * p->size);
}

/* Adds the sums of block `from` to the sums of block `to`, for vectors begin..end. */
static void add_block(const weight_plan *p, int64_t begin, int64_t end, int64_t to, int64_t from) {
    const int64_t n = (end - begin) * p->kernels->lanes * p->depth;
    for (int64_t g = 0; g < p->sets; g++) {
        const void *x = sum_of(p, from, g, begin);
        void *y = sum_of(p, to, g, begin);
        if (p->wide == 8)
            p->own->add.f64(n, x, y);
        else
            p->own->add.f32(n, x, y);
    }
}

/* Adds the sums of neighbouring blocks, then pairs of sums, and so on. The thread that completes the second
 * sum of a pair adds them. So threads share the work, and the order is always the same. Returns true to the
 * thread that has the total. */
static bool add_up(const weight_plan *p, int64_t part, int64_t block, int64_t begin, int64_t end) {
    for (int64_t reach = 1; reach < p->blocks; reach *= 2) {
        const int64_t left = block & ~(2 * reach - 1), right = left + reach;
        block = left;
        if (right >= p->blocks) continue;
        int *done = &p->done[part * p->blocks + right]; /* each block is the right one of exactly one pair */
        if (__atomic_add_fetch(done, 1, __ATOMIC_ACQ_REL) < 2) return false;
        __atomic_store_n(done, 0, __ATOMIC_RELAXED);
        add_block(p, begin, end, left, right);
    }
    return true;
}

/* Transposes the sums, TURN rows at a time, since the weight has channels of x last. */
static void cpu_conv_weight_finish(const weight_plan *p, int64_t begin, int64_t end, char *w, char *scratch) {
    const int64_t lanes = p->kernels->lanes;
    for (int64_t g = 0; g < p->sets; g++)
        for (int64_t v = begin, nv; v < end; v += nv) {
            nv = vectors_at(p, v, end);
            const int64_t channels = weft__smaller(nv * lanes, p->out - v * lanes);
            for (int64_t r = 0; r < p->depth; r += TURN) {
                const int64_t n = weft__smaller(TURN, p->depth - r), width = weft__ceil_div(n, lanes) * lanes;
                p->kernels->pack(scratch, width, sum_of(p, 0, g, v) + (size_t)(r * nv * lanes) * p->wide,
                                 nv * lanes, 1, n, channels);
                for (int64_t o = 0; o < channels; o++)
                    store_row(p, scratch + (size_t)(o * width) * p->wide, n,
                              w + (size_t)((g * p->out + v * lanes + o) * p->depth + r) * p->size);
            }
        }
}

static void cpu_conv_weight_run(const void *plan, void *const *args, int64_t begin, int64_t end,
                                void *scratch, weft_fault *fault) {
    (void)fault;
    const weight_plan *p = plan;
    const int64_t units = p->c.n * p->bands;
    for (int64_t task = begin; task < end; task++) {
        const int64_t part = task / p->blocks, block = task % p->blocks;
        const int64_t from = panel_at(p, part), to = panel_at(p, part + 1);
        const int64_t first = units * block / p->blocks;
        for (int64_t u = first; u < units * (block + 1) / p->blocks; u++)
            do_band(p, args, u, block, from, to, u == first, scratch);
        if (add_up(p, part, block, from, to)) cpu_conv_weight_finish(p, from, to, args[2], scratch);
    }
}

static void run_nothing(const void *plan, void *const *args, int64_t begin, int64_t end, void *scratch,
                        weft_fault *fault) {
    (void)begin, (void)end, (void)scratch, (void)fault;
    const weight_plan *p = plan;
    memset(args[2], 0, (size_t)(p->c.groups * p->c.out * p->depth) * p->size);
}

/* ---- the plan ---- */

static void set_band(weight_plan *p) {
    const weft_heavy_conv *c = &p->c;
    weft_conv_band *b = &p->band;
    int64_t tall[2];
    *b = (weft_conv_band){.rows = c->x[0],
                          .columns = c->x[1],
                          .channels = c->groups * c->in,
                          .dtype = c->dtype,
                          .in_place = p->size == p->wide};
    for (int d = 0; d < 2; d++) {
        tall[d] = (c->size[d] - 1) * c->dilation[d] + 1;
        b->low[d] = -c->padding[d];
        const int64_t end = (c->y[d] - 1) * c->stride[d] - c->padding[d] + tall[d];
        b->in_place = b->in_place && c->padding[d] == 0 && end <= c->x[d];
    }
    b->wide = (c->y[1] - 1) * c->stride[1] + tall[1];
    const int64_t row = b->wide * b->channels * (int64_t)p->wide;
    int64_t most = (BAND_BYTES / row - tall[0]) / c->stride[0] + 1;
    p->bands = weft__ceil_div(c->y[0], most < 1 ? 1 : most);
    p->band_rows = weft__ceil_div(c->y[0], p->bands);
    p->bands = weft__ceil_div(c->y[0], p->band_rows);
    b->most = (p->band_rows - 1) * c->stride[0] + tall[0];
}

static bool list_rows(weft_context *ctx, weight_plan *p) {
    const weft_heavy_conv *c = &p->c;
    const int64_t row = weft__conv_band_row(&p->band), pieces = weft__ceil_div(c->y[1], LINE_PIXELS);
    int64_t n = 0, lines = 0, pixels = LINE_PIXELS;
    p->rows = weft__array(ctx, (size_t)p->depth, sizeof *p->rows);
    p->lines.list = weft__array(ctx, (size_t)(p->band_rows * pieces), sizeof *p->lines.list);
    p->lines.first = weft__array(ctx, (size_t)(p->band_rows * pieces + 1), sizeof *p->lines.first);
    if (!p->rows || !p->lines.list || !p->lines.first) return false;
    p->joined = c->groups == 1 && c->dilation[1] == 1 ? c->size[1] * c->in : c->in;
    for (int64_t i = 0; i < c->size[0]; i++)
        for (int64_t j = 0; j < c->size[1]; j++)
            for (int64_t k = 0; k < c->in; k++)
                p->rows[n++] = i * c->dilation[0] * row + j * c->dilation[1] * p->band.channels + k;
    for (int64_t h = 0; h < p->band_rows; h++)
        for (int64_t i = 0; i < pieces; i++) {
            const int64_t from = c->y[1] * i / pieces, count = c->y[1] * (i + 1) / pieces - from;
            if (pixels + count > LINE_PIXELS) {
                p->lines.first[p->n_parts++] = lines;
                pixels = 0;
            }
            pixels += count;
            p->lines.list[lines++] =
                (weft_conv_line){h * c->stride[0] * row + from * c->stride[1] * p->band.channels,
                                 (h * c->y[1] + from) * c->groups * c->out, count};
        }
    p->lines.first[p->n_parts] = lines;
    return true;
}

/* Chooses the partition. The number of blocks depends on the shape alone, not on the length of vectors. There
 * are as many as their sums have room for. If these are too few tasks, channels are divided into ranges. Each
 * range reads all of x, and this changes no bit. */
static void conv_weight_partition(weight_plan *p, int threads) {
    const int64_t one = p->sets * p->depth * weft__ceil_div(p->out, 16) * 16 * (int64_t)p->wide;
    int64_t tasks = (int64_t)(weft__conv_operations(&p->c) / TASK_OPERATIONS);
    tasks = tasks < 1 ? 1 : weft__smaller(tasks, MOST_BLOCKS);
    p->blocks = weft__smaller(weft__smaller(tasks, p->c.n * p->bands), PARTIAL_BYTES / one);
    if (p->blocks < 1) p->blocks = 1;
    p->parts = weft__smaller(weft__ceil_div(weft__smaller(tasks, 2 * (int64_t)threads), p->blocks),
                             p->each ? 1 : calls_of(p));
}

static bool cpu_conv_weight_make(weft_context *ctx, weight_plan *p, int threads, weft_cpu_work *work) {
    const weft_heavy_conv *c = &p->c;
    set_band(p);
    p->panels = weft__ceil_div(p->out, p->kernels->lanes);
    p->width = p->panels * p->kernels->lanes;
    if (p->each) {
        p->each_row = weft__conv_rows_new(ctx, c, p->kernels->lanes);
        if (!p->each_row) return false;
    } else if (!list_rows(ctx, p)) {
        return false;
    }
    conv_weight_partition(p, threads);
    p->done = weft__array(ctx, (size_t)(p->parts * p->blocks), sizeof *p->done);
    p->sums = weft__alloc_aligned(ctx, (size_t)(p->blocks * p->sets * p->depth * p->width) * p->wide);
    p->bytes.band = weft__conv_aligned(weft__conv_band_bytes(&p->band));
    if (p->each) p->bytes.band = weft__conv_aligned((size_t)(p->band.most * c->x[1] * c->groups) * p->wide);
    if (p->size != p->wide)
        p->bytes.y = weft__conv_aligned((size_t)(p->band_rows * c->y[1] * c->groups * c->out) * p->wide);
    const size_t panel = (size_t)((p->each ? p->width : p->kernels->vectors * p->kernels->lanes)) * p->wide;
    work->scratch_bytes = p->bytes.band + p->bytes.y + LINE_PIXELS * panel;
    if (work->scratch_bytes < TURN * panel) work->scratch_bytes = TURN * panel;
    work->tasks = p->parts * p->blocks;
    return p->done && p->sums;
}

weft_status weft__cpu_conv_weight_prepare(weft_context *ctx, const weft_heavy_conv *c, int threads,
                                          weft_cpu_work *work) {
    weight_plan *p = weft__zalloc(ctx, sizeof *p);
    if (!p) return weft__fail_oom(ctx, sizeof *p, "a convolution's plan");
    *work = (weft_cpu_work){.run = cpu_conv_weight_run,
                            .free = cpu_conv_weight_plan_free,
                            .plan = p,
                            .cost_ns = weft__conv_cost(c)};
    p->c = *c;
    p->own = weft__gemm_own();
    p->kernels = weft__conv_kernels(p->own, c->dtype);
    p->size = weft_dtype_size((weft_dtype)c->dtype);
    p->wide = weft__conv_wide_size(c->dtype);
    p->each = weft__conv_each(c);
    p->sets = p->each ? 1 : c->groups;
    p->out = p->each ? c->groups : c->out;
    p->depth = c->size[0] * c->size[1] * c->in;
    if (c->n == 0) {
        work->run = run_nothing;
        work->tasks = 1;
        return WEFT_OK;
    }
    if (cpu_conv_weight_make(ctx, p, threads, work)) return WEFT_OK;
    cpu_conv_weight_plan_free(ctx, p);
    *work = (weft_cpu_work){.tasks = 0};
    return weft__fail_oom(ctx, sizeof *p, "a convolution's tables");
}
