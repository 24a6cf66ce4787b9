/* What the launches of heavy operations, copies and zeros move and compute, from their descriptors. The
 * renderer does the same for kernels (kernel/render_facts.c). Must not know: how launches are made. Read
 * next: price.c. */
#include "device/gpu/card/facts.h"

#include <math.h>
#include <string.h>

/* ---- parts of a unit's rate ---- */

/* Of Weft's own templates. OWN_TENSOR: kernels of mma.sync reach 0.45 of a Hopper card's rate (FlashAttention
 * 2 against 3); the goal of the template, not a measurement. OWN_F32 and OWN_ATTENTION are assumptions: tiles
 * in shared memory reach 0.6 of the rate of f32, and attention by mma.sync 0.55 of what cuDNN does. */
#define OWN_TENSOR    0.45
#define OWN_F32       0.6
#define OWN_ATTENTION 0.55

/* Of cuBLASLt: 755 to 798 of 989 TFLOP/s for bf16 matmuls of 8192 on H100 and H200. A tile takes BLAS_SECONDS
 * to fill its local memory and to store its sums; so a matmul of 4096 reaches 740 (published: 733), and one
 * of 768 along k about 680. A small matmul has smaller tiles, which are slower. For few tiles k is divided
 * into at most 2^(BLAS_SPLITS - 1) parts, and adding them takes BLAS_SECONDS again. */
#define BLAS_PART    0.8
#define BLAS_SECONDS 1.4e-6
enum { BLAS_SPLITS = 6 };
static const struct blas_tile {
    int m, n;
    double part;
} blas_tiles[] = {{128, 256, 1}, {128, 128, 0.9}, {64, 128, 0.75}, {64, 64, 0.55}};

/* Of cuDNN: attention with 64 channels on H200, published: 310 of 989 TFLOP/s forward, 264 backward. Adding
 * in a fixed order costs about a seventh. DNN_CONVOLUTION is an assumption. */
#define DNN_FORWARD     0.31
#define DNN_BACKWARD    0.27
#define DNN_ORDERED     0.85
#define DNN_CONVOLUTION 0.55

double weft__card_library_matmul(const weft_card *card, weft_unit unit, const double shape[4]) {
    const int variants = sizeof blas_tiles / sizeof *blas_tiles * BLAS_SPLITS;
    const double batch = shape[0], m = shape[1], n = shape[2], k = shape[3];
    double best = INFINITY;
    for (int i = 0; i < variants; i++) {
        const struct blas_tile *t = &blas_tiles[i / BLAS_SPLITS];
        const double splits = ldexp(1, i % BLAS_SPLITS);
        const double rounds = ceil(ceil(m / t->m) * ceil(n / t->n) * batch * splits / card->units);
        const double rate = BLAS_PART * t->part * card->rate[unit] / card->units;
        const double tile = 2 * (double)t->m * t->n * k / splits / rate + BLAS_SECONDS;
        best = fmin(best, rounds * tile + (splits > 1 ? BLAS_SECONDS : 0));
    }
    return 2 * batch * m * n * k / (best * card->rate[unit]);
}

double weft__card_library_attention(bool backward, bool fast) {
    return !backward ? DNN_FORWARD : fast ? DNN_BACKWARD : DNN_BACKWARD * DNN_ORDERED;
}

double weft__card_library_convolution(void) { return DNN_CONVOLUTION; }

/* ---- fused launches ---- */

void weft__facts_join(weft_launch_facts *to, const weft_launch_facts *entry, bool concurrent) {
    to->bytes += entry->bytes;
    to->again += entry->again;
    to->sums += entry->sums;
    to->tiles += entry->tiles;
    to->row = fmax(to->row, entry->row);
    to->least = fmax(to->least, entry->least);
    to->steps = concurrent ? fmax(to->steps, entry->steps) : to->steps + entry->steps;
    for (int u = 0; u < WEFT_UNITS; u++) to->work[u] += entry->work[u];
    to->width = (int)weft__larger(to->width, entry->width);
    to->allowed = (int)weft__larger(to->allowed, entry->allowed);
    to->at_once = (int)weft__larger(to->at_once, entry->at_once);
    to->registers = (int)weft__larger(to->registers, entry->registers);
    to->entries += !concurrent;
}

/* ---- heavy operations ---- */

/* The command whose launches get facts. */
typedef struct given {
    const weft_heavy *heavy;
    double flops, bytes; /* of the command */
    double scratch;      /* bytes of scratch memory */
    int launches;
} given;

static double blocks_of(const weft_launch *l) {
    return (double)l->groups[0] * (double)l->groups[1] * (double)l->groups[2];
}

static bool is_named(const weft_launch *l, const char *name) { return strcmp(l->name, name) == 0; }

/* The unit that multiplies. */
static weft_unit unit_of(const weft_launch *l, weft_dtype dtype) {
    const bool tensor = l->prelude & WEFT_PRELUDE_CORES;
    if (!tensor) return dtype == WEFT_F64 ? WEFT_UNIT_F64 : WEFT_UNIT_F32;
    return dtype == WEFT_F32 ? WEFT_UNIT_TF32 : WEFT_UNIT_TENSOR;
}

/* Matmuls, and convolutions as matmuls. A tile of `side` x `side` sums reads two operands of `side` lines;
 * which part of k it reads at a time is the depth of its local memory. */
static void matmul_facts(const given *g, weft_launch *l, weft_dtype dtype, double results, double k) {
    enum { DEPTH = 16, TENSOR_DEPTH = 64, STAGES = 3, SUM_WIDTH = 4 };
    weft_launch_facts *f = &l->facts;
    if (is_named(l, "matmul_sum")) {
        f->tiles = g->scratch;
        f->width = f->allowed = f->at_once = SUM_WIDTH;
        return;
    }
    const weft_unit unit = unit_of(l, dtype);
    const bool tensor = unit >= WEFT_UNIT_TF32;
    const double size = (double)weft_dtype_size(dtype), side = sqrt(fmax(1, results / blocks_of(l)));
    const double work = g->flops / g->launches;
    f->bytes = g->bytes / g->launches;
    f->tiles = fmax(0, work / side * size - f->bytes) + g->scratch;
    f->work[unit] = work / (tensor ? OWN_TENSOR : OWN_F32);
    if (f->steps == 0) f->steps = tensor ? k / TENSOR_DEPTH / STAGES : k / DEPTH;
    f->width = f->allowed = 16;
    if (f->at_once == 0) f->at_once = tensor ? 16 * STAGES : 16;
    f->registers = tensor ? 168 : 128;
}

/* Returns into how many parts k is divided: so many times the results are in scratch memory. */
static double splits_of(const given *g, double results, weft_dtype dtype) {
    const double bytes = results * (double)weft_dtype_size(dtype == WEFT_F64 ? WEFT_F64 : WEFT_F32);
    return bytes > 0 ? fmax(1, floor(g->scratch / bytes)) : 1;
}

static void facts_of_matmul(const given *g, weft_launch *l) {
    const weft_heavy_matmul *mm = &g->heavy->as.matmul;
    double results = (double)mm->m * (double)mm->n;
    for (int d = 0; d < mm->batch_rank; d++) results *= (double)mm->batch[d];
    const double splits = splits_of(g, results, (weft_dtype)mm->dtype);
    matmul_facts(g, l, (weft_dtype)mm->dtype, results * splits, (double)mm->k / splits);
}

static void facts_of_conv(const given *g, weft_launch *l) {
    const weft_heavy_conv *c = &g->heavy->as.conv;
    const double taps = (double)c->size[0] * (double)c->size[1];
    const double x = (double)c->n * (double)c->x[0] * (double)c->x[1],
                 y = (double)c->n * (double)c->y[0] * (double)c->y[1];
    const double g_in = (double)(c->groups * c->in), g_out = (double)(c->groups * c->out);
    const double all[] = {y * g_out, x * g_in, g_out * taps * (double)c->in}, results = all[c->pass];
    const double splits = splits_of(g, results, (weft_dtype)c->dtype);
    matmul_facts(g, l, (weft_dtype)c->dtype, results * splits / g->launches, g->flops / 2 / results / splits);
}

/* dq takes three matmuls, dk and dv take four, of which two are those of dq again; the operation counts five.
 */
static void facts_of_attention(const given *g, weft_launch *l) {
    const weft_heavy_attention *at = &g->heavy->as.attention;
    weft_launch_facts *f = &l->facts;
    const weft_unit unit = unit_of(l, (weft_dtype)at->dtype);
    const double part = is_named(l, "attention_dq") ? 0.6 : is_named(l, "attention_dkv") ? 0.8 : 1;
    const double reached = weft__card_library_attention(at->backward, true) * OWN_ATTENTION;
    f->bytes = g->bytes / g->launches;
    if (!is_named(l, "attention_join"))
        f->work[unit] = g->flops * part / (unit >= WEFT_UNIT_TF32 ? reached : OWN_F32 * OWN_ATTENTION);
    f->width = f->allowed = f->at_once = 16;
    f->registers = 168;
}

/* Facts of a launch of a sorted scatter-add (heavy/scatter_sort.c). Returns false for other launches. */
static bool facts_of_sort(const weft_heavy_scatter *sc, const given *g, weft_launch *l) {
    enum { WORD = 4, PLACES = 4 /* keys and places, read and written */ };
    const double count = (double)sc->count, size = weft__heavy_size(sc->dtype);
    weft_launch_facts *f = &l->facts;
    const bool wide = is_named(l, "scatter_sum") || is_named(l, "scatter_fill");
    if (is_named(l, "scatter_count") || is_named(l, "scatter_offsets"))
        f->bytes = WORD * count; /* the keys; 256 counts of 512 keys, read and written */
    else if (is_named(l, "scatter_place"))
        f->bytes = PLACES * WORD * count;
    else if (is_named(l, "scatter_fill"))
        f->bytes = 2 * (double)(sc->outer * sc->rows * sc->inner) * size;
    else if (is_named(l, "scatter_join"))
        f->bytes = g->scratch;
    else if (is_named(l, "scatter_sum"))
        f->bytes = g->bytes;
    else
        return false;
    f->allowed = wide && sc->inner * (int64_t)size % 16 == 0 ? 16 : wide ? (int)size : WORD;
    f->width = f->allowed;
    f->at_once = wide ? 4 * f->width : f->width; /* four sources in flight */
    f->work[WEFT_UNIT_ISSUE] = 2 * f->bytes / f->width;
    f->registers = 48;
    return true;
}

/* Every block walks through the whole index, unless it was sorted. */
static void facts_of_scatter(const given *g, weft_launch *l) {
    enum { TESTS = 12 /* instructions for an index that is another block's */, CHUNK = 256 };
    const weft_heavy_scatter *sc = &g->heavy->as.scatter;
    const double count = (double)sc->count, size = weft__heavy_size(sc->dtype);
    weft_launch_facts *f = &l->facts;
    if (facts_of_sort(sc, g, l)) return;
    f->bytes = g->bytes / g->launches;
    f->width = f->at_once = (int)size;
    f->allowed = sc->inner * (int64_t)size % 16 == 0 ? 16 : (int)size;
    f->registers = 40;
    if (!is_named(l, "scatter")) return;
    f->tiles = (blocks_of(l) - 1) * count * weft__heavy_size(sc->index_dtype);
    f->work[WEFT_UNIT_ISSUE] = blocks_of(l) * l->items[0] * count * TESTS;
    f->steps = count / CHUNK;
}

/* A step of a recurrent layer waits for the step before: for its own matmul, and for the other blocks. */
static void facts_of_recurrent(const given *g, weft_launch *l) {
    enum { WAITS = 4 };
    l->facts.bytes = g->bytes / g->launches;
    l->facts.work[WEFT_UNIT_F32] = g->flops / g->launches / OWN_F32;
    l->facts.steps = WAITS * (double)g->heavy->as.recurrent.t;
    l->facts.width = l->facts.allowed = l->facts.at_once = 4;
}

static void facts_of_others(const given *g, weft_launch *l) {
    l->facts.bytes = g->bytes / g->launches;
    l->facts.work[WEFT_UNIT_ISSUE] = 4 * g->flops / g->launches;
    l->facts.width = l->facts.allowed = l->facts.at_once = 4;
}

static void heavy_facts(const given *g, weft_launch *l) {
    switch (g->heavy->kind) {
    case WEFT_HEAVY_MATMUL: facts_of_matmul(g, l); break;
    case WEFT_HEAVY_CONV: facts_of_conv(g, l); break;
    case WEFT_HEAVY_ATTENTION: facts_of_attention(g, l); break;
    case WEFT_HEAVY_SCATTER: facts_of_scatter(g, l); break;
    case WEFT_HEAVY_RECURRENT: facts_of_recurrent(g, l); break;
    default: facts_of_others(g, l); break;
    }
}

/* Copies and zeros move words of 8 bytes, or bytes. */
static void move_facts(const weft_command *commands, int count, weft_launch *l) {
    const bool words = l->n_arguments > 0 && l->arguments[0].dtype == WEFT_U64;
    for (int i = 0; i < count; i++)
        l->facts.bytes += (double)commands[i].bytes * (commands->kind == WEFT_COMMAND_COPY ? 2 : 1);
    l->facts.width = l->facts.at_once = words ? 8 : 1;
    l->facts.allowed = commands->bytes % 16 == 0 ? 16 : l->facts.width;
    l->facts.registers = 32;
}

void weft__gpu_facts(const weft_command *commands, int count, weft_launches *launches, int from) {
    const weft_command *c = commands;
    given g = {.launches = launches->count - from, .scratch = (double)launches->scratch_bytes};
    if (c->kind == WEFT_COMMAND_HEAVY) {
        g.heavy = &c->heavy;
        weft__heavy_class(g.heavy)->cost(g.heavy, &g.flops, &g.bytes);
        for (int l = from; l < launches->count; l++)
            if (is_named(&launches->list[l], "matmul_sum")) g.launches--;
    }
    for (int l = from; l < launches->count; l++) {
        if (c->kind == WEFT_COMMAND_HEAVY)
            heavy_facts(&g, &launches->list[l]);
        else if (c->kind != WEFT_COMMAND_KERNEL)
            move_facts(c, count, &launches->list[l]);
    }
}
